%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_tests).

%% The pure parts beside the protocol: settings, JSON, numbers for names, who may ask, which files.

-compile([export_all, nowarn_export_all]).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

settings_test_() ->
    {ok, Default} = sderl_web_config:read([]),
    [
        ?_assertMatch(#{port := 8090, ip := {127, 0, 0, 1}, writable := false, tls := off,
                        source := hub}, Default),
        ?_assertMatch(<<_:32/binary>>, (maps:get(token, Default))()),
        ?_assertMatch({error, {bad_config, [port], 70_000, _}},
                      sderl_web_config:read([{port, 70_000}])),
        ?_assertMatch({error, {bad_config, [prot], 1, _}}, sderl_web_config:read([{prot, 1}])),
        ?_assertMatch({error, {bad_config, [tls], #{}, _}}, sderl_web_config:read([{tls, #{}}])),
        %% The error does not show the token, even a wrong one.
        ?_assertMatch({error, {bad_config, [token], '...', _}},
                      sderl_web_config:read([{token, ~"short"}])),
        ?_assertMatch({error, {bad_config, [token], '...', _}},
                      sderl_web_config:read([{token, ~"with a blank in it"}])),
        ?_assertMatch({error, {bad_config, [hosts], _, _}},
                      sderl_web_config:read([{hosts, ["a"]}])),
        ?_assertEqual(nomatch,
                      string:find(io_lib:format("~p", [Default]), (maps:get(token, Default))()))
    ].

%% For each error in the files of TLS, an address or a port, one sentence names it and says what to
%% do.
start_test_() ->
    {setup,
     fun() ->
         Dir = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(
             ["sderl-tls-", os:getpid(), erlang:unique_integer([positive])]
         )),
         ok = filelib:ensure_path(Dir),
         Dir
     end,
     fun file:del_dir_r/1, fun(Dir) ->
         {#{certfile := Cert, keyfile := Key} = Good, _} = sderl_web_certificates:make(Dir),
         {#{keyfile := Other}, _} = sderl_web_certificates:make(Dir),
         Rsa = sderl_web_certificates:pem(filename:join(Dir, "rsa.pem"), [
             {'RSAPrivateKey',
              public_key:der_encode('RSAPrivateKey', public_key:generate_key({rsa, 1024, 65_537}))}
         ]),
         Junk = filename:join(Dir, "junk.pem"),
         ok = file:write_file(Junk, ["-----BEGIN CERTIFICATE-----\n", base64:encode(rand:bytes(99)),
                                     "\n-----END CERTIFICATE-----\n"]),
         Both = filename:join(Dir, "both.pem"),
         ok = file:write_file(Both, [element(2, file:read_file(F)) || F <- [Cert, Key]]),
         Text = fun({error, Why}) -> unicode:characters_to_list(Why) end,
         Says = fun(C, K) -> Text(sderl_web_start:check(#{tls_cert => C, tls_key => K})) end,
         Starts = fun(Web) -> Text(sderl_web_start:start(Web)) end,
         Has = fun(Part, Said) ->
             ?_assertMatch({_, _, [_ | _]}, {Part, Said, string:find(Said, Part)})
         end,
         [
             ?_assertEqual(ok, sderl_web_tls:check(Good)),
             ?_assertEqual(ok, sderl_web_tls:check(#{certfile => Both})),
             Has("nothing.pem cannot be read: no such file or directory",
                 Says(filename:join(Dir, "nothing.pem"), Key)),
             Has("nothing.pem cannot be read: no such file or directory",
                 Says(Cert, filename:join(Dir, "nothing.pem"))),
             Has("cannot be read: ", Says(Dir, Key)),
             Has("has no certificate: it is a file in PEM", Says(Key, Key)),
             Has("has no private key: it is a file in PEM", Says(Cert, Cert)),
             Has("has a certificate that cannot be read", Says(Junk, Key)),
             Has("is not that of the certificate in " ++ Cert, Says(Cert, Other)),
             Has("is not that of the certificate in " ++ Cert, Says(Cert, Rsa)),
             ?_assertMatch({error, {bad_config, [tls], _, _}},
                           sderl_web_config:read([{tls, Good#{keyfile => Other}}])),
             Has("198.51.100.7 is no address of this machine: --ip takes one of 127.0.0.1",
                 Starts(#{ip => {198, 51, 100, 7}, port => 0})),
             Has("--ip: \"300.0.0.1\" is no address",
                 Text(sderl_web_start:check(#{ip => "300.0.0.1"})))
         ]
     end}.

tokens_differ_test() ->
    ?assertEqual(100,
                 length(lists:usort([sderl_web_config:random_token() || _ <- lists:seq(1, 100)]))).

hosts_test_() ->
    {ok, Here} = inet:gethostname(),
    [
        [?_assert(sderl_web_guard:host_allowed(Host, [~"watch.example"]))
         || Host <- [
             ~"127.0.0.1:8090", ~"127.0.0.1", ~"[::1]:8090", ~"10.1.2.3:80", ~"localhost:1",
             ~"LOCALHOST", ~"watch.example:443",
             unicode:characters_to_binary(Here)
         ]],
        [?_assertNot(sderl_web_guard:host_allowed(Host, [~"watch.example"]))
         || Host <- [
             ~"", ~"evil.example", ~"127.0.0.1.evil.example:8090", ~"localhost.evil.example",
             ~"evil.watch.example", ~"1", ~":8090", <<255>>, <<"localhost", 255>>
         ]]
    ].

origins_test_() ->
    Allowed = fun(Origin) ->
        sderl_web_guard:origin_allowed(Origin, ~"127.0.0.1:8090", [~"https://watch.example"])
    end,
    [
        [?_assert(Allowed(Origin))
         || Origin <- [undefined, ~"http://127.0.0.1:8090", ~"https://127.0.0.1:8090",
                       ~"https://watch.example"]],
        [?_assertNot(Allowed(Origin))
         || Origin <- [
             ~"null", ~"http://127.0.0.1", ~"http://127.0.0.1:8091", ~"http://evil.example",
             ~"http://watch.example", ~"https://watch.example.evil", ~"", <<255>>,
             <<"http://127.0.0.1:8090", 255>>
         ]]
    ].

%% A browser learns no path of the server: neither of a recording that cannot be read nor of one
%% that cannot be made.
paths_stay_here_test() ->
    Dir = filename:join(filename:basedir(user_cache, "sderl_tests"), "sderl_web_" ++ os:getpid()),
    Files = [{~"empty.sdmon", ~""}, {~"other.sdmon", ~"#!/bin/sh"},
             {~"cut.sdmon", iolist_to_binary(sderl_mon_segment:header())}],
    ok = filelib:ensure_path(Dir),
    try
        [ok = file:write_file(filename:join(Dir, Name), Bytes) || {Name, Bytes} <- Files],
        Said = [sderl_web_ask:answer({open, #{recording => Name}}, live, #{recordings => Dir})
                || {Name, _} <- Files],
        In = filename:join([Dir, "empty.sdmon", "no folder"]),
        Refused = sderl_web_ask:answer({record, #{on => true}}, live, #{recordings => In}),
        [
            begin
                {error, unavailable, Why} = Answer,
                ?assertEqual(nomatch, binary:match(unicode:characters_to_binary(Why),
                                                   [list_to_binary(Dir), ~"/"]))
            end
         || Answer <- [Refused | Said]
        ]
    after
        ok = file:del_dir_r(Dir)
    end.

paths_test_() ->
    [
        ?_assertEqual({ok, [~"index.html"]}, sderl_web_static:parts(~"/")),
        ?_assertEqual({ok, [~"assets", ~"index-a1_b.js"]},
                      sderl_web_static:parts(~"/assets/index-a1_b.js")),
        [?_assertEqual(error, sderl_web_static:parts(Path))
         || Path <- [
             ~"/..", ~"/../x", ~"/assets/../../x", ~"/%2e%2e/x", ~"/%2e%2e%2fx", ~"/a%2fb",
             ~"/a%5cb", ~"/a\\b", ~"/.git", ~"/a//b", ~"//a",
             ~"/a%00.js", ~"/%", ~"/%zz", ~"/a b", <<"/", 255>>, ~"x",
             <<"/", (binary:copy(~"a", 200))/binary>>
         ]]
    ].

paths_property_test_() -> sderl_prop:eunit("no path leads out", 1000, fun prop_paths/0).

prop_paths() ->
    Part = oneof([~"..", ~".", ~"%2e%2e", ~"%2f", ~"/", ~"\\", ~"%5c", ~"a", ~"%00", ~"assets",
                  ~"~", ~"%c0%ae"]),
    ?FORALL(
        Parts,
        list(Part),
        case sderl_web_static:parts(iolist_to_binary([$/ | Parts])) of
            error -> true;
            {ok, Names} ->
                lists:all(fun(Name) ->
                    filename:basename(Name) =:= Name andalso Name =/= ~".." andalso Name =/= <<>>
                end, Names)
        end
    ).

numbers_test_() ->
    [?_assertEqual(Text, iolist_to_binary(sderl_web_json:number(N)))
     || {N, Text} <- [
         {0, ~"0"}, {12, ~"12"}, {-3, ~"-3"}, {0.0, ~"0"}, {0.1234, ~"0.123"}, {0.0005, ~"0.001"},
         {0.0004, ~"0"}, {1.5, ~"1.5"}, {2.05, ~"2.05"},
         {99.9996, ~"100"}, {123.4, ~"123"}, {-1.25, ~"-1.25"},
         {1.0e300, integer_to_binary(round(1.0e300))}, {nan, ~"null"}
     ]].

any_term_is_json_test_() -> sderl_prop:eunit("any term is JSON", 500, fun prop_any_term/0).

prop_any_term() ->
    ?FORALL(Term, any(), begin
        _ = json:decode(iolist_to_binary(sderl_web_json:term(Term))),
        true
    end).

strange_terms_test_() ->
    Json = fun(Term) -> json:decode(iolist_to_binary(sderl_web_json:term(Term))) end,
    [
        ?_assertEqual(#{~"a" => null, ~"b" => [1, true]},
                      Json(#{a => undefined, ~"b" => {1, true}})),
        ?_assertEqual([1, 2], Json([1 | 2])),
        ?_assertEqual([[], [[]]], Json({[], [[]]})),
        ?_assertEqual(<<"é"/utf8>>, Json(<<233>>)),
        ?_assertMatch(<<"<0.", _/binary>>, Json(list_to_pid("<0.1.0>"))),
        ?_assertMatch(#{~"{1,2}" := 3}, Json(#{{1, 2} => 3}))
    ].

topology() ->
    #{
        epoch => 3,
        t => 1000,
        nodes => #{
            ~"a@h" => #{status => up, groups => [~"g1", ~"g2"], home => ~"g1", hidden => false,
                        source => probe},
            ~"b@h" => #{status => down, groups => [~"g2"], home => undefined, hidden => true,
                        source => none, why => ~"gone"}
        },
        groups => #{
            ~"g1" => #{nodes => [~"a@h"], coordinator => ~"a@h", names => 1, agent => undefined},
            ~"g2" => #{nodes => [~"a@h", ~"b@h", ~"not.seen@h"], coordinator => undefined,
                       names => 0, agent => ~"m@h"}
        },
        monitors => [#{node => ~"m@h", status => up, master => true, agents => 2}]
    }.

frame() ->
    #{
        seq => 1, t => 1000, span_ms => 1000, epoch => 3,
        nodes => #{~"a@h" => #{mem => 5, util => 0.25}},
        links => #{{~"a@h", ~"far@h"} => {1.5, 100}},
        kinds => #{routing => {1, 2}, ~"of a recording" => {3, 4}},
        groups => #{~"g1" => #{names => 1}},
        lost => #{}
    }.

topology_test() ->
    Ids = sderl_web_ids:topology(topology(), sderl_web_ids:new()),
    #{~"nodes" := Nodes, ~"groups" := Groups, ~"epoch" := 3} =
        json:decode(iolist_to_binary(sderl_web_json:topology(topology(), Ids))),
    Number = fun(Name, List) -> hd([Id || #{~"id" := Id, ~"name" := Is} <- List, Is =:= Name]) end,
    [G1, G2] = [Number(Name, Groups) || Name <- [~"g1", ~"g2"]],
    A = Number(~"a@h", Nodes),
    ?assertMatch([#{~"groups" := [G1, G2], ~"home" := G1, ~"why" := null}],
                 [N || #{~"id" := Id} = N <- Nodes, Id =:= A]),
    ?assertMatch([#{~"nodes" := [A], ~"coordinator" := A}],
                 [G || #{~"id" := Id} = G <- Groups, Id =:= G1]).

frame_test() ->
    Ids = sderl_web_ids:frame(frame(), sderl_web_ids:topology(topology(), sderl_web_ids:new())),
    A = sderl_web_ids:node(~"a@h", Ids),
    Far = sderl_web_ids:node(~"far@h", Ids),
    #{~"nodes" := [[A | Columns]], ~"links" := [[A, Far, 1.5, 100]],
      ~"kinds" := #{~"routing" := [1, 2], ~"of a recording" := [3, 4]}} =
        json:decode(iolist_to_binary(sderl_web_json:frame(frame(), Ids))),
    ?assertEqual([maps:get(M, #{mem => 5, util => 0.25}, null) || M <- sderl_mon_types:metrics()],
                 Columns).

%% Groups with other figures than the one before: other ones, more, fewer or none.
frame_groups_test() ->
    Groups = #{~"a" => #{names => 1, regs_s => 2.5}, ~"b" => #{names => 3, regs_s => 0},
               ~"c" => #{names => 4}, ~"d" => #{}, ~"e" => #{regs_s => 7, ~"own \"x\"" => 8},
               ~"f" => #{names => 5, regs_s => 6}},
    Ids = sderl_web_ids:add([], maps:keys(Groups), sderl_web_ids:new()),
    #{~"groups" := Said} = json:decode(iolist_to_binary(
        sderl_web_json:frame((frame())#{nodes := #{}, links := #{}, groups := Groups}, Ids)
    )),
    Told = #{sderl_web_ids:group(Id, Ids) => #{name(Key) => V || Key := V <- Of}
             || Id := Of <- Groups},
    ?assertEqual(Told, #{Number => Of || [Number, Of] <- Said}).

name(Key) when is_atom(Key) -> atom_to_binary(Key);
name(Key) -> Key.

%% A frame without new names does not change the table; new names get numbers.
frame_ids_test() ->
    Frame = frame(),
    Ids = sderl_web_ids:frame(Frame, sderl_web_ids:new()),
    ?assertEqual(Ids, sderl_web_ids:frame(Frame, Ids)),
    New = [Frame#{nodes := #{~"new@h" => #{}}},
           Frame#{links := #{{~"new@h", ~"far@h"} => {1, 1}}},
           Frame#{links := #{{~"far@h", ~"new@h"} => {1, 1}}}],
    [?assertEqual(2, sderl_web_ids:node(~"new@h", sderl_web_ids:frame(F, Ids))) || F <- New],
    Grouped = sderl_web_ids:frame(Frame#{groups := #{~"new" => #{}}}, Ids),
    ?assertEqual(1, sderl_web_ids:group(~"new", Grouped)).

%% When too many new names come, old ones are forgotten, and those of the present topology are
%% numbered again.
latest_keeps_the_present_names_test() ->
    Latest = sderl_web_latest:put(topology, topology(), sderl_web_latest:new()),
    Many = #{nodes => #{integer_to_binary(I) => #{} || I <- lists:seq(1, 20_100)}, links => #{}},
    Another = Many#{nodes := #{~"another@h" => #{}}},
    Numbered = lists:foldl(fun(Frame, Acc) -> sderl_web_latest:number(undefined, Frame, Acc) end,
                           Latest, [Many, Another]),
    ?assert(sderl_web_ids:size(sderl_web_latest:ids(Numbered)) < 20_000),
    {Text, _} = sderl_web_latest:encode(topology, Numbered),
    #{~"nodes" := Nodes} = json:decode(Text),
    ?assert(lists:member(~"a@h", [Name || #{~"name" := Name} <- Nodes])).

%% A name keeps its number; names that are gone are forgotten when the table is full.
ids_test() ->
    Ids = sderl_web_ids:add([~"a", ~"b"], [~"a"], sderl_web_ids:new()),
    ?assertEqual({0, 1, 0}, {sderl_web_ids:node(~"a", Ids), sderl_web_ids:node(~"b", Ids),
                             sderl_web_ids:group(~"a", Ids)}),
    Many = lists:foldl(fun(I, Acc) -> sderl_web_ids:add([~"b", integer_to_binary(I)], [], Acc) end,
                       Ids, lists:seq(1, 50_000)),
    ?assert(sderl_web_ids:size(Many) < 20_100),
    ?assertEqual(1, sderl_web_ids:node(~"b", Many)).

%% What the hub said last: encoded once, and again when there is a newer one.
latest_test() ->
    Settings = #{cluster => ~"c", writable => false, max_sockets => 1},
    Event = fun(I) -> #{id => I, t => I, kind => node_up, level => info, text => ~"up"} end,
    Now = #{topology => topology(), frame => none, findings => [], events => [Event(2), Event(1)],
            mode => live, interval_ms => 1000, life => 7, range => {0, 0}},
    Types = fun(Messages) -> [Type || #{~"type" := Type} <- lists:map(fun json:decode/1, Messages)]
            end,
    {Before, New} = sderl_web_latest:snapshot(Settings, sderl_web_latest:new()),
    ?assertEqual([~"hello", ~"findings", ~"events"], Types(Before)),
    Begun = sderl_web_latest:replace(Now, New),
    ?assertEqual(7, sderl_web_latest:life(Begun)),
    ?assertEqual([true, false],
                 [sderl_web_latest:has_node(Node, Begun) || Node <- [~"a@h", ~"no@h"]]),
    {Old, Encoded} = sderl_web_latest:encode(topology, Begun),
    ?assertEqual({Old, Encoded}, sderl_web_latest:encode(topology, Encoded)),
    {Newer, _} = sderl_web_latest:encode(
        topology, sderl_web_latest:put(topology, (topology())#{epoch := 4}, Encoded)
    ),
    ?assertMatch([#{~"epoch" := 3}, #{~"epoch" := 4}], [json:decode(Text) || Text <- [Old, Newer]]),
    {Text, 3, More} = sderl_web_latest:add_events([Event(2), Event(3)], Begun),
    ?assertMatch(#{~"events" := [#{~"id" := 3}]}, json:decode(Text)),
    ?assertEqual(none, sderl_web_latest:add_events([Event(1), Event(3)], More)),
    {Kept, 0} = sderl_web_latest:encode_events(2, More),
    ?assertMatch(#{~"events" := [#{~"id" := 2}, #{~"id" := 3}]}, json:decode(Kept)),
    {Some, Full} = sderl_web_latest:snapshot(Settings, sderl_web_latest:put(frame, frame(), More)),
    ?assertEqual([~"hello", ~"topology", ~"frame", ~"findings", ~"events"], Types(Some)),
    ?assertEqual(map_get(frame, sderl_web_latest:present(Full)), frame()).

%% The answers of cowboy itself, also for a handler that crashed, get our headers too; headers that
%% a handler has set stay.
stream_test() ->
    Options = #{stream_handlers => [sderl_web_stream, ?MODULE]},
    {Commands, _} = sderl_web_stream:init(1, #{}, Options#{stream_handlers := [?MODULE]}),
    [{error_response, 500, Crashed, Body}, {headers, 200, Begun}, {flow, 1}] = Commands,
    ?assertMatch(#{~"x-frame-options" := ~"DENY", ~"content-length" := _,
                   ~"content-type" := ~"application/problem+json"}, Crashed),
    ?assertMatch(#{~"status" := 500, ~"title" := ~"Failed"}, json:decode(Body)),
    ?assertMatch(#{~"referrer-policy" := ~"same-origin", ~"x-frame-options" := ~"DENY"}, Begun),
    Answer = {response, 400, #{}, <<>>},
    {response, 400, Headers, Problem} = cowboy_stream:early_error(1, reason, #{}, Answer, Options),
    ?assertMatch(#{~"status" := 400, ~"detail" := _}, json:decode(Problem)),
    {response, 400, _, <<>>} =
        cowboy_stream:early_error(1, reason, #{method => ~"HEAD"}, Answer, Options),
    ?assertMatch(#{~"content-security-policy" := <<"default-src 'none'", _/binary>>}, Headers).

%% The stream handler behind ours, of the test above.
init(_, _, _) ->
    {[{error_response, 500, #{~"content-length" => ~"0"}, <<>>},
      {headers, 200, #{~"referrer-policy" => ~"same-origin"}}, {flow, 1}], none}.

early_error(_, _, _, Answer, _) -> Answer.

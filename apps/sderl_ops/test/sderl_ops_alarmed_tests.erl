%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_alarmed_tests).
-moduledoc "Answers of a dashboard that is asked for alarms, and of others in its place.".

-include_lib("eunit/include/eunit.hrl").

-define(NODES, #{~"web1@h" => ~"web1", ~"web2@h" => ~"web2"}).

raised_test() ->
    Answer = #{alarms => [alarm(~"a|web1@h", [~"web1@h"], [~"shop"]),
                          alarm(~"b|shop", [~"web2@h", ~"other@h"], [~"shop"])], next => null},
    {Seen, [First, Request]} = read([none(), ok(Answer)]),
    ?assertMatch(#{state := up, raised := #{
        {~"a|web1@h", 2} := #{instances := [~"web1"], elsewhere := false, groups := [~"shop"]},
        {~"b|shop", 2} := #{instances := [~"web2"], elsewhere := true, groups := [~"shop"]}
    }}, Seen),
    ?assertNotEqual(nomatch, binary:match(First, ~"GET /api/v1/alarms?state=acknowledged&")),
    [?assertNotEqual(nomatch, binary:match(Request, Part))
     || Part <- [~"GET /api/v1/alarms?state=raised&", ~"Bearer secret-1"]].

%% All alarms that are not over are read; major ones that nobody has acknowledged count.
counts_test() ->
    Of = fun(Id, Changes) -> maps:merge(alarm(Id, [], []), Changes) end,
    {#{raised := Raised}, _} = read([
        ok(#{alarms => [Of(~"seen", #{state => acknowledged}), Of(~"reopened", #{})]}),
        ok(#{alarms => [Of(~"new", #{}), Of(~"minor", #{severity => minor}),
                        Of(~"silenced", #{silenced => true}), Of(~"reopened", #{})]})
    ]),
    ?assertEqual(#{~"seen" => false, ~"reopened" => true, ~"new" => true, ~"minor" => false,
                   ~"silenced" => false},
                 #{Id => Counts || {Id, 2} := #{counts := Counts} <- Raised}).

pages_test() ->
    First = #{alarms => [alarm(~"a", [], [])], next => ~"c1"},
    {#{state := up, raised := Raised}, [_, Second, _]} =
        read([ok(First), ok(#{alarms => [alarm(~"b", [], [])]}), none()]),
    ?assertEqual([{~"a", 2}, {~"b", 2}], lists:sort(maps:keys(Raised))),
    ?assertNotEqual(nomatch, binary:match(Second, ~"cursor=c1")).

%% Too many alarms are an error, because those that are left out may matter.
too_many_test() ->
    {#{state := failing, why := Why}, _} =
        read([ok(#{alarms => [], next => ~"more"}) || _ <- lists:seq(1, 40)]),
    ?assertNotEqual(nomatch, binary:match(Why, ~"more alarms than can be read")).

wrong_test_() ->
    [{Name, fun() ->
        {#{state := failing, why := Why}, _} = read([Answer]),
        ?assertMatch({_, {_, _}}, {Why, binary:match(Why, Says)}),
        ?assertEqual(nomatch, binary:match(Why, ~"secret-1"))
    end}
     || {Name, Answer, Says} <- [
            {"refused", answer("401 Unauthorized", "{}"), ~"the token is refused"},
            {"another role", answer("403 Forbidden", "{}"), ~"the token may not read alarms"},
            {"another server", answer("404 Not Found", "no"), ~"it answers 404"},
            {"no JSON", answer("200 OK", "<html>"), ~"not that of a dashboard"},
            {"other JSON", answer("200 OK", "[1, 2]"), ~"not that of a dashboard"},
            {"no alarms", answer("200 OK", "{\"alarms\":[{\"id\":7}]}"),
             ~"not that of a dashboard"},
            {"elsewhere", answer("302 Found\r\nlocation: http://127.0.0.1:1/", ""),
             ~"it answers 302"},
            {"nothing", "", ~"it does not answer"}
        ]].

nobody_test_() ->
    [fun() ->
        #{state := failing, why := Why} = ask(#{url => <<"http://", Host/binary, ":1">>}),
        ?assertMatch({_, {_, _}}, {Why, binary:match(Why, ~"be connected to: connection refused")})
    end || Host <- [~"127.0.0.1" | [~"[::1]" || has_ipv6()]]].

%% The address in the file may be IPv6.
ipv6_test() ->
    case has_ipv6() of
        true ->
            {Seen, _} = read([none(), none()], {0, 0, 0, 0, 0, 0, 0, 1}, ~"[::1]"),
            ?assertMatch(#{state := up}, Seen);
        false -> ok
    end.

has_ipv6() ->
    case gen_tcp:listen(0, [inet6, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}]) of
        {ok, Listener} -> gen_tcp:close(Listener) =:= ok;
        {error, _} -> false
    end.

%% The error says what is wrong with a certificate.
certificate_test_() ->
    {timeout, 60, fun() ->
        {ok, _} = application:ensure_all_started(ssl),
        Made = [{key, {namedCurve, secp256r1}}, {digest, sha256}],
        Chain = #{root => Made, intermediates => [], peer => Made},
        Data = fun() ->
            public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain})
        end,
        #{server_config := Config} = Data(),
        #{client_config := Others} = Data(),
        {ok, Listener} = ssl:listen(0, [{ip, {127, 0, 0, 1}}, {reuseaddr, true} | Config]),
        {ok, {_, Port}} = ssl:sockname(Listener),
        Server = spawn_link(fun() -> refused(Listener) end),
        File = filename:join(filename:basedir(user_cache, "sderl-alarmed-tests"),
                             os:getpid() ++ ".pem"),
        ok = filelib:ensure_dir(File),
        ok = file:write_file(File, public_key:pem_encode(
            [{'Certificate', Der, not_encrypted} || Der <- proplists:get_value(cacerts, Others)])),
        Ask = fun() ->
            #{state := failing, why := Why} = ask(#{
                url => iolist_to_binary(io_lib:format("https://127.0.0.1:~b", [Port])),
                tls_ca => unicode:characters_to_binary(File)
            }),
            binary:match(Why, ~"Unknown CA") =/= nomatch orelse Why
        end,
        %% A busy machine may not get as far as the certificate in time.
        ok = sderl_ops_awaits:await(Ask, 50_000),
        ok = file:delete(File),
        unlink(Server),
        exit(Server, kill),
        ok = ssl:close(Listener)
    end}.

refused(Listener) ->
    {ok, Socket} = ssl:transport_accept(Listener),
    {error, _} = ssl:handshake(Socket),
    refused(Listener).

no_token_test() ->
    Source = #{url => ~"http://127.0.0.1:1", token => {file, ~"/there/is/no/such.token"}},
    #{state := failing, why := Why} = sderl_ops_alarmed:read(Source, ?NODES),
    ?assertNotEqual(nomatch, binary:match(Why, ~"/there/is/no/such.token")).

%% ---------------------------------------------------------------- a server

alarm(Id, Nodes, Groups) ->
    #{id => Id, count => 2, nodes => Nodes, groups => Groups, state => raised, severity => major,
      silenced => false}.

none() -> ok(#{alarms => [], next => null}).

ok(Answer) -> answer("200 OK", json:encode(Answer)).

answer(Status, Body) ->
    ["HTTP/1.1 ", Status, "\r\nconnection: close\r\ncontent-length: ",
     integer_to_list(iolist_size(Body)), "\r\n\r\n", Body].

%% Each request gets the next answer.
read(Answers) -> read(Answers, {127, 0, 0, 1}, ~"127.0.0.1").

read(Answers, Ip, Host) ->
    Family = case tuple_size(Ip) of 8 -> inet6; 4 -> inet end,
    {ok, Listener} = gen_tcp:listen(0, [binary, Family, {active, false}, {ip, Ip}]),
    {ok, Port} = inet:port(Listener),
    Caller = self(),
    Server = spawn_link(fun() -> Caller ! {self(), [serve(Listener, A) || A <- Answers]} end),
    Seen = ask(#{url => iolist_to_binary(io_lib:format("http://~ts:~b/", [Host, Port]))}),
    Requests = receive {Server, Of} -> Of end,
    ok = gen_tcp:close(Listener),
    {Seen, Requests}.

ask(Source) ->
    os:putenv("SDERL_OPS_TEST_TOKEN", "secret-1"),
    sderl_ops_alarmed:read(Source#{token => {env, ~"SDERL_OPS_TEST_TOKEN"}}, ?NODES).

serve(Listener, Answer) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    {ok, Request} = gen_tcp:recv(Socket, 0),
    ok = gen_tcp:send(Socket, Answer),
    ok = gen_tcp:close(Socket),
    Request.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_SUITE).
-moduledoc """
The dashboard's server on a synthetic cluster: its answers, what it refuses, and how it bears load
and malformed input.
""".

-behaviour(ct_suite).

-compile([export_all, nowarn_export_all]).

-include_lib("proper/include/proper_common.hrl").
-include_lib("stdlib/include/assert.hrl").

-define(TOKEN, ~"token-of-the-test").
-define(MS, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [operations, any_request, sources, refused, http, every_answer, any_bytes, odd_messages,
     malformed, large, rate, many_sockets, slow_reader, feed_ends, settings, replayed, tls].

init_per_suite(Config) ->
    _ = [application:load(App) || App <- [sderl_mon, sderl_web]],
    ok = application:set_env([{sderl_web, [
        {port, 0}, {token, ?TOKEN}, {source, synthetic}, {cluster, ~"made up"}, {max_sockets, 520},
        {recordings, proplists:get_value(priv_dir, Config)},
        %% These cases ask without a token far more often than the usual rate allows.
        {rate, {100_000, 100_000}}, {strangers_rate, {100_000, 100_000}},
        {synthetic, #{nodes => 60, groups => 6, edges => 200, interval_ms => 200}}
    ]}]),
    {ok, _} = application:ensure_all_started(sderl_web),
    {ok, #{port := Port}} = sderl_web:address(),
    ok = sderl_fleet:await(fun() -> is_map(maps:get(frame, sderl_web_feed:current())) end, ?MS),
    [{port, Port} | Config].

end_per_suite(_) ->
    _ = [application:stop(App) || App <- [sderl_web, sderl_mon, cowboy, ranch]],
    ok = sderl_mon_synthetic:stop(),
    _ = [application:unset_env(sderl_web, Key) || {Key, _} <- application:get_all_env(sderl_web)],
    ok.

init_per_testcase(_, Config) -> Config.

%% After each case the server is as it was: one feed, no sockets.
end_per_testcase(_, _) ->
    ok = sderl_fleet:await(fun() -> sderl_web_feed:count() =:= 0 end, ?MS).

port(Config) -> proplists:get_value(port, Config).

open(Config) ->
    {ok, Socket} = sderl_web_client:open(port(Config), ?TOKEN),
    Socket.

of_type(Type) -> fun(Message) -> maps:get(~"type", Message) =:= Type end.

%% Every operation has an answer of the documented shape.
operations(Config) ->
    Socket = open(Config),
    Until = fun(Type) -> sderl_web_client:until(Socket, of_type(Type), ?MS) end,
    #{~"version" := 1, ~"mode" := ~"synthetic", ~"cluster" := ~"made up", ~"writable" := false,
      ~"metrics" := Metrics} = Until(~"hello"),
    #{~"nodes" := Nodes, ~"groups" := Groups} = wait_topology(Socket),
    ?assertEqual({60, 6}, {length(Nodes), length(Groups)}),
    #{~"nodes" := [[Id | Columns] | _], ~"t" := T} = Until(~"frame"),
    ?assertEqual(length(Metrics), length(Columns)),
    ?assert(lists:member(Id, [I || #{~"id" := I} <- Nodes])),
    #{~"name" := Node} = hd(Nodes),
    #{~"name" := Group} = hd(Groups),
    Ok = fun(Request) ->
        #{~"ok" := true, ~"result" := Result} = sderl_web_client:ask(Socket, Request),
        Result
    end,
    #{~"range" := [From, To]} = Ok(#{op => range}),
    ?assert(From =< T andalso To >= T),
    #{~"topology" := #{~"nodes" := _}, ~"frame" := #{~"seq" := _}, ~"findings" := _} =
        Ok(#{op => at, t => To}),
    lists:foreach(
        fun(Of) ->
            #{~"t" := [_ | _], ~"columns" := #{}} =
                Ok(#{op => series, 'of' => Of, from => From, to => To + 1000, points => 10})
        end,
        [#{kind => total}, #{kind => node, node => Node}, #{kind => group, group => Group},
         #{kind => edge, from => Group, to => Group}]
    ),
    [#{~"rows" := _} = Ok(#{op => traffic, by => By}) || By <- [link, edge, gateway, group]],
    #{~"events" := _} = Ok(#{op => events}),
    #{~"names" := [#{~"name" := Name} | _]} = Ok(#{op => names, group => Group, limit => 3}),
    #{~"name" := Name} = Ok(#{op => lookup, group => Group, name => Name}),
    null = Ok(#{op => watch, node => Node}),
    #{~"node" := Node, ~"schedulers" := _} = Until(~"detail"),
    null = Ok(#{op => unwatch, node => Node}),
    null = Ok(#{op => pause}),
    null = Ok(#{op => resume}),
    _ = Until(~"frame"),
    %% Requests for what does not exist, and for what is not allowed.
    Code = fun(Request) ->
        #{~"ok" := false, ~"error" := #{~"code" := Why, ~"message" := Text}} =
            sderl_web_client:ask(Socket, Request),
        ?assert(byte_size(Text) > 10),
        Why
    end,
    %% An unknown kind gives no events; no kind at all gives events of all kinds.
    #{~"result" := #{~"events" := []}} =
        sderl_web_client:ask(Socket, #{op => events, kinds => [~"no such kind of event"]}),
    ?assertEqual(~"not_found", Code(#{op => watch, node => ~"nobody@nowhere"})),
    ?assertEqual(~"not_found", Code(#{op => names, group => ~"no such group"})),
    ?assertEqual(~"not_found", Code(#{op => at, t => 1})),
    ?assertEqual(~"not_found", Code(#{op => open, recording => ~"../../../etc/passwd"})),
    ?assertEqual(~"forbidden", Code(#{op => trace, node => Node, on => true, confirm => true})),
    ?assertEqual(~"forbidden", Code(#{op => record, on => true})),
    ?assertEqual(~"bad_request", Code(#{op => fly})),
    sderl_web_client:close(Socket).

%% Every request that the protocol accepts is answered, however odd its times, names and numbers
%% are.
any_request(Config) ->
    sderl_prop:check("any request is answered", 1000, prop_any_request()),
    alive(Config).

prop_any_request() ->
    {ok, Now} = sderl_mon_hub:subscribe(),
    ok = sderl_mon_hub:unsubscribe(),
    #{topology := #{nodes := Nodes, groups := Groups}, range := {From, To}} = Now,
    Node = proper_types:oneof(maps:keys(Nodes) ++ [~"", ~"nobody@nowhere"]),
    Group = proper_types:oneof(maps:keys(Groups) ++ [~"", ~"(free)"]),
    Time = proper_types:oneof([From, To, From - 1, To + 1, 0, 1, (From + To) div 2,
                               253_402_300_799_999]),
    Bytes = proper_types:binary(),
    Of = proper_types:oneof([
        total, {group, Group}, {edge, Group, Group}, {link, Node, Node}, {gateway, Node},
        {node, Node, proper_types:list(proper_types:oneof(maps:keys(sderl_web_protocol:units())))}
    ]),
    By = proper_types:oneof([link, edge, gateway, group]),
    Request = proper_types:oneof([
        {at, [{t, Time}]},
        {series, [{'of', Of}, {from, Time}, {to, Time},
                  {points, proper_types:oneof([1, 2, 3, 300, 2000])}]},
        {traffic, [{by, By}, {window_s, proper_types:oneof([1, 60, 604_800])},
                   {t, proper_types:oneof([now, Time])}]},
        {events, [{limit, proper_types:oneof([1, 500])}, {before, Time},
                  {kinds, [~"node_up", ~"no such kind"]}, {node, Node}, {from, Time}, {to, Time}]},
        {names, [{group, Group}, {prefix, Bytes}, {limit, proper_types:oneof([1, 500])}]},
        {lookup, [{group, Group}, {name, Bytes}]},
        {process, [{node, Node}, {pid, Bytes}]},
        {open, [{recording, Bytes}]},
        {range, []}
    ]),
    ?FORALL(
        {Op, Args},
        Request,
        case sderl_web_ask:answer({Op, maps:from_list(Args)}, live, #{recordings => none}) of
            {ok, Json} -> _ = json:decode(iolist_to_binary(Json)), true;
            {error, Code, Why} -> is_atom(Code) andalso is_binary(unicode:characters_to_binary(Why))
        end
    ).

%% The first topology may be older than the synthetic cluster, and is then empty.
wait_topology(Socket) ->
    sderl_web_client:until(Socket, fun(Message) ->
        maps:get(~"type", Message) =:= ~"topology" andalso maps:get(~"nodes", Message) =/= []
    end, ?MS).

%% A socket turns to a recording, and back to the cluster.
sources(Config) ->
    {ok, #{file := File}} =
        sderl_mon_record:start(filename:join(proplists:get_value(priv_dir, Config), "test"), #{}),
    ok = sderl_fleet:await(fun() -> {ok, #{frames := N}} = sderl_mon_record:status(), N >= 3 end,
                           ?MS),
    ok = sderl_mon_record:stop(),
    Name = filename:basename(File),
    Socket = open(Config),
    Until = fun(Type) -> sderl_web_client:until(Socket, of_type(Type), ?MS) end,
    _ = Until(~"frame"),
    #{~"result" := #{~"recordings" := [#{~"name" := Name}]}} =
        sderl_web_client:ask(Socket, #{op => recordings}),
    #{~"ok" := true} = sderl_web_client:ask(Socket, #{op => open, recording => Name}),
    #{~"mode" := ~"recording", ~"recording" := Name, ~"range" := [From, To]} = Until(~"hello"),
    #{~"nodes" := Nodes} = Until(~"topology"),
    ?assertEqual(60, length(Nodes)),
    #{~"t" := To} = Until(~"frame"),
    #{~"result" := #{~"frame" := #{~"t" := _}}} =
        sderl_web_client:ask(Socket, #{op => at, t => From}),
    #{~"error" := #{~"code" := ~"unavailable"}} =
        sderl_web_client:ask(Socket, #{op => names, group => ~"g"}),
    #{~"ok" := true} = sderl_web_client:ask(Socket, #{op => live}),
    #{~"mode" := ~"synthetic"} = Until(~"hello"),
    _ = Until(~"frame"),
    sderl_web_client:close(Socket).

refused(Config) ->
    Port = port(Config),
    Ws = fun(Path, Headers) ->
        case sderl_web_client:open(Port, Path, Headers) of
            {ok, Socket} -> sderl_web_client:close(Socket), ok;
            {refused, Status} -> Status
        end
    end,
    Good = ["/ws?token=", ?TOKEN],
    Here = ["http://127.0.0.1:", integer_to_list(Port)],
    ?assertEqual(401, Ws("/ws", [])),
    ?assertEqual(401, Ws("/ws?token=wrong-token", [])),
    ?assertEqual(401, Ws("/ws?token=%", [])),
    ?assertEqual(401, Ws("/ws", [{"Cookie", "sderl_token=wrong; \"=;"}])),
    ?assertEqual(ok, Ws("/ws", [{"Authorization", ["Bearer ", ?TOKEN]}])),
    ?assertEqual(ok, Ws("/ws", [{"Cookie", ["a=b; sderl_token=", ?TOKEN]}])),
    %% The right token, but sent by a page of another origin, or to another host name.
    ?assertEqual(403, Ws(Good, [{"Origin", "http://evil.example"}])),
    ?assertEqual(403, Ws(Good, [{"Origin", "null"}])),
    ?assertEqual(421, Ws(Good, [{"Host", "evil.example"}])),
    ?assertEqual(ok, Ws(Good, [{"Origin", Here}])),
    %% An origin that is not UTF-8 is refused like any other, with the usual headers.
    Bytes = #{headers => [{"Origin", <<255>>}]},
    ?assertMatch({403, #{~"x-frame-options" := ~"DENY"}, _},
                 sderl_web_client:http(Port, "/api/v1/health", Bytes)),
    %% The limit of connections is the option's, although ranch counts it for each of its
    %% supervisors.
    #{max_connections := Connections} = Transport = ranch:get_transport_options(sderl_web_listener),
    ?assertEqual(520 + 200, Connections * maps:get(num_conns_sups, Transport,
                                                   maps:get(num_acceptors, Transport))),
    %% Only the first wrong token of a minute is logged. A minute begins, and does not end here.
    ok = sys:suspend(sderl_web_notes),
    true = ets:update_element(sderl_web_notes, wrong_token, {2, 0}),
    Counted = maps:get(wrong_token, sderl_web_notes:counts()),
    Again = fun() -> [401 = Ws("/ws?token=again", []) || _ <- lists:seq(1, 50)] end,
    ?assertEqual(1, logged(Again)),
    ?assertEqual(Counted + 50, maps:get(wrong_token, sderl_web_notes:counts())),
    ok = sys:resume(sderl_web_notes),
    %% A socket with a wrong token is refused without a call to the feed.
    ok = sderl_fleet:await(fun() -> sderl_web_feed:count() =:= 0 end, ?MS),
    ok = sys:suspend(sderl_web_feed),
    ?assertEqual(401, Ws("/ws?token=wrong-token", [])),
    ?assertMatch({200, _, _}, sderl_web_client:http(Port, "/api/v1/health")),
    {messages, Waiting} = process_info(whereis(sderl_web_feed), messages),
    ok = sys:resume(sderl_web_feed),
    ?assertEqual([], [Call || {'$gen_call', _, _} = Call <- Waiting]).

%% How many lines the server logs while Fun runs.
logged(Fun) ->
    Self = self(),
    ok = logger:add_handler(?MODULE, ?MODULE,
                            #{level => warning, config => #{to => Self}, filters => [
                                {ours,
                                 {fun logger_filters:domain/2, {stop, not_equal, [sderl, web]}}}
                            ],
                              filter_default => log}),
    _ = Fun(),
    ok = logger:remove_handler(?MODULE),
    lines(0).

lines(N) ->
    receive
        {?MODULE, logged} -> lines(N + 1)
    after 0 -> N
    end.

log(Line, #{config := #{to := Pid, whole := true}}) -> Pid ! {?MODULE, logged, Line};
log(_, #{config := #{to := Pid}}) -> Pid ! {?MODULE, logged}.

http(Config) ->
    Port = port(Config),
    Get = fun(Path) -> sderl_web_client:http(Port, Path) end,
    Auth = ["?token=", ?TOKEN],
    {200, Headers, _} = Get("/"),
    #{~"content-security-policy" := Policy, ~"x-content-type-options" := ~"nosniff",
      ~"x-frame-options" := ~"DENY"} = Headers,
    ?assertEqual(nomatch, binary:match(Policy, ~"unsafe")),
    ?assertMatch({200, _, _}, Get("/api/v1/health")),
    [?assertMatch({401, _, _}, Get(Path))
     || Path <- ["/api/v1/state", "/api/v1/export", "/api/v1/log", "/metrics", "/api/",
                 "/api/v1/x"]],
    {200, _, State} = Get(["/api/v1/state" | Auth]),
    #{~"now" := #{~"topology" := #{~"nodes" := _}}} = json:decode(State),
    {200, #{~"content-type" := <<"text/plain", _/binary>>}, Metrics} = Get(["/metrics" | Auth]),
    ?assertNotEqual(nomatch, binary:match(Metrics, ~"sderl_web_sockets 0")),
    {200, _, Csv} = Get(["/api/v1/export?format=csv&token=", ?TOKEN]),
    ?assertMatch(<<"t,span_ms,node", _/binary>>, unchunked(Csv)),
    {200, _, Lines} = Get(["/api/v1/export?what=links&token=", ?TOKEN]),
    #{~"from" := _, ~"to" := _} = json:decode(hd(binary:split(unchunked(Lines), ~"\n"))),
    [?assertMatch({400, _, _}, Get(["/api/v1/export", Query, "&token=", ?TOKEN]))
     || Query <- ["?format=xml", "?from=x", "?what=secrets", "?from=-1", "?by=x"]],
    {200, _, Log} = Get(["/api/v1/log?limit=5&level=error&text=%E2%82%AC&to=1&token=", ?TOKEN]),
    ?assertMatch(#{~"events" := [], ~"next" := null, ~"log" := #{~"problem" := null}},
                 json:decode(Log)),
    ?assertNotEqual(nomatch, binary:match(Metrics, ~"\nsderl_log_written 1")),
    [?assertMatch({400, _, _}, Get(["/api/v1/log", Query, "&token=", ?TOKEN]))
     || Query <- ["?limit=501", "?limit=x", "?level=loud", "?text=%ff", "?from=-1", "?what=1",
                  "?op=state", "?ref=1", ["?text=", lists:duplicate(300, $x)]]],
    %% While the log does not answer, the figures of the other servers are still there.
    ok = sys:suspend(sderl_mon_log),
    {200, _, Fewer} = Get(["/metrics" | Auth]),
    ok = sys:resume(sderl_mon_log),
    ?assertEqual({match, nomatch},
                 {re:run(Fewer, "sderl_web_sockets", [{capture, none}]),
                  re:run(Fewer, "sderl_log_", [{capture, none}])}),
    ?assertMatch({404, _, _}, Get(["/api/v1/nothing" | Auth])),
    %% Only the dashboard's own files are served.
    [
        ?assertMatch({404, _, _}, Get(Path))
     || Path <- ["/../sderl_web.app.src", "/%2e%2e/%2e%2e/rebar.config", "/..%2f..%2frebar.config",
                 "/assets/..%5c..%5cx", "/.sources", "/assets/", "/nothing.js", "/%00"]
    ],
    [?assertMatch({405, _, _}, sderl_web_client:http(Port, "/", #{method => Method}))
     || Method <- ["POST", "PUT", "DELETE", "OPTIONS"]],
    ?assertMatch({421, _, _},
                 sderl_web_client:http(Port, "/", #{headers => [{"Host", "evil.example"}]})),
    ?assertMatch({414, _, _}, Get(["/", binary:copy(~"a", 5000)])).

%% The answers that cowboy gives itself, without a call of our handlers, carry the headers too.
every_answer(Config) ->
    Port = port(Config),
    Here = ["Host: 127.0.0.1:", integer_to_list(Port), "\r\n"],
    Requests = [
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        ["GET / HTTP/1.1\r\nHost: ", 255, "\r\n\r\n"],
        ["GET / HTTP/1.1\r\n", Here, "Host: evil.example\r\n: x\r\n\r\n"],
        "GET / HTTP/9.9\r\n\r\n",
        ["GET / HTTP/1.1\r\n", Here, "Transfer-Encoding: gzip\r\n\r\n"],
        ["GET / HTTP/1.1\r\n", Here, "Content-Length: x\r\n\r\n"],
        ["GET /", binary:copy(~"a", 5000), " HTTP/1.1\r\n", Here, "\r\n"],
        ["GET / HTTP/1.1\r\n", Here, "X: ", binary:copy(~"x", 5000), "\r\n\r\n"],
        ["GET /ws?token=", ?TOKEN, " HTTP/1.1\r\n", Here,
         "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"],
        ["GET /ws?token=", ?TOKEN, " HTTP/1.1\r\n", Here, "\r\n"],
        ["DELETE / HTTP/1.1\r\n", Here, "\r\n"],
        ["GET /nothing HTTP/1.1\r\n", Here, "\r\n"],
        ["GET /metrics HTTP/1.1\r\n", Here, "Authorization: Bearer ", 255, "\r\n\r\n"],
        ["GET /metrics HTTP/1.1\r\n", Here, "Cookie: sderl_token=", 255, "\r\n\r\n"]
    ],
    lists:foreach(
        fun(Request) ->
            Answer = sderl_web_client:raw(Port, Request, ?MS),
            ?assertMatch({<<"HTTP/1.1 ", _/binary>>, _}, {Answer, Request}),
            ?assert(status(Answer) >= 400, Request),
            ?assert(is_guarded(Answer), Request)
        end,
        Requests
    ).

status(<<"HTTP/1.1 ", Status:3/binary, _/binary>>) -> binary_to_integer(Status).

is_guarded(Answer) ->
    [Head | _] = binary:split(string:lowercase(Answer), ~"\r\n\r\n"),
    lists:all(
        fun(Header) -> binary:match(Head, Header) =/= nomatch end,
        [~"\r\nx-frame-options: deny", ~"\r\nx-content-type-options: nosniff",
         ~"\r\ncontent-security-policy: default-src 'none'",
         ~"\r\nreferrer-policy: no-referrer"]
    ).

%% Requests and frames of any kind, 20,000 with SDERL_LONG=1: every answer carries the headers, no
%% process ends, and the log has a line for each kind of misuse and no more.
any_bytes(Config) ->
    Port = port(Config),
    Each = case os:getenv("SDERL_LONG") of "1" -> 10_000; _ -> 1_000 end,
    Seed = rand:export_seed_s(rand:seed(exsss, seed())),
    ct:log("seed ~p", [Seed]),
    Before = servers(),
    Lines = lines_of(fun() ->
        lists:foreach(fun(_) -> answered(Port, sderl_web_fuzz:request(Port, ?TOKEN)) end,
                      lists:seq(1, Each)),
        lists:foreach(fun(_) -> framed(Config, sderl_web_fuzz:frames(80)) end,
                      lists:seq(1, Each div 80))
    end),
    ?assertEqual(Before, servers()),
    Kinds = map_size(sderl_web_notes:counts()),
    %% A minute may end meanwhile; a second line says then how many there were.
    ?assert(length(Lines) =< 2 * Kinds * (1 + Each div 1_000), Lines),
    ?assertEqual([], [Line || #{level := error} = Line <- Lines]),
    alive(Config).

seed() ->
    case os:getenv("SDERL_SEED") of
        false -> erlang:timestamp();
        Given -> list_to_tuple([list_to_integer(Part) || Part <- string:lexemes(Given, ", ")])
    end.

%% Each process of the server gets messages that it does not know.
odd_messages(Config) ->
    Before = servers(),
    [ok = sderl_mon_odd:send(Server, sderl_mon_odd:messages(Server))
     || Server <- [sderl_web_notes, sderl_web_feed, sderl_web_server, sderl_web_tokens,
                   sderl_web_limits, sderl_web_idempotency]],
    ?assertEqual(Before, servers()),
    alive(Config).

%% The processes that must survive every message.
servers() ->
    Registered = [sderl_web_notes, sderl_web_feed, sderl_web_server, sderl_web_tokens,
                  sderl_web_limits, sderl_web_idempotency, sderl_mon_hub,
                  sderl_mon_master, sderl_mon_settings, sderl_mon_synthetic],
    [{Name, whereis(Name)} || Name <- Registered].

answered(Port, Request) ->
    case sderl_web_client:raw(Port, Request, 20) of
        <<"HTTP/1.1 ", _/binary>> = Answer ->
            ?assert(is_guarded(Answer) orelse status(Answer) < 200, Request);
        <<>> -> ok
    end.

%% The first malformed frame closes the socket.
framed(Config, Frames) ->
    Socket = open(Config),
    _ = sderl_web_client:bytes(Socket, Frames),
    _ = gen_tcp:shutdown(Socket, write),
    {_, _} = sderl_web_client:until_close(Socket, ?MS),
    sderl_web_client:close(Socket).

%% What all applications log while Fun runs.
lines_of(Fun) ->
    Self = self(),
    ok = logger:add_handler(?MODULE, ?MODULE,
                            #{level => warning, config => #{to => Self, whole => true}}),
    _ = Fun(),
    ok = logger:remove_handler(?MODULE),
    whole_lines().

whole_lines() ->
    receive
        {?MODULE, logged, Line} -> [Line | whole_lines()]
    after 0 -> []
    end.

%% The body of an answer that came in chunks.
unchunked(Body) ->
    case string:to_integer(<<"16#", Body/binary>>) of
        _ ->
            [Size, Rest] = binary:split(Body, ~"\r\n"),
            case binary_to_integer(Size, 16) of
                0 -> <<>>;
                N ->
                    <<Part:N/binary, "\r\n", More/binary>> = Rest,
                    <<Part/binary, (unchunked(More))/binary>>
            end
    end.

%% Malformed frames: the socket is closed with the right code, and the server goes on.
malformed(Config) ->
    Closed = fun(Send) ->
        Socket = open(Config),
        ok = Send(Socket),
        {_, How} = sderl_web_client:until_close(Socket, ?MS),
        sderl_web_client:close(Socket),
        How
    end,
    Text = fun(Bytes) -> fun(Socket) -> sderl_web_client:text(Socket, Bytes) end end,
    Frame = fun(Code, Bytes) -> fun(Socket) -> sderl_web_client:frame(Socket, Code, Bytes) end end,
    Raw = fun(Bytes) -> fun(Socket) -> sderl_web_client:bytes(Socket, Bytes) end end,
    Cases = [
        {1003, Text(~"no JSON")},
        {1003, Text(~"[1,2]")},
        {1003, Text(binary:copy(~"[", 60_000))},
        {1003, Text(<<"{\"ref\":", (binary:copy(~"9", 60_000))/binary, "}">>)},
        {1003, Frame(2, ~"binary")},
        {1007, Text(<<16#ff, 16#fe>>)},
        %% Reserved codes and bits, no mask, an incomplete control frame.
        {1002, Frame(3, ~"x")},
        {1002, Frame(15, ~"x")},
        {1002, Raw(<<16#f1, 16#81, 0:32, "x">>)},
        {1002, Raw(<<16#81, 1, "x">>)},
        {1002, Frame(0, ~"the rest of nothing")}
    ],
    Before = process_count(),
    [?assertEqual({I, {close, Code}}, {I, Closed(Send)})
     || {I, {Code, Send}} <- lists:enumerate(Cases)],
    %% Random bytes.
    Seed = rand:export_seed_s(rand:seed(exsss)),
    ct:log("seed ~p", [Seed]),
    lists:foreach(
        fun(_) ->
            Socket = open(Config),
            _ = sderl_web_client:bytes(Socket, rand:bytes(rand:uniform(300))),
            _ = gen_tcp:shutdown(Socket, write),
            _ = sderl_web_client:until_close(Socket, ?MS),
            sderl_web_client:close(Socket)
        end,
        lists:seq(1, 60)
    ),
    %% Connections that do not speak HTTP.
    lists:foreach(
        fun(Bytes) ->
            {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, port(Config), [binary, {active, false}]),
            _ = gen_tcp:send(Socket, Bytes),
            _ = gen_tcp:shutdown(Socket, write),
            _ = gen_tcp:recv(Socket, 0, ?MS),
            gen_tcp:close(Socket)
        end,
        [rand:bytes(rand:uniform(300)) || _ <- lists:seq(1, 30)] ++
        [
            "GET / HTTP/9.9\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            ["GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", binary:copy(~"x", 100_000), "\r\n\r\n"],
            ["GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
             [["X", integer_to_list(I), ": y\r\n"] || I <- lists:seq(1, 1000)], "\r\n"],
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999\r\n\r\nx"
        ]
    ),
    alive(Config),
    ok = sderl_fleet:await(fun() -> process_count() =< Before + 5 end, ?MS).

process_count() -> erlang:system_info(process_count).

alive(Config) ->
    Socket = open(Config),
    #{~"ok" := true} = sderl_web_client:ask(Socket, #{op => range}),
    sderl_web_client:close(Socket).

%% Ten megabytes in one frame, in many, and only announced by a frame's header.
large(Config) ->
    Ten = 10 * 1024 * 1024,
    Before = erlang:memory(total),
    Closed = fun(Send) ->
        Socket = open(Config),
        %% The server may close it while we still send.
        _ = Send(Socket),
        {_, How} = sderl_web_client:until_close(Socket, ?MS),
        sderl_web_client:close(Socket),
        ?assert(lists:member(How, [{close, 1009}, {error, closed}, {error, econnreset}])),
        How
    end,
    ?assertEqual({close, 1009}, Closed(fun(Socket) ->
        sderl_web_client:bytes(Socket, <<16#81, 16#ff, Ten:64, 0:32>>)
    end)),
    ?assertEqual({close, 1009}, Closed(fun(Socket) ->
        sderl_web_client:bytes(Socket, <<16#81, 16#ff, 16#7fffffffffffffff:64, 0:32>>)
    end)),
    _ = Closed(fun(Socket) -> sderl_web_client:text(Socket, binary:copy(~"x", Ten)) end),
    %% The limit holds for all parts of a message together.
    Part = binary:copy(~"x", 60_000),
    _ = Closed(fun(Socket) ->
        _ = sderl_web_client:bytes(Socket, <<16#01, 16#fe, 60_000:16, 0:32, Part/binary>>),
        [sderl_web_client:bytes(Socket, <<16#00, 16#fe, 60_000:16, 0:32, Part/binary>>)
         || _ <- lists:seq(1, 5)]
    end),
    alive(Config),
    ok = sderl_fleet:await(fun() ->
        _ = [garbage_collect(P) || P <- processes()],
        erlang:memory(total) < Before + 20_000_000
    end, ?MS).

%% Requests above the rate are refused, and a socket that goes on is closed.
rate(Config) ->
    Socket = open(Config),
    Ask = fun(Ref) ->
        ok = sderl_web_client:text(Socket, json:encode(#{ref => Ref, op => unwatch, node => ~"x"}))
    end,
    %% So many that they exceed the rate also where they take seconds.
    _ = [Ask(Ref) || Ref <- lists:seq(1, 1000)],
    #{~"error" := #{~"code" := ~"unavailable"}} = sderl_web_client:until(
        Socket, fun(Message) -> maps:get(~"ok", Message, none) =:= false end, ?MS
    ),
    #{~"ref" := 1000} = sderl_web_client:until(
        Socket, fun(Message) -> maps:get(~"ref", Message, none) =:= 1000 end, ?MS
    ),
    %% The socket may be closed while it still sends; then the last answers to it are lost.
    _ = [sderl_web_client:text(Socket, json:encode(#{ref => 7, op => pause}))
         || _ <- lists:seq(1, 3000)],
    {_, How} = sderl_web_client:until_close(Socket, ?MS),
    ?assert(lists:member(How, [{close, 1008}, {error, closed}, {error, econnreset}])),
    sderl_web_client:close(Socket),
    alive(Config).

%% 500 browsers get the same frames; sockets above the limit are refused.
many_sockets(Config) ->
    Target = #{ip => {127, 0, 0, 1}, port => port(Config), token => ?TOKEN},
    Before = erlang:memory(total),
    Sockets = [begin {ok, Pid} = sderl_bench_dashboard_socket:start(Target), Pid end
               || _ <- lists:seq(1, 500)],
    Frames = fun() ->
        lists:min([maps:get(frames, sderl_bench_dashboard_socket:counts(Pid)) || Pid <- Sockets])
    end,
    ok = sderl_fleet:await(fun() -> Frames() >= 2 end, 60_000),
    %% On a busy machine frames wait in sockets at first.
    ok = sderl_fleet:await(fun() ->
        Each = (erlang:memory(total) - Before) div 500,
        Each < 400_000 orelse Each
    end, 60_000),
    More = [sderl_web_client:open(port(Config), ?TOKEN) || _ <- lists:seq(1, 25)],
    ?assertEqual(5, length([1 || Answer <- More, not is_taken(Answer)])),
    _ = [sderl_web_client:close(Socket) || {ok, Socket} <- More],
    _ = [sderl_bench_dashboard_socket:stop(Pid) || Pid <- Sockets],
    %% The server sees a little later that they have closed.
    ok = sderl_fleet:await(fun() -> sderl_web_feed:count() < 520 end, ?MS),
    alive(Config).

%% A socket counts when it has joined the feed, just after the upgrade. So of two that come at once
%% for the last place, one is refused at the upgrade, or closed after it.
is_taken({refused, 503}) -> false;
is_taken({ok, Socket}) ->
    case sderl_web_client:until(Socket, of_type(~"hello"), ?MS) of
        #{} -> true;
        {close, 1013} -> false
    end.

%% A client that does not read misses frames, of which the server keeps only a few, and learns how
%% many it missed when it reads again.
slow_reader(Config) ->
    Socket = open(Config),
    #{missed := Missed} = sderl_web_feed:info(),
    %% Answers fill the buffers of TCP faster than frames do.
    #{~"result" := #{~"range" := [_, To]}} = sderl_web_client:ask(Socket, #{op => range}),
    _ = [sderl_web_client:text(Socket, json:encode(#{ref => I, op => at, t => To}))
         || I <- lists:seq(1, 90)],
    ok = sderl_fleet:await(fun() -> maps:get(missed, sderl_web_feed:info()) > Missed + 3 end,
                           60_000),
    [Pid] = [Pid || Pid <- processes(), is_socket(Pid)],
    {message_queue_len, Waiting} = process_info(Pid, message_queue_len),
    ?assert(Waiting =< 30),
    %% The others are not held up.
    alive(Config),
    #{~"frames" := N} = sderl_web_client:until(Socket, of_type(~"missed"), ?MS),
    ?assert(N > 0),
    #{~"nodes" := [_ | _]} = sderl_web_client:until(Socket, of_type(~"frame"), ?MS),
    sderl_web_client:close(Socket).

is_socket(Pid) ->
    case process_info(Pid, monitors) of
        {monitors, Monitors} -> lists:member({process, {sderl_web_feed, node()}}, Monitors);
        undefined -> false
    end.

%% The listener stays when the feed ends: sockets are closed with the code for "try again", and
%% browsers can connect again.
feed_ends(Config) ->
    Socket = open(Config),
    _ = sderl_web_client:until(Socket, of_type(~"hello"), ?MS),
    Feed = whereis(sderl_web_feed),
    exit(Feed, kill),
    ?assertMatch({_, {close, 1012}}, sderl_web_client:until_close(Socket, ?MS)),
    sderl_web_client:close(Socket),
    ok = sderl_fleet:await(fun() ->
        is_pid(whereis(sderl_web_feed)) andalso maps:get(hub, sderl_web_feed:info())
    end, ?MS),
    %% Sockets stay open also when the hub ends.
    Again = open(Config),
    _ = sderl_web_client:until(Again, of_type(~"frame"), ?MS),
    alive(Config),
    sderl_web_client:close(Again).

%% An error in the settings is explained in words, and no part of the token is in what a crash would
%% print.
settings(_) ->
    ok = application:stop(sderl_web),
    ok = application:set_env(sderl_web, port, nonsense),
    ?assertMatch({error, {sderl_web, {{bad_config, [port], nonsense, _}, _}}},
                 application:ensure_all_started(sderl_web)),
    ok = application:set_env(sderl_web, port, 0),
    ok = sderl_mon_synthetic:stop(),
    {ok, _} = application:ensure_all_started(sderl_web),
    Shown = io_lib:format("~p ~p", [sys:get_status(sderl_web_server),
                                    supervisor:get_childspec(sderl_web_sup, server)]),
    ?assertEqual(nomatch, string:find(Shown, ?TOKEN)).

%% A dashboard of a recording: a browser gets nothing of the running cluster before it asks for it.
replayed(Config) ->
    {ok, #{file := File}} = sderl_mon_record:start(
        filename:join(proplists:get_value(priv_dir, Config), "replayed"), #{}
    ),
    ok = sderl_fleet:await(fun() -> {ok, #{frames := N}} = sderl_mon_record:status(), N >= 3 end,
                           ?MS),
    ok = sderl_mon_record:stop(),
    ok = again([{replay, unicode:characters_to_list(File)}]),
    {ok, #{port := Port}} = sderl_web:address(),
    {ok, Socket} = sderl_web_client:open(Port, ?TOKEN),
    {text, #{~"type" := ~"session", ~"role" := ~"admin"}} = sderl_web_client:next(Socket, ?MS),
    {text, #{~"type" := ~"hello", ~"mode" := ~"recording", ~"range" := [From, _]}} =
        sderl_web_client:next(Socket, ?MS),
    #{~"result" := #{~"frame" := #{~"t" := T, ~"span_ms" := Span}}} =
        sderl_web_client:ask(Socket, #{op => at, t => From}),
    ?assertEqual(From, T - Span),
    #{~"ok" := true} = sderl_web_client:ask(Socket, #{op => live}),
    #{~"mode" := ~"synthetic"} = sderl_web_client:until(Socket, of_type(~"hello"), ?MS),
    sderl_web_client:close(Socket),
    %% The file is closed also where the process that opens it ends before the socket has it, and
    %% where the recording's last frame cannot be read.
    Opened = self(),
    _ = spawn(fun() -> Opened ! sderl_web_ask:replay(File) end),
    receive
        {opened, _, Replay, [_ | _]} ->
            ?assert(sderl_web_ask:own(Replay)),
            ok = sderl_web_ask:close(Replay)
    end,
    _ = spawn(fun() -> Opened ! sderl_web_ask:replay(File) end),
    receive
        {opened, _, Orphan, [_ | _]} ->
            ok = sderl_fleet:await(fun() -> not is_process_alive(Orphan) end, ?MS),
            ?assertNot(sderl_web_ask:own(Orphan))
    end,
    Broken = filename:join(proplists:get_value(priv_dir, Config), "broken.sdmon"),
    ok = file:write_file(Broken, [sderl_mon_segment:header(),
                                  sderl_mon_segment:record(frame, 0, 1000, 1000, ~"no frame")]),
    {error, unavailable, Why} = sderl_web_ask:replay(Broken),
    ?assertNotEqual(nomatch, string:find(Why, "last frame")),
    ok = file:delete(Broken),
    again([{replay, none}]).

again(Env) ->
    ok = application:stop(sderl_web),
    ok = sderl_mon_synthetic:stop(),
    ok = application:set_env([{sderl_web, Env}]),
    {ok, _} = application:ensure_all_started(sderl_web),
    ok.

%% Over TLS, with a certificate that the client checks: pages, figures and frames, and refused
%% connections.
tls(Config) ->
    {Files, Client} = sderl_web_certificates:make(proplists:get_value(priv_dir, Config)),
    ok = again([{tls, Files}]),
    {ok, #{url := <<"https://127.0.0.1:", _/binary>>, port := Port}} = sderl_web:address(),
    {ok, Socket} = sderl_web_client:open_tls(Port, ?TOKEN, Client),
    #{~"mode" := ~"synthetic"} = sderl_web_client:until(Socket, of_type(~"hello"), ?MS),
    #{~"nodes" := [_ | _]} = wait_topology(Socket),
    %% The first frame may be older than the first node.
    _ = sderl_web_client:until(Socket, fun(#{~"type" := ~"frame", ~"nodes" := Nodes}) ->
                                               Nodes =/= [];
                                          (_) -> false
                                       end, ?MS),
    #{~"ok" := true} = sderl_web_client:ask(Socket, #{op => range}),
    sderl_web_client:close(Socket),
    ?assertEqual({refused, 401}, sderl_web_client:open_tls(Port, ~"another-token", Client)),
    {ok, Http} = ssl:connect({127, 0, 0, 1}, Port, [binary, {active, false} | Client], ?MS),
    ok = ssl:send(Http, ["GET /api/v1/health HTTP/1.1\r\nConnection: close\r\nHost: 127.0.0.1:",
                         integer_to_list(Port), "\r\n\r\n"]),
    {ok, <<"HTTP/1.1 200 OK", _/binary>> = Answer} = ssl:recv(Http, 0, ?MS),
    ?assert(is_guarded(Answer)),
    ok = ssl:close(Http),
    %% Connections with an old version, another authority or without TLS fail, and are not logged.
    {_, Stranger} = sderl_web_certificates:make(proplists:get_value(priv_dir, Config)),
    Lines = lines_of(fun() ->
        {error, _} = ssl:connect({127, 0, 0, 1}, Port,
                                 [{versions, ['tlsv1.1']}, {log_level, none} | Client], ?MS),
        {error, {tls_alert, {unknown_ca, _}}} =
            sderl_web_client:open_tls(Port, ?TOKEN, [{log_level, none} | Stranger]),
        [_ = sderl_web_client:raw(Port, Bytes, ?MS)
         || Bytes <- ["GET / HTTP/1.1\r\n\r\n", rand:bytes(300)]]
    end),
    ?assertEqual([], Lines),
    ok = again([{tls, off}]),
    sderl_web_client:close(open([{port, new_port()}])).

new_port() ->
    {ok, #{port := Port}} = sderl_web:address(),
    Port.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-behaviour(supervisor).

-export([init/1]).

-define(E, sderl_im_experiment).

%% ---------------------------------------------------------------- who is where

conf(Mode, Servers, Routers) ->
    Nodes = fun(Kind, Count) ->
        [list_to_atom(Kind ++ integer_to_list(I)) || I <- lists:seq(1, Count)]
    end,
    sderl_im_layout:new(#{mode => Mode, servers => Nodes("s", Servers),
                          routers => Nodes("r", Routers), clients => Nodes("c", 2)}).

layout_property_test_() ->
    sderl_prop:eunit("each database has one main and one replica, on another server of the router "
                     "where there is one", 200, fun prop_layout/0).

prop_layout() ->
    ?FORALL({Routers, More}, {range(1, 5), range(0, 12)},
            begin
                Servers = Routers + More,
                Conf = conf(rsd, Servers, Routers),
                On = [{Role, K}
                      || K <- sderl_im_layout:servers(Conf),
                         Role <- sderl_im_layout:databases({Conf, K})],
                Homes = [sderl_im_layout:home(Conf, K) || K <- sderl_im_layout:servers(Conf)],
                Sizes = [length([H || H <- Homes, H =:= I]) || I <- lists:seq(1, Routers)],
                lists:all(fun(B) -> B end, [
                    length(On) =:= 4 * Servers,
                    length(lists:usort([Role || {Role, _} <- On])) =:= 4 * Servers,
                    lists:sort(Homes) =:= Homes,
                    lists:max(Sizes) - lists:min(Sizes) =< 1,
                    lists:all(
                        fun({{database, _, Of, Copy}, K}) ->
                            Alone = lists:nth(sderl_im_layout:home(Conf, K), Sizes) =:= 1,
                            sderl_im_layout:home(Conf, Of) =:= sderl_im_layout:home(Conf, K)
                                andalso (K =:= Of) =:= (Copy =:= main orelse Alone)
                        end,
                        On
                    )
                ])
            end).

groups_test() ->
    ?assertEqual(
        [
            {routers_group, [r1, r2]},
            {{server_group, 1}, [r1, s1, s2]},
            {{server_group, 2}, [r2, s3]},
            {{client_group, 1}, [c1, r1, r2]},
            {{client_group, 2}, [c2, r1, r2]}
        ],
        sderl_im_layout:namespaces(conf(rsd, 3, 2),
                                   #{servers => 3, routers => 2, client_nodes => 2})
    ),
    ?assertEqual([{all, [r1, r2, s1, s2, s3, c1, c2]}],
                 sderl_im_layout:namespaces(conf(rd, 3, 2), #{})),
    ?assertEqual({{server_group, 2}, {database, chats, 3, main}},
                 sderl_im_layout:name(conf(rsd, 3, 2), {database, chats, 3, main})),
    ?assertEqual({global, {sderl_im, {server, 3}}},
                 sderl_im_layout:name(conf(rd, 3, 2), {server, 3})).

%% The published function sends 12,004 of 20,000 such names to one of three servers.
even_test() ->
    [
        begin
            Conf = conf(rd, Servers, 1),
            Of = [sderl_im_layout:server(Conf, {client, I}) || I <- lists:seq(1, 20_000)],
            Counts = [length([K || K <- Of, K =:= Server]) || Server <- lists:seq(1, Servers)],
            ?assert(lists:max(Counts) < 1.1 * 20_000 / Servers),
            ?assert(lists:min(Counts) > 0.9 * 20_000 / Servers)
        end
     || Servers <- [2, 3, 4, 6, 12, 16]
    ].

backoff_test() ->
    Conf = (conf(rd, 1, 1))#{retry_ms => 10, tries => 6},
    ?assertEqual([10, 20, 40, 80, 80, 80, over],
                 [sderl_im_net:backoff(Conf, Try) || Try <- lists:seq(1, 7)]).

%% ---------------------------------------------------------------- a database and its two copies

init(Conf) ->
    Roles = [{database, Kind, 1, Copy}
             || Kind <- maps:get(kinds, Conf, [chats]), Copy <- [main, replica]],
    {ok, {#{intensity => 1000, period => 1},
          [#{id => R, start => {sderl_im_db, start_link, [Conf, R]}} || R <- Roles]}}.

db_property_test_() ->
    {timeout, 120, sderl_prop:eunit("what was answered is in both copies, as long as one is left; "
                                    "what died is in neither", 40, fun prop_db/0)}.

prop_db() ->
    ?FORALL(Steps, list(oneof([{add, range(1, 5)}, {remove, range(1, 5)}, {die, range(1, 5)},
                               {kill, oneof([main, replica])}])),
            with_databases(fun(Conf) ->
                _ = [ready(Conf, Copy) || Copy <- [main, replica]],
                Expected = lists:foldl(fun(Step, Rows) -> step(Step, Conf, Rows) end, #{}, Steps),
                [rows(Conf, main), rows(Conf, replica)] =:= [Expected, Expected]
            end)).

%% Writes that a dead main copy had sent, and that were not acknowledged, arrive late.
late_write_test_() -> {spawn, fun late_write/0}.

late_write() ->
    with_databases(fun(Conf) ->
        Replica = ready(Conf, replica),
        Session = spawn(fun() -> receive stop -> ok end end),
        Replica ! {replicate, self(), make_ref(), {put, {1, Session, a, self(), b, self()}}},
        ?assertEqual({ok, none},
                     sderl_im_net:call(Conf, {database, chats, 1, replica}, {find, 1}, 60_000)),
        receive {replicated, _} -> error(confirmed) after 0 -> ok end,
        Session ! stop
    end).

%% A write is answered when the replica has it, or is dead.
answered_test_() -> {spawn, fun answered/0}.

answered() ->
    with_databases(fun(Conf) ->
        Session = spawn(fun() -> receive stop -> ok end end),
        [Main, Replica] = [ready(Conf, Copy) || Copy <- [main, replica]],
        ok = sys:suspend(Replica),
        Row = {1, Session, a, self(), b, self()},
        Request = gen_server:send_request(Main, {add, Row}),
        %% An answer to the write would be here before this one.
        ?assertEqual({ok, Row}, gen_server:call(Main, {find, 1})),
        ?assertEqual(timeout, gen_server:wait_response(Request, 0)),
        exit(Replica, kill),
        ?assertEqual({reply, ok}, gen_server:wait_response(Request, 60_000)),
        ?assertEqual([#{1 => Session}, #{1 => Session}],
                     [rows(Conf, Copy) || Copy <- [main, replica]]),
        Session ! stop
    end).

%% A client without an answer asks again; a copy that is killed meanwhile loses no row, and a
%% process that died meanwhile is noticed.
again_test_() -> {spawn, fun again/0}.

again() ->
    with_databases(fun(Conf) ->
        Session = spawn(fun() -> receive stop -> ok end end),
        Row = {1, Session, a, self(), b, self()},
        Main = ready(Conf, main),
        _ = ready(Conf, replica),
        ?assertEqual([{ok, ok}, {ok, ok}], [sderl_im_chats:add(Conf, 1, Row) || _ <- [1, 2]]),
        %% The main copy is suspended, so it does nothing about the death of the session before it
        %% is killed: as if both died at once.
        ok = sys:suspend(Main),
        exit(Session, kill),
        exit(Main, kill),
        [receive {session_lost, 1, Session} -> ok after 60_000 -> error(not_told) end
         || _ <- [a, b]],
        ?assertEqual([#{}, #{}], [rows(Conf, Copy) || Copy <- [main, replica]])
    end).

%% -------------------------------------- a session and a monitor, with this process for the clients

%% The invited client does not answer: the one that asked is told after all tries, and nothing is
%% left.
never_accepted_test_() ->
    {spawn, fun never_accepted/0}.

never_accepted() ->
    with_databases(#{kinds => [clients, chats], servers => [node()], tries => 1}, fun(Conf) ->
        [{ok, ok} = sderl_im_clients:add(Conf, {Client, self(), self()}) || Client <- [a, b]],
        Session = {a, b, 1},
        {ok, Pid} = sderl_im_session:start_link(Conf, {1, Session, self(), ref}),
        Monitor = monitor(process, Pid),
        ?assertEqual({invite, Session, Pid, a}, next()),
        ?assertMatch({ok, {ok, {Session, Pid, _, _, _, _}}},
                     sderl_im_net:call(Conf, {database, chats, 1, main}, {find, Session}, 60_000)),
        ?assertEqual({reply, ref, {error, unavailable}}, next()),
        ?assertEqual({chat_over, Session}, next()),
        ?assertEqual([{closed, Session}, {closed, Session}], [next(), next()]),
        ?assertEqual({'DOWN', Monitor, process, Pid, normal}, next()),
        ?assertEqual({ok, none},
                     sderl_im_net:call(Conf, {database, chats, 1, main}, {find, Session}, 60_000))
    end).

%% When it is told that its client's node is gone a monitor asks the client: one that answers stays
%% logged in; one that does not is logged out, and its sessions are told.
gone_test_() ->
    {spawn, fun gone/0}.

gone() ->
    with_databases(#{kinds => [clients], servers => [node()], retry_ms => 50}, fun(Conf) ->
        {ok, Pid} = sderl_im_monitor:start_link(Conf, {login, a, self(), ref}),
        Monitor = monitor(process, Pid),
        ?assertEqual({reply, ref, {ok, Pid}}, next()),
        Pid ! {gone, elsewhere@nowhere},
        Pid ! {opened, s, self()},
        Pid ! {gone, node()},
        ?assertEqual({there, Pid}, next()),
        Pid ! {chats, #{}},
        Find = {find, a},
        Pid ! {gone, node()},
        %% The earlier answer no longer counts.
        ?assertEqual([{there, Pid}, {there, Pid}, {there, Pid}], [next(), next(), next()]),
        ?assertEqual(over, next()),
        ?assertEqual({'DOWN', Monitor, process, Pid, normal}, next()),
        ?assertEqual({ok, none},
                     sderl_im_net:call(Conf, {database, clients, 1, main}, Find, 60_000))
    end).

next() -> receive Message -> Message after 60_000 -> error(nothing_came) end.

with_databases(Fun) -> with_databases(#{}, Fun).

with_databases(Options, Fun) ->
    Before = quiet(),
    Conf = sderl_im_layout:new(maps:merge(
        #{mode => rd, servers => [node(), node()], routers => [node()], clients => []}, Options
    )),
    {ok, Sup} = supervisor:start_link(?MODULE, Conf),
    try
        Fun(Conf)
    after
        true = unlink(Sup),
        gen_server:stop(Sup),
        logger:set_primary_config(Before)
    end.

quiet() ->
    Before = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    Before.

step({add, Key}, Conf, Rows) when not is_map_key(Key, Rows) ->
    Pid = spawn(fun() -> receive stop -> ok end end),
    ?assertEqual({ok, ok}, sderl_im_chats:add(Conf, 1, {Key, Pid, a, self(), b, self()})),
    Rows#{Key => Pid};
step({add, Key}, Conf, Rows) ->
    ?assertMatch({ok, {exists, {Key, _, _, _, _, _}}},
                 sderl_im_chats:add(Conf, 1, {Key, self(), a, self(), b, self()})),
    Rows;
step({remove, Key}, Conf, Rows) ->
    %% Only the session itself removes its row.
    ?assertEqual({ok, none}, sderl_im_chats:remove(Conf, 1, Key)),
    case Rows of
        #{Key := Pid} ->
            {ok, {ok, {Key, Pid, _, _, _, _}}} =
                sderl_im_net:ask(Conf, {database, chats, 1, main}, {remove, Key, Pid}, 5000),
            Pid ! stop,
            maps:remove(Key, Rows);
        #{} ->
            Rows
    end;
step({die, Key}, _, Rows) ->
    case Rows of
        #{Key := Pid} ->
            exit(Pid, kill),
            %% Both clients are told.
            [receive {session_lost, Key, Pid} -> ok after 60_000 -> error(not_told) end
             || _ <- [a, b]],
            maps:remove(Key, Rows);
        #{} ->
            Rows
    end;
step({kill, Copy}, Conf, Rows) ->
    Old = ready(Conf, Copy),
    Other = ready(Conf, case Copy of main -> replica; replica -> main end),
    exit(Old, kill),
    ?assertNotEqual(Other, Old),
    Rows.

%% Waits until the copy has its table.
ready(Conf, Copy) ->
    Role = {database, chats, 1, Copy},
    ok = sderl_fleet:await(fun() ->
        proc_lib:get_label(sderl_im_net:whereis(Conf, Role)) =:= {sderl_im, ready, Role}
    end, 60_000),
    sderl_im_net:whereis(Conf, Role).

rows(Conf, Copy) ->
    _ = ready(Conf, Copy),
    #{
        Key => Pid
     || Key <- lists:seq(1, 5), {ok, {ok, {_, Pid, _, _, _, _}}} <- [
         sderl_im_net:ask(Conf, {database, chats, 1, Copy}, {find, Key}, 5000)
     ]
    }.

%% ---------------------------------------------------------------- counting

tally_test() ->
    Tally = sderl_im_tally:new(2, 1000),
    Now = erlang:monotonic_time(microsecond),
    ok = sderl_im_tally:sent(Tally, Now),
    ok = sderl_im_tally:window(Tally, Now, Now + 2_000_000),
    Times = [{Now - 1, Now + 1}, {Now, Now + 100}, {Now + 10, Now + 4010},
             {Now + 1_500_000, Now + 2_000_000}],
    [begin ok = sderl_im_tally:sent(Tally, Sent), ok = sderl_im_tally:delivered(Tally, Sent, At) end
     || {Sent, At} <- Times],
    ok = sderl_im_tally:received(Tally),
    Counts = sderl_im_tally:read(Tally),
    ?assertMatch(
        #{sent_all := 5, delivered_all := 4, sent := 3, delivered := 3, below := 1, in_time := 3,
          received := 1, twice := 0, again := 0, timeline := [3, 0]},
        Counts
    ),
    #{latency := Latency} = Both = sderl_im_tally:merge([Counts, Counts]),
    ?assertMatch(#{sent_all := 10, timeline := [6, 0]}, Both),
    ?assertEqual(6, sderl_bench_histogram:total(Latency)).

%% Conversations whose session was killed are told apart from others. A message without an
%% explanation counts as lost.
metrics_test() ->
    Pid = self(),
    Other = spawn(fun() -> ok end),
    Outcome = outcome([
        #{session => {a, b, 1}, pid => Pid, how => lost, unacknowledged => 2},
        #{session => {a, b, 2}, pid => Other, how => lost, unacknowledged => 1}
    ]),
    Kill = #{class => session, key => {session, {a, b, 1}}, pid => Pid, dry => false,
             awaited => false, back_us => undefined, system_us => 1_500_000},
    Back = Kill#{class := clients, key := k, pid := Other, awaited := true, back_us := 2500},
    Metrics = sderl_im:metrics(Outcome#{kills := [Kill, Back]}, #{seconds => 2}),
    ?assertMatch(
        #{
            lost_conversations := 2, broken_conversations_not_killed := 1, killed_messages := 2,
            lost_messages := 1, kills := 2, kills_by_class := #{session := 1, clients := 1},
            not_back := 0, recovery_ms := #{max := 2.5}, names_left := 0,
            timeline := [#{t_s := 1, delivered := 3, kills := 2}, #{t_s := 2}]
        },
        Metrics
    ),
    {error, Text} = ?E:verdict([#{params => #{mode => rd}, metrics => Metrics}]),
    ?assertEqual("rd: 1 messages were lost", lists:flatten(Text)),
    Fine = sderl_im:metrics(outcome([]), #{seconds => 2}),
    ?assertMatch(#{lost_messages := 0, delivered_per_min := 90.0, qos_pct := +0.0,
                   recovery_ms := #{p50 := undefined}}, Fine),
    ?assertEqual(ok, ?E:verdict([#{params => #{mode => rd}, metrics => Fine}])),
    ?assertMatch({error, _}, ?E:verdict([#{params => #{mode => rd},
                                           metrics => Fine#{names_left := undefined}}])),
    Line =
        sderl_bench_output:line(sderl_bench_output:result(im, #{mode => rd}, Metrics, <<"now">>)),
    ?assertMatch(#{<<"metrics">> := #{<<"broken">> := [#{<<"how">> := <<"lost">>}]}},
                 json:decode(Line)).

%% An order to kill without an answer may have killed one session, if sessions were to be killed.
unanswered_test() ->
    [
        ?assertMatch(#{broken_conversations_not_killed := Broken, killed_messages := Messages,
                       lost_conversations := 3},
                     sderl_im:metrics((outcome([
                         #{session => {a, b, N}, pid => self(), how => How, unacknowledged => 1}
                      || {N, How} <- [{1, over}, {2, lost}, {3, unfinished}]
                     ]))#{kills_skipped := #{unanswered => Count}},
                                      #{seconds => 2, chaos => Chaos}))
     || {Count, Chaos, Broken, Messages} <- [
            {0, #{every_ms => 1}, 3, 0},
            {1, #{every_ms => 1}, 2, 1},
            {9, #{every_ms => 1, classes => all}, 1, 2},
            {9, #{every_ms => 1, classes => databases}, 3, 0},
            {9, none, 3, 0}
        ]
    ].

%% With an error among the answers the sum is unknown.
left_test() ->
    ?assertEqual(3, sderl_im_cluster:sum([{ok, 1}, {ok, 2}])),
    ?assertEqual(undefined, sderl_im_cluster:sum([{ok, 0}, {error, timeout}])),
    [
        begin
            Metrics = sderl_im:metrics((outcome([]))#{Key := undefined}, #{seconds => 2}),
            {error, Text} = ?E:verdict([#{params => #{mode => rsd}, metrics => Metrics}]),
            ?assertMatch({match, _}, re:run(Text, "is not known: a node did not answer"))
        end
     || Key <- [clients_left, rows_left, processes_left, names_left]
    ].

outcome(Ended) ->
    Counts = #{
        sent_all => 3 + lists:sum([N || #{unacknowledged := N} <- Ended]), delivered_all => 3,
        sent => 3, delivered => 3, below => 0, in_time => 3, received => 3, twice => 0, again => 0,
        latency => sderl_bench_histogram:new(), timeline => [3, 0]
    },
    #{
        results => [#{counts => Counts, conversations => 3, finished => 1, cut => 0, ended => Ended,
                      refused => #{}}],
        usage => sderl_bench_meter:usage([], []),
        kills => [],
        began_us => 1_000_000,
        missing => [],
        clients_left => 0,
        rows_left => 0,
        processes_left => 0,
        kills_skipped => #{},
        kill_problems => [],
        names_left => 0
    }.

%% ---------------------------------------------------------------- the command line

options(Args) -> sderl_bench_options:checked("im", ?E, Args).

options_test() ->
    {ok, Options} = options(["--servers", "2,3", "--speed", "12.5", "--chaos-every-ms", "500",
                             "--chaos-classes", "databases", "--compare"]),
    ?assertMatch(
        [
            #{mode := rd, servers := 2, nodes := 6, chaos := none, speed := 12.5},
            #{mode := rsd, servers := 2, chaos := none},
            #{mode := rd, chaos := #{every_ms := 500, classes := databases}},
            #{mode := rsd}
            | _
        ],
        ?E:points(Options)
    ),
    ?assertEqual(8, length(?E:points(Options))).

wrong_options_test_() ->
    [
        ?_assertMatch({Args, {match, _}}, {Args, re:run(element(2, options(Args)), Words)})
     || {Args, Words} <- [
         {["--mode", "sd"], "there is no mode \"sd\"; there are rd, rsd"},
         {["--servers", "0"], "--servers: \"0\" is no whole number from 1"},
         {["--servers", "x"], "--servers: \"x\""},
         {["--servers", "1"], "--routers 2: that many need as many servers, and --servers has 1"},
         {["--clients", "3"], "--clients 3: each of 2 client nodes needs two"},
         {["--speed", "0"], "--speed: \"0\" is no number"},
         {["--speed", "1,2"], "--speed takes one number"},
         {["--chaos-every-ms", "-1"], "--chaos-every-ms: \"-1\""},
         {["--chaos-every-ms", "6000", "--seconds", "5"], "the first kill would be after the end"},
         {["--chaos-classes", "nothing"],
          "there is no choice \"nothing\"; there are all, databases"},
         {["--chaos-classes", "all,databases"], "--chaos-classes takes one choice"},
         {["--seconds", "0"], "--seconds must be at least 1"},
         {["--warmup", "-1"], "--warmup must be at least 0"},
         {["--repeat", "0"], "--repeat must be at least 1"},
         {["--timeout-ms", "9999999"], "--timeout-ms must be at most"},
         {["--servers", "9000"], "memory"}
     ]
    ].

alone_test() ->
    ?assertEqual("", lists:flatten(?E:alone(#{servers => [4, 9], routers => 2}))),
    ?assertEqual(
        "With 3 servers and 2 routers 1 of the servers is the only one of a router: main copies "
        "and replicas are on the same node.\n"
        "With 2 servers and 2 routers 2 of the servers are each the only one of a router: main "
        "copies and replicas are on the same node.\n",
        lists:flatten(?E:alone(#{servers => [3, 2], routers => 2}))
    ),
    %% The number is that of the layout.
    [
        begin
            Conf = conf(rd, Servers, Routers),
            ?assertEqual(length([K
                                 || K <- sderl_im_layout:servers(Conf),
                                    sderl_im_layout:next(Conf, K) =:= K]),
                         sderl_im:alone(#{servers => Servers, routers => Routers}))
        end
     || Routers <- lists:seq(1, 5), Servers <- lists:seq(Routers, 12)
    ].

ramp_test() ->
    %% 5 generators on the larger node, 100 ms apart, twice as fast.
    ?assertEqual(0.25, sderl_im:ramp_s(#{clients => 19, client_nodes => 2, speed => 2})).

%% Impossible parameters are an error before any node is started.
impossible_test() ->
    ?assertEqual({error, {im, {too_few_servers, 1, 2}}},
                 sderl_im:run(#{mode => rd, servers => 1, routers => 2}, "")),
    ?assertEqual({error, {im, {too_few_clients, 3, 2}}},
                 sderl_im:run(#{mode => rd, clients => 3, client_nodes => 2}, "")).

words_test() ->
    [
        ?assertMatch({match, _}, re:run(sderl_papers_reason:text({im, Reason}), Words))
     || {Reason, Words} <- [
         {{too_few_servers, 1, 2}, "2 routers need at least as many servers"},
         {{too_few_clients, 3, 2}, "2 client nodes need at least two clients each"},
         {{names_missing, [{server, 1}]}, "\\[\\{server,1\\}\\]"},
         {{no_clients, n@h, {not_logged_in, 3, {client, 1}, {error, timeout}}},
          "3 clients could not log in on n@h"},
         {{no_result, n@h, down}, "node n@h failed \\(no_result\\): down"}
     ]
    ].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(G, sderl_orbit_generators).
-define(C, sderl_orbit_credit).
-define(T, sderl_orbit_table).
-define(L, sderl_orbit_layout).

%% Generators

names_test() ->
    Names = ?G:names(),
    ?assertEqual(31, length(lists:usort(Names))),
    ?assertEqual({"g1", "g12345"}, {hd(Names), lists:last(Names)}),
    [?assertEqual({ok, Gs}, ?G:parse(?G:name(Gs))) || Name <- Names, {ok, Gs} <- [?G:parse(Name)]],
    ?assertEqual([{ok, [1, 3]}], lists:usort([?G:parse(N) || N <- [g13, "g13", <<"g13">>]])),
    [?assertEqual(error, ?G:parse(Bad))
     || Bad <- ["", "g", "g0", "g6", "g21", "g11", "h1", "g1x", 12, undefined]].

%% By hand: fib(3) = 3, fib(8) = 34, fib(13) = 377, fib(11) = 144, fib(10) = 89.
images_test() ->
    ?assertEqual([6, 34 + 18 + 15 - 1, 377 - 27 + 24, 143, 90],
                 ?G:images([1, 2, 3, 4, 5], 3, 1000)),
    %% |377 - 19^3 + 8 * 19|
    ?assertEqual(6859 - 377 - 152, ?G:image(3, 19, 100_000)),
    ?assertEqual([6764, 317_810], [?G:image(4, X, 1_000_000) || X <- [49, 98]] -- [317_811]),
    ?assertEqual([10_947, 1_346_270], [?G:image(5, X, 10_000_000) || X <- [900, 999]] -- [10_946]).

%% Sizes, in one virtual machine

golden_test_() ->
    [
        {lists:flatten(io_lib:format("~ts ~w ~0tp", [Name, N, How])), {timeout, 60, fun() ->
            ?assertEqual(ok, sderl_orbit_gold:check(Name, N, found(How, conf(Name, N))))
        end}}
     || N <- [1000 | [10_000 || os:getenv("SDERL_LONG") =/= false]],
        {Name, _} <- sderl_orbit_gold:sizes(N),
        How <- ways(N)
    ].

%% The third generator is slow, so there are fewer ways in the large space.
ways(1000) ->
    [plain, {seq, hash}, {par, compact, 4, 1}, {par, hash, 5, 20}, {par, compact, 1, 20}] ++
        ways(10_000);
ways(10_000) -> [{seq, compact}, {par, hash, 3, 1}].

found(How, Conf) ->
    {ok, #{reports := Reports}} = compute(How, Conf),
    sderl_orbit_stats:merge(Reports).

compute(plain, Conf) -> sderl_orbit_sequential:plain(Conf);
compute({seq, Kind}, Conf) -> sderl_orbit_sequential:seq(Conf#{table => Kind});
compute({par, Kind, Workers, Batch}, Conf) ->
    sderl_orbit_master:run(Conf#{table => Kind, batch => Batch,
                                 teams => {flat, ?L:places([node()], Workers)}}).

conf(Name, N) ->
    {ok, Generators} = ?G:parse(Name),
    #{generators => Generators, size => N, table => hash, slots => 2 * N, batch => 1, idle_ms => 0,
      stall_ms => 60_000}.

%% The smallest spaces: a worker may have no elements.
small_test() ->
    [
        ?assertMatch(#{size := N, checksum := Sum}, found({par, Kind, 4, Batch}, conf("g12345", N)))
     || Kind <- ?T:kinds(), Batch <- [1, 10], {N, Sum} <- [{1, 0}, {2, 1}]
    ].

same_elements_test() ->
    Sums = [maps:with([size, checksum], found(How, conf("g23", 2000)))
            || How <- [plain, {seq, hash}, {par, compact, 6, 7}]],
    ?assertMatch([_], lists:usort(Sums)).

%% Credit

credit_test_() ->
    [
        sderl_prop:eunit("nothing of a credit is lost, however it is taken and given back", 500,
                         fun conserved/0),
        sderl_prop:eunit("credits are strictly descending", 300, fun descending/0),
        sderl_prop:eunit("a sum of credits is that of their atoms", 500, fun sums/0)
    ].

carry_test() ->
    ?assertEqual([3], ?C:add_atom(5, [5, 4])),
    ?assertEqual([7, 5, 3], ?C:add_atom(5, [7, 3])),
    ?assertEqual(?C:one(), ?C:add([2, 1], [2])),
    ?assertEqual([9, 4, 2], ?C:add([9, 5, 4, 3], [5, 4])),
    ?assertEqual({3, ?C:zero()}, ?C:debit([3])).

unit_test() ->
    ?assertEqual({13, [13, 12, 11, 10, 9, 8, 7, 6, 5, 4], 13}, ?C:debit_keeping(0, [3])),
    ?assertEqual({13, [12, 4], 13}, ?C:debit_keeping(13, [13, 12, 4])),
    ?assertEqual({13, [13, 4], 13}, ?C:debit_keeping(13, [12, 4])),
    ?assertEqual({20, [3], 13}, ?C:debit_keeping(13, [20, 3])),
    %% The holder has got a greater credit than it had, so parts need not be so small any more.
    ?assertEqual({12, [12, 11, 10, 9, 8, 7, 6, 5, 4, 3], 12}, ?C:debit_keeping(500, [2])).

%% A hundred thousand messages do not make the list of parts a hundred thousand long.
shallow_test() ->
    {Deepest, Credit, _} = lists:foldl(
        fun(_, {Max, C, Unit}) ->
            {K, Rest, Next} = ?C:debit_keeping(Unit, C),
            {max(K, Max), Rest, Next}
        end,
        {0, ?C:one(), 0},
        lists:seq(1, 100_000)
    ),
    ?assert(Deepest =< 1000),
    ?assert(length(Credit) =< 20).

%% A holder of the whole gives atoms away, keeping something or not, and gets some back.
conserved() ->
    ?FORALL(Steps, steps(), begin
        {Credit, Away, _} = walk(Steps),
        Depth = lists:max([0 | Credit ++ Away]),
        Units = lists:sum([1 bsl (Depth - K) || K <- Credit ++ Away]),
        Units =:= 1 bsl Depth andalso ?C:is_one(lists:foldl(fun ?C:add_atom/2, Credit, Away))
    end).

descending() ->
    ?FORALL(Steps, steps(), begin
        {Credit, _, _} = walk(Steps),
        Credit =:= lists:reverse(lists:usort(Credit))
    end).

sums() ->
    ?FORALL({As, Bs}, {list(range(8, 20)), list(range(8, 20))}, begin
        [A, B] = [lists:foldl(fun ?C:add_atom/2, ?C:zero(), lists:sublist(Ks, 120))
                  || Ks <- [As, Bs]],
        ?C:add(A, B) =:= lists:foldl(fun ?C:add_atom/2, A, B)
    end).

steps() -> list(oneof([keeping, keeping, all, {back, nat()}])).

walk(Steps) -> lists:foldl(fun step/2, {?C:one(), [], 0}, Steps).

step({back, _}, {Credit, [], Unit}) -> {Credit, [], Unit};
step({back, N}, {Credit, Away, Unit}) ->
    K = lists:nth(1 + N rem length(Away), Away),
    {?C:add_atom(K, Credit), lists:delete(K, Away), Unit};
step(_, {[], Away, Unit}) -> {[], Away, Unit};
step(keeping, {Credit, Away, Unit}) ->
    {K, [_ | _] = Rest, Next} = ?C:debit_keeping(Unit, Credit),
    {Rest, [K | Away], Next};
step(all, {Credit, Away, Unit}) ->
    {K, Rest} = ?C:debit(Credit),
    {Rest, [K | Away], Unit}.

%% Tables

table_test_() ->
    [sderl_prop:eunit("a distributed table is a set", 200, fun is_a_set/0)].

is_a_set() ->
    ?FORALL({Kind, N, Workers}, {oneof(?T:kinds()), range(1, 3000), range(1, 9)},
            ?FORALL(Xs, list(range(0, N - 1)), begin
                Spread = ?T:new(Kind, N, Workers, 2 * N),
                Parts = lists:foldl(
                    fun(X, Acc) ->
                        Owner = ?T:owner(X, Spread),
                        case ?T:insert(X, maps:get(Owner, Acc)) of
                            seen -> Acc;
                            Part -> Acc#{Owner := Part}
                        end
                    end,
                    #{W => ?T:part(W, Spread) || W <- lists:seq(1, Workers)},
                    Xs
                ),
                Contents = [?T:contents(Part) || Part <- maps:values(Parts)],
                Set = lists:usort(Xs),
                {length(Set), lists:sum(Set)} =:=
                {lists:sum([S || #{size := S} <- Contents]),
                 lists:sum([S || #{sum := S} <- Contents])} andalso
                    lists:all(
                        fun(#{slots := Slots, freq := Freq, size := Size, nonempty_slots := Used,
                              max_freq := Most}) ->
                            Slots =:= lists:sum(maps:values(Freq)) andalso
                                Used =:= Slots - maps:get(0, Freq, 0) andalso
                                Most =:= lists:max([0 | maps:keys(Freq)]) andalso
                                Size =:= lists:sum([F * C || F := C <- Freq])
                        end,
                        Contents
                    )
            end)).

compact_is_small_test() ->
    #{bytes_per_element := Bytes} = found({seq, compact}, conf("g12", 10_000)),
    ?assert(Bytes < 0.5).

%% Layout and links

groups_test() ->
    Nodes = [list_to_atom([$n, $0 + I]) || I <- lists:seq(1, 7)],
    Groups = ?L:groups(Nodes, 3, 2),
    ?assertEqual(
        [
            {1, {orbit, 1}, [n1, n2], [{1, n1}, {2, n1}, {3, n2}, {4, n2}]},
            {2, {orbit, 2}, [n3, n4], [{5, n3}, {6, n3}, {7, n4}, {8, n4}]},
            {3, {orbit, 3}, [n5, n6, n7],
             [{9, n5}, {10, n5}, {11, n6}, {12, n6}, {13, n7}, {14, n7}]}
        ],
        Groups
    ),
    ?assertEqual([m, n1, n3, n5], proplists:get_value({orbit, master}, ?L:namespaces(m, Groups))).

%% With N nodes in all, one of them the master's.
formulas_test() ->
    [
        begin
            K = S * Size,
            N = K + 1,
            Groups = ?L:groups(lists:seq(1, K), S, 1),
            ?assertEqual(
                #{
                    master => S,
                    submaster_max => (N - 1) div S + S - 1,
                    worker_max => case Size of 1 -> undefined; _ -> (N - 1) div S - 1 end
                },
                ?L:expected_links(sd, K, Groups)
            ),
            ?assertEqual(#{master => N - 1, submaster_max => undefined, worker_max => N - 1},
                         ?L:expected_links(stock, K, []))
        end
     || S <- [1, 2, 5], Size <- [1, 3, 10]
    ].

uneven_groups_test() ->
    ?assertEqual(
        #{master => 2, submaster_max => 3 + 1, worker_max => 2},
        ?L:expected_links(sd, 5, ?L:groups([a, b, c, d, e], 2, 1))
    ).

measured_links_test() ->
    Groups = ?L:groups([a, b, c, d], 2, 1),
    ?assertEqual(
        #{master => 2, submaster_max => 4, worker_max => 1},
        ?L:measured_links(m, Groups, [{m, 2}, {a, 3}, {b, 1}, {c, 4}, {d, 1}])
    ),
    ?assertEqual(#{master => 0, submaster_max => undefined, worker_max => undefined},
                 ?L:measured_links(m, [], [{m, 0}])).

%% Death

%% A worker dies at a random time: the run names it, or was over before. No process is left.
killed_test_() ->
    {timeout, 120, fun() ->
        Seed = rand:seed(exsss),
        io:format(user, "orbit, killed at any time: seed ~0tp~n", [rand:export_seed_s(Seed)]),
        [killed(rand:uniform(3), rand:uniform(90) - 1, 1 + 30 * (I rem 2), {"g13", 1000})
         || I <- lists:seq(1, 30)],
        %% This run cannot be over before the worker dies.
        ?assertEqual(died, killed(2, 0, 1, {"g123", 10_000_000}))
    end}.

killed(Index, AfterMs, Batch, {Name, N}) ->
    {Runner, Ref} = spawn_monitor(fun() ->
        exit({result, compute({par, compact, 3, Batch}, conf(Name, N))})
    end),
    Killed = kill(worker(Index, Runner), AfterMs),
    Result = receive {'DOWN', Ref, process, Runner, {result, R}} -> R end,
    ?assertEqual([], sderl_orbit_kill:processes(worker)),
    case Result of
        {error, {died, {worker, Index, _}, killed}} ->
            ?assert(Killed),
            died;
        {ok, #{reports := Reports}} ->
            ?assertEqual(ok, sderl_orbit_gold:check(Name, N, sderl_orbit_stats:merge(Reports))),
            over
    end.

kill(over, _) ->
    false;
kill(Victim, AfterMs) ->
    receive after AfterMs -> ok end,
    exit(Victim, kill).

%% Waits for the process, unless the run is over.
worker(Index, Runner) ->
    Alive = is_process_alive(Runner),
    case [Pid || {{orbit, worker, I}, Pid} <- sderl_orbit_kill:processes(worker), I =:= Index] of
        [Pid] -> Pid;
        [] when Alive -> worker(Index, Runner);
        [] -> over
    end.

%% When the caller ends, the run ends.
caller_ends_test() ->
    Runner = spawn(fun() -> compute({par, compact, 2, 100}, conf("g123", 10_000_000)) end),
    Worker = worker(2, Runner),
    ?assert(is_pid(Worker)),
    true = exit(Runner, kill),
    ?assertEqual(ok,
                 sderl_fleet:await(fun() -> [] =:= sderl_orbit_kill:processes(worker) end, 60_000)).

%% A run whose worker is suspended ends with an error.
stall_test() ->
    Conf = (conf("g123", 10_000_000))#{stall_ms := 300},
    {Runner, Ref} =
        spawn_monitor(fun() -> exit({result, compute({par, compact, 1, 100}, Conf)}) end),
    true = erlang:suspend_process(worker(1, Runner)),
    Result = receive {'DOWN', Ref, process, Runner, {result, R}} -> R end,
    ?assertMatch({error, {stalled, 300, _}}, Result),
    ?assertEqual([], sderl_orbit_kill:processes(worker)).

%% Words

text_test_() ->
    [
        ?_assertEqual(Text, unicode:characters_to_list(sderl_papers_reason:text({orbit, Reason})))
     || {Text, Reason} <- [
         {"worker 3 on n1@h died: killed; Orbit has no recovery",
          {died, {worker, 3, n1@h}, killed}},
         {"node n1@h went down, with a gateway of group 2; Orbit has no recovery",
          {died, {gateway, 2, n1@h}, noconnection}},
         {"the submaster of group 1 on n1@h died: killed; Orbit has no recovery",
          {died, {submaster, 1, n1@h}, killed}},
         {"node m@h went down, with the master; Orbit has no recovery",
          {died, {master, m@h}, down}},
         {"nothing has been found for 60 s, after 12 elements: a node stands still, or a longer "
          "time is needed (--stall)",
          {stalled, 60_000, 12}},
         {"5 groups need as many nodes, and there are 3", {too_many_groups, 5, 3}}
     ]
    ].

group_text_test_() ->
    [
        ?_assertEqual(Text, unicode:characters_to_list(
            sderl_papers_reason:text({group_not_made, {orbit, 1}, Answer})
        ))
     || {Text, Answer} <- [
         {"these nodes did not join the group {orbit,1}, because they went down or could not be "
          "reached: n2@h", {[], [n2@h]}},
         {"node n1@h, which was to make the group {orbit,1}, went down", {n1@h, {error, down}}},
         {"the group {orbit,1} could not be made: {n1@h,{error,timeout}}", {n1@h, {error, timeout}}}
     ]
    ].

%% Wrong parameters of reproduce or a user.
bad_params_test() ->
    ?assertMatch({error, {orbit, {unknown_generators, g9}}},
                 sderl_orbit:run(#{mode => seq, generators => g9}, "")),
    ?assertMatch({error, {orbit, {too_many_groups, 3, 2}}},
                 sderl_orbit:run(#{mode => sd, nodes => 2, groups => 3}, "")).

%% Options

-define(E, sderl_orbit_experiment).

defaults_test() ->
    ?assertMatch(
        {ok, #{mode := [sd], routing := [own], generators := g12345, nodes := [4], table := hash,
               batch := 1}}, options([])
    ).

points_test() ->
    {ok, Options} = options(["--compare", "--nodes", "4,6", "--size", "1000", "--generators",
                             "g12"]),
    Points = ?E:points(Options),
    ?assertEqual(
        [{plain, 1}, {seq, 1}, {par, 1}, {stock, 4}, {stock, 6}, {own, 4}, {library, 4}, {own, 6},
         {library, 6}],
        [{maps:get(routing, P, Mode), N} || #{mode := Mode, nodes := N} = P <- Points]
    ),
    ?assertNot(lists:any(fun(P) -> is_map_key(json, P) orelse is_map_key(compare, P) end, Points)).

bad_options_test_() ->
    [
        {Text, ?_assertEqual({error, Text}, options(Args))}
     || {Text, Args} <- [
         {"--mode: there is no mode \"smp\"; there are plain, seq, par, stock, sd",
          ["--mode", "seq,smp"]},
         {"--mode: there is no mode \"\"; there are plain, seq, par, stock, sd", ["--mode", ""]},
         {"--mode names seq twice; name it once", ["--mode", "seq,seq"]},
         {"--routing: there is no routing \"other\"; there are own, library",
          ["--routing", "other"]},
         {"--table: there is no kind of table \"ets\"; there are hash, compact",
          ["--table", "ets"]},
         {"--table takes one kind of table", ["--table", "hash,compact"]},
         {"--generators: there are no generators g6; they are g and some of the digits 1 to 5 in "
          "ascending order, as in g12345",
          ["--generators", "g6"]},
         {"--size must be at least 1, not 0", ["--size", "0"]},
         {"--size must be at most 1000000000, not 1000000001", ["--size", "1000000001"]},
         {"--workers must be at least 1, not 0", ["--workers", "0"]},
         {"--groups must be at least 1, not 0", ["--groups", "0"]},
         {"--gateways must be at least 1, not 0", ["--gateways", "0"]},
         {"--batch must be at least 1, not -1", ["--batch", "-1"]},
         {"--stall must be at least 1, not 0", ["--stall", "0"]},
         {"--repeat must be at least 1, not 0", ["--repeat", "0"]},
         {"--groups 5: that many s_groups need as many nodes, and --nodes has 4",
          ["--groups", "5", "--nodes", "8,4"]}
     ]
    ].

too_many_nodes_test() ->
    {error, Text} = options(["--nodes", "10000"]),
    ?assertMatch({match, _}, re:run(Text, "^--nodes 10000: the nodes need [0-9]+ MiB")),
    {error, None} = options(["--nodes", "4,0"]),
    ?assertMatch({match, _}, re:run(None, "^--nodes: \"0\" is no whole number from 1 to [0-9]+$")).

not_a_number_test() ->
    ?assertMatch(
        {usage, _}, sderl_command:parse(["--size", "many"], ["bench", "orbit"], ?E:command())
    ).

options(Args) -> sderl_bench_options:checked("orbit", ?E, Args).

%% Results

table_test() ->
    Text = unicode:characters_to_list(?E:table(runs())),
    ?assertMatch({match, _}, re:run(Text, "x plain")),
    ?assertMatch({match, _},
                 re:run(Text,
                        "sd own +4 +853 +2.00 \\(1.00..3.00\\) .*1.50 \\(1.00..2.00\\) +2 +3 +1 ")).

verdict_test() ->
    ?assertEqual(ok, ?E:verdict(runs())),
    Wrong = fun(Key, Value) ->
        [#{metrics := M} = Run | Runs] = lists:reverse(runs()),
        {error, Text} = ?E:verdict([Run#{metrics := M#{Key := Value}} | Runs]),
        unicode:characters_to_list(Text)
    end,
    ?assertEqual("the runs found different orbits, of 853, 854 elements", Wrong(size, 854)),
    ?assertEqual("sd own: vertices were lost or came twice", Wrong(vertices_received, 7)),
    ?assertMatch("sd own: links are not as the formulas say: " ++ _,
                 Wrong(links_as_expected, false)).

runs() ->
    [
        #{params => maps:merge(#{generators => g12, run => Turn}, Mode),
          metrics => metrics(Seconds, Links)}
     || {Turn, Slow} <- [{1, 1}, {2, 3}],
        {Mode, Seconds, Links} <- [{#{mode => plain, nodes => 1}, 2, none},
                                   {#{mode => sd, routing => own, nodes => 4}, Slow, {2, 3, 1}}]
    ].

metrics(Seconds, Links) ->
    {Master, Submaster, Worker} = case Links of none -> {0, undefined, undefined}; _ -> Links end,
    #{
        size => 853, checksum => 1, vertices_received => 1707, seconds => float(Seconds),
        elements_per_s => case Seconds of 3 -> 400.0; 1 -> 800.0; 2 -> 400.0 end,
        links_master => Master, links_submaster_max => Submaster, links_worker_max => Worker,
        links_expected => #{}, links_as_expected => true, messages => 1, bytes_per_element => 1,
        cpu_us_per_op => 1, memory_mib_max => 1
    }.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_SUITE).
-moduledoc "Orbit on real nodes: sizes, links, and what becomes of a run when something dies.".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

%% Long enough on a busy machine, too.
-define(WAIT_MS, 120_000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [golden_stock, golden_and_killed, links, killed_while_prepared, command]
        ++ sderl_ct:in_long_runs([profiles_compared, killed_stock]).

%% Sizes and links

golden_stock(_) ->
    Params = params(stock, #{nodes => 3}),
    with(Params, fun(Fleet) -> golden(Fleet, Params, [1, 10]) end).

%% All runs are on the same nodes: no process of a run may stay, whatever has died in it.
golden_and_killed(_) ->
    Params = params(sd, #{nodes => 4}),
    with(Params, fun(Fleet) ->
        golden(Fleet, Params, [1]),
        golden(Fleet, Params#{table := compact, routing := library}, [7]),
        killed_library(Fleet),
        killed_own(Fleet)
    end).

golden(Fleet, Params, Batches) ->
    [
        begin
            {ok, Generators} = sderl_orbit_generators:parse(Name),
            Outcome = on(Fleet, Params#{generators := Generators, batch := Batch}),
            ?assertEqual(ok, sderl_orbit_gold:check(Name, 1000, stats(Outcome)))
        end
     || Batch <- Batches, {Name, _} <- short(2, sderl_orbit_gold:sizes(1000))
    ],
    nothing_left(Fleet).

%% Only the first of several cases, where the test run is a short one.
short(Count, List) ->
    case os:getenv("SDERL_LONG") of
        false -> lists:sublist(List, Count);
        _ -> List
    end.

%% Groups of equal size, of two and three nodes, of one node, of all.
links(_) ->
    [
        begin
            Params = params(Mode, #{nodes => 5, groups => S, routing => Routing, gateways => 3,
                                    batch => 5}),
            Outcome = #{links := Links, links_expected := Formulas} =
                with(Params, fun(Fleet) -> on(Fleet, Params) end),
            ?assertEqual({S, Routing, Expected}, {S, Routing, Links}),
            ?assertEqual(Expected, Formulas),
            ?assertEqual(ok, sderl_orbit_gold:check("g12", 1000, stats(Outcome)))
        end
     || {Mode, S, Routing, Expected} <- short(3, [
            {stock, 1, own, #{master => 5, submaster_max => undefined, worker_max => 5}},
            {sd, 2, own, #{master => 2, submaster_max => 4, worker_max => 2}},
            {sd, 5, library, #{master => 5, submaster_max => 5, worker_max => undefined}},
            {sd, 2, library, #{master => 2, submaster_max => 4, worker_max => 2}},
            {sd, 1, own, #{master => 1, submaster_max => 5, worker_max => 4}}
        ])
    ],
    ok.

%% The same orbit on a full mesh and in two s_groups, recorded and compared: groups have half the
%% links and more messages, because of those that gateways pass on.
profiles_compared(Config) ->
    [Stock, Groups] = [
        begin
            Dir = filename:join([proplists:get_value(priv_dir, Config), "compared", Mode]),
            Params = params(Mode, #{nodes => 4, workers => 1, prof => Dir}),
            Outcome = with(Params, fun(Fleet) -> on(Fleet, Params) end),
            ?assertEqual(ok, sderl_orbit_gold:check("g12", 1000, stats(Outcome))),
            {ok, Book} = sderl_prof_cluster_book:open(Dir, #{}),
            Book
        end
     || Mode <- [stock, sd]
    ],
    {ok, #{before := #{between := Before}, 'after' := #{between := After, node := ~"5 nodes"},
           appeared := Appeared}} = sderl_prof_compare:make(Stock, Groups, #{top => 100}),
    %% On the full mesh, all pairs of the four workers' nodes and the master's node are linked. In
    %% s_groups each group has a submaster, and one worker's node behind it.
    ?assertMatch({#{links := 10}, #{links := 5}}, {Before, After}),
    #{messages := Direct, bytes := Bytes} = Before,
    #{messages := PassedOn} = After,
    ?assert(Bytes > Direct),
    ?assert(PassedOn > Direct),
    ?assertMatch([_ | _], [P || #{process := ~"sderl_orbit_gateway:init/1"} = P <- Appeared]).

%% Deaths

killed_own(Fleet) ->
    Params = long(sd, #{nodes => 4}),
    [Master, S1, W1, S2, _W2] = Nodes = sderl_fleet:nodes(Fleet),
    [
        begin
            process_dies(Fleet, Params, W1, worker, Stage),
            process_dies(Fleet, Params, S2, gateway, Stage),
            process_dies(Fleet, Params, S1, submaster, Stage)
        end
     || Stage <- short(1, [working, early])
    ],
    process_dies(Fleet, Params, Master, master, working),
    unprepared(Fleet, Params, W1),
    [node_dies(Fleet, Params, Node, Role)
     || {Node, Role} <- [{W1, "worker [34]"}, {S2, "the submaster of group 2"},
                         {Master, "the master"}]],
    ?assertEqual(Nodes, sderl_fleet:nodes(Fleet)),
    works(Fleet, Params).

%% Nodes that the dead node had invited into a group keep its name reserved for half a minute. So
%% this case uses nodes that make no other groups.
killed_while_prepared(_) ->
    Params = long(sd, #{nodes => 4}),
    with(Params,
         fun(Fleet) -> unprepared(Fleet, Params, lists:nth(4, sderl_fleet:nodes(Fleet))) end).

killed_library(Fleet) ->
    Params = (long(sd, #{nodes => 4}))#{routing := library},
    [_Master, S1, _W1, S2, W2] = sderl_fleet:nodes(Fleet),
    process_dies(Fleet, Params, W2, worker, working),
    process_dies(Fleet, Params, S1, submaster, working),
    node_dies(Fleet, Params, W2, "worker [0-9]+"),
    node_dies(Fleet, Params, S2, "the submaster of group 2"),
    works(Fleet, Params).

killed_stock(_) ->
    Params = long(stock, #{nodes => 2}),
    with(Params, fun(Fleet) ->
        [_Master, N1, N2] = sderl_fleet:nodes(Fleet),
        process_dies(Fleet, Params, N1, worker, early),
        process_dies(Fleet, Params, N2, worker, working),
        node_dies(Fleet, Params, N1, "worker [12]"),
        works(Fleet, Params),
        stands_still(Fleet)
    end).

%% A suspended node is not dead: the run ends because nothing is found any more. The master's own
%% node is killed when it does not answer any more.
stands_still(Fleet) ->
    %% Without bundles a link is full in a moment.
    Params = (long(stock, #{nodes => 2}))#{stall_s := 2, batch := 1, table := hash,
                                           generators := [1, 2]},
    [Master, N1, _] = sderl_fleet:nodes(Fleet),
    Text1 = broken(Fleet, Params, working, fun(_) -> ok = sderl_fleet:suspend(Fleet, N1) end),
    ct:pal("~ts", [Text1]),
    ?assertMatch({match, _},
                 re:run(Text1, "^nothing has been found for 2 s, after [0-9]+ elements")),
    ok = sderl_fleet:resume(Fleet, N1),
    nothing_left(Fleet),
    Text2 = broken(Fleet, Params, working,
                   fun(_) -> ok = sderl_fleet:suspend(Fleet, Master) end),
    ?assertEqual(went_down(Master, "the master"), Text2).

process_dies(Fleet, Params, Node, Role, Stage) ->
    Text = broken(Fleet, Params, Stage, fun(Over) ->
        ok = sderl_fleet:await(fun() ->
            Over() orelse sderl_fleet:call(Fleet, Node, sderl_orbit_kill, one, [Role])
        end, ?WAIT_MS)
    end),
    ct:pal("~ts", [Text]),
    Wanted = io_lib:format("~ts( [0-9]+| of group [0-9]+)? on ~ts died: (killed|noproc); Orbit has "
                           "no recovery", [Role, Node]),
    ?assertMatch({match, _}, re:run(Text, Wanted)),
    nothing_left(Fleet).

node_dies(Fleet, Params, Node, Role) ->
    Text = broken(Fleet, Params, working, fun(_) -> ok = sderl_fleet:kill(Fleet, Node) end),
    ct:pal("~ts", [Text]),
    ?assertMatch({match, _}, re:run(Text, ["^", went_down(Node, Role), "$"])),
    nothing_left(Fleet),
    {ok, Node} = sderl_fleet:restart(Fleet, Node).

%% The node dies while the groups are made, or just before.
unprepared(Fleet, Params, Node) ->
    Text = broken(Fleet, Params, early, fun(_) -> ok = sderl_fleet:kill(Fleet, Node) end),
    ct:pal("~ts", [Text]),
    ?assertMatch({match, _}, re:run(Text, atom_to_list(Node))),
    nothing_left(Fleet),
    {ok, Node} = sderl_fleet:restart(Fleet, Node).

went_down(Node, Role) ->
    lists:flatten(io_lib:format("node ~ts went down, with ~ts; Orbit has no recovery",
                                [Node, Role])).

%% The error of a run in which something is broken: at once (`early`), often before its master is
%% there, or when it has found something.
broken(Fleet, Params, Stage, Break) ->
    Over = atomics:new(1, []),
    Task = sderl_fleet_task:start(fun() ->
        Outcome = sderl_orbit_cluster:on(Fleet, Params, "test"),
        ok = atomics:put(Over, 1, 1),
        Outcome
    end),
    [Master | _] = sderl_fleet:nodes(Fleet),
    %% A run that is over before anything was broken says why.
    IsOver = fun() -> atomics:get(Over, 1) =:= 1 end,
    _ = Stage =:= early orelse begin
        ok = sderl_fleet:await(fun() -> IsOver() orelse 0 < found(Fleet, Master) end, ?WAIT_MS)
    end,
    Break(IsOver),
    {ok, {error, Reason}} = sderl_fleet_task:result(Task, ?WAIT_MS),
    unicode:characters_to_list(sderl_papers_reason:text(Reason)).

%% A busy master on a busy machine answers late: the test waits longer for it than the progress bar,
%% which might never get an answer.
found(Fleet, Master) ->
    case sderl_fleet:call(Fleet, Master, sderl_fleet_task, ask,
                          [sderl_orbit_master, found, ?WAIT_MS div 2], ?WAIT_MS) of
        undefined -> 0;
        Found -> Found
    end.

%% Runs once more, as if there had been no run before.
works(Fleet, Params) ->
    Outcome = on(Fleet, Params#{size := 1000, generators := [1, 2]}),
    ?assertEqual(ok, sderl_orbit_gold:check("g12", 1000, stats(Outcome))),
    nothing_left(Fleet).

%% Checks that no process of Orbit is left on any running node, and no group.
nothing_left(Fleet) -> sderl_papers_left:nothing(Fleet, {sderl_orbit_kill, all, []}).

on(Fleet, Params) ->
    {ok, Outcome} = sderl_orbit_cluster:on(Fleet, Params, "test"),
    Outcome.

stats(#{result := #{reports := Reports}}) -> sderl_orbit_stats:merge(Reports).

with(Params, Fun) ->
    {ok, Fleet} = sderl_fleet:start(sderl_orbit_cluster:plan(Params, "test")),
    try
        Fun(Fleet)
    after
        sderl_fleet:stop(Fleet)
    end.

params(Mode, More) ->
    maps:merge((sderl_orbit:defaults())#{mode => Mode, generators => [1, 2], size => 1000}, More).

%% A run that takes far longer than a test.
long(Mode, More) ->
    params(Mode, More#{generators => [1, 2, 3], size => 10_000_000, batch => 20, table => compact}).

%% The command line

command(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "orbit.json"),
    Args = ["bench", "orbit", "--compare", "--generators", "g124", "--size", "1000", "--nodes", "2",
            "--json", File],
    ?assertMatch({0, stdout, _}, sderl_cli:run(Args)),
    {ok, Text} = file:read_file(File),
    Results = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim])],
    ?assertEqual(
        [<<"plain">>, <<"seq">>, <<"par">>, <<"stock">>, <<"own">>, <<"library">>],
        [maps:get(<<"routing">>, P, Mode)
         || #{<<"params">> := #{<<"mode">> := Mode} = P} <- Results]
    ),
    [
        begin
            ?assertMatch(
                #{
                    <<"experiment">> := <<"orbit">>,
                    <<"metrics">> := #{
                        <<"size">> := 854, <<"vertices_received">> := 2563,
                        <<"links_as_expected">> := true, <<"seconds">> := _,
                        <<"elements_per_s">> := _, <<"bytes_per_element">> := _,
                        <<"messages">> := _,
                        <<"workers">> := [#{<<"node">> := _, <<"idle_tail_ms">> := _} | _]
                    }
                },
                Result
            )
        end
     || Result <- Results
    ],
    ok.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pattern_SUITE).

%% Plans applied to real nodes: predictions are right, a caller may die half-way, a failure leaves
%% nothing, patterns grow and shrink.
%%
%% One fleet of ten nodes that know of no plan at first; each case takes its groups and links away
%% again. Free nodes keep apart, so that those which are left free keep no links of an island
%% (docs/designing-groups.md has a session where they do not).

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

suite() -> [{timetrap, {minutes, 10}}].

all() -> [applied, grown_and_shrunk, resumed, node_dies, at_once, undone, refused].

init_per_suite(Config) -> sderl_ct:hold(10, [{free_islands, false} | sderl_ct:env(calm)]) ++ Config.

end_per_suite(Config) -> sderl_ct:release(Config).

init_per_testcase(_, Config) -> Config.

%% First the groups, as a member would link again to one that it misses.
end_per_testcase(_, Config) ->
    {Fleet, Nodes} = fleet(Config),
    sderl_ct:await(no_groups, fun() ->
        _ = sderl_ct:all_on(Fleet, Nodes, fun() -> application:ensure_all_started(sderl) end),
        lists:append(sderl_ct:all_on(Fleet, Nodes, fun() ->
            [s_group:delete_s_group(G) || {G, _} <- s_group:own_s_groups()],
            s_group:own_s_groups()
        end)) =:= []
    end),
    sderl_ct:await(no_links, fun() ->
        _ = sderl_ct:all_on(Fleet, Nodes,
                            fun() -> [erlang:disconnect_node(N) || N <- nodes(connected)] end),
        %% And each has noticed: a late notice would take the reasons of the next link for those of
        %% the one before.
        lists:append(sderl_ct:all_on(Fleet, Nodes,
                                     fun() -> nodes(connected) ++ s_group:links() end)) =:= []
    end).

fleet(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

%% ---------------------------------------------------------------- applying

%% By a node that is in no group of the plan. A star with two gateways a group.
applied(Config) ->
    {Fleet, [Outside | Nodes]} = fleet(Config),
    {ok, #{groups := Groups} = Plan} = sderl_pattern:star(Nodes, #{size => 3, gateways => 2}),
    {{ok, Report}, Progress} = run(Fleet, Outside, Plan),
    ?assertEqual(lists:sort([{create, G, lists:sort(Ns)} || #{name := G, nodes := Ns} <- Groups]),
                 lists:sort(maps:get(steps, Report))),
    {Survey, Steps} = lists:split(9, Progress),
    ?assertEqual([#{done => I, total => 9, what => survey} || I <- lists:seq(1, 9)], Survey),
    ?assertEqual([{I, 4} || I <- lists:seq(1, 4)], [{I, T} || #{done := I, total := T} <- Steps]),
    as_planned(Fleet, Plan, [Outside]),
    %% Once more there is nothing to do, whoever asks.
    [?assertMatch({{ok, #{steps := []}}, _}, run(Fleet, N, Plan)) || N <- [Outside, hd(Nodes)]],
    as_planned(Fleet, Plan, [Outside]).

run(Fleet, Node, Plan) ->
    sderl_ct:on(Fleet, Node, fun() ->
        Result = sderl_plan_apply:run(Plan, #{progress => self()}),
        {Result, heard()}
    end).

heard() ->
    receive {sderl_plan, Progress} -> [Progress | heard()]
    after 0 -> []
    end.

%% Every node is in its groups, with whom it should be, and has the links that were predicted; those
%% `Out` have none.
as_planned(Fleet, Plan, Out) ->
    #{groups := Groups} = Plan,
    #{links := #{each := Links}} = sderl_plan:predict(Plan),
    Expected = [{N, lists:sort([{G, lists:sort(Ns)}
                                || #{name := G, nodes := Ns} <- Groups, lists:member(N, Ns)]),
                 map_get(N, Links)}
                || N <- sderl_pattern:nodes(Plan)] ++ [{N, [], 0} || N <- Out],
    sderl_ct:await(as_planned, fun() ->
        Nodes = [N || {N, _, _} <- Expected],
        Seen = sderl_ct:all_on(Fleet, Nodes, fun() ->
            {node(), lists:sort(s_group:own_s_groups()), length(nodes(connected))}
        end),
        Seen =:= Expected
            orelse {Seen -- Expected, Expected -- Seen,
                    sderl_ct:all_on(Fleet, Nodes, fun() ->
                        [{N, R, B} || #{node := N, reasons := R, opened_by := B} <- s_group:links()]
                    end)}
    end).

%% ---------------------------------------------------------------- growing and shrinking

grown_and_shrunk(Config) ->
    {Fleet, Nodes} = fleet(Config),
    {Six, [N7, N8, N9, N10]} = lists:split(6, Nodes),
    {ok, #{groups := [#{name := G1} | _]} = Plan} = sderl_pattern:ring(Six, #{size => 3}),
    {{ok, _}, _} = run(Fleet, hd(Six), Plan),
    as_planned(Fleet, Plan, [N10]),
    %% A name stays through it all.
    Pid = sderl_ct:process(Fleet, hd(Six)),
    yes = sderl_ct:on(Fleet, hd(Six), fun() -> s_group:register_name(G1, stays, Pid) end),
    %% All groups are full: a group comes between the last and the first.
    {ok, #{groups := [_, _, _, #{name := G4}]} = Larger} = sderl_pattern:grow(Plan, [N7, N8]),
    {ok, #{steps := Grown}} = change(Fleet, N8, Plan, Larger),
    ?assertMatch([{add, G1, _}, {create, G4, _}, {remove, G1, _}], lists:sort(Grown)),
    %% Who leaves goes last: no gateway is gone before the next is there.
    ?assertMatch({remove, G1, _}, lists:last(Grown)),
    as_planned(Fleet, Larger, [N10]),
    %% Two gateways go, one of them is down; a new node comes; a node outside does it.
    [Gone, Dead] = lists:sublist(sderl_pattern:gateways(Larger) -- [hd(Six)], 2),
    ok = sderl_fleet:kill(Fleet, Dead),
    {ok, Less} = sderl_pattern:shrink(Larger, [Gone, Dead]),
    {ok, Last} = sderl_pattern:grow(Less, [N9]),
    {ok, _} = change(Fleet, N10, Larger, Last),
    as_planned(Fleet, Last, [N10, Gone]),
    ?assertEqual(Pid, sderl_ct:on(Fleet, hd(Six), fun() -> s_group:whereis_name(G1, stays) end)),
    %% To one group, from many: what the new plan lacks is deleted.
    {ok, Dead} = sderl_fleet:restart(Fleet, Dead),
    {ok, One} = sderl_pattern:chain(sderl_pattern:nodes(Last), #{groups => 1}),
    {ok, #{steps := Steps}} = change(Fleet, N9, Last, One),
    ?assert(lists:any(fun({Kind, G, _}) -> {Kind, G} =:= {delete, {group, 2}} end, Steps)),
    as_planned(Fleet, One, [N10]).

change(Fleet, Node, Old, New) ->
    sderl_ct:on(Fleet, Node, fun() -> sderl_plan_apply:change(Old, New) end).

%% ---------------------------------------------------------------- failures

%% The process that applies is killed when the second step is done; another node goes on.
resumed(Config) ->
    {Fleet, [One, Other | Nodes]} = fleet(Config),
    {ok, #{groups := Groups} = Plan} = sderl_pattern:chain(Nodes, #{groups => 4}),
    killed = sderl_ct:on(Fleet, One, fun() ->
        {Pid, Ref} = spawn_monitor(fun() ->
            sderl_plan_apply:run(Plan, #{progress => {?MODULE, die_after, [2]}, parallel => 1})
        end),
        receive {'DOWN', Ref, process, Pid, Why} -> Why end
    end),
    {{ok, #{steps := Steps}}, _} = run(Fleet, Other, Plan),
    ?assertEqual([{create, G} || #{name := G} <- lists:nthtail(2, Groups)],
                 [{K, G} || {K, G, _} <- Steps]),
    %% The link that the dead caller had is its node's; the plan's nodes have theirs.
    sderl_ct:on(Fleet, One, fun() -> [erlang:disconnect_node(N) || N <- nodes(connected)] end),
    as_planned(Fleet, Plan, [One, Other]).

die_after(Count, #{what := {create, _, _}, done := Count}) -> exit(self(), kill);
die_after(_, _) -> ok.

%% Its whole node dies, while it waits for members.
node_dies(Config) ->
    {Fleet, [One, Other | Nodes]} = fleet(Config),
    {ok, Plan} = sderl_pattern:tree(Nodes, #{branching => 2, leaves => 1, levels => 3}),
    ok = sderl_ct:on(Fleet, One, fun() ->
        _ = spawn(fun() ->
            sderl_plan_apply:run(Plan, #{progress => {?MODULE, halt_after, [1]}})
        end),
        ok
    end),
    sderl_ct:await(died,
                   fun() -> sderl_fleet:call(Fleet, Other, net_adm, ping, [One]) =:= pang end),
    {{ok, _}, _} = run(Fleet, Other, Plan),
    as_planned(Fleet, Plan, [Other]),
    {ok, One} = sderl_fleet:restart(Fleet, One).

halt_after(Count, #{what := {create, _, _}, done := Count}) -> erlang:halt(1, [{flush, false}]);
halt_after(_, _) -> ok.

%% Three nodes apply one plan at the same time: it is one cluster all the same, and all of them say
%% so.
at_once(Config) ->
    {Fleet, [Outside | Nodes]} = fleet(Config),
    {ok, Plan} = sderl_pattern:ring(Nodes, #{size => 4}),
    Results = sderl_ct:all_on(Fleet, [Outside, lists:nth(4, Nodes), lists:last(Nodes)],
                              fun() -> sderl_plan_apply:run(Plan) end),
    [?assertMatch({ok, _}, Result) || Result <- Results],
    as_planned(Fleet, Plan, [Outside]).

%% A node loses the library after the survey: its group cannot be made, and the others are undone;
%% or they stay if the caller wants it, and the next call goes on.
undone(Config) ->
    {Fleet, [One | Nodes]} = fleet(Config),
    {ok, #{groups := Groups} = Plan} = sderl_pattern:chain(Nodes, #{groups => 3}),
    #{name := Last, nodes := Members} = lists:last(Groups),
    Broken = lists:nth(2, Members),
    Fail = fun(Options) ->
        sderl_ct:on(Fleet, One, fun() ->
            sderl_plan_apply:run(Plan, Options#{progress => {?MODULE, stop_at_survey, [Broken]},
                                                parallel => 1})
        end)
    end,
    {error, {left_out, Last, [{Broken, application_not_running}]} = Reason,
     #{undone := Undone, not_undone := []}} = Fail(#{}),
    ?assert(string:find(sderl_plan:format_error(Reason), "application_not_running") =/= nomatch),
    ?assertEqual(3, length(Undone)),
    %% A member may learn of the end of a group a moment later.
    sderl_ct:await(no_groups, fun() ->
        Own = lists:append(sderl_ct:all_on(Fleet, Nodes -- [Broken],
                                           fun() -> s_group:own_s_groups() end)),
        Own =:= [] orelse Own
    end),
    sderl_ct:await(none_left, fun() ->
        Links = lists:append(sderl_ct:all_on(Fleet, [One | Nodes] -- [Broken], fun() ->
            [{node(), N, sderl_links:reasons(N)} || N <- nodes(connected)]
        end)),
        %% The one to the node that was stopped is this test's.
        Links =:= [{One, Broken, []}] orelse Links
    end),
    start(Fleet, Broken),
    {error, {left_out, Last, _}, #{undone := [], steps := [_, _, _]}} = Fail(#{undo => false}),
    start(Fleet, Broken),
    {{ok, #{steps := [{add, Last, [Broken]}]}}, _} = run(Fleet, hd(Nodes), Plan),
    true = sderl_ct:on(Fleet, One, fun() -> erlang:disconnect_node(Broken) end),
    as_planned(Fleet, Plan, []).

stop_at_survey(Node, #{what := survey, done := N, total := N}) ->
    ok = erpc:call(Node, application, stop, [sderl]);
stop_at_survey(_, _) -> ok.

start(Fleet, Node) ->
    {ok, _} = sderl_ct:on(Fleet, Node, fun() -> application:ensure_all_started(sderl) end).

%% What stands in the way is told before anything changes.
refused(Config) ->
    {Fleet, [N1, N2, N3, N4 | _]} = fleet(Config),
    {ok, #{groups := [#{name := G1} | _]} = Plan} =
        sderl_pattern:chain([N1, N2, N3, N4], #{size => 3}),
    Refused = fun(P, Sentence) ->
        {error, Reason, #{steps := []}} =
            sderl_ct:on(Fleet, N1, fun() -> sderl_plan_apply:run(P) end),
        ?assertMatch({_, [_ | _]}, {sderl_plan:format_error(Reason),
                                    string:find(sderl_plan:format_error(Reason), Sentence)}),
        Reason
    end,
    {ok, Strange} = sderl_pattern:chain([N1, N2, 'nobody@127.0.0.1'], #{size => 3}),
    {unreachable, 'nobody@127.0.0.1'} = Refused(Strange, "cannot be connected"),
    ok = sderl_ct:on(Fleet, N3, fun() -> application:stop(sderl) end),
    {no_library, N3} = Refused(Plan, "start it there"),
    start(Fleet, N3),
    {empty_group, x} = Refused(Plan#{
        groups := [#{name => x, role => workers, masters => 0, nodes => []}], edges := []
    }, "has no nodes"),
    %% Two groups of one name, made apart.
    [{ok, G1, [N]} = sderl_ct:on(Fleet, N, fun() -> s_group:new_s_group(G1, [N]) end)
     || N <- [N1, N2]],
    {other_identity, G1, [_, _]} = Refused(Plan, "delete all but one"),
    %% One of them gone, the other is taken for the plan's.
    ok = sderl_ct:on(Fleet, N1, fun() -> s_group:delete_s_group(G1) end),
    {{ok, _}, _} = run(Fleet, N1, Plan),
    as_planned(Fleet, Plan, []),
    ok = sderl_ct:on(Fleet, N1, fun() -> application:stop(sderl) end),
    {error, {not_running}, _} = sderl_ct:on(Fleet, N1, fun() -> sderl_plan_apply:run(Plan) end),
    start(Fleet, N1),
    ?assertError({badarg, {sderl_plan_apply, run, 2}, #{found := #{undo := 1}}},
                 sderl_plan_apply:run(Plan, #{undo => 1})).

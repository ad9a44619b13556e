%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_layout_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [
        sderl_prop:eunit("each node has one home", 300, fun prop_home/0),
        sderl_prop:eunit("the load is even", 300, fun prop_even/0),
        sderl_prop:eunit("a plan that holds is kept", 300, fun prop_stable/0),
        sderl_prop:eunit("one node more moves nothing else", 300, fun prop_one_more/0),
        sderl_prop:eunit("a death moves the dead one's scopes alone", 300, fun prop_death/0)
    ].

cluster() ->
    ?LET(List, list({node_name(), list(oneof([a, b, {c, 1}, "d", e, f]))}),
         maps:from_list([{N, lists:usort(Gs)} || {N, Gs} <- List])).
node_name() -> ?LET(I, range(1, 40), list_to_atom(lists:concat([n, I, "@h"]))).
monitors() ->
    ?LET(I, range(1, 4), [list_to_atom(lists:concat([m, J, "@h"])) || J <- lists:seq(1, I)]).

prop_home() ->
    ?FORALL(Nodes, cluster(), begin
        Scopes = sderl_mon_layout:scopes(Nodes),
        All = [N || _ := Ns <- Scopes, N <- Ns],
        Groups = lists:usort([G || _ := Gs <- Nodes, G <- Gs]),
        lists:sort(All) =:= lists:sort(maps:keys(Nodes)) andalso
            lists:sort([G || {group, G} := _ <- Scopes]) =:= Groups andalso
            lists:all(fun
                ({{group, G}, Ns}) -> lists:all(fun(N) -> hd(maps:get(N, Nodes)) =:= G end, Ns);
                ({{free, N}, Ns}) -> Ns =:= [N] andalso maps:get(N, Nodes) =:= []
            end,
                      maps:to_list(Scopes))
    end).

%% No scope could be moved from the busiest to the idlest with gain, unless the difference is small.
prop_even() ->
    ?FORALL({Nodes, Monitors}, {cluster(), monitors()}, begin
        Scopes = sderl_mon_layout:scopes(Nodes),
        Placement = sderl_mon_layout:place(Scopes, #{}, Monitors),
        Loads = loads(Scopes, Placement, Monitors),
        {Most, Busiest} = lists:max([{L, M} || M := L <- Loads]),
        Gap = Most - lists:min(maps:values(Loads)),
        maps:keys(Placement) =:= maps:keys(Scopes) andalso
            (Gap =< max(4, lists:sum(maps:values(Loads)) div length(Monitors) div 4) orelse
             lists:all(fun(W) -> W >= Gap end, [sderl_mon_layout:weight(maps:get(S, Scopes))
                                                || S := M <- Placement, M =:= Busiest]))
    end).

loads(Scopes, Placement, Monitors) ->
    #{M => lists:sum([sderl_mon_layout:weight(maps:get(S, Scopes))
                      || S := At <- Placement, At =:= M])
      || M <- Monitors}.

prop_stable() ->
    ?FORALL({Nodes, Monitors}, {cluster(), monitors()}, begin
        Scopes = sderl_mon_layout:scopes(Nodes),
        Placement = sderl_mon_layout:place(Scopes, #{}, Monitors),
        sderl_mon_layout:place(Scopes, Placement, lists:reverse(Monitors)) =:= Placement
    end).

prop_one_more() ->
    ?FORALL({Nodes, Monitors}, {cluster(), monitors()}, begin
        Placement = sderl_mon_layout:place(sderl_mon_layout:scopes(Nodes), #{}, Monitors),
        More = sderl_mon_layout:place(sderl_mon_layout:scopes(Nodes#{'new@h' => []}), Placement,
                                      Monitors),
        length([S || S := M <- Placement, maps:get(S, More) =/= M]) =< 1
    end).

prop_death() ->
    ?FORALL({Nodes, [Dead | Rest]}, {cluster(), ?SUCHTHAT(Ms, monitors(), length(Ms) =:= 2)}, begin
        Scopes = sderl_mon_layout:scopes(Nodes),
        Placement = sderl_mon_layout:place(Scopes, #{}, [Dead | Rest]),
        After = sderl_mon_layout:place(Scopes, Placement, Rest),
        maps:keys(After) =:= maps:keys(Scopes)
            andalso lists:all(fun({S, M}) -> M =:= Dead orelse maps:get(S, After) =:= M end,
                              maps:to_list(Placement))
    end).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mates_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Nodes are mates from the first group that they share to the last one.
came_and_went_test() ->
    M0 = sderl_mates:new(a, [{g, [a, b]}]),
    ?assertEqual({[c], [], [b, c]}, seen(sderl_mates:change(h, [a, b, c], M0))),
    {_, _, M1} = sderl_mates:change(h, [a, b, c], M0),
    ?assertEqual({[], [], [b, c]}, seen(sderl_mates:change(g, [], M1))),
    {_, _, M2} = sderl_mates:change(g, [], M1),
    ?assertEqual({[], [b, c], []}, seen(sderl_mates:change(h, [a], M2))),
    ?assertEqual([{h, [a, b, c]}], sderl_mates:groups(M2)),
    ?assertEqual({h, [a, b, c]}, sderl_mates:some_shared(c, M2)).

seen({Came, Went, Mates}) -> {lists:sort(Came), lists:sort(Went), sderl_mates:nodes(Mates)}.

%% Step by step it is what it would be had it begun with the end.
steps_test_() ->
    {timeout, 60,
     fun() -> ?assert(proper:quickcheck(same(), [{numtests, 300}, {to_file, user}])) end}.

same() ->
    Node = oneof([a, b, c, d]),
    ?FORALL(Steps, list({oneof([1, 1.0, g, h]), list(Node)}), begin
        {Mates, Now} = lists:foldl(fun({Group, Nodes}, {M0, Acc}) ->
            Members = lists:usort(Nodes),
            Before = sderl_mates:nodes(M0),
            {Came, Went, M} = sderl_mates:change(Group, Members, M0),
            After = sderl_mates:nodes(M),
            true = lists:sort(Came) =:= After -- Before
                andalso lists:sort(Went) =:= Before -- After,
            {M, case Members of [] -> maps:remove(Group, Acc); _ -> Acc#{Group => Members} end}
        end, {sderl_mates:new(a, []), #{}}, Steps),
        Whole = sderl_mates:new(a, maps:to_list(Now)),
        Mates =:= Whole
            andalso sderl_mates:differing(maps:to_list(Now), Mates) =:= []
            andalso sderl_mates:missing(maps:to_list(Now), Mates) =:= []
            andalso lists:sort([G || {G, []} <- sderl_mates:missing([], Mates)]) =:=
                    lists:sort(maps:keys(Now))
    end).

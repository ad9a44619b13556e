%% SPDX-License-Identifier: Apache-2.0
-module(sderl_model_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_model, [run/3]).

%% ---------------------------------------------------------------- properties

invariants_test_() ->
    [sderl_prop:eunit("semantics: invariants of all states and steps", 200,
                      fun() -> sound(start(), 60, sderl_model_gen:plain()) end),
     sderl_prop:eunit("semantics: the same from a launch configuration", 100,
                      fun() -> sound(launched(), 60, sderl_model_gen:plain()) end),
     sderl_prop:eunit("semantics: the same with groups that decide by majority", 100,
                      fun() -> sound(start(), 60, sderl_model_gen:majority()) end),
     sderl_prop:eunit("semantics: the same with crashes", 200,
                      fun() -> sound(start(), 60, sderl_model_gen:failing()) end)].

sound(Start, Count, Weights) ->
    ?FORALL(Steps, sderl_model_gen:steps(Start, Count, Weights),
            begin
                Broken = broken(Steps, Start),
                ?WHENFAIL(io:format(user, "~0tp~nbroke ~tp~n", [Steps, Broken]), Broken =:= none)
            end).

broken([], _) -> none;
broken([{Node, Command} = Step | Steps], Before) ->
    case sderl_model_gen:applicable(Step, Before) of
        false -> broken(Steps, Before);
        true ->
            {_, Open} = run(Before, Command, Node),
            After = sderl_model_gen:settle(Open),
            case sderl_model_check:state(Open) ++ sderl_model_check:state(After)
                 ++ sderl_model_check:step(Before, Command, Node, After)
                 ++ lists:append([sderl_model_check:view(N, sderl_model:view(N, After))
                                  || N <- nodes16()]) of
                [] -> broken(Steps, After);
                Wrong -> {Step, Wrong, Before, After}
            end
    end.

%% Views that no node may show, and legal ones: also that of a node between two groups, which shows
%% no group.
view_test_() ->
    View = fun(Class, Groups) -> #{class => Class, groups => Groups} end,
    [?_assertEqual(Expected, [What || {What, _} <- sderl_model_check:view(n1, View(Class, Groups))])
     || {Class, Groups, Expected} <-
            [{s_group, [], []},
             {s_group, [{g, [n1, n2]}, {h, [n1]}], []},
             {free_normal, [{undefined, [n1, n2]}], []},
             {s_group, [{g, [n1]}, {undefined, [n1]}], [partition, partition]},
             {free_normal, [{g, [n1]}, {undefined, [n1]}], [partition]},
             {free_normal, [{g, [n1]}], [partition]},
             {s_group, [{g, [n2]}], [own_groups]},
             {free_hidden, [{undefined, [n1, n2]}], [type]}]].

%% Only members' tables answer: a value that a node reads is one that a member has.
reads_test_() ->
    sderl_prop:eunit("semantics: what whereis_name says a member has", 100, fun() ->
        ?FORALL(Steps, sderl_model_gen:steps(start(), 60, sderl_model_gen:plain()),
                begin
                    S = lists:foldl(fun({N, C}, Acc) ->
                        {_, Next} = run(Acc, C, N),
                        sderl_model_gen:settle(Next)
                    end, start(), Steps),
                    lists:all(fun({G, Name, N}) ->
                        {Found, _} = run(S, {whereis_name, G, Name}, N),
                        Found =:= undefined orelse
                        lists:member(Found,
                                     [P || {Other, _, Ns} <- maps:get(s_groups, S), Other =:= G,
                                           #{pid := P} <- [maps:get(Name, Ns, none)]])
                    end, [{G, Name, N}
                          || {G, _, Ns} <- maps:get(s_groups, S), Name <- maps:keys(Ns),
                             N <- nodes16()])
                end)
    end).

nodes16() -> [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, 14)] ++ [h1, h2].

start() ->
    peopled(sderl_model:new([case N of h1 -> {N, hidden}; h2 -> {N, hidden}; _ -> N end
                             || N <- nodes16()])).

launched() ->
    peopled(sderl_model:new(
        #{nodes => [case N of h1 -> {N, hidden}; h2 -> {N, hidden}; _ -> N end || N <- nodes16()],
          s_groups => [{g1, normal, [n1, n2, n3, n4]}, {g2, normal, [n4, n5, h1]},
                       {"g4", hidden, [n3, n6, n7]}],
          s_groups_known => all}
    )).

peopled(S) ->
    lists:foldl(fun(N, Acc) -> {_, Next} = run(Acc, spawn, N), Next end, S, nodes16() ++ nodes16()).

%% ---------------------------------------------------------------- rules, one by one

%% The values along a list of steps, and the state after it.
all(Steps, S0) -> sderl_model:run(S0, Steps).

last(Steps) ->
    {Values, S} = all(Steps, sderl_model:new([a, b, c, d, {h, hidden}])),
    {lists:last(Values), S}.

create_test() ->
    {V, S} = last([{a, {new_s_group, g, [b, a, b]}}]),
    ?assertEqual({ok, g, [a, b]}, V),
    ?assertMatch(#{groups := [{g, [a, b]}], links := [b], class := s_group},
                 sderl_model:view(a, S)),
    ?assertMatch(#{groups := [{undefined, [c]}], links := [], class := free_normal},
                 sderl_model:view(c, S)),
    [?assertEqual(Error, element(1, last([{a, {new_s_group, g, [a]}}, {a, Command}])))
     || {Error, Command} <- [{{error, reserved_s_group_name}, {new_s_group, undefined, [a]}},
                             {{ok, f, []}, {new_s_group, f, []}},
                             {{error, remote_s_group}, {new_s_group, f, [b]}},
                             {{error, s_group_name_is_in_use}, {new_s_group, g, [a, b]}}]].

%% A node that is in another group of the same name is left out. It is linked, because it was asked.
left_out_test() ->
    {V, S} = last([{a, {new_s_group, g, [a]}}, {b, {new_s_group, g, [a, b, c]}}]),
    ?assertEqual({ok, g, [b, c]}, V),
    ?assertMatch(#{groups := [{g, [a]}], links := [b]}, sderl_model:view(a, S)),
    ?assertEqual({ok, g, [b]}, element(1, last([{a, crash}, {b, {new_s_group, g, [a, b]}}]))).

delete_test() ->
    {V, S} = last([{a, {new_s_group, g, [a, b, h]}}, {a, {new_s_group, f, [a]}},
                   {b, {delete_s_group, g}}]),
    ?assertEqual(ok, V),
    ?assertEqual([{f, [a]}], maps:get(groups, sderl_model:view(a, S))),
    ?assertMatch(#{groups := [{undefined, [b]}], class := free_normal, links := [a, h]},
                 sderl_model:view(b, S)),
    ?assertMatch(#{groups := [{undefined, [h]}], class := free_hidden}, sderl_model:view(h, S)),
    [?assertEqual({error, remote_s_group},
                  element(1, last([{a, {new_s_group, g, [a]}}, {b, {delete_s_group, G}}])))
     || G <- [g, f, undefined]].

%% A node that becomes free joins the islands that it is linked to.
become_free_test() ->
    {_, S} = last([{a, {new_s_group, g, [a, b]}},
                   {c, {whereis_name, d, undefined, x}},
                   {a, {whereis_name, c, undefined, x}},
                   {b, {delete_s_group, g}}]),
    [?assertMatch(#{groups := [{undefined, [a, b, c, d]}]}, sderl_model:view(N, S))
     || N <- [a, b, c, d]],
    ?assertEqual([a, b, c], maps:get(links, sderl_model:view(d, S))).

remove_test() ->
    Base = [{a, {new_s_group, g, [a, b, c]}}, {b, spawn}, {b, {register_name, g, x, {pid, b, 1}}}],
    {V, S} = last(Base ++ [{a, {remove_nodes, g, [b, d]}}]),
    ?assertEqual(ok, V),
    ?assertEqual([{{g, x}, {pid, b, 1}}], maps:get(names, sderl_model:view(c, S))),
    ?assertMatch(#{names := [], groups := [{undefined, [b]}]}, sderl_model:view(b, S)),
    ?assertMatch({true, #{s_groups := [{g, [a, c], Ns}]}} when map_size(Ns) =:= 0,
                 run(S, {exit, {pid, b, 1}}, b)),
    [?assertEqual(Error, element(1, last(Base ++ [{N, Command}])))
     || {N, Error, Command} <- [{a, {error, cannot_remove_itself}, {remove_nodes, g, [b, a]}},
                                {d, {error, node_does_not_belong_to_the_s_group},
                                 {remove_nodes, g, [d]}},
                                {a, ok, {remove_nodes, g, []}},
                                {d, ok, {remove_nodes, g, []}},
                                {d, ok, {remove_nodes, undefined, []}}]].

grow_test() ->
    Base = [{a, {new_s_group, g, [a, b]}}, {a, spawn}, {a, {register_name, g, x, {pid, a, 1}}}],
    {V, S} = last(Base ++ [{b, {add_nodes, g, [a, c]}}]),
    ?assertEqual({ok, g, [c]}, V),
    %% On a node outside the group, a list without other nodes adds no node, as published.
    [?assertEqual({ok, G, []}, element(1, last(Base ++ [{d, {add_nodes, G, Ns}}])))
     || G <- [g, f, undefined], Ns <- [[], [d], [d, d]]],
    ?assertEqual({error, node_does_not_belong_to_the_s_group},
                 element(1, last(Base ++ [{d, {add_nodes, g, [c, d]}}]))),
    ?assertMatch(#{names := [{{g, x}, _}], links := [a, b]}, sderl_model:view(c, S)),
    ?assertEqual({{ok, g, [a, b, d]}, [a, b, c]},
                 begin {V2, S2} = last(Base ++ [{d, {enter, g, [d, c, b]}}]),
                       {V2, maps:get(links, sderl_model:view(d, S2))} end),
    ?assertEqual({error, {no_seed_answered, [{c, node_does_not_belong_to_the_s_group}]}},
                 element(1, last(Base ++ [{d, {enter, g, [c]}}]))),
    ?assertEqual({error, no_seeds}, element(1, last(Base ++ [{d, {enter, g, [d]}}]))),
    {ok, S3} = last(Base ++ [{b, {leave, g}}, {a, {leave, g}}]),
    ?assertEqual([], maps:get(s_groups, S3)),
    %% Both are free, and the link of the group is still there: they are one island.
    ?assertEqual({[a, b], S3}, run(S3, own_nodes, a)).

%% The groups of a node are listed with the one first that it entered last.
newest_first_test() ->
    Base = [{b, {new_s_group, g, [a, b]}}, {a, {new_s_group, z, [a, c]}},
            {a, {new_s_group, f, [a]}}],
    ?assertEqual([{f, [a]}, {z, [a, c]}, {g, [a, b]}],
                 element(1, last(Base ++ [{a, own_s_groups}]))),
    Again = [{b, {remove_nodes, g, [a]}}, {b, {add_nodes, g, [a]}}, {a, {delete_s_group, f}}],
    ?assertEqual([{g, [a, b]}, {z, [a, c]}],
                 element(1, last(Base ++ Again ++ [{a, own_s_groups}]))),
    ?assertEqual([], element(1, last(Base ++ [{d, own_s_groups}]))).

names_test() ->
    Base = [{a, {new_s_group, g, [a, b]}}, {a, spawn}, {a, spawn}, {c, spawn},
            {a, {register_name, g, x, {pid, a, 1}}}],
    [?assertEqual({N, C, V}, {N, C, element(1, last(Base ++ [{N, C}]))})
     || {N, V, C} <-
            [{b, {pid, a, 1}, {whereis_name, g, x}}, {b, undefined, {whereis_name, g, y}},
             {c, undefined, {whereis_name, g, x}}, {c, {pid, a, 1}, {whereis_name, b, g, x}},
             {b, {no, name_or_pid_already_registered}, {register_name, g, y, {pid, a, 1}}},
             {a, {no, name_or_pid_already_registered}, {register_name, g, x, {pid, a, 2}}},
             {b, yes, {register_name, g, y, {pid, c, 1}}},
             {c, {no, cannot_register_in_remote_group}, {register_name, g, y, {pid, c, 1}}},
             {a, {no, not_a_pid}, {register_name, g, y, {pid, e, 1}}},
             {a, {no, dead_pid}, {register_name, g, y, {pid, b, 1}}},
             {b, {no, pid_is_already_registered}, {re_register_name, g, x, {pid, a, 1}}},
             {b, yes, {re_register_name, g, x, {pid, a, 2}}},
             {c, {no, cannot_re_register_in_remote_group}, {re_register_name, g, x, {pid, c, 1}}},
             {b, ok, {unregister_name, g, nothing}},
             {c, {no, cannot_unregister_from_remote_group}, {unregister_name, g, x}},
             {a, {no, cannot_register_in_remote_group}, {register_name, undefined, x, {pid, a, 2}}},
             {c, yes, {register_name, undefined, x, {pid, c, 1}}},
             {b, {pid, a, 1}, {send, g, x, m}}, {b, {badarg, {g, y, m}}, {send, g, y, m}},
             {c, {pid, a, 1}, {send, b, g, x, m}}, {c, {badarg, {f, x, m}}, {send, b, f, x, m}},
             {b, #{pid => {pid, a, 1}, home => a, meta => undefined}, {lookup, g, x}},
             {c, {error, no_information_about_remote_group}, {lookup, g, x}},
             {c, [], {registered_names, {s_group, g}}},
             {b, [{g, x}], {registered_names, {s_group, g}}},
             {c, [{g, x}], {registered_names, {node, b}}}]],
    {_, S} = last(Base ++ [{c, {send, b, g, x, m}}]),
    ?assertMatch(#{processes := #{{pid, a, 1} := [m]}}, sderl_model:view(a, S)).

%% Members of several groups tell each group of the others. A node that becomes free remembers what
%% it was told.
known_test() ->
    Base = [{a, {new_s_group, g, [a, b]}}, {b, {new_s_group, f, [b, c]}}, {c, spawn},
            {c, {register_name, f, x, {pid, c, 1}}}],
    {V, S} = last(Base ++ [{a, {whereis_name, f, x}}]),
    ?assertEqual({pid, c, 1}, V),
    ?assertMatch(#{links := [b], known := [{f, [b, c]}]}, sderl_model:view(a, S)),
    ?assertEqual({[g], [f]}, element(1, run(S, s_groups, a))),
    {Sent, S1} = last(Base ++ [{b, {remove_nodes, g, [a]}}, {a, {send, f, x, m}}]),
    ?assertEqual({pid, c, 1}, Sent),
    ?assertEqual(undefined, element(1, run(S1, s_groups, a))),
    ?assertMatch(#{links := [b]}, sderl_model:view(a, S1)).

%% Islands that meet with a name on both sides.
clash_test() ->
    Base = [{a, spawn},
            {b, spawn},
            {b, spawn},
            {a, {register_name, undefined, x, {pid, a, 1}}},
            {b, {register_name, undefined, x, {pid, b, 1}}},
            {b, {register_name, undefined, y, {pid, b, 2}}},
            {a, {whereis_name, b, undefined, x}}],
    {V, S} = last(Base),
    ?assertEqual({pid, b, 1}, V),
    [Choice] = sderl_model:open(S),
    ?assertError({open, _}, run(S, own_nodes, a)),
    Kept = sderl_model:choose(Choice, {pid, a, 1}, S),
    ?assertEqual([{{undefined, x}, {pid, a, 1}}, {{undefined, y}, {pid, b, 2}}],
                 maps:get(names, sderl_model:view(b, Kept))),
    ?assertEqual({{no, dead_pid}, Kept}, run(Kept, {register_name, undefined, z, {pid, b, 1}}, b)),
    {_, Told} = all(Base, sderl_model:new(#{nodes => [a, b], resolver => notify_all_name})),
    [Clash] = sderl_model:open(Told),
    ?assertEqual([none], sderl_model:options(Clash, Told)),
    ?assertMatch(#{names := [{{undefined, y}, _}],
                   processes := #{{pid, b, 1} := [{global_name_conflict, x, {pid, a, 1}}]}},
                 sderl_model:view(b, sderl_model:choose(Clash, none, Told))).

crash_test() ->
    Base = [{a, {new_s_group, g, [a, b, c]}}, {a, spawn}, {b, spawn}, {b, spawn}, {d, spawn},
            {a, {register_name, g, x, {pid, a, 1}}},
            {b, {register_name, g, y, {pid, b, 1}}}, {b, {register_name, g, z, {pid, d, 1}}},
            {b, crash}],
    {ok, S} = last(Base),
    ?assertEqual([{{g, x}, {pid, a, 1}}], maps:get(names, sderl_model:view(c, S))),
    ?assertMatch(#{groups := [{g, [a, b, c]}], links := [c]}, sderl_model:view(a, S)),
    ?assertError({node_is_down, b}, run(S, own_nodes, b)),
    {ok, Back} = run(S, restart, b),
    ?assertEqual(maps:with([names, links, groups], (sderl_model:view(a, S))#{links := [a, c]}),
                 maps:with([names, links, groups], sderl_model:view(b, Back))),
    ?assertEqual({{no, dead_pid}, Back}, run(Back, {register_name, g, y, {pid, b, 1}}, b)),
    %% No member is left that could admit them again.
    {ok, None} = last([{a, {new_s_group, g, [a, b]}}, {a, crash}, {b, crash}, {a, restart}]),
    ?assertEqual([{undefined, [a]}], maps:get(groups, sderl_model:view(a, None))).

%% When the home of a name has left, nobody outside can say which member answers for the name. If a
%% member crashes then, the name may stay or go.
orphan_test() ->
    {ok, S} = last([{b, spawn},
                    {a, {new_s_group, g, [a, b, c]}},
                    {b, {register_name, g, x, {pid, b, 1}}},
                    {a, {remove_nodes, g, [b]}},
                    {c, crash}]),
    [{orphan, g, [a, c], x} = Choice] = sderl_model:open(S),
    ?assertEqual([[{{g, x}, {pid, b, 1}}], []],
                 [maps:get(names, sderl_model:view(a, sderl_model:choose(Choice, C, S)))
                  || C <- [keep, lose]]).

may_link_test() ->
    {yes, S} = last([{a, {new_s_group, g, [a, b]}}, {c, spawn},
                     {a, {register_name, g, x, {pid, c, 1}}}]),
    ?assertEqual([{a, c}, {b, c}], sderl_model:may_link(S)),
    ?assertEqual([b], maps:get(links, sderl_model:view(c, sderl_model:linked(c, b, S)))),
    ?assertError({unexpected_link, a, d}, sderl_model:linked(a, d, S)).

show_test() ->
    {_, S} = last([{a, {new_s_group, g, [a, b, h]}}, {a, spawn},
                   {a, {register_name, g, x, {pid, a, 1}}}, {c, crash}]),
    ?assertEqual(
        "group g: a b h, names x -> {pid,a,1}\nisland: c\nisland: d\ndown: c\nlinks: a-b,h b-h\n",
        unicode:characters_to_list(sderl_model:format(S))
    ).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pattern_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([some/1, shape/1]).

%% ---------------------------------------------------------------- published numbers

%% ACO: (nodes, branching) -> {levels, used}, computed with the original program.
aco_test_() ->
    [?_assertEqual(Expected, sderl_pattern:tree_fit(Nodes, P))
     || {Nodes, P, Expected} <- [{150, 5, {3, 131}}, {5, 2, {2, 5}}, {11, 2, {3, 11}},
                                 {23, 2, {4, 23}}, {226, 15, {2, 226}}, {256, 15, {2, 226}},
                                 {250, 5, {3, 131}}, {4, 2, {0, 0}}, {0, 2, {0, 0}}]].

%% One group of the root and its five, and five groups of five for each of those.
aco_groups_test() ->
    {ok, #{groups := Groups, left_out := Out} = Plan} =
        sderl_pattern:tree(some(150), #{branching => 5, remainder => left_out}),
    ?assertEqual(19, length(Out)),
    ?assertEqual([6], lists:usort([length(Ns) || #{nodes := Ns} <- Groups])),
    ?assertEqual({1, 25}, {length([h || #{role := hub} <- Groups]),
                           length([w || #{role := workers} <- Groups])}),
    #{links := #{each := Each}, single_points := Single} = sderl_plan:predict(Plan),
    ?assertEqual([{5, 126}, {30, 5}], histogram(maps:values(Each))),
    ?assertEqual(5, length(Single)).

%% Links of Orbit: the master S, a submaster (N-1)/S + S - 1, a worker (N-1)/S - 1.
orbit_test_() ->
    [{lists:flatten(io_lib:format("~b nodes, ~b groups", [N, S])), fun() ->
        {ok, Plan} = sderl_pattern:star(some(N), #{groups => S, masters => 1}),
        #{links := #{each := Each}} = sderl_plan:predict(Plan),
        Group = (N - 1) div S,
        Expected = lists:sort([S] ++ lists:duplicate(S, Group + S - 1) ++
                              lists:duplicate(N - 1 - S, Group - 1)),
        ?assertEqual(Expected, lists:sort(maps:values(Each)))
    end} || {N, S} <- [{13, 3}, {101, 10}, {257, 16}]].

histogram(Values) -> [{V, length([x || X <- Values, X =:= V])} || V <- lists:usort(Values)].

%% ---------------------------------------------------------------- shapes

ring_test() ->
    {ok, #{groups := Groups, edges := Edges}} = sderl_pattern:ring(some(9), #{groups => 3}),
    ?assertEqual([['n1', 'n2', 'n3', 'n7'], ['n4', 'n5', 'n6', 'n1'], ['n7', 'n8', 'n9', 'n4']],
                 [Ns || #{nodes := Ns} <- Groups]),
    ?assertEqual([#{from => {group, 1}, to => [{group, 2}], gateways => [n1]},
                  #{from => {group, 2}, to => [{group, 3}], gateways => [n4]},
                  #{from => {group, 3}, to => [{group, 1}], gateways => [n7]}], Edges).

grid_test() ->
    {ok, #{groups := Groups, edges := Edges}} =
        sderl_pattern:grid(some(35), #{groups => 7, columns => 3}),
    ?assertEqual(7, length(Groups)),
    ?assertEqual([{1, 2}, {1, 4}, {2, 3}, {2, 5}, {3, 6}, {4, 5}, {4, 7}, {5, 6}],
                 lists:sort([{F, T} || #{from := {group, F}, to := [{group, T}]} <- Edges])).

%% Two hubs: every group survives the loss of any node, with no more links than with one gateway.
hubs_test() ->
    {ok, Plan} = sderl_pattern:star(some(100), #{size => 10, gateways => 2, hubs => 2}),
    ?assertMatch(#{links := #{max := 18}, single_points := [], groups := 12, hops := #{max := 3}},
                 sderl_plan:predict(Plan)).

remainder_test_() ->
    Sizes = fun(Options) ->
        case sderl_pattern:star(some(23), Options) of
            {ok, #{groups := [_ | Gs], left_out := Out}} ->
                {[length(Ns) || #{nodes := Ns} <- Gs], length(Out)};
            Error -> Error
        end
    end,
    [?_assertEqual(Expected, Sizes(Options)) || {Options, Expected} <- [
        {#{groups => 5}, {[5, 5, 5, 4, 4], 0}},
        %% Orbit's
        {#{groups => 5, remainder => last}, {[4, 4, 4, 4, 7], 0}},
        {#{groups => 5, remainder => left_out}, {[4, 4, 4, 4, 4], 3}},
        {#{groups => 5, remainder => error}, {error, {remainder, 3, 5}}},
        {#{size => 5}, {[5, 5, 5, 4, 4], 0}},
        {#{size => 5, remainder => last}, {[5, 5, 5, 5, 3], 0}},
        {#{size => 5, remainder => left_out}, {[5, 5, 5, 5], 3}},
        {#{size => 5, remainder => error}, {error, {remainder, 3, 4}}}
    ]].

by_attribute_test() ->
    Region = #{N => case I rem 3 of 0 -> eu; 1 -> us; 2 -> asia end
               || {I, N} <- lists:enumerate(some(30))},
    {ok, #{groups := Groups}} = sderl_pattern:star(some(30), #{order => {attribute, Region}}),
    ?assertEqual([{group, hub}, {group, asia}, {group, eu}, {group, us}],
                 [G || #{name := G} <- Groups]),
    {ok, #{groups := [_ | Halves]}} =
        sderl_pattern:star(some(30), #{order => {attribute, Region}, size => 6}),
    [?assertEqual([V], lists:usort([map_get(N, Region) || N <- Ns]))
     || #{name := {group, V, _}, nodes := Ns} <- Halves],
    ?assertEqual([5], lists:usort([length(Ns) || #{nodes := Ns} <- Halves])),
    ?assertMatch({error, {no_value, n31}},
                 sderl_pattern:star(some(31), #{order => {attribute, Region}})),
    ?assertMatch({error, {value_too_few, _, 10, 11}},
                 sderl_pattern:star(some(30), #{order => {attribute, Region}, gateways => 11})).

%% Racks of ten nodes, dealt out in turn: a group is a rack again.
by_distance_test_() ->
    Nodes = some(40),
    Rack = #{N => I rem 4 || {I, N} <- lists:enumerate(Nodes)},
    Distance = fun(A, B) ->
        case map_get(A, Rack) =:= map_get(B, Rack) of true -> 0.25; false -> 1.0 end
    end,
    Matrix = #{A => #{B => Distance(A, B) || B <- Nodes} || A <- Nodes},
    Traffic = [{[N || N <- Nodes, map_get(N, Rack) =:= R],
                [N || N <- Nodes, map_get(N, Rack) =:= R], 90}
               || R <- [0, 1, 2, 3]]
        ++ [{Nodes, Nodes, 40}],
    [{atom_to_list(element(1, Order)), fun() ->
        {ok, #{groups := [_ | Groups]}} =
            sderl_pattern:star(Nodes, #{size => Size, order => Order}),
        [?assertEqual(1, length(lists:usort([map_get(N, Rack) || N <- Ns])))
         || #{nodes := Ns} <- Groups],
        ?assertEqual(4, length(Groups))
    end}
     || Size <- [10, 12], Order <- [{distance, Distance}, {distance, Matrix}, {traffic, Traffic}]].

%% With the tree of sderl_dist, as published.
by_dist_test() ->
    ok = sderl_dist:set({network, [{network, [{node, N} || N <- Rack]}
                                   || Rack <- [[n1, n4, n7], [n2, n5, n8], [n3, n6, n9]]]}),
    {ok, #{groups := Groups}} =
        sderl_pattern:ring(some(9), #{size => 4, order => {distance, fun sderl_dist:distance/2}}),
    ?assertEqual([[n1, n4, n7], [n2, n5, n8], [n3, n6, n9]],
                 lists:sort([lists:sort(lists:sublist(Ns, 3)) || #{nodes := Ns} <- Groups])),
    ?assertEqual({error, {no_distance, n1, n10}},
                 sderl_pattern:chain(some(10),
                                     #{size => 4, order => {distance, fun sderl_dist:distance/2}})).

no_distance_test() ->
    ?assertEqual({error, {no_distance, n1, n2}},
                 sderl_pattern:chain(some(4), #{size => 2, order => {distance, #{}}})).

%% ---------------------------------------------------------------- errors

contradictions_test_() ->
    [{atom_to_list(element(1, Reason)), fun() ->
        ?assertEqual({error, Reason}, sderl_pattern:new(Pattern, some(N), Options)),
        sentence(Reason)
     end} || {Pattern, N, Options, Reason} <- [
        {star, 10, #{}, {no_size, star}},
        {star, 10, #{size => 5, groups => 2}, {size_and_groups}},
        {tree, 10, #{groups => 5, branching => 2}, {tree_of_groups}},
        {tree, 10, #{size => 5}, {no_branching}},
        {tree, 4, #{branching => 2}, {too_few_nodes, tree, 4, 5}},
        {tree, 50, #{branching => 2, size => 2, gateways => 3}, {size_too_small_for_tree, 2}},
        {tree, 50, #{branching => 2, size => 5, levels => 2}, {too_large, 26, 5}},
        {star, 0, #{size => 5}, {no_nodes}},
        {star, 10, #{size => 5, hubs => 2}, {fewer_gateways_than_hubs, 1, 2}},
        {star, 10, #{groups => 1}, {too_few_groups, star, 1, 2}},
        {ring, 10, #{groups => 2}, {too_few_groups, ring, 2, 3}},
        {ring, 10, #{groups => 6, gateways => 2}, {too_few_nodes, any, 10, 12}},
        {ring, 10, #{size => 3, gateways => 2}, {size_too_small, ring, 3, 4}},
        {star, 10, #{size => 4, remainder => last, gateways => 3}, {last_too_small, 2, 3}},
        {star, 10, #{size => 5, names => [a, b, c]}, {names_number, 3, 2}},
        {star, 10, #{size => 5, names => [a, a]}, {name_twice, a}},
        {star, 10, #{size => 5, names => [a, undefined]}, {reserved_name}}
    ]].

twice_test() -> ?assertEqual({error, {node_twice, a}}, sderl_pattern:star([a, b, a], #{size => 2})).

misuse_test_() ->
    [?_assertError({badarg, {sderl_pattern, _, _}, #{argument := _, found := _, expected := _}},
                   F())
     || F <- [
         fun() -> sderl_pattern:star(nodes, #{size => 2}) end,
         fun() -> sderl_pattern:star([a, "b"], #{size => 2}) end,
         fun() -> sderl_pattern:star([a, b], #{size => two}) end,
         fun() -> sderl_pattern:star([a, b], #{levels => 2}) end,
         fun() -> sderl_pattern:star([a, b], []) end,
         fun() -> sderl_pattern:star([a, b], #{order => random}) end,
         fun() -> sderl_pattern:new(cube, [a, b], #{}) end,
         fun() -> sderl_pattern:tree_fit(5, 1) end,
         fun() -> sderl_pattern:tree_fit(-1, 2) end,
         fun() -> sderl_pattern:star([a | b], #{size => 2}) end
     ] ++ [fun() -> apply(sderl_pattern, F, Args) end
           || {F, Args} <- [
               {nodes, [x]}, {gateways, [#{}]}, {home, [g, x]}, {groups_of, [a, []]}, {config, [x]},
               {write, ["/nowhere/x", x]},
               {grow, [x, [a]]}, {shrink, [#{groups => []}, [a]]}, {changes, [x, x]},
               {changes, [#{groups => []}, x]}
           ]]].

%% Every reason has words: none falls back to its term.
sentence(Reason) ->
    Text = sderl_plan:format_error(Reason),
    ?assert(is_list(Text) andalso io_lib:printable_unicode_list(Text)),
    ?assertNotEqual(lists:flatten(io_lib:format("~0tp", [Reason])), Text).

check_test_() ->
    {ok, #{groups := [G | Gs], edges := [E | Es]} = Plan} =
        sderl_pattern:ring(some(9), #{groups => 3}),
    [?_assertEqual(ok, sderl_pattern:check(Plan)) |
     [{atom_to_list(element(1, Reason)), fun() ->
        ?assertEqual({error, Reason}, sderl_pattern:check(Bad)),
        sentence(Reason)
      end} || {Bad, Reason} <- [
        {[], {not_a_plan}},
        {Plan#{version := 2}, {plan_version, 2}},
        {Plan#{more => 2}, {not_a_plan}},
        {Plan#{groups := [G#{nodes := []} | Gs]}, {empty_group, {group, 1}}},
        {Plan#{groups := [G#{nodes := [n1, n2, n1]} | Gs]}, {node_twice_in_group, n1, {group, 1}}},
        {Plan#{groups := [G#{nodes := [1]} | Gs]}, {not_a_plan}},
        {Plan#{groups := [G#{name := {group, 2}} | Gs]}, {name_twice, {group, 2}}},
        {Plan#{groups := [G#{name := undefined} | Gs]}, {reserved_name}},
        {Plan#{edges := [E#{to := [x]} | Es]}, {edge_of_unknown_group, x}},
        {Plan#{edges := [E#{gateways := [n5]} | Es]}, {gateway_not_member, n5, {group, 1}}},
        {Plan#{edges := [E, E | Es]}, {gateway_twice, n1}}
     ]]].

%% ---------------------------------------------------------------- files and configuration

file_test() ->
    {ok, Plan} = sderl_pattern:grid(['äpfel@host' | some(20)], #{size => 8}),
    File = filename:join(filename:basedir(user_cache, "sderl_pattern_tests"),
                         "plan-" ++ os:getpid()),
    ok = filelib:ensure_dir(File),
    try
        ok = sderl_pattern:write(File, Plan),
        ?assertEqual({ok, Plan}, sderl_pattern:read(File)),
        ?assertEqual({ok, [Plan]}, file:consult(File)),
        ok = file:write_file(File, "a. b."),
        ?assertMatch({error, {not_one_term, _, 2}}, sderl_pattern:read(File))
    after file:delete(File)
    end,
    ?assertMatch({error, {cannot_read, _, enoent}}, sderl_pattern:read(File)),
    ?assertMatch({error, {cannot_write, _, enoent}},
                 sderl_pattern:write(filename:join(File, "x"), Plan)).

%% Marks of direction and what nobody sees are shown in the file, and read as they were.
hidden_characters_test() ->
    Odd = [16#202e, 16#200b, 16#ad, 16#7f, 1, 16#e0041, 16#2800],
    Nodes = [list_to_atom([$n, Char, $o, $@, $h]) || Char <- Odd] ++ some(9),
    {ok, #{groups := [G | Gs]} = Grid} = sderl_pattern:grid(Nodes, #{size => 8}),
    Plan = Grid#{groups := [G#{name := {"two", <<"g", 16#202e/utf8>>, [$g, 16#2066]}} | Gs],
                 edges := []},
    File = filename:join(filename:basedir(user_cache, "sderl_pattern_tests"),
                         "hidden-" ++ os:getpid()),
    ok = filelib:ensure_dir(File),
    try
        ok = sderl_pattern:write(File, Plan),
        {ok, Text} = file:read_file(File),
        ?assertEqual([], [Char || <<Char/utf8>> <= Text, sderl_visible:is_hidden(Char)]),
        ?assertNotEqual(nomatch, string:find(Text, "'n\\x{202e}o@h'")),
        ?assertEqual({ok, [Plan]}, file:consult(File)),
        ?assertEqual({ok, Plan}, sderl_pattern:read(File))
    after file:delete(File)
    end,
    Svg = unicode:characters_to_binary(sderl_plan_draw:svg(Grid)),
    ?assertEqual([], [Char || <<Char/utf8>> <= Svg, sderl_visible:is_hidden(Char)]).

%% sderl_config takes it as it is.
config_test() ->
    Nodes = [list_to_atom("n" ++ integer_to_list(I) ++ "@host") || I <- lists:seq(1, 9)],
    {ok, Plan} = sderl_pattern:ring(Nodes, #{groups => 3}),
    {ok, #{groups := Own, warnings := []}} =
        sderl_config:parse([sderl_pattern:config(Plan)], undefined, hd(Nodes)),
    ?assertEqual([{group, 1}, {group, 2}], [G || #{name := G} <- Own]).

%% ---------------------------------------------------------------- properties

some(Count) -> [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)].

options() ->
    ?LET({Pattern, Size, Groups, K, Remainder, Hubs, Masters, P, Leaves},
         {oneof([star, tree, ring, chain, grid]), integer(2, 30), integer(1, 12), integer(1, 3),
          oneof([spread, last, left_out]),
          integer(1, 3), integer(0, 2), integer(2, 4), integer(1, 4)},
         {Pattern, maps:merge(#{gateways => K, remainder => Remainder}, case Pattern of
             star when Size rem 2 =:= 0 -> #{size => Size, hubs => Hubs, masters => Masters};
             star -> #{groups => Groups, hubs => Hubs, masters => Masters};
             tree when Size rem 3 =:= 0 -> #{branching => P, leaves => Leaves};
             tree -> #{branching => P, size => Size, leaves => Leaves};
             _ when Size rem 2 =:= 0 -> #{size => Size};
             _ -> #{groups => Groups}
         end)}).

plan_test_() ->
    [sderl_prop:eunit("a plan keeps to its options", 1500, fun prop_plan/0),
     sderl_prop:eunit("neighbourhoods lose nobody and keep to the size", 300,
                      fun prop_neighbours/0),
     sderl_prop:eunit("a plan that grows and shrinks keeps its shape", 800, fun prop_change/0)].

prop_plan() ->
    ?FORALL({Count, {Pattern, Options}}, {integer(1, 150), options()},
        case sderl_pattern:new(Pattern, some(Count), Options) of
            {ok, Plan} -> good(Plan, some(Count), Options);
            {error, Reason} -> is_list(sderl_plan:format_error(Reason))
        end).

prop_neighbours() ->
    ?FORALL({Count, {Pattern, Options}, Seed}, {integer(1, 60), options(), integer()},
            begin
                Distance = fun(A, B) -> erlang:phash2({Seed, min(A, B), max(A, B)}, 100) end,
                Traffic = [{A, B, 1 + erlang:phash2({Seed, A, B}, 9)}
                           || A <- some(Count), B <- some(Count),
                              erlang:phash2({B, Seed, A}, 4) =:= 0],
                lists:all(fun(Order) ->
                    case sderl_pattern:new(Pattern, some(Count), Options#{order => Order}) of
                        {ok, Plan} -> good(Plan, some(Count), Options);
                        {error, _} -> true
                    end
                end, [{distance, Distance}, {traffic, Traffic}])
            end).

%% What holds of every plan. Links are counted here anew.
good(#{groups := Groups, edges := Edges, left_out := Out} = Plan, Nodes, Options) ->
    #{links := #{each := Each, max := Max}, hops := #{unreachable := Unreachable},
      single_points := Single} = sderl_plan:predict(Plan),
    In = lists:usort([N || #{nodes := Ns} <- Groups, N <- Ns]),
    Pairs = lists:usort([{A, B} || #{nodes := Ns} <- Groups, A <- Ns, B <- Ns, A =/= B]),
    Counted = lists:foldl(fun({A, _}, M) -> maps:update_with(A, fun(C) -> C + 1 end, M) end,
                          #{N => 0 || N <- In}, Pairs),
    Checks = [
        {checked, sderl_pattern:check(Plan) =:= ok},
        {all, lists:sort(In ++ Out) =:= lists:sort(Nodes)},
        {left_out, Out =:= [] orelse maps:get(remainder, Options) =:= left_out},
        {size, lists:all(fun
            (#{role := hub}) -> true;
            (#{nodes := Ns}) -> length(Ns) =< maps:get(size, Options, infinity)
        end, Groups)},
        {links, Each =:= Counted andalso Max =:= lists:max([0 | maps:values(Counted)])},
        {connected,
         Unreachable =:= 0
         andalso length(sderl_plan_graph:components(sderl_plan_graph:memberships(Plan))) =:= 1},
        {redundant,
         maps:get(gateways, Options) =:= 1
         orelse maps:get(hubs, Options, 1) > maps:get(gateways, Options) orelse Single =:= []},
        {single, maps:get(gateways, Options) > 1
                 orelse lists:all(fun({N, _}) -> parts(N, Groups) end, Single)},
        {one_home, lists:sort(lists:append([sderl_pattern:home(G, Plan)
                                            || #{name := G} <- Groups])) =:= lists:sort(In)},
        {edges, lists:all(fun(#{from := F, to := To, gateways := Gs}) ->
            Gs -- sderl_pattern:home(F, Plan) =:= []
                andalso lists:all(fun(T) -> Gs -- members(T, Groups) =:= [] end, To)
        end, Edges)}
    ],
    case [What || {What, false} <- Checks] of
        [] -> true;
        Broken -> io:format("~p~n~p~n", [Broken, Plan]), false
    end.

members(Name, Groups) -> hd([Ns || #{name := G, nodes := Ns} <- Groups, G =:= Name]).

%% By another way than the planner's: flood the nodes.
parts(Node, Groups) ->
    [First | _] = Rest = lists:usort([N || #{nodes := Ns} <- Groups, N <- Ns, N =/= Node]),
    flood([First], [Ns -- [Node] || #{nodes := Ns} <- Groups], [First]) =/= Rest.

flood([], _, Seen) -> lists:sort(Seen);
flood([N | Ns], Groups, Seen) ->
    New = lists:usort([M || G <- Groups, lists:member(N, G), M <- G]) -- Seen,
    flood(Ns ++ New, Groups, New ++ Seen).

prop_change() ->
    ?FORALL({Count, {Pattern, Options}, Changes},
            {integer(1, 60), options(), list({oneof([grow, shrink]), integer(1, 15)})},
            case sderl_pattern:new(Pattern, some(Count), Options) of
                {ok, Plan} -> changes(Changes, Plan, Count + 1);
                {error, _} -> true
            end).

changes([], _, _) -> true;
changes([{grow, Count} | Changes], Plan, Next) ->
    New = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(Next, Next + Count - 1)],
    case sderl_pattern:grow(Plan, New) of
        {ok, Grown} ->
            lists:sort(sderl_pattern:nodes(Plan) ++ New) =:= sderl_pattern:nodes(Grown)
                andalso kept(Plan, Grown)
                andalso changes(Changes, Grown, Next + Count);
        {error, {Why, _}} when Why =:= none_to_spare; Why =:= full ->
            changes(Changes, Plan, Next + Count)
    end;
changes([{shrink, Count} | Changes], Plan, Next) ->
    Nodes = sderl_pattern:nodes(Plan),
    Out = lists:sublist([N || {_, N} <- lists:sort([{erlang:phash2({N, Count}), N} || N <- Nodes])],
                        Count),
    case sderl_pattern:shrink(Plan, Out) of
        {ok, Less} ->
            sderl_pattern:nodes(Less) =:= Nodes -- Out andalso kept(Plan, Less)
                andalso changes(Changes, Less, Next);
        {error, {too_few_nodes_for, _, _}} -> changes(Changes, Plan, Next);
        {error, {full, _}} -> changes(Changes, Plan, Next)
    end.

%% The same shape: sound, within the size, edges of the pattern with their gateways.
kept(#{options := Options} = Before, #{options := After, left_out := Out} = Plan) ->
    maps:without([columns], Options) =:= maps:without([columns], After)
        andalso good(Plan, sderl_pattern:nodes(Plan) ++ Out, Options)
        andalso (shape(Before) =:= shape(Plan) orelse shape(Plan)).

%% Whether the edges are those of the pattern for so many groups, each with its number of gateways.
shape(#{pattern := Pattern, groups := Groups, edges := Edges, options := Options}) ->
    Workers = [G || #{name := G, role := workers} <- Groups],
    K = maps:get(gateways, Options),
    Found = lists:sort([{place(F, Workers), place(T, Workers), length(Gs)}
                        || #{from := F, to := [T], gateways := Gs} <- Edges, Pattern =/= tree]),
    G = length(Workers),
    case Pattern of
        star ->
            H = maps:get(hubs, Options, 1),
            lists:sort([{I, hub, K div H + case J =< K rem H of true -> 1; false -> 0 end}
                        || I <- lists:seq(1, G), J <- lists:seq(1, H)]) =:= Found;
        chain -> [{I, I + 1, K} || I <- lists:seq(1, G - 1)] =:= Found;
        ring when G =:= 1 -> Found =:= [];
        ring -> lists:sort([{I, I rem G + 1, K} || I <- lists:seq(1, G)]) =:= Found;
        %% Columns of a grid that shrank are no longer told by the number of its groups.
        grid ->
            length(Found) =< 2 * G
                andalso lists:all(fun({I, J, L}) -> I < J andalso L =:= K end, Found);
        tree -> lists:all(fun(#{gateways := Gs}) -> length(Gs) =:= K end, Edges)
    end.

place(Name, Workers) ->
    case [I || {I, W} <- lists:enumerate(Workers), W =:= Name] of
        [I] -> I;
        [] -> hub
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_pick_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

pick(Choose, Count, Entries) -> pick(Choose, Count, Entries, 1).
pick(Choose, Count, Entries, Seed) ->
    sderl_place_pick:pick(Choose, Count, auto, Entries, sderl_place_pick:random(Seed)).

simple_test() ->
    Es = [{a, 0, 3, 0}, {b, 0, 1, 0}, {c, 0, 2, 0}],
    ?assertEqual([b, c, a], pick({least, x}, 3, Es)),
    ?assertEqual([a, c, b], pick({most, x}, all, Es)),
    ?assertEqual([b, c], pick({nearest, from}, 2, Es)),
    ?assertEqual([a, b], pick(in_order, 2, Es)),
    ?assertEqual([a, b, c], pick(in_order, 7, Es)),
    ?assertEqual([], pick(random, 2, [])),
    ?assertEqual([a, b, c], lists:sort(pick({two, least, x}, all, Es))),
    ?assertEqual([b, a], pick({two, least, x}, 2, [{a, 0, 3, 0}, {b, 0, 1, 0}])).

pending_test() ->
    %% Two choices make up for the difference.
    ?assertEqual([a], pick({least, x}, 1, [{a, 0, 0, 1}, {b, 0, 100, 0}])),
    ?assertEqual([b], pick({least, x}, 1, [{a, 0, 0, 2}, {b, 0, 100, 0}])),
    ?assertEqual([b], pick({most, x}, 1, [{a, 0, 100, 9}, {b, 0, 0, 0}])),
    ?assertEqual([a], sderl_place_pick:pick({least, x}, 1, 1, [{a, 0, 0, 9}, {b, 0, 100, 0}],
                                            sderl_place_pick:random(1))),
    ?assertEqual([b],
                 pick({nearest, from}, 1, [{a, 0, 0.5, 1}, {b, 0, 0.5, 0}, {c, 0, unknown, 0}])).

preferred_test() ->
    Es = [{a, 0, 1, 0}, {b, 2, 9, 0}, {c, 1, 5, 0}, {d, 2, 8, 0}],
    [?assertEqual([d, b, c, a], pick(C, all, Es, S))
     || C <- [{least, x}, {nearest, from}], S <- lists:seq(1, 9)],
    [?assert(lists:member(hd(pick(random, 1, Es, S)), [b, d])) || S <- lists:seq(1, 50)].

spread_test() ->
    Es = [{a1, 0, a, 0}, {a2, 0, a, 0}, {a3, 0, a, 0}, {b1, 0, b, 0}],
    [?assertMatch([1, 1], counts(pick({spread, host}, 2, Es, S), Es)) || S <- lists:seq(1, 20)],
    [?assertMatch([1, 2], lists:sort(counts(pick({spread, host}, 3, Es, S), Es)))
     || S <- lists:seq(1, 20)],
    %% One choice after the other is spread too.
    ?assertEqual([b1], pick({spread, host}, 1, [{a1, 0, a, 0}, {a2, 0, a, 1}, {b1, 0, b, 0}])).

%% Ties are broken at random, and equally.
random_test() ->
    Es = [{I, 0, 0, 0} || I <- lists:seq(1, 10)],
    [begin
         Times = maps:values(maps:groups_from_list(fun(N) -> N end, [hd(pick(C, 1, Es, S))
                                                                     || S <- lists:seq(1, 5000)])),
         ?assertEqual(10, length(Times)),
         [?assert(T > 350 andalso T < 650) || Ts <- Times, T <- [length(Ts)]]
     end || C <- [random, {least, x}, {two, least, x}, {nearest, from}, {spread, host}]].

counts(Nodes, Es) ->
    [length(Ns)
     || _ := Ns <- maps:groups_from_list(fun(N) -> element(3, lists:keyfind(N, 1, Es)) end, Nodes)].

properties_test_() ->
    [sderl_prop:eunit("a subset, as many as asked for, the preferred first", 500,
                      fun prop_subset/0),
     sderl_prop:eunit("a seed decides all", 200, fun prop_seed/0),
     sderl_prop:eunit("least is least", 300, fun prop_least/0),
     sderl_prop:eunit("quickly or thoroughly", 500, fun prop_best/0),
     sderl_prop:eunit("a spread quickly or thoroughly", 500, fun prop_emptiest/0),
     sderl_prop:eunit("the fewest choices", 300, fun prop_fewest/0),
     sderl_prop:eunit("spread is balanced", 300, fun prop_spread/0),
     sderl_prop:eunit("only the keys of a node that went move", 300, fun prop_hash/0),
     sderl_prop:eunit("two never takes the worst of several", 300, fun prop_two/0)].

prop_subset() ->
    ?FORALL({Choose, Count, Es, Seed},
            {chooser(), oneof([all, range(1, 12)]), entries(), integer()},
            begin
                Picked = pick(Choose, Count, Es, Seed),
                Scores = [element(2, lists:keyfind(N, 1, Es)) || N <- Picked],
                Best = lists:sublist(lists:reverse(lists:sort([S || {_, S, _, _} <- Es])),
                                     length(Picked)),
                length(Picked) =:= case Count of all -> length(Es); _ -> min(Count, length(Es)) end
                    andalso length(lists:usort(Picked)) =:= length(Picked)
                    andalso Picked -- [N || {N, _, _, _} <- Es] =:= []
                    andalso Scores =:= Best
            end).

prop_seed() ->
    ?FORALL({Choose, Es, Seed}, {chooser(), entries(), integer()},
            pick(Choose, 2, Es, Seed) =:= pick(Choose, 2, Es, Seed)).

prop_least() ->
    ?FORALL({Way, Count, Es0}, {oneof([least, most]), range(1, 5), entries()},
            begin
                Es = [{N, 0, V, P} || {N, _, V, P} <- Es0],
                Values = [0 || [] <- [Es]] ++ [V || {_, _, V, _} <- Es],
                Step = sderl_place_pick:step(auto, lists:min(Values), lists:max(Values)),
                Load = fun(N) ->
                    {_, _, V, P} = lists:keyfind(N, 1, Es),
                    sderl_place_pick:load(Way, V, P, Step)
                end,
                Picked = pick({Way, x}, Count, Es),
                Left = [N || {N, _, _, _} <- Es] -- Picked,
                lists:all(fun(P) -> lists:all(fun(L) -> Load(P) =< Load(L) end, Left) end, Picked)
            end).

%% No bucket that has nodes left got two fewer than another.
prop_spread() ->
    ?FORALL({Count, Es0, Seed}, {range(1, 12), entries(), integer()},
            begin
                Es = [{N, 0, V rem 4, P} || {N, _, V, P} <- Es0],
                Picked = pick({spread, host}, Count, Es, Seed),
                Over = fun(N) -> element(3, lists:keyfind(N, 1, Es)) end,
                Sizes = maps:map(fun(_, L) -> length(L) end,
                                 maps:groups_from_list(fun({_, _, V, _}) -> V end, Es)),
                Got = maps:map(fun(B, _) -> length([N || N <- Picked, Over(N) =:= B]) end, Sizes),
                Most = lists:max([0 | maps:values(Got)]),
                lists:all(fun({B, G}) -> G >= Most - 1 orelse G =:= maps:get(B, Sizes) end,
                          maps:to_list(Got))
            end).

prop_hash() ->
    ?FORALL({Es, Keys, I}, {some_entries(), non_empty(list(term())), nat()},
        begin
            Gone = element(1, lists:nth(1 + I rem length(Es), Es)),
            Same = [{N, 0, V, P} || {N, _, V, P} <- Es],
            Left = lists:keydelete(Gone, 1, Same),
            lists:all(fun(Key) ->
                [Before] = pick({hash, Key}, 1, Same, 1),
                [After] = pick({hash, Key}, 1, lists:reverse(Left), 2),
                Before =:= After orelse Before =:= Gone
            end, Keys)
        end).

prop_two() ->
    ?FORALL({Es0, Seed}, {some_entries(), integer()},
        begin
            Es = [{N, 0, I, 0} || {I, {N, _, _, _}} <- lists:enumerate(Es0)],
            [N] = pick({two, least, x}, 1, Es, Seed),
            element(3, lists:keyfind(N, 1, Es)) < length(Es)
        end).

%% The quick choice is one of those that the thorough one would make: the load is as low, and as few
%% are pending.
prop_best() ->
    ?FORALL({Es, Misfits, Seed}, {some_entries(), list(range(1, 10)), integer()},
            begin
                Fit = [{N, 0, V, P} || {{n, I} = N, _, V, P} <- Es, not lists:member(I, Misfits)],
                Values = [V || {_, _, V, _} <- Es],
                Step = sderl_place_pick:step(auto, lists:min(Values), lists:max(Values)),
                Load = fun(N) ->
                    {_, _, V, P} = lists:keyfind(N, 1, Es),
                    {sderl_place_pick:load(least, V, P, Step), P}
                end,
                Best = sderl_place_best:best(cells(Es), fun(_, Base) -> Base end,
                                             fun({n, I}) -> not lists:member(I, Misfits) end,
                                             fun(Lo, Hi) -> sderl_place_pick:step(auto, Lo, Hi) end,
                                             sderl_place_pick:random(Seed)),
                case sderl_place_pick:pick({least, x}, 1, Step, Fit,
                                           sderl_place_pick:random(Seed)) of
                    [] -> Best =:= none;
                    [Thorough] ->
                        {ok, Node} = Best,
                        lists:keymember(Node, 1, Fit) andalso Load(Node) == Load(Thorough)
                end
            end).

%% Here the base of a cell stands for the pending choices.
cells(Es) -> [{V, P, N} || {N, _, V, P} <- Es].

%% A spread takes a node of a part with the fewest choices, and of these parts one whose node has
%% the fewest.
prop_emptiest() ->
    ?FORALL({Es0, Misfits, Seed}, {some_entries(), list(range(1, 10)), integer()},
            begin
                Es = [{N, 0, V rem 3, P} || {N, _, V, P} <- Es0],
                Fit = [E || {{n, I}, _, _, _} = E <- Es, not lists:member(I, Misfits)],
                Emptiest = sderl_place_best:emptiest(cells(Es), fun(_, Base) -> Base end,
                                                     fun({n, I}) ->
                                                         not lists:member(I, Misfits)
                                                     end, sderl_place_pick:random(Seed)),
                Rank = fun(N) ->
                    {_, _, Part, P} = lists:keyfind(N, 1, Fit),
                    {lists:sum([Q || {_, _, Other, Q} <- Fit, Other =:= Part]), P}
                end,
                case sderl_place_pick:pick({spread, x}, 1, auto, Fit,
                                           sderl_place_pick:random(Seed)) of
                    [] -> Emptiest =:= none;
                    [Thorough] ->
                        {ok, Node} = Emptiest,
                        Rank(Node) =:= Rank(Thorough)
                end
            end).

prop_fewest() ->
    ?FORALL({Es, Seed}, {some_entries(), integer()},
            begin
                Pending = fun(N) -> element(4, lists:keyfind(N, 1, Es)) end,
                {ok, Node} = sderl_place_best:fewest([N || {N, _, _, _} <- Es], Pending,
                                                     sderl_place_pick:random(Seed)),
                Pending(Node) =:= lists:min([P || {_, _, _, P} <- Es])
            end).

%% Equal ones are chosen about equally often, whichever come first.
equal_test() ->
    Ns = lists:seq(1, 8),
    Often = fun(Choose) ->
        lists:sort([length(L)
                    || _ := L <- maps:groups_from_list(fun(N) -> N end,
                                                       [Choose(sderl_place_pick:random(S))
                                                        || S <- lists:seq(1, 4000)])])
    end,
    Ok = fun({ok, N}) -> N end,
    [begin
         Counts = Often(Choose),
         ?assertEqual(8, length(Counts)),
         ?assert(hd(Counts) > 380 andalso lists:last(Counts) < 620)
     end || Choose <- [
         fun(R) -> Ok(sderl_place_best:fewest(Ns, fun(_) -> 1 end, R)) end,
         fun(R) ->
             Ok(sderl_place_best:emptiest([{N rem 4, 0, N} || N <- Ns], fun(_, B) -> B end,
                                          fun(_) -> true end, R))
         end,
         fun(R) ->
             Ok(sderl_place_best:best([{1, 0, N} || N <- Ns], fun(_, B) -> B end,
                                      fun(_) -> true end, fun(_, _) -> 1 end, R))
         end
     ]].

%% The keys lie on all nodes, about equally: bounds that 2,000 keys do not leave by chance.
hash_balance_test() ->
    Nodes = [list_to_atom("n" ++ integer_to_list(I) ++ "@h") || I <- lists:seq(1, 10)],
    Es = [{N, 0, undefined, 0} || N <- Nodes],
    Keys = maps:groups_from_list(fun(K) -> hd(pick({hash, K}, 1, Es)) end, lists:seq(1, 2000)),
    [?assert(L > 120 andalso L < 290) || N <- Nodes, L <- [length(maps:get(N, Keys, []))]].

%% What decides must be the same in every release of the library, as nodes are upgraded one by one.
hash_stable_test() ->
    ?assertEqual([3949597103, 3377709049],
                 [sderl_place_pick:rendezvous(K, 'a@h') || K <- [key, {tenant, 7}]]).

chooser() ->
    oneof([random, in_order, {least, x}, {most, x}, {two, least, x}, {two, most, x},
           {nearest, from}, {spread, host}, {hash, k}]).

entries() -> ?LET(Rows, list(row()), entries(Rows)).

some_entries() -> ?LET({A, B, Rows}, {row(), row(), list(row())}, entries([A, B | Rows])).

row() -> {range(0, 2), range(0, 20), range(0, 3)}.

entries(Rows) -> [{{n, I}, S, V, P} || {I, {S, V, P}} <- lists:enumerate(Rows)].

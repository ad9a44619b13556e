%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_tests).
-moduledoc """
Link states and shortest paths: against an oracle, and in a network where everything breaks
(`sderl_route_net`).
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- paths

%% Groups that overlap, with links missing, and gateways that are known to everybody.
paths_test_() ->
    sderl_prop:eunit("routes are all the shortest paths", 500, fun prop_paths/0).

prop_paths() ->
    ?FORALL(
        {Lists, Broken},
        {list(non_empty(list(integer(1, 9)))), list({integer(1, 9), integer(1, 9)})},
        begin
            Groups = [{{g, K}, <<K>>, lists:usort(Ns)} || {K, Ns} <- lists:enumerate(Lists)],
            Of = fun(N) -> [G || {_, _, Ms} = G <- Groups, lists:member(N, Ms)] end,
            Linked = fun(A, B) ->
                not lists:member({A, B}, Broken) andalso not lists:member({B, A}, Broken)
            end,
            Mates = fun(N) ->
                [M
                 || M <- lists:usort(lists:append([Ms || {_, _, Ms} <- Of(N)])), M =/= N,
                    Linked(N, M)]
            end,
            All = lists:seq(1, 9),
            Gateways = [N || N <- All, length(Of(N)) > 1],
            Own = fun(N) -> groups(Of(N)) end,
            Db = #{N => {Own(N), [M || M <- Mates(N), lists:member(M, Gateways)]}
                   || N <- Gateways},
            Wrong = [{N, Is, Ought} || N <- All,
                Is <- [shown(sderl_route_paths:routes(N, Own(N), #{M => [] || M <- Mates(N)}, Db))],
                Ought <- [sderl_route_net:oracle(N, Groups, Linked, Gateways, All)], Is =/= Ought],
            ?WHENFAIL(io:format("~p~n~p~n", [Groups, Wrong]), Wrong =:= [])
        end
    ).

shown(#{groups := Groups, nodes := Nodes}) ->
    {#{G => {R, lists:sort(Ms)} || G := {R, Ms} <- Groups}, Nodes}.

groups(Memberships) -> #{G => {Uid, Ms} || {G, Uid, Ms} <- Memberships}.

%% One end says so and the other does not: there is no way.
both_ends_test() ->
    G = fun(N, Ms) -> {{g, N}, <<N>>, Ms} end,
    B = fun(Links) -> {groups([G(1, [a, b]), G(2, [b, c])]), Links} end,
    C = fun(Links) -> {groups([G(2, [b, c]), G(3, [c, d])]), Links} end,
    Reached = fun(Own, Up, Db) ->
        lists:sort(maps:get(reached, sderl_route_paths:routes(a, groups([Own]), Up, Db)))
    end,
    Own = G(1, [a, b]),
    ?assertEqual([b, c], Reached(Own, #{b => []}, #{b => B([c]), c => C([b])})),
    ?assertEqual([b], Reached(Own, #{b => []}, #{b => B([]), c => C([b])})),
    ?assertEqual([b], Reached(Own, #{b => []}, #{b => B([c]), c => C([])})),
    ?assertEqual([], Reached(Own, #{}, #{b => B([c]), c => C([b])})),
    %% One that was removed from our group, and has not said so here: linked all the same.
    ?assertEqual([], Reached(G(1, [a]), #{b => []}, #{b => B([])})),
    %% One that is in another group of that name.
    ?assertEqual([], Reached({{g, 1}, <<"other">>, [a, b]}, #{b => []}, #{b => B([])})).

%% ---------------------------------------------------------------- a network

%% Whatever broke: at rest, after some rounds of digests, every route is right, every walk arrives,
%% and only digests are sent.
network_test_() ->
    sderl_prop:eunit("routes of a network that was broken are right in the end", 400,
                     fun prop_network/0).

prop_network() -> prop_network(fun(Net) -> Net end).

%% Routers from before `change`, `summary` or `changes` know fewer messages of the same version.
%% What they ignore they get by their own digests.
older_test_() ->
    sderl_prop:eunit("routes are right in the end beside routers that know fewer messages", 200,
                     fun() -> prop_network(fun some_older/1) end).

some_older(Net) ->
    Each = fun() -> lists:sublist([change, summary], rand:uniform(3) - 1) end,
    sderl_route_net:older(#{N => Each() || N <- sderl_route_net:nodes(Net), rand:uniform(2) =:= 1},
                          Net).

prop_network(Older) ->
    ?FORALL({Seed, Count, Steps}, {seed(), integer(3, 12), integer(0, 600)},
            begin
                _ = rand:seed(exsss, Seed),
                Net0 = lists:foldl(fun(_, N) -> sderl_route_net:step(0.2, N) end,
                                   Older(sderl_route_net:new(Count, [])), lists:seq(1, Steps)),
                {Rounds, Net1} = sderl_route_net:settle(60, Net0),
                Net = times(20, fun(N) -> sderl_route_net:rest(10_000, N) end, Net1),
                {News, _} = sderl_route_net:sent(Net),
                %% Until what is out of reach is forgotten, which in groups that are not meshed is
                %% learned again now and then.
                Meshed = sderl_route_net:quiet(sderl_route_net:change(heal, Net)),
                Later = times(3, fun(N) -> sderl_route_net:rest(700_000, N) end,
                              times(30, fun(N) -> sderl_route_net:rest(10_000, N) end, Meshed)),
                {Before, Told} = sderl_route_net:sent(Later),
                Last = times(5, fun(N) -> sderl_route_net:rest(10_000, N) end, Later),
                ?WHENFAIL(io:format("~p rounds, ~p news~nwrong ~p~nastray ~p~nsent ~p~n",
                                    [Rounds,
                                     News,
                                     sderl_route_net:wrong(Net),
                                     sderl_route_net:walks(Net),
                                     {Before, sderl_route_net:sent(Last)}]),
                          measure("rounds of digests", case Rounds of never -> 61; _ -> Rounds end,
                                  is_integer(Rounds) andalso sderl_route_net:walks(Net) =:= []
                                  andalso sderl_route_net:wrong(Last) =:= []
                                  andalso sderl_route_net:sent(Last) =:= {Before, Told}))
            end).

%% Advertisements of gateways that are gone are forgotten everywhere, and no node brings them back.
forgotten_test_() ->
    sderl_prop:eunit("gateways that are gone are forgotten", 20, fun prop_forgotten/0).

prop_forgotten() ->
    ?FORALL({Seed, Count}, {seed(), integer(3, 9)},
            begin
                _ = rand:seed(exsss, Seed),
                Net0 = lists:foldl(fun(_, N) -> sderl_route_net:step(0.2, N) end,
                                   sderl_route_net:new(Count, []), lists:seq(1, 300)),
                {_, Net1} = sderl_route_net:settle(60, Net0),
                Net = times(160, fun(N) -> sderl_route_net:rest(10_000, N) end, Net1),
                {Gateways, Kept} = sderl_route_net:memory(Net),
                ?WHENFAIL(io:format("~p gateways, kept ~p~n", [Gateways, Kept]),
                          lists:all(fun(K) -> K =< Gateways end, Kept))
            end).

%% A node that does not know `changes` gets their content by its next digests, or by one that a
%% later change makes it ask for.
catches_up_test() ->
    _ = rand:seed(exsss, 3),
    Groups = [{g1, [1, 2]}, {g2, [2, 3]}, {g3, [3, 4]}],
    {_, Net0} = sderl_route_net:settle(60, sderl_route_net:new(4, Groups)),
    Deaf = sderl_route_net:older(#{n1 => [change, summary]}, Net0),
    %% Both gateways have two more groups.
    More = lists:foldl(fun(G, N) -> sderl_route_net:change({create, G, [n2, n3]}, N) end, Deaf,
                       [h1, h2]),
    Others = sderl_route_net:quiet(More),
    ?assertEqual([n1], [N || {N, _} <- sderl_route_net:wrong(Others)]),
    {Rounds, After} = sderl_route_net:settle(5, Others),
    ?assert(is_integer(Rounds)),
    ?assertEqual([], sderl_route_net:wrong(After)).

%% Ten groups of ten in a ring, with two gateways at each border: what one change costs.
cost_test() ->
    _ = rand:seed(exsss, 7),
    Ring = [{{g, K}, [1 + (K * 8 + J) rem 80 || J <- lists:seq(0, 9)]} || K <- lists:seq(0, 9)],
    {_, Net} = sderl_route_net:settle(60, sderl_route_net:new(80, Ring)),
    Rested = times(20, fun(N) -> sderl_route_net:rest(10_000, N) end, Net),
    Cost = fun(Changes) ->
        {News0, Told0} = sderl_route_net:sent(Rested),
        After = lists:foldl(fun(C, N) -> sderl_route_net:quiet(sderl_route_net:change(C, N)) end,
                            Rested, Changes),
        ?assertEqual([], sderl_route_net:wrong(After)),
        {News, Told} = sderl_route_net:sent(After),
        {Told - Told0, News - News0}
    end,
    %% Both gateways say so, each to a hundred members, over two gateways a border.
    {Told1, News1} = Cost([{break, {n1, n9}}]),
    ?assertEqual(2, Told1),
    ?assert(News1 =< 2 * 10 * 10 * 2),
    %% A node that is no gateway concerns nobody.
    ?assertEqual({0, 0}, Cost([{crash, n5}])),
    %% A gateway that dies: those next to it, of which there are five, say so.
    {Told2, News2} = Cost([{crash, n1}]),
    ?assertEqual(5, Told2),
    ?assert(News2 =< 5 * 10 * 10 * 2).

%% ---------------------------------------------------------------- calls

%% What began before a call that was answered and forgotten is not asked; what began later is, and
%% once.
late_frames_test() ->
    Tables = [Table | _] = [sderl_route_call:new(), sderl_links:new(), sderl_router:new()],
    Old = make_ref(),
    true = ets:insert(Table,
                      {Old, reply, x, erlang:monotonic_time(millisecond) - 60_000, {1, 500}}),
    ok = sderl_route_call:prune(),
    ?assertEqual([], ets:lookup(Table, Old)),
    Ask = fun(Alias, Creation, Began) ->
        ok = sderl_route_call:serve(Alias, self(), {Creation, Began, {asked, Began}})
    end,
    [Early, Late, Other] = Aliases = [alias() || _ <- lists:seq(1, 3)],
    Ask(Early, 1, 499),
    receive {Early, unknown, _} -> ok end,
    [Ask(Late, 1, 501) || _ <- lists:seq(1, 3)],
    receive {'$gen_call', From, {asked, 501}} -> gen_server:reply(From, yes) end,
    receive {Late, reply, yes} -> ok end,
    %% Another life of that node has times of its own.
    Ask(Other, 2, 3),
    receive {'$gen_call', From2, {asked, 3}} -> gen_server:reply(From2, yes) end,
    receive {Other, reply, yes} -> ok end,
    [unalias(A) || A <- Aliases],
    ?assertEqual([],
                 [Asked || {'$gen_call', _, Asked} <- element(2, process_info(self(), messages))]),
    lists:foreach(fun ets:delete/1, Tables).

seed() -> ?LET(Bytes, binary(8), erlang:phash2(Bytes)).

times(0, _, X) -> X;
times(N, F, X) -> times(N - 1, F, F(X)).

%% ---------------------------------------------------------------- calls

%% A call ends at once only where nobody can have been asked. The next try of a call to a group that
%% was deleted meanwhile goes in circles, and the answer to the first one is still on its way.
given_up_test() ->
    GivenUp = fun sderl_route_call:given_up/3,
    ?assertEqual(hop_limit, GivenUp(hop_limit, false, true)),
    ?assertEqual(wait, GivenUp(hop_limit, false, false)),
    ?assertEqual(wait, GivenUp(no_route, false, true)),
    ?assertEqual([hop_limit, no_route, unreachable, busy],
                 [GivenUp(Why, true, true) || Why <- [hop_limit, no_route, unreachable, busy]]),
    ?assertEqual([lost_route, lost_route],
                 [GivenUp(Why, true, false) || Why <- [hop_limit, no_route]]).

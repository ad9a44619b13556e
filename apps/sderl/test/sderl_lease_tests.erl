%% SPDX-License-Identifier: Apache-2.0
-module(sderl_lease_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Both ends of a lease: one that watches processes (`sderl_lease`), one on whose node they are
%% (`sderl_leased`).

%% ---------------------------------------------------------------- cases

pid(N) -> list_to_pid("<0." ++ integer_to_list(N) ++ ".0>").

watching(Refs) ->
    {[{send, _, 0, 1, {want, 1, [_], [], []}} | _], L} = lists:foldl(fun(Ref, {Es, L0}) ->
        {More, L1} = sderl_lease:step(0, {watch, Ref, pid(1)}, L0),
        {Es ++ More, L1}
    end, {[], sderl_lease:new()}, Refs),
    {[], L1} = sderl_lease:step(10, {message, node(), {1, a}, {have, 0, 0, Refs, [], []}}, L),
    L1.

%% The effects of ticks until then, with their times; `Also` is done before each.
ticks(From, To, Also, L) ->
    lists:foldl(fun(Now, {Acc, L0}) ->
        L1 = lists:foldl(fun(E, S) -> element(2, sderl_lease:step(Now, E, S)) end, L0, Also),
        {Effects, L2} = sderl_lease:step(Now, tick, L1),
        {Acc ++ [{Now, E} || E <- Effects], L2}
    end, {[], L}, lists:seq(From, To, 500)).

renewed_test() ->
    Ref = make_ref(),
    {Effects, _} = ticks(500, 4000, [], watching([Ref])),
    %% Every two seconds, and when nothing answers every half, each time another way.
    ?assertEqual([{2000, 0}, {2500, 1}, {3000, 2}, {3500, 3}, {4000, 4}],
                 [{T, Try} || {T, {send, _, Try, 1, {want, _, [], [], []}}} <- Effects]).

silent_test() ->
    Ref = make_ref(),
    {Effects, L} = ticks(500, 12_000, [], watching([Ref])),
    Node = node(),
    ?assertEqual([{10_500, {lost, Node, lost_route, 1}}, {10_500, {down, Ref, lost_route}},
                  {10_500, {forget, Node}}],
                 [E || {_, What} = E <- Effects, element(1, What) =/= send]),
    ?assertEqual(#{}, sderl_lease:watched(L)).

%% Somebody next to the node says that it is not linked: soon, and with another reason.
unlinked_test() ->
    Ref = make_ref(),
    {Effects, _} = ticks(500, 12_000, [{failed, node(), unreachable}], watching([Ref])),
    ?assertMatch([{2500, noconnection}], [{T, R} || {T, {down, _, R}} <- Effects]),
    %% Other failures say nothing of it.
    {Others, _} = ticks(500, 12_000, [{failed, node(), no_route}], watching([Ref])),
    ?assertMatch([{10_500, lost_route}], [{T, R} || {T, {down, _, R}} <- Others]),
    %% An answer in between is an answer.
    {Answered, _} = ticks(500, 12_000, [{failed, node(), unreachable},
                                        {message, node(), {1, a}, {have, 0, 0, [], [], []}}],
                          watching([Ref])),
    ?assertEqual([], [D || {_, {down, _, _}} = D <- Answered]).

%% A node that was stopped does not count that time as silence of others.
stopped_test() ->
    Ref = make_ref(),
    {_, L} = ticks(500, 1000, [], watching([Ref])),
    {Effects, L1} = sderl_lease:step(60_000, tick, L),
    ?assertEqual([], [D || {down, _, _} = D <- Effects]),
    {Later, _} = ticks(60_500, 75_000, [], L1),
    ?assertMatch([{69_000, lost_route}], [{T, R} || {T, {down, _, R}} <- Later]).

another_life_test() ->
    [A, B] = Refs = [make_ref(), make_ref()],
    L = watching(Refs),
    {Effects, L1} = sderl_lease:step(100, {message, node(), {2, a}, {have, 0, 0, [], [], []}}, L),
    ?assertEqual(lists:sort([{down, A, noconnection}, {down, B, noconnection}]),
                 lists:sort(Effects)),
    ?assertEqual(#{}, sderl_lease:watched(L1)),
    %% Another memory of the same life is told all.
    {[], L2} = sderl_lease:step(100, {message, node(), {1, b}, {have, 0, 0, [], [], []}}, L),
    {Again, _} = ticks(500, 500, [], L2),
    [Add] = [Add || {_, {send, _, _, 1, {want, _, Add, [], []}}} <- Again],
    ?assertEqual(lists:sort([{A, pid(1)}, {B, pid(1)}]), lists:sort(Add)).

given_up_test() ->
    Ref = make_ref(),
    {Effects, S} = sderl_leased:step(0, {message, x, {1, a}, {want, 1, [{Ref, pid(1)}], [], []}},
                                     sderl_leased:new()),
    ?assertEqual([{monitor, x, Ref, pid(1)}, {send, x, 0, 1, {have, 1, 1, [Ref], [], []}}],
                 Effects),
    ?assertMatch({[], _}, sderl_leased:step(29_000, tick, S)),
    {Over, S1} = sderl_leased:step(30_000, tick, S),
    ?assertEqual({[{demonitor, x, Ref}], #{}}, {Over, sderl_leased:watches(S1)}),
    %% And it has forgotten, which it says.
    ?assertMatch({[{send, x, 0, 2, {have, 2, 0, [], [], []}}], _},
                 sderl_leased:step(30_001, {message, x, {1, a}, {want, 2, [], [], []}}, S1)).

overtaken_test() ->
    Ref = make_ref(),
    {_, S} = sderl_leased:step(0, {message, x, {1, a}, {want, 2, [], [Ref], []}},
                               sderl_leased:new()),
    ?assertEqual({[], S},
                 sderl_leased:step(1, {message, x, {1, a}, {want, 1, [{Ref, pid(1)}], [], []}}, S)).

%% ---------------------------------------------------------------- properties

properties_test_() ->
    [sderl_prop:eunit("a lease tells each end once, and leaks nothing", 1000, fun lease/0)].

command() ->
    frequency([
        {6, {watch, range(1, 8)}}, {2, {unwatch, nat()}}, {2, {die, range(1, 8)}},
        {8, {deliver, side(), nat()}}, {3, {lose, side(), nat()}}, {2, {twice, side(), nat()}},
        {6, tick}, {1, {long, range(1, 25)}}, {1, restart_watcher}, {1, restart_watched},
        {1, restart_node}
    ]).

side() -> oneof([watcher, watched]).

%% Whatever was lost on the way: when the network has been good again for a while, both ends agree
%% which processes are watched, every end of a process was reported once and truly, and without
%% watches nothing is left.
lease() ->
    ?FORALL(Commands, list(command()), begin
        S1 = calm(100, lists:foldl(fun do/2, start(), Commands)),
        #{refs := Refs, mons := Mons, dead := Dead, down := Down, creation := C} = S1,
        Open = maps:keys(maps:without(maps:keys(Down), Refs)),
        Right = lists:sort(Open) =:= lists:sort(maps:keys(sderl_lease:watched(maps:get(lease, S1))))
            andalso lists:sort(Open) =:= lists:sort(maps:keys(Mons))
            andalso lists:all(fun(Ref) -> not is_map_key(maps:get(Ref, Refs), Dead) end, Open)
            andalso lists:all(fun({Ref, Reason}) -> true_end(Reason, maps:get(Ref, Refs), S1) end,
                              maps:to_list(Down)),
        S2 = calm(100, lists:foldl(fun(Ref, S) -> do({over, Ref}, S) end, S1, Open)),
        Left = {maps:get(mons, S2), sderl_lease:watched(maps:get(lease, S2)),
                sderl_leased:watches(maps:get(leased, S2))},
        ?WHENFAIL(io:format("~p~nleft ~p, creation ~p~n", [S1, Left, C]),
                  Right andalso {#{}, #{}, #{}} =:=
                                {element(1, Left), element(2, Left),
                                 maps:filter(fun(_, N) -> N > 0 end, element(3, Left))})
    end).

true_end(lost_route, _, _) -> true;
true_end(noconnection, {_, Creation}, #{creation := C}) -> Creation < C;
true_end(noproc, Process, #{dead := Dead}) -> is_map_key(Process, Dead);
true_end(Reason, Process, #{dead := Dead}) -> maps:get(Process, Dead, none) =:= Reason.

%% A process is a number in a life of the node; its pid is made of both.
start() ->
    #{now => 0, creation => 1, life => {1, 1}, lease => sderl_lease:new(),
      leased => sderl_leased:new(), net => #{watcher => [], watched => []}, refs => #{}, own => #{},
      mons => #{}, dead => #{}, down => #{}}.

process_pid({K, C}) -> pid(100 * C + K).
process(Pid) ->
    ["<0", N, _] = string:lexemes(pid_to_list(Pid), "."),
    {list_to_integer(N) rem 100, list_to_integer(N) div 100}.

do({watch, K}, #{refs := Refs, own := Own, creation := C} = S) ->
    {Ref, P} = {make_ref(), {K, C}},
    lease({watch, Ref, process_pid(P)}, S#{refs := Refs#{Ref => P}, own := Own#{Ref => P}});
do({unwatch, K}, #{own := Own} = S) ->
    case maps:keys(Own) of
        [] -> S;
        Refs -> do({over, lists:nth(1 + K rem length(Refs), Refs)}, S)
    end;
do({over, Ref}, #{refs := Refs, own := Own, down := Down} = S) ->
    lease({unwatch, Ref},
          S#{own := maps:remove(Ref, Own),
             refs := case Down of #{Ref := _} -> Refs; _ -> maps:remove(Ref, Refs) end});
do({die, K}, #{creation := C, dead := Dead, mons := Mons} = S) ->
    P = {K, C},
    case Dead of
        #{P := _} -> S;
        _ ->
            Died = [Ref || Ref := Q <- Mons, Q =:= P],
            lists:foldl(fun(Ref, Acc) -> leased({died, node(), Ref, {why, K}}, Acc) end,
                        S#{dead := Dead#{P => {why, K}}, mons := maps:without(Died, Mons)}, Died)
    end;
do(tick, #{now := Now} = S) -> leased(tick, lease(tick, S#{now := Now + 500}));
do({long, N}, S) -> lists:foldl(fun(_, Acc) -> do(tick, Acc) end, S, lists:seq(1, N));
do(restart_watcher, #{life := {W, D}, own := Own} = S) ->
    maps:fold(fun(Ref, P, Acc) -> lease({watch, Ref, process_pid(P)}, Acc) end,
              S#{life := {W + 1, D}, lease := sderl_lease:new()}, Own);
do(restart_watched, #{life := {W, D}} = S) ->
    S#{life := {W, D + 1}, leased := sderl_leased:new(), mons := #{}};
%% Nothing that a node sent is under way for longer than it takes to start it again: its lives have
%% no order.
do(restart_node, #{creation := C, life := {W, D}, dead := Dead, net := Net} = S) ->
    S#{creation := C + 1,
       net := Net#{watched := []},
       life := {W, D + 1},
       leased := sderl_leased:new(),
       mons := #{},
       dead := maps:merge(#{{K, C} => noconnection || K <- lists:seq(1, 8)}, Dead)};
do({What, Side, K}, #{net := Net} = S) ->
    case maps:get(Side, Net) of
        [] -> S;
        List ->
            Message = lists:nth(1 + K rem length(List), List),
            Rest = Net#{Side := lists:delete(Message, List)},
            case What of
                lose -> S#{net := Rest};
                twice -> arrive(Side, Message, S);
                deliver -> arrive(Side, Message, S#{net := Rest})
            end
    end.

arrive(watcher, Message, S) -> leased(Message, S);
arrive(watched, Message, S) -> lease(Message, S).

calm(0, S) -> S;
calm(N, S) ->
    calm(N - 1, do(tick, lists:foldl(fun do/2, S, lists:append(
        lists:duplicate(6, [{deliver, watcher, 0}, {deliver, watched, 0}])
    )))).

lease(Event, #{now := Now, lease := L0} = S) ->
    {Effects, L} = sderl_lease:step(Now, Event, L0),
    lists:foldl(fun effect/2, S#{lease := L}, Effects).

leased(Event, #{now := Now, leased := L0} = S) ->
    {Effects, L} = sderl_leased:step(Now, Event, L0),
    lists:foldl(fun effect/2, S#{leased := L}, Effects).

effect({send, Node, _, Memory, {want, _, _, _, _} = Want},
       #{net := #{watcher := Out} = Net, life := {W, _}} = S) ->
    S#{net := Net#{watcher := Out ++ [{message, Node, {0, {W, Memory}}, Want}]}};
effect({send, Node, _, Memory, {have, _, _, _, _, _} = Have},
       #{net := #{watched := Out} = Net, creation := C, life := {_, D}} = S) ->
    S#{net := Net#{watched := Out ++ [{message, Node, {C, {D, Memory}}, Have}]}};
effect({down, Ref, Reason}, #{down := Down, own := Own} = S) ->
    %% Only of what is watched, and once.
    true = is_map_key(Ref, Own) andalso not is_map_key(Ref, Down),
    S#{down := Down#{Ref => Reason}, own := maps:remove(Ref, Own)};
effect({monitor, Node, Ref, Pid}, #{mons := Mons, dead := Dead, creation := C} = S) ->
    case process(Pid) of
        {_, C} = P when not is_map_key(P, Dead) -> S#{mons := Mons#{Ref => P}};
        _ -> leased({died, Node, Ref, noproc}, S)
    end;
effect({demonitor, _, Ref}, #{mons := Mons} = S) -> S#{mons := maps:remove(Ref, Mons)};
effect({lost, _, _, _}, S) -> S;
effect({forget, _}, S) -> S.

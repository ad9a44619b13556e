%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_hostile).
-moduledoc """
False messages that no member sends, but with the right name of the group: a fault of a simulated
schedule (`mutate`).

A copy of a message that arrives is changed somewhere: a part is replaced, missing, or there twice.
A message that the library's check refuses (`sderl_wire`, if it exists, or the option `door`) is
dropped, as in the library. A message that it accepts must not end the process, now or with the next
tick. This is tried on a copy of the member, which is then dropped, because a false message of the
right types may make a member misbehave.
""".
-include("sderl_sim.hrl").

%% It also makes improper lists.
-dialyzer(no_improper_lists).

-export([arrives/5, mutated/2]).

-import(sderl_sim_world, [rnd/3, chance/2, pick/2]).

-doc "Tries a changed copy of a message that has arrived for the process of a group.".
-spec arrives(node(), term(), node(), term(), #w{}) -> #w{}.
arrives(N, G, From, Msg, W0) ->
    #n{hostile = Percent} = sderl_sim_world:node(From, W0),
    case Percent > 0 andalso sderl_sim_world:member(N, G, W0) of
        #m{p = #p{st = St}, store = Store} ->
            {Is, W1} = chance(Percent, W0),
            case Is of
                true ->
                    {Other, W2} = mutated(Msg, W1),
                    tried(N, From, Other, St, Store, W2);
                false -> W1
            end;
        _ -> W0
    end.

tried(N, From, Msg, St, Store, #w{now = Now} = W) ->
    case let_in(From, Msg, W) of
        false -> W;
        true ->
            try
                survives(Now, From, Msg, St, Store)
            of
                _ -> W
            catch
                Class:Reason:Stack ->
                    sderl_sim_world:violation(
                        mutate, [N, From, Msg, Class, Reason, lists:sublist(Stack, 3)], W
                    )
            end
    end.

survives(Now, From, Msg, St0, Store0) ->
    {Fx1, St1} = sderl_core:step(Now, [{msg, From, Msg}], St0),
    Store1 = lists:foldl(fun write/2, Store0, Fx1),
    {Fx2, St2} = sderl_core:propose(Now, sderl_sim_store, Store1, St1),
    Store2 = lists:foldl(fun write/2, Store1, Fx2),
    {Fx3, _} = sderl_core:step(Now, [tick], St2),
    lists:foldl(fun write/2, Store2, Fx3).

write({index, What}, St) -> sderl_sim_store:index(What, St);
write({sync_begin, E, Num}, St) -> sderl_sim_store:sync_begin(St, E, Num);
write({members, Ms}, St) -> sderl_sim_store:members(Ms, St);
write(Effect, St) ->
    case sderl_sim_store:part(Effect, 1_000_000, St) of
        none -> St;
        Written -> Written
    end.

let_in(From, Msg, #w{opts = #{door := Door}}) -> Door(From, Msg);
let_in(From, Msg, _) ->
    %% The library may not have this module, so the call must not be a dependency.
    Module = sderl_wire,
    case code:ensure_loaded(Module) of
        {module, Module} -> Module:message(From, with_pid(From, Msg));
        {error, _} -> true
    end.

%% A member's address in the simulation is no pid, but the check wants one.
with_pid(From, {hello, {From, _, _}, Inc, Mem, Info}) ->
    {Pid, _} = sderl_sim_world:pid(From, #w{seed = 0, opts = #{}, dice = sderl_sim_dice:new(0),
                                            nodes = #{From => #n{name = From}}}),
    {hello, Pid, Inc, Mem, Info};
with_pid(_, Msg) -> Msg.

%% ---------------------------------------------------------------- changing terms

-doc "A term that differs from this one somewhere.".
-spec mutated(term(), #w{}) -> {term(), #w{}}.
mutated(Term, W0) ->
    {At, W1} = rnd(1, size_of(Term), W0),
    {Changed, 0, W2} = change(Term, At, W1),
    case Changed =:= Term of
        true -> mutated(Term, W2);
        false -> {Changed, W2}
    end.

%% The number of terms in it, with itself.
size_of(T) when is_tuple(T) -> 1 + size_of_all(tuple_to_list(T));
size_of(T) when is_map(T) -> 1 + size_of_all(values(T));
size_of([H | T]) -> 1 + size_of(H) + size_of(T);
size_of(_) -> 1.

size_of_all(Ts) -> lists:sum([size_of(T) || T <- Ts]).

values(Map) -> [V || _ := V <- maps:iterator(Map, ordered)].

%% Replaces the `At`th term; gives what is left of `At`.
change(T, 1, W0) ->
    {Other, W} = other(T, W0),
    {Other, 0, W};
change(T, At, W0) when is_tuple(T) ->
    {Ts, Left, W} = change_all(tuple_to_list(T), At - 1, W0),
    {list_to_tuple(Ts), Left, W};
change(T, At, W0) when is_map(T) ->
    {Vs, Left, W} = change_all(values(T), At - 1, W0),
    {maps:from_list(lists:zip([K || K := _ <- maps:iterator(T, ordered)], Vs)), Left, W};
change([H0 | T0], At, W0) ->
    case change(H0, At - 1, W0) of
        {H, 0, W} -> {[H | T0], 0, W};
        {H, Left, W1} ->
            {T, Rest, W} = change(T0, Left, W1),
            {[H | T], Rest, W}
    end;
change(T, At, W) -> {T, At - 1, W}.

change_all([], At, W) -> {[], At, W};
change_all(Ts, 0, W) -> {Ts, 0, W};
change_all([T0 | Ts0], At, W0) ->
    {T, Left, W1} = change(T0, At, W0),
    {Ts, Rest, W} = change_all(Ts0, Left, W1),
    {[T | Ts], Rest, W}.

other(T, W0) ->
    {X, W} = rnd(1, 100, W0),
    if
        X =< 60 -> pick([x, undefined, none, live, [], -1, 0, 1, 1 bsl 70, 0.5, <<"x">>, <<1:3>>,
                         "x", {}, {x}, #{}, #{x => 1}, [x | y], [[]], {x, 'n1@sim'}, {1, 'n1@sim'},
                         {-1, 'n9@sim'}, 'n1@sim', 'n9@sim'], W);
        X =< 80 -> reshaped(T, W);
        true -> {[T], W}
    end.

%% Without a part, or with a part twice.
reshaped(T, W0) when is_tuple(T), tuple_size(T) > 0 ->
    {I, W1} = rnd(1, tuple_size(T), W0),
    {Less, W} = chance(50, W1),
    {case Less of
        true -> erlang:delete_element(I, T);
        false -> erlang:insert_element(I, T, element(I, T))
    end, W};
reshaped(T, W0) when is_map(T), map_size(T) > 0 ->
    {K, W} = pick(lists:sort(maps:keys(T)), W0),
    {maps:remove(K, T), W};
reshaped([H | T], W0) ->
    {X, W} = rnd(1, 3, W0),
    {case X of 1 -> T; 2 -> [H, H | T]; 3 -> [H | x] end, W};
reshaped(T, W) -> {{T, T}, W}.

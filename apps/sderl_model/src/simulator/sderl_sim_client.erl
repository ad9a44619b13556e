%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_client).
-moduledoc """
Clients of a simulated group: what they ask, and when. `m:sderl_sim_known` has what is known from
their answers.

Every client owns one name, of its node, life and number. No other client registers it, so its state
is known from the last answer. Other clients now and then unregister it all the same; meanwhile an
answer proves nothing. Besides, all clients compete for a few names.

With `patience` a client gives up after so many ms and continues with another own name; nothing is
known of the old one any more. And a node may `keep` names for its whole life that nobody else
touches: more rows for snapshots and merges, none of which may be lost.
""".
-include("sderl_sim.hrl").

%% A registration is a name and a pid in one cell (see sderl_op.hrl).
-dialyzer(no_improper_lists).

-export([start/3, turn/5, keep/5, gives_up/2, submit/5, submit/6, answered/5, contested/0]).

%% The own names of a client that has given up have other numbers.
-define(ANOTHER, 1000).
%% Such a client pauses first: names of which nothing is known are never unregistered.
-define(RECOVERS_MS, 1000).
%% So many of a hundred operations are reads, in majority mode.
-define(READS, 15).

-import(sderl_sim_world,
        [rnd/3, chance/2, pick/2, in/3, node/2, member/3, book/2, keep_book/3, rows/3, pid/2]).

-doc "The clients of a node begin, in each of its groups, within a second after `Delay` ms.".
-spec start(node(), integer(), #w{}) -> #w{}.
start(N, Delay, #w{clients = K} = W0) ->
    #n{groups = Gs, life = Life} = node(N, W0),
    Kept = [{keep, N, G, Life, I} || G <- Gs, I <- lists:seq(1, maps:get(keep, W0#w.opts, 0))],
    lists:foldl(fun(Begins, W) ->
        {D, W1} = rnd(0, 1000, W),
        in(Delay + D, Begins, W1)
    end, W0, [{client, N, G, Life, I} || G <- Gs, I <- lists:seq(1, K)] ++ Kept).

-doc "A node registers a name that it keeps, as soon as it is a member.".
-spec keep(node(), term(), pos_integer(), pos_integer(), #w{}) -> #w{}.
keep(N, G, Life, I, #w{asking = true} = W0) ->
    case {node(N, W0), member(N, G, W0)} of
        {#n{up = true, life = Life, paused = false}, #m{p = #p{}}} ->
            {P, W} = pid(N, W0),
            submit(N, G, {keep, I}, register_with({own, N, Life, {keep, I}}, P), W);
        {#n{up = true, life = Life}, _} -> in(1000, {keep, N, G, Life, I}, W0);
        _ -> W0
    end;
keep(_, _, _, _, W) -> W.

-doc "A client asks something, if it can.".
-spec turn(node(), term(), pos_integer(), pos_integer(), #w{}) -> #w{}.
turn(_, _, _, _, #w{asking = false} = W) -> W;
turn(N, G, Life, K, W0) ->
    case {node(N, W0), member(N, G, W0)} of
        {#n{up = true, life = Life, paused = false}, #m{p = #p{}}} ->
            sderl_sim_check:reads_own_writes(N, G, Life, K, W0),
            {Op, W1} = asks(N, G, Life, K, W0),
            succeeded(N, Op, submit(N, G, {client, K}, Op, W1));
        {#n{up = true, life = Life}, _} -> in(1000, {client, N, G, Life, K}, W0);
        _ -> W0
    end.

%% With options, because a plain registration has no tag.
register_with(Name, Pid) -> #?REGISTER_WITH{name = Name, pid = Pid, options = #{}}.

register_over(Name, Pid, Dead) ->
    #?REGISTER_OVER{name = Name, pid = Pid, dead = Dead, options = #{}}.

re_register(Name, Pid) -> #?RE_REGISTER{name = Name, pid = Pid, options = #{}}.

%% A client that registers in place of a dead process of its node does so before that death is
%% reported (rule 17).
succeeded(N, #?REGISTER_OVER{dead = Dead}, W) when node(Dead) =:= N ->
    sderl_sim_death:dies(Dead, W);
succeeded(_, _, W) -> W.

-spec submit(node(), term(), term(), sderl_core:op(), #w{}) -> #w{}.
submit(N, G, Who, Op, #w{opno = I} = W) -> submit(N, G, {op, I + 1}, Who, Op, W#w{opno = I + 1}).

-doc "Asks the process of a group on a node, which must be there, under an identity.".
-spec submit(node(), term(), term(), term(), sderl_core:op(), #w{}) -> #w{}.
submit(N, G, Id, Who, Op, W0) ->
    #n{life = Life} = node(N, W0),
    W1 = sderl_sim_strict:asked(G, Op, used(G, Op, sderl_sim_known:pending(N, G, Who, Op, W0))),
    W2 = W1#w{ops = (W1#w.ops)#{Id => #{op => Op,
                                        node => N,
                                        group => G,
                                        life => Life,
                                        who => Who,
                                        since => W0#w.now,
                                        contest => sderl_sim_known:contest(G, Op, W1)}}},
    sderl_sim_world:tell({asks, N, G, Id, Op}, W2),
    sderl_sim_mail:mail(N, G, {op, Id, Op}, patient(Id, Who, W2)).

patient(Id, {client, _}, #w{opts = #{patience := Ms}} = W) -> in(Ms, {patience, Id}, W);
patient(_, _, W) -> W.

-doc "A client has waited long enough: it gives up, and goes on with another own name.".
-spec gives_up(term(), #w{}) -> #w{}.
gives_up(Id, #w{ops = Ops} = W) ->
    case Ops of
        #{Id := #{answer := _}} -> W;
        #{Id := #{who := {client, K}, node := N, group := G, life := Life} = O} ->
            sderl_sim_world:tell({gives_up, N, G, Id}, W),
            Known = sderl_sim_known:given_up(O, W),
            in(?RECOVERS_MS, {client, N, G, Life, K + ?ANOTHER},
               Known#w{ops = Ops#{Id := O#{given_up => true}}})
    end.

used(G, Op, W) ->
    case sderl_op:registers(Op) of
        none -> W;
        Pid ->
            #b{used = U} = B = book(G, W),
            keep_book(G, B#b{used = U#{Pid => maps:get(Pid, U, 0) + 1}}, W)
    end.

-doc "An answer: the first is the only one.".
-spec answered(node(), term(), term(), term(), #w{}) -> #w{}.
answered(_, _, none, _, W) -> W;
answered(N, G, Id, V, #w{ops = Ops} = W0) ->
    W1 = sderl_sim_check:answered(N, G, Id, V, W0),
    case Ops of
        #{Id := #{answer := _}} -> W1;
        #{Id := O} ->
            sderl_sim_world:tell({answered, N, G, Id, V}, W1),
            W2 = W1#w{ops = Ops#{Id := O#{answer => V, at => W0#w.now}}},
            case {O, sderl_sim_known:is_of_own(O)} of
                {#{given_up := true}, true} -> W2;
                {#{given_up := true}, false} -> sderl_sim_known:learned(O, V, W2);
                _ -> next(O, sderl_sim_known:learned(O, V, W2))
            end
    end.

next(#{who := {client, K}, node := N, group := G, life := Life}, W0) ->
    {Busy, W1} = chance(50, W0),
    {D, W2} = case Busy of true -> {0, W1}; false -> rnd(1, 800, W1) end,
    in(D, {client, N, G, Life, K}, W2);
next(#{who := {then, Do}} = O, W) -> Do(O, W);
next(_, W) -> W.

%% ---------------------------------------------------------------- what they ask

asks(N, G, Life, K, W0) ->
    case sderl_sim_world:option(reads, default_reads(G, W0), W0) of
        0 -> choose(N, G, Life, K, W0);
        Percent ->
            case chance(Percent, W0) of
                {true, W} -> read(G, {own, N, Life, K}, W);
                {false, W} -> choose(N, G, Life, K, W)
            end
    end.

default_reads(G, W) ->
    case sderl_sim_world:mode(G, W) of
        available -> 0;
        majority -> ?READS
    end.

%% A look-up through the log: of its own name, of another client's, or of a contested one.
read(G, Own, W0) ->
    #b{truth = Truth} = book(G, W0),
    {X, W1} = rnd(1, 10, W0),
    case [O || {own, _, _, _} = O <- lists:sort(maps:keys(Truth)), X > 8] of
        [] when X > 4 ->
            {C, W2} = pick(contested(), W1),
            {#read{name = C}, W2};
        [] -> {#read{name = Own}, W1};
        Owns ->
            {Other, W2} = pick(Owns, W1),
            {#read{name = Other}, W2}
    end.

choose(N, G, Life, K, W0) ->
    {X, W1} = rnd(1, 100, W0),
    #b{truth = Truth} = book(G, W1),
    Own = {own, N, Life, K},
    if
        X =< 60 -> own(N, Own, maps:get(Own, Truth, absent), W1);
        X =< 64 ->
            %% Somebody else's name.
            case [O || {own, _, _, Of} = O <- lists:sort(maps:keys(Truth)), is_integer(Of)] of
                [] -> own(N, Own, absent, W1);
                Os -> {O, W2} = pick(Os, W1), {?UNREGISTER(O), W2}
            end;
        true -> contested(N, G, X > 96, W1)
    end.

own(N, Own, {present, Pid}, W0) ->
    {Y, W1} = rnd(1, 5, W0),
    {New, W2} = pid(N, W1),
    case Y of
        1 -> {?UNREGISTER(Own), W2};
        2 -> {re_register(Own, New), W2};
        3 -> {?UNREGISTER_OF(Own, Pid), W2};
        4 -> {register_with(Own, New), W2};
        _ -> {register_over(Own, New, Pid), W2}
    end;
own(N, Own, _, W0) ->
    {P, W1} = pid(N, W0),
    {?REGISTER(Own, P), W1}.

-doc "The names for which all clients compete.".
-spec contested() -> [atom()].
contested() -> [c1, c2, c3, c4].

contested(N, G, Foreign, W0) ->
    {C, W1} = pick(contested(), W0),
    {Where, W2} = case Foreign of
        true -> pick(sderl_sim_world:nodes_of(G, W1), W1);
        false -> {N, W1}
    end,
    {P, W3} = pid(Where, W2),
    {Y, W4} = rnd(1, 10, W3),
    Op = if
        Y =< 5 -> ?REGISTER(C, P);
        Y =< 7 -> ?UNREGISTER(C);
        Y =< 8 -> re_register(C, P);
        true ->
            case rows(N, G, W4) of
                #{C := ?ROW_OF(Old)} -> register_over(C, P, Old);
                _ -> register_with(C, P)
            end
    end,
    {Op, W4}.

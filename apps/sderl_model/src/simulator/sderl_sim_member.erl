%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_member).
-moduledoc """
A member of a simulated group: the process that runs the real `sderl_core`, as `sderl_group` does.

A step handles all messages in its mailbox, or sometimes a part of them, or in two halves with
answered clients between them. It runs the effects in order and asks for the next batch. The process
may die between two effects, or in the middle of applying a batch; a new process in the same life of
the node finds what the tables keep.
""".
-include("sderl_sim.hrl").

-export([new_member/5, join/5, moves/4, recover/3, step/4, kill/3, tick_later/4]).

-import(sderl_sim_world, [rnd/3, chance/2, pick/2, in/3, node/2, keep/4, member/3, process/4,
                          book/2, keep_book/3, seen/3, rows/3, tell/2]).
-import(sderl_sim_mail, [mail/4]).
-import(sderl_sim_death, [deaths/4, foreign_deaths/3, tell_loser/5]).

%% Rows in a chunk of a snapshot: few, so that many chunks are needed.
-define(CHUNK, 3).
%% A process that dies while it writes dies after at most so many writes of the effect.
-define(MOST_WRITES, 6).
%% The system time at which the world begins: no clock is set back by more.
-define(EPOCH_MS, 10_000_000).

%% ---------------------------------------------------------------- its life

-doc "A node learns that it is a member of a group that it did not know.".
-spec join(node(), term(), sderl_hello:uid(), sderl_membership:t(), #w{}) -> #w{}.
join(N, G, Uid, Mem, W) ->
    tell({joins, N, G}, W),
    new_member(N, G, Uid, #{mem => sderl_membership:recall(N, Mem)}, W).

-doc "A member of the group with this uid begins, with only a membership.".
-spec new_member(node(), term(), sderl_hello:uid(), map(), #w{}) -> #w{}.
new_member(N, G, Uid, #{mem := Mem} = Args, W) ->
    Store = sderl_sim_store:new(sderl_membership:members(Mem)),
    begin_member(N, G, Args, Store, keep(N, G, (member(N, G, W))#m{uid = Uid, first = Mem}, W)).

%% A process of the protocol begins with a membership, or with what its predecessor left.
begin_member(N, G, Args, Store, #w{core = Core, ids = Id, opts = Opts, now = Now} = W0) ->
    #n{life = Life, clock = Off} = node(N, W0),
    #m{uid = Uid} = M = member(N, G, W0),
    A = maps:merge(maps:with([aside_ms, forget_ms, answer], Opts),
                   sderl_sim_majority:arguments(G, Args, M, W0)),
    St = Core:init(A#{group => G,
                      uid => Uid,
                      self => N,
                      addr => {N, G, Id},
                      inc => {N, Life},
                      now => Now,
                      clock => Now + ?EPOCH_MS + Off,
                      linked => sderl_sim_net:linked(N, G, W0)}),
    P = #p{id = Id, st = St, seen = Core:inspect(St)},
    W1 = sderl_sim_majority:begun(N, G, keep(N, G, M#m{p = P, store = Store},
                                             sderl_sim_world:broke(W0#w{ids = Id + 1}))),
    tick_later(N, G, Id, mail(N, G, start, sderl_sim_world:touch(N, W1))).

-spec tick_later(node(), term(), pos_integer(), #w{}) -> #w{}.
tick_later(N, G, Id, W) ->
    {J, W1} = rnd(0, 50, W),
    in(1000 + J, {timer, N, G, Id, tick}, W1).

-doc "The process alone dies; its supervisor starts another.".
-spec kill(node(), term(), #w{}) -> #w{}.
kill(N, G, W) ->
    case member(N, G, W) of
        #m{p = #p{}} = M ->
            #n{life = Life} = node(N, W),
            tell({process_dies, N, G}, W),
            {D, W1} = rnd(1, 300, keep(N, G, M#m{p = undefined, crash = false}, W)),
            in(D, {recover, N, G, Life}, sderl_sim_world:broke(W1));
        _ -> W
    end.

-doc "A new process in the same life of the node, unless that has ended or left the group.".
-spec recover(node(), term(), #w{}) -> #w{}.
recover(N, G, W0) ->
    #m{store = St0, first = First} = member(N, G, W0),
    #n{life = Life} = node(N, W0),
    tell({process_starts, N, G}, W0),
    {St1, _} = sderl_sim_store:redo(sderl_sim_store:index(drop, St0)),
    W1 = case sderl_sim_store:recover(St1) of
        none ->
            %% It died before it kept anything.
            begin_member(N, G, #{mem => First}, St1, W0);
        R ->
            W = begin_member(N, G, R, St1, W0),
            St = sderl_sim_store:members(sderl_core:members(sderl_sim_world:state(N, G, W)), St1),
            found(N, G, R, keep(N, G, (member(N, G, W))#m{store = St}, W))
    end,
    W2 = deaths(N, G, lists:sort(maps:values(rows(N, G, W1))), W1),
    %% Clients that saw it die ask again.
    lists:foldl(fun({Id, Op}, W) -> mail(N, G, {again, Id, Op}, W) end, W2,
                unanswered(N, G, Life, W2)).

%% The operations that clients asked of a member in one run of its node, and wait for.
unanswered(N, G, Life, #w{ops = Ops}) ->
    lists:sort([{Id, Op} || Id := #{node := ON, group := OG, life := OL, op := Op} = O <- Ops,
                            ON =:= N, OG =:= G, OL =:= Life,
                            not is_map_key(answer, O), not is_map_key(given_up, O)]).

-doc """
A free node's process restarts as a member of another island, with all its names (`sderl_free`).
""".
-spec moves(node(), term(), sderl_hello:uid(), #w{}) -> #w{}.
moves(N, G, Uid, W) ->
    #m{gone = Gone} = M = member(N, G, W),
    tell({moves, N, G}, W),
    recover(N, G,
            keep(N, G, M#m{uid = Uid, p = undefined, crash = false, gone = maps:remove(Uid, Gone)},
                 W)).

%% The batch that its predecessor logged counts as applied. (The log of a snapshot is empty.)
found(N, G, #{log := {Num, [_ | _] = Items}, log_epoch := E}, W) ->
    sderl_sim_check:recorded(N, G, E, Num, Items, W);
found(_, _, _, W) -> W.

%% ---------------------------------------------------------------- a step

-spec step(node(), term(), pos_integer(), #w{}) -> #w{}.
step(N, G, Id, W0) ->
    case member(N, G, W0) of
        #m{p = #p{id = Id, mail = Mail} = P} = M ->
            All = lists:reverse(Mail),
            {Part, W1} = chance(10, W0),
            {Now, Later} = case Part of
                true -> lists:split((length(All) + 1) div 2, All);
                false -> {All, []}
            end,
            W2 = keep(N, G, M#m{p = P#p{mail = lists:reverse(Later), due = Later =/= []}}, W1),
            W3 = case Later of [] -> W2; _ -> in(1, {step, N, G, Id}, W2) end,
            tell({step, N, G, Now}, W3),
            {Halves, Wh} = chance(30, W3#w{written = []}),
            W4 = case Halves of
                true -> stepped(N, G, Id, handle, Now, Wh, [[]]);
                false -> stepped(N, G, Id, step, Now, Wh, [])
            end,
            W5 = proposed(N, G, Id, W4),
            W6 = case process(N, G, Id, W5) of
                true -> ticked(Now, N, G, sderl_sim_check:stepped(N, G, W5));
                false -> W5
            end,
            case lists:member(tick, Now) andalso seen(N, G, W6) of
                #{role := coord} -> foreign_deaths(N, G, sderl_sim_strict:ticked(N, G, W6));
                _ -> W6
            end;
        _ -> W0
    end.

ticked(Events, N, G, W) ->
    case lists:member(tick, Events) of
        true -> sderl_sim_majority_wait:ticked(N, G, W);
        false -> W
    end.

stepped(N, G, Id, F, Events, #w{core = Core} = W0, More) ->
    {Fx, S} = Core:F(W0#w.now, Events, sderl_sim_world:state(N, G, W0)),
    ran(N, G, Id, Fx, S, W0#w{steps = W0#w.steps + 1}, More).

ran(N, G, Id, Fx, S, W0, More) ->
    {Feed, W1} = effects(N, G, Id, Fx, set_state(N, G, S, W0)),
    case {process(N, G, Id, W1), Feed, More} of
        {false, _, _} -> W1;
        {true, [], []} -> W1;
        {true, [], [Events | Rest]} -> stepped(N, G, Id, step, Events, W1, Rest);
        %% The rows that were read are sent before anything else.
        {true, _, _} -> stepped(N, G, Id, step, Feed, W1, More)
    end.

proposed(N, G, Id, W0) ->
    case process(N, G, Id, W0) of
        false -> W0;
        true ->
            #m{store = Store} = member(N, G, W0),
            S0 = sderl_sim_world:state(N, G, W0),
            case (W0#w.core):propose(W0#w.now, sderl_sim_store, Store, S0) of
                {[], S0} -> W0;
                {Fx, S} -> ran(N, G, Id, Fx, S, W0, [])
            end
    end.

set_state(N, G, S, W) ->
    #m{p = P} = M = member(N, G, W),
    keep(N, G, filed(S, M#m{p = P#p{st = S, seen = (W#w.core):inspect(S)}}, W), W).

%% The file is written before anything that it holds is sent or answered.
filed(S, #m{uid = Uid} = M, #w{core = Core, opts = #{files := true}}) ->
    M#m{file = {Uid, Core:membership(S), Core:highest(S)}};
filed(_, M, _) -> M.

%% ---------------------------------------------------------------- effects

%% A process that is to die dies between two of them, or in one.
effects(N, G, Id, Unsorted, W0) ->
    Fx = sends_sorted(Unsorted),
    case {member(N, G, W0), Fx} of
        {#m{crash = half} = M, [_ | _]} ->
            case lists:splitwith(fun(E) -> sderl_sim_store:part(E, 0, M#m.store) =:= none end,
                                 Fx) of
                {_, []} -> run_effects(N, G, Id, Fx, W0);
                {Before, [Writes | _]} ->
                    {K, W1} = rnd(0, ?MOST_WRITES, keep(N, G, M#m{crash = false}, W0)),
                    {_, W2} = run_effects(N, G, Id, Before, W1),
                    Partly = fun() ->
                        tell({dies_in, N, G, K, Writes}, W2),
                        kill(N, G,
                             store(N, G, fun(St) -> sderl_sim_store:part(Writes, K, St) end, W2))
                    end,
                    case process(N, G, Id, W2) of
                        true -> {[], Partly()};
                        false -> {[], W2}
                    end
            end;
        {#m{crash = true} = M, [_ | _]} ->
            {K, W1} = rnd(0, length(Fx), keep(N, G, M#m{crash = false}, W0)),
            {Before, After} = lists:split(K, Fx),
            {_, W2} = run_effects(N, G, Id, Before, W1),
            W3 = case After of
                [{apply, E, Num, Items, _} | _] ->
                    store(N, G, fun(St) -> sderl_sim_store:log(St, E, Num, Items) end, W2);
                _ -> W2
            end,
            {[], kill(N, G, W3)};
        _ -> run_effects(N, G, Id, Fx, W0)
    end.

%% Messages to different nodes have no order among themselves: the core may send them in the order
%% of a map of nodes, which differs between virtual machines.
sends_sorted([]) -> [];
sends_sorted(Fx) ->
    {Sends, Others} = lists:splitwith(fun(E) -> receiver(E) =/= none end, Fx),
    {Before, Left} = lists:splitwith(fun(E) -> receiver(E) =:= none end, Others),
    Sorted = lists:sort(fun(A, B) -> receiver(A) =< receiver(B) end, Sends),
    Sorted ++ Before ++ sends_sorted(Left).

receiver({send, {To, _, _}, _}) -> To;
receiver({hello, To, _}) -> To;
receiver(_) -> none.

run_effects(N, G, Id, Fx, W0) ->
    lists:foldl(fun(E, {Feed, W}) ->
        tell({effect, N, G, E}, W),
        %% A member that left writes nothing more.
        Here = process(N, G, Id, W) orelse element(1, E) =:= send orelse element(1, E) =:= replies,
        case Here andalso effect(N, G, Id, E, W) of
            false -> {Feed, W};
            {feed, Ev, W1} -> {Feed ++ [Ev], W1};
            W1 -> {Feed, W1}
        end
    end, {[], W0}, Fx).

store(N, G, F, W) ->
    #m{store = St} = M = member(N, G, W),
    keep(N, G, M#m{store = F(St)}, W).

effect(N, G, _, {send, {To, _, _} = Addr, Msg}, W) ->
    newer(N, To, Addr, sderl_sim_net:send(N, To, Addr, Msg, sderl_sim_check:sent(N, G, Msg, W)));
effect(N, G, _, {hello, To, Msg}, W) ->
    #m{uid = Uid} = member(N, G, W),
    sderl_sim_net:send(N, To, {hello, G, Uid}, Msg, W);
effect(N, G, _, {durable, D}, W) -> store(N, G, fun(St) -> sderl_sim_store:durable(D, St) end, W);
effect(N, G, _, {members, Ms}, W) -> store(N, G, fun(St) -> sderl_sim_store:members(Ms, St) end, W);
effect(N, G, _, {sessions, Sess}, W) ->
    store(N, G, fun(St) -> sderl_sim_store:sessions(Sess, St) end, W);
effect(N, G, _, {outbox, Kept, List}, W) ->
    Number = case Kept of {again, R} -> R; R -> R end,
    store(N, G, fun(St) -> sderl_sim_store:outbox(Kept, List, St) end,
          sderl_sim_check:asked(N, G, Number, List, W));
effect(N, G, _, {replies, L}, W) ->
    lists:foldl(fun({From, V}, A) -> sderl_sim_client:answered(N, G, From, V, A) end, W, L);
effect(N, G, _, {apply, E, Num, Items, Index}, W) -> applied(N, G, E, Num, Items, Index, W);
effect(N, G, _, {index, What}, W) -> store(N, G, fun(St) -> sderl_sim_store:index(What, St) end, W);
effect(N, G, _, {sync_begin, E, Num}, W) ->
    store(N, G, fun(St) -> sderl_sim_store:sync_begin(St, E, Num) end, W);
effect(N, G, _, {put_rows, Rows}, W) ->
    deaths(N, G, Rows,
           written(Rows, store(N, G, fun(St) -> sderl_sim_store:put_rows(St, Rows) end, W)));
effect(N, G, _, sync_end, W) ->
    sderl_sim_check:caught_up(N, G, store(N, G, fun sderl_sim_store:sync_end/1, W));
effect(N, G, _, {read_chunk, To, K}, W) -> read(N, G, chunk_read, {chunk, To}, To, K, all, W);
effect(N, G, _, {look_up, Names}, W) ->
    #m{store = St} = member(N, G, W),
    Found = [Row || Name <- Names, Row <- [sderl_sim_store:lookup(St, Name)], Row =/= none],
    {feed, {looked_up, Found}, W};
effect(N, G, _, {read_homes, To, K, Homes}, W) ->
    read(N, G, homes_read, {homes, To}, To, K, Homes, W);
effect(N, G, _, {read_stop, To}, W) ->
    #m{p = #p{cursors = Cs} = P} = M = member(N, G, W),
    keep(N, G, M#m{p = P#p{cursors = maps:without([{chunk, To}, {homes, To}], Cs)}}, W);
effect(N, G, Id, {resolve, Name, A, B}, #w{opts = Opts} = W) ->
    {D, W1} = rnd(5, 300, W),
    Pids = [sderl_row:pid(A), sderl_row:pid(B)],
    {Keep, W2} = pick(Pids ++ maps:get(resolver, Opts, [none]), W1),
    %% The loser is to exit.
    Kind = case Keep of
        none -> notice;
        _ -> exit
    end,
    Fx = [{Kind, Pid, Name} || Pid <- Pids, Pid =/= Keep],
    in(D, {mail, N, G, Id, {resolved, Name, A, B, Keep, Fx}}, W2);
effect(N, G, _, {clash_effects, Fx}, W0) ->
    #n{life = Life} = node(N, W0),
    lists:foldl(fun(Effect, W) -> tell_loser(N, Life, G, Effect, W) end, W0, Fx);
effect(N, G, _, {majority, Is}, W) -> sderl_sim_majority:declared(N, G, Is, W);
effect(_, _, _, {event, _, _}, W) -> W;
effect(N, G, _, {left, Why, Mem}, W) ->
    #n{life = Life} = node(N, W),
    #b{left = Left, promised = P} = B = book(G, W),
    #m{uid = Uid, gone = Gone} = M = member(N, G, W),
    File = case M#m.file of none -> none; _ -> left end,
    Book = B#b{left = Left#{{N, Life} => Why}, promised = maps:remove({N, Life}, P)},
    W1 = keep(N, G,
              M#m{p = undefined, store = undefined, gone = Gone#{Uid => {Why, Mem}}, file = File},
              sderl_sim_majority:left(N, G, Mem, keep_book(G, Book, W))),
    %% A client whose question was not read finds that this is no member any more (sderl_client).
    lists:foldl(fun({Unread, _}, Acc) ->
        sderl_sim_client:answered(N, G, Unread, {no, not_member}, Acc)
    end, W1, unanswered(N, G, Life, W1));
effect(N, G, Id, {wake, Ms}, W) -> in(Ms, {timer, N, G, Id, wake}, W).

%% A node with newer code sends messages that the others do not know.
newer(N, To, Addr, W) ->
    case node(N, W) of
        #n{version = 1} -> W;
        _ ->
            {Say, W1} = chance(20, W),
            case Say of
                true -> sderl_sim_net:send(N, To, Addr, {not_known_yet, W1#w.now}, W1);
                false -> W1
            end
    end.

read(N, G, Kind, Key, To, K, Which, W) ->
    #m{store = St, p = #p{cursors = Cs} = P} = M = member(N, G, W),
    Size = maps:get(chunk, W#w.opts, ?CHUNK),
    {Rows, Last, Cur} = case K of
        1 -> sderl_sim_store:read(St, Which, Size);
        _ -> sderl_sim_store:read_next(St, maps:get(Key, Cs, []), Size)
    end,
    {feed, {Kind, To, K, Rows, Last}, keep(N, G, M#m{p = P#p{cursors = Cs#{Key => Cur}}}, W)}.

applied(N, G, E, Num, Items, Index, W0) ->
    W1 = sderl_sim_check:applying(N, G, E, Num, Items, W0),
    #m{store = St0} = M = member(N, G, W1),
    {St, New, W2} = changed(G, {E, Num, Items}, Index, St0, W1),
    W3 = sderl_sim_check:applied(N, G, E, Num, St, keep(N, G, M#m{store = St}, W2)),
    deaths(N, G, New, written(New, W3)).

%% The effect of a batch on a table is computed for the first member that applies it, and for each
%% that had another table.
changed(G, Batch, Index, St0, W) ->
    case book(G, W) of
        #b{change = {Batch, Change}} = B ->
            case sderl_sim_store:follow(St0, Change) of
                none -> changed(G, Batch, Index, St0, B, W);
                {St, New} -> {St, New, W}
            end;
        B -> changed(G, Batch, Index, St0, B, W)
    end.

changed(G, {E, Num, Items} = Batch, Index, St0, B, W) ->
    {St, New} = sderl_sim_store:apply(St0, E, Num, Items, Index),
    {St, New, keep_book(G, B#b{change = {Batch, {St0, St, New}}}, W)}.

written(Rows, #w{written = Names} = W) ->
    W#w{written = [sderl_row:name(Row) || Row <- Rows] ++ Names}.

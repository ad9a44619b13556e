%% SPDX-License-Identifier: Apache-2.0
-module(sderl_frames_replay).

%% Runs the present core in the place of a recorded one. It gets the same input at the same times,
%% on a table of its own, while all other processes behave as recorded.
%%
%% Time, epochs and identities are those of the recording. So the same decisions give the same
%% numbers, and the recorded answers of the others fit. Where the present core decides otherwise it
%% gets answers to questions that it never asked, which must do no harm.

-export([stream/1, stream/2]).

-define(CHUNK, 2000).

-record(r, {core, store, cursors = #{}, inner = [], sent = [], left = false, roles = #{}}).

%% Returns the number of messages not understood, what was sent, members, names, whether the process
%% left, and the last time and state in each role that it had.
stream(Stream) -> stream(Stream, none).

%% As stream/1, with the table that an earlier process in the same life of the node left behind.
stream({_, Args0, Steps}, Before) ->
    Args1 = maps:with([group, uid, self, addr, inc, now, clock, tick_ms, aside_ms, forget_ms, ceil,
                       linked, mode, fresh], Args0),
    {Store, Args} = case {Args0, Before} of
        {#{durable := _}, _} when Before =/= none ->
            %% The durable state is that of the replay, not of the recording: an upgraded node has
            %% none of an earlier version.
            {S, _} = sderl_sim_store:redo(sderl_sim_store:index(drop, Before)),
            {S, maps:merge(Args1, sderl_sim_store:recover(S))};
        {#{mem := Mem}, _} ->
            {sderl_sim_store:new(sderl_membership:members(Mem)),
             maps:merge(Args1, maps:with([mem, found], Args0))}
    end,
    R = steps(Steps, #r{core = sderl_core:init(Args), store = Store}),
    #{unknown_messages := Unknown, members := Members, role := Role} = sderl_core:info(R#r.core),
    #{unknown => Unknown,
      sent => lists:reverse(R#r.sent),
      left => R#r.left,
      role => Role,
      roles => R#r.roles,
      members => Members,
      names => lists:sort([{N, element(2, Row)} || N := Row <- sderl_sim_store:rows(R#r.store)]),
      store => R#r.store}.

steps(_, #r{left = true} = R) -> R;
steps([], R) -> R;
steps([{step, Now, Events}, {step, Now, More, more} | Steps], R) ->
    case own(More) of
        [] -> steps([{step, Now, Events} | Steps], R);
        Asked -> steps(Steps, step(Now, Events, Asked, R))
    end;
steps([{step, Now, Events} | Steps], R) -> steps(Steps, step(Now, own(Events), [], R));
steps([{step, Now, Events, more} | Steps], R) ->
    case own(Events) of
        [] -> steps(Steps, R);
        Asked -> steps(Steps, step(Now, [], Asked, R))
    end.

%% Leaves out the recorded rows: they are read from the replay's own table.
own(Events) ->
    [E
     || E <- Events,
        not is_tuple(E) orelse not lists:member(element(1, E), [chunk_read, homes_read])].

%% As the group's process does it.
step(Now, Events, More, #r{core = C0} = R0) ->
    {Fx1, C1} = sderl_core:handle(Now, Events, C0),
    R1 = effects(Fx1, R0#r{core = C1}),
    {Fx2, C2} = sderl_core:step(Now, More, R1#r.core),
    R2 = inner(Now, effects(Fx2, R1#r{core = C2})),
    {Fx3, C3} = sderl_core:propose(Now, sderl_sim_store, R2#r.store, R2#r.core),
    R3 = inner(Now, effects(Fx3, R2#r{core = C3})),
    R3#r{roles = (R3#r.roles)#{sderl_core:role(R3#r.core) => {Now, R3#r.core}}}.

inner(_, #r{inner = []} = R) -> R;
inner(Now, #r{inner = Events} = R) ->
    {Fx, C} = sderl_core:step(Now, lists:reverse(Events), R#r.core),
    inner(Now, effects(Fx, R#r{core = C, inner = []})).

effects(Fx, R) -> lists:foldl(fun effect/2, R, Fx).

effect({send, To, Msg}, #r{sent = S} = R) -> R#r{sent = [{To, Msg} | S]};
effect({hello, Node, Msg}, #r{sent = S} = R) -> R#r{sent = [{{sderl_node, Node}, Msg} | S]};
effect(_, #r{left = true} = R) -> R;
effect({apply, Epoch, Num, Items, Index}, R) ->
    store(R, fun(St) -> element(1, sderl_sim_store:apply(St, Epoch, Num, Items, Index)) end);
effect({durable, D}, R) -> store(R, fun(St) -> sderl_sim_store:durable(D, St) end);
effect({members, Ms}, R) -> store(R, fun(St) -> sderl_sim_store:members(Ms, St) end);
effect({outbox, Req, List}, R) -> store(R, fun(St) -> sderl_sim_store:outbox(Req, List, St) end);
effect({sessions, Sessions}, R) -> store(R, fun(St) -> sderl_sim_store:sessions(Sessions, St) end);
effect({index, What}, R) -> store(R, fun(St) -> sderl_sim_store:index(What, St) end);
effect({sync_begin, Epoch, Num}, R) ->
    store(R, fun(St) -> sderl_sim_store:sync_begin(St, Epoch, Num) end);
effect({put_rows, Rows}, R) -> store(R, fun(St) -> sderl_sim_store:put_rows(St, Rows) end);
effect(sync_end, R) -> store(R, fun sderl_sim_store:sync_end/1);
effect({read_chunk, Node, K}, R) -> read(chunk_read, Node, K, all, R);
effect({look_up, Names}, R) -> looked_up(Names, R);
effect({read_homes, Node, K, Homes}, R) -> read(homes_read, Node, K, Homes, R);
effect({read_stop, Node}, #r{cursors = Cs} = R) -> R#r{cursors = maps:remove(Node, Cs)};
effect({left, _, _}, R) -> R#r{left = true};
%% Answers to clients, events and timers have no effect here; a resolver's decision comes from the
%% recording.
effect(_, R) -> R.

store(#r{store = St} = R, Fun) -> R#r{store = Fun(St)}.

looked_up(Names, #r{store = St, inner = In} = R) ->
    R#r{inner = [{looked_up,
                  [Row || Name <- Names, Row <- [sderl_sim_store:lookup(St, Name)], Row =/= none]}
                 | In]}.

read(Kind, Node, K, Which, #r{store = St, cursors = Cs, inner = In} = R) ->
    {Rows, Last, Cursor} = case Cs of
        #{Node := C} when K > 1 -> sderl_sim_store:read_next(St, C, ?CHUNK);
        _ -> sderl_sim_store:read(St, Which, ?CHUNK)
    end,
    R#r{cursors = Cs#{Node => Cursor}, inner = [{Kind, Node, K, Rows, Last} | In]}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group).
-moduledoc false.
%% One process for each group of this node: runs the effects of `sderl_core`.
%%
%% It drains its mailbox and steps once, then asks the core for the next batch. It never calls
%% another process and never waits: sends go over existing links only (`noconnect`) and with
%% `async_dist`, because without it a tiny message to a stopped node behind a user's flood holds
%% the sender for seconds (rule 20). What could block or take long (connecting, resolvers,
%% monitors of pids on other nodes) runs elsewhere.
%%
%% What another process sends is checked first (`sderl_group_door`): an ill-typed operation is
%% refused, any other ill-typed message is dropped, and both are counted.
%%
%% Clients are answered through an alias they made (see `sderl_client`), so an answer also finds its
%% client if it comes from a successor of the process that was asked.

-behaviour(gen_server).

-export([start_link/2, info/2, greet/5]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-import(sderl_clock, [now_ms/0]).

-include("../core/sderl_op.hrl").
-include("../core/sderl_row.hrl").
-include("../core/sderl_version.hrl").
-define(CHUNK, 2000).

-record(g, {
    group, uid, core :: sderl_core:state(), store :: sderl_store:store(),
    local = #{} :: sderl_store:local(),
    stale = #{} :: sderl_store:stale(),
    cursors = #{} :: #{node() => sderl_store:cursor()},
    inner = [] :: [sderl_core:event()],     % rows that effects read
    %% A coordinator orders nothing before it has its index.
    building = none :: none | sderl_index:building(),
    %% How far the names that the predecessor left are read.
    sweep = done :: start | done | sderl_store:cursor(),
    left = false :: boolean(),
    shown :: term(),                        % what the directory shows
    awaited = sderl_group_awaited:new() :: sderl_group_awaited:awaited(),
    tick_ms, timer = none :: none | reference(), resolver_ms,
    tally :: sderl_traffic:tally(),
    file :: sderl_group_file:file(),
    heap = sderl_group_heap:new() :: sderl_group_heap:heap(),
    strange = 0 :: non_neg_integer(),
    beats :: sderl_group_beats:beats()
}).

-doc """
`gone`: there is nothing to run, and the process that is returned has ended. (A supervisor keeps an
ignored child of a restart, and fails over it when it ends.)
""".
-spec start_link(term(), binary()) -> gen_server:start_ret() | {ok, pid(), gone}.
start_link(Group, Uid) ->
    case gen_server:start_link(?MODULE, {Group, Uid}, [{spawn_opt, [{fullsweep_after, 0}]}]) of
        ignore -> {ok, spawn_link(fun() -> ok end), gone};
        Started -> Started
    end.

-spec info(pid(), timeout()) -> {ok, sderl_core:info()} | {error, not_running}.
info(Pid, Timeout) ->
    try gen_server:call(Pid, info, Timeout) of
        Info -> {ok, Info}
    catch
        exit:_ -> {error, not_running}
    end.

-doc """
Passes on a hello that came to the node's server over this link. The link may be gone by now: unlike
a node's own messages to the group's process, this one may come after the `nodedown`.
""".
-spec greet(pid(), binary(), node(), sderl_links:connection() | undefined, term()) -> ok.
greet(Pid, Uid, From, Connection, Hello) ->
    Pid ! {sderl_greeted, Uid, From, Connection, Hello},
    ok.

%% ---------------------------------------------------------------- gen_server

-spec init({term(), binary()}) -> {ok, #g{}, {continue, start}} | ignore.
init({Group, Uid}) ->
    case sderl_dir:start_args(Group, Uid) of
        none ->
            %% Our predecessor may have been killed when it was about to leave.
            _ = sderl_dir:finish(Group),
            ignore;
        Args ->
            case Group =/= undefined orelse sderl_group_start:begins_alone(Uid) of
                %% A caller that made the group, or added this node, is answered once the file is
                %% there.
                true -> {ok, keep(start(Group, Uid, Args)), {continue, start}};
                false -> ignore
            end
    end.

start(Group, Uid, #{options := #{tick_ms := Tick, aside_ms := Aside}} = Args) ->
    _ = process_flag(async_dist, true),
    _ = process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    ok = sderl_heart:leave(Uid),
    {Core, Store, Local} = sderl_group_start:begins_with(Group, Uid, Args),
    Timer = sderl_timer:next(none, rand:uniform(Tick), tick),
    #g{timer = Timer, group = Group, uid = Uid, core = Core, store = Store, local = Local,
       sweep = start, tick_ms = Tick,
       tally = sderl_traffic:group(Group), file = sderl_group_file:new(Group, Uid, Args),
       beats = sderl_group_beats:new(Tick, Aside),
       resolver_ms = sderl_options:value(resolver_timeout_ms)}.

-spec handle_continue(start, #g{}) -> {noreply, #g{}} | {stop, normal, #g{}}.
handle_continue(start, G) -> run([start], G).

-spec handle_call(term(), gen_server:from(), #g{}) -> {reply, term(), #g{}} | {noreply, #g{}}.
handle_call(info, _, #g{core = C, group = Group, uid = Uid, strange = N} = G) ->
    #{unknown_messages := U} = I = sderl_core:info(C),
    {reply,
     I#{group => Group, uid => Uid, names => sderl_names:count(Group), unknown_messages := U + N},
     G};
handle_call(_, _, G) -> {reply, {error, unknown_call}, G}.

-spec handle_cast(term(), #g{}) -> {noreply, #g{}}.
handle_cast(_, G) -> {noreply, G}.

-spec handle_info(term(), #g{}) -> {noreply, #g{}} | {stop, normal, #g{}}.
handle_info(tick, #g{tick_ms = T, timer = Timer, sweep = Sweep, heap = Heap} = G0) ->
    %% The sweep does not begin at once: clients may wait for a coordinator, none for the sweep.
    _ = Sweep =:= start andalso (self() ! sderl_sweep),
    Ran = now_ms(),
    G = look(keep_again(G0#g{heap = sderl_group_heap:tick(Heap),
                             timer = sderl_timer:next_together(Timer, T, tick)})),
    #g{uid = Uid, beats = Beats} = G,
    Due = sderl_group_beats:due(Uid, Beats),
    case run(Due ++ [tick], G#g{beats = sderl_group_beats:begin_tick(Beats)}) of
        {noreply, #g{beats = Said} = Next} ->
            {noreply, Next#g{beats = sderl_group_beats:end_tick(Uid, Ran, Said)}};
        Stop -> Stop
    end;
handle_info(sderl_build, #g{building = none} = G) -> {noreply, G};
handle_info(sderl_build, #g{building = Building} = G0) ->
    case build_index(Building, G0) of
        #g{building = none} = G -> run([], G);
        G -> {noreply, G}
    end;
handle_info(sderl_sweep, G) -> {noreply, sweep(G)};
handle_info({'ETS-TRANSFER', Table, _, index}, #g{store = St} = G) ->
    ok = sderl_store:own_index(Table, whereis(sderl_watch), St),
    {noreply, G};
%% A node was tried (`sderl_connector`), or the directory has a place for this group: clients that
%% await the group may go on.
handle_info(sderl_poke, G) -> {noreply, show(G)};
handle_info({sderl_await, From, Ms}, #g{awaited = A} = G) when is_reference(From), is_integer(Ms) ->
    {noreply, ready(G#g{awaited = sderl_group_awaited:await(From, Ms, A)})};
handle_info({resolved, {Name, A, B}, Decision} = Msg, G) ->
    case sderl_resolver:is_decision(Decision) andalso sderl_wire:row(A) andalso sderl_wire:row(B) of
        true ->
            #{keep := Keep, effects := Fx, failed := Why} = Decision,
            _ = Why =:= undefined orelse
                sderl_event:emit(resolver_failed,
                                 #{group => G#g.group, name => Name, reason => Why}),
            run([{resolved, Name, A, B, Keep, Fx}], G);
        false -> {noreply, strange(Msg, G)}
    end;
handle_info({'EXIT', _, _}, G) -> {noreply, G};
handle_info(Msg, G0) ->
    case event(Msg, G0) of
        none -> {noreply, strange(Msg, G0)};
        Event ->
            {Events, G} = drain([Event], hear(Event, died(Msg, G0))),
            run(lists:reverse(Events), G)
    end.

%% If the application stops the other members are told, so that they need not find out. After a
%% member left, they expect nothing more of it; after a crash its successor says hello.
-spec terminate(term(), #g{}) -> ok.
terminate(Why, #g{uid = Uid} = G) ->
    ok = sderl_heart:leave(Uid),
    take_leave(Why, G).

take_leave(shutdown, #g{core = C} = G) ->
    lists:foreach(fun(N) -> send_node(N, bye, G) end, sderl_core:peers(C));
%% This node left its island, or the island became part of another: members that did not hear so by
%% a batch are told, so that they need not wait for it.
take_leave(Why, #g{group = undefined, core = C, left = Left} = G)
  when Left; Why =:= {shutdown, moved} ->
    lists:foreach(fun(N) -> send_node(N, away, G) end, sderl_core:peers(C));
take_leave(_, _) -> ok.

%% ---------------------------------------------------------------- the mailbox

event(Msg, #g{uid = Uid, local = Local}) -> sderl_group_door:event(Msg, Uid, Local).

%% All messages that are there, up to a bound that keeps a step short.
drain(Events, G) -> drain(Events, 5000, G).

drain(Events, 0, G) -> {Events, G};
drain(Events, Left, G) ->
    receive
        {sderl_op, From, Op} = M ->
            case sderl_group_door:asked(op, From, Op) of
                none -> drain(Events, Left - 1, strange(M, G));
                E -> drain([E | Events], Left - 1, G)
            end;
        {sderl, _, _, _, _} = M -> drained(M, Events, Left, G);
        {'DOWN', _, process, _, _} = M -> drained(M, Events, Left, G);
        {nodeup, _, _} = M -> drained(M, Events, Left, G);
        {nodedown, _, _} = M -> drained(M, Events, Left, G)
    after 0 -> {Events, G}
    end.

drained(M, Events, Left, G) ->
    case event(M, G) of
        none -> drain(Events, Left - 1, strange(M, G));
        E -> drain([E | Events], Left - 1, hear(E, died(M, G)))
    end.

hear(Event, #g{beats = Beats} = G) -> G#g{beats = sderl_group_beats:hear(Event, Beats)}.

%% The process's monitor is gone. If a later batch gives the process a name it gets a new monitor,
%% which reports the death at once.
died({'DOWN', _, process, Pid, _}, #g{local = L} = G) -> G#g{local = maps:remove(Pid, L)};
died(_, G) -> G.

%% Late messages of a former group or monitor are ignored; the rest is counted.
strange({sderl, ?VSN, Uid, _, _}, #g{uid = Own} = G) when is_binary(Uid), Uid =/= Own -> G;
strange({sderl_greeted, _, _, _, _}, G) -> G;
strange({'DOWN', _, process, _, _}, G) -> G;
strange({sderl, Version, _, Node, _}, #g{strange = S} = G)
  when is_integer(Version), Version =/= ?VSN, is_atom(Node) ->
    ok = sderl_refused:note_version(Node, Version),
    G#g{strange = S + 1};
strange(Msg, #g{strange = S} = G) ->
    case Msg of
        {Asked, From, _} when Asked =:= sderl_op; Asked =:= sderl_again ->
            sderl_client:answer(From, {no, unknown_operation});
        _ -> ok
    end,
    G#g{strange = S + 1}.

%% ---------------------------------------------------------------- a step

run(Events, #g{core = C0} = G0) ->
    Now = now_ms(),
    {Fx1, C1} = sderl_core:handle(Now, Events, C0),
    G1 = effects(Fx1, G0#g{core = C1}),
    %% Clients that were just answered run and ask again: their next operations go with our
    %% acknowledgement, or into the batch that we make, instead of after it.
    {More, G2} = case answered(Fx1) of
        true -> erlang:yield(), drain([], G1);
        false -> {[], G1}
    end,
    {Fx2, C2} = sderl_core:step(Now, lists:reverse(More), G2#g.core),
    G3 = inner(Now, effects(Fx2, G2#g{core = C2})),
    case propose(Now, G3) of
        #g{left = true} = G4 -> {stop, normal, G4};
        G4 -> {noreply, show(G4)}
    end.

propose(Now, #g{building = none, core = C0, store = Store} = G) ->
    case sderl_core:may_propose(C0) of
        true ->
            {Fx, C} = sderl_core:propose(Now, sderl_store, Store, C0),
            inner(Now, effects(Fx, G#g{core = C}));
        false -> G
    end;
propose(_, G) -> G.

%% Rows read for a snapshot are sent before anything else happens: a batch that went out between
%% reading and sending them would be overwritten by older rows.
inner(_, #g{inner = []} = G) -> G;
inner(Now, #g{inner = Events} = G) ->
    {Fx, C} = sderl_core:step(Now, lists:reverse(Events), G#g.core),
    inner(Now, effects(Fx, G#g{core = C, inner = []})).

answered([{replies, [_ | _]} | _]) -> true;
answered([_ | Fx]) -> answered(Fx);
answered([]) -> false.

%% ---------------------------------------------------------------- effects

effects([], G) -> G;
effects([E | Es], #g{left = true} = G) when element(1, E) =/= send, element(1, E) =/= replies ->
    %% Our tables are cleared: rows written now would get into the next group of this name.
    effects(Es, G);
effects([E | Es], G) -> effects(Es, effect(E, G)).

effect({send, Addr, Heartbeat}, #g{beats = Before} = G)
  when element(1, Heartbeat) =:= hb; element(1, Heartbeat) =:= hb_ack ->
    {IsSent, Beats} = sderl_group_beats:say(Addr, Heartbeat, Before),
    _ = IsSent andalso send(Addr, Heartbeat, G),
    G#g{beats = Beats};
effect({send, Addr, Msg}, G) ->
    ok = send(Addr, Msg, G),
    G#g{beats = sderl_group_beats:unsaid(Addr, G#g.beats)};
effect({replies, List}, #g{tally = Tally} = G) ->
    sderl_client:answer_all(List, Tally),
    G;
effect({apply, Epoch, Num, Items, Index}, #g{store = St0, local = L0, group = Group} = G0) ->
    %% Saved before the rows change: if we die here, the successor applies the batch again.
    Wanted = sderl_subs:wanted(Group),
    Notify = lists:member(name, Wanted),
    {St, L, Foreign, Events} = sderl_store:apply(St0, L0, {Epoch, Num}, Items, Index, Notify),
    notify(Events, G0),
    _ = lists:member(rows, Wanted) andalso sderl_subs:notify(Group, {rows, changed_rows(Items)}),
    watch(Foreign, G0),
    G0#g{store = St, local = L};
effect({durable, D}, #g{group = Group} = G) ->
    true = sderl_saved:durable(Group, D),
    keep(G);
effect({members, Members}, #g{store = St} = G) ->
    G#g{store = sderl_store:members(Members, St)};
effect({outbox, Req, List}, #g{group = Group} = G) ->
    true = sderl_saved:outbox(Group, Req, List),
    G;
effect({hello, Node, Msg}, #g{group = Group, uid = Uid} = G) ->
    ok = sderl_traffic:send({sderl_node, Node}, {sderl_hello, ?VSN, Group, Uid, node(), Msg},
                            control, Msg),
    G#g{beats = sderl_group_beats:unsaid_to_node(Node, G#g.beats)};
effect({index, build}, G) -> build_index(start, stop_building(G));
effect({index, drop}, G) -> drop_index(G);
effect({sessions, Sessions}, #g{store = St} = G) ->
    G#g{store = sderl_store:sessions(St, Sessions)};
effect({sync_begin, Epoch, Num}, G0) ->
    #g{store = St} = G = drop_index(G0),
    G#g{stale = sderl_store:sync_begin(St, Epoch, Num)};
effect({put_rows, Rows}, #g{group = Group, store = St, local = L0, stale = S0} = G) ->
    {L, S, Events} = sderl_store:put_rows(St, L0, S0, Rows, sderl_subs:wanted(Group, name)),
    notify(Events, G),
    G#g{store = sderl_store:filled(Rows, St), local = L, stale = S};
effect(sync_end, #g{group = Group, store = St, local = L0, stale = S} = G) ->
    {L, Events} = sderl_store:sync_end(St, L0, S, sderl_subs:wanted(Group, name)),
    notify(Events, G),
    sderl_subs:notify(Group, {rows, all}),
    G#g{local = L, stale = #{}};
effect({read_chunk, Node, K}, G) -> read(chunk_read, Node, K, all, G);
effect({look_up, Names}, #g{store = St, inner = In} = G) ->
    Found = [Row || Name <- Names, Row <- [sderl_store:lookup(St, Name)], Row =/= none],
    G#g{inner = [{looked_up, Found} | In]};
effect({read_homes, Node, K, Homes}, G) -> read(homes_read, Node, K, Homes, G);
effect({read_stop, Node}, #g{cursors = Cs} = G) ->
    case maps:take(Node, Cs) of
        {Cursor, Rest} -> sderl_store:read_stop(Cursor), G#g{cursors = Rest};
        error -> G
    end;
effect({resolve, Name, A, B}, #g{resolver_ms = Ms} = G) ->
    %% The resolver of the older registration decides.
    ?ROW(_, PidA, _, VersionA, OptionsA) = A,
    ?ROW(_, PidB, _, VersionB, OptionsB) = B,
    Older = case VersionA =< VersionB of
        true -> OptionsA;
        false -> OptionsB
    end,
    _ = sderl_resolver:start({Name, A, B}, Name, PidA, PidB, resolver(Older), Ms),
    G;
effect({clash_effects, Fx}, G) ->
    lists:foreach(fun sderl_watch:tell_loser/1, Fx),
    G;
effect({event, members_removed, #{nodes := [N]}}, G) when N =:= node() ->
    %% The event of this node is `group_left`.
    G;
effect({event, Name, #{group := Group} = Meta}, G) ->
    sderl_event:emit(Name, Meta),
    sderl_subs:notify(Group, {group, Name, maps:remove(group, Meta)}),
    G;
effect({left, Why, Mem}, #g{group = Group, uid = Uid, core = C, file = File} = G) ->
    ok = sderl_group_file:left({Mem, sderl_core:highest(C)}, Why, File),
    sderl_dir:left(Group, Uid, Why, Mem),
    Group =/= undefined andalso
        sderl_event:emit(case Why of deleted -> group_deleted; removed -> group_left end,
                         #{group => Group, nodes => [node()]}),
    sderl_subs:notify(Group,
                      {group, case Why of deleted -> group_deleted; removed -> left end, #{}}),
    G#g{left = true};
effect({majority, Which}, #g{group = Group} = G) ->
    lists:foreach(fun({Name, Pid, Opts}) ->
        sderl_watch:tell_holder(Which, Opts, {Group, Name}, Pid)
    end, sderl_names:held_at(node(), Group)),
    G;
effect({wake, Ms}, G) ->
    _ = erlang:send_after(Ms, self(), wake),
    G.

send(Addr, Msg, #g{uid = Uid}) ->
    sderl_traffic:send(Addr, {sderl, ?VSN, Uid, node(), Msg}, group, Msg).

keep(#g{core = C, file = File} = G) -> G#g{file = sderl_group_file:keep(C, File)}.

keep_again(#g{core = C, file = File} = G) -> G#g{file = sderl_group_file:keep_again(C, File)}.

ready(#g{core = C, awaited = A} = G) ->
    {Answers, Rest} = sderl_group_awaited:answers(C, A),
    lists:foreach(fun({From, Answer}) -> sderl_client:answer(From, Answer) end, Answers),
    G#g{awaited = Rest}.

look(#g{core = C, awaited = A} = G) -> G#g{awaited = sderl_group_awaited:tick(C, A)}.

notify(Events, #g{group = Group}) ->
    lists:foreach(fun(E) -> sderl_subs:notify(Group, E) end, Events).

%% The names whose rows a batch may have changed; `all` where it does not name them.
changed_rows([#seg{operations = Operations}]) -> sderl_op:names(Operations);
changed_rows(Items) ->
    case lists:all(fun(Item) -> is_record(Item, seg) orelse is_record(Item, clashes) end, Items) of
        true -> sderl_op:names(lists:append([Ops || #seg{operations = Ops} <- Items]));
        false -> all
    end.

watch([], _) -> ok;
watch(Foreign, #g{group = Group}) -> sderl_watch:watch(self(), Group, Foreign).

resolver(#{resolver := R}) -> R;
resolver(_) -> sderl_options:value(resolver).

read(Kind, Node, K, Which, #g{store = St, cursors = Cs, inner = In} = G) ->
    {Rows, Last, Cursor} = case Cs of
        #{Node := C} when K > 1 -> sderl_store:read_next(C);
        #{Node := C} -> sderl_store:read_stop(C), sderl_store:read(St, Which, ?CHUNK);
        _ -> sderl_store:read(St, Which, ?CHUNK)
    end,
    Rest = case Last of
        true -> maps:remove(Node, Cs);
        false -> Cs#{Node => Cursor}
    end,
    G#g{cursors = Rest, inner = [{Kind, Node, K, Rows, Last} | In]}.

send_node(N, Msg, #g{core = C, uid = Uid}) ->
    case sderl_core:addr(N, C) of
        undefined -> ok;
        Addr -> _ = erlang:send(Addr, {sderl, ?VSN, Uid, node(), Msg}, [noconnect]), ok
    end.

%% ---------------------------------------------------------------- what others see of us

%% Updates the directory, if anything that it shows has changed.
show(#g{group = Group, core = C, shown = Shown} = G0) ->
    case {sderl_core:membership(C), sderl_core:lead(C)} of
        Shown -> ready(G0);
        {Mem, Lead} = Now ->
            %% Drops the index of a predecessor that was coordinator.
            G = case Lead =:= node() orelse Lead =:= undefined of
                true -> G0;
                false -> drop_index(G0)
            end,
            Members = sderl_membership:members(Mem),
            %% This node applies the batch that removes it before it leaves, and is in the group
            %% until then.
            case Group =:= undefined orelse lists:member(node(), Members) of
                true -> show(Mem, Members, Now, G);
                false -> ready(G)
            end
    end.

show(Mem, Members, {_, Lead} = Now, #g{group = Group, uid = Uid, store = St} = G) ->
    ok = sderl_forgotten:note(Group, sderl_membership:forgotten(Mem)),
    %% The directory has a row for an island only after the node server has made one, and none when
    %% the node leaves the island.
    case sderl_dir:show(Group, Uid, self(), Members, Lead) of
        true -> ready(G#g{shown = Now, store = sderl_store:members(Members, St)});
        false ->
            ok = sderl_forgotten:note(Group, []),
            ready(G#g{store = sderl_store:members(Members, St)})
    end.

build_index(At, #g{store = St0} = G) ->
    case sderl_store:build_index(whereis(sderl_watch), At, St0) of
        {done, Foreign, St} ->
            watch(Foreign, G),
            G#g{store = St, building = none};
        {more, Building} ->
            self() ! sderl_build,
            G#g{building = Building}
    end.

stop_building(#g{building = none} = G) -> G;
stop_building(#g{building = Building} = G) ->
    sderl_index:stop(Building),
    G#g{building = none}.

drop_index(G0) ->
    #g{store = St} = G = stop_building(G0),
    case sderl_store:drop_index(St) of
        St -> G;
        Without ->
            sderl_watch:drop(self()),
            G#g{store = Without}
    end.

%% The names that the predecessor left, some at a time.
sweep(#g{sweep = done} = G) -> G;
sweep(#g{sweep = At, store = St, local = L0, group = Group} = G) ->
    {L, Foreign, Dropped, Next} = sderl_store:sweep(St, L0, At),
    sderl_event:dropped(?MODULE, Dropped, #{group => Group}),
    watch(Foreign, G),
    _ = Next =:= done orelse (self() ! sderl_sweep),
    G#g{local = L, sweep = Next}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_forward).
-moduledoc false.
%% Eight processes a node: each takes frames (`sderl_route_send`), delivers those that are for this
%% node or a mate, and passes the others on.
%%
%% **It never waits.** Sends do not connect and do not suspend. When a link is full, what goes over it
%% goes to a process of its own (a *lane*, `sderl_lane`), which may be suspended; until the lane is
%% empty everything for that node goes there, so that the order stays. A lane holds at most `route_queue`
%% messages, and this process's own queue at most four times that: what comes then is refused.
%%
%% **Nothing goes unnoticed.** What is refused or cannot be delivered is reported to the node of whoever
%% sent it, added up by sender, receiver and reason; a call gets its error at once.
%%
%% Order holds between one sender and one receiver as long as the way between them stays the same: both
%% choose the process here, and the way (see `sderl_route_send`).

-export([start_link/1, loop/3]).
-export([system_continue/3, system_terminate/4, system_code_change/4]).

-define(VSN, 1).
%% How many frames between two looks at the own queue.
-define(LOOK, 128).
-define(MANY, 1000).
%% Counters of a node, all forwarding processes together.
-define(DELIVERED, 1).
-define(FORWARDED, 2).
-define(FAILED, 3).

-record(f, {
    lanes = #{} :: #{node() => sderl_lane:t()},
    failed = #{} :: #{{pid(), term(), sderl_route_send:failure()} => pos_integer()},
    counts :: counters:counters_ref(),
    limit :: pos_integer(),
    look = ?LOOK :: non_neg_integer(),
    %% More is waiting here than may.
    flooded = false :: boolean()
}).

-spec start_link(atom()) -> {ok, pid()}.
start_link(Name) -> proc_lib:start_link(?MODULE, loop, [init, self(), Name]).

-spec loop(init | sys, pid(), term()) -> no_return().
loop(init, Parent, Name) ->
    true = register(Name, self()),
    _ = process_flag(message_queue_data, off_heap),
    ok = proc_lib:init_ack({ok, self()}),
    Limit = maps:get(route_queue, sderl_dir:options(), 10_000),
    idle(Parent, #f{counts = sderl_route_report:counts(), limit = Limit}).

%% ---------------------------------------------------------------- the loop

%% While frames wait, failures add up; they are told when nothing waits.
run(Parent, #f{look = 0} = F) ->
    {message_queue_len, Length} = process_info(self(), message_queue_len),
    #f{limit = Limit} = F,
    run(Parent, tell(many, F#f{look = ?LOOK, flooded = Length > 4 * Limit}));
run(Parent, F) ->
    receive Message -> take(Message, Parent, F)
    after 0 -> idle(Parent, tell(all, F#f{flooded = false}))
    end.

idle(Parent, F) ->
    receive Message -> take(Message, Parent, F) end.

take({sderl_to, ?VSN, Hops, Hash, Group, What, From, Message}, Parent, #f{look = Look} = F) ->
    run(Parent, to(Hops, Hash, Group, What, From, Message, F#f{look = Look - 1}));
take({sderl_at, ?VSN, Hops, Hash, Node, At, From, Message}, Parent, #f{look = Look} = F) ->
    run(Parent, at(Hops, Hash, Node, At, From, Message, F#f{look = Look - 1}));
take({lane_failed, From, What, Reason}, Parent, F) -> run(Parent, failed(From, What, Reason, F));
take({lane_idle, Node, Lane}, Parent, #f{lanes = Lanes} = F) ->
    case Lanes of
        #{Node := L} -> run(Parent, case sderl_lane:stop(Lane, L) of true -> F#f{lanes = maps:remove(Node, Lanes)}; false -> F end);
        #{} -> run(Parent, F)
    end;
take({system, From, Request}, Parent, F) ->
    sys:handle_system_msg(Request, From, Parent, ?MODULE, [], F);
take({'EXIT', Parent, Reason}, Parent, _) -> exit(Reason);
take(_, Parent, F) ->
    sderl_dir:unknown(?MODULE),
    run(Parent, F).

-spec system_continue(pid(), [sys:dbg_opt()], #f{}) -> no_return().
system_continue(Parent, _, F) -> run(Parent, F).
-spec system_terminate(term(), pid(), [sys:dbg_opt()], #f{}) -> no_return().
system_terminate(Reason, _, _, _) -> exit(Reason).
-spec system_code_change(#f{}, module(), term(), term()) -> {ok, #f{}}.
system_code_change(F, _, _, _) -> {ok, F}.

%% ---------------------------------------------------------------- frames to groups

to(_, _, Group, What, From, _, #f{flooded = true} = F) -> failed(From, {Group, What}, busy, F);
to(Hops, Hash, Group, {name, Name} = What, From, Message, F) ->
    case sderl_read:local(Group, Name) of
        undefined -> elsewhere(Hops, Hash, Group, What, From, Message, F);
        Pid -> pass(Pid, Message, {Group, What}, From, F)
    end;
to(Hops, Hash, Group, {call, Name} = What, From, Message, F) ->
    case sderl_read:local(Group, Name) of
        undefined -> elsewhere(Hops, Hash, Group, What, From, Message, F);
        Pid -> at(Hops, Hash, node(Pid), {call, Pid}, From, Message, F)
    end;
to(Hops, Hash, Group, What, From, Message, F) ->
    case sderl_store:is_member(Group) of
        true -> all(Hops, Hash, Group, What, From, Message, F);
        false -> elsewhere(Hops, Hash, Group, What, From, Message, F)
    end.

elsewhere(Hops, Hash, Group, What, From, Message, F) ->
    case sderl_store:is_member(Group) of
        true -> failed(From, {Group, What}, no_name, F);
        false -> onward({group, Group}, sderl_to, Hops, Hash, Group, What, From, Message, F)
    end.

%% To more than one process, or to one that every member has.
all(_, _, _, {call_any, Process}, From, Message, F) when is_atom(Process) ->
    sderl_route_call:serve(From, Process, Message),
    delivered(F);
all(Hops, Hash, Group, {names, Pattern}, From, Message, F0) ->
    Pids = sderl_store:matching(Group, Pattern),
    maps:fold(fun
        (Node, [Pid], F) when Node =/= node() -> pass(Pid, Message, {Group, {names, Pattern}}, From, F);
        (Node, Ps, F) -> at(Hops, Hash, Node, {pids, Ps}, From, Message, F)
    end, F0, maps:groups_from_list(fun erlang:node/1, Pids));
all(_, _, Group, {nodes, Process}, From, Message, F0) when is_atom(Process) ->
    {_, _, _, Members, _} = sderl_dir:own(Group),
    lists:foldl(fun
        (Node, F) when Node =:= node() ->
            _ = [Pid ! Message || Pid <- [whereis(Process)], is_pid(Pid)],
            delivered(F);
        (Node, F) -> out(Node, {Process, Node}, Message, {Group, {nodes, Process}}, From, F)
    end, F0, Members);
all(_, _, _, _, _, _, F) ->
    sderl_dir:unknown(?MODULE),
    F.

%% To a process, from a node that is linked to the process's node, or knows a way to it.
pass(Pid, Message, _, _, F) when node(Pid) =:= node() ->
    Pid ! Message,
    delivered(F);
pass(Pid, Message, What, From, F) -> out(node(Pid), Pid, Message, What, From, F).

%% ---------------------------------------------------------------- frames to nodes

at(_, _, Node, At, From, Message, F) when Node =:= node() ->
    here(At, From, Message),
    delivered(F);
at(Hops, Hash, Node, At, From, Message, F) ->
    {To, What} = case At of
        {to, P} -> {P, Message};
        _ -> {{sderl_route_send:forwarder(Hash), Node}, {sderl_at, ?VSN, Hops, Hash, Node, At, From, Message}}
    end,
    case send(Node, To, What, {Node, At}, From, F) of
        {ok, F1} -> count(?FORWARDED, F1);
        {noconnect, F1} -> onward({node, Node}, sderl_at, Hops, Hash, Node, At, From, Message, F1);
        {failed, F1} -> F1
    end.

here({group, Group, To}, From, Message) -> self() ! {sderl_to, ?VSN, 1, 0, Group, To, From, Message}, ok;
here({to, To}, _, Message) when is_pid(To); is_reference(To) -> To ! Message, ok;
here({pids, Pids}, _, Message) -> lists:foreach(fun(P) -> P ! Message end, Pids);
here({call, Pid}, From, Message) -> sderl_route_call:serve(From, Pid, Message);
here(probe, From, _) -> sderl_route_call:probe(From);
here(report, _, Report) -> sderl_route_report:failed(Report);
here(_, _, _) -> sderl_dir:unknown(?MODULE).

%% ---------------------------------------------------------------- out

onward(_, _, 1, _, Where, What, From, _, F) -> failed(From, {Where, What}, hop_limit, F);
onward(Key, Tag, Hops, Hash, Where, What, From, Message, F) ->
    case ets:lookup_element(sderl_routes, Key, 3, none) of
        none -> failed(From, {Where, What}, no_route, F);
        First ->
            Best = sderl_route_send:pick(First, Hash),
            Frame = {Tag, ?VSN, Hops - 1, Hash, Where, What, From, Message},
            Nodes = [Best | case First of {_} -> []; _ -> lists:delete(Best, tuple_to_list(First)) end],
            next(Nodes, sderl_route_send:forwarder(Hash), Frame, {Where, What}, From, F)
    end.

next([], _, _, What, From, F) -> failed(From, What, no_route, F);
next([Node | Nodes], Name, Frame, What, From, F) ->
    case send(Node, {Name, Node}, Frame, What, From, F) of
        {ok, F1} -> count(?FORWARDED, F1);
        {noconnect, F1} -> next(Nodes, Name, Frame, What, From, F1);
        {failed, F1} -> F1
    end.

out(Node, To, Message, What, From, F) ->
    case send(Node, To, Message, What, From, F) of
        {ok, F1} -> delivered(F1);
        {noconnect, F1} -> failed(From, What, unreachable, F1);
        {failed, F1} -> F1
    end.

send(Node, To, Message, What, From, #f{lanes = Lanes} = F) ->
    case Lanes of
        #{Node := Lane} ->
            case sderl_lane:put(Lane, To, Message, What, From) of
                direct -> direct(Node, To, Message, What, From, F);
                ok -> {ok, F};
                full -> {failed, failed(From, What, busy, F)}
            end;
        #{} -> direct(Node, To, Message, What, From, F)
    end.

direct(Node, To, Message, What, From, #f{lanes = Lanes, limit = Limit} = F) ->
    case erlang:send(To, Message, [noconnect, nosuspend]) of
        ok -> {ok, F};
        noconnect -> {noconnect, F};
        nosuspend ->
            Lane = case Lanes of #{Node := L} -> L; #{} -> sderl_lane:start(Node, Limit) end,
            _ = sderl_lane:first(Lane, To, Message, What, From),
            {ok, F#f{lanes = Lanes#{Node => Lane}}}
    end.

%% ---------------------------------------------------------------- counts and failures

delivered(F) -> count(?DELIVERED, F).

count(Which, #f{counts = C} = F) ->
    ok = counters:add(C, Which, 1),
    F.

failed(From, _, Reason, F) when is_reference(From) ->
    sderl_route_call:failed(From, Reason),
    count(?FAILED, F);
failed(From, What, Reason, #f{failed = Failed} = F) when is_pid(From) ->
    Key = {From, What, Reason},
    count(?FAILED, F#f{failed = Failed#{Key => maps:get(Key, Failed, 0) + 1}});
failed(_, _, _, F) -> count(?FAILED, F).

tell(_, #f{failed = Failed} = F) when map_size(Failed) =:= 0 -> F;
tell(many, #f{failed = Failed} = F) when map_size(Failed) < ?MANY -> F;
tell(_, #f{failed = Failed} = F) ->
    maps:foreach(fun(Node, List) ->
        case Node =:= node() of
            true -> sderl_route_report:failed({node(), List});
            false -> _ = sderl_route_send:node(Node, report, none, {node(), List}, [noconnect, nosuspend]), ok
        end
    end, maps:groups_from_list(fun({From, _, _, _}) -> node(From) end, [{P, W, R, N} || {P, W, R} := N <- Failed])),
    F#f{failed = #{}}.

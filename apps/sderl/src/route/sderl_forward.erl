%% SPDX-License-Identifier: Apache-2.0
-module(sderl_forward).
-moduledoc false.
%% Eight processes a node: each takes frames (`sderl_route_send`), delivers those that are for
%% processes of this node, and passes the others on.
%%
%% **In bundles.** Frames that wait here for the same next node go there in one message to the
%% process of the same name, also on the last stretch. Most of the cost of a message is its sending
%% and receiving by the distribution, so a busy gateway that bundles passes on about twice as many
%% messages as a relay that does not. An idle one sends each frame at once. All frames go through
%% the same processes, which keeps their order: see `sderl_route`. The last gateway sends a single
%% message straight to the receiver when no earlier message for it can be under way to its node any
%% more: `sderl_straight`.
%%
%% **It never waits.** Sends do not connect and do not suspend. When a link is full, its frames go
%% to a process of their own (a *lane*, `sderl_lane`), which may be suspended. Until the lane is
%% empty all frames for that node go there, so that their order stays. A lane holds at most
%% `route_queue` messages, and this process's own queue at most four times that: further messages
%% are refused.
%%
%% **Failures are reported.** What is refused or cannot be delivered is reported to the sender's
%% node, added up by sender, receiver and reason; a call gets its error at once.

-export([start_link/1, loop/3]).
-export([system_continue/3, system_terminate/4, system_code_change/4]).
-export_type([entry/0]).

-import(sderl_clock, [now_ms/0]).

-define(VSN, 1).
%% Messages between two looks at the length of the own queue.
-define(LOOK, 128).
%% Most entries of a bundle.
-define(BUNDLE, 64).
%% The most reductions of a process before another one runs.
-define(WORK, 4000).
%% So many failures are reported even while messages wait.
-define(MANY, 1000).
%% How long failures add up at most, in ms.
-define(TELL_MS, 200).
%% Counters of a node, all forwarding processes together.
-define(DELIVERED, 1).
-define(FORWARDED, 2).
-define(FAILED, 3).

-doc """
An entry of a bundle: a frame, or a process with its message; its receiver and its sender.
""".
-type entry() :: {tuple() | nonempty_improper_list(pid() | reference(), term()), {term(), term()},
                  sderl_route_send:from()}.

-record(f, {
    %% For each next node how many, and the entries, the last first.
    out = #{} :: #{node() => nonempty_improper_list(pos_integer(), [entry()])},
    lanes = #{} :: #{node() => sderl_lane:t()},
    failed = #{} :: #{{pid(), term(), sderl_route_send:failure()} => pos_integer()},
    straight = sderl_straight:new() :: sderl_straight:straight(),
    %% Takes answers to the questions of `straight`.
    alias :: reference(),
    told :: integer(),
    %% The name of this process, and of those that it sends to.
    name :: atom(),
    counts :: counters:counters_ref(),
    limit :: pos_integer(),
    %% More messages wait here than may.
    flooded = false :: boolean()
}).

-spec start_link(atom()) -> {ok, pid()}.
start_link(Name) -> proc_lib:start_link(?MODULE, loop, [init, self(), Name]).

-spec loop(init, pid(), term()) -> no_return().
loop(init, Parent, Name) ->
    true = register(Name, self()),
    _ = process_flag(message_queue_data, off_heap),
    ok = proc_lib:init_ack({ok, self()}),
    Limit = sderl_route_config:value(route_queue),
    idle(Parent, #f{name = Name, counts = sderl_traffic:routed(), limit = Limit,
                    told = now_ms() - ?TELL_MS, alias = alias()}).

%% ---------------------------------------------------------------- the loop

%% While messages wait, bundles grow; they are sent when none waits. Failures are added up for a
%% moment. `Look`: messages until the next look at the length of the own queue.
run(Look, Parent, #f{limit = Limit} = F) when Look =< 0 ->
    {message_queue_len, Length} = process_info(self(), message_queue_len),
    run(?LOOK, Parent, tell(some, F#f{flooded = Length > 4 * Limit}));
run(Look, Parent, #f{out = Out} = F) ->
    receive Message -> take(Message, Look, Parent, F)
    after 0 ->
        case maps:to_list(Out) of
            [] -> rest(Parent, F);
            [{Node, [1 | Entry]}] -> rest(Parent, bundle(Node, Entry, F#f{out = #{}}));
            _ ->
                %% Messages that have arrived at this node, but not yet at this process, shall get
                %% into the bundles.
                look_at_links(),
                receive Message -> take(Message, Look, Parent, F)
                after 0 -> rest(Parent, F)
                end
        end
    end.

%% A scheduler that has processes to run reads its links only after these have done so much work. It
%% reads some kilobytes at a time: without this a bundle of large messages would end with each
%% piece.
look_at_links() ->
    true = erlang:bump_reductions(?WORK),
    true = erlang:yield(),
    true = erlang:bump_reductions(?WORK),
    true = erlang:yield(),
    ok.

rest(Parent, F) -> idle(Parent, tell(some, flush(F#f{flooded = false}))).

idle(Parent, #f{failed = Failed} = F) when map_size(Failed) =:= 0 ->
    receive
        {sderl_to, ?VSN, _, _, Group, {name, Name}, From, Message} = Frame ->
            lone(sderl_names:whereis(Group, Name), Message, From, Frame, Parent, F);
        Message -> take(Message, ?LOOK, Parent, F)
    end;
idle(Parent, F) ->
    receive Message -> take(Message, ?LOOK, Parent, F)
    after ?TELL_MS -> idle(Parent, tell(all, F))
    end.

%% The shortest path for a message that came alone, so that an idle gateway adds little more than a
%% relay would.
lone(Pid, Message, From, Frame, Parent, #f{straight = S, lanes = Lanes} = F)
  when is_pid(Pid), not is_map_key(node(Pid), Lanes) ->
    case sderl_straight:is_known(node(Pid), Pid, S) of
        true ->
            receive
                Next -> take(Next, ?LOOK, Parent, frame(Frame, F))
            after 0 ->
                case erlang:send(Pid, Message, [noconnect, nosuspend]) of
                    ok -> idle(Parent, sent(node(Pid), From, 1, Message, F));
                    _ -> take(Frame, ?LOOK, Parent, F)
                end
            end;
        false -> take(Frame, ?LOOK, Parent, F)
    end;
lone(_, _, _, Frame, Parent, F) -> take(Frame, ?LOOK, Parent, F).

take({_, ?VSN, _, _, _, _, _, _} = Frame, Look, Parent, F) ->
    run(Look - 1, Parent, frame(Frame, F));
take({sderl_many, ?VSN, Entries}, Look, Parent, F) when is_list(Entries) ->
    run(Look - ?BUNDLE, Parent, many(Entries, 0, F));
take({sderl_straight, ?VSN, Pid, Tag}, Look, Parent, #f{straight = S} = F) when is_pid(Pid) ->
    run(Look, Parent, F#f{straight = sderl_straight:answered(node(Pid), Pid, Tag, S)});
take({lane_failed, Node, Entries}, Look, Parent, F) when is_atom(Node), length(Entries) >= 0 ->
    run(Look, Parent, case lists:all(fun is_entry/1, Entries) of
        true -> undone(Node, Entries, F);
        false -> unknown(F)
    end);
take({lane_idle, Node, Lane}, Look, Parent, #f{lanes = Lanes} = F) ->
    case Lanes of
        #{Node := L} ->
            Ended = sderl_lane:stop(Lane, L),
            run(Look, Parent,
                case Ended of true -> F#f{lanes = maps:remove(Node, Lanes)}; false -> F end);
        #{} -> run(Look, Parent, F)
    end;
take({system, From, Request}, _, Parent, F) ->
    sys:handle_system_msg(Request, From, Parent, ?MODULE, [], F);
take(_, Look, Parent, F) -> run(Look, Parent, unknown(F)).

%% The frames that a lane gives back.
is_entry({[To | _], {_, _}, _}) -> is_pid(To) orelse is_reference(To);
is_entry({{Kind, _, Hops, Hash, _, _, _, _}, {_, _}, _}) ->
    lists:member(Kind, [sderl_to, sderl_at, sderl_each])
        andalso is_integer(Hops) andalso is_integer(Hash);
is_entry(_) -> false.

%% A bundle.
many([[To | Message] | Rest], N, F) when is_pid(To), node(To) =:= node(); is_reference(To) ->
    To ! Message,
    many(Rest, N + 1, F);
many([{_, ?VSN, _, _, _, _, _, _} = Frame | Rest], N, F) -> many(Rest, N, frame(Frame, F));
many([], N, F) -> count(?DELIVERED, N, F);
many([_ | Rest], N, F) -> many(Rest, N, unknown(F));
many(_, N, F) -> count(?DELIVERED, N, unknown(F)).

frame({sderl_to, _, Hops, Hash, _, _, _, _} = Frame, F) when is_integer(Hops), is_integer(Hash) ->
    to(Frame, F);
frame({sderl_at, _, Hops, Hash, Node, _, _, _} = Frame, F)
  when is_integer(Hops), is_integer(Hash), is_atom(Node) ->
    at(Frame, F);
frame({sderl_each, _, Hops, Hash, _, _, _, _} = Frame, F) when is_integer(Hops), is_integer(Hash) ->
    each(Frame, none, F);
frame(_, F) -> unknown(F).

unknown(F) ->
    sderl_refused:note_message(?MODULE),
    F.

-spec system_continue(pid(), [sys:dbg_opt()], #f{}) -> no_return().
system_continue(Parent, _, F) -> run(0, Parent, F).
-spec system_terminate(term(), pid(), [sys:dbg_opt()], #f{}) -> no_return().
system_terminate(Reason, _, _, _) -> exit(Reason).
-spec system_code_change(#f{}, module(), term(), term()) -> {ok, #f{}}.
system_code_change(F, _, _, _) -> {ok, F}.

%% ---------------------------------------------------------------- frames to groups

to({_, _, _, _, Group, What, From, _}, #f{flooded = true} = F) ->
    failed(From, {Group, What}, busy, F);
to({_, _, _, _, Group, {name, Name} = What, From, Message} = Frame, F) ->
    case sderl_names:whereis(Group, Name) of
        undefined -> elsewhere(Frame, F);
        Pid when node(Pid) =:= node() ->
            Pid ! Message,
            count(?DELIVERED, 1, F);
        Pid -> add(node(Pid), {[Pid | Message], {Group, What}, From}, F)
    end;
to({_, _, Hops, Hash, Group, {Kind, Name}, From, Message} = Frame, F)
  when Kind =:= call; Kind =:= whois ->
    case sderl_names:whereis(Group, Name) of
        undefined -> elsewhere(Frame, F);
        Pid -> at({sderl_at, ?VSN, Hops, Hash, node(Pid), {Kind, Pid}, From, Message}, F)
    end;
to({_, _, _, _, Group, _, _, _} = Frame, F) ->
    case sderl_names:is_member(Group) of
        true -> all(Frame, F);
        false -> onward({group, Group}, Frame, none, F)
    end.

elsewhere({_, _, _, _, Group, What, From, _} = Frame, F) ->
    case sderl_names:is_member(Group) of
        true ->
            failed(From, {Group, What},
                   case sderl_router:ready(Group) of true -> no_name; false -> no_route end, F);
        false -> onward({group, Group}, Frame, none, F)
    end.

%% For more than one process, or for one that every member has.
all({_, _, _, _, _, {call_any, Process}, From, Message}, F)
  when is_atom(Process), is_reference(From) ->
    sderl_route_call:serve(From, Process, Message),
    count(?DELIVERED, 1, F);
all({_, _, Hops, Hash, Group, {names, Pattern}, From, Message}, F0) ->
    maps:fold(fun(Node, Pids, F) ->
        To = case Pids of [Pid] -> {to, Pid}; _ -> {pids, Pids} end,
        at({sderl_at, ?VSN, Hops, Hash, Node, To, From, Message}, F)
    end, F0, maps:groups_from_list(fun erlang:node/1, sderl_names:matching(Group, Pattern)));
all({_, _, Hops, Hash, Group, {nodes, Process}, From, Message}, F0) when is_atom(Process) ->
    %% No members if this node left the group in this moment.
    lists:foldl(fun(Node, F) ->
        at({sderl_at, ?VSN, Hops, Hash, Node, {process, Process}, From, Message}, F)
    end, F0, sderl_dir:members(Group));
all(_, F) -> unknown(F).

%% For several groups: one frame for each next node, with the groups that are reached through it.
each({_, _, Hops, Hash, Groups, What, From, Message}, Except, F0) when length(Groups) >= 0 ->
    {Own, Others} = lists:partition(fun sderl_names:is_member/1, Groups),
    F1 = lists:foldl(fun(G, F) -> to({sderl_to, ?VSN, Hops, Hash, G, What, From, Message}, F) end,
                     F0, Own),
    Ways = maps:groups_from_list(fun(G) -> next(sderl_router:first({group, G}), Hash, Except) end,
                                 Others),
    maps:fold(fun
        (none, Gs, F) ->
            lists:foldl(fun(G, Acc) -> failed(From, {G, What}, no_route, Acc) end, F, Gs);
        (_, Gs, F) when Hops =< 1 ->
            lists:foldl(fun(G, Acc) -> failed(From, {G, What}, hop_limit, Acc) end, F, Gs);
        (Node, Gs, F) ->
            add(Node,
                {{sderl_each, ?VSN, Hops - 1, Hash, Gs, What, From, Message}, {Gs, What}, From}, F)
    end, F1, Ways);
each(_, _, F) -> unknown(F).

%% ---------------------------------------------------------------- frames to nodes

at({_, _, _, _, Node, {straight, Pid}, Alias, Tag}, F)
  when Node =:= node(), is_pid(Pid), is_reference(Alias) ->
    _ = spawn(fun() -> answer_straight(Pid, Alias, Tag) end),
    F;
at({_, _, _, _, Node, At, From, Message}, F) when Node =:= node() ->
    here(At, From, Message),
    count(?DELIVERED, 1, F);
at({_, _, _, _, Node, At, From, _}, #f{flooded = true} = F) when is_pid(From) ->
    failed(From, {Node, At}, busy, F);
at({_, _, _, _, Node, At, From, Message} = Frame, F) ->
    case {sderl_links:is_up(Node), At} of
        {true, {to, To}} -> add(Node, {[To | Message], {Node, At}, From}, F);
        {true, _} -> add(Node, {Frame, {Node, At}, From}, F);
        {false, _} -> onward({node, Node}, Frame, none, F)
    end.

%% All earlier messages for the process are in its queue now: only then may other processes send to
%% it.
answer_straight(Pid, Alias, Tag) when node(Pid) =:= node() ->
    case process_info(Pid, message_queue_data) of
        {message_queue_data, on_heap} ->
            _ = erlang:send(Alias, {sderl_straight, ?VSN, Pid, Tag}, [noconnect, nosuspend]),
            ok;
        _ -> ok
    end;
answer_straight(_, _, _) -> sderl_refused:note_message(?MODULE).

here({group, Group, To}, From, Message) ->
    self() ! {sderl_to, ?VSN, 1, 0, Group, To, From, Message},
    ok;
here({groups, Groups, To}, From, Message) ->
    self() ! {sderl_each, ?VSN, sderl_route_send:hops(), erlang:phash2(From, 1 bsl 27), Groups, To,
              From, Message},
    ok;
here({to, To}, _, Message) when is_pid(To); is_reference(To) -> To ! Message, ok;
here({pids, Pids}, _, Message) when length(Pids) >= 0 ->
    lists:foreach(
        fun(P) when is_pid(P) -> P ! Message; (_) -> sderl_refused:note_message(?MODULE) end, Pids
    );
here({process, Process}, _, Message) when is_atom(Process) ->
    case whereis(Process) of
        undefined -> ok;
        Pid -> Pid ! Message, ok
    end;
here({call, To}, From, Message)
  when is_pid(To), is_reference(From); is_atom(To), is_reference(From) ->
    sderl_route_call:serve(From, To, Message);
here({whois, Pid}, From, _) when is_pid(Pid) -> sderl_route_call:found(From, Pid);
here({stream, Pid}, _, Message) when is_pid(Pid) -> sderl_twin:deliver(Pid, Message);
here(probe, From, _) when is_reference(From) -> sderl_route_call:probe(From);
here(report, _, Report) -> sderl_route_report:failed(Report);
here(_, _, _) -> sderl_refused:note_message(?MODULE).

%% ---------------------------------------------------------------- out

%% Sends by a gateway other than the node `Except`, which cannot be reached.
onward(_, {_, _, Hops, _, Where, What, From, _}, _, F) when Hops =< 1 ->
    failed(From, {Where, What}, hop_limit, F);
onward(Key, {Tag, _, Hops, Hash, Where, What, From, Message}, Except, F) ->
    First = sderl_router:first(Key),
    case next(First, Hash, Except) of
        none -> failed(From, {Where, What}, ending(Key), F);
        Node ->
            add(Node,
                {{Tag, ?VSN, Hops - 1, Hash, Where, What, From, Message}, {Where, What}, From}, F)
    end.

%% A mate without a link: the way ends here.
ending({node, Node}) ->
    case sderl_dir:shares_named_group(Node) of
        true -> unreachable;
        false -> no_route
    end;
ending({group, _}) -> no_route.

next({}, _, _) -> none;
next(First, Hash, none) -> sderl_route_send:pick(First, Hash);
next(First, Hash, Except) ->
    %% A gateway may have died a moment ago, and still be in the table.
    case [N || N <- tuple_to_list(First), N =/= Except, sderl_links:is_up(N)] of
        [] -> none;
        Nodes -> sderl_route_send:pick(list_to_tuple(Nodes), Hash)
    end.

add(Node, Entry, #f{out = Out} = F) ->
    case Out of
        #{Node := [N | Entries]} when N < ?BUNDLE - 1 ->
            F#f{out = Out#{Node := [N + 1, Entry | Entries]}};
        #{Node := [_ | Entries]} ->
            bundle(Node, [Entry | Entries], F#f{out = maps:remove(Node, Out)});
        #{} -> F#f{out = Out#{Node => [1, Entry]}}
    end.

flush(#f{out = Out} = F) when map_size(Out) =:= 0 -> F;
flush(#f{out = Out} = F) ->
    maps:fold(fun(Node, [_ | Entries], Acc) -> bundle(Node, Entries, Acc) end, F#f{out = #{}}, Out).

bundle(Node, [{[To | Message], _, _}] = Entries,
       #f{lanes = Lanes, straight = S0, alias = Alias} = F0)
  when not is_map_key(Node, Lanes) ->
    {How, S} = sderl_straight:alone(Node, To, S0),
    F = F0#f{straight = S},
    case How of
        straight -> straight(Node, To, Message, Entries, F);
        bundle -> direct(Node, Entries, [], F);
        {ask, Tag} ->
            direct(Node, Entries, [{sderl_at, ?VSN, 1, 0, Node, {straight, To}, Alias, Tag}], F)
    end;
bundle(Node, Reversed, #f{lanes = Lanes, straight = S} = F0) ->
    Entries = lists:reverse(Reversed),
    F = F0#f{straight = bundled(Node, Entries, [], S)},
    case Lanes of
        #{Node := Lane} ->
            case sderl_lane:put(Lane, Entries) of
                ok -> queued(Node, Entries, F);
                direct -> direct(Node, Entries, [], F);
                full ->
                    lists:foldl(fun({_, What, From}, Acc) -> failed(From, What, busy, Acc) end, F,
                                Entries)
            end;
        #{} -> direct(Node, Entries, [], F)
    end.

%% Frames keep no order with messages that are sent straight to processes.
bundled(Node, [], Pids, S) -> sderl_straight:bundled(Node, Pids, S);
bundled(Node, [{[To | _], _, _} | Entries], Pids, S) -> bundled(Node, Entries, [To | Pids], S);
bundled(Node, [{{sderl_at, _, _, _, _, At, _, _}, _, _} | Entries], Pids, S)
  when At =:= probe; At =:= report; element(1, At) =:= call; element(1, At) =:= whois;
       element(1, At) =:= stream ->
    bundled(Node, Entries, Pids, S);
bundled(Node, _, _, S) -> sderl_straight:forget(Node, S).

straight(Node, To, Message, Entries, F) ->
    case erlang:send(To, Message, [noconnect, nosuspend]) of
        ok -> sent(Node, Entries, Message, F);
        _ -> direct(Node, Entries, [], F#f{straight = sderl_straight:forget(Node, F#f.straight)})
    end.

direct(Node, Entries, Questions, #f{name = Name, lanes = Lanes, limit = Limit} = F) ->
    Bundle = case Entries of
        %% It goes on to the next gateway as a sender would send it.
        [{Frame, _, _}] when is_tuple(Frame) -> Frame;
        _ -> {sderl_many, ?VSN, [W || {W, _, _} <- Entries] ++ Questions}
    end,
    case erlang:send({Name, Node}, Bundle, [noconnect, nosuspend]) of
        ok -> sent(Node, Entries, Bundle, F);
        noconnect -> undone(Node, Entries, F);
        nosuspend ->
            Lane = case Lanes of #{Node := L} -> L; #{} -> sderl_lane:start(Node, Name, Limit) end,
            ok = sderl_lane:first(Lane, Entries),
            queued(Node, Entries, F#f{lanes = Lanes#{Node => Lane}})
    end.

sent(Node, [{_, _, From} | _] = Entries, Message, F) ->
    sent(Node, From, length(Entries), Message, F).

sent(Node, From, N, Message, F) ->
    ok = sderl_traffic:sent(routing, Message),
    forwarded(Node, From, N, F).

%% A lane counts what it sends.
queued(Node, [{_, _, From} | _] = Entries, F) -> forwarded(Node, From, length(Entries), F).

forwarded(Node, From, N, F) ->
    _ = if
        is_pid(From); is_reference(From) -> sderl_traffic:crossed(node(From), Node, N);
        true -> ok
    end,
    count(?FORWARDED, N, F).

%% The link is gone: sends by another way, if there is one.
undone(Node, Entries, F) ->
    flush(lists:foldl(fun(E, Acc) -> again(Node, E, Acc) end, F, Entries)).

again(Node, {{sderl_to, _, _, _, Group, _, _, _} = Frame, _, _}, F) ->
    onward({group, Group}, Frame, Node, F);
again(Node, {{sderl_at, _, _, _, To, _, _, _} = Frame, _, _}, F) ->
    onward({node, To}, Frame, Node, F);
again(Node, {{sderl_each, _, _, _, _, _, _, _} = Frame, _, _}, F) -> each(Frame, Node, F);
again(_, {[_ | _], What, From}, F) -> failed(From, What, unreachable, F).

%% ---------------------------------------------------------------- counts and failures

count(_, 0, F) -> F;
count(Which, N, #f{counts = C} = F) ->
    ok = counters:add(C, Which, N),
    F.

failed(From, What, Reason, F) -> note(From, What, Reason, count(?FAILED, 1, F)).

note(From, _, Reason, F) when is_reference(From) ->
    sderl_route_call:failed(From, Reason),
    F;
note(From, What, Reason, #f{failed = Failed} = F) when is_pid(From) ->
    Key = {From, What, Reason},
    F#f{failed = Failed#{Key => maps:get(Key, Failed, 0) + 1}};
note(_, _, _, F) -> F.

tell(_, #f{failed = Failed} = F) when map_size(Failed) =:= 0 -> F;
tell(Which, #f{failed = Failed, told = Told} = F) ->
    Now = now_ms(),
    case Which =:= all orelse map_size(Failed) >= ?MANY orelse Now - Told >= ?TELL_MS of
        true -> F#f{failed = report(Failed), told = Now};
        false -> F
    end.

%% Gives the failures that have to wait because the link is full.
report(Failed) ->
    ByNode = maps:groups_from_list(fun({{From, _, _}, _}) -> node(From) end, maps:to_list(Failed)),
    maps:from_list(lists:append([List
                                 || Node := List <- ByNode,
                                    reported(Node, [{P, W, R, N} || {{P, W, R}, N} <- List]) =:=
                                    {error, busy}])).

reported(Node, List) when Node =:= node() -> sderl_route_report:failed({node(), List});
reported(Node, List) ->
    sderl_route_send:node(Node, report, none, {node(), List}, [noconnect, nosuspend]).

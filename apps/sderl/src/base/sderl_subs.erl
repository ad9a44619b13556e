%% SPDX-License-Identifier: Apache-2.0
-module(sderl_subs).
-moduledoc """
Subscriptions to the events of groups, to their names, and to the nodes of this node's groups.

A subscriber gets `{s_group_event, Ref, Group, Event}` with the `Event`s of `t:event/0`; a
node monitor gets `{nodeup, Node}` and `{nodedown, Node}`, as from the published
`s_group:monitor_nodes/1`.

The events come from the protocol's processes, so notifying must cost next to nothing and never
wait: `notify/2` reads one row of a table when nobody subscribed to anything, and sends only to pids
of this node, which never suspends the sender. A subscription costs the same however many there are.

## Shape

The tables are made by the supervisor (`new/0`), which therefore owns them: subscriptions survive
a crash of this server. Only the server writes; every process of the library reads.

| row of `sderl_subs` | for |
|---|---|
| `{{sub, Ref}, Group, Pid, Kinds}` | one subscription |
| `{{node_monitor, Pid}}` | one node monitor |
| `{{wanted, Group, Kind}, Count}` | exists only while a subscriber wants events of this kind from this group; derived from the first |
| `{any, Count}` | exists only while there are subscriptions to groups; derived too |

| row of `sderl_subs_to` | for |
|---|---|
| `{{Hash, Kind, Ref}, Group, Pid}` | the subscribers of a group, in the order of its hash; derived too |

A restarted server derives the derived rows again, and monitors the subscribers again, so a crash
between two writes does no harm; subscribers that died meanwhile are removed at once.

## Not promised

Events that a protocol process emits while it is killed may be lost, and after `unsubscribe/1`
an event that was on its way may still arrive. There is no replay: subscribe first, then read.
""".

-behaviour(gen_server).

-export([new/0]).
-export([start_link/1]).
-export([subscribe/3, unsubscribe/1]).
-export([monitor_nodes/2]).
-export([wanted/1, wanted/2, notify/2, notify_node/2]).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([ref/0, kind/0, event/0]).

-define(TABLE, ?MODULE).
-define(TO, sderl_subs_to).
-define(KINDS, [group, name, event, rows]).

-doc "Names one subscription, in its messages and to end it.".
-type ref() :: reference().

-doc """
Which events: those of the group, those of its names; everything that `m:sderl_event` reports. For
the library's own processes also the changed rows, once a batch.
""".
-type kind() :: group | name | event | rows.

-doc """
What happened. The first element is the kind.

Of names: `registered`, `unregistered`, `replaced` (with the new pid) and `lost_clash` (with the pid
that lost the name; on a member that is brought up to date after the decision, the present state of
its names: `unregistered` or `replaced`). Of groups: an event of `m:sderl_event` whose `Details` are
its keys without `group`, or `left` when this node is no member any more. Of the kind `event`: what
`m:sderl_event` reports, of a group or of none (then of `undefined`), for monitoring. Later versions
may have more of both: ignore what you do not know.
""".
-type event() ::
    {name, registered | unregistered | replaced | lost_clash, Name :: term(), pid()}
    | {group, sderl_event:event() | left, Details :: map()}
    | {event, logger:level(), sderl_event:event(), sderl_event:meta()}
    | {rows, Names :: [term()] | all}.

-type key() :: {sub, ref()} | {node_monitor, pid()}.
%% The subscriber of each monitor, and the monitor of each subscriber.
-type state() :: {#{Monitor :: reference() => key()}, #{key() => Monitor :: reference()}}.

%% Owner of the table

-doc "Makes the tables. Called once by the process that shall own them, before `start_link/1`.".
-spec new() -> ets:table().
new() ->
    ?TO = ets:new(?TO, [named_table, public, ordered_set, {read_concurrency, true}]),
    ets:new(?TABLE, [named_table, public, set, {read_concurrency, true}]).

-doc "Starts the server, registered as `sderl_subs`, on the tables of `new/0`.".
-spec start_link(Report :: fun((module(), non_neg_integer(), map()) -> ok)) ->
    gen_server:start_ret().
start_link(Report) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Report, []).

%% Subscribers

-doc """
Subscribes a process of this node to events of a group, or of `all` groups.

The group need not exist, nor this node be a member: events come if and when it is. Each
subscription tells once: two of one process tell it twice. It ends with `unsubscribe/1` or
with the process.

Errors: `remote_pid` for a process of another node, because telling it could wait for the
link; `{bad_kinds, Kinds}` for anything but a list of one or more kinds; `not_running`.
""".
-spec subscribe(Group | all, pid(), [kind(), ...]) ->
    {ok, ref()} | {error, remote_pid | {bad_kinds, term()} | not_running}
when
    Group :: term().
subscribe(Group, Pid, Kinds) when is_pid(Pid) ->
    case are_kinds(Kinds) of
        _ when node(Pid) =/= node() -> {error, remote_pid};
        true -> call({subscribe, Group, Pid, Kinds});
        false -> {error, {bad_kinds, Kinds}}
    end.

are_kinds([Kind]) -> lists:member(Kind, ?KINDS);
are_kinds([Kind | Kinds]) -> are_kinds([Kind]) andalso are_kinds(Kinds);
are_kinds(_Other) -> false.

%% Only a process of this node is told: a message to another one might wait for its link.
is_local(Pid) -> is_pid(Pid) andalso node(Pid) =:= node().

-doc "Ends a subscription; `ok` also if it ended before.".
-spec unsubscribe(ref()) -> ok | {error, not_running}.
unsubscribe(Ref) when is_reference(Ref) ->
    call({unsubscribe, Ref}).

-doc """
Starts (`true`) or stops (`false`) messages `{nodeup, Node}` and `{nodedown, Node}` to a process
of this node. Starting twice is starting once.
""".
-spec monitor_nodes(pid(), boolean()) -> ok | {error, remote_pid | not_running}.
monitor_nodes(Pid, _Flag) when is_pid(Pid), node(Pid) =/= node() -> {error, remote_pid};
monitor_nodes(Pid, Flag) when is_pid(Pid), is_boolean(Flag) -> call({monitor_nodes, Pid, Flag}).

%% Processes of the library

-doc """
Whether anybody wants events of this kind from this group.

For a caller that would otherwise build many events in vain.
""".
-spec wanted(Group :: term(), kind()) -> boolean().
wanted(Group, Kind) -> ets:member(?TABLE, any) andalso is_wanted(Group, Kind).

is_wanted(Group, Kind) ->
    ets:member(?TABLE, {wanted, Group, Kind}) orelse ets:member(?TABLE, {wanted, all, Kind}).

-doc "Which kinds anybody wants from this group: one read where nobody does.".
-spec wanted(Group :: term()) -> [kind()].
wanted(Group) ->
    case ets:member(?TABLE, any) of
        true -> [Kind || Kind <- ?KINDS, is_wanted(Group, Kind)];
        false -> []
    end.

-doc "Tells the subscribers of a group, in the order of the calls of each calling process.".
-spec notify(Group :: term(), event()) -> ok.
notify(Group, Event) ->
    case ets:member(?TABLE, any) of
        true ->
            tell(Group, Group, Event),
            %% A group whose name is `all` must not be told twice.
            Group =:= all orelse tell(all, Group, Event),
            ok;
        false ->
            ok
    end.

-doc "Tells the node monitors.".
-spec notify_node(nodeup | nodedown, node()) -> ok.
notify_node(What, Node) when What =:= nodeup; What =:= nodedown ->
    Monitors = ets:select(?TABLE, [{{{node_monitor, '$1'}}, [], ['$1']}]),
    lists:foreach(fun(Pid) -> Pid ! {What, Node} end, Monitors).

tell(Of, Group, Event) ->
    Kind = element(1, Event),
    _ = ets:member(?TABLE, {wanted, Of, Kind}) andalso
        lists:foreach(
            fun({Ref, Pid}) -> Pid ! {s_group_event, Ref, Group, Event} end,
            ets:select(?TO, [{{{hash(Of), Kind, '$1'}, '$2', '$3'},
                              [{'=:=', '$2', {const, Of}}],
                              [{{'$1', '$3'}}]}])
        ),
    ok.

hash(Group) -> erlang:phash2(Group).

call(Request) ->
    try
        gen_server:call(?MODULE, Request, infinity)
    catch
        exit:{Reason, {gen_server, call, _}} when
            Reason =:= noproc; Reason =:= shutdown; Reason =:= normal; Reason =:= killed
        ->
            {error, not_running}
    end.

%% Server

-doc false.
-spec init(fun((module(), non_neg_integer(), map()) -> ok)) -> {ok, state()}.
init(Report) ->
    %% Events are told to subscribers, so they are reported by a function that is given.
    ok = Report(?MODULE, drop_unsound(), #{}),
    derive(),
    Keys = [{{sub, Ref}, Pid} || {{sub, Ref}, _Group, Pid, _Kinds} <- ets:tab2list(?TABLE)]
        ++ [{Key, Pid} || {{node_monitor, Pid} = Key} <- ets:tab2list(?TABLE)],
    {ok, lists:foldl(fun({Key, Pid}, State) -> watch(Key, Pid, State) end, {#{}, #{}}, Keys)}.

%% Each process that is started later would end by a row that this one cannot handle.
drop_unsound() ->
    Unsound = lists:filter(
        fun
            ({{sub, _Ref}, _Group, Pid, Kinds}) -> not (is_local(Pid) andalso are_kinds(Kinds));
            ({{node_monitor, Pid}}) -> not is_local(Pid);
            (_Derived) -> false
        end,
        ets:tab2list(?TABLE)
    ),
    lists:foreach(fun(Row) -> ets:delete(?TABLE, element(1, Row)) end, Unsound),
    length(Unsound).

-doc false.
-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call({subscribe, Group, Pid, Kinds}, _From, State) ->
    case {is_local(Pid), are_kinds(Kinds)} of
        {true, true} ->
            Ref = make_ref(),
            true = ets:insert(?TABLE, {{sub, Ref}, Group, Pid, Kinds}),
            true = ets:insert(?TO, told(Ref, Group, Pid, Kinds)),
            lists:foreach(fun(Key) -> count(Key, 1) end, counted(Group, Kinds)),
            {reply, {ok, Ref}, watch({sub, Ref}, Pid, State)};
        {true, false} ->
            {reply, {error, {bad_kinds, Kinds}}, State};
        {false, _} ->
            {reply, {error, remote_pid}, State}
    end;
handle_call({unsubscribe, Ref}, _From, State) ->
    {reply, ok, forget({sub, Ref}, State)};
handle_call({monitor_nodes, Pid, true}, _From, State) ->
    case is_local(Pid) andalso ets:insert_new(?TABLE, {{node_monitor, Pid}}) of
        true ->
            {reply, ok, watch({node_monitor, Pid}, Pid, State)};
        false when is_pid(Pid), node(Pid) =:= node() ->
            {reply, ok, State};
        false ->
            {reply, {error, remote_pid}, State}
    end;
handle_call({monitor_nodes, Pid, false}, _From, State) ->
    {reply, ok, forget({node_monitor, Pid}, State)};
handle_call(_Unknown, _From, State) ->
    {reply, {error, unknown_call}, State}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Unknown, State) ->
    {noreply, State}.

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'DOWN', Monitor, process, _Pid, _Reason}, {Keys, _} = State) ->
    case Keys of
        #{Monitor := Key} -> {noreply, forget(Key, State)};
        #{} -> {noreply, State}
    end;
handle_info(_Unknown, State) ->
    {noreply, State}.

watch(Key, Pid, {Keys, Monitors}) ->
    Monitor = monitor(process, Pid),
    {Keys#{Monitor => Key}, Monitors#{Key => Monitor}}.

forget(Key, {Keys, Monitors} = State) ->
    remove(Key),
    case maps:take(Key, Monitors) of
        {Monitor, Rest} ->
            true = demonitor(Monitor, [flush]),
            {maps:remove(Monitor, Keys), Rest};
        error ->
            State
    end.

remove({sub, Ref} = Key) ->
    case ets:take(?TABLE, Key) of
        [{Key, Group, Pid, Kinds}] ->
            lists:foreach(fun(Row) -> ets:delete(?TO, element(1, Row)) end,
                          told(Ref, Group, Pid, Kinds)),
            lists:foreach(fun(Counter) -> count(Counter, -1) end, counted(Group, Kinds));
        [] ->
            ok
    end;
remove({node_monitor, _Pid} = Key) ->
    true = ets:delete(?TABLE, Key),
    ok.

%% Rows for readers

told(Ref, Group, Pid, Kinds) ->
    [{{hash(Group), Kind, Ref}, Group, Pid} || Kind <- lists:usort(Kinds)].

counted(Group, Kinds) -> [any | [{wanted, Group, Kind} || Kind <- lists:usort(Kinds)]].

%% No row for none, so that a group nobody asks for leaves nothing behind.
count(Key, Step) ->
    case ets:update_counter(?TABLE, Key, Step, {Key, 0}) of
        0 -> true = ets:delete(?TABLE, Key);
        _ -> true
    end.

%% All of them, from the subscriptions. First what there must be, then what must not: somebody may
%% be told meanwhile.
derive() ->
    Rows = ets:tab2list(?TABLE),
    Subs = [{Ref, Group, Pid, Kinds} || {{sub, Ref}, Group, Pid, Kinds} <- Rows],
    To = lists:append([told(Ref, Group, Pid, Kinds) || {Ref, Group, Pid, Kinds} <- Subs]),
    Counts = lists:foldl(
        fun(Key, Acc) -> Acc#{Key => maps:get(Key, Acc, 0) + 1} end,
        #{},
        lists:append([counted(Group, Kinds) || {_, Group, _, Kinds} <- Subs])
    ),
    true = ets:insert(?TO, To),
    true = ets:insert(?TABLE, maps:to_list(Counts)),
    Told = #{Key => [] || {Key, _, _} <- To},
    Over = [Key || {Key, _, _} <- ets:tab2list(?TO), not is_map_key(Key, Told)],
    lists:foreach(fun(Key) -> ets:delete(?TO, Key) end, Over),
    lists:foreach(
        fun
            ({{sub, _}, _, _, _}) -> true;
            ({{node_monitor, _}}) -> true;
            (Row) -> is_map_key(element(1, Row), Counts) orelse ets:delete(?TABLE, element(1, Row))
        end,
        Rows
    ).

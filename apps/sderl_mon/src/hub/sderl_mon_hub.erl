%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_hub).
-moduledoc """
The hub of a monitoring node: puts the agents' updates together, one frame each interval, keeps the
history, and sends both to subscribers.

Each monitoring node has a hub, registered under this module's name, and each hub gets everything,
so nothing is lost when one dies. Agents and the master send with `update/2` and `topology/2`, which
never wait. A message that is no update, of another version, or from a deposed agent is ignored and
counted (`info/0`, and `lost` of the next frame).

Questions about the past take a `t:sderl_mon_types:source/0`: `live`, or the process of an opened
recording (`m:sderl_mon_replay`). The hub hands over its history, which is packed, and the caller
does the work of answering: a slow question delays nobody else.

## Messages to subscribers

They are `sderl_mon_message:news()`; details come after `watch/1`. A subscriber with more than 100
messages in its queue is sent nothing; when it has caught up, it gets the numbers of frames and
events that it missed, and the present state. When a feed begins or ends, everything begins anew,
the numbers of events too: `{sderl_mon, anew, Life}` says so, with another `Life` than that of the
snapshot. A subscriber that keeps state then subscribes again.

## Bounds

A frame has at most 20,000 links, 2,000 nodes, 2,000 groups, 64 kinds, and of the application's own
metrics 1,000 series and 50,000 numbers of all nodes; what is cut is counted. There are at most
5,000 events and 1,000 subscribers. `m:sderl_mon_history` has bounds of its own.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, start_link/1]).
-export([update/2, topology/2]).
-export([subscribe/0, unsubscribe/0, watch/1, unwatch/1]).
-export([range/1, at/2, series/5, events/2, traffic/2, store/1, detail/1, standing/0, info/0,
         now_topology/0, watched/0]).
-export([configure/1, feed/0, feed/1, past/0, inherit/1]).

-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-import(sderl_mon_clock, [now_ms/0, wall_ms/0]).
-import(sderl_mon_hub_state, [begin_anew/1, change_options/2, lose/3, snapshot/1, findings/1]).

-export_type([snapshot/0, info/0]).

-type info() :: sderl_mon_hub_state:info().

-doc "What a new subscriber gets. `findings` are the present ones, `events` the newest first.".
-type snapshot() :: #{
    topology := sderl_mon_types:topology(),
    frame := sderl_mon_types:frame() | none,
    findings := [sderl_mon_types:finding()],
    events := [sderl_mon_types:event()],
    range := {sderl_mon_types:t(), sderl_mon_types:t()},
    mode := live | synthetic,
    interval_ms := pos_integer(),
    life := integer()
}.

-type state() :: sderl_mon_hub_state:state().

%% Making a frame of a large cluster leaves much garbage, and the history's binaries make each new
%% one trigger a collection: with the default sizes these took half of this process's time.
-define(MEMORY, [{min_heap_size, 2_000_000}, {min_bin_vheap_size, 4_000_000}]).

-doc "Starts the hub of this node.".
-spec start_link() -> gen_server:start_ret().
start_link() -> start_link(#{}).

-doc "Starts the hub of this node with options of `configure/1`.".
-spec start_link(map()) -> gen_server:start_ret().
start_link(Opts) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Opts, [{spawn_opt, ?MEMORY}]).

-doc """
Sends an agent's update to the hub of a monitoring node, without waiting; returns whether it was
sent.
""".
-spec update(node(), sderl_mon_types:update()) -> boolean().
update(Node, Update) -> sderl_mon_tell:cast(Node, ?MODULE, {sderl_mon_update, 1, Update}).

-doc "Sends a master's topology to the hub of a monitoring node, without waiting.".
-spec topology(node(), sderl_mon_types:topology()) -> boolean().
topology(Node, Topology) -> sderl_mon_tell:cast(Node, ?MODULE, {sderl_mon_topology, 1, Topology}).

-doc """
Makes the calling process the only feed of this hub, as long as it lives: the history begins anew,
and what agents and masters send is ignored. Errors: `busy` when another process is the feed.
""".
-spec feed() -> ok | {error, busy}.
feed() -> gen_server:call(?MODULE, {feed, self()}).

-doc "A message of the feed to the hub of this node; ignored from any other process.".
-spec feed({topology, sderl_mon_types:topology()} | {update, sderl_mon_types:update()}) -> ok.
feed({topology, Topology}) ->
    gen_server:cast(?MODULE, {sderl_mon_feed, self(), {sderl_mon_topology, 1, Topology}});
feed({update, Update}) ->
    gen_server:cast(?MODULE, {sderl_mon_feed, self(), {sderl_mon_update, 1, Update}}).

-doc "Subscribes the calling process of this node. Errors: `too_many`.".
-spec subscribe() -> {ok, snapshot()} | {error, too_many | not_local}.
subscribe() -> gen_server:call(?MODULE, {subscribe, self()}).

-doc "Ends the subscription of the calling process.".
-spec unsubscribe() -> ok.
unsubscribe() -> gen_server:call(?MODULE, {unsubscribe, self()}).

-doc "Asks for the details of a node, as they come. Errors: `not_subscribed`.".
-spec watch(sderl_mon_types:id()) -> ok | {error, not_subscribed}.
watch(Node) when is_binary(Node) -> gen_server:call(?MODULE, {watch, self(), Node}).

-doc "Ends `watch/1`.".
-spec unwatch(sderl_mon_types:id()) -> ok | {error, not_subscribed}.
unwatch(Node) when is_binary(Node) -> gen_server:call(?MODULE, {unwatch, self(), Node}).

-doc "The nodes that some subscriber watches.".
-spec watched() -> [sderl_mon_types:id()].
watched() -> gen_server:call(?MODULE, watched, infinity).

-doc "The time range of all frames; `{0, 0}` for none.".
-spec range(sderl_mon_types:source()) -> {sderl_mon_types:t(), sderl_mon_types:t()}.
range(live) -> sderl_mon_history:range(history());
range(Replay) -> gen_server:call(Replay, range).

-doc """
The state at a time: the last frame at or before it, with the topology and the findings of that
time.
""".
-spec at(sderl_mon_types:source(), sderl_mon_types:t()) ->
    {ok, sderl_mon_types:moment()} | {error, none}.
at(live, T) -> sderl_mon_history:at(T, history());
at(Replay, T) -> gen_server:call(Replay, {at, T}).

-doc """
Numbers over time: at most `Points` (2 to 2,000) values a column, each the mean of its share of the
time, queues the highest.
""".
-spec series(sderl_mon_types:source(), sderl_mon_types:what(), sderl_mon_types:t(),
             sderl_mon_types:t(), pos_integer()) ->
    {ok, sderl_mon_types:series()} | {error, none}.
series(Source, What, From, To, Points) ->
    sderl_mon_query:series(store(Source), What, From, To, Points).

-doc "Events, newest first.".
-spec events(sderl_mon_types:source(), sderl_mon_types:event_filter()) ->
    {ok, [sderl_mon_types:event()]}.
events(live, Filter) -> {ok, sderl_mon_query:events(gen_server:call(?MODULE, events), Filter)};
events(Replay, Filter) -> gen_server:call(Replay, {events, Filter}).

-doc "A traffic table, most messages first. Errors: `none` when there are no frames in the window.".
-spec traffic(sderl_mon_types:source(), sderl_mon_types:traffic_opts()) ->
    {ok, [sderl_mon_types:traffic_row()]} | {error, none}.
traffic(Source, Opts) -> sderl_mon_query:traffic(store(Source), Opts).

-doc "The frames that a source has now.".
-spec store(sderl_mon_types:source()) -> sderl_mon_types:store().
store(live) -> with_rates(sderl_mon_history:store(history()));
store(Replay) -> with_rates(sderl_mon_replay:store(Replay)).

with_rates(Store) -> Store#{is_rate => fun sderl_mon_metrics:is_rate/1}.

-doc "The latest details of a node. Errors: `none`.".
-spec detail(sderl_mon_types:id()) -> {ok, sderl_mon_types:detail()} | {error, none}.
detail(Node) -> gen_server:call(?MODULE, {detail, Node}).

-doc """
The part of each node's details that alarms use: `limits` with what is used of them, the versions of
its applications (`apps`), `old_code`, what a shell keeps (`shell_bytes`), the time zone
(`utc_offset_s`), and its clock (`node_t`) beside ours (`t`).
""".
-spec standing() -> #{sderl_mon_types:id() => sderl_mon_types:standing()}.
standing() -> gen_server:call(?MODULE, standing).

-doc "The latest topology.".
-spec now_topology() -> sderl_mon_types:topology().
now_topology() -> gen_server:call(?MODULE, now_topology).

-doc """
The hub about itself: its bounds, numbers, memory and losses.
""".
-spec info() -> info().
info() -> gen_server:call(?MODULE, info).

-doc """
Changes options while the hub runs: `interval_ms` (100 to 60,000), `history` (`m:sderl_mon_history`;
begins anew), `thresholds` of the findings. Unknown keys are ignored, wrong values refused.
""".
-spec configure(map()) -> ok | {error, {bad_option, atom(), term()}}.
configure(Opts) when is_map(Opts) -> gen_server:call(?MODULE, {configure, Opts}).

-doc """
All that this hub remembers, for the hub of a node that has just begun. Errors: `synthetic`.
""".
-spec past() -> sderl_mon_frozen:past().
past() -> gen_server:call(?MODULE, past).

-doc """
Puts the past of another hub before what this one has seen itself. Subscribers begin anew. Errors:
`synthetic`; `no_older`: the history here begins no later.
""".
-spec inherit(sderl_mon_hub_state:inherited()) -> ok | {error, synthetic | no_older}.
inherit(Past) -> gen_server:call(?MODULE, {inherit, Past}, infinity).

history() -> gen_server:call(?MODULE, history).

%% Server

-doc false.
-spec init(map()) -> {ok, state()} | {stop, term()}.
init(Given) ->
    case sderl_mon_hub_options:change(Given, sderl_mon_hub_options:new(sderl_mon_settings:get())) of
        {ok, Options} ->
            {ok, tick_later(sderl_mon_hub_state:new(Options, now_ms()))};
        {error, Reason} ->
            {stop, Reason}
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call({subscribe, Pid}, _From, #{subscribers := Subs} = State) ->
    case sderl_mon_subscribers:add(Pid, Subs) of
        {ok, Subs1} -> {reply, {ok, snapshot(State)}, State#{subscribers := Subs1}};
        {error, _} = Error -> {reply, Error, State}
    end;
handle_call({unsubscribe, Pid}, _From, #{subscribers := Subs} = State) ->
    {reply, ok, State#{subscribers := sderl_mon_subscribers:drop(Pid, Subs)}};
handle_call({watch, Pid, Node}, _From, #{subscribers := Subs, details := Details} = State) ->
    case sderl_mon_subscribers:watch(Pid, Node, Subs) of
        {ok, Subs1} ->
            %% The latest details at once: a page that opens need not wait.
            _ = [Pid ! {sderl_mon, detail, Node, Detail} || #{Node := Detail} <- [Details]],
            {reply, ok, State#{subscribers := Subs1}};
        {error, _} = Error ->
            {reply, Error, State}
    end;
handle_call({unwatch, Pid, Node}, _From, #{subscribers := Subs} = State) ->
    case sderl_mon_subscribers:unwatch(Pid, Node, Subs) of
        {ok, Subs1} -> {reply, ok, State#{subscribers := Subs1}};
        {error, _} = Error -> {reply, Error, State}
    end;
handle_call(watched, _From, #{subscribers := Subs} = State) ->
    {reply, sderl_mon_subscribers:watched(Subs), State};
handle_call(history, _From, #{history := History} = State) ->
    {reply, sderl_mon_history:frozen(History), State};
handle_call(past, _From, #{mode := live, history := History, events := Events} = State) ->
    {reply, {ok, sderl_mon_history:frozen(History), sderl_mon_events:to_list(Events)}, State};
handle_call(past, _From, State) ->
    {reply, {error, synthetic}, State};
handle_call({inherit, #{past := Past} = Given}, _From, #{mode := live} = State) ->
    #{history := History} = State,
    case sderl_mon_history:is_older(Past, History) of
        true -> {reply, ok, tell_all(sderl_mon_hub_state:inherit(Given, State))};
        false -> {reply, {error, no_older}, State}
    end;
handle_call({inherit, _Past}, _From, State) ->
    {reply, {error, synthetic}, State};
handle_call(events, _From, #{events := Events} = State) ->
    {reply, sderl_mon_events:to_list(Events), State};
handle_call({detail, Node}, _From, #{details := Details} = State) ->
    case Details of
        #{Node := Detail} -> {reply, {ok, Detail}, State};
        #{} -> {reply, {error, none}, State}
    end;
handle_call(standing, _From, #{details := Details} = State) ->
    Keys = [limits, apps, old_code, shell_bytes, utc_offset_s, node_t, t],
    {reply, #{Node => maps:with(Keys, Detail) || Node := Detail <- Details}, State};
handle_call(now_topology, _From, #{topology := Topology} = State) ->
    {reply, sderl_mon_hub_topology:present(Topology), State};
handle_call(info, _From, State) ->
    {reply, sderl_mon_hub_state:info(State), State};
handle_call({configure, Opts}, _From, #{options := Options} = State) when is_map(Opts) ->
    case sderl_mon_hub_options:change(Opts, Options) of
        {ok, New} -> {reply, ok, change_options(New, State)};
        {error, _} = Error -> {reply, Error, State}
    end;
handle_call({feed, Pid}, _From, #{feed := none} = State) when is_pid(Pid) ->
    Feed = {Pid, monitor(process, Pid)},
    {reply, ok, tell_all((begin_anew(State))#{mode := synthetic, feed := Feed})};
handle_call({feed, Pid}, _From, #{feed := {Pid, _}} = State) ->
    {reply, ok, State};
handle_call({feed, Pid}, From, #{feed := {Other, Ref}} = State) when is_pid(Pid) ->
    %% The other feed may have ended, with its 'DOWN' message behind this call.
    case is_process_alive(Other) of
        true -> {reply, {error, busy}, State};
        false ->
            _ = demonitor(Ref, [flush]),
            handle_call({feed, Pid}, From, State#{feed := none})
    end;
handle_call(_Other, _From, State) ->
    {reply, {error, unknown}, State}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast({sderl_mon_feed, Pid, Msg}, #{feed := {Pid, _}} = State) -> {noreply, told(Msg, State)};
handle_cast({sderl_mon_feed, _Pid, _Msg}, State) -> {noreply, State};
handle_cast(_Msg, #{feed := {_, _}} = State) -> {noreply, State};
handle_cast(Msg, State) -> {noreply, told(Msg, State)}.

told({sderl_mon_update, 1, Update}, State) ->
    case sderl_mon_clean:update(Update) of
        {ok, Good, Bad} -> updated(Good, lose(update_entries, Bad, State));
        {error, not_an_update} -> lose(updates_malformed, 1, State)
    end;
told({sderl_mon_topology, 1, Topology}, #{topology := Told} = State) ->
    case sderl_mon_hub_topology:take(Topology, now_ms(), Told) of
        {ok, New} -> tell_topology(State#{topology := New});
        {error, Refusal} -> lose(Refusal, 1, State)
    end;
told({Tag, Version, _Body}, State) when is_atom(Tag), is_integer(Version) ->
    lose(other_version, 1, State);
told(_Other, State) ->
    lose(updates_malformed, 1, State).

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info(tick, State) ->
    {noreply, tick_later(tick(State))};
handle_info({'DOWN', Ref, process, _Pid, _Reason}, #{feed := {_Feed, Ref}} = State) ->
    {noreply, tell_all((begin_anew(State))#{mode := live, feed := none})};
handle_info({'DOWN', _Ref, process, Pid, _Reason}, #{subscribers := Subs} = State) ->
    {noreply, State#{subscribers := sderl_mon_subscribers:drop(Pid, Subs)}};
handle_info({sderl_mon_config, Config}, #{mode := Mode, options := Options} = State)
  when is_map(Config) ->
    case sderl_mon_hub_options:change(sderl_mon_hub_options:select(Mode, Config), Options) of
        {ok, New} -> {noreply, change_options(New, State)};
        {error, _Refused} -> {noreply, lose(options_refused, 1, State)}
    end;
handle_info(_Other, State) ->
    {noreply, lose(updates_malformed, 1, State)}.

%% Updates

updated(#{agent := Agent, details := New, events := Events, lost := Lost} = Update,
        #{updates := Updates} = State) ->
    case sderl_mon_updates:put(Update, Updates) of
        {ok, Updates1} ->
            #{details := Details, total_lost := Total, subscribers := Subs} = State,
            ok = sderl_mon_subscribers:details(New, Subs),
            Total1 = maps:merge_with(fun(_Key, A, B) -> A + B end, Total, Lost),
            tell_events(Agent, Events,
                        State#{updates := Updates1, details := maps:merge(Details, New),
                               total_lost := Total1});
        {error, Refusal} ->
            lose(Refusal, 1, State)
    end.

%% Ticks

tick_later(#{options := #{interval_ms := Interval}, next := Next} = State) ->
    Now = now_ms(),
    %% On a grid of intervals; one that was missed is left out.
    At = case Next + Interval of Due when Due > Now -> Due; _Late -> Now + Interval end,
    _ = erlang:send_after(At, self(), tick, [{abs, true}]),
    State#{next := At}.

tick(State) ->
    Now = wall_ms(),
    #{frame := Frame} = Next = sderl_mon_hub_state:make_frame(Now, State),
    sderl_mon_telemetry:frame(Frame),
    look(Now, tell({sderl_mon, frame, Frame}, Next)).

%% Findings

look(Now, #{topology := Told, details := Details, findings := Findings} = State) ->
    Topology = sderl_mon_hub_topology:present(Told),
    found(sderl_mon_hub_findings:look(Now, Topology, Details, Findings), State).

found({ok, {Told, New}, Findings}, #{history := History} = State) ->
    lists:foreach(fun sderl_mon_telemetry:finding/1, New),
    State1 = State#{findings := Findings},
    case Told of
        keep ->
            State1;
        tell ->
            Present = findings(State1),
            tell({sderl_mon, findings, Present},
                 State1#{history := sderl_mon_history:findings({wall_ms(), Present}, History)})
    end;
found({error, Why, Findings}, State) ->
    ?LOG_ERROR("This check for findings failed, and its findings are lost: ~0tP", [Why, 30]),
    lose(findings_failed, 1, State#{findings := Findings}).

%% Telling

tell_all(#{life := Life} = State) ->
    tell({sderl_mon, findings, findings(State)},
         tell_topology(tell({sderl_mon, anew, Life}, State))).

tell_topology(#{topology := Told} = State) ->
    tell({sderl_mon, topology, sderl_mon_hub_topology:present(Told)}, State).

tell_events(Agent, Given, #{events := Events} = State) ->
    case sderl_mon_events:add(Agent, Given, Events) of
        {[], _Same} ->
            State;
        {New, Events1} ->
            lists:foreach(fun sderl_mon_telemetry:event/1, New),
            tell({sderl_mon, events, New}, State#{events := Events1})
    end.

tell(Message, #{subscribers := Subs, life := Life, topology := Told} = State) ->
    Present = [{sderl_mon, anew, Life},
               {sderl_mon, topology, sderl_mon_hub_topology:present(Told)},
               {sderl_mon, findings, findings(State)}],
    State#{subscribers := sderl_mon_subscribers:tell(Message, Present, Subs)}.

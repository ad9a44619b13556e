%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_agent).
-moduledoc """
Watches one group, or one free node: receives samples from the probes of its nodes, computes rates,
and sends the sums to the hubs of all monitoring nodes once an interval. It reports changes (a node
goes, comes, changes its groups) to the masters at once.

It goes on while there is no master: its orders (`t:sderl_mon_message:orders/0`) stay in force until
the next. Orders of an older term than its own are ignored. Its memory is bounded: two samples and
one set of facts a node, and at most 500 events until the next update; dropped events are counted.
""".

-behaviour(gen_server).

-export([start_link/2, assign/2, orders/1, report/1, seen/2, release/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-import(sderl_mon_clock, [now_ms/0]).

-import(sderl_mon_text, [text/2]).

-define(EVENTS, 500).
-define(REPORT_SOON_MS, 20).
-define(REPORT_ALL_MS, 5000).
-define(JOB_MS, 15_000).
%% A process that is this late was stopped with its node.
-define(STILL_MS, 1000).
%% The keys of the configuration that say how a node is read.
-define(READING, [probe, inject, interval_ms, log, metrics]).
%% Kinds of events with other names here than on the probe.
-define(RENAMED, #{node_up => link_up, node_down => link_down}).
%% Each member reports these; the master reports them once, from the topology.
-define(MASTERS, [group_created, group_deleted, group_left, left, members_added, members_removed,
                  coordinator_changed]).

-type state() :: #{
    spec := sderl_mon_message:orders(),
    masters := atom(),
    watches := #{node() => sderl_mon_watch:watch()},
    timers := #{node() => reference()},
    %% The sample that the last rates end at, and these rates.
    bases := #{node() => sderl_mon_samples:sample()},
    rates := #{node() => rated()},
    probes := #{node() => pid()},
    events := [sderl_mon_types:new_event()],
    %% What the next update counts as left out; and `lost` of each node's last sample.
    lost := #{atom() => pos_integer()},
    losts := #{node() => #{atom() => non_neg_integer()}},
    told := integer(),
    next := integer(),
    woke := integer(),
    dirty := [node()],
    reporting := boolean()
}.
-type rated() :: #{
    node := sderl_mon_types:node_sample(),
    flows := sderl_mon_rates:rates(),
    detail := sderl_mon_types:detail(),
    groups := #{sderl_mon_types:id() => sderl_mon_types:group_sample()}
}.

-doc """
Starts an agent with its first orders. It reports to the masters, which are registered under that
name.
""".
-spec start_link(Masters :: atom(), sderl_mon_message:orders()) -> gen_server:start_ret().
start_link(Masters, Spec) -> gen_server:start_link(?MODULE, {Masters, Spec}, []).

-doc "Gives new orders.".
-spec assign(pid(), sderl_mon_message:orders()) -> ok.
assign(Agent, Spec) -> gen_server:cast(Agent, {assign, Spec}).

-doc "The orders in force, for a master that finds it running.".
-spec orders(pid()) -> {ok, sderl_mon_message:orders()} | {error, gone}.
orders(Agent) ->
    try
        {ok, gen_server:call(Agent, orders)}
    catch
        exit:_ -> {error, gone}
    end.

-doc "Has it report everything to all masters again.".
-spec report(pid()) -> ok.
report(Agent) -> gen_server:cast(Agent, report).

-doc "Another node has a link to a node that this agent cannot reach.".
-spec seen(pid(), node()) -> ok.
seen(Agent, Node) -> gen_server:cast(Agent, {seen, Node}).

-doc "Has it end the probes of its nodes: nobody will watch them any more.".
-spec release(pid()) -> ok.
release(Agent) ->
    try
        gen_server:call(Agent, release)
    catch
        exit:_ -> ok
    end.

-spec init({Masters :: atom(), sderl_mon_message:orders()}) -> {ok, state()}.
init({Masters, #{config := #{interval_ms := Interval}} = Spec}) ->
    %% An agent that is stopped still sends its remaining data (`terminate/2`).
    _ = process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    self() ! update,
    self() ! report_all,
    State = #{
        spec => Spec,
        masters => Masters,
        watches => #{},
        timers => #{},
        bases => #{},
        rates => #{},
        probes => #{},
        events => [],
        lost => #{},
        losts => #{},
        told => now_ms() - Interval,
        next => now_ms(),
        woke => now_ms() - 2 * Interval,
        dirty => [],
        reporting => false
    },
    {ok, watch_all(State)}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(orders, _From, #{spec := Spec} = State) ->
    {reply, Spec, State};
handle_call(release, _From, #{probes := Probes} = State) ->
    lists:foreach(fun(Probe) -> _ = sderl_mon_tell:message(Probe, {sderl_mon_probe, stop}) end,
                  maps:values(Probes)),
    {reply, ok, State};
handle_call(_, _, State) ->
    {reply, {error, unknown_call}, State}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast({assign, Spec}, State) ->
    case sderl_mon_message:check_orders(Spec) of
        ok -> {noreply, ordered(Spec, State)};
        {error, not_a_message} -> {noreply, State}
    end;
handle_cast(report, State) ->
    {noreply, all_dirty(State)};
handle_cast({seen, Node}, State) ->
    {noreply, step(Node, seen, State)};
handle_cast(_, State) ->
    {noreply, State}.

ordered(#{term := New, config := Config} = Spec,
        #{spec := #{term := Old, config := Before}} = State)
  when New >= Old ->
    State1 = watch_all(State#{spec := Spec}),
    State2 = case maps:with(?READING, Config) =:= maps:with(?READING, Before) of
        true -> State1;
        false -> each({configured, maps:get(interval_ms, Config)}, State1)
    end,
    %% Another agent may have had the probes since.
    case New > Old of true -> each(retake, all_dirty(State2)); false -> State2 end;
ordered(_, State) ->
    State.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({sderl_mon_sample, Pid, Told}, State) when is_pid(Pid) ->
    case sderl_mon_samples:check(Told) of
        {ok, Sample} -> {noreply, sampled(Pid, Sample, State)};
        %% Without an acknowledgement that probe ends by itself.
        {error, not_a_sample} -> {noreply, lose(samples_malformed, 1, State)}
    end;
handle_info({sderl_mon_logged, Pid, Batch}, State) when is_pid(Pid) ->
    {noreply, logged(Pid, Batch, State)};
handle_info({timeout, Timer, {due, Node}}, #{timers := Timers} = State) ->
    case Timers of
        #{Node := Timer} -> {noreply, due(Node, State#{timers := maps:remove(Node, Timers)})};
        #{} -> {noreply, State}
    end;
handle_info({sderl_mon_done, {attach, Node, Job}, Result}, State) ->
    {noreply, step(Node, {attached, Job, done(Result)}, State)};
handle_info({sderl_mon_done, {read, Node, Job}, Result}, State) ->
    Done = done(Result),
    State1 = case Done of {ok, Sample} -> kept(Sample, State); _ -> State end,
    {noreply, step(Node, {read, Job, Done}, State1)};
handle_info({nodedown, Node, _}, #{bases := Bases} = State) ->
    {noreply, step(Node, nodedown, State#{bases := maps:remove(Node, Bases)})};
handle_info({nodeup, Node, _}, State) ->
    {noreply, step(Node, seen, State)};
handle_info(update, State) ->
    {noreply, update(State)};
handle_info(report, State) ->
    {noreply, report_dirty(State)};
handle_info(report_all, State) ->
    _ = erlang:send_after(?REPORT_ALL_MS, self(), report_all),
    {noreply, all_dirty(State)};
handle_info(_, State) ->
    {noreply, State}.

-spec terminate(term(), state()) -> ok.
terminate(_, State) ->
    _ = tell_hubs(#{}, rated(State)),
    ok.

%% The node is to be read from here from now on.
sampled(Pid, #{node := Node}, #{watches := Watches,
                                spec := #{config := #{probe := stock}}} = State)
  when is_map_key(Node, Watches), node(Pid) =:= Node ->
    _ = sderl_mon_tell:message(Pid, {sderl_mon_probe, stop}),
    State;
sampled(Pid, #{node := Node, seq := Seq} = Told, #{watches := Watches, probes := Probes} = State)
  when is_map_key(Node, Watches), node(Pid) =:= Node ->
    _ = sderl_mon_tell:message(Pid, {sderl_mon_ack, Seq}),
    Sample = sderl_mon_rates:here(Told, sderl_mon_clock:wall_ms()),
    step(Node, {sample, joined(Sample, State)},
         kept(Sample, State#{probes := Probes#{Node => Pid}}));
sampled(_, _, State) ->
    State.

%% Log events that the collector of a node has sent.
logged(Pid, Batch, #{watches := Watches, spec := #{hubs := Hubs}} = State) ->
    case Watches of
        #{} when is_map_key(node(Pid), Watches) ->
            {_, Facts} = sderl_mon_watch:sample(map_get(node(Pid), Watches)),
            {What, N} = sderl_mon_log_relay:pass(Pid, Batch, groups_of(Facts), Hubs),
            lose(What, N, State);
        #{} -> State
    end.

done({ok, Result}) -> Result;
done({error, timeout}) -> {error, node, <<"does not answer">>};
done({error, Why}) -> {error, node, text("~0tP", [Why, 12])};
done(Other) -> done({error, Other}).

%% ---------------------------------------------------------------- the watched nodes

watch_all(
    #{spec := #{nodes := Nodes, config := #{interval_ms := Interval}}, watches := Watches} = State
) ->
    Gone = [N || N := _ <- Watches, not lists:member(N, Nodes)],
    New = [N || N <- Nodes, not is_map_key(N, Watches)],
    State1 = lists:foldl(fun forget/2, State, Gone),
    lists:foldl(
        fun(Node, #{watches := Ws} = Acc) ->
            step(Node, due, Acc#{watches := Ws#{Node => sderl_mon_watch:new(Node, Interval)}})
        end,
        State1,
        New
    ).

forget(Node, #{watches := Watches, timers := Timers, bases := Bases, rates := Rates, losts := Losts,
               probes := Probes, dirty := Dirty} = State) ->
    stop_timer(maps:get(Node, Timers, none)),
    State#{
        watches := maps:remove(Node, Watches),
        timers := maps:remove(Node, Timers),
        bases := maps:remove(Node, Bases),
        rates := maps:remove(Node, Rates),
        losts := maps:remove(Node, Losts),
        probes := maps:remove(Node, Probes),
        dirty := lists:delete(Node, Dirty)
    }.

each(Event, #{watches := Watches} = State) ->
    lists:foldl(fun(Node, Acc) -> step(Node, Event, Acc) end, State, maps:keys(Watches)).

step(Node, Event, #{watches := Watches} = State) ->
    case Watches of
        #{Node := Watch} ->
            {Effects, Watch1} = sderl_mon_watch:step(Event, now_ms(), Watch),
            lists:foldl(fun(E, Acc) -> effect(E, Node, Acc) end,
                        State#{watches := Watches#{Node := Watch1}}, Effects);
        #{} ->
            State
    end.

effect({timer, Ms}, Node, #{timers := Timers} = State) ->
    stop_timer(maps:get(Node, Timers, none)),
    State#{timers := Timers#{Node => erlang:start_timer(Ms, self(), {due, Node})}};
effect({job, attach, Job}, Node, #{watches := Watches} = State) ->
    Self = self(),
    Lane = case lists:member(Node, nodes(connected)) of
        true -> reach;
        false -> sderl_mon_watch:lane(maps:get(Node, Watches))
    end,
    ok = sderl_mon_pool:run(Lane, {attach, Node}, {attach, Node, Job},
                            fun() -> attach(Node, Self) end, ?JOB_MS),
    State;
effect({job, read, Job}, Node, State) ->
    ok = sderl_mon_pool:run(read, {read, Node}, {read, Node, Job},
                            fun() -> sderl_mon_reach:read(Node, #{seq => Job, facts => true}) end,
                            ?JOB_MS),
    State;
effect(told, Node, State) ->
    dirty([Node], State).

%% By the orders at the time when the job runs, which may have waited for its turn.
attach(Node, Agent) ->
    maybe
        {ok, #{term := Term, monitors := Monitors, config := Config}} ?= orders(Agent),
        Spec = (maps:with(?READING, Config))#{term => Term, friends => Monitors},
        sderl_mon_reach:attach(Node, Agent, Spec)
    else
        {error, gone} -> {error, node, <<"was not asked: its agent has ended">>}
    end.

%% An agent that was stopped heard nothing meanwhile, and must not report others as silent.
due(Node, #{woke := Woke, told := Told, spec := #{config := #{interval_ms := Interval}}} = State) ->
    Now = now_ms(),
    case Now - Woke < 2 * Interval orelse Now - Told > Interval + ?STILL_MS of
        true -> step(Node, woken, State);
        false -> step(Node, due, State)
    end.

stop_timer(none) -> ok;
stop_timer(Timer) -> _ = erlang:cancel_timer(Timer), ok.

%% ---------------------------------------------------------------- reports to the masters

all_dirty(#{watches := Watches} = State) -> dirty(maps:keys(Watches), State).

dirty(Nodes, #{dirty := Dirty, reporting := Reporting} = State) ->
    %% Simultaneous events are sent at once, in one message.
    _ = Reporting orelse erlang:send_after(?REPORT_SOON_MS, self(), report),
    State#{dirty := lists:umerge(lists:usort(Nodes), Dirty), reporting := true}.

report_dirty(#{dirty := Dirty, watches := Watches, masters := Masters,
               spec := #{scope := Scope, term := Term, hubs := Hubs}} = State) ->
    Reports = #{N => R
                || N <- Dirty, {ok, W} <- [maps:find(N, Watches)],
                   #{} = R <- [sderl_mon_watch:report(W)]},
    Report = #{scope => Scope, term => Term, nodes => Reports},
    lists:foreach(fun(Hub) -> _ = sderl_mon_tell:master(Hub, Masters, report, Report) end, Hubs),
    State#{dirty := [], reporting := false}.

%% ---------------------------------------------------------------- updates to the hubs

%% One more sample before the update.
joined(#{node := Node} = Sample, #{watches := Watches, bases := Bases}) ->
    Base = maps:get(mono_us, maps:get(Node, Bases, #{}), none),
    case sderl_mon_watch:sample(maps:get(Node, Watches)) of
        {#{mono_us := Last} = Before, _} when Last =/= Base ->
            sderl_mon_rates:joined(Before, Sample);
        _ -> Sample
    end.

%% Events are kept until the update, and so are the counts of what was left out: the next sample may
%% go to another agent.
kept(#{node := Node} = Sample, #{events := Events, losts := Losts} = State0) ->
    Lost = maps:get(lost, Sample, #{}),
    State = maps:fold(fun lose/3, State0#{losts := Losts#{Node => Lost}},
                      sderl_mon_rates:lost(maps:get(Node, Losts, undefined), Sample)),
    Id = sderl_mon_types:id(Node),
    New = [
        E#{node => Id, kind := maps:get(Kind, ?RENAMED, Kind)}
     || #{kind := Kind} = E <- maps:get(events, Sample, []), not lists:member(Kind, ?MASTERS)
    ],
    Room = ?EVENTS - length(Events),
    {Take, Drop} = case length(New) =< Room of
        true -> {New, 0};
        false -> {lists:sublist(New, max(0, Room)), length(New) - max(0, Room)}
    end,
    lose(events_dropped, Drop, State#{events := lists:reverse(Take, Events)}).

lose(_, 0, State) -> State;
lose(Key, N, #{lost := Lost} = State) ->
    State#{lost := maps:update_with(Key, fun(L) -> L + N end, N, Lost)}.

update(#{spec := #{config := #{interval_ms := Interval}}, next := Due} = State) ->
    Next = next(now_ms(), Due, Interval, State),
    _ = erlang:send_after(Next, self(), update, [{abs, true}]),
    #{rates := Rates} = State1 = rated(State),
    tell_hubs(sums(Rates), State1#{next := Next}).

%% Sends these numbers, the events, and the counts of what was left out.
tell_hubs(Numbers, #{spec := #{scope := Scope, term := Term, hubs := Hubs,
                               config := #{interval_ms := Interval}}} = State1) ->
    #{events := Events, lost := Lost, told := Told} = State1,
    Now = now_ms(),
    Woke =
        case Now - Told > Interval + ?STILL_MS of true -> Now; false -> maps:get(woke, State1) end,
    Update0 = #{
        agent => {sderl_mon_types:id(Scope), Term},
        t => sderl_mon_clock:wall_ms(),
        span_ms => max(1, Now - Told),
        events => lists:reverse(Events),
        lost => Lost
    },
    Update = maps:merge(Update0, Numbers),
    Failed = length([H || H <- Hubs, not sderl_mon_hub:update(H, Update)]),
    lose(updates_dropped, Failed, State1#{events := [], lost := #{}, told := Now, woke := Woke}).

%% On a grid of intervals, away from the moments at which samples come.
next(Now, Due, Interval, #{watches := Watches}) ->
    Ages = [Age || _ := W <- Watches, Age <- [sderl_mon_watch:age(Now, W)], is_integer(Age)],
    case sderl_mon_watch:shift(Ages, Interval) of
        0 when Due + Interval > Now -> Due + Interval;
        0 -> Now + Interval;
        Shift -> Now + Shift
    end.

%% New rates where there is a new sample; the old ones while the next sample is not due; none for a
%% silent node.
rated(#{watches := Watches} = State) ->
    maps:fold(fun rated/3, State, Watches).

rated(Node, Watch, #{bases := Bases, rates := Rates, spec := Spec} = State) ->
    Base = maps:get(Node, Bases, undefined),
    case sderl_mon_watch:sample(Watch) of
        {#{mono_us := T} = Sample, Facts} ->
            case {Base, sderl_mon_watch:is_up(Watch)} of
                {_, false} ->
                    State#{rates := maps:remove(Node, Rates)};
                {#{mono_us := T}, true} ->
                    State;
                {_, true} ->
                    New = sderl_mon_rates:between(Base, Sample, maps:with([monitors], Spec)),
                    Detail = sderl_mon_rates:detail({Base, Sample}, New, Facts),
                    Own = #{node => maps:get(node, New), flows => New, detail => Detail,
                            groups => groups(Sample, Facts, New)},
                    State#{bases := Bases#{Node => Sample}, rates := Rates#{Node => Own}}
            end;
        {undefined, _} ->
            State#{rates := maps:remove(Node, Rates)}
    end.

%% Registrations are counted by group. Traffic is not: a node's traffic counts for all its groups.
groups(#{source := Source}, Facts, #{node := Node, groups := Writes}) ->
    Flows = maps:with([in_msgs_s, in_bytes_s, out_msgs_s, out_bytes_s], Node),
    #{
        Id => maps:merge(Flows, maps:merge(maps:get(Id, Writes, #{}), names(Source, Info)))
     || #{group := G} = Info <- maps:get(groups, Facts, []), Id <- [sderl_mon_types:id({group, G})]
    }.

groups_of(Facts) ->
    [sderl_mon_types:id({group, G}) || #{group := G} <- maps:get(groups, Facts, [])].

%% Only probes count names.
names(probe, #{names := Names}) -> #{names => Names};
names(_, _) -> #{}.

sums(Rates) ->
    #{
        nodes => #{sderl_mon_types:id(N) => S || N := #{node := S} <- Rates},
        links => links(Rates),
        routed => maps:fold(fun(_, #{flows := #{routed := R}}, Acc) ->
            maps:merge_with(fun(_, X, Y) -> X + Y end, Acc, R)
        end, #{}, Rates),
        kinds => maps:fold(fun(_, #{flows := #{kinds := K}}, Acc) ->
            maps:merge_with(fun plus/3, Acc, K)
        end, #{}, Rates),
        groups => maps:fold(fun(_, #{groups := G}, Acc) -> maps:merge_with(fun add/3, Acc, G) end,
                            #{}, Rates),
        details => #{sderl_mon_types:id(N) => D || N := #{detail := D} <- Rates}
    }.

%% A link that both ends report counts as its sender reports it, as in the hub.
links(Rates) ->
    Side = fun(Key) ->
        maps:fold(fun(_, #{flows := #{Key := L}}, Acc) -> maps:merge(Acc, L) end, #{}, Rates)
    end,
    maps:merge(Side(heard), Side(links)).

plus(_, {M1, B1}, {M2, B2}) -> {M1 + M2, B1 + B2}.

add(_, One, Other) ->
    maps:merge_with(fun(names, N1, N2) -> max(N1, N2); (_, V1, V2) -> V1 + V2 end, One, Other).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_hub_state).
-moduledoc """
The state of a hub: the updates of the agents until the next frame, the frames made of them, and the
present state of the cluster. It sends nothing; it reads only clocks and the size of the process.
""".

-export([new/2, begin_anew/1, inherit/2, change_options/2, lose/3, make_frame/2]).
-export([snapshot/1, findings/1, info/1]).
-export_type([state/0, info/0, inherited/0]).

-import(sderl_mon_clock, [now_ms/0, wall_ms/0]).

-doc """
`next`: when the next frame is due. `lost`: since the last frame, by reason; `total_lost`: since the
start. `feed`: the process whose made-up cluster is shown in place of the real one. `life`: changes
whenever the numbers of frames and events begin anew.
""".
-type state() :: #{
    options := sderl_mon_hub_options:options(),
    mode := live | synthetic,
    feed := none | {pid(), reference()},
    subscribers := sderl_mon_subscribers:subscribers(),
    next := integer(),
    life := integer(),
    topology := sderl_mon_hub_topology:told(),
    seq := non_neg_integer(),
    frame := sderl_mon_types:frame() | none,
    last_t := sderl_mon_types:t(),
    history := sderl_mon_history:history(),
    updates := sderl_mon_updates:updates(),
    details := #{sderl_mon_types:id() => sderl_mon_types:detail()},
    events := sderl_mon_events:events(),
    findings := sderl_mon_hub_findings:findings(),
    lost := #{atom() => pos_integer()},
    total_lost := #{atom() => pos_integer()}
}.

-doc "`memory` is of the process with its history, in bytes; `lost` since the start, by reason.".
-type info() :: #{
    mode := live | synthetic,
    seq := non_neg_integer(),
    interval_ms := pos_integer(),
    memory := non_neg_integer(),
    history := sderl_mon_history:info(),
    subscribers := non_neg_integer(),
    events := non_neg_integer(),
    agents := non_neg_integer(),
    lost := #{atom() => pos_integer()}
}.

-doc "The past that another hub has given; `seq` is the highest number of a frame in it.".
-type inherited() :: #{past := sderl_mon_history:past(), events := [sderl_mon_types:event()],
                       seq := non_neg_integer()}.

-define(CAPS, #{links => 20_000, nodes => 2_000, groups => 2_000, kinds => 64,
               series => 1_000, values => 50_000}).
-define(FIRST_EVENTS, 200).

-doc "A hub without any report. `Next`: when the first frame is due.".
-spec new(sderl_mon_hub_options:options(), Next :: integer()) -> state().
new(Options, Next) ->
    begin_anew(#{
        options => Options,
        mode => live,
        feed => none,
        subscribers => sderl_mon_subscribers:new(),
        total_lost => #{},
        next => Next
    }).

-doc "Forgets all reports, because a feed has begun or ended.".
-spec begin_anew(map()) -> state().
begin_anew(#{options := #{history := Opts, thresholds := Thresholds}} = State) ->
    State#{
        life => new_life(),
        topology => sderl_mon_hub_topology:new(now_ms()),
        seq => 0,
        frame => none,
        last_t => wall_ms(),
        history => history(Opts),
        updates => sderl_mon_updates:new(),
        details => #{},
        events => sderl_mon_events:new(),
        lost => #{},
        findings => sderl_mon_hub_findings:new(Thresholds, wall_ms())
    }.

%% Different also after a restart of this node, and below 2^53: browsers compare it.
new_life() -> erlang:system_time(microsecond).

-doc "Puts the past of another hub before its own (`sderl_mon_hub:inherit/1`).".
-spec inherit(inherited(), state()) -> state().
inherit(#{past := Past, events := Given, seq := Last}, State) ->
    #{history := History, events := Events, seq := Seq, topology := Told} = State,
    State#{
        history := sderl_mon_history:inherit(Past, History),
        events := sderl_mon_events:inherit(Given, Events),
        seq := max(Seq, Last),
        topology := sderl_mon_hub_topology:renew(Told),
        life := new_life()
    }.

history(Opts) -> sderl_mon_history:new(Opts#{is_rate => fun sderl_mon_metrics:is_rate/1}).

-doc "Uses other options from now on.".
-spec change_options(sderl_mon_hub_options:options(), state()) -> state().
change_options(#{history := H1, thresholds := Th1} = New,
               #{options := #{history := H0, thresholds := Th0}, topology := Told,
                 findings := Findings} = State0) ->
    State = State0#{options := New},
    State1 = case H1 of
        H0 -> State;
        _ -> State#{history := history(H1),
                    topology := sderl_mon_hub_topology:renew(Told)}
    end,
    case Th1 of
        Th0 -> State1;
        _ -> State1#{findings := sderl_mon_hub_findings:change_thresholds(Th1, Findings)}
    end.

-doc "Counts something that is ignored.".
-spec lose(Reason :: atom(), non_neg_integer(), state()) -> state().
lose(_Key, 0, State) -> State;
lose(Key, N, #{lost := Lost, total_lost := Total} = State) ->
    Plus = fun(Count) -> Count + N end,
    State#{lost := maps:update_with(Key, Plus, N, Lost),
           total_lost := maps:update_with(Key, Plus, N, Total)}.

-doc "Makes a frame of the updates since the last one.".
-spec make_frame(sderl_mon_types:t(), state()) -> state().
make_frame(Now, #{seq := Seq, last_t := Last, lost := Lost, updates := Updates} = State) ->
    #{options := #{interval_ms := Interval}, topology := Told, history := History,
      findings := Findings, details := Details} = State,
    #{epoch := Epoch, nodes := Nodes} = sderl_mon_hub_topology:present(Told),
    %% A wall clock that was set back must not give a frame of no length.
    Span = max(1, Now - Last),
    {Words, Updates1} = sderl_mon_updates:take(Interval, Updates),
    Base = #{seq => Seq + 1, t => Now, span_ms => Span, epoch => Epoch, lost => Lost},
    Frame = sderl_mon_frame:cap(sderl_mon_frame:combine(Words, Base), ?CAPS),
    {History1, Told1} = sderl_mon_hub_topology:record(Now, History, Told),
    State#{
        seq := Seq + 1,
        last_t := Now,
        frame := Frame,
        updates := Updates1,
        lost := #{},
        topology := Told1,
        history := sderl_mon_history:frame(Frame, History1),
        findings := sderl_mon_hub_findings:add_frame(Frame, Findings),
        details := maps:with(maps:keys(Nodes), Details)
    }.

%% ---------------------------------------------------------------- the present state

-doc "For a new subscriber.".
-spec snapshot(state()) -> sderl_mon_hub:snapshot().
snapshot(#{topology := Told, frame := Frame, history := History} = State) ->
    #{events := Events, mode := Mode, options := #{interval_ms := Interval}, life := Life} = State,
    #{
        topology => sderl_mon_hub_topology:present(Told),
        frame => Frame,
        findings => findings(State),
        events => lists:sublist(lists:reverse(sderl_mon_events:to_list(Events)), ?FIRST_EVENTS),
        range => sderl_mon_history:range(History),
        mode => Mode,
        interval_ms => Interval,
        life => Life
    }.

-doc "The present findings.".
-spec findings(state()) -> [sderl_mon_types:finding()].
findings(#{findings := Findings}) -> sderl_mon_hub_findings:all(Findings).

-doc "See `sderl_mon_hub:info/0`; called by the process that has the state.".
-spec info(state()) -> info().
info(#{history := History, subscribers := Subs, events := Events, updates := Updates} = State) ->
    [{memory, Memory}, {binary, Binaries}] = process_info(self(), [memory, binary]),
    #{options := #{interval_ms := Interval}} = State,
    (maps:with([mode, seq], State))#{
        interval_ms => Interval,
        memory => Memory + lists:sum([Size || {_Id, Size, _Refs} <- lists:usort(Binaries)]),
        history => sderl_mon_history:info(History),
        subscribers => sderl_mon_subscribers:count(Subs),
        events => sderl_mon_events:count(Events),
        agents => sderl_mon_updates:agents(Updates),
        lost => maps:get(total_lost, State)
    }.

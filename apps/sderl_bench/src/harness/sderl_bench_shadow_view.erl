%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_shadow_view).
-moduledoc """
Runs on a monitoring node: a subscriber of its hub that counts what a browser would be told.

What it gives: `frames`; `answers`, nodes' numbers in frames, and `silent`, those that were not
there; `events`, and `events_of` by kind; `run_queue_max`; `lost`, what frames said was left out, by
reason; `missed`, frames that the hub left out; `overhead_pct`, for each node the probe's share of
the processor time that the node used, both as the node counted them; `probe_ms_s`, likewise, the
probe's processor time in milliseconds a second.
""".

-export([start/2, missing/1, unsettled/1, again/1, seen/1, shown/2, topology/1, since/2]).

-define(ASK_MS, 30_000).

%% Known by name only: this application does not depend on that one.
-define(APP, sderl_mon).
-define(HUB, sderl_mon_hub).

-doc "Starts the application with a configuration, and the subscriber.".
-spec start(Config :: map(), Nodes :: [binary()]) -> {ok, pid()} | {error, term()}.
start(Config, Nodes) ->
    _ = application:load(?APP),
    ok = application:set_env(?APP, config, Config),
    maybe
        {ok, _} ?= application:ensure_all_started(?APP),
        Caller = self(),
        View = spawn(fun() -> subscribed(Caller, Nodes) end),
        receive
            {View, ok} -> {ok, View};
            {View, Error} -> {error, Error}
        after ?ASK_MS -> {error, timeout}
        end
    end.

subscribed(Caller, Nodes) ->
    Hub = ?HUB,
    case Hub:subscribe() of
        {ok, #{topology := Topology}} ->
            Caller ! {self(), ok},
            loop((new(Nodes))#{topology => Topology});
        Error ->
            Caller ! {self(), Error}
    end.

new(Nodes) ->
    #{nodes => Nodes, frames => 0, answers => 0, silent => 0, events => 0, events_of => #{},
      run_queue_max => 0, lost => #{}, missed => 0, work => #{}, last => [], settled => [],
      waiting => []}.

-doc "Nodes that the last frame does not have.".
-spec missing(pid()) -> [binary()].
missing(View) -> ask(View, missing).

-doc """
Nodes that do not tell the load of their machine, which a probe knows when it has read that twice,
with all else that it reads seldom.
""".
-spec unsettled(pid()) -> [binary()].
unsettled(View) -> ask(View, unsettled).

-doc "Begins to count anew.".
-spec again(pid()) -> ok.
again(View) -> ask(View, again).

-doc "What was counted.".
-spec seen(pid()) -> map().
seen(View) -> ask(View, seen).

-doc "The topology as the hub told it last.".
-spec topology(pid()) -> map().
topology(View) -> ask(View, topology).

-doc """
When (system time in milliseconds) the hub first told of a topology that has these groups and lacks
those; waits for it.
""".
-spec shown(pid(), {Has :: [binary()], Lacks :: [binary()]}) -> integer() | timeout.
shown(View, Groups) -> ask(View, {shown, Groups}).

-doc "Nodes whose latest details were not measured after a time (system time in milliseconds).".
-spec since([binary()], integer()) -> [binary()].
since(Nodes, Ms) ->
    Hub = ?HUB,
    [Node || Node <- Nodes, case Hub:detail(Node) of {ok, #{t := T}} -> T =< Ms; _ -> true end].

ask(View, What) ->
    Alias = monitor(process, View, [{alias, reply_demonitor}]),
    View ! {What, Alias},
    receive
        {Alias, Answer} -> Answer;
        {'DOWN', Alias, process, _, Reason} -> error({view, Reason})
    after ?ASK_MS ->
        true = demonitor(Alias, [flush]),
        timeout
    end.

loop(State) ->
    receive
        Message -> loop(handle(Message, State))
    end.

handle({sderl_mon, frame, Frame}, State) ->
    framed(Frame, State);
handle({sderl_mon, events, Events}, #{events := Count, events_of := Of} = State) ->
    Of1 = lists:foldl(fun(#{kind := Kind}, Acc) ->
        maps:update_with(Kind, fun(N) -> N + 1 end, 1, Acc)
    end, Of, Events),
    State#{events := Count + length(Events), events_of := Of1};
handle({sderl_mon, topology, Topology}, #{waiting := Waiting} = State) ->
    Now = erlang:system_time(millisecond),
    {Met, Others} = lists:partition(fun({Groups, _}) -> has(Groups, Topology) end, Waiting),
    lists:foreach(fun({_, Alias}) -> Alias ! {Alias, Now} end, Met),
    State#{topology := Topology, waiting := Others};
handle({sderl_mon, missed, Count}, #{missed := Missed} = State) ->
    State#{missed := Missed + Count};
handle({missing, Alias}, #{nodes := Nodes, last := Last} = State) ->
    Alias ! {Alias, Nodes -- Last},
    State;
handle({unsettled, Alias}, #{nodes := Nodes, settled := Settled} = State) ->
    Alias ! {Alias, Nodes -- Settled},
    State;
handle({again, Alias}, #{nodes := Nodes, last := Last, waiting := Waiting, topology := Topology}) ->
    Alias ! {Alias, ok},
    (new(Nodes))#{last := Last, waiting := Waiting, topology => Topology};
handle({seen, Alias}, #{work := Work} = State) ->
    Alias ! {Alias,
             (maps:with([frames, answers, silent, events, events_of, run_queue_max, lost, missed],
                        State))#{
                            overhead_pct => #{Node => Probe / All
                                              || Node := {Probe, All, _} <- Work, All > 0},
                            probe_ms_s => #{Node => Probe / Span / 10
                                            || Node := {Probe, _, Span} <- Work, Span > 0}
                        }},
    State;
handle({topology, Alias}, #{topology := Topology} = State) ->
    Alias ! {Alias, Topology},
    State;
handle({{shown, Groups}, Alias}, #{waiting := Waiting, topology := Topology} = State) ->
    case has(Groups, Topology) of
        true -> Alias ! {Alias, erlang:system_time(millisecond)}, State;
        false -> State#{waiting := [{Groups, Alias} | Waiting]}
    end;
handle(_, State) ->
    State.

has({Has, Lacks}, #{groups := Groups}) ->
    lists:all(fun(Group) -> is_map_key(Group, Groups) end, Has)
        andalso not lists:any(fun(Group) -> is_map_key(Group, Groups) end, Lacks);
has(_, _) ->
    false.

framed(#{nodes := Samples, span_ms := Span} = Frame,
       #{nodes := Nodes, frames := Frames, answers := Answers, silent := Silent,
         run_queue_max := Most, lost := Lost, work := Work} = State) ->
    There = [{Node, map_get(Node, Samples)} || Node <- Nodes, is_map_key(Node, Samples)],
    State#{
        last := [Node || {Node, _} <- There],
        settled := [Node || {Node, #{host_cpu := _}} <- There],
        frames := Frames + 1,
        answers := Answers + length(There),
        silent := Silent + length(Nodes) - length(There),
        run_queue_max := lists:max([Most | [Queue || {_, #{run_queue := Queue}} <- There]]),
        lost := maps:merge_with(fun(_, A, B) -> A + B end, Lost, maps:get(lost, Frame, #{})),
        work := lists:foldl(fun({Node, Sample}, Acc) -> worked(Node, Sample, Span, Acc) end, Work,
                            There)
    }.

%% A share of a time in which little was done weighs little.
worked(Node, #{probe_pct := Pct, cpu_pct := Cpu}, Span, Work) ->
    {Probe, All, Spans} = maps:get(Node, Work, {0.0, 0.0, 0}),
    Work#{Node => {Probe + Pct * Cpu * Span, All + Cpu * Span, Spans + Span}};
worked(_, _, _, Work) ->
    Work.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_shadow_view).
-moduledoc """
Runs on a monitoring node: a subscriber of its hub that counts what a browser would be sent.
""".

-export([start/2, missing/1, unsettled/1, again/1, seen/1, shown/2, topology/1, since/2]).

-export_type([seen/0]).

-doc """
`answers`: samples of nodes in frames, and `silent`: those that were missing; `events_of`: events by
kind; `run_queue_max`: the longest of any node; `lost`: what frames said was left out, by reason;
`missed`: frames that the hub left out; `overhead_pct`: of each node, the probe's share of the
processor time that the node used, both as the node counted them; `probe_ms_s`: of each node, the
probe's processor time in milliseconds a second.
""".
-type seen() :: #{
    frames := non_neg_integer(),
    answers := non_neg_integer(),
    silent := non_neg_integer(),
    events := non_neg_integer(),
    events_of := #{atom() => pos_integer()},
    run_queue_max := number(),
    lost := #{atom() => number()},
    missed := non_neg_integer(),
    overhead_pct := #{binary() => float()},
    probe_ms_s := #{binary() => float()}
}.

-define(ASK_MS, 30_000).

-doc "Starts the application with a configuration, and the subscriber.".
-spec start(Config :: map(), Nodes :: [binary()]) -> {ok, pid()} | {error, term()}.
start(Config, Nodes) ->
    _ = application:load(sderl_mon),
    ok = application:set_env(sderl_mon, config, Config),
    maybe
        {ok, _} ?= application:ensure_all_started(sderl_mon),
        Caller = self(),
        View = spawn(fun() -> subscribed(Caller, Nodes) end),
        receive
            {View, ok} -> {ok, View};
            {View, Error} -> {error, Error}
        after ?ASK_MS -> {error, timeout}
        end
    end.

subscribed(Caller, Nodes) ->
    case sderl_mon_hub:subscribe() of
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
Nodes whose samples do not have the load of their machine, which a probe knows when it has read that
twice, as all else that it reads seldom.
""".
-spec unsettled(pid()) -> [binary()].
unsettled(View) -> ask(View, unsettled).

-doc "Starts counting again from 0.".
-spec again(pid()) -> ok.
again(View) -> ask(View, again).

-doc "The counts.".
-spec seen(pid()) -> seen().
seen(View) -> ask(View, seen).

-doc "The latest topology from the hub.".
-spec topology(pid()) -> map().
topology(View) -> ask(View, topology).

-doc """
Waits until the hub sends a topology that has some groups and lacks others; gives the system time of
that, in milliseconds.
""".
-spec shown(pid(), {Has :: [binary()], Lacks :: [binary()]}) -> integer() | timeout.
shown(View, Groups) -> ask(View, {shown, Groups}).

-doc "Nodes whose latest details were not measured after a time (system time in milliseconds).".
-spec since([binary()], integer()) -> [binary()].
since(Nodes, Ms) ->
    [Node || Node <- Nodes,
             case sderl_mon_hub:detail(Node) of {ok, #{t := T}} -> T =< Ms; _ -> true end].

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

%% Shares are weighted by the processor time of the node.
worked(Node, #{probe_pct := Pct, cpu_pct := Cpu}, Span, Work) ->
    {Probe, All, Spans} = maps:get(Node, Work, {0.0, 0.0, 0}),
    Work#{Node => {Probe + Pct * Cpu * Span, All + Cpu * Span, Spans + Span}};
worked(_, _, _, Work) ->
    Work.

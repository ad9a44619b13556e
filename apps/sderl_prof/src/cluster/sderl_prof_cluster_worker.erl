%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_cluster_worker).
-moduledoc """
Deals with one node of a recording of several, for `m:sderl_prof_cluster`: gets it ready, begins
when it is told to, and tells the end. It owns the recorder on the node, which ends with it.
""".

-export([run/1]).
-export_type([work/0]).

%% A recording may end so much later than it should before its node counts as lost.
-define(LATE_MS, 30_000).

-doc """
`most`: more events in a second than this, counted in a trial, are refused, or a share of the
processes is recorded, as the plan says.
""".
-type work() :: #{caller := pid(), ref := reference(), node := node(), dir := file:filename_all(),
                  plan := sderl_prof_options:plan(), most := pos_integer() | infinity,
                  wait_ms := pos_integer()}.

-doc """
Sends its caller `{Ref, self(), {Step, Told}}` with the steps `ready`, `began` and `ended`, or
`failed`; `Told` is what changes in the node's entry of the index.
""".
-spec run(work()) -> ok.
run(#{caller := Caller} = Work) ->
    Monitor = monitor(process, Caller),
    maybe
        {ok, Told, Plan} ?= ready(Work),
        ok = tell(ready, Told, Work),
        ok ?= told_to_begin(Monitor, Work),
        {ok, Recorder, Began} ?= begin_recording(Work#{plan := Plan}),
        ok = tell(began, Began, Work),
        {ok, Ended} ?= ended(Recorder, Monitor, Work),
        tell(ended, last_sample(Ended, Told, Work), Work)
    else
        gone -> ok;
        {error, Why} -> tell(failed, #{error => text(Why)}, Work);
        {failed, Told1} -> tell(failed, Told1, Work)
    end.

tell(Step, Told, #{caller := Caller, ref := Ref}) ->
    Caller ! {Ref, self(), {Step, Told}},
    ok.

%% ---------------------------------------------------------------- before it begins

ready(#{node := Node, plan := Plan, dir := Dir, most := Most, wait_ms := WaitMs} = Work) ->
    maybe
        ok ?= sderl_prof_reach:connect(Node),
        ok ?= sderl_prof_reach:load(Node, WaitMs),
        {ok, Affordable, Cost} ?= sderl_prof_options:fitted(Plan, Most, fun(Tried) ->
            on_node(sderl_prof_trial, run, [Tried, Dir], Work)
        end, fun(_, _) -> ok end),
        Groups = sderl_prof_reach:call(Node, sderl_prof_station, groups, [], WaitMs),
        {ok, Sample} ?= sderl_prof_exchange:sample(Node, WaitMs),
        {ok, #{cost => Cost, clock => #{first => Sample, last => none},
               groups => case Groups of {error, _} -> []; _ -> Groups end}, Affordable}
    end.

on_node(Module, Function, Args, #{node := Node, wait_ms := WaitMs}) ->
    case sderl_prof_reach:call(Node, Module, Function, Args, WaitMs) of
        {ok, Result} -> {ok, Result};
        {error, {node, _, _}} = Error -> Error;
        {error, Why} -> {error, {recorder, Why}}
    end.

told_to_begin(Monitor, #{ref := Ref}) ->
    receive
        {Ref, begin_now} -> ok;
        {'DOWN', Monitor, process, _, _} -> gone
    end.

%% ---------------------------------------------------------------- from begin to end

begin_recording(#{plan := Plan, dir := Dir} = Work) ->
    maybe
        {ok, Recorder} ?= on_node(sderl_prof_recorder, start, [Plan, Dir, self()], Work),
        %% It may have ended already; then the end tells the same.
        Began = case asked(Recorder, info, Work) of
            #{} = Info -> times(Info);
            _ -> #{}
        end,
        {ok, Recorder, Began}
    end.

asked(Recorder, What, #{wait_ms := WaitMs}) ->
    try gen_server:call(Recorder, What, WaitMs) catch exit:Why -> {error, Why} end.

times(#{began := Began, alias_bits := Bits}) ->
    #{began => Began, alias_bits => case Bits of none -> null; _ -> Bits end}.

ended(Recorder, Monitor, #{plan := #{milliseconds := Ms}} = Work) ->
    Request = gen_server:send_request(Recorder, await),
    wait(Request, Recorder, Monitor, until(Ms + ?LATE_MS), Work).

until(Ms) -> erlang:monotonic_time(millisecond) + Ms.

wait(Request, Recorder, Monitor, Until, #{ref := Ref, wait_ms := WaitMs, node := Node} = Work) ->
    receive
        {Ref, stop_now} ->
            _ = gen_server:send_request(Recorder, stop),
            wait(Request, Recorder, Monitor, until(WaitMs), Work);
        {'DOWN', Monitor, process, _, _} -> gone;
        Message ->
            case gen_server:check_response(Message, Request) of
                {reply, #{ended_at := At, written := Written} = Info} ->
                    {ok, (times(Info))#{ended_at => At, ended => how(Info), written => Written}};
                {reply, {error, Why}} -> {error, {recorder, Why}};
                {error, {Why, _}} -> {failed, #{error => lost(Why, Node)}};
                no_reply -> wait(Request, Recorder, Monitor, Until, Work)
            end
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        {failed, #{error => lost(timeout, Node)}}
    end.

how(#{ended := {disk, Why}}) -> unicode:characters_to_binary(io_lib:format("disk: ~0tp", [Why]));
how(#{ended := How}) -> atom_to_binary(How).

lost(noconnection, _) -> ~"the node died, or the connection to it was lost, while it recorded";
lost(timeout, _) -> ~"the node does not tell the end of its recording";
lost(Why, _) ->
    unicode:characters_to_binary(io_lib:format("the recorder ended early: ~0tP", [Why, 10])).

%% Of a node that is gone now, the first one must do.
last_sample(Ended, #{clock := Clock}, #{node := Node, wait_ms := WaitMs}) ->
    case sderl_prof_exchange:sample(Node, WaitMs) of
        {ok, Sample} -> Ended#{clock => Clock#{last := Sample}};
        {error, _} -> Ended
    end.

%% ---------------------------------------------------------------- in words

text({no_connection, Node}) ->
    unicode:characters_to_binary(io_lib:format(
        "cannot connect to ~ts: is it up, is this its full name, and is the cookie its own?", [Node]
    ));
text(Why) -> unicode:characters_to_binary(sderl_prof_failure:format(Why)).

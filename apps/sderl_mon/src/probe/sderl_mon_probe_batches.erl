%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_batches).
-moduledoc """
The events of a node's log on their way to the agent: one batch is under way, the others wait. Pure.

A batch does not change until it is acknowledged, and is sent again if it is not; by its number a
receiver knows a batch that it has had. The counts of left-out events only grow, so no count is lost
with a batch.
""".

-export([new/1, add/2, next/3, again/1, acknowledge/2, count/1]).
-export_type([batches/0, batch/0]).

-doc """
`run` identifies the collector: numbers begin anew with each. `at` is the node's time when the batch
was made, in microseconds as in events. `before` is how many events were in the batches before.
""".
-type batch() :: #{
    v := 1,
    node := node(),
    run := integer(),
    seq := pos_integer(),
    at := integer(),
    before := non_neg_integer(),
    events := [sderl_mon_probe_log:event()],
    lost := sderl_mon_probe_gate:lost()
}.

-record(batches, {
    run :: integer(),
    seq = 0 :: non_neg_integer(),
    %% The last first.
    waiting = [] :: [sderl_mon_probe_log:event()],
    count = 0 :: non_neg_integer(),
    before = 0 :: non_neg_integer(),
    told = #{} :: sderl_mon_probe_gate:lost(),
    out = none :: none | batch()
}).
-opaque batches() :: #batches{}.

-define(MOST, 200).

-doc "No events.".
-spec new(Run :: integer()) -> batches().
new(Run) -> #batches{run = Run}.

-doc "Adds an event that waits.".
-spec add(sderl_mon_probe_log:event(), batches()) -> batches().
add(Event, #batches{waiting = Waiting, count = Count} = B) ->
    B#batches{waiting = [Event | Waiting], count = Count + 1}.

-doc """
The next batch, of at most 200 events, if none is under way and there is something new to send.
""".
-spec next(At :: integer(), sderl_mon_probe_gate:lost(), batches()) -> {batch(), batches()} | none.
next(_, _, #batches{out = #{}}) -> none;
next(_, Told, #batches{count = 0, told = Told}) -> none;
next(At, Lost, #batches{run = Run, seq = Seq, before = Before, count = Count} = B) ->
    #batches{waiting = Waiting} = B,
    {Now, Later} = lists:split(min(?MOST, Count), lists:reverse(Waiting)),
    Batch = #{v => 1, node => node(), run => Run, seq => Seq + 1, at => At, before => Before,
              events => Now, lost => Lost},
    {Batch, B#batches{seq = Seq + 1, before = Before + length(Now), waiting = lists:reverse(Later),
                      count = length(Later), told = Lost, out = Batch}}.

-doc "The batch under way, which may not have arrived.".
-spec again(batches()) -> batch() | none.
again(#batches{out = Out}) -> Out.

-doc "The batch of that number has arrived. Returns how many events it had.".
-spec acknowledge(Seq :: term(), batches()) -> {non_neg_integer(), batches()} | none.
acknowledge(Seq, #batches{out = #{seq := Seq, events := Events}} = B) ->
    {length(Events), B#batches{out = none}};
acknowledge(_, _) -> none.

-doc "How many events wait.".
-spec count(batches()) -> non_neg_integer().
count(#batches{count = Count}) -> Count.

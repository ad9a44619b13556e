%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_stats).
-moduledoc """
The statistics of Orbit at the end, of all workers and of each: as published, with today's names.

| metric | meaning |
|---|---|
| `size` | elements of the orbit |
| `checksum` | their sum: the same for the same generators and space in every mode |
| `vertices_received` | vertices that workers were given, by others or themselves: `size` x generators + 1 |
| `vertices_sent`, `vertex_messages` | vertices that went to another worker, and the messages that took, those between gateways included |
| `credits_returned` | how often a worker without work gave its credit back |
| `min_atomic_credit` | the K of the smallest part, 2^-K, of the credit that was sent; of a credit that a worker had, `credit_atoms_max` parts at most |
| `waiting_max` | the most elements that waited at a worker for their expansion (looked at now and then) |
| `idle_init_ms`, `idle_max_ms`, `idle_tail_ms` | the longest that a worker had to wait for its first vertex, between two, and for the end |
| `slots`, `nonempty_slots`, `fill_deg` | of the tables, and `nonempty_slots` / `slots` |
| `max_freq`, `avg_freq`, `nonempty_avg_freq` | elements of a slot: at most, on average, on average of those that have any |
| `freq` | how many slots have so many elements |
| `table_bytes`, `bytes_per_element` | memory of the tables, and for each element |
""".

-export([merge/1, worker/1]).

-doc "The statistics of all workers.".
-spec merge([sderl_orbit_worker:report()]) -> #{atom() => term()}.
merge(Reports) ->
    Sum = fun(Key) -> lists:sum([V || #{Key := V} <- Reports]) end,
    Max = fun(Key) -> lists:max([V || #{Key := V} <- Reports]) end,
    Contents = [C || #{contents := C} <- Reports],
    Total = fun(Key) -> lists:sum([V || #{Key := V} <- Contents]) end,
    filled(Total(size), Total(slots), Total(nonempty_slots), #{
        checksum => Total(sum),
        vertices_received => Sum(vertices_received),
        vertices_sent => Sum(sent_vertices),
        %% To a gateway, to one of the other group, to the worker.
        vertex_messages => Sum(sent) + 2 * Sum(sent_far),
        credits_returned => Sum(credits_returned),
        min_atomic_credit => Max(least_credit),
        credit_atoms_max => Max(credit_atoms_max),
        waiting_max => Max(waiting_max),
        idle_init_ms => Max(idle_init_ms),
        idle_max_ms => Max(idle_max_ms),
        idle_tail_ms => Max(idle_tail_ms),
        freq => lists:foldl(
            fun(#{freq := Freq}, All) -> maps:merge_with(fun(_, A, B) -> A + B end, Freq, All) end,
            #{}, Contents
        ),
        max_freq => lists:max([V || #{max_freq := V} <- Contents]),
        table_bytes => Total(bytes)
    }).

filled(Size, Slots, Used, Metrics) ->
    Metrics#{
        size => Size,
        slots => Slots,
        nonempty_slots => Used,
        fill_deg => Used / Slots,
        avg_freq => Size / Slots,
        nonempty_avg_freq => Size / Used,
        bytes_per_element => maps:get(table_bytes, Metrics) / Size
    }.

-doc "The statistics of one worker.".
-spec worker(sderl_orbit_worker:report()) -> #{atom() => term()}.
worker(#{node := Node,
         contents := #{size := Size, slots := Slots, nonempty_slots := Used, max_freq := Most}} =
           Report) ->
    (maps:with(
        [vertices_received, credits_returned, sent, waiting_max, idle_init_ms, idle_max_ms,
         idle_tail_ms], Report
    ))#{
        node => Node,
        min_atomic_credit => maps:get(least_credit, Report),
        size => Size,
        slots => Slots,
        fill_deg => Used / Slots,
        max_freq => Most
    }.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_watch).
-moduledoc """
Monitors a cluster while something runs on it, to compare that with a run without monitoring.

```erlang
{Result, Seen} = sderl_bench_watch:around(Fleet, Nodes, on, fun() -> measure() end),
```

It is the complete monitoring with its default settings: one hidden monitoring node beside the
others (`m:sderl_bench_shadow`), and a probe on each of them. `Fun` begins when samples of all nodes
have come and their probes have read twice what they read seldom, some ten seconds later, so that
the start of the monitoring is not measured.
""".

-export([around/4]).
-export_type([seen/0]).

-doc """
The counts while `Fun` ran, as `t:sderl_bench_shadow_view:seen/0` has them; of `overhead_pct` and
`probe_ms_s` the median of the nodes, and of the former the greatest, too. `off` without monitoring.
""".
-type seen() ::
    off
    | #{
        answers := non_neg_integer(),
        silent := non_neg_integer(),
        events := non_neg_integer(),
        run_queue_max := number(),
        lost := #{atom() => number()},
        overhead_pct := number() | undefined,
        overhead_pct_max := number() | undefined,
        probe_ms_s := number() | undefined
    }.

-define(READY_MS, 60_000).
-define(SETTLE_MS, 15_000).

-doc """
The result of `Fun`, and the counts meanwhile. Nothing of the monitoring is left on the nodes
afterwards, however `Fun` ends. Exits with `{sderl_bench_watch, Reason}` when it does not start.
""".
-spec around(Fleet :: pid(), [node()], off | on, fun(() -> Result)) -> {Result, seen()}.
around(_Fleet, _Nodes, off, Fun) ->
    {Fun(), off};
around(Fleet, Nodes, on, Fun) ->
    Shadow = needed(sderl_bench_shadow:start(Fleet, Nodes, #{})),
    try
        ok = needed(sderl_bench_shadow:await(Shadow, ?READY_MS)),
        ok = sderl_bench_shadow:settle(Shadow, ?SETTLE_MS),
        ok = sderl_bench_shadow:again(Shadow),
        Result = Fun(),
        {Result, seen(sderl_bench_shadow:seen(Shadow))}
    after
        sderl_bench_shadow:stop(Shadow)
    end.

needed(ok) -> ok;
needed({ok, Value}) -> Value;
needed({error, Reason}) -> exit({?MODULE, Reason}).

seen(#{overhead_pct := Shares, probe_ms_s := Times} = Seen) ->
    (maps:with([answers, silent, events, run_queue_max, lost], Seen))#{
        overhead_pct => of_nodes(fun sderl_table:median/1, Shares),
        overhead_pct_max => of_nodes(fun lists:max/1, Shares),
        probe_ms_s => of_nodes(fun sderl_table:median/1, Times)
    }.

of_nodes(_, Values) when map_size(Values) =:= 0 -> undefined;
of_nodes(Fun, Values) -> Fun(maps:values(Values)).

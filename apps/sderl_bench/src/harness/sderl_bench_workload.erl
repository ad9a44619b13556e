%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_workload).
-moduledoc """
A program that `bin/sderl bench monitoring` runs without monitoring and with it. An application
lists its workloads in its environment, see `m:sderl_catalogue`.
""".

-doc "The parameters of a run, from the benchmark's options. `mode` is the workload's name.".
-callback point(Options :: #{atom() => term()}) -> #{mode := atom(), atom() => term()}.

-doc """
Runs it. `monitoring` in the parameters says whether it is monitored. A reason is a term for
`sderl_bench_reason:text/1`.
""".
-callback run(Params :: #{atom() => term()}, Label :: unicode:chardata()) ->
    {ok, Metrics :: #{atom() => term()}} | {error, term()}.

-doc "The processor time of an operation, in microseconds.".
-callback cpu_us(Metrics :: #{atom() => term()}) -> number() | undefined.

-doc "Operations a second.".
-callback rate(Metrics :: #{atom() => term()}) -> number() | undefined.

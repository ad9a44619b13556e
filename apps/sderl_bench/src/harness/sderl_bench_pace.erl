%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_pace).
-moduledoc """
When the operations of an open load are due.

Under *open* load operations come at their own times, whether or not those before them have ended,
as they do from many independent users. A latency is counted from the time at which the operation
was *due*: a client that waits for a slow answer and does not ask meanwhile would leave out the
worst latencies (coordinated omission).

Pure; the same seed gives the same times.
""".

-export([new/1, next/1]).
-export_type([pace/0, options/0]).

-doc """
`rate`: operations a second. `poisson`: gaps that are independent of one another, as from many
users; `even`: all gaps equal, the first one's length anywhere in it, so that nodes with different
seeds do not fall into step.
""".
-type options() :: #{rate := number(), seed := term(), kind => poisson | even}.

-opaque pace() :: {poisson | even, GapNs :: float(), LastNs :: float(), rand:state()}.

-define(SECOND, 1.0e9).

-doc "The rate is above 0; `kind` is `poisson` by default.".
-spec new(options()) -> pace().
new(#{rate := Rate, seed := Seed} = Options) when Rate > 0 ->
    Kind = maps:get(kind, Options, poisson),
    Gap = ?SECOND / Rate,
    Random = rand:seed_s(exsss, erlang:phash2(Seed, 1 bsl 32)),
    case Kind of
        poisson ->
            {poisson, Gap, 0.0, Random};
        even ->
            {U, Random1} = rand:uniform_s(Random),
            {even, Gap, (U - 1) * Gap, Random1}
    end.

-doc """
The time of the next operation in nanoseconds from the beginning, never before that of the last.
""".
-spec next(pace()) -> {Ns :: non_neg_integer(), pace()}.
next({even, Gap, Last, Random}) ->
    At = Last + Gap,
    {trunc(At), {even, Gap, At, Random}};
next({poisson, Gap, Last, Random}) ->
    {U, Random1} = rand:uniform_real_s(Random),
    At = Last - math:log(U) * Gap,
    {trunc(At), {poisson, Gap, At, Random1}}.

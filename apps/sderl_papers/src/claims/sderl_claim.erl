%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim).
-moduledoc """
A claim of the published work, as an experiment that `bin/sderl reproduce` repeats: which points to
measure, and what the points say about the claim.

A claim's module is pure. Its verdict is computed from the measurements alone: whoever reads
`points.jsonl` comes to the same one. The value of a formula is compared with a measured one, never
with itself.

The module is listed in `all/0`.
""".

-export([all/0, named/1, id/1, share/1, page/3]).
-export_type([point/0, workload/0, about/0, said/0, page/0, plot/0, axis/0, series/0, mark/0,
              table/0, verdict/0]).

-doc """
The functions that measure: `sderl_debench:run/2`, `sderl_orbit:run/2`, `sderl_reproduce_aco:run/2`,
`sderl_im:run/2`, `sderl_bench_deploy:once/2`, `sderl_reproduce_vm:run/2`,
`sderl_reproduce_schedulers:run/2`, `sderl_reproduce_balance:run/2`, `sderl_city:run/2`.
""".
-type workload() :: debench | orbit | aco | im | deploy | vm | schedulers | balance
                  | city.

-doc """
One point: `params` are those of the workload without `seed` and `run`, and with the workload they
are what identifies it, so that claims share points. It should take `fixed_s` seconds, which do not
depend on the machine, and about `work_s` more, which do. `most_runs`: at most so many runs of it,
as one takes very long; `least_runs`: it says nothing with fewer.
""".
-type point() :: #{
    workload := workload(),
    params := #{atom() => term()},
    fixed_s := number(),
    work_s := number(),
    most_runs => pos_integer(),
    least_runs => pos_integer()
}.

-doc "`not_shown`: neither follows from these points, or at this scale.".
-type verdict() :: confirmed | refuted | not_shown.

-doc """
Describes a claim. `id`: the name on the command line, `C1`. `title`: a few words. `question`: what
is asked of the machine. `claim`: what was published, and where. `share`: the weight of this claim
in the budget of all claims.
""".
-type about() :: #{
    id := binary(),
    title := binary(),
    question := binary(),
    claim := binary(),
    share := pos_integer()
}.

-doc "The plots, tables and notes of one claim.".
-type said() :: #{
    plots := [plot()],
    tables := [table()],
    notes := [binary()]
}.

-doc """
A claim in the report. All texts are for people. A page without a published claim has the verdict
`none` and an empty `claim`.
""".
-type page() :: #{
    id := binary(),
    title := binary(),
    question := binary(),
    claim := binary(),
    verdict := verdict() | none,
    verdict_text := binary(),
    plots := [plot()],
    tables := [table()],
    notes := [binary()],
    command := binary()
}.

-doc "Lines over an axis. A plot without points in any of its series is not on a page.".
-type plot() :: #{
    title := binary(),
    x := axis(),
    y := axis(),
    series := [series()],
    marks => [mark()]
}.

-doc "`unit` is empty for a number or a ratio. `zero`: whether the axis begins at 0.".
-type axis() :: #{label := binary(), unit := binary(), scale := linear | log, zero => boolean()}.

-doc """
Points in the order of `x`; `y` is the median of the runs, `low` the least of them, `high` the
greatest. They are drawn as points on a line; a `line` alone is for what was computed, such as a
law, `points` alone are for single values, of which several may be at one `x`.
""".
-type series() ::
    #{name := binary(), draw => line | points,
      points := [#{x := number(), y := number(), low := number(), high := number()}]}.

-doc "A line through the whole plot at a value of `x` or of `y`, with its name.".
-type mark() :: #{x => number(), y => number(), text := binary()}.

-doc "Each row is as long as the header.".
-type table() :: #{title := binary(), header := [binary()], rows := [[binary()]]}.

-doc "Describes the claim.".
-callback about() -> about().

-doc "What to measure, the most important first.".
-callback points(sderl_reproduce_scale:scale()) -> [point()].

-doc "The verdict from the points, and why; there may be any points, or none.".
-callback verdict([sderl_claim_points:measured()]) -> {verdict(), binary()}.

-doc "The plots, tables and notes from the points.".
-callback page([sderl_claim_points:measured()]) -> said().

-doc "All claims, in their order.".
-spec all() -> [module()].
all() ->
    [
        sderl_claim_c1, sderl_claim_c2, sderl_claim_c3, sderl_claim_c4, sderl_claim_c5,
        sderl_claim_c6, sderl_claim_c7, sderl_claim_c8, sderl_claim_c9, sderl_claim_c10,
        sderl_claim_c11, sderl_claim_c12, sderl_claim_c13, sderl_claim_c14, sderl_claim_c15,
        sderl_claim_c16, sderl_claim_c17, sderl_claim_c19
    ].

-doc "The module of a claim; `unbuilt`: the claim is in the list of claims, but has no module yet.".
-spec named(Id :: unicode:chardata()) -> {ok, module()} | {error, unbuilt | unknown}.
named(Id) ->
    Upper = unicode:characters_to_binary(string:uppercase(Id)),
    case {[Module || Module <- all(), id(Module) =:= Upper], number(Upper)} of
        {[Module], _} -> {ok, Module};
        {[], {ok, N}} when N >= 1, N =< 20 -> {error, unbuilt};
        {[], _} -> {error, unknown}
    end.

number(<<"C", Digits/binary>>) ->
    case string:to_integer(Digits) of
        {N, <<>>} when is_integer(N) -> {ok, N};
        _ -> error
    end;
number(_) ->
    error.

-doc "The name of a claim on the command line.".
-spec id(module()) -> binary().
id(Module) -> map_get(id, Module:about()).

-doc "The weight of a claim in the budget.".
-spec share(module()) -> pos_integer().
share(Module) -> map_get(share, Module:about()).

-doc """
The page of a claim, with its verdict and the command that measures it again.
""".
-spec page(module(), [sderl_claim_points:measured()], Command :: binary()) -> page().
page(Module, Points, Command) ->
    {Verdict, Text} = Module:verdict(Points),
    (maps:merge(maps:remove(share, Module:about()), Module:page(Points)))#{
        verdict => Verdict, verdict_text => Text, command => Command
    }.

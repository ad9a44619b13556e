%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_scaling).
-moduledoc """
How a program scales, by two laws:

- Amdahl's law: `S(N) = 1 / (s + (1 - s) / N)`. `s` is the serial share: the work that only one
  processor can do at a time.
- Gunther's Universal Scalability Law: `S(N) = N / (1 + a (N - 1) + b N (N - 1))`. `a` is contention
  (waiting for shared resources), `b` is coherence (agreement of each with each other). With `b`
  above 0 the speedup has a peak, at `sqrt((1 - a) / b)`.

Both are fitted by least squares of the relative error of the time. Coefficients below 0, as a
speedup above N would give, are set to 0.
""".

-export([amdahl/1, usl/1, predicted/2, speedups/1, resampled/4]).
-export_type([times/0, speedup/0, amdahl/0, usl/0]).

-doc "The times of some runs on N schedulers.".
-type times() :: {N :: pos_integer(), [number(), ...]}.

-type speedup() :: {N :: pos_integer(), Speedup :: float()}.

-doc """
`limit`: the speedup on infinitely many schedulers. `error`: the root mean square of the relative
errors; `undefined` where there are no more points than unknowns, so that any law fits.
""".
-type amdahl() :: #{serial := float(), limit := float() | infinity, error := float() | undefined}.

-doc """
`peak`: on how many schedulers it is fastest, and how much faster than on one; `none` where more are
always faster.
""".
-type usl() :: #{contention := float(), coherence := float(),
                 peak := {Schedulers :: float(), Speedup :: float()} | none,
                 error := float() | undefined}.

-doc """
The speedup of the medians against one scheduler, which must be among them.
""".
-spec speedups([times()]) -> [speedup()].
speedups(Times) ->
    {1, Alone} = lists:keyfind(1, 1, Times),
    One = sderl_table:median(Alone),
    [{N, One / sderl_table:median(Values)} || {N, Values} <- lists:keysort(1, Times)].

-doc "`undefined` without a point on several schedulers.".
-spec amdahl([speedup()]) -> amdahl() | undefined.
amdahl(Speedups) ->
    case several(Speedups) of
        [] ->
            undefined;
        Points ->
            %% 1/S - 1/N = s (1 - 1/N), both sides divided by 1/S.
            Rows = [{S * (1 - 1 / N), 1 - S / N} || {N, S} <- Points],
            Serial = min(1.0, line(Rows)),
            #{
                serial => Serial,
                limit => case Serial > 0 of true -> 1 / Serial; false -> infinity end,
                error => error_of(fun(N) -> predicted(#{serial => Serial}, N) end, 1, Points)
            }
    end.

-doc "`undefined` with less than two numbers of schedulers above one, as it has two unknowns.".
-spec usl([speedup()]) -> usl() | undefined.
usl(Speedups) ->
    case several(Speedups) of
        [_, _ | _] = Points ->
            %% N/S - 1 = a (N - 1) + b N (N - 1), both sides divided by N/S.
            Rows = [{S / N * (N - 1), S * (N - 1), 1 - S / N} || {N, S} <- Points],
            {A, B} = plane(Rows),
            Law = fun(N) -> predicted(#{contention => A, coherence => B}, N) end,
            #{contention => A, coherence => B, peak => peak(A, B, Law),
              error => error_of(Law, 2, Points)};
        _ ->
            undefined
    end.

-doc "The speedup on N that a law gives.".
-spec predicted(Law, N :: number()) -> float()
    when Law :: #{serial := float(), _ => _}
              | #{contention := float(), coherence := float(), _ => _}.
predicted(#{serial := Serial}, N) -> 1 / (Serial + (1 - Serial) / N);
predicted(#{contention := A, coherence := B}, N) -> N / (1 + A * (N - 1) + B * N * (N - 1)).

several(Speedups) -> [Point || {N, S} = Point <- Speedups, N > 1, S > 0].

peak(A, B, Law) when B > 1.0e-12, A < 1 ->
    Peak = max(1.0, math:sqrt((1 - A) / B)),
    {Peak, Law(Peak)};
peak(A, _, _) when A >= 1 -> {1.0, 1.0};
peak(_, _, _) -> none.

error_of(_, Unknowns, Points) when length(Points) =< Unknowns ->
    undefined;
error_of(Law, _, Points) ->
    Squares = [math:pow(Law(N) / S - 1, 2) || {N, S} <- Points],
    math:sqrt(lists:sum(Squares) / length(Squares)).

%% y = a x, a not below 0.
line(Rows) ->
    case lists:sum([X * X || {X, _} <- Rows]) of
        Sum when Sum > 0 -> max(0.0, lists:sum([X * Y || {X, Y} <- Rows]) / Sum);
        _ -> 0.0
    end.

%% z = a x + b y, neither below 0. If the best fit has one below 0, the best allowed fit has a 0.
plane(Rows) ->
    Xx = lists:sum([X * X || {X, _, _} <- Rows]),
    Xy = lists:sum([X * Y || {X, Y, _} <- Rows]),
    Yy = lists:sum([Y * Y || {_, Y, _} <- Rows]),
    Xz = lists:sum([X * Z || {X, _, Z} <- Rows]),
    Yz = lists:sum([Y * Z || {_, Y, Z} <- Rows]),
    Whole = Xx * Yy - Xy * Xy,
    case Whole > 1.0e-12 * Xx * Yy of
        true ->
            A = (Xz * Yy - Yz * Xy) / Whole,
            B = (Yz * Xx - Xz * Xy) / Whole,
            case A >= 0 andalso B >= 0 of
                true -> {A, B};
                false -> better(Rows)
            end;
        false ->
            better(Rows)
    end.

better(Rows) ->
    A = line([{X, Z} || {X, _, Z} <- Rows]),
    B = line([{Y, Z} || {_, Y, Z} <- Rows]),
    case rest(Rows, A, 0.0) =< rest(Rows, 0.0, B) of
        true -> {A, 0.0};
        false -> {0.0, B}
    end.

rest(Rows, A, B) -> lists:sum([math:pow(Z - A * X - B * Y, 2) || {X, Y, Z} <- Rows]).

-doc """
The 95 % interval of a number that is computed from times, by resampling them (bootstrap). `Fun` may
return `none`, which counts as above all numbers. The same seed gives the same interval.
""".
-spec resampled(Draws :: pos_integer(), Seed :: integer(), [times()],
                fun(([times()]) -> float() | none)) ->
    {Low :: float() | none, High :: float() | none}.
resampled(Draws, Seed, Times, Fun) ->
    {Values, _} = lists:mapfoldl(
        fun(_, State) ->
            {Drawn, Next} = lists:mapfoldl(fun draw/2, State, Times),
            {Fun(Drawn), Next}
        end,
        rand:seed_s(exsss, Seed),
        lists:seq(1, Draws)
    ),
    %% Atoms come after numbers.
    Sorted = list_to_tuple(lists:sort(Values)),
    Cut = floor(Draws * 0.025),
    {element(Cut + 1, Sorted), element(Draws - Cut, Sorted)}.

draw({N, Values}, State) ->
    From = list_to_tuple(Values),
    {Drawn, Next} = lists:mapfoldl(
        fun(_, S0) ->
            {I, S1} = rand:uniform_s(tuple_size(From), S0),
            {element(I, From), S1}
        end,
        State,
        Values
    ),
    {{N, Drawn}, Next}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_tally).
-moduledoc """
The results of operations: of one process, of a node, or of all nodes, as tallies can be merged.

An operation counts when its unit was due in the measured time, whenever it ended; for `ops_per_s`
alone, when it ended in the measured time. Latencies are those of successful operations, as in
the original.
""".

-export([new/2, add/3, late/2, merge/1, metrics/2]).
-export_type([tally/0]).

-doc """
`cells`: by second and kind; `ended`: operations that ended in the measured time; `reasons`: why
operations failed; `late`: how late units began, in nanoseconds.
""".
-opaque tally() :: #{
    from := integer(),
    until := integer(),
    cells := #{{non_neg_integer(), sderl_debench_mix:kind()} => cell()},
    ended := #{sderl_debench_mix:kind() => pos_integer()},
    reasons := #{{sderl_debench_mix:kind(), term()} => pos_integer()},
    late := sderl_bench_histogram:histogram()
}.

%% From when an operation was due, and from when it began, both in ns.
-type cell() :: {Latency :: sderl_bench_histogram:histogram(),
                 Service :: sderl_bench_histogram:histogram(), Errors :: non_neg_integer()}.

%% How many reasons a tally tells apart; further ones are counted as `other`.
-define(REASONS, 20).
%% Reasons that metrics show.
-define(SHOWN, 5).

-define(SECOND, 1_000_000_000).

-doc "An empty tally for what is due from `From` on and before `Until`, in nanoseconds.".
-spec new(From :: integer(), Until :: integer()) -> tally().
new(From, Until) ->
    #{from => From, until => Until, cells => #{}, ended => #{}, reasons => #{},
      late => sderl_bench_histogram:new()}.

-doc "Adds the samples of a unit that was due at `Due`.".
-spec add(Due :: integer(), [sderl_debench_op:sample()], tally()) -> tally().
add(Due, Samples, Tally) ->
    lists:foldl(fun(Sample, T) -> add_one(Due, Sample, T) end, Tally, Samples).

add_one(Due, {Kind, _, _, End, Outcome} = Sample,
        #{from := From, until := Until, ended := Ended} = Tally) ->
    Tally1 =
        case Outcome =:= ok andalso End >= From andalso End < Until of
            true -> Tally#{ended := plus(Kind, 1, Ended)};
            false -> Tally
        end,
    case Due >= From andalso Due < Until of
        true -> counted((Due - From) div ?SECOND, Sample, Tally1);
        false -> Tally1
    end.

counted(Second, {Kind, Due, Begin, End, ok}, #{cells := Cells} = Tally) ->
    {Latency, Service, Errors} = maps:get({Second, Kind}, Cells, empty()),
    Cell = {sderl_bench_histogram:add(End - Due, Latency),
            sderl_bench_histogram:add(End - Begin, Service), Errors},
    Tally#{cells := Cells#{{Second, Kind} => Cell}};
counted(Second, {Kind, _, _, _, {error, Reason}}, #{cells := Cells, reasons := Reasons} = Tally) ->
    {Latency, Service, Errors} = maps:get({Second, Kind}, Cells, empty()),
    Tally#{
        cells := Cells#{{Second, Kind} => {Latency, Service, Errors + 1}},
        reasons := plus({Kind, told(Kind, Reason, Reasons)}, 1, Reasons)
    }.

empty() -> {sderl_bench_histogram:new(), sderl_bench_histogram:new(), 0}.

told(Kind, Reason, Reasons) ->
    case is_map_key({Kind, Reason}, Reasons) orelse map_size(Reasons) < ?REASONS of
        true -> Reason;
        false -> other
    end.

plus(Key, N, Counts) -> maps:update_with(Key, fun(Count) -> Count + N end, N, Counts).

-doc "How many nanoseconds after it was due a unit began.".
-spec late(integer(), tally()) -> tally().
late(Ns, #{late := Late} = Tally) -> Tally#{late := sderl_bench_histogram:add(Ns, Late)}.

-doc """
The merged content of at least one tally. Seconds count from the beginning of each, whatever its
clock.
""".
-spec merge([tally(), ...]) -> tally().
merge([First | _] = Tallies) ->
    Of = fun(Key, Join) ->
        lists:foldl(fun(#{Key := Map}, Sum) -> maps:merge_with(Join, Sum, Map) end, #{}, Tallies)
    end,
    Add = fun(_, A, B) -> A + B end,
    First#{
        cells := Of(cells, fun(_, A, B) -> both(A, B) end),
        ended := Of(ended, Add),
        reasons := Of(reasons, Add),
        late := sderl_bench_histogram:merge([Late || #{late := Late} <- Tallies])
    }.

both({L1, S1, E1}, {L2, S2, E2}) ->
    {sderl_bench_histogram:merge([L1, L2]), sderl_bench_histogram:merge([S1, S2]), E1 + E2}.

-doc "The metrics that `m:sderl_debench` lists, as far as they come from operations.".
-spec metrics(tally(), Seconds :: number()) -> #{atom() => term()}.
metrics(#{cells := Cells, ended := Ended, late := Late} = Tally, Seconds) ->
    ByKind = by(fun({_, Kind}) -> Kind end, Cells),
    Kind = fun(K) -> one(maps:get(K, ByKind, empty()), maps:get(K, Ended, 0), Seconds) end,
    Class = fun(C) ->
        Members = [K || K <- sderl_debench_mix:kinds(), sderl_debench_mix:class(K) =:= C],
        Cell = lists:foldl(fun both/2, empty(), [maps:get(K, ByKind, empty()) || K <- Members]),
        one(Cell, lists:sum([maps:get(K, Ended, 0) || K <- Members]), Seconds)
    end,
    {Latency, _, Errors} = maps:fold(fun(_, Cell, Sum) -> both(Cell, Sum) end, empty(), ByKind),
    Ops = sderl_bench_histogram:total(Latency),
    #{
        kinds => #{K => Kind(K) || K <- sderl_debench_mix:kinds()},
        p2p => Class(p2p),
        global => Class(global),
        local => Class(local),
        ops => Ops,
        ops_per_s => lists:sum(maps:values(Ended)) / Seconds,
        offered_per_s => (Ops + Errors) / Seconds,
        completed_pct => if Ops + Errors > 0 -> 100 * Ops / (Ops + Errors); true -> undefined end,
        global_done_pct => done_pct(Kind(global_register), Kind(global_unregister)),
        errors => Errors,
        error_reasons => reasons(Tally),
        late_us => us(Late),
        timeline => timeline(Cells, Seconds)
    }.

done_pct(#{ops := Ops, errors := Errors}, _) when Ops + Errors =:= 0 -> undefined;
done_pct(#{ops := Registered, errors := Errors}, #{ops := Unregistered}) ->
    100 * (Registered + Unregistered) / (2 * (Registered + Errors)).

one({Latency, Service, Errors}, Ended, Seconds) ->
    #{
        ops => sderl_bench_histogram:total(Latency),
        ops_per_s => Ended / Seconds,
        latency_us => us(Latency),
        service_us => us(Service),
        errors => Errors
    }.

us(Histogram) -> #{p50 => us(50, Histogram), p95 => us(95, Histogram), p99 => us(99, Histogram)}.

us(Percent, Histogram) ->
    case sderl_bench_histogram:percentile(Percent, Histogram) of
        undefined -> undefined;
        Ns -> Ns / 1000
    end.

%% The cells that have the same key.
by(Key, Cells) ->
    maps:fold(fun(At, Cell, Sum) ->
        maps:update_with(Key(At), fun(C) -> both(C, Cell) end, Cell, Sum)
    end, #{}, Cells).

timeline(Cells, Seconds) ->
    OfKinds = fun(Second) ->
        #{Kind => point(Cell) || {At, Kind} := Cell <- Cells, At =:= Second}
    end,
    ByClass = by(fun({Second, Kind}) -> {Second, sderl_debench_mix:class(Kind)} end, Cells),
    [
        maps:merge(#{t_s => Second, kinds => OfKinds(Second)}, #{
            Class => point(maps:get({Second, Class}, ByClass, empty()))
         || Class <- [p2p, global, local]
        })
     || Second <- lists:seq(0, ceil(Seconds) - 1)
    ].

point({Latency, _, Errors}) ->
    #{
        ops => sderl_bench_histogram:total(Latency),
        p50_us => us(50, Latency),
        p95_us => us(95, Latency),
        errors => Errors
    }.

%% The most frequent ones.
reasons(#{reasons := Reasons}) ->
    Most = lists:sort(fun({_, A}, {_, B}) -> A >= B end, maps:to_list(Reasons)),
    [
        unicode:characters_to_binary(io_lib:format("~ts: ~0tp (~w)", [Kind, Reason, Count],
                                                   [{chars_limit, 200}]))
     || {{Kind, Reason}, Count} <- lists:sublist(Most, ?SHOWN)
    ].

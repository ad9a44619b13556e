%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_load).
-moduledoc """
The common part of the claims about DE-Bench (C1 to C3): their points, which they share, the points
that can be judged, and the notes.

A point is one division of the machine's nodes into clusters, under the same open load on each node:
see `m:sderl_reproduce_scale`.
""".

-export([point/4, ends/1, middle/1, top_share/1]).
-export([groups/3, shares/2, base_share/2, judged/1, growth/2, grew/1, times/1, scaled_limit/2]).
-export([p/2, latency_plots/2, plot/4, table/2, axis/2, axis/3, notes/2, mode_name/1, percent/1]).
-export_type([growth/0, mode/0, sized/0]).

-import(sderl_claim_points, [chosen/3, value/2, sum/2, series/3, scaled/2, cell/2, text/1, text/2]).

-type mode() :: stock | sd | pg.

-doc "The points of one mode and share, by the size of the cluster.".
-type sized() :: [{Nodes :: pos_integer(), sderl_claim_points:group()}].

-doc "How a metric grows from the smallest cluster to the largest.".
-type growth() ::
    #{from := pos_integer(), to := pos_integer(), low := number(), high := number(),
      ratio := float(), range := float()}.

%% Above this utilisation of the processor, in percent, latencies are those of an overloaded
%% machine.
-define(CPU_PCT, 40).
%% Fewer operations are too few for a median to be compared.
-define(LEAST_OPS, 300).
%% Latencies are those of operations that succeeded; they say little if fewer than this did, in
%% percent.
-define(DONE_PCT, 95).

%% As in the scripts of DE-Bench.
-define(PAYLOAD, 10).
-define(COMPUTE_US, 1).
-define(TIMEOUT_S, 10).

%% ---------------------------------------------------------------- what to measure

-doc "`Size` nodes to a cluster, and so many clusters as the scale has nodes for, at least one.".
-spec point(sderl_reproduce_scale:scale(), mode(), Size :: pos_integer(), Pct :: number()) ->
    sderl_claim:point().
point(#{nodes := Nodes, warmup_s := WarmupS} = Scale, Mode, Size, Pct) ->
    Rate = rate(Scale, Pct),
    Clusters = max(1, Nodes div Size),
    Seconds = seconds(Scale, Clusters * Size, Pct),
    Params = #{
        mode => Mode, nodes => Size, clusters => Clusters, global_pct => Pct, load => {open, Rate},
        seconds => Seconds, warmup_s => WarmupS, payload => ?PAYLOAD, compute_us => ?COMPUTE_US,
        timeout_ms => 1000 * ?TIMEOUT_S
    },
    #{
        workload => debench,
        params => in_groups(Mode, Scale, Params),
        fixed_s => Seconds + WarmupS,
        work_s => start_s(Mode, Scale, Clusters, Size) + drain_s(Mode, Scale, Size, Pct)
    }.

in_groups(sd, #{group_size := Size}, Params) -> Params#{group_size => Size, p2p => group};
in_groups(_, _, Params) -> Params.

rate(#{rate := Rate, rates := Rates}, Pct) -> maps:get(Pct, Rates, Rate).

%% Arrivals are random: 30 % more than needed, so that there are enough nearly always.
seconds(#{least_ops := Ops, least_s := Least} = Scale, Nodes, Pct) ->
    max(Least, ceil(1.3 * Ops / (rate(Scale, Pct) * Nodes * Pct / 100))).

%% Seconds to start, link and stop the nodes on two cores: 200 nodes in one mesh took 34.
start_s(Mode, #{group_size := Group}, Clusters, Size) ->
    Meshed = case Mode of sd -> min(Group, Size); _ -> Size end,
    2 + 0.1 * Clusters * Size + 0.00035 * Clusters * Size * (Meshed - 1).

%% Operations that a large cluster cannot keep up with end late, or time out.
drain_s(stock, #{base_pct := Base, sizes := Sizes}, Size, Pct) when Pct > Base ->
    ?TIMEOUT_S * Size / lists:max(Sizes);
drain_s(_, _, _, _) -> 0.

-doc "The smallest and the largest cluster, which are compared.".
-spec ends(sderl_reproduce_scale:scale()) -> [pos_integer()].
ends(#{sizes := Sizes}) -> lists:uniq([lists:min(Sizes), lists:max(Sizes)]).

-doc "The others, the larger first.".
-spec middle(sderl_reproduce_scale:scale()) -> [pos_integer()].
middle(#{sizes := Sizes} = Scale) -> lists:reverse(lists:sort(Sizes -- ends(Scale))).

-doc "The largest share of global operations.".
-spec top_share(sderl_reproduce_scale:scale()) -> number().
top_share(#{shares := Shares}) -> lists:max(Shares).

%% ---------------------------------------------------------------- what was measured

-doc "The points of one mode and share.".
-spec groups([sderl_claim_points:measured()], mode(), Pct :: number()) -> sized().
groups(Points, Mode, Pct) -> chosen(Points, debench, #{mode => Mode, global_pct => Pct}).

-doc """
The shares of global operations that were measured in any of these modes, the smallest first.
""".
-spec shares([sderl_claim_points:measured()], [mode()]) -> [number()].
shares(Points, Modes) ->
    lists:usort([
        Pct
     || Mode <- Modes,
        {_, #{params := #{<<"global_pct">> := Pct}}} <- chosen(Points, debench, #{mode => Mode}),
        is_number(Pct)
    ]).

-doc """
The share with the most points that can be judged in these modes, the smaller of two; `none` without
points.
""".
-spec base_share([sderl_claim_points:measured()], [mode()]) -> {ok, number()} | none.
base_share(Points, Modes) ->
    Ranked = [
        {-lists:sum([length(judged(groups(Points, Mode, Pct))) || Mode <- Modes]), Pct}
     || Pct <- shares(Points, Modes)
    ],
    case lists:sort(Ranked) of
        [] -> none;
        [{_, Pct} | _] -> {ok, Pct}
    end.

-doc """
The points that a verdict may rest on: the processor was not overloaded, there were enough
operations, and nearly all of them succeeded.
""".
-spec judged(sized()) -> sized().
judged(Groups) ->
    [
        Sized
     || {_, Group} = Sized <- Groups,
        Cpu <- [value(Group, [cpu_pct])],
        is_number(Cpu), Cpu =< ?CPU_PCT, global_ops(Group) >= ?LEAST_OPS,
        done(value(Group, [global_done_pct]))
    ].

done(Pct) -> is_number(Pct) andalso Pct >= ?DONE_PCT.

%% The operations that ended, in all runs of a point.
global_ops(Group) -> sum(Group, [global, ops]).

-doc "From the smallest to the largest of these clusters; `unknown` where there are not two.".
-spec growth(sized(), sderl_claim_points:what()) -> growth() | unknown.
growth(Groups, What) ->
    case [{N, V} || {N, Group} <- Groups, V <- [value(Group, What)], is_number(V), V > 0] of
        [{From, Low} | [_ | _] = More] ->
            {To, High} = lists:last(More),
            #{from => From, to => To, low => Low, high => High, ratio => High / Low,
              range => To / From};
        _ ->
            unknown
    end.

-doc "A growth of milliseconds in words.".
-spec grew(growth()) -> unicode:chardata().
grew(#{low := Low, high := High} = Growth) -> [times(Growth), " (", ms(Low), " to ", ms(High), ")"].

-doc "The ratio alone.".
-spec times(growth() | unknown) -> unicode:chardata().
times(#{ratio := Ratio}) -> [sderl_table:number(Ratio), " times"];
times(unknown) -> "not known".

-doc """
The growth over another range of sizes that corresponds to `Factor` from 10 to 100 nodes: the same
power of the size. `infinity` over less than a fourfold range, where nothing is judged.
""".
-spec scaled_limit(Factor :: number(), Range :: number()) -> float() | infinity.
scaled_limit(_Factor, Range) when Range < 4 -> infinity;
scaled_limit(Factor, Range) -> math:pow(Factor, math:log10(Range)).

%% ---------------------------------------------------------------- pages

-doc "The median latency, or another percentile, of a class of operations in ms.".
-spec p(Class :: p2p | global | local, p50 | p95) -> sderl_claim_points:what().
p(Class, Percentile) -> scaled([Class, latency_us, Percentile], 0.001).

-doc "p50 and p95 of global operations over the size of the cluster.".
-spec latency_plots(Title :: unicode:chardata(), [{Name :: unicode:chardata(), sized()}]) ->
    [sderl_claim:plot()].
latency_plots(Title, Named) ->
    [
        plot([Title, ", ", atom_to_list(P)], axis("latency", "ms", log), Named, p(global, P))
     || P <- [p50, p95]
    ].

-doc "One line for each of the named groups.".
-spec plot(Title :: unicode:chardata(), sderl_claim:axis(), [{unicode:chardata(), sized()}],
           sderl_claim_points:what()) ->
    sderl_claim:plot().
plot(Title, Y, Named, What) ->
    #{
        title => text(Title),
        x => axis("nodes in the cluster", "", log),
        y => Y,
        series => [Series
                   || {Name, Groups} <- Named,
                      #{points := [_ | _]} = Series <- [series(Name, Groups, What)]]
    }.

-doc "A linear axis from 0.".
-spec axis(unicode:chardata(), unicode:chardata()) -> sderl_claim:axis().
axis(Label, Unit) -> (axis(Label, Unit, linear))#{zero => true}.

-doc "An axis.".
-spec axis(unicode:chardata(), unicode:chardata(), linear | log) -> sderl_claim:axis().
axis(Label, Unit, Scale) -> #{label => text(Label), unit => text(Unit), scale => Scale}.

-doc "A table with a row for each point.".
-spec table(Title :: unicode:chardata(), [{mode(), Pct :: number(), sized()}]) ->
    sderl_claim:table().
table(Title, Named) ->
    #{
        title => text(Title),
        header => [
            <<"cluster">>, <<"clusters">>, <<"nodes in each">>, <<"share, %">>, <<"runs">>,
            <<"global operations">>, <<"of them done, %">>, <<"p50, ms">>, <<"p95, ms">>,
            <<"all operations, /s">>, <<"errors">>, <<"processor, %">>,
            <<"CPU µs per operation"/utf8>>,
            <<"messages per operation">>, <<"bytes per operation">>, <<"links per node">>
        ],
        rows => [
            [
                text(mode_name(Mode)), text("~w", [maps:get(<<"clusters">>, Params, 1)]),
                text("~w", [N]), percent(Pct),
                text("~w", [length(Runs)]), text("~w", [global_ops(Group)]),
                cell(Group, [global_done_pct]), cell(Group, p(global, p50)),
                cell(Group, p(global, p95)),
                cell(Group, [offered_per_s]), text("~w", [sum(Group, [errors])]),
                cell(Group, [cpu_pct]),
                cell(Group, [cpu_us_per_op]), cell(Group, [messages_per_op]),
                cell(Group, [bytes_per_op]), cell(Group, [links_per_node_max])
            ]
         || {Mode, Pct, Groups} <- Named, {N, #{params := Params, runs := Runs} = Group} <- Groups
        ]
    }.

-doc "What a mode is called.".
-spec mode_name(mode()) -> unicode:chardata().
mode_name(stock) -> "stock Erlang (global)";
mode_name(sd) -> "s_groups";
mode_name(pg) -> "stock Erlang (pg, no unique names)".

-doc "A share of operations.".
-spec percent(number()) -> binary().
percent(Pct) -> text("~w", [case Pct == trunc(Pct) of true -> trunc(Pct); false -> Pct end]).

ms(Ms) when Ms < 0.1 -> [sderl_table:number(1000 * Ms), " µs"];
ms(Ms) -> [sderl_table:number(Ms), " ms"].

-doc """
The notes for the reader on the points of a page, with the rule about the processor and the
measurements: whether the verdict rests on all points or on the judged ones.
""".
-spec notes([sized()], all | judged) -> [binary()].
notes(Shown, Which) ->
    [
        <<"One machine instead of a host for each node. The points have the same number of virtual "
          "machines (but for a cluster that is larger than that) with the same "
          "open load on each; only the number of clusters they are divided into differs. So the "
          "processor is as busy with many small clusters as with a large one, except for "
          "the cost of the cluster's size, which is what is measured.">>,
        <<"There is no delay of a network, so latencies are smaller than the published ones, and "
          "the throughput of the whole is bounded by the "
          "processor, so it is not compared. What a global operation has to do, and which nodes it "
          "must wait for, is the same as on a real cluster: "
          "in stock Erlang a lock and an answer of every node, in an s_group of the group's nodes. "
          "That makes the shape of the curves.">>,
        <<"Latencies are counted from the moment an operation was due, not from when it was sent, "
          "so those that had to wait count in full.">>,
        processor(Which, lists:append(Shown))
        | [judged_words(lists:append(Shown)) || Which =:= judged]
    ].

processor(Which, Groups) ->
    Used = case Which of all -> Groups; judged -> judged(Groups) end,
    case [{Cpu, N} || {N, Group} <- Used, Cpu <- [value(Group, [cpu_pct])], is_number(Cpu)] of
        [] ->
            <<"How much of the processor was used is not known.">>;
        Seen ->
            {Cpu, N} = lists:max(Seen),
            text("The points that the verdict rests on used at most ~ts % of the processor (with "
                 "~w nodes).", [sderl_table:number(Cpu), N])
    end.

judged_words(Groups) ->
    Dropped = [io_lib:format("~ts, ~w nodes", [Mode, N])
               || {N, #{params := #{<<"mode">> := Mode}}} <- Groups -- judged(Groups)],
    text("A point is judged if at least ~w global operations (register, unregister) stand behind "
         "it, at least ~w % of those asked for were done, and the nodes used at most ~w % of the "
         "processor; others are only shown~ts.",
         [?LEAST_OPS, ?DONE_PCT, ?CPU_PCT, case Dropped of
             [] -> " (there are none here)";
             _ -> [": ", lists:join("; ", Dropped)]
         end]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c12).
-moduledoc "Claim C12: monitoring costs next to nothing.".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [text/1, text/2]).

%% Published, in percent of the run time: 1.33 in the paper, 1.5 in the report.
-define(MOST_PCT, 1.5).
%% Fewer pairs of runs say nothing.
-define(LEAST_PAIRS, 5).

%% The programs that run under monitoring, and the metric of their processor time per operation
%% while there is monitoring.
-define(PROGRAMS, [
    {aco, "Ant colonies (SR)", <<"nodes">>, "nodes", <<"cpu_us_per_op_in_rounds">>},
    {im, "Messenger (RSD)", <<"servers">>, "servers", <<"cpu_us_per_op">>}
]).

-type pair() :: {Off :: #{binary() => term()}, On :: #{binary() => term()}}.

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C12">>,
        title => <<"What monitoring costs">>,
        question => <<"How much more does a run cost when all nodes are monitored?">>,
        claim =>
            <<"Monitoring by the tool of the published work takes at most 1.33 % of the run time "
              "of the ant colonies (Chechina et al. 2017, Fig. 18 and 19; 1.5 % in the report of "
              "the RELEASE project)">>,
        share => 10
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{pairs := Pairs} = Scale) ->
    %% Where there is no time for several of them, the pairs of one program are enough for none.
    [sderl_claim_aco:long(Scale, sr, Asked) || Asked <- [#{}, #{monitoring => on}]] ++
        [sderl_claim_im:watched(Scale, rsd, Asked)
         || Pairs > 1, Asked <- [#{}, #{monitoring => on}]].

-doc """
By the processor time of an operation while there is monitoring, a schedule in the rounds or a
delivered message in the measured time, in pairs of runs without and with it that follow one
another. `confirmed`: of each program there are five pairs or more, the 95 % interval of the mean
overhead is at most 1.5 %, and no run failed. `refuted`: for one of them all of the interval is
above. Where the spread of the pairs is so large that the interval has the limit in it, neither can
be told.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(judge(Points), [Failure
                                             || {Workload, _, _, _, _} <- ?PROGRAMS,
                                                Failure <- failed(Points, Workload)]).

judge(Points) ->
    Of = [{What, overhead(Pairs, Cpu)} || {What, Cpu, Pairs} <- programs(Points)],
    Said = lists:join(" ", [said(What, Overhead) || {What, Overhead} <- Of]),
    Known = [Overhead || {_, #{pairs := N} = Overhead} <- Of, N >= ?LEAST_PAIRS],
    Limit = text("The limit is ~w %.", [?MOST_PCT]),
    case {[ok || #{low := Low} <- Known, Low > ?MOST_PCT],
          [ok || #{high := High} <- Known, High > ?MOST_PCT]} of
        _ when Said =:= [] ->
            {not_shown, <<"No program was measured with monitoring and without.">>};
        {[_ | _], _} -> {refuted, text("~ts ~ts", [Said, Limit])};
        {[], [_ | _]} ->
            {not_shown,
             text("~ts ~ts The spread of the pairs is too large to decide.", [Said, Limit])};
        {[], []} when length(Known) < 2 ->
            {not_shown,
             text("~ts For a verdict both programs need ~w pairs of runs.", [Said, ?LEAST_PAIRS])};
        {[], []} -> {confirmed, text("~ts ~ts", [Said, Limit])}
    end.

said(What,
     #{pairs := N, mean := Mean, low := Low, high := High, least := Least, greatest := Greatest}) ->
    Interval = case N >= ?LEAST_PAIRS of
        true -> text("~ts to ~ts %, ", [number(Low), number(High)]);
        false -> ""
    end,
    text("~ts: with it the processor time of an operation changes by ~ts % (~ts~w pair~ts of runs "
         "from ~ts to ~ts %).",
         [What, number(Mean), Interval, N, [$s || N > 1], number(Least), number(Greatest)]);
said(What, none) ->
    text("~ts: not known.", [What]).

number(Value) -> sderl_table:number(Value).

-spec programs([sderl_claim_points:measured()]) -> [{binary(), Cpu :: binary(), [pair()]}].
programs(Points) ->
    [
        {text("~ts on ~w ~ts", [What, maps:get(Key, Params, 0), Unit]), Cpu, Pairs}
     || {Workload, What, Key, Unit, Cpu} <- ?PROGRAMS,
        {Params, Pairs} <- sderl_claim_points:pairs(Points, Workload, {monitoring, off, on})
    ].

%% Runs of pairs that could not be measured.
failed(Points, Workload) ->
    Other = fun(#{params := Params}) -> maps:remove(<<"monitoring">>, Params) end,
    Watched = sderl_claim_points:failed(Points, Workload, #{monitoring => on}),
    Paired =
        [Params
         || {Params, _} <- sderl_claim_points:pairs(Points, Workload, {monitoring, off, on})] ++
            [Other(Failure) || Failure <- Watched],
    Watched ++ [Failure
                || Failure <- sderl_claim_points:failed(Points, Workload, #{monitoring => off}),
                   lists:member(Other(Failure), Paired)].

%% In percent, with the interval in which the mean is with a probability of 95 %.
overhead(Pairs, Key) ->
    Ratios = [100 * (On / Off - 1)
              || {#{Key := Off}, #{Key := On}} <- Pairs, is_number(Off), is_number(On), Off > 0],
    case length(Ratios) of
        0 -> none;
        N ->
            {Mean, Half} = sderl_bench_series:interval(Ratios),
            #{pairs => N, mean => Mean, low => Mean - Half, high => Mean + Half,
              least => lists:min(Ratios), greatest => lists:max(Ratios), all => Ratios}
    end.

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Programs = programs(Points),
    #{
        plots => [
            #{
                title => <<"Overhead of each pair of runs, processor time of an operation">>,
                x => axis("pair of runs", "", linear), y => axis("overhead", "%"),
                marks => [#{y => ?MOST_PCT, text => text("~w %", [?MOST_PCT])}],
                series => [
                    #{name => What,
                      points => [#{x => I, y => R, low => R, high => R}
                                 || {I, R} <- lists:enumerate(maps:get(all, Overhead))]}
                 || {What, Cpu, Pairs} <- Programs, #{} = Overhead <- [overhead(Pairs, Cpu)]
                ]
            }
        ],
        tables => [
            #{
                title => <<"Without monitoring and with it, in the order of the runs">>,
                header => [<<"program">>, <<"pairs">>, <<"without: CPU µs per operation"/utf8>>,
                           <<"with">>, <<"overhead, %">>, <<"95 % interval">>,
                           <<"without: time, s">>, <<"with">>, <<"time, %">>],
                rows => [
                    [
                        What, text("~w", [length(Pairs)]), spread(Pairs, 1, Cpu),
                        spread(Pairs, 2, Cpu), mean(overhead(Pairs, Cpu)),
                        interval(overhead(Pairs, Cpu)), spread(Pairs, 1, <<"seconds">>),
                        spread(Pairs, 2, <<"seconds">>), mean(overhead(Pairs, <<"seconds">>))
                    ]
                 || {What, Cpu, Pairs} <- Programs
                ]
            }
        ],
        notes => [
            <<"With monitoring a shadow network of one hidden node beside the others watches all "
              "of them with its default settings: a probe on each node tells its links, "
              "processors, processes, memory, names and events "
              "each second. The work of the monitoring node is not in these numbers; its "
              "links are counted as links of the nodes.">>,
            <<"That is not the tool of the published work, which traces every message between "
              "nodes; this one counts them. Monitoring while nodes are being started, which was "
              "published too, is not measured here.">>,
            <<"The two runs of a pair have the same seed and follow one another, the one without "
              "monitoring first in every other pair. What is compared is from when there is "
              "monitoring until it ends: the global iterations of "
              "the ant colonies, the measured time of the messenger. Processor time is compared "
              "because on one machine run time is bounded by it, and because in the messenger time "
              "is what the clients take.">>
        ]
    }.

spread(Pairs, Side, Key) ->
    text(sderl_table:spread([V || Pair <- Pairs, #{Key := V} <- [element(Side, Pair)]])).

mean(#{mean := Mean}) -> text(number(Mean));
mean(none) -> <<"-">>.

interval(#{pairs := N, low := Low, high := High}) when N >= ?LEAST_PAIRS ->
    text("~ts to ~ts", [number(Low), number(High)]);
interval(_) -> <<"-">>.

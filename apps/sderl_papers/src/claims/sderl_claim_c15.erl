%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c15).
-moduledoc """
Claim C15: balancing the utilisation of schedulers makes them more evenly busy than compaction of
load, and latencies lower.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2]).
-import(sderl_claim_points, [spread/2, cell/2, text/1, text/2]).
-import(sderl_claim_vm, [ratio/2, said/2]).

-define(MODES, [{compaction, "compaction, +scl true"}, {balancing, "balancing, +sub true"}]).
%% Ratios of latencies; between them there is no difference.
-define(LOWER, 0.95).
-define(HIGHER, 1.05).
%% Utilisation in percent: schedulers that are busier than this cannot be balanced.
-define(FULL, 85).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C15">>,
        title => <<"Balanced schedulers">>,
        question =>
            <<"Are schedulers more evenly busy, and operations faster, when their utilisation is "
              "balanced?">>,
        claim =>
            <<"Balancing the utilisation of schedulers (`+sub true`), in place of compaction of "
              "load, makes schedulers more even and latencies lower (report of the RELEASE "
              "project, VI.ii)">>,
        share => 8
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{vm := #{cores := Cores, schedulers := Schedulers}, balance := #{seconds := Seconds,
                                                                         loads := Loads}}) ->
    [#{workload => balance,
       params => #{cores => Cores, schedulers => lists:max(Schedulers), load_pct => Load,
                   seconds => Seconds},
       fixed_s => 2 * (Seconds + 1), work_s => 2}
     || Load <- Loads].

-doc """
By the load that is asked for first, on 4 schedulers or more. `confirmed`: in every run with
balancing the utilisations of the most and the least used scheduler are nearer together, and the
99th percentile of latencies is 0.95 times the one with compaction or less; and no run failed.
`refuted`: in all of several runs they are farther apart, or the percentile is over 1.05 times the
other one. If the mean utilisation is over 85 % in any run, nothing is judged.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(judge(groups(Points)),
                             sderl_claim_points:failed(Points, balance, #{})).

groups(Points) -> sderl_claim_points:grouped(Points, balance, #{}).

judge([]) ->
    {not_shown, <<"Nothing was measured.">>};
judge([#{runs := Runs, params := Params} = Group | _]) ->
    N = number_of(<<"schedulers">>, Params),
    [Even, Late] = [spread(Group, against(Key)) || Key <- [spread, p99]],
    Said = text("At a load of ~w % of ~w schedulers the utilisations of the most and the least "
                "used one are ~ts points apart with compaction and ~ts with balancing; the 99th "
                "percentile of latencies is ~ts with compaction and ~ts with balancing (the median "
                "~ts and ~ts).",
                [number_of(<<"load_pct">>, Params), N
                 | [said(spread(Group, value(Mode, Key)), Unit)
                    || {Key, Unit} <- [{spread, ""}, {p99, " ms"}, {p50, " ms"}],
                       {Mode, _} <- ?MODES]]),
    Range = sderl_claim_vm:range(),
    Several = length(Runs) > 1,
    Busy = lists:max([0 | [Most || {Mode, _} <- ?MODES,
                                   {_, _, Most} <- [spread(Group, mean(Mode))]]]),
    case {Even, Late} of
        _ when N < Range -> {not_shown, text("~ts The range is too small to judge by.", [Said])};
        _ when Busy > ?FULL ->
            {not_shown, text("~ts The schedulers hardly rested: other programs took the machine, "
                             "so nothing is judged.", [Said])};
        {{_, Least, Most}, {_, Low, High}} ->
            if
                Several, Least > 1 -> {refuted, text("~ts They are not more even.", [Said])};
                Several, Low > ?HIGHER -> {refuted, text("~ts Latencies are higher.", [Said])};
                Most < 1, High =< ?LOWER -> {confirmed, Said};
                true ->
                    {not_shown, text("~ts For a verdict one has to be more even in all runs, and "
                                     "~w % apart in latency.", [Said, round(100 * (1 - ?LOWER))])}
            end;
        _ ->
            {not_shown, text("~ts Some of it is not known.", [Said])}
    end.

number_of(Key, Params) ->
    case Params of
        #{Key := Number} when is_number(Number) -> Number;
        _ -> 0
    end.

%% Latencies in ms.
value(Mode, Key) when Key =:= spread; Key =:= ops -> [Mode, Key];
value(Mode, Key) -> sderl_claim_points:scaled([Mode, Key], 0.001).

%% Of the same run.
against(Key) -> ratio(at(balancing, Key), at(compaction, Key)).

at(Mode, Key) ->
    {Of, What} = {atom_to_binary(Mode), atom_to_binary(Key)},
    fun(#{Of := #{What := Value}}) when is_number(Value) -> Value;
       (_) -> undefined
    end.

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Groups = groups(Points),
    Loads = lists:sort([{number_of(<<"load_pct">>, Params), Group}
                        || #{params := Params} = Group <- Groups]),
    Plot = fun(Title, Y, Key) ->
        #{title => Title, x => (axis("load", "%"))#{zero => true}, y => Y,
          series => [sderl_claim_points:series(text(atom_to_list(Mode)), Loads, value(Mode, Key))
                     || {Mode, _} <- ?MODES]}
    end,
    #{
        plots => [
            #{title => text("Utilisation of each scheduler at a load of ~w %", [Load]),
              x => axis("schedulers, the most used first", ""),
              y => axis("utilisation", "%"),
              series => [schedulers(Mode, Group) || {Mode, _} <- ?MODES]}
         || {Load, Group} <- Loads
        ] ++ [Plot(<<"From the least to the most used scheduler">>, axis("apart", "points"),
                   spread),
              Plot(<<"Latency, median">>, axis("p50", "ms"), p50),
              Plot(<<"Latency, 99th percentile">>, axis("p99", "ms"), p99)],
        tables => [
            #{title => <<"All points">>,
              header => [<<"">>, <<"load, %">>, <<"schedulers">>, <<"runs">>, <<"apart, points">>,
                         <<"p50, ms">>, <<"p95, ms">>, <<"p99, ms">>, <<"operations">>],
              rows => [[text(Name), text("~w", [Load]),
                        text("~w", [number_of(<<"schedulers">>, Params)]),
                        text("~w", [length(Runs)])
                        | [cell(Group, value(Mode, Key)) || Key <- [spread, p50, p95, p99, ops]]]
                       || {Load, #{runs := Runs, params := Params} = Group} <- Loads,
                          {Mode, Name} <- ?MODES]}
        ],
        notes => [
            <<"Two nodes, one after the other, have the same operations at the same times: 16 "
              "processes for each scheduler, and the same work for each operation. The load is "
              "the part of all schedulers' time that this work takes on an idle machine.">>,
            <<"A latency counts from when the operation was due; timers go by whole milliseconds "
              "in both.">>
        ]
    }.

%% Schedulers are ranked in each run: the busiest is another one from run to run.
schedulers(Mode, #{runs := Runs} = Group) ->
    Count = lists:max([0 | [length(busy(Mode, Run)) || Run <- Runs]]),
    #{name => text(atom_to_list(Mode)),
      points => [#{x => I, y => Y, low => Low, high => High}
                 || I <- lists:seq(1, Count),
                    {Y, Low, High} <- [spread(Group, fun(Run) -> nth(I, busy(Mode, Run)) end)]]}.

mean(Mode) ->
    fun(Run) ->
        case busy(Mode, Run) of
            [] -> undefined;
            Busy -> lists:sum(Busy) / length(Busy)
        end
    end.

busy(Mode, Run) ->
    Of = atom_to_binary(Mode),
    case Run of
        #{Of := #{<<"busy">> := Busy}} when is_list(Busy) -> lists:reverse(lists:sort(Busy));
        _ -> []
    end.

nth(I, Busy) when I =< length(Busy) -> lists:nth(I, Busy);
nth(_, _) -> undefined.

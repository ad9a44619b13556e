%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c14).
-moduledoc """
Claim C14: `now/0` is a bottleneck for all schedulers, the time API of today is not, and a timeout
in a `receive` costs little.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [cell/2, text/2]).
-import(sderl_claim_vm, [time/3, speedup/2, speedup/3, ratio/2, each/2, spread/2, said/2]).

-define(PROGRAMS, <<"parallel,parallel_monotonic,timer_wheel,clocks">>).
%% Times the speedup with now/0.
-define(BETTER, 1.5).
%% In percent: up to the one a timeout costs little; the other is what it was published to have
%% cost before.
-define(LITTLE, 20).
-define(BEFORE, 62).
%% Reading must be faster by the number of schedulers divided by this.
-define(PART, 4).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C14">>,
        title => <<"Time and timers">>,
        question =>
            <<"Does reading the time, or a timeout in a receive, hold programs up on several "
              "schedulers?">>,
        claim =>
            <<"A program that calls `now/0` does not scale, and one that calls the new time API "
              "does; reading the time is 69 times as fast on 16 schedulers; a timeout in a receive "
              "costs 5 % in place of 62 % (report of the RELEASE project, Fig. 7 and 20)">>,
        share => 10
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{vm := #{size := Size}} = Scale) ->
    [sderl_claim_vm:point(Scale, #{bench => vm, program => ?PROGRAMS, size => Size}, 4)].

-doc """
On the most schedulers, 4 or more. `confirmed`: in every run the speedup of `parallel` with
`monotonic_time/0` is 1.5 times that with `now/0` or more, reading the time by it is as many times
as fast as a quarter of the schedulers, and a timeout in a `receive` costs at most 20 %; and no run
failed. `refuted`: in all of several runs it is not faster, it does not scale better, or a timeout
costs over 62 %.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(judge(group(Points)), sderl_claim_points:failed(Points, vm, wanted())).

wanted() -> #{bench => vm, program => ?PROGRAMS}.

group(Points) -> sderl_claim_vm:group(Points, wanted()).

judge(none) ->
    {not_shown, <<"Nothing was measured.">>};
judge(#{runs := Runs} = Group) ->
    N = sderl_claim_vm:most(Group),
    [Scale, Reading, Timeout] = [spread(Group, What) || What <- [scaling(N), reading(N),
                                                                 timeout(N)]],
    Said = text("On ~w schedulers `parallel` is ~ts times as fast as on 1 with `now/0` and ~ts "
                "times with `monotonic_time/0`. Reading the time by the latter is ~ts times as "
                "fast there. A timeout in a `receive` costs ~ts there, and ~ts on 1 scheduler.",
                [N, said(spread(Group, speedup(<<"parallel">>, N)), ""),
                 said(spread(Group, speedup(<<"parallel_monotonic">>, N)), ""),
                 said(Reading, ""), said(Timeout, " %"), said(spread(Group, timeout(1)), " %")]),
    Range = sderl_claim_vm:range(),
    case {Scale, Reading, Timeout} of
        {{_, _, _}, {_, _, _}, {_, _, _}} when N < Range ->
            {not_shown, text("~ts The range is too small to judge by.", [Said])};
        {{_, S, SMost}, {_, R, RMost}, {_, TLeast, T}} ->
            Several = length(Runs) > 1,
            if
                Several, SMost < 1 ->
                    {refuted, text("~ts The new API scales no better.", [Said])};
                Several, RMost < 1 -> {refuted, text("~ts Reading is not faster.", [Said])};
                Several, TLeast > ?BEFORE ->
                    {refuted, text("~ts A timeout costs as much as before.", [Said])};
                S >= ?BETTER, R >= N / ?PART, T =< ?LITTLE -> {confirmed, Said};
                true ->
                    {not_shown, text("~ts For a verdict the new API is to scale ~w times as well, "
                                     "to be ~ts times as fast, and a timeout to cost up to ~w %.",
                                     [Said, ?BETTER, sderl_table:number(N / ?PART), ?LITTLE])}
            end;
        _ ->
            {not_shown, text("~ts Some of this was not measured.", [Said])}
    end.

scaling(N) -> ratio(speedup(<<"parallel_monotonic">>, N), speedup(<<"parallel">>, N)).

reading(N) -> ratio(clock(<<"now">>, N), clock(<<"monotonic">>, N)).

clock(Stage, N) -> time(<<"clocks">>, Stage, N).

timeout(N) ->
    each(fun(Ratio) -> 100 * (Ratio - 1) end,
         ratio(time(<<"timer_wheel">>, <<"with_timeout">>, N),
               time(<<"timer_wheel">>, <<"without">>, N))).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Group = group(Points),
    Plot = fun(Title, Y, Series) ->
        #{title => Title, x => (axis("schedulers", "", linear))#{zero => true}, y => Y,
          series => [sderl_claim_vm:lines(Name, Group, What) || {Name, What} <- Series]}
    end,
    Clocks = [{"now/0", <<"now">>}, {"monotonic_time/0", <<"monotonic">>},
              {"system_time/0", <<"system">>}, {"a timer set and taken back", <<"timers">>}],
    #{
        plots => [
            Plot(<<"Speedup">>, axis("times as fast as on one scheduler", ""), [
                {"parallel, now/0", fun(N) -> speedup(<<"parallel">>, N) end},
                {"parallel, monotonic_time/0", fun(N) -> speedup(<<"parallel_monotonic">>, N) end},
                {"receive with a timeout",
                 fun(N) -> speedup(<<"timer_wheel">>, <<"with_timeout">>, N) end},
                {"receive without", fun(N) -> speedup(<<"timer_wheel">>, <<"without">>, N) end},
                {"control", fun(N) -> speedup(<<"control">>, N) end}
            ]),
            Plot(<<"Reading the time, and setting timers, equally often">>,
                 axis("time", "ms", log),
                 [{Name, fun(N) -> clock(Stage, N) end} || {Name, Stage} <- Clocks]),
            Plot(<<"What a timeout in a receive costs">>, axis("of the time without", "%"),
                 [{"timer_wheel", fun timeout/1}])
        ],
        tables => [
            #{title => <<"All points">>,
              header => [<<"">>, <<"schedulers">>, <<"runs">>, <<"time, ms">>, <<"speedup">>],
              rows => [[text("~ts", [Name]), text("~w", [N]), text("~w", [length(Runs)]),
                        cell(Of, time(Program, Stage, N)), cell(Of, speedup(Program, Stage, N))]
                       || #{runs := Runs} = Of <- [Group],
                          {Name, Program, Stage} <- rows(), N <- sderl_claim_vm:schedulers(Of)]}
        ],
        notes => [
            <<"`parallel` makes lists of times, so it collects garbage as well. `clocks` only "
              "reads the time, in one process for each core, a stage for each clock; its last "
              "stage sets timers and takes them back.">>,
            <<"A timeout sets and stops a timer for each message that is waited for.">>
            | sderl_claim_vm:notes([Group || Group =/= none])
        ]
    }.

rows() ->
    [{"parallel, now/0", <<"parallel">>, all},
     {"parallel, monotonic_time/0", <<"parallel_monotonic">>, all},
     {"receive with a timeout", <<"timer_wheel">>, <<"with_timeout">>},
     {"receive without", <<"timer_wheel">>, <<"without">>},
     {"reading now/0", <<"clocks">>, <<"now">>},
     {"reading monotonic_time/0", <<"clocks">>, <<"monotonic">>},
     {"reading system_time/0", <<"clocks">>, <<"system">>},
     {"timers set and taken back", <<"clocks">>, <<"timers">>},
     {"control", <<"control">>, all}].

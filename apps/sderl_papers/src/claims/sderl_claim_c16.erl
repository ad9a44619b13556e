%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c16).
-moduledoc """
Claim C16: programs of the thesis scale with schedulers, and what is bound by memory does not.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [cell/2, text/2]).
-import(sderl_claim_vm, [speedup/2, spread/2, said/2]).

-define(GAINING, [<<"mbrot">>, <<"big">>, <<"ehb">>]).
-define(BOUND, <<"ran">>).
%% At least SCALES of the control's speedup counts as scaling, less than FAILS as none.
-define(SCALES, 0.5).
-define(FAILS, 0.25).
%% The published limit of the program that does not scale is about 10.
-define(LIMIT, 16).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C16">>,
        title => <<"Programs by schedulers">>,
        question => <<"How much faster are four programs with more schedulers?">>,
        claim =>
            <<"On 60 cores of a TILEPro64 Mandelbrot is about 50 times as fast as on one, big bang "
              "46.6 and hackbench 43 times; lists of random numbers, which are bound by memory, "
              "about 10 times at most (Zhang 2011, 4.2)">>,
        share => 14
    }.

programs() -> ?GAINING ++ [?BOUND].

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{vm := #{size := Size}} = Scale) ->
    [sderl_claim_vm:point(Scale, #{bench => vm, program => Program, size => Size}, 1)
     || Program <- programs()].

-doc """
By the speedup on the most schedulers as a part of the control's. `confirmed`: on 16 schedulers or
more `mbrot`, `big` and `ehb` reach at least half of it in every run, `ran` is slower than each of
these in all runs, and no run failed. `refuted`: on 4 or more, in several runs, one of the three
stays below a quarter; or on 16 or more `ran` is faster than one of them in all runs.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(
        judge([{P, group(Points, P)} || P <- programs()]),
        [Failure || P <- programs(),
                    Failure <- sderl_claim_points:failed(Points, vm, #{program => P})]
    ).

group(Points, Program) -> sderl_claim_vm:group(Points, #{bench => vm, program => Program}).

judge(Groups) ->
    case [Group || {_, #{} = Group} <- Groups] of
        All when length(All) =:= length(Groups) ->
            judge(Groups, lists:min([sderl_claim_vm:most(Group) || Group <- All]));
        [] ->
            {not_shown, <<"No program was measured.">>};
        _ ->
            {not_shown, text("Not all were measured: ~ts missing. For a verdict all four are "
                             "needed.", [lists:join(", ", [P || {P, none} <- Groups])])}
    end.

judge(Groups, N) ->
    Of = fun(What) -> [{P, spread(Group, What(P, N))} || {P, Group} <- Groups] end,
    Measured = Of(fun sderl_claim_vm:speedup/2),
    Machine = spread(element(2, hd(Groups)), speedup(<<"control">>, N)),
    Said = text("On ~w schedulers, times as fast as on 1: ~ts; the control, which shares nothing, "
                "~ts.",
                [N, lists:join(", ", [[P, " ", said(S, "")] || {P, S} <- Measured]),
                 said(Machine, "")]),
    Speedups = maps:from_list(Measured),
    Gains = maps:from_list(Of(fun sderl_claim_vm:gain/2)),
    Several = lists:all(fun({_, #{runs := Runs}}) -> length(Runs) > 1 end, Groups),
    Weak = [P || P <- ?GAINING, #{P := {_, _, High}} <- [Gains], High < ?FAILS],
    Behind = [P || P <- ?GAINING, #{P := {_, _, High}, ?BOUND := {_, Low, _}} <- [Speedups],
                   Low > High],
    Scales = lists:all(fun(P) ->
        case Gains of #{P := {_, Low, _}} -> Low >= ?SCALES; _ -> false end
    end, ?GAINING),
    Ahead = [P || P <- ?GAINING, #{P := {_, Low, _}, ?BOUND := {_, _, High}} <- [Speedups],
                  High < Low],
    Range = sderl_claim_vm:range(),
    case Machine of
        _ when N < Range ->
            {not_shown, text("~ts The range is too small to judge by.", [Said])};
        {Given, _, _} when Given < N / 2 ->
            {not_shown, text("~ts The machine itself gave less than half of its schedulers, so "
                             "nothing is judged.", [Said])};
        {_, _, _} when Weak =/= [], Several ->
            {refuted, text("~ts Of what the machine gives, ~ts gains less than a quarter.",
                           [Said, hd(Weak)])};
        {_, _, _} when N >= ?LIMIT, Behind =/= [], Several ->
            {refuted, text("~ts The program that is bound by memory gains more than ~ts.",
                           [Said, hd(Behind)])};
        {_, _, _} when N < ?LIMIT ->
            {not_shown, text("~ts The limit of the program that is bound by memory, about 10, "
                             "shows from ~w schedulers on.", [Said, ?LIMIT])};
        {_, _, _} when Scales, length(Ahead) =:= length(?GAINING) -> {confirmed, Said};
        _ -> {not_shown, text("~ts Neither do all three clearly scale, nor is one clearly behind.",
                              [Said])}
    end.

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Groups = [{P, Group} || P <- programs(), #{} = Group <- [group(Points, P)]],
    Axis = axis("schedulers", "", linear),
    #{
        plots => [
            #{title => <<"Speedup">>, x => Axis#{zero => true},
              y => axis("times as fast as on one scheduler", ""),
              series => [sderl_claim_vm:lines(P, Group, fun(N) -> speedup(P, N) end)
                         || {P, Group} <- Groups] ++
                  [sderl_claim_vm:lines("control", Group,
                                        fun(N) -> speedup(<<"control">>, N) end)
                   || {_, Group} <- lists:sublist(Groups, 1)]},
            #{title => <<"Time of a repetition">>, x => Axis#{zero => true},
              y => axis("time", "ms", log),
              series => [sderl_claim_vm:lines(P, Group, fun(N) -> sderl_claim_vm:time(P, N) end)
                         || {P, Group} <- Groups]}
        ],
        tables => [
            #{title => <<"All points">>,
              header => [<<"program">>, <<"schedulers">>, <<"runs">>, <<"time, ms">>,
                         <<"speedup">>, <<"the control's">>],
              rows => [[P, text("~w", [N]), text("~w", [length(Runs)]),
                        cell(Group, sderl_claim_vm:time(P, N)), cell(Group, speedup(P, N)),
                        cell(Group, speedup(<<"control">>, N))]
                       || {P, #{runs := Runs} = Group} <- Groups,
                          N <- sderl_claim_vm:schedulers(Group)]}
        ],
        notes => [
            text("`big` is the thesis's big bang, `ehb` its hackbench. Below ~w schedulers nothing "
                 "is judged, and the limit of `ran` from ~w on.",
                 [sderl_claim_vm:range(), ?LIMIT])
            | sderl_claim_vm:notes([Group || {_, Group} <- Groups])
        ]
    }.

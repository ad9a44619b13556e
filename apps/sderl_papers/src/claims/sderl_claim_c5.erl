%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c5).
-moduledoc "Claim C5: more ant colonies find better schedules.".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [text/1, text/2]).

%% Fewer instances, or colonies in a narrower range, are too few to judge by.
-define(INSTANCES, 3).
-define(RANGE, 4).
%% That quality does not follow is only said with so many of both.
-define(MANY_INSTANCES, 8).
-define(WIDE_RANGE, 16).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C5">>,
        title => <<"Ant colonies: quality">>,
        question =>
            <<"Do schedules become better with the number of colonies that tell one another of "
              "their best?">>,
        claim =>
            <<"Ant colony optimisation on 25 hard instances of 100 jobs: the mean distance from "
              "the optimum falls as the colonies grow from 1 to 256 "
              "(Chechina et al. 2017, Fig. 7)">>,
        share => 6
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{aco := #{instances := Instances, quality := #{colonies := Colonies}}} = Scale) ->
    %% An instance with all numbers of colonies is worth more than many with some of them.
    [sderl_claim_aco:quality(Scale, Instance, C) || Instance <- Instances, C <- Colonies].

-doc """
Compares the fewest colonies with the most, instance by instance. `confirmed`: the mean excess is
less with the most, by more than half the 95 % interval of the mean of these differences, and from
one number to the next it never rises by more than that of theirs; and no run failed. `refuted`: it
is greater by more than that, or does not fall at all with 8 instances and 16 times the colonies.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    case sderl_claim_aco:excess(Points, final) of
        #{curve := [{Few, First}, _ | _] = Curve} ->
            {Most, Last} = lists:last(Curve),
            sderl_claim_points:whole(
                judge(Few, Most, length(First), differences(First, Last), Curve),
                sderl_claim_points:failed(Points, aco, #{variant => smp})
            );
        _ ->
            {not_shown, <<"No instance was measured with two numbers of colonies.">>}
    end.

judge(Few, Most, Instances, {Fall, Half}, Curve) ->
    Means = [{C, mean([E || {_, E} <- Of])} || {C, Of} <- Curve],
    Said = text(
        "On ~w instances the mean excess over the best is ~ts. From ~w to ~w colonies it falls by "
        "~ts (95 % interval ~ts to ~ts).",
        [Instances, lists:join(", ", [text("~ts % with ~w", [number(M), C]) || {C, M} <- Means]),
         Few, Most, number(Fall), number(Fall - Half), number(Fall + Half)]
    ),
    Rises = lists:any(
        fun({{_, A}, {_, B}}) -> {Step, StepHalf} = differences(A, B), -Step > StepHalf end,
        lists:zip(lists:droplast(Curve), tl(Curve))
    ),
    if
        Instances < ?INSTANCES; Most < ?RANGE * Few ->
            {not_shown, text("~ts That is too few to judge by.", [Said])};
        -Fall > Half -> {refuted, text("~ts It rises.", [Said])};
        Fall =< 0, Instances >= ?MANY_INSTANCES, Most >= ?WIDE_RANGE * Few ->
            {refuted, text("~ts It does not fall.", [Said])};
        Fall > Half, not Rises ->
            {confirmed, text("~ts At no step does it rise as clearly.", [Said])};
        Rises -> {not_shown, text("~ts Between two numbers of colonies it rises.", [Said])};
        true -> {not_shown, text("~ts The interval contains 0.", [Said])}
    end.

%% How much less the second is than the first, with half the interval of it over the instances.
differences(A, B) ->
    sderl_bench_series:interval([X - Y || {{I, X}, {J, Y}} <- lists:zip(A, B), I =:= J]).

mean(Values) -> lists:sum(Values) / length(Values).

number(Value) -> sderl_table:number(Value).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Excess = sderl_claim_aco:excess(Points, final),
    #{
        plots => [
            #{
                title => <<"Excess over the best cost: mean of the instances, with the least and "
                           "the greatest">>,
                x => axis("colonies", "", log), y => axis("excess", "%"), series => curve(Excess)
            },
            #{
                title => <<"Mean excess as the colonies learn">>,
                x => axis("global iterations", "", linear), y => axis("excess", "%"),
                series => learning(Points, Excess)
            }
        ],
        tables => [table(Excess)],
        notes => [
            best(Excess),
            <<"All colonies are in one virtual machine here. Which node a colony is on changes "
              "nothing of what it finds: after its local iterations each tells its best, and the "
              "best of all is told "
              "to the others. No local search is used, so what is seen is what the colonies "
              "learn.">>
        ]
    }.

best(none) ->
    <<"The excess is that over the known optimum, and where none is known over the least cost of "
      "all runs on the instance.">>;
best(#{known := Known, curve := [{_, Of} | _]}) when Known =:= length(Of) ->
    <<"Published instances: the excess is that over their known optimum.">>;
best(#{known := Known, curve := [{_, Of} | _]}) ->
    text("For ~w of the ~w instances no optimum is known: for these the excess is that over the "
         "least cost of all runs here, so the most colonies are 0 or near it by "
         "this alone, and how the others come near is what is shown. Generated instances are of "
         "the published recipe, with a range of due dates of 0.2 and a tardiness factor of 0.6. "
         "With SDERL_INSTANCES the published ones are used.", [length(Of) - Known, length(Of)]).

curve(none) -> [];
curve(#{curve := Curve}) ->
    [#{name => <<"mean">>, points => [
        #{x => C, y => mean(Es), low => lists:min(Es), high => lists:max(Es)}
     || {C, Of} <- Curve, Es <- [[E || {_, E} <- Of]]
    ]}].

%% After each global iteration, of the same instances.
learning(_, none) -> [];
learning(Points, #{curve := Curve}) ->
    Rounds = learned(Points, 1),
    Shown = [C || {C, _} <- Curve],
    [
        #{name => text("~w colon~ts", [C, case C of 1 -> "y"; _ -> "ies" end]), points => [
            #{x => Round, y => M, low => M, high => M}
         || {Round, Of} <- Rounds, {D, Es} <- Of, D =:= C, M <- [mean([E || {_, E} <- Es])]
        ]}
     || C <- Shown
    ].

%% Until there are no more of them.
learned(Points, Round) ->
    case sderl_claim_aco:excess(Points, Round) of
        #{curve := Curve} -> [{Round, Curve} | learned(Points, Round + 1)];
        none -> []
    end.

table(none) ->
    #{title => <<"Excess over the best cost, in percent">>, header => [<<"instance">>], rows => []};
table(#{curve := [{_, First} | _] = Curve}) ->
    #{
        title => <<"Excess over the best cost, in percent, by colonies">>,
        header => [<<"instance">> | [text("~w", [C]) || {C, _} <- Curve]],
        rows =>
            [[Instance | [text(number(E)) || {_, Of} <- Curve, {I, E} <- Of, I =:= Instance]]
             || {Instance, _} <- First] ++
                [[<<"mean">> | [text(number(mean([E || {_, E} <- Of]))) || {_, Of} <- Curve]]]
    }.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_plan_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").


-define(P, sderl_reproduce_plan).

point(I, Fixed, Work) -> point(debench, I, Fixed, Work).
point(Workload, I, Fixed, Work) ->
    #{workload => Workload, params => #{nodes => I}, fixed_s => Fixed, work_s => Work}.

claim(Id, Share, Points) -> #{id => Id, share => Share, points => Points}.

tried(Point, Took) -> tried(Point, Took, ok).
tried(Point, Took, Outcome) ->
    #{key => sderl_claim_points:key(Point), took_s => Took, outcome => Outcome}.

jobs(Jobs) ->
    [{maps:get(nodes, Params), Run} || #{point := #{params := Params}, run := Run} <- Jobs].

-define(A, point(1, 10, 0)).
-define(B, point(2, 10, 0)).
-define(C, point(3, 10, 0)).

%% All points have one run before any has two, in their order.
turns_test() ->
    #{jobs := Jobs, left_out := []} =
        ?P:plan([claim(<<"C1">>, 1, [?B, ?A]), claim(<<"C2">>, 1, [?A, ?C])], [], 60, 5),
    ?assertEqual([{2, 1}, {1, 1}, {3, 1}, {2, 2}, {1, 2}, {3, 2}], jobs(Jobs)).

%% Time that one claim leaves goes to another; points that do not fit are listed.
parts_test() ->
    #{jobs := Jobs, left_out := LeftOut} = ?P:plan(
        [claim(<<"C1">>, 1, [?A]), claim(<<"C2">>, 1, [?B, ?C, point(4, 40, 0)])], [], 35, 1
    ),
    ?assertEqual([{1, 1}, {2, 1}, {3, 1}], jobs(Jobs)),
    ?assertMatch([{4, 1}], jobs(LeftOut)).

%% A point that needs two runs gets them before another claim takes what its claim has left, and in
%% the order of turns.
least_runs_test() ->
    Plan = fun(A) ->
        jobs(maps:get(jobs,
                      ?P:plan([claim(<<"C1">>, 1, [A]), claim(<<"C2">>, 1, [?B, ?C])], [], 40, 2)))
    end,
    ?assertEqual([{1, 1}, {2, 1}, {3, 1}, {1, 2}], Plan(?A)),
    ?assertEqual([{1, 1}, {2, 1}, {3, 1}, {1, 2}], Plan((?A)#{least_runs => 2})),
    Long = point(3, 20, 0),
    Both = fun(A) ->
        jobs(maps:get(jobs, ?P:plan([claim(<<"C1">>, 1, [A]), claim(<<"C2">>, 1, [?B, Long])], [],
                                    40, 2)))
    end,
    ?assertEqual([{1, 1}, {2, 1}, {3, 1}], Both(?A)),
    ?assertEqual([{1, 1}, {2, 1}, {1, 2}, {2, 2}], Both((?A)#{least_runs => 2})).

%% Points that differ in monitoring only follow one another, in turns.
pairs_test() ->
    [Off, On] = [#{workload => aco, params => #{nodes => 9, monitoring => M}, fixed_s => 10,
                   work_s => 0}
                 || M <- [off, on]],
    Plan = fun(Tried) ->
        #{jobs := Jobs} = ?P:plan([claim(<<"C1">>, 1, [?A, Off, ?B]), claim(<<"C2">>, 1, [?C, On])],
                                  Tried, infinity, 2),
        Jobs
    end,
    Said = fun(Jobs) ->
        [maps:get(monitoring, Params, Nodes)
         || #{point := #{params := #{nodes := Nodes} = Params}} <- Jobs]
    end,
    ?assertEqual([1, off, on, 2, 3, 1, on, off, 2, 3], Said(Plan([]))),
    %% The same, when every run is followed by a new plan.
    Measured = lists:foldl(fun(_, Tried) ->
        [#{point := Point} | _] = Plan(Tried),
        [tried(Point, 10) | Tried]
    end, [], lists:seq(1, 10)),
    Order = [maps:get(<<"monitoring">>, Params, maps:get(<<"nodes">>, Params))
             || #{key := {_, Params}} <- lists:reverse(Measured)],
    ?assertEqual([1, <<"off">>, <<"on">>, 2, 3, 1, <<"on">>, <<"off">>, 2, 3], Order).

unbounded_test() ->
    #{jobs := Jobs} = ?P:plan([claim(<<"C1">>, 1, [?A, ?B])], [], infinity, 3),
    ?assertEqual([{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 3}, {2, 3}], jobs(Jobs)).

failed_test() ->
    Plan = fun(Outcome) ->
        ?P:plan([claim(<<"C1">>, 1, [?A, ?B])], [tried(?A, 5, Outcome)], 25, 1)
    end,
    #{jobs := Jobs, failed := Failed} = Plan(failed),
    ?assertEqual({[{2, 1}], [{1, 1}]}, {jobs(Jobs), jobs(Failed)}),
    #{jobs := Again, failed := None} = Plan(retried),
    ?assertEqual({[{1, 1}, {2, 1}], []}, {jobs(Again), jobs(None)}).

%% On a slow machine a point is expected to take longer, and fewer points fit: those of the workload
%% that was measured.
corrected_test() ->
    Points = [point(I, 0, 10) || I <- lists:seq(1, 5)],
    Other = point(orbit, 1, 0, 10),
    #{jobs := Jobs, left_out := LeftOut} = ?P:plan([claim(<<"C1">>, 1, Points ++ [Other])],
                                                   [tried(hd(Points), 20)], 70, 1),
    ?assertEqual([20.0, 20.0, 10.0], [S || #{seconds := S} <- Jobs]),
    ?assertEqual(2, length(LeftOut)).

%% ---------------------------------------------------------------- properties

properties_test_() ->
    [
        sderl_prop:eunit("plans stay within the budget, in order", 300, fun sound/0),
        sderl_prop:eunit("what is measured is not planned again, and there is an end", 200,
                         fun resumed/0)
    ].

points() ->
    ?LET(Raw, list({oneof([debench, orbit]), range(1, 12), range(1, 30), range(0, 30),
                    oneof([1, 1, 3])}),
         lists:uniq(fun(P) -> sderl_claim_points:key(P) end,
                    [(point(W, I, F, S))#{least_runs => L} || {W, I, F, S, L} <- Raw])).

%% Claims may share points, and these then are the same.
claims() ->
    ?LET({All, Picks}, {points(), non_empty(list({range(1, 50), list(range(1, 20))}))}, [claim(
        integer_to_binary(N), Share, [lists:nth(I, All) || I <- lists:uniq(Of), I =< length(All)]
    ) || {N, {Share, Of}} <- lists:enumerate(Picks)]).

%% Measurements of all points: times in percent of the expected ones.
measured(Claims) ->
    All = lists:uniq(lists:append([Points || #{points := Points} <- Claims])),
    ?LET(Of, [{range(0, 3), range(10, 500), frequency([{8, ok}, {1, failed}, {1, retried}])}
              || _ <- All],
         lists:append([[tried(P, took(P, Pct), Outcome) || _ <- lists:seq(1, N)]
                       || {P, {N, Pct, Outcome}} <- lists:zip(All, Of)])).

took(#{fixed_s := F, work_s := W}, Pct) -> F + W * Pct / 100.

sound() ->
    ?FORALL({Claims, Budget, Most}, {claims(), range(0, 1000), range(1, 4)},
            ?FORALL(Measured, measured(Claims),
                    begin
                        #{jobs := Jobs, left_out := LeftOut, failed := Failed} =
                            ?P:plan(Claims, Measured, Budget, Most),
                        Spent = lists:sum([S || #{took_s := S} <- Measured]),
                        Keys = [{sderl_claim_points:key(P), R} || #{point := P, run := R} <- Jobs],
                        Done = fun(Key) ->
                            length([ok || #{key := K, outcome := ok} <- Measured, K =:= Key])
                        end,
                        Is = #{
                            budget => Jobs =:= [] orelse ?P:total(Jobs) + Spent =< Budget + 1.0e-6,
                            once => length(lists:uniq(Keys)) =:= length(Keys),
                            runs => lists:all(fun({Key, _}) ->
                                Runs = [R || {K, R} <- Keys, K =:= Key],
                                Runs =:= lists:seq(Done(Key) + 1, Done(Key) + length(Runs))
                                    andalso lists:max(Runs) =< Most
                            end, Keys),
                            turns => [R || {_, R} <- Keys] =:= lists:sort([R || {_, R} <- Keys]),
                            %% None is left out for a later one of its claim that takes as long.
                            order => [] =:= [
                                {A, B}
                             || #{claim := Id, point := A, seconds := SA} <- LeftOut,
                                #{claim := IdB, point := B, run := 1, seconds := SB} <- Jobs,
                                Id =:= IdB, SB >= SA, SB > 0, before(A, B, Id, Claims)
                            ],
                            failed => [] =:=
                                [P || #{point := P} <- Failed, #{point := Q} <- Jobs, P =:= Q]
                        },
                        ?WHENFAIL(io:format("~p~n~p~n", [Is, Jobs]),
                                  lists:all(fun(V) -> V end, maps:values(Is)))
                    end)).

before(A, B, Id, Claims) ->
    [Points] = [P || #{id := I, points := P} <- Claims, I =:= Id],
    lists:member(B, tl(lists:dropwhile(fun(P) -> P =/= A end, Points))).

%% Does as a run does: it plans, measures the first point and plans again. The times are not those
%% expected.
resumed() ->
    ?FORALL({Claims, Budget, Most, Pct}, {claims(), range(0, 600), range(1, 3), range(10, 300)},
            begin
                All = length(lists:uniq(lists:append([Points || #{points := Points} <- Claims]))),
                Measured = measure(Claims, [], Budget, Most, Pct, All * Most + 1),
                #{jobs := Jobs} = ?P:plan(Claims, Measured, Budget, Most),
                Runs = maps:values(maps:groups_from_list(fun(#{key := Key}) -> Key end, Measured)),
                ?WHENFAIL(io:format("~p~n~p~n", [Measured, Jobs]),
                          Jobs =:= [] andalso lists:all(fun(Of) -> length(Of) =< Most end, Runs))
            end).

measure(_, Measured, _, _, _, 0) -> Measured;
measure(Claims, Measured, Budget, Most, Pct, Steps) ->
    case ?P:plan(Claims, Measured, Budget, Most) of
        #{jobs := []} -> Measured;
        #{jobs := [#{point := Point} | _]} ->
            measure(Claims, [tried(Point, took(Point, Pct)) | Measured], Budget, Most, Pct,
                    Steps - 1)
    end.

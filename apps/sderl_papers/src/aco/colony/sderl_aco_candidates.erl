%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_candidates).
-moduledoc """
Finds the job of the greatest heuristic value among those that are left, without looking at all;
of several the one with the least number.

- `edd`: the jobs by due date.
- `mdd`: jobs that would be late rank by their durations, all others by their due dates. So there
  are the jobs by due date, and a heap, by duration, of those that were found to be late when they
  came first; once late, they stay late. A late job that has not come first by due date yet is not
  the greatest: its modified due date is after its due date, which is not before that of the first.
- `au`: the jobs by w/p; a value is w/p or less, which ends the search.

Jobs that are taken are dropped when they come first (`edd`, `mdd`), or at once (`au`).
""".

-export([jobs/2, new/3, first/4, value/4, values/7, taken/2]).

-compile({inline, [value/4, inverse/2, log_value/4]}).
-export_type([job/0, candidates/0]).

-doc """
Number, bit (`1 bsl (J - 1)`), duration, weight, due date, logarithm of w/p (0.0 where not needed).
""".
-type job() :: {sderl_aco_instance:job(), Bit :: pos_integer(), P :: pos_integer(),
                W :: non_neg_integer(), D :: non_neg_integer(), float()}.

-type heap() :: none | {Key :: pos_integer(), sderl_aco_instance:job(), job(), [heap()]}.
-opaque candidates() ::
    {edd, Beta :: float(), [job()]} | {mdd, Beta :: float(), [job()], Late :: heap()}
    | {au, Beta :: float(), [job()]}.

%% For a weight of 0.
-define(LOG_OF_NOTHING, -300.0).

-doc "The jobs of an instance, by number.".
-spec jobs(sderl_aco_instance:instance(), sderl_aco_options:heuristic()) -> [job()].
jobs(#{n := N, p := P, w := W, d := D}, Heuristic) ->
    [
        {J, 1 bsl (J - 1), element(J, P), element(J, W), element(J, D),
         urgency(Heuristic, element(J, W), element(J, P))}
     || J <- lists:seq(1, N)
    ].

urgency(au, 0, _) -> ?LOG_OF_NOTHING;
urgency(au, W, P) -> math:log(W / P);
urgency(_, _, _) -> 0.0.

-doc "All jobs as candidates.".
-spec new([job()], sderl_aco_options:heuristic(), Beta :: number()) -> candidates().
new(All, edd, Beta) -> {edd, float(Beta), by_due(All)};
new(All, mdd, Beta) -> {mdd, float(Beta), by_due(All), none};
new(All, au, Beta) ->
    {au, float(Beta),
     [Job || {_, _, Job} <- lists:sort([{-L, J, Job} || {J, _, _, _, _, L} = Job <- All])]}.

by_due(All) ->
    [Job || {_, _, Job} <- lists:sort([{max(1, D), J, Job} || {J, _, _, _, D, _} = Job <- All])].

-doc """
The first job, its value to the power of beta, and the candidates that are left. `Double` is twice
the mean duration of the jobs left, `Taken` the bits of the others.
""".
-spec first(T :: non_neg_integer(), Double :: float(), Taken :: non_neg_integer(), candidates()) ->
    {job(), float(), candidates()}.
first(T, Double, Taken, {edd, Beta, [{_, Bit, _, _, D, _} = Job | Jobs] = All}) ->
    if
        Taken band Bit =/= 0 -> first(T, Double, Taken, {edd, Beta, Jobs});
        true -> {Job, inverse(max(1, D), Beta), {edd, Beta, All}}
    end;
first(T, _, Taken, {mdd, Beta, Jobs0, Late0}) ->
    {Jobs, Late1} = in_time(Jobs0, T, Taken, Late0),
    Late = left(Late1, Taken),
    {Job, M} = earlier(Jobs, Late, T),
    {Job, inverse(M, Beta), {mdd, Beta, Jobs, Late}};
first(T, Double, _, {au, Beta, [{_, _, _, _, _, Log} = Job | Jobs]} = Candidates) ->
    {Most, First} = urgent(Jobs, T, Double, log_value(Job, T, Double, Log), Job),
    {First, math:exp(Beta * Most), Candidates}.

in_time([{_, Bit, P, _, D, _} = Job | Jobs] = All, T, Taken, Late) ->
    if
        Taken band Bit =/= 0 -> in_time(Jobs, T, Taken, Late);
        T + P > D -> in_time(Jobs, T, Taken, merge({P, element(1, Job), Job, []}, Late));
        true -> {All, Late}
    end;
in_time([], _, _, Late) ->
    {[], Late}.

left({_, _, {_, Bit, _, _, _, _}, Heaps}, Taken) when Taken band Bit =/= 0 ->
    left(pairs(Heaps), Taken);
left(Late, _) -> Late.

earlier([{J, _, _, _, D, _} = Job | _], {P, K, _, _}, T) when D < T + P; D =:= T + P, J < K ->
    {Job, D};
earlier(_, {P, _, Job, _}, T) -> {Job, T + P};
earlier([{_, _, _, _, D, _} = Job | _], none, _) -> {Job, D}.

urgent([{_, _, _, _, _, Log} = Job | Jobs], T, Double, Most, First) when Log > Most ->
    case log_value(Job, T, Double, Log) of
        Value when Value > Most -> urgent(Jobs, T, Double, Value, Job);
        _ -> urgent(Jobs, T, Double, Most, First)
    end;
urgent(_, _, _, Most, First) ->
    {Most, First}.

log_value({_, _, P, _, D, _}, T, Double, Log) ->
    Slack = D - T - P,
    if
        Slack > 0 -> Log - Slack / Double;
        true -> Log
    end.

-doc "The value of a job, to the power of beta.".
-spec value(job(), T :: non_neg_integer(), Double :: float(), candidates()) -> float().
value({_, _, P, _, D, _}, T, _, {mdd, Beta, _, _}) -> inverse(max(T + P, D), Beta);
value({_, _, _, _, D, _}, _, _, {edd, Beta, _}) -> inverse(max(1, D), Beta);
value({_, _, _, _, _, Log} = Job, T, Double, {au, Beta, _}) ->
    math:exp(Beta * log_value(Job, T, Double, Log)).

inverse(M, 2.0) -> 1.0 / (M * M);
inverse(M, Beta) -> math:pow(M, -Beta).

-doc """
For each job that is left its value, to the power of beta, times its pheromone, which is `Least` for
those without an entry; the last job first. And the sum of them, which is added up in the order of
the jobs.
""".
-spec values([job()], [sderl_aco_pheromone:entry()], non_neg_integer(), float(), non_neg_integer(),
             Least :: float(), candidates()) ->
    {float(), [{float(), job()}]}.
values(All, Entries, T, Double, Taken, Least, Candidates) ->
    values(All, Entries, T, Double, Taken, Least, Candidates, 0.0, []).

values([{_, Bit, _, _, _, _} | All], Entries, T, Double, Taken, Least, Candidates, Sum, Values)
  when Taken band Bit =/= 0 ->
    values(All, Entries, T, Double, Taken, Least, Candidates, Sum, Values);
values([{J, _, _, _, _, _} | _] = All, [{K, _, _, _} | Entries], T, Double, Taken, Least,
       Candidates, Sum, Values)
  when K < J ->
    values(All, Entries, T, Double, Taken, Least, Candidates, Sum, Values);
values([{J, _, _, _, _, _} = Job | All], [{J, _, Powered, _} | Entries], T, Double, Taken, Least,
       Candidates, Sum, Values) ->
    Value = Powered * value(Job, T, Double, Candidates),
    values(All, Entries, T, Double, Taken, Least, Candidates, Sum + Value, [{Value, Job} | Values]);
%% For the published defaults: no call, and floats that stay in registers.
values([{_, _, P, _, D, _} = Job | All], Entries, T, Double, Taken, Least,
       {mdd, 2.0, _, _} = Candidates, Sum, Values)
  when is_float(Least), is_float(Sum) ->
    M = if T + P > D -> T + P; true -> D end,
    Value = Least / (M * M),
    values(All, Entries, T, Double, Taken, Least, Candidates, Sum + Value, [{Value, Job} | Values]);
values([Job | All], Entries, T, Double, Taken, Least, Candidates, Sum, Values) ->
    Value = Least * value(Job, T, Double, Candidates),
    values(All, Entries, T, Double, Taken, Least, Candidates, Sum + Value, [{Value, Job} | Values]);
values([], _, _, _, _, _, _, Sum, Values) ->
    {Sum, Values}.

-doc "The candidates without a job that has been taken.".
-spec taken(sderl_aco_instance:job(), candidates()) -> candidates().
taken(J, {au, Beta, Jobs}) -> {au, Beta, lists:keydelete(J, 1, Jobs)};
taken(_, Candidates) -> Candidates.

%% A pairing heap: most of what goes in never comes out.

merge({P, J, Job, Heaps}, {Q, K, _, _} = Heap) when P < Q; P =:= Q, J < K ->
    {P, J, Job, [Heap | Heaps]};
merge(Heap, none) -> Heap;
merge(none, Heap) -> Heap;
merge(Heap, {Q, K, Job, Heaps}) -> {Q, K, Job, [Heap | Heaps]}.

pairs([A, B | Heaps]) -> merge(merge(A, B), pairs(Heaps));
pairs([Heap]) -> Heap;
pairs([]) -> none.

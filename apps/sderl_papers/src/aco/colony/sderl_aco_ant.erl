%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_ant).
-moduledoc """
An ant: builds one schedule, position by position, by pheromone and a heuristic value.

At a position each job that is left has the value t^alpha x h^beta, t being its pheromone there and
h one of

| | |
|---|---|
| `mdd` | 1 / max(T + p, d), the modified due date; T is when the machine is free |
| `edd` | 1 / d |
| `au` | w/p x exp(-max(d - T - p, 0) / (2 x the mean p of the jobs left)), the apparent urgency |

With the probability q0 the ant takes the first job of the greatest value, otherwise it draws one,
with probabilities in proportion to the values.

## How the greatest is found

The published program, and `m:sderl_aco_plain`, compute all values. Here it is enough to know the
job of the greatest h (`m:sderl_aco_candidates`), as all jobs without an entry in the row of
pheromone have the same t, and to look at the entries, those with the most pheromone first, until
not even the greatest h would make one better. All values are computed only for a draw.
""".

-export([new/2, schedule/3]).
-export_type([rules/0]).

-doc "The data that does not change from ant to ant.".
-opaque rules() :: {
    Jobs :: tuple(), All :: [sderl_aco_candidates:job()], sderl_aco_candidates:candidates(),
    Total :: pos_integer(), Q0 :: number()
}.

-doc "The rules for ants with these options.".
-spec new(sderl_aco_instance:instance(), sderl_aco_options:options()) -> rules().
new(#{p := P} = Instance, #{heuristic := Heuristic, beta := Beta, q0 := Q0}) ->
    All = sderl_aco_candidates:jobs(Instance, Heuristic),
    {list_to_tuple(All), All, sderl_aco_candidates:new(All, Heuristic, Beta),
     lists:sum(tuple_to_list(P)), Q0}.

-doc "One schedule, the last job first, and its cost.".
-spec schedule(rules(), sderl_aco_pheromone:pheromone(), sderl_aco_random:random()) ->
    {Cost :: non_neg_integer(), Reversed :: [sderl_aco_instance:job()], sderl_aco_random:random()}.
schedule({Jobs, All, Candidates, Total, Q0}, Pheromone, Random) ->
    Rows = sderl_aco_pheromone:rows(Pheromone),
    Fixed = {Jobs, sderl_aco_pheromone:least(Pheromone), Q0},
    positions(Rows, 0, {Total, tuple_size(Jobs)}, All, Candidates, 0, 0, [], Random, Fixed).

%% `Taken` has the bits of the jobs that have a position, `All` the jobs that had none at the last
%% draw.
positions([], _, _, _, _, _, Cost, Schedule, Random, _) ->
    {Cost, Schedule, Random};
positions([{ByValue, ByJob} | Rows], T, {Work, Left}, All0, Candidates0, Taken, Cost, Schedule,
          Random0, {Jobs, Least, Q0} = Fixed) ->
    Double = 2 * Work / Left,
    {Q, Random1} = sderl_aco_random:next(Random0),
    {Job, All1, Candidates1, Random2} =
        if
            Q =< Q0 ->
                {First, H, Seen} = sderl_aco_candidates:first(T, Double, Taken, Candidates0),
                {greatest(ByValue, H, Least * H, First, T, Double, Taken, Jobs, Seen), All0, Seen,
                 Random1};
            true ->
                {U, Random} = sderl_aco_random:next(Random1),
                {Sum, Values} =
                    sderl_aco_candidates:values(All0, ByJob, T, Double, Taken, Least, Candidates0),
                {spin(Values, Sum, U * Sum), forward(Values, []), Candidates0, Random}
        end,
    {J, Bit, P, W, D, _} = Job,
    Done = T + P,
    Cost1 = if Done > D -> Cost + W * (Done - D); true -> Cost end,
    Candidates2 = sderl_aco_candidates:taken(J, Candidates1),
    positions(Rows, Done, {Work - P, Left - 1}, All1, Candidates2, Taken bor Bit, Cost1,
              [J | Schedule], Random2, Fixed).

greatest([{_, _, Powered, _} | _], H, Most, Job, _, _, _, _, _) when Powered * H < Most ->
    Job;
greatest([{_, Bit, _, _} | Entries], H, Most, Job, T, Double, Taken, Jobs, Candidates)
  when Taken band Bit =/= 0 ->
    greatest(Entries, H, Most, Job, T, Double, Taken, Jobs, Candidates);
greatest([{J, _, Powered, _} | Entries], H, Most, Job, T, Double, Taken, Jobs, Candidates) ->
    Other = element(J, Jobs),
    Value = Powered * sderl_aco_candidates:value(Other, T, Double, Candidates),
    if
        Value > Most; Value == Most, J < element(1, Job) ->
            greatest(Entries, H, Value, Other, T, Double, Taken, Jobs, Candidates);
        true -> greatest(Entries, H, Most, Job, T, Double, Taken, Jobs, Candidates)
    end;
greatest([], _, _, Job, _, _, _, _, _) ->
    Job.

forward([{_, Job} | Values], All) -> forward(Values, [Job | All]);
forward([], All) -> All.

%% The job in whose part of the sum `At` is; `Upto` is the sum up to this one.
spin([{_, Job}], _, _) -> Job;
spin([{Value, Job} | _], Upto, At) when At > Upto - Value -> Job;
spin([{Value, _} | Values], Upto, At) -> spin(Values, Upto - Value, At).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_instance).
-moduledoc """
Instances of the single machine total weighted tardiness problem.

Jobs 1 to n, one after the other on one machine without a pause; job j takes `p`, weighs `w` and is due at `d`. The cost of a schedule is
the sum of w x max(0, C - d), where C is when the job is done.
""".

-export([generate/1, tardiness/2, edd/1]).
-export_type([instance/0, job/0]).

-doc "Durations, weights and due dates are tuples of `n` integers: those of job j are `element(J, _)`.".
-type instance() :: #{name := binary(), n := pos_integer(), p := tuple(), w := tuple(), d := tuple()}.
-type job() :: pos_integer().

-doc """
An instance by the published recipe: durations uniform in 1 to 100, weights in 1 to 10, due dates in P (1 - `tf` - `rdd` / 2) to P (1 - `tf` + `rdd` / 2), where P
is the sum of the durations; `rdd` is the relative range of due dates, `tf` the tardiness factor. The same seed gives the same instance.
Due dates are whole numbers and not below 0.

Source: OR-Library, `wt40` to `wt100`.
""".
-spec generate(#{n := pos_integer(), rdd := number(), tf := number(), seed := term()}) -> instance().
generate(#{n := N, rdd := Rdd, tf := Tf, seed := Seed}) ->
    Random0 = rand:seed_s(exsss, erlang:phash2({Seed, N, Rdd, Tf}, 1 bsl 32)),
    {P, Random1} = draw(N, 1, 100, Random0),
    {W, Random2} = draw(N, 1, 10, Random1),
    Sum = lists:sum(P),
    Least = max(0, round(Sum * (1 - Tf - Rdd / 2))),
    Greatest = max(Least, round(Sum * (1 - Tf + Rdd / 2))),
    {D, _} = draw(N, Least, Greatest, Random2),
    Name = iolist_to_binary(io_lib:format("generated-~w-~w-~w-~w", [N, Rdd, Tf, erlang:phash2(Seed, 1000)])),
    #{name => Name, n => N, p => list_to_tuple(P), w => list_to_tuple(W), d => list_to_tuple(D)}.

draw(N, Least, Greatest, Random) ->
    lists:mapfoldl(
        fun(_, R0) ->
            {U, R1} = rand:uniform_s(Greatest - Least + 1, R0),
            {Least + U - 1, R1}
        end,
        Random,
        lists:seq(1, N)
    ).

-doc "The cost of a schedule.".
-spec tardiness(instance(), [job()]) -> Cost :: non_neg_integer().
tardiness(#{p := P, w := W, d := D}, Jobs) -> tardiness(Jobs, 0, 0, P, W, D).

tardiness([], _, Cost, _, _, _) ->
    Cost;
tardiness([J | Jobs], T, Cost, P, W, D) ->
    Done = T + element(J, P),
    tardiness(Jobs, Done, Cost + element(J, W) * max(0, Done - element(J, D)), P, W, D).

-doc "The jobs by due date, those that are due at the same time by number.".
-spec edd(instance()) -> [job()].
edd(#{n := N, d := D}) -> [J || {_, J} <- lists:sort([{element(J, D), J} || J <- lists:seq(1, N)])].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prop).
-moduledoc """
Runs properties from EUnit and Common Test so that a failure can be replayed: each run prints its
seed, and `SDERL_SEED=A,B,C` in the environment runs with that one.

With `SDERL_LONG=1` a property is tried as often as its test says, else a fifth of that, but 40
times where the test says more: what is rare is found by many short runs.
""".
-export([eunit/3, refuted/3, check/3]).

-define(TIME_LIMIT_S, 300).

-doc "An EUnit test of `Tests` runs of a property.".
-spec eunit(string(), pos_integer(), fun(() -> proper:test())) -> term().
eunit(Name, Tests, Property) ->
    {Name, {timeout, ?TIME_LIMIT_S, fun() -> check(Name, Tests, Property()) end}}.

-doc """
An EUnit test that a property does not hold: a fixed seed has a counterexample among `Tests` runs.
""".
-spec refuted(string(), pos_integer(), fun(() -> proper:test())) -> term().
refuted(Name, Tests, Property) ->
    {Name, {timeout, ?TIME_LIMIT_S, fun() ->
        _ = rand:seed(exsplus, {1, 2, 3}),
        case proper:quickcheck(Property(), [{numtests, Tests}, quiet]) of
            false -> ok;
            true -> error({property_holds, Name})
        end
    end}}.

-doc "The same in the calling process: `ok`, or an error with the seed.".
-spec check(string(), pos_integer(), proper:test()) -> ok.
check(Name, Tests0, Property) ->
    Tests = tests(Tests0),
    {A, B, C} = Seed = seed(),
    io:format(user, "property ~ts, ~b tests, SDERL_SEED=~b,~b,~b~n", [Name, Tests, A, B, C]),
    %% PropEr keeps a seed that the calling process already has.
    _ = rand:seed(exsplus, Seed),
    case proper:quickcheck(Property,
                           [long_result, {numtests, Tests}, nocolors, {to_file, standard_io}]) of
        true -> ok;
        Failure -> error({property_failed, Name, {seed, Seed}, Failure})
    end.

tests(Tests) ->
    case os:getenv("SDERL_LONG") of
        false -> max(Tests div 5, min(Tests, 40));
        _ -> Tests
    end.

seed() ->
    case os:getenv("SDERL_SEED") of
        false ->
            os:timestamp();
        Given ->
            [A, B, C] = [list_to_integer(Part) || Part <- string:lexemes(Given, ", ")],
            {A, B, C}
    end.

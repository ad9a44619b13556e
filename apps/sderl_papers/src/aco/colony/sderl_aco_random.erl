%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_random).
-moduledoc """
The numbers an ant draws, from 0 to 1: pseudo-random from a seed, or `cyclic`: 0.09, 0.19 to 0.99
and again, from the beginning for each schedule, so that results are known without a generator.
""".

-export([new/2, restart/1, next/1]).
-export_type([random/0]).

-opaque random() :: {cyclic, float()} | rand:state().

-define(FIRST, 0.09).

-doc "The same seed gives the same numbers; `cyclic` ones need no seed.".
-spec new(random | cyclic, Seed :: term()) -> random().
new(cyclic, _) -> {cyclic, ?FIRST};
new(random, Seed) -> rand:seed_s(exsss, erlang:phash2(Seed, 1 bsl 32)).

-doc "The numbers for the next schedule.".
-spec restart(random()) -> random().
restart({cyclic, _}) -> {cyclic, ?FIRST};
restart(Random) -> Random.

-doc "One number.".
-spec next(random()) -> {float(), random()}.
next({cyclic, U}) when U > 0.95 -> {U, {cyclic, ?FIRST}};
next({cyclic, U}) -> {U, {cyclic, U + 0.1}};
next(Random) -> rand:uniform_s(Random).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_dice).
-moduledoc """
Dice of a simulated world: the same numbers as from `m:rand` with the algorithm `exsss`, without the
cost of its state, because a schedule needs tens of thousands.
""".

%% The state of the generator is a pair in one cell, as in rand.
-dialyzer(no_improper_lists).

-export([new/1, roll/2]).
-export_type([dice/0]).

-opaque dice() :: nonempty_improper_list(non_neg_integer(), non_neg_integer()).

-define(BITS, 58).
-define(MASK(Bits, X), ((X) band ((1 bsl (Bits)) - 1))).
%% Bits that would be shifted out at the left are cut off first, so that there is no big number.
-define(SHIFT(X, By), (?MASK(?BITS - (By), X) bsl (By))).

-doc "Dice for a seed.".
-spec new(integer()) -> dice().
new(Seed) ->
    {exsss, State} = rand:export_seed_s(rand:seed_s(exsss, Seed)),
    State.

-doc "A number from 1 to `Sides`.".
-spec roll(pos_integer(), dice()) -> {pos_integer(), dice()}.
roll(Sides, [A0 | B0]) ->
    B = ?MASK(?BITS, B0),
    A1 = A0 bxor ?SHIFT(A0, 24),
    A = A1 bxor B bxor (A1 bsr 11) bxor (B bsr 41),
    Times5 = ?MASK(?BITS, B + ?SHIFT(B, 2)),
    Turned = ?SHIFT(Times5, 7) bor (Times5 bsr (?BITS - 7)),
    Number = ?MASK(?BITS, Turned + ?SHIFT(Turned, 3)),
    Rest = Number rem Sides,
    case Number - Rest =< (1 bsl ?BITS) - Sides of
        true -> {Rest + 1, [B | A]};
        %% The highest numbers would favour the low sides.
        false -> roll(Sides, [B | A])
    end.

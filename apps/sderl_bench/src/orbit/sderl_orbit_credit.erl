%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_credit).
-moduledoc """
The arithmetic by which Orbit knows that it is over: credits, which are parts of one whole.

An *atom* of credit is a whole number `K >= 0` and stands for 2^-K. A *credit* is a sum of different atoms, as the strictly
descending list of them, so that its head is the smallest part: nothing is `[]`, the whole is `[0]`. Whoever has work to do has
credit, and every message with work carries an atom. A worker without work gives its credit back; when the whole has come back nobody
has work and no message is under way.

Atoms are of any size and their sums exact, so nothing is ever lost by rounding. Source: Mattern's credit recovery, as in the published
Orbit.
""".

-export([zero/0, one/0, is_zero/1, is_one/1]).
-export([atom/1, add_atom/2, add/2, debit/1, debit_keeping/1]).
-export_type([atom_credit/0, credit/0]).

-doc "A part of 2^-K.".
-type atom_credit() :: non_neg_integer().
-doc "Strictly descending.".
-type credit() :: [atom_credit()].

-doc "No credit.".
-spec zero() -> credit().
zero() -> [].

-doc "The whole.".
-spec one() -> credit().
one() -> [0].

-doc "Whether it is none.".
-spec is_zero(credit()) -> boolean().
is_zero(Credit) -> Credit =:= [].

-doc "Whether it is the whole.".
-spec is_one(credit()) -> boolean().
is_one(Credit) -> Credit =:= [0].

-doc "A credit of one atom.".
-spec atom(atom_credit()) -> credit().
atom(K) -> [K].

-doc "The sum with an atom. Two equal atoms are one of twice the size, which is carried on.".
-spec add_atom(atom_credit(), credit()) -> credit().
add_atom(K, [Head | _] = Credit) when K > Head -> [K | Credit];
add_atom(K, [K | Rest]) when K > 0 -> add_atom(K - 1, Rest);
add_atom(K, [Head | Rest]) when K < Head -> [Head | add_atom(K, Rest)];
add_atom(K, []) -> [K].

-doc "The sum of two credits.".
-spec add(credit(), credit()) -> credit().
add(A, B) -> lists:foldl(fun add_atom/2, A, B).

-doc "Takes the smallest part away; nothing may be left.".
-spec debit(credit()) -> {atom_credit(), credit()}.
debit([K | Rest]) -> {K, Rest}.

-doc "Takes a part away so that something is left: a single atom is halved.".
-spec debit_keeping(credit()) -> {atom_credit(), credit()}.
debit_keeping([K]) -> {K + 1, [K + 1]};
debit_keeping([K | Rest]) -> {K, Rest}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_credit).
-moduledoc """
The credits by which Orbit detects termination: parts of one whole.

An *atom* of credit is a whole number `K >= 0` and stands for 2^-K. A *credit* is a sum of different
atoms, as the strictly descending list of them, so that its head is the smallest part: nothing is
`[]`, the whole is `[0]`. Every process with work to do has credit, and every message with work
carries an atom. A worker without work gives its credit back; when the whole has come back nobody
has work and no message is under way.

Atoms are of any size and their sums exact, so nothing is ever lost by rounding. Source: Mattern's
credit recovery, as in the published Orbit, but for the size of the parts: see `debit_keeping/2`.
""".

-export([zero/0, one/0, is_one/1]).
-export([add_atom/2, add/2, debit/1, debit_keeping/2]).
-export_type([atom_credit/0, credit/0]).

%% How much smaller than an atom a unit is: 2^-10 of it.
-define(FINER, 10).

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

-doc "Whether it is the whole.".
-spec is_one(credit()) -> boolean().
is_one(Credit) -> Credit =:= [0].

-doc "The sum with an atom. Two equal atoms are one of twice the size, which is carried on.".
-spec add_atom(atom_credit(), credit()) -> credit().
add_atom(K, [Head | _] = Credit) when K > Head -> [K | Credit];
add_atom(K, [K | Rest]) when K > 0 -> add_atom(K - 1, Rest);
add_atom(K, [Head | Rest]) when K < Head -> [Head | add_atom(K, Rest)];
add_atom(K, []) -> [K].

-doc "The sum of two credits, in time linear in their lengths.".
-spec add(credit(), credit()) -> credit().
add([K | A], [L | _] = B) when K > L -> [K | add(A, B)];
add([K | _] = A, [L | B]) when K < L -> [L | add(A, B)];
add([K | A], [K | B]) when K > 0 -> carry(K - 1, A, B);
add(A, []) -> A;
add([], B) -> B.

%% The sum with an atom that is not smaller than any of both.
carry(K, [K | A], [K | B]) -> [K | carry(K - 1, A, B)];
carry(K, [K | A], B) -> carry(K - 1, A, B);
carry(K, A, [K | B]) -> carry(K - 1, A, B);
carry(K, A, B) when K >= 0 -> [K | add(A, B)].

-doc "Takes the smallest part away; nothing may be left.".
-spec debit(credit()) -> {atom_credit(), credit()}.
debit([K | Rest]) -> {K, Rest}.

-doc """
Takes a part away so that something is left, and tells the unit for the next time; the first unit
is 0.

The published program halves the credit where it is one atom, so that with each message the parts
are half as big, and lists of them long. Here they are as big as a unit, which is made 2^-10 of such
an atom when there is need, and so lasts for a thousand messages.
""".
-spec debit_keeping(Unit :: atom_credit(), credit()) ->
    {atom_credit(), credit(), Unit :: atom_credit()}.
debit_keeping(Unit, [K]) when K >= Unit -> finer(K + ?FINER, [K]);
debit_keeping(Unit, [K | Rest]) when K >= Unit -> {K, Rest, Unit};
debit_keeping(Unit, [K | _] = Credit) -> finer(min(Unit, K + ?FINER), Credit).

%% 2^-K is 2^-(K + 1) + ... + 2^-Unit, and 2^-Unit once more, which is taken.
finer(Unit, [K | Rest]) -> {Unit, run(K + 1, Unit, Rest), Unit}.

run(Unit, Unit, Rest) -> [Unit | Rest];
run(K, Unit, Rest) -> run(K + 1, Unit, [K | Rest]).

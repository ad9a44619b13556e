%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_table).
-moduledoc """
The table of the elements that Orbit has found. It is distributed over the workers; each has a part,
and is the only one to use it.

| kind | which worker has X | a part |
|---|---|---|
| `hash` | by `erlang:phash2(X)`, so that neighbours are apart | an array of buckets, which are lists: as published |
| `compact` | slices of the space `[0, N)` of equal length, so that neighbours are together | a bit for each number of the slice, whether it is an element or not |

The compact table takes 1/4 byte for each number of the space (32 bits in a word of 64, where they
are no big integers), however many are elements. A kind of table is a module with this behaviour.
""".

-export([new/4, kinds/0, owner/2, part/2, insert/2, contents/1]).
-export_type([kind/0, spread/0, part/0, contents/0]).

-doc "The kinds of tables.".
-type kind() :: hash | compact.

-doc "How a table is distributed; a worker is told it, so it has no funs.".
-type spread() :: {module(), N :: pos_integer(), Workers :: pos_integer(), Slots :: pos_integer()}.

-doc "The part of one worker. Only its latest version may be used.".
-type part() :: {module(), term()}.

-doc """
The content of a part in the end: `size` elements, their `sum`, in `bytes` of memory; `slots`, of
which `nonempty_slots` are in use, `max_freq` elements in the fullest; `freq`: how many slots have
so many elements.
""".
-type contents() :: #{
    size := non_neg_integer(),
    sum := non_neg_integer(),
    bytes := non_neg_integer(),
    slots := pos_integer(),
    nonempty_slots := non_neg_integer(),
    max_freq := non_neg_integer(),
    freq := #{non_neg_integer() => pos_integer()}
}.

-doc """
How many slots each worker has, of `Slots` in all, for a space of N numbers.
""".
-callback slots(N :: pos_integer(), Slots :: pos_integer(), Workers :: pos_integer()) ->
    pos_integer().

-doc "The number of the worker that X belongs to, from 1.".
-callback owner(X :: non_neg_integer(), SlotsEach :: pos_integer(), Workers :: pos_integer()) ->
    pos_integer().

-doc "An empty part.".
-callback part(Worker :: pos_integer(), SlotsEach :: pos_integer(), Workers :: pos_integer()) ->
    term().

-doc "The part with X, or `seen` when it has X.".
-callback insert(X :: non_neg_integer(), term()) -> seen | term().

-doc "The content of a part.".
-callback contents(term()) -> contents().

-doc """
A table of a kind for the space `[0, N)`, for so many workers and with at least so many slots.
""".
-spec new(kind(), N :: pos_integer(), Workers :: pos_integer(), Slots :: pos_integer()) -> spread().
new(Kind, N, Workers, Slots) ->
    Module = module(Kind),
    {Module, N, Workers, Module:slots(N, Slots, Workers)}.

module(hash) -> sderl_orbit_table_hash;
module(compact) -> sderl_orbit_table_compact.

-doc "The names of the kinds.".
-spec kinds() -> [kind()].
kinds() -> [hash, compact].

-doc "The number of the worker that X belongs to, from 1.".
-spec owner(X :: non_neg_integer(), spread()) -> pos_integer().
owner(X, {Module, _, Workers, Slots}) -> Module:owner(X, Slots, Workers).

-doc "A worker's part, empty.".
-spec part(Worker :: pos_integer(), spread()) -> part().
part(Worker, {Module, _, Workers, Slots}) -> {Module, Module:part(Worker, Slots, Workers)}.

-doc "Adds X, which belongs to this part. `seen` when it was there.".
-spec insert(X :: non_neg_integer(), part()) -> part() | seen.
insert(X, {Module, Part}) ->
    case Module:insert(X, Part) of
        seen -> seen;
        New -> {Module, New}
    end.

-doc "The content of a part.".
-spec contents(part()) -> contents().
contents({Module, Part}) -> Module:contents(Part).

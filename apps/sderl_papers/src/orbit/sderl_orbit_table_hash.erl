%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_table_hash).
-moduledoc "The published table of Orbit: a fixed array of buckets, which are lists.".

-behaviour(sderl_orbit_table).

-export([slots/3, owner/3, part/3, insert/2, contents/1]).

-type part() ::
    {Total :: pos_integer(), First :: non_neg_integer(), array:array([non_neg_integer()])}.

-doc "As published: the workers' equal shares, and one more.".
-spec slots(pos_integer(), pos_integer(), pos_integer()) -> pos_integer().
slots(_N, Slots, Workers) -> Slots div Workers + 1.

-doc "By the slot that its hash falls on.".
-spec owner(non_neg_integer(), pos_integer(), pos_integer()) -> pos_integer().
owner(X, Each, Workers) -> erlang:phash2(X) rem (Each * Workers) div Each + 1.

-doc "Empty buckets.".
-spec part(pos_integer(), pos_integer(), pos_integer()) -> part().
part(Worker, Each, Workers) ->
    {Each * Workers, (Worker - 1) * Each, array:new(Each, {default, []})}.

-doc "Looks through one bucket.".
-spec insert(non_neg_integer(), part()) -> seen | part().
insert(X, {Total, First, Buckets}) ->
    Slot = erlang:phash2(X) rem Total - First,
    Bucket = array:get(Slot, Buckets),
    case lists:member(X, Bucket) of
        true -> seen;
        false -> {Total, First, array:set(Slot, [X | Bucket], Buckets)}
    end.

-doc "Goes through all buckets.".
-spec contents(part()) -> sderl_orbit_table:contents().
contents({_, _, Buckets}) ->
    {Size, Sum, Freq} = array:sparse_foldl(
        fun(_, Bucket, {Size, Sum, Freq}) ->
            Length = length(Bucket),
            {Size + Length, Sum + lists:sum(Bucket),
             maps:update_with(Length, fun(C) -> C + 1 end, 1, Freq)}
        end,
        {0, 0, #{}},
        Buckets
    ),
    Slots = array:size(Buckets),
    Used = lists:sum(maps:values(Freq)),
    #{
        size => Size,
        sum => Sum,
        bytes => erts_debug:flat_size(Buckets) * erlang:system_info(wordsize),
        slots => Slots,
        nonempty_slots => Used,
        max_freq => lists:max([0 | maps:keys(Freq)]),
        freq => maps:merge(Freq, #{0 => Slots - Used || Slots > Used})
    }.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_index).
-moduledoc """
Where events are, in files and in memory: for each stretch of some 64 KB, its first and last number
and time, and the levels that occur in it. Pure.

So the index of a gigabyte has 16,000 entries, and a search reads only stretches of its time.
""".

-export([new/0, add/3, keep/2, pop_oldest/1, put_oldest/2, drop_file/2]).
-export([stretches/1, bytes/1, memory/1, range/1, last/1]).
-export_type([index/0, stretch/0, place/0]).

-doc "The offset in a file, or the records themselves.".
-type place() :: {file, file:filename_all(), Offset :: non_neg_integer()} | {memory, binary()}.

-doc "Some records in a row. `levels` has a bit for each severity.".
-type stretch() :: #{
    first := pos_integer(),
    last := pos_integer(),
    from := sderl_mon_types:t(),
    to := sderl_mon_types:t(),
    levels := non_neg_integer(),
    bytes := non_neg_integer(),
    place := place()
}.

%% The newest first. The records of the newest stretch in memory are in pieces, the last first.
-record(index, {
    open = none :: none | stretch(),
    pieces = [] :: [binary()],
    closed = [] :: [stretch()],
    memory = 0 :: non_neg_integer()
}).
-opaque index() :: #index{}.

-define(STRETCH, 65_536).

-doc "No records.".
-spec new() -> index().
new() -> #index{}.

-doc "Adds a record: at an offset of a file, or in memory.".
-spec add(sderl_mon_log_record:key(), place(), index()) -> index().
add({Id, T, Severity, Size}, Place, #index{open = none} = Index) ->
    Open = #{first => Id, last => Id, from => T, to => T, levels => 1 bsl Severity, bytes => Size,
             place => empty(Place)},
    remember(Place, Index#index{open = Open});
add({Id, T, Severity, Size} = Key, Place, #index{open = Open} = Index) ->
    #{bytes := Bytes, from := From, to := To, levels := Levels, place := At} = Open,
    case Bytes + Size > ?STRETCH orelse not is_same(Place, At) of
        true -> add(Key, Place, close(Index));
        false ->
            remember(Place, Index#index{
                open = Open#{last := Id, from := min(From, T), to := max(To, T),
                             levels := Levels bor (1 bsl Severity), bytes := Bytes + Size}
            })
    end.

empty({memory, _}) -> {memory, <<>>};
empty(File) -> File.

is_same({memory, _}, {memory, _}) -> true;
is_same({file, File, _}, {file, File, _}) -> true;
is_same(_, _) -> false.

remember({memory, Record}, #index{pieces = Pieces, memory = Memory} = Index) ->
    Index#index{pieces = [Record | Pieces], memory = Memory + byte_size(Record)};
remember(_, Index) -> Index.

close(#index{open = none} = Index) -> Index;
close(#index{closed = Closed} = Index) ->
    Index#index{open = none, pieces = [], closed = [whole(Index) | Closed]}.

whole(#index{open = #{place := {memory, _}} = Open, pieces = Pieces}) ->
    Open#{place := {memory, iolist_to_binary(lists:reverse(Pieces))}};
whole(#index{open = Open}) -> Open.

-doc """
Drops the oldest stretches, so that at most `Bytes` stay. All of them must be in memory.
""".
-spec keep(Bytes :: non_neg_integer(), index()) -> index().
keep(Most, #index{memory = Memory} = Index) when Memory =< Most -> Index;
keep(Most, #index{closed = Closed, memory = Memory} = Index) ->
    {Kept, Left} = drop(lists:reverse(Closed), Memory, Most),
    Index#index{closed = lists:reverse(Kept), memory = Left}.

drop([#{bytes := Bytes} | Rest], Memory, Most) when Memory > Most ->
    drop(Rest, Memory - Bytes, Most);
drop(Rest, Memory, _) -> {Rest, Memory}.

-doc "Takes out the oldest stretch. All of them must be in memory.".
-spec pop_oldest(index()) -> {stretch(), index()} | none.
pop_oldest(#index{open = none, closed = []}) -> none;
pop_oldest(#index{closed = []} = Index) -> pop_oldest(close(Index));
pop_oldest(#index{closed = Closed, memory = Memory} = Index) ->
    #{bytes := Bytes} = Oldest = lists:last(Closed),
    {Oldest, Index#index{closed = lists:droplast(Closed), memory = Memory - Bytes}}.

-doc "Puts a stretch back as the oldest.".
-spec put_oldest(stretch(), index()) -> index().
put_oldest(#{bytes := Bytes} = Oldest, #index{closed = Closed, memory = Memory} = Index) ->
    Index#index{closed = Closed ++ [Oldest], memory = Memory + Bytes}.

-doc "A file was removed.".
-spec drop_file(file:filename_all(), index()) -> index().
drop_file(File, #index{closed = Closed} = Index) ->
    Index#index{closed = [S || #{place := Place} = S <- Closed, not is_of(File, Place)]}.

is_of(File, {file, File, _}) -> true;
is_of(_, _) -> false.

-doc "All stretches, the newest first.".
-spec stretches(index()) -> [stretch()].
stretches(#index{open = none, closed = Closed}) -> Closed;
stretches(#index{closed = Closed} = Index) -> [whole(Index) | Closed].

-doc "The bytes of all records.".
-spec bytes(index()) -> non_neg_integer().
bytes(#index{open = none, closed = Closed}) -> bytes(Closed, 0);
bytes(#index{open = Open, closed = Closed}) -> bytes([Open | Closed], 0).

bytes([], Sum) -> Sum;
bytes([#{bytes := Bytes} | Rest], Sum) when is_integer(Bytes), is_integer(Sum) ->
    bytes(Rest, Sum + Bytes).

-doc "The bytes of the records in memory.".
-spec memory(index()) -> non_neg_integer().
memory(#index{memory = Memory}) -> Memory.

-doc "The first and the last time.".
-spec range(index()) -> none | {sderl_mon_types:t(), sderl_mon_types:t()}.
range(#index{open = Open, closed = Closed}) ->
    case [{F, T} || #{from := F, to := T} <- [Open | Closed]] of
        [] -> none;
        Spans -> {lists:min([F || {F, _} <- Spans]), lists:max([T || {_, T} <- Spans])}
    end.

-doc "The number of the last event; 0 if there is none.".
-spec last(index()) -> non_neg_integer().
last(#index{open = #{last := Last}}) -> Last;
last(#index{closed = [#{last := Last} | _]}) -> Last;
last(_) -> 0.

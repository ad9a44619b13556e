%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_cells).
-moduledoc """
What processes did in each of many equal parts of the time, from their intervals. The counts are in
an ETS table of the process that made it, which is far quicker than a map.

An interval costs the same however long it is: the parts in which it begins and ends get its
nanoseconds, and of those between them it is remembered where they begin and end. Process 0 stands
for all of them together, and has only `running` and `runnable`.

Memory grows with the parts that have something begin or end. So the rows are taken out from time to
time (`take/1`), and each portion is whole: the sums of several portions are the sums of all.
""".

-export([new/2, add/6, size/1, take/1, encode/1, decode/1, fold_rows/4, coarser/3]).
-export_type([cells/0, what/0, row/0]).

-type what() :: running | runnable | waiting | gc.
-doc """
Of a process and a part: nanoseconds of the four, and how many more (or fewer) intervals of each
cover the parts from this one on than those before.
""".
-type row() :: {Process :: non_neg_integer(), Part :: non_neg_integer(), Counts :: tuple()}.

-record(cells, {
    begin_at :: integer(),
    width :: pos_integer(),
    table :: ets:table()
}).
-opaque cells() :: #cells{}.

%% There are fewer parts, so that process and part are one small number.
-define(PARTS, (1 bsl 24)).
-define(NONE(Key), {Key, 0, 0, 0, 0, 0, 0, 0, 0}).

-doc "Nothing yet, in parts of this width from a time on.".
-spec new(Begin :: integer(), Width :: pos_integer()) -> cells().
new(Begin, Width) ->
    #cells{begin_at = Begin, width = Width, table = ets:new(?MODULE, [set, private])}.

-doc "So many times this interval of a process: -1 takes it away again.".
-spec add(what(), Process :: non_neg_integer(), integer(), integer(), Times :: integer(),
          cells()) -> ok.
add(What, P, From0, To0, Times, #cells{begin_at = Begin, width = Width, table = Table}) ->
    From = max(0, From0 - Begin),
    To = To0 - Begin,
    case To > From of
        true -> covered(place(What), P, From, To, From div Width, To div Width, Width, Times,
                        Table);
        false -> ok
    end.

%% The key is the first field.
place(running) -> 2;
place(runnable) -> 3;
place(waiting) -> 4;
place(gc) -> 5.

covered(At, P, From, To, Part, Part, _, Times, Table) ->
    plus(P, Part, {At, Times * (To - From)}, Table);
covered(At, P, From, To, First, Last, Width, Times, Table) ->
    ok = plus(P, First, {At, Times * ((First + 1) * Width - From)}, Table),
    Rest = {At, Times * (To - Last * Width)},
    case Last - First of
        1 -> plus(P, Last, Rest, Table);
        _ ->
            ok = plus(P, First + 1, {At + 4, Times}, Table),
            plus(P, Last, [Rest, {At + 4, -Times}], Table)
    end.

plus(P, Part, Plus, Table) ->
    Key = P * ?PARTS + Part,
    _ = ets:update_counter(Table, Key, Plus, ?NONE(Key)),
    ok.

-doc "How many rows there are.".
-spec size(cells()) -> non_neg_integer().
size(#cells{table = Table}) -> ets:info(Table, size).

-doc "Takes the rows out, by process and part.".
-spec take(cells()) -> [row()].
take(#cells{table = Table}) ->
    Rows = lists:keysort(1, ets:tab2list(Table)),
    true = ets:delete_all_objects(Table),
    [{Key div ?PARTS, Key rem ?PARTS, {A, B, C, D, E, F, G, H}}
     || {Key, A, B, C, D, E, F, G, H} <- Rows].

-doc "Rows for a file.".
-spec encode([row()]) -> binary().
encode(Rows) ->
    Z = zlib:open(),
    %% The fastest level, as of blocks of events.
    ok = zlib:deflateInit(Z, 1),
    Compressed = zlib:deflate(Z, << <<P:32, Part:32, A:64/signed, B:64/signed, C:64/signed,
                                      D:64/signed, E:32/signed, F:32/signed, G:32/signed,
                                      H:32/signed>>
                                    || {P, Part, {A, B, C, D, E, F, G, H}} <- Rows >>, finish),
    ok = zlib:close(Z),
    iolist_to_binary(Compressed).

-doc "The rows of a file.".
-spec decode(binary()) -> [row()].
decode(Bin) ->
    [{P, Part, {A, B, C, D, E, F, G, H}}
     || <<P:32, Part:32, A:64/signed, B:64/signed, C:64/signed, D:64/signed, E:32/signed,
          F:32/signed, G:32/signed, H:32/signed>> <= zlib:uncompress(Bin)].

-doc """
Calls the function with what rows say, in their order, of the processes for which the second
function is true: `part` and nanoseconds within that part, or `whole`, the first part, the one
behind the last, and how many times these are covered. The rows are those of one portion.
""".
-spec fold_rows(Fun, fun((Process :: non_neg_integer()) -> boolean()), Acc, [row()]) -> Acc when
    Fun :: fun((what(), non_neg_integer(),
                {part, non_neg_integer(), integer()}
                | {whole, non_neg_integer(), non_neg_integer(), integer()}, Acc) -> Acc).
fold_rows(Fun, IsWanted, Acc, Rows) -> each(Rows, none, Fun, IsWanted, Acc).

%% At the end of a process nothing goes on: a portion is whole.
each([], _, _, _, Acc) -> Acc;
each([{P, Part, Row} | Rows], {P, Since, Open}, Fun, IsWanted, Acc) ->
    each(Rows, {P, Part, opened(Open, Row)}, Fun, IsWanted,
         part(P, Part, Row, Fun, whole(P, Since, Part, Open, Fun, Acc)));
each([{P, Part, Row} | Rows], _, Fun, IsWanted, Acc) ->
    case IsWanted(P) of
        true ->
            each(Rows, {P, Part, opened({0, 0, 0, 0}, Row)}, Fun, IsWanted,
                 part(P, Part, Row, Fun, Acc));
        false -> each(Rows, none, Fun, IsWanted, Acc)
    end.

opened({A, B, C, D}, {_, _, _, _, E, F, G, H}) -> {A + E, B + F, C + G, D + H}.

part(P, Part, {A, B, C, D, _, _, _, _}, Fun, Acc0) ->
    lists:foldl(fun({_, 0}, Acc) -> Acc;
                   ({What, Ns}, Acc) -> Fun(What, P, {part, Part, Ns}, Acc)
                end, Acc0, [{running, A}, {runnable, B}, {waiting, C}, {gc, D}]).

whole(_, _, _, {0, 0, 0, 0}, _, Acc) -> Acc;
whole(P, Since, Part, {A, B, C, D}, Fun, Acc0) ->
    lists:foldl(fun({_, 0}, Acc) -> Acc;
                   ({What, N}, Acc) -> Fun(What, P, {whole, Since, Part, N}, Acc)
                end, Acc0, [{running, A}, {runnable, B}, {waiting, C}, {gc, D}]).

-doc "Adds the rows of a portion to cells that are so many times as wide.".
-spec coarser([row()], Factor :: pos_integer(), cells()) -> ok.
coarser(Rows, Factor, #cells{begin_at = Begin, width = Width, table = Table} = Cells) ->
    Narrow = Width div Factor,
    fold_rows(fun(What, P, {part, Part, Ns}, ok) ->
                     plus(P, Part div Factor, {place(What), Ns}, Table);
                 (What, P, {whole, First, Last, N}, ok) ->
                     add(What, P, Begin + First * Narrow, Begin + Last * Narrow, N, Cells)
              end, fun(_) -> true end, ok, Rows).

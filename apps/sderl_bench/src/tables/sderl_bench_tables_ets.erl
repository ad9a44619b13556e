%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_ets).
-moduledoc """
A table of ETS with its options. A `put` into a bag adds an object to those of the key, and a
`delete` removes all of them.
""".

-behaviour(sderl_bench_table).

-export([summary/0, variants/0, can/1, new/1, client/2, read/2, put/3, delete/2, add/2, range/3,
         sum/1, close/1, uses/0]).

-doc false.
-spec summary() -> string().
summary() -> "tables of ETS".

-doc false.
-spec variants() -> [sderl_bench_table:variant(), ...].
variants() ->
    [variant(Type, Read, Write, Counters)
     || Type <- [set, ordered_set, bag],
        {Write, Counters} <- [{false, default}, {auto, default}, {true, default},
                              {true, Type =/= ordered_set}, {auto, false}],
        Read <- [false, true]].

%% The usual ones have one option at most, and a bag has none.
variant(Type, Read, Write, Counters) ->
    Settings = #{type => Type, read_concurrency => Read, write_concurrency => Write,
                 decentralized_counters => Counters},
    Named = [["+read" || Read],
             case Write of auto -> "+auto"; true -> "+write"; false -> "" end,
             case Counters of default -> ""; true -> "+counters"; false -> "-counters" end],
    Usual = Counters =:= default andalso not (Read andalso Write =/= false) andalso
        (Type =/= bag orelse not Read andalso Write =:= false),
    {lists:flatten([atom_to_list(Type) | Named]),
     case Usual of true -> usual; false -> special end,
     Settings,
     lists:flatten(io_lib:format("ets:new(Name, ~0p)", [options(Settings)]))}.

-doc false.
-spec can(sderl_bench_table:settings()) -> [sderl_bench_table:op(), ...].
can(#{type := ordered_set}) -> [read, put, delete, add, range];
can(#{type := set}) -> [read, put, delete, add];
can(#{type := bag}) -> [read, put, delete].

options(#{type := Type, read_concurrency := Read, write_concurrency := Write,
          decentralized_counters := Counters}) ->
    [Type, public] ++ [{read_concurrency, Read} || Read] ++
        [{write_concurrency, Write} || Write =/= false] ++
        [{decentralized_counters, Counters} || Counters =/= default].

-doc false.
-spec new(sderl_bench_table:settings()) -> ets:table().
new(Settings) ->
    Table = ets:new(?MODULE, options(Settings)),
    true = ets:insert(Table, sderl_bench_tables_fill:rows(Settings)),
    Table.

-doc false.
-spec client(ets:table(), sderl_bench_table:settings()) -> ets:table().
client(Table, _) -> Table.

-doc false.
-spec read(pos_integer(), ets:table()) -> ets:table().
read(Key, Table) ->
    _ = ets:lookup(Table, Key),
    Table.

-doc false.
-spec put(pos_integer(), term(), ets:table()) -> ets:table().
put(Key, Value, Table) ->
    true = ets:insert(Table, {Key, Value}),
    Table.

-doc false.
-spec delete(pos_integer(), ets:table()) -> ets:table().
delete(Key, Table) ->
    true = ets:delete(Table, Key),
    Table.

-doc false.
-spec add(pos_integer(), ets:table()) -> ets:table().
add(Key, Table) ->
    _ = ets:update_counter(Table, Key, 1, {Key, 0}),
    Table.

-doc false.
-spec range(pos_integer(), pos_integer(), ets:table()) -> ets:table().
range(Key, Count, Table) ->
    following(ets:next_lookup(Table, Key), Count, Table).

following(_, 0, Table) -> Table;
following('$end_of_table', _, Table) -> Table;
following({Key, _}, Count, Table) ->
    following(ets:next_lookup(Table, Key), Count - 1, Table).

-doc false.
-spec sum(ets:table()) -> integer().
sum(Table) -> ets:foldl(fun({_, Value}, Sum) -> Value + Sum end, 0, Table).

-doc false.
-spec close(ets:table()) -> true.
close(Table) -> ets:delete(Table).

-doc false.
-spec uses() -> [module()].
uses() -> [sderl_bench_tables_fill].

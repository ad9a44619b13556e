%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_shards).
-moduledoc "Several tables of the kind `set` without options; the hash of a key says which.".

-behaviour(sderl_bench_table).

-export([summary/0, variants/0, can/1, new/1, client/2, read/2, put/3, delete/2, add/2, sum/1,
         close/1, uses/0]).

-doc false.
-spec summary() -> string().
summary() -> "tables of the kind set, by the hash of the key".

-doc false.
-spec variants() -> [sderl_bench_table:variant(), ...].
variants() ->
    [{"sharded", usual, #{}, "several ets:new(Name, [set, public]), and erlang:phash2/2"}].

-doc false.
-spec can(sderl_bench_table:settings()) -> [sderl_bench_table:op(), ...].
can(_) -> [read, put, delete, add].

-doc false.
-spec new(sderl_bench_table:settings()) -> tuple().
new(#{shards := Count} = Settings) ->
    Tables = list_to_tuple([ets:new(?MODULE, [set, public]) || _ <- lists:seq(1, Count)]),
    _ = [ets:insert(table(Key, Tables), Row)
         || {Key, _} = Row <- sderl_bench_tables_fill:rows(Settings)],
    Tables.

table(Key, Tables) -> element(1 + erlang:phash2(Key, tuple_size(Tables)), Tables).

-doc false.
-spec client(tuple(), sderl_bench_table:settings()) -> tuple().
client(Tables, _) -> Tables.

-doc false.
-spec read(pos_integer(), tuple()) -> tuple().
read(Key, Tables) ->
    _ = ets:lookup(table(Key, Tables), Key),
    Tables.

-doc false.
-spec put(pos_integer(), term(), tuple()) -> tuple().
put(Key, Value, Tables) ->
    true = ets:insert(table(Key, Tables), {Key, Value}),
    Tables.

-doc false.
-spec delete(pos_integer(), tuple()) -> tuple().
delete(Key, Tables) ->
    true = ets:delete(table(Key, Tables), Key),
    Tables.

-doc false.
-spec add(pos_integer(), tuple()) -> tuple().
add(Key, Tables) ->
    _ = ets:update_counter(table(Key, Tables), Key, 1, {Key, 0}),
    Tables.

-doc false.
-spec sum(tuple()) -> number().
sum(Tables) ->
    lists:sum([ets:foldl(fun({_, Value}, Sum) -> Value + Sum end, 0, Table)
               || Table <- tuple_to_list(Tables)]).

-doc false.
-spec close(tuple()) -> ok.
close(Tables) -> lists:foreach(fun ets:delete/1, tuple_to_list(Tables)).

-doc false.
-spec uses() -> [module()].
uses() -> [sderl_bench_tables_fill].

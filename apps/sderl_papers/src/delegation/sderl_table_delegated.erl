%% SPDX-License-Identifier: Apache-2.0
-module(sderl_table_delegated).
-moduledoc """
`m:sderl_delegated` as a table of `bin/sderl bench tables`. Additions have no answer, as those of
`counters` have none.
""".

-behaviour(sderl_bench_table).

-export([summary/0, variants/0, can/1, new/1, client/2, read/2, put/3, delete/2, add/2, finish/1,
         sum/1, close/1, uses/0]).

-doc false.
-spec summary() -> string().
summary() -> "operations are handed to the process that owns the key; a prototype".

-doc false.
-spec variants() -> [sderl_bench_table:variant(), ...].
variants() ->
    [{"delegation", usual, #{batch => 32}, "sderl_delegated:new(#{})"},
     {"delegation/1", special, #{batch => 1}, "sderl_delegated:new(#{batch => 1})"}].

-doc false.
-spec can(sderl_bench_table:settings()) -> [sderl_bench_table:op(), ...].
can(_) -> [read, put, delete, add].

-doc false.
-spec new(sderl_bench_table:settings()) -> sderl_delegated:delegated().
new(#{shards := Shards, batch := Batch} = Settings) ->
    Table = sderl_delegated:new(#{shards => Shards, batch => Batch}),
    Filled = lists:foldl(fun({Key, Value}, Client) -> sderl_delegated:put(Key, Value, Client) end,
                         sderl_delegated:client(Table), sderl_bench_tables_fill:rows(Settings)),
    _ = sderl_delegated:flush(Filled),
    Table.

-doc false.
-spec client(sderl_delegated:delegated(), sderl_bench_table:settings()) ->
    sderl_delegated:client().
client(Table, _) -> sderl_delegated:client(Table).

-doc false.
-spec read(pos_integer(), sderl_delegated:client()) -> sderl_delegated:client().
read(Key, Client) ->
    {_, Next} = sderl_delegated:get(Key, Client),
    Next.

-doc false.
-spec put(pos_integer(), term(), sderl_delegated:client()) -> sderl_delegated:client().
put(Key, Value, Client) -> sderl_delegated:put(Key, Value, Client).

-doc false.
-spec delete(pos_integer(), sderl_delegated:client()) -> sderl_delegated:client().
delete(Key, Client) -> sderl_delegated:delete(Key, Client).

-doc false.
-spec add(pos_integer(), sderl_delegated:client()) -> sderl_delegated:client().
add(Key, Client) -> sderl_delegated:add(Key, 1, Client).

-doc false.
-spec finish(sderl_delegated:client()) -> sderl_delegated:client().
finish(Client) -> sderl_delegated:flush(Client).

-doc false.
-spec sum(sderl_delegated:delegated()) -> number().
sum(Table) ->
    lists:sum([ets:foldl(fun({_, Value}, Sum) -> Value + Sum end, 0, Of)
               || Of <- sderl_delegated:tables(Table)]).

-doc false.
-spec close(sderl_delegated:delegated()) -> ok.
close(Table) -> sderl_delegated:close(Table).

-doc false.
-spec uses() -> [module()].
uses() -> [sderl_delegated, sderl_delegated_shard, sderl_bench_tables_fill].

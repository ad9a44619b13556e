%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_none).
-moduledoc "No table: the time of the workers themselves, which is part of all other times.".

-behaviour(sderl_bench_table).

-export([summary/0, variants/0, can/1, new/1, client/2, read/2, put/3, delete/2, add/2, range/3,
         close/1]).

-doc false.
-spec summary() -> string().
summary() -> "no table: the time of the workers themselves".

-doc false.
-spec variants() -> [sderl_bench_table:variant(), ...].
variants() -> [{"none", usual, #{}, "no table"}].

-doc false.
-spec can(sderl_bench_table:settings()) -> [sderl_bench_table:op(), ...].
can(_) -> [read, put, delete, add, range].

-doc false.
-spec new(sderl_bench_table:settings()) -> none.
new(_) -> none.

-doc false.
-spec client(none, sderl_bench_table:settings()) -> none.
client(none, _) -> none.

-doc false.
-spec read(pos_integer(), none) -> none.
read(_, Client) -> Client.

-doc false.
-spec put(pos_integer(), term(), none) -> none.
put(_, _, Client) -> Client.

-doc false.
-spec delete(pos_integer(), none) -> none.
delete(_, Client) -> Client.

-doc false.
-spec add(pos_integer(), none) -> none.
add(_, Client) -> Client.

-doc false.
-spec range(pos_integer(), pos_integer(), none) -> none.
range(_, _, Client) -> Client.

-doc false.
-spec close(none) -> ok.
close(none) -> ok.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_array).
-moduledoc """
An array of numbers: `counters`, with or without the option `write_concurrency`, or `atomics`. It
has a number for every key, so there is nothing to delete.
""".

-behaviour(sderl_bench_table).

-export([summary/0, variants/0, can/1, new/1, client/2, read/2, add/2, sum/1, close/1]).

-type array() :: {counters, counters:counters_ref(), pos_integer()}
    | {atomics, atomics:atomics_ref(), pos_integer()}.

-doc false.
-spec summary() -> string().
summary() -> "arrays of numbers, with one for every key".

-doc false.
-spec variants() -> [sderl_bench_table:variant(), ...].
variants() ->
    [{"counters", usual, #{type => counters, write_concurrency => false},
      "counters:new(Size, [])"},
     {"counters+write", usual, #{type => counters, write_concurrency => true},
      "counters:new(Size, [write_concurrency])"},
     {"atomics", usual, #{type => atomics}, "atomics:new(Size, [])"}].

-doc false.
-spec can(sderl_bench_table:settings()) -> [sderl_bench_table:op(), ...].
can(_) -> [read, add].

-doc false.
-spec new(sderl_bench_table:settings()) -> array().
new(#{type := atomics, keys := Keys}) -> {atomics, atomics:new(Keys, []), Keys};
new(#{type := counters, write_concurrency := true, keys := Keys}) ->
    {counters, counters:new(Keys, [write_concurrency]), Keys};
new(#{type := counters, keys := Keys}) -> {counters, counters:new(Keys, [atomics]), Keys}.

-doc false.
-spec client(array(), sderl_bench_table:settings()) -> array().
client(Array, _) -> Array.

-doc false.
-spec read(pos_integer(), array()) -> array().
read(Key, {counters, Ref, _} = Array) ->
    _ = counters:get(Ref, Key),
    Array;
read(Key, {atomics, Ref, _} = Array) ->
    _ = atomics:get(Ref, Key),
    Array.

-doc false.
-spec add(pos_integer(), array()) -> array().
add(Key, {counters, Ref, _} = Array) ->
    ok = counters:add(Ref, Key, 1),
    Array;
add(Key, {atomics, Ref, _} = Array) ->
    _ = atomics:add_get(Ref, Key, 1),
    Array.

-doc false.
-spec sum(array()) -> number().
sum({counters, Ref, Keys}) -> lists:sum([counters:get(Ref, Key) || Key <- lists:seq(1, Keys)]);
sum({atomics, Ref, Keys}) -> lists:sum([atomics:get(Ref, Key) || Key <- lists:seq(1, Keys)]).

-doc "The collector of garbage takes it.".
-spec close(array()) -> ok.
close(_) -> ok.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_term).
-moduledoc """
A map in one persistent term. It is only read here: a change copies all of the map, and of two
changes at the same time one is lost.
""".

-behaviour(sderl_bench_table).

-export([summary/0, variants/0, can/1, new/1, client/2, read/2, close/1, uses/0]).

-doc false.
-spec summary() -> string().
summary() -> "a map in a persistent term, to be read only".

-doc false.
-spec variants() -> [sderl_bench_table:variant(), ...].
variants() -> [{"persistent_term", usual, #{}, "persistent_term:put(Name, Map)"}].

-doc false.
-spec can(sderl_bench_table:settings()) -> [sderl_bench_table:op(), ...].
can(_) -> [read].

-doc false.
-spec new(sderl_bench_table:settings()) -> ok.
new(Settings) ->
    persistent_term:put(?MODULE, maps:from_list(sderl_bench_tables_fill:rows(Settings))).

-doc false.
-spec client(ok, sderl_bench_table:settings()) -> none.
client(ok, _) -> none.

-doc false.
-spec read(pos_integer(), term()) -> term().
read(Key, _) ->
    case persistent_term:get(?MODULE) of
        #{Key := Value} -> Value;
        #{} -> none
    end.

-doc false.
-spec close(ok) -> boolean().
close(ok) -> persistent_term:erase(?MODULE).

-doc false.
-spec uses() -> [module()].
uses() -> [sderl_bench_tables_fill].

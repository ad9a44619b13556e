%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_entity).
-moduledoc """
What is known of one process, or of a port, a name or a process elsewhere, as a row of one width in
a file. Pure. A row is written in patches, as its parts become known, and 0 stands for what is not.
""".

-export([patch/3, decode/2, row_bytes/0, kind/1]).
-export_type([field/0, entity/0, kind/0]).

-define(ROW, 64).

-type kind() :: process | port | name | remote | node | alias.
-type field() :: kind | parent | key | entry | name | start | stop | reason | first.

-doc """
`parent` is a number of an entity; `entry`, `name` and `reason` are numbers of words; `key` is that
of `m:sderl_prof_event`; `first` is the time of its first event.
""".
-type entity() :: #{
    number := pos_integer(),
    kind := kind(),
    key := non_neg_integer(),
    parent := non_neg_integer(),
    entry := non_neg_integer(),
    name := non_neg_integer(),
    reason := non_neg_integer(),
    start := integer() | none,
    stop := integer() | none,
    first := integer() | none
}.

-doc "The bytes of a row.".
-spec row_bytes() -> pos_integer().
row_bytes() -> ?ROW.

-doc "The number of a kind in a row.".
-spec kind(kind()) -> pos_integer().
kind(process) -> 1;
kind(port) -> 2;
kind(name) -> 3;
kind(remote) -> 4;
kind(node) -> 5;
kind(alias) -> 6.

-doc "Where to write a field of an entity, and what.".
-spec patch(Number :: pos_integer(), field(), integer()) -> {non_neg_integer(), binary()}.
patch(Number, Field, Value) ->
    {At, Bits} = place(Field),
    {(Number - 1) * ?ROW + At, <<Value:Bits>>}.

place(kind) -> {0, 8};
place(parent) -> {4, 32};
place(key) -> {8, 64};
place(entry) -> {16, 32};
place(name) -> {20, 32};
place(start) -> {24, 64};
place(stop) -> {32, 64};
place(reason) -> {40, 32};
place(first) -> {44, 64}.

-doc "The entity of a row; `none` where nothing is known.".
-spec decode(Number :: pos_integer(), Row :: binary()) -> entity() | none.
decode(Number, <<Kind, _:24, Parent:32, Key:64, Entry:32, Name:32, Start:64/signed, Stop:64/signed,
                 Reason:32, First:64/signed, _/binary>>) when Kind >= 1, Kind =< 6 ->
    #{number => Number,
      kind => element(Kind, {process, port, name, remote, node, alias}),
      parent => Parent, key => Key, entry => Entry, name => Name, reason => Reason,
      start => time(Start), stop => time(Stop), first => time(First)};
decode(_, _) ->
    none.

time(0) -> none;
time(Time) -> Time.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_delegated).
-moduledoc """
A table for many writers: a client hands an operation to the process that owns the key and goes on.
It is a prototype of the idea of queue delegation locks (D. Klaftenegger, K. Sagonas, K. Winblad,
*Queue Delegation Locking*, 2018), where a thread that finds a lock taken leaves its operation with
the holder. Here the holder is always the same process: a *shard* for each part of the keys, with a
table that only it writes.

```erlang
Table = sderl_delegated:new(#{shards => 8}),
C1 = sderl_delegated:client(Table),
C2 = sderl_delegated:put(key, 1, C1),             % returns at once
{{ok, 1}, C3} = sderl_delegated:get(key, C2),
C4 = sderl_delegated:flush(C3).                   % all of it is done
```

A client is a value that one process keeps; operations without an answer (`put/3`, `delete/2`,
`add/3`) are sent in batches.

## Promises

- Each key is linearisable: all operations on it take effect one at a time, each at an instant
  between its call and its answer. An operation without an answer has that instant before the
  `flush/1`, or any answer of the same shard, that the same client gets next.
- A client's own operations on a key take effect in the order in which it called them; so it reads
  what it wrote. The order of operations on different keys may change, as they may be of two shards.
- A shard has at most `window` unanswered batches of a client; then the client waits, so a fast
  writer cannot fill a mailbox without limit.
- When a shard has died, the next call that waits for it exits with `{delegated, Reason}`. What was
  not answered may be lost.

No promise is made about a batch that was not sent: until a client flushes, others may not see what
it wrote. A read asks a shard only where this client has something under way there; otherwise it
reads the shard's table itself.
""".

-export([new/1, close/1, client/1, put/3, delete/2, add/3, get/2, add_get/3, flush/1, tables/1]).
-export_type([delegated/0, client/0]).

-doc "The shards with their tables.".
-opaque delegated() :: {tuple(), options()}.

-type options() :: #{batch := pos_integer(), window := pos_integer(), shards := pos_integer()}.

%% Of a shard with operations under way: those not sent yet, the latest first, their number, and how
%% many batches were sent since the last answer.
-type under_way() :: {[sderl_delegated_shard:op()], non_neg_integer(), non_neg_integer()}.

-opaque client() :: {tuple(), options(), #{pos_integer() => under_way()}}.

-define(DEFAULTS, #{shards => 4, batch => 32, window => 8}).

-doc """
A table with `shards` processes, which are linked to the caller; a batch has up to `batch`
operations.
""".
-spec new(#{shards => pos_integer(), batch => pos_integer(), window => pos_integer()}) ->
    delegated().
new(Given) ->
    Options = #{shards := Count} = maps:merge(?DEFAULTS, Given),
    {list_to_tuple([sderl_delegated_shard:start_link() || _ <- lists:seq(1, Count)]), Options}.

-doc "Ends the shards, even if operations are not done yet.".
-spec close(delegated()) -> ok.
close({Shards, _}) -> lists:foreach(fun sderl_delegated_shard:stop/1, tuple_to_list(Shards)).

-doc "The tables of the shards, which anyone may read: each row is `{Key, Value}`.".
-spec tables(delegated()) -> [ets:table()].
tables({Shards, _}) -> [Table || {_, Table} <- tuple_to_list(Shards)].

-doc "A client, with which one process uses the table.".
-spec client(delegated()) -> client().
client({Shards, Options}) -> {Shards, Options, #{}}.

-doc "Sets the value of a key, later.".
-spec put(Key :: term(), Value :: term(), client()) -> client().
put(Key, Value, Client) -> later(Key, {put, Key, Value}, Client).

-doc "Removes a key, later.".
-spec delete(Key :: term(), client()) -> client().
delete(Key, Client) -> later(Key, {delete, Key}, Client).

-doc """
Adds to the value of a key, later; a key without a value gets the number. A value that is no integer
is not changed.
""".
-spec add(Key :: term(), integer(), client()) -> client().
add(Key, Number, Client) when is_integer(Number) -> later(Key, {add, Key, Number}, Client).

later(Key, Op, {Shards, #{batch := Batch} = Options, UnderWay}) ->
    Shard = shard(Key, Shards),
    case maps:get(Shard, UnderWay, {[], 0, 0}) of
        {Ops, Count, Sent} when Count + 1 < Batch ->
            {Shards, Options, UnderWay#{Shard => {[Op | Ops], Count + 1, Sent}}};
        {Ops, _, Sent} ->
            {Shards, Options, sent(Shard, [Op | Ops], Sent, Shards, Options, UnderWay)}
    end.

%% The last batch of a window is answered.
sent(Shard, Ops, Sent, Shards, #{window := Window}, UnderWay) when Sent + 1 < Window ->
    sderl_delegated_shard:send(element(Shard, Shards), Ops),
    UnderWay#{Shard => {[], 0, Sent + 1}};
sent(Shard, Ops, _, Shards, _, UnderWay) ->
    ok = sderl_delegated_shard:ask(element(Shard, Shards), Ops, none),
    maps:remove(Shard, UnderWay).

-doc "The value of a key.".
-spec get(Key :: term(), client()) -> {{ok, term()} | none, client()}.
get(Key, {Shards, Options, UnderWay} = Client) ->
    Shard = shard(Key, Shards),
    case UnderWay of
        #{Shard := {Ops, _, _}} ->
            Answer = sderl_delegated_shard:ask(element(Shard, Shards), Ops, {get, Key}),
            {Answer, {Shards, Options, maps:remove(Shard, UnderWay)}};
        #{} ->
            {sderl_delegated_shard:value(element(Shard, Shards), Key), Client}
    end.

-doc "Adds at once, and gives the new value; `no_integer` where the value is no integer.".
-spec add_get(Key :: term(), integer(), client()) -> {integer() | {error, no_integer}, client()}.
add_get(Key, Number, {Shards, Options, UnderWay}) when is_integer(Number) ->
    Shard = shard(Key, Shards),
    {Ops, _, _} = maps:get(Shard, UnderWay, {[], 0, 0}),
    Answer = sderl_delegated_shard:ask(element(Shard, Shards), Ops, {add, Key, Number}),
    {Answer, {Shards, Options, maps:remove(Shard, UnderWay)}}.

-doc "Returns when all operations of this client are done.".
-spec flush(client()) -> client().
flush({Shards, Options, UnderWay}) ->
    Asked = [sderl_delegated_shard:request(element(Shard, Shards), Ops, none)
             || Shard := {Ops, _, _} <- UnderWay],
    lists:foreach(fun sderl_delegated_shard:answer/1, Asked),
    {Shards, Options, #{}}.

shard(Key, Shards) -> 1 + erlang:phash2(Key, tuple_size(Shards)).

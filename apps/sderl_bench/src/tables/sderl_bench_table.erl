%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_table).
-moduledoc """
A kind of table that `bin/sderl bench tables` measures: a module with these functions, listed as one
of the `table_kinds` of its application (`{Name, Module}` in the `env` of its `.app.src`).

Keys are integers from 1 to `keys`. The main process makes the table with `new/1`, which fills it,
and each worker has a state of its own (`client/2`), which every operation gets and returns. An
operation that a kind does not list in `can/1` is never called.

Its module, and those that `uses/0` names, must compile by themselves on every OTP that is measured,
and call nothing else but OTP.
""".

-export([all/0]).
-export_type([op/0, settings/0, variant/0]).

-type op() :: read | put | delete | add | range.

-doc """
The settings of one of its variants, and those of `m:sderl_bench_tables_load`: `keys`, `filled` (one
of so many keys is there at the start), `shards`, `value_words`, the shares of the operations.
""".
-type settings() :: sderl_bench_vm_program:settings().

-doc """
A variant of a kind; the simplest comes first: a name, whether it is among the tables that are
measured by default (`usual`), its settings, and how a program makes such a table.
""".
-type variant() :: {Name :: string(), usual | special, settings(), How :: string()}.

-doc "One line.".
-callback summary() -> string().

-doc "Its variants.".
-callback variants() -> [variant(), ...].

-doc "What a variant can do.".
-callback can(settings()) -> [op(), ...].

-doc "Makes and fills it.".
-callback new(settings()) -> Shared :: term().

-doc "What a worker needs.".
-callback client(Shared :: term(), settings()) -> Client :: term().

-doc "Reads a key, which may be absent.".
-callback read(Key :: pos_integer(), Client) -> Client when Client :: term().
-callback put(Key :: pos_integer(), Value :: term(), Client) -> Client when Client :: term().
-callback delete(Key :: pos_integer(), Client) -> Client when Client :: term().
-doc "Adds 1 to the count of a key.".
-callback add(Key :: pos_integer(), Client) -> Client when Client :: term().
-doc "Reads so many of the present keys, in their order, after a key.".
-callback range(Key :: pos_integer(), Count :: pos_integer(), Client) -> Client
    when Client :: term().

-doc "Returns when all operations of this worker are done; without it they are done at once.".
-callback finish(Client :: term()) -> term().

-doc "The sum of the values, of a table with counts.".
-callback sum(Shared :: term()) -> number().

-doc "Removes it.".
-callback close(Shared :: term()) -> term().

-doc "Other modules that it calls.".
-callback uses() -> [module()].

-optional_callbacks([put/3, delete/2, add/2, range/3, finish/1, sum/1, uses/0]).

-doc "The kinds that applications offer.".
-spec all() -> [{Name :: string(), module()}].
all() -> sderl_catalogue:all(table_kinds).

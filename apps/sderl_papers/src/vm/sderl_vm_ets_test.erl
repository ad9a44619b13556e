%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_ets_test).
-moduledoc """
`ets_test`: writers and readers of one table of the kind `set` with its defaults. One writer and 8
readers for each core; 157, 625 or 1,250 keys for each core. Each writer writes every key, each
reader reads every key, all at the same time.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, alone/0, prepare/1, run/2, finish/1]).

-doc false.
-spec summary() -> string().
summary() -> "readers and writers of one table".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{writers => Cores, readers => 8 * Cores,
      keys => Cores * maps:get(Size, #{short => 157, intermediate => 625, long => 1250})}.

-doc false.
-spec alone() -> string().
alone() -> "its table is of one node".

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{writers := Writers, readers := Readers, keys := Keys}) ->
    {(Writers + Readers) * Keys, "operation"}.

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(Settings) ->
    {ets:new(?MODULE, [set, public]), Settings, 0}.

-doc false.
-spec run(run, term()) -> term().
run(run, {Table, #{writers := Writers, readers := Readers, keys := Keys} = Settings, 0}) ->
    Main = self(),
    Workers = [spawn_link(fun() -> Main ! {self(), write(Keys, Table)} end)
               || _ <- lists:seq(1, Writers)] ++
              [spawn_link(fun() -> Main ! {self(), read(Keys, Table, 0)} end)
               || _ <- lists:seq(1, Readers)],
    {Table, Settings, lists:sum([receive {Worker, Count} -> Count end || Worker <- Workers])}.

%% The output is the number of operations and the final content: the results of reads depend on the
%% order of the workers.
-doc false.
-spec finish(term()) -> {integer(), integer()}.
finish({Table, _, Operations}) ->
    Content = ets:foldl(fun({Key, Value}, Sum) -> Key + Value + Sum end, 0, Table),
    true = ets:delete(Table),
    {Operations, Content}.

write(Keys, Table) ->
    lists:foreach(fun(Key) -> ets:insert(Table, {Key, Key * Key}) end, lists:seq(1, Keys)),
    Keys.

read(0, _, Count) -> Count;
read(Key, Table, Count) ->
    case ets:lookup(Table, Key) of
        [{Key, _}] -> read(Key - 1, Table, Count + 1);
        [] -> read(Key - 1, Table, Count + 1)
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_pcmark).
-moduledoc """
`pcmark`: 5 tables of the kind `ordered_set` that 8 workers for each core fold over and update, all
at the same time. 10, 50 or 100 rows for each core in each table; each worker updates each table
once.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, alone/0, prepare/1, run/2, finish/1]).

-doc false.
-spec summary() -> string().
summary() -> "folding over and updating ordered tables".

-define(TABLES, 5).

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{tables => ?TABLES, workers => 8 * Cores,
      rows => Cores * maps:get(Size, #{short => 10, intermediate => 50, long => 100})}.

-doc false.
-spec alone() -> string().
alone() -> "its tables are of one node".

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{tables := Tables, workers := Workers}) ->
    {Tables * Workers, "fold"}.

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(#{tables := Count, rows := Rows} = Settings) ->
    Tables = [ets:new(?MODULE, [ordered_set, public]) || _ <- lists:seq(1, Count)],
    _ = [ets:insert(Table, [{Row, 0} || Row <- lists:seq(1, Rows)]) || Table <- Tables],
    {Tables, Settings, 0}.

-doc false.
-spec run(run, term()) -> term().
run(run, {Tables, #{workers := Workers, rows := Rows} = Settings, 0}) ->
    Main = self(),
    Pids = [spawn_link(fun() -> Main ! {self(), work(Tables, I, Rows, 0)} end)
            || I <- lists:seq(1, Workers)],
    {Tables, Settings, lists:sum([receive {Pid, Seen} -> Seen end || Pid <- Pids])}.

%% The output shows that every worker has seen all rows of all tables, and made all its updates.
-doc false.
-spec finish(term()) -> {Seen :: non_neg_integer(), Updates :: non_neg_integer()}.
finish({Tables, _, Seen}) ->
    Updates = lists:sum([ets:foldl(fun({_, Count}, Sum) -> Count + Sum end, 0, Table)
                         || Table <- Tables]),
    _ = [ets:delete(Table) || Table <- Tables],
    {Seen, Updates}.

work([], _, _, Seen) -> Seen;
work([Table | Tables], I, Rows, Seen) ->
    Here = ets:foldl(fun({_, _}, Count) -> Count + 1 end, 0, Table),
    _ = ets:update_counter(Table, 1 + I rem Rows, 1),
    work(Tables, I, Rows, Seen + Here).

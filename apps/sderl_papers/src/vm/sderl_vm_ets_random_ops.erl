%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_ets_random_ops).
-moduledoc """
`ets_random_ops`: operations on a million random keys of one table, `ordered_set` with
`write_concurrency`, split over one worker for each core. Four stages differ in how many of 100
operations insert, delete and look up: 100, 0 and 0; 50, 50 and 0; 20, 10 and 70; 1, 0 and 99. A
stage has 150,000 operations, 4 and 16 times as many in the larger sizes.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, alone/0, stages/1, prepare/1, run/2, finish/1]).

-doc false.
-spec summary() -> string().
summary() -> "random operations on one table, in four mixes".

-define(KEYS, 1_000_000).
-define(MIXES, #{insert_only => {100, 0}, half_deletes => {50, 50}, mostly_reads => {20, 10},
                 reads => {1, 0}}).

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{workers => Cores, keys => ?KEYS,
      operations => 150_000 * maps:get(Size, #{short => 1, intermediate => 4, long => 16})}.

-doc false.
-spec alone() -> string().
alone() -> "its table is of one node".

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()} | none.
operations(#{workers := Workers, operations := Operations}) when Operations < Workers ->
    none;
operations(#{workers := Workers, operations := Operations} = Settings) ->
    {length(stages(Settings)) * Workers * (Operations div Workers), "operation"}.

-doc false.
-spec stages(sderl_bench_vm_program:settings()) -> [atom(), ...].
stages(_) -> [insert_only, half_deletes, mostly_reads, reads].

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(Settings) ->
    {ets:new(?MODULE, [ordered_set, public, {write_concurrency, true}]), Settings, 0}.

-doc false.
-spec run(atom(), term()) -> term().
run(Stage, {Table, #{workers := Workers, operations := Operations, keys := Keys} = Settings,
            Done}) ->
    Main = self(),
    Mix = map_get(Stage, ?MIXES),
    Each = Operations div Workers,
    Pids = [spawn_link(fun() ->
        State = rand:seed_s(exsss, {Seed, Workers, Operations}),
        Main ! {self(), operate(Each, Table, Keys, Mix, State, 0)}
    end) || Seed <- lists:seq(1, Workers)],
    {Table, Settings, lists:sum([receive {Pid, Count} -> Count end || Pid <- Pids]) + Done}.

%% The final content of the table depends on the order of the workers, the number of operations
%% does not.
-doc false.
-spec finish(term()) -> non_neg_integer().
finish({Table, _, Done}) ->
    true = ets:delete(Table),
    Done.

operate(0, _, _, _, _, Count) -> Count;
operate(Left, Table, Keys, {Inserts, Deletes} = Mix, State0, Count) ->
    {Key, State1} = rand:uniform_s(Keys, State0),
    {Draw, State2} = rand:uniform_s(100, State1),
    _ = if
        Draw =< Inserts -> ets:insert(Table, {Key, Left});
        Draw =< Inserts + Deletes -> ets:delete(Table, Key);
        true -> ets:lookup(Table, Key)
    end,
    operate(Left - 1, Table, Keys, Mix, State2, Count + 1).

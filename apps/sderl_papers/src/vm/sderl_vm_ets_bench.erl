%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_ets_bench).
-moduledoc """
`ets_bench`: a table of the kind `set` and one of the kind `ordered_set`, without options and with
`read_concurrency` and `write_concurrency`, each filled, used with 0, 1 and 10 % of updates, and
emptied; every phase is a stage of its own, split over one worker for each core. 2^14 keys, 2^15
insertions and deletions, 2^17 operations of each mix; 2^16, 2^17 and 2^19 in the intermediate size,
2^21, 2^20 and 2^22 in the long one. Random numbers are the same in every run.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, alone/0, stages/1, prepare/1, run/2, finish/1]).

-doc false.
-spec summary() -> string().
summary() -> "phases of two kinds of table, with and without options".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    {Keys, Changes, Mixed} = maps:get(Size, #{short => {14, 15, 17}, intermediate => {16, 17, 19},
                                              long => {21, 20, 22}}),
    #{workers => Cores, keys => 1 bsl Keys, changes => 1 bsl Changes, mixed => 1 bsl Mixed}.

-doc false.
-spec alone() -> string().
alone() -> "its tables are of one node".

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()} | none.
operations(#{workers := Workers} = Settings) ->
    case lists:sum([Workers * (operations(Phase, Settings) div Workers)
                    || {_, _, Phase} <- phases()]) of
        0 -> none;
        Count -> {Count, "operation"}
    end.

%% {Stage, {Type, Options}, Phase}
phases() ->
    [{list_to_atom(lists:concat([Type, Suffix, "_", Phase])), {Type, Options}, Phase}
     || Type <- [set, ordered_set],
        {Suffix, Options} <- [{"", []}, {"_rw", [{read_concurrency, true},
                                                 {write_concurrency, true}]}],
        Phase <- [insert, mixed_0, mixed_1, mixed_10, delete]].

-doc false.
-spec stages(sderl_bench_vm_program:settings()) -> [atom(), ...].
stages(_) -> [Stage || {Stage, _, _} <- phases()].

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(Settings) ->
    Kinds = lists:uniq([Kind || {_, Kind, _} <- phases()]),
    {Settings, #{Kind => ets:new(?MODULE, [Type, public | Options])
                 || {Type, Options} = Kind <- Kinds}, 0}.

-doc false.
-spec run(atom(), term()) -> term().
run(Stage, {#{workers := Workers} = Settings, Tables, Done}) ->
    {Stage, Kind, Phase} = lists:keyfind(Stage, 1, phases()),
    Table = map_get(Kind, Tables),
    Main = self(),
    Each = operations(Phase, Settings) div Workers,
    Pids = [spawn_link(fun() ->
        Random = rand:seed_s(exsss, erlang:phash2({Phase, Seed})),
        Main ! {self(), operate(Each, Phase, Table, map_get(keys, Settings), Random, 0)}
    end) || Seed <- lists:seq(1, Workers)],
    {Settings, Tables, Done + lists:sum([receive {Pid, Count} -> Count end || Pid <- Pids])}.

operations(Phase, #{changes := Changes}) when Phase =:= insert; Phase =:= delete -> Changes;
operations(_, #{mixed := Mixed}) -> Mixed.

%% The final content of a table depends on the order of the workers, the number of operations
%% does not.
-doc false.
-spec finish(term()) -> non_neg_integer().
finish({_, Tables, Done}) ->
    lists:foreach(fun ets:delete/1, maps:values(Tables)),
    Done.

operate(0, _, _, _, _, Count) -> Count;
operate(Left, Phase, Table, Keys, Random0, Count) ->
    {Key, Random1} = rand:uniform_s(Keys, Random0),
    {Draw, Random} = case updates(Phase) of
        always -> {0, Random1};
        _ -> rand:uniform_s(200, Random1)
    end,
    _ = one(Phase, Draw, Key, Table),
    operate(Left - 1, Phase, Table, Keys, Random, Count + 1).

updates(insert) -> always;
updates(delete) -> always;
updates(mixed_0) -> 0;
updates(mixed_1) -> 1;
updates(mixed_10) -> 10.

%% Half of the updates insert and half delete, so `Share` in percent is one in 200 draws for each.
one(insert, _, Key, Table) -> ets:insert(Table, {Key, Key});
one(delete, _, Key, Table) -> ets:delete(Table, Key);
one(Phase, Draw, Key, Table) ->
    Share = updates(Phase),
    if
        Draw =< Share -> ets:insert(Table, {Key, Draw});
        Draw =< 2 * Share -> ets:delete(Table, Key);
        true -> ets:lookup(Table, Key)
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_catalogue).
-moduledoc """
Finds what each application offers to `bin/sderl`. An application lists it in its own environment
(`env` of its `.app.src`), so that one may be added or removed without a change of the others:

| key | entries |
|---|---|
| `commands` | of `bin/sderl`: `{Name, Module}`, of the behaviour `sderl_command` |
| `experiments` | of `bin/sderl bench`, of the behaviour `sderl_bench_experiment` |
| `workloads` | of `bin/sderl bench monitoring`, of the behaviour `sderl_bench_workload` |
| `vm_programs` | of `bin/sderl bench vm`, of the behaviour `sderl_bench_vm_program` |
| `table_kinds` | of `bin/sderl bench tables`, of the behaviour `sderl_bench_table` |
""".

-export([all/1]).

-doc """
The entries of all applications on the code path whose names begin with `sderl`, in the order of
these names.
""".
-spec all(Key :: atom()) -> [{Name :: string(), module()}].
all(Key) ->
    lists:append([entries(Application, Key) || Application <- applications()]).

applications() ->
    lists:usort([
        list_to_atom(filename:basename(File, ".app"))
     || Folder <- code:get_path(), is_list(Folder), File <- filelib:wildcard("sderl*.app", Folder)
    ]).

entries(Application, Key) ->
    _ = application:load(Application),
    application:get_env(Application, Key, []).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_program).
-moduledoc """
A program that `bin/sderl bench vm` measures: a module with these functions, listed as a
`vm_programs` of its application (`{Name, Module}` in the `env` of its `.app.src`), or named on the
command line with the folder of its `.beam` (`--program my_program --pa DIR`).

```erlang
-module(my_program).
-behaviour(sderl_bench_vm_program).
-export([summary/0, settings/2, run/2]).

summary() -> "sorts lists in processes".
settings(_Size, Cores) -> #{processes => 4 * Cores, length => 10_000}.
run(run, #{processes := Processes, length := Length}) -> ...
```

It is run again and again in a fresh virtual machine, each time by a new process. Only `run/2` is
timed. Its output must be the same with any number of schedulers and any flags: the outputs are
compared. A program that changes anything outside its process (a table, a registered name) undoes
that in `finish/1`.

Its module, and those that `uses/0` names, must compile by themselves on every OTP that is measured,
and call nothing else but OTP and `m:sderl_bench_vm_nodes`.

Each of its settings can be changed on the command line (`--set my_program.length=500`), as long as
it stays of the same kind: so `run/2` takes any positive number for a positive number.

With `spread/0` it can be measured by the number of nodes (`--nodes`). Then its settings have the
nodes as well, with the key `on`, which it must not use itself, and it starts its processes on them:

```erlang
spread() -> "its workers".
run(run, #{workers := Count} = Settings) ->
    Workers = [spawn_link(Node, fun() -> ... end)
               || Node <- sderl_bench_vm_nodes:in_turn(Count, Settings)], ...
```
""".

-export([all/0, find/1, modules/1, spreads/1, alone/1, operations/2]).
-export_type([size/0, settings/0, job/0, operations/0]).

-type size() :: short | intermediate | long.

-doc "The work of a program; it is shown with the result.".
-type settings() :: #{atom() => term()}.

-doc "What the virtual machine measures: a program, or a call.".
-type job() :: {program, module(), settings()} | {call, module(), atom(), [term()]}.

-doc """
How many operations a repetition makes, and what one of them is called, such as `message`. Its
`reductions` are known where the stages are all that a repetition does: reductions are those of the
whole virtual machine, so they have those of `prepare/1` and `finish/1`, too, which are not timed.
""".
-type operations() :: #{count := pos_integer(), unit := binary(), reductions := boolean()}.

-doc "One line.".
-callback summary() -> string().

-doc "The work, by its size and the cores of the machine, never by the number of schedulers.".
-callback settings(size(), Cores :: pos_integer()) -> settings().

-doc "Stages that are timed one by one, in their order; `[run]` where there is no such function.".
-callback stages(settings()) -> [atom(), ...].

-doc "Before the stages, and not timed: what the first stage gets. Without it, the settings.".
-callback prepare(settings()) -> State :: term().

-doc """
One stage. What it gives is passed to the next one; that of the last one is the output.
""".
-callback run(Stage :: atom(), State :: term()) -> term().

-doc """
After the last stage, and not timed: undoes what must not stay, and gives the output. Without it,
the output is what the last stage gave.
""".
-callback finish(State :: term()) -> Output :: term().

-doc "Other modules that it calls.".
-callback uses() -> [module()].

-doc "Which of its processes are on all nodes, in a few words, where it can be on several.".
-callback spread() -> string().

-doc "Why it has no `spread/0`, in a few words.".
-callback alone() -> string().

-doc """
How many operations one repetition makes, and a word for one of them: the report then has the time
of one, and its reductions if there is no `prepare/1` and no `finish/1`. The time is that of all
stages together; where the stages do different things, leave this function out. `none` if these
settings give none.
""".
-callback operations(settings()) -> {pos_integer(), Unit :: string()} | none.

-doc """
The same by the output, where the number is only known after the run. It is called in the virtual
machine that measures, outside the timed part. A program has one of the two functions.
""".
-callback operations(settings(), Output :: term()) -> {pos_integer(), Unit :: string()} | none.

-optional_callbacks([stages/1, prepare/1, finish/1, uses/0, spread/0, alone/0, operations/1,
                     operations/2]).

-doc "The programs that applications offer.".
-spec all() -> [{Name :: string(), module()}].
all() -> sderl_catalogue:all(vm_programs).

-doc """
The module of a name: one of `all/0`, or a module on the code path that has the needed functions.
""".
-spec find(string()) -> {ok, module()} | {error, unicode:chardata()}.
find(Name) ->
    case lists:keyfind(Name, 1, all()) of
        {Name, Module} -> {ok, Module};
        false -> find_module(Name)
    end.

-doc "A module of a program, or of a table, and those that its `uses/0` names.".
-spec modules(module()) -> [module()].
modules(Module) ->
    {module, Module} = code:ensure_loaded(Module),
    [Module | case erlang:function_exported(Module, uses, 0) of
        true -> Module:uses();
        false -> []
    end].

-doc "Whether the program of a module can be on several nodes.".
-spec spreads(module()) -> boolean().
spreads(Module) ->
    {module, Module} = code:ensure_loaded(Module),
    erlang:function_exported(Module, spread, 0).

-doc "Why the program of a module runs on one node only; empty where it does not say.".
-spec alone(module()) -> string().
alone(Module) ->
    {module, Module} = code:ensure_loaded(Module),
    case erlang:function_exported(Module, alone, 0) of
        true -> Module:alone();
        false -> ""
    end.

-doc """
The operations of one repetition, `none` where a program does not tell them before it has run.
""".
-spec operations(module(), settings()) ->
    {ok, operations() | none} | {error, unicode:chardata()}.
operations(Module, Settings) ->
    {module, Module} = code:ensure_loaded(Module),
    case erlang:function_exported(Module, operations, 1) of
        true ->
            try
                known(Module:operations(Settings), Module)
            catch
                Class:Reason ->
                    {error, io_lib:format(":operations/1 crashes: ~ts: ~0tP", [Class, Reason, 20])}
            end;
        false ->
            {ok, none}
    end.

known(none, _) ->
    {ok, none};
known({Count, [_ | _] = Unit} = Given, Module) when is_integer(Count), Count > 0 ->
    case io_lib:printable_unicode_list(Unit) of
        true ->
            {ok, #{count => Count, unit => unicode:characters_to_binary(Unit),
                   reductions => not (erlang:function_exported(Module, prepare, 1) orelse
                                          erlang:function_exported(Module, finish, 1))}};
        false ->
            no_operations(Given)
    end;
known(Given, _) ->
    no_operations(Given).

no_operations(Given) ->
    {error, io_lib:format(": operations/1 must give {Count, \"word\"}, and gives ~0tP",
                          [Given, 20])}.

%% A name without a file must not become an atom.
find_module(Name) ->
    maybe
        true ?= Name =/= "" andalso filename:basename(Name) =:= Name,
        [_ | _] ?= [Dir || Dir <- code:get_path(), is_list(Dir),
                           filelib:is_regular(filename:join(Dir, Name ++ ".beam"))],
        Module = list_to_atom(Name),
        {module, Module} ?= code:ensure_loaded(Module),
        [] ?= [{summary, 0}, {settings, 2}, {run, 2}] -- Module:module_info(exports),
        {ok, Module}
    else
        [{Function, Arity} | _] ->
            {error, io_lib:format("~ts is no program: it has no ~ts/~w", [Name, Function, Arity])};
        {error, What} ->
            {error, io_lib:format("~ts.beam cannot be loaded: ~0tp", [Name, What])};
        _ ->
            {error, io_lib:format("there is no program ~ts; there are ~ts (or name a module, and "
                                  "its folder with --pa)",
                                  [Name, lists:join(", ", [Known || {Known, _} <- all()])])}
    end.

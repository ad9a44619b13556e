%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_proc).
-moduledoc """
The processor time, memory and children of operating-system processes, from Linux' `/proc`. A
process is its number as text, or `"self"`. `undefined`: there is no such process, or no `/proc`.
""".

-export([cpu_ms/1, used_ms/1, memory_kib/1, tree/1, emulators/0]).

-doc """
Processor time of a process, in user mode and in the system, and of its children that have ended.
""".
-spec cpu_ms(Pid :: string()) -> {Own :: integer(), OfEnded :: integer()} | undefined.
cpu_ms(Pid) ->
    case file:read_file(["/proc/", Pid, "/stat"]) of
        {ok, Stat} ->
            %% pid (command) state ...: the command may hold anything, also ")". The times are the
            %% 14th field to the 17th, in hundredths of a second on every Linux.
            Fields = binary:split(lists:last(binary:split(Stat, ~")", [global])), ~" ",
                                  [global, trim_all]),
            [User, System, OfUser, OfSystem] =
                [binary_to_integer(Field) || Field <- lists:sublist(Fields, 12, 4)],
            {10 * (User + System), 10 * (OfUser + OfSystem)};
        {error, _} ->
            undefined
    end.

-doc "The processor time of these processes and of their children that have ended.".
-spec used_ms([Pid :: string()]) -> number().
used_ms(Pids) -> lists:sum([Own + OfEnded || Pid <- Pids, {Own, OfEnded} <- [cpu_ms(Pid)]]).

-doc "Resident memory of a process: now, and the most so far.".
-spec memory_kib(Pid :: string()) ->
    {Resident :: non_neg_integer(), Most :: non_neg_integer()} | undefined.
memory_kib(Pid) ->
    maybe
        {ok, Status} ?= file:read_file(["/proc/", Pid, "/status"]),
        {match, [Resident]} ?= field(Status, "VmRSS"),
        {match, [Most]} ?= field(Status, "VmHWM"),
        {binary_to_integer(Resident), binary_to_integer(Most)}
    else
        _ -> undefined
    end.

field(Status, Key) ->
    re:run(Status, "^" ++ Key ++ ":\\s+(\\d+) kB", [multiline, {capture, all_but_first, binary}]).

-doc """
A process and its descendants that run now (`cpu_ms/1` of each has those that ended). Empty if there
is no such process.
""".
-spec tree(Pid :: string()) -> [Pid :: string()].
tree(Pid) ->
    case file:read_file(["/proc/", Pid, "/task/", Pid, "/children"]) of
        {ok, Children} ->
            Own = string:lexemes(binary_to_list(Children), " "),
            [Pid | lists:append([tree(Child) || Child <- Own])];
        {error, _} ->
            []
    end.

-doc "The Erlang virtual machines of this user, with the environment of each.".
-spec emulators() -> [{Pid :: string(), Environment :: [binary()]}].
emulators() ->
    {ok, Names} = file:list_dir("/proc"),
    [{Pid, binary:split(Environment, <<0>>, [global])}
     || [Digit | _] = Pid <- Names, Digit >= $0, Digit =< $9,
        {ok, <<"beam", _/binary>>} <- [file:read_file(["/proc/", Pid, "/comm"])],
        {ok, Environment} <- [file:read_file(["/proc/", Pid, "/environ"])]].

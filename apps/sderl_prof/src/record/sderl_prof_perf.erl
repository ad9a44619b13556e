%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_perf).
-moduledoc """
The system's own `perf` on this node's virtual machine: counters of the processor, and the functions
in which it is found. `perf` ends when `stop/1` is called, a minute after its time at the latest,
with the process that started it, and with the node.

Needs no other module of this project, so that it can be loaded into any node.
""".

-export([start/2, await/2, stop/1, map_file/0]).
-export_type([task/0, answer/0]).

-define(EVENTS, "cycles,instructions,cache-references,cache-misses,branches,branch-misses,"
                "dTLB-loads,dTLB-load-misses,iTLB-load-misses,LLC-loads,LLC-load-misses").
%% Looks a second; usual timers, of 100 or 1000 Hz, are not in step with it.
-define(HERTZ, "99").
%% Bytes of its output that are kept.
-define(MOST, 1_048_576).
%% The size of a file of events.
-define(MOST_FILE, "256M").
%% Its start and its end take time, too.
-define(EXTRA_MS, 60_000).
%% Until the signal to end is sent again.
-define(AGAIN_MS, 200).
%% The status of a program that ended by the signal of Ctrl-C.
-define(INTERRUPTED, 130).

-doc """
`counters`: those of the processor; `functions`: in which it is found; `events` of a group: how
many, or each with its time into a file, which `perf script` reads.
""".
-type what() :: counters | functions | {events, Group :: string()}
    | {events, Group :: string(), file:filename()}.
-type task() :: {pid(), reference()}.
-doc "What it said, with its exit status; `none` without `perf` on the machine.".
-type answer() :: {Status :: non_neg_integer(), binary()} | none | timeout | {failed, term()}.

-dialyzer({nowarn_function, [start/2]}).
-doc "Begins to look, for so long.".
-spec start(what(), Milliseconds :: pos_integer()) -> task().
start(What, Ms) ->
    Owner = self(),
    spawn_monitor(fun() -> exit({perf, run(What, Ms, monitor(process, Owner))}) end).

-doc "Ends it; `await/2` tells what there is.".
-spec stop(task()) -> ok.
stop({Pid, _}) ->
    Pid ! stop,
    ok.

-doc "What it said.".
-spec await(task(), Milliseconds :: pos_integer()) -> answer().
await({Pid, Monitor}, Ms) ->
    receive
        {'DOWN', Monitor, process, Pid, {perf, Answer}} -> Answer;
        {'DOWN', Monitor, process, Pid, Why} -> {failed, Why}
    after Ms + 2 * ?EXTRA_MS ->
        true = demonitor(Monitor, [flush]),
        true = exit(Pid, kill),
        timeout
    end.

-doc "The file in which an emulator that was started with `+JPperf` has the names of its code.".
-spec map_file() -> file:filename().
map_file() -> "/tmp/perf-" ++ os:getpid() ++ ".map".

run(What, Ms, Owner) ->
    case os:find_executable("perf") of
        false -> none;
        Perf -> run(What, Perf, Ms, Owner)
    end.

run(counters, Perf, Ms, Owner) -> counted(?EVENTS, Perf, Ms, Owner);
run({events, Group}, Perf, Ms, Owner) -> counted(Group ++ ":*", Perf, Ms, Owner);
run({events, Group, File}, Perf, Ms, Owner) ->
    said(Perf, ["record", "-e", Group ++ ":*", "--max-size", ?MOST_FILE, "-o", File,
                "-p", os:getpid(), "--", "sleep", seconds(Ms)], Ms, Owner);
run(functions, Perf, Ms, Owner) ->
    %% A folder of its own, which is made or is not: nobody else can have put a link there.
    Name = lists:concat(["sderl-perf-", os:getpid(), "-", binary_to_list(binary:encode_hex(
        rand:bytes(16), lowercase))]),
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), Name),
    File = filename:join(Dir, "data"),
    Record = ["record", "-F", ?HERTZ, "-o", File, "-p", os:getpid(), "--", "sleep", seconds(Ms)],
    Report = ["report", "-i", File, "--stdio", "-t", "\t", "-F", "overhead,sample,dso,symbol"],
    try
        maybe
            ok ?= file:make_dir(Dir),
            {0, _} ?= said(Perf, Record, Ms, Owner),
            said(Perf, Report, 0, unstoppable)
        else
            {error, Why} -> {failed, {Dir, Why}};
            Other -> Other
        end
    after
        _ = file:del_dir_r(Dir)
    end.

%% Without a command that limits its time, because only then it ends with the node; the caller ends
%% it in time.
counted(Events, Perf, Ms, Owner) ->
    said(Perf, ["stat", "-x", ";", "-e", Events, "-p", os:getpid()], Ms, Owner).

seconds(Ms) -> float_to_list(Ms / 1000, [{decimals, 3}]).

%% Without LC_ALL its output would be in the language of the system.
said(Program, Args, Ms, Owner) ->
    Port = open_port({spawn_executable, Program},
                     [{args, Args}, {env, [{"LC_ALL", "C"}]}, exit_status, stderr_to_stdout,
                      binary, in, hide]),
    collect(Port, os_pid(Port), Owner, erlang:monotonic_time(millisecond) + Ms + ?EXTRA_MS, <<>>).

os_pid(Port) ->
    case erlang:port_info(Port, os_pid) of
        {os_pid, Pid} -> Pid;
        undefined -> none
    end.

collect(Port, Pid, Owner, Until, Said) ->
    receive
        {Port, {data, More}} when byte_size(Said) < ?MOST ->
            collect(Port, Pid, Owner, Until, <<Said/binary, More/binary>>);
        {Port, {data, _}} -> collect(Port, Pid, Owner, Until, Said);
        %% It ends by the signal, after it has said what there is.
        {Port, {exit_status, ?INTERRUPTED}} when Owner =:= stopped -> {0, Said};
        {Port, {exit_status, Status}} -> {Status, Said};
        stop when is_reference(Owner) -> interrupted(Port, Pid, Said);
        {'DOWN', Owner, process, _, _} -> interrupted(Port, Pid, Said)
    after wait_ms(Owner, Until) ->
        case erlang:monotonic_time(millisecond) < Until of
            %% A program that has just begun may have missed the signal.
            true ->
                ok = interrupt(Pid),
                collect(Port, Pid, Owner, Until, Said);
            false ->
                ok = interrupt(Pid),
                timeout
        end
    end.

interrupted(Port, Pid, Said) ->
    ok = interrupt(Pid),
    collect(Port, Pid, stopped, erlang:monotonic_time(millisecond) + ?EXTRA_MS, Said).

wait_ms(stopped, _) -> ?AGAIN_MS;
wait_ms(_, Until) -> max(0, Until - erlang:monotonic_time(millisecond)).

interrupt(none) -> ok;
interrupt(Pid) ->
    _ = os:cmd("kill -INT " ++ integer_to_list(Pid)),
    ok.

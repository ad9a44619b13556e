%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_program).
-moduledoc """
Runs programs of the machine to their end, or asks them line by line. A program that takes too long
is killed; if the caller dies, its stdin is closed, which should end it.
""".

-export([run/3, ask/4]).

-export_type([options/0, reason/0]).

-doc """
`timeout` is in milliseconds; `last` keeps only about so many bytes of the end of a program's
output; `false` as the value of an environment variable removes it.
""".
-type options() :: #{
    timeout := pos_integer(),
    last => pos_integer(),
    cd => file:filename(),
    env => [{string(), string() | false}],
    seen => fun((pos_integer()) -> term())
}.

-doc "`exit`: it could not be started, or its pipe broke.".
-type reason() :: timeout | {exit_status, non_neg_integer()} | {exit, term()}.

%% A line longer than this arrives in parts.
-define(PART, 65_536).
%% More than any program writes.
-define(ALL, (1 bsl 60)).

-doc "Runs a program to its end; what it wrote to stdout and stderr.".
-spec run(file:filename(), [string()], options()) ->
    {ok, Status :: non_neg_integer(), binary()} | {error, reason()}.
run(File, Args, #{timeout := Timeout} = Options) ->
    apart(fun() ->
        Port = open(File, Args, Options, [stderr_to_stdout]),
        said(Port, deadline(Timeout), maps:get(last, Options, ?ALL), [], 0)
    end).

said(Port, Deadline, Last, Said, Size) ->
    case next(Port, Deadline) of
        {data, Bytes} when Size + byte_size(Bytes) > 2 * Last ->
            All = iolist_to_binary([Said, Bytes]),
            End = binary:copy(binary:part(All, byte_size(All), -min(byte_size(All), Last))),
            said(Port, Deadline, Last, End, byte_size(End));
        {data, Bytes} -> said(Port, Deadline, Last, [Said, Bytes], Size + byte_size(Bytes));
        {error, {exit_status, Status}} -> {ok, Status, iolist_to_binary(Said)};
        {error, _} = Error -> Error
    end.

-doc """
Writes lines to a program's stdin, and gives the lines it answers, one to each; `seen` is called
after each with their number. `timeout` is that of one answer.
""".
-spec ask(file:filename(), [string()], Lines :: [iodata()], options()) ->
    {ok, [binary()]} | {error, reason()}.
ask(File, Args, Lines, Options) ->
    apart(fun() ->
        Port = open(File, Args, Options, [{line, ?PART}]),
        answers(Port, Lines, 1, Options, [])
    end).

answers(Port, [], _, _, Answers) ->
    ok = close(Port),
    {ok, lists:reverse(Answers)};
answers(Port, [Line | Lines], I, #{timeout := Timeout} = Options, Answers) ->
    %% A program that has ended sends its exit status as a message.
    _ = try port_command(Port, [Line, $\n]) catch error:badarg -> ended end,
    case answer(Port, deadline(Timeout), []) of
        {ok, Answer} ->
            _ = (maps:get(seen, Options, fun(_) -> ok end))(I),
            answers(Port, Lines, I + 1, Options, [Answer | Answers]);
        {error, _} = Error ->
            Error
    end.

answer(Port, Deadline, Parts) ->
    case next(Port, Deadline) of
        {data, {noeol, Part}} -> answer(Port, Deadline, [Parts, Part]);
        {data, {eol, Part}} -> {ok, iolist_to_binary([Parts, Part])};
        {error, _} = Error -> Error
    end.

next(Port, Deadline) ->
    receive
        {Port, {data, Data}} -> {data, Data};
        {Port, {exit_status, Status}} -> {error, {exit_status, Status}};
        {'EXIT', Port, Reason} -> {error, {exit, Reason}}
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        ok = kill(Port),
        {error, timeout}
    end.

%% In a process of its own: writing to a program that has ended may end the port before its status
%% is here, which must not end the caller, and late output must not stay in the caller's mailbox.
apart(Fun) ->
    Task = sderl_fleet_task:start(fun() ->
        _ = process_flag(trap_exit, true),
        Fun()
    end),
    case sderl_fleet_task:result(Task, infinity) of
        {ok, Result} -> Result;
        {error, {failed, Reason}} -> {error, {exit, Reason}}
    end.

open(File, Args, Options, More) ->
    open_port({spawn_executable, File}, [
        {args, Args}, binary, exit_status, use_stdio, hide,
        {cd, maps:get(cd, Options, ".")}, {env, maps:get(env, Options, [])} | More
    ]).

deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout.

kill(Port) ->
    _ = case erlang:port_info(Port, os_pid) of
        {os_pid, Pid} -> os:cmd(lists:concat(["kill -KILL ", Pid]));
        undefined -> ended
    end,
    close(Port).

close(Port) ->
    _ = try port_close(Port) catch error:badarg -> closed end,
    ok.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_port).
-moduledoc """
Runs a program of this machine to its end, or until a limit; nothing of it outlives the call or the
caller, even when the virtual machine is killed.

A port cannot close a program's input and go on reading its output, and closing the port does not
end the program. So a shell runs the program: it passes the given number of bytes on and closes the
program's input; then it waits until its own input ends, which happens when the port is closed, and
kills its process group.
""".

-export([run/3, run/4]).
-export_type([input/0]).

-doc "The program's input. Bytes are never written to a file.".
-type input() :: none | {bytes, iodata()} | {file, file:filename_all()}.

%% A program that writes more than this is not read further.
-define(MOST_OUTPUT, 1_000_000).

%% The program of a port leads a process group of its own.
-define(SHELL, """
bytes=$1 file=$2
shift 2
exec 3<&0
{
    [ "$bytes" = 0 ] || head -c "$bytes" <&3 2>/dev/null
    exec >/dev/null 2>&1
    cat <&3
    kill -9 -$$
} | {
    exec 3<&-
    [ -z "$file" ] || exec <"$file"
    "$@"
    printf '\nexit %s\n' "$?"
}
""").

-doc "Its exit status and all that it wrote; `Limit` in milliseconds.".
-spec run([unicode:chardata(), ...], input(), timeout()) ->
    {ok, Status :: non_neg_integer(), Output :: binary()}
    | {error, timeout | killed, Output :: binary()}.
run(Command, Input, Limit) -> run(Command, Input, Limit, []).

-doc "As `run/3`, in a folder (`cd`) and with changes to the environment (`env`).".
%% The process answers with its exit reason.
-dialyzer({nowarn_function, [run/4]}).
-spec run([unicode:chardata(), ...], input(), timeout(),
          [{cd, file:filename_all()} | {env, [{string(), string() | false}]}]) ->
    {ok, Status :: non_neg_integer(), Output :: binary()}
    | {error, timeout | killed, Output :: binary()}.
run(Command, Input, Limit, Options) ->
    %% A port that fails ends the process that it is linked to, so it has one of its own.
    Caller = self(),
    {Runner, Monitor} = spawn_monitor(fun() ->
        _ = process_flag(trap_exit, true),
        Watch = erlang:monitor(process, Caller),
        exit({done, run_watched(Command, Input, Limit, Options, Watch)})
    end),
    receive
        {'DOWN', Monitor, process, Runner, {done, Result}} -> Result;
        {'DOWN', Monitor, process, Runner, Why} -> error(Why)
    end.

run_watched(Command, Input, Limit, Options, Watch) ->
    {Bytes, Data, File} = case Input of
        none -> {0, <<>>, ~"/dev/null"};
        {bytes, IoData} -> {iolist_size(IoData), IoData, ~""};
        {file, Name} -> {0, <<>>, filename:absname(Name)}
    end,
    Words = [?SHELL, "sderl_ops", integer_to_binary(Bytes), File | Command],
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c" | [to_argument(Word) || Word <- Words]]},
                      binary, exit_status, stderr_to_stdout, use_stdio, hide | Options]),
    Deadline = deadline(Limit),
    Result = case send(Port, iolist_to_binary(Data), Deadline, Watch) of
        ok -> read(Port, <<>>, Deadline, Watch);
        {error, Why} -> {error, Why, <<>>}
    end,
    close(Port, Result),
    Result.

to_argument(Word) when is_binary(Word) -> Word;
to_argument(Word) -> unicode:characters_to_binary(Word).

deadline(infinity) -> infinity;
deadline(Limit) -> erlang:monotonic_time(millisecond) + Limit.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

%% A program that does not read must not block the caller for ever.
send(_, <<>>, _, _) ->
    ok;
send(Port, Data, Deadline, Watch) ->
    {Chunk, Rest} = split_binary(Data, min(16_384, byte_size(Data))),
    try erlang:port_command(Port, Chunk, [nosuspend]) of
        true ->
            send(Port, Rest, Deadline, Watch);
        false ->
            case left(Deadline) of
                0 ->
                    {error, timeout};
                _ ->
                    receive
                        {'DOWN', Watch, process, _, _} -> {error, timeout}
                    after 10 ->
                        send(Port, Data, Deadline, Watch)
                    end
            end
    catch
        %% The program has ended; its output is still to be read.
        error:badarg -> ok
    end.

read(Port, Output, Deadline, Watch) ->
    receive
        {Port, {data, Data}} ->
            More = keep(Output, Data),
            case ended(More) of
                {yes, Status, Said} -> {ok, Status, Said};
                no -> read(Port, More, Deadline, Watch)
            end;
        {Port, {exit_status, _}} ->
            {error, killed, Output};
        {'EXIT', Port, _} ->
            {error, killed, Output};
        {'DOWN', Watch, process, _, _} ->
            {error, timeout, Output}
    after left(Deadline) ->
        {error, timeout, Output}
    end.

%% The end of the output is always kept, because it has the exit status.
keep(Output, Data) when byte_size(Output) + byte_size(Data) =< ?MOST_OUTPUT ->
    <<Output/binary, Data/binary>>;
keep(Output, Data) ->
    All = <<Output/binary, Data/binary>>,
    First = binary:part(All, 0, ?MOST_OUTPUT div 2),
    Last = binary:part(All, byte_size(All), -min(byte_size(All) - byte_size(First), 64)),
    <<First/binary, Last/binary>>.

ended(Output) ->
    Tail = binary:part(Output, byte_size(Output), -min(16, byte_size(Output))),
    case re:run(Tail, "\nexit ([0-9]+)\n$", [{capture, all, binary}, dollar_endonly]) of
        {match, [Line, Status]} ->
            {yes, binary_to_integer(Status),
             binary:part(Output, 0, byte_size(Output) - byte_size(Line))};
        nomatch ->
            no
    end.

close(Port, Result) ->
    case {Result, erlang:port_info(Port, os_pid)} of
        %% The port would not close while it has unread input for the program.
        {{error, timeout, _}, {os_pid, Group}} ->
            _ = os:cmd("kill -9 -" ++ integer_to_list(Group)),
            ok;
        _ ->
            ok
    end,
    try erlang:port_close(Port) of
        true -> ok
    catch
        error:badarg -> ok
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_disk).
-moduledoc """
How full the file systems are that the node works in: those of its current directory and of its OTP.
The system's program `df` is asked, because the virtual machine has no call for it; without that
program nothing is known.
""".

-export([read/1, read/2, fullest/1]).
-export_type([disk/0]).

-import(sderl_mon_probe_work, [now_ms/0]).

-doc "The bytes used on the fullest file system, and how many programs may use in all.".
-type disk() :: #{next := integer(), gauges := #{disk | disk_limit => non_neg_integer()}}.

-define(EVERY_MS, 300_000).
%% A file system of another machine may hang, and the program with it.
-define(PATIENCE_MS, 2_000).
-define(AGAIN_MS, 3_600_000).
-define(MOST_BYTES, 16_384).

-doc "Reads every five minutes, or an hour after there was no answer. May block.".
-spec read(disk() | none) -> disk().
read(Before) -> read(Before, ?PATIENCE_MS).

-doc "The same with another time limit for the program.".
-spec read(disk() | none, PatienceMs :: pos_integer()) -> disk().
read(Before, Patience) ->
    Now = now_ms(),
    case Before of
        #{next := Next} when Now < Next -> Before;
        _ ->
            case os:find_executable("df") of
                false -> #{next => Now + ?AGAIN_MS, gauges => #{}};
                Program -> read(Program, Patience, Now)
            end
    end.

read(Program, Patience, Now) ->
    case told(Program, Patience) of
        {ok, Text} -> #{next => Now + ?EVERY_MS, gauges => fullest(Text)};
        none -> #{next => Now + ?AGAIN_MS, gauges => #{}}
    end.

%% A program that waits for a file system notices neither that nobody reads what it writes nor that
%% its reader has gone. So a shell waits beside it for the end of the port, whatever ends that, also
%% the death of the virtual machine.
-define(SCRIPT,
        "exec 3<&0; \"$@\" 3<&- & program=$!; "
        "{ read -r _; kill -9 $program; } <&3 >/dev/null 2>&1 & watch=$!; "
        "wait $program 2>/dev/null; kill -9 $watch 2>/dev/null").

told(Program, Patience) ->
    case os:find_executable("sh") of
        false -> none;
        Shell ->
            Args = ["-c", ?SCRIPT, "sh", Program, "-P", "-k", ".", code:root_dir()],
            told(Shell, Args, Patience)
    end.

told(Shell, Args, Patience) ->
    try open_port({spawn_executable, Shell},
                  [{args, Args}, {env, [{"LC_ALL", "C"}]}, binary, exit_status, hide]) of
        Port -> collect(Port, <<>>, now_ms() + Patience)
    catch
        error:_ -> none
    end.

collect(Port, Text, End) ->
    receive
        {Port, {data, More}} when byte_size(Text) < ?MOST_BYTES ->
            collect(Port, <<Text/binary, More/binary>>, End);
        {Port, {data, _}} -> collect(Port, Text, End);
        %% `df` fails if it cannot read one of the two, and still prints the other.
        {Port, {exit_status, _}} -> {ok, Text}
    after max(0, End - now_ms()) ->
        true = unlink(Port),
        true = try port_close(Port) catch error:badarg -> true end,
        ok = forget(Port),
        none
    end.

forget(Port) ->
    receive {Port, _} -> forget(Port) after 0 -> ok end.

-doc """
The fullest file system in the output of `df -P -k`. Negative free space counts as none: the space
reserved for the system's own programs is in use, too.
""".
-spec fullest(binary()) -> #{disk | disk_limit => non_neg_integer()}.
fullest(Text) ->
    Sizes = case re:run(Text, "\\s[0-9]+ +([0-9]+) +(-?[0-9]+) +[0-9]+% ",
                        [global, {capture, all_but_first, binary}]) of
        {match, Rows} ->
            [{binary_to_integer(Used), max(0, binary_to_integer(Free))} || [Used, Free] <- Rows];
        nomatch -> []
    end,
    case lists:sort([{Used / (Used + Free), Used, Used + Free}
                     || {Used, Free} <- Sizes, Used + Free > 0]) of
        [] -> #{};
        Known ->
            {_, Used, All} = lists:last(Known),
            #{disk => 1024 * Used, disk_limit => 1024 * All}
    end.

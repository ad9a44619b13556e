%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_program).
-moduledoc """
One run of a program with a line on its stdin. Exit status 0 is a delivery.

A shell reads the line and passes it on, so that the program finds the end of its input after it;
`timeout` of the system ends a program that takes too long, with all that it has started.
""".

-export([run/4]).

-import(sderl_mon_text, [text/2]).

-define(SHELL, "/bin/sh").
-define(SCRIPT, "IFS= read -r line || exit 1; seconds=$1; shift; "
                "{ printf '%s\\n' \"$line\" | timeout -k 1 \"$seconds\" \"$@\" 2>&1 >/dev/null; }").
-define(MOST_BYTES, 200).

-doc "Runs a program for at most `Seconds`. Errors are sentences.".
-spec run(Path :: binary(), Arguments :: [binary()], Line :: iodata(), pos_integer()) ->
    ok | {error, binary()}.
run(Path, Arguments, Line, Seconds) ->
    case filelib:is_regular(Path) of
        true -> ran(Path, Arguments, Line, Seconds);
        false -> {error, text("there is no program ~ts", [Path])}
    end.

ran(Path, Arguments, Line, Seconds) ->
    Args = ["-c", ?SCRIPT, "sderl-alarms", integer_to_list(Seconds), Path | Arguments],
    Port = open_port({spawn_executable, ?SHELL}, [{args, Args}, exit_status, binary, use_stdio]),
    true = port_command(Port, [Line, $\n]),
    await(Port, Path, <<>>, sderl_mon_clock:now_ms() + 1000 * Seconds + 3000).

await(Port, Path, Said, Until) ->
    receive
        {Port, {data, Data}} ->
            await(Port, Path, last(<<Said/binary, Data/binary>>), Until);
        {Port, {exit_status, 0}} -> ok;
        {Port, {exit_status, 124}} -> {error, text("~ts took too long and was ended", [Path])};
        {Port, {exit_status, Status}} ->
            {error, text("~ts ended with status ~w~ts", [Path, Status, said(Said)])}
    after max(0, Until - sderl_mon_clock:now_ms()) ->
        _ = catch_close(Port),
        {error, text("~ts took too long", [Path])}
    end.

catch_close(Port) ->
    try port_close(Port)
    catch error:badarg -> true
    end.

last(Text) when byte_size(Text) =< ?MOST_BYTES -> Text;
last(Text) -> binary:part(Text, byte_size(Text), -?MOST_BYTES).

said(Text) ->
    case unicode:characters_to_binary(string:trim(Text)) of
        <<_, _/binary>> = Good -> [": ", sderl_mon_visible:text(Good)];
        _ -> ""
    end.

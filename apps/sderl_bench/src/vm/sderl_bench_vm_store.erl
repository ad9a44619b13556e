%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_store).
-moduledoc """
The results of `bin/sderl bench vm` in one file that only grows: the first line says what is
measured and on which machine; then each result is a line of JSON, written as soon as it is known.

However the command ends (a kill, a full disk), all complete lines stay, and the same command
continues after them. An incomplete last line is cut off then. While a command writes a file, a lock
beside it keeps other commands away; a lock whose command has ended does not.
""".

-export([open/2, append/2, close/1, read/1, is_storable/1]).
-export_type([store/0, header/0, line/0]).

-doc "To be closed.".
-opaque store() :: {file:filename(), file:io_device(), sderl_mon_folder_lock:lock()}.

-doc """
The first line. `settings` is what the command asks for: results of other settings, or of another
machine, are not mixed with these.
""".
-type header() :: #{binary() => term()}.

-doc "A line as decoded JSON; `kind` says which.".
-type line() :: #{binary() => term()}.

-define(VERSION, 1).

-doc """
Opens a new file, or one with the same settings and machine; gives its header and lines.
""".
-spec open(file:filename(), #{settings := term(), machine := term(), atom() => term()}) ->
    {ok, store(), header(), [line()]} | {error, unicode:chardata()}.
open(File, Header) ->
    New = through_json(Header#{vm_lab => ?VERSION}),
    maybe
        {ok, Lock} ?= locked(File),
        case opened(File, New) of
            {ok, Device, Now, Lines} ->
                {ok, {File, Device, Lock}, Now, Lines};
            {error, Text} ->
                ok = sderl_mon_folder_lock:leave(Lock),
                {error, Text}
        end
    end.

%% The holder is looked up first, so that the message is about this file.
locked(File) ->
    Name = unicode:characters_to_binary([File, ".lock"]),
    case sderl_mon_folder_lock:holder(Name) of
        {ok, Pid} ->
            {error, [File, " is written by another command, process ", Pid,
                     ": wait for it, or name another file with --out"]};
        none ->
            case sderl_mon_folder_lock:take(Name) of
                {ok, Lock} -> {ok, Lock};
                {error, Text} -> {error, ["cannot write ", Text]}
            end
    end.

opened(File, New) ->
    case read(File) of
        {error, absent} -> begin_file(File, New);
        {ok, Old, Lines} ->
            Results = [Line || #{~"kind" := Kind} = Line <- Lines, not lists:member(
                           Kind, [~"otp", ~"probed", ~"left_out"])],
            case differs(Old, New) of
                none -> go_on(File, Old, Lines);
                _ when Results =:= [] -> again(File, New);
                Text -> {error, [File, " has results of ", Text, ": name another file with --out"]}
            end;
        {error, Text} -> {error, Text}
    end.

differs(Old, New) ->
    Differing = [Key || Key <- [~"settings", ~"machine"],
                        maps:get(Key, Old, none) =/= maps:get(Key, New)],
    case Differing of
        [] -> none;
        [~"settings" | _] -> ["other settings (", changed(Old, New), ")"];
        [~"machine"] -> "another machine"
    end.

changed(#{~"settings" := Old}, #{~"settings" := New}) when is_map(Old), is_map(New) ->
    lists:join(", ", [Key || Key := Value <- maps:iterator(New, ordered),
                             maps:get(Key, Old, none) =/= Value]);
changed(_, _) ->
    "none are known".

begin_file(File, Header) ->
    case file:open(File, [append, raw, binary]) of
        {ok, Device} ->
            case write(File, Device, Header) of
                ok -> {ok, Device, Header, []};
                Error -> _ = file:close(Device), Error
            end;
        {error, Reason} ->
            {error, cannot("write", File, Reason)}
    end.

%% The header may be of a command that ended before it measured anything.
again(File, Header) ->
    case file:delete(File) of
        ok -> begin_file(File, Header);
        {error, Reason} -> {error, cannot("write", File, Reason)}
    end.

%% A last line without its end is incomplete.
go_on(File, Header, Lines) ->
    maybe
        {ok, Content} ?= file:read_file(File),
        ok ?= cut(File, whole(Content)),
        {ok, Device} ?= file:open(File, [append, raw, binary]),
        {ok, Device, Header, Lines}
    else
        {error, Reason} -> {error, cannot("write", File, Reason)}
    end.

cut(File, Length) ->
    maybe
        {ok, Device} ?= file:open(File, [read, write, raw, binary]),
        {ok, Length} ?= file:position(Device, Length),
        ok ?= file:truncate(Device),
        file:close(Device)
    end.

whole(Content) ->
    case binary:matches(Content, ~"\n") of
        [] -> 0;
        Ends -> element(1, lists:last(Ends)) + 1
    end.

-doc "Appends a line, which is written when this returns.".
-spec append(store(), map()) -> ok | {error, unicode:chardata()}.
append({File, Device, _}, Line) -> write(File, Device, Line).

write(File, Device, Line) ->
    case file:write(Device, [json:encode(plain(Line)), $\n]) of
        ok -> ok;
        {error, Reason} ->
            {error, [cannot("write", File, Reason),
                     "; what was measured before is in it, and the same command goes on"]}
    end.

-spec close(store()) -> ok.
close({_, Device, Lock}) ->
    _ = file:close(Device),
    sderl_mon_folder_lock:leave(Lock).

-doc "The header and the whole lines of a file.".
-spec read(file:filename()) ->
    {ok, header(), [line()]} | {error, absent} | {error, unicode:chardata()}.
read(File) ->
    case filelib:is_dir(File) of
        true -> {error, [File, " is a folder, and no file of results"]};
        false ->
            case file:read_file(File) of
                {ok, <<>>} -> {error, absent};
                {ok, Content} -> parsed(File, lines(binary:part(Content, 0, whole(Content))));
                {error, enoent} -> {error, absent};
                {error, Reason} -> {error, cannot("read", File, Reason)}
            end
    end.

lines(Content) -> binary:split(Content, ~"\n", [global, trim]).

%% A file without a complete line may be anything, so it is not overwritten.
parsed(File, []) ->
    {error, [File, " has no whole line: it has no results, or its first line was cut off; remove "
                   "it, or name another file"]};
parsed(File, Lines) ->
    try [json:decode(Line) || Line <- Lines] of
        [#{~"vm_lab" := ?VERSION} = Header | Rest] ->
            {ok, Header, Rest};
        [#{~"vm_lab" := Version} | _] ->
            {error, io_lib:format("~ts is of version ~0tp, and this program knows version ~w",
                                  [File, Version, ?VERSION])};
        _ ->
            {error, [File, " has no results of \"bin/sderl bench vm\""]}
    catch
        error:_ ->
            Number = length(lists:takewhile(fun is_json/1, Lines)) + 1,
            {error, io_lib:format("line ~w of ~ts is damaged", [Number, File])}
    end.

is_json(Line) ->
    try json:decode(Line) of
        _ -> true
    catch
        error:_ -> false
    end.

-doc "Whether a term can be in a line: numbers, atoms, binaries, and lists and maps of them.".
-spec is_storable(term()) -> boolean().
is_storable(Term) ->
    try through_json(Term) of
        _ -> true
    catch
        error:_ -> false
    end.

through_json(Term) -> json:decode(iolist_to_binary(json:encode(plain(Term)))).

%% Six decimals are enough.
plain(Map) when is_map(Map) -> #{Key => plain(Value) || Key := Value <- Map};
plain(List) when is_list(List) -> [plain(Element) || Element <- List];
plain(Float) when is_float(Float), abs(Float) >= 1000 -> round(Float);
plain(Float) when is_float(Float) -> round(Float * 1.0e6) / 1.0e6;
plain(undefined) -> null;
plain(Other) -> Other.

cannot(Do, File, Reason) -> ["cannot ", Do, " ", File, ": ", file:format_error(Reason)].

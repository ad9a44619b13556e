%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_store).
-moduledoc """
The folder of a reproduction: `run.json` has the request, `points.jsonl` a line for each run of each
point.

A point is written and synced to the disk before the next one begins. An interruption can leave only
the last line incomplete, which is then dropped.
""".

-export([open/2, look/2, read/1, save/2, append/2]).
-export_type([head/0]).

-doc """
`run.json`. `used_s` is the time that all points took, `left_out` what did not fit into the budget
(with `estimated_s`), `failed` what could not be measured (with `reason`); `revision` is that of the
sources, `null` where it is not known.
""".
-type head() :: #{binary() => term()}.

-define(SAME,
    [{<<"scale">>, "scale"}, {<<"nodes">>, "number of nodes"}, {<<"machine">>, "machine"}]).

-define(HEAD, "run.json").
-define(POINTS, "points.jsonl").

-doc """
Makes the folder where there is none, makes sure that it can be written to, and gives its content.
The `scale`, the `nodes` and the `machine` of `Same` must be those of its `run.json`, because other
measurements cannot be compared with those to come. Errors are texts.
""".
-spec open(file:filename(), Same :: head()) ->
    {ok, new | head(), [sderl_claim_points:measured()]} | {error, sderl_command:text()}.
open(Dir, Same) ->
    maybe
        ok ?= folder(Dir),
        {ok, Head, Points, Whole} ?= content(Dir, Same),
        ok ?= cut(Dir, Whole),
        {ok, Head, Points}
    end.

-doc "As `open/2`, but changes nothing.".
-spec look(file:filename(), Same :: head()) ->
    {ok, new | head(), [sderl_claim_points:measured()]} | {error, sderl_command:text()}.
look(Dir, Same) ->
    case filelib:is_regular(Dir) of
        true ->
            folder(Dir);
        false ->
            maybe
                {ok, Head, Points, _} ?= content(Dir, Same),
                {ok, Head, Points}
            end
    end.

content(Dir, Same) ->
    maybe
        {ok, Head} ?= head(Dir),
        ok ?= same(Dir, Same, Head),
        {ok, Points, Whole} ?= points(Dir),
        {ok, Head, Points, Whole}
    end.

folder(Dir) ->
    case {filelib:is_regular(Dir), filelib:ensure_path(Dir)} of
        {true, _} -> {error, ["--out: ", Dir, " is a file: name a folder"]};
        {false, ok} -> ok;
        {false, {error, Reason}} ->
            {error, ["--out: cannot make the folder ", Dir, ": ", file:format_error(Reason)]}
    end.

same(_Dir, _Same, new) ->
    ok;
same(Dir, Same, Head) ->
    %% Where several differ, the scale is named.
    case [{Key, Word}
          || {Key, Word} <- ?SAME, maps:get(Key, Head, null) =/= maps:get(Key, Same, null)] of
        [] -> ok;
        [{Key, Word} | _] ->
            {error, io_lib:format(
                "~ts has points of another ~ts (~ts, and now it is ~ts): name another folder with "
                "--out",
                [Dir, Word, shown(maps:get(Key, Head, null)), shown(maps:get(Key, Same))]
            )}
    end.

shown(Text) when is_binary(Text) -> Text;
shown(Map) when is_map(Map) ->
    lists:join(", ", [[Key, " ", shown(Value)] || Key := Value <- maps:iterator(Map, ordered)]);
shown(Value) -> json:encode(Value).

-doc "The content of a folder. An error is a text that names the file or line that is wrong.".
-spec read(file:filename()) ->
    {ok, head(), [sderl_claim_points:measured()]} | {error, sderl_command:text()}.
read(Dir) ->
    maybe
        true ?= filelib:is_dir(Dir),
        {ok, #{} = Head} ?= head(Dir),
        {ok, Points, _} ?= points(Dir),
        {ok, Head, Points}
    else
        false -> {error, ["there is no folder ", Dir]};
        {ok, new} ->
            {error, ["there is no ", ?HEAD, " in ", Dir, ": \"bin/sderl reproduce --out ", Dir,
                     "\" makes one"]};
        {error, Text} -> {error, Text}
    end.

head(Dir) ->
    File = filename:join(Dir, ?HEAD),
    case file:read_file(File) of
        {ok, Text} ->
            case decoded(Text) of
                {ok, #{<<"scale">> := _, <<"claims">> := Claims} = Head} when is_list(Claims) ->
                    {ok, Head};
                _ -> {error, [File, " is damaged: name another folder, or remove this one"]}
            end;
        {error, enoent} -> {ok, new};
        {error, Reason} -> {error, ["cannot read ", File, ": ", file:format_error(Reason)]}
    end.

decoded(Text) ->
    try {ok, json:decode(Text)}
    catch error:_ -> error
    end.

%% {ok, Points, Bytes that are whole lines}
points(Dir) ->
    File = filename:join(Dir, ?POINTS),
    case file:read_file(File) of
        {ok, Text} -> lines(File, 1, binary:split(Text, <<"\n">>, [global]), 0, []);
        {error, enoent} -> {ok, [], 0};
        {error, Reason} -> {error, ["cannot read ", File, ": ", file:format_error(Reason)]}
    end.

%% After the last end of a line there is nothing, or an incomplete line.
lines(_File, _Number, [_Torn], Bytes, Points) ->
    {ok, lists:reverse(Points), Bytes};
lines(File, Number, [Line | Lines], Bytes, Points) ->
    case point(Line) of
        {ok, Point} ->
            lines(File, Number + 1, Lines, Bytes + byte_size(Line) + 1, [Point | Points]);
        error ->
            {error, io_lib:format("line ~w of ~ts is damaged: remove that line, and its point is "
                                  "measured anew", [Number, File])}
    end.

point(Line) ->
    case decoded(Line) of
        {ok, #{<<"experiment">> := Experiment, <<"params">> := #{} = Params,
               <<"metrics">> := #{} = Metrics}}
          when is_binary(Experiment) ->
            {ok, #{experiment => Experiment, params => Params, metrics => Metrics}};
        _ ->
            error
    end.

cut(Dir, Whole) ->
    with_file(filename:join(Dir, ?POINTS), [read, write], fun(Io) ->
        maybe
            {ok, Whole} ?= file:position(Io, Whole),
            file:truncate(Io)
        end
    end).

-doc "Writes `run.json` atomically.".
-spec save(file:filename(), head()) -> ok | {error, sderl_command:text()}.
save(Dir, Head) ->
    File = filename:join(Dir, ?HEAD),
    New = File ++ ".new",
    maybe
        ok ?= file:write_file(New, [json:encode(Head), $\n]),
        ok ?= file:rename(New, File)
    else
        {error, Reason} -> {error, cannot_write(File, Reason)}
    end.

-doc "Adds a line, and waits until it is on the disk. Gives the point as `read/1` will.".
-spec append(file:filename(), sderl_bench_output:result()) ->
    {ok, sderl_claim_points:measured()} | {error, sderl_command:text()}.
append(Dir, Result) ->
    Line = sderl_bench_output:line(Result),
    Written = with_file(filename:join(Dir, ?POINTS), [append], fun(Io) ->
        maybe
            ok ?= file:write(Io, Line),
            file:datasync(Io)
        end
    end),
    case Written of
        ok -> {ok, _} = point(Line);
        Error -> Error
    end.

with_file(File, Modes, Fun) ->
    Outcome =
        maybe
            {ok, Io} ?= file:open(File, [raw, binary | Modes]),
            Done = Fun(Io),
            Closed = file:close(Io),
            if Done =:= ok -> Closed; true -> Done end
        end,
    case Outcome of
        ok -> ok;
        {error, Reason} -> {error, cannot_write(File, Reason)}
    end.

cannot_write(File, Reason) -> ["cannot write ", File, ": ", file:format_error(Reason)].

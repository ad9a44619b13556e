%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_output).
-moduledoc """
Results as JSON, one object a line, into a file or to stdout, each as soon as it is there.

An object has the keys `experiment`, `params`, `metrics`, `machine` and `started` (UTC,
ISO 8601). What was not measured is `null`.
""".

-export([open/1, close/1, is_stdout/1, say/2, result/4, write/2, line/1, now/0]).
-export_type([output/0, result/0, form/0]).

-doc "Where results go.".
-opaque output() :: none | stdout | {file, file:filename(), file:io_device()}.

-doc "How a table is shown: `fun sderl_table:text/2` or `fun sderl_table:markdown/2`.".
-type form() :: fun(([unicode:chardata()], [[unicode:chardata()]]) -> unicode:chardata()).

-doc "One result, as it is written.".
-type result() :: #{
    experiment := atom(),
    params := map(),
    metrics := map(),
    machine := sderl_bench_machine:info(),
    started := binary()
}.

-doc """
Opens what `--json` names: a file, which is emptied, `-` for stdout, `undefined` for nothing. An
error is a message for the user, so call it before a long run.
""".
-spec open(undefined | string()) -> {ok, output()} | {error, unicode:chardata()}.
open(undefined) ->
    {ok, none};
open("-") ->
    {ok, stdout};
open(Name) ->
    case file:open(Name, [write, raw, binary]) of
        {ok, File} -> {ok, {file, Name, File}};
        {error, Reason} -> {error, cannot_write(Name, Reason)}
    end.

-doc "Closes the file of `open/1`.".
-spec close(output()) -> ok | {error, unicode:chardata()}.
close({file, Name, File}) ->
    case file:close(File) of
        ok -> ok;
        {error, Reason} -> {error, cannot_write(Name, Reason)}
    end;
close(_) ->
    ok.

-doc "Whether JSON goes to stdout, where nothing else may go then.".
-spec is_stdout(output()) -> boolean().
is_stdout(Output) -> Output =:= stdout.

-doc "Text for people, on stdout; nowhere when JSON goes there.".
-spec say(output(), unicode:chardata()) -> ok.
say(stdout, _Text) -> ok;
say(_, Text) -> io:put_chars(sderl_visible:text(Text)).

-doc "A result measured on this machine; `Started` is from `now/0`.".
-spec result(Experiment :: atom(), Params :: map(), Metrics :: map(), Started :: binary()) ->
    result().
result(Experiment, Params, Metrics, Started) ->
    #{
        experiment => Experiment,
        params => Params,
        metrics => Metrics,
        machine => sderl_bench_machine:info(),
        started => Started
    }.

-doc "The time of day for `started`.".
-spec now() -> binary().
now() ->
    list_to_binary(calendar:system_time_to_rfc3339(erlang:system_time(second), [{offset, "Z"}])).

-doc "Writes one result.".
-spec write(output(), result()) -> ok | {error, unicode:chardata()}.
write(none, _Result) ->
    ok;
write(stdout, Result) ->
    io:put_chars(line(Result));
write({file, Name, File}, Result) ->
    case file:write(File, line(Result)) of
        ok -> ok;
        {error, Reason} -> {error, cannot_write(Name, Reason)}
    end.

-doc "One result as a line of JSON.".
-spec line(result()) -> binary().
line(Result) ->
    iolist_to_binary([json:encode(plain(Result)), $\n]).

%% Three decimals are enough. What was not measured is null.
plain(Map) when is_map(Map) -> #{Key => plain(Value) || Key := Value <- Map};
plain(List) when is_list(List) -> [plain(Element) || Element <- List];
plain(undefined) -> null;
plain(Float) when is_float(Float) -> rounded(Float);
plain(Other) -> Other.

rounded(Float) when abs(Float) >= 1000 -> round(Float);
rounded(Float) -> round(Float * 1000) / 1000.

cannot_write(Name, Reason) ->
    ["cannot write ", Name, ": ", file:format_error(Reason)].

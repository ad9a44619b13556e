%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof).
-moduledoc """
Shows why a parallel program is not faster: who runs, who waits for a scheduler, who waits for whom.

```erlang
{ok, Result, Report} = sderl_prof:profile(fun() -> my_program:run() end, #{what => messages}).
```

Recording, analysis and report are also there one by one. [Profiling](docs/profiling.md) is the
guide.
""".

-export([profile/2, estimate/2, record/2, stop/1, await/1, open/2, report/2, compare/3]).
-export([format_error/1, format_cost/1]).
-export_type([options/0, recording/0, reason/0]).

-doc """
Options of `m:sderl_prof_options`, and `dir`: the folder of the recording, which is kept; without it
one is made for the time of the call; `tried` is called after each trial with its cost and what
follows from it, and has a trial made also where no limit asks for one.
""".
-type options() :: #{dir => file:filename_all(), what => term(), modules => [module()],
                     who => sderl_prof_options:who(), seconds => number(),
                     bytes => pos_integer(), keep => first | last,
                     max_events_s => pos_integer() | infinity, above => refuse | share,
                     share => pos_integer(), senders => boolean(),
                     tried => fun((sderl_prof_trial:cost(), sderl_prof_options:verdict()) ->
                                     term()),
                     top => pos_integer(), parts => pos_integer(), path_to => binary()}.
-type recording() :: #{recorder := pid(), node := node(), dir := file:filename_all()}.
-type reason() :: {options, sderl_prof_options:reason()} | {recorder, sderl_prof_recorder:reason()}
    | {too_much, sderl_prof_trial:cost(), pos_integer()}
    | {trace, sderl_prof_convert:reason()} | {node, node(), term()}
    | {no_book, file:filename_all()} | {several, file:filename_all()} | {defect, term()}.

-define(REPORT_OPTIONS, [top, parts, path_to, progress]).
-define(CALL_MS, 60_000).

-doc """
Runs a function and records this node meanwhile. The result of the function, and the report; a
function that fails fails here.
""".
-spec profile(fun(() -> Result), options()) ->
    {ok, Result, sderl_prof_report:report()} | {error, reason()}.
profile(Fun, #{dir := Dir} = Options) ->
    %% Before the function runs there is nothing to try.
    Own = maps:without([max_events_s, above, tried | ?REPORT_OPTIONS], Options),
    maybe
        {ok, Recording} ?= record(node(), Own),
        {Result, Ended} = run(Fun, Recording),
        {ok, _} ?= Ended,
        %% The function ends where its process runs last, whatever else runs on the node.
        {ok, Report} ?= report(Dir, maps:merge(#{path_to => list_to_binary(pid_to_list(self()))},
                                               maps:with(?REPORT_OPTIONS, Options))),
        {ok, Result, Report}
    end;
profile(Fun, Options) ->
    Dir = temporary(),
    try
        profile(Fun, Options#{dir => Dir})
    after
        file:del_dir_r(Dir)
    end.

run(Fun, Recording) ->
    try Fun() of
        Result -> {Result, stop(Recording)}
    catch
        Class:Reason:Stack ->
            _ = stop(Recording),
            erlang:raise(Class, Reason, Stack)
    end.

temporary() ->
    filename:join(filename:basedir(user_cache, "sderl"),
                  lists:concat(["prof-", os:getpid(), "-",
                                erlang:unique_integer([positive])])).

-doc """
What a recording with these options would cost the node, by a trial of a quarter of a second: events
and bytes in a second, and the part of one core that they take.
""".
-spec estimate(node(), options()) -> {ok, sderl_prof_trial:cost()} | {error, reason()}.
estimate(Node, #{dir := Dir} = Options) ->
    maybe
        {ok, Plan} ?= planned(Options),
        ok ?= sderl_prof_reach:load(Node, ?CALL_MS),
        on_node(Node, sderl_prof_trial, run, [Plan, Dir])
    end.

-doc """
Begins to record a node into a folder there (`dir`). It ends in time, when it is full, and with the
process that calls this. A node without this application is given the recorder for it. With
`max_events_s` a trial tells before whether it would be too much; then it is refused, or a share of
the processes is recorded (`above`).
""".
-spec record(node(), options()) -> {ok, recording()} | {error, reason()}.
record(Node, #{dir := Dir} = Options) ->
    maybe
        {ok, Planned} ?= planned(Options),
        ok ?= sderl_prof_reach:load(Node, ?CALL_MS),
        {ok, Plan} ?= affordable(Node, Planned, Options),
        {ok, Recorder} ?= on_node(Node, sderl_prof_recorder, start, [Plan, Dir, self()]),
        {ok, #{recorder => Recorder, node => Node, dir => Dir}}
    end.

affordable(Node, Plan, #{dir := Dir} = Options)
  when is_map_key(tried, Options); is_integer(map_get(max_events_s, Options)) ->
    Trial = fun(ToTry) -> on_node(Node, sderl_prof_trial, run, [ToTry, Dir]) end,
    maybe
        {ok, Fitted, _} ?= sderl_prof_options:fitted(
            Plan, maps:get(max_events_s, Options, infinity), Trial,
            maps:get(tried, Options, fun(_, _) -> ok end)),
        {ok, Fitted}
    end;
affordable(_, Plan, _) -> {ok, Plan}.

planned(Options) ->
    case sderl_prof_options:plan(maps:without([dir, tried | ?REPORT_OPTIONS], Options)) of
        {ok, Plan} -> {ok, Plan};
        {error, Why} -> {error, {options, Why}}
    end.

on_node(Node, Module, Function, Args) ->
    case sderl_prof_reach:call(Node, Module, Function, Args, ?CALL_MS) of
        {ok, Result} -> {ok, Result};
        {error, {node, _, _}} = Error -> Error;
        {error, Why} -> {error, {recorder, Why}}
    end.

-doc "Ends a recording.".
-spec stop(recording()) -> {ok, sderl_prof_recorder:info()} | {error, reason()}.
stop(#{recorder := Recorder} = Recording) ->
    asked(Recording, fun() -> sderl_prof_recorder:stop(Recorder) end).

-doc "Waits until a recording has ended.".
-spec await(recording()) -> {ok, sderl_prof_recorder:info()} | {error, reason()}.
await(#{recorder := Recorder} = Recording) ->
    asked(Recording, fun() -> sderl_prof_recorder:await(Recorder, infinity) end).

asked(#{node := Node}, Ask) ->
    try Ask() of
        {error, Why} -> {error, {recorder, Why}};
        Info -> {ok, Info}
    catch
        exit:{Why, {gen_server, call, _}} -> {error, {node, Node, Why}}
    end.

-doc """
Makes the book of a recording, or of a file of another tracer of OTP, and gives its folder: `book`
in the folder of the recording, `FILE.book` beside a file. One that is there already, and is newer
than the trace, is used as it is.
""".
-spec open(file:filename_all(), sderl_prof_convert:options()) ->
    {ok, Book :: file:filename_all()} | {error, reason()}.
open(Path, Options) ->
    case sderl_prof_cluster_index:is_cluster(Path) of
        true -> {error, {several, Path}};
        false -> open_one(Path, maps:merge(#{peers => peers(Path)}, Options))
    end.

%% The other nodes, as the index of a recording of several nodes has them.
peers(Path) ->
    case sderl_prof_cluster_index:read(filename:dirname(filename:absname(Path))) of
        {ok, Index} -> sderl_prof_cluster_index:peers(Index);
        {error, _} -> #{}
    end.

open_one(Path, Options) ->
    Dir = case filelib:is_dir(Path) of
        true -> filename:join(Path, "book");
        false -> unicode:characters_to_list([Path, ".book"])
    end,
    case is_newer(filename:join(Dir, "book"), Path) andalso is_book(Dir) of
        true -> {ok, Dir};
        false ->
            Convert = fun(Own) -> sderl_prof_convert:convert(Path, Own, Options) end,
            case sderl_prof_beside:make(Dir, "book", Convert) of
                ok -> {ok, Dir};
                {error, {place, Why}} -> {error, {trace, {book, Dir, Why}}};
                {error, {book, _, Why}} -> {error, {trace, {book, Dir, Why}}};
                {error, Why} -> {error, {trace, Why}}
            end
    end.

is_book(Dir) ->
    case sderl_prof_book:open(Dir) of
        {ok, Book} -> sderl_prof_book:close(Book) =:= ok;
        {error, _} -> false
    end.

is_newer(Book, Path) ->
    Source = case filelib:is_dir(Path) of
        true -> filename:join(Path, "recording");
        false -> Path
    end,
    case {filelib:last_modified(Book), filelib:last_modified(Source)} of
        {Made, Written} when is_tuple(Made), is_tuple(Written) -> Made > Written;
        _ -> false
    end.

-doc "The report of a recording or a file.".
-spec report(file:filename_all(), sderl_prof_report:options()) ->
    {ok, sderl_prof_report:report()} | {error, reason()}.
report(Path, Options) ->
    maybe
        {ok, Book} ?= open(Path, #{}),
        sderl_prof_report:make(Book, Options)
    end.

-doc "What differs between two recordings or files, before and after a change.".
-spec compare(file:filename_all(), file:filename_all(), sderl_prof_compare:options()) ->
    {ok, map()} | {error, reason()}.
compare(Before, After, Options) ->
    maybe
        {ok, A} ?= open(Before, #{}),
        {ok, B} ?= open(After, #{}),
        sderl_prof_compare:make(A, B, Options)
    end.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({options, Why}) -> sderl_prof_options:format_error(Why);
format_error({trace, Why}) -> sderl_prof_convert:format_error(Why);
format_error({no_book, Dir}) ->
    io_lib:format("~ts holds no analysed trace; remove it, and open the trace again", [Dir]);
format_error({several, Dir}) ->
    io_lib:format("~ts is a recording of several nodes, of which each has a folder in it: name one "
                  "of those, or open all with sderl_prof_cluster_book:open/2", [Dir]);
format_error({defect, _} = Why) -> sderl_prof_convert:format_error(Why);
format_error(Failure) -> sderl_prof_failure:format(Failure).

-doc "What a recording costs, in words.".
-spec format_cost(sderl_prof_trial:cost()) -> unicode:chardata().
format_cost(Cost) -> sderl_prof_failure:format_cost(Cost).

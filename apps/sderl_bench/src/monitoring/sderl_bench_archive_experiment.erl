%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_archive_experiment).
-moduledoc """
`bin/sderl bench archive`: the disk space that the metrics of a cluster take over weeks, and the
time to a chart of 30 days. No cluster runs: the frames are those of a made-up one.

| metric | meaning |
|---|---|
| `disk_mb_week` | megabytes that a week of frames takes, of all steps |
| `frame_kb` | kilobytes of a frame of a minute |
| `write_ms` | time to write one frame, with its share of the frames of longer steps |
| `start_ms` | until a process that starts on this folder answers |
| `node_ms`, `group_ms`, `total_ms` | a chart of all days with 240 points: of a node, of a group, of all traffic |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([measured/2, table/2, verdict/1]).

-import(sderl_clock, [now_us/0]).
-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2]).

-define(MINUTE, 60_000).
-define(DAY_MINUTES, 1_440).
-define(WEEK_S, 604_800).
%% So many different frames come again and again.
-define(FRAMES, 60).
%% At most so many frames wait in the mailbox.
-define(AHEAD, 20).
-define(POINTS, 240).
-define(CHARTS, 9).
-define(METRICS, [util, run_queue, mem, in_msgs_s, out_msgs_s, procs]).
-define(DISK_MB, 1_000).
-define(CHART_MS, 1_000).

-doc false.
-spec summary() -> string().
summary() -> "numbers of a cluster kept for weeks: bytes on disk, time to a chart of 30 days".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Keeps the frames of a made-up cluster in a folder, one for each minute of the days, and
            then asks for charts of all of them. Shows the bytes on disk and the time to an answer.
            """,
        arguments => [
            option(nodes, "N", integer, 200, "nodes of the cluster"),
            option(groups, "N", integer, 20, "its groups"),
            option(days, "N", integer, 30, "days that are kept"),
            option(repeat, "K", integer, 1, "runs")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Options) ->
    maybe
        ok ?= at_least(2, [nodes], Options),
        ok ?= at_least(1, [groups, days, repeat], Options),
        ok ?= at_most([{nodes, 2000}, {days, 365}], Options),
        {ok, Options}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{nodes := Nodes, groups := Groups, days := Days, repeat := Repeat} = Options, Output) ->
    Title = io_lib:format("~w nodes in ~w groups, ~w days", [Nodes, Groups, Days]),
    sderl_bench_series:repeated(archive, maps:remove(repeat, Options), Repeat, fun measured/2,
                                {Title, fun table/2, fun verdict/1}, Output).

-doc "The runs as a table in the given form, medians where there were several.".
-spec table(sderl_bench_output:form(), [map()]) -> unicode:chardata().
table(Form, Runs) ->
    Row = fun(Text, Metric) -> [Text, sderl_table:spread([Metric], Runs)] end,
    Form(["", "measured"], [
        Row("a week on disk, MB", disk_mb_week),
        Row("a frame of a minute, kB", frame_kb),
        Row("to write one, ms", write_ms),
        Row("to start on the folder, ms", start_ms),
        Row("chart of a node, ms", node_ms),
        Row("chart of a group, ms", group_ms),
        Row("chart of all traffic, ms", total_ms)
    ]).

-doc "An error when a week takes a gigabyte, or a chart a second.".
-spec verdict([map()]) -> ok | {error, sderl_command:text()}.
verdict(Runs) ->
    Slow = [Ms || Run <- Runs, Metric <- [node_ms, group_ms, total_ms],
                  Ms <- [maps:get(Metric, Run)], Ms >= ?CHART_MS],
    Large = [Mb || #{disk_mb_week := Mb} <- Runs, Mb >= ?DISK_MB],
    case {Large, Slow} of
        {[], []} -> ok;
        {[Mb | _], _} ->
            {error, io_lib:format("a week takes ~b MB on disk; ~b are too many",
                                  [round(Mb), ?DISK_MB])};
        {[], [Ms | _]} ->
            {error, io_lib:format("a chart takes ~b ms; ~b are too many",
                                  [round(Ms), ?CHART_MS])}
    end.

%% ---------------------------------------------------------------- one run

-doc "One run with `nodes`, `groups` and `days`.".
-spec measured(#{nodes := pos_integer(), groups := pos_integer(), days := pos_integer(),
                 atom() => term()}, Label :: unicode:chardata()) -> {ok, #{atom() => term()}}.
measured(Params, Label) ->
    Dir = unicode:characters_to_binary(
        filename:join(filename:basedir(user_cache, "sderl"),
                      io_lib:format("bench-archive-~s-~b",
                                    [os:getpid(), erlang:unique_integer([positive])]))),
    try
        in_folder(Dir, Params, Label)
    after
        _ = file:del_dir_r(Dir)
    end.

in_folder(Dir, #{days := Days} = Params, Label) ->
    {Topology, Frames} = frames(Params),
    To = sderl_mon_clock:wall_ms() div ?MINUTE * ?MINUTE,
    From = To - Days * ?DAY_MINUTES * ?MINUTE,
    {WriteMs, #{frames := Counts}} = archive(Dir, fun(Pid) ->
        Pid ! {sderl_mon, topology, Topology},
        written(Pid, From, Days * ?DAY_MINUTES, Frames, Label)
    end),
    Sizes = sizes(Dir),
    Began = now_us(),
    archive(Dir, fun(Pid) ->
        %% It answers when it has read the folder.
        #{missed := 0} = gen_server:call(Pid, info, infinity),
        StartMs = ms_since(Began),
        {ok, Hub} = sderl_mon_hub:start_link(),
        try
            {ok, maps:merge(charts(element(1, Frames), From, To), #{
                disk_mb_week => week(Counts, Sizes) / 1.0e6,
                frame_kb => map_get(?MINUTE, Sizes) / map_get(?MINUTE, Counts) / 1000,
                write_ms => WriteMs / (Days * ?DAY_MINUTES),
                start_ms => StartMs
            })}
        after
            ok = gen_server:stop(Hub)
        end
    end).

archive(Dir, Fun) ->
    {ok, Pid} = sderl_mon_archive:start_link(#{dir => Dir, max_bytes => 1 bsl 40}),
    try
        Fun(Pid)
    after
        ok = gen_server:stop(Pid, normal, infinity)
    end.

%% As a hub would make them from the updates of its agents.
frames(#{nodes := Nodes, groups := Groups}) ->
    T0 = sderl_mon_clock:wall_ms(),
    Opts = #{nodes => Nodes, groups => Groups, changes => false},
    {Told, _} = lists:mapfoldl(fun(I, Feed) ->
        {Out, Next} = sderl_mon_synthetic_feed:next(T0 + 1000 * I, [], Feed),
        {{I, Out}, Next}
    end, sderl_mon_synthetic_feed:new(Opts, T0), lists:seq(1, ?FRAMES)),
    [Topology | _] = [T || {_, Out} <- Told, {topology, T} <- Out],
    Frames = [sderl_mon_frame:combine([U || {update, U} <- Out],
                                      #{seq => I, t => T0, span_ms => ?MINUTE, epoch => 1,
                                        lost => #{}})
              || {I, Out} <- Told],
    {Topology, list_to_tuple(Frames)}.

written(Pid, From, Count, Frames, Label) ->
    Report = sderl_progress:reporter([Label, ": writing"]),
    Began = now_us(),
    lists:foreach(fun(I) ->
        Frame = element(1 + I rem ?FRAMES, Frames),
        Pid ! {sderl_mon, frame, Frame#{t := From + I * ?MINUTE}},
        I rem ?AHEAD =:= 0 andalso begin
            _ = gen_server:call(Pid, info, infinity),
            Report(I, Count)
        end
    end, lists:seq(1, Count)),
    Info = gen_server:call(Pid, info, infinity),
    {ms_since(Began), Info}.

%% Bytes of all files by step.
sizes(Dir) ->
    {ok, Names} = file:list_dir(Dir),
    Files = [{1000 * list_to_integer(Seconds), filelib:file_size(filename:join(Dir, Name))}
             || Name <- Names,
                {match, [Seconds]} <- [re:run(Name, "^([0-9]+)s-.*\\.archive$",
                                              [{capture, all_but_first, list}])]],
    maps:map(fun(_, Bytes) -> lists:sum(Bytes) end,
             maps:groups_from_list(fun({Step, _}) -> Step end, fun({_, B}) -> B end, Files)).

week(Counts, Sizes) ->
    lists:sum([Bytes / map_get(Step, Counts) * ?WEEK_S / (Step / 1000)
               || Step := Bytes <- Sizes, map_get(Step, Counts) > 0]).

charts(#{nodes := Nodes, groups := Groups}, From, To) ->
    {Node, Group} = {hd(lists:sort(maps:keys(Nodes))), hd(lists:sort(maps:keys(Groups)))},
    #{
        node_ms => chart({node, Node, ?METRICS}, From, To),
        group_ms => chart({group, Group}, From, To),
        total_ms => chart(total, From, To)
    }.

%% The median of several.
chart(What, From, To) ->
    Times = [begin
                 Began = now_us(),
                 {ok, _} = sderl_mon_archive:series(What, From, To, ?POINTS),
                 ms_since(Began)
             end || _ <- lists:seq(1, ?CHARTS)],
    lists:nth((?CHARTS + 1) div 2, lists:sort(Times)).

ms_since(Us) -> (now_us() - Us) / 1000.

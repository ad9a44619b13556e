%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_disk_tests).
-moduledoc """
Disks that become full while a recording, what is made of it or an export is written: a file system
of eight megabytes in a namespace, on which there is more room each time until it is enough.
""".

-include_lib("eunit/include/eunit.hrl").

-compile([export_all, nowarn_export_all]).

-define(WAIT_MS, 120_000).
%% The bytes free on the disk, one try after the other.
-define(ROOMS, [0 | [4096 bsl N || N <- lists:seq(0, 10)]]).

full_disk_test_() ->
    sderl_fleet_disk:eunit("profiles", [
        {atom_to_list(Case), {timeout, 300, fun() -> on_small_disk(Case) end}}
     || Case <- [recording, book, pages, nodes, export, samples, live]
    ]).

%% Whatever the disk does, tracing ends, nobody waits for ever, and what was written before can be
%% read.
recording(Disk) ->
    Dir = filename:join(Disk, "recording"),
    {ok, Plan} = sderl_prof_options:plan(#{what => messages, seconds => 600, keep => last}),
    ok = leave_room(0, Disk),
    {error, None} = sderl_prof_recorder:start(Plan, Dir, self()),
    ok = says_full(sderl_prof_recorder:format_error(None)),
    ?assertNot(filelib:is_file(Dir)),
    ?assertNot(is_traced()),
    ok = leave_room(2 * 1_048_576, Disk),
    {ok, Recorder} = sderl_prof_recorder:start(Plan, Dir, self()),
    _ = [spawn(fun() -> tick(spawn_link(fun tock/0)) end) || _ <- lists:seq(1, 4)],
    case sderl_prof_recorder:await(Recorder, ?WAIT_MS) of
        #{ended := Ended} -> ?assertEqual({disk, enospc}, Ended);
        {error, Why} -> ok = says_full(sderl_prof_recorder:format_error(Why))
    end,
    ?assertNot(is_traced()),
    ok = make_room(Disk),
    {ok, #{trace := #{events := Events, problems := Problems, ended := How}}} =
        sderl_prof:report(Dir, #{}),
    ?assert(Events > 1000),
    %% It does not look like a recording that ended in order.
    ?assert(How =/= time andalso How =/= stopped),
    ?assertMatch([_ | _], [How || is_binary(How)] ++ Problems).

tick(Other) ->
    Other ! {tick, self(), lists:seq(1, 20)},
    receive tock -> tick(Other) end.

tock() -> receive {tick, From, _} -> From ! tock, tock() end.

is_traced() -> lists:keymember(sderl_recording, 1, trace:session_info(all)).

book(Disk) ->
    Dir = a_recording(Disk),
    until_there_is_room(Disk, fun() -> sderl_prof:open(Dir, #{}) end,
                        fun sderl_prof:format_error/1),
    {ok, #{trace := #{events := 20_000, problems := []}}} = sderl_prof:report(Dir, #{}).

pages(Disk) ->
    {ok, Book} = sderl_prof:open(a_recording(Disk), #{}),
    until_there_is_room(Disk, fun() ->
        Made = sderl_prof_index:make(Book, #{}),
        ?assertEqual(Made =:= ok, sderl_prof_index:is_made(Book)),
        Made
    end, fun sderl_prof_view:format_error/1),
    {ok, View} = sderl_prof_view:open(Book, fun(_, _) -> ok end),
    ok = sderl_prof_view:close(View).

%% The book of a node, the messages between nodes beside it, and the book of all.
nodes(Disk) ->
    Dir = filename:join(Disk, "several"),
    ok = filelib:ensure_path(Dir),
    ok = sderl_prof_two_nodes:example(Dir, 2000),
    until_there_is_room(Disk, fun() ->
        case sderl_prof_cluster_book:open(Dir, #{}) of
            {ok, Book} -> whole(Book);
            Error -> Error
        end
    end, fun sderl_prof_cluster_book:format_error/1),
    {ok, Book} = sderl_prof_cluster_book:open(Dir, #{}),
    ok = whole(Book).

%% If there was room for one node only, the book says so, and is made again with room for both.
whole(Dir) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    #{problems := Problems, nodes := Nodes} = sderl_prof_book:meta(Book),
    ok = sderl_prof_book:close(Book),
    case Problems of
        [] ->
            ?assertMatch([_, _], Nodes),
            ok;
        [Problem] ->
            ?assertMatch([_], Nodes),
            {error, {told, Problem}}
    end.

export(Disk) ->
    {ok, Book} = sderl_prof:open(a_recording(Disk), #{}),
    Out = filename:join(Disk, "out"),
    ok = file:write_file(Out, ~"the one before"),
    until_there_is_room(Disk, fun() ->
        case sderl_prof_export:write(csv, Book, Out) of
            ok -> ok;
            Error ->
                ?assertEqual({ok, ~"the one before"}, file:read_file(Out)),
                Error
        end
    end, fun sderl_prof_export:format_error/1),
    {ok, Csv} = file:read_file(Out),
    ?assertEqual(20_001, length(binary:split(Csv, ~"\n", [global, trim_all]))).

samples(Disk) ->
    Out = filename:join(Disk, "samples.json"),
    Report = #{kind => sampling, text => binary:copy(~"sample ", 3000)},
    until_there_is_room(Disk, fun() ->
        Written = sderl_prof_sampling:write(Out, [Report]),
        ?assertEqual(Written =:= ok, filelib:is_file(Out)),
        Written
    end, fun sderl_prof_sampling:format_error/1),
    {ok, Text} = file:read_file(Out),
    ?assertMatch(#{~"kind" := ~"sampling"}, json:decode(Text)).

%% A profile started from a dashboard is refused, or fails with the reason; others are untouched.
live(Disk) ->
    Dir = filename:join(Disk, "profiles"),
    {ok, _} = sderl_prof_live:start(#{
        dir => Dir, most_bytes => 1_000_000_000, connect => fun(_) -> ok end,
        may_load => fun() -> false end, ended => fun(_) -> ok end
    }),
    Request = #{kind => sampling, on => #{}, who => ~"ann", seconds => 600, mib => 16,
                modules => [], nodes => [{~"here", node()}]},
    ok = leave_room(0, Disk),
    None = sderl_prof_live:new_id(),
    {error, Refused} = sderl_prof_live:begin_(None, Request),
    ok = says_full(sderl_prof_live:format_error(Refused)),
    {error, not_found} = sderl_prof_live:find(None),
    ?assertEqual([], filelib:wildcard("*", Dir)),
    Sampled = fun(Room) ->
        Id = sderl_prof_live:new_id(),
        ok = make_room(Disk),
        ok = sderl_prof_live:begin_(Id, Request),
        ok = in_state([running], Id),
        ok = Room(),
        ok = sderl_prof_live:stop(Id),
        ok = in_state([ended, failed], Id),
        {ok, Profile} = sderl_prof_live:find(Id),
        Profile
    end,
    #{state := failed, why := Why} = Sampled(fun() -> leave_room(0, Disk) end),
    ok = says_full(Why),
    #{state := ended, id := Kept} = Sampled(fun() -> ok end),
    {ok, sampling, _} = sderl_prof_live:viewer(Kept),
    sderl_prof_live:stop().

in_state(States, Id) ->
    sderl_fleet:await(fun() ->
        {ok, #{state := State}} = sderl_prof_live:find(Id),
        lists:member(State, States)
    end, ?WAIT_MS).

%% ---------------------------------------------------------------- what cases share

a_recording(Disk) ->
    Dir = filename:join(Disk, "recording"),
    ok = filelib:ensure_path(Dir),
    P = fun(N) -> sderl_prof_files:pid(10 + N rem 500, 0) end,
    ok = sderl_prof_files:recording(Dir, #{}, [
        case N rem 2 of
            0 -> {trace_ts, P(N), in, {m, f, 0}, 1000 * N};
            1 -> {trace_ts, P(N - 1), out, {m, f, 0}, 1000 * N + rand:uniform(999)}
        end || N <- lists:seq(0, 19_999)
    ]),
    Dir.

%% With too little room it fails with that reason each time, and leaves nothing incomplete.
until_there_is_room(Disk, Make, Format) ->
    Outcomes = [begin
                    ok = leave_room(Room, Disk),
                    Outcome = case Make() of
                        ok -> made;
                        {ok, _} -> made;
                        {error, {told, Text}} -> says_full(Text);
                        {error, Why} -> says_full(Format(Why))
                    end,
                    ?assertEqual([], half(Disk)),
                    Outcome
                end || Room <- ?ROOMS],
    ?assertEqual({ok, made}, {hd(Outcomes), lists:last(Outcomes)}),
    ok = make_room(Disk).

half(Disk) ->
    [Name || Name <- filelib:wildcard("**", Disk), string:find(Name, ".new") =/= nomatch].

says_full(Text) ->
    Said = unicode:characters_to_list(Text),
    ?assertNotEqual({Said, nomatch}, {Said, string:find(Said, "no space left on device")}),
    ok.

leave_room(Bytes, Disk) ->
    ok = make_room(Disk),
    sderl_fleet_disk:filled(filename:join(Disk, "filler"), Bytes).

make_room(Disk) ->
    case file:delete(filename:join(Disk, "filler"), [raw]) of
        ok -> ok;
        {error, enoent} -> ok
    end.

on_small_disk(Case) ->
    sderl_prof_files:with_dir(fun(Dir) ->
        ok = sderl_fleet_disk:with(Dir, "8m", fun(Disk, Call) -> Call(?MODULE, Case, [Disk]) end)
    end).

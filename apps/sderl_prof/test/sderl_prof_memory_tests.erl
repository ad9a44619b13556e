%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_memory_tests).
-moduledoc """
Traces that must be analysed in a tenth of their size as memory, by a virtual machine that gets no
more from the system, for all of its processes and its own code.
""".

-include_lib("eunit/include/eunit.hrl").

-import(sderl_prof_files, [with_dir/1]).

-export([analyse/1, open_all/1, fill/1]).

-define(MIB, 1_048_576).
%% What a virtual machine may have beside what it takes when it does nothing. Each step has one of
%% its own, as each command has.
-define(MOST_MIB, 128).
%% What each of two nodes has: in long runs both together have ten times as much.
-define(MIB_OF_NODE, case os:getenv("SDERL_LONG") of false -> 120; _ -> 5 * ?MOST_MIB end).
%% The same for processes that live shortly, of which a block has ten thousand.
-define(MOST_MIB_SHORT, 256).
-define(PROCESSES, case os:getenv("SDERL_LONG") of false -> 30_000; _ -> 1_000_000 end).

%% Large messages, and many processes that live shortly, on two nodes that send to each other.
larger_than_memory_test_() ->
    {timeout, 1800, fun() ->
        with_dir(fun(Dir) ->
            Size = ?MIB_OF_NODE * ?MIB,
            ?assert(lists:sum(two_nodes(Dir, Size)) >= 2 * Size),
            ?assertMatch(#{problems := []},
                         in_small(?MOST_MIB, analyse, [filename:join(Dir, "a@h")])),
            {ok, #{}} = in_small(?MOST_MIB, sderl_prof_cluster_report, make, [Dir, #{}]),
            #{nodes := Nodes, sent := Sent, received := Received} =
                in_small(?MOST_MIB, open_all, [Dir]),
            ?assertEqual(2, length(Nodes)),
            ?assertEqual(Sent, Received),
            ?assert(Sent > 1000)
        end)
    end}.

%% One process begins a million others, each of which runs and ends.
short_processes_test_() ->
    {timeout, 1800, fun() ->
        with_dir(fun(Dir) ->
            Count = ?PROCESSES,
            ok = short_processes(Dir, Count),
            #{problems := Problems, processes := Processes, omitted := Omitted, run := Run} =
                in_small(?MOST_MIB_SHORT, analyse, [Dir]),
            %% The process that spawns them has no running time.
            ?assertEqual({[], Count}, {Problems, Processes}),
            %% One of the similar processes is shown, with the sums of the others.
            ?assertEqual([Count - 1], Omitted),
            ?assertEqual(10 * Count, Run)
        end)
    end}.

%% The limit works: allocating as much ends the virtual machine.
limit_test_() ->
    {timeout, 120, fun() ->
        ?assertError({small, _}, in_small(?MOST_MIB, fill, [2 * ?MOST_MIB * ?MIB])),
        ?assertEqual(ok, in_small(?MOST_MIB, fill, [?MIB]))
    end}.

%% ---------------------------------------------------------------- in the small virtual machine

-doc "Takes so many bytes of memory.".
-spec fill(pos_integer()) -> ok.
fill(Bytes) ->
    Bytes = byte_size(binary:copy(~"x", Bytes)),
    ok.

-doc "Book, report and pages of a recording.".
-spec analyse(file:filename()) -> map().
analyse(Dir) ->
    {ok, Book} = sderl_prof:open(Dir, #{}),
    {ok, #{trace := #{problems := Problems, processes := Processes}, tree := Tree,
           totals := #{run := Run}}} = sderl_prof_report:make(Book, #{}),
    ok = sderl_prof_index:make(Book, #{}),
    {ok, View} = sderl_prof_view:open(Book, fun(_, _) -> ok end),
    #{duration := _} = sderl_prof_view:about(View),
    ok = sderl_prof_view:close(View),
    #{problems => Problems, processes => Processes, run => Run,
      omitted => [N || #{omitted := N} <- Tree, N > 0]}.

-doc "The books of several nodes as one, its report and its pages.".
-spec open_all(file:filename()) -> map().
open_all(Dir) ->
    {ok, Book} = sderl_prof_cluster_book:open(Dir, #{}),
    {ok, #{totals := #{sent := Sent, received := Received}}} = sderl_prof_report:make(Book, #{}),
    {ok, View} = sderl_prof_view:open(Book, fun(_, _) -> ok end),
    #{nodes := Nodes} = sderl_prof_view:about(View),
    ok = sderl_prof_view:close(View),
    #{nodes => Nodes, sent => Sent, received => Received}.

%% The limit is so many MiB above the memory of an idle virtual machine.
in_small(MiB, Function, Args) -> in_small(MiB, ?MODULE, Function, Args).

in_small(MiB, Module, Function, Args) ->
    with_limit(idle_kib() + 1024 * MiB, fun(Peer) ->
        try
            peer:call(Peer, Module, Function, Args, 1_500_000)
        catch
            _:Why -> error({small, Why})
        end
    end).

idle_kib() ->
    with_limit(unlimited, fun(Peer) ->
        Id = peer:call(Peer, os, getpid, [], 60_000),
        {ok, Status} = file:read_file(["/proc/", Id, "/status"]),
        {match, [KiB]} = re:run(Status, "VmSize:\\s+(\\d+)", [{capture, all_but_first, list}]),
        list_to_integer(KiB)
    end).

with_limit(KiB, Fun) ->
    Paths = [["-pa", Path] || Path <- code:get_path(), not lists:prefix(code:root_dir(), Path)],
    {ok, Peer, _} = peer:start(#{
        connection => standard_io, wait_boot => 120_000,
        exec => {os:find_executable("sh"),
                 ["-c", lists:concat(["ulimit -v ", KiB, " && exec erl \"$@\""]), "sh"]},
        args => ["+S", "2:2", "+SDcpu", "2:2", "+SDio", "2" | lists:append(Paths)],
        env => [{"ERL_CRASH_DUMP_SECONDS", "0"}, {"MALLOC_ARENA_MAX", "1"}]
    }),
    try
        Fun(Peer)
    after
        %% It may have ended already, for want of memory.
        try peer:stop(Peer) catch exit:_ -> ok end
    end.

%% ---------------------------------------------------------------- the traces

two_nodes(Dir, Size) ->
    ok = sderl_prof_two_nodes:cluster(Dir, [
        {Node, [{trace_ts, sderl_prof_two_nodes:pid(Node, 1), register, whole,
                 sderl_prof_two_nodes:at(Node, 100_000_000)}]} || Node <- [~"a@h", ~"b@h"]
    ]),
    [with_events(filename:join(Dir, Node), Node, Other, Size)
     || {Node, Other} <- [{~"a@h", ~"b@h"}, {~"b@h", ~"a@h"}]].

with_events(Folder, Node, Other, Size) ->
    Message = binary:copy(~"m", 50_000),
    Name = filename:join(Folder, "events.0.trace"),
    {ok, File} = file:open(Name, [write, raw, binary, {delayed_write, ?MIB, 2000}]),
    ok = filled(File, {Node, Other, binary_to_atom(Other), Message}, 1, Size),
    ok = file:close(File),
    filelib:file_size(Name).

%% Process N of either node sends to process N of the other one and receives from it.
filled(_, _, _, Left) when Left =< 0 -> ok;
filled(File, {Node, Other, From, Message} = Whom, N, Left) ->
    P = sderl_prof_two_nodes:pid(Node, 10 + N),
    At = fun(After) -> sderl_prof_two_nodes:at(Node, 1000 + 1000 * N + After) end,
    F = {m, f, 0},
    Frames = [sderl_prof_files:frame(Event) || Event <- [
        {trace_ts, P, spawned, sderl_prof_two_nodes:pid(Node, 1), {m, f, []}, At(0)},
        {trace_ts, P, in, F, At(1)},
        {trace_ts, P, send, Message, sderl_prof_two_nodes:pid(Other, 10 + N), At(2)},
        {trace_ts, P, out, F, At(3)},
        {trace_ts, P, in, F, At(200)},
        {trace_ts, P, 'receive', Message, {From, sderl_from}, At(201)},
        {trace_ts, P, exit, normal, At(202)},
        {trace_ts, P, out_exited, 0, At(203)}
    ]],
    ok = file:write(File, Frames),
    filled(File, Whom, N + 1, Left - iolist_size(Frames)).

short_processes(Dir, Count) ->
    ok = sderl_prof_files:recording(Dir, #{}, []),
    {ok, File} = file:open(filename:join(Dir, "events.0.trace"),
                           [write, raw, binary, {delayed_write, ?MIB, 2000}]),
    ok = short_processes(File, 1, Count),
    file:close(File).

short_processes(_, N, Count) when N > Count -> ok;
short_processes(File, N, Count) ->
    %% Numbers of processes come again with another serial.
    P = sderl_prof_files:pid(10 + N rem 30_000, N div 30_000),
    T = 100 * N,
    F = {m, f, 0},
    Parent = sderl_prof_files:pid(1, 0),
    ok = file:write(File, [sderl_prof_files:frame(Event) || Event <- [
        {trace_ts, Parent, spawn, P, {m, f, []}, T},
        {trace_ts, P, spawned, Parent, {m, f, []}, T + 1},
        {trace_ts, P, in, F, T + 10},
        {trace_ts, P, exit, normal, T + 20},
        {trace_ts, P, out_exited, 0, T + 20}
    ]]),
    short_processes(File, N + 1, Count).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_SUITE).
-moduledoc """
Recordings of real nodes: programs whose processes and messages are known, limits, other tracers at
the same time, and that no trace stays on, however a recording ends.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

-define(WAIT_MS, 120_000).
-define(P, sderl_prof_programs).
-define(MIB, 1_048_576).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [pipeline, farm, bottleneck, mailbox, long_gc, migration, sleeping, tables, compared,
     counters, calls_and_exports, s_group_events, cost, limits, killed, owner_dies, node_dies,
     others_tracers, refused, virtual_machine, virtual_machine_dies, lock_tables, probes,
     probes_of_nobody, probes_refused].

%% ---------------------------------------------------------------- known programs

pipeline(_) ->
    with(1, fun(Fleet, [A]) ->
        {Sum, #{messages := Messages} = Report} =
            profile(Fleet, A, {pipeline, 5, 200}, #{what => messages, top => 50}),
        ?assertEqual(lists:sum([N + 5 || N <- lists:seq(1, 200)]), Sum),
        complete(Report),
        #{trace := #{runnable := recorded}} = Report,
        %% Each stage sent all to the next one: 200 items and the end.
        ?assertEqual(6, length([1 || #{count := 201} <- map_get(rows, Messages)])),
        %% What was sent was received.
        #{totals := #{sent := Sent, received := Received}} = Report,
        ?assert(Sent >= 6 * 201),
        ?assert(Received >= 6 * 201),
        %% The path goes through the stages, and no process waits for answers.
        #{critical_path := Path, findings := #{found := Found}} = Report,
        #{processes := OnPath} = is_path(Path),
        ?assertMatch([_ | _], [P || #{entry := ~"sderl_prof_programs:stage/1"} = P <- OnPath]),
        ?assertEqual([], [F || #{finding := bottleneck} = F <- Found])
    end).

%% Twenty workers that are alike: one is shown, with what the others did together.
farm(_) ->
    with(1, fun(Fleet, [A]) ->
        {Results, #{tree := Tree, top := Top} = Report} =
            profile(Fleet, A, {farm, 20}, #{what => concurrency, top => 50}),
        ?assertEqual(lists:duplicate(20, ?P:fib(18)), Results),
        complete(Report),
        Entry = ~"sderl_prof_programs:worker/2",
        [{#{run := Most}, 19, #{run := Rest}}] =
            [{Shown, N, Sums} || #{shown := [#{entry := E} = Shown], omitted := N,
                                   omitted_sums := Sums} <- Tree, E =:= Entry],
        ?assert(Rest =< 19 * Most),
        Workers = [P || #{entry := E} = P <- map_get(run, Top), E =:= Entry],
        ?assertEqual(20, length(Workers)),
        %% Nobody sent them anything, and they waited for nothing but schedulers. (Few may wait for
        %% the virtual machine itself.)
        [?assertMatch(#{received := 0, run := Run} when Run > 0, W) || W <- Workers],
        ?assert(length([W || #{wait := 0} = W <- Workers]) >= 15),
        %% No more ran at a time than there are schedulers.
        #{concurrency := Points, trace := #{schedulers := Schedulers}} = Report,
        [?assert(R =< Schedulers + 10 + 0.001) || #{running := R} <- Points],
        _ = is_path(map_get(critical_path, Report))
    end).

%% Everybody waits for the one server, by its name, and it receives from all of them.
bottleneck(_) ->
    with(1, fun(Fleet, [A]) ->
        {80, #{waits_for := For, messages := Messages, waits := Waits} = Report} =
            profile(Fleet, A, {bottleneck, 4, 20, 24}, #{what => messages, top => 50}),
        complete(Report),
        ForServer = [R || #{waker := ~"the_bottleneck"} = R <- map_get(rows, For)],
        ?assertMatch([_, _, _, _ | _], ForServer),
        Asked = [N || #{to := ~"the_bottleneck", count := N} <- map_get(rows, Messages)],
        ?assertEqual([20, 20, 20, 20], [N || N <- Asked, N =:= 20]),
        ?assert(lists:any(fun(#{site := Site}) -> Site =:= ~"sderl_prof_programs:client/3" end,
                          Waits)),
        [#{received := 81} | _] =
            [P || #{process := ~"the_bottleneck"} = P <- map_get(received, map_get(top, Report))],
        %% It is found, and what it runs is the most of what runs on the critical path.
        #{findings := #{found := Found}, critical_path := Path} = Report,
        [#{evidence := #{waiters := Waiters, at_a_time := AtATime}}] =
            [F || #{finding := bottleneck, process := ~"the_bottleneck"} = F <- Found],
        %% The four clients, and in the end the one that asks how many were served.
        ?assertEqual(5, Waiters),
        ?assert(AtATime > 2),
        #{kinds := #{running := Running}, processes := OnPath} = is_path(Path),
        [#{times := #{running := Its}}] =
            [P || #{process := ~"the_bottleneck"} = P <- OnPath],
        ?assert(Its > Running / 2)
    end).

%% All messages are in the mailbox before the process receives the first one.
mailbox(_) ->
    with(1, fun(Fleet, [A]) ->
        {ok, Report} = profile(Fleet, A, {mailbox, 3000}, #{what => messages}),
        complete(Report),
        #{evidence := #{peak := 3000, left := 0}} = found(mailbox, ~"the_slow_one", Report)
    end).

%% Some 100 MB are copied each time.
long_gc(_) ->
    with(1, fun(Fleet, [A]) ->
        {ok, #{top := #{gc := [Most | _]}} = Report} =
            profile(Fleet, A, {keeper, 6_000_000, 3}, #{what => concurrency}),
        complete(Report),
        #{evidence := #{longest_ns := Longest, gc_ns := Gc}} =
            found(long_gc, ~"the_keeper", Report),
        ?assert(Longest >= 10_000_000),
        ?assertMatch(#{process := ~"the_keeper", gc := Its}
                         when Its >= Longest andalso Its =< Gc, Most)
    end).

migration(_) ->
    with_schedulers(fun(Fleet, A) ->
        {ok, #{top := #{moves := [Most | _]}} = Report} =
            profile(Fleet, A, {mover, 3000}, #{what => [migration]}),
        complete(Report),
        #{evidence := #{moves := All}} = found(migration, ~"the_mover", Report),
        ?assertMatch(#{process := ~"the_mover", moves := Moves}
                         when Moves >= 2999 andalso Moves =< All, Most)
    end).

%% The functions of ets are built in; their returns are recorded all the same.
tables(_) ->
    with(1, fun(Fleet, [A]) ->
        {ok, Report} =
            profile(Fleet, A, {table, 20_000}, #{what => [running, {callgraph, [ets]}]}),
        complete(Report),
        #{evidence := #{times := Times, tables_ns := Ns, run_ns := Run,
                        places := [#{process := Place, calls := 20_000} | _]}} =
            found(tables, null, Report),
        ?assertEqual(~"ets:insert/2 in sderl_prof_programs:inserter/2", Place),
        ?assert(Times > 20_000 andalso Ns < Run)
    end).

%% What is bound to one scheduler waits for it, whatever the others do: of three, two wait.
sleeping(_) ->
    with_schedulers(fun(Fleet, A) ->
        {ok, #{schedulers := #{changes := Changes}} = Report} =
            profile(Fleet, A, {pinned, 3, 34}, #{what => [running, schedulers]}),
        complete(Report),
        #{evidence := #{asleep_ns := Asleep, waited_ns := Waited}} =
            found(sleeping, null, Report),
        ?assert(Changes > 0),
        ?assert(Waited >= Asleep)
    end).

with_schedulers(Fun) ->
    with(1, fun(Fleet, [A]) ->
        call(Fleet, A, erlang, system_info, [schedulers_online]) =:= 1 orelse Fun(Fleet, A)
    end).

found(Finding, Process, #{findings := #{found := Found}}) ->
    [One] = [F || #{finding := Kind, process := Who} = F <- Found, Kind =:= Finding,
                  Who =:= Process],
    One.

%% The same workers with more to do, and processes that were not there before.
compared(_) ->
    with(1, fun(Fleet, [A]) ->
        [Before, After] = [begin
            Dir = folder(Fleet, A, Name),
            {_, Report} = profile(Fleet, A, Program, #{what => messages, dir => Dir}),
            complete(Report),
            Dir
        end || {Name, Program} <- [{"before", {farm, 8, 24}},
                                   {"after", {both, {farm, 8, 33}, {bottleneck, 4, 20, 22}}}]],
        Compare = fun(X, Y) -> call(Fleet, A, sderl_prof, compare, [X, Y, #{top => 50}]) end,
        Of = fun(Rows, Entry) ->
            [Row || #{process := Who, place := Place} = Row <- Rows,
                    lists:any(fun(Text) -> string:find(Text, Entry) =/= nomatch end, [Who | Place])]
        end,
        {ok, #{slower := Slower, appeared := Appeared, disappeared := Gone}} =
            Compare(Before, After),
        %% fib(33) takes 76 times as many calls as fib(24), which takes long enough that a moment
        %% in which the machine does something else is little.
        [#{factor := Factor, before := #{count := 8}, 'after' := #{count := 8}}] =
            Of(Slower, "worker/2"),
        ?assert(Factor > 5),
        ?assertMatch([#{before := null, 'after' := #{count := 1}}], Of(Appeared, "the_bottleneck")),
        ?assertEqual([], Of(Gone, "sderl_prof_programs")),
        {ok, #{faster := Faster, disappeared := Missing}} = Compare(After, Before),
        [#{factor := Back}] = Of(Faster, "worker/2"),
        ?assert(abs(Back * Factor - 1) < 0.01),
        ?assertMatch([_], Of(Missing, "the_bottleneck"))
    end).

%% The running time from the events is the active time by scheduler_wall_time, less the time that
%% writing the events takes: here some 60,000, of 2 to 3 us each.
counters(_) ->
    with(1, fun(Fleet, [A]) ->
        {#{totals := #{run := Run}}, Active} =
            call(Fleet, A, ?P, counted, [{farm, 8, 32}, folder(Fleet, A, "counters"),
                                         #{what => [running]}]),
        ct:pal("running ~w ms, active ~w ms", [round(Run / 1.0e6), round(Active / 1.0e6)]),
        ?assert(Run > 0.2 * Active),
        ?assert(Run < 1.2 * Active)
    end).

%% All of the time has its place on the path.
is_path(#{from := 0, to := To, kinds := Kinds, processes := Processes,
          others := #{ns := Others}} = Path) ->
    ?assertEqual(To, lists:sum(maps:values(Kinds))),
    ?assertEqual(To, Others + lists:sum([Ns || #{ns := Ns} <- Processes])),
    Path.

complete(#{trace := #{problems := Problems, lost_events := Lost, dropped := Dropped,
                      ended := Ended}}) ->
    ?assertEqual({[], 0, 0, stopped}, {Problems, Lost, Dropped, Ended}).

calls_and_exports(Config) ->
    with(1, fun(Fleet, [A]) ->
        Dir = folder(Fleet, A, "calls"),
        Options = #{what => [{callgraph, [?P]}, running, message], dir => Dir},
        {55, #{calls := #{functions := Functions}} = Report} =
            profile(Fleet, A, {calls, 10}, Options),
        complete(Report),
        %% fib(10) makes 177 calls.
        [#{calls := 177, own_ns := Own, callers := [Most | _], callees := Callees}] =
            [F || #{function := ~"sderl_prof_programs:fib/1"} = F <- Functions],
        ?assert(Own > 0),
        %% All but the first call are its own.
        ?assertMatch(#{caller := ~"sderl_prof_programs:fib/1", calls := 176, ns := 0}, Most),
        ?assertMatch([_], [C || #{callee := ~"sderl_prof_programs:fib/1", calls := 176} = C
                                    <- Callees]),
        [Scope, Pprof, Chrome, Csv] =
            call(Fleet, A, ?P, export, [Dir, [speedscope, pprof, chrome, csv]]),
        pprof(Pprof, Functions, proplists:get_value(priv_dir, Config)),
        speedscope(Scope, proplists:get_value(priv_dir, Config)),
        #{~"shared" := #{~"frames" := Frames},
          ~"profiles" := [#{~"type" := ~"sampled", ~"samples" := Samples,
                            ~"weights" := Weights, ~"endValue" := End}]} = json:decode(Scope),
        ?assert(lists:member(#{~"name" => ~"sderl_prof_programs:fib/1"}, Frames)),
        ?assertEqual({length(Samples), End}, {length(Weights), lists:sum(Weights)}),
        [?assert(lists:all(fun(N) -> N < length(Frames) end, Stack)) || Stack <- Samples],
        #{~"traceEvents" := Events} = json:decode(Chrome),
        [?assert(lists:any(fun(#{~"name" := N}) -> N =:= Name end, Events))
         || Name <- [~"thread_name", ~"running"]],
        #{trace := #{events := Count}} = Report,
        ?assertEqual(Count + 1, length(binary:split(Csv, ~"\n", [global, trim_all])))
    end).

%% Read by the definition of its format, and in long runs by the tool itself, which Go builds first.
pprof(Compressed, Functions, Dir) ->
    Fields = fields(zlib:gunzip(Compressed)),
    [~"" | _] = Texts = [Text || {6, Text} <- Fields],
    ?assert(lists:member(~"sderl_prof_programs:fib/1", Texts)),
    Samples = [fields(Sample) || {2, Sample} <- Fields],
    ?assertEqual(lists:sum([Own || #{own_ns := Own} <- Functions]),
                 lists:sum([Ns || Sample <- Samples, {2, Value} <- Sample,
                                  {Ns, <<>>} <- [varint(Value)]])),
    File = filename:join(Dir, "calls.pb.gz"),
    ok = file:write_file(File, Compressed),
    case {os:getenv("SDERL_LONG"), os:find_executable("go")} of
        {Long, Go} when Long =:= false; Go =:= false ->
            ct:comment("pprof itself did not read the file: that needs SDERL_LONG=1 and go");
        {_, Go} ->
            Said = os:cmd(lists:concat([Go, " tool pprof -top -nodecount=1000 '", File, "' 2>&1"])),
            ct:pal("~ts", [Said]),
            [?assertNotEqual({Said, nomatch}, {Said, string:find(Said, Part)})
             || Part <- ["Type: time", "sderl_prof_programs:fib/1"]]
    end.

%% In long runs the tool itself opens the file, in a browser.
speedscope(Json, Dir) ->
    File = filename:join(Dir, "calls.json"),
    ok = file:write_file(File, Json),
    Web = filename:join([code:lib_dir(sderl_prof), "../../../..", "toolchain/web"]),
    case os:getenv("SDERL_LONG") of
        false -> ct:comment("pprof and speedscope themselves did not read the files: SDERL_LONG=1");
        _ ->
            Said = os:cmd(lists:concat([Web, " --run node e2e/speedscope.mjs '", File,
                                        "' sderl_prof_programs:fib/1 2>&1"])),
            ct:pal("~ts", [Said]),
            case string:find(Said, "speedscope could not be fetched") of
                nomatch ->
                    ?assertNotEqual({Said, nomatch},
                                    {Said, string:find(Said, "speedscope lists sderl")});
                _ -> ct:comment("speedscope did not read the file: it could not be fetched")
            end
    end.

%% The fields of a message of protocol buffers: numbers and what has a length.
fields(<<>>) -> [];
fields(Bin) ->
    {Key, Rest} = varint(Bin),
    case Key band 7 of
        0 ->
            {N, More} = varint(Rest),
            [{Key bsr 3, N} | fields(More)];
        2 ->
            {Size, More} = varint(Rest),
            <<Data:Size/binary, Behind/binary>> = More,
            [{Key bsr 3, Data} | fields(Behind)]
    end.

varint(<<0:1, N:7, Rest/binary>>) -> {N, Rest};
varint(<<1:1, N:7, Rest/binary>>) ->
    {More, Behind} = varint(Rest),
    {More bsl 7 bor N, Behind}.

s_group_events(_) ->
    with(1, [sderl], fun(Fleet, [A]) ->
        Dir = folder(Fleet, A, "groups"),
        {ok, Plan} = sderl_prof_options:plan(#{what => s_group}),
        {ok, Recorder} = call(Fleet, A, sderl_prof_recorder, start, [Plan, Dir, pid_of(Fleet, A)]),
        {ok, g, [A]} = call(Fleet, A, s_group, new_s_group, [g, [A]]),
        #{ended := stopped} = call(Fleet, A, sderl_prof_recorder, stop, [Recorder]),
        [Csv] = call(Fleet, A, ?P, export, [Dir, [csv]]),
        [?assertNotEqual(nomatch, string:find(Csv, Text))
         || Text <- ["operation,", "result,", "s_group:new_s_group/2"]]
    end).

%% ---------------------------------------------------------------- the limits

%% The trial on another node measures the cost of a recording, and leaves nothing there.
cost(_) ->
    with(2, fun(Fleet, [A, B]) ->
        true = call(Fleet, B, net_kernel, connect_node, [A]),
        Dir = folder(Fleet, A, "cost/recording"),
        Options = #{what => messages, dir => Dir},
        ok = call(Fleet, A, ?P, churn, [5]),
        {ok, #{events_s := Events, bytes_s := Bytes, event_ns := Ns, cores := Cores}} =
            call(Fleet, B, sderl_prof, estimate, [A, Options]),
        %% An exchange of the pairs takes a dozen events, of 50 bytes and more.
        ?assert(Events > 1000),
        ?assert(Bytes > 40 * Events),
        ?assert(abs(Cores - Events * Ns / 1.0e9) < 1.0e-6),
        {error, {too_much, _, 100} = Why} =
            call(Fleet, B, sderl_prof, record, [A, Options#{max_events_s => 100}]),
        Text = unicode:characters_to_list(sderl_prof:format_error(Why)),
        ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, "more than the 100 events")}),
        {ok, #{dir := Dir}} =
            call(Fleet, B, sderl_prof, record, [A, Options#{max_events_s => 1_000_000_000}]),
        %% It ended with the process that asked for it.
        await_quiet(Fleet, A),
        ?assertEqual({ok, ["recording"]},
                     call(Fleet, A, file, list_dir, [filename:dirname(Dir)])),
        shared(Fleet, A, B, round(Events)),
        %% What the recording itself would refuse, the trial refuses.
        {error, {recorder, {no_process, no_such_name}}} =
            call(Fleet, B, sderl_prof, estimate, [A, Options#{who => [no_such_name]}])
    end).

%% A node with too many events is recorded in part, which its report says. Of many processes that do
%% alike: with a few, it would be by chance that one of those drawn alone has too many.
shared(Fleet, A, B, Events) ->
    Dir = folder(Fleet, A, "cost/share"),
    ok = call(Fleet, A, ?P, churn, [300]),
    {ok, _} = call(Fleet, B, sderl_prof, record,
                   [A, #{what => concurrency, dir => Dir, above => share,
                         max_events_s => max(1, Events div 20)}]),
    await_quiet(Fleet, A),
    {ok, #{trace := #{problems := Problems}, findings := #{not_shown := Not}}} =
        call(Fleet, A, sderl_prof, report, [Dir, #{}]),
    ?assertMatch([_], [Text || <<"one process in ", _/binary>> = Text <- Problems]),
    ?assertMatch([#{needs := ~"all processes"}],
                 [One || #{finding := low_parallelism} = One <- Not]).

limits(_) ->
    with(1, fun(Fleet, [A]) ->
        ok = call(Fleet, A, ?P, churn, [20]),
        Bytes = 16 * ?MIB,
        [begin
             Dir = folder(Fleet, A, Name),
             #{ended := Ended} = recorded(Fleet, A, Dir, Options#{what => messages}),
             ?assertEqual({Name, Expected}, {Name, Ended}),
             Sizes = [call(Fleet, A, filelib, file_size, [File])
                      || File <- call(Fleet, A, filelib, wildcard, [Dir ++ "/events.*.trace"])],
             ?assert(lists:sum(Sizes) =< map_get(bytes, Options)),
             %% On a busy machine the check may be late: the driver overwrites, the report says so.
             {ok, #{trace := #{lost_events := Lost, problems := Problems}}} =
                 call(Fleet, A, sderl_prof, report, [Dir, #{}]),
             ?assertEqual({Name, Lost > 0},
                          {Name, [] =/= [P || P <- Problems,
                                              string:find(P, "were overwritten") =/= nomatch]})
         end
         || {Name, Options, Expected} <- [
                {"first", #{seconds => 600, bytes => Bytes}, full},
                %% More than a busy machine writes before it sees that the time is over.
                {"time", #{seconds => 0.05, bytes => 16 * Bytes}, time}
            ]],
        %% Records until something has been overwritten.
        Last = folder(Fleet, A, "last"),
        {ok, Plan} = sderl_prof_options:plan(#{what => messages, bytes => Bytes, keep => last,
                                               seconds => 600}),
        {ok, Recorder} = call(Fleet, A, sderl_prof_recorder, start,
                              [Plan, Last, pid_of(Fleet, A)]),
        ok = sderl_fleet:await(fun() ->
            #{written := Written} = call(Fleet, A, sderl_prof_recorder, info, [Recorder]),
            Written > 2 * Bytes
        end, ?WAIT_MS),
        #{ended := stopped} = call(Fleet, A, sderl_prof_recorder, stop, [Recorder]),
        {ok, #{trace := #{lost_events := Lost, problems := [Problem]}}} =
            call(Fleet, A, sderl_prof, report, [Last, #{}]),
        ?assert(Lost > 0),
        ?assertNotEqual(nomatch, string:find(Problem, "were overwritten"))
    end).

%% ---------------------------------------------------------------- its end

killed(_) ->
    with(1, fun(Fleet, [A]) ->
        Dir = folder(Fleet, A, "killed"),
        {ok, Plan} = sderl_prof_options:plan(#{what => [messages, schedulers], seconds => 600}),
        {ok, Recorder} = call(Fleet, A, sderl_prof_recorder, start,
                              [Plan, Dir, pid_of(Fleet, A)]),
        ?assertNot(quiet(Fleet, A)),
        true = call(Fleet, A, erlang, exit, [Recorder, kill]),
        await_quiet(Fleet, A),
        %% What was written before can be read.
        {ok, #{trace := #{events := N, problems := [Problem]}}} =
            call(Fleet, A, sderl_prof, report, [Dir, #{}]),
        ?assert(N > 0),
        ?assertNotEqual(nomatch, string:find(Problem, "not ended in order"))
    end).

owner_dies(_) ->
    with(2, fun(Fleet, [A, B]) ->
        Dir = folder(Fleet, A, "owner"),
        true = call(Fleet, B, net_kernel, connect_node, [A]),
        {ok, Plan} = sderl_prof_options:plan(#{what => messages, seconds => 600}),
        {ok, Recorder} = call(Fleet, A, sderl_prof_recorder, start,
                              [Plan, Dir, pid_of(Fleet, B)]),
        ok = sderl_fleet:kill(Fleet, B),
        ok = sderl_fleet:await(fun() ->
            not call(Fleet, A, erlang, is_process_alive, [Recorder])
        end, ?WAIT_MS),
        await_quiet(Fleet, A),
        {ok, #{trace := #{ended := owner, problems := []}}} =
            call(Fleet, A, sderl_prof, report, [Dir, #{}])
    end).

node_dies(_) ->
    with(2, fun(Fleet, [A, B]) ->
        Dir = folder(Fleet, B, "dies"),
        ok = call(Fleet, A, ?P, churn, [5]),
        {ok, Plan} = sderl_prof_options:plan(#{what => messages, seconds => 600}),
        {ok, Recorder} = call(Fleet, A, sderl_prof_recorder, start,
                              [Plan, Dir, pid_of(Fleet, A)]),
        %% More than the driver's buffer holds, so that some is in the file.
        ok = sderl_fleet:await(fun() ->
            #{written := Written} = call(Fleet, A, sderl_prof_recorder, info, [Recorder]),
            Written > 1_000_000
        end, ?WAIT_MS),
        ok = sderl_fleet:kill(Fleet, A),
        {ok, #{trace := #{events := N, node := Node, problems := [_ | _]}}} =
            call(Fleet, B, sderl_prof, report, [Dir, #{}]),
        ?assertEqual(atom_to_binary(A), Node),
        ?assert(N > 1000)
    end).

%% ---------------------------------------------------------------- others

%% Another tool holds the system profiler, and another one traces: neither is disturbed.
others_tracers(_) ->
    with(1, fun(Fleet, [A]) ->
        Tool = pid_of(Fleet, A),
        undefined = call(Fleet, A, erlang, system_profile, [Tool, [runnable_ports]]),
        N = call(Fleet, A, erlang, trace, [existing, true, [procs, {tracer, Tool}]]),
        ?assert(N > 0),
        {_, #{trace := #{runnable := messages}}} =
            profile(Fleet, A, {pipeline, 3, 50}, #{what => messages}),
        ?assertEqual({Tool, [runnable_ports]}, call(Fleet, A, erlang, system_profile, [])),
        Init = call(Fleet, A, erlang, whereis, [init]),
        ?assertEqual({tracer, Tool}, call(Fleet, A, erlang, trace_info, [Init, tracer]))
    end).

refused(_) ->
    with(1, fun(Fleet, [A]) ->
        Dir = folder(Fleet, A, "refused"),
        Owner = pid_of(Fleet, A),
        [begin
             {ok, Plan} = sderl_prof_options:plan(Options),
             {error, Reason} = call(Fleet, A, sderl_prof_recorder, start, [Plan, Dir, Owner]),
             Text = unicode:characters_to_list(sderl_prof_recorder:format_error(Reason)),
             ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Says)}),
             await_quiet(Fleet, A)
         end
         || {Options, Says} <- [
                {#{who => [no_such_name]}, "no process no_such_name"},
                {#{who => [{application, no_such_app}]}, "no application no_such_app"},
                {#{what => {callgraph, [no_such_module]}}, "no module no_such_module"}
            ]],
        %% A folder that is not empty is refused and left as it is.
        ok = call(Fleet, A, filelib, ensure_path, [Dir]),
        ok = call(Fleet, A, file, write_file, [filename:join(Dir, "mine"), ~"mine"]),
        {ok, Plan} = sderl_prof_options:plan(#{}),
        {error, not_empty} = call(Fleet, A, sderl_prof_recorder, start, [Plan, Dir, Owner]),
        {ok, ~"mine"} = call(Fleet, A, file, read_file, [filename:join(Dir, "mine")]),
        {error, {folder, _, _}} =
            call(Fleet, A, sderl_prof_recorder, start, [Plan, "/proc/nothing/here", Owner])
    end).

%% ---------------------------------------------------------------- what cases share

%% ---------------------------------------------------------------- what a virtual machine tells

%% B measures A, on which no module of this project was loaded before.
virtual_machine(_) ->
    with(2, fun(Fleet, [A, B]) ->
        {ok, #{node := Node, threads := Threads, schedulers := Schedulers, memory := Memory,
               emulator := #{os_pid := OsPid}, untold := Untold}} =
            call(Fleet, B, sderl_prof_vm, read, [A, #{seconds => 1, modules => [gen_server]}]),
        ?assertEqual(atom_to_binary(A), Node),
        ?assertEqual(OsPid, list_to_binary(call(Fleet, A, os, getpid, []))),
        ?assertMatch([_ | _], [T || #{type := scheduler} = T <- Threads]),
        ?assertEqual(call(Fleet, A, erlang, system_info, [schedulers]),
                     length([S || #{type := normal} = S <- Schedulers])),
        #{blocks := Blocks, carriers := Carriers, resident := Resident} = Memory,
        ?assert(Blocks =< Carriers),
        ?assert(Resident > 1_000_000),
        %% A reading is off when the node allocates or frees much just then: one of ten is right.
        ?assert(lists:any(fun(_) ->
            {ok, #{memory := #{checks := Checks}}} =
                call(Fleet, B, sderl_prof_vm, read, [A, #{seconds => 0.05}]),
            [] =/= [D || #{what := total, difference := D} <- Checks, abs(D) =< 0.05]
        end, lists:seq(1, 10))),
        ?assertMatch([_], [Why || #{what := locks, why := Why} <- Untold]),
        %% Nothing stays switched on.
        ?assertEqual(false, call(Fleet, A, erlang, system_flag, [microstate_accounting, false])),
        ?assertNot(lists:keymember(sderl_readings, 1, call(Fleet, A, trace, session_info, [all])))
    end).

virtual_machine_dies(_) ->
    with(2, fun(Fleet, [A, B]) ->
        {Reading, Monitor} = spawn_monitor(fun() ->
            exit({read, call(Fleet, B, sderl_prof_vm, read,
                             [A, #{seconds => 3600, modules => [gen_server]}])})
        end),
        ok = sderl_fleet:await(fun() ->
            lists:keymember(sderl_readings, 1, call(Fleet, A, trace, session_info, [all]))
        end, ?WAIT_MS),
        ok = sderl_fleet:kill(Fleet, A),
        receive
            {'DOWN', Monitor, process, Reading, Result} ->
                ?assertMatch({read, {error, {node, A, _}}}, Result)
        end
    end).

%% Where toolchain/install --lock-counter has been run: processes that write a table at once.
lock_tables(_) ->
    with_emulator("lcnt", "--lock-counter", fun lock_tables_of/1).

%% Runs the test with an emulator that is built on demand, if it was built.
with_emulator(Kind, Option, Fun) ->
    case sderl_fleet_emulator:built(Kind) of
        none -> {comment, "not tried: that needs toolchain/install " ++ Option};
        Erl -> with_peer(Erl, ["+S", "2:2"], Fun)
    end.

with_peer(Exec, Args, Fun) ->
    Paths = [filename:dirname(code:which(Module)) || Module <- [sderl_prof_vm, ?P]],
    {ok, Peer, _} = peer:start_link(#{
        exec => Exec, connection => standard_io, wait_boot => ?WAIT_MS, env => [{"HOME", "/"}],
        args => Args ++ ["-pa" | Paths]
    }),
    try
        Fun(Peer)
    after
        peer:stop(Peer)
    end.

lock_tables_of(Peer) ->
    Call = fun(M, F, A) -> peer:call(Peer, M, F, A, ?WAIT_MS) end,
    Before = Call(erts_debug, lcnt_control, [mask]),
    ok = Call(?P, hot_table, [the_hot_table, 4]),
    {ok, #{locks := #{classes := Classes, instances := Instances, places := Places,
                      schedulers := Schedulers}, emulator := #{type := lcnt}, untold := Untold}} =
        Call(sderl_prof_vm, read, [nonode@nohost, #{seconds => 1, top => 1000}]),
    %% Locks are counted by class, and that of the table under its name.
    [#{tries := Tries}] = [Row || #{class := db_tab, id := ~"the_hot_table"} = Row <- Instances],
    [#{tries := All, locks := _}] = [Row || #{class := db_tab} = Row <- Classes],
    ?assert(Tries > 1000),
    ?assert(All >= Tries),
    [?assert(C =< T) || #{collisions := C, tries := T} <- Classes ++ Instances ++ Places],
    ?assertMatch([_ | _], [Row || #{class := db_tab} = Row <- Places]),
    %% By scheduler there are only the locks that each has for itself; the report says so.
    ?assertMatch([_ | _], Schedulers),
    ?assertEqual([], [N || #{scheduler := N} <- Schedulers, N > 2]),
    [Why] = [Why || #{what := locks, why := Why} <- Untold],
    ?assertNotEqual(nomatch, string:find(Why, "by scheduler are only")),
    %% Counting goes on as it was.
    ?assertEqual(lists:sort(Before), lists:sort(Call(erts_debug, lcnt_control, [mask]))),
    %% Without locks, if they were not asked for.
    {ok, #{locks := null}} = Call(sderl_prof_vm, read,
                                    [nonode@nohost, #{seconds => 0.1, locks => false}]).

%% Where toolchain/install --probes has been run: its probes are listed, and counted if the kernel
%% allows it.
probes(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "probes.data"),
    with_emulator("probes", "--probes", fun(Peer) ->
        Call = fun(M, F, A) -> peer:call(Peer, M, F, A, ?WAIT_MS) end,
        ?assertEqual(systemtap, Call(erlang, system_info, [dynamic_trace])),
        ok = Call(?P, spawner, []),
        {ok, #{probes := #{names := Names, places := Places, counted := Counted,
                           recorded := Recorded},
               untold := Untold}} =
            Call(sderl_prof_vm, read, [nonode@nohost, #{
                seconds => 1, probes => [~"process__spawn", ~"process__exit"], record => File
            }]),
        [?assert(lists:member(Name, Names)) || Name <- [~"process__spawn", ~"process__exit"]],
        ?assert(Places >= length(Names)),
        case Counted of
            null ->
                [Why] = [Why || #{what := probes, why := Why} <- Untold],
                {comment, unicode:characters_to_list(Why)};
            _ ->
                [#{count := Spawned}] = [Row || #{probe := ~"process__spawn"} = Row <- Counted],
                ?assert(Spawned > 10),
                %% perf reads again what was recorded.
                ?assertEqual(unicode:characters_to_binary(File), Recorded),
                Script = os:cmd("perf script -i '" ++ File ++ "' 2>&1 | head -n 1000"),
                ?assertNotEqual(nomatch, string:find(Script, "process__spawn: ")),
                %% No hook stays in the kernel.
                [?assertEqual(nomatch, string:find(Text, Call(sderl_prof_hooks, group, [])))
                 || Folder <- ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"],
                    {ok, Text} <- [file:read_file(filename:join(Folder, "uprobe_events"))]]
        end
    end).

%% Of a user who may not hook them they are listed all the same, and the report has the reason.
probes_of_nobody(_) ->
    Built = sderl_fleet_emulator:built("probes"),
    case Built =/= none andalso as_nobody(Built) of
        {ok, Exec} ->
            with_peer(Exec, [], fun(Peer) ->
                {ok, #{probes := #{names := [_ | _], counted := null}, untold := Untold}} =
                    peer:call(Peer, sderl_prof_vm, read,
                              [nonode@nohost, #{seconds => 0.2, probes => [~"process__spawn"]}],
                              ?WAIT_MS),
                [Why] = [Why || #{what := probes, why := Why} <- Untold],
                ?assertNotEqual(nomatch, string:find(Why, "cannot be hooked: "))
            end);
        _ -> {comment, "not tried: that needs toolchain/install --probes, and the superuser"}
    end.

%% Who may not hook probes gets the kernel's reason.
probes_refused(_) ->
    Probe = #{provider => ~"erlang", name => ~"refused", arguments => ~"", at => 64,
              semaphore => none},
    case as_nobody(os:find_executable("erl")) of
        {ok, Exec} ->
            with_peer(Exec, [], fun(Peer) ->
                {refused, Why} = peer:call(Peer, sderl_prof_hooks, hook, ["g", [Probe]],
                                             ?WAIT_MS),
                ?assertNotEqual(nomatch, string:find(Why, "uprobe_events: "))
            end);
        none ->
            case sderl_prof_hooks:hook("g", [Probe]) of
                {refused, Why} -> ?assertNotEqual(nomatch, string:find(Why, "uprobe_events: "));
                {ok, Switch} ->
                    ok = sderl_prof_switch:off(Switch),
                    {comment, "not tried: the superuser cannot be another user here"}
            end
    end.

%% Root can run the emulator as another user, if that user can read this tree.
as_nobody(Erl) ->
    maybe
        SetPriv = [_ | _] ?= os:find_executable("setpriv"),
        Args = ["--reuid=65534", "--regid=65534", "--clear-groups", Erl],
        Try = lists:join($\s, ["HOME=/", SetPriv | Args] ++ ["-noinput", "-pa", filename:dirname(
            code:which(sderl_prof_hooks)), "-s", "sderl_prof_hooks", "group", "-s", "init", "stop",
            "&& echo fine"]),
        "fine\n" ?= os:cmd(lists:flatten(Try)),
        {ok, {SetPriv, Args}}
    else
        _ -> none
    end.

with(Count, Fun) -> with(Count, [], Fun).

with(Count, Apps, Fun) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => n, count => Count, apps => Apps}]}),
    try
        Fun(Fleet, sderl_fleet:nodes(Fleet))
    after
        ok = sderl_fleet:stop(Fleet)
    end.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?WAIT_MS).

profile(Fleet, Node, Program, Options) ->
    call(Fleet, Node, ?P, profile, [Program, Options#{seconds => 600}]).

%% Beside the logs of this run, and so on this machine.
folder(Fleet, Node, Name) ->
    {ok, Home} = call(Fleet, Node, file, get_cwd, []),
    filename:join([Home, "prof", Name]).

recorded(Fleet, Node, Dir, Options) ->
    {ok, Plan} = sderl_prof_options:plan(Options),
    {ok, Recorder} = call(Fleet, Node, sderl_prof_recorder, start,
                          [Plan, Dir, pid_of(Fleet, Node)]),
    call(Fleet, Node, sderl_prof_recorder, await, [Recorder, infinity]).

pid_of(Fleet, Node) -> call(Fleet, Node, erlang, whereis, [kernel_sup]).

quiet(Fleet, Node) ->
    not lists:keymember(sderl_recording, 1, call(Fleet, Node, trace, session_info, [all])) andalso
        call(Fleet, Node, erlang, system_profile, []) =:= undefined.

await_quiet(Fleet, Node) ->
    ok = sderl_fleet:await(fun() -> quiet(Fleet, Node) end, ?WAIT_MS).

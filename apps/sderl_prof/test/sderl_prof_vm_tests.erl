%% SPDX-License-Identifier: Apache-2.0
%% The report on a virtual machine, from made-up readings and of this node.
-module(sderl_prof_vm_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SECOND, 1_000_000_000).

%% ---------------------------------------------------------------- made-up readings

readings() ->
    #{
        node => ~"a@host", otp => ~"29", began_wall => 0, ns => 2 * ?SECOND,
        emulator => #{version => ~"Erlang/OTP 29", flavor => jit, type => opt, probes => none,
                      schedulers_online => 2, os_pid => ~"7", symbols => false},
        schedulers => [{normal, 1, 50, 100}, {normal, 2, 0, 0}, {cpu, 3, 1, 100}],
        looks => 10, queues => [{20, 5}, {0, 0}, {10, 1}, {0, 0}],
        accounting => ours,
        threads => [{scheduler, 2, #{emulator => 30, sleep => 70, gc => -5}}],
        counts => #{reductions => 2000, switches => 20, collections => 4, reclaimed_words => 2,
                    input => 0, output => 10},
        processes => 50, ports => 3,
        memory => [{total, 1000}, {binary, 100}, {ets, 0}],
        allocators => [
            #{name => eheap_alloc, instances => 3, blocks => 800, by_type => #{eheap_alloc => 800},
              single => {1, 500}, multi => {2, 400}, pooled => {1, 100}},
            #{name => binary_alloc, instances => 3, blocks => 110,
              by_type => #{binary_alloc => 90, ets_alloc => 20},
              single => {0, 0}, multi => {1, 400}, pooled => {0, 0}},
            #{name => temp_alloc, instances => 1, blocks => 5, by_type => #{temp_alloc => 5},
              single => {0, 0}, multi => {0, 0}, pooled => {0, 0}}
        ],
        outside => #{code => 70, ets => 30},
        resident => undefined, measure => call_time,
        calls => [{{m, f, 2}, 10, 3000}, {{m, g, 0}, 5, 1000}],
        locks => none, counters => none, functions => not_wanted, probes => none,
        probed => not_wanted, recorded => not_wanted
    }.

report(Changes) -> report(Changes, 20).

report(Changes, Top) ->
    Report = sderl_prof_vm_report:make(maps:merge(readings(), Changes), Top),
    %% Each can be JSON.
    _ = json:decode(iolist_to_binary(json:encode(Report))),
    Report.

parts_test() ->
    #{seconds := 2.0, threads := [#{states := States}], schedulers := Schedulers,
      run_queues := Queues, calls := Calls, rates := Rates} = report(#{}),
    %% Counters that somebody has cleared meanwhile count from 0.
    ?assertEqual(#{emulator => 0.3, sleep => 0.7, gc => 0.0}, States),
    ?assertEqual([0.5, 0.0, 0.01], [Awake || #{awake := Awake} <- Schedulers]),
    ?assertEqual([{~"1", 2.0, 5}, {~"2", 0.0, 0}, {~"cpu", 1.0, 1}, {~"io", 0.0, 0}],
                 [{Q, Mean, Most} || #{queue := Q, mean := Mean, most := Most} <- Queues]),
    ?assertEqual([{~"m:f/2", 10, 0.75}, {~"m:g/0", 5, 0.25}],
                 [{F, N, Share} || #{function := F, calls := N, share := Share} <- Calls]),
    ?assertMatch(#{reductions := 1000.0, output := 5.0}, Rates).

%% Without any looks nothing is divided by 0.
nothing_test() ->
    #{run_queues := [], schedulers := [], threads := [], calls := []} =
        report(#{looks => 0, queues => [], schedulers => [], threads => [], calls => []}),
    #{run_queues := [#{mean := +0.0} | _]} = report(#{looks => 0}),
    #{memory := #{utilisation := +0.0}} = report(#{allocators => []}).

top_test() ->
    ?assertMatch(#{calls := [#{function := ~"m:f/2"}]}, report(#{}, 1)).

memory_test() ->
    #{memory := #{allocators := [First | _] = Rows, blocks := 915, carriers := 1400,
                  unused := 485, code := 70, resident := null, checks := Checks}} = report(#{}),
    ?assertMatch(#{name := eheap_alloc, blocks := 800, carriers := 1000, utilisation := 0.8,
                   number := 4}, First),
    ?assertEqual(1400, lists:sum([C || #{carriers := C} <- Rows])),
    %% Blocks of a type that lie in the carriers of another are counted by their type.
    %% Blocks that live for a moment are in no sum; compiled code and the table of tables are.
    ?assertEqual([{total, 980, -0.02}, {binary, 90, -0.1}, {ets, 50, 50.0}],
                 [{What, Sum, D} || #{what := What, blocks := Sum, difference := D} <- Checks]).

measures_test() ->
    #{calls := [Counted | _]} = report(#{measure => call_count}),
    ?assertEqual([calls, function], lists:sort(maps:keys(Counted))),
    #{calls := [#{words := 3000} | _]} = report(#{measure => call_memory}).

%% ---------------------------------------------------------------- what is not told

untold_test_() ->
    [{What, fun() ->
        #{untold := Untold} = Report = report(Changes),
        Why = [Why || #{what := W, why := Why} <- Untold, W =:= Part],
        ?assertNotEqual({Why, nomatch}, {Why, string:find(Why, Says)}),
        _ = Part =:= threads orelse Part =:= probes orelse Part =:= locks orelse
            ?assertEqual(null, map_get(Part, Report))
    end} || {What, Changes, Part, Says} <- [
        {"no lock counting", #{}, locks, "toolchain/install --lock-counter"},
        {"by scheduler", #{locks => #{classes => [], instances => [], places => []}}, locks,
         "by scheduler"},
        {"few states", #{}, threads, "--with-microstate-accounting=extra"},
        {"another's accounting", #{accounting => others}, threads, "somebody else"},
        {"no probes", #{}, probes, "toolchain/install --probes"},
        {"hooks refused", #{probed => {refused, ~"events: permission denied"}}, probes,
         "cannot be hooked: events: permission denied"},
        {"no events", #{probed => {0, ~"event syntax error\n"}}, probes, "event syntax error"},
        {"not recorded", #{recorded => {~"/x", {255, ~"cannot write"}}}, probes,
         "nothing was recorded: perf ended with status 255: cannot write"},
        {"probes without perf", #{probed => none}, probes, "there is no perf"},
        {"no perf", #{}, counters, "there is no perf"},
        {"refused", #{counters => {255, ~"Error:\nNo permission to enable cycles event.\n\n"}},
         counters, "status 255: No permission to enable cycles event."},
        {"no counters", #{counters => {0, ~"<not supported>;;cycles;0;100.00;;\n"}}, counters,
         "not supported are cycles"},
        {"did not end", #{counters => timeout}, counters, "did not end"},
        {"failed", #{functions => {failed, badarg}}, functions, "badarg"},
        {"nothing ran", #{functions => {0, ~"# nothing\n"}}, functions, "nothing run: # nothing"}
    ]].

%% Each state that only such an emulator has shows that it is one.
extra_states_test() ->
    #{untold := Untold} = report(#{threads => [{scheduler, 1, #{emulator => 1, busy_wait => 1}}]}),
    ?assertEqual([], [Why || #{what := threads, why := Why} <- Untold]).

%% ---------------------------------------------------------------- perf

counters_test() ->
    Said = ~"""
        8000;;cycles:u;2000;100.00;;
        16000;;instructions:u;2000;100.00;2.00;insn per cycle
        1000;;cache-references:u;2000;100.00;;
        250;;cache-misses:u;2000;100.00;25.00;of all cache refs
        2,5;;branches:u
        <not counted>;;branch-misses:u;0;0.00;;
        <not supported>;;LLC-loads:u;0;100.00;;
        12.50;msec;task-clock:u;1;100.00;;

        something else
        """,
    #{counters := #{counts := Counts, missing := Missing, rates := Rates}, untold := Untold} =
        report(#{counters => {0, Said}}),
    ?assertMatch(#{~"cycles" := 8000, ~"task-clock" := 12.5}, Counts),
    ?assertEqual([~"branch-misses", ~"LLC-loads"], Missing),
    ?assertEqual(#{instructions_per_cycle => 2.0, cache_misses => 0.25,
                   memory_bytes_s => 8000.0}, Rates),
    ?assertMatch([_], [W || #{what := counters, why := W} <- Untold]).

functions_test() ->
    Said = <<"# Samples: 396  of event 'cpu-clock:u'\n#\n# Overhead\tSamples\tObject\tSymbol\n"
             "    60.50%\t         242\tbeam.smp      \t[.] process_main\n"
             "    39.00%\t         156\tperf-7.map\t[.] $lists:foldl/3\n"
             "wat%\t1\tx\ty\n     0.50%\t  wat\tx\ty\n", 16#ff, "\n">>,
    #{functions := #{event := ~"cpu-clock:u", rows := Rows}, untold := Untold} =
        report(#{functions => {0, Said}}),
    ?assertEqual([{~"process_main", ~"beam.smp", 0.605, 242},
                  {~"$lists:foldl/3", ~"perf-7.map", 0.39, 156}],
                 [{F, O, S, N} || #{function := F, object := O, share := S, looks := N} <- Rows]),
    %% Compiled code has names here, but this emulator was not started for that.
    [Why] = [W || #{what := functions, why := W} <- Untold],
    ?assertNotEqual(nomatch, string:find(Why, "+JPperf true")).

said_test_() -> sderl_prop:eunit("whatever perf says, there is a report", 300, fun prop_said/0).

prop_said() ->
    ?FORALL({Status, Said}, {oneof([0, 1, 255]), said()}, begin
        #{kind := virtual_machine} = report(#{counters => {Status, Said},
                                              functions => {Status, Said}}),
        true
    end).

said() ->
    ?LET(Parts, list(oneof([~";", ~"\t", ~"\n", ~"%", ~"<not counted>", ~"cycles", ~"12", ~"1.5",
                            ~"[.] ", ~":", binary(2)])),
         iolist_to_binary(Parts)).

probes_test() ->
    #{probes := Probes} = report(#{probes => #{~"gc-start" => 2, ~"n1" => 1},
                                   probed => {0, ~"4;;g:gc_start;1;100;;\n0;;g:n1;1;100;;\n"}}),
    ?assertEqual(#{names => [~"gc-start", ~"n1"], places => 3,
                   counted => [#{probe => ~"gc_start", count => 4, rate => 2.0},
                               #{probe => ~"n1", count => 0, rate => 0.0}],
                   recorded => null}, Probes),
    ?assertMatch(#{probes := #{recorded := ~"/x"}},
                 report(#{probes => #{~"n1" => 1}, recorded => {~"/x", {0, ~""}}})).

%% ---------------------------------------------------------------- locks

locks_test() ->
    Line = {'erl_process.c', 5},
    Queue = fun(N) -> {run_queue, N, mutex, Line} end,
    Code = {code, undefined, mutex, Line},
    Idle = {idle, undefined, mutex, Line},
    %% The last queue is gone in the end: what it had counted is none of the others'.
    Before = #{Queue(1) => {10, 1, 100, 1}, Code => {5, 5, 50, 5}, Idle => {3, 0, 0, 0},
               Queue(9) => {1000, 9, 9 * ?SECOND, 9}},
    Now = #{Queue(1) => {30, 11, ?SECOND + 100, 5}, Queue(2) => {5, 0, 0, 0},
            Queue(3) => {1, 0, 0, 0},
            %% Cleared meanwhile, unchanged, and one whose name has to be made short.
            Code => {2, 1, 20, 1}, Idle => {3, 0, 0, 0},
            {db_tab, lists:duplicate(500, $x), rwmutex, Line} => {1, 0, 0, 0}},
    #{locks := #{classes := Classes, instances := Instances, places := Places,
                 schedulers := Schedulers}} =
        report(#{locks => sderl_prof_locks:since(Before, Now)}),
    ?assertMatch([#{class := run_queue, locks := 3, tries := 26, collisions := 10,
                    ns := ?SECOND, waits := 4, of_time := 0.5},
                  #{class := code, tries := 2, ns := 20}, #{class := db_tab}], Classes),
    ?assertMatch([#{id := ~"1", tries := 20} | _], Instances),
    [#{id := Name}] = [Row || #{class := db_tab} = Row <- Instances],
    ?assert(byte_size(Name) < 100),
    ?assertMatch([#{class := run_queue, place := ~"erl_process.c:5", tries := 26, ns := ?SECOND},
                  #{class := code}, #{class := db_tab}], Places),
    %% The third is that of a dirty scheduler.
    ?assertEqual([{1, 20}, {2, 5}], [{N, T} || #{scheduler := N, tries := T} <- Schedulers]).

lock_sums_test_() ->
    sderl_prop:eunit("classes have the sums of their locks", 300, fun prop_locks/0).

prop_locks() ->
    ?FORALL({Before, Now}, {counts(), counts()}, begin
        #{classes := Classes, instances := Instances, places := Places} =
            sderl_prof_locks:since(Before, Now),
        Sum = fun(Key, Rows) -> lists:sum([map_get(Key, Row) || Row <- Rows]) end,
        lists:all(fun(Key) ->
            Sum(Key, Classes) =:= Sum(Key, Instances) andalso Sum(Key, Classes) =:= Sum(Key, Places)
                andalso Sum(Key, Classes) >= 0
        end, [tries, collisions, ns, waits])
            andalso lists:all(fun(#{tries := Tries}) -> Tries > 0 end, Instances)
    end).

counts() ->
    ?LET(Rows, list({{oneof([a, b]), oneof([undefined, 1, 2]), mutex, oneof([{x, 1}, {y, 2}])},
                     pos_integer()}),
         #{Key => {N, N div 2, 10 * N, N div 3} || {Key, N} <- Rows}).

%% ---------------------------------------------------------------- this node

real_test_() ->
    {timeout, 120, fun() ->
        %% More than what others on this node take and give back meanwhile.
        Table = ets:new(table, [public]),
        true = ets:insert(Table, [{N, N} || N <- lists:seq(1, 100_000)]),
        Binary = binary:copy(<<0>>, 20_000_000),
        {ok, Report} = sderl_prof_vm:read(node(), #{seconds => 0.3, modules => [sderl_table]}),
        _ = json:encode(Report),
        #{threads := Threads, schedulers := Schedulers, run_queues := Queues,
          memory := #{allocators := Allocators, checks := Checks, blocks := Blocks,
                      carriers := Carriers}} = Report,
        [?assert(abs(lists:sum(maps:values(States)) - 1) < 0.001)
         || #{type := scheduler, states := States} <- Threads],
        Online = erlang:system_info(schedulers),
        ?assertEqual(Online, length([1 || #{type := normal} <- Schedulers])),
        ?assertEqual(Online + 2, length(Queues)),
        ?assert(Blocks =< Carriers),
        ?assertMatch([_, _ | _], Allocators),
        %% As far apart as docs/low-level.md says, unless somebody takes or gives much just then.
        ?assert(lists:any(fun(_) -> apart() =:= [] end, lists:seq(1, 10))),
        [?assert(Sum > 5_000_000) || #{what := What, blocks := Sum} <- Checks, What =/= total],
        ?assertEqual(20_000_000, byte_size(Binary)),
        true = ets:delete(Table),
        ?assertEqual(false, erlang:system_flag(microstate_accounting, false))
    end}.

apart() ->
    {ok, #{memory := #{checks := Checks}}} = sderl_prof_vm:read(node(), #{seconds => 0.05}),
    [Check || #{difference := D} = Check <- Checks, abs(D) > 0.05].

%% perf sees functions run, or says why not; its file is gone.
perf_test_() ->
    {timeout, 240, fun() ->
        Worker = spawn_link(fun Run() -> _ = lists:seq(1, 1000), Run() end),
        {ok, #{functions := Functions, untold := Untold}} =
            sderl_prof_vm:read(node(), #{seconds => 0.5, perf => true}),
        true = unlink(Worker),
        true = exit(Worker, kill),
        case Functions of
            null -> ?assertMatch([_ | _], [Why || #{what := functions, why := Why} <- Untold]);
            #{rows := Rows} ->
                ?assertMatch([#{function := _, looks := Looks} | _] when Looks > 0, Rows)
        end,
        Name = "sderl-perf-" ++ os:getpid() ++ "-*",
        ?assertEqual([], filelib:wildcard(filename:join(os:getenv("TMPDIR", "/tmp"), Name)))
    end}.

%% Each measure tells as many calls as there were, and another's tracer goes on.
calls_test_() ->
    [{atom_to_list(Measure), {timeout, 120, fun() ->
        Others = trace:session_create(others, self(), []),
        1 = trace:function(Others, {string, pad, 2}, true, [call_count]),
        {ok, Reading} = sderl_prof_vm:begin_(node(), #{
            seconds => 3600, modules => [string], measure => Measure
        }),
        await(fun() -> is_counting(Measure) end),
        [string:pad("x", 5) || _ <- lists:seq(1, 100)],
        ok = sderl_prof_vm:stop(Reading),
        {ok, #{calls := Calls}} = sderl_prof_vm:await(Reading),
        [#{calls := Count}] = [Row || #{function := ~"string:pad/2"} = Row <- Calls],
        ?assert(Count >= 100),
        {call_count, Before} = trace:info(Others, {string, pad, 2}, call_count),
        ?assert(Before >= 100),
        true = trace:session_destroy(Others),
        ?assertNot(lists:keymember(sderl_readings, 1, trace:session_info(all)))
    end}} || Measure <- [call_count, call_time, call_memory]].

%% Its session counts from the moment at which the functions are known to it.
is_counting(Measure) ->
    [] =/= [Session || {sderl_readings, _} = Session <- trace:session_info(all),
                       {_, Counts} <- [trace:info(Session, {string, pad, 2}, Measure)],
                       Counts =/= false].

%% However it ends, nothing stays switched on.
killed_test_() ->
    {timeout, 120, fun() ->
        {ok, #{reader := Reader} = Reading} =
            sderl_prof_vm:begin_(node(), #{seconds => 3600, modules => [string]}),
        await(fun() -> is_counting(call_time) end),
        await(fun() -> guards() =/= [] end),
        Guards = [{Pid, monitor(process, Pid)} || Pid <- guards()],
        true = exit(Reader, kill),
        {error, Why} = sderl_prof_vm:await(Reading),
        ?assertEqual({node, node(), killed}, Why),
        await(fun() -> not lists:keymember(sderl_readings, 1, trace:session_info(all)) end),
        %% A guard ends when it has switched off.
        [receive {'DOWN', Monitor, process, Pid, _} -> ok end || {Pid, Monitor} <- Guards],
        ?assertEqual(false, erlang:system_flag(microstate_accounting, false))
    end}.

%% And with the process that asked.
owner_ends_test_() ->
    {timeout, 120, fun() ->
        Self = self(),
        {Owner, Ref} = spawn_monitor(fun() ->
            {ok, #{reader := Reader}} = sderl_prof_vm:begin_(node(), #{seconds => 3600}),
            Self ! {reader, Reader}
        end),
        Reader = receive {reader, Pid} -> Pid end,
        receive {'DOWN', Ref, process, Owner, _} -> ok end,
        Gone = monitor(process, Reader),
        receive {'DOWN', Gone, process, Reader, _} -> ok end,
        ?assertEqual(false, erlang:system_flag(microstate_accounting, false))
    end}.

guards() ->
    [Pid || Pid <- processes(), {current_function, {sderl_prof_switch, guard, 3}} <-
                                    [process_info(Pid, current_function)]].

await(Holds) -> sderl_fleet:await(Holds, infinity).

wrong_test() ->
    [begin
         {error, Why} = sderl_prof_vm:read(node(), Options),
         Text = unicode:characters_to_list(sderl_prof_vm:format_error(Why)),
         ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Says)})
     end
     || {Options, Says} <- [
            {[], "options are a map"},
            {#{wat => 1}, "no option wat"},
            {#{seconds => 0}, "seconds cannot be 0"},
            {#{seconds => soon}, "seconds cannot be soon"},
            {#{modules => string}, "modules cannot be string"},
            {#{modules => ["string"]}, "names of modules"},
            {#{measure => wat}, "call_count, call_time or call_memory"},
            {#{top => 0}, "top cannot be 0"},
            {#{perf => 1}, "perf cannot be 1"},
            {#{probes => [gc]}, "probes cannot be [gc]"},
            {#{record => 1}, "record cannot be 1"},
            {#{seconds => 0.1, modules => [no_such_module]}, "no module no_such_module"}
        ]].

no_node_test() ->
    {error, Why} = sderl_prof_vm:read('nobody@nowhere', #{seconds => 0.1}),
    ?assertMatch({node, 'nobody@nowhere', _}, Why).

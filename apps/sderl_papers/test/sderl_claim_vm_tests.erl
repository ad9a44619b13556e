%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_vm_tests).
-moduledoc "Verdicts of the claims about the virtual machine, from points that were made up.".

-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- made-up points

point(Workload, Params, Metrics) ->
    Plain = json:decode(
        sderl_bench_output:line(sderl_bench_output:result(Workload, Params, Metrics, <<>>))
    ),
    #{experiment => maps:get(<<"experiment">>, Plain), params => maps:get(<<"params">>, Plain),
      metrics => maps:get(<<"metrics">>, Plain)}.

%% A point with the times of programs or tables by schedulers. The control program has the given
%% speedup.
vm(Params, N, Gives, Rows) ->
    Row = fun(Program, Schedulers, Ms, More) ->
        maps:merge(#{program => Program, control => Program =:= <<"control">>, flags => <<>>,
                     schedulers => Schedulers, us => 1000 * Ms, stages => #{}}, More)
    end,
    point(vm, Params#{run => 1, schedulers => <<"1,2">>, cores => N}, #{
        rows => [Row(<<"control">>, 1, 100, #{}), Row(<<"control">>, N, 100 / Gives, #{})
                 | [Row(Program, M, Ms, More)
                    || {Program, More, Times} <- Rows, {M, Ms} <- Times]]
    }).

failed(Points) -> [P#{metrics := #{<<"failed">> => <<"stuck">>}} || P <- Points].

again(Points) ->
    Points ++ [P#{params := Params#{<<"run">> := 2}} || #{params := Params} = P <- Points].

verdicts(Module, Cases) ->
    [{Name, fun() ->
        {Verdict, Text} = Module:verdict(Points),
        ?assertEqual({Is, Text}, {Verdict, Text}),
        [?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text}) || Words <- Said]
    end} || {Name, Is, Points, Said} <- Cases].

%% ---------------------------------------------------------------- verdicts

c16(N, Gives, Speedups) ->
    [vm(#{bench => vm, program => Program}, N, Gives,
        [{Program, #{}, [{1, 100}, {N, 100 / Speedup}]}])
     || {Program, Speedup} <- Speedups].

c16_test_() ->
    All = fun(Mbrot, Big, Ehb, Ran) ->
        [{<<"mbrot">>, Mbrot}, {<<"big">>, Big}, {<<"ehb">>, Ehb}, {<<"ran">>, Ran}]
    end,
    Good = c16(16, 14, All(13, 12, 10, 6)),
    verdicts(sderl_claim_c16, [
        {"as published", confirmed, Good, ["On 16 schedulers", "mbrot 13", "the control", "14"]},
        {"failed beside", not_shown, Good ++ failed(c16(32, 20, [{<<"big">>, 3}])), ["stuck"]},
        {"one does not gain", refuted, again(c16(16, 14, All(13, 3, 10, 6))),
         ["big gains less than a quarter"]},
        {"not in one run alone", not_shown, c16(16, 14, All(13, 3, 10, 6)), []},
        {"memory does not matter", refuted, again(c16(16, 14, All(13, 12, 10, 11))),
         ["gains more than ehb"]},
        {"between", not_shown, again(c16(16, 14, All(13, 12, 5, 3))), ["Neither"]},
        {"too few for the limit", not_shown, again(c16(8, 7, All(7, 7, 7, 6))),
         ["from 16 schedulers on"]},
        {"few cores", not_shown, again(c16(2, 2, All(2, 2, 2, 1))), ["The range is too small"]},
        {"a busy machine", not_shown, again(c16(16, 3, All(3, 2, 2, 1))), ["The machine itself"]},
        {"one missing", not_shown, tl(Good), ["mbrot missing"]},
        {"nothing", not_shown, [], []}
    ]).

%% A point with times on one scheduler and on N: those of `parallel` by both clocks, and those of
%% stages.
c14(N, Now, Monotonic, Timeout, Reading) ->
    Stages = fun(Of) -> #{stages => #{Stage => 1000 * Ms || Stage := Ms <- Of}} end,
    [vm(#{bench => vm, program => <<"parallel,parallel_monotonic,timer_wheel,clocks">>}, N, N, [
        {<<"parallel">>, #{}, [{1, 100}, {N, 100 / Now}]},
        {<<"parallel_monotonic">>, #{}, [{1, 100}, {N, 100 / Monotonic}]},
        {<<"timer_wheel">>, Stages(#{with_timeout => 100 + Timeout, without => 100}),
         [{1, 200}, {N, 200}]},
        {<<"clocks">>, Stages(#{now => Reading * 10, monotonic => 10, system => 10, timers => 50}),
         [{1, 100}, {N, 100}]}
    ])].

c14_test_() ->
    verdicts(sderl_claim_c14, [
        {"as published", confirmed, c14(16, 1.2, 9, 5, 69),
         ["1.20 times as fast", "69", "5.00 %"]},
        {"no better", refuted, again(c14(16, 6, 5, 5, 69)), ["scales no better"]},
        {"once", not_shown, c14(16, 6, 5, 5, 69), []},
        {"slower to read", refuted, again(c14(16, 1.2, 9, 5, 0.5)), ["Reading is not faster"]},
        {"timeouts as before", refuted, again(c14(16, 1.2, 9, 70, 69)), ["as much as before"]},
        {"timeouts in between", not_shown, again(c14(16, 1.2, 9, 40, 69)), []},
        {"few cores", not_shown, again(c14(2, 1, 2, 5, 69)), ["The range is too small"]},
        {"one failed", not_shown, c14(16, 1.2, 9, 5, 69) ++ failed(c14(8, 1, 1, 1, 1)), ["stuck"]},
        {"nothing", not_shown, [], []}
    ]).

%% A point with the operations that tables do in the same time on N schedulers.
c13(N, Updates, Of) ->
    [vm(#{bench => tables, updates => integer_to_binary(Updates)}, N, N, [
        {<<Table/binary, ": mix">>,
         #{table => Table, operations => 1_000_000, updates => Updates},
         [{1, 1000}, {N, 1000 / Speed}]}
     || {Table, Speed} <- Of
    ])].

c13_test_() ->
    Of = fun(Set, Options, Ordered, Tree) ->
        [{<<"set">>, Set}, {<<"set+read">>, Set}, {<<"set+auto">>, Options},
         {<<"ordered_set">>, Ordered}, {<<"ordered_set+auto">>, Tree}]
    end,
    Both = fun(N, Tables) -> c13(N, 10, Tables) ++ c13(N, 1, Tables) end,
    Good = Both(16, Of(1, 9, 1, 5)),
    verdicts(sderl_claim_c13, [
        {"as published", confirmed, Good,
         ["With 10 % of updates on 16 schedulers `set+auto` has 9", "With 1 %"]},
        {"one share", not_shown, c13(16, 10, Of(1, 9, 1, 5)), ["both shares"]},
        {"no option gains", refuted, again(Both(16, Of(4, 3, 1, 5) -- [{<<"set+read">>, 4}])),
         ["No option"]},
        {"the tree is slower than a set", refuted, again(Both(16, Of(5, 9, 1, 3))),
         ["slower than `set`"]},
        {"slower than without", refuted, again(Both(16, Of(1, 9, 4, 3))),
         ["slower than `ordered_set`"]},
        {"once", not_shown, Both(16, Of(1, 9, 4, 3)), []},
        {"a little", not_shown, again(Both(16, Of(1, 1.3, 1, 5))), ["For a verdict"]},
        {"few cores", not_shown, again(Both(2, Of(1, 2, 1, 2))), ["The range is too small"]},
        {"one failed", not_shown, Good ++ failed(c13(4, 1, [])), ["stuck"]},
        {"nothing", not_shown, [], []}
    ]).

%% A point with the share of time lost, and when each scheduler was awake first.
c17(Program, N, Lost, Wakes) ->
    [point(schedulers, #{program => Program, schedulers => N, run => 1}, #{
        seconds => 0.1, lost => Lost, wakes_pct => Wakes,
        parts => [#{pct => 25, awake => 1, running => 1, runnable => 40, queued => 40,
                    longest => 30},
                  #{pct => 75, awake => N, running => N, runnable => 4, queued => null,
                    longest => null}]
    })].

c17_test_() ->
    verdicts(sderl_claim_c17, [
        {"as published", confirmed, c17(bang, 8, 0.3, [1, 2, 4, 9]),
         ["on 8 schedulers, 30", "the first is awake after 1", "after 9", "had 30 processes"]},
        {"nothing is lost", refuted, again(c17(bang, 8, 0.005, [0, 1, 1])), ["Nothing is lost"]},
        {"nothing in one run", not_shown, c17(bang, 8, 0.005, [0, 1, 1]), []},
        {"all at once", not_shown, c17(bang, 8, 0.3, [1, 1.1, 1.2]), ["For a verdict"]},
        {"little", not_shown, again(c17(bang, 8, 0.03, [1, 9])), ["For a verdict"]},
        {"few cores", not_shown, c17(bang, 2, 0.3, [1, 9]), ["The range is too small"]},
        {"another program", not_shown, c17(mbrot, 8, 0.3, [1, 9]), ["was not measured"]},
        {"one failed", not_shown, c17(bang, 8, 0.3, [1, 9]) ++ failed(c17(bang, 4, 0, [])),
         ["stuck"]},
        {"nothing", not_shown, [], []}
    ]).

%% A point with how busy the schedulers are, and the 99th percentile in ms, with compaction and with
%% balancing.
c15(N, {Compacted, Late}, {Balanced, Early}) ->
    Of = fun(Busy, Ms) ->
        #{busy => Busy, spread => lists:max(Busy) - lists:min(Busy), ops => 1000,
          p50 => 300 * Ms, p95 => 900 * Ms, p99 => 1000 * Ms}
    end,
    [point(balance, #{schedulers => N, load_pct => 40, run => 1},
           #{compaction => Of(Compacted, Late), balancing => Of(Balanced, Early)})].

c15_test_() ->
    {Uneven, Even} = {[80, 60, 20, 0], [42, 41, 39, 38]},
    verdicts(sderl_claim_c15, [
        {"as published", confirmed, c15(4, {Uneven, 2}, {Even, 1.5}),
         ["load of 40 % of 4", "80 points apart with compaction and 4", "2.00 ms with compaction"]},
        {"less even", refuted, again(c15(4, {Even, 2}, {Uneven, 1})), ["not more even"]},
        {"slower", refuted, again(c15(4, {Uneven, 2}, {Even, 3})), ["Latencies are higher"]},
        {"slower once", not_shown, c15(4, {Uneven, 2}, {Even, 3}), ["For a verdict"]},
        {"the same", not_shown, again(c15(4, {Uneven, 2}, {Even, 2})), ["For a verdict"]},
        {"a busy machine", not_shown, again(c15(4, {[100, 99, 98, 90], 2}, {Even, 3})),
         ["hardly rested"]},
        {"few cores", not_shown, again(c15(2, {Uneven, 2}, {Even, 1})), ["The range is too small"]},
        {"one failed", not_shown,
         c15(4, {Uneven, 2}, {Even, 1.5}) ++ failed(c15(8, {[1], 1}, {[1], 1})), ["stuck"]},
        {"nothing", not_shown, [], []}
    ]).

%% Two real nodes under a light load: both do all operations that are due.
balanced_test_() ->
    {timeout, 600, fun() ->
        {ok, #{compaction := Compaction, balancing := Balancing}} = sderl_reproduce_balance:run(
            #{schedulers => 2, load_pct => 10, seconds => 1, seed => 1}, ""),
        [begin
            ?assertMatch(#{busy := [_, _], ops := Ops, p50 := P50, p99 := P99}
                           when Ops > 0 andalso P50 > 0 andalso P99 >= P50, Of),
            #{busy := Busy, spread := Spread} = Of,
            ?assert(Spread >= 0),
            [?assert(Share >= 0 andalso Share =< 100) || Share <- Busy]
        end || Of <- [Compaction, Balancing]],
        %% The same operations at the same times.
        ?assertEqual(map_get(ops, Compaction), map_get(ops, Balancing))
    end}.

%% Points with the seconds of all steps and the packets, by nodes.
c19(Cores, Of) -> c19(Cores, Of, 77).

c19(Cores, Of, Where) ->
    [point(city, #{nodes => N, cores => Cores, run => 1},
           #{seconds => Seconds, packets => Packets, bytes => 100 * Packets, drives => 1000,
             messages => Packets, where => Where, groups => 1, links_per_node_max => min(N, 4),
             cpu_pct => 50})
     || {N, Seconds, Packets} <- Of].

c19_test_() ->
    Good = c19(16, [{1, 10, 0}, {2, 7, 100}, {4, 5, 200}, {16, 3, 500}]),
    verdicts(sderl_claim_c19, [
        {"as published", confirmed, Good,
         ["1.43 on 2, 2.00 on 4, 3.33 on 16", "100 on 2 and 500 on 16", "same in all 4 runs"]},
        {"slower", refuted, again(c19(16, [{1, 10, 0}, {2, 11, 100}, {16, 12, 500}])),
         ["16 nodes are slower than one"]},
        {"slower once", not_shown, c19(16, [{1, 10, 0}, {2, 11, 100}, {16, 12, 500}]), []},
        {"less traffic", refuted, again(c19(16, [{1, 10, 0}, {2, 7, 100}, {16, 3, 90}])),
         ["send less"]},
        {"hardly faster", not_shown, again(c19(16, [{1, 10, 0}, {2, 7, 100}, {16, 5, 500}])),
         ["are to be 2.76 times"]},
        %% Points with more nodes than cores do not count.
        {"cores", confirmed, c19(4, [{1, 10, 0}, {2, 7, 100}, {4, 5, 200}, {16, 9, 500}]), []},
        {"few cores", not_shown, c19(2, [{1, 10, 0}, {2, 7, 100}, {4, 5, 200}]),
         ["This machine has 2 cores"]},
        {"another result", not_shown, Good ++ c19(16, [{8, 4, 300}], 78), ["That is a defect"]},
        {"one failed", not_shown, Good ++ failed(c19(16, [{8, 4, 300}])), ["stuck"]},
        {"one node missing", not_shown, tl(Good), ["one node is needed"]},
        {"nothing", not_shown, [], []}
    ]).

%% The recording of a real node has all parts of the run, and finds the schedulers at work.
recorded_test_() ->
    {timeout, 600, fun() ->
        {ok, Metrics} = sderl_reproduce_schedulers:run(
            #{program => bang, size => short, cores => 2, schedulers => 2, seed => 1}, ""),
        #{lost := Lost, wakes_pct := [_ | _] = Wakes, parts := Parts} = Metrics,
        ?assertEqual(50, length(Parts)),
        ?assert(Lost >= 0 andalso Lost < 1),
        [?assert(Awake >= 0 andalso Awake =< 2) || #{awake := Awake} <- Parts],
        [?assert(Wake >= 0 andalso Wake =< 100) || Wake <- Wakes],
        ?assert(lists:sum([Running || #{running := Running} <- Parts]) > 0)
    end}.

%% An unknown program, and one that crashes in the node.
not_recorded_test_() ->
    {timeout, 600, fun() ->
        Wrong = fun(Program) ->
            {error, Reason} = sderl_reproduce_schedulers:run(
                #{program => Program, size => short, cores => 1, schedulers => 1}, ""),
            unicode:characters_to_list(sderl_papers_reason:text(Reason))
        end,
        ?assertNotEqual(nomatch, string:find(Wrong(nonsense), "there is no program nonsense")),
        ?assertNotEqual(nomatch, string:find(Wrong(sderl_claim_crash), "the program crashed"))
    end}.

%% ---------------------------------------------------------------- pages

%% Pages are made from all points, from some of them, and from none.
pages_test_() ->
    Points = c16(4, 4, [{<<"mbrot">>, 4}, {<<"ran">>, 2}]) ++ c14(4, 1, 4, 5, 10) ++
        c13(4, 10, [{<<"set">>, 1}, {<<"ordered_set+auto">>, 2}]) ++ c17(bang, 4, 0.1, [1, 9]) ++
        c15(4, {[80, 0, 1, 2], 2}, {[40, 39, 20, 21], 1}) ++ c19(4, [{1, 10, 0}, {2, 7, 100}]),
    [
        {atom_to_list(Module), fun() ->
            Page = #{plots := Plots, tables := Tables} = sderl_claim:page(Module, Some, <<>>),
            #{<<"verdict">> := _} = json:decode(iolist_to_binary(json:encode(Page))),
            [?assertEqual(length(Header), length(Row))
             || #{header := Header, rows := Rows} <- Tables, Row <- Rows],
            [?assert(Low =< Y andalso Y =< High)
             || #{series := Series} <- Plots, #{points := Of} <- Series,
                #{y := Y, low := Low, high := High} <- Of],
            _ = Some =:= Points andalso
                ?assertMatch([_ | _], [P || #{series := Series} <- Plots,
                                            #{points := [P | _]} <- Series])
        end}
     || Module <- [sderl_claim_c13, sderl_claim_c14, sderl_claim_c15, sderl_claim_c16,
                  sderl_claim_c17, sderl_claim_c19],
        Some <- [Points, again(Points), failed(Points), []]
    ].

%% A point can be written as the command that measures it.
command_test() ->
    {ok, Scale} = sderl_reproduce_scale:scale(test, fun(_) -> ok end),
    [#{params := Params} | _] = sderl_claim_c16:points(Scale),
    ?assertEqual("bin/sderl bench vm --cores 1 --program mbrot --schedulers 1,2 --size short",
                 unicode:characters_to_list(sderl_reproduce_vm:command(Params))).

%% ---------------------------------------------------------------- a run

%% Points of the smallest scale are measured, and their rows are what the claims look for.
measured_test_() ->
    {ok, Scale} = sderl_reproduce_scale:scale(test, fun(_) -> ok end),
    [
        {lists:concat([Module, " ", I]), {timeout, 600, fun() ->
            {ok, Metrics} = sderl_reproduce_vm:run(Params#{seed => 1}, ""),
            Points = [point(vm, Params#{run => 1}, Metrics)],
            #{tables := [#{rows := Rows}]} = Module:page(Points),
            ?assertNotEqual([], Rows),
            [?assertEqual({Row, false}, {Row, lists:member(<<"-">>, Row)}) || Row <- Rows],
            {not_shown, Text} = Module:verdict(Points),
            ?assertEqual({nomatch, Text}, {string:find(Text, "unknown"), Text})
        end}}
     || Module <- [sderl_claim_c16 | sderl_ct:in_long_runs([sderl_claim_c13, sderl_claim_c14])],
        {I, #{params := Params}} <- lists:enumerate(lists:sublist(Module:points(Scale), 1))
    ].

%% The folder of a run is removed, however the run ends.
folder_test() ->
    Gone = fun(Dir) -> sderl_fleet:await(fun() -> not filelib:is_dir(Dir) end, 60_000) end,
    {ok, Dir} = sderl_reproduce_node:with_folder(fun(Dir) -> {ok, Dir} end),
    ?assertEqual(ok, Gone(Dir)),
    Test = self(),
    Pid = spawn(fun() ->
        sderl_reproduce_node:with_folder(fun(Own) ->
            Test ! {folder, Own, filelib:is_dir(Own)},
            receive never -> {ok, Own} end
        end)
    end),
    Killed = receive {folder, Own, true} -> Own end,
    true = exit(Pid, kill),
    ?assertEqual(ok, Gone(Killed)).

%% Errors are those of the harness; nothing is left behind.
wrong_test_() ->
    {timeout, 600, fun() ->
        {error, Reason} = sderl_reproduce_vm:run(#{bench => vm, program => <<"nonsense">>}, ""),
        ?assertNotEqual(nomatch, string:find(
            unicode:characters_to_list(sderl_papers_reason:text(Reason)),
            "there is no program nonsense")),
        ?assertEqual(other, sderl_reproduce_run:failed_in(Reason))
    end}.

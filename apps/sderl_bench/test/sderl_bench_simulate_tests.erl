%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_simulate_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_simulate_experiment).

%% Options

defaults_test() ->
    {ok, Options} = options([]),
    ?assertMatch(#{nodes := 7, spare := 1, groups := 1, clients := 2, most_faults := 12,
                   schedules := 400, broken := []}, Options),
    ?assertEqual(sderl_sim_faults:usual(), maps:get(faults, Options)),
    ?assertMatch(#{delay := {1, 20}, kinds := _, faults := 12},
                 sderl_bench_simulate_options:simulated(Options)),
    ?assertNot(is_map_key(forget_ms, sderl_bench_simulate_options:simulated(Options))),
    ?assertMatch(#{mode := available, answer := committed, files := false, reads := 10},
                 sderl_bench_simulate_options:simulated(Options)),
    ?assert(is_integer(maps:get(seed, Options))).

options_test() ->
    ?assertMatch({ok, #{faults := [crash, split], seed := 17, schedules := 3}},
                 options(["--faults", "crash, split", "--seed", "17", "--schedules", "3"])),
    ?assertMatch({ok, #{schedules := 1, trace := true}}, options(["--trace", "--seed", "1"])),
    ?assertMatch({ok, #{minutes := 480, log := "sderl-simulate.log"}}, options(["--overnight"])),
    ?assertMatch({ok, #{minutes := 2, log := "f"}}, options(["--minutes", "2", "--log", "f"])),
    ?assertMatch({ok, #{broken := [early_yes, rule_9]}}, options(["--broken", "early_yes,rule_9"])),
    ?assertMatch({ok, #{delay := {5, 50}, forget := 3000, chunk := 1}},
                 options(["--delay", "5-50", "--forget", "3000", "--chunk", "1"])),
    {ok, Majority} = options(["--majority", "--files", "--reads", "40"]),
    ?assertEqual(sderl_sim_strict:usual(majority), maps:get(strict, Majority)),
    ?assertMatch(#{mode := majority, files := true, reads := 40},
                 sderl_bench_simulate_options:simulated(Majority)),
    {ok, Applied} = options(["--applied", "--beats"]),
    ?assertMatch(#{mode := available, answer := applied, beats := true},
                 sderl_bench_simulate_options:simulated(Applied)),
    ?assertMatch({ok, #{nightly := true, seed := 5, log := "f"}},
                 options(["--nightly", "--seed", "5", "--log", "f"])).

hard_test() ->
    {ok, Hard} = options(["--hard"]),
    ?assertMatch(#{delay := {1, 200}, most_faults := 20, clients := 3}, Hard),
    ?assertEqual(sderl_sim_faults:usual() ++ [loss], maps:get(faults, Hard)),
    %% Options that are given beside --hard take precedence.
    {ok, Fewer} = options(["--hard", "--most-faults", "4", "--faults", "all"]),
    ?assertMatch(#{delay := {1, 200}, most_faults := 4}, Fewer),
    ?assertEqual(sderl_sim_faults:kinds(), maps:get(faults, Fewer)).

%% The command that is printed to replay a schedule has the same options as the original one.
every_parameter_is_in_the_command_test_() ->
    [fun() ->
         {ok, Options} = options(Args ++ ["--seed", "9", "--schedules", "1"]),
         ["bin/sderl", "bench", "simulate" | Again] =
             string:lexemes(unicode:characters_to_list(?E:replay(9, Options)), " "),
         ?assertEqual({ok, Options}, options(Again))
     end
     || Args <- [[],
                 ["--hard"],
                 ["--strict", "none"],
                 ["--majority", "--hard"],
                 ["--applied", "--hard"],
                 ["--beats"],
                 ["--majority", "--files", "--reads", "3", "--strict", "all"],
                 ["--time", "9000", "--longest", "70", "--late", "0", "--boot-spread", "1",
                  "--relink", "99", "--chunk", "2", "--aside", "900", "--forget", "8000",
                  "--patience", "700", "--keep", "9", "--made", "1", "--delay", "2-3", "--faults",
                  "loss,cut", "--broken", "rule_9", "--groups", "2", "--strict", "all"]]].

bad_options_test_() ->
    [
        {Text, fun() ->
            {error, Found} = options(Args),
            ?assertEqual(Text, lists:sublist(Found, length(Text)))
        end}
     || {Text, Args} <- [
         {"--nodes must be from 2 to 28, not 1", ["--nodes", "1"]},
         {"--spare must be from 0 to 4, not 5", ["--spare", "5"]},
         {"--most-faults must be from 1 to 1000, not 0", ["--most-faults", "0"]},
         {"--faults: there is no kind of fault \"flood\"; there are crash, kill, ",
          ["--faults", "crash,flood"]},
         {"--faults names nothing: take \"usual\", \"all\" or some of crash, ", ["--faults", ","]},
         {"--broken: there is no deliberate fault \"rule_99\"; there are skip_apply, ",
          ["--broken", "rule_99"]},
         {"--schedules must be at least 1, not 0", ["--schedules", "0"]},
         {"--minutes must be at least 1, not 0", ["--minutes", "0"]},
         {"--schedules says how many, --minutes how long: give one of them",
          ["--minutes", "1", "--schedules", "3"]},
         {"--schedules says how many, --overnight how long", ["--overnight", "--schedules", "3"]},
         {"--overnight is --minutes 480: give one of them", ["--overnight", "--minutes", "3"]},
         {"--trace is of one schedule, not of 2", ["--trace", "--schedules", "2"]},
         {"--trace is of one schedule, --overnight of many", ["--trace", "--overnight"]},
         {"--log is the file of --minutes, --overnight and --nightly", ["--log", "f"]},
         {"--strict: there is no promise \"flood\"; there are one_answers, ",
          ["--strict", "flood"]},
         {"--delay must be two numbers of ms such as 1-200, not 20-1", ["--delay", "20-1"]},
         {"--applied is for available groups; take it out, or --majority",
          ["--applied", "--majority"]},
         {"--forget must be from 0 to ", ["--forget", "-1"]},
         {"--nightly goes on until it is stopped: leave out --schedules",
          ["--nightly", "--schedules", "2"]}
     ]
    ].

options(Args) -> sderl_bench_options:checked("simulate", ?E, Args).

%% Runs

json_test_() ->
    {timeout, 600, fun() -> in_folder(fun(Folder) ->
        File = filename:join(Folder, "result.json"),
        {ok, Output} = sderl_bench_output:open(File),
        {ok, Options} = options(["--nodes", "3", "--faults", "crash,pause", "--most-faults", "4",
                                 "--seed", "1", "--schedules", "2"]),
        Outcome = ?E:run(Options, Output),
        ok = sderl_bench_output:close(Output),
        {ok, Line} = file:read_file(File),
        #{<<"experiment">> := <<"simulate">>, <<"metrics">> := Metrics, <<"params">> := Params} =
            json:decode(Line),
        ?assertEqual(ok, Outcome),
        ?assertMatch(#{<<"schedules">> := 2,
                       <<"violations">> := 0,
                       <<"steps_per_s">> := _,
                       <<"cpu_ms">> := _,
                       <<"faults">> := #{},
                       <<"converge_ms">> := #{<<"max">> := _}}, Metrics),
        ?assertMatch(#{<<"seed">> := 1, <<"faults">> := [<<"crash">>, <<"pause">>]}, Params)
    end) end}.

%% The command that is printed runs the same schedule again, with the same violation.
replay_test_() ->
    {timeout, 600, fun() ->
        Args = ["--nodes", "3", "--clients", "3", "--broken", "early_yes", "--seed", "1",
                "--schedules", "4"],
        {ok, Options} = options(Args),
        {ok, None} = sderl_bench_output:open(undefined),
        {error, Text} = ?E:run(Options, None),
        Lines = string:split(unicode:characters_to_list(Text), "\n", all),
        [Found, Command | _] = tl(Lines),
        ["bin/sderl", "bench", "simulate" | Again] = string:lexemes(Command, " "),
        {ok, One} = options(Again),
        {error, Text1} = ?E:run(One, None),
        ["1 of 1 schedules broke a promise:", Same | _] =
            string:split(unicode:characters_to_list(Text1), "\n", all),
        ?assertEqual(Found, Same)
    end}.

%% The log

a_log_goes_on_where_it_was_cut_test() ->
    in_folder(fun(Folder) ->
        File = filename:join(Folder, "log"),
        ok = file:write_file(File, "{\"what\":\"vio"),
        {ok, Log} = sderl_bench_simulate_log:open(File),
        ok = sderl_bench_simulate_log:begun(Log, #{nodes => 3}),
        Report = #{seed => 5, outcome => failed, why => {one_owner, x}, at_ms => 7},
        ok = sderl_bench_simulate_log:seen(Log, Report, sderl_sim_batch:empty(),
                                           fun(S) -> ["again ", integer_to_list(S)] end),
        ok = sderl_bench_simulate_log:close(Log),
        {ok, Text} = file:read_file(File),
        [<<"{\"what\":\"vio">>, Begun, Violation, <<>>] = binary:split(Text, <<"\n">>, [global]),
        ?assertMatch(#{<<"what">> := <<"begun">>, <<"params">> := #{<<"nodes">> := 3}},
                     json:decode(Begun)),
        ?assertMatch(#{<<"seed">> := 5, <<"at_ms">> := 7, <<"replay">> := <<"again 5">>,
                       <<"why">> := <<"{one_owner,x}">>},
                     json:decode(Violation))
    end).

%% The history of a log, for some parameters: how many schedules were run, the last seed, from which
%% the next run goes on, and the seeds that failed, which it leaves out.
a_log_knows_what_was_run_test() ->
    in_folder(fun(Folder) ->
        File = filename:join(Folder, "log"),
        Params = #{nodes => 3, faults => [crash]},
        {ok, Log} = sderl_bench_simulate_log:open(File),
        History = fun() -> {ok, So} = sderl_bench_simulate_log:history(File, Params), So end,
        ?assertEqual(#{schedules => 0, last_seed => 0, failed => #{}}, History()),
        Report = #{seed => 57, outcome => failed, why => {one_owner, x}, at_ms => 7},
        Seen = fun(R, So) ->
            ok = sderl_bench_simulate_log:seen(Log, R, maps:merge(sderl_sim_batch:empty(), So),
                                               fun(_) -> "" end)
        end,
        ok = sderl_bench_simulate_log:begun(Log, Params#{seed => 50}),
        Seen(Report, #{}),
        Seen(#{seed => 250, outcome => ok}, #{schedules => 200}),
        %% A run with other parameters does not count.
        ok = sderl_bench_simulate_log:begun(Log, Params#{nodes => 4, seed => 9000}),
        ok = sderl_bench_simulate_log:ended(Log, 10, 0),
        ?assertEqual(#{schedules => 200, last_seed => 250, failed => #{57 => []}}, History()),
        ok = sderl_bench_simulate_log:begun(Log, Params#{seed => 251}),
        ok = sderl_bench_simulate_log:ended(Log, 30, 0),
        ?assertEqual(#{schedules => 230, last_seed => 280, failed => #{57 => []}}, History()),
        ok = sderl_bench_simulate_log:close(Log)
    end).

%% A nightly run that is stopped before its first schedule, as by Ctrl-C, begins after the last seed
%% of the log. A batch leaves out the seeds that failed before.
nightly_test_() ->
    {timeout, 600, fun() -> in_folder(fun(Folder) ->
        File = filename:join(Folder, "log"),
        Args = ["--nodes", "3", "--clients", "3", "--broken", "early_yes", "--nightly", "--log",
                File],
        {ok, None} = sderl_bench_output:open(undefined),
        Stop = fun() -> self() ! {sderl_signals, stop} end,
        {ok, Options} = options(Args),
        %% An earlier run of four schedules, in which seed 2 failed.
        {ok, Log} = sderl_bench_simulate_log:open(File),
        ok = sderl_bench_simulate_log:begun(
            Log, (sderl_bench_simulate_options:shown(Options))#{seed => 1}
        ),
        ok = sderl_bench_simulate_log:seen(Log,
                                           #{seed => 2, outcome => failed, why => x, at_ms => 1},
                                           sderl_sim_batch:empty(), fun(_) -> "" end),
        ok = sderl_bench_simulate_log:ended(Log, 4, 1),
        ok = sderl_bench_simulate_log:close(Log),
        Stop(),
        ?assertEqual(ok, ?E:run(Options, None)),
        %% The message stays in the mailbox, for all schedules that still run.
        ?assert(receive {sderl_signals, stop} -> true after 0 -> false end),
        {ok, Text} = file:read_file(File),
        Seeds = [Seed
                 || Line <- binary:split(Text, <<"\n">>, [global, trim]),
                    #{<<"what">> := <<"begun">>, <<"params">> := #{<<"seed">> := Seed}} <-
                        [json:decode(Line)]],
        ?assertEqual([1, 5], Seeds),
        #{failed := Failed, schedules := 3} =
            sderl_sim_batch:run(1, sderl_bench_simulate_options:simulated(Options),
                                #{more => fun(Begun) -> Begun < 3 end, skip => #{2 => []},
                                  at_once => 1}),
        ?assertNot(lists:member(2, [S || #{seed := S} <- Failed]))
    end) end}.

a_log_that_cannot_be_is_an_error_test() ->
    {error, Text} = sderl_bench_simulate_log:open("/no/such/folder/log"),
    ?assertEqual("cannot write /no/such/folder/log: no such file or directory",
                 unicode:characters_to_list(Text)).

%% Helpers

in_folder(Fun) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           "sderl_simulate_" ++ os:getpid() ++
                           integer_to_list(erlang:unique_integer([positive]))),
    ok = filelib:ensure_path(Folder),
    try Fun(Folder) after file:del_dir_r(Folder) end.

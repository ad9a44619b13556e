%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_debench_experiment).
-define(MS, 1_000_000).

%% A registry that never answers.
-export([register/2, whereis/2, unregister/2]).

%% ---------------------------------------------------------------- the mix

kinds_test() ->
    ?assertEqual(11, length(lists:usort(sderl_debench_mix:kinds()))),
    ?assertEqual([global_register, global_whereis, global_unregister],
                 sderl_debench_mix:steps(global)),
    ?assertEqual([local_register, local_whereis, local_unregister], sderl_debench_mix:steps(local)),
    ?assertEqual([rpc], sderl_debench_mix:steps(rpc)),
    ?assertEqual([none], [sderl_debench_mix:class(K) || K <- [global_whereis]]),
    ?assertEqual([global, global, local, p2p],
                 [sderl_debench_mix:class(K)
                  || K <- [global_register, global_unregister, local_whereis, erpc]]).

share_property_test_() ->
    sderl_prop:eunit("global registrations and unregistrations are the share asked for, the others "
                     "split by weight", 500, fun prop_share/0).

prop_share() ->
    ?FORALL({Pct, Weights}, {pct(), weights()},
            begin
                Mix = #{global_pct => Pct, weights => Weights},
                Shares = sderl_debench_mix:share(Mix),
                Global = proplists:get_value(global, Shares),
                Others = [{W, Share}
                          || {Unit, Share} <- Shares, Unit =/= global,
                             W <- [maps:get(Unit, Weights)]],
                lists:all(fun(B) -> B end, [
                    near(1.0, lists:sum([S || {_, S} <- Shares])),
                    near(Pct / 100, 2 * Global / sderl_debench_mix:ops_per_unit(Mix)),
                    %% Each is compared with the first one by cross multiplication.
                    lists:all(fun({W, S}) -> {W0, S0} = hd(Others), near(S * W0, S0 * W) end,
                              Others)
                ])
            end).

pct() -> oneof([0, 0.01, 1, 10, 50, float(0.0, 66.6)]).

%% Weights, of which at least one is over zero.
weights() ->
    Names = sderl_debench_mix:p2p() ++ [local],
    ?LET({One, Ws}, {oneof(Names), vector(length(Names), range(0, 1000))},
         maps:from_list([{N, max(W, if N =:= One -> 1; true -> 0 end)}
                         || {N, W} <- lists:zip(Names, Ws)])).

near(A, B) -> abs(A - B) =< 1.0e-9 * max(1, abs(A)).

all_global_test() ->
    Mix = #{global_pct => sderl_debench_mix:most_pct(), weights => sderl_debench_mix:weights()},
    ?assertEqual(1.0, proplists:get_value(global, sderl_debench_mix:share(Mix))).

%% The seed is fixed: shares are off by a few standard deviations at most.
long_run_test() ->
    Options = #{global_pct => 10, weights => #{spawn => 3, rpc => 2, local => 1}, seed => 4711},
    N = 20_000,
    Units = units(N, {a, b, c}, sderl_debench_mix:new(Options)),
    [
        begin
            Seen = length([U || {U, _} <- Units, U =:= Unit]),
            ?assert(abs(Seen - N * Share) < 6 * math:sqrt(N * Share * (1 - Share)),
                    {Unit, Seen, N * Share})
        end
     || {Unit, Share} <- sderl_debench_mix:share(Options)
    ],
    ?assertEqual([none], lists:usort([T || {U, T} <- Units, U =:= global orelse U =:= local])),
    ?assertEqual([a, b, c], lists:usort([T || {spawn, T} <- Units])).

seed_property_test_() ->
    sderl_prop:eunit("a seed repeats the units and the targets", 50, fun() ->
        ?FORALL({Pct, Weights, Seed}, {pct(), weights(), integer()},
                begin
                    Mix = fun(S) ->
                        units(200, {a, b, c, d}, sderl_debench_mix:new(
                            #{global_pct => Pct, weights => Weights, seed => S}
                        ))
                    end,
                    Mix(Seed) =:= Mix(Seed)
                end)
    end).

units(0, _, _) ->
    [];
units(N, Targets, Mix) ->
    {Unit, Target, Mix1} = sderl_debench_mix:next(Targets, Mix),
    [{Unit, Target} | units(N - 1, Targets, Mix1)].

%% ---------------------------------------------------------------- operations

local_test() ->
    Due = erlang:monotonic_time(nanosecond),
    [{local_register, Due, B1, E1, ok}, {local_whereis, E1, B2, E2, ok},
     {local_unregister, E2, B3, E3, ok}] =
        sderl_debench_op:run(local, none, sderl_debench_tests_name, Due, context(?MODULE, 1000)),
    Times = [Due, B1, E1, B2, E2, B3, E3],
    ?assertEqual(lists:sort(Times), Times),
    ?assertEqual(undefined, erlang:whereis(sderl_debench_tests_name)).

%% A unit does not go on without the registration that it needs.
taken_test() ->
    true = erlang:register(sderl_debench_tests_name, self()),
    ?assertMatch(
        [{local_register, _, _, _, {error, {error, badarg}}}],
        sderl_debench_op:run(local, none, sderl_debench_tests_name, 0, context(?MODULE, 1000))
    ),
    true = erlang:unregister(sderl_debench_tests_name).

p2p_test_() ->
    {setup, fun() -> ok = sderl_debench_node:prepare(sderl_bench_impl_pg) end,
        fun(_) -> [ok = gen:stop(S) || S <- [sderl_debench_server, sderl_debench_statem]] end,
        [{atom_to_list(Kind), {spawn, fun() -> p2p(Kind) end}} || Kind <- sderl_debench_mix:p2p()]}.

p2p(Kind) ->
    ?assertMatch([{Kind, 0, _, _, ok}],
                 sderl_debench_op:run(Kind, node(), none, 0, context(?MODULE, 60_000))),
    %% The operation computes for longer than its time limit.
    ?assertMatch(
        [{Kind, 0, _, _, {error, timeout}}],
        sderl_debench_op:run(Kind, node(), none, 0, (context(?MODULE, 1))#{compute_us := 500_000})
    ),
    %% The operation ends at the end of the run, even if its own time limit is longer.
    ?assertMatch(
        [{Kind, 0, _, _, {error, timeout}}],
        sderl_debench_op:run(Kind, node(), none, 0, (context(?MODULE, 60_000))#{
            compute_us := 500_000, last_ns := erlang:monotonic_time(nanosecond)
        })
    ),
    ?assertEqual({messages, []}, process_info(self(), messages)).

global_test_() ->
    {setup,
     fun() ->
         {ok, Pid} = pg:start(sderl_bench),
         Pid
     end,
     fun(Pid) -> ok = gen_server:stop(Pid) end,
     [
         ?_assertMatch(
             [{global_register, 0, _, E1, ok}, {global_whereis, E1, _, E2, ok},
              {global_unregister, E2, _, _, ok}],
             sderl_debench_op:run(global, none, {1, 0, 1}, 0, context(sderl_bench_impl_pg, 60_000))
         ),
         ?_assertEqual([], sderl_bench_impl_pg:names(g))
     ]}.

%% A registration that fails is the end of its unit.
no_registry_test() ->
    ?assertMatch(
        [{global_register, 0, _, _, {error, {exit, {noproc, _}}}}],
        sderl_debench_op:run(global, none, {1, 0, 1}, 0, context(sderl_bench_impl_pg, 60_000))
    ).

%% An operation that does not return is given up, and its process is killed.
never_test_() -> {spawn, fun never_alone/0}.

never_alone() ->
    Before = processes(),
    ?assertMatch(
        [{global_register, 0, _, _, {error, timeout}}],
        sderl_debench_op:run(global, none, {1, 0, 1}, 0, context(?MODULE, 1))
    ),
    ?assertEqual({messages, []}, process_info(self(), messages)),
    ?assertEqual([], [P
                      || P <- processes() -- Before, process_info(P, current_function) =:=
                                                     {current_function, {?MODULE, register, 2}}]).

register(_, _) ->
    receive
        never -> ok
    end.

whereis(_, _) -> undefined.

unregister(_, _) -> ok.

context(Impl, TimeoutMs) ->
    #{
        impl => Impl,
        group => g,
        block => <<"block">>,
        compute_us => 0,
        timeout_ms => TimeoutMs,
        last_ns => erlang:monotonic_time(nanosecond) + 60_000 * ?MS
    }.

%% ---------------------------------------------------------------- tallies

%% The tally counts what is due from 10 s to 12 s of some clock.
counted_test() ->
    Tally = lists:foldl(
        fun({Due, Samples}, T) ->
            sderl_debench_tally:add(Due * ?MS, [sample(S) || S <- Samples], T)
        end,
        sderl_debench_tally:new(10_000 * ?MS, 12_000 * ?MS),
        [
            %% Due in the warm-up, so it does not count, though it ends later.
            {9_999, [{rpc, 9_999, 9_999, 10_001, ok}]},
            {10_000, [{rpc, 10_000, 10_001, 10_003, ok}]},
            {11_500, [{global_register, 11_500, 11_500, 11_600, ok},
                      {global_whereis, 11_600, 11_600, 11_600, ok},
                      %% Counts with its unit, though it ends too late.
                      {global_unregister, 11_600, 11_600, 12_300, ok}]},
            {11_999, [{rpc, 11_999, 11_999, 13_000, {error, timeout}}]},
            {12_000, [{rpc, 12_000, 12_000, 12_001, ok}]}
        ]
    ),
    Metrics = sderl_debench_tally:metrics(sderl_debench_tally:late(2 * ?MS, Tally), 2),
    ?assertMatch(
        #{
            ops := 4, errors := 1, ops_per_s := 2.0, offered_per_s := 2.5, completed_pct := 80.0,
            global_done_pct := 100.0,
            error_reasons := [<<"rpc: timeout (1)">>],
            kinds := #{
                rpc := #{ops := 1, errors := 1, ops_per_s := 1.0},
                spawn := #{ops := 0, errors := 0, latency_us := #{p50 := undefined}},
                global_unregister := #{ops := 1, ops_per_s := +0.0}
            },
            p2p := #{ops := 1, errors := 1},
            global := #{ops := 2, errors := 0, ops_per_s := 0.5},
            local := #{ops := 0},
            timeline := [#{t_s := 0, p2p := #{ops := 1, errors := 0}},
                         #{t_s := 1, p2p := #{ops := 0, errors := 1}, global := #{ops := 2}}]
        },
        Metrics
    ),
    #{kinds := #{rpc := #{latency_us := #{p50 := Latency}, service_us := #{p50 := Service}}},
      late_us := #{p50 := Late}} = Metrics,
    [?assert(abs(Seen - Us) =< 0.016 * Us)
     || {Seen, Us} <- [{Latency, 3000}, {Service, 2000}, {Late, 2000}]].

sample({Kind, Due, Begin, End, Outcome}) -> {Kind, Due * ?MS, Begin * ?MS, End * ?MS, Outcome}.

merge_property_test_() ->
    sderl_prop:eunit("tallies merged are the tally of all", 200, fun prop_merge/0).

%% Each part has a clock of its own, as nodes do.
prop_merge() ->
    ?FORALL(Parts, non_empty(list({range(-5000, 5000), list(unit())})),
        begin
            Merged = sderl_debench_tally:merge([tally(Shift, Units) || {Shift, Units} <- Parts]),
            One = tally(0, lists:append([Units || {_, Units} <- Parts])),
            sderl_debench_tally:metrics(Merged, 3) =:= sderl_debench_tally:metrics(One, 3)
        end).

tally(Shift, Units) ->
    lists:foldl(
        fun({Due, Kind, Late, Took, Outcome}, T) ->
            Sample = {Kind, Shift + Due, Shift + Due + Late, Shift + Due + Late + Took, Outcome},
            sderl_debench_tally:add((Shift + Due) * ?MS, [sample(Sample)], T)
        end,
        sderl_debench_tally:new(Shift * ?MS, (Shift + 3000) * ?MS),
        Units
    ).

unit() ->
    {range(-500, 3500), oneof(sderl_debench_mix:kinds()), range(0, 3), range(0, 2000),
     oneof([ok, ok, {error, timeout}])}.

%% The number of different reasons is limited.
reasons_test() ->
    Tally = lists:foldl(
        fun(N, T) -> sderl_debench_tally:add(0, [{rpc, 0, 0, 0, {error, {odd, N}}}], T) end,
        sderl_debench_tally:new(0, 1),
        lists:seq(1, 1000)
    ),
    ?assertMatch(#{errors := 1000, error_reasons := [<<"rpc: other (980)">> | _]},
                 sderl_debench_tally:metrics(Tally, 1)).

%% ---------------------------------------------------------------- options

defaults_test() ->
    ?assertMatch(
        {ok, #{
            mode := [sd], nodes := [10], global_pct := [1.0], load := {open, 20.0}, pace := poisson,
            p2p := group, group_size := #{10 := 10}, weights := #{spawn := _, local := _}
        }},
        options([])
    ).

options_test() ->
    ?assertMatch(
        {ok, #{
            mode := [stock, pg, sd], nodes := [4, 12], global_pct := [+0.0, 0.01, 10.0],
            load := {closed, 3}, p2p := any, group_size := #{4 := 4, 12 := 4},
            weights := #{rpc := 2.5, local := 1.0}
        }},
        options(["--compare", "--nodes", "4,12", "--group-size", "4", "--global-pct", "0,0.01,10",
                 "--workers", "3", "--p2p", "any", "--weights", "rpc=2.5,local=1"])
    ),
    %% The size of groups does not matter in a mode without groups.
    ?assertMatch({ok, #{mode := [stock]}},
                 options(["--mode", "stock", "--nodes", "7", "--group-size", "4"])).

bad_options_test_() ->
    [
        {Text, ?_assertEqual({error, Text}, options(Args))}
     || {Text, Args} <- [
         {"--nodes: \"0\" is no whole number from 1 to 1000000", ["--nodes", "0"]},
         {"--nodes must be at least 2: operations go from node to node; or give --weights local=1 "
          "alone", ["--nodes", "10,1"]},
         {"--mode: there is no mode \"mesh\"; there are stock, pg, sd", ["--mode", "pg,mesh"]},
         {"--mode names pg twice; name it once", ["--mode", "pg,sd,pg"]},
         {"--group-size 3 does not divide --nodes 10: all groups are of equal size here",
          ["--group-size", "3"]},
         {"--group-size 10 does not divide --nodes 15: all groups are of equal size here",
          ["--nodes", "15"]},
         {"--group-size must be at least 2, not 1: operations go from node to node",
          ["--group-size", "1"]},
         {"--global-pct: \"-1\" is no number from 0 to 66.6: a look-up goes with each registration",
          ["--global-pct", "-1"]},
         {"--global-pct: \"101\" is no number from 0 to 66.6: a look-up goes with each "
          "registration", ["--global-pct", "1,101"]},
         {"--global-pct: \"x\" is no number from 0 to 66.6: a look-up goes with each registration",
          ["--global-pct", "x"]},
         {"--weights: there is no operation \"cast\"; there are spawn, rpc, erpc, gen_server, "
          "gen_statem, local", ["--weights", "rpc=1,cast=2"]},
         {"--weights: \"rpc\" is not of the form NAME=NUMBER", ["--weights", "rpc"]},
         {"--weights rpc: \"-1\" is no number from 0 to 1000000", ["--weights", "rpc=-1"]},
         {"--weights names rpc twice", ["--weights", "rpc=1,rpc=2"]},
         {"--weights: one of them must be over 0", ["--weights", "rpc=0"]},
         {"--rate: \"0\" is no number from 0.01 to 100000", ["--rate", "0"]},
         {"--rate takes one number", ["--rate", "1,2"]},
         {"--rate is an open load and --workers a closed one: give one of them",
          ["--rate", "1", "--workers", "1"]},
         {"--workers must be at least 1, not 0", ["--workers", "0"]},
         {"--clusters must be at least 1, not 0", ["--clusters", "0"]},
         {"--seconds must be at least 1, not 0", ["--seconds", "0"]},
         {"--warmup must be at least 0, not -1", ["--warmup", "-1"]},
         {"--payload must be at least 0, not -1", ["--payload", "-1"]},
         {"--compute-us must be at least 0, not -1", ["--compute-us", "-1"]},
         {"--timeout-ms must be at least 1, not 0", ["--timeout-ms", "0"]},
         {"--repeat must be at least 1, not 0", ["--repeat", "0"]},
         {"--pace: \"fast\" is none of poisson, even", ["--pace", "fast"]},
         {"--p2p: \"all\" is none of group, any", ["--p2p", "all"]}
     ]
    ].

too_many_test() ->
    case sderl_fleet:fits(10_000 * 1000) of
        ok -> ok;
        {error, _} ->
            {error, Text} = options(["--nodes", "10000", "--clusters", "1000"]),
            ?assertMatch({match, _},
                         re:run(Text, "^--nodes 10000 with --clusters 1000: .*start fewer nodes"))
    end.

unwritable_test() ->
    ?assertMatch(
        {1, _, _},
        sderl_cli:run(["bench", "debench", "--nodes", "2", "--json", "/no/such/folder/file"])
    ).

options(Args) -> sderl_bench_options:checked("debench", ?E, Args).

%% ---------------------------------------------------------------- tables

tables_test() ->
    Tally = sderl_debench_tally:add(
        0, [{rpc, 0, 0, 100_000, ok}, {spawn, 0, 0, 0, {error, timeout}}],
        sderl_debench_tally:new(0, 1000 * ?MS)
    ),
    Metrics = (sderl_debench_tally:metrics(Tally, 1))#{
        cpu_pct => 90.0, cpu_us_per_op => 5.0, messages_per_op => 2.0, links_per_node_max => 3,
        names_left => 1
    },
    Runs = [#{params => #{mode => Mode, nodes => 4, global_pct => 1.0, run => Run},
              metrics => Metrics}
            || Run <- [1, 2], Mode <- [stock, pg]],
    Text = unicode:characters_to_list([sderl_debench_table:points(Runs),
                                       sderl_debench_table:kinds(Runs),
                                       sderl_debench_table:notes(Runs)]),
    [
        ?assertMatch({match, _}, re:run(Text, Wanted, [multiline]), {Wanted, Text})
     || Wanted <- [
            "^stock, 4 nodes +1.00 +50.0 +99.3 / 99.3 +- / - .* 3 +1$",
            "^rpc +1.00 +99.3 .* 0$",
            "^spawn .* 1$",
            "^pg: eventually consistent",
            "^stock, 4 nodes: the machine was busy \\(90.0 % of the processor\\)",
            "^stock, 4 nodes: spawn: timeout \\(1\\)",
            "^stock, 4 nodes: 1 names were left"
        ]
    ],
    ?assertEqual(nomatch, re:run(Text, "^erpc", [multiline])).

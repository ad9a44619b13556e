%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_tests).
-moduledoc "Verdicts of the claims, from points that were made up.".
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- made-up points

point(Experiment, Params, Metrics) ->
    Plain = json:decode(
        sderl_bench_output:line(sderl_bench_output:result(Experiment, Params, Metrics, <<>>))
    ),
    #{experiment => maps:get(<<"experiment">>, Plain), params => maps:get(<<"params">>, Plain),
      metrics => maps:get(<<"metrics">>, Plain)}.

%% A point with the p50 of global operations in ms.
load(Mode, Nodes, Pct, Ms) -> load(Mode, Nodes, Pct, Ms, #{}).

load(Mode, Nodes, Pct, Ms, More) ->
    Class = fun(P50) ->
        #{ops => 400, errors => 0, latency_us => #{p50 => P50, p95 => 2 * P50, p99 => 3 * P50}}
    end,
    Default = #{
        global => Class(1000 * Ms), p2p => Class(200), local => Class(2),
        kinds => #{global_register => Class(1000 * Ms)}, global_done_pct => 100.0, cpu_pct => 20,
        cpu_us_per_op => 100, links_per_node_max => Nodes - 1, errors => 0, offered_per_s => 1500,
        messages_per_op => 3, bytes_per_op => 400
    },
    Changed = maps:map(fun
        (Key, P50) when Key =:= p2p; Key =:= local -> Class(P50);
        (_, Value) -> Value
    end, More),
    point(debench,
          #{mode => Mode, nodes => Nodes, clusters => 100 div Nodes, global_pct => Pct, run => 1},
          maps:merge(Default, Changed)).

orbit(stock, Nodes, Seconds) -> orbit(stock, Nodes, Seconds, Nodes);
orbit(sd, Nodes, Seconds) -> orbit(sd, Nodes, Seconds, max(1, Nodes div 10)).

orbit(stock, Nodes, Seconds, Links) ->
    point(orbit, #{mode => stock, nodes => Nodes, run => 1},
          #{seconds => Seconds, links_per_node_max => Links, messages => 10, bytes => 100});
orbit(sd, Nodes, Seconds, Groups) ->
    Size = Nodes div Groups,
    point(orbit, #{mode => sd, routing => own, groups => Groups, nodes => Nodes, run => 1}, #{
        seconds => Seconds, links_per_node_max => max(Groups, Size + Groups - 1),
        links_master => Groups, links_submaster_max => Size + Groups - 1,
        links_worker_max => Size - 1, messages => 30, bytes => 300
    }).

%% A point of the colonies with an excess in percent. `run` is 1, as in the other points that are
%% made up.
smp(Instance, Colonies, Excess) ->
    Best = 1000,
    point(aco, #{variant => smp, instance => #{n => 100, rdd => 0.2, tf => 0.6, seed => Instance},
                 colonies => Colonies, ants => 4, run => 1},
          #{best_cost => Best + 10 * Excess, best_known => Best,
            round_best => [Best + 20 * Excess, Best + 10 * Excess], seconds => 1.0}).

aco(Variant, Nodes, More) -> aco(Variant, Nodes, #{}, More).

aco(Variant, Nodes, Asked, More) ->
    Params = #{
        variant => Variant, nodes => case Variant of tl -> Nodes div 2; _ -> Nodes end, degree => 2,
        colonies => Nodes div 2, instance => #{n => 40, rdd => 0.2, tf => 0.6, seed => 1},
        ants => 4, local_iterations => 20, global_iterations => 20, search => none,
        monitoring => off, chaos => none, run => 1
    },
    Default = #{
        seconds => 10.0, cpu_us_per_op => 100, packets => 1000, messages => 900, bytes => 90000,
        links_total => 10, links_per_node_max => 5, cpu_pct => 80, best_cost => 500,
        best_known => undefined, round_best => [600, 500], colonies => Nodes div 2,
        ants_per_s => 1000, kills => 0, kills_not_back => 0, names_left => 0,
        cpu_us_per_op_in_rounds => 90,
        recovery_us => #{p50 => undefined, p99 => undefined, max => undefined}
    },
    point(aco, maps:merge(Params, Asked), maps:merge(Default, More)).

im(Mode, Servers, Delivered) -> im(Mode, Servers, Delivered, #{}, #{}).

im(Mode, Servers, Delivered, Asked, More) ->
    Params = #{mode => Mode, servers => Servers, routers => 1, clients => 20 * Servers,
               chaos => none, monitoring => off, run => 1},
    Default = #{
        delivered_per_min => Delivered, qos_pct => 99.0,
        latency_us => #{p50 => 300, p95 => 500, p99 => 900}, lost_messages => 0,
        lost_conversations => 0, conversations => 50, broken_conversations_not_killed => 0,
        killed_messages => 0, kills => 0, names_left => 0, names_missing => 0, not_back => 0,
        clients_left => 0, rows_left => 0, processes_left => 0,
        recovery_ms => #{p50 => undefined, p99 => undefined, max => undefined},
        timeline => [#{t_s => T, delivered => 10, kills => 0} || T <- [1, 2, 3]], cpu_pct => 30,
        cpu_us_per_op => 200, messages_per_op => 4
    },
    point(im, maps:merge(Params, Asked), maps:merge(Default, More)).

%% The same points, failed: in the program's run itself, or for another reason.
failed(Points) -> failed(other, Points).
failed(In, Points) ->
    [P#{metrics := #{<<"failed">> => <<"stuck">>, <<"failed_in">> => atom_to_binary(In)}}
     || P <- Points].

again(Points) -> Points ++ [again(2, Point) || Point <- Points].
again(Run, #{params := Params} = Point) -> Point#{params := Params#{<<"run">> := Run}}.

%% ---------------------------------------------------------------- verdicts

verdicts(Module, Cases) ->
    [{Name, fun() ->
        {Verdict, Text} = Module:verdict(Points),
        ?assertEqual({Is, Text}, {Verdict, Text}),
        [?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text}) || Words <- Said]
    end} || {Name, Is, Points, Said} <- lists:flatten(Cases)].

%% Whether the program failed, or something else.
failed_in_test() ->
    [?assertEqual(run, sderl_reproduce_run:failed_in(Reason))
     || Reason <- [
         {aco, {died, master, n, killed}}, {aco, {timeout, 600}}, {aco, {wrong, 1, [1]}},
         {im, {no_result, n, {error, down}}}
     ]],
    [?assertEqual(other, sderl_reproduce_run:failed_in(Reason))
     || Reason <- [
         {memory, #{needed_mib => 2, available_mib => 1}}, {start_failed, []},
         {aco, {no_chaos, no_targets}}, {aco, {node_down, n}}, {aco, {silent, [n], 600}},
         {aco, {memory, 2, 1}},
         {aco, {not_metered, [n]}}, {im, {chaos, no_targets}}, {im, {no_clients, n, timeout}},
         {error, badarg}, timeout
     ]].

c1_test_() ->
    Curve = fun(Pct, Of) -> [load(stock, N, Pct, Ms) || {N, Ms} <- Of] end,
    Slow = Curve(1, [{10, 2}, {20, 4}, {50, 10}, {100, 50}]),
    verdicts(sderl_claim_c1, [
        {"sooner", confirmed, Curve(10, [{10, 2}, {20, 5}, {50, 400}, {100, 9000}]) ++ Slow,
         ["1 % of global operations bent at 100 nodes",
          "10 % of global operations bent at 50 nodes"]},
        {"one share bends, the other not", confirmed,
         Curve(10, [{10, 2}, {50, 400}]) ++ Curve(1, [{10, 2}, {50, 9}]),
         ["1 % of global operations did not bend up to 50 nodes"]},
        {"less is done", confirmed,
         [load(stock, 10, 10, 2), load(stock, 50, 10, 4, #{global_done_pct => 90})] ++
         Curve(1, [{10, 2}, {50, 9}]), ["at 50 p50 2.00 times that with 10, 90 % of them done"]},
        {"later", refuted, Curve(10, [{10, 2}, {20, 5}, {50, 9}, {100, 19}]) ++
                           Curve(1, [{10, 2}, {20, 5}, {50, 90}, {100, 190}]), ["bent later"]},
        {"flat", refuted, Curve(10, [{10, 2}, {100, 3}]) ++ Curve(1, [{10, 2}, {100, 3}]),
         ["Nothing bent"]},
        {"both at the same", not_shown,
         Curve(10, [{10, 2}, {100, 30}]) ++ Curve(1, [{10, 2}, {100, 30}]),
         ["not seen at this scale"]},
        {"a small range", not_shown, Curve(10, [{10, 2}, {40, 6}]) ++ Curve(1, [{10, 2}, {40, 6}]),
         []},
        %% The share that was measured only at the ends is not said to bend later because of that.
        {"few sizes", confirmed,
         Curve(10, [{10, 2}, {50, 100}, {100, 500}]) ++ Curve(1, [{10, 2}, {50, 9}, {100, 19}]) ++
         Curve(0.1, [{10, 2}, {100, 19}]), []},
        {"nothing", not_shown, [], []},
        {"one point", not_shown, [load(stock, 10, 1, 2)], []}
    ]).

c2_test_() ->
    Two = fun(Ms, More) -> [load(stock, 10, 1, 2), load(stock, 100, 1, Ms, More)] end,
    verdicts(sderl_claim_c2, [
        {"as published", confirmed, Two(20, #{p2p => 300, local => 3}),
         ["From 10 to 100 nodes", "global operations grew 10.0 times (2.00 ms to 20.0 ms)",
          "1.50 times"]},
        {"global flat", refuted, Two(3, #{}), []},
        {"point to point steep", refuted, Two(20, #{p2p => 1000}), ["point to point 5.00 times"]},
        {"between", not_shown, Two(6, #{}), []},
        {"point to point between", not_shown, Two(20, #{p2p => 500}), []},
        {"a fourfold range is clear", confirmed, [load(stock, 10, 1, 2), load(stock, 40, 1, 8)],
         ["steep is over 2.30"]},
        {"a small range", not_shown, [load(stock, 10, 1, 2), load(stock, 20, 1, 20)],
         ["too close"]},
        {"short of processor", not_shown, Two(20, #{cpu_pct => 41}), ["no two sizes"]},
        {"few operations", not_shown,
         Two(20, #{global => #{ops => 99, latency_us => #{p50 => 20000}}}), ["no two sizes"]},
        {"many failed", not_shown, Two(20, #{global_done_pct => 94}), ["no two sizes"]},
        {"nothing", not_shown, [], []}
    ]).

c3_test_() ->
    Modes = fun(Stock, Sd) ->
        [load(stock, 10, 1, 2)] ++ [load(stock, N, 1, Ms) || {N, Ms} <- Stock] ++
            [load(sd, 10, 1, 2) | [load(sd, N, 1, Ms) || {N, Ms} <- Sd]]
    end,
    verdicts(sderl_claim_c3, [
        {"as published", confirmed, Modes([{20, 2.5}, {100, 20}], [{20, 2}, {100, 2.2}]),
         ["grew 10.0 times (2.00 ms to 20.0 ms) in stock Erlang and 1.10 times (2.00 ms to 2.20 "
          "ms) in s_groups", "9.09 times as long",
          "s_groups are faster from 100 nodes on; up to 20 they are equal"]},
        {"with pg", confirmed,
         Modes([{100, 20}], [{100, 2}]) ++ [load(pg, 10, 1, 0.1), load(pg, 100, 1, 0.1)],
         ["With pg, which gives no unique names, it changed 1.00 times"]},
        {"s_groups steep", refuted, Modes([{100, 20}], [{100, 18}]), []},
        {"stock flat", refuted, Modes([{100, 3}], [{100, 2}]), ["At no size are s_groups faster"]},
        {"stock faster", refuted, Modes([{100, 20}], [{100, 40}]), []},
        {"between", not_shown, Modes([{100, 12}], [{100, 2}]), []},
        {"s_groups between", not_shown, Modes([{100, 20}], [{100, 5}]), []},
        {"a fourfold range is clear", confirmed, Modes([{40, 8}], [{40, 2}]),
         ["flat is up to 1.52 times, steep is over 3.50"]},
        {"a small range", not_shown, Modes([{20, 20}], [{20, 2}]), ["too close"]},
        {"stock alone", not_shown, [load(stock, 10, 1, 2), load(stock, 100, 1, 20)], []},
        %% A point over the limit of processor use is shown, but not judged.
        {"up to where there was processor", confirmed, Modes([{100, 20}], [{100, 2}]) ++ [
            load(stock, 200, 1, 500, #{cpu_pct => 90}), load(sd, 200, 1, 50)
        ], ["From 10 to 100"]},
        {"nothing", not_shown, [], []}
    ]).

c4_test_() ->
    Both = fun(Of) -> lists:append([[orbit(stock, N, A), orbit(sd, N, B)] || {N, A, B} <- Of]) end,
    Twice = fun(Points) ->
        Points ++ [P#{params := (maps:get(params, P))#{<<"run">> := 2}} || P <- Points]
    end,
    Found = fun(Size, Points) ->
        [P#{params := (maps:get(params, P))#{<<"generators">> => <<"g1">>, <<"size">> => 100},
            metrics := (maps:get(metrics, P))#{<<"size">> => Size}} || P <- Points]
    end,
    verdicts(sderl_claim_c4, [
        {"a run is wrong", not_shown,
         Found(7, Twice(Both([{1, 50, 60}, {80, 10, 9}]))) ++ Found(8, [orbit(sd, 80, 9)]),
         ["7 and 8 elements"]},
        {"as published", confirmed,
         Twice(Both([{1, 50, 60}, {40, 9, 12}, {80, 10, 9}, {100, 12, 8}])),
         ["Stock Erlang is fastest on 40 nodes (9.00 s)",
          "from 80 nodes on s_groups are the faster ones", "at 100 nodes by 1.50 times",
          "as the formulas say or fewer",
          "at 100 with 19 against 100"]},
        {"too many links", refuted,
         Both([{1, 50, 60}, {40, 9, 12}]) ++
         [orbit(stock, 100, 12), orbit(stock, 50, 9, 51), orbit(sd, 100, 8)],
         ["on 50 nodes more than the formulas say"]},
        {"stock is ahead for good", refuted, Both([{1, 50, 60}, {80, 9, 12}, {120, 9, 13}]),
         ["do not cross"]},
        {"stock is ahead, and less so", not_shown, Both([{1, 50, 90}, {80, 9, 14}, {120, 9, 13}]),
         ["takes 1.44 times as long", "fewer, 1.56 times or more"]},
        {"too few nodes", not_shown, Both([{1, 5, 6}, {20, 5, 8}]), ["do not cross at this scale"]},
        {"one run of each", not_shown, Both([{1, 50, 60}, {80, 10, 9}]), ["in one run of each"]},
        {"s_groups are ahead everywhere", not_shown, Twice(Both([{1, 5, 4}, {20, 5, 3}])),
         ["do not cross; at 20 nodes by 1.67 times"]},
        {"nearly the same", not_shown, Twice(Both([{1, 50, 60}, {80, 10, 9.8}])), ["too near"]},
        {"runs overlap", not_shown, Both([{1, 5, 6}, {20, 5, 4}, {20, 4, 4}]), ["or overlaps"]},
        {"nothing", not_shown, [], []}
    ]).

c5_test_() ->
    %% One point of each instance with each number of colonies.
    Of = fun(Instances, Excess) ->
        [smp(I, C, E + I / 100) || I <- lists:seq(1, Instances), {C, E} <- Excess]
    end,
    verdicts(sderl_claim_c5, [
        {"as published", confirmed, Of(4, [{1, 8}, {16, 5}, {256, 1}]),
         ["On 4 instances", "8.00 % with 1", "1.00 % with 256", "falls by 7.00"]},
        {"rises", refuted, Of(4, [{1, 3}, {16, 5}]), ["It rises"]},
        {"does not fall", refuted, Of(8, [{1, 3}, {16, 3}]), ["It does not fall"]},
        {"does not fall, of few", not_shown, Of(4, [{1, 3}, {16, 3}]), ["contains 0"]},
        {"instances differ", not_shown,
         [smp(I, C, E)
          || {I, {A, B}} <- [{1, {9, 1}}, {2, {1, 3}}, {3, {2, 4}}, {4, {3, 2}}],
             {C, E} <- [{1, A}, {16, B}]], ["contains 0"]},
        %% The fall is over twice the standard error, which is not enough with three instances.
        {"three instances", not_shown,
         [smp(I, C, E) || {I, B} <- [{1, 2.5}, {2, 1}, {3, 4}], {C, E} <- [{1, 5}, {16, B}]],
         ["falls by 2.50 (95 % interval -1.22 to 6.22)"]},
        {"a run failed", not_shown, Of(4, [{1, 8}, {16, 1}]) ++ failed(Of(1, [{256, 1}])),
         ["But 1 run of these could not be measured (stuck)"]},
        {"a run failed at first", confirmed, failed(Of(1, [{1, 8}])) ++ Of(4, [{1, 8}, {16, 1}]),
         []},
        {"two instances", not_shown, Of(2, [{1, 8}, {16, 1}]), ["too few"]},
        {"a narrow range", not_shown, Of(4, [{1, 8}, {2, 1}]), ["too few"]},
        {"up and down", not_shown, Of(4, [{1, 8}, {4, 2}, {16, 4}]),
         ["Between two numbers of colonies it rises"]},
        %% An instance without a point of the most colonies does not count.
        {"the same instances", confirmed, Of(4, [{1, 8}, {16, 1}]) ++ [smp(9, 1, 0)],
         ["On 4 instances"]},
        {"one number of colonies", not_shown, Of(4, [{1, 8}]),
         ["No instance was measured with two"]},
        {"nothing", not_shown, [], []}
    ]).

%% Without known optima, the runs are compared with the least cost of all runs.
unknown_optimum_test() ->
    Points = [P#{metrics := (maps:get(metrics, P))#{<<"best_known">> := null}}
              || I <- [1, 2, 3], {C, E} <- [{1, 8}, {16, 2}], P <- [smp(I, C, E)]],
    #{curve := [{1, First}, {16, Last}], known := 0} = sderl_claim_aco:excess(Points, final),
    [?assert(abs(E - 100 * 60 / 1020) < 1.0e-6) || {_, E} <- First],
    ?assertEqual([0.0, 0.0, 0.0], [E || {_, E} <- Last]),
    #{notes := [Note | _]} = sderl_claim_c5:page(Points),
    ?assertNotEqual(nomatch, string:find(Note, "For 3 of the 3 instances no optimum is known")),
    #{notes := [Known | _]} = sderl_claim_c5:page([smp(1, 1, 1), smp(1, 2, 1)]),
    ?assertNotEqual(nomatch, string:find(Known, "their known optimum")).

c6_test_() ->
    Four = fun(N, Gr, Tl, Ml, Sr) ->
        [aco(V, N,
             #{cpu_us_per_op => Cpu, seconds => case Cpu of undefined -> 1.0; _ -> Cpu / 10 end})
         || {V, Cpu} <- [{gr, Gr}, {tl, Tl}, {ml, Ml}, {sr, Sr}]]
    end,
    Few = Four(5, 110, 100, 100, 100),
    verdicts(sderl_claim_c6, [
        {"as published", confirmed, again(Few ++ Four(47, 300, 110, 108, 105)),
         ["in trees of 47 nodes", "GR 300, TL 110, ML 108, SR 105"]},
        {"one run", not_shown, Few ++ Four(47, 300, 110, 108, 105), ["one run"]},
        {"a larger one failed", not_shown,
         again(Few ++ Four(47, 300, 110, 108, 105)) ++ failed([aco(sr, 95, #{})]), ["stuck"]},
        {"a longer one failed", confirmed, again(Few ++ Four(47, 300, 110, 108, 105)) ++
                                           failed([aco(sr, 47, #{global_iterations => 200}, #{})]),
         []},
        {"fails at the smallest size in the second run", not_shown,
         again(Four(47, 300, 110, 108, 105)) ++ Few ++ failed([again(2, P) || P <- Few]), []},
        {"no processor time", not_shown, again(Few ++ Four(23, undefined, 100, 100, undefined) ++
                                               Four(47, 300, 110, 108, undefined)),
         ["was not measured"]},
        {"no processor time of the smallest", not_shown,
         again(Four(5, undefined, 1, 1, undefined) ++ Four(47, 300, 110, 108, 105)), []},
        {"one run of the smallest", not_shown, Few ++ again(Four(47, 300, 110, 108, 105)), []},
        {"grows by less than what is noise", not_shown,
         again(Four(5, 280, 100, 100, 100) ++ Four(47, 300, 110, 108, 105)),
         ["GR takes 2.80 times the processor time of SR with 2 colonies and 2.86 times with 23"]},
        {"the fastest does not matter", confirmed, again(Few ++ [P#{
            metrics := M#{<<"seconds">> := 1.0}
        } || #{metrics := M} = P <- Four(47, 300, 110, 108, 105)]), []},
        %% The largest tree has another degree. The growth is that among trees of one degree.
        {"trees of two degrees", confirmed,
         again(Few ++ Four(47, 300, 110, 108, 105) ++
               [P#{params := Q#{<<"degree">> := 15}}
                || #{params := Q} = P <- Four(191, 300, 110, 108, 105)]),
         ["With 95 colonies", "In trees of degree 2 GR takes 1.10 times the processor time of SR "
                              "with 2 colonies and 2.86 times with 23"]},
        {"few nodes", not_shown, again(Few ++ Four(11, 300, 110, 108, 105)), ["too few nodes"]},
        {"no more than on few nodes", not_shown,
         again(Four(5, 300, 100, 100, 100) ++ Four(47, 300, 110, 108, 105)),
         ["not the published order"]},
        {"s_groups cost", not_shown, again(Few ++ Four(47, 300, 110, 108, 150)), []},
        {"s_groups cost on many nodes", refuted, again(Few ++ Four(191, 300, 110, 108, 150)),
         ["another one"]},
        {"global costs least on many nodes", refuted, again(Few ++ Four(191, 90, 110, 108, 105)),
         ["another one"]},
        {"runs overlap", not_shown, Few ++ Four(47, 300, 110, 108, 105) ++
                                    [again(2, P) || P <- Few ++ Four(47, 100, 110, 108, 105)], []},
        {"three of them", not_shown, again([
            P
         || #{params := #{<<"variant">> := V}} = P <- Four(47, 300, 110, 108, 105), V =/= <<"tl">>
        ]), ["no number of colonies"]},
        {"nothing", not_shown, [], []}
    ]).

c7_test_() ->
    Three = fun(N, Gr, Ml, Sr) ->
        [aco(V, N, #{packets => P}) || {V, P} <- [{gr, Gr}, {ml, Ml}, {sr, Sr}]]
    end,
    verdicts(sderl_claim_c7, [
        {"as published", confirmed,
         again(Three(5, 12, 11, 10) ++ Three(47, 3000, 2000, 1000) ++ Three(95, 9000, 5000, 2000)),
         ["With 47 nodes SR sends 1,000, ML 2,000 (2.00 times as many), GR 3,000 (3.00 times)",
          "With 95 nodes SR sends 2,000"]},
        {"messages", confirmed, again([aco(V, 47, #{packets => undefined, messages => P})
                                       || {V, P} <- [{gr, 30}, {ml, 20}, {sr, 10}]]),
         ["does not tell of packets"]},
        {"few nodes", not_shown, again(Three(11, 3000, 2000, 1000)), ["too few nodes"]},
        {"one run", not_shown, Three(47, 3000, 2000, 1000), ["one run"]},
        {"a larger one failed", not_shown,
         again(Three(47, 3000, 2000, 1000)) ++ failed([aco(sr, 95, #{})]), ["stuck"]},
        {"one of TL failed", confirmed,
         again(Three(47, 3000, 2000, 1000)) ++ failed([aco(tl, 95, #{})]), []},
        {"near", not_shown, again(Three(47, 1050, 1020, 1000)), ["not clearly"]},
        {"the other way round", refuted, again(Three(145, 3000, 1000, 2000)), ["another one"]},
        {"the other way round in one run", not_shown, Three(145, 3000, 1000, 2000), ["one run"]},
        {"the other way round on 100", not_shown, again(Three(100, 3000, 1000, 2000)),
         ["there the nodes were 145"]},
        {"the other way round on few", not_shown, again(Three(23, 3000, 1000, 2000)), []},
        {"runs overlap", not_shown,
         Three(47, 3000, 2000, 1000) ++ [again(2, P) || P <- Three(47, 1900, 2100, 1000)], []},
        {"two of them", not_shown, tl(Three(47, 3000, 2000, 1000)), []},
        {"nothing", not_shown, [], []}
    ]).

c8_test_() ->
    Both = fun(Of) -> lists:append([[im(rd, N, A), im(rsd, N, B)] || {N, A, B} <- Of]) end,
    verdicts(sderl_claim_c8, [
        {"as published", confirmed, Both([{3, 600, 605}, {8, 1600, 1590}, {16, 3200, 3100}]),
         ["differ by 3.13 % at most (with 16 servers)",
          "RD delivers 3,200 messages a minute and RSD 3,100"]},
        {"apart", refuted, again(Both([{3, 600, 600}, {16, 3200, 2000}])), ["They are apart"]},
        {"apart in one run", not_shown, Both([{3, 600, 600}, {16, 3200, 2000}]), []},
        {"between", not_shown, again(Both([{3, 600, 600}, {16, 3200, 2900}])), ["neither"]},
        {"one failed", not_shown, Both([{3, 600, 605}, {12, 2400, 2400}]) ++ [im(rd, 16, 3200)] ++
                                  failed([im(rsd, 16, 3200)]),
         ["1 run of these could not be measured (stuck)"]},
        {"one with kills failed", confirmed, Both([{3, 600, 605}, {12, 2400, 2400}]) ++ failed(
            [im(rsd, 16, 3200, #{chaos => #{every_ms => 100, classes => all}}, #{})]
        ), []},
        {"nothing delivered", not_shown, Both([{3, 600, 605}, {8, 0, 0}, {12, 2400, 2400}]),
         ["With 8 servers a run delivered nothing"]},
        {"nothing at all", not_shown, Both([{3, 0, 0}]), ["Nothing was delivered with 3 servers"]},
        {"alike, and no growth", not_shown, Both([{3, 600, 600}, {16, 2500, 2500}]),
         ["does not grow"]},
        {"a small range", not_shown, Both([{3, 600, 600}, {8, 1600, 1600}]), ["too small"]},
        {"with kills does not count", not_shown,
         [im(rd, 3, 600), im(rsd, 3, 600, #{chaos => #{every_ms => 100, classes => all}}, #{})],
         ["no number of servers"]},
        {"nothing", not_shown, [], []}
    ]).

c9_test_() ->
    Chaos = fun(Classes, Ms) -> #{routers => 2, chaos => #{classes => Classes, every_ms => Ms}} end,
    Killed = fun(Mode, Delivered, More) ->
        [im(Mode, 12, Delivered, Chaos(C, Ms),
            maps:merge(#{kills => 8, lost_conversations => 1, killed_messages => 2}, More))
         || {C, Ms} <- [{all, 1000}, {databases, 200}]]
    end,
    Plain = [im(Mode, 12, 1000, #{routers => 2}, #{}) || Mode <- [rd, rsd]],
    Fine = Plain ++ Killed(rd, 990, #{}) ++ Killed(rsd, 980, #{}),
    verdicts(sderl_claim_c9, [
        {"as published", confirmed, Fine,
         ["32 kills", "98.0 % of what is delivered", "RSD, a kill of anything every 1 s",
          "names missing or left over: 0", "took 4 conversations and 8 messages with them"]},
        {"others end, too", refuted,
         Plain ++ Killed(rd, 990, #{}) ++ Killed(rsd, 990, #{broken_conversations_not_killed => 1}),
         ["not killed 2 ended and 0 messages were lost"]},
        {"messages are lost", refuted,
         Plain ++ Killed(rd, 990, #{}) ++ Killed(rsd, 990, #{lost_messages => 1}),
         ["2 messages were lost;"]},
        {"a name is missing", refuted,
         Plain ++ Killed(rd, 990, #{}) ++ Killed(rsd, 990, #{names_missing => 1}), []},
        {"a name is left", refuted,
         Plain ++ Killed(rd, 990, #{names_left => 1}) ++ Killed(rsd, 990, #{}), []},
        {"much less", refuted, again(Plain ++ Killed(rd, 990, #{}) ++ Killed(rsd, 700, #{})), []},
        {"much less in one run", not_shown, Plain ++ Killed(rd, 990, #{}) ++ Killed(rsd, 700, #{}),
         ["in each of several runs"]},
        {"some less", not_shown, Plain ++ Killed(rd, 990, #{}) ++ Killed(rsd, 900, #{}),
         ["does not confirm"]},
        {"few kills", not_shown,
         Plain ++ Killed(rd, 990, #{kills => 1}) ++ Killed(rsd, 990, #{kills => 1}),
         ["too few kills"]},
        {"few kills in one mode", not_shown,
         Plain ++ Killed(rd, 990, #{kills => 100}) ++ Killed(rsd, 990, #{kills => 1}),
         ["too few kills"]},
        [{"not back: " ++ atom_to_list(Key), not_shown,
          Plain ++ Killed(rd, 990, #{Key => 1}) ++ Killed(rsd, 990, #{}),
          [atom_to_list(Key) ++ " 2"]}
         || Key <- [not_back, clients_left, rows_left, processes_left]],
        [{"not known: " ++ atom_to_list(Key), not_shown,
          Plain ++ Killed(rd, 990, #{Key => undefined}) ++ Killed(rsd, 990, #{}),
          ["Not known of every run: " ++ atom_to_list(Key)]}
         || Key <- [broken_conversations_not_killed, lost_messages, names_missing, names_left,
                    not_back, clients_left, rows_left, processes_left]],
        {"one mode", not_shown, Plain ++ Killed(rd, 990, #{}), ["Nothing was measured with RSD"]},
        {"no comparison", not_shown, Killed(rd, 990, #{}) ++ Killed(rsd, 990, #{}),
         ["neither with RD and RSD"]},
        {"a run that did not end", refuted,
         Fine ++ [point(im, (maps:get(params, lists:last(Plain)))#{
             <<"chaos">> => #{classes => databases, every_ms => 100}
         }, #{failed => <<"stuck">>, failed_in => run})],
         ["1 run with kills did not end in order (stuck)"]},
        {"failed in the run", refuted,
         Plain ++ Killed(rd, 990, #{}) ++ failed(run, Killed(rsd, 990, #{})),
         ["2 runs with kills did not end in order (stuck)"]},
        {"failed in the run, then went well", confirmed, failed(run, Killed(rsd, 990, #{})) ++ Fine,
         []},
        {"did not start", not_shown, Fine ++ failed([again(2, P) || P <- Killed(rsd, 990, #{})]),
         ["2 runs of these could not be measured (stuck)"]},
        {"did not start without kills", not_shown, Fine ++ failed([again(2, P) || P <- Plain]),
         ["could not be measured"]},
        {"nothing", not_shown, [], []}
    ]).

c10_test_() ->
    Both = fun(V, Seconds, More) -> [
        aco(V, 23, #{seconds => 10.0}),
        aco(V, 23, #{chaos => #{every_ms => 1000}},
            maps:merge(#{seconds => Seconds, kills => 200,
                         recovery_us => #{p50 => 300, p99 => 900, max => 2000}}, More))
    ] end,
    Failed = fun(V) ->
        point(aco, maps:get(params, lists:last(Both(V, 1, #{}))),
              #{failed => <<"stuck">>, failed_in => run})
    end,
    verdicts(sderl_claim_c10, [
        {"as published", confirmed, Both(gr, 10.2, #{}) ++ Both(sr, 10.1, #{}),
         ["GR on 23 nodes: 10.2 s with 200 kills, 10.0 s without, 1.02 times; a process is back in "
          "0.30 ms (p99 0.90, most 2.00)"]},
        {"a name is left", refuted, Both(gr, 10.2, #{}) ++ Both(sr, 10.1, #{names_left => 1}),
         ["Names left over: 1"]},
        {"does not finish", refuted, Both(gr, 10.2, #{}) ++ [hd(Both(sr, 10, #{})), Failed(sr)],
         ["A run of SR with kills did not finish: stuck"]},
        {"did not start", not_shown, Both(gr, 10.2, #{}) ++ Both(sr, 10.1, #{}) ++
                                     failed([again(2, P) || P <- Both(sr, 10.1, #{})]),
         ["2 runs of these could not be measured (stuck)"]},
        {"did not finish at first", confirmed,
         [Failed(sr)] ++ Both(gr, 10.2, #{}) ++ Both(sr, 10.1, #{}), []},
        {"is not back", not_shown, Both(gr, 10.2, #{}) ++ Both(sr, 10.1, #{kills_not_back => 2}),
         ["2 of the killed processes were not back"]},
        [{"not known: " ++ atom_to_list(Key), not_shown,
          Both(gr, 10.2, #{}) ++ Both(sr, 10.1, #{Key => undefined}),
          ["Not known of every run: " ++ atom_to_list(Key)]}
         || Key <- [names_left, kills_not_back, best_cost]],
        {"nor does it without kills", not_shown, Both(gr, 10.2, #{}) ++ [Failed(sr)], ["Not both"]},
        {"a cost", refuted, again(Both(gr, 10.2, #{}) ++ Both(sr, 20.0, #{})), ["That is a cost"]},
        {"a cost in one run", not_shown, Both(gr, 10.2, #{}) ++ Both(sr, 20.0, #{}),
         ["does not confirm"]},
        {"few kills", not_shown, Both(gr, 10.2, #{kills => 1}) ++ Both(sr, 10.1, #{}),
         ["too few kills"]},
        {"one variant", not_shown, Both(gr, 10.2, #{}), ["Not both"]},
        {"nothing", not_shown, [], []}
    ]).

c11_test_() ->
    At = fun(Kind, Nodes, Seconds) ->
        point(deploy, #{kind => Kind, nodes => Nodes, hosts => 4, run => 1},
              #{deploy_s => Seconds, nodes_per_s => Nodes / Seconds})
    end,
    Real = [At(folders, 10, 8.0), At(folders, 100, 70.0)],
    Simulated = [At(simulated, 1008, 27.0), At(simulated, 10_008, 33.0)],
    Steep = [At(folders, 10, 8.0), At(folders, 100, 160.0)],
    verdicts(sderl_claim_c11, [
        {"as published", confirmed, Real ++ Simulated,
         ["Real nodes: 8.00 s for 10, 70.0 s for 100, 1.43 a second, 0.88 times what is linear",
          "Simulated nodes: 27.0 s for 1008, 33.0 s for 10008"]},
        {"more than linear", refuted, again(Steep) ++ Simulated, ["That is more than linear"]},
        {"more than linear once", not_shown, Steep ++ Simulated, ["is linear"]},
        {"a little more", not_shown, [At(folders, 10, 8.0), At(folders, 100, 105.0)] ++ Simulated,
         ["Up to 1.2 times is linear"]},
        {"simulated ones are more", not_shown,
         Real ++ [At(simulated, 1008, 27.0), At(simulated, 10_008, 400.0)], ["is linear"]},
        {"a small range", not_shown, [At(folders, 10, 8.0), At(folders, 20, 15.0)] ++ Simulated,
         ["over a fourfold number"]},
        {"one run failed", not_shown,
         Real ++ Simulated ++ failed([At(folders, 50, 40.0)]), ["stuck"]},
        {"real ones alone", not_shown, Real, ["both are needed"]},
        {"nothing", not_shown, [], []}
    ]).

c12_test_() ->
    Pair = fun(Run, Aco, Im) ->
        [again(Run, P)
         || P <- [
             aco(sr, 23, #{}),
             aco(sr, 23, #{monitoring => on}, #{cpu_us_per_op_in_rounds => 90 + 0.9 * Aco}),
             im(rsd, 12, 1000, #{routers => 2}, #{}),
             im(rsd, 12, 1000, #{routers => 2, monitoring => on}, #{cpu_us_per_op => 200 + 2 * Im})
         ]]
    end,
    Pairs = fun(Of) ->
        lists:append([Pair(Run, Aco, Im) || {Run, {Aco, Im}} <- lists:enumerate(Of)])
    end,
    Small = [{1.0, 0.5}, {1.1, 0.6}, {1.0, 0.4}, {1.05, 0.5}, {1.0, 0.5}],
    verdicts(sderl_claim_c12, [
        {"as published", confirmed, Pairs(Small),
         ["Ant colonies (SR) on 23 nodes: with it the processor time of an operation changes by "
          "1.03 %", "5 pairs of runs from 1.00 to 1.10 %",
          "Messenger (RSD) on 12 servers: with it the processor time of an operation changes by "
          "0.50 %"]},
        {"a watched run failed", not_shown, Pairs(Small) ++ failed(
            [again(6, aco(sr, 23, #{monitoring => on}, #{}))]
        ), ["stuck"]},
        {"the other one failed", not_shown, Pairs(Small) ++ failed(
            [again(6, im(rsd, 12, 1000, #{routers => 2}, #{}))]
        ), ["stuck"]},
        {"one of no pair failed", confirmed, Pairs(Small) ++
                                             failed([im(rsd, 3, 1000), aco(sr, 95, #{})]), []},
        {"more", refuted, Pairs([{1.0, 3}, {1.1, 3.1}, {1.0, 2.9}, {1.0, 3}, {1.0, 3}]), []},
        {"the spread is larger", not_shown,
         Pairs([{1.0, 4}, {-1.1, 0}, {1.0, -3}, {1.0, 4}, {1.0, -3}]),
         ["too large to decide"]},
        {"four pairs", not_shown, Pairs(lists:sublist(Small, 4)), ["need 5 pairs"]},
        {"one program", not_shown,
         [P || #{experiment := <<"aco">>} = P <- Pairs(Small)],
         ["both programs"]},
        {"runs that belong to others", not_shown,
         [aco(sr, 23, #{}), again(2, aco(sr, 23, #{monitoring => on}, #{}))], ["No program"]},
        {"nothing", not_shown, [], []}
    ]).

%% ---------------------------------------------------------------- pages

%% With any points a page is complete, and can be written as JSON.
pages_test_() ->
    All = [load(M, N, P, 2) || M <- [stock, sd, pg], N <- [10, 50, 100], P <- [1, 10]] ++
        lists:append([[orbit(stock, N, 5), orbit(sd, N, 6)] || N <- [1, 20]]) ++
        [smp(I, C, 1) || I <- [1, 2], C <- [1, 4]] ++
        [aco(V, N, Asked, #{})
         || V <- [gr, tl, ml, sr], N <- [5, 23],
            Asked <- [#{}, #{chaos => #{every_ms => 1000}}, #{monitoring => on}]] ++
        [im(M, N, 100, Asked#{routers => R}, #{})
         || M <- [rd, rsd], N <- [3, 6], R <- [1, 2], C <- [all, databases], Ms <- [100, 500],
            Asked <- [#{}, #{chaos => #{every_ms => Ms, classes => C}}, #{monitoring => on}]],
    Failed = [point(aco, #{variant => sr, nodes => 23, chaos => #{every_ms => 1000},
                           monitoring => off, instance => #{n => 40}, run => 1},
                    #{failed => <<"no">>}),
              point(im, #{mode => rd, servers => 3, chaos => #{every_ms => 1000, classes => all},
                          monitoring => off, run => 1}, #{failed => <<"no">>}),
              point(debench,
                    #{mode => stock, nodes => 10, clusters => 10, global_pct => 1, run => 1},
                    #{failed => <<"no">>})],
    [
        {binary_to_list(sderl_claim:id(Module)), fun() ->
            Page = #{id := Id, plots := Plots, tables := Tables} =
                sderl_claim:page(Module, Points, <<>>),
            ?assertEqual(sderl_claim:id(Module), Id),
            #{<<"verdict">> := _} = json:decode(iolist_to_binary(json:encode(Page))),
            [?assertEqual(length(Header), length(Row))
             || #{header := Header, rows := Rows} <- Tables, Row <- Rows],
            [?assert(L =< Y andalso Y =< H)
             || #{series := Series} <- Plots, #{points := Of} <- Series,
                #{y := Y, low := L, high := H} <- Of],
            [?assertEqual([X || #{x := X} <- Of], lists:usort([X || #{x := X} <- Of]))
             || #{series := Series} <- Plots, #{points := Of} <- Series]
        end}
     || Module <- sderl_claim:all(), Points <- [[], Failed, All, tl(All), Failed ++ All, [hd(All)]]
    ].

named_test() ->
    ?assertEqual({ok, sderl_claim_c1}, sderl_claim:named("c1")),
    ?assertEqual({error, unbuilt}, sderl_claim:named("C20")),
    [?assertEqual({error, unknown}, sderl_claim:named(Word))
     || Word <- ["C0", "C21", "C", "1", "", "C1x", "é"]].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_tests).
-moduledoc "Verdicts of points that were made up.".
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- made-up points

point(Experiment, Params, Metrics) ->
    Plain = json:decode(sderl_bench_output:line(sderl_bench_output:result(Experiment, Params, Metrics, <<>>))),
    #{experiment => maps:get(<<"experiment">>, Plain), params => maps:get(<<"params">>, Plain), metrics => maps:get(<<"metrics">>, Plain)}.

%% p50 of global operations in ms.
load(Mode, Nodes, Pct, Ms) -> load(Mode, Nodes, Pct, Ms, #{}).

load(Mode, Nodes, Pct, Ms, More) ->
    Class = fun(P50) -> #{ops => 400, errors => 0, latency_us => #{p50 => P50, p95 => 2 * P50, p99 => 3 * P50}} end,
    Default = #{
        global => Class(1000 * Ms), p2p => Class(200), local => Class(2), kinds => #{global_register => Class(1000 * Ms)},
        global_done_pct => 100.0, cpu_pct => 20, cpu_us_per_op => 100, links_per_node_max => Nodes - 1, errors => 0,
        offered_per_s => 1500, messages_per_op => 3, bytes_per_op => 400
    },
    Changed = maps:map(fun
        (Key, P50) when Key =:= p2p; Key =:= local -> Class(P50);
        (_, Value) -> Value
    end, More),
    point(debench, #{mode => Mode, nodes => Nodes, clusters => 100 div Nodes, global_pct => Pct, run => 1}, maps:merge(Default, Changed)).

orbit(stock, Nodes, Seconds) -> orbit(stock, Nodes, Seconds, Nodes);
orbit(sd, Nodes, Seconds) -> orbit(sd, Nodes, Seconds, max(1, Nodes div 10)).

orbit(stock, Nodes, Seconds, Links) ->
    point(orbit, #{mode => stock, nodes => Nodes, run => 1}, #{seconds => Seconds, links_per_node_max => Links, messages => 10, bytes => 100});
orbit(sd, Nodes, Seconds, Groups) ->
    Size = Nodes div Groups,
    point(orbit, #{mode => sd, routing => own, groups => Groups, nodes => Nodes, run => 1}, #{
        seconds => Seconds, links_per_node_max => max(Groups, Size + Groups - 1), links_master => Groups, links_submaster_max => Size + Groups - 1,
        links_worker_max => Size - 1, messages => 30, bytes => 300
    }).

%% ---------------------------------------------------------------- verdicts

verdicts(Module, Cases) ->
    [{Name, fun() ->
        {Verdict, Text} = Module:verdict(Points),
        ?assertEqual({Is, Text}, {Verdict, Text}),
        [?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text}) || Words <- Said]
    end} || {Name, Is, Points, Said} <- Cases].

c1_test_() ->
    Curve = fun(Pct, Of) -> [load(stock, N, Pct, Ms) || {N, Ms} <- Of] end,
    Slow = Curve(1, [{10, 2}, {20, 4}, {50, 10}, {100, 50}]),
    verdicts(sderl_claim_c1, [
        {"sooner", confirmed, Curve(10, [{10, 2}, {20, 5}, {50, 400}, {100, 9000}]) ++ Slow,
         ["1 % of global operations bent at 100 nodes", "10 % of global operations bent at 50 nodes"]},
        {"one share bends, the other not", confirmed, Curve(10, [{10, 2}, {50, 400}]) ++ Curve(1, [{10, 2}, {50, 9}]), ["1 % of global operations did not bend up to 50 nodes"]},
        {"less is done", confirmed, [load(stock, 10, 10, 2), load(stock, 50, 10, 4, #{global_done_pct => 90})] ++ Curve(1, [{10, 2}, {50, 9}]), ["at 50 p50 2.00 times that with 10, 90 % of them done"]},
        {"later", refuted, Curve(10, [{10, 2}, {20, 5}, {50, 9}, {100, 19}]) ++ Curve(1, [{10, 2}, {20, 5}, {50, 90}, {100, 190}]), ["bent later"]},
        {"flat", refuted, Curve(10, [{10, 2}, {100, 3}]) ++ Curve(1, [{10, 2}, {100, 3}]), ["Nothing bent"]},
        {"both at the same", not_shown, Curve(10, [{10, 2}, {100, 30}]) ++ Curve(1, [{10, 2}, {100, 30}]), ["not seen at this scale"]},
        {"a small range", not_shown, Curve(10, [{10, 2}, {40, 6}]) ++ Curve(1, [{10, 2}, {40, 6}]), []},
        %% The share that was measured at the ends only is not said to bend later for it.
        {"few sizes", confirmed, Curve(10, [{10, 2}, {50, 100}, {100, 500}]) ++ Curve(1, [{10, 2}, {50, 9}, {100, 19}]) ++ Curve(0.1, [{10, 2}, {100, 19}]), []},
        {"nothing", not_shown, [], []},
        {"one point", not_shown, [load(stock, 10, 1, 2)], []}
    ]).

c2_test_() ->
    Two = fun(Ms, More) -> [load(stock, 10, 1, 2), load(stock, 100, 1, Ms, More)] end,
    verdicts(sderl_claim_c2, [
        {"as published", confirmed, Two(20, #{p2p => 300, local => 3}), ["From 10 to 100 nodes", "global operations grew 10.0 times (2.00 ms to 20.0 ms)", "1.50 times"]},
        {"global flat", refuted, Two(3, #{}), []},
        {"point to point steep", refuted, Two(20, #{p2p => 1000}), ["point to point 5.00 times"]},
        {"between", not_shown, Two(6, #{}), []},
        {"point to point between", not_shown, Two(20, #{p2p => 500}), []},
        {"a fourfold range is clear", confirmed, [load(stock, 10, 1, 2), load(stock, 40, 1, 8)], ["steep is over 2.30"]},
        {"a small range", not_shown, [load(stock, 10, 1, 2), load(stock, 20, 1, 20)], ["too close"]},
        {"short of processor", not_shown, Two(20, #{cpu_pct => 41}), ["no two sizes"]},
        {"few operations", not_shown, Two(20, #{global => #{ops => 99, latency_us => #{p50 => 20000}}}), ["no two sizes"]},
        {"many failed", not_shown, Two(20, #{global_done_pct => 94}), ["no two sizes"]},
        {"nothing", not_shown, [], []}
    ]).

c3_test_() ->
    Modes = fun(Stock, Sd) ->
        [load(stock, 10, 1, 2)] ++ [load(stock, N, 1, Ms) || {N, Ms} <- Stock] ++ [load(sd, 10, 1, 2) | [load(sd, N, 1, Ms) || {N, Ms} <- Sd]]
    end,
    verdicts(sderl_claim_c3, [
        {"as published", confirmed, Modes([{20, 2.5}, {100, 20}], [{20, 2}, {100, 2.2}]),
         ["grew 10.0 times (2.00 ms to 20.0 ms) in stock Erlang and 1.10 times (2.00 ms to 2.20 ms) in s_groups", "9.09 times as long",
          "s_groups are faster from 100 nodes on; up to 20 they are equal"]},
        {"with pg", confirmed, Modes([{100, 20}], [{100, 2}]) ++ [load(pg, 10, 1, 0.1), load(pg, 100, 1, 0.1)], ["With pg, which gives no unique names, it changed 1.00 times"]},
        {"s_groups steep", refuted, Modes([{100, 20}], [{100, 18}]), []},
        {"stock flat", refuted, Modes([{100, 3}], [{100, 2}]), ["At no size are s_groups faster"]},
        {"stock faster", refuted, Modes([{100, 20}], [{100, 40}]), []},
        {"between", not_shown, Modes([{100, 12}], [{100, 2}]), []},
        {"s_groups between", not_shown, Modes([{100, 20}], [{100, 5}]), []},
        {"a fourfold range is clear", confirmed, Modes([{40, 8}], [{40, 2}]), ["flat is up to 1.52 times, steep is over 3.50"]},
        {"a small range", not_shown, Modes([{20, 20}], [{20, 2}]), ["too close"]},
        {"stock alone", not_shown, [load(stock, 10, 1, 2), load(stock, 100, 1, 20)], []},
        %% Over the limit of processor: shown, not judged.
        {"up to where there was processor", confirmed, Modes([{100, 20}], [{100, 2}]) ++ [load(stock, 200, 1, 500, #{cpu_pct => 90}), load(sd, 200, 1, 50)], ["From 10 to 100"]},
        {"nothing", not_shown, [], []}
    ]).

c4_test_() ->
    Both = fun(Of) -> lists:append([[orbit(stock, N, A), orbit(sd, N, B)] || {N, A, B} <- Of]) end,
    Twice = fun(Points) -> Points ++ [P#{params := (maps:get(params, P))#{<<"run">> := 2}} || P <- Points] end,
    Found = fun(Size, Points) -> [P#{params := (maps:get(params, P))#{<<"generators">> => <<"g1">>, <<"size">> => 100},
                                     metrics := (maps:get(metrics, P))#{<<"size">> => Size}} || P <- Points] end,
    verdicts(sderl_claim_c4, [
        {"a run is wrong", not_shown, Found(7, Twice(Both([{1, 50, 60}, {80, 10, 9}]))) ++ Found(8, [orbit(sd, 80, 9)]), ["7 and 8 elements"]},
        {"as published", confirmed, Twice(Both([{1, 50, 60}, {40, 9, 12}, {80, 10, 9}, {100, 12, 8}])),
         ["Stock Erlang is fastest on 40 nodes (9.00 s)", "from 80 nodes on s_groups are the faster ones", "at 100 nodes by 1.50 times", "as the formulas say or fewer",
          "at 100 with 19 against 100"]},
        {"too many links", refuted, Both([{1, 50, 60}, {40, 9, 12}]) ++ [orbit(stock, 100, 12), orbit(stock, 50, 9, 51), orbit(sd, 100, 8)], ["on 50 nodes more than the formulas say"]},
        {"stock is ahead for good", refuted, Both([{1, 50, 60}, {80, 9, 12}, {120, 9, 13}]), ["do not cross"]},
        {"stock is ahead, and less so", not_shown, Both([{1, 50, 90}, {80, 9, 14}, {120, 9, 13}]), ["takes 1.44 times as long", "fewer, 1.56 times or more"]},
        {"too few nodes", not_shown, Both([{1, 5, 6}, {20, 5, 8}]), ["do not cross at this scale"]},
        {"one run of each", not_shown, Both([{1, 50, 60}, {80, 10, 9}]), ["in one run of each"]},
        {"s_groups are ahead everywhere", not_shown, Twice(Both([{1, 5, 4}, {20, 5, 3}])), ["do not cross; at 20 nodes by 1.67 times"]},
        {"nearly the same", not_shown, Twice(Both([{1, 50, 60}, {80, 10, 9.8}])), ["too near"]},
        {"runs overlap", not_shown, Both([{1, 5, 6}, {20, 5, 4}, {20, 4, 4}]), ["or overlaps"]},
        {"nothing", not_shown, [], []}
    ]).

%% ---------------------------------------------------------------- pages

%% Whatever there is, a page is whole, and JSON.
pages_test_() ->
    All = [load(M, N, P, 2) || M <- [stock, sd, pg], N <- [10, 50, 100], P <- [1, 10]] ++
        lists:append([[orbit(stock, N, 5), orbit(sd, N, 6)] || N <- [1, 20]]),
    Failed = [point(debench, #{mode => stock, nodes => 10, clusters => 10, global_pct => 1, run => 1}, #{failed => <<"no">>})],
    [
        {binary_to_list(Module:id()), fun() ->
            Page = #{id := Id, plots := Plots, tables := Tables} = Module:page(Points),
            ?assertEqual(Module:id(), Id),
            #{<<"verdict">> := _} = json:decode(iolist_to_binary(json:encode(Page))),
            [?assertEqual(length(Header), length(Row)) || #{header := Header, rows := Rows} <- Tables, Row <- Rows],
            [?assertEqual([X || #{x := X} <- Of], lists:usort([X || #{x := X} <- Of])) || #{series := Series} <- Plots, #{points := Of} <- Series]
        end}
     || Module <- sderl_claim:all(), Points <- [[], Failed, All, tl(All), Failed ++ All, [hd(All)]]
    ].

named_test() ->
    ?assertEqual({ok, sderl_claim_c1}, sderl_claim:named("c1")),
    ?assertEqual({error, unbuilt}, sderl_claim:named("C20")),
    [?assertEqual({error, unknown}, sderl_claim:named(Word)) || Word <- ["C0", "C21", "C", "1", "", "C1x", "é"]].

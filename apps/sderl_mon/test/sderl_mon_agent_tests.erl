%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_agent_tests).

%% What an agent is made of: how it watches a node, what it makes of samples, what nodes say of each
%% other.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(N, 'a@h').

%% ---------------------------------------------------------------- watching one node

%% Of the groups that a node is not in the nodes are kept, once; which groups these are is not.
known_groups_test() ->
    Known = [{{g, I}, ['b@h', 'c@h', ?N]} || I <- lists:seq(1, 1_000)],
    Facts = #{otp => ~"29", groups => [], known => Known},
    {_, W} = step({sample, sample(1, 1000, Facts)}, 20, sderl_mon_watch:new(?N, 1000)),
    ?assertMatch(#{facts := #{known := [{others, [?N, 'b@h', 'c@h']}]}}, sderl_mon_watch:report(W)),
    ?assert(erts_debug:flat_size(W) < 500).

%% Reached, told, silent, asked again, down, tried less and less often, seen by others, there again.
watch_test() ->
    {[{job, attach, 1}, {timer, _}], W1} = step(due, 0, sderl_mon_watch:new(?N, 1000)),
    ?assertEqual(none, sderl_mon_watch:report(W1)),
    {[{timer, 3000}], W2} = step({attached, 1, {ok, probe}}, 10, W1),
    ?assertNot(sderl_mon_watch:is_up(W2)),
    {[told, {timer, 3000}], W3} = step({sample, sample(1, 1000, #{})}, 20, W2),
    ?assertMatch(#{status := up, source := probe, why := <<>>}, sderl_mon_watch:report(W3)),
    {[{timer, 3000}], W4} = step({sample, sample(2, 2000, #{})}, 1020, W3),
    {[told, {job, attach, 2}, _], W5} = step(due, 4020, W4),
    ?assertMatch(#{status := unreachable, why := <<"connected, and silent for 3 s">>},
                 sderl_mon_watch:report(W5)),
    {[told, {timer, 250}], W6} = step(nodedown, 4100, W5),
    ?assertMatch(#{status := down}, sderl_mon_watch:report(W6)),
    %% It may begin anew: its counters are not compared with those of before.
    ?assertMatch({undefined, _}, sderl_mon_watch:sample(W6)),
    {_, Lost} = step({attached, 2, {error, link, <<"gone">>}}, 4100, W5),
    ?assertMatch({undefined, _}, sderl_mon_watch:sample(element(2, step(nodedown, 4110, Lost)))),
    %% The answer of before.
    {[], W6} = step({attached, 2, {ok, probe}}, 4200, W6),
    {W7, Waits} = lists:foldl(
        fun(_, {W, Acc}) ->
            {[{job, attach, Job}, _], Wa} = step(due, 5000, W),
            {Effects, Wb} = step({attached, Job, {error, link, <<"refused">>}}, 5000, Wa),
            {Wb, [Ms || {timer, Ms} <- Effects] ++ Acc}
        end,
        {W6, []},
        lists:seq(1, 10)
    ),
    ?assertEqual([250, 500, 1000, 2000, 4000, 8000, 10000, 10000, 10000, 10000],
                 lists:reverse(Waits)),
    %% While its turn has not come it is no other than before, and the answer counts when it comes.
    {[{job, attach, Turn}, _], Wt} = step(due, 5500, W7),
    {[{job, attach, Turn}, {timer, 30000}], Wt} = step(due, 35500, Wt),
    ?assertMatch({[told | _], #{}},
                 step({sample, sample(1, 10, #{})}, 35600,
                      element(2, step({attached, Turn, {ok, probe}}, 35550, Wt)))),
    {[{timer, 0}], W8} = step(seen, 6000, W7),
    ?assertEqual([connect, retry, connect], [sderl_mon_watch:lane(W) || W <- [W6, W7, W8]]),
    {[{job, attach, Job}, _], W9} = step(due, 6000, W8),
    {_, W10} = step({attached, Job, {ok, probe}}, 6000, W9),
    {[told | _], W11} = step({sample, sample(1, 10, #{})}, 6010, W10),
    ?assert(sderl_mon_watch:is_up(W11)).

%% Read from here: every interval, and after each failure with patience; told why there is no probe.
stock_test() ->
    {_, W1} = step(due, 0, sderl_mon_watch:new(?N, 1000)),
    {[{job, read, 2}, _], W2} = step({attached, 1, {ok, {stock, <<"no probe">>}}}, 0, W1),
    {[told, {timer, 995}], W3} = step({read, 2, {ok, sample(2, 1000, #{})}}, 5, W2),
    ?assertMatch(#{status := up, source := stock, why := <<"no probe">>},
                 sderl_mon_watch:report(W3)),
    {[{job, read, 3}, _], W4} = step(due, 1005, W3),
    {[told, {timer, 250}], W5} = step({read, 3, {error, node, <<"hangs">>}}, 4005, W4),
    ?assertMatch(#{status := unreachable, why := <<"hangs">>}, sderl_mon_watch:report(W5)).

%% What is configured while a job attaches the node has another job follow it, even if a sample came
%% first: two jobs at once could end in the other order.
configured_meanwhile_test() ->
    {[{job, attach, 1}, _], W1} = step(due, 0, sderl_mon_watch:new(?N, 1000)),
    {[{timer, 30000}], W2} = step({configured, 500}, 1, W1),
    {[{timer, 30000}], W2} = step(retake, 1, W2),
    Follows = fun(Result, W) -> step({attached, 1, Result}, 10, W) end,
    {[{job, attach, 2}, _], W3} = Follows({ok, probe}, W2),
    {[{job, attach, 2}, _], _} = Follows({error, term, <<"newer">>}, W2),
    {[told, {timer, 1500 + 1000}], Sampled} = step({sample, sample(1, 1000, #{})}, 5, W2),
    {[{job, attach, 2}, _], _} = Follows({ok, probe}, Sampled),
    {[{timer, 2500}], W4} = step({attached, 2, {ok, probe}}, 20, W3),
    {[{job, attach, 3}, _], _} = step({configured, 700}, 30, W4),
    %% The try after a failure says all.
    {[told, {timer, 250}], W5} = Follows({error, node, <<"hangs">>}, W2),
    {[{job, attach, 2}, _], W6} = step(due, 260, W5),
    {[{timer, 5000}], _} = step({attached, 2, {ok, probe}}, 270, W6).

%% The probe was started, and could not be told what is wanted: the next sample has it told again.
wish_lost_test() ->
    {[{job, attach, 1}, _], W1} = step(due, 0, sderl_mon_watch:new(?N, 1000)),
    {_, W2} = step({sample, sample(1, 1000, #{})}, 5, W1),
    {[], W3} = step({attached, 1, {error, node, <<"does not answer">>}}, 10, W2),
    {[{job, attach, 2}, _], W4} = step({sample, sample(2, 2000, #{})}, 1005, W3),
    {[{timer, 3000}], W5} = step({attached, 2, {ok, probe}}, 1010, W4),
    ?assertMatch({[{timer, 3000}], _}, step({sample, sample(3, 3000, #{})}, 2005, W5)).

%% Whatever happens in between: in the end the probe was last told what was configured last, and
%% never by two jobs at once.
told_last_test_() ->
    sderl_prop:eunit("the probe was last told what was configured last", 5000, fun told_last/0).

told_last() ->
    Event = proper_types:elements([configured, retake, sample, sample, answered, answered, stock,
                                   failed, deposed, due, woken, nodedown, pool_died]),
    ?FORALL(Events, proper_types:list(Event), begin
        W = sderl_mon_watch:new(?N, 1000),
        Begun = #{w => W, now => 0, jobs => #{}, timer => 0, config => 0, told => none},
        Ended = lists:foldl(fun happens/2, Begun, [due | Events]),
        Calm = lists:append(lists:duplicate(40, [due_soon, answered, sample, answered])),
        #{config := Config, told := Told, jobs := Jobs} = lists:foldl(fun happens/2, Ended, Calm),
        ?WHENFAIL(io:format("~p~n", [Ended]),
                  {#{}, Config} =:= {maps:with([attach], Jobs), Told})
    end).

happens(configured, #{config := Config} = S) ->
    does({configured, 1000}, S#{config := Config + 1});
happens(sample, #{now := Now} = S) ->
    does({sample, sample(Now + 1, Now, #{})}, S);
happens(nodedown, S) ->
    does(nodedown, S#{jobs := #{}});
happens(pool_died, S) ->
    S#{jobs := #{}};
%% Samples come each second.
happens(due_soon, #{timer := Ms} = S) when Ms >= 1000 ->
    S;
happens(due_soon, S) ->
    does(due, S);
%% A job ends before its watch stops waiting for it.
happens(Timed, #{timer := Ms} = S) when Timed =:= due; Timed =:= woken ->
    does(Timed, case Ms >= 30_000 of true -> S#{jobs := #{}}; false -> S end);
happens(retake, S) ->
    does(retake, S);
happens(Answer, #{jobs := #{attach := {Job, Config}} = Jobs} = S) ->
    Answers = #{answered => {ok, probe}, stock => {ok, {stock, ~"no probe"}},
                failed => {error, node, ~"hangs"}, deposed => {error, term, ~"a newer master"}},
    Told = case Answer of answered -> Config; _ -> map_get(told, S) end,
    does({attached, Job, map_get(Answer, Answers)},
         S#{jobs := maps:remove(attach, Jobs), told := Told});
happens(Answer, #{jobs := #{read := {Job, _}}} = S) ->
    Read = case Answer of
        answered -> {ok, (sample(1, 1, #{}))#{source := stock}};
        _ -> {error, node, ~"hangs"}
    end,
    does({read, Job, Read}, S#{jobs := #{}});
happens(_, S) ->
    S.

does(Event, #{w := W, now := Now, jobs := Jobs, timer := Timer, config := Config} = S) ->
    {Effects, W1} = step(Event, Now, W),
    Begun = #{Kind => {Job, Config} || {job, Kind, Job} <- Effects},
    ?assertNot(is_map_key(attach, Begun) andalso is_map_key(attach, Jobs)),
    S#{w := W1, now := Now + 1000, jobs := maps:merge(Jobs, Begun),
       timer := lists:last([Timer | [Ms || {timer, Ms} <- Effects]])}.

%% Groups that change are told; that there are more names is not.
facts_test() ->
    {_, W1} = step(due, 0, sderl_mon_watch:new(?N, 1000)),
    Facts = fun(Members, Names) ->
        #{groups => [#{group => g, members => Members, names => Names, coordinator => ?N}]}
    end,
    Told = fun(Sample, W) ->
        {Effects, New} = step({sample, Sample}, 0, W),
        {lists:member(told, Effects), New}
    end,
    {true, W2} = Told(sample(1, 1, Facts([?N], 0)), W1),
    {false, W3} = Told(sample(2, 2, Facts([?N], 7)), W2),
    {false, W4} = Told(maps:remove(facts, sample(3, 3, #{})), W3),
    {true, _} = Told(sample(4, 4, Facts([?N, 'b@h'], 7)), W4).

%% A beat stays away from the samples, where there is room.
shift_test() ->
    Shift = fun(Ages) -> sderl_mon_watch:shift(Ages, 1000) end,
    ?assertEqual([0, 0, 500, 520, 480], [Shift(Ages) || Ages <- [[], [300], [0], [980], [20]]]),
    ?assertEqual(0, Shift([400, 600, 200])),
    ?assertEqual(705, Shift([990, 600])),
    ?assertEqual([25, 0], [Shift(lists:seq(From, 999, 50)) || From <- [0, 25]]).

%% A probe tells of its node's processes when something has changed; what a node without one does
%% not tell is not known.
processes_stay_known_test() ->
    Row = #{pid => ~"<0.9.0>", queue => 3},
    Heard = fun(Told, W) -> element(2, step({sample, Told}, 20, W)) end,
    Top = fun(W) -> {Last, _} = sderl_mon_watch:sample(W), maps:get(top, Last, none) end,
    First = Heard((sample(1, 1000, #{}))#{top => [Row]}, sderl_mon_watch:new(?N, 1000)),
    Second = Heard(sample(2, 2000, #{}), First),
    ?assertEqual([[Row], [Row]], [Top(W) || W <- [First, Second]]),
    %% Also when the link has gone and something else has opened it again.
    {_, Gone} = step(nodedown, 30, Second),
    ?assertEqual([Row], Top(Heard(sample(3, 3000, #{}), Gone))),
    ?assertEqual([], Top(Heard((sample(3, 3000, #{}))#{top => []}, Second))),
    ?assertEqual(none, Top(Heard((sample(3, 3000, #{}))#{source := stock}, Second))).

step(Event, Now, W) -> sderl_mon_watch:step(Event, Now, W).

sample(Seq, Us, Facts) ->
    #{v => 1, node => ?N, seq => Seq, at => Us div 1000, mono_us => Us, source => probe,
      counters => #{}, gauges => #{}, links => [], facts => Facts}.

%% ---------------------------------------------------------------- the pool

%% So many at once; what hangs is ended and told, and does not hold up the other lanes. What waits
%% is replaced by what is newer, and keeps its place.
pool_test_() ->
    {spawn, fun() ->
        {ok, Pool} = sderl_mon_pool:start_link(),
        Hang = fun() -> receive never -> ok end end,
        Self = self(),
        Open = fun(I) -> fun() -> Self ! {begun, I, self()}, receive open -> I end end end,
        Pids = [
            begin
                ok = sderl_mon_pool:run(connect, I, {one, I}, Open(I), 60_000),
                receive {begun, I, Pid} -> Pid end
            end
         || I <- lists:seq(1, 16)
        ],
        [ok = sderl_mon_pool:run(connect, I, {Which, I}, fun() -> {Which, I} end, 60_000)
         || Which <- [two, three], I <- lists:seq(1, 5)],
        ?assertMatch(#{connect := #{running := 16, waiting := 5}}, sderl_mon_pool:info()),
        [ok = sderl_mon_pool:run(reach, I, {hang, I}, Hang, 50) || I <- lists:seq(1, 40)],
        ok = sderl_mon_pool:run(read, quick, quick, fun() -> done end, 60_000),
        ?assertMatch({ok, done}, receive {sderl_mon_done, quick, R} -> R end),
        ?assertMatch(#{reach := #{running := N, waiting := W}} when N =< 32 andalso N + W =< 40,
                     sderl_mon_pool:info()),
        [?assertEqual({error, timeout}, receive {sderl_mon_done, {hang, I}, R} -> R end)
         || I <- lists:seq(1, 40)],
        ok = sderl_mon_pool:run(reach, bad, bad, fun() -> error(oops) end, 60_000),
        ?assertEqual({error, {error, oops}}, receive {sderl_mon_done, bad, R} -> R end),
        [Pid ! open || Pid <- Pids],
        [?assertEqual({ok, {three, I}}, receive {sderl_mon_done, {three, I}, R} -> R end)
         || I <- lists:seq(1, 5)],
        ?assertEqual(
            none, receive {sderl_mon_done, {two, _}, _} = Replaced -> Replaced after 0 -> none end
        ),
        gen_server:stop(Pool)
    end}.

%% ---------------------------------------------------------------- rates

rates_test() ->
    Link = fun(Peer, Out, In) ->
        #{node => Peer, type => visible, out_msgs => Out, out_bytes => 10 * Out, in_msgs => In,
          in_bytes => 10 * In}
    end,
    Before = (sample(1, 1_000_000, #{}))#{
        counters := #{reductions => 100, runtime_us => 0, probe_us => 0},
        sched => [{1, normal, 0, 100}, {2, normal, 0, 100}, {3, dirty_cpu, 0, 100}],
        links := [Link('b@h', 100, 50), Link('m@h', 0, 0)],
        kinds => #{routing => {10, 1000}},
        groups => #{<<"g">> => {1, 1, 0}},
        lost => #{events_dropped => 3}
    },
    Now = (sample(2, 3_000_000, #{}))#{
        counters := #{reductions => 300, runtime_us => 1_000_000, probe_us => 10_000},
        gauges := #{run_queue => 2, mem_total => 1000},
        sched => [{1, normal, 50, 200}, {2, normal, 0, 200}, {3, dirty_cpu, 100, 200}],
        links := [Link('b@h', 300, 70), Link('c@h', 40, 20), Link('m@h', 6, 6)],
        kinds => #{routing => {30, 5000}},
        groups => #{<<"g">> => {5, 1, 2}, <<"h">> => {0, 2, 0}},
        migrations => [{1, 2, 3}],
        traffic => [#{from => <<"a">>, to => <<"b">>, kind => send, msgs => 1, bytes => 10}],
        lost => #{events_dropped => 5}
    },
    #{node := Node, links := Links, heard := Heard, kinds := Kinds, lost := Lost} =
        Rates = sderl_mon_rates:between(Before, Now, #{monitors => ['m@h']}),
    ?assertEqual(
        #{
            run_queue => 2, mem => 1000, reds_s => 100.0, cpu_pct => 50.0, probe_pct => 1.0,
            util => 0.25, out_msgs_s => 120.0, out_bytes_s => 1200.0, in_msgs_s => 20.0,
            in_bytes_s => 200.0, mon_msgs_s => 6.0, mon_bytes_s => 60.0
        },
        Node
    ),
    %% By the sender, and by the receiver; the price of watching is no traffic.
    ?assertEqual(#{{<<"a@h">>, <<"b@h">>} => {100.0, 1000.0},
                   {<<"a@h">>, <<"c@h">>} => {20.0, 200.0}}, Links),
    ?assertEqual(#{{<<"b@h">>, <<"a@h">>} => {10.0, 100.0},
                   {<<"c@h">>, <<"a@h">>} => {10.0, 100.0}}, Heard),
    ?assertEqual(#{routing => {10.0, 2000.0}}, Kinds),
    ?assertMatch(#{groups := #{<<"g">> := #{regs_s := 2.0, unregs_s := +0.0, failed_regs_s := 1.0},
                               <<"h">> := #{unregs_s := 1.0}}}, Rates),
    #{migrations := Migrations, traffic := Traffic} =
        sderl_mon_rates:joined(Now, Now#{seq := 3, migrations := [{1, 2, 1}, {2, 1, 1}],
                                         traffic => [#{from => <<"a">>, to => <<"b">>, kind => send,
                                                       msgs => 2, bytes => 5}]}),
    ?assertEqual([{1, 2, 4}, {2, 1, 1}], lists:sort(Migrations)),
    ?assertEqual([#{from => <<"a">>, to => <<"b">>, kind => send, msgs => 3, bytes => 15}],
                 Traffic),
    ?assertEqual(#{events_dropped => 2}, Lost),
    #{schedulers := Schedulers, links := Detailed} =
        sderl_mon_rates:detail({Before, Now}, Rates, #{}),
    ?assertEqual([0.5, 0.0, 1.0], [U || #{util := U} <- Schedulers]),
    ?assertMatch(#{span_ms := Ms} when Ms * 1000 =:=
                 map_get(mono_us, Now) - map_get(mono_us, Before),
                 sderl_mon_rates:detail({Before, Now}, Rates, #{})),
    ?assertNot(is_map_key(span_ms, sderl_mon_rates:detail({undefined, Now}, Rates, #{}))),
    ?assertMatch([#{node := <<"b@h">>, out_msgs_s := 100.0}, _, _], Detailed),
    %% A new life of the node: no rates.
    ?assertMatch(#{links := L, node := N} when L =:= #{} andalso not is_map_key(reds_s, N),
                 sderl_mon_rates:between(Now, Before, #{monitors => []})),
    ?assertMatch(
        #{links := L} when L =:= #{},
        sderl_mon_rates:between(Now, Before#{mono_us := 9_000_000}, #{monitors => []})
    ).

%% A node whose clock is an hour behind.
by_one_clock_test() ->
    Sample = sderl_mon_rates:here(#{at => 1_000_000, events => [#{kind => node_up, t => 999_900}]},
                                  4_600_000),
    ?assertEqual(#{at => 4_600_000, node_at => 1_000_000,
                   events => [#{kind => node_up, t => 4_599_900, node_t => 999_900}]}, Sample),
    ?assertEqual(#{at => 5, node_at => 1, events => []}, sderl_mon_rates:here(#{at => 1}, 5)).

%% Routed messages by group edge, and what a gateway passed on.
routed_test() ->
    Edges = fun(List) -> [#{from => From, to => To, msgs => Msgs} || {From, To, Msgs} <- List] end,
    Sample = fun(Seq, Forwarded, List) ->
        (sample(Seq, Seq * 1_000_000, #{}))#{counters => #{forwarded => Forwarded},
                                             edges => Edges(List)}
    end,
    Before = Sample(1, 100, [{<<"g">>, <<"h">>, 70}]),
    #{routed := Routed, node := Node} =
        sderl_mon_rates:between(Before,
                                Sample(2, 140, [{<<"g">>, <<"h">>, 100}, {<<"h">>, <<"g">>, 10}]),
                                #{monitors => []}),
    ?assertEqual(#{{<<"g">>, <<"h">>} => 30.0, {<<"h">>, <<"g">>} => 10.0}, Routed),
    ?assertMatch(#{forwarded_s := 40.0}, Node),
    ?assertMatch(#{routed := None} when None =:= #{},
                 sderl_mon_rates:between(undefined, Before, #{monitors => []})).

%% What was counted since the node began is not what happened in a second.
no_spikes_test() ->
    Context = #{monitors => []},
    Link = fun(Msgs, More) ->
        maps:merge(#{node => 'b@h', type => visible, out_msgs => Msgs, out_bytes => Msgs,
                     in_msgs => Msgs, in_bytes => Msgs}, More)
    end,
    Full = (sample(2, 2_000_000, #{}))#{
        kinds => #{probe => {5, 50}, replication => {300_000, 40_000_000}},
        groups => #{<<"g">> => {1000, 0, 0}}, links := [Link(1_000_000, #{})]
    },
    Before = fun(More) -> maps:merge(sample(1, 1_000_000, #{}), More) end,
    Rates = fun(From) -> sderl_mon_rates:between(From, Full, Context) end,
    %% Read from outside, then by a probe.
    ?assertMatch(#{kinds := K, groups := K, links := K, peers := K} when K =:= #{}, Rates(
        Before(#{source => stock, kinds => #{}, links => [Link(0, #{counts => unknown})]})
    )),
    %% While the application starts again the probe alone counts.
    ?assertMatch(
        #{kinds := #{probe := {1.0, 10.0}} = Kinds, groups := Groups} when map_size(Kinds) =:= 1
        andalso Groups =:= #{},
        Rates(Before(#{kinds => #{probe => {4, 40}}, groups => #{}}))
    ),
    %% The socket of a link was found, or is not any more.
    ?assertMatch(
        %% The other end may know: this one says only that there is a link.
        #{peers := None, links := None, heard := #{{<<"b@h">>, <<"a@h">>} := {0, 0}},
          node := #{in_msgs_s := 0}} when None =:= #{},
        Rates(Before(#{links => [Link(0, #{counts => unknown})]}))
    ),
    ?assertMatch(#{peers := Peers} when Peers =:= #{}, sderl_mon_rates:between(
        Full, Full#{mono_us := 3_000_000, links := [Link(0, #{counts => unknown})]}, Context
    )),
    %% A new group and a new link did begin at nothing.
    ?assertMatch(
        #{groups := #{<<"g">> := #{regs_s := 1000.0}},
          peers := #{'b@h' := #{out_msgs := 1000000.0}}},
        Rates(Before(#{kinds => maps:get(kinds, Full), groups => #{}}))
    ).

%% ---------------------------------------------------------------- the configuration

config_test() ->
    Check = fun(Map) -> sderl_mon_config:check(Map) end,
    ?assertEqual({ok, sderl_mon_config:defaults()}, Check(#{})),
    {ok, #{seeds := ['a@h', 'b@h']}} = Check(#{seeds => ['b@h', 'a@h', 'a@h']}),
    Bad = [
        {[config], none, none}, {[sedes], [], #{sedes => []}},
        {[seeds, 2], b, #{seeds => ['a@h', b]}}, {[seeds], 'a@h', #{seeds => 'a@h'}},
        {[seeds], x, #{seeds => ['a@h' | x]}}, {[nodes], none, #{nodes => none}},
        {[inject], 1, #{inject => 1}}, {[probe], x, #{probe => x}},
        {[interval_ms], 99, #{interval_ms => 99}}, {[record, dir], 1, #{record => #{dir => 1}}},
        {[record], on, #{record => on}}, {[archive], on, #{archive => on}},
        {[archive, dir], 1, #{archive => #{dir => 1}}},
        {[archive, max_bytes], 1000, #{archive => #{dir => "d", max_bytes => 1000}}},
        {[record, max_bytes], 0, #{record => #{dir => "d", max_bytes => 0}}},
        {[thresholds, a], b, #{thresholds => #{a => b}}},
        {[thresholds], 1, #{thresholds => 1}}, {[history, raw], 0, #{history => #{raw => 0}}},
        {[history, rows], 1, #{history => #{rows => 1}}},
        {[history, levels], [{7, 1}, {8, 1}], #{history => #{levels => [{7, 1}, {8, 1}]}}},
        {[state_dir], "", #{state_dir => ""}}, {[history], 1, #{history => 1}}
    ],
    lists:foreach(
        fun({Path, Value, Map}) ->
            {error, {bad_config, P, V, _} = Error} = Check(Map),
            ?assertEqual({Path, Value}, {P, V}),
            Text = unicode:characters_to_binary(sderl_mon_config:format_error(Error)),
            ?assertMatch(<<"sderl_mon: config ", _/binary>>, Text),
            ?assertMatch([_, _ | _], string:split(Text, "; "))
        end,
        Bad
    ).

%% Counted once, whoever is told: what another agent has acknowledged is its to tell; a probe that
%% began anew began at nothing.
losses_test() ->
    Sample = (sample(9, 9000, #{}))#{lost => #{events_dropped => 50, x => 1},
                                     lost_acked => #{events_dropped => 30}},
    ?assertEqual(#{events_dropped => 20, x => 1}, sderl_mon_rates:lost(undefined, Sample)),
    ?assertEqual(#{events_dropped => 10},
                 sderl_mon_rates:lost(#{events_dropped => 40, x => 1}, Sample)),
    ?assertEqual(#{events_dropped => 50},
                 sderl_mon_rates:lost(#{events_dropped => 60, x => 1}, Sample)),
    ?assertEqual(#{}, sderl_mon_rates:lost(undefined, sample(9, 9000, #{}))).

%% What was set is there again; a file that is none is named, and nothing is lost because of it.
kept_test_() ->
    {setup, fun() ->
        filename:join(filename:basedir(user_cache, "sderl_mon_test"),
                      lists:concat([os:getpid(), "-", erlang:unique_integer([positive])]))
    end,
     fun(Dir) -> file:del_dir_r(Dir) end,
     fun(Dir) ->
         fun() ->
             {ok, Config} = sderl_mon_config:check(#{state_dir => Dir, interval_ms => 200}),
             {ok, Config} = sderl_mon_config:load(Config),
             ok = sderl_mon_config:store(#{seeds => ['ä@h']}, Config),
             ok = sderl_mon_config:store(#{interval_ms => 300, state_dir => "elsewhere"}, Config),
             ?assertMatch({ok, #{seeds := ['ä@h'], interval_ms := 300, state_dir := Dir}},
                          sderl_mon_config:load(Config)),
             ?assertEqual([filename:basename(sderl_mon_config:file(Config))],
                          element(2, file:list_dir(Dir))),
             ok = file:write_file(sderl_mon_config:file(Config),
                                  "{sderl_mon, 1, #{interval_ms => 0}}."),
             ?assertMatch({error, {bad_config, [interval_ms], 0, _}},
                          sderl_mon_config:load(Config)),
             ok = file:write_file(sderl_mon_config:file(Config), "{"),
             {error, {bad_file, _, _} = Error} = sderl_mon_config:store(#{inject => true}, Config),
             ?assertMatch({_, _}, binary:match(
                 unicode:characters_to_binary(sderl_mon_config:format_error(Error)),
                 unicode:characters_to_binary(Dir)
             )),
             ?assertEqual({ok, <<"{">>}, file:read_file(sderl_mon_config:file(Config)))
         end
     end}.

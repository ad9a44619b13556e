%% SPDX-License-Identifier: Apache-2.0
%% Messages that are none of ours: no process of a monitoring node, and no probe, ends of them.
-module(sderl_mon_hostile_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(ODD,
    [x, [], [a | b], #{}, {a, b}, 1.5, ~"x", fun erlang:node/0, #{scope => x}, #{node => 1}]).

monitoring_node_test_() ->
    {setup,
        fun() ->
            {ok, Started} = application:ensure_all_started(sderl_mon),
            Started
        end,
        fun(Started) -> lists:foreach(fun application:stop/1, lists:reverse(Started)) end,
        [
            {"master", {timeout, 60, fun master/0}},
            {"agent", {timeout, 60, fun agent/0}},
            {"hub", {timeout, 60, fun hub/0}},
            {"past", {timeout, 60, fun past/0}},
            {"whatever each server's clauses name", {timeout, 120, fun each_server/0}}
        ]}.

master() ->
    Master = whereis(sderl_mon_master),
    [
        gen_server:cast(Master, {sderl_mon, 1, Kind, From, Payload})
     || Kind <- [beat, hello, state, assign, config, report, other, 5],
        From <- ['m2@127.0.0.1', x, 5, []],
        Payload <- ?ODD ++ almost(Kind)
    ],
    [gen_server:cast(Master, {Tag, Odd}) || Tag <- [sderl_mon, assign], Odd <- ?ODD],
    [Master ! Odd || Odd <- ?ODD],
    ?assertMatch(#{node := _}, sderl_mon:status()),
    ?assertEqual(Master, whereis(sderl_mon_master)).

%% What is asked and answered of the past.
past() ->
    Process = whereis(sderl_mon_inherit),
    Ask = #{from => 'm2@127.0.0.1', ref => make_ref(), part => events, 'after' => 0},
    Answer = #{ref => make_ref(), t => 1, steps => [0], entries => [{1, 1, ~"x"}], more => true},
    Odd = [{ask, Ask#{from := 5}},
           {ask, Ask#{part := {frames, -1}}},
           {ask, Ask#{'after' := x}},
           {answer, Answer},
           {answer, Answer#{entries := [{1, 1, ~"x"} | x]}},
           {ask, Ask},
           {ask, Ask#{part := {frames, 7}}},
           {ask, x}],
    [gen_server:cast(Process, {sderl_mon_past, Version, Message})
     || Version <- [1, 2], Message <- Odd ++ ?ODD],
    [Process ! Message || Message <- Odd ++ ?ODD],
    ?assertEqual({error, unknown_call}, gen_server:call(Process, x)),
    ?assertEqual(Process, whereis(sderl_mon_inherit)).

%% Right but for one thing.
almost(beat) ->
    Beat = #{term => 1, seen => 1, lead => true, version => {undefined, 0}, hears => [],
             stamps => #{}},
    [Beat#{hears := [a | b]}, Beat#{hears := [5]}, Beat#{version := x}, Beat#{term := x},
     Beat#{lead := x}, Beat#{stamps := x}, Beat#{stamps := #{interval_ms => {-1, a}}}];
almost(config) ->
    Shared = sderl_mon_shared:new(sderl_mon_config:defaults()),
    [Shared#{config := x}, Shared#{stamps := #{interval_ms => x}},
     maps:get(config, Shared), Shared#{stamps := #{colour => {1, a}}}];
almost(report) ->
    Node = #{status => up, why => ~"", source => probe, facts => #{}, peers => []},
    Report = fun(N) -> #{scope => {free, a@h}, term => 1, nodes => #{a@h => N}} end,
    [
        Report(x),
        Report(Node#{peers := [a | b]}),
        Report(Node#{facts := #{groups => [x | y]}}),
        Report(Node#{facts := #{groups => [#{group => g, members => [5]}]}}),
        Report(Node#{facts := #{known => [{g, x}]}}),
        Report(Node#{status := x})
    ];
almost(state) ->
    [#{seen => 1 bsl 40, nodes => #{a@h => x}, placement => #{}, config => #{},
       stamps => #{}, epoch => 1}];
almost(assign) ->
    [#{term => 1 bsl 40, version => {a, 1}, placement => #{x => y}, members => #{a@h => x},
       config => #{}}];
almost(_) ->
    [].

agent() ->
    Config = sderl_mon_config:shared(sderl_mon_config:defaults()),
    Orders = #{scope => {free, node()}, term => 1, nodes => [], monitors => [node()],
               hubs => [node()], config => Config},
    {ok, Agent} = sderl_mon_agent_sup:start(sderl_mon_master, Orders),
    Ref = monitor(process, Agent),
    ok = sderl_mon_agent:assign(Agent, Orders#{term := 2, nodes := [node()]}),
    {ok, #{term := 2}} = sderl_mon_agent:orders(Agent),
    Sample = #{node => node(), seq => 1, at => 1, mono_us => 1, source => probe, counters => #{},
               gauges => #{}},
    {ok, _} = sderl_mon_samples:check(Sample),
    Samples = [Sample#{Key => Odd}
               || Key <- [events, links, lost, facts, kinds, groups, sched, queues, counters,
                          gauges, at],
                  Odd <- ?ODD, Odd =/= #{}, Odd =/= []],
    [Agent ! {sderl_mon_sample, From, S} || From <- [self(), x], S <- ?ODD ++ Samples],
    [gen_server:cast(Agent, {Tag, Odd})
     || Tag <- [assign, seen, report], Odd <- ?ODD ++ [Orders#{term := 3, nodes := [a | b]}]],
    [Agent ! {sderl_mon_done, {Job, node(), N}, R}
     || Job <- [attach, read], N <- [1, 2, 3, x], R <- ?ODD ++ [{ok, Odd} || Odd <- ?ODD]],
    [Agent ! {Up, Odd, Odd} || Up <- [nodeup, nodedown], Odd <- ?ODD],
    ?assertMatch({ok, #{term := 2}}, sderl_mon_agent:orders(Agent)),
    true = demonitor(Ref, [flush]),
    ok = sderl_mon_agent_sup:stop(Agent).

hub() ->
    Hub = whereis(sderl_mon_hub),
    T0 = 1_700_000_000_000,
    Update = #{agent => {~"g", 1}, t => T0, span_ms => 100},
    Event = #{t => T0, kind => node_down, level => warning, text => ~"x"},
    [true = sderl_mon_hub:update(node(), Update#{Key => Odd})
     || Key <- [events, nodes, links, kinds, groups, details, lost], Odd <- ?ODD],
    true = sderl_mon_hub:update(node(), Update#{events => [Event | Event]}),
    Topology = #{epoch => 1, t => T0, nodes => #{}, groups => #{}, monitors => []},
    [true = sderl_mon_hub:topology(node(), Topology#{Key => Odd})
     || Key <- [nodes, groups, monitors], Odd <- ?ODD],
    Node = #{status => up, groups => [], hidden => false, source => probe},
    [true = sderl_mon_hub:topology(node(), Topology#{nodes => #{~"a" => N}})
     || Odd <- [[~"g" | ~"h"], x], N <- [Node#{groups := Odd}, Node#{home => [Odd]}]],
    Group = #{nodes => [], coordinator => undefined, names => 0, agent => undefined},
    [true = sderl_mon_hub:topology(node(), Topology#{groups => #{~"g" => Group#{Key => Odd}}})
     || Key <- [nodes, live, coordinator, agent, minority], Odd <- [[~"g" | ~"h"], {x}, 7]],
    Hub ! tick,
    ?assertMatch(#{mode := live}, sderl_mon_hub:info()),
    ?assertEqual(Hub, whereis(sderl_mon_hub)).

%% Right tags with wrong terms, to each process that there is: it is the same one afterwards.
each_server() ->
    Folder = filename:basedir(user_cache, "sderl_tests"),
    Dir = filename:join(Folder, lists:concat(["sderl_mon_hostile_", os:getpid()])),
    Config = sderl_mon_config:shared(sderl_mon_config:defaults()),
    Here = #{nodes => [], monitors => [node()], hubs => [node()]},
    Orders = Here#{scope => {free, node()}, term => 1, config => Config},
    {ok, Agent} = sderl_mon_agent_sup:start(sderl_mon_master, Orders),
    {ok, _} = sderl_mon_synthetic:start(#{nodes => 20, groups => 4, edges => 20,
                                          interval_ms => 100}),
    {ok, #{file := File}} = sderl_mon_record:start(filename:join(Dir, "odd"), #{}),
    ok = sderl_mon:set(#{archive => #{dir => filename:join(Dir, "archive")}}),
    try
        Frames = fun() -> {ok, #{frames := N}} = sderl_mon_record:status(), N end,
        ok = sderl_fleet:await(fun() -> Frames() > 1 end, 60_000),
        ok = sderl_mon_record:stop(),
        {ok, Replay} = sderl_mon_replay:open(File),
        {ok, _} = sderl_mon_record:start(filename:join(Dir, "more"), #{}),
        Servers = [
            {sderl_mon_master, sderl_mon_master}, {sderl_mon_settings, sderl_mon_settings},
            {sderl_mon_pool, sderl_mon_pool},
            {sderl_mon_record, sderl_mon_record},
            {sderl_mon_record_keeper, sderl_mon_record_keeper},
            {sderl_mon_archive, sderl_mon_archive},
            {sderl_mon_synthetic, sderl_mon_synthetic}, {sderl_mon_inherit, sderl_mon_inherit},
            {Agent, sderl_mon_agent}, {Replay, sderl_mon_replay}, {sderl_mon_hub, sderl_mon_hub}
        ],
        [
            ?assertEqual({Module, ok}, {Module, sderl_mon_odd:send(Server, Messages)})
         || {Server, Module} <- Servers, Messages <- [sderl_mon_odd:messages(Module)]
        ],
        ok = sderl_mon_replay:close(Replay)
    after
        _ = sderl_mon_record:stop(),
        ok = sderl_mon:set(#{archive => off}),
        off = sderl_mon_archive:info(),
        ok = sderl_mon_synthetic:stop(),
        ok = sderl_mon_agent_sup:stop(Agent),
        ok = file:del_dir_r(Dir)
    end.

probe_test_() ->
    {timeout, 60, fun() ->
        ok = sderl_mon_probe:stop(),
        {error, {bad_option, interval_ms, x}} =
            sderl_mon_probe:start(#{owner => self(), interval_ms => x}),
        {ok, Probe} = sderl_mon_probe:start(#{owner => self(), interval_ms => 60_000}),
        Ref = monitor(process, Probe),
        Requests = [{Tag, Odd} || Tag <- [start, total, trace], Odd <- ?ODD] ++
            [{start, #{owner => self(), Key => x}}
             || Key <- [term, interval_ms, top, friends, lease_ms]],
        [Probe ! {sderl_mon_probe, From, Request}
         || From <- [x, make_ref(), self()], Request <- Requests],
        [Probe ! {Tag, Odd, Odd} || Tag <- [nodeup, nodedown, slow, named], Odd <- ?ODD],
        [Probe ! {Tag, Probe, Odd, Odd}
         || Tag <- [monitor, scanned, named, s_group_event], Odd <- ?ODD],
        [Probe ! {monitor, Probe, Kind, Odd}
         || Kind <- [long_gc, long_schedule, large_heap, busy_port, long_message_queue, other],
            Odd <- ?ODD],
        [Probe ! {s_group_event, x, y, {event, Level, Kind, Odd}}
         || Level <- [x, 5], Kind <- [x, 5], Odd <- ?ODD],
        [Probe ! {sderl_mon_ack, Odd} || Odd <- ?ODD],
        {ok, #{status := _}} = sderl_mon_probe:process(pid_to_list(Probe)),
        {error, {term, 5}} = begin
            {ok, Probe} = sderl_mon_probe:start(#{owner => self(), term => 5}),
            sderl_mon_probe:start(#{owner => self(), term => 4})
        end,
        ok = sderl_mon_probe:stop(),
        receive {'DOWN', Ref, process, Probe, Why} -> ?assertEqual(shutdown, Why) end
    end}.

%% What an improper list is to the check.
clean_test_() ->
    [
        ?_assertMatch({ok, #{events := []}, 2}, sderl_mon_clean:update(
            #{agent => {~"g", 1}, t => 1, span_ms => 1, events => [x | y]}
        )),
        ?_assertEqual({error, not_a_topology}, sderl_mon_clean:topology(
            #{epoch => 1, t => 1, nodes => #{}, groups => #{}, monitors => [x | y]}
        ))
    ].

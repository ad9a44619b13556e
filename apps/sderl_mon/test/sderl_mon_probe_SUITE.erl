%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_SUITE).

%% The probe on real nodes, against what OTP says itself.

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([samples_are_right/1, stock_says_the_same/1, lease_ends_and_leaves_nothing/1,
         owners_take_over/1, nothing_is_lost_uncounted/1, loaded_into_a_stock_node/1,
         names_are_found/1, traces_beside_others/1]).
%% On the nodes.
-export([left/0, dead_subscribers/0, named/2, flood/2, sender/2, counter/0]).

-define(OWNER, sderl_mon_probe_owner).

all() ->
    [samples_are_right, stock_says_the_same, lease_ends_and_leaves_nothing, owners_take_over,
     nothing_is_lost_uncounted, loaded_into_a_stock_node, names_are_found, traces_beside_others].

init_per_suite(Config) ->
    Owner = spawn(fun() -> receive release -> ok end end),
    {ok, Fleet} = sderl_fleet:start(#{owner => Owner, families => [
        #{name => n, count => 2, apps => [sderl]},
        #{name => plain, count => 1, paths => []},
        #{name => mon, count => 1, hidden => true}]}),
    [{fleet, Fleet}, {owner, Owner}, {nodes, sderl_fleet:nodes(Fleet)} | Config].

end_per_suite(Config) ->
    ok = sderl_fleet:stop(proplists:get_value(fleet, Config)),
    proplists:get_value(owner, Config) ! release.

samples_are_right(Config) ->
    {Fleet, [N1, N2, _, Mon]} = cluster(Config),
    {ok, g, _} = call(Fleet, N1, s_group, new_s_group, [g, [N1, N2]]),
    {Owner, {ok, Probe}} = call(Fleet, Mon, ?OWNER, start, [N1, #{interval_ms => 100}]),
    Last = fun() -> last(Fleet, Mon, Owner) end,
    %% A helper asks the library meanwhile, which may take longer than some samples.
    await(fun() ->
        #{seq := S, links := Ls} = Last(),
        [Reasons] = [R || #{node := N, reasons := R} <- Ls, N =:= N2],
        S > 5 andalso lists:member(~"{group,g}", Reasons) orelse {S, Reasons}
    end),
    %% Counters between what OTP says before and after.
    Otp = fun() ->
        #{counters := C} = M = call(Fleet, N1, erlang, apply, [fun otp/0, []]),
        M#{counters := C}
    end,
    Before = Otp(),
    #{seq := Seq} = Last(),
    await(fun() -> #{seq := S} = Last(), S > Seq + 1 end),
    #{counters := Cs, gauges := Gs, links := Links, sched := Sched, queues := Queues} =
        Sample = Last(),
    After = Otp(),
    ct:pal("~p", [Sample]),
    Within = fun(What, Value, #{counters := A}, #{counters := B}) ->
        ?assert(map_get(What, A) =< Value andalso Value =< map_get(What, B),
                {What, map_get(What, A), Value, map_get(What, B)})
    end,
    [Within(K, map_get(K, Cs), Before, After) || K <- [reductions]],
    [#{in_msgs := In, out_msgs := Out, in_bytes := InB, out_bytes := OutB, type := visible,
       reasons := Why}] = [L || #{node := N} = L <- Links, N =:= N2],
    [Within(K, V, Before, After)
     || {K, V} <- [{{in, N2}, In}, {{out, N2}, Out}, {{in_bytes, N2}, InB},
                   {{out_bytes, N2}, OutB}]],
    ?assert(lists:member(<<"{group,g}">>, Why), Why),
    ?assertMatch([#{type := hidden}], [L || #{node := N} = L <- Links, N =:= Mon]),
    ?assertEqual(map_get(limits, After),
                 maps:with([proc_limit, port_limit, atom_limit, ets_limit, schedulers], Gs)),
    ?assertEqual(length(Queues),
                 call(Fleet, N1, erlang, apply,
                      [fun() -> length(statistics(run_queue_lengths_all)) end, []])),
    ?assert(lists:all(fun({_, Kind, A, T}) ->
        lists:member(Kind, [normal, dirty_cpu, dirty_io]) andalso A >= 0 andalso T > 0
    end, Sched) andalso Sched =/= []),
    %% Facts came with the first, and not with each.
    All = call(Fleet, Mon, ?OWNER, samples, [Owner]),
    [#{facts := Facts} | _] = [S || #{facts := _} = S <- All],
    ?assertMatch(#{groups := [#{group := g, members := [_, _], coordinator := N1}],
                   application := true}, Facts),
    ?assert(length([S || #{facts := _} = S <- All]) < length(All) div 2 + 2),
    ?assert(length([S || #{top := _} = S <- All]) < length(All) div 2 + 2),
    %% A change of the groups is pushed at once, with facts.
    {ok, h, _} = call(Fleet, N1, s_group, new_s_group, [h, [N1]]),
    await(fun() -> case [F || #{facts := F} <- call(Fleet, Mon, ?OWNER, samples, [Owner])] of
        [#{groups := [#{group := g}, #{group := h}]} | _] -> true;
        Other -> Other
    end end),
    ok = call(Fleet, N1, s_group, delete_s_group, [h]),
    await(fun() ->
        lists:member(group_deleted, kinds(call(Fleet, Mon, ?OWNER, samples, [Owner])))
    end),
    Probe = call(Fleet, N1, erlang, whereis, [sderl_mon_probe]),
    ok = call(Fleet, N1, sderl_mon_probe, stop, []),
    ?assertEqual(undefined, call(Fleet, N1, erlang, whereis, [sderl_mon_probe])),
    ok = call(Fleet, N1, s_group, delete_s_group, [g]).

stock_says_the_same(Config) ->
    {Fleet, [N1, _, Plain, Mon]} = cluster(Config),
    Stock = fun(Node, Opts) -> call(Fleet, Mon, sderl_mon_stock, sample, [Node, Opts]) end,
    ?assertEqual({error, noconnection}, Stock('nobody@127.0.0.1', #{seq => 1})),
    [begin
         true = call(Fleet, Mon, net_kernel, connect_node, [Node]),
         Before = call(Fleet, Node, erlang, statistics, [reductions]),
         {ok, #{counters := Cs, gauges := Gs, links := Links, facts := Facts} = Sample} =
             Stock(Node, #{seq => 7, facts => true}),
         After = call(Fleet, Node, erlang, statistics, [reductions]),
         ?assert(element(1, Before) =< map_get(reductions, Cs)
                 andalso map_get(reductions, Cs) =< element(1, After)),
         ?assertMatch([#{type := hidden, out_bytes := Out}] when Out > 0,
                      [L || #{node := N} = L <- Links, N =:= Mon]),
         ?assert(map_get(uptime_s, Gs) >= 0 andalso map_get(uptime_s, Gs) < 600),
         ?assertMatch(#{source := stock, seq := 7, v := 1}, Sample),
         ?assertMatch(#{otp := _, cpu_topology := [_ | _]}, Facts),
         %% The reading itself is not in the queue.
         await(fun() -> {ok, #{gauges := #{run_queue := 0}}} = Stock(Node, #{seq => 8}), true end),
         %% Whether the library runs there is known, and where it does not nobody counts names.
         ?assertEqual({Node =/= Plain, Node =/= Plain},
                      {map_get(application, Facts), is_map_key(names, Gs)}),
         %% The same shape as the probe's.
         {Owner, {ok, _}} = case Node of
             Plain -> {none, {ok, none}};
             _ -> call(Fleet, Mon, ?OWNER, start, [Node, #{interval_ms => 100}])
         end,
         _ = Owner =:= none orelse begin
             await(fun() -> [#{} | _] = call(Fleet, Mon, ?OWNER, samples, [Owner]), true end),
             ?assertEqual([], maps:keys(Sample) --
                              maps:keys(lists:last(call(Fleet, Mon, ?OWNER, samples, [Owner])))),
             ok = call(Fleet, Node, sderl_mon_probe, stop, [])
         end
     end || Node <- [N1, Plain]].

lease_ends_and_leaves_nothing(Config) ->
    {Fleet, [N1, _, _, Mon]} = cluster(Config),
    %% A user of the node's system monitor keeps it.
    undefined = call(Fleet, N1, erlang, apply,
                     [fun() -> erlang:system_monitor(whereis(init), [{long_gc, 7777}]) end, []]),
    %% Nothing is left of the probes before, of whose ends the library hears by itself.
    await(fun() -> call(Fleet, N1, ?MODULE, dead_subscribers, []) =:= [] end),
    Before = call(Fleet, N1, ?MODULE, left, []),
    %% On a busy machine the first sample may take seconds, and is to come before the end.
    {Owner, {ok, _}} = call(Fleet, Mon, ?OWNER, start,
                            [N1, #{interval_ms => 100, lease_ms => 10_000}, false]),
    await(fun() -> #{facts := _} = last(Fleet, Mon, Owner), true end),
    #{facts := #{system_monitor := Said}} = last(Fleet, Mon, Owner),
    ?assert(Said =:= <<"own session">> orelse binary:match(Said, <<"left alone">>) =/= nomatch,
            Said),
    await(fun() -> call(Fleet, N1, erlang, whereis, [sderl_mon_probe]) =:= undefined end),
    await(fun() ->
        case call(Fleet, N1, ?MODULE, left, []) of Before -> true; Other -> {Before, Other} end
    end),
    {_, _} = call(Fleet, N1, erlang, system_monitor, [undefined]),
    ok.

%% What a probe may leave on its node.
left() ->
    #{sessions => [Id || {Id, _} <- trace:session_info(all)],
      system_monitor => erlang:system_monitor(),
      subscriptions => ets:info(sderl_subs, size),
      wall_time => is_list(erlang:statistics(scheduler_wall_time))}.

dead_subscribers() ->
    [Pid || [Pid] <- ets:match(sderl_subs, {{sub, '_'}, '_', '$1', '_'}),
            not is_process_alive(Pid)].

owners_take_over(Config) ->
    {Fleet, [N1, N2, _, Mon]} = cluster(Config),
    %% The probe is not to end while a busy machine makes the group.
    Friends = #{interval_ms => 100, friends => [Mon], lease_ms => 120_000},
    {First, {ok, Probe}} = call(Fleet, Mon, ?OWNER, start, [N1, Friends#{term => 1}]),
    await(fun() -> [#{} | _] = call(Fleet, Mon, ?OWNER, samples, [First]), true end),
    true = call(Fleet, Mon, ?OWNER, stop, [First]),
    %% What happens while nobody listens is told to the next.
    {ok, late, _} = call(Fleet, N1, s_group, new_s_group, [late, [N1]]),
    {Second, {ok, Probe}} = call(Fleet, Mon, ?OWNER, start, [N1, Friends#{term => 2}]),
    await(fun() -> [_ | _] = call(Fleet, Mon, ?OWNER, samples, [Second]), true end),
    %% At once what is known, and soon what the library has not been asked for yet.
    ?assertMatch(#{facts := #{}},
                 lists:last(call(Fleet, Mon, ?OWNER, samples, [Second]))),
    await(fun() ->
        [#{groups := Groups} | _] =
            [F || #{facts := F} <- call(Fleet, Mon, ?OWNER, samples, [Second])],
        [1 || #{group := late} <- Groups] =:= [1] orelse Groups
    end),
    ?assertMatch({_, {error, {term, 2}}},
                 call(Fleet, Mon, ?OWNER, start, [N1, Friends#{term => 1}])),
    %% Another network does not take what works.
    ?assertMatch({_, {error, {busy, Mon}}},
                 call(Fleet, N2, ?OWNER, start,
                      [N1, #{interval_ms => 100, friends => [N2], term => 9}])),
    Seen = maps:get(seq, last(Fleet, Mon, Second)),
    await(fun() -> maps:get(seq, last(Fleet, Mon, Second)) > Seen + 3 end),
    ok = call(Fleet, N1, sderl_mon_probe, stop, []),
    ok = call(Fleet, N1, s_group, delete_s_group, [late]).

%% Ten thousand events in about a second, of which the owner sees the start or not: shown and
%% counted make all.
nothing_is_lost_uncounted(Config) ->
    {Fleet, [N1, _, _, Mon]} = cluster(Config),
    [begin
         %% The probe is not to end while a busy machine makes the events.
         {Owner, {ok, Probe}} = call(Fleet, Mon, ?OWNER, start,
                                     [N1, #{interval_ms => 100, lease_ms => 120_000}]),
         await(fun() ->
             [_ | _] = call(Fleet, N1, ets, match, [sderl_subs, {{sub, '_'}, '_', Probe, '$1'}]),
             true
         end),
         ok = call(Fleet, Mon, ?OWNER, acks, [Owner, Acks]),
         10_000 = call(Fleet, N1, ?MODULE, flood, [10, 1000]),
         ok = call(Fleet, Mon, ?OWNER, acks, [Owner, true]),
         await(fun() ->
             Samples = call(Fleet, Mon, ?OWNER, samples, [Owner]),
             #{counters := Cs, lost := Lost} = hd(Samples),
             %% What came twice has the same number of sample: the owner was asked again.
             Shown = length(lists:usort([D
                                         || #{events := Es} <- Samples,
                                            #{kind := flood, details := D} <- Es])),
             case {Shown + maps:get(events_dropped, Lost, 0), maps:get(group_events, Cs, 0)} of
                 %% (On a busy machine the groups themselves may tell something meanwhile.)
                 {Flood, Told} when Flood >= 10_000, Told >= Flood -> true;
                 Other -> {Acks, Shown, Other}
             end
         end),
         ok = call(Fleet, N1, sderl_mon_probe, stop, [])
     end || Acks <- [true, false]].

%% As a group's process tells; a thousand at a time.
flood(Times, Many) ->
    lists:foreach(fun(I) ->
        [sderl_event:emit(info, flood, #{
            group => g, nodes => [list_to_atom("e" ++ integer_to_list((I * Many + J) rem 10_000))]
        }) || J <- lists:seq(1, Many)],
        receive after 20 -> ok end
    end, lists:seq(1, Times)),
    Times * Many.

loaded_into_a_stock_node(Config) ->
    {Fleet, [_, _, Plain, Mon]} = cluster(Config),
    true = call(Fleet, Mon, net_kernel, connect_node, [Plain]),
    ?assertEqual(non_existing, call(Fleet, Plain, code, which, [sderl_mon_probe])),
    Processes = length(call(Fleet, Plain, erlang, processes, [])),
    Code = call(Fleet, Mon, sderl_mon_probe, code, []),
    Gone = fun() ->
        case {call(Fleet, Plain, code, is_loaded, [sderl_mon_probe]),
              call(Fleet, Plain, erlang, check_old_code, [sderl_mon_probe]),
              length(call(Fleet, Plain, erlang, processes, []))} of
            {false, false, N} when N =< Processes -> true;
            Other -> {Processes, Other}
        end
    end,
    Start = fun(Opts, Acks) ->
        ok = call(Fleet, Mon, ?OWNER, inject, [Plain, Code]),
        {Owner, {ok, _}} = call(Fleet, Mon, ?OWNER, start,
                                [Plain, Opts#{interval_ms => 100}, Acks]),
        await(fun() ->
            [_ | _] = [T || #{gauges := #{procs := _}, top := [_ | _] = T} <-
                                call(Fleet, Mon, ?OWNER, samples, [Owner])],
            true
        end)
    end,
    Start(#{}, true),
    {ok, #{status := waiting, name := <<"init">>}} =
        call(Fleet, Plain, sderl_mon_probe, process, ["<0.0.0>"]),
    ok = call(Fleet, Plain, sderl_mon_probe, stop, []),
    await(Gone),
    %% Likewise when its owner says nothing any more.
    ok = call(Fleet, Mon, ?OWNER, inject, [Plain, Code]),
    {_, {ok, _}} = call(Fleet, Mon, ?OWNER, start,
                        [Plain, #{interval_ms => 100, lease_ms => 500}, false]),
    await(Gone).

%% Among two thousand names with the same beginning each is found; what there is not, is not. What
%% tracing costs is reckoned without tracing.
names_are_found(Config) ->
    {Fleet, [N1 | _]} = cluster(Config),
    [{ok, G, _} = call(Fleet, N1, s_group, new_s_group, [G, [N1]]) || G <- [many, few]],
    Names = [list_to_binary(["user_", integer_to_list(I)]) || I <- lists:seq(1, 2000)] ++
        [user_1, "user_1", {user, 1}, 1],
    ok = call(Fleet, N1, ?MODULE, named, [many, Names]),
    %% It searches for 200 ms at most, in which a busy machine may not come to the end.
    Lookup = fun Again(Name) ->
        case call(Fleet, N1, sderl_mon_probe, lookup,
                  [many, sderl_mon_types:id({group, Name})]) of
            {error, timeout} -> Again(Name);
            Answer -> Answer
        end
    end,
    [?assertMatch({Name, {ok, #{name := _, pid := _}}}, {Name, Lookup(Name)})
     || Name <- [<<"user_1">>, <<"user_2000">>, user_1, "user_1", {user, 1}, 1]],
    [?assertEqual({error, not_found}, Lookup(Name))
     || Name <- [<<"user_2001">>, <<"user_">>, {user, 2}, never_an_atom_there]],
    ?assertMatch({ok, #{names := [_], total := 1, more := false}}, begin
        ok = call(Fleet, N1, ?MODULE, named, [few, [one]]),
        call(Fleet, N1, sderl_mon_probe, names, [few, #{}])
    end),
    ?assertMatch({ok, #{more := true}},
                 call(Fleet, N1, sderl_mon_probe, names, [many, #{limit => 10}])),
    {ok, #{cost := Cost}} = call(Fleet, N1, sderl_mon_probe, trace,
                                 [#{on => true, dry => true, measure => false,
                                    max_per_s => 1_000_000}]),
    ?assertNotEqual(nomatch, binary:match(Cost, <<"at most 20000 trace messages">>), Cost),
    [ok = call(Fleet, N1, s_group, delete_s_group, [G]) || G <- [many, few]].

named(Group, Names) ->
    Pid = spawn(fun() -> receive after infinity -> ok end end),
    lists:foreach(fun(Name) ->
        yes = s_group:register_name(Group, Name, spawn(
            fun() -> Ref = monitor(process, Pid), receive {'DOWN', Ref, _, _, _} -> ok end end
        ))
    end, Names).

traces_beside_others(Config) ->
    {Fleet, [N1, N2, _, Mon]} = cluster(Config),
    true = call(Fleet, N1, net_kernel, connect_node, [N2]),
    {Owner, {ok, _}} = call(Fleet, Mon, ?OWNER, start, [N1, #{interval_ms => 100}]),
    {Sender, Counter} = call(Fleet, N1, ?MODULE, sender, [N2, 20]),
    Text = unicode:characters_to_binary(call(Fleet, N1, erlang, pid_to_list, [Sender])),
    Sessions = call(Fleet, N1, trace, session_info, [all]),
    {ok, #{cost := Cost}} = call(Fleet, N1, sderl_mon_probe, trace,
                                 [#{on => true, dry => true, pids => [Text]}]),
    ct:pal("~ts", [Cost]),
    ?assertEqual({error, {bad_option, sample, 2}},
                 call(Fleet, N1, sderl_mon_probe, trace, [#{on => true, sample => 2}])),
    ?assertEqual(Sessions, call(Fleet, N1, trace, session_info, [all])),
    Trace = fun(Opts) ->
        {ok, #{cost := _}} = call(Fleet, N1, sderl_mon_probe, trace,
                                  [Opts#{on => true, pids => [Text]}])
    end,
    Trace(#{max_per_s => 10_000}),
    N2Text = atom_to_binary(N2),
    await(fun() ->
        case [T
              || #{traffic := Ts} <- call(Fleet, Mon, ?OWNER, samples, [Owner]),
                 #{from := <<"the_sender">>, to := To, kind := cast} = T <- Ts, To =:= N2Text] of
            [#{msgs := M, bytes := B} | _] when M > 5, B > M * 1000 -> true;
            Other -> Other
        end
    end),
    %% More than it may look at: counted, and said.
    {every, 1} = call(Fleet, N1, erlang, send, [the_sender, {every, 1}]),
    Trace(#{max_per_s => 100}),
    await(fun() ->
        case last(Fleet, Mon, Owner) of
            #{lost := #{trace_not_seen := N}} when N > 0 ->
                lists:member(trace_capped, kinds(call(Fleet, Mon, ?OWNER, samples, [Owner])));
            #{lost := Lost} -> Lost
        end
    end),
    {ok, _} = {ok, call(Fleet, N1, sderl_mon_probe, trace, [#{on => false}])},
    await(fun() ->
        case call(Fleet, N1, trace, session_info, [all]) of
            Sessions -> true;
            Left -> {Sessions, Left}
        end
    end),
    %% The user's own tracer saw everything that was sent all the time.
    ?assert(call(Fleet, N1, erlang, apply, [fun() ->
        Counter ! {count, self()},
        receive {count, Sent, Seen} -> Seen >= Sent - 1 andalso Sent > 0 end
    end, []])),
    ok = call(Fleet, N1, sderl_mon_probe, stop, []).

%% A process that sends to another node every so many ms, traced by a user; gives both.
sender(Node, Every) ->
    Counter = spawn(?MODULE, counter, []),
    Sender = spawn(fun() ->
        true = register(the_sender, self()),
        sending(Node, Every, Counter, binary:copy(<<0>>, 2000), 0)
    end),
    1 = erlang:trace(Sender, true, [send, {tracer, Counter}]),
    {Sender, Counter}.

sending(Node, Every, Counter, Payload, N) ->
    {nobody, Node} ! {'$gen_cast', Payload},
    receive
        {every, New} -> sending(Node, New, Counter, Payload, N + 1);
        {sent, From} -> From ! {sent, N + 1}, sending(Node, Every, Counter, Payload, N + 1)
    after Every -> sending(Node, Every, Counter, Payload, N + 1)
    end.

counter() -> counter(0).

counter(Seen) ->
    receive
        {trace, _, send, {'$gen_cast', _}, _} -> counter(Seen + 1);
        {count, From} ->
            the_sender ! {sent, self()},
            Sent = receive {sent, N} -> N end,
            true = exit(whereis(the_sender), kill),
            From ! {count, Sent, counted(Seen, Sent)};
        _ -> counter(Seen)
    end.

counted(Seen, Sent) when Seen >= Sent - 1 -> Seen;
counted(Seen, Sent) ->
    receive
        {trace, _, send, {'$gen_cast', _}, _} -> counted(Seen + 1, Sent);
        _ -> counted(Seen, Sent)
    after 2000 -> Seen
    end.

otp() ->
    {Reds, _} = statistics(reductions),
    Links = [{{K, N}, V}
             || {N, P} <- erlang:system_info(dist_ctrl), {ok, St} <- [inet:getstat(P)],
                {K, S} <- [{in, recv_cnt}, {out, send_cnt}, {in_bytes, recv_oct},
                           {out_bytes, send_oct}],
                {S1, V} <- St, S1 =:= S],
    #{counters => maps:from_list([{reductions, Reds} | Links]),
      limits => #{proc_limit => erlang:system_info(process_limit),
                  port_limit => erlang:system_info(port_limit),
                  atom_limit => erlang:system_info(atom_limit),
                  ets_limit => erlang:system_info(ets_limit),
                  schedulers => erlang:system_info(schedulers)}}.

%% ---------------------------------------------------------------- helpers

cluster(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, 60_000).

await(Fun) -> ?assertEqual(ok, sderl_fleet:await(Fun, 60_000)).

last(Fleet, Mon, Owner) -> hd(call(Fleet, Mon, ?OWNER, samples, [Owner])).

kinds(Samples) -> [K || #{events := Es} <- Samples, #{kind := K} <- Es].

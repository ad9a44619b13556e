%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_SUITE).

%% The probe on real nodes, against what OTP says itself.

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([samples_are_right/1, stock_says_the_same/1]).

-define(OWNER, sderl_mon_probe_owner).

all() -> [samples_are_right, stock_says_the_same].

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
    await(fun() -> #{seq := S} = Last(), S > 5 end),
    %% Counters between what OTP says before and after.
    Otp = fun() -> #{counters := C} = M = call(Fleet, N1, erlang, apply, [fun otp/0, []]), M#{counters := C} end,
    Before = Otp(),
    #{seq := Seq} = Last(),
    await(fun() -> #{seq := S} = Last(), S > Seq + 1 end),
    #{counters := Cs, gauges := Gs, links := Links, sched := Sched, queues := Queues} = Sample = Last(),
    After = Otp(),
    ct:pal("~p", [Sample]),
    Within = fun(What, Value, #{counters := A}, #{counters := B}) ->
        ?assert(map_get(What, A) =< Value andalso Value =< map_get(What, B), {What, map_get(What, A), Value, map_get(What, B)})
    end,
    [Within(K, map_get(K, Cs), Before, After) || K <- [reductions, gcs, io_in, io_out]],
    [#{in_msgs := In, out_msgs := Out, in_bytes := InB, out_bytes := OutB, type := visible, reasons := Why}] = [L || #{node := N} = L <- Links, N =:= N2],
    [Within(K, V, Before, After) || {K, V} <- [{{in, N2}, In}, {{out, N2}, Out}, {{in_bytes, N2}, InB}, {{out_bytes, N2}, OutB}]],
    ?assert(lists:member(<<"{group,g}">>, Why), Why),
    ?assertMatch([#{type := hidden}], [L || #{node := N} = L <- Links, N =:= Mon]),
    ?assertEqual(map_get(limits, After), maps:with([proc_limit, port_limit, atom_limit, ets_limit, schedulers], Gs)),
    ?assertEqual(length(Queues), call(Fleet, N1, erlang, apply, [fun() -> length(statistics(run_queue_lengths_all)) end, []])),
    ?assert(lists:all(fun({_, Kind, A, T}) -> lists:member(Kind, [normal, dirty_cpu, dirty_io]) andalso A >= 0 andalso T > 0 end, Sched) andalso Sched =/= []),
    %% Facts came with the first, and not with each.
    All = call(Fleet, Mon, ?OWNER, samples, [Owner]),
    [#{facts := Facts} | _] = [S || #{facts := _} = S <- All],
    ?assertMatch(#{groups := [#{group := g, members := [_, _], coordinator := N1}], application := true}, Facts),
    ?assert(length([S || #{facts := _} = S <- All]) < length(All) div 2 + 2),
    %% A change of the groups is pushed at once, with facts.
    {ok, h, _} = call(Fleet, N1, s_group, new_s_group, [h, [N1]]),
    await(fun() -> case [F || #{facts := F} <- call(Fleet, Mon, ?OWNER, samples, [Owner])] of
        [#{groups := [#{group := g}, #{group := h}]} | _] -> true;
        Other -> Other
    end end),
    ok = call(Fleet, N1, s_group, delete_s_group, [h]),
    await(fun() -> lists:member(group_deleted, kinds(call(Fleet, Mon, ?OWNER, samples, [Owner]))) end),
    Probe = call(Fleet, N1, erlang, whereis, [sderl_mon_probe]),
    ok = call(Fleet, N1, sderl_mon_probe, stop, []),
    ?assertEqual(undefined, call(Fleet, N1, erlang, whereis, [sderl_mon_probe])),
    ok = call(Fleet, N1, s_group, delete_s_group, [g]).

stock_says_the_same(Config) ->
    {Fleet, [N1, _, Plain, Mon]} = cluster(Config),
    Stock = fun(Node, Opts) -> call(Fleet, Mon, sderl_mon_stock, sample, [Node, Opts]) end,
    ?assertEqual({error, not_connected}, Stock('nobody@127.0.0.1', #{seq => 1})),
    [begin
        true = call(Fleet, Mon, net_kernel, connect_node, [Node]),
        Before = call(Fleet, Node, erlang, statistics, [reductions]),
        {ok, #{counters := Cs, gauges := Gs, links := Links, facts := Facts} = Sample} = Stock(Node, #{seq => 7, facts => true}),
        After = call(Fleet, Node, erlang, statistics, [reductions]),
        ?assert(element(1, Before) =< map_get(reductions, Cs) andalso map_get(reductions, Cs) =< element(1, After)),
        ?assertMatch([#{type := hidden, out_bytes := Out}] when Out > 0, [L || #{node := N} = L <- Links, N =:= Mon]),
        ?assert(map_get(uptime_s, Gs) >= 0 andalso map_get(uptime_s, Gs) < 600),
        ?assertMatch(#{source := stock, seq := 7, v := 1}, Sample),
        ?assertMatch(#{otp := _, cpu_topology := [_ | _]}, Facts),
        %% The same shape as the probe's.
        {Owner, {ok, _}} = case Node of Plain -> {none, {ok, none}}; _ -> call(Fleet, Mon, ?OWNER, start, [Node, #{interval_ms => 100}]) end,
        _ = Owner =:= none orelse begin
            await(fun() -> [#{} | _] = call(Fleet, Mon, ?OWNER, samples, [Owner]), true end),
            ?assertEqual([], maps:keys(Sample) -- maps:keys(lists:last(call(Fleet, Mon, ?OWNER, samples, [Owner])))),
            ok = call(Fleet, Node, sderl_mon_probe, stop, [])
        end
     end || Node <- [N1, Plain]].

otp() ->
    {Reds, _} = statistics(reductions),
    {Gcs, _, _} = statistics(garbage_collection),
    {{input, In}, {output, Out}} = statistics(io),
    Links = [{{K, N}, V} || {N, P} <- erlang:system_info(dist_ctrl), {ok, St} <- [inet:getstat(P)],
                            {K, S} <- [{in, recv_cnt}, {out, send_cnt}, {in_bytes, recv_oct}, {out_bytes, send_oct}], {S1, V} <- St, S1 =:= S],
    #{counters => maps:from_list([{reductions, Reds}, {gcs, Gcs}, {io_in, In}, {io_out, Out} | Links]),
      limits => #{proc_limit => erlang:system_info(process_limit), port_limit => erlang:system_info(port_limit),
                  atom_limit => erlang:system_info(atom_limit), ets_limit => erlang:system_info(ets_limit), schedulers => erlang:system_info(schedulers)}}.

%% ---------------------------------------------------------------- helpers

cluster(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, 30_000).

await(Fun) -> ?assertEqual(ok, sderl_fleet:await(Fun, 30_000)).

last(Fleet, Mon, Owner) -> hd(call(Fleet, Mon, ?OWNER, samples, [Owner])).

kinds(Samples) -> [K || #{events := Es} <- Samples, #{kind := K} <- Es].

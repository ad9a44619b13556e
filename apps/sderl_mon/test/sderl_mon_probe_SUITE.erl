%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_SUITE).

%% The probe on real nodes, against what OTP says itself.

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([samples_are_right/1]).

-define(OWNER, sderl_mon_probe_owner).

all() -> [samples_are_right].

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

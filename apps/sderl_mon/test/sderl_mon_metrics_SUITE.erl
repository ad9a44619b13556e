%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_metrics_SUITE).

%% The application's own metrics on real nodes: from a telemetry event and a counter to the frames
%% of a hub; and nothing stays behind.

-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([shown_and_changed/1, probe_is_killed/1, loaded_into_a_stock_node/1]).
%% On the nodes.
-export([start_telemetry/1, stop_telemetry/0, put_array/0, order/2, left/0]).

-define(SOON, 90_000).
-define(EVENT, [shop, order, done]).
-define(KEY, {shop, numbers}).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [shown_and_changed, probe_is_killed, loaded_into_a_stock_node].

init_per_suite(Config) ->
    Owner = spawn(fun() -> receive release -> ok end end),
    {ok, Fleet} = sderl_fleet:start(#{owner => Owner, families => [
        #{name => n, count => 2, apps => [sderl]},
        #{name => plain, count => 1, paths => []},
        #{name => m, count => 1, hidden => true}]}),
    [N1, N2, Plain, M] = sderl_fleet:nodes(Fleet),
    ok = call(Fleet, M, application, set_env, [sderl_mon, config, #{
        seeds => [N1, N2, Plain], inject => true, metrics => metrics()
    }]),
    {ok, _} = call(Fleet, M, application, ensure_all_started, [sderl_mon]),
    [{fleet, Fleet}, {owner, Owner} | Config].

end_per_suite(Config) ->
    ok = sderl_fleet:stop(proplists:get_value(fleet, Config)),
    proplists:get_value(owner, Config) ! release.

metrics() ->
    [
        #{name => orders, kind => counter, event => ?EVENT, tags => [status], most_tags => 2},
        #{name => price, kind => last, event => ?EVENT, measurement => price},
        #{name => sessions, kind => gauge, counter => {?KEY, 1}},
        #{name => visits, kind => counter, counter => {?KEY, 2}}
    ].

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?SOON).

await(Fun) -> ?assertEqual(ok, sderl_fleet:await(Fun, ?SOON)).

%% The numbers of the application on a node, as the hub has them.
shown(Fleet, M, Node) ->
    case call(Fleet, M, sderl_mon_hub, at, [live, erlang:system_time(millisecond)]) of
        {ok, #{frame := #{nodes := Nodes}}} ->
            maps:filter(fun(Key, _) -> is_binary(Key) end,
                        maps:get(sderl_mon_types:id(Node), Nodes, #{}));
        {error, none} -> #{}
    end.

%% ---------------------------------------------------------------- on a node

%% A stand-in for the library `telemetry`, where that is not to be had: its functions, and the
%% process by whose name it is seen to run.
start_telemetry(Code) ->
    {module, telemetry} = code:load_binary(telemetry, "stand-in", Code),
    Self = self(),
    Pid = spawn(fun() ->
        true = register(telemetry_handler_table, self()),
        telemetry = ets:new(telemetry, [bag, named_table, public]),
        Self ! {self(), started},
        receive stop -> ok end
    end),
    receive {Pid, started} -> ok end.

stop_telemetry() ->
    Ref = monitor(process, telemetry_handler_table),
    telemetry_handler_table ! stop,
    receive {'DOWN', Ref, process, _, _} -> ok end.

telemetry() ->
    Source =
        "-module(telemetry). -export([attach/4, detach/1, execute/3]).\n"
        "attach(Id, Event, Fun, Config) ->\n"
        "    case ets:match_object(telemetry, {'_', Id, '_', '_'}) of\n"
        "        [] -> true = ets:insert(telemetry, {Event, Id, Fun, Config}), ok;\n"
        "        _ -> {error, already_exists}\n"
        "    end.\n"
        "detach(Id) ->\n"
        "    case ets:match_object(telemetry, {'_', Id, '_', '_'}) of\n"
        "        [] -> {error, not_found};\n"
        "        _ -> true = ets:match_delete(telemetry, {'_', Id, '_', '_'}), ok\n"
        "    end.\n"
        "execute(Event, Measurements, Meta) ->\n"
        "    [try Fun(Event, Measurements, Meta, Config) catch _:_ -> detach(Id) end\n"
        "     || {_, Id, Fun, Config} <- ets:lookup(telemetry, Event)], ok.\n",
    {ok, Tokens, _} = erl_scan:string(Source),
    {ok, telemetry, Code} = compile:forms(forms(Tokens, []), []),
    Code.

forms([], []) -> [];
forms([{dot, _} = Dot | Rest], Acc) ->
    {ok, Form} = erl_parse:parse_form(lists:reverse(Acc, [Dot])),
    [Form | forms(Rest, [])];
forms([Token | Rest], Acc) -> forms(Rest, [Token | Acc]).

put_array() ->
    Array = counters:new(2, [write_concurrency]),
    counters:put(Array, 1, 42),
    persistent_term:put(?KEY, Array).

%% So many orders, and as many visits.
order(Status, N) ->
    Array = persistent_term:get(?KEY),
    lists:foreach(fun(I) ->
        ok = telemetry:execute(?EVENT, #{price => I}, #{status => Status}),
        counters:add(Array, 2, 1)
    end, lists:seq(1, N)).

%% What of all this is on a node: handlers, tables, modules.
left() ->
    {case ets:whereis(telemetry) of undefined -> 0; _ -> ets:info(telemetry, size) end,
     length([T || T <- ets:all(), ets:info(T, name) =:= sderl_mon_probe_metrics]),
     code:is_loaded(sderl_mon_probe_meter) =/= false}.

%% ---------------------------------------------------------------- cases

shown_and_changed(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [N1, N2, _, M] = sderl_fleet:nodes(Fleet),
    ok = call(Fleet, N1, ?MODULE, put_array, []),
    await(fun() -> #{~"sessions" := S} = shown(Fleet, M, N1), S == 42 end),
    %% A node that has neither has no numbers, and no finding.
    ?assertEqual(#{}, shown(Fleet, M, N2)),
    %% Telemetry may start later, and again.
    Code = telemetry(),
    lists:foreach(fun(_) ->
        ok = call(Fleet, N1, ?MODULE, start_telemetry, [Code]),
        await(fun() -> {2, 1, true} =:= call(Fleet, N1, ?MODULE, left, []) end),
        ok = call(Fleet, N1, ?MODULE, stop_telemetry, [])
    end, [once, again]),
    ok = call(Fleet, N1, ?MODULE, start_telemetry, [Code]),
    await(fun() -> {2, 1, true} =:= call(Fleet, N1, ?MODULE, left, []) end),
    %% Of three values of a tag two have a series; none of the events is lost.
    [ok = call(Fleet, N1, ?MODULE, order, [Status, 100]) || Status <- [ok, ~"failed", 7]],
    All = [~"orders{status=\"(other)\"}", ~"orders{status=\"failed\"}", ~"orders{status=\"ok\"}",
           ~"price", ~"sessions", ~"visits"],
    await(fun() -> lists:sort(maps:keys(shown(Fleet, M, N1))) =:= All end),
    Family = sderl_mon_types:family(sderl_mon_types:id(N1)),
    Counted = fun(What, From) ->
        Now = erlang:system_time(millisecond),
        {ok, #{columns := Columns}} =
            call(Fleet, M, sderl_mon_hub, series, [live, What, From, Now, 2000]),
        {map_size(Columns), lists:sum([V || _ := Vs <- Columns, V <- Vs, V =/= null])}
    end,
    Ordered = {over, {family, Family}, ~"orders", sum},
    %% Columns are means, and a frame without a metric has no part in these: so they are compared
    %% where both metrics were there before.
    await(fun() -> {3, +0.0} == Counted(Ordered, erlang:system_time(millisecond) - 3000) end),
    Quiet = erlang:system_time(millisecond),
    [ok = call(Fleet, N1, ?MODULE, order, [Status, 100]) || Status <- [ok, ~"failed", 7]],
    %% There were as many visits as orders. (Of a frame that comes between the two questions only
    %% one has the numbers.)
    await(fun() ->
        {3, Orders} = Counted(Ordered, Quiet),
        {1, Visits} = Counted({over, cluster, ~"visits", sum}, Quiet),
        Orders > 0 andalso abs(Orders - Visits) < 0.02 * Visits orelse {Orders, Visits}
    end),
    ?assert(map_get(metrics_tags_over, map_get(lost, call(Fleet, M, sderl_mon_hub, info, []))) > 0),
    %% Prometheus gets the same. (On a busy machine a frame may be without a node's numbers.)
    Line = iolist_to_binary(["\nsderl_app_sessions{node=\"", atom_to_binary(N1), "\"} 42"]),
    await(fun() ->
        {ok, #{topology := Topology, frame := Frame}} =
            call(Fleet, M, sderl_mon_hub, at, [live, erlang:system_time(millisecond)]),
        Text = iolist_to_binary(sderl_mon_prometheus:text(
            Topology, Frame, [], call(Fleet, M, sderl_mon_metrics, application, []))),
        binary:match(Text, Line) =/= nomatch orelse Text
    end),
    %% Others are wanted, and then none: nothing of them stays.
    ok = call(Fleet, M, sderl_mon, set, [#{metrics => [hd(metrics())]}]),
    await(fun() -> {1, 1, true} =:= call(Fleet, N1, ?MODULE, left, []) end),
    ok = call(Fleet, M, sderl_mon, set, [#{metrics => []}]),
    await(fun() -> {0, 0, true} =:= call(Fleet, N1, ?MODULE, left, []) end),
    await(fun() -> shown(Fleet, M, N1) =:= #{} end),
    ok = call(Fleet, M, sderl_mon, set, [#{metrics => metrics()}]),
    await(fun() -> {2, 1, true} =:= call(Fleet, N1, ?MODULE, left, []) end).

%% The handlers go with it, however it ends; another probe attaches its own.
probe_is_killed(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [N1, _, _, _] = sderl_fleet:nodes(Fleet),
    await(fun() -> {2, 1, true} =:= call(Fleet, N1, ?MODULE, left, []) end),
    Probe = call(Fleet, N1, erlang, whereis, [sderl_mon_probe]),
    true = call(Fleet, N1, erlang, exit, [Probe, kill]),
    await(fun() ->
        New = call(Fleet, N1, erlang, whereis, [sderl_mon_probe]),
        is_pid(New) andalso New =/= Probe
            andalso {2, 1, true} =:= call(Fleet, N1, ?MODULE, left, [])
    end),
    ok = call(Fleet, N1, ?MODULE, order, [ok, 10]).

%% Where the probe was loaded into the node, its code goes, too.
loaded_into_a_stock_node(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [_, _, Plain, M] = sderl_fleet:nodes(Fleet),
    {?MODULE, Own, File} = code:get_object_code(?MODULE),
    {module, ?MODULE} = call(Fleet, Plain, code, load_binary, [?MODULE, File, Own]),
    ok = call(Fleet, Plain, ?MODULE, start_telemetry, [telemetry()]),
    await(fun() -> {2, 1, true} =:= call(Fleet, Plain, ?MODULE, left, []) end),
    ok = call(Fleet, M, application, stop, [sderl_mon]),
    await(fun() -> {0, 0, false} =:= call(Fleet, Plain, ?MODULE, left, []) end).

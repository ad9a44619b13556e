%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_shadow).
-moduledoc """
The shadow network beside the nodes of a fleet: hidden nodes of the same fleet that run the
application `sderl_mon`, with its default settings, as one would in production.

```erlang
{ok, Shadow} = sderl_bench_shadow:start(Fleet, Nodes, #{}),
ok = sderl_bench_shadow:await(Shadow, 30_000),      %% all nodes tell their numbers
Seen = sderl_bench_shadow:seen(Shadow),             %% since then
ok = sderl_bench_shadow:stop(Shadow).
```

A subscriber of the hub on the monitoring node makes the measurements
(`m:sderl_bench_shadow_view`). The application is called only over the fleet's control channel.
""".

-export([start/3, await/2, settle/2, again/1, seen/1, stop/1]).
-export([monitors/1, viewer/2, id/1, call/5]).
-export_type([shadow/0]).

-doc "Monitoring nodes and what is watched; `views` are the subscribers on them.".
-opaque shadow() ::
    #{fleet := pid(), nodes := [node()], monitors := [node()], views := #{node() => pid()}}.

-define(CALL_MS, 60_000).

-doc """
Starts monitoring nodes, `monitors` of them (1), that watch these nodes; `config` adds to the
configuration of `sderl_mon`. They are among the nodes of the fleet until `stop/1`. An error is one
of `sderl_fleet:start_nodes/2`, or `{not_monitoring, Node, Reason}`.
""".
-spec start(Fleet :: pid(), [node()], #{monitors => pos_integer(), config => map()}) ->
    {ok, shadow()} | {error, term()}.
start(Fleet, Nodes, Options) ->
    Family = #{name => monitor, count => maps:get(monitors, Options, 1), hidden => true,
               connect_all => false, apps => []},
    maybe
        {ok, Monitors} ?= sderl_fleet:start_nodes(Fleet, [Family]),
        Shadow = #{fleet => Fleet, nodes => Nodes, monitors => Monitors, views => #{}},
        Config = maps:merge(#{seeds => Nodes, monitors => Monitors},
                            maps:get(config, Options, #{})),
        case begun(Shadow, Config) of
            {ok, Views} -> {ok, Shadow#{views := Views}};
            {error, _} = Error -> ok = stop(Shadow), Error
        end
    end.

begun(#{fleet := Fleet, monitors := Monitors, nodes := Nodes}, Config) ->
    Answers = sderl_fleet:multicall(Fleet, Monitors, sderl_bench_shadow_view, start,
                                    [Config, [id(Node) || Node <- Nodes]], ?CALL_MS),
    case [{Node, Answer} || {Node, Answer} <- Answers, not is_view(Answer)] of
        [] -> {ok, #{Node => View || {Node, {ok, {ok, View}}} <- Answers}};
        [{Node, Answer} | _] -> {error, {not_monitoring, Node, Answer}}
    end.

is_view({ok, {ok, View}}) -> is_pid(View);
is_view(_) -> false.

-doc "Waits until a frame of each hub has all nodes.".
-spec await(shadow(), Ms :: pos_integer()) -> ok | {error, {timeout, Missing :: term()}}.
await(#{views := Views} = Shadow, Ms) ->
    sderl_fleet:await(
        fun() ->
            case lists:usort(lists:append([call(Shadow, Node, sderl_bench_shadow_view, missing,
                                                [View])
                                           || Node := View <- Views])) of
                [] -> true;
                Missing -> {length(Missing), lists:sublist(Missing, 3)}
            end
        end,
        Ms
    ).

-doc """
Waits until all probes have done twice what they do seldom, whose first time costs the most; at most
so long, because on a busy machine, and on one whose load is not known, that may never be seen.
""".
-spec settle(shadow(), Ms :: pos_integer()) -> ok.
settle(#{views := Views} = Shadow, Ms) ->
    _ = sderl_fleet:await(fun() ->
        lists:all(fun({Node, View}) ->
            [] =:= call(Shadow, Node, sderl_bench_shadow_view, unsettled, [View])
        end, maps:to_list(Views))
    end, Ms),
    ok.

-doc "Starts counting again from 0.".
-spec again(shadow()) -> ok.
again(#{views := Views} = Shadow) ->
    lists:foreach(fun({Node, View}) ->
        ok = call(Shadow, Node, sderl_bench_shadow_view, again, [View])
    end, maps:to_list(Views)).

-doc "The counts of the first monitoring node that answers.".
-spec seen(shadow()) -> sderl_bench_shadow_view:seen().
seen(#{monitors := [Node | Others]} = Shadow) ->
    case sderl_fleet_task:attempt(fun() ->
        call(Shadow, Node, sderl_bench_shadow_view, seen, [viewer(Shadow, Node)])
    end) of
        {error, Reason} when Others =:= [] -> error(Reason);
        {error, _} -> seen(Shadow#{monitors := Others});
        Seen -> Seen
    end.

-doc """
Ends the monitoring nodes. The probes end by themselves, within seconds; those that still answer are
ended at once.
""".
-spec stop(shadow()) -> ok.
stop(#{fleet := Fleet, nodes := Nodes, monitors := Monitors}) ->
    lists:foreach(fun(Node) -> _ = sderl_fleet:kill(Fleet, Node) end, Monitors),
    _ = sderl_fleet:multicall(Fleet, Nodes, sderl_mon_probe, stop, [], ?CALL_MS),
    ok.

-doc "Its monitoring nodes.".
-spec monitors(shadow()) -> [node()].
monitors(#{monitors := Monitors}) -> Monitors.

-doc "The subscriber on a monitoring node.".
-spec viewer(shadow(), node()) -> pid().
viewer(#{views := Views}, Node) -> map_get(Node, Views).

-doc "A call on a node of the fleet.".
-spec call(shadow(), node(), module(), atom(), [term()]) -> term().
call(#{fleet := Fleet}, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?CALL_MS).

-doc "How the shadow network names a node.".
-spec id(node()) -> binary().
id(Node) -> atom_to_binary(Node).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_sim).

%% Masters of a shadow network on simulated nodes: the pure cores, a network that loses what is cut,
%% and agents that report what a simulated cluster is like.

-export([new/2, op/2, quiet/2, seen/1, told/1]).

-define(STEP, 50).
-define(TICK, 200).
-define(REPORT, 1000).

%% Cluster :: #{node() => [Group]}.
new(Monitors, Cluster) ->
    Config = #{
        seeds => maps:keys(Cluster), monitors => Monitors, nodes => all, inject => false,
        probe => auto, interval_ms => 1000, thresholds => #{}
    },
    Sim = #{
        now => 0, settings => #{M => #{config => Config, stamps => #{}} || M <- Monitors},
        cluster => Cluster, down => [], cores => #{}, running => #{},
        paused => #{}, cut => [], queue => [], topologies => #{}, told => []
    },
    lists:foldl(fun start/2, Sim, Monitors).

start(M, #{cores := Cores, settings := Settings, now := Now, running := Running} = Sim) ->
    Specs = maps:get(M, Running, []),
    Core = sderl_mon_master_core:new(M, maps:get(M, Settings), Now),
    Sim1 = Sim#{cores := Cores#{M => Core}},
    report(M, step(M, {adopted, Specs}, Sim1)).

op({wait, Ms}, Sim) ->
    run(Ms div ?STEP, Sim);
op({kill, M}, #{cores := Cores, running := Running, paused := Paused} = Sim) ->
    #{settings := #{M := Set} = Settings, queue := Queue} = Sim,
    %% The file has what was set, and not when.
    Dead = Sim#{settings := Settings#{M := Set#{stamps := #{}}},
                queue := [Message || {_, To, _} = Message <- Queue, To =/= M],
                cores := maps:remove(M, Cores), running := maps:remove(M, Running),
                paused := maps:remove(M, Paused)},
    lists:foldl(fun(Other, S) -> send(M, Other, {monitor_down, M}, S) end, Dead,
                maps:keys(maps:remove(M, Cores)));
op({restart, M}, #{cores := Cores} = Sim) when not is_map_key(M, Cores) ->
    start(M, Sim);
%% The process alone.
op({crash, M}, #{cores := Cores} = Sim) when is_map_key(M, Cores) ->
    start(M, Sim);
op({pause, M}, #{cores := Cores, paused := Paused} = Sim) when is_map_key(M, Cores) ->
    Sim#{paused := Paused#{M => true}};
op({resume, M}, #{paused := Paused} = Sim) ->
    Sim#{paused := maps:remove(M, Paused)};
op({cut, M, M}, Sim) ->
    Sim;
op({cut, A, B}, #{cut := Cut} = Sim) ->
    send(B, A, {monitor_down, B},
         send(A, B, {monitor_down, A}, Sim#{cut := [{A, B}, {B, A} | Cut]}));
op(heal, Sim) ->
    Sim#{cut := []};
%% As the settings of that node do.
op({set, M, Options}, #{settings := Settings, now := Now} = Sim) ->
    put_in_force(M, sderl_mon_shared:set(Options, M, Now, maps:get(M, Settings)), Sim);
op({groups, Node, Groups}, #{cluster := Cluster} = Sim) ->
    Sim#{cluster := Cluster#{Node => lists:usort(Groups)}};
op({down, Node}, #{down := Down} = Sim) ->
    Sim#{down := lists:usort([Node | Down])};
op({up, Node}, #{down := Down} = Sim) ->
    Sim#{down := lists:delete(Node, Down)};
op(_, Sim) ->
    Sim.

%% The events that were told since the last time, and to which hubs.
told(#{told := Told} = Sim) -> {Told, Sim#{told := []}}.

%% Everything is well again, for so long.
quiet(Ms, #{paused := Paused, cores := _} = Sim) ->
    Resumed = lists:foldl(fun(M, S) -> op({resume, M}, S) end, op(heal, Sim), maps:keys(Paused)),
    op({wait, Ms}, Resumed).

%% What is so: who lives, who leads, who follows whom, who runs what.
seen(#{cores := Cores, running := Running, topologies := Topologies, cluster := Cluster,
       down := Down, settings := Settings}) ->
    #{
        live => lists:sort(maps:keys(Cores)),
        leaders => [M || M := C <- Cores, sderl_mon_master_core:leads(C)],
        masters => lists:usort([maps:get(master, sderl_mon_master_core:status(C))
                                || _ := C <- Cores]),
        terms => lists:usort([sderl_mon_master_core:term(C) || _ := C <- Cores]),
        scopes => lists:sort([{S, lists:sort(Ns)}
                              || _ := Specs <- Running, #{scope := S, nodes := Ns} <- Specs]),
        configs => lists:usort([C || _ := Specs <- Running, #{config := C} <- Specs]),
        shared => #{M => {sderl_mon_master_core:shared(C), maps:get(M, Settings)}
                    || M := C <- Cores},
        monitored => lists:sort([N || _ := Specs <- Running, #{nodes := Ns} <- Specs, N <- Ns]),
        topologies => #{M => maps:get(M, Topologies, none) || M := _ <- Cores},
        cluster => Cluster,
        down => Down
    }.

run(0, Sim) -> Sim;
run(N, #{now := Now} = Sim) -> run(N - 1, ticks(delivered(Sim#{now := Now + ?STEP}))).

ticks(#{now := Now} = Sim) ->
    Sim1 = case Now rem ?TICK of 0 -> each(fun(M, S) -> step(M, tick, S) end, Sim); _ -> Sim end,
    case Now rem ?REPORT of 0 -> each(fun report/2, Sim1); _ -> Sim1 end.

each(Fun, #{cores := Cores} = Sim) ->
    lists:foldl(Fun, Sim, maps:keys(maps:without(maps:keys(maps:get(paused, Sim)), Cores))).

delivered(#{queue := Queue, paused := Paused, now := Now} = Sim) ->
    {Due, Later} = lists:partition(fun({At, To, _}) ->
        At =< Now andalso not is_map_key(To, Paused)
    end, lists:reverse(Queue)),
    lists:foldl(fun({_, To, Event}, S) -> step(To, Event, S) end,
                Sim#{queue := lists:reverse(Later)}, Due).

step(M, {adopt_config, Shared}, #{settings := Settings} = Sim) ->
    put_in_force(M, sderl_mon_shared:adopt(Shared, maps:get(M, Settings)), Sim);
step(M, Event, #{cores := Cores, now := Now} = Sim) ->
    case Cores of
        #{M := Core} ->
            {Effects, Core1} = sderl_mon_master_core:step(Event, Now, Core),
            lists:foldl(fun(E, S) -> effect(M, E, S) end, Sim#{cores := Cores#{M := Core1}},
                        Effects);
        #{} ->
            Sim
    end.

effect(M, {tell, To, Kind, Payload}, Sim) -> send(M, To, {peer, Kind, M, Payload}, Sim);
effect(M, {settle, _}, #{now := Now, queue := Queue} = Sim) ->
    Sim#{queue := [{Now + ?STEP, M, settle} | Queue]};
effect(M, {run, Specs}, #{running := Running} = Sim) ->
    report(M, Sim#{running := Running#{M => Specs}});
effect(M, {adopt_config, _} = Event, #{now := Now, queue := Queue} = Sim) ->
    Sim#{queue := [{Now + ?STEP, M, Event} | Queue]};
effect(_, {topology, Hubs, T}, #{topologies := Ts} = Sim) ->
    Sim#{topologies := maps:merge(Ts, #{H => T || H <- Hubs})};
effect(_, {events, Hubs, _, Events}, #{told := Told} = Sim) ->
    Sim#{told := Told ++ [{Hubs, Kind, Text} || #{kind := Kind, text := Text} <- Events]};
effect(_, _, Sim) -> Sim.

%% Master and settings take a moment to hear of each other.
put_in_force(M, Shared, #{settings := Settings, now := Now, queue := Queue} = Sim) ->
    case Settings of
        #{M := Shared} -> Sim;
        #{} -> Sim#{settings := Settings#{M := Shared},
                    queue := [{Now + ?STEP, M, {config, Shared}} | Queue]}
    end.

send(From, To, Event, #{cut := Cut, now := Now, queue := Queue} = Sim) ->
    case lists:member({From, To}, Cut) andalso element(1, Event) =/= monitor_down of
        true -> Sim;
        false -> Sim#{queue := [{Now + ?STEP, To, Event} | Queue]}
    end.

%% All agents of a monitoring node.
report(M, #{running := Running} = Sim) ->
    lists:foldl(
        fun(#{scope := Scope, nodes := Nodes, hubs := Hubs, term := Term}, S) ->
            Payload = #{scope => Scope, term => Term, nodes => #{N => said(N, S) || N <- Nodes}},
            lists:foldl(fun(H, S1) -> send(M, H, {peer, report, M, Payload}, S1) end, S, Hubs)
        end,
        Sim,
        maps:get(M, Running, [])
    ).

said(Node, #{cluster := Cluster, down := Down}) ->
    case lists:member(Node, Down) of
        true ->
            #{status => down, why => <<"down">>, source => none, facts => #{}, peers => []};
        false ->
            Groups = [#{group => G, members => [N || N := Gs <- Cluster, lists:member(G, Gs)],
                        names => 0, coordinator => Node}
                      || G <- maps:get(Node, Cluster)],
            #{status => up, why => <<>>, source => probe, facts => #{groups => Groups}, peers => []}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_live).
-moduledoc """
Keeps the demo's nodes a little busy while they stay up, so that the dashboard has something to show.

Every node calls servers of its groups and of others a few times a second, at a pace that differs by group and comes and goes
over a minute, registers a name now and then for some seconds, and once in a long while loses a server, which its supervisor
restarts. A node that is killed comes back after a few seconds.
""".

-export([start/2, on_node/1, nodes/2, mend/3]).
-export_type([away/0, nodes/0]).

-doc "Since when (`erlang:monotonic_time(millisecond)`) which nodes are down.".
-type away() :: #{node() => integer()}.

-doc "Nodes that come back when they have been killed, with what is to be done when they run again.".
-type nodes() :: #{node() => fun(() -> ok)}.

-define(START_MS, 10_000).
-define(BACK_MS, 4_000).
-define(RESTART_MS, 60_000).
%% One round of calls at one pace.
-define(ROUND_US, 2_000_000).
-define(WAVE_MS, 60_000).
-define(NAME_MS, 6_000).
-define(KILL_MS, 180_000).

-doc "Starts it on all nodes of a site.".
-spec start(Fleet :: pid(), sderl_demo_load:site()) -> ok | {error, term()}.
start(Fleet, Site) ->
    case sderl_demo_cluster:on_all(Fleet, Site, ?MODULE, on_node, [Site], ?START_MS) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

-doc "Starts it on this node, until the node ends. Once only.".
-spec on_node(sderl_demo_load:site()) -> ok.
on_node(Site) ->
    _ = spawn(fun() ->
        true = register(?MODULE, self()),
        Env = sderl_demo_load:env(Site, 1, live),
        _ = spawn_link(fun() -> names(Env, 1) end),
        _ = spawn_link(fun() -> kills() end),
        calls(Env, 1)
    end),
    ok.

calls(#{seed := Seed} = Env, Round) ->
    _ = sderl_demo_client:calls(Env#{
        until_us := erlang:monotonic_time(microsecond) + ?ROUND_US,
        pause_ms := pause_ms(Env, erlang:system_time(millisecond)),
        seed := Seed + Round
    }),
    calls(Env, Round + 1).

%% 3 to 25 calls a second.
pause_ms(#{home := Home}, NowMs) ->
    Group = erlang:phash2(Home, 4),
    Wave = 1 + math:sin(2 * math:pi() * (NowMs / ?WAVE_MS + Group / 4)),
    round(40 * (1 + Group / 2) * (1 + Wave)).

names(#{registry := Registry, home := Group, tag := Tag} = Env, I) ->
    Name = {visitor, Tag, I},
    _ = Registry:register(Group, Name, self()),
    rest(?NAME_MS),
    _ = Registry:unregister(Group, Name),
    rest(?NAME_MS),
    names(Env, I + 1).

kills() ->
    rest(?KILL_MS),
    case sderl_demo_sup:servers() of
        [] ->
            ok;
        Servers ->
            {_, Pid} = lists:nth(rand:uniform(length(Servers)), Servers),
            true = exit(Pid, kill)
    end,
    kills().

%% Not all nodes at once.
rest(Ms) ->
    receive
    after Ms div 2 + rand:uniform(Ms) -> ok
    end.

-doc "The nodes of a site: they get their servers and their load again.".
-spec nodes(Fleet :: pid(), sderl_demo_load:site()) -> nodes().
nodes(Fleet, #{nodes := Nodes} = Site) -> #{Node => fun() -> again(Fleet, Site, Node) end || Node <- Nodes}.

again(Fleet, Site, Node) ->
    ok = sderl_fleet:call(Fleet, Node, sderl_demo_groups, await, [Site, ?RESTART_MS], ?RESTART_MS),
    ok = sderl_fleet:call(Fleet, Node, sderl_demo_load, servers, [Site], ?RESTART_MS),
    ok = sderl_fleet:call(Fleet, Node, ?MODULE, on_node, [Site], ?START_MS).

-doc "Brings nodes back that have been down for some seconds. Gives those that are down now.".
-spec mend(Fleet :: pid(), nodes(), away()) -> away().
mend(Fleet, Nodes, Away) ->
    Info = sderl_fleet:info(Fleet),
    Now = erlang:monotonic_time(millisecond),
    Down = #{Node => maps:get(Node, Away, Now) || Node := _ <- Nodes, #{status := down} <- [maps:get(Node, Info, none)]},
    #{Node => Since || Node := Since <- Down, Now - Since < ?BACK_MS orelse not back(Fleet, Node, maps:get(Node, Nodes))}.

back(Fleet, Node, Again) ->
    Back = sderl_fleet_task:attempt(fun() ->
        {ok, Node} = sderl_fleet:restart(Fleet, Node),
        Again()
    end),
    Back =:= ok.

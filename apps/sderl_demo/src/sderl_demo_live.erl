%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_live).
-moduledoc """
Keeps the demo's nodes a little busy while they stay up, so that the dashboard has something to
show.

On every node some clients (`sderl_demo_caller`) call servers of its groups and, by routing, of
others; now and then a name is registered for some seconds, and every few minutes a server is
killed, which its supervisor restarts. All of it is supervised, and a node that is killed comes back
after a few seconds.
""".

-export([start/2, on_node/1, counts/0, counts/2, nodes/2, mend/3]).
-export([start_visitor/1, start_killer/0]).
-export_type([away/0, nodes/0]).

-doc """
The nodes that are down, or run again without their load, and since when
(`erlang:monotonic_time(millisecond)`).
""".
-type away() :: #{node() => integer()}.

-doc """
Nodes that are restarted when they have been killed, and what is to be done when they run again.
""".
-type nodes() :: #{node() => fun(() -> ok)}.

-define(CLIENTS, 3).
-define(START_MS, 10_000).
-define(BACK_MS, 4_000).
-define(RESTART_MS, 60_000).
-define(NAME_MS, 6_000).
-define(KILL_MS, 180_000).

-doc "Starts the load on all nodes of a site.".
-spec start(Fleet :: pid(), sderl_demo_load:site()) -> ok | {error, term()}.
start(Fleet, Site) ->
    case sderl_demo_cluster:on_all(Fleet, Site, ?MODULE, on_node, [Site], ?START_MS) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

-doc "Starts the load on this node, until the node ends; exits where that fails.".
-spec on_node(sderl_demo_load:site()) -> ok.
on_node(Site) ->
    Clients = [sderl_demo_load:env(Site, K, live) || K <- lists:seq(1, ?CLIENTS)],
    case sderl_demo_live_sup:start(Clients, hd(Clients)) of
        ok -> ok;
        {error, Reason} -> exit(Reason)
    end.

-doc "The counts of the clients of some nodes, those of each node in their order.".
-spec counts(Fleet :: pid(), [node()]) -> #{node() => [sderl_demo_caller:counts()]}.
counts(Fleet, Nodes) ->
    #{Node => sderl_fleet:call(Fleet, Node, ?MODULE, counts, [], ?START_MS) || Node <- Nodes}.

-doc "The same of this node.".
-spec counts() -> [sderl_demo_caller:counts()].
counts() -> [sderl_demo_caller:counts(Caller) || Caller <- sderl_demo_live_sup:callers()].

-doc "Starts the process that registers names in the node's own group, one after the other.".
-spec start_visitor(sderl_demo_client:env()) -> {ok, pid()}.
start_visitor(Env) -> {ok, proc_lib:spawn_link(fun() -> visit(Env, 1) end)}.

visit(#{registry := Registry, home := Group, tag := Tag} = Env, I) ->
    Name = {visitor, Tag, I},
    _ = Registry:register(Group, Name, self()),
    rest(?NAME_MS),
    _ = Registry:unregister(Group, Name),
    rest(?NAME_MS),
    visit(Env, I + 1).

-doc "Starts the process that kills a server of this node now and then.".
-spec start_killer() -> {ok, pid()}.
start_killer() -> {ok, proc_lib:spawn_link(fun kill_now_and_then/0)}.

kill_now_and_then() ->
    rest(?KILL_MS),
    case sderl_demo_sup:servers() of
        [] ->
            ok;
        Servers ->
            {_, Pid} = lists:nth(rand:uniform(length(Servers)), Servers),
            true = exit(Pid, kill)
    end,
    kill_now_and_then().

%% A random pause, so that the nodes do not act all at once.
rest(Ms) ->
    receive
    after Ms div 2 + rand:uniform(Ms) -> ok
    end.

-doc "The nodes of a site: they get their servers and their load again.".
-spec nodes(Fleet :: pid(), sderl_demo_load:site()) -> nodes().
nodes(Fleet, #{nodes := Nodes} = Site) ->
    #{Node => fun() -> again(Fleet, Site, Node) end || Node <- Nodes}.

again(Fleet, Site, Node) ->
    ok = sderl_fleet:call(Fleet, Node, sderl_demo_groups, await, [Site, ?RESTART_MS], ?RESTART_MS),
    ok = sderl_fleet:call(Fleet, Node, sderl_demo_load, servers, [Site], ?RESTART_MS),
    ok = sderl_fleet:call(Fleet, Node, ?MODULE, on_node, [Site], ?START_MS).

-doc """
Brings nodes back that have been down for some seconds, with their load. Gives those that are down
now, or whose load could not be started: that is tried again.
""".
-spec mend(Fleet :: pid(), nodes(), away()) -> away().
mend(Fleet, Nodes, Away) ->
    Info = sderl_fleet:info(Fleet),
    Now = erlang:monotonic_time(millisecond),
    Down = #{Node => true || Node := _ <- Nodes, #{status := down} <- [maps:get(Node, Info, none)]},
    #{
        Node => Since
     || Node := Again <- Nodes,
        is_map_key(Node, Down) orelse is_map_key(Node, Away),
        Since <- [maps:get(Node, Away, Now)],
        Now - Since < ?BACK_MS orelse not back(Fleet, Node, is_map_key(Node, Down), Again)
    }.

back(Fleet, Node, IsDown, Again) ->
    Back = sderl_fleet_task:attempt(fun() ->
        _ = IsDown andalso restart(Fleet, Node),
        Again()
    end),
    Back =:= ok.

restart(Fleet, Node) ->
    {ok, Node} = sderl_fleet:restart(Fleet, Node),
    true.

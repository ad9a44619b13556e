%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_master).
-moduledoc """
The master of a monitoring node: does what `m:sderl_mon_master_core` decides. Each monitoring node
has one; the one with the lowest name leads, the others run the agents that it assigns to them and
are ready to take over.

Messages between masters are casts `{sderl_mon, 1, Kind, From, Payload}`; those of another version,
of an unknown kind or of a wrong type (`m:sderl_mon_message`) are ignored. No master waits for an
answer.
""".

-behaviour(gen_server).

-export([start_link/0, status/0, node_of/1, group_of/1, nodes/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-import(sderl_mon_clock, [now_ms/0]).

-define(TICK_MS, 200).
-define(RESTART_MS, 500).
-define(CONNECT_MS, 10_000).
%% No group or node has this id.
-define(SCOPE, <<"(master)">>).

-type state() :: #{core := sderl_mon_master_core:state(),
                   agents := #{sderl_mon_message:scope() => agent()}}.
-type agent() :: #{pid := pid() | none, mon := reference(), spec := sderl_mon_message:orders()}.

-doc "Starts the master of this node.".
-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "What this master knows, for people.".
-spec status() -> sderl_mon_master_core:status().
status() -> gen_server:call(?MODULE, status).

-doc "The node that an id names, among those that are watched.".
-spec node_of(sderl_mon_types:id()) -> {ok, node(), sderl_mon_message:status()} | {error, unknown}.
node_of(Id) -> gen_server:call(?MODULE, {node_of, Id}).

-doc "The group that an id names, and its members that are up.".
-spec group_of(sderl_mon_types:id()) -> {ok, Group :: term(), [node()]} | {error, unknown}.
group_of(Id) -> gen_server:call(?MODULE, {group_of, Id}).

-doc "All nodes, and what is known of each.".
-spec nodes() -> #{node() => sderl_mon_message:node_report()}.
nodes() -> gen_server:call(?MODULE, nodes).

-spec init([]) -> {ok, state()}.
init([]) ->
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    Found = [{Pid, Spec}
             || Pid <- sderl_mon_agent_sup:agents(), {ok, Spec} <- [sderl_mon_agent:orders(Pid)]],
    Agents = #{Scope => agent(Pid, Spec) || {Pid, #{scope := Scope} = Spec} <- Found},
    Core = sderl_mon_master_core:new(node(), sderl_mon_settings:shared(), now_ms()),
    State = step({adopted, [Spec || {_, Spec} <- Found]}, #{core => Core, agents => Agents}),
    %% Before it leads, the core waits for these reports.
    lists:foreach(fun({Pid, _}) -> sderl_mon_agent:report(Pid) end, Found),
    self() ! tick,
    {ok, State}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(status, _From, #{core := Core} = State) ->
    {reply, sderl_mon_master_core:status(Core), State};
handle_call({node_of, Id}, _From, #{core := Core} = State) ->
    {reply, sderl_mon_members:node_of(Id, sderl_mon_master_core:nodes(Core)), State};
handle_call({group_of, Id}, _From, #{core := Core} = State) ->
    {reply, sderl_mon_members:group_of(Id, sderl_mon_master_core:nodes(Core)), State};
handle_call(nodes, _From, #{core := Core} = State) ->
    {reply, sderl_mon_master_core:nodes(Core), State};
handle_call(_, _, State) ->
    {reply, {error, unknown_call}, State}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast({sderl_mon, 1, Kind, From, Payload}, State) when is_atom(From) ->
    case sderl_mon_message:check(Kind, Payload) of
        ok -> {noreply, step({peer, Kind, From, Payload}, State)};
        {error, not_a_message} -> {noreply, State}
    end;
handle_cast(_, State) ->
    {noreply, State}.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info(tick, State) ->
    _ = erlang:send_after(?TICK_MS, self(), tick),
    {noreply, step(tick, State)};
handle_info(settle, State) ->
    {noreply, step(settle, State)};
handle_info({nodedown, Node, _}, State) ->
    {noreply, step({monitor_down, Node}, State)};
handle_info({sderl_mon_config, _}, State) ->
    {noreply, step({config, sderl_mon_settings:shared()}, State)};
handle_info({'DOWN', Mon, process, _, _}, #{agents := Agents} = State) ->
    case [Scope || Scope := #{mon := M} <- Agents, M =:= Mon] of
        [Scope] ->
            %% Not at once: its cause of death may persist.
            _ = erlang:send_after(?RESTART_MS, self(), {restart, Scope}),
            #{Scope := Agent} = Agents,
            {noreply, State#{agents := Agents#{Scope := Agent#{pid := none}}}};
        [] ->
            {noreply, State}
    end;
handle_info({restart, Scope}, #{agents := Agents} = State) ->
    case Agents of
        #{Scope := #{pid := none, spec := Spec}} ->
            {noreply, State#{agents := Agents#{Scope := started(Spec)}}};
        #{} -> {noreply, State}
    end;
handle_info(_, State) ->
    {noreply, State}.

step(Event, #{core := Core} = State) ->
    {Effects, Core1} = sderl_mon_master_core:step(Event, now_ms(), Core),
    lists:foldl(fun effect/2, State#{core := Core1}, Effects).

effect({tell, Node, Kind, Payload}, State) ->
    _ = sderl_mon_tell:master(Node, ?MODULE, Kind, Payload),
    State;
effect({connect, Node}, State) ->
    %% In the lane `reach`, so that nodes that cannot be connected do not delay it.
    ok = sderl_mon_pool:run(reach, {connect, Node}, {connect, Node},
                            fun() -> sderl_mon_reach:connect(Node) end, ?CONNECT_MS),
    State;
effect({settle, Ms}, State) ->
    _ = erlang:send_after(Ms, self(), settle),
    State;
effect({adopt_config, Shared}, State) ->
    ok = sderl_mon_settings:adopt(Shared),
    State;
effect({seen, Scope, Node}, #{agents := Agents} = State) ->
    case Agents of
        #{Scope := #{pid := Pid}} when is_pid(Pid) -> sderl_mon_agent:seen(Pid, Node);
        #{} -> ok
    end,
    State;
effect({topology, Hubs, Topology}, State) ->
    lists:foreach(fun(Hub) -> _ = sderl_mon_hub:topology(Hub, Topology) end, Hubs),
    State;
effect({events, Hubs, Term, Events}, State) ->
    Update = #{agent => {?SCOPE, Term}, t => sderl_mon_clock:wall_ms(), span_ms => ?TICK_MS,
               events => Events},
    lists:foreach(fun(Hub) -> _ = sderl_mon_hub:update(Hub, Update) end, Hubs),
    State;
effect({run, Specs}, #{agents := Agents} = State) ->
    Wanted = #{Scope => Spec || #{scope := Scope} = Spec <- Specs},
    lists:foreach(fun stop/1, maps:values(maps:without(maps:keys(Wanted), Agents))),
    State#{agents := #{Scope => ordered(Spec, maps:get(Scope, Agents, none))
                       || Scope := Spec <- Wanted}}.

stop(#{pid := Pid, mon := Mon}) when is_pid(Pid) ->
    true = demonitor(Mon, [flush]),
    sderl_mon_agent_sup:stop(Pid);
stop(_) ->
    ok.

ordered(Spec, none) -> started(Spec);
ordered(Spec, #{spec := Spec} = Agent) -> Agent;
ordered(Spec, #{pid := none} = Agent) -> Agent#{spec := Spec};
ordered(Spec, #{pid := Pid} = Agent) ->
    ok = sderl_mon_agent:assign(Pid, Spec),
    Agent#{spec := Spec}.

started(Spec) ->
    {ok, Pid} = sderl_mon_agent_sup:start(?MODULE, Spec),
    agent(Pid, Spec).

agent(Pid, Spec) -> #{pid => Pid, mon => monitor(process, Pid), spec => Spec}.

%% SPDX-License-Identifier: Apache-2.0
-module(rt_tenant).
-moduledoc """
The one process of a tenant. It knows how many subscribers each node has, of every region, from what
the nodes tell. It keeps nothing that they could not tell again: where it is started, it asks.
""".
-behaviour(gen_server).

-export([run/2]).
-export([init/1, handle_call/3, handle_cast/2]).

%% Runs under its name from the first line on.
run({region, Region}, Id) ->
    ok = gen_server:cast(rt_tenants, {here, self()}),
    Tenant = {Region, Id},
    ok = sderl_route:fan_out(rt:regions(), {nodes, rt_local}, {rt_tell, Tenant}),
    gen_server:enter_loop(?MODULE, [], #{tenant => Tenant, nodes => #{}}).

init(State) -> {ok, State}.

handle_call({presence, Topic}, _From, #{nodes := Nodes} = State) ->
    {reply, lists:sum([maps:get(Topic, Counts, 0) || _ := {Counts, At} <- Nodes, fresh(At)]),
     State};
handle_call(where, _From, State) -> {reply, node(), State};
handle_call(_, _From, State) -> {reply, {error, unknown_request}, State}.

handle_cast({counts, Node, Counts}, #{nodes := Nodes0} = State) ->
    Nodes = #{N => Entry || N := {_, At} = Entry <- Nodes0, fresh(At)},
    {noreply, State#{nodes := case map_size(Counts) of
        0 -> maps:remove(Node, Nodes);
        _ -> Nodes#{Node => {Counts, erlang:monotonic_time(millisecond)}}
    end}};
handle_cast(_, State) -> {noreply, State}.

%% Most nodes are of other regions and have no link to here that could go: one that is silent is
%% gone.
fresh(At) ->
    erlang:monotonic_time(millisecond) - At < 3 * application:get_env(realtime, presence_ms, 5000).

%% SPDX-License-Identifier: Apache-2.0
-module(rt_tenants).
-moduledoc """
Starts the processes of tenants of its region. Any node of the region may be asked; the
tenant's *keeper* is on the node that the hash of its id gives, so that all who ask at once ask the
same one. The keeper (`sderl_place:spawn/3`) puts the process on one of two nodes drawn at random,
that with fewer of them, and moves it when that node dies.

The group lets only one process have the tenant's name. All else here is to save work.
""".
-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(TIMEOUT, 8000).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% `here`: monitors of the tenants on this node. `starting`: who waits for which to start.
init([]) ->
    Here = [P
            || {G, {tenant, _} = N} <- names(rt:group()), P <- [s_group:whereis_name(G, N)],
               is_pid(P), node(P) =:= node()],
    {ok, load(#{here => #{monitor(process, P) => P || P <- Here}, starting => #{}})}.

names(none) -> [];
names(Group) -> s_group:registered_names({s_group, Group}).

handle_call({start, Id}, From, State) ->
    case rt:group() of
        none -> {reply, {error, no_region}, State};
        Group ->
            case s_group:whereis_name(Group, {tenant, Id}) of
                undefined ->
                    spawn(fun() -> gen_server:reply(From, ask_keeper(Group, Id)) end),
                    {noreply, State};
                Pid -> {reply, {ok, Pid}, State}
            end
    end;
handle_call({place, Group, Id}, From, #{starting := Starting} = State) ->
    case Starting of
        #{Id := Waiting} -> {noreply, State#{starting := Starting#{Id := [From | Waiting]}}};
        #{} ->
            Owner = self(),
            spawn_link(fun() -> Owner ! {placed, Id, place(Group, Id, Owner)} end),
            {noreply, State#{starting := Starting#{Id => [From]}}}
    end.

%% From a tenant that starts on this node.
handle_cast({here, Pid}, #{here := Here} = State) ->
    {noreply, load(State#{here := Here#{monitor(process, Pid) => Pid}})}.

handle_info({placed, Id, Result}, #{starting := Starting} = State) ->
    {Waiting, Rest} = maps:take(Id, Starting),
    [gen_server:reply(From, Result) || From <- Waiting],
    {noreply, State#{starting := Rest}};
handle_info({'DOWN', Ref, process, _, _}, #{here := Here} = State) ->
    {noreply, load(State#{here := maps:remove(Ref, Here)})};
%% What keepers tell: moved, ended, failed. The next call starts what has failed.
handle_info(_, State) -> {noreply, State}.

%% What the nodes of the region compare.
load(#{here := Here} = State) ->
    ok = sderl_attr:set(tenants, map_size(Here)),
    State.

ask_keeper(Group, Id) ->
    Node = sderl_place:choose_node(#{group => Group, choose => {hash, Id}}),
    try gen_server:call({?MODULE, Node}, {place, Group, Id}, ?TIMEOUT)
    catch exit:{Why, _} -> {error, Why}
    end.

place(Group, Id, Owner) ->
    Spec = #{group => Group, choose => {two, tenants}, adds => 1},
    case sderl_place:spawn(Spec, {rt_tenant, run, [Group, Id]},
                           #{name => {Group, {tenant, Id}}, owner => Owner}) of
        {ok, _Keeper, Pid} -> {ok, Pid};
        {error, {name_taken, Pid}} when is_pid(Pid) -> {ok, Pid};
        {error, Why} -> {error, Why}
    end.

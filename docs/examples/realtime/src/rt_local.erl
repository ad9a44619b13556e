%% SPDX-License-Identifier: Apache-2.0
-module(rt_local).
-moduledoc """
The subscribers of this node. It gets what is broadcast and hands it out, and tells the tenants'
processes how many there are: when that changes, when a tenant's process asks, and every
`presence_ms`.
""".
-behaviour(gen_server).

-export([start_link/0, join/3, leave/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% Rows `{{Tenant, Topic, Pid}}`, in order: those of a tenant, and of a topic, stand together.
-define(SUBSCRIBERS, rt_subscribers).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

join(Tenant, Topic, Pid) -> gen_server:call(?MODULE, {join, Tenant, Topic, Pid}).

leave(Tenant, Topic, Pid) -> gen_server:call(?MODULE, {leave, Tenant, Topic, Pid}).

init([]) ->
    ?SUBSCRIBERS = ets:new(?SUBSCRIBERS, [named_table, ordered_set]),
    %% When there is no process of a tenant to tell, this is told so.
    ok = sderl_route:reports(true),
    tell_later(),
    {ok, #{}}.

%% The state: a monitor of each subscriber.
handle_call({join, Tenant, Topic, Pid}, _From, Watched) ->
    true = ets:insert(?SUBSCRIBERS, {{Tenant, Topic, Pid}}),
    tell(Tenant),
    {reply, ok,
     case Watched of #{Pid := _} -> Watched; #{} -> Watched#{Pid => monitor(process, Pid)} end};
handle_call({leave, Tenant, Topic, Pid}, _From, Watched) ->
    true = ets:delete(?SUBSCRIBERS, {Tenant, Topic, Pid}),
    tell(Tenant),
    {reply, ok, Watched}.

handle_cast(_, Watched) -> {noreply, Watched}.

handle_info({rt_broadcast, Tenant, Topic, Message}, Watched) ->
    [Pid ! {rt, Tenant, Topic, Message}
     || Pid <- ets:select(?SUBSCRIBERS, [{{{Tenant, Topic, '$1'}}, [], ['$1']}])],
    {noreply, Watched};
handle_info({rt_tell, Tenant}, Watched) ->
    _ = ets:select(?SUBSCRIBERS, [{{{Tenant, '_', '_'}}, [], [true]}], 1) =/= '$end_of_table'
        andalso tell(Tenant),
    {noreply, Watched};
handle_info(tell, Watched) ->
    lists:foreach(fun tell/1,
                  lists:usort([Tenant || [Tenant] <- ets:match(?SUBSCRIBERS, {{'$1', '_', '_'}})])),
    tell_later(),
    {noreply, Watched};
handle_info({'DOWN', _, process, Pid, _}, Watched) ->
    Tenants = lists:usort([Tenant || [Tenant] <- ets:match(?SUBSCRIBERS, {{'$1', '_', Pid}})]),
    true = ets:match_delete(?SUBSCRIBERS, {{'_', '_', Pid}}),
    lists:foreach(fun tell/1, Tenants),
    {noreply, maps:remove(Pid, Watched)};
handle_info({sderl_undelivered, {{region, Region}, {tenant, Id}}, no_name, _}, Watched) ->
    start({Region, Id}),
    {noreply, Watched};
handle_info(_, Watched) -> {noreply, Watched}.

tell_later() -> erlang:send_after(application:get_env(realtime, presence_ms, 5000), self(), tell).

%% All of a tenant's counts at once: what comes twice, or after something was lost, does no harm.
tell(Tenant) ->
    Topics = ets:select(?SUBSCRIBERS, [{{{Tenant, '$1', '_'}}, [], ['$1']}]),
    Counts = #{Topic => length(Same)
               || Topic := Same <- maps:groups_from_list(fun(T) -> T end, Topics)},
    case sderl_route:cast(rt:name(Tenant), {counts, node(), Counts}) of
        {error, no_name} -> start(Tenant);
        _ -> ok
    end.

%% It asks for the counts when it runs.
start(Tenant) -> spawn(rt, tenant, [Tenant]), ok.

%% SPDX-License-Identifier: Apache-2.0
-module(rt).
-moduledoc """
A realtime service over several regions: processes subscribe to topics of tenants, messages reach
the subscribers in all regions, and each tenant has one process in its home region.

A tenant is `{Region, Id}`. Each region is an s_group `{region, Region}`; some nodes of each region,
its gateways, are in the s_group `backbone` too. No other node has a link to another region.
""".

-export([join/2, leave/2, broadcast/3, presence/2, tenant/1, call/2]).
-export([group/0, regions/0, name/1]).
-export_type([tenant/0]).

-define(MOST_PAUSE_MS, 2000).

-type tenant() :: {Region :: atom(), Id :: term()}.

-doc """
The calling process gets `{rt, Tenant, Topic, Message}` for what is broadcast, until it leaves or
ends.
""".
-spec join(tenant(), Topic :: term()) -> ok.
join({_, _} = Tenant, Topic) -> rt_local:join(Tenant, Topic, self()).

-spec leave(tenant(), Topic :: term()) -> ok.
leave({_, _} = Tenant, Topic) -> rt_local:leave(Tenant, Topic, self()).

-doc "To the subscribers on all nodes of all regions. The message crosses into each region once.".
-spec broadcast(tenant(), Topic :: term(), Message :: term()) -> ok | {error, term()}.
broadcast({_, _} = Tenant, Topic, Message) ->
    sderl_route:fan_out(regions(), {nodes, rt_local}, {rt_broadcast, Tenant, Topic, Message}).

-doc "How many processes are subscribed, in all regions. As told by their nodes lately.".
-spec presence(tenant(), Topic :: term()) -> {ok, non_neg_integer()} | {error, term()}.
presence(Tenant, Topic) -> call(Tenant, {presence, Topic}).

-doc """
Sees to it that the tenant's process runs, and gives its name: for `sderl_route:call/3`, or as
`{via, sderl_route, Name}` for any OTP call.
""".
-spec tenant(tenant()) -> {ok, {Group :: term(), Name :: term()}} | {error, term()}.
tenant({Region, Id} = Tenant) ->
    %% On whichever node of the region this arrives: `rt_tenants` takes it from there.
    case sderl_route:call_any({region, Region}, rt_tenants, {start, Id}, 10_000) of
        {ok, {ok, _}} -> {ok, name(Tenant)};
        {ok, {error, Why}} -> {error, Why};
        {error, Why} -> {error, Why}
    end.

-doc "Calls the tenant's process, which is started if it does not run.".
-spec call(tenant(), Request :: term()) -> {ok, term()} | {error, term()}.
call(Tenant, Request) -> call(Tenant, Request, 0).

call(Tenant, Request, PauseMs) ->
    case sderl_route:call(name(Tenant), Request) of
        %% So it was not asked, and may be asked again. While the members of the region are told of
        %% the name, the one that `tenant/1` asked may know it, and the next one not yet.
        {error, no_name} when PauseMs < ?MOST_PAUSE_MS ->
            case tenant(Tenant) of
                {ok, _} ->
                    receive after PauseMs -> call(Tenant, Request, max(10, 2 * PauseMs)) end;
                {error, Why} -> {error, Why}
            end;
        Answer -> Answer
    end.

-spec name(tenant()) -> {Group :: term(), Name :: term()}.
name({Region, Id}) -> {{region, Region}, {tenant, Id}}.

-doc "The region of this node, as a group.".
-spec group() -> {region, atom()} | none.
group() ->
    case [G || {{region, _} = G, _} <- s_group:own_s_groups()] of
        [Group | _] -> Group;
        [] -> none
    end.

-doc """
All regions that can be reached from here. `backbone` is none: its nodes would get everything twice.
""".
-spec regions() -> [{region, atom()}].
regions() -> [G || {{region, _} = G, _} <- s_group:own_s_groups() ++ sderl_route:groups()].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_sup).
-moduledoc false.
%% The processes that route messages between groups. Their tables belong to the supervisor of the
%% application, so they outlive this one too.

-behaviour(sderl_part).

-export([start_link/0]).
-export([create_tables/0, handle_group_changed/1, handle_group_left/2]).

-import(sderl_children, [worker/1, supervisor/2]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    %% Forwarding processes hold nothing but what is on its way.
    Forwarders = [(sderl_children:worker(sderl_forward, [Name]))#{id := Name}
                  || K <- lists:seq(0, 7), Name <- [sderl_route_send:forwarder(K)]],
    sderl_children:start_link(?MODULE, [
        worker(sderl_router),
        worker(sderl_route_report),
        supervisor(sderl_forward_sup, Forwarders),
        worker(sderl_monitor),
        worker(sderl_gateway_agent)
    ]).

-spec create_tables() -> ok.
create_tables() ->
    sderl_routes = sderl_router:new(),
    sderl_route_calls = sderl_route_call:new(),
    sderl_undelivered = sderl_route_report:new(),
    sderl_stand_ins = sderl_stand_in:new(),
    sderl_twins = sderl_twin:new(),
    sderl_monitors = sderl_monitor:new(),
    ok.

-spec handle_group_changed(term()) -> ok.
handle_group_changed(Group) -> sderl_router:changed(Group).

-spec handle_group_left(term(), [node()]) -> ok.
handle_group_left(Group, _Mates) -> sderl_router:changed(Group).

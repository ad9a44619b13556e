%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_sup).
-moduledoc false.
%% The processes that route messages between groups. Their tables belong to the supervisor of the
%% application, so they outlive this one too.

-behaviour(supervisor).
-behaviour(sderl_part).

-export([start_link/0]).
-export([init/1]).
-export([create_tables/0, handle_group_changed/1, handle_group_left/2]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Worker = fun(M) -> #{id => M, start => {M, start_link, []}, shutdown => 2000} end,
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 1},
          [Worker(sderl_router),
           Worker(sderl_route_report),
           #{id => sderl_forward_sup,
             start => {sderl_forward_sup, start_link, []},
             shutdown => infinity,
             type => supervisor},
           Worker(sderl_monitor),
           Worker(sderl_gateway_agent)]}}.

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

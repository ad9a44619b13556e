%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sup).
-moduledoc false.
%% Owns the tables, and with them everything that must outlive a crash of the processes below:
%% it runs no protocol and therefore has no reason to die before the application (rule 30).

-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = sderl_dir:new(),
    sderl_traffic = sderl_traffic:new(),
    sderl_subs = sderl_subs:new(),
    sderl_links = sderl_links:new(),
    sderl_pg = sderl_pg:new(),
    sderl_routes = sderl_router:new(),
    sderl_route_calls = sderl_route_call:new(),
    sderl_undelivered = sderl_route_report:new(),
    sderl_stand_ins = sderl_stand_in:new(),
    sderl_twins = sderl_twin:new(),
    sderl_monitors = sderl_monitor:new(),
    sderl_place_pending = sderl_place_pending:new(),
    ok = sderl_attr_table:new(),
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 1},
          [worker(sderl_attr_server),
           worker(sderl_subs), worker(sderl_router), worker(sderl_route_report), supervisor(sderl_forward_sup),
           worker(sderl_monitor), worker(sderl_gateway_agent),
           worker(sderl_connector), worker(sderl_watch), worker(sderl_ask), worker(sderl_dist_probe),
           supervisor(sderl_group_sup), supervisor(sderl_pg_sup), worker(sderl_node),
           worker(sderl_link_policy), supervisor(sderl_place_sup)]}}.

worker(M) -> #{id => M, start => {M, start_link, []}, shutdown => 2000}.

supervisor(M) -> #{id => M, start => {M, start_link, []}, shutdown => infinity, type => supervisor}.

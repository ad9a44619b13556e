%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sup).
-moduledoc false.
%% Owns the tables, and with them everything that must outlive a crash of the processes below:
%% it runs no protocol and therefore has no reason to die before the application (rule 30).

-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-import(sderl_children, [worker/1, worker/2, supervisor/1, supervisor/2]).

-doc "`Reconfigure`: see `sderl_node:start_link/1`.".
-spec start_link(Reconfigure :: fun(() -> ok)) -> supervisor:startlink_ret().
start_link(Reconfigure) -> supervisor:start_link({local, ?MODULE}, ?MODULE, Reconfigure).

-spec init(fun(() -> ok)) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Reconfigure) ->
    sderl_logged = sderl_event:new(),
    ok = sderl_dir:new(),
    sderl_traffic = sderl_traffic:new(),
    sderl_subs = sderl_subs:new(),
    sderl_links = sderl_links:new(),
    ok = sderl_heart:new(),
    ok = sderl_part:register_all(parts()),
    {ok, {sderl_children:flags(),
          %% Other members address routing and attributes as soon as this node's groups are
          %% there, so these start before the groups. Placement uses groups and starts after.
          [worker(sderl_subs, [fun sderl_event:dropped/3]),
           supervisor(sderl_attr_sup),
           supervisor(sderl_route_sup),
           %% It answers measurements.
           supervisor(sderl_dist_sup, [worker(sderl_dist_probe)]),
           supervisor(sderl_pg_sup),
           worker(sderl_connector),
           worker(sderl_watch),
           worker(sderl_ask),
           worker(sderl_heart),
           supervisor(sderl_group_sup),
           %% Followers ask as soon as a group is told of.
           supervisor(sderl_follow_sup),
           worker(sderl_node, [Reconfigure]),
           worker(sderl_kernel_env),
           worker(sderl_link_policy),
           supervisor(sderl_place_sup)]}}.

%% The parts that are told about this node's groups, in this order.
parts() ->
    [sderl_connector, sderl_node, sderl_kernel_env, sderl_route_sup, sderl_attr_sup, sderl_pg,
     sderl_place_sup, sderl_follow_sup].

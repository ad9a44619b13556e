%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_sup).
-moduledoc "The supervisor of one node's named servers in the demo: an ordinary `one_for_one`.".

-behaviour(supervisor).

-export([start/2, start_link/2, servers/0]).
-export([init/1]).

-doc """
Starts the supervisor with one server for each name, so that it outlives the caller. Returns when
all servers have registered their names; `ok` also when they run.
""".
-spec start(module(), [sderl_demo_layout:server()]) -> ok | {error, term()}.
start(Registry, Servers) -> sderl_demo_node_sup:start_child(?MODULE, [Registry, Servers]).

-doc "Starts the supervisor, linked with the caller.".
-spec start_link(module(), [sderl_demo_layout:server()]) -> supervisor:startlink_ret().
start_link(Registry, Servers) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, {Registry, Servers}).

-doc "The names of this node's servers with the pids that run now, without asking a registry.".
-spec servers() -> [{sderl_demo_layout:server(), pid()}].
servers() ->
    [{Server, Pid} || {Server, Pid, _, _} <- supervisor:which_children(?MODULE), is_pid(Pid)].

-doc false.
-spec init({module(), [sderl_demo_layout:server()]}) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Registry, Servers}) ->
    %% The demo kills a few servers of each node every second.
    Flags = #{strategy => one_for_one, intensity => 30, period => 1},
    Children = [
        #{id => Server, start => {sderl_demo_server, start_link, [Registry, Server]}}
     || Server <- Servers
    ],
    {ok, {Flags, Children}}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_live_sup).
-moduledoc """
The supervisor of what keeps a node busy while the demo stays up: several clients, a process that
registers names, and one that kills a server now and then. Like its own supervisor
(`sderl_demo_node_sup`) it restarts them however often they are killed.
""".

-behaviour(supervisor).

-export([start/2, start_link/2, callers/0]).
-export([init/1]).

-doc "Starts it, so that it outlives the caller; `ok` also when it runs.".
-spec start([sderl_demo_client:env(), ...], sderl_demo_client:env()) -> ok | {error, term()}.
start(Clients, Visitor) -> sderl_demo_node_sup:start_child(?MODULE, [Clients, Visitor]).

-doc "Starts the supervisor, linked with the caller.".
-spec start_link([sderl_demo_client:env(), ...], sderl_demo_client:env()) ->
    supervisor:startlink_ret().
start_link(Clients, Visitor) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, {Clients, Visitor}).

-doc "The clients that run.".
-spec callers() -> [pid()].
callers() ->
    [Pid || {{caller, _}, Pid, _, _} <- supervisor:which_children(?MODULE), is_pid(Pid)].

-doc false.
-spec init({[sderl_demo_client:env(), ...], sderl_demo_client:env()}) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Clients, Visitor}) ->
    Flags = #{strategy => one_for_one, intensity => 1_000, period => 1},
    Callers = [
        #{id => {caller, K}, start => {sderl_demo_caller, start_link, [Env, length(Clients)]}}
     || {K, Env} <- lists:enumerate(Clients)
    ],
    Others = [
        #{id => visitor, start => {sderl_demo_live, start_visitor, [Visitor]}},
        #{id => killer, start => {sderl_demo_live, start_killer, []}}
    ],
    {ok, {Flags, Callers ++ Others}}.

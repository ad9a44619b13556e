%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_agent_sup).
-moduledoc false.
%% The agents of this monitoring node. The master restarts an agent that dies, because it knows
%% which nodes the agent is to watch by now.

-behaviour(supervisor).

-export([start_link/0, start/2, stop/1, agents/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-doc """
Starts an agent that reports to the masters, which are registered under one name on each monitoring
node.
""".
-spec start(Masters :: atom(), sderl_mon_message:orders()) -> {ok, pid()} | {error, term()}.
start(Masters, Spec) ->
    case supervisor:start_child(?MODULE, [Masters, Spec]) of
        {ok, Pid} when is_pid(Pid) -> {ok, Pid};
        Other -> {error, Other}
    end.

-spec stop(pid()) -> ok.
stop(Pid) ->
    _ = supervisor:terminate_child(?MODULE, Pid),
    ok.

-doc "The agents that run.".
-spec agents() -> [pid()].
agents() -> [Pid || {_, Pid, _, _} <- supervisor:which_children(?MODULE), is_pid(Pid)].

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Agent = #{id => agent, start => {sderl_mon_agent, start_link, []}, restart => temporary,
              shutdown => 1000},
    {ok, {#{strategy => simple_one_for_one, intensity => 10, period => 60}, [Agent]}}.

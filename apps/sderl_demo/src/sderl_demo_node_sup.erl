%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_node_sup).
-moduledoc """
The first supervisor of what the demo runs on a node: its named servers and its load.

Whoever kills processes on purpose shall not end them for good. So they may be restarted a
thousand times a second, also while a name is not free yet.
""".

-behaviour(supervisor).

-export([start_child/2, start_link/0]).
-export([init/1]).

-doc """
Starts a supervisor with the function `start_link` of a module, under the node's kernel so that it
outlives the caller; `ok` also when it runs.
""".
-spec start_child(module(), Arguments :: [term()]) -> ok | {error, term()}.
start_child(Module, Arguments) ->
    _ = supervisor:start_child(kernel_safe_sup, child(?MODULE, [])),
    case supervisor:start_child(?MODULE, child(Module, Arguments)) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok;
        {error, {Reason, _ChildSpec}} -> {error, Reason};
        {error, _} = Error -> Error
    end.

child(Module, Arguments) ->
    #{
        id => Module,
        start => {Module, start_link, Arguments},
        restart => permanent,
        type => supervisor
    }.

-doc "Starts the supervisor, linked with the caller.".
-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-doc false.
-spec init([]) -> {ok, {supervisor:sup_flags(), []}}.
init([]) -> {ok, {#{strategy => one_for_one, intensity => 1_000, period => 1}, []}}.

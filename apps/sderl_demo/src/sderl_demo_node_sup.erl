%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_node_sup).
-moduledoc """
The first supervisor of what the demo runs on a node: its named servers and its load.

Processes that are killed on purpose must always come back. So a thousand restarts in a second are
allowed, enough also while a name is not free yet.

It belongs to an application of its own, which is loaded without an `.app` file: `bin/sderl chaos`
spares the processes of the application kernel, to which these would belong otherwise.
""".

-behaviour(application).
-behaviour(supervisor).

-export([start_child/2]).
-export([start/2, stop/1, init/1]).

-define(APPLICATION, sderl_demo_node).

-doc """
Starts a supervisor with the function `start_link` of a module, so that it outlives the caller; `ok`
also when it runs.
""".
-spec start_child(module(), Arguments :: [term()]) -> ok | {error, term()}.
start_child(Module, Arguments) ->
    %% Both give an error where that has been done already.
    _ = application:load({application, ?APPLICATION, [
        {description, "What the demo runs on a node"},
        {mod, {?MODULE, []}},
        {applications, [kernel, stdlib]}
    ]}),
    _ = application:start(?APPLICATION, permanent),
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

-doc false.
-spec start(application:start_type(), []) -> supervisor:startlink_ret().
start(_Type, []) -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-doc false.
-spec stop(term()) -> ok.
stop(_State) -> ok.

-doc false.
-spec init([]) -> {ok, {supervisor:sup_flags(), []}}.
init([]) -> {ok, {#{strategy => one_for_one, intensity => 1_000, period => 1}, []}}.

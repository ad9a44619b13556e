%% SPDX-License-Identifier: Apache-2.0
-module(sderl_children).
-moduledoc false.
%% A supervisor of processes that find their state in tables: each is restarted however often,
%% because a supervisor that gives up would take the names of a healthy node down with it.

-behaviour(supervisor).

-export([start_link/2, flags/0]).
-export([worker/1, worker/2, supervisor/1, supervisor/2]).
-export([init/1]).

-doc "Starts a supervisor with this local name.".
-spec start_link(Name :: atom(), [supervisor:child_spec()]) -> supervisor:startlink_ret().
start_link(Name, Children) -> supervisor:start_link({local, Name}, ?MODULE, Children).

-spec init([supervisor:child_spec()]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Children) -> {ok, {flags(), Children}}.

-spec flags() -> supervisor:sup_flags().
flags() -> #{strategy => one_for_one, intensity => 1000, period => 1}.

-spec worker(module()) -> supervisor:child_spec().
worker(Module) -> worker(Module, []).

-spec worker(module(), Args :: [term()]) -> supervisor:child_spec().
worker(Module, Args) -> #{id => Module, start => {Module, start_link, Args}, shutdown => 2000}.

-doc "The child specification of a supervisor that is a module of its own.".
-spec supervisor(module()) -> supervisor:child_spec().
supervisor(Module) ->
    #{id => Module, start => {Module, start_link, []}, shutdown => infinity, type => supervisor}.

-doc "The child specification of a supervisor by its name and children.".
-spec supervisor(Name :: atom(), [supervisor:child_spec()]) -> supervisor:child_spec().
supervisor(Name, Children) -> (supervisor(Name))#{start => {?MODULE, start_link, [Name, Children]}}.

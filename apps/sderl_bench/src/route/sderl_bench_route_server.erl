%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_server).
-moduledoc "The server that benchmarks of routed calls ask; it counts how often it did what.".

-behaviour(gen_server).

-export([start/2, executed/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-doc "Starts one under a name of a group of this node.".
-spec start(Group :: term(), Name :: atom()) -> pid().
start(Group, Name) ->
    {ok, Pid} = gen_server:start({via, s_group, {Group, Name}}, ?MODULE, [], []),
    Pid.

-doc "What was done, and how often.".
-spec executed(pid()) -> #{term() => pos_integer()}.
executed(Pid) -> gen_server:call(Pid, executed, infinity).

-doc false.
-spec init([]) -> {ok, #{term() => pos_integer()}}.
init([]) -> {ok, #{}}.

-doc false.
-spec handle_call(term(), gen_server:from(), Done) -> {reply, term(), Done} when
    Done :: #{term() => pos_integer()}.
handle_call({echo, Term}, _, Done) -> {reply, Term, Done};
handle_call({do, What}, _, Done) ->
    {reply, {done, What}, Done#{What => maps:get(What, Done, 0) + 1}};
handle_call(executed, _, Done) -> {reply, Done, #{}}.

-doc false.
-spec handle_cast(term(), Done) -> {noreply, Done} when Done :: #{term() => pos_integer()}.
handle_cast(_, Done) -> {noreply, Done}.

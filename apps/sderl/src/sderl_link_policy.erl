%% SPDX-License-Identifier: Apache-2.0
-module(sderl_link_policy).
-moduledoc false.
%% Rule 25: a partial mesh decays silently, so links that the library opened and that nobody has
%% needed for the idle time (`link_idle_ms`) are reported, each once until it is needed again.
%% `sderl_links` decides; `close_candidate/3` there is for the policy that closes them.

-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type state() :: #{Reported :: node() => []}.

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, state()}.
init([]) ->
    next(),
    {ok, #{}}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(_, _, S) -> {reply, {error, unknown_call}, S}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_, S) -> {noreply, S}.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info(look, Reported) ->
    next(),
    Unneeded = sderl_links:unneeded(sderl_dir:needs(), erlang:monotonic_time(millisecond), idle()),
    lists:foreach(fun({Node, Idle}) ->
        is_map_key(Node, Reported) orelse
            sderl_event:emit(link_unneeded, #{node => Node, idle_s => Idle div 1000})
    end, Unneeded),
    {noreply, #{Node => [] || {Node, _} <- Unneeded}};
handle_info(_, Reported) -> {noreply, Reported}.

%% Often enough that a report is late by a tenth of the time that it reports.
next() ->
    _ = erlang:send_after(max(1000, idle() div 10), self(), look),
    ok.

idle() -> maps:get(link_idle_ms, sderl_dir:options(), 600_000).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ct_server).

%% A server under a name of a group. It notes what it was asked and told, in order.

-behaviour(gen_server).

-export([start/4, noted/2, init/1, handle_call/3, handle_cast/2, handle_info/2]).

-import(sderl_ct, [on/3]).

start(Fleet, Node, Group, Name) ->
    on(Fleet, Node, fun() ->
        {ok, Pid} = gen_server:start({via, s_group, {Group, Name}}, ?MODULE, [], []),
        Pid
    end).

noted(Fleet, Pid) -> on(Fleet, node(Pid), fun() -> gen_server:call(Pid, noted, infinity) end).

init([]) -> {ok, []}.

handle_call(noted, _, S) -> {reply, lists:reverse(S), S};
handle_call({note, X}, _, S) -> {reply, X, [X | S]};
handle_call({echo, X}, _, S) -> {reply, X, S};
handle_call(nodes, _, S) -> {reply, nodes(connected), S};
handle_call({die, Why}, _, S) -> {stop, Why, S};
handle_call({later, Ms, X}, From, S) ->
    _ = erlang:send_after(Ms, self(), {reply, From, X}),
    {noreply, [X | S]};
handle_call(never, _, S) -> {noreply, S}.

handle_cast(X, S) -> {noreply, [X | S]}.

handle_info({reply, From, X}, S) -> gen_server:reply(From, X), {noreply, S};
handle_info(X, S) -> {noreply, [X | S]}.

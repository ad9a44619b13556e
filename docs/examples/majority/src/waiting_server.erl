%% SPDX-License-Identifier: Apache-2.0
-module(waiting_server).

%% A server of which there is one in a group that decides by majority, wherever it is started. It
%% starts without a name, so its supervisor sees no failure while there is no majority, and serves
%% from the moment on at which the name is its own. Started on every member, one serves and the
%% others stand by.

-behaviour(gen_server).

-export([start_link/2, is_serving/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-define(AGAIN_MS, 500).

start_link(Group, Name) -> gen_server:start_link(?MODULE, {Group, Name}, []).

is_serving(Server) -> gen_server:call(Server, is_serving).

init(As) -> {ok, #{as => As, serving => false}, {continue, register}}.

handle_continue(register, State) -> {noreply, register_name(State)}.

handle_call(is_serving, _From, #{serving := Serving} = State) -> {reply, Serving, State}.

handle_cast(_Cast, State) -> {noreply, State}.

handle_info(register, State) -> {noreply, register_name(State)};
%% The name may be another's from now on, once the majority has waited for the lease.
handle_info({s_group_majority, lost, _Group, _Name}, State) -> {noreply, again(State)};
handle_info({s_group_majority, regained, _Group, _Name}, State) -> {noreply, State}.

%% With `exit` in place of `notify` the server would end, and its supervisor start another that
%% waits.
register_name(#{as := {Group, Name}} = State) ->
    try s_group:register_name(Group, Name, self(), #{majority_lost => notify}) of
        yes -> State#{serving := true};
        {no, name_or_pid_already_registered} -> serving_if_ours(State);
        {no, _Reason} -> again(State)
    catch
        %% It may have been registered.
        exit:{timeout, {s_group, write, _}} -> again(State)
    end.

serving_if_ours(#{as := {Group, Name}} = State) ->
    Self = self(),
    case s_group:read(Group, Name) of
        Self -> State#{serving := true};
        _ -> again(State)
    end.

again(State) ->
    _ = erlang:send_after(?AGAIN_MS, self(), register),
    State#{serving := false}.

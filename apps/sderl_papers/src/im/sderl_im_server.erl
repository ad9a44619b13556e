%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_server).
-moduledoc """
The named process of a server: it hands each request of a router to a new process, so that it never
waits.

The messages in its mailbox are lost when it dies; clients ask again.
""".

-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([message/0]).

-doc "The messages of routers; `gone`: a client node may have gone down.".
-type message() :: sderl_im_router:request() | {gone, node()}.

-doc "Starts it under its name.".
-spec start_link(sderl_im_layout:conf(), K :: pos_integer()) -> gen_server:start_ret().
start_link(Conf, K) ->
    gen_server:start_link(sderl_im_net:via(Conf, {server, K}), ?MODULE, {Conf, K}, []).

-doc false.
-spec init(term()) -> {ok, {sderl_im_layout:conf(), pos_integer()}}.
init({Conf, K}) ->
    proc_lib:set_label({sderl_im, ready, {server, K}}),
    {ok, {Conf, K}}.

-doc false.
-spec handle_call(ping, gen_server:from(), State) -> {reply, pong, State}.
handle_call(ping, _, State) -> {reply, pong, State}.

-doc false.
-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), State) -> {noreply, State}.
%% A supervisor that is being restarted starts nothing: the client asks again.
handle_info({login, _, _, _} = Job, State) ->
    _ = sderl_im_sup:start_monitor(Job),
    {noreply, State};
handle_info({logout, _, _, _, _} = Job, State) ->
    _ = sderl_im_sup:start_monitor(Job),
    {noreply, State};
handle_info({chat, Session, APid, Ref}, {_, K} = State) ->
    _ = sderl_im_sup:start_session({K, Session, APid, Ref}),
    {noreply, State};
%% A client node may have gone down: the monitors of its clients ask these.
handle_info({gone, _} = Gone, State) ->
    lists:foreach(fun(Monitor) -> Monitor ! Gone end, sderl_im_sup:children(monitors)),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

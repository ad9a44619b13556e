%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_signals).
-moduledoc false.

%% Tells the program of SIGTERM (to which bin/sderl also turns Ctrl-C) and SIGHUP, instead
%% of stopping the virtual machine under the feet of what runs in it. Other signals do what
%% OTP does with them.

-behaviour(gen_event).

-export([install/1]).
-export([init/1, handle_event/2, handle_call/2]).

-doc "The process gets `{sderl_cli_signals, stop}` when it is time to stop.".
-spec install(pid()) -> ok.
install(Pid) ->
    ok = gen_event:swap_handler(erl_signal_server, {erl_signal_handler, []}, {?MODULE, Pid}),
    ok = os:set_signal(sigterm, handle),
    ok = os:set_signal(sighup, handle).

-spec init({pid(), term()}) -> {ok, pid()}.
init({Pid, _FromTheOldHandler}) ->
    {ok, Pid}.

-spec handle_event(atom(), pid()) -> {ok, pid()}.
handle_event(Signal, Pid) when Signal =:= sigterm; Signal =:= sighup ->
    Pid ! {?MODULE, stop},
    {ok, Pid};
handle_event(sigusr1, Pid) ->
    %% OTP's own answer: a crash dump, for whoever asks why it hangs.
    _ = erlang:halt("Received SIGUSR1"),
    {ok, Pid};
handle_event(_Signal, Pid) ->
    {ok, Pid}.

-spec handle_call(term(), pid()) -> {ok, {error, unknown_call}, pid()}.
handle_call(_Request, Pid) ->
    {ok, {error, unknown_call}, Pid}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_signals).
-moduledoc """
Handles SIGTERM (to which `bin/sderl` also turns Ctrl-C) and SIGHUP: a process gets a message,
instead of the virtual machine being stopped while work goes on in it. Other signals do what OTP
does with them.
""".

-behaviour(gen_event).

-export([install/1, tell/1]).
-export([init/1, handle_event/2, handle_call/2]).

-doc "From now on the process gets `{sderl_signals, stop}` for each SIGTERM and SIGHUP.".
-spec install(pid()) -> ok.
install(Pid) ->
    ok = gen_event:swap_handler(erl_signal_server, {erl_signal_handler, []}, {?MODULE, Pid}),
    ok = os:set_signal(sigterm, handle),
    ok = os:set_signal(sighup, handle).

-doc """
This process gets the message for the next signal instead: for a command that runs until then and
ends in order. Later ones go to the program again, in case the command does not end.
""".
-spec tell(pid()) -> ok | {error, not_installed}.
tell(Pid) ->
    case gen_event:call(erl_signal_server, ?MODULE, {tell, Pid}) of
        ok -> ok;
        {error, bad_module} -> {error, not_installed}
    end.

%% The state lists the processes to be told, one for each signal; the last gets all later signals.

-doc false.
-spec init({pid(), term()}) -> {ok, [pid()]}.
init({Pid, _FromTheOldHandler}) ->
    {ok, [Pid]}.

-doc false.
-spec handle_event(atom(), [pid()]) -> {ok, [pid()]}.
handle_event(Signal, Pids) when Signal =:= sigterm; Signal =:= sighup ->
    {ok, stop(Pids)};
handle_event(sigusr1, _Pids) ->
    %% As OTP does: a crash dump, to find out why the program hangs.
    erlang:halt("Received SIGUSR1");
handle_event(_Signal, Pids) ->
    {ok, Pids}.

stop([Pid | Others] = Pids) ->
    Pid ! {?MODULE, stop},
    case Others of
        [] -> Pids;
        [_ | _] -> Others
    end.

-doc false.
-spec handle_call({tell, pid()} | term(), [pid()]) -> {ok, ok | {error, unknown_call}, [pid()]}.
handle_call({tell, Pid}, Pids) ->
    {ok, ok, [Pid, lists:last(Pids)]};
handle_call(_Request, Pids) ->
    {ok, {error, unknown_call}, Pids}.

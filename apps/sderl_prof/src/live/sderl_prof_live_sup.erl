%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_live_sup).
-moduledoc false.

-behaviour(supervisor).

-export([start/1, stop/0]).
-export([init/1]).

-define(STOP_MS, 25_000).

%% Profiles that ran when the process crashed are lost, and those that are kept are there again. The
%% supervisor does not end with its caller, which goes on without profiles.
-spec start(sderl_prof_live:settings()) -> {ok, pid()} | {error, term()}.
start(Settings) ->
    case supervisor:start_link({local, ?MODULE}, ?MODULE, []) of
        {ok, Pid} ->
            true = unlink(Pid),
            case supervisor:start_child(Pid, child(Settings)) of
                {ok, Server} -> {ok, Server};
                {error, Failed} ->
                    ok = stop(),
                    {error, why(Failed)}
            end;
        {error, Why} -> {error, Why}
    end.

%% A reason has the child's specification behind it.
why({already_started, _} = Why) -> Why;
why({Why, _}) -> Why.

child(Settings) ->
    #{id => sderl_prof_live, start => {sderl_prof_live, start_link, [Settings]},
      shutdown => ?STOP_MS}.

-spec stop() -> ok.
stop() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> gen_server:stop(Pid, shutdown, ?STOP_MS)
    end.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) -> {ok, {#{strategy => one_for_one, intensity => 5, period => 60}, []}}.

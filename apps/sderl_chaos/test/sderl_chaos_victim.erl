%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_victim).
-moduledoc """
Servers on a node for the chaos tests: a supervisor's children, each under a name of its own, local,
of `global`, or of an s_group.
""".

-behaviour(gen_server).

-export([start/1, pids/0, found/0, raises/0, start_link/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-doc """
Starts a supervisor with a child for each name. One that is `{temporary, Name}` is not restarted.
""".
-spec start([term()]) -> ok.
start(Names) ->
    Caller = self(),
    Flags = #{strategy => one_for_one, intensity => 10_000, period => 1},
    Pid = spawn(fun() ->
        {ok, Sup} = supervisor:start_link({local, ?MODULE}, ?MODULE,
                                          {Flags, [child(N) || N <- Names]}),
        Caller ! {self(), Sup},
        receive
            never -> ok
        end
    end),
    receive
        {Pid, _} -> ok
    end.

child({temporary, Name}) -> (child(Name))#{restart => temporary};
child(Name) -> #{id => Name, start => {?MODULE, start_link, [Name]}}.

-spec start_link(term()) -> {ok, pid()} | {error, term()}.
start_link({local, _} = Name) -> gen_server:start_link(Name, ?MODULE, server, []);
start_link({global, _} = Name) -> gen_server:start_link(Name, ?MODULE, server, []);
start_link({via, _, _} = Name) -> gen_server:start_link(Name, ?MODULE, server, []).

-doc "The children.".
-spec pids() -> [pid()].
pids() -> [Pid || {_, Pid} <- found()].

-doc "As for a target of the kind process.".
-spec found() -> [{term(), pid()}].
found() -> [{Id, Pid} || {Id, Pid, _, _} <- supervisor:which_children(?MODULE), is_pid(Pid)].

-spec raises() -> no_return().
raises() -> error(no_victims).

init(server) -> {ok, none};
%% As a supervisor.
init(Spec) -> {ok, Spec}.

handle_call(_, _, State) -> {reply, ok, State}.

handle_cast(_, State) -> {noreply, State}.

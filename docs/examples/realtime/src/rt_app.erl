%% SPDX-License-Identifier: Apache-2.0
-module(rt_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, prep_stop/1, stop/1, init/1]).

start(_Type, _Args) -> supervisor:start_link({local, rt_sup}, ?MODULE, []).

%% Nodes whose names never come back say goodbye; one that is to return under its name must not, as
%% a node that has left stays out.
prep_stop(State) ->
    _ = application:get_env(realtime, leave_on_stop, false) andalso leave(),
    State.

leave() ->
    _ = supervisor:terminate_child(rt_sup, rt_discover),
    [s_group:leave(Group) || {Group, _} <- s_group:own_s_groups()].

stop(_State) -> ok.

init([]) ->
    Discover = case application:get_env(realtime, discover) of
        {ok, Places} -> [child(rt_discover, [Places])];
        undefined -> []
    end,
    {ok, {#{}, Discover ++ [child(rt_local, []), child(rt_tenants, [])]}}.

child(Module, Args) -> #{id => Module, start => {Module, start_link, Args}}.

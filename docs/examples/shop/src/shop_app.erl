%% SPDX-License-Identifier: Apache-2.0
-module(shop_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1, init/1]).

start(_Type, _Args) -> supervisor:start_link({local, shop_sup}, ?MODULE, []).

stop(_State) -> ok.

%% sderl was started before and has waited for the group: the name can be registered now.
init([]) ->
    Name = {via, s_group, {shop, {counter, node()}}},
    {ok,
     {#{}, [#{id => counter, start => {gen_server, start_link, [Name, shop_counter, [], []]}}]}}.

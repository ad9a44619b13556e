%% SPDX-License-Identifier: Apache-2.0
-module(sderl_forward_sup).
-moduledoc false.
%% The forwarding processes. They hold nothing but what is on its way.

-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Names = [sderl_route_send:forwarder(K) || K <- lists:seq(0, 7)],
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 1},
          [#{id => Name, start => {sderl_forward, start_link, [Name]}, shutdown => 2000} || Name <- Names]}}.

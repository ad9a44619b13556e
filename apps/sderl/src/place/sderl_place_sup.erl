%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_sup).
-moduledoc false.
%% The keepers of placed processes. A keeper that fails is not restarted: its process ends with it,
%% and its owner monitors it if that matters.

-behaviour(supervisor).
-behaviour(sderl_part).

-export([start_link/0]).
-export([init/1]).
-export([create_tables/0]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => simple_one_for_one},
          [#{id => sderl_place_keeper, start => {sderl_place_keeper, start_link, []},
             restart => temporary, shutdown => 2000}]}}.

-spec create_tables() -> ok.
create_tables() ->
    sderl_place_pending = sderl_place_pending:new(),
    sderl_place_cells = sderl_place_cells:new(),
    ok.

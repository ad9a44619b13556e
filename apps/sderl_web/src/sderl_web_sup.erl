%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_sup).
-moduledoc false.

-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(sderl_web_config:settings()) -> supervisor:startlink_ret().
start_link(Settings) -> supervisor:start_link({local, ?MODULE}, ?MODULE, Settings).

%% A feed that ends takes its sockets along, which close by themselves; the listener stays.
-spec init(sderl_web_config:settings()) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Settings) ->
    Feed = maps:with([cluster, writable, max_sockets, profile], Settings),
    {ok, {#{strategy => one_for_one, intensity => 10, period => 60}, [
        #{id => notes, start => {sderl_web_notes, start_link, []}},
        #{id => tokens, start => {sderl_web_tokens, start_link, [Settings]}},
        #{id => limits, start => {sderl_web_limits, start_link, [Settings]}},
        #{id => idempotency, start => {sderl_web_idempotency, start_link, []}},
        #{id => fronts, start => {sderl_web_fronts, start_link, [map_get(fronts, Settings)]}},
        #{id => work, start => {sderl_web_work, start_link, []}, shutdown => 10_000},
        #{id => feed, start => {sderl_web_feed, start_link, [Feed]}},
        #{id => server, start => {sderl_web_server, start_link, [Settings]}, shutdown => 10_000}
    ]}}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_settings).
-moduledoc false.
%% Holds the configuration in force, and tells the processes of this node that go by it.

-behaviour(gen_server).

-export([start_link/0, get/0, set/1, adopt/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(KEY, {sderl_mon, config}).
%% Who is told `{sderl_mon_config, Config}`.
-define(TOLD, [sderl_mon_hub, sderl_mon_master]).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "The configuration in force; the defaults where the application is not running.".
-spec get() -> sderl_mon_config:config().
get() -> persistent_term:get(?KEY, sderl_mon_config:defaults()).

-doc "Changes it, on this node, and keeps it.".
-spec set(map()) -> ok | {error, sderl_mon_config:error()}.
set(Map) -> gen_server:call(?MODULE, {set, Map}).

-doc "Takes over what another monitoring node was told: not kept here unless it differs.".
-spec adopt(map()) -> ok.
adopt(Map) -> gen_server:cast(?MODULE, {adopt, Map}).

-spec init([]) -> {ok, []} | {stop, term()}.
init([]) ->
    maybe
        {ok, Given} ?= sderl_mon_config:check(application:get_env(sderl_mon, config, #{})),
        {ok, Config} ?= sderl_mon_config:load(Given),
        ok = persistent_term:put(?KEY, Config),
        {ok, []}
    else
        {error, Why} -> {stop, {Why, unicode:characters_to_binary(sderl_mon_config:format_error(Why))}}
    end.

-spec handle_call(term(), gen_server:from(), []) -> {reply, term(), []}.
handle_call({set, Map}, _From, State) ->
    {reply, change(Map), State};
handle_call(_, _, State) ->
    {reply, {error, unknown_call}, State}.

-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast({adopt, Map}, State) ->
    Now = ?MODULE:get(),
    case maps:with(maps:keys(Map), Now) of
        Map -> {noreply, State};
        _ ->
            %% It was checked where it was set; a newer version's key is not taken over.
            _ = change(maps:with(maps:keys(Now), Map)),
            {noreply, State}
    end;
handle_cast(_, State) ->
    {noreply, State}.

change(Map) ->
    maybe
        {ok, Config} ?= sderl_mon_config:change(Map, ?MODULE:get()),
        ok ?= sderl_mon_config:store(Map, Config),
        ok = persistent_term:put(?KEY, Config),
        lists:foreach(fun(Name) -> tell(Name, Config) end, ?TOLD)
    end.

tell(Name, Config) ->
    case whereis(Name) of
        undefined -> ok;
        Pid -> Pid ! {sderl_mon_config, Config}, ok
    end.

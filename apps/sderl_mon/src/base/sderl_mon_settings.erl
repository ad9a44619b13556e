%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_settings).
-moduledoc false.
%% Holds the configuration in force, and tells the processes of this node that go by it.

-behaviour(gen_server).

-export([start_link/1, get/0, set/1, adopt/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(KEY, {sderl_mon, config}).

-doc "The registered processes that are told `{sderl_mon_config, Config}` whenever it changes.".
-type told() :: [atom()].

-spec start_link(told()) -> gen_server:start_ret().
start_link(Told) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Told, []).

-doc "The configuration in force; the defaults where the application is not running.".
-spec get() -> sderl_mon_config:config().
get() -> persistent_term:get(?KEY, sderl_mon_config:defaults()).

-doc "Changes it, on this node, and keeps it.".
-spec set(map()) -> ok | {error, sderl_mon_config:error()}.
set(Map) -> gen_server:call(?MODULE, {set, Map}).

-doc "Takes over what another monitoring node was told: not kept here unless it differs.".
-spec adopt(sderl_mon_message:config()) -> ok.
adopt(Map) -> gen_server:cast(?MODULE, {adopt, Map}).

-spec init(told()) -> {ok, told()} | {stop, term()}.
init(Told) ->
    maybe
        {ok, Given} ?= sderl_mon_config:check(application:get_env(sderl_mon, config, #{})),
        {ok, Config} ?= sderl_mon_config:load(Given),
        ok = persistent_term:put(?KEY, Config),
        {ok, Told}
    else
        {error, Why} ->
            {stop, {Why, unicode:characters_to_binary(sderl_mon_config:format_error(Why))}}
    end.

-spec handle_call(term(), gen_server:from(), told()) -> {reply, term(), told()}.
handle_call({set, Map}, _From, Told) ->
    {reply, change(Map, Told), Told};
handle_call(_, _, Told) ->
    {reply, {error, unknown_call}, Told}.

-spec handle_cast(term(), told()) -> {noreply, told()}.
handle_cast({adopt, Map}, Told) when is_map(Map) ->
    Now = ?MODULE:get(),
    case maps:with(maps:keys(Map), Now) of
        Map ->
            {noreply, Told};
        _ ->
            %% It was checked where it was set; a newer version's key is not taken over.
            _ = change(maps:with(maps:keys(Now), Map), Told),
            {noreply, Told}
    end;
handle_cast(_, Told) ->
    {noreply, Told}.

-spec handle_info(term(), told()) -> {noreply, told()}.
handle_info(_, Told) ->
    {noreply, Told}.

change(Map, Told) ->
    maybe
        {ok, Config} ?= sderl_mon_config:change(Map, ?MODULE:get()),
        ok ?= sderl_mon_config:store(Map, Config),
        ok = persistent_term:put(?KEY, Config),
        lists:foreach(fun(Name) -> tell(Name, Config) end, Told)
    end.

tell(Name, Config) ->
    case whereis(Name) of
        undefined -> ok;
        Pid -> Pid ! {sderl_mon_config, Config}, ok
    end.

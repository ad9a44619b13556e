%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_settings).
-moduledoc false.
%% Holds the configuration in force and the stamps of its settings (m:sderl_mon_shared), and sends
%% changes to the processes of this node that use it.
%%
%% The configuration in force outlives the process: a restarted one goes on with it. It is erased
%% with the end of the application (`forget/0`).

-behaviour(gen_server).

-export([start_link/1, get/0, shared/0, set/1, adopt/1, forget/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-include_lib("kernel/include/logger.hrl").

-define(KEY, {sderl_mon, config}).

-doc "The registered processes that are told `{sderl_mon_config, Config}` whenever it changes.".
-type told() :: [atom()].

-spec start_link(told()) -> gen_server:start_ret().
start_link(Told) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Told, []).

-doc """
The configuration in force; where the application is not running, the one with which it would start.
""".
-spec get() -> sderl_mon_config:config().
get() -> element(1, in_force()).

-doc "The part that all monitoring nodes have in common, with its stamps.".
-spec shared() -> sderl_mon_message:shared().
shared() -> shared(in_force()).

in_force() ->
    case persistent_term:get(?KEY, none) of
        none ->
            Given = application:get_env(sderl_mon, config, #{}),
            case sderl_mon_config:check(Given) of
                {ok, Config} -> {Config, #{}};
                {error, _} -> {sderl_mon_config:defaults(), #{}}
            end;
        InForce -> InForce
    end.

shared({Config, Stamps}) -> (sderl_mon_shared:new(Config))#{stamps := Stamps}.

-doc "Changes the configuration on this node, and keeps it; the master tells the others.".
-spec set(map()) -> ok | {error, sderl_mon_config:error()}.
set(Map) -> gen_server:call(?MODULE, {set, Map}).

-doc """
Takes over the settings of another node, except for options that were set here later. They are kept
here, too; if they cannot be kept, they are in force all the same.
""".
-spec adopt(sderl_mon_message:shared()) -> ok.
adopt(Shared) -> gen_server:cast(?MODULE, {adopt, Shared}).

-doc "Erases the configuration in force: the next start begins with what is configured.".
-spec forget() -> ok.
forget() ->
    _ = persistent_term:erase(?KEY),
    ok.

-spec init(told()) -> {ok, told()} | {stop, term()}.
init(Told) ->
    case persistent_term:get(?KEY, none) of
        none ->
            begin_configured(Told);
        {Config, _} ->
            %% The predecessor may have ended before it told all.
            tell_all(Config, Told),
            {ok, Told}
    end.

begin_configured(Told) ->
    maybe
        {ok, Given} ?= sderl_mon_config:check(application:get_env(sderl_mon, config, #{})),
        {ok, Config} ?= sderl_mon_config:load(Given),
        ok = persistent_term:put(?KEY, {Config, #{}}),
        {ok, Told}
    else
        {error, Why} ->
            {stop, {Why, unicode:characters_to_binary(sderl_mon_config:format_error(Why))}}
    end.

-spec handle_call(term(), gen_server:from(), told()) -> {reply, term(), told()}.
handle_call({set, Map}, _From, Told) ->
    maybe
        {ok, Config} ?= sderl_mon_config:change(Map, ?MODULE:get()),
        ok ?= sderl_mon_config:store(Map, Config),
        Common = maps:with(maps:keys(Map), sderl_mon_config:shared(Config)),
        Now = sderl_mon_clock:wall_ms(),
        #{stamps := Stamps} = sderl_mon_shared:set(Common, node(), Now, shared()),
        {reply, put_in_force(Config, Stamps, Told), Told}
    else
        {error, Why} -> {reply, {error, Why}, Told}
    end;
handle_call(_, _, Told) ->
    {reply, {error, unknown_call}, Told}.

-spec handle_cast(term(), told()) -> {noreply, told()}.
handle_cast({adopt, Theirs}, Told) ->
    _ = sderl_mon_message:check(config, Theirs) =:= ok andalso adopt(Theirs, Told),
    {noreply, Told};
handle_cast(_, Told) ->
    {noreply, Told}.

-spec handle_info(term(), told()) -> {noreply, told()}.
handle_info(_, Told) ->
    {noreply, Told}.

adopt(Theirs, Told) ->
    {Now, Before} = in_force(),
    #{config := Common, stamps := Stamps} = sderl_mon_shared:adopt(Theirs, shared()),
    %% An option of a newer version is not taken over.
    Known = maps:with(maps:keys(Now), Common),
    case sderl_mon_config:change(Known, Now) of
        {ok, Now} when Stamps =:= Before -> ok;
        {ok, Config} -> adopted(Known, Config, Stamps, Told);
        %% The other node checked it, but has another version.
        {error, Why} -> log_not_kept(Why)
    end.

adopted(Known, Config, Stamps, Told) ->
    case sderl_mon_config:store(Known, Config) of
        ok -> ok;
        {error, Why} -> log_not_kept(Why)
    end,
    put_in_force(Config, Stamps, Told).

put_in_force(Config, Stamps, Told) ->
    ok = persistent_term:put(?KEY, {Config, Stamps}),
    tell_all(Config, Told).

log_not_kept(Why) ->
    ?LOG_WARNING("What was set at another monitoring node is not kept here: ~ts",
                 [sderl_mon_config:format_error(Why)]).

tell_all(Config, Told) -> lists:foreach(fun(Name) -> tell(Name, Config) end, Told).

tell(Name, Config) ->
    case whereis(Name) of
        undefined -> ok;
        Pid -> Pid ! {sderl_mon_config, Config}, ok
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_record_keeper).
-moduledoc """
Starts and ends the recording that the configuration wants (`record`).

It is restarted with each hub (`m:sderl_mon_hub_sup`): a recording ends with its hub, and the next
one begins. A recording that another process has started is left alone.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, start_link/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-doc "The value of `record` in `t:sderl_mon_config:config/0`.".
-type wanted() :: off | #{dir := file:name_all(), max_bytes => pos_integer()}.

-doc "Keeps the recording that the configuration in force names.".
-spec start_link() -> gen_server:start_ret().
start_link() -> start_link(maps:get(record, sderl_mon_settings:get())).

-doc "Keeps a given recording until the configuration names another.".
-spec start_link(wanted()) -> gen_server:start_ret().
start_link(Wanted) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Wanted, []).

-doc false.
-spec init(wanted()) -> {ok, wanted(), {continue, start}}.
init(Wanted) -> {ok, Wanted, {continue, start}}.

%% This may wait some seconds until the recording of the hub before has ended; nobody waits for this
%% process.
-doc false.
-spec handle_continue(start, wanted()) -> {noreply, wanted()}.
handle_continue(start, Wanted) ->
    ok = start(Wanted),
    {noreply, Wanted}.

-doc false.
-spec handle_call(term(), gen_server:from(), wanted()) -> {reply, {error, unknown_call}, wanted()}.
handle_call(_, _From, Wanted) -> {reply, {error, unknown_call}, Wanted}.

-doc false.
-spec handle_cast(term(), wanted()) -> {noreply, wanted()}.
handle_cast(_, Wanted) -> {noreply, Wanted}.

-doc false.
-spec handle_info(term(), wanted()) -> {noreply, wanted()}.
handle_info({sderl_mon_config, #{record := Wanted}}, Wanted) ->
    {noreply, Wanted};
handle_info({sderl_mon_config, #{record := New}}, _Old) ->
    _ = sderl_mon_record:stop(),
    ok = start(New),
    {noreply, New};
handle_info(_, Wanted) ->
    {noreply, Wanted}.

start(off) ->
    ok;
start(#{dir := Dir} = Wanted) ->
    case sderl_mon_record:start_in(Dir, maps:with([max_bytes], Wanted)) of
        {ok, #{file := File}} -> ?LOG_NOTICE("Recording to ~ts", [File]);
        {error, Reason} -> ?LOG_ERROR("Nothing is recorded: ~0tp", [Reason])
    end.

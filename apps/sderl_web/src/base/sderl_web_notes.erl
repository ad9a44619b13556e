%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_notes).
-moduledoc """
Says in the log what browsers and strangers did wrong, once a minute and kind, and counts the rest.

Who sends a million bad frames must not write a million lines. The first of a kind is logged at
once; the next ones of that minute are counted, and their number follows in one line.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, note/2, counts/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([kind/0]).

-doc "The kinds are few and fixed: no stranger makes new ones.".
-type kind() ::
    wrong_token | bad_host | bad_origin | bad_frame | bad_request | too_many_requests
    | too_many_sockets | slow_reader | failed.

-define(PERIOD_MS, 60_000).
-define(TABLE, ?MODULE).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc """
Logs `Text`, or counts it where this kind has been logged in this minute. Never fails, and waits for
nobody.
""".
-spec note(kind(), unicode:chardata()) -> ok.
note(Kind, Text) ->
    try ets:update_counter(?TABLE, Kind, [{2, 1}, {3, 1}], {Kind, 0, 0}) of
        [1, _] -> ?LOG_WARNING("dashboard: ~ts", [Text], #{domain => [sderl, web]});
        [_, _] -> ok
    catch
        error:badarg -> ok
    end.

-doc "How often each kind has been, since the start.".
-spec counts() -> #{kind() => pos_integer()}.
counts() ->
    try
        #{Kind => All || {Kind, _, All} <- ets:tab2list(?TABLE)}
    catch
        error:badarg -> #{}
    end.

-doc false.
-spec init([]) -> {ok, []}.
init([]) ->
    _ = ets:new(?TABLE, [named_table, public, {write_concurrency, true}]),
    tick(),
    {ok, []}.

tick() ->
    _ = erlang:send_after(?PERIOD_MS, self(), tick),
    ok.

-doc false.
-spec handle_call(term(), gen_server:from(), []) -> {reply, {error, unknown_call}, []}.
handle_call(_, _, State) -> {reply, {error, unknown_call}, State}.

-doc false.
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(tick | term(), []) -> {noreply, []}.
handle_info(tick, State) ->
    lists:foreach(
        fun({Kind, Now, _}) ->
            _ = ets:update_counter(?TABLE, Kind, {2, -Now}),
            more(Kind, Now - 1)
        end,
        ets:tab2list(?TABLE)
    ),
    tick(),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

more(Kind, N) when N > 0 ->
    ?LOG_WARNING("dashboard: ~ts: ~w more within a minute", [Kind, N], #{domain => [sderl, web]});
more(_, _) -> ok.

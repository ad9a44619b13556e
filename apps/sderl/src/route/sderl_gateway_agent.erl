%% SPDX-License-Identifier: Apache-2.0
-module(sderl_gateway_agent).
-moduledoc false.
%% Spawns for other nodes: called over the route, so each call is done once.

-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% For a mate's answer, within the time that the asking node waits.
-define(MATE_MS, 3000).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec init([]) -> {ok, undefined}.
init([]) -> {ok, undefined}.

-spec handle_call(term(), gen_server:from(), undefined) ->
    {reply, term(), undefined} | {noreply, undefined}.
handle_call({spawn, M, F, A}, _, S) when is_atom(M), is_atom(F), length(A) =< 255 ->
    {reply, {ok, spawn(M, F, A)}, S};
handle_call({spawn_in, Group, M, F, A}, From, S) when is_atom(M), is_atom(F), length(A) =< 255 ->
    Linked = nodes(connected),
    case sderl_dir:members(Group) of
        [] -> {reply, {error, no_route}, S};
        Members ->
            Live = [N || N <- Members, N =:= node() orelse lists:member(N, Linked)],
            case lists:nth(rand:uniform(length(Live)), Live) of
                Node when Node =:= node() -> {reply, {ok, spawn(M, F, A)}, S};
                Node ->
                    _ = spawn(fun() -> gen_server:reply(From, mate(Node, {spawn, M, F, A})) end),
                    {noreply, S}
            end
    end;
handle_call(_, _, S) ->
    sderl_refused:note_message(?MODULE),
    {reply, {error, unknown_call}, S}.

mate(Node, Request) ->
    try gen_server:call({?MODULE, Node}, Request, ?MATE_MS)
    catch
        exit:{noproc, _} -> {error, not_running};
        exit:_ -> {error, lost_route}
    end.

-spec handle_cast(term(), undefined) -> {noreply, undefined}.
handle_cast(_, S) ->
    sderl_refused:note_message(?MODULE),
    {noreply, S}.

-spec handle_info(term(), undefined) -> {noreply, undefined}.
handle_info(_, S) ->
    sderl_refused:note_message(?MODULE),
    {noreply, S}.

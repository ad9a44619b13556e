%% SPDX-License-Identifier: Apache-2.0
-module(sderl_watch).
-moduledoc false.
%% Pids with names that live on nodes outside the group: the coordinator's node watches them
%% (rule 16), here and not in the group's process, because to monitor a pid on another node may
%% connect or block. A pid that dies, or whose node's link goes, is reported to the group's
%% process, which has the name removed if that pid still holds it.
%%
%% What is watched stands in a table: a new process of this module monitors it all again.

-behaviour(gen_server).

-export([start_link/0, watch/3, drop/1, exit/2, send/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(TABLE, sderl_watches).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Watches `{Name, Pid}` for the process of a group.".
-spec watch(pid(), term(), [{term(), pid()}]) -> ok.
watch(For, Group, Named) -> gen_server:cast(?MODULE, {watch, For, Group, Named}).

-doc "The process coordinates no more.".
-spec drop(pid()) -> ok.
drop(For) -> gen_server:cast(?MODULE, {drop, For}).

-doc "Sends an exit signal, never from a protocol process.".
-spec exit(pid(), term()) -> ok.
exit(Pid, Reason) -> gen_server:cast(?MODULE, {exit, Pid, Reason}).

-doc "Sends a message, never from a protocol process.".
-spec send(pid(), term()) -> ok.
send(Pid, Msg) -> gen_server:cast(?MODULE, {send, Pid, Msg}).

-type state() :: #{reference() => {pid(), term(), pid()}}.

-spec init([]) -> {ok, state()}.
init([]) ->
    {ok, lists:foldl(fun({{For, Name, Pid}, Group}, S) ->
        case is_process_alive(For) of
            true -> start(For, Group, Name, Pid, S);
            false -> ets:delete(?TABLE, {For, Name, Pid}), S
        end
    end, #{}, ets:tab2list(?TABLE))}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(_, _, S) -> {reply, {error, unknown_call}, S}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast({watch, For, Group, Named}, S0) ->
    {noreply, lists:foldl(fun({Name, Pid}, S) ->
        case ets:insert_new(?TABLE, {{For, Name, Pid}, Group}) of
            true -> start(For, Group, Name, Pid, S);
            false -> S
        end
    end, S0, Named)};
handle_cast({drop, For}, S) ->
    {Theirs, Rest} = maps:fold(fun(Ref, {F, _, _} = W, {T, R}) ->
        case F of For -> {T#{Ref => W}, R}; _ -> {T, R#{Ref => W}} end
    end, {#{}, #{}}, S),
    maps:foreach(fun(Ref, Key) -> demonitor(Ref, [flush]), ets:delete(?TABLE, Key) end, Theirs),
    {noreply, Rest};
handle_cast({linked, For, Name, Pid}, S) -> {noreply, monitored(For, Name, Pid, S)};
handle_cast({unreachable, For, Name, Pid}, S) -> {noreply, gone(For, Name, Pid, S)};
handle_cast({exit, Pid, Reason}, S) ->
    _ = linked(Pid) andalso erlang:exit(Pid, Reason),
    {noreply, S};
handle_cast({send, Pid, Msg}, S) ->
    _ = erlang:send(Pid, Msg, [noconnect]),
    {noreply, S};
handle_cast(_, S) -> {noreply, S}.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'DOWN', Ref, process, _, _}, S) ->
    case maps:take(Ref, S) of
        {{For, Name, Pid}, Rest} -> {noreply, gone(For, Name, Pid, Rest)};
        error -> {noreply, S}
    end;
handle_info(_, S) -> {noreply, S}.

linked(Pid) -> node(Pid) =:= node() orelse lists:member(node(Pid), nodes(connected)).

start(For, Group, Name, Pid, S) ->
    case linked(Pid) of
        true -> monitored(For, Name, Pid, S);
        false ->
            %% Connecting may take seconds: a helper does it.
            _ = spawn(fun() ->
                case sderl_connector:connect(node(Pid), {monitor, Group}) of
                    true -> gen_server:cast(?MODULE, {linked, For, Name, Pid});
                    false -> gen_server:cast(?MODULE, {unreachable, For, Name, Pid})
                end
            end),
            S
    end.

monitored(For, Name, Pid, S) -> S#{monitor(process, Pid) => {For, Name, Pid}}.

gone(For, Name, Pid, S) ->
    true = ets:delete(?TABLE, {For, Name, Pid}),
    For ! {sderl_pid_gone, Name, Pid},
    S.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_watch).
-moduledoc false.
%% Watches, on the coordinator's node, pids with names whose home is not their own node, because
%% that node was outside the group and may not be back yet (rule 16). Not done in the group's
%% process, because to monitor a pid on another node may connect or block. A pid that dies, or whose
%% node's link goes, is reported to the group's process, which has the name removed if that pid
%% still has it.
%%
%% The watched pids are in a table: a new process of this module monitors them all again. This
%% process is not told when a name is unregistered or the process of a group was killed. Every few
%% seconds it drops pids that have no name, or no process to report to, and the need for the links
%% that were opened for them.
%%
%% It also keeps the index of a coordinator (`sderl_index`) from its death until there is a
%% successor.

-behaviour(gen_server).
-compile({no_auto_import, [exit/2]}).

-export([start_link/0, watch/3, drop/1, give_index/1, exit/2, send/2, tell_loser/1, tell_holder/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-import(sderl_clock, [now_ms/0]).

-define(TABLE, sderl_watches).
-define(SWEEP, 5000).
%% The loser of a clash that cannot be reached is tried again after this, and given up after a day.
-define(AGAIN, 5000).
-define(GIVE_UP, 86_400_000).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Watches `{Name, Pid}` for the process of a group.".
-spec watch(pid(), term(), [{term(), pid()}]) -> ok.
watch(For, Group, Named) -> gen_server:cast(?MODULE, {watch, For, Group, Named}).

-doc "That process is coordinator no longer.".
-spec drop(pid()) -> ok.
drop(For) -> gen_server:cast(?MODULE, {drop, For}).

-doc """
The calling process gets the index that a coordinator left here when it died.
""".
-spec give_index(ets:tid()) -> ok.
give_index(Table) -> gen_server:cast(?MODULE, {give_index, Table, self()}).

-doc "Sends an exit signal, never from a protocol process. Links to the node for it if need be.".
-spec exit(pid(), term()) -> ok.
exit(Pid, Reason) -> gen_server:cast(?MODULE, {exit, Pid, Reason}).

-doc "Sends a message, never from a protocol process.".
-spec send(pid(), term()) -> ok.
send(Pid, Msg) -> gen_server:cast(?MODULE, {send, Pid, Msg}).

-doc """
Runs an effect of a clash that was settled, once and for all: if the process is out of reach it
waits for a link. A kill is sent until the process has ended; a message is sent once.
""".
-spec tell_loser(sderl_resolver:effect()) -> ok.
tell_loser(Effect) -> gen_server:cast(?MODULE, {tell_loser, Effect}).

-doc """
What the holder of a name asked to be told when its node loses the majority of the group, or has it
again.
""".
-spec tell_holder(lost | regained, Options :: term(), {Group :: term(), Name :: term()}, pid()) ->
    ok.
tell_holder(Which, Options, {Group, Name}, Pid) ->
    %% The option may have come over the wire, where its values are not checked.
    Asked = case Options of
        #{majority_lost := Value} -> Value;
        _ -> sderl_options:majority_lost(Group)
    end,
    case {Which, Asked} of
        {_, notify} -> send(Pid, {s_group_majority, Which, Group, Name});
        {lost, exit} -> exit(Pid, {s_group_no_majority, Group, Name});
        _ -> ok
    end.

%% The pid, name and receiver of each monitor; and the timer of the next sweep.
-type state() :: #{reference() => {pid(), term(), pid()}, sweep => reference()}.

-spec init([]) -> {ok, state()}.
init([]) ->
    Unsound = [Key || {{For, _, Pid} = Key, _} <- ets:tab2list(?TABLE),
                      not (is_local(For) andalso is_pid(Pid))],
    lists:foreach(fun(Key) -> ets:delete(?TABLE, Key) end, Unsound),
    sderl_event:dropped(?MODULE, length(Unsound), #{}),
    {ok, lists:foldl(fun({{For, Name, Pid}, Group}, S) ->
        case is_process_alive(For) of
            true -> start(For, Group, Name, Pid, S);
            false -> ets:delete(?TABLE, {For, Name, Pid}), S
        end
    end, next(#{}), ets:tab2list(?TABLE))}.

next(S) -> S#{sweep => sderl_timer:next(maps:get(sweep, S, none), ?SWEEP, sweep)}.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(_, _, S) -> {reply, {error, unknown_call}, S}.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast({watch, For, Group, Named}, S0) when length(Named) >= 0 ->
    case is_local(For) andalso lists:all(fun({_, Pid}) -> is_pid(Pid); (_) -> false end, Named) of
        true ->
            {noreply, lists:foldl(fun({Name, Pid}, S) ->
                case ets:insert_new(?TABLE, {{For, Name, Pid}, Group}) of
                    true -> start(For, Group, Name, Pid, S);
                    false -> S
                end
            end, S0, Named)};
        false -> {noreply, unknown(S0)}
    end;
handle_cast({drop, For}, S) ->
    {noreply, unwatch(fun({F, _, _}) -> F =:= For end, S)};
handle_cast({give_index, Table, To}, S) ->
    _ = is_local(To) andalso give(Table, To),
    {noreply, S};
handle_cast({linked, For, Name, Pid}, S) when is_pid(Pid) ->
    %% Unless the watch was dropped while the helper connected.
    case ets:lookup(?TABLE, {For, Name, Pid}) of
        [{_, Group}] -> {noreply, monitored(For, Group, Name, Pid, S)};
        [] -> {noreply, S}
    end;
handle_cast({unreachable, For, Name, Pid}, S) when is_pid(For) ->
    {noreply, gone(For, Name, Pid, S)};
handle_cast({What, Pid, _} = Effect, S)
  when is_pid(Pid), What =:= exit; is_pid(Pid), What =:= send ->
    reach(Effect),
    {noreply, S};
handle_cast({tell_loser, {What, Pid, _} = Effect}, S)
  when is_pid(Pid), What =:= exit; is_pid(Pid), What =:= send ->
    case node(Pid) =:= node() of
        true -> tell(Effect);
        false ->
            GiveUp = now_ms() + ?GIVE_UP,
            _ = spawn(fun() -> tell_remote(Effect, GiveUp) end),
            ok
    end,
    {noreply, S};
handle_cast(_, S) -> {noreply, unknown(S)}.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'DOWN', Ref, process, _, _}, S) when is_reference(Ref) ->
    case maps:take(Ref, S) of
        {{For, Name, Pid}, Rest} -> {noreply, gone(For, Name, Pid, Rest)};
        error -> {noreply, S}
    end;
%% From a coordinator that died.
handle_info({'ETS-TRANSFER', _, _, index}, S) -> {noreply, S};
handle_info(sweep, S0) ->
    Held = #{Key => Group || {Key, Group} <- ets:tab2list(?TABLE), held(Key, Group)},
    S = unwatch(fun(Key) -> not is_map_key(Key, Held) end, S0),
    Nodes = lists:usort([{node(Pid), Group} || {_, _, Pid} := Group <- Held]),
    ok = sderl_links:forget_monitors(Nodes, now_ms() - ?SWEEP),
    {noreply, next(S)};
handle_info(_, S) -> {noreply, unknown(S)}.

unknown(S) ->
    sderl_refused:note_message(?MODULE),
    S.

%% The receiver may have died, too; its successor will ask again.
give(Table, To) ->
    try
        ets:info(Table, owner) =:= self() andalso ets:give_away(Table, To, index)
    catch
        error:badarg -> false
    end.

%% The process that a watch reports to is one of this node.
is_local(Pid) -> is_pid(Pid) andalso node(Pid) =:= node().

%% The row of the name is written before this process is asked to watch it.
held({For, Name, Pid}, Group) ->
    is_process_alive(For) andalso sderl_names:pid(Group, Name) =:= Pid.

unwatch(Which, S) ->
    _ = [ets:delete(?TABLE, Key) || {Key, _} <- ets:tab2list(?TABLE), Which(Key)],
    maps:filter(fun(sweep, _) -> true;
                   (Ref, Key) ->
        case Which(Key) of
            true -> demonitor(Ref, [flush]), false;
            false -> true
        end
    end, S).

linked(Pid) -> node(Pid) =:= node() orelse lists:member(node(Pid), nodes(connected)).

%% The process may live on a node that has no link to this one.
reach({_, Pid, _} = Effect) ->
    case linked(Pid) of
        true -> tell(Effect);
        false ->
            _ = spawn(fun() -> connect(Pid) andalso tell(Effect) end),
            ok
    end.

connect(Pid) -> sderl_connector:connect(node(Pid), {lookup, undefined}).

tell({exit, Pid, Reason}) ->
    true = erlang:exit(Pid, Reason),
    ok;
tell({send, Pid, Message}) ->
    _ = erlang:send(Pid, Message, [noconnect]),
    ok.

tell_remote({_, Pid, _} = Effect, GiveUp) ->
    case connect(Pid) andalso is_told(Effect) of
        true -> ok;
        false -> tell_again(Effect, GiveUp)
    end.

%% The link may go while the signal is under way. Only a kill shows that it arrived.
is_told({exit, Pid, kill} = Effect) ->
    Monitor = monitor(process, Pid),
    ok = tell(Effect),
    receive
        {'DOWN', Monitor, process, Pid, Reason} -> Reason =/= noconnection
    end;
is_told(Effect) ->
    ok = tell(Effect),
    true.

%% Not after this library was stopped: its tables are gone then.
tell_again(Effect, GiveUp) ->
    receive
    after ?AGAIN -> ok
    end,
    case ets:whereis(?TABLE) =/= undefined andalso now_ms() < GiveUp of
        true -> tell_remote(Effect, GiveUp);
        false -> ok
    end.

start(For, Group, Name, Pid, S) ->
    case linked(Pid) of
        true -> monitored(For, Group, Name, Pid, S);
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

monitored(For, Group, Name, Pid, S) ->
    ok = sderl_links:note(node(Pid), {monitor, Group}),
    S#{monitor(process, Pid) => {For, Name, Pid}}.

gone(For, Name, Pid, S) ->
    true = ets:delete(?TABLE, {For, Name, Pid}),
    For ! {sderl_pid_gone, Name, Pid},
    S.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pg_scope).
-moduledoc """
Keeps the `pg` scope of one s_group running on this node and replays this node's joins.

Every join is written to the table of `m:sderl_pg` before `pg` hears of it and every leave taken
out of it before, so the table is what `pg` must be told when it starts anew:

- the scope's process dies while a join is under way: the call to it fails, the join is in the
  table, and the replay that follows its `'EXIT'` makes it;
- this process dies between the two: the supervisor starts it again, it ends the scope that
  its predecessor may have left and starts an empty one, so no join is made twice;
- the supervisor dies first: the new keeper ends its predecessor before it reads the table;
- a process that joined dies: its rows go, and `pg` sees the death itself.

Calls to `pg` may wait for a member that was stopped. They are made here and not in a process
that serves several s_groups, and `pg` itself starts after `init`, so that neither the supervisor
nor another s_group waits too.
""".

-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(TABLE, sderl_pg).

-type state() :: #{
    group := term(),
    uid := binary(),
    scope := atom(),
    pg := pid() | none,
    %% Each process that joined: our monitor, and how often it joined what.
    joined := #{pid() => {reference(), #{PgGroup :: term() => pos_integer()}}}
}.

-doc "Starts the keeper of the scope of the s_group `Group` with `Uid`.".
-spec start_link(Group :: term(), Uid :: binary()) -> gen_server:start_ret().
start_link(Group, Uid) ->
    gen_server:start_link(?MODULE, {Group, Uid}, []).

-doc false.
-spec init({term(), binary()}) -> {ok, state(), {continue, start}} | ignore.
init({Group, Uid}) ->
    process_flag(trap_exit, true),
    ok = end_predecessor(Uid),
    %% No row: dropped while it was dead.
    case ets:update_element(?TABLE, {scope, Uid}, {4, self()}) of
        true ->
            State = #{group => Group, uid => Uid, scope => sderl_pg:scope(Group), pg => none,
                      joined => #{}},
            {ok, State, {continue, start}};
        false ->
            forgotten(Uid),
            ignore
    end.

%% Where the supervisor died, a keeper may live yet that has still to hear of it, and makes the
%% joins that came before: those we would miss, or make twice.
end_predecessor(Uid) ->
    case ets:lookup(?TABLE, {scope, Uid}) of
        [{_Key, _Group, _Scope, Keeper}] when is_pid(Keeper) ->
            Monitor = monitor(process, Keeper),
            exit(Keeper, kill),
            receive
                {'DOWN', Monitor, process, Keeper, _} -> ok
            end;
        _ ->
            ok
    end.

-doc false.
-spec handle_continue(start, state()) -> {noreply, state()}.
handle_continue(start, #{uid := Uid} = State) ->
    Rows = ets:match_object(?TABLE, {{join, Uid, '_', '_'}, '_'}),
    Joined = lists:foldl(
        fun({{join, _, PgGroup, Pid}, Count}, Acc) -> count(PgGroup, Pid, Count, Acc) end, #{}, Rows
    ),
    {noreply, start_pg(State#{joined := Joined})}.

-doc false.
-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call({Asked, _PgGroup, Pids} = Request, _From, State) when Asked =:= join; Asked =:= leave ->
    case are_local(Pids) of
        true -> change(Request, State);
        false -> {reply, {error, not_local}, State}
    end;
handle_call(started, _From, State) ->
    {reply, ok, State};
handle_call(_Unknown, _From, State) ->
    {reply, {error, unknown_call}, State}.

are_local(Pids) when length(Pids) >= 0 ->
    lists:all(fun(Pid) -> is_pid(Pid) andalso node(Pid) =:= node() end, Pids);
are_local(_Other) ->
    false.

change({join, PgGroup, Pids}, #{joined := Joined} = State) ->
    Now = lists:foldl(fun(Pid, Acc) -> count(PgGroup, Pid, 1, Acc) end, Joined, Pids),
    write(PgGroup, Pids, Now, State),
    tell(join, PgGroup, Pids, State),
    {reply, ok, State#{joined := Now}};
change({leave, PgGroup, Pids}, #{joined := Joined} = State) ->
    {Left, Now} = lists:foldl(
        fun(Pid, {Left, Acc}) ->
            case uncount(PgGroup, Pid, Acc) of
                Acc -> {Left, Acc};
                Fewer -> {[Pid | Left], Fewer}
            end
        end,
        {[], Joined},
        Pids
    ),
    write(PgGroup, Left, Now, State),
    tell(leave, PgGroup, Left, State),
    Reply = case Left of [] when Pids =/= [] -> not_joined; _ -> ok end,
    {reply, Reply, State#{joined := Now}}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()} | {stop, normal, state()}.
handle_cast(drop, State) ->
    {stop, normal, dropped(State)};
handle_cast(_Unknown, State) ->
    {noreply, State}.

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()} | {stop, normal, state()}.
handle_info({'EXIT', Pg, Reason}, #{pg := Pg, group := Group, uid := Uid} = State) ->
    case ets:member(?TABLE, {scope, Uid}) of
        true ->
            Started = start_pg(State),
            sderl_event:emit(pg_restarted,
                             #{group => Group, joins => joins(Started), reason => Reason}),
            {noreply, Started};
        false ->
            %% The scope belongs to the next s_group of that name.
            {stop, normal, dropped(State#{pg := none})}
    end;
handle_info({'DOWN', Monitor, process, Pid, _Reason}, #{joined := Joined, uid := Uid} = State) ->
    case Joined of
        #{Pid := {Monitor, Counts}} ->
            _ = [ets:delete(?TABLE, {join, Uid, PgGroup, Pid}) || PgGroup := _ <- Counts],
            {noreply, State#{joined := maps:remove(Pid, Joined)}};
        #{} ->
            {noreply, State}
    end;
handle_info(_Unknown, State) ->
    {noreply, State}.

-doc false.
-spec terminate(term(), state()) -> ok.
terminate(_Reason, #{pg := Pg}) ->
    %% A link would not end it for the reason `normal`. Killed, it is gone for its peers at
    %% once, and so are its members; asked to stop, it might first wait for a link.
    _ = is_pid(Pg) andalso exit(Pg, kill),
    ok.

dropped(#{uid := Uid} = State) ->
    true = ets:match_delete(?TABLE, {{join, Uid, '_', '_'}, '_'}),
    forgotten(Uid),
    State.

forgotten(Uid) ->
    Keeper = self(),
    _ = spawn(fun() ->
        Monitor = monitor(process, Keeper),
        receive {'DOWN', Monitor, process, Keeper, _} -> sderl_pg_sup:forget(Uid) end
    end),
    ok.

%% The scope

start_pg(#{scope := Scope, joined := Joined} = State) ->
    Started = State#{pg := new_pg(Scope)},
    _ = [
        tell(join, PgGroup, lists:duplicate(Count, Pid), Started)
     || Pid := {_Monitor, Counts} <- Joined, PgGroup := Count <- Counts
    ],
    Started.

%% A scope that runs already belongs to a predecessor: its exit signal is on the way, or it died
%% without one. Its joins are not ours to count on.
new_pg(Scope) ->
    case pg:start_link(Scope) of
        {ok, Pg} ->
            Pg;
        {error, {already_started, Old}} ->
            Monitor = monitor(process, Old),
            exit(Old, kill),
            receive
                {'DOWN', Monitor, process, Old, _} -> new_pg(Scope)
            end
    end.

tell(_What, _PgGroup, [], _State) ->
    ok;
tell(What, PgGroup, Pids, #{scope := Scope, uid := Uid}) ->
    try
        _ = pg:What(Scope, {Uid, PgGroup}, Pids),
        ok
    catch
        %% Its 'EXIT' is in our mailbox and starts a replay of the table, where this is.
        exit:{_Reason, {gen_server, call, _}} -> ok
    end.

%% Members
count(PgGroup, Pid, More, Joined) ->
    case Joined of
        #{Pid := {Monitor, #{PgGroup := Count} = Counts}} ->
            Joined#{Pid := {Monitor, Counts#{PgGroup := Count + More}}};
        #{Pid := {Monitor, Counts}} ->
            Joined#{Pid := {Monitor, Counts#{PgGroup => More}}};
        #{} ->
            Joined#{Pid => {monitor(process, Pid), #{PgGroup => More}}}
    end.

uncount(PgGroup, Pid, Joined) ->
    case Joined of
        #{Pid := {Monitor, #{PgGroup := 1} = Counts}} when map_size(Counts) =:= 1 ->
            demonitor(Monitor, [flush]),
            maps:remove(Pid, Joined);
        #{Pid := {Monitor, #{PgGroup := 1} = Counts}} ->
            Joined#{Pid := {Monitor, maps:remove(PgGroup, Counts)}};
        #{Pid := {Monitor, #{PgGroup := Count} = Counts}} ->
            Joined#{Pid := {Monitor, Counts#{PgGroup := Count - 1}}};
        #{} ->
            Joined
    end.

write(PgGroup, Pids, Joined, #{uid := Uid}) ->
    lists:foreach(
        fun(Pid) ->
            Key = {join, Uid, PgGroup, Pid},
            case Joined of
                #{Pid := {_Monitor, #{PgGroup := Count}}} -> ets:insert(?TABLE, {Key, Count});
                #{} -> ets:delete(?TABLE, Key)
            end
        end,
        Pids
    ).

joins(#{joined := Joined}) ->
    lists:sum([Count || _ := {_Monitor, Counts} <- Joined, _ := Count <- Counts]).

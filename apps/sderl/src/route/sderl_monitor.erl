%% SPDX-License-Identifier: Apache-2.0
-module(sderl_monitor).
-moduledoc false.
%% One process a node for watching processes of other nodes without a link to them: for callers of
%% this node (`sderl_lease`), and on behalf of other nodes (`sderl_leased`). It looks names up, in
%% helpers, and sends `DOWN` messages to the watching processes.
%%
%% The watches of callers of this node are in a table, with which a restarted process of this module
%% begins. What it watched for other nodes it is told again.

-behaviour(gen_server).

-compile({no_auto_import, [monitor/2, demonitor/1]}).

-export([new/0, start_link/0, monitor/2, watch/1, demonitor/1, info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

%% The helper processes of these answer with their exit reason.
-dialyzer({nowarn_function, [ask/3]}).

-define(TABLE, sderl_monitors).
-define(VSN, 1).
-define(TICK_MS, 500).
-define(FIND_MS, 5000).
-define(PRUNE_MS, 60_000).

-record(m, {
    lease = sderl_lease:new() :: sderl_lease:lease(),
    leased = sderl_leased:new() :: sderl_leased:leased(),
    life = erlang:unique_integer([monotonic]) :: integer(),
    %% Monitors: of callers, of processes of own groups, of helpers, of what other nodes watch.
    mons = #{} :: #{reference() => {owner | near | helper, reference()}
                    | {for, node(), reference()}},
    own = #{} :: #{reference() => [reference()]},
    others = #{} :: #{{node(), reference()} => reference()},
    %% Aliases that hear which messages to a node could not be delivered.
    aliases = #{} :: #{node() => reference()},
    alias_of = #{} :: #{reference() => node()},
    dead_twins = [] :: [pid()],
    tick :: reference(),
    prune :: reference()
}).

-spec new() -> ets:table().
new() -> ets:new(?TABLE, [named_table, public]).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "Monitors the process that has a name, for the calling process.".
-spec monitor(term(), term()) -> reference().
monitor(Group, Name) -> add({Group, Name}, undefined).

-doc "The same for a process of another node.".
-spec watch(pid()) -> reference().
watch(Pid) -> add(Pid, Pid).

%% In the table first: if the server is being restarted, its successor finds it.
add(What, Pid) ->
    Ref = make_ref(),
    true = ets:insert(?TABLE, {Ref, self(), What, Pid}),
    ok = gen_server:cast(?MODULE, {add, Ref}),
    Ref.

-doc "After this returns no message comes any more. `false`: the monitor was over.".
-spec demonitor(reference()) -> boolean().
demonitor(Ref) ->
    Had = ets:member(?TABLE, Ref) andalso ets:lookup_element(?TABLE, Ref, 2, none) =:= self(),
    _ = Had andalso begin
        true = ets:delete(?TABLE, Ref),
        try gen_server:call(?MODULE, {drop, Ref}, infinity)
        catch exit:_ -> ok
        end
    end,
    Had.

-doc "How much is watched for this node's processes, and for others by node.".
-spec info() -> #{watching := non_neg_integer(), watched := #{node() => non_neg_integer()}}.
info() -> gen_server:call(?MODULE, info).

%% ---------------------------------------------------------------- callbacks

-spec init([]) -> {ok, #m{}}.
init([]) ->
    _ = process_flag(async_dist, true),
    M0 = #m{tick = sderl_timer:next(none, ?TICK_MS, tick),
            prune = sderl_timer:next(none, ?PRUNE_MS, prune)},
    {Sound, Unsound} = lists:partition(fun is_row/1, ets:tab2list(?TABLE)),
    lists:foreach(fun(Row) -> ets:delete(?TABLE, element(1, Row)) end, Unsound),
    sderl_event:dropped(?MODULE, length(Unsound), #{}),
    {ok, lists:foldl(fun({Ref, _, _, _}, M) -> added(Ref, M) end, M0, Sound)}.

is_row({Ref, Owner, What, Pid}) ->
    is_reference(Ref) andalso is_pid(Owner)
        andalso (is_pid(Pid)
            orelse Pid =:= undefined andalso is_tuple(What) andalso tuple_size(What) =:= 2);
is_row(_) -> false.

-spec handle_call(term(), gen_server:from(), #m{}) -> {reply, term(), #m{}}.
handle_call({drop, Ref}, _, M) -> {reply, ok, drop(Ref, M)};
handle_call(info, _, #m{lease = Lease, leased = Leased} = M) ->
    {reply, #{watching => map_size(sderl_lease:watched(Lease)),
              watched => maps:filter(fun(_, N) -> N > 0 end, sderl_leased:watches(Leased))}, M};
handle_call(_, _, M) -> {reply, {error, unknown_call}, M}.

-spec handle_cast(term(), #m{}) -> {noreply, #m{}}.
handle_cast({add, Ref}, M) -> {noreply, added(Ref, M)};
handle_cast(_, M) -> {noreply, unknown(M)}.

-spec handle_info(term(), #m{}) -> {noreply, #m{}}.
handle_info(tick, #m{tick = Timer} = M) ->
    Now = now_ms(),
    Next = M#m{tick = sderl_timer:next(Timer, ?TICK_MS, tick)},
    {noreply, leased(Now, tick, lease(Now, tick, Next))};
handle_info(prune, #m{dead_twins = Before, prune = Timer} = M) ->
    {noreply, M#m{dead_twins = sderl_twin:prune(Before),
                  prune = sderl_timer:next(Timer, ?PRUNE_MS, prune)}};
handle_info({sderl_watch, ?VSN, Node, Life, Message}, M)
  when is_atom(Node), tuple_size(Life) =:= 2 ->
    case {sderl_lease:is_have(Message), sderl_leased:is_want(Message)} of
        {true, _} -> {noreply, lease(now_ms(), {message, Node, Life, Message}, M)};
        {_, true} -> {noreply, leased(now_ms(), {message, Node, Life, Message}, M)};
        _ -> {noreply, unknown(M)}
    end;
handle_info({Alias, failed, Why}, #m{alias_of = Of} = M) when is_map_key(Alias, Of), is_atom(Why) ->
    {noreply, lease(now_ms(), {failed, maps:get(Alias, Of), Why}, M)};
handle_info({'DOWN', Mon, process, _, Reason}, #m{mons = Mons} = M) ->
    case maps:take(Mon, Mons) of
        {What, Rest} -> {noreply, ended(What, Reason, M#m{mons = Rest})};
        error -> {noreply, M}
    end;
handle_info(_, M) -> {noreply, unknown(M)}.

unknown(M) ->
    sderl_refused:note_message(?MODULE),
    M.

%% ---------------------------------------------------------------- for this node's processes

added(Ref, #m{own = Own} = M) when is_map_key(Ref, Own) -> M;
added(Ref, #m{own = Own} = M0) ->
    case ets:lookup(?TABLE, Ref) of
        [{_, Owner, What, Pid}] ->
            M = mon(Owner, owner, Ref, M0#m{own = Own#{Ref => []}}),
            case Pid of
                undefined -> find(What, Ref, M);
                _ -> watch(Ref, Pid, M)
            end;
        [] -> M0
    end.

mon(Pid, Kind, Ref, #m{own = Own, mons = Mons} = M) ->
    Mon = erlang:monitor(process, Pid),
    M#m{mons = Mons#{Mon => {Kind, Ref}}, own = Own#{Ref := [Mon | maps:get(Ref, Own)]}}.

find({Group, Name}, Ref, M) ->
    case sderl_names:is_member(Group) of
        true ->
            case sderl_names:whereis(Group, Name) of
                undefined -> tell(Ref, noproc, M);
                Pid -> near(Ref, Pid, M)
            end;
        false -> ask({Group, Name}, Ref, M)
    end.

ask({Group, Name}, Ref, #m{mons = Mons} = M) ->
    {_, Mon} = spawn_monitor(fun() ->
        exit({found, sderl_route_call:call(Group, {whois, Name}, none, ?FIND_MS)})
    end),
    M#m{mons = Mons#{Mon => {helper, Ref}}}.

watch(Ref, Pid, M) when node(Pid) =:= node() -> near(Ref, Pid, M);
watch(Ref, Pid, M) -> lease(now_ms(), {watch, Ref, Pid}, M).

%% A process of a mate is monitored over the link that the group has.
near(Ref, Pid, M) ->
    case node(Pid) =:= node() orelse lists:member(node(Pid), nodes(connected)) of
        true -> mon(Pid, near, Ref, M);
        false -> lease(now_ms(), {watch, Ref, Pid}, M)
    end.

ended({owner, Ref}, _, M) ->
    true = ets:delete(?TABLE, Ref),
    drop(Ref, M);
ended({near, Ref}, Reason, M) -> tell(Ref, Reason, M);
ended({for, Node, Ref}, Reason, #m{others = Others} = M) ->
    leased(now_ms(), {died, Node, Ref, Reason}, M#m{others = maps:remove({Node, Ref}, Others)});
ended({helper, Ref}, Found, #m{own = Own} = M) when is_map_key(Ref, Own) ->
    case Found of
        {found, {ok, Pid}} when is_pid(Pid) ->
            _ = ets:update_element(?TABLE, Ref, {4, Pid}),
            watch(Ref, Pid, M);
        {found, {error, no_name}} -> tell(Ref, noproc, M);
        {found, {error, unreachable}} -> tell(Ref, noconnection, M);
        _ -> tell(Ref, lost_route, M)
    end;
ended({helper, _}, _, M) -> M.

tell(Ref, Reason, M) ->
    _ = [Owner ! {'DOWN', Ref, process, What, Reason}
         || {_, Owner, What, _} <- ets:take(?TABLE, Ref)],
    drop(Ref, M).

drop(Ref, #m{own = Own, mons = Mons} = M) ->
    case maps:take(Ref, Own) of
        {Ours, Rest} ->
            lists:foreach(fun(Mon) -> true = erlang:demonitor(Mon, [flush]) end, Ours),
            lease(now_ms(), {unwatch, Ref}, M#m{own = Rest, mons = maps:without(Ours, Mons)});
        error -> M
    end.

%% ---------------------------------------------------------------- effects

lease(Now, Event, #m{lease = Lease0} = M) ->
    {Effects, Lease} = sderl_lease:step(Now, Event, Lease0),
    lists:foldl(fun effect/2, M#m{lease = Lease}, Effects).

leased(Now, Event, #m{leased = Leased0} = M) ->
    {Effects, Leased} = sderl_leased:step(Now, Event, Leased0),
    lists:foldl(fun effect/2, M#m{leased = Leased}, Effects).

effect({send, Node, Try, Memory, {want, _, _, _, _} = Want}, #m{life = Life} = M0) ->
    {Alias, M} = alias_for(Node, M0),
    case send(Node, Alias, {Life, Memory}, Want, Try) of
        %% Nobody else will say so.
        {error, no_route} -> _ = mate(Node) andalso (self() ! {Alias, failed, unreachable}), M;
        _ -> M
    end;
effect({send, Node, Try, Memory, {have, _, _, _, _, _} = Have}, #m{life = Life} = M) ->
    _ = send(Node, none, {Life, Memory}, Have, Try),
    M;
effect({down, Ref, Reason}, M) -> tell(Ref, Reason, M);
effect({lost, Node, Reason, Count}, M) ->
    sderl_event:emit(route_lost, #{node => Node, reason => Reason, processes => Count}),
    M;
effect({forget, Node}, #m{aliases = Aliases, alias_of = Of} = M) ->
    case maps:take(Node, Aliases) of
        {Alias, Rest} -> _ = unalias(Alias), M#m{aliases = Rest, alias_of = maps:remove(Alias, Of)};
        error -> M
    end;
effect({monitor, Node, Ref, Pid}, #m{mons = Mons, others = Others} = M) when node(Pid) =:= node() ->
    Mon = erlang:monitor(process, Pid),
    M#m{mons = Mons#{Mon => {for, Node, Ref}}, others = Others#{{Node, Ref} => Mon}};
effect({monitor, Node, Ref, _}, M) -> leased(now_ms(), {died, Node, Ref, noproc}, M);
effect({demonitor, Node, Ref}, #m{mons = Mons, others = Others} = M) ->
    case maps:take({Node, Ref}, Others) of
        {Mon, Rest} ->
            true = erlang:demonitor(Mon, [flush]),
            M#m{mons = maps:remove(Mon, Mons), others = Rest};
        error -> M
    end.

alias_for(Node, #m{aliases = Aliases, alias_of = Of} = M) ->
    case Aliases of
        #{Node := Alias} -> {Alias, M};
        #{} ->
            Alias = alias(),
            {Alias, M#m{aliases = Aliases#{Node => Alias}, alias_of = Of#{Alias => Node}}}
    end.

send(Node, From, Life, Message, Try) ->
    Whole = {sderl_watch, ?VSN, node(), {erlang:system_info(creation), Life}, Message},
    sderl_route_send:again(Node, {process, ?MODULE}, From, Whole, Try).

mate(Node) -> sderl_dir:shares_named_group(Node).

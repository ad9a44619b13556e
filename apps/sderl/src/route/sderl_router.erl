%% SPDX-License-Identifier: Apache-2.0
-module(sderl_router).
-moduledoc false.
%% One process a node: runs `sderl_route_state` and keeps the table of routes.
%%
%% A gateway that was stopped, or whose host is gone without closing its links, is not used any more
%% after three beats, long before the runtime closes the link. Its mates see that it is well by the
%% heartbeats between nodes (`sderl_heart`); if these say nothing of it, a router asks it directly.
%%
%% | row of the table | |
%% |---|---|
%% | `{{group, Group}, Gateways, {First, ...}}` | how far, and by which mates |
%% | `{{node, Node}, Gateways, {First, ...}}` | the same for a member of such a group |
%% | `{{members, Group}, [Node]}` | of a group that a route leads to |
%% | `{{ready, Group}, Uid}` | this member has the names of the group |
%% | `{{told, Node}, Version, Gateways}`, `{{told, Node, Group}, Uid, [Node]}` | the advertisement of a gateway, and what it says of each group: what a successor of this process begins with |
%%
%% A member that has just started is no gateway until it has its group's names: before, it would
%% answer for each that there is none.
%%
%% The table belongs to the supervisor, so routes stay while this process is restarted. A restarted
%% router learns from its mates' digests what has changed meanwhile.

-behaviour(gen_server).

-export([new/0, start_link/0, changed/1, info/0, ready/1]).
-export([first/1, leads_to/1, members/1, memberships/0, ways/0, gateways_between/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-import(sderl_clock, [now_ms/0]).

-define(TABLE, sderl_routes).
-define(VSN, 1).
%% How often a summary goes to a mate, in ms.
-define(COMPARE, 10_000).
-define(BEATS, 3).
%% How many own groups are compared with the directory at once.
-define(SOME, 100).
%% A group that does not get ready, for whatever reason, is advertised after so long all the same.
-define(READY_MS, 30_000).
%% The pause between two computations of routes: this many times the duration of one, and so long at
%% most. With many groups one takes long, and changes come one after the other.
-define(REST, 20).
-define(REST_MS, 5000).
%% The largest initial heap for their computation, in words.
-define(ROOM, 8_000_000).
%% How long successive changes of gateways are held back, in ms: at first, and at most.
-define(HOLD_MS, 50).
-define(HOLDS_MS, 1000).

-record(r, {
    self = node(), state :: sderl_route_state:state(),
    beat_ms :: pos_integer(),
    beat = none :: none | reference(), compare = none :: none | reference(),
    %% When a gateway that this node uses was last heard, and those that are silent.
    heard = #{} :: #{node() => integer()},
    silent = #{} :: #{node() => []},
    last :: integer(),
    %% The mates to which `sderl_heart` repeats for this gateway that it is well.
    stands = [] :: [node()],
    %% The own groups that are still to be compared with the directory.
    unlooked = [] :: [Group :: term()],
    %% Routes are to be computed again: by a timer, once for all changes until then (`true`), or
    %% when changes are no longer held back (`held`).
    due = false :: false | held | true,
    %% Not before then, in monotonic milliseconds.
    due_at :: integer(),
    %% The process that computes them, and since when. The words that such a process last took.
    computing = none :: none | {pid(), Began :: integer()},
    room = 233 :: pos_integer(),
    %% The changes that wait to be sent, and for how long they, and the routes, are held back;
    %% `none` while all is sent at once.
    words = sderl_route_bundle:new() :: sderl_route_bundle:bundle(),
    hold_ms = none :: none | pos_integer(),
    %% The processes that wait until a group is ready, and which group each waits for.
    waiting = #{} :: #{Group :: term() => {Uid :: binary(), pid(), reference()}},
    monitors = #{} :: #{reference() => Group :: term()}
}).

-spec new() -> ets:table().
new() -> ets:new(?TABLE, [named_table, public, {read_concurrency, true}]).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc "An own group, or its members, changed.".
-spec changed(Group :: term()) -> ok.
changed(Group) -> gen_server:cast(?MODULE, {changed, Group}).

-doc "The advertisements of gateways, and the silent ones among those next to this node.".
-spec info() -> #{gateways := [sderl_route_state:advertisement()], silent := [node()]}.
info() -> gen_server:call(?MODULE, info).

-spec init([]) -> {ok, #r{}}.
init([]) ->
    _ = process_flag(async_dist, true),
    ok = net_kernel:monitor_nodes(true, #{node_type => all}),
    Beat = sderl_route_config:value(route_beat_ms),
    Timers = {sderl_timer:next(none, Beat, beat),
              sderl_timer:next(none, rand:uniform(?COMPARE), compare)},
    {Sound, Unsound} = kept(),
    lists:foreach(fun(Key) -> ets:delete(?TABLE, Key) end, Unsound),
    sderl_event:dropped(?MODULE, length(Unsound), #{}),
    %% Even if nothing has changed for the state: a predecessor may have written half of the table.
    self() ! show,
    {ok, regrouped(begun(Beat, Timers, Sound))}.

%% The advertisements that a predecessor kept, and the keys of rows that belong to none. (The row of
%% a group that a gateway left, without members, may not have been deleted yet.)
kept() ->
    Rows = [Row || Row <- ets:tab2list(?TABLE), element(1, element(1, Row)) =:= told],
    Groups = maps:groups_from_list(fun({Node, _}) -> Node end, fun({_, Membership}) ->
        Membership
    end, [{Node, {G, Uid, Ms}} || {{told, Node, G}, Uid, Ms} <- Rows, Ms =/= []]),
    Ads = [{Node, Version, maps:get(Node, Groups, []), Links}
           || {{told, Node}, Version, Links} <- Rows],
    Sound = [Ad || Ad <- Ads, sderl_route_state:advertisement(Ad)],
    Nodes = #{Node => [] || {Node, _, _, _} <- Sound},
    {Sound, [element(1, Row) || Row <- Rows, not is_sound(Row, Nodes)]}.

is_sound({{told, Node}, _, _}, Nodes) -> is_map_key(Node, Nodes);
is_sound({{told, Node, _}, _, [_ | _]}, Nodes) -> is_map_key(Node, Nodes);
is_sound(_, _) -> false.

drop(Node) ->
    true = ets:delete(?TABLE, {told, Node}),
    true = ets:match_delete(?TABLE, {{told, Node, '_'}, '_', '_'}),
    ok.

begun(Beat, {BeatTimer, CompareTimer}, Kept) ->
    State = sderl_route_state:new(node(), erlang:system_time(millisecond), nodes(connected), Kept),
    Now = now_ms(),
    #r{state = State, beat_ms = Beat, beat = BeatTimer, compare = CompareTimer, last = Now,
       due_at = Now}.

groups() ->
    lists:sort([{G, Uid, lists:sort(Ms)}
                || {G, #{uid := Uid, members := Ms}} <- sderl_dir:all(), G =/= undefined,
                   ets:lookup_element(?TABLE, {ready, G}, 2, none) =:= Uid]).

-doc "The mates that may be the first on the way to a group or a node; `{}` if there is no way.".
-spec first({group, Group :: term()} | {node, node()}) -> tuple().
first(Key) -> ets:lookup_element(?TABLE, Key, 3, {}).

-doc "Whether there is a way to a group of other nodes.".
-spec leads_to(term()) -> boolean().
leads_to(Group) -> ets:member(?TABLE, {group, Group}).

-doc "The members of a group that a route leads to, as gateways advertise them.".
-spec members(term()) -> [node()].
members(Group) -> ets:lookup_element(?TABLE, {members, Group}, 2, []).

-doc "The groups that routes lead to, with their members as gateways advertise them.".
-spec memberships() -> [{Group :: term(), [node()]}].
memberships() -> ets:select(?TABLE, [{{{members, '$1'}, '$2'}, [], [{{'$1', '$2'}}]}]).

-doc "The groups that routes lead to, with how many gateways are crossed and who may be the first.".
-spec ways() -> [{Group :: term(), Gateways :: pos_integer(), First :: [node()]}].
ways() ->
    [{G, Far, tuple_to_list(First)}
     || {G, Far, First} <- ets:select(?TABLE,
                                      [{{{group, '$1'}, '$2', '$3'}, [], [{{'$1', '$2', '$3'}}]}])].

-doc "The nodes that routes lead to, with the number of gateways on the way to each.".
-spec gateways_between() -> #{node() => pos_integer()}.
gateways_between() ->
    maps:from_list(ets:select(?TABLE, [{{{node, '$1'}, '$2', '_'}, [], [{{'$1', '$2'}}]}])).

-doc "Whether this member of a group has its names.".
-spec ready(term()) -> boolean().
ready(Group) -> ets:member(?TABLE, {ready, Group}).

%% Takes over an own group from the directory. It is advertised when it is ready.
follow(Group, #r{waiting = Waiting} = R) ->
    Ready = ets:lookup_element(?TABLE, {ready, Group}, 2, none),
    case {sderl_dir:group(Group), Waiting} of
        {#{uid := Ready, members := Ms}, _} -> {{Ready, lists:sort(Ms)}, R};
        {#{uid := Uid}, #{Group := {Uid, _, _}}} -> {none, R};
        {#{uid := Uid}, _} ->
            true = ets:delete(?TABLE, {ready, Group}),
            {none, await(Group, Uid, forget(Group, R))};
        {none, _} ->
            true = ets:delete(?TABLE, {ready, Group}),
            {none, forget(Group, R)}
    end.

await(Group, Uid, #r{waiting = Waiting, monitors = Monitors} = R) ->
    {Pid, Monitor} = spawn_monitor(fun() -> _ = sderl_client:await(Group, ?READY_MS), ok end),
    R#r{waiting = Waiting#{Group => {Uid, Pid, Monitor}}, monitors = Monitors#{Monitor => Group}}.

forget(Group, #r{waiting = Waiting, monitors = Monitors} = R) ->
    case maps:take(Group, Waiting) of
        {{_, Pid, Monitor}, Rest} ->
            true = demonitor(Monitor, [flush]),
            true = exit(Pid, kill),
            R#r{waiting = Rest, monitors = maps:remove(Monitor, Monitors)};
        error -> R
    end.

awaited(Monitor, #r{waiting = Waiting, monitors = Monitors} = R) ->
    case maps:take(Monitor, Monitors) of
        {Group, Rest} ->
            {{Uid, _, _}, Others} = maps:take(Group, Waiting),
            case sderl_dir:uid(Group) of
                Uid -> true = ets:insert(?TABLE, {{ready, Group}, Uid});
                _ -> true
            end,
            regrouped(Group, R#r{waiting = Others, monitors = Rest});
        error -> unknown(R)
    end.

regrouped(undefined, R) -> R;
regrouped(Group, R0) ->
    {Now, R} = follow(Group, R0),
    run([{group, Group, Now}], R).

%% All own groups, at the start.
regrouped(R0) ->
    R = lists:foldl(fun(Group, Acc) -> element(2, follow(Group, Acc)) end, R0, own_names(R0)),
    run([{groups, groups()}], R).

own_names(#r{waiting = Waiting}) ->
    Ready = [G || [G] <- ets:match(?TABLE, {{ready, '$1'}, '_'})],
    lists:uniq(sderl_dir:named_groups() ++ Ready ++ maps:keys(Waiting)).

%% All own groups now and then, because a process of a group may end before it says what changed;
%% some at a time, because with thousands of groups a change would otherwise wait for all of them.
look(#r{unlooked = Names} = R) ->
    {Some, Rest} = lists:split(min(?SOME, length(Names)), Names),
    _ = Rest =:= [] orelse (self() ! look),
    lists:foldl(fun regrouped/2, R#r{unlooked = Rest}, Some).

-spec handle_call(term(), gen_server:from(), #r{}) -> {reply, term(), #r{}}.
handle_call(info, _, #r{state = S, silent = Silent} = R) ->
    {reply, #{gateways => lists:sort(sderl_route_state:gateways(S)),
              silent => lists:sort(maps:keys(Silent))}, R};
handle_call(_, _, R) -> {reply, {error, unknown_call}, R}.

-spec handle_cast(term(), #r{}) -> {noreply, #r{}}.
%% With another name this node is another one.
handle_cast({changed, _}, #r{self = Self, beat_ms = Ms, beat = Beat, compare = Compare} = R)
  when Self =/= node() ->
    _ = case R#r.computing of {Pid, _} -> sderl_route_compute:stop(Pid); none -> none end,
    true = ets:delete_all_objects(?TABLE),
    {noreply, regrouped(begun(Ms, {Beat, Compare}, []))};
handle_cast({changed, Group}, R) -> {noreply, regrouped(Group, R)};
handle_cast(_, R) -> {noreply, unknown(R)}.

-spec handle_info(term(), #r{}) -> {noreply, #r{}}.
handle_info({sderl_route, ?VSN, From, Message}, R) when is_atom(From) ->
    {noreply, message(From, Message, R)};
handle_info({nodeup, Node, _}, R) when is_atom(Node) -> {noreply, run([{up, Node}], R)};
handle_info({nodedown, Node, _}, #r{heard = Heard, silent = Silent} = R) when is_atom(Node) ->
    {noreply, run([{down, Node}], R#r{heard = maps:remove(Node, Heard),
                                      silent = maps:remove(Node, Silent),
                                      words = sderl_route_bundle:drop(Node, R#r.words),
                                      stands = lists:delete(Node, R#r.stands)})};
handle_info(beat, #r{beat_ms = Ms, beat = Timer} = R) ->
    {noreply, beat(R#r{beat = sderl_timer:next(Timer, Ms, beat)})};
handle_info({'DOWN', Mon, process, _, _}, R) -> {noreply, awaited(Mon, R)};
handle_info(show, #r{computing = none} = R) -> {noreply, compute(R)};
handle_info(show, R) -> {noreply, R#r{due = held}};
handle_info({shown, Pid, Room}, #r{computing = {Pid, Began}} = R) when is_integer(Room) ->
    {noreply, computed(Began, Room, R)};
%% A timer from before this node got its name.
handle_info(say, #r{hold_ms = none} = R) -> {noreply, R};
handle_info(say, #r{words = Words, hold_ms = Ms, due = Due} = R) ->
    case sderl_route_bundle:is_empty(Words) andalso Due =/= held of
        true -> {noreply, R#r{hold_ms = none}};
        false -> {noreply, say(min(?HOLDS_MS, 2 * Ms), R)}
    end;
handle_info(compare, #r{compare = Timer} = R) ->
    Next = R#r{compare = sderl_timer:next(Timer, ?COMPARE, compare), unlooked = own_names(R)},
    {noreply, run([{compare, rand:uniform(1 bsl 20)}], look(Next))};
handle_info(look, R) -> {noreply, look(R)};
handle_info(_, R) -> {noreply, unknown(R)}.

message(From, {news, News}, R) when length(News) >= 0 ->
    case lists:all(fun sderl_route_state:advertisement/1, News) of
        true -> run([{message, From, {news, News}}], heard(From, R));
        false -> unknown(R)
    end;
message(From, {change, Change}, R) ->
    case sderl_route_state:change(Change) of
        true -> run([{message, From, {change, Change}}], heard(From, R));
        false -> unknown(R)
    end;
message(From, {changes, Changes}, R) when length(Changes) >= 0 ->
    case lists:all(fun sderl_route_state:change/1, Changes) of
        true -> run([{message, From, {changes, Changes}}], heard(From, R));
        false -> unknown(R)
    end;
message(From, {digest, Answer, Digest}, R) when is_boolean(Answer), length(Digest) >= 0 ->
    case lists:all(fun({N, V}) -> is_atom(N) andalso sderl_route_state:version(V); (_) -> false end,
                   Digest) of
        true -> run([{message, From, {digest, Answer, Digest}}], heard(From, R));
        false -> unknown(R)
    end;
message(From, {summary, Hash}, R) when is_integer(Hash) ->
    run([{message, From, {summary, Hash}}], heard(From, R));
message(From, beat, R) ->
    tell(From, beaten),
    heard(From, R);
message(From, beaten, R) -> heard(From, R);
message(_, _, R) -> unknown(R).

unknown(R) ->
    sderl_refused:note_message(?MODULE),
    R.

%% ---------------------------------------------------------------- beats

%% Checks when the gateways next to this node were last heard, and asks those of which the nodes'
%% heartbeats say nothing. A gateway that gives no sign for three beats counts as down.
beat(#r{state = S, heard = Heard0, silent = Silent0, beat_ms = Ms, last = Last} = R0) ->
    Now = now_ms(),
    Linked = nodes(connected),
    Next = [N || N <- sderl_route_state:gateway_mates(S), lists:member(N, Linked)],
    Told = told(Next, Now - (Ms + Ms div 4)),
    lists:foreach(fun(N) -> tell(N, beat) end, [N || N <- Next, not is_map_key(N, Told)]),
    %% A node that was itself stopped knows nothing of the others' silence.
    Heard = case Now - Last > 2 * Ms of
        true -> #{N => Now || N <- Next};
        false ->
            maps:merge_with(fun(_, A, B) -> max(A, B) end,
                            #{N => maps:get(N, Heard0, Now) || N <- Next}, Told)
    end,
    Again = [N || N := _ <- Told, is_map_key(N, Silent0)],
    Silent = maps:without(Again, Silent0),
    New = [N || N := At <- Heard, Now - At > ?BEATS * Ms, not is_map_key(N, Silent)],
    lists:foreach(fun(N) ->
        sderl_event:emit(gateway_silent, #{node => N, silent_ms => Now - maps:get(N, Heard)})
    end, New),
    R = R0#r{heard = Heard, last = Now, silent = maps:merge(Silent, #{N => [] || N <- New})},
    stand(Now, run([{up, N} || N <- Again] ++ [{down, N} || N <- New], R)).

%% When these were last heard, if after `Since`.
told(Nodes, Since) ->
    #{N => At
      || N <- Nodes, At <- [sderl_heart:last(sderl_beats:router(), N)], At =/= none, At > Since}.

%% Says that this gateway is well until its next beat. (If the nodes' heartbeats come less often
%% than that, routers ask each other.)
stand(Now, #r{state = S, beat_ms = Ms, stands = Stands} = R) ->
    Uid = sderl_beats:router(),
    Tick = sderl_options:value(tick_ms),
    Until = Now + Ms - Tick,
    case [N || Tick =< Ms, N <- lists:sort(sderl_route_state:watchers(S))] of
        [] -> ok = sderl_heart:leave(Uid), R#r{stands = []};
        Stands ->
            _ = sderl_heart:tick(Uid, Until) orelse sderl_heart:stand(Uid, Until, Stands),
            R;
        Nodes ->
            ok = sderl_heart:stand(Uid, Until, Nodes),
            R#r{stands = Nodes}
    end.

heard(From, #r{heard = Heard, silent = Silent} = R) ->
    Again = R#r{heard = case Heard of #{From := _} -> Heard#{From := now_ms()}; _ -> Heard end},
    case Silent of
        #{From := _} -> run([{up, From}], Again#r{silent = maps:remove(From, Silent)});
        _ -> Again
    end.

%% ---------------------------------------------------------------- effects

run(Events, #r{state = S0} = R0) ->
    Now = now_ms(),
    {Effects, S} = lists:foldl(fun(E, {Acc, S1}) ->
        {More, S2} = sderl_route_state:step(Now, E, S1),
        {Acc ++ More, S2}
    end, {[], S0}, Events),
    R = R0#r{state = S, words = lists:foldl(fun effect/2, R0#r.words, Effects)},
    case lists:member(changed, Effects) of
        true -> said(note_change(lists:all(fun is_message/1, Events), R));
        false -> said(R)
    end.

is_message({message, _, _}) -> true;
is_message(_) -> false.

%% Changes that others report may wait for more; changes that this node sees itself get into the
%% routes at once.
note_change(_, #r{due = true} = R) -> R;
note_change(true, #r{hold_ms = Ms} = R) when Ms =/= none -> R#r{due = held};
note_change(_, R) -> due(R).

due(#r{due_at = At} = R) ->
    _ = erlang:send_after(max(0, At - now_ms()), self(), show),
    R#r{due = true}.

%% A single change is sent at once, by every router on its way. While it goes on, changes are
%% collected for longer and longer: a cluster that forms has many, and each goes to all nodes.
said(#r{words = Words, hold_ms = none, due = Due} = R) ->
    case sderl_route_bundle:is_empty(Words) andalso Due =:= false of
        true -> R;
        false -> say(?HOLD_MS, R)
    end;
said(R) -> R.

say(Ms, #r{words = Words} = R) ->
    lists:foreach(fun({Node, Message}) -> tell(Node, Message) end,
                  sderl_route_bundle:messages(Words)),
    _ = erlang:send_after(Ms, self(), say),
    Said = R#r{words = sderl_route_bundle:new(), hold_ms = Ms},
    case R#r.due of
        held -> due(Said);
        _ -> Said
    end.

effect({send, Node, {What, _} = Message}, Words) when What =:= news; What =:= change ->
    sderl_route_bundle:add(Node, Message, Words);
%% A question or a digest to a node is sent after the changes that wait for it.
effect({send, Node, Message}, Words) ->
    {Before, Rest} = sderl_route_bundle:take(Node, Words),
    lists:foreach(fun(Word) -> tell(Node, Word) end, Before ++ [Message]),
    Rest;
effect(Kept, Words) ->
    keep(Kept),
    Words.

keep({keep, {Node, Version, Groups, Links}}) ->
    Now = #{G => [] || {G, _, _} <- Groups},
    Over = [{G, <<>>, []}
            || [G] <- ets:match(?TABLE, {{told, Node, '$1'}, '_', '_'}), not is_map_key(G, Now)],
    keep(Node, Version, Over ++ Groups, Links);
keep({keep_change, {Node, _, Version, Groups, Links}}) -> keep(Node, Version, Groups, Links);
keep({drop, Node}) -> drop(Node);
keep(changed) -> ok.

%% Written at once, so that a successor finds the version with the rows that belong to it. Rows of
%% groups that the node left have no members, and are deleted after that.
keep(Node, Version, Groups, Links) ->
    true = ets:insert(?TABLE, [{{told, Node}, Version, Links}
                               | [{{told, Node, G}, Uid, Ms} || {G, Uid, Ms} <- Groups]]),
    lists:foreach(fun(G) -> ets:delete(?TABLE, {told, Node, G}) end, [G || {G, _, []} <- Groups]).

tell(Node, Message) ->
    sderl_traffic:send({?MODULE, Node}, {sderl_route, ?VSN, node(), Message}, control, Message).

compute(#r{state = S, room = Room} = R) ->
    R#r{computing = {sderl_route_compute:start(S, Room), now_ms()}, due = false}.

computed(Began, Room, #r{due = Due} = R0) ->
    Ended = now_ms(),
    R = R0#r{computing = none,
             room = min(?ROOM, Room),
             due_at = Ended + min(?REST_MS, ?REST * (Ended - Began))},
    case Due of
        held -> due(R);
        _ -> R
    end.

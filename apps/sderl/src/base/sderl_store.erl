%% SPDX-License-Identifier: Apache-2.0
-module(sderl_store).
-moduledoc false.
%% The tables of a node, as the group processes write them. Readers use `sderl_names`.
%%
%% `sderl_names` has one row a name (`?STORED`): a member's read is one look-up. What a new process
%% of a group needs to go on where its predecessor was killed is beside them (`sderl_saved`,
%% `sderl_index`): the last batch is written there before its rows.
%%
%% The tables have the rows of all groups, and a search for the rows of one group goes through all.
%% So the process of a group that has had no name yet does not search: a new group costs the same
%% however many groups and names there are.
%%
%% `sderl_sup`, which runs no protocol, owns the tables (rule 30).

-behaviour(sderl_core).

-include("../core/sderl_op.hrl").
-include("../core/sderl_row.hrl").
-include("sderl_rows.hrl").

-export([new/2, empty/1, filled/2, members/2]).
-export([build_index/3, drop_index/1, take_index/1, own_index/3]).
-export([lookup/2, name_of/2, foreign/1]).
-export([apply/6, redo/5, put_rows/5, sync_begin/3, sync_end/4, sweep/3]).
-export([read/3, read_next/1, read_stop/1]).
-export([sessions/2]).
-export_type([store/0, local/0, stale/0, cursor/0]).

-record(st, {
    group,
    %% The table by its reference: a lookup by name would cost time in each operation.
    names :: ets:tid(),
    members = #{} :: #{node() => []},
    index :: undefined | ets:tid(),
    %% The group has no name here, and has had none since its process began.
    is_empty = false :: boolean(),
    %% Members that may have a session.
    sessions = #{} :: #{node() => []}
}).
-opaque store() :: #st{}.
-doc """
The monitored processes of this node, with the last name of each. A monitor stays when the name
goes: it costs nothing until the process ends, and the process may register again.
""".
-type local() :: #{pid() => term()}.
-doc "Rows that a snapshot has not confirmed yet: name to version.".
-type stale() :: #{term() => {term(), non_neg_integer()}}.
-doc "How far rows have been read, or `done`.".
-type cursor() :: sderl_rows:cursor() | done.

%% Changes by one application of a batch: local monitors, foreign pids that got a name, and
%% events for subscribers, collected only when somebody listens.
-record(a, {
    st :: #st{},
    epoch,
    seq = 0,
    local = #{} :: local(),
    foreign = [] :: [{term(), pid()}],
    %% Names that the batch has given another home before the process' predecessor died.
    came_home = [] :: [Name :: term()],
    notify = false :: boolean(),
    events = [] :: [term()]
}).

-spec new(term(), [node()]) -> store().
new(Group, Members) ->
    #st{group = Group, names = ets:whereis(?NAMES), members = #{N => [] || N <- Members},
        sessions = #{N => [] || N <- sderl_saved:session_nodes(Group)}}.

-doc "For a group that is new on this node: it has no names.".
-spec empty(store()) -> store().
empty(St) -> St#st{is_empty = true}.

-doc "The store after these rows came with a snapshot.".
-spec filled([sderl_core:row()], store()) -> store().
filled([_ | _], #st{is_empty = true} = St) -> St#st{is_empty = false};
filled(_, St) -> St.

-spec members([node()], store()) -> store().
members(Ms, St) -> St#st{members = #{N => [] || N <- Ms}}.

-doc "Builds the index of a coordinator (`sderl_index:build/4`).".
-spec build_index(Heir :: pid() | undefined, start | sderl_index:building(), store()) ->
    {done, Foreign :: [{term(), pid()}], store()} | {more, sderl_index:building()}.
build_index(_, start, #st{index = T} = St) when T =/= undefined -> {done, [], St};
build_index(Heir, At, #st{group = G, is_empty = IsEmpty} = St) ->
    case sderl_index:build(Heir, G, IsEmpty, At) of
        {done, T, Foreign} -> {done, Foreign, St#st{index = T}};
        {more, _} = More -> More
    end.

-spec drop_index(store()) -> store().
drop_index(#st{index = undefined} = St) -> St;
drop_index(#st{group = G} = St) ->
    sderl_index:forget(G),
    St#st{index = undefined}.

-doc "Takes the index that the process' predecessor left, if any.".
-spec take_index(store()) -> {ets:tid() | none, store()}.
take_index(#st{group = G} = St) ->
    case sderl_index:take(G) of
        none -> {none, St};
        T -> {T, St#st{index = T}}
    end.

-doc "The calling process owns this table now. If it is the index, the heir gets it when it dies.".
-spec own_index(ets:tid(), Heir :: pid() | undefined, store()) -> ok.
own_index(T, Heir, #st{index = T}) -> sderl_index:own(T, Heir);
own_index(_, _, _) -> ok.

%% ---------------------------------------------------------------- reads of the protocol

-spec lookup(store(), term()) -> sderl_core:row() | none.
lookup(#st{group = G, names = T}, Name) ->
    case ets:lookup(T, {G, Name}) of
        [R] -> sderl_rows:row(R);
        [] -> none
    end.

-spec name_of(store(), pid()) -> {ok, term()} | none.
name_of(#st{group = G, index = T}, Pid) -> sderl_index:name(T, G, Pid).

-spec foreign(store()) -> [{term(), pid()}].
foreign(#st{is_empty = true}) -> [];
foreign(#st{group = G}) ->
    sderl_rows:fold(G, fun(Row, Acc) -> sderl_rows:foreign([Row]) ++ Acc end, []).

%% ---------------------------------------------------------------- applying

-spec apply(Store, Local, Position, Items, Index, Notify :: boolean()) ->
    {store(), local(), Foreign :: [{term(), pid()}], Events :: [term()]}
when
    Store :: store(),
    Local :: local(),
    Position :: {Epoch :: term(), non_neg_integer()},
    Items :: [sderl_op:item()],
    Index :: [{pid(), [Name :: term()] | none}] | none.
apply(#st{group = G} = St, Local, {Epoch, Num}, Items, Index, Notify) ->
    true = sderl_saved:log(G, Epoch, Num, Items),
    write(St, Local, {Epoch, Num}, Items, Index, Notify, []).

%% Applies the last batch again, for a process whose predecessor may have died half-way through it.
-spec redo(store(), local(), term(), non_neg_integer(), [term()]) -> local().
redo(#st{group = G} = St, Local, Epoch, Num, Items) ->
    %% Homes follow from the membership before the batch, but the present one may be that after it.
    %% If so all rows were written already, and have the right homes.
    There = [Row || Name <- named(Items),
                    ?STORED(_, _, _, _, E, Seq, _) = Row <- ets:lookup(?NAMES, {G, Name}),
                    E =:= Epoch, Seq >= sderl_core:seq(Num, 0)],
    CameHome = sderl_saved:came_home(G, {Epoch, Num}),
    {_, L, _, _} = write(St, Local, {Epoch, Num}, Items, none, false, CameHome),
    lists:foreach(fun(?STORED(_, Name, _, Home, _, Seq, _)) ->
        Key = {G, Name},
        case ets:lookup(?NAMES, Key) of
            [?STORED(_, _, _, _, Epoch, Seq, _)] ->
                ets:update_element(?NAMES, Key, {?STORED_HOME, Home});
            _ -> true
        end
    end, There),
    L.

write(St0, Local, {Epoch, Num}, Items, Index, Notify, CameHome) ->
    #st{is_empty = IsEmpty} = St0,
    St = St0#st{is_empty = IsEmpty andalso not lists:any(fun is_with_names/1, Items)},
    A0 = #a{st = St, epoch = Epoch, seq = sderl_core:seq(Num, 0), local = Local, notify = Notify,
            came_home = CameHome},
    A = lists:foldl(fun item/2, A0, Items),
    St#st.index =/= undefined andalso index_write(St, Index, Items),
    {A#a.st, A#a.local, A#a.foreign, lists:reverse(A#a.events)}.

is_with_names(#view{}) -> false;
is_with_names(#mem{}) -> false;
is_with_names(#shard{rows = []}) -> false;
is_with_names(#seg{operations = Operations}) ->
    lists:any(fun(Operation) -> sderl_op:name(Operation) =/= none end, Operations);
is_with_names(_) -> true.

%% Rows of a batch that another coordinator made, or a predecessor, are in the table already.
index_write(#st{group = G, index = T}, none, Items) ->
    sderl_index:put(T, [{Pid, Name}
                        || Name <- named(Items),
                           ?STORED(_, _, Pid, _, _, _, _) <- ets:lookup(?NAMES, {G, Name})]);
index_write(#st{index = T}, Index, _) -> sderl_index:write(T, Index).

%% The names whose rows the items give.
named(Items) -> lists:append([item_names(Item) || Item <- Items]).

item_names(#seg{operations = Operations}) -> sderl_op:names(Operations);
item_names(#shard{rows = Rows}) -> [sderl_row:name(Row) || Row <- Rows];
item_names(#settle{name = Name}) -> [Name];
item_names(_) -> [].

item(#seg{operations = Ops, answers = default} = Item, #a{notify = false} = A0) ->
    %% Nearly every item is one of these.
    #seg{member = O, session = Sid, number = R} = Item,
    #a{st = St, epoch = E, seq = Seq, local = L} = A = has_session(O, A0),
    true = sderl_saved:session(St#st.group, O, {Sid, R, default}),
    plain(Ops, O, E, Seq, L, St, A);
item(#seg{operations = Ops, answers = As} = Item, #a{st = #st{group = G}} = A0) ->
    #seg{member = O, session = Sid, number = R} = Item,
    A = ops(Ops, As, O, has_session(O, A0)),
    true = sderl_saved:session(G, O, {Sid, R, As}),
    A;
%% A name that moved to another home after its former home left must not be dropped with that home.
item(#view{drops = Drops, live = Live}, #a{came_home = CameHome} = A) ->
    come_home(Live, drop_homes(Drops, CameHome, A));
%% From here on the homes of later items follow from the new membership.
item(#mem{membership = Mem, removed = Removed}, #a{st = St} = A) ->
    rehome(Removed, A#a{st = members(sderl_membership:members(Mem), St)});
item(#shard{member = N, is_first = First, rows = Rows, rest = Rest}, A00) ->
    #a{st = #st{group = G}} = A0 = has_session(N, A00),
    true = case Rest of
        {_, {_, _, _} = Session} -> sderl_saved:session(G, N, Session);
        _ -> sderl_saved:no_session(G, N)
    end,
    A = case First of
        true -> drop_homes([N], [], A0);
        false -> A0
    end,
    lists:foldl(fun put_row/2, A, Rows);
item(#settle{name = Name, losers = Lost, row = Row0}, #a{st = #st{group = G}} = A1) ->
    #a{epoch = E, seq = Seq} = A1,
    A0 = A1#a{seq = Seq + 1},
    Row = case Row0 of
        ?ROW(_, _, _, new, _) -> sderl_row:with_version({E, Seq + 1}, Row0);
        _ -> Row0
    end,
    A = lists:foldl(fun(P, Acc) -> note({name, lost_clash, Name, P}, Acc) end, A0, Lost),
    %% Unconditional: a learner may still have another, old row of that name.
    case {Row, ets:lookup(?NAMES, {G, Name})} of
        {none, []} -> A;
        {none, [?STORED(_, _, Pid, _, _, _, _)]} -> del(Name, Pid, A);
        _ -> put_row(Row, A)
    end;
item(_, A) -> A.

drop_homes([], _, A) -> A;
drop_homes(_, _, #a{st = #st{is_empty = true}} = A) -> A;
drop_homes(Homes, Except, #a{st = #st{group = G}} = A0) ->
    Stays = maps:from_keys(Except, []),
    %% There may be very many rows, so they are never all read at once.
    sderl_rows:fold_at_home(G, Homes, fun
        (?STORED(_, Name, _, _, _, _, _), A) when is_map_key(Name, Stays) -> A;
        (?STORED(_, Name, Pid, _, _, _, _), A) ->
            unindex(Pid, A),
            del(Name, Pid, A)
    end, A0).

has_session(Node, #a{st = #st{sessions = Has}} = A) when is_map_key(Node, Has) -> A;
has_session(Node, #a{st = #st{group = G, sessions = Has} = St} = A) ->
    Now = Has#{Node => []},
    true = sderl_saved:may_have_sessions(G, maps:keys(Now)),
    A#a{st = St#st{sessions = Now}}.

%% A process had a name here before its node became a member: from now on the name is at home there.
come_home([], A) -> A;
come_home(_, #a{st = #st{is_empty = true}} = A) -> A;
come_home(Live, #a{st = #st{group = G}, epoch = E, seq = Seq, came_home = Before} = A0) ->
    OnLive = [{'=:=', {node, '$2'}, {const, N}} || N <- Live],
    Rows = ets:select(?NAMES, [{?STORED('$1', '_', '$2', '$3', '_', '_', '_'),
                                [{'=:=', '$1', {const, G}},
                                 {'=/=', '$3', {node, '$2'}},
                                 list_to_tuple(['orelse', false | OnLive])],
                                ['$_']}]),
    Names = [Name || ?STORED(_, Name, _, _, _, _, _) <- Rows],
    Names =:= [] orelse
        sderl_saved:came_home(G, {E, sderl_core:batch_of(Seq)}, Names ++ Before),
    lists:foldl(fun(?STORED(_, Name, Pid, _, _, _, _), #a{local = L} = A) ->
        true = ets:update_element(?NAMES, {G, Name}, {?STORED_HOME, node(Pid)}),
        case node(Pid) =:= node() of
            true -> A#a{local = watched(Name, Pid, L)};
            false -> A
        end
    end, A0, Rows).

%% Names with a pid on a node that left stay; their home is the coordinator now.
rehome([], A) -> A;
rehome(Removed, #a{st = #st{group = G, index = I} = St, epoch = {_, Coord}} = A0) ->
    lists:foldl(fun(?STORED(_, Name, Pid, _, _, _, _), A) ->
        true = ets:update_element(?NAMES, {G, Name}, {?STORED_HOME, Coord}),
        case I of
            undefined -> A;
            _ -> A#a{foreign = [{Name, Pid} | A#a.foreign]}
        end
    end, A0, at_home_own(St, Removed)).

%% Registrations and removals that all succeed, without subscribers.
plain([?REGISTER(Name, Pid) | Ops], O, E, Seq0, L, St, A) ->
    #st{group = G, names = T, members = Ms, index = I} = St,
    Seq = Seq0 + 1,
    Node = node(Pid),
    case Ms of
        #{Node := _} when Node =/= node() ->
            true = ets:insert(T, ?STORED(G, Name, Pid, Node, E, Seq, [])),
            plain(Ops, O, E, Seq, L, St, A);
        #{Node := _} ->
            true = ets:insert(T, ?STORED(G, Name, Pid, Node, E, Seq, [])),
            plain(Ops, O, E, Seq, watched(Name, Pid, L), St, A);
        _ ->
            true = ets:insert(T, ?STORED(G, Name, Pid, O, E, Seq, [])),
            Foreign = case I of
                undefined -> A#a.foreign;
                _ -> [{Name, Pid} | A#a.foreign]
            end,
            plain(Ops, O, E, Seq, L, St, A#a{foreign = Foreign})
    end;
plain([?UNREGISTER(Name) | Ops], O, E, Seq, L, #st{group = G, names = T} = St, A) ->
    true = ets:delete(T, {G, Name}),
    plain(Ops, O, E, Seq + 1, L, St, A);
plain([Op | Ops], O, E, Seq, L, St, A0) ->
    A = op(Op, O, A0#a{seq = Seq + 1, local = L}),
    plain(Ops, O, E, Seq + 1, A#a.local, St, A);
plain([], _, _, Seq, L, _, A) -> A#a{seq = Seq, local = L}.

ops([], _, _, A) -> A;
ops([Op | Ops], default, O, #a{seq = Seq} = A) ->
    ops(Ops, default, O, op(Op, O, A#a{seq = Seq + 1}));
ops([Op | Ops], [Answer | As], O, #a{seq = Seq} = A0) ->
    A = A0#a{seq = Seq + 1},
    case Answer of
        {no, _} -> ops(Ops, As, O, A);
        _ -> ops(Ops, As, O, op(Op, O, A))
    end.

op(#?REGISTER_WITH{name = Name, pid = Pid, options = Options}, O, A) ->
    put(Name, Pid, Options, O, registered, A);
op(?UNREGISTER(Name), _, A) ->
    del(Name, any, A);
op(?REGISTER(Name, Pid), O, A) ->
    put(Name, Pid, [], O, registered, A);
op(?UNREGISTER_OF(Name, Pid), _, #a{st = #st{group = G}} = A) ->
    %% Only if that pid has the name: never a successor's name (rule 16).
    case ets:lookup_element(?NAMES, {G, Name}, ?STORED_PID, none) of
        Pid -> del(Name, Pid, A);
        _ -> A
    end;
op(#?REGISTER_OVER{name = Name, pid = Pid, options = Options}, O, A) ->
    put(Name, Pid, Options, O, replaced, A);
op(#?RE_REGISTER{name = Name, pid = Pid, options = Options}, O, A) ->
    put(Name, Pid, Options, O, replaced, A);
op(_, _, A) -> A.

put(Name, Pid, Options, Origin, Kind, #a{st = #st{members = Ms}, epoch = E, seq = Seq} = A) ->
    Home = case Ms of
        #{node(Pid) := _} -> node(Pid);
        _ -> Origin
    end,
    insert(Name, Pid, Home, E, Seq, Options, Kind, A).

put_row(?ROW(Name, Pid, Home, {E, Seq}, Options), A) ->
    insert(Name, Pid, Home, E, Seq, Options, news(Name, Pid, A), A).

%% A row from another member may be one that we have.
news(Name, Pid, #a{st = #st{group = G}, notify = true}) ->
    case ets:lookup_element(?NAMES, {G, Name}, ?STORED_PID, none) of
        none -> registered;
        Pid -> same;
        _ -> replaced
    end;
news(_, _, _) -> same.

insert(Name, Pid, Home, E, Seq, Options, Kind, A) ->
    #a{st = #st{group = G, index = I}, local = L0} = A,
    true = ets:insert(?NAMES, ?STORED(G, Name, Pid, Home, E, Seq, Options)),
    L = case node(Pid) =:= node() of
        true -> watched(Name, Pid, L0);
        false -> L0
    end,
    A1 = case Kind of
        same -> A#a{local = L};
        _ -> note({name, Kind, Name, Pid}, A#a{local = L})
    end,
    case I =/= undefined andalso Home =/= node(Pid) of
        true -> A1#a{foreign = [{Name, Pid} | A1#a.foreign]};
        false -> A1
    end.

del(Name, Pid, #a{st = #st{group = G}, notify = Notify} = A) ->
    Key = {G, Name},
    Old = case Notify andalso Pid =:= any of
        true -> ets:lookup_element(?NAMES, Key, ?STORED_PID, none);
        false -> Pid
    end,
    true = ets:delete(?NAMES, Key),
    case Old of
        none -> A;
        _ -> note({name, unregistered, Name, Old}, A)
    end.

note(Event, #a{notify = true, events = Es} = A) -> A#a{events = [Event | Es]};
note(_, A) -> A.

watched(Name, Pid, L) ->
    is_map_key(Pid, L) orelse monitor(process, Pid),
    L#{Pid => Name}.

unindex(_, #a{st = #st{index = undefined}}) -> true;
unindex(Pid, #a{st = #st{index = T}}) -> sderl_index:delete(T, Pid).

%% ---------------------------------------------------------------- snapshots

%% The rows there are, with their versions: what the snapshot does not bring and no batch wrote
%% in the meantime is deleted at its end.
-spec sync_begin(store(), term(), non_neg_integer()) -> stale().
sync_begin(#st{group = G} = St, Epoch, Num) ->
    true = sderl_saved:log(G, Epoch, Num, []),
    case St of
        #st{is_empty = true} -> #{};
        _ ->
            sderl_rows:fold(G, fun(?STORED(_, Name, _, _, E, Seq, _), Acc) ->
                Acc#{Name => {E, Seq}}
            end, #{})
    end.

-spec put_rows(store(), local(), stale(), [sderl_core:row()], boolean()) ->
    {local(), stale(), [term()]}.
put_rows(St, Local, Stale, Rows, Notify) ->
    A = lists:foldl(fun put_row/2, #a{st = St, local = Local, notify = Notify}, Rows),
    Unconfirmed = lists:foldl(fun(Row, Acc) ->
        maps:remove(sderl_row:name(Row), Acc)
    end, Stale, Rows),
    {A#a.local, Unconfirmed, lists:reverse(A#a.events)}.

-spec sync_end(store(), local(), stale(), boolean()) -> {local(), [term()]}.
sync_end(#st{group = G} = St, Local, Stale, Notify) ->
    A = maps:fold(fun(Name, {E, Seq}, Acc) ->
        case ets:lookup(?NAMES, {G, Name}) of
            [?STORED(_, _, Pid, _, E, Seq, _)] -> del(Name, Pid, Acc);
            _ -> Acc
        end
    end, #a{st = St, local = Local, notify = Notify}, Stale),
    {A#a.local, lists:reverse(A#a.events)}.

%% ---------------------------------------------------------------- scans

at_home_own(#st{is_empty = true}, _) -> [];
at_home_own(#st{group = G}, Homes) -> sderl_rows:at_home(G, Homes).

-doc "A cursor over the rows of a group: all of them or those with a home on the given nodes.".
-spec read(store(), all | [node()], pos_integer()) ->
    {[sderl_core:row()], Last :: boolean(), cursor()}.
read(#st{is_empty = true}, _, _) -> {[], true, done};
read(#st{group = G}, Which, Most) -> read_result(sderl_rows:first(G, Which, Most)).

-spec read_next(cursor()) -> {[sderl_core:row()], Last :: boolean(), cursor()}.
read_next(Cursor) -> read_result(sderl_rows:next(Cursor)).

read_result(none) -> {[], true, done};
read_result({Rows, Cursor}) -> {[sderl_rows:row(R) || R <- Rows], false, Cursor}.

-spec read_stop(cursor()) -> true.
read_stop(done) -> true;
read_stop(Cursor) -> sderl_rows:stop(Cursor).

-doc """
What a new process has to do with each row that its predecessor left, in pieces: processes of this
node are monitored anew, a coordinator has foreign ones watched, and ill-typed rows are dropped. No
client waits for this: the death of a process that has died shows when it is monitored.
""".
-spec sweep(store(), local(), start | cursor()) ->
    {local(), Foreign :: [{term(), pid()}], Dropped :: non_neg_integer(), cursor()}.
sweep(#st{is_empty = true}, L, start) -> {L, [], 0, done};
sweep(#st{group = G} = St, L, start) -> swept(sderl_rows:first(G, all), St, L);
sweep(St, L, Cursor) -> swept(sderl_rows:next(Cursor), St, L).

swept(none, _, L) -> {L, [], 0, done};
swept({Rows, Cursor}, #st{index = Index}, L0) ->
    {Sound, Unsound} = lists:partition(fun(?STORED(_, _, Pid, Home, _, _, _)) ->
        is_pid(Pid) andalso is_atom(Home)
    end, Rows),
    lists:foreach(fun(Row) -> ets:delete(?NAMES, element(1, Row)) end, Unsound),
    L = lists:foldl(fun(?STORED(_, Name, Pid, _, _, _, _), Acc) when node(Pid) =:= node() ->
                           watched(Name, Pid, Acc);
                       (_, Acc) -> Acc
                    end, L0, Sound),
    Foreign = case Index of
        undefined -> [];
        _ -> sderl_rows:foreign(Sound)
    end,
    {L, Foreign, length(Unsound), Cursor}.

-doc "Replaces the sessions of all members by those of a snapshot.".
-spec sessions(store(), #{node() => {term(), non_neg_integer(), term()}}) -> store().
sessions(#st{group = G, sessions = Had} = St, Sessions) ->
    true = sderl_saved:sessions(G, maps:keys(Had), Sessions),
    St#st{sessions = #{N => [] || N := _ <- Sessions}}.

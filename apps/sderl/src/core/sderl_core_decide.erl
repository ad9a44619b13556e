%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_decide).
-moduledoc false.
%% Makes the next batch: the decisions of the coordinator, read against its own table and an
%% overlay of what this batch itself changes (`sderl_core_overlay`). `sderl_core_operate` decides
%% what members' clients ask for, `sderl_core_settle` clashes; changes of the component are decided
%% here.
%%
%% A batch holds either changes of the component (view, membership, merged rows, settled clashes)
%% or members' lists of operations, never both: the first kind changes rows by scans, which the
%% overlay would not see.
%%
%% `sderl_op.hrl` describes operations and items, `sderl_row.hrl` rows.

-include("sderl_core.hrl").
-include("sderl_core_overlay.hrl").

-export([batch/3]).
-import(sderl_core_overlay,
        [name/2, pid_name/2, kept/2, is_free/3, put_row/2, del_row/2, drop_home/2]).
-import(sderl_core_operate, [decided_list/5, keeps_majority/2, changed/2]).
-import(sderl_core_settle, [decided/7, settle/5, alone/3, replaced/4, raised/3, left_clashes/2,
                            unopposed/2, latest/2]).

%% The common case in the making.
-record(p, {
    mod :: module(),
    store :: term(),
    view,
    given = [],         % names that were free, and asked for or removed
    got = [],           % processes that are given a name
    taken = [],         % names and processes that were found and are removed
    refused = [],       % names and processes for which operations are refused
    index = []          % what the index will be
}).

-spec batch(module(), term(), #s{}) -> {[term()], [{pid(), [term()] | none}], [term()], #s{}}.
batch(Mod, Store, #s{office = #office{changes = [], requests = Reqs} = Office,
                     d = #d{view = V, mem = M, clashes = Clashes}} = S) ->
    P0 = #p{mod = Mod, store = Store, view = V},
    Known = fun(?LIST(O, _, _, _)) ->
        maps:get(O, V, none) =:= live andalso sderl_membership:is_member(O, M)
    end,
    Plain = map_size(Clashes) =:= 0 andalso lists:all(Known, Reqs),
    case Plain andalso plain(lists:reverse(Reqs), P0, []) of
        {Items, Index} -> {Items, Index, [], S#s{office = Office#office{requests = []}}};
        false -> overlaid(Mod, Store, S)
    end;
batch(Mod, Store, #s{office = #office{changes = Changes, unknown_answers = Unknown} = Office,
                     d = D} = S0) ->
    Drops = lists:usort(lists:append([Ns || #change_view{drops = Ns} <- Changes])),
    %% A member that went again before this was ordered does not get its names home.
    Live = [N || N <- lists:usort(lists:append([Ns || #change_view{live = Ns} <- Changes])),
                 maps:get(N, D#d.view, none) =:= live],
    View = [#view{places = D#d.view, drops = Drops, live = Live, unknown = Unknown}
            || lists:keymember(change_view, 1, Changes)],
    S1 = S0#s{office = Office#office{changes = []}},
    C0 = (sderl_core_overlay:new(Mod, Store, S1))#c{drops = Drops},
    {Left, C1} = left_clashes(Drops, C0),
    {Items, C, S} = lists:foldl(fun special/2, {Left ++ View, C1, S1},
                                lists:reverse(Changes)),
    {Last, First} = lists:partition(fun(I) -> is_record(I, mem) end, lists:reverse(Items)),
    {First ++ Last, maps:to_list(C#c.pids), left(Last, D) ++ lists:reverse(C#c.then), S}.

%% ---------------------------------------------------------------- the common case

%% Registrations and removals that do not depend on each other need no overlay: each is decided
%% against the table alone. Whether they did not is checked once, at the end (`is_plain`). If they
%% did, or if there are other operations, the batch is decided again with the overlay.
plain([?LIST(O, Sid, R, Ops) | Lists], P0, Items) ->
    case plain_ops(Ops, O, P0, [], true) of
        {As, P} -> plain(Lists, P, [decided_list(O, Sid, R, Ops, As) | Items]);
        false -> false
    end;
plain([], #p{index = Index} = P, Items) ->
    case is_plain(P) of
        true -> {lists:reverse(Items), Index};
        false -> false
    end.

%% A free name is given at most once, and to a process that is given no other; a refusal does not
%% rest on a name that the same batch takes away.
is_plain(#p{given = Names, got = Pids, taken = Taken, refused = Refused}) ->
    is_set(Names) andalso is_set(Pids)
        andalso (Refused =:= [] orelse Taken =:= []
                 orelse Refused -- Taken =:= Refused).

is_set(Terms) -> map_size(maps:from_keys(Terms, [])) =:= length(Terms).

plain_ops([?REGISTER(Name, Pid) | Ops], O, #p{view = V} = P, As, Default)
  when map_get(node(Pid), V) =:= live ->
    #p{mod = Mod, store = St, given = Names, got = Pids, refused = Refused, index = Ix} = P,
    case Mod:lookup(St, Name) =:= none andalso Mod:name_of(St, Pid) =:= none of
        true ->
            Given = P#p{given = [Name | Names], got = [Pid | Pids], index = [{Pid, [Name]} | Ix]},
            case node(Pid) of
                O -> plain_ops(Ops, O, Given, [yes | As], Default);
                Home -> plain_ops(Ops, O, Given, [{yes, Home} | As], false)
            end;
        false ->
            No = {no, name_or_pid_already_registered},
            plain_ops(Ops, O, P#p{refused = [{Name}, Pid | Refused]}, [No | As], false)
    end;
plain_ops([?UNREGISTER(Name) | Ops], O, #p{mod = Mod, store = St, view = V} = P, As, Default) ->
    case Mod:lookup(St, Name) of
        none ->
            plain_ops(Ops, O, P#p{given = [Name | P#p.given]}, [ok | As], Default);
        ?ROW_OF_AT(Pid, O) ->
            plain_ops(Ops, O, take(Name, Pid, P), [ok | As], Default);
        ?ROW_OF_AT(Pid, Home) when map_get(Home, V) =:= live ->
            plain_ops(Ops, O, take(Name, Pid, P), [{ok, Home} | As], false);
        _ -> false
    end;
plain_ops([], _, P, _, true) -> {default, P};
plain_ops([], _, P, As, false) -> {lists:reverse(As), P};
plain_ops(_, _, _, _, _) -> false.

take(Name, Pid, #p{taken = Taken, index = Index} = P) ->
    P#p{taken = [{Name}, Pid | Taken], index = [{Pid, none} | Index]}.

overlaid(Mod, Store, #s{office = #office{requests = Reqs0, held = Held} = Office, d = D} = S) ->
    {Later, Reqs} = lists:partition(fun(?LIST(O, _, _, _)) ->
        is_tuple(maps:get(O, D#d.view, none))
    end, Reqs0),
    Nothing = {[], [], sderl_core_overlay:new(Mod, Store, S)},
    {Items, Last, C} = lists:foldl(fun sderl_core_operate:seg/2, Nothing, lists:reverse(Reqs)),
    Waiting = #{O => List || ?LIST(O, _, _, _) = List <- Later},
    {lists:reverse(Items, lists:reverse(Last)), maps:to_list(C#c.pids), left(Last, D),
     S#s{office = Office#office{requests = [], held = maps:merge(Held, Waiting)}}}.

%% The members that this batch removes are told so once it is committed.
left([], _) -> [];
left(Last, #d{mem = Mem}) ->
    case lists:member(delete, Last) of
        true -> [{left, sderl_membership:members(Mem)}];
        false -> [{left, Ns} || #mem{removed = Ns} <- Last, Ns =/= []]
    end.

%% ---------------------------------------------------------------- changes of the component

special(#change_view{}, Acc) -> Acc;
%% The home of names of pids on nodes that left is a coordinator (rule 15). If that one leaves, the
%% new coordinator becomes their home.
special(rehome, {Items, #c{mem = Mem} = C, S}) ->
    case sderl_membership:removed(Mem) of
        [] -> {Items, C, S};
        Removed -> {[#mem{membership = Mem, removed = Removed} | Items], C, S}
    end;
%% Forgotten nodes keep their sessions until they are pruned: they may return.
special(#prune{before = Before}, {Items, C, S}) ->
    Mem = sderl_membership:prune(Before, C#c.mem),
    Pruned = sderl_membership:forgotten(C#c.mem) -- sderl_membership:forgotten(Mem),
    {[#mem{membership = Mem, removed = Pruned} | Items], C#c{mem = Mem}, S};
%% A node that has come back meanwhile is not forgotten.
special(#forget{nodes = Nodes, time = Time}, {Items, C, S}) ->
    Away = [N || N <- Nodes, not is_map_key(N, C#c.view), not sderl_core_state:present(N, S)],
    Mem = sderl_membership:forget(Away, Time, C#c.mem),
    case Away =/= [] andalso keeps_majority(Mem, C) of
        true -> {[#mem{membership = Mem, removed = []} | Items], C#c{mem = Mem}, S};
        false -> {Items, C, S}
    end;
special(#merge_membership{membership = Mem0, from = From}, {Items, C, S}) ->
    Mem = sderl_core_state:union(Mem0, C#c.mem, S),
    case keeps_majority(Mem, C) of
        true ->
            Then = [{adopt, [From]} | C#c.then],
            {[changed(Mem, C#c.mem) | Items], C#c{mem = Mem, then = Then}, S};
        false -> {Items, C, S}
    end;
special(#order_shard{} = Piece, {Items, #c{mem = Mem} = C0, S0}) ->
    #order_shard{member = N, reading = Id, piece = K, rows = Rows, rest = Last} = Piece,
    case sderl_membership:is_member(N, Mem) of
        false -> {Items, C0, S0};
        true ->
            %% The first piece removes the rows that our log had of this home.
            First = K =:= 1,
            {Left, C1} = case First of
                true -> left_clashes([N], drop_home(N, C0));
                false -> {[], C0}
            end,
            C2 = placed(N, Last, C1),
            Own = [R || R <- Rows, speaks(N, R, C2, S0#s.d)],
            {Disowned, C3} = disowned(N, Last, Own, C2),
            {Kept, C4, S} = lists:foldl(fun shard_row/2, {[], C3, S0}, Own),
            Item = #shard{
                member = N,
                is_first = First,
                rows = lists:reverse(Kept),
                rest = case Last of
                    more -> more;
                    {last, Place, Session} -> {Place, Session}
                end
            },
            {found(C3, C4) ++ [Item | Disowned] ++ Left ++ Items,
             C4#c{then = [{brought, N, Id, Last} | C4#c.then]}, S}
    end;
%% The home of removed members' names is a coordinator. A member that does not know of its removal
%% may unregister such names by itself, so they are dropped, like those of a member that is removed
%% while it is set aside.
special(#forsake{nodes = Nodes}, {Items, #c{mod = Mod, store = Store, mem = Mem} = C0, S}) ->
    Out = [N || N <- Nodes, not sderl_membership:is_member(N, Mem)],
    Theirs = fun(?ROW_OF_AT(Pid, Home)) ->
        Home =/= node(Pid) andalso lists:member(node(Pid), Out)
    end,
    Names = [Name || {Name, Pid} <- Mod:foreign(Store), lists:member(node(Pid), Out)],
    {Gone, C} = take_out(Theirs, Names, [], C0),
    {Gone ++ Items, C, S};
special(#decide_clash{} = Decision, {Items, #c{clashes = Clashes} = C0, S}) ->
    #decide_clash{name = Name, ours = A, theirs = B, keep = Keep, effects = Fx} = Decision,
    case Clashes of
        #{Name := {A, B}} ->
            {Decided, C} = decided(Name, A, B, Keep, Fx, C0, S),
            {[#clashes{clashes = Decided} | Items], C#c{clashes = maps:merge(Clashes, Decided)}, S};
        _ -> {Items, C0, S}
    end;
special(#contend{key = Third}, {Items, #c{clashes = Clashes} = C0, S0}) ->
    case Clashes of
        #{Third := {?ROW(Name, _, _, _, _) = Row, _}} when not is_map_key(Name, Clashes) ->
            C1 = C0#c{clashes = maps:remove(Third, Clashes)},
            {Kept, C, S} = shard_row(Row, {[], C1, S0}),
            Now = [unopposed(Name, Stands) || Stands <- Kept] ++ found(C1, C),
            {Now ++ [unopposed(Third, none) | Items], C, S};
        _ -> {Items, C0, S0}
    end;
special(#settle_clash{name = Name}, {Items, #c{clashes = Clashes, view = V} = C0, S}) ->
    case Clashes of
        #{Name := {?ROW_AT(HomeA) = A, ?ROW_AT(HomeB) = B, Keep, Fx} = Clash}
          when map_get(HomeA, V) =:= live, map_get(HomeB, V) =:= live ->
            case replaced(Name, A, sderl_core_clash:won(B, Clash), C0) of
                false ->
                    case at_home(B, C0) of
                        B -> settled(Name, Clash, {Items, C0, S});
                        %% The node of the process counts now: settled when it has this batch.
                        AtHome ->
                            Moved = #{Name => {A, AtHome, Keep, Fx}},
                            {[#clashes{clashes = Moved} | Items],
                             C0#c{clashes = maps:merge(Clashes, Moved)}, S}
                    end;
                Again ->
                    C = C0#c{clashes = maps:merge(Clashes, Again)},
                    {[#clashes{clashes = Again} | Items], C, S}
            end;
        _ -> {Items, C0, S}
    end.

settled(Name, {_, _, Keep, Fx} = Clash, {Items, #c{clashes = Clashes} = C0, S}) ->
    C1 = C0#c{clashes = maps:remove(Name, Clashes)},
    {Item, #c{then = Then} = C} = settle(Name, Clash, Keep, Fx, C1),
    Lost = sderl_core_clash:effects_outside(S#s.self, Item#settle.effects, Clash),
    {[Item | Items], C#c{then = [{tell, Home, F} || {Home, F} <- Lost] ++ Then}, S}.

%% The clashes that a piece of a shard added.
found(#c{clashes = Before}, #c{clashes = After}) ->
    Found = maps:without(maps:keys(Before), After),
    [#clashes{clashes = Found} || map_size(Found) > 0].

%% The place and session of a member after a piece of its shard.
placed(N, more, #c{view = V, sessions = Sessions} = C) ->
    C#c{view = V#{N => {partial, 0}}, sessions = maps:remove(N, Sessions)};
placed(N, {last, Place, none}, #c{view = V, sessions = Sessions} = C) ->
    C#c{view = V#{N => Place}, sessions = maps:remove(N, Sessions)};
placed(N, {last, Place, Session}, #c{view = V, sessions = Sessions} = C) ->
    C#c{view = V#{N => Place}, sessions = Sessions#{N => Session}}.

%% Whether the joiner may bring this row. The home of names of processes on a node that left the
%% group is a coordinator. A node that was removed on the joiner's side alone speaks for itself: of
%% a name registered since that node became a member the joiner has an old state, from when it
%% removed the node. But the node knows nothing of epochs that it was not in, and the version that a
%% clash has decided may be of such an epoch.
speaks(N, ?ROW(_, Pid, _, {Epoch, _}, _) = Row, C, D) ->
    node(Pid) =:= N orelse is_older(Row, C) orelse not may_know(node(Pid), Epoch, C, D).

%% Whether a row is older than the membership of its process' node.
is_older(?ROW(_, Pid, _, {{Counter, _}, _}, _), #c{view = V, sessions = Sessions}) ->
    Node = node(Pid),
    case Sessions of
        #{Node := {Sid, _, _}} when is_map_key(Node, V) -> Counter < Sid;
        _ -> true
    end.

%% Whether a member may have been in that epoch: it is of this log, or not above the epoch of the
%% log that the member came from.
may_know(N, Epoch, #c{view = V}, #d{lineage = Lineage, history = History,
                                    elsewhere_until = Until}) ->
    case V of
        #{N := {From, _}} when Epoch =< From -> true;
        #{N := live} when Epoch =< map_get(N, Until) -> true;
        _ -> Epoch =:= Lineage orelse lists:keymember(Epoch, 1, History)
    end.

%% The same for rows that our own log has of processes of the member that brings its shard: it was
%% removed here, or by a component that merged with ours before. Its last piece says since when it
%% is a member. It knows nothing of epochs after that of its own log, and it does know the names of
%% its own processes.
disowned(N, Last, Own, #c{mod = Mod, store = Store, names = Names} = C0) ->
    Elsewhere = fun(?ROW_OF_AT(Pid, Home)) -> node(Pid) =:= N andalso Home =/= N end,
    {Stale, Known} = case Last of
        {last, {Lineage, _}, {_, _, _}} ->
            {fun(?ROW(_, _, _, {Epoch, _}, _) = Row) ->
                 Elsewhere(Row) andalso Epoch =< Lineage andalso not is_older(Row, C0)
             end,
             [Name || {Name, Pid} <- Mod:foreign(Store), node(Pid) =:= N] ++ maps:keys(Names)};
        _ -> {fun(_) -> false end, []}
    end,
    Others = [Row || ?ROW(Name, Pid, _, _, _) <- Own,
                     {ok, Other} <- [pid_name(Pid, C0)], Other =/= Name,
                     Row <- held(Other, C0), Elsewhere(Row)],
    take_out(Stale, Known, Others, C0).

%% Removes stale rows, from the table and from clashes.
take_out(Stale, Known, Others, #c{clashes = Clashes} = C0) ->
    Held = [Row || Name <- Known, Row <- held(Name, C0), Stale(Row)],
    Beside = [{Name, Clash} || Name := Clash <- maps:iterator(Clashes, ordered),
                               {_, B} <- [sderl_core_clash:rows(Clash)], Stale(B)],
    Settled = lists:foldl(fun({Name, Clash}, {Items, C}) ->
        Stands = case held(Name, C) of
            [Row] -> raised(Row, Clash, C);
            [] -> none
        end,
        C1 = C#c{clashes = maps:remove(Name, C#c.clashes)},
        alone(unopposed(Name, Stands), Clash, {Items, C1})
    end, {[], C0}, Beside),
    lists:foldl(fun disowned/2, Settled, lists:usort(Held ++ Others)).

disowned(Row, {Items, #c{clashes = Clashes} = C0}) ->
    Name = sderl_row:name(Row),
    C1 = del_row(Row, C0),
    case Clashes of
        #{Name := Clash} ->
            C2 = C1#c{clashes = maps:remove(Name, Clashes)},
            {Item, C} = settle(Name, Clash, neither, [], C2),
            alone(Item, Clash, {Items, C});
        _ -> {[unopposed(Name, none) | Items], C1}
    end.

held(Name, C) -> [Row || Row <- [kept(Name, C)], Row =/= none].

%% The union by home (rule 15): a member decides about its own rows; only a name that both sides
%% give to different processes is a clash (rule 18).
shard_row(?ROW(Name, Pid, _, _, _) = Row0, {Kept, #c{clashes = Clashes} = C, S}) ->
    Row = latest(Row0, name(Name, C)),
    Beside = sderl_core_clash:is_beside(Row, Clashes),
    case kept(Name, C) of
        ?ROW_OF(Pid) = Same -> {[Row | Kept], put_row(Row, del_row(Same, C)), S};
        %% It is the second row of a clash here already: its home brought it before, and left this
        %% log. If our row has gone since, theirs gets the name when that clash is settled.
        _ when Beside -> {Kept, C, S};
        none ->
            Gone = case name(Name, C) of none -> C; Dropped -> del_row(Dropped, C) end,
            case is_free(Pid, Name, Gone) of
                true -> {[Row | Kept], put_row(Row, Gone), S};
                false -> {Kept, Gone, S}
            end;
        %% A third one waits until the two are settled.
        _ when is_map_key(Name, Clashes) ->
            Third = #{sderl_core_clash:third(Row) => {Row, Row}},
            {Kept, C#c{clashes = maps:merge(Third, Clashes)}, S};
        Ours ->
            Told = #{name => Name, pids => [sderl_row:pid(Ours), Pid]},
            {Kept, C#c{clashes = Clashes#{Name => {Ours, at_home(Row, C)}}},
             sderl_core_state:event(name_clash, Told, S)}
    end.

%% A process of a clash is told by its own node if that counts, whatever becomes of the member that
%% brought its name.
at_home(?ROW_OF(Pid) = Row, #c{view = V}) when map_get(node(Pid), V) =:= live ->
    sderl_row:with_home(node(Pid), Row);
at_home(Row, _) -> Row.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_store).
-moduledoc """
The store of one simulated node: it does with a map what `sderl_store` does with tables.

Items of a batch change the rows exactly as there. There are no monitors: every change returns the
rows that it wrote, and the simulator checks whether their pids live.
""".
-include_lib("sderl/src/core/sderl_op.hrl").
-include_lib("sderl/src/core/sderl_row.hrl").

-behaviour(sderl_core).

-export([new/1, rows/1, hash/1, members/2, index/2, indexed/1, whole/1]).
-export([lookup/2, name_of/2, held_by/2, one_name_each/1, sessions/1]).
-export([log/4, apply/5, follow/2, part/3, redo/1, sync_begin/3, put_rows/2, sync_end/1, read/3,
         read_next/3, foreign/1]).
-export([durable/2, outbox/3, sessions/2, recover/1]).

-export_type([store/0]).

-record(st, {
    members = [] :: [node()],
    rows = #{} :: #{term() => sderl_core:row()},
    %% Both follow from the rows and are updated with each change, so that no check walks a table.
    hash = 0 :: non_neg_integer(),
    names = #{} :: #{pid() => term()},              % one name of each pid
    more = #{} :: #{pid() => [term()]},             % its further names: there should be none
    index :: undefined | #{pid() => term()},
    log :: undefined | {term(), non_neg_integer(), [term()]},
    %% The names to which the batch of this position gives another home (`sderl_saved`).
    came_home = none :: none | {Position :: term(), [Name :: term()]},
    sessions = #{} :: map(),
    out :: undefined | {Number :: term(), [term()]},
    durable :: term(),
    left = infinity :: non_neg_integer() | infinity,    % so many more writes until the process dies
    stale = none :: none | #{term() => term()}      % while a snapshot is being installed
}).
-opaque store() :: #st{}.

-doc "An empty store for a group with these members.".
-spec new([node()]) -> store().
new(Members) -> #st{members = Members}.
-doc "All rows, by name.".
-spec rows(store()) -> #{term() => sderl_core:row()}.
rows(#st{rows = Rows}) -> Rows.
-doc "A number that equal tables share.".
-spec hash(store()) -> non_neg_integer().
hash(#st{hash = Hash}) -> Hash.
-doc "Sets the members of the group.".
-spec members([node()], store()) -> store().
members(Ms, St) -> St#st{members = Ms}.

-doc "Makes or drops the index of pids.".
-spec index(build | drop, store()) -> store().
index(drop, St) -> St#st{index = undefined};
index(build, #st{rows = Rows} = St) ->
    St#st{index = #{sderl_row:pid(Row) => Name || Name := Row <- Rows}}.

-doc "The name that a process has, or `none`.".
-spec held_by(store(), pid()) -> {ok, term()} | none.
held_by(#st{names = Names}, Pid) ->
    case Names of
        #{Pid := Name} -> {ok, Name};
        _ -> none
    end.

-doc "The processes that have more than one name.".
-spec one_name_each(store()) -> #{pid() => [term()]}.
one_name_each(#st{more = More}) -> More.

-doc "Whether no snapshot is being installed.".
-spec whole(store()) -> boolean().
whole(#st{stale = Stale}) -> Stale =:= none.

-doc "Whether the index, if there is one, is the inverse of the rows.".
-spec indexed(store()) -> boolean().
indexed(#st{index = undefined}) -> true;
indexed(#st{index = I, names = Names}) -> I =:= Names.

-doc "The row of a name, for `sderl_core:propose/4`.".
-spec lookup(store(), term()) -> sderl_core:row() | none.
lookup(#st{rows = Rows}, Name) -> maps:get(Name, Rows, none).

-doc "The name of a pid, for `sderl_core:propose/4`.".
-spec name_of(store(), pid()) -> {ok, term()} | none.
name_of(#st{index = I}, Pid) ->
    case I of
        #{Pid := Name} -> {ok, Name};
        _ -> none
    end.

%% ---------------------------------------------------------------- applying

-doc """
The first half of an application; if the process dies after it, `redo/1` does the second half.
""".
-spec log(store(), term(), non_neg_integer(), [term()]) -> store().
log(St, Epoch, Num, Items) -> St#st{log = {Epoch, Num, Items}}.

-doc "Applies a batch: the store and the rows written.".
-spec apply(store(), term(), non_neg_integer(), [term()], [{pid(), [term()] | none}] | none) ->
    {store(), [sderl_core:row()]}.
apply(St, Epoch, Num, Items, Index) -> write(log(St, Epoch, Num, Items), Epoch, Num, Items, Index).

-doc """
The same for a member whose table equals that of another one before this batch: it takes over the
resulting table. `none` if its table differs, or if it keeps an index.
""".
-spec follow(store(), {Before :: store(), After :: store(), [sderl_core:row()]}) ->
    {store(), [sderl_core:row()]} | none.
follow(#st{rows = Rows, members = Members, sessions = Sessions, hash = Hash, names = Names,
           more = More, index = undefined, stale = none, left = infinity} = St,
       {#st{rows = Rows, members = Members, sessions = Sessions, hash = Hash, names = Names,
            more = More, stale = none, left = infinity},
        #st{rows = NewRows, sessions = NewSessions, hash = NewHash, names = NewNames,
            more = NewMore, log = Log, came_home = CameHome},
        New}) ->
    {St#st{rows = NewRows, sessions = NewSessions, hash = NewHash, names = NewNames, more = NewMore,
           log = Log, came_home = CameHome}, New};
follow(_, _) -> none.

-doc """
The store when the process dies in the middle of an effect that writes, after so many writes. `none`
for an effect that does not write rows.
""".
-spec part(tuple() | atom(), non_neg_integer(), store()) -> store() | none.
part({apply, Epoch, Num, Items, Index}, K, St) ->
    Logged = log(St, Epoch, Num, Items),
    {Part, _} = write(Logged#st{left = K}, Epoch, Num, Items, Index),
    died(Part);
part({put_rows, Rows}, K, St) -> died(put_rows(St#st{left = K}, Rows));
part(sync_end, K, St) -> died(sync_end(St#st{left = K}));
%% The new rows are written before the old ones are deleted.
part({sessions, Sessions}, K, #st{sessions = Had} = St) ->
    Written = lists:sublist(lists:sort(maps:to_list(Sessions)), K),
    St#st{sessions = maps:merge(Had, maps:from_list(Written))};
part(_, _, _) -> none.

%% What was only in the process's memory is lost.
died(St) -> St#st{left = infinity, stale = none, index = undefined}.

-doc "The second half of an application that was begun, for a new process.".
-spec redo(store()) -> {store(), [sderl_core:row()]}.
redo(#st{log = undefined} = St) -> {St, []};
redo(#st{log = {Epoch, Num, Items}, rows = Had} = St0) ->
    {#st{rows = Rows} = St, New} = write(St0#st{stale = none}, Epoch, Num, Items, none),
    %% A row of the batch that was written before keeps its home: the membership may be the one
    %% after the batch.
    First = {Epoch, sderl_core:seq(Num, 0)},
    Homes = [Before
             || Name := ?ROW(_, _, Now, {E, _} = Version, _) = Row <- Rows,
                E =:= Epoch, Version >= First,
                #{Name := ?ROW(_, _, Was, V, _)} <- [Had], V =:= Version, Was =/= Now,
                Before <- [sderl_row:with_home(Was, Row)]],
    {lists:foldl(fun put_row/2, St, Homes), New}.

write(St0, Epoch, Num, Items, Index) ->
    {St, _, New} = lists:foldl(fun(I, A) -> item(I, Epoch, A) end,
                               {St0, sderl_core:seq(Num, 0), []}, Items),
    case Index =/= none andalso St#st.index =/= undefined of
        true -> {St#st{index = lists:foldl(fun index_entry/2, St#st.index, Index)}, New};
        false -> {St, New}
    end.

index_entry({Pid, none}, I) -> maps:remove(Pid, I);
index_entry({Pid, [Name]}, I) -> I#{Pid => Name}.

item(#seg{answers = default} = Item, Epoch, {St, Seq, New}) ->
    #seg{member = O, session = Sid, number = R, operations = Ops} = Item,
    Answers = [sderl_core_answer:default(Op) || Op <- Ops],
    ops(Ops, Answers, O, Epoch, {put_sessions(#{O => {Sid, R, default}}, St), Seq, New});
item(#seg{answers = As} = Item, Epoch, Acc) ->
    #seg{member = O, session = Sid, number = R, operations = Ops} = Item,
    {St, Seq, New} = ops(Ops, [sderl_core_answer:plain(A) || A <- As], O, Epoch, Acc),
    {put_sessions(#{O => {Sid, R, As}}, St), Seq, New};
item(#view{drops = [], live = []}, _, Acc) -> Acc;
item(#view{drops = Drops, live = Live}, Epoch, {St0, Seq, New}) ->
    Position = {Epoch, sderl_core:batch_of(Seq)},
    Before = case St0 of
        #st{came_home = {Position, Has}} -> Has;
        _ -> []
    end,
    #st{rows = Rows} = St = drop_homes(Drops, Before, St0),
    Came = [sderl_row:with_home(node(Pid), Row)
            || _ := ?ROW_OF_AT(Pid, Home) = Row <- maps:iterator(Rows, ordered),
               lists:member(node(Pid), Live), Home =/= node(Pid)],
    Names = [sderl_row:name(Row) || Row <- Came] ++ Before,
    {lists:foldl(fun put_row/2, came_home(Position, Names, St), Came), Seq, Came ++ New};
item(#mem{removed = Removed}, {_, Coord}, {#st{rows = Rows} = St, Seq, New}) ->
    Rehomed = [sderl_row:with_home(Coord, Row)
               || _ := ?ROW_AT(Home) = Row <- maps:iterator(Rows, ordered),
                  lists:member(Home, Removed)],
    {lists:foldl(fun put_row/2, St, Rehomed), Seq, New};
item(#shard{member = N, is_first = First, rows = Rows, rest = Rest}, _, {St0, Seq, New}) ->
    St1 = case First of
        true -> drop_homes([N], [], St0);
        false -> St0
    end,
    St = case Rest of
        {_, {_, _, _} = Session} -> put_sessions(#{N => Session}, St1);
        _ -> drop_session(N, St1)
    end,
    {lists:foldl(fun put_row/2, St, Rows), Seq, Rows ++ New};
item(#settle{name = Name, row = none}, _, {St, Seq, New}) -> {drop_row(Name, St), Seq + 1, New};
item(#settle{row = ?ROW(_, _, _, new, _) = Row0}, Epoch, {St, Seq, New}) ->
    Row = sderl_row:with_version({Epoch, Seq + 1}, Row0),
    {put_row(Row, St), Seq + 1, [Row | New]};
item(#settle{row = Row}, _, {St, Seq, New}) -> {put_row(Row, St), Seq + 1, [Row | New]};
item(_, _, Acc) -> Acc.

ops(Ops, As, O, Epoch, {St0, Seq0, New0}) ->
    lists:foldl(fun({Op, A}, {St, S, N}) ->
        op(Op, A, O, {Epoch, S + 1}, {St, S + 1, N})
    end, {St0, Seq0, New0}, lists:zip(Ops, As)).

came_home(_, _, #st{left = 0} = St) -> St;
came_home(_, [], St) -> St;
came_home(Position, Names, St) -> St#st{came_home = {Position, Names}}.

drop_homes(Homes, Except, #st{rows = Rows, index = I} = St) ->
    Gone = [Row || Name := ?ROW_AT(Home) = Row <- Rows, lists:member(Home, Homes),
                   not lists:member(Name, Except)],
    Index = case I of
        undefined -> I;
        _ -> maps:without([sderl_row:pid(Row) || Row <- Gone], I)
    end,
    (drop_rows([sderl_row:name(Row) || Row <- Gone], St))#st{index = Index}.

op(?REGISTER(Name, Pid), yes, O, V, Acc) -> put(Name, Pid, [], O, V, Acc);
op(#?REGISTER_WITH{name = Name, pid = Pid, options = Options}, yes, O, V, Acc) ->
    put(Name, Pid, Options, O, V, Acc);
op(#?REGISTER_OVER{name = Name, pid = Pid, options = Options}, yes, O, V, Acc) ->
    put(Name, Pid, Options, O, V, Acc);
op(#?RE_REGISTER{name = Name, pid = Pid, options = Options}, yes, O, V, Acc) ->
    put(Name, Pid, Options, O, V, Acc);
op(?UNREGISTER(Name), ok, _, _, {St, Seq, New}) -> {drop_row(Name, St), Seq, New};
op(?UNREGISTER_OF(Name, Pid), ok, _, _, {#st{rows = Rows} = St, Seq, New}) ->
    case Rows of
        #{Name := ?ROW_OF(Pid)} -> {drop_row(Name, St), Seq, New};
        _ -> {St, Seq, New}
    end;
op(_, _, _, _, Acc) -> Acc.

put(Name, Pid, Options, Origin, Version, {#st{members = Ms} = St, Seq, New}) ->
    Home = case lists:member(node(Pid), Ms) of
        true -> node(Pid);
        false -> Origin
    end,
    Row = ?ROW(Name, Pid, Home, Version, Options),
    {put_row(Row, St), Seq, [Row | New]}.

put_row(_, #st{left = 0} = St) -> St;
put_row(?ROW(Name, _, _, _, _) = Row, #st{rows = Rows} = St) ->
    case Rows of
        #{Name := Row} -> St;
        #{Name := _} -> written(add_row(Row, remove_row(Name, St)));
        _ -> written(add_row(Row, St))
    end.

%% Each write of a row or session is counted, until the process dies.

drop_session(N, #st{left = infinity, sessions = Had} = St) -> St#st{sessions = maps:remove(N, Had)};
drop_session(_, #st{left = 0} = St) -> St;
drop_session(N, #st{left = K, sessions = Had} = St) ->
    St#st{left = K - 1, sessions = maps:remove(N, Had)}.

put_sessions(Sessions, #st{left = infinity, sessions = Had} = St) ->
    St#st{sessions = maps:merge(Had, Sessions)};
put_sessions(Sessions, St0) ->
    lists:foldl(fun(_, #st{left = 0} = St) -> St;
                   ({O, Session}, #st{left = K, sessions = Had} = St) ->
                       St#st{left = K - 1, sessions = Had#{O => Session}}
                end, St0, lists:sort(maps:to_list(Sessions))).

written(#st{left = infinity} = St) -> St;
written(#st{left = K} = St) -> St#st{left = K - 1}.

add_row(?ROW(Name, Pid, _, _, _) = Row,
        #st{rows = Rows, hash = Hash, names = Names, more = More} = St0) ->
    St = St0#st{rows = Rows#{Name => Row}, hash = Hash bxor hash_of(Row)},
    case Names of
        #{Pid := _} -> St#st{more = More#{Pid => [Name | maps:get(Pid, More, [])]}};
        _ -> St#st{names = Names#{Pid => Name}}
    end.

drop_row(_, #st{left = 0} = St) -> St;
drop_row(Name, St) -> written(remove_row(Name, St)).

remove_row(Name, #st{rows = Rows, hash = Hash, names = Names, more = More} = St0) ->
    case maps:take(Name, Rows) of
        error -> St0;
        {?ROW_OF(Pid) = Row, Left} ->
            St = St0#st{rows = Left, hash = Hash bxor hash_of(Row)},
            case {Names, More} of
                {_, #{Pid := Others}} ->
                    [First | Rest] = lists:delete(Name, [map_get(Pid, Names) | Others]),
                    St#st{names = Names#{Pid := First},
                          more = case Rest of
                              [] -> maps:remove(Pid, More);
                              _ -> More#{Pid := Rest}
                          end};
                _ -> St#st{names = maps:remove(Pid, Names)}
            end
    end.

drop_rows(Names, St) -> lists:foldl(fun drop_row/2, St, lists:sort(Names)).

hash_of(Row) -> erlang:phash2(Row, 1 bsl 32).

%% ---------------------------------------------------------------- snapshots

-doc "A snapshot begins; rows that do not come again are removed at its end.".
-spec sync_begin(store(), term(), non_neg_integer()) -> store().
sync_begin(#st{rows = Rows} = St, Epoch, Num) ->
    St#st{log = {Epoch, Num, []}, stale = #{Name => sderl_row:version(Row) || Name := Row <- Rows}}.

-doc "Rows of a snapshot.".
-spec put_rows(store(), [sderl_core:row()]) -> store().
put_rows(#st{stale = none} = St, Rows) -> lists:foldl(fun put_row/2, St, Rows);
put_rows(#st{stale = Stale} = St, Rows) ->
    Left = maps:without([sderl_row:name(Row) || Row <- Rows], Stale),
    (lists:foldl(fun put_row/2, St, Rows))#st{stale = Left}.

-doc "The snapshot is complete.".
-spec sync_end(store()) -> store().
sync_end(#st{rows = Rows, stale = Stale} = St) ->
    Gone = [Name || Name := V <- Stale, #{Name := Row} <- [Rows], sderl_row:version(Row) =:= V],
    (drop_rows(Gone, St))#st{stale = none}.

-doc """
The first rows, of all homes or of some, and a cursor: the names that were there when it was opened.
""".
-spec read(store(), all | [node()], pos_integer()) -> {[sderl_core:row()], boolean(), [term()]}.
read(#st{rows = Rows} = St, all, Chunk) -> read_next(St, lists:sort(maps:keys(Rows)), Chunk);
read(#st{rows = Rows} = St, Homes, Chunk) ->
    Names = [Name || Name := ?ROW_AT(Home) <- Rows, lists:member(Home, Homes)],
    read_next(St, lists:sort(Names), Chunk).

-doc "Further rows of a cursor.".
-spec read_next(store(), [term()], pos_integer()) -> {[sderl_core:row()], boolean(), [term()]}.
read_next(_, [], _) -> {[], true, []};
read_next(#st{rows = Rows}, Names, Chunk) ->
    {Now, Later} = lists:split(min(Chunk, length(Names)), Names),
    {[R || N <- Now, #{N := R} <- [Rows]], false, Later}.

-doc "Names whose home is not the node of their pid, which was no member.".
-spec foreign(store()) -> [{term(), pid()}].
foreign(#st{rows = Rows}) ->
    [{Name, Pid} || Name := ?ROW_OF_AT(Pid, Home) <- Rows, Home =/= node(Pid)].

%% ---------------------------------------------------------------- for a new process

-doc "Keeps the state that must survive the process.".
-spec durable(term(), store()) -> store().
durable(D, St) -> St#st{durable = D}.

-doc "Keeps the answered lists of operations, with their answers.".
-spec sessions(#{node() => term()}, store()) -> store().
sessions(Sessions, St) -> St#st{sessions = Sessions}.

-doc "The answered lists of operations, with their answers.".
-spec sessions(store()) -> #{node() => term()}.
sessions(#st{sessions = Sessions}) -> Sessions.

-doc "Keeps the list of operations that was sent and is not answered.".
-spec outbox(term(), [{term(), term()}], store()) -> store().
outbox(R, List, St) -> St#st{out = {R, List}}.

-doc """
The state that a restarted process on the same run of the node finds, as `sderl_core:init/1` takes
it.
""".
-spec recover(store()) -> none | map().
recover(#st{durable = undefined}) -> none;
recover(#st{durable = D, log = Log, out = Out, sessions = Sessions}) ->
    M = #{durable => D, sessions => Sessions},
    M1 = case Log of undefined -> M; {E, Num, Items} -> M#{log => {Num, Items}, log_epoch => E} end,
    case Out of undefined -> M1; _ -> M1#{outbox => Out} end.

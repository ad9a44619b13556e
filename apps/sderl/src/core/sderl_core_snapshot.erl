%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_snapshot).
-moduledoc false.
%% Members that catch up.
%%
%% A learner gets the whole table in acknowledged chunks while batches go on. A link keeps its
%% order, so a row in a chunk is never older than the batches that came before it, and the later one
%% simply overwrites (rule 5). After the last chunk it is live from the next batch on; until then
%% nobody waits for it.
%%
%% The learner takes its own shard last, rows and session together: if the snapshot ends early, its
%% own copy is as it was.

-include("sderl_core.hrl").

-define(LEARNER_LAG, 2048).

-export([tick/1, start/2, set_snapshots/2, is_learner/2, acknowledged/3, keep_up/2, stop/2]).
-export([chunk_read/5, chunk_ok/5, adopt/5, chunk/7, view/3, superseded/2, moved/2, fresh/2]).

-import(sderl_core_state, [fx/2, send/3, present/2]).

%% Gives up transfers that no longer proceed; the next heartbeat answer or probe begins a new one.
-spec tick(#s{}) -> #s{}.
tick(#s{now = Now, aside_ms = A, office = #office{snapshots = Syncs}} = S) ->
    Old = [N || N := #sync{since = At} <- Syncs, Now - At > 2 * A],
    lists:foldl(fun stop/2, S, lists:sort(Old)).

%% ---------------------------------------------------------------- the coordinator

-doc "Snapshots for members whose shards our log has.".
-spec start([node()], #s{}) -> #s{}.
start(Ns, #s{d = #d{view = V}, office = #office{joins = Joins}} = S0) ->
    Whole = [N
             || N <- Ns, {E, _} <- [maps:get(N, V, none)], E =/= partial, not is_map_key(N, Joins)],
    Removed = [N || N <- Ns, sderl_core_quorum:is_needed(N, S0)],
    lists:foldl(fun start_one/2, S0,
                [N || N <- Whole ++ Removed, present(N, S0), may_learn(N, S0)]).

may_learn(_, #s{mode = available}) -> true;
may_learn(N, S) -> sderl_core_quorum:may_learn(N, S).

start_one(N, #s{num = Num, now = Now, sync = Before, sessions = Sessions,
                d = #d{lineage = E}} = S0) ->
    #s{office = #office{snapshots = Snapshots}} = S0,
    Id = Before + 1,
    Info = (sderl_core_role:lead_info(S0))#{sessions => Sessions, sync => Id},
    S1 = set_snapshots(Snapshots#{N => #sync{id = Id, acked = Num, since = Now}}, S0#s{sync = Id}),
    fx({read_chunk, N, 1}, send(N, {adopt, E, Num, Info}, S1)).

-spec set_snapshots(#{node() => #sync{}}, #s{}) -> #s{}.
set_snapshots(Snapshots, #s{office = Office} = S) ->
    S#s{office = Office#office{snapshots = Snapshots}}.

-doc "Whether the member gets a snapshot from us.".
-spec is_learner(node(), #s{}) -> boolean().
is_learner(N, #s{office = #office{snapshots = Snapshots}}) -> is_map_key(N, Snapshots).

-doc "A learner has everything up to this batch.".
-spec acknowledged(node(), non_neg_integer(), #s{}) -> #s{}.
acknowledged(N, Num, #s{office = #office{snapshots = Snapshots}} = S) ->
    case Snapshots of
        %% An older acknowledgement may come late; the snapshot itself is acknowledged at its end.
        #{N := #sync{acked = Was} = Sync} ->
            set_snapshots(Snapshots#{N := Sync#sync{acked = max(Num, Was)}}, S);
        _ -> S
    end.

-doc "Learners that lag far behind start again, before they cost memory; gives the others.".
-spec keep_up(non_neg_integer(), #s{}) -> {[node()], #s{}}.
keep_up(Num, #s{office = #office{snapshots = Snapshots}} = S) ->
    Kept = maps:filter(fun(_, #sync{acked = Acked}) -> Num - Acked < ?LEARNER_LAG end, Snapshots),
    {maps:keys(Kept), set_snapshots(Kept, S)}.

-spec stop(node(), #s{}) -> #s{}.
stop(N, #s{office = #office{snapshots = Snapshots}} = S) when is_map_key(N, Snapshots) ->
    fx({read_stop, N}, set_snapshots(maps:remove(N, Snapshots), S));
stop(_, S) -> S.

-spec chunk_read(node(), pos_integer(), [sderl_core:row()], boolean(), #s{}) -> #s{}.
chunk_read(N, K, Rows, Last, #s{role = coord, office = Office, d = #d{lineage = E}} = S) ->
    case Office#office.snapshots of
        #{N := #sync{id = Id, chunk = K}} -> send(N, {chunk, E, Id, K, Rows, Last}, S);
        %% Begun anew in the same step.
        #{N := _} -> S;
        _ -> fx({read_stop, N}, S)
    end;
chunk_read(N, _, _, _, S) -> fx({read_stop, N}, S).

-spec chunk_ok(epoch(), pos_integer(), pos_integer(), node(), #s{}) -> #s{}.
chunk_ok(E, Id, K, N, #s{role = coord, office = Office, now = Now, d = #d{lineage = E}} = S) ->
    case Office#office.snapshots of
        #{N := #sync{id = Id, chunk = K} = Sync} = Snapshots ->
            Next = Sync#sync{chunk = K + 1, since = Now},
            fx({read_chunk, N, K + 1}, set_snapshots(Snapshots#{N := Next}, S));
        _ -> S
    end;
chunk_ok(_, _, _, _, S) -> S.

%% ---------------------------------------------------------------- the learner

-spec adopt(epoch(), non_neg_integer(), lead_info(), node(), #s{}) -> #s{}.
adopt(E, _, _, N, #s{d = #d{epoch = Mine}, lead = L} = S) when E < Mine ->
    send(N, {refused, Mine, L}, S);
adopt(E, Num, #{view := V} = Info, N,
      #s{mode = majority, role = R, self = Self, d = #d{lineage = {C, _}}} = S) ->
    %% The view has to place an empty member as an empty one, as it has no names of its former life.
    %% (A removed member has no place.)
    Place = maps:get(Self, V, none),
    Placed = C >= 0 orelse Place =:= none orelse Place =:= sderl_core_join:position(S),
    case Placed andalso R =/= coord of
        true -> adopted(E, Num, Info, N, S);
        false -> sderl_core_join:give_up(N, E, S)
    end;
adopt(E, Num, #{history := H, view := V, mem := M} = Info, N,
      #s{role = R, self = Self, d = D} = S) ->
    case sderl_core_state:union(M, D#d.mem, S) of
        M when R =/= coord ->
            Log = D#d{lineage = E, history = H, view = V},
            case sderl_core_join:covered(Self, sderl_core_join:position(S), Log) of
                true -> adopted(E, Num, Info, N, S);
                %% We have something that the log lacks: it is a merge.
                false -> sderl_core_join:give_up(N, E, S)
            end;
        M -> sderl_core_join:give_up(N, E, S);
        %% We know of a change of the membership that the coordinator has yet to order (rule 4).
        _ -> send(N, {mem, D#d.mem}, S)
    end.

adopted(E, Num, Info, N, #s{self = Self, d = D, sessions = Own} = S0) ->
    #{sync := Id, sessions := Theirs, history := H, view := V, mem := M, clashes := Clashes} = Info,
    S1 = sderl_core_role:leave_office(S0),
    %% A learner keeps its own session until its rows are those of the snapshot.
    Sessions = maps:merge(maps:remove(Self, Theirs), maps:with([Self], Own)),
    #s{joining = Joining, clients = Clients} = Follower = sderl_core_role:become_follower(N, S1),
    S2 = Follower#s{
        sync = Id,
        num = Num,
        last = [],
        pending_exits = [],
        committed = 0,
        sessions = Sessions,
        joining = Joining#joining{session = maps:get(Self, Theirs, undefined), shard = []},
        clients = Clients#clients{answers = undefined},
        ack = undefined,
        booting = false,
        d = D#d{epoch = E, lineage = E, history = H, view = V,
                elsewhere_until = maps:map(fun(_, _) -> E end, V), clashes = Clashes,
                clashes_before = sderl_core_clash:own(Self, D), syncing = true,
                before = maps:get(before, Info, undefined), founding = false, recovered = false}
    },
    S3 = fx({sync_begin, E, Num}, fx({sessions, Sessions}, sderl_core_state:save(S2))),
    sderl_core_view:membership(M, sderl_core_clients:resend(S3)).

-spec chunk(epoch(), pos_integer(), pos_integer(), [sderl_core:row()], boolean(), node(), #s{}) ->
    #s{}.
chunk(E, Id, K, Rows, Last, N,
      #s{role = follower, lead = N, sync = Id, d = #d{lineage = E, syncing = true}} = S0) ->
    #s{self = Self, joining = #joining{shard = Shard} = Joining, now = Now} = S0,
    {Own, Others} = lists:partition(fun(Row) -> sderl_row:home(Row) =:= Self end, Rows),
    S1 = fx({put_rows, Others}, S0#s{lead_heard = Now,
                                     joining = Joining#joining{shard = [Own | Shard]}}),
    S = sderl_core_clash:overwritten(Others, S1),
    case Last of
        false -> send(N, {chunk_ok, E, Id, K}, S);
        true -> send(N, {synced, E, Id}, whole(S))
    end;
chunk(_, _, _, _, _, _, S) -> S.

whole(#s{self = Self, joining = #joining{shard = Shard, session = Session} = Joining,
         sessions = Sessions0, d = D} = S0) ->
    Sessions = case Session of
        undefined -> maps:remove(Self, Sessions0);
        _ -> Sessions0#{Self => Session}
    end,
    S1 = S0#s{sessions = Sessions,
              joining = Joining#joining{session = undefined, shard = []},
              d = D#d{syncing = false}},
    Own = lists:append(lists:reverse(Shard)),
    S2 = sderl_core_answer:decided_before(Self, Session, S1),
    S = fx(sync_end, fx({sessions, Sessions}, fx({put_rows, Own}, S2))),
    sderl_core_quorum:gained(sderl_core_clash:caught_up(Own, S)).

%% A learner's own rows are taken at the end, without those that a batch removes meanwhile, and as
%% the batch says where it changes them.
-spec view([node()], [node()], #s{}) -> #s{}.
view(Drops, Live, #s{self = Self, joining = Joining} = S) ->
    case lists:member(Self, Drops) of
        true -> S#s{joining = Joining#joining{shard = []}};
        false -> come_home(Live, S)
    end.

-doc "A batch brings newer rows of these names.".
-spec superseded([Name :: term()], #s{}) -> #s{}.
superseded(_, #s{joining = #joining{shard = []}} = S) -> S;
superseded(Named, #s{joining = #joining{shard = Shard} = Joining} = S) ->
    Names = maps:from_keys(Named, []),
    Left = [[Row || Row <- Rows, not is_map_key(sderl_row:name(Row), Names)] || Rows <- Shard],
    S#s{joining = Joining#joining{shard = Left}}.

%% The home of names of processes on nodes that count again is their node.
come_home(Live, #s{self = Self} = S) ->
    moved(fun(Row) ->
        Node = node(sderl_row:pid(Row)),
        case lists:member(Node, Live) of
            true -> Node;
            false -> Self
        end
    end, S).

-doc "Own rows that have another home by now go into the table, like those of others.".
-spec moved(fun((sderl_row:t()) -> node()), #s{}) -> #s{}.
moved(_, #s{joining = #joining{shard = []}} = S) -> S;
moved(HomeOf, #s{self = Self, joining = #joining{shard = Shard} = Joining} = S) ->
    {Own, Others} = lists:partition(fun(Row) -> HomeOf(Row) =:= Self end,
                                    lists:append(lists:reverse(Shard))),
    S1 = S#s{joining = Joining#joining{shard = [Own]}},
    case Others of
        [] -> S1;
        _ -> fx({put_rows, [sderl_row:with_home(HomeOf(Row), Row) || Row <- Others]}, S1)
    end.

%% Rows that come with a batch and keep their version: a learner that had them before must not take
%% them for old ones at the end of its snapshot. It notes them before it applies the batch, which
%% may remove them again.
-spec fresh([term()], #s{}) -> #s{}.
fresh(Items, #s{d = #d{syncing = true}} = S) ->
    case lists:append([fresh_rows(Item) || Item <- Items]) of
        [] -> S;
        Rows -> fx({put_rows, Rows}, S)
    end;
fresh(_, S) -> S.

fresh_rows(#shard{rows = Rows}) -> Rows;
fresh_rows(#settle{row = ?ROW(_, _, _, {_, _}, _) = Row}) -> [Row];
fresh_rows(_) -> [].

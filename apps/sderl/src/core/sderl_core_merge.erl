%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_merge).
-moduledoc false.
%% Components that become one.
%%
%% A member's *shard* is its rows (the names whose home it is), its session (number and answers of
%% its last list of operations) and its position in the log. Rows and session change together, and
%% no client was ever answered about a newer state of the shard than the member's own copy
%% (`sderl_core_answer` says why). So every member speaks for itself, and for no other:
%%
%% The lower coordinator waits until its batch is committed, tells its followers to go (`follow`),
%% and stops coordinating. Each of them asks the higher coordinator to be taken in (`join`). If that
%% one's log covers the member's own, its copy of the shard is right, and a snapshot brings the
%% member up to date. Otherwise it asks for the shard (`bring`), in pieces, and orders each piece
%% before it asks for the next; then the snapshot follows.
%%
%% Nothing waits for ever. A joining member that nobody takes in becomes an orphan of its old log
%% after a while, or goes on alone if it was alone; the next heartbeat starts the merge again.

-include("sderl_core.hrl").

-export([tick/1, forget_offer/2, ask_for_shard/3, shard/6, forget_join/2, brought/4]).
-export([drop_frozen/2]).

-import(sderl_core_state, [send/3, event/3, order/2]).

%% Members that stopped bringing their shards begin anew with their next offer.
-spec tick(#s{}) -> #s{}.
tick(#s{now = Now, aside_ms = A, office = #office{joins = Joins} = Office} = S) ->
    Moving = maps:filter(fun(_, #join{since = At}) -> Now - At =< 2 * A end, Joins),
    S#s{office = Office#office{joins = Moving}}.

%% ---------------------------------------------------------------- the coordinator that takes it in

-doc "That member does not wait for us any more.".
-spec forget_offer(node(), #s{}) -> #s{}.
forget_offer(N, #s{office = #office{offers = Offers} = Office} = S) ->
    S#s{office = Office#office{offers = maps:remove(N, Offers)}}.

-doc "A member that our log does not cover brings its shard.".
-spec ask_for_shard(position(), node(), #s{}) -> #s{}.
ask_for_shard(Position, N, S0) ->
    S1 = sderl_core_snapshot:stop(N, forget_join(N, S0)),
    #s{sync = Before, now = Now, office = #office{joins = Joins}, d = #d{lineage = E}} = S1,
    Id = Before + 1,
    S = set_joins(Joins#{N => #join{place = Position, id = Id, since = Now}}, S1),
    send(N, {bring, E, {Id, 1}}, S#s{sync = Id}).

set_joins(Joins, #s{office = Office} = S) -> S#s{office = Office#office{joins = Joins}}.

-doc "A piece of a member's shard has come: it is ordered.".
-spec shard(epoch(), {pos_integer(), pos_integer()}, [sderl_core:row()],
            more | {last, session() | none}, node(), #s{}) -> #s{}.
shard(E, {Id, K}, Rows, End, N, #s{role = coord, d = #d{lineage = E}} = S) ->
    #s{office = #office{joins = Joins}, now = Now} = S,
    case Joins of
        #{N := #join{id = Id, piece = K, place = Place, names = Names} = Join} ->
            Own = [Row || Row <- Rows, sderl_row:home(Row) =:= N],
            Next = Join#join{piece = K + 1, since = Now, names = Names + length(Own)},
            Change = #order_shard{
                member = N,
                reading = Id,
                piece = K,
                rows = Own,
                rest = case End of
                    more -> more;
                    {last, Session} -> {last, Place, Session}
                end
            },
            order(Change, set_joins(Joins#{N := Next}, S));
        _ -> S
    end;
shard(_, _, _, _, _, S) -> S.

-doc "Drops what this member has brought and is not ordered yet.".
-spec forget_join(node(), #s{}) -> #s{}.
forget_join(N, #s{office = #office{joins = Joins, changes = Changes} = Office} = S)
  when is_map_key(N, Joins) ->
    Others = lists:filter(fun(#order_shard{member = Member}) -> Member =/= N;
                             (_) -> true
                          end, Changes),
    S#s{office = Office#office{joins = maps:remove(N, Joins), changes = Others}};
forget_join(_, S) -> S.

-doc "All have the piece: asks for the next one or, after the last, begins a snapshot.".
-spec brought(node(), pos_integer(), more | tuple(), #s{}) -> #s{}.
brought(N, Id, Last, #s{office = #office{joins = Joins}, now = Now, d = #d{lineage = E}} = S) ->
    case Joins of
        #{N := #join{id = Id, piece = Next} = Join} when Last =:= more ->
            send(N, {bring, E, {Id, Next}}, set_joins(Joins#{N := Join#join{since = Now}}, S));
        #{N := #join{id = Id, names = Names}} ->
            S1 = event(component_merged, #{nodes => [N], names => Names}, S),
            sderl_core_snapshot:start([N], set_joins(maps:remove(N, Joins), S1));
        _ -> S
    end.

-doc """
Drops the frozen shards of members that are removed, here or in another component. Only those
members know what became of these names since, and will bring them: their clients may have
unregistered some.
""".
-spec drop_frozen([node()], #s{}) -> #s{}.
drop_frozen(Removed, #s{d = #d{view = V}} = S0) ->
    Stop = fun(N, S) -> sderl_core_snapshot:stop(N, forget_join(N, S)) end,
    S = lists:foldl(Stop, S0, Removed),
    case [N || N <- Removed, is_tuple(maps:get(N, V, none))] of
        [] -> S;
        Frozen -> sderl_core_view:change_view(maps:without(Frozen, V), Frozen, S)
    end.

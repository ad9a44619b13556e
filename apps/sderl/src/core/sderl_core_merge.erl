%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_merge).
-moduledoc false.
%% Components that become one.
%%
%% A member's *shard* is its rows (the names whose home it is), its session (number and answers of
%% its last list of operations) and its position in the log. Rows and session live and die
%% together, and a member's own copy of its shard is the newest that anybody was answered about
%% (`sderl_core_answer` says why). So every member speaks for itself, and for nobody else:
%%
%% The lower coordinator lets its batch land, tells its followers to go (`follow`), and is one no
%% more. It and each of them asks the higher coordinator to be taken in (`join`). Where that one's
%% log covers the member's own, its copy of the shard is right and a snapshot brings the member up
%% to date. Otherwise it asks for the shard (`bring`), in pieces, and orders each piece before it
%% asks for the next; then comes the snapshot.
%%
%% Nothing waits in place. A joining member that nobody takes in is an orphan of its old log after
%% a while, or goes on alone where it was alone; the next heartbeat starts again.

-include("sderl_core.hrl").
-include("sderl_op.hrl").
-include("sderl_row.hrl").

-define(OFFER_TICKS, 4).

-export([tick/1, give_up/3, join_next/3, give_up_joining/1, send_join/3]).
-export([disband/1, position/1, resume/1]).
-export([bring/4, shard_read/5]).
-export([join/4, forget_offer/2, take_offers/1, shard/6, forget_join/2, brought/4, covered/3]).

-import(sderl_core_state, [fx/2, send/3, event/3, present/2, order/2]).

%% Members that stopped bringing their shards begin anew with their next offer.
-spec tick(#s{}) -> #s{}.
tick(#s{now = Now, aside_ms = A, office = #office{joins = Joins} = Office} = S) ->
    Moving = maps:filter(fun(_, #join{since = At}) -> Now - At =< 2 * A end, Joins),
    S#s{office = Office#office{joins = Moving}}.

%% ---------------------------------------------------------------- the member that joins

-doc "A coordinator of a higher epoch is there: this component, or this orphan, goes to it.".
-spec give_up(node(), epoch(), #s{}) -> #s{}.
%% In a majority group each member goes by itself, and what is not committed in its log is dropped.
give_up(A, E, #s{mode = majority, role = coord, d = #d{lineage = Mine}} = S) when E > Mine ->
    give_up(A, E, sderl_core_elect:step_down(S));
give_up(A, E, #s{mode = majority, role = orphan} = S) ->
    case sderl_core_quorum:may_join(E, S) of
        true -> send_join(A, E, S#s{role = joining});
        false -> S
    end;
give_up(_, _, #s{mode = majority} = S) -> S;
give_up(A, E, #s{role = coord, office = #office{flight = Flight}, d = #d{lineage = Mine}} = S0)
  when E > Mine ->
    S = send_offers_on(A, E, join_next(A, E, S0#s{role = joining})),
    case Flight of
        undefined -> disband(S);
        #flight{wait = Wait} ->
            case lists:member(A, Wait) of
                %% It led on without our batch, which no coordinator will have all acknowledge.
                true -> give_up(A, E, sderl_core_elect:step_down(S0));
                %% The component is disbanded when the batch has landed.
                false -> S
            end
    end;
give_up(A, E, #s{role = orphan} = S) -> send_join(A, E, S#s{role = joining});
give_up(_, _, S) -> S.

-doc "The coordinator of that epoch is the one that this member joins, and is asked when it may.".
-spec join_next(node(), epoch(), #s{}) -> #s{}.
join_next(A, E, #s{now = Now, joining = Joining} = S) ->
    S#s{joining = Joining#joining{to = {A, E, Now}}}.

-doc "This member joins nobody any more.".
-spec give_up_joining(#s{}) -> #s{}.
give_up_joining(#s{joining = Joining} = S) ->
    S#s{joining = Joining#joining{to = undefined, bringing = undefined}}.

%% Members that offered themselves to this coordinator go there too.
send_offers_on(A, E, #s{office = #office{offers = Offers} = Office} = S) ->
    S1 = S#s{office = Office#office{offers = #{}}},
    lists:foldl(fun(N, X) -> send(N, {low, E, A}, X) end, S1, lists:delete(A, maps:keys(Offers))).

-doc "Ends a component: everyone in it goes to the higher coordinator by itself.".
-spec disband(#s{}) -> #s{}.
disband(#s{role = joining, self = Self, lead = Self, joining = #joining{to = {A, E, _}},
           d = #d{view = V}} = S) ->
    case [N || N := _ <- V, N =/= Self, N =/= A, present(N, S)] of
        %% A component of one stays what it is until it is taken in: one that boots keeps its
        %% lowest epoch, should nothing come of it.
        [] -> send_join(S);
        Others ->
            S1 = lists:foldl(fun(N, X) -> send(N, {follow, A, E}, X) end, S, Others),
            send_join(sderl_core_elect:leave_office(S1))
    end;
disband(S) -> S.

-doc "Asks the coordinator of that epoch to take this member in.".
-spec send_join(node(), epoch(), #s{}) -> #s{}.
send_join(A, E, S) -> send_join(join_next(A, E, S)).

send_join(#s{joining = #joining{to = {A, _, _}}} = S) ->
    {E, Num} = position(S),
    send(A, {join, E, Num}, S).

-doc """
How much of our log another one has to cover: of a log that we led ourselves, what was committed.
The tail that not all acknowledged was answered to nobody, and is decided anew (rule 9). Unless it
settled a clash: processes have heard of that.
""".
-spec position(#s{}) -> position().
position(#s{self = Self, committed = C, d = #d{lineage = {_, Self} = E}} = S) when C > 0 ->
    case sderl_core_clash:is_settled(S#s.last) of
        true -> {E, S#s.num};
        false -> {E, C}
    end;
position(#s{num = Num, d = #d{lineage = E}}) -> {E, Num}.

-doc "Nobody took this member in.".
-spec resume(#s{}) -> #s{}.
resume(#s{role = joining, lead = Self, self = Self, joining = Joining} = S) ->
    sderl_core_write:reorder(S#s{role = coord, joining = Joining#joining{to = undefined}});
resume(#s{role = joining, joining = Joining} = S) ->
    sderl_core_elect:orphan(S#s{joining = Joining#joining{to = undefined}});
resume(S) -> S.

-doc "The coordinator that we join asks for a piece of our shard.".
-spec bring(epoch(), {pos_integer(), pos_integer()}, node(), #s{}) -> #s{}.
bring(E, {Id, 1}, N, #s{role = joining, joining = #joining{to = {N, _, _}} = Joining, now = Now,
                        office = #office{flight = undefined}} = S) ->
    S1 = sderl_core_answer:look_up_removed(S#s{joining = Joining#joining{bringing = {E, Id, 1},
                                                                         to = {N, E, Now}}}),
    fx({read_homes, N, 1, [S#s.self]}, S1);
bring(E, {Id, K}, N, #s{role = joining,
                        joining = #joining{to = {N, E, _}, bringing = {E, Id, Before}} = Joining,
                        now = Now} = S)
  when K =:= Before + 1 ->
    fx({read_homes, N, K, []}, S#s{joining = Joining#joining{bringing = {E, Id, K},
                                                             to = {N, E, Now}}});
bring(_, _, _, S) -> S.

-doc "A piece of our shard was read. The last one has our session, and rows that no table holds.".
-spec shard_read(node(), pos_integer(), [sderl_core:row()], boolean(), #s{}) -> #s{}.
shard_read(N, K, Rows, Last, #s{role = joining,
                                joining = #joining{to = {N, E, _}, bringing = {E, Id, K}}} = S) ->
    #s{self = Self} = S,
    Piece = {Id, K},
    Own = [sderl_core_clash:latest(Row, S) || Row <- Rows,
           sderl_row:home(Row) =:= Self, not is_void(Row, S)],
    case Last of
        false -> send(N, {shard, E, Piece, Own, more}, S);
        true ->
            #s{sessions = Sessions} = Left = sderl_core_answer:leave_log(S),
            Session = maps:get(Self, Sessions, none),
            Clashing = sderl_core_clash:rows_of(Self, Left),
            send(N, {shard, E, Piece, Own ++ Clashing, {last, Session}}, Left)
    end;
%% Asked anew in the same step: what was read for the question before is of no use, and the reading
%% that is open is the one for this.
shard_read(N, _, _, _, #s{role = joining,
                          joining = #joining{to = {N, E, _}, bringing = {E, _, _}}} = S) -> S;
shard_read(N, _, _, _, S) -> fx({read_stop, N}, S).

%% Of a log that we led ourselves, a row that its tail made for a process of a member that it removes, and
%% gave to us. That member speaks for itself: it may ask for the same where it is, and hear another answer.
is_void(?ROW(_, Pid, _, {E, Seq}, _), #s{self = Self, num = Num, committed = C, last = Last, d = #d{lineage = {_, Self} = E}})
  when C < Num ->
    Removed = lists:append([Nodes || #mem{removed = Nodes} <- Last]),
    sderl_core_state:batch_of(Seq) =:= Num andalso lists:member(node(Pid), Removed);
is_void(_, _) -> false.

%% ---------------------------------------------------------------- the coordinator that takes it in

-doc "A member whose log ends there wants to join.".
-spec join(epoch(), non_neg_integer(), node(), #s{}) -> #s{}.
join(E, Num, N, #s{role = coord, groggy = [], d = #d{lineage = Mine}} = S) when E =< Mine ->
    #s{office = #office{offers = Offers} = Office, now = Now} = S,
    case is_member(N, S) of
        true ->
            %% Two that boot side by side do not outrank what runs: that may call us in at any
            %% moment (rule 2).
            case sderl_core_peers:unmet(S) of
                true -> S#s{office = Office#office{offers = Offers#{N => {Now, {E, Num}}}}};
                false -> take({E, Num}, N, found(S))
            end;
        %% It was added where we have not heard of it: its hello says so.
        false -> sderl_core_state:ask(N, S)
    end;
%% We join another ourselves, or follow one: there it is taken.
join(_, _, N, #s{role = joining, joining = #joining{to = {A, E, _}}} = S) when A =/= N ->
    send(N, {low, E, A}, S);
join(_, _, N, #s{role = follower, lead = L, d = #d{epoch = E}} = S) when L =/= N ->
    send(N, {low, E, L}, S);
join(_, _, _, S) -> S.

is_member(N, #s{self = Self, d = #d{mem = Mem}}) ->
    N =/= Self andalso sderl_membership:is_member(N, Mem).

-doc "That member does not wait for us any more.".
-spec forget_offer(node(), #s{}) -> #s{}.
forget_offer(N, #s{office = #office{offers = Offers} = Office} = S) ->
    S#s{office = Office#office{offers = maps:remove(N, Offers)}}.

-doc "Takes in those whose offers had to wait until nobody was left that may outrank us.".
-spec take_offers(#s{}) -> #s{}.
take_offers(#s{office = #office{offers = Offers}} = S) when map_size(Offers) =:= 0 -> S;
take_offers(#s{office = #office{offers = Offers} = Office, now = Now, tick_ms = T} = S0) ->
    case sderl_core_peers:unmet(S0) of
        true -> S0;
        false ->
            S1 = S0#s{office = Office#office{offers = #{}}},
            %% Members that still wait have said so again since: they answer each heartbeat so,
            %% when two ticks have passed.
            maps:fold(fun(N, {At, {E, Num}}, S) when Now - At =< ?OFFER_TICKS * T -> join(E, Num, N, S);
                         (_, _, S) -> S
                      end, S1, maps:iterator(Offers, ordered))
    end.

take(Position, N, #s{mode = majority} = S) -> sderl_core_quorum:take_in(Position, N, S);
take(Position, N, #s{d = D0} = S0) ->
    S1 = sderl_core_write:forget_list(N, S0),
    S = case D0#d.view of
        #{N := live} -> sderl_core_snapshot:set_place(N, S1);
        _ -> S1
    end,
    case covered(N, Position, S#s.d) of
        true -> sderl_core_snapshot:start([N], forget_join(N, S));
        false -> ask_for_shard(Position, N, S)
    end.

ask_for_shard(Position, N, S0) ->
    S1 = sderl_core_snapshot:stop(N, forget_join(N, S0)),
    #s{sync = Before, now = Now, office = #office{joins = Joins}, d = #d{lineage = E}} = S1,
    Id = Before + 1,
    S = set_joins(Joins#{N => #join{place = Position, id = Id, since = Now}}, S1),
    send(N, {bring, E, {Id, 1}}, S#s{sync = Id}).

set_joins(Joins, #s{office = Office} = S) -> S#s{office = Office#office{joins = Joins}}.

-doc """
Whether a log, of this epoch, history and view, has everything that a member at a position of its
own log has, and the shard of that member as it is: the log grew out of the member's, which did not
go on without us, or the member brought its shard when it was there.
""".
-spec covered(node(), position(), #d{}) -> boolean().
covered(M, {Lineage, Num}, #d{lineage = E, history = H, view = V}) ->
    case V of
        #{M := {partial, _}} -> false;
        #{M := {Lineage, At}} when Num =< At -> true;
        #{M := _} -> Lineage =:= E orelse ended_after(Lineage, Num, H);
        %% Its names went with it.
        _ -> false
    end.

ended_after(Lineage, Num, History) ->
    case lists:keyfind(Lineage, 1, History) of
        {_, Final} -> Num =< Final;
        false -> false
    end.

%% A component that was one booting node becomes a running one when it takes in its first member:
%% from then on it outranks the nodes that boot. Nobody else has promised anything to it yet.
found(#s{self = Self, num = Num, office = #office{flight = undefined},
         d = #d{lineage = {C, Self} = Old, epoch = Old} = D} = S)
  when C < 0, map_size(D#d.view) =:= 1 ->
    New = sderl_core_state:epoch(S),
    S#s{d = D#d{lineage = New, epoch = New, history = [{Old, Num} | D#d.history]}};
found(S) -> S.

-doc "A piece of a member's shard has come: it is ordered.".
-spec shard(epoch(), {pos_integer(), pos_integer()}, [sderl_core:row()], more | {last, session() | none}, node(), #s{}) -> #s{}.
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

-doc "Nothing of what this member brings, and is not ordered yet, counts.".
-spec forget_join(node(), #s{}) -> #s{}.
forget_join(N, #s{office = #office{joins = Joins, changes = Changes} = Office} = S)
  when is_map_key(N, Joins) ->
    Others = lists:filter(fun(#order_shard{member = Member}) -> Member =/= N;
                             (_) -> true
                          end, Changes),
    S#s{office = Office#office{joins = maps:remove(N, Joins), changes = Others}};
forget_join(_, S) -> S.

-doc "All have the piece: the next one, or, behind the last, a snapshot.".
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

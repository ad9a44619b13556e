%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_join).
-moduledoc false.
%% A member that joins another component, and brings its shard (`sderl_core_merge` says how
%% components become one).

-include("sderl_core.hrl").

-export([give_up/3, join_next/3, disband/1, send_join/3, position/1, bring/4, shard_read/5]).
-export([covered/3]).

-import(sderl_core_state, [fx/2, send/3, present/2]).

-doc "A coordinator of a higher epoch was found: this component, or this orphan, joins it.".
-spec give_up(node(), epoch(), #s{}) -> #s{}.
%% In a majority group each member goes by itself and drops what is not committed in its log.
give_up(A, E, #s{mode = majority, role = coord, d = #d{lineage = Mine}} = S) when E > Mine ->
    give_up(A, E, sderl_core_role:step_down(S));
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
                %% It went on without our batch, so not all members will acknowledge that any more.
                true -> give_up(A, E, sderl_core_role:step_down(S0));
                %% The component is disbanded when the batch is committed.
                false -> S
            end
    end;
give_up(A, E, #s{role = orphan} = S) -> send_join(A, E, S#s{role = joining});
give_up(_, _, S) -> S.

%% Members that asked this coordinator to take them in are sent there, too.
send_offers_on(A, E, #s{office = #office{offers = Offers} = Office} = S) ->
    S1 = S#s{office = Office#office{offers = #{}}},
    lists:foldl(fun(N, X) -> send(N, {low, E, A}, X) end, S1, lists:delete(A, maps:keys(Offers))).

-doc "This member will join the coordinator of that epoch, and asks it later.".
-spec join_next(node(), epoch(), #s{}) -> #s{}.
join_next(A, E, #s{now = Now, joining = Joining} = S) ->
    S#s{joining = Joining#joining{to = {A, E, Now}}}.

-doc "Ends a component: everyone in it goes to the higher coordinator by itself.".
-spec disband(#s{}) -> #s{}.
disband(#s{role = joining, self = Self, lead = Self, joining = #joining{to = {A, E, _}},
           d = #d{view = V}} = S) ->
    case [N || N := _ <- V, N =/= Self, N =/= A, present(N, S)] of
        %% A component of one stays what it is until it is taken in: a node that boots keeps its
        %% lowest epoch if it is not.
        [] -> send_join(S);
        Others ->
            S1 = lists:foldl(fun(N, X) -> send(N, {follow, A, E}, X) end, S, Others),
            send_join(sderl_core_role:leave_office(S1))
    end;
disband(S) -> S.

-doc "Asks the coordinator of that epoch to take this member in.".
-spec send_join(node(), epoch(), #s{}) -> #s{}.
send_join(A, E, S) -> send_join(join_next(A, E, S)).

send_join(#s{joining = #joining{to = {A, _, _}}} = S) ->
    {E, Num} = position(S),
    send(A, {join, E, Num}, S).

-doc """
How much of our log another log has to cover. Of a log that we coordinated ourselves, that is the
committed part: the tail that not all acknowledged was answered to nobody, and is decided anew (rule
9). The tail does count if it settled a clash, because processes have been told, or with `answer =>
applied`, because our clients have been answered.
""".
-spec position(#s{}) -> position().
position(#s{self = Self, answer = committed, committed = C, d = #d{lineage = {_, Self} = E}} = S)
  when C > 0 ->
    case sderl_core_clash:is_settled(S#s.last) of
        true -> {E, S#s.num};
        false -> {E, C}
    end;
position(#s{num = Num, d = #d{lineage = E}}) -> {E, Num}.

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

-doc "A piece of our shard was read. The last one has our session, and our rows in clashes.".
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
%% The coordinator asked anew in the same step: this piece is of the earlier reading and of no use,
%% as another reading is open now.
shard_read(N, _, _, _, #s{role = joining,
                          joining = #joining{to = {N, E, _}, bringing = {E, _, _}}} = S) -> S;
shard_read(N, _, _, _, S) -> fx({read_stop, N}, S).

%% A row in the uncommitted tail of a log that we coordinated ourselves, for a process of a member
%% that the tail removes and whose names came to us. That member speaks for itself: it may ask for
%% the same in another component, and get another answer.
is_void(?ROW(_, Pid, _, {E, Seq}, _),
        #s{self = Self, num = Num, committed = C, last = Last, d = #d{lineage = {_, Self} = E}})
  when C < Num ->
    Removed = lists:append([Nodes || #mem{removed = Nodes} <- Last]),
    sderl_core_state:batch_of(Seq) =:= Num andalso lists:member(node(Pid), Removed);
is_void(_, _) -> false.

-doc """
Whether a log, with this epoch, history and view, has everything that a member has at a position of
its own log, and the member's shard as it is. That is so if this log continues the member's log and
has not dropped the member, or if the member brought its shard to it and has not gone on without it.
""".
-spec covered(node(), position(), #d{}) -> boolean().
covered(M, {Lineage, Num}, #d{lineage = E, history = H, view = V}) ->
    case V of
        #{M := {partial, _}} -> false;
        #{M := {Lineage, At}} when Num =< At -> true;
        %% It brought its shard from that log, or was set aside in it. What it has of that log since
        %% may come from a coordinator that this log does not know, and is not what it brought.
        #{M := {Lineage, _}} when Lineage =/= E -> false;
        #{M := _} -> Lineage =:= E orelse ended_after(Lineage, Num, H);
        %% Its names went with it.
        _ -> false
    end.

ended_after(Lineage, Num, History) ->
    case lists:keyfind(Lineage, 1, History) of
        {_, Final} -> Num =< Final;
        false -> false
    end.

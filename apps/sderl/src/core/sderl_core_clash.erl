%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_clash).
-moduledoc false.
%% Names that two components gave to different processes (rule 18).
%%
%% A clash is found when a member's shard is ordered. Our row stays, theirs is kept beside it, in
%% the replicated state of every member, until the clash is settled. The coordinator asks the
%% resolver once, when both homes count, and orders the decision in two batches. The first one
%% changes nothing that is read, but with it both homes know which process keeps the name, and the
%% winner's version. Once all members have it and both homes count, the second one settles the
%% clash: the tables change, and the homes tell their own processes.
%%
%% Between the two batches a home may go and come back. The winner's home brings the winner with the
%% version that others may have read. The loser's home brings the loser, and there is a clash again;
%% or its shard was kept, and it finds in the snapshot that another process has the name: then it
%% tells its process.
%%
%% A new coordinator asks the resolver where nothing is decided yet, and settles what is decided.

-include("sderl_core.hrl").

-export([ask/1, resolved/6, decisions/1, forget/2, effects_for/3, effects_outside/3, tell/3]).
-export([note_pending_exits/3, forget_told/2, tell_outside/3, came_back/3]).
-export([rows/1, map_rows/2, third/1, is_beside/2, rows_of/2, latest/2, won/2, is_settled/1]).
-export([own/2, overwritten/2, caught_up/2]).

-import(sderl_core_state, [fx/2]).

-doc "Asks the resolver about every clash whose two homes count.".
-spec ask(#s{}) -> #s{}.
ask(#s{d = #d{clashes = Clashes}} = S) when map_size(Clashes) =:= 0 -> S;
ask(#s{office = #office{asked = Asked} = Office, d = #d{clashes = Clashes}} = S0) ->
    New = [{Name, A, B}
           || Name := {A, B} <- maps:iterator(Clashes, ordered),
              sderl_row:name(A) =:= Name,
              maps:get(Name, Asked, none) =/= {A, B},
              both_live(A, B, S0)],
    Known = maps:with(maps:keys(Clashes), Asked),
    Now = maps:merge(Known, #{Name => {A, B} || {Name, A, B} <- New}),
    S1 = S0#s{office = Office#office{asked = Now}},
    lists:foldl(fun({Name, A, B}, S) -> fx({resolve, Name, A, B}, S) end, S1, New).

both_live(?ROW_AT(HomeA), ?ROW_AT(HomeB), #s{d = #d{view = V}}) ->
    maps:get(HomeA, V, none) =:= live andalso maps:get(HomeB, V, none) =:= live.

-doc """
A resolver has decided. A coordinator that is about to join another one takes the decision, too: if
it is not taken in, it goes on with it and does not ask the resolver again.
""".
-spec resolved(term(), sderl_core:row(), sderl_core:row(), pid() | none, [term()], #s{}) -> #s{}.
resolved(Name, A, B, Keep, Fx, #s{self = Self, lead = Self, d = #d{clashes = Clashes},
                                  office = #office{decided = Decided} = Office} = S) ->
    case Clashes of
        #{Name := {A, B}} ->
            S#s{office = Office#office{decided = Decided#{Name => {A, B, Keep, Fx}}}};
        _ -> S
    end;
resolved(_, _, _, _, _, S) -> S.

-doc """
What can be ordered now, as both homes count: decisions, and settlements where all members have the
decision.
""".
-spec decisions(#s{}) -> #s{}.
decisions(#s{d = #d{clashes = Clashes}} = S) when map_size(Clashes) =:= 0 -> S;
decisions(#s{office = #office{decided = Decided, changes = Changes} = Office,
             d = #d{clashes = Clashes}} = S) ->
    Open = maps:filter(fun(Name, {A, B, _, _}) -> maps:get(Name, Clashes, none) =:= {A, B} end,
                       Decided),
    Ready = maps:filter(fun(_, {A, B, _, _}) -> both_live(A, B, S) end, Open),
    Decide = [#decide_clash{name = Name, ours = A, theirs = B, keep = Keep, effects = Fx}
              || Name := {A, B, Keep, Fx} <- maps:iterator(Ready, ordered)],
    Settle = [#settle_clash{name = Name}
              || Name := {A, B, _, _} <- maps:iterator(Clashes, ordered), both_live(A, B, S)],
    Contend = [#contend{key = Third}
               || Third := {?ROW(Name, _, _, _, _), _} <- maps:iterator(Clashes, ordered),
                  Third =/= Name,
                  not is_map_key(Name, Clashes)],
    Known = maps:from_keys(Changes, []),
    More = [X || X <- Decide ++ Settle ++ Contend, not is_map_key(X, Known)],
    S#s{office = Office#office{decided = maps:without(maps:keys(Ready), Open),
                               changes = lists:reverse(More, Changes)}}.

-doc "The same two rows may clash again: then the resolver is asked again.".
-spec forget([term()], #s{}) -> #s{}.
forget(Names, #s{office = #office{asked = Asked, decided = Decided} = Office} = S) ->
    S#s{office = Office#office{asked = maps:without(Names, Asked),
                               decided = maps:without(Names, Decided)}}.

-doc "Whether a batch tells somebody that a name is lost, or who has it now.".
-spec is_settled([term()]) -> boolean().
is_settled(Items) ->
    lists:any(fun(#settle{losers = [_ | _]}) -> true;
                 (_) -> false
              end, Items).

-doc "The two rows of a clash.".
-spec rows(clash()) -> {sderl_core:row(), sderl_core:row()}.
rows({A, B}) -> {A, B};
rows({A, B, _, _}) -> {A, B}.

-doc "A clash with each of its rows changed.".
-spec map_rows(fun((sderl_core:row()) -> sderl_core:row()), clash()) -> clash().
map_rows(Change, {A, B}) -> {Change(A), Change(B)};
map_rows(Change, {A, B, Keep, Fx}) -> {Change(A), Change(B), Keep, Fx}.

-doc "The key of a third row for a name that two rows clash for: it waits until they are settled.".
-spec third(sderl_core:row()) -> term().
third(?ROW(Name, _, Home, _, _)) -> {third, Name, Home}.

-doc "Whether a row is the second one of a clash, which gets the name if the first one goes.".
-spec is_beside(sderl_core:row(), #{term() => clash()}) -> boolean().
is_beside(?ROW(Name, Pid, _, _, _) = Row, Clashes) ->
    Beside = [rows(Clash) || _ := Clash <- maps:with([Name, third(Row)], Clashes)],
    lists:any(fun({_, ?ROW_OF(Waits)}) -> Waits =:= Pid end, Beside).

-doc "Rows of clashes that no table holds, and whose home is this member: part of its shard.".
-spec rows_of(node(), #s{}) -> [sderl_core:row()].
rows_of(N, #s{d = D} = S) ->
    Pairs = [rows(Clash) || _ := Clash <- maps:iterator(own(N, D), ordered)],
    [latest(B, S) || {_, B} <- Pairs, sderl_row:home(B) =:= N].

-doc "A row of our shard, with its new version if it won a decision that is not settled here.".
-spec latest(sderl_core:row(), #s{}) -> sderl_core:row().
latest(Row, #s{d = #d{clashes = Clashes, clashes_before = Before}}) ->
    Name = sderl_row:name(Row),
    lists:foldl(fun(Clash, R) -> won(R, Clash) end, Row,
                [Clash || #{Name := Clash} <- [Clashes, Before]]).

-doc """
A row, with its new version if it won the decision: the higher version of the two rows.
""".
-spec won(sderl_core:row(), clash()) -> sderl_core:row().
won(?ROW_OF(Pid) = Row, {Ours, Theirs, Pid, _}) ->
    Versions = [sderl_row:version(X) || X <- [Row, Ours, Theirs]],
    sderl_row:with_version(lists:max(Versions), Row);
won(Row, _) -> Row.

-doc "The effects of a decision that this home has to run.".
-spec effects_for(node(), [term()], clash()) -> [term()].
effects_for(N, Fx, Clash) ->
    Homes = homes(Clash),
    [F || F <- Fx, maps:get(affected(F), Homes, none) =:= N].

-doc """
The exits, of the effects of a decision, for processes that live on another node than their home,
each with that home. The home may go before it has a link to them, so the coordinator, `N`, sends
the exit as well. (A second exit signal does no harm; a message would arrive twice.)
""".
-spec effects_outside(node(), [term()], clash()) -> [{node(), term()}].
effects_outside(N, Fx, Clash) ->
    Homes = homes(Clash),
    [{Home, F}
     || {exit, Pid, _} = F <- Fx,
        #{Pid := Home} <- [Homes],
        Home =/= N,
        Home =/= node(Pid)].

homes(Clash) ->
    {?ROW_OF_AT(PidA, HomeA), ?ROW_OF_AT(PidB, HomeB)} = rows(Clash),
    #{PidA => HomeA, PidB => HomeB}.

%% The process that an effect of a decision is for: {exit | send, Pid, What}.
affected(Effect) -> element(2, Effect).

-doc "The processes of this node hear of what a batch settled, once.".
-spec tell(non_neg_integer(), [term()], #s{}) -> #s{}.
tell(_, [], S) -> S;
tell(Num, Fx, #s{d = #d{lineage = E, told = Told} = D} = S) ->
    case {E, Num} > Told of
        true -> fx({clash_effects, Fx}, S#s{d = D#d{told = {E, Num}}});
        false -> S
    end.

-doc """
A clash is settled. Every member notes the exits of losers that do not live at their home: if a home
goes without the batch, another member may be the coordinator when it comes back.
""".
-spec note_pending_exits(term(), [term()], #s{}) -> #s{}.
note_pending_exits(Name, Fx, #s{self = Self, pending_exits = Exits,
                                d = #d{clashes = Clashes}} = S) ->
    case Clashes of
        #{Name := Clash} -> S#s{pending_exits = effects_outside(Self, Fx, Clash) ++ Exits};
        _ -> S
    end.

-doc "Drops exits noted before the last batch, where the home counts: it has the batch and tells.".
-spec forget_told([{node(), term()}], #s{}) -> #s{}.
forget_told([], S) -> S;
forget_told(Before, #s{pending_exits = Exits, d = #d{view = V}} = S) ->
    Told = [Noted || {Home, _} = Noted <- Before, maps:get(Home, V, none) =:= live],
    S#s{pending_exits = Exits -- Told}.

-doc """
Sends the exit of a loser that does not live at its home, once all members have the batch that
settled its clash. If the home went without the batch, it may bring the loser back, to clash again:
the exit waits for that home.
""".
-spec tell_outside(node(), term(), #s{}) -> #s{}.
tell_outside(Home, Effect, #s{pending_exits = Exits, d = #d{view = V}} = S) ->
    Others = lists:delete({Home, Effect}, Exits),
    case V of
        #{Home := live} -> fx({clash_effects, [Effect]}, S#s{pending_exits = Others});
        _ -> S#s{pending_exits = [{Home, Effect} | Others]}
    end.

-doc """
That home is back. In a new life it knows nothing of the losers and brings none, so they are sent
the exits that it would have sent.
""".
-spec came_back(node(), IsEmpty :: boolean(), #s{}) -> #s{}.
came_back(_, _, #s{pending_exits = []} = S) -> S;
came_back(N, IsEmpty, #s{pending_exits = Exits} = S0) ->
    {Its, Others} = lists:partition(fun({Home, _}) -> Home =:= N end, Exits),
    S = S0#s{pending_exits = Others},
    case [Effect || {_, Effect} <- Its] of
        [_ | _] = Effects when IsEmpty -> fx({clash_effects, Effects}, S);
        _ -> S
    end.

%% ---------------------------------------------------------------- what was settled without us

-doc """
Clashes of this member's own names, in the log to which its own copy of its shard belongs. If a
snapshot has begun, and our process is the second one of a clash in its log, that clash: our table
may have the first one by now.
""".
-spec own(node(), #d{}) -> #{term() => clash()}.
own(N, #d{clashes = Clashes, clashes_before = Before}) ->
    Own = maps:filter(fun(_, Clash) ->
        {?ROW_AT(HomeA), ?ROW_AT(HomeB)} = rows(Clash),
        HomeA =:= N orelse HomeB =:= N
    end, Clashes),
    maps:merge_with(fun(_, Clash, Was) ->
        case rows(Clash) of
            {_, ?ROW_AT(N)} -> map_rows(fun(Row) -> won(Row, Was) end, Clash);
            _ -> Was
        end
    end, Own, Before).

-doc "A snapshot has written these rows, maybe over one of ours.".
-spec overwritten([sderl_core:row()], #s{}) -> #s{}.
overwritten(_, #s{d = #d{clashes_before = Before}} = S) when map_size(Before) =:= 0 -> S;
overwritten(Rows, S) -> lost([sderl_row:name(Row) || Row <- Rows], Rows, S).

-doc "The snapshot is complete: processes that lost a name, and do not have it there, hear of it.".
-spec caught_up([sderl_core:row()], #s{}) -> #s{}.
caught_up(_, #s{d = #d{clashes_before = Before}} = S) when map_size(Before) =:= 0 -> S;
caught_up(Own, #s{d = #d{clashes_before = Before}} = S0) ->
    #s{d = D} = S = lost(lists:sort(maps:keys(Before)), Own, S0),
    S#s{d = D#d{clashes_before = #{}}}.

%% The names with a decision that was known here and has been settled since. (While the two rows are
%% still beside each other it is not settled, and the row in the table counts.)
lost(Names, Rows, #s{self = Self, d = #d{clashes = Clashes, clashes_before = Before} = D} = S0) ->
    Standing = #{sderl_row:pid(Row) => [] || Row <- Rows},
    Told = [{Name, F} || Name <- Names, #{Name := {_, _, _, Fx} = Clash} <- [Before],
                         F <- effects_for(Self, Fx, Clash),
                         not is_map_key(affected(F), Standing),
                         not lists:member(affected(F), beside(Name, Self, Clashes))],
    S = S0#s{d = D#d{clashes_before = maps:without([Name || {Name, _} <- Told], Before)}},
    case Told of
        [] -> S;
        _ -> fx({clash_effects, [F || {_, F} <- Told]}, S)
    end.

beside(Name, Self, Clashes) ->
    Beside = maps:with([Name, {third, Name, Self}], Clashes),
    [sderl_row:pid(Row) || _ := Clash <- Beside, {A, B} <- [rows(Clash)], Row <- [A, B]].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_clash).
-moduledoc false.
%% Names that two components gave to different processes (rule 18).
%%
%% A clash is found when a member's shard is ordered. Our row stays, theirs is kept beside it, in the
%% replicated state of every member, until the clash is settled. The coordinator asks the resolver
%% once, when both homes count, and orders what it decided. The homes then tell their own
%% processes: a home that applies the decision has taken the name from its shard, whatever becomes
%% of the coordinator. A coordinator that takes over asks for what is not decided yet.

-include("sderl_core.hrl").

-export([ask/1, resolved/6, decisions/1, forget/1, rows_of/2, effects_for/3, tell/3]).

-import(sderl_core, [faulty/2, fx/2]).

-doc "Asks the resolver about every clash whose two homes count.".
-spec ask(#s{}) -> #s{}.
ask(#s{d = #d{clashes = Clashes}} = S) when map_size(Clashes) =:= 0 -> S;
ask(#s{asked = Asked, d = #d{clashes = Clashes}} = S0) ->
    New = [{Name, A, B} || Name := {A, B} <- maps:iterator(Clashes, ordered),
                           maps:get(Name, Asked, none) =/= {A, B}, both_live(A, B, S0)],
    lists:foldl(fun({Name, A, B}, #s{asked = Now} = S) ->
        fx({resolve, Name, A, B}, S#s{asked = Now#{Name => {A, B}}})
    end, S0#s{asked = maps:with(maps:keys(Clashes), Asked)}, New).

both_live(A, B, #s{d = #d{view = V}}) ->
    maps:get(element(3, A), V, none) =:= live andalso maps:get(element(3, B), V, none) =:= live.

-doc "A resolver has decided.".
-spec resolved(term(), sderl_core:row(), sderl_core:row(), pid() | none, [term()], #s{}) -> #s{}.
resolved(Name, A, B, Keep0, Fx, #s{role = coord, decided = Decided, d = #d{clashes = Clashes}} = S) ->
    Keep = case faulty(wrong_winner, S) of
        true -> hd([element(2, A), element(2, B)] -- [Keep0]);
        false -> Keep0
    end,
    case Clashes of
        #{Name := {A, B}} -> S#s{decided = Decided#{Name => {A, B, Keep, Fx}}};
        _ -> S
    end;
resolved(_, _, _, _, Fx, S) ->
    case faulty(rule_18, S) of
        false -> S;
        true -> fx({clash_effects, Fx}, S)
    end.

-doc "What can be ordered now: decisions whose homes count, so that both hear of them.".
-spec decisions(#s{}) -> #s{}.
decisions(#s{decided = Decided} = S) when map_size(Decided) =:= 0 -> S;
decisions(#s{decided = Decided, d = #d{clashes = Clashes}, specials = Specials} = S) ->
    Open = maps:filter(fun(Name, {A, B, _, _}) -> maps:get(Name, Clashes, none) =:= {A, B} end, Decided),
    Ready = maps:filter(fun(_, {A, B, _, _}) -> both_live(A, B, S) end, Open),
    Settle = [{settle, Name, A, B, Keep, Fx} || Name := {A, B, Keep, Fx} <- maps:iterator(Ready, ordered)],
    S#s{decided = maps:without(maps:keys(Ready), Open), specials = lists:reverse(Settle, Specials)}.

-doc "One who coordinates no more decides nothing.".
-spec forget(#s{}) -> #s{}.
forget(S) -> S#s{asked = #{}, decided = #{}}.

-doc "Rows of clashes that no table holds, and whose home is this member: part of its shard.".
-spec rows_of(node(), #s{}) -> [sderl_core:row()].
rows_of(N, #s{d = #d{clashes = Clashes}}) ->
    [B || _ := {_, B} <- maps:iterator(Clashes, ordered), element(3, B) =:= N].

-doc "Of the effects of a decision, those that are this home's to run.".
-spec effects_for(node(), [term()], {sderl_core:row(), sderl_core:row()}) -> [term()].
effects_for(N, Fx, {A, B}) ->
    Home = #{element(2, A) => element(3, A), element(2, B) => element(3, B)},
    [F || F <- Fx, maps:get(element(2, F), Home, none) =:= N].

-doc "The processes of this node hear of what a batch settled, once.".
-spec tell(non_neg_integer(), [term()], #s{}) -> #s{}.
tell(_, [], S) -> S;
tell(Num, Fx, #s{d = #d{lineage = E, told = Told} = D} = S) ->
    case {E, Num} > Told of
        true -> fx({clash_effects, Fx}, S#s{d = D#d{told = {E, Num}}});
        false -> S
    end.

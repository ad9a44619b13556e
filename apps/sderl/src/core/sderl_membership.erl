%% SPDX-License-Identifier: Apache-2.0
-module(sderl_membership).
-moduledoc """
Versioned membership of a group: a pure value that merges.

Every node that ever was a member has a counter: odd while it is a member, even once it was
removed. Adding and removing step the counter, merging takes the larger one. From that follow
the rules that a heal needs: two sides that removed each other's nodes agree that all of them
are out, removal wins over a presence that had not heard of it, and a node that was added
again after its removal is in (protocol rule 4).

Removed nodes keep their entry with the time of removal so that whoever returns can be told;
`prune/2` forgets old ones.
""".
-export([new/1, add/2, remove/3, merge/2, members/1, is_member/2, removed/1, prune/2]).
-export_type([t/0]).

-doc "Node to `{Counter, RemovedAt}`; `RemovedAt` is 0 for members, else system time in seconds.".
-type t() :: #{node() => {Counter :: pos_integer(), RemovedAt :: non_neg_integer()}}.

-doc "The membership that a list of first members makes.".
-spec new([node()]) -> t().
new(Nodes) -> #{N => {1, 0} || N <- Nodes}.

-doc "Adds nodes; a node that is in already keeps its counter.".
-spec add([node()], t()) -> t().
add(Nodes, M) ->
    lists:foldl(fun(N, Acc) ->
        case Acc of
            #{N := {C, _}} when C rem 2 =:= 1 -> Acc;
            #{N := {C, _}} -> Acc#{N := {C + 1, 0}};
            _ -> Acc#{N => {1, 0}}
        end
    end, M, Nodes).

-doc "Removes nodes; `Time` (system time, seconds) is kept for `prune/2`.".
-spec remove([node()], non_neg_integer(), t()) -> t().
remove(Nodes, Time, M) ->
    lists:foldl(fun(N, Acc) ->
        case Acc of
            #{N := {C, _}} when C rem 2 =:= 1 -> Acc#{N := {C + 1, Time}};
            _ -> Acc
        end
    end, M, Nodes).

-doc "The union of two views: for each node the larger counter. Commutative, associative, idempotent.".
-spec merge(t(), t()) -> t().
merge(A, B) -> maps:merge_with(fun(_, X, Y) -> max(X, Y) end, A, B).

-doc "The members, sorted.".
-spec members(t()) -> [node()].
members(M) -> lists:sort([N || N := {C, _} <- M, C rem 2 =:= 1]).

-doc "Whether a node is a member.".
-spec is_member(node(), t()) -> boolean().
is_member(N, M) ->
    case M of
        #{N := {C, _}} -> C rem 2 =:= 1;
        _ -> false
    end.

-doc "The nodes that were members once and were removed, sorted.".
-spec removed(t()) -> [node()].
removed(M) -> lists:sort([N || N := {C, _} <- M, C rem 2 =:= 0]).

-doc "Forgets nodes removed before `Time` (system time, seconds).".
-spec prune(non_neg_integer(), t()) -> t().
prune(Time, M) -> #{N => V || N := {C, At} = V <- M, C rem 2 =:= 1 orelse At >= Time}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_membership).
-moduledoc """
Versioned membership of a group: a pure value that merges.

Every node that ever was a member has a counter: odd while it is a member, even once it was
removed. Adding and removing step it, merging takes the larger one. From that follow
the rules that a heal needs: two sides that removed each other's nodes agree that all of them
are out, removal wins over a presence that had not heard of it, and a node that was added
again after its removal is in (protocol rule 4).

A member that was away for long can be *forgotten* (rule 6): it does not count as a member and is
not removed, its counter stays. Merging prefers presence to forgetting, so a node that comes back
and says that it is a member is one again, and two sides that forgot each other become one group.

Removed and forgotten nodes keep their entry with the time at which that was, so that a removed
one that returns can be told and a forgotten one is looked for; `prune/2` drops old entries.
""".
-export([new/1, add/2, remove/3, forget/3, recall/2, merge/2, prune/2]).
-export([members/1, is_member/2, is_known/2, is_majority/2, forgotten/1, removed/1]).
-export_type([t/0]).

-doc """
Node to `{Counter, At}`. `At` is 0 for members, else the system time in seconds at which the node
was removed (even counter) or forgotten (odd counter).
""".
-type t() :: #{node() => {Counter :: pos_integer(), At :: non_neg_integer()}}.

-doc "The membership that a list of first members makes.".
-spec new([node()]) -> t().
new(Nodes) -> #{N => {1, 0} || N <- Nodes}.

-doc "Adds nodes; a node that is in already, or was forgotten, keeps its counter.".
-spec add([node()], t()) -> t().
add(Nodes, M) ->
    lists:foldl(fun(N, Acc) ->
        case Acc of
            #{N := {C, _}} when C rem 2 =:= 1 -> Acc#{N := {C, 0}};
            #{N := {C, _}} -> Acc#{N := {C + 1, 0}};
            _ -> Acc#{N => {1, 0}}
        end
    end, M, Nodes).

-doc "Removes nodes, forgotten ones too; `Time` (system time, seconds) is kept for `prune/2`.".
-spec remove([node()], non_neg_integer(), t()) -> t().
remove(Nodes, Time, M) ->
    lists:foldl(fun(N, Acc) ->
        case Acc of
            #{N := {C, _}} when C rem 2 =:= 1 -> Acc#{N := {C + 1, Time}};
            _ -> Acc
        end
    end, M, Nodes).

-doc "Forgets members; `Time` (system time, seconds) is kept for `prune/2`.".
-spec forget([node()], non_neg_integer(), t()) -> t().
forget(Nodes, Time, M) ->
    lists:foldl(fun(N, Acc) ->
        case Acc of
            #{N := {C, 0}} when C rem 2 =:= 1 -> Acc#{N := {C, max(1, Time)}};
            _ -> Acc
        end
    end, M, Nodes).

-doc "Makes a forgotten node a member again; any other node stays what it is.".
-spec recall(node(), t()) -> t().
recall(N, M) ->
    case M of
        #{N := {C, At}} when C rem 2 =:= 1, At > 0 -> M#{N := {C, 0}};
        _ -> M
    end.

-doc """
The union of two views: for each node the larger counter, and at equal counters presence before
forgetting. Commutative, associative, idempotent.
""".
-spec merge(t(), t()) -> t().
merge(A, B) -> maps:merge_with(fun(_, X, Y) -> newer(X, Y) end, A, B).

newer({C, X}, {C, Y}) when C rem 2 =:= 1, (X =:= 0 orelse Y =:= 0) -> {C, 0};
newer(X, Y) -> max(X, Y).

-doc "The members, sorted.".
-spec members(t()) -> [node()].
members(M) -> lists:sort([N || N := {C, 0} <- M, C rem 2 =:= 1]).

-doc "Whether a node is a member.".
-spec is_member(node(), t()) -> boolean().
is_member(N, M) ->
    case M of
        #{N := {C, 0}} -> C rem 2 =:= 1;
        _ -> false
    end.

-doc "Whether a node is a member, or was forgotten and may return by itself.".
-spec is_known(node(), t()) -> boolean().
is_known(N, M) ->
    case M of
        #{N := {C, _}} -> C rem 2 =:= 1;
        _ -> false
    end.

-doc "Whether the nodes (the keys) are more than half of the members.".
-spec is_majority(#{node() => term()}, t()) -> boolean().
is_majority(Nodes, M) ->
    Members = members(M),
    2 * length([N || N <- Members, is_map_key(N, Nodes)]) > length(Members).

-doc "The nodes that were members and were forgotten, sorted.".
-spec forgotten(t()) -> [node()].
forgotten(M) -> lists:sort([N || N := {C, At} <- M, C rem 2 =:= 1, At > 0]).

-doc "The nodes that were members once and were removed, sorted.".
-spec removed(t()) -> [node()].
removed(M) -> lists:sort([N || N := {C, _} <- M, C rem 2 =:= 0]).

-doc """
Drops the entries of nodes that were removed or forgotten before `Time` (system time, seconds).
""".
-spec prune(non_neg_integer(), t()) -> t().
prune(Time, M) ->
    #{N => {C, At} || N := {C, At} <- M, At >= Time orelse (C rem 2 =:= 1 andalso At =:= 0)}.

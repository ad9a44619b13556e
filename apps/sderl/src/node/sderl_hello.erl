%% SPDX-License-Identifier: Apache-2.0
-module(sderl_hello).
-moduledoc """
The decisions of a node about groups that need no process of the group: which identity a group has,
how to react to a hello of another node's group, and what to tell others about its groups.

Pure functions; `sderl_node` does what they say on a node, the simulator in a simulated one.
(Islands of free nodes have rules of their own: `m:sderl_free`.)

A group is a name and a uid (rule 1). The name alone would not do: a member that was away while its
group was deleted, and another of the same name created, would bring the old names into the new
group. A group of the launch configuration has the same uid on each node, whatever list of members
the file has there (rule 2): if the list were part of it, a new file that is rolled out node by node
would make two groups that never become one.
""".
-export([uid/2, launched/2, founded/2, greeted/5, yields/5, told/2, is_told/1, heeded/3]).
-export_type([uid/0]).

-type uid() :: binary().

-doc """
The uid of a group made by launch configuration: 16 bytes that depend on the group's name
and the cluster's string alone.

It must not depend on the list of members: while a changed list is rolled out, nodes with
the old and the new file would otherwise run two groups of one name for ever.
""".
-spec uid(Name :: term(), Cluster :: binary()) -> uid().
uid(Name, Cluster) when is_binary(Cluster) ->
    %% `deterministic` is promised within one OTP release only. Atoms, numbers, strings
    %% and tuples of them have been encoded alike by all that we support.
    erlang:md5(
        term_to_binary({sderl_uid, 1, Name, Cluster}, [{minor_version, 2}, deterministic])
    ).

-doc "The uid of a group of the launch configuration, whatever members it has there (rule 2).".
-spec launched(#{name := Group :: term(), members := term(), _ => _}, Cluster :: binary()) -> uid().
launched(#{name := Group}, Cluster) -> uid(Group, Cluster).

-doc """
The uid of a group that is made at run time, from a value that occurs only once (rule 1). It need
not be secret, but must differ from that of every other group of the name.
""".
-spec founded(Group :: term(), Unique :: term()) -> uid().
founded(Group, Unique) -> erlang:md5(term_to_binary({Group, Unique})).

-doc """
The reaction to a hello from a group `Theirs` whose membership is `Mem`, on the node `Self` that
runs the group `Own` of that name, if any, and remembers that it left `Theirs`, as `Gone` says.

`pass`: it is for the own group. `join`: this node is a member that does not run it yet, maybe one
that was forgotten (then it starts as a member: `sderl_membership:recall/2`). `again`: it was added
again after it left; what it remembers of that is over. `{tell, Why, Known}`: the group is deleted,
or this node was removed from it. `apart`: two groups of one name, which never merge. `nothing`:
this node has no part in it.
""".
-spec greeted(Own :: none | uid(), Theirs :: uid(),
              Gone :: undefined | {removed | deleted, sderl_membership:t()},
              Mem :: sderl_membership:t(), Self :: node()) ->
    pass | join | again | {tell, removed | deleted, sderl_membership:t()} | apart | nothing.
greeted(Uid, Uid, _, _, _) -> pass;
greeted(_, _, {Why, Known}, Mem, Self) ->
    case Why =:= removed
         andalso sderl_membership:is_known(Self, sderl_membership:merge(Mem, Known)) of
        true -> again;
        false -> {tell, Why, Known}
    end;
greeted(none, _, undefined, Mem, Self) ->
    case sderl_membership:is_known(Self, Mem) of
        true -> join;
        false -> nothing
    end;
greeted(_, _, undefined, _, _) -> apart.

-doc """
Whether the own group may give way to another of its name (rule 2): the own one is of the node's
configuration, and the other one runs and has this node among its members. A group that no other
node has joined does not count as running: otherwise two nodes whose files make different groups of
one name would each give up its own for the other's.
""".
-spec yields(Own :: uid(), Launched :: uid(), Mem :: sderl_membership:t(), Info :: map(),
             Self :: node()) -> boolean().
yields(Uid, Uid, Mem, #{lineage := {Counter, _}}, Self) when Counter > 0 ->
    sderl_membership:is_known(Self, Mem);
yields(_, _, _, _, _) -> false.

-doc """
The message of a node to the members of its own groups: its own groups, without those that it heard
of from others (rule 24). So a node knows the groups of its mates, and no news goes around in
circles.
""".
-spec told(Own :: [{term(), [node()]}], Heard :: [{term(), [node()]}]) -> [{term(), [node()]}].
told(Own, _Heard) -> Own.

-doc "Whether a term is a node's message about its groups.".
-spec is_told(term()) -> boolean().
is_told(List) when length(List) >= 0 ->
    lists:all(fun({_, Nodes}) when length(Nodes) >= 0 -> lists:all(fun is_atom/1, Nodes);
                 (_) -> false
              end, List);
is_told(_) -> false.

-doc """
Whether a node accepts another's message about groups: only if, by that message, the two share a
group. A node that leaves a group, or is removed with others, may have a last message under way,
which nobody would correct.
""".
-spec heeded(Self :: node(), From :: node(), [{term(), [node()]}]) -> boolean().
heeded(Self, From, List) ->
    lists:any(fun({_, Nodes}) -> lists:member(Self, Nodes) andalso lists:member(From, Nodes) end,
              List).

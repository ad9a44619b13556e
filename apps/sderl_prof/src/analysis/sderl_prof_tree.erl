%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_tree).
-moduledoc """
The tree of processes, in which siblings that are alike stand for one another: of three or more with
the same beginning and without a name, the one that ran longest is shown, and the sums of the
others. Pure. Memory is that of the groups, however many processes are in them.
""".

-export([new/0, add/3, result/1]).
-export_type([tree/0, branch/0]).

%% Siblings that are shown one by one.
-define(FEW, 2).

-record(group, {
    count = 0 :: non_neg_integer(),
    %% Of a few all, else the one that ran longest.
    shown = [] :: [{non_neg_integer(), sderl_prof_entity:entity(), sderl_prof_activity:sums()}],
    omitted = sderl_prof_activity:sums([]) :: sderl_prof_activity:sums(),
    omitted_count = 0 :: non_neg_integer()
}).
-opaque tree() :: #{{Parent :: non_neg_integer(), Entry :: term()} => #group{}}.

-doc "Siblings: those shown, and how many are left out, with their sums.".
-type branch() :: #{
    parent := non_neg_integer(),
    shown := [{sderl_prof_entity:entity(), sderl_prof_activity:sums()}],
    omitted := non_neg_integer(),
    omitted_sums := sderl_prof_activity:sums()
}.

-doc "No process yet.".
-spec new() -> tree().
new() -> #{}.

-doc "A process and what it did.".
-spec add(sderl_prof_entity:entity(), sderl_prof_activity:sums(), tree()) -> tree().
add(#{number := Number, parent := Parent, entry := Entry, name := Name} = Entity, Sums, Tree) ->
    Key = {Parent, case Name of 0 -> Entry; _ -> {named, Number} end},
    Group = maps:get(Key, Tree, #group{}),
    Tree#{Key => join({map_get(run, Sums), Entity, Sums}, Group)}.

join(One, #group{count = Count, shown = Shown} = Group) when Count < ?FEW ->
    Group#group{count = Count + 1, shown = [One | Shown]};
join(One, #group{count = Count, shown = Shown} = Group) ->
    [Most | Others] = lists:reverse(lists:keysort(1, [One | Shown])),
    #group{omitted = Omitted, omitted_count = N} = Group,
    Group#group{count = Count + 1, shown = [Most], omitted_count = N + length(Others),
                omitted = sderl_prof_activity:sums([Omitted | [Sums || {_, _, Sums} <- Others]])}.

-doc "The branches.".
-spec result(tree()) -> [branch()].
result(Tree) ->
    [#{parent => Parent, shown => [{Entity, Sums} || {_, Entity, Sums} <- Shown],
       omitted => Omitted, omitted_sums => All}
     || {Parent, _} := #group{shown = Shown, omitted_count = Omitted, omitted = All} <- Tree].

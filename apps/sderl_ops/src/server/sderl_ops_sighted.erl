%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sighted).
-moduledoc """
What steps have reported of single instances when they ended. Pure; times are those of
`m:sderl_ops_looks`.

A step that lays out or starts an instance reports its state, so the whole host, or all nodes, need
not be looked at for it. A look that began before the report shows an earlier state, so the report
stands until a later look has ended.
""".

-export([new/0, tell/4, unseen/3, over/4]).
-export_type([sighted/0, sighting/0]).

-doc "`node` is present if the step has asked the node, with the groups that the node is in.".
-type sighting() :: #{
    host := sderl_ops_desired:host_id(),
    id := sderl_ops_desired:instance_id(),
    instance := sderl_ops_observed:instance_seen(),
    node => sderl_ops_nodes:seen()
}.

-type what() ::
    {host, sderl_ops_desired:host_id(), sderl_ops_desired:instance_id()}
    | {node, sderl_ops_desired:instance_id()}.

-opaque sighted() :: #{what() => {At :: integer(), map()}}.

-doc "No reports.".
-spec new() -> sighted().
new() -> #{}.

-doc "Adds a report to the observed state, and keeps it for looks that began before.".
-spec tell(sighting(), At :: integer(), sighted(), sderl_ops_observed:observed()) ->
    {sighted(), sderl_ops_observed:observed()}.
tell(#{host := Host, id := Id, instance := Instance} = Sighting, At, Sighted,
     #{hosts := Hosts, nodes := Nodes} = Observed) ->
    Here = case Hosts of
        #{Host := #{state := up, instances := Instances} = Seen} ->
            Observed#{hosts := Hosts#{Host := Seen#{instances := Instances#{Id => Instance}}}};
        #{} ->
            Observed
    end,
    Told = Sighted#{{host, Host, Id} => {At, Instance}},
    case is_plain(Sighting, Observed) of
        true ->
            Node = maps:with([state, health], map_get(node, Sighting)),
            {Told#{{node, Id} => {At, Node}}, Here#{nodes := Nodes#{Id => Node}}};
        false ->
            {Told, Here}
    end.

-doc """
What still has to be looked at after a step that has reported. The members of a group are found by
asking all of them, so a node that is or was in a group has to be looked at with the others.
""".
-spec unseen([sderl_ops_look:what()], none | sighting(), sderl_ops_observed:observed()) ->
    [sderl_ops_look:what()].
unseen(Whats, none, _) ->
    Whats;
unseen(Whats, #{host := Host} = Sighting, #{hosts := Hosts} = Observed) ->
    Known = case Hosts of
        #{Host := #{state := up}} -> [{host, Host}];
        #{} -> []
    end,
    Plain = case is_plain(Sighting, Observed) of
        true -> [nodes];
        false -> []
    end,
    Whats -- (Known ++ Plain).

is_plain(#{id := Id, node := #{groups := In}}, #{groups := #{} = Groups} = Observed)
  when In =:= #{} ->
    Lists = maps:values(Groups) ++ maps:values(maps:get(listed, Observed, #{})),
    not lists:any(fun(Ids) -> lists:member(Id, Ids) end, Lists);
is_plain(_, _) ->
    false.

-doc "What a look saw, with the reports since it began; older reports are forgotten.".
-spec over(sderl_ops_look:what(), sderl_ops_look:seen(), Began :: integer(), sighted()) ->
    {sderl_ops_look:seen(), sighted()}.
over({host, Host}, {host, #{state := up, instances := Instances} = Seen}, Began, Sighted) ->
    Left = newer(fun({host, Of, _}) -> Of =:= Host; (_) -> false end, Began, Sighted),
    Since = #{Id => Told || {host, Of, Id} := {_, Told} <- Left, Of =:= Host},
    {{host, Seen#{instances := maps:merge(Instances, Since)}}, Left};
over(nodes, {nodes, Nodes, Groups, Listed}, Began, Sighted) ->
    Left = newer(fun({node, _}) -> true; (_) -> false end, Began, Sighted),
    Since = #{Id => Told || {node, Id} := {_, Told} <- Left},
    {{nodes, maps:merge(Nodes, Since), Groups, Listed}, Left};
over(_, Seen, _, Sighted) ->
    {Seen, Sighted}.

newer(IsOfIt, Began, Sighted) ->
    maps:filter(fun(What, {At, _}) -> At >= Began orelse not IsOfIt(What) end, Sighted).

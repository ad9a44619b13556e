%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sighted).
-moduledoc """
What steps have told of single instances when they ended. Pure; times are those of
`m:sderl_ops_looks`.

A step that lays out or starts an instance tells what is there then, so nobody has to look at the
whole host, or at all nodes, for it. A look that began before that shows how it was earlier, and
what the step told stands until a later look has ended.
""".

-export([new/0, tell/4, unseen/3, over/4]).
-export_type([sighted/0, sighting/0]).

-doc "`node` where the step has asked the node, with the groups that it says it is in.".
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

-doc "Nothing was told.".
-spec new() -> sighted().
new() -> #{}.

-doc "Puts it into what is seen, and keeps it for looks that began before.".
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
Of what has to be looked at after a step, what it has not told. Groups are put together from what
all of their members say, so a node that is in one, or was, is looked at with the others.
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

-doc "What a look saw, with what was told since it began; older things are forgotten.".
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

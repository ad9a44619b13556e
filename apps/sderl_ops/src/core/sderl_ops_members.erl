%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_members).
-moduledoc """
Which instances are to be in each group now, and when groups may be changed: not while one of their
instances starts or stops.
""".

-include("sderl_ops_view.hrl").

-export([groups/1, unfinished/1, due/3, seen_in/2, left_in/2]).
-export_type([unfinished/0]).

-doc "Groups that are not as desired, with the desired members that are up.".
-type unfinished() :: [{Name :: binary(), [sderl_ops_desired:instance_id()]}].

-doc "The groups as desired now: without instances that are leaving.".
-spec groups(sderl_ops_view:view()) -> [sderl_ops_desired:group()].
groups(View) ->
    [Group#{members := [Id || Id <- Members, stays(Id, View)]}
     || #{members := Members} = Group <- ours(View)].

%% Without groups that only nodes have which were handed back.
ours(#view{desired = #{groups := Groups}} = View) ->
    [Group || #{name := Name} = Group <- Groups,
              not is_map_key(elsewhere, Group) orelse in(Name, View) =/= []].

stays(Id, #view{memory = #{drained := Drained}} = View) ->
    not is_map_key(Id, Drained) andalso not sderl_ops_view:is_leaving(Id, View).

-doc """
The groups that are not as desired: an instance that is up is missing, or an instance is in one that
should not be.
""".
-spec unfinished(sderl_ops_view:view()) -> unfinished().
unfinished(#view{seen_in = unknown}) -> [];
unfinished(#view{seen_in = SeenIn} = View) ->
    #view{desired = #{groups := Groups}} = View,
    Names = #{Name => [] || #{name := Name} <- Groups},
    [{Name, Up} || #{name := Name, members := Members} <- ours(View),
                   Up <- [[Id || Id <- Members, stays(Id, View), sderl_ops_view:is_up(Id, View)]],
                   differs(Members, Up, maps:get(Name, SeenIn, #{}), View)
                       orelse lists:any(fun(Id) -> is_left_in(Id, Name, View) end,
                                        listed(Name, View))]
        ++ [{Name, []} || Name := In <- SeenIn, not is_map_key(Name, Names),
                          has_others(In, [], View)].

differs(Members, Up, In, View) ->
    not lists:all(fun(Id) -> is_map_key(Id, In) end, Up)
        orelse (map_size(In) > length(Up) andalso has_others(In, Members, View)).

%% Instances that are leaving do not count: they leave their groups before they stop.
has_others(In, Members, View) ->
    lists:any(fun(Id) ->
        stays(Id, View) orelse not sderl_ops_view:is_up(Id, View)
    end, maps:keys(maps:without(Members, In))).

-doc """
The groups of `Unfinished` that may be changed now, because no member has a step that runs or could
run (`Active`). An instance that waits for a host or after a failure does not hold up its groups.
""".
-spec due(unfinished(), #{sderl_ops_desired:instance_id() => term()}, sderl_ops_view:view()) ->
    unfinished().
due([], _, _) -> [];
due(Unfinished, Active, #view{desired = #{groups := Groups}, seen_in = SeenIn}) ->
    Members = #{Name => Ids || #{name := Name, members := Ids} <- Groups},
    [{Name, Up} || {Name, Up} <- Unfinished,
                   not lists:any(fun(Id) -> is_map_key(Id, Active) end,
                                 maps:get(Name, Members, [])
                                 ++ maps:keys(maps:get(Name, SeenIn, #{})))].

-doc "The groups in which an instance is seen.".
-spec seen_in(sderl_ops_desired:instance_id(), sderl_ops_view:view()) -> [Name :: binary()].
seen_in(_, #view{seen_in = unknown}) -> [];
seen_in(Id, #view{seen_in = SeenIn}) -> [Name || Name := #{Id := _} <- SeenIn].

-doc """
The groups whose members still list an instance that is gone and no longer desired. The library does
not forget it by itself.
""".
-spec left_in(sderl_ops_desired:instance_id(), sderl_ops_view:view()) -> [Name :: binary()].
left_in(Id, #view{desired = #{groups := Groups}} = View) ->
    [Name || #{name := Name} <- Groups, lists:member(Id, listed(Name, View)),
             is_left_in(Id, Name, View)].

%% An instance that was handed back since the last look stays in its groups.
listed(Name, #view{observed = Observed, memory = Memory}) ->
    [Id || Id <- maps:get(Name, maps:get(listed, Observed, #{}), []),
           not sderl_ops_released:is_released(Id, Memory)].

%% A member that stays is needed, to be asked to remove it.
is_left_in(Id, Name, #view{desired = #{instances := Instances}} = View) ->
    not is_map_key(Id, Instances)
        andalso not sderl_ops_view:is_up(Id, View)
        andalso lists:any(fun(Other) -> sderl_ops_view:stays(Other, View) end, in(Name, View)).

in(_, #view{seen_in = unknown}) -> [];
in(Name, #view{seen_in = SeenIn}) -> maps:keys(maps:get(Name, SeenIn, #{})).

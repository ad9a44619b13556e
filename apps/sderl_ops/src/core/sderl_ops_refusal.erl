%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_refusal).
-moduledoc """
What would be lost if an instance left: the last member of a group, or the last node that two groups
have in common (the last gateway of an edge). Pure.

An upgrade waits until members that are out of service are back, so only drained ones count as
missing. A drain waits for nobody: every member that is not in the group at present counts as
missing.
""".

-include("sderl_ops_view.hrl").

-export([of_upgrade/3, of_drain/2, words/2]).
-export_type([refusal/0, loss/0]).

-type refusal() :: {sderl_ops_desired:instance_id(), loss()}.
-type loss() ::
    {only_member, Group :: binary()}
    | {only_gateway, Group :: binary(), Group :: binary()}
    %% All others are drained.
    | {last_member, Group :: binary(), Drained :: [sderl_ops_desired:instance_id()]}
    | {last_gateway, Group :: binary(), Group :: binary(),
       Drained :: [sderl_ops_desired:instance_id()]}
    %% None of the others is in service, and not all of them are drained.
    | {last_in_service, Group :: binary(), Others :: [sderl_ops_desired:instance_id()]}
    | {last_gateway_in_service, Group :: binary(), Group :: binary(),
       Others :: [sderl_ops_desired:instance_id()]}.

-doc "What these groups would lose while an instance is replaced.".
-spec of_upgrade(sderl_ops_desired:instance_id(), Groups :: [binary()], sderl_ops_view:view()) ->
    [loss()].
of_upgrade(Id, Names, View) ->
    losses(Id, Names, fun(Other, _) -> not sderl_ops_view:is_aside(Other, View) end, View).

-doc "What the groups in which it is now would lose by a drain.".
-spec of_drain(sderl_ops_desired:instance_id(), sderl_ops_view:view()) -> [loss()].
of_drain(Id, #view{groups_of = GroupsOf} = View) ->
    Names = [Name || Name <- maps:get(Id, GroupsOf, []), sderl_ops_view:is_in(Id, Name, View)],
    losses(Id, Names, fun(Other, In) -> is_kept(Other, In, View) end, View).

is_kept(Id, Names, #view{memory = #{drained := Drained}} = View) ->
    not sderl_ops_view:is_leaving(Id, View)
        andalso not is_map_key(Id, Drained)
        andalso not sderl_ops_view:is_being_taken_out(Id, View)
        andalso lists:all(fun(Name) -> sderl_ops_view:is_in(Id, Name, View) end, Names).

losses(Id, Names, IsKept, #view{desired = #{groups := Groups}} = View) ->
    Others = [{Name, lists:delete(Id, Ids)} || #{name := Name, members := Ids} <- Groups,
                                               lists:member(Name, Names)],
    [member(Name, Ids, View) || {Name, Ids} <- Others, is_nobody_kept(Ids, [Name], IsKept)]
        ++ [gateway(A, B, Both, View)
            || {A, InA} <- Others, {B, InB} <- Others, A < B,
               Both <- [[Other || Other <- InA, lists:member(Other, InB)]],
               is_nobody_kept(Both, [A, B], IsKept)].

is_nobody_kept(Ids, Names, IsKept) ->
    not lists:any(fun(Id) -> IsKept(Id, Names) end, Ids).

member(Name, [], _) -> {only_member, Name};
member(Name, Others, View) ->
    case are_aside(Others, View) of
        true -> {last_member, Name, Others};
        false -> {last_in_service, Name, Others}
    end.

gateway(A, B, [], _) -> {only_gateway, A, B};
gateway(A, B, Others, View) ->
    case are_aside(Others, View) of
        true -> {last_gateway, A, B, Others};
        false -> {last_gateway_in_service, A, B, Others}
    end.

are_aside(Ids, View) -> lists:all(fun(Id) -> sderl_ops_view:is_aside(Id, View) end, Ids).

-doc "A sentence for a refusal, of what is to be replaced or is to be drained.".
-spec words(replace | drain, refusal()) -> unicode:chardata().
words(What, {Id, {only_member, Group}}) ->
    [Id, " is the only member of the group ", Group, ", which would be gone ", while(What)];
words(What, {Id, {only_gateway, A, B}}) ->
    [Id, " is the only node that is in both ", A, " and ", B, ", which would be apart ",
     while(What)];
words(What, {Id, {last_member, Group, Drained}}) ->
    [Id, " is the only member of the group ", Group, " that is not drained, which would be gone ",
     while(What), "; undrain ", choice(Drained), " first"];
words(What, {Id, {last_gateway, A, B, Drained}}) ->
    [Id, " is the only node that is in both ", A, " and ", B, " and is not drained, which would be "
     "apart ", while(What), "; undrain ", choice(Drained), " first"];
words(What, {Id, {last_in_service, Group, Others}}) ->
    [Id, " is the only member of the group ", Group, " that is in service, which would be gone ",
     while(What), "; bring ", choice(Others), " back first"];
words(What, {Id, {last_gateway_in_service, A, B, Others}}) ->
    [Id, " is the only node in service that is in both ", A, " and ", B, ", which would be apart ",
     while(What), "; bring ", choice(Others), " back first"].

while(replace) -> "while it is replaced";
while(drain) -> "until it is undrained".

choice(Ids) -> lists:join(" or ", Ids).

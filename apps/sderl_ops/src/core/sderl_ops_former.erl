%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_former).
-moduledoc "The desired state of families that were rolled back to a former revision. Pure.".

-export([effective/2, with_former/3]).

-doc """
The desired state after roll-backs: families that failed with this revision are as in the revision
before, with their count, hosts and release. The hosts that a program has made are added, as if the
file named them.
""".
-spec effective(sderl_ops_desired:desired(), sderl_ops_memory:memory()) ->
    sderl_ops_desired:desired().
effective(Desired, Memory) ->
    Present = sderl_ops_released:without(put_back(Desired, Memory), Memory),
    sderl_ops_machines:fill(Present, Memory).

put_back(#{revision := Revision, instances := Instances} = Desired, #{failed := Failed}) ->
    Former = maps:get(former, Desired, #{}),
    case [Family || Family := #{revision := Of} <- Failed, Of =:= Revision,
                    is_map_key(Family, Former)] of
        [] -> Desired;
        Families ->
            Others = #{Id => Instance || Id := #{family := Family} = Instance <- Instances,
                                         not lists:member(Family, Families)},
            All = lists:foldl(fun(Family, Acc) -> maps:merge(Acc, map_get(Family, Former)) end,
                              Others, Families),
            #{groups := Groups} = Desired,
            Desired#{instances := All,
                     groups := [Group#{members := [Id || Id <- Members, is_map_key(Id, All)]}
                                || #{members := Members} = Group <- Groups]}
    end.

%% A family that was rolled back keeps the revision of its roll-back, whatever was good since.
former_revisions(#{revision := Current}, #{good := Good, failed := Failed}) ->
    Back = #{Family => To || Family := #{revision := Of, to := To} <- Failed, Of =:= Current},
    maps:merge(#{Family => To || Family := To <- Good, To =/= Current}, Back).

-doc """
Adds to a desired state the instances of each family in its last good revision (`former`), to which
it is rolled back. `Of` gives the desired state of a former revision. Called for each new revision,
and when a service begins.
""".
-spec with_former(sderl_ops_desired:desired(), sderl_ops_memory:memory(),
                  fun((Revision :: non_neg_integer()) ->
                          {ok, sderl_ops_desired:desired()} | error)) ->
    sderl_ops_desired:desired().
with_former(Desired, Memory, Of) ->
    Revisions = former_revisions(Desired, Memory),
    Known = #{Revision => State || Revision <- lists:usort(maps:values(Revisions)),
                                   {ok, State} <- [Of(Revision)]},
    Former = #{Family => family(Family, map_get(Revision, Known))
               || Family := Revision <- Revisions, is_map_key(Revision, Known)},
    maps:fold(fun(_, State, Acc) -> with_content(State, Acc) end,
              Desired#{former => Former}, Known).

with_content(#{releases := OfReleases, settings := OfSettings},
             #{releases := Releases, settings := Settings} = Desired) ->
    Desired#{releases := maps:merge(OfReleases, Releases),
             settings := maps:merge(OfSettings, Settings)}.

family(Family, #{instances := Instances}) ->
    #{Id => Instance || Id := #{family := Of} = Instance <- Instances, Of =:= Family}.

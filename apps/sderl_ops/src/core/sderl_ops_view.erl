%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_view).
-moduledoc "What is to be beside what is seen: the questions on which each decision rests.".

-include("sderl_ops_view.hrl").

-export([new/7]).
-export([host/2, host_state/2, seen/2, target/2, is_running/2]).
-export([is_outdated/2, is_taken/2, is_leaving/2, is_aside/2, is_up/2]).
-export([is_in/3, is_in_groups/2, stays/2, serves/2]).
-export_type([view/0]).

-type view() :: #view{}.

-spec new(sderl_ops_desired:desired(), sderl_ops_observed:observed(), sderl_ops_memory:memory(),
          sderl_ops_assign:homeless(), sderl_ops_assign:places(), [sderl_ops_step:step()],
          sderl_ops_memory:time()) -> view().
new(#{groups := Groups} = Desired, #{groups := InGroups} = Observed, Memory, Homeless, Places,
    Running, Now) ->
    #view{
        desired = Desired,
        observed = Observed,
        memory = Memory,
        now = Now,
        running = #{Step => [] || Step <- Running},
        busy = #{Id => Step || Step <- Running,
                               Id <- [sderl_ops_step:instance(Step)], Id =/= undefined},
        places = Places,
        homeless = Homeless,
        groups_of = maps:groups_from_list(fun({Id, _}) -> Id end, fun({_, Name}) -> Name end,
                                          [{Id, Name} || #{name := Name, members := Ids} <- Groups,
                                                         Id <- Ids]),
        %% Instances handed back since the last look are not the service's any more.
        seen_in = case InGroups of
                      unknown -> unknown;
                      #{} ->
                          #{Name => #{Id => []
                                      || Id <- Ids, not sderl_ops_released:is_released(Id, Memory)}
                            || Name := Ids <- InGroups}
                  end
    }.

-doc "The host of an instance.".
-spec host(sderl_ops_desired:instance_id(), view()) -> sderl_ops_desired:host_id() | undefined.
host(Id, #view{memory = Memory}) -> sderl_ops_memory:host_of(Id, Memory).

-spec host_state(sderl_ops_desired:instance_id(), view()) ->
    sderl_ops_observed:host_state() | unseen.
host_state(Id, #view{observed = Observed} = View) ->
    sderl_ops_observed:host_state(host(Id, View), Observed).

-doc "What is seen of it there, if that host answers.".
-spec seen(sderl_ops_desired:instance_id(), view()) ->
    sderl_ops_observed:instance_seen() | undefined.
seen(Id, #view{observed = Observed} = View) ->
    case host_state(Id, View) of
        up -> sderl_ops_observed:instance_at(host(Id, View), Id, Observed);
        _ -> undefined
    end.

-doc "What is to be laid out for it.".
-spec target(sderl_ops_desired:instance_id(), view()) -> sderl_ops_observed:layout() | undefined.
target(Id, #view{desired = #{instances := Instances}}) ->
    case Instances of
        #{Id := #{release := Release, settings := Settings}} -> {Release, Settings};
        #{} -> undefined
    end.

-spec is_running(sderl_ops_desired:instance_id(), view()) -> boolean().
is_running(Id, View) ->
    case seen(Id, View) of
        #{state := running} -> true;
        _ -> false
    end.

-doc "Whether it runs, and its node answers.".
-spec is_up(sderl_ops_desired:instance_id(), view()) -> boolean().
is_up(Id, #view{observed = Observed} = View) ->
    is_running(Id, View) andalso sderl_ops_observed:is_up(Id, Observed).

-doc "Whether it lies there, and is to be there otherwise, or elsewhere.".
-spec is_outdated(sderl_ops_desired:instance_id(), view()) -> boolean().
is_outdated(Id, #view{desired = #{instances := Instances}} = View) ->
    case {Instances, seen(Id, View)} of
        {#{Id := #{release := Release, settings := Settings, candidates := Candidates}},
         #{release := HasRelease, settings := HasSettings}} ->
            Release =/= HasRelease orelse Settings =/= HasSettings
                orelse not lists:member(host(Id, View), Candidates);
        _ -> false
    end.

-doc "Whether its turn in an upgrade has come.".
-spec is_taken(sderl_ops_desired:instance_id(), view()) -> boolean().
is_taken(Id, #view{desired = #{instances := Instances}, memory = #{upgrades := Upgrades}}) ->
    case Instances of
        #{Id := #{family := Family}} ->
            case Upgrades of
                #{Family := #{taken := #{Id := _}}} -> true;
                #{} -> false
            end;
        #{} -> false
    end.

-doc "Whether it is not to run, or not as it is.".
-spec is_leaving(sderl_ops_desired:instance_id(), view()) -> boolean().
is_leaving(Id, #view{desired = #{instances := Instances}} = View) ->
    not is_map_key(Id, Instances)
        orelse is_aside(Id, View)
        orelse (is_taken(Id, View) andalso is_outdated(Id, View)).

-doc "Whether an operator has taken it out of service.".
-spec is_aside(sderl_ops_desired:instance_id(), view()) -> boolean().
is_aside(Id, #view{memory = Memory}) -> sderl_ops_memory:is_aside(Id, Memory).

-doc "Whether it is in service: it is up and stays so, and is in the groups where it is to be.".
-spec serves(sderl_ops_desired:instance_id(), view()) -> boolean().
serves(Id, View) -> stays(Id, View) andalso is_in_groups(Id, View).

-doc "Whether it is up and stays so.".
-spec stays(sderl_ops_desired:instance_id(), view()) -> boolean().
stays(Id, #view{memory = #{drained := Drained}} = View) ->
    is_up(Id, View) andalso not is_map_key(Id, Drained) andalso not is_leaving(Id, View).

-doc "Whether it is in all groups in which it is to be, as far as that is known.".
-spec is_in_groups(sderl_ops_desired:instance_id(), view()) -> boolean().
is_in_groups(Id, #view{groups_of = GroupsOf} = View) ->
    lists:all(fun(Name) -> is_in(Id, Name, View) end, maps:get(Id, GroupsOf, [])).

-doc "Whether it is in a group, as far as that is known.".
-spec is_in(sderl_ops_desired:instance_id(), Name :: binary(), view()) -> boolean().
is_in(_, _, #view{seen_in = unknown}) -> true;
is_in(Id, Name, #view{seen_in = SeenIn}) ->
    case SeenIn of
        #{Name := #{Id := _}} -> true;
        #{} -> false
    end.

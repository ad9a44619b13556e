%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_view).
-moduledoc "The desired and the observed state together, with the questions that decisions ask.".

-include("sderl_ops_view.hrl").

-export([new/7]).
-export([host/2, host_state/2, seen/2, target/2, is_running/2]).
-export([is_outdated/2, is_taken/2, is_leaving/2, is_aside/2, is_being_taken_out/2, is_up/2]).
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
        %% Without instances that were handed back since the last look.
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

-doc "An instance as seen on its host, if that answers.".
-spec seen(sderl_ops_desired:instance_id(), view()) ->
    sderl_ops_observed:instance_seen() | undefined.
seen(Id, #view{observed = Observed} = View) ->
    case host_state(Id, View) of
        up -> sderl_ops_observed:instance_at(host(Id, View), Id, Observed);
        _ -> undefined
    end.

-doc "The release and settings that it is to have.".
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

-doc "Whether it is laid out, and its release, settings or host is not the desired one.".
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

-doc "Whether it is to stop: it is not desired, drained, or about to be replaced.".
-spec is_leaving(sderl_ops_desired:instance_id(), view()) -> boolean().
is_leaving(Id, #view{desired = #{instances := Instances}} = View) ->
    not is_map_key(Id, Instances)
        orelse is_aside(Id, View)
        orelse (is_taken(Id, View) andalso is_outdated(Id, View)).

-doc "Whether an operator has taken it out of service.".
-spec is_aside(sderl_ops_desired:instance_id(), view()) -> boolean().
is_aside(Id, #view{memory = Memory}) -> sderl_ops_memory:is_aside(Id, Memory).

-doc "Whether it is in service: it is up, stays up, and is in its groups.".
-spec serves(sderl_ops_desired:instance_id(), view()) -> boolean().
serves(Id, View) -> stays(Id, View) andalso is_in_groups(Id, View).

-doc "Whether it is up and is not about to stop.".
-spec stays(sderl_ops_desired:instance_id(), view()) -> boolean().
stays(Id, #view{memory = #{drained := Drained}} = View) ->
    is_up(Id, View) andalso not is_map_key(Id, Drained) andalso not is_leaving(Id, View)
        andalso not is_being_taken_out(Id, View).

-doc "Whether a step that takes it out of service is under way, whatever is desired since.".
-spec is_being_taken_out(sderl_ops_desired:instance_id(), view()) -> boolean().
is_being_taken_out(Id, #view{busy = Busy, memory = #{begun := Begun}}) ->
    is_map_key({drain, Id}, Begun)
        orelse case Busy of
                   #{Id := {Kind, _}} -> Kind =:= drain orelse Kind =:= stop;
                   #{} -> false
               end.

-doc "Whether it is in all its groups, as far as that is known.".
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

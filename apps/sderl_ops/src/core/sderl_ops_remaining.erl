%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_remaining).
-moduledoc """
Estimates how many steps are left, by a look at each instance, for a progress bar whose total does
not grow while it is watched. Failures and roll-backs add steps. Pure.
""".

-export([count/3]).

-doc "The steps that are left, before any of them has begun.".
-spec count(sderl_ops_desired:desired(), sderl_ops_observed:observed(),
            sderl_ops_memory:memory()) -> non_neg_integer().
count(Desired, #{hosts := Hosts} = Observed, Memory) ->
    Effective = sderl_ops_former:effective(Desired, Memory),
    #{instances := Instances, groups := Groups} = Effective,
    Grouped = #{Id => [] || #{members := Members} <- Groups, Id <- Members},
    AtHome = [at_home(Id, Instance, Grouped, Observed, Memory) || Id := Instance <- Instances],
    LeftOver = [left_over(Id, Host, Seen, Instances, Memory)
                || Host := #{state := up, instances := There} <- Hosts, Id := Seen <- There],
    Others = [fetches(Effective, Observed, Memory), groups(Effective, Observed, Memory)],
    lists:foldl(fun erlang:'+'/2, 0, AtHome ++ LeftOver ++ Others).

%% The steps for an instance on its assigned host.
at_home(Id, #{release := Release, settings := Settings}, Grouped, Observed, Memory) ->
    Seen = sderl_ops_observed:instance_at(sderl_ops_memory:host_of(Id, Memory), Id, Observed),
    case {sderl_ops_memory:is_aside(Id, Memory), Seen} of
        {true, #{state := running}} -> steps_to_stop(Id, Observed);
        {true, _} -> 0;
        {false, undefined} -> 2;
        {false, #{state := State, release := Release, settings := Settings}} ->
            case State of running -> 0; _ -> 1 end;
        %% It leaves its groups, and is put into them again.
        {false, #{state := running}} when is_map_key(Id, Grouped) ->
            steps_to_stop(Id, Observed) + 3;
        {false, #{state := running}} -> steps_to_stop(Id, Observed) + 2;
        {false, _} -> 2
    end.

%% A node that does not answer cannot leave its groups first.
steps_to_stop(Id, Observed) ->
    case sderl_ops_observed:is_up(Id, Observed) of
        true -> 2;
        false -> 1
    end.

%% The steps for an instance that is not desired, or not on this host.
left_over(Id, Host, #{state := State}, Instances, Memory) ->
    case {Instances, sderl_ops_memory:host_of(Id, Memory)} of
        {#{Id := _}, Host} -> 0;
        {#{Id := _}, _} -> 1;
        {_, _} when State =:= running -> 3;
        {_, _} -> 1
    end.

fetches(#{instances := Instances}, Observed, Memory) ->
    length(lists:usort([{Host, Release}
                        || Id := #{release := Release} <- Instances,
                           not sderl_ops_memory:is_aside(Id, Memory),
                           Host <- [sderl_ops_memory:host_of(Id, Memory)],
                           Host =/= undefined,
                           not sderl_ops_observed:has_release(Host, Release, Observed)])).

%% One step `groups` changes all groups.
groups(#{groups := Groups}, #{groups := Seen}, Memory) ->
    Is = case Seen of
             unknown -> #{};
             #{} -> #{Name => lists:sort(Ids) || Name := [_ | _] = Ids <- Seen}
         end,
    Wanted = #{Name => lists:sort(Ids)
               || #{name := Name, members := Members} <- Groups,
                  [_ | _] = Ids <- [[Id || Id <- Members,
                                           not sderl_ops_memory:is_aside(Id, Memory)]]},
    case Is of
        Wanted -> 0;
        _ -> 1
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_check).
-moduledoc """
Checks what must never happen in `sderl_ops_world`, and what must hold in the end, by the state of
the world itself and not by what the service knows of it.
""".

-include("sderl_ops_world.hrl").

-export([begin_step/2, drain/2, made/1, watch/2, up/1, final/1]).

%% How long the service may not know the effect of a step of an earlier service, or that a host is
%% back.
-define(UNSEEN_MS, 40_000).

-doc "Checks a step that begins.".
-spec begin_step(sderl_ops_step:step(), #world{}) -> #world{}.
begin_step(_, #world{options = #{check := false}} = World) -> World;
begin_step(Step, World) ->
    Id = sderl_ops_step:instance(Step),
    Checked = case is_orphan(Id, World) of
        true -> World;
        false -> lists:foldl(fun problem/2, World, harm(Step, World))
    end,
    mark_out(Step, Id, Checked).

is_orphan(Id, #world{orphans = Orphans, now = Now}) ->
    lists:any(fun(What) -> Now - maps:get(What, Orphans, -?UNSEEN_MS) < ?UNSEEN_MS end,
              [Id, groups]).

-doc "Checks a drain that is allowed to an operator.".
-spec drain(Id :: binary(), #world{}) -> #world{}.
drain(Id, #world{service = #service{memory = Memory}} = World) ->
    case sderl_ops_memory:is_aside(Id, Memory) of
        true -> World;
        false -> lists:foldl(fun problem/2, World, loses_last({drain, Id}, Id, World))
    end.

problem(Problem, #world{problems = Problems, now = Now} = World) ->
    World#world{problems = [{Now, Problem} | Problems]}.

-doc "Checks that there are never more than twice as many made hosts as wanted.".
-spec made(#world{}) -> #world{}.
made(#world{made = Made} = World) ->
    Most = maps:get(most_made, World#world.options, 8),
    case map_size(Made) > Most of
        true -> problem({too_many_made, maps:keys(Made)}, World);
        false -> World
    end.

effective(#world{service = #service{desired = Desired, memory = Memory}}) ->
    sderl_ops_former:effective(Desired, Memory).

here(Id, #world{service = #service{memory = Memory}, hosts = Hosts} = World) ->
    Name = sderl_ops_memory:host_of(Id, Memory),
    case Hosts of
        #{Name := #host{state = up, instances = #{Id := Instance}}} -> Instance;
        #{Name := #host{state = up, nodes = #{Id := _}}} -> found(Id, effective(World), Memory);
        #{} -> none
    end.

%% A node that ran before, as the instance that it counts as.
found(Id, #{instances := Instances}, Memory) ->
    case {Instances, sderl_ops_memory:adopted(Memory)} of
        {#{Id := #{as := As, release := Release, settings := Settings}}, #{Id := #{as := As}}} ->
            #{state => running, release => Release, settings => Settings};
        _ -> #{state => running, release => ~"other", settings => ~"other"}
    end.

harm({start, Id} = Step, World) ->
    [{running_already, Step} || #{state := running} <- [here(Id, World)]]
        ++ [{runs_elsewhere, Step, Other} || Other <- elsewhere(Id, World)]
        ++ [{start_of_undesired, Step}
            || #{instances := Instances} <- [effective(World)], not is_map_key(Id, Instances)]
        ++ repeated(Step, World);
harm({lay_out, Id} = Step, World) ->
    [{running_at_the_time, Step} || #{state := running} <- [here(Id, World)]]
        ++ repeated(Step, World);
harm({remove, Host, Id} = Step, #world{service = #service{memory = Memory}} = World) ->
    [{desired_there, Step} || sderl_ops_memory:host_of(Id, Memory) =:= Host,
                              is_as_desired(Id, Host, World)]
        ++ repeated(Step, World);
harm({Kind, Id} = Step, #world{service = #service{memory = Memory}} = World)
  when Kind =:= drain; Kind =:= stop ->
    Host = sderl_ops_memory:host_of(Id, Memory),
    [{as_desired_already, Step} || not sderl_ops_memory:is_aside(Id, Memory),
                                   is_as_desired(Id, Host, World)]
        ++ out_of_service(Step, Id, World)
        ++ repeated(Step, World);
harm({delete, Host} = Step, #world{hosts = Hosts, service = Service} = World) ->
    #service{memory = #{assigned := Assigned}} = Service,
    [{assigned_there, Step, Id} || Id := Of <- Assigned, Of =:= Host]
        ++ [{runs_there, Step, Id}
            || #{Host := #host{state = up, nodes = Nodes}} <- [Hosts],
               Id := _ <- Nodes, not is_map_key(Id, up(World#world{hosts =
                                                        maps:remove(Host, Hosts)})),
               is_map_key(Id, map_get(instances, effective(World))),
               (map_get(Host, Hosts))#host.since + ?UNSEEN_MS < World#world.now]
        ++ repeated(Step, World);
harm({drop_release, Name, Sha} = Step, #world{hosts = Hosts} = World) ->
    #{Name := #host{instances = Instances}} = Hosts,
    [{release_in_use, Step} || #{release := Used} <- maps:values(Instances), Used =:= Sha]
        ++ repeated(Step, World);
harm(Step, World) ->
    repeated(Step, World).

repeated(Step, #world{service = #service{runs = Runs}}) ->
    [{runs_already, Step} || #run{step = Same} <- maps:values(Runs), Same =:= Step].

is_as_desired(Id, Host, World) ->
    case {effective(World), here(Id, World)} of
        {#{instances := #{Id := #{release := Release, settings := Settings,
                                  candidates := Candidates}}},
         #{state := running, release := Release, settings := Settings}} ->
            lists:member(Host, Candidates);
        _ -> false
    end.

elsewhere(Id, #world{hosts = Hosts, now = Now, service = #service{memory = Memory}}) ->
    Here = sderl_ops_memory:host_of(Id, Memory),
    [Name || Name := #host{state = up, since = Since, instances = #{Id := #{state := running}}}
                 <- Hosts,
             Name =/= Here, Now - Since > ?UNSEEN_MS].

%% ---------------------------------------------------------------- out of service by steps

out_of_service(Step, Id, #world{out = Out, groups = InGroups} = World) ->
    #world{service = #service{memory = Memory}} = World,
    #{instances := Instances, groups := Groups, upgrade := #{batch := Batch}} = effective(World),
    Others = [Other || Other := out <- Out, Other =/= Id, is_counted(Other, Instances, World)],
    case is_map_key(Id, Out) orelse not is_map_key(Id, Instances)
        orelse sderl_ops_memory:is_aside(Id, Memory) orelse not is_map_key(Id, up(World)) of
        true -> [];
        false ->
            [{more_than_batch, Step, Others} || length(Others) >= Batch]
                ++ [{group_loses_another, Step, Name, Lost}
                    || #{name := Name, members := Members} <- Groups,
                       lists:member(Id, Members),
                       lists:member(Id, maps:get(Name, InGroups, [])),
                       [_ | _] = Lost <- [[Other || Other <- Members, Other =/= Id,
                                                    is_lost(Other, World)]]]
                ++ case effective(World) of
                       #{upgrade := #{force := true}} -> [];
                       #{} -> loses_last(Step, Id, World)
                   end
    end.

%% Groups and edges of which all other members are drained. The service has seen that this instance
%% is in them.
loses_last(Step, Id, #world{groups = InGroups, service = Service} = World) ->
    #service{memory = Memory, observed = #{groups := Seen}} = Service,
    #{groups := Groups} = effective(World),
    Others = [{Name, [Other || Other <- Members, Other =/= Id,
                               not sderl_ops_memory:is_aside(Other, Memory)]}
              || #{name := Name, members := Members} <- Groups, lists:member(Id, Members),
                 lists:member(Id, maps:get(Name, InGroups, [])),
                 Seen =:= unknown orelse lists:member(Id, maps:get(Name, Seen, []))],
    [{group_loses_its_last, Step, Name} || {Name, []} <- Others]
        ++ [{edge_loses_its_last, Step, A, B}
            || {A, InA} <- Others, {B, InB} <- Others, A < B,
               not lists:any(fun(Other) -> lists:member(Other, InB) end, InA)].

%% An instance whose host failed, or that was given up, is no longer out because of a step.
is_counted(Id, Instances, #world{service = Service, hosts = Hosts}) ->
    #service{memory = Memory, observed = Observed} = Service,
    Host = sderl_ops_memory:host_of(Id, Memory),
    is_map_key(Id, Instances)
        andalso not sderl_ops_memory:is_aside(Id, Memory)
        andalso sderl_ops_observed:host_state(Host, Observed) =:= up
        andalso case Hosts of
                    #{Host := #host{state = up}} -> true;
                    #{} -> false
                end
        andalso not lists:any(fun({Step, _}) -> sderl_ops_step:instance(Step) =:= Id end,
                              sderl_ops_memory:quarantined(Memory)).

%% One that an operator has drained counts until it is down.
is_lost(Id, #world{out = Out, service = #service{memory = Memory}} = World) ->
    IsOut = is_seen_out(Id, World),
    case sderl_ops_memory:is_aside(Id, Memory) of
        true -> not IsOut;
        false -> IsOut orelse is_map_key(Id, Out)
    end.

%% The service itself has seen that it does not run.
is_seen_out(Id, #world{service = #service{observed = Seen, memory = Memory}} = World) ->
    Observed = sderl_ops_adopted:sight(effective(World), Seen, Memory),
    case sderl_ops_observed:instance_at(sderl_ops_memory:host_of(Id, Memory), Id, Observed) of
        #{state := running} -> false;
        _ -> true
    end.

%% Drained instances do not count.
mark_out({Kind, _}, Id, #world{out = Out, service = #service{memory = Memory}} = World)
  when Kind =:= drain; Kind =:= stop ->
    #{instances := Instances} = effective(World),
    case sderl_ops_memory:is_aside(Id, Memory) orelse not is_map_key(Id, Instances) of
        true -> World;
        false -> World#world{out = Out#{Id => out}}
    end;
mark_out(_, _, World) ->
    World.

-doc """
After each event: an instance that is up again is `back` until it is in its groups, and then no
longer out.
""".
-spec watch(term(), #world{}) -> #world{}.
watch(_, #world{out = Out} = World) when Out =:= #{} -> World;
watch(_, #world{options = #{check := false}} = World) -> World;
watch(_, #world{out = Out, service = Service, groups = InGroups} = World) ->
    #service{memory = #{drained := Drained}, runs = Runs} = Service,
    #{groups := Groups} = effective(World),
    Leaving = [Id || _ := #run{step = {Kind, Id}} <- Runs, Kind =:= drain orelse Kind =:= stop],
    Up = maps:without(Leaving ++ maps:keys(Drained), up(World)),
    Back = maps:map(fun(Id, State) ->
        case Up of
            #{Id := _} -> back;
            #{} -> State
        end
    end, Out),
    World#world{out = maps:filter(fun(Id, State) ->
        State =:= out orelse not is_in_groups(Id, Groups, InGroups)
    end, Back)}.

is_in_groups(Id, Groups, InGroups) ->
    lists:all(fun(#{name := Name, members := Members}) ->
        not lists:member(Id, Members) orelse lists:member(Id, maps:get(Name, InGroups, []))
    end, Groups).

-doc "Instances that run on hosts that are up.".
-spec up(#world{}) -> #{binary() => []}.
up(#world{hosts = Hosts}) ->
    #{Id => [] || _ := #host{state = up, nodes = Nodes} <- Hosts, Id := _ <- Nodes}.

%% ---------------------------------------------------------------- the end

-doc "The differences between the world and the desired state.".
-spec final(#world{}) -> [term()].
final(#world{hosts = Hosts, groups = InGroups, problems = Problems} = World) ->
    #{instances := Instances, groups := Groups, releases := Releases} = effective(World),
    #world{service = #service{memory = #{aside := Aside}}} = World,
    Up = up(World),
    IsUp = fun(Id) -> is_map_key(Id, Up) end,
    #world{service = #service{memory = Memory}} = World,
    Places = [{Id, Name, Instance} || Name := #host{state = up, instances = There} <- Hosts,
                                      Id := Instance <- There]
        ++ [{Id, Name, found(Id, effective(World), Memory)}
            || Name := #host{state = up, instances = There, nodes = Nodes} <- Hosts,
               Id := _ <- Nodes, not is_map_key(Id, There)],
    Problems
        ++ [{not_once, Id, [Name || {Of, Name, _} <- Places, Of =:= Id]}
            || Id := Instance <- Instances, not is_map_key(Id, Aside),
               length([Name || {Of, Name, Seen} <- Places, Of =:= Id,
                               is_right(Seen, Name, Instance)]) =/= 1]
        ++ [{not_desired, Id, Name} || {Id, Name, _} <- Places, not is_map_key(Id, Instances),
                                       was_desired(Id, World),
                                       not sderl_ops_released:is_released(Id, Memory)]
        ++ [{twice, Id} || {Id, _} <- duplicates([Id || {Id, _, _} <- Places])]
        ++ [{group, Name, maps:get(Name, InGroups, [])}
            || #{name := Name, members := Members} <- Groups,
               lists:sort(Members -- maps:keys(Aside)) =/= maps:get(Name, InGroups, [])]
        ++ [{group_not_desired, Name}
            || Name := [_ | _] <- maps:filter(fun(_, Ids) -> lists:any(IsUp, Ids) end, InGroups),
               not lists:any(fun(#{name := Of}) -> Of =:= Name end, Groups)]
        ++ [{made, Domain, Of}
            || Domain := #{hosts := Count} <- sderl_ops_machines:pools(effective(World)),
               Of <- [[Id || Id := _ <- World#world.made,
                             element(1, sderl_ops_machines:split(Id)) =:=
                                 <<"cloud/", Domain/binary>>]],
               length(Of) =/= Count]
        ++ [{made_for_nothing, maps:keys(World#world.made)}
            || sderl_ops_machines:pools(effective(World)) =:= #{}, World#world.made =/= #{}]
        ++ [{release, Name, Sha} || Name := #host{state = up, releases = There} <- Hosts,
                                    Sha <- There, not is_map_key(Sha, Releases)].

%% A node that no revision has named is none of the service's.
was_desired(Id, #world{revisions = Revisions}) ->
    lists:any(fun(#{instances := Instances}) -> is_map_key(Id, Instances) end,
              maps:values(Revisions)).

is_right(#{state := running, release := Release, settings := Settings}, Name,
         #{release := Release, settings := Settings, candidates := Candidates}) ->
    lists:member(Name, Candidates);
is_right(_, _, _) -> false.

duplicates(List) ->
    maps:to_list(maps:filter(fun(_, Same) -> length(Same) > 1 end,
                             maps:groups_from_list(fun(Item) -> Item end, List))).

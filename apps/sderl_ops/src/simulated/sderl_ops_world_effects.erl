%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_effects).
-moduledoc "The effects of steps and of failures in a simulated world (`m:sderl_ops_world`).".

-include("sderl_ops_world.hrl").

-export([subject/1, effect/3, take_effect/3, change_node/4, exits/3, put_host/3]).

-import(sderl_ops_world_events, [later/3, roll/2]).

-doc "What a step changes.".
-spec subject(sderl_ops_step:step()) -> binary() | groups | undefined.
subject(groups) -> groups;
subject({Kind, Host}) when Kind =:= create; Kind =:= delete -> Host;
subject(Step) -> sderl_ops_step:instance(Step).

-doc "The effect of a step that begins now.".
-spec effect(sderl_ops_step:step(), Host :: binary() | undefined, #world{}) -> term().
effect({lay_out, Id}, _, #world{service = #service{desired = Desired, memory = Memory}}) ->
    case sderl_ops_reconcile:wanted(Id, Desired, Memory) of
        {#{release := Release, settings := Settings}, _} -> {lay_out, Id, Release, Settings};
        undefined -> none
    end;
effect(groups, _, #world{service = Service}) ->
    #service{desired = Desired, observed = Observed, memory = Memory} = Service,
    {groups, sderl_ops_reconcile:groups(Desired, Observed, Memory)};
effect(Step, _, _) -> Step.

-doc "A step has its effect on the world.".
-spec take_effect(#run{}, Effect :: term(), #world{}) -> #world{}.
take_effect(#run{incarnation = Old}, {create, Id},
            #world{service = #service{incarnation = Now}, stored = #{machines := Known}} = World)
  when Old =/= Now, not is_map_key(Id, Known) ->
    World;
%% A giver that has died in the middle gives no more.
take_effect(#run{from = Giver} = Run, Effect, #world{hosts = Hosts} = World) ->
    case Hosts of
        #{Giver := #host{state = State}} when State =/= up -> World;
        #{} -> take_effect_of(Run, Effect, World)
    end.

take_effect_of(#run{incarnation = Incarnation, step = Step} = Run, Effect, World0) ->
    #world{service = #service{incarnation = Now}, orphans = Orphans, now = At} = World0,
    World = case Incarnation of
        Now -> World0;
        _ -> World0#world{orphans = Orphans#{subject(Step) => At}}
    end,
    change(Effect, Run#run.host, World).

change({groups, Groups}, _, World) ->
    Up = up(World),
    lists:foldl(fun(Group, W) -> make_group(Group, Up, W) end, drop_groups(Groups, World), Groups);
change(none, _, World) ->
    World;
change({create, Id}, _, #world{hosts = Hosts, made = Made} = World)
  when not is_map_key(Id, Made) ->
    sderl_ops_world_check:made(World#world{
        hosts = Hosts#{Id => #host{since = World#world.now}}, made = Made#{Id => []}});
change({create, _}, _, World) ->
    World;
change({delete, Id}, _, #world{hosts = Hosts, made = Made} = World) ->
    #host{nodes = Nodes} = maps:get(Id, Hosts, #host{}),
    Left = World#world{hosts = maps:remove(Id, Hosts), made = maps:remove(Id, Made)},
    lists:foldl(fun lose/2, Left, maps:keys(Nodes));
change(Effect, Name, #world{hosts = Hosts} = World) ->
    case Hosts of
        #{Name := #host{state = up} = Host} ->
            case change_host(Effect, Host) of
                Host -> change_world(Effect, Name, unchanged, World);
                After ->
                    change_world(Effect, Name, changed, World#world{hosts = Hosts#{Name := After}})
            end;
        #{} -> World
    end.

change_host({fetch, _, Sha}, #host{releases = Releases} = Host) ->
    Host#host{releases = lists:usort([Sha | Releases])};
change_host({drop_release, _, Sha}, #host{releases = Releases} = Host) ->
    Host#host{releases = lists:delete(Sha, Releases)};
change_host({lay_out, Id, Release, Settings}, #host{instances = Instances} = Host) ->
    State = case Instances of
        #{Id := #{state := running}} -> running;
        #{} -> laid_out
    end,
    Host#host{instances = Instances#{Id => #{state => State, release => Release,
                                             settings => Settings}}};
change_host({start, Id}, #host{instances = Instances, nodes = Nodes} = Host) ->
    case Instances of
        #{Id := #{state := running}} -> Host;
        #{Id := Instance} ->
            Host#host{instances = Instances#{Id := Instance#{state := running}},
                      nodes = Nodes#{Id => #{state => up, health => unknown}}};
        #{} -> Host
    end;
change_host({stop, Id}, #host{instances = Instances, nodes = Nodes} = Host) ->
    case Instances of
        #{Id := Instance} ->
            Host#host{instances = Instances#{Id := Instance#{state := laid_out}},
                      nodes = maps:remove(Id, Nodes)};
        #{} -> Host#host{nodes = maps:remove(Id, Nodes)}
    end;
change_host({remove, _, Id}, #host{instances = Instances} = Host)
  when not is_map_key(Id, Instances) ->
    Host;
change_host({remove, _, Id}, #host{instances = Instances, nodes = Nodes} = Host) ->
    Host#host{instances = maps:remove(Id, Instances), nodes = maps:remove(Id, Nodes)};
change_host({drain, _}, Host) ->
    Host.

%% A node that starts is in no group.
change_world({start, Id}, Name, changed, World0) ->
    #world{hosts = Hosts, options = #{bad := Bad}} = World = leave_groups(Id, World0),
    #{Name := #host{instances = #{Id := #{release := Release}}}} = Hosts,
    {Ms, Next} = roll(2_000, World),
    case Bad of
        #{Release := exits} -> later(Ms, {exits, Name, Id}, Next);
        #{Release := sick} -> later(Ms, {healthy, Name, Id, {problems, [~"sick"]}}, Next);
        #{} -> later(Ms, {healthy, Name, Id, ok}, Next)
    end;
change_world({Kind, Id}, _, _, World) when Kind =:= drain; Kind =:= stop -> leave_groups(Id, World);
change_world({remove, _, Id}, _, changed, World) ->
    case up(World) of
        #{Id := _} -> World;
        #{} -> leave_groups(Id, World)
    end;
change_world(_, _, _, World) -> World.

leave_groups(Id, #world{groups = Groups} = World) ->
    World#world{groups = #{Name => lists:delete(Id, Ids) || Name := Ids <- Groups}}.

up(World) -> sderl_ops_world_check:up(World).

drop_groups(Wanted, #world{groups = Groups} = World) ->
    Names = [Name || #{name := Name} <- Wanted],
    World#world{groups = maps:with(Names, Groups)}.

%% Members that are up enter the group, and others leave it.
make_group(#{name := Name, members := Members}, Up, #world{groups = Groups} = World) ->
    Wanted = #{Id => [] || Id <- Members},
    Before = [Id || Id <- maps:get(Name, Groups, []), is_map_key(Id, Wanted)],
    New = [Id || Id <- Members, is_map_key(Id, Up)],
    World#world{groups = Groups#{Name => lists:usort(Before ++ New)}}.

-doc "Sets the health of a node.".
-spec change_node(Host :: binary(), Id :: binary(), Health :: term(), #world{}) -> #world{}.
change_node(Name, Id, Health, #world{hosts = Hosts} = World) ->
    case Hosts of
        #{Name := #host{nodes = #{Id := Node} = Nodes} = Host} ->
            Changed = Host#host{nodes = Nodes#{Id := Node#{health := Health}}},
            World#world{hosts = Hosts#{Name := Changed}};
        #{} -> World
    end.

-doc "An instance ends by itself.".
-spec exits(Host :: binary(), Id :: binary(), #world{}) -> #world{}.
exits(Name, Id, #world{hosts = Hosts} = World) ->
    case Hosts of
        #{Name := #host{instances = #{Id := #{state := running} = Instance} = Instances,
                        nodes = Nodes} = Host} ->
            Changed = Host#host{instances = Instances#{Id := Instance#{state := exited}},
                                nodes = maps:remove(Id, Nodes)},
            lose(Id, World#world{hosts = Hosts#{Name := Changed}});
        #{Name := #host{instances = Instances, nodes = #{Id := _} = Nodes} = Host}
          when not is_map_key(Id, Instances) ->
            Changed = Host#host{nodes = maps:remove(Id, Nodes)},
            lose(Id, World#world{hosts = Hosts#{Name := Changed}});
        #{} -> World
    end.

%% It is no longer out of service because of a step.
lose(Id, #world{out = Out} = World) ->
    leave_groups(Id, World#world{out = maps:remove(Id, Out)}).

-doc "A host that fails loses what runs on it; one that hangs does not. Either comes back.".
-spec put_host(Host :: binary(), up | down | hung | gone, #world{}) -> #world{}.
put_host(Name, _, #world{hosts = Hosts} = World) when not is_map_key(Name, Hosts) ->
    World;
put_host(Name, State, #world{hosts = Hosts, now = Now} = World) ->
    #{Name := Host} = Hosts,
    Changed = case {Host#host.state, State} of
        {up, down} ->
            Exited = #{Id => exited(Instance) || Id := Instance <- Host#host.instances},
            Host#host{state = down, instances = Exited, nodes = #{}};
        {up, _} -> Host#host{state = State};
        {_, up} -> Host#host{state = up, since = Now};
        {Is, _} -> Host#host{state = Is}
    end,
    Lost = maps:keys(maps:without(maps:keys(Changed#host.nodes), Host#host.nodes)),
    After = lists:foldl(fun lose/2, World#world{hosts = Hosts#{Name := Changed}}, Lost),
    case World#world.faults andalso State =/= up of
        true ->
            {Long, Next} = roll(4, After),
            {Ms, Last} = roll(case Long of 1 -> 60_000; _ -> 8_000 end, Next),
            later(Ms, {host, Name, up}, Last);
        false -> After
    end.

exited(#{state := running} = Instance) -> Instance#{state := exited};
exited(Instance) -> Instance.

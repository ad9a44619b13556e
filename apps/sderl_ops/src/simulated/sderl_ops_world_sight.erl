%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_sight).
-moduledoc "Looks at a simulated world (`m:sderl_ops_world`), and the observed state from them.".

-include("sderl_ops_world.hrl").

-export([sight/3, see/4]).

-doc """
How long a look takes (`Ms`, or more at a host that hangs), and what it shows. Each node says in
which groups it is. A program that lists its hosts fails now and then.
""".
-spec sight(What :: binary() | alarms | {provider, binary()}, #world{}, Ms :: integer()) ->
    {Ms :: integer(), Seen :: term()}.
sight(alarms, #world{options = #{alarms := Raised}, now = Now} = World, Ms) ->
    case Raised(World) of
        unknown -> {Ms, #{state => failing, at => Now, why => ~"sick"}};
        Of -> {Ms, #{state => up, at => Now, raised => Of}}
    end;
sight({provider, _}, #world{made = Made, faults = Faults, number = Number}, Ms) ->
    case Faults andalso Number rem 4 =:= 0 of
        true -> {Ms, #{state => failing, why => ~"sick"}};
        false ->
            {Ms, #{state => up, hosts => #{Name => #{state => running}
                                           || <<"cloud/", Name/binary>> := _ <- Made}}}
    end;
sight(Name, #world{hosts = Hosts, groups = Groups}, Ms) ->
    case Hosts of
        #{Name := #host{state = up, releases = Releases, instances = Instances, nodes = Nodes}} ->
            {Ms, {#{state => up, releases => Releases, archives => Releases,
                    instances => Instances}, Nodes,
                  #{Group => [Id || Id <- Ids, is_map_key(Id, Nodes)] || Group := Ids <- Groups}}};
        #{Name := #host{state = hung}} -> {?LIMIT_MS, {absent(unreachable), #{}, #{}}};
        #{Name := #host{state = down}} -> {Ms, {absent(unreachable), #{}, #{}}};
        #{Name := #host{state = gone}} -> {Ms, {absent(gone), #{}, #{}}};
        #{} -> {Ms, {absent(unreachable), #{}, #{}}}
    end.

absent(State) -> #{state => State, releases => [], instances => #{}}.

-doc "Adds the result of a look to the observed state.".
-spec see(What :: binary() | alarms | {provider, binary()}, Seen :: term(),
          sderl_ops_observed:observed(), sderl_ops_memory:memory()) ->
    sderl_ops_observed:observed().
see(alarms, Seen, Observed, _) ->
    Observed#{alarms => sderl_ops_gate:known(Seen, maps:get(alarms, Observed, none))};
see({provider, Provider}, Seen, Observed, _) ->
    Providers = maps:get(providers, Observed, #{}),
    Observed#{providers => Providers#{Provider => Seen}};
see(Host, {Seen, Running, InGroups}, Observed, #{assigned := Assigned} = Memory) ->
    Adopted = [Id || Id := #{host := Of} <- sderl_ops_memory:adopted(Memory), Of =:= Host],
    Gone = #{Id => #{state => gone, health => unknown}
             || Id <- Adopted, map_get(state, Seen) =:= up},
    Nodes = maps:merge(Gone, Running),
    #{hosts := Hosts, nodes := AllNodes, groups := Groups} = Observed,
    #{instances := Before} = maps:get(Host, Hosts, absent(gone)),
    Here = fun(Id) -> maps:get(Id, Assigned, Host) =:= Host end,
    Ids = lists:filter(Here, lists:usort(maps:keys(Before) ++ maps:keys(Nodes) ++ Adopted)),
    Observed#{hosts := Hosts#{Host => Seen},
              nodes := maps:merge(maps:without(Ids, AllNodes), maps:with(Ids, Nodes)),
              groups := see_groups(Ids, InGroups, Groups)}.

see_groups(Ids, InGroups, unknown) -> see_groups(Ids, InGroups, #{});
see_groups(Ids, InGroups, Groups) ->
    Here = #{Id => [] || Id <- Ids},
    Others = maps:map(fun(_, In) -> [Id || Id <- In, not is_map_key(Id, Here)] end, Groups),
    Seen = maps:map(fun(_, In) -> [Id || Id <- In, is_map_key(Id, Here)] end, InGroups),
    maps:filter(fun(_, In) -> In =/= [] end,
                maps:merge_with(fun(_, A, B) -> A ++ B end, Others, Seen)).

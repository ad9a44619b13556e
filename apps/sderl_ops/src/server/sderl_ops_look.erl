%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_look).
-moduledoc """
Looks at one host, or at all nodes, in a process of its own, so that a host that hangs holds up the
looks at nothing else.
""".

-export([watched/3, begin_look/2, names/2]).
-export([put/4, after_step/2, forget_hosts/4]).
-export_type([what/0, seen/0]).

-type what() :: nodes | alarms | {host, sderl_ops_desired:host_id()} | {provider, binary()}.

-doc "What was seen; `unknown` if the look itself failed, which says nothing about its target.".
-type seen() ::
    unknown
    | {host, sderl_ops_observed:host_seen()}
    | {provider, sderl_ops_observed:provider_seen()}
    | {alarms, sderl_ops_gate:seen()}
    | {nodes, #{sderl_ops_desired:instance_id() => sderl_ops_observed:node_seen()},
       Groups :: #{binary() => [sderl_ops_desired:instance_id()]},
       Listed :: #{binary() => [sderl_ops_desired:instance_id()]}}.

-doc "All that a look may need.".
-type context() :: #{
    hosts := #{sderl_ops_desired:host_id() => sderl_ops_host:host()},
    envoy := pid() | undefined,
    memory := sderl_ops_memory:memory(),
    providers := sderl_ops_made:providers(),
    alarms := none | sderl_ops_file:alarms(),
    context := sderl_ops_made:context()
}.

%% All nodes are asked side by side.
-define(NODES_MS, 8_000).
%% Like the default of lost_after_s.
-define(GONE_AFTER_MS, 300_000).

-doc """
What has to be looked at: the nodes, every host that has or is to have instances, programs that make
hosts, and the alarms while something is being replaced.
""".
-spec watched(sderl_ops_desired:desired(), sderl_ops_memory:memory(),
              sderl_ops_observed:observed()) -> [what()].
watched(Desired, #{assigned := Assigned} = Memory, #{hosts := Seen}) ->
    Hosts = hosts(Desired) ++ maps:values(Assigned) ++ maps:keys(Seen)
        ++ sderl_ops_made:looked_at(Memory),
    [nodes | [alarms || sderl_ops_gate:is_watched(Desired, Memory)]]
        ++ [{provider, Name} || Name <- sderl_ops_made:asked(Desired, Memory)]
        ++ [{host, Id} || Id <- lists:usort(Hosts)].

%% A look answers with its exit reason.
-dialyzer({nowarn_function, [begin_look/2]}).

-doc "Begins a look. The calling process gets a `DOWN` with `{look, t:seen/0}`.".
-spec begin_look(what(), context()) -> reference().
begin_look(What, Context) ->
    {_, Ref} = spawn_opt(fun() -> exit({look, at(What, Context)}) end, [link, monitor]),
    Ref.

at({provider, Name}, #{providers := Providers, context := Context}) ->
    {provider, sderl_ops_made:list(Name, Providers, Context)};
at(alarms, #{alarms := none}) ->
    unknown;
at(alarms, #{alarms := Source, hosts := Hosts, memory := Memory}) ->
    Nodes = #{Node => Id || Id := Node <- names(Memory, Hosts)},
    {alarms, sderl_ops_alarmed:read(Source, Nodes)};
at(What, #{hosts := Hosts, envoy := Envoy, memory := Memory}) ->
    Nodes = case What of nodes -> names(Memory, Hosts); _ -> #{} end,
    at(What, Hosts, Envoy, Nodes).

-doc "The nodes of all instances that have a host.".
-spec names(sderl_ops_memory:memory(), #{sderl_ops_desired:host_id() => sderl_ops_host:host()}) ->
    #{sderl_ops_desired:instance_id() => Node :: binary()}.
names(#{assigned := Assigned} = Memory, Hosts) ->
    #{Id => sderl_ops_adopted:node_name(Id, Address, Memory)
      || Id := HostId <- Assigned, #{address := Address} <- [maps:get(HostId, Hosts, none)]}.

at({host, Id}, Hosts, _, _) ->
    case Hosts of
        #{Id := Host} ->
            case sderl_ops_host:survey(Host) of
                {ok, Seen} ->
                    {host, Seen};
                {error, Why} ->
                    {host, #{state => unreachable, releases => [], instances => #{},
                             why => unicode:characters_to_binary(sderl_ops_host:format_error(Why))}}
            end;
        #{} ->
            {host, #{state => gone, releases => [], instances => #{}}}
    end;
at(nodes, _, undefined, _) ->
    unknown;
at(nodes, _, Envoy, Nodes) ->
    case sderl_ops_envoy:call(Envoy, look, [maps:values(Nodes), ?NODES_MS]) of
        {ok, Seen} ->
            Ids = #{Node => Id || Id := Node <- Nodes},
            {nodes,
             #{map_get(Node, Ids) => maps:with([state, health], Of) || Node := Of <- Seen},
             groups(Seen, Ids), listed(Seen, Ids)};
        {error, _} ->
            unknown
    end.

%% An instance is in a group if it says so itself, and all members that answer list it.
groups(Seen, Ids) ->
    Own = [{Name, Node, Members} || Node := #{groups := Groups} <- Seen, Name := Members <- Groups],
    Lists = maps:groups_from_list(fun({Name, _, _}) -> Name end, fun({_, Node, Members}) ->
        {Node, Members}
    end, Own),
    #{Name => [map_get(Node, Ids) || {Node, _} <- Holders,
                                     lists:all(fun({_, Members}) ->
                                         lists:member(Node, Members)
                                     end, Holders)]
      || Name := Holders <- Lists}.

%% Instances that are listed as members by other nodes alone.
listed(Seen, Ids) ->
    Holds = fun(Node, Name) ->
        case Seen of
            #{Node := #{groups := #{Name := _}}} -> true;
            #{} -> false
        end
    end,
    Said = [{Name, map_get(Member, Ids)}
            || _ := #{groups := Groups} <- Seen, Name := Members <- Groups, Member <- Members,
               is_map_key(Member, Ids), not Holds(Member, Name)],
    maps:groups_from_list(fun({Name, _}) -> Name end, fun({_, Id}) -> Id end, lists:usort(Said)).

-doc """
Adds the result of a look to the observed state. Groups that the service has not made are left out.
""".
-spec put(what(), seen(), Made :: [binary()], sderl_ops_observed:observed()) ->
    sderl_ops_observed:observed().
put(_, unknown, _, Observed) ->
    Observed;
put({host, Id}, {host, #{state := up} = Seen}, _, #{hosts := Hosts} = Observed) ->
    Observed#{hosts := Hosts#{Id => Seen}};
put({host, Id}, {host, Seen}, _, #{hosts := Hosts} = Observed) ->
    %% What the last look saw on the host is the best guess.
    Before = maps:with([releases, instances, base], maps:get(Id, Hosts, #{})),
    Observed#{hosts := Hosts#{Id => maps:merge(Seen, Before)}};
put({provider, Name}, {provider, Seen}, _, Observed) ->
    Observed#{providers => (maps:get(providers, Observed, #{}))#{Name => Seen}};
put(alarms, {alarms, Seen}, _, Observed) ->
    Observed#{alarms => sderl_ops_gate:known(Seen, maps:get(alarms, Observed, none))};
put(nodes, {nodes, Nodes, Groups, Listed}, Made, Observed) ->
    Observed#{nodes := Nodes, groups := maps:with(Made, Groups),
              listed => maps:with(Made, Listed)}.

%% The hosts of the file, and those to which a family may return by a roll-back.
hosts(#{hosts := Hosts} = Desired) ->
    %% All instances of a family have the same candidates.
    Former = [Candidates || _ := Instances <- maps:get(former, Desired, #{}),
                            {_, #{candidates := Candidates}, _}
                                <- [maps:next(maps:iterator(Instances))]],
    lists:usort(lists:append([maps:keys(Hosts) | Former])).

-doc """
Forgets hosts that the file no longer has, so that they are not looked at any more: those on which
nothing of the cluster is left, and those that have not answered for 5 minutes.
""".
-spec forget_hosts(sderl_ops_desired:desired(), sderl_ops_memory:memory(),
                   sderl_ops_memory:time(), sderl_ops_observed:observed()) ->
    sderl_ops_observed:observed().
forget_hosts(#{releases := Releases} = Desired, Memory, Now, #{hosts := Seen} = Observed) ->
    #{assigned := Assigned, unreachable := Unreachable, machines := Machines} = Memory,
    case maps:without(hosts(Desired) ++ maps:keys(Machines), Seen) of
        Others when Others =:= #{} ->
            Observed;
        Others ->
            InUse = maps:from_list([{Host, []} || _ := Host <- Assigned]),
            Silent = fun(Host) -> Now - maps:get(Host, Unreachable, Now) end,
            Gone = [Host || Host := At <- Others, not is_map_key(Host, InUse),
                            is_over(At, Releases, Silent(Host))],
            Observed#{hosts := maps:without(Gone, Seen)}
    end.

%% A release that the cluster still uses may stay there.
is_over(#{state := up, releases := There, instances := Instances}, Releases, _) ->
    Instances =:= #{} andalso lists:all(fun(Sha) -> is_map_key(Sha, Releases) end, There);
is_over(#{state := gone}, _, _) -> true;
is_over(#{state := unreachable}, _, Silent) -> Silent > ?GONE_AFTER_MS.

-doc "What has to be looked at to see the effect of a step.".
-spec after_step(sderl_ops_step:step(), sderl_ops_memory:memory()) -> [what()].
after_step(groups, _) -> [nodes];
after_step({Kind, Id}, Memory) when Kind =:= start; Kind =:= drain; Kind =:= stop ->
    [nodes | at_host(sderl_ops_memory:host_of(Id, Memory))];
after_step({lay_out, Id}, Memory) -> at_host(sderl_ops_memory:host_of(Id, Memory));
%% The program's answer says it all.
after_step({Kind, _}, _) when Kind =:= create; Kind =:= delete -> [];
after_step({_, Host, _}, _) -> at_host(Host).

at_host(undefined) -> [];
at_host(Host) -> [{host, Host}].

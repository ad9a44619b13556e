%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_adopted).
-moduledoc """
Nodes that ran before the service did, and that it takes over as they are.

A family names such nodes in the file. An instance with such a node is *adopted*: the service has
laid nothing out for it on its host. As long as its node may run, it counts as running with the
desired release and settings. It is replaced, like every other instance, when the file wants another
release or other settings for its family than when it was adopted. Once it has been laid out it is
an instance like the others, except that its node keeps its name.

The facts about an adopted instance (`t:adopted/0`) are stored with the rest of the memory. So a
service that was killed does not mistake a node that has to be replaced for one that is up to date.
Pure.
""".

-export([remember/3, sight/3, stopped/2, held/2, is_adopted/3, node_name/3]).
-export_type([adoption/0, adopted/0]).

-doc """
What the file says: the node and its host. `as` is what it counts as (`sderl_ops_desired:from/2`).
""".
-type adoption() :: #{node := binary(), host := sderl_ops_desired:host_id()}.

-doc """
`as` is present as long as the instance runs as it was found: until a step stops it or lays it out.
""".
-type adopted() :: #{
    node := binary(),
    host := sderl_ops_desired:host_id(),
    as => sderl_ops_desired:hash()
}.

%% Differs from the name of every release and of all settings.
-define(OTHERWISE, ~"adopted").

-doc """
Remembers the instances that are adopted from now on, with their hosts, and forgets those that are
gone. An instance that is assigned to a host already is not adopted. An instance is adopted only
after all its candidate hosts have been looked at, because a service that lost its memory may have
laid it out there.
""".
-spec remember(sderl_ops_desired:desired(), sderl_ops_observed:observed(),
               sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
remember(#{instances := Instances}, #{hosts := Hosts}, #{assigned := Assigned} = Memory) ->
    Before = sderl_ops_memory:adopted(Memory),
    Kept = #{Id => laid_out(Id, Adopted, Hosts)
             || Id := Adopted <- Before,
                is_map_key(Id, Instances) orelse is_map_key(Id, Assigned)},
    New = #{Id => Adoption#{as => As}
            || Id := #{adopt := Adoption, as := As, candidates := Candidates} <- Instances,
               not is_map_key(Id, Before), not is_map_key(Id, Assigned),
               is_nowhere(Id, Candidates, Hosts)},
    case maps:merge(New, Kept) of
        Before -> Memory;
        After ->
            Memory#{adopted => After,
                    assigned := maps:merge(#{Id => Host || Id := #{host := Host} <- New}, Assigned)}
    end.

laid_out(Id, #{host := Host} = Adopted, Hosts) ->
    case Hosts of
        #{Host := #{state := up, instances := #{Id := _}}} -> maps:remove(as, Adopted);
        #{} -> Adopted
    end.

is_nowhere(Id, Candidates, Hosts) ->
    lists:all(fun(Host) ->
        case Hosts of
            #{Host := #{instances := #{Id := _}}} -> false;
            #{Host := _} -> true;
            #{} -> false
        end
    end, Candidates).

-doc """
The observed state, with the adopted instances that may run. An instance does not run if its machine
says that there is no such node. A node that does not answer for another reason may run, so that
nothing is started twice. An instance that ended by itself and has the restart policy `never` has
`exited`.
""".
-spec sight(sderl_ops_desired:desired(), sderl_ops_observed:observed(),
            sderl_ops_memory:memory()) -> sderl_ops_observed:observed().
sight(#{instances := Instances}, Observed, #{assigned := Assigned} = Memory) ->
    maps:fold(fun(Id, Adopted, Acc) ->
        Instance = maps:get(Id, Instances, undefined),
        case {Adopted, Assigned} of
            {#{as := As, host := Host}, #{Id := Host}} -> put(Id, Host, As, Instance, Acc);
            _ -> Acc
        end
    end, Observed, sderl_ops_memory:adopted(Memory)).

put(Id, Host, As, Instance, #{hosts := Hosts, nodes := Nodes} = Observed) ->
    IsGone = maps:get(state, maps:get(Id, Nodes, #{}), down) =:= gone,
    case Hosts of
        #{Host := #{state := up, instances := There}} when not is_map_key(Id, There) ->
            case Instance of
                #{restart := #{policy := never}} when IsGone ->
                    put_state(Id, Host, exited, As, Instance, Observed);
                _ when IsGone -> Observed;
                _ -> put_state(Id, Host, running, As, Instance, Observed)
            end;
        #{} -> Observed
    end.

put_state(Id, Host, State, As, Instance, Observed) ->
    {Release, Settings} = layout(As, Instance),
    Seen = #{state => State, release => Release, settings => Settings, adopted => true},
    sderl_ops_observed:put_instance(Host, Id, Seen, Observed).

layout(As, #{as := As, release := Release, settings := Settings}) -> {Release, Settings};
layout(_, _) -> {?OTHERWISE, ?OTHERWISE}.

-doc "A step has stopped it, so it no longer runs as it was found.".
-spec stopped(sderl_ops_desired:instance_id(), sderl_ops_memory:memory()) ->
    sderl_ops_memory:memory().
stopped(Id, Memory) ->
    case sderl_ops_memory:adopted(Memory) of
        #{Id := Adopted} = All -> Memory#{adopted => All#{Id := maps:remove(as, Adopted)}};
        #{} -> Memory
    end.

-doc """
Instances that stay assigned to a host that does not answer: the service could not stop their nodes
when the host is back. An instance whose node the file no longer names may move.
""".
-spec held(sderl_ops_desired:desired(), sderl_ops_memory:memory()) ->
    #{sderl_ops_desired:instance_id() => sderl_ops_desired:host_id()}.
held(#{instances := Instances}, Memory) ->
    #{Id => Host || Id := #{as := _, host := Host} <- sderl_ops_memory:adopted(Memory),
                    #{adopt := _} <- [maps:get(Id, Instances, none)]}.

-doc "Whether an instance runs as it was found, or may do so.".
-spec is_adopted(sderl_ops_desired:instance_id(), sderl_ops_observed:observed(),
                 sderl_ops_memory:memory()) -> boolean().
is_adopted(Id, #{hosts := Hosts}, Memory) ->
    case sderl_ops_memory:adopted(Memory) of
        #{Id := #{as := _, host := Host}} ->
            case Hosts of
                #{Host := #{instances := #{Id := #{adopted := true}}}} -> true;
                #{Host := #{instances := #{Id := _}}} -> false;
                #{} -> true
            end;
        #{} -> false
    end.

-doc "The name of an instance's node on a host with this address.".
-spec node_name(sderl_ops_desired:instance_id(), Address :: binary(), sderl_ops_memory:memory()) ->
    binary().
node_name(Id, Address, Memory) ->
    Name = case sderl_ops_memory:adopted(Memory) of
        #{Id := #{node := Node}} -> hd(binary:split(Node, ~"@"));
        #{} -> Id
    end,
    <<Name/binary, $@, Address/binary>>.

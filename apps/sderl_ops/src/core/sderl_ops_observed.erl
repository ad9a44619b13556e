%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_observed).
-moduledoc """
The observed state of a cluster: hosts with what is laid out and runs there, the nodes that answer,
and the groups that they are in.

A host that is not in `hosts` has not been looked at yet. A node that is not in `nodes` is down.
`groups` is unknown until the nodes were asked. `listed` are instances that members of a group list
as members, and that do not say so themselves: usually they are down.
""".

-export([new/0, host_state/2, instance_at/3, has_release/3, layout/1, is_up/2, is_healthy/2]).
-export([put_instance/4, put_release/3, drop_release/3, provider/2, forget_host/2]).
-export_type([observed/0, host_seen/0, host_state/0, instance_seen/0, node_seen/0, layout/0,
              provider_seen/0]).

-type observed() :: #{
    hosts := #{sderl_ops_desired:host_id() => host_seen()},
    nodes := #{sderl_ops_desired:instance_id() => node_seen()},
    groups := unknown | #{Name :: binary() => [sderl_ops_desired:instance_id()]},
    listed => #{Name :: binary() => [sderl_ops_desired:instance_id()]},
    providers => #{Provider :: binary() => provider_seen()},
    alarms => sderl_ops_gate:seen()
}.
-doc "The answer of a provider that is a program: the hosts by their names, or why it failed.".
-type provider_seen() ::
    #{state := up, hosts := #{Name :: binary() => sderl_ops_machines:told()}}
    | #{state := failing, why := binary()}.
-doc """
A host that its provider no longer has is `gone`: its instances are lost at once. `archives` are
those of releases that the host can give to other hosts.
""".
-type host_seen() :: #{
    state := host_state(),
    why => term(),
    releases := [sderl_ops_desired:sha()],
    archives => [sderl_ops_desired:sha()],
    instances := #{sderl_ops_desired:instance_id() => instance_seen()}
}.
-type host_state() :: up | unreachable | gone.
-doc """
An instance is `laid_out` if it was not started since a step laid it out or stopped it, and `exited`
if it was started and ended by itself. An `adopted` one is not laid out (`m:sderl_ops_adopted`).
""".
-type instance_seen() :: #{
    state := laid_out | running | exited,
    release := sderl_ops_desired:sha(),
    settings := sderl_ops_desired:hash(),
    adopted => true,
    why => binary()
}.
-doc "`gone`: its machine says that no node of this name runs there.".
-type node_seen() :: #{state := up | down | gone,
                       health := ok | unknown | {problems, [binary()]}}.
-doc "What is laid out.".
-type layout() :: {sderl_ops_desired:sha(), sderl_ops_desired:hash()}.

-doc "Nothing has been seen.".
-spec new() -> observed().
new() -> #{hosts => #{}, nodes => #{}, groups => unknown}.

-doc "The state of a host; `unseen` where nobody has looked yet.".
-spec host_state(sderl_ops_desired:host_id(), observed()) -> host_state() | unseen.
host_state(Host, #{hosts := Hosts}) ->
    case Hosts of
        #{Host := #{state := State}} -> State;
        #{} -> unseen
    end.

-doc "An instance as it is on a host.".
-spec instance_at(sderl_ops_desired:host_id(), sderl_ops_desired:instance_id(), observed()) ->
    instance_seen() | undefined.
instance_at(Host, Id, #{hosts := Hosts}) ->
    case Hosts of
        #{Host := #{instances := #{Id := Seen}}} -> Seen;
        #{} -> undefined
    end.

-spec has_release(sderl_ops_desired:host_id(), sderl_ops_desired:sha(), observed()) -> boolean().
has_release(Host, Sha, #{hosts := Hosts}) ->
    case Hosts of
        #{Host := #{releases := Releases}} -> lists:member(Sha, Releases);
        #{} -> false
    end.

-doc "What a provider that is a program said last.".
-spec provider(binary(), observed()) -> provider_seen() | unseen.
provider(Name, Observed) -> maps:get(Name, maps:get(providers, Observed, #{}), unseen).

-doc "Forgets a host that was deleted, also in its provider's list.".
-spec forget_host(sderl_ops_desired:host_id(), observed()) -> observed().
forget_host(Host, #{hosts := Hosts} = Observed) ->
    [Provider, Name] = binary:split(Host, ~"/"),
    Left = Observed#{hosts := maps:remove(Host, Hosts)},
    case Left of
        #{providers := #{Provider := #{hosts := Listed} = Seen} = Providers} ->
            Without = Seen#{hosts := maps:remove(Name, Listed)},
            Left#{providers := Providers#{Provider := Without}};
        #{} ->
            Left
    end.

-spec layout(instance_seen()) -> layout().
layout(#{release := Release, settings := Settings}) -> {Release, Settings}.

-doc "Whether an instance's node answers.".
-spec is_up(sderl_ops_desired:instance_id(), observed()) -> boolean().
is_up(Id, #{nodes := Nodes}) ->
    case Nodes of
        #{Id := #{state := State}} -> State =:= up;
        #{} -> false
    end.

-doc "Whether it answers, and says that nothing is wrong. Unknown health is not good health.".
-spec is_healthy(sderl_ops_desired:instance_id(), observed()) -> boolean().
is_healthy(Id, #{nodes := Nodes}) ->
    case Nodes of
        #{Id := #{state := up, health := Health}} -> Health =:= ok;
        #{} -> false
    end.

%% ---------------------------------------------------------------- after a step

-doc "Sets the state of an instance on a host that has been seen; `undefined`: it is gone.".
-spec put_instance(sderl_ops_desired:host_id(), sderl_ops_desired:instance_id(),
                   instance_seen() | undefined, observed()) -> observed().
put_instance(Host, Id, Seen, Observed) ->
    change(Host, fun(#{instances := Instances} = At) ->
        At#{instances := case Seen of
                             undefined -> maps:remove(Id, Instances);
                             #{} -> Instances#{Id => Seen}
                         end}
    end, Observed).

-spec put_release(sderl_ops_desired:host_id(), sderl_ops_desired:sha(), observed()) -> observed().
put_release(Host, Sha, Observed) ->
    change(Host, fun(#{releases := Releases} = At) ->
        At#{releases := lists:usort([Sha | Releases])}
    end, Observed).

-spec drop_release(sderl_ops_desired:host_id(), sderl_ops_desired:sha(), observed()) -> observed().
drop_release(Host, Sha, Observed) ->
    change(Host, fun(#{releases := Releases} = At) ->
        At#{releases := lists:delete(Sha, Releases)}
    end, Observed).

change(Host, Change, #{hosts := Hosts} = Observed) ->
    Observed#{hosts := maps:update_with(Host, Change, Hosts)}.

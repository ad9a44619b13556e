%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl).
-moduledoc """
A registry of names as `bin/sderl bench registry` measures it: how its nodes are started,
and what a client calls. All but `plan/1` and `prepare/3` run on the measured nodes, in the
process of the client.

A *group* is a set of nodes that share a namespace; its name is an atom. Where a registry
knows no groups, one namespace holds all nodes.
""".

-export([module/1, names/0, fleet_plan/3]).
-export_type([params/0, group/0, outcome/0, plan/0, namespace/0, namespace/1]).

-doc "What of the options decides how nodes are started; `group_size` divides `nodes`.".
-type params() :: #{nodes := pos_integer(), group_size := pos_integer(), atom() => term()}.

-doc "The name of a group.".
-type group() :: atom().

-doc "A reason is the registry's own.".
-type outcome() :: ok | {error, term()}.

-doc "A group and its nodes, these as positions in the family (from 1) or by name.".
-type namespace(Node) :: {group(), [Node]}.
-type namespace() :: namespace(node()).

-doc "What the nodes are started with besides the defaults, and the groups that they form.".
-type plan() :: #{
    connect_all := boolean(),
    apps := [atom()],
    s_groups := boolean(),
    groups := [namespace(pos_integer())]
}.

-doc "How to start the nodes.".
-callback plan(params()) -> plan().

-doc """
Called once when the nodes run, on the node that drives them: links them and waits until
every node can register.
""".
-callback prepare(Fleet :: pid(), [namespace()], params()) -> ok | {error, term()}.

-doc "Registers the calling process under `Name`, and returns when that is decided.".
-callback register(group(), Name :: term()) -> outcome().

-doc "Removes `Name`, which the calling process registered, and returns when that is done.".
-callback unregister(group(), Name :: term()) -> outcome().

-doc "What this node knows of a name.".
-callback whereis(group(), Name :: term()) -> pid() | undefined.

-doc "All names of the group that this node knows.".
-callback names(group()) -> [{Name :: term(), pid()}].

-doc """
`strong`: when an operation has returned, all members agree, and the run checks that at
once. `eventual`: they agree some time later; the run waits for it.
""".
-callback consistency() -> strong | eventual.

-doc "The module of an implementation by the name that users type.".
-spec module(string()) -> {ok, module()} | error.
module(Name) ->
    case lists:keyfind(Name, 1, known()) of
        {Name, Module} -> {ok, Module};
        false -> error
    end.

-doc "The names that users type.".
-spec names() -> [string()].
names() -> [Name || {Name, _} <- known()].

known() ->
    [
        {"s_group", sderl_bench_impl_s_group},
        {"global", sderl_bench_impl_global},
        {"pg", sderl_bench_impl_pg},
        {"yardstick", sderl_bench_impl_yardstick}
    ].

-doc "So many nodes for an implementation, as a plan for `sderl_fleet:start/1`. `Label` stands before the progress bar.".
-spec fleet_plan(plan(), Count :: pos_integer(), Label :: unicode:chardata()) -> sderl_fleet:plan().
fleet_plan(#{connect_all := ConnectAll, apps := Apps, s_groups := InConfig, groups := Groups}, Count, Label) ->
    #{
        families => [#{name => n, count => Count, connect_all => ConnectAll, apps => Apps}],
        s_groups => [{Group, normal, [{n, Positions}]} || InConfig, {Group, Positions} <- Groups],
        progress => sderl_progress:reporter([Label, ": starting nodes"])
    }.

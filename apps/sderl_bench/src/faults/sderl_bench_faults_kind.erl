%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_kind).
-moduledoc """
A fault of `bin/sderl bench faults`: what it does to real nodes, and how it is undone. All are in
the table of this module.
""".

-export([all/0, named/1, applies/2]).
-export_type([kind/0, name/0, context/0, injected/0]).

-type name() :: atom().

-doc """
- `from`: convergence is timed from the `fault` itself (of the nodes that are left), or from its
  end, `done` (of all nodes)
- `needs`: `nodes` alone; `links` that can be cut; `silent` links that can be cut without being
  closed; `config`, nodes whose launch configuration can be changed
- `aims_at`: which node it strikes; `lead` is the coordinator, or any node where all are equal
- `lasts`: whether it lasts for the time of `--hold-ms`
""".
-type kind() :: #{
    name := name(),
    module := module(),
    text := string(),
    from := fault | done,
    needs := nodes | links | silent | config,
    aims_at := coordinator | lead | member | anybody,
    lasts := boolean()
}.

-doc """
What a fault may use. `net`: the network namespaces of the nodes, if they have any. `target`: the
node that it strikes; `coordinator`: that of the group.
""".
-type context() :: #{
    fleet := pid(),
    net := pid() | none,
    nodes := [node()],
    target := node(),
    coordinator := node() | none,
    registry := module(),
    turn := pos_integer(),
    burst := pos_integer(),
    short := pos_integer(),
    atom() => term()
}.

-doc """
- `away`: nodes that cannot answer during the fault; `dead`: those whose processes ended
- `at`: the moment of the fault in us, where that is not the moment of the call
- `cut_off`: nodes that reach no majority of all during the fault
- `classes`: the names of a class that must be there from then on
- `finish`: waits until what the fault began is done on these nodes
- `undo`: what its `undo/3` needs; `none` when there is nothing to undo
""".
-type injected() :: #{
    away => [node()],
    cut_off => [node()],
    dead => [node()],
    at => integer(),
    classes => #{atom() => sderl_bench_faults_watch:digest()},
    finish => fun(([node()]) -> ok),
    undo => none | term()
}.

-callback inject(name(), context()) -> injected().

-doc "Returns when the fault is over.".
-callback undo(name(), Undo :: term(), context()) -> ok.

-doc "All faults; those that can share nodes are consecutive.".
-spec all() -> [kind()].
all() ->
    Process = kind(sderl_bench_faults_process),
    Burst = kind(sderl_bench_faults_burst),
    Links = kind(sderl_bench_faults_links),
    [
        Process(none, "nothing happens: what clients see without a fault", done, nodes, anybody,
                true),
        Process(kill, "kill -9 of a member", fault, nodes, member, false),
        Process(kill_coordinator, "kill -9 of the coordinator", fault, nodes, coordinator, false),
        Process(stop, "SIGSTOP of a member, then SIGCONT", done, nodes, member, true),
        Process(stop_coordinator, "SIGSTOP of the coordinator, then SIGCONT", done, nodes,
                coordinator, true),
        Process(flood, "a stopped member, flooded by all others (busy_dist_port)", done, nodes,
                member, true),
        Process(slow, "a member stands still for 150 of every 200 ms", done, nodes, member, true),
        Burst(die_at_once, "1,000 processes with names die at once", fault, nodes, anybody, false),
        Burst(kill_in_burst, "kill -9 of the coordinator amid 10,000 registrations", fault, nodes,
              lead, false),
        Links(cut, "the link between two members cut, then healed", done, links, member, true),
        Links(cut_coordinator, "the coordinator's link to a member cut, then healed", done, links,
              coordinator, true),
        Links(split, "all links between two halves cut, then healed", done, links, anybody, true),
        Links(glitch, "the same, but too short for a link to be closed", done, silent, anybody,
              true),
        (kind(sderl_bench_faults_rollout))(rollout,
                                           "all nodes restarted, half with a new member list", done,
                                           config, anybody, false)
    ].

kind(Module) ->
    fun(Name, Text, From, Needs, AimsAt, Lasts) ->
        #{name => Name, module => Module, text => Text, from => From, needs => Needs,
          aims_at => AimsAt, lasts => Lasts}
    end.

-doc "The fault by the name that users type.".
-spec named(string()) -> {ok, kind()} | error.
named(Text) ->
    case [Kind || #{name := Name} = Kind <- all(), atom_to_list(Name) =:= Text] of
        [Kind] -> {ok, Kind};
        [] -> error
    end.

-doc """
Whether a registry can have this fault: one without groups has neither a coordinator nor a launch
configuration.
""".
-spec applies(kind(), module()) -> boolean().
applies(#{aims_at := AimsAt, needs := Needs}, Registry) ->
    (AimsAt =/= coordinator andalso Needs =/= config) orelse Registry:group() =/= none.

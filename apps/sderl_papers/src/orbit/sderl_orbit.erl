%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit).
-moduledoc """
Orbit: the smallest subset of `[0, N)` that contains 0 and all images of its elements under some
generators (`m:sderl_orbit_generators`), computed by workers that each have a part of the table of
elements.

| mode | |
|---|---|
| `plain` | one process, straightforward, with a set: the others are compared with it |
| `seq` | one process, one of the tables |
| `par` | workers in one virtual machine with all cores |
| `stock` | workers on the nodes of a full mesh |
| `sd` | nodes in s_groups, and one more group of the master and a submaster of each; workers of different groups have no link |

In `sd` a vertex for another group takes one of two ways. With `routing` `own` it goes, as
published, to a gateway process on the submaster's node, to one of the other group, and to the
worker. With `library` it goes by `sderl_route:send/2` to the name that the worker has in its group,
over the same nodes and links.

Termination is detected by credits, `m:sderl_orbit_credit`. There is no recovery:
`m:sderl_orbit_master` says what happens when something dies.

Differences from the published program: workers put what arrives into the table before they go on,
images in the own part take no message, vertices can be bundled, and workers in `sd` are on the
submasters' nodes too.

## Metrics

Those of `m:sderl_orbit_stats` and `m:sderl_bench_meter` (an operation is an element), these of the
whole run: workers are told of one another before the first vertex, and tell what they found after
the last one. And

| metric | meaning |
|---|---|
| `seconds` | from the first vertex, when all workers are ready, until all credit is back (`plain`, `seq`: the computation) |
| `elements_per_s` | `size` / `seconds` |
| `links_master`, `links_submaster_max`, `links_worker_max` | links of the master's node, of the submasters', of the others, at the end |
| `links_expected` | the same by the formulas of `m:sderl_orbit_layout` |
| `links_as_expected` | whether they are the same |
| `workers` | for each worker: `node`, `size`, `vertices_received`, `credits_returned`, `sent`, `waiting_max`, idle times, `slots`, `fill_deg`, `max_freq`, `min_atomic_credit` |

Source: Orbit of the RELEASE project; Chechina et al., *Evaluating Scalable Distributed Erlang*,
IEEE TPDS 2017.
""".

-export([run/2, modes/0, defaults/0, text/1]).
-export_type([mode/0, params/0, metrics/0]).

-doc "See above.".
-type mode() :: plain | seq | par | stock | sd.

-doc """
`generators` is a name such as `g12345`, `size` the N of the space, `nodes` how many besides the
master's, `workers` how many on each, `groups` how many s_groups (`sd`), `gateways` how many in each
(`sd`, `own`), `batch` how many vertices a message has at most (1: as published), `stall_s` after
how many seconds without any progress a run is given up. What is missing has its default.
""".
-type params() :: #{
    mode := mode(),
    routing => own | library,
    generators => atom() | string() | binary(),
    size => pos_integer(),
    nodes => pos_integer(),
    workers => pos_integer(),
    groups => pos_integer(),
    gateways => pos_integer(),
    batch => pos_integer(),
    table => sderl_orbit_table:kind(),
    stall_s => pos_integer(),
    atom() => term()
}.

-doc "See the tables above.".
-type metrics() :: #{
    size := pos_integer(),
    seconds := float(),
    elements_per_s := float(),
    links_per_node_max := non_neg_integer(),
    links_master := non_neg_integer() | undefined,
    links_submaster_max := non_neg_integer() | undefined,
    links_worker_max := non_neg_integer() | undefined,
    links_expected := sderl_orbit_layout:links(),
    links_as_expected := boolean(),
    messages := non_neg_integer(),
    bytes_per_element := float(),
    vertices_received := pos_integer(),
    atom() => term()
}.

-doc "The modes.".
-spec modes() -> [mode()].
modes() -> [plain, seq, par, stock, sd].

-doc "The defaults of parameters that are not given.".
-spec defaults() -> #{atom() => term()}.
defaults() ->
    #{
        routing => own,
        generators => g12345,
        size => 10_000,
        nodes => 4,
        workers => 2,
        groups => 2,
        gateways => 2,
        batch => 1,
        table => hash,
        stall_s => 60
    }.

-doc """
Starts the nodes, runs it, and stops the nodes. `Label` stands before the progress. A reason is a
term for `sderl_papers_reason:text/1`, those of Orbit itself `{orbit, Reason}` with

- `{died, Who, Reason}`: a process or its node
- `{stalled, Ms, Found}`: no progress for so long
- `{unknown_generators, Name}`, `{too_many_groups, Groups, Nodes}`
""".
-spec run(params(), Label :: unicode:chardata()) -> {ok, metrics()} | {error, term()}.
run(Params0, Label) ->
    #{mode := Mode, nodes := Nodes} = Params = maps:merge(defaults(), Params0),
    maybe
        {ok, Full} ?= complete(Params),
        ok ?= sderl_fleet:fits(
            case sderl_orbit_cluster:mode_of_links(Mode) of one -> 1; _ -> Nodes + 1 end
        ),
        {ok, Fleet} ?= sderl_fleet:start(sderl_orbit_cluster:plan(Full, Label)),
        try
            case sderl_orbit_cluster:on(Fleet, Full, Label) of
                {ok, Outcome} -> {ok, metrics(Outcome)};
                {error, Reason} -> {error, Reason}
            end
        after
            sderl_fleet:stop(Fleet)
        end
    end.

complete(#{mode := sd, groups := Groups, nodes := Nodes}) when Groups > Nodes ->
    {error, {orbit, {too_many_groups, Groups, Nodes}}};
complete(#{generators := Name} = Params) ->
    case sderl_orbit_generators:parse(Name) of
        {ok, Generators} -> {ok, Params#{generators := Generators}};
        error -> {error, {orbit, {unknown_generators, Name}}}
    end.

metrics(#{result := #{seconds := Seconds, reports := Reports}, usage := Usage, links := Links,
          links_expected := Expected}) ->
    #{size := Size} = Stats = sderl_orbit_stats:merge(Reports),
    maps:merge(maps:merge(sderl_bench_meter:metrics(Usage, Size), Stats), #{
        seconds => Seconds,
        elements_per_s => Size / max(Seconds, 1.0e-6),
        links_master => maps:get(master, Links),
        links_submaster_max => maps:get(submaster_max, Links),
        links_worker_max => maps:get(worker_max, Links),
        links_expected => Expected,
        links_as_expected => Links =:= Expected,
        workers => [sderl_orbit_stats:worker(Report) || Report <- Reports]
    }).

-doc "A reason of Orbit in words.".
-spec text(term()) -> unicode:chardata().
text({died, Who, Reason}) ->
    case {node_of(Who), Reason} of
        {Node, noconnection} ->
            io_lib:format("node ~ts went down, with ~ts; Orbit has no recovery", [Node, role(Who)]);
        {Node, down} ->
            io_lib:format("node ~ts went down, with ~ts; Orbit has no recovery", [Node, role(Who)]);
        {Node, _} ->
            io_lib:format("~ts on ~ts died: ~0tP; Orbit has no recovery",
                          [role(Who), Node, Reason, 12])
    end;
text({stalled, Ms, Found}) ->
    io_lib:format(
        "nothing has been found for ~w s, after ~w elements: a node stands still, or a longer time "
        "is needed (--stall)",
        [Ms div 1000, Found]
    );
text({unknown_generators, Name}) ->
    io_lib:format("there are no generators ~ts; they are g and some of the digits 1 to 5 in "
                  "ascending order, as in g12345", [Name]);
text({too_many_groups, Groups, Nodes}) ->
    io_lib:format("~w groups need as many nodes, and there are ~w", [Groups, Nodes]);
text(Reason) ->
    io_lib:format("~0tp", [Reason]).

role({worker, Index, _}) -> io_lib:format("worker ~w", [Index]);
role({gateway, Group, _}) -> io_lib:format("a gateway of group ~w", [Group]);
role({submaster, Group, _}) -> io_lib:format("the submaster of group ~w", [Group]);
role({master, _}) -> "the master".

node_of({master, Node}) -> Node;
node_of({_, _, Node}) -> Node.

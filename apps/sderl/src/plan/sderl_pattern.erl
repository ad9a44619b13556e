%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pattern).
-moduledoc """
Ready shapes of overlapping groups, as data: a *plan* says which node is in which group, and which
nodes, the *gateways*, connect two groups or more.

```erlang
{ok, Plan} = sderl_pattern:star(Nodes, #{size => 10, gateways => 2}),
#{links := #{max := Links}} = sderl_plan:predict(Plan),
{ok, _} = sderl_plan_apply:run(Plan).
```

| pattern | groups | edges |
|---|---|---|
| `star` | workers, and a hub (the *master group*) of their gateways | each to the hub: any two groups are two gateways apart. Orbit's |
| `tree` | workers at the bottom, above them hubs | every node of the tree is a gateway to the level above. ACO's |
| `ring`, `chain` | a row of workers, closed or open | each to the next |
| `grid` | rows and columns of workers | each to the right and to the one below |

Every node has one group that is its *home*. An edge lends gateways from their home (`from`) to
other groups (`to`), so that a gateway is a member of each, and no node is a gateway of two edges. A
hub has no workers.

The module is pure. `m:sderl_plan` predicts what a plan costs and proposes plans,
`m:sderl_plan_draw` draws them, and `m:sderl_plan_apply` applies them to a running cluster.

## Options

| key | values | default | of |
|---|---|---|---|
| `size` | most members of a group of workers, gateways of others among them | | all |
| `groups` | how many groups of workers, in place of `size` | | all but `tree` |
| `gateways` | of an edge; of a group in a `star` | 1 | all |
| `remainder` | `spread`: groups differ by one member at most; `last`: only the last one differs; `error`; `left_out`: nodes that fill no group are in none | `spread` | all |
| `order` | which nodes go together, see `t:order/0` | `given` | all |
| `name` | groups are called `{Name, 1}`, `{Name, 2}`, ..., `{Name, hub}` | `group` | all |
| `names` | the names of the groups of workers, in order | | all |
| `hubs` | how many hubs share the gateways of each group, so that each hub is smaller | 1 | `star` |
| `masters` | nodes that are in a hub alone, of each hub; the first ones | 0 | `star` |
| `branching` | how many a node of the tree has below it | | `tree` |
| `levels` | levels of the tree, the bottom included; at least 2 | see `tree/2` | `tree` |
| `leaves` | groups at the bottom under each lowest node of the tree | `branching` | `tree` |
| `columns` | groups in a row | square | `grid` |

## Errors

`{error, Reason}`: `sderl_plan:format_error/1` describes the contradiction and the remedy. A value
of the wrong type raises `{badarg, {sderl_pattern, Function, Arity}, Details}`.

## Sources

Star: SD-Orbit, Chechina et al., *Improving the network scalability of Erlang*, JPDC 2016,
section 4. Tree: ACO on s_groups, Chechina et al., *Evaluating Scalable Distributed Erlang*,
TPDS 2017.
""".

-export([new/3, star/2, tree/2, ring/2, chain/2, grid/2, tree_fit/2]).
-export([nodes/1, home/2, gateways/1, groups_of/2]).
-export([check/1, config/1, write/2, read/1]).
-export([grow/2, shrink/2, changes/2]).

-export_type([plan/0, group/0, edge/0, pattern/0, options/0, order/0, distances/0, traffic/0,
              changes/0, reason/0]).

-import(sderl_check, [misuse/5]).

-define(VSN, 1).

-doc "A plan. `left_out`: nodes that are in no group; `options`: those it was made with.".
-type plan() :: #{
    version := 1,
    pattern := pattern(),
    options := #{atom() => term()},
    groups := [group()],
    edges := [edge()],
    left_out := [node()]
}.
-doc "`masters`: of a hub, how many nodes are at home in it.".
-type group() ::
    #{name := term(), role := workers | hub, masters := non_neg_integer(), nodes := [node(), ...]}.
-doc "`gateways` are at home in `from` and members of each group of `to`.".
-type edge() :: #{from := Group :: term(), to := [Group :: term(), ...], gateways := [node(), ...]}.
-type pattern() :: star | tree | ring | chain | grid.
-type options() :: #{atom() => term()}.
-doc """
Which nodes go together.

- `given`: as they stand in the list.
- `{attribute, #{node() => Value}}`: nodes of one value (a region, a rack), and no others, called
  `{Name, Value}`; several groups where `size` demands it. In a tree nodes are sorted by value
  instead.
- `{distance, Distances}`: those that are near each other, so that a group is a neighbourhood.
- `{traffic, Traffic}`: those that talk to each other.
""".
-type order() ::
    given | {attribute, #{node() => term()}} | {distance, distances()} | {traffic, traffic()}.
-doc "For instance `fun sderl_dist:distance/2`, or `#{From => #{To => Distance}}`. Symmetric.".
-type distances() ::
    fun((node(), node()) -> number() | {error, term()}) | #{node() => #{node() => number()}}.
-doc "Messages per second between nodes or sets of nodes; those of a set are evenly shared.".
-type traffic() :: [{node() | [node()], node() | [node()], number()}].
-doc "The changes from one plan to another, by group.".
-type changes() :: #{
    create := [{Group :: term(), [node()]}],
    add := [{Group :: term(), [node()]}],
    remove := [{Group :: term(), [node()]}],
    delete := [Group :: term()]
}.
-doc "`sderl_plan:format_error/1` makes a sentence of it.".
-type reason() :: tuple().

%% ---------------------------------------------------------------- making plans

-doc "A plan of one of the patterns, by name.".
-spec new(pattern(), [node()], options()) -> {ok, plan()} | {error, reason()}.
new(Pattern, Nodes, Options)
  when Pattern =:= star; Pattern =:= tree; Pattern =:= ring; Pattern =:= chain; Pattern =:= grid ->
    made(Pattern, Nodes, Options, {new, 3, 2});
new(Pattern, _, _) -> misuse(?MODULE, {new, 3}, 1, Pattern, "star, tree, ring, chain or grid").

-doc """
Groups around a hub. With one gateway a group, one master and *S* groups of *n* nodes this is
Orbit's: the master has *S* links, a gateway (*submaster*) *n* - 1 + *S*, a worker *n* - 1.

The hub has as many members as there are gateways in all, whatever `size` says. `hubs` makes it
several smaller ones: 100 nodes in 10 groups with `#{gateways => 2, hubs => 2}` lose no group with
any one node, at 18 links of a gateway.
""".
-spec star([node()], options()) -> {ok, plan()} | {error, reason()}.
star(Nodes, Options) -> made(star, Nodes, Options, {star, 2, 1}).

-doc """
A tree. Level 1 is one node, and each node of a level has `branching` nodes on the next, but for the
lowest level above the bottom: each node of that has `leaves` groups of workers. A node and those
below it are a group (a hub, but at the bottom). With `gateways` *k*, each place in the tree is
taken by *k* nodes.

`levels` is by default the least for which no group of workers exceeds `size`, or without `size` the
most for which each group of workers has `branching` nodes below (see `tree_fit/2`), as in ACO. All
other nodes go to the bottom.
""".
-spec tree([node()], options()) -> {ok, plan()} | {error, reason()}.
tree(Nodes, Options) -> made(tree, Nodes, Options, {tree, 2, 1}).

-doc "A ring of three groups or more.".
-spec ring([node()], options()) -> {ok, plan()} | {error, reason()}.
ring(Nodes, Options) -> made(ring, Nodes, Options, {ring, 2, 1}).

-doc "A row of groups. One group is a chain too.".
-spec chain([node()], options()) -> {ok, plan()} | {error, reason()}.
chain(Nodes, Options) -> made(chain, Nodes, Options, {chain, 2, 1}).

-doc "Rows and columns; the last row may be shorter.".
-spec grid([node()], options()) -> {ok, plan()} | {error, reason()}.
grid(Nodes, Options) -> made(grid, Nodes, Options, {grid, 2, 1}).

-doc """
The largest ACO tree for so many nodes: its levels *X*, and how many nodes it uses, 1 + P + ... +
P^(X-2) + P^X; `{0, 0}` if even two levels do not fit. `{3, 131}` for 150 nodes and a branching
of 5.
""".
-spec tree_fit(Nodes :: non_neg_integer(), Branching :: pos_integer()) ->
    {Levels :: non_neg_integer(), Used :: non_neg_integer()}.
tree_fit(Nodes, Branching)
  when is_integer(Nodes), Nodes >= 0, is_integer(Branching), Branching >= 2 ->
    sderl_pattern_build:tree_fit(Nodes, Branching);
tree_fit(Nodes, Branching) when is_integer(Nodes), Nodes >= 0 ->
    misuse(?MODULE, {tree_fit, 2}, 2, Branching, "a whole number from 2");
tree_fit(Nodes, _) -> misuse(?MODULE, {tree_fit, 2}, 1, Nodes, "a whole number from 0").

made(Pattern, Nodes, Options, {F, A, I}) ->
    ok = nodes_arg(Nodes, {F, A}, I),
    ok = options_arg(Pattern, Options, {F, A}, I + 1),
    Defaults = #{gateways => 1, remainder => spread, order => given, name => group, hubs => 1,
                 masters => 0},
    maybe
        {ok, Made} ?= sderl_pattern_build:build(Pattern, Nodes, maps:merge(Defaults, Options)),
        %% The order is used up: a plan is data, and that may be a function or a large table.
        {ok, Made#{version => ?VSN, pattern => Pattern, options => maps:remove(order, Options)}}
    end.

%% ---------------------------------------------------------------- looking at plans

-doc "All nodes that are in a group, sorted.".
-spec nodes(plan()) -> [node()].
nodes(#{groups := _} = Plan) -> sderl_pattern_parts:nodes(Plan);
nodes(Other) -> no_plan(Other, {nodes, 1}, 1).

-doc "The nodes whose home is this group, in its order.".
-spec home(Group :: term(), plan()) -> [node()].
home(Name, #{groups := Groups, edges := _} = Plan) ->
    case sderl_pattern_parts:member(Name, [G || #{name := G} <- Groups]) of
        true -> sderl_pattern_parts:home(Name, Plan);
        false -> misuse(?MODULE, {home, 2}, 1, Name, "a group of the plan")
    end;
home(_, Other) -> no_plan(Other, {home, 2}, 2).

-doc "The gateways of all edges, sorted.".
-spec gateways(plan()) -> [node()].
gateways(#{edges := _} = Plan) -> sderl_pattern_parts:gateways(Plan);
gateways(Other) -> no_plan(Other, {gateways, 1}, 1).

-doc "The groups that a node is in, in the plan's order.".
-spec groups_of(node(), plan()) -> [Group :: term()].
groups_of(Node, #{groups := _} = Plan) -> sderl_pattern_parts:groups_of(Node, Plan);
groups_of(_, Other) -> no_plan(Other, {groups_of, 2}, 2).

-doc """
Whether a term is a plan that can be applied, for plans written by hand: every group has a name of
its own and members, none twice, and the gateways of an edge are members of its groups.
""".
-spec check(term()) -> ok | {error, reason()}.
check(Term) -> sderl_plan_check:plan(Term).

%% ---------------------------------------------------------------- launch configuration and files

-doc """
The plan as launch configuration: the tuple for `sys.config` under `sderl`, the same on every node.
See `m:sderl_config`.
""".
-spec config(plan()) -> {s_groups, [{Group :: term(), normal, [node(), ...]}]}.
config(#{groups := Groups}) -> {s_groups, [{G, normal, Ns} || #{name := G, nodes := Ns} <- Groups]};
config(Other) -> no_plan(Other, {config, 1}, 1).

-doc """
Writes a plan as a term that `read/1` and `file:consult/1` read. Invisible characters of names are
written by their codes.
""".
-spec write(file:name_all(), plan()) -> ok | {error, {cannot_write, file:name_all(), term()}}.
write(File, #{version := ?VSN} = Plan) ->
    Text = io_lib:format("%% A plan of s_groups, for sderl_pattern:read/1.~n~tp.~n", [Plan]),
    Written = ["%% coding: utf-8\n", sderl_visible:erlang(Text)],
    case file:write_file(File, unicode:characters_to_binary(Written)) of
        ok -> ok;
        {error, Why} -> {error, {cannot_write, File, Why}}
    end;
write(_, Other) -> no_plan(Other, {write, 2}, 2).

-doc "Reads a plan and checks it.".
-spec read(file:name_all()) -> {ok, plan()} | {error, reason()}.
read(File) ->
    case file:consult(File) of
        {ok, [Plan]} ->
            case check(Plan) of
                ok -> {ok, Plan};
                Error -> Error
            end;
        {ok, Terms} -> {error, {not_one_term, File, length(Terms)}};
        {error, Why} -> {error, {cannot_read, File, Why}}
    end.

%% ---------------------------------------------------------------- growing and shrinking

-doc """
The plan with more nodes in the same shape. They go to the smallest groups of workers; when all have
`size` members, a new group is connected where the pattern grows (a ring between its last and its
first group, a tree under the node that has the fewest). No node that is in a group is moved, except
the gateways of the edge that a ring opens, and nodes for a new group or edge that needs more than
there are to spare.

Errors: `{node_twice, Node}`, `{too_few_nodes, ...}`.
""".
-spec grow(plan(), [node()]) -> {ok, plan()} | {error, reason()}.
grow(Plan, Nodes) ->
    ok = plan_arg(Plan, {grow, 2}, 1),
    ok = nodes_arg(Nodes, {grow, 2}, 2),
    sderl_pattern_change:grow(Plan, Nodes).

-doc """
The plan without some nodes in the same shape. A removed gateway is replaced by a worker of its
group or, if there is none, by one of the largest group. If no group has a worker to spare, the last
group is dissolved into the others.

Errors: `{not_in_plan, Node}`, `{too_few_nodes, ...}`.
""".
-spec shrink(plan(), [node()]) -> {ok, plan()} | {error, reason()}.
shrink(Plan, Nodes) ->
    ok = plan_arg(Plan, {shrink, 2}, 1),
    ok = nodes_arg(Nodes, {shrink, 2}, 2),
    sderl_pattern_change:shrink(Plan, Nodes).

-doc "What has to change to get from one plan to another.".
-spec changes(Old :: plan(), New :: plan()) -> changes().
changes(#{groups := Old}, #{groups := New}) ->
    Before = #{G => Ns || #{name := G, nodes := Ns} <- Old},
    After = #{G => Ns || #{name := G, nodes := Ns} <- New},
    Both = [{G, map_get(G, Before), Ns} || #{name := G, nodes := Ns} <- New, is_map_key(G, Before)],
    #{
        create => [{G, Ns} || #{name := G, nodes := Ns} <- New, not is_map_key(G, Before)],
        add => [{G, Ns} || {G, Was, Is} <- Both, [_ | _] = Ns <- [Is -- Was]],
        remove => [{G, Ns} || {G, Was, Is} <- Both, [_ | _] = Ns <- [Was -- Is]],
        delete => [G || #{name := G} <- Old, not is_map_key(G, After)]
    };
changes(#{groups := _}, Other) -> no_plan(Other, {changes, 2}, 2);
changes(Other, _) -> no_plan(Other, {changes, 2}, 1).

%% ---------------------------------------------------------------- arguments

nodes_arg(Nodes, Where, I) ->
    case sderl_check:proper_list(Nodes) andalso lists:all(fun is_atom/1, Nodes) of
        true -> ok;
        false -> misuse(?MODULE, Where, I, Nodes, "a list of names of nodes")
    end.

plan_arg(Plan, Where, I) ->
    case check(Plan) of
        ok -> ok;
        {error, _} -> no_plan(Plan, Where, I)
    end.

-spec no_plan(term(), {atom(), arity()}, pos_integer()) -> no_return().
no_plan(Found, Where, I) -> misuse(?MODULE, Where, I, Found, "a plan, as check/1 has it").

options_arg(Pattern, Options, Where, I) when is_map(Options) ->
    Bad = [{K, V, Expected} || K := V <- Options, {false, Expected} <- [option(K, V, Pattern)]],
    case lists:sort(Bad) of
        [] -> ok;
        [{K, V, Expected} | _] -> misuse(?MODULE, Where, I, #{K => V}, Expected)
    end;
options_arg(_, Options, Where, I) -> misuse(?MODULE, Where, I, Options, "a map of options").

option(K, V, _) when K =:= size; K =:= groups; K =:= gateways ->
    {is_integer(V) andalso V >= 1, "a whole number from 1"};
option(K, V, star) when K =:= hubs -> {is_integer(V) andalso V >= 1, "a whole number from 1"};
option(masters, V, star) -> {is_integer(V) andalso V >= 0, "a whole number from 0"};
option(columns, V, grid) -> {is_integer(V) andalso V >= 1, "a whole number from 1"};
option(branching, V, tree) -> {is_integer(V) andalso V >= 2, "a whole number from 2"};
option(levels, V, tree) -> {is_integer(V) andalso V >= 2, "a whole number from 2"};
option(leaves, V, tree) -> {is_integer(V) andalso V >= 1, "a whole number from 1"};
option(remainder, V, _) ->
    {lists:member(V, [spread, last, error, left_out]), "spread, last, error or left_out"};
option(name, _, _) -> {true, ""};
option(names, V, _) -> {is_list(V), "a list of names"};
option(order, V, _) ->
    {order(V), "given, {attribute, Map}, {distance, FunOrMap} or {traffic, List}"};
option(_, _, Pattern) -> {false, ["an option of the pattern ", atom_to_list(Pattern)]}.

order(given) -> true;
order({attribute, Map}) -> is_map(Map);
order({distance, D}) -> is_map(D) orelse is_function(D, 2);
order({traffic, T}) -> is_list(T);
order(_) -> false.

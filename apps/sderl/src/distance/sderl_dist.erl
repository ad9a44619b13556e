%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist).
-moduledoc """
The distances between nodes: a tree of communication distances.

```erlang
ok = sderl_dist:load("network.config"),
0.125 = sderl_dist:distance('anne@m1', 'brian@m1'),
Near = sderl_dist:choose_nodes(node(), {dist, le, 0.25}).
```

Nodes are the leaves of a tree, and two of them are at distance `2^-l`, where `l` is the number of
edges that the paths from the root to them share: 1.0 if they have only the root in common, half as
much for each further level, 0.0 from a node to itself. `m:sderl_dist_tree` describes the
consequences.

## The file

One term, with a full stop, as published:

```erlang
{network, europe, [
    {network, rack1, [{node, 'a@m1'}, {node, 'b@m1'}]},
    {network, [{node, 'c@m2'}]}]}.
```

`{network, Name, Inner}` and `{network, Inner}` are inner vertices. The names are for people, in
pictures; a vertex without one is shown as `<v1>`, `<v2>`, .... A vertex may be anything that
contains nodes or vertices: a region, a switch, a machine with several nodes.

The configuration may name a file, `{sderl, [{distances, "network.config"}]}`, or have the term
itself.

## Other sources

`measure/2` measures round trips between nodes and clusters them into such a tree, `derive/2` makes
such a tree from the nodes' labels. Both return the term, for `set/1` and `save/1`, and change
nothing themselves.

## State

A virtual machine has one tree, for all processes, from one `load/1` or `set/1` until the next;
before the first it has no nodes. The tree does not depend on the application: it may be loaded
before `sderl` starts, and stays when that stops. (The published library keeps it in the dictionary
of the process that loaded it.) Reading copies nothing; replacing the tree makes the runtime scan
all processes once, so change it rarely.

## Predicates

`{dist, Op, R}`, or a list of them that all must hold, about the distance from a given node. `Op` is
one of `eq`, `ne`, `lt`, `le`, `gt`, `ge`. A node is at distance 0.0 of itself, so `lt` and `le`
include it if it is a candidate. Nodes that are not in the tree are never chosen, whatever the
predicate. (In the published library they pass `gt`, `ge` and `ne`.)

## Errors

Files and terms give `{error, Reason}`, which `format_error/1` puts in a sentence with the place and
the remedy. Arguments of the wrong type raise `{badarg, {sderl_dist, Function, Arity}, Details}`.

Source: the `dist` library published with SD Erlang. `set/1`, `save/1`, `tree/0`, `distances/2`,
`measure/2`, `derive/2` and pictures as SVG are this library's own.
""".

-export([init/1, load/1, set/1, tree/0, save/1, format_error/1]).
-export([nodenames/0, distance/2, distances/2, nearest/2, max_dist/0, min_dist/0]).
-export([choose_nodes/2, choose_nodes/3, choose_node/2, choose_node/3]).
-export([render/0, render/1, render/2]).
-export([measure/1, measure/2, derive/1, derive/2]).

-export_type([network/0, error/0, predicate/0, operator/0, rendering/0]).
-export_type([scope/0, measuring/0, measurement/0, deriving/0, derivation/0]).

-import(sderl_check, [is_file/1, misuse/5]).

-define(TREE, {sderl, distances}).

-doc "A tree as data; see above.".
-type network() :: sderl_dist_tree:network().

-doc """
What may be wrong with a file or a term.

`unconnected_graph`: more than one term in a file, as published.
`{bad_network, Path, Found, Expected}`: the path has the positions of elements, outermost first, so
that `[2, 1, node]` is the node's name in the first element of the second. `{file, Name, Reason}`:
the file cannot be read or written.
""".
-type error() :: sderl_dist_file:error().

-doc "How a distance is compared with `R`.".
-type operator() :: sderl_compare:operator().

-doc "A condition on the distance from a node.".
-type predicate() :: {dist, operator(), R :: number()}.

-doc """
How to draw: `format`, for Graphviz or as a finished picture, by default as the file's name ends;
`network`, a tree to draw instead of the one that is set; `title`, a line above it.
""".
-type rendering() :: #{format => dot | svg, network => network(), title => unicode:chardata()}.

-doc """
What to measure: the groups of this node; all groups that can be reached from here over gateways;
or, of these, those with certain names, as far as they lead to each other.
""".
-type scope() :: own | all | {groups, [s_group:group()]}.

-doc """
| key | default | meaning |
|---|---|---|
| `timeout_ms` | 10000 | the longest that it may take |
| `peers` | 32 | how many others a node probes at most; each two of a group of 65 or so are probed, of larger ones a part |
| `batches`, `batch` | 4, 5 | how many batches for each pair, and of how many round trips |
| `window` | 8 | how many peers a node probes at the same time at most |
| `spread_ms` | 2000 | over what time a node spreads its batches, so that nodes do not measure each other's probing; half of what is left of the time at most |
| `gap` | 2 | levels are where the next larger round trip is so many times as long |
| `resolution_us` | 50 | and so much longer; a smaller difference is none |
""".
-type measuring() :: #{
    timeout_ms => pos_integer(),
    peers => pos_integer(),
    batches => pos_integer(),
    batch => pos_integer(),
    window => pos_integer(),
    spread_ms => pos_integer(),
    gap => number(),
    resolution_us => number()
}.

-doc """
What `measure/2` found.

- `tree`: for `set/1`. The vertices have the round trip of their level as a name.
- `nodes`: the nodes in the tree. `missing`: known nodes that are not in it, with the reason:
  `no_answer`, in time or at all; `not_linked`; `no_round_trip`; `busy`, with other surveys.
  `unreached`: groups asked for by name to which no group in the survey leads.
- `levels`, the nearest first: the distance in the tree, how many pairs have it, and the median,
  least and largest of their round trips.
- `fit`: how well the tree represents the measured matrix, if each pair is taken to be as far apart
  as the median of its level: the cophenetic correlation, and the mean and largest deviation as a
  part of the measured value. `dendrogram_fit`: the same before the dendrogram was cut into levels.
- `pairs`: how many were `measured`; were `estimated`, as members of a group that is too large to
  probe all; and were `composed`, as nodes without a link: the shortest sum of legs over gateways.
- `rtt_us`: the matrix, in microseconds.
- `cost`: the messages sent between nodes for it and about how many bytes, without the reports.
  `took_ms`.
""".
-type measurement() :: #{
    tree := network(),
    nodes := [node()],
    missing := [{node(), sderl_dist_reports:reason()}],
    unreached := [s_group:group()],
    levels := [#{distance := float(), pairs := pos_integer(), rtt_us := number(),
                 least_us := number(), most_us := number()}],
    fit := sderl_dist_fit:fit(),
    dendrogram_fit := sderl_dist_fit:fit(),
    pairs := #{sderl_dist_matrix:kind() => non_neg_integer()},
    rtt_us := #{node() => #{node() => number()}},
    cost := #{messages := non_neg_integer(), bytes := non_neg_integer()},
    took_ms := non_neg_integer()
}.

-doc """
`levels`: the labels to go by, from the widest to the nearest; by default
`[region, zone, rack, host]`. `host` is the label of that name, or the host part of the node's name.
`labels`: take these instead of asking. `timeout_ms`: to wait for labels that this node does not
hold, by default 2000.
""".
-type deriving() :: #{
    levels => [term()],
    labels => #{node() => #{Key :: term() => Value :: term()}},
    timeout_ms => pos_integer()
}.

-doc """
What `derive/2` found. `tree`: for `set/1`. `levels`: the nearest first, with the distance of two
nodes that share it and no nearer one; a level is left out if no node has its label. `unlabelled`:
the nodes that lack a label that others have. `missing`: nodes whose labels could not be read, with
the reason; they are in the tree by their hosts alone.
""".
-type derivation() :: #{
    tree := network(),
    levels := [{Level :: term(), Distance :: float()}],
    unlabelled := #{Level :: term() => [node()]},
    missing := [{node(), Reason :: term()}]
}.

%% The tree

-doc "Reads the tree of this node from a file. The published name of `load/1`.".
-spec init(file:name_all()) -> ok | {error, error()}.
init(File) -> read(File, init).

-doc "Reads the tree of this node from a file. On an error the previous tree stays.".
-spec load(file:name_all()) -> ok | {error, error()}.
load(File) -> read(File, load).

read(File, Function) ->
    is_file(File) orelse misuse(?MODULE, {Function, 1}, 1, File, "the name of a file"),
    maybe
        {ok, Tree} ?= sderl_dist_file:read(File),
        put_tree(Tree)
    end.

-doc "Sets the tree of this node. On an error the previous tree stays.".
-spec set(network()) -> ok | {error, error()}.
set(Term) ->
    maybe
        {ok, Tree} ?= sderl_dist_tree:parse(Term),
        put_tree(Tree)
    end.

%% An equal term costs nothing: the runtime compares.
put_tree(Tree) -> persistent_term:put(?TREE, Tree).

get_tree() ->
    case persistent_term:get(?TREE, none) of
        none -> sderl_dist_tree:empty();
        Tree -> Tree
    end.

-doc "The tree as it was set; `{network, []}` until then.".
-spec tree() -> network().
tree() -> sderl_dist_tree:term(get_tree()).

-doc "Writes the tree to a file that `load/1` reads.".
-spec save(file:name_all()) -> ok | {error, error()}.
save(File) ->
    is_file(File) orelse misuse(?MODULE, {save, 1}, 1, File, "the name of a file"),
    sderl_dist_file:write(
        File, unicode:characters_to_binary(io_lib:format("%% coding: utf-8~n~tp.~n", [tree()]))
    ).

-doc """
One sentence for people: where the bad term stands, what it is, what to write instead.

```
1> {error, E} = sderl_dist:set({network, [{node, 'a@m1'}, {nodes, ['b@m1']}]}).
2> sderl_dist:format_error(E).
"bad network at [2]: {nodes,[b@m1]} is not a network; write {network, [...]}, {network, Name, [...]} or {node, 'name@host'}"
```
""".
-spec format_error(error()) -> string().
format_error(Error) -> sderl_dist_words:error(Error).

%% Distances

-doc "All nodes of the tree, in its order.".
-spec nodenames() -> [node()].
nodenames() -> sderl_dist_tree:nodes(get_tree()).

-doc "How far apart two nodes are.".
-spec distance(node(), node()) -> float() | {error, {node_not_found, node()}}.
distance(A, B) when is_atom(A), is_atom(B) -> sderl_dist_tree:distance(A, B, get_tree());
distance(A, B) when is_atom(A) ->
    misuse(?MODULE, {distance, 2}, 2, B, "the name of a node, an atom");
distance(A, _) -> misuse(?MODULE, {distance, 2}, 1, A, "the name of a node, an atom").

-doc """
How far nodes are from `From`, for those that the tree has; none if it does not have `From`. A local
call without messages: about a microsecond for each node.
""".
-spec distances(From :: node(), [node()]) -> #{node() => float()}.
distances(From, Nodes) when is_atom(From) ->
    nodes_arg(Nodes, distances, 2, 2),
    sderl_dist_tree:distances(From, Nodes, get_tree());
distances(From, _) ->
    misuse(?MODULE, {distances, 2}, 1, From, "the name of a node, an atom").

-doc """
The nodes of `Nodes` that are nearest to `From`, which may be one of them: several if equally near.
A node that the tree does not have is farther than any other; all are equally far if it does not
have `From`.
""".
-spec nearest(From :: node(), [node()]) -> [node()].
nearest(From, Nodes) when is_atom(From) ->
    nodes_arg(Nodes, nearest, 2, 2),
    sderl_dist_tree:nearest(From, Nodes, get_tree());
nearest(From, _) ->
    misuse(?MODULE, {nearest, 2}, 1, From, "the name of a node, an atom").

-doc """
The largest distance of two nodes, 1.0 if the root has nodes on two branches. 0.0 with less than two
nodes.
""".
-spec max_dist() -> float().
max_dist() -> sderl_dist_tree:max(get_tree()).

-doc "The least distance of two distinct nodes. 0.0 with less than two.".
-spec min_dist() -> float().
min_dist() -> sderl_dist_tree:min(get_tree()).

%% Choosing

-doc """
All nodes of the tree whose distance from `Node` fits; `[]` if none does or the tree lacks `Node`.
""".
-spec choose_nodes(node(), predicate() | [predicate()]) -> [node()].
choose_nodes(Node, Predicates) -> choose(Node, tree, Predicates, choose_nodes, 2).

-doc "The nodes of `Nodes` whose distance from `Node` fits, in their order.".
-spec choose_nodes(node(), [node()], predicate() | [predicate()]) -> [node()].
choose_nodes(Node, Nodes, Predicates) -> choose(Node, Nodes, Predicates, choose_nodes, 3).

-doc "One of `choose_nodes/2`, each as likely as any other; `none` if there is none.".
-spec choose_node(node(), predicate() | [predicate()]) -> node() | none.
choose_node(Node, Predicates) -> any(choose(Node, tree, Predicates, choose_node, 2)).

-doc "One of `choose_nodes/3`, each as likely as any other; `none` if there is none.".
-spec choose_node(node(), [node()], predicate() | [predicate()]) -> node() | none.
choose_node(Node, Nodes, Predicates) -> any(choose(Node, Nodes, Predicates, choose_node, 3)).

any([]) -> none;
any(Nodes) -> lists:nth(rand:uniform(length(Nodes)), Nodes).

choose(Node, Nodes, Predicates, F, A) ->
    is_atom(Node) orelse misuse(?MODULE, {F, A}, 1, Node, "the name of a node, an atom"),
    Nodes =:= tree orelse nodes_arg(Nodes, F, A, 2),
    List = predicates_arg(Predicates, F, A),
    Tree = get_tree(),
    Candidates =
        case Nodes of
            tree -> sderl_dist_tree:nodes(Tree);
            _ -> Nodes
        end,
    Distances = sderl_dist_tree:distances(Node, Candidates, Tree),
    [N || N <- Candidates, is_map_key(N, Distances), fits(map_get(N, Distances), List)].

fits(Distance, Predicates) ->
    lists:all(fun({dist, Op, R}) -> sderl_compare:holds(Op, Distance, R) end, Predicates).

%% Pictures

-doc "Writes the tree to `network.dot`, for Graphviz, as published.".
-spec render() -> {ok, file:name_all()} | {error, error()}.
render() -> render("network.dot").

-doc "Writes the tree to a file: as a picture if its name ends in `.svg`, else for Graphviz.".
-spec render(file:name_all()) -> {ok, file:name_all()} | {error, error()}.
render(File) ->
    is_file(File) orelse misuse(?MODULE, {render, 1}, 1, File, "the name of a file"),
    draw(File, #{}).

-doc """
Writes a tree to a file.

The picture is a dendrogram: from left to right, with a scale of distances, the names of vertices on
the lines that lead to them, and each node in a row of its own. It is made here and needs no other
program.
""".
-spec render(file:name_all(), rendering()) -> {ok, file:name_all()} | {error, error()}.
render(File, Options) ->
    is_file(File) orelse misuse(?MODULE, {render, 2}, 1, File, "the name of a file"),
    rendering_arg(Options),
    draw(File, Options).

draw(File, Options) -> sderl_dist_render:draw(File, Options, get_tree()).

rendering_arg(Options) when is_map(Options) ->
    Bad = [{Key, Value} || Key := Value <- Options, not sderl_dist_render:is_option(Key, Value)],
    Bad =:= [] orelse
        misuse(?MODULE, {render, 2}, 2, hd(Bad),
               "a map with format (dot or svg), network and title, a text of one line");
rendering_arg(Other) ->
    misuse(?MODULE, {render, 2}, 2, Other, "a map with format, network, title").

%% Measuring

-doc "`measure/2` with the usual options.".
-spec measure(scope()) -> {ok, measurement()} | {error, not_running}.
measure(Scope) -> measure(Scope, 1, #{}).

-doc """
Measures round trips between nodes, and clusters them into a tree.

```erlang
{ok, #{tree := Tree, missing := [], fit := Fit}} = sderl_dist:measure(all, #{timeout_ms => 20_000}),
ok = sderl_dist:set(Tree),
ok = sderl_dist:save("measured.config").
```

Each node of a group probes about half of its mates, at most `peers`, so that each two are probed by
one of them: some batches of a few round trips of small messages. A pair's value is the least of its
batches' medians, which noise on the nodes and between them spoils only if it is in all batches. No
link is opened between nodes of different groups: reports come over gateways, and the value of such
a pair is the shortest sum of legs over the gateways that they share, the way of a message. With the
usual options a pair costs 40 messages of about 100 bytes: 2,000 for each node of a group of 50.

The round trips are clustered with complete linkage, and the levels of the tree are cut at the
natural gaps between them. The result says how well the tree fits. `measure/2` does not set the
tree; call `set/1` on each node that is to use it.

Nodes that are dead or slow are listed as `missing`, and delay the answer until the time limit at
most.

Source: the method is the one by which the published library was validated; there it is the mean of
100 batches of 100 messages.
""".
-spec measure(scope(), measuring()) -> {ok, measurement()} | {error, not_running}.
measure(Scope, Options) -> measure(Scope, 2, Options).

measure(Scope, A, Options) ->
    is_scope(Scope) orelse misuse(?MODULE, {measure, A}, 1, Scope, "own, all or {groups, [Group]}"),
    is_map(Options) orelse misuse(?MODULE, {measure, A}, 2, Options, "a map of options"),
    Bad = [{Key, Value} || Key := Value <- Options, not is_measuring(Key, Value)],
    Bad =:= [] orelse misuse(?MODULE, {measure, A}, 2, hd(Bad),
                             "an option of sderl_dist:measuring() in its range"),
    Defaults = #{timeout_ms => 10_000, peers => 32, batches => 4, batch => 5, window => 8,
                 spread_ms => 2000, gap => 2, resolution_us => 50},
    sderl_dist_measure:run(Scope, maps:merge(Defaults, Options)).

is_scope({groups, Groups}) when length(Groups) >= 0 -> true;
is_scope(Scope) -> Scope =:= own orelse Scope =:= all.

%% Values that a node receives from the network have the same bounds (sderl_dist_survey).
is_measuring(Key, N) when Key =:= timeout_ms; Key =:= spread_ms ->
    is_integer(N) andalso N > 0 andalso N =< 600_000;
is_measuring(peers, N) -> is_integer(N) andalso N > 0 andalso N =< 10_000;
is_measuring(gap, N) -> is_number(N) andalso N > 1;
is_measuring(resolution_us, N) -> is_number(N) andalso N >= 0;
is_measuring(Key, N) ->
    lists:member(Key, [batches, batch, window]) andalso is_integer(N) andalso N > 0
        andalso N =< 1000.

%% Deriving

-doc "`derive/2` with the usual options.".
-spec derive(own | all | [node()]) -> {ok, derivation()} | {error, not_running}.
derive(Nodes) -> derive(Nodes, 1, #{}).

-doc """
Makes a tree from the labels of nodes: host, rack, zone, region.

```erlang
{ok, #{tree := Tree}} = sderl_dist:derive(all),
ok = sderl_dist:set(Tree).
```

The nodes are those given; `own`: this node and the members of its groups; `all`: those of other
groups that are known too. Labels are the attributes `{label, Key}` (`m:sderl_attr`), as the
configuration's `labels` or a provider's metadata set them. Values that this node holds are used,
and the others are asked for. Nothing is measured: two nodes are as near as their nearest label in
common says.

A node without a label is placed by its next nearer label, apart from all others, because its place
is unknown. Nodes always have a host, so `{ok, _} = sderl_dist:derive(own, #{levels => [host]})`
needs no label at all.
""".
-spec derive(own | all | [node()], deriving()) -> {ok, derivation()} | {error, not_running}.
derive(Nodes, Options) -> derive(Nodes, 2, Options).

derive(Nodes, A, Options) ->
    Nodes =:= own orelse Nodes =:= all orelse nodes_arg(Nodes, derive, A, 1),
    is_map(Options) orelse misuse(?MODULE, {derive, A}, 2, Options, "a map of options"),
    Bad = [{Key, Value} || Key := Value <- Options, not is_deriving(Key, Value)],
    Bad =:= []
        orelse misuse(?MODULE, {derive, A}, 2, hd(Bad), "an option of sderl_dist:deriving()"),
    sderl_dist_derive:run(Nodes,
                          maps:merge(#{levels => [region, zone, rack, host], timeout_ms => 2000},
                                     Options)).

is_deriving(levels, Levels) -> is_list(Levels) andalso length(Levels) > 0;
is_deriving(labels, Labels) -> is_map(Labels) andalso lists:all(fun is_map/1, maps:values(Labels));
is_deriving(Key, N) -> Key =:= timeout_ms andalso is_measuring(Key, N).

%% Arguments

nodes_arg(Nodes, _, _, _) when length(Nodes) >= 0 -> ok;
nodes_arg(Nodes, F, A, I) -> misuse(?MODULE, {F, A}, I, Nodes, "a list of names of nodes").

predicates_arg({dist, _, _} = Predicate, F, A) ->
    predicates_arg([Predicate], F, A);
predicates_arg(Predicates, F, A) when length(Predicates) >= 0 ->
    case [P || P <- Predicates, not is_predicate(P)] of
        [] -> Predicates;
        [Bad | _] -> no_predicate(Bad, F, A)
    end;
predicates_arg(Other, F, A) ->
    no_predicate(Other, F, A).

is_predicate({dist, Op, R}) -> is_number(R) andalso sderl_compare:is_operator(Op);
is_predicate(_) -> false.

-spec no_predicate(term(), atom(), arity()) -> no_return().
no_predicate(Found, F, A) ->
    misuse(?MODULE, {F, A}, A, Found,
           "{dist, eq | ne | lt | le | gt | ge, Number} or a list of such").

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_city).
-moduledoc """
A simulated city over nodes: the crossings of `m:sderl_vm_city`, in bands of rows on the nodes,
under a tree of time managers. A node's manager is above its crossings, a group's above the nodes of
an s_group, and the root above the groups.

Nodes are in s_groups of `group_size`. Neighbouring bands exchange vehicles, so a group also has the
first node of the next group; the first nodes of all groups, with the groups' managers, are in one
more group. There are no other links. The city, and so the result, is the same on any number of
nodes.

## Metrics

Those of `m:sderl_bench_meter` of the steps alone (an operation is a vehicle that drives on), and

| metric | meaning |
|---|---|
| `seconds` | from the first step to the end of the last one |
| `drives` | vehicles that drove on, in all steps |
| `where` | a hash of the places of all vehicles at the end |
| `groups` | s_groups of nodes |

Source: the description of the City case of Sim-Diasca in Chechina et al., *Evaluating Scalable
Distributed Erlang*, IEEE TPDS 2017.
""".

-export([run/2, bands/2, groups/2, text/1]).
-export_type([params/0]).

-doc """
`side`: crossings in each direction, at least as many as nodes; `vehicles`: how many each crossing
has at the start; `work`: calls of `erlang:phash2/1` for each vehicle that drives on.
""".
-type params() :: #{
    nodes := pos_integer(),
    group_size := pos_integer(),
    side := pos_integer(),
    steps := pos_integer(),
    vehicles := pos_integer(),
    work := non_neg_integer(),
    atom() => term()
}.

-type rows() :: {First :: non_neg_integer(), Last :: non_neg_integer()}.

-define(CALL_MS, 600_000).

-doc """
Starts the nodes, runs it, and stops the nodes. A reason is a term for `sderl_papers_reason:text/1`,
those of the city itself `{city, Reason}`.
""".
-spec run(params(), Label :: unicode:chardata()) -> {ok, #{atom() => term()}} | {error, term()}.
run(#{nodes := Nodes, side := Side}, _) when Nodes > Side ->
    {error, {city, {too_many_nodes, Nodes, Side}}};
run(#{nodes := Count} = Params, Label) ->
    maybe
        ok ?= sderl_fleet:fits(Count),
        {ok, Fleet} ?= sderl_fleet:start(#{
            families => [#{name => n, count => Count, apps => [sderl],
                           args => ["+S", "1:1"]}],
            progress => sderl_progress:reporter([Label, ": starting nodes"])
        }),
        try
            on(Fleet, sderl_fleet:nodes(Fleet), Params)
        after
            sderl_fleet:stop(Fleet)
        end
    end.

on(Fleet, Nodes, #{group_size := Size, side := Side, steps := Steps} = Params) ->
    Groups = groups(Nodes, Size),
    maybe
        ok ?= grouped(Fleet, Groups),
        {ok, Root} ?= built(Fleet, Nodes, Groups, Params),
        {Ran, Usage} = sderl_bench_meter:around(Fleet, Nodes, fun() ->
            sderl_bench_nodes:on(Fleet, hd(Nodes), sderl_city_manager, steps, [Root, Steps],
                                 ?CALL_MS)
        end),
        {ok, {Drives, Seconds}} ?= Ran,
        {ok, Where} ?= sderl_bench_nodes:on(Fleet, hd(Nodes), sderl_city_manager, ask,
                                            [Root, where], ?CALL_MS),
        [] ?= sderl_bench_meter:missing(Nodes, Usage),
        {ok, (sderl_bench_meter:metrics(Usage, Drives))#{
            seconds => Seconds, drives => Drives, where => Where, groups => length(Groups),
            crossings => Side * Side
        }}
    else
        [Node | _] -> {error, {city, {not_metered, Node}}};
        {error, {_, _, {died, Who, Why}}} -> {error, {city, {died, Who, Why}}};
        Error -> Error
    end.

-doc """
The first and the last row of each node. Numbers of rows differ by one at most, the larger ones
first.
""".
-spec bands(Side :: pos_integer(), Nodes :: pos_integer()) -> [rows()].
bands(Side, Nodes) ->
    {Bands, Side} = lists:mapfoldl(
        fun(I, From) ->
            Rows = Side div Nodes + case I =< Side rem Nodes of true -> 1; false -> 0 end,
            {{From, From + Rows - 1}, From + Rows}
        end, 0, lists:seq(1, Nodes)
    ),
    Bands.

-doc "The nodes in groups of a size, in their order; the last may have fewer.".
-spec groups([Node], Size :: pos_integer()) -> [[Node]].
groups(Nodes, Size) when length(Nodes) =< Size -> [Nodes];
groups(Nodes, Size) ->
    {Group, Others} = lists:split(Size, Nodes),
    [Group | groups(Others, Size)].

%% A group also has the first node of the next group, as its last band touches that node's.
grouped(Fleet, Groups) ->
    Firsts = [First || [First | _] <- Groups],
    Next = case Groups of [_] -> [[]]; _ -> [[First] || First <- tl(Firsts) ++ [hd(Firsts)]] end,
    Overlapping = [{{city, Number}, Group ++ More}
                   || {Number, {Group, More}} <- lists:enumerate(lists:zip(Groups, Next))],
    %% With two groups both first nodes are in both: the managers need no other group.
    Root = [{{city, root}, Firsts} || length(Groups) > 2],
    make(Fleet, Overlapping ++ Root).

%% The groups are made one after the other, as they share nodes.
make(_, []) -> ok;
make(Fleet, [{_, Members} = Namespace | Others]) ->
    Count = length(Members),
    maybe
        ok ?= sderl_bench_layout:make(Fleet, [Namespace]),
        ok ?= sderl_bench_impl_s_group:prepare(Fleet, [Namespace],
                                               #{nodes => Count, group_size => Count}),
        make(Fleet, Others)
    end.

%% All calls go over the control channel, which is not a link.
built(Fleet, Nodes, Groups, #{side := Side} = Params) ->
    Bands = lists:zip(Nodes, bands(Side, length(Nodes))),
    Call = fun(Calls, Function) ->
        sderl_bench_nodes:each(Fleet, Calls, sderl_city_manager, Function, ?CALL_MS)
    end,
    maybe
        {ok, Started} ?= Call([{Node, [Band, Params]} || {Node, Band} <- Bands], crossings),
        All = maps:from_list(lists:append(Started)),
        {ok, Lowest} ?= Call([{Node, [Own, touching(Own, Side, All), Side]}
                              || {{Node, _}, Own} <- lists:zip(Bands, Started)], start_node),
        Of = maps:from_list(lists:zip(Nodes, Lowest)),
        {ok, Middle} ?= Call([{hd(Group), [[map_get(Node, Of) || Node <- Group]]}
                              || Group <- Groups], start),
        sderl_bench_nodes:on(Fleet, hd(Nodes), sderl_city_manager, start, [Middle], ?CALL_MS)
    end.

%% A node needs to know only the crossings beside its own.
touching(Own, Side, All) ->
    #{Other => map_get(Other, All)
      || {Place, _} <- Own, Other <- sderl_vm_city:beside(Place, Side)}.

-doc "A reason of the city in words.".
-spec text(term()) -> unicode:chardata().
text({too_many_nodes, Nodes, Side}) ->
    io_lib:format("~w nodes need as many rows of crossings, and there are ~w", [Nodes, Side]);
text({not_metered, Node}) ->
    io_lib:format("node ~ts did not tell what it had sent", [Node]);
text({died, Who, Why}) ->
    io_lib:format("~0tp died in the city: ~0tP; it has no recovery", [Who, Why, 12]);
text(Reason) ->
    io_lib:format("~0tp", [Reason]).

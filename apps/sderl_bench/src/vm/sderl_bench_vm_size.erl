%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_size).
-moduledoc """
The size of a point: the schedulers of one virtual machine, or nodes with the same number of
schedulers each. Pure.
""".

-export([of_point/1, of_line/1, fields/1, axis/1, number/1, schedulers/1, text/1]).
-export_type([size/0, axis/0]).

-doc "Sizes of one kind sort by their number.".
-type size() ::
    {schedulers, pos_integer()} | {nodes, Nodes :: pos_integer(), Schedulers :: pos_integer()}.

-type axis() :: schedulers | nodes.

-doc "The size of a point.".
-spec of_point(#{schedulers := pos_integer(), nodes => pos_integer(), _ => _}) -> size().
of_point(#{schedulers := Schedulers, nodes := Nodes}) -> {nodes, Nodes, Schedulers};
of_point(#{schedulers := Schedulers}) -> {schedulers, Schedulers}.

-doc "The size that a line of a file of results is of.".
-spec of_line(#{binary() => term()}) -> size().
of_line(#{~"schedulers" := Schedulers, ~"nodes" := Nodes}) -> {nodes, Nodes, Schedulers};
of_line(#{~"schedulers" := Schedulers}) -> {schedulers, Schedulers}.

-doc "The fields of a size in such a line; no `nodes` if the virtual machine is not a node.".
-spec fields(size()) -> #{schedulers := pos_integer(), nodes => pos_integer()}.
fields({schedulers, Schedulers}) -> #{schedulers => Schedulers};
fields({nodes, Nodes, Schedulers}) -> #{schedulers => Schedulers, nodes => Nodes}.

-doc "What is varied.".
-spec axis(size()) -> axis().
axis({schedulers, _}) -> schedulers;
axis({nodes, _, _}) -> nodes.

-doc "The number of schedulers, or of nodes.".
-spec number(size()) -> pos_integer().
number({schedulers, Schedulers}) -> Schedulers;
number({nodes, Nodes, _}) -> Nodes.

-doc "The schedulers of all nodes together.".
-spec schedulers(size()) -> pos_integer().
schedulers({schedulers, Schedulers}) -> Schedulers;
schedulers({nodes, Nodes, Schedulers}) -> Nodes * Schedulers.

-doc "In words, such as `2 schedulers`, `1 node` or `2 nodes of 4 schedulers`.".
-spec text(size()) -> unicode:chardata().
text({schedulers, Schedulers}) -> counted(Schedulers, "scheduler");
text({nodes, Nodes, 1}) -> counted(Nodes, "node");
text({nodes, Nodes, Schedulers}) ->
    [counted(Nodes, "node"), " of ", counted(Schedulers, "scheduler")].

counted(Count, Name) -> io_lib:format("~w ~ts~ts", [Count, Name, [$s || Count > 1]]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_size).
-moduledoc """
How much a point has of what is varied: schedulers of one virtual machine, or nodes that have so
many schedulers each. Pure.
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

-doc "A size as it is in such a line: without `nodes` where the virtual machine is no node.".
-spec fields(size()) -> #{schedulers := pos_integer(), nodes => pos_integer()}.
fields({schedulers, Schedulers}) -> #{schedulers => Schedulers};
fields({nodes, Nodes, Schedulers}) -> #{schedulers => Schedulers, nodes => Nodes}.

-doc "What is varied.".
-spec axis(size()) -> axis().
axis({schedulers, _}) -> schedulers;
axis({nodes, _, _}) -> nodes.

-doc "How many there are of what is varied.".
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

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_words).
-moduledoc false.
%% The words for what can be wrong with a plan: what contradicts what, and the remedy.

-export([error/1]).

-define(DEPTH, 20).

-spec error(sderl_pattern:reason()) -> string().
%% Of patterns
error({size_and_groups}) ->
    "size and groups are both given, and each decides the other: leave one of them out";
error({tree_of_groups}) ->
    "the number of groups of a tree follows from branching and levels: give those or size, not "
    "groups";
error({groups_by_attribute}) ->
    "with the order by attribute each value makes its groups: give size, not groups";
error({no_branching}) -> "a tree needs branching: how many nodes each node of it has below";
error({no_size, Pattern}) ->
    text("a ~ts needs size or groups: how large, or how many its groups are", [Pattern]);
error({no_nodes}) -> "there are no nodes to plan for: give at least one";
error({node_twice, Node}) -> text("~0tp is there twice: a node has one home; name it once", [Node]);
error({fewer_gateways_than_hubs, K, H}) ->
    text("each group needs a gateway to each of ~b hubs and has ~b in all: raise gateways to ~b or "
         "lower hubs to ~b", [H, K, H, K]);
error({too_few_groups, Pattern, G, Least}) ->
    text("a ~ts needs ~b groups at least, not ~b: make groups smaller, or take a chain",
         [Pattern, Least, G]);
error({size_too_small, Pattern, Size, Least}) ->
    text("a group of a ~ts cannot have ~b members only: with its gateways it needs ~b; raise size "
         "to that or lower gateways",
         [Pattern, Size, Least]);
error({size_too_small_for_tree, Size}) ->
    text("no tree of these nodes has groups of ~b members at most: raise size or branching, or "
         "lower gateways", [Size]);
error({too_few_nodes, Pattern, Has, Needs}) ->
    text("~tsneeds ~b nodes at least and there are ~b: add nodes, or lower groups, gateways, "
         "branching or levels",
         [case Pattern of any -> "this plan "; _ -> text("this ~ts ", [Pattern]) end,
          max(Needs, Has + 1), Has]);
error({too_large, Members, Size}) ->
    text("a group would have ~b members and size allows ~b: raise size, or for a tree levels or "
         "branching", [Members, Size]);
error({last_too_small, Has, Needs}) ->
    text("the last group would be left with ~b nodes of its own and needs ~b: use the remainder "
         "spread", [Has, Needs]);
error({remainder, Remainder, Groups}) when Remainder > 0 ->
    text("~b nodes are left over when ~b groups are full: use the remainder spread, last or "
         "left_out", [Remainder, Groups]);
error({remainder, Remainder, Groups}) ->
    text("~b nodes are missing to fill ~b groups: use the remainder spread, last or left_out",
         [-Remainder, Groups]);
error({no_value, Node}) ->
    text("~0tp has no value of the attribute that decides the groups: give it one", [Node]);
error({value_too_few, Value, Has, Needs}) ->
    text("the value ~0tP makes a group with ~b nodes of its own, which needs ~b for its gateways: "
         "lower gateways, or add nodes there",
         [Value, ?DEPTH, Has, Needs]);
error({no_distance, A, B}) ->
    text("there is no distance between ~0tp and ~0tp: each pair needs one", [A, B]);
error({bad_traffic, Row}) ->
    text("~0tP is no row of a traffic matrix: write {FromNodes, ToNodes, MessagesPerSecond}",
         [Row, ?DEPTH]);
error({names_number, Has, Needs}) ->
    text("there are ~b names for ~b groups: give one for each group of workers", [Has, Needs]);
error({name_twice, Name}) ->
    text("two groups are called ~0tP: give each a name of its own", [Name, ?DEPTH]);
error({reserved_name}) ->
    "a group cannot be called undefined, which is the free namespace: choose another name";
%% Of plans as terms
error({not_a_plan}) ->
    "this term is no plan: see the type sderl_pattern:plan() for what one looks like";
error({plan_version, Version}) ->
    text("this is a plan of version ~0tP, and version 1 is known here: make it anew",
         [Version, ?DEPTH]);
error({empty_group, Name}) ->
    text("the group ~0tP has no nodes: give it some or take it out", [Name, ?DEPTH]);
error({node_twice_in_group, Node, Name}) ->
    text("~0tp is in the group ~0tP twice: name it once", [Node, Name, ?DEPTH]);
error({edge_of_unknown_group, Name}) ->
    text("an edge names the group ~0tP, which is not in the plan: add the group or take the edge "
         "out", [Name, ?DEPTH]);
error({gateway_not_member, Node, Group}) ->
    text("~0tp is a gateway to the group ~0tP and no member of it: add it to the group's nodes",
         [Node, Group, ?DEPTH]);
error({gateway_twice, Node}) ->
    text("~0tp is a gateway of two edges: name another node for one of them, or make one edge of "
         "the two", [Node]);
error({cannot_write, File, Why}) -> text("cannot write ~ts: ~ts", [File, file:format_error(Why)]);
error({cannot_read, File, Why}) -> text("cannot read ~ts: ~ts", [File, file:format_error(Why)]);
error({not_one_term, File, Count}) -> text("~ts has ~b terms, and a plan is one", [File, Count]);
%% Of growing and shrinking
error({not_in_plan, Node}) -> text("~0tp is not in the plan: name only nodes that are", [Node]);
error({none_to_spare, Group}) ->
    text("no group has a node to spare for ~0tP: bring more nodes at a time, or plan anew",
         [Group, ?DEPTH]);
error({too_few_nodes_for, Pattern, Groups}) ->
    text("so few nodes do not make a ~ts of ~b groups with these gateways: keep more nodes, or "
         "plan anew with smaller groups or another pattern",
         [Pattern, Groups]);
error({full, Pattern}) ->
    text("every group of this ~ts is full and it cannot have one more: plan anew with a larger "
         "size", [Pattern]);
%% Of the planner
error({unknown_limit, Key}) ->
    text("~0tp is no limit of a plan: see sderl_plan:limits() for those that are", [Key]);
error({limit, max_links, Limit, Links}) ->
    text("a node of this plan has ~b links and max_links allows ~b: allow ~b, make groups smaller "
         "or gateways fewer", [Links, Limit, Links]);
error({limit, max_group, Limit, Size}) ->
    text("a group of this plan has ~b members and max_group allows ~b: allow ~b, use more hubs, or "
         "another pattern", [Size, Limit, Size]);
error({no_plan, Nodes, Limits, Closest}) ->
    text("no plan of ~b nodes keeps to ~ts: ~ts",
         [Nodes, limits(Limits), closest(Closest, Limits)]);
%% Of applying
error({not_running}) -> "the application sderl does not run on this node: start it";
error({unreachable, Node}) ->
    text("~0tp cannot be connected: is it up, reachable and of the same cookie? start it, or plan "
         "without it", [Node]);
error({no_library, Node}) ->
    text("the application sderl does not run on ~0tp: start it there, or plan without that node",
         [Node]);
error({too_old, Node}) ->
    text("~0tp runs a version of sderl that knows no plans: upgrade it first", [Node]);
error({no_answer, Node, Why}) ->
    text("~0tp gave no answer (~0tP): look at its load, or raise timeout_ms", [Node, Why, ?DEPTH]);
error({refuses, Node, connect_all}) ->
    text("~0tp runs with connect_all true: start it with -connect_all false", [Node]);
error({refuses, Node, Why}) -> text("~0tp takes no part in groups: ~0tP", [Node, Why, ?DEPTH]);
error({other_identity, Group, Nodes}) ->
    text("several groups called ~0tP run, which never become one (~0tP have one each): delete all "
         "but one of them, or name the plan's group otherwise",
         [Group, ?DEPTH, Nodes, ?DEPTH]);
error({left_out, Group, Nodes}) ->
    text("~0tP was not joined by ~ts",
         [Group, ?DEPTH, lists:join(", ", [text("~0tp (~0tp)", [N, W]) || {N, W} <- Nodes])]);
error({step_failed, Step, Why}) ->
    text("~0tP failed: ~0tP; call again, it goes on where it stopped", [Step, ?DEPTH, Why, ?DEPTH]);
error({no_member, Group}) ->
    text("no member of ~0tP can be reached to change it: see that one of them is up",
         [Group, ?DEPTH]);
error(Other) -> text("~0tP", [Other, ?DEPTH]).

limits(Limits) ->
    lists:join(" and ", [text("~ts ~0tp", [K, V])
                         || K <- [max_links, max_group, gateways], #{K := V} <- [Limits]]).

closest(none, _) ->
    "no pattern can be made of so few nodes; give at least two nodes for each gateway";
closest({Limit, Needed, Pattern}, Limits) ->
    text("the closest is a ~ts with ~ts ~b; allow that~ts", [Pattern, Limit, Needed, case Limits of
        #{gateways := 1} -> "";
        _ -> ", or have one gateway of an edge"
    end]).

text(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_words).
-moduledoc false.
%% One sentence for each thing that may be wrong with a tree of distances: where, what, and what to
%% write instead.

-export([error/1, remedy/1]).

%% Large terms are cut: a sentence shall stay one.
-define(DEPTH, 12).

-spec error(sderl_dist_file:error()) -> string().
error(unconnected_graph) ->
    "the file has more than one term, so that no path leads from some nodes to others; put them "
    "into one {network, [...]}";
error({file, File, no_term}) ->
    sentence("the file ~ts has no term; write {network, [...]} and a full stop", [File]);
error({file, File, Reason}) ->
    sentence("the file ~ts cannot be read: ~ts", [File, file:format_error(Reason)]);
error({bad_network, Path, Found, Expected}) ->
    sentence("bad network~ts: ~0tP ~ts", [place(Path), Found, ?DEPTH, remedy(Expected)]).

place([]) -> "";
place(Path) -> [" at ", steps(Path)].

steps(Path) -> [step(Step) || Step <- Path].

step(Position) when is_integer(Position) -> [$[, integer_to_list(Position), $]];
step(node) -> ".node".

-spec remedy(atom() | {unique_node, sderl_dist_tree:path()}) -> iodata().
remedy(network) ->
    "is not a network; write {network, [...]}, {network, Name, [...]} or {node, 'name@host'}";
remedy(node_name) ->
    "is not a node name; write an atom, such as 'name@host'";
remedy(less_depth) ->
    "lies too deep; write at most 1000 networks in each other";
remedy({unique_node, First}) ->
    ["is there already", [[", at ", steps(First)] || First =/= []], "; a node has one place"].

sentence(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_model_text).
-moduledoc """
A state of `m:sderl_model` as text.
""".

-export([format/1]).

-doc "Groups, islands and hidden nodes with their names, then the links of each node.".
-spec format(sderl_model_state:state()) -> unicode:chardata().
format(#{
    s_groups := Groups,
    free_groups := Free,
    free_hidden_groups := Hidden,
    nodes := Nodes,
    down := Down,
    open := Open
}) ->
    [[io_lib:format("group ~0tp: ~ts~ts~n", [G, nodes_text(Ms), names_text(Ns)])
      || {G, Ms, Ns} <- Groups],
     [io_lib:format("island: ~ts~ts~n", [nodes_text(Ms), names_text(Ns)]) || {Ms, Ns} <- Free],
     [io_lib:format("hidden: ~ts~ts~n", [nodes_text([N]), names_text(Ns)]) || {N, Ns} <- Hidden],
     [io_lib:format("down: ~ts~n", [nodes_text(Down)]) || Down =/= []],
     links_text(lists:sort(maps:to_list(Nodes))),
     [io_lib:format("open: ~0tp~n", [C]) || C <- Open]].

nodes_text(Nodes) -> lists:join(" ", [atom_to_list(N) || N <- Nodes]).

names_text(Ns) when map_size(Ns) =:= 0 -> "";
names_text(Ns) ->
    Texts = [io_lib:format("~0tp -> ~0tp", [Name, Pid])
             || {Name, #{pid := Pid}} <- lists:sort(maps:to_list(Ns))],
    [", names ", lists:join(", ", Texts)].

links_text(Nodes) ->
    case [[" ", atom_to_list(N), "-", nodes_text_comma(Higher)]
          || {N, {_, Links, _}} <- Nodes,
             Higher <- [[L || L <- Links, L > N]],
             Higher =/= []] of
        [] -> "links: none\n";
        Text -> ["links:", Text, "\n"]
    end.

nodes_text_comma(Nodes) -> lists:join(",", [atom_to_list(N) || N <- Nodes]).

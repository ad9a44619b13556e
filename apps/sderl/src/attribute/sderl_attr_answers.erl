%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_answers).
-moduledoc false.
%% The answers of other nodes to questions of this one, and the nodes that did not answer: the
%% well-formed part, and the part that is kept in the tables (`sderl_attr_table`), which the server
%% alone writes.

-export([are_sound/2, keep/2]).
-export_type([answer/0, silent/0]).

-type answer() :: {node(), direct | far, SentAt :: integer(), [sderl_attr_table:entry()]}.

-doc "The nodes that did not answer and are not asked until then.".
-type silent() :: {node() | {gateway, node()}, Until :: integer()}.

-doc "Whether the terms are such.".
-spec are_sound([term()], [term()]) -> boolean().
are_sound(Answers, Silent) ->
    lists:all(fun is_answer/1, Answers) andalso lists:all(fun is_silent/1, Silent).

is_answer({Node, How, SentAt, Entries}) when is_atom(Node), is_integer(SentAt) ->
    (How =:= direct orelse How =:= far) andalso sderl_attr_table:are_entries(Entries);
is_answer(_) -> false.

is_silent({{gateway, Node}, Until}) -> is_atom(Node) andalso is_integer(Until);
is_silent({Node, Until}) -> is_atom(Node) andalso is_integer(Until);
is_silent(_) -> false.

-doc "Writes them to the tables.".
-spec keep([answer()], [silent()]) -> ok.
keep(Answers, Silent) ->
    lists:foreach(fun({Node, Until}) -> sderl_attr_table:silent(Node, Until) end, Silent),
    lists:foreach(fun({Node, _, _, _}) -> sderl_attr_table:spoke(Node) end, Answers),
    Linked = nodes(connected),
    lists:foreach(fun({Node, How, SentAt, Entries}) ->
        %% Not of a node whose link was lost meanwhile, nor of this node, whose values are here.
        (How =:= far orelse lists:member(Node, Linked)) andalso
            lists:foreach(fun({Name, Value, Why, Age, Kind, V}) ->
                sderl_attr_table:keep(Node, Name, Value, Why, {SentAt - Age, Kind}, V)
            end, Entries)
    end, Answers).

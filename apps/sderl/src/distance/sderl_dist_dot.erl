%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_dot).
-moduledoc false.
%% A tree of distances as text for Graphviz, from left to right, nodes as rectangles, as published.

-export([draw/2, label/1]).

-spec draw(sderl_dist_tree:vertex(), Title :: unicode:chardata()) -> unicode:chardata().
draw(Root, Title) ->
    {Lines, _, _} = vertex(Root, 0),
    ["graph distances {\n", "    rankdir=LR;\n",
     [["    label=", quoted(Title), ";\n"] || not string:is_empty(Title)],
     Lines, "}\n"].

%% Numbers as names: those of vertices need not be unique.
vertex({leaf, Node}, Id) ->
    {line([id(Id), " [shape=box, label=", quoted(label(Node)), "]"]), Id, Id + 1};
vertex({vertex, Name, Inner}, Id) ->
    {Lines, Next} = lists:mapfoldl(fun(Vertex, Free) ->
        {Below, Top, After} = vertex(Vertex, Free),
        {[Below, line([id(Id), " -- ", id(Top)])], After}
    end, Id + 1, Inner),
    {[line([id(Id), " [shape=ellipse, label=", quoted(label(Name)), "]"]) | Lines], Id, Next}.

line(Text) -> ["    ", Text, ";\n"].

id(Number) -> ["v", integer_to_list(Number)].

%% Backslashes begin escapes.
quoted(Text) ->
    [$",
     lists:join("\\\"", string:split(lists:join("\\\\", string:split(Text, "\\", all)), "\"", all)),
     $"].

-doc """
The name of a node or a vertex on one line: texts as they are, other terms as Erlang writes them.
""".
-spec label(term()) -> unicode:chardata().
label(Name) when is_atom(Name) ->
    printable(atom_to_list(Name));
label(Name) when is_binary(Name) ->
    case unicode:characters_to_list(Name) of
        Text when is_list(Text) -> text(Text, Name);
        _ -> term(Name)
    end;
label(Name) ->
    text(Name, Name).

text([_ | _] = Text, Name) ->
    case io_lib:printable_unicode_list(Text) of
        true -> printable(Text);
        false -> term(Name)
    end;
text(_, Name) ->
    term(Name).

term(Name) -> printable(lists:flatten(io_lib:format("~0tp", [Name]))).

%% Ends of lines would break a line; what nobody sees would make one name look like another, or be
%% no XML.
printable(Text) ->
    Line = [case lists:member(C, "\t\n\r") of true -> $\s; false -> C end || C <- Text],
    case unicode:characters_to_list(sderl_visible:text(Line)) of
        Shown when is_list(Shown) -> Shown
    end.

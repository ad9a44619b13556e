%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_print).
-moduledoc """
Prints JSON for people: a value that fits is on one line, elements of a list share lines, and the
keys of an object are sorted. Pure.
""".

-export([text/1]).

-define(COLUMNS, 100).

-doc "A term of a file as text, in UTF-8.".
-spec text(sderl_ops_walker:json()) -> iodata().
text(Term) -> [print(Term, 0, 0), $\n].

%% `Indent` is that of the line, `Used` are its columns that are taken, with those of a comma after
%% it.
print(Term, Indent, Used) ->
    Line = flat(Term),
    case Used + string:length(Line) =< ?COLUMNS of
        true -> Line;
        false -> print_long(Term, Indent + 2)
    end.

print_long(Map, Indent) when map_size(Map) > 0 ->
    Pairs = [print_pair(Pair, Indent) || Pair <- lists:sort(maps:to_list(Map))],
    [${, line(Indent), lists:join([$,, line(Indent)], Pairs), line(Indent - 2), $}];
print_long([_ | _] = List, Indent) ->
    Lines = case lists:all(fun is_plain/1, List) of
        true -> fill([flat(Term) || Term <- List], ?COLUMNS - Indent);
        false -> [print(Term, Indent, Indent + 1) || Term <- List]
    end,
    [$[, line(Indent), lists:join([$,, line(Indent)], Lines), line(Indent - 2), $]];
print_long(Term, _) ->
    flat(Term).

print_pair({Key, Value}, Indent) ->
    Name = [json:encode(Key), ~": "],
    [Name, print(Value, Indent, Indent + string:length(Name) + 1)].

is_plain(Term) -> not is_map(Term) andalso not is_list(Term).

%% As many texts on a line as fit.
fill([First | Rest], Room) ->
    {Lines, Last, _} = lists:foldl(fun(Text, {Lines, Line, Length}) ->
        case Length + 2 + string:length(Text) < Room of
            true -> {Lines, [Line, ~", ", Text], Length + 2 + string:length(Text)};
            false -> {[Line | Lines], Text, string:length(Text)}
        end
    end, {[], First, string:length(First)}, Rest),
    lists:reverse([Last | Lines]).

flat(Map) when is_map(Map) ->
    [${, lists:join(~", ", [[json:encode(Key), ~": ", flat(Value)]
                            || {Key, Value} <- lists:sort(maps:to_list(Map))]), $}];
flat(List) when is_list(List) ->
    [$[, lists:join(~", ", [flat(Term) || Term <- List]), $]];
flat(Term) ->
    json:encode(Term).

line(Indent) -> [$\n, lists:duplicate(Indent, $\s)].

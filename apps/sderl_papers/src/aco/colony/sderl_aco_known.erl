%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_known).
-moduledoc """
Lists of best-known costs, in the published formats. The name of the file tells the format.

| | |
|---|---|
| `best_known.txt` | `NAME COST` on each line; lines that begin with `#` are comments |
| `wtopt40.txt`, `wtbest100b.txt` | a cost a line, of `wt40.001`, `wt40.002` and so on |
| `optimal_results.txt`, `optimal_results_prime.txt` | some lines of heading; `NAME COST` a line; a line of dashes, and what comes after it is text |

Where several lists know an instance, the least cost is taken.
""".

-export([is_list/1, parse/2]).

-doc "Whether a file of this name is such a list.".
-spec is_list(file:filename()) -> boolean().
is_list(File) -> kind(filename:basename(File)) =/= none.

kind("best_known.txt") ->
    pairs;
kind(Name) ->
    case {re:run(Name, "^wt(?:opt|best)(\\d{1,5})[a-z]?\\.txt$", [{capture, all_but_first, list}]),
          re:run(Name, "^optimal_results\\w*\\.txt$")} of
        {{match, [Size]}, _} -> {column, Size};
        {_, {match, _}} -> table;
        {nomatch, nomatch} -> none
    end.

-doc "The costs by the names of the instances.".
-spec parse(file:filename(), Content :: binary()) ->
    {ok, #{binary() => non_neg_integer()}} | {error, sderl_aco_file:reason()}.
parse(File, Content) ->
    Lines = by_line(sderl_aco_file:words(Content)),
    maybe
        {ok, Known} ?=
            case kind(filename:basename(File)) of
                pairs -> pairs(Lines, File, []);
                {column, Size} -> column(Lines, File, Size, 1, []);
                table -> table(Lines, File)
            end,
        {ok, lists:foldl(fun({Name, Cost}, Map) ->
            maps:update_with(Name, fun(C) -> min(C, Cost) end, Cost, Map)
        end, #{}, Known)}
    end.

by_line([{Word, Line} | Words]) ->
    {Same, Others} = lists:splitwith(fun({_, L}) -> L =:= Line end, Words),
    [{Line, [Word | [W || {W, _} <- Same]]} | by_line(Others)];
by_line([]) ->
    [].

pairs([{_, [<<"#", _/binary>> | _]} | Lines], File, Known) ->
    pairs(Lines, File, Known);
pairs([{Line, Words} | Lines], File, Known) ->
    case pair(Words) of
        {ok, Pair} -> pairs(Lines, File, [Pair | Known]);
        error ->
            sderl_aco_file:bad(File, Line, "expected the name of an instance and its cost, a whole "
                                           "number, found ~ts", [shown(Words)])
    end;
pairs([], _, Known) ->
    {ok, Known}.

column([{Line, Words} | Lines], File, Size, Index, Known) ->
    case Words of
        [Word] ->
            case cost(Word) of
                {ok, Cost} ->
                    Name = iolist_to_binary(["wt", Size, io_lib:format(".~3..0w", [Index])]),
                    column(Lines, File, Size, Index + 1, [{Name, Cost} | Known]);
                error ->
                    expected_cost(File, Line, Words)
            end;
        _ ->
            expected_cost(File, Line, Words)
    end;
column([], _, _, _, Known) ->
    {ok, Known}.

expected_cost(File, Line, Words) ->
    sderl_aco_file:bad(File, Line, "expected one cost, a whole number, found ~ts", [shown(Words)]).

table(Lines, File) ->
    case lists:dropwhile(fun({_, Words}) -> pair(Words) =:= error end, Lines) of
        [] ->
            sderl_aco_file:bad(
                File, 1, "expected lines with the name of an instance and its cost, found none", []
            );
        Rows ->
            pairs(lists:takewhile(fun({_, [First | _]}) -> not is_rule(First) end, Rows), File, [])
    end.

is_rule(Word) -> byte_size(Word) > 2 andalso lists:usort(binary_to_list(Word)) =:= "-".

pair([Name, Word]) ->
    case cost(Word) of
        {ok, Cost} -> {ok, {iolist_to_binary(string:replace(Name, ".txt", "")), Cost}};
        error -> error
    end;
pair(_) ->
    error.

cost(Word) -> sderl_aco_file:whole(Word, 18).

shown(Words) -> sderl_aco_file:shown(iolist_to_binary(lists:join(" ", Words))).

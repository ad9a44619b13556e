%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_range).
-moduledoc """
Ranges of names, and the order of names with numbers. `web1..web20` is `web1`, `web2`, ..., `web20`.

The two ends of a range differ only in numbers, and all numbers that differ grow by the same: so
`web1@10.0.0.5..web3@10.0.0.7` is a node on each of three machines. `web08..web10` keeps the width
of its numbers. Pure.
""".

-export([expand/1, collapse/1, parts/1, in_order/1, in_order/2]).

-define(MOST, 20_000).
%% Fewer names are as short when they are written out.
-define(LEAST, 3).

-doc "The names that a text stands for. A text without `..` is one name. An error is a sentence.".
-spec expand(binary()) -> {ok, [binary(), ...]} | {error, string()}.
expand(Text) ->
    case binary:split(Text, ~"..", [global]) of
        [_] -> {ok, [Text]};
        [<<_, _/binary>> = First, <<_, _/binary>> = Last] -> between(First, Last);
        _ -> {error, "a range: it is FIRST..LAST, as web1..web20"}
    end.

between(First, Last) ->
    {Parts, To} = {parts(First), parts(Last)},
    case growth(Parts, To) of
        By when is_integer(By), By < ?MOST ->
            Names = [grown(Parts, To, Step) || Step <- lists:seq(0, By)],
            case lists:last(Names) of
                Last -> {ok, Names};
                _ -> {error, "a range: its numbers do not lead from one end to the other"}
            end;
        By when is_integer(By) ->
            {error, "a range of at most " ++ integer_to_list(?MOST) ++ " names"};
        none ->
            {error, "a range: its ends differ only in numbers, which all grow by the same, as in "
                    "web1..web20"}
    end.

-doc "The same names in the same order, with a range for each series of neighbours.".
-spec collapse([binary()]) -> [binary()].
collapse([]) -> [];
collapse([First | Rest]) ->
    Parts = parts(First),
    {Count, Later} = follow(First, Parts, Rest, none, 1),
    case Count >= ?LEAST of
        true ->
            Last = lists:nth(Count - 1, Rest),
            [<<First/binary, "..", Last/binary>> | collapse(Later)];
        false ->
            [First | collapse(Rest)]
    end.

%% How many names, with the first one, are a range. The second name says which numbers grow.
follow(First, Parts, [Next | Later] = Rest, To, Count) ->
    Second = case To of none -> parts(Next); _ -> To end,
    case Count < ?MOST andalso binary:match(First, ~"..") =:= nomatch
        andalso growth(Parts, Second) =:= 1 andalso grown(Parts, Second, Count) of
        Next -> follow(First, Parts, Later, Second, Count + 1);
        _ -> {Count, Rest}
    end;
follow(_, _, [], _, Count) ->
    {Count, []}.

-doc "The parts of a name between its numbers, and the numbers: every second part is one.".
-spec parts(binary()) -> [binary()].
parts(Name) -> re:split(Name, "([0-9]+)", [{return, binary}]).

-doc "Names in the order of the numbers in them: h2 before h10.".
-spec in_order([binary()]) -> [binary()].
in_order(Names) -> in_order(fun(Name) -> Name end, Names).

-doc "The same by a part of each name.".
-spec in_order(fun((binary()) -> binary()), [binary()]) -> [binary()].
in_order(Part, Names) ->
    [Name || {_, Name} <- lists:sort([{natural(Part(Name)), Name} || Name <- Names])].

natural(Text) -> [whole(Part) || Part <- parts(Text)].

whole(<<Digit, _/binary>> = Part) when Digit >= $0, Digit =< $9 -> binary_to_integer(Part);
whole(Part) -> Part.

%% By how much all the numbers that differ grow.
growth(First, Last) when length(First) =/= length(Last) -> none;
growth(First, Last) ->
    Pairs = [{Index rem 2, A, B} || {Index, A, B} <- lists:zip3(lists:seq(1, length(First)), First,
                                                                 Last), A =/= B],
    case lists:usort([difference(Pair) || Pair <- Pairs]) of
        [By] when is_integer(By), By > 0 -> By;
        _ -> none
    end.

difference({0, A, B}) -> binary_to_integer(B) - binary_to_integer(A);
difference({1, _, _}) -> none.

grown(First, Last, Step) ->
    iolist_to_binary([case A =:= B of true -> A; false -> number(A, Step) end
                      || {A, B} <- lists:zip(First, Last)]).

number(<<$0, _, _/binary>> = Text, Step) ->
    string:pad(integer_to_list(binary_to_integer(Text) + Step), byte_size(Text), leading, $0);
number(Text, Step) ->
    integer_to_list(binary_to_integer(Text) + Step).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_file).
-moduledoc """
Files with instances, in the published formats: whole numbers with white space between them.

- The number of jobs n, then n durations, n weights and n due dates (`wt40.001`,
  `wt_100_prime_1.txt`).
- The same without n, once or several times in one file (`wt40.txt`): how many jobs there are is
  known from the name, `wt40...`, `wt_40...` or `size40...`, or told. The instances get the names
  `wt40.001`, `wt40.002` and so on.

An error is `{bad_file, File, Line, Text}`, with the expected and the found text.
""".

-export([parse/3]).
-export([words/1, whole/2, shown/1, bad/4]).
-export_type([reason/0]).

-doc "For `sderl_aco:text/1`.".
-type reason() ::
    {bad_file, file:filename(), Line :: pos_integer(), unicode:chardata()}
    | {cannot_read, file:filename(),
       file:posix() | badarg | terminated | system_limit | too_large | not_regular | no_instances}.

%% Longer numbers are taken for mistakes. Sums of products of shorter ones are in the range of a
%% float.
-define(MOST_DIGITS, 12).

-doc """
The instances of a file. `Size` is the number of jobs where the name does not tell, or `undefined`.
""".
-spec parse(file:filename(), Content :: binary(), Size :: pos_integer() | undefined) ->
    {ok, [sderl_aco_instance:instance()]} | {error, reason()}.
parse(File, Content, Told) ->
    maybe
        {ok, Words} ?= numbers(words(Content), File, []),
        {ok, Size, Numbers} ?= shape(File, Words, size(Told, File)),
        instances(File, Size, Numbers)
    end.

size(undefined, File) -> size_of_name(name(File));
size(Told, _) -> Told.

size_of_name(Name) ->
    case re:run(Name, "^(?:wt_?|size)(\\d{1,5})(?:\\D|$)", [{capture, all_but_first, binary}]) of
        {match, [Digits]} -> case binary_to_integer(Digits) of 0 -> undefined; Size -> Size end;
        nomatch -> undefined
    end.

%% The name of a file without `.txt`.
name(File) ->
    Name = unicode:characters_to_binary(filename:basename(File, ".txt")),
    true = is_binary(Name),
    Name.

-doc "All words of a text with their lines.".
-spec words(binary()) -> [{binary(), Line :: pos_integer()}].
words(Content) ->
    [
        {Word, Line}
     || {Line, Text} <- lists:enumerate(binary:split(Content, <<"\n">>, [global])),
        Word <- binary:split(Text, [<<" ">>, <<"\t">>, <<"\r">>], [global, trim_all])
    ].

-doc "A word as a whole number, 0 or more.".
-spec whole(binary(), Most :: pos_integer()) -> {ok, non_neg_integer()} | error.
whole(Word, MostDigits) when byte_size(Word) =< MostDigits ->
    case lists:all(fun(Digit) -> Digit >= $0 andalso Digit =< $9 end, binary_to_list(Word)) of
        true -> {ok, binary_to_integer(Word)};
        false -> error
    end;
whole(_, _) ->
    error.

-doc "An error about a line of a file.".
-spec bad(file:filename(), Line :: pos_integer(), Format :: string(), [term()]) ->
    {error, reason()}.
bad(File, Line, Format, Args) -> {error, {bad_file, File, Line, io_lib:format(Format, Args)}}.

numbers([{Word, Line} | Words], File, Numbers) ->
    case whole(Word, ?MOST_DIGITS) of
        {ok, Number} -> numbers(Words, File, [{Number, Line} | Numbers]);
        error ->
            bad(File, Line, "expected a whole number from 0, of ~w digits at most, found ~ts",
                [?MOST_DIGITS, shown(Word)])
    end;
numbers([], _, Numbers) ->
    {ok, lists:reverse(Numbers)}.

-doc "The beginning of what was found, in quotes.".
-spec shown(binary()) -> unicode:chardata().
shown(Word) ->
    Start = binary:part(Word, 0, min(30, byte_size(Word))),
    case io_lib:printable_latin1_list(binary_to_list(Start)) of
        true -> [$", binary_to_list(Start), ["..." || Start =/= Word], $"];
        false -> "what is no text"
    end.

%% With the number of jobs before it, or without.
shape(File, [], _) ->
    bad(File, 1, "expected the number of jobs and three numbers for each, found an empty file", []);
shape(File, [{N, Line} | Rest] = All, Size) ->
    Found = length(Rest),
    Alone = case Rest of [{_, Line} | _] -> false; _ -> true end,
    if
        N > 0, Found =:= 3 * N -> {ok, N, Rest};
        %% A first duration may be the number of jobs by chance. One that is alone on its line,
        %% where one number less is there than is to follow, is none.
        is_integer(Size), (Found + 1) rem (3 * Size) =:= 0,
        N =/= Size orelse Found > 3 * N orelse not Alone ->
            {ok, Size, All};
        is_integer(Size), N =/= Size ->
            {_, Last} = lists:last(All),
            bad(File, Last, "expected 3 x ~w numbers for each instance of ~w jobs, or the number "
                            "of jobs before them; found ~w numbers",
                [Size, Size, Found + 1]);
        N =:= 0 -> bad(File, Line, "expected the number of jobs, at least 1, found 0", []);
        Found < 3 * N ->
            {_, Last} = lists:last(All),
            bad(File, Last, "expected 3 x ~w numbers after the number of jobs ~w (durations, "
                            "weights, due dates), found ~w", [N, N, Found]);
        true ->
            {_, Extra} = lists:nth(3 * N + 1, Rest),
            bad(File, Extra, "expected the end after 3 x ~w numbers, found ~w more",
                [N, Found - 3 * N])
    end.

instances(File, Size, Numbers) ->
    case [Line || {0, Line} <- durations(Size, Numbers)] of
        [Line | _] -> bad(File, Line, "expected a duration of at least 1, found 0", []);
        [] -> {ok, named(name(File), Size, cut(3 * Size, [Number || {Number, _} <- Numbers]))}
    end.

durations(_, []) ->
    [];
durations(Size, Numbers) ->
    {One, Others} = lists:split(3 * Size, Numbers),
    lists:sublist(One, Size) ++ durations(Size, Others).

named(Name, Size, [One]) ->
    [instance(Name, Size, One)];
named(Name, Size, Several) ->
    [instance(iolist_to_binary([Name, io_lib:format(".~3..0w", [Index])]), Size, One)
     || {Index, One} <- lists:enumerate(Several)].

instance(Name, Size, Numbers) ->
    [P, W, D] = cut(Size, Numbers),
    #{name => Name, n => Size, p => list_to_tuple(P), w => list_to_tuple(W), d => list_to_tuple(D)}.

cut(_, []) ->
    [];
cut(Length, List) ->
    {Part, Rest} = lists:split(Length, List),
    [Part | cut(Length, Rest)].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_walker).
-moduledoc """
Checks a term against a schema of rules, and returns it with known keys as atoms and defaults filled
in. All problems are found at once, each with its path.

The term has the shape of decoded JSON: maps with binaries as keys, lists, binaries, numbers,
`true`, `false` and `null`. No atom is made.
""".

-export([walk/3, sentence/1, nearest/2, no_such/4]).
-export_type([rule/0, problem/0, path/0, json/0]).

-type json() :: #{binary() => json()} | [json()] | binary() | number() | boolean() | null.

-type path() :: [binary() | pos_integer()].

-doc """
A problem and its path. `Found` is the value there, for the sentence "`Found` is not `Expected`"; or
`missing`, `unknown` or `twice` for a key, `hidden` for a value that may be a secret, or `explained`
if `Expected` is the whole sentence.
""".
-type problem() :: {path(), Found :: term(), Expected :: string()}.

-doc """
| rule | allows | becomes |
|---|---|---|
| `{object, What, Fields}` | an object of these keys | a map with atoms as keys |
| `{by_key, What, [{Key, Object}]}` | the object whose key is there | that |
| `{by_type, Key, What, [{Type, Object}]}` | the object that its key `Key` names | that, with `Key` |
| `{named, Key, Value, Most}` | an object of the user's own keys | a map with binaries as keys |
| `{list, What, Least, Most, Item}` | a list of so many | a list |
| `{ranges, What, Least, Most, Item}` | a list in which a text may stand for many (`m:sderl_ops_range`) | all of them |
| `{brief, Keys, Object}` | the object, or text, which is the value of these keys | as the object |
| `{either, What, [{Shape, Rule}]}` | `text`, `object`, `list` or `number`, each by a rule | as that rule |
| `{choice, Atoms}` | one of these words | the atom |
| `{whole, What, Least, Most}` | a whole number | it |
| `boolean` | `true` or `false` | it |
| `{matches, Regex, What}` | text that matches | it |
| `{text, What, Most}` | text of 1 to so many bytes without NUL | it |
| `{path, What}` | a path; a relative one begins at the file's folder | an absolute path |
| `{template, What, Most}` | text with known variables only | it |
| `{reference, [{Key, Rule}]}` | an object of exactly one of these keys | `{Key, Value}` |
| `value` | anything, not too deep | it |
| `{hidden, Rule}` | as the rule, but never shown | as the rule |
""".
-type rule() ::
    {object, What :: string(), [field()]}
    | {by_key, What :: string(), [{atom(), rule()}]}
    | {by_type, Key :: atom(), What :: string(), [{atom(), rule()}]}
    | {named, rule(), rule(), pos_integer()}
    | {list, What :: string(), non_neg_integer(), pos_integer(), rule()}
    | {ranges, What :: string(), non_neg_integer(), pos_integer(), rule()}
    | {brief, [atom()], rule()}
    | {either, What :: string(), [{text | object | list | number, rule()}]}
    | {choice, [atom()]}
    | {whole, What :: string(), integer(), integer()}
    | boolean
    | {matches, Regex :: string(), What :: string()}
    | {text, What :: string(), pos_integer()}
    | {path, What :: string()}
    | {template, What :: string(), pos_integer()}
    | {reference, [{atom(), rule()}]}
    | value
    | {hidden, rule()}.

-type field() :: {atom(), required | optional | {default, term()}, rule()}.

-define(SHOWN, 60).
-define(ALIKE, 0.75).
%% Bytes of a range, which may be two names of nodes.
-define(MOST_RANGE, 1024).

-doc """
The value, and its problems, sorted. `Base` is the folder at which relative paths begin; if it is
unknown they are problems. In a value with problems, an entry of `named` with some is `broken`, and
other such places are `undefined`.
""".
-spec walk(rule(), json(), Base :: binary() | unknown) -> {Value :: term(), [problem()]}.
walk(Rule, Term, Base) ->
    {Value, Problems} = walk(Rule, Term, [], Base),
    {Value, lists:usort(Problems)}.

%% The path is reversed.
walk({object, What, Fields}, Term, Path, Base) when is_map(Term) ->
    Known = [atom_to_binary(Key) || {Key, _, _} <- Fields],
    Unknown = [unknown(Key, Known, What, Path) || Key <- maps:keys(Term) -- Known],
    {Pairs, Problems} = walk_each(fun(Field) -> walk_field(Field, Term, Path, Base) end, Fields),
    {maps:from_list(lists:append(Pairs)), Unknown ++ Problems};
walk({by_key, What, Objects}, Term, Path, Base) when is_map(Term) ->
    case [{Key, Object} || {Key, Object} <- Objects, is_map_key(atom_to_binary(Key), Term)] of
        [{_, Object}] ->
            walk(Object, Term, Path, Base);
        [] ->
            explained(Path, ["one of the keys ", words([K || {K, _} <- Objects]),
                             " is missing: it says what kind of ", What, " this is"]);
        Several ->
            explained(Path, ["the keys ", words([K || {K, _} <- Several]),
                             " cannot be together: keep the one that says what kind of ", What,
                             " this is"])
    end;
walk({by_type, Key, What, Objects}, Term, Path, Base) when is_map(Term) ->
    Binary = atom_to_binary(Key),
    Types = "a type of " ++ What ++ ": " ++ quoted(Objects),
    case Term of
        #{Binary := Type} ->
            case [Pair || {Known, _} = Pair <- Objects, atom_to_binary(Known) =:= Type] of
                [{Known, Object}] ->
                    {Value, Problems} = walk(Object, maps:remove(Binary, Term), Path, Base),
                    {Value#{Key => Known}, Problems};
                [] ->
                    wrong([Binary | Path], Type, Types)
            end;
        _ ->
            {undefined, [missing(Path, Key, Types)]}
    end;
walk({named, _, _, Most}, Term, Path, _) when map_size(Term) > Most ->
    explained(Path, ["there are ", integer_to_list(map_size(Term)), ", and at most ",
                     integer_to_list(Most), " are allowed"]);
walk({named, KeyRule, Rule, _}, Term, Path, Base) when is_map(Term) ->
    {Pairs, Problems} = walk_each(
        fun({Key, Value}) ->
            {_, Wrong} = walk(KeyRule, Key, [Key | Path], Base),
            {Walked, More} = walk(Rule, Value, [Key | Path], Base),
            {{Key, case More of [] -> Walked; _ -> broken end}, Wrong ++ More}
        end,
        maps:to_list(Term)
    ),
    {maps:from_list(Pairs), Problems};
walk({list, What, Least, Most, Rule}, Term, Path, Base) when is_list(Term) ->
    case is_proper(Term) andalso length(Term) of
        Length when is_integer(Length), Length >= Least, Length =< Most ->
            walk_each(
                fun({Index, Item}) -> walk(Rule, Item, [Index | Path], Base) end,
                lists:enumerate(Term)
            );
        _ ->
            wrong(Path, Term, list_expected(What, Least, Most))
    end;
walk({ranges, What, Least, Most, Rule}, Term, Path, Base) when is_list(Term) ->
    case walk({list, What, Least, Most, value}, Term, Path, Base) of
        {_, []} -> walk_ranges(lists:enumerate(Term), Rule, What, Most, Path, Base);
        Wrong -> Wrong
    end;
walk({brief, Keys, Rule}, Term, Path, Base) when is_binary(Term) ->
    %% The text stands for several keys, and a mistake in it is told once.
    case walk(Rule, maps:from_keys([atom_to_binary(Key) || Key <- Keys], Term), Path, Base) of
        {Value, []} -> {Value, []};
        {_, [{_, Found, Expected} | _]} -> {undefined, [{lists:reverse(Path), Found, Expected}]}
    end;
walk({brief, _, Rule}, Term, Path, Base) ->
    walk(Rule, Term, Path, Base);
walk({either, What, Rules}, Term, Path, Base) ->
    case lists:keyfind(shape(Term), 1, Rules) of
        {_, Rule} -> walk(Rule, Term, Path, Base);
        false -> wrong(Path, Term, What)
    end;
walk({choice, Atoms} = Rule, Term, Path, _) ->
    case [Atom || Atom <- Atoms, atom_to_binary(Atom) =:= Term] of
        [Atom] -> {Atom, []};
        [] -> wrong(Path, Term, expected(Rule))
    end;
walk({whole, _, Least, Most}, Term, _, _) when is_integer(Term), Term >= Least, Term =< Most ->
    {Term, []};
walk({whole, What, _, Most}, Term, Path, _) when is_integer(Term), Term > Most ->
    wrong(Path, Term, What ++ ", at most " ++ integer_to_list(Most));
walk(boolean, Term, _, _) when is_boolean(Term) ->
    {Term, []};
walk({matches, Regex, _} = Rule, Term, Path, _) ->
    case is_binary(Term) andalso re:run(Term, ["\\A(?:", Regex, ")\\z"], [{capture, none}]) of
        match -> {Term, []};
        _ -> wrong(Path, Term, expected(Rule))
    end;
walk({text, _, Most} = Rule, Term, Path, _) ->
    case is_text(Term, Most) of
        true -> {Term, []};
        false -> wrong(Path, Term, expected(Rule))
    end;
walk({path, _} = Rule, Term, Path, Base) ->
    case is_text(Term, 4096) of
        true when Base =/= unknown -> {filename:absname(Term, Base), []};
        true ->
            case filename:pathtype(Term) of
                absolute -> {Term, []};
                _ -> explained(Path, ["a relative path begins in the folder of the file that was "
                                      "applied last, and no revision that is kept says which that "
                                      "is: write an absolute path"])
            end;
        false -> wrong(Path, Term, expected(Rule))
    end;
walk({template, _, Most} = Rule, Term, Path, _) ->
    case is_text(Term, Most) of
        true -> {Term, [{lists:reverse(Path), Found, Expected}
                        || {Found, Expected} <- unknown_variables(Term)]};
        false -> wrong(Path, Term, expected(Rule))
    end;
walk({reference, Rules} = Rule, Term, Path, Base) when map_size(Term) =:= 1 ->
    [{Key, Value}] = maps:to_list(Term),
    case [{Known, R} || {Known, R} <- Rules, atom_to_binary(Known) =:= Key] of
        [{Known, R}] ->
            {Walked, Problems} = walk(R, Value, [Key | Path], Base),
            {{Known, Walked}, Problems};
        [] ->
            wrong(Path, Term, expected(Rule))
    end;
walk(value, Term, _, _) ->
    {Term, []};
walk({hidden, Rule}, Term, Path, Base) ->
    {Value, Problems} = walk(Rule, Term, Path, Base),
    {Value, [{At, hide(Found), Expected} || {At, Found, Expected} <- Problems]};
walk(Rule, Term, Path, _) ->
    wrong(Path, Term, expected(Rule)).

%% The number of names is bounded, however many ranges there are.
walk_ranges(Items, Rule, What, Most, Path, Base) ->
    {Values, Problems, _} = lists:foldl(
        fun
            (_, {_, _, Count} = Acc) when Count > Most ->
                Acc;
            ({Index, Item}, {Values, Problems, Count}) ->
                {More, Wrong} = walk_range(Rule, Item, [Index | Path], Base),
                {[More | Values], Wrong ++ Problems, Count + length(More)}
        end,
        {[], [], 0}, Items
    ),
    case lists:append(lists:reverse(Values)) of
        All when length(All) > Most ->
            explained(Path, ["these ranges are more than ", integer_to_list(Most), " ", What]);
        All -> {All, Problems}
    end.

walk_range(Rule, Item, Path, Base) when is_binary(Item), byte_size(Item) =< ?MOST_RANGE ->
    case sderl_ops_range:expand(Item) of
        {ok, Names} ->
            %% The names differ in numbers alone, so most have the same problems.
            {Values, Problems} = walk_each(fun(Name) -> walk(Rule, Name, Path, Base) end, Names),
            {Values, lists:sublist(Problems, max(1, length(Problems) div length(Names)))};
        {error, Expected} ->
            {[], [{lists:reverse(Path), Item, Expected}]}
    end;
walk_range(Rule, Item, Path, Base) ->
    {Value, Problems} = walk(Rule, Item, Path, Base),
    {[Value], Problems}.

walk_field({Key, Need, Rule}, Term, Path, Base) ->
    Binary = atom_to_binary(Key),
    case {Term, Need} of
        {#{Binary := Value}, _} ->
            {Walked, Problems} = walk(Rule, Value, [Binary | Path], Base),
            {[{Key, Walked}], Problems};
        {_, required} ->
            {[], [missing(Path, Key, expected(Rule))]};
        {_, optional} ->
            {[], []};
        {_, {default, Default}} ->
            {[{Key, Default}], []}
    end.

walk_each(Walk, Items) ->
    {Values, Problems} = lists:unzip([Walk(Item) || Item <- Items]),
    {Values, lists:append(Problems)}.

hide(Found) when Found =:= missing; Found =:= unknown; Found =:= explained -> Found;
hide(_) -> hidden.

%% ---------------------------------------------------------------- problems

wrong(Path, Term, Expected) -> {undefined, [{lists:reverse(Path), Term, Expected}]}.

explained(Path, Text) -> {undefined, [{lists:reverse(Path), explained, lists:flatten(Text)}]}.

missing(Path, Key, Expected) -> {lists:reverse([atom_to_binary(Key) | Path]), missing, Expected}.

unknown(Key, Known, What, Path) ->
    Advice =
        case nearest(Key, Known) of
            {ok, Near} -> ["; did you mean ", Near, "?"];
            none -> ["; its keys are ", lists:join(", ", Known)]
        end,
    Text = unicode:characters_to_list(["a key of ", What, Advice]),
    {lists:reverse([Key | Path]), unknown, Text}.

-doc "The known word that is most like this one, if any is alike.".
-spec nearest(binary(), [binary()]) -> {ok, binary()} | none.
nearest(Word, Known) ->
    %% Similarity takes time in proportion to the product of the lengths.
    Short = string:slice(Word, 0, 64),
    case lists:sort([{-string:jaro_similarity(Short, K), K} || K <- Known]) of
        [{Negative, Near} | _] when Negative =< -?ALIKE -> {ok, Near};
        _ -> none
    end.

unknown_variables(Text) ->
    Known = sderl_ops_template:variables(),
    [
        {<<"{{", Name/binary, "}}">>,
         case nearest(Name, Known) of
             {ok, Near} ->
                 "a variable; did you mean {{" ++ binary_to_list(Near) ++ "}}?";
             none ->
                 "a variable; they are " ++
                     binary_to_list(iolist_to_binary(lists:join(", ", Known)))
         end}
     || Name <- sderl_ops_template:used(Text), not lists:member(Name, Known)
    ].

%% What a rule allows, to stand behind "is not".
-spec expected(rule()) -> string().
expected({object, What, _}) -> "an object (" ++ What ++ ")";
expected({by_key, What, _}) -> "an object (" ++ What ++ ")";
expected({by_type, _, What, _}) -> "an object (" ++ What ++ ")";
expected({named, Key, _, _}) -> "an object with a key for each: " ++ expected(Key);
expected({list, What, Least, Most, _}) -> list_expected(What, Least, Most);
expected({ranges, What, Least, Most, _}) -> list_expected(What, Least, Most);
expected({brief, _, Rule}) -> expected(Rule);
expected({either, What, _}) -> What;
expected({choice, Atoms}) -> quoted([{Atom, choice} || Atom <- Atoms]);
expected({whole, What, Least, _}) -> What ++ ", " ++ integer_to_list(Least) ++ " or more";
expected(boolean) -> "true or false";
expected({matches, _, What}) -> What;
expected({text, What, Most}) -> What ++ ": text of 1 to " ++ integer_to_list(Most) ++ " bytes";
expected({path, What}) -> "the path of " ++ What;
expected({template, What, Most}) -> expected({text, What, Most});
expected({reference, Rules}) ->
    lists:flatten(lists:join(" or ", [["{\"", atom_to_list(Key), "\": ", upper(Key), "}"]
                                      || {Key, _} <- Rules]));
expected(value) -> "a value";
expected({hidden, Rule}) -> expected(Rule).

upper(env) -> "\"VARIABLE\"";
upper(file) -> "\"PATH\"";
upper(secret) -> "\"NAME/KEY\"";
upper(template) -> "\"PATH\"";
upper(family) -> "\"FAMILY\"";
upper(Key) -> string:uppercase(atom_to_list(Key)).

list_expected(What, 0, Most) ->
    lists:flatten(io_lib:format("a list of ~ts, at most ~b", [What, Most]));
list_expected(What, Least, Most) ->
    lists:flatten(io_lib:format("a list of ~ts, ~b to ~b", [What, Least, Most])).

quoted(Pairs) ->
    lists:flatten(lists:join(" or ", [[$", atom_to_list(Word), $"] || {Word, _} <- Pairs])).

words(Atoms) -> lists:join(", ", [atom_to_list(Atom) || Atom <- Atoms]).

is_proper(List) when length(List) >= 0 -> true;
is_proper(_) -> false.

is_text(Term, Most) ->
    is_binary(Term) andalso byte_size(Term) >= 1 andalso byte_size(Term) =< Most andalso
        binary:match(Term, <<0>>) =:= nomatch.

shape(Term) when is_binary(Term) -> text;
shape(Term) when is_map(Term) -> object;
shape(Term) when is_list(Term) -> list;
shape(Term) when is_number(Term) -> number;
shape(_) -> other.

%% ---------------------------------------------------------------- sentences

-doc "A problem as a sentence.".
-spec sentence(problem()) -> unicode:chardata().
sentence({Path, missing, Expected}) -> [join_path(Path), " is missing: it is ", Expected];
sentence({Path, unknown, Expected}) -> [join_path(Path), " is not ", Expected];
sentence({Path, twice, Expected}) -> [join_path(Path), " is there twice: ", Expected];
sentence({[], explained, Text}) -> Text;
sentence({Path, explained, Text}) -> [join_path(Path), ": ", Text];
sentence({Path, hidden, Expected}) ->
    [join_path(Path), ": what is there (it is not shown) is not ", Expected];
sentence({Path, Found, Expected}) ->
    [join_path(Path), ": ", show(Found), " is not ", Expected].

%% `families.web.count`; keys with other characters are quoted.
join_path([]) -> "the file";
join_path(Path) -> lists:join($., [path_part(Part) || Part <- Path]).

path_part(Index) when is_integer(Index) ->
    integer_to_list(Index);
path_part(Key) ->
    case re:run(Key, "\\A[A-Za-z0-9_-]+\\z", [{capture, none}]) of
        match -> Key;
        nomatch -> show(Key)
    end.

%% A value as JSON, cut where it is long.
show(Term) when is_binary(Term) -> cut(show_text(Term));
show(Term) when is_number(Term); is_boolean(Term) -> cut(io_lib:format("~0tp", [Term]));
show(null) -> "null";
show([]) -> "[]";
show(Term) when is_list(Term) -> "this list";
show(Term) when Term =:= #{} -> "{}";
show(Term) when is_map(Term) ->
    ["this object (", cut(lists:join(", ", lists:sublist(lists:sort(maps:keys(Term)), 5))), ")"];
show(Term) -> cut(io_lib:format("~0tP", [Term, 9])).

show_text(Text) ->
    case unicode:characters_to_list(cut_bytes(Text)) of
        Chars when is_list(Chars) -> iolist_to_binary(json:encode(cut_bytes(Text)));
        _ -> "text that is not UTF-8"
    end.

%% Cuts between characters, and leaves enough for cut/1.
cut_bytes(Text) when byte_size(Text) =< 4 * ?SHOWN -> Text;
cut_bytes(Text) ->
    case unicode:characters_to_binary(binary:part(Text, 0, 4 * ?SHOWN)) of
        {_, Whole, _} -> Whole;
        Whole -> Whole
    end.

cut(Text) ->
    case string:length(Text) > ?SHOWN + 2 of
        true -> [string:slice(Text, 0, ?SHOWN), "..."];
        false -> Text
    end.

-doc "The problem of a name that is not a key of the map.".
-spec no_such(path(), binary(), What :: string(), #{binary() => term()}) -> problem().
no_such(Path, Name, What, Known) ->
    Names = lists:sort(maps:keys(Known)),
    Advice =
        case {nearest(Name, Names), Names} of
            {{ok, Near}, _} -> ["; did you mean ", Near, "?"];
            {none, []} -> "; there is none";
            {none, [_, _, _, _, _, _, _, _, _ | _]} -> "";
            {none, _} -> ["; there is ", lists:join(", ", Names)]
        end,
    {Path, Name, unicode:characters_to_list([What, Advice])}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_tree).
-moduledoc """
Reads JSON and Erlang terms into terms of one shape, that of `t:sderl_ops_walker:json/0`.

In an Erlang term names may be atoms, strings or binaries. No atoms are made: before the text is
parsed, each atom in it except `true`, `false` and `null` is rewritten as a binary.
""".

-export([from_json/1, from_erlang/1, plain/1, skip_blanks/1]).

%% More levels than any file needs.
-define(DEEPEST, 64).
%% Digits of a number. The time of its conversion grows with their square.
-define(MOST_DIGITS, 40).

%% A file with a key that is there twice, for instance, is still checked further.
-type result() ::
    {ok, sderl_ops_walker:json(), [sderl_ops_walker:problem()]}
    | {error, [sderl_ops_walker:problem(), ...]}.

%% Objects are lists of pairs at first, so that a key that is there twice is noticed.
-type raw() :: {[{term(), raw()}]} | [raw()] | term().

%% ---------------------------------------------------------------- JSON

-spec from_json(binary()) -> result().
from_json(Text) ->
    Callbacks = #{
        object_start => fun deeper/1,
        object_push => fun(Key, Value, {Depth, Pairs}) -> {Depth, [{Key, Value} | Pairs]} end,
        object_finish => fun({_, Pairs}, Outer) -> {{lists:reverse(Pairs)}, Outer} end,
        array_start => fun deeper/1,
        array_push => fun(Value, {Depth, Values}) -> {Depth, [Value | Values]} end,
        array_finish => fun({_, Values}, Outer) -> {lists:reverse(Values), Outer} end,
        integer => fun(Digits) -> binary_to_integer(short(Digits)) end,
        float => fun(Digits) -> binary_to_float(short(Digits)) end
    },
    try json:decode(Text, {0, []}, Callbacks) of
        {Raw, _, Rest} ->
            case skip_blanks(Rest) of
                <<>> -> plain(Raw);
                More -> broken(Text, byte_size(Text) - byte_size(More),
                               "there is more behind the end of the object: a file has one")
            end
    catch
        throw:too_deep -> too_deep([]);
        throw:{long_number, Digits} -> long_number(Digits);
        error:{invalid_byte, Byte}:Stack ->
            broken(Text, position(Stack), ["this is not JSON (", show_byte(Byte), " is not "
                                           "expected here)"]);
        error:{unexpected_sequence, _}:Stack ->
            broken(Text, position(Stack), "this is not JSON (a wrong escape, a number out of "
                                              "range, or not UTF-8)");
        error:unexpected_end -> broken(Text, byte_size(Text), "this JSON ends too early");
        error:badarg:Stack ->
            broken(Text, position(Stack), "this is not JSON (a number out of range)")
    end.

-doc "The text without blanks at its begin. It need not be UTF-8.".
-spec skip_blanks(binary()) -> binary().
skip_blanks(<<Char, Rest/binary>>) when Char =:= $\s; Char =:= $\t; Char =:= $\r; Char =:= $\n ->
    skip_blanks(Rest);
skip_blanks(Text) ->
    Text.

deeper({Depth, _}) when Depth < ?DEEPEST -> {Depth + 1, []};
deeper(_) -> throw(too_deep).

short(Digits) when byte_size(Digits) =< ?MOST_DIGITS -> Digits;
short(Digits) -> throw({long_number, Digits}).

position([{_, _, _, Info} | _]) ->
    case proplists:get_value(error_info, Info) of
        #{cause := #{position := Position}} -> Position;
        _ -> 0
    end;
position(_) ->
    0.

show_byte(Byte) when Byte > 32, Byte < 127 -> [$', Byte, $'];
show_byte(Byte) -> io_lib:format("byte ~b", [Byte]).

broken(Text, Position, Why) ->
    Before = binary:part(Text, 0, min(max(0, Position), byte_size(Text))),
    at_line(1 + length(binary:matches(Before, ~"\n")), Why).

at_line(Line, Why) ->
    Sentence = io_lib:format("line ~b: ~ts", [Line, Why]),
    {error, [{[], explained, unicode:characters_to_list(Sentence)}]}.

too_deep(Path) -> {error, [{lists:reverse(Path), explained, "more than 64 levels deep"}]}.

long_number(Digits) ->
    {error, [{[], explained, lists:flatten(["the number ", binary:bin_to_list(Digits, 0, 20),
                                            "... is too long"])}]}.

%% ---------------------------------------------------------------- Erlang terms

-spec from_erlang(binary()) -> result().
from_erlang(Text) ->
    maybe
        {ok, Rewritten} ?= rewrite_atoms(Text),
        {ok, Tokens} ?= scan(Rewritten),
        {ok, Form} ?= parse(Tokens),
        {ok, Raw} ?= convert(Form),
        plain(Raw)
    end.

%% Rewrites atoms as binaries in the text, so that the scanner makes none.
rewrite_atoms(Text) ->
    case unicode:characters_to_list(Text) of
        Chars when is_list(Chars) ->
            try
                {ok, lists:append(lists:reverse(rewrite(Chars, [])))}
            catch
                throw:{long_number, Digits} -> long_number(list_to_binary(Digits))
            end;
        {_, Before, _} ->
            at_line(1 + length([$\n || $\n <- lists:flatten([Before])]), "this is not UTF-8")
    end.

%% The pieces are reversed.
rewrite([], Done) -> Done;
rewrite([$% | Chars], Done) ->
    rewrite(lists:dropwhile(fun(Char) -> Char =/= $\n end, Chars), Done);
rewrite([$$, $\\, Char | Chars], Done) -> rewrite(Chars, [[$$, $\\, Char] | Done]);
rewrite([$$, Char | Chars], Done) -> rewrite(Chars, [[$$, Char] | Done]);
rewrite([$", $", $" | Chars], Done) ->
    {Text, Rest} = until_quotes(Chars, []),
    rewrite(Rest, [Text, "\"\"\"" | Done]);
rewrite([$" | Chars], Done) ->
    {Text, Rest} = until($", Chars, []),
    rewrite(Rest, [Text, "\"" | Done]);
rewrite([$' | Chars], Done) ->
    {Text, Rest} = until($', Chars, []),
    rewrite(Rest, [["<<\"", quote(lists:droplast(Text), []), "\"/utf8>>"] | Done]);
rewrite([$/, $u, $t, $f, $8 | Chars], Done) -> rewrite(Chars, ["/utf8" | Done]);
rewrite([$~, Kind, $" | Chars], Done) when Kind =:= $b; Kind =:= $B; Kind =:= $s; Kind =:= $S ->
    rewrite([$" | Chars], [[$~, Kind] | Done]);
rewrite([Char | _] = Chars, Done) when Char >= $0, Char =< $9 ->
    case lists:splitwith(fun is_word/1, Chars) of
        {Digits, _} when length(Digits) > ?MOST_DIGITS -> throw({long_number, Digits});
        {Digits, Rest} -> rewrite(Rest, [Digits | Done])
    end;
rewrite([Char | Rest] = Chars, Done) ->
    case is_word(Char) of
        true ->
            {Word, Behind} = lists:splitwith(fun is_word/1, Chars),
            rewrite(Behind, [rewrite_word(Word) | Done]);
        false ->
            rewrite(Rest, [[Char] | Done])
    end.

rewrite_word(Word) when Word =:= "true"; Word =:= "false"; Word =:= "null" -> Word;
rewrite_word([Char | _] = Word) ->
    %% A variable, or an atom.
    case Char =:= $_ orelse string:lowercase([Char]) =/= [Char] of
        true -> Word;
        false -> ["<<\"", Word, "\"/utf8>>"]
    end.

is_word(Char) ->
    Char >= $a andalso Char =< $z orelse Char >= $A andalso Char =< $Z orelse
        Char >= $0 andalso Char =< $9 orelse Char =:= $_ orelse Char =:= $@ orelse
        Char >= 16#C0 andalso Char =/= 16#D7 andalso Char =/= 16#F7.

%% The text up to the closing quote, with it.
until(_, [], Text) -> {lists:reverse(Text), []};
until(Quote, [$\\, Char | Chars], Text) -> until(Quote, Chars, [Char, $\\ | Text]);
until(Quote, [Quote | Chars], Text) -> {lists:reverse([Quote | Text]), Chars};
until(Quote, [Char | Chars], Text) -> until(Quote, Chars, [Char | Text]).

until_quotes([$", $", $" | Chars], Text) -> {lists:reverse(Text, "\"\"\""), Chars};
until_quotes([Char | Chars], Text) -> until_quotes(Chars, [Char | Text]);
until_quotes([], Text) -> {lists:reverse(Text), []}.

%% Turns a text in single quotes into one in double quotes.
quote([$\\, Char | Chars], Text) -> quote(Chars, [Char, $\\ | Text]);
quote([$" | Chars], Text) -> quote(Chars, [$", $\\ | Text]);
quote([Char | Chars], Text) -> quote(Chars, [Char | Text]);
quote([], Text) -> lists:reverse(Text).

scan(Text) ->
    case erl_scan:string(lists:flatten(Text), 1) of
        {ok, [], _} -> {error, [{[], explained, "the file is empty"}]};
        {ok, Tokens, _} -> {ok, Tokens};
        {error, {Line, Module, Why}, _} -> at_line(line(Line), Module:format_error(Why))
    end.

parse(Tokens) ->
    case erl_parse:parse_exprs(Tokens) of
        {ok, [Form]} -> {ok, Form};
        {ok, _} -> {error, [{[], explained, "a file has one map, and a dot behind it"}]};
        {error, {Line, Module, Why}} ->
            at_line(line(Line), ["this is no Erlang term (", Module:format_error(Why),
                                 "); a file has one map, and a dot behind it"])
    end.

line(Line) when is_integer(Line) -> Line;
line({Line, _}) -> Line.

convert(Form) ->
    try
        {ok, convert(Form, 0)}
    catch
        throw:too_deep -> too_deep([]);
        throw:{no_data, At} ->
            at_line(At, "this is no data; allowed are maps, lists, strings, binaries, atoms and "
                        "numbers")
    end.

-spec convert(erl_parse:abstract_expr(), non_neg_integer()) -> raw().
convert(_, Depth) when Depth > ?DEEPEST -> throw(too_deep);
convert({map, _, Pairs}, Depth) ->
    {[convert_pair(Pair, Depth + 1) || Pair <- Pairs]};
convert({nil, _}, _) -> [];
convert({cons, _, _, _} = List, Depth) -> convert_list(List, Depth + 1);
convert({string, _, Chars}, _) -> unicode:characters_to_binary(Chars);
convert({bin, _, []}, _) -> <<>>;
convert({bin, _, [{bin_element, _, {string, _, Chars}, default, _}]}, _) ->
    unicode:characters_to_binary(Chars);
convert({integer, _, Number}, _) -> Number;
convert({float, _, Number}, _) -> Number;
convert({char, _, Char}, _) -> Char;
convert({atom, _, Atom}, _) -> Atom;
convert({op, _, '-', {Kind, _, Number}}, _) when Kind =:= integer; Kind =:= float -> -Number;
convert(Form, _) -> throw({no_data, form_line(Form)}).

convert_list({cons, _, Head, Tail}, Depth) -> [convert(Head, Depth) | convert_list(Tail, Depth)];
convert_list({nil, _}, _) -> [];
convert_list(Form, _) -> throw({no_data, form_line(Form)}).

convert_pair({map_field_assoc, _, Key, Value}, Depth) ->
    {convert(Key, Depth), convert(Value, Depth)};
convert_pair(Form, _) -> throw({no_data, form_line(Form)}).

form_line(Form) -> line(erl_anno:line(element(2, Form))).

%% ---------------------------------------------------------------- one shape

-doc """
A term in the form of decoded JSON: atoms become binaries. Keys that are there twice are problems,
and so are terms that JSON does not have.
""".
-spec plain(term()) -> result().
plain(Raw) ->
    {Term, Problems} = plain(Raw, []),
    {ok, Term, lists:usort(Problems)}.

%% The path is reversed.
plain(_, Path) when length(Path) > ?DEEPEST ->
    {error, Problems} = too_deep(Path),
    {null, Problems};
plain({Pairs}, Path) when is_list(Pairs) ->
    case plain_pairs(Pairs, Path, #{}, []) of
        {_, _} = Result -> Result;
        no_pairs -> no_data({Pairs}, Path)
    end;
plain(Map, Path) when is_map(Map) -> plain({maps:to_list(Map)}, Path);
plain(List, Path) when length(List) >= 0 ->
    {Items, Problems} = lists:unzip([plain(Item, [Index | Path])
                                     || {Index, Item} <- lists:enumerate(List)]),
    {Items, lists:append(Problems)};
plain(Text, Path) when is_binary(Text) ->
    case unicode:characters_to_binary(Text) of
        Text -> {Text, []};
        _ -> {null, [{lists:reverse(Path), explained, "this text is not UTF-8"}]}
    end;
plain(Term, _) when is_number(Term); is_boolean(Term); Term =:= null -> {Term, []};
plain(Atom, _) when is_atom(Atom) -> {atom_to_binary(Atom), []};
plain(Term, Path) -> no_data(Term, Path).

plain_pairs([{Key0, Value0} | Pairs], Path, Map, Found) ->
    case plain_key(Key0) of
        {ok, Key} ->
            {Value, Problems} = plain(Value0, [Key | Path]),
            Twice = [{lists:reverse([Key | Path]), twice, "keep one of the two"}
                     || is_map_key(Key, Map)],
            plain_pairs(Pairs, Path, Map#{Key => Value}, Twice ++ Problems ++ Found);
        error ->
            {_, Problems} = no_data(Key0, Path),
            plain_pairs(Pairs, Path, Map, Problems ++ Found)
    end;
plain_pairs([], _, Map, Found) -> {Map, Found};
plain_pairs(_, _, _, _) -> no_pairs.

plain_key(Key) when is_atom(Key) -> {ok, atom_to_binary(Key)};
plain_key(Key) when is_binary(Key) ->
    case unicode:characters_to_binary(Key) of
        Key -> {ok, Key};
        _ -> error
    end;
plain_key(_) -> error.

no_data(Term, Path) ->
    {null, [{lists:reverse(Path), Term,
             "data as JSON has it: text, a number, true, false, a list or an object"}]}.

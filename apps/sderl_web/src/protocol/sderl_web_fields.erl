%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_fields).
-moduledoc """
Named values from strangers: of a request over the WebSocket, of a query and of a posted object.
Pure.

A list of fields says which there are, of which type, and what each is when left out. The same list
checks what comes, words the refusal, and makes the JSON Schema of the OpenAPI document, so that the
three cannot differ. Nothing that comes becomes an atom: known words are looked up.
""".

-export([check/2, check_texts/2, from_text/2, value/2, expected/1, wrong/3, schema/1]).
-export_type([field/0, type/0, default/0]).

-doc """
Its name outside, its key inside, its type, and what it is when left out: `required`, `none` (its
key is not there), or a value.
""".
-type field() :: {Name :: binary(), Key :: atom(), type(), default()}.
-type default() :: required | none | term().

-doc """
`share` is a number above 0 and at most 1. `time` is Unix milliseconds, up to the end of the year
9999: later times have no text of the same form. `{texts, Count, Most}` is a
list of texts, `{words, Words}` one of known words. `{choice, Kinds}` is an object whose `kind` says
which other fields it has; it becomes a tuple of the kind and their values in order. `checked` is an
object that a function checks, `{list, Most}` a list of so many, of whatever.
""".
-type type() ::
    {text, MostBytes :: pos_integer()}
    | {whole, Min :: integer(), Max :: integer()}
    | time
    | share
    | flag
    | {word, [atom()]}
    | {texts, Count :: pos_integer(), MostBytes :: pos_integer()}
    | {words, [atom()]}
    | {list, Most :: pos_integer()}
    | {choice, [{Kind :: binary(), atom(), [field()]}]}
    | {checked, fun((term()) -> {ok, term()} | {error, iodata()}), Expected :: string()}.

%% Times and ids are exact in a browser up to here.
-define(MOST, 9_007_199_254_740_991).
-define(MOST_WORDS, 32).
%% The last millisecond of the year 9999.
-define(LATEST, 253_402_300_799_999).

-doc "The values of an object by their keys; a field that there is not is an error.".
-spec check([field()], #{binary() => term()}) -> {ok, #{atom() => term()}} | {error, iodata()}.
check(Fields, Given) ->
    case maps:keys(maps:without([Name || {Name, _, _, _} <- Fields], Given)) of
        [] -> values(Fields, Given, #{});
        [Unknown | _] ->
            {error, ["there is no field ", shown(Unknown),
                     known([Name || {Name, _, _, _} <- Fields])]}
    end.

known([]) -> ": there is none here";
known(Names) -> ["; there are ", lists:join(", ", Names)].

-doc "The same of a query, in which everything is text.".
-spec check_texts([field()], #{binary() => binary()}) ->
    {ok, #{atom() => term()}} | {error, iodata()}.
check_texts(Fields, Given) ->
    Types = #{Name => Type || {Name, _, Type, _} <- Fields},
    check(Fields, #{Name => case Types of
        #{Name := Type} -> from_text(Type, Text);
        #{} -> Text
    end || Name := Text <- Given}).

-doc "A text as a value of a type, or as it is, where it is none.".
-spec from_text(type(), binary()) -> term().
from_text(Type, Text) when Type =:= time; element(1, Type) =:= whole ->
    case byte_size(Text) =< 17 andalso string:to_integer(Text) of
        {N, <<>>} -> N;
        _ -> Text
    end;
from_text(share, Text) ->
    try binary_to_float(Text) catch error:badarg -> from_text({whole, 0, 1}, Text) end;
from_text(flag, ~"true") -> true;
from_text(flag, ~"false") -> false;
from_text(Type, Text) when element(1, Type) =:= texts; element(1, Type) =:= words ->
    binary:split(Text, ~",", [global]);
from_text(_, Text) -> Text.

values([], _, Args) ->
    {ok, Args};
values([{Name, Key, Type, Default} | Fields], Given, Args) ->
    case {maps:get(Name, Given, null), Default} of
        {null, required} ->
            {error, [Name, " is missing: it is ", expected(Type)]};
        {null, none} ->
            values(Fields, Given, Args);
        {null, _} ->
            values(Fields, Given, Args#{Key => Default});
        {Value, _} ->
            case value(Type, Value) of
                {ok, Checked} -> values(Fields, Given, Args#{Key => Checked});
                {error, Why} -> {error, [Name, ".", Why]};
                error -> {error, wrong(Name, Value, expected(Type))}
            end
    end.

-doc "A value of a type, checked.".
-spec value(type(), term()) -> {ok, term()} | error | {error, iodata()}.
value({text, Most}, Text) when is_binary(Text), byte_size(Text) =< Most -> {ok, Text};
value({whole, Min, Max}, N) when is_integer(N), N >= Min, N =< Max -> {ok, N};
%% A browser's numbers have no type: 5.0 may come as it is.
value({whole, _, _} = Type, F) when is_float(F), trunc(F) == F, abs(F) =< ?MOST ->
    value(Type, trunc(F));
value(time, T) -> value({whole, 0, ?LATEST}, T);
value(share, N) when is_number(N), N > 0, N =< 1 -> {ok, N};
value(flag, Flag) when is_boolean(Flag) -> {ok, Flag};
value({word, Words}, Text) when is_binary(Text) -> word(Text, Words);
value({texts, Count, Most}, List) when is_list(List) ->
    case is_short(List, Count)
         andalso lists:all(fun(Text) -> is_binary(Text) andalso byte_size(Text) =< Most end,
                           List) of
        true -> {ok, List};
        false -> error
    end;
value({words, Known}, List) when is_list(List) ->
    Words = [word(Text, Known) || true <- [is_short(List, ?MOST_WORDS)], Text <- List],
    case Words =/= [] andalso lists:all(fun(Word) -> Word =/= error end, Words) of
        true -> {ok, [Word || {ok, Word} <- Words]};
        false -> error
    end;
value({list, Most}, List) when is_list(List) ->
    case is_short(List, Most) of
        true -> {ok, List};
        false -> error
    end;
value({choice, Kinds}, #{~"kind" := Kind} = Given) when is_binary(Kind) ->
    case lists:keyfind(Kind, 1, Kinds) of
        {_, Name, Fields} ->
            case values(Fields, Given, #{}) of
                {ok, _} when Fields =:= [] -> {ok, Name};
                {ok, Args} ->
                    {ok, list_to_tuple([Name | [maps:get(Key, Args) || {_, Key, _, _} <- Fields]])};
                {error, _} = Error -> Error
            end;
        false -> {error, wrong(~"kind", Kind, ["one of ", names(Kinds)])}
    end;
value({checked, Check, _}, Given) -> Check(Given);
value(_, _) ->
    error.

is_short(List, Most) -> length(lists:sublist(List, Most + 1)) =< Most.

word(Text, Words) ->
    case [Word || Word <- Words, atom_to_binary(Word) =:= Text] of
        [Word] -> {ok, Word};
        [] -> error
    end.

names(Kinds) -> lists:join(", ", [Kind || {Kind, _, _} <- Kinds]).

-doc "What belongs there, in words.".
-spec expected(type()) -> iodata().
expected({text, Most}) -> ["a text of at most ", integer_to_list(Most), " bytes"];
expected({whole, Min, ?MOST}) -> ["a whole number from ", integer_to_list(Min), " on"];
expected({whole, Min, Max}) ->
    ["a whole number from ", integer_to_list(Min), " to ", integer_to_list(Max)];
expected(time) ->
    ["a time in milliseconds since 1970, from 0 to ", integer_to_list(?LATEST), " (the year 9999)"];
expected(share) -> "a number above 0 and at most 1";
expected(flag) -> "true or false";
expected({word, Words}) -> ["one of ", listed(Words)];
expected({texts, Count, Most}) ->
    ["a list of at most ", integer_to_list(Count), " texts of at most ", integer_to_list(Most),
     " bytes"];
expected({words, Words}) -> ["a list of some of ", listed(lists:sort(Words))];
expected({list, Most}) -> ["a list of at most ", integer_to_list(Most)];
expected({checked, _, Expected}) -> Expected;
expected({choice, Kinds}) -> ["an object with kind, one of ", names(Kinds)].

listed(Words) -> lists:join(", ", [atom_to_binary(Word) || Word <- Words]).

-doc "The refusal of a value, with what belongs there.".
-spec wrong(Name :: binary(), term(), Expected :: iodata()) -> iodata().
wrong(Name, Value, Expected) -> [Name, " cannot be ", shown(Value), ": it is ", Expected].

%% A list of 10,000 elements is not shown, nor a text of 60 KB.
shown(Text) when is_binary(Text), byte_size(Text) =< 80 -> [$", Text, $"];
shown(Text) when is_binary(Text) -> "such a long text";
shown(List) when is_list(List) -> "a list";
shown(Map) when is_map(Map) -> "an object";
shown(Value) -> io_lib:format("~w", [Value]).

-doc "A type as JSON Schema.".
-spec schema(type()) -> #{binary() => term()}.
schema({text, Most}) -> #{~"type" => ~"string", ~"maxLength" => Most};
schema({whole, Min, Max}) ->
    #{~"type" => ~"integer", ~"minimum" => Min, ~"maximum" => Max};
schema(time) -> schema({whole, 0, ?LATEST});
schema(share) -> #{~"type" => ~"number", ~"exclusiveMinimum" => 0, ~"maximum" => 1};
schema(flag) -> #{~"type" => ~"boolean"};
schema({word, Words}) -> #{~"type" => ~"string", ~"enum" => [atom_to_binary(W) || W <- Words]};
schema({texts, Count, Most}) ->
    #{~"type" => ~"array", ~"maxItems" => Count, ~"items" => schema({text, Most})};
schema({words, Words}) ->
    #{~"type" => ~"array", ~"minItems" => 1, ~"maxItems" => ?MOST_WORDS,
      ~"items" => schema({word, Words})};
schema({list, Most}) -> #{~"type" => ~"array", ~"maxItems" => Most, ~"items" => #{}};
schema({checked, _, _}) -> #{~"type" => ~"object"};
schema({choice, Kinds}) ->
    #{~"oneOf" => [kind(Kind, Fields) || {Kind, _, Fields} <- Kinds]}.

kind(Kind, Fields) ->
    Of = #{Name => schema(Type) || {Name, _, Type, _} <- Fields},
    #{~"type" => ~"object",
      ~"properties" => Of#{~"kind" => #{~"const" => Kind}},
      ~"required" => [~"kind" | [Name || {Name, _, _, required} <- Fields]]}.

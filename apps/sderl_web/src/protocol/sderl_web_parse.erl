%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_parse).
-moduledoc """
JSON from strangers as terms, within bounds. Pure.

Numbers have at most 32 characters, because long ones take long to convert, and lists and objects
are nested at most 32 deep, because whatever walks through a term later goes as deep as the term.
""".

-export([value/1, object/1, depth/0]).

-define(DIGITS, 32).
-define(DEPTH, 32).

-doc "How deep lists and objects may be nested.".
-spec depth() -> pos_integer().
depth() -> ?DEPTH.

-doc "The one value of a text; `too_deep`, or `malformed` where it is not JSON.".
-spec value(binary()) -> {ok, term()} | {error, malformed | too_deep}.
value(Text) ->
    try json:decode(Text, {0, []}, decoders()) of
        {Value, _, Rest} ->
            case is_blank(Rest) of
                true -> {ok, Value};
                false -> {error, malformed}
            end
    catch
        throw:too_deep -> {error, too_deep};
        error:_ -> {error, malformed}
    end.

%% A term that is being built has its depth beside it.
decoders() ->
    #{
        integer => number(fun binary_to_integer/1),
        float => number(fun binary_to_float/1),
        array_start => fun deeper/1,
        array_push => fun(Value, {Depth, Built}) -> {Depth, [Value | Built]} end,
        array_finish => fun({_, Built}, Outer) -> {lists:reverse(Built), Outer} end,
        object_start => fun deeper/1,
        object_push => fun(Key, Value, {Depth, Built}) -> {Depth, [{Key, Value} | Built]} end,
        object_finish => fun({_, Built}, Outer) -> {maps:from_list(lists:reverse(Built)), Outer} end
    }.

number(Convert) -> fun(Digits) when byte_size(Digits) =< ?DIGITS -> Convert(Digits) end.

deeper({Depth, _}) when Depth < ?DEPTH -> {Depth + 1, []};
deeper(_) -> throw(too_deep).

is_blank(<<C, Rest/binary>>) when C =:= $\s; C =:= $\t; C =:= $\r; C =:= $\n -> is_blank(Rest);
is_blank(Rest) -> Rest =:= <<>>.

-doc "The one object of a text; an error in words.".
-spec object(binary()) -> {ok, #{binary() => term()}} | {error, unicode:chardata()}.
object(Text) ->
    case value(Text) of
        {ok, #{} = Object} -> {ok, Object};
        {error, too_deep} ->
            {error, ["the body is nested deeper than ", integer_to_list(?DEPTH),
                     " levels: send a flatter object"]};
        _ -> {error, "the body is not one JSON object, such as {\"text\":\"seen\"}"}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_yaml).
-moduledoc """
YAML for people and parsers, from terms in the form of JSON. The same term gives the same text: an
object has `apiVersion`, `kind`, `metadata` and `name` first, and then its other keys in order.

A text is plain only if every version of YAML reads it as that text. A text of several lines is a
literal block, any other is in double quotes.
""".

-export([document/1]).
-export_type([value/0]).

-type value() ::
    #{binary() => value()} | [value()] | binary() | integer() | boolean().

-doc "One document, which ends with a line end.".
-spec document(value()) -> binary().
document(Value) ->
    <<_/binary>> = unicode:characters_to_binary(block(Value, 0)).

%% A value on lines of its own.
block(Map, Depth) when is_map(Map), map_size(Map) > 0 ->
    [[indent(Depth), scalar(Key), ":", behind_key(Value, Depth)] || {Key, Value} <- ordered(Map)];
block([_ | _] = List, Depth) ->
    [[indent(Depth), "-", behind_dash(Value, Depth)] || Value <- List];
block(Value, Depth) ->
    [indent(Depth), scalar(Value), "\n"].

behind_key(Map, Depth) when is_map(Map), map_size(Map) > 0 -> ["\n", block(Map, Depth + 1)];
behind_key([_ | _] = List, Depth) -> ["\n", block(List, Depth + 1)];
behind_key(Value, Depth) -> inline(Value, Depth).

%% The first key or item stands beside the dash.
behind_dash(Value, Depth) when is_map(Value), map_size(Value) > 0; is_list(Value), Value =/= [] ->
    [" ", string:slice(unicode:characters_to_list(block(Value, Depth + 1)), 2 * (Depth + 1))];
behind_dash(Value, Depth) ->
    inline(Value, Depth).

inline(Text, Depth) when is_binary(Text) ->
    case is_lines(Text) of
        true -> lines(Text, Depth + 1);
        false -> [" ", scalar(Text), "\n"]
    end;
inline(Value, _) ->
    [" ", scalar(Value), "\n"].

indent(Depth) -> lists:duplicate(2 * Depth, $\s).

ordered(Map) -> lists:sort(fun({A, _}, {B, _}) -> {rank(A), A} =< {rank(B), B} end,
                           maps:to_list(Map)).

rank(~"apiVersion") -> 0;
rank(~"kind") -> 1;
rank(~"metadata") -> 2;
rank(~"name") -> 3;
rank(_) -> 4.

%% ---------------------------------------------------------------- scalars

scalar(Map) when Map =:= #{} -> "{}";
scalar([]) -> "[]";
scalar(Boolean) when is_boolean(Boolean) -> atom_to_list(Boolean);
scalar(Number) when is_integer(Number) -> integer_to_list(Number);
scalar(Text) when is_binary(Text) ->
    case is_plain(Text) of
        true -> Text;
        false -> [$", [escaped(Char) || Char <- unicode:characters_to_list(Text)], $"]
    end.

%% Words that begin with a letter are not numbers in any version, but some are other values.
is_plain(Text) ->
    match =:= re:run(Text, "\\A[A-Za-z/][A-Za-z0-9_./-]*\\z", [{capture, none}]) andalso
        not lists:member(string:lowercase(Text),
                         [~"true", ~"false", ~"yes", ~"no", ~"on", ~"off", ~"y", ~"n", ~"null"]).

escaped($") -> "\\\"";
escaped($\\) -> "\\\\";
escaped($\n) -> "\\n";
escaped($\t) -> "\\t";
escaped(Char) ->
    case is_printable(Char) of
        true -> Char;
        false when Char < 16#100 -> io_lib:format("\\x~2.16.0B", [Char]);
        false when Char < 16#10000 -> io_lib:format("\\u~4.16.0B", [Char]);
        false -> io_lib:format("\\U~8.16.0B", [Char])
    end.

%% YAML's printable characters, without other line ends and characters that editors do not show.
is_printable(Char) ->
    Char >= 16#20 andalso Char =< 16#7E
        orelse Char >= 16#A1 andalso Char =< 16#D7FF andalso Char =/= 16#2028
            andalso Char =/= 16#2029
        orelse Char >= 16#E000 andalso Char < 16#FEFF
        orelse Char > 16#FEFF andalso Char =< 16#FFFD.

%% ---------------------------------------------------------------- literal blocks

%% The first line sets the indentation, so it must not begin with a blank.
is_lines(<<First/utf8, Rest/binary>> = Text) ->
    First =/= $\s andalso First =/= $\n andalso First =/= $\t
        andalso binary:match(Rest, ~"\n") =/= nomatch
        andalso lists:all(fun(Char) -> Char =:= $\n orelse Char =:= $\t orelse is_printable(Char)
                          end, unicode:characters_to_list(Text));
is_lines(<<>>) ->
    false.

lines(Text, Depth) ->
    {Ends, Body} = case binary:last(Text) of
        $\n -> {clip(Text), binary:part(Text, 0, byte_size(Text) - 1)};
        _ -> {"|-", Text}
    end,
    [" ", Ends, "\n",
     [case Line of
          <<>> -> "\n";
          _ -> [indent(Depth), Line, "\n"]
      end || Line <- binary:split(Body, ~"\n", [global])]].

%% "|" keeps one line end at the end, "|+" keeps all.
clip(Text) ->
    case byte_size(Text) > 1 andalso binary:at(Text, byte_size(Text) - 2) of
        $\n -> "|+";
        _ -> "|"
    end.

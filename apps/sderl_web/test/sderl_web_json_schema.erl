%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_json_schema).
-moduledoc """
Checks decoded JSON against JSON Schema: the keywords that our OpenAPI document uses
(`m:sderl_web_schema`), and an error for any other. Pure.
""".

-export([check/3]).

-define(KNOWN, [~"type", ~"enum", ~"const", ~"properties", ~"required", ~"additionalProperties",
                ~"items", ~"anyOf", ~"oneOf", ~"$ref", ~"minimum", ~"maximum", ~"exclusiveMinimum",
                ~"maxLength", ~"minItems", ~"maxItems", ~"default"]).

%% The errors, each with its place in the value.
check(Value, Schema, Document) -> check(Value, Schema, ~"$", Document).

check(Value, #{~"$ref" := <<"#/", Path/binary>>}, At, Document) ->
    Schema = lists:foldl(fun(Key, Map) -> map_get(Key, Map) end, Document,
                         binary:split(Path, ~"/", [global])),
    check(Value, Schema, At, Document);
check(Value, Schema, At, Document) ->
    [] = maps:keys(Schema) -- ?KNOWN,
    lists:append([keyword(Key, Of, Value, Schema, At, Document) || Key := Of <- Schema]).

keyword(~"type", Type, Value, _, At, _) -> wrong(is_type(Type, Value), At, {is_no, Type, Value});
keyword(~"enum", Words, Value, _, At, _) ->
    wrong(lists:member(Value, Words), At, {none_of, Words, Value});
keyword(~"const", Const, Value, _, At, _) -> wrong(Const =:= Value, At, {is_not, Const, Value});
keyword(~"minimum", Least, Value, _, At, _) -> wrong(Value >= Least, At, {below, Least, Value});
keyword(~"exclusiveMinimum", Least, Value, _, At, _) ->
    wrong(Value > Least, At, {not_above, Least, Value});
keyword(~"maximum", Most, Value, _, At, _) -> wrong(Value =< Most, At, {above, Most, Value});
keyword(~"maxLength", Most, Value, _, At, _) ->
    wrong(not is_binary(Value) orelse string:length(Value) =< Most, At, {longer, Most});
keyword(~"minItems", Least, Value, _, At, _) ->
    wrong(not is_list(Value) orelse length(Value) >= Least, At, {fewer, Least});
keyword(~"maxItems", Most, Value, _, At, _) ->
    wrong(not is_list(Value) orelse length(Value) =< Most, At, {more, Most});
keyword(~"required", Names, #{} = Value, _, At, _) ->
    wrong(Names -- maps:keys(Value) =:= [], At, {lacks, Names -- maps:keys(Value)});
keyword(~"properties", Of, #{} = Value, _, At, Document) ->
    lists:append([check(Member, map_get(Name, Of), <<At/binary, $., Name/binary>>, Document)
                  || Name := Member <- Value, is_map_key(Name, Of)]);
keyword(~"additionalProperties", Of, #{} = Value, Schema, At, Document) ->
    Others = maps:without(maps:keys(maps:get(~"properties", Schema, #{})), Value),
    case Of of
        false -> wrong(map_size(Others) =:= 0, At, {has_also, maps:keys(Others)});
        _ ->
            lists:append([check(Member, Of, <<At/binary, $., Name/binary>>, Document)
                          || Name := Member <- Others])
    end;
keyword(~"items", Of, Value, _, At, Document) when is_list(Value) ->
    lists:append([check(Item, Of, <<At/binary, "[]">>, Document) || Item <- Value]);
keyword(~"anyOf", Schemas, Value, _, At, Document) ->
    wrong(fitting(Schemas, Value, At, Document) > 0, At, {fits_none, Value});
keyword(~"oneOf", Schemas, Value, _, At, Document) ->
    wrong(fitting(Schemas, Value, At, Document) =:= 1, At, {fits_not_one, Value});
keyword(_, _, _, _, _, _) -> [].

fitting(Schemas, Value, At, Document) ->
    length([Schema || Schema <- Schemas, check(Value, Schema, At, Document) =:= []]).

wrong(true, _, _) -> [];
wrong(false, At, What) -> [{At, What}].

is_type(~"object", Value) -> is_map(Value);
is_type(~"array", Value) -> is_list(Value);
is_type(~"string", Value) -> is_binary(Value);
is_type(~"integer", Value) -> is_integer(Value);
is_type(~"number", Value) -> is_number(Value);
is_type(~"boolean", Value) -> is_boolean(Value);
is_type(~"null", Value) -> Value =:= null.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_schema).
-moduledoc """
JSON Schema of answers, as terms that `json:encode/1` takes. Pure.

Only these keywords are used, and the tests' checker knows no others: `type`, `enum`, `const`,
`properties`, `required`, `additionalProperties`, `items`, `anyOf`, `oneOf`, `$ref`, and bounds of
numbers, texts and lists.
""".

-export([object/1, object/2, map/1, list/1, text/0, whole/0, number/0, flag/0, unix_ms/0, any/0,
         word/1, null_or/1, ref/1, fields/1]).
-export_type([schema/0]).

-type schema() :: #{binary() => term()}.

-doc "An object with just these members.".
-spec object(#{atom() => schema()}) -> schema().
object(Members) -> object(Members, #{}).

-doc "An object with these members, and perhaps others of the second map.".
-spec object(#{atom() => schema()}, #{atom() => schema()}) -> schema().
object(Members, Optional) ->
    #{~"type" => ~"object",
      ~"properties" => #{atom_to_binary(Key) => Schema
                         || Key := Schema <- maps:merge(Optional, Members)},
      ~"required" => lists:sort([atom_to_binary(Key) || Key <- maps:keys(Members)]),
      ~"additionalProperties" => false}.

-doc "An object whose members are named by what they are of.".
-spec map(schema()) -> schema().
map(Of) -> #{~"type" => ~"object", ~"additionalProperties" => Of}.

-spec list(schema()) -> schema().
list(Of) -> #{~"type" => ~"array", ~"items" => Of}.

-spec text() -> schema().
text() -> #{~"type" => ~"string"}.

-spec whole() -> schema().
whole() -> #{~"type" => ~"integer"}.

-spec number() -> schema().
number() -> #{~"type" => ~"number"}.

-spec flag() -> schema().
flag() -> #{~"type" => ~"boolean"}.

-doc "Unix milliseconds.".
-spec unix_ms() -> schema().
unix_ms() -> #{~"type" => ~"integer", ~"minimum" => 0}.

-doc "Whatever there is.".
-spec any() -> schema().
any() -> #{}.

-spec word([atom()]) -> schema().
word(Words) -> #{~"type" => ~"string", ~"enum" => [atom_to_binary(Word) || Word <- Words]}.

-spec null_or(schema()) -> schema().
null_or(Schema) -> #{~"anyOf" => [Schema, #{~"type" => ~"null"}]}.

-doc "A schema of the document, by its name.".
-spec ref(binary()) -> schema().
ref(Name) -> #{~"$ref" => <<"#/components/schemas/", Name/binary>>}.

-doc "An object that is sent, by its fields.".
-spec fields([sderl_web_fields:field()]) -> schema().
fields(Fields) ->
    #{~"type" => ~"object",
      ~"properties" => #{Name => default(sderl_web_fields:schema(Type), Default)
                         || {Name, _, Type, Default} <- Fields},
      ~"required" => [Name || {Name, _, _, required} <- Fields],
      ~"additionalProperties" => false}.

default(Schema, Default) when Default =:= required; Default =:= none -> Schema;
default(#{~"enum" := _} = Schema, Default) -> Schema#{~"default" => atom_to_binary(Default)};
%% A word for what no value says, such as the time that is now when it is answered.
default(Schema, Default) when is_atom(Default), not is_boolean(Default) -> Schema;
default(Schema, Default) -> Schema#{~"default" => Default}.

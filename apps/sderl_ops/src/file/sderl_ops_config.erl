%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_config).
-moduledoc """
The configuration of an instance's applications, from a file of operations, and as the text of a
`sys.config`. No atoms are made.

| in the file | in `sys.config` |
|---|---|
| `"config": {"sderl": {"tick_ms": 1000}}` | `[{'sderl', [{'tick_ms', 1000}]}].` |
| `"text"` | `<<"text"/utf8>>` |
| `true`, `false`, `null` | `true`, `false`, `undefined` |
| `[1, 2]` | `[1, 2]` |
| `{"key": 1}` | `#{'key' => 1}` |
| `{"atom": "majority"}` | `'majority'` |
| `{"string": "abc"}` | `"abc"` |
| `{"tuple": [1, 2]}` | `{1, 2}` |
""".

-export([check/2, text/1, atom/1]).
-export_type([config/0]).

-doc "Application, key, value.".
-type config() :: #{binary() => #{binary() => sderl_ops_walker:json()}}.

-doc "The problems of a value, which is at `Path` in the file.".
-spec check(sderl_ops_walker:json(), sderl_ops_walker:path()) -> [sderl_ops_walker:problem()].
check(#{~"atom" := Name} = Value, Path) when map_size(Value) =:= 1 ->
    [{Path ++ [~"atom"], Name, "the name of an atom: text of 1 to 255 characters"}
     || not (is_binary(Name) andalso string:length(Name) >= 1 andalso string:length(Name) =< 255)];
check(#{~"string" := Text} = Value, Path) when map_size(Value) =:= 1 ->
    [{Path ++ [~"string"], Text, "text"} || not is_binary(Text)];
check(#{~"tuple" := List} = Value, Path) when map_size(Value) =:= 1, not is_list(List) ->
    [{Path ++ [~"tuple"], List, "a list of the tuple's elements"}];
check(Map, Path) when is_map(Map) ->
    lists:append([check_key(Key, Path) ++ check(Item, Path ++ [Key])
                  || Key := Item <- maps:iterator(Map, ordered)]);
check(List, Path) when is_list(List) ->
    lists:append([check(Item, Path ++ [Index]) || {Index, Item} <- lists:enumerate(List)]);
check(_, _) ->
    [].

check_key(Key, Path) ->
    [{Path ++ [Key], explained, "a key has 1 to 255 characters"}
     || string:length(Key) < 1 orelse string:length(Key) > 255].

-doc "The `sys.config` of a configuration.".
-spec text(config()) -> unicode:chardata().
text(Config) ->
    Applications = [
        ["{", atom(Application), ", [", separated([["{", atom(Key), ", ", value(Value), "}"]
                                                   || Key := Value <- ordered(Keys)]), "]}"]
     || Application := Keys <- ordered(Config)
    ],
    ["%% coding: utf-8\n[", lists:join(",\n ", Applications), "].\n"].

ordered(Map) -> maps:iterator(Map, ordered).

value(#{~"atom" := Name} = Value) when map_size(Value) =:= 1 -> atom(Name);
value(#{~"string" := Text} = Value) when map_size(Value) =:= 1 -> quoted($", Text);
value(#{~"tuple" := Items} = Value) when map_size(Value) =:= 1 ->
    ["{", separated([value(Item) || Item <- Items]), "}"];
value(Map) when is_map(Map) ->
    ["#{", separated([[atom(Key), " => ", value(Value)] || Key := Value <- ordered(Map)]), "}"];
value(List) when is_list(List) -> ["[", separated([value(Item) || Item <- List]), "]"];
value(Text) when is_binary(Text) -> ["<<", quoted($", Text), "/utf8>>"];
value(null) -> "undefined";
value(Boolean) when is_boolean(Boolean) -> atom_to_list(Boolean);
value(Number) -> io_lib:format("~w", [Number]).

separated(Items) -> lists:join(", ", Items).

-doc "An atom as text.".
-spec atom(binary()) -> unicode:chardata().
atom(Name) -> quoted($', Name).

quoted(Quote, Text) ->
    [Quote, [escaped(Quote, Char) || Char <- unicode:characters_to_list(Text)], Quote].

escaped(Quote, Quote) -> [$\\, Quote];
escaped(_, $\\) -> "\\\\";
escaped(_, Char) when Char < 32; Char =:= 127 -> io_lib:format("\\x{~.16B}", [Char]);
escaped(_, Char) -> Char.

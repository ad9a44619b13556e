%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_actions_show).
-moduledoc "What `bin/sderl actions` prints of the answers of a dashboard. Pure.".

-export([list/1, requests/1, request/1, results/1, said/2]).

-doc "All actions, with what they take and do.".
-spec list(map()) -> unicode:chardata().
list(#{~"actions" := All, ~"role" := Role}) ->
    [[[Name, " (", Needs, "): ", About, ". ", Effect, $\n, [param(Param) || Param <- Params]]
      || #{~"name" := Name, ~"role" := Needs, ~"about" := About, ~"effect" := Effect,
           ~"params" := Params} <- All],
     "Your role is ", Role, ".\n"].

param(#{~"name" := Name, ~"about" := About, ~"required" := Required, ~"default" := Default} = P) ->
    ["    ", string:pad(Name, 12), About, "; ", type(P), needed(Required, Default), $\n].

type(#{~"type" := ~"whole", ~"min" := Min, ~"max" := Max}) -> io_lib:format("~b to ~b", [Min, Max]);
type(#{~"type" := ~"word", ~"words" := Words}) -> lists:join(", ", Words);
type(#{~"type" := ~"flag"}) -> "true or false";
type(_) -> "text".

needed(true, _) -> " (must be there)";
needed(false, null) -> "";
needed(false, ~"") -> "";
needed(false, Default) -> [" (", value(Default), ")"].

-doc "A line for each request.".
-spec requests(map()) -> unicode:chardata().
requests(#{~"requests" := []}) -> "no requests\n";
requests(#{~"requests" := All}) -> [head(Request) || Request <- All].

head(#{~"id" := Id, ~"action" := Action, ~"at" := At, ~"state" := State,
       ~"who" := #{~"name" := Name}} = Request) ->
    [time(At), "  ", Id, "  ", string:pad(State, 10), "  ", Name, "  ", Action, " ",
     json:encode(maps:get(~"on", Request)), " ", json:encode(maps:get(~"args", Request)), $\n].

time(Ms) -> calendar:system_time_to_rfc3339(Ms div 1000).

-doc "One request.".
-spec request(map()) -> unicode:chardata().
request(#{~"nodes" := Nodes} = Request) ->
    [head(Request), [[said(Node, One) || One <- Said]
                     || Node := #{~"said" := Said} <- maps:iterator(Nodes, ordered)],
     results(Request)].

-doc "The result of a request on each node.".
-spec results(map()) -> unicode:chardata().
results(#{~"nodes" := Nodes}) ->
    [[[[Node, ":\n"] || map_size(Nodes) > 1], node_result(Result)]
     || Node := Result <- maps:iterator(Nodes, ordered)].

node_result(#{~"state" := ~"ok", ~"result" := Result}) -> result(Result);
node_result(#{~"error" := Why}) when is_binary(Why) -> ["  ", Why, $\n];
node_result(#{~"state" := State}) -> ["  ", State, $\n].

%% A list of objects is a table, beside what else there is.
result(Result) when is_map(Result) ->
    [[field(Key, Value) || Key := Value <- maps:iterator(Result, ordered), not is_rows(Value)],
     [rows(Value) || _ := Value <- maps:iterator(Result, ordered), is_rows(Value)]];
result(Result) -> [value(Result), $\n].

is_rows([#{} | _]) -> true;
is_rows(_) -> false.

field(Key, Value) ->
    case value(Value) of
        Text when is_binary(Text) ->
            case binary:match(Text, ~"\n") of
                nomatch -> ["  ", Key, ": ", Text, $\n];
                _ -> ["  ", Key, ":\n", Text, $\n]
            end;
        Text -> ["  ", Key, ": ", Text, $\n]
    end.

rows([First | _] = Rows) ->
    Keys = [~"pid" || is_map_key(~"pid", First)] ++ lists:sort(maps:keys(First) -- [~"pid"]),
    sderl_table:text(Keys, [[cell(maps:get(Key, Row, ~"")) || Key <- Keys] || Row <- Rows]).

cell(Value) ->
    Text = unicode:characters_to_binary(value(Value)),
    sderl_mon_text:cut(binary:replace(Text, ~"\n", ~" ", [global]), 60).

value(Text) when is_binary(Text) -> Text;
value(Value) when is_integer(Value) -> sderl_table:number(Value);
value(Value) when is_list(Value) ->
    lists:join(", ", [value(Item) || Item <- Value]);
value(Value) -> json:encode(Value).

-doc "A line that a node told while it ran.".
-spec said(binary(), map()) -> unicode:chardata().
said(Node, #{~"at" := At, ~"pid" := Pid, ~"text" := Text}) ->
    [calendar:system_time_to_rfc3339(At, [{unit, millisecond}]), "  ", Node, "  ", Pid, "  ", Text,
     $\n];
said(Node, Said) -> [Node, "  ", json:encode(Said), $\n].

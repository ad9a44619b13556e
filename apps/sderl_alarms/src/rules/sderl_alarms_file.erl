%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_file).
-moduledoc """
The file of rules and routes: one JSON object, which is accepted as a whole or not at all. All
errors in it are returned at once, one line each. Pure except for `read/1`.
""".

-export([default/0, read/1, parse/1]).
-export_type([rules/0]).

-import(sderl_alarms_words, [text/2, shown/1, suggestion/2]).

-doc """
The rules in force: the built-in ones, then those of the file in its order; for each alarm the last
rule that matches a place holds there. And the routes.
""".
-type rules() :: #{rules := [sderl_alarms_rule:rule()], routes := [sderl_alarms_routes:route()]}.

-define(MOST_BYTES, 1_048_576).
-define(MOST_RULES, 1000).
-define(MOST_ROUTES, 50).

-doc "The rules without a file.".
-spec default() -> rules().
default() -> #{rules => sderl_alarms_rule:built_in(), routes => []}.

-doc "The rules of a file. Errors are sentences.".
-spec read(file:name_all()) -> {ok, rules()} | {error, [binary(), ...]}.
read(File) ->
    maybe
        {ok, Size} ?= file_size(File),
        true ?= Size =< ?MOST_BYTES,
        {ok, Text} ?= file:read_file(File),
        parse(Text)
    else
        false -> {error, [text("~ts has more than 1 MiB; write fewer rules", [File])]};
        {error, Why} when is_atom(Why) ->
            {error, [text("~ts: ~ts", [File, file:format_error(Why)])]};
        {error, _} = Error -> Error
    end.

file_size(File) ->
    maybe
        {ok, Info} ?= file:read_file_info(File),
        {ok, element(2, Info)}
    end.

-doc "The rules of a text.".
-spec parse(binary()) -> {ok, rules()} | {error, [binary(), ...]}.
parse(Text) ->
    case decode(Text) of
        {ok, #{} = Object} -> object(Object);
        {ok, Other} ->
            {error, [text("~ts is not the object of a file of rules; write {\"rules\": [...]}",
                          [shown(Other)])]};
        {error, Why} -> {error, [Why]}
    end.

decode(Text) ->
    Push = fun(Key, Value, Pairs) ->
        lists:keymember(Key, 1, Pairs) andalso throw({twice, Key}),
        [{Key, Value} | Pairs]
    end,
    Number = fun(Convert) ->
        fun(Digits) when byte_size(Digits) =< 32 -> Convert(Digits); (_) -> throw(long_number) end
    end,
    Decoders = #{object_start => fun(_) -> [] end, object_push => Push,
                 object_finish => fun(Pairs, Acc) -> {maps:from_list(Pairs), Acc} end,
                 integer => Number(fun binary_to_integer/1),
                 float => Number(fun binary_to_float/1)},
    try json:decode(Text, ok, Decoders) of
        {Value, ok, Rest} ->
            case string:trim(Rest) of
                ~"" -> {ok, Value};
                _ -> {error, text("line ~w: there is more behind the object; remove it",
                                  [line(Text, byte_size(Text) - byte_size(Rest))])}
            end
    catch
        throw:{twice, Key} ->
            {error, text("the key ~ts is there twice in one object; remove one", [shown(Key)])};
        throw:long_number ->
            {error, ~"a number has more than 32 characters; write a shorter one"};
        error:unexpected_end ->
            {error, ~"the text ends before the object does; is a bracket missing?"};
        error:Why:Stack ->
            {error, text("line ~w: this is not JSON (~ts)",
                         [line(Text, position(Stack)), why(Why)])}
    end.

position([{_, _, _, Info} | _]) ->
    case proplists:get_value(error_info, Info, #{}) of
        #{cause := #{position := At}} -> At;
        #{} -> 0
    end;
position(_) -> 0.

line(Text, At) ->
    Before = binary:part(Text, 0, min(At, byte_size(Text))),
    1 + length(binary:matches(Before, ~"\n")).

why({invalid_byte, Byte}) when Byte >= $\s, Byte < 127 -> ["\"", Byte, "\" cannot be here"];
why({invalid_byte, Byte}) -> io_lib:format("the byte ~w cannot be here", [Byte]);
why({unexpected_sequence, Text}) -> [shown(Text), " cannot be here"];
why(_) -> "it cannot be read".

object(Object) ->
    Keys = [~"rules", ~"routes"],
    Unknown = [text("~ts is not a key of a file of rules~ts", [Key, suggestion(Key, Keys)])
               || Key := _ <- maps:iterator(Object, ordered), not lists:member(Key, Keys)],
    {Rules, WrongRules} = list(~"rules", ?MOST_RULES, fun check_rule/2, #{}, Object),
    {Routes, WrongRoutes} = list(~"routes", ?MOST_ROUTES, fun check_route/2, none, Object),
    case Unknown ++ WrongRules ++ hidden(Rules) ++ WrongRoutes ++ twice(Routes) of
        [] ->
            {ok, #{rules => sderl_alarms_rule:built_in() ++ [Rule || {_, Rule} <- Rules],
                   routes => [Route || {_, Route} <- Routes]}};
        Problems -> {error, Problems}
    end.

%% Later rules for a new alarm take their defaults from its first rule.
check_rule(Given, New) ->
    case sderl_alarms_rule:check(Given, New) of
        {ok, #{kind := value, alarm := Alarm, settings := Settings} = Rule} ->
            {{ok, Rule}, maps:merge(#{Alarm => Settings}, New)};
        Other -> {Other, New}
    end.

check_route(Given, none) -> {sderl_alarms_routes:check(Given), none}.

list(Key, Most, Check, Acc, Object) ->
    case maps:get(Key, Object, []) of
        List when is_list(List), length(List) =< Most ->
            {Checked, _} = lists:mapfoldl(Check, Acc, List),
            Numbered = lists:enumerate(Checked),
            {[{At, Term} || {At, {ok, Term}} <- Numbered],
             [place(Key, At, Problem) || {At, {error, Problems}} <- Numbered,
                                         Problem <- Problems]};
        List when is_list(List) ->
            {[], [text("~ts has more than ~w entries; write fewer", [Key, Most])]};
        Other ->
            {[], [text("~ts: ~ts is not a list; write [...]", [Key, shown(Other)])]}
    end.

place(Key, At, {~"", Why}) -> text("~ts.~w: ~ts", [Key, At, Why]);
place(Key, At, {Field, Why}) -> text("~ts.~w.~ts: ~ts", [Key, At, Field, Why]).

%% For each alarm the last matching rule holds, so a rule before one that holds everywhere is never
%% used.
hidden(Rules) ->
    [text("rules.~w: it is never used, as rules.~w of ~ts comes later and holds everywhere; put "
          "it behind that one", [At, Later, Alarm])
     || {At, #{alarm := Alarm}} <- Rules,
        [Later | _] <- [[N || {N, #{alarm := Is, where := all}} <- Rules, Is =:= Alarm, N > At]]].

twice(Routes) ->
    Names = [sderl_alarms_routes:name(Route) || {_, Route} <- Routes],
    [text("routes: two have the name ~ts; give each a name of its own", [shown(Name)])
     || Name <- lists:usort(Names -- lists:usort(Names))].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_set).
-moduledoc """
Settings of programs that the user changes: `--set big.processes=800`. A value must be of the same
kind as the program's own: a whole number of at least 1 (at least 0 if the program has 0), a number,
`true` or `false`, a word, or else an Erlang term. Pure.
""".

-export([all/1, others/2, applied/3, unused/2]).
-export_type([change/0]).

-doc "A setting of a program, and the text of its value.".
-type change() :: {Program :: string(), Key :: string(), Value :: string()}.

-define(FORM, "it has the form PROGRAM.KEY=VALUE, as in big.processes=800").

-doc "The changes of the texts of the command line; an error where a setting is given twice.".
-spec all([string()]) -> {ok, [change()]} | {error, unicode:chardata()}.
all(Texts) ->
    maybe
        {ok, Changes} ?= sderl_bench_vm_request:all(fun change/1, Texts),
        Settings = [{Program, Key} || {Program, Key, _} <- Changes],
        [] ?= Settings -- lists:uniq(Settings),
        {ok, Changes}
    else
        {error, Text} -> {error, Text};
        [{Program, Key} | _] -> {error, ["--set: ", Program, ".", Key, " is given twice"]}
    end.

change(Text) ->
    maybe
        [Left, [_ | _] = Value] ?= string:split(Text, "="),
        [[_ | _] = Program, [_ | _] = Key] ?= string:split(Left, "."),
        {ok, {Program, Key, Value}}
    else
        _ -> {error, ["--set ", Text, ": ", ?FORM]}
    end.

-doc "The texts that change other settings than those of `Than`.".
-spec others([string()], [string()]) -> [string()].
others(Texts, Than) ->
    Changed = [setting(Text) || Text <- Than],
    [Text || Text <- Texts, not lists:member(setting(Text), Changed)].

setting(Text) -> hd(string:split(Text, "=")).

-doc "The settings of a program with its changes.".
-spec applied([change()], Program :: string(), sderl_bench_vm_program:settings()) ->
    {ok, sderl_bench_vm_program:settings()} | {error, unicode:chardata()}.
applied([], _, Settings) ->
    {ok, Settings};
applied([{Program, Name, Text} | Changes], Program, Settings) ->
    maybe
        [Key] ?= [Key || Key := _ <- Settings, atom_to_list(Key) =:= Name],
        {ok, Value} ?= value(Text, map_get(Key, Settings)),
        applied(Changes, Program, Settings#{Key := Value})
    else
        [] -> {error, ["--set ", Program, ".", Name, ": ", unknown(Name, Settings)]};
        {error, Wanted} ->
            {error, ["--set ", Program, ".", Name, "=", Text, ": it is ", Wanted]}
    end;
applied([_ | Changes], Program, Settings) ->
    applied(Changes, Program, Settings).

unknown(_, Settings) when map_size(Settings) =:= 0 ->
    "the program has no settings";
unknown(Name, Settings) ->
    ["there is no setting ", Name, "; there are ",
     lists:join(", ", [atom_to_list(Key) || Key := _ <- maps:iterator(Settings, ordered)])].

%% By the kind of the program's own value.
value(Text, Own) when is_integer(Own) ->
    case string:to_integer(Text) of
        {Value, ""} when Value >= 1; Value =:= 0, Own =:= 0 -> {ok, Value};
        _ -> {error, ["a whole number from ", case Own of 0 -> "0"; _ -> "1" end, " on"]}
    end;
value(Text, Own) when is_float(Own) ->
    case {string:to_float(Text), string:to_integer(Text)} of
        {{Value, ""}, _} when is_float(Value) -> {ok, Value};
        {_, {Value, ""}} when is_integer(Value) -> {ok, float(Value)};
        _ -> {error, "a number"}
    end;
value("true", Own) when is_boolean(Own) -> {ok, true};
value("false", Own) when is_boolean(Own) -> {ok, false};
value(_, Own) when is_boolean(Own) -> {error, "true or false"};
value(Text, Own) when is_atom(Own) ->
    case re:run(Text, "^[a-z][A-Za-z0-9_]{0,99}$") of
        {match, _} -> {ok, list_to_atom(Text)};
        nomatch -> {error, io_lib:format("a word, as ~ts", [Own])}
    end;
value(Text, Own) when is_binary(Own) ->
    {ok, unicode:characters_to_binary(Text)};
value(Text, Own) ->
    maybe
        {ok, Tokens, _} ?= erl_scan:string(Text ++ "."),
        {ok, Value} ?= erl_parse:parse_term(Tokens),
        true ?= is_list(Value) =:= is_list(Own) andalso is_map(Value) =:= is_map(Own),
        true ?= sderl_bench_vm_store:is_storable(Value),
        {ok, Value}
    else
        _ -> {error, io_lib:format("an Erlang term, as ~0tP", [Own, 20])}
    end.

-doc "A change of a program that is none of those that are measured is an error.".
-spec unused([change()], Measured :: [string()]) -> ok | {error, unicode:chardata()}.
unused(Changes, Measured) ->
    case [Change || {Program, _, _} = Change <- Changes, not lists:member(Program, Measured)] of
        [] -> ok;
        [{Program, Key, _} | _] when Measured =:= [] ->
            {error, ["--set ", Program, ".", Key, ": no program is measured, and a call has no "
                     "settings"]};
        [{Program, Key, _} | _] ->
            {error, ["--set ", Program, ".", Key, ": ", Program, " is not measured; the programs "
                     "are ", lists:join(", ", Measured)]}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_words).
-moduledoc """
Values in the arguments of `bin/sderl chaos` and `recover`: targets, durations, windows, terms.
Pure. Errors are sentences that name the word and what belongs there.
""".

-export([target/1, duration/1, window/1, term/1]).

-define(TARGETS, "module:MODULE, supervisor:NAME, find:MODULE:FUNCTION, name[:NAME], "
                 "global[:NAME], group:GROUP[/NAME], link or node, each perhaps after WEIGHT*").

-doc """
A target of `m:sderl_chaos`, perhaps with a weight before it: `3*name:queue`. Names are Erlang
terms: `global:{db,1}`, `group:'my-group'/queue`; without a name all names are meant. The class in
the log is the word itself.
""".
-spec target(string()) -> {ok, sderl_chaos:target()} | {error, unicode:chardata()}.
target(Word) ->
    {Weight, Thing} = weight(Word),
    maybe
        true ?= is_number(Weight) andalso Weight > 0,
        {ok, Target} ?= kind(string:split(Thing, ":")),
        {ok, Target#{weight => Weight, class => unicode:characters_to_binary(Thing)}}
    else
        false ->
            {error,
             io_lib:format("--target \"~ts\": the weight before * is a number over 0", [Word])};
        {error, Why} -> {error, io_lib:format("--target \"~ts\": ~ts", [Word, Why])}
    end.

weight(Word) ->
    case string:split(Word, "*") of
        [Number, Thing] ->
            %% A star may also be in a name.
            case lists:all(fun(C) -> (C >= $0 andalso C =< $9) orelse C =:= $. orelse C =:= $- end,
                           Number) of
                true -> {number(Number), Thing};
                false -> {1, Word}
            end;
        [_] ->
            {1, Word}
    end.

number(Text) ->
    case {string:to_float(Text), string:to_integer(Text)} of
        {{N, []}, _} -> N;
        {_, {N, []}} when is_integer(N) -> N;
        _ -> none
    end.

kind(["node"]) -> {ok, #{kind => node}};
kind(["link"]) -> {ok, #{kind => link}};
kind(["name"]) -> {ok, #{kind => name, group => local}};
kind(["global"]) -> {ok, #{kind => name, group => global}};
kind(["name", Text]) ->
    with(atom(Text), fun(Name) -> #{kind => name, group => local, names => [Name]} end);
kind(["global", Text]) ->
    with(term(Text), fun(Name) -> #{kind => name, group => global, names => [Name]} end);
kind(["module", Text]) -> with(atom(Text), fun(Module) -> #{kind => process, module => Module} end);
kind(["supervisor", Text]) ->
    with(atom(Text), fun(Name) -> #{kind => process, supervisor => Name} end);
kind(["find", Text]) ->
    case string:split(Text, ":") of
        [M, F] ->
            maybe
                {ok, Module} ?= atom(M),
                {ok, Function} ?= atom(F),
                {ok, #{kind => process, find => {Module, Function, []}}}
            end;
        _ ->
            {error, "find needs MODULE:FUNCTION, a function without arguments that gives [{Key, "
                    "Pid}] on a node"}
    end;
kind(["group", Text]) ->
    case slash(Text) of
        {Group, Name} ->
            maybe
                {ok, G} ?= term(Group),
                {ok, N} ?= term(Name),
                {ok, #{kind => name, group => {s_group, G}, names => [N]}}
            end;
        none ->
            with(term(Text), fun(Group) -> #{kind => name, group => {s_group, Group}} end)
    end;
kind([Kind | _]) when Kind =:= "module"; Kind =:= "supervisor"; Kind =:= "find"; Kind =:= "group" ->
    {error, [Kind, ": what is missing after it; a target is ", ?TARGETS]};
kind(_) ->
    {error, ["a target is ", ?TARGETS]}.

with({ok, Term}, Make) -> {ok, Make(Term)};
with({error, _} = Error, _) -> Error.

atom(Text) ->
    case term(Text) of
        {ok, Atom} when is_atom(Atom) -> {ok, Atom};
        {ok, _} ->
            {error,
             io_lib:format("\"~ts\" is no atom (an atom is like my_name or 'My-Name')", [Text])};
        {error, _} = Error -> Error
    end.

-doc "An Erlang term, as in a file, without the full stop.".
-spec term(string()) -> {ok, term()} | {error, unicode:chardata()}.
term(Text) ->
    maybe
        {ok, Tokens, _} ?= erl_scan:string(Text ++ " ."),
        {ok, Term} ?= erl_parse:parse_term(Tokens),
        {ok, Term}
    else
        _ ->
            {error, io_lib:format("\"~ts\" is no Erlang term (quote names with capitals or dashes: "
                                  "'My-Name')", [Text])}
    end.

%% At the first slash that is not in quotes.
slash(Text) -> slash(Text, [], none).

slash([], _, _) -> none;
slash([$/ | Rest], Before, none) -> {lists:reverse(Before), Rest};
slash([$\\, C | Rest], Before, Quote) -> slash(Rest, [C, $\\ | Before], Quote);
slash([C | Rest], Before, none) when C =:= $'; C =:= $" -> slash(Rest, [C | Before], C);
slash([C | Rest], Before, C) -> slash(Rest, [C | Before], none);
slash([C | Rest], Before, Quote) -> slash(Rest, [C | Before], Quote).

-doc "Milliseconds: `500ms`, `5s`, `1.5min`, `2h`.".
-spec duration(string()) -> {ok, Ms :: non_neg_integer()} | {error, unicode:chardata()}.
duration(Text) ->
    {Number, Unit} = string:take(Text, "0123456789."),
    case {number(Number), unit(Unit)} of
        {N, Ms} when is_number(N), is_integer(Ms) -> {ok, round(N * Ms)};
        _ ->
            {error, io_lib:format("\"~ts\" is no duration; one is 500ms, 5s, 1.5min or 2h", [Text])}
    end.

unit("ms") -> 1;
unit("s") -> 1000;
unit("min") -> 60_000;
unit("h") -> 3_600_000;
unit(_) -> none.

-doc "`10s..60s`, or `10s..` for one without an end.".
-spec window(string()) -> {ok, {FromMs :: non_neg_integer(), ToMs :: non_neg_integer() | infinity}}
                          | {error, unicode:chardata()}.
window(Text) ->
    case string:split(Text, "..") of
        [From, To] ->
            maybe
                {ok, FromMs} ?= duration(From),
                {ok, ToMs} ?= end_of(To),
                true ?= ToMs > FromMs,
                {ok, {FromMs, ToMs}}
            else
                false -> {error, io_lib:format("the window ~ts ends before it begins", [Text])};
                {error, _} = Error -> Error
            end;
        [_] ->
            {error, io_lib:format("\"~ts\" is no window; one is 10s..60s, or 10s.. without an end",
                                  [Text])}
    end.

end_of("") -> {ok, infinity};
end_of(Text) -> duration(Text).

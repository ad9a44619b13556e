%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_experiment).
-moduledoc """
A benchmark: what follows `bin/sderl bench`. A result with `--json` is one object a line, see
`m:sderl_bench_output`.
""".

-export([command/1, option/5]).
-export([at_least/3, at_most/2, numbers/4, reals/4, real/4, chosen/4, known/4, words/1]).

-doc "One line for `bin/sderl bench list`.".
-callback summary() -> string().

-doc "Its options, for OTP's `m:argparse`, without those that all benchmarks have (`command/1`).".
-callback command() -> argparse:command().

-doc """
Checks what argparse cannot: `Options` are as parsed, the result is what `run/2` gets. The
message names the option and the remedy.
""".
-callback check(Options :: #{atom() => term()}) ->
    {ok, #{atom() => term()}} | {error, sderl_command:text()}.

-doc "Measures, prints tables with `sderl_bench_output:say/2` and writes results.".
-callback run(#{atom() => term()}, sderl_bench_output:output()) ->
    ok | {error, sderl_command:text()}.

-doc "The command line of a benchmark: its own options, and `--json`.".
-spec command(module()) -> argparse:command().
command(Experiment) ->
    #{arguments := Own} = Command = Experiment:command(),
    Command#{arguments := Own ++ [json_option()]}.

json_option() ->
    #{
        name => json,
        long => "-json",
        type => string,
        required => false,
        help => {"[--json FILE|-]",
                 ["results as JSON, one object a line, to a file or to stdout (-)"]}
    }.

-doc "An option with a default, which its help shows: `max_links` is given as `--max-links`.".
-spec option(atom(), Shape :: string(), integer | string, Default :: integer() | string(),
             Text :: unicode:chardata()) ->
    argparse:argument().
option(Name, Shape, Type, Default, Text) ->
    Long = [$- | flag(Name)],
    Shown = io_lib:format("~ts (~ts)", [
        Text, if is_integer(Default) -> integer_to_list(Default); true -> Default end
    ]),
    #{
        name => Name,
        long => Long,
        type => Type,
        default => Default,
        help => {lists:flatten(["[-", Long, " ", Shape, "]"]), [lists:flatten(Shown)]}
    }.

flag(Key) -> lists:flatten(string:replace(atom_to_list(Key), "_", "-", all)).

-doc "Whether the values of these options are not less than `Min`.".
-spec at_least(Min :: integer(), [atom()], #{atom() => term()}) ->
    ok | {error, sderl_command:text()}.
at_least(Min, Keys, Options) ->
    case [{Key, Value} || Key <- Keys, Value <- [maps:get(Key, Options)], Value < Min] of
        [] -> ok;
        [{Key, Value} | _] ->
            {error, io_lib:format("--~ts must be at least ~w, not ~w", [flag(Key), Min, Value])}
    end.

-doc """
Whether the values of these options are not greater than `Max`: more is a mistake, or more than a
machine can do.
""".
-spec at_most([{atom(), Max :: integer()}], #{atom() => term()}) ->
    ok | {error, sderl_command:text()}.
at_most(Limits, Options) ->
    case [{Key, Max, Value} || {Key, Max} <- Limits, #{Key := Value} <- [Options], Value > Max] of
        [] -> ok;
        [{Key, Max, Value} | _] ->
            {error, io_lib:format("--~ts must be at most ~w, not ~w", [flag(Key), Max, Value])}
    end.

-doc "The whole numbers of a list with commas, in its order.".
-spec numbers(Option :: string(), Text :: string(), Min :: integer(), Max :: integer()) ->
    {ok, [integer()]} | {error, sderl_command:text()}.
numbers(Option, Text, Min, Max) ->
    case [W || W <- words(Text), not is_number_between(W, Min, Max)] of
        [] -> {ok, [list_to_integer(W) || W <- words(Text)]};
        [W | _] ->
            {error,
             io_lib:format("~ts: \"~ts\" is no whole number from ~w to ~w", [Option, W, Min, Max])}
    end.

is_number_between(Word, Min, Max) ->
    case string:to_integer(Word) of
        {N, []} when is_integer(N) -> N >= Min andalso N =< Max;
        _ -> false
    end.

-doc "The numbers of a list with commas, whole or with a decimal point, in its order.".
-spec reals(Option :: string(), Text :: string(), Min :: number(), Max :: number()) ->
    {ok, [float()]} | {error, sderl_command:text()}.
reals(Option, Text, Min, Max) ->
    Numbers = [{W, parsed(W)} || W <- words(Text)],
    case [W || {W, N} <- Numbers, not (is_float(N) andalso N >= Min andalso N =< Max)] of
        [] -> {ok, [N || {_, N} <- Numbers]};
        [W | _] ->
            {error, [Option, io_lib:format(": \"~ts\" is no number from ", [W]), short(Min), " to ",
                     short(Max)]}
    end.

parsed(Word) ->
    case {string:to_float(Word), string:to_integer(Word)} of
        {{N, []}, _} -> N;
        {_, {N, []}} when is_integer(N) -> float(N);
        _ -> none
    end.

-doc "The one number of an option, as `reals/4`.".
-spec real(Option :: string(), Text :: string(), Min :: number(), Max :: number()) ->
    {ok, float()} | {error, sderl_command:text()}.
real(Option, Text, Min, Max) ->
    case reals(Option, Text, Min, Max) of
        {ok, [Number]} -> {ok, Number};
        {ok, _} -> {error, [Option, " takes one number"]};
        Error -> Error
    end.

short(N) when is_integer(N) -> integer_to_list(N);
short(N) -> float_to_list(N, [short]).

-doc """
The known names in a list with commas, in its order, each once; `What` says what they name.
""".
-spec chosen(Option :: string(), What :: string(), Text :: string(), Known :: [atom()]) ->
    {ok, [atom()]} | {error, sderl_command:text()}.
chosen(Option, What, Text, Known) ->
    Words = words(Text),
    maybe
        ok ?= known(Option, What, Words, [atom_to_list(K) || K <- Known]),
        {ok, [list_to_existing_atom(W) || W <- Words]}
    end.

-doc "Whether all words are known names, each once; `What` says what they name.".
-spec known(Option :: string(), What :: string(), [string()], Known :: [string()]) ->
    ok | {error, sderl_command:text()}.
known(Option, What, Words, Known) ->
    case {[W || W <- Words, not lists:member(W, Known)], Words -- lists:uniq(Words)} of
        {[W | _], _} ->
            {error, [Option, ": there is no ", What, " \"", W, "\"; there are ",
                     lists:join(", ", Known)]};
        {[], [Twice | _]} ->
            {error, [Option, " names ", Twice, " twice; name it once"]};
        {[], []} ->
            ok
    end.

-doc "The words of a list with commas.".
-spec words(Text :: string()) -> [string()].
words(Text) -> [string:trim(W) || W <- string:split(Text, ",", all)].

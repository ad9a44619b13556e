%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_options).
-moduledoc "Parses and checks the command line of a benchmark, for the tests of its options.".

-export([checked/3]).

-doc "The options that `run/2` of the experiment would get, or its error message.".
-spec checked(string(), module(), [string()]) -> {ok, map()} | {error, string()}.
checked(Name, Experiment, Args) ->
    {ok, Parsed} = sderl_command:parse(Args, ["bench", Name], Experiment:command()),
    case Experiment:check(Parsed) of
        {ok, Options} -> {ok, Options};
        {error, Text} -> {error, unicode:characters_to_list(Text)}
    end.

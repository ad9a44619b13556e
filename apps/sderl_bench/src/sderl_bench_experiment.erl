%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_experiment).
-moduledoc """
A benchmark: what follows `bin/sderl bench`. Its module is listed in
`m:sderl_bench_command`. A result with `--json` is one object a line, see
`m:sderl_bench_output`.
""".

-export([json_option/0]).

-doc "One line for `bin/sderl bench list`.".
-callback summary() -> string().

-doc "Its options, for OTP's `m:argparse`; with the option of `json_option/0`.".
-callback command() -> argparse:command().

-doc """
Checks what argparse cannot: `Options` are as parsed, the result is what `run/2` gets. The
message names the option and the remedy.
""".
-callback check(Options :: #{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.

-doc "Measures, prints tables with `sderl_bench_output:say/2` and writes results.".
-callback run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.

-doc "The option for results as JSON.".
-spec json_option() -> argparse:argument().
json_option() ->
    #{
        name => json,
        long => "-json",
        type => string,
        required => false,
        help => {"[--json FILE|-]", ["results as JSON, one object a line, to a file or to stdout (-)"]}
    }.

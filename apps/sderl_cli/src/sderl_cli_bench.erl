%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_bench).
-moduledoc "`bin/sderl bench NAME [options]` and `bench list`.".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-doc false.
-spec summary() -> string().
summary() -> "measurements on this machine, one of those that \"bench list\" lists".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() ->
    {commands, [{"list", [], none}
                | [sderl_completion:command(Name, sderl_bench_experiment:command(Module))
                   || {Name, Module} <- sderl_catalogue:all(experiments)]]}.

-doc false.
-spec run([string()]) -> sderl_command:result().
run([]) ->
    {usage, ["which benchmark?\n\n", list()]};
run([Help]) when Help =:= "--help"; Help =:= "-h"; Help =:= "help" ->
    {help, ["usage: bin/sderl bench NAME [options]\n\n", list()]};
run(["list"]) ->
    {help, list()};
run(["list" | _]) ->
    {usage, "\"bench list\" takes no options"};
run([Name | Args]) ->
    case lists:keyfind(Name, 1, sderl_catalogue:all(experiments)) of
        {Name, Module} -> run(Module, Name, Args);
        false -> {usage, ["there is no benchmark ", Name, "\n\n", list()]}
    end.

run(Module, Name, Args) ->
    maybe
        Command = sderl_bench_experiment:command(Module),
        {ok, Parsed} ?= sderl_command:parse(Args, ["bench", Name], Command),
        {json, Json, Rest} = {json, maps:get(json, Parsed, undefined), maps:remove(json, Parsed)},
        {checked, {ok, Options}} ?= {checked, Module:check(Rest)},
        {ok, Output} ?= sderl_bench_output:open(Json),
        Outcome = Module:run(Options, Output),
        case {Outcome, sderl_bench_output:close(Output)} of
            {ok, Closed} -> Closed;
            {Error, _} -> Error
        end
    else
        {checked, {error, Message}} -> {usage, Message};
        Other -> Other
    end.

list() ->
    [
        [io_lib:format("  ~-10ts ~ts~n", [Name, Module:summary()])
         || {Name, Module} <- sderl_catalogue:all(experiments)],
        "\n\"bin/sderl bench NAME --help\" tells a benchmark's options; completion for a shell: "
        "eval \"$(bin/sderl completion bash)\".\n"
    ].

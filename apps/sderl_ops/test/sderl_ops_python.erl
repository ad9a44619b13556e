%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_python).
-moduledoc "Runs toolchain/kubernetes-validate, where this machine has what that needs.".

-export([run/1]).

-doc "The exit status and all that was said.".
-spec run([string()]) -> {non_neg_integer(), binary()} | skipped.
run(Arguments) ->
    Program = filename:join([sderl_ops_places:root(), "toolchain", "kubernetes-validate"]),
    Port = open_port({spawn_executable, Program},
                     [{args, Arguments}, binary, exit_status, stderr_to_stdout]),
    case output(Port, <<>>) of
        {77, Why} ->
            io:format(user, "skipped: ~ts", [Why]),
            skipped;
        Result ->
            Result
    end.

output(Port, Said) ->
    receive
        {Port, {data, Bytes}} -> output(Port, <<Said/binary, Bytes/binary>>);
        {Port, {exit_status, Status}} -> {Status, Said}
    end.

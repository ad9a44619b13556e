%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_transport).
-moduledoc "How the host script is run: one module for each way to reach a host.".

-export_type([connection/0, answer/0]).

-doc "The module, and what it needs to reach one host.".
-type connection() :: {module(), map()}.

-doc "The script's exit status and its output; or why it did not run to its end.".
-type answer() ::
    {ok, Status :: non_neg_integer(), Output :: binary()} | {error, sderl_ops_host:why()}.

-doc """
Runs the script with these arguments. No process that it starts on this machine may outlive the
call.
""".
-callback run(Settings :: map(), Cluster :: binary(), [binary()], sderl_ops_port:input(),
              LimitMs :: pos_integer()) -> answer().

-doc """
Has one host give a release to another one that is reached in the same way. The arguments are those
of the giver's script; the callback appends how the receiver is reached.
""".
-callback give(Giver :: map(), Receiver :: map(), Cluster :: binary(), [binary()],
               LimitMs :: pos_integer()) -> answer().

-optional_callbacks([give/5]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_relay).
-moduledoc """
An agent's part in the log: it acknowledges a batch of a node, and passes it on to the stores of all
monitoring nodes without waiting. A store that misses a batch sees from the next one how many events
it has missed.
""".

-export([pass/4]).

-doc """
Passes a batch on. Returns what the agent counts as lost: malformed batches, or the number of stores
to which it could not be sent.
""".
-spec pass(pid(), Batch :: term(), [sderl_mon_types:id()], Stores :: [node()]) ->
    {log_malformed | log_unsent, non_neg_integer()}.
pass(Collector, Term, Groups, Stores) ->
    case sderl_mon_log_message:check_batch(Term) of
        {ok, #{node := Node, seq := Seq} = Batch} when Node =:= node(Collector) ->
            _ = sderl_mon_tell:message(Collector, {sderl_mon_log_ack, Seq}),
            Relayed = sderl_mon_log_message:relay(Batch, sderl_mon_types:id(Node), Groups,
                                                  sderl_mon_clock:wall_ms()),
            Message = {sderl_mon_log, 1, Relayed},
            {log_unsent,
             length([S || S <- Stores, not sderl_mon_tell:cast(S, sderl_mon_log, Message)])};
        %% Without an acknowledgement the collector ends by itself.
        _ -> {log_malformed, 1}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_sources).
-moduledoc """
What a store has received from each node, so that no batch is kept twice, and what was left out on
the way is counted once. Pure.
""".

-export([new/0, take/2]).
-export_type([sources/0]).

-record(source, {
    run :: integer(),
    seq :: non_neg_integer(),
    %% How many events were sent so far.
    sent :: non_neg_integer(),
    lost :: sderl_mon_log_message:lost()
}).
-opaque sources() :: #{sderl_mon_types:id() => #source{}}.

%% More nodes than a shadow network can have; beyond that everything is forgotten.
-define(MOST, 20_000).

-doc "Nothing was received.".
-spec new() -> sources().
new() -> #{}.

-doc """
Takes a batch. `known`: it was received before. Otherwise returns what was left out since the last
batch. Of a node whose first batches this store does not have, only later losses count.
""".
-spec take(sderl_mon_log_message:relayed(), sources()) ->
    {new, sderl_mon_log_message:missing(), sources()} | known.
take(#{node := Node, run := Run, seq := Seq, before := Before, events := Events, lost := Lost},
     Sources) ->
    case Sources of
        #{Node := #source{run = Run, seq = Had}} when Seq =< Had -> known;
        #{Node := #source{run = Run, sent = Sent, lost = Was}} ->
            {new, maps:merge(more(Lost, Was), relay(Before - Sent)),
             put(Node, Run, Seq, Before + length(Events), Lost, Sources)};
        #{} ->
            More = case Seq of 1 -> more(Lost, #{}); _ -> #{} end,
            {new, More, put(Node, Run, Seq, Before + length(Events), Lost, Sources)}
    end.

put(Node, Run, Seq, Sent, Lost, Sources) when map_size(Sources) < ?MOST ->
    Sources#{Node => #source{run = Run, seq = Seq, sent = Sent, lost = Lost}};
put(Node, Run, Seq, Sent, Lost, _) -> put(Node, Run, Seq, Sent, Lost, #{}).

relay(N) when N > 0 -> #{{relay, unknown} => N};
relay(_) -> #{}.

more(Lost, Was) ->
    #{{Reason, Level} => N - Before
      || Reason := By <- Lost, Level := N <- By,
         Before <- [maps:get(Level, maps:get(Reason, Was, #{}), 0)], N > Before}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_backoff).
-moduledoc """
Decides when a client of the demo may call a server again that did not answer.

After each failure it waits twice as long as before, up to a bound, and less by a random part of
up to half, so that many clients do not come back at the same moment. It waits for that server
alone. Pure, but for the random part.
""".

-export([pause_ms/2, new/1, failed/3, answered/2, is_due/3]).
-export_type([limits/0, backoff/0]).

-doc "The pause after the first failure, and the longest.".
-type limits() :: {FirstMs :: pos_integer(), MostMs :: pos_integer()}.

-doc "The servers that did not answer last: how often in a row, and when they may be called again.".
-opaque backoff() :: #{
    limits := limits(),
    away := #{sderl_demo_layout:server() => {Failures :: pos_integer(), DueMs :: integer()}}
}.

%% A pause is doubled at most so often: far more than any limits need.
-define(DOUBLINGS, 20).

-doc "The pause after so many failures in a row.".
-spec pause_ms(Failures :: pos_integer(), limits()) -> pos_integer().
pause_ms(Failures, {First, Most}) ->
    Full = min(Most, First bsl min(Failures - 1, ?DOUBLINGS)),
    Full + 1 - rand:uniform(Full div 2 + 1).

-doc "All servers may be called.".
-spec new(limits()) -> backoff().
new(Limits) -> #{limits => Limits, away => #{}}.

-doc "A server did not answer.".
-spec failed(sderl_demo_layout:server(), NowMs :: integer(), backoff()) -> backoff().
failed(Server, NowMs, #{limits := Limits, away := Away} = Backoff) ->
    {Before, _} = maps:get(Server, Away, {0, NowMs}),
    Failures = Before + 1,
    Backoff#{away := Away#{Server => {Failures, NowMs + pause_ms(Failures, Limits)}}}.

-doc "A server answered.".
-spec answered(sderl_demo_layout:server(), backoff()) -> backoff().
answered(Server, #{away := Away} = Backoff) -> Backoff#{away := maps:remove(Server, Away)}.

-doc "Whether a server may be called now.".
-spec is_due(sderl_demo_layout:server(), NowMs :: integer(), backoff()) -> boolean().
is_due(Server, NowMs, #{away := Away}) ->
    case Away of
        #{Server := {_, DueMs}} -> NowMs >= DueMs;
        #{} -> true
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_retry).
-moduledoc """
When nodes to which a link is missing are tried again.

A node whose link broke is tried at once, and again after a fifth of a second. One that has not been
linked yet is tried at once, and again after a second: when it starts it connects itself. Each
further pause is twice as long, up to ten seconds, and spread, so that nodes that lost the same node
do not all knock at the same moment.

An attempt takes about a millisecond of processor time, here and where the node's port is asked for.
So where very many nodes are missing, as while a group of a hundred starts, each of them is tried so
much more seldom that in the long run there is one attempt in half a second.

Pure: callers give the time, and the random numbers for the spread.
""".

-export([new/0, lost/3, linked/2, failed/5, keep/2, is_due/3, next/3]).
-export_type([retries/0]).

-define(FIRST, 200).
-define(FIRST_UNSEEN, 1000).
-define(LAST, 10_000).
%% With the spread a forgotten member is tried once in 20 to 60 s.
-define(LAST_FORGOTTEN, 40_000).
-define(BETWEEN, 500).

-doc "The nodes that are missing, with the last pause before an attempt and the time of the next.".
-opaque retries() :: #{node() => {PauseMs :: pos_integer(), At :: integer()}}.

-spec new() -> retries().
new() -> #{}.

-doc "The link to a node broke.".
-spec lost(node(), Now :: integer(), retries()) -> retries().
lost(Node, Now, Retries) -> Retries#{Node => {?FIRST div 2, Now}}.

-doc "There is a link to a node.".
-spec linked(node(), retries()) -> retries().
linked(Node, Retries) -> maps:remove(Node, Retries).

-doc """
An attempt failed. `Spread`, from 0 to 1, is random: the next one comes after half of the pause to
one and a half.
""".
-spec failed(node(), member | forgotten, Now :: integer(), Spread :: float(), retries()) ->
    retries().
failed(Node, Kind, Now, Spread, Retries) ->
    case Retries of
        #{Node := {Before, _}} ->
            Pause = min(2 * Before, longest(Kind, Retries)),
            Retries#{Node := {Pause, Now + Pause div 2 + round(Spread * Pause)}};
        #{} -> Retries#{Node => {?FIRST_UNSEEN, Now + ?FIRST_UNSEEN}}
    end.

longest(member, Retries) -> max(?LAST, ?BETWEEN * map_size(Retries));
longest(forgotten, Retries) -> max(?LAST_FORGOTTEN, ?BETWEEN * map_size(Retries)).

-doc "Forgets all nodes but these.".
-spec keep([node()], retries()) -> retries().
keep(Missing, Retries) -> maps:with(Missing, Retries).

-doc "Whether a node to which there is no link is to be tried now.".
-spec is_due(node(), Now :: integer(), retries()) -> boolean().
is_due(Node, Now, Retries) ->
    case Retries of
        #{Node := {_, At}} -> At =< Now;
        #{} -> true
    end.

-doc """
The first time after `Now` at which one of the nodes is due, and `Latest` if there is none before.
(For those that are due now, and wait because others are being tried, nothing comes of looking
again.)
""".
-spec next(Now :: integer(), Latest :: integer(), retries()) -> integer().
next(Now, Latest, Retries) ->
    lists:min([Latest | [At || _ := {_, At} <- Retries, At > Now]]).

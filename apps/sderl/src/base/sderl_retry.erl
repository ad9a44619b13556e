%% SPDX-License-Identifier: Apache-2.0
-module(sderl_retry).
-moduledoc """
When nodes to which a link is missing are tried again.

A node whose link broke is tried at once, and again after a fifth of a second. One that has not been
linked yet is tried at once, and again after a second: most connect themselves when they start. Each
further pause is twice as long, up to ten seconds, and spread, so that nodes that lost the same node
do not all try it at the same moment. When a lost node is back, all other lost ones are tried within
five seconds: the network may be whole again.

An attempt takes about a millisecond of processor time, here and in the port mapper (epmd) of the
other host. So if many members are missing, as while a group of a hundred starts, each of them is
tried less often, so that there are two attempts a second, but no pause is longer than half a
minute.
Forgotten members, of which there may be very many, do not count here. Each is tried once in 20 to
60 s, or less often, so that there are two attempts a second.

Pure: callers give the time, and the random number for the spread.
""".

-export([new/0, lost/3, linked/3, failed/5, keep/2, due/3, next/3]).
-export_type([retries/0]).

-define(FIRST, 200).
-define(FIRST_UNSEEN, 1000).
-define(LAST, 10_000).
-define(LAST_OF_MANY, 30_000).
-define(LAST_FORGOTTEN, 40_000).
-define(BETWEEN, 500).
-define(WHOLE_AGAIN, 5000).

-doc """
The nodes that are missing, with the last pause before an attempt, the time of the next, and whether
there was a link.
""".
-opaque retries() :: #{node() => {PauseMs :: pos_integer(), At :: integer(), lost | unseen}}.

-spec new() -> retries().
new() -> #{}.

-doc "The link to a node broke.".
-spec lost(node(), Now :: integer(), retries()) -> retries().
lost(Node, Now, Retries) -> Retries#{Node => {?FIRST div 2, Now, lost}}.

-doc "There is a link to a node.".
-spec linked(node(), Now :: integer(), retries()) -> retries().
linked(Node, Now, Retries) ->
    case maps:take(Node, Retries) of
        {{_, _, lost}, Others} -> #{Other => sooner(Other, Now, Entry) || Other := Entry <- Others};
        {{_, _, unseen}, Others} -> Others;
        error -> Retries
    end.

sooner(Node, Now, {Pause, At, lost}) when At > Now + ?WHOLE_AGAIN ->
    {Pause, Now + erlang:phash2({Node, Now}, ?WHOLE_AGAIN), lost};
sooner(_, _, Entry) ->
    Entry.

-doc """
An attempt failed, to one of so many members that are missing, or of so many nodes that groups have
forgotten. `Spread`, from 0 to 1, is random: the next one comes after half of the pause to one and a
half.
""".
-spec failed(node(), {member | forgotten, Missing :: pos_integer()}, Now :: integer(),
             Spread :: float(), retries()) ->
    retries().
failed(Node, Kind, Now, Spread, Retries) ->
    case Retries of
        #{Node := {Before, _, Was}} ->
            Pause = min(2 * Before, longest(Kind)),
            Retries#{Node := {Pause, Now + Pause div 2 + round(Spread * Pause), Was}};
        #{} -> Retries#{Node => {?FIRST_UNSEEN, Now + ?FIRST_UNSEEN, unseen}}
    end.

longest({member, Missing}) -> min(max(?LAST, ?BETWEEN * Missing), ?LAST_OF_MANY);
longest({forgotten, Missing}) -> max(?LAST_FORGOTTEN, ?BETWEEN * Missing).

-doc "Forgets all nodes but these.".
-spec keep([node()], retries()) -> retries().
keep(Missing, Retries) -> maps:with(Missing, Retries).

-doc """
Which of the nodes to which there is no link are to be tried now, those that wait for longest first:
one that was never tried before all others.
""".
-spec due([node()], Now :: integer(), retries()) -> [node()].
due(Missing, Now, Retries) ->
    {Tried, Untried} = lists:partition(fun(Node) -> is_map_key(Node, Retries) end, Missing),
    Due = [{At, Node} || Node <- Tried, #{Node := {_, At, _}} <- [Retries], At =< Now],
    Untried ++ [Node || {_, Node} <- lists:sort(Due)].

-doc """
The first time after `Now` at which one of the nodes is due, but `Latest` at most. (Nodes that are
due now, and wait because others are being tried, do not count.)
""".
-spec next(Now :: integer(), Latest :: integer(), retries()) -> integer().
next(Now, Latest, Retries) ->
    lists:min([Latest | [At || _ := {_, At, _} <- Retries, At > Now]]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_frozen).
-moduledoc """
Copies of the hub's past for monitoring nodes that are getting it. Pure.

A node that has just begun asks piece by piece. All pieces are of one copy, which is taken from the
hub once, because it has some thousand entries. The copy is dropped after the last piece, or when
the node has not asked for a while, because it gave up or died.
""".

-export([new/0, is_empty/1, piece/4, expire/2]).
-export_type([frozen/0, past/0]).

-doc "What a hub remembers (`sderl_mon_hub:past/0`).".
-type past() :: {ok, sderl_mon_history:history(), [sderl_mon_types:event()]} | {error, synthetic}.

-doc "By asking node, its past and when it asked last.".
-opaque frozen() :: #{node() => {AskedMs :: integer(), past()}}.

-define(PIECE_BYTES, 262_144).
-define(PIECE_EVENTS, 500).
%% A requester that waits longer for an answer begins again (m:sderl_mon_inherit).
-define(KEEP_MS, 10_000).
%% With more requesters, the one that asked longest ago loses its copy.
-define(MOST_ASKING, 4).

-doc "Nobody asks.".
-spec new() -> frozen().
new() -> #{}.

-doc "Whether nobody asks.".
-spec is_empty(frozen()) -> boolean().
is_empty(Frozen) -> map_size(Frozen) =:= 0.

-doc "The piece that a node asks for. `Take` copies the hub's past, if the node has no copy yet.".
-spec piece(sderl_mon_message:past_ask(), Now :: integer(), Take :: fun(() -> past()), frozen()) ->
    {#{steps := [non_neg_integer()], entries := [sderl_mon_ladder:entry()], more := boolean()},
     frozen()}.
piece(#{from := From, part := Part, 'after' := After}, Now, Take, Frozen) ->
    Past = past(From, {Part, After}, Take, Frozen),
    {Steps, {Entries, More}} = cut(Part, After, Past),
    Frozen1 =
        case {Past, Part, More} of
            {{error, synthetic}, _, _} -> maps:remove(From, Frozen);
            %% Events are the last part.
            {_, events, false} -> maps:remove(From, Frozen);
            {_, _, _} -> bounded(Frozen#{From => {Now, Past}})
        end,
    {#{steps => Steps, entries => Entries, more => More}, Frozen1}.

%% A requester begins with these, perhaps for a second time.
past(_From, {{frames, 0}, 0}, Take, _Frozen) -> Take();
past(From, _Piece, Take, Frozen) ->
    case Frozen of
        #{From := {_, Past}} -> Past;
        #{} -> Take()
    end.

bounded(Frozen) when map_size(Frozen) =< ?MOST_ASKING -> Frozen;
bounded(Frozen) ->
    {_, Longest} = lists:min([{Asked, From} || From := {Asked, _} <- Frozen]),
    maps:remove(Longest, Frozen).

cut(events, After, {ok, History, Events}) ->
    {sderl_mon_history:steps(History), some_events(After, Events)};
cut(Part, After, {ok, History, _Events}) ->
    {sderl_mon_history:steps(History),
     sderl_mon_history:piece(Part, After, ?PIECE_BYTES, History)};
cut(_Part, _After, {error, synthetic}) ->
    {[], {[], false}}.

some_events(After, Events) ->
    Later = [Event || #{id := Id} = Event <- Events, Id > After],
    case lists:sublist(Later, ?PIECE_EVENTS) of
        [] ->
            {[], false};
        Some ->
            #{id := Last} = lists:last(Some),
            {[{Last, 1, sderl_mon_pack:pack(Some)}], length(Later) > length(Some)}
    end.

-doc "Drops the copies of nodes that have not asked for a while.".
-spec expire(Now :: integer(), frozen()) -> frozen().
expire(Now, Frozen) ->
    #{From => Kept || From := {Asked, _} = Kept <- Frozen, Now - Asked < ?KEEP_MS}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_frozen).
-moduledoc """
The past as it was when another monitoring node began to ask for it, until it has all pieces. Pure.

A node that has just begun asks piece by piece. All pieces are of one past, which is taken from the
hub once: it is some thousand entries, and the hub has to copy them. It goes with the last piece, or
when the node has not asked for a while, as it gave up or died.
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
%% For further requesters each piece is taken from the hub again.
-define(MOST_ASKING, 4).

-doc "Nobody asks.".
-spec new() -> frozen().
new() -> #{}.

-doc "Whether nobody asks.".
-spec is_empty(frozen()) -> boolean().
is_empty(Frozen) -> map_size(Frozen) =:= 0.

-doc "What a node asks for. `Take` takes the past from the hub, where there is none for that node.".
-spec piece(sderl_mon_message:past_ask(), Now :: integer(), Take :: fun(() -> past()), frozen()) ->
    {#{steps := [non_neg_integer()], entries := [sderl_mon_ladder:entry()], more := boolean()},
     frozen()}.
piece(#{from := From, part := Part, 'after' := After}, Now, Take, Frozen) ->
    Past = past(From, {Part, After}, Take, Frozen),
    {Steps, {Entries, More}} = cut(Part, After, Past),
    Frozen1 =
        case {Past, Part, More} of
            {{error, synthetic}, _, _} -> maps:remove(From, Frozen);
            %% It asks for these last.
            {_, events, false} -> maps:remove(From, Frozen);
            {_, _, _} -> bounded(Frozen#{From => {Now, Past}})
        end,
    {#{steps => Steps, entries => Entries, more => More}, Frozen1}.

%% With these it begins, perhaps for a second time.
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

-doc "Without those who have not asked for a while.".
-spec expire(Now :: integer(), frozen()) -> frozen().
expire(Now, Frozen) ->
    #{From => Kept || From := {Asked, _} = Kept <- Frozen, Now - Asked < ?KEEP_MS}.

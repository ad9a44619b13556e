%% SPDX-License-Identifier: Apache-2.0
-module(sderl_refused).
-moduledoc false.
%% Refusals of this node, for `s_group:info/0`: nodes that did not get into a group, nodes that
%% speak another version of the protocol, and messages of an unknown kind. A refusal that is
%% repeated is an event once.

-export([note_join/3, forget_join/2, joins/0, prune_joins/1]).
-export([note_version/2, accept_version/1, versions/0, version_remedy/1]).
-export([note_message/1, messages/0]).
-export([first/3]).

-include("../core/sderl_version.hrl").

%% How often it is reported that a node speaks another version, and for how many nodes.
-define(VERSION_AGAIN_S, 3600).
-define(VERSIONS, 100).

%% ---------------------------------------------------------------- joins

-doc """
Notes why a node was left out of a group; `info/0` shows it. Further attempts that fail for the same
reason are no new event.
""".
-spec note_join(term(), node(), term()) -> ok.
note_join(Group, Node, Why) ->
    Before = ets:lookup(sderl_refused, {Group, Node}),
    true = ets:insert(sderl_refused, {{Group, Node}, Why, erlang:system_time(second)}),
    case Before of
        [{_, Why, _}] -> ok;
        _ -> sderl_event:emit(join_refused, #{group => Group, node => Node, reason => Why})
    end.

-doc "Forgets that a node was left out.".
-spec forget_join(term(), node()) -> ok.
forget_join(Group, Node) ->
    true = ets:delete(sderl_refused, {Group, Node}),
    ok.

-spec joins() -> [{term(), node(), term()}].
joins() -> [{G, N, Why} || {{G, N}, Why, _} <- ets:tab2list(sderl_refused)].

-doc "Forgets what was refused before a time (system time, seconds).".
-spec prune_joins(integer()) -> ok.
prune_joins(Before) ->
    _ = ets:select_delete(sderl_refused, [{{'_', '_', '$1'}, [{'<', '$1', Before}], [true]}]),
    %% The other group says hello again and again while the conflict lasts.
    Lately = erlang:system_time(second) - 60,
    _ = ets:select_delete(sderl_refused,
                          [{{'_', uid_conflict, '$1'}, [{'<', '$1', Lately}], [true]}]),
    ok.

%% ---------------------------------------------------------------- versions

-doc """
A message of a node was ignored because it is of another version of the protocol. That is an event
once an hour for each node.
""".
-spec note_version(node(), Version :: integer()) -> ok.
note_version(Node, Version) ->
    true = ets:insert(sderl_state, {{version, Node}, Version}),
    case first({version_refused, Node}, ?VERSION_AGAIN_S, ?VERSIONS) of
        true ->
            sderl_event:emit(version_refused, #{node => Node, version => Version, own => ?VSN,
                                                remedy => version_remedy(Version)});
        false -> ok
    end.

-doc "The node speaks our version now, or is down.".
-spec accept_version(node()) -> ok.
accept_version(Node) ->
    true = ets:delete(sderl_state, {version, Node}),
    ok.

-doc "The nodes that are not heard, with the version that they speak.".
-spec versions() -> [{node(), integer()}].
versions() -> lists:sort([{N, V} || [N, V] <- ets:match(sderl_state, {{version, '$1'}, '$2'})]).

-doc "What to do about a node that speaks that version.".
-spec version_remedy(integer()) -> string().
version_remedy(Version) when Version < ?VSN -> "upgrade the library on that node";
version_remedy(_) -> "upgrade the library on this node".

%% ---------------------------------------------------------------- messages

-doc "Counts a message of an unknown kind or version that a process of this node ignored.".
-spec note_message(module()) -> ok.
note_message(Process) ->
    _ = ets:update_counter(sderl_state, {unknown, Process}, 1, {{unknown, Process}, 0}),
    ok.

-doc "How many there were, by process.".
-spec messages() -> [{module(), pos_integer()}].
messages() -> lists:sort([{P, N} || [P, N] <- ets:match(sderl_state, {{unknown, '$1'}, '$2'})]).

%% ---------------------------------------------------------------- how often

-doc """
Whether this is the first time in so many seconds. At most `Most` things are remembered; while there
is no room for another one, it does not count as the first time.
""".
-spec first(What :: term(), Seconds :: non_neg_integer(), Most :: pos_integer()) -> boolean().
first(What, Seconds, Most) ->
    Now = erlang:monotonic_time(second),
    Until = Now + Seconds,
    case ets:insert_new(sderl_state, {{said, What}, Until}) of
        true -> has_room(What, Most, Now);
        false ->
            %% Of several calls at the same time, one is the first.
            Guards = [{'=:=', '$1', {const, What}}, {'=<', '$2', Now}],
            Again = [{{{said, '$1'}, '$2'}, Guards, [{{{{said, '$1'}}, Until}}]}],
            1 =:= ets:select_replace(sderl_state, Again)
    end.

has_room(What, Most, Now) ->
    said() =< Most orelse begin
        Over = [{{{said, '_'}, '$1'}, [{'=<', '$1', Now}], [true]}],
        _ = ets:select_delete(sderl_state, Over),
        said() =< Most orelse not ets:delete(sderl_state, {said, What})
    end.

said() -> ets:select_count(sderl_state, [{{{said, '_'}, '_'}, [], [true]}]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_store).
-moduledoc """
What the service knows after a restart: for each cluster its revisions, what the reconciler
remembers, and the history. It is kept in Khepri, a tree on disk that its members agree on by Raft;
here it has one member, in the folder of the service.

A call returns when the change is on disk, so what a person was told has been decided stays decided.
Secrets are never in it: revisions have them by reference.

Revisions are never changed. The history is bounded: the oldest entries go. Which revisions are
kept is decided by `m:sderl_ops_stored`.
""".

-export([open/1, close/0]).
-export([clusters/0]).
-export([add_revision/2, revision/2, revisions/1, latest/1, drop_revisions/2]).
-export([put/3, all/1]).
-export([note/2, history/2]).
-export_type([revision/0, entry/0]).

-include_lib("khepri/include/khepri.hrl").

-doc """
A revision: what it was prepared from, by whom, when (milliseconds of system time), what was asked,
such as `<<"rollback to 3">>`, and whether the rules of upgrades were put aside for it.
""".
-type revision() ::
    #{prepared := map(), by := binary(), at := integer(), why := binary(), force := boolean()}.

-doc "An entry of the history: who, what, when (milliseconds of system time), and its result.".
-type entry() ::
    #{at := integer(), by := binary(), what := term(), result := term(), number => pos_integer()}.

-define(STORE, sderl_ops_store).
-define(LEADER_MS, 30_000).
%% Some weeks of a cluster that changes each minute.
-define(MOST_ENTRIES, 20_000).

-doc "Opens the store in a folder; another program that has it open is an error.".
-spec open(file:filename()) -> ok | {error, term()}.
open(Folder) ->
    maybe
        {ok, ?STORE} ?= khepri:start(Folder, ?STORE),
        khepri_cluster:wait_for_leader(?STORE, ?LEADER_MS)
    end.

-doc "Closes it; everything is on disk already.".
-spec close() -> ok.
close() ->
    case khepri:stop(?STORE) of
        ok -> ok;
        {error, _} -> ok
    end.

-doc "The clusters that are known.".
-spec clusters() -> [binary()].
clusters() -> [Name || {Name, _} <- children([clusters], newest)].

%% ---------------------------------------------------------------- revisions

-doc "Adds a revision, and gives its number.".
-spec add_revision(Cluster :: binary(), revision()) -> pos_integer().
add_revision(Cluster, Revision) ->
    Number = newest([clusters, Cluster, newest]) + 1,
    %% The number comes last: a revision without it is one that nobody was told of.
    ok = khepri:put(?STORE, [clusters, Cluster, revisions, key(Number)], Revision),
    ok = khepri:put(?STORE, [clusters, Cluster, newest], Number),
    Number.

-doc "One revision.".
-spec revision(Cluster :: binary(), pos_integer()) -> {ok, revision()} | {error, not_found}.
revision(Cluster, Number) ->
    case Number =< newest([clusters, Cluster, newest]) of
        true -> read([clusters, Cluster, revisions, key(Number)]);
        false -> {error, not_found}
    end.

-doc "All revisions, the oldest first.".
-spec revisions(Cluster :: binary()) -> [{pos_integer(), revision()}].
revisions(Cluster) ->
    Newest = newest([clusters, Cluster, newest]),
    [{Number, Revision} || {Key, Revision} <- children([clusters, Cluster, revisions]),
                           Number <- [binary_to_integer(Key)],
                           Number =< Newest].

-doc "The newest revision of a cluster that has one.".
-spec latest(Cluster :: binary()) -> {pos_integer(), revision()}.
latest(Cluster) ->
    Number = newest([clusters, Cluster, newest]),
    {ok, Revision} = read([clusters, Cluster, revisions, key(Number)]),
    {Number, Revision}.

-doc "Forgets revisions.".
-spec drop_revisions(Cluster :: binary(), [pos_integer()]) -> ok.
drop_revisions(Cluster, Numbers) ->
    lists:foreach(fun(Number) ->
        ok = khepri:delete(?STORE, [clusters, Cluster, revisions, key(Number)])
    end, Numbers).

%% ---------------------------------------------------------------- what is remembered

-doc "Keeps a part of what the reconciler remembers.".
-spec put(Cluster :: binary(), Part :: atom(), Value :: term()) -> ok.
put(Cluster, Part, Value) -> ok = khepri:put(?STORE, [clusters, Cluster, memory, Part], Value).

-doc "Every part that was kept.".
-spec all(Cluster :: binary()) -> #{Part :: atom() => Value :: term()}.
all(Cluster) -> maps:from_list(children([clusters, Cluster, memory])).

%% ---------------------------------------------------------------- history

-doc "Adds an entry to the history.".
-spec note(Cluster :: binary(), entry()) -> ok.
note(Cluster, Entry) ->
    Number = newest([history, Cluster, newest]) + 1,
    ok = khepri:put(?STORE, [history, Cluster, entries, key(Number)], Entry),
    ok = khepri:put(?STORE, [history, Cluster, newest], Number),
    drop_entry(Cluster, Number - ?MOST_ENTRIES).

drop_entry(Cluster, Number) when Number > 0 ->
    ok = khepri:delete(?STORE, [history, Cluster, entries, key(Number)]);
drop_entry(_, _) ->
    ok.

-doc "The newest entries, the oldest of these first.".
-spec history(Cluster :: binary(), Most :: pos_integer()) -> [{pos_integer(), entry()}].
history(Cluster, Most) ->
    Newest = newest([history, Cluster, newest]),
    [{Number, Entry} || Number <- lists:seq(max(1, Newest - Most + 1), Newest),
                        {ok, Entry} <- [read([history, Cluster, entries, key(Number)])]].

%% ---------------------------------------------------------------- the tree

%% In the order of the numbers.
key(Number) -> iolist_to_binary(io_lib:format("~10..0b", [Number])).

-spec newest([atom() | binary()]) -> non_neg_integer().
newest(Path) ->
    case read(Path) of
        {ok, Number} -> Number;
        {error, not_found} -> 0
    end.

read(Path) ->
    case khepri:get(?STORE, Path) of
        {ok, undefined} -> {error, not_found};
        {ok, Value} -> {ok, Value};
        {error, {khepri, node_not_found, _}} -> {error, not_found}
    end.

%% The nodes below a path, or those of them that have a node of a name below them, with their data.
children(Path) ->
    {ok, Found} = khepri:get_many(?STORE, Path ++ [?KHEPRI_WILDCARD_STAR]),
    lists:sort([{lists:last(At), Value} || At := Value <- Found]).

children(Path, Name) ->
    {ok, Found} = khepri:get_many(?STORE, Path ++ [?KHEPRI_WILDCARD_STAR, Name]),
    lists:sort([{lists:nth(length(Path) + 1, At), Value} || At := Value <- Found]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_store).
-moduledoc """
What survives a restart of the service: for each cluster its revisions, the memory of the
reconciler, and the record, here called history. It is kept in Khepri, a tree on disk that its
members agree on by Raft. A service with one member has the store in its folder; several members
share one (`m:sderl_ops_raft`).

A call returns when the change is on disk, so a decision that was told to somebody is kept. The
store has no secrets: revisions have them by reference.

Revisions are never changed. The history is bounded: the oldest entries are deleted. Which revisions
are kept is decided by `m:sderl_ops_stored`.
""".

-export([open/1, start_system/1, start/1, keep_id/0, id/0, close/0]).
-export([lease_path/0, act_with/1, confirm/1]).
-export([clusters/0]).
-export([add_revision/2, revision/2, revisions/1, latest/1, drop_revisions/2]).
-export([put/3, part/3]).
-export([note/2, amend/3, history/2]).
-export([dump/0, load/1]).
-export_type([revision/0, wanted/0, page/0, dumped/0]).

-include_lib("khepri/include/khepri.hrl").

-doc """
A revision: `sderl_ops_revision:about()`, when it was made (milliseconds of system time), and what
`sderl_ops_revision:prepare/2` gave.
""".
-type revision() :: #{
    prepared := map(),
    by := binary(),
    at := integer(),
    why := binary(),
    force := boolean(),
    request => binary(),
    applied => binary()
}.

-doc """
Which entries of the history are wanted: at most `limit`, before a number, since and until a time
(in milliseconds of system time), by a user, of a kind.
""".
-type wanted() :: #{
    limit := pos_integer(),
    before => pos_integer(),
    since => integer(),
    until => integer(),
    by => binary(),
    kind => sderl_ops_entry:kind()
}.

-doc """
Entries, the newest first. A call looks at a bounded number of entries, so there may be more before
`next` even if these are fewer than `limit`.
""".
-type page() :: #{
    entries := [{pos_integer(), sderl_ops_entry:entry()}], next := pos_integer() | none
}.

-define(STORE, sderl_ops_store).
-define(SYSTEM, khepri).
-define(LEADER_MS, 30_000).
-define(CONFIRM_MS, 10_000).
%% Enough for some weeks of a cluster that changes each minute.
-define(MOST_ENTRIES, 20_000).
-define(NEWEST_EACH, 64).
-define(MOST_LOOKED_AT, 2_000).
%% The clock may have been set back between two entries: entries this much too old do not end a
%% search.
-define(CLOCK_MS, 3_600_000).

-doc """
Opens the store of a folder, with all earlier decisions; it is an error if another program has it
open.
""".
-spec open(file:filename()) -> ok | {error, term()}.
open(Folder) ->
    maybe
        ok ?= start_system(Folder),
        ok ?= start(?LEADER_MS),
        ok ?= khepri_cluster:wait_for_leader(?STORE, ?LEADER_MS),
        %% Reads show applied entries, and the leader may not have applied all of them yet.
        khepri:fence(?STORE, ?LEADER_MS)
    end.

-doc "Starts the Ra system with the files of a folder, but not the store itself.".
-spec start_system(file:filename()) -> ok | {error, term()}.
start_system(Folder) ->
    Config = (ra_system:default_config())#{
        name => ?SYSTEM,
        data_dir => Folder,
        wal_data_dir => Folder,
        names => ra_system:derive_names(?SYSTEM)
    },
    maybe
        {ok, _} ?= application:ensure_all_started(khepri),
        {ok, _} ?= ra_system:start(Config),
        ok
    else
        {error, {already_started, _}} -> ok;
        {error, _} = Error -> Error
    end.

-doc "Starts this virtual machine's part of the store: the existing one, or else a new one.".
-spec start(timeout()) -> ok | {error, term()}.
start(Ms) ->
    maybe
        {ok, ?STORE} ?= khepri:start(?SYSTEM, ?STORE, Ms),
        keep_id()
    end.

-doc """
Writes to disk which files belong to this store. Ra does it half a second later, and if it was
killed before, it silently begins with a new store.
""".
-spec keep_id() -> ok | {error, term()}.
keep_id() ->
    #{names := #{directory_rev := Table}} = ra_system:fetch(?SYSTEM),
    dets:sync(Table).

-doc "The id of this virtual machine's part of the store: a new part has another one.".
-spec id() -> binary() | undefined.
id() -> ra_directory:uid_of(?SYSTEM, ?STORE).

-doc "Closes the store; everything is on disk already.".
-spec close() -> ok.
close() ->
    case khepri:stop(?STORE) of
        ok -> ok;
        {error, _} -> ok
    end.

-doc "The path of the lease, above everything that the member which acts stores.".
-spec lease_path() -> [atom()].
lease_path() -> [clusters].

-doc """
From now on writes of this process are refused if the lease has another epoch: then its decisions
are not stored, and nothing follows from them.
""".
-spec act_with(Epoch :: pos_integer()) -> ok.
act_with(Epoch) ->
    _ = put({?MODULE, epoch}, Epoch),
    ok.

-doc """
Confirms that no other member has claimed the lease: a majority has to accept a write with this
epoch. A service with one member has none.
""".
-spec confirm(Epoch :: none | pos_integer()) -> ok | {error, deposed | {unconfirmed, term()}}.
confirm(none) -> ok;
confirm(Epoch) ->
    ok = act_with(Epoch),
    case khepri:put(?STORE, [decided(), confirmed], Epoch, #{timeout => ?CONFIRM_MS}) of
        ok -> ok;
        {error, {khepri, Why, _}} when Why =:= mismatching_node; Why =:= node_not_found ->
            {error, deposed};
        {error, Why} -> {error, {unconfirmed, Why}}
    end.

%% The path under which everything is written, with the condition that the lease has this epoch.
decided() ->
    case get({?MODULE, epoch}) of
        undefined ->
            clusters;
        Epoch ->
            #if_all{conditions = [clusters, #if_data_matches{pattern = #{epoch => Epoch}}]}
    end.

-doc "The clusters that are known.".
-spec clusters() -> [binary()].
clusters() -> [Name || {Name, _} <- children([clusters], [newest])].

%% ---------------------------------------------------------------- revisions

-doc "Adds a revision, and gives its number.".
-spec add_revision(Cluster :: binary(), revision()) -> pos_integer().
add_revision(Cluster, Revision) ->
    Number = newest([clusters, Cluster, newest]) + 1,
    %% The number is written last: a revision above the newest number does not count.
    ok = khepri:put(?STORE, [decided(), Cluster, revisions, key(Number)], Revision),
    ok = khepri:put(?STORE, [decided(), Cluster, newest], Number),
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
    [{Number, Revision} || {Key, Revision} <- children([clusters, Cluster, revisions], []),
                           Number <- [binary_to_integer(Key)],
                           Number =< Newest].

-doc "The newest revision of a cluster that has one.".
-spec latest(Cluster :: binary()) -> {pos_integer(), revision()}.
latest(Cluster) ->
    Number = newest([clusters, Cluster, newest]),
    {ok, Revision} = read([clusters, Cluster, revisions, key(Number)]),
    {Number, Revision}.

-doc "Deletes revisions.".
-spec drop_revisions(Cluster :: binary(), [pos_integer()]) -> ok.
drop_revisions(Cluster, Numbers) ->
    lists:foreach(fun(Number) ->
        ok = khepri:delete(?STORE, [decided(), Cluster, revisions, key(Number)])
    end, Numbers).

%% ---------------------------------------------------------------- what is remembered

-doc "Keeps a part of what the reconciler remembers.".
-spec put(Cluster :: binary(), Part :: atom(), Value :: term()) -> ok.
put(Cluster, Part, Value) -> ok = khepri:put(?STORE, [decided(), Cluster, memory, Part], Value).

-doc "A part that was kept, or else another value.".
-spec part(Cluster :: binary(), Part :: atom(), Default :: term()) -> term().
part(Cluster, Part, Default) ->
    case read([clusters, Cluster, memory, Part]) of
        {ok, Value} -> Value;
        {error, not_found} -> Default
    end.

%% ---------------------------------------------------------------- history

-doc "Adds an entry to the history, and gives its number.".
-spec note(Cluster :: binary(), sderl_ops_entry:entry()) -> pos_integer().
note(Cluster, Entry) ->
    Number = add_entry(Cluster, newest_entry(Cluster) + 1, Entry),
    _ = put({?MODULE, noted, Cluster}, Number),
    ok = keep_newest(Cluster, Number),
    ok = drop_entry(Cluster, Number - ?MOST_ENTRIES),
    Number.

-doc "Writes an entry again that is still there.".
-spec amend(Cluster :: binary(), pos_integer(), sderl_ops_entry:entry()) -> ok.
amend(Cluster, Number, Entry) ->
    case khepri:update(?STORE, [decided(), Cluster, history, entries, key(Number)], Entry) of
        ok -> ok;
        {error, {khepri, _, #{node_is_target := true}}} -> ok
    end.

%% One write for each entry. If the number is taken, another member has used it.
add_entry(Cluster, Number, Entry) when is_integer(Number) ->
    Path = [decided(), Cluster, history, entries, key(Number)],
    case khepri:create(?STORE, Path, Entry) of
        ok -> Number;
        {error, {khepri, mismatching_node, #{node_is_target := true}}} ->
            add_entry(Cluster, Number + 1, Entry)
    end.

%% So that the newest entry is found quickly.
keep_newest(Cluster, Number) when Number rem ?NEWEST_EACH =:= 0 ->
    khepri:put(?STORE, [decided(), Cluster, history, newest], Number);
keep_newest(_, _) ->
    ok.

%% The last entry that this process has added is the newest, or nearly so.
newest_entry(Cluster) ->
    case get({?MODULE, noted, Cluster}) of
        undefined -> last_entry(Cluster, newest(history(Cluster) ++ [newest]));
        Number -> Number
    end.

last_entry(Cluster, Number) ->
    case read(history(Cluster) ++ [entries, key(Number + 1)]) of
        {ok, _} -> last_entry(Cluster, Number + 1);
        {error, not_found} -> Number
    end.

history(Cluster) -> [clusters, Cluster, history].

drop_entry(Cluster, Number) when Number > 0 ->
    ok = khepri:delete(?STORE, [decided(), Cluster, history, entries, key(Number)]);
drop_entry(_, _) ->
    ok.

-doc "The newest of the entries that are wanted.".
-spec history(Cluster :: binary(), wanted()) -> page().
history(Cluster, Wanted) ->
    Newest = last_entry(Cluster, newest(history(Cluster) ++ [newest])),
    Number = min(Newest, maps:get(before, Wanted, Newest + 1) - 1),
    Oldest = max(1, Newest - ?MOST_ENTRIES + 1),
    look_back(Cluster, Wanted, Number, {Oldest, max(Oldest, Number - ?MOST_LOOKED_AT + 1)}, []).

look_back(_, _, Number, {Oldest, _}, Found) when Number < Oldest ->
    #{entries => lists:reverse(Found), next => none};
look_back(_, #{limit := Limit}, Number, {_, Least}, Found)
  when Number < Least; length(Found) =:= Limit ->
    #{entries => lists:reverse(Found), next => Number + 1};
look_back(Cluster, Wanted, Number, Bounds, Found) ->
    case read(history(Cluster) ++ [entries, key(Number)]) of
        {ok, #{at := At}} when At < map_get(since, Wanted) - ?CLOCK_MS ->
            #{entries => lists:reverse(Found), next => none};
        {ok, Entry} ->
            Fitting = [{Number, Entry} || is_wanted(Entry, Wanted)],
            look_back(Cluster, Wanted, Number - 1, Bounds, Fitting ++ Found);
        {error, not_found} ->
            look_back(Cluster, Wanted, Number - 1, Bounds, Found)
    end.

is_wanted(#{at := At, by := By} = Entry, Wanted) ->
    Kind = sderl_ops_entry:kind(Entry),
    At >= maps:get(since, Wanted, At) andalso At =< maps:get(until, Wanted, At)
        andalso By =:= maps:get(by, Wanted, By) andalso Kind =:= maps:get(kind, Wanted, Kind).

%% ---------------------------------------------------------------- all of it

-doc "The value at each path of all clusters.".
-type dumped() :: [{Path :: [atom() | binary()], term()}].

-doc "All that is stored of all clusters.".
-spec dump() -> dumped().
dump() ->
    {ok, Found} = khepri:get_many(?STORE, [clusters, ?KHEPRI_WILDCARD_STAR,
                                           ?KHEPRI_WILDCARD_STAR_STAR]),
    lists:sort([{Path, Value} || Path := Value <- Found, Value =/= undefined]).

-doc "Stores what `dump/0` gave, in a store that has nothing yet.".
-spec load(dumped()) -> ok | {error, term()}.
load([]) -> ok;
load([{Path, Value} | Others]) ->
    maybe
        ok ?= khepri:put(?STORE, Path, Value),
        load(Others)
    end.

%% ---------------------------------------------------------------- the tree

%% Keys are in the order of the numbers.
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

%% The names of the nodes below a path that have a node at the path `Below`, with its value.
children(Path, Below) ->
    {ok, Found} = khepri:get_many(?STORE, Path ++ [?KHEPRI_WILDCARD_STAR | Below]),
    lists:sort([{lists:nth(length(Path) + 1, At), Value} || At := Value <- Found]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_raft).
-moduledoc """
The store of a service with several members: its members, how a member joins, and the lease
(`m:sderl_ops_lease`). It is the store of `m:sderl_ops_store` with more members. The functions here
are for the member itself; those for others are in `m:sderl_ops_member`.

A member's folder says how far it is (`t:stage/0`). The store is made once, by the first member by
name, when all named members answer and none has a store; so the two sides of a split network never
make two. All others join it. The roster, which is in the store, says who may join, and each member
may join once: a member that has lost its disk must not come back by itself, because its new part of
the store has forgotten its Raft votes.
""".

-export([read/1, write/2]).
-export([open/1, found/3, join/2]).
-export([roster/0, roster_now/1, expect/1, remove/1, members/0, home/1]).
-export([lease/0, swap/2, fence/1]).
-export_type([mark/0, stage/0, roster/0]).

-include_lib("khepri/include/khepri.hrl").

-doc """
`blank`: it has no store. `founding`, `joining`: it was about to get one, and was interrupted; its
files are deleted. `member`: it has its part of the store.
""".
-type stage() :: blank | founding | joining | member.

-doc "`id` is that of the member's part of the store; another one means that it was lost.".
-type mark() :: #{
    self := sderl_ops_roster:member(),
    members := [sderl_ops_roster:member()],
    stage := stage(),
    id => binary()
}.

-type roster() :: #{node() => {sderl_ops_roster:member(), expected | joined}}.

-define(STORE, sderl_ops_store).
-define(START_MS, 30_000).
-define(JOIN_MS, 30_000).
-define(CHANGE_MS, 10_000).
%% Short, so that a lost majority is noticed in time.
-define(WRITE_MS, 4_000).

%% ---------------------------------------------------------------- the folder

-doc "The member of a folder; `none` if the folder is that of a service with one member.".
-spec read(file:filename()) -> {ok, mark()} | none | {error, unicode:chardata()}.
read(Folder) ->
    case file:consult(mark(Folder)) of
        {ok, [#{self := _, members := _, stage := _} = Mark]} -> {ok, Mark};
        {error, enoent} -> none;
        _ -> {error, [mark(Folder), " is not a file of a member of the service"]}
    end.

-doc "Writes the file of the member, whole or not at all.".
-spec write(file:filename(), mark()) -> ok | {error, unicode:chardata()}.
write(Folder, Mark) ->
    Part = mark(Folder) ++ ".part",
    maybe
        ok ?= file:write_file(Part, io_lib:format("~0tp.~n", [Mark]), [sync]),
        ok ?= file:rename(Part, mark(Folder))
    else
        {error, Why} -> {error, [mark(Folder), " cannot be written: ", file:format_error(Why)]}
    end.

mark(Folder) -> filename:join(Folder, "member").

store(Folder) -> filename:join(Folder, "store").

%% ---------------------------------------------------------------- beginning

-doc "Opens the store of a folder; the files of an interrupted attempt are deleted first.".
-spec open(file:filename()) -> {ok, stage()} | {error, term()}.
open(Folder) ->
    case read(Folder) of
        {ok, #{stage := member} = Mark} ->
            maybe
                ok ?= sderl_ops_store:start_system(store(Folder)),
                open_part(Folder, Mark, sderl_ops_store:id())
            end;
        {ok, #{stage := blank}} ->
            maybe
                ok ?= sderl_ops_moved:settle(Folder),
                {ok, blank}
            end;
        {ok, #{} = Mark} ->
            maybe
                %% Nothing may write there while it is deleted.
                _ = [application:stop(Name) || Name <- [khepri, ra]],
                ok ?= delete(store(Folder)),
                ok ?= write(Folder, Mark#{stage := blank}),
                {ok, blank}
            end;
        {error, _} = Error ->
            Error
    end.

%% A new part would have forgotten the Raft votes of the lost one, and could decide by itself.
open_part(Folder, #{id := Id}, Id) ->
    maybe
        ok ?= sderl_ops_store:start(?START_MS),
        ok ?= sderl_ops_moved:drop(Folder),
        {ok, member}
    end;
open_part(Folder, Mark, _) ->
    logger:warning("sderl_ops: the store of this member is not the one that it had"),
    maybe
        ok ?= write(Folder, Mark#{stage := joining}),
        {ok, blank}
    end.

delete(Folder) ->
    case file:del_dir_r(Folder) of
        {error, enoent} -> ok;
        Result -> Result
    end.

start(Folder) ->
    maybe
        ok ?= sderl_ops_store:start_system(store(Folder)),
        sderl_ops_store:start(?START_MS)
    end.

%% Notes in the folder that the member has its part of the store.
belongs(Folder, Mark) ->
    maybe
        ok ?= sderl_ops_store:keep_id(),
        write(Folder, Mark#{stage := member, id => sderl_ops_store:id()})
    end.

-doc """
Makes the store, expects all other members, and loads the data of a service with one member.
""".
-spec found(file:filename(), mark(), Others :: [sderl_ops_roster:member()]) ->
    ok | {error, term()}.
found(Folder, #{self := #{node := Self} = Own} = Mark, Others) ->
    maybe
        ok ?= write(Folder, Mark#{stage := founding}),
        ok ?= start(Folder),
        ok ?= khepri_cluster:wait_for_leader(?STORE, ?START_MS),
        ok ?= khepri:put(?STORE, [settings, home], unicode:characters_to_binary(Folder)),
        ok ?= sderl_ops_moved:unpack(Folder),
        ok ?= put_member(Self, {Own, joined}),
        ok ?= expect_each(Others),
        belongs(Folder, Mark)
    end.

expect_each([]) -> ok;
expect_each([Member | Members]) ->
    maybe
        ok ?= expect(Member),
        expect_each(Members)
    end.

-doc "Joins the store of a member that answers. Khepri first resets this node's part.".
-spec join(file:filename(), Via :: node()) -> ok | {error, term()}.
join(Folder, Via) ->
    {ok, #{self := #{node := Self}} = Mark} = read(Folder),
    maybe
        ok ?= write(Folder, Mark#{stage := joining}),
        ok ?= start(Folder),
        ok ?= khepri_cluster:wait_for_leader(?STORE, ?START_MS),
        ok ?= khepri_cluster:join({?STORE, Via}, ?JOIN_MS),
        ok ?= joined(Self),
        belongs(Folder, Mark)
    end.

%% ---------------------------------------------------------------- members

-doc "The members that have joined or may join, in this member's copy of the store.".
-spec roster() -> roster().
roster() ->
    case khepri:get_many(?STORE, [roster, ?KHEPRI_WILDCARD_STAR], #{timeout => ?WRITE_MS}) of
        {ok, Found} -> #{Node => Entry || _ := {#{node := Node}, _} = Entry <- Found};
        {error, _} -> #{}
    end.

-doc "The roster as a majority knows it now.".
-spec roster_now(Ms :: pos_integer()) -> {ok, roster()} | {error, term()}.
roster_now(Ms) ->
    maybe
        %% The query itself does not matter: for its answer the leader checks that it still leads.
        {ok, _, _} ?= ra:consistent_query({?STORE, node()}, {erlang, is_tuple, []}, Ms),
        ok ?= fence(Ms),
        #{} = Roster ?= roster(),
        true ?= map_size(Roster) > 0,
        {ok, Roster}
    else
        {error, _} = Error -> Error;
        Other -> {error, Other}
    end.

-doc "Allows a member without a part of the store to join.".
-spec expect(sderl_ops_roster:member()) -> ok | {error, term()}.
expect(#{node := Node} = Member) -> put_member(Node, {Member, expected}).

joined(Node) ->
    case khepri:get(?STORE, [roster, atom_to_binary(Node)], #{timeout => ?CHANGE_MS}) of
        {ok, {Member, _}} -> put_member(Node, {Member, joined});
        {error, _} = Error -> Error
    end.

put_member(Node, Entry) ->
    khepri:put(?STORE, [roster, atom_to_binary(Node)], Entry, #{timeout => ?CHANGE_MS}).

-doc "Removes a member.".
-spec remove(node()) -> ok | {error, term()}.
remove(Node) ->
    case ra:remove_member({?STORE, node()}, {?STORE, Node}, ?CHANGE_MS) of
        {ok, _, _} -> forget(Node);
        {error, not_member} -> forget(Node);
        {timeout, _} -> {error, timeout};
        {error, _} = Error -> Error
    end.

forget(Node) ->
    khepri:delete(?STORE, [roster, atom_to_binary(Node)], #{timeout => ?CHANGE_MS}).

-doc "The members that vote, and their leader, as far as this one knows.".
-spec members() -> {[node()], Leader :: node() | undefined}.
members() ->
    case ra:member_overview({?STORE, node()}, ?WRITE_MS) of
        {ok, #{leader_id := Leader, cluster := Cluster}, _} ->
            {[Node || {_, Node} := _ <- Cluster],
             case Leader of {?STORE, Node} -> Node; _ -> undefined end};
        _ ->
            {[], undefined}
    end.

-doc """
The folder for hosts that are folders of this machine: for all members that of the one that made the
store.
""".
-spec home(Folder :: file:filename()) -> file:filename_all().
home(Folder) ->
    case khepri:get(?STORE, [settings, home], #{timeout => ?WRITE_MS}) of
        {ok, Home} when is_binary(Home) -> Home;
        _ -> Folder
    end.

%% ---------------------------------------------------------------- the lease

-doc "The lease, in this member's copy of the store.".
-spec lease() -> {ok, sderl_ops_lease:lease() | none} | {error, term()}.
lease() ->
    case khepri:get(?STORE, sderl_ops_store:lease_path(), #{timeout => ?WRITE_MS}) of
        {ok, #{epoch := _} = Lease} -> {ok, Lease};
        {ok, undefined} -> {ok, none};
        {error, {khepri, node_not_found, _}} -> {ok, none};
        {error, _} = Error -> Error
    end.

-doc "Writes the lease if it is still the expected one.".
-spec swap(From :: sderl_ops_lease:lease() | none, To :: sderl_ops_lease:lease()) ->
    ok | {error, term()}.
swap(none, Lease) ->
    Path = sderl_ops_store:lease_path(),
    case khepri:create(?STORE, Path, Lease, #{timeout => ?WRITE_MS}) of
        {error, {khepri, mismatching_node, _}} -> put_first(Path, Lease);
        Result -> Result
    end;
swap(Before, Lease) ->
    khepri:compare_and_swap(?STORE, sderl_ops_store:lease_path(), Before, Lease,
                            #{timeout => ?WRITE_MS}).

%% The first lease, if data of a service with one member lies below its path.
put_first(Path, Lease) ->
    {Above, [Last]} = lists:split(length(Path) - 1, Path),
    Free = #if_all{conditions = [Last, #if_has_data{has_data = false}]},
    khepri:put(?STORE, Above ++ [Free], Lease, #{timeout => ?WRITE_MS}).

-doc "Returns when this member's copy has all earlier decisions.".
-spec fence(pos_integer()) -> ok | {error, term()}.
fence(Ms) -> khepri:fence(?STORE, Ms).

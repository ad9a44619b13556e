%% SPDX-License-Identifier: Apache-2.0
-module(s_group).
-moduledoc """
Groups of nodes with their own links and their own names.

An *s_group* is a set of nodes with a full mesh of links among them and one namespace of process
names: each member has all names of the group and reads them locally. A node may be in any number of
groups. A node in no group is *free*, and has a namespace under the group `undefined`. Groups are
made, grown, shrunk and deleted at run time.

```erlang
{ok, workers, _} = s_group:new_s_group(workers, [node(), 'b@host', 'c@host']),
{ok, Pid} = gen_server:start_link({via, s_group, {workers, queue}}, queue_server, [], []),
Pid = s_group:whereis_name(workers, queue).     %% on any member, a local read
```

```elixir
{:ok, :workers, _} = :s_group.new_s_group(:workers, [node(), :"b@host", :"c@host"])
{:ok, pid} = GenServer.start_link(Queue, [], name: {:via, :s_group, {:workers, :queue}})
^pid = :s_group.whereis_name(:workers, :queue)
```

Group names are any term but `undefined`, process names any term.

## Errors

Expected failures are values, listed with each function. While the application is stopped, calls
give `{error, not_running}`, registrations `{no, not_running}` and reads `undefined`. On a node
whose VM connects to every node by itself (`connect_all` true) group calls give
`{error, connect_all}`.

A write that is not answered in time (10 s by default, `write_timeout_ms`) exits with `{timeout,
{s_group, write, _}}`. Its outcome is unknown then; ask `whereis_name/2`. A write exits at once if
this node learns meanwhile that it was removed from the group.

An argument of the wrong type raises `{badarg, {s_group, Function, Arity}, Details}`.

## Sources

The operations and their values are those published for SD Erlang (Chechina et al., *Improving the
network scalability of Erlang*, JPDC 2016; Trinder et al., *Scaling Reliably*, 2017). A program for
the published module runs without a change of its source, unless it depends on a row of the
table *Where the sources differ* in `docs/semantics.md`. `new_s_group/3`, `enter/2`, `leave/1`,
`recover_majority/2`, `follow/1`, `read/2`, `lookup/2`, options, subscriptions, `await/2`, `links/0`
and the `via` callbacks are this library's own. `m:sderl_place` chooses nodes by attributes, load
and distance.
""".

%% The library
-export([start/0, start_link/0, stop/0]).
%% Groups
-export([new_s_group/1, new_s_group/2, new_s_group/3, delete_s_group/1]).
-export([add_nodes/2, remove_nodes/2]).
-export([enter/2, leave/1, recover_majority/2, connect/1, connect/2, await/2]).
-export([follow/1, unfollow/1]).
-export([s_groups/0, own_s_groups/0, own_nodes/0, own_nodes/1, info/0, links/0, sync/0]).
%% Names
-export([register_name/3, register_name/4, re_register_name/3, unregister_name/2]).
-export([register_name_external/3, unregister_name_external/2]).
-export([whereis_name/2, whereis_name/3, read/2, lookup/2, send/3, send/4, registered_names/1]).
%% The via callbacks
-export([register_name/2, unregister_name/1, whereis_name/1, send/2]).
%% Events
-export([subscribe/1, subscribe/2, unsubscribe/1, monitor_nodes/1]).
%% Process groups
-export([join/3, leave/3, members/2]).
%% Placement
-export([choose_nodes/1, add_attribute/2, remove_attribute/2, registered_attributes/0]).

-export_type([group/0, name/0, options/0, group_options/0]).

-import(sderl_check, [misuse/5]).

-doc "Names a group. The free namespace is `undefined`, which no group may be called.".
-type group() :: term().
-doc "Names a process within a group.".
-type name() :: term().
-doc """
Options of a registration.

`meta` is kept with the name, and `lookup/2` reads it.

`resolver` decides when both sides of a split that heals have the name: `random_exit_name` (the
default), `random_notify_name` or `notify_all_name` as in `global`, or `{Module, Function}`. The
function is called with the name and both pids, on the node that decides, and returns the pid to
keep, or `none`.

`majority_lost` says what becomes of the process when the name's member loses the majority of a
group that decides by majority: `notify` sends it `{s_group_majority, lost, Group, Name}`, and
`{s_group_majority, regained, Group, Name}` when the member has the majority again; `exit` sends it
an exit signal with the reason `{s_group_no_majority, Group, Name}`; `ignore` does nothing. Without
this option the configuration key `majority_lost` decides, `ignore` by default.
""".
-type options() :: #{
    meta => term(),
    resolver => sderl_resolver:resolver(),
    majority_lost => sderl_options:majority_lost()
}.
-doc """
Options of a new group.

`consistency`: with `available` each side of a split decides for itself; with `majority` only a side
with more than half of all members decides. Without this option the configuration key `consistency`
decides, `available` by default.

`answer`: with `committed` a write is answered when every member that counts has applied it. With
`applied`, which only available groups may have, it is answered when the caller's own node has
applied it, unless it concerns a name that is at home on another member. That is sooner, and other
members see the write a moment later; `docs/faults.md` ("Answered at once") says what it gives up.
Without this option the configuration key `answer` decides, `committed` by default.
""".
-type group_options() :: #{
    consistency => sderl_options:consistency(),
    answer => sderl_options:answer()
}.

%% ---------------------------------------------------------------- the library

-doc """
Starts the application `sderl` and the applications that it needs, and gives its supervisor. For
published programs, which boot with `erl -run s_group`; other programs list `sderl` among their
applications.

Errors: `{already_started, Pid}`, and those of `application:start/1`; on a node that connects to
every other node by itself `{sderl, {{connect_all, Sentence}, _}}`.
""".
-spec start() -> {ok, pid()} | {error, {already_started, pid()} | term()}.
start() ->
    case application:ensure_all_started(sderl) of
        {ok, Started} ->
            case {lists:member(sderl, Started), whereis(sderl_sup)} of
                {true, Pid} when is_pid(Pid) -> {ok, Pid};
                {false, Pid} when is_pid(Pid) -> {error, {already_started, Pid}};
                {_, undefined} -> {error, not_running}
            end;
        {error, Why} -> {error, Why}
    end.

-doc """
As `start/0`, and links the calling process to the supervisor. For published programs. The
application goes on when the calling process ends.
""".
-spec start_link() -> {ok, pid()} | {error, {already_started, pid()} | term()}.
start_link() ->
    case start() of
        {ok, Pid} ->
            true = link(Pid),
            {ok, Pid};
        Error -> Error
    end.

-doc "Stops the application `sderl`. For published programs.".
-spec stop() -> stopped | {error, not_running}.
stop() ->
    case application:stop(sderl) of
        ok -> stopped;
        {error, _} -> {error, not_running}
    end.

%% ---------------------------------------------------------------- groups

-doc """
Creates a group under a generated name: a printable atom with 80 random bits. See `new_s_group/2`.
""".
-spec new_s_group([node()]) -> {ok, group(), [node()]} | {error, term()}.
new_s_group(Nodes) ->
    ok = nodes_arg(Nodes, new_s_group, 1, 1),
    new_s_group(generated(), Nodes).

-doc """
Creates a group of the calling node and others.

`Joined` are the nodes that are members now, sorted. Nodes that could not be reached, do not run
the application or own another group of that name are left out; `info/0` says why. An empty list
gives `{ok, Group, []}` and creates nothing.

Errors: `remote_s_group` (the calling node is not in the list), `s_group_name_is_in_use`,
`reserved_s_group_name` (`undefined`).

A node that is not distributed (`nonode@nohost`) may have groups of which it is the only member, so
that programs and their tests run on it. It keeps these groups when it gets a name.
""".
-spec new_s_group(group(), [node()]) ->
    {ok, group(), Joined :: [node()]}
    | {error, remote_s_group | s_group_name_is_in_use | reserved_s_group_name | not_running
        | connect_all}.
new_s_group(Group, Nodes) ->
    ok = nodes_arg(Nodes, new_s_group, 2, 2),
    new_group(Group, Nodes, #{}).

-doc """
`new_s_group/2` with options. All nodes that accept the invitation are members of a majority group
from the beginning, and it decides as soon as more than half of them have joined; `docs/majority.md`
says what it promises. The free namespace `undefined` is always available.

Errors: those of `new_s_group/2`, and `consistency_differs`, `answer_differs`: the configuration of
this node has another consistency, or another `answer`, for a group of this name. A node whose
configuration has another consistency is left out; a node whose configuration has another `answer`
uses that for its own callers. `answer => applied` with `consistency => majority` is a `badarg`, and
`consistency_differs` where the configuration has one of them.
""".
-spec new_s_group(group(), [node()], group_options()) ->
    {ok, group(), Joined :: [node()]}
    | {error, remote_s_group | s_group_name_is_in_use | reserved_s_group_name | not_running
        | connect_all | consistency_differs | answer_differs}.
new_s_group(Group, Nodes, Options) ->
    ok = nodes_arg(Nodes, new_s_group, 3, 2),
    new_group(Group, Nodes, group_options_arg(Options)).

new_group(Group, Nodes, Options) ->
    case {Nodes, lists:member(node(), Nodes)} of
        _ when Group =:= undefined -> {error, reserved_s_group_name};
        {[], _} -> {ok, Group, []};
        {_, false} -> {error, remote_s_group};
        _ -> running(fun() -> sderl_admin:create(Group, lists:usort(Nodes), Options) end)
    end.

group_options_arg(#{consistency := majority, answer := applied} = Options) ->
    misuse(?MODULE, {new_s_group, 3}, 3, Options, "answer => applied of an available group only");
group_options_arg(Options) when is_map(Options) ->
    maps:foreach(fun
        (consistency, Consistency) ->
            sderl_check:is_consistency(Consistency)
                orelse misuse(?MODULE, {new_s_group, 3}, 3, Consistency,
                              "available or majority as consistency");
        (answer, Answer) ->
            sderl_check:is_answer(Answer)
            orelse misuse(?MODULE, {new_s_group, 3}, 3, Answer, "committed or applied as answer");
        (Key, _) ->
            misuse(?MODULE, {new_s_group, 3}, 3, Key, "a map with consistency, answer or nothing")
    end, Options),
    Options;
group_options_arg(Options) ->
    misuse(?MODULE, {new_s_group, 3}, 3, Options, "a map with consistency, answer or nothing").

-doc """
Deletes a group and its names on all its members. When this returns, all members that are there have
agreed; a slow one may still show the group for a moment. Members that are away learn of it when
they return.

Errors: `remote_s_group` (the calling node is no member), `no_majority`.
""".
-spec delete_s_group(group()) ->
    ok | {error, remote_s_group | no_majority | not_running | connect_all}.
delete_s_group(undefined) -> {error, remote_s_group};
delete_s_group(Group) -> running(fun() -> sderl_admin:delete(Group) end).

-doc """
Adds nodes to a group of the calling node.

`Added` are the nodes that are new members, sorted. A node that could not be added is left out, and
`info/0` says why. Returns when the new members have all names, or after the write timeout. The
calling node is ignored, so a list without other nodes gives `{ok, Group, []}` whatever the group.

Errors: `node_does_not_belong_to_the_s_group` (the calling node is no member), `no_majority` (in a
majority group: the members that count are no majority of the members now, or would be none of the
members then; in the second case add fewer nodes at a time. A group of one member cannot grow in
this way: make it anew, with all its members, by `new_s_group/3`).
""".
-spec add_nodes(group(), [node()]) ->
    {ok, group(), Added :: [node()]}
    | {error, node_does_not_belong_to_the_s_group | no_majority | not_running | connect_all}.
add_nodes(Group, Nodes) ->
    ok = nodes_arg(Nodes, add_nodes, 2, 2),
    running(fun() ->
        case lists:delete(node(), lists:usort(Nodes)) of
            [] -> {ok, Group, []};
            _ when Group =:= undefined -> {error, node_does_not_belong_to_the_s_group};
            Others -> sderl_admin:add(Group, Others)
        end
    end).

-doc """
Removes nodes from a group of the calling node. Nodes that are no members are ignored, and an empty
list gives `ok` whatever the group. Names whose process lives on a removed node stay. Removed nodes
that are away learn of it when they return.

Errors: `cannot_remove_itself` (use `leave/1`), `node_does_not_belong_to_the_s_group`, `no_majority`
(see `recover_majority/2` for members that are lost for good).
""".
-spec remove_nodes(group(), [node()]) ->
    ok
    | {error, cannot_remove_itself | node_does_not_belong_to_the_s_group | no_majority
        | not_running | connect_all}.
remove_nodes(Group, Nodes) ->
    ok = nodes_arg(Nodes, remove_nodes, 2, 2),
    running(fun() ->
        case lists:usort(Nodes) of
            [] -> ok;
            _ when Group =:= undefined -> {error, node_does_not_belong_to_the_s_group};
            Out -> sderl_admin:remove(Group, Out)
        end
    end).

-doc """
Makes the calling node a member of a running group: the first of `Seeds` that can be reached and is
a member adds it. Returns the members of the group.

Errors: `no_seeds`, `{no_seed_answered, [{Node, Reason}]}`, `timeout`.
""".
-spec enter(group(), Seeds :: [node()]) -> {ok, group(), [node()]} | {error, term()}.
enter(Group, Seeds) ->
    ok = nodes_arg(Seeds, enter, 2, 2),
    case Group of
        undefined -> {error, reserved_s_group_name};
        _ -> running(fun() -> sderl_admin:enter(Group, Seeds) end)
    end.

-doc """
Takes the calling node out of a group. When the last member leaves, the group is deleted.

Errors: `node_does_not_belong_to_the_s_group`, `no_majority`.
""".
-spec leave(group()) ->
    ok
    | {error, node_does_not_belong_to_the_s_group | no_majority | not_running | connect_all}.
leave(undefined) -> {error, node_does_not_belong_to_the_s_group};
leave(Group) -> running(fun() -> sderl_admin:leave(Group) end).

-doc """
Makes the survivors of a majority group its only members. An operator calls it when so many members
are lost for good that the others are no majority and never will be one. The members that are not
among `Survivors` are removed, and writes go on with the state of the survivors.

**Call it only when the other members are known to be down and will not come back with their
state.** If they are only cut off, both sides decide from then on, and their writes are lost when
they meet the survivors. Each survivor logs a warning, as the event `majority_recovered`.

Call it on one survivor. It asks all survivors first, and each must be a member without a majority;
if one refuses or does not answer, nothing changes anywhere.

Errors: `{refused, [{Node, Why}]}` when nothing was changed, and `{incomplete, [{Node, Why}]}` when
some survivors have done it and others ended meanwhile: call it again, unless the group has a
majority by then. `Why` is `available_mode` (the group does not decide by majority), `has_majority`,
`not_member`, `not_running` or `unreachable`. Without asking other nodes: `not_a_survivor` (the
calling node is not in the list), `{not_members, [Node]}`, `node_does_not_belong_to_the_s_group`.
""".
-spec recover_majority(group(), Survivors :: [node()]) ->
    ok
    | {error, not_a_survivor | {not_members, [node()]}
        | node_does_not_belong_to_the_s_group
        | {refused | incomplete, [{node(), Why :: atom()}]}
        | not_running | connect_all}.
recover_majority(Group, Survivors) ->
    ok = nodes_arg(Survivors, recover_majority, 2, 2),
    running(fun() -> sderl_admin:recover(Group, lists:usort(Survivors)) end).

-doc """
Connects to a node: visibly if it runs this application, hidden if not.

A visible link from a node with `connect_all` false makes `global:sync/0` hang on a stock node as
long as it lasts; a hidden one does not. The link counts as the caller's own: no policy closes it.
""".
-spec connect(node()) -> boolean().
connect(Node) when is_atom(Node) -> sderl_stock:connect(Node);
connect(Other) -> misuse(?MODULE, {connect, 1}, 1, Other, "the name of a node").

-doc """
Makes both nodes members of the group, and returns whether they are now. The calling node adds the
other one if it is a member itself, and enters through it if not. For discovery libraries that call
a connect function: with libcluster, `connect: {:s_group, :connect, [:my_group]}`.
""".
-spec connect(group(), node()) -> boolean().
connect(Group, Node) when is_atom(Node) ->
    case enter(Group, [Node]) of
        {ok, _, Members} -> lists:member(Node, Members) orelse added(Group, Node);
        {error, _} -> false
    end;
connect(_, Node) -> misuse(?MODULE, {connect, 2}, 2, Node, "the name of a node").

added(Group, Node) ->
    case add_nodes(Group, [Node]) of
        {ok, _, _} -> lists:member(Node, own_nodes(Group));
        {error, _} -> false
    end.

-doc """
Keeps a copy of the names of a group that this node is not in, with their metadata, so that
`whereis_name/2`, `lookup/2` and `registered_names/1` of that group read a local table.

One of the members sends the copy, over existing links or over gateways, and then every change
within moments; a new link is opened only if no gateway leads to the group. The copy is read while
it is whole and not older than `follow_max_age_ms`. Otherwise, and for a group with more names than
`follow_names`, members are asked as without following. **A copy may be stale**: a name may show a
process that has ended or lost it, and a name that is a moment old may be missing. `read/2` always
asks a member. `info/0` has the age of each copy under `followed`.

`unfollow/1` ends it. The call is idempotent, and the group need not exist yet. While this node is a
member of the group there is no copy. `docs/follow.md` has the promises and what it costs; the
configuration key `follow` has the groups that a node follows from its start.

Errors: `node_belongs_to_the_s_group`, `reserved_s_group_name` (`undefined`).
""".
-spec follow(group()) ->
    ok
    | {error, node_belongs_to_the_s_group | reserved_s_group_name | not_running | connect_all}.
follow(undefined) -> {error, reserved_s_group_name};
follow(Group) -> running(fun() -> sderl_follower:follow(Group) end).

-doc "Drops the copy of a group that this node follows; `ok` also when it does not.".
-spec unfollow(group()) -> ok | {error, not_running | connect_all}.
unfollow(Group) -> running(fun() -> sderl_follower:unfollow(Group) end).

-doc """
Waits until a group is ready on this node: every member has been tried once, every member that
answers is in one component with this node, and this node has all names.
""".
-spec await(group(), timeout()) -> ok | {error, timeout | not_running | connect_all}.
await(Group, Timeout) when Timeout =:= infinity; is_integer(Timeout), Timeout >= 0 ->
    sderl_client:await(Group, Timeout);
await(_, Timeout) -> misuse(?MODULE, {await, 2}, 2, Timeout, "milliseconds or infinity").

-doc """
The names of the own groups, and of other known groups: those of the launch configuration, and those
that members of the own groups are in. `undefined` on a free node.
""".
-spec s_groups() ->
    {Own :: [group()], Other :: [group()]} | undefined | {error, not_running | connect_all}.
s_groups() ->
    running(fun() ->
        case sderl_dir:named_groups() of
            [] -> undefined;
            Own -> {lists:sort(Own), [G || {G, _} <- sderl_dir:known()]}
        end
    end).

-doc "The own groups with their members, the one that this node entered last first.".
-spec own_s_groups() -> [{group(), [node()]}] | {error, not_running | connect_all}.
own_s_groups() ->
    running(fun sderl_dir:newest_first/0).

-doc """
The nodes of all own groups, this one among them; on a free node those of its island.
""".
-spec own_nodes() -> [node()] | {error, not_running | connect_all}.
own_nodes() ->
    running(fun() ->
        lists:usort([node() | lists:append([Ms || {_, Ms} <- sderl_dir:memberships()])])
    end).

-doc "The members of an own group, `[]` for any other.".
-spec own_nodes(group()) -> [node()] | {error, not_running | connect_all}.
own_nodes(undefined) -> running(fun() -> [] end);
own_nodes(Group) ->
    running(fun() -> sderl_dir:members(Group) end).

-doc """
What this node knows of its groups, for operators.

The published keys (`state`, `own_group_names`, `own_group_nodes`, `synced_nodes`, `sync_error`,
`no_contact`, `own_s_groups`, `other_groups`, `monitoring`), then `groups` (each own group's state:
coordinator, epoch, the members that count, those that are set aside, those whose acknowledgement is
missing), `followed` (the copies of groups: whether each may be read, its names, the member that
feeds it, its greatest age), `left_out` (nodes that did not join, with the reason), `gone` (groups
left or deleted, still remembered), `global` (what OTP's `global` can do on this node) and
`problems`: sentences.
""".
-spec info() -> [{atom(), term()}] | {error, not_running | connect_all}.
info() -> running(fun sderl_info:info/0).

-doc """
The links of this node: to which node, since when, visible or not, for which reasons, whether the
library opened it, and whether anything still needs it. `t:sderl_links:link/0` has the keys.
""".
-spec links() -> [sderl_links:link()] | {error, not_running | connect_all}.
links() ->
    running(fun() ->
        sderl_links:list(sderl_dir:needs(), sderl_clock:now_ms(), sderl_options:value(link_idle_ms))
    end).

-doc """
Waits until the own groups are ready, at most five seconds each. For published programs; see
`await/2`.
""".
-spec sync() -> ok | {error, timeout | not_running | connect_all}.
sync() ->
    running(fun() ->
        case [E || G <- sderl_dir:groups(), {error, _} = E <- [await(G, 5000)]] of
            [] -> ok;
            [E | _] -> E
        end
    end).

%% ---------------------------------------------------------------- names

-doc """
Registers a process under a name of a group. `yes` means that every member that counts has the name,
and `{no, _}` that nothing was applied. Where the group has `answer => applied`, `yes` means that
the caller's node has it.

A pid has at most one name in a group, and may have names in several groups. The process may live on
any node. If that node is a member, the member must count (one that is set aside counts again when
it has caught up); if not, the coordinator must be able to link to it.

`{no, Reason}`: `name_or_pid_already_registered`, `cannot_register_in_remote_group`, `not_a_pid`,
`dead_pid`, `unreachable_pid`, `no_majority` (the group decides by majority, and this side of it has
none), `not_running`, `connect_all`.
""".
-spec register_name(group(), name(), pid()) -> yes | {no, atom()}.
register_name(Group, Name, Pid) -> register_name(Group, Name, Pid, #{}).

-doc "`register_name/3` with options, see `t:options/0`.".
-spec register_name(group(), name(), pid(), options()) -> yes | {no, atom()}.
register_name(Group, Name, Pid, Options) ->
    Opts = options_arg(Options, register_name, 4, 4),
    sderl_register:register(Group, Name, Pid, Opts).

-doc """
Registers a process under a name, in place of the process that has the name.

`{no, Reason}`: `pid_is_already_registered` (in this group, under any name),
`cannot_re_register_in_remote_group`, `not_a_pid`, `dead_pid`, `unreachable_pid`, `no_majority`,
`not_running`, `connect_all`.
""".
-spec re_register_name(group(), name(), pid()) -> yes | {no, atom()}.
re_register_name(Group, Name, Pid) -> sderl_register:re_register(Group, Name, Pid).

-doc """
Unregisters a name; `ok` also when there is none.

`{no, Reason}`: `cannot_unregister_from_remote_group`, `no_majority`, `not_running`, `connect_all`.
""".
-spec unregister_name(group(), name()) -> ok | {no, atom()}.
unregister_name(Group, Name) -> sderl_register:unregister(Group, Name).

-doc "As `register_name/3`: the process is monitored all the same. For published programs.".
-spec register_name_external(group(), name(), pid()) -> yes | {no, atom()}.
register_name_external(Group, Name, Pid) -> register_name(Group, Name, Pid).

-doc "As `unregister_name/2`. For published programs.".
-spec unregister_name_external(group(), name()) -> ok | {no, atom()}.
unregister_name_external(Group, Name) -> unregister_name(Group, Name).

-doc """
The process of a name. A member reads its own table, and a node that follows the group reads its
copy (`follow/1`). Any other node asks known members of the group, at most three, for at most five
seconds in all. `undefined` if there is no such name, or no member to ask.
""".
-spec whereis_name(group(), name()) -> pid() | undefined.
whereis_name(Group, Name) -> sderl_read:whereis(Group, Name).

-doc """
Asks one node, and links to it, also when the name is not found. A free node answers from its own
names whatever the group; a node outside the group says `undefined`.
""".
-spec whereis_name(node(), group(), name()) -> pid() | undefined.
whereis_name(Node, Group, Name) when is_atom(Node) -> sderl_read:whereis_at(Node, Group, Name);
whereis_name(Node, _, _) -> misuse(?MODULE, {whereis_name, 3}, 1, Node, "the name of a node").

-doc """
The process of a name, read through the log of the group: it sees every write that was answered
before the call, whichever node made it. It costs as much as a write, while `whereis_name/2` reads
the caller's own table, which may be stale. In a majority group this holds whatever happens to nodes
and links; in an available group it holds within one side of a split.

On a node that is no member, a known member reads for it; at most three are asked.

Errors: `no_majority` (this side of the group has no majority of its members, so it cannot know),
`timeout` (no answer within `write_timeout_ms`, or the coordinator went; ask again),
`no_information_about_remote_group` (no member is known), `unreachable` (none could be asked),
`not_running`, `connect_all`.
""".
-spec read(group(), name()) ->
    pid()
    | undefined
    | {error, no_majority | timeout | no_information_about_remote_group | unreachable
        | not_running | connect_all}.
read(Group, Name) ->
    running(fun() -> sderl_read:read(Group, Name) end).

-doc """
The entry of a name, as a member or a node that follows the group (`follow/1`) has it: `pid`, `meta`
(`undefined` if none was given), `home` (the member that answers for the name) and `token`. The
token grows with every registration of the name in the group's history, so a resource that refuses a
lower token than it has seen is safe from a stale holder. `undefined` if there is no such name.
""".
-spec lookup(group(), name()) ->
    #{pid := pid(), meta := term(), home := node(), token := {term(), non_neg_integer()}}
    | undefined
    | {error, no_information_about_remote_group | not_running}.
lookup(Group, Name) ->
    sderl_running:while(fun() -> registration(Group, Name) end).

registration(Group, Name) ->
    case sderl_names:registration(Group, Name) of
        #{pid := Pid, home := Home, token := Token, options := Opts} ->
            case node(Pid) =/= node() orelse is_process_alive(Pid) of
                true ->
                    #{pid => Pid, home => Home, token => Token, meta => sderl_op:meta(Opts)};
                false -> undefined
            end;
        none ->
            case sderl_names:is_member(Group) of
                true -> undefined;
                false -> copied(Group, Name)
            end
    end.

copied(Group, Name) ->
    case sderl_copies:registration(Group, Name) of
        {ok, Found} -> Found;
        none -> {error, no_information_about_remote_group}
    end.

-doc """
Sends a message to the process of a name, and gives its pid, or `{badarg, {Group, Name, Msg}}` if
there is no such name. If this node is not in the group, a member delivers the message.
""".
-spec send(group(), name(), term()) -> pid() | {badarg, {group(), name(), term()}}.
send(Group, Name, Msg) -> sent(sderl_read:send(Group, Name, Msg), Group, Name, Msg).

-doc "As `send/3`, over the given node, which is linked (see `whereis_name/3`) and delivers.".
-spec send(node(), group(), name(), term()) -> pid() | {badarg, {group(), name(), term()}}.
send(Node, Group, Name, Msg) when is_atom(Node) ->
    sent(sderl_read:send_at(Node, Group, Name, Msg), Group, Name, Msg);
send(Node, _, _, _) -> misuse(?MODULE, {send, 4}, 1, Node, "the name of a node").

sent(undefined, Group, Name, Msg) -> {badarg, {Group, Name, Msg}};
sent(Pid, _, _, _) -> Pid.

-doc """
The names of a group (`{s_group, Group}`), as `[{Group, Name}]`, or of all groups of a node (`{node,
Node}`, with `undefined` for the free names). `[]` also if no member can be asked; `lookup/2`
distinguishes that from a group without names.
""".
-spec registered_names({s_group, group()} | {node, node()}) ->
    [{group(), name()}] | {error, not_running | connect_all}.
registered_names({s_group, Group}) ->
    running(fun() -> [{Group, N} || N <- sderl_read:names_of(Group)] end);
registered_names({node, Node}) when is_atom(Node) ->
    running(fun() -> [{G, N} || {G, Ns} <- sderl_read:names_at(Node), N <- Ns] end);
registered_names(Other) ->
    misuse(?MODULE, {registered_names, 1}, 1, Other, "{s_group, Group} or {node, Node}").

%% ---------------------------------------------------------------- via

-doc """
For `{via, s_group, {Group, Name}}`. If a start gives `{error, {already_started, undefined}}`, the
name was not taken but refused for another reason, which the log has as the event `via_refused`. In
a majority group, on a side without a majority, this exits with
`{no_majority, {s_group, register_name, [Group, Name]}}`, which the start gives as its error.
""".
-spec register_name({group(), name()}, pid()) -> yes | no.
register_name({Group, Name}, Pid) ->
    case register_name(Group, Name, Pid) of
        yes -> yes;
        {no, no_majority} ->
            sderl_via:no_majority(Group, Name);
        {no, Why} ->
            sderl_via:refused(Group, Name, Why),
            no
    end;
register_name(Other, _) -> misuse(?MODULE, {register_name, 2}, 1, Other, "{Group, Name}").

-doc "For `{via, s_group, {Group, Name}}`.".
-spec unregister_name({group(), name()}) -> ok.
unregister_name({Group, Name}) ->
    _ = unregister_name(Group, Name),
    ok;
unregister_name(Other) -> misuse(?MODULE, {unregister_name, 1}, 1, Other, "{Group, Name}").

-doc "For `{via, s_group, {Group, Name}}`.".
-spec whereis_name({group(), name()}) -> pid() | undefined.
whereis_name({Group, Name}) -> whereis_name(Group, Name);
whereis_name(Other) -> misuse(?MODULE, {whereis_name, 1}, 1, Other, "{Group, Name}").

-doc """
For `{via, s_group, {Group, Name}}`. Exits `{badarg, {{Group, Name}, Msg}}` if there is no such
name.
""".
-spec send({group(), name()}, term()) -> pid().
send({Group, Name}, Msg) ->
    case send(Group, Name, Msg) of
        Pid when is_pid(Pid) -> Pid;
        {badarg, _} -> exit({badarg, {{Group, Name}, Msg}})
    end;
send(Other, _) -> misuse(?MODULE, {send, 2}, 1, Other, "{Group, Name}").

%% ---------------------------------------------------------------- events

-doc "`subscribe/2` to both kinds of events.".
-spec subscribe(group() | all) -> {ok, reference()} | {error, atom()}.
subscribe(Group) -> subscribe(Group, [group, name]).

-doc """
Subscribes the calling process to the events of a group, or of `all` groups of this node: it gets
`{s_group_event, Ref, Group, Event}` for `group` events (members, coordinator, deletion) and `name`
events. `t:sderl_subs:event/0` lists them.
""".
-spec subscribe(group() | all, [group | name, ...]) -> {ok, reference()} | {error, atom()}.
subscribe(Group, Kinds) ->
    case sderl_check:proper_list(Kinds) andalso Kinds =/= []
        andalso Kinds -- [group, name] =:= [] of
        true -> running(fun() -> sderl_subs:subscribe(Group, self(), Kinds) end);
        false -> misuse(?MODULE, {subscribe, 2}, 2, Kinds, "a list of group, name")
    end.

-doc "Ends a subscription.".
-spec unsubscribe(reference()) -> ok | {error, not_running}.
unsubscribe(Ref) when is_reference(Ref) -> sderl_subs:unsubscribe(Ref);
unsubscribe(Other) ->
    misuse(?MODULE, {unsubscribe, 1}, 1, Other, "the reference that subscribe gave").

-doc """
Starts or stops `{nodeup, Node}` and `{nodedown, Node}` messages for nodes of the own groups.
""".
-spec monitor_nodes(boolean()) -> ok | {error, not_boolean | not_running | connect_all}.
monitor_nodes(Flag) when is_boolean(Flag) ->
    running(fun() -> sderl_subs:monitor_nodes(self(), Flag) end);
monitor_nodes(_) -> {error, not_boolean}.

%% ---------------------------------------------------------------- process groups

-doc """
Joins processes to a process group of an s_group. Each s_group is a scope of OTP's `m:pg`, so a
process group reaches the members of the s_group and no other node. Like `pg` it is eventually
consistent, several processes may join, and one may join several times.
""".
-spec join(group(), term(), pid() | [pid()]) -> ok | {error, atom()}.
join(Group, PgGroup, Pids) ->
    pids_arg(Pids, join),
    running(fun() -> sderl_pg:join(Group, PgGroup, Pids) end).

-doc "Takes processes out of a process group.".
-spec leave(group(), term(), pid() | [pid()]) -> ok | not_joined | {error, atom()}.
leave(Group, PgGroup, Pids) ->
    pids_arg(Pids, leave),
    running(fun() -> sderl_pg:leave(Group, PgGroup, Pids) end).

-doc "The processes of a process group on all members.".
-spec members(group(), term()) -> [pid()] | {error, atom()}.
members(Group, PgGroup) -> running(fun() -> sderl_pg:members(Group, PgGroup) end).

%% ---------------------------------------------------------------- placement

-doc """
The nodes that are in all of the given groups and have all of the given attributes, without the
calling one, sorted; among the nodes with a link if no group is given. As published, except that
groups without a common member give `[]`. `m:sderl_place` chooses by values, loads and distances
too.
""".
-spec choose_nodes([{s_group, group()} | {attribute, term()}]) ->
    [node()] | {error, not_running | connect_all}.
choose_nodes(Constraints) ->
    Right = fun({s_group, _}) -> true; ({attribute, _}) -> true; (_) -> false end,
    case sderl_check:proper_list(Constraints) andalso lists:all(Right, Constraints) of
        true -> running(fun() -> sderl_place_published:choose(Constraints) end);
        false ->
            misuse(?MODULE, {choose_nodes, 1}, 1, Constraints,
                   "a list of {s_group, Group} and {attribute, Attribute}")
    end.

-doc """
Gives attributes, any terms, to nodes; returns the nodes that have them now, sorted. A node that
does not answer within five seconds is left out. As published. Attributes with values:
`m:sderl_attr`.
""".
-spec add_attribute([node()], Attributes :: [term()]) ->
    [node()] | {error, both_parameters_should_be_lists | not_running | connect_all}.
add_attribute(Nodes, Attributes) -> change_attributes(add, Nodes, Attributes, add_attribute).

-doc """
Removes attributes from nodes, except built-in ones; returns the nodes that have none of them now,
sorted. As published.
""".
-spec remove_attribute([node()], Attributes :: [term()]) ->
    [node()] | {error, both_parameters_should_be_lists | not_running | connect_all}.
remove_attribute(Nodes, Attributes) ->
    change_attributes(remove, Nodes, Attributes, remove_attribute).

change_attributes(How, Nodes, Attributes, F) ->
    case is_list(Nodes) andalso is_list(Attributes) of
        false -> {error, both_parameters_should_be_lists};
        true ->
            ok = nodes_arg(Nodes, F, 2, 1),
            sderl_check:proper_list(Attributes)
                orelse misuse(?MODULE, {F, 2}, 2, Attributes, "a list of attributes"),
            running(fun() -> sderl_place_published:change(How, Nodes, Attributes) end)
    end.

-doc """
The attributes that were given to the calling node, without the built-in ones, sorted.
`sderl_attr:all/0` tells more.
""".
-spec registered_attributes() -> [term()] | {error, not_running | connect_all}.
registered_attributes() -> running(fun sderl_place_published:own/0).

%% ---------------------------------------------------------------- arguments and answers

running(Fun) -> sderl_running:call(Fun).

-define(OPTIONS, "a map with meta, resolver and majority_lost, or some of them").

options_arg(Options, _, _, _) when Options =:= #{} -> [];
options_arg(Options, F, A, I) when is_map(Options) ->
    case maps:keys(Options) -- [meta, resolver, majority_lost] of
        [] ->
            case sderl_resolver:validate(maps:get(resolver, Options, random_exit_name)) of
                ok -> majority_lost_arg(Options, F, A, I);
                {error, {bad_resolver, Term, Expected}} ->
                    misuse(?MODULE, {F, A}, I, Term, Expected)
            end;
        [Key | _] -> misuse(?MODULE, {F, A}, I, Key, ?OPTIONS)
    end;
options_arg(Other, F, A, I) -> misuse(?MODULE, {F, A}, I, Other, ?OPTIONS).

majority_lost_arg(Options, F, A, I) ->
    Asked = maps:get(majority_lost, Options, ignore),
    case sderl_check:is_majority_lost(Asked) of
        true -> Options;
        false -> misuse(?MODULE, {F, A}, I, Asked, "notify, exit or ignore as majority_lost")
    end.

nodes_arg(Nodes, F, A, I) ->
    case sderl_check:proper_list(Nodes) of
        false -> misuse(?MODULE, {F, A}, I, Nodes, "a list of names of nodes");
        true ->
            case [N || N <- Nodes, not is_atom(N)] of
                [] -> ok;
                [Bad | _] -> misuse(?MODULE, {F, A}, I, Bad, "the name of a node, an atom")
            end
    end.

pids_arg(Pid, _) when is_pid(Pid) -> ok;
pids_arg(Pids, F) ->
    case sderl_check:proper_list(Pids) andalso lists:all(fun is_pid/1, Pids) of
        true -> ok;
        false -> misuse(?MODULE, {F, 3}, 3, Pids, "a pid or a list of pids")
    end.

%% 80 random bits, as 16 characters that can be read aloud.
generated() ->
    Alphabet = "abcdefghjkmnpqrstuvwxyz023456789",
    Chars = [lists:nth(1 + B, Alphabet) || <<B:5>> <= rand:bytes(10)],
    Group = list_to_atom("s_group_" ++ Chars),
    case sderl_dir:is_running() andalso sderl_names:is_member(Group) of
        true -> generated();
        false -> Group
    end.

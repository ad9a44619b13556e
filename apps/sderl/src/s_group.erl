%% SPDX-License-Identifier: Apache-2.0
-module(s_group).
-moduledoc """
Groups of nodes with their own links and their own names.

An *s_group* is a set of nodes that are linked to each other, and to nobody else because of it,
and that share one namespace of processes: each member has all names of the group and reads them
locally. A node may be in any number of groups, or in none (then it is *free* and has a
namespace under the group `undefined`). Groups are made, grown, shrunk and deleted at run time.

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

Expected failures are values, listed with each function. With the application stopped calls give
`{error, not_running}`, registrations `{no, not_running}`, reads `undefined`. On a node whose VM
connects to every node by itself (`connect_all` true) group calls give `{error, connect_all}`. A
write that is not answered in time (10 s by default, `write_timeout_ms`) exits with
`{timeout, {s_group, write, _}}`: its outcome is unknown then, and `whereis_name/2` tells. So does one
that was under way when this node hears from outside that it was removed from the group, at once. An
argument of the wrong type raises `{badarg, {s_group, Function, Arity}, Details}`.

## Sources

The operations and their values are those published for SD Erlang (Chechina et al., *Improving
the network scalability of Erlang*, JPDC 2016; Trinder et al., *Scaling Reliably*, 2017).
Programs written for the published module run unmodified, but for what the table *Where the sources
differ* in `docs/semantics.md` lists. `new_s_group/3`, `enter/2`, `leave/1`, `recover_majority/2`,
`follow/1`, `read/2`, `lookup/2`, options, subscriptions, `await/2`, `links/0` and the `via` callbacks are ours.
Choosing nodes by attributes, load and distance: `m:sderl_place`.
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

-doc "Names a group. The free namespace is `undefined`, which no group may be called.".
-type group() :: term().
-doc "Names a process within a group.".
-type name() :: term().
-doc """
Of a registration. `meta` is kept with the name and read by `lookup/2`. `resolver` decides when a
healed split finds the name on both sides: `random_exit_name` (default), `random_notify_name`,
`notify_all_name` as in `global`, or `{Module, Function}` called with the name and both pids, on
the node that decides, to give the pid to keep or `none`.

`majority_lost` says what becomes of the process when the name's member loses the majority of a
group that decides by majority: `notify` sends it `{s_group_majority, lost, Group, Name}`, and
`{s_group_majority, regained, Group, Name}` when the member has the majority again; `exit` sends it
an exit signal with the reason `{s_group_no_majority, Group, Name}`; `ignore` does nothing. Without
it the configuration key `majority_lost` decides, `ignore` by default.
""".
-type options() :: #{
    meta => term(),
    resolver => sderl_resolver:resolver(),
    majority_lost => sderl_options:majority_lost()
}.
-doc """
Of a new group. `consistency`: with `available` each side of a split decides for itself, with
`majority` only one that has more than half of all members. Without it the configuration key
`consistency` decides, `available` by default.

`answer`: with `committed` a write is answered when every member that counts has applied it. With
`applied`, of available groups only, when the caller's own node has, where the write concerns no name that is at
home on another member: sooner, and others see it a moment later. What that gives up is in
`docs/faults.md` ("Answered at once"). Without it the configuration key `answer` decides, `committed` by
default.
""".
-type group_options() :: #{
    consistency => sderl_options:consistency(),
    answer => sderl_options:answer()
}.

%% ---------------------------------------------------------------- the library

-doc """
Starts the application `sderl` and what it needs; the process is that of its supervisor. For
published programs, which boot with `erl -run s_group`; others name `sderl` among their applications.

Errors: `{already_started, Pid}`, and those of `application:start/1`; a node that connects to every
other by itself gives `{sderl, {{connect_all, Sentence}, _}}`.
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

A node that is not distributed (`nonode@nohost`) may have groups in which it is alone: programs
and their tests run on it as they are. It keeps them when it gets a name, and is in them under it.
""".
-spec new_s_group(group(), [node()]) ->
    {ok, group(), Joined :: [node()]}
    | {error, remote_s_group | s_group_name_is_in_use | reserved_s_group_name | not_running
        | connect_all}.
new_s_group(Group, Nodes) ->
    ok = nodes_arg(Nodes, new_s_group, 2, 2),
    new_group(Group, Nodes, #{}).

-doc """
`new_s_group/2` with options. A group that decides by majority begins with all nodes that accept the
invitation as members, and decides when more than half of them have joined; `docs/majority.md` says
what it promises. The free namespace `undefined` is
always available.

Errors: those of `new_s_group/2`, and `consistency_differs`, `answer_differs`: the configuration of this node has
another consistency, or another `answer`, for a group of this name. A node whose configuration has another consistency is
left out; one that has another `answer` answers its own callers so. `answer => applied` with
`consistency => majority` is a `badarg`, and `consistency_differs` where the configuration has one of them.
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
    misuse(new_s_group, 3, 3, Options, "answer => applied of an available group only");
group_options_arg(Options) when is_map(Options) ->
    maps:foreach(fun
        (consistency, Consistency) ->
            sderl_check:is_consistency(Consistency)
                orelse misuse(new_s_group, 3, 3, Consistency,
                              "available or majority as consistency");
        (answer, Answer) ->
            sderl_check:is_answer(Answer)
                orelse misuse(new_s_group, 3, 3, Answer, "committed or applied as answer");
        (Key, _) ->
            misuse(new_s_group, 3, 3, Key, "a map with consistency, answer or nothing")
    end, Options),
    Options;
group_options_arg(Options) ->
    misuse(new_s_group, 3, 3, Options, "a map with consistency, answer or nothing").

-doc """
Deletes a group and its names on all its members. All members that are there have agreed when this returns; one that is slow
may still show the group for a moment. Members that are away are told when they return.

Errors: `remote_s_group` (the calling node is no member), `no_majority`.
""".
-spec delete_s_group(group()) ->
    ok | {error, remote_s_group | no_majority | not_running | connect_all}.
delete_s_group(undefined) -> {error, remote_s_group};
delete_s_group(Group) -> running(fun() -> sderl_admin:delete(Group) end).

-doc """
Adds nodes to a group of the calling node.

`Added` are those that were no members before and are now, sorted; who could not be added is left
out and `info/0` says why. Returns when the new members have all names, or after the write timeout.
The calling node is ignored, so a list with nobody else gives `{ok, Group, []}` whatever the group.

Errors: `node_does_not_belong_to_the_s_group` (the calling node is no member), `no_majority` (the
group decides by majority, and the members that count now are none, or would be none of the members
then: add fewer nodes at a time).
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
that are away are told when they return.

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
Makes the calling node a member of a running group: the first of `Seeds` that can be reached and
is a member adds it. Gives the members.

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
Takes the calling node out of a group. The last member's leaving deletes the group.

Errors: `node_does_not_belong_to_the_s_group`, `no_majority`.
""".
-spec leave(group()) ->
    ok
    | {error, node_does_not_belong_to_the_s_group | no_majority | not_running | connect_all}.
leave(undefined) -> {error, node_does_not_belong_to_the_s_group};
leave(Group) -> running(fun() -> sderl_admin:leave(Group) end).

-doc """
For the operator of a group that decides by majority, when so many members are lost for good that
those that are left are no majority and never will be one. The `Survivors` are the members from then
on, the others are removed, and writes go on with what the survivors know.

**Call it only when the other members are known to be down and will not come back with what they
know.** Should they be only cut off, they may have written more meanwhile, both sides decide from
then on, and what the survivors lack is lost when they meet. Each survivor logs a warning, as the
event `majority_recovered`.

It is called on one survivor and asks all of them first, each of which must be a member without a
majority; if one refuses or does not answer, nothing is changed anywhere.

Errors: `{Reason, [{Node, Why}]}` with the reason `refused` where nothing was changed, and
`incomplete` where some survivors have done it and others ended meanwhile: call it again, unless the
group has a majority by then. Each `Why`
is `available_mode` (the group does not decide by majority), `has_majority`, `not_member`,
`not_running` or `unreachable`. Without asking: `not_a_survivor` (the calling node is not in the
list), `{not_members, [Node]}`, `node_does_not_belong_to_the_s_group`.
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
long as it lasts; a hidden one does not. The link is noted as the caller's own: no policy closes it.
""".
-spec connect(node()) -> boolean().
connect(Node) when is_atom(Node) -> sderl_stock:connect(Node);
connect(Other) -> misuse(connect, 1, 1, Other, "the name of a node").

-doc """
`enter/2` with one seed, as discovery libraries call a connect function: with libcluster,
`connect: {:s_group, :connect, [:my_group]}`. A node that is a member already adds the other one. Whether
both are members now.
""".
-spec connect(group(), node()) -> boolean().
connect(Group, Node) when is_atom(Node) ->
    case enter(Group, [Node]) of
        {ok, _, Members} -> lists:member(Node, Members) orelse added(Group, Node);
        {error, _} -> false
    end;
connect(_, Node) -> misuse(connect, 2, 2, Node, "the name of a node").

added(Group, Node) ->
    case add_nodes(Group, [Node]) of
        {ok, _, _} -> lists:member(Node, own_nodes(Group));
        {error, _} -> false
    end.

-doc """
Keeps a copy of the names of a group that this node is not in, with their metadata: `whereis_name/2`,
`lookup/2` and `registered_names/1` of that group are reads of a local table then.

The copy comes from one of the members, over links that there are or over gateways, and every change
follows within moments; a new link is made only where no gateway leads to the group. It is read while
it is whole and not older than `follow_max_age_ms`; otherwise, and for a group with more names than
`follow_names`, members are asked as without it. **A copy may be behind**: a name may show a process
that has ended or lost it, or be missing that is a moment old. `read/2` asks a member always. `info/0`
says under `followed` how old each copy is.

It ends with `unfollow/1`. Following twice is following once, and the group need not exist yet. While
this node is a member of the group there is no copy. `docs/follow.md` has the promises and what it
costs; the configuration key `follow` has the groups that a node follows from its start.

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
Waits until a group is ready on this node: every member has been tried once and every one that
answers is in one component with this node, which has all names.
""".
-spec await(group(), timeout()) -> ok | {error, timeout | not_running | connect_all}.
await(Group, Timeout) when Timeout =:= infinity; is_integer(Timeout), Timeout >= 0 ->
    sderl_client:await(Group, Timeout);
await(_, Timeout) -> misuse(await, 2, 2, Timeout, "milliseconds or infinity").

-doc """
The names of the own groups and of the groups known otherwise: from the launch configuration and
from members of the own groups that are in others too. `undefined` on a free node.
""".
-spec s_groups() -> {Own :: [group()], Other :: [group()]} | undefined | {error, not_running | connect_all}.
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
    running(fun() -> lists:usort([node() | lists:append([Ms || {_, Ms} <- sderl_dir:memberships()])]) end).

-doc "The members of an own group, `[]` for any other.".
-spec own_nodes(group()) -> [node()] | {error, not_running | connect_all}.
own_nodes(undefined) -> running(fun() -> [] end);
own_nodes(Group) ->
    running(fun() -> sderl_dir:members(Group) end).

-doc """
What this node knows and why it is so, for people.

The published keys (`state`, `own_group_names`, `own_group_nodes`, `synced_nodes`, `sync_error`,
`no_contact`, `own_s_groups`, `other_groups`, `monitoring`), then `groups` (each own group's
state: coordinator, epoch, who is counted, who is set aside, whose acknowledgement is missing),
`followed` (the groups of which this node has copies: whether each may be read, its names, who feeds
it and how old it is at most), `left_out` (nodes that did not join, with the reason), `gone` (groups left or deleted, still
remembered), `global` (what OTP's `global` can do on this node) and `problems`: sentences.
""".
-spec info() -> [{atom(), term()}] | {error, not_running | connect_all}.
info() -> running(fun sderl_info:info/0).

-doc """
The links of this node: to whom, since when, visible or not, for what reasons, opened by whom, and
whether anything still needs them. See `m:sderl_links` for the keys.
""".
-spec links() -> [sderl_links:link()] | {error, not_running | connect_all}.
links() ->
    running(fun() ->
        sderl_links:list(sderl_dir:needs(), sderl_clock:now_ms(), sderl_options:value(link_idle_ms))
    end).

-doc "Waits until the own groups are ready, at most five seconds each. For published programs; see `await/2`.".
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
Registers a process under a name of a group. When it says `yes`, every member that counts has the
name. `{no, _}` always means that nothing was applied.

A pid has at most one name in a group, and may have names in several groups. The pid may live on any
node; on a node that is no member the coordinator must be able to link to it, and a member must count
(one that has been set aside counts again when it has caught up).

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
Registers a process under a name, in place of whoever has it.

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
The process of a name. A member reads its own table, and a node that follows the group its copy
(`follow/1`). For any other group of other nodes its known members are asked, at most three and five
seconds in all. `undefined` if there is none, or nobody to ask.
""".
-spec whereis_name(group(), name()) -> pid() | undefined.
whereis_name(Group, Name) -> sderl_read:whereis(Group, Name).

-doc """
Asks one node, and links to it, also when the name is not found. A free node answers from its own
names whatever the group; a node outside the group says `undefined`.
""".
-spec whereis_name(node(), group(), name()) -> pid() | undefined.
whereis_name(Node, Group, Name) when is_atom(Node) -> sderl_read:whereis_at(Node, Group, Name);
whereis_name(Node, _, _) -> misuse(whereis_name, 3, 1, Node, "the name of a node").

-doc """
The process of a name, read through the log of the group: every write that was answered before the
call is seen, whichever node made it. It costs what a write does, while `whereis_name/2` reads the
caller's own table, which may be behind. In a group that decides by majority this holds whatever
happens to nodes and links; in any other it holds within one side of a split.

A node that is no member has a member read: its known members are asked, at most three.

Errors: `no_majority` (this side of the group has no majority of its members, so nobody here can
know), `timeout` (no answer within `write_timeout_ms`, or the coordinator went; ask again),
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
What a member, or a node that follows the group (`follow/1`), knows of a name: `pid`, `meta`
(`undefined` if none was given), `home` (the member that answers for it) and `token`, which grows with
every registration of the name within the group's history and so fences off holders that were
replaced. `undefined` if there is no such name.
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
Sends a message to the process of a name: its pid, or `{badarg, {Group, Name, Msg}}`. For a group of
other nodes a member of it delivers.
""".
-spec send(group(), name(), term()) -> pid() | {badarg, {group(), name(), term()}}.
send(Group, Name, Msg) -> sent(sderl_read:send(Group, Name, Msg), Group, Name, Msg).

-doc "As `send/3`, over the given node, which is linked (see `whereis_name/3`) and delivers.".
-spec send(node(), group(), name(), term()) -> pid() | {badarg, {group(), name(), term()}}.
send(Node, Group, Name, Msg) when is_atom(Node) ->
    sent(sderl_read:send_at(Node, Group, Name, Msg), Group, Name, Msg);
send(Node, _, _, _) -> misuse(send, 4, 1, Node, "the name of a node").

sent(undefined, Group, Name, Msg) -> {badarg, {Group, Name, Msg}};
sent(Pid, _, _, _) -> Pid.

-doc """
The names of a group (`{s_group, Group}`), as `[{Group, Name}]`, or of all groups of a node
(`{node, Node}`, with `undefined` for the free names). `[]` if nobody can be asked: `lookup/2` tells
a group that this node is not in from one without names.
""".
-spec registered_names({s_group, group()} | {node, node()}) ->
    [{group(), name()}] | {error, not_running | connect_all}.
registered_names({s_group, Group}) ->
    running(fun() -> [{Group, N} || N <- sderl_read:names_of(Group)] end);
registered_names({node, Node}) when is_atom(Node) ->
    running(fun() -> [{G, N} || {G, Ns} <- sderl_read:names_at(Node), N <- Ns] end);
registered_names(Other) -> misuse(registered_names, 1, 1, Other, "{s_group, Group} or {node, Node}").

%% ---------------------------------------------------------------- via

-doc """
For `{via, s_group, {Group, Name}}`. A start that ends as `{error, {already_started, undefined}}`
was refused for another reason than a name that is taken: the log has it, as the event
`via_refused`. Where the group decides by majority and this side has none, it exits with
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
register_name(Other, _) -> misuse(register_name, 2, 1, Other, "{Group, Name}").

-doc "For `{via, s_group, {Group, Name}}`.".
-spec unregister_name({group(), name()}) -> ok.
unregister_name({Group, Name}) ->
    _ = unregister_name(Group, Name),
    ok;
unregister_name(Other) -> misuse(unregister_name, 1, 1, Other, "{Group, Name}").

-doc "For `{via, s_group, {Group, Name}}`.".
-spec whereis_name({group(), name()}) -> pid() | undefined.
whereis_name({Group, Name}) -> whereis_name(Group, Name);
whereis_name(Other) -> misuse(whereis_name, 1, 1, Other, "{Group, Name}").

-doc "For `{via, s_group, {Group, Name}}`. Exits `{badarg, {{Group, Name}, Msg}}` if there is no such name.".
-spec send({group(), name()}, term()) -> pid().
send({Group, Name}, Msg) ->
    case send(Group, Name, Msg) of
        Pid when is_pid(Pid) -> Pid;
        {badarg, _} -> exit({badarg, {{Group, Name}, Msg}})
    end;
send(Other, _) -> misuse(send, 2, 1, Other, "{Group, Name}").

%% ---------------------------------------------------------------- events

-doc "`subscribe/2` to both kinds of events.".
-spec subscribe(group() | all) -> {ok, reference()} | {error, atom()}.
subscribe(Group) -> subscribe(Group, [group, name]).

-doc """
Sends the calling process `{s_group_event, Ref, Group, Event}` for what happens in a group (or in
`all`) on this node: `group` events (members, coordinator, deletion) and `name` events. The events are
listed with `t:sderl_subs:event/0`.
""".
-spec subscribe(group() | all, [group | name, ...]) -> {ok, reference()} | {error, atom()}.
subscribe(Group, Kinds) ->
    case sderl_check:proper_list(Kinds) andalso Kinds =/= []
        andalso Kinds -- [group, name] =:= [] of
        true -> running(fun() -> sderl_subs:subscribe(Group, self(), Kinds) end);
        false -> misuse(subscribe, 2, 2, Kinds, "a list of group, name")
    end.

-doc "Ends a subscription.".
-spec unsubscribe(reference()) -> ok | {error, not_running}.
unsubscribe(Ref) when is_reference(Ref) -> sderl_subs:unsubscribe(Ref);
unsubscribe(Other) -> misuse(unsubscribe, 1, 1, Other, "the reference that subscribe gave").

-doc "Starts or stops `{nodeup, Node}` and `{nodedown, Node}` messages for nodes of the own groups.".
-spec monitor_nodes(boolean()) -> ok | {error, not_boolean | not_running | connect_all}.
monitor_nodes(Flag) when is_boolean(Flag) ->
    running(fun() -> sderl_subs:monitor_nodes(self(), Flag) end);
monitor_nodes(_) -> {error, not_boolean}.

%% ---------------------------------------------------------------- process groups

-doc """
Joins processes to a process group of an s_group. Each s_group is a scope of OTP's `m:pg`, so a process
group reaches the members of the s_group and no other node. Like `pg` it is eventually consistent, several
processes may join, and one may join several times.
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
The nodes that are in all of the given groups and have all of the given attributes, without the calling
one, sorted; among the nodes with a link if no group is given. As published, but that groups without a
common member give `[]`. `m:sderl_place` chooses by values, loads and distances too.
""".
-spec choose_nodes([{s_group, group()} | {attribute, term()}]) -> [node()] | {error, not_running | connect_all}.
choose_nodes(Constraints) ->
    Right = fun({s_group, _}) -> true; ({attribute, _}) -> true; (_) -> false end,
    case sderl_check:proper_list(Constraints) andalso lists:all(Right, Constraints) of
        true -> running(fun() -> sderl_place_published:choose(Constraints) end);
        false -> misuse(choose_nodes, 1, 1, Constraints, "a list of {s_group, Group} and {attribute, Attribute}")
    end.

-doc """
Gives nodes attributes, any terms; gives the nodes that have them now, sorted. A node that does not answer
within five seconds is left out. As published. Attributes with values: `m:sderl_attr`.
""".
-spec add_attribute([node()], Attributes :: [term()]) ->
    [node()] | {error, both_parameters_should_be_lists | not_running | connect_all}.
add_attribute(Nodes, Attributes) -> change_attributes(add, Nodes, Attributes, add_attribute).

-doc "Takes attributes away from nodes, those that are built in excepted; gives the nodes that have none of them now, sorted. As published.".
-spec remove_attribute([node()], Attributes :: [term()]) ->
    [node()] | {error, both_parameters_should_be_lists | not_running | connect_all}.
remove_attribute(Nodes, Attributes) -> change_attributes(remove, Nodes, Attributes, remove_attribute).

change_attributes(How, Nodes, Attributes, F) ->
    case is_list(Nodes) andalso is_list(Attributes) of
        false -> {error, both_parameters_should_be_lists};
        true ->
            ok = nodes_arg(Nodes, F, 2, 1),
            sderl_check:proper_list(Attributes) orelse misuse(F, 2, 2, Attributes, "a list of attributes"),
            running(fun() -> sderl_place_published:change(How, Nodes, Attributes) end)
    end.

-doc "The attributes that were given to the calling node, without the built-in ones, sorted. `sderl_attr:all/0` tells more.".
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
                {error, {bad_resolver, Term, Expected}} -> misuse(F, A, I, Term, Expected)
            end;
        [Key | _] -> misuse(F, A, I, Key, ?OPTIONS)
    end;
options_arg(Other, F, A, I) -> misuse(F, A, I, Other, ?OPTIONS).

majority_lost_arg(Options, F, A, I) ->
    Asked = maps:get(majority_lost, Options, ignore),
    case sderl_check:is_majority_lost(Asked) of
        true -> Options;
        false -> misuse(F, A, I, Asked, "notify, exit or ignore as majority_lost")
    end.

nodes_arg(Nodes, F, A, I) ->
    case sderl_check:proper_list(Nodes) of
        false -> misuse(F, A, I, Nodes, "a list of names of nodes");
        true ->
            case [N || N <- Nodes, not is_atom(N)] of
                [] -> ok;
                [Bad | _] -> misuse(F, A, I, Bad, "the name of a node, an atom")
            end
    end.

pids_arg(Pid, _) when is_pid(Pid) -> ok;
pids_arg(Pids, F) ->
    case sderl_check:proper_list(Pids) andalso lists:all(fun is_pid/1, Pids) of
        true -> ok;
        false -> misuse(F, 3, 3, Pids, "a pid or a list of pids")
    end.

-spec misuse(atom(), arity(), pos_integer(), term(), iodata()) -> no_return().
misuse(F, A, I, Found, Expected) ->
    erlang:error({badarg, {?MODULE, F, A}, #{argument => I, found => Found, expected => Expected}}).

%% 80 random bits, as 16 characters that can be read aloud.
generated() ->
    Alphabet = "abcdefghjkmnpqrstuvwxyz023456789",
    Chars = [lists:nth(1 + B, Alphabet) || <<B:5>> <= rand:bytes(10)],
    Group = list_to_atom("s_group_" ++ Chars),
    case sderl_dir:is_running() andalso sderl_names:is_member(Group) of
        true -> generated();
        false -> Group
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_observed).
-moduledoc """
The questions of monitoring. A probe, a tracer, or a reader on another node sees the library through
this module, and through `m:s_group` as every program does.

No answer exposes a row or a table of the library, and none waits for a process. On a node where the
library does not run, a function may fail with `badarg`, `undef` or `noproc`, and callers expect
that.
""".

-export([groups/0, own_groups/0, other_groups/0, group_members/0]).
-export([count_names/0, name_bytes/0, names/2, more_names/1, pid/2]).
-export([traffic/0, describe_event/1, subscribe/1, message_tags/0, routed_calls/0]).
-export_type([group/0, page/0, traffic/0, counts/0, edge/0]).

-doc "The name of an s_group; `undefined` is the free namespace of a node that is in none.".
-type group() :: term().

-doc "Some names of a group with their processes, and where the next ones begin.".
-type page() :: {[{Name :: term(), pid()}], More :: term()} | '$end_of_table'.

-doc "Registrations, unregistrations and failed registrations that clients on this node asked for.".
-type counts() :: {non_neg_integer(), non_neg_integer(), non_neg_integer()}.

-doc "Routed messages from processes of one node that were passed on from here to another.".
-type edge() :: {From :: node(), Next :: node(), Messages :: non_neg_integer()}.

-doc """
The library's counts since its start, which never become smaller. `kinds` has the sent messages and
bytes by purpose. Of `counters`, `delivered`, `forwarded` and `undelivered` are routed messages, the
others requests of clients on this node.
""".
-type traffic() :: #{
    kinds := #{atom() => {Messages :: non_neg_integer(), Bytes :: non_neg_integer()}},
    counters := #{
        registrations := non_neg_integer(),
        unregistrations := non_neg_integer(),
        failed_registrations := non_neg_integer(),
        delivered := non_neg_integer(),
        forwarded := non_neg_integer(),
        undelivered := non_neg_integer()
    },
    groups := [{group(), counts()}],
    edges := [edge()]
}.

-doc "The s_groups that this node is in, with their members and their coordinator.".
-spec groups() -> [{group(), [node()], Coordinator :: node() | undefined}].
groups() -> sderl_dir:coordinated().

-doc "Every group whose names this node has, the free namespace included.".
-spec own_groups() -> [group()].
own_groups() -> sderl_dir:groups().

-doc "The s_groups of other nodes that this node has heard of.".
-spec other_groups() -> [{group(), [node()]}].
other_groups() -> sderl_dir:known().

-doc "The s_groups that this node is in, in the order of terms, then those that it has heard of.".
-spec group_members() -> [{group(), [node()]}].
group_members() -> lists:sort(sderl_dir:named_memberships()) ++ sderl_dir:known().

-doc "How many names this node has, of all its groups.".
-spec count_names() -> non_neg_integer().
count_names() ->
    case sderl_dir:is_running() of
        true -> sderl_names:size();
        false -> 0
    end.

-doc "The memory of this node's names, and of its copies of those of groups that it follows.".
-spec name_bytes() -> non_neg_integer().
name_bytes() ->
    case sderl_dir:is_running() of
        true -> (sderl_names:words() + sderl_copies:words()) * erlang:system_info(wordsize);
        false -> 0
    end.

-doc "Names of an own group, in no order, at most so many at once.".
-spec names(group(), pos_integer()) -> page().
names(Group, Most) -> sderl_names:names(Group, Most).

-doc "The next ones.".
-spec more_names(More :: term()) -> page().
more_names(More) -> sderl_names:more_names(More).

-doc "The process of a name of an own group.".
-spec pid(group(), Name :: term()) -> pid() | none.
pid(Group, Name) -> sderl_names:pid(Group, Name).

-doc "What the library has counted.".
-spec traffic() -> traffic().
traffic() -> sderl_traffic:sample().

-doc "The sentence for the report of an event.".
-spec describe_event(logger:report()) -> {io:format(), [term()]}.
describe_event(Report) -> sderl_event:format(Report).

-doc "A process of this node is told the events of all groups, until it ends.".
-spec subscribe(pid()) -> ok | {error, term()}.
subscribe(Pid) ->
    case sderl_subs:subscribe(all, Pid, [event]) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end.

-doc """
The first elements of the tuples that the library's processes send each other, by which a trace
recognises them.
""".
-spec message_tags() -> [atom()].
message_tags() ->
    [sderl, sderl_again, sderl_at, sderl_attr, sderl_await, sderl_await_live, sderl_conflict,
     sderl_dist, sderl_each, sderl_follow, sderl_free, sderl_greeted, sderl_heart, sderl_hello,
     sderl_known, sderl_link, sderl_many, sderl_op, sderl_pid_gone, sderl_place_go,
     sderl_place_started, sderl_recover, sderl_route, sderl_straight, sderl_stream, sderl_tell,
     sderl_to, sderl_watch].

-doc """
The functions by whose calls a trace session learns what becomes of routed messages, with match
specifications that give each call one of these messages:

| message | what happened |
|---|---|
| `{routed, Next, Where, What, Message}` | a process sends into a group or to a node, by `Next` |
| `{every_way, Where}` | a call is sent again, by every way there |
| `{passed, From, Next, Count}` | messages of a node (or of `none` that is known) are passed on |
| `{delivered, Count}` | messages came to their node |
| `{undelivered, Where, What, Why}` | a message could not be delivered |

The functions are private and others in another version; the messages stay.
""".
-spec routed_calls() -> [{mfa(), Specification :: [tuple()]}].
routed_calls() -> sderl_route_trace:calls().

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pg).
-moduledoc """
Process groups inside an s_group: names that many processes share, after OTP's `m:pg`.

Each s_group whose members use process groups has one `pg` scope, named after it, in which the
process groups are told apart by the s_group's uid too. A scope talks only to nodes that run the
same scope over visible links, and another s_group of that name has another uid, so a process group
reaches exactly as far as its s_group. Everything else is `pg`'s: membership is eventually
consistent, a process can join more than once, and dead processes leave by themselves.

```erlang
ok = sderl_pg:join(billing, workers, self()).
[Pid] = sderl_pg:members(billing, workers).
```

## Shape

This module holds no process. `m:sderl_pg_scope` keeps one scope running, replays what this
node joined when the scope's process dies (`pg` alone loses it), and is supervised by
`m:sderl_pg_sup`. The table is made by the supervisor above (`new/0`):

| row | for |
|---|---|
| `{{scope, Uid}, Group, Scope, Keeper}` | a scope of this node: the atom and the process that keeps it, `none` at first |
| `{{join, Uid, PgGroup, Pid}, Count}` | how often a process of this node joined |

A keeper that finds its row gone was dropped. The scope's atom is the one atom that the library
makes from data: a hash of the s_group's name, so that one that is deleted and created again and
again makes no more of them.

## Not promised

- The first use of an s_group's process groups on a node starts its scope there, and other
  nodes' processes show up a moment later, as whenever a `pg` scope starts.
- `join/3` and `leave/3` wait for the scope's process, which can wait for the link to a member
  that was stopped (`pg` sends to it like any process). `members/2` never waits once the
  scope runs. Other s_groups are not affected.
- Nodes started with `-hidden` take no part: `pg` ignores hidden links.
""".

-behaviour(sderl_part).

-export([new/0]).
-export([join/3, leave/3, members/2]).
-export([join/4, leave/4, members/3]).
-export([drop/1]).
-export([create_tables/0, handle_group_ended/1, handle_group_moved/3]).
-export([scope/1]).

-export_type([env/0, error/0]).

-define(TABLE, ?MODULE).
-define(ATTEMPTS, 100).

-doc """
Where membership is looked up. `is_member` and `uid` take the name of an s_group and tell
about this node; `hidden` says whether the node was started with `-hidden`.
""".
-type env() :: #{
    is_member := fun((Group :: term()) -> boolean()),
    uid := fun((Group :: term()) -> binary() | none),
    hidden := boolean()
}.

-doc """
`no_information_about_remote_group`: this node is no member of the s_group. `hidden_node`: it was
started with `-hidden`. `not_local`: a pid of another node, whose own node must join it.
`not_running`: the application is stopped.
""".
-type error() :: no_information_about_remote_group | hidden_node | not_local | not_running.

-doc "Makes the table. Called once by the process that shall own it, before `sderl_pg_sup` starts.".
-spec new() -> ets:table().
new() ->
    ets:new(?TABLE, [named_table, public, set, {read_concurrency, true}]).

-doc false.
-spec create_tables() -> ok.
create_tables() ->
    ?TABLE = new(),
    ok.

-doc """
Joins one or more processes of this node to a process group of an s_group.

Joining again counts: a process is listed as often as it joined. Source: `pg:join/3`.
""".
-spec join(Group :: term(), PgGroup :: term(), pid() | [pid()]) -> ok | {error, error()}.
join(Group, PgGroup, PidOrPids) ->
    join(Group, PgGroup, PidOrPids, env()).

-doc "As `join/3`, with the membership looked up elsewhere.".
-spec join(Group :: term(), PgGroup :: term(), pid() | [pid()], env()) -> ok | {error, error()}.
join(Group, PgGroup, PidOrPids, Env) ->
    maybe
        {ok, Pids} ?= local(PidOrPids),
        {ok, Uid} ?= scope_uid(Group, Env),
        ok ?= call(Group, Uid, {join, PgGroup, Pids}),
        still_member(Group, Uid, Env)
    end.

-doc """
Takes one or more processes of this node out of a process group, once each.

`not_joined` when none of them was in it. Source: `pg:leave/3`.
""".
-spec leave(Group :: term(), PgGroup :: term(), pid() | [pid()]) ->
    ok | not_joined | {error, error()}.
leave(Group, PgGroup, PidOrPids) ->
    leave(Group, PgGroup, PidOrPids, env()).

-doc "As `leave/3`, with the membership looked up elsewhere.".
-spec leave(Group :: term(), PgGroup :: term(), pid() | [pid()], env()) ->
    ok | not_joined | {error, error()}.
leave(Group, PgGroup, PidOrPids, Env) ->
    maybe
        {ok, Pids} ?= local(PidOrPids),
        {ok, Uid} ?= scope_uid(Group, Env),
        call(Group, Uid, {leave, PgGroup, Pids})
    end.

-doc "The processes of a process group on all members of the s_group, in no order.".
-spec members(Group :: term(), PgGroup :: term()) -> [pid()] | {error, error()}.
members(Group, PgGroup) ->
    members(Group, PgGroup, env()).

-doc "As `members/2`, with the membership looked up elsewhere.".
-spec members(Group :: term(), PgGroup :: term(), env()) -> [pid()] | {error, error()}.
members(Group, PgGroup, Env) ->
    maybe
        {ok, Uid} ?= scope_uid(Group, Env),
        {ok, Scope} ?= running(Group, Uid, Env),
        pg:get_members(Scope, {Uid, PgGroup})
    end.

-doc """
Ends the process groups of an s_group on this node, which has left it or deleted it.

Returns at once. A later `join/3`, after this node entered again, starts anew.
""".
-spec drop(Uid :: binary()) -> ok.
drop(Uid) ->
    case keeper(Uid) of
        {_Scope, Keeper} ->
            %% First the row: the scope of the next s_group of that name ends this one's.
            true = ets:delete(?TABLE, {scope, Uid}),
            gen_server:cast(Keeper, drop);
        none ->
            true = ets:delete(?TABLE, {scope, Uid}),
            ok
    end.

-doc false.
-spec handle_group_ended(Uid :: binary()) -> ok.
handle_group_ended(Uid) -> drop(Uid).

-doc """
The group goes on under another uid on this node, as a free namespace does that became part of an
older one: what joined stays joined.
""".
-spec handle_group_moved(Group :: term(), Old :: binary(), New :: binary()) -> ok.
handle_group_moved(Group, Old, New) ->
    case ets:match_object(?TABLE, {{join, Old, '_', '_'}, '_'}) of
        [] ->
            drop(Old);
        Joins ->
            true = ets:insert(?TABLE, [{{join, New, PgGroup, Pid}, Count}
                                       || {{join, _, PgGroup, Pid}, Count} <- Joins]),
            drop(Old),
            _ = sderl_pg_sup:ensure(Group, New, scope(Group)),
            ok
    end.

-doc "The name of the `pg` scope of s_groups with this name.".
-spec scope(Group :: term()) -> atom().
scope(Group) ->
    Hash = erlang:md5(term_to_binary({sderl_pg, 1, Group}, [{minor_version, 2}, deterministic])),
    binary_to_atom(<<"sderl_pg_", (binary:encode_hex(Hash, lowercase))/binary>>).

env() ->
    #{
        is_member => fun sderl_names:is_member/1,
        uid => fun sderl_dir:uid/1,
        hidden => init:get_argument(hidden) =/= error
    }.

local(Pid) when is_pid(Pid) ->
    local([Pid]);
local(Pids) when is_list(Pids) ->
    case lists:all(fun(Pid) -> node(Pid) =:= node() end, Pids) of
        true -> {ok, Pids};
        false -> {error, not_local}
    end.

scope_uid(_Group, #{hidden := true}) ->
    {error, hidden_node};
scope_uid(Group, #{is_member := IsMember, uid := Uid}) ->
    case IsMember(Group) andalso Uid(Group) of
        Found when is_binary(Found) -> {ok, Found};
        _ -> {error, no_information_about_remote_group}
    end.

%% This node may have left the s_group after the first check and before the keeper started; then
%% `drop/1` found no keeper to end.
still_member(Group, Uid, Env) ->
    case scope_uid(Group, Env) of
        {ok, Uid} ->
            ok;
        _ ->
            drop(Uid),
            {error, no_information_about_remote_group}
    end.

running(Group, Uid, Env) ->
    case keeper(Uid) of
        {Scope, _Keeper} ->
            {ok, Scope};
        none ->
            maybe
                ok ?= call(Group, Uid, started),
                ok ?= still_member(Group, Uid, Env),
                {ok, scope(Group)}
            end
    end.

keeper(Uid) ->
    case ets:whereis(?TABLE) of
        undefined ->
            none;
        _Table ->
            case ets:lookup(?TABLE, {scope, Uid}) of
                [{_Key, _Group, Scope, Keeper}] when is_pid(Keeper) -> {Scope, Keeper};
                _ -> none
            end
    end.

%% The row, and for a moment the supervisor too, may name a keeper that has died: it is being
%% restarted, or it was dropped and this node is a member again. Only a call that reached no
%% process is made again: joins count.
call(Group, Uid, Request) ->
    case keeper(Uid) of
        {_Scope, Keeper} ->
            case try_call(Keeper, Request) of
                noproc -> start_and_call(Group, Uid, Request, ?ATTEMPTS);
                Reply -> Reply
            end;
        none ->
            start_and_call(Group, Uid, Request, ?ATTEMPTS)
    end.

start_and_call(_Group, _Uid, _Request, 0) ->
    {error, not_running};
start_and_call(Group, Uid, Request, Attempts) ->
    maybe
        {ok, Keeper} ?= sderl_pg_sup:ensure(Group, Uid, scope(Group)),
        case try_call(Keeper, Request) of
            noproc ->
                timer:sleep(1),
                start_and_call(Group, Uid, Request, Attempts - 1);
            Reply ->
                Reply
        end
    end.

try_call(Keeper, Request) ->
    try
        gen_server:call(Keeper, Request, infinity)
    catch
        exit:{Reason, {gen_server, call, _}} when Reason =:= noproc; Reason =:= normal -> noproc
    end.

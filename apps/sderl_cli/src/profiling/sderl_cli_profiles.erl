%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_profiles).
-moduledoc """
Profiles of a running cluster as actions of the dashboard: who may begin, stop and delete them, and
what the audit log has of it. `m:sderl_prof_live` does the work.

A sampling needs the role operator. A recording needs the role admin, because it slows the nodes
down while it lasts, and its files have what processes send.
""".

-export([start/2, web/0, may/2, begin_/2, confirm/3, stop/2, delete/2]).
-export_type([asked/0]).

-type context() :: sderl_web_resource:context().
-type asked() :: #{on := map(), kind := sderl_prof_live_request:kind(), seconds := pos_integer(),
                   mib := pos_integer(), modules := [binary()]}.
-type error() :: {error, sderl_web_problem:code(), unicode:chardata()}.

-doc "Keeps profiles in a folder, of so many bytes at most, until this node ends.".
-spec start(file:filename(), MostBytes :: pos_integer()) -> ok | {error, unicode:chardata()}.
start(Dir, MostBytes) ->
    case sderl_prof_live:start(#{
        dir => Dir, most_bytes => MostBytes, connect => fun connect/1,
        may_load => fun() -> maps:get(inject, sderl_mon:config()) end, ended => fun told_end/1
    }) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok;
        {error, Why} -> {error, sderl_prof_live:format_error(Why)}
    end.

-doc "What the dashboard needs to show them.".
-spec web() -> #{atom() => term()}.
web() -> #{profile => live, resources => [sderl_cli_profiles_resource]}.

connect(Node) ->
    case sderl_mon_reach:connect(Node) of
        ok -> ok;
        {error, _, Why} -> {error, Why}
    end.

%% ---------------------------------------------------------------- what people do

-doc "Begins a profile; the audit log has it before.".
-spec begin_(asked(), context()) -> {ok, Id :: binary()} | error().
begin_(#{on := On, kind := Kind} = Asked, #{name := Name} = Context) ->
    Id = sderl_prof_live:new_id(),
    Args = maps:without([on], Asked),
    maybe
        ok ?= allowed(Kind, Context),
        {ok, Nodes} ?= sderl_actions:where(On),
        Request = Asked#{nodes => Nodes, who => Name},
        ok ?= done(sderl_prof_live:check(Request)),
        Where = [NodeId || {NodeId, _} <- Nodes],
        ok ?= noted(#{what => ~"action.profile", request => Id, result => begun, where => Where,
                      args => Args}, Context),
        ok ?= done(sderl_prof_live:begin_(Id, Request)),
        {ok, Id}
    else
        {error, _, _} = Error -> refused(~"action.profile", Id, Args#{on => On}, Error, Context)
    end.

-doc "Begins a recording whose cost is known.".
-spec confirm(Id :: binary(), Insists :: boolean(), context()) -> ok | error().
confirm(Id, Insists, Context) ->
    changed(~"profile.begin", Id, #{force => Insists}, Context, fun() ->
        sderl_prof_live:confirm(Id, Insists)
    end).

-doc "Ends a profile before its time.".
-spec stop(Id :: binary(), context()) -> ok | error().
stop(Id, Context) ->
    changed(~"profile.stop", Id, #{}, Context, fun() -> sderl_prof_live:stop(Id) end).

-doc "Deletes a profile that is over.".
-spec delete(Id :: binary(), context()) -> ok | error().
delete(Id, Context) ->
    changed(~"profile.delete", Id, #{}, Context, fun() -> sderl_prof_live:remove(Id) end).

%% It needs the role that it took to begin it.
changed(What, Id, Args, Context, Change) ->
    maybe
        {ok, #{kind := Kind, nodes := Nodes}} ?= done(sderl_prof_live:find(Id)),
        ok ?= allowed(Kind, Context),
        ok ?= done(Change()),
        sderl_actions_audit:tell(#{who => who(Context), what => What, request => Id, args => Args,
                                   where => Nodes, result => ok})
    else
        {error, _, _} = Error -> refused(What, Id, Args, Error, Context)
    end.

%% ---------------------------------------------------------------- rights and the audit log

-doc "Whether somebody may begin one of this kind.".
-spec may(sderl_prof_live_request:kind(), context()) -> boolean().
may(Kind, Context) -> allowed(Kind, Context) =:= ok.

allowed(_, #{writable := false}) ->
    {error, read_only,
     "profile: this dashboard is read-only; who starts it allows it with --write"};
allowed(Kind, #{role := Role}) ->
    Needs = role(Kind),
    case sderl_actions_catalogue:allows(Role, Needs) of
        true -> ok;
        false ->
            {error, forbidden, io_lib:format("~ts needs the role ~ts, and this is a ~ts",
                                             [Kind, Needs, Role])}
    end.

role(sampling) -> operator;
role(_) -> admin.

done({error, Why}) -> {error, code(Why), sderl_prof_live:format_error(Why)};
done(Fine) -> Fine.

code({request, _}) -> bad_request;
code(not_found) -> not_found;
code({folder, _, _}) -> unavailable;
code({running, _}) -> unavailable;
code(_) -> conflict.

noted(Entry, Context) ->
    case sderl_actions_audit:note(Entry#{who => who(Context)}) of
        ok -> ok;
        {error, _} ->
            {error, unavailable, "the audit log does not answer, and nothing is done that it does "
                                 "not say"}
    end.

refused(What, Id, Args, {error, _, Why} = Error, Context) ->
    ok = sderl_actions_audit:tell(#{who => who(Context), what => What, request => Id, args => Args,
                                    result => refused, detail => Why}),
    Error.

who(#{name := Name, token := Id, role := Role, from := From}) ->
    #{kind => token, token => Id, name => Name, from => From, role => Role}.

told_end(#{id := Id, who := Name, nodes := Nodes, kind := Kind, at := At, ended_at := End} = One) ->
    sderl_actions_audit:tell(#{
        who => #{kind => token, name => Name}, what => ~"action.profile", request => Id,
        where => Nodes, args => #{kind => Kind}, result => result(One), detail => detail(One),
        ms => max(0, End - At)
    }).

result(#{state := State, stopped := false}) when State =:= failed; State =:= lost -> failed;
result(#{stopped := true}) -> stopped;
result(#{problems := [_ | _]}) -> partly;
result(_) -> ok.

detail(#{why := Why}) when is_binary(Why) -> Why;
detail(#{nodes := Nodes, problems := Problems}) ->
    All = length(Nodes),
    io_lib:format("~b of ~b nodes profiled", [max(0, All - length(Problems)), All]).

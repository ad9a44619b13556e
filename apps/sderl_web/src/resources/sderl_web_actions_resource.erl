%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_actions_resource).
-moduledoc """
Actions on nodes and the audit log under `/api/v1` (`m:sderl_actions`, `m:sderl_actions_audit`).

Each action needs a role of its own, which `m:sderl_actions` checks and tells the audit log. On a
dashboard that is read-only everybody is a viewer.
""".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, object/2, map/1, list/1, text/0, whole/0, flag/0, any/0,
                           word/1, null_or/1, ref/1]).
-import(sderl_web_json, [null/1]).

-define(TEXT, 255).
-define(MOST, 9_007_199_254_740_991).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    Texts = [{Name, Key, {text, ?TEXT}, none}
             || {Name, Key} <- [{~"who", who}, {~"what", what}, {~"node", node},
                                {~"request", request}, {~"text", text}]],
    Request = [~"requests", {~"id", id, {text, 64}, required}],
    [
     #{op => actions, method => get, path => [~"actions"], role => viewer,
       summary => ~"What may be done on nodes, and the role that the token has here",
       answer => {200, object(#{actions => list(map(any())),
                                role => word(sderl_web_token:roles())})}},
     #{op => act, method => post, path => [~"actions"], role => viewer, own_rights => true,
       summary => ~"Begins an action on one node, some, a group or a family",
       body => [{~"action", action, {text, ?TEXT}, required},
                {~"on", on,
                 {checked, fun is_object/1, "an object with node, nodes, group or family"},
                 required},
                {~"args", args, {checked, fun is_object/1, "an object"}, #{}}],
       creates => true, problems => [not_found],
       answer => {201, object(#{id => text()})}},
     #{op => requests, method => get, path => [~"requests"], role => viewer,
       summary => ~"Requests of actions that the role may begin: those that run or ended lately",
       answer => {200, object(#{requests => list(map(any()))})}},
     #{op => request, method => get, path => Request, role => viewer,
       summary => ~"A request with what its nodes say; it needs the role of its action",
       answer => {200, map(any())}},
     #{op => stop_request, method => post, path => Request ++ [~"stop"], role => operator,
       own_rights => true, problems => [conflict], summary => ~"Ends a request",
       answer => {200, object(#{ok => flag()})}},
     #{op => audit, method => get, path => [~"audit"], role => operator,
       summary => ~"Who did what, the newest first",
       query => Texts ++ [
           {~"result", result, {word, sderl_actions_audit_record:results()}, none},
           {~"from", from, time, none}, {~"to", to, time, none},
           {~"before", before, {whole, 0, ?MOST}, none},
           {~"after", 'after', {whole, 0, ?MOST}, none}
       ],
       pages => {500, 100},
       answer => {200, object(#{
           entries => list(ref(~"AuditEntry")), more => flag(), damaged => whole(),
           oldest => null_or(whole()),
           lost => whole(), waiting => whole(), problem => null_or(text()),
           unread => null_or(text()),
           next => null_or(text())
       })}}
    ].

is_object(Given) when is_map(Given) -> {ok, Given};
is_object(_) -> {error, "it is an object"}.

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    #{~"AuditEntry" => object(#{
        seq => whole(), at => text(), request => text(),
        who => object(#{kind => text(), name => text()},
                      #{token => text(), role => text(), from => text()}),
        what => text(), where => list(text()), args => any(),
        result => word(sderl_actions_audit_record:results()), detail => text(),
        ms => null_or(whole())
    }, #{where_total => whole()})}.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(actions, _, Context) ->
    #{role := Role} = who(Context),
    {ok, #{actions => sderl_actions:actions(), role => Role}};
answer(act, Args, Context) ->
    case sderl_actions:start(#{atom_to_binary(Key) => Value || Key := Value <- Args},
                             who(Context)) of
        {ok, Id} -> {ok, #{id => Id}, #{location => [~"requests/", Id]}};
        {error, Code, Why} -> {error, Code, Why}
    end;
answer(requests, _, Context) ->
    {ok, {json, sderl_actions:requests(who(Context))}};
answer(request, #{id := Id}, Context) ->
    case sderl_actions:request(Id, who(Context)) of
        {ok, Json} -> {ok, {json, Json}};
        {error, Code, Why} -> {error, Code, Why}
    end;
answer(stop_request, #{id := Id}, Context) ->
    case sderl_actions:stop(Id, who(Context)) of
        ok -> {ok, #{ok => true}};
        {error, Code, Why} -> {error, Code, Why}
    end;
answer(audit, #{limit := Limit} = Args, _) ->
    Filter = case Args of
        #{cursor := Seq} when is_integer(Seq) -> (maps:remove(cursor, Args))#{before => Seq};
        #{} -> maps:remove(cursor, Args)
    end,
    case sderl_actions_audit:list(maps:remove(limit, Filter), Limit) of
        {ok, #{entries := Entries, more := More} = Found} ->
            Info = maps:with([lost, waiting, problem], sderl_actions_audit:info()),
            Shown = maps:map(fun(_, Value) -> null(Value) end, maps:merge(Info, Found)),
            {ok, Shown, #{next => case More of
                true -> maps:get(~"seq", lists:last(Entries));
                false -> none
            end}};
        {error, unavailable} ->
            {error, unavailable, "the audit log does not run: ask again"}
    end.

who(#{name := Name, token := Id, role := Role, from := From, writable := Writable}) ->
    #{kind => token, token => Id, name => Name, from => From,
      role => case Writable of true -> Role; false -> viewer end}.

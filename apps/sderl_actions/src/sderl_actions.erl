%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions).
-moduledoc """
Looks at the nodes that `sderl_mon` watches on this monitoring node, and acts on them: actions by
name ([Actions](actions.md#what-there-is)), on one node, some, a group or a family, as requests that
are listed, can be stopped, and end when nobody attends them.

Arguments come from people and other programs, and are checked: `start/2` takes a map with texts as
keys. The caller is responsible for the identity and the role in `t:who/0`.
""".

-export([actions/0, where/1, start/2, request/2, requests/1, stop/2, await/2]).
-export_type([who/0, error/0]).

-import(sderl_mon_text, [text/2]).

-type who() :: #{kind := token | cli | system, name := binary(), token => binary(),
                 role := sderl_actions_catalogue:role(), from => binary()}.

-type error() :: {error, bad_request | forbidden | not_found | conflict | unavailable,
                  unicode:chardata()}.

-define(MOST_NODES, 2000).

-doc "The actions that this node offers.".
-spec actions() -> [map()].
actions() ->
    [sderl_actions_catalogue:shown(Action)
     || #{kind := Kind} = Action <- sderl_actions_catalogue:all(),
        Kind =/= expression orelse sderl_actions_config:allows_expressions()].

-doc """
Begins a request: `action` is the action's name, `on` says where (`#{~"node" => Id}`, `nodes`,
`group` or `family`, the part of a node's name before the number), `args` are its arguments. Returns
the id of the request.
""".
-spec start(#{binary() => term()}, who()) -> {ok, binary()} | error().
start(Given, Who) ->
    case checked(Given, Who) of
        {ok, Asked, Task} ->
            case sderl_actions_requests:start(Asked, Task) of
                ok -> {ok, map_get(id, Asked)};
                {error, too_many} ->
                    refused(Given, Who, {error, unavailable, "32 requests run, which is the most: "
                                                             "stop one, or wait"});
                {error, no_audit} ->
                    {error, unavailable, "the audit log does not answer, and no action is begun "
                                         "that it cannot note"}
            end;
        {error, _, _} = Error -> refused(Given, Who, Error)
    end.

refused(Given, Who, {error, _, Why} = Error) ->
    _ = sderl_actions_audit:note(#{
        who => Who, what => refused_name(Given), result => refused, detail => Why,
        where => refused_nodes(Given),
        args => sderl_actions_secret:masked_args(maps:get(~"args", Given, #{}))}),
    Error.

refused_name(#{~"action" := Name}) when is_binary(Name) ->
    <<"action.", (sderl_mon_text:cut(Name, 50))/binary>>;
refused_name(_) -> ~"action".

refused_nodes(#{~"on" := #{~"node" := Id}}) when is_binary(Id) -> [Id];
refused_nodes(_) -> [].

checked(Given, #{role := Role} = Who) ->
    maybe
        ok ?= fields(Given),
        {ok, #{name := Name, params := Params, kind := Kind, role := Needs} = Action} ?=
            action(Given),
        ok ?= allowed(Role, Needs, Kind, Name),
        {ok, Args} ?= arguments(Params, maps:get(~"args", Given, #{})),
        {ok, Nodes} ?= nodes_of(maps:get(~"on", Given, none)),
        Id = id(),
        {ok, #{id => Id, action => Action, who => Who, on => maps:get(~"on", Given),
               args => sderl_actions_secret:masked_args(maps:get(~"args", Given, #{})),
               nodes => [NodeId || {NodeId, _} <- Nodes]},
         #{nodes => Nodes, run => map_get(run, Action), args => Args#{request => Id},
           bounds => bounds(Action), inject => maps:get(inject, sderl_mon:config())}}
    end.

fields(Given) ->
    case maps:keys(maps:without([~"action", ~"on", ~"args"], Given)) of
        [] -> ok;
        [Key | _] ->
            bad("there is no field ~ts; there are action, on and args",
                [sderl_mon_text:cut(Key, 50)])
    end.

action(#{~"action" := Name}) when is_binary(Name) ->
    case sderl_actions_catalogue:find(Name) of
        {ok, Action} -> {ok, Action};
        error ->
            {error, not_found,
             text("there is no action ~ts; there are ~ts", [
                 sderl_mon_text:cut(Name, 50),
                 lists:join(", ", [Its || #{name := Its} <- sderl_actions_catalogue:all()])])}
    end;
action(_) -> bad("action is missing: it is the name of one", []).

allowed(Role, Needs, Kind, Name) ->
    case {sderl_actions_catalogue:allows(Role, Needs), Kind} of
        {false, _} ->
            {error, forbidden, text("~ts needs the role ~ts, and this is a ~ts",
                                    [Name, Needs, Role])};
        {true, expression} ->
            case sderl_actions_config:allows_expressions() of
                true -> ok;
                false ->
                    {error, forbidden, "expressions are switched off: who starts the monitor "
                                       "allows them with --allow-expressions"}
            end;
        _ -> ok
    end.

arguments(Params, #{} = Given) ->
    case sderl_actions_params:check(Params, Given) of
        {ok, Args} -> {ok, Args};
        {error, Why} -> {error, bad_request, ["args: ", Why]}
    end;
arguments(_, _) -> bad("args is an object", []).

bounds(#{ms := Ms, mb := Mb}) ->
    #{ms => Ms, words => Mb * 1_000_000 div erlang:system_info(wordsize),
      reductions => 2_000_000_000}.

bad(Format, Args) -> {error, bad_request, text(Format, Args)}.

%% Unique on all nodes and over restarts, and short enough to be typed.
id() ->
    Unique = [node(), erlang:system_time(), erlang:unique_integer(), self()],
    <<Digest:6/binary, _/binary>> = erlang:md5(term_to_binary(Unique)),
    string:lowercase(binary:encode_hex(Digest)).

%% ---------------------------------------------------------------- where

-doc "The nodes that `on` of a request names, with their ids.".
-spec where(term()) -> {ok, [{Id :: binary(), node()}, ...]} | error().
where(On) -> nodes_of(On).

nodes_of(#{~"node" := Id} = On) when map_size(On) =:= 1 -> each([Id]);
nodes_of(#{~"nodes" := [_ | _] = Ids} = On) when map_size(On) =:= 1 ->
    case length(lists:sublist(Ids, ?MOST_NODES + 1)) > ?MOST_NODES of
        true -> bad("nodes has at most ~b", [?MOST_NODES]);
        false -> each(lists:usort(Ids))
    end;
nodes_of(#{~"group" := Id} = On) when map_size(On) =:= 1, is_binary(Id) ->
    case sderl_mon_hub:now_topology() of
        #{groups := #{Id := #{nodes := [_ | _] = Ids}}} -> each(Ids);
        #{groups := #{Id := _}} -> bad("the group ~ts has no nodes", [Id]);
        _ -> unknown(unknown_group, Id)
    end;
nodes_of(#{~"family" := Family} = On) when map_size(On) =:= 1, is_binary(Family) ->
    case [{Id, Node} || Node := _ <- sderl_mon_master:nodes(), Id <- [atom_to_binary(Node)],
                        sderl_mon_types:family(Id) =:= Family] of
        [] ->
            {error, not_found,
             text("no node is of the family ~ts; web is that of web12@host and web-12@host",
                  [sderl_mon_text:cut(Family, 255)])};
        Nodes -> {ok, lists:sort(Nodes)}
    end;
nodes_of(_) -> bad("on is one of {\"node\": ID}, {\"nodes\": [ID, ...]}, {\"group\": ID} and "
                   "{\"family\": NAME}", []).

each(Ids) -> each(Ids, []).

each([], Found) -> {ok, lists:reverse(Found)};
each([Id | Rest], Found) when is_binary(Id) ->
    case sderl_mon_master:node_of(Id) of
        {ok, Node, _} -> each(Rest, [{Id, Node} | Found]);
        {error, unknown} -> unknown(unknown_node, Id)
    end;
each(_, _) -> bad("the id of a node is a text", []).

unknown(What, Id) ->
    {error, not_found, sderl_mon:format_error({What, sderl_mon_text:cut(Id, 255)})}.

%% ---------------------------------------------------------------- requests

-doc """
A request with the answers of its nodes, as JSON. Reading a request is attending it, and needs the
role of its action, because an answer contains what the action has shown.
""".
-spec request(binary(), who()) -> {ok, iodata()} | error().
request(Id, #{role := Role}) ->
    case sderl_actions_requests:get(Id, Role) of
        {ok, Json} -> {ok, Json};
        {error, not_found} -> no_request();
        {error, {needs, Needs}} ->
            {error, forbidden, text("to read this request needs the role ~ts, as its action does, "
                                    "and this is a ~ts", [Needs, Role])}
    end.

no_request() ->
    {error, not_found, "there is no such request: they are kept for ten minutes after their end"}.

-doc """
The requests that run or ended lately, as JSON, the latest first: those whose actions the role may
begin.
""".
-spec requests(who()) -> iodata().
requests(#{role := Role}) ->
    [~"{\"requests\":[", lists:join($,, sderl_actions_requests:list(Role)), ~"]}"].

-doc "Stops a request; an operator may stop any. A refusal is in the audit log, too.".
-spec stop(binary(), who()) -> ok | error().
stop(Id, #{role := Role} = Who) ->
    May = sderl_actions_catalogue:allows(Role, operator),
    case May andalso sderl_actions_requests:stop(Id, Who) of
        ok -> ok;
        false ->
            not_stopped(Id, Who, {error, forbidden,
                                  text("to stop a request needs the role operator, and this is a "
                                       "~ts", [Role])});
        {error, not_found} -> not_stopped(Id, Who, no_request());
        {error, not_running} -> not_stopped(Id, Who, {error, conflict, "the request is over"})
    end.

not_stopped(Id, Who, {error, _, Why} = Error) ->
    _ = sderl_actions_audit:note(#{who => Who, what => ~"request.stop", request => Id,
                                   result => refused, detail => Why}),
    Error.

-doc "The request, decoded, when it has ended or this many milliseconds have passed.".
-spec await(binary(), timeout()) -> map().
await(Id, Ms) -> await_until(Id, sderl_mon_clock:now_ms() + Ms).

await_until(Id, Until) ->
    {ok, Json} = sderl_actions_requests:get(Id, admin),
    case json:decode(iolist_to_binary(Json)) of
        #{~"state" := ~"running"} = Request ->
            case sderl_mon_clock:now_ms() >= Until of
                true -> Request;
                false ->
                    receive after 20 -> await_until(Id, Until) end
            end;
        #{} = Request -> Request
    end.

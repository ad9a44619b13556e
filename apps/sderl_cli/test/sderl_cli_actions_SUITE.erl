%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_actions_SUITE).

%% bin/sderl actions and audit against a dashboard that watches real nodes; and what is refused over
%% HTTP.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(SOON, 120_000).
-define(TOKEN, "token-of-the-test").

suite() -> [{timetrap, {minutes, 5}}].

all() -> [used, on_many, read_only].

start(Writable) ->
    {ok, Fleet} = sderl_fleet:start(#{tag => "", families => [
        #{name => family(), count => 3, apps => [sderl]},
        #{name => "m" ++ family(), count => 1, hidden => true}]}),
    [W1, W2, W3, M] = sderl_fleet:nodes(Fleet),
    Call = fun(Node, Module, F, A) -> sderl_fleet:call(Fleet, Node, Module, F, A, ?SOON) end,
    {ok, shop, _} = Call(W1, s_group, new_s_group, [shop, [W1, W2]]),
    ok = Call(M, application, set_env, [[
        {sderl_mon, [{config, #{monitors => [M], seeds => [W1, W3]}}]},
        {sderl_web, [{port, 0}, {token, <<?TOKEN>>}, {writable, Writable}]}]]),
    {ok, _} = Call(M, application, ensure_all_started, [sderl_web]),
    {ok, #{link := Link}} = Call(M, sderl_web, address, []),
    ok = sderl_fleet:await(fun() ->
        case Call(M, sderl_mon_hub, now_topology, []) of
            #{groups := #{~"shop" := #{nodes := [_, _]}}, nodes := Nodes} ->
                Up = [Node || Node := #{status := up} <- Nodes],
                length([Node || <<"w", _/binary>> = Node <- Up]) =:= 3 orelse Up;
            Other -> Other
        end
    end, ?SOON),
    {Fleet, W1, unicode:characters_to_list(Link)}.

%% Of this run alone, and their number is the last of their names.
family() -> "w" ++ [Digit - $0 + $a || Digit <- os:getpid()].

text({help, Text}) -> unicode:characters_to_binary(Text);
text({usage, Text}) -> unicode:characters_to_binary(Text);
text({error, Text}) -> unicode:characters_to_binary(Text).

has(Part, Result) ->
    Text = text(Result),
    ?assertNotEqual({nomatch, Text}, {binary:match(Text, iolist_to_binary(Part)), Text}),
    Result.

used(_) ->
    {Fleet, W1, Link} = start(true),
    Node = atom_to_list(W1),
    Do = fun(Args) -> sderl_cli_actions:run(Args ++ ["--url", Link]) end,
    On = fun(Args) -> Do(Args ++ ["--node", Node]) end,
    {help, _} = has(~"Your role is admin", Do(["list"])),
    {help, _} = has(~"code_server", On(["explore", "processes", "filter=code_server"])),
    {help, _} = has(~"processes: 1", On(["run", "garbage_collect", "pid=code_server"])),
    {usage, _} = has(~"does not only look", On(["explore", "garbage_collect"])),
    {usage, _} = has(~"where? say one of", Do(["explore", "processes"])),
    {usage, _} = has(~"there is no action nothing", On(["run", "nothing"])),
    {usage, _} = has(~"limit cannot be", On(["explore", "processes", "limit=x"])),
    {usage, _} = has(~"is no KEY=VALUE", On(["explore", "processes", "limit"])),
    {error, _} = has(~"from 1 to 200", On(["explore", "processes", "limit=1000"])),
    {error, _} = has(~"no field colour", On(["explore", "processes", "colour=red"])),
    {error, _} = has(~"1 of 1 nodes did not do it", On(["explore", "process", "pid=nobody"])),
    %% An action that is switched off does not exist.
    {usage, _} = has(~"there is no action expression", On(["run", "expression", "text=1 + 1"])),
    %% On all nodes of a group, as JSON.
    {help, Json} = Do(["explore", "old_code", "--group", "shop", "--json"]),
    #{~"nodes" := Nodes, ~"id" := Id, ~"state" := ~"done"} = json:decode(iolist_to_binary(Json)),
    ?assertEqual(2, map_size(Nodes)),
    {help, _} = has(Id, Do(["requests"])),
    {help, _} = has(~"old_code", Do(["show", binary_to_list(Id)])),
    {error, _} = has(~"the request is over", Do(["stop", binary_to_list(Id)])),
    {error, _} = has(~"no such request", Do(["show", "none"])),
    {help, Audit} = sderl_cli_audit:run(["--what", "old_code", "--url", Link]),
    ?assertMatch({_, _}, binary:match(iolist_to_binary(Audit), ~"2 of 2 nodes done")),
    refused(Link),
    ok = sderl_fleet:stop(Fleet).

%% Actions that read, act and change settings, each on a family and on a group with some of its
%% nodes: exactly those nodes.
on_many(_) ->
    {Fleet, W1, Link} = start(true),
    [W1, W2, W3, _] = sderl_fleet:nodes(Fleet),
    Call = fun(Node, Module, F, A) -> sderl_fleet:call(Fleet, Node, Module, F, A, ?SOON) end,
    Colours = fun() -> [Call(W, application, get_env, [kernel, colour]) || W <- [W1, W2, W3]] end,
    [begin
        %% The result of each node, of one that did it.
        Do = fun(Args) ->
            {help, Json} = sderl_cli_actions:run(Args ++ Where ++ ["--json", "--url", Link]),
            #{~"id" := Id, ~"state" := ~"done", ~"nodes" := Said} =
                json:decode(iolist_to_binary(Json)),
            ?assertEqual(lists:sort([atom_to_binary(Node) || Node <- Nodes]),
                         lists:sort(maps:keys(Said))),
            {Id, [Result || _ := #{~"state" := ~"ok", ~"result" := Result} <- Said]}
        end,
        {_, Explored} = Do(["explore", "processes", "filter=code_server"]),
        ?assertEqual([1 || _ <- Nodes], [length(Found) || #{~"processes" := Found} <- Explored]),
        {_, Done} = Do(["run", "garbage_collect", "pid=code_server"]),
        ?assertEqual([1 || _ <- Nodes], [Count || #{~"processes" := Count} <- Done]),
        ?assertEqual([undefined, undefined, undefined], Colours()),
        {Change, Set} = Do(["run", "set_environment", "application=kernel", "parameter=colour",
                            "value=7", "create=true"]),
        ?assertEqual(length(Nodes), length(Set)),
        ?assertEqual([case lists:member(W, Nodes) of true -> {ok, 7}; false -> undefined end
                      || W <- [W1, W2, W3]], Colours()),
        {_, Undone} = Do(["run", "undo_environment", "change=" ++ binary_to_list(Change)]),
        ?assertEqual(length(Nodes), length(Undone)),
        ?assertEqual([undefined, undefined, undefined], Colours()),
        {help, Audit} = sderl_cli_audit:run(["--request", binary_to_list(Change), "--url", Link]),
        All = integer_to_list(length(Nodes)),
        has([All, " of ", All, " nodes done"], {help, Audit})
     end
     || {Where, Nodes} <- [{["--family", family()], [W1, W2, W3]},
                           {["--group", "shop"], [W1, W2]}]],
    ok = sderl_fleet:stop(Fleet).

%% Invalid bodies, wrong methods, and requests without a token.
refused(Link) ->
    [Url, _] = string:split(Link, "#"),
    {ok, _} = application:ensure_all_started(inets),
    Token = [{"authorization", "Bearer " ++ ?TOKEN}],
    Ask = fun(Method, Request) ->
        {ok, {{_, Status, _}, _, _}} = httpc:request(Method, Request, [{timeout, ?SOON}], []),
        Status
    end,
    Post = fun(Type, Body) -> Ask(post, {Url ++ "api/v1/actions", Token, Type, Body}) end,
    ?assertEqual(401, Ask(get, {Url ++ "api/v1/actions", []})),
    ?assertEqual(401, Ask(post, {Url ++ "api/v1/actions", [], "application/json", "{}"})),
    ?assertEqual(415, Post("text/plain", "{}")),
    ?assertEqual(413, Post("application/json", [$", binary:copy(~"x", 20_000), $"])),
    [?assertEqual({Body, 400}, {Body, Post("application/json", Body)})
     || Body <- ["", "{", "[]", "7", "{}", "{\"action\":7}", "{\"action\":\"processes\"}",
                 "{\"action\":\"processes\",\"on\":7}", "{\"action\":\"processes\",\"x\":1}",
                 "{\"action\":\"processes\",\"on\":{\"node\":7}}",
                 "{\"action\":\"processes\",\"on\":{\"node\":\"a\",\"group\":\"b\"}}",
                 "{\"action\":\"processes\",\"on\":{\"nodes\":[]}}",
                 "{\"action\":\"processes\",\"on\":{\"nodes\":[[[]]]}}",
                 "{\"action\":\"processes\",\"args\":7,\"on\":{\"nodes\":[\"a\"]}}"]],
    ?assertEqual(403, Post("application/json",
                           "{\"action\":\"expression\",\"on\":{\"node\":\"none\"}}")),
    [?assertEqual({Body, 404}, {Body, Post("application/json", Body)})
     || Body <- ["{\"action\":\"none\",\"on\":{\"node\":\"none\"}}",
                 "{\"action\":\"processes\",\"on\":{\"node\":\"none\"}}",
                 "{\"action\":\"processes\",\"on\":{\"family\":\"none\"}}",
                 "{\"action\":\"processes\",\"on\":{\"group\":\"none\"}}"]],
    ?assertEqual(400, Ask(get, {Url ++ "api/v1/audit?limit=0", Token})),
    ?assertEqual(400, Ask(get, {Url ++ "api/v1/audit?colour=red", Token})),
    ?assertEqual(404, Ask(get, {Url ++ "api/v1/requests/none", Token})).

%% Who may only look is told which role it needs, and that is in the audit log.
read_only(_) ->
    {Fleet, W1, Link} = start(false),
    Node = atom_to_list(W1),
    On = fun(Args) -> sderl_cli_actions:run(Args ++ ["--node", Node, "--url", Link]) end,
    {help, _} = has(~"code_server", On(["explore", "processes", "filter=code_server"])),
    {error, _} = has(~"needs the role operator", On(["run", "garbage_collect"])),
    {error, _} = has(~"needs the role operator", On(["explore", "process_state", "pid=init"])),
    {error, _} = has(~"needs the role admin",
                     On(["run", "set_environment", "application=kernel", "parameter=password",
                         "value=\"geheim\""])),
    {help, Audit} = sderl_cli_audit:run(["--result", "refused", "--url", Link]),
    Text = iolist_to_binary(Audit),
    ?assertMatch({_, _}, binary:match(Text, ~"action.garbage_collect")),
    ?assertEqual(nomatch, binary:match(Text, ~"geheim")),
    ok = sderl_fleet:stop(Fleet).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_SUITE).

%% Actions on real nodes, which run plain OTP and get what they need from the monitoring node.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(SOON, 120_000).
-define(WHO(Role), #{kind => token, name => ~"anna", role => Role}).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [looks, cookies, acts, most, changes, ends, leaves_nothing, plugins, plugin_versions].

init_per_testcase(_, Config) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [
        #{name => s, count => 3, connect_all => true, paths => []},
        #{name => m, count => 1, hidden => true}]}),
    [S1, S2, S3, M] = sderl_fleet:nodes(Fleet),
    [true = call(Fleet, S, net_kernel, connect_node, [S1]) || S <- [S2, S3]],
    Dir = filename:join(proplists:get_value(priv_dir, Config), sderl_fleet_id(M)),
    ok = call(Fleet, M, application, set_env, [[
        {sderl_mon, [{config, #{monitors => [M], seeds => [S1], inject => true}}]},
        {sderl_actions, [{state_dir, Dir}, {allow_expressions, true}, {unattended_s, 3600}]}]]),
    {ok, _} = call(Fleet, M, application, ensure_all_started, [sderl_actions]),
    await(fun() ->
        Seen = [Node || Node := #{status := up} <- map_get(nodes, call(Fleet, M, sderl_mon, status,
                                                                       []))],
        lists:sort(Seen) =:= lists:sort([S1, S2, S3]) orelse Seen
    end),
    [{fleet, Fleet}, {nodes, [S1, S2, S3]}, {monitor, M} | Config].

sderl_fleet_id(Node) -> atom_to_list(Node).

end_per_testcase(_, Config) ->
    ok = sderl_fleet:stop(proplists:get_value(fleet, Config)).

%% ---------------------------------------------------------------- helpers

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?SOON).

await(Fun) ->
    case sderl_fleet:await(Fun, ?SOON) of
        ok -> ok;
        {error, {timeout, Last}} -> ct:fail("still ~0tp", [Last])
    end.

on(Config, F, A) ->
    call(proplists:get_value(fleet, Config), proplists:get_value(monitor, Config), sderl_actions, F,
         A).

start(Config, Action, On, Args) -> start(Config, Action, On, Args, admin).

start(Config, Action, On, Args, Role) ->
    on(Config, start, [#{~"action" => Action, ~"on" => On, ~"args" => Args}, ?WHO(Role)]).

%% The request when it has ended.
ended(Config, Action, On, Args) ->
    {ok, Id} = start(Config, Action, On, Args),
    ended(Config, Id).

ended(Config, Id) ->
    case on(Config, await, [Id, ?SOON]) of
        #{~"state" := ~"running"} = Request -> ct:fail("runs on: ~0tp", [Request]);
        Request -> Request
    end.

%% What one node says.
result(Config, Action, Node, Args) ->
    Id = atom_to_binary(Node),
    case ended(Config, Action, #{~"node" => Id}, Args) of
        #{~"nodes" := #{Id := #{~"state" := ~"ok", ~"result" := Result}}} -> Result;
        #{~"nodes" := #{Id := #{~"state" := State, ~"error" := Why}}} -> {State, Why}
    end.

state(Config, Node, Request) ->
    Id = atom_to_binary(Node),
    #{~"nodes" := #{Id := #{~"state" := State, ~"error" := Why}}} = ended(Config, Request),
    {State, Why}.

says(Part, {_, Text}) -> ?assertNotEqual({nomatch, Text}, {binary:match(Text, Part), Text}).

audit(Config, Filter) ->
    {ok, #{entries := Entries}} =
        call(proplists:get_value(fleet, Config), proplists:get_value(monitor, Config),
             sderl_actions_audit, list, [Filter, 500]),
    Entries.

%% Something is done on a node without code of ours there.
eval(Config, Node, Text) ->
    #{~"value" := _} = result(Config, ~"expression", Node, #{~"text" => Text}).

%% ---------------------------------------------------------------- cases

looks(Config) ->
    [S1, S2 | _] = proplists:get_value(nodes, Config),
    Do = fun(Action, Args) -> result(Config, Action, S1, Args) end,
    %% One that ends meanwhile is left out, and the memory of the others changes.
    #{~"processes" := [_ | _] = Most, ~"total" := Total} = Do(~"processes", #{~"limit" => 10}),
    ?assert(length(Most) =< 10 andalso Total > 20),
    %% It is no OTP process: it would keep a question for its state in its queue.
    eval(Config, S1, ~"register(quite_deaf, spawn(fun() -> receive stop -> ok end end))"),
    #{~"processes" := [#{~"name" := ~"quite_deaf", ~"pid" := Pid}], ~"found" := 1} =
        Do(~"processes", #{~"filter" => ~"QUITE_deaf"}),
    #{~"name" := ~"quite_deaf", ~"stack" := [_ | _]} = Do(~"process", #{~"pid" => Pid}),
    #{~"links" := [_ | _]} = Do(~"process", #{~"pid" => ~"kernel_sup"}),
    #{~"state" := State} = Do(~"process_state", #{~"pid" => ~"kernel_sup"}),
    ?assertMatch({_, _}, binary:match(State, ~"kernel_sup")),
    says(~"no process is registered", Do(~"process", #{~"pid" => ~"nobody_at_all"})),
    says(~"would not understand", Do(~"process_state", #{~"pid" => ~"quite_deaf"})),
    Big = ~"register(big, spawn(fun() -> L = lists:seq(1, 400000), receive _ -> L end end))",
    eval(Config, S1, Big),
    says(~"more than the 1 MB", Do(~"process_state", #{~"pid" => ~"big", ~"max_mb" => 1})),
    #{~"tables" := [#{~"table" := _} | _]} = Do(~"tables", #{}),
    #{~"tables" := [#{~"table" := Table, ~"owner_name" := ~"application_controller"}]} =
        Do(~"tables", #{~"filter" => ~"ac_tab"}),
    eval(Config, S1, ~"application:set_env(kernel, db_password, geheim)"),
    #{~"rows" := Rows} = Do(~"table_rows", #{~"table" => Table, ~"limit" => 100}),
    ?assertMatch([_ | _], [Row || Row <- Rows, string:find(Row, "db_password") =/= nomatch]),
    ?assertEqual([], [Row || Row <- Rows, string:find(Row, "geheim") =/= nomatch]),
    says(~"there is no table", Do(~"table_rows", #{~"table" => ~"none"})),
    #{~"applications" := Applications} = Do(~"applications", #{}),
    ?assertMatch([_], [1 || #{~"application" := ~"kernel", ~"running" := true} <- Applications]),
    eval(Config, S1, ~B|application:set_env(kernel, colour, {url, "http://u:p@h/"})|),
    #{~"environment" := Environment} = Do(~"environment", #{~"application" => ~"kernel"}),
    Value = fun(Key) ->
        hd([V || #{~"parameter" := Its, ~"value" := V} <- Environment, Its =:= Key])
    end,
    ?assertEqual(~"(hidden)", Value(~"db_password")),
    ?assertEqual(~"{url,\"http://(hidden)@h/\"}", Value(~"colour")),
    #{~"ports" := [_ | _]} = Do(~"ports", #{}),
    #{~"modules" := _} = Do(~"old_code", #{}),
    %% A family, and what is wrong with a request.
    [Name | _] = binary:split(atom_to_binary(S1), ~"@"),
    #{~"state" := ~"done", ~"nodes" := One} =
        ended(Config, ~"old_code", #{~"nodes" => [atom_to_binary(S) || S <- [S1, S2]]}, #{}),
    ?assertEqual(2, map_size(One)),
    {error, not_found, _} = start(Config, ~"old_code", #{~"family" => <<Name/binary, "x">>}, #{}),
    {error, not_found, _} = start(Config, ~"old_code", #{~"group" => ~"none"}, #{}),
    {error, not_found, _} = start(Config, ~"no_such", #{~"node" => ~"x"}, #{}),
    {error, bad_request, _} = start(Config, ~"old_code", #{}, #{}),
    {error, bad_request, _} = start(Config, ~"processes", #{~"node" => atom_to_binary(S1)},
                                    #{~"limit" => 1000}),
    {error, forbidden, _} = start(Config, ~"process_state", #{~"node" => atom_to_binary(S1)},
                                  #{~"pid" => ~"init"}, viewer),
    ?assertMatch([_ | _], audit(Config, #{result => refused, what => ~"process_state"})),
    %% What a role may not begin, it may not read either.
    {ok, Id} = start(Config, ~"process_state", #{~"node" => atom_to_binary(S1)},
                     #{~"pid" => ~"kernel_sup"}, operator),
    {error, forbidden, Needs} = on(Config, request, [Id, ?WHO(viewer)]),
    says(~"needs the role operator", {failed, iolist_to_binary(Needs)}),
    {ok, _} = on(Config, request, [Id, ?WHO(operator)]),
    Listed = fun(Role) ->
        #{~"requests" := Requests} =
            json:decode(iolist_to_binary(on(Config, requests, [?WHO(Role)]))),
        [Its || #{~"id" := Its} <- Requests, Its =:= Id]
    end,
    ?assertEqual([[], [Id], [Id]], [Listed(Role) || Role <- [viewer, operator, admin]]).

%% Who knows the cookie may do anything, whatever the role says.
cookies(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [S1 | _] = proplists:get_value(nodes, Config),
    Cookie = atom_to_binary(call(Fleet, S1, erlang, get_cookie, [])),
    Other = ~"A_COOKIE_FOR_ANOTHER_NODE",
    true = call(Fleet, S1, erlang, set_cookie, ['x@127.0.0.1', binary_to_atom(Other)]),
    Do = fun(Action, Args) -> result(Config, Action, S1, Args) end,
    #{~"tables" := [#{~"table" := Table}]} = Do(~"tables", #{~"filter" => ~"cookies"}),
    Rows = Do(~"table_rows", #{~"table" => Table}),
    State = Do(~"process_state", #{~"pid" => ~"auth"}),
    Texts = [~"erlang:get_cookie()", ~"{[[atom_to_list(erlang:get_cookie()), -1]]}",
             ~"io:format(\"it is ~ts.~n\", [erlang:get_cookie()])",
             ~"exit({no, atom_to_binary(erlang:get_cookie())})",
             ~"[_ | T] = atom_to_list(auth:get_cookie('x@127.0.0.1')), [$A | T]"],
    Values = [Do(~"expression", #{~"text" => Text}) || Text <- Texts],
    %% Each action reads the cookie, and so it is in the trace of who does that.
    {ok, Id} = start(Config, ~"trace_calls", #{~"node" => atom_to_binary(S1)},
                     #{~"module" => ~"auth", ~"function" => ~"get_cookie", ~"arguments" => true,
                       ~"results" => true, ~"count" => 3, ~"for_s" => 60}),
    Shown = fun() ->
        {ok, Json} = on(Config, request, [Id, ?WHO(operator)]),
        iolist_to_binary(Json)
    end,
    await(fun() ->
        _ = Do(~"old_code", #{}),
        #{~"state" := Now} = json:decode(Shown()),
        Now =:= ~"done" orelse Now
    end),
    ?assertMatch({_, _}, binary:match(Shown(), ~"get_cookie")),
    [begin
        Text = case Answer of {S, Why} -> <<S/binary, Why/binary>>; _ -> json:encode(Answer) end,
        ?assertEqual(nomatch, binary:match(iolist_to_binary(Text), [Cookie, Other]), Text),
        ?assertMatch({_, _}, binary:match(iolist_to_binary(Text), ~"(hidden)"), Text)
     end
     || Answer <- [Rows, State, json:decode(Shown()) | Values]].

%% More than may run are refused, and nobody notes that they begin.
most(Config) ->
    [S1 | _] = proplists:get_value(nodes, Config),
    On = #{~"node" => atom_to_binary(S1)},
    %% The node has no code for actions yet: all of these load it, and none ends another.
    First = [begin {ok, Id} = start(Config, ~"old_code", On, #{}), Id end || _ <- lists:seq(1, 24)],
    [?assertEqual({~"ok", null}, state(Config, S1, Id)) || Id <- First],
    Args = #{~"text" => ~"receive never -> ok end"},
    Ids = until_refused(64, Config, On, Args),
    ?assert(length(Ids) >= 32),
    ?assertMatch([#{~"result" := ~"refused", ~"detail" := <<"32 requests run", _/binary>>}],
                 audit(Config, #{result => refused})),
    ?assertEqual(length(Ids), length(audit(Config, #{result => 'begun'}))),
    [on(Config, stop, [Id, ?WHO(operator)]) || Id <- Ids],
    #{~"modules" := _} = result(Config, ~"old_code", S1, #{}).

%% On a busy machine one may be over before the last one begins.
until_refused(Left, Config, On, Args) when Left > 0 ->
    case start(Config, ~"expression", On, Args) of
        {ok, Id} -> [Id | until_refused(Left - 1, Config, On, Args)];
        {error, unavailable, _} -> []
    end.

acts(Config) ->
    [S1, S2, S3] = proplists:get_value(nodes, Config),
    Do = fun(Action, Args) -> result(Config, Action, S1, Args) end,
    #{~"processes" := 1, ~"before" := _, ~"after" := _} =
        Do(~"garbage_collect", #{~"pid" => ~"code_server"}),
    #{~"processes" := Many} = Do(~"garbage_collect", #{}),
    ?assert(Many > 20),
    #{~"before" := Before, ~"level" := ~"debug"} = Do(~"log_level", #{~"level" => ~"debug"}),
    #{~"before" := ~"debug"} = Do(~"log_level", #{~"level" => Before}),
    #{~"before" := ~"unset"} = Do(~"log_level", #{~"level" => ~"error", ~"module" => ~"lists"}),
    eval(Config, S1, ~"register(doomed, spawn(fun() -> receive _ -> ok end end))"),
    #{~"ended" := ~"killed"} = Do(~"stop_process", #{~"pid" => ~"doomed", ~"how" => ~"kill"}),
    #{~"purged" := []} = Do(~"soft_purge", #{}),
    ok = purges(Config),
    says(~"no link to", Do(~"close_link", #{~"to" => ~"x@y"})),
    #{~"closed" := _} = Do(~"close_link", #{~"to" => atom_to_binary(S2)}),
    %% Calls are told while they happen, on all nodes that are asked.
    {ok, Id} = start(Config, ~"trace_calls",
                     #{~"nodes" => [atom_to_binary(S) || S <- [S1, S3]]},
                     #{~"module" => ~"lists", ~"function" => ~"reverse", ~"arguments" => true,
                       ~"results" => true, ~"count" => 2, ~"for_s" => 60}),
    Nodes = fun() ->
        {ok, Json} = on(Config, request, [Id, ?WHO(admin)]),
        map_get(~"nodes", json:decode(iolist_to_binary(Json)))
    end,
    Text = ~"[lists:reverse([a, b, N]) || N <- [1, 2]]",
    await(fun() ->
        lists:foreach(fun(S) -> eval(Config, S, Text) end, [S1, S3]),
        States = [State || _ := #{~"state" := State} <- Nodes()],
        States =:= [~"ok", ~"ok"] orelse States
    end),
    [?assertMatch(#{~"result" := #{~"calls" := 2}, ~"said" := [#{~"text" := _} | _]}, Said)
     || _ := Said <- Nodes()],
    says(~"there is no module", Do(~"trace_calls", #{~"module" => ~"error", ~"function" => ~"x"})),
    %% What changed anything is there twice: before, and after.
    ?assertMatch([#{~"result" := ~"ok", ~"detail" := ~"2 of 2 nodes done"},
                  #{~"result" := ~"begun"}], audit(Config, #{request => Id})),
    #{~"value" := ~"3", ~"printed" := ~"so\n"} =
        Do(~"expression", #{~"text" => ~"io:format(\"so~n\"), 1 + 2."}),
    says(~"no expression", Do(~"expression", #{~"text" => ~"1 +"})),
    says(~"it failed", Do(~"expression", #{~"text" => ~"error(no)"})).

changes(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [S1, S2, _] = proplists:get_value(nodes, Config),
    Both = #{~"nodes" => [atom_to_binary(S) || S <- [S1, S2]]},
    Get = fun(S) -> call(Fleet, S, application, get_env, [kernel, colour]) end,
    ok = call(Fleet, S1, application, set_env, [kernel, colour, red]),
    Set = #{~"application" => ~"kernel", ~"parameter" => ~"colour",
            ~"value" => ~"[blue, {\"x\", 1}]"},
    undefined = Get(S2),
    [blue = call(Fleet, S, erlang, list_to_atom, ["blue"]) || S <- [S1, S2]],
    #{~"nodes" := Nodes, ~"id" := Id} = ended(Config, ~"set_environment", Both, Set),
    %% It is not set there: a name that is misspelt is told.
    #{~"state" := ~"failed", ~"error" := Why} = map_get(atom_to_binary(S2), Nodes),
    ?assertMatch({_, _}, binary:match(Why, ~"create")),
    #{~"result" := #{~"before" := ~"red"}} = map_get(atom_to_binary(S1), Nodes),
    {ok, [blue, {"x", 1}]} = Get(S1),
    ?assertMatch([#{~"result" := ~"partly"}, #{~"result" := ~"begun"}],
                 audit(Config, #{request => Id})),
    #{~"nodes" := Created, ~"id" := Id2} =
        ended(Config, ~"set_environment", Both, Set#{~"create" => true, ~"value" => ~"7"}),
    [~"ok", ~"ok"] = [State || _ := #{~"state" := State} <- Created],
    %% No atom is made of what somebody sends.
    says(~"is called never_seen_atom",
         result(Config, ~"set_environment", S1, Set#{~"value" => ~"never_seen_atom"})),
    ?assertError(badarg,
                 call(Fleet, S1, erlang, list_to_existing_atom, ["never_seen_atom"])),
    %% One node changes it meanwhile.
    ok = call(Fleet, S2, application, set_env, [kernel, colour, green]),
    #{~"changes" := [#{~"change" := Id2, ~"holds" := false}]} =
        result(Config, ~"environment", S2, #{~"application" => ~"kernel"}),
    #{~"nodes" := Undone} = ended(Config, ~"undo_environment", Both, #{~"change" => Id2}),
    {ok, [blue, {"x", 1}]} = Get(S1),
    #{~"state" := ~"failed", ~"error" := Meanwhile} = map_get(atom_to_binary(S2), Undone),
    ?assertMatch({_, _}, binary:match(Meanwhile, ~"meanwhile, to green")),
    {ok, green} = Get(S2),
    #{~"changed_meanwhile" := true} =
        result(Config, ~"undo_environment", S2, #{~"change" => Id2, ~"force" => true}),
    undefined = Get(S2),
    #{~"now" := ~"red"} = result(Config, ~"undo_environment", S1, #{~"change" => Id}),
    {ok, red} = Get(S1),
    says(~"knows no such change", result(Config, ~"undo_environment", S1, #{~"change" => Id})),
    %% A secret is nowhere.
    undefined = call(Fleet, S1, application, get_env, [kernel, password]),
    Secret = #{~"application" => ~"kernel", ~"parameter" => ~"password", ~"create" => true,
               ~"value" => ~"\"geheim\""},
    #{~"id" := Id3, ~"args" := #{~"value" := ~"(hidden)"}} =
        ended(Config, ~"set_environment", #{~"node" => atom_to_binary(S1)}, Secret),
    {ok, "geheim"} = call(Fleet, S1, application, get_env, [kernel, password]),
    [?assertEqual(nomatch, string:find(iolist_to_binary(json:encode(Entry)), "geheim"))
     || Entry <- audit(Config, #{request => Id3})].

%% Old code goes where no process runs it, and stays as long as one does.
purges(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [S1 | _] = proplists:get_value(nodes, Config),
    Do = fun(Action, Args) -> result(Config, Action, S1, Args) end,
    [Idle, Used] = Modules = [sderl_purged_idle, sderl_purged_used],
    [loaded(Fleet, S1, Module) || Module <- Modules],
    Pid = call(Fleet, S1, erlang, spawn, [Used, wait, []]),
    %% It runs the first version before there is a second one.
    await(fun() ->
        call(Fleet, S1, erlang, process_info, [Pid, current_function]) =:=
            {current_function, {Used, wait, 0}}
    end),
    [loaded(Fleet, S1, Module) || Module <- Modules],
    #{~"modules" := Old} = Do(~"old_code", #{}),
    ?assertEqual([], [atom_to_binary(Module) || Module <- Modules] -- Old),
    Of = fun(Module) -> #{~"module" => atom_to_binary(Module)} end,
    ?assertEqual(#{~"purged" => [], ~"in_use" => [~"sderl_purged_used"]},
                 Do(~"soft_purge", Of(Used))),
    ?assertEqual(#{~"purged" => [~"sderl_purged_idle"], ~"in_use" => []},
                 Do(~"soft_purge", Of(Idle))),
    says(~"there is no old code of sderl_purged_idle", Do(~"soft_purge", Of(Idle))),
    loaded(Fleet, S1, Idle),
    #{~"purged" := Purged, ~"in_use" := InUse} = Do(~"soft_purge", #{}),
    ?assert(lists:member(~"sderl_purged_idle", Purged)),
    ?assert(lists:member(~"sderl_purged_used", InUse)),
    true = call(Fleet, S1, erlang, is_process_alive, [Pid]),
    true = call(Fleet, S1, erlang, exit, [Pid, kill]),
    await(fun() -> not call(Fleet, S1, erlang, is_process_alive, [Pid]) end),
    ?assertEqual(#{~"purged" => [~"sderl_purged_used"], ~"in_use" => []},
                 Do(~"soft_purge", Of(Used))),
    [true = call(Fleet, S1, code, delete, [Module]) || Module <- Modules],
    [true = call(Fleet, S1, code, soft_purge, [Module]) || Module <- Modules],
    ok.

%% A version more of a module with a function that waits.
loaded(Fleet, Node, Module) ->
    Text = lists:concat(["-module(", Module, "). -export([wait/0]). "
                         "wait() -> receive stop -> ok end."]),
    {ok, Tokens, _} = erl_scan:string(Text),
    Forms = [begin {ok, Form} = erl_parse:parse_form(Part), Form end || Part <- parts(Tokens, [])],
    {ok, Module, Code} = compile:forms(Forms),
    {module, Module} = call(Fleet, Node, code, load_binary, [Module, "", Code]).

parts([], []) -> [];
parts([{dot, _} = Dot | Tokens], Part) -> [lists:reverse(Part, [Dot]) | parts(Tokens, [])];
parts([Token | Tokens], Part) -> parts(Tokens, [Token | Part]).

ends(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    M = proplists:get_value(monitor, Config),
    [S1, S2, S3] = proplists:get_value(nodes, Config),
    Long = ~"register(long, self()), receive never -> ok end",
    Runs = fun(S) -> await(fun() -> is_pid(call(Fleet, S, erlang, whereis, [long])) end) end,
    Gone = fun(S) -> await(fun() -> undefined =:= call(Fleet, S, erlang, whereis, [long]) end) end,
    %% Stopped by somebody: also on the node.
    {ok, Stopped} = start(Config, ~"expression", #{~"node" => atom_to_binary(S1)},
                          #{~"text" => Long}),
    Runs(S1),
    {error, forbidden, _} = on(Config, stop, [Stopped, ?WHO(viewer)]),
    ok = on(Config, stop, [Stopped, ?WHO(operator)]),
    Gone(S1),
    #{~"state" := ~"stopped"} = ended(Config, Stopped),
    {error, conflict, _} = on(Config, stop, [Stopped, ?WHO(operator)]),
    {error, not_found, _} = on(Config, stop, [~"none", ?WHO(operator)]),
    ?assertMatch([{~"request.stop", ~"refused"}, {~"action.expression", ~"stopped"},
                  {~"request.stop", ~"ok"}, {~"request.stop", ~"refused"},
                  {~"action.expression", ~"begun"}],
                 [{What, Result} || #{~"what" := What, ~"result" := Result}
                                        <- audit(Config, #{request => Stopped})]),
    [#{~"result" := ~"refused"}] = audit(Config, #{request => ~"none"}),
    %% A node dies meanwhile, the other answers.
    {ok, Died} = start(Config, ~"expression",
                       #{~"nodes" => [atom_to_binary(S) || S <- [S2, S3]]},
                       #{~"text" => <<"node() =:= '", (atom_to_binary(S3))/binary,
                                      "' orelse begin ", Long/binary, " end">>}),
    Runs(S2),
    ok = sderl_fleet:kill(Fleet, S2),
    #{~"nodes" := Nodes, ~"state" := ~"done"} = ended(Config, Died),
    #{~"state" := ~"failed", ~"error" := Why} = map_get(atom_to_binary(S2), Nodes),
    ?assertMatch({_, _}, binary:match(Why, ~"went down meanwhile")),
    #{~"state" := ~"ok"} = map_get(atom_to_binary(S3), Nodes),
    ?assertMatch([#{~"result" := ~"partly"} | _], audit(Config, #{request => Died})),
    says(~"cannot be connected", result(Config, ~"old_code", S2, #{})),
    %% What needs too much is ended, and the node goes on.
    says(~"MB, and was ended",
         result(Config, ~"expression", S1, #{~"text" => ~"length(lists:seq(1, 100000000))"})),
    %% Nobody looks.
    ok = call(Fleet, M, application, stop, [sderl_actions]),
    ok = call(Fleet, M, application, set_env, [sderl_actions, unattended_s, 1]),
    ok = call(Fleet, M, application, start, [sderl_actions]),
    {ok, Left} = start(Config, ~"expression", #{~"node" => atom_to_binary(S1)},
                       #{~"text" => Long}),
    %% To list requests is not to look at one.
    await(fun() ->
        #{~"requests" := [#{~"id" := Left, ~"state" := State}]} =
            json:decode(iolist_to_binary(on(Config, requests, [?WHO(admin)]))),
        State =:= ~"unattended" orelse State
    end),
    Gone(S1),
    #{~"state" := ~"unattended"} = ended(Config, Left),
    ?assertMatch([#{~"result" := ~"stopped"} | _], audit(Config, #{request => Left})),
    ok = call(Fleet, M, application, stop, [sderl_actions]),
    ok = call(Fleet, M, application, set_env, [sderl_actions, unattended_s, 3600]),
    ok = call(Fleet, M, application, start, [sderl_actions]),
    %% The monitoring node dies, and what it began does too.
    {ok, _} = start(Config, ~"expression", #{~"node" => atom_to_binary(S1)}, #{~"text" => Long}),
    Runs(S1),
    ok = sderl_fleet:kill(Fleet, M),
    Gone(S1).

leaves_nothing(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [S1 | _] = proplists:get_value(nodes, Config),
    Monitor = proplists:get_value(monitor, Config),
    Modules = call(Fleet, Monitor, sderl_actions_code, modules, []),
    Gone = fun() ->
        Keeper = call(Fleet, S1, erlang, whereis, [sderl_actions_code]),
        _ = call(Fleet, S1, erlang, send, [Keeper, {delete, Keeper, none}]),
        await(fun() ->
            Loaded = [Module || Module <- Modules,
                                call(Fleet, S1, code, is_loaded, [Module]) =/= false],
            Loaded =:= [] orelse Loaded
        end)
    end,
    #{~"modules" := _} = result(Config, ~"old_code", S1, #{}),
    {file, _} = call(Fleet, S1, code, is_loaded, [sderl_actions_node]),
    Gone(),
    %% It comes again when it is needed.
    #{~"modules" := _} = result(Config, ~"old_code", S1, #{}),
    %% The process that deletes runs the version before where another was loaded meanwhile, here or
    %% by another request.
    Code = call(Fleet, Monitor, sderl_actions_code, code, []),
    _ = call(Fleet, S1, code, atomic_load, [Code]),
    Gone(),
    %% Another version, twice: of it nothing is left.
    [begin
        {module, Old} = call(Fleet, S1, code, load_binary, [Old, "", older(Old)]),
        ok
     end
     || _ <- [1, 2], Old <- [sderl_actions_node, sderl_actions_code]],
    #{~"modules" := _} = result(Config, ~"old_code", S1, #{}),
    %% Some of it is there, and not all.
    [begin
        _ = call(Fleet, S1, code, purge, [Module]),
        true = call(Fleet, S1, code, delete, [Module]),
        _ = call(Fleet, S1, code, purge, [Module])
     end
     || Module <- [sderl_actions_runtime, sderl_actions_show]],
    #{~"modules" := _} = result(Config, ~"old_code", S1, #{}),
    %% What a monitor asks for the version comes last.
    ?assertEqual(sderl_actions_code, lists:last(Modules)).

%% A module as it could have been: with the functions that a monitor calls to find out.
older(Module) ->
    {ok, Module, Binary} = compile:forms([
        {attribute, 1, module, Module},
        {attribute, 1, export, [{version, 0}, {is_installed, 0}]},
        {function, 2, version, 0, [{clause, 2, [], [], [{atom, 2, older}]}]},
        {function, 3, is_installed, 0, [{clause, 3, [], [], [{atom, 3, false}]}]}
    ]),
    Binary.

%% A plugin runs where its application does, and its numbers are metrics of the node.
plugins(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    M = proplists:get_value(monitor, Config),
    [S1, S2 | _] = proplists:get_value(nodes, Config),
    ok = call(Fleet, M, application, stop, [sderl_actions]),
    ok = call(Fleet, M, application, set_env, [sderl_actions, plugins, [sderl_plugin_cowboy]]),
    ok = call(Fleet, M, application, start, [sderl_actions]),
    Plugin = fun(Node) ->
        case result(Config, ~"plugins", Node, #{}) of
            #{~"plugins" := [#{~"state" := State} = One]} -> {State, One};
            Other -> Other
        end
    end,
    State = fun(Node, Wanted) ->
        await(fun() -> {S, _} = Found = Plugin(Node), S =:= Wanted orelse Found end)
    end,
    Any = fun(Node) -> await(fun() -> is_tuple(Plugin(Node)) orelse none end) end,
    ok = Any(S2),
    State(S2, ~"waits"),
    {_, #{~"why" := ~"cowboy does not run"}} = Plugin(S2),
    Paths = lists:usort([filename:dirname(code:which(Module))
                         || Module <- [cowboy, cow_http, ranch]]),
    ok = call(Fleet, S1, code, add_pathsa, [Paths]),
    {ok, _} = call(Fleet, S1, application, ensure_all_started, [cowboy]),
    %% Among the metrics before there are any values.
    await(fun() ->
        #{metrics := Metrics} = call(Fleet, M, sderl_mon, config, []),
        [1 || #{name := ~"cowboy_connections"} <- Metrics] =:= [1] orelse Metrics
    end),
    {ok, _} = call(Fleet, S1, ranch, start_listener,
                   [shop, ranch_tcp, #{socket_opts => [{port, 0}, {ip, {127, 0, 0, 1}}]},
                    cowboy_clear, #{request_timeout => infinity, idle_timeout => infinity}]),
    Port = call(Fleet, S1, ranch, get_port, [shop]),
    Sockets = [element(2, {ok, _} = gen_tcp:connect({127, 0, 0, 1}, Port, []))
               || _ <- lists:seq(1, 3)],
    State(S1, ~"runs"),
    Value = fun(Name) ->
        case call(Fleet, M, sderl_mon_hub, at, [live, erlang:system_time(millisecond)]) of
            {ok, #{frame := #{nodes := Nodes}}} ->
                maps:get(Name, maps:get(atom_to_binary(S1), Nodes, #{}), none);
            Other -> Other
        end
    end,
    await(fun() -> V = Value(~"cowboy_connections"), V == 3 orelse {V, Plugin(S1)} end),
    lists:foreach(fun gen_tcp:close/1, Sockets),
    await(fun() -> V = Value(~"cowboy_connections"), V == 0 orelse V end),
    {_, #{~"numbers" := Numbers}} = Plugin(S1),
    ?assertEqual([~"cowboy_connections=0", ~"cowboy_accepted=3", ~"cowboy_full=0"], Numbers),
    %% Off and on, on this node.
    Switch = #{~"plugin" => ~"sderl_plugin_cowboy"},
    #{~"plugins" := _} = result(Config, ~"plugin_off", S1, Switch),
    State(S1, ~"off"),
    await(fun() ->
        call(Fleet, S1, persistent_term, get, [{sderl_plugin, sderl_plugin_cowboy}, none]) =:= none
    end),
    #{~"plugins" := _} = result(Config, ~"plugin_on", S1, Switch),
    State(S1, ~"runs"),
    says(~"no monitoring node wants", result(Config, ~"plugin_on", S1, #{~"plugin" => ~"none"})),
    %% When the application ends, the plugin waits for it.
    ok = call(Fleet, S1, application, stop, [ranch]),
    await(fun() ->
        {S, _} = Found = Plugin(S1),
        lists:member(S, [~"waits", ~"failed"]) orelse Found
    end),
    %% It ends with the wish of the monitoring node.
    ok = call(Fleet, M, application, stop, [sderl_actions]),
    Manager = call(Fleet, S1, erlang, whereis, [sderl_actions_plugin]),
    _ = call(Fleet, S1, erlang, send, [Manager, {stop, Manager, none}]),
    await(fun() ->
        call(Fleet, S1, erlang, whereis, [sderl_actions_plugin]) =:= undefined
    end).

%% Another version of a plugin takes the place of the one that was loaded, also while it runs.
plugin_versions(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    M = proplists:get_value(monitor, Config),
    [S1 | _] = proplists:get_value(nodes, Config),
    Dir = filename:join(proplists:get_value(priv_dir, Config), "plugins"),
    ok = filelib:ensure_path(Dir),
    true = call(Fleet, M, code, add_patha, [Dir]),
    ok = made(Dir, ["shop_one"]),
    ok = call(Fleet, M, application, stop, [sderl_actions]),
    ok = call(Fleet, M, application, set_env, [sderl_actions, plugins, [sderl_shop_plugin]]),
    ok = call(Fleet, M, application, start, [sderl_actions]),
    Shows = fun(Wanted) ->
        await(fun() ->
            case result(Config, ~"plugins", S1, #{}) of
                #{~"plugins" := [#{~"numbers" := Wanted}]} -> true;
                Other -> Other
            end
        end)
    end,
    Shows([~"shop_one=1"]),
    ok = made(Dir, ["shop_one", "shop_two"]),
    _ = call(Fleet, M, code, purge, [sderl_shop_plugin]),
    {module, _} = call(Fleet, M, code, load_file, [sderl_shop_plugin]),
    Shows([~"shop_one=2", ~"shop_two=2"]).

%% A plugin whose numbers have these names; each is how many there are.
made(Dir, Names) ->
    Numbers = lists:join(", ", [["#{name => <<\"", Name, "\">>, kind => gauge, unit => <<\"x\">>, "
                                 "total => sum, about => <<\"x\">>}"] || Name <- Names]),
    Source = ["-module(sderl_shop_plugin).\n"
              "-export([about/0, start/0, read/1]).\n"
              "about() -> #{application => kernel, versions => [<<>>], numbers => [", Numbers,
              "]}.\nstart() -> {ok, none}.\n"
              "read(S) -> {lists:duplicate(", integer_to_list(length(Names)), ", ",
              integer_to_list(length(Names)), "), S}.\n"],
    File = filename:join(Dir, "sderl_shop_plugin.erl"),
    ok = file:write_file(File, Source),
    {ok, _} = compile:file(File, [{outdir, Dir}, return_errors]),
    ok.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_rest_SUITE).
-moduledoc """
The HTTP interface of a made-up cluster: each answer is checked against the OpenAPI document
(`m:sderl_web_rest`), and what is refused is so for the reason that it should be.
""".

-behaviour(ct_suite).

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(MAIN, ~"token-of-the-test").
-define(MS, 60_000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [every_operation, fronts, operations, series, roles, bad_parameters, pages, conditional,
     idempotency, profiles, gone, lost, tokens, token_file, sockets, socket_gone, audit, bodies,
     slow_clients, limits, guide].

init_per_suite(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    Rules = filename:join(Dir, "rules.json"),
    ok = file:write_file(Rules, ~"""
        {"rules": [{"alarm": "busy", "metric": "procs", "minor": 1, "for_s": 0,
                    "nodes": ["node00*"], "cause": "So many.", "remedy": "None."}]}
        """),
    File = filename:join(Dir, "tokens"),
    Tokens = #{Role => begin
        {ok, Text, _} = sderl_web_token_file:add(File, atom_to_binary(Role), Role, none),
        Text
    end || Role <- sderl_web_token:roles()},
    [{rules, Rules}, {file, File}, {tokens, Tokens} | Config].

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    Rate = case Case of limits -> {0.2, 3}; _ -> {100_000, 100_000} end,
    Slow = [sderl_web_slow_resource || lists:member(Case, [gone, lost])]
        ++ [sderl_cli_profiles_resource || Case =:= profiles],
    Me = self(),
    _ = [application:load(App) || App <- [sderl_mon, sderl_alarms, sderl_web]],
    ok = application:set_env([
        {sderl_alarms, [{rules_file, proplists:get_value(rules, Config)}]},
        {sderl_web, [{port, 0}, {token, ?MAIN}, {source, synthetic}, {writable, true},
                     {tokens_file, proplists:get_value(file, Config)}, {rate, Rate},
                     {ops, proplists:get_value(priv_dir, Config)},
                     {strangers_rate, Rate}, {resources, Slow},
                     {audit, fun(Entry) -> Me ! {audit, Entry} end},
                     {synthetic, #{nodes => 20, groups => 2, edges => 40, interval_ms => 200,
                                   changes => false}}]}
    ]),
    {ok, _} = application:ensure_all_started(sderl_web),
    {ok, #{port := Port}} = sderl_web:address(),
    %% All nodes, and all alarms, so that none comes between two looks at a list.
    ok = sderl_fleet:await(fun() ->
        #{frame := #{}, topology := #{nodes := Nodes}} = sderl_web_feed:current(),
        Busy = [Node || <<"node00", _/binary>> = Node <- maps:keys(Nodes)],
        Found = length(sderl_alarms:list(#{alarm => ~"busy"})),
        map_size(Nodes) =:= 20 andalso Found =:= length(Busy) orelse {map_size(Nodes), Found}
    end, ?MS),
    Document = case Case of limits -> #{}; _ -> sderl_web_rest:document(Port) end,
    [{server, #{port => Port, document => Document}} | Config].

end_per_testcase(_, _) ->
    _ = [application:stop(App) || App <- [sderl_web, sderl_alarms, sderl_mon, cowboy, ranch]],
    _ = sderl_mon_synthetic:stop(),
    _ = [application:unset_env(App, Key) || App <- [sderl_web, sderl_alarms],
                                            {Key, _} <- application:get_all_env(App)],
    ok.

server(Config) -> proplists:get_value(server, Config).
token(Role, Config) -> map_get(Role, proplists:get_value(tokens, Config)).
get(Path, Config) -> sderl_web_rest:get(Path, ?MAIN, server(Config)).
post(Path, Object, Config) -> sderl_web_rest:post(Path, Object, ?MAIN, server(Config)).
ask(Method, Path, Options, Config) -> sderl_web_rest:ask(Method, Path, Options, server(Config)).

an_alarm() ->
    [#{id := Id} | _] = sderl_alarms:list(#{alarm => ~"busy", state => raised}),
    uri_string:quote(Id).

%% ---------------------------------------------------------------- cases

%% The answers of each operation have the shape that the document describes.
every_operation(Config) ->
    #{document := Document} = server(Config),
    ?assertMatch(#{~"openapi" := ~"3.1.0"}, Document),
    Get = fun(Path) ->
        {200, _, Answer} = get(Path, Config),
        Answer
    end,
    #{~"status" := ~"ok"} = Get("/health"),
    #{~"paths" := #{}} = Get("/openapi.json"),
    #{~"problems" := Kinds} = Get("/problems"),
    [Get(binary:part(Type, 7, byte_size(Type) - 7)) || #{~"type" := Type} <- Kinds],
    #{~"role" := ~"admin"} = Get("/session"),
    #{~"now" := _} = Get("/state"),
    #{~"nodes" := [#{~"name" := Node} | _]} = Get("/nodes"),
    #{~"numbers" := #{~"procs" := _}} = Get(["/nodes/", uri_string:quote(Node)]),
    #{~"columns" := #{~"mem" := _}} =
        Get(["/nodes/", uri_string:quote(Node), "/series?metrics=mem,util&points=5&from=0&to=",
             integer_to_list(erlang:system_time(millisecond))]),
    #{~"groups" := [#{~"name" := Group} | _]} = Get("/groups"),
    #{~"numbers" := #{}} = Get(["/groups/", uri_string:quote(Group)]),
    #{~"names" := [_ | _]} = Get(["/groups/", uri_string:quote(Group), "/names?limit=2"]),
    _ = Get("/findings"),
    _ = Get("/events"),
    [#{~"rows" := _} = Get(["/traffic?by=", By])
     || By <- ["link", "edge", "gateway", "group", "routed"]],
    [Get(["/export?what=", What, "&format=", Format])
     || What <- ["nodes", "events"], Format <- ["json", "csv"]],
    _ = Get("/log"),
    #{~"metrics" := [#{~"name" := _, ~"unit" := _} | _]} = Get("/metrics"),
    #{~"columns" := #{~"mem" := _}} = Get(["/metrics/mem/series?", always()]),
    #{~"pages" := []} = Get("/fronts"),
    %% A made-up cluster has no service of operations.
    {_, _, _} = get("/operations", Config),
    {503, _, #{~"detail" := <<"no service of operations", _/binary>>}} =
        post("/operations/plan", #{text => ~"{}"}, Config),
    Busy = ~B|{"error":"another","problems":[],"busy":true}|,
    sderl_web_ops_tests:with_service(Busy, fun(Folder) ->
        ok = application:set_env(sderl_web, ops, Folder),
        {429, #{~"retry-after" := ~"5"}, #{~"detail" := ~"another"}} =
            post("/operations/plan", #{text => ~"{}"}, Config),
        [{429, _, _} = post(["/operations", Path], Body, Config) || {Path, Body} <- changes()],
        {503, _, #{~"detail" := ~"another"}} = get("/operations/record", Config)
    end),
    Front = "/fronts/Load",
    {201, _, _} = ask("PUT", Front, #{token => ?MAIN, body => front()}, Config),
    #{~"name" := ~"Load", ~"rev" := 1} = Get(Front),
    {204, _, _} = ask("DELETE", Front, #{token => ?MAIN}, Config),
    #{~"alarms" := [_ | _]} = Get("/alarms"),
    Alarm = ["/alarms/", an_alarm()],
    _ = Get(Alarm),
    {200, _, #{~"state" := ~"acknowledged", ~"acknowledged" := #{~"by" := ~"main"}}} =
        post([Alarm, "/acknowledge"], #{}, Config),
    {200, _, #{~"state" := ~"raised"}} = post([Alarm, "/reopen"], #{}, Config),
    {201, #{~"location" := <<"/api/v1", Back/binary>>}, #{~"comments" := [_]}} =
        post([Alarm, "/comments"], #{text => ~"seen"}, Config),
    #{~"comments" := [_]} = Get(Back),
    {201, #{~"location" := <<"/api/v1", Silence/binary>>}, _} =
        post("/silences", #{node => ~"web*", for_s => 60}, Config),
    #{~"silences" := [_]} = Get("/silences"),
    {204, _, _} = ask("DELETE", Silence, #{token => ?MAIN}, Config),
    #{~"rules" := [_ | _]} = Get("/rules"),
    {204, _, _} = post("/rules/reload", #{}, Config),
    {201, #{~"location" := <<"/api/v1", Token/binary>>}, _} =
        post("/tokens", #{name => ~"new", role => ~"viewer", for_s => 60}, Config),
    #{~"actions" := [_ | _], ~"role" := ~"admin"} = Get("/actions"),
    {404, _, _} = post("/actions", #{action => ~"fly", on => #{node => Node}}, Config),
    #{~"requests" := _} = Get("/requests"),
    {404, _, _} = get("/requests/x", Config),
    {404, _, _} = post("/requests/x/stop", #{}, Config),
    #{~"entries" := [#{~"what" := ~"request.stop", ~"result" := ~"refused"},
                     #{~"what" := ~"action.fly"} | _]} = Get("/audit?limit=5"),
    #{~"tokens" := [_, _, _, _]} = Get("/tokens"),
    {204, _, _} = ask("DELETE", Token, #{token => ?MAIN}, Config),
    ?assertEqual([], [Id || {Id, _, _, _} <- sderl_web_rest:operations(Document)]
                     -- sderl_web_rest:answered()).

always() -> ["from=0&to=", integer_to_list(erlang:system_time(millisecond)), "&points=5"].

front() -> #{window => ~"hour", charts => [#{metric => ~"mem", place => #{kind => ~"cluster"}}]}.

%% The requests that change something through a service of operations.
changes() ->
    [{"/apply", #{}}, {"/rollback", #{revision => 2}}, {"/families/web/scale", #{count => 3}},
     {"/instances/web1/drain", #{force => true}}, {"/instances/web1/undrain", #{}},
     {"/pause", #{}}, {"/resume", #{}}].

%% A page of charts is written only where it has not changed since it was read, and not by a viewer.
fronts(Config) ->
    Path = ~"/fronts/Queues%20%26%20more",
    Ask = fun(Method, Tag, Body) ->
        Options = #{token => ?MAIN, headers => [{"If-Match", Tag} || Tag =/= none]},
        ask(Method, Path, case Body of none -> Options; _ -> Options#{body => Body} end, Config)
    end,
    Put = fun(Tag, Body) -> Ask("PUT", Tag, Body) end,
    {412, _, #{~"detail" := <<"there is no page of that name to write over", _/binary>>}} =
        Put("*", front()),
    {412, _, #{~"detail" := ~"there is no page of that name any more"}} =
        Put("\"other\"", front()),
    {201, #{~"etag" := First, ~"location" := <<"/api/v1", Path/binary>>},
     #{~"name" := ~"Queues & more", ~"rev" := 1}} = Put(none, front()),
    {409, _, #{~"detail" := <<"there is a page of that name: send its ETag", _/binary>>}} =
        Put(none, front()),
    {412, _, _} = Put(~"\"other\"", front()),
    {200, #{~"etag" := Second}, #{~"rev" := 2}} = Put(First, front()),
    {412, _, _} = Put(First, front()),
    {200, #{~"etag" := Second}, #{~"rev" := 2, ~"window" := ~"hour"}} = get(Path, Config),
    {200, _, #{~"rev" := 3, ~"window" := ~"day"}} = Put("*", (front())#{window := ~"day"}),
    {200, _, #{~"pages" := [#{~"name" := ~"Queues & more"}]}} = get("/fronts", Config),
    [{Detail, {400, _, #{~"detail" := Detail}}} = {Detail, Put("*", maps:merge(front(), Wrong))}
     || {Wrong, Detail} <- [
            {#{window => ~"year"}, ~"window is one of 15m, hour, day, week, month"},
            {#{window => ~"fortnight"},
             ~"window cannot be \"fortnight\": it is a text of at most 5 bytes"},
            {#{charts => [3]}, ~"charts.1.metric and place are its fields"},
            {#{charts => lists:duplicate(25, 3)},
             ~"charts cannot be a list: it is a list of at most 24"},
            {#{rev => 3}, ~"there is no field \"rev\"; there are window, charts"}
        ]],
    [{400, _, _} = ask("PUT", ["/fronts/", Name], #{token => ?MAIN, body => front()}, Config)
     || Name <- [lists:duplicate(61, $x), "%20x", "a%0ab"]],
    [{403, _, _} = ask(Method, Path, #{token => token(viewer, Config), body => front()}, Config)
     || Method <- ["PUT", "DELETE"]],
    %% The largest page that is allowed, sent by a program that escapes everything but ASCII.
    Largest = #{window => ~"month",
                charts => lists:duplicate(24, #{metric => wide(640),
                                                place => #{kind => ~"family", name => wide(254)}})},
    Escaped = json:encode(Largest, fun
        (Text, _) when is_binary(Text) -> json:encode_binary_escape_all(Text);
        (Term, Encode) -> json:encode_value(Term, Encode)
    end),
    {200, _, _} = Put("*", {text, Escaped}),
    {412, _, _} = Ask("DELETE", Second, none),
    {204, _, _} = Ask("DELETE", none, none),
    {404, _, _} = Ask("DELETE", none, none),
    {404, _, #{~"detail" := <<"there is no page \"Queues & more\"", _/binary>>}} =
        get(Path, Config).

%% The nodes of this cluster are made up, so this node is profiled. Others are in
%% sderl_prof_cluster_SUITE and sderl_web_browser_SUITE.
profiles(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "profiles"),
    {503, _, _} = get("/profiles", Config),
    ok = sderl_cli_profiles:start(Dir, 100_000_000),
    try
        Id = sampled_here(),
        listed_profiles(Id, Config),
        shown_profile(Id, Config),
        refused_profiles(Id, Config),
        {204, _, _} = ask("DELETE", ["/profiles/", Id], #{token => ?MAIN}, Config),
        {404, _, #{~"detail" := <<"there is no such profile", _/binary>>}} =
            get(["/profiles/", Id], Config)
    after
        ok = sderl_prof_live:stop()
    end.

sampled_here() ->
    Id = sderl_prof_live:new_id(),
    ok = sderl_prof_live:begin_(Id, #{kind => sampling, on => #{node => ~"here"}, who => ~"ann",
                                      seconds => 600, mib => 32, modules => [],
                                      nodes => [{~"here", node()}]}),
    in_profile_state(running, Id),
    Id.

in_profile_state(State, Id) ->
    ok = sderl_fleet:await(fun() ->
        {ok, #{state := Now}} = sderl_prof_live:find(Id),
        Now =:= State
    end, ?MS).

listed_profiles(Id, Config) ->
    {200, _, #{~"profiles" := [#{~"id" := Id, ~"state" := ~"running", ~"who" := ~"ann"}],
               ~"limits" := #{~"sampling" := #{~"seconds" := 600}},
               ~"may" := [~"sampling", ~"concurrency", ~"messages", ~"calls"]}} =
        get("/profiles", Config),
    May = fun(Role) ->
        {200, _, #{~"may" := Kinds}} =
            sderl_web_rest:get("/profiles", token(Role, Config), server(Config)),
        Kinds
    end,
    ?assertEqual([], May(viewer)),
    ?assertEqual([~"sampling"], May(operator)).

%% A profile that runs cannot be shown; one that has ended can, and does not change.
shown_profile(Id, Config) ->
    Path = ["/profiles/", Id],
    {409, _, #{~"detail" := <<"there is nothing to show yet", _/binary>>}} =
        get([Path, "/samples"], Config),
    {409, _, #{~"detail" := <<"it is not over", _/binary>>}} =
        ask("DELETE", Path, #{token => ?MAIN}, Config),
    {403, _, #{~"detail" := ~"sampling needs the role operator, and this is a viewer"}} =
        sderl_web_rest:post([Path, "/stop"], #{}, token(viewer, Config), server(Config)),
    {200, _, #{~"ok" := true}} =
        sderl_web_rest:post([Path, "/stop"], #{}, token(operator, Config), server(Config)),
    in_profile_state(ended, Id),
    {200, _, #{~"stopped" := true, ~"state" := ~"ended"}} = get(Path, Config),
    {409, _, #{~"detail" := ~"it is over"}} = post([Path, "/stop"], #{}, Config),
    {200, _, #{~"nodes" := [#{~"node" := Node}]}} = get([Path, "/samples"], Config),
    ?assertEqual(atom_to_binary(node()), Node),
    {200, _, #{~"kinds" := _}} = get([Path, "/samples/shares?limit=5"], Config),
    {404, _, #{~"detail" := <<"this profile is one of sampling", _/binary>>}} =
        get([Path, "/profile"], Config),
    {409, _, #{~"detail" := ~"it does not wait to be begun"}} =
        post([Path, "/begin"], #{}, Config).

refused_profiles(Id, Config) ->
    [?assertMatch({Body, {Status, _, #{~"detail" := <<Detail:(byte_size(Detail))/binary,
                                                      _/binary>>}}},
                  {Body, post("/profiles", Body, Config)})
     || {Body, Status, Detail} <- [
            {#{}, 400, ~"on is missing"},
            {#{on => #{node => ~"nobody@nowhere"}}, 404, ~"no node nobody@nowhere is watched"},
            {#{on => #{group => ~"nowhere"}}, 404, ~"no group nowhere is known"},
            {#{on => #{somewhere => 1}}, 400, ~"on is one of"},
            {#{on => #{node => ~"x"}, kind => ~"all"}, 400, ~"kind cannot be"},
            {#{on => #{node => ~"x"}, seconds => 0}, 400, ~"seconds cannot be"},
            {#{on => #{node => ~"x"}, sec => 1}, 400, ~"there is no field"}
        ]],
    Of = fun(Role, Kind) ->
        sderl_web_rest:post("/profiles", #{kind => Kind, on => #{node => ~"x"}},
                            token(Role, Config), server(Config))
    end,
    {403, _, #{~"detail" := ~"sampling needs the role operator, and this is a viewer"}} =
        Of(viewer, ~"sampling"),
    {403, _, #{~"detail" := ~"messages needs the role admin, and this is a operator"}} =
        Of(operator, ~"messages"),
    {404, _, _} = Of(operator, ~"sampling"),
    %% Where the dashboard is read-only, an admin is refused too, with the reason.
    Reader = #{name => ~"ann", token => ~"main", role => admin, from => ~"", expires => none,
               if_match => none, writable => false},
    Asked = #{kind => sampling, on => #{~"node" => ~"x"}, seconds => 1, mib => 32, modules => []},
    [{error, read_only, <<"profile: this dashboard is read-only", _/binary>>} =
         {error, Code, unicode:characters_to_binary(Why)}
     || {error, Code, Why} <- [sderl_cli_profiles:begin_(Asked, Reader),
                               sderl_cli_profiles:stop(Id, Reader),
                               sderl_cli_profiles:confirm(Id, true, Reader),
                               sderl_cli_profiles:delete(Id, Reader)]],
    [{404, _, _} = Answer || Answer <- [
        get("/profiles/none", Config), get("/profiles/none/samples", Config),
        post("/profiles/none/stop", #{}, Config), post("/profiles/none/begin", #{}, Config),
        ask("DELETE", "/profiles/none", #{token => ?MAIN}, Config)]],
    %% All of that is in the audit log, under the profile's id where there is one.
    {200, _, #{~"entries" := Entries}} = get(["/audit?request=", Id], Config),
    ?assertEqual([{~"action.profile", ~"stopped"}, {~"profile.begin", ~"refused"},
                  {~"profile.begin", ~"refused"}, {~"profile.delete", ~"refused"},
                  {~"profile.delete", ~"refused"}, {~"profile.stop", ~"ok"},
                  {~"profile.stop", ~"refused"}, {~"profile.stop", ~"refused"},
                  {~"profile.stop", ~"refused"}],
                 lists:sort([{What, Result}
                             || #{~"what" := What, ~"result" := Result} <- Entries])),
    {200, _, #{~"entries" := [#{~"result" := ~"refused"} | _]}} =
        get("/audit?what=action.profile", Config).

%% The messages that this process has got so far.
all_messages() -> receive Message -> [Message | all_messages()] after 0 -> [] end.

%% Letters of two bytes, each of which JSON may write as six.
wide(Bytes) -> binary:copy(~"ä", Bytes div 2).

%% How each answer of a service of operations becomes an answer of HTTP. (sderl_web_browser_SUITE
%% has a real service.)
operations(Config) ->
    Service = fun(Said, Fun) ->
        sderl_web_ops_tests:with_service(Said, fun(Folder) ->
            ok = application:set_env(sderl_web, ops, Folder),
            Fun()
        end)
    end,
    All = fun() -> [post(["/operations", Path], Body, Config) || {Path, Body} <- changes()] end,
    Me = self(),
    Done = fun(Request) ->
        Me ! {asked, Request},
        ~B|{"done":{"revision":4,"state":"working","file":"/x.json"}}|
    end,
    Once = fun(Body) ->
        ask("POST", "/operations/families/web/scale",
            #{token => token(operator, Config), body => Body,
              headers => [{"Idempotency-Key", "night"}]}, Config)
    end,
    %% A change that was refused as another one runs may be sent again with its key.
    Service(~B|{"error":"another","problems":[],"busy":true}|, fun() ->
        [{429, #{~"retry-after" := ~"5"}, #{~"detail" := ~"another"}} = Once(#{count => 3})
         || _ <- [1, 2]]
    end),
    Service(Done, fun() ->
        Audited = all_messages(),
        {Begun, Told} = lists:split(5, All()),
        [?assertMatch({202, #{~"location" := ~"/api/v1/operations"},
                       #{~"state" := ~"working", ~"revision" := 4, ~"file" := ~"/x.json"}}, One)
         || One <- Begun],
        [?assertMatch({200, _, #{~"state" := ~"working"}}, One) || One <- Told],
        Mine = #{~"who" => ~"rest:main"},
        Now = Mine#{~"wait" => false},
        Messages = all_messages(),
        ?assertEqual([Now#{~"do" => ~"apply", ~"force" => false},
                      Now#{~"do" => ~"rollback", ~"force" => false, ~"revision" => 2},
                      Now#{~"do" => ~"scale", ~"force" => false, ~"family" => ~"web",
                           ~"count" => 3},
                      Now#{~"do" => ~"drain", ~"force" => true, ~"instance" => ~"web1"},
                      Now#{~"do" => ~"undrain", ~"instance" => ~"web1"},
                      Mine#{~"do" => ~"pause"}, Mine#{~"do" => ~"resume"}],
                     [Request || {asked, Request} <- Messages]),
        %% Which file it was is not among the arguments.
        ?assertMatch([#{result := ok, detail := [~"applied ", ~"/x.json"]}],
                     [Entry || {audit, #{what := ~"rest.apply_operations"} = Entry}
                                   <- Audited ++ Messages]),
        {202, _, _} = Once(#{count => 3}),
        {422, _, _} = Once(#{count => 4})
    end),
    %% The service has ended; the answer that was kept is sent again.
    {202, #{~"idempotency-replayed" := ~"true"}, _} = Once(#{count => 3}),
    [?assertMatch({503, _, _}, One) || One <- All()],
    Service(~B|{"error":"no instance web1","problems":[],"unknown":true}|, fun() ->
        [{404, _, #{~"detail" := ~"no instance web1"}} =
             post(["/operations", Path], Body, Config)
         || {Path, Body} <- lists:sublist(changes(), 5)]
    end),
    Service(~B|{"error":"refused","problems":["g1 would be gone","g2 too"]}|, fun() ->
        [?assertMatch({409, _, #{~"detail" := ~"refused:\ng1 would be gone\ng2 too"}}, One)
         || One <- All()]
    end),
    %% The service ended, or says that it does not know whether the change was made.
    [Service(Said, fun() -> [?assertMatch({504, _, _}, One) || One <- All()] end)
     || Said <- [~"", ~B|{"error":"lost","problems":[],"unsure":true}|,
                 ~B|{"done":{"other":1}}|]],
    Service(~B|{"error":"nobody acts","problems":[],"unavailable":true}|, fun() ->
        [?assertMatch({503, _, #{~"detail" := ~"nobody acts"}}, One) || One <- All()]
    end),
    [{400, _, _} = post(["/operations", Path], Body, Config)
     || {Path, Body} <- [{"/families/web/scale", #{count => 0}}, {"/families/web/scale", #{}},
                         {["/families/", lists:duplicate(64, $x), "/scale"], #{count => 1}},
                         {"/rollback", #{revision => ~"x"}}, {"/apply", #{file => ~"/etc/passwd"}},
                         {"/instances/web1/drain", #{force => 1}}]],
    [{403, _, _} = sderl_web_rest:post(["/operations", Path], Body, token(viewer, Config),
                                       server(Config)) || {Path, Body} <- changes()],
    [{405, _, _} = ask(Method, "/operations/pause", #{token => ?MAIN}, Config)
     || Method <- ["GET", "PUT", "DELETE"]],
    record(Config).

%% The audit log of a service of operations, in its own pages, which may have fewer entries than
%% asked for.
record(Config) ->
    _ = all_messages(),
    Me = self(),
    Entry = fun(Number) ->
        #{number => Number, at => ~"2026-11-28T00:00:00.000Z", who => ~"ann", kind => ~"request",
          what => ~"pause", result => ~"done", why => null}
    end,
    Record = fun(#{~"do" := ~"record", ~"limit" := Limit} = Asked) ->
        Me ! {asked, Asked},
        First = maps:get(~"before", Asked, 10) - 1,
        Last = max(1, First - min(Limit, 4) + 1),
        json:encode(#{done => #{entries => [Entry(N) || N <- lists:seq(First, Last, -1)],
                                next => case Last of 1 -> null; _ -> Last end}})
    end,
    sderl_web_ops_tests:with_service(Record, fun(Folder) ->
        ok = application:set_env(sderl_web, ops, Folder),
        Of = "/operations/record?who=ann&kind=step&from=5&to=9&limit=",
        Numbers = fun Numbers(Path) ->
            {200, Headers, #{~"entries" := Entries}} =
                sderl_web_rest:get(Path, token(viewer, Config), server(Config)),
            [Number || #{~"number" := Number} <- Entries] ++ case Headers of
                #{~"link" := <<"</api/v1", Link/binary>>} ->
                    Numbers(hd(binary:split(Link, ~">; rel=\"next\"")));
                #{} -> []
            end
        end,
        [?assertEqual(lists:seq(9, 1, -1), Numbers([Of, Limit])) || Limit <- ["2", "500"]],
        [?assertMatch(#{~"by" := ~"ann", ~"since" := 5, ~"until" := 9, ~"kind" := ~"step",
                        ~"who" := ~"dashboard"},
                      Asked) || {asked, Asked} <- all_messages()],
        [{400, _, _} = get(["/operations/record?", Query], Config)
         || Query <- ["limit=501", "from=x", "cursor=x", "since=5",
                      "kind=all"]]
    end),
    Earlier = ~B|{"error":"the request is wrong: do: \"record\" is not a type","problems":[]}|,
    sderl_web_ops_tests:with_service(Earlier, fun(Folder) ->
        ok = application:set_env(sderl_web, ops, Folder),
        {503, _, #{~"detail" := Said}} = get("/operations/record", Config),
        ?assertMatch({_, _}, binary:match(Said, ~"is of an earlier version"))
    end).

%% A metric over time, of each kind of place; also a metric of the application.
series(Config) ->
    #{nodes := Nodes} = map_get(topology, sderl_web_feed:current()),
    [Node | _] = lists:sort(maps:keys(Nodes)),
    #{Node := #{groups := [Group | _]}} = Nodes,
    Own = #{name => orders, kind => counter, unit => "orders", counter => {{shop, numbers}, 1},
            for => [shop]},
    {ok, Metrics} = sderl_mon_app_metrics:check([Own]),
    ok = sderl_mon:set(#{metrics => Metrics}),
    Of = fun(Metric, Query) ->
        get(["/metrics/", uri_string:quote(Metric), "/series?", always(), Query], Config)
    end,
    Latest = fun(Place) ->
        {200, _, Answer} = Of(~"procs", ["&place=", uri_string:quote(Place)]),
        #{~"metric" := ~"procs", ~"unit" := ~"processes", ~"total" := ~"sum", ~"place" := Place,
          ~"t" := Times, ~"columns" := #{~"procs" := Values}} = Answer,
        ?assertEqual(length(Times), length(Values)),
        lists:last(Values)
    end,
    OfNode = Latest(<<"node:", Node/binary>>),
    OfGroup = Latest(<<"group:", Group/binary>>),
    OfFamily = Latest(<<"family:", (sderl_mon_types:family(Node))/binary>>),
    ?assert(0 < OfNode),
    ?assert(OfNode < OfGroup),
    ?assert(OfGroup < OfFamily),
    {200, _, #{~"place" := ~"cluster", ~"columns" := #{~"util" := _}}} = Of(~"util", ""),
    %% A metric that no node has reported yet has no values.
    {200, _, #{~"unit" := ~"orders/s", ~"columns" := #{}}} = Of(~"orders", ""),
    Tagged = fun(Tag) ->
        {200, _, #{~"metrics" := Some}} = get(["/metrics?tag=", Tag], Config),
        [Name || #{~"name" := Name} <- Some]
    end,
    ?assertEqual([~"orders"], Tagged("shop")),
    ?assertEqual([], Tagged("nosuch")),
    ?assert(lists:member(~"host_mem", Tagged("op")) andalso
            not lists:member(~"host_mem", Tagged("dev"))),
    Said = fun(Status, Metric, Query) ->
        {Status, _, #{~"detail" := Why}} = Of(Metric, Query),
        Why
    end,
    ?assertEqual(~B|there is no metric "nosuch": metrics lists those that there are|,
                 Said(404, ~"nosuch", "")),
    ?assertMatch(<<"there is no node \"x@y\"", _/binary>>, Said(404, ~"mem", "&place=node:x@y")),
    ?assertMatch(<<"there is no group \"x\"", _/binary>>, Said(404, ~"mem", "&place=group:x")),
    ?assertMatch(<<"there is no family \"x\"", _/binary>>, Said(404, ~"mem", "&place=family:x")),
    ?assertEqual(~"nothing is kept of that time",
                 begin
                     {404, _, #{~"detail" := Why}} =
                         get("/metrics/mem/series?from=0&to=1", Config),
                     Why
                 end),
    {400, _, #{~"detail" := <<"from is later than to", _/binary>>}} =
        get("/metrics/mem/series?from=2&to=1", Config),
    [?assertEqual(<<"place cannot be \"", Place/binary, "\": it is cluster, node:NODE, "
                    "group:GROUP or family:FAMILY">>,
                  Said(400, ~"mem", ["&place=", Place]))
     || Place <- [~"", ~"web", ~"rack:1", ~"family:", ~"node"]],
    ok = sderl_mon:set(#{metrics => []}).

%% A path of the document with something in its named parts.
path(Template) -> re:replace(Template, "\\{[a-z]+\\}", "x", [global, {return, binary}]).

%% Each operation demands the role that the document says.
roles(Config) ->
    #{document := Document} = server(Config),
    Roles = #{nobody => 0, viewer => 1, operator => 2, admin => 3},
    lists:foreach(fun({_, Method, Template, #{~"x-role" := Needed}}) ->
        lists:foreach(fun(Role) ->
            Token = case Role of nobody -> none; _ -> token(Role, Config) end,
            {Status, Headers, _} = ask(binary_to_list(Method), path(Template),
                                       #{token => Token}, Config),
            Allowed = map_get(Role, Roles) >= map_get(binary_to_existing_atom(Needed), Roles),
            Of = {Template, Role, Status},
            case {Allowed, Role} of
                {true, _} -> ?assert(Status =/= 401 andalso Status =/= 403, Of);
                {false, nobody} ->
                    ?assertEqual({Template, 401}, {Template, Status}),
                    ?assertMatch(#{~"www-authenticate" := ~"Bearer realm=\"sderl\""}, Headers);
                {false, _} ->
                    ?assertEqual({Template, 403}, {Template, Status}),
                    #{~"www-authenticate" := Challenge} = Headers,
                    ?assertMatch({_, _}, binary:match(Challenge, [
                        <<"error=\"insufficient_scope\", scope=\"", Needed/binary, "\"">>
                    ]))
            end
        end, maps:keys(Roles))
    end, [Of || {Id, _, _, _} = Of <- sderl_web_rest:operations(Document), Id =/= ~"export"]),
    {401, #{~"www-authenticate" := Wrong}, _} =
        sderl_web_rest:get("/nodes", ~"sderl_00000000_00000000000000000000000000000000",
                           server(Config)),
    ?assertMatch({_, _}, binary:match(Wrong, ~"error=\"invalid_token\"")).

%% Wrong values for each parameter of the document, and an unknown parameter.
bad_parameters(Config) ->
    #{document := Document} = server(Config),
    lists:foreach(fun({_, Method, Template, #{~"parameters" := Parameters}}) ->
        Refused = fun(Name, Value) ->
            %% The other required parameters are right.
            Others = [{Other, good(Schema)}
                      || #{~"name" := Other, ~"required" := true, ~"in" := ~"query",
                           ~"schema" := Schema} <- Parameters, Other =/= Name],
            Query = uri_string:compose_query([{Name, Value} | Others]),
            {Status, _, Answer} = ask(binary_to_list(Method), [path(Template), $?, Query],
                                      #{token => ?MAIN}, Config),
            #{~"detail" := Detail} = Answer,
            ?assertMatch({Template, 400, {0, _}},
                         {Template, Status, binary:match(Detail, Name)})
        end,
        [Refused(Name, bad(Schema)) || #{~"in" := ~"query", ~"name" := Name, ~"schema" := Schema}
                                           <- Parameters],
        {400, _, #{~"detail" := Why}} = ask(binary_to_list(Method), [path(Template), "?nosuch=1"],
                                            #{token => ?MAIN}, Config),
        ?assertMatch(<<"there is no field \"nosuch\"", _/binary>>, Why)
    end, sderl_web_rest:operations(Document)),
    [{400, _, _} = get(["/nodes?", Query], Config)
     || Query <- ["limit=%zz", "limit=1e3", "cursor=x", "cursor=WyJldmVudHMiLDVd", "%ff=1",
                  "group=%ff", "cursor=%c3%28"]],
    [{400, _, _} = get(["/log?text=", Text], Config) || Text <- ["%ff", "%ed%a0%80"]],
    %% No parameter takes a time after the year 9999.
    Times = [{Template, Name, [[Other, $=, good(Of), $&]
                               || #{~"name" := Other, ~"required" := true, ~"in" := ~"query",
                                    ~"schema" := Of} <- Parameters, Other =/= Name]}
             || {_, ~"GET", Template, #{~"parameters" := Parameters}} <-
                    sderl_web_rest:operations(Document),
                #{~"in" := ~"query", ~"name" := Name} <- Parameters,
                lists:member(Name, [~"from", ~"to", ~"t"])],
    ?assert(length(Times) >= 9),
    lists:foreach(fun({Template, Name, Others}) ->
        {Status, _, _} = get([path(Template), $?, Others, Name, "=253402300799999"], Config),
        ?assert(Status =/= 400, {Template, Name}),
        {400, _, #{~"detail" := Late}} =
            get([path(Template), $?, Others, Name, "=253402300800000"], Config),
        ?assertMatch({_, _}, binary:match(Late, ~"(the year 9999)"))
    end, Times),
    [{404, _, _} = get(Path, Config)
     || Path <- ["/nodes/no", "/groups/no", "/alarms/no", "/problems/no", "/no", "",
                 "/nodes/a/b/c"]],
    [{404, _, #{~"detail" := <<"there is no node", _/binary>>}} = get(["/nodes/", Name], Config)
     || Name <- ["%ff", "%c3%28"]],
    [{400, _, #{~"type" := ~"/api/v1/problems/bad-request"}} = get(["/nodes/", Name], Config)
     || Name <- ["%zz", <<255>>]],
    {404, _, _} = ask("DELETE", "/tokens/00000000", #{token => ?MAIN}, Config).

good(#{~"type" := ~"integer", ~"minimum" := Least}) -> integer_to_binary(Least);
good(#{~"enum" := [Word | _]}) -> Word.

bad(#{~"type" := ~"integer"}) -> ~"x";
bad(#{~"type" := ~"array"}) -> binary:copy(~"x", 300);
bad(#{~"enum" := _}) -> ~"none of them";
bad(#{~"maxLength" := Most}) -> binary:copy(~"x", Most + 1).

%% The pages together are the whole list in order, whatever their size.
pages(Config) ->
    Walk = fun Walk(Path, Key) ->
        {200, Headers, #{Key := Some, ~"next" := Next}} = get(Path, Config),
        case Headers of
            #{~"link" := <<"</api/v1", Link/binary>>} ->
                [Following, _] = binary:split(Link, ~">; rel=\"next\""),
                ?assertMatch({_, _}, binary:match(Following, Next)),
                Some ++ Walk(Following, Key);
            #{} ->
                ?assertEqual(null, Next),
                Some
        end
    end,
    lists:foreach(fun({Path, Key, Of}) ->
        All = [map_get(Of, One) || One <- Walk([Path, "limit=500"], Key)],
        ?assert(length(All) >= 2),
        [?assertEqual(All, [map_get(Of, One) || One <- Walk([Path, "limit=", Limit], Key)])
         || Limit <- ["1", "3", "7"]]
    end, [{"/nodes?", ~"nodes", ~"name"}, {"/groups?", ~"groups", ~"name"},
          {"/alarms?alarm=busy&", ~"alarms", ~"id"}]),
    {200, _, #{~"nodes" := Up}} = get("/nodes?status=up&group=group01&limit=500", Config),
    ?assert(lists:all(fun(#{~"status" := Is, ~"groups" := In}) ->
        Is =:= ~"up" andalso lists:member(~"group01", In)
    end, Up)).

%% What the client knows is not sent again, and what has changed is not overwritten.
conditional(Config) ->
    {200, #{~"etag" := Tag}, _} = get("/problems", Config),
    With = fun(Header, Value) -> #{token => ?MAIN, headers => [{Header, Value}]} end,
    [{304, #{~"etag" := Tag}, ~""} = ask("GET", "/problems", With("If-None-Match", Value), Config)
     || Value <- [Tag, ["\"x\", ", Tag], ["W/", Tag], "*"]],
    {200, _, _} = ask("GET", "/problems", With("If-None-Match", "\"x\""), Config),
    [{400, _, #{~"detail" := <<"the header ", _/binary>>}} =
         ask(Method, Path, With(Header, <<"\"", 255, "\", \"", 16#c3, 16#28, "\"">>), Config)
     || Header <- ["If-Match", "If-None-Match"],
        {Method, Path} <- [{"GET", "/problems"}, {"GET", "/session"}, {"DELETE", "/tokens/x"}]],
    Alarm = ["/alarms/", an_alarm()],
    {200, #{~"etag" := Read}, _} = get(Alarm, Config),
    Say = fun(Path, If, Object) ->
        ask("POST", [Alarm, Path], (With("If-Match", If))#{body => Object}, Config)
    end,
    {200, #{~"etag" := Seen}, _} = Say("/acknowledge", Read, #{text => ~"mine"}),
    %% Another client, which has read it before that.
    {412, _, _} = Say("/acknowledge", Read, #{text => ~"no, mine"}),
    {412, _, _} = Say("/comments", Read, #{text => ~"it is open"}),
    {200, #{~"etag" := Seen}, #{~"acknowledged" := #{~"text" := ~"mine"}, ~"comments" := []}} =
        get(Alarm, Config),
    {200, _, _} = Say("/reopen", Seen, #{}),
    {201, _, _} = Say("/comments", "*", #{text => ~"whatever"}),
    %% A condition on something without a version is refused, and nothing changes.
    {201, #{~"location" := <<"/api/v1", Silence/binary>>}, _} =
        post("/silences", #{node => ~"web*", for_s => 60}, Config),
    [{400, _, #{~"detail" := <<"what this changes has no version", _/binary>>}} =
         ask(Method, Path, With("If-Match", "\"x\""), Config)
     || {Method, Path} <- [{"DELETE", Silence}, {"POST", "/rules/reload"}]],
    {200, _, #{~"silences" := [_]}} = get("/silences", Config),
    {204, _, _} = ask("DELETE", Silence, With("If-Match", "*"), Config).

%% A request that comes again with its key is done once.
idempotency(Config) ->
    Create = fun(Key, Token, Object) ->
        ask("POST", "/silences", #{token => Token, body => Object,
                                   headers => [{"Idempotency-Key", Key}]}, Config)
    end,
    One = #{node => ~"web*", for_s => 60},
    {201, First, #{~"id" := Id} = Silence} = Create("a", ?MAIN, One),
    ?assertNot(is_map_key(~"idempotency-replayed", First)),
    {201, #{~"idempotency-replayed" := ~"true", ~"location" := _}, Silence} =
        Create("a", ?MAIN, One),
    {422, _, _} = Create("a", ?MAIN, One#{for_s := 61}),
    {200, _, #{~"silences" := [#{~"id" := Id}]}} = get("/silences", Config),
    %% Keys belong to their token; they consist of printable ASCII without spaces.
    {201, _, #{~"id" := Other}} = Create("a", token(operator, Config), One),
    ?assertNotEqual(Id, Other),
    [{400, _, _} = Create(Key, ?MAIN, One) || Key <- ["", "a b", lists:duplicate(129, $k)]],
    %% A refusal is repeated too; a request that never reached the server is done.
    {400, _, Why} = Create("b", ?MAIN, #{for_s => 60}),
    {400, #{~"idempotency-replayed" := ~"true"}, Why} = Create("b", ?MAIN, #{for_s => 60}),
    ok = supervisor:terminate_child(sderl_alarms_sup, sderl_alarms_server),
    {503, _, _} = Create("c", ?MAIN, One),
    {ok, _} = supervisor:restart_child(sderl_alarms_sup, sderl_alarms_server),
    {201, _, _} = Create("c", ?MAIN, One).

slow(Config) ->
    ask("POST", "/slow", #{token => ?MAIN, headers => [{"Idempotency-Key", "slow"}]}, Config).

received() ->
    receive Message -> Message after ?MS -> nothing end.

%% What a client began goes on when the client goes away: it is done, is in the audit log, and its
%% answer waits for the same request.
gone(Config) ->
    true = register(sderl_web_slow_resource, self()),
    #{port := Port} = server(Config),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}], ?MS),
    ok = gen_tcp:send(Socket, ["POST /api/v1/slow HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                               "Authorization: Bearer ", ?MAIN, "\r\nIdempotency-Key: slow\r\n"
                               "Content-Length: 0\r\n\r\n"]),
    {begun, Worker} = received(),
    ok = gen_tcp:close(Socket),
    ok = sderl_fleet:await(fun() -> ranch:procs(sderl_web_listener, connections) =:= [] end, ?MS),
    {409, _, #{~"detail" := <<"the same request is still being answered", _/binary>>}} =
        slow(Config),
    ?assertMatch({audit, #{what := ~"rest.slow", result := refused}}, received()),
    Worker ! go,
    ?assertMatch({audit, #{what := ~"rest.slow", result := ok}}, received()),
    {201, #{~"idempotency-replayed" := ~"true"}, #{~"done" := true}} = slow(Config).

%% A change whose process ends is answered as lost, and is not done twice.
lost(Config) ->
    true = register(sderl_web_slow_resource, self()),
    Me = self(),
    _ = spawn_link(fun() -> Me ! {answer, slow(Config)} end),
    {begun, Worker} = received(),
    true = exit(Worker, kill),
    Told = [received(), received()],
    ?assertMatch([{answer, {504, _, #{~"type" := ~"/api/v1/problems/late"}}},
                  {audit, #{what := ~"rest.slow", result := failed, detail := _}}],
                 lists:sort(Told)),
    {504, #{~"idempotency-replayed" := ~"true"}, _} = slow(Config).

%% Tokens are made, used and revoked over HTTP; an open socket is closed with the reason.
tokens(Config) ->
    #{port := Port} = server(Config),
    Make = fun(Object) ->
        {201, _, #{~"token" := Token, ~"about" := #{~"id" := Id}}} =
            post("/tokens", Object, Config),
        {Token, Id}
    end,
    Closed = fun(Socket) ->
        {_, How} = sderl_web_client:until_close(Socket, ?MS),
        ok = sderl_web_client:close(Socket),
        How
    end,
    {Token, Id} = Make(#{name => ~"ann", role => ~"viewer"}),
    {409, _, #{~"detail" := Twice}} =
        post("/tokens", #{name => ~"ann", role => ~"admin"}, Config),
    ?assertMatch({_, _}, binary:match(Twice, Id)),
    {200, _, #{~"name" := ~"ann", ~"role" := ~"viewer", ~"id" := Id}} =
        sderl_web_rest:get("/session", Token, server(Config)),
    {ok, Socket} = sderl_web_client:open(Port, Token),
    {204, _, _} = ask("DELETE", ["/tokens/", Id], #{token => ?MAIN}, Config),
    ?assertEqual({close, 4002}, Closed(Socket)),
    {401, #{~"www-authenticate" := Challenge}, _} =
        sderl_web_rest:get("/session", Token, server(Config)),
    ?assertMatch({_, _}, binary:match(Challenge, ~"revoked")),
    {refused, 401} = sderl_web_client:open(Port, Token),
    %% On a busy machine a short-lived token may have expired before it is used.
    Until = fun Until(Seconds) ->
        {Short, _} = Make(#{name => <<"bob", (integer_to_binary(Seconds))/binary>>,
                            role => ~"admin", for_s => Seconds}),
        case sderl_web_client:open(Port, Short) of
            {ok, Open} -> {Short, Open};
            {refused, 401} -> Until(2 * Seconds)
        end
    end,
    {Short, Open} = Until(2),
    ?assertEqual({close, 4001}, Closed(Open)),
    {401, #{~"www-authenticate" := Expired}, _} =
        sderl_web_rest:get("/session", Short, server(Config)),
    ?assertMatch({_, _}, binary:match(Expired, ~"expired")),
    %% No secret is in the list, and the name is free again.
    {200, _, #{~"tokens" := All}} = get("/tokens", Config),
    ?assertEqual(nomatch, binary:match(iolist_to_binary(json:encode(All)),
                                       binary:part(Token, 15, 32))),
    {_, _} = Make(#{name => ~"ann", role => ~"operator"}).

%% The server follows changes that another program makes to the file.
token_file(Config) ->
    File = proplists:get_value(file, Config),
    Viewer = token(viewer, Config),
    Status = fun(Token) ->
        {Status, _, _} = sderl_web_rest:get("/session", Token, server(Config)),
        Status
    end,
    Await = fun(Wanted, Token) ->
        ok = sderl_fleet:await(fun() -> Status(Token) =:= Wanted end, ?MS)
    end,
    {ok, New, #{id := Id}} = sderl_web_token_file:add(File, ~"carol", viewer, none),
    Await(200, New),
    {ok, _} = sderl_web_token_file:revoke(File, Id),
    Await(401, New),
    %% Tokens do not count while others may read the file, or while it is damaged. They are not
    %% revoked by that.
    #{port := Port} = server(Config),
    {ok, Socket} = sderl_web_client:open(Port, Viewer),
    ok = file:change_mode(File, 8#644),
    Await(401, Viewer),
    ?assertMatch({_, {close, 4003}}, sderl_web_client:until_close(Socket, ?MS)),
    ok = sderl_web_client:close(Socket),
    ok = file:change_mode(File, 8#600),
    Await(200, Viewer),
    {ok, Kept} = file:read_file(File),
    ok = file:write_file(File, ~"{"),
    Await(401, Viewer),
    ok = file:write_file(File, Kept),
    Await(200, Viewer),
    ?assertEqual(200, Status(?MAIN)).

%% A socket has the role of its token.
sockets(Config) ->
    #{port := Port} = server(Config),
    [#{id := Id} | _] = sderl_alarms:list(#{alarm => ~"busy"}),
    Code = fun(Socket, Request) ->
        case sderl_web_client:ask(Socket, Request) of
            #{~"ok" := true} -> ok;
            #{~"error" := #{~"code" := Code}} -> Code
        end
    end,
    lists:foreach(fun({Role, Writable, Acknowledges, Reloads}) ->
        {ok, Socket} = sderl_web_client:open(Port, token(Role, Config)),
        Name = atom_to_binary(Role),
        ?assertMatch({text, #{~"type" := ~"session", ~"role" := Name, ~"writable" := Writable}},
                     sderl_web_client:next(Socket, ?MS)),
        ?assertEqual(ok, Code(Socket, #{op => alarms})),
        ?assertEqual(Acknowledges,
                     Code(Socket, #{op => acknowledge, id => Id, by => ~"ann"})),
        ?assertEqual(Reloads, Code(Socket, #{op => reload_rules})),
        sderl_web_client:close(Socket)
    end, [{viewer, false, ~"forbidden", ~"forbidden"}, {operator, true, ok, ~"forbidden"},
          {admin, true, ok, ok}]),
    %% When the server of tokens restarts, the socket is closed and has to connect again.
    {ok, Socket} = sderl_web_client:open(Port, token(viewer, Config)),
    %% From then on it looks after that server.
    ?assertMatch({text, #{~"type" := ~"session"}}, sderl_web_client:next(Socket, ?MS)),
    exit(whereis(sderl_web_tokens), kill),
    {_, {close, 1012}} = sderl_web_client:until_close(Socket, ?MS),
    sderl_web_client:close(Socket).

%% The same for a request over a socket that closes.
socket_gone(Config) ->
    {ok, Socket} = sderl_web_client:open(maps:get(port, server(Config)), token(operator, Config)),
    [#{id := Id} | _] = sderl_alarms:list(#{alarm => ~"busy"}),
    ok = sys:suspend(sderl_alarms_server),
    ok = sderl_web_client:text(Socket, json:encode(#{op => comment, id => Id, by => ~"o",
                                                     text => ~"x"})),
    Asked = fun() ->
        {messages, Messages} = process_info(whereis(sderl_alarms_server), messages),
        lists:any(fun
            ({'$gen_call', _, {act, #{do := comment}}}) -> true;
            (_) -> false
        end, Messages)
    end,
    ok = sderl_fleet:await(Asked, ?MS),
    ok = sderl_web_client:close(Socket),
    ok = sderl_fleet:await(fun() -> ranch:procs(sderl_web_listener, connections) =:= [] end, ?MS),
    ok = sys:resume(sderl_alarms_server),
    {audit, #{what := ~"socket.comment", args := #{id := Id}, result := Result}} = received(),
    %% On a busy machine the server may not have answered in time.
    ?assert(lists:member(Result, [ok, failed])).

%% The audit log has each request for a change, done or not, and none that only reads.
audit(Config) ->
    Operator = token(operator, Config),
    Told = fun() ->
        receive {audit, Entry} -> maps:remove(ms, Entry) after ?MS -> none end
    end,
    {200, _, _} = get("/alarms", Config),
    {201, _, _} = sderl_web_rest:post("/silences", #{node => ~"web*", for_s => 60}, Operator,
                                      server(Config)),
    ?assertMatch(#{what := ~"rest.silence", result := ok,
                   who := #{kind := token, name := ~"operator", token := <<_:8/binary>>,
                            role := ~"operator",
                            from := <<"127.0.0.1:", _/binary>>},
                   args := #{node := ~"web*", for_s := 60}}, Told()),
    {403, _, _} = sderl_web_rest:post("/rules/reload", #{}, Operator, server(Config)),
    ?assertMatch(#{what := ~"rest.reload_rules", result := refused, detail := _}, Told()),
    {400, _, _} = sderl_web_rest:post("/silences", #{for_s => 0}, Operator, server(Config)),
    ?assertMatch(#{what := ~"rest.silence", result := refused}, Told()),
    %% The name that a client gives proves nothing: the token's id stands beside it.
    {204, _, _} = ask("POST", "/rules/reload", #{token => ?MAIN, body => #{},
                                                 headers => [{"X-Sderl-Name", "ann"}]}, Config),
    ?assertMatch(#{what := ~"rest.reload_rules",
                   who := #{name := ~"ann", token := ~"main", role := ~"admin"}}, Told()),
    {ok, Socket} = sderl_web_client:open(maps:get(port, server(Config)), Operator),
    #{~"ok" := true} = sderl_web_client:ask(Socket, #{op => alarms}),
    #{~"ok" := false} = sderl_web_client:ask(Socket, #{op => reload_rules}),
    ?assertMatch(#{what := ~"socket.reload_rules", result := refused}, Told()),
    [#{id := Id} | _] = sderl_alarms:list(#{alarm => ~"busy"}),
    #{~"ok" := true} =
        sderl_web_client:ask(Socket, #{op => comment, id => Id, by => ~"o", text => ~"x"}),
    ?assertMatch(#{what := ~"socket.comment", result := ok, args := #{id := Id}}, Told()),
    ok = sderl_web_client:close(Socket),
    %% A request that is refused before it reaches the module of actions is in the audit log too,
    %% without the arguments that the module would have hidden.
    {403, _, _} = sderl_web_rest:post("/requests/x/stop", #{}, token(viewer, Config),
                                      server(Config)),
    ?assertMatch(#{what := ~"rest.stop_request", result := refused, args := #{~"id" := ~"x"},
                   who := #{name := ~"viewer"}, detail := _}, Told()),
    {400, _, _} = ask("POST", "/actions", #{
        token => Operator, headers => [{"Idempotency-Key", "a b"}],
        body => #{action => ~"set_env", on => #{node => ~"n"}, args => #{value => ~"hush"}}
    }, Config),
    #{what := ~"rest.act", result := refused, args := Args} = Told(),
    ?assertEqual([action, on], lists:sort(maps:keys(Args))).

%% A body that is too large is refused before it is read, and one that is not a JSON object always.
bodies(Config) ->
    #{port := Port} = server(Config),
    Head = fun(Headers) ->
        ["POST /api/v1/silences HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ", ?MAIN,
         "\r\nContent-Type: application/json\r\n", Headers, "\r\n"]
    end,
    %% None of the ten megabytes is sent.
    <<"HTTP/1.1 413 ", _/binary>> =
        sderl_web_client:raw(Port, Head("Content-Length: 10485760\r\n"), ?MS),
    Chunk = ["10000\r\n", binary:copy(~" ", 65_536), "\r\n"],
    <<"HTTP/1.1 413 ", _/binary>> =
        sderl_web_client:raw(Port, [Head("Transfer-Encoding: chunked\r\n"), Chunk], ?MS),
    Refused = fun(Status, Text) ->
        ?assertMatch({Status, _, #{~"status" := Status}},
                     ask("POST", "/silences", #{token => ?MAIN, body => {text, Text}}, Config))
    end,
    [Refused(400, Text) || Text <- [
        ~"", ~"{", ~"[]", ~"null", ~"{}{}", <<"{\"node\":\"", 255, "\"}">>,
        [lists:duplicate(8_000, $[), lists:duplicate(8_000, $])],
        ["{\"node\":", lists:duplicate(40, "{\"a\":"), "1", lists:duplicate(40, $}), "}"],
        ["{\"for_s\":", lists:duplicate(10_000, $9), "}"], ~"{\"more\":1}"
    ]],
    {400, _, #{~"detail" := Deep}} =
        ask("POST", "/silences", #{token => ?MAIN, body => {text, [lists:duplicate(40, "[")]}},
            Config),
    ?assertMatch({_, _}, binary:match(Deep, ~"nested deeper than 32")),
    Refused(413, binary:copy(~" ", 16_385)),
    %% The body may be larger where it carries a cluster file.
    [{Status, _, _} = post("/operations/plan", #{text => binary:copy(~"\n", Size)}, Config)
     || {Status, Size} <- [{503, 49_152}, {400, 49_153}, {413, 65_536}]],
    {415, _, _} = ask("POST", "/silences", #{token => ?MAIN}, Config),
    {201, _, _} = post("/silences", #{node => ~"web*", for_s => 60}, Config).

%% A client that sends a head or a body byte by byte is cut off, and holds up nobody else.
slow_clients(Config) ->
    #{port := Port} = server(Config),
    Begin = fun(Bytes) ->
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}], ?MS),
        ok = gen_tcp:send(Socket, Bytes),
        Socket
    end,
    Host = ["Host: 127.0.0.1\r\nAuthorization: Bearer ", ?MAIN, "\r\n"],
    Head = Begin(["GET /api/v1/nodes HTTP/1.1\r\n", Host, "X: "]),
    Body = Begin(["POST /api/v1/silences HTTP/1.1\r\n", Host,
                  "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"]),
    {200, _, _} = get("/nodes", Config),
    ?assertMatch(<<"HTTP/1.1 408 ", _/binary>>, drip(Body, ~" ")),
    ?assertMatch(<<"HTTP/1.1 408 ", _/binary>>, drip(Head, ~"x")).

%% Sends a byte each quarter of a second until the server answers.
drip(Socket, Byte) ->
    case gen_tcp:recv(Socket, 0, 250) of
        {ok, Answer} ->
            ok = gen_tcp:close(Socket),
            Answer;
        {error, timeout} ->
            _ = gen_tcp:send(Socket, Byte),
            drip(Socket, Byte);
        {error, Why} -> Why
    end.

%% The rate is counted for each token, and without a token for each address.
limits(Config) ->
    #{port := Port} = server(Config),
    Ask = fun(Path, Token) ->
        {Status, Headers, Body} = sderl_web_client:http(Port, Path, #{
            headers => [{"Authorization", ["Bearer ", Token]}]
        }),
        {Status, Headers, Body}
    end,
    Until = fun Until(Path, Token) ->
        case Ask(Path, Token) of
            {429, Headers, Body} -> {Headers, json:decode(Body)};
            {_, _, _} -> Until(Path, Token)
        end
    end,
    lists:foreach(fun({Path, Token}) ->
        {#{~"retry-after" := After}, #{~"type" := ~"/api/v1/problems/too-many-requests"}} =
            Until(Path, Token),
        ?assert(binary_to_integer(After) >= 1)
    end, [{"/api/v1/session", token(viewer, Config)}, {"/api/v1/session", ~"wrong-token"},
          {"/metrics", token(operator, Config)}]),
    %% Nobody uses up the rate of another.
    {200, _, _} = Ask("/api/v1/session", token(admin, Config)),
    {refused, 429} = refused(Port, ~"wrong-token"),
    ok = sderl_fleet:await(fun() ->
        element(1, Ask("/api/v1/session", token(viewer, Config))) =:= 200
    end, ?MS).

%% Connects until the rate is exceeded, which has to be soon.
refused(Port, Token) ->
    case sderl_web_client:open(Port, Token) of
        {refused, 401} -> refused(Port, Token);
        Other -> Other
    end.

%% ---------------------------------------------------------------- the guide

%% The sessions of docs/rest.md, in one shell, with what they show. "..." is any text, and in an
%% object any other members.
guide(Config) ->
    File = filename:join([code:lib_dir(sderl_web), "../../../..", "docs", "rest.md"]),
    case {file:read_file(File), os:find_executable("curl")} of
        {{ok, Page}, Curl} when Curl =/= false ->
            {match, Blocks} = re:run(Page, "```console\n(.*?)```",
                                     [global, dotall, {capture, all_but_first, binary}]),
            Steps = lists:append([steps(Block) || [Block] <- Blocks]),
            Said = session([Command || {Command, _} <- Steps], Config),
            ?assertEqual(length(Steps), length(Said)),
            [?assertEqual({Command, Expected, ok}, {Command, Got, compared(Expected, Got)})
             || {{Command, Expected}, Got} <- lists:zip(Steps, Said),
                compared(Expected, Got) =/= ok];
        _ -> {skip, "there is no curl, or the documents are not in this tree"}
    end.

steps(Block) ->
    [begin
         [Command | Shown] = binary:split(Step, ~"\n", [global]),
         {Command, [Line || Line <- Shown, Line =/= ~""]}
     end || Step <- binary:split(<<"\n", Block/binary>>, ~"\n$ ", [global]), Step =/= ~""].

session(Commands, Config) ->
    #{port := Port} = server(Config),
    Mark = "-- next --",
    Script = [["URL=http://127.0.0.1:", integer_to_list(Port), "/api/v1\nTOKEN=",
               token(operator, Config), "\n"],
              [[Command, "\necho\necho '", Mark, "'\n"] || Command <- Commands]],
    Shell = open_port({spawn_executable, os:find_executable("bash")},
                      [{args, ["-c", unicode:characters_to_binary(Script)]}, exit_status, binary]),
    Parts = binary:split(output(Shell, ~""), list_to_binary(Mark), [global]),
    [[Line || Line <- binary:split(Part, ~"\n", [global]), Line =/= ~""]
     || Part <- lists:droplast(Parts)].

output(Shell, Said) ->
    receive
        {Shell, {data, Text}} -> output(Shell, <<Said/binary, Text/binary>>);
        {Shell, {exit_status, 0}} -> Said
    end.

compared(Expected, Got) when length(Expected) =/= length(Got) -> {lines, Got};
compared(Expected, Got) ->
    case [Pair || {Wanted, Is} = Pair <- lists:zip(Expected, Got), not is_as(Wanted, Is)] of
        [] -> ok;
        [Pair | _] -> Pair
    end.

is_as(<<"{", _/binary>> = Wanted, Is) -> is_same(json:decode(Wanted), json:decode(Is));
is_as(Wanted, Is) ->
    Parts = [["\\Q", Part, "\\E"] || Part <- binary:split(Wanted, ~"...", [global])],
    match =:= re:run(Is, ["\\A", lists:join(".*", Parts), "\\z"], [{capture, none}]).

is_same(~"...", _) -> true;
is_same(#{} = Wanted, #{} = Is) ->
    Named = maps:remove(~"...", Wanted),
    (is_map_key(~"...", Wanted) orelse map_size(Named) =:= map_size(Is)) andalso
        lists:all(fun({Key, Of}) -> is_map_key(Key, Is) andalso is_same(Of, map_get(Key, Is)) end,
                  maps:to_list(Named));
is_same([Wanted | More], [Is | Rest]) -> is_same(Wanted, Is) andalso is_same(More, Rest);
is_same(Same, Is) -> Same =:= Is.

%% SPDX-License-Identifier: Apache-2.0
%% The arguments of `bin/sderl prof`, and what it prints.
-module(sderl_cli_prof_tests).

-include_lib("eunit/include/eunit.hrl").

-export([served/3]).

help_test_() ->
    [?_assertMatch({0, stdout, _}, sderl_cli:run(["prof" | Args]))
     || Args <- [["--help"], ["record", "--help"], ["report", "--help"], ["open", "--help"],
                 ["fetch", "--help"], ["export", "--help"], ["path", "--help"],
                 ["compare", "--help"], ["vm", "--help"],
                 ["completion", "--help"]]].

usage_test_() ->
    [
        {lists:flatten(lists:join(" ", Args)), fun() ->
            {Status, stderr, Text} = sderl_cli:run(["prof" | Args]),
            Flat = unicode:characters_to_list(Text),
            ?assertEqual({Expected, Flat}, {Status, Flat}),
            ?assertNotEqual({Flat, nomatch}, {Flat, string:find(Flat, Says)})
        end}
     || {Args, Expected, Says} <- [
            {[], 2, "a command is missing"},
            {["wat"], 2, "no command wat"},
            {["record"], 2, "node is missing"},
            {["record", "x"], 2, "no name of a node"},
            {["record", "x@y", "--what", "wat"], 2, "there is no \"wat\""},
            {["record", "x@y", "--what", "calls"], 2, "calls needs modules"},
            {["record", "x@y", "--seconds", "0"], 2, "seconds cannot be"},
            {["record", "x@y", "--mib", "1"], 2, "at least 16"},
            {["record", "x@y", "--max-events-s", "0"], 2, "at least 1"},
            {["record", "--node", "x"], 2, "no name of a node"},
            {["record", "x@y", "--node", "z@y", "--what", "wat"], 2, "there is no \"wat\""},
            {["record", "--all"], 2, "node is missing"},
            {["vm"], 2, "node is missing"},
            {["vm", "x"], 2, "no name of a node"},
            {["vm", "x@y", "--seconds", "0"], 2, "--seconds cannot be 0"},
            {["vm", "x@y", "--modules", ","], 2, "names no module"},
            {["vm", "x@y", "--measure", "call_count"], 2, "needs --modules"},
            {["vm", "x@y", "--measure", "wat"], 2, "call_time"},
            {["vm", "x@y", "--top", "0"], 2, "1"},
            {["vm", "x@y", "--record", "file"], 2, "--probes names"},
            {["vm", "x@y", "--all", "--probes", "gc", "--record", "file"], 2, "of one node"},
            {["fetch"], 2, "file is missing"},
            {["fetch", "/nothing/here"], 1, "/nothing/here"},
            {["report", "/nothing/here"], 1, "/nothing/here"},
            {["report", "/nothing/here", "--by", "run,wat"], 2, "there is no \"wat\""},
            {["report", "/nothing/here", "--by", ","], 2, "there is no"},
            {["path", "/nothing/here"], 1, "/nothing/here"},
            {["path", "/nothing/here", "--from", "2", "--to", "1"], 2, "--from is before --to"},
            {["path", "/nothing/here", "--from", "-1"], 2, "from 0 on"},
            {["path", "/nothing/here", "--to", "wat"], 2, "wat"},
            {["compare", "/nothing/here"], 2, "after is missing"},
            {["compare", "/nothing/here", "/nor/here"], 1, "/nothing/here"},
            {["open", "/nothing/here"], 1, "/nothing/here"},
            {["open", "/nothing/here", "--ip", "wat"], 2, "no address"},
            {["open", "/nothing/here", "--tls-cert", "x"], 2, "--tls-key"},
            {["open"], 2, "file is missing"},
            {["export", "/nothing/here", "--format", "wat", "--out", "x"], 2, "chrome or"}
        ]
    ].

options_test_() ->
    Options = fun(Args) ->
        {ok, Parsed} = sderl_cli_prof_words:options(Args),
        Parsed
    end,
    [
        ?_assertEqual(#{what => [concurrency]}, Options(#{last => false})),
        ?_assertEqual(#{what => [running, message], seconds => 2.5, bytes => 16 * 1_048_576,
                        keep => last, modules => [lists, maps],
                        who => [init, {application, kernel}]},
                      Options(#{what => "running,message", seconds => 2.5, mib => 16, last => true,
                                modules => "lists, maps", who => "init", app => "kernel"})),
        ?_assertEqual(#{what => [concurrency], who => new}, Options(#{who => "new"})),
        ?_assertEqual(#{what => [concurrency], who => [{application, kernel}]},
                      Options(#{app => "kernel"}))
    ].

%% A program of this node from recording to what is printed, as text and as JSON.
report_test_() ->
    {timeout, 300, fun() ->
        Dir = filename:join(filename:basedir(user_cache, "sderl"),
                            lists:concat(["prof-cli-", os:getpid()])),
        try
            {ok, done, Report} = sderl_prof:profile(fun() ->
                {Pid, Ref} = spawn_monitor(fun() -> receive go -> ok end end),
                Pid ! go,
                receive {'DOWN', Ref, process, Pid, normal} -> done end
            end, #{what => [messages, schedulers], dir => Dir}),
            Text = unicode:characters_to_list(
                sderl_cli_prof_show:report(Report, [run, runnable, gc])
            ),
            [?assertNotEqual({Part, nomatch}, {Part, string:find(Text, Part)})
             || Part <- ["Concurrency", "Findings", "Critical path", "Runs longest",
                         "Waits, by place", "Messages", "not shown: garbage collection",
                         "sderl_cli_prof_tests"]],
            All = unicode:characters_to_list(
                sderl_cli_prof_show:report(Report, sderl_prof_report:metrics())
            ),
            [?assertNotEqual({Part, nomatch}, {Part, string:find(All, Part)})
             || Part <- ["Waits longest", "Receives most messages", "Sends most bytes"]],
            #{~"trace" := #{~"problems" := []}} =
                json:decode(iolist_to_binary(json:encode(Report))),
            {ok, Files} = file:list_dir(Dir),
            ?assert(lists:member("book", Files))
        after
            file:del_dir_r(Dir)
        end
    end}.

%% A recording compared with another one, and its path, as text and as JSON, from the command line.
insight_test_() ->
    {timeout, 300, fun() ->
        Root = filename:join(filename:basedir(user_cache, "sderl"),
                             lists:concat(["prof-insight-", os:getpid()])),
        [Before, After] = [filename:join(Root, Name) || Name <- ["before", "after"]],
        try
            [{ok, _, _} = sderl_prof:profile(fun() -> ask(Times) end,
                                             #{what => messages, dir => Dir})
             || {Dir, Times} <- [{Before, 2000}, {After, 3}]],
            Compared = printed(["compare", Before, After]),
            [?assertNotEqual({Compared, nomatch}, {Compared, string:find(Compared, Part)})
             || Part <- ["before ", "after ", "runs, ms", "the recordings last"]],
            #{~"lengths_differ" := true, ~"notes" := [_ | _]} =
                json:decode(unicode:characters_to_binary(
                    printed(["compare", Before, After, "--json"]))),
            Path = printed(["path", Before, "--process", "prof_insight_echo"]),
            [?assertNotEqual({Path, nomatch}, {Path, string:find(Path, Part)})
             || Part <- ["steps", "prof_insight_echo", "its longest steps"]],
            #{~"from" := 0, ~"segments" := [_, _]} =
                json:decode(unicode:characters_to_binary(
                    printed(["path", Before, "--segments", "2", "--json"]))),
            "nothing ran in this part" ++ _ = printed(["path", Before, "--from", "1000"]),
            {1, stderr, Nobody} = sderl_cli:run(["prof", "path", Before, "--process", "nobody"]),
            ?assertNotEqual(nomatch, string:find(Nobody, "no process nobody"))
        after
            file:del_dir_r(Root)
        end
    end}.

ask(Times) ->
    {Pid, Ref} = spawn_monitor(fun() -> echo(Times) end),
    true = register(prof_insight_echo, Pid),
    _ = [begin
             Pid ! {self(), N},
             receive {Pid, N} -> ok end
         end || N <- lists:seq(1, Times)],
    receive {'DOWN', Ref, process, Pid, normal} -> done end.

%% ---------------------------------------------------------------- pages

%% Each answer of a program's recording has the shape that the document of the interface says.
pages_test_() ->
    {timeout, 300, fun() ->
        Dir = filename:join(filename:basedir(user_cache, "sderl"),
                            lists:concat(["prof-pages-", os:getpid()])),
        try
            {ok, done, _} = sderl_prof:profile(fun ping_pong/0,
                                               #{what => [messages, schedulers, calls],
                                                 modules => [?MODULE], dir => Dir}),
            {ok, Book} = sderl_prof:open(Dir, #{}),
            served(Dir, Book, fun answered/1)
        after
            file:del_dir_r(Dir)
        end
    end}.

%% The same of two nodes.
nodes_test_() ->
    {timeout, 300, fun() ->
        Dir = filename:join(filename:basedir(user_cache, "sderl"),
                            lists:concat(["prof-nodes-", os:getpid()])),
        try
            ok = sderl_prof_two_nodes:with_groups(Dir, 20),
            {ok, Book} = sderl_prof_cluster_book:open(Dir, #{}),
            served(Dir, Book, fun(Server) ->
                Get = fun(Path) ->
                    {200, _, Answer} =
                        sderl_web_rest:get(["/profile", Path], ~"token-of-the-test", Server),
                    Answer
                end,
                #{~"nodes" := [#{~"node" := ~"a@h"}, #{~"node" := ~"b@h"}]} = Get(""),
                #{~"nodes" := [#{~"running" := [_, _]}, _]} = Get("/window?columns=2"),
                #{~"sent" := [#{~"count" := 20}, #{~"count" := 20}], ~"whole" := [_, _]} =
                    Get("/traffic"),
                #{~"all" := 4, ~"cells" := [],
                  ~"rows" := [#{~"operation" := ~"s_group:new_s_group/2", ~"ok" := true,
                                ~"node" := ~"a@h", ~"got_nodes" := [~"a@h"]} | _]} =
                    Get("/operations"),
                #{~"count" := 4, ~"rows" := [_], ~"cells" := [[_, _, _, _] | _]} =
                    Get("/operations?limit=1"),
                #{~"sent" := #{~"count" := 3, ~"rows" := [#{~"at" := ~"a@h", ~"first" := ~"g@h"}]},
                  ~"passed" := #{~"count" := 2, ~"rows" := [#{~"at" := ~"b@h"}]},
                  ~"undelivered" := #{~"rows" := [#{~"why" := ~"no_name"}]}} = Get("/routed"),
                #{~"sent" := #{~"count" := 0}} = Get("/routed?from=1200"),
                #{~"path" := #{~"nodes" := [_, _], ~"kinds" := #{~"between" := Between},
                               ~"leads_to" := LeadsTo}} = Get("/path"),
                ?assert(Between > 0),
                ?assert(lists:member(LeadsTo, [~"client at a@h", ~"server at b@h"]))
            end),
            %% And in a terminal.
            {ok, Report} = sderl_prof_cluster_report:make(Dir, #{}),
            Told = unicode:characters_to_list(sderl_cli_prof_cluster_show:report(Report, Dir)),
            [?assertNotEqual({Part, nomatch}, {Part, string:find(Told, Part)})
             || Part <- ["Operations on groups", "new_s_group/2 shop, [a@h,b@h]",
                         "{ok,shop,[a@h]}"]],
            Path = printed(["path", Dir, "--process", "client at a@h"]),
            [?assertNotEqual({Part, nomatch}, {Part, string:find(Path, Part)})
             || Part <- ["between nodes 13.3 %", "from other nodes", "b@h"]],
            ?assertNotEqual(nomatch, string:find(printed(["path", Dir]), "to the last run of "))
        after
            file:del_dir_r(Dir)
        end
    end}.

served(Dir, Book, Fun) ->
    try
        {ok, Web} = sderl_cli_prof_open:check(#{port => 0, token => "token-of-the-test"}),
        {ok, Link} = sderl_cli_prof_open:start(Dir, Book, Web),
        ?assertMatch({_, _}, binary:match(Link, ~"token-of-the-test")),
        {ok, #{port := Port}} = sderl_web:address(),
        Fun(#{port => Port, document => sderl_web_rest:document(Port)})
    after
        _ = sderl_prof_viewer:stop(),
        ok = sderl_web_start:stop(),
        _ = [application:stop(App) || App <- [cowboy, ranch]],
        _ = [application:unset_env(App, Key)
             || App <- [sderl_web, sderl_alarms, sderl_actions],
                {Key, _} <- application:get_all_env(App)]
    end.

ping_pong() ->
    {Pid, Ref} = spawn_monitor(fun() -> echo(100) end),
    true = register(prof_pages_echo, Pid),
    _ = [begin
             Pid ! {self(), N},
             receive {Pid, N} -> ok end
         end || N <- lists:seq(1, 100)],
    receive {'DOWN', Ref, process, Pid, normal} -> done end.

echo(0) -> ok;
echo(N) ->
    receive {From, What} -> From ! {self(), What} end,
    echo(N - 1).

printed(Args) ->
    {0, stdout, Text} = sderl_cli:run(["prof" | Args]),
    unicode:characters_to_list(Text).

%% Messages over gateways, as one node tells them and as several do.
routed_test() ->
    Sent = #{first => ~"g@h", to => ~"shop", whom => ~"till", count => 1234, bytes => 5678},
    Failed = #{to => ~"shop", whom => ~"nobody", why => ~"no_name", count => 2},
    Passed = #{from => ~"a@h", next => ~"b@h", count => 77, bundles => 11},
    One = sderl_cli_prof_groups:routed(#{
        sent => #{count => 1234, bytes => 5678, rows => [Sent]},
        gateways => [#{first => ~"g@h", count => 1234, bytes => 5678}],
        passed => #{count => 77, rows => [Passed]}, delivered => 9,
        undelivered => #{count => 2, rows => [Failed]}
    }),
    Several = sderl_cli_prof_groups:ways(#{
        sent => 1234, passed => 77, delivered => 9, undelivered => 2,
        destinations => [Sent#{from => ~"a@h"}], gateways => [Passed#{gateway => ~"g@h"}],
        failures => lists:duplicate(21, Failed#{at => ~"g@h"})
    }),
    [?assertNotEqual({Part, nomatch}, {Part, string:find(unicode:characters_to_list(Text), Part)})
     || {Text, Parts} <- [
            {One, ["1,234 sent from here (5,678 bytes)", "not delivered to", "no_name", "g@h"]},
            {Several, ["1,234 sent, 77 times passed on", "passed on by", "and 1 more"]}
        ], Part <- Parts],
    ?assertEqual({[], []}, {sderl_cli_prof_groups:routed(null), sderl_cli_prof_groups:ways(null)}).

completion_test() ->
    [begin
         {0, stdout, Script} = sderl_cli:run(["prof", "completion", Shell]),
         [?assertNotEqual({Part, nomatch}, {Part, string:find(Script, Part)})
          || Part <- ["compare", "--process", "--by"]]
     end || Shell <- ["bash", "zsh"]].

answered(Server) ->
    Ask = fun(Path) -> sderl_web_rest:get(["/profile", Path], ~"token-of-the-test", Server) end,
    Get = fun(Path) ->
        {200, _, Answer} = Ask(Path),
        Answer
    end,
    #{~"duration" := _, ~"has_messages" := true} = Get(""),
    #{~"processes" := [#{~"process" := Echo, ~"name" := ~"prof_pages_echo", ~"received" := 100}]} =
        Get("/processes?search=prof_pages_echo"),
    Number = integer_to_list(Echo),
    #{~"processes" := [#{~"process" := Echo}], ~"matching" := 1} =
        Get(["/processes?processes=", Number]),
    #{~"sent_to" := [#{~"count" := 100} | _], ~"waits" := [_ | _], ~"waits_for" := [_ | _]} =
        Get(["/processes/", Number]),
    #{~"lanes" := [#{~"intervals" := Intervals}], ~"exact" := true} =
        Get(["/window?columns=40&processes=", Number]),
    %% A time in the middle of the exchange.
    [_, Midst | _] = lists:nth(length(Intervals) div 2, Intervals),
    Half = integer_to_list(Midst),
    #{~"running" := [_, _, _]} = Get(["/window?columns=3&from=", Half]),
    #{~"rows" := [_ | _]} = Get("/messages?limit=5"),
    #{~"sent" := [], ~"whole" := []} = Get("/traffic"),
    #{~"edges" := [#{~"count" := 100, ~"from" := From, ~"to" := To}, _],
      ~"ends" := [_ | _], ~"passed" := #{~"edges" := 2}, ~"all" := #{~"count" := _}} =
        Get(["/communication?least=100&sort=bytes&around=", Number]),
    ?assert(lists:member(integer_to_binary(Echo), [From, To])),
    #{~"edges" := [_]} = Get("/communication?by=kind&edges=1"),
    #{~"ends" := [#{~"processes" := Many}]} = Get(["/communication?by=node&from=1&to=", Half]),
    ?assert(Many >= 2),
    #{~"top" := #{~"received" := [#{~"number" := _} | _] = Received, ~"gc" := []},
      ~"totals" := #{~"sent" := _}, ~"concurrency" := [_ | _], ~"awake_ns" := _} =
        Get("/report?top=2"),
    ?assertEqual(2, length(Received)),
    #{~"all" := 0, ~"kept" := 0, ~"count" := 0, ~"rows" := []} = Get("/operations"),
    _ = Get(["/messages?from=1&to=", Half]),
    #{~"frames" := [_ | _], ~"of" := ~"whole", ~"whose" := null,
      ~"graph" := #{~"functions" := Functions, ~"edges" := Edges}} = Get("/calls"),
    #{~"of" := ~"part"} = Get(["/calls?from=1&to=", Half]),
    [#{~"function" := F, ~"calls" := 101}] =
        [Row || #{~"name" := ~"sderl_cli_prof_tests:echo/1"} = Row <- Functions],
    ?assertEqual(101, lists:sum([N || [_, G, N, _] <- Edges, G =:= F])),
    #{~"whose" := ~"prof_pages_echo", ~"graph" := #{~"functions" := [_ | _]}} =
        Get(["/calls?process=", Number]),
    #{~"version" := ~"same", ~"line" := Line, ~"first" := First, ~"lines" := Lines,
      ~"why" := null} =
        Get(["/functions/", integer_to_list(F), "/source"]),
    ?assertEqual(~"echo(0) -> ok;", lists:nth(Line - First + 1, Lines)),
    #{~"of" := ~"whole", ~"places" := Places, ~"rows" := [#{~"waits_for" := _} | _]} =
        Get("/waits"),
    ?assert(Places > 0),
    #{~"whose" := ~"prof_pages_echo", ~"count" := Waits, ~"rows" := [#{~"processes" := 1} | _]} =
        Get(["/waits?process=", Number]),
    ?assert(Waits > 0),
    #{~"of" := ~"part"} = Get(["/waits?sort=mean&limit=1&from=1&to=", Half]),
    #{~"of" := ~"part", ~"processes" := [#{~"kind" := ~"process"}]} =
        Get(["/processes?to=", Half, "&processes=", Number]),
    #{~"processes" := _} = Get("/processes?kind=port"),
    #{~"rows" := [#{~"depth" := 0, ~"omitted" := 0} | _]} = Get("/tree"),
    #{~"rows" := [_]} = Get("/tree?limit=1"),
    #{~"found" := _, ~"not_shown" := [_ | _]} = Get("/findings"),
    #{~"path" := #{~"steps" := Steps, ~"segments" := [_ | _]}} = Get("/path"),
    ?assert(Steps > 0),
    #{~"path" := #{~"segments" := [_]}} = Get("/path?segments=1&from=1"),
    #{~"path" := #{~"segments" := Segments}} = Get(["/path?process=", Number]),
    ?assertMatch(#{~"number" := Echo}, lists:last(Segments)),
    #{~"arrows" := [[_, _, _, _, _] | _], ~"count" := Count, ~"elsewhere" := 0} =
        Get(["/arrows?processes=", lists:join(",", [integer_to_list(P)
            || #{~"process" := P} <- map_get(~"processes", Get("/processes"))])]),
    ?assert(Count >= 200),
    %% (Without migration its schedulers are not known.)
    #{~"schedulers" := _, ~"stays" := _, ~"count" := _} = Get(["/stays?process=", Number]),
    #{~"sent" := #{~"count" := 0, ~"rows" := []}, ~"delivered" := 0} = Get("/routed"),
    #{~"elsewhere" := 200} = Get(["/arrows?process=", Number, "&processes=", Number]),
    [?assertMatch({Status, _, #{~"detail" := _}}, Ask(Path)) || {Status, Path} <- [
        {400, "/window?columns=4097"}, {400, "/window?columns=0"},
        {400, "/window?processes=1,x"}, {400, "/window?processes=0"},
        {400, "/window?from=5&to=5"}, {400, ["/window?processes=", lists:join(",",
            lists:duplicate(501, "1"))]},
        {413, ["/window?columns=4096&processes=", lists:join(",",
            [integer_to_list(N) || N <- lists:seq(1, 129)])]},
        {404, "/functions/4000000000/source"}, {400, "/functions/../source"},
        {400, "/functions/0/source"}, {400, "/functions/lists:map/source"},
        {404, "/waits?process=4000000000"}, {400, "/waits?sort=wat"}, {400, "/waits?limit=501"},
        {404, "/calls?process=4000000000"}, {400, "/calls?from=5&to=5"},
        {400, "/processes?sort=wat"}, {404, "/processes/4000000000"}, {400, "/processes/x"},
        {400, "/messages?from=9007199254740991"}, {400, "/path?from=9007199254740991"},
        {404, "/path?process=4000000000"}, {400, "/path?segments=0"}, {400, "/tree?limit=0"},
        {400, "/communication?by=wat"}, {400, "/communication?edges=501"},
        {400, "/communication?ends=0"}, {400, "/communication?least=-1"},
        {400, "/communication?from=5&to=5"}, {400, "/report?top=0"}, {400, "/report?top=1001"},
        {400, "/arrows?processes=x"}, {400, "/arrows?from=7&to=7"}, {400, "/calls?from=5&to=5"},
        {400, "/processes?from=5&to=5"}, {400, "/processes?kind=wat"},
        {400, "/operations?limit=10001"}, {400, "/operations?processes=x"},
        {400, "/operations?from=7&to=7"}, {400, "/routed?from=7&to=7"}, {400, "/routed?limit=0"},
        {400, "/stays"}, {404, "/stays?process=4000000000"}, {400, "/stays?process=1&from=5&to=5"}
    ]],
    Paths = [Id || {Id, _, Path, _} <- sderl_web_rest:operations(map_get(document, Server)),
                   string:prefix(Path, "/api/v1/profile") =/= nomatch
                       orelse string:prefix(Path, "/profile") =/= nomatch],
    ?assertEqual(18, length(Paths)),
    ?assertEqual([], Paths -- sderl_web_rest:answered()).

%% ---------------------------------------------------------------- vm

%% Each part of what a virtual machine tells has its table.
vm_text_test_() ->
    {timeout, 60, fun() ->
        {ok, Report} = sderl_prof_vm:read(node(), #{seconds => 0.2}),
        Lock = #{class => run_queue, tries => 10, collisions => 5, collided => 0.5, ns => 2000,
                 waits => 1, of_time => 0.25},
        Locks = #{classes => [Lock#{type => mutex, locks => 2}],
                  instances => [Lock#{id => ~"1"}, Lock],
                  places => [Lock#{place => ~"erl_process.c:5"}],
                  schedulers => [Lock#{scheduler => 1}]},
        Call = #{function => ~"m:f/0", calls => 2},
        Counters = #{counts => #{~"cycles" => 5}, missing => [],
                     rates => #{instructions_per_cycle => 1.5, memory_bytes_s => 2.0e6,
                                branch_misses => 0.02}},
        Functions = #{event => ~"cpu-clock", rows => [#{function => ~"process_main", share => 0.6,
                                                       object => ~"beam.smp", looks => 3}]},
        [begin
             Text = unicode:characters_to_list(sderl_cli_prof_vm:text(maps:merge(Report, Part))),
             [?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Says)}) || Says <- Words]
         end
         || {Part, Words} <- [
                {#{}, ["Threads", "Schedulers", "Memory, MiB", "eheap_alloc", "% apart",
                       "What it does not tell", "- locks: ", "toolchain/install --lock-counter"]},
                {#{locks => Locks}, ["Locks by class", "Locks by instance", "erl_process.c:5",
                                     "Locks of schedulers", "waited us"]},
                {#{calls => [Call#{ns => 4000, share => 1.0}]}, ["Calls (call_time)", "2.00"]},
                {#{calls => [Call#{words => 40, share => 1.0}], measure => call_memory},
                 ["words each", "20.0"]},
                {#{calls => [Call], measure => call_count}, ["Calls (call_count)", "m:f/0"]},
                {#{counters => Counters}, ["1.50 instructions in a cycle", "2.00 MB a second",
                                           "branch misses: 2.00 %"]},
                {#{probes => #{names => [~"gc_major__start"], places => 2, recorded => ~"/x",
                               counted => [#{probe => ~"gc_major__start", count => 7,
                                             rate => 3.5}]}},
                 ["emulator: 1, at 2 places", "gc_major__start", "3.50",
                  "perf script -i /x"]},
                {#{functions => Functions}, ["Where it runs (perf, cpu-clock)", "process_main"]}
            ]]
    end}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_browser_SUITE).
-moduledoc """
The dashboard as a person uses it: a real cluster, two monitoring nodes, and a browser.

Each case is a scenario of `web/e2e/scenarios/`. One program of Node.js with one browser plays all;
what is to be done to the cluster is done here, when the scenario asks for it. Without a browser or
Node.js the suite is skipped.
""".

-behaviour(ct_suite).

-compile([export_all, nowarn_export_all]).

%% A scenario waits for each thing a minute at most.
-define(SILENCE_MS, 180_000).

suite() -> [{timetrap, {minutes, 10}}].

%% The last case leaves the first monitoring node at another port.
all() ->
    [cluster, pages, names, log, actions, profiles, hostile, time, together, alarms, metrics,
     restart, tokens, keyboard, sizes, unprobed, operations, tracing, recording, profile,
     profile_nodes, samples, tls, takeover].

%% ---------------------------------------------------------------- the cluster

init_per_suite(Config) ->
    %% The path of a Unix socket has to be short.
    Ops = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-web-b-" ++ os:getpid()),
    maybe
        {ok, Browser} ?= program("toolchain/browser", []),
        {ok, _} ?= program("toolchain/web", ["--brief"]),
        {Owner, Shared} =
            start(plan(filename:join(proplists:get_value(priv_dir, Config), "recordings"), Ops),
                  Browser),
        ok = start_profiles(Shared, proplists:get_value(priv_dir, Config)),
        [{owner, Owner}, {shared, Shared#{ops => Ops}} | Config]
    else
        {error, Why} ->
            io:format(user, "the browser tests are skipped: ~ts~n", [Why]),
            {skip, Why}
    end.

end_per_suite(Config) ->
    Owner = proplists:get_value(owner, Config),
    Monitor = monitor(process, Owner),
    Owner ! stop,
    receive {'DOWN', Monitor, process, Owner, _} -> ok end.

%% After a case that failed, the nodes it has killed are started again, and the next case gets a new
%% program and browser.
end_per_testcase(_, Config) ->
    proplists:get_value(tc_status, Config) =:= ok orelse
        (proplists:get_value(owner, Config) ! renew),
    #{fleet := Fleet} = proplists:get_value(shared, Config),
    [{ok, Node} = sderl_fleet:restart(Fleet, Node)
     || Node := #{status := down} <- sderl_fleet:info(Fleet)].

%% The servers that "bin/sderl mon" starts besides the dashboard.
start_profiles(#{fleet := Fleet, watchers := Watchers}, Dir) ->
    lists:foreach(fun(Watcher) ->
        Own = filename:join([Dir, "profiles", Watcher]),
        ok = sderl_fleet:call(Fleet, Watcher, sderl_cli_profiles, start, [Own, 1_000_000_000])
    end, Watchers).

%% A process of its own starts the fleet and the browser's program: they end with the process that
%% started them, and the one that runs init_per_suite ends at once.
start(Plan, Browser) ->
    Self = self(),
    Owner = spawn(fun() ->
        _ = process_flag(trap_exit, true),
        Port = player(Browser),
        {ok, Fleet} = sderl_fleet:start(Plan),
        Self ! {self(), Fleet},
        ok = pass_on(Port, Browser, Self),
        ok = sderl_fleet:stop(Fleet)
    end),
    Monitor = monitor(process, Owner),
    receive
        {Owner, Fleet} ->
            true = demonitor(Monitor, [flush]),
            {Owner, shared(Fleet)};
        {'DOWN', Monitor, process, Owner, Reason} ->
            error(Reason)
    end.

player(Browser) ->
    open_port({spawn_executable, file("toolchain/web")}, [
        {args, ["--run", "node", "e2e/scenario.mjs"]}, {env, [{"SDERL_BROWSER", Browser}]},
        {line, 1_000_000}, binary, exit_status, use_stdio, hide
    ]).

%% What the program prints goes to the case that wrote to it last.
pass_on(Port, Browser, Case) ->
    receive
        {say, From, Line} ->
            %% A program that has just ended takes no input; its exit status comes next.
            _ = try port_command(Port, Line) catch error:badarg -> false end,
            pass_on(Port, Browser, From);
        {'EXIT', Port, _} -> pass_on(Port, Browser, Case);
        {Port, {data, {eol, Line}}} ->
            Case ! {said, Line},
            pass_on(Port, Browser, Case);
        {Port, {exit_status, Status}} ->
            Case ! {ended, Status},
            pass_on(player(Browser), Browser, Case);
        renew ->
            true = port_close(Port),
            pass_on(player(Browser), Browser, Case);
        stop ->
            true = port_close(Port),
            ok
    end.

plan(Recordings, Ops) ->
    Tag = [$a + rand:uniform(26) - 1 || _ <- lists:seq(1, 5)],
    Name = fun(Family, I) -> list_to_atom(lists:concat([Family, I, "-", Tag, "@127.0.0.1"])) end,
    Monitors = [Name("watch", I) || I <- [1, 2]],
    #{
        tag => Tag,
        families => [
            #{name => n, count => 7, apps => [sderl]},
            #{
                name => watch, count => 2, hidden => true, apps => [sderl, sderl_mon, sderl_web],
                env => [
                    {sderl_mon, config, #{seeds => [Name("n", 1), Name("n", 7)],
                                          monitors => Monitors, interval_ms => 500}},
                    {sderl_web, port, 0},
                    {sderl_web, writable, true},
                    {sderl_web, profile, live},
                    {sderl_web, resources, [sderl_cli_profiles_resource]},
                    {sderl_web, recordings, Recordings},
                    {sderl_web, ops, filename:join(Ops, "service")},
                    {sderl_web, token, ~"an-easy-token-of-the-tests"},
                    {sderl_web, tokens_file, Recordings ++ "-tokens.json"}
                ]
            }
        ],
        s_groups => [{red, normal, [{n, [1, 2, 3]}]}, {green, normal, [{n, [3, 4, 5]}]},
                     {blue, normal, [{n, [5, 6, 1]}]}]
    }.

ebin(App) -> filename:join(code:lib_dir(App), "ebin").

shared(Fleet) ->
    {Nodes, Watchers} = lists:split(7, sderl_fleet:nodes(Fleet)),
    Addresses = [Address
                 || W <- Watchers,
                    {ok, Address} <- [sderl_fleet:call(Fleet, W, sderl_web, address, [])]],
    %% When the server starts again it takes the same port.
    [ok = sderl_fleet:call(Fleet, W, application, set_env, [sderl_web, port, Port])
     || {W, #{port := Port}} <- lists:zip(Watchers, Addresses)],
    #{fleet => Fleet, nodes => Nodes, watchers => Watchers, addresses => Addresses}.

%% ---------------------------------------------------------------- scenarios

cluster(Config) -> play(cluster, Config).

pages(Config) -> play(pages, Config).

names(Config) -> play(names, Config).

log(Config) -> play(log, Config).
actions(Config) -> play(actions, Config).

profiles(Config) -> play(profiles, Config).

hostile(Config) -> play(hostile, Config).

time(Config) -> play(time, Config).

together(Config) -> play(together, Config).

alarms(Config) -> play(alarms, Config).

metrics(Config) -> play(metrics, Config).

restart(Config) -> play(restart, Config).

tokens(Config) -> play(tokens, Config).

keyboard(Config) -> play(keyboard, Config).

sizes(Config) -> play(sizes, Config).

unprobed(Config) -> play(unprobed, Config).

%% A service of operations with nodes of its own; its two hosts are folders of this machine.
operations(Config) ->
    #{ops := Ops} = Shared = proplists:get_value(shared, Config),
    Epmd = integer_to_list(sderl_fleet_ct:free_port([{127, 0, 0, 1}], 100)),
    ok = filelib:ensure_path(Ops),
    With = Shared#{epmd => Epmd, file => ops_file(Ops, 2)},
    try
        play(operations, [{shared, With} | proplists:delete(shared, Config)])
    after
        %% No service answers where the scenario has already ended it.
        _ = [ops(Args, With) || Args <- [["destroy", "--yes"], ["stop"]]],
        _ = os:cmd("ERL_EPMD_PORT=" ++ Epmd ++ " epmd -kill"),
        %% The service writes until it has ended.
        ok = sderl_fleet:await(fun() -> file:del_dir_r(Ops) =/= {error, eexist} end, 60_000)
    end.

%% No node starts before the scenario has made the file "go".
ops_file(Ops, Count) ->
    File = filename:join(Ops, "shop.json"),
    Go = unicode:characters_to_binary(filename:join(Ops, "go")),
    ok = file:write_file(File, json:encode(#{
        cluster => ~"shop",
        providers => #{here => #{type => local, hosts => 2}},
        releases => #{code => #{code => [unicode:characters_to_binary(ebin(sderl))],
                                applications => [sderl], start_timeout_s => 600}},
        domains => #{one => #{provider => here}},
        families => #{web => #{
            release => code, domains => [one], count => Count,
            hooks => #{before_start => [~"sh", ~"-c",
                                        <<"until [ -e ", Go/binary, " ]; do sleep 0.1; done">>]}
        }},
        groups => [#{name => shop, nodes => [~"web*"]}]
    })),
    File.

ops([Command | Args], #{ops := Ops, epmd := Epmd}) ->
    program("bin/sderl", ["ops", Command, "--dir", filename:join(Ops, "service") | Args],
            [{"ERL_EPMD_PORT", Epmd}]).

tracing(Config) -> play(tracing, Config).

recording(Config) -> play(recording, Config).

profile_nodes(Config) ->
    try
        play('profile-nodes', Config)
    after
        ok = close_profile()
    end.

samples(Config) ->
    try
        play(samples, Config)
    after
        ok = close_profile()
    end.

profile(Config) ->
    try
        play(profile, Config)
    after
        ok = close_profile()
    end.

tls(Config) -> play(tls, Config).

takeover(Config) -> play(takeover, Config).

play(Scenario, Config) ->
    Shots = proplists:get_value(priv_dir, Config),
    Player = proplists:get_value(owner, Config),
    Shared = (proplists:get_value(shared, Config))#{dir => Shots, player => Player},
    say(Player, (told(Shared))#{play => Scenario, shots => unicode:characters_to_binary(Shots)}),
    case played(Shared) of
        done -> ok;
        {failed, Why} ->
            ct:pal("~ts: ~ts~npictures, where there was a page: ~ts~ts-*.png",
                   [Scenario, Why, Shots, Scenario]),
            ct:fail(Scenario)
    end.

told(#{nodes := Nodes, watchers := Watchers,
       addresses := [#{url := Url, link := Link, token := Token}, #{link := Second}]}) ->
    #{
        url => Url, link => Link, token => Token, second => Second, nodes => Nodes,
        watchers => Watchers,
        groups => #{Group => [lists:nth(I, Nodes) || I <- Is]
                    || {Group, Is} <- [{red, [1, 2, 3]}, {green, [3, 4, 5]}, {blue, [5, 6, 1]}]}
    }.

say(Player, Term) ->
    Player ! {say, self(), [json:encode(Term), $\n]},
    ok.

played(#{player := Player} = Shared) ->
    receive
        {said, Line} ->
            case json:decode(Line) of
                #{~"done" := true} -> done;
                #{~"failed" := Why} -> {failed, Why};
                #{~"do" := What} = Asked ->
                    ok = say(Player, answer(What, Asked, Shared)),
                    played(Shared)
            end;
        {ended, Status} ->
            {failed, io_lib:format("the scenarios' program ended with status ~w", [Status])}
    after ?SILENCE_MS ->
        {failed, "the scenario said nothing for three minutes"}
    end.

answer(What, Asked, Shared) ->
    try
        Result = act(What, Asked, Shared),
        Result#{ok => true}
    catch
        Class:Reason:Stack ->
            #{ok => false,
              error => unicode:characters_to_binary(io_lib:format("~tp", [{Class, Reason, Stack}]))}
    end.

%% ---------------------------------------------------------------- what a scenario may ask for

act(~"kill", #{~"node" := Node}, #{fleet := Fleet}) ->
    ok = sderl_fleet:kill(Fleet, binary_to_existing_atom(Node)),
    #{};
act(~"restart", #{~"node" := Node}, #{fleet := Fleet}) ->
    {ok, _} = sderl_fleet:restart(Fleet, binary_to_existing_atom(Node)),
    #{};
%% The address of a monitoring node that was restarted, as its port has changed.
act(~"address", #{~"node" := Node}, #{fleet := Fleet}) ->
    {ok, Address} = sderl_fleet:call(Fleet, binary_to_existing_atom(Node), sderl_web, address, []),
    maps:with([url, link], Address);
act(~"new_group", #{~"group" := Group, ~"nodes" := Names}, #{fleet := Fleet}) ->
    [First | _] = Nodes = [binary_to_existing_atom(Name) || Name <- Names],
    {ok, _, Joined} = sderl_fleet:call(Fleet, First, s_group, new_s_group, [group(Group), Nodes]),
    [] = Nodes -- Joined,
    #{};
act(~"delete_group", #{~"group" := Group, ~"node" := Node}, #{fleet := Fleet}) ->
    ok = sderl_fleet:call(Fleet, binary_to_existing_atom(Node), s_group, delete_s_group,
                          [group(Group)]),
    #{};
act(~"register", #{~"group" := Group, ~"node" := Name, ~"name" := Text}, #{fleet := Fleet}) ->
    Node = binary_to_existing_atom(Name),
    %% The name's process has to live on: it is the kernel's supervisor.
    Pid = sderl_fleet:call(Fleet, Node, erlang, whereis, [kernel_sup]),
    yes = sderl_fleet:call(Fleet, Node, s_group, register_name,
                           [group(Group), binary_to_atom(Text), Pid]),
    #{pid => list_to_binary(sderl_fleet:call(Fleet, Node, erlang, pid_to_list, [Pid]))};
act(~"traffic", #{~"from" := From, ~"to" := To}, #{fleet := Fleet}) ->
    Node = binary_to_existing_atom(From),
    [sderl_fleet:call(Fleet, Node, erpc, call, [binary_to_existing_atom(To), erlang, node, []])
     || _ <- lists:seq(1, 200)],
    #{};
act(~"log", #{~"node" := Node, ~"level" := Level, ~"text" := Text} = Asked, #{fleet := Fleet}) ->
    %% All lines are written by one call on the node, which exceeds every rate.
    ok = sderl_fleet:call(Fleet, binary_to_existing_atom(Node), ?MODULE, say,
                          [binary_to_existing_atom(Level), Text, maps:get(~"times", Asked, 1)]),
    #{};
%% Starts nodes without the probe's code: two with the library and a group, and one of plain Erlang.
act(~"unprobed", _, #{fleet := Fleet, watchers := [Watcher | _]} = Shared) ->
    Nodes = case unprobed_nodes(Shared) of
        [] ->
            {ok, [B1, B2, _] = New} = sderl_fleet:start_nodes(Fleet, [
                #{name => bare, count => 2, apps => [sderl], paths => [ebin(sderl)]},
                #{name => plain, count => 1, connect_all => true, paths => []}
            ]),
            {ok, slate, [_, _]} =
                sderl_fleet:call(Fleet, B1, s_group, new_s_group, [slate, [B1, B2]]),
            #{seeds := Seeds} = sderl_fleet:call(Fleet, Watcher, sderl_mon, config, []),
            ok = sderl_fleet:call(Fleet, Watcher, sderl_mon, set, [#{seeds => Seeds ++ New}]),
            New;
        Known -> Known
    end,
    #{nodes => Nodes};
%% Which of those nodes run a probe, or have its code.
act(~"probes", _, #{fleet := Fleet} = Shared) ->
    Probed = fun(Node) ->
        sderl_fleet:call(Fleet, Node, erlang, whereis, [sderl_mon_probe]) =/= undefined orelse
            sderl_fleet:call(Fleet, Node, code, which, [sderl_mon_probe]) =/= non_existing
    end,
    #{nodes => lists:filter(Probed, unprobed_nodes(Shared))};
%% Evaluates the line that a page tells an operator to type into the shell.
act(~"type", #{~"text" := Text}, #{fleet := Fleet, watchers := [Watcher | _]}) ->
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Text)),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, ok, _} = sderl_fleet:call(Fleet, Watcher, erl_eval, exprs, [Expressions, []]),
    #{};
%% Runs bin/sderl ops; FILE is the scenario's file.
act(~"ops", #{~"args" := Args}, #{file := File} = Shared) ->
    {ok, Said} = ops([case Arg of ~"FILE" -> File; _ -> binary_to_list(Arg) end || Arg <- Args],
                     Shared),
    #{said => unicode:characters_to_binary(Said)};
act(~"let_start", _, #{ops := Ops}) ->
    ok = file:write_file(filename:join(Ops, "go"), ""),
    #{};
act(~"ops_text", #{~"count" := Count}, #{ops := Ops, file := File}) ->
    {ok, Before} = file:read_file(File),
    {ok, Text} = file:read_file(ops_file(Ops, Count)),
    ok = file:write_file(File, Before),
    #{text => Text};
act(~"stop_server", _, #{fleet := Fleet, watchers := [Watcher | _]}) ->
    ok = sderl_fleet:call(Fleet, Watcher, application, stop, [sderl_web]),
    #{};
act(~"start_server", _, #{fleet := Fleet, watchers := [Watcher | _]}) ->
    ok = sderl_fleet:call(Fleet, Watcher, application, start, [sderl_web]),
    #{};
%% Only the server gets the certificate; the browser does not trust its authority.
act(~"serve_tls", _, #{fleet := Fleet, watchers := [Watcher | _], dir := Dir}) ->
    {Files, _Trust} = sderl_web_certificates:make(Dir),
    serve(Fleet, Watcher, Files);
act(~"serve_plain", _, #{fleet := Fleet, watchers := [Watcher | _]}) ->
    serve(Fleet, Watcher, off);

%% Records a program on this node and opens the recording, as `bin/sderl prof open` does.
act(~"profile", _, #{dir := Dir}) ->
    File = filename:join(Dir, "recording"),
    {ok, _, _} = sderl_prof:profile(fun ask_one/0, #{what => [messages, migration, calls],
                                                     modules => [?MODULE], dir => File}),
    {ok, Book} = sderl_prof:open(File, #{}),
    #{link => opened(File, Book)};
%% A made-up recording of two nodes with known contents.
act(~"profile-nodes", _, #{dir := Dir}) ->
    Folder = filename:join(Dir, "two-nodes"),
    ok = sderl_prof_two_nodes:with_groups(Folder, 50),
    {ok, Book} = sderl_prof_cluster_book:open(Folder, #{}),
    #{link => opened(Folder, Book)};
%% Samples this node, and shows the samples as those of two nodes.
act(~"samples", _, #{dir := Dir}) ->
    Self = self(),
    Asker = spawn(fun() -> ask_on(Self) end),
    receive {Asker, begun} -> ok end,
    File = filename:join(Dir, "samples.json"),
    Samples = fun() ->
        sderl_prof_sampling:sample(node(), #{seconds => 3, mailboxes => [the_slow_server]})
    end,
    {ok, One} = Samples(),
    {ok, Other} = Samples(),
    true = exit(Asker, kill),
    ok = sderl_prof_sampling:write(File, [One, Other#{node => ~"other@host"}]),
    {ok, Reports} = sderl_prof_sampling:read(File),
    #{link => opened(File, {samples, Reports})}.

%% Two clients of a server that computes; all end with the process that calls this, which tells
%% another one when the server has its name.
ask_on(Told) ->
    Server = spawn_link(fun() -> serve_slowly() end),
    true = register(the_slow_server, Server),
    _ = [spawn_link(fun() -> ask_for_ever(Server) end) || _ <- lists:seq(1, 2)],
    Told ! {self(), begun},
    receive stop -> ok end.

ask_for_ever(Server) ->
    ok = ask(Server, 1),
    ask_for_ever(Server).

opened(File, Book) ->
    {ok, Web} = sderl_cli_prof_open:check(#{port => 0}),
    {ok, Link} = sderl_cli_prof_open:start(File, Book, Web),
    Link.

%% Four clients wait for one server, which computes for each answer.
ask_one() ->
    Server = spawn(fun() -> serve_slowly() end),
    true = register(the_slow_server, Server),
    Clients = [spawn_monitor(fun() -> ask(Server, 50) end) || _ <- lists:seq(1, 4)],
    [receive {'DOWN', Ref, process, _, normal} -> ok end || {_, Ref} <- Clients],
    Server ! stop.

serve_slowly() ->
    receive
        {ask, From} ->
            _ = compute(),
            From ! answer,
            serve_slowly();
        stop -> ok
    end.

%% Calls no function of this module, whose calls are recorded.
compute() -> lists:sum(lists:seq(1, 200_000)).

ask(_, 0) -> ok;
ask(Server, Times) ->
    Server ! {ask, self()},
    receive answer -> ask(Server, Times - 1) end.

close_profile() ->
    _ = [gen_server:stop(Viewer) || Viewer <- [sderl_prof_viewer], is_pid(whereis(Viewer))],
    ok = sderl_web_start:stop(),
    _ = [application:stop(App) || App <- [cowboy, ranch]],
    %% The settings for the recording must not reach later cases in this node.
    _ = [application:unset_env(App, Key)
         || App <- [sderl_web, sderl_alarms, sderl_actions],
            {Key, _} <- application:get_all_env(App)],
    ok.

say(Level, Text, Times) ->
    lists:foreach(fun(_) -> ok = logger:log(Level, "~ts", [Text]) end, lists:seq(1, Times)).

serve(Fleet, Watcher, Tls) ->
    Call = fun(Function, Args) ->
        ok = sderl_fleet:call(Fleet, Watcher, application, Function, Args)
    end,
    Call(stop, [sderl_web]),
    Call(set_env, [sderl_web, tls, Tls]),
    Call(start, [sderl_web]),
    {ok, Address} = sderl_fleet:call(Fleet, Watcher, sderl_web, address, []),
    maps:with([url, link], Address).

unprobed_nodes(#{fleet := Fleet, nodes := Nodes, watchers := Watchers}) ->
    (sderl_fleet:nodes(Fleet) -- Nodes) -- Watchers.

%% Only for the names of these scenarios, a small fixed set.
group(Text) -> binary_to_atom(Text).

%% ---------------------------------------------------------------- programs

file(Path) ->
    filename:join([code:lib_dir(sderl_web), "..", "..", "..", "..", Path]).

program(Path, Args) -> program(Path, Args, []).

program(Path, Args, Environment) ->
    Port = open_port({spawn_executable, file(Path)},
                     [{args, Args}, {env, Environment}, binary, exit_status, stderr_to_stdout,
                      use_stdio, hide]),
    said(Port, <<>>).

said(Port, Said) ->
    receive
        {Port, {data, Data}} -> said(Port, <<Said/binary, Data/binary>>);
        {Port, {exit_status, 0}} -> {ok, binary_to_list(string:trim(Said))};
        {Port, {exit_status, _}} -> {error, binary_to_list(string:trim(Said))}
    end.

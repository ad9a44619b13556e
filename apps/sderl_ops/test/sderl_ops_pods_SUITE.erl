%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_pods_SUITE).
-moduledoc """
What is rendered for Kubernetes, with real nodes: the command, environment and ConfigMap of each
pod as `sderl_ops_kubernetes` has them, and the commands of its probes and of preStop. What
Kubernetes adds is done here: fields of the pod, `$(VARIABLE)`, volumes as folders, and names. Pods
have loopback addresses; nodes know their names by an `inetrc`, and `erl_call` by a program in front
of it.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([in_operation/1, all_return/1, lives/1, without_groups/1, hooks/1, no_erl_call/1,
         mix_release/1]).

-import(sderl_ops_awaits, [await/2]).

-define(SOON_MS, 180_000).
-define(BASE, "/sderl").

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [in_operation, all_return, lives, without_groups, hooks, no_erl_call, mix_release].

init_per_suite(Config) ->
    Port = sderl_fleet_ct:free_port([address(I) || I <- lists:seq(1, 6)], 5),
    case {os:find_executable("erl_call"), Port} of
        {false, _} -> {skip, "there is no erl_call"};
        {_, none} -> {skip, "this machine has one loopback address"};
        {_, _} -> [{port, Port} | Config]
    end.

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    Name = lists:concat(["sderl-pods-", os:getpid(), "-", Case]),
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), Name),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder} | Config].

end_per_testcase(_, Config) ->
    Folder = ?config(folder, Config),
    _ = [ct:log("~ts~n~ts", [File, Text]) || File <- filelib:wildcard(Folder ++ "/*/out"),
                                            {ok, Text} <- [file:read_file(File)]],
    _ = [os:cmd("kill -9 " ++ Pid) || File <- filelib:wildcard(Folder ++ "/*/pid"),
                                      {ok, Text} <- [file:read_file(File)],
                                      Pid <- [string:trim(binary_to_list(Text))], Pid =/= ""],
    _ = file:del_dir_r(Folder),
    ok.

%% ---------------------------------------------------------------- cases

%% One set of pods that goes through all changes one after the other.
in_operation(Config) ->
    Pods = start_all(pods(Config, #{})),
    ready(Pods, "well"),
    begin_together(Pods),
    returns_after_drain(Pods),
    returns_after_kill(Pods),
    entered_again(Pods),
    grows(Pods, Config).

%% Names, groups and labels are as for other providers.
begin_together(Pods) ->
    await_members(["web1", "web2", "web3", "db1"], Pods),
    ?assertEqual([], own_nodes(web(1, Pods), orders)),
    ?assertEqual(nodes_of(["db1"]), own_nodes(pod("db1", Pods), orders)),
    ?assertEqual(nodes_of(["web2"]), [ask(web(2, Pods), "atom_to_list(node())")]),
    ?assertEqual({ok, #{disk => ~"ssd"}}, ask(web(2, Pods), "application:get_env(sderl, labels)")),
    ?assertEqual({ok, false}, ask(web(1, Pods), "application:get_env(kernel, connect_all)")),
    ?assertEqual([majority], ask(pod("db1", Pods), "[C || #{group := orders, consistency := C} <- "
                                                   "proplists:get_value(groups, s_group:info())]")),
    %% No port mapper has a part in it.
    ?assertEqual({ok, [["false"]]}, ask(web(1, Pods), "init:get_argument(start_epmd)")).

%% A pod that is replaced leaves its groups first, so that the others have no problem, and enters
%% them before its applications start.
returns_after_drain(Pods) ->
    {0, _} = run(web(2, Pods), ["drain"]),
    ?assertMatch({1, <<"the node is being stopped", _/binary>>},
                 run(web(2, Pods), ["ready", "well"])),
    Others = lists:delete(web(2, Pods), Pods),
    ready(Others, "well"),
    await_members(["web1", "web3", "db1"], Pods),
    stop(web(2, Pods), "TERM"),
    ready(Others, "well"),
    start(web(2, Pods)),
    ready(Pods, "well"),
    await_members(["web1", "web2", "web3", "db1"], Pods),
    ?assertMatch({match, _}, re:run(groups_of(web(2, Pods)), "seeds")),
    ?assertMatch(nomatch, re:run(groups_of(web(1, Pods)), "seeds")).

%% One that is killed stays a member. The others serve meanwhile, and say that they are not well.
returns_after_kill(Pods) ->
    stop(web(3, Pods), "KILL"),
    Others = lists:delete(web(3, Pods), Pods),
    ready(Others, "serves"),
    await(fun() ->
        {Status, Said} = run(web(1, Pods), ["ready", "well"]),
        {Status, match =:= re:run(Said, "shop: no link to", [{capture, none}])} =:= {1, true}
    end, ?SOON_MS),
    ?assertMatch({1, _}, run(web(3, Pods), ["up"])),
    start(web(3, Pods)),
    ready(Pods, "well"),
    ?assertMatch(nomatch, re:run(groups_of(web(3, Pods)), "seeds")).

%% All pods that have left start again together.
all_return(Config) ->
    Pods = start_all(pods(Config, #{config => #{sderl => #{
        state_dir => #{string => ~"/sderl/state"}}}})),
    ready(Pods, "well"),
    lists:foreach(fun(Pod) -> {0, _} = run(Pod, ["drain"]) end, Pods),
    lists:foreach(fun(Pod) -> stop(Pod, "TERM") end, Pods),
    start_all(Pods),
    ready(Pods, "well"),
    await_members(["web1", "web2", "web3", "db1"], Pods).

%% More nodes: pods that run are not started again, and meet the new ones.
grows(Pods, Config) ->
    #{hash := Hash} = web(1, Pods),
    More = pods(Config, #{count => 4}),
    ?assertMatch(#{hash := Hash}, web(1, More)),
    start(web(4, More)),
    ready(More, "well"),
    await_members(["web1", "web2", "web3", "web4", "db1"], Pods).

%% A node that others have removed enters again at the next readiness probe.
entered_again(Pods) ->
    [Out] = nodes_of(["web2"]),
    ok = ask(web(1, Pods), ["s_group:remove_nodes(shop, ['", Out, "'])"]),
    await(fun() -> own_nodes(web(2, Pods), shop) =:= [] end, ?SOON_MS),
    ?assertMatch({1, <<"shop: this node is not in it", _/binary>>},
                 run(web(2, Pods), ["ready", "serves"])),
    ready(Pods, "well").

%% A pod is up, and serves, although no other has started. The liveness probe disturbs nobody, and
%% succeeds where a node does nothing else.
lives(Config) ->
    #{address := Address, base := Base} = Pod = web(1, pods(Config, #{})),
    start(Pod),
    ready([Pod], "serves"),
    Said = file:read_file(filename:join(Base, "out")),
    Probe = fun() ->
        {ok, Socket} = gen_tcp:connect(tuple(Address), ?config(port, Config), []),
        ok = gen_tcp:close(Socket)
    end,
    [Probe() || _ <- lists:seq(1, 20)],
    ready([Pod], "serves"),
    ?assertEqual(Said, file:read_file(filename:join(Base, "out"))),
    {ok, Pid} = file:read_file(filename:join(Base, "pid")),
    _ = os:cmd("kill -STOP " ++ binary_to_list(Pid)),
    Probe(),
    _ = os:cmd("kill -CONT " ++ binary_to_list(Pid)),
    ready([Pod], "serves").

%% A family in no group need not run the library.
without_groups(Config) ->
    {ok, File} = sderl_ops_file:check((file(Config, #{}))#{groups => [],
                                                           releases => #{one => #{
        image => ~"shop:1", start => [~"erl", ~"-noinput", ~"-args_file", ~"/sderl/run/vm.args"]
    }}}, ~"/base"),
    {ok, Parts, _} = sderl_ops_kubernetes:render(File, #{canary => false}),
    Pods = [Pod || {{family, Name}, Objects} <- Parts, Pod <- family(Name, Objects, Config)],
    names(Pods, ?config(folder, Config)),
    start(web(1, Pods)),
    ready([web(1, Pods)], "well"),
    {0, _} = run(web(1, Pods), ["drain"]).

%% Commands of the file, with the variables of their pod; a hook behind the start is run once.
hooks(Config) ->
    Log = filename:join(?config(folder, Config), "log"),
    Note = fun(What) -> [~"sh", ~"-c", text(["echo \"$0\" \"$1\" >>'", Log, "'"]), What,
                         ~"{{id}} it's $HOME"] end,
    Pods = pods(Config, #{hooks => #{before_start => Note(~"before_start"),
                                     after_start => Note(~"after_start"),
                                     before_stop => Note(~"before_stop")},
                          check => [~"sh", ~"-c", text(["test ! -e '", Log, ".ill'"])]}),
    Pod = web(1, Pods),
    start(Pod),
    ready([Pod], "serves"),
    {0, _} = run(Pod, ["up"]),
    ok = file:write_file(Log ++ ".ill", ""),
    ?assertMatch({1, _}, run(Pod, ["ready", "serves"])),
    {0, _} = run(Pod, ["drain"]),
    {ok, Said} = file:read_file(Log),
    ?assertEqual([~"before_start web1 it's $HOME", ~"after_start web1 it's $HOME",
                  ~"before_stop web1 it's $HOME", ~""],
                 binary:split(Said, ~"\n", [global])).

%% Its script takes name and cookie from the environment of the pod, its nodes the rest.
mix_release(Config) ->
    Flags = io_lib:format("-start_epmd false\n-erl_epmd_port ~b\n", [?config(port, Config)]),
    case sderl_ops_mix:release(?config(folder, Config), Flags) of
        {ok, Release} -> mix_release(text(filename:join([Release, "bin", "shop"])), Config);
        Skip -> Skip
    end.

mix_release(Script, Config) ->
    {ok, File} = sderl_ops_file:check(#{
        cluster => shop,
        providers => #{k8s => #{type => kubernetes, port => ?config(port, Config)}},
        releases => #{one => #{image => ~"shop:1", start => [Script, ~"start"]}},
        domains => #{all => #{provider => k8s, labels => #{disk => ssd}}},
        families => #{web => #{release => one, domains => [all], count => 2}},
        groups => [#{name => shop, nodes => [~"web1..web2"]}]
    }, ~"/base"),
    {ok, Parts, _} = sderl_ops_kubernetes:render(File, #{canary => false}),
    Pods = [Pod || {{family, Name}, Objects} <- Parts, Pod <- family(Name, Objects, Config)],
    names(Pods, ?config(folder, Config)),
    start_all(Pods),
    ready(Pods, "well"),
    await_members(["web1", "web2"], Pods),
    ?assertEqual({ok, #{disk => ~"ssd"}}, ask(web(2, Pods), "application:get_env(sderl, labels)")),
    ?assertEqual(1, ask(web(1, Pods), "'Elixir.Shop':next(hd(nodes()))")),
    {0, _} = run(web(2, Pods), ["drain"]),
    stop(web(2, Pods), "TERM"),
    ready([web(1, Pods)], "well"),
    start(web(2, Pods)),
    ready(Pods, "well").

no_erl_call(Config) ->
    #{env := Env} = Pod = web(1, pods(Config, #{})),
    Without = Pod#{env := Env#{~"PATH" => ~"/nonexistent"}},
    {1, Said} = run(Without, ["start", "true"]),
    ?assertMatch({match, _}, re:run(Said, "there is no erl_call in this image")).

%% ---------------------------------------------------------------- pods

%% Each pod has what Kubernetes gives its container.
pods(Config, Options) ->
    {ok, File} = sderl_ops_file:check(file(Config, Options), ~"/base"),
    {ok, Parts, _} = sderl_ops_kubernetes:render(File, #{canary => false}),
    Pods = [Pod || {{family, Name}, Objects} <- Parts, Pod <- family(Name, Objects, Config)],
    names(Pods, ?config(folder, Config)),
    Pods.

file(Config, Options) ->
    Ebin = text(filename:dirname(code:which(s_group))),
    #{
        cluster => shop,
        providers => #{k8s => #{type => kubernetes, port => ?config(port, Config)}},
        releases => #{one => maps:merge(#{
            image => ~"shop:1",
            start => [~"erl", ~"-noinput", ~"-args_file", ~"/sderl/run/vm.args", ~"-pa", Ebin,
                      ~"-eval", ~"{ok, _} = application:ensure_all_started(sderl)."]
        }, maps:with([check], Options))},
        domains => #{all => #{provider => k8s, labels => #{disk => ssd}}},
        families => #{
            web => maps:merge(#{release => one, domains => [all],
                                count => maps:get(count, Options, 3)},
                              maps:with([hooks, config], Options)),
            db => maps:merge(#{release => one, domains => [all], count => 1},
                             maps:with([config], Options))
        },
        groups => [#{name => shop, nodes => [~"web*", ~"db*"]},
                   #{name => orders, nodes => [~"db1"], consistency => majority}]
    }.

family(Name, Objects, Config) ->
    [#{~"data" := Data}] = [Object || #{~"kind" := ~"ConfigMap"} = Object <- Objects],
    [#{~"spec" := #{~"replicas" := Count, ~"ordinals" := #{~"start" := First},
                    ~"template" := #{~"metadata" := #{~"annotations" := Hash},
                                     ~"spec" := #{~"containers" := [Container]}}},
       ~"metadata" := #{~"name" := Set}}] =
        [Object || #{~"kind" := ~"StatefulSet"} = Object <- Objects],
    [pod(text([Set, $-, integer_to_list(Index)]), Index, text([Name, integer_to_list(Index)]),
         Data, Container, Hash, Config)
     || Index <- lists:seq(First, First + Count - 1)].

pod(Pod, Index, Id, Data, Container, Hash, Config) ->
    Base = filename:join(?config(folder, Config), binary_to_list(Pod)),
    Address = inet:ntoa(address(case Id of <<"db", _/binary>> -> 5; _ -> Index end)),
    Fields = #{~"metadata.name" => Pod, ~"status.podIP" => text(Address),
               ~"spec.nodeName" => ~"machine",
               ~"metadata.labels['apps.kubernetes.io/pod-index']" => integer_to_binary(Index)},
    #{~"command" := Command, ~"args" := Args, ~"env" := Variables} = Container,
    Env = environment(Variables, Fields),
    #{id => Id, base => Base, address => Address, hash => Hash, data => Data,
      command => [place(expanded(Word, Env), Base) || Word <- Command ++ Args],
      env => maps:map(fun(_, Value) -> place(Value, Base) end, Env)}.

environment(Variables, Fields) ->
    lists:foldl(fun
        (#{~"name" := Name, ~"value" := Value}, Env) ->
            Env#{Name => expanded(Value, Env)};
        (#{~"name" := Name, ~"valueFrom" := #{~"fieldRef" := #{~"fieldPath" := Path}}}, Env) ->
            Env#{Name => map_get(Path, Fields)};
        (#{~"name" := Name, ~"valueFrom" := #{~"secretKeyRef" := _}}, Env) ->
            Env#{Name => ~"geheim"}
    end, #{}, Variables).

%% As Kubernetes does it: $(NAME), and $$ for $.
expanded(<<"$$", Rest/binary>>, Env) -> <<"$", (expanded(Rest, Env))/binary>>;
expanded(<<"$(", Rest/binary>>, Env) ->
    [Name, After] = binary:split(Rest, ~")"),
    <<(map_get(Name, Env))/binary, (expanded(After, Env))/binary>>;
expanded(<<Char, Rest/binary>>, Env) -> <<Char, (expanded(Rest, Env))/binary>>;
expanded(<<>>, _) -> <<>>.

%% Volumes are folders of the pod.
place(Text, Base) ->
    re:replace(Text, "(?<![A-Za-z0-9])" ?BASE "/", Base ++ "/", [global, {return, binary}]).

text(Chars) -> unicode:characters_to_binary(Chars).

%% What the DNS of Kubernetes says, for nodes and for erl_call.
names(Pods, Folder) ->
    Hosts = [{host_of(Pod), Address} || #{address := Address} = Pod <- Pods],
    Rc = [["{host, ", io_lib:format("~w", [tuple(Address)]), ", [\"", Host, "\"]}.\n"]
          || {Host, Address} <- Hosts],
    ok = file:write_file(filename:join(Folder, "inetrc"), [Rc, "{lookup, [file]}.\n"]),
    Call = filename:join([Folder, "bin", "erl_call"]),
    ok = filelib:ensure_dir(Call),
    Cases = [["    ", Host, ":*) set -- \"$@\" ", Address, ":${last##*:} ;;\n"]
             || {Host, Address} <- Hosts],
    ok = file:write_file(Call, [
        "#!/bin/sh\n"
        "# Names of hosts that are in no DNS.\n"
        "n=$#\n"
        "while [ $n -gt 0 ]; do\n"
        "    last=$1; shift; n=$((n - 1))\n"
        "    case $last in\n", Cases, "    *) set -- \"$@\" \"$last\" ;;\n"
        "    esac\n"
        "done\n"
        "exec ", os:find_executable("erl_call"), " \"$@\"\n"]),
    ok = file:change_mode(Call, 8#755).

host_of(#{env := #{~"SDERL_OPS_NODE" := Node}}) ->
    [_, Host] = binary:split(Node, ~"@"),
    Host.

tuple(Address) ->
    {ok, Tuple} = inet:parse_address(Address),
    Tuple.

start_all(Pods) ->
    lists:foreach(fun start/1, Pods),
    Pods.

%% The container begins.
start(#{base := Base, data := Data, command := [_, Script | Arguments]} = Pod) ->
    Config = filename:join(Base, "config"),
    _ = [ok = filelib:ensure_path(filename:join(Base, Name))
         || Name <- ["config", "cookie", "run", "log", "state"]],
    maps:foreach(fun(Key, Text) ->
        ok = file:write_file(filename:join(Config, Key), place(Text, Base))
    end, Data),
    ok = file:write_file(filename:join([Base, "cookie", "cookie"]), "geheim"),
    Line = ["echo $$ >", Base, "/pid; exec \"$0\" \"$@\" >>", Base, "/out 2>&1"],
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", lists:flatten(Line), "sh", Script | Arguments]},
                      {env, variables(Pod)}, exit_status]),
    await(fun() -> filelib:is_file(filename:join(Base, "pid")) end, ?SOON_MS),
    Port.

variables(#{env := Env, address := Address, base := Base}) ->
    Folder = filename:dirname(Base),
    Path = filename:join(Folder, "bin") ++ ":" ++ os:getenv("PATH"),
    Listen = io_lib:format("-kernel inet_dist_use_interface ~w", [tuple(Address)]),
    Own = #{~"PATH" => text(Path), ~"SDERL_OPS_BASE" => text(Base),
            ~"ERL_INETRC" => text(filename:join(Folder, "inetrc")),
            ~"ERL_FLAGS" => text(Listen),
            ~"ERL_ZFLAGS" => ~"", ~"ERL_AFLAGS" => ~""},
    [{binary_to_list(Name), binary_to_list(Value)} || Name := Value <- maps:merge(Own, Env)].

%% The container ends.
stop(#{base := Base}, Signal) ->
    File = filename:join(Base, "pid"),
    {ok, Text} = file:read_file(File),
    Pid = string:trim(binary_to_list(Text)),
    _ = os:cmd("kill -" ++ Signal ++ " " ++ Pid),
    await(fun() -> not filelib:is_dir("/proc/" ++ Pid) end, ?SOON_MS),
    ok = file:delete(File).

%% A command in the container, as of a probe.
run(#{base := Base} = Pod, Words) ->
    Script = filename:join([Base, "config", "pod.sh"]),
    ok = filelib:ensure_dir(Script),
    _ = filelib:is_file(Script) orelse
        begin #{data := #{~"pod.sh" := Text}} = Pod, file:write_file(Script, Text) end,
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, [Script | Words]}, {env, variables(Pod)}, binary, exit_status,
                      stderr_to_stdout]),
    output(Port, <<>>).

output(Port, Said) ->
    receive
        {Port, {data, Bytes}} -> output(Port, <<Said/binary, Bytes/binary>>);
        {Port, {exit_status, Status}} -> {Status, Said}
    end.

%% Both probes say so.
ready(Pods, Mode) ->
    lists:foreach(fun(#{base := Base} = Pod) ->
        await(fun() ->
            case {run(Pod, ["up"]), run(Pod, ["ready", Mode])} of
                {{0, _}, {0, _}} -> true;
                Other -> {Base, Other, file:read_file(filename:join(Base, "out"))}
            end
        end, ?SOON_MS)
    end, Pods).

web(Index, Pods) -> pod("web" ++ integer_to_list(Index), Pods).

pod(Id, Pods) ->
    [Pod] = [Pod || #{id := Of} = Pod <- Pods, Of =:= text(Id)],
    Pod.

nodes_of(Ids) ->
    lists:sort([lists:flatten([Id, "@shop-", Family, "-", Index, ".shop-", Family,
                               ".default.svc.cluster.local"])
                || Id <- Ids, {Family, Index} <- [lists:split(length(Id) - 1, Id)]]).

%% Of the group shop, as the first node knows it: who is ready may be told of before that.
await_members(Ids, Pods) ->
    Expected = nodes_of(Ids),
    await(fun() ->
        Members = own_nodes(web(1, Pods), shop),
        Members =:= Expected orelse Members
    end, ?SOON_MS).

own_nodes(Pod, Group) ->
    lists:sort(ask(Pod, ["[atom_to_list(N) || N <- s_group:own_nodes(", atom_to_list(Group),
                         ")]"])).

%% The value of an expression on the node.
ask(#{address := Address, env := #{~"SDERL_OPS_PORT" := Port}} = Pod, Expression) ->
    Text = ["io:format(\"~tp.\", [begin ", Expression, " end])."],
    Line = text(["echo '", string:replace(Text, "'", "'\\''", all), "' | erl_call -r -timeout 20 "
                 "-fetch_stdout -no_result_term -e -address ", Address, ":", Port]),
    Shell = open_port({spawn_executable, "/bin/sh"},
                      [{args, ["-c", Line]}, {env, variables(Pod)}, binary, exit_status,
                       stderr_to_stdout]),
    {0, Said} = output(Shell, <<>>),
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Said)),
    {ok, Answer} = erl_parse:parse_term(Tokens),
    Answer.

groups_of(#{base := Base}) ->
    {ok, Text} = file:read_file(filename:join([Base, "run", "groups.config"])),
    Text.

%% ---------------------------------------------------------------- addresses

address(Index) -> {127, 0, 91, Index}.

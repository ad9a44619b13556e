%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_import_SUITE).
-moduledoc """
Clusters of real nodes that nobody of operations has started: they are found from one node, and the
service takes them over as they run.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(sderl_ops_awaits, [free_port/0]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([taken_over/1, handed_back/1, short_names/1, not_found/1, out_of_order/1]).

-define(PATIENCE_MS, 180_000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [taken_over, not_found, out_of_order | sderl_ct:in_long_runs([handed_back, short_names])].

init_per_suite(Config) ->
    case os:type() of
        {unix, linux} -> Config;
        _ -> {skip, "processes are found in /proc"}
    end.

end_per_suite(_) -> ok.

%% A port mapper of its own, which also what this process starts has.
init_per_testcase(Case, Config) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["sderl-ops-i-", Case, "-", os:getpid()])),
    _ = file:del_dir_r(Folder),
    ok = filelib:ensure_path(Folder),
    Before = os:getenv("ERL_EPMD_PORT"),
    true = os:putenv("ERL_EPMD_PORT", integer_to_list(free_port())),
    [{folder, Folder}, {epmd, Before} | Config].

end_per_testcase(_, Config) ->
    Folder = ?config(folder, Config),
    _ = [os:cmd("kill -9 " ++ Pid) || Pid <- processes_of(Folder)],
    ok = sderl_ops_awaits:end_epmd(os:getenv("ERL_EPMD_PORT")),
    true = case ?config(epmd, Config) of
        false -> os:unsetenv("ERL_EPMD_PORT");
        Port -> os:putenv("ERL_EPMD_PORT", Port)
    end,
    _ = file:del_dir_r(Folder),
    ok.

%% ---------------------------------------------------------------- cases

%% Adopted nodes run on unchanged; then the service stops and starts them like others.
taken_over(Config) ->
    Nodes = [~"web1@127.0.0.1", ~"web2@127.0.0.1", ~"web3@127.0.0.1"],
    Cookie = cookie(~"shop", Config),
    Pids = start_nodes(Nodes, "-name", library(), ~"shop", Config),
    Envoy = envoy(long, ~"shop"),
    {ok, shop, _} = call(hd(Nodes), s_group, new_s_group, [shop, atoms(Nodes)], Envoy),
    Till = call(hd(Nodes), erlang, whereis, [kernel_sup], Envoy),
    yes = call(hd(Nodes), s_group, register_name, [shop, till, Till], Envoy),
    await(fun() ->
        Till =:= call(~"web3@127.0.0.1", s_group, whereis_name, [shop, till], Envoy)
    end),

    {ok, Text, _} = draft(hd(Nodes), Cookie),
    #{~"families" := #{~"web" := #{~"count" := 3,
                                   ~"nodes" := [~"web1@127.0.0.1..web3@127.0.0.1"],
                                   ~"release" := ~"code"}},
      ~"groups" := [#{~"name" := ~"shop", ~"nodes" := [#{~"family" := ~"web"}]}]} = File =
        json:decode(iolist_to_binary(Text)),
    start_service(Config),
    #{~"steps" := []} = ask(#{do => plan, file => write(File, Config)}, Config),
    #{~"state" := ~"steady"} = ask(#{do => apply, file => write(File, Config)}, Config),
    ?assertEqual([{~"web1", ~"adopted"}, {~"web2", ~"adopted"}, {~"web3", ~"adopted"}],
                 instances(Config)),
    kill_service(Config),
    start_service(Config),
    await(fun() -> state(Config) =:= ~"steady" end),
    ?assertEqual([~"adopted"], lists:usort([State || {_, State} <- instances(Config)])),
    %% Nothing was restarted, and nobody has left a group.
    ?assertEqual(Pids, [os_pid(Node, Envoy) || Node <- Nodes]),
    ?assertEqual(Till, call(~"web2@127.0.0.1", s_group, whereis_name, [shop, till], Envoy)),

    #{~"state" := ~"steady"} = ask(#{do => drain, instance => ~"web2"}, Config),
    ?assertEqual([{~"web1", ~"adopted"}, {~"web2", ~"drained"}, {~"web3", ~"adopted"}],
                 instances(Config)),
    await_ended([lists:nth(2, Pids)]),
    #{~"state" := ~"steady"} = ask(#{do => undrain, instance => ~"web2"}, Config),
    ?assertEqual([{~"web1", ~"adopted"}, {~"web2", ~"up"}, {~"web3", ~"adopted"}],
                 instances(Config)),

    #{~"families" := #{~"web" := Web}} = File,
    Changed = File#{~"families" := #{~"web" => Web#{~"config" => #{sderl => #{tick_ms => 900}}}},
                    ~"upgrade" => #{wait_s => 1}},
    #{~"steps" := Steps} = ask(#{do => plan, file => write(Changed, Config)}, Config),
    ?assertEqual([~"stop web1", ~"stop web2", ~"stop web3"],
                 lists:sort([Step || <<"stop ", _/binary>> = Step <- Steps])),
    #{~"state" := ~"steady"} = ask(#{do => apply, file => write(Changed, Config)}, Config),
    ?assertEqual([~"up"], lists:usort([State || {_, State} <- instances(Config)])),
    await_ended(Pids),
    ?assertEqual(lists:sort(atoms(Nodes)),
                 lists:sort(proplists:get_value(shop, call(hd(Nodes), s_group, own_s_groups, [],
                                                           Envoy)))),
    #{~"state" := ~"destroyed"} = ask(#{do => destroy}, Config),
    ok = gen_server:stop(Envoy).

%% Nodes that were taken over are handed back: one of them, so that it is left alone when the file
%% changes and when it dies, and at the end all.
handed_back(Config) ->
    Nodes = [~"web1@127.0.0.1", ~"web2@127.0.0.1", ~"web3@127.0.0.1"],
    Cookie = cookie(~"shop", Config),
    [Pid1, Pid2, Pid3] = start_nodes(Nodes, "-name", library(), ~"shop", Config),
    Envoy = envoy(long, ~"shop"),
    {ok, shop, _} = call(hd(Nodes), s_group, new_s_group, [shop, atoms(Nodes)], Envoy),
    {ok, Text, _} = draft(hd(Nodes), Cookie),
    start_service(Config),
    #{~"families" := #{~"web" := Web}} = File = json:decode(iolist_to_binary(Text)),
    #{~"state" := ~"steady"} = ask(#{do => apply, file => write(File, Config)}, Config),
    [?assertMatch({error, _, []}, refused(Request, Config))
     || Request <- [#{do => release, instance => ~"web9"}, #{do => adopt, instance => ~"web2"}]],

    #{~"released" := [~"web2"]} = ask(#{do => release, instance => ~"web2"}, Config),
    kill_service(Config),
    start_service(Config),
    await(fun() -> state(Config) =:= ~"steady" end),
    ?assertEqual([{~"web1", ~"adopted"}, {~"web2", ~"released"}, {~"web3", ~"adopted"}],
                 instances(Config)),
    [?assertMatch({error, _, []}, refused(Request, Config))
     || Request <- [#{do => drain, instance => ~"web2"}, #{do => release, instance => ~"web2"}]],
    Changed = File#{~"families" := #{~"web" => Web#{~"config" => #{sderl => #{tick_ms => 900}}}},
                    ~"upgrade" => #{wait_s => 1}},
    #{~"state" := ~"steady"} = ask(#{do => apply, file => write(Changed, Config)}, Config),
    ?assertEqual([{~"web1", ~"up"}, {~"web2", ~"released"}, {~"web3", ~"up"}], instances(Config)),
    await_ended([Pid1, Pid3]),
    ?assert(is_alive(Pid2)),
    %% The nodes that were replaced are in the group that it has never left.
    [?assertEqual(lists:sort(atoms(Nodes)),
                  lists:sort(proplists:get_value(shop, call(Node, s_group, own_s_groups, [],
                                                            Envoy)))) || Node <- Nodes],

    %% Adopted again it is replaced, because the file says something else by now.
    #{~"state" := ~"steady"} = ask(#{do => adopt, instance => ~"web2"}, Config),
    ?assertEqual([~"up"], lists:usort([State || {_, State} <- instances(Config)])),
    await_ended([Pid2]),
    #{~"state" := ~"destroyed"} = ask(#{do => destroy}, Config),

    %% All nodes are handed back: destroy then only makes the service forget them.
    [Pid] = start_nodes([~"db1@127.0.0.1"], "-name", library(), ~"shop", Config),
    {ok, Alone, _} = draft(~"db1@127.0.0.1", Cookie),
    Db = json:decode(iolist_to_binary(Alone)),
    #{~"state" := ~"steady"} = ask(#{do => apply, file => write(Db, Config)}, Config),
    #{~"released" := [~"db1"]} = ask(#{do => release}, Config),
    #{~"state" := ~"destroyed"} = ask(#{do => destroy}, Config),
    ?assert(is_alive(Pid)),
    ok = gen_server:stop(Envoy).

%% One node has the library, the other is a stock one with a name like no other's.
short_names(Config) ->
    [One, Other] = Nodes = [~"a@localhost", ~"b_7-x@localhost"],
    Cookie = cookie(~"short", Config),
    [PidOne] = start_nodes([One], "-sname", library(), ~"short", Config),
    [PidOther] = start_nodes([Other], "-sname", [], ~"short", Config),
    Envoy = envoy(short, ~"short"),
    true = call(One, net_kernel, connect_node, [binary_to_atom(Other)], Envoy),
    {ok, Text, Points} = draft(Other, Cookie),
    #{~"names" := ~"short", ~"families" := Families} = File = json:decode(iolist_to_binary(Text)),
    ?assertEqual(Nodes, lists:sort(lists:append([Of || _ := #{~"nodes" := Of} <- Families]))),
    ?assertMatch([_ | _], [Point || Point <- Points,
                                    string:find(Point, "how its nodes are started") =/= nomatch]),
    start_service(Config),
    #{~"state" := ~"steady"} = ask(#{do => apply, file => write(File, Config)}, Config),
    ?assertEqual([PidOne, PidOther], [os_pid(Node, Envoy) || Node <- Nodes]),
    %% A node that dies, and that nobody knows how to start, is a problem.
    _ = os:cmd("kill -9 " ++ PidOther),
    await(fun() -> state(Config) =:= ~"failed" end),
    #{~"problems" := [Problem | _]} = ask(#{do => status}, Config),
    ?assertMatch({match, _}, re:run(Problem, "not known how the release plain is started")),
    ?assertEqual(PidOne, os_pid(One, Envoy)),
    ok = gen_server:stop(Envoy).

%% Each with its own sentence; and two clusters of one machine do not see each other.
not_found(Config) ->
    Good = cookie(~"good", Config),
    Bad = cookie(~"bad", Config),
    [A, B] = [~"one@127.0.0.1", ~"two@127.0.0.1"],
    _ = start_nodes([A], "-name", [], ~"good", Config),
    _ = start_nodes([B], "-name", [], ~"bad", Config),
    ?assertMatch([A], nodes_of(draft(A, Good))),
    ?assertMatch([B], nodes_of(draft(B, Bad))),
    [?assertMatch({Seed, {match, _}}, {Seed, re:run(said(draft(Seed, Cookie)), Says)})
     || {Seed, Cookie, Says} <- [
            {A, Bad, "refuses the connection: is the cookie"},
            {~"nobody@127.0.0.1", Good, "does not run: the port mapper of 127.0.0.1"},
            {~"one@no.such.machine.invalid", Good, "no.such.machine.invalid is unknown here"},
            {~"one", Good, "is no name of a node"},
            {~"@", Good, "is no name of a node"},
            {A, filename:join(?config(folder, Config), "none"), "cannot be read"}]].

%% A node that hangs or ends while it is asked is left out and listed.
out_of_order(Config) ->
    Nodes = [One, Still, Gone] = [~"n1@127.0.0.1", ~"n2@127.0.0.1", ~"n3@127.0.0.1"],
    Cookie = cookie(~"odd", Config),
    [_, Pid, Other] = start_nodes(Nodes, "-name", library(), ~"odd", Config),
    Envoy = envoy(long, ~"odd"),
    {ok, g, _} = call(One, s_group, new_s_group, [g, atoms(Nodes)], Envoy),
    _ = os:cmd("kill -STOP " ++ Pid),
    _ = os:cmd("kill -9 " ++ Other),
    await(fun() ->
        Seen = {lists:member(binary_to_atom(Gone), call(One, erlang, nodes, [], Envoy)),
                mapped(Gone, Envoy)},
        Seen =:= {false, {ok, no}} orelse Seen
    end),
    {ok, Text, Points} = draft(One, Cookie),
    ?assertEqual([One], nodes_of({ok, Text, Points})),
    All = unicode:characters_to_binary(lists:join("\n", Points)),
    [?assertMatch({Says, {match, _}}, {Says, re:run(All, Says)})
     || Says <- [[Still, " is left out"], [Gone, " is left out: it does not run"],
                 ["g goes on with ", Still]]],
    _ = os:cmd("kill -CONT " ++ Pid),
    ok = gen_server:stop(Envoy).

%% ---------------------------------------------------------------- nodes

library() -> ["-pa", filename:dirname(code:which(s_group)), "-eval",
              "application:ensure_all_started(sderl)."].

start_nodes(Nodes, Kind, More, Cookie, Config) ->
    Pids = [start_node(Node, Kind, More, Cookie, Config) || Node <- Nodes],
    Names = case Kind of "-name" -> long; "-sname" -> short end,
    Envoy = envoy(Names, Cookie),
    [await(fun() -> is_ready(Node, More, Envoy) end) || Node <- Nodes],
    ok = gen_server:stop(Envoy),
    Pids.

is_ready(Node, More, Envoy) ->
    try call(Node, application, which_applications, [], Envoy) of
        Running -> More =:= [] orelse lists:keymember(sderl, 1, Running)
    catch
        error:_ -> false
    end.

%% It does not end with its standard input.
start_node(Node, Kind, More, Cookie, Config) ->
    Port = open_port({spawn_executable, os:find_executable("erl")}, [
        {args, ["-noinput", Kind, binary_to_list(Node), "-setcookie", binary_to_list(Cookie),
                "-connect_all", "false", "+sbwt", "none" | More]},
        {cd, ?config(folder, Config)}, {env, [{"SDERL_TEST", ?config(folder, Config)}]},
        stderr_to_stdout
    ]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    integer_to_list(Pid).

envoy(Names, Cookie) ->
    {ok, Envoy} = sderl_ops_envoy:start_link(#{cluster => ~"test", names => Names,
                                               cookie => fun() -> Cookie end}),
    Envoy.

call(Node, Module, Function, Args, Envoy) ->
    case sderl_ops_envoy:call(Envoy, erpc, call,
                              [binary_to_atom(Node), Module, Function, Args, 60_000]) of
        {ok, Value} -> Value;
        {error, Why} -> error(Why)
    end.

%% Asked by the envoy, as a virtual machine goes on asking the port mapper that it had at its start.
mapped(Node, Envoy) -> sderl_ops_envoy:call(Envoy, sderl_ops_nodes, mapped, [Node]).

os_pid(Node, Envoy) -> call(Node, os, getpid, [], Envoy).

is_alive(Pid) -> filelib:is_dir("/proc/" ++ Pid).

%% A node has stopped when the port mapper no longer has it, and its process ends after that.
await_ended(Pids) ->
    await(fun() ->
        Left = [Pid || Pid <- Pids, is_alive(Pid)],
        Left =:= [] orelse Left
    end).

atoms(Nodes) -> [binary_to_atom(Node) || Node <- Nodes].

cookie(Cookie, Config) ->
    File = filename:join(?config(folder, Config), "cookie-" ++ binary_to_list(Cookie)),
    ok = file:write_file(File, Cookie),
    ok = file:change_mode(File, 8#600),
    File.

%% ---------------------------------------------------------------- files

draft(Seed, Cookie) -> sderl_ops_import:draft(#{seed => Seed, cookie_file => Cookie}).

said({error, Sentence}) -> unicode:characters_to_binary(Sentence).

nodes_of({ok, Text, _}) ->
    #{~"families" := Families} = json:decode(iolist_to_binary(Text)),
    lists:sort(lists:append([Nodes || _ := #{~"nodes" := Nodes} <- Families])).

write(File, Config) -> sderl_ops_asks:write(File, ?config(folder, Config)).

%% ---------------------------------------------------------------- the service

service(Config) -> filename:join(?config(folder, Config), "s").

start_service(Config) -> ok = sderl_ops_background:start(service(Config), sderl_ops_command).

kill_service(Config) ->
    #{~"pid" := Pid} = ask(#{do => hello}, Config),
    _ = os:cmd("kill -9 " ++ integer_to_list(Pid)),
    await(fun() -> not is_alive(integer_to_list(Pid)) end).

ask(Request, Config) ->
    Tell = fun(Told) -> ct:log("~0tp", [Told]) end,
    {done, Done} = sderl_ops_client:ask(service(Config), Request#{who => ~"tester"}, Tell),
    Done.

refused(Request, Config) ->
    sderl_ops_client:ask(service(Config), Request#{who => ~"tester"}, fun(_) -> ok end).

state(Config) ->
    #{~"state" := State} = ask(#{do => status}, Config),
    State.

instances(Config) ->
    #{~"instances" := Instances} = ask(#{do => status}, Config),
    [{Id, State} || #{~"id" := Id, ~"state" := State} <- Instances].

processes_of(Folder) ->
    [Pid || Pid <- element(2, file:list_dir("/proc")), hd(Pid) >= $0, hd(Pid) =< $9,
            Pid =/= os:getpid(), has(Folder, Pid, "environ") orelse has(Folder, Pid, "cmdline"),
            file:read_file("/proc/" ++ Pid ++ "/comm") =/= {ok, ~"epmd\n"}].

has(Text, Pid, File) ->
    case file:read_file(filename:join(["/proc", Pid, File])) of
        {ok, Bytes} -> binary:match(Bytes, list_to_binary(Text)) =/= nomatch;
        {error, _} -> false
    end.

await(Fun) -> sderl_ops_awaits:await(Fun, ?PATIENCE_MS).

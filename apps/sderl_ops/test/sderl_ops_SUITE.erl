%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_SUITE).
-moduledoc """
The service with real nodes on this machine: a virtual machine of its own, which is killed where a
case says so, and asked over its socket.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(sderl_ops_awaits, [free_port/0]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([from_a_file/1, a_mix_release/1, in_operation/1, killed_anywhere/1, asked_wrongly/1]).

-define(PATIENCE_MS, 120_000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [from_a_file, in_operation, killed_anywhere, asked_wrongly
     | sderl_ct:in_long_runs([a_mix_release])].

init_per_suite(Config) ->
    case os:type() of
        {unix, linux} -> Config;
        _ -> {skip, "processes are found in /proc"}
    end.

end_per_suite(_) -> ok.

%% A port mapper of its own, so that no node of another suite has one of these names.
init_per_testcase(Case, Config) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["sderl-ops-", Case, "-", os:getpid()])),
    _ = file:del_dir_r(Folder),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder}, {epmd, free_port()} | Config].

end_per_testcase(_, Config) ->
    kill_service(Config),
    _ = [os:cmd("kill -9 " ++ Pid) || Pid <- processes_of(Config)],
    ok = sderl_ops_awaits:end_epmd(integer_to_list(?config(epmd, Config))),
    _ = file:del_dir_r(?config(folder, Config)),
    ok.

%% ---------------------------------------------------------------- cases

from_a_file(Config) ->
    start_service(Config),
    #{~"cluster" := null} = ask(hello, #{}, Config),
    File = write(cluster(3), Config),
    #{~"steps" := Steps, ~"refused" := []} = ask(plan, #{file => File}, Config),
    ?assert(length(Steps) >= 8),
    Socket = send(apply, #{file => File}, Config),
    {Totals, #{~"state" := ~"steady", ~"revision" := 1, ~"problems" := []}} =
        totals(Socket, []),
    ?assertEqual([hd(Totals)], lists:usort(Totals)),
    ?assertEqual([{~"web1", ~"up"}, {~"web2", ~"up"}, {~"web3", ~"up"}], instances(Config)),
    #{~"groups" := [#{~"name" := ~"shop", ~"running" := 3, ~"state" := ~"whole"}]} =
        ask(status, #{}, Config),
    #{~"steps" := []} = ask(plan, #{file => File}, Config),
    #{~"steps" := []} = ask(remaining, #{}, Config),
    %% The dashboard has the same.
    {ok, Answer} = sderl_web_ops:answer(service_folder(Config)),
    ?assertMatch(#{~"status" := #{~"cluster" := _, ~"state" := ~"steady", ~"progress" := null,
                                  ~"doing" := [], ~"instances" := [_, _, _]},
                   ~"revisions" := [#{~"revision" := 1}], ~"steps" := []},
                 json:decode(iolist_to_binary(Answer))),
    proposed(cluster(3), Config),
    coordinator_drained(Config),
    from_outside(File, Config),
    #{~"state" := ~"steady", ~"revision" := 3} =
        ask(scale, #{family => ~"web", count => 4}, Config),
    #{~"state" := ~"steady"} = ask(scale, #{family => ~"web", count => 1}, Config),
    ?assertEqual([{~"web1", ~"up"}], instances(Config)),
    last_drained(Config),
    #{~"state" := ~"destroyed"} = ask(destroy, #{}, Config),
    ?assertEqual([], processes_of(Config)),
    %% The folder is free for another cluster.
    Other = write((cluster(1))#{cluster => ~"other"}, Config),
    #{~"state" := ~"steady"} = ask(apply, #{file => Other}, Config).

%% Over HTTP the file that was applied last is applied again, whatever it is called.
from_outside(File, Config) ->
    Change = fun(Request) ->
        sderl_web_ops:change(Request#{wait => false}, ~"ann", service_folder(Config))
    end,
    {ok, #{state := ~"working", revision := 2, file := File}} =
        Change(#{do => apply, force => false}),
    #{~"revisions" := [#{~"who" := ~"rest:ann", ~"what" := <<"apply ", File/binary>>}, _]} =
        ask(history, #{}, Config),
    {error, not_found, _} = Change(#{do => undrain, instance => ~"web9"}),
    {error, not_found, _} = Change(#{do => scale, family => ~"nobody", count => 2}).

%% The last member of a group is drained only by force.
last_drained(Config) ->
    {error, _, [<<"web1 is the only member of the group shop, ", _/binary>>]} =
        ask_any(drain, #{instance => ~"web1"}, Config),
    #{~"state" := ~"steady"} = ask(status, #{}, Config),
    ?assertEqual([{~"web1", ~"up"}], instances(Config)),
    #{~"state" := ~"steady"} = ask(drain, #{instance => ~"web1", force => true}, Config),
    ?assertEqual([{~"web1", ~"drained"}], instances(Config)).

%% A text is planned like a file, and uses nothing on the machine that the newest revision does not
%% name.
proposed(#{providers := Providers, releases := Releases, families := #{web := Web}} = Cluster,
         Config) ->
    Plan = fun(Text) ->
        case sderl_web_ops:plan(iolist_to_binary(Text), false, ~"ann", service_folder(Config)) of
            {ok, Plan} -> Plan;
            {error, Code, Why} -> {Code, unicode:characters_to_binary(Why)}
        end
    end,
    Of = fun(Changed) -> Plan(json:encode(maps:merge(Cluster, Changed))) end,
    Refused = fun(Part, {bad_request, Why}) ->
        ?assertMatch({_, _, {_, _}}, {Part, Why, binary:match(Why, Part)})
    end,
    ?assertEqual(#{changes => [], steps => [], refused => []}, Of(#{})),
    #{steps := [_ | _], changes := [_ | _], refused := []} =
        Of(#{families => #{web => Web#{count => 4}}}),
    %% An archive is known by its checksum, and need not be here.
    Archive = #{archive => ~"/nonexistent.tar.gz", sha256 => binary:copy(~"ab", 32),
                start => [~"bin/shop"]},
    #{steps := [_ | _]} = Of(#{releases => #{code => Archive}}),
    Refused(~"releases.code.sha256 is missing",
            Of(#{releases => #{code => maps:remove(sha256, Archive)}})),
    Refused(~"give an archive with its sha256", Of(#{releases => #{code => #{code => [~"/etc"]}}})),
    Touched = filename:join(?config(folder, Config), "touched"),
    Program = #{type => exec, program => ~"/bin/sh",
                arguments => [~"-c", unicode:characters_to_binary(["touch ", Touched])]},
    Refused(~"providers.here: its program is not that of the newest revision",
            Of(#{providers => Providers#{here => Program},
                 domains => #{one => #{provider => here, hosts => 1}}})),
    ?assertNot(filelib:is_file(Touched)),
    #{code := Release} = Releases,
    %% Files beside the applied file cannot be read over HTTP.
    Templates = #{code => Release#{files => #{a => #{template => ~"shop.json"}}}},
    Refused(~"a template is not read for a text", Of(#{releases => Templates})),
    Refused(~"keeps the cluster shop", Of(#{cluster => ~"other"})),
    Refused(~"this is not JSON", Plan("#{}")),
    Refused(~"families is missing", Plan("{}")),
    #{~"revisions" := [#{~"revision" := 1}]} = ask(history, #{}, Config).

%% The name, the cookie and the configuration of a node reach a release of Mix, and its own script
%% checks and stops it.
a_mix_release(Config) ->
    %% On hosts the service puts nodes into their groups when they run.
    Others = #{"config/config.exs" => "import Config\n",
               "lib/shop.ex" => ~"""
               defmodule Shop do
                 use Application
                 def start(_, _), do: Agent.start_link(fn -> 1 end, name: Shop)
                 def next(node), do: Agent.get_and_update({Shop, node}, &{&1, &1 + 1})
               end
               """},
    case sderl_ops_mix:release(?config(folder, Config), "", Others) of
        {ok, Release} -> a_mix_release(Release, Config);
        Skip -> Skip
    end.

a_mix_release(Release, Config) ->
    start_service(Config),
    Cluster = #{
        cluster => ~"mix",
        providers => #{here => #{type => local, hosts => 2}},
        releases => #{shop => #{
            folder => unicode:characters_to_binary(Release),
            start => [~"bin/shop", ~"daemon"], stop => [~"bin/shop", ~"stop"],
            check => [~"bin/shop", ~"rpc", ~"true = is_integer(Shop.next(node()))"],
            env => #{~"ERL_ZFLAGS" => ~"-config {{home}}/../sys"}
        }},
        domains => #{all => #{provider => here}},
        families => #{shop => #{release => shop, domains => [all], count => 2,
                                labels => #{disk => ssd}}},
        groups => [#{name => shop, nodes => [~"shop1..shop2"]}],
        upgrade => #{wait_s => 1}
    },
    #{~"state" := ~"steady"} = ask(apply, #{file => write(Cluster, Config)}, Config),
    ?assertEqual([{~"shop1", ~"up"}, {~"shop2", ~"up"}], instances(Config)),
    #{~"groups" := [#{~"running" := 2, ~"state" := ~"whole"}]} = ask(status, #{}, Config),
    [Before] = beams(~"shop2", Config),
    #{families := #{shop := Shop}} = Cluster,
    Labelled = Cluster#{families := #{shop => Shop#{
        labels := #{disk => hdd},
        env => #{~"SHOP_TEST" => ~"1"},
        hooks => #{after_start => [
            ~"bin/shop", ~"rpc",
            ~"{:ok, %{disk: \"hdd\"}} = :application.get_env(:sderl, :labels)"
        ]}
    }}},
    #{~"state" := ~"steady"} = ask(apply, #{file => write(Labelled, Config)}, Config),
    ?assertMatch([After] when After =/= Before, beams(~"shop2", Config)),
    #{~"state" := ~"destroyed"} = ask(destroy, #{}, Config),
    ?assertEqual([], processes_of(Config)).

%% One cluster that goes through all changes one after the other.
in_operation(Config) ->
    start_service(Config),
    #{~"state" := ~"steady"} = ask(apply, #{file => write(cluster(3), Config)}, Config),
    a_dead_node(Config),
    drained(Config),
    upgraded(Config),
    rolled_back(Config),
    written_down(Config),
    those_who_went_away(Config).

%% Each request with its user and result, and each step below it.
written_down(Config) ->
    Entries = fun(Wanted) ->
        #{~"entries" := Found} = ask(record, Wanted, Config),
        Found
    end,
    Requests = [{What, Result} || #{~"what" := What, ~"result" := Result}
                                      <- Entries(#{by => ~"tester"})],
    ?assertMatch([{<<"apply ", _/binary>>, ~"failed"},
                  {~"roll back to 1 (revision 3)", ~"done"},
                  {<<"apply ", _/binary>>, ~"done"}, {~"resume", ~"done"}, {~"pause", ~"done"},
                  {~"undrain web2", ~"done"}, {~"drain web2", ~"done"},
                  {<<"apply ", _/binary>>, ~"done"}], Requests),
    ?assertMatch([#{~"why" := <<"web goes back from revision 4 to 3: ", _/binary>>}],
                 Entries(#{by => ~"tester", limit => 1})),
    Service = [{What, Result} || #{~"who" := ~"service", ~"what" := What, ~"result" := Result}
                                     <- Entries(#{limit => 500})],
    [?assert(lists:member(Entry, Service), {Entry, Service})
     || Entry <- [{~"start web2", ~"done"}, {~"stop web2", ~"done"}, {~"start web1", ~"failed"},
                  {~"let web2 leave its groups", ~"done"},
                  {~"web runs as revision 1 says", ~"done"}]],
    ?assertMatch([{4, <<"rolled back: web">>}, {3, ~"good"}, {2, ~"good"}, {1, ~"good"}],
                 [{Number, Result} || #{~"revision" := Number, ~"result" := Result}
                                          <- map_get(~"revisions", ask(history, #{}, Config))]).

a_dead_node(Config) ->
    [Before] = beams(~"web2", Config),
    _ = os:cmd("kill -9 " ++ Before),
    await(fun() ->
        case beams(~"web2", Config) of
            [Pid] when Pid =/= Before -> true;
            _ -> false
        end
    end),
    await_state(~"steady", Config).

%% Wherever the service is killed, the next one finishes the work, and nothing runs twice.
killed_anywhere(Config) ->
    start_service(Config),
    File = write(cluster(3), Config),
    lists:foreach(
        fun(Steps) ->
            ct:log("killed after ~b steps", [Steps]),
            break_off(apply, #{file => File}, Steps, Config),
            kill_service(Config),
            start_service(Config),
            _ = ask(hello, #{}, Config),
            case ask_any(status, #{}, Config) of
                {error, _, _} -> #{} = ask(apply, #{file => File}, Config);
                {done, _} -> ok
            end,
            await_state(~"steady", Config),
            ?assertEqual([{~"web1", ~"up"}, {~"web2", ~"up"}, {~"web3", ~"up"}],
                         instances(Config)),
            [?assertMatch({Id, [_]}, {Id, beams(Id, Config)})
             || Id <- [~"web1", ~"web2", ~"web3"]],
            #{~"state" := ~"destroyed"} = ask(destroy, #{}, Config)
        end,
        case os:getenv("SDERL_LONG") of
            false -> [rand:uniform(9)];
            _ -> [1, 2, 3, 4, 5, 6, 7, 8, 9]
        end
    ).

upgraded(Config) ->
    Before = [beams(Id, Config) || Id <- [~"web1", ~"web2", ~"web3"]],
    File = write(configured(#{tick_ms => 900}, cluster(3)), Config),
    #{~"state" := ~"steady", ~"problems" := []} = ask(apply, #{file => File}, Config),
    After = [beams(Id, Config) || Id <- [~"web1", ~"web2", ~"web3"]],
    ?assertEqual([], [Pids || Pids <- After, lists:member(Pids, Before)]),
    #{~"groups" := [#{~"running" := 3}]} = ask(status, #{}, Config),
    %% The earlier state is desired again.
    #{~"state" := ~"steady", ~"revision" := 3} = ask(rollback, #{revision => 1}, Config).

%% Clients that wait for hours without an event must not use up the connections.
those_who_went_away(Config) ->
    #{upgrade := Upgrade} = Slow = configured(#{tick_ms => 800}, cluster(3)),
    SlowFile = write(Slow#{upgrade := Upgrade#{wait_s => 3600}}, Config),
    #{~"state" := ~"working"} = ask(apply, #{file => SlowFile, wait => false}, Config),
    await(fun() ->
        #{~"waiting" := Waiting} = ask(status, #{}, Config),
        length([Wait || Wait <- Waiting, string:find(Wait, "canaries have been well") =/= nomatch])
            =:= 2
    end),
    %% Earlier connections may count for a moment, so that a request is refused.
    Sockets = [Socket
               || _ <- lists:seq(1, 64),
                  {ok, Socket} <- [sderl_ops_asks:send(service_folder(Config), undrain,
                                                       #{instance => ~"web1"})]],
    await(fun() -> {error, closed} =:= busy(Config) end),
    [ok = gen_tcp:close(Socket) || Socket <- Sockets],
    await(fun() -> ok =:= busy(Config) end).

%% The service may close the connection before the whole request is written.
busy(Config) ->
    maybe
        {ok, Socket} ?= sderl_ops_asks:send(service_folder(Config), hello, #{}),
        Answer = gen_tcp:recv(Socket, 0, ?PATIENCE_MS),
        ok = gen_tcp:close(Socket),
        {ok, Line} ?= Answer,
        case sderl_ops_wire:decode_answer(Line) of
            {ok, {done, _}} -> ok;
            {ok, {error, _, _}} -> {error, closed}
        end
    else
        {error, _} -> {error, closed}
    end.

%% Nodes with this configuration cannot start, so only the first one is replaced.
rolled_back(Config) ->
    Worse = #{releases := #{code := Code}} = configured(#{tick_ms => ~"never"}, cluster(3)),
    Bad = write(Worse#{releases := #{code => Code#{start_timeout_s => 5}}}, Config),
    #{~"state" := ~"failed", ~"problems" := [Problem | _]} =
        ask(apply, #{file => Bad}, Config),
    ct:log("~ts", [Problem]),
    %% Scaling would try the failed revision again.
    {error, _, []} = ask_any(scale, #{family => ~"web", count => 4}, Config),
    ?assertEqual([{~"web1", ~"up"}, {~"web2", ~"up"}, {~"web3", ~"up"}], instances(Config)),
    #{~"groups" := [#{~"running" := 3}]} = ask(status, #{}, Config).

drained(Config) ->
    #{~"state" := ~"steady"} = ask(drain, #{instance => ~"web2"}, Config),
    ?assertEqual([{~"web1", ~"up"}, {~"web2", ~"drained"}, {~"web3", ~"up"}], instances(Config)),
    ?assertEqual([], beams(~"web2", Config)),
    #{~"state" := ~"steady"} = ask(undrain, #{instance => ~"web2"}, Config),
    ?assertEqual([{~"web1", ~"up"}, {~"web2", ~"up"}, {~"web3", ~"up"}], instances(Config)),
    #{~"state" := ~"paused"} = ask(pause, #{}, Config),
    [Pid] = beams(~"web1", Config),
    _ = os:cmd("kill -9 " ++ Pid),
    await(fun() -> {~"web1", ~"exited"} =:= hd(instances(Config)) end),
    _ = ask(resume, #{}, Config),
    await_state(~"steady", Config).

%% The node leaves its groups before it stops: while it still runs another member coordinates, and
%% it can register no more names. Its processes keep their names until they end.
coordinator_drained(Config) ->
    #{~"instances" := Instances} = ask(status, #{}, Config),
    Nodes = #{Id => binary_to_atom(Node) || #{~"id" := Id, ~"node" := Node} <- Instances},
    Envoy = envoy(Config),
    Call = fun(Node, Module, Function, Args) ->
        {ok, Answer} = sderl_ops_envoy:call(Envoy, erpc, call,
                                            [Node, Module, Function, Args, ?PATIENCE_MS]),
        Answer
    end,
    #{~"web1" := Web1} = Nodes,
    [{shop, _, Coordinator}] = Call(Web1, sderl_observed, groups, []),
    [Id] = [Id || Id := Node <- Nodes, Node =:= Coordinator],
    [Other | _] = Others = lists:sort(maps:values(maps:remove(Id, Nodes))),
    [yes = Call(Node, s_group, register_name, [shop, Name, Call(Node, erlang, whereis, [init])])
     || {Node, Name} <- [{Coordinator, goes}, {Other, stays}]],
    [await(fun() -> is_pid(Call(Node, s_group, whereis_name, [shop, Name])) end)
     || Node <- Others, Name <- [goes, stays]],
    Held = hold(Id, Config),
    Socket = send(drain, #{instance => Id}, Config),
    await(fun() -> filelib:is_file(filename:join(Held, "held")) end),
    [
        begin
            await(fun() ->
                [{shop, Members, Leads}] = Call(Node, sderl_observed, groups, []),
                (lists:sort(Members) =:= Others andalso lists:member(Leads, Others))
                    orelse {Members, Leads}
            end),
            [?assert(is_pid(Call(Node, s_group, whereis_name, [shop, Name])))
             || Name <- [goes, stays]]
        end
     || Node <- Others
    ],
    ?assertEqual([], Call(Coordinator, s_group, own_s_groups, [])),
    Late = Call(Coordinator, erlang, whereis, [kernel_sup]),
    ?assertEqual({no, cannot_register_in_remote_group},
                 Call(Coordinator, s_group, register_name, [shop, late, Late])),
    ?assertMatch([_], beams(Id, Config)),
    ok = file:delete(filename:join(Held, "hold")),
    {done, #{~"state" := ~"steady"}} = sderl_ops_asks:last(Socket),
    [
        begin
            await(fun() -> undefined =:= Call(Node, s_group, whereis_name, [shop, goes]) end),
            ?assert(is_pid(Call(Node, s_group, whereis_name, [shop, stays])))
        end
     || Node <- Others
    ],
    ok = gen_server:stop(Envoy),
    ?assertEqual([{One, case One of Id -> ~"drained"; _ -> ~"up" end}
                  || One <- [~"web1", ~"web2", ~"web3"]], instances(Config)),
    ?assertEqual([], beams(Id, Config)),
    #{~"state" := ~"steady"} = ask(undrain, #{instance => Id}, Config),
    ok.

%% Its hook before_stop waits while this file exists.
hold(Id, Config) ->
    [State] = filelib:wildcard(filename:join([service_folder(Config), "hosts", "*", "*", "nodes",
                                              binary_to_list(Id), "state"])),
    ok = file:write_file(filename:join(State, "hold"), ""),
    State.

%% Calls nodes of the cluster.
envoy(Config) ->
    Before = os:getenv("ERL_EPMD_PORT"),
    true = os:putenv("ERL_EPMD_PORT", integer_to_list(?config(epmd, Config))),
    {ok, Cookie} = file:read_file(filename:join(service_folder(Config), "cookie")),
    {ok, Envoy} = sderl_ops_envoy:start_link(#{cluster => ~"test", names => long,
                                               cookie => fun() -> string:trim(Cookie) end}),
    {ok, _} = sderl_ops_envoy:call(Envoy, erlang, node, []),
    true = case Before of
        false -> os:unsetenv("ERL_EPMD_PORT");
        Port -> os:putenv("ERL_EPMD_PORT", Port)
    end,
    Envoy.

asked_wrongly(Config) ->
    one_service(Config),
    Cluster = cluster(2),
    {error, _, []} = ask_any(status, #{}, Config),
    {error, _, [_ | _]} = ask_any(apply, #{file => write(Cluster#{families => 7}, Config)}, Config),
    {error, _, [_ | _]} = ask_any(apply, #{file => ~"/there/is/no/such.json"}, Config),
    {error, _, []} = raw(~"[1, 2", Config),
    {error, _, []} = raw(binary:copy(~"x", 70_000), Config),
    {error, _, []} = ask_any(fly, #{}, Config),
    {error, _, []} = ask_any(scale, #{family => ~"web", count => 2}, Config),
    #{~"state" := ~"steady"} = ask(apply, #{file => write(Cluster, Config)}, Config),
    Gone = unicode:characters_to_binary(filename:join(?config(folder, Config), "no-such-secret")),
    NoCookie = write(Cluster#{cookie => #{file => Gone}}, Config),
    {error, _, [_]} = ask_any(plan, #{file => NoCookie}, Config),
    {error, _, [_]} = ask_any(apply, #{file => NoCookie}, Config),
    #{families := #{web := Web}} = Cluster,
    NoSecret = write(Cluster#{families => #{web => Web#{env => #{'KEY' => #{file => Gone}}}}},
                     Config),
    {error, _, [<<"families.web.env.KEY: ", _/binary>>]} =
        ask_any(plan, #{file => NoSecret}, Config),
    {error, _, _} = ask_any(scale, #{family => ~"nobody", count => 2}, Config),
    {error, _, []} = ask_any(rollback, #{revision => 9}, Config),
    {error, _, []} = ask_any(drain, #{instance => ~"web9"}, Config),
    {error, Other, []} =
        ask_any(apply, #{file => write(Cluster#{cluster => ~"other"}, Config)}, Config),
    ?assertNotEqual(nomatch, binary:match(Other, ~"--dir")),
    #{~"state" := ~"steady", ~"revision" := 1} = ask(status, #{}, Config).

%% A folder has one service at a time; the next one begins when that was stopped.
one_service(Config) ->
    start_service(Config),
    {Second, _} = run_service(Config),
    Output = output(Second, <<>>),
    ?assertNotEqual(nomatch, binary:match(Output, ~"another service runs in")),
    #{} = ask(hello, #{}, Config),
    #{~"state" := ~"stopped"} = ask(stop, #{}, Config),
    %% It has the folder until it is gone, which is after it answers nobody any more.
    await_gone(Config),
    start_service(Config),
    #{} = ask(hello, #{}, Config).

%% ---------------------------------------------------------------- the cluster

cluster(Count) ->
    Ebin = unicode:characters_to_binary(filename:dirname(code:which(s_group))),
    #{
        cluster => ~"shop",
        providers => #{here => #{type => local, hosts => 2}},
        releases => #{code => #{code => [Ebin], applications => [sderl], stop_timeout_s => 300}},
        domains => #{one => #{provider => here}},
        families => #{web => #{
            release => code, domains => [one], count => Count,
            hooks => #{before_stop => [
                ~"sh", ~"-c",
                <<"while [ -e \"$SDERL_OPS_STATE/hold\" ]; do "
                  ": >\"$SDERL_OPS_STATE/held\"; sleep 0.1; done">>
            ]}
        }},
        groups => [#{name => shop, nodes => [~"web*"]}],
        upgrade => #{wait_s => 1}
    }.

configured(Values, #{families := #{web := Web}} = Cluster) ->
    Cluster#{families := #{web => Web#{config => #{sderl => Values}}}}.

write(Cluster, Config) -> sderl_ops_asks:write(Cluster, ?config(folder, Config)).

%% ---------------------------------------------------------------- the service

service_folder(Config) -> filename:join(?config(folder, Config), "s").

start_service(Config) ->
    {_, Pid} = run_service(Config),
    ok = file:write_file(filename:join(?config(folder, Config), "pid"), integer_to_list(Pid)),
    await(fun() -> is_reachable(Config) end).

run_service(Config) ->
    Code = io_lib:format("case sderl_ops_service:run(~tp) of ok -> ok; {error, Why} -> "
                         "io:put_chars(Why) end, halt().", [service_folder(Config)]),
    sderl_ops_asks:start(Code, [], [{"ERL_EPMD_PORT", integer_to_list(?config(epmd, Config))}]).

output(Port, Said) ->
    receive
        {Port, {data, Bytes}} -> output(Port, <<Said/binary, Bytes/binary>>);
        {Port, {exit_status, _}} -> Said
    after ?PATIENCE_MS -> error({no_end, Said})
    end.

kill_service(Config) ->
    case file:read_file(filename:join(?config(folder, Config), "pid")) of
        {ok, Pid} ->
            _ = os:cmd("kill -9 " ++ binary_to_list(Pid)),
            await_gone(Config);
        {error, enoent} ->
            ok
    end.

await_gone(Config) ->
    {ok, Pid} = file:read_file(filename:join(?config(folder, Config), "pid")),
    await(fun() -> not filelib:is_dir("/proc/" ++ binary_to_list(Pid)) end).

is_reachable(Config) -> sderl_ops_asks:is_reachable(service_folder(Config)).

ask(Do, Keys, Config) -> sderl_ops_asks:ask(service_folder(Config), Do, Keys).

ask_any(Do, Keys, Config) -> sderl_ops_asks:ask_any(service_folder(Config), Do, Keys).

raw(Line, Config) ->
    {ok, Socket} = sderl_ops_asks:connect(service_folder(Config)),
    ok = gen_tcp:send(Socket, [Line, $\n]),
    sderl_ops_asks:last(Socket).

%% The events, and the answer.
totals(Socket, Totals) ->
    {ok, Line} = gen_tcp:recv(Socket, 0, ?PATIENCE_MS),
    case sderl_ops_wire:decode_answer(Line) of
        {ok, {progress, Done, Total, _}} ->
            ct:log("~b of ~b", [Done, Total]),
            totals(Socket, [Total | Totals]);
        {ok, {note, _}} -> totals(Socket, Totals);
        {ok, {done, Done}} -> {Totals, Done}
    end.

%% Asks, and does not wait for the answer.
send(Do, Keys, Config) ->
    {ok, Socket} = sderl_ops_asks:send(service_folder(Config), Do, Keys),
    Socket.

%% Closes the connection when so many steps have begun.
break_off(Do, Keys, Steps, Config) ->
    Socket = send(Do, Keys, Config),
    await_steps(Steps, Socket),
    ok = gen_tcp:close(Socket).

await_steps(0, _) ->
    ok;
await_steps(Steps, Socket) ->
    {ok, Line} = gen_tcp:recv(Socket, 0, ?PATIENCE_MS),
    case sderl_ops_wire:decode_answer(Line) of
        {ok, {progress, _, _, _}} -> await_steps(Steps - 1, Socket);
        {ok, {done, _}} -> ok;
        {ok, {note, _}} -> await_steps(Steps, Socket)
    end.

%% ---------------------------------------------------------------- what is there

instances(Config) ->
    #{~"instances" := Instances} = ask(status, #{}, Config),
    [{Id, State} || #{~"id" := Id, ~"state" := State} <- Instances].

await_state(State, Config) ->
    await(fun() ->
        #{~"state" := Now, ~"waiting" := Waiting} = ask(status, #{}, Config),
        Now =:= State orelse {Now, Waiting}
    end).

beams(Id, Config) -> sderl_ops_asks:beams(Id, service_folder(Config)).

processes_of(Config) -> sderl_ops_asks:processes_of(service_folder(Config)).

await(Fun) -> sderl_ops_awaits:await(Fun, ?PATIENCE_MS).

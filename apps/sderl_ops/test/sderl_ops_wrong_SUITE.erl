%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_wrong_SUITE).
-moduledoc """
A service with real nodes and a fault that is mended before the file is applied again; two users who
apply at the same time; secrets that must be nowhere else; and a full disk of the service itself.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("kernel/include/file.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(sderl_ops_awaits, [free_port/0]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([dies_at_once/1, never_returns/1, two_at_once/1, secrets/1, full_disk/1]).
%% In the virtual machine that has the small disk.
-export([begin_service/1, end_service/1, told/1]).

-define(PATIENCE_MS, 180_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [dies_at_once, never_returns, two_at_once, secrets, full_disk].

init_per_suite(Config) ->
    case os:type() of
        {unix, linux} -> Config;
        _ -> {skip, "processes are found in /proc"}
    end.

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["sderl-wrong-", Case, "-", os:getpid()])),
    _ = file:del_dir_r(Folder),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder}, {epmd, free_port()} | Config].

end_per_testcase(_, Config) ->
    _ = case file:read_file(in("pid", Config)) of
        {ok, Pid} -> os:cmd("kill -9 " ++ binary_to_list(Pid));
        {error, enoent} -> ok
    end,
    _ = [os:cmd("kill -9 " ++ Of)
         || Folder <- [service(Config), in("disk/s", Config)],
            Of <- sderl_ops_asks:processes_of(Folder)],
    ok = sderl_ops_awaits:end_epmd(integer_to_list(?config(epmd, Config))),
    %% Who was killed may still write something.
    sderl_ops_awaits:await(fun() ->
        file:del_dir_r(?config(folder, Config)) =/= {error, eexist}
    end, ?PATIENCE_MS).

%% ---------------------------------------------------------------- cases

%% A release whose node ends as soon as it starts.
dies_at_once(Config) ->
    ends_well(cluster(1, Config), "{error, this_is_the_reason}",
              "gave up to start web1: ", "this_is_the_reason", Config).

%% A release that starts and is never up: it is killed when its time is over.
never_returns(Config) ->
    #{releases := #{code := Code}} = Cluster = cluster(1, Config),
    ends_well(Cluster#{releases := #{code => Code#{start_timeout_s => 2}}},
              "receive never -> ok end", "gave up to start web1: ", "2 s", Config).

%% It is given up and reported; no process of it is left. When the release is mended, the same file,
%% or one with the usual time limit, is applied again.
ends_well(Cluster, Start, GaveUp, Why, Config) ->
    ok = make_app(Start, Config),
    start_service([], Config),
    #{~"state" := ~"failed", ~"problems" := [Problem | _], ~"revision" := 1} =
        ask(apply, #{file => write(Cluster, Config)}, Config),
    ct:log("~ts", [Problem]),
    ?assertMatch({0, _}, binary:match(Problem, iolist_to_binary(GaveUp))),
    ?assertMatch({_, _}, binary:match(Problem, iolist_to_binary(Why))),
    #{~"instances" := [#{~"id" := ~"web1", ~"state" := ~"laid_out"}]} = ask(status, #{}, Config),
    ?assertEqual([], sderl_ops_asks:beams(~"web1", service(Config))),
    ok = make_app("{ok, spawn_link(fun() -> receive stop -> ok end end)}", Config),
    #{~"state" := ~"steady", ~"problems" := [], ~"revision" := 2} =
        ask(apply, #{file => write(cluster(1, Config), Config)}, Config),
    #{~"instances" := [#{~"id" := ~"web1", ~"state" := ~"up"}]} = ask(status, #{}, Config),
    [_] = sderl_ops_asks:beams(~"web1", service(Config)),
    #{~"revisions" := [#{~"result" := ~"good"}, #{~"result" := ~"failed", ~"why" := Recorded}]} =
        ask(history, #{}, Config),
    ?assertMatch({_, _}, binary:match(Recorded, iolist_to_binary(Why))),
    #{~"state" := ~"destroyed"} = ask(destroy, #{}, Config).

%% Both begin with the same revision; one is told that the other was faster, and nothing of its
%% request is done. It may try again.
two_at_once(Config) ->
    ok = make_app("{ok, spawn_link(fun() -> receive stop -> ok end end)}", Config),
    start_service([], Config),
    Told = try_both(Config),
    ?assertMatch({_, _}, binary:match(Told, ~"tester has made revision ")),
    ?assertMatch({_, _}, binary:match(Told, ~" meanwhile: look at it")),
    #{~"revision" := Before} = ask(status, #{}, Config),
    #{~"state" := ~"steady", ~"revision" := After} =
        ask(apply, #{file => write(cluster(1, Config), Config)}, Config),
    ?assertEqual(Before + 1, After),
    ?assertEqual([~"web1"], instances(Config)),
    #{~"state" := ~"destroyed"} = ask(destroy, #{}, Config).

%% If one was done before the other began, both succeed, and it is tried again.
try_both(Config) ->
    Files = [{Count, write(cluster(Count, Config), Config)} || Count <- [2, 3]],
    Sockets = [{Count, element(2, {ok, _} = sderl_ops_asks:send(service(Config), apply,
                                                                #{file => File}))}
               || {Count, File} <- Files],
    Answers = [{Count, sderl_ops_asks:last(Socket)} || {Count, Socket} <- Sockets],
    case [Sentence || {_, {error, Sentence, []}} <- Answers] of
        [] ->
            [_, _] = [Revision || {_, {done, #{~"revision" := Revision}}} <- Answers],
            try_both(Config);
        [Told] ->
            [{Count, {done, #{~"state" := ~"steady"}}}] =
                [Answer || {_, {done, _}} = Answer <- Answers],
            ?assertEqual(Count, length(instances(Config))),
            Told
    end.

%% The value of a secret is where the node reads it, and nowhere else: in no file of the service, no
%% answer, and on no command line, while it is brought there and later.
secrets(Config) ->
    ok = make_app("{ok, spawn_link(fun() -> receive stop -> ok end end)}", Config),
    Value = fun(Name) ->
        <<Name/binary, "-", (binary:encode_hex(crypto:strong_rand_bytes(8)))/binary>>
    end,
    Secret = fun(Name) ->
        File = in(Name, Config),
        Is = Value(list_to_binary(Name)),
        ok = file:write_file(File, [Is, "\n"]),
        ok = file:change_mode(File, 8#600),
        {unicode:characters_to_binary(File), Is}
    end,
    {CookieFile, Cookie} = Secret("cookie"),
    {EnvFile, OfEnv} = Secret("environment"),
    {TextFile, OfFile} = Secret("file"),
    OfVariable = Value(~"variable"),
    Plain = Value(~"plain"),
    Secrets = [Cookie, OfEnv, OfFile, OfVariable],
    #{releases := #{code := Code}, families := #{web := Web}} = Cluster = cluster(1, Config),
    Release = Code#{files => #{'etc/key' => #{file => TextFile}},
                    env => #{'OF_VARIABLE' => #{env => ~"SDERL_WRONG_SECRET"}}},
    With = Cluster#{
        cookie => #{file => CookieFile},
        releases := #{code => Release},
        families := #{web => Web#{env => #{'OF_FILE' => #{file => EnvFile}, 'PLAIN' => Plain}}}
    },
    start_service([{"SDERL_WRONG_SECRET", binary_to_list(OfVariable)}], Config),
    Watcher = watch_commands(Secrets),
    File = write(With, Config),
    Answers = [
        ask(plan, #{file => File}, Config),
        ask(apply, #{file => File}, Config),
        ask(status, #{}, Config),
        ask(drain, #{instance => ~"web1", force => true}, Config),
        ask(undrain, #{instance => ~"web1"}, Config),
        ask(apply, #{file => write(With#{families := #{web => Web#{
            count := 2, env => #{'OF_FILE' => #{file => EnvFile}, 'PLAIN' => Plain}
        }}}, Config)}, Config),
        %% A file that others may read is refused, and its content not shown.
        begin
            ok = file:change_mode(binary_to_list(EnvFile), 8#644),
            ask_any(apply, #{file => File}, Config)
        end,
        ask(history, #{}, Config),
        ask(record, #{limit => 500}, Config),
        ask(status, #{}, Config)
    ],
    Answered = unicode:characters_to_binary(io_lib:format("~0tp", [Answers])),
    ?assertMatch({_, _}, binary:match(Answered, ~"may be read by other users")),
    has_none(Secrets, Answered),
    ?assertEqual([], stop_watching(Watcher)),
    %% They did arrive, and nobody else can read them there.
    [Node | _] = filelib:wildcard(filename:join(service(Config), "hosts/*/*/nodes/web1")),
    [begin
        {ok, Bytes} = file:read_file(filename:join(Node, Path)),
        ?assertMatch({Path, {_, _}}, {Path, binary:match(Bytes, Of)}),
        {ok, #file_info{mode = Mode}} = file:read_file_info(filename:join(Node, Path)),
        ?assertEqual({Path, 0}, {Path, Mode band 8#077})
     end || {Path, Of} <- [{"home/.erlang.cookie", Cookie}, {"env", OfEnv}, {"env", OfVariable},
                           {"release/etc/key", OfFile}]],
    [Pid | _] = sderl_ops_asks:beams(~"web1", service(Config)),
    {ok, Environment} = file:read_file("/proc/" ++ Pid ++ "/environ"),
    [?assertMatch({_, _}, binary:match(Environment, Of)) || Of <- [OfEnv, OfVariable]],
    %% The service's folder without its hosts: its store, its archives, its log.
    Files = [Path || Path <- filelib:wildcard("**/*", service(Config)),
                     not lists:prefix("hosts/", Path),
                     filelib:is_regular(filename:join(service(Config), Path))],
    ct:log("~p", [Files]),
    Bytes = iolist_to_binary([Of || Path <- Files,
                                    {ok, Of} <- [file:read_file(filename:join(service(Config),
                                                                              Path))]]),
    ?assertMatch({_, _}, binary:match(Bytes, Plain)),
    has_none(Secrets, Bytes),
    has_none(Secrets, said()),
    #{~"state" := ~"destroyed"} = ask(destroy, #{}, Config).

has_none(Secrets, Text) ->
    ?assertEqual([], [hd(binary:split(Of, ~"-")) || Of <- Secrets,
                                                    binary:match(Text, Of) =/= nomatch]).

%% The output of the service.
said() -> said(<<>>).

said(Said) ->
    receive
        {Port, {data, Bytes}} when is_port(Port) -> said(<<Said/binary, Bytes/binary>>)
    after 0 -> Said
    end.

%% Looks at all command lines of the machine again and again.
watch_commands(Secrets) -> spawn_link(fun() -> watch_commands(Secrets, []) end).

watch_commands(Secrets, Found) ->
    receive
        {stop, From} -> From ! {self(), lists:usort(Found)}
    after 20 ->
        watch_commands(Secrets, [Line || Path <- filelib:wildcard("/proc/[0-9]*/cmdline"),
                                         {ok, Line} <- [file:read_file(Path)],
                                         binary:match(Line, Secrets) =/= nomatch] ++ Found)
    end.

stop_watching(Watcher) ->
    Watcher ! {stop, self()},
    receive {Watcher, Found} -> Found end.

%% The disk of the service's folder is full. The service says so, begins nothing and refuses
%% requests; nothing that was stored is lost, and it goes on when there is room. A service that ends
%% meanwhile cannot start, and says so.
full_disk(Config) ->
    ok = make_app("{ok, spawn_link(fun() -> receive stop -> ok end end)}", Config),
    Disk = in("disk", Config),
    ok = filelib:ensure_path(Disk),
    sderl_fleet_disk:with(Disk, "48m", fun(_, Call) -> full_disk(Disk, Call, Config) end).

full_disk(Disk, Call, Config) ->
    true = Call(os, putenv, ["ERL_EPMD_PORT", integer_to_list(?config(epmd, Config))]),
    Folder = filename:join(Disk, "s"),
    Ask = fun(Do, Keys) ->
        Call(sderl_ops_client, ask, [Folder, Keys#{do => Do, who => ~"tester"},
                                     fun erlang:is_tuple/1])
    end,
    Status = fun() ->
        {done, #{~"state" := State, ~"problems" := Problems, ~"instances" := Instances}} =
            Ask(status, #{}),
        {State, Problems, [Is || #{~"state" := Is} <- Instances]}
    end,
    Await = fun(Fun) -> sderl_ops_awaits:await(Fun, ?PATIENCE_MS) end,
    Start = fun() ->
        ok = Call(?MODULE, begin_service, [Folder]),
        Await(fun() -> case Ask(hello, #{}) of {done, _} -> true; Other -> Other end end)
    end,
    Full = <<"the disk of ", (list_to_binary(Folder))/binary, ", the service's folder, is full: ">>,
    IsFull = fun() ->
        case Ask(status, #{}) of
            {done, #{~"state" := ~"failed", ~"problems" := [Problem | _]}} ->
                is_prefix(Full, Problem) orelse Problem;
            Other -> Other
        end
    end,
    Is = fun(Wanted) -> fun() -> case Status() of Wanted -> true; Other -> Other end end end,
    Start(),
    {done, #{~"state" := ~"steady"}} = Ask(apply, #{file => write(cluster(1, Config), Config)}),
    ok = sderl_fleet_disk:fill(Disk, 8_000_000, Call),
    %% For up to a second it does not notice the full disk.
    Await(fun() -> element(1, Ask(resume, #{})) =:= error end),
    [begin
        {error, Sentence, []} = Ask(Do, Keys),
        ?assert(is_prefix(Full, Sentence), {Do, Sentence})
     end || {Do, Keys} <- [{pause, #{}}, {drain, #{instance => ~"web1", force => true}},
                           {scale, #{family => ~"web", count => 2, wait => true}}]],
    Await(IsFull),
    %% What happens to a node meanwhile is seen, and mended when there is room.
    [Pid] = Call(sderl_ops_asks, beams, [~"web1", Folder]),
    _ = Call(os, cmd, ["kill -9 " ++ Pid]),
    Await(fun() -> case Status() of {_, _, [~"exited"]} -> true; Other -> Other end end),
    {done, #{~"revisions" := [#{~"result" := ~"good"}]}} = Ask(history, #{}),
    ok = sderl_fleet_disk:free(Disk, Call),
    Await(Is({~"steady", [], [~"up"]})),
    {done, #{~"revision" := 2, ~"state" := ~"steady"}} =
        Ask(scale, #{family => ~"web", count => 2, wait => true}),
    %% A release that is larger than the disk, and one after which there is no room: their archives
    %% are deleted.
    {error, _, [TooLarge]} = Ask(apply, #{file => with_release_of(60_000_000, Config)}),
    ct:log("~ts", [TooLarge]),
    ?assertMatch({_, _}, binary:match(TooLarge, ~"cannot be written: no space left on device")),
    ?assertEqual([], Call(filelib, wildcard, [filename:join(Folder, "archives/part-*")])),
    %% The service may have found the disk full meanwhile, and looks again at its next tick.
    Await(Is({~"steady", [], [~"up", ~"up"]})),
    %% The archive that was refused is deleted at once, so that there is room again.
    {error, NoRoom, []} = Ask(apply, #{file => with_release_of(36_000_000, Config)}),
    ?assert(is_prefix(Full, NoRoom), NoRoom),
    ?assertEqual({~"steady", [], [~"up", ~"up"]}, Status()),
    %% Suddenly there is no room at all, in the middle of work; and the service is started without
    %% room.
    EndsOrWaits = fun() ->
        Await(fun() ->
            case {Ask(hello, #{}), Call(?MODULE, told, [Folder])} of
                {_, {error, Text}} ->
                    ct:log("~ts", [Text]),
                    binary:match(unicode:characters_to_binary(Text), Full) =/= nomatch orelse Text;
                {{done, _}, _} -> IsFull();
                Other -> Other
            end
        end),
        _ = Ask(stop, #{}),
        ok = Call(?MODULE, end_service, [Folder])
    end,
    {done, #{~"revision" := 3}} = Ask(scale, #{family => ~"web", count => 3, wait => false}),
    ok = sderl_fleet_disk:fill(Disk, 0, Call),
    EndsOrWaits(),
    ok = Call(?MODULE, begin_service, [Folder]),
    EndsOrWaits(),
    ok = sderl_fleet_disk:free(Disk, Call),
    Start(),
    Await(Is({~"steady", [], [~"up", ~"up", ~"up"]})),
    {done, #{~"entries" := Entries}} = Ask(record, #{limit => 500}),
    ?assertMatch([#{~"what" := ~"scale web to 3 (revision 3)", ~"result" := ~"done"},
                  #{~"what" := ~"scale web to 2 (revision 2)", ~"result" := ~"done"},
                  #{~"what" := <<"apply ", _/binary>>, ~"result" := ~"done"}],
                 [Entry || #{~"kind" := ~"request", ~"what" := What} = Entry <- Entries,
                           What =/= ~"resume"]),
    {done, #{~"state" := ~"destroyed"}} = Ask(destroy, #{wait => true}),
    {done, _} = Ask(stop, #{}),
    ok = Call(?MODULE, end_service, [Folder]).

is_prefix(Prefix, Text) -> string:prefix(Text, Prefix) =/= nomatch.

%% A file whose release does not get smaller by packing.
with_release_of(Bytes, Config) ->
    Large = in("large/ebin", Config),
    ok = filelib:ensure_path(Large),
    ok = file:write_file(filename:join(Large, "x"), rand:bytes(Bytes)),
    #{releases := #{code := Code}} = Cluster = cluster(2, Config),
    Folders = [unicode:characters_to_binary(Ebin) || Ebin <- [Large, in("tiny/ebin", Config)]],
    write(Cluster#{releases := #{code => Code#{code := Folders}}}, Config).

%% The service in a process of that virtual machine; how it ended is kept.
begin_service(Folder) ->
    ok = logger:set_primary_config(level, critical),
    _ = persistent_term:erase({?MODULE, Folder}),
    _ = spawn(fun() ->
        Ended = sderl_ops_service:run(Folder),
        _ = application:stop(khepri),
        _ = application:stop(ra),
        persistent_term:put({?MODULE, Folder}, Ended)
    end),
    ok.

end_service(Folder) ->
    sderl_ops_awaits:await(fun() -> told(Folder) =/= runs end, ?PATIENCE_MS).

told(Folder) -> persistent_term:get({?MODULE, Folder}, runs).

%% ---------------------------------------------------------------- the cluster

cluster(Count, Config) ->
    #{
        cluster => ~"shop",
        providers => #{here => #{type => local, hosts => 1}},
        releases => #{code => #{code => [unicode:characters_to_binary(in("tiny/ebin", Config))],
                                applications => [tiny]}},
        domains => #{one => #{provider => here}},
        families => #{web => #{release => code, domains => [one], count => Count}},
        upgrade => #{wait_s => 1}
    }.

%% An application of this start function alone.
make_app(Start, Config) ->
    Folder = in("tiny/ebin", Config),
    ok = filelib:ensure_path(Folder),
    Source = in("tiny.erl", Config),
    ok = file:write_file(Source, ["-module(tiny).\n-export([start/2, stop/1]).\n"
                                  "stop(_) -> ok.\nstart(_, _) -> ", Start, ".\n"]),
    {ok, tiny} = compile:file(Source, [{outdir, Folder}]),
    App = {application, tiny, [{vsn, "1"}, {modules, [tiny]}, {registered, []},
                               {applications, [kernel, stdlib]}, {mod, {tiny, []}}]},
    file:write_file(filename:join(Folder, "tiny.app"), io_lib:format("~p.~n", [App])).

write(Cluster, Config) -> sderl_ops_asks:write(Cluster, ?config(folder, Config)).

%% ---------------------------------------------------------------- the service

in(Name, Config) -> filename:join(?config(folder, Config), Name).

service(Config) -> in("s", Config).

start_service(Environment, Config) ->
    Code = io_lib:format("case sderl_ops_service:run(~tp) of ok -> ok; {error, Why} -> "
                         "io:put_chars(Why) end, halt().", [service(Config)]),
    Epmd = {"ERL_EPMD_PORT", integer_to_list(?config(epmd, Config))},
    {_, Pid} = sderl_ops_asks:start(Code, [], [Epmd | Environment]),
    ok = file:write_file(in("pid", Config), integer_to_list(Pid)),
    sderl_ops_awaits:await(fun() -> sderl_ops_asks:is_reachable(service(Config)) end,
                           ?PATIENCE_MS).

ask(Do, Keys, Config) -> sderl_ops_asks:ask(service(Config), Do, Keys).

ask_any(Do, Keys, Config) -> sderl_ops_asks:ask_any(service(Config), Do, Keys).

instances(Config) ->
    #{~"instances" := Instances} = ask(status, #{}, Config),
    [Id || #{~"id" := Id} <- Instances].

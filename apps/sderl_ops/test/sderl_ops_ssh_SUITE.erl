%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_ssh_SUITE).
-moduledoc """
Hosts over the real OpenSSH: servers without rights on loopback, each with its own key and home.

They run in a user namespace, as a user whose home is a folder of the test. Where there is no sshd
and none can be fetched, or no namespace can be had, the suite is skipped and says so.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([every_verb/1, wrong_host_key/1, refused_login/1, unreachable/1, hangs_while_sending/1,
         hangs_while_open/1, connection_is_cut/1, no_ssh/1, script_is_mended/1]).

all() ->
    [every_verb, wrong_host_key, refused_login, unreachable, hangs_while_sending, hangs_while_open,
     connection_is_cut, no_ssh, script_is_mended].

%% ------------------------------------------------------------------ servers

init_per_suite(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "ssh"),
    ok = filelib:ensure_path(Folder),
    case programs() of
        {ok, Path} ->
            Before = os:getenv("PATH"),
            true = os:putenv("PATH", Path ++ ":" ++ Before),
            Prepared = [{path_before, Before}, {folder, Folder} | Config],
            _ = [keygen(Key, Folder) || Key <- ["host_key", "other_host_key", "key", "other_key"]],
            case start_server(Folder) of
                {ok, Server} ->
                    [{server, Server} | Prepared];
                {error, Why} ->
                    true = os:putenv("PATH", Before),
                    {skip, "no sshd runs without rights here: " ++ Why}
            end;
        {error, Why} ->
            {skip, "there is no OpenSSH server here, and none could be fetched: " ++ Why}
    end.

end_per_suite(Config) ->
    ok = sderl_ops_openssh:close(sockets(Config)),
    stop_server(?config(server, Config)),
    os:putenv("PATH", ?config(path_before, Config)).

init_per_testcase(_, Config) -> Config.

%% The server's own processes of a case end with their connection; a stopped one does not.
end_per_testcase(_, Config) ->
    _ = signal("KILL", connections(Config)),
    ok.

%% Those of the machine, or fetched: what the tool says last is the path.
programs() ->
    Tool = filename:join([code:lib_dir(sderl_ops), "src", "../../../toolchain/sshd"]),
    case sderl_ops_port:run([Tool], none, 300_000) of
        {ok, 0, Output} ->
            {ok, binary_to_list(lists:last(string:lexemes(Output, "\n")))};
        {ok, _, Output} ->
            {error, unicode:characters_to_list(Output)};
        {error, Why, _} ->
            {error, atom_to_list(Why)}
    end.

keygen(Name, Folder) ->
    {ok, 0, _} = sderl_ops_port:run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", Name,
                                     "-f", filename:join(Folder, Name)], none, 60_000).

%% In the outer namespace we are root and can put another list of users in place; in the inner one
%% we are that user.
start_server(Folder) ->
    Home = filename:join(Folder, "home"),
    ok = filelib:ensure_path(Home),
    Port = free_port(),
    Epmd = free_port(),
    Sshd = os:find_executable("sshd"),
    In = fun(Name) -> filename:join(Folder, Name) end,
    %% From OpenSSH 10 on it has parts, which it looks for where it was meant to be installed.
    Parts = filename:join([filename:dirname(Sshd), "..", "lib", "openssh"]),
    Options = [[Option, " ", Part, "\n"]
               || {Option, Name} <- [{"SshdSessionPath", "sshd-session"},
                                     {"SshdAuthPath", "sshd-auth"}],
                  Part <- [filename:join(Parts, Name)],
                  filelib:is_regular(Part)],
    ok = file:write_file(In("sshd_config"), [
        "ListenAddress 127.0.0.1\nPort ", integer_to_list(Port), "\nHostKey ", In("host_key"),
        "\nAuthorizedKeysFile ", In("key.pub"), "\nPidFile none\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "SetEnv PATH=", os:getenv("PATH"), " ERL_EPMD_PORT=", integer_to_list(Epmd), "\n",
        Options]),
    ok = file:write_file(In("passwd"), ["sderl:x:1000:1000::", Home, ":/bin/sh\n"]),
    write_known("known_hosts", "host_key.pub", Port, Folder),
    Shell = "mount --bind \"$0\" /etc/passwd && "
        "exec unshare -U --map-user=1000 --map-group=1000 \"$1\" -D -e -f \"$2\"",
    Process = open_port({spawn_executable, "/bin/sh"},
                        [{args, ["-c", "exec unshare -rm sh -c \"$0\" \"$@\"", Shell, In("passwd"),
                                 Sshd, In("sshd_config")]},
                         exit_status, stderr_to_stdout, {line, 1000}]),
    {os_pid, Pid} = erlang:port_info(Process, os_pid),
    case await_listening(Process, []) of
        ok ->
            %% Whoever runs a case must not have to read what it says.
            Keeper = spawn(fun Keep() -> receive stop -> ok; _ -> Keep() end end),
            true = erlang:port_connect(Process, Keeper),
            true = unlink(Process),
            {ok, #{pid => Pid, port => Port, epmd => Epmd, keeper => Keeper, home => Home}};
        {error, Why} ->
            {error, Why}
    end.

await_listening(Process, Said) ->
    receive
        {Process, {data, {_, "Server listening" ++ _}}} -> ok;
        {Process, {data, {_, Line}}} -> await_listening(Process, [Line | Said]);
        {Process, {exit_status, _}} -> {error, lists:flatten(lists:join("; ", lists:reverse(Said)))}
    after 60_000 ->
        {error, "it does not listen"}
    end.

stop_server(#{pid := Pid, epmd := Epmd, keeper := Keeper}) ->
    _ = [os:cmd("kill -9 " ++ Child) || Child <- below(integer_to_list(Pid))],
    _ = os:cmd("kill -9 " ++ integer_to_list(Pid)),
    _ = os:cmd("ERL_EPMD_PORT=" ++ integer_to_list(Epmd) ++ " epmd -kill"),
    exit(Keeper, kill).

free_port() ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

write_known(File, Key, Port, Folder) ->
    {ok, Text} = file:read_file(filename:join(Folder, Key)),
    [Kind, Public | _] = binary:split(Text, ~" ", [global]),
    ok = file:write_file(filename:join(Folder, File),
                         ["[127.0.0.1]:", integer_to_list(Port), " ", Kind, " ", Public, "\n"]).

%% Numbers of all processes below one.
below(Pid) ->
    Children = string:lexemes(os:cmd("ps -o pid= --ppid " ++ Pid), " \n"),
    lists:append([[Child | below(Child)] || Child <- Children]).

sockets(Config) -> filename:join(?config(folder, Config), "sockets").

settings(Config) ->
    Folder = ?config(folder, Config),
    #{port := Port} = ?config(server, Config),
    #{address => ~"127.0.0.1",
      port => Port,
      user => ~"sderl",
      key => filename:join(Folder, "key"),
      known_hosts => filename:join(Folder, "known_hosts"),
      folder => sockets(Config)}.

%% One that has no connection open yet.
fresh(Case, Config) ->
    (settings(Config))#{folder => filename:join(?config(folder, Config), atom_to_list(Case))}.

host(Settings) ->
    #{id => ~"lab/a", address => ~"127.0.0.1", cluster => ~"shop",
      connection => {sderl_ops_openssh, Settings}}.

%% ------------------------------------------------------------------ cases

every_verb(Config) ->
    Context = #{provider => ~"lab", names => long, cluster => ~"shop",
                folder => ?config(folder, Config)},
    #{user := User, key := Key, known_hosts := Known, port := Port} = settings(Config),
    Provider = #{type => ssh, user => User, key => Key, known_hosts => Known,
                 hosts => [#{name => ~"a", address => ~"127.0.0.1", port => Port}]},
    {ok, #{~"lab/a" := Host}} = sderl_ops_provider:hosts(Provider, Context),
    #{connection := {sderl_ops_openssh, #{folder := Sockets}}} = Host,
    #{home := Home} = ?config(server, Config),
    Base = unicode:characters_to_binary(filename:join(Home, "sderl-ops/shop")),
    ?assertMatch({ok, #{base := Base}}, sderl_ops_host:survey(Host)),
    {Sha, Archive} = release(Config),
    Layout = #{release => Sha, settings => ~"s1", node => ~"web1@127.0.0.1", names => long,
               cookie => ~"secret", start => {code, [~"crypto"]}},
    twice(fun() -> sderl_ops_host:fetch(Host, Sha, Archive) end),
    twice(fun() -> sderl_ops_host:lay_out(Host, ~"web1", Layout) end),
    twice(fun() -> sderl_ops_host:start(Host, ~"web1", 60) end),
    ?assertEqual(running, state(~"web1", Host)),
    twice(fun() -> sderl_ops_host:hook(Host, ~"web1", ~"check") end),
    %% It lives on when all connections end.
    ok = sderl_ops_openssh:close(Sockets),
    ?assertEqual([], [Name || Name <- filelib:wildcard("*", Sockets)]),
    ?assertEqual(running, state(~"web1", Host)),
    twice(fun() -> sderl_ops_host:stop(Host, ~"web1", 30) end),
    twice(fun() -> sderl_ops_host:remove(Host, ~"web1") end),
    twice(fun() -> sderl_ops_host:drop_release(Host, Sha) end),
    ?assertEqual({error, {wrong_checksum, ~"0", Sha}}, sderl_ops_host:fetch(Host, ~"0", Archive)),
    ok = sderl_ops_openssh:close(Sockets).

wrong_host_key(Config) ->
    #{port := Port} = ?config(server, Config),
    Folder = ?config(folder, Config),
    Settings = fresh(?FUNCTION_NAME, Config),
    write_known("other_known_hosts", "other_host_key.pub", Port, Folder),
    Other = Settings#{known_hosts := filename:join(Folder, "other_known_hosts")},
    Unknown = Settings#{known_hosts := filename:join(Folder, "no_known_hosts")},
    [begin
        {error, {wrong_host_key, _} = Why} = sderl_ops_host:survey(host(Bad)),
        ?assertMatch({_, _}, binary:match(sentence(Why), ~"known hosts"))
     end || Bad <- [Other, Unknown]],
    ?assertMatch({ok, _}, sderl_ops_host:survey(host(Settings))),
    sderl_ops_openssh:close(map_get(folder, Settings)).

refused_login(Config) ->
    Settings = fresh(?FUNCTION_NAME, Config),
    Folder = ?config(folder, Config),
    [begin
        {error, {refused_login, _} = Why} = sderl_ops_host:survey(host(Bad)),
        ?assertMatch({_, _}, binary:match(sentence(Why), ~"user and key"))
     end || Bad <- [Settings#{key := filename:join(Folder, "other_key")},
                    Settings#{key := filename:join(Folder, "no_key")},
                    Settings#{user := ~"nobody_here"}]].

unreachable(Config) ->
    Settings = fresh(?FUNCTION_NAME, Config),
    [?assertMatch({error, {unreachable, _}}, sderl_ops_host:survey(host(Bad)))
     || Bad <- [Settings#{port := free_port()}, Settings#{address := ~"no-such-host.invalid"}]].

%% The host hangs in the middle of an archive, and is mended when it goes on.
hangs_while_sending(Config) ->
    Settings = (fresh(?FUNCTION_NAME, Config))#{alive => {1, 2}},
    {Why, Stopped} = in_the_middle("STOP", Settings, Config),
    ?assertMatch({timeout, 2000, _}, Why),
    ?assertMatch({_, _}, binary:match(sentence(Why), ~"within 2 s")),
    signal("CONT", Stopped),
    fetch_and_drop(Settings, Config).

connection_is_cut(Config) ->
    Settings = fresh(?FUNCTION_NAME, Config),
    {Why, _} = in_the_middle("KILL", Settings, Config),
    ?assertMatch({cut_off, _}, Why),
    fetch_and_drop(Settings, Config).

%% Half an archive is on the host, and more is to come, when the server's end of the connection gets
%% the signal.
in_the_middle(Signal, Settings, Config) ->
    {Sha, Archive} = release(Config),
    #{home := Home} = ?config(server, Config),
    Pipe = filename:join(?config(folder, Config), "pipe-" ++ Signal),
    "" = os:cmd(["mkfifo '", Pipe, "'"]),
    Size = filelib:file_size(Archive),
    Writer = open_port({spawn_executable, "/bin/sh"},
                       [{args, ["-c", "exec 3>\"$0\"; head -c \"$1\" \"$2\" >&3; read -r end", Pipe,
                                integer_to_list(Size div 2), Archive]}, exit_status]),
    Arguments = [~"fetch", Sha, integer_to_binary(Size)],
    Parent = self(),
    Caller = spawn_link(fun() ->
        Answer = sderl_ops_openssh:run(Settings, ~"shop", Arguments, {file, Pipe}, 120_000),
        Parent ! {self(), Answer}
    end),
    Part = filename:join([Home, "sderl-ops/shop/releases", <<".", Sha/binary>>, "archive"]),
    await(fun() -> filelib:file_size(Part) > 0 end),
    Connections = connections(Config),
    ?assertNotEqual([], Connections),
    signal(Signal, Connections),
    receive
        {Caller, {error, Why}} ->
            true = port_close(Writer),
            {Why, Connections}
    end.

fetch_and_drop(Settings, Config) ->
    {Sha, Archive} = release(Config),
    Host = host(Settings),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    ?assertMatch({ok, #{releases := [Sha]}}, sderl_ops_host:survey(Host)),
    ok = sderl_ops_host:drop_release(Host, Sha),
    sderl_ops_openssh:close(map_get(folder, Settings)).

%% Small calls go over a connection that is open; when that hangs, a new one is made.
hangs_while_open(Config) ->
    Settings = (fresh(?FUNCTION_NAME, Config))#{alive => {1, 2}},
    Host = host(Settings),
    {ok, _} = sderl_ops_host:survey(Host),
    Stopped = connections(Config),
    signal("STOP", Stopped),
    case sderl_ops_host:survey(Host) of
        {ok, _} -> ok;
        {error, Why} -> ?assert(lists:member(element(1, Why), [timeout, cut_off, unreachable]))
    end,
    signal("CONT", Stopped),
    ?assertMatch({ok, _}, sderl_ops_host:survey(Host)),
    sderl_ops_openssh:close(map_get(folder, Settings)).

no_ssh(Config) ->
    Path = os:getenv("PATH"),
    true = os:putenv("PATH", "/nowhere"),
    try
        Host = host(fresh(?FUNCTION_NAME, Config)),
        ?assertMatch({error, {no_ssh, _}}, sderl_ops_host:survey(Host))
    after
        os:putenv("PATH", Path)
    end.

%% The script on a host is known by its content; one of another version goes.
script_is_mended(Config) ->
    Settings = fresh(?FUNCTION_NAME, Config),
    #{home := Home} = ?config(server, Config),
    Host = (host(Settings))#{cluster := ~"other"},
    Find = fun() -> filelib:wildcard(filename:join(Home, "sderl-ops/other/host-*.sh")) end,
    {ok, _} = sderl_ops_host:survey(Host),
    [Script] = Find(),
    ok = file:rename(Script, filename:join(filename:dirname(Script), "host-old.sh")),
    {ok, _} = sderl_ops_host:survey(Host),
    ?assertEqual([Script], Find()),
    sderl_ops_openssh:close(map_get(folder, Settings)).

%% ------------------------------------------------------------------ helpers

%% The server's processes but the one that listens.
connections(Config) ->
    #{pid := Server} = ?config(server, Config),
    below(integer_to_list(Server)).

signal(Signal, Pids) -> [os:cmd(["kill -", Signal, " ", Pid]) || Pid <- Pids].

await(Condition) ->
    case Condition() of
        true ->
            ok;
        false ->
            receive after 20 -> ok end,
            await(Condition)
    end.

twice(Fun) ->
    ?assertEqual(ok, Fun()),
    ?assertEqual(ok, Fun()).

state(Id, Host) ->
    {ok, #{instances := #{Id := #{state := State}}}} = sderl_ops_host:survey(Host),
    State.

sentence(Why) -> unicode:characters_to_binary(sderl_ops_host:format_error(Why)).

%% Its contents do not get smaller by packing.
release(Config) ->
    Folder = filename:join(?config(folder, Config), "release"),
    File = filename:join([Folder, "lib", "x", "ebin", "x"]),
    ok = filelib:ensure_dir(File),
    {Contents, _} = rand:bytes_s(200_000, rand:seed_s(exsss, 1)),
    ok = file:write_file(File, Contents),
    Archives = filename:join(?config(folder, Config), "archives"),
    {ok, Sha, Archive} = sderl_ops_archive:prepare({folder, Folder}, Archives),
    {Sha, Archive}.

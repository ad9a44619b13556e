%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_ssh_SUITE).
-moduledoc """
Hosts over the real OpenSSH: servers without rights on loopback, each with its own key and home.

They run in a user namespace, as a user whose home is a folder of the test. Where there is no sshd
and none can be fetched, or no namespace can be had, the suite is skipped and says so.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(sderl_ops_awaits, [free_port/0]).

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([every_verb/1, wrong_host_key/1, refused_login/1, unreachable/1, hangs_while_sending/1,
         hangs_while_open/1, connection_is_cut/1, no_ssh/1, script_is_mended/1, given_on/1,
         given_by_agent/1, not_given/1, giver_ends_while_giving/1, giver_hangs_while_giving/1,
         hung_and_applied_again/1, mended_and_applied_again/1]).

all() ->
    [every_verb, wrong_host_key, refused_login, unreachable, hangs_while_sending, hangs_while_open,
     connection_is_cut, no_ssh, script_is_mended, given_on, given_by_agent, not_given]
        ++ sderl_ct:in_long_runs([giver_ends_while_giving, giver_hangs_while_giving,
                                  hung_and_applied_again, mended_and_applied_again]).

%% ------------------------------------------------------------------ servers

init_per_suite(Config) ->
    Folder = filename:join(?config(priv_dir, Config), "ssh"),
    ok = filelib:ensure_path(Folder),
    case programs() of
        {ok, Path} ->
            Before = os:getenv("PATH"),
            true = os:putenv("PATH", Path ++ ":" ++ Before),
            Prepared = [{path_before, Before}, {folder, Folder} | Config],
            _ = [keygen(Key, Folder) || Key <- ["host_key", "other_host_key", "key", "other_key",
                                                "host_key_b", "host_key_c"]],
            case start_server(Folder) of
                {ok, Server} ->
                    Ready = [{server, Server}, {others, start_others(Folder)} | Prepared],
                    %% What the first call for a host brings there no case need be the first for.
                    {ok, _} = sderl_ops_host:survey(host(settings(Ready))),
                    ok = sderl_ops_openssh:close(sockets(Ready)),
                    Ready;
                {error, Why} ->
                    true = os:putenv("PATH", Before),
                    {skip, "no sshd runs without rights here: " ++ Why}
            end;
        {error, Why} ->
            {skip, "there is no OpenSSH server here, and none could be fetched: " ++ Why}
    end.

end_per_suite(Config) ->
    ok = sderl_ops_openssh:close(sockets(Config)),
    [stop_server(Server) || Server <- [?config(server, Config) | ?config(others, Config)]],
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
    start_server(Folder, #{home => "home", host_key => "host_key", known => "known_hosts"}).

%% Two more hosts; the disk of the second is small.
start_others(Folder) ->
    [begin
        {ok, Server} = start_server(Folder, Options),
        Server
    end || Options <- [
        #{home => "home_b", host_key => "host_key_b", known => "known_b"},
        #{home => "home_c", host_key => "host_key_c", known => "known_c",
          mount => "mount -t tmpfs -o size=1m,mode=777 none \"$HOME\" && "}
    ]].

start_server(Folder, #{home := HomeName, host_key := HostKey, known := KnownName} = Options0) ->
    %% A server makes the socket of an agent there, and the name of a socket is short.
    Home = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-" ++ HomeName ++ "-" ++ os:getpid()),
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
    ok = file:write_file(In(HomeName ++ ".config"), [
        "ListenAddress 127.0.0.1\nPort ", integer_to_list(Port), "\nHostKey ", In(HostKey),
        "\nAuthorizedKeysFile ", In("key.pub"), "\nPidFile none\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "SetEnv PATH=", os:getenv("PATH"), " ERL_EPMD_PORT=", integer_to_list(Epmd), "\n",
        Options]),
    ok = file:write_file(In(HomeName ++ ".passwd"), ["sderl:x:1000:1000::", Home, ":/bin/sh\n"]),
    write_known(KnownName, HostKey ++ ".pub", Port, Folder),
    Shell = "HOME='" ++ Home ++ "' && " ++ maps:get(mount, Options0, "")
        ++ "mount --bind \"$0\" /etc/passwd && "
        "exec unshare -U --map-user=1000 --map-group=1000 \"$1\" -D -e -f \"$2\"",
    Process = open_port({spawn_executable, "/bin/sh"},
                        [{args, ["-c", "exec unshare -rm sh -c \"$0\" \"$@\"", Shell,
                                 In(HomeName ++ ".passwd"), Sshd, In(HomeName ++ ".config")]},
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

stop_server(#{pid := Pid, epmd := Epmd, keeper := Keeper, home := Home}) ->
    _ = [os:cmd("kill -9 " ++ Child) || Child <- sderl_ops_asks:below(integer_to_list(Pid))],
    _ = os:cmd("kill -9 " ++ integer_to_list(Pid)),
    ok = sderl_ops_awaits:end_epmd(integer_to_list(Epmd)),
    exit(Keeper, kill),
    file:del_dir_r(Home).

write_known(File, Key, Port, Folder) ->
    {ok, Text} = file:read_file(filename:join(Folder, Key)),
    [Kind, Public | _] = binary:split(Text, ~" ", [global]),
    ok = file:write_file(filename:join(Folder, File),
                         ["[127.0.0.1]:", integer_to_list(Port), " ", Kind, " ", Public, "\n"]).

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
    %% Long enough that a machine with much else to do does not end the transfer before it hangs.
    Settings = (fresh(?FUNCTION_NAME, Config))#{alive => {1, 15}},
    {Why, Stopped} = in_the_middle("STOP", Settings, Config),
    ?assertMatch({timeout, 15000, _}, Why),
    ?assertMatch({_, _}, binary:match(sentence(Why), ~"within 15 s")),
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
    Settings = (fresh(?FUNCTION_NAME, Config))#{alive => {1, 15}},
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

%% The script on a host is named by its checksum; another version of it is deleted.
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

%% ------------------------------------------------------------------ from host to host

%% A key is lent for the call alone: afterwards nothing of it is on the giver, and no agent is left.
given_on(Config) ->
    [A, B, _] = relays(?FUNCTION_NAME, Config),
    {Sha, Archive} = release(Config),
    ok = sderl_ops_sent:start(),
    [{ok, _} = sderl_ops_host:survey(Host) || Host <- [A, B]],
    #{control_bytes := Before} = sderl_ops_sent:read(),
    ok = sderl_ops_host:fetch(A, Sha, Archive),
    twice(fun() -> sderl_ops_host:give(A, B, Sha) end),
    Size = filelib:file_size(Archive),
    #{archives := 1, archive_bytes := Size, control_bytes := Control} = sderl_ops_sent:read(),
    ct:log("control: ~b bytes for a survey with the script, ~b for two relays",
           [Before div 2, (Control - Before) div 2]),
    ?assertMatch({ok, #{releases := [Sha], archives := [Sha]}}, sderl_ops_host:survey(B)),
    #{home := Home} = ?config(server, Config),
    ?assertEqual("", os:cmd(["grep -rlsa 'PRIVATE KEY' '", Home, "'"])),
    ?assertEqual([], filelib:wildcard("sderl-ops/*/.give*", Home)),
    ?assertEqual([], filelib:wildcard("relay-*", folder_of(A))),
    await(fun() -> agents(Config) =:= [] end),
    %% One that was changed there is noticed, and not given again.
    File = filename:join([Home, "sderl-ops/shop/archives", Sha]),
    ok = sderl_ops_host:drop_release(B, Sha),
    ok = file:delete(File),
    ok = file:write_file(File, "something else"),
    ?assertMatch({error, {relay, giver, {wrong_checksum, _, _}}}, sderl_ops_host:give(A, B, Sha)),
    ?assertMatch({error, {relay, giver, {no_archive, Sha}}}, sderl_ops_host:give(A, B, Sha)),
    end_relays([A, B], Config).

%% Without a key of the provider it is the user's agent.
given_by_agent(Config) ->
    [A, B, _] = relays(?FUNCTION_NAME, Config),
    [A1, B1] = [without_key(Host) || Host <- [A, B]],
    {Sha, Archive} = release(Config),
    {ok, _} = sderl_ops_host:survey(B),
    ok = sderl_ops_host:fetch(A, Sha, Archive),
    Before = os:getenv("SSH_AUTH_SOCK"),
    true = os:unsetenv("SSH_AUTH_SOCK"),
    ?assertMatch({error, {relay, link, {no_relay, _}}}, sderl_ops_host:give(A1, B1, Sha)),
    Socket = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-agent-" ++ os:getpid()),
    Agent = open_port({spawn_executable, os:find_executable("ssh-agent")},
                      [{args, ["-D", "-a", Socket]}, stderr_to_stdout, exit_status]),
    try
        await(fun() ->
            filelib:is_file(Socket) orelse file:read_link_info(Socket) =/= {error, enoent}
        end),
        true = os:putenv("SSH_AUTH_SOCK", Socket),
        Key = filename:join(?config(folder, Config), "key"),
        {ok, 0, _} = sderl_ops_port:run(["ssh-add", "-q", Key], none, 60_000),
        ok = sderl_ops_host:give(A1, B1, Sha)
    after
        {os_pid, Pid} = erlang:port_info(Agent, os_pid),
        _ = os:cmd("kill " ++ integer_to_list(Pid)),
        case Before of
            false -> os:unsetenv("SSH_AUTH_SOCK");
            _ -> os:putenv("SSH_AUTH_SOCK", Before)
        end
    end,
    end_relays([A, B], Config).

without_key(#{connection := {Transport, Settings}} = Host) ->
    Host#{connection := {Transport, maps:remove(key, Settings)}}.

%% Errors between the two hosts and errors of the receiver are distinguished.
not_given(Config) ->
    [A, B, C] = relays(?FUNCTION_NAME, Config),
    Folder = ?config(folder, Config),
    {Sha, Archive} = release(Config),
    [{ok, _} = sderl_ops_host:survey(Host) || Host <- [B, C]],
    ok = sderl_ops_host:fetch(A, Sha, Archive),
    #{connection := {_, SettingsB}} = B,
    #{port := PortB} = SettingsB,
    With = fun(Changes) ->
        B#{connection := {sderl_ops_openssh, maps:merge(SettingsB, Changes)}}
    end,
    Give = fun(To) ->
        {error, Why} = sderl_ops_host:give(A, To, Sha),
        ct:log("~ts", [sderl_ops_host:format_error(Why)]),
        Why
    end,
    write_known("known_wrong", "other_host_key.pub", PortB, Folder),
    %% The key that the service knows is not the one that the receiver shows.
    Wrong = filename:join(Folder, "known_wrong"),
    ?assertMatch({relay, link, {wrong_host_key, _}}, Give(With(#{known_hosts => Wrong}))),
    ?assertMatch({relay, link, {no_relay, _}},
                 Give(With(#{known_hosts => filename:join(Folder, "no_such_file")}))),
    ?assertMatch({relay, link, {refused_login, _}}, Give(With(#{user => ~"nobody_here"}))),
    Closed = free_port(),
    write_known("known_closed", "host_key_b.pub", Closed, Folder),
    ?assertMatch({relay, link, {unreachable, _}},
                 Give(With(#{port => Closed,
                             known_hosts => filename:join(Folder, "known_closed")}))),
    #{connection := {_, SettingsA}} = A,
    NoKey = A#{connection := {sderl_ops_openssh,
                              SettingsA#{key := filename:join(Folder, "no_key")}}},
    ?assertMatch({error, {relay, link, {no_relay, _}}}, sderl_ops_host:give(NoKey, B, Sha)),
    %% The disk of the third has 1 MB.
    {Large, LargeArchive} = release("large", 1_500_000, Config),
    ok = sderl_ops_host:fetch(A, Large, LargeArchive),
    {error, {relay, receiver, {full_disk, _}}} = sderl_ops_host:give(A, C, Large),
    ?assertMatch({ok, #{releases := []}}, sderl_ops_host:survey(C)),
    ok = sderl_ops_host:give(A, C, Sha),
    ok = sderl_ops_host:drop_release(A, Large),
    end_relays([A, B, C], Config).

giver_ends_while_giving(Config) -> fails_while_giving("KILL", Config).

giver_hangs_while_giving(Config) -> fails_while_giving("STOP", Config).

%% All processes of this call at the giver end, or hang, when the receiver has a part. The receiver
%% gives up, and another host gives it the release.
fails_while_giving(Signal, Config) ->
    [A, B, _] = relays(list_to_atom("giving_" ++ Signal), Config),
    {Sha, Archive} = release("huge", 60_000_000, Config),
    {ok, _} = sderl_ops_host:survey(B),
    ok = sderl_ops_host:fetch(A, Sha, Archive),
    #{connection := {_, Settings}} = A,
    Giver = A#{connection := {sderl_ops_openssh, Settings#{alive => {1, 2}}}},
    Parent = self(),
    Caller = spawn_link(fun() -> Parent ! {self(), sderl_ops_host:give(Giver, B, Sha)} end),
    #{home := Home} = hd(?config(others, Config)),
    Part = filename:join([Home, "sderl-ops/shop/releases", <<".", Sha/binary>>, "archive"]),
    await(fun() -> filelib:file_size(Part) > 0 orelse not is_process_alive(Caller) end),
    Stopped = connections(Config),
    signal(Signal, Stopped),
    receive
        {Caller, {error, {relay, giver, Why}}} when Signal =:= "KILL" ->
            ?assertEqual(cut_off, element(1, Why));
        {Caller, {error, {relay, giver, Why}}} ->
            ?assertMatch({timeout, 2000, _}, Why);
        {Caller, Other} ->
            error({not_in_the_middle, Other})
    end,
    ok = sderl_ops_host:fetch(B, Sha, Archive),
    ?assertMatch({ok, #{releases := [Sha], archives := [Sha]}}, sderl_ops_host:survey(B)),
    signal("CONT", Stopped),
    end_relays([A, B], Config).

%% A whole service over a host that hangs in the middle of an archive, with all of its server: that
%% is told. When it goes on the same file is applied again.
hung_and_applied_again(Config) ->
    [#{port := Port, epmd := Epmd, home := Home, pid := Server}, _] = ?config(others, Config),
    Folder = ?config(folder, Config),
    Service = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-hung-" ++ os:getpid()),
    ok = filelib:ensure_path(Service),
    ok = copy_key("key", "key_hung", Folder),
    Cluster = over_ssh(#{cluster => ~"hung", host => ~"b", key => "key_hung", known => "known_b",
                         bytes => 60_000_000}, Port, Folder),
    File = sderl_ops_asks:write(Cluster, Service),
    Code = io_lib:format("ok = sderl_ops_service:run(~tp), halt().", [Service]),
    {_, Pid} = sderl_ops_asks:start(Code, [], [{"ERL_EPMD_PORT", integer_to_list(Epmd)}]),
    try
        await(fun() -> sderl_ops_asks:is_reachable(Service) end),
        Stopped = stop_in_the_middle(File, Home, Server, Service),
        await_problem(~"working", "lab/b is unreachable", Service),
        _ = signal("CONT", Stopped),
        #{~"state" := ~"steady", ~"problems" := []} =
            sderl_ops_asks:ask(Service, apply, #{file => File}),
        #{~"instances" := [#{~"id" := ~"web1", ~"state" := ~"up"}]} =
            sderl_ops_asks:ask(Service, status, #{}),
        #{~"state" := ~"destroyed"} = sderl_ops_asks:ask(Service, destroy, #{})
    after
        Of = integer_to_list(Server),
        _ = signal("CONT", [Of | sderl_ops_asks:below(Of)]),
        _ = signal("KILL", [integer_to_list(Pid) | sderl_ops_asks:processes_of(Home)]),
        _ = file:del_dir_r(filename:join(Home, "sderl-ops/hung")),
        _ = sderl_fleet:await(fun() -> file:del_dir_r(Service) =/= {error, eexist} end, 60_000)
    end.

%% Where all of the archive was there before the signal came, it is tried again.
stop_in_the_middle(File, Home, Server, Service) ->
    Parts = fun() -> filelib:wildcard(Home ++ "/sderl-ops/hung/releases/.*/archive") end,
    #{~"state" := ~"working"} = sderl_ops_asks:ask(Service, apply, #{file => File, wait => false}),
    await(fun() ->
        lists:any(fun(Part) -> filelib:file_size(Part) > 0 end, Parts())
            orelse ~"working" =/= map_get(~"state", sderl_ops_asks:ask(Service, status, #{}))
    end),
    Stopped = [integer_to_list(Server) | sderl_ops_asks:below(integer_to_list(Server))],
    _ = signal("STOP", Stopped),
    case [Part || Part <- Parts(), filelib:file_size(Part) < 60_000_000] of
        [_] ->
            Stopped;
        [] ->
            _ = signal("CONT", Stopped),
            #{~"state" := ~"destroyed"} = sderl_ops_asks:ask(Service, destroy, #{}),
            stop_in_the_middle(File, Home, Server, Service)
    end.

%% A whole service over one host, with which one thing after the other is wrong: its key, the login,
%% and then its disk, which is full until the release is given up. Each is told, and mended, and in
%% the end the same file is applied again.
mended_and_applied_again(Config) ->
    [_, #{port := Port, epmd := Epmd, home := Home}] = ?config(others, Config),
    Folder = ?config(folder, Config),
    Service = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-mended-" ++ os:getpid()),
    ok = filelib:ensure_path(Service),
    write_known("known_mended", "other_host_key.pub", Port, Folder),
    ok = copy_key("other_key", "key_mended", Folder),
    Cluster = over_ssh(#{cluster => ~"mended", host => ~"c", key => "key_mended",
                         known => "known_mended", bytes => 200_000}, Port, Folder),
    File = sderl_ops_asks:write(Cluster, Service),
    %% Of 1 MB some 0.2 are left for an archive of that size.
    ok = on_small_host("head -c 850000 /dev/zero > ~/filler", Config),
    Code = io_lib:format("ok = sderl_ops_service:run(~tp), halt().", [Service]),
    {_, Pid} = sderl_ops_asks:start(Code, [], [{"ERL_EPMD_PORT", integer_to_list(Epmd)}]),
    try
        await(fun() -> sderl_ops_asks:is_reachable(Service) end),
        #{~"revision" := 1} = sderl_ops_asks:ask(Service, apply, #{file => File, wait => false}),
        await_problem(~"working", "lab/c is unreachable: the host shows another key", Service),
        write_known("known_mended", "host_key_c.pub", Port, Folder),
        await_problem(~"working", "lab/c is unreachable: the host refuses the login", Service),
        ok = copy_key("key", "key_mended", Folder),
        await_problem(~"failed", "to lab/c: the host's disk is full", Service),
        ok = on_small_host("rm ~/filler", Config),
        #{~"state" := ~"steady", ~"revision" := 2, ~"problems" := []} =
            sderl_ops_asks:ask(Service, apply, #{file => File}),
        #{~"instances" := [#{~"id" := ~"web1", ~"state" := ~"up"}]} =
            sderl_ops_asks:ask(Service, status, #{}),
        #{~"state" := ~"destroyed"} = sderl_ops_asks:ask(Service, destroy, #{})
    after
        _ = signal("KILL", [integer_to_list(Pid) | sderl_ops_asks:processes_of(Home)]),
        _ = on_small_host("rm -rf ~/filler ~/sderl-ops/mended", Config),
        %% Who was killed may still write something.
        _ = sderl_fleet:await(fun() -> file:del_dir_r(Service) =/= {error, eexist} end, 60_000)
    end.

%% A node of Erlang alone, with contents that do not get smaller by packing.
over_ssh(#{cluster := Name, host := Host, key := Key, known := Known, bytes := Bytes}, Port,
         Folder) ->
    In = fun(Path) -> unicode:characters_to_binary(filename:join(Folder, Path)) end,
    Ebin = In(<<Name/binary, "/x/ebin">>),
    ok = filelib:ensure_path(Ebin),
    ok = file:write_file(filename:join(Ebin, "x"), rand:bytes(Bytes)),
    #{
        cluster => Name,
        names => long,
        providers => #{lab => #{
            type => ssh, user => ~"sderl", key => In(Key), known_hosts => In(Known),
            hosts => [#{name => Host, address => ~"127.0.0.1", port => Port}]
        }},
        releases => #{code => #{code => [Ebin], applications => [crypto]}},
        domains => #{one => #{provider => lab}},
        families => #{web => #{release => code, domains => [one], count => 1}}
    }.

await_problem(State, Part, Service) ->
    sderl_ops_awaits:await(fun() ->
        #{~"state" := Is, ~"problems" := Problems} = sderl_ops_asks:ask(Service, status, #{}),
        (Is =:= State andalso
            lists:any(fun(Problem) -> string:find(Problem, Part) =/= nomatch end, Problems))
            orelse {Is, Problems}
    end, 120_000).

copy_key(From, To, Folder) ->
    File = filename:join(Folder, To),
    {ok, _} = file:copy(filename:join(Folder, From), File),
    file:change_mode(File, 8#600).

%% A command on the host whose disk is small, which only its own processes see.
on_small_host(Command, Config) ->
    [_, #{port := Port}] = ?config(others, Config),
    In = fun(Name) -> filename:join(?config(folder, Config), Name) end,
    Ssh = ["ssh", "-F", "none", "-n", "-i", In("key"), "-p", integer_to_list(Port),
           "-o", "BatchMode=yes", "-o", "UserKnownHostsFile=" ++ In("known_c"),
           "sderl@127.0.0.1", Command],
    {ok, 0, _} = sderl_ops_port:run(Ssh, none, 60_000),
    ok.

relays(Case, Config) ->
    Folder = ?config(folder, Config),
    Settings = fresh(Case, Config),
    #{user := _} = Settings,
    Server = fun(#{port := Port}, Known) ->
        (host(Settings#{port := Port, known_hosts := filename:join(Folder, Known)}))#{
            relay => true}
    end,
    [B, C] = ?config(others, Config),
    [Server(?config(server, Config), "known_hosts"), Server(B, "known_b"), Server(C, "known_c")].

folder_of(#{connection := {_, #{folder := Folder}}}) -> Folder.

end_relays(Hosts, Config) ->
    {Sha, _} = release(Config),
    [begin
        {ok, #{releases := Shas}} = sderl_ops_host:survey(Host),
        [ok = sderl_ops_host:drop_release(Host, Of) || Of <- lists:usort([Sha | Shas])]
    end || Host <- Hosts],
    ?assertEqual([], [Host || Host <- Hosts,
                              {ok, #{archives := [_ | _]}} <- [sderl_ops_host:survey(Host)]]),
    sderl_ops_openssh:close(folder_of(hd(Hosts))).

%% Agents that were lent a key of this suite.
agents(Config) ->
    Folder = ?config(folder, Config),
    string:lexemes(os:cmd(["grep -lsxzF 'ssh-agent' /proc/[0-9]*/cmdline | while read -r f; do "
                           "grep -qsF '", Folder, "' \"$f\" && echo \"$f\"; done"]), "\n").

%% ------------------------------------------------------------------ helpers

%% The server's processes but the one that listens.
connections(Config) ->
    #{pid := Server} = ?config(server, Config),
    sderl_ops_asks:below(integer_to_list(Server)).

signal(Signal, Pids) -> [os:cmd(["kill -", Signal, " ", Pid]) || Pid <- Pids].

await(Condition) -> sderl_ops_awaits:await(Condition, 120_000, 20).

twice(Fun) ->
    ?assert(is_done(Fun())),
    ?assert(is_done(Fun())).

is_done(ok) -> true;
is_done({ok, _}) -> true;
is_done(_) -> false.

state(Id, Host) ->
    {ok, #{instances := #{Id := #{state := State}}}} = sderl_ops_host:survey(Host),
    State.

sentence(Why) -> unicode:characters_to_binary(sderl_ops_host:format_error(Why)).

%% Its contents do not get smaller by packing.
release(Config) -> release("release", 200_000, Config).

%% Made once: several cases have the same, and to pack a large one takes seconds.
release(Name, Bytes, Config) ->
    Folder = filename:join(?config(folder, Config), Name),
    Made = Folder ++ ".made",
    case file:consult(Made) of
        {ok, [Release]} -> Release;
        {error, enoent} ->
            File = filename:join([Folder, "lib", "x", "ebin", "x"]),
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, crypto:strong_rand_bytes(Bytes)),
            Archives = filename:join(?config(folder, Config), "archives"),
            {ok, Sha, Archive} = sderl_ops_archive:prepare({folder, Folder}, Archives),
            ok = file:write_file(Made, io_lib:format("~tp.~n", [{Sha, Archive}])),
            {Sha, Archive}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_ops_hosts).
-moduledoc """
Hosts for operations, on this machine: each is an unprivileged OpenSSH server with its own address,
port, host key, user and home (`priv/hosts.sh`). Where users may create network namespaces, each has
one of its own, and the bytes between the hosts and the service are counted; elsewhere they share
the loopback. Or folders are hosts, without servers.

However the calling program ends, everything that was started on the hosts is killed after it.
""".

-export([has_servers/0, start/3, stop/1, provider/1, inside/2, ssh/3, homes/1, bytes/1, kind/1]).
-export([cpu_ms/1]).
-export_type([hosts/0, kind/0]).

-type kind() :: namespaces | loopback | folders.

-type host() :: #{
    name := binary(),
    address := binary(),
    port := pos_integer(),
    home := file:filename()
}.

-doc "`epmd` is the port of epmd, `os_pid` the process that keeps the namespaces.".
-type hosts() :: #{
    kind := kind(),
    folder := file:filename(),
    hosts := [host()],
    epmd := pos_integer(),
    path := string(),
    os_pid := non_neg_integer(),
    keeper := pid()
}.

-define(START_MS, 60_000).
-define(END_MS, 60_000).
-define(FETCH_MS, 300_000).

-doc "Whether hosts can be OpenSSH servers here; fetches OpenSSH where the machine has none.".
-spec has_servers() -> boolean().
has_servers() ->
    case programs() of
        {ok, Path, _} -> can_unshare("-rm", "true", Path);
        {error, _} -> false
    end.

-doc """
Starts hosts in a folder, whose path must be short because sockets are in it. `servers` are in
namespaces where these can be had. An error is a sentence.
""".
-spec start(file:filename(), Count :: pos_integer(), servers | loopback | folders) ->
    {ok, hosts()} | {error, unicode:chardata()}.
start(Folder, Count, folders) ->
    begin_hosts(folders, Folder, Count, os:getenv("PATH"), "");
start(Folder, Count, Wish) ->
    maybe
        {ok, Path, Sshd} ?= programs(),
        case Wish =:= servers andalso has_namespaces(Path) of
            true -> begin_hosts(namespaces, Folder, Count, Path, Sshd);
            false -> begin_hosts(loopback, Folder, Count, Path, Sshd)
        end
    end.

%% OpenSSH's programs of the machine, or fetched: the last line of the tool's output is the path.
programs() ->
    Root = os:getenv("SDERL_ROOT", code:lib_dir(sderl_bench) ++ "/../../../.."),
    Tool = filename:join(Root, "toolchain/sshd"),
    case sderl_bench_program:run(Tool, [], #{timeout => ?FETCH_MS}) of
        {ok, 0, Said} ->
            Found = binary_to_list(lists:last(string:lexemes(Said, "\n"))),
            %% `ip` and `sshd` are often not on the path of a user.
            Path = Found ++ ":" ++ os:getenv("PATH") ++ ":/usr/sbin:/sbin",
            case os:find_executable("sshd", Path) of
                false -> {error, "there is no sshd in " ++ Found};
                Sshd -> {ok, Path, Sshd}
            end;
        {ok, _, Said} ->
            {error, ["there is no OpenSSH server here: ", string:trim(Said)]};
        {error, Why} ->
            {error, io_lib:format("there is no OpenSSH server here: ~ts: ~0tp", [Tool, Why])}
    end.

has_namespaces(Path) ->
    can_unshare("-rmn", "ip link add name sderl0 type veth peer name sderl1", Path).

can_unshare(What, Try, Path) ->
    case os:find_executable("unshare", Path) of
        false ->
            false;
        Unshare ->
            {ok, 0, <<>>} =:= sderl_bench_program:run(Unshare, [What, "sh", "-c", Try],
                                                      #{timeout => ?START_MS,
                                                        env => [{"PATH", Path}]})
    end.

begin_hosts(Kind, Folder, Count, Path, Sshd) ->
    Epmd = free_port(),
    Hosts = [host(Kind, Number, Folder) || Number <- lists:seq(1, Count), Kind =/= folders],
    maybe
        ok ?= keys(Hosts, Folder, Path),
        ok = lists:foreach(fun(Host) -> write(Host, Folder, Epmd, Path, Sshd) end, Hosts),
        ok = write_known(Hosts, Folder),
        keep(#{kind => Kind, folder => Folder, hosts => Hosts, epmd => Epmd, path => Path}, Sshd)
    end.

host(Kind, Number, Folder) ->
    Name = "h" ++ integer_to_list(Number),
    {Address, Port} = case Kind of
        namespaces -> {"10.99.0." ++ integer_to_list(Number), 2200 + Number};
        loopback -> {"127.0.0." ++ integer_to_list(Number + 1), free_port()}
    end,
    #{name => list_to_binary(Name), address => list_to_binary(Address), port => Port,
      home => filename:join([Folder, Name, "home"])}.

free_port() ->
    {ok, Socket} = gen_tcp:listen(0, []),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

%% A key for each host, and one for the user.
keys(Hosts, Folder, Path) ->
    Files = [filename:join([Folder, Name, "host_key"]) || #{name := Name} <- Hosts]
        ++ [filename:join(Folder, "key") || Hosts =/= []],
    keys_each(Files, os:find_executable("ssh-keygen", Path)).

keys_each([], _) -> ok;
keys_each([File | Files], Keygen) ->
    ok = filelib:ensure_dir(File),
    Args = ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", unicode:characters_to_list(File)],
    case sderl_bench_program:run(Keygen, Args, #{timeout => ?START_MS}) of
        {ok, 0, _} -> keys_each(Files, Keygen);
        Other -> {error, io_lib:format("ssh-keygen made no key: ~0tp", [Other])}
    end.

write(#{name := Name, address := Address, port := Port, home := Home}, Folder, Epmd, Path, Sshd) ->
    In = fun(File) -> filename:join([Folder, Name, File]) end,
    %% From OpenSSH 10 on sshd runs other programs, which it expects where it was to be installed.
    Parts = filename:join([filename:dirname(Sshd), "..", "lib", "openssh"]),
    ok = filelib:ensure_path(Home),
    ok = file:write_file(In("passwd"), ["sderl:x:1000:1000::", Home, ":/bin/sh\n"]),
    ok = file:write_file(In("sshd_config"), [
        "ListenAddress ", Address, "\nPort ", integer_to_list(Port), "\nHostKey ", In("host_key"),
        "\nAuthorizedKeysFile ", filename:join(Folder, "key.pub"), "\nPidFile none\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "MaxStartups 200\nMaxSessions 100\n"
        "SetEnv PATH=", Path, " ERL_EPMD_PORT=", integer_to_list(Epmd), "\n",
        [[Option, " ", Part, "\n"]
         || {Option, Program} <- [{"SshdSessionPath", "sshd-session"},
                                  {"SshdAuthPath", "sshd-auth"}],
            Part <- [filename:join(Parts, Program)],
            filelib:is_regular(Part)]
    ]).

write_known(Hosts, Folder) ->
    Lines = [begin
        {ok, Text} = file:read_file(filename:join([Folder, Name, "host_key.pub"])),
        [Kind, Public | _] = string:lexemes(string:trim(Text), " "),
        ["[", Address, "]:", integer_to_list(Port), " ", Kind, " ", Public, "\n"]
    end || #{name := Name, address := Address, port := Port} <- Hosts],
    ok = filelib:ensure_path(Folder),
    file:write_file(filename:join(Folder, "known_hosts"), Lines).

%% A process of its own owns the port: when it ends, the hosts end.
keep(#{kind := Kind, folder := Folder, hosts := Hosts, path := Path} = Of, Sshd) ->
    Script = filename:join(code:priv_dir(sderl_bench), "hosts.sh"),
    Unshare = case Kind of
        namespaces -> ["unshare", "-rmn"];
        loopback -> ["unshare", "-rm"];
        folders -> []
    end,
    Words = Unshare ++ ["sh", Script, atom_to_list(Kind), Folder,
                        integer_to_list(length(Hosts)), Sshd],
    Caller = self(),
    Keeper = spawn(fun() ->
        Monitor = monitor(process, Caller),
        Port = open_port({spawn_executable, os:find_executable(hd(Words))}, [
            {args, tl(Words)}, {env, [{"PATH", Path}]}, {line, 1000}, exit_status,
            stderr_to_stdout
        ]),
        {os_pid, OsPid} = erlang:port_info(Port, os_pid),
        keep_port(Port, OsPid, Caller, Monitor, [])
    end),
    receive
        {Keeper, ready, OsPid} -> {ok, Of#{os_pid => OsPid, keeper => Keeper}};
        {Keeper, {error, Said}} -> {error, ["the hosts do not start: ", Said]}
    after ?START_MS ->
        exit(Keeper, kill),
        {error, "the hosts do not start in time"}
    end.

keep_port(Port, OsPid, Caller, Monitor, Said) ->
    receive
        {Port, {data, {_, "ready"}}} ->
            Caller ! {self(), ready, OsPid},
            keep_port(Port, OsPid, Caller, Monitor, []);
        {Port, {data, {_, Line}}} ->
            keep_port(Port, OsPid, Caller, Monitor, [Line, "; " | Said]);
        {Port, {exit_status, _}} ->
            Caller ! {self(), {error, lists:reverse(Said)}};
        {stop, From} ->
            true = port_command(Port, "end\n"),
            receive {Port, {exit_status, _}} -> From ! {self(), stopped} end;
        {'DOWN', Monitor, process, Caller, _} ->
            port_close(Port)
    end.

-doc "Kills all that was started on them.".
-spec stop(hosts()) -> ok.
stop(#{keeper := Keeper}) ->
    Monitor = monitor(process, Keeper),
    Keeper ! {stop, self()},
    receive
        {Keeper, stopped} -> ok;
        {'DOWN', Monitor, process, Keeper, _} -> ok
    after ?END_MS ->
        exit(Keeper, kill)
    end,
    true = demonitor(Monitor, [flush]),
    ok.

-doc "The kind of the hosts.".
-spec kind(hosts()) -> kind().
kind(#{kind := Kind}) -> Kind.

-doc "The provider for a cluster's file; the number of hosts is needed where they are folders.".
-spec provider(hosts()) -> fun((Folders :: pos_integer()) -> map()).
provider(#{kind := folders}) ->
    fun(Count) -> #{type => local, hosts => Count} end;
provider(#{folder := Folder, hosts := Hosts}) ->
    fun(_) ->
        #{type => ssh, user => ~"sderl",
          key => unicode:characters_to_binary(filename:join(Folder, "key")),
          known_hosts => unicode:characters_to_binary(filename:join(Folder, "known_hosts")),
          hosts => [maps:with([name, address, port], Host) || Host <- Hosts]}
    end.

-doc """
A command with what makes it run on the machine of the service, from which the hosts can be
reached, and its environment.
""".
-spec inside([string()], hosts()) -> {[string()], Env :: [{string(), string()}]}.
inside(Words, #{kind := Kind, os_pid := OsPid, epmd := Epmd, path := Path}) ->
    Enter = case Kind of
        namespaces ->
            ["nsenter", "-t", integer_to_list(OsPid), "-U", "-n", "--preserve-credentials"];
        _ ->
            []
    end,
    {Enter ++ Words, [{"PATH", Path}, {"ERL_EPMD_PORT", integer_to_list(Epmd)}]}.

-doc "The program, its arguments and its environment that run a command on a host.".
-spec ssh(Number :: pos_integer(), Command :: string(), hosts()) ->
    {file:filename(), [string()], Env :: [{string(), string()}]}.
ssh(Number, Command, #{folder := Folder, hosts := Hosts, path := Path} = Of) ->
    #{address := Address, port := Port} = lists:nth(Number, Hosts),
    Options = ["BatchMode=yes", "StrictHostKeyChecking=yes", "GlobalKnownHostsFile=none",
               "UserKnownHostsFile=" ++ filename:join(Folder, "known_hosts"),
               "IdentityFile=" ++ filename:join(Folder, "key"), "IdentitiesOnly=yes",
               "User=sderl", "LogLevel=ERROR"],
    {[Program | Words], Env} =
        inside(["ssh", "-F", "none", "-T", "-p", integer_to_list(Port)]
               ++ lists:append([["-o", Option] || Option <- Options])
               ++ ["--", binary_to_list(Address), Command], Of),
    {os:find_executable(Program, Path), Words, Env}.

-doc "The homes of the hosts' users, in the order of the hosts.".
-spec homes(hosts()) -> [file:filename()].
homes(#{hosts := Hosts}) -> [Home || #{home := Home} <- Hosts].

-doc """
Bytes that the machine of the service has received from the hosts and sent to them, headers
included; `undefined` where they share a loopback.
""".
-spec bytes(hosts()) -> {Received :: non_neg_integer(), Sent :: non_neg_integer()} | undefined.
bytes(#{kind := namespaces, os_pid := OsPid}) ->
    {ok, Text} = file:read_file(["/proc/", integer_to_list(OsPid), "/net/dev"]),
    [Counts] = [Counts || Line <- string:split(Text, "\n", all),
                          [Name, Counts] <- [string:split(string:trim(Line), ":")],
                          Name =:= ~"hosts"],
    Numbers = [binary_to_integer(Word) || Word <- string:lexemes(Counts, " ")],
    {lists:nth(1, Numbers), lists:nth(9, Numbers)};
bytes(_) ->
    undefined.

-doc """
Processor time of all processes that are on the hosts now, servers included, and of the ended ones
that they waited for. Call it before nodes are stopped: the time of a process for which nobody waits
is lost.
""".
-spec cpu_ms(hosts()) -> number().
cpu_ms(#{folder := Folder, os_pid := OsPid}) ->
    Mark = unicode:characters_to_binary([Folder, "/"]),
    Marks = [<<"SDERL_OPS_FOLDER=", Mark/binary>>, <<"SDERL_BARE=", Mark/binary>>],
    %% A node outlives the shell that has started it, so it is not in the tree.
    Nodes = [Pid || {Pid, Environment} <- sderl_bench_proc:emulators(),
                    lists:any(fun(Value) -> binary:match(Value, Marks) =/= nomatch end,
                              Environment)],
    Pids = lists:usort(sderl_bench_proc:tree(integer_to_list(OsPid)) ++ Nodes),
    sderl_bench_proc:used_ms(Pids).

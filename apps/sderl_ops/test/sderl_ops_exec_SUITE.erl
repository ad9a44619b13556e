%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_exec_SUITE).
-moduledoc """
Providers that are programs: the examples of the documents, and programs that do what they must not.
Where no OpenSSH server can be had, or none runs as this user, what needs one is skipped.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([answers/1, bad_programs/1, environment/1, ssh_servers/1, terraform/1, end_to_end/1]).

-define(PATIENCE_MS, 180_000).
-define(IDS, [~"web1", ~"web2"]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [answers, bad_programs, environment, ssh_servers, terraform, end_to_end].

init_per_testcase(Case, Config) ->
    Folder = filename:join(?config(priv_dir, Config), Case),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder} | Config].

end_per_testcase(end_to_end, _) ->
    Folder = short(),
    _ = [os:cmd("kill -9 " ++ Pid) || Pid <- sderl_ops_asks:processes_of(Folder)],
    _ = [os:cmd("kill -9 " ++ binary_to_list(Pid))
         || Pattern <- ["service/pid", "hosts/shop/*/pid"],
            File <- filelib:wildcard(Pattern, Folder),
            {ok, Pid} <- [file:read_file(filename:join(Folder, File))]],
    _ = [ok = sderl_ops_awaits:end_epmd(binary_to_list(Port))
         || {ok, Port} <- [file:read_file(filename:join(Folder, "port"))]],
    _ = file:del_dir_r(Folder),
    ok;
end_per_testcase(_, _) -> ok.

%% ---------------------------------------------------------------- cases

answers(Config) ->
    Id = "id=$(printf '%s' \"$line\" | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')",
    Text = ["read -r line\n", Id, "\necho word >&2\n"
            "printf '{\"id\":\"%s\",\"hosts\":[{\"name\":\"eu-1\",\"address\":\"10.0.0.1\"}]}\\n' "
            "\"$id\"\n"],
    ?assertMatch({ok, [#{name := ~"eu-1", port := 22, state := running}]},
                 ask(#{do => list}, program(Text, Config), Config)),
    ?assertMatch({error, _}, ask(#{do => delete, host => ~"eu-1"}, program(Text, Config), Config)).

bad_programs(Config) ->
    [begin
         {error, Why} = ask(#{do => list}, program(Text, Config), Config),
         Sentence = unicode:characters_to_list(Why),
         ct:log("~ts", [Sentence]),
         ?assertMatch({[_ | _], _}, {string:find(Sentence, Part), Part})
     end || {Text, Part} <- [
         {"sleep 1000\n", "did not end within 1 s"},
         {"trap '' TERM\nsleep 1000 & wait\n", "did not end within 1 s"},
         {"kill -9 $$\n", "status 137"},
         {"echo broken\nexit 7\n", "status 7"},
         {"head -c 2000000 /dev/zero | tr '\\0' x\n", "450000 bytes"},
         {"echo '{\"id\":\"1\",\"hosts\":[]}'\n", "another"},
         {"echo '{\"hosts'\n", "no JSON"},
         {"exit 0\n", "without an answer"}]],
    Missing = (program("", Config))#{program := ~"/there/is/no/such-program"},
    ?assertMatch({error, _}, ask(#{do => list}, Missing, Config)),
    %% What was killed is gone in a moment.
    Folder = ?config(folder, Config),
    sderl_ops_awaits:await(fun() ->
        Left = processes(Folder),
        Left =:= [] orelse Left
    end, ?PATIENCE_MS).

%% The program has the variables of the file, and none of the service's.
environment(Config) ->
    Secret = filename:join(?config(folder, Config), "secret"),
    ok = file:write_file(Secret, "word\n"),
    ok = file:change_mode(Secret, 8#600),
    true = os:putenv("SDERL_TEST_OTHER", "shown"),
    Text = "echo \"token=$TOKEN plain=$PLAIN other=$SDERL_TEST_OTHER home=${HOME:+yes}\"\n",
    Config1 = (program(Text, Config))#{env => #{~"TOKEN" => {file, list_to_binary(Secret)},
                                                ~"PLAIN" => ~"text"}},
    {error, Why} = ask(#{do => list}, Config1, Config),
    true = os:unsetenv("SDERL_TEST_OTHER"),
    ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Why),
                                         "token=word plain=text other= home=yes")),
    Lacking = Config1#{env => #{~"TOKEN" => {file, ~"/there/is/no/such"}}},
    ?assertMatch({error, _}, ask(#{do => list}, Lacking, Config)).

%% The example: servers of this machine are made, requested again, listed, and deleted.
ssh_servers(Config) ->
    case path() of
        {ok, Path} -> ssh_servers(Path, Config);
        {error, Why} -> {skip, "no OpenSSH server: " ++ Why}
    end.

ssh_servers(Path, Config) ->
    Folder = ?config(folder, Config),
    Before = os:getenv("PATH"),
    true = os:putenv("PATH", Path ++ ":" ++ Before),
    {Key, Hosts} = hosts_folder(Folder, Path),
    Program = (provider(as_user(Folder), 120))#{arguments => [list_to_binary(Hosts)],
                                                key => list_to_binary(Key), user => ~"sderl"},
    Ask = fun(Request) -> ask(Request, Program, Config) end,
    Create = #{do => create, host => ~"eu-1", place => #{domain => ~"eu", labels => #{}}},
    try
        ?assertEqual({ok, []}, Ask(#{do => list})),
        case Ask(Create) of
            {ok, [Told]} ->
                ?assertEqual({ok, [Told]}, Ask(Create)),
                ?assertEqual({ok, [Told]}, Ask(#{do => list})),
                Host = sderl_ops_exec:host(Program, context(Config), ~"cloud/eu-1", Told),
                case sderl_ops_host:survey(Host) of
                    {ok, Seen} ->
                        ?assertMatch(#{instances := #{}}, Seen);
                    {error, Why} ->
                        ct:fail("~ts", [sderl_ops_host:format_error(Why)])
                end,
                %% The key that the program told is the one that is believed.
                Other = Told#{host_key := ~"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGzVr0eWfFAuYqZn"},
                ?assertMatch({error, {_, _}}, sderl_ops_host:survey(
                    sderl_ops_exec:host(Program, (context(Config))#{folder => Hosts},
                                        ~"cloud/eu-1", Other))),
                ?assertEqual({ok, []}, Ask(#{do => delete, host => ~"eu-1"})),
                ?assertEqual({ok, []}, Ask(#{do => delete, host => ~"eu-1"})),
                ?assertEqual({ok, []}, Ask(#{do => list}));
            {error, Why} ->
                {skip, "no server runs as this user: " ++ unicode:characters_to_list(Why)}
        end
    after
        _ = Ask(#{do => delete, host => ~"eu-1"}),
        _ = [sderl_ops_openssh:close(filename:join(F, "ssh")) || F <- [Folder, Hosts]],
        true = os:putenv("PATH", Before)
    end.

hosts_folder(Folder, Path) ->
    Key = filename:join(Folder, "key"),
    {ok, 0, _} = sderl_ops_port:run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", Key],
                                    none, 60_000),
    Hosts = filename:join(Folder, "hosts"),
    ok = filelib:ensure_path(Hosts),
    {ok, _} = file:copy(Key ++ ".pub", filename:join(Hosts, "key.pub")),
    ok = file:write_file(filename:join(Hosts, "sshd_options"), parts(Path)),
    {Key, Hosts}.

%% A service over hosts that the example makes: brought up, a lost host replaced, a program that
%% fails told before anything changes, and all taken away.
end_to_end(_) ->
    case path() of
        {ok, Path} -> end_to_end_over(Path);
        {error, Why} -> {skip, "no OpenSSH server: " ++ Why}
    end.

end_to_end_over(Path) ->
    Folder = short(),
    ok = filelib:ensure_path(Folder),
    {Key, Hosts} = hosts_folder(Folder, Path),
    Program = as_user(Folder),
    Port = integer_to_list(sderl_ops_awaits:free_port()),
    ok = file:write_file(filename:join(Folder, "port"), Port),
    Cluster = cluster(Program, Hosts, Key, Port),
    Service = start_service(Folder, Path, Port),
    File = sderl_ops_asks:write(Cluster, Folder),
    case sderl_ops_asks:ask_any(Service, apply, #{file => File}) of
        {done, #{~"state" := State, ~"problems" := Problems}} ->
            ?assertEqual({~"steady", []}, {State, Problems}),
            lost_host(Service, Hosts),
            program_fails(Service, Cluster, Folder),
            #{~"state" := ~"destroyed"} = sderl_ops_asks:ask(Service, destroy, #{}),
            ?assertEqual([], filelib:wildcard("shop/*", Hosts)),
            ?assertEqual([], sderl_ops_asks:processes_of(Folder)),
            #{} = sderl_ops_asks:ask(Service, stop, #{}),
            ok;
        {error, Text, Why} ->
            {skip, ["no server runs as this user: ", Text, " ", Why]}
    end.

lost_host(Service, Hosts) ->
    ?assertEqual([~"cloud/eu-1", ~"cloud/eu-2"], up_hosts(Service)),
    all_run_once(Service, Hosts),
    {ok, Server} = file:read_file(filename:join(Hosts, "shop/eu-1/pid")),
    Sshd = string:trim(binary_to_list(Server)),
    %% Also processes that serve an open connection.
    Lost = [Sshd | sderl_ops_asks:below(Sshd)]
        ++ sderl_ops_asks:processes_of(filename:join(Hosts, "shop/eu-1")),
    _ = os:cmd("kill -9 " ++ lists:flatten(lists:join(" ", Lost))),
    sderl_ops_awaits:await(fun() ->
        #{~"state" := State} = Status = sderl_ops_asks:ask(Service, status, #{}),
        (State =:= ~"steady" andalso [~"cloud/eu-2", ~"cloud/eu-3"] =:= up_hosts(Service))
            orelse Status
    end, ?PATIENCE_MS),
    all_run_once(Service, Hosts),
    ?assertEqual(["shop/eu-2", "shop/eu-3"], filelib:wildcard("shop/*", Hosts)).

program_fails(Service, #{providers := #{cloud := Cloud}} = Cluster, Folder) ->
    Broken = filename:join(Folder, "broken.sh"),
    ok = file:write_file(Broken, "#!/bin/sh\necho 'no money' >&2\nexit 7\n"),
    ok = file:change_mode(Broken, 8#755),
    Program = Cloud#{program => list_to_binary(Broken)},
    File = sderl_ops_asks:write(Cluster#{providers => #{cloud => Program}}, Folder),
    [begin
         {error, ~"that cannot be done", [Problem]} =
             sderl_ops_asks:ask_any(Service, Do, #{file => File}),
         ?assertMatch({match, _}, re:run(Problem, "^providers.cloud: .*status 7.*no money"))
     end || Do <- [plan, apply]],
    #{~"state" := ~"steady", ~"revision" := 1} = sderl_ops_asks:ask(Service, status, #{}).

up_hosts(Service) ->
    #{~"hosts" := Hosts} = sderl_ops_asks:ask(Service, status, #{}),
    [Id || #{~"id" := Id, ~"state" := ~"up"} <- Hosts].

all_run_once(Service, Hosts) ->
    #{~"instances" := Instances} = sderl_ops_asks:ask(Service, status, #{}),
    ?assertEqual([{Id, ~"up"} || Id <- ?IDS],
                 [{Id, State} || #{~"id" := Id, ~"state" := State} <- Instances]),
    [?assertMatch({Id, [_]}, {Id, sderl_ops_asks:beams(Id, Hosts)}) || Id <- ?IDS].

cluster(Program, Hosts, Key, Port) ->
    Ebin = unicode:characters_to_binary(filename:dirname(code:which(s_group))),
    #{
        cluster => ~"shop",
        providers => #{cloud => #{
            type => exec, program => list_to_binary(Program), arguments => [list_to_binary(Hosts)],
            env => #{'ERL_EPMD_PORT' => list_to_binary(Port)}, timeout_s => 120,
            key => list_to_binary(Key), user => ~"sderl"
        }},
        releases => #{code => #{code => [Ebin], applications => [sderl]}},
        domains => #{eu => #{provider => cloud, hosts => 2}},
        families => #{web => #{release => code, domains => [eu], count => 2}},
        groups => [#{name => shop, nodes => [~"web*"]}]
    }.

start_service(Folder, Path, Port) ->
    Service = filename:join(Folder, "service"),
    ok = filelib:ensure_path(Service),
    Code = io_lib:format("sderl_ops_service:run(~tp), halt().", [Service]),
    {_, Pid} = sderl_ops_asks:start(Code, [], [
        {"ERL_EPMD_PORT", Port}, {"PATH", Path ++ ":" ++ os:getenv("PATH")}
    ]),
    ok = file:write_file(filename:join(Service, "pid"), integer_to_list(Pid)),
    sderl_ops_awaits:await(fun() -> sderl_ops_asks:is_reachable(Service) end, ?PATIENCE_MS),
    Service.

%% For sockets in it.
short() -> filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-oe-" ++ os:getpid()).

%% A program in the place of Terraform that keeps what it is told, so that the wrapper is run whole.
terraform(Config) ->
    case [Tool || Tool <- ["jq", "flock"], os:find_executable(Tool) =:= false] of
        [] -> terraform_runs(Config);
        [Tool | _] -> {skip, "there is no " ++ Tool}
    end.

terraform_runs(Config) ->
    Folder = ?config(folder, Config),
    Module = filename:join(Folder, "module"),
    ok = filelib:ensure_path(Module),
    Fake = filename:join(Folder, "terraform"),
    ok = file:write_file(Fake, """
    #!/bin/sh
    echo "$*" >>calls
    case $1 in
    init) mkdir -p .terraform ;;
    apply)
        if [ -f broken ]; then echo "Error: no money" >&2; exit 1; fi
        jq '{hosts: {value: (.hosts | with_entries(
            .value = {address: ("10.0.0." + (.key | split("-") | last)), port: null}))}}' \
            shop.tfvars.json >recorded
        ;;
    output) cat recorded 2>/dev/null || echo '{}' ;;
    esac
    """),
    ok = file:change_mode(Fake, 8#755),
    Program = (provider(example("terraform.sh"), 60))#{
        arguments => [list_to_binary(Module)], env => #{~"TERRAFORM" => list_to_binary(Fake)}},
    Ask = fun(Request) -> ask(Request, Program, Config) end,
    Create = fun(Name) ->
        #{do => create, host => Name, place => #{domain => ~"eu", labels => #{~"a" => ~"b"}}}
    end,
    ?assertEqual({ok, []}, Ask(#{do => list})),
    {ok, [#{address := ~"10.0.0.1"} = One]} = Ask(Create(~"eu-1")),
    {ok, [One]} = Ask(Create(~"eu-1")),
    {ok, [Two]} = Ask(Create(~"eu-2")),
    ?assertEqual({ok, [One, Two]}, Ask(#{do => list})),
    ok = file:write_file(filename:join(Module, "broken"), ""),
    {error, Why} = Ask(Create(~"eu-3")),
    ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Why), "no money")),
    ok = file:delete(filename:join(Module, "broken")),
    ?assertEqual({ok, []}, Ask(#{do => delete, host => ~"eu-1"})),
    {ok, Left} = Ask(#{do => list}),
    %% The next request finishes an interrupted one.
    ?assertEqual([~"eu-2", ~"eu-3"], [Name || #{name := Name} <- Left]).

%% ---------------------------------------------------------------- programs

program(Text, Config) ->
    Name = lists:concat(["program-", erlang:unique_integer([positive]), ".sh"]),
    File = filename:join(?config(folder, Config), Name),
    ok = file:write_file(File, ["#!/bin/sh\n", Text]),
    ok = file:change_mode(File, 8#755),
    provider(File, 1 + 59 * length([long || string:find(Text, "sleep") =:= nomatch])).

provider(File, Seconds) ->
    #{type => exec, program => unicode:characters_to_binary(File), arguments => [], env => #{},
      timeout_s => Seconds, lost_after_s => 300}.

ask(Request, Program, Config) ->
    sderl_ops_exec:ask(Program, (context(Config))#{provider => ~"cloud"}, Request).

context(Config) -> #{cluster => ~"shop", names => long, folder => ?config(folder, Config)}.

example(Name) ->
    filename:join([root(), "docs/examples/ops/exec", Name]).

%% The folder of sources is a link into the tree.
root() -> filename:join([code:lib_dir(sderl_ops), "src", "../../.."]).

path() ->
    case sderl_ops_port:run([filename:join([root(), "toolchain", "sshd"])], none,
                            240_000) of
        {ok, 0, Output} -> {ok, binary_to_list(lists:last(string:lexemes(Output, "\n")))};
        {ok, _, Output} -> {error, unicode:characters_to_list(Output)};
        {error, Why, _} -> {error, atom_to_list(Why)}
    end.

%% As a user of a namespace, as servers of a superuser want a user and folders of the machine.
as_user(Folder) ->
    In = fun(Name) -> filename:join(Folder, Name) end,
    ok = file:write_file(In("passwd"), ["sderl:x:1000:1000::", Folder, ":/bin/sh\n"]),
    ok = file:write_file(In("as-user.sh"), [
        "#!/bin/sh\nexec unshare -rm sh -c 'mount --bind \"$0\" /etc/passwd && "
        "exec unshare -U --map-user=1000 --map-group=1000 \"$@\"' ", In("passwd"), " ",
        example("hosts.sh"), " \"$@\"\n"]),
    ok = file:change_mode(In("as-user.sh"), 8#755),
    In("as-user.sh").

%% From OpenSSH 10 on it has parts, which it looks for where it was meant to be installed.
parts(Path) ->
    [Sshd | _] = string:lexemes(Path, ":"),
    Parts = filename:join([Sshd, "..", "lib", "openssh"]),
    [[Option, " ", Part, "\n"]
     || {Option, Name} <- [{"SshdSessionPath", "sshd-session"}, {"SshdAuthPath", "sshd-auth"}],
        Part <- [filename:join(Parts, Name)], filelib:is_regular(Part)].

%% Those that have a program of this case on their command line.
processes(Folder) ->
    {ok, All} = file:list_dir("/proc"),
    [Pid || Pid <- All, {ok, Line} <- [file:read_file("/proc/" ++ Pid ++ "/cmdline")],
            binary:match(Line, list_to_binary(filename:join(Folder, "program-"))) =/= nomatch].

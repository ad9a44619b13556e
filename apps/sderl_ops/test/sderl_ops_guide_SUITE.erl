%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_guide_SUITE).
-moduledoc """
The guide in docs/operations.md, typed as it stands there: each block behind `<!-- ops -->` has
commands behind `$ `, and below each what it says. White space does not count, and `...` stands for
anything. And what takes more hosts than a guide has.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([guide/1, relays/1]).

-import(sderl_ops_awaits, [free_port/0]).
-import(sderl_ops_places, [root/0]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [guide, relays].

init_per_suite(Config) ->
    case os:type() of
        {unix, linux} ->
            Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-ops-g-" ++ os:getpid()),
            ok = filelib:ensure_path(Folder),
            [{folder, Folder}, {epmd, integer_to_list(free_port())} | Config];
        _ ->
            {skip, "processes are found in /proc"}
    end.

end_per_suite(Config) ->
    Folder = ?config(folder, Config),
    %% A guide that failed may have left the service and its nodes.
    _ = [os:cmd("kill -9 " ++ Pid) || Pid <- processes_of(Folder)],
    ok = sderl_ops_awaits:end_epmd(?config(epmd, Config)),
    _ = file:del_dir_r(Folder),
    ok.

guide(Config) ->
    {ok, Page} = file:read_file(filename:join([root(), "docs", "operations.md"])),
    Commands = commands(unicode:characters_to_list(Page)),
    ?assert(length(Commands) >= 10),
    [_ = type(Command, Expected, Config) || {Command, Expected} <- Commands],
    await_none(?config(folder, Config)).

%% On so many hosts the service sends a release to some, and these give it to the others.
relays(Config) ->
    Hosts = 12,
    File = filename:join(?config(folder, Config), "relays.json"),
    Ebin = unicode:characters_to_binary(filename:dirname(code:which(s_group))),
    ok = file:write_file(File, json:encode(#{
        cluster => ~"many",
        providers => #{here => #{type => local, hosts => Hosts}},
        releases => #{code => #{code => [Ebin], applications => [sderl]}},
        domains => #{one => #{provider => here}},
        families => #{web => #{release => code, domains => [one], count => Hosts,
                               limits => #{per_host => 1}}}
    })),
    Type = fun(What, Expected) ->
        type(["bin/sderl ops ", What, " --dir ", filename:join(?config(folder, Config), "many")],
             Expected, Config)
    end,
    _ = Type(["apply ", File], "... revision 1: all is as the file says"),
    Said = Type("status --json", "..."),
    #{~"done" := #{~"state" := ~"steady", ~"hosts" := Seen, ~"sent" := Sent}} =
        json:decode(unicode:characters_to_binary(Said)),
    ?assertEqual(lists:duplicate(Hosts, {~"up", 1}),
                 [{State, Count} || #{~"state" := State, ~"instances" := Count} <- Seen]),
    #{~"archives" := Archives, ~"archive_bytes" := Bytes, ~"control_bytes" := Control} = Sent,
    ct:log("~b of ~b archives came from the service", [Archives, Hosts]),
    ?assert(Archives >= 1 andalso Archives =< 8),
    ?assert(Bytes > 0 andalso Control > 0),
    _ = Type("destroy --yes", "... nothing of the cluster is left"),
    _ = Type("stop", "..."),
    await_none(?config(folder, Config)).

type(Command, Expected, Config) ->
    Environment = [{"XDG_STATE_HOME", ?config(folder, Config)},
                   {"ERL_EPMD_PORT", ?config(epmd, Config)}],
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", lists:flatten(Command)]}, {cd, root()}, {env, Environment},
                      binary, exit_status, stderr_to_stdout]),
    {Status, Said} = output(Port, <<>>),
    ct:log("$ ~ts~n~ts", [Command, Said]),
    ?assertMatch({0, true, _, _}, {Status, is_match(Said, Expected), Command, Said}),
    Said.

output(Port, Said) ->
    receive
        {Port, {data, Bytes}} -> output(Port, <<Said/binary, Bytes/binary>>);
        {Port, {exit_status, Status}} -> {Status, unicode:characters_to_list(Said)}
    end.

%% ---------------------------------------------------------------- the page

commands(Page) ->
    [_ | Marked] = string:split(Page, "\n<!-- ops -->\n", all),
    lists:append([block(Part) || Part <- Marked]).

block(Part) ->
    [_, Rest] = string:split(Part, "```console\n"),
    [Block, _] = string:split(Rest, "\n```"),
    [_ | Commands] = string:split([$\n | Block], "\n$ ", all),
    [case string:split(Text, "\n") of
         [Command, Expected] -> {Command, Expected};
         [Command] -> {Command, ""}
     end || Text <- Commands].

is_match(Said, Expected) ->
    Words = [case Word of "..." -> ".*"; _ -> ["\\Q", Word, "\\E"] end
             || Word <- string:lexemes(string:replace(Expected, "...", " ... ", all), " \n")],
    Regex = unicode:characters_to_binary(["\\A\\s*", lists:join("\\s*", Words), "\\s*\\z"]),
    match =:= re:run(unicode:characters_to_binary(Said), Regex,
                     [dotall, unicode, {capture, none}]).

%% ---------------------------------------------------------------- processes

%% Its folder is in the arguments of the service, and in the environment of what runs on its hosts.
processes_of(Folder) ->
    [Pid || Pid <- element(2, file:list_dir("/proc")), hd(Pid) >= $0, hd(Pid) =< $9,
            Pid =/= os:getpid(), has(Folder, Pid, "cmdline") orelse has(Folder, Pid, "environ"),
            not is_epmd(Pid)].

has(Text, Pid, File) ->
    case file:read_file(filename:join(["/proc", Pid, File])) of
        {ok, Bytes} -> binary:match(Bytes, list_to_binary(Text)) =/= nomatch;
        {error, _} -> false
    end.

%% The port mapper has the environment of whichever node happened to start it.
is_epmd(Pid) -> {ok, ~"epmd\n"} =:= file:read_file("/proc/" ++ Pid ++ "/comm").

%% The service answers `stop` before it is gone.
await_none(Folder) ->
    sderl_ops_awaits:await(fun() ->
        case processes_of(Folder) of
            [] -> true;
            Pids -> Pids
        end
    end, 60_000).

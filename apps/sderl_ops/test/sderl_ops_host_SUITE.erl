%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_host_SUITE).
-moduledoc "What is done on a host, with folders of this machine and real processes.".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([release_twice/1, code_twice/1, own_files/1, commands_and_hooks/1, refusals/1,
         start_that_dies/1, start_that_never_returns/1, stop_that_is_ignored/1, exited_is_seen/1,
         side_by_side/1, killed_while_fetching/1, killed_while_laying_out/1,
         killed_while_starting/1, full_disk/1, together/1, hanging_program/1, service_is_killed/1,
         given_on/1, given_wrongly/1, killed_while_giving/1, sender_stands_still/1,
         deposed/1]).
%% A host in a namespace of its own.
-export([run/5]).
-behaviour(sderl_ops_transport).

all() ->
    [release_twice, code_twice, own_files, commands_and_hooks, refusals, start_that_dies,
     start_that_never_returns, stop_that_is_ignored, exited_is_seen, side_by_side,
     killed_while_fetching, killed_while_laying_out, killed_while_starting, full_disk, together,
     hanging_program, service_is_killed, given_on, given_wrongly, killed_while_giving,
     sender_stands_still, deposed].

%% A port mapper of its own: it is started by the first node, and ended with the suite.
init_per_suite(Config) ->
    Port = sderl_ops_awaits:free_port(),
    Before = os:getenv("ERL_EPMD_PORT"),
    true = os:putenv("ERL_EPMD_PORT", integer_to_list(Port)),
    [{epmd_before, Before} | Config].

end_per_suite(Config) ->
    ok = sderl_ops_awaits:end_epmd(os:getenv("ERL_EPMD_PORT")),
    case ?config(epmd_before, Config) of
        false -> os:unsetenv("ERL_EPMD_PORT");
        Port -> os:putenv("ERL_EPMD_PORT", Port)
    end.

init_per_testcase(Case, Config) ->
    Folder = filename:join(?config(priv_dir, Config), Case),
    Base = filename:join(Folder, "host with space"),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder}, {base, Base}, {host, host({sderl_ops_sh, #{base => Base}})} | Config].

end_per_testcase(_, Config) ->
    Host = ?config(host, Config),
    {ok, #{instances := Instances}} = sderl_ops_host:survey(Host),
    [ok = sderl_ops_host:remove(Host, Id) || Id := _ <- Instances],
    [] = processes(?config(base, Config)),
    ok.

host(Connection) ->
    #{id => ~"here/h1", address => ~"127.0.0.1", cluster => ~"shop", connection => Connection}.

%% ------------------------------------------------------------------ every verb, twice

%% A release that has its own commands, puts itself into the background and says when it is up.
release_twice(Config) ->
    Host = ?config(host, Config),
    Start = """
    #!/bin/sh
    grep -q '^-name' releases/1/vm.args || exit 3
    exec erl -detached -args_file releases/1/vm.args -connect_all false \
        -eval 'ok = file:write_file(os:getenv("SDERL_OPS_STATE") ++ "/up",
                                    atom_to_list(erlang:get_cookie()))'
    """,
    {Sha, Archive} = release(Config, #{"bin/start" => Start, "releases/1/vm.args" => "not mine"}),
    Layout = (layout(Sha))#{
        start := [~"bin/start"],
        commands => #{~"check" => [~"sh", ~"-c", ~"test -s \"$SDERL_OPS_STATE/up\""]},
        files => #{~"releases/1/vm.args" => ~"-name web1@127.0.0.1\n"}
    },
    twice(fun() -> sderl_ops_host:fetch(Host, Sha, Archive) end),
    twice(fun() -> sderl_ops_host:lay_out(Host, ~"web1", Layout) end),
    ?assertMatch(#{releases := [Sha],
                   instances := #{~"web1" := #{state := laid_out,
                                               release := Sha,
                                               settings := ~"s1"}}},
                 survey(Host)),
    twice(fun() -> sderl_ops_host:start(Host, ~"web1", 60) end),
    ?assertEqual(running, state(~"web1", Host)),
    ?assertEqual({ok, ~"secret"}, file:read_file(in_node("state/up", Config))),
    twice(fun() -> sderl_ops_host:hook(Host, ~"web1", ~"check") end),
    Before = processes(?config(base, Config)),
    twice(fun() -> sderl_ops_host:lay_out(Host, ~"web1", Layout) end),
    ?assertEqual(Before, processes(?config(base, Config))),
    twice(fun() -> sderl_ops_host:stop(Host, ~"web1", 30) end),
    ?assertEqual(laid_out, state(~"web1", Host)),
    twice(fun() -> sderl_ops_host:remove(Host, ~"web1") end),
    twice(fun() -> sderl_ops_host:drop_release(Host, Sha) end),
    ?assertMatch(#{releases := [], instances := Instances} when Instances =:= #{}, survey(Host)),
    ?assertEqual([], filelib:wildcard("{nodes,releases}/{,.}*", ?config(base, Config)) -- dots()).

dots() -> [Folder ++ "/" ++ Dots || Folder <- ["nodes", "releases"], Dots <- [".", ".."]].

%% Code alone: the host's Erlang runs it, with the configuration, cookie and name of the instance.
code_twice(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = code(Config, """
    start(_, _) ->
        {ok, Word} = application:get_env(tiny, word),
        ok = file:write_file(os:getenv("SDERL_OPS_STATE") ++ "/up",
                             io_lib:format("~s ~s ~s", [Word, node(), erlang:get_cookie()])),
        {ok, spawn_link(fun() -> receive stop -> ok end end)}.
    """),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    Layout = (layout(Sha))#{
        start := {code, [~"tiny"]},
        config => ~"[{tiny, [{word, \"hello\"}]}].\n"
    },
    twice(fun() -> sderl_ops_host:lay_out(Host, ~"web1", Layout) end),
    twice(fun() -> sderl_ops_host:start(Host, ~"web1", 60) end),
    ?assertEqual({ok, ~"hello web1@127.0.0.1 secret"}, file:read_file(in_node("state/up", Config))),
    ?assertEqual(running, state(~"web1", Host)),
    ?assertEqual({error, {in_use, ~"web1"}}, sderl_ops_host:drop_release(Host, Sha)),
    twice(fun() -> sderl_ops_host:stop(Host, ~"web1", 30) end),
    ?assertEqual(laid_out, state(~"web1", Host)),
    %% With files of its own an instance gets a copy, and the release stays unchanged.
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Layout#{settings := ~"s2",
                                                       files => #{~"lib/tiny/x" => ~"mine"}}),
    ?assertEqual({ok, ~"mine"}, file:read_file(in_node("release/lib/tiny/x", Config))),
    ?assertEqual({error, enoent}, file:read_file(in_release("lib/tiny/x", Sha, Config))).

%% Modes of secrets, an instance's own files over the release's, and an environment with all signs.
own_files(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper(),
                                       "etc/a" => "theirs",
                                       "etc/b" => "b"}),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    Odd = ~"it's \"$HOME\" `x` \\ \n 2; ä",
    Layout = (layout(Sha))#{
        files => #{~"etc/a" => ~"mine", ~"bin/own" => ~"#!/bin/sh\nprintf %s \"$ODD\" >odd\n"},
        env => #{~"ODD" => Odd},
        commands => #{~"own" => [~"bin/own"]}
    },
    twice(fun() -> sderl_ops_host:lay_out(Host, ~"web1", Layout) end),
    ok = sderl_ops_host:hook(Host, ~"web1", ~"own"),
    ?assertEqual({ok, Odd}, file:read_file(in_node("release/odd", Config))),
    ?assertEqual({ok, ~"mine"}, file:read_file(in_node("release/etc/a", Config))),
    ?assertEqual({ok, ~"b"}, file:read_file(in_node("release/etc/b", Config))),
    ?assertEqual({ok, ~"theirs"}, file:read_file(in_release("etc/a", Sha, Config))),
    [?assertEqual("400", string:trim(os:cmd(["stat -c %a '", in_node(File, Config), "'"])))
     || File <- ["home/.erlang.cookie", "env"]],
    %% Its state and log stay when it is laid out again.
    ok = file:write_file(in_node("state/mine", Config), "kept"),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", (layout(Sha))#{settings := ~"s2"}),
    ?assertEqual({ok, ~"kept"}, file:read_file(in_node("state/mine", Config))),
    ?assertEqual({ok, ~"theirs"}, file:read_file(in_node("release/etc/a", Config))).

commands_and_hooks(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    Tell = fun(Word) ->
        [~"sh", ~"-c", <<"echo ", Word/binary, " >>\"$SDERL_OPS_STATE/told\"">>]
    end,
    Names = [~"before_start", ~"after_start", ~"before_stop", ~"after_stop"],
    Hooks = #{Name => Tell(Name) || Name <- Names},
    Layout = (layout(Sha))#{commands => Hooks},
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Layout),
    %% Starting a running instance, or stopping a stopped one, runs no hooks.
    twice(fun() -> sderl_ops_host:start(Host, ~"web1", 60) end),
    twice(fun() -> sderl_ops_host:stop(Host, ~"web1", 30) end),
    ?assertEqual({ok, iolist_to_binary([[Name, "\n"] || Name <- Names])},
                 file:read_file(in_node("state/told", Config))),
    ok = sderl_ops_host:hook(Host, ~"web1", ~"none_of_these"),
    Bad = [~"sh", ~"-c", ~"echo too bad; exit 7"],
    Broken = Layout#{settings := ~"s2", commands := Hooks#{~"before_start" := Bad}},
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Broken),
    ?assertEqual({error, {hook_failed, ~"before_start", 7, ~"too bad"}},
                 sderl_ops_host:start(Host, ~"web1", 60)),
    ?assertEqual(laid_out, state(~"web1", Host)),
    Slow = Layout#{settings := ~"s3", commands := #{~"slow" => [~"sleep", ~"1000"],
                                                    ~"before_stop" => Bad}},
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Slow),
    ?assertMatch({error, {hook_late, ~"slow", 1, _}},
                 sderl_ops_host:hook(Host, ~"web1", ~"slow", 1)),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60),
    %% A failing hook must not keep an instance alive.
    ok = sderl_ops_host:stop(Host, ~"web1", 30),
    ?assertEqual(laid_out, state(~"web1", Host)).

%% ------------------------------------------------------------------ what goes wrong

refusals(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    Layout = layout(Sha),
    Check = fun(Expected, Got) ->
        ?assertEqual(Expected, Got),
        {error, Why} = Got,
        ?assert(string:length(sderl_ops_host:format_error(Why)) > 10)
    end,
    Check({error, not_laid_out}, sderl_ops_host:start(Host, ~"web1", 10)),
    Check({error, {no_release, Sha}}, sderl_ops_host:lay_out(Host, ~"web1", Layout)),
    Wrong = binary:copy(~"0", 64),
    Check({error, {wrong_checksum, Wrong, Sha}}, sderl_ops_host:fetch(Host, Wrong, Archive)),
    Check({error, {cannot_read, "/nowhere", enoent}}, sderl_ops_host:fetch(Host, Sha, "/nowhere")),
    %% A connection that ends too early.
    {ok, 1, Said} = sderl_ops_sh:run(#{base => ?config(base, Config)}, ~"shop",
                                     [~"fetch", Sha, ~"1000000"], {file, Archive}, 60_000),
    ?assertMatch({_, _}, binary:match(Said, ~"ops error cut_off")),
    ?assertEqual([], maps:get(releases, survey(Host))),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Layout),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60),
    Check({error, running}, sderl_ops_host:lay_out(Host, ~"web1", Layout#{settings := ~"s2"})),
    Check({error, {in_use, ~"web1"}}, sderl_ops_host:drop_release(Host, Sha)),
    %% Names that would lead elsewhere, or break a file of commands.
    [?assertMatch({error, {failed, 1, _}}, sderl_ops_host:remove(Host, Id))
     || Id <- [~"../x", ~"a/b", ~"", ~".", ~"a b"]],
    [?assertMatch({error, {bad_layout, _, _}}, sderl_ops_host:lay_out(Host, ~"web2", Bad))
     || Bad <- [Layout#{files => #{~"../x" => ~""}},
                Layout#{files => #{~"/x" => ~""}},
                Layout#{env => #{~"A=B" => ~""}},
                Layout#{env => #{~"SDERL_OPS_FOLDER" => ~""}},
                Layout#{settings := ~"a\nb"},
                Layout#{commands => #{~"../start" => [~"x"]}},
                Layout#{start := {code, [~"x'y"]}}]].

start_that_dies(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => "#!/bin/sh\necho first\necho bad luck\n"}),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", layout(Sha)),
    twice(fun() ->
        {error, {died, Said}} = sderl_ops_host:start(Host, ~"web1", 60),
        ?assertEqual(~"first\nbad luck", Said),
        ?assertEqual(laid_out, state(~"web1", Host))
    end),
    Failing = (layout(Sha))#{settings := ~"s2", start := [~"sh", ~"-c", ~"echo no; exit 4"]},
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Failing),
    ?assertEqual({error, {start_failed, 4, ~"no"}}, sderl_ops_host:start(Host, ~"web1", 60)),
    %% Code with an application that does not start.
    {CodeSha, Code} = code(Config, "start(_, _) -> {error, this_is_the_reason}."),
    ok = sderl_ops_host:fetch(Host, CodeSha, Code),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", (layout(CodeSha))#{start := {code, [~"tiny"]}}),
    {error, {died, Why}} = sderl_ops_host:start(Host, ~"web1", 60),
    ?assertMatch({_, _}, binary:match(Why, ~"this_is_the_reason")),
    ?assertEqual(laid_out, state(~"web1", Host)).

%% One that stays in the foreground, one that leaves a process behind, and one that is never up.
start_that_never_returns(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => "#!/bin/sh\necho waiting\nsleep 1000\n"}),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    Layouts = [
        layout(Sha),
        (layout(Sha))#{start := [~"sh", ~"-c", ~"setsid sleep 1000 & sleep 1000"]},
        (layout(Sha))#{start := [~"sh", ~"-c", ~"setsid sleep 1000 >/dev/null 2>&1 &"],
                       commands => #{~"check" => [~"false"]}}
    ],
    lists:foreach(fun(Layout) ->
        {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Layout),
        ?assertMatch({error, {start_late, 1, _}}, sderl_ops_host:start(Host, ~"web1", 1)),
        ?assertEqual([], processes(?config(base, Config))),
        ?assertEqual(laid_out, state(~"web1", Host))
    end, Layouts).

%% What neither the stop command nor a signal ends is killed.
stop_that_is_ignored(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => """
    #!/bin/sh
    setsid sh -c 'trap "" TERM; echo >"$SDERL_OPS_STATE/deaf"; while :; do sleep 1; done' &
    """}),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    Layout = (layout(Sha))#{
        stop => [~"true"],
        commands => #{~"check" => [~"sh", ~"-c", ~"test -e \"$SDERL_OPS_STATE/deaf\""]}
    },
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Layout),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60),
    twice(fun() -> sderl_ops_host:stop(Host, ~"web1", 0) end),
    ?assertEqual(laid_out, state(~"web1", Host)),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60),
    ok = sderl_ops_host:stop(Host, ~"web1", 1),
    ?assertEqual([], processes(?config(base, Config))).

%% An instance that ended by itself has exited, and can be started again.
exited_is_seen(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", layout(Sha)),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web10", layout(Sha)),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60),
    {ok, _} = sderl_ops_host:start(Host, ~"web10", 60),
    Folder = filename:join(?config(base, Config), "nodes/web1"),
    kill(processes(Folder)),
    await(fun() -> processes(Folder) =:= [] end),
    #{instances := #{~"web1" := Exited, ~"web10" := Other}} = survey(Host),
    ?assertMatch(#{state := exited, why := ~"started"}, Exited),
    ?assertMatch(#{state := running}, Other),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60),
    ?assertEqual(running, state(~"web1", Host)).

%% Two operators, or a new service while a call of the previous one still runs.
side_by_side(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    Side = fun(Fun) ->
        Parent = self(),
        %% A host makes who waits longer than 10 s for another call ask again.
        Done = fun Again() -> case Fun() of {error, busy} -> Again(); Result -> Result end end,
        Workers = [spawn_link(fun() -> Parent ! {self(), Done()} end) || _ <- lists:seq(1, 3)],
        [receive {Worker, Result} -> ?assert(is_done(Result)) end || Worker <- Workers]
    end,
    Side(fun() -> sderl_ops_host:fetch(Host, Sha, Archive) end),
    Side(fun() -> sderl_ops_host:lay_out(Host, ~"web1", layout(Sha)) end),
    Side(fun() -> sderl_ops_host:start(Host, ~"web1", 60) end),
    ?assertMatch([_], processes(?config(base, Config))),
    Side(fun() -> sderl_ops_host:stop(Host, ~"web1", 30) end),
    Side(fun() -> sderl_ops_host:remove(Host, ~"web1") end),
    Side(fun() -> sderl_ops_host:drop_release(Host, Sha) end).

%% ------------------------------------------------------------------ killed in the middle

killed_while_fetching(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper(),
                                       "big" => crypto:strong_rand_bytes(300_000)}),
    Size = integer_to_binary(filelib:file_size(Archive)),
    Part = in_base(["releases/.", Sha, "/archive"], Config),
    in_the_middle([~"fetch", Sha, Size], Archive, Config),
    ?assert(filelib:is_file(Part)),
    ?assertEqual([], maps:get(releases, survey(Host))),
    twice(fun() -> sderl_ops_host:fetch(Host, Sha, Archive) end),
    ?assertEqual([Sha], maps:get(releases, survey(Host))),
    ?assertNot(filelib:is_file(Part)).

killed_while_laying_out(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    Layout = (layout(Sha))#{files => #{~"big" => crypto:strong_rand_bytes(300_000)}},
    {ok, Entries} = sderl_ops_layout:entries(~"web1", Layout),
    File = filename:join(?config(folder, Config), "layout.tar"),
    ok = file:write_file(File, [Entries, sderl_ops_tar:closing()]),
    in_the_middle([~"lay_out", ~"web1"], File, Config),
    ?assertEqual(#{}, maps:get(instances, survey(Host))),
    ?assertEqual([], beside(Config)),
    ?assertEqual({error, not_laid_out}, sderl_ops_host:start(Host, ~"web1", 60)),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", layout(Sha)),
    %% The previous files stay until the new ones are complete.
    in_the_middle([~"lay_out", ~"web1"], File, Config),
    ?assertMatch(#{~"web1" := #{release := Sha}}, maps:get(instances, survey(Host))),
    twice(fun() -> sderl_ops_host:lay_out(Host, ~"web1", Layout) end),
    ?assertEqual([], beside(Config)),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60).

%% Temporary folders of calls that lay out; they contain secrets.
beside(Config) -> filelib:wildcard(in_base("nodes/.new*", Config)).

%% Several by one call, each as if it were alone: new ones, one that runs so, one that runs with
%% other settings, one with files of its own, and one whose release is not there.
together(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper(), "etc/a" => "theirs"}),
    {CodeSha, CodeArchive} = code(Config, "start(_, _) -> {error, no}."),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    ok = sderl_ops_host:fetch(Host, CodeSha, CodeArchive),
    [begin
        {ok, _} = sderl_ops_host:lay_out(Host, Id, layout(Sha)),
        {ok, _} = sderl_ops_host:start(Host, Id, 60)
     end || Id <- [~"same", ~"other"]],
    {ok, _} = sderl_ops_host:lay_out(Host, ~"again", layout(Sha)),
    Missing = binary:copy(~"0", 64),
    Layouts = #{
        ~"new" => layout(Sha),
        ~"code" => (layout(CodeSha))#{start := {code, [~"tiny"]}},
        ~"own" => (layout(Sha))#{files => #{~"etc/a" => ~"mine"}},
        ~"same" => layout(Sha),
        ~"other" => (layout(Sha))#{settings := ~"s2"},
        ~"again" => (layout(Sha))#{settings := ~"s2"},
        ~"lost" => layout(Missing),
        ~"lost_code" => (layout(Missing))#{start := {code, [~"tiny"]}},
        ~"bad" => (layout(Sha))#{node := ~"it's"}
    },
    Laid = fun(OfRelease, Settings) ->
        {ok, #{state => laid_out, release => OfRelease, settings => Settings}}
    end,
    Expected = #{
        ~"new" => Laid(Sha, ~"s1"),
        ~"code" => Laid(CodeSha, ~"s1"),
        ~"own" => Laid(Sha, ~"s1"),
        ~"same" => {ok, #{state => running, release => Sha, settings => ~"s1"}},
        ~"other" => {error, running},
        ~"again" => Laid(Sha, ~"s2"),
        ~"lost" => {error, {no_release, Missing}},
        ~"lost_code" => {error, {no_release, Missing}},
        ~"bad" => {error, {bad_layout, ~"node", ~"it's"}}
    },
    [?assertEqual(Expected, sderl_ops_host:lay_out(Host, Layouts)) || _ <- [once, again]],
    Seen = maps:get(instances, survey(Host)),
    ?assertEqual(lists:sort([~"new", ~"code", ~"own", ~"same", ~"other", ~"again"]),
                 lists:sort(maps:keys(Seen))),
    ?assertEqual({ok, ~"mine"}, file:read_file(in_base("nodes/own/release/etc/a", Config))),
    ?assertEqual({ok, ~"theirs"}, file:read_file(in_base("nodes/new/release/etc/a", Config))),
    ?assertEqual([], filelib:wildcard(in_base("nodes/*/{files,files.tar}", Config))),
    ?assertEqual([], beside(Config)).

%% The call ends with its caller, and what it had not put into the background with it.
killed_while_starting(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => """
    #!/bin/sh
    [ -e "$SDERL_OPS_STATE/begun" ] || { echo >"$SDERL_OPS_STATE/begun"; sleep 1000; }
    setsid sleep 1000 >/dev/null 2>&1 &
    """}),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", layout(Sha)),
    {Caller, Monitor} = spawn_monitor(fun() -> sderl_ops_host:start(Host, ~"web1", 60) end),
    await(fun() -> filelib:is_file(in_node("state/begun", Config)) end),
    true = exit(Caller, kill),
    receive {'DOWN', Monitor, process, Caller, _} -> ok end,
    await(fun() -> scripts(Config) =:= [] end),
    await(fun() -> processes(?config(base, Config)) =:= [] end),
    ?assertEqual(exited, state(~"web1", Host)),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60),
    ?assertEqual(running, state(~"web1", Host)).

%% A program that neither reads nor ends.
hanging_program(_) ->
    Big = binary:copy(~"x", 900_000),
    ?assertMatch({error, timeout, _}, sderl_ops_port:run(["sleep", "1001"], {bytes, Big}, 300)),
    ?assertMatch({error, timeout, ~"a\n"},
                 sderl_ops_port:run(["sh", "-c", "echo a; sleep 1001"], none, 2000)),
    await(fun() -> os:cmd("grep -lsxz 100[1] /proc/[0-9]*/cmdline") =:= "" end),
    %% One whose shell is killed while there is more to send.
    Killed = ["sh", "-c", "kill -9 -$(ps -o pgid= $$ | tr -d ' ')"],
    ?assertMatch({error, killed, _}, sderl_ops_port:run(Killed, {bytes, Big}, 60_000)),
    ?assertEqual({ok, 3, Big},
                 sderl_ops_port:run(["sh", "-c", "cat; exit 3"], {bytes, Big}, 60_000)),
    ?assertEqual({ok, 0, ~""}, sderl_ops_port:run(["true"], {bytes, Big}, 60_000)).

%% Calls of a service end with it, however it ends.
service_is_killed(_) ->
    Path = filename:dirname(code:which(sderl_ops_port)),
    Run = "sderl_ops_port:run([\"sleep\", \"1002\"], none, infinity)",
    Service = open_port({spawn_executable, os:find_executable("erl")},
                        [{args, ["-noinput", "-pa", Path, "-eval", Run]}, exit_status]),
    Sleeps = fun() -> os:cmd("grep -lsxz 100[2] /proc/[0-9]*/cmdline") =/= "" end,
    await(Sleeps),
    {os_pid, Pid} = erlang:port_info(Service, os_pid),
    kill([Pid]),
    receive {Service, {exit_status, _}} -> ok end,
    await(fun() -> not Sleeps() end).

%% ------------------------------------------------------------------ from host to host

%% One archive leaves the service, and five hosts have it from each other, on one disk once.
given_on(Config) ->
    Hosts = [relay_host(N, Config) || N <- lists:seq(1, 6)],
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper(),
                                       "x" => crypto:strong_rand_bytes(100_000)}),
    ok = sderl_ops_sent:start(),
    ok = sderl_ops_host:fetch(hd(Hosts), Sha, Archive),
    Size = filelib:file_size(Archive),
    lists:foreach(fun(N) ->
        twice(fun() ->
            sderl_ops_host:give(lists:nth(N div 2, Hosts), lists:nth(N, Hosts), Sha)
        end)
    end, lists:seq(2, 6)),
    ?assertMatch(#{archives := 1, archive_bytes := Size, control_calls := 10},
                 sderl_ops_sent:read()),
    [?assertMatch(#{releases := [Sha], archives := [Sha]}, survey(Host)) || Host <- Hosts],
    Links = os:cmd(["stat -c %h '", relay_file(6, Sha, Config), "'"]),
    ?assertEqual("6", string:trim(Links)),
    %% It does not matter that another host dropped the release.
    twice(fun() -> sderl_ops_host:drop_release(hd(Hosts), Sha) end),
    ?assertMatch(#{releases := [], archives := []}, survey(hd(Hosts))),
    {ok, _} = sderl_ops_host:lay_out(lists:last(Hosts), ~"web1", layout(Sha)),
    ok = sderl_ops_host:remove(lists:last(Hosts), ~"web1").

relay_host(N, Config) ->
    (host({sderl_ops_sh, #{base => relay_base(N, Config)}}))#{relay => true}.

relay_base(N, Config) ->
    filename:join(?config(folder, Config), "relay " ++ integer_to_list(N)).

relay_file(N, Sha, Config) ->
    filename:join([relay_base(N, Config), "archives", binary_to_list(Sha)]).

given_wrongly(Config) ->
    [A, B, C] = [relay_host(N, Config) || N <- [1, 2, 3]],
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    %% Without an archive nothing can be given: it was never there, or was not kept.
    ?assertEqual({error, {relay, giver, {no_archive, Sha}}}, sderl_ops_host:give(A, B, Sha)),
    ok = sderl_ops_host:fetch(C#{relay := false}, Sha, Archive),
    ?assertMatch(#{releases := [Sha], archives := []}, survey(C)),
    ?assertEqual({error, {relay, giver, {no_archive, Sha}}}, sderl_ops_host:give(C, B, Sha)),
    %% The receiver notices a broken archive, and the giver drops it.
    ok = sderl_ops_host:fetch(A, Sha, Archive),
    File = relay_file(1, Sha, Config),
    ok = file:delete(File),
    ok = file:write_file(File, "something else"),
    {error, {relay, giver, {wrong_checksum, _, _}} = Why} = sderl_ops_host:give(A, B, Sha),
    ?assert(string:length(sderl_ops_host:format_error(Why)) > 10),
    ?assertMatch(#{releases := [Sha], archives := []}, survey(A)),
    ?assertMatch(#{releases := []}, survey(B)),
    %% A receiver that cannot take it.
    ok = file:write_file(relay_base(4, Config), "no folder"),
    ok = sderl_ops_host:fetch(B, Sha, Archive),
    {error, {relay, receiver, {failed, _, _}}} =
        sderl_ops_host:give(B, relay_host(4, Config), Sha),
    ?assertMatch({error, {relay, giver, _}}, sderl_ops_host:give(relay_host(4, Config), A, Sha)).

%% A host refuses calls with an older epoch, also those that another host makes.
deposed(Config) ->
    [A, B] = [relay_host(N, Config) || N <- [1, 2]],
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    ok = sderl_ops_host:fetch(A#{epoch => 8}, Sha, Archive),
    {ok, _} = sderl_ops_host:survey(B#{epoch => 9}),
    ?assertEqual({error, {relay, receiver, {deposed, ~"9"}}},
                 sderl_ops_host:give(A#{epoch => 8}, B#{epoch => 8}, Sha)),
    ?assertEqual({error, {deposed, ~"9"}}, sderl_ops_host:survey(B#{epoch => 8})),
    ?assertMatch(#{releases := []}, survey(B)),
    ok = sderl_ops_host:give(A#{epoch => 9}, B#{epoch => 9}, Sha),
    ?assertMatch(#{releases := [Sha]}, survey(B)),
    ?assertEqual({error, {relay, giver, {deposed, ~"9"}}},
                 sderl_ops_host:give(A#{epoch => 8}, B#{epoch => 8}, Sha)),
    ok = sderl_ops_host:drop_release(A#{epoch => 10}, Sha).

%% What a killed call left does not matter.
killed_while_giving(Config) ->
    [A, B] = [relay_host(N, Config) || N <- [1, 2]],
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    ok = sderl_ops_host:fetch(A, Sha, Archive),
    %% A call that waits for a lock on the release, which another call holds.
    Lock = filename:join(relay_base(2, Config), "locks/release-" ++ binary_to_list(Sha)),
    ok = filelib:ensure_dir(Lock),
    Holder = open_port({spawn_executable, os:find_executable("flock")},
                       [{args, [Lock, "sh", "-c", "echo held; read -r end"]}, {line, 100}]),
    receive {Holder, {data, _}} -> ok end,
    {Caller, Monitor} = spawn_monitor(fun() -> sderl_ops_host:give(A, B, Sha) end),
    Note = fun() -> filelib:wildcard(".give.*", relay_base(1, Config)) end,
    await(fun() -> Note() =/= [] end),
    true = exit(Caller, kill),
    receive {'DOWN', Monitor, process, Caller, _} -> ok end,
    true = port_close(Holder),
    await(fun() -> sderl_ops_host:give(A, B, Sha) =:= ok end),
    ?assertMatch(#{releases := [Sha], archives := [Sha]}, survey(B)),
    await(fun() -> sderl_ops_host:give(A, B, Sha) =:= ok andalso Note() =:= [] end).

%% A receiver notices only by the missing data that the giver hangs.
sender_stands_still(Config) ->
    Host = ?config(host, Config),
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper()}),
    Pipe = filename:join(?config(folder, Config), "pipe"),
    "" = os:cmd(["mkfifo '", Pipe, "'"]),
    Writer = open_port({spawn_executable, "/bin/sh"},
                       [{args, ["-c", "exec 3>\"$0\"; head -c 50 \"$1\" >&3; read -r end",
                                Pipe, Archive]}]),
    {ok, 1, Said} = sderl_ops_sh:run(#{base => ?config(base, Config)}, ~"shop",
                                     [~"fetch", Sha, ~"1000"], {file, Pipe}, 120_000),
    ?assertMatch({_, _}, binary:match(Said, ~"ops error cut_off")),
    true = port_close(Writer),
    ok = sderl_ops_host:fetch(Host, Sha, Archive).

%% ------------------------------------------------------------------ a full disk

%% A small file system in a namespace, which the case may fill.
full_disk(Config) ->
    Base = ?config(base, Config),
    ok = filelib:ensure_path(Base),
    Hold = ["mount -t tmpfs -o size=1m none \"$0\" && echo there && exec sleep 1000"],
    Port = open_port({spawn_executable, os:find_executable("unshare")},
                     [{args, ["-rm", "sh", "-c", Hold, Base]},
                      binary, exit_status, stderr_to_stdout]),
    receive
        {Port, {data, <<"there", _/binary>>}} ->
            {os_pid, Holder} = erlang:port_info(Port, os_pid),
            try
                fill_disk(Holder, Config)
            after
                kill([Holder]),
                receive {Port, {exit_status, _}} -> ok end
            end;
        {Port, Other} ->
            {skip, io_lib:format("no file system of its own can be had here: ~0tp", [Other])}
    after 60_000 ->
        error(no_namespace)
    end.

fill_disk(Holder, Config) ->
    Host = host({?MODULE, #{base => ?config(base, Config), holder => Holder}}),
    Inside = fun(Command) ->
        Shell = ["sh", "-c", ["cd \"$0\" && ", Command], ?config(base, Config)],
        {ok, _, _} = enter(Holder, Shell, none)
    end,
    {Sha, Archive} = release(Config, #{"bin/start" => sleeper(),
                                       "x" => crypto:strong_rand_bytes(100_000)}),
    Inside("dd if=/dev/zero of=filler bs=1k count=2000 2>&1; truncate -s -50k filler"),
    twice(fun() ->
        ?assertMatch({error, {full_disk, _}}, sderl_ops_host:fetch(Host, Sha, Archive))
    end),
    ?assertEqual([], maps:get(releases, survey(Host))),
    Inside("rm filler"),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", layout(Sha)),
    Inside("dd if=/dev/zero of=filler bs=1k count=2000 2>&1; truncate -s -50k filler"),
    Large = (layout(Sha))#{settings := ~"s2",
                           files => #{~"y" => crypto:strong_rand_bytes(100_000)}},
    twice(fun() ->
        ?assertMatch({error, {full_disk, _}}, sderl_ops_host:lay_out(Host, ~"web1", Large))
    end),
    %% The previous files are unchanged and can be used.
    ?assertMatch(#{~"web1" := #{settings := ~"s1"}}, maps:get(instances, survey(Host))),
    {ok, _} = sderl_ops_host:start(Host, ~"web1", 60),
    ok = sderl_ops_host:stop(Host, ~"web1", 30),
    Inside("rm filler"),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Large),
    ?assertMatch(#{~"web1" := #{settings := ~"s2"}}, maps:get(instances, survey(Host))),
    ok = sderl_ops_host:remove(Host, ~"web1").

run(#{base := Base, holder := Holder}, Cluster, Arguments, Input, _) ->
    enter(Holder, ["sh", sderl_ops_sh:script(), Base, Cluster | Arguments], Input).

enter(Holder, Command, Input) ->
    Enter = ["nsenter", "-t", integer_to_list(Holder), "-U", "-m", "--preserve-credentials"],
    sderl_ops_port:run(Enter ++ Command, Input, 60_000).

%% ------------------------------------------------------------------ helpers

%% Kills a call that has read half of its input: once the caller, once the script.
in_the_middle(Arguments, File, Config) ->
    lists:foreach(fun(Victim) -> in_the_middle(Victim, Arguments, File, Config) end,
                  [caller, script]).

in_the_middle(Victim, Arguments, File, Config) ->
    Pipe = filename:join(?config(folder, Config), "pipe"),
    _ = file:delete(Pipe),
    "" = os:cmd(["mkfifo '", Pipe, "'"]),
    Half = integer_to_list(filelib:file_size(File) div 2),
    Writer = open_port({spawn_executable, "/bin/sh"},
                       [{args, ["-c", "exec 3>\"$0\"; head -c \"$1\" \"$2\" >&3; echo; read -r end",
                                Pipe, Half, File]}, exit_status]),
    Settings = #{base => ?config(base, Config)},
    Parent = self(),
    {Caller, Monitor} = spawn_monitor(fun() ->
        Parent ! {self(), sderl_ops_sh:run(Settings, ~"shop", Arguments, {file, Pipe}, 60_000)}
    end),
    %% More than a pipe holds is written, so the script has begun to read.
    receive {Writer, {data, _}} -> ok end,
    case Victim of
        caller -> true = exit(Caller, kill);
        script -> kill([Pid || Pid <- scripts(Config), is_script(Pid)])
    end,
    receive {'DOWN', Monitor, process, Caller, _} -> ok end,
    receive {Caller, Answer} -> ?assertMatch({ok, 137, _}, Answer) after 0 -> ok end,
    true = port_close(Writer),
    await(fun() -> scripts(Config) =:= [] end).

%% The processes of the script and of its programs, for this host.
scripts(Config) ->
    %% Without this virtual machine.
    {First, [Last]} = lists:split(length(?config(base, Config)) - 1, ?config(base, Config)),
    numbers(os:cmd(["grep -lsxz '", First, "[", Last, "]' /proc/[0-9]*/cmdline"])).

%% And without the shell of its port.
is_script(Pid) ->
    {ok, Words} = file:read_file(["/proc/", integer_to_list(Pid), "/cmdline"]),
    Script = unicode:characters_to_binary(sderl_ops_sh:script()),
    lists:nth(2, binary:split(Words, <<0>>, [global])) =:= Script.

%% Of instances in this folder.
processes(Folder) ->
    Files = os:cmd(["grep -lsz '^SDERL_OPS_FOLDER=", Folder, "\\(/\\|$\\)' /proc/[0-9]*/environ"]),
    [Pid || Pid <- numbers(Files),
            file:read_file(["/proc/", integer_to_list(Pid), "/comm"]) =/= {ok, ~"epmd\n"}].

numbers(Files) ->
    [list_to_integer(Number) || Line <- string:lexemes(Files, "\n"),
                                ["/", "proc", Number | _] <- [filename:split(Line)],
                                Number =/= "self"].

kill(Pids) -> [os:cmd(["kill -9 ", integer_to_list(Pid)]) || Pid <- Pids].

survey(Host) ->
    {ok, Seen} = sderl_ops_host:survey(Host),
    Seen.

state(Id, Host) ->
    #{instances := #{Id := #{state := State}}} = survey(Host),
    State.

twice(Fun) ->
    ?assert(is_done(Fun())),
    ?assert(is_done(Fun())).

is_done(ok) -> true;
is_done({ok, _}) -> true;
is_done(_) -> false.

await(Fun) -> sderl_ops_awaits:await(Fun, 60_000).

layout(Sha) ->
    #{release => Sha, settings => ~"s1", node => ~"web1@127.0.0.1", names => long,
      cookie => ~"secret", start => [~"bin/start"]}.

sleeper() -> "#!/bin/sh\necho started\nsetsid sleep 1000 >/dev/null 2>&1 &\n".

in_base(File, Config) ->
    filename:join(?config(base, Config), unicode:characters_to_list(File)).
in_node(File, Config) -> in_base(["nodes/web1/", File], Config).
in_release(File, Sha, Config) -> in_base(["releases/", Sha, "/", File], Config).

%% A release's folder with these files, packed.
release(Config, Files) ->
    Folder = filename:join(?config(folder, Config), "release"),
    _ = file:del_dir_r(Folder),
    maps:foreach(fun(Name, Text) ->
        File = filename:join(Folder, Name),
        ok = filelib:ensure_dir(File),
        ok = file:write_file(File, Text),
        ok = file:change_mode(File, 8#755)
    end, Files),
    packed({folder, Folder}, Config).

%% Compiled code of an application `tiny`, with this start function.
code(Config, Start) ->
    Folder = filename:join([?config(folder, Config), "tiny", "ebin"]),
    ok = filelib:ensure_path(Folder),
    Source = filename:join(Folder, "tiny.erl"),
    ok = file:write_file(Source, ["-module(tiny).\n-export([start/2, stop/1]).\n"
                                  "stop(_) -> ok.\n", Start, "\n"]),
    {ok, tiny} = compile:file(Source, [{outdir, Folder}]),
    ok = file:delete(Source),
    App = {application, tiny, [{vsn, "1"}, {modules, [tiny]}, {registered, []},
                               {applications, [kernel, stdlib]}, {mod, {tiny, []}}]},
    ok = file:write_file(filename:join(Folder, "tiny.app"), io_lib:format("~p.~n", [App])),
    packed({code, [filename:join([?config(folder, Config), "t*", "ebin"])]}, Config).

packed(Source, Config) ->
    Archives = filename:join(?config(folder, Config), "archives"),
    {ok, Sha, Archive} = sderl_ops_archive:prepare(Source, Archives),
    {Sha, Archive}.

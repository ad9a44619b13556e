%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_session_SUITE).
-moduledoc """
Calls of the host script in a session, over a shell of this machine: what `m:sderl_ops_host_SUITE`
asks for must be so in one, too, and calls must not get into each other's way.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-behaviour(sderl_ops_transport).

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([release_twice/1, code_twice/1, own_files/1, commands_and_hooks/1, refusals/1,
         start_that_dies/1, start_that_never_returns/1, exited_is_seen/1, side_by_side/1]).
-export([a_slow_call/1, complaints_are_its_own/1, is_opened_again/1, caller_is_late/1,
         what_does_not_fit/1, nothing_is_left/1]).
-export([run/5]).

all() ->
    [release_twice, code_twice, own_files, commands_and_hooks, refusals, start_that_dies,
     start_that_never_returns, exited_is_seen, side_by_side, a_slow_call, complaints_are_its_own,
     is_opened_again, caller_is_late, what_does_not_fit, nothing_is_left].

init_per_suite(Config) -> sderl_ops_host_SUITE:init_per_suite(Config).

end_per_suite(Config) -> sderl_ops_host_SUITE:end_per_suite(Config).

init_per_testcase(Case, Config) ->
    Begun = sderl_ops_host_SUITE:init_per_testcase(Case, Config),
    Host = ?config(host, Begun),
    {ok, _} = begin_sessions(),
    Connection = {?MODULE, #{base => ?config(base, Begun), test => Case}},
    InSession = Host#{connection := Connection},
    {ok, _} = sderl_ops_host:survey(InSession),
    [{host, InSession} | lists:keydelete(host, 1, Begun)].

end_per_testcase(Case, Config) ->
    ok = sderl_ops_host_SUITE:end_per_testcase(Case, Config),
    end_sessions().

%% Processes of a test are not those that end it.
begin_sessions() ->
    Caller = self(),
    spawn(fun() ->
        Caller ! {begun, sderl_ops_sessions:start_link()},
        receive never -> ok end
    end),
    receive {begun, Result} -> Result end.

end_sessions() ->
    Sessions = whereis(sderl_ops_sessions),
    Monitor = monitor(process, Sessions),
    exit(Sessions, kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end.

%% The way of `m:sderl_ops_openssh`, with a shell in the place of ssh.
run(#{base := Base} = Settings, Cluster, Arguments, Input, Limit) ->
    Open = fun() ->
        ["/bin/sh", sderl_ops_sh:script(), filename:absname(Base), Cluster, ~"serve"]
    end,
    case sderl_ops_sessions:call({Settings, Cluster}, Open, Arguments, Input, Limit) of
        none -> sderl_ops_sh:run(Settings, Cluster, Arguments, Input, Limit);
        {ended, _, Said} -> {error, {cut_off, Said}};
        {error, timeout} -> {error, {timeout, Limit, ~""}};
        Answer -> Answer
    end.

%% ------------------------------------------------------------------ as without one

release_twice(Config) -> sderl_ops_host_SUITE:release_twice(Config).
code_twice(Config) -> sderl_ops_host_SUITE:code_twice(Config).
own_files(Config) -> sderl_ops_host_SUITE:own_files(Config).
commands_and_hooks(Config) -> sderl_ops_host_SUITE:commands_and_hooks(Config).
refusals(Config) -> sderl_ops_host_SUITE:refusals(Config).
start_that_dies(Config) -> sderl_ops_host_SUITE:start_that_dies(Config).
start_that_never_returns(Config) -> sderl_ops_host_SUITE:start_that_never_returns(Config).
exited_is_seen(Config) -> sderl_ops_host_SUITE:exited_is_seen(Config).
side_by_side(Config) -> sderl_ops_host_SUITE:side_by_side(Config).

%% ------------------------------------------------------------------ of its own

%% Others are answered while one goes on.
a_slow_call(Config) ->
    Host = ?config(host, Config),
    Gate = lay_out_waiter(Config),
    Slow = begin_hook(Host),
    await(fun() -> filelib:is_file(Gate ++ ".begun") end),
    [?assertMatch({ok, #{}}, sderl_ops_host:survey(Host)) || _ <- lists:seq(1, 3)],
    ok = file:write_file(Gate, ""),
    ?assertEqual(ok, result(Slow)).

complaints_are_its_own(Config) ->
    Host = ?config(host, Config),
    {ok, Sum} = call(Host, [~"survey"], none),
    ?assertMatch({_, _}, binary:match(Sum, ~"ops ok")),
    %% That is no archive.
    Wrong = begin_fun(fun() -> call(Host, [~"lay_out", ~"web1"], {bytes, ~"wrong"}) end),
    Right = [begin_fun(fun() -> call(Host, [~"survey"], none) end) || _ <- lists:seq(1, 5)],
    {failed, Said} = result(Wrong),
    ?assertMatch({_, _}, binary:match(Said, ~"tar: ")),
    [begin
        {ok, Output} = result(Of),
        ?assertEqual(nomatch, binary:match(Output, ~"tar: "))
     end || Of <- Right],
    ok.

%% Calls that had begun go on and are answered; then there is another session.
is_opened_again(Config) ->
    Host = ?config(host, Config),
    Gate = lay_out_waiter(Config),
    Slow = begin_hook(Host),
    await(fun() -> filelib:is_file(Gate ++ ".begun") end),
    [Serve] = serving(Config),
    _ = os:cmd("kill -9 " ++ Serve),
    ok = file:write_file(Gate, ""),
    ?assertEqual(ok, result(Slow)),
    %% The first call after the end of a session opens none.
    await(fun() ->
        is_done(sderl_ops_host:survey(Host)) andalso is_other(serving(Config), Serve)
    end).

is_done({ok, _}) -> true;
is_done({error, {cut_off, _}}) -> false.

is_other([Other], Serve) -> Other =/= Serve;
is_other(_, _) -> false.

%% Output after the limit of a call is dropped, and the session goes on.
caller_is_late(Config) ->
    #{connection := {_, Settings}} = Host = ?config(host, Config),
    Gate = lay_out_waiter(Config),
    Hook = [~"hook", ~"web1", ~"check", ~"60"],
    ?assertEqual({error, {timeout, 300, ~""}}, run(Settings, ~"shop", Hook, none, 300)),
    ?assertMatch({ok, #{}}, sderl_ops_host:survey(Host)),
    ok = file:write_file(Gate, ""),
    ?assertEqual(ok, sderl_ops_host:hook(Host, ~"web1", ~"check")),
    ?assertMatch([_], serving(Config)).

%% Files, and arguments of more than one word, are not sent through a session.
what_does_not_fit(Config) ->
    Call = fun(Arguments, Input) ->
        sderl_ops_sessions:call({#{}, ~"shop"}, fun() -> error(opened) end, Arguments, Input, 1000)
    end,
    ?assertEqual(none, Call([~"fetch", ~"a", ~"1"], {file, ?config(base, Config)})),
    [?assertEqual(none, Call([~"hook", Bad], none))
     || Bad <- [~"two words", ~"a\n1 0 remove web1", ~"$(id)", ~"*", ~""]].

%% The files of calls, which contain secrets, are deleted with the session.
nothing_is_left(Config) ->
    {Sha, Archive} = release(Config),
    Host = ?config(host, Config),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", layout(Sha)),
    ?assertEqual([], [File || File <- of_calls(Config), filelib:file_size(File) > 0]),
    ?assertNotEqual([], of_calls(Config)),
    ok = end_sessions(),
    await(fun() -> serving(Config) =:= [] andalso of_calls(Config) =:= [] end),
    {ok, _} = begin_sessions(),
    ?assertMatch({ok, #{}}, sderl_ops_host:survey(Host)).

%% ------------------------------------------------------------------ helpers

of_calls(Config) -> filelib:wildcard(filename:join(?config(base, Config), ".call.*")).

serving(Config) ->
    Base = unicode:characters_to_binary(?config(base, Config)),
    [Pid || Pid <- filelib:wildcard("[0-9]*", "/proc"),
            {ok, Line} <- [file:read_file(["/proc/", Pid, "/cmdline"])],
            binary:match(Line, Base) =/= nomatch, is_serve(Line), is_root(Pid)].

is_serve(Line) -> lists:member(~"serve", binary:split(Line, <<0>>, [global])).

%% Calls that go on are copies of it.
is_root(Pid) ->
    case file:read_file(["/proc/", Pid, "/status"]) of
        {ok, Status} ->
            {match, [Parent]} = re:run(Status, "PPid:\\s+(\\d+)",
                                       [{capture, all_but_first, list}]),
            case file:read_file(["/proc/", Parent, "/cmdline"]) of
                {ok, Line} -> not is_serve(Line);
                {error, _} -> true
            end;
        %% It has ended meanwhile.
        {error, _} ->
            false
    end.

call(#{connection := {_, Settings}, cluster := Cluster}, Arguments, Input) ->
    case run(Settings, Cluster, Arguments, Input, 60_000) of
        {ok, 0, Output} -> {ok, Output};
        {ok, _, Output} -> {failed, Output}
    end.

%% An instance whose check waits until a file is there, and tells that it does.
lay_out_waiter(Config) ->
    Gate = filename:join(?config(folder, Config), "gate"),
    {Sha, Archive} = release(Config),
    Host = ?config(host, Config),
    ok = sderl_ops_host:fetch(Host, Sha, Archive),
    Wait = "touch \"$0.begun\"; until [ -e \"$0\" ]; do sleep 0.05; done",
    Check = [~"sh", ~"-c", list_to_binary(Wait), unicode:characters_to_binary(Gate)],
    Layout = (layout(Sha))#{commands => #{~"check" => Check}},
    {ok, _} = sderl_ops_host:lay_out(Host, ~"web1", Layout),
    Gate.

layout(Sha) ->
    #{release => Sha, settings => ~"s1", node => ~"web1@127.0.0.1", names => long,
      cookie => ~"secret", start => [~"bin/start"]}.

release(Config) ->
    Folder = filename:join(?config(folder, Config), "release"),
    File = filename:join(Folder, "bin/start"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, "#!/bin/sh\n"),
    ok = file:change_mode(File, 8#755),
    Archives = filename:join(?config(folder, Config), "archives"),
    {ok, Sha, Archive} = sderl_ops_archive:prepare({folder, Folder}, Archives),
    {Sha, Archive}.

begin_hook(Host) -> begin_fun(fun() -> sderl_ops_host:hook(Host, ~"web1", ~"check") end).

begin_fun(Fun) ->
    Caller = self(),
    spawn_link(fun() -> Caller ! {self(), Fun()} end).

result(Pid) -> receive {Pid, Result} -> Result after 60_000 -> error(no_result) end.

await(Fun) -> sderl_ops_awaits:await(Fun, 60_000).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_test_build).
-moduledoc """
Compiles the test modules of apps, for `toolchain/test`: into a folder of each app's own, beside the
data folders of its suites. What they test is the program as users get it, compiled before.

A module is compiled when it, a header file or the settings are newer than what is there. Nothing
stays of a module whose file is gone: it would be found by its name.
""".

-export([main/0]).

-doc "`FOLDER APP..`: the apps' tests go to `FOLDER/APP`.".
-spec main() -> no_return().
main() ->
    [Folder | Apps] = init:get_plain_arguments(),
    ok = begin_anew(Folder),
    [ok = forget(Dir) || Dir <- filelib:wildcard(filename:join(Folder, "*")), filelib:is_dir(Dir),
                         not lists:member(filename:basename(Dir), Apps)],
    Headers = filelib:wildcard("apps/*/{src,include,test}/**/*.hrl"),
    Since = lists:max([filelib:last_modified(File) || File <- ["rebar.config" | Headers]]),
    Options = options(),
    Work = lists:append([prepare(App, filename:join(Folder, App), Since) || App <- Apps]),
    Good = compile_all([{File, Out, [{i, Dir} || Dir <- includes(App)] ++ Options}
                        || {File, Out, App} <- Work]),
    halt(case Good of true -> 0; false -> 1 end).

%% What another release compiled is of no use to this one.
begin_anew(Folder) ->
    Stamp = filename:join(Folder, ".release"),
    Release = list_to_binary(erlang:system_info(otp_release)),
    case file:read_file(Stamp) of
        {ok, Release} -> ok;
        _ ->
            ok = forget(Folder),
            ok = filelib:ensure_dir(Stamp),
            file:write_file(Stamp, Release)
    end.

forget(Path) ->
    case filelib:is_file(Path) of
        true -> file:del_dir_r(Path);
        false -> ok
    end.

%% As the project compiles its modules, and as its profile for tests says.
options() ->
    {ok, Config} = file:consult("rebar.config"),
    Test = proplists:get_value(test, proplists:get_value(profiles, Config)),
    [report_errors, report_warnings, {d, 'TEST'}]
        ++ proplists:get_value(erl_opts, Config) ++ proplists:get_value(erl_opts, Test).

includes(App) -> [filename:join(["apps", App, Dir]) || Dir <- ["test", "include", "src"]].

prepare(App, Out, Since) ->
    Test = filename:join(["apps", App, "test"]),
    ok = filelib:ensure_path(Out),
    Files = filelib:wildcard(filename:join(Test, "*.erl")),
    Modules = [filename:basename(File, ".erl") || File <- Files],
    [ok = file:delete(Beam) || Beam <- filelib:wildcard(filename:join(Out, "*.beam")),
                               not lists:member(filename:basename(Beam, ".beam"), Modules)],
    [ok = show(Data, filename:join(Out, filename:basename(Data)))
     || Data <- filelib:wildcard(filename:join(Test, "*_SUITE_data"))],
    [{File, Out, App}
     || {File, Module} <- lists:zip(Files, Modules),
        filelib:last_modified(filename:join(Out, Module ++ ".beam"))
            =< max(Since, filelib:last_modified(File))].

%% A suite looks for its data beside its module.
show(To, Link) ->
    _ = file:delete(Link),
    file:make_symlink(filename:absname(To), Link).

%% As many side by side as there are cores.
compile_all(Work) ->
    Count = erlang:system_info(schedulers_online),
    {First, Rest} = lists:split(min(Count, length(Work)), Work),
    [start(One) || One <- First],
    await(length(First), Rest, true).

start({File, Out, Options}) ->
    spawn_monitor(fun() ->
        exit({compiled, compile:file(File, [{outdir, Out} | Options])})
    end).

await(0, [], Good) -> Good;
await(Running, Work, Good) ->
    receive
        {'DOWN', _, process, _, Reason} ->
            Is = case Reason of
                {compiled, {ok, _}} -> true;
                {compiled, _} -> false;
                Crash -> io:format("~tp~n", [Crash]), false
            end,
            case Work of
                [One | Rest] -> start(One), await(Running, Rest, Good andalso Is);
                [] -> await(Running - 1, [], Good andalso Is)
            end
    end.

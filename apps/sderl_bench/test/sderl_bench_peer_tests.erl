%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_peer_tests).
-include_lib("eunit/include/eunit.hrl").

given_test() ->
    ?assertEqual({ok, #{}}, sderl_bench_peer:given([])),
    ?assertEqual(
        {ok, #{"syn" => ["/a=b", "c"], "khepri" => ["d"]}},
        sderl_bench_peer:given(["syn=/a=b", "khepri=d", "syn=c"])
    ).

given_wrong_test_() ->
    [
        {Value, ?_assertEqual(Text, error_text(sderl_bench_peer:given(["syn=x", Value])))}
     || {Value, Text} <- [
         {"syn", "--peer: \"syn\" is not NAME=DIR, a name and a folder"},
         {"syn=", "--peer: \"syn=\" is not NAME=DIR, a name and a folder"},
         {"=dir", "--peer: \"=dir\" is not NAME=DIR, a name and a folder"},
         {"pg=dir", "--peer: \"pg\" is no registry of another project that can be measured; there "
                    "are syn, group, khepri"},
         {"gproc=dir", "--peer: \"gproc\" is no registry of another project that can be measured; "
                       "there are syn, group, khepri"}
     ]
    ].

%% The applications here are made up; they stand for those of other projects.
find_test_() ->
    {setup, fun quiet_folder/0, fun remove/1, fun({_, Dir}) ->
        In = fun(Name) -> filename:join(Dir, Name) end,
        [
            {"an application's folder, its ebin, or a folder of both", [
                ?_assertEqual({ok, #{version => <<"1.2">>, paths => [In("whole/syn/ebin")]}},
                              find("syn", [In(Place)]))
             || Place <- ["whole/syn", "whole/syn/ebin", "whole"]
            ]},
            {"all that it needs, wherever that is",
             ?_assertEqual(
                 {ok, #{version => <<"1.2">>,
                        paths => [In("needs/group/ebin"), In("other/elixir-1/ebin")]}},
                 find("group", [In("needs"), In("other")])
             )},
            {"not given",
             ?_assertEqual(
                 "--impl syn is another project's: compile it (toolchain/peers does) and give its "
                 "folder with --peer syn=DIR",
                 error_text(find("syn", []))
             )},
            {"no such folder",
             ?_assertEqual("--peer syn: there is no folder " ++ In("none"),
                           error_text(find("syn", [In("none")])))},
            {"another application",
             ?_assertEqual(
                 "--peer syn: the application syn is in none of the folders given (" ++ In("needs")
                     ++ "); give the one that has it, too: --peer syn=DIR",
                 error_text(find("syn", [In("needs")]))
             )},
            {"something that it needs is missing",
             ?_assertEqual(
                 "--peer group: the application elixir is in none of the folders given ("
                 ++ In("needs")
                 ++ "); give the one that has it, too: --peer group=DIR",
                 error_text(find("group", [In("needs")]))
             )},
            {"a module that is missing",
             ?_assertMatch({match, _}, re:run(error_text(find("syn", [In("gone")])),
                                              "syn\\.beam does not load .*enoent"))},
            {"a module that is none",
             ?_assertMatch({match, _}, re:run(error_text(find("syn", [In("bad")])),
                                              "syn\\.beam does not load .*badfile"))},
            {"a description that is none",
             ?_assertMatch({match, _}, re:run(error_text(find("syn", [In("text")])),
                                              "syn\\.app does not load "))},
            {"nothing becomes current here", ?_assertEqual(false, code:is_loaded(syn))}
        ]
    end}.

%% Logging is off meanwhile, because the emulator logs each module that does not load.
quiet_folder() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {Level, folder()}.

folder() ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Dir = filename:join([os:getenv("TMPDIR", "/tmp"),
                         "sderl-peers-" ++ os:getpid() ++ "-" ++ Unique]),
    Forms = [{attribute, 1, module, syn}],
    {ok, syn, Beam} = compile:forms(Forms),
    application(Dir, "whole/syn", syn, [syn], [kernel, stdlib], [{"syn.beam", Beam}]),
    application(Dir, "needs/group", group, [], [kernel, elixir], []),
    application(Dir, "other/elixir-1", elixir, [], [compiler], []),
    application(Dir, "gone", syn, [syn], [], []),
    application(Dir, "bad", syn, [syn], [], [{"syn.beam", <<"no module">>}]),
    ok = filelib:ensure_path(filename:join(Dir, "text")),
    ok = file:write_file(filename:join(Dir, "text/syn.app"), "no term"),
    Dir.

application(Dir, Folder, Name, Modules, Needed, Files) ->
    Ebin = filename:join([Dir, Folder, "ebin"]),
    ok = filelib:ensure_path(Ebin),
    Term = {application, Name, [{vsn, "1.2"}, {modules, Modules}, {applications, Needed}]},
    ok = file:write_file(filename:join(Ebin, atom_to_list(Name) ++ ".app"),
                         io_lib:format("~tp.~n", [Term])),
    [ok = file:write_file(filename:join(Ebin, File), Content) || {File, Content} <- Files].

remove({Level, Dir}) ->
    ok = logger:set_primary_config(level, Level),
    ok = file:del_dir_r(Dir).

find(Name, []) -> sderl_bench_peer:find(Name, #{});
find(Name, Dirs) -> sderl_bench_peer:find(Name, #{Name => Dirs}).

error_text({error, Text}) -> unicode:characters_to_list(Text).

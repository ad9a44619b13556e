%% SPDX-License-Identifier: Apache-2.0
%% Who calls whom in a part of the time, and the source text of a function.
-module(sderl_prof_functions_tests).

-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

-import(sderl_prof_files, [with_dir/1]).

%% ---------------------------------------------------------------- calls

%% Process 1: main calls work twice, and work calls itself; process 2: other calls work.
calls_test() ->
    with_book(fun(View) ->
        Ask = fun(Changes) ->
            {ok, #{graph := Graph} = Answer} =
                sderl_prof_view:calls(maps:merge(#{from => 0, to => 1000}, Changes), View),
            {Answer, Graph}
        end,
        {#{'of' := whole, whose := null, ns := 150},
         #{functions := [#{function := 1, name := ~"m:main/0", calls := 1, own := 30, all := 100,
                           whole := null},
                         #{function := 2, calls := 4, own := 100, all := 100},
                         #{function := 3, name := ~"m:other/0", own := 20, all := 50}],
           edges := [[0, 1, 1, 100], [0, 3, 1, 50], [1, 2, 2, 70], [2, 2, 1, 0], [3, 2, 1, 30]],
           names := Names, functions_left := 0, edges_left := 0}} = Ask(#{}),
        ?assertEqual(#{}, Names),
        %% Of one process.
        {#{'of' := whole, whose := ~"<0.2.0>", ns := 50}, #{edges := [[0, 3, 1, 50], _]}} =
            Ask(#{process => 2}),
        %% Of a part, against the whole.
        {#{'of' := part, ns := 30},
         #{functions := [#{function := 1, calls := 0, all := 30,
                           whole := #{calls := 1, all := 100}},
                         #{function := 2, calls := 2, own := 20, all := 20,
                           whole := #{calls := 4, own := 100}}]}} = Ask(#{from => 60, to => 90}),
        {#{whose := ~"<0.1.0>"}, #{functions := [#{whole := #{all := 100}},
                                                 #{whole := #{calls := 3, all := 70}}]}} =
            Ask(#{from => 60, to => 90, process => 1}),
        {error, {no_process, 9}} =
            sderl_prof_view:calls(#{from => 0, to => 10, process => 9}, View),
        {error, {range, 7, 7}} =
            sderl_prof_view:calls(#{from => 7, to => 7, process => 1}, View)
    end).

with_book(Test) ->
    with_dir(fun(Dir) ->
        {ok, Writer} = sderl_prof_book:create(Dir),
        Events = [{T, K, 1, P, A, B} || {T, K, P, A, B} <- [
            {0, ?CALL, 1, 1, 0}, {10, ?CALL, 1, 2, 1}, {60, ?RETURN_TO, 1, 1, 0},
            {70, ?CALL, 1, 2, 1}, {80, ?CALL, 1, 2, 2}, {90, ?RETURN_TO, 1, 1, 0},
            {100, ?EXIT, 1, 0, 0},
            {100, ?CALL, 2, 3, 0}, {110, ?CALL, 2, 2, 3}, {140, ?RETURN_TO, 2, 3, 0},
            {150, ?EXIT, 2, 0, 0}
        ]],
        {ok, Written} = sderl_prof_book:write_block(sderl_prof_block:encode(Events), Writer),
        ok = sderl_prof_book:write_words([~"m:main/0", ~"m:work/1", ~"m:other/0", ~"killed"],
                                         Written),
        ok = sderl_prof_book:patch([{P, Field, N} || P <- [1, 2], {Field, N} <- [{kind, 1},
                                                                                 {key, P}]],
                                   Written),
        ok = sderl_prof_book:finish(#{node => ~"n@h", info => none, entities => 2, dropped => 0,
                                      lost_bytes => 0, lost_events => 0, problems => []}, Written),
        {ok, View} = sderl_prof_view:open(Dir, fun(_, _) -> ok end),
        Test(View),
        %% A number that is not of a function is an error.
        {ok, #{why := <<"no module m is", _/binary>>, lines := []}} =
            sderl_prof_view:source(1, View),
        [{error, {no_function, N}} = sderl_prof_view:source(N, View) || N <- [0, 4, 5, 1 bsl 40]],
        ok = sderl_prof_view:close(View)
    end).

%% ---------------------------------------------------------------- sources

named_test_() ->
    [?_assertEqual(Expected, sderl_prof_listing:named(Text)) || {Text, Expected} <- [
        {~"lists:map/2", {ok, {~"lists", ~"map", 2}}},
        {~"m:-f/1-fun-0-/2", {ok, {~"m", ~"-f/1-fun-0-", 2}}},
        {~"Elixir.Enum:map/2", {ok, {~"Elixir.Enum", ~"map", 2}}},
        {~"../../etc/passwd:f/1", error},
        {~"/etc/passwd:f/1", error},
        {<<"a", 0, "b:f/1">>, error},
        {<<255, ":f/1">>, error},
        {~":f/1", error}, {~"m:f", error}, {~"m:f/x", error}, {~"m:f/-1", error}, {~"m:/1", error},
        {~"killed", error}, {~"?", error}, {~"", error}
    ]].

-define(EXAMPLE, ~"""
%% Begins here.
-module(prof_listing_example).
-export([f/1, g/0]).
-include("prof_listing_example.hrl").

g() -> h().

f(N) ->
    Add = fun(M) -> M + N end,
    Add(1).
""").

source_test_() ->
    {timeout, 60, fun() -> with_dir(fun(Dir) ->
        ok = filelib:ensure_path(filename:join(Dir, "ebin")),
        ok = filelib:ensure_path(filename:join(Dir, "src")),
        true = code:add_patha(filename:join(Dir, "ebin")),
        try
            sources(Dir, filename:join(Dir, "src/prof_listing_example.erl"))
        after
            true = code:del_path(filename:join(Dir, "ebin"))
        end
    end) end}.

sources(Dir, File) ->
    ok = file:write_file(File, ?EXAMPLE),
    ok = file:write_file(filename:join(Dir, "src/prof_listing_example.hrl"), "h() -> ok.\n"),
    Beam = filename:join(Dir, "ebin/prof_listing_example.beam"),
    Compile = fun(Options) ->
        {ok, _} = compile:file(File, [{outdir, filename:dirname(Beam)} | Options]),
        %% A fixed time, as the file system's clock may be coarse.
        ok = file:change_time(Beam, {{2026, 1, 2}, {0, 0, 0}})
    end,
    ok = file:change_time(File, {{2026, 1, 1}, {0, 0, 0}}),
    Make = fun(Text, Recorded) ->
        {ok, Named} = sderl_prof_listing:named(<<"prof_listing_example:", Text/binary>>),
        sderl_prof_listing:make(Named, Recorded)
    end,
    Compile([debug_info]),
    {ok, Code} = file:read_file(Beam),
    Md5 = code:module_md5(Code),
    Recorded = [{~"prof_listing_example", Md5}, {~"lists", ~"other"}],
    #{lines := [~"%% Begins here." | _] = Lines, first := 1, line := 8, last := 10, why := null,
      note := null, version := same} = Make(~"f/1", Recorded),
    ?assertEqual(~"f(N) ->", lists:nth(8, Lines)),
    %% A fun is shown within its function.
    #{line := 8, last := 10} = Make(~"-f/1-fun-0-/1", Recorded),
    #{line := 6, version := some, note := <<"other nodes", _/binary>>} =
        Make(~"g/0", [{~"prof_listing_example", ~"older"} | Recorded]),
    #{version := other, note := <<"another version", _/binary>>} =
        Make(~"g/0", [{~"prof_listing_example", ~"older"}]),
    #{version := unknown, note := <<"as it is here now", _/binary>>} = Make(~"g/0", []),
    %% The function comes from an included file, or is not in the text.
    #{lines := [], why := <<"it is written in prof_listing_example.hrl", _/binary>>} =
        Make(~"h/0", Recorded),
    #{line := null, lines := [_ | _], note := <<"the function was not found", _/binary>>} =
        Make(~"fun-1/0", Recorded),
    %% The source was changed since, and is not UTF-8.
    ok = file:write_file(File, [?EXAMPLE, "\n% ", 16#E9, "\n"]),
    ok = file:change_time(File, {{2026, 1, 3}, {0, 0, 0}}),
    #{version := same, note := <<"the file was changed", _/binary>>, lines := Changed} =
        Make(~"f/1", Recorded),
    ?assert(lists:member(~"% é", Changed)),
    %% Without forms the text is searched.
    ok = file:write_file(File, ?EXAMPLE),
    Compile([]),
    #{line := 8, last := 8} = Make(~"f/1", []),
    %% Compiled without the path of its source, which is then found beside it.
    Compile([debug_info, deterministic]),
    #{line := 8, why := null} = Make(~"f/1", []),
    %% The source is gone, and the compiled file does not name it.
    ok = file:delete(File),
    #{why := <<Why/binary>>, file := null, lines := []} = Make(~"f/1", []),
    ?assertMatch({_, _}, binary:match(Why, ~"does not say which source")),
    ok = file:write_file(Beam, ~"no module"),
    #{why := <<_/binary>>, lines := []} = Make(~"f/1", []),
    ok = file:delete(Beam),
    #{why := <<"no module prof_listing_example is in", _/binary>>} = Make(~"f/1", []).

%% A file that is no Erlang source is never read, whatever a compiled module names.
no_source_test() ->
    with_dir(fun(Dir) ->
        true = code:add_patha(Dir),
        Secret = filename:join(Dir, "secret.key"),
        ok = file:write_file(Secret, ~"secret"),
        Forms = [{attribute, 1, module, prof_listing_forged}, {attribute, 1, export, [{f, 0}]},
                 {function, 1, f, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}],
        {ok, _, Code} = compile:forms(Forms, [debug_info, {source, Secret}]),
        ok = file:write_file(filename:join(Dir, "prof_listing_forged.beam"), Code),
        try
            #{why := <<_/binary>>, lines := [], file := null} =
                sderl_prof_listing:make({~"prof_listing_forged", ~"f", 0}, [])
        after
            true = code:del_path(Dir)
        end
    end).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_proposal_tests).
-moduledoc "Plans of texts: what may be read for them, and that one is planned at a time.".

-include_lib("eunit/include/eunit.hrl").

-import(sderl_ops_places, [in_folder/1]).

%% The sender of a text learns nothing of files in the folder of the applied file, or above it:
%% neither their contents nor whether they exist.
templates_test() ->
    in_folder(fun(Folder) ->
        Applied = filename:join(Folder, "shop.json"),
        ok = file:write_file(filename:join(Folder, "secret"), ~"{{no_such_variable}}"),
        [?assertEqual({Path, {error, ["releases.code.files.a: a template is not read for a text: "
                                      "see it where the service runs, with `bin/sderl ops plan "
                                      "FILE`"]}},
                      {Path, read(text(#{files => #{a => #{template => Path}}}), Applied)})
         || Path <- [~"secret", ~"missing", ~"/etc/passwd", ~"../secret"]],
        ?assertMatch({ok, #{cluster := ~"shop"}}, read(text(#{files => #{a => ~"b"}}), Applied))
    end).

%% If the folder of the applied file is unknown, a relative path is an error.
unknown_folder_test() ->
    ?assertEqual(
        {error, ["releases.code.code.1: a relative path begins in the folder of the file that "
                 "was applied last, and no revision that is kept says which that is: write an "
                 "absolute path"]},
        read(text(#{}), none)
    ),
    {ok, #{releases := #{~"code" := #{code := [Path]}}}} =
        read(text(#{code => [~"/opt/shop/ebin"]}), none),
    ?assertEqual(~"/opt/shop/ebin", Path),
    {ok, #{releases := #{~"code" := #{code := [Same]}}}} = read(text(#{}), ~"/opt/shop/shop.json"),
    ?assertEqual(Path, Same).

read(Text, Applied) ->
    case sderl_ops_proposal:read(Text, case Applied of
                                           none -> none;
                                           _ -> unicode:characters_to_binary(Applied)
                                       end) of
        {ok, File} -> {ok, File};
        {error, Sentences} -> {error, [unicode:characters_to_list(S) || S <- Sentences]}
    end.

text(Release) ->
    iolist_to_binary(json:encode(#{
        cluster => shop, providers => #{here => #{type => local, hosts => 1}},
        releases => #{code => maps:merge(#{code => [~"ebin"]}, Release)},
        domains => #{one => #{provider => here}},
        families => #{web => #{release => code, domains => [one], count => 1}}
    })).

%% While one is planned, others are told to come again, and then it is as before.
one_at_a_time_test() ->
    Plan = fun() ->
        sderl_ops_requests:do(#{do => plan_text, text => ~"{", force => false, who => ~"ann"},
                              "/nonexistent", fun(_) -> ok end)
    end,
    Owner = self(),
    {Planner, Monitor} = spawn_monitor(fun() ->
        true = register(sderl_ops_plans_text, self()),
        Owner ! planning,
        receive stop -> ok end
    end),
    receive planning -> ok end,
    {busy, Sentence} = Plan(),
    ?assertNotEqual(nomatch, string:find(Sentence, "ask again")),
    exit(Planner, kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    [?assertNotMatch({busy, _}, try Plan() catch exit:Why -> Why end) || _ <- [1, 2]].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_plan_tests).
-include_lib("eunit/include/eunit.hrl").

run(Args) ->
    case sderl_cli_plan:run(string:lexemes(Args, " ")) of
        {Kind, Text} -> {Kind, unicode:characters_to_list(Text)};
        ok -> ok
    end.

good_test_() ->
    [{Args, ?_assertEqual(ok, run(Args))}
     || Args <- [
         "--nodes 20 --max-links 8", "--nodes 20 --pattern auto",
         "--nodes 20 --pattern tree --branching 2 --remainder left_out",
         "--nodes 20 --pattern ring --group-size 6 --gateways 2 --json -"
     ]].

wrong_test_() ->
    [{Args, ?_assertEqual({usage, Text}, run(Args))}
     || {Args, Text} <- [
         {"--pattern star", "how many nodes? --nodes N, or a file with their names"},
         {"--nodes 0", "--nodes cannot be 0: it is a number from 1 to 5000, or a file"},
         {"--nodes /nowhere/x", "--nodes: /nowhere/x is neither a number nor a file that can be "
                                "read: no such file or directory"},
         {"--nodes 9 --groups 3",
          "--groups is for one pattern: give --pattern too, or a limit (--max-group, --max-links)"},
         {"--nodes 9 --pattern cube",
          "--pattern cannot be cube: it is star, tree, ring, chain, grid or auto"},
         {"--nodes 9 --pattern star --remainder x",
          "--remainder cannot be x: it is spread, last, error or left_out"},
         {"--nodes 9 --pattern star", "--pattern star needs --group-size or --groups"},
         {"--nodes 9 --pattern tree --levels 2", "--pattern tree needs --branching"},
         {"--nodes 9 --pattern ring --hubs 2 --groups 3", "--hubs is for --pattern star, not ring"},
         {"--nodes 9 --pattern ring --group-size 3 --groups 3",
          "--group-size and --groups decide each other: leave one of them out"},
         {"--nodes 9 --pattern ring --groups 2",
          "a ring needs 3 groups at least, not 2: make groups smaller, or take a chain"},
         {"--nodes 100 --pattern star --group-size 10 --gateways 2 --max-links 20",
          "a node of this plan has 27 links and max_links allows 20: allow 27, make groups smaller "
          "or gateways fewer"},
         {"--nodes 9 --traffic /nowhere/x",
          "--traffic: cannot read /nowhere/x: no such file or directory"}
     ]].

improper_nodes_test() ->
    Dir = filename:join(filename:basedir(user_cache, "sderl_cli_plan_tests"),
                        os:getpid() ++ "-improper"),
    File = filename:join(Dir, "nodes"),
    ok = filelib:ensure_path(Dir),
    try
        ok = file:write_file(File, "['n1@host', 'n2@host' | x].\n"),
        {usage, Names} = run(["--nodes ", File]),
        ?assertNotEqual(nomatch, string:find(Names, "is no name of a node"))
    after file:del_dir_r(Dir)
    end.

%% Without a limit no full mesh of all nodes is proposed, and the output names the assumption.
assumed_test() ->
    Dir = filename:join(filename:basedir(user_cache, "sderl_cli_plan_tests"),
                        os:getpid() ++ "-assumed"),
    Json = filename:join(Dir, "json"),
    ok = filelib:ensure_path(Dir),
    try
        ?assertEqual(ok, run(["--nodes 100 --json ", Json])),
        {ok, Text} = file:read_file(Json),
        #{<<"params">> := #{<<"max_group">> := 30}, <<"metrics">> := #{<<"group_size">> := Size}} =
            json:decode(Text),
        ?assertMatch(#{<<"max">> := Max} when Max =< 30, Size)
    after
        file:del_dir_r(Dir)
    end.

unwritable_test() ->
    ?assertEqual({error, "cannot write /nowhere/x: no such file or directory"},
                 run("--nodes 9 --svg /nowhere/x")).

files_test() ->
    Dir = filename:join(filename:basedir(user_cache, "sderl_cli_plan_tests"), os:getpid()),
    File = fun(Name) -> filename:join(Dir, Name) end,
    ok = filelib:ensure_path(Dir),
    try
        ok = file:write_file(File("nodes"), "a@host b@host  # two\nc@host,d@host\n"),
        ok = file:write_file(File("terms"), "['a@host', 'b@host']. 'c@host'. 'd@host'.\n"),
        ok = file:write_file(File("traffic"),
                             "{'a@host', 'd@host', 100}. {['b@host'], 'c@host', 50}.\n"),
        [ok = run(["--nodes ", File(Nodes), " --pattern star --group-size 2 --traffic ",
                   File("traffic"), " --out ", File("plan"),
                   " --svg ", File("svg"), " --config ", File("config"), " --json ", File("json")])
         || Nodes <- ["nodes", "terms"]],
        {ok, #{groups := [_, #{nodes := One}, #{nodes := Two}]} = Plan} =
            sderl_pattern:read(File("plan")),
        ?assertEqual([['a@host', 'd@host'], ['b@host', 'c@host']],
                     lists:sort([lists:sort(One), lists:sort(Two)])),
        ?assertEqual({ok, [[{sderl, [sderl_pattern:config(Plan)]}]]}, file:consult(File("config"))),
        {ok, Json} = file:read_file(File("json")),
        ?assertMatch(#{<<"experiment">> := <<"plan">>,
                       <<"metrics">> := #{<<"links_per_node_max">> := 2,
                                          <<"traffic">> := #{<<"inside">> := 1.0}}},
                     json:decode(Json)),
        %% Invisible characters of a name are escaped in the files, which read back as the name.
        Hidden = list_to_atom([$a, 16#202E, $b | "@host"]),
        ok = file:write_file(File("nodes"), unicode:characters_to_binary(
            io_lib:format("~tp. 'c@host'.~n", [Hidden])
        )),
        ok = run(["--nodes ", File("nodes"), " --svg ", File("svg"), " --config ", File("config")]),
        [?assertEqual(nomatch, binary:match(Bytes, <<16#202E/utf8>>))
         || Name <- ["svg", "config"], {ok, Bytes} <- [file:read_file(File(Name))]],
        {ok, [[{sderl, [{s_groups, Groups}]}]]} = file:consult(File("config")),
        ?assert(lists:any(fun(Group) -> lists:member(Hidden, lists:last(tuple_to_list(Group))) end,
                          Groups)),
        ok = file:write_file(File("nodes"), "a@host b"),
        ?assertMatch({usage, _}, run(["--nodes ", File("nodes"), " --max-links 3"])),
        %% An error in the traffic file names the file, the line, and what is expected there.
        Says = fun(Content) ->
            ok = file:write_file(File("traffic"), Content),
            {usage, Text} = run(["--nodes 3 --traffic ", File("traffic")]),
            {match, [Where, What]} =
                re:run(Text, ["^--traffic: ", File("traffic"), ", (line [0-9]+): (.*)$"],
                       [{capture, all_but_first, list}, dotall, unicode]),
            {Where, What}
        end,
        Row = " is no row of a traffic matrix: write {FromNodes, ToNodes, MessagesPerSecond}",
        Good = "{'n1@host', 'n2@host', 1}.\n",
        [
            begin
                {At, What} = Says(Content),
                ?assertEqual({Where, Content}, {At, Content}),
                ?assertMatch({_, [_ | _]}, {What, string:find(What, Part)})
            end
         || {Content, Where, Part} <- [
             {"{a, b}.\n", "line 1", "{a,b}" ++ Row},
             {[Good, "{'n1@host', 'm2@host', 1}.\n"], "line 2",
              "m2@host is not among the nodes of --nodes"},
             {[Good, Good, "{n1, n2, -1}.\n"], "line 3", "{n1,n2,-1}" ++ Row},
             {[Good, "{['n1@host' | x], 'n2@host', 1}.\n"], "line 2", Row},
             {"[{'n1@host', 'n2@host', 1} | x].\n", "line 1", "x" ++ Row},
             {"{'n1@host', 'n2@host', many}.\n", "line 1", Row},
             {[Good, "from,to,rate\n"], "line 2", "this is no Erlang term; rows are such as"},
             {[Good, "\n{'n1@host', \n"], "line 3", "this is no Erlang term; rows are such as"},
             {[Good, <<255, 254, "\n">>], "line 2", "this is no text in UTF-8"},
             {[Good, "#Fun<x>.\n"], "line 2", "this is no Erlang term; rows are such as"}
         ]
        ]
    after
        file:del_dir_r(Dir)
    end.

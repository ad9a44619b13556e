%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_top_SUITE).
-moduledoc """
`bin/sderl top` as a person uses it, into a pipe: on a made-up cluster, and on one that runs, which
nothing stays on.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([synthetic/1, attached/1, found/1, refused/1]).

-define(GONE_MS, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [synthetic, attached, found, refused].

synthetic(_Config) ->
    {0, Text} = top("", ["--synthetic", "--once"]),
    [?assertMatch({Part, [_ | _]}, {Part, string:find(Text, Part)})
     || Part <- ["200 nodes", "20 groups", "links with most bytes", "findings"]],
    ?assertEqual(nomatch, string:find(Text, "\e")).

attached(_Config) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => node, count => 3, apps => [sderl]}],
                                      s_groups => [{shop, normal, [{node, all}]}]}),
    try
        [Seed | _] = Nodes = sderl_fleet:nodes(Fleet),
        #{home := Home, epmd_port := Port} = sderl_fleet:connection_info(Fleet),
        %% It shows what is known with the second numbers, which may not be those of all nodes yet.
        ok = sderl_fleet:await(fun() ->
            {0, Text} = top(["ERL_EPMD_PORT=", integer_to_list(Port)],
                            ["--seed", atom_to_list(Seed), "--cookie-file",
                             filename:join(Home, ".erlang.cookie"), "--once"]),
            Missing = [Part || Part <- ["3 nodes up, 1 group", "shop"
                                        | [atom_to_list(N) || N <- Nodes]],
                               string:find(Text, Part) =:= nomatch],
            Missing =:= [] orelse {Missing, Text}
        end, 120_000),
        %% The probes end with their owner.
        ok = sderl_fleet:await(
            fun() ->
                [] =:= [N
                        || N <- Nodes,
                           is_pid(sderl_fleet:call(Fleet, N, erlang, whereis, [sderl_mon_probe]))]
            end,
            ?GONE_MS
        )
    after
        sderl_fleet:stop(Fleet)
    end.

%% `--seed` is found as by `shell`: from the file that the demo writes.
found(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "run"),
    ok = file:make_dir(Folder),
    ok = file:change_mode(Folder, 8#700),
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => node, count => 1, apps => [sderl]}]}),
    try
        [Node] = sderl_fleet:nodes(Fleet),
        Name = atom_to_list(Node),
        #{home := Home, epmd_port := Port} = sderl_fleet:connection_info(Fleet),
        File = filename:join(Folder, Name),
        ok = file:write_file(File, io_lib:format("cookie_file=~ts~nepmd_port=~w~n", [Home, Port])),
        Env = ["SDERL_RUN_DIR=", Folder],
        {0, Text} = top(Env, ["--seed", Name, "--once"]),
        ?assertMatch([_ | _], string:find(Text, "1 node up")),
        Once = ["--dry-run", "--every", "1ms", "--kills", "1"],
        Chaos = ["chaos", "--node=" ++ Name, "--target", "node", "--allow-halt" | Once],
        {0, Killed} = run(Env, Chaos),
        ?assertMatch([_ | _], string:find(Killed, "1 would have been killed")),
        %% Without a name the error lists those that run here.
        [begin
             {2, Which} = run(Env, [Command]),
             ?assertMatch([_ | _],
                          string:find(Which, "these run here: " ++ Name ++ "; try --seed " ++ Name))
         end || Command <- ["top", "mon"]],
        %% The file of a node that has gone.
        ok = file:write_file(File, "cookie_file=/nowhere\nepmd_port=1\n"),
        [begin
             {1, Gone} = run(Env, [Command, "--seed", Name | More]),
             ?assertMatch([_ | _], string:find(Gone, "the node is gone"))
         end || {Command, More} <- [{"top", []}, {"mon", ["--port", "0"]}]]
    after
        sderl_fleet:stop(Fleet)
    end.

refused(Config) ->
    %% Nothing runs there.
    Nowhere = ["SDERL_RUN_DIR=", filename:join(proplists:get_value(priv_dir, Config), "nowhere")],
    ?assertMatch({2, "sderl: --seed is missing" ++ _}, top(Nowhere, [])),
    ?assertMatch({2, _}, top("", ["--synthetic", "--seed", "a@h"])),
    {1, Text} = top("ERL_EPMD_PORT=1",
                    ["--seed", "nobody@127.0.0.1", "--cookie-file", "/nowhere", "--once"]),
    ?assertMatch([_ | _], string:find(Text, "cookie")).

%% Its exit status and its output.
top(Env, Args) -> run(Env, ["top" | Args]).

run(Env, Args) ->
    Quoted = [[$\s, $', Arg, $'] || Arg <- Args],
    Said = os:cmd(lists:flatten([Env, " ", sderl_cli_program:file(), Quoted,
                                 " 2>&1 </dev/null; echo status=$?"])),
    [Text, Status] = string:split(Said, "status=", trailing),
    {list_to_integer(string:trim(Status)), Text}.

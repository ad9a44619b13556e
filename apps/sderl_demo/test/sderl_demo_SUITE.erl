%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_SUITE).

%% The demo on real nodes, small and short.

-compile([export_all, nowarn_export_all]).

-include_lib("kernel/include/file.hrl").
-include_lib("stdlib/include/assert.hrl").

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    [
        once_json, failing_node, interrupted, load_survives,
        attach, attach_caller_killed, attach_not_private
    ] ++ sderl_ct:in_long_runs([by_majority, dashboard]).

%% The command as a script runs it: structure and promises, no speeds.
once_json(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "demo.json"),
    Size = ["--nodes", "6", "--group-size", "3", "--seconds", "1", "--seed", "7"],
    ?assertEqual(ok, sderl_cli_demo:run(Size ++ ["--once", "--json", File])),
    {ok, Json} = file:read_file(File),
    [Line] = binary:split(Json, <<"\n">>, [global, trim]),
    #{
        <<"experiment">> := <<"demo">>,
        <<"params">> := #{
            <<"nodes">> := 6, <<"group_size">> := 3, <<"seconds">> := 1, <<"seed">> := 7
        },
        <<"metrics">> := #{<<"stock">> := Stock, <<"sd">> := Sd, <<"following">> := Following},
        <<"machine">> := #{<<"cores">> := _, <<"memory_mib">> := _, <<"otp">> := _},
        <<"started">> := _
    } = json:decode(Line),
    lists:foreach(fun measured/1, [Stock, Sd, Following]),
    ?assertMatch(#{<<"links_total">> := 15, <<"links_per_node_max">> := 5}, Stock),
    %% Two meshes of four that share a link: what goes from group to group is routed. A question
    %% to a member that was slow to answer may have made one more, and on a busy machine another.
    #{<<"links_total">> := Links} = Sd,
    ?assert(Links >= 11 andalso Links < 15),
    Promised = [<<"lost_calls">>, <<"missing_names">>, <<"leftover_names">>, <<"errors">>],
    [?assertEqual(#{Key => 0 || Key <- Promised}, maps:with(Promised, Side))
     || Side <- [Sd, Following]].

%% The same in groups that decide by majority. (Its other side is that of the case above.)
by_majority(_) ->
    {ok, Layout} = sderl_demo_layout:new(5, 3, majority),
    Settings = #{layout => Layout, seconds => 0.5, seed => 7},
    {ok, Fleet} = sderl_demo_cluster:start(sd, Layout, self(), fun(_, _) -> ok end),
    ok = sderl_demo_cluster:link(sd, Fleet, Layout),
    Orders = sderl_demo_kill:plan(Layout, 0.5, 7),
    {ok, Metrics} = sderl_demo_side:run(sd, Fleet, Settings, Orders, fun(_, Step) -> Step() end),
    [Node | _] = sderl_fleet:nodes(Fleet),
    Info = sderl_fleet:call(Fleet, Node, s_group, info, []),
    ok = sderl_fleet:stop(Fleet),
    ?assertEqual([majority],
                 [C
                  || #{consistency := C, group := G} <- proplists:get_value(groups, Info),
                     G =/= undefined]),
    ?assertEqual(ok, sderl_demo:verdict(#{sd => Metrics})),
    Words = fun(Text) -> unicode:characters_to_list(Text) end,
    ?assertNotEqual(nomatch, string:find(Words(sderl_demo_text:header(Settings)),
                                         "with the consistency majority")),
    ?assertNotEqual(nomatch, string:find(Words(
        sderl_demo_table:text(#{stock => Metrics, sd => Metrics, following => Metrics}, majority)
    ), "s_groups, by majority")).

%% Ctrl-C at a terminal while a bar is drawn: the line is wiped, with the ^C behind it, and the exit
%% status says which signal it was.
interrupted(_) ->
    case {os:type(), os:find_executable("script")} of
        {{unix, linux}, Script} when is_list(Script) ->
            Command = sderl_cli_program:file() ++ " demo --once --nodes 6 --group-size 3",
            Port = sderl_cli_program:interruptible([Script, "-qefc", Command, "/dev/null"],
                                                     [{"TERM", "vt100"}, {"SDERL_TTY", false}]),
            true = port_command(Port, until_bar(Port, <<>>)),
            {Status, Screen} = rest(Port, <<>>),
            ?assertEqual({130, true},
                         {Status, binary:longest_common_suffix([Screen, <<"\r\e[K">>]) =:= 4}),
            %% What was written since the interrupt is on lines that were wiped.
            ?assertEqual([], [L
                              || L <- binary:split(Screen, <<"\n">>, [global]),
                                 binary:match(L, <<"^C">>) =/= nomatch,
                                 binary:longest_common_suffix([L, <<"\r\e[K">>]) < 4]);
        _ ->
            {skip, "needs a terminal from script(1) as Linux has it"}
    end.

until_bar(Port, Seen) ->
    receive
        {Port, {data, Data}} ->
            case binary:match(<<Seen/binary, Data/binary>>, <<"[#">>) of
                nomatch -> until_bar(Port, <<Seen/binary, Data/binary>>);
                _ -> <<3>>
            end;
        {Port, {exit_status, Status}} -> error({ended, Status, Seen})
    end.

rest(Port, Seen) ->
    receive
        {Port, {data, Data}} -> rest(Port, <<Seen/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Seen}
    end.

measured(Side) ->
    lists:foreach(
        fun(Key) -> ?assert(is_number(maps:get(Key, Side)) andalso maps:get(Key, Side) > 0) end,
        [
            <<"registrations_per_s">>,
            <<"lookups_per_s">>,
            <<"calls_per_s">>,
            <<"own_calls_per_s">>,
            <<"other_calls_per_s">>,
            <<"bytes">>,
            <<"messages">>,
            <<"kills">>
        ]
    ),
    lists:foreach(
        fun(Key) ->
            #{<<"p50">> := P50, <<"p99">> := P99} = maps:get(Key, Side),
            ?assert(P50 > 0 andalso P99 >= P50)
        end,
        [<<"register_us">>, <<"recovery_ms">>]
    ),
    ?assert(is_integer(maps:get(<<"lost_calls">>, Side))),
    ?assert(is_integer(maps:get(<<"missing_names">>, Side))).

%% The loss of a node in the middle ends the run with an error that names it.
failing_node(_) ->
    {ok, Layout} = sderl_demo_layout:new(4, 4),
    {ok, Fleet} = sderl_demo_cluster:start(stock, Layout, self(), fun(_, _) -> ok end),
    ok = sderl_demo_cluster:link(stock, Fleet, Layout),
    [Node | _] = sderl_fleet:nodes(Fleet),
    Killing = fun
        (calls, Fun) ->
            ok = sderl_fleet:kill(Fleet, Node),
            Fun();
        (_, Fun) ->
            Fun()
    end,
    Settings = #{layout => Layout, seconds => 0.2, seed => 7},
    Result = sderl_demo_side:run(stock, Fleet, Settings, #{}, Killing),
    ok = sderl_fleet:stop(Fleet),
    ?assertEqual({error, {run, Node, {error, down}}}, Result).

%% Beside the nodes that stay up: the dashboard shows them all, one that is killed goes and comes
%% back.
dashboard(Config) ->
    {ok, Layout} = sderl_demo_layout:new(4, 2),
    {ok, Fleet} = sderl_demo_cluster:start(sd, Layout, self(), fun(_, _) -> ok end),
    ok = sderl_demo_cluster:link(sd, Fleet, Layout),
    Site = #{nodes := [Seed, Killed | _] = Nodes} = sderl_demo_cluster:site(sd, Fleet, Layout),
    {ok, _} = sderl_demo_cluster:on_all(Fleet, Site, sderl_demo_load, servers, [Site], 60_000),
    Folder = filename:join(proplists:get_value(priv_dir, Config), "recordings"),
    Options = #{port => 0, cluster => ~"demo", writable => true, record => Folder},
    {ok, #{links := [Link, _]}} = Started = sderl_demo_dashboard:start(Fleet, Seed, Options),
    [First] = filelib:wildcard(filename:join(Folder, "*.sdmon")),
    Text = unicode:characters_to_list(sderl_demo_dashboard:text(Started)),
    Parts = [Link, "mon --replay " ++ First],
    [?assertMatch({Part, [_ | _]}, {Part, string:find(Text, Part)}) || Part <- Parts],
    ok = sderl_demo_live:start(Fleet, Site),
    Shown = fun() -> shown(Link) end,
    All = #{atom_to_binary(Node) => ~"up" || Node <- Nodes},
    ok = sderl_fleet:await(fun() -> Shown() =:= All end, 60_000),
    ok = await_healthy(Link),
    Others = Nodes -- [Killed],
    Before = sderl_demo_live:counts(Fleet, Others),
    Begin = erlang:monotonic_time(millisecond),
    ok = sderl_fleet:kill(Fleet, Killed),
    ok = await_answers(Fleet, Before),
    ok = are_bounded(Fleet, Before, Begin, length(sderl_demo_layout:names(Layout))),
    Mended = maps:merge(sderl_demo_live:nodes(Fleet, Site),
                        sderl_demo_dashboard:nodes(Fleet, Started)),
    ?assertEqual(length(Nodes) + 2, map_size(Mended)),
    Away = #{Killed := Since} = sderl_demo_live:mend(Fleet, Mended, #{}),
    ok = sderl_fleet:await(fun() -> maps:get(atom_to_binary(Killed), Shown()) =:= ~"down" end,
                           60_000),
    %% Not before some seconds have gone.
    ?assertEqual(#{}, sderl_demo_live:mend(Fleet, Mended, Away#{Killed := Since - 10_000})),
    ok = sderl_fleet:await(fun() -> Shown() =:= All end, 60_000),
    %% So does the one that shows it, at the same address.
    [Monitor | _] = lists:sort(maps:keys(Mended) -- Nodes),
    ok = sderl_fleet:kill(Fleet, Monitor),
    ?assertEqual(#{}, sderl_demo_live:mend(Fleet, Mended, #{Monitor => Since - 10_000})),
    ok = sderl_fleet:await(fun() -> Shown() =:= All end, 60_000),
    %% It records again, into another file.
    ?assertMatch([_, _], filelib:wildcard(filename:join(Folder, "*.sdmon"))),
    ok = sderl_fleet:stop(Fleet).

%% The nodes with their states, as a browser is told them.
shown(Link) ->
    #{~"topology" := #{~"nodes" := Nodes}} = present(Link),
    #{Name => Status || #{~"name" := Name, ~"status" := Status} <- Nodes}.

present(Link) ->
    #{port := Port, fragment := <<"token=", Token/binary>>} = uri_string:parse(Link),
    {200, _, Body} = sderl_web_client:http(Port, ["/api/v1/state?token=", Token]),
    #{~"now" := Now} = json:decode(Body),
    Now.

%% Waits for so many frames with traffic, the last without findings; none may have a line between
%% nodes that share no group.
-define(FRAMES, 8).

await_healthy(Link) ->
    Seen = ets:new(seen, [set]),
    Look = fun() ->
        case present(Link) of
            #{~"frame" := #{~"links" := [_ | _]} = Frame, ~"findings" := Found} = Now ->
                #{~"links" := Links, ~"seq" := Seq} = Frame,
                ?assertEqual([], between_groups(Links, Now)),
                true = ets:insert(Seen, {Seq}),
                Found =:= [] andalso ets:info(Seen, size) >= ?FRAMES orelse Found;
            #{} ->
                no_traffic
        end
    end,
    ok = sderl_fleet:await(Look, 60_000),
    true = ets:delete(Seen),
    ok.

between_groups(Links, #{~"topology" := #{~"nodes" := Nodes}}) ->
    Of = #{Id => Groups || #{~"id" := Id, ~"groups" := Groups, ~"hidden" := false} <- Nodes},
    [
        {A, B}
     || [A, B | _] <- Links,
        #{A := OfA, B := OfB} <- [Of],
        OfA -- OfB =:= OfA
    ].

%% No client stops: each gets further answers.
-define(ANSWERS, 5).

await_answers(Fleet, Before) ->
    Answered = fun() ->
        After = sderl_demo_live:counts(Fleet, maps:keys(Before)),
        lists:all(
            fun(Node) ->
                Pairs = lists:zip(maps:get(Node, Before), maps:get(Node, After)),
                lists:all(fun({#{answered := B}, #{answered := A}}) -> A - B >= ?ANSWERS end, Pairs)
            end,
            maps:keys(Before)
        )
    end,
    sderl_fleet:await(Answered, 60_000).

%% No client made more calls than its rate allows, nor called a server that did not answer more
%% often than the pauses allow.
are_bounded(Fleet, Before, Begin, Servers) ->
    After = sderl_demo_live:counts(Fleet, maps:keys(Before)),
    Ms = erlang:monotonic_time(millisecond) - Begin,
    LeastPauseMs = 3 * 40 div 2,
    Tries = tries(125, Ms, 1),
    lists:foreach(
        fun(Node) ->
            lists:foreach(
                fun({#{calls := CB, failed := FB}, #{calls := CA, failed := FA}}) ->
                    ?assert(CA - CB =< 2 + Ms div LeastPauseMs),
                    ?assert(FA - FB =< Servers * Tries)
                end,
                lists:zip(maps:get(Node, Before), maps:get(Node, After))
            )
        end,
        maps:keys(Before)
    ).

%% The shortest pauses double, up to 4 s.
tries(_PauseMs, Ms, Tries) when Ms =< 0 -> Tries;
tries(PauseMs, Ms, Tries) -> tries(min(4_000, 2 * PauseMs), Ms - PauseMs, Tries + 1).

%% Whatever is killed on purpose, the load goes on.
load_survives(_) ->
    {ok, Layout} = sderl_demo_layout:new(4, 2),
    {ok, Fleet} = sderl_demo_cluster:start(sd, Layout, self(), fun(_, _) -> ok end),
    ok = sderl_demo_cluster:link(sd, Fleet, Layout),
    Site = #{nodes := [Node | _] = Nodes} = sderl_demo_cluster:site(sd, Fleet, Layout),
    {ok, _} = sderl_demo_cluster:on_all(Fleet, Site, sderl_demo_load, servers, [Site], 60_000),
    ok = sderl_demo_live:start(Fleet, Site),
    %% Chaos spares processes of the kernel.
    [{_, Server} | _] = sderl_fleet:call(Fleet, Node, sderl_demo_sup, servers, []),
    ?assertEqual(
        {ok, sderl_demo_node},
        sderl_fleet:call(Fleet, Node, application, get_application, [Server])
    ),
    Killed = sderl_fleet:call(Fleet, Node, ?MODULE, kill_children, [sderl_demo_live_sup, 30],
                              60_000),
    ?assert(Killed >= 100),
    ok = sderl_fleet:call(Fleet, Node, ?MODULE, kill_supervisor, [sderl_demo_live_sup], 60_000),
    ok = sderl_fleet:call(Fleet, Node, ?MODULE, kill_supervisor, [sderl_demo_sup], 60_000),
    ok = await_answers(Fleet, sderl_demo_live:counts(Fleet, Nodes)),
    %% Both are started once only.
    ok = sderl_fleet:call(Fleet, Node, sderl_demo_live, on_node, [Site], 60_000),
    ok = sderl_fleet:call(Fleet, Node, sderl_demo_load, servers, [Site], 60_000),
    ok = sderl_fleet:stop(Fleet).

%% On a node: how many were killed, in so many rounds.
kill_children(_Supervisor, 0) ->
    0;
kill_children(Supervisor, Rounds) ->
    Pids = [Pid || {_, Pid, _, _} <- supervisor:which_children(Supervisor), is_pid(Pid)],
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, Pids),
    length(Pids) + kill_children(Supervisor, Rounds - 1).

%% Until another one has its name and all its children.
kill_supervisor(Supervisor) ->
    Killed = whereis(Supervisor),
    true = exit(Killed, kill),
    sderl_fleet:await(
        fun() ->
            case whereis(Supervisor) of
                Pid when is_pid(Pid), Pid =/= Killed ->
                    lists:all(fun({_, Child, _, _}) -> is_pid(Child) end,
                              supervisor:which_children(Pid));
                _ ->
                    false
            end
        end,
        60_000
    ).

attach(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "run"),
    with_run_dir(Folder, fun() ->
        Owner = sderl_demo_attach:start(),
        Fleet = attached(Owner, 2),
        Files = [filename:join(Folder, atom_to_list(Node)) || Node <- sderl_fleet:nodes(Fleet)],
        ?assertEqual(ok, sderl_demo_attach:write(Owner, Fleet)),
        ?assertEqual([8#700, 8#600, 8#600], [mode(Path) || Path <- [Folder | Files]]),
        #{home := Home, epmd_port := Port, cookie := Cookie} = sderl_fleet:connection_info(Fleet),
        {ok, Text} = file:read_file(hd(Files)),
        Expected = io_lib:format("cookie_file=~ts~nepmd_port=~w~n", [Home, Port]),
        ?assertEqual(unicode:characters_to_binary(Expected), Text),
        ?assertEqual(nomatch, string:find(Text, atom_to_binary(Cookie))),
        Monitor = monitor(process, Fleet),
        ok = sderl_demo_attach:stop(Owner),
        ?assertEqual([], filelib:wildcard(filename:join(Folder, "*"))),
        ended(Monitor)
    end).

%% However the program ends, the files are removed before the nodes end.
attach_caller_killed(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "killed"),
    with_run_dir(Folder, fun() ->
        Test = self(),
        {Caller, Died} = spawn_monitor(fun() ->
            Owner = sderl_demo_attach:start(),
            Fleet = attached(Owner, 1),
            ok = sderl_demo_attach:write(Owner, Fleet),
            Test ! {attached, Fleet},
            receive
                never -> ok
            end
        end),
        receive
            {attached, Fleet} ->
                Monitor = monitor(process, Fleet),
                ?assertMatch([_], filelib:wildcard(filename:join(Folder, "*"))),
                exit(Caller, kill),
                ended(Monitor),
                ?assertEqual([], filelib:wildcard(filename:join(Folder, "*")));
            {'DOWN', Died, process, Caller, Reason} ->
                error(Reason)
        end
    end).

attach_not_private(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "open"),
    ok = file:make_dir(Folder),
    ok = file:change_mode(Folder, 8#755),
    with_run_dir(Folder, fun() ->
        Owner = sderl_demo_attach:start(),
        Fleet = attached(Owner, 1),
        ?assertEqual({error, {not_private, Folder}}, sderl_demo_attach:write(Owner, Fleet)),
        ?assertEqual([], filelib:wildcard(filename:join(Folder, "*"))),
        ok = sderl_demo_attach:stop(Owner)
    end).

attached(Owner, Count) ->
    {ok, Fleet} = sderl_fleet:start(#{
        families => [#{name => attach, count => Count}], owner => Owner
    }),
    Fleet.

ended(Monitor) ->
    receive
        {'DOWN', Monitor, process, _, _} -> ok
    end.

with_run_dir(Folder, Fun) ->
    Before = os:getenv("SDERL_RUN_DIR"),
    true = os:putenv("SDERL_RUN_DIR", Folder),
    try
        Fun()
    after
        case Before of
            false -> os:unsetenv("SDERL_RUN_DIR");
            _ -> os:putenv("SDERL_RUN_DIR", Before)
        end
    end.

mode(Path) ->
    {ok, #file_info{mode = Mode}} = file:read_file_info(Path),
    Mode band 8#777.

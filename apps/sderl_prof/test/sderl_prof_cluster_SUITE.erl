%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_cluster_SUITE).
-moduledoc """
Several real nodes recorded at once: exchanges of known messages; nodes that die, that have none of
this project's modules, that refuse; and fetching that is interrupted.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

-define(WAIT_MS, 240_000).
-define(P, sderl_prof_cluster_programs).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [ping_pong, calls, groups, node_dies, node_hangs, fetched, still_recorded, another_version,
          stock_node, refused].

%% ---------------------------------------------------------------- known exchanges

%% The first node records the other two, as a hidden one would.
ping_pong(_) ->
    with(3, fun(Fleet, [C, A, B]) ->
        Dir = folder(Fleet, C, "pingpong"),
        {100, #{nodes := Entries}} =
            record(Fleet, C, [A, B], Dir, #{}, {ping_pong, A, B, 100}),
        ?assertMatch([#{state := recorded, ended := ~"stopped"}, #{state := recorded}], Entries),
        #{nodes := Nodes, traffic := Traffic, pairs := Pairs, cluster := Cluster} =
            report(Fleet, C, Dir),
        [?assertMatch(#{aligned := true, here := true, problems := []}, Node) || Node <- Nodes],
        #{problems := [], all_from_ns := From, all_to_ns := To} = Cluster,
        ?assert(From < To),
        %% Questions and answers are joined, each send with its receive, between the processes of
        %% the program. A send that is recorded too late stays alone.
        [Asked] = [P || #{from_node := F, to_node := T, count := N} = P <- Pairs,
                        F =:= name(A), T =:= name(B), is_nearly(100, N)],
        [Answered] = [P || #{from_node := F, to_node := T, count := N} = P <- Pairs,
                           F =:= name(B), T =:= name(A), is_nearly(100, N)],
        ?assertEqual({maps:get(from, Asked), maps:get(to, Asked)},
                     {maps:get(to, Answered), maps:get(from, Answered)}),
        %% {ask, Pid, N}: more bytes than {answer, N}.
        ?assert(maps:get(bytes, Asked) > maps:get(bytes, Answered)),
        [?assert(is_possible(Link)) || #{joined := N} = Link <- Traffic, N > 0],
        [#{sent := Sent, received := Received, joined := Joined}] =
            [L || #{from := F, to := T} = L <- Traffic, F =:= name(A), T =:= name(B)],
        [?assert(N >= 100) || N <- [Sent, Received]],
        ?assert(Joined >= 90),
        arrows(Fleet, C, Dir),
        crossed(Fleet, C, Dir, Asked)
    end).

is_nearly(Count, N) -> N =< Count andalso 10 * N >= 9 * Count.

%% The path to the last run of the one who asks goes to the other node and back with each question.
crossed(Fleet, C, Dir, #{from := From, from_node := A, to := To, to_node := B}) ->
    [Asker, Echo] = [<<P/binary, " at ", Node/binary>> || {P, Node} <- [{From, A}, {To, B}]],
    #{nodes := Nodes, kinds := #{between := Ns}, segments := Segments} =
        call(Fleet, C, ?P, path, [Dir, Asker]),
    ?assert(Ns > 0),
    ?assertEqual(lists:sort([A, B]), lists:sort([Node || #{node := Node} <- Nodes])),
    Came = [{Sender, P} || #{kind := between, sender := Sender, process := P} <- Segments],
    %% When a send is recorded too late to be joined, another one may be taken for it.
    [?assert(length([1 || Way <- Came, Way =:= Wanted]) >= 50)
     || Wanted <- [{Asker, Echo}, {Echo, Asker}]].

%% A single send may be recorded late; but not all messages can arrive before they are sent.
is_possible(#{least_ns := Least, mean_ns := Mean, most_ns := Most, error_ns := Error}) ->
    Most >= -Error andalso Error > 0 andalso Least =< Mean andalso Mean =< Most.

%% A group of lanes for each node, and both ends of each arrow.
arrows(Fleet, C, Dir) ->
    Out = filename:join(Dir, "chrome.json"),
    ok = call(Fleet, C, ?P, export, [Dir, Out]),
    {ok, Text} = call(Fleet, C, file, read_file, [Out]),
    #{~"traceEvents" := Events} = json:decode(Text),
    Groups = [N || #{~"name" := ~"process_name", ~"args" := #{~"name" := N}} <- Events],
    ?assertEqual(2, length(Groups)),
    Ids = fun(Phase) -> lists:sort([Id || #{~"ph" := P, ~"id" := Id} <- Events, P =:= Phase]) end,
    ?assert(length(Ids(~"s")) >= 180),
    ?assertEqual(Ids(~"s"), Ids(~"f")),
    [?assert(T >= 0) || #{~"ph" := ~"X", ~"ts" := T} <- Events].

%% Calls go to a registered name, and answers to aliases.
calls(_) ->
    with(3, fun(Fleet, [C, A, B]) ->
        Dir = folder(Fleet, C, "calls"),
        {50, _} = record(Fleet, C, [A, B], Dir, #{}, {calls, A, B, 50}),
        #{pairs := Pairs} = report(Fleet, C, Dir),
        Server = atom_to_binary(?P),
        [#{from := Client}] = [P || #{to := S, count := N} = P <- Pairs, S =:= Server,
                                    is_nearly(50, N)],
        ?assertMatch([_], [P || #{from := S, to := To, count := N} = P <- Pairs, S =:= Server,
                                To =:= Client, is_nearly(50, N)])
    end).

%% The time line shows operations on groups; nodes are shown with their groups, and messages to
%% another group with the gateway between.
groups(_) ->
    with(4, [sderl], fun(Fleet, [C, A, B, G]) ->
        {ok, ours, [_, _]} = call(Fleet, A, s_group, new_s_group, [ours, [A, G]]),
        {ok, theirs, [_, _]} = call(Fleet, B, s_group, new_s_group, [theirs, [B, G]]),
        Dir = folder(Fleet, C, "groups"),
        Sent = 40,
        {10, _} = record(Fleet, C, [A, B, G], Dir, #{what => [messages, s_group, routed]},
                         {new_group, A, {route, A, theirs, B, Sent, {ping_pong, A, B, 10}}}),
        #{operations := Operations, traffic := Traffic, routed := Routed} =
            report(Fleet, C, Dir),
        [#{took := Took, at := At, group := ~"made", ok := true, got_nodes := Members}] =
            [O || #{operation := ~"s_group:new_s_group/2", node := N} = O <- Operations,
                  N =:= name(A)],
        ?assertEqual([name(A)], Members),
        ?assert(Took > 0),
        ?assert(At > 0),
        ?assertMatch([#{ok := true, name := ~"collector", group := ~"theirs"}],
                     [O || #{operation := ~"s_group:register_name/3", node := N} = O <- Operations,
                           N =:= name(B)]),
        routed(A, B, G, Sent, Routed),
        %% A common group counts only if it was there when the recording began.
        [false] = [Common || #{from := F, to := T, common_group := Common} <- Traffic,
                             F =:= name(A), T =:= name(B)],
        Out = filename:join(Dir, "chrome.json"),
        ok = call(Fleet, C, ?P, export, [Dir, Out]),
        {ok, Text} = call(Fleet, C, file, read_file, [Out]),
        #{~"traceEvents" := Events} = json:decode(Text),
        [?assertMatch([_], [E || #{~"ph" := P, ~"name" := ~"s_group:new_s_group/2"} = E <- Events,
                                 P =:= Phase]) || Phase <- [~"b", ~"e"]]
    end).

%% All go over the gateway, which reports the one whose name does not exist.
routed(A, B, G, Sent, #{destinations := Destinations, gateways := Gateways,
                        failures := Failures, undelivered := Undelivered}) ->
    ?assertMatch([#{count := Sent, bytes := Bytes}] when Bytes > Sent,
                 [Row || #{from := From, first := First, to := ~"theirs",
                           whom := ~"collector"} = Row <- Destinations,
                         From =:= name(A), First =:= name(G)]),
    Passed = lists:sum([N || #{gateway := Gateway, from := From, next := Next,
                               count := N} <- Gateways,
                             Gateway =:= name(G), From =:= name(A), Next =:= name(B)]),
    ?assert(Passed >= Sent),
    ?assert(Undelivered >= 1),
    ?assertMatch([#{why := ~"no_name"}],
                 [Row || #{at := At, whom := ~"nobody"} = Row <- Failures, At =:= name(G)]).

%% ---------------------------------------------------------------- what goes wrong

%% One node dies: the other one is recorded to the end, and the files of both are read.
node_dies(_) ->
    with(3, fun(Fleet, [C, A, B]) ->
        Dir = folder(Fleet, C, "dies"),
        %% More than the driver's buffer holds.
        {2000, #{nodes := [EntryA, EntryB]}} =
            record(Fleet, C, [A, B], Dir, #{}, {kill, B, A, B, 2000}),
        ?assertMatch(#{state := recorded, ended := ~"stopped", error := null}, EntryA),
        ?assertMatch(#{state := failed, error := <<"the node died", _/binary>>}, EntryB),
        #{nodes := Nodes} = report(Fleet, C, Dir),
        [#{here := true, aligned := true}] = [N || #{node := Node} = N <- Nodes, Node =:= name(A)],
        [#{here := true, drift_ppm := null, problems := [_ | _]}] =
            [N || #{node := Node} = N <- Nodes, Node =:= name(B)]
    end).

%% The others wait for a node that hangs no longer than for a connection.
node_hangs(_) ->
    with(3, fun(Fleet, [C, A, B]) ->
        ok = sderl_fleet:suspend(Fleet, B),
        Dir = folder(Fleet, C, "hangs"),
        {ok, #{nodes := Entries}} = recorded(Fleet, C, [A, B], Dir),
        ?assertMatch([#{state := recorded},
                      #{state := failed, error := <<"cannot connect", _/binary>>}], Entries),
        ok = sderl_fleet:resume(Fleet, B)
    end).

%% Fetched in pieces, with breaks: no piece comes twice, and in the end the files are the same.
fetched(_) ->
    with(3, fun(Fleet, [C, A, B]) ->
        Dir = folder(Fleet, C, "here"),
        There = folder(Fleet, C, "there"),
        {2000, _} = record(Fleet, C, [A, B], Dir, #{node_dir => There}, {ping_pong, A, B, 2000}),
        {error, {nothing_here, _}} =
            call(Fleet, C, sderl_prof_cluster_report, make, [Dir, #{}]),
        Options = #{piece => 4096, wait_ms => ?WAIT_MS},
        ok = call(Fleet, C, ?P, fetch_part, [Dir, 40_000, Options]),
        {error, {nothing_here, _}} =
            call(Fleet, C, sderl_prof_cluster_report, make, [Dir, #{}]),
        {ok, Results} = call(Fleet, C, sderl_prof_fetch, fetch, [Dir, Options]),
        Came = [{Came, Bytes}
                || {_, {ok, #{bytes := Bytes, fetched := Came, shared := false}}} <- Results],
        %% The other node may have sent nothing yet.
        ?assertMatch({[_, _], true}, {Came, lists:any(fun({New, All}) -> New < All end, Came)}),
        same(Fleet, C, [{filename:join(Dir, Node), filename:join(There, Node)}
                        || {Node, _} <- Results]),
        %% The first fetch finds nothing new and removes the files; the second one finds none.
        {ok, Again} = call(Fleet, C, sderl_prof_fetch, fetch, [Dir, Options#{remove => true}]),
        ?assertMatch([{_, {ok, #{fetched := 0}}}, {_, {ok, #{fetched := 0}}}], Again),
        ?assertEqual([], call(Fleet, C, filelib, wildcard, [There ++ "/*/events.*.trace"])),
        {ok, Gone} = call(Fleet, C, sderl_prof_fetch, fetch, [Dir, Options]),
        [?assertMatch({error, _}, Result) || {_, Result} <- Gone],
        #{nodes := [#{here := true}, #{here := true}], pairs := Pairs} = report(Fleet, C, Dir),
        ?assertMatch([#{count := N}, #{count := M} | _] when min(N, M) >= 1800, Pairs)
    end).

same(Fleet, C, Folders) ->
    [begin
         {ok, Names} = call(Fleet, C, file, list_dir, [Folder]),
         Parts = [Name || Name <- Names, is_part(Name)],
         ?assertMatch([_, _ | _], Parts),
         [?assertEqual({Name, call(Fleet, C, file, read_file, [filename:join(Other, Name)])},
                       {Name, call(Fleet, C, file, read_file, [filename:join(Folder, Name)])})
          || Name <- Parts]
     end || {Folder, Other} <- Folders].

is_part("recording") -> true;
is_part("events." ++ _) -> true;
is_part(_) -> false.

%% While a node records, nothing is fetched of it, and nothing is removed there.
still_recorded(_) ->
    with(2, fun(Fleet, [C, A]) ->
        Dir = folder(Fleet, C, "records"),
        There = folder(Fleet, C, "written"),
        Options = #{wait_ms => ?WAIT_MS, remove => true},
        {Fetched, #{nodes := [#{state := recorded}]}} =
            record(Fleet, C, [A], Dir, #{node_dir => There}, {fetch, Dir, Options}),
        ?assertMatch({ok, [{_, {error, still_recorded}}]}, Fetched),
        {ok, [{_, {ok, #{fetched := Came}}}]} =
            call(Fleet, C, sderl_prof_fetch, fetch, [Dir, Options]),
        ?assert(Came > 0),
        #{nodes := [#{here := true, problems := []}]} = report(Fleet, C, Dir)
    end).

%% A node with another version of the recorder gets ours, but not while it records.
another_version(_) ->
    with(2, fun(Fleet, [C, A]) ->
        Old = sderl_prof_station,
        Md5 = fun(Node) -> call(Fleet, Node, Old, module_info, [md5]) end,
        {ok, Old, Code} = compile:forms([{attribute, 1, module, Old}], [binary]),
        Outdate = fun() ->
            _ = call(Fleet, A, code, purge, [Old]),
            {module, Old} = call(Fleet, A, code, load_binary, [Old, "older", Code])
        end,
        Outdate(),
        ?assertNotEqual(Md5(C), Md5(A)),
        Dir = folder(Fleet, C, "version"),
        {ok, _} = recorded(Fleet, C, [A], Dir),
        ?assertEqual(Md5(C), Md5(A)),
        Outdate(),
        ok = call(Fleet, A, sderl_prof_programs, session, [sderl_recording]),
        {error, Text} = call(Fleet, C, ?P, prepare, [[A], #{dir => folder(Fleet, C, "not")}]),
        ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, "records with another version")})
    end).

%% One node without this project, one that cannot be reached, and one that can:
%% begun from a dashboard, and from the command line.
stock_node(_) ->
    Stock = #{name => s, count => 1, connect_all => true, paths => []},
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => n, count => 2}, Stock]}),
    try
        [C, A, S] = [N || Family <- ["n1", "n2", "s1"], N <- sderl_fleet:nodes(Fleet),
                          string:prefix(atom_to_list(N), Family) =/= nomatch],
        [_, Host] = string:split(atom_to_list(C), "@"),
        Nobody = list_to_atom("nobody@" ++ Host),
        ok = sderl_fleet:call(Fleet, C, sderl_prof_live_steps, play,
                              [A, S, folder(Fleet, C, "live")], 480_000),
        Dir = folder(Fleet, C, "stock"),
        {ok, #{nodes := Entries}} = recorded(Fleet, C, [A, S, Nobody], Dir),
        ?assertMatch([#{state := recorded}, #{state := recorded},
                      #{state := failed, error := <<"cannot connect", _/binary>>}], Entries),
        #{nodes := [#{here := true}, #{here := true}, #{here := false}],
          cluster := #{problems := [_]}} = report(Fleet, C, Dir),
        %% No trace session is left there.
        ?assertEqual(false, lists:keymember(sderl_recording, 1,
                                            call(Fleet, S, trace, session_info, [all])))
    after
        ok = sderl_fleet:stop(Fleet)
    end.

recorded(Fleet, C, Nodes, Dir) ->
    case record(Fleet, C, Nodes, Dir, #{}, nothing) of
        {ok, Index} -> {ok, Index};
        Other -> Other
    end.

refused(_) ->
    with(2, fun(Fleet, [C, A]) ->
        Dir = folder(Fleet, C, "refused"),
        Prepare = fun(Nodes, Options) ->
            call(Fleet, C, ?P, prepare, [Nodes, Options])
        end,
        [begin
             {error, Text} = Prepare(Nodes, maps:merge(#{dir => Dir}, Options)),
             ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Says)})
         end
         || {Nodes, Options, Says} <- [
                {[], #{}, "at least one node"},
                {[A, A], #{}, "is named twice"},
                {[nohost], #{}, "no name of a node"},
                {[A], #{what => wat}, "wat cannot be recorded"},
                {[A], #{who => [no_such_name]}, "no process no_such_name"},
                {[A], #{node_dir => "/proc/nothing/here"}, "cannot write to the folder"}
            ]],
        %% The folder is not left behind.
        ?assertEqual({error, enoent}, call(Fleet, C, file, list_dir, [Dir])),
        %% The node has another cookie.
        true = call(Fleet, C, erlang, set_cookie, [A, another]),
        true = call(Fleet, C, erlang, disconnect_node, [A]),
        {error, Text} = Prepare([A], #{dir => Dir}),
        ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, "is the cookie its own")}),
        true = call(Fleet, C, erlang, set_cookie, [A, call(Fleet, A, erlang, get_cookie, [])]),
        %% The folder has a recording already.
        {ok, _} = recorded(Fleet, C, [A], Dir),
        {error, Twice} = Prepare([A], #{dir => Dir}),
        ?assertNotEqual({Twice, nomatch}, {Twice, string:find(Twice, "not empty")}),
        disk_full(Fleet, C, A),
        %% The node makes more events than allowed.
        ok = call(Fleet, A, sderl_prof_programs, churn, [1]),
        {error, Busy} = Prepare([A], #{dir => folder(Fleet, C, "busy"), max_events_s => 1,
                                       what => messages}),
        ?assertNotEqual({Busy, nomatch}, {Busy, string:find(Busy, "more than the 1 events")})
    end).

%% A file that accepts no bytes stands for a full disk; with room, fetching goes on.
disk_full(Fleet, C, A) ->
    Dir = folder(Fleet, C, "full"),
    {ok, _} = record(Fleet, C, [A], Dir, #{node_dir => folder(Fleet, C, "has")}, nothing),
    Part = filename:join([Dir, atom_to_list(A), "events.0.trace.part"]),
    ok = call(Fleet, C, filelib, ensure_dir, [Part]),
    ok = call(Fleet, C, file, make_symlink, ["/dev/full", Part]),
    {ok, [{_, {error, {here, _, enospc} = Why}}]} =
        call(Fleet, C, sderl_prof_fetch, fetch, [Dir, #{}]),
    Text = unicode:characters_to_list(sderl_prof_fetch:format_error(Why)),
    ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, "another fetch goes on")}),
    ok = call(Fleet, C, file, delete, [Part]),
    {ok, [{_, {ok, #{fetched := Came}}}]} = call(Fleet, C, sderl_prof_fetch, fetch, [Dir, #{}]),
    ?assert(Came > 0).

%% ---------------------------------------------------------------- what cases share

with(Count, Fun) -> with(Count, [], Fun).

with(Count, Apps, Fun) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => n, count => Count, apps => Apps}]}),
    try
        Fun(Fleet, sderl_fleet:nodes(Fleet))
    after
        ok = sderl_fleet:stop(Fleet)
    end.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?WAIT_MS).

record(Fleet, C, Nodes, Dir, Options, Program) ->
    All = maps:merge(#{what => messages, seconds => 600, dir => Dir}, Options),
    call(Fleet, C, ?P, record, [Nodes, All, Program]).

report(Fleet, C, Dir) ->
    {ok, Report} = call(Fleet, C, sderl_prof_cluster_report, make, [Dir, #{top => 50}]),
    _ = json:encode(Report),
    Report.

folder(Fleet, Node, Name) ->
    {ok, Home} = call(Fleet, Node, file, get_cwd, []),
    filename:join([Home, "prof_cluster", Name]).

name(Node) -> atom_to_binary(Node).

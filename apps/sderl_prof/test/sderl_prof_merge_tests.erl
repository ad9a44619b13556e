%% SPDX-License-Identifier: Apache-2.0
%% Several nodes as one book: a client and a server on two nodes at known times, with clocks that
%% are wrong, and with parts missing.
-module(sderl_prof_merge_tests).

-include_lib("eunit/include/eunit.hrl").

-import(sderl_prof_files, [with_dir/1]).
-import(sderl_prof_two_nodes, [cluster/2, node_of/3, client/1, server/1]).

-define(A, ~"a@h").
-define(B, ~"b@h").
-define(ERROR, 30).
-define(WRONG, 20).

%% ---------------------------------------------------------------- the path across nodes

%% The client runs 40, its question is 10 under way, the server waits 5 for a scheduler and runs 25,
%% the answer is 10 under way, and the client waits 10: a round is 100.
path_test() ->
    with_dir(fun(Dir) ->
        Rounds = 50,
        ok = cluster(Dir, [{?A, client(Rounds)}, {?B, server(Rounds)}]),
        {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, Book} = sderl_prof_book:open(Out),
        #{nodes := [#{node := ?A, times := Ta}, #{node := ?B, times := Tb}], kinds := Kinds,
          processes := Processes, segments := Segments, to := To, from := From} =
            sderl_prof_insight:path(Book, #{segments => 1000}),
        %% The messages show the error of b's clock, of which only a bound was known: 30.
        ?assertEqual({25 * Rounds, 5 * Rounds},
                     {map_get(running, Tb), map_get(runnable, Tb)}),
        ?assertEqual({40 * Rounds + 2, 10 * Rounds},
                     {map_get(running, Ta), map_get(runnable, Ta)}),
        ?assertMatch(#{between := Between, message := 0} when Between =:= 20 * Rounds, Kinds),
        ?assertEqual(To - From, lists:sum(maps:values(Kinds))),
        ?assertMatch([_, _], Processes),
        ?assertEqual([~"client at a@h", ~"server at b@h"],
                     lists:sort([P || #{process := P} <- Processes])),
        %% Each message of the path comes from the other process.
        Senders = lists:usort([{P, S}
                               || #{kind := between, process := P, sender := S} <- Segments]),
        ?assertEqual([{~"client at a@h", ~"server at b@h"}, {~"server at b@h", ~"client at a@h"}],
                     Senders),
        ok = sderl_prof_book:close(Book)
    end).

%% The paths of the report and of the pages end with the same process: with the most messages sent
%% to it, received or not.
leads_to_test() ->
    with_dir(fun(Dir) ->
        ok = cluster(Dir, [{?A, client(20)}, {?B, server(30)}]),
        {ok, #{critical_path := #{leads_to := Told}}} = sderl_prof_cluster_report:make(Dir, #{}),
        ?assertEqual(~"client at a@h", Told),
        {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, View} = sderl_prof_view:open(Out, fun(_, _) -> ok end),
        {ok, #{leads_to := Process}} = sderl_prof_index:open(Out),
        ok = sderl_prof_view:close(View),
        {ok, Book} = sderl_prof_book:open(Out),
        ?assertEqual(~"client at a@h", sderl_prof_book:label(Process, Book)),
        %% The version of a module is kept for each node.
        #{info := #{code := [{~"two_nodes", ~"a@h"}, {~"two_nodes", ~"b@h"}]}} =
            sderl_prof_book:meta(Book),
        #{leads_to := ~"client at a@h", steps := Steps} = sderl_prof_insight:led_path(Book, #{}),
        ?assert(Steps > 0),
        %% If that process does not run in the part, or does not exist, the path ends with what ran
        %% last there, as without a process.
        Nobody = 1_000_000,
        {none, Path} = sderl_prof_insight:led(Nobody, Book, #{}),
        ?assertEqual(sderl_prof_insight:path(Book, #{}), Path),
        {Process, #{steps := Steps}} = sderl_prof_insight:led(Process, Book, #{}),
        ok = sderl_prof_book:close(Book)
    end).

%% Clocks are corrected by the messages: none arrives before it was sent.
clocks_test() ->
    with_dir(fun(Dir) ->
        ok = cluster(Dir, [{?A, client(20)}, {?B, server(20)}]),
        {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, Book} = sderl_prof_book:open(Out),
        [#{shift := A, error := ErrorA}, #{shift := B, error := ErrorB}] =
            sderl_prof_book:nodes(Book),
        ?assertEqual(?WRONG, B - A),
        [?assert(E >= ?ERROR) || E <- [ErrorA, ErrorB]],
        #{traffic := Traffic} = sderl_prof_book:meta(Book),
        [?assertMatch(#{joined := 20, sent := 20, received := 20, least_ns := Least} when Least > 0,
                      Link) || Link <- Traffic],
        ?assertEqual([{?A, ?B}, {?B, ?A}], [{F, T} || #{from := F, to := T} <- Traffic]),
        ok = sderl_prof_book:close(Book)
    end).

%% A send that is recorded after its message's arrival: the path still goes to the sender.
late_test() ->
    with_dir(fun(Dir) ->
        Late = [case Event of
                    {trace_ts, P, send, M, To, T} -> {trace_ts, P, send, M, To, T + 70};
                    {trace_ts, P, out, F, T} -> {trace_ts, P, out, F, T + 71};
                    {profile, P, inactive, F, T} -> {profile, P, inactive, F, T + 71};
                    _ -> Event
                end || Event <- server(1)],
        ok = cluster(Dir, [{?A, client(1)}, {?B, Late}]),
        {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, Book} = sderl_prof_book:open(Out),
        {ok, Client} = sderl_prof_insight:find_process(~"client at a@h", Book),
        #{segments := Segments} = sderl_prof_insight:path(Book, #{process => Client}),
        ?assertMatch([_], [S || #{kind := between, sender := ~"server at b@h"} = S <- Segments]),
        ok = sderl_prof_book:close(Book)
    end).

%% ---------------------------------------------------------------- pages

pages_test() ->
    with_dir(fun(Dir) ->
        ok = cluster(Dir, [{?A, client(20)}, {?B, server(20)}]),
        {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, View} = sderl_prof_view:open(Out, fun(_, _) -> ok end),
        #{nodes := [#{node := ?A, number := 1, first := 1, last := Last, online := 2},
                    #{node := ?B, number := 2, first := Next}], node := ~"2 nodes",
          duration := Duration, online := 4, has_path := true} = About =
            sderl_prof_view:about(View),
        ?assertEqual(Last + 1, Next),
        {ok, #{processes := Rows}} = sderl_prof_view:processes(
            #{sort => run, search => ~"", limit => 10, numbers => [], kind => process}, View),
        Of = #{Name => P || #{name := Name, process := P} <- Rows},
        #{~"client at a@h" := Client, ~"server at b@h" := Server} = Of,
        %% A lane for each process, and one for each node.
        {ok, #{lanes := [_, _], nodes := [Na, Nb], running := All} = Window} =
            sderl_prof_view:window(#{from => 0, to => Duration, columns => 1,
                                     processes => [Client, Server]}, View),
        [Sum] = All,
        #{node := 1, running := [RunA]} = Na,
        #{node := 2, running := [RunB]} = Nb,
        ?assert(abs(Sum - RunA - RunB) < 0.01),
        ?assert(RunA > RunB),
        %% Each message has both ends, and is received after it was sent.
        {ok, #{arrows := Arrows, count := 40, elsewhere := 0}} =
            sderl_prof_view:arrows(#{from => 0, to => Duration, processes => [Client, Server],
                                     process => none, limit => 100}, View),
        [?assert(is_integer(Received) andalso Received > Sent)
         || [Sent, Received, _, _, _] <- Arrows],
        {ok, #{sent := [#{from := 1, to := 2, count := 20}, #{from := 2, to := 1, count := 20}],
               whole := [_, _]} = Traffic} =
            sderl_prof_view:traffic(#{from => 0, to => Duration}, View),
        _ = json:encode([About, Window, Traffic]),
        ok = sderl_prof_view:close(View)
    end).

%% The book is made once, and again when the recording of another node has been fetched.
again_test() ->
    with_dir(fun(Dir) ->
        ok = cluster(Dir, [{?A, client(3)}, {?B, server(3)}]),
        ok = file:delete(filename:join([Dir, "b@h", "recording"])),
        {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, One} = sderl_prof_book:open(Out),
        ?assertMatch([#{node := ?A}], sderl_prof_book:nodes(One)),
        #{problems := Problems} = sderl_prof_book:meta(One),
        ?assertMatch([<<"b@h is left out: ", _/binary>>], Problems),
        ok = sderl_prof_book:close(One),
        ok = node_of(Dir, ?B, server(3)),
        {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, Two} = sderl_prof_book:open(Out),
        ?assertMatch([_, _], sderl_prof_book:nodes(Two)),
        ok = sderl_prof_book:close(Two)
    end).

%% Without a clock there is no common time.
no_clocks_test() ->
    with_dir(fun(Dir) ->
        ok = cluster(Dir, [{?A, client(1)}]),
        {ok, #{nodes := [Entry]} = Index} = sderl_prof_cluster_index:read(Dir),
        ok = sderl_prof_cluster_index:write(
            Dir, sderl_prof_cluster_index:put_node(Entry#{clock := null}, Index)),
        {error, Why} = sderl_prof_cluster_book:open(Dir, #{}),
        ?assertMatch({_, [_ | _]}, {Why, string:find(sderl_prof_cluster_book:format_error(Why),
                                                     "as the folder of that node")})
    end).

%% With many blocks, no event is lost and all are in order.
blocks_test_() ->
    {timeout, 300, fun() ->
        with_dir(fun(Dir) ->
            {Rounds, Block} = case os:getenv("SDERL_LONG") of
                false -> {300, 500};
                %% Each node has several.
                _ -> {30_000, 65_536}
            end,
            ok = cluster(Dir, [{?A, client(Rounds)}, {?B, server(Rounds)}]),
            {ok, Out} = sderl_prof_cluster_book:open(Dir, #{block => Block}),
            {ok, Book} = sderl_prof_book:open(Out),
            ?assert(length(sderl_prof_book:table(Book)) > 3),
            #{events := Events} = sderl_prof_book:meta(Book),
            ?assertEqual(5 + 12 * Rounds, Events),
            {Counted, _} = sderl_prof_book:fold(Book, #{}, fun(T, _, _, _, _, _, {N, Last}) ->
                ?assert(T >= Last),
                {N + 1, T}
            end, {0, -1 bsl 62}),
            ?assertEqual(Events, Counted),
            #{kinds := #{between := Between}} = sderl_prof_insight:path(Book, #{}),
            ?assertEqual(20 * Rounds, Between),
            ok = sderl_prof_book:close(Book)
        end)
    end}.

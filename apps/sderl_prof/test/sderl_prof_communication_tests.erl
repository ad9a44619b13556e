%% SPDX-License-Identifier: Apache-2.0
%% The graph of communication, compared with a slow reference and for recordings of known messages;
%% the report of a page, compared with the report from all events.
-module(sderl_prof_communication_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_prof_files, [with_dir/1, pid/2]).

properties_test_() ->
    [
        sderl_prop:eunit("the greatest edges with room for their ends", 300, fun prop_graph/0),
        sderl_prop:eunit("sums of ends are those of their edges", 200, fun prop_sums/0),
        sderl_prop:eunit("pairs together have all messages", 200, fun prop_together/0)
    ].

%% ---------------------------------------------------------------- the graph

pairs() ->
    ?LET(Rows, list({{range(1, 7), range(1, 7)}, {range(1, 5), range(0, 40)}}),
         maps:from_list(Rows)).

request() ->
    ?LET({Sort, Least, Mean, Around, Edges, Ends},
         {oneof([count, bytes]), range(0, 4), range(0, 12), oneof([none, none, range(1, 8)]),
          range(0, 12), range(0, 8)},
         #{sort => Sort, least => Least, mean => Mean, around => Around, edges => Edges,
           ends => Ends}).

prop_graph() ->
    ?FORALL({Pairs, #{around := Around, edges := MostEdges, ends := MostEnds} = Request},
            {pairs(), request()}, begin
        #{edges := Edges, ends := Ends, passed := Passed, all := All} =
            sderl_prof_communication:graph(Pairs, Request),
        Slow = slow_passed(Pairs, Request),
        Shown = [{{A, B}, {N, Bytes}} || {A, B, N, Bytes} <- Edges],
        conjunction([
            {only_what_passes, Shown -- maps:to_list(Slow) =:= []},
            {once, length(lists:usort(Shown)) =:= length(Shown)},
            {bounded, length(Edges) =< MostEdges andalso length(Ends) =< MostEnds},
            {ends, equals(lists:sort([End || {End, _} <- Ends]), slow_ends(Shown))},
            {passed, equals(amount(Slow), Passed)},
            {all, equals(amount(Pairs), All)},
            %% A pair left out is no greater than the last one shown, or its processes had no room.
            {greatest, lists:all(fun(Pair) -> is_no_greater(Pair, Shown, Request) end,
                                 maps:to_list(Slow) -- Shown)},
            {none_is_around, Around =:= none orelse
                lists:all(fun({{A, B}, _}) -> is_near(A, Around, Pairs, Request)
                                               andalso is_near(B, Around, Pairs, Request) end,
                          Shown)}
        ])
    end).

slow_passed(Pairs, #{around := Around} = Request) ->
    #{Pair => Row || {A, B} = Pair := Row <- Pairs, passes(Row, Request),
                     is_near(A, Around, Pairs, Request), is_near(B, Around, Pairs, Request)}.

passes({N, Bytes}, #{least := Least, mean := Mean}) -> N >= Least andalso Bytes / N >= Mean.

is_near(_, none, _, _) -> true;
is_near(P, Around, Pairs, Request) ->
    lists:any(fun({{A, B}, Row}) ->
        passes(Row, Request) andalso
            ({A, B} =:= {P, Around} orelse {A, B} =:= {Around, P}
             orelse P =:= Around andalso (A =:= P orelse B =:= P))
    end, maps:to_list(Pairs)).

slow_ends(Shown) -> lists:usort(lists:append([[A, B] || {{A, B}, _} <- Shown])).

amount(Pairs) ->
    Rows = maps:values(Pairs),
    #{ends => length(slow_ends(maps:to_list(Pairs))), edges => length(Rows),
      count => lists:sum([N || {N, _} <- Rows]), bytes => lists:sum([B || {_, B} <- Rows])}.

is_no_greater({{A, B}, Row}, Shown, #{edges := Most, ends := MostEnds, around := Around} = R) ->
    Behind = fun({{C, D}, Other}) ->
        rank({C, D}, Other, Around, R) =< rank({A, B}, Row, Around, R)
    end,
    Before = lists:takewhile(Behind, Shown),
    Room = length(lists:usort([A, B | slow_ends(Before)])) =< MostEnds,
    length(Before) =:= Most orelse not Room.

%% The lowest rank comes first.
rank({A, B}, Row, Around, #{sort := Sort}) ->
    {Around =/= none andalso A =/= Around andalso B =/= Around,
     -element(case Sort of count -> 1; bytes -> 2 end, Row), A, B}.

prop_sums() ->
    ?FORALL(Pairs, pairs(), begin
        #{ends := Ends} = sderl_prof_communication:graph(
            Pairs, #{sort => count, least => 0, mean => 0, around => none, edges => 100,
                     ends => 100}),
        equals(lists:sort(Ends), [{End, slow_sums(End, maps:to_list(Pairs))}
                                  || End <- slow_ends(maps:to_list(Pairs))])
    end).

slow_sums(End, Pairs) ->
    Of = fun(Rows) ->
        {lists:sum([N || {N, _} <- Rows]), lists:sum([B || {_, B} <- Rows])}
    end,
    {Sent, SentBytes} = Of([Row || {{A, B}, Row} <- Pairs, A =:= End, B =/= End]),
    {Received, ReceivedBytes} = Of([Row || {{A, B}, Row} <- Pairs, B =:= End, A =/= End]),
    {Within, WithinBytes} = Of([Row || {{A, B}, Row} <- Pairs, A =:= End, B =:= End]),
    #{sent => Sent, sent_bytes => SentBytes, received => Received,
      received_bytes => ReceivedBytes, within => Within, within_bytes => WithinBytes}.

prop_together() ->
    ?FORALL(Pairs, pairs(), begin
        Kind = fun(P) -> integer_to_binary(P rem 3) end,
        Together = sderl_prof_communication:together(Kind, Pairs),
        conjunction([{pair, equals(maps:get({Kind(A), Kind(B)}, Together),
                                   slow_together(Kind, {Kind(A), Kind(B)}, Pairs))}
                     || {A, B} := _ <- Pairs]
                    ++ [{sum, equals(amount_of(Pairs), amount_of(Together))}])
    end).

slow_together(Kind, Pair, Pairs) ->
    amount_of(#{Ends => Row || {A, B} = Ends := Row <- Pairs, {Kind(A), Kind(B)} =:= Pair}).

amount_of(Pairs) ->
    {lists:sum([N || _ := {N, _} <- Pairs]), lists:sum([B || _ := {_, B} <- Pairs])}.

%% ---------------------------------------------------------------- recordings

%% A server, three workers that begin in one function and send it 5, 10 and 15 messages, each of
%% which it answers to the first one only; the first one sends itself one.
small() ->
    Server = pid(1, 0),
    Workers = [pid(N, 0) || N <- [2, 3, 4]],
    F = {m, f, 0},
    Spawns = [{trace_ts, Server, spawn, W, {worker, init, [N]}, N}
              || {N, W} <- lists:enumerate(Workers)],
    Sends = lists:append([[{trace_ts, W, send, {ask, W}, Server, 100 * N + K}
                           || K <- lists:seq(1, 5 * N)]
                          || {N, W} <- lists:enumerate(Workers)]),
    [First | _] = Workers,
    [{trace_ts, Server, register, the_server, 0} | Spawns]
        ++ [{trace_ts, Server, in, F, 50}]
        ++ Sends
        ++ [{trace_ts, Server, send, ok, First, 500 + K} || K <- lists:seq(1, 30)]
        ++ [{trace_ts, First, send, self, First, 600}, {trace_ts, Server, out, F, 700},
            {trace_ts, First, in, F, 700}, {trace_ts, First, out, F, 800}].

with_view(Events, Fun) ->
    with_dir(fun(Dir) ->
        ok = sderl_prof_files:recording(Dir, #{items => [~"running", ~"message"]}, Events),
        {ok, Book} = sderl_prof:open(Dir, #{}),
        {ok, View} = sderl_prof_view:open(Book, fun(_, _) -> ok end),
        Result = Fun(View, Book),
        ok = sderl_prof_view:close(View),
        Result
    end).

ask(Changes, View) ->
    sderl_prof_view:communication(
        maps:merge(#{from => 0, to => 1 bsl 50, by => process, sort => count, least => 0,
                     mean => 0, around => ~"", edges => 100, ends => 50}, Changes), View).

edges(#{ends := Ends, edges := Edges}) ->
    Names = #{Key => Name || #{key := Key, name := Name} <- Ends},
    [{map_get(From, Names), map_get(To, Names), N}
     || #{from := From, to := To, count := N} <- Edges].

processes_test() ->
    with_view(small(), fun(View, _) ->
        {ok, #{ends := [#{key := Key, name := ~"the_server", process := P, sent := 30,
                          received := 30, within := 0, processes := 1}
                        | Workers],
               passed := All, all := #{edges := 5, ends := 4, count := 61} = All} = Graph} =
            ask(#{}, View),
        ?assertEqual(Key, integer_to_binary(P)),
        ?assertMatch([#{name := ~"<0.2.0>", entry := ~"worker:init/1", received := 30, within := 1},
                      #{name := ~"<0.4.0>"}, #{name := ~"<0.3.0>"}], Workers),
        ?assertEqual([{~"the_server", ~"<0.2.0>", 30}, {~"<0.4.0>", ~"the_server", 15},
                      {~"<0.3.0>", ~"the_server", 10}, {~"<0.2.0>", ~"the_server", 5},
                      {~"<0.2.0>", ~"<0.2.0>", 1}], edges(Graph)),
        %% What the filters leave, and what there is no room for.
        {ok, #{passed := #{edges := 3, count := 55}, all := All} = Few} = ask(#{least => 10}, View),
        ?assertEqual([30, 15, 10], [N || {_, _, N} <- edges(Few)]),
        {ok, #{passed := #{edges := 3}, edges := [_]}} = ask(#{least => 10, edges => 1}, View),
        {ok, #{edges := [#{count := 30}, #{count := 5}, #{count := 1}]}} = ask(#{ends => 2}, View),
        {ok, #{passed := #{edges := 0}, edges := [], ends := []}} = ask(#{mean => 10_000}, View),
        %% A part of the time.
        {ok, #{all := #{count := 30}} = Part} = ask(#{from => 500, to => 590}, View),
        ?assertEqual([{~"the_server", ~"<0.2.0>", 30}], edges(Part)),
        {error, {range, 9, 9}} = ask(#{from => 9, to => 9}, View)
    end).

around_test() ->
    with_view(small(), fun(View, _) ->
        {ok, #{ends := Ends}} = ask(#{}, View),
        Key = fun(Of) ->
            [Key] = [K || #{key := K, name := Name} <- Ends, Name =:= Of],
            Key
        end,
        {ok, Near} = ask(#{around => Key(~"<0.4.0>")}, View),
        ?assertEqual([{~"<0.4.0>", ~"the_server", 15}], edges(Near)),
        {ok, First} = ask(#{around => Key(~"<0.2.0>")}, View),
        ?assertEqual([30, 5, 1], [N || {_, _, N} <- edges(First)]),
        [{ok, #{edges := [], passed := #{edges := 0}, all := #{edges := 5}}} =
             ask(#{around => Nobody}, View)
         || Nobody <- [~"99", ~"nobody", ~"-1", ~"1x", <<255>>]]
    end).

kinds_test() ->
    with_view(small(), fun(View, _) ->
        {ok, #{ends := [#{key := ~"worker:init/1", processes := 3, process := 0, within := 1},
                        #{key := ~"the_server", process := Server}]} = Graph} =
            ask(#{by => kind}, View),
        ?assert(Server > 0),
        ?assertEqual([{~"the_server", ~"worker:init/1", 30}, {~"worker:init/1", ~"the_server", 30},
                      {~"worker:init/1", ~"worker:init/1", 1}], edges(Graph)),
        {ok, #{edges := [_, _, _]}} = ask(#{by => kind, around => ~"worker:init/1"}, View),
        {ok, #{edges := []}} = ask(#{by => kind, around => ~"worker:init/7"}, View),
        {ok, #{ends := [#{processes := 4}], edges := [#{count := 61}]}} = ask(#{by => node}, View)
    end).

nodes_test() ->
    with_dir(fun(Dir) ->
        ok = sderl_prof_two_nodes:example(Dir, 50),
        {ok, Book} = sderl_prof_cluster_book:open(Dir, #{}),
        {ok, View} = sderl_prof_view:open(Book, fun(_, _) -> ok end),
        {ok, #{ends := Ends} = Nodes} = ask(#{by => node}, View),
        ?assertEqual([{~"a@h", ~"b@h", 50}, {~"b@h", ~"a@h", 50}], edges(Nodes)),
        ?assertEqual([1, 2], lists:sort([N || #{node := N} <- Ends])),
        {ok, Processes} = ask(#{}, View),
        ?assertEqual([{~"client at a@h", ~"server at b@h", 50},
                      {~"server at b@h", ~"client at a@h", 50}], lists:sort(edges(Processes))),
        {ok, Kinds} = ask(#{by => kind}, View),
        ?assertEqual([{~"client", ~"server", 50}, {~"server", ~"client", 50}], edges(Kinds)),
        ok = sderl_prof_view:close(View)
    end).

%% ---------------------------------------------------------------- the report

%% The report of a page equals the report from all events.
report_test() ->
    with_view(small(), fun(View, Book) ->
        {ok, #{totals := Totals, top := Top, trace := #{processes := Count}}} =
            sderl_prof_report:make(Book, #{top => 2}),
        #{totals := Totals, top := Shown, processes := Count, concurrency := Points,
          width := Width, awake_ns := Awake} =
            sderl_prof_view:report(#{top => 2, parts => 10}, View),
        ?assertEqual(#{}, Awake),
        ?assertEqual(lists:sort(sderl_prof_report:metrics()), lists:sort(maps:keys(Shown))),
        %% (Processes with equal values are in no order.)
        Sorted = fun(Tops) -> #{Metric => lists:sort(Rows) || Metric := Rows <- Tops} end,
        ?assertEqual(Sorted(Top), Sorted(Shown)),
        ?assertMatch(#{received := [], run := [#{process := ~"the_server", run := 650, sent := 30},
                                               #{process := ~"<0.2.0>", run := 100}]}, Shown),
        %% The curve sums up to the running time.
        Run = lists:sum([Mean * Width || #{running := Mean} <- Points]),
        ?assert(abs(Run - map_get(run, Totals)) =< length(Points) * Width / 1000)
    end).

%% Of equal processes the first one is listed; those with 0 are not.
report_of_nothing_test() ->
    with_view([{trace_ts, pid(1, 0), register, it, 0}], fun(View, _) ->
        #{processes := _, top := Top, concurrency := [_ | _]} =
            sderl_prof_view:report(#{top => 5, parts => 3}, View),
        ?assertEqual(#{Metric => [] || Metric <- sderl_prof_leaders:metrics()}, Top)
    end).

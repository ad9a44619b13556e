%% SPDX-License-Identifier: Apache-2.0
%% The evidence of findings, compared with slow references, and the findings of programs for which
%% they are known.
-module(sderl_prof_findings_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

-define(S, 1_000_000_000).
-define(MS, 1_000_000).

properties_test_() ->
    [
        sderl_prop:eunit("what could run side by side", 150, fun() -> prop_together(recorded) end),
        sderl_prop:eunit("and by messages alone", 150, fun() -> prop_together(messages) end),
        sderl_prop:eunit("who waits for whose answer", 150, fun prop_asked/0),
        sderl_prop:eunit("messages on their way", 200, fun prop_backlog/0)
    ].

%% ---------------------------------------------------------------- what could run

evidence(Events, End) -> evidence(Events, End, 2).

evidence(Events, End, Schedulers) -> evidence(Events, End, Schedulers, recorded).

evidence(Events, End, Schedulers, Mode) ->
    New = sderl_prof_evidence:new(#{from => 0, mode => Mode, schedulers => Schedulers}),
    sderl_prof_evidence:finish(End, lists:foldl(fun({T, K, P, A}, E) ->
        sderl_prof_evidence:step(T, K, 0, P, A, 0, E)
    end, New, Events)).

%% Each nanosecond, one by one.
%% By messages alone it shows only afterwards that a process did not wait, but was interrupted.
prop_together(Mode) ->
    ?FORALL(Moves, short(), begin
        {All, End} = sderl_prof_machine:events(
            [Move || {_, _, What, _} = Move <- Moves,
                     Mode =:= recorded orelse What =/= preempt andalso What =/= timer]),
        Events = [Event || {_, K, _, _} = Event <- All,
                           Mode =:= recorded orelse K =/= ?ACTIVE andalso K =/= ?INACTIVE],
        #{parallel := #{busy := Busy, idle := Idle, alone := Alone, by := By}} =
            evidence(Events, End, 2, Mode),
        Able = able(Events, End, Mode),
        Slow = [[P || {P, A, B} <- Able, T >= A, T < B] || T <- lists:seq(0, End - 1)],
        Busy =:= length([1 || [_ | _] <- Slow]) andalso
            Idle =:= length([1 || [] <- Slow]) andalso
            Alone =:= length([1 || [_] <- Slow]) andalso
            By =:= maps:map(fun(_, Ps) -> length(Ps) end,
                            maps:groups_from_list(fun(P) -> P end, [P || [P] <- Slow]))
    end).

short() -> ?LET(Moves, sderl_prof_machine:moves(), [{min(After, 3), Who, What, To}
                                                    || {After, Who, What, To} <- Moves]).

intervals(Events, End, Mode) ->
    Sink = fun(What, P, A, B, _, _, Acc) -> [{What, P, A, B} | Acc] end,
    {_, Intervals} = sderl_prof_activity:finish(End, lists:foldl(fun({T, K, P, A}, Acc) ->
        sderl_prof_activity:step(T, K, 0, P, A, 0, Acc)
    end, sderl_prof_activity:new(Mode, Sink, []), Events)),
    Intervals.

able(Events, End, Mode) ->
    [{P, A, B} || {What, P, A, B} <- intervals(Events, End, Mode),
                  What =:= running orelse What =:= runnable].

%% A slow reference: for each question, all events after it.
prop_asked() ->
    ?FORALL(Moves, sderl_prof_machine:moves(), begin
        {Events, End} = sderl_prof_machine:events(Moves),
        #{parallel := #{for := For}} = evidence(Events, End),
        Able = able(Events, End, recorded),
        Waits = [{P, A, B} || {waiting, P, A, B} <- intervals(Events, End, recorded)],
        Slow = lists:append([slow_asked(P, After, none, Waits, Able)
                             || {P, After} <- [{P, Events} || P <- lists:seq(1, 50)]]),
        Expected = lists:sort(maps:to_list(maps:groups_from_list(
            fun({Pair, _}) -> Pair end, fun({_, Ns}) -> Ns end, Slow))),
        equals([{Pair, length(Ns), lists:sum(Ns)} || {Pair, Ns} <- Expected], For)
    end).

%% One process: whom it has asked since when, and the answers that it gets.
slow_asked(P, [{_, ?EXIT, P, _} | Events], _, Waits, Able) ->
    slow_asked(P, Events, none, Waits, Able);
slow_asked(P, [{T, ?SEND, P, To} | Events], Asked, Waits, Able) when To =/= P ->
    case Asked of
        {To, _} -> slow_asked(P, Events, Asked, Waits, Able);
        _ -> slow_asked(P, Events, {To, T}, Waits, Able)
    end;
slow_asked(P, [{T, ?SEND, X, P} | Events], {X, Since}, Waits, Able) ->
    Begun = [A || {Q, A, _} <- Waits, Q =:= P, A >= Since, A =< T],
    [{{X, P}, lists:sum([overlap(lists:min(Begun), T, A, B) || {Q, A, B} <- Able, Q =:= X])}
     || Begun =/= []] ++ slow_asked(P, Events, none, Waits, Able);
slow_asked(P, [_ | Events], Asked, Waits, Able) ->
    slow_asked(P, Events, Asked, Waits, Able);
slow_asked(_, [], _, _, _) ->
    [].

overlap(A, B, C, D) -> max(0, min(B, D) - max(A, C)).

prop_backlog() ->
    ?FORALL(Events, list({oneof([send, send, 'receive', 'receive', exit]), range(1, 3)}), begin
        Numbered = lists:enumerate(Events),
        B = lists:foldl(fun
            ({T, {send, P}}, Acc) -> sderl_prof_backlog:send(T, P, Acc);
            ({T, {'receive', P}}, Acc) -> sderl_prof_backlog:'receive'(T, P, Acc);
            ({_, {exit, P}}, Acc) -> sderl_prof_backlog:exited(P, Acc)
        end, sderl_prof_backlog:new(2), Numbered),
        Rows = sderl_prof_backlog:result(B),
        Peaks = [{P, Peak} || #{process := P, peak := Peak} <- Rows],
        Slow = [{P, lists:max([0 | slow_backlog(P, Events, 0, [], false)])} || P <- [1, 2, 3]],
        lists:sort(Peaks) =:= [Row || {_, Peak} = Row <- Slow, Peak >= 2] andalso
            Rows =:= lists:sort(fun(#{peak := X}, #{peak := Y}) -> X >= Y end, Rows)
    end).

%% The backlogs that a receive follows, or an end after a receive.
slow_backlog(P, [{send, P} | Events], N, Now, Got) ->
    slow_backlog(P, Events, N + 1, [N + 1 | Now], Got);
slow_backlog(P, [{'receive', P} | Events], 1, Now, _) ->
    Now ++ slow_backlog(P, Events, 0, [], false);
slow_backlog(P, [{'receive', P} | Events], N, Now, _) when N > 1 ->
    slow_backlog(P, Events, N - 1, Now, true);
slow_backlog(P, [{exit, P} | Events], _, Now, true) -> Now ++ slow_backlog(P, Events, 0, [], false);
slow_backlog(P, [{exit, P} | Events], _, _, false) -> slow_backlog(P, Events, 0, [], false);
slow_backlog(P, [_ | Events], N, Now, Got) -> slow_backlog(P, Events, N, Now, Got);
slow_backlog(_, [], _, Now, true) -> Now;
slow_backlog(_, [], _, _, false) -> [].

%% ---------------------------------------------------------------- known programs

found(Events, End, Items) ->
    #{found := Found} = sderl_prof_findings:find(evidence(Events, End), context(Items)),
    Found.

context(Items) ->
    #{items => ['all processes' | Items], runnable => recorded, schedulers => 2,
      label => fun(P) -> <<"p", (integer_to_binary(P))/binary>> end,
      owner => fun(P) -> P - 1 end,
      word => fun(F) -> element(F, {~"m:f/1", ~"ets:insert/2", ~"ets:lookup/2"}) end}.

all() ->
    [running, message, garbage_collection, migration, schedulers, ports, 'calls of ets'].

names(Found) -> [{Kind, P} || #{finding := Kind, process := P} <- Found].

%% Four clients ask one server, which takes 10 ms for each of 100 answers.
bottleneck_test() ->
    Found = found(bottleneck(100), ?S, [running, message]),
    ?assertEqual([{bottleneck, ~"p9"}, {low_parallelism, ~"p9"}], lists:sort(names(Found))),
    [#{weight := Weight, text := Text, remedy := Remedy, threshold := Threshold,
       numbers := [9 | Waiters], ranges := [],
       evidence := #{waiters := 4, times := Times, at_a_time := AtATime}}] =
        [F || #{finding := bottleneck} = F <- Found],
    ?assert(abs(Weight - 1.0) < 0.01),
    ?assertEqual([1, 2, 3, 4], lists:sort(Waiters)),
    ?assert(Times >= 96),
    %% A client that got its answer asks again when the server works for the next one already.
    ?assert(abs(AtATime - 4.0) < 0.1),
    ?assertMatch(<<"p9 works in ", _/binary>>, Text),
    ?assert(byte_size(Remedy) > 20 andalso byte_size(Threshold) > 20),
    [#{evidence := #{holders := [#{process := ~"p9", share := Share, waiting := Waiting} | _],
                     longest := [_ | _]}}] = [F || #{finding := low_parallelism} = F <- Found],
    ?assert(Share > 0.95 andalso abs(Waiting - 4.0) < 0.1).

bottleneck(N) ->
    Clients = [1, 2, 3, 4],
    Begin = [{0, ?ACTIVE, 9, 0}, {0, ?IN, 9, 0}]
        ++ lists:append([[{0, ?IN, C, 0}, {0, ?SEND, C, 9}, {0, ?OUT, C, 0}, {0, ?INACTIVE, C, 0}]
                         || C <- Clients]),
    Begin ++ lists:append([answer(1 + I rem 4, (I + 1) * 10 * ?MS) || I <- lists:seq(0, N - 1)]).

answer(C, T) ->
    [{T, ?SEND, 9, C}, {T + 1000, ?ACTIVE, C, 0}, {T + 2000, ?IN, C, 0}, {T + 3000, ?SEND, C, 9},
     {T + 4000, ?OUT, C, 0}, {T + 4000, ?INACTIVE, C, 0}].

%% No bottleneck: casts have no answer, and a server that waits itself is not the cause.
no_bottleneck_test() ->
    Casts = [Event || {_, K, P, _} = Event <- bottleneck(100), K =/= ?SEND orelse P =/= 9],
    ?assertEqual([], [F || {bottleneck, _} = F <- names(found(Casts, ?S, [running, message]))]),
    Waits = bottleneck(0) ++ [{5 * ?MS, ?OUT, 9, 0}, {5 * ?MS, ?INACTIVE, 9, 0}]
        ++ lists:append([[{900 * ?MS, ?ACTIVE, 9, 0}, {900 * ?MS, ?IN, 9, 0}]
                         | [answer(C, (900 + C) * ?MS) || C <- [1, 2, 3, 4]]]),
    ?assertEqual([], names(found(Waits, ?S, [running, message]))).

%% Of two that ping-pong one runs at a time: each holds the other, and nobody is a bottleneck.
ping_pong_test() ->
    Turn = fun(A, B, T) ->
        [{T, ?IN, A, 0}, {T + 10 * ?MS - 2000, ?SEND, A, B}, {T + 10 * ?MS - 1000, ?ACTIVE, B, 0},
         {T + 10 * ?MS - 1000, ?OUT, A, 0}, {T + 10 * ?MS - 1000, ?INACTIVE, A, 0}]
    end,
    Events = [{0, ?ACTIVE, 1, 0}] ++ lists:append(
        [case N rem 2 of 0 -> Turn(1, 2, N * 10 * ?MS); 1 -> Turn(2, 1, N * 10 * ?MS) end
         || N <- lists:seq(0, 99)]),
    [#{finding := low_parallelism, weight := Weight, numbers := Numbers,
       ranges := [#{from := From, to := To} | _],
       evidence := #{holders := [#{share := A}, #{share := B}]}}] =
        found(Events, ?S, [running, message]),
    ?assertEqual([1, 2], lists:sort(Numbers)),
    ?assert(To > From andalso To =< ?S),
    ?assert(Weight > 0.99),
    ?assert(abs(A - 0.5) < 0.01 andalso abs(B - 0.5) < 0.01),
    %% On one scheduler it is no finding.
    Evidence = evidence(Events, ?S, 1),
    #{found := []} =
        sderl_prof_findings:find(Evidence, (context([running, message]))#{schedulers := 1}).

%% Two stages that work at the same time.
pipeline_test() ->
    Stage = fun(P, Next, From) ->
        [{0, ?ACTIVE, P, 0}, {From, ?IN, P, 0}
         | [{From + N * 10 * ?MS, ?SEND, P, Next} || N <- lists:seq(1, 80)]]
    end,
    Events = lists:keysort(1, Stage(1, 2, 0) ++ Stage(2, 3, 10 * ?MS)),
    ?assertEqual([], names(found(Events, ?S, [running, message]))).

mailbox_test() ->
    Events = [{0, ?ACTIVE, 1, 0}, {0, ?IN, 1, 0}, {0, ?ACTIVE, 2, 0}, {0, ?IN, 2, 0}]
        ++ lists:append([[{N * 100_000, ?SEND, 1, 2}, {N * 100_000, ?SEND, 1, 3}]
                         ++ [{N * 100_000, ?RECEIVE, 2, 0} || N rem 2 =:= 0]
                         || N <- lists:seq(1, 4000)]),
    %% Process 3 never receives, so it is not among the recorded ones.
    [#{finding := mailbox, process := ~"p2", evidence := #{peak := 2001, left := 2000}}] =
        found(Events, ?S, [running, message]).

collections_test() ->
    Events = fun(Ms) ->
        [{0, ?ACTIVE, 1, 0}, {0, ?IN, 1, 0}, {0, ?ACTIVE, 2, 0}, {0, ?IN, 2, 0},
         {?MS, ?GC_MAJOR_START, 1, 0}, {(1 + Ms) * ?MS, ?GC_MAJOR_END, 1, 0}]
    end,
    [#{finding := long_gc, evidence := #{longest_ns := 12_000_000,
                                         longest := [#{process := ~"p1", from := ?MS}]}}] =
        found(Events(12), ?S, [running, garbage_collection]),
    ?assertEqual([], found(Events(9), ?S, [running, garbage_collection])),
    %% Many small ones, of a process that runs most of the time, and of one that hardly runs.
    Many = fun(N) ->
        Small = lists:append([[{I * 1_000_000, ?IN, 1, 0}, {I * 1_000_000, ?GC_MINOR_START, 1, 0},
                               {I * 1_000_000 + 200_000, ?GC_MINOR_END, 1, 0},
                               {I * 1_000_000 + 500_000, ?OUT, 1, 0}] || I <- lists:seq(1, N)]),
        names(found(Small, ?S, [garbage_collection]))
    end,
    ?assertEqual([{long_gc, ~"p1"}], Many(100)),
    ?assertEqual([], Many(10)).

migration_test() ->
    Events = fun(Other) ->
        lists:append([[{N * 400_000, ?IN, 1, if N rem 3 =:= 0 -> Other; true -> 1 end},
                       {N * 400_000 + 1000, ?OUT, 1, 0}] || N <- lists:seq(1, 2000)])
    end,
    Find = fun(Moves) ->
        New = sderl_prof_evidence:new(#{from => 0, mode => recorded, schedulers => 2}),
        Evidence = lists:foldl(fun({T, K, P, S}, E) ->
            sderl_prof_evidence:step(T, K, S, P, 0, 0, E)
        end, New, Moves),
        #{found := Found} = sderl_prof_findings:find(sderl_prof_evidence:finish(?S, Evidence),
                                                     context([migration])),
        Found
    end,
    [#{finding := migration, process := ~"p1", evidence := #{moves := 1332, ins := 2000}}] =
        Find(Events(2)),
    ?assertEqual([], Find(Events(1))).

%% One of two schedulers sleeps for 100 ms while a second process could run.
sleeping_test() ->
    Events = [{0, ?ACTIVE, 1, 0}, {0, ?IN, 1, 0}, {0, ?SCHEDULER_INACTIVE, 0, 1},
              {100 * ?MS, ?ACTIVE, 2, 0}, {200 * ?MS, ?SCHEDULER_ACTIVE, 0, 2},
              {200 * ?MS, ?IN, 2, 0}],
    [#{finding := sleeping, weight := 0.1, numbers := [], ranges := [#{from := _, to := _} | _],
       evidence := #{longest := [#{from := 100_000_000, to := 200_000_000}]}}] =
        [F || #{finding := sleeping} = F <- found(Events, ?S, [running, schedulers])].

%% The second of two ports works in 30 % of the time; what a process could run does not count.
busy_port_test() ->
    Events = fun(Ms) ->
        [{0, ?ACTIVE, 1, 0}, {0, ?ACTIVE, 7, 0}, {100 * ?MS, ?INACTIVE, 7, 0}]
            ++ lists:append([[{N * 100 * ?MS, ?ACTIVE, 8, 0},
                              {(N * 100 + Ms) * ?MS, ?INACTIVE, 8, 0}]
                             || N <- lists:seq(1, 9)])
    end,
    Find = fun(Ms, Runnable) ->
        New = sderl_prof_evidence:new(#{from => 0, mode => recorded, schedulers => 2,
                                        is_port => fun(P) -> P >= 7 end}),
        Evidence = lists:foldl(fun({T, K, P, A}, E) ->
            sderl_prof_evidence:step(T, K, 0, P, A, 0, E)
        end, New, lists:keysort(1, Events(Ms))),
        sderl_prof_findings:find(sderl_prof_evidence:finish(?S, Evidence),
                                 (context([ports]))#{runnable := Runnable})
    end,
    #{found := [#{finding := busy_port, process := ~"p8", weight := Weight, text := Text,
                  numbers := [8, 7], ranges := [], evidence := #{busy_ns := 270_000_000}}]} =
        Find(30, recorded),
    ?assert(abs(Weight - 0.27) < 1.0e-9),
    ?assertEqual(~"p8, opened by p7, works or waits for a scheduler in 27 % of the time", Text),
    #{found := []} = Find(20, recorded),
    #{found := [], not_shown := Not} = Find(30, messages),
    ?assertEqual([~"what could run"], [Needs || #{finding := busy_port, needs := Needs} <- Not]).

%% A process runs for 100 ms, and is in a table for 40 of them: 30 in insert, called by f.
tables_test() ->
    Find = fun(Insert, Lookup) ->
        New = sderl_prof_evidence:new(#{from => 0, mode => recorded, schedulers => 2,
                                        calls => true}),
        Events = [{0, ?IN, 0, 0}, {10, ?CALL, 2, 1}, {10 + Insert, ?RETURN_TO, 1, 0},
                  {60, ?CALL, 3, 1}, {60 + Lookup, ?RETURN_TO, 1, 0},
                  {100, ?OUT, 0, 0},
                  %% What it waits for is not its running time.
                  {500, ?IN, 0, 0}, {500, ?OUT, 0, 0}],
        Evidence = lists:foldl(fun({T, K, A, B}, E) ->
            sderl_prof_evidence:step(T * ?MS, K, 1, 1, A, B, E)
        end, New, Events),
        #{found := Found} = sderl_prof_findings:find(
            sderl_prof_evidence:finish(?S, Evidence), context([running, 'calls of ets'])),
        [F || #{finding := tables} = F <- Found]
    end,
    [#{process := null, weight := 0.4, text := Text, evidence := Evidence}] = Find(30, 10),
    ?assertEqual(<<"functions of ets take 40 % of the running time, in 2 calls; most of it "
                   "ets:insert/2 in m:f/1, 30 %">>, Text),
    ?assertEqual(#{tables_ns => 40 * ?MS, run_ns => 100 * ?MS, times => 2,
                   places => [#{process => ~"ets:insert/2 in m:f/1", calls => 1,
                                own_ns => 30 * ?MS},
                              #{process => ~"ets:lookup/2 in m:f/1", calls => 1,
                                own_ns => 10 * ?MS}]}, Evidence),
    [#{weight := 0.1}] = Find(0, 10),
    [] = Find(0, 9).

%% Nodes without a group are no finding; if the sender did not record, the receiver's count holds.
past_gateways_test() ->
    Row = fun(From, To, Sent, Received, Common) ->
        #{from => From, to => To, sent => Sent, sent_bytes => 10 * Sent, received => Received,
          common_group => Common}
    end,
    Find = fun(Past) ->
        #{found := Found} = sderl_prof_findings:past_gateways(
            [Row(~"a", ~"b", 1000, 1000, true), Row(~"a", ~"z", 9000, 9000, null),
             Row(~"a", ~"c", Past, 0, false), Row(~"c", ~"a", 0, 50, false)],
            #{found => [], not_shown => []}),
        Found
    end,
    ?assertEqual([], Find(49)),
    [#{weight := Weight, text := Text, evidence := Evidence}] = Find(950),
    ?assertEqual(0.5, Weight),
    ?assertEqual(#{messages => 1000, pairs => 2,
                   links => [#{process => ~"a to c", messages => 950, bytes => 9500},
                             #{process => ~"c to a", messages => 50, bytes => 0}]}, Evidence),
    ?assertNotEqual(nomatch, string:find(Text, "1000, of them 950 from a to c")),
    %% A small share of all messages is no finding.
    #{found := []} = sderl_prof_findings:past_gateways(
        [Row(~"a", ~"b", 100_000, 0, true), Row(~"a", ~"c", 4000, 0, false)],
        #{found => [], not_shown => []}).

%% Findings that need items not recorded are listed as not shown.
not_shown_test() ->
    #{found := [], not_shown := Not} =
        sderl_prof_findings:find(evidence(bottleneck(100), ?S), (context([]))#{items := []}),
    ?assertEqual(lists:sort(sderl_prof_findings:kinds()),
                 lists:sort([Kind || #{finding := Kind} <- Not])),
    #{not_shown := None} = sderl_prof_findings:find(evidence([], 0), context(all())),
    ?assertEqual([], None),
    #{not_shown := [#{finding := low_parallelism, needs := ~"all processes"}]} =
        sderl_prof_findings:find(evidence([], 0), (context(all()))#{items := all()}),
    #{not_shown := [#{finding := sleeping, needs := ~"what could run"},
                    #{finding := busy_port, needs := ~"what could run"}]} =
        sderl_prof_findings:find(evidence([], 0), (context(all()))#{runnable := none}).

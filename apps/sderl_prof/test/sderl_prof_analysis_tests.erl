%% SPDX-License-Identifier: Apache-2.0
%% The analyses, compared with plain and slow ones, and where the answer is known.
-module(sderl_prof_analysis_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

properties_test_() ->
    [
        sderl_prop:eunit("concurrency is the mean of its parts", 200, fun prop_concurrency/0),
        sderl_prop:eunit("times of a process fill its life", 200, fun prop_activity/0),
        sderl_prop:eunit("draining changes no sum", 100, fun prop_drain/0),
        sderl_prop:eunit("the greatest are the greatest", 200, fun prop_top/0),
        sderl_prop:eunit("a tally loses nothing of the whole", 200, fun prop_tally/0),
        sderl_prop:eunit("calls have all the time of their process", 200, fun prop_calls/0),
        sderl_prop:eunit("callers give a function the time that it has", 300, fun prop_graph/0),
        sderl_prop:eunit("a graph of calls is that of its tree", 100, fun prop_graph_of_tree/0),
        sderl_prop:eunit("two parts of the time have what the whole has", 200,
                         fun prop_calls_of_parts/0)
    ].

%% ---------------------------------------------------------------- concurrency

prop_concurrency() ->
    ?FORALL({From, Length, Parts, Intervals},
            {range(-50, 50), range(1, 100), range(1, 20),
             list({oneof([running, runnable]), range(-100, 200), range(0, 120)})}, begin
        Width = max(1, (Length + Parts - 1) div Parts),
        C = lists:foldl(fun({What, A, L}, Acc) ->
                            sderl_prof_concurrency:add(What, A, A + L, Acc)
                        end,
                        sderl_prof_concurrency:new(From, From + Length, Parts), Intervals),
        %% Each nanosecond of each part, one by one.
        Slow = [#{from => Begin,
                  running => slow(running, Begin, Width, Intervals),
                  runnable => slow(runnable, Begin, Width, Intervals)}
                || N <- lists:seq(0, Parts - 1), Begin <- [From + N * Width]],
        lists:all(fun({A, B}) -> near(A, B) end,
                  lists:zip(Slow, sderl_prof_concurrency:result(C)))
    end).

slow(What, Begin, Width, Intervals) ->
    lists:sum([1 || T <- lists:seq(Begin, Begin + Width - 1), {W, A, L} <- Intervals, W =:= What,
                    T >= A, T < A + L]) / Width.

near(#{from := F, running := A, runnable := B}, #{from := F, running := C, runnable := D}) ->
    abs(A - C) < 1.0e-9 andalso abs(B - D) < 1.0e-9;
near(_, _) -> false.

%% ---------------------------------------------------------------- activity

%% A life of one process, as a virtual machine tells it: each step is how long it runs, whether it
%% could go on then, and how long it does not run.
life() ->
    ?LET(Steps, non_empty(list({range(1, 50), boolean(), range(1, 50), range(0, 50)})), Steps).

%% The events of a life, and what the times are.
lived(P, Steps) ->
    lists:foldl(fun({Run, Preempted, Away, Wait}, {T, Events, {R, Q, W}}) ->
        Out = T + Run,
        case Preempted of
            true ->
                {Out + Away, [{Out, ?OUT, P}, {T, ?IN, P} | Events], {R + Run, Q + Away, W}};
            false ->
                Back = Out + Wait,
                {Back + Away,
                 [{Back, ?ACTIVE, P}, {Out, ?OUT, P}, {Out, ?INACTIVE, P}, {T, ?IN, P} | Events],
                 {R + Run, Q + Away, W + Wait}}
        end
    end, {0, [{0, ?ACTIVE, P}], {0, 0, 0}}, Steps).

prop_activity() ->
    ?FORALL(Lives, list(life()), begin
        All = [{P, lived(P, Steps)} || {P, Steps} <- lists:enumerate(Lives)],
        Events = lists:keysort(1, lists:append([lists:reverse(Es) || {_, {_, Es, _}} <- All])),
        Sink = fun(What, P, From, To, _, _, Acc) -> [{What, P, To - From} | Acc] end,
        Act = steps(Events, sderl_prof_activity:new(recorded, Sink, [])),
        %% All end where the last one does, and wait until then for a scheduler.
        End = lists:max([0 | [T || {_, {T, _, _}} <- All]]),
        {Sums, Intervals} = sderl_prof_activity:finish(End, Act),
        lists:all(fun({P, {T, _, {R, Q, W}}}) ->
            #{run := Run, runnable := Runnable, wait := Wait} = proplists:get_value(P, Sums),
            Run =:= R andalso Wait =:= W andalso Runnable =:= Q + End - T andalso
                lists:sum([L || {_, P1, L} <- Intervals, P1 =:= P]) =:= End
        end, All)
    end).

steps(Events, Act) ->
    Step = fun({T, K, P}, A) -> sderl_prof_activity:step(T, K, 0, P, 0, 0, A) end,
    lists:foldl(Step, Act, Events).

%% The sums of a process do not depend on when ended processes are taken out.
prop_drain() ->
    ?FORALL({Lives, Every}, {list(life()), range(1, 7)}, begin
        All = [{P, lived(P, Steps)} || {P, Steps} <- lists:enumerate(Lives)],
        Events = lists:keysort(1, lists:append(
            [lists:reverse([{T, ?EXIT, P} | Es]) || {P, {T, Es, _}} <- All])),
        Sink = fun(_, _, _, _, _, _, Acc) -> Acc end,
        New = sderl_prof_activity:new(recorded, Sink, none),
        {Plain, none} = sderl_prof_activity:finish(10_000, steps(Events, New)),
        {Act, Drained, _} = lists:foldl(fun({T, K, P}, {A, Out, N}) ->
            A1 = sderl_prof_activity:step(T, K, 0, P, 0, 0, A),
            case N rem Every of
                0 ->
                    {Ended, A2} = sderl_prof_activity:drain(A1),
                    {A2, Ended ++ Out, N + 1};
                _ -> {A1, Out, N + 1}
            end
        end, {New, [], 1}, Events),
        {Rest, none} = sderl_prof_activity:finish(10_000, Act),
        by_process(Plain) =:= by_process(Drained ++ Rest)
    end).

by_process(Sums) ->
    maps:map(fun(_, List) -> sderl_prof_activity:sums(List) end,
             maps:groups_from_list(fun({P, _}) -> P end, fun({_, Sum}) -> Sum end, Sums)).

%% Without the system profiler, messages show whether a process waited or was preempted.
messages_mode_test() ->
    Sink = fun(What, _, From, To, _, Waker, Acc) -> [{What, From, To, Waker} | Acc] end,
    Act = lists:foldl(fun({T, K, P, A}, Act) ->
        sderl_prof_activity:step(T, K, 0, P, A, 1, Act)
    end, sderl_prof_activity:new(messages, Sink, []), [
        {0, ?IN, 1, 0}, {10, ?OUT, 1, 0},
        {12, ?SEND, 2, 1},
        %% The usual order: the event of the receive comes after that of being scheduled in.
        {20, ?IN, 1, 0}, {21, ?RECEIVE, 1, 0}, {30, ?OUT, 1, 0},
        %% No message came, so it had been preempted.
        {35, ?IN, 1, 0}, {40, ?OUT, 1, 0}
    ]),
    {_, Intervals} = sderl_prof_activity:finish(50, Act),
    ?assertEqual([{running, 0, 10, 0}, {waiting, 10, 12, 2}, {runnable, 12, 20, 0},
                  {running, 20, 30, 0}, {runnable, 30, 35, 0}, {running, 35, 40, 0},
                  {waiting, 40, 50, 0}],
                 lists:keysort(2, Intervals)).

gc_and_exit_test() ->
    Sink = fun(What, _, From, To, _, _, Acc) -> [{What, From, To} | Acc] end,
    Act = steps([{0, ?SPAWNED, 1}, {3, ?IN, 1}, {4, ?GC_MINOR_START, 1}, {6, ?GC_MINOR_END, 1},
                 {9, ?EXIT, 1}, {11, ?OUT_EXITED, 1}],
                sderl_prof_activity:new(none, Sink, [])),
    {[{1, #{run := 6, runnable := 3, gc := 2, exiting := 2, wait := 0}}], Intervals} =
        sderl_prof_activity:finish(20, Act),
    ?assertEqual([{runnable, 0, 3}, {running, 3, 9}, {gc, 4, 6}, {exiting, 9, 11}],
                 lists:keysort(2, Intervals)).

%% ---------------------------------------------------------------- the rest

prop_top() ->
    ?FORALL({Most, Values}, {range(1, 5), list(range(0, 20))}, begin
        Items = lists:enumerate(Values),
        Top = lists:foldl(fun({N, V}, T) -> sderl_prof_top:add(V, N, T) end,
                          sderl_prof_top:new(Most), Items),
        Expected = lists:sublist(lists:reverse(lists:sort([V || V <- Values, V > 0])), Most),
        [V || {V, _} <- sderl_prof_top:result(Top)] =:= Expected
    end).

prop_tally() ->
    ?FORALL({Limit, Values}, {range(2, 6), list({range(1, 10), range(0, 20)})}, begin
        Tally = lists:foldl(fun({K, V}, T) -> sderl_prof_tally:add(K, V, T) end,
                            sderl_prof_tally:new(Limit), Values),
        {Rows, {RestN, RestSum, _}, _} = sderl_prof_tally:result(Tally),
        map_size(Rows) =< Limit andalso
            RestN + lists:sum([N || _ := {N, _, _} <- Rows]) =:= length(Values) andalso
            RestSum + lists:sum([S || _ := {_, S, _} <- Rows]) =:=
                lists:sum([V || {_, V} <- Values]) andalso lists:all(fun({Key, {_, Sum, _}}) ->
                Sum =< lists:sum([V || {K, V} <- Values, K =:= Key])
            end, maps:to_list(Rows))
    end).

%% A tree of calls that runs: each has what it takes itself, and what it calls.
call_tree() -> ?SIZED(Size, call_tree(min(Size, 12))).

call_tree(0) -> {range(2, 6), range(1, 9), []};
call_tree(N) -> {range(2, 6), range(1, 9), ?LAZY(resize(3, list(call_tree(N div 3))))}.

prop_calls() ->
    ?FORALL(Tree, call_tree(), begin
        {End, Events, Own} = run_tree(Tree, 1, 0, [], #{}),
        Calls = lists:foldl(fun({T, K, A, B}, C) -> sderl_prof_calls:step(T, K, 7, A, B, C) end,
                            sderl_prof_calls:new(1000),
                            [{0, ?CALL, 1, 0}] ++ lists:reverse([{End, ?EXIT, 0, 0} | Events])),
        #{stacks := Stacks, rest := 0} = sderl_prof_calls:result(Calls),
        Functions = sderl_prof_calls:functions(Stacks),
        lists:sum([Ns || {_, Ns} <- Stacks]) =:= End andalso
            lists:all(fun({F, {O, A}}) -> O =:= maps:get(F, Own, 0) andalso A >= O end,
                      maps:to_list(Functions))
    end).

prop_calls_of_parts() ->
    ?FORALL({Tree, Cut}, {call_tree(), range(0, 60)}, begin
        {End, Events, _} = run_tree(Tree, 1, 0, [], #{}),
        All = [{0, ?CALL, 1, 0}] ++ lists:reverse([{End, ?EXIT, 0, 0} | Events]),
        Of = fun(New) ->
            sderl_prof_calls:result(lists:foldl(
                fun({T, K, A, B}, C) -> sderl_prof_calls:step(T, K, 7, A, B, C) end, New, All))
        end,
        Parts = [Of(sderl_prof_calls:new(1000, Within)) || Within <- [{0, Cut}, {Cut, End + 1}]],
        #{stacks := Stacks, calls := Counts} = Of(sderl_prof_calls:new(1000)),
        Added = fun(Lists) ->
            maps:map(fun(_, Ns) -> lists:sum(Ns) end,
                     maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, N}) -> N end,
                                           lists:append(Lists)))
        end,
        maps:from_list(Stacks) =:= Added([S || #{stacks := S} <- Parts]) andalso
            Counts =:= Added([maps:to_list(C) || #{calls := C} <- Parts])
    end).

%% Any stacks, with recursion over several functions.
prop_graph() ->
    ?FORALL({Stacks0, Counts0, Most},
            {list({non_empty(list(range(1, 5))), range(1, 50)}),
             list({{range(1, 5), range(0, 5)}, range(1, 9)}), {range(1, 4), range(1, 6)}},
            begin
                {Stacks, Counts} = {maps:to_list(maps:from_list(Stacks0)),
                                    maps:from_list(Counts0)},
                #{ns := All, functions := Functions, edges := Edges} = Graph =
                    sderl_prof_call_graph:make(#{stacks => Stacks, calls => Counts}),
                Into = fun(F, At) ->
                    lists:sum([element(At, E) || {_, G} := E <- Edges, F =:= G])
                end,
                Out = fun(F) -> lists:sum([Ns || {G, _} := {_, Ns} <- Edges, F =:= G]) end,
                Slow = fun(F) ->
                    {lists:sum([N || {G, _} := N <- Counts, F =:= G]),
                     lists:sum([Ns || {[G | _], Ns} <- Stacks, F =:= G]),
                     lists:sum([Ns || {Stack, Ns} <- Stacks, lists:member(F, Stack)])}
                end,
                Recursive = lists:append([Stack || {Stack, _} <- Stacks,
                                                   Stack -- lists:usort(Stack) =/= []]),
                Each = fun(F, {Calls, Own, Time} = Sums) ->
                    Sums =:= Slow(F) andalso Into(F, 1) =:= Calls andalso Into(F, 2) =:= Time
                        andalso (lists:member(F, Recursive) orelse Own + Out(F) =:= Time)
                end,
                ?WHENFAIL(io:format("~p~n", [Graph]),
                          All =:= lists:sum([Ns || {_, Ns} <- Stacks]) andalso
                          All =:= Out(0) andalso
                          All =:= lists:sum([Own || _ := {_, Own, _} <- Functions]) andalso
                          lists:all(fun({F, Sums}) -> Each(F, Sums) end,
                                    maps:to_list(Functions)) andalso
                          is_bounded(Graph, Most))
            end).

%% What stays is unchanged, what was left out has no more time, and its number is right.
is_bounded(#{functions := Functions, edges := Edges} = Graph, {MostFunctions, MostEdges}) ->
    #{functions := Fewer, edges := FewerEdges, left := {F, E}} =
        sderl_prof_call_graph:bounded(Graph, MostFunctions, MostEdges),
    Time = fun(Of) -> [All || _ := {_, _, All} <- Of] end,
    map_size(Fewer) =< MostFunctions andalso map_size(FewerEdges) =< MostEdges andalso
        Fewer =:= maps:with(maps:keys(Fewer), Functions) andalso
        FewerEdges =:= maps:with(maps:keys(FewerEdges), Edges) andalso
        {F, E} =:= {map_size(Functions) - map_size(Fewer),
                    map_size(Edges) - map_size(FewerEdges)} andalso
        lists:max([0 | Time(maps:without(maps:keys(Fewer), Functions))])
            =< lists:min([1 bsl 60 | Time(Fewer)]).

prop_graph_of_tree() ->
    ?FORALL(Tree, call_tree(), begin
        {End, Events, Own} = run_tree(Tree, 1, 0, [], #{}),
        #{ns := Ns, functions := Functions, edges := Edges} = sderl_prof_call_graph:make(
            sderl_prof_calls:result(lists:foldl(
                fun({T, K, A, B}, C) -> sderl_prof_calls:step(T, K, 7, A, B, C) end,
                sderl_prof_calls:new(1000),
                [{0, ?CALL, 1, 0}] ++ lists:reverse([{End, ?EXIT, 0, 0} | Events])))),
        Counted = lists:foldl(fun(Pair, Acc) -> Acc#{Pair => maps:get(Pair, Acc, 0) + 1} end, #{},
                              [{0, 1} | pairs(Tree, 1)]),
        Ns =:= End andalso
            Own =:= #{F => O || F := {_, O, _} <- Functions, O > 0} andalso
            Counted =:= #{Pair => N || Pair := {N, _} <- Edges, N > 0}
    end).

pairs({F, _, Calls}, Caller) -> [{Caller, F} | lists:append([pairs(Call, F) || Call <- Calls])].

run_tree({F, Time, Calls}, Caller, T0, Events0, Own0) ->
    Events1 = [{T0, ?CALL, F, Caller} | Events0],
    T1 = T0 + Time,
    Own1 = Own0#{F => maps:get(F, Own0, 0) + Time},
    {T2, Events2, Own2} = lists:foldl(fun(Call, {T, Events, Own}) ->
        run_tree(Call, F, T, Events, Own)
    end, {T1, Events1, Own1}, Calls),
    {T2, [{T2, ?RETURN_TO, Caller, 0} | Events2], Own2}.

%% Siblings that are alike stand for one another, those with names do not.
tree_test() ->
    Entity = fun(N, Parent, Entry, Name) ->
        #{number => N, kind => process, key => N, parent => Parent, entry => Entry, name => Name,
          reason => 0, start => none, stop => none, first => none}
    end,
    Sums = fun(Run) -> (sderl_prof_activity:sums([]))#{run := Run} end,
    Tree = lists:foldl(fun({E, S}, T) -> sderl_prof_tree:add(E, S, T) end, sderl_prof_tree:new(),
        [{Entity(N, 1, 5, 0), Sums(N)} || N <- lists:seq(10, 19)] ++
        [{Entity(N, 1, 5, N), Sums(N)} || N <- [20, 21, 22]] ++
        [{Entity(N, 1, 6, 0), Sums(N)} || N <- [30, 31]]),
    Shown = lists:sort([{[N || {#{number := N}, _} <- S], O, Run}
                        || #{shown := S, omitted := O, omitted_sums := #{run := Run}}
                               <- sderl_prof_tree:result(Tree)]),
    ?assertEqual([{[19], 9, lists:sum(lists:seq(10, 18))}, {[20], 0, 0}, {[21], 0, 0},
                  {[22], 0, 0}, {[31, 30], 0, 0}], Shown).

schedulers_test() ->
    Sch = lists:foldl(fun({T, K, S}, A) -> sderl_prof_schedulers:step(T, K, S, 0, A) end,
                      sderl_prof_schedulers:new(0, 100, 2),
                      [{20, ?SCHEDULER_INACTIVE, 1}, {30, ?SCHEDULER_ACTIVE, 2},
                       {60, ?SCHEDULER_INACTIVE, 2}, {80, ?SCHEDULER_ACTIVE, 1}]),
    #{changes := 4, awake_ns := #{1 := 40, 2 := 30}, points := Points} =
        sderl_prof_schedulers:result(100, Sch),
    ?assertEqual([40 / 50, 30 / 50], [N || #{awake := N} <- Points]).

%% SPDX-License-Identifier: Apache-2.0
%% The critical path of programs for which it is known, and of any schedule, compared with a
%% reference that reads forwards; and the reading of books backwards.
-module(sderl_prof_path_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

-import(sderl_prof_files, [with_dir/1, recording/3, pid/2]).

-define(T0, -576_460_752_000_000_000).

properties_test_() ->
    [
        sderl_prop:eunit("the path is one chain of what happened", 300, fun prop_path/0),
        sderl_prop:eunit("a range has its part of the time", 100, fun prop_range/0)
    ].

%% ---------------------------------------------------------------- any schedule

prop_path() ->
    ?FORALL(Moves, sderl_prof_machine:moves(), begin
        {Events, End} = sderl_prof_machine:events(Moves),
        #{segments := Segments, kinds := Kinds, to := To, steps := Steps,
          processes := Processes} = path(Events, #{from => 0, to => End}),
        Ran = [T || {T, K, _, _} <- Events, K =:= ?IN] =/= [],
        Plain = intervals(Events, End),
        (not Ran andalso Segments =:= []) orelse
            (is_chain(Segments, 0, To) andalso Steps =:= length(Segments) andalso
             lists:all(fun(S) -> is_true(S, Plain, Events) end, Segments) andalso
             sum(Kinds) =:= To andalso
             lists:sum([sum(Times) || {_, Times} <- Processes]) =:= To)
    end).

prop_range() ->
    ?FORALL({Moves, A, B}, {sderl_prof_machine:moves(), range(0, 2000), range(0, 2000)}, begin
        {Events, _} = sderl_prof_machine:events(Moves),
        From = min(A, B),
        #{segments := Segments, to := To} = path(Events, #{from => From, to => max(A, B)}),
        Segments =:= [] orelse is_chain(Segments, From, To)
    end).

path(Events, Options) ->
    #{from := From, to := To} = Options,
    Parents = #{Child => P || {_, ?SPAWN, P, Child} <- Events},
    Parent = fun(P) -> maps:get(P, Parents, 0) end,
    Path = lists:foldr(fun
        ({T, K, P, A}, Acc) when T >= From, T =< To ->
            sderl_prof_path:step(T, K, 0, P, A, 0, Acc);
        (_, Acc) -> Acc
    end, sderl_prof_path:new(maps:merge(#{mode => recorded, parent => Parent, most => 100_000},
                                        Options)), Events),
    sderl_prof_path:result(Path).

sum(Times) -> lists:sum(maps:values(Times)).

is_chain([], At, To) -> At =:= To;
is_chain([#{from := At, to := Next} | Segments], At, To) -> is_chain(Segments, Next, To);
is_chain(_, _, _) -> false.

%% What each process did when, read forwards.
intervals(Events, End) ->
    Sink = fun(What, P, A, B, _, _, Acc) -> [{What, P, A, B} | Acc] end,
    Act = lists:foldl(fun({T, K, P, A}, Acc) ->
        sderl_prof_activity:step(T, K, 0, P, A, 0, Acc)
    end, sderl_prof_activity:new(recorded, Sink, []), Events),
    {_, Intervals} = sderl_prof_activity:finish(End, Act),
    Intervals.

is_true(#{kind := running, process := P, from := A, to := B}, Plain, _) ->
    %% The work of the node for a process that has ended belongs to its last run.
    lists:any(fun({running, Q, From, To}) ->
                      Q =:= P andalso From =< A andalso
                          (To >= B orelse lists:member({exiting, P, To, B}, Plain));
                 (_) -> false
              end, Plain);
is_true(#{kind := runnable, process := P, from := A, to := B}, Plain, Events) ->
    lists:member({runnable, P, A, B}, Plain) orelse
        %% A new process is spawned a moment before it is active: two segments.
        lists:any(fun({runnable, Q, From, To}) ->
                          Q =:= P andalso From =< A andalso To >= B andalso
                              lists:member({From, ?SPAWNED, P, parent_of(P, Events)}, Events);
                     (_) -> false
                  end, Plain);
is_true(#{kind := waiting, process := P, from := A, to := B}, Plain, Events) ->
    %% Nobody sent anything meanwhile.
    lists:member({waiting, P, A, B}, Plain) andalso
        [T || {T, ?SEND, _, Q} <- Events, Q =:= P, T >= A, T =< B] =:= [];
is_true(#{kind := message, process := P, sender := Q, from := A, to := B}, Plain, Events) ->
    lists:any(fun({waiting, W, From, To}) -> W =:= P andalso From =< A andalso To =:= B;
                 (_) -> false
              end, Plain) andalso
        (lists:member({A, ?SEND, Q, P}, Events) orelse
         (lists:member({A, ?EXIT, Q, 0}, Events) andalso parent_of(Q, Events) =:= P)).

parent_of(P, Events) -> hd([Q || {_, ?SPAWNED, Child, Q} <- Events, Child =:= P] ++ [0]).

%% ---------------------------------------------------------------- known programs

%% 1 works, then 2, then 3, each after the message of the one before.
pipeline_test() ->
    #{segments := Segments, processes := Processes, kinds := Kinds} = path([
        {0, ?ACTIVE, 1, 0}, {0, ?IN, 1, 7},
        {2, ?IN, 2, 8}, {4, ?OUT, 2, 8}, {4, ?INACTIVE, 2, 8},
        {2, ?IN, 3, 9}, {4, ?OUT, 3, 9}, {4, ?INACTIVE, 3, 9},
        {50, ?SEND, 1, 2}, {51, ?ACTIVE, 2, 8}, {52, ?OUT, 1, 7}, {52, ?INACTIVE, 1, 7},
        {55, ?IN, 2, 8}, {90, ?SEND, 2, 3}, {91, ?ACTIVE, 3, 9}, {93, ?IN, 3, 9},
        {95, ?OUT, 2, 8}, {95, ?INACTIVE, 2, 8},
        {100, ?OUT, 3, 9}, {100, ?INACTIVE, 3, 9}
    ], #{from => 0, to => 120}),
    ?assertEqual([{running, 1, 0, 50, 7, 0}, {message, 2, 50, 51, 0, 1},
                  {runnable, 2, 51, 55, 8, 0}, {running, 2, 55, 90, 8, 0},
                  {message, 3, 90, 91, 0, 2}, {runnable, 3, 91, 93, 9, 0},
                  {running, 3, 93, 100, 9, 0}],
                 [{K, P, A, B, Site, Sender}
                  || #{kind := K, process := P, from := A, to := B, site := Site,
                       sender := Sender} <- Segments]),
    ?assertEqual(#{running => 92, runnable => 6, message => 2, waiting => 0, between => 0}, Kinds),
    ?assertMatch([{1, #{running := 50}}, {2, #{running := 35}}, {3, #{running := 7}}], Processes).

%% Three workers of a master: the path goes through the one that ended last, by its exit signal.
farm_test() ->
    Events = lists:keysort(1, [
        {0, ?ACTIVE, 1, 0}, {1, ?IN, 1, 7}, {20, ?OUT, 1, 7}, {20, ?INACTIVE, 1, 7},
        {81, ?ACTIVE, 1, 7}, {85, ?IN, 1, 7}, {100, ?OUT, 1, 7}, {100, ?INACTIVE, 1, 7}
        | lists:append([[{B, ?SPAWN, 1, P}, {B, ?SPAWNED, P, 1}, {B, ?ACTIVE, P, 0},
                         {B + 5, ?IN, P, 0}, {E, ?EXIT, P, 0}]
                        || {P, B, E} <- [{2, 5, 60}, {3, 10, 80}, {4, 15, 70}]])
    ]),
    #{segments := Segments} = path(Events, #{from => 0, to => 100}),
    ?assertEqual([{runnable, 1, 0, 1}, {running, 1, 1, 10}, {runnable, 3, 10, 15},
                  {running, 3, 15, 80}, {message, 1, 80, 81}, {runnable, 1, 81, 85},
                  {running, 1, 85, 100}],
                 shown(Segments)).

%% A wait without a message is on the path; a segment that a range cuts counts within it.
timer_test() ->
    Events = [{0, ?IN, 1, 7}, {10, ?OUT, 1, 7}, {10, ?INACTIVE, 1, 7}, {60, ?ACTIVE, 1, 7},
              {61, ?IN, 1, 7}, {70, ?OUT, 1, 7}, {70, ?INACTIVE, 1, 7}],
    #{segments := All, to := 70} = path(Events, #{from => 0, to => 100}),
    ?assertEqual([{running, 1, 0, 10}, {waiting, 1, 10, 60}, {runnable, 1, 60, 61},
                  {running, 1, 61, 70}], shown(All)),
    #{segments := Part, to := 65} = path(Events, #{from => 30, to => 65}),
    ?assertEqual([{waiting, 1, 30, 60}, {runnable, 1, 60, 61}, {running, 1, 61, 65}], shown(Part)).

%% Without the system profiler a process could run since its last message came.
modes_test() ->
    Events = [{0, ?IN, 2, 0}, {5, ?IN, 1, 0}, {10, ?OUT, 1, 7}, {30, ?SEND, 2, 1}, {40, ?IN, 1, 0},
              {41, ?RECEIVE, 1, 0}, {50, ?OUT, 1, 7}, {55, ?IN, 1, 0}, {60, ?OUT, 1, 7},
              {80, ?IN, 1, 0}, {81, ?RECEIVE, 1, 0}, {90, ?OUT, 1, 7}],
    #{segments := Messages} = path(Events, #{from => 0, to => 90, mode => messages}),
    ?assertEqual([{running, 2, 0, 30}, {runnable, 1, 30, 40}, {running, 1, 40, 50},
                  {runnable, 1, 50, 55}, {running, 1, 55, 60}, {waiting, 1, 60, 80},
                  {running, 1, 80, 90}], shown(Messages)),
    #{segments := None} = path(Events, #{from => 0, to => 90, mode => none}),
    ?assertEqual([{waiting, 1, 0, 5}, {running, 1, 5, 10}, {waiting, 1, 10, 40},
                  {running, 1, 40, 50}, {waiting, 1, 50, 55}, {running, 1, 55, 60},
                  {waiting, 1, 60, 80}, {running, 1, 80, 90}], shown(None)).

%% Events that are lost or not recorded end the path, without a failure.
lost_test() ->
    #{segments := [], steps := 0} = path([], #{from => 0, to => 10}),
    #{segments := Segments} = path([
        {5, ?SPAWNED, 2, 1}, {6, ?IN, 2, 0}, {20, ?OUT, 2, 7}, {40, ?OUT, 2, 8}
    ], #{from => 0, to => 50}),
    ?assertEqual([{waiting, 1, 0, 5}, {runnable, 2, 5, 6}, {running, 2, 6, 20},
                  {waiting, 2, 20, 40}], shown(Segments)).

%% To the last run of one process.
process_test() ->
    Events = [{0, ?IN, 1, 0}, {10, ?OUT, 1, 0}, {12, ?IN, 2, 0}, {20, ?OUT, 2, 0}],
    #{segments := Segments, to := 10} = path(Events, #{from => 0, to => 20, process => 1}),
    ?assertEqual([{running, 1, 0, 10}], shown(Segments)).

shown(Segments) ->
    [{K, P, A, B} || #{kind := K, process := P, from := A, to := B} <- Segments].

%% ---------------------------------------------------------------- books

%% Two processes that ping-pong over several blocks: each has half of the path, whatever other
%% events are between.
book_test_() ->
    {timeout, 120, fun() ->
        with_dir(fun(Dir) ->
            N = 20_000,
            ok = recording(Dir, #{system_profile => taken}, lists:append(
                [exchange(?T0 + 100 * I) || I <- lists:seq(0, N - 1)]
            )),
            {ok, #{blocks := Blocks}} =
                sderl_prof_convert:convert(Dir, filename:join(Dir, "book"), #{}),
            ?assert(Blocks > 1),
            {ok, Book} = sderl_prof_book:open(filename:join(Dir, "book")),
            Cons = fun(T, K, S, P, A, B, Acc) -> [{T, K, S, P, A, B} | Acc] end,
            Forwards = sderl_prof_book:fold(Book, #{}, Cons, []),
            Any = fun(_) -> any end,
            ?assertEqual(lists:reverse(Forwards),
                         sderl_prof_book:fold_back(Book, #{}, Any, Cons, [])),
            #{processes := [#{process := A, times := Ta}, #{process := B, times := Tb}],
              kinds := Kinds, steps := Steps, segments := Segments} =
                sderl_prof_insight:path(Book, #{segments => 10}),
            ?assertEqual([~"<0.1.0>", ~"<0.2.0>"], lists:sort([A, B])),
            ?assertEqual({40 * N + 6, 40 * N}, {map_get(running, Ta), map_get(running, Tb)}),
            ?assertMatch(#{waiting := 0, message := Messages} when Messages =:= 10 * N - 5, Kinds),
            ?assert(Steps >= 6 * N - 3),
            ?assertEqual(10, length(Segments)),
            {ok, 1} = sderl_prof_insight:find_process(~"<0.1.0>", Book),
            error = sderl_prof_insight:find_process(~"nobody", Book),
            error = sderl_prof_insight:find_process(~"<0.99.0>", Book),
            ok = sderl_prof_book:close(Book)
        end)
    end}.

%% 1 runs for 40, sends; 2 runs for 40, sends. A message takes 5, a scheduler 5 more.
exchange(T) ->
    [A, B] = [pid(1, 0), pid(2, 0)],
    F = {m, f, 0},
    [{trace_ts, A, in, F, T}, {trace_ts, A, send, ping, B, T + 40}, {profile, B, active, F, T + 45},
     {trace_ts, A, out, F, T + 46}, {profile, A, inactive, F, T + 46},
     {trace_ts, B, in, F, T + 50}, {trace_ts, B, send, pong, A, T + 90},
     {profile, A, active, F, T + 95}, {trace_ts, B, out, F, T + 96},
     {profile, B, inactive, F, T + 96}].

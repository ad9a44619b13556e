%% SPDX-License-Identifier: Apache-2.0
%% The answers for pages, compared with a slow reading of all intervals.
-module(sderl_prof_pages_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

-import(sderl_prof_files, [with_dir/1]).

-define(BEGIN, -1000).

properties_test_() ->
    [
        sderl_prop:eunit("columns of events are those of a slow reading", 60,
                         fun() -> prop_window(by_events) end),
        sderl_prop:eunit("columns of parts are those of a slow reading", 60,
                         fun() -> prop_window(by_parts) end),
        sderl_prop:eunit("sums of a part are those of a slow reading", 60, fun prop_spent/0),
        sderl_prop:eunit("waits of a part are those of a slow reading", 60, fun prop_waits/0),
        sderl_prop:eunit("wider cells have what the narrow ones have", 100, fun prop_coarser/0),
        sderl_prop:eunit("sums of a file are all that was added", 40, fun prop_sums/0)
    ].

%% ---------------------------------------------------------------- windows

%% Any events in any order: both readings must agree on them.
event() ->
    ?LET({Pause, P}, {range(0, 30), range(1, 4)}, {Pause, P, kind()}).

kind() ->
    oneof([?IN, ?OUT, ?IN, ?OUT, ?ACTIVE, ?INACTIVE, ?SEND, ?RECEIVE, ?GC_MINOR_START,
           ?GC_MINOR_END, ?GC_MAJOR_START, ?GC_MAJOR_END, ?SPAWNED, ?EXIT]).

timed(Events) ->
    {Timed, _} = lists:mapfoldl(fun({Pause, P, K}, T) ->
        {{T + Pause, K, 1, P, 1 + P rem 4, 7}, T + Pause}
    end, ?BEGIN, Events),
    Timed.

prop_window(How) ->
    ?FORALL({Events, Mode, Block, Window},
            {non_empty(list(event())), oneof([recorded, messages, none]), range(1, 9),
             {range(0, 900), range(1, 900), range(1, 40)}},
            with_dir(fun(Dir) ->
                Timed = told(Mode, Events),
                ok = book(Dir, Timed, block(How, Mode, Block)),
                compared(How, Dir, Timed, Window)
            end)).

told(Mode, Events) ->
    Sound = collections(lives(timed(Events), [])),
    paused([E || {_, K, _, _, _, _} = E <- Sound, of_mode(K, Mode)]).

%% Whether a process that was scheduled out, or has just begun, waits must be in the next event, if
%% at all: the reader does not look further.
paused(Events) -> paused(Events, none, #{}).

paused([{_, K, _, P, _, _} = Event | Events], Before, Open) ->
    IsLate = K =:= ?INACTIVE andalso is_map_key(P, Open) andalso Before =/= {P, map_get(P, Open)},
    case IsLate of
        true -> paused(Events, Before, Open);
        false -> [Event | paused(Events, {P, K}, opened(P, K, Open))]
    end;
paused([], _, _) -> [].

opened(P, K, Open) when K =:= ?OUT; K =:= ?SPAWNED -> Open#{P => K};
opened(P, K, Open) when K =:= ?IN; K =:= ?ACTIVE; K =:= ?INACTIVE; K =:= ?EXIT ->
    maps:remove(P, Open);
opened(_, _, Open) -> Open.

%% No more events of a process that has ended.
lives([{_, K, _, P, _, _} = Event | Events], Ended) ->
    case lists:member(P, Ended) of
        false when K =:= ?EXIT -> [Event | lives(Events, [P | Ended])];
        false -> [Event | lives(Events, Ended)];
        true -> lives(Events, Ended)
    end;
lives([], _) -> [].

%% Each collection begins and ends once.
collections([{_, K, _, P, _, _} = Event | Events])
  when K =:= ?GC_MINOR_START; K =:= ?GC_MAJOR_START ->
    case lists:search(fun({_, E, _, Q, _, _}) -> Q =:= P andalso is_end(E) end, Events) of
        {value, End} ->
            {Within, [End | Behind]} = lists:splitwith(fun(E) -> E =/= End end, Events),
            Rest = [E || {_, L, _, Q, _, _} = E <- Within,
                         Q =/= P orelse L < ?GC_MINOR_START orelse L > ?GC_MAJOR_END],
            [Event | collections(Rest ++ [setelement(2, End, ?GC_MAX_HEAP_SIZE) | Behind])];
        false -> collections(Events)
    end;
collections([{_, ?GC_MAX_HEAP_SIZE, _, _, _, _} = End | Events]) ->
    [setelement(2, End, ?GC_MAJOR_END) | collections(Events)];
collections([{_, K, _, _, _, _} = Event | Events]) ->
    [Event || not is_end(K)] ++ collections(Events);
collections([]) -> [].

is_end(K) -> K =:= ?GC_MINOR_END orelse K =:= ?GC_MAJOR_END.

%% A process was only interrupted: messages tell that when it runs again, whenever that is.
block(by_events, messages, _) -> 1000;
block(_, _, Block) -> Block.

%% The kinds of events decide the mode.
of_mode(K, recorded) -> K =/= ?RECEIVE;
of_mode(K, messages) -> K =/= ?ACTIVE andalso K =/= ?INACTIVE;
of_mode(K, none) -> K =/= ?ACTIVE andalso K =/= ?INACTIVE andalso K =/= ?RECEIVE.

book(Dir, Timed, Block) ->
    {ok, Writer} = sderl_prof_book:create(Dir),
    Written = blocks(Timed, Block, Writer),
    Patches = [{P, Field, N} || P <- lists:seq(1, 4), {Field, N} <- [{kind, 1}, {key, P}]],
    ok = sderl_prof_book:patch(Patches, Written),
    ok = sderl_prof_book:finish(#{node => ~"n@h", info => none, entities => 4, dropped => 0,
                                  lost_bytes => 0, lost_events => 0,
                                  problems => [~"3 events are not there"]}, Written).

blocks([], _, Writer) -> Writer;
blocks(Events, N, Writer) ->
    {Now, Later} = lists:split(min(N, length(Events)), Events),
    {ok, Writer1} = sderl_prof_book:write_block(sderl_prof_block:encode(Now), Writer),
    blocks(Later, N, Writer1).

compared(How, Dir, Timed, {From0, Length, Columns}) ->
    case sderl_prof_index:make(Dir, #{portion => 5, least_parts => 4, events_of_part => 2}) of
        ok ->
            {ok, View} = sderl_prof_view:open(Dir, fun(_, _) -> ok end),
            {First, Last} = ends(Timed),
            From = First + min(From0, max(0, Last - First - 1)),
            Request = #{from => From, to => max(From + 1, min(Last, From + Length)),
                        columns => Columns, processes => [1, 2, 3, 4]},
            #{grid := Grid, from := At, width := Width, columns := Count} =
                sderl_prof_window:How(Request, View),
            Seen = [{P, What, sderl_prof_grid:series(What, P, Grid)}
                    || P <- lists:seq(0, 4), What <- whats(P)],
            ok = sderl_prof_view:close(View),
            Intervals = intervals(Timed, Last),
            Slow = [{P, What, slow(What, P, At, Width, Count, Intervals)}
                    || P <- lists:seq(0, 4), What <- whats(P)],
            ?WHENFAIL(io:format("~p~n~p~n", [Request, Intervals]), equals(Slow, Seen))
    end.

%% Times are those of a window of one column; counts those of the events in the part.
prop_spent() ->
    ?FORALL({Events, Mode, Block, {From0, Length}},
            {non_empty(list(event())), oneof([recorded, messages, none]), range(1, 9),
             {range(0, 900), range(1, 900)}},
            with_dir(fun(Dir) ->
                Timed = told(Mode, Events),
                ok = book(Dir, Timed, block(by_events, Mode, Block)),
                ok = sderl_prof_index:make(Dir, #{}),
                {ok, View} = sderl_prof_view:open(Dir, fun(_, _) -> ok end),
                {First, Last} = ends(Timed),
                From = First + min(From0, max(0, Last - First - 1)),
                To = From + Length,
                {ok, Sums} = sderl_prof_spent:sums(From, To, View),
                ok = sderl_prof_view:close(View),
                Intervals = intervals(Timed, Last),
                Slow = [slow_sums(P, From, To, Timed, Intervals) || P <- lists:seq(1, 4)],
                None = sderl_prof_activity:sums([]),
                ?WHENFAIL(io:format("~p ~p~n~p~n~p~n", [From, To, Timed, Intervals]),
                          equals(Slow, [maps:with([run, runnable, wait, gc, ins, sent, received,
                                                   sent_bytes, received_bytes],
                                                  maps:get(P, Sums, None))
                                        || P <- lists:seq(1, 4)]))
            end)).

%% Waits of each process, and of all together.
prop_waits() ->
    ?FORALL({Events, Mode, Block, {From0, Length}},
            {non_empty(list(event())), oneof([recorded, messages, none]), range(1, 9),
             {range(0, 900), range(1, 900)}},
            with_dir(fun(Dir) ->
                Timed = told(Mode, Events),
                ok = book(Dir, Timed, block(by_events, Mode, Block)),
                ok = sderl_prof_index:make(Dir, #{}),
                {ok, View} = sderl_prof_view:open(Dir, fun(_, _) -> ok end),
                {First, Last} = ends(Timed),
                From = min(From0, max(0, Last - First - 1)),
                Seen = [begin
                            {ok, #{sum := Sum, count := N}} = sderl_prof_view:waits(
                                #{from => From, to => From + Length, process => P, sort => sum,
                                  limit => 1}, View),
                            {N, Sum}
                        end || P <- [none, 1, 2, 3, 4]],
                ok = sderl_prof_view:close(View),
                Within = [{P, Ns} || {waiting, P, A, B} <- intervals(Timed, Last),
                                     Ns <- [min(B, First + From + Length) - max(A, First + From)],
                                     Ns > 0],
                Slow = [{length(Of), lists:sum(Of)}
                        || P <- [none, 1, 2, 3, 4],
                           Of <- [[Ns || {Q, Ns} <- Within, P =:= none orelse P =:= Q]]],
                ?WHENFAIL(io:format("~p ~p~n~p~n", [From, Length, Timed]), equals(Slow, Seen))
            end)).

slow_sums(P, From, To, Timed, Intervals) ->
    Ns = fun(What) ->
        [Sum] = slow(What, P, From, To - From, 1, Intervals),
        Sum
    end,
    Bytes = fun(Kind) -> [B || {T, K, _, Q, _, B} <- Timed, Q =:= P, K =:= Kind, T >= From,
                               T < To] end,
    #{run => Ns(running), runnable => Ns(runnable), wait => Ns(waiting), gc => Ns(gc),
      ins => length(Bytes(?IN)), sent => length(Bytes(?SEND)), received => length(Bytes(?RECEIVE)),
      sent_bytes => lists:sum(Bytes(?SEND)), received_bytes => lists:sum(Bytes(?RECEIVE))}.

ends(Timed) ->
    Times = [T || {T, _, _, _, _, _} <- Timed],
    case Times of
        [] -> {0, 0};
        _ -> {lists:min(Times), lists:max(Times)}
    end.

whats(0) -> [running, runnable];
whats(_) -> [running, runnable, waiting, gc].

intervals(Timed, End) ->
    Kinds = maps:from_keys([sderl_prof_event:kind(K) || {_, K, _, _, _, _} <- Timed], 1),
    Sink = fun(What, P, From, To, _, _, Acc) -> [{What, P, From, To} | Acc] end,
    Activity = lists:foldl(fun({T, K, S, P, A, B}, Act) ->
        sderl_prof_activity:step(T, K, S, P, A, B, Act)
    end, sderl_prof_activity:new(sderl_prof_activity:mode(Kinds), Sink, []), Timed),
    {_, Intervals} = sderl_prof_activity:finish(End, Activity),
    Intervals.

slow(What, P, From, Width, Columns, Intervals) ->
    [lists:sum([max(0, min(To, Begin + Width) - max(At, Begin))
                || {W, Q, At, To} <- Intervals, W =:= What, P =:= 0 orelse P =:= Q])
     || N <- lists:seq(0, Columns - 1), Begin <- [From + N * Width]].

%% ---------------------------------------------------------------- cells, sums

prop_coarser() ->
    ?FORALL({Intervals, Factor}, {list({range(1, 3), range(0, 200), range(1, 150)}), range(2, 5)},
            begin
                [Narrow, Wide, Made] = [sderl_prof_cells:new(0, Width)
                                        || Width <- [7, 7 * Factor, 7 * Factor]],
                _ = [ok = sderl_prof_cells:add(waiting, P, From, From + Length, 1, Cells)
                     || {P, From, Length} <- Intervals, Cells <- [Narrow, Wide]],
                Rows = sderl_prof_cells:take(Narrow),
                ok = sderl_prof_cells:coarser(Rows, Factor, Made),
                filled(Wide, 7 * Factor) =:= filled(Made, 7 * Factor) andalso
                    sderl_prof_cells:decode(sderl_prof_cells:encode(Rows)) =:= Rows
            end).

filled(Cells, Width) ->
    Rows = sderl_prof_cells:take(Cells),
    Grid = sderl_prof_grid:new([1, 2, 3], 0, Width, 60),
    ok = sderl_prof_cells:fold_rows(
        fun(What, P, {part, N, Ns}, ok) -> sderl_prof_grid:add_ns(What, P, N, Ns, Grid);
           (What, P, {whole, A, B, N}, ok) ->
               sderl_prof_grid:add_times(What, P, A * Width, B * Width, N, Grid)
        end, fun(_) -> true end, ok, Rows),
    [sderl_prof_grid:series(waiting, P, Grid) || P <- [1, 2, 3]].

prop_sums() ->
    ?FORALL(Lists, list(list({range(1, 9), range(0, 100)})), with_dir(fun(Dir) ->
        {ok, File} = file:open(filename:join(Dir, "sums"), [read, write, raw, binary]),
        Sum = fun(N) -> (sderl_prof_activity:sums([]))#{run := N, ins := 1} end,
        _ = [ok = sderl_prof_sums:add([{P, Sum(N)} || {P, N} <- List], File) || List <- Lists],
        All = lists:append(Lists),
        Right = lists:all(fun(P) ->
            #{run := Run, ins := Ins} = sderl_prof_sums:read(P, File),
            Run =:= lists:sum([N || {Q, N} <- All, Q =:= P]) andalso
                Ins =:= length([Q || {Q, _} <- All, Q =:= P])
        end, lists:seq(1, 10)),
        Folded = sderl_prof_sums:fold(fun(_, #{run := Run}, Acc) -> Acc + Run end, 0, File),
        ok = file:close(File),
        Right andalso Folded =:= lists:sum([N || {_, N} <- All])
    end)).

%% ---------------------------------------------------------------- answers

answers_test_() ->
    [{Title, fun() -> with_small(Test) end} || {Title, Test} <- [
        {"what was lost is told", fun told/1},
        {"a window with few intervals has them", fun near/1},
        {"too large questions are refused, in words", fun refused/1},
        {"processes by what they did", fun listed/1},
        {"one process: where it waits, for whom, messages", fun one/1},
        {"messages of a part of the time", fun messages/1},
        {"single messages", fun arrows/1},
        {"schedulers of a process", fun stays/1},
        {"what processes did in a part of the time", fun part/1},
        {"the critical path of a part of the time", fun path/1},
        {"the tree of processes", fun tree/1},
        {"waits by place", fun waits/1}
    ]].

with_small(Test) ->
    {Dir, View} = small(),
    Test(View),
    ok = sderl_prof_view:close(View),
    ok = file:del_dir_r(Dir).

%% Process 1 sends to 2, which waits for it; schedulers 1 and 2.
small() ->
    Dir = filename:join(filename:basedir(user_cache, "sderl"),
                        lists:concat(["pages-test-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    Events = [
        {0, ?SCHEDULER_ACTIVE, 2, 0, 1, 0}, {0, ?IN, 1, 1, 0, 0}, {0, ?IN, 1, 2, 0, 0},
        {10, ?OUT, 1, 2, 1, 0}, {50, ?SEND, 1, 1, 2, 64}, {50, ?ACTIVE, 1, 2, 0, 0},
        {60, ?IN, 1, 2, 0, 0}, {80, ?SEND, 1, 2, 1, 8}, {90, ?OUT, 1, 1, 2, 0},
        {90, ?SCHEDULER_INACTIVE, 2, 0, 0, 0}, {100, ?EXIT, 1, 2, 0, 0}
    ],
    ok = filelib:ensure_path(Dir),
    ok = book(Dir, Events, 4),
    {ok, View} = sderl_prof_view:open(Dir, fun(_, _) -> ok end),
    {Dir, View}.

told(View) ->
    #{problems := [~"3 events are not there"], duration := 100, processes := 2, schedulers := [2],
      has_messages := true, has_calls := false, runnable := recorded} =
        sderl_prof_view:about(View).

near(View) ->
    {ok, #{exact := true, from := 20, width := 20, columns := 4, running := Running,
           schedulers := [#{scheduler := 2, awake := Awake}],
           lanes := [#{process := 2, running := Shares, waiting := Waits,
                       intervals := Intervals}]}} =
        sderl_prof_view:window(#{from => 20, to => 100, columns => 4, processes => [2]}, View),
    ?assertEqual([1.0, 1.0, 2.0, 1.5], Running),
    ?assertEqual([1000, 1000, 1000, 500], Awake),
    ?assertEqual([0, 0, 1000, 1000], Shares),
    ?assertEqual([1000, 500, 0, 0], Waits),
    ?assertMatch([[2, 20, 30, 1, 1], [1, 50, 10, 0, 0], [0, 60, 40, 0, 0]], Intervals).

refused(View) ->
    Ask = fun(Changes) ->
        sderl_prof_view:window(maps:merge(#{from => 0, to => 100, columns => 10,
                                            processes => []}, Changes), View)
    end,
    Wrong = [{range, 100, 200}, {range, 50, 50}, {columns, 0}, {columns, 4097},
             {processes, 501}, {cells, 4096 * 129}],
    Asked = [#{from => 100, to => 200}, #{from => 50, to => 50}, #{columns => 0},
             #{columns => 4097}, #{processes => lists:seq(1, 501)},
             #{columns => 4096, processes => lists:seq(1, 129)}],
    ?assertEqual([{error, Why} || Why <- Wrong], [Ask(Changes) || Changes <- Asked]),
    _ = [?assert(string:length(sderl_prof_view:format_error(Why)) > 20)
         || Why <- [{no_process, 7}, too_many, {no_book, "d"}, {book, "d", enospc}, {defect, x}
                    | Wrong]],
    %% A process that does not exist has empty lanes.
    {ok, #{lanes := [#{running := [0]}]}} = Ask(#{columns => 1, processes => [4_000_000]}).

listed(View) ->
    By = fun(Sort, Search) ->
        {ok, #{processes := Rows, 'of' := whole}} = sderl_prof_view:processes(
            #{sort => Sort, search => Search, limit => 10, numbers => []}, View),
        [P || #{process := P} <- Rows]
    end,
    ?assertEqual([1, 2], By(run, ~"")),
    ?assertEqual([2, 1], By(ins, ~"")),
    ?assertEqual([2], By(run, ~"<0.2.0>")),
    ?assertEqual([], By(run, ~"nobody")),
    {ok, #{processes := [#{process := 2, run := 50, runnable := 10, wait := 40, stop := null}]}} =
        sderl_prof_view:processes(#{sort => run, search => ~"", limit => 1, numbers => [2]}, View).

one(View) ->
    {ok, #{process := #{name := ~"<0.2.0>", sent := 1},
           waits := [#{count := 1, sum := 40, mean := 40.0}],
           waits_for := [#{process := 1, sum := 40}], waited_for_by := [],
           sent_to := [#{process := 1, sum := 8}],
           received_from := [#{process := 1, sum := 64, count := 1}]}} =
        sderl_prof_view:process(2, View),
    {ok, #{waited_for_by := [#{process := 2}]}} = sderl_prof_view:process(1, View),
    {error, {no_process, 5}} = sderl_prof_view:process(5, View),
    {error, {no_process, 0}} = sderl_prof_view:process(0, View).

waits(View) ->
    Ask = fun(Changes) ->
        sderl_prof_view:waits(maps:merge(#{from => 0, to => 1000, sort => sum, limit => 9},
                                         Changes), View)
    end,
    {ok, #{'of' := whole, whose := null, places := 2, count := 2, sum := 50,
           rows := [#{function := 1, count := 1, sum := 40, mean := 40.0, deviation := +0.0,
                      processes := 1, waiters := [#{process := 2, sum := 40}], wakers := 1,
                      waits_for := [#{process := 1, count := 1, sum := 40}]},
                    #{sum := 10, waiters := [#{process := 1}], wakers := 0, waits_for := []}]}} =
        Ask(#{}),
    %% Only what is in the part counts.
    {ok, #{'of' := part, whose := ~"<0.2.0>", rows := [#{sum := 25}]}} =
        Ask(#{from => 25, to => 60, process => 2, sort => mean}),
    {ok, #{whose := ~"<0.1.0>", places := 1, sum := 10, rows := [#{function := 2}]}} =
        Ask(#{process => 1, sort => count}),
    {ok, #{places := 2, rows := [_]}} = Ask(#{limit => 1}),
    {ok, #{places := 0, count := 0, rows := []}} = Ask(#{process => 3}),
    {error, {no_process, 9}} = Ask(#{process => 9}),
    {error, {range, 100, 1000}} = Ask(#{from => 100}).

messages(View) ->
    {ok, #{count := 2, bytes := 72, pairs := 2}} =
        sderl_prof_view:messages(#{from => 0, to => 100, limit => 10}, View),
    {ok, #{count := 1, rows := [#{from := 2, to := 1, bytes := 8}]}} =
        sderl_prof_view:messages(#{from => 51, to => 100, limit => 10}, View),
    {ok, #{count := 0}} = sderl_prof_view:messages(#{from => 0, to => 50, limit => 10}, View),
    {error, {range, 5, 5}} = sderl_prof_view:messages(#{from => 5, to => 5, limit => 10}, View).

arrows(View) ->
    Ask = fun(Changes) ->
        sderl_prof_view:arrows(maps:merge(#{from => 0, to => 100, processes => [1, 2],
                                            process => none, limit => 10}, Changes), View)
    end,
    {ok, #{arrows := [[50, null, 1, 2, 64], [80, null, 2, 1, 8]], count := 2, elsewhere := 0}} =
        Ask(#{}),
    {ok, #{arrows := [[80, null, 2, 1, 8]], count := 1}} = Ask(#{from => 51}),
    {ok, #{arrows := [], count := 0, elsewhere := 2}} = Ask(#{processes => [1], process => 1}),
    {ok, #{arrows := [], count := 0, elsewhere := 0}} = Ask(#{processes => []}),
    {error, {range, 100, 200}} = Ask(#{from => 100, to => 200}),
    {error, {processes, 501}} = Ask(#{processes => lists:seq(1, 501)}).

stays(View) ->
    Ask = fun(P, From, To) ->
        sderl_prof_view:stays(#{process => P, from => From, to => To, limit => 10}, View)
    end,
    {ok, #{schedulers := [#{scheduler := 1, stays := 1, ins := 2, ran := 50}],
           stays := [[1, 0, 100, 2, 50]], count := 1}} = Ask(2, 0, 1000),
    {ok, #{stays := [[1, 20, 70, 1, 10]]}} = Ask(2, 20, 70),
    {error, {no_process, 99}} = Ask(99, 0, 100),
    {error, {range, 7, 7}} = Ask(1, 7, 7).

part(View) ->
    Ask = fun(Changes) ->
        sderl_prof_view:processes(maps:merge(#{sort => run, search => ~"", limit => 10,
                                               numbers => []}, Changes), View)
    end,
    {ok, #{'of' := part, matching := 2,
           processes := [#{process := 1, run := 26, ins := 0, sent := 1},
                         #{process := 2, run := 0, runnable := 1, wait := 25}]}} =
        Ask(#{from => 25, to => 51, numbers => [1, 2]}),
    {ok, #{'of' := whole}} = Ask(#{from => 0, to => 1000}),
    {ok, #{'of' := part, processes := [#{process := 2}, _]}} = Ask(#{from => 95, to => 1000}),
    {ok, #{processes := []}} = Ask(#{kind => port}),
    {ok, #{matching := 2}} = Ask(#{kind => process}),
    {error, {range, 100, 1000}} = Ask(#{from => 100, to => 1000}).

path(View) ->
    Ask = fun(Changes) ->
        sderl_prof_view:path(maps:merge(#{from => 0, to => 1000, process => none, segments => 9},
                                        Changes), View)
    end,
    {ok, #{path := #{from := 0, to := 100, steps := Steps, segments := All}}} = Ask(#{}),
    ?assertEqual(Steps, length(All)),
    {ok, #{path := #{steps := Steps, segments := [_]}}} = Ask(#{segments => 1}),
    %% Each nanosecond of a part is on its path once.
    {ok, #{path := #{from := 20, to := 100, segments := Segments}}} = Ask(#{from => 20}),
    ?assertEqual(80, lists:sum([B - A || #{from := A, to := B} <- Segments])),
    {ok, #{path := #{to := 90, segments := ToOne}}} = Ask(#{process => 1}),
    ?assertMatch(#{number := 1}, lists:last(ToOne)),
    {error, {no_process, 9}} = Ask(#{process => 9}).

tree(View) ->
    %% Four processes whose parents are not known.
    #{rows := [#{process := 1, depth := 0, omitted := 0, run := 90},
               #{process := 0, depth := 0, omitted := 3, run := 50}], all := 2,
      below := 0} = sderl_prof_view:tree(#{limit => 10}, View),
    #{rows := [#{process := 1}], all := 2} = sderl_prof_view:tree(#{limit => 1}, View),
    #{found := [#{finding := low_parallelism, numbers := [1, 2],
                  ranges := [#{from := 10, to := 50} | _]}],
      not_shown := [#{needs := ~"garbage_collection"}, #{finding := busy_port},
                    #{finding := tables}]} = sderl_prof_view:findings(View).

%% Similar siblings are one row after their parent; with too many rows the deepest ones are left
%% out first, and those below them are counted.
family_test() ->
    Sums = fun(Run) -> (sderl_prof_activity:sums([]))#{run := Run} end,
    Add = fun({N, Parent, Entry, Run}, Tree) ->
        sderl_prof_tree:add(#{number => N, kind => process, key => N, parent => Parent,
                              entry => Entry, name => 0, reason => 0, start => none, stop => none,
                              first => none}, Sums(Run), Tree)
    end,
    Tree = sderl_prof_tree:result(lists:foldl(Add, sderl_prof_tree:new(), [
        {1, 0, 1, 5}, {2, 1, 2, 10}, {3, 1, 2, 30}, {4, 1, 2, 20}, {5, 1, 3, 40}, {6, 3, 4, 1},
        {7, 2, 4, 1}, {8, 99, 1, 50}
    ])),
    Rows = fun(Most) ->
        #{rows := Of, all := 6, below := 1} =
            sderl_prof_family:rows(Tree, fun(P) -> P >= 1 andalso P =< 8 end, Most),
        [{Depth, P, Omitted} || #{depth := Depth, process := P, omitted := Omitted} <- Of]
    end,
    All = [{0, 8, 0}, {0, 1, 0}, {1, 5, 0}, {1, 3, 0}, {2, 6, 0}, {1, none, 2}],
    ?assertEqual(lists:sort(All), lists:sort(Rows(10))),
    [{0, 8, 0}, {0, 1, 0}, {1, 5, 0} | _] = Rows(10),
    ?assertEqual(All -- [{2, 6, 0}], Rows(5)),
    ?assertEqual([{0, 8, 0}], Rows(1)).

%% A chain of processes, each of which began the next one: the deepest are left out at once.
deep_family_test_() ->
    {timeout, 60, fun() ->
        Deep = 50_000,
        Sums = sderl_prof_activity:sums([]),
        Branches = [#{parent => N - 1, shown => [{#{number => N}, Sums}], omitted => 0,
                      omitted_sums => Sums} || N <- lists:seq(1, Deep)],
        #{rows := Rows, all := Deep} =
            sderl_prof_family:rows(Branches, fun(P) -> P >= 1 end, 100),
        ?assertEqual([{N - 1, N} || N <- lists:seq(1, 100)],
                     [{Depth, P} || #{depth := Depth, process := P} <- Rows])
    end}.

%% A recording in which nothing happened.
empty_test() ->
    with_dir(fun(Dir) ->
        ok = book(Dir, [], 1),
        {ok, View} = sderl_prof_view:open(Dir, fun(_, _) -> ok end),
        #{events := 0, duration := 1, processes := 0} = sderl_prof_view:about(View),
        {ok, #{running := [+0.0], lanes := [#{intervals := []}]}} =
            sderl_prof_view:window(#{from => 0, to => 1, columns => 5, processes => [1]}, View),
        {ok, #{processes := [], matching := 0}} = sderl_prof_view:processes(
            #{sort => run, search => ~"", limit => 5, numbers => []}, View),
        {ok, #{count := 0}} = sderl_prof_view:messages(#{from => 0, to => 1, limit => 5}, View),
        {ok, #{ns := 0, frames := [], graph := #{functions := [], edges := []}}} =
            sderl_prof_view:calls(#{from => 0, to => 1}, View),
        {ok, #{places := 0, rows := []}} =
            sderl_prof_view:waits(#{from => 0, to => 1, sort => sum, limit => 5}, View),
        {error, {no_function, 1}} = sderl_prof_view:source(1, View),
        {ok, #{path := null}} = sderl_prof_view:path(#{from => 0, to => 1, process => none,
                                                       segments => 5}, View),
        #{rows := [#{run := 0}, #{omitted := 3}]} = sderl_prof_view:tree(#{limit => 5}, View),
        ok = sderl_prof_view:close(View)
    end).

%% If pairs of processes were left out of the index, its problems say how many.
pruned_test() ->
    with_dir(fun(Dir) ->
        ok = book(Dir, [{0, ?SEND, 1, 1, 2, 7}], 1),
        ok = sderl_prof_index:make(Dir, #{}),
        {ok, Index} = sderl_prof_index:open(Dir),
        File = filename:join([Dir, "pages", "index"]),
        ok = file:write_file(File, term_to_binary(Index#{pairs_pruned := 12})),
        {ok, View} = sderl_prof_view:open(Dir, fun(_, _) -> ok end),
        #{problems := [_, Pruned]} = sderl_prof_view:about(View),
        ?assertMatch({0, _}, binary:match(Pruned, ~"12 pairs")),
        ok = sderl_prof_view:close(View)
    end).

%% The index is made once, and again if it is damaged.
made_test() ->
    {Dir, View} = small(),
    ok = sderl_prof_view:close(View),
    true = sderl_prof_index:is_made(Dir),
    ok = file:write_file(filename:join([Dir, "pages", "index"]), ~"nothing"),
    false = sderl_prof_index:is_made(Dir),
    {error, {no_book, _}} = sderl_prof_view:open(filename:join(Dir, "elsewhere"),
                                                 fun(_, _) -> ok end),
    ok = file:del_dir_r(Dir).

%% A virtual machine that has just started knows fewer atoms than this one: it still opens the
%% index, and does not make it again.
fresh_test_() ->
    {timeout, 120, fun() ->
        {Dir, View} = small(),
        ok = sderl_prof_view:close(View),
        Path = filename:dirname(code:which(sderl_prof_book)),
        {ok, Peer, _} = peer:start_link(#{connection => standard_io, wait_boot => 60_000,
                                          args => ["-pa", Path]}),
        {ok, _} = peer:call(Peer, sderl_prof_book, open, [Dir], 60_000),
        {ok, #{processes := 2}} = peer:call(Peer, sderl_prof_index, open, [Dir], 60_000),
        %% The values that a recorder writes are atoms that it knows, too.
        with_dir(fun(Recording) ->
            ok = sderl_prof_files:recording(Recording, #{system_profile => taken}, []),
            {ok, Made} = peer:call(Peer, sderl_prof, open, [Recording, #{}], 60_000),
            {ok, Book} = sderl_prof_book:open(Made),
            #{problems := [], info := #{system_profile := taken}} = sderl_prof_book:meta(Book),
            ok = sderl_prof_book:close(Book)
        end),
        ok = peer:stop(Peer),
        ok = file:del_dir_r(Dir)
    end}.

flame_test() ->
    ?assertEqual({10_000, [{1, 10_000, [{2, 7_000, [{3, 4_000, []}]}, {4, 2_000, []}]}]},
                 sderl_prof_flame:tree([{[1], 1_000}, {[2, 1], 3_000}, {[3, 2, 1], 4_000},
                                        {[4, 1], 1_998}, {[5, 4, 1], 2}], 100)),
    {10_000, [{1, _, [{2, _, []}]}]} =
        sderl_prof_flame:tree([{[2, 1], 7_000}, {[4, 1], 2_000}, {[1], 1_000}], 2).

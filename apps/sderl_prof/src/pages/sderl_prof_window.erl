%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_window).
-moduledoc """
What some processes do in a part of the time, in columns for a picture.

A window with few events is read event by event, from the last written states before it on, and is
exact to the nanosecond. One with more is read from the parts of a level (`m:sderl_prof_index`), and
begins and ends with such a part; its sums are as exact. So a window costs the events of a few
blocks, or the rows of as many parts as there are columns, however long the trace is.
""".

-export([make/2, by_events/2, by_parts/2, pairs/3, events/3, is_few/1, start/2, blocks/3]).
-export_type([view/0, request/0, window/0, interval/0]).

-include("sderl_prof_event.hrl").

%% Events that are read one by one.
-define(MOST_EVENTS, 400_000).
%% The same where only messages are counted.
-define(MOST_EVENTS_OF_PAIRS, 2_000_000).
-define(MOST_PAIRS, 200_000).
-define(MOST_INTERVALS, 20_000).

-type view() :: #{book := sderl_prof_book:book(), index := sderl_prof_index:index(),
                  levels := file:fd(), states := file:fd(), atom() => term()}.
-doc "Times are in nanoseconds of the trace's clock.".
-type request() :: #{from := integer(), to := integer(), columns := pos_integer(),
                     processes := [pos_integer()]}.
-doc "A wait has the word of its place, and the sender of the first message that came meanwhile.".
-type interval() :: {running | runnable | waiting | gc | exiting, From :: integer(),
                     To :: integer(), Site :: non_neg_integer(), Waker :: non_neg_integer()}.
-doc """
`from` and the width of columns may be others than those that were asked for. `intervals` are those
of each process, where they are few enough.
""".
-type window() :: #{from := integer(), width := pos_integer(), columns := pos_integer(),
                    exact := boolean(), grid := sderl_prof_grid:grid(),
                    intervals := none | #{pos_integer() => [interval()]}}.

-record(acc, {grid, book, from, to, intervals = [], count = 0}).

-doc "The window.".
-spec make(request(), view()) -> window().
make(#{from := From, to := To} = Request, View) ->
    case is_few(events(From, To, View)) of
        true -> by_events(Request, View);
        false -> by_parts(Request, View)
    end.

-doc "Whether so many events are read one by one.".
-spec is_few(number()) -> boolean().
is_few(Events) -> Events =< ?MOST_EVENTS.

-doc "How many events a part of the time has, at most: blocks are counted as a whole.".
-spec events(integer(), integer(), view()) -> number().
events(From, To, #{book := Book}) ->
    lists:sum([Count || {_, First, Last, Count} <- sderl_prof_book:table(Book),
                        First =< To, Last >= From]).

grid(Request, From, Width, Columns, View) ->
    sderl_prof_grid:new(lanes(Request, View), From, Width, Columns).

%% Process 0 stands for all together; each of several nodes has a lane for all of its processes.
lanes(#{processes := Processes}, #{book := Book, index := #{schedulers := Schedulers}}) ->
    [0 | Processes] ++ [sderl_prof_index:scheduler(S) || S <- Schedulers]
        ++ [sderl_prof_index:node(N) || #{number := N} <- sderl_prof_book:nodes(Book)].

%% ---------------------------------------------------------------- event by event

-doc "The window, exact, whatever it costs.".
-spec by_events(request(), view()) -> window().
by_events(#{from := From, to := To, columns := Columns} = Request, View) ->
    #{book := Book, index := #{mode := Mode, to := End}} = View,
    Width = max(1, divided(To - From, Columns)),
    Count = max(1, divided(To - From, Width)),
    Grid = grid(Request, From, Width, Count, View),
    {First, Saved, Awake} = start(From, View),
    New = sderl_prof_activity:restore(Saved, Mode, fun sink/7,
                                      #acc{grid = Grid, book = Book, from = From,
                                           to = From + Width * Count}),
    {Blocks, Rest} = blocks(First, From + Width * Count, sderl_prof_book:table(Book)),
    {Activity, {Sleepless, _}, Last} = lists:foldl(fun(Block, State) ->
        sderl_prof_book:fold_block(Book, Block, fun step/7, State)
    end, {New, {Awake, #{S => true || S := _ <- Awake}}, From}, Blocks),
    Until = case Rest of
        [] -> End;
        _ -> Last
    end,
    {_, Acc} = sderl_prof_activity:finish(Until, collected(Rest, Until, Activity)),
    _ = maps:foreach(fun(S, Since) -> awake(S, Since, Until, Acc) end, Sleepless),
    #{from => From, width => Width, columns => Count, exact => true, grid => Grid,
      intervals => intervals(Acc)}.

-doc """
The blocks to be read from the first one on, and those behind them. One block more than the part
has: what goes on at its end is known then, but for processes that do nothing in all of that block.
""".
-spec blocks(First :: pos_integer(), To :: integer(), [sderl_prof_book:row()]) ->
    {[pos_integer()], Behind :: [sderl_prof_book:row()]}.
blocks(First, To, Table) ->
    {In, Behind} = lists:splitwith(fun({_, From, _, _}) -> From =< To end,
                                   lists:nthtail(First - 1, Table)),
    case Behind of
        [] -> {numbers(In), []};
        [Next | Rest] -> {numbers(In ++ [Next]), Rest}
    end.

%% Garbage collections that have not ended by then.
collected([], _, Activity) -> Activity;
collected(_, Until, Activity) ->
    Acc = lists:foldl(fun({P, Since}, Acc) -> sink(gc, P, Since, Until, 0, 0, Acc) end,
                      sderl_prof_activity:acc(Activity),
                      sderl_prof_activity:collecting(Activity)),
    sderl_prof_activity:put_acc(Acc, Activity).

numbers(Rows) -> [N || {N, _, _, _} <- Rows].

divided(A, B) -> (A + B - 1) div B.

-doc "The block from which on a part is read, and what processes and schedulers do before it.".
-spec start(integer(), view()) ->
    {pos_integer(), sderl_prof_activity:saved(), Awake :: #{pos_integer() => integer()}}.
start(From, #{index := #{checks := Checks}, states := File}) ->
    case lists:takewhile(fun({T, _, _, _}) -> T =< From end, Checks) of
        [] -> {1, [], #{}};
        Before ->
            {_, Block, _, _} = Check = lists:last(Before),
            {Saved, Awake} = sderl_prof_index:states(Check, File),
            {Block, Saved, Awake}
    end.

step(T, K, S, _, _, _, {Activity, Awake, Last})
  when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
    #acc{from = Begin} = Acc = sderl_prof_activity:acc(Activity),
    {Since, Awake1} = sderl_prof_schedulers:change(K, S, {T, Begin}, Awake),
    _ = [awake(S, Since, T, Acc) || Since =/= none],
    {Activity, Awake1, max(T, Last)};
step(T, K, S, P, A, B, {Activity, Awake, Last}) ->
    {sderl_prof_activity:step(T, K, S, P, A, B, Activity), Awake, max(T, Last)}.

awake(S, From, To, #acc{grid = Grid}) ->
    sderl_prof_grid:add(running, sderl_prof_index:scheduler(S), From, To, Grid).

sink(What, P, From, To, Site, Waker, #acc{grid = Grid, book = Book} = Acc) ->
    _ = [sderl_prof_grid:add(What, All, From, To, Grid)
         || What =:= running orelse What =:= runnable,
            All <- lists:usort([0, sderl_prof_index:node_lane(P, Book)])],
    case sderl_prof_grid:has(P, Grid) of
        true ->
            _ = [sderl_prof_grid:add(What, P, From, To, Grid) || What =/= exiting],
            kept(P, {What, max(From, Acc#acc.from), min(To, Acc#acc.to), Site, Waker}, Acc);
        false -> Acc
    end.

kept(_, {_, From, To, _, _}, Acc) when To =< From -> Acc;
kept(_, _, #acc{count = N} = Acc) when N >= ?MOST_INTERVALS ->
    Acc#acc{count = N + 1, intervals = []};
kept(P, Interval, #acc{count = N, intervals = Kept} = Acc) ->
    Acc#acc{count = N + 1, intervals = [{P, Interval} | Kept]}.

intervals(#acc{count = N}) when N > ?MOST_INTERVALS -> none;
intervals(#acc{intervals = Kept}) ->
    maps:map(fun(_, List) -> lists:keysort(2, List) end,
             maps:groups_from_list(fun({P, _}) -> P end, fun({_, I}) -> I end, Kept)).

%% ---------------------------------------------------------------- part by part

-doc "The window in parts of a level.".
-spec by_parts(request(), view()) -> window().
by_parts(#{from := From, to := To, columns := Columns} = Request, View) ->
    #{index := #{from := Begin, levels := Levels}, levels := File} = View,
    Wanted = divided(To - From, Columns),
    #{width := Part} = Level = level(Wanted, Levels),
    Parts = max(1, divided(Wanted, Part)),
    Width = Parts * Part,
    First = (From - Begin) div Width,
    Count = max(1, divided(To - Begin - First * Width, Width)),
    Grid = grid(Request, Begin + First * Width, Width, Count, View),
    FirstPart = First * Parts,
    Within = {FirstPart, FirstPart + Count * Parts - 1},
    ok = sderl_prof_index:rows(Level, {Within, lanes(Request, View)}, File,
                               fun(Rows) -> rows(Rows, FirstPart, Parts, Part, Grid) end),
    #{from => Begin + First * Width, width => Width, columns => Count, exact => false,
      grid => Grid, intervals => none}.

%% The widest that is no wider than a column, or the narrowest.
level(Wanted, [Narrowest | Wider]) ->
    lists:foldl(fun(#{width := Width} = Level, Best) ->
        case Width =< Wanted of
            true -> Level;
            false -> Best
        end
    end, Narrowest, Wider).

rows(Rows, FirstPart, Parts, Part, Grid) ->
    sderl_prof_cells:fold_rows(
        fun(What, P, {part, N, Ns}, ok) when N >= FirstPart ->
               sderl_prof_grid:add_ns(What, P, (N - FirstPart) div Parts, Ns, Grid);
           (_, _, {part, _, _}, ok) -> ok;
           (What, P, {whole, First, Last, Times}, ok) ->
               sderl_prof_grid:add_times(What, P, (First - FirstPart) * Part,
                                         (Last - FirstPart) * Part, Times, Grid)
        end, fun(P) -> sderl_prof_grid:has(P, Grid) end, ok, Rows).

%% ---------------------------------------------------------------- messages

-doc "Messages between pairs in a part of the time; `too_many` where it has too many events.".
-spec pairs(integer(), integer(), view()) ->
    {ok, #{{pos_integer(), pos_integer()} => sderl_prof_tally:row()}} | {error, too_many}.
pairs(From, To, #{index := #{from := Begin, to := End, messages := Messages}})
  when From =< Begin, To >= End ->
    {ok, Messages};
pairs(From, To, #{book := Book} = View) ->
    case events(From, To, View) =< ?MOST_EVENTS_OF_PAIRS of
        true ->
            Tally = sderl_prof_book:fold(Book, #{from => From, to => To},
                fun(_, ?SEND, _, P, A, B, T) -> sderl_prof_tally:add({P, A}, B, T);
                   (_, _, _, _, _, _, T) -> T
                end, sderl_prof_tally:new(?MOST_PAIRS)),
            {Rows, _, _} = sderl_prof_tally:result(Tally),
            {ok, Rows};
        false -> {error, too_many}
    end.

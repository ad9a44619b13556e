%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_waits).
-moduledoc """
What pages ask of waits: by the function in which processes wait, how often, for how long, who waits
there and for whom; those of the whole, or of a part of the time, which is read event by event.
Answers are maps that can be JSON.
""".

-export([waits/2, of_process/2]).

-include("sderl_prof_event.hrl").

-define(MOST_KEYS, 200_000).
%% Processes that are named for a place.
-define(PEERS, 5).
%% Places and processes that are named for a process.
-define(ROWS, 100).

-record(part, {from :: integer(), to :: integer(), whose :: pos_integer() | none,
               waits :: sderl_prof_tally:tally()}).
-type rows() :: #{{P :: pos_integer(), Site :: non_neg_integer(), Waker :: non_neg_integer()}
                  => sderl_prof_tally:row()}.

-doc """
The places with most waits by `sort`, at most `limit`; of one process where one is given. A wait
that is only partly in the part of the time counts with its time in it. `of` tells whether the
answer is of the part, or of the whole, because the part has too many events.
""".
-spec waits(#{from := integer(), to := integer(), sort := sum | count | mean,
              process => pos_integer() | none, limit := pos_integer()},
            sderl_prof_window:view()) ->
    {ok, map()} | {error, sderl_prof_part:reason() | {no_process, integer()}}.
waits(Asked, #{book := Book} = View) ->
    #{process := Process, sort := Sort, limit := Limit} = Request =
        maps:merge(#{process => none}, Asked),
    maybe
        {ok, Whose} ?= sderl_prof_part:whose(Process, View),
        {ok, Of, Waits} ?= asked(Request, View),
        {ok, (answer(Sort, Limit, Waits, Book))#{'of' => Of, whose => Whose}}
    end.

asked(#{from := From0, to := To0, process := P}, #{index := #{waits := Waits}} = View) ->
    maybe
        {ok, Range} ?= sderl_prof_part:range(From0, To0, View),
        Few = case Range of
            whole -> false;
            {From, To} -> sderl_prof_window:is_few(sderl_prof_window:events(From, To, View))
        end,
        case Range of
            {Begin, End} when Few -> {ok, part, read(Begin, End, P, View)};
            _ -> {ok, whole, maps:filter(fun({Q, _, _}, _) -> is_of(Q, P) end, Waits)}
        end
    end.

is_of(_, none) -> true;
is_of(Q, P) -> Q =:= P.

answer(Sort, Limit, Waits, Book) ->
    Places = maps:groups_from_list(fun({{_, Site, _}, _}) -> Site end, maps:to_list(Waits)),
    Rows = [{Site, sum([Row || {_, Row} <- Of]), Of} || Site := Of <- Places],
    Sorted = lists:sort(fun({S, A, _}, {T, B, _}) -> {by(Sort, A), -S} >= {by(Sort, B), -T} end,
                        Rows),
    #{
        places => length(Rows),
        count => lists:sum([N || {_, {N, _, _}, _} <- Rows]),
        sum => lists:sum([Sum || {_, {_, Sum, _}, _} <- Rows]),
        rows => [place(Row, Book) || Row <- lists:sublist(Sorted, Limit)]
    }.

by(count, {N, _, _}) -> N;
by(sum, {_, Sum, _}) -> Sum;
by(mean, {N, Sum, _}) -> Sum / N.

place({Site, Row, Of}, Book) ->
    Waiters = together(fun({P, _, _}) -> P end, Of),
    Wakers = maps:remove(0, together(fun({_, _, Waker}) -> Waker end, Of)),
    (measured(Row))#{
        function => Site, site => site(Site, Book),
        processes => map_size(Waiters), waiters => peers(Waiters, ?PEERS, Book),
        wakers => map_size(Wakers), waits_for => peers(Wakers, ?PEERS, Book)
    }.

measured({N, Sum, Squares}) ->
    #{count => N, sum => Sum, mean => Sum / N,
      deviation => math:sqrt(max(0.0, Squares / N - (Sum / N) * (Sum / N)))}.

site(0, _) -> ~"unknown";
site(Site, Book) -> sderl_prof_book:word(Site, Book).

together(Key, Rows) ->
    maps:map(fun(_, Of) -> sum(Of) end,
             maps:groups_from_list(fun({K, _}) -> Key(K) end, fun({_, Row}) -> Row end, Rows)).

sum(Rows) ->
    lists:foldl(fun({N, Sum, Squares}, {N1, Sum1, Squares1}) ->
        {N + N1, Sum + Sum1, Squares + Squares1}
    end, {0, 0, 0.0}, Rows).

peers(Rows, Most, Book) ->
    [#{process => P, name => sderl_prof_book:label(P, Book), count => N, sum => Sum}
     || {P, {N, Sum, _}} <- longest(Rows, Most)].

longest(Rows, Most) ->
    lists:sublist(lists:sort(fun({P, {_, A, _}}, {Q, {_, B, _}}) -> {A, -P} >= {B, -Q} end,
                             maps:to_list(Rows)), Most).

-doc "Of a process: where it waits, for whom, and who waits for it, in the whole recording.".
-spec of_process(pos_integer(), sderl_prof_window:view()) -> #{atom() => [map()]}.
of_process(P, #{book := Book, index := #{waits := Waits}}) ->
    Own = [{Key, Row} || {Q, _, _} = Key := Row <- Waits, Q =:= P],
    For = [{Key, Row} || {_, _, Waker} = Key := Row <- Waits, Waker =:= P],
    #{
        waits => [(measured(Row))#{site => site(Site, Book), function => Site}
                  || {Site, Row} <- longest(together(fun({_, Site, _}) -> Site end, Own), ?ROWS)],
        waits_for => peers(maps:remove(0, together(fun({_, _, Waker}) -> Waker end, Own)), ?ROWS,
                           Book),
        waited_for_by => peers(together(fun({Q, _, _}) -> Q end, For), ?ROWS, Book)
    }.

%% ---------------------------------------------------------------- event by event

-spec read(integer(), integer(), pos_integer() | none, sderl_prof_window:view()) -> rows().
read(From, To, Process, #{book := Book, index := #{mode := Mode, to := End}} = View) ->
    {First, Saved, _} = sderl_prof_window:start(From, View),
    Part = #part{from = From, to = To, whose = Process, waits = sderl_prof_tally:new(?MOST_KEYS)},
    Begun = sderl_prof_activity:restore(Saved, Mode, fun sink/7, Part),
    {Blocks, Rest} = sderl_prof_window:blocks(First, To, sderl_prof_book:table(Book)),
    {Activity, Last} = lists:foldl(fun(Block, State) ->
        sderl_prof_book:fold_block(Book, Block, fun step/7, State)
    end, {Begun, From}, Blocks),
    Until = case Rest of
        [] -> End;
        _ -> Last
    end,
    {_, #part{waits = Waits}} = sderl_prof_activity:finish(Until, Activity),
    {Rows, _, _} = sderl_prof_tally:result(Waits),
    Rows.

step(T, K, _, _, _, _, {Activity, Last})
  when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
    {Activity, max(T, Last)};
step(T, K, S, P, A, B, {Activity, Last}) ->
    {sderl_prof_activity:step(T, K, S, P, A, B, Activity), max(T, Last)}.

sink(waiting, P, A, B, Site, Waker, #part{from = From, to = To, whose = Whose} = Part) ->
    case min(B, To) - max(A, From) of
        Ns when Ns > 0, Whose =:= none orelse Whose =:= P ->
            Part#part{waits = sderl_prof_tally:add({P, Site, Waker}, Ns, Part#part.waits)};
        _ -> Part
    end;
sink(_, _, _, _, _, _, Part) ->
    Part.

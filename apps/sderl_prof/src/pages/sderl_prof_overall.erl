%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_overall).
-moduledoc """
What sampled nodes told of themselves over time (`m:sderl_prof_series`), as pages ask for it: in
equal columns, of one node or of several together. Pure.
""".

-export([decode/1, columns/3]).
-export_type([overall/0]).

%% As many as there are at most in a file of this application.
-define(MOST_POINTS, 10_000).
-define(MOST_QUEUES, 2_000).

-record(overall, {
    names = [] :: [binary()],
    %% Each with when it begins.
    points = [] :: [{non_neg_integer(), map()}]
}).
-opaque overall() :: #overall{}.

-doc """
The series of a report as it is read from a file; empty where there is none, as in earlier versions,
and `error` where it has another form.
""".
-spec decode(term()) -> {ok, overall()} | error.
decode(none) -> {ok, #overall{}};
decode(#{~"names" := Names, ~"points" := Points}) ->
    try
        true = length(Points) =< ?MOST_POINTS andalso lists:all(fun is_binary/1, Names),
        {Timed, _} = lists:mapfoldl(fun(Read, At) ->
            #{ns := Ns} = Point = point(Read, length(Names)),
            {{At, Point}, At + Ns}
        end, 0, Points),
        {ok, #overall{names = Names, points = Timed}}
    catch
        error:_ -> error
    end;
decode(_) -> error.

point(#{~"ns" := Ns, ~"run_queue" := Mean, ~"most_run_queue" := Most, ~"run_queues" := Queues,
        ~"processes" := Processes, ~"memory" := Memory, ~"mailboxes" := Mailboxes}, Count)
  when is_integer(Ns), Ns > 0, length(Mailboxes) =:= Count, length(Queues) =< ?MOST_QUEUES ->
    #{ns => Ns, run_queue => not_negative(Mean), most_run_queue => not_negative(Most),
      run_queues => [not_negative(Queue) || Queue <- Queues],
      processes => not_negative(Processes), memory => memory(Memory),
      mailboxes => [mailbox(Box) || Box <- Mailboxes]}.

not_negative(N) when is_number(N), N >= 0 -> N.

memory(null) -> null;
memory(#{~"total" := _} = Memory) -> maps:map(fun(_, Bytes) -> not_negative(Bytes) end, Memory).

mailbox(null) -> null;
mailbox(#{~"mean" := Mean, ~"most" := Most}) ->
    #{mean => not_negative(Mean), most => not_negative(Most)}.

-doc """
So many columns of so long a time, of these nodes together: the processes that wait for a scheduler
on average (`run_queue`), the most that did at a time on a node, processes, and bytes by what they
are for, null where no node tells them. Beside that the mailbox of each name on each node, and each
run queue of a node that has no more than 64 where it is one alone; null where there was no reading.
""".
-spec columns([{Node :: binary(), overall()}], Duration :: pos_integer(), Count :: pos_integer()) ->
    #{atom() => term()}.
columns(Nodes, Duration, Count) ->
    Times = [{Duration * N div Count, max(Duration * N div Count + 1, Duration * (N + 1) div Count)}
             || N <- lists:seq(0, Count - 1)],
    Known = [Of || {_, #overall{points = [_ | _]}} = Of <- Nodes],
    #{
        columns => [column(From, To, Known) || Known =/= [], {From, To} <- Times],
        mailboxes => [#{node => Node, name => Name,
                        mean => [mean(From, To, Of, box(N, mean)) || {From, To} <- Times],
                        most => greatest([of_box(N, most, Point)
                                          || {_, Point} <- Of#overall.points])}
                      || {Node, #overall{names = Names} = Of} <- Known,
                         {N, Name} <- lists:enumerate(Names)],
        run_queues => run_queues(Known, Times)
    }.

column(From, To, Known) ->
    Sum = fun(Key) ->
        added([mean(From, To, Of, fun(Point) -> map_get(Key, Point) end) || {_, Of} <- Known])
    end,
    Memory = fun(Key) -> added([mean(From, To, Of, bytes(Key)) || {_, Of} <- Known]) end,
    #{
        at => From, run_queue => Sum(run_queue), processes => Sum(processes),
        most_run_queue => greatest([map_get(most_run_queue, Point)
                                    || {_, Of} <- Known, Point <- in(From, To, Of)]),
        memory => case Memory(~"total") of
            null -> null;
            Total -> #{total => Total, processes => none_is_0(Memory(~"processes")),
                       binary => none_is_0(Memory(~"binary")), ets => none_is_0(Memory(~"ets"))}
        end
    }.

none_is_0(null) -> 0;
none_is_0(N) -> N.

bytes(Key) ->
    fun(#{memory := null}) -> null;
       (#{memory := Memory}) -> maps:get(Key, Memory, null)
    end.

box(N, Key) -> fun(Point) -> of_box(N, Key, Point) end.

of_box(N, Key, #{mailboxes := Boxes}) ->
    case lists:nth(N, Boxes) of
        null -> null;
        Box -> map_get(Key, Box)
    end.

-define(MOST_SHOWN, 64).

run_queues([{_, #overall{points = [{_, #{run_queues := Queues}} | _]} = Of}], Times)
  when length(Queues) =< ?MOST_SHOWN ->
    [[mean(From, To, Of, fun(#{run_queues := All}) -> nth(N, All) end) || {From, To} <- Times]
     || {N, _} <- lists:enumerate(Queues)];
run_queues(_, _) -> [].

nth(N, List) when N =< length(List) -> lists:nth(N, List);
nth(_, _) -> null.

%% The mean of the points in a column, weighted by their time in it; null where none has a number.
mean(From, To, #overall{points = Points}, Value) ->
    {Sum, All} = lists:foldl(fun({At, #{ns := Ns} = Point}, {Sum, All} = Acc) ->
        case {overlap(From, To, At, At + Ns), Value(Point)} of
            {0, _} -> Acc;
            {_, null} -> Acc;
            {By, N} -> {Sum + By * N, All + By}
        end
    end, {0, 0}, Points),
    case All of 0 -> null; _ -> Sum / All end.

in(From, To, #overall{points = Points}) ->
    [Point || {At, #{ns := Ns} = Point} <- Points, overlap(From, To, At, At + Ns) > 0].

overlap(From, To, From2, To2) -> max(0, min(To, To2) - max(From, From2)).

added(Values) ->
    case [N || N <- Values, N =/= null] of
        [] -> null;
        Numbers -> lists:sum(Numbers)
    end.

greatest(Values) ->
    case [N || N <- Values, N =/= null] of
        [] -> null;
        Numbers -> lists:max(Numbers)
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_series).
-moduledoc """
What a node tells of itself while it is sampled, over time: its run queues, how many processes it
has, its memory, and the mailboxes of named processes. Pure but for `reading/1` and `memory/0`, and
needs no other module, so that it can be loaded into any node.

Readings are summed in points of the time, of which there are 120 at most: where there would be
more, each two become one.
""".

-export([new/3, reading/1, memory/0, add/2, is_due/2, next/3, result/2]).
-export_type([series/0, reading/0, memory/0, point/0, result/0]).

-define(POINTS, 60).
-define(LEAST_NS, 250_000_000).

-doc "Run queues in the order of `erlang:statistics(run_queue_lengths_all)`.".
-type reading() :: #{queues := [non_neg_integer()], processes := non_neg_integer(),
                     mailboxes := [non_neg_integer() | none]}.
-doc "Bytes, by what they are for; `none` where the node does not tell.".
-type memory() :: #{atom() => non_neg_integer()} | none.
-doc """
How long it is, how many readings it has, what these tell on average, and the most of all processes
that waited for a scheduler at a time. `mailboxes` are in the order of the names, `null` where no
process had the name.
""".
-type point() :: #{
    ns := pos_integer(), readings := pos_integer(),
    run_queue := float(), most_run_queue := non_neg_integer(), run_queues := [float()],
    processes := float(), memory := #{atom() => float()} | null,
    mailboxes := [#{mean := float(), most := non_neg_integer()} | null]
}.
-type result() :: #{names := [binary()], points := [point()]}.

-record(point, {
    at :: integer(),
    readings = 0 :: non_neg_integer(),
    queues = [] :: [non_neg_integer()],
    most = 0 :: non_neg_integer(),
    processes = 0 :: non_neg_integer(),
    memories = 0 :: non_neg_integer(),
    memory = #{} :: #{atom() => non_neg_integer()},
    mailboxes = [] :: [{Readings :: non_neg_integer(), Sum :: non_neg_integer(),
                        Most :: non_neg_integer()}]
}).
-record(series, {
    point_ns :: pos_integer(),
    names :: [atom()],
    %% The present one first.
    points :: [#point{}, ...]
}).
-opaque series() :: #series{}.

-doc "No readings yet, from now on, of a sampling that is to take so long.".
-spec new(At :: integer(), Ns :: pos_integer(), Names :: [atom()]) -> series().
new(At, Ns, Names) ->
    #series{point_ns = max(?LEAST_NS, Ns div ?POINTS), names = Names, points = [#point{at = At}]}.

-doc "What this node tells now, at little cost.".
-spec reading(Names :: [atom()]) -> reading().
reading(Names) ->
    #{queues => erlang:statistics(run_queue_lengths_all),
      processes => erlang:system_info(process_count),
      mailboxes => [mailbox(whereis(Name)) || Name <- Names]}.

mailbox(Pid) when is_pid(Pid) ->
    case process_info(Pid, message_queue_len) of
        {message_queue_len, Length} -> Length;
        undefined -> none
    end;
mailbox(_) -> none.

-doc "Its memory, for which each scheduler is asked: not for every reading.".
-spec memory() -> memory().
memory() ->
    try maps:from_list(erlang:memory([total, processes, binary, ets, code, atom]))
    catch
        error:_ -> none
    end.

-doc "Adds a reading.".
-spec add(reading(), series()) -> series().
add(#{queues := Queues, processes := Processes, mailboxes := Mailboxes},
    #series{points = [Point | Points]} = S) ->
    Now = #point{
        at = Point#point.at, readings = 1, queues = Queues, most = lists:sum(Queues),
        processes = Processes,
        mailboxes = [case M of none -> {0, 0, 0}; _ -> {1, M, M} end || M <- Mailboxes]
    },
    S#series{points = [joined(Point, Now) | Points]}.

-doc "Whether the present point has been long enough.".
-spec is_due(Now :: integer(), series()) -> boolean().
is_due(Now, #series{point_ns = Ns, points = [#point{at = At} | _]}) -> Now - At >= Ns.

-doc "Begins the next point, with the memory that there is then.".
-spec next(At :: integer(), memory(), series()) -> series().
next(At, Memory, #series{point_ns = Ns, points = [Last | Points]} = S) ->
    All = [#point{at = At}, with_memory(Memory, Last) | Points],
    case length(All) > 2 * ?POINTS of
        true -> S#series{point_ns = 2 * Ns, points = lists:reverse(halved(lists:reverse(All)))};
        false -> S#series{points = All}
    end.

with_memory(none, Point) -> Point;
with_memory(Memory, #point{memory = Before, memories = N} = Point) ->
    Point#point{memories = N + 1, memory = maps:merge_with(fun(_, A, B) -> A + B end, Before,
                                                            Memory)}.

%% The present one, which is last, stays by itself.
halved([A, B, Next | Rest]) -> [joined(A, B) | halved([Next | Rest])];
halved(Rest) -> Rest.

joined(#point{} = A, #point{} = B) ->
    #point{
        at = A#point.at,
        readings = A#point.readings + B#point.readings,
        queues = added(A#point.queues, B#point.queues),
        most = max(A#point.most, B#point.most),
        processes = A#point.processes + B#point.processes,
        memories = A#point.memories + B#point.memories,
        memory = maps:merge_with(fun(_, X, Y) -> X + Y end, A#point.memory, B#point.memory),
        mailboxes = boxes(A#point.mailboxes, B#point.mailboxes)
    }.

%% Of a point without readings there are none.
added([], B) -> B;
added(A, []) -> A;
added([A | As], [B | Bs]) -> [A + B | added(As, Bs)].

boxes([], B) -> B;
boxes(A, []) -> A;
boxes(A, B) ->
    lists:zipwith(fun({N, Sum, Most}, {N2, Sum2, Most2}) ->
        {N + N2, Sum + Sum2, max(Most, Most2)}
    end, A, B).

-doc "All points that have readings; the last one ends at this time.".
-spec result(End :: integer(), series()) -> result().
result(End, #series{names = Names, points = Points}) ->
    #{names => [atom_to_binary(Name) || Name <- Names], points => points(End, Points, [])}.

points(_, [], Told) -> Told;
points(End, [#point{readings = 0, at = At} | Points], Told) -> points(max(At, End), Points, Told);
points(End, [#point{at = At, readings = N, queues = Queues, most = Most, processes = Processes,
                    mailboxes = Mailboxes} = Point | Points], Told) ->
    One = #{
        ns => max(1, End - At), readings => N,
        run_queue => lists:sum(Queues) / N, most_run_queue => Most,
        run_queues => [Sum / N || Sum <- Queues],
        processes => Processes / N,
        memory => memory_of(Point),
        mailboxes => [mailbox_of(Box) || Box <- Mailboxes]
    },
    points(At, Points, [One | Told]).

memory_of(#point{memories = 0}) -> null;
memory_of(#point{memories = N, memory = Memory}) -> #{Key => Sum / N || Key := Sum <- Memory}.

mailbox_of({0, _, _}) -> null;
mailbox_of({N, Sum, Most}) -> #{mean => Sum / N, most => Most}.

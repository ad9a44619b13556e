%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_queue).
-moduledoc """
The future events of a simulated world, by time.

A calendar: nearly all events are due within a few tens of ms, so the current page has a place for
each ms, and so has the next one. Later events are kept unsorted for each page, until that is the
next one. Events of one ms happen in the order in which they were put there.
""".

-export([new/0, put/3, take/3]).
-export_type([queue/0]).

-define(PAGE_BITS, 5).
-define(PAGE_MS, (1 bsl ?PAGE_BITS)).

-type page() :: tuple().    % for each ms its events, newest first

-record(queue, {
    number = 0 :: non_neg_integer(),        % of the current page
    this :: page(),
    next :: page(),
    %% By page, newest first.
    later = #{} :: #{pos_integer() => nonempty_list({Place :: pos_integer(), term()})}
}).
-opaque queue() :: #queue{}.

-doc "A queue without events.".
-spec new() -> queue().
new() -> #queue{this = blank(), next = blank()}.

-doc "Puts an event, at a time that is not before the last events that were taken.".
-spec put(non_neg_integer(), term(), queue()) -> queue().
put(At, Event, #queue{number = Number, this = This, next = Next, later = Later} = Queue) ->
    Place = place(At),
    case page(At) - Number of
        0 -> Queue#queue{this = write(Place, Event, This)};
        1 -> Queue#queue{next = write(Place, Event, Next)};
        _ ->
            Page = page(At),
            Known = maps:get(Page, Later, []),
            Queue#queue{later = Later#{Page => [{Place, Event} | Known]}}
    end.

-doc "The first events from one time to another, the oldest first. There must be none before.".
-spec take(non_neg_integer(), non_neg_integer(), queue()) ->
    {non_neg_integer(), nonempty_list(term()), queue()} | {none, queue()}.
take(From, To, Queue) when From > To -> {none, Queue};
take(From, To, #queue{number = Number} = Queue) when From bsr ?PAGE_BITS > Number ->
    take(From, To, turned(Queue));
take(From, To, #queue{this = This} = Queue) ->
    Place = place(From),
    case element(Place, This) of
        [] -> take(From + 1, To, Queue);
        Events -> {From, lists:reverse(Events), Queue#queue{this = setelement(Place, This, [])}}
    end.

turned(#queue{number = Number, next = Next, later = Later} = Queue) ->
    {Waiting, Left} = case maps:take(Number + 2, Later) of
        error -> {[], Later};
        Found -> Found
    end,
    Page = lists:foldr(fun({Place, Event}, Acc) -> write(Place, Event, Acc) end, blank(), Waiting),
    Queue#queue{number = Number + 1, this = Next, next = Page, later = Left}.

page(At) -> At bsr ?PAGE_BITS.

place(At) -> At band (?PAGE_MS - 1) + 1.

blank() -> erlang:make_tuple(?PAGE_MS, []).

write(Place, Event, Page) -> setelement(Place, Page, [Event | element(Place, Page)]).

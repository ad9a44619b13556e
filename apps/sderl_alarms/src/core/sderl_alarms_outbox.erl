%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_outbox).
-moduledoc """
The changes that wait to be delivered: a queue for each route, bounded, in order, one delivery at a
time. Pure.

A delivery that fails is tried again after 1, 2, 4, ... and at most 60 s; after 100 attempts, more
than an hour and a half, it is given up. The next one waits meanwhile, so a receiver gets the
changes of an alarm in order. When more than 1,000 wait, the oldest is dropped. All of this is
counted.

Of several monitoring nodes only the leader adds and delivers, and its rules decide which routes get
a change. The others copy its queues (`enqueue/2`, `drop/3`, `replace/2`), and continue with them
when they lead.
""".

-export([new/2, change/2, add/3, due/2, done/5, save/1, info/1]).
-export([enqueue/2, drop/3, has/3, replace/2]).
-export_type([info/0]).
-export_type([outbox/0, item/0, counts/0, saved/0]).

-doc "A change, and the routes that get it. `id` is the same in each attempt.".
-type item() :: #{
    id := binary(),
    routes := [binary()],
    kind := sderl_alarms_core:kind(),
    t := sderl_mon_types:t(),
    alarm := sderl_alarms_core:alarm()
}.

-doc "Counts of one route since its first start; each try is an attempt.".
-type counts() :: #{
    attempts := non_neg_integer(),
    delivered := non_neg_integer(),
    failed := non_neg_integer(),
    given_up := non_neg_integer(),
    overflowed := non_neg_integer()
}.

-doc "The queues as they are kept, and sent to other monitoring nodes.".
-type saved() :: #{
    number := non_neg_integer(),
    boxes := #{Route :: binary() => #{items := [item()], counts := counts()}}
}.

-record(box, {
    route :: sderl_alarms_routes:route(),
    waiting = queue:new() :: queue:queue(item()),
    size = 0 :: non_neg_integer(),
    %% Of the first that waits.
    tries = 0 :: non_neg_integer(),
    %% The next try; by the monotonic clock, which may be below 0.
    at = now :: now | integer(),
    %% The change that is being delivered: as a rule the first that waits.
    sent = none :: none | binary(),
    error = ~"" :: binary(),
    counts :: counts()
}).

-opaque outbox() :: #{boxes := #{binary() => #box{}}, number := non_neg_integer()}.

-define(MOST, 1_000).
-define(MOST_TRIES, 100).
-define(MOST_PAUSE_MS, 60_000).

-doc """
The queues of these routes, with what `Before` has for them. What was being sent is sent again,
because it may not have arrived.
""".
-spec new([sderl_alarms_routes:route()], Before :: saved() | #{}) -> outbox().
new(Routes, Before) ->
    Boxes = maps:get(boxes, Before, #{}),
    #{number => maps:get(number, Before, 0),
      boxes => #{Name => restored(Route, maps:get(Name, Boxes, none))
                 || #{name := Name} = Route <- Routes}}.

restored(Route, none) ->
    Zero = #{attempts => 0, delivered => 0, failed => 0, given_up => 0, overflowed => 0},
    #box{route = Route, counts = Zero};
restored(#{name := Name} = Route, #{items := Items, counts := Counts}) ->
    %% A file of an earlier version lacks the routes of an item.
    filled([maps:merge(#{routes => [Name]}, Item) || Item <- Items],
           #box{route = Route, counts = Counts}).

filled(Items, Box) ->
    Box#box{waiting = queue:from_list(Items), size = length(Items), tries = 0, at = now}.

-doc "Changes the routes during deliveries. A route of the same name keeps its queue.".
-spec change([sderl_alarms_routes:route()], outbox()) -> outbox().
change(Routes, #{boxes := Boxes} = Outbox) ->
    Outbox#{boxes := #{Name => case Boxes of
                                   #{Name := Box} -> Box#box{route = Route, tries = 0, at = now};
                                   #{} -> restored(Route, none)
                               end
                       || #{name := Name} = Route <- Routes}}.

-doc "What survives a restart.".
-spec save(outbox()) -> saved().
save(#{boxes := Boxes, number := Number}) ->
    #{number => Number,
      boxes => #{Name => #{items => queue:to_list(Waiting), counts => Counts}
                 || Name := #box{waiting = Waiting, counts = Counts} <- Boxes}}.

-doc "Adds notes for the routes that want them; returns the items, for other monitoring nodes.".
-spec add([sderl_alarms_core:note()], Wall :: sderl_mon_types:t(), outbox()) ->
    {[item()], outbox()}.
add(Notes, Wall, #{number := Number, boxes := Boxes} = Outbox) ->
    Items = [#{id => id(Wall, N), routes => wanted(Alarm, Boxes), kind => Kind, t => Wall,
               alarm => Alarm}
             || {N, {Kind, Alarm}} <- lists:enumerate(Number, Notes)],
    {Items, enqueue(Items, Outbox#{number := Number + length(Notes)})}.

wanted(Alarm, Boxes) ->
    [Name || Name := #box{route = Route} <- Boxes, sderl_alarms_routes:wants(Route, Alarm)].

id(Wall, Number) ->
    iolist_to_binary([atom_to_binary(node()), $-, integer_to_binary(Wall), $-,
                      integer_to_binary(Number)]).

-doc "Puts items into the queues of their routes.".
-spec enqueue([item()], outbox()) -> outbox().
enqueue(Items, #{boxes := Boxes} = Outbox) ->
    Outbox#{boxes := lists:foldl(fun put_item/2, Boxes, Items)}.

%% Routes that only the rules of another node have are skipped.
put_item(#{routes := Routes} = Item, Boxes) ->
    maps:merge(Boxes, #{Name => put_item_in(Item, Box)
                        || Name := Box <- maps:with(Routes, Boxes)}).

put_item_in(Item, #box{waiting = Waiting, size = Size} = Box) ->
    bounded(Box#box{waiting = queue:in(Item, Waiting), size = Size + 1}).

%% Drops the oldest, but not the one that is being sent.
bounded(#box{size = Size} = Box) when Size =< ?MOST -> Box;
bounded(#box{waiting = Waiting, sent = Sent} = Box) ->
    case queue:out(Waiting) of
        {{value, #{id := Sent} = First}, Rest} ->
            dropped(Box#box{waiting = queue:in_r(First, queue:drop(Rest))});
        {_, Rest} ->
            dropped(Box#box{waiting = Rest, tries = 0, at = now})
    end.

dropped(#box{size = Size} = Box) -> count(overflowed, Box#box{size = Size - 1}).

count(What, #box{counts = Counts} = Box) ->
    Box#box{counts = maps:update_with(What, fun(N) -> N + 1 end, Counts)}.

-doc "The items to send now, at most one for each route. They count as being sent from now on.".
-spec due(Now :: integer(), outbox()) ->
    {[{sderl_alarms_routes:route(), item(), Attempt :: pos_integer()}], outbox()}.
due(Now, #{boxes := Boxes} = Outbox) ->
    Due = [{Name, queue:get(Waiting), Box}
           || Name := #box{sent = none, size = Size, at = At, waiting = Waiting} = Box <- Boxes,
              Size > 0, At =:= now orelse At =< Now],
    {[{Route, Item, Tries + 1} || {_, Item, #box{route = Route, tries = Tries}} <- Due],
     Outbox#{boxes := lists:foldl(fun({Name, #{id := Id}, Box}, Acc) ->
         Acc#{Name := count(attempts, Box#box{sent = Id})}
     end, Boxes, Due)}}.

-doc "How a delivery ended.".
-spec done(Name :: binary(), Id :: binary(), ok | {error, binary()}, Now :: integer(), outbox()) ->
    outbox().
done(Name, Id, Result, Now, #{boxes := Boxes} = Outbox) ->
    case Boxes of
        #{Name := #box{sent = Id} = Box} ->
            Ended = case is_first(Id, Box) of
                true -> ended(Result, Now, Box#box{sent = none});
                %% Another node has delivered it meanwhile, or it was dropped.
                false -> Box#box{sent = none}
            end,
            Outbox#{boxes := Boxes#{Name := Ended}};
        %% A late answer to another attempt does not belong to this one.
        #{} -> Outbox
    end.

is_first(Id, #box{waiting = Waiting}) ->
    case queue:peek(Waiting) of
        {value, #{id := Id}} -> true;
        _ -> false
    end.

ended(ok, _, Box) ->
    count(delivered, taken(Box#box{error = ~""}));
ended({error, Why}, Now, #box{tries = Tries} = Box0) ->
    Box = count(failed, Box0#box{error = Why}),
    case Tries + 1 of
        ?MOST_TRIES -> count(given_up, taken(Box));
        N -> Box#box{tries = N, at = Now + min(?MOST_PAUSE_MS, 1000 bsl min(Tries, 10))}
    end.

taken(#box{waiting = Waiting, size = Size} = Box) ->
    Box#box{waiting = queue:drop(Waiting), size = Size - 1, tries = 0, at = now}.

-doc "Another node is done with an item: it was delivered or given up.".
-spec drop(Name :: binary(), Id :: binary(), outbox()) -> outbox().
drop(Name, Id, #{boxes := Boxes} = Outbox) ->
    case Boxes of
        #{Name := #box{waiting = Waiting, sent = Sent} = Box} ->
            Left = queue:delete_with(fun(#{id := Is}) -> Is =:= Id end, Waiting),
            Rest = Box#box{waiting = Left, size = queue:len(Left)},
            Outbox#{boxes := Boxes#{Name := case is_first(Id, Box) andalso Sent =/= Id of
                true -> Rest#box{tries = 0, at = now};
                false -> Rest
            end}};
        #{} -> Outbox
    end.

-doc "Whether an item still waits for a route.".
-spec has(Name :: binary(), Id :: binary(), outbox()) -> boolean().
has(Name, Id, #{boxes := Boxes}) ->
    case Boxes of
        #{Name := #box{waiting = Waiting}} ->
            queue:any(fun(#{id := Is}) -> Is =:= Id end, Waiting);
        #{} -> false
    end.

-doc "Replaces the queues by those of another node. Counts stay those of this node.".
-spec replace(saved(), outbox()) -> outbox().
replace(#{boxes := Theirs}, #{boxes := Boxes} = Outbox) ->
    Outbox#{boxes := maps:map(fun(Name, Box) ->
        case Theirs of
            #{Name := #{items := Items}} -> filled(Items, Box);
            %% Its rules have no such route.
            #{} -> Box
        end
    end, Boxes)}.

-doc "A route's queue, its last error, and its counts.".
-type info() :: #{name := binary(), waiting := non_neg_integer(), error := binary(),
                  counts := counts()}.

-doc "The state of all routes.".
-spec info(outbox()) -> [info()].
info(#{boxes := Boxes}) ->
    [#{name => Name, waiting => Size, error => Error, counts => Counts}
     || Name := #box{size = Size, error = Error, counts = Counts} <- maps:iterator(Boxes, ordered)].

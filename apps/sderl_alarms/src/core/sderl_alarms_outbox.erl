%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_outbox).
-moduledoc """
What routes are still to be told: a queue for each route, bounded, in order, one delivery at a time.
Pure.

A delivery that fails is tried again after 1, 2, 4, ... and at most 60 s; after 100 attempts, more
than an hour and a half, it is given up. The next one waits meanwhile, so a receiver gets the
changes of an alarm in their order. When 1,000 wait, the oldest of them goes. All of it is counted.

Of several monitoring nodes only the leader adds and delivers, and its rules say which routes are
told of a change. The others have its queues as it tells them (`enqueue/2`, `drop/3`, `replace/2`),
and go on with these when they lead.
""".

-export([new/2, change/2, add/3, due/2, done/5, save/1, info/1]).
-export([enqueue/2, drop/3, has/3, replace/2]).
-export_type([outbox/0, item/0, counts/0]).

-doc "A change, and which routes are told of it. `id` is the same in each attempt.".
-type item() :: #{
    id := binary(),
    routes := [binary()],
    kind := sderl_alarms_core:kind(),
    t := sderl_mon_types:t(),
    alarm := sderl_alarms_core:alarm()
}.

-doc "Of one route, since its first start: `attempts` counts each try.".
-type counts() :: #{
    attempts := non_neg_integer(),
    delivered := non_neg_integer(),
    failed := non_neg_integer(),
    given_up := non_neg_integer(),
    overflowed := non_neg_integer()
}.

-record(box, {
    route :: sderl_alarms_routes:route(),
    waiting = queue:new() :: queue:queue(item()),
    size = 0 :: non_neg_integer(),
    %% Of the first that waits.
    tries = 0 :: non_neg_integer(),
    %% Not before; by the monotonic clock, which may be below 0.
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
The queues of these routes, with what of `Before` (`save/1`) still has one. What was being sent is
sent again, as nobody knows whether it came.
""".
-spec new([sderl_alarms_routes:route()], Before :: map()) -> outbox().
new(Routes, Before) ->
    Boxes = maps:get(boxes, Before, #{}),
    #{number => maps:get(number, Before, 0),
      boxes => #{Name => restored(Route, maps:get(Name, Boxes, none))
                 || #{name := Name} = Route <- Routes}}.

restored(Route, none) ->
    Zero = #{attempts => 0, delivered => 0, failed => 0, given_up => 0, overflowed => 0},
    #box{route = Route, counts = Zero};
restored(#{name := Name} = Route, #{items := Items, counts := Counts}) ->
    %% A file of an earlier version does not say which routes.
    filled([maps:merge(#{routes => [Name]}, Item) || Item <- Items],
           #box{route = Route, counts = Counts}).

filled(Items, Box) ->
    Box#box{waiting = queue:from_list(Items), size = length(Items), tries = 0, at = now}.

-doc "Other routes, while deliveries are under way. A route that keeps its name keeps its queue.".
-spec change([sderl_alarms_routes:route()], outbox()) -> outbox().
change(Routes, #{boxes := Boxes} = Outbox) ->
    Outbox#{boxes := #{Name => case Boxes of
                                   #{Name := Box} -> Box#box{route = Route, tries = 0, at = now};
                                   #{} -> restored(Route, none)
                               end
                       || #{name := Name} = Route <- Routes}}.

-doc "What survives a restart.".
-spec save(outbox()) -> map().
save(#{boxes := Boxes, number := Number}) ->
    #{number => Number,
      boxes => #{Name => #{items => queue:to_list(Waiting), counts => Counts}
                 || Name := #box{waiting = Waiting, counts = Counts} <- Boxes}}.

-doc "Notes for the routes that want them, and what they are to other monitoring nodes.".
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

-doc "What was added here, or by the node that leads.".
-spec enqueue([item()], outbox()) -> outbox().
enqueue(Items, #{boxes := Boxes} = Outbox) ->
    Outbox#{boxes := lists:foldl(fun put_item/2, Boxes, Items)}.

%% A route that only the rules of another node have has no queue here.
put_item(#{routes := Routes} = Item, Boxes) ->
    maps:merge(Boxes, #{Name => put_item_in(Item, Box)
                        || Name := Box <- maps:with(Routes, Boxes)}).

put_item_in(Item, #box{waiting = Waiting, size = Size} = Box) ->
    bounded(Box#box{waiting = queue:in(Item, Waiting), size = Size + 1}).

%% The oldest goes, but not the one that is being sent.
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

-doc "What is to be sent now, at most one of each route. It counts as being sent from here on.".
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
                %% Another node has delivered it meanwhile, or it had to go.
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

-doc "Another node is done with an item: a route was told, or will not be.".
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

-doc "Whether a route is still to be told.".
-spec has(Name :: binary(), Id :: binary(), outbox()) -> boolean().
has(Name, Id, #{boxes := Boxes}) ->
    case Boxes of
        #{Name := #box{waiting = Waiting}} ->
            queue:any(fun(#{id := Is}) -> Is =:= Id end, Waiting);
        #{} -> false
    end.

-doc "The queues as another node has them (`save/1`). Counts are those of this node.".
-spec replace(map(), outbox()) -> outbox().
replace(#{boxes := Theirs}, #{boxes := Boxes} = Outbox) ->
    Outbox#{boxes := maps:map(fun(Name, Box) ->
        case Theirs of
            #{Name := #{items := Items}} -> filled(Items, Box);
            %% Its rules have no such route.
            #{} -> Box
        end
    end, Boxes)}.

-doc "Of each route what waits, the last error, and the counts.".
-spec info(outbox()) -> [#{name := binary(), waiting := non_neg_integer(), error := binary(),
                           counts := counts()}].
info(#{boxes := Boxes}) ->
    [#{name => Name, waiting => Size, error => Error, counts => Counts}
     || Name := #box{size = Size, error = Error, counts = Counts} <- maps:iterator(Boxes, ordered)].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_arrows).
-moduledoc """
Single messages between some processes in a part of the time, each with when it was sent and when
the receiver took it over. Pure; memory is that of the arrows, which are bounded, and of the
messages that are on their way.

No event tells which message was received. A process takes messages over in the order in which they
came to it, so the first one of the same size that it has not received is taken for it. Events from
before the part make that right at its begin, too: they count only for this.

Of more arrows than are wanted every second one is kept, every fourth, and so on: they stay spread
over the part, and all of them are counted.
""".

-export([new/1, step/7, result/1]).
-export_type([arrows/0, options/0, arrow/0]).

-include("sderl_prof_event.hrl").

-doc """
Messages that are sent from `from` until before `to` between two of `processes`; with `process` only
those that one of the two is. At least one is kept of `most`.
""".
-type options() :: #{from := integer(), to := integer(), processes := [pos_integer()],
                     process := pos_integer() | none, most := pos_integer()}.
-doc "When it was sent and taken over, as far as that is known, by whom, to whom, and its bytes.".
-type arrow() :: {Sent :: integer(), Received :: integer() | none, From :: pos_integer(),
                  To :: pos_integer(), Bytes :: non_neg_integer()}.

-record(arrows, {
    from :: integer(),
    to :: integer(),
    lanes :: #{pos_integer() => []},
    process :: pos_integer() | none,
    most :: pos_integer(),
    count = 0 :: non_neg_integer(),
    elsewhere = 0 :: non_neg_integer(),
    every = 1 :: pos_integer(),
    kept = #{} :: #{pos_integer() => arrow()},
    %% By receiver and size, the arrows that it has not received; 0 stands for other messages.
    under_way = #{} :: #{{pos_integer(), non_neg_integer()} => queue:queue(non_neg_integer())}
}).
-opaque arrows() :: #arrows{}.

-doc "None yet.".
-spec new(options()) -> arrows().
new(#{from := From, to := To, processes := Processes, process := Process, most := Most}) ->
    #arrows{from = From, to = To, lanes = maps:from_keys(Processes, []), process = Process,
            most = Most}.

-doc "One event more.".
-spec step(integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
           non_neg_integer(), arrows()) -> arrows().
step(T, ?SEND, _, P, To, Bytes, #arrows{lanes = Lanes} = Arrows) when is_map_key(To, Lanes) ->
    {Id, Arrows1} = sent(T, P, To, Bytes, Arrows),
    send_on(Id, {To, Bytes}, Arrows1);
step(T, ?SEND, _, P, _, _, #arrows{process = P, from = From, to = Until} = Arrows)
  when T >= From, T < Until ->
    elsewhere(Arrows);
step(T, ?RECEIVE, _, P, _, Bytes, #arrows{under_way = UnderWay} = Arrows) ->
    Key = {P, Bytes},
    case UnderWay of
        #{Key := Queue} ->
            {{value, Id}, Rest} = queue:out(Queue),
            received(Id, T, Arrows#arrows{under_way = case queue:is_empty(Rest) of
                true -> maps:remove(Key, UnderWay);
                false -> UnderWay#{Key := Rest}
            end});
        _ -> Arrows
    end;
step(_, _, _, _, _, _, Arrows) ->
    Arrows.

sent(T, P, To, Bytes, #arrows{from = From, to = Until, lanes = Lanes, process = Process} = Arrows)
  when T >= From, T < Until ->
    case is_map_key(P, Lanes) of
        true when Process =:= none; Process =:= P; Process =:= To ->
            keep({T, none, P, To, Bytes}, Arrows);
        false when Process =:= To; Process =:= P -> {0, elsewhere(Arrows)};
        _ -> {0, Arrows}
    end;
sent(_, _, _, _, Arrows) ->
    {0, Arrows}.

elsewhere(#arrows{elsewhere = N} = Arrows) -> Arrows#arrows{elsewhere = N + 1}.

keep(Arrow, #arrows{count = Count, every = Every, kept = Kept} = Arrows) ->
    Id = Count + 1,
    Counted = Arrows#arrows{count = Id},
    case Id rem Every of
        0 -> {Id, thin(Counted#arrows{kept = Kept#{Id => Arrow}})};
        _ -> {0, Counted}
    end.

thin(#arrows{kept = Kept, most = Most, every = Every} = Arrows) when map_size(Kept) > Most ->
    Fewer = 2 * Every,
    Arrows#arrows{every = Fewer, kept = #{Id => A || Id := A <- Kept, Id rem Fewer =:= 0}};
thin(Arrows) ->
    Arrows.

send_on(Id, Key, #arrows{under_way = UnderWay} = Arrows) ->
    Queue = queue:in(Id, maps:get(Key, UnderWay, queue:new())),
    Arrows#arrows{under_way = UnderWay#{Key => Queue}}.

received(Id, T, #arrows{kept = Kept} = Arrows) ->
    case Kept of
        #{Id := Arrow} -> Arrows#arrows{kept = Kept#{Id := setelement(2, Arrow, T)}};
        _ -> Arrows
    end.

-doc """
The arrows that are kept, the first one sent first; how many there are; and how many messages of
`process` come from or go to processes that are not among those asked for.
""".
-spec result(arrows()) -> #{arrows := [arrow()], count := non_neg_integer(),
                            elsewhere := non_neg_integer()}.
result(#arrows{kept = Kept, count = Count, elsewhere = Elsewhere}) ->
    #{arrows => lists:sort(maps:values(Kept)), count => Count, elsewhere => Elsewhere}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_stream).
-moduledoc """
One end of a stream of items between two processes whose messages may be lost, come twice, or
overtake each other: over gateways that die, and over several ways.

Items get numbers. The other end takes them in order, each once, and acknowledges up to which number
it has them. Items without acknowledgement are sent again, from the first on, after 200 ms and then
less and less often, at last once a second. An acknowledgement rides on the next item the other way,
or goes alone after 40 ms, or when 32 items wait for it. At most 256 items are under way, 16 after a
loss; the rest waits here.

Both ends are alike, so replies go back in a stream of their own in the same frames. A stream has a
*session*: after a long silence the end that began it begins another one, at number 1, because the
other end may have forgotten the one before. A frame has the lowest number that its sender still
has. If an end knows nothing of the session, and that number is above 1, it has lost earlier items:
its process has to report that.

Pure: times are given, frames are values.
""".

-export([new/1, put/3, frames/2, received/3, beat/2, next/1]).
-export([session/1, waiting/1, tries/1, fresh/1, is_frame/1]).
-export_type([stream/0, frame/0]).

-define(FIRST_MS, 200).
-define(LAST_MS, 1000).
-define(ACK_MS, 40).
-define(ACK_EVERY, 32).
-define(WINDOW, 256).
-define(CAREFUL, 16).

-doc "Session, lowest number not acknowledged, acknowledged, number of the first item, items.".
-type frame() :: {Session :: pos_integer(), Base :: pos_integer(), Ack :: non_neg_integer(),
                  First :: pos_integer(), [term()]}.

-record(st, {
    session :: pos_integer(),
    %% Numbers: to give next, to send next, the lowest not acknowledged.
    next = 1 :: pos_integer(),
    send = 1 :: pos_integer(),
    base = 1 :: pos_integer(),
    out = #{} :: #{pos_integer() => term()},
    window = ?WINDOW :: pos_integer(),
    again_at = infinity :: integer() | infinity,
    wait = ?FIRST_MS :: pos_integer(),
    tries = 0 :: non_neg_integer(),
    %% Received items, and since when and for how many an acknowledgement is due.
    got = 0 :: non_neg_integer(),
    owed = 0 :: non_neg_integer(),
    ack_at = infinity :: integer() | infinity
}).
-opaque stream() :: #st{}.

-spec new(Session :: pos_integer()) -> stream().
new(Session) -> #st{session = Session}.

-spec session(stream()) -> pos_integer().
session(#st{session = Session}) -> Session.

-doc "How many items the other end has not acknowledged.".
-spec waiting(stream()) -> non_neg_integer().
waiting(#st{out = Out}) -> map_size(Out).

-doc "How often in a row no answer came in time: a reason to try other ways.".
-spec tries(stream()) -> non_neg_integer().
tries(#st{tries = Tries}) -> Tries.

-doc "Whether a term is a frame; others may send anything.".
-spec is_frame(term()) -> boolean().
is_frame({Session, Base, Ack, First, Items}) ->
    lists:all(fun is_integer/1, [Session, Base, Ack, First]) andalso is_proper(Items);
is_frame(_) -> false.

is_proper(List) when length(List) >= 0 -> true;
is_proper(_) -> false.

-doc "Whether a frame may begin a stream at an end that knows nothing.".
-spec fresh(frame()) -> boolean().
fresh({_, Base, _, _, Items}) -> Base =:= 1 andalso Items =/= [].

-doc "An item to send. `frames/2` says what goes out now.".
-spec put(term(), Now :: integer(), stream()) -> stream().
put(Item, _, #st{next = N, out = Out} = St) -> St#st{next = N + 1, out = Out#{N => Item}}.

-doc "When `frames/2` has something to do even if nothing happens.".
-spec next(stream()) -> integer() | infinity.
next(#st{again_at = Again, ack_at = Ack}) -> min(Again, Ack).

-doc "What is to be sent now.".
-spec frames(Now :: integer(), stream()) -> {[frame()], stream()}.
frames(Now, #st{again_at = At, wait = Wait, tries = Tries, base = Base} = St) when Now >= At ->
    frames(Now, St#st{send = Base, window = ?CAREFUL, wait = min(2 * Wait, ?LAST_MS),
                      tries = Tries + 1, again_at = infinity});
frames(Now, #st{send = Send, next = Next, base = Base, window = Window, wait = Wait} = St) ->
    case min(Next, Base + Window) of
        Until when Until > Send ->
            Again = case St#st.again_at of infinity -> Now + Wait; At -> At end,
            {batches(Send, Until, St),
             St#st{send = Until, again_at = Again, owed = 0, ack_at = infinity}};
        _ when Now >= St#st.ack_at -> {[frame(Send, [], St)], St#st{owed = 0, ack_at = infinity}};
        _ -> {[], St}
    end.

batches(Until, Until, _) -> [];
batches(From, Until, #st{out = Out} = St) ->
    To = min(Until, From + ?CAREFUL),
    [frame(From, [maps:get(N, Out) || N <- lists:seq(From, To - 1)], St) | batches(To, Until, St)].

frame(First, Items, #st{session = Session, base = Base, got = Got}) ->
    {Session, Base, Got, First, Items}.

-doc "A frame is to be sent even without items.".
-spec beat(Now :: integer(), stream()) -> stream().
beat(Now, St) -> St#st{ack_at = Now}.

-doc "A frame came: the items that are next, in order. Frames of another session have none.".
-spec received(frame(), Now :: integer(), stream()) -> {[term()], stream()}.
received({Session, _, Ack, First, Items}, Now, #st{session = Session} = St) ->
    took(First, Items, Now, acked(Ack, Now, St));
received(_, _, St) -> {[], St}.

acked(Ack, Now, #st{base = Base, next = Next, send = Send, out = Out, window = Window} = St)
  when is_integer(Ack), Ack >= Base, Ack < Next ->
    Left = lists:foldl(fun maps:remove/2, Out, lists:seq(Base, Ack)),
    Again = case map_size(Left) > 0 andalso Send > Ack + 1 of
        true -> Now + ?FIRST_MS;
        false -> infinity
    end,
    St#st{base = Ack + 1, send = max(Send, Ack + 1), out = Left, again_at = Again, wait = ?FIRST_MS,
          tries = 0, window = min(2 * Window, ?WINDOW)};
acked(_, _, St) -> St.

took(_, [], _, St) -> {[], St};
took(First, Items, Now, #st{got = Got, owed = Owed, ack_at = At} = St) ->
    case Got + 1 - First of
        %% A gap, or nothing new: the other end should hear what we have.
        Known when Known < 0; Known >= length(Items) -> {[], St#st{ack_at = Now}};
        Known ->
            New = lists:nthtail(Known, Items),
            Count = Owed + length(New),
            Due = case Count >= ?ACK_EVERY orelse Known > 0 of
                true -> Now;
                false -> Now + ?ACK_MS
            end,
            {New, St#st{got = Got + length(New), owed = Count, ack_at = min(At, Due)}}
    end.

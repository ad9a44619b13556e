%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_work).
-moduledoc """
Measures the probe's own work, by kind.

Wall time of a process includes waiting, now and then much of it, so each piece of work is charged
the median of what the last 32 of its kind took.
""".

-export([add/4, add/2, account/1, message/3, magnitude/1]).
-export([now_ms/0, now_us/0]).
-export_type([work/0]).

-define(RING, 32).

-doc """
By kind: how many since the last account, how many of these were kept, and what one of the last
took.
""".
-type work() :: #{Kind :: term() => {non_neg_integer(), non_neg_integer(), [number()]}}.

-doc "What a helper did.".
-spec add([{Kind :: term(), non_neg_integer(), number()}], work()) -> work().
add(Works, Work) ->
    lists:foldl(fun({Kind, Units, Wall}, Acc) -> add(Kind, Units, Wall, Acc) end, Work, Works).

-doc "So many of a kind took so many microseconds in all. Of very many the first are kept.".
-spec add(term(), non_neg_integer(), number(), work()) -> work().
add(_, 0, _, Work) -> Work;
add(Kind, Units, Wall, Work) ->
    case Work of
        #{Kind := {N, Kept, Ring}} when Kept < ?RING ->
            Work#{Kind := {N + Units, Kept + 1, [Wall / Units | Ring]}};
        #{Kind := {N, Kept, Ring}} -> Work#{Kind := {N + Units, Kept, Ring}};
        #{} -> Work#{Kind => {Units, 1, [Wall / Units]}}
    end.

-doc "The time of all work since the last account, each piece at its kind's median.".
-spec account(work()) -> {Microseconds :: float(), work()}.
account(Work) ->
    maps:fold(fun
        (_, {0, _, _}, Acc) -> Acc;
        (Kind, {N, _, Ring0}, {Us, Acc}) ->
            Ring = lists:sublist(Ring0, ?RING),
            {Us + N * lists:nth(1 + length(Ring) div 2, lists:sort(Ring)),
             Acc#{Kind := {0, 0, Ring}}}
    end, {0.0, Work}, Work).

-doc """
The kind of work that a message was, with so many events after it and before: to put an event into
words costs many times what it costs to count it.
""".
-spec message(term(), non_neg_integer(), non_neg_integer()) -> event | message | {message, atom()}.
message(_, Events, Before) when Events > Before -> event;
message(M, _, _) when is_atom(element(1, M)) -> {message, element(1, M)};
message(_, _, _) -> message.

-doc "What tells pieces of work of different sizes apart.".
-spec magnitude(non_neg_integer()) -> non_neg_integer().
magnitude(0) -> 0;
magnitude(N) -> 1 + magnitude(N div 4).

-doc "Monotonic time, by which the probe does everything.".
-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).

-doc "The same in microseconds: for what is measured.".
-spec now_us() -> integer().
now_us() -> erlang:monotonic_time(microsecond).

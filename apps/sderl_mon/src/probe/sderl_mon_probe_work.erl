%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_work).
-moduledoc """
Measures the probe's own work, by kind; and what the probe's processes have in common: the clock,
and how one is ended.

The wall time of a process includes waiting, sometimes much of it, so each piece of work is charged
the median time of the last 32 pieces of its kind. The helper whose questions may block
(`sderl_mon_probe_slow`) waits each time, for threads and for other processes: it is charged the
shortest of its last 32.
""".

-export([new/0, add/4, add/2, account/1, message/3, magnitude/1]).
-export([now_ms/0, now_us/0, stop/1]).
-export_type([work/0]).

-define(RING, 32).
-define(STOP_MS, 1_000).

-record(kind, {
    %% Since the last account.
    units = 0 :: non_neg_integer(),
    %% The time of each look that is not in the price yet, and how many these are.
    fresh = [] :: [number()],
    new = 0 :: non_neg_integer(),
    ring = [] :: [number()],
    price = 0.0 :: number()
}).

-opaque work() :: #{Kind :: term() => #kind{}}.

-doc "Nothing was done yet.".
-spec new() -> work().
new() -> #{}.

-doc "What a helper did.".
-spec add([{Kind :: term(), non_neg_integer(), number()}], work()) -> work().
add(Works, Work) ->
    lists:foldl(fun({Kind, Units, Wall}, Acc) -> add(Kind, Units, Wall, Acc) end, Work, Works).

-doc "`Units` pieces of a kind took `Wall` microseconds in all. Of very many the first are kept.".
-spec add(term(), non_neg_integer(), number(), work()) -> work().
add(_, 0, _, Work) -> Work;
add(Kind, Units, Wall, Work) ->
    #kind{units = Before, fresh = Fresh, new = New} = K = maps:get(Kind, Work, #kind{}),
    Work#{Kind => case New < ?RING of
        true -> K#kind{units = Before + Units, fresh = [Wall / Units | Fresh], new = New + 1};
        false -> K#kind{units = Before + Units}
    end}.

-doc "The time of all work since the last account, each piece at its kind's price.".
-spec account(work()) -> {Microseconds :: float(), work()}.
account(Work) ->
    maps:fold(fun
        (_, #kind{units = 0}, Acc) -> Acc;
        (Kind, Done, {Us, Acc}) ->
            #kind{units = Units, price = Price} = K = settle(Kind, Done),
            {Us + Units * Price, Acc#{Kind := K#kind{units = 0}}}
    end, {0.0, Work}, Work).

%% Finding the median costs more than counting: it is found again when a quarter is new.
settle(_, #kind{new = New, ring = Ring} = K) when 4 * New < length(Ring) -> K;
settle(Kind, #kind{fresh = Fresh, ring = Old} = K) ->
    Ring = lists:sublist(Fresh ++ Old, ?RING),
    K#kind{fresh = [], new = 0, ring = Ring, price = price(Kind, lists:sort(Ring))}.

price({slow, _}, [Least | _]) -> Least;
%% The lower median: of two pieces, the one that has waited is not charged.
price(_, Sorted) -> lists:nth((1 + length(Sorted)) div 2, Sorted).

-doc """
The kind of work that a message was. If there are more events after it than before, the text of one
was made, which costs many times what counting does.
""".
-spec message(term(), non_neg_integer(), non_neg_integer()) -> event | message | {message, atom()}.
message(_, Events, Before) when Events > Before -> event;
message(M, _, _) when is_atom(element(1, M)) -> {message, element(1, M)};
message(_, _, _) -> message.

-doc "A size class: pieces of work of different sizes are different kinds.".
-spec magnitude(non_neg_integer()) -> non_neg_integer().
magnitude(0) -> 0;
magnitude(N) -> 1 + magnitude(N div 4).

-doc "Monotonic time, by which the probe does everything.".
-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).

-doc "The same in microseconds: for what is measured.".
-spec now_us() -> integer().
now_us() -> erlang:monotonic_time(microsecond).

-doc "Ends a process that is linked to the caller; returns when it has ended, or a second later.".
-spec stop(pid()) -> ok.
stop(Pid) ->
    Mon = monitor(process, Pid),
    true = unlink(Pid),
    _ = Pid ! stop,
    receive
        {'DOWN', Mon, process, _, _} -> ok
    after ?STOP_MS -> true = demonitor(Mon, [flush]), ok
    end.

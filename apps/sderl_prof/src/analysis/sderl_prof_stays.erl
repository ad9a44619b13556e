%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_stays).
-moduledoc """
On which schedulers a process was: the history of its run queues. Pure.

A *stay* is a row of runs on one scheduler, from where the process was first scheduled in there to
where it was scheduled in on another one, or ended. Schedulers are those of the events `in`, which a
recording of `migration` has.
""".

-export([new/2, step/7, result/2]).
-export_type([stays/0, stay/0, result/0]).

-include("sderl_prof_event.hrl").

%% Of more stays the longest are kept.
-define(MOST, 50_000).

-doc "A scheduler, from when to when, how often scheduled in there, how long it ran.".
-type stay() :: {Scheduler :: pos_integer(), From :: integer(), To :: integer(),
                 Ins :: pos_integer(), Ran :: non_neg_integer()}.
-type result() :: #{
    schedulers := [#{scheduler := pos_integer(), stays := pos_integer(), ins := pos_integer(),
                     ran := non_neg_integer()}],
    stays := [stay()],
    count := non_neg_integer()
}.

-record(s, {
    process :: pos_integer(),
    from :: integer(), to :: integer(),
    %% The one that lasts: its scheduler, since when, how often in, how long it ran.
    scheduler = 0 :: non_neg_integer(),
    since = 0 :: integer(),
    ins = 0 :: non_neg_integer(),
    ran = 0 :: non_neg_integer(),
    running = none :: none | integer(),
    stays = [] :: [stay()],
    kept = 0 :: non_neg_integer(),
    count = 0 :: non_neg_integer(),
    sums = #{} :: #{pos_integer() => {pos_integer(), pos_integer(), non_neg_integer()}}
}).
-opaque stays() :: #s{}.

-doc """
Of a process, from one time to another, the latter excluded. Events from before are to come, too:
they tell where the process is when the part begins.
""".
-spec new(pos_integer(), {From :: integer(), To :: integer()}) -> stays().
new(Process, {From, To}) -> #s{process = Process, from = From, to = To}.

-doc "The next event, as `sderl_prof_book:fold/4` gives it.".
-spec step(integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
           non_neg_integer(), stays()) -> stays().
step(T, ?IN, Scheduler, P, _, _, #s{process = P, to = To} = S0) when T < To, Scheduler > 0 ->
    #s{scheduler = Before, ins = Ins} = S = ran(T, S0),
    Counted = case T >= S#s.from of true -> 1; false -> 0 end,
    case Before of
        Scheduler -> S#s{ins = Ins + Counted, running = T};
        _ ->
            (closed(T, S))#s{scheduler = Scheduler, since = T, ins = Counted, ran = 0,
                             running = T}
    end;
step(T, ?OUT, _, P, _, _, #s{process = P} = S) -> ran(T, S);
step(T, ?EXIT, _, P, _, _, #s{process = P, to = To} = S) ->
    (closed(min(T, To), ran(T, S)))#s{scheduler = 0};
step(_, _, _, _, _, _, S) -> S.

ran(_, #s{running = none} = S) -> S;
ran(T, #s{running = Since, ran = Ran, from = From, to = To} = S) ->
    S#s{running = none, ran = Ran + max(0, min(T, To) - max(Since, From))}.

%% What ended before the part is none of it.
closed(_, #s{scheduler = 0} = S) -> S;
closed(T, #s{from = From} = S) when T =< From -> S;
closed(T, #s{scheduler = Scheduler, since = Since, from = From, ins = Ins, ran = Ran,
             stays = Stays, kept = Kept, count = Count, sums = Sums} = S) ->
    {N, SumOfIns, SumOfRan} = maps:get(Scheduler, Sums, {0, 0, 0}),
    Closed = S#s{stays = [{Scheduler, max(Since, From), T, Ins, Ran} | Stays], kept = Kept + 1,
                 count = Count + 1,
                 sums = Sums#{Scheduler => {N + 1, SumOfIns + Ins, SumOfRan + Ran}}},
    case Kept >= 2 * ?MOST of
        true -> Closed#s{stays = longest(?MOST, Closed#s.stays), kept = ?MOST};
        false -> Closed
    end.

longest(Most, Stays) ->
    lists:sublist(lists:sort(fun({_, A, B, _, _}, {_, C, D, _, _}) -> B - A >= D - C end, Stays),
                  Most).

-doc "At most so many stays, the longest, in the order of time; those of each scheduler in all.".
-spec result(Most :: pos_integer(), stays()) -> result().
result(Most, #s{to = To} = S0) ->
    #s{stays = Stays, count = Count, sums = Sums} = closed(To, ran(To, S0)),
    #{
        schedulers => [#{scheduler => Scheduler, stays => N, ins => Ins, ran => Ran}
                       || {Scheduler, {N, Ins, Ran}} <- lists:sort(maps:to_list(Sums))],
        stays => lists:keysort(2, longest(Most, Stays)),
        count => Count
    }.

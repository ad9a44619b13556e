%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_counters).
-moduledoc """
The state that the clients of one node share during a fault: the counts of their answers, and the
driver's instructions.
""".

-export([new/0, answered/2, asked/2, count_burst/1, is_paused/1, pins/1, now_us/0]).
-export([mark/1, answers/1, gap/1, burst_answers/1, counted/1, pin/1, pause/1, cut_off/2]).
-export_type([counters/0]).

-type counters() :: atomics:atomics_ref().

%% Moments are in us of the system's clock.
-define(LAST, 1).
-define(GAP, 2).
-define(ANSWERS, 3).
-define(PINNED, 4).
-define(PAUSED, 5).
-define(BURST, 6).
-define(UNKNOWN, 7).
-define(REFUSED, 8).
-define(NO_MAJORITY, 9).
-define(CUT_OFF, 10).
-define(CUT_OFF_YES, 11).

-spec new() -> counters().
new() ->
    Counters = atomics:new(11, []),
    atomics:put(Counters, ?LAST, now_us()),
    Counters.

-doc "Now, in us of the system's clock.".
-spec now_us() -> integer().
now_us() -> os:system_time(microsecond).

%% ---------------------------------------------------------------- answers

%% `no` is an answer too, but it is counted: nothing that clients ask for should be refused.
-doc "As `asked/2`, and the answer is counted.".
-spec answered(counters(), fun(() -> yes | {no, term()})) -> yes | no | unknown.
answered(Counters, Ask) ->
    case asked(Counters, Ask) of
        yes ->
            answer(Counters),
            yes;
        {no, Why} ->
            answer(Counters),
            atomics:add(Counters, case Why of no_majority -> ?NO_MAJORITY; _ -> ?REFUSED end, 1),
            no;
        unknown ->
            atomics:add(Counters, ?UNKNOWN, 1),
            unknown
    end.

%% A node that was cut off from before the question until after the answer must not get a `yes`.
-doc "Asks a registry; `unknown` if it gives no answer.".
-spec asked(counters(), fun(() -> yes | {no, term()})) -> yes | {no, term()} | unknown.
asked(Counters, Ask) ->
    Before = atomics:get(Counters, ?CUT_OFF),
    try Ask() of
        yes when Before > 0 ->
            case atomics:get(Counters, ?CUT_OFF) of
                Before -> atomics:add(Counters, ?CUT_OFF_YES, 1);
                _ -> ok
            end,
            yes;
        Answer ->
            Answer
    catch
        _:_ -> unknown
    end.

answer(Counters) ->
    Now = now_us(),
    Last = atomics:exchange(Counters, ?LAST, Now),
    atomics:add(Counters, ?ANSWERS, 1),
    longer(Counters, Now - Last).

longer(Counters, Gap) ->
    case atomics:get(Counters, ?GAP) of
        Longest when Longest >= Gap ->
            ok;
        Longest ->
            case atomics:compare_exchange(Counters, ?GAP, Longest, Gap) of
                ok -> ok;
                _ -> longer(Counters, Gap)
            end
    end.

-doc "One more registration of a burst was answered, or given up.".
-spec count_burst(counters()) -> ok.
count_burst(Counters) -> atomics:add(Counters, ?BURST, 1).

-doc "How many registrations of bursts were answered, or given up.".
-spec burst_answers(counters()) -> non_neg_integer().
burst_answers(Counters) -> atomics:get(Counters, ?BURST).

-doc "From now on the longest time without an answer is measured.".
-spec mark(counters()) -> ok.
mark(Counters) ->
    atomics:put(Counters, ?LAST, now_us()),
    atomics:put(Counters, ?GAP, 0).

-doc "The longest time without an answer since the mark, in us, also if it still lasts.".
-spec gap(counters()) -> non_neg_integer().
gap(Counters) -> max(atomics:get(Counters, ?GAP), now_us() - atomics:get(Counters, ?LAST)).

-spec answers(counters()) -> non_neg_integer().
answers(Counters) -> atomics:get(Counters, ?ANSWERS).

-doc "The counts for the journal.".
-spec counted(counters()) ->
    #{
        answers := non_neg_integer(),
        unknown := non_neg_integer(),
        refused := non_neg_integer(),
        no_majority := non_neg_integer(),
        cut_off_yes := non_neg_integer()
    }.
counted(Counters) ->
    #{
        answers => answers(Counters),
        unknown => atomics:get(Counters, ?UNKNOWN),
        refused => atomics:get(Counters, ?REFUSED),
        no_majority => atomics:get(Counters, ?NO_MAJORITY),
        cut_off_yes => atomics:get(Counters, ?CUT_OFF_YES)
    }.

%% ---------------------------------------------------------------- what the driver says

-doc "No client begins anything more.".
-spec pause(counters()) -> ok.
pause(Counters) -> atomics:put(Counters, ?PAUSED, 1).

-spec is_paused(counters()) -> boolean().
is_paused(Counters) -> atomics:get(Counters, ?PAUSED) =:= 1.

-doc "Writers keep the names that they have.".
-spec pin(counters()) -> ok.
pin(Counters) -> atomics:add(Counters, ?PINNED, 1).

-doc "How often the driver has pinned names.".
-spec pins(counters()) -> non_neg_integer().
pins(Counters) -> atomics:get(Counters, ?PINNED).

-doc "Whether this node is on a side of a split that has no majority.".
-spec cut_off(boolean(), counters()) -> ok.
cut_off(true, Counters) -> atomics:put(Counters, ?CUT_OFF, erlang:unique_integer([positive]));
cut_off(false, Counters) -> atomics:put(Counters, ?CUT_OFF, 0).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_summary).
-moduledoc """
A recording summed by kinds of processes, so that it can be compared with another one, in which pids
are others (`m:sderl_prof_difference`). Pure.

Processes are kin that have the same name, or that have none and begin in the same function under
kin parents. Waits are summed by the function in which processes wait. Memory is that of the
processes that live at a time, and of the kinds and places, both bounded.
""".

-export([new/1, step/7, finish/2]).
-export_type([summary/0, kin/0, about/0, result/0, group/0]).

%% Events between two looks for processes that have ended.
-define(DRAIN, 65_536).
%% Kinds of processes, places of waits and parents that are told apart.
-define(MOST_KIN, 20_000).
-define(MOST_SITES, 50_000).
-define(MOST_PARENTS, 10_000).
%% Ancestors by which processes are told apart.
-define(DEEPEST, 6).

-doc "A name, or the function in which it begins, and those of its parents, the nearest first.".
-type kin() :: {named, binary()} | {entry, binary(), Parents :: [binary()]}.

-doc "What is known of a process; a name or a function that is not known is empty.".
-type about() :: #{name := binary(), entry := binary(), parent := non_neg_integer()}.
-type group() :: {Count :: pos_integer(), sderl_prof_activity:sums()}.

-doc """
`waits`: by the word of the place, how often, how long, and the sum of squares. `rest` are processes
that were not told apart.
""".
-type result() :: #{kin := #{kin() => group()}, rest := group() | none,
                    waits := #{non_neg_integer() => sderl_prof_tally:row()},
                    totals := sderl_prof_activity:sums(), processes := non_neg_integer()}.

-record(summary, {
    %% Facts of a process; `none` for a port or something else.
    about :: fun((pos_integer()) -> about() | none),
    activity :: sderl_prof_activity:activity(),
    kin = #{} :: #{kin() => group()},
    rest = none :: none | group(),
    parents = #{} :: #{pos_integer() => [binary()]},
    totals = sderl_prof_activity:sums([]) :: sderl_prof_activity:sums(),
    processes = 0 :: non_neg_integer(),
    seen = 1 :: pos_integer()
}).
-opaque summary() :: #summary{}.

-doc "Nothing yet.".
-spec new(#{mode := sderl_prof_activity:mode(),
            about := fun((pos_integer()) -> about() | none)}) -> summary().
new(#{mode := Mode, about := About}) ->
    #summary{about = About,
             activity = sderl_prof_activity:new(Mode, fun wait/7,
                                                sderl_prof_tally:new(?MOST_SITES))}.

wait(waiting, _, From, To, Site, _, Waits) -> sderl_prof_tally:add(Site, To - From, Waits);
wait(_, _, _, _, _, _, Waits) -> Waits.

-doc "One event more.".
-spec step(integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
           non_neg_integer(), summary()) -> summary().
step(T, K, S, P, A, B, #summary{activity = Act, seen = Seen} = Sum) ->
    Act1 = sderl_prof_activity:step(T, K, S, P, A, B, Act),
    case Seen rem ?DRAIN of
        0 ->
            {Ended, Act2} = sderl_prof_activity:drain(Act1),
            ended(Ended, Sum#summary{activity = Act2, seen = Seen + 1});
        _ -> Sum#summary{activity = Act1, seen = Seen + 1}
    end.

ended(Ended, Sum) -> lists:foldl(fun add/2, Sum, Ended).

add({P, Sums}, #summary{about = About, totals = Totals, processes = N} = Sum0) ->
    Sum = Sum0#summary{totals = sderl_prof_activity:sums([Totals, Sums])},
    case About(P) of
        none -> Sum;
        Known ->
            {Kin, Sum1} = kin(Known, Sum),
            group(Kin, Sums, Sum1#summary{processes = N + 1})
    end.

group(Kin, Sums, #summary{kin = Groups, rest = Rest} = Sum) ->
    case Groups of
        #{Kin := Group} -> Sum#summary{kin = Groups#{Kin := joined(Sums, Group)}};
        _ when map_size(Groups) < ?MOST_KIN -> Sum#summary{kin = Groups#{Kin => {1, Sums}}};
        _ -> Sum#summary{rest = joined(Sums, Rest)}
    end.

joined(Sums, none) -> {1, Sums};
joined(Sums, {N, Before}) -> {N + 1, sderl_prof_activity:sums([Before, Sums])}.

kin(#{name := Name}, Sum) when Name =/= ~"" -> {{named, Name}, Sum};
kin(#{entry := Entry, parent := Parent}, Sum) ->
    {Place, Sum1} = place(Parent, Sum),
    {{entry, Entry, Place}, Sum1}.

place(Parent, #summary{parents = Parents} = Sum) ->
    case Parents of
        #{Parent := Place} -> {Place, Sum};
        _ ->
            Place = labels(Parent, ?DEEPEST, Sum),
            Kept = case map_size(Parents) < ?MOST_PARENTS of
                true -> Parents;
                false -> #{}
            end,
            {Place, Sum#summary{parents = Kept#{Parent => Place}}}
    end.

%% A name ends the place: it is one wherever it is.
labels(_, 0, _) -> [];
labels(0, _, _) -> [];
labels(P, Deep, #summary{about = About} = Sum) ->
    case About(P) of
        none -> [];
        #{name := Name} when Name =/= ~"" -> [Name];
        #{entry := Entry, parent := Parent} -> [Entry | labels(Parent, Deep - 1, Sum)]
    end.

-doc "The recording, which ends then.".
-spec finish(End :: integer(), summary()) -> result().
finish(End, #summary{activity = Act} = Sum0) ->
    {Left, Waits} = sderl_prof_activity:finish(End, Act),
    Sum = ended(Left, Sum0),
    {Rows, _, _} = sderl_prof_tally:result(Waits),
    #{kin => Sum#summary.kin, rest => Sum#summary.rest, waits => Rows,
      totals => Sum#summary.totals, processes => Sum#summary.processes}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_choice).
-moduledoc """
Which of several tables to take, by their times. Pure.

The fastest table has the least median. The choice is the simplest table that is certainly hardly
slower: the whole interval of the ratio of their times must lie below `1 + slack/0`. All intervals
of a choice together are wrong in at most 1 of 100 cases; tables that were left out of the race
(`m:sderl_bench_vm_race`) count among them, because they were left out by their times.
""".

-export([of_times/2, slack/0]).
-export_type([choice/0]).

-doc """
`take` is the choice, `ratio` its time divided by that of the fastest. `provisional`: there are too
few values, and so many of each table are needed; the choice is then the fastest. `left_out`: far
behind, and not measured any more.
""".
-type choice() :: #{fastest := Name :: binary(), take := Name :: binary(),
                    ratio := sderl_bench_sample:interval(),
                    provisional := false | {true, Needed :: pos_integer()},
                    left_out := [Name :: binary()]}.

%% How much slower something simpler may be.
-define(SLACK, 0.05).

-doc "How much slower the simpler one may be: 0.05 is 5 %.".
-spec slack() -> float().
slack() -> ?SLACK.

-doc """
The tables with the times of each, in the order of the rounds; the simplest table first. Without a
race nothing was left out.
""".
-spec of_times([{Name :: binary(), Times :: [float(), ...]}, ...], Race :: boolean()) -> choice().
of_times(All, Race) ->
    Level = sderl_bench_verdict:level(max(1, length(All) - 1)),
    Least = sderl_bench_sample:least(Level),
    Out = [Name || Race, Name <- sderl_bench_vm_race:left_out(All)],
    Tables = [Table || {Name, _} = Table <- All, not lists:member(Name, Out)],
    {_, Fastest} = lists:min([{sderl_table:median(Times), Name} || {Name, Times} <- Tables]),
    {Fastest, Best} = lists:keyfind(Fastest, 1, Tables),
    Enough = lists:all(fun({_, Times}) -> length(Times) >= Least end, Tables),
    Ratios = [{Name, sderl_bench_sample:ratio(Level, Best, Times)}
              || {Name, Times} <- Tables, Name =/= Fastest],
    Near = [{Name, Ratio} || {Name, #{high := High} = Ratio} <- Ratios, Enough,
                             High =< 1 + ?SLACK, simpler(Name, Fastest, Tables)],
    {Take, Ratio} = case Near of
        [First | _] -> First;
        [] -> {Fastest, #{value => 1.0, low => 1.0, high => 1.0}}
    end,
    #{fastest => Fastest, take => Take, ratio => Ratio,
      left_out => Out,
      provisional => case Enough of true -> false; false -> {true, Least} end}.

simpler(Name, Other, Tables) ->
    Names = [Known || {Known, _} <- Tables],
    lists:member(Other, tl(lists:dropwhile(fun(Known) -> Known =/= Name end, Names))).

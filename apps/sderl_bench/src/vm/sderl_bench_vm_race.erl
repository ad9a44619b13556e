%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_race).
-moduledoc """
A race of programs of which only the best is asked for, such as the tables of one mix. Pure.

The race is on the most schedulers, for each combination of flags and OTP by itself. When every
program has had two virtual machines there, those that are far behind are left out: their faster one
took more than one and a half times as long as the slower one of the leader, which is the program
with the least median. The points with fewer schedulers wait until those of the race have as many
virtual machines as a choice needs, so that a short time is spent on the answer.
""".

-export([running/3, behind/1, left_out/1]).

%% Virtual machines of each program before any is left out.
-define(LOOKS, 2).
%% How many times as long as the leader.
-define(FAR, 1.5).

-doc "The points to measure, among those of all programs that have not failed.".
-spec running([sderl_bench_vm_plan:id()], sderl_bench_vm_plan:seen(), Least :: pos_integer()) ->
    [sderl_bench_vm_plan:id()].
running(Ids, Seen, Least) ->
    Races = maps:groups_from_list(fun({_, {_, Key}}) -> Key end, Ids),
    lists:append([race(Of, Seen, Least) || _ := Of <- Races]).

race(Ids, Seen, Least) ->
    Most = lists:max([Size || {_, {Size, _}} <- Ids]),
    {There, Fewer} = lists:partition(fun({_, {Size, _}}) -> Size =:= Most end, Ids),
    Times = [{Name, times(Id, Seen)} || {Name, _} = Id <- There],
    #{names := Out} = behind(Times),
    Names = [Name || {Name, _} <- There, not lists:member(Name, Out)],
    [Id || {Name, _} = Id <- There, lists:member(Name, Names)] ++
        case [Name || {Name, Of} <- Times, length(Of) < Least, lists:member(Name, Names)] of
            [] -> [Id || {Name, _} = Id <- Fewer, lists:member(Name, Names)];
            _ -> []
        end.

%% In the order of the rounds.
times(Id, Seen) ->
    case Seen of
        #{Id := #{times := Times}} -> [Time || _ := Time <- maps:iterator(Times, ordered)];
        #{} -> []
    end.

-doc """
The entrants that are far behind, by the times of each in the order of the rounds; none before all
have two.
""".
-spec behind([{Name, [number()]}]) -> #{names := [Name], looks := pos_integer(),
                                        factor := float()}.
behind(Entrants) ->
    First = [{Name, lists:sublist(Times, ?LOOKS)} || {Name, Times} <- Entrants],
    #{looks => ?LOOKS, factor => ?FAR,
      names => case [ok || {_, Times} <- First, length(Times) < ?LOOKS] of
          [] when First =/= [] -> far(First);
          _ -> []
      end}.

far(First) ->
    {_, Leader} = lists:min([{sderl_table:median(Times), Times} || {_, Times} <- First]),
    [Name || {Name, Times} <- First, lists:min(Times) > ?FAR * lists:max(Leader)].

-doc """
The entrants that are far behind and were not measured when others were, by all times of each. One
that failed too often has too few times to be judged: the race went on without it.
""".
-spec left_out([{Name, [number()]}]) -> [Name].
left_out(Entrants) ->
    #{names := Behind} = behind([Entrant || {_, Times} = Entrant <- Entrants,
                                            length(Times) >= ?LOOKS]),
    Most = lists:max([0 | [length(Times) || {_, Times} <- Entrants]]),
    %% One time less may be a round that did not end.
    [Name || {Name, Times} <- Entrants, length(Times) + 1 < Most, lists:member(Name, Behind)].

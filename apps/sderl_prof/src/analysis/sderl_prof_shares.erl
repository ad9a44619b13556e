%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_shares).
-moduledoc """
What a sampler (`m:sderl_prof_sampler`) has counted, as shares with intervals. Pure.

Each look stands for some time, so a share is the sum of the times of looks with what it is the
share of, by that of all looks. Its interval is Wilson's, of 95 %, of as many looks as would tell as
much if each stood for as long: the square of the sum by the sum of the squares.
""".

-export([report/2, interval/2]).
-export_type([report/0, share/0]).

-define(Z, 1.959964).

-doc "A share, and its interval.".
-type share() :: #{share := float(), low := float(), high := float()}.
-doc "A map that can be JSON.".
-type report() :: #{atom() => term()}.

-doc "The report, with at most so many rows in each list.".
-spec report(sderl_prof_sampler:result(), Most :: pos_integer()) -> report().
report(#{cells := Cells, groups := Groups, ns := Ns, all_ns := AllNs, own_ns := Own,
         looks := Looks, reductions := Reductions} = Result, Most) ->
    Busy = [Cell || {_, Status, _, _, _, _} = Cell <- Cells, is_busy(Status)],
    Waiting = [Cell || {_, waiting, _, _, _, _} = Cell <- Cells],
    Counted = lists:sum([R || {_, _, R} <- Groups]),
    (maps:with([node, otp, began_wall, rate, looks, rounds, processes, schedulers_online],
               Result))#{
        kind => sampling,
        seconds => AllNs / 1.0e9,
        looks_s => Looks / (AllNs / 1.0e9),
        own_share => Own / AllNs,
        reductions => Reductions,
        counted_share => min(1.0, Counted / max(1, Reductions)),
        states => states(Cells, Ns),
        groups => groups(Cells, Groups, Ns, Most),
        functions => places(Busy, Busy, Ns, Most),
        waits => places(Waiting, Waiting, Ns, Most),
        schedulers => [#{type => Type, number => N, awake => awake(Awake, All)}
                       || {Type, N, Awake, All} <- map_get(schedulers, Result)],
        threads => [#{type => Type, states => parts(Counters)}
                    || {Type, Counters} <- map_get(threads, Result)]
    }.

is_busy(Status) -> lists:member(Status, [running, runnable, garbage_collecting]).

awake(_, 0) -> 0.0;
awake(Awake, All) -> Awake / All.

parts(Counters) ->
    All = max(1, lists:sum(maps:values(Counters))),
    maps:map(fun(_, N) -> N / All end, Counters).

%% How many processes are in each state, on average.
states(Cells, Ns) ->
    By = maps:groups_from_list(fun({_, Status, _, _, _, _}) -> Status end, Cells),
    [#{state => Status, looks => looks(Of), processes => sum(Of) / Ns}
     || {Status, Of} <- lists:sort(maps:to_list(By))].

looks(Cells) -> lists:sum([N || {_, _, _, N, _, _} <- Cells]).

sum(Cells) -> lists:sum([Sum || {_, _, _, _, Sum, _} <- Cells]).

%% Kinds of processes, what had most reductions first.
groups(Cells, Groups, Ns, Most) ->
    By = maps:groups_from_list(fun({Group, _, _, _, _, _}) -> Group end, Cells),
    All = max(1, lists:sum([R || {_, _, R} <- Groups])),
    Sorted = lists:sort(fun({_, _, A}, {_, _, B}) -> A >= B end, Groups),
    [begin
         Of = maps:get(Group, By, []),
         Busy = [Cell || {_, Status, _, _, _, _} = Cell <- Of, is_busy(Status)],
         #{group => Group, seen => N, looks => looks(Of), reductions => R, of_reductions => R / All,
           processes => sum(Of) / Ns, busy => sum(Busy) / Ns, share_busy => share(Busy, Of)}
     end || {Group, N, R} <- lists:sublist(Sorted, Most)].

%% Functions, those in which most processes are first.
places(Cells, All, Ns, Most) ->
    By = maps:groups_from_list(fun({_, _, Function, _, _, _}) -> Function end, Cells),
    Rows = lists:sort(fun({A, _, _}, {B, _, _}) -> A >= B end,
                      [{sum(Of), Function, Of} || Function := Of <- By]),
    [#{function => Function, looks => looks(Of), processes => Sum / Ns, share => share(Of, All),
       groups => lists:sublist(lists:usort([Group || {Group, _, _, _, _, _} <- Of]), 3)}
     || {Sum, Function, Of} <- lists:sublist(Rows, Most)].

share(Cells, All) ->
    Squares = lists:sum([S || {_, _, _, _, _, S} <- All]),
    case sum(All) of
        %% Also 0.0, of looks that stand for no time.
        Sum when Sum == 0 -> #{share => 0.0, low => 0.0, high => 1.0};
        Sum -> interval(sum(Cells) / Sum, Sum * Sum / max(1, Squares))
    end.

-doc "A share of so many looks, with its interval.".
-spec interval(Share :: float(), Looks :: number()) -> share().
interval(Share, Looks) ->
    Z2 = ?Z * ?Z / Looks,
    Middle = (Share + Z2 / 2) / (1 + Z2),
    Half = ?Z / (1 + Z2) * math:sqrt(max(0.0, Share * (1 - Share) / Looks + Z2 / (4 * Looks))),
    #{share => Share, low => max(0.0, Middle - Half), high => min(1.0, Middle + Half)}.

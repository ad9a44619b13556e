%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_shares).
-moduledoc """
What a sampler (`m:sderl_prof_sampler`) has counted, as shares with intervals. Pure.

Each look stands for some time, so a share is the time of some looks, divided by that of all looks.
Its interval of 95 % is Wilson's, for the effective number of looks: the square of the sum of their
times, divided by the sum of the squares.
""".

-export([report/2, states/2, groups/4, places/4, busy/1, sum/1, share/2, schedulers/1,
         schedulers/2, interval/2]).
-export_type([report/0, share/0]).

-define(Z, 1.959964).

-doc "A share, and its interval.".
-type share() :: #{share := float(), low := float(), high := float()}.
-doc "A map that can be JSON.".
-type report() :: #{atom() => term()}.
-type cells() :: [sderl_prof_looks:cell()].
-type row() :: #{atom() => term()}.

-doc "The report, with at most so many rows in each list, and what it was made of.".
-spec report(sderl_prof_sampler:result(), Most :: pos_integer()) -> report().
report(#{found := #{cells := Cells, groups := Groups, parts := Parts} = Found, ns := Ns,
         all_ns := AllNs, own_ns := Own, looks := Looks} = Result, Most) ->
    Reductions = lists:sum([R || #{reductions := R} <- Parts]),
    Counted = lists:sum([R || {_, _, _, R, _, _} <- Groups]),
    Busy = busy(Cells),
    Waiting = [Cell || {_, _, waiting, _, _, _, _, _} = Cell <- Cells],
    Kinds = schedulers(map_get(schedulers, Result)),
    (maps:with([node, otp, began_wall, rate, looks, rounds, processes, schedulers_online],
               Result))#{
        kind => sampling,
        seconds => AllNs / 1.0e9,
        looks_s => Looks / (AllNs / 1.0e9),
        own_share => Own / AllNs,
        reductions => Reductions,
        counted_share => min(1.0, Counted / max(1, Reductions)),
        states => states(Cells, Ns),
        groups => lists:sublist(groups(Cells, Groups, Busy, Ns), Most),
        functions => lists:sublist(places(function, Busy, Busy, Ns), Most),
        waits => lists:sublist(places(function, Waiting, Waiting, Ns), Most),
        schedulers => schedulers(Kinds, Parts),
        threads => [#{type => Type, states => parts(Counters)}
                    || {Type, Counters} <- map_get(threads, Result)],
        series => map_get(series, Result),
        samples => sderl_prof_samples_file:encode(Found)
    }.

-doc "The cells of processes that ran or could have run.".
-spec busy(cells()) -> cells().
busy(Cells) ->
    [Cell || {_, _, Status, _, _, _, _, _} = Cell <- Cells,
             lists:member(Status, [running, runnable, garbage_collecting])].

-doc "Which kind of thread each scheduler is, from how many there are of each.".
-spec schedulers(#{normal | cpu | io => non_neg_integer()}) -> [normal | cpu | io].
schedulers(#{normal := Normal, cpu := Cpu, io := Io}) ->
    lists:duplicate(Normal, normal) ++ lists:duplicate(Cpu, cpu) ++ lists:duplicate(Io, io).

-doc "How far each was awake in these parts together.".
-spec schedulers([atom()], [sderl_prof_looks:part()]) -> [row()].
schedulers(Kinds, Parts) ->
    Sums = lists:foldl(fun({N, Awake, All}, Sums) ->
        maps:update_with(N, fun({A, B}) -> {A + Awake, B + All} end, {Awake, All}, Sums)
    end, #{}, [Row || #{schedulers := Rows} <- Parts, Row <- Rows]),
    [#{type => Type, number => N, awake => awake(maps:get(N, Sums, {0, 0}))}
     || {N, Type} <- lists:enumerate(Kinds), is_map_key(N, Sums)].

awake({_, 0}) -> 0.0;
awake({Awake, All}) -> Awake / All.

parts(Counters) ->
    All = max(1, lists:sum(maps:values(Counters))),
    maps:map(fun(_, N) -> N / All end, Counters).

-doc "How many processes are in each state, on average of so long.".
-spec states(cells(), Ns :: pos_integer()) -> [row()].
states(Cells, Ns) ->
    By = maps:groups_from_list(fun({_, _, Status, _, _, _, _, _}) -> Status end, Cells),
    [#{state => Status, looks => looks(Of), processes => sum(Of) / Ns}
     || {Status, Of} <- lists:sort(maps:to_list(By))].

looks(Cells) -> lists:sum([N || {_, _, _, _, _, N, _, _} <- Cells]).

-doc "The nanoseconds of processes for which they stand.".
-spec sum(cells()) -> number().
sum(Cells) -> lists:sum([Sum || {_, _, _, _, _, _, Sum, _} <- Cells]).

-doc """
Kinds of processes, what had most reductions first. `share` is that of all that ran or could have
run, `share_busy` that of the kind's own time; `queue`: messages that wait on average.
""".
-spec groups(cells(), [sderl_prof_looks:group()], Busy :: cells(), Ns :: pos_integer()) -> [row()].
groups(Cells, Groups, Busy, Ns) ->
    Kind = fun({_, Group, _, _, _, _, _, _}) -> Group end,
    By = maps:groups_from_list(Kind, Cells),
    BusyBy = maps:groups_from_list(Kind, Busy),
    Squares = squares(Busy),
    Sum = sum(Busy),
    Rows = maps:groups_from_list(fun({_, Group, _, _, _, _}) -> Group end, Groups),
    All = max(1, lists:sum([R || {_, _, _, R, _, _} <- Groups])),
    lists:sort(fun(#{reductions := A}, #{reductions := B}) -> A >= B end, [
        begin
            Of = maps:get(Group, By, []),
            OfBusy = maps:get(Group, BusyBy, []),
            Reductions = lists:sum([R || {_, _, _, R, _, _} <- In]),
            #{group => Group, seen => lists:sum([N || {_, _, N, _, _, _} <- In]),
              looks => looks(Of), reductions => Reductions, of_reductions => Reductions / All,
              processes => sum(Of) / Ns, busy => sum(OfBusy) / Ns,
              share => share(sum(OfBusy), Sum, Squares), share_busy => share(OfBusy, Of),
              queue => lists:sum([Q || {_, _, _, _, Q, _} <- In]) / Ns,
              most_queue => lists:max([Most || {_, _, _, _, _, Most} <- In])}
        end || Group := In <- Rows
    ]).

-doc """
Functions, or functions with what called them, those in which most processes are first; shares are
those of `All`.
""".
-spec places(function | caller, cells(), All :: cells(), Ns :: pos_integer()) -> [row()].
places(What, Cells, All, Ns) ->
    By = maps:groups_from_list(fun({_, _, _, Function, Caller, _, _, _}) ->
        case What of
            function -> #{function => Function};
            caller -> #{function => Function, caller => Caller}
        end
    end, Cells),
    Rows = lists:sort(fun({A, _, _}, {B, _, _}) -> A >= B end,
                      [{sum(Of), Place, Of} || Place := Of <- By]),
    {AllSum, Squares} = {sum(All), squares(All)},
    [Place#{looks => looks(Of), processes => Sum / Ns, share => share(Sum, AllSum, Squares),
            groups => lists:sublist(lists:usort([Group || {_, Group, _, _, _, _, _, _} <- Of]), 3)}
     || {Sum, Place, Of} <- Rows].

squares(Cells) -> lists:sum([S || {_, _, _, _, _, _, _, S} <- Cells]).

-doc "The share that some have of all.".
-spec share(cells(), All :: cells()) -> share().
share(Cells, All) -> share(sum(Cells), sum(All), squares(All)).

%% Also 0.0, of looks that stand for no time.
share(_, Sum, _) when Sum == 0 -> #{share => 0.0, low => 0.0, high => 1.0};
share(Part, Sum, Squares) -> interval(min(1.0, Part / Sum), Sum * Sum / max(1, Squares)).

-doc "A share of so many looks, with its interval.".
-spec interval(Share :: float(), Looks :: number()) -> share().
interval(Share, Looks) ->
    Z2 = ?Z * ?Z / Looks,
    Middle = (Share + Z2 / 2) / (1 + Z2),
    Half = ?Z / (1 + Z2) * math:sqrt(max(0.0, Share * (1 - Share) / Looks + Z2 / (4 * Looks))),
    #{share => Share, low => max(0.0, Middle - Half), high => min(1.0, Middle + Half)}.

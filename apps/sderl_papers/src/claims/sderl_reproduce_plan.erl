%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_plan).
-moduledoc """
Plans which runs of which points fit into a budget. Pure.

Each claim has a part of the budget, by its share. First every point is planned once, as far as the
part of its claim suffices, the most important points of each claim first; those with `least_runs`
get that many runs. Then what is left of all parts together goes to points that did not fit, again
the most important of each claim first. Then all points with one run are planned a second time, and
so on. So the runs of a point are minutes apart, and a short disturbance of the machine is not in
all of them.

Points that differ only in `monitoring` follow one another, so that a disturbance is in both or in
neither; which of them is first alternates from run to run.

A measured run is charged with the time that it took, a planned one with its estimate. A point that
several claims ask for is charged to the first.
""".

-export([plan/4, total/1]).
-export_type([claim/0, measured/0, job/0, plan/0]).

-doc "A claim to plan for, its points in the order of their importance.".
-type claim() :: #{id := binary(), share := pos_integer(), points := [sderl_claim:point()]}.

-doc """
A run that was tried; `took_s` is the whole time, including the start and stop of nodes. A run that
`failed` is not planned again; a run that is to be `retried` cost time without a result.
""".
-type measured() ::
    #{key := sderl_claim_points:key(), took_s := number(), outcome := ok | failed | retried}.

-doc """
A run to measure: the `run`-th of the point, the first is 1. It should take so many `seconds`.
""".
-type job() ::
    #{claim := binary(), point := sderl_claim:point(), run := pos_integer(), seconds := number()}.

-doc """
`jobs` in the order in which to measure; `left_out`: points for which there is no time at all;
`failed`: those that could not be measured.
""".
-type plan() :: #{jobs := [job()], left_out := [job()], failed := [job()]}.

%% A few short runs say little about long ones, so the factor between measured and expected times is
%% kept within these limits.
-define(LEAST_FACTOR, 0.25).
-define(MOST_FACTOR, 10.0).

-doc """
Plans what is still to be measured, at most `MostRuns` runs of a point in all. The jobs and what was
measured together should not take longer than the budget.
""".
-spec plan([claim()], [measured()], BudgetS :: number() | infinity, MostRuns :: pos_integer()) ->
    plan().
plan(Claims, Measured, Budget, MostRuns) ->
    Entries = entries(Claims, Measured),
    Open = [Entry || #{failed := false} = Entry <- Entries],
    Start = {left(Claims, Entries, Budget), #{Key => Done || #{key := Key, done := Done} <- Open}},
    First = lists:foldl(
        fun(Run, State) ->
            own(Run,
                [Entry || #{point := Point} = Entry <- Open, Run =< maps:get(least_runs, Point, 1)],
                State)
        end,
        own(1, Open, Start),
        lists:seq(2, MostRuns)
    ),
    {_, Runs} = lists:foldl(
        fun(Run, State) -> shared(Run, Open, own(Run, Open, State)) end,
        shared(1, Open, First),
        lists:seq(2, MostRuns)
    ),
    #{
        jobs => lists:append([
            [job(Entry, Run)
             || Entry <- paired(Run, Open, [Entry
                                            || #{key := Key, done := Done} = Entry <- Open,
                                               Done < Run, Run =< map_get(Key, Runs)])]
         || Run <- lists:seq(1, MostRuns)
        ]),
        left_out => [job(Entry, 1) || #{key := Key} = Entry <- Open, map_get(Key, Runs) =:= 0],
        failed => [job(Entry, 1) || #{failed := true} = Entry <- Entries]
    }.

-doc "How long jobs should take, in seconds.".
-spec total([job()]) -> number().
total(Jobs) -> lists:sum([Seconds || #{seconds := Seconds} <- Jobs]).

job(#{claim := Claim, point := Point, seconds := Seconds}, Run) ->
    #{claim => Claim, point => Point, run => Run, seconds => Seconds}.

%% ---------------------------------------------------------------- pairs

%% First those whose other point has been measured.
paired(Run, All, Entries) ->
    Done = [{Pair, Key}
            || #{key := Key, done := Runs} = Entry <- All, Runs >= Run, Pair <- [pair(Entry)]],
    {Half, Others} = lists:partition(
        fun(#{key := Key} = Entry) ->
            Pair = pair(Entry),
            lists:any(fun({Of, Other}) -> Of =:= Pair andalso Other =/= Key end, Done)
        end,
        Entries
    ),
    Half ++ together(Run, Others).

together(_, []) -> [];
together(Run, [Entry | Entries]) ->
    Pair = pair(Entry),
    case lists:partition(fun(Other) -> pair(Other) =:= Pair end, Entries) of
        {[], _} -> [Entry | together(Run, Entries)];
        {Others, Rest} -> turned(Run, [Entry | Others]) ++ together(Run, Rest)
    end.

pair(#{point := #{workload := Workload, params := Params}}) ->
    {Workload, maps:remove(monitoring, Params)}.

turned(Run, Entries) ->
    {Watched, Others} = lists:partition(fun(#{point := #{params := Params}}) ->
        maps:get(monitoring, Params, off) =:= on
    end, Entries),
    case Run rem 2 of
        1 -> Others ++ Watched;
        0 -> Watched ++ Others
    end.

%% ---------------------------------------------------------------- points and what they take

%% Each point once, with the claim that pays for it.
entries(Claims, Measured) ->
    Runs = maps:groups_from_list(fun(#{key := Key}) -> Key end, Measured),
    Points = lists:uniq(fun({_, _, _, Key}) -> Key end, [
        {Id, Rank, Point, sderl_claim_points:key(Point)}
     || #{id := Id, points := Points} <- Claims, {Rank, Point} <- lists:enumerate(Points)
    ]),
    Seen = [{Point, Took}
            || {_, _, Point, Key} <- Points,
               #{outcome := ok, took_s := Took} <- maps:get(Key, Runs, [])],
    Factors = #{W => factor([Of || {#{workload := V}, _} = Of <- Seen, V =:= W])
                || W <- lists:usort([W || {#{workload := W}, _} <- Seen])},
    [
        #{
            key => Key, claim => Id, rank => Rank, point => Point,
            done => length([ok || #{outcome := ok} <- Tried]),
            failed => lists:any(fun(#{outcome := Outcome}) -> Outcome =:= failed end, Tried),
            spent => lists:sum([S || #{took_s := S} <- Tried]),
            seconds => seconds(Point, [S || #{outcome := ok, took_s := S} <- Tried], Factors)
        }
     || {Id, Rank, Point, Key} <- Points, Tried <- [maps:get(Key, Runs, [])]
    ].

%% The mean of its runs so far, or the expected time, corrected by the workload's error so far.
seconds(#{workload := Workload, fixed_s := Fixed, work_s := Work}, [], Factors) ->
    Fixed + Work * maps:get(Workload, Factors, 1.0);
seconds(_, Took, _) -> lists:sum(Took) / length(Took).

factor(Seen) ->
    Work = lists:sum([Work || {#{work_s := Work}, _} <- Seen]),
    Took = lists:sum([Took - Fixed || {#{fixed_s := Fixed}, Took} <- Seen]),
    case Work > 0 of
        true -> min(?MOST_FACTOR, max(?LEAST_FACTOR, Took / Work));
        false -> 1.0
    end.

%% ---------------------------------------------------------------- the budget

%% The remaining budget of each claim.
left(Claims, _Entries, infinity) ->
    #{Id => infinity || #{id := Id} <- Claims};
left(Claims, Entries, Budget) ->
    Shares = lists:sum([Share || #{share := Share} <- Claims]),
    evened(#{
        Id => Budget * Share / Shares -
            lists:sum([S || #{claim := Claim, spent := S} <- Entries, Claim =:= Id])
     || #{id := Id, share := Share} <- Claims
    }).

%% Time that one claim took beyond its part is taken from the others: no part falls below zero, and
%% the sum stays the same.
evened(Parts) ->
    Debt = lists:sum([-P || P <- maps:values(Parts), P < 0]),
    Wealth = lists:sum([P || P <- maps:values(Parts), P > 0]),
    Keep = if Wealth > Debt -> 1 - Debt / Wealth; true -> 0 end,
    #{Id => max(0, P) * Keep || Id := P <- Parts}.

%% One more run of each point that has one run less, as far as the part of its claim goes.
own(Run, Entries, State) ->
    lists:foldl(fun(#{claim := Claim} = Entry, Of) -> take(Entry, Run, own(Claim), Of) end, State,
                wanted(Run, Entries, State)).

%% The same with all parts, the most important of each claim first.
shared(Run, Entries, State) ->
    Ranked = [Entry
              || {_, Entry} <- lists:keysort(
                  1, [{Rank, Entry} || #{rank := Rank} = Entry <- wanted(Run, Entries, State)]
              )],
    lists:foldl(fun(Entry, Of) -> take(Entry, Run, fun pay/2, Of) end, State, Ranked).

wanted(Run, Entries, {_, Counts}) ->
    [Entry
     || #{key := Key, point := Point} = Entry <- Entries, map_get(Key, Counts) =:= Run - 1,
        Run =< maps:get(most_runs, Point, Run)].

take(#{key := Key, seconds := Seconds}, Run, Pay, {Left, Counts}) when map_get(Key, Counts) < Run ->
    case Pay(Seconds, Left) of
        {ok, Left1} -> {Left1, Counts#{Key := Run}};
        no -> {Left, Counts}
    end;
take(_, _, _, State) ->
    State.

own(Claim) ->
    fun(Seconds, Left) ->
        case map_get(Claim, Left) of
            infinity -> {ok, Left};
            Has when Has >= Seconds -> {ok, Left#{Claim := Has - Seconds}};
            _ -> no
        end
    end.

%% Each claim pays in proportion to what it has left.
pay(Seconds, Left) ->
    Sum = lists:sum(maps:values(Left)),
    if
        Sum > 0, Sum >= Seconds -> {ok, #{Id => L * (1 - Seconds / Sum) || Id := L <- Left}};
        true -> no
    end.

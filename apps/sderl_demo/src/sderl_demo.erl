%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo).
-moduledoc """
The demo: one workload on the same nodes three times: as a stock full mesh with `global`, as
s_groups whose nodes follow the other groups that they look names up in, and as s_groups
that do not.

Each side gets the machine for itself. The nodes of one are stopped before those of the next
start.
""".

-export([run/3, verdict/1]).
-export_type([settings/0, step/0, show/0, results/0]).

-doc "See `t:sderl_demo_side:settings/0`.".
-type settings() :: sderl_demo_side:settings().

-doc "A step of a side, once its nodes have started.".
-type step() :: link | sderl_demo_side:step().

-doc """
How progress is shown: `nodes` makes a fleet's progress function, `around` calls every later step of
a side.
""".
-type show() :: #{
    nodes := fun((sderl_demo_cluster:side()) -> fun((non_neg_integer(), pos_integer()) -> term())),
    around := fun(
        (sderl_demo_cluster:side(), step(), fun(() -> dynamic())) -> dynamic()
    )
}.

-doc "What each side measured.".
-type results() :: #{sderl_demo_cluster:side() := sderl_demo_side:metrics()}.

-doc """
Runs all sides. The returned fleet is that of the s_groups that follow no others, still running. The
process `Owner` owns the fleets: they end with it.
""".
-spec run(Owner :: pid(), settings(), show()) ->
    {ok, results(), Fleet :: pid()} | {error, {sderl_demo_cluster:side(), Reason :: term()}}.
run(Owner, #{layout := Layout, seconds := Seconds, seed := Seed} = Settings, Show) ->
    Orders = sderl_demo_kill:plan(Layout, Seconds, Seed),
    Run = fun(Side) -> side(Side, Owner, Settings, Orders, Show) end,
    maybe
        {ok, Stock, StockFleet} ?= Run(stock),
        ok = sderl_fleet:stop(StockFleet),
        {ok, Following, FollowingFleet} ?= Run(following),
        ok = sderl_fleet:stop(FollowingFleet),
        {ok, Sd, SdFleet} ?= Run(sd),
        {ok, #{stock => Stock, sd => Sd, following => Following}, SdFleet}
    end.

side(Side, Owner, #{layout := Layout} = Settings, Orders, #{nodes := Nodes, around := Around}) ->
    AroundStep = fun(Step, Fun) -> Around(Side, Step, Fun) end,
    maybe
        {ok, Fleet} ?= sderl_demo_cluster:start(Side, Layout, Owner, Nodes(Side)),
        {ok, Metrics} ?= measured(Side, Fleet, Settings, Orders, AroundStep),
        {ok, Metrics, Fleet}
    else
        {error, Reason} -> {error, {Side, Reason}}
    end.

measured(Side, Fleet, #{layout := Layout} = Settings, Orders, Around) ->
    Result =
        maybe
            ok ?= Around(link, fun() -> sderl_demo_cluster:link(Side, Fleet, Layout) end),
            sderl_demo_side:run(Side, Fleet, Settings, Orders, Around)
        end,
    case Result of
        {ok, _} ->
            Result;
        {error, _} ->
            ok = sderl_fleet:stop(Fleet),
            Result
    end.

-doc """
Whether the s_groups kept their promises, following others and not: no call lost but those in
flight at a kill, every name back on every member and no other name left, no error. The figures of
`global` are shown and not judged.
""".
-spec verdict(results()) -> ok | {error, [{Key :: atom(), Count :: pos_integer()}, ...]}.
verdict(Results) ->
    Promised = [lost_calls, missing_names, leftover_names, errors],
    Sides = maps:values(maps:with([sd, following], Results)),
    case [{Key, Count} || Key <- Promised, Count <- [lists:sum([maps:get(Key, S) || S <- Sides])],
                          Count > 0] of
        [] -> ok;
        Broken -> {error, Broken}
    end.

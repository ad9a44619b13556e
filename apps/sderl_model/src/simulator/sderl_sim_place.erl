%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_place).
-moduledoc """
The load that many nodes which choose at the same time put on a set of nodes: the choosers of
`sderl_place`, run by many choosing nodes that each have their own account of pending choices and
all have the same, stale values.

A choice adds 1 to the chosen node's load. Only the chooser sees that, until the values are
refreshed. The result is the distribution of the choices over the nodes.
""".

-export([run/1, table/0, format/1]).

-export_type([options/0, result/0]).

-doc """
`choosers`: how many nodes choose, in random order. `load`: what the nodes have at the start:
`equal` (none), `uneven` (0 to 40 each), `fresh` (40 each, but none on one new node). `refresh`:
after so many choices all see the true values. `pending`: whether choosers count their own choices.
""".
-type options() ::
    #{choose := sderl_place_spec:chooser(), nodes => pos_integer(), choices => pos_integer(),
      choosers => pos_integer(), load => equal | uneven | fresh, refresh => pos_integer() | never,
      pending => boolean(), adds => auto | number(), seed => integer()}.
-doc """
`most`: choices on the node chosen most; `nodes`: how many nodes were chosen at all; `peak`: the
highest load in the end; `mean`: the mean load in the end, which is the lowest possible peak;
`ratio`: peak by mean.
""".
-type result() ::
    #{most := non_neg_integer(), nodes := pos_integer(), peak := number(), mean := float(),
      ratio := float()}.

-doc "One run. The same options give the same result.".
-spec run(options()) -> result().
run(Options) ->
    #{choose := Choose, nodes := N, choices := Choices, choosers := M, load := Load,
      refresh := Refresh, pending := Pending, adds := Adds, seed := Seed} =
        maps:merge(#{nodes => 50, choices => 1000, choosers => 50, load => equal, refresh => never,
                     pending => true, adds => auto, seed => 1}, Options),
    Before = load(Load, N, rand:seed_s(exsss, Seed)),
    Random = rand:seed_s(exsss, Seed + 1),
    After = choose(Choices, #{choose => Choose, adds => Adds, pending => Pending, choosers => M,
                              seen => Before, refresh => Refresh, account => #{}, now => Before,
                              random => Random, done => 0}),
    Gained = [maps:get(I, After) - maps:get(I, Before) || I <- lists:seq(1, N)],
    Mean = lists:sum(maps:values(After)) / N,
    Peak = lists:max(maps:values(After)),
    #{most => lists:max(Gained), nodes => length([G || G <- Gained, G > 0]), peak => Peak,
      mean => Mean, ratio => Peak / Mean}.

load(equal, N, _) -> #{I => 0 || I <- lists:seq(1, N)};
load(uneven, N, R) ->
    {Loads, _} = lists:mapfoldl(
        fun(I, R0) -> {L, R1} = rand:uniform_s(41, R0), {{I, L - 1}, R1} end, R, lists:seq(1, N)
    ),
    maps:from_list(Loads);
load(fresh, N, _) -> #{I => case I of N -> 0; _ -> 40 end || I <- lists:seq(1, N)}.

choose(0, #{now := Now}) -> Now;
choose(Left, #{choosers := M, account := Account, now := Now, seen := Seen, random := Random0,
               done := Done} = S) ->
    {Who, Random1} = rand:uniform_s(M, Random0),
    {Seed, Random} = rand:uniform_s(1 bsl 32, Random1),
    Own = case S of #{pending := true} -> maps:get(Who, Account, #{}); _ -> #{} end,
    Entries = [{I, 0, V, maps:get(I, Own, 0)} || {I, V} <- lists:sort(maps:to_list(Seen))],
    #{choose := Choose, adds := Adds, refresh := Refresh} = S,
    [I] = sderl_place_pick:pick(keyed(Choose, Left), 1, Adds, Entries,
                                sderl_place_pick:random(Seed)),
    Later = Now#{I := maps:get(I, Now) + 1},
    choose(Left - 1, case Refresh =/= never andalso (Done + 1) rem Refresh =:= 0 of
        true -> S#{seen := Later, now := Later, account := #{}, random := Random, done := Done + 1};
        false -> S#{now := Later, account := Account#{Who => Own#{I => maps:get(I, Own, 0) + 1}},
                    random := Random, done := Done + 1}
    end).

keyed({hash, _}, Key) -> {hash, Key};
keyed(Choose, _) -> Choose.

-doc """
1,000 choices over 50 nodes, for each chooser and each kind of load, by 50 nodes and by one.
""".
-spec table() ->
    [{Chooser :: atom(), Load :: atom(), Choosers :: pos_integer(), options(), result()}].
table() ->
    [{Name, Load, M, Options, run(Options)}
     || {Name, How} <- [{random, #{choose => random}},
                        {hash, #{choose => {hash, key}}},
                        {least_forgetful, #{choose => {least, load}, pending => false}},
                        {least, #{choose => {least, load}}},
                        {least_adds_1, #{choose => {least, load}, adds => 1}},
                        {two_forgetful, #{choose => {two, least, load}, pending => false}},
                        {two, #{choose => {two, least, load}}},
                        {two_adds_1, #{choose => {two, least, load}, adds => 1}}],
        Load <- [equal, uneven, fresh], M <- [1, 50],
        Options <- [How#{load => Load, choosers => M}]].

-doc "The table for people.".
-spec format([{atom(), atom(), pos_integer(), options(), result()}]) -> iolist().
format(Rows) ->
    [io_lib:format("~-18s ~-8s ~3b choosers: most ~4b on ~2b nodes, peak ~4b, mean ~5.1f, ratio "
                   "~5.2f~n",
                   [Name, Load, M, Most, Nodes, Peak, Mean, Ratio])
     || {Name, Load, M, _,
         #{most := Most, nodes := Nodes, peak := Peak, mean := Mean, ratio := Ratio}} <- Rows].

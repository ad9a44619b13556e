%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim).
-moduledoc """
A deterministic simulator of groups: members that run the real `sderl_core`, in one process, on
simulated time, over links that delay, reorder against each other, break and heal.

`run/1` takes a seed or a map and gives `ok` or `{failed, Why, Seed}`; the same seed gives the same
run. The promises at every step are in `m:sderl_sim_check`, those after the faults in
`m:sderl_sim_settle`, and the kinds of random faults in `m:sderl_sim_faults`.

A script is a list of `{At, Command}`, see `m:sderl_sim_command`; without one, faults and clients
are random.

| option | meaning |
|---|---|
| `seed` | of all random choices |
| `nodes`, `spare` | members at the start (3 to 7), nodes that are no members at first (0 to 2) |
| `groups` | how many (1): the first of all nodes, others of some of them |
| `made` | groups that are made at run time, of all nodes (0; 1 with the kind `regroup`) |
| `script` | instead of random faults |
| `faults`, `kinds`, `time` | at most so many random faults (12), of these kinds, that begin before (40,000 ms) |
| `clients` | clients on each node, in each group (1 to 3; with a script none) |
| `longest` | most faults last at most so long (9000 ms) |
| `patience` | a client gives up after so many ms (never) |
| `keep` | names that a node registers in each group and keeps for its life (0) |
| `mode` | of the groups: `available`, or `majority` (without the island) |
| `answer` | of available groups: clients are answered when a batch is `committed`, or `applied` on their node |
| `reads` | so many of a hundred operations are reads through the log (0; 15 in majority mode) |
| `files` | `true`: a node keeps uid, membership and highest epoch in a file over a restart (`false`) |
| `door` | `fun(From, Message)`: whether the library accepts a message (`sderl_wire`) |
| `delay` | of links, `{Min, Max}` in ms (`{1, 20}`) |
| `late` | so many of a hundred messages take ten times as long (2) |
| `relink` | pairs without a link try again every so many ms (40) |
| `chunk` | rows in a piece of a snapshot or merge (3) |
| `boot_spread` | nodes start within so many ms (3000) |
| `strict` | which promises of `m:sderl_sim_strict` are checked (the usual ones) |
| `broken` | faults that are planted in the library: `t:sderl_plant:plant/0` |
| `core` | the core that runs: `sderl_core`, or one with faults of your own (`sderl_plant:core/1`) |
| `resolver` | what a clash may be decided for besides the two processes: `[none]`, or nothing |
| `launch` | a map from a node to the members in its launch configuration, if these are not all |
| `aside_ms`, `forget_ms` | settings of the groups |
| `trace` | `true` prints everything that happens; a function gets every line |
| `return` | `true`: gives the world at the end instead of `ok` |
""".

-export([run/1, schedule/1, apply_cmd/2]).
-export([name/1, spare/1, pid/2, all/1, state/2, rows/2, answer/2, note/3, noted/2, coord/1]).
-export_type([world/0, outcome/0, report/0]).

-include("sderl_sim.hrl").

-opaque world() :: #w{}.
-type outcome() :: ok | {failed, Why :: term(), Seed :: integer()} | world().
-doc """
The result of a schedule: `why` and `at_ms` if a promise was broken, steps of the protocol, faults
by kind, operations of clients, and how many ms after the last fault all were one component.
""".
-type report() ::
    #{
        seed := integer(), outcome := ok | failed, steps := non_neg_integer(),
        faults := #{atom() => pos_integer()}, operations := non_neg_integer(),
        converge_ms := integer() | undefined, at_ms := integer() | undefined, why => term(),
        world => world()
    }.

-define(OPTIONS,
    [seed, nodes, spare, groups, script, faults, kinds, time, longest, clients, delay, late,
     boot_spread, broken, aside_ms, forget_ms, trace, return, chunk, relink, resolver, launch,
     strict, patience, keep, made, core, door, mode, answer, reads, files, beats]).

-doc "Runs one schedule: a seed, or options with one.".
-spec run(integer() | map()) -> outcome().
run(Seed) when is_integer(Seed) -> run(#{seed => Seed});
run(#{seed := Seed} = Opts) ->
    case schedule(Opts) of
        #{outcome := ok, world := W} when map_get(return, Opts) -> W;
        #{outcome := ok} -> ok;
        #{outcome := failed, why := Why} -> {failed, Why, Seed}
    end.

-doc "Runs one schedule and reports on it.".
-spec schedule(map()) -> report().
schedule(#{seed := Seed} = Opts) ->
    known(Opts),
    Usual = #{strict => sderl_sim_strict:usual(maps:get(mode, Opts, available))},
    try
        sderl_sim_run:play(sderl_sim_world:new(Seed, maps:merge(Usual, Opts)))
    of
        #w{now = Now} = W -> (report(ok, W))#{at_ms => Now, world => W}
    catch
        throw:{violation, Why, #w{now = Now} = W} -> (report(failed, W))#{why => Why, at_ms => Now};
        Class:Reason:Stack ->
            #{seed => Seed, outcome => failed, why => {Class, Reason, Stack}, steps => 0,
              faults => #{}, operations => 0, converge_ms => undefined, at_ms => undefined}
    end.

report(Outcome, #w{seed = Seed, steps = Steps, counts = Counts, opno = Ops, converged = Ms}) ->
    #{seed => Seed, outcome => Outcome, steps => Steps, faults => Counts, operations => Ops,
      converge_ms => Ms, at_ms => undefined}.

known(Opts) ->
    case maps:keys(maps:without(?OPTIONS, Opts)) of
        [] -> ok;
        Unknown -> error({unknown_options, Unknown, {known, ?OPTIONS}})
    end,
    case sderl_planted:unknown([F || F <- maps:get(broken, Opts, []), not is_tuple(F)]) of
        [] -> ok;
        Faults -> error({unknown_faults, Faults, "sderl_planted:all() lists them"})
    end,
    case maps:get(mode, Opts, available) of
        Mode when Mode =:= available; Mode =:= majority -> ok;
        Other -> error({unknown_mode, Other, {known, [available, majority]}})
    end,
    case {maps:get(answer, Opts, committed), maps:get(mode, Opts, available)} of
        {committed, _} -> ok;
        {applied, available} -> ok;
        {Answer, Of} -> error({unknown_answer, Answer, {mode, Of}, {known, [committed, applied]}})
    end,
    case maps:get(strict, Opts, []) -- sderl_sim_strict:names() of
        [] -> ok;
        Promises -> error({unknown_promises, Promises, {known, sderl_sim_strict:names()}})
    end,
    case maps:get(kinds, Opts, []) -- sderl_sim_faults:kinds() of
        [] -> ok;
        Kinds -> error({unknown_kinds, Kinds, {known, sderl_sim_faults:kinds()}})
    end.

%% ---------------------------------------------------------------- for scripts and tests

-doc "Runs a command of a script at once.".
-spec apply_cmd(term(), world()) -> world().
apply_cmd(C, W) -> sderl_sim_command:run(C, W).

-doc "The name of an initial member.".
-spec name(pos_integer()) -> node().
name(I) -> lists:nth(I, sderl_sim_world:names(member, I)).

-doc "The name of a node that is no member at first.".
-spec spare(pos_integer()) -> node().
spare(I) -> lists:nth(I, sderl_sim_world:names(spare, I)).

-doc "A new pid of a simulated node.".
-spec pid(node(), world()) -> {pid(), world()}.
pid(N, W) -> sderl_sim_world:pid(N, W).

-doc "All nodes, sorted.".
-spec all(world()) -> [node()].
all(W) -> sderl_sim_world:all(W).

-doc "The state of the member on a node, or `none`.".
-spec state(node(), world()) -> sderl_core:state() | none.
state(N, #w{group = G} = W) -> sderl_sim_world:state(N, G, W).

-doc "The names that a node holds.".
-spec rows(node(), world()) -> #{term() => sderl_core:row()}.
rows(N, #w{group = G} = W) -> sderl_sim_world:rows(N, G, W).

-doc "The answer to an operation, or `none`.".
-spec answer(term(), world()) -> term().
answer(Id, #w{ops = Ops}) ->
    case Ops of
        #{Id := #{answer := A}} -> A;
        _ -> none
    end.

-doc "Keeps something for a later step of a script.".
-spec note(term(), term(), world()) -> world().
note(Key, Value, #w{notes = Notes} = W) -> W#w{notes = Notes#{Key => Value}}.

-doc "What `note/3` has kept.".
-spec noted(term(), world()) -> term().
noted(Key, #w{notes = Notes}) -> map_get(Key, Notes).

-doc "The nodes that coordinate.".
-spec coord(world()) -> [node()].
coord(#w{group = G} = W) -> sderl_sim_world:coordinators(G, W).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_mix).
-moduledoc """
Chooses the next operation: at random, by weights, and for the same seed in the same way.

What is drawn is a *unit*. A point-to-point unit is one operation. A `global` or `local` unit is
three: a name is registered, looked up and unregistered, as in the original, where a state machine
has a look-up and then an unregistration follow each registration.

The share of global operations is given as a share of all operations; `share/1` computes from it how
often units are drawn. Names of kinds are as in the metrics.
""".

-export([kinds/0, p2p/0, weights/0, steps/1, class/1, most_pct/0]).
-export([new/1, next/2, share/1, ops_per_unit/1]).
-export_type([kind/0, class/0, p2p/0, unit/0, weight/0, weights/0, mix/0, options/0]).

-type p2p() :: spawn | rpc | erpc | gen_server | gen_statem.
-doc "The kinds of operations.".
-type kind() ::
    p2p()
    | global_register
    | global_whereis
    | global_unregister
    | local_register
    | local_whereis
    | local_unregister.
-doc "`global` are registrations and unregistrations, not the look-ups, which are local reads.".
-type class() :: p2p | global | local.
-doc "What is drawn.".
-type unit() :: p2p() | global | local.
-doc """
The kinds with a weight; `local` is the weight of a local registration, which draws the other two.
""".
-type weight() :: p2p() | local.
-type weights() :: #{weight() => number()}.

-doc """
`global_pct`: the percentage of all operations that are global registrations and unregistrations.
The rest is split by `weights`; a kind that is not in them is not drawn.
""".
-type options() ::
    #{global_pct := number(), weights := weights(), seed := term(), atom() => term()}.

-opaque mix() :: {Thresholds :: [{float(), unit()}], rand:state()}.

-doc "All kinds of operations.".
-spec kinds() -> [kind()].
kinds() -> lists:append([steps(Unit) || Unit <- p2p() ++ [global, local]]).

-doc "The point-to-point kinds, which go from node to node.".
-spec p2p() -> [p2p()].
p2p() -> [spawn, rpc, erpc, gen_server, gen_statem].

-doc """
Near the weights of the original's scripts, which are 1000 for `spawn` and `rpc` and 10 for
all others: 100 here, so that a run of seconds has some of each.
""".
-spec weights() -> weights().
weights() ->
    #{spawn => 1000, rpc => 1000, erpc => 100, gen_server => 100, gen_statem => 100, local => 100}.

-doc "The operations of a unit, in their order.".
-spec steps(unit()) -> [kind(), ...].
steps(global) -> [global_register, global_whereis, global_unregister];
steps(local) -> [local_register, local_whereis, local_unregister];
steps(P2p) -> [P2p].

-doc "The class that a kind counts in.".
-spec class(kind()) -> class() | none.
class(global_whereis) -> none;
class(Kind) when Kind =:= global_register; Kind =:= global_unregister -> global;
class(Kind) when Kind =:= local_register; Kind =:= local_whereis; Kind =:= local_unregister ->
    local;
class(_) -> p2p.

-doc """
The greatest possible `global_pct`: two of three operations, as each name is also looked up.
""".
-spec most_pct() -> float().
most_pct() -> 200 / 3.

-doc """
The probability of each unit; they add up to 1. At least one weight is over zero, unless all units
are global.
""".
-spec share(#{global_pct := number(), weights := weights(), atom() => term()}) ->
    [{unit(), float()}].
share(#{global_pct := Pct, weights := Weights}) ->
    Sum = lists:sum(maps:values(Weights)),
    Global = global_share(min(Pct, most_pct()) / 100, Sum, Weights),
    [{global, Global}] ++
        [
            {Unit, (1 - Global) * W / Sum}
         || Unit <- p2p() ++ [local], W <- [maps:get(Unit, Weights, 0)], W > 0
        ].

%% With a share U of global units, and M operations in one of the others, 2 U of the 3 U + (1 - U) M
%% operations are registrations and unregistrations.
global_share(_, Sum, _) when Sum == 0 -> 1.0;
global_share(P, Sum, Weights) ->
    M = lists:sum([W * length(steps(Unit)) || Unit := W <- Weights]) / Sum,
    min(1.0, P * M / (2 - 3 * P + P * M)).

-doc "The mean number of operations of a unit.".
-spec ops_per_unit(#{global_pct := number(), weights := weights(), atom() => term()}) -> number().
ops_per_unit(Options) ->
    lists:sum([Share * length(steps(Unit)) || {Unit, Share} <- share(Options)]).

-doc "A mix. The same seed gives the same operations.".
-spec new(options()) -> mix().
new(#{seed := Seed} = Options) ->
    {Thresholds, _} = lists:mapfoldl(
        fun({Unit, Share}, Sum) -> {{Sum + Share, Unit}, Sum + Share} end, 0.0, share(Options)
    ),
    {Thresholds, rand:seed_s(exsss, erlang:phash2({mix, Seed}, 1 bsl 32))}.

-doc "The next unit, and one of the targets for it if it goes to another node.".
-spec next(Targets :: tuple(), mix()) -> {unit(), Target :: term(), mix()}.
next(Targets, {Thresholds, Random}) ->
    {U, Random1} = rand:uniform_s(Random),
    case unit(U, Thresholds) of
        Unit when Unit =:= global; Unit =:= local ->
            {Unit, none, {Thresholds, Random1}};
        Unit ->
            {N, Random2} = rand:uniform_s(tuple_size(Targets), Random1),
            {Unit, element(N, Targets), {Thresholds, Random2}}
    end.

%% The last takes what rounding leaves.
unit(_, [{_, Unit}]) -> Unit;
unit(U, [{Upto, Unit} | _]) when U < Upto -> Unit;
unit(U, [_ | Rest]) -> unit(U, Rest).

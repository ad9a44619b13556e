%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_keys).
-moduledoc """
The operations of each worker of `m:sderl_bench_tables_load`, drawn before the timed part: operation
and key in four bytes each, the same for the same seed. Pure.

With `zipf` the rank R of a key has the weight R^-S. Ranks are drawn by rejection inversion (W.
Hörmann and G. Derflinger, *Rejection-inversion to generate variates from monotone discrete
distributions*, 1996), which needs no table of the keys; then they are spread over the keys, so that
frequent keys are no neighbours.
""".

-export([stream/2, mix/1, spread/2]).
-export_type([mix/0, distribution/0]).

-doc "Shares of operations, in percent.".
-type mix() :: #{sderl_bench_table:op() => 0..100}.

-type distribution() :: uniform | {zipf, Exponent :: float()}.

-define(OPS, [read, put, delete, add, range]).

-doc "The shares of a mix, whose sum is 100.".
-spec mix(sderl_bench_vm_program:settings()) -> mix().
mix(Settings) -> maps:with(?OPS, Settings).

%% The code of an operation in a stream.
code(read) -> 0;
code(put) -> 1;
code(delete) -> 2;
code(add) -> 3;
code(range) -> 4.

-doc "So many operations, each `<<Key:28, Operation:4>>`.".
-spec stream(Seed :: term(), #{count := non_neg_integer(), mix := mix(), keys := pos_integer(),
                               distribution := distribution()}) -> binary().
stream(Seed, #{count := Count, mix := Mix, keys := Keys, distribution := Distribution}) ->
    State = rand:seed_s(exsss, erlang:phash2(Seed)),
    Ops = list_to_tuple(lists:append([lists:duplicate(maps:get(Op, Mix, 0), code(Op))
                                      || Op <- ?OPS])),
    100 = tuple_size(Ops),
    draw(Count, Ops, Keys, prepared(Distribution, Keys), State, <<>>).

draw(0, _, _, _, _, Stream) ->
    Stream;
draw(Left, Ops, Keys, Prepared, State0, Stream) ->
    {Share, State1} = rand:uniform_s(100, State0),
    {Key, State2} = key(Prepared, Keys, State1),
    draw(Left - 1, Ops, Keys, Prepared, State2, <<Stream/binary, Key:28, (element(Share, Ops)):4>>).

prepared(uniform, _) ->
    uniform;
prepared({zipf, S}, Keys) ->
    #{exponent => S, high => integral(Keys + 0.5, S), low => integral(1.5, S) - 1.0,
      sure => 2.0 - inverse(integral(2.5, S) - math:pow(2.0, -S), S)}.

key(uniform, Keys, State) ->
    rand:uniform_s(Keys, State);
key(#{exponent := S, high := High, low := Low, sure := Sure} = Zipf, Keys, State0) ->
    {Draw, State} = rand:uniform_s(State0),
    U = High + Draw * (Low - High),
    X = inverse(U, S),
    Rank = max(1, min(Keys, round(X))),
    case Rank - X =< Sure orelse U >= integral(Rank + 0.5, S) - math:pow(Rank, -S) of
        true -> {spread(Rank, Keys), State};
        false -> key(Zipf, Keys, State)
    end.

%% The integral of X^-S, and its inverse.
integral(X, S) when S == 1 -> math:log(X);
integral(X, S) -> (math:pow(X, 1 - S) - 1) / (1 - S).

inverse(U, S) when S == 1 -> math:exp(U);
inverse(U, S) -> math:pow(max(0.0, 1 + U * (1 - S)), 1 / (1 - S)).

-doc "The key of a rank: each of 1 to `Keys` has one.".
-spec spread(Rank :: pos_integer(), Keys :: pos_integer()) -> pos_integer().
spread(Rank, Keys) -> 1 + (Rank * step(Keys)) rem Keys.

%% Without a common divisor, so that no two ranks meet.
step(Keys) -> step(Keys, max(1, round(Keys * 0.6180339887))).

step(Keys, Step) ->
    case gcd(Keys, Step) of
        1 -> Step;
        _ -> step(Keys, Step + 1)
    end.

gcd(A, 0) -> A;
gcd(A, B) -> gcd(B, A rem B).

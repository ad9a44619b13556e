%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_bucket).
-moduledoc """
A token bucket that many processes take from without waiting for each other or for a process that
fills it.

It holds one number, the time at which the bucket will be full again. A token moves that time on by
what a token takes to come back; when it would be further away than a whole bucket takes, the bucket
is empty. Nothing has to be woken up to fill it.
""".

-export([new/2, take/1, step/3]).
-export_type([bucket/0, rate/0]).

-doc "How long one token and a whole bucket take to come, in nanoseconds.".
-type rate() :: {Token :: pos_integer(), Whole :: pos_integer()}.

-opaque bucket() :: {atomics:atomics_ref(), rate()}.

%% Others may take at the same time; a caller that loses this often in a row gets no token.
-define(TRIES, 20).

-doc "A full bucket of `Burst` tokens that gets `PerS` a second.".
-spec new(PerS :: pos_integer(), Burst :: pos_integer()) -> bucket().
new(PerS, Burst) ->
    Token = 1_000_000_000 div PerS,
    Ref = atomics:new(1, [{signed, true}]),
    ok = atomics:put(Ref, 1, now_ns()),
    {Ref, {Token, Burst * Token}}.

-doc "Takes a token, if there is one.".
-spec take(bucket()) -> boolean().
take({Ref, Rate}) -> take(Ref, atomics:get(Ref, 1), Rate, ?TRIES).

take(_, _, _, 0) -> false;
take(Ref, Full, Rate, Tries) ->
    case step(now_ns(), Full, Rate) of
        empty -> false;
        {taken, Later} ->
            case atomics:compare_exchange(Ref, 1, Full, Later) of
                ok -> true;
                Other -> take(Ref, Other, Rate, Tries - 1)
            end
    end.

-doc "Taking a token at `Now` from a bucket that is full at `Full`: when it will be full then.".
-spec step(Now :: integer(), Full :: integer(), rate()) -> {taken, Full :: integer()} | empty.
step(Now, Full, {Token, Whole}) ->
    case max(Now, Full) + Token of
        Later when Later - Now > Whole -> empty;
        Later -> {taken, Later}
    end.

now_ns() -> erlang:monotonic_time(nanosecond).

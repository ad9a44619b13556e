%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_echo).
-moduledoc "The work of a node for a caller on another node: it computes, and returns the block.".

-export([work/2, reply/3]).

-doc "Computes for so many microseconds, and returns the block.".
-spec work(binary(), ComputeUs :: non_neg_integer()) -> binary().
work(Block, 0) ->
    Block;
work(Block, ComputeUs) ->
    ok = busy(erlang:monotonic_time(microsecond) + ComputeUs),
    Block.

busy(Until) ->
    case erlang:monotonic_time(microsecond) < Until of
        true -> busy(Until);
        false -> ok
    end.

-doc "The same in a process that was spawned from another node; the block goes to the alias.".
-spec reply(reference(), binary(), ComputeUs :: non_neg_integer()) -> ok.
reply(Alias, Block, ComputeUs) ->
    Alias ! {Alias, work(Block, ComputeUs)},
    ok.

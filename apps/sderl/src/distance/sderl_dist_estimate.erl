%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_estimate).
-moduledoc false.
%% Decides which node measures a pair of nodes, and evaluates a series of measurements.
%%
%% Noise only makes a round trip longer: other work on the CPU, a garbage collection, a queue on the
%% way. A single pause spoils some messages of one batch, load spoils a batch or a few. Therefore
%% the least of the batches' medians: the median tolerates noise in less than half of a batch, the
%% minimum noise in all batches but one. The least of all single values would vary more from run to
%% run.

-export([rtt/1, peers/3]).

-doc """
The round trip by batches of measurements; batches without an answer do not count.
""".
-spec rtt([[number()]]) -> number() | undefined.
rtt(Batches) ->
    case [sderl_dist_fit:median(Batch) || [_ | _] = Batch <- Batches] of
        [] -> undefined;
        Medians -> lists:min(Medians)
    end.

-doc """
The mates that a node probes. Of two nodes one probes the other, and both know which. When these are
too many, mates of the same host come first, up to half of the limit, as small clusters are the ones
that a sample would miss; the others are taken in an order that is different for each node.
""".
-spec peers(Self :: node(), Mates :: [node()], Limit :: pos_integer()) -> [node()].
peers(Self, Mates, Limit) ->
    Mine = [Mate || Mate <- lists:usort(Mates), Mate =/= Self, prober(Self, Mate) =:= Self],
    case length(Mine) =< Limit of
        true -> Mine;
        false ->
            Ordered = shuffled(Self, Mine),
            Near = lists:sublist([N || N <- Ordered, host(N) =:= host(Self)], max(1, Limit div 2)),
            lists:sublist(Near ++ (Ordered -- Near), Limit)
    end.

prober(A, B) ->
    {Low, High} = {min(A, B), max(A, B)},
    case erlang:phash2({Low, High}) band 1 of
        0 -> Low;
        1 -> High
    end.

shuffled(Self, Nodes) ->
    [Node || {_, Node} <- lists:sort([{erlang:phash2({Self, Node}), Node} || Node <- Nodes])].

host(Node) -> lists:last(string:split(atom_to_list(Node), "@")).

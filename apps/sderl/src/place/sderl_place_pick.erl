%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_pick).
-moduledoc false.
%% The choosers. Pure: from the fitting nodes, with the values that the chooser compares, and a
%% state of random numbers, to the chosen nodes.
%%
%% Earlier choices of a node count as load on it until its values show them (*pending*). Unless the
%% caller gives a weight, a choice weighs half the difference between the least and the most loaded
%% candidate (of two: between them), and at least 1 if values are whole numbers: after two choices
%% with the same values the least loaded node counts as the most loaded. That is much for a node
%% that chooses alone, and just enough if 50 choose (`sderl_sim_place`: with an eighth they put 400
%% of 1,000 choices on one idle node of 50, with a half 100). Of equal loads the one with fewer
%% pending choices is less; then random numbers decide.
%%
%% Preferences come before the chooser: it gets the nodes with the highest score, then those with
%% the next, until there are enough.

-export([pick/5, needs/2, below/2, random/1, step/3, load/4, rendezvous/2]).
-export_type([entry/0, random/0]).

-doc """
A node that fits; the score of its preferences; the value that the chooser compares (of the
attribute, the distance, the part for `spread`; `undefined` if none); its pending choices.
""".
-type entry() ::
    {node(), Preferred :: non_neg_integer(), Value :: term(), Pending :: non_neg_integer()}.
-opaque random() :: rand:mwc59_state().

-doc "Random numbers from a seed, any term. The process's own state belongs to the caller.".
-spec random(term()) -> random().
random(Seed) -> rand:mwc59_seed(erlang:phash2(Seed, 1 bsl 32)).

-doc "At most `Count` of the nodes, the first choice first.".
-spec pick(sderl_place_spec:chooser(), pos_integer() | all, Adds :: auto | number(), [entry()],
           random()) -> [node()].
pick(_, _, _, [], _) -> [];
pick(Choose, all, Adds, Entries, Random) -> pick(Choose, length(Entries), Adds, Entries, Random);
pick(Choose, Count, Adds, Entries, Random) -> tiers(Choose, Count, Adds, tiers(Entries), Random).

-doc """
How many entries, drawn at random, `pick/5` needs to choose as it would from all; `all` if it has to
see all.
""".
-spec needs(sderl_place_spec:chooser(), pos_integer() | all) -> pos_integer() | all.
needs(random, Count) -> Count;
needs({two, _, _}, Count) when is_integer(Count) -> 2 * Count;
needs(_, _) -> all.

tiers(_, 0, _, _, _) -> [];
tiers(_, _, _, [], _) -> [];
tiers(Choose, Count, Adds, [Tier | Tiers], Random) ->
    Picked = tier(Choose, Count, Adds, Tier, Random),
    Picked ++ tiers(Choose, Count - length(Picked), Adds, Tiers, Random).

%% The entries by score, the highest first. Mostly all have one.
tiers([{_, Score, _, _} | Rest] = Entries) ->
    case lists:all(fun({_, S, _, _}) -> S =:= Score end, Rest) of
        true -> [Entries];
        false ->
            ByScore = maps:groups_from_list(fun({_, S, _, _}) -> S end, Entries),
            [Tier || {_, Tier} <- lists:reverse(lists:sort(maps:to_list(ByScore)))]
    end.

tier(in_order, Count, _, Entries, _) -> [N || {N, _, _, _} <- lists:sublist(Entries, Count)];
tier({two, _, _} = Choose, Count, Adds, Entries, Random) ->
    two(Choose, Count, Adds, shuffled(Entries, Random), []);
tier({spread, _}, 1, _, Entries, Random) -> [of_emptiest(Entries, Random, #{})];
tier({spread, _}, Count, _, Entries, Random) ->
    Keyed = keyed(fun({_, _, _, Pending}) -> Pending end, Entries, Random),
    Buckets = maps:groups_from_list(fun({_, {_, _, Over, _}}) -> Over end, Keyed),
    %% Round by round over the parts, so that one choice of several nodes is spread whatever was
    %% chosen before.
    first(Count, [{{Place, sum_pending(Bucket), Key}, Entry}
                  || _ := Bucket <- Buckets,
                     {Place, {Key, Entry}} <- lists:enumerate(lists:sort(Bucket))]);
tier(random, 1, _, Entries, Random) ->
    {I, _} = below(length(Entries), Random),
    [element(1, lists:nth(1 + I, Entries))];
tier({Way, _}, Count, Adds, Entries, Random) when Way =:= least; Way =:= most ->
    Step = step_of(Adds, Entries),
    first(Count,
          keyed(fun({_, _, Value, Pending}) -> {load(Way, Value, Pending, Step), Pending} end,
                Entries, Random));
tier(Choose, Count, _, Entries, Random) -> first(Count, keyed(key(Choose), Entries, Random)).

key(random) -> fun(_) -> 0 end;
%% Among equally near nodes the one with the fewest choices.
key({nearest, _}) -> fun({_, _, Distance, Pending}) -> {Distance, Pending} end;
key({hash, Key}) -> fun({Node, _, _, _}) -> -rendezvous(Key, Node) end.

%% Each entry with its key and a random number, which decides between equal keys.
keyed(Key, Entries, Random) -> keyed(Entries, Key, Random, []).

keyed([], _, _, Done) -> Done;
keyed([Entry | Entries], Key, Random0, Done) ->
    Random = rand:mwc59(Random0),
    keyed(Entries, Key, Random, [{{Key(Entry), rand:mwc59_value32(Random)}, Entry} | Done]).

first(1, Keyed) ->
    {_, {Node, _, _, _}} = lists:min(Keyed),
    [Node];
first(Count, Keyed) -> [N || {_, {N, _, _, _}} <- lists:sublist(lists:sort(Keyed), Count)].

%% The first of several: a node with the fewest choices in the place with the fewest.
of_emptiest([], _, Buckets) ->
    {_, _, Node} = lists:min([{Sum, Key, Node} || _ := {Sum, Key, Node} <- Buckets]),
    Node;
of_emptiest([{Node, _, Over, Pending} | Entries], Random0, Buckets) ->
    Random = rand:mwc59(Random0),
    Key = {Pending, rand:mwc59_value32(Random)},
    of_emptiest(Entries, Random, Buckets#{Over => case Buckets of
        #{Over := {Sum, Least, _}} when Key < Least -> {Sum + Pending, Key, Node};
        #{Over := {Sum, Least, Best}} -> {Sum + Pending, Least, Best};
        #{} -> {Pending, Key, Node}
    end}).

%% The less loaded of two, again and again; the other goes behind all that were not compared yet.
two(_, 0, _, _, Picked) -> lists:reverse(Picked);
two(_, _, _, [], Picked) -> lists:reverse(Picked);
two(_, _, _, [{Node, _, _, _}], Picked) -> lists:reverse(Picked, [Node]);
two({_, Way, _} = Choose, Count, Adds, [{_, _, V1, P1} = A, {_, _, V2, P2} = B | Rest], Picked) ->
    Step = step(Adds, min(V1, V2), max(V1, V2)),
    {{Node, _, _, _}, Other} = case {load(Way, V1, P1, Step), P1} =<
                                    {load(Way, V2, P2, Step), P2} of
        true -> {A, B};
        false -> {B, A}
    end,
    Next = case Count of 1 -> []; _ -> Rest ++ [Other] end,
    two(Choose, Count - 1, Adds, Next, [Node | Picked]).

shuffled(Entries, Random) -> [E || {_, E} <- lists:sort(keyed(fun(_) -> 0 end, Entries, Random))].

sum_pending(Bucket) -> lists:sum([Pending || {_, {_, _, _, Pending}} <- Bucket]).

-doc "A random number from 0, less than `N`.".
-spec below(pos_integer(), random()) -> {non_neg_integer(), random()}.
below(N, Random0) ->
    Random = rand:mwc59(Random0),
    {(rand:mwc59_value32(Random) * N) bsr 32, Random}.

-doc "The weight of one choice, given the least and the greatest value of the candidates.".
-spec step(auto | number(), number(), number()) -> number().
%% With loads between 0 and 1, a choice that adds 1 would count as a whole machine.
step(auto, Least, Greatest) when is_integer(Least), is_integer(Greatest) ->
    max(1, (Greatest - Least) / 2);
step(auto, Least, Greatest) -> (Greatest - Least) / 2;
step(Adds, _, _) -> Adds.

step_of(auto, [{_, _, Value, _} | Rest]) ->
    {Least, Greatest} = lists:foldl(fun({_, _, V, _}, {Lo, Hi}) -> {min(V, Lo), max(V, Hi)} end,
                                    {Value, Value}, Rest),
    step(auto, Least, Greatest);
step_of(Adds, _) -> Adds.

-doc "A node's load as the chooser sees it: the lower the better.".
-spec load(least | most, Value :: number(), Pending :: non_neg_integer(), Step :: number()) ->
    number().
load(least, Value, 0, _) -> Value;
load(least, Value, Pending, Step) -> Value + Pending * Step;
load(most, Value, Pending, Step) -> Pending * Step - Value.

-doc """
The weight of a node for a key (rendezvous hashing): each key belongs to the node with the highest,
so that the keys of a node that goes are spread over all others, and no other key moves.
""".
-spec rendezvous(Key :: term(), node()) -> non_neg_integer().
rendezvous(Key, Node) -> erlang:phash2({Key, Node}, 1 bsl 32).

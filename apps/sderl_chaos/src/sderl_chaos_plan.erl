%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_plan).
-moduledoc """
Decides which thing is killed when, for the chaos service. Pure.

Time is divided into *rounds*, one a period. A round has one *draw* (scope `cluster`) or one for
each node (scope `node`). A draw first picks a target by weight, then asks how many things of it
there are on each node, and picks one of them, all with the same probability. If there is none, the
draw goes on among the other targets.

Round `k` draws from a random state of its own, made of the seed, `k` and the position of the node.
So the same seed and the same answers give the same choices in round `k`, whatever happened in the
rounds before and however late they were. Only the order of the nodes matters, not their names.

```erlang
{ok, AtMs} = next(Plan),
{Draws, Plan1} = draws(Plan),
{ask, Target, Nodes} = wants(Draw),
Draw1 = answer(Draw, #{Node => Count}),
{hit, Target, Node, Nth} = wants(Draw1),
{Hits, HeldBack, Plan2} = admit(Plan1, Draws1, NotBack)
```
""".

-export([new/1, next/1, round/1, skip_late/2, draws/1, room/2, wants/1, answer/2, admit/3,
         missed/2]).
-export_type([plan/0, draw/0, settings/0, target/0, want/0, hit/0]).

-doc """
A number that names the target, its weight (over zero), and the nodes on which to look for it.
""".
-type target() :: {Target :: term(), Weight :: number(), [node()]}.

-doc """
`period_ms`: between two rounds. `window`: milliseconds from the start; the first round is one
period after its beginning, the last one at its end at the latest. `at_once`: most things that are
not back. `kills`: most kills in all.
""".
-type settings() :: #{
    targets := [target()],
    nodes := [node()],
    scope := cluster | node,
    period_ms := number(),
    window := {FromMs :: number(), ToMs :: number() | infinity},
    seed := term(),
    at_once := pos_integer() | infinity,
    kills := non_neg_integer() | infinity
}.

-type hit() :: {hit, Target :: term(), node(), Nth :: pos_integer()}.
-doc "The next question of a draw, or its result.".
-type want() :: {ask, Target :: term(), [node()]} | hit() | nothing.

-record(plan, {
    settings :: settings(), round = 0 :: non_neg_integer(), killed = 0 :: non_neg_integer()
}).
-record(draw, {random :: rand:state(), left :: [target()], want :: want()}).

-opaque plan() :: #plan{}.
-opaque draw() :: #draw{}.

-doc "A plan before its first round.".
-spec new(settings()) -> plan().
new(Settings) -> #plan{settings = Settings}.

-doc "When the next round is due, in milliseconds from the start; `over` when there is none.".
-spec next(plan()) -> {ok, AtMs :: non_neg_integer()} | over.
next(#plan{settings = #{kills := Most}, killed = Killed}) when is_integer(Most), Killed >= Most ->
    over;
next(#plan{settings = #{window := {_, ToMs}}} = Plan) ->
    case at(Plan) of
        At when is_number(ToMs), At > ToMs -> over;
        At -> {ok, erlang:round(At)}
    end.

at(#plan{settings = #{period_ms := Period, window := {FromMs, _}}, round = Round}) ->
    FromMs + (Round + 1) * Period.

-doc "The number of the last round that was done or left out, from 1.".
-spec round(plan()) -> non_neg_integer().
round(#plan{round = Round}) -> Round.

-doc """
Leaves out the rounds that are more than a period late, and tells how many, so that overdue rounds
are not made up for all at once.
""".
-spec skip_late(plan(), NowMs :: number()) -> {Left :: non_neg_integer(), plan()}.
skip_late(#plan{settings = #{period_ms := Period}, round = Round} = Plan, NowMs) ->
    Late = max(0, floor((NowMs - at(Plan)) / Period)),
    {Late, Plan#plan{round = Round + Late}}.

-doc "The draws of the round that is due; the round counts as done.".
-spec draws(plan()) -> {[draw()], plan()}.
draws(#plan{settings = #{scope := Scope, nodes := Nodes, targets := Targets, seed := Seed},
            round = Round} = Plan) ->
    Draws =
        case Scope of
            cluster ->
                [draw(random({Seed, Round, cluster}), Targets)];
            node ->
                [
                    draw(random({Seed, Round, Place}),
                         [{T, W, [Node]} || {T, W, On} <- Targets, lists:member(Node, On)])
                 || {Place, Node} <- lists:enumerate(Nodes)
                ]
        end,
    {Draws, Plan#plan{round = Round + 1}}.

random(Term) -> rand:seed_s(exsss, erlang:phash2(Term, 1 bsl 32)).

draw(Random, []) ->
    #draw{random = Random, left = [], want = nothing};
draw(Random, Targets) ->
    {U, Random1} = rand:uniform_s(Random),
    Sum = lists:sum([W || {_, W, _} <- Targets]),
    {Target, _, Nodes} = Picked = by_weight(U * Sum, Targets),
    #draw{random = Random1, left = lists:delete(Picked, Targets), want = {ask, Target, Nodes}}.

by_weight(_, [Target]) -> Target;
by_weight(At, [{_, Weight, _} = Target | _]) when At < Weight -> Target;
by_weight(At, [{_, Weight, _} | Targets]) -> by_weight(At - Weight, Targets).

-doc "How many things may be killed now.".
-spec room(plan(), NotBack :: non_neg_integer()) -> non_neg_integer() | infinity.
room(#plan{settings = #{at_once := AtOnce, kills := Most}, killed = Killed}, NotBack)
  when is_integer(NotBack) ->
    min(less(AtOnce, NotBack), less(Most, Killed)).

less(infinity, _) -> infinity;
less(Most, Used) when is_integer(Most) -> max(0, Most - Used).

-doc """
The question of a draw, or its result: the `Nth` thing of the target on a node, or nothing, because
there is none.
""".
-spec wants(draw()) -> want().
wants(#draw{want = Want}) -> Want.

-doc "How many things of the target there are on each node; on those left out, none.".
-spec answer(draw(), #{node() => non_neg_integer()}) -> draw().
answer(#draw{want = {ask, Target, Nodes}, random = Random, left = Left} = Draw, Counts) ->
    Known = [{Node, maps:get(Node, Counts, 0)} || Node <- Nodes],
    case lists:sum([Count || {_, Count} <- Known]) of
        0 ->
            draw(Random, Left);
        Sum ->
            {Place, Random1} = rand:uniform_s(Sum, Random),
            {Node, Nth} = nth(Place, Known),
            Draw#draw{random = Random1, want = {hit, Target, Node, Nth}}
    end.

nth(Place, [{Node, Count} | _]) when Place =< Count -> {Node, Place};
nth(Place, [{_, Count} | Known]) -> nth(Place - Count, Known).

-doc """
Applies the limits: those drawn things of the last round that may be killed when `NotBack` things
are not back. Which draws of a round are held back is drawn as well.
""".
-spec admit(plan(), [draw()], NotBack :: non_neg_integer()) ->
    {[hit()], HeldBack :: non_neg_integer(), plan()}.
admit(#plan{settings = #{seed := Seed}, round = Round, killed = Killed} = Plan, Draws, NotBack) ->
    Hits = [Want || #draw{want = {hit, _, _, _} = Want} <- Draws],
    Taken =
        case room(Plan, NotBack) of
            Room when Room >= length(Hits) -> Hits;
            Room -> lists:sublist(shuffled(Hits, random({Seed, Round, order})), Room)
        end,
    {Taken, length(Hits) - length(Taken), Plan#plan{killed = Killed + length(Taken)}}.

shuffled(Hits, Random) ->
    {Keyed, _} = lists:mapfoldl(
        fun(Hit, R) ->
            {Key, R1} = rand:uniform_s(R),
            {{Key, Hit}, R1}
        end,
        Random,
        Hits
    ),
    [Hit || {_, Hit} <- lists:sort(Keyed)].

-doc "`Count` of the hits killed nothing, as the things had ended by themselves: not counted.".
-spec missed(plan(), Count :: non_neg_integer()) -> plan().
missed(#plan{killed = Killed} = Plan, Count) -> Plan#plan{killed = Killed - Count}.

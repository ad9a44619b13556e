%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_round).
-moduledoc """
One global iteration as a parent sees it: which answers are missing, and the best so far. Pure.

Answers are identified by their sender and round, so one that is sent again counts once. Every
result is kept, whichever process found it and when. Of solutions of equal cost the older one stays,
and of those of one round that of the colony with the lowest number, so that the result depends
neither on the order of the answers nor on the shape of the tree.
""".

-export([new/1, start/4, answer/4, best/1, number/1, update/1, waits_for/2]).
-export_type([state/0, best/0]).

-doc "A solution and the number of its colony.".
-type best() ::
    none | {Cost :: non_neg_integer(), Colony :: pos_integer(), [sderl_aco_instance:job()]}.

-record(round, {
    number = 0 :: non_neg_integer(),
    waiting = #{} :: #{term() => true},
    %% The solution sent to the colonies in this round, the best of their answers, and the best of
    %% all earlier rounds.
    update = none :: best(),
    found = none :: best(),
    best :: best()
}).
-opaque state() :: #round{}.

-doc "Before the first round, with the best solution that is known.".
-spec new(best()) -> state().
new(Best) -> #round{best = Best}.

-doc "Begins a round: the keys of those that are to answer, and the best of all for the colonies.".
-spec start(Number :: pos_integer(), [term(), ...], Update :: best(), state()) -> state().
start(Number, Keys, Update, #round{} = Round) ->
    #round{number = Number, waiting = #{Key => true || Key <- Keys}, update = Update,
           best = better(Update, best(Round))}.

-doc "An answer; `done` when it was the last of the round.".
-spec answer(Number :: pos_integer(), Key :: term(), best(), state()) -> {done | more, state()}.
answer(Number, Key, Solution, #round{number = Number, waiting = Waiting, found = Found} = Round)
  when is_map_key(Key, Waiting) ->
    Left = maps:remove(Key, Waiting),
    {case map_size(Left) of 0 -> done; _ -> more end,
     Round#round{waiting = Left, found = least(Solution, Found)}};
answer(_, _, Solution, #round{best = Best} = Round) ->
    {more, Round#round{best = better(Solution, Best)}}.

least(none, Other) -> Other;
least(One, none) -> One;
least(One, Other) -> min(One, Other).

%% The first, if it is better than the second.
better(none, Old) -> Old;
better(New, none) -> New;
better({Cost, _, _} = New, {Least, _, _}) when Cost < Least -> New;
better(_, Old) -> Old.

-doc "The best solution so far.".
-spec best(state()) -> best().
best(#round{found = Found, best = Best}) -> better(Found, Best).

-doc "The number of the round; 0 before the first.".
-spec number(state()) -> non_neg_integer().
number(#round{number = Number}) -> Number.

-doc "The best of all that the colonies are told in this round.".
-spec update(state()) -> best().
update(#round{update = Update}) -> Update.

-doc "Whether the answer of a process is missing.".
-spec waits_for(Key :: term(), state()) -> boolean().
waits_for(Key, #round{waiting = Waiting}) -> is_map_key(Key, Waiting).

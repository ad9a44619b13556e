%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_round).
-moduledoc """
A round takes each process of a table once, in a random order that is new with each round. Pure but
for chance.

Only making a round takes time for the whole table. It is taken in parts, each of which has
processes from everywhere in it, and only one part at a time is shuffled.
""".

-export([new/1, again/1, is_over/1, take/1, take_part/1]).
-export_type([round/0]).

%% Processes that are shuffled at a time, at most.
-define(PART, 4096).

%% A part is every `step`-th entry of the table, from one of the starts on.
-record(round, {
    table :: tuple(),
    step :: pos_integer(),
    starts :: [pos_integer()],
    part = [] :: [term()]
}).
-opaque round() :: #round{}.

-doc "A round of these.".
-spec new([term()]) -> round().
new(All) -> begin_(list_to_tuple(All)).

-doc "Another round of the same.".
-spec again(round()) -> round().
again(#round{table = Table}) -> begin_(Table).

begin_(Table) ->
    Step = max(1, (tuple_size(Table) + ?PART - 1) div ?PART),
    #round{table = Table, step = Step, starts = mixed(lists:seq(1, Step))}.

-doc "Whether none is left.".
-spec is_over(round()) -> boolean().
is_over(#round{starts = Starts, part = Part, table = Table}) ->
    Part =:= [] andalso (Starts =:= [] orelse tuple_size(Table) =:= 0).

-doc "The next one, if there is one left.".
-spec take(round()) -> {term(), round()} | none.
take(#round{part = [Next | Part]} = Round) -> {Next, Round#round{part = Part}};
take(#round{starts = []}) -> none;
take(#round{starts = [Start | Starts]} = Round) ->
    take(Round#round{starts = Starts, part = mixed(part(Start, Round))}).

-doc "The rest of a part, in the order of the table.".
-spec take_part(round()) -> {[term()], round()} | none.
take_part(#round{part = [_ | _] = Part} = Round) -> {Part, Round#round{part = []}};
take_part(#round{starts = []}) -> none;
take_part(#round{starts = [Start | Starts]} = Round) ->
    {part(Start, Round), Round#round{starts = Starts}}.

part(Start, #round{table = Table, step = Step}) ->
    [element(N, Table) || N <- lists:seq(Start, tuple_size(Table), Step)].

mixed(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_search).
-moduledoc """
Local search from a schedule: applies moves that make it cheaper, until no move does.

| | a round |
|---|---|
| `o1` | the interchange of two jobs that saves most |
| `o2` | the insertion of a job at a position *before* its own that saves most |
| `o12`, `o21` | both, in this order |
| `full` | not published: the insertion of a job at any other position that saves most, then an interchange |
| `none` | |

The search ends after a round that saves nothing.

A schedule's cost after a move is not computed from its beginning. An interchange of jobs shifts
those between by the difference of the two durations: the late ones among them cost at least so much
more, or save at most so much, which is known from sums over prefixes of the schedule. Only pairs
that could still be better than the best so far are computed, and only as long as they can be. An
insertion one position further on is the same insertion and one more exchange of neighbours.

Starting points and their results are remembered, as a colony comes to search from the same ones
again and again.
""".

-export([new/2, improve/2]).
-export_type([search/0]).

-type move() :: swap | insert | insert_anywhere.
-opaque search() :: {[move()], Jobs :: tuple(),
                     Known :: #{[sderl_aco_instance:job()] => sderl_aco_colony:solution()}}.

%% A job at its position: number, duration, weight, due date, completion, cost; and the sums up to
%% this position: weight of the jobs that are not early, cost.
-type place() :: {
    sderl_aco_instance:job(),
    P :: pos_integer(),
    W :: non_neg_integer(),
    D :: non_neg_integer(),
    C :: pos_integer(),
    Cost :: non_neg_integer(),
    LateWeight :: non_neg_integer(),
    Costs :: non_neg_integer()
}.
%% The change of the cost, the position of the job that moves, and its new one; 0 for no move.
-type found() :: {Change :: neg_integer() | 0, From :: non_neg_integer(), To :: non_neg_integer()}.

-define(REMEMBERED, 200).

-doc "A search among schedules of this instance.".
-spec new(sderl_aco_instance:instance(), sderl_aco_options:search()) -> search().
new(#{n := N, p := P, w := W, d := D}, Search) ->
    {moves(Search),
     list_to_tuple([{element(J, P), element(J, W), element(J, D)} || J <- lists:seq(1, N)]), #{}}.

moves(none) -> [];
moves(o1) -> [swap];
moves(o2) -> [insert];
moves(o12) -> [swap, insert];
moves(o21) -> [insert, swap];
moves(full) -> [insert_anywhere, swap].

-doc "The schedule that the search ends at.".
-spec improve(sderl_aco_colony:solution(), search()) -> {sderl_aco_colony:solution(), search()}.
improve(Solution, {[], _, _} = Search) ->
    {Solution, Search};
improve({Cost, Start} = Solution, {Moves, Jobs, Known}) ->
    case Known of
        #{Start := End} ->
            {End, {Moves, Jobs, Known}};
        #{} ->
            {Less, Places} = rounds(Moves, Jobs, Cost, places(Start, Jobs)),
            End = if
                Less < Cost -> {Less, [J || {J, _, _, _, _, _, _, _} <- Places]};
                true -> Solution
            end,
            Kept = if map_size(Known) < ?REMEMBERED -> Known; true -> #{} end,
            {End, {Moves, Jobs, Kept#{Start => End}}}
    end.

rounds(Moves, Jobs, Cost, Places) ->
    case lists:foldl(fun(Move, Now) -> moved(Move, Jobs, Now) end, {Cost, Places}, Moves) of
        {Less, Better} when Less < Cost -> rounds(Moves, Jobs, Less, Better);
        _ -> {Cost, Places}
    end.

moved(_, _, {0, Places}) ->
    {0, Places};
moved(Move, Jobs, {Cost, Places}) ->
    Found =
        case Move of
            swap -> swap(Places, Places, 1, 0, 0, {0, 0, 0});
            insert -> insert(Places, [], 1, {0, 0, 0});
            insert_anywhere -> insert_later(Places, 1, Cost, insert(Places, [], 1, {0, 0, 0}))
        end,
    case Found of
        {0, _, _} -> {Cost, Places};
        {Change, From, To} ->
            {Cost + Change,
             places(applied(Move, From, To, [element(1, Place) || Place <- Places]), Jobs)}
    end.

applied(swap, From, To, Jobs) ->
    {Before, Others} = lists:split(To - 1, Jobs),
    {[Displaced | Between], [Job | After]} = lists:split(From - To, Others),
    Before ++ [Job | Between] ++ [Displaced | After];
applied(_, From, To, Jobs) ->
    {Before, [Job | After]} = lists:split(From - 1, Jobs),
    {First, Last} = lists:split(To - 1, Before ++ After),
    First ++ [Job | Last].

-spec places([sderl_aco_instance:job()], tuple()) -> [place()].
places(Order, Jobs) -> places(Order, Jobs, 0, 0, 0).

places([J | Order], Jobs, T, LateWeight0, Costs0) ->
    {P, W, D} = element(J, Jobs),
    C = T + P,
    {Cost, LateWeight} = if C >= D -> {W * (C - D), LateWeight0 + W}; true -> {0, LateWeight0} end,
    Costs = Costs0 + Cost,
    [{J, P, W, D, C, Cost, LateWeight, Costs} | places(Order, Jobs, C, LateWeight, Costs)];
places([], _, _, _, _) ->
    [].

%% Interchanges of each place B with all places A before it; of several that save most the first is
%% taken. `Late` and `Costs` are the sums up to the place before B.

-spec swap([place()], [place()], pos_integer(), non_neg_integer(), non_neg_integer(), found()) ->
    found().
swap([{_, _, _, _, _, _, Late1, Costs1} = Place | Later], Places, B, Late, Costs, Best) ->
    swap(Later, Places, B + 1, Late1, Costs1, pairs(Places, 1, B, Place, Late, Costs, Best));
swap([], _, _, _, _, Best) ->
    Best.

pairs(_, B, B, _, _, _, Best) ->
    Best;
pairs([{_, P, W, D, C, Cost, LateA, CostsA} | Later], A, B,
      {_, PB, WB, DB, CB, CostB, _, _} = Place, Late, Costs, {Least, _, _} = Best) ->
    Shift = PB - P,
    CNew = C + Shift,
    Ends0 = if CB > D -> W * (CB - D) - Cost - CostB; true -> -Cost - CostB end,
    Ends = if CNew > DB -> Ends0 + WB * (CNew - DB); true -> Ends0 end,
    Bound =
        if
            Shift > 0 -> Ends + Shift * (Late - LateA);
            true -> Ends + max(Shift * (Late - LateA), CostsA - Costs)
        end,
    if
        Bound >= Least ->
            pairs(Later, A + 1, B, Place, Late, Costs, Best);
        true ->
            case between(Later, B - A - 1, Shift, Least, Ends) of
                Change when Change < Least ->
                    pairs(Later, A + 1, B, Place, Late, Costs, {Change, B, A});
                _ -> pairs(Later, A + 1, B, Place, Late, Costs, Best)
            end
    end.

%% Jobs that become later never cost less, so the sum may be given up early.
between(_, 0, _, _, Change) -> Change;
between(_, _, Shift, Least, Change) when Shift > 0, Change >= Least -> Change;
between(_, _, 0, _, Change) -> Change;
between([{_, _, W, D, C, Cost, _, _} | Later], Count, Shift, Least, Change) ->
    if
        C + Shift > D ->
            between(Later, Count - 1, Shift, Least, Change + W * (C + Shift - D) - Cost);
        true -> between(Later, Count - 1, Shift, Least, Change - Cost)
    end.

%% Insertions. A job is moved forward place by place; of several places that save most the first is
%% taken. Moving a job that costs nothing saves nothing.

-spec insert([place()], [place()], pos_integer(), found()) -> found().
insert([{_, _, _, _, _, 0, _, _} = Place | Later], Before, From, Best) ->
    insert(Later, [Place | Before], From + 1, Best);
insert([Place | Later], Before, From, {Least, _, _} = Best) ->
    {_, P, W, D, C, Cost, _, _} = Place,
    case forward(Before, From - 1, C - P, P, W, D, -Cost, Least, {Least, 0}) of
        {Less, To} when Less < Least -> insert(Later, [Place | Before], From + 1, {Less, From, To});
        _ -> insert(Later, [Place | Before], From + 1, Best)
    end;
insert([], _, _, Best) ->
    Best.

%% `Change` is without what the job itself then costs. The places are found backwards: of two that
%% save the same, the later found is the first.
forward([{_, PA, WA, DA, CA, CostA, _, _} | Before], To, Start, P, W, D, Change0, Limit,
        {Least, _} = Best)
  when Change0 < Limit, Change0 =< Least ->
    Change = if CA + P > DA -> Change0 + WA * (CA + P - DA) - CostA; true -> Change0 - CostA end,
    Begin = Start - PA,
    Total = if Begin + P > D -> Change + W * (Begin + P - D); true -> Change end,
    if
        Total =< Least -> forward(Before, To - 1, Begin, P, W, D, Change, Limit, {Total, To});
        true -> forward(Before, To - 1, Begin, P, W, D, Change, Limit, Best)
    end;
forward(_, _, _, _, _, _, _, _, Best) ->
    Best.

%% The same for places after its own; those before it have been tried. `Costs` are those of the
%% whole schedule.
-spec insert_later([place()], pos_integer(), non_neg_integer(), found()) -> found().
insert_later([{_, P, W, D, C, Cost, _, Upto} | Later], From, Costs, Best) ->
    insert_later(Later, From + 1, Costs,
                 later(Later, From + 1, P, W, D, C, -Cost, Costs - Upto, From, Best));
insert_later([], _, _, Best) ->
    Best.

%% `Left`: what the jobs after this place can still save at most.
later([{_, PB, WB, DB, CB, CostB, _, _} | Later], To, P, W, D, C, Change0, Left0, From,
      {Least, _, _} = Best) ->
    End = C + PB,
    Change = if CB - P > DB -> Change0 + WB * (CB - P - DB) - CostB; true -> Change0 - CostB end,
    Total = if End > D -> Change + W * (End - D); true -> Change end,
    Left = Left0 - CostB,
    if
        Total < Least -> later(Later, To + 1, P, W, D, End, Change, Left, From, {Total, From, To});
        Total - Left >= Least -> Best;
        true -> later(Later, To + 1, P, W, D, End, Change, Left, From, Best)
    end;
later([], _, _, _, _, _, _, _, _, Best) ->
    Best.

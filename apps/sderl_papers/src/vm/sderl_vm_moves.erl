%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_moves).
-moduledoc """
`moves`: the least number of moves after which black and white pieces have changed sides, on a board
with one empty field: `bbbbbewwwww`. A piece moves to the empty field beside it, or jumps there over
one piece of the other colour. The search is breadth first: the boards of a level are split over one
worker for each core, which share a table of the boards that were seen. 5, 6 or 7 pieces of each
colour, by the size.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012); the rules of the moves
are those of the well-known puzzle, whose shortest solution for N pieces has N * (N + 2) moves.
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/2, alone/0, prepare/1, run/2, finish/1]).

-doc false.
-spec summary() -> string().
summary() -> "a breadth-first search with a shared table of the boards that were seen".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{workers => Cores, pieces => maps:get(Size, #{short => 5, intermediate => 6, long => 7})}.

-doc false.
-spec operations(sderl_bench_vm_program:settings(), {non_neg_integer(), pos_integer()}) ->
    {pos_integer(), string()}.
operations(_, {_, Boards}) -> {Boards, "board"}.

-doc false.
-spec alone() -> string().
alone() -> "its table is of one node".

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(Settings) ->
    {Settings, ets:new(?MODULE, [set, public, {write_concurrency, true}]), none}.

-doc false.
-spec run(run, term()) -> term().
run(run, {#{pieces := Pieces, workers := Workers} = Settings, Seen, none}) ->
    Black = binary:copy(~"b", Pieces),
    White = binary:copy(~"w", Pieces),
    Start = <<Black/binary, $e, White/binary>>,
    true = ets:insert(Seen, {Start}),
    {Settings, Seen, levels([Start], <<White/binary, $e, Black/binary>>, Seen, Workers, 0)}.

%% The last level is searched to its end, so that the number of boards does not depend on the order
%% of the workers.
levels(Boards, Goal, Seen, Workers, Moves) ->
    case ets:member(Seen, Goal) of
        true -> Moves;
        false -> levels(level(Boards, Seen, Workers), Goal, Seen, Workers, Moves + 1)
    end.

level(Boards, Seen, Workers) ->
    Main = self(),
    Pids = [spawn_link(fun() ->
        Main ! {self(), [Next || Board <- Part, Next <- next(Board),
                                 ets:insert_new(Seen, {Next})]}
    end) || Part <- parts(Boards, Workers)],
    lists:append([receive {Pid, New} -> New end || Pid <- Pids]).

parts(Boards, Workers) -> parts(Boards, 1 + length(Boards) div Workers, []).

parts([], _, Parts) -> Parts;
parts(Boards, Size, Parts) ->
    {Part, Rest} = lists:split(min(Size, length(Boards)), Boards),
    parts(Rest, Size, [Part | Parts]).

%% The boards after one move.
next(Board) ->
    {Empty, 1} = binary:match(Board, ~"e"),
    [swapped(Board, From, Empty)
     || From <- [Empty - 2, Empty - 1, Empty + 1, Empty + 2],
        From >= 0, From < byte_size(Board), may_move(Board, From, Empty)].

may_move(_, From, Empty) when abs(From - Empty) =:= 1 -> true;
may_move(Board, From, Empty) ->
    binary:at(Board, From) =/= binary:at(Board, (From + Empty) div 2).

swapped(Board, A, B) ->
    {First, Second} = {min(A, B), max(A, B)},
    Between = Second - First - 1,
    <<Before:First/binary, X, Middle:Between/binary, Y, After/binary>> = Board,
    <<Before/binary, Y, Middle/binary, X, After/binary>>.

-doc false.
-spec finish(term()) -> {Moves :: non_neg_integer(), Boards :: pos_integer()}.
finish({_, Seen, Moves}) ->
    Boards = ets:info(Seen, size),
    true = ets:delete(Seen),
    {Moves, Boards}.

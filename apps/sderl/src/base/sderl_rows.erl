%% SPDX-License-Identifier: Apache-2.0
-module(sderl_rows).
-moduledoc false.
%% Scans of the table of names. The table holds the rows of all groups of this node, so each scan
%% goes through all of them; long ones go in pieces.

-include("sderl_rows.hrl").
-include("../core/sderl_row.hrl").

-export([row/1, foreign/1]).
-export([at_home/2, fold/3, fold_at_home/4]).
-export([first/2, first/3, next/1, stop/1]).
-export_type([stored/0, cursor/0]).

-define(CHUNK, 2000).

-doc "A row as it stands in the table.".
-type stored() :: tuple().
-doc "How far a scan in pieces has come.".
-type cursor() :: term().

-doc "The row as the protocol has it.".
-spec row(stored()) -> sderl_core:row().
row(?STORED(_, Name, Pid, Home, Epoch, Seq, Options)) ->
    ?ROW(Name, Pid, Home, {Epoch, Seq}, Options).

-doc "Of these rows, the names whose home is not the node of their process.".
-spec foreign([stored()]) -> [{Name :: term(), pid()}].
foreign(Rows) ->
    [{Name, Pid} || ?STORED(_, Name, Pid, Home, _, _, _) <- Rows, is_pid(Pid), Home =/= node(Pid)].

-doc "The rows of a group whose home is one of the nodes.".
-spec at_home(Group :: term(), [node()]) -> [stored()].
at_home(Group, Homes) -> ets:select(?NAMES, spec(Group, [is_home(Homes)])).

-doc "Folds over the rows of a group.".
-spec fold(Group :: term(), fun((stored(), Acc) -> Acc), Acc) -> Acc.
fold(Group, Fun, Acc) -> fold_where(Group, [], Fun, Acc).

-doc """
Folds over the rows of a group whose home is one of the nodes; never all of them are copied at once.
""".
-spec fold_at_home(Group :: term(), [node()], fun((stored(), Acc) -> Acc), Acc) -> Acc.
fold_at_home(Group, Homes, Fun, Acc) -> fold_where(Group, [is_home(Homes)], Fun, Acc).

fold_where(Group, Guards, Fun, Acc) ->
    true = ets:safe_fixtable(?NAMES, true),
    try fold_pieces(ets:select(?NAMES, spec(Group, Guards), ?CHUNK), Fun, Acc)
    after ets:safe_fixtable(?NAMES, false)
    end.

fold_pieces('$end_of_table', _, Acc) -> Acc;
fold_pieces({Rows, More}, Fun, Acc) ->
    fold_pieces(ets:select(More), Fun, lists:foldl(Fun, Acc, Rows)).

-doc """
Begins a scan: the first piece of the rows of a group, of all of them or of those with a home on the
given nodes. The table stays fixed until the end was read or `stop/1` is called, so that a row is
neither missed nor given twice.
""".
-spec first(Group :: term(), all | [node()], Most :: pos_integer()) ->
    {[stored()], cursor()} | none.
first(Group, Which, Most) ->
    Guards = case Which of
        all -> [];
        Homes -> [is_home(Homes)]
    end,
    true = ets:safe_fixtable(?NAMES, true),
    piece(ets:select(?NAMES, spec(Group, Guards), Most)).

-spec first(Group :: term(), all | [node()]) -> {[stored()], cursor()} | none.
first(Group, Which) -> first(Group, Which, ?CHUNK).

-spec next(cursor()) -> {[stored()], cursor()} | none.
next(Cursor) -> piece(ets:select(Cursor)).

piece('$end_of_table') ->
    true = ets:safe_fixtable(?NAMES, false),
    none;
piece(Piece) -> Piece.

-doc "Ends a scan of which the end was not read.".
-spec stop(cursor()) -> true.
stop(_) -> ets:safe_fixtable(?NAMES, false).

%% Any term may be a group, also one that means something in a match pattern.
-spec spec(term(), [tuple()]) -> ets:match_spec().
spec(Group, Guards) ->
    [{?STORED('$1', '_', '_', '$2', '_', '_', '_'), [{'=:=', '$1', {const, Group}} | Guards],
      ['$_']}].

is_home(Homes) -> list_to_tuple(['orelse', false | [{'=:=', '$2', {const, H}} || H <- Homes]]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_pending).
-moduledoc false.
%% The choices of this node that do not show in the chosen nodes' values yet.
%%
%% A row `{Node, Total, Marks, At}`: how often the node was chosen, how often it had been at some
%% moments, newest first, and the newest of these. A value that was measured at a moment knows of
%% the choices before it; the rest is pending. Marks are ?WIDTH ms apart, and the older they are the
%% further: one for each cell of a grid that doubles in width as they get older, up to half their
%% age. All choices of a cell count as made at its last mark, so a choice may count too long, but
%% not too short. Counting is atomic; two processes that set marks at once may lose one, which makes
%% another choice or two count longer.

-export([new/0, clear/0, note/1, note/2, any/0, since/2, before/2, since_base/3]).
-export_type([marks/0]).

-import(sderl_clock, [now_ms/0]).

-doc """
`{At1, Before1, At2, Before2, ...}`, the newest first: flat, as every look at a candidate copies it.
""".
-type marks() :: tuple().

-define(TABLE, sderl_place_pending).
-define(WIDTH, 50).
%% Choices made before this time no longer count; ms.
-define(HORIZON, 20_000).
%% Rows of nodes that are not chosen any more are deleted; ms.
-define(OLD, 60_000).

-doc "Makes the table; the calling process owns it.".
-spec new() -> ets:table().
new() ->
    ets:new(?TABLE, [named_table, public, {read_concurrency, true}, {write_concurrency, true}]).

-doc "Forgets all choices.".
-spec clear() -> ok.
clear() ->
    true = ets:delete_all_objects(?TABLE),
    ok.

-doc "A node was chosen now.".
-spec note(node()) -> ok.
note(Node) -> note(Node, now_ms()).

-spec note(node(), NowMs :: integer()) -> ok.
note(Node, Now) ->
    case ets:lookup_element(?TABLE, Node, 3, none) of
        none ->
            case ets:insert_new(?TABLE, {Node, 1, {Now, 0}, Now}) of
                true -> prune(Now - ?OLD);
                false -> note(Node, Now)
            end;
        Marks when Now - element(1, Marks) < ?WIDTH ->
            _ = ets:update_counter(?TABLE, Node, 1, {Node, 0, {Now, 0}, Now}),
            ok;
        Marks ->
            Total = ets:update_counter(?TABLE, Node, 1, {Node, 0, {Now, 0}, Now}),
            _ = ets:update_element(?TABLE, Node, [
                {3, list_to_tuple([Now, Total - 1 | thin(Now, tuple_to_list(Marks))])}, {4, Now}
            ]),
            ok
    end.

%% They are read with every candidate, so they are few: at most two for each doubling of the age.
thin(Now, [At | _]) when At < Now - ?HORIZON -> [];
thin(Now, [At, Mark, Older, Before | Marks]) ->
    case cell(Now, At) =:= cell(Now, Older) of
        true -> thin(Now, [At, Before | Marks]);
        false -> [At, Mark | thin(Now, [Older, Before | Marks])]
    end;
thin(_, Marks) -> Marks.

cell(Now, At) ->
    Width = width(?WIDTH, Now - At),
    {Width, At div Width}.

width(Width, Age) when Age >= 4 * Width -> width(2 * Width, Age);
width(Width, _) -> Width.

prune(Before) ->
    _ = ets:select_delete(?TABLE, [{{'_', '_', '_', '$1'}, [{'<', '$1', Before}], [true]}]),
    ok.

-doc "Whether anything may be pending at all.".
-spec any() -> boolean().
any() -> ets:info(?TABLE, size) > 0.

-doc "How often a node was chosen since a moment (monotonic time, ms).".
-spec since(node(), SinceMs :: integer()) -> non_neg_integer().
since(Node, Since) ->
    case ets:lookup(?TABLE, Node) of
        [{_, Total, Marks, _}] -> Total - known(Marks, Since, Total);
        [] -> 0
    end.

-doc """
How often a node had been chosen at a moment: a base for `since_base/3`, as long as it is not much
older.
""".
-spec before(node(), SinceMs :: integer()) -> non_neg_integer().
before(Node, Since) ->
    case ets:lookup(?TABLE, Node) of
        [{_, Total, Marks, _}] -> known(Marks, Since, Total);
        [] -> 0
    end.

-doc "The same as `since/2`, with what `before/2` gave for that moment.".
-spec since_base(node(), Base :: non_neg_integer(), SinceMs :: integer()) -> non_neg_integer().
since_base(Node, Base, Since) ->
    case ets:lookup_element(?TABLE, Node, 2, 0) of
        Total when is_integer(Total), is_integer(Base), Total >= Base -> Total - Base;
        %% The row went meanwhile.
        _ -> since(Node, Since)
    end.

%% How many of `Total` choices had been made at a moment.
-spec known(marks(), SinceMs :: integer(), Total :: non_neg_integer()) -> non_neg_integer().
known(Marks, Since, Total) -> known(1, Marks, Since, Total).

known(I, Marks, Since, _) when I < tuple_size(Marks), element(I, Marks) + ?WIDTH > Since ->
    known(I + 2, Marks, Since, element(I + 1, Marks));
known(_, _, _, Known) -> Known.

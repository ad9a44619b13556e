%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_cells).
-moduledoc false.
%% The values that a chooser compares, for all members of a group: for each node the value and the
%% base of its pending choices, prepared by one choice for later ones.
%%
%% To read a value and the pending choices of each candidate takes most of the time of a choice
%% among many. The values change a few times a second, so a frequent chooser finds them in one row.
%% The row is valid as long as no value of the attribute changed (`sderl_attr_table:version/1`),
%% none is too old, and the members are the same, and for at most ?KEEP ms, as pending choices
%% expire. Every chooser reads the row, and makes one if there is none.
%%
%% Choices are counted from a base, which a choice does not write: rows stay valid while nodes are
%% chosen.

-export([new/0, cells/4]).
-export_type([cell/0, key/0]).

-doc """
A node, what the chooser compares, and the base of its pending choices
(`sderl_place_pending:since_base/3`).
""".
-type cell() :: {Value :: term(), Base :: non_neg_integer(), node()}.
-doc """
The group whose members are the candidates, what is compared, and what else the values depend on.
""".
-type key() :: {Group :: term(), What :: term(), MaxAge :: term()}.

-define(TABLE, ?MODULE).
-define(KEEP, 250).
%% Most keys in the table: more than a program has kinds of choices.
-define(MANY, 64).

-doc "Makes the table; the calling process owns it.".
-spec new() -> ets:table().
new() -> ets:new(?TABLE, [named_table, public, {read_concurrency, true}]).

-doc """
The cells of these nodes. `Make` gives them with the moment until which no value is too old; `stale`
if one has to be asked for. `none`: they depend on no attribute.
""".
-spec cells(key(), {attr, sderl_attr:name()} | none, {[node()], Now :: integer()}, Make) ->
    [cell()] | stale when
    Make :: fun(() -> {[cell()], Until :: integer()} | stale).
cells(Key, Attribute, {Nodes, Now}, Make) ->
    case ets:lookup(?TABLE, Key) of
        [{_, Version, Until, Nodes, Cells}] when Now < Until ->
            case version(Attribute) of
                Version -> Cells;
                _ -> make(Key, Attribute, Nodes, Now, Make)
            end;
        _ -> make(Key, Attribute, Nodes, Now, Make)
    end.

make(Key, Attribute, Nodes, Now, Make) ->
    %% Taken before the values are read.
    Version = case Attribute of
        {attr, Name} -> sderl_attr_table:new_version(Name);
        none -> none
    end,
    case Make() of
        {Cells, Until} ->
            _ = ets:info(?TABLE, size) < ?MANY orelse begin
                true = ets:delete_all_objects(?TABLE),
                ok = sderl_attr_table:new_versions()
            end,
            true = ets:insert(?TABLE, {Key, Version, min(Until, Now + ?KEEP), Nodes, Cells}),
            Cells;
        stale -> stale
    end.

version({attr, Name}) -> sderl_attr_table:version(Name);
version(none) -> none.

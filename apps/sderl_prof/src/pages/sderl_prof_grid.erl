%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_grid).
-moduledoc """
What some processes did in each column of a picture, in nanoseconds. Memory is that of the columns,
which are counters, however many intervals there are.
""".

-export([new/4, has/2, add/5, add_ns/5, add_times/6, series/3]).
-export_type([grid/0]).

-record(grid, {
    counters :: counters:counters_ref(),
    lanes :: #{non_neg_integer() => non_neg_integer()},
    from :: integer(),
    width :: pos_integer(),
    columns :: pos_integer()
}).
-opaque grid() :: #grid{}.

-doc "Empty columns of a width, from a time on, for each of these processes.".
-spec new([non_neg_integer()], From :: integer(), Width :: pos_integer(), pos_integer()) -> grid().
new(Processes, From, Width, Columns) ->
    Lanes = maps:from_list([{P, N} || {N, P} <- lists:enumerate(0, lists:usort(Processes))]),
    #grid{counters = counters:new(max(1, map_size(Lanes) * Columns * 4), []), lanes = Lanes,
          from = From, width = Width, columns = Columns}.

-doc "Whether it has columns of this process.".
-spec has(non_neg_integer(), grid()) -> boolean().
has(P, #grid{lanes = Lanes}) -> is_map_key(P, Lanes).

-doc "An interval; what is outside of the picture does not count.".
-spec add(sderl_prof_cells:what(), non_neg_integer(), integer(), integer(), grid()) -> ok.
add(What, P, From, To, #grid{from = Begin} = Grid) ->
    add_times(What, P, From - Begin, To - Begin, 1, Grid).

-doc "Nanoseconds in a column.".
-spec add_ns(sderl_prof_cells:what(), non_neg_integer(), Column :: integer(), integer(), grid()) ->
    ok.
add_ns(What, P, Column, Ns, #grid{lanes = Lanes, columns = Columns, counters = Counters} = G) ->
    case Lanes of
        #{P := Lane} when Column >= 0, Column < Columns ->
            counters:add(Counters, index(Lane, What, G) + 4 * Column, Ns);
        _ -> ok
    end.

-doc "So many times the time between two places, which are nanoseconds from the first column on.".
-spec add_times(sderl_prof_cells:what(), non_neg_integer(), integer(), integer(), integer(),
                grid()) -> ok.
add_times(What, P, From0, To0, Times, #grid{lanes = Lanes, width = Width} = G) ->
    From = max(0, From0),
    To = min(Width * G#grid.columns, To0),
    case Lanes of
        #{P := Lane} when To > From ->
            fill(index(Lane, What, G), From div Width, From, To, Width, Times, G#grid.counters);
        _ -> ok
    end.

fill(At, Column, From, To, Width, Times, Counters) ->
    End = (Column + 1) * Width,
    ok = counters:add(Counters, At + 4 * Column, Times * (min(To, End) - From)),
    case To > End of
        true -> fill(At, Column + 1, End, To, Width, Times, Counters);
        false -> ok
    end.

index(Lane, What, #grid{columns = Columns}) -> 1 + 4 * Lane * Columns + place(What).

place(running) -> 0;
place(runnable) -> 1;
place(waiting) -> 2;
place(gc) -> 3.

-doc "The nanoseconds of a process in each column.".
-spec series(sderl_prof_cells:what(), non_neg_integer(), grid()) -> [integer()].
series(What, P, #grid{lanes = Lanes, columns = Columns, counters = Counters} = G) ->
    At = index(map_get(P, Lanes), What, G),
    [counters:get(Counters, At + 4 * Column) || Column <- lists:seq(0, Columns - 1)].

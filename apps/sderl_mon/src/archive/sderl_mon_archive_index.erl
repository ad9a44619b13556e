%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_archive_index).
-moduledoc """
Which frames an archive has, in which of its files, and which files may be deleted. Pure.

A level has the frames of one step. Its time is divided into slots of equal length; a file has the
frames that end in one slot, or a part of them if they are many. A file is named by the step, the
Unix time in seconds at which its slot begins, and the number of the part:
`60s-1795737600-0.archive`.
""".

-export([new/1, steps/1, key/3, name/1, read_name/2]).
-export([add_file/2, add_bytes/3, add_frame/4, add_topology/4, drop/2]).
-export([bytes/1, bytes/2, frames/1, last/2, has/2, range/1, entries/4, topology_at/2, excess/3]).

-export_type([index/0, level/0, key/0, place/0]).

-doc "Milliseconds of a step, how long its frames are kept, and the time that a file covers.".
-type level() :: {StepMs :: pos_integer(), KeepMs :: pos_integer(), FileMs :: pos_integer()}.
-doc "A file; `Begins` is when its slot begins.".
-type key() ::
    {StepMs :: pos_integer(), Begins :: sderl_mon_types:t(), Part :: non_neg_integer()}.
-doc "A record in a file.".
-type place() :: {key(), Position :: non_neg_integer(), Length :: pos_integer()}.

-record(file, {
    bytes = 0 :: non_neg_integer(),
    %% Newest first.
    frames = [] :: [sderl_mon_ladder:entry(place())],
    topologies = [] :: [{sderl_mon_types:t(), place()}]
}).

-opaque index() :: #{levels := [level(), ...], files := #{key() => #file{}}}.

-define(ENDING, ".archive").

-doc "An archive without files. The finest level comes first.".
-spec new([level(), ...]) -> index().
new(Levels) -> #{levels => Levels, files => #{}}.

-doc "The steps, finest first.".
-spec steps(index()) -> [pos_integer(), ...].
steps(#{levels := Levels}) -> [Step || {Step, _, _} <- Levels].

-doc """
The file for a frame that ends at a time: the last part of its slot, or a new part if that one has
reached `MostBytes`.
""".
-spec key({Step :: pos_integer(), sderl_mon_types:t()}, MostBytes :: pos_integer(), index()) ->
    key().
key({Step, T}, Most, #{files := Files} = Index) ->
    FileMs = file_ms(Step, Index),
    Slot = (T - 1) div FileMs * FileMs,
    Parts = [{Part, Bytes}
             || {S, At, Part} := #file{bytes = Bytes} <- Files, S =:= Step, At =:= Slot],
    case lists:sort(Parts) of
        [] -> {Step, Slot, 0};
        Sorted ->
            case lists:last(Sorted) of
                {Part, Bytes} when Bytes < Most -> {Step, Slot, Part};
                {Part, _} -> {Step, Slot, Part + 1}
            end
    end.

file_ms(Step, #{levels := Levels}) ->
    {Step, _, FileMs} = lists:keyfind(Step, 1, Levels),
    FileMs.

-doc "The name of a file.".
-spec name(key()) -> binary().
name({Step, Begins, Part}) ->
    iolist_to_binary(io_lib:format("~bs-~b-~b" ?ENDING, [Step div 1000, Begins div 1000, Part])).

-doc "The file that has such a name; `none` for a name that no file of this archive has.".
-spec read_name(binary(), index()) -> {ok, key()} | none.
read_name(Name, #{levels := Levels}) ->
    case re:run(Name, "^([0-9]{1,9})s-([0-9]{1,15})-([0-9]{1,9})\\" ?ENDING "$",
                [{capture, all_but_first, binary}]) of
        {match, Numbers} ->
            [Seconds, Begins, Part] = [binary_to_integer(N) || N <- Numbers],
            case lists:keyfind(1000 * Seconds, 1, Levels) of
                {Step, _, FileMs} ->
                    Key = {Step, 1000 * Begins div FileMs * FileMs, Part},
                    %% A file of an archive with other levels begins at another time.
                    case name(Key) of
                        Name -> {ok, Key};
                        _ -> none
                    end;
                false -> none
            end;
        nomatch -> none
    end.

-doc "A file without frames.".
-spec add_file(key(), index()) -> index().
add_file(Key, #{files := Files} = Index) -> Index#{files := Files#{Key => #file{}}}.

-doc "A file has grown by a number of bytes, which may be negative.".
-spec add_bytes(key(), integer(), index()) -> index().
add_bytes(Key, More, Index) ->
    change(Key, fun(#file{bytes = Bytes} = File) -> File#file{bytes = Bytes + More} end, Index).

-doc "Adds a frame to a file; no frame there is newer.".
-spec add_frame(sderl_mon_types:t(), SpanMs :: pos_integer(), place(), index()) -> index().
add_frame(T, Span, {Key, _, _} = Place, Index) ->
    change(Key, fun(#file{frames = Frames} = File) ->
        File#file{frames = [{T, Span, Place} | Frames]}
    end, Index).

-doc "Adds the topology of a time to a file; no topology there is newer.".
-spec add_topology(sderl_mon_types:t(), key(), sderl_mon_scan:place(), index()) -> index().
add_topology(T, Key, {Position, Length}, Index) ->
    change(Key, fun(#file{topologies = All} = File) ->
        File#file{topologies = [{T, {Key, Position, Length}} | All]}
    end, Index).

change(Key, Fun, #{files := Files} = Index) ->
    Index#{files := maps:update_with(Key, Fun, Files)}.

-doc "A file was deleted.".
-spec drop(key(), index()) -> index().
drop(Key, #{files := Files} = Index) -> Index#{files := maps:remove(Key, Files)}.

-doc "The bytes of all files.".
-spec bytes(index()) -> non_neg_integer().
bytes(#{files := Files}) ->
    maps:fold(fun(_, #file{bytes = Bytes}, Sum) -> Sum + Bytes end, 0, Files).

-doc "The bytes of a file; 0 for one that is not there.".
-spec bytes(key(), index()) -> non_neg_integer().
bytes(Key, #{files := Files}) ->
    #file{bytes = Bytes} = maps:get(Key, Files, #file{}),
    Bytes.

-doc "The number of frames of each step.".
-spec frames(index()) -> #{pos_integer() => non_neg_integer()}.
frames(#{files := Files} = Index) ->
    #{Step => lists:sum([length(Frames)
                         || {S, _, _} := #file{frames = Frames} <- Files, S =:= Step])
      || Step <- steps(Index)}.

-doc "When the newest frame of a step ends; `none` if there is none.".
-spec last(pos_integer(), index()) -> sderl_mon_types:t() | none.
last(Step, #{files := Files}) ->
    case [T || {S, _, _} := #file{frames = [{T, _, _} | _]} <- Files, S =:= Step] of
        [] -> none;
        Times -> lists:max(Times)
    end.

-doc "Whether there is a frame of a step that ends at a time.".
-spec has({Step :: pos_integer(), sderl_mon_types:t()}, index()) -> boolean().
has({Step, T}, #{files := Files}) ->
    lists:any(fun(Frames) -> lists:keymember(T, 1, Frames) end,
              [Frames || {S, _, _} := #file{frames = Frames} <- Files, S =:= Step]).

-doc "The time range of all frames; `{0, 0}` for none.".
-spec range(index()) -> {sderl_mon_types:t(), sderl_mon_types:t()}.
range(#{files := Files}) ->
    Ends = [{lists:last(Frames), hd(Frames)} || _ := #file{frames = [_ | _] = Frames} <- Files],
    case Ends of
        [] -> {0, 0};
        _ ->
            {lists:min([T - Span || {{T, Span, _}, _} <- Ends]),
             lists:max([T || {_, {T, _, _}} <- Ends])}
    end.

-doc """
The frames whose spans end in a range, oldest first and without overlap, of steps no finer than
`StepMs` where there is a choice (`sderl_mon_ladder:choose/2`).
""".
-spec entries(sderl_mon_types:t(), sderl_mon_types:t(), StepMs :: non_neg_integer(), index()) ->
    [sderl_mon_ladder:entry(place())].
entries(From, To, StepMs, Index) ->
    sderl_mon_ladder:choose(StepMs, [{Step, of_level(Step, From, To, Index)}
                                     || Step <- steps(Index)]).

of_level(Step, From, To, #{files := Files} = Index) ->
    FileMs = file_ms(Step, Index),
    Keys = lists:sort([Key || {S, Begins, _} = Key := _ <- Files, S =:= Step,
                              Begins < To, Begins + FileMs >= From]),
    %% Sorted, because the clock may have been set back.
    lists:keysort(1, [Entry || Key <- Keys, {T, _, _} = Entry <- (map_get(Key, Files))#file.frames,
                               T >= From, T =< To]).

-doc "The topology of a time, or the oldest one for a time before all.".
-spec topology_at(sderl_mon_types:t(), index()) -> {ok, place()} | none.
topology_at(T, #{files := Files}) ->
    All = lists:append([Topologies || _ := #file{topologies = Topologies} <- Files]),
    case {[One || {At, _} = One <- All, At =< T], All} of
        {[_ | _] = Before, _} -> {ok, element(2, lists:max(Before))};
        {[], [_ | _]} -> {ok, element(2, lists:min(All))};
        {[], []} -> none
    end.

-doc """
The files to delete: those that are too old, and while there are more than `MostBytes`, the oldest
of the level with most bytes. The newest file of each level stays.
""".
-spec excess(Now :: sderl_mon_types:t(), MostBytes :: pos_integer(), index()) -> [key()].
excess(Now, Most, #{levels := Levels, files := Files} = Index) ->
    Newest = [lists:max(Keys)
              || {Step, _, _} <- Levels,
                 [_ | _] = Keys <- [[Key || {S, _, _} = Key := _ <- Files, S =:= Step]]],
    Over = [Key || {Step, KeepMs, FileMs} <- Levels, {S, Begins, _} = Key := _ <- Files, S =:= Step,
                   Begins + FileMs + KeepMs < Now, not lists:member(Key, Newest)],
    Left = lists:foldl(fun drop/2, Index, Over),
    Over ++ too_many(bytes(Left) - Most, Newest, Left).

too_many(TooMany, _, _) when TooMany =< 0 -> [];
too_many(TooMany, Newest, #{files := Files, levels := Levels} = Index) ->
    Loads = [{lists:sum([B || _ := #file{bytes = B} <- Of]), lists:min(Spare)}
             || {Step, _, _} <- Levels,
                Of <- [#{Key => File || {S, _, _} = Key := File <- Files, S =:= Step}],
                [_ | _] = Spare <- [maps:keys(Of) -- Newest]],
    case Loads of
        [] -> [];
        _ ->
            {_, Key} = lists:max(Loads),
            [Key | too_many(TooMany - bytes(Key, Index), Newest, drop(Key, Index))]
    end.

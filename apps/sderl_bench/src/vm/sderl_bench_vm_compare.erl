%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_compare).
-moduledoc """
Compares two files of results of `bin/sderl bench vm`: which points became faster or slower. Pure.

The controls of both are compared first. Where they differ, the machine was not the same: a program
that did not change is then *undecided*, and so is one that changed by no more than the control.
""".

-export([compare/3, text/1, head/0, cells/1, notes/1, outcome/2]).
-export_type([result/0, row/0]).

-type row() :: #{program := binary(), size := sderl_bench_vm_size:size(),
                 key := sderl_bench_vm_summary:key(), before := pos_integer(),
                 later := pos_integer(), verdict := sderl_bench_verdict:verdict(),
                 ratio := sderl_bench_sample:interval()}.

-doc """
`only`: how many points are in one file only; `lost`: those of them that were measured before and
failed later. `raced`: points that were left out of the race of one of the files; those that were
left out of both have no rows (`m:sderl_bench_vm_race`). `warnings` are about the files as a whole.
""".
-type result() :: #{rows := [row()], control := [row()], level := float(),
                    counts := float(), least := pos_integer(), only := non_neg_integer(),
                    lost := [point()], raced := [point()], warnings := [unicode:chardata()]}.

-type point() :: {Program :: binary(), sderl_bench_vm_size:size(), sderl_bench_vm_summary:key()}.

-type file() :: {sderl_bench_vm_store:header(), [sderl_bench_vm_store:line()]}.

-doc """
`Counts` is the smallest difference that counts, 0.01 for 1 %. The error is a text: there is nothing
in both files.
""".
-spec compare(file(), file(), Counts :: float()) -> {ok, result()} | {error, unicode:chardata()}.
compare({HeaderA, AllA}, {HeaderB, AllB}, Counts) ->
    LinesA = sderl_bench_vm_summary:possible(AllA),
    LinesB = sderl_bench_vm_summary:possible(AllB),
    A = sderl_bench_vm_summary:samples(LinesA),
    B = sderl_bench_vm_summary:samples(LinesB),
    Controls = controls(HeaderA) ++ controls(HeaderB),
    Both = lists:sort([Point || Point := _ <- A, is_map_key(Point, B)]),
    {Control, Compared} = lists:partition(fun({Name, _, _}) -> lists:member(Name, Controls) end,
                                          Both),
    Lost = lost(A, B, LinesB),
    RacedA = raced(HeaderA, A, Controls),
    RacedB = raced(HeaderB, B, Controls),
    case [Point || Point <- Compared, not (lists:member(Point, RacedA)
                                           andalso lists:member(Point, RacedB))] of
        [] when Lost =:= [] ->
            {error, "the two files have no point in common: no program on as many schedulers or "
                    "nodes with the same flags"};
        Points ->
            Level = sderl_bench_verdict:level(max(1, length(Points))),
            OfControl = [row(Point, A, B, sderl_bench_verdict:level(max(1, length(Control))),
                             Counts) || Point <- Control],
            Moved = [Row || #{verdict := Verdict} = Row <- OfControl,
                            Verdict =:= faster orelse Verdict =:= slower],
            Rows = [doubted(Moved, row(Point, A, B, Level, Counts)) || Point <- Points],
            {ok, #{
                rows => Rows, control => OfControl, level => Level, counts => Counts,
                least => sderl_bench_sample:least(Level),
                only => map_size(A) + map_size(B) - 2 * length(Both),
                lost => Lost,
                raced => lists:usort(RacedA ++ RacedB),
                warnings => machines(HeaderA, HeaderB) ++ settings(HeaderA, HeaderB) ++
                    outputs(LinesA, LinesB) ++ repetitions(LinesA, LinesB) ++
                    left_out("BEFORE", AllA, B) ++ left_out("AFTER", AllB, A) ++ moved(Moved)
            }}
    end.

%% Not points that failed and were measured after that.
lost(A, B, LinesB) ->
    lists:usort([Point || #{~"kind" := ~"failed", ~"program" := Program} = Line <- LinesB,
                          Point <- [{Program, sderl_bench_vm_size:of_line(Line),
                                     sderl_bench_vm_summary:key(Line)}],
                          is_map_key(Point, A), not is_map_key(Point, B)]).

%% Points that are far behind in the race of a file, which have too few virtual machines for a
%% verdict, and are on the most schedulers only.
raced(#{~"race" := true}, Samples, Controls) ->
    Races = maps:groups_from_list(
        fun({{_, _, Key}, _}) -> Key end,
        [Sample || {{Name, _, _}, _} = Sample <- maps:to_list(Samples),
                   not lists:member(Name, Controls)]
    ),
    lists:append([sderl_bench_vm_race:left_out([Sample || {{_, Size, _}, _} = Sample <- Of,
                                                          Size =:= Most])
                  || _ := Of <- Races, Most <- [lists:max([Size || {{_, Size, _}, _} <- Of])]]);
raced(_, _, _) ->
    [].

controls(#{~"settings" := #{~"programs" := Programs}}) ->
    [Name || #{~"name" := Name, ~"control" := true} <- Programs];
controls(_) -> [].

row({Program, Size, Key} = Point, A, B, Level, Counts) ->
    Before = map_get(Point, A),
    After = map_get(Point, B),
    {Verdict, Ratio} = sderl_bench_verdict:of_times(Level, Counts, Before, After),
    #{program => Program, size => Size, key => Key, before => length(Before),
      later => length(After), verdict => Verdict, ratio => Ratio}.

%% A program is not blamed for a change that is no larger than the machine's own.
doubted(Moved, #{verdict := slower, ratio := #{low := Low}} = Row) ->
    case [High || #{ratio := #{high := High}} <- Moved, High >= Low] of
        [] -> Row;
        _ -> Row#{verdict := undecided}
    end;
doubted(Moved, #{verdict := faster, ratio := #{high := High}} = Row) ->
    case [Low || #{ratio := #{low := Low}} <- Moved, Low =< High] of
        [] -> Row;
        _ -> Row#{verdict := undecided}
    end;
doubted([], Row) -> Row;
doubted(_, #{verdict := same} = Row) -> Row#{verdict := undecided};
doubted(_, Row) -> Row.

machines(#{~"machine" := Same}, #{~"machine" := Same}) -> [];
machines(#{~"machine" := A}, #{~"machine" := B}) ->
    Keys = [Key || Key := Value <- maps:iterator(A, ordered), maps:get(Key, B, none) =/= Value],
    [["THESE ARE TWO MACHINES: they differ in ", lists:join(", ", Keys),
      "; the verdicts say nothing about the programs"]].

%% Programs whose settings differ. A setting that only one file has was added or removed later.
settings(#{~"settings" := #{~"programs" := A}}, #{~"settings" := #{~"programs" := B}}) ->
    Of = fun(Programs) -> #{Name => maps:get(~"settings", Program, #{})
                            || #{~"name" := Name} = Program <- Programs} end,
    Others = Of(B),
    case [Name || Name := Settings <- maps:iterator(Of(A), ordered),
                  #{Name := Other} <- [Others],
                  lists:any(fun(Key) -> map_get(Key, Settings) =/= map_get(Key, Other) end,
                            maps:keys(maps:intersect(Settings, Other)))] of
        [] -> [];
        Names -> [["NOT THE SAME WORK: the settings differ of ", lists:join(", ", Names)]]
    end;
settings(_, _) -> [].

%% Programs whose outputs differ: a program has the same output in all points.
outputs(LinesA, LinesB) ->
    Others = of_programs(~"hash", LinesB),
    case [Name || Name := Hashes <- maps:iterator(of_programs(~"hash", LinesA), ordered),
                  maps:get(Name, Others, Hashes) =/= Hashes] of
        [] -> [];
        Names -> [["NOT THE SAME WORK: other outputs of ", lists:join(", ", Names)]]
    end.

%% With many more repetitions in a run, caches, heaps and garbage collections are different.
repetitions(LinesA, LinesB) ->
    Others = of_programs(~"repetitions", LinesB),
    [io_lib:format("OTHER REPETITIONS: a run has ~ts ~w times before and ~w times after, so the "
                   "times are not of the same conditions", [Name, Before, After])
     || Name := [_ | _] = Counts <- maps:iterator(of_programs(~"repetitions", LinesA), ordered),
        #{Name := [_ | _] = Later} <- [Others],
        Before <- [lists:last(Counts)], After <- [lists:last(Later)],
        max(Before, After) > 1.5 * min(Before, After)].

%% All values that the virtual machines of each program have of something.
of_programs(Key, Lines) ->
    Values = maps:groups_from_list(
        fun(#{~"program" := Program}) -> Program end,
        fun(Line) -> map_get(Key, Line) end,
        [Line || #{~"kind" := ~"vm", Key := _} = Line <- Lines]
    ),
    #{Program => lists:usort(Of) || Program := Of <- Values}.

%% Points that are left out of one file and are in the other one.
left_out(When, Lines, Others) ->
    [["LEFT OUT ", When, ", because it is not possible: ", Reason]
     || {{Size, Key}, Reason} <- sderl_bench_vm_summary:left_out(Lines),
        [] =/= [ok || {_, S, K} := _ <- Others, S =:= Size, K =:= Key]].

moved(Moved) ->
    [io_lib:format("THE MACHINE ITSELF WAS ~ts: the control on ~ts took ~ts times as long; only "
                   "larger changes are decided. Measure both again on an idle machine",
                   [string:uppercase(atom_to_list(Verdict)), sderl_bench_vm_size:text(Size),
                    sderl_bench_vm_table:interval(fun factor/1, Ratio)])
     || #{verdict := Verdict, size := Size, ratio := Ratio} <- Moved].

-doc "For a terminal.".
-spec text(result()) -> unicode:chardata().
text(#{rows := Rows, control := Control, warnings := Warnings} = Result) ->
    [
        [["warning: ", Warning, "\n"] || Warning <- Warnings],
        sderl_table:text(head(), [cells(Row) || Row <- Control ++ Rows]),
        "\n",
        [[Note, "\n"] || Note <- notes(Result)]
    ].

-doc "What the verdicts mean, and which points have none.".
-spec notes(result()) -> [unicode:chardata(), ...].
notes(#{rows := Rows, level := Level, counts := Counts, only := Only, lost := Lost,
        raced := Raced, least := Least}) ->
    [
        io_lib:format("intervals of level ~ts %, so that all ~w verdicts together raise a false "
                      "alarm in 1 of 100 cases; differences below ~ts % count as none",
                      [short(100 * Level), length(Rows), sderl_table:number(100 * Counts)])
        | [io_lib:format("~w point~ts in one of the files only",
                         [Only, case Only of 1 -> " is"; _ -> "s are" end]) || Only > 0] ++
            [["failed after, and did not before: ", named(Point)] || Point <- Lost] ++
            [io_lib:format("too few virtual machines: a verdict needs ~w of each point in each "
                           "file (--least ~w)", [Least, Least])
             || lists:any(fun(Row) -> is_short(Row, Least, Raced) end, Rows)] ++
            [["left out of a race, because they were far behind, and so without a verdict: ",
              lists:join("; ", [named(Point) || Point <- Raced])] || Raced =/= []]
    ].

is_short(#{program := Program, size := Size, key := Key, before := A, later := B}, Least, Raced) ->
    min(A, B) < Least andalso not lists:member({Program, Size, Key}, Raced).

-doc "The header of `cells/1`.".
-spec head() -> [string(), ...].
head() -> ["point", "on", "VMs", "time after / before", "interval", "verdict"].

-doc "A row as text.".
-spec cells(row()) -> [unicode:chardata(), ...].
cells(#{program := Program, size := Size, key := Key, before := Before, later := After,
        verdict := Verdict, ratio := #{value := Value, low := Low, high := High}}) ->
    [
        [Program, with(Key)],
        sderl_bench_vm_size:text(Size), io_lib:format("~w/~w", [Before, After]), factor(Value),
        case Low of undefined -> "-"; _ -> [factor(Low), "..", factor(High)] end,
        atom_to_list(Verdict)
    ].

named({Program, Size, Key}) ->
    [Program, with(Key), " on ", sderl_bench_vm_size:text(Size)].

with({~"", ~""}) -> "";
with(Key) -> [", ", sderl_bench_vm_table:series_name(Key)].

factor(Value) -> float_to_list(float(Value), [{decimals, 3}]).

short(Value) -> float_to_list(Value, [{decimals, 4}, compact]).

-doc """
The exit of a comparison, for use in a build: an error with a text if something became slower or
fails now, and with `Strict` also if something is undecided or in one file only.
""".
-spec outcome(result(), Strict :: boolean()) -> ok | {error, unicode:chardata()}.
outcome(#{rows := Rows, lost := Lost, only := Only}, Strict) ->
    Of = fun(Wanted) -> length([ok || #{verdict := Verdict} <- Rows, Verdict =:= Wanted]) end,
    Wrong = [io_lib:format("~w of ~w points ~ts", [Count, length(Rows), What])
             || {Count, What, true} <- [{Of(slower), "are slower", true},
                                        {Of(undecided), "are undecided", Strict}],
                Count > 0] ++
        [["failed after, and did not before: ", lists:join("; ", [named(Point) || Point <- Lost])]
         || Lost =/= []] ++
        [io_lib:format("points in one of the files only: ~w", [Only]) || Strict, Only > 0],
    case Wrong of
        [] -> ok;
        _ -> {error, lists:join("\n", Wrong)}
    end.

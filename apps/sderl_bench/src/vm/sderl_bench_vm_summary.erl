%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_summary).
-moduledoc """
Computes the results from the lines of a file. Pure: the same file gives the same results.

The unit is a virtual machine: its time is the median of its runs, and a point's time is the median
of its virtual machines. Runs of one virtual machine resemble one another more than those of two, so
more runs in each do not make an interval narrower.
""".

-export([of_lines/2, samples/1, left_out/1, possible/1, key/1, efficiency/1]).
-export_type([summary/0, program/0, series/0, row/0, key/0]).

-doc "A point without its size.".
-type key() :: {Flags :: binary(), Otp :: binary()}.

-doc """
`size` is the number of schedulers, or of nodes with so many `schedulers` each. Times are in
nanoseconds, intervals of level 95 %. `speedup` is against the least size, one scheduler or one
node; `against`: the time divided by that of the first series on the same size; `why`: medians of
what `m:sderl_bench_vm_why` measured; `unwarm`: in how many virtual machines the warm-up did not
end.
""".
-type row() :: #{
    size := sderl_bench_vm_size:size(),
    schedulers := pos_integer(),
    vms := pos_integer(),
    times := [float()],
    time := sderl_bench_sample:interval(),
    scatter := float() | undefined,
    speedup := sderl_bench_sample:interval() | undefined,
    against := sderl_bench_sample:interval() | undefined,
    stages := [{binary(), float()}],
    warm := number() | undefined,
    unwarm := non_neg_integer(),
    overhead := float() | undefined,
    why := #{binary() => term()}
}.

-doc """
The rows of one combination of flags and OTP. The laws are fitted to points with no more schedulers,
of all nodes together, than cores; `serial` and `peak` are intervals, and `undefined` where a point
has too few virtual machines.
""".
-type series() :: #{
    key := key(),
    rows := [row()],
    amdahl := sderl_bench_scaling:amdahl() | undefined,
    serial := {float() | none, float() | none} | undefined,
    usl := sderl_bench_scaling:usl() | undefined,
    peak := {float() | none, float() | none} | undefined
}.

-type program() :: #{
    name := binary(),
    control := boolean(),
    settings := #{binary() => term()},
    operations := sderl_bench_vm_program:operations() | none,
    series := [series()],
    outputs := [{Hash :: integer(), Text :: binary(), Count :: pos_integer()}],
    failures := [#{point := binary(), size := sderl_bench_vm_size:size(), reason := binary(),
                   count := pos_integer()}]
}.

-doc """
`left_out`: points that were asked for and are not possible, each with the reason. `race`: only the
best program was asked for (`m:sderl_bench_vm_race`).
""".
-type summary() :: #{
    machine := #{binary() => term()},
    settings := #{binary() => term()},
    programs := [program()],
    otps := #{binary() => #{binary() => term()}},
    left_out := [binary()],
    race := boolean(),
    vms := non_neg_integer(),
    rounds := non_neg_integer()
}.

-define(LEVEL, 0.95).
-define(DRAWS, 200).

-doc "The summary of a file.".
-spec of_lines(sderl_bench_vm_store:header(), [sderl_bench_vm_store:line()]) -> summary().
of_lines(#{~"machine" := Machine, ~"settings" := Settings} = Header, All) ->
    Lines = possible(All),
    %% In the order of the rounds, also if a failed one was repeated later.
    Vms = lists:sort(fun(#{~"round" := A}, #{~"round" := B}) -> A =< B end,
                     [Line || #{~"kind" := ~"vm"} = Line <- Lines]),
    Cores = maps:get(~"cores", Machine, 1),
    #{
        machine => Machine,
        settings => Settings,
        programs => [program(Named, Vms, Lines, Settings, Cores)
                     || Named <- maps:get(~"programs", Settings, [])],
        otps => #{Name => Facts
                  || #{~"kind" := ~"otp", ~"name" := Name, ~"facts" := Facts} <- Lines},
        left_out => maps:get(~"left_out", Header, []) ++
            [Reason || {_, Reason} <- left_out(Lines)],
        %% Older files do not say whether there was a race.
        race => maps:get(~"race", Header, true),
        vms => length(Vms),
        rounds => lists:max([0 | [Round || #{~"round" := Round} <- Vms]])
    }.

-doc "The times of all points: of each virtual machine the median of its runs.".
-spec samples([sderl_bench_vm_store:line()]) ->
    #{{Program :: binary(), sderl_bench_vm_size:size(), key()} => [float()]}.
samples(Lines) ->
    lists:foldr(
        fun
            (#{~"kind" := ~"vm", ~"program" := Program} = Line, Samples) ->
                maps:update_with({Program, sderl_bench_vm_size:of_line(Line), key(Line)},
                                 fun(Times) -> [time(Line) | Times] end, [time(Line)], Samples);
            (_, Samples) ->
                Samples
        end,
        #{},
        possible(Lines)
    ).

-doc """
Points whose virtual machine does not do what is asked for, by the latest probe, each with the
reason.
""".
-spec left_out([sderl_bench_vm_store:line()]) ->
    [{{sderl_bench_vm_size:size(), key()}, Reason :: binary()}].
left_out(Lines) ->
    lists:foldl(
        fun
            (#{~"kind" := ~"left_out", ~"reason" := Reason} = Line, Out) ->
                lists:keystore(looked_at(Line), 1, Out, {looked_at(Line), Reason});
            (#{~"kind" := ~"probed"} = Line, Out) ->
                lists:keydelete(looked_at(Line), 1, Out);
            (_, Out) ->
                Out
        end,
        [],
        Lines
    ).

looked_at(Line) -> {sderl_bench_vm_size:of_line(Line), key(Line)}.

-doc "Lines without the results of points that were left out later.".
-spec possible([sderl_bench_vm_store:line()]) -> [sderl_bench_vm_store:line()].
possible(Lines) ->
    Out = maps:from_list(left_out(Lines)),
    [Line || #{~"kind" := Kind} = Line <- Lines,
             not lists:member(Kind, [~"vm", ~"failed"])
                 orelse not is_map_key(looked_at(Line), Out)].

-doc "The speedup of a row divided by its size, with its interval.".
-spec efficiency(row()) -> sderl_bench_sample:interval() | undefined.
efficiency(#{speedup := undefined}) ->
    undefined;
efficiency(#{size := Size, speedup := Speedup}) ->
    N = sderl_bench_vm_size:number(Size),
    #{Key => case End of undefined -> undefined; _ -> End / N end || Key := End <- Speedup}.

-doc "The series of a line.".
-spec key(sderl_bench_vm_store:line()) -> key().
key(#{~"flags" := Flags, ~"otp" := Otp}) -> {Flags, Otp}.

%% Above 0, also if the clock did not advance.
time(#{~"runs" := Runs}) -> max(0.1, float(sderl_table:median(Runs))).

program(#{~"name" := Name} = Named, Vms, Lines, Settings, Cores) ->
    Mine = [Line || #{~"program" := Program} = Line <- Vms, Program =:= Name],
    Keys = lists:uniq([key(Point) || Point <- maps:get(~"points", Settings, [])]),
    Series = [series(Key, [Line || Line <- Mine, key(Line) =:= Key], Cores)
              || Key <- Keys],
    #{
        name => Name,
        control => maps:get(~"control", Named, false),
        settings => maps:get(~"settings", Named, #{}),
        operations => operations([Named | [Line || #{~"kind" := ~"calibrated", ~"program" := Of}
                                                       = Line <- Lines, Of =:= Name]]),
        series => against([S || #{rows := [_ | _]} = S <- Series]),
        outputs => outputs([Line || #{~"kind" := Kind, ~"program" := Program} = Line <- Lines,
                                    Program =:= Name,
                                    Kind =:= ~"vm" orelse Kind =:= ~"calibrated"]),
        failures => failures(lasting([Line || #{~"program" := Of} = Line <- Lines, Of =:= Name]))
    }.

%% Known before the program runs, or told by its first run.
operations(Told) ->
    case [Of || #{~"operations" := Of} <- Told] of
        [#{~"count" := Count, ~"unit" := Unit} = Of | _] ->
            %% Older files do not say whether the reductions are those of the stages.
            #{count => Count, unit => Unit, reductions => maps:get(~"reductions", Of, false)};
        [] ->
            none
    end.

series(Key, Lines, Cores) ->
    BySize = maps:groups_from_list(fun sderl_bench_vm_size:of_line/1, Lines),
    Alone = [time(Line) || Size := Some <- BySize, sderl_bench_vm_size:number(Size) =:= 1,
                           Line <- Some],
    Rows = [row(Size, Some, Alone) || Size := Some <- maps:iterator(BySize, ordered)],
    Times = [{sderl_bench_vm_size:number(Size), Values}
             || #{size := Size, times := Values} <- Rows,
                sderl_bench_vm_size:schedulers(Size) =< Cores],
    (laws(lists:keymember(1, 1, Times), Times))#{key => Key, rows => Rows}.

row(Size, Lines, Alone) ->
    Times = [time(Line) || Line <- Lines],
    #{
        size => Size,
        schedulers => map_get(schedulers, sderl_bench_vm_size:fields(Size)),
        vms => length(Times),
        times => Times,
        time => sderl_bench_sample:median(?LEVEL, Times),
        scatter => sderl_bench_sample:scatter(Times),
        speedup => speedup(sderl_bench_vm_size:number(Size), Times, Alone),
        against => undefined,
        stages => stages(Lines),
        warm => sderl_table:median([length(Warm) || #{~"warm" := Warm} <- Lines]),
        unwarm => length([Line || #{~"warmed" := false} = Line <- Lines]),
        overhead => sderl_table:median([Ns / time(Line)
                                        || #{~"overhead_ns" := Ns} = Line <- Lines]),
        why => medians([Why || #{~"why" := Why} <- Lines])
    }.

speedup(_, _, []) -> undefined;
speedup(1, _, _) -> #{value => 1.0, low => 1.0, high => 1.0};
speedup(_, Times, Alone) -> sderl_bench_sample:ratio(?LEVEL, Times, Alone).

stages(Lines) ->
    Maps = [Stages || #{~"stages" := Stages} <- Lines],
    [{Name, sderl_table:median([Value || #{Name := Values} <- Maps, Value <- Values])}
     || Name <- lists:usort(lists:append([maps:keys(Map) || Map <- Maps]))].

%% The median of numbers; of lists and maps that of each element.
medians([]) -> #{};
medians(Maps) ->
    #{Key => middle([Value || #{Key := Value} <- Maps]) || Key := _ <- hd(Maps)}.

middle([Map | _] = Maps) when is_map(Map) -> medians(Maps);
middle([[_ | _] | _] = Lists) ->
    Shortest = lists:min([length(List) || List <- Lists]),
    [sderl_table:median([lists:nth(I, List) || List <- Lists]) || I <- lists:seq(1, Shortest)];
middle([Number | _] = Numbers) when is_number(Number) -> sderl_table:median(Numbers);
middle([Other | _]) -> Other.

laws(true, Times) ->
    Speedups = sderl_bench_scaling:speedups(Times),
    Amdahl = sderl_bench_scaling:amdahl(Speedups),
    Usl = sderl_bench_scaling:usl(Speedups),
    #{
        amdahl => Amdahl,
        serial => resampled(Amdahl, Times, fun(Drawn) ->
            #{serial := Serial} = sderl_bench_scaling:amdahl(sderl_bench_scaling:speedups(Drawn)),
            Serial
        end),
        usl => Usl,
        peak => resampled(Usl, Times, fun(Drawn) ->
            case sderl_bench_scaling:usl(sderl_bench_scaling:speedups(Drawn)) of
                #{peak := {N, _}} -> N;
                #{peak := none} -> none
            end
        end)
    };
laws(false, _) ->
    #{amdahl => undefined, serial => undefined, usl => undefined, peak => undefined}.

%% Resampling few values would give an interval that is too narrow.
resampled(undefined, _, _) -> undefined;
resampled(_, Times, Fun) ->
    case lists:all(fun({_, Values}) -> length(Values) >= sderl_bench_vm_plan:least() end, Times) of
        true -> sderl_bench_scaling:resampled(?DRAWS, 1, Times, Fun);
        false -> undefined
    end.

%% The other series are compared with the first.
against([#{rows := First} = Series | Others]) ->
    [Series | [compared(First, Other) || Other <- Others]];
against([]) ->
    [].

compared(First, #{rows := Rows} = Series) ->
    Series#{rows := [
        case [Times || #{size := Same, times := Times} <- First, Same =:= Size] of
            [Before] -> Row#{against := sderl_bench_sample:ratio(?LEVEL, Before, After)};
            [] -> Row
        end
     || #{size := Size, times := After} = Row <- Rows
    ]}.

%% The most frequent one first.
outputs(Lines) ->
    Counts = maps:groups_from_list(fun(#{~"hash" := Hash}) -> Hash end, Lines),
    Listed = [{Hash, map_get(~"text", Line), length(Same)}
              || Hash := [Line | _] = Same <- Counts],
    lists:sort(fun({_, _, A}, {_, _, B}) -> A >= B end, Listed).

%% Failures that were not made good later: a continued command tries the same round again.
lasting(Lines) ->
    {Failed, _} = lists:foldr(
        fun
            (#{~"kind" := ~"failed"} = Line, {Failed, Done}) ->
                case is_map_key(what(Line), Done) of
                    true -> {Failed, Done};
                    false -> {[Line | Failed], Done}
                end;
            (#{~"kind" := ~"vm"} = Line, {Failed, Done}) ->
                {Failed, Done#{what(Line) => ok}};
            (#{~"kind" := ~"calibrated"}, {Failed, Done}) ->
                {Failed, Done#{calibrated => ok}};
            (_, Seen) ->
                Seen
        end,
        {[], #{}},
        Lines
    ),
    Failed.

what(#{~"round" := Round} = Line) -> {sderl_bench_vm_size:of_line(Line), key(Line), Round};
what(_) -> calibrated.

failures(Lines) ->
    Same = maps:groups_from_list(
        fun(#{~"reason" := Reason} = Line) ->
            {key(Line), sderl_bench_vm_size:of_line(Line), Reason}
        end,
        Lines
    ),
    [#{point => point(Key), size => Size, reason => Reason, count => length(Some)}
     || {Key, Size, Reason} := Some <- maps:iterator(Same, ordered)].

point({Flags, ~""}) -> Flags;
point({~"", Otp}) -> <<"OTP ", Otp/binary>>;
point({Flags, Otp}) -> <<Flags/binary, ", OTP ", Otp/binary>>.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_table).
-moduledoc "The results of `bin/sderl bench vm` as text for a terminal, and as rows of JSON. Pure.".

-export([text/1, heading/1, overhead/1, failures/1, rows/1, ns/1, percent/1, interval/2, bar/3,
         reasons/2, why/2, cost/2, fits/1, notes/1, axis/1, series_name/1, settings/1]).

%% The program that has only the time of the harness.
-define(EMPTY, ~"empty").
%% The width of a curve.
-define(BAR, 20).

-doc "All of it.".
-spec text(sderl_bench_vm_summary:summary()) -> unicode:chardata().
text(#{programs := Programs} = Summary) ->
    [heading(Summary), [program(Program, Programs) || Program <- Programs], overhead(Programs)].

-doc "What was measured on which machine, and notes for the reader of the figures.".
-spec heading(sderl_bench_vm_summary:summary()) -> unicode:chardata().
heading(#{vms := Vms, rounds := Rounds} = Summary) ->
    [
        io_lib:format("~w virtual machines in ~w round~ts on ~ts~n",
                      [Vms, Rounds, [$s || Rounds =/= 1], machine(Summary)]),
        [[otp(Name, Facts), "\n"]
         || Name := Facts <- maps:iterator(map_get(otps, Summary), ordered)],
        [["note: ", Note, "\n"] || Note <- notes(Summary)]
    ].

machine(#{machine := #{~"cores" := Cores} = Machine}) ->
    [
        io_lib:format("~w core~ts", [Cores, [$s || Cores > 1]]),
        [[", ", Model] || #{~"model" := Model} <- [Machine], is_binary(Model)],
        [io_lib:format(", ~w MiB", [Memory]) || #{~"memory_mib" := Memory} <- [Machine],
                                                is_integer(Memory)]
    ].

otp(Name, Facts) ->
    Get = fun(Key) -> maps:get(Key, Facts, ~"?") end,
    io_lib:format("OTP ~ts~ts (~ts emulator, ~ts, compiler ~ts)",
                  [Get(~"otp"), [[" as ", Name] || Name =/= ~""], Get(~"emulator"), Get(~"libc"),
                   Get(~"compiler")]).

-doc "Notes for the reader of the figures.".
-spec notes(sderl_bench_vm_summary:summary()) -> [unicode:chardata()].
notes(#{machine := Machine, programs := Programs, otps := Otps, left_out := LeftOut}) ->
    Most = lists:max([1 | [sderl_bench_vm_size:schedulers(Size)
                           || #{series := Series} <- Programs, #{rows := Rows} <- Series,
                              #{size := Size} <- Rows]]),
    Known = #{Key => maps:get(atom_to_binary(Key), Machine, null)
              || Key <- [cores, quota, threads_per_core, kinds_of_cores, memory_nodes, governor,
                      counters]},
    [["left out, because it is not possible: ", Point] || Point <- LeftOut] ++
        sderl_bench_vm_host:notes(Known, Most) ++ uncounted(Programs) ++
        builds(maps:values(Otps)) ++ noise(Programs) ++ taken(Programs).

%% The message of perf, if there are counters that it could not read.
uncounted(Programs) ->
    Said = lists:usort([Refused || #{series := Series} <- Programs, #{rows := Rows} <- Series,
                                   #{why := #{~"counters_refused" := Refused}} <- Rows]),
    [["the processor's counters were not read: ", Refused] || Refused <- lists:sublist(Said, 1)].

builds(Facts) ->
    [["the OTPs differ in more than their version: ", What,
      "; a difference between them may be that"]
     || {Key, What} <- [{~"libc", "they use different C libraries"},
                        {~"compiler", "different C compilers made them"},
                        {~"emulator", "one has a JIT and one has not"}],
        length(lists:usort([maps:get(Key, Of, none) || Of <- Facts])) > 1].

%% Differences smaller than the scatter of the control cannot be seen.
noise(Programs) ->
    [io_lib:format("the machine is noisy: the control on ~ts scatters by ~ts %, so smaller "
                   "differences are hard to see",
                   [on(Size), sderl_table:number(100 * Scatter)])
     || #{control := true, series := [#{rows := Rows} | _]} <- Programs,
        #{size := Size, scatter := Scatter} <- Rows, is_float(Scatter), Scatter > 0.03].

%% The control only computes, so its schedulers would get all of the processor time they work for.
taken(Programs) ->
    [io_lib:format("other programs use this machine: the control's schedulers on ~ts got ~ts % of "
                   "the processor time that they worked for",
                   [on(Size), sderl_table:number(100 * Got)])
     || #{control := true, series := [#{rows := Rows} | _]} <- Programs,
        #{size := Size, why := Why} <- Rows,
        Got <- [sderl_bench_vm_reasons:got(Why)], is_float(Got), Got < 0.85].

program(#{name := Name, settings := Settings, series := Series} = Program, Programs) ->
    [
        "\n", Name, settings(Settings), "\n",
        case Series of
            [] -> "nothing was measured\n";
            _ -> [one(Of, Program, Programs) || Of <- Series]
        end,
        [[Line, "\n"] || Line <- wrong(Program)]
    ].

-doc "The settings of a program, as text to follow its name.".
-spec settings(#{binary() => term()}) -> unicode:chardata().
settings(Settings) when map_size(Settings) =:= 0 -> "";
settings(Settings) ->
    [" (", lists:join(", ", [[Key, " ", io_lib:format("~0tp", [plain(Value)])]
                             || Key := Value <- maps:iterator(Settings, ordered)]), ")"].

plain(Text) when is_binary(Text) -> unicode:characters_to_list(Text);
plain(Other) -> Other.

one(#{key := Key, rows := Rows} = Series,
    #{name := Name, control := Control, operations := Operations}, Programs) ->
    Compared = lists:any(fun(#{against := Against}) -> Against =/= undefined end, Rows),
    Most = lists:max([sderl_bench_vm_size:number(Size) || #{size := Size} <- Rows]),
    [
        case Key of {~"", ~""} -> ""; _ -> ["  with ", series_name(Key), "\n"] end,
        sderl_table:text(
            [axis(Rows), "VMs", "time (95 %)", "scatter %", "speedup (95 %)",
             "efficiency % (95 %)"] ++
                ["times the first (95 %)" || Compared] ++ ["speedup; . is ideal"],
            [row(Row, Compared, Most) || Row <- Rows]
        ),
        [["  ", Line, "\n"]
         || not Control,
            Line <- operation(Operations, Rows) ++ fits(Series) ++ why(Series, Programs)],
        [["  ", Line, "\n"] || Line <- stages(Rows) ++ doubts(Name, Rows)]
    ].

-doc "What is varied, as the head of a column.".
-spec axis([sderl_bench_vm_summary:row(), ...]) -> unicode:chardata().
axis([#{size := Size} | _]) ->
    case sderl_bench_vm_size:fields(Size) of
        #{nodes := _, schedulers := 1} -> "nodes";
        #{nodes := _, schedulers := N} -> io_lib:format("nodes (~w schedulers each)", [N]);
        #{schedulers := _} -> "schedulers"
    end.

-doc "What a series is called.".
-spec series_name(sderl_bench_vm_summary:key()) -> unicode:chardata().
series_name({~"", ~""}) -> "the defaults";
series_name({Flags, ~""}) -> Flags;
series_name({~"", Otp}) -> ["OTP ", Otp];
series_name({Flags, Otp}) -> [Flags, ", OTP ", Otp].

row(#{size := Size, vms := Vms, time := Time, scatter := Scatter, speedup := Speedup,
      against := Against} = Row, Compared, Most) ->
    N = sderl_bench_vm_size:number(Size),
    [
        integer_to_list(N), integer_to_list(Vms), interval(fun ns/1, Time), percent(Scatter),
        interval(fun sderl_table:number/1, Speedup),
        interval(fun percent/1, sderl_bench_vm_summary:efficiency(Row))
    ] ++ [interval(fun sderl_table:number/1, Against) || Compared] ++ [bar(N, Speedup, Most)].

-doc "A share in percent.".
-spec percent(number() | undefined) -> unicode:chardata().
percent(undefined) -> "-";
percent(Share) when abs(Share) < 5.0e-6 -> "0";
percent(Share) -> sderl_table:number(100 * Share).

-doc "A speedup on the size N as a bar, so that several are a curve.".
-spec bar(N :: pos_integer(), sderl_bench_sample:interval() | undefined, Most :: pos_integer()) ->
    unicode:chardata().
bar(_, undefined, _) -> lists:duplicate(?BAR, $\s);
bar(N, #{value := Speedup}, Most) ->
    Full = min(?BAR, round(?BAR * Speedup / Most)),
    Ideal = max(Full, round(?BAR * N / Most)),
    [lists:duplicate(Full, $#), lists:duplicate(Ideal - Full, $.),
     lists:duplicate(?BAR - Ideal, $\s)].

-doc "A value and the ends of its interval, where there is one.".
-spec interval(fun((number()) -> unicode:chardata()),
               sderl_bench_sample:interval() | undefined) -> unicode:chardata().
interval(_, undefined) -> "-";
interval(Show, #{value := Value, low := undefined}) -> Show(Value);
interval(Show, #{value := Value, low := Same, high := Same}) when Same == Value -> Show(Value);
interval(Show, #{value := Value, low := Low, high := High}) ->
    [Show(Value), " (", Show(Low), "..", Show(High), ")"].

-doc "A time with its unit.".
-spec ns(number()) -> unicode:chardata().
ns(Ns) when Ns >= 1.0e9 -> [sderl_table:number(Ns / 1.0e9), " s"];
ns(Ns) when Ns >= 1.0e6 -> [sderl_table:number(Ns / 1.0e6), " ms"];
ns(Ns) when Ns >= 1.0e3 -> [sderl_table:number(Ns / 1.0e3), " us"];
ns(Ns) -> [sderl_table:number(Ns), " ns"].

%% The time of one operation, on each size.
operation(none, _) -> [];
operation(#{count := Count, unit := Unit} = Operations, Rows) ->
    [[io_lib:format("one ~ts of ~w: ", [Unit, Count]),
      lists:join("; ", [[interval(fun ns/1, Time), reductions(Reductions), " on ", on(Size)]
                        || #{size := Size} = Row <- Rows,
                           {Time, Reductions} <- [cost(Operations, Row)]])]].

reductions(undefined) -> "";
reductions(Count) -> [" and ", sderl_table:number(Count), " reductions"].

-doc "The time of one operation, and its reductions if they are known.".
-spec cost(sderl_bench_vm_program:operations(), sderl_bench_vm_summary:row()) ->
    {sderl_bench_sample:interval(), Reductions :: float() | undefined}.
cost(#{count := Count, reductions := Known},
     #{time := #{value := Value, low := Low, high := High}, why := Why}) ->
    {#{value => Value / Count, low => part(Low, Count), high => part(High, Count)},
     case Known of
         true -> part(maps:get(~"reductions", Why, undefined), Count);
         false -> undefined
     end}.

part(undefined, _) -> undefined;
part(Number, Count) -> Number / Count.

-doc "The laws of scaling that fit a series, in words.".
-spec fits(sderl_bench_vm_summary:series()) -> [unicode:chardata()].
fits(#{rows := Rows, amdahl := Amdahl, serial := Serial, usl := Usl, peak := Peak}) ->
    #{size := Most} = lists:last(Rows),
    amdahl(Amdahl, Serial) ++ usl(Usl, Peak, Most).

amdahl(undefined, _) -> [];
amdahl(#{serial := Share, limit := Limit, error := Error}, Between) ->
    [["Amdahl: serial share ", percent(Share), " %", between(fun percent/1, Between), ", ",
      limit(Limit), law_error(Error)]].

between(_, undefined) -> "";
between(Show, {Low, High}) -> [" (", Show(Low), "..", Show(High), ")"].

law_error(undefined) -> "";
law_error(Error) -> ["; error ", percent(Error), " %"].

limit(infinity) -> "without a limit";
limit(Limit) -> ["at most ", sderl_table:number(Limit), " times as fast"].

usl(undefined, _, _) -> [];
usl(#{contention := A, coherence := B, peak := Peak, error := Error}, Between, Most) ->
    [["Universal Scalability Law: contention ", percent(A), " %, coherence ", percent(B),
      " %; ", peak(Peak, Between, Most), law_error(Error)]].

peak(none, _, _) -> "no peak";
peak({N, Speedup}, Between, Most) ->
    [io_lib:format("fastest on ~ts ~ts~ts, ~ts times",
                   [sderl_table:number(round(N)), sderl_bench_vm_size:axis(Most),
                    between(fun ends/1, Between), sderl_table:number(Speedup)]),
     [", beyond what was measured" || N > sderl_bench_vm_size:number(Most)]].

ends(none) -> "no end";
ends(N) -> sderl_table:number(round(N)).

-doc "What the schedulers did, and why a series gains no more: lines of text.".
-spec why(sderl_bench_vm_summary:series(), [sderl_bench_vm_summary:program()]) ->
    [unicode:chardata()].
why(#{rows := Rows} = Series, Programs) ->
    worked(Rows) ++ [["why: ", Reason] || Reason <- reasons(Series, Programs)].

%% On the fewest schedulers, or nodes, and on the most.
worked([#{size := Size} = Row]) ->
    [[on(Size), ": ", work(Row)]];
worked([First | Rows]) ->
    worked([First]) ++ worked([lists:last(Rows)]).

work(#{why := #{~"busy" := Busy, ~"queue" := Queue, ~"reductions" := Reductions,
                ~"collections" := Collections} = Why}) ->
    [
        io_lib:format("~ts at work", [sderl_table:number(lists:sum(Busy))]),
        case Busy of
            [_, _ | _] ->
                io_lib:format(" (each ~ts..~ts %)", [percent(lists:min(Busy)),
                                                     percent(lists:max(Busy))]);
            _ -> ""
        end,
        [[", ", sderl_table:number(Dirty), " dirty schedulers at work"]
         || #{~"dirty_busy" := Dirty} <- [Why], Dirty >= 0.01],
        io_lib:format(", ~ts processes waiting", [sderl_table:number(Queue)]),
        [[" (at most ", sderl_table:number(Most), ")"] || #{~"queue_max" := Most} <- [Why]],
        [[", ", sderl_table:number(Switches), " context switches"]
         || #{~"switches" := Switches} <- [Why]],
        io_lib:format(", ~ts reductions, ~ts collections",
                      [sderl_table:number(Reductions), sderl_table:number(Collections)]),
        [[" that freed ", sderl_table:number(Words), " words"]
         || #{~"reclaimed_words" := Words} <- [Why]],
        [io_lib:format(", ~ts migrations a second (~ts % of the times that a process ran again)",
                       [sderl_table:number(Rate), percent(Share)])
         || #{~"migrations" := #{~"per_s" := Rate, ~"share" := Share}} <- [Why], Share > 0],
        [[", ", State, " ", percent(Share), " %"]
         || State := Share <- maps:iterator(maps:get(~"states", Why, #{}), ordered),
            Share >= 0.01]
    ];
work(_) ->
    "nothing is known of what the schedulers did".

-doc "Why a series gains no more, in words.".
-spec reasons(sderl_bench_vm_summary:series(), [sderl_bench_vm_summary:program()]) ->
    [unicode:chardata()].
reasons(#{rows := [#{size := First, why := One} | _] = Rows}, Programs) ->
    #{size := Last, why := Many, speedup := Speedup} = lists:last(Rows),
    case {sderl_bench_vm_size:number(First), Speedup} of
        {1, #{value := Value}} when Last =/= First ->
            sderl_bench_vm_reasons:text(Last, {One, Many}, Value, control(Last, Programs));
        _ ->
            []
    end.

%% The speedup of the control on a size.
control(Size, Programs) ->
    case [S || #{control := true, series := [#{rows := Rows} | _]} <- Programs,
               #{size := Same, speedup := #{value := S}} <- Rows, Same =:= Size] of
        [Speedup | _] -> Speedup;
        [] -> undefined
    end.

stages(Rows) ->
    [io_lib:format("stages on ~ts: ~ts",
                   [on(Size), lists:join(", ", [[Name, " ", ns(Time)] || {Name, Time} <- Stages])])
     || #{stages := [_, _ | _] = Stages, size := Size} <- Rows].

-doc """
The time of the harness itself, by an empty program in each virtual machine: its greatest share of
the time of any program.
""".
-spec overhead([sderl_bench_vm_summary:program()]) -> unicode:chardata().
overhead(Programs) ->
    case [{Share, Name, Size} || #{name := Name, series := Series} <- Programs, Name =/= ?EMPTY,
                                 #{rows := Rows} <- Series,
                                 #{overhead := Share, size := Size} <- Rows, is_float(Share)] of
        [] ->
            "";
        Shares ->
            {Share, Name, Size} = lists:max(Shares),
            ["\nthe harness itself takes at most ", percent(Share), " % of the time (of ", Name,
             " on ", on(Size), ")\n"]
    end.

%% Flaws of the measurement itself.
doubts(Name, Rows) ->
    [io_lib:format("not steady after the warm-up in ~w of ~w virtual machines on ~ts",
                   [Cold, Vms, on(Size)])
     || #{unwarm := Cold, vms := Vms, size := Size} <- Rows, 2 * Cold > Vms] ++
    [io_lib:format("the harness itself takes ~ts % of the time on ~ts: give it more work",
                   [percent(Share), on(Size)])
     || Name =/= ?EMPTY, #{overhead := Share, size := Size} <- Rows, is_float(Share),
        Share > 0.01].

wrong(#{name := Name, outputs := Outputs, failures := Failures}) ->
    [["OUTPUTS DIFFER: ", Name, " must give the same in all points, and gave ",
      lists:join("; ", [io_lib:format("~ts (~w times)", [Text, Count])
                        || {_, Text, Count} <- Outputs])]
     || length(Outputs) > 1] ++
    [[["FAILED on ", on(Size)],
      [[" with ", Point] || Point =/= ~""], [io_lib:format(", ~w times", [Count]) || Count > 1],
      ": ", Reason]
     || #{point := Point, size := Size, reason := Reason, count := Count} <- Failures].

on(Size) -> sderl_bench_vm_size:text(Size).

-doc "Failures, and outputs that differ; empty if there are none.".
-spec failures(sderl_bench_vm_summary:summary()) -> [unicode:chardata()].
failures(#{programs := Programs}) ->
    [[Name, ": ", Line] || #{name := Name} = Program <- Programs, Line <- wrong(Program)].

-doc "Each row as parameters and metrics.".
-spec rows(sderl_bench_vm_summary:summary()) -> [{Params :: map(), Metrics :: map()}].
rows(#{programs := Programs}) ->
    [
        {maps:merge(sderl_bench_vm_size:fields(Size),
                    #{program => Name, flags => Flags, otp => Otp}),
         (costs(Operations, Row))#{
           vms => Vms, time_ns => map_get(value, Time), time_low_ns => map_get(low, Time),
           time_high_ns => map_get(high, Time), scatter => maps:get(scatter, Row),
           speedup => value(value, Speedup), speedup_low => value(low, Speedup),
           speedup_high => value(high, Speedup),
           efficiency => value(value, Efficiency), efficiency_low => value(low, Efficiency),
           efficiency_high => value(high, Efficiency), times_first => value(value, Against),
           times_first_low => value(low, Against), times_first_high => value(high, Against),
           overhead_pct => case maps:get(overhead, Row) of
               Share when is_float(Share) -> 100 * Share;
               _ -> undefined
           end,
           serial_share => value(serial, maps:get(amdahl, Of)), why => maps:get(why, Row)}}
     || #{name := Name, series := Series, operations := Operations} <- Programs,
        #{key := {Flags, Otp}, rows := Rows} = Of <- Series,
        #{size := Size, vms := Vms, time := Time, speedup := Speedup, against := Against} = Row
            <- Rows,
        Efficiency <- [sderl_bench_vm_summary:efficiency(Row)]
    ].

costs(none, _) ->
    #{};
costs(#{count := Count, unit := Unit} = Operations, Row) ->
    {#{value := Ns}, Reductions} = cost(Operations, Row),
    #{operations => Count, unit => Unit, operation_ns => Ns, operation_reductions => Reductions}.

value(_, undefined) -> undefined;
value(Key, Map) -> map_get(Key, Map).

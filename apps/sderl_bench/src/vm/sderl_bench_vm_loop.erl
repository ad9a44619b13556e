%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_loop).
-moduledoc """
Runs a program inside the virtual machine that is measured. It calls OTP only, because another OTP
may compile and run it.

A *run* is a number of repetitions by a new process, so that the time of a short program is not
disturbed by the clock and the scheduling of the system. The time of a run is that of one
repetition.
""".

-export([repetitions/2, measure/2, steady/1, overhead_ns/0]).
-export([run/2]).
-export_type([run/0, options/0]).

-doc """
Nanoseconds of each stage; of the output a hash, which is the same on all OTPs, and its beginning as
text; the operations, where the program counts them by its output.
""".
-type run() :: #{stages := [{atom(), float()}], ns := float(), hash := non_neg_integer(),
                 text := binary(), operations => sderl_bench_vm_program:operations()}.

-doc """
Runs after the warm-up; the most runs of the warm-up; how long both may take, where there is at
least one run of each.
""".
-type options() :: #{runs := pos_integer(), warm_most := pos_integer(), most_ns := pos_integer(),
                     repetitions := pos_integer(), _ => _}.

%% The warm-up ends when so many runs in a row were not faster than the fastest before by this
%% factor.
-define(NOT_FASTER, 2).
-define(FASTER, 0.98).
%% A program that takes so long is not run again to find out how long it takes.
-define(LONG_NS, 5_000_000_000).
%% The characters of an output that are shown.
-define(TEXT, 200).

-doc """
How many repetitions take about so long, at least 1. The first one is not counted, because it loads
code and grows heaps, unless the program takes seconds.
""".
-spec repetitions(sderl_bench_vm_program:job(), Ns :: pos_integer()) ->
    {ok, pos_integer(), run()} | {error, binary()}.
repetitions(Job, Wanted) ->
    case run(Job, 1) of
        {ok, #{ns := Cold} = Run} when Cold >= 10 * Wanted, Cold >= ?LONG_NS -> {ok, 1, Run};
        {ok, _} -> repetitions(Job, Wanted, 1);
        {error, Text} -> {error, Text}
    end.

repetitions(Job, Wanted, Count) ->
    case run(Job, Count) of
        {ok, #{ns := Ns} = Run} ->
            case max(1, round(Wanted / max(Ns, 1.0))) of
                Enough when Enough =< 2 * Count -> {ok, Enough, Run};
                Far -> repetitions(Job, Wanted, min(Far, 10 * Count))
            end;
        {error, Text} ->
            {error, Text}
    end.

-doc "The warm-up and the runs, each with its time in nanoseconds.".
-spec measure(sderl_bench_vm_program:job(), options()) ->
    {ok, #{warm := [float()], warmed := boolean(), runs := [run(), ...]}} | {error, binary()}.
measure(Job, #{most_ns := Most} = Options) ->
    Deadline = erlang:monotonic_time(nanosecond) + Most,
    case warm(Job, Options, Deadline, []) of
        {ok, Warm, Warmed} ->
            case runs(Job, Options, Deadline, []) of
                {ok, Runs} -> {ok, #{warm => Warm, warmed => Warmed, runs => Runs}};
                {error, Text} -> {error, Text}
            end;
        {error, Text} ->
            {error, Text}
    end.

warm(Job, #{repetitions := Count, warm_most := Most} = Options, Deadline, Latest) ->
    case run(Job, Count) of
        {ok, #{ns := Ns}} ->
            Times = [Ns | Latest],
            Warmed = steady(Times),
            case Warmed orelse length(Times) >= Most orelse past(Deadline) of
                true -> {ok, lists:reverse(Times), Warmed};
                false -> warm(Job, Options, Deadline, Times)
            end;
        {error, Text} ->
            {error, Text}
    end.

-doc "Whether the times, the latest first, show no more warming up: the last ones gain nothing.".
-spec steady([number()]) -> boolean().
steady(Latest) when length(Latest) =< ?NOT_FASTER ->
    false;
steady(Latest) ->
    {Last, Before} = lists:split(?NOT_FASTER, Latest),
    lists:min(Last) >= ?FASTER * lists:min(Before).

runs(_, #{runs := Enough}, _, Latest) when length(Latest) =:= Enough ->
    {ok, lists:reverse(Latest)};
runs(Job, #{repetitions := Count} = Options, Deadline, Latest) ->
    case Latest =/= [] andalso past(Deadline) of
        true ->
            {ok, lists:reverse(Latest)};
        false ->
            case run(Job, Count) of
                {ok, Run} -> runs(Job, Options, Deadline, [Run | Latest]);
                {error, Text} -> {error, Text}
            end
    end.

past(Deadline) -> erlang:monotonic_time(nanosecond) >= Deadline.

-dialyzer({nowarn_function, run/2}).
-doc "One run, by a new process. An error says how the program crashed.".
-spec run(sderl_bench_vm_program:job(), Count :: pos_integer()) -> {ok, run()} | {error, binary()}.
run(Job, Count) ->
    {Stages, Prepare, Stage, Finish, Operations} = functions(Job),
    {Pid, Monitor} = spawn_monitor(fun() ->
        exit({?MODULE, try {ok, repeat(Count, Stages, Prepare, Stage, Finish, Operations)}
                       catch Class:Reason:Stack -> {error, said(Class, Reason, Stack)}
                       end})
    end),
    receive
        {'DOWN', Monitor, process, Pid, {?MODULE, Outcome}} -> Outcome;
        {'DOWN', Monitor, process, Pid, Reason} -> {error, said(exit, Reason, [])}
    end.

functions({call, Module, Function, Args}) ->
    {[run], fun() -> Args end, fun(run, Given) -> apply(Module, Function, Given) end,
     fun(Output) -> Output end, fun(_) -> #{} end};
functions({program, Module, Settings}) ->
    {module, Module} = code:ensure_loaded(Module),
    {
        case erlang:function_exported(Module, stages, 1) of
            true -> Module:stages(Settings);
            false -> [run]
        end,
        case erlang:function_exported(Module, prepare, 1) of
            true -> fun() -> Module:prepare(Settings) end;
            false -> fun() -> Settings end
        end,
        fun Module:run/2,
        case erlang:function_exported(Module, finish, 1) of
            true -> fun Module:finish/1;
            false -> fun(Output) -> Output end
        end,
        case erlang:function_exported(Module, operations, 2) of
            true -> fun(Output) -> counted(Module:operations(Settings, Output), Module) end;
            false -> fun(_) -> #{} end
        end
    }.

%% The same form as from `sderl_bench_vm_program:operations/2`.
counted(none, _) ->
    #{};
counted({Count, [_ | _] = Unit}, Module) when is_integer(Count), Count > 0 ->
    #{operations => #{
        count => Count, unit => unicode:characters_to_binary(Unit),
        reductions => not (erlang:function_exported(Module, prepare, 1) orelse
                               erlang:function_exported(Module, finish, 1))
    }};
counted(Given, _) ->
    error({operations, must_be, {'Count', "word"}, and_are, Given}).

repeat(Count, Stages, Prepare, Stage, Finish, Operations) ->
    {Last, First} = once(Stages, Prepare(), Stage),
    Output = Finish(Last),
    %% Not timed, and only of the first repetition: this may take longer than the program.
    Hash = erlang:phash2(Output, 1 bsl 32),
    Text = text("~0tP", [Output, 20]),
    Counted = Operations(Output),
    Sums = more(Count - 1, Stages, Prepare, Stage, Finish, First),
    Times = [Sum / Count || Sum <- Sums],
    Counted#{stages => lists:zip(Stages, Times), ns => lists:sum(Times), hash => Hash,
             text => Text}.

more(0, _, _, _, _, Sums) ->
    Sums;
more(Count, Stages, Prepare, Stage, Finish, Sums) ->
    {Last, Times} = once(Stages, Prepare(), Stage),
    _ = Finish(Last),
    more(Count - 1, Stages, Prepare, Stage, Finish,
         lists:zipwith(fun(A, B) -> A + B end, Sums, Times)).

once(Stages, State, Stage) ->
    {Times, Output} = lists:mapfoldl(
        fun(Name, Given) ->
            T0 = erlang:monotonic_time(nanosecond),
            Next = Stage(Name, Given),
            T1 = erlang:monotonic_time(nanosecond),
            {T1 - T0, Next}
        end,
        State,
        Stages
    ),
    {Output, Times}.

said(Class, Reason, Stack) ->
    text("~ts: ~0tP~ts", [Class, Reason, 30, case Stack of
        [{Module, Function, Args, _} | _] when is_list(Args) ->
            io_lib:format(" in ~ts:~ts/~w", [Module, Function, length(Args)]);
        [{Module, Function, Arity, _} | _] ->
            io_lib:format(" in ~ts:~ts/~w", [Module, Function, Arity]);
        [] ->
            ""
    end]).

text(Format, Args) ->
    unicode:characters_to_binary(string:slice(io_lib:format(Format, Args), 0, ?TEXT)).

-doc "What the loop adds to the time of a repetition: the time of an empty program.".
-spec overhead_ns() -> float().
overhead_ns() ->
    {ok, #{ns := Ns}} = run({call, erlang, self, []}, 1000),
    Ns.

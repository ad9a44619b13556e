%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_host).
-moduledoc """
Properties of the machine that affect measurements: cores and their kinds, hardware threads, memory
nodes, the quota of a container, the clock's governor.
""".

-export([info/0, info/2, notes/2]).
-export_type([info/0]).

-doc "`null`: not known.".
-type info() :: #{
    model := binary() | null,
    processors := pos_integer() | null,
    cores := pos_integer(),
    quota := float() | null,
    threads_per_core := pos_integer() | null,
    memory_nodes := pos_integer() | null,
    kinds_of_cores := pos_integer() | null,
    governor := binary() | null,
    kernel := binary() | null,
    counters := boolean() | null,
    memory_mib := pos_integer() | null
}.

-define(CPUS, "/sys/devices/system/cpu/cpu[0-9]*").

-doc "This machine.".
-spec info() -> info().
info() -> info(fun file:read_file/1, fun filelib:wildcard/1).

-doc "The same with the functions that read files and list names.".
-spec info(fun((file:filename()) -> {ok, binary()} | {error, term()}),
           fun((string()) -> [file:filename()])) -> info().
info(Read, List) ->
    #{cores := Cores, memory_mib := Memory} = sderl_bench_machine:info(),
    #{
        model => matched(Read, "/proc/cpuinfo", "(?m)^model name\\s*:\\s*(.*)$"),
        processors => attribute(logical_processors),
        cores => Cores,
        quota => attribute(cpu_quota),
        threads_per_core => threads(Read, List),
        memory_nodes => some(length(List("/sys/devices/system/node/node[0-9]*"))),
        kinds_of_cores => kinds(Read, List),
        governor => line(Read, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        kernel => line(Read, "/proc/sys/kernel/osrelease"),
        counters => counters(List),
        memory_mib => Memory
    }.

attribute(Name) ->
    try sderl_attr_builtin:get(Name) of
        Value when is_number(Value) -> Value;
        _ -> null
    catch
        exit:_ -> null
    end.

threads(Read, List) ->
    Cores = lists:usort([Siblings || Cpu <- List(?CPUS),
                                     Siblings <- [line(Read, filename:join(
                                         Cpu, "topology/thread_siblings_list"))],
                                     Siblings =/= null]),
    case Cores of
        [] -> null;
        _ -> lists:max([members(Siblings) || Siblings <- Cores])
    end.

%% "0-1,8" has three.
members(Text) ->
    lists:sum([
        case binary:split(Part, ~"-") of
            [From, To] -> binary_to_integer(To) - binary_to_integer(From) + 1;
            [_] -> 1
        end
     || Part <- binary:split(Text, ~",", [global])
    ]).

%% Cores that differ in what they can do, or in how fast they may go.
kinds(Read, List) ->
    Kinds = lists:usort([Kind || Cpu <- List(?CPUS),
                                 Kind <- [{line(Read, filename:join(Cpu, "cpu_capacity")),
                                           line(Read, filename:join(
                                               Cpu, "cpufreq/cpuinfo_max_freq"))}],
                                 Kind =/= {null, null}]),
    some(length(Kinds)).

%% Whether the processor's counters are available; `null` if the system lists no event sources.
counters(List) ->
    Names = [filename:basename(Name) || Name <- List("/sys/bus/event_source/devices/*")],
    case Names of
        [] -> null;
        _ -> lists:any(fun sderl_bench_vm_counters:is_processor/1, Names)
    end.

some(0) -> null;
some(Count) -> Count.

line(Read, File) ->
    case Read(File) of
        {ok, Content} -> string:trim(hd(binary:split(Content, ~"\n")));
        {error, _} -> null
    end.

matched(Read, File, Pattern) ->
    maybe
        {ok, Content} ?= Read(File),
        {match, [Text]} ?= re:run(Content, Pattern, [{capture, all_but_first, binary}]),
        Text
    else
        _ -> null
    end.

%% The effect of more schedulers than the quota.
beyond(Schedulers, Quota) when Schedulers > Quota ->
    io_lib:format(": with ~w schedulers at work all threads are stopped for a part of each period, "
                  "so set +S to the quota", [Schedulers]);
beyond(_, _) ->
    "".

-doc "Notes for the reader of the figures, for points with at most so many schedulers.".
-spec notes(#{atom() => term()}, Schedulers :: pos_integer()) -> [unicode:chardata()].
notes(#{cores := Cores, quota := Quota, threads_per_core := Threads, kinds_of_cores := Kinds,
        memory_nodes := Nodes, governor := Governor, counters := Counters}, Schedulers) ->
    [io_lib:format("~w schedulers share ~w core~ts: with more schedulers than cores they wait for "
                   "one another, and no law of scaling is fitted there",
                   [Schedulers, Cores, [$s || Cores > 1]])
     || Schedulers > Cores] ++
    [io_lib:format("this is a container with a quota of ~ts processors~ts",
                   [sderl_table:number(Quota), beyond(Schedulers, Quota)])
     || is_number(Quota)] ++
    [io_lib:format("~w hardware threads share a core: a speedup above the number of cores is "
                   "theirs", [Threads])
     || is_integer(Threads), Threads > 1] ++
    [io_lib:format("there are ~w kinds of cores, fast ones and slow ones: bind schedulers "
                   "(taskset) to cores of one kind", [Kinds])
     || is_integer(Kinds), Kinds > 1] ++
    [io_lib:format("memory is on ~w nodes: it is slower to reach from the cores of another one",
                   [Nodes])
     || is_integer(Nodes), Nodes > 1] ++
    [["the clock follows the load (governor ", Governor, "): short runs are slower"]
     || Governor =:= ~"powersave" orelse Governor =:= ~"ondemand" orelse
            Governor =:= ~"conservative"] ++
    ["the processor's counters are not available here, as in most virtual machines: misses of "
     "caches and TLBs, branches and the bandwidth of memory are not among the reasons"
     || Counters =:= false].

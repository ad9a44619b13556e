%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_reasons).
-moduledoc """
Why a program gains no more from more schedulers, or from more nodes. Pure.

The speedup on N schedulers is `N * (u / u1) / c`: `u` is the mean utilisation of the schedulers,
`u1` that of a single one, and `c` how many times as much scheduler time the same work took. On N
nodes it is the same, with the schedulers of all nodes and those of the first. So speedup is lost to
schedulers without work, or to work that takes longer. The states of `msacc`, the run queues,
reductions and garbage collection say more about either.
""".

-export([split/2, got/1, text/4]).
-export_type([split/0]).

-doc "Shares and factors as above; `by_parts` is the speedup that they give.".
-type split() :: #{used := float(), inflation := float(), by_parts := float()}.

%% Mean number of dirty schedulers at work.
-define(DIRTY, 0.1).
%% Migrations a second, of each scheduler.
-define(MIGRATIONS, 1000).

-doc "Compares one scheduler with several, or one node with several (`m:sderl_bench_vm_why`).".
-spec split(#{binary() => term()}, #{binary() => term()}) -> split() | undefined.
split(#{~"busy" := [_ | _] = Busy1, ~"wall_ns" := Wall1},
      #{~"busy" := [_ | _] = Busy, ~"wall_ns" := Wall})
  when Wall1 > 0, Wall > 0 ->
    case {mean(Busy1), mean(Busy)} of
        {Used1, Used} when Used1 > 0, Used > 0 ->
            N = length(Busy) / length(Busy1),
            Inflation = Used * N * Wall / (Used1 * Wall1),
            #{used => Used, inflation => Inflation, by_parts => N * (Used / Used1) / Inflation};
        _ ->
            undefined
    end;
split(_, _) ->
    undefined.

mean(Shares) -> lists:sum(Shares) / length(Shares).

-doc """
The processor time that a virtual machine got, as a share of the time that its schedulers worked;
`undefined` for less than 50 ms of it, because it is counted in steps.
""".
-spec got(#{binary() => term()}) -> float() | undefined.
got(#{~"busy" := Busy, ~"wall_ns" := Wall, ~"cpu_ns" := Cpu, ~"repetitions" := Count}) ->
    case Wall * lists:sum(Busy) of
        Worked when Worked * Count >= 5.0e7 -> Cpu / Worked;
        _ -> undefined
    end;
got(_) ->
    undefined.

-doc """
Reasons in sentences, the most important first. `One` and `Many` were measured on one scheduler, or
node, and on this size. `Speedup` is the measured one, `Control` that of a program that shares
nothing, both on this size.
""".
-spec text(sderl_bench_vm_size:size(), {One :: #{binary() => term()},
                                        Many :: #{binary() => term()}},
           Speedup :: float(), Control :: float() | undefined) -> [unicode:chardata()].
text(Size, {One, Many}, Speedup, Control) ->
    case split(One, Many) of
        undefined -> ["nothing is known of what the schedulers did"];
        Split ->
            N = sderl_bench_vm_size:number(Size),
            case Speedup >= 0.95 * N of
                true -> [io_lib:format("it scales: ~ts times on ~ts",
                                       [sderl_table:number(Speedup),
                                        sderl_bench_vm_size:text(Size)])];
                false ->
                    Alone = alone(sderl_bench_vm_size:axis(Size)),
                    lists:append([
                        taken(Many), lost(Split, One, Many, Size), locks(Many),
                        migrations(One, Many, Alone), rates(One, Many, Size), machine(N, Control)
                    ])
            end
    end.

alone(schedulers) -> "with one scheduler";
alone(nodes) -> "with one node".

%% A scheduler that the system has preempted counts as working, and may hold up others.
taken(Many) ->
    case got(Many) of
        Got when is_float(Got), Got < 0.85 ->
            [io_lib:format("the system gave the schedulers ~ts % of the processor time that they "
                           "worked for: other programs use the cores, or there are too few",
                           [percent(Got)])];
        _ ->
            []
    end.

lost(#{used := Used, inflation := Inflation}, One, Many, Size) ->
    Alone = alone(sderl_bench_vm_size:axis(Size)),
    N = length(map_get(~"busy", Many)),
    Idle = N * (1 - Used),
    Longer = N * Used * max(0.0, 1 - 1 / Inflation),
    Both = [
        {Idle, idle(N, Idle, Many, Size)},
        {Longer, [io_lib:format("~ts of ~w schedulers are lost to work that takes longer (~ts "
                                "times the scheduler time for the same)",
                                [sderl_table:number(Longer), N, sderl_table:number(Inflation)]),
                  inflation(One, Many, Alone)]}
    ],
    [Text || {Lost, Text} <- lists:reverse(lists:keysort(1, Both)), Lost > 0.03 * N].

idle(N, Idle, Many, Size) ->
    [
        io_lib:format("~ts of ~w schedulers had no work (the area above the curve of active "
                      "schedulers): ", [sderl_table:number(Idle), N]),
        without_work(Many, Size),
        dirty(Many)
    ].

%% Normal schedulers do nothing for the work that dirty schedulers do.
dirty(#{~"dirty_busy" := Dirty}) when Dirty >= ?DIRTY ->
    io_lib:format("; ~ts dirty schedulers were at work, such as for files, long functions in C and "
                  "large garbage collections", [sderl_table:number(Dirty)]);
dirty(_) ->
    "".

%% A scheduler cannot run waiting processes of other nodes.
without_work(#{~"busy" := Busy}, {nodes, Nodes, _}) when Nodes > 1 ->
    Shares = [mean(Of) || Of <- by_node(Busy, length(Busy) div Nodes), Of =/= []],
    io_lib:format("the nodes were at work ~ts to ~ts % of the time, and processes stay on the node "
                  "where they were started: the work is not even, or they wait for one another",
                  [percent(lists:min(Shares)), percent(lists:max(Shares))]);
without_work(Many, _) ->
    case maps:get(~"queue", Many, 0) of
        Queue when Queue < 1 ->
            "the run queues were empty, so there are too few processes that can run";
        Queue ->
            io_lib:format("though ~ts processes waited in the mean, so they slept while there was "
                          "work: short bursts, or work that was not moved in time",
                          [sderl_table:number(Queue)])
    end.

%% The list has the schedulers of one node after the other, as many of each.
by_node(Busy, Schedulers) when Schedulers > 0, length(Busy) >= Schedulers ->
    {Of, Others} = lists:split(Schedulers, Busy),
    [Of | by_node(Others, Schedulers)];
by_node(Busy, _) ->
    [Busy].

inflation(One, Many, Alone) ->
    Known = [
        factor("reductions", ~"reductions", One, Many, 1.1, more(Many)),
        factor("garbage collections", ~"collections", One, Many, 1.2, freed(One, Many)),
        factor("context switches", ~"switches", One, Many, 1.5,
               "processes wait more often, and have less to do when they run"),
        states(One, Many, Alone)
    ],
    case {lists:append(Known), between_nodes(Many)} of
        {[], ""} -> [": as many reductions take longer, so they wait for memory, caches or locks",
               [" (toolchain/install --lock-counter builds an emulator that tells of locks: "
                "--otp lcnt=.toolchain-lcnt/bin/erl)" || not is_map_key(~"locks", Many)]];
        {[], Sent} -> [": ", Sent];
        {Some, Sent} -> [": ", lists:join("; ", Some ++ [Sent || Sent =/= ""])]
    end.

freed(#{~"reclaimed_words" := A}, #{~"reclaimed_words" := B}) when A > 0, B / A >= 1.2 ->
    io_lib:format("they free ~ts times as much, so it makes more garbage",
                  [sderl_table:number(B / A)]);
freed(#{~"reclaimed_words" := _}, #{~"reclaimed_words" := _}) ->
    "they free no more in all, so the heaps grow differently";
freed(_, _) ->
    "the heaps grow differently".

more(#{~"sent_bytes" := _}) -> "it does more, such as sending to other nodes";
more(#{}) -> "it does more, such as polling and yielding".

%% Most of the cost of a message to another node is work of the virtual machine, outside processes.
between_nodes(#{~"sent_bytes" := Bytes}) when Bytes >= 1000 ->
    io_lib:format("the nodes send ~ts kB to each other in a repetition, which is encoded, goes "
                  "through the system and is decoded", [sderl_table:number(Bytes / 1000)]);
between_nodes(_) ->
    "".

%% The mean number of threads that waited for each class of locks.
locks(#{~"locks" := Locks, ~"wall_ns" := Wall}) when Wall > 0 ->
    Waited = lists:reverse(lists:sort([{Ns / Wall, Class} || Class := Ns <- Locks,
                                                             Ns / Wall >= 0.02])),
    [["threads wait for locks, in the mean ",
      lists:join(", ", [[sderl_table:number(Threads), " for ", Class]
                        || {Threads, Class} <- lists:sublist(Waited, 3)])]
     || Waited =/= []];
locks(_) ->
    [].

%% Reported if there are clearly more than on one, and so many that they may cost a percent or more
%% of the time (some 10 us each, to fill the caches of another core).
migrations(One, #{~"migrations" := #{~"share" := Share, ~"per_s" := Rate}, ~"busy" := Busy},
           Alone) ->
    Before = case One of
        #{~"migrations" := #{~"share" := Less}} -> Less;
        #{} -> 0
    end,
    [io_lib:format("~ts % of the times that a process ran again, it was on another scheduler than "
                   "before (~ts a second; ~ts % ~ts): its data is in the caches of another core",
                   [percent(Share), sderl_table:number(Rate), percent(Before), Alone])
     || Rate >= ?MIGRATIONS * length(Busy), Share >= 0.05, Share > 1.3 * Before];
migrations(_, _, _) ->
    [].

%% The processor's counters that have become worse. Not on nodes: there they are of the first node,
%% which runs another part of the program than a single node does.
rates(#{~"counters" := A}, #{~"counters" := B}, {schedulers, _}) ->
    Alone = alone(schedulers),
    Shares = [io_lib:format("~ts ~ts %, and ~ts % ~ts",
                            [string:replace(Rate, "_", " ", all), percent(After), percent(Before),
                             Alone])
              || Rate := After <- maps:iterator(B, ordered),
                 Rate =/= ~"instructions_per_cycle", Rate =/= ~"memory_bytes_s",
                 #{Rate := Before} <- [A],
                 After > 0.005, After > 1.3 * Before],
    Slower = [io_lib:format("~ts instructions in a cycle, and ~ts ~ts",
                            [sderl_table:number(After), sderl_table:number(Before), Alone])
              || #{~"instructions_per_cycle" := After} <- [B],
                 #{~"instructions_per_cycle" := Before} <- [A],
                 After < Before / 1.1],
    Memory = [io_lib:format("~ts MB a second come from memory, and ~ts ~ts",
                            [sderl_table:number(After / 1.0e6), sderl_table:number(Before / 1.0e6),
                             Alone])
              || #{~"memory_bytes_s" := After} <- [B], #{~"memory_bytes_s" := Before} <- [A],
                 After > 1.3 * Before],
    [["the processor counts: ", lists:join("; ", Counted)]
     || Counted <- [Shares ++ Slower ++ Memory], Counted =/= []];
rates(_, _, _) ->
    [].

factor(Name, Key, One, Many, From, Means) ->
    case {One, Many} of
        {#{Key := A}, #{Key := B}} when A > 0, B / A >= From ->
            [io_lib:format("~ts times the ~ts: ~ts", [sderl_table:number(B / A), Name, Means])];
        _ ->
            []
    end.

%% `msacc` states, other than running code and sleeping, whose share of the working time has grown.
states(#{~"states" := A}, #{~"states" := B}, Alone) ->
    [io_lib:format("~ts takes ~ts % of the time that they worked, and ~ts % ~ts",
                   [named(State), percent(After), percent(Before), Alone])
     || State := Share <- maps:iterator(B, ordered),
        State =/= ~"emulator", State =/= ~"sleep", State =/= ~"busy_wait",
        After <- [awake(Share, B)],
        Before <- [awake(maps:get(State, A, 0), A)],
        After > 0.05, After > 1.3 * Before];
states(_, _, _) ->
    [].

awake(Share, States) ->
    Share / max(1.0e-9, 1 - maps:get(~"sleep", States, 0) - maps:get(~"busy_wait", States, 0)).

percent(Share) -> sderl_table:number(100 * Share).

named(~"gc") -> "garbage collection";
named(~"gc_full") -> "garbage collection of all";
named(~"aux") -> "work of the virtual machine for others (aux)";
named(~"other") -> "work that has no name (other: scheduling, locks)";
named(~"check_io") -> "looking for input and output";
named(~"port") -> "work of ports, such as those to other nodes,";
named(State) -> State.

machine(N, Control) when is_float(Control), Control < 0.95 * N ->
    [io_lib:format("the machine itself gives ~ts times to a program that shares nothing",
                   [sderl_table:number(Control)])];
machine(_, _) ->
    [].

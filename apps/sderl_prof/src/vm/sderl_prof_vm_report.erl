%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_vm_report).
-moduledoc """
The measurements of a virtual machine (`sderl_prof_readings`), as one report. Pure.

Each part that could not be measured has a sentence under `untold`, with what to do about it.
""".

-export([make/2]).
-export_type([report/0]).

-doc "A map that can be JSON; times in nanoseconds, shares from 0 to 1.".
-type report() :: #{atom() => term()}.

%% States that only an emulator with more of them counts.
-define(EXTRA, [alloc, bif, busy_wait, ets, gc_full, nif, send, timers]).

-doc "The report, with at most so many rows in each list.".
-spec make(sderl_prof_readings:readings(), Top :: pos_integer()) -> report().
make(#{ns := Ns, emulator := Emulator, counts := Counts, allocators := Allocators,
       memory := Memory, outside := Outside, resident := Resident} = Readings, Top) ->
    Normal = length([N || {normal, N, _, _} <- map_get(schedulers, Readings)]),
    Locks = locks(map_get(locks, Readings), Normal, Ns, Top),
    Counters = counters(map_get(counters, Readings), Ns),
    Functions = functions(map_get(functions, Readings), Top),
    Probed = probed(map_get(probed, Readings), Ns),
    Recorded = recorded(map_get(recorded, Readings)),
    (maps:with([node, otp, began_wall, processes, ports, looks, measure], Readings))#{
        kind => virtual_machine,
        seconds => Ns / 1.0e9,
        emulator => Emulator,
        rates => maps:map(fun(_, N) -> N / (Ns / 1.0e9) end, Counts),
        threads => threads(map_get(threads, Readings)),
        schedulers => schedulers(map_get(schedulers, Readings)),
        run_queues => queues(map_get(looks, Readings), map_get(queues, Readings)),
        memory => sderl_prof_vm_memory:report(Allocators, Outside, Memory, Resident),
        calls => calls(Readings, Top),
        locks => told(Locks), counters => told(Counters), functions => told(Functions),
        probes => probes(map_get(probes, Readings), Probed, Recorded),
        untold => [#{what => What, why => unicode:characters_to_binary(Why)}
                   || {What, Why} <- untold(Readings, Locks, Counters, Functions,
                                         [Probed, Recorded])]
    }.

told({ok, Part}) -> Part;
told({untold, _}) -> null.

%% ---------------------------------------------------------------- threads and schedulers

threads(Threads) ->
    [#{type => Type, threads => N, states => shares(Counters)} || {Type, N, Counters} <- Threads].

%% Where somebody has cleared the counters meanwhile, less than nothing is nothing.
shares(Counters) ->
    Spent = maps:map(fun(_, N) -> max(0, N) end, Counters),
    Whole = max(1, lists:sum(maps:values(Spent))),
    maps:map(fun(_, N) -> N / Whole end, Spent).

schedulers(Schedulers) ->
    [#{type => Type, number => N, awake => share(Awake, All)}
     || {Type, N, Awake, All} <- Schedulers].

%% First those of the normal schedulers, then that of each kind of dirty ones.
queues(Looks, Queues) ->
    Normal = max(0, length(Queues) - 2),
    Names = [integer_to_binary(N) || N <- lists:seq(1, Normal)] ++ [~"cpu", ~"io"],
    [#{queue => Name, mean => share(Sum, Looks), most => Most}
     || {Name, {Sum, Most}} <- lists:zip(lists:sublist(Names, length(Queues)), Queues)].

share(_, 0) -> 0.0;
share(Part, Whole) -> Part / Whole.

%% ---------------------------------------------------------------- calls

calls(#{calls := Calls, measure := Measure}, Top) ->
    Whole = max(1, lists:sum([Took || {_, _, Took} <- Calls])),
    [begin
        Row = #{function => function(Function), calls => Count},
        case Measure of
            call_count -> Row;
            call_time -> Row#{ns => Took, share => Took / Whole};
            call_memory -> Row#{words => Took, share => Took / Whole}
        end
     end || {Function, Count, Took} <- lists:sublist(Calls, Top)].

function({Module, Function, Arity}) ->
    unicode:characters_to_binary(io_lib:format("~ts:~ts/~b", [Module, Function, Arity])).

%% ---------------------------------------------------------------- locks

%% Behind the run queues of the normal schedulers are those of the dirty ones.
locks(#{classes := Classes, instances := Instances, places := Places}, Normal, Ns, Top) ->
    {ok, #{
        classes => [lock(Row, Ns) || Row <- lists:sublist(Classes, Top)],
        instances => [lock(Row, Ns) || Row <- lists:sublist(Instances, Top)],
        places => [lock(Row, Ns) || Row <- lists:sublist(Places, Top)],
        schedulers => [lock(Row, Ns) || #{scheduler := N} = Row <- lists:sort(
            fun(A, B) -> maps:get(scheduler, A, 0) =< maps:get(scheduler, B, 0) end, Instances),
            N =< Normal]
    }};
locks(not_wanted, _, _, _) -> {untold, []};
locks(none, _, _, _) ->
    {untold, [{locks, "the emulator of this node counts no locks: start the node with one that "
                      "does (toolchain/install --lock-counter builds it, .toolchain-lcnt/bin/erl "
                      "starts it)"}]}.

%% What threads waited together, as a share of the time; it may be more than the whole.
lock(#{tries := Tries, collisions := Collisions, ns := Waited} = Row, Ns) ->
    Row#{collided => share(Collisions, Tries), of_time => Waited / Ns}.

%% ---------------------------------------------------------------- perf

counters({0, Said}, Ns) ->
    case sderl_prof_vm_perf:counters(Said, Ns) of
        #{counts := Counts, missing := Missing} when map_size(Counts) =:= 0 ->
            {untold, [{counters, ["the processor counts nothing here, as in most virtual machines "
                                  "(perf: not supported are ", lists:join(", ", Missing), ")"]}]};
        Counters -> {ok, Counters}
    end;
counters(Other, _) -> {untold, [{counters, unanswered(Other)}]}.

functions(not_wanted, _) -> {untold, []};
functions({0, Said}, Top) ->
    case sderl_prof_vm_perf:functions(Said) of
        #{rows := []} -> {untold, [{functions, ["perf saw nothing run: ",
                                                sderl_prof_vm_perf:refusal(Said)]}]};
        #{rows := Rows} = Functions -> {ok, Functions#{rows := lists:sublist(Rows, Top)}}
    end;
functions(Other, _) -> {untold, [{functions, unanswered(Other)}]}.

unanswered(none) -> "there is no perf on the node's machine (Debian: the package linux-perf)";
unanswered(timeout) -> "perf did not end";
unanswered({failed, Why}) -> io_lib:format("perf could not be run: ~0tP", [Why, 10]);
unanswered({Status, Said}) ->
    io_lib:format("perf ended with status ~b: ~ts", [Status, sderl_prof_vm_perf:refusal(Said)]).

%% ---------------------------------------------------------------- probes

probes(none, _, _) -> null;
probes(Listed, Probed, Recorded) ->
    #{names => lists:sort(maps:keys(Listed)), places => lists:sum(maps:values(Listed)),
      counted => told(Probed), recorded => told(Recorded)}.

recorded(not_wanted) -> {untold, []};
recorded({File, {0, _}}) -> {ok, File};
recorded({_, Other}) -> {untold, [{probes, ["nothing was recorded: ", unanswered(Other)]}]}.

probed(not_wanted, _) -> {untold, []};
probed({refused, Why}, _) -> {untold, [{probes, ["probes cannot be hooked: ", Why]}]};
probed({0, Said}, Ns) ->
    case sderl_prof_vm_perf:events(Said) of
        None when map_size(None) =:= 0 ->
            {untold, [{probes, ["perf counted no probes: ", sderl_prof_vm_perf:refusal(Said)]}]};
        Counts ->
            {ok, [#{probe => Name, count => N, rate => N / (Ns / 1.0e9)}
                  || {N, Name} <- lists:reverse(lists:sort([{N, Name} || Name := N <- Counts]))]}
    end;
probed(Other, _) -> {untold, [{probes, unanswered(Other)}]}.

%% ---------------------------------------------------------------- what is not told

untold(#{emulator := Emulator, accounting := Accounting, threads := Threads}, Locks, Counters,
       Functions, Probed) ->
    lists:append([
        [{threads, "somebody else had microstate accounting switched on; what was cleared "
                   "meanwhile is missing"} || Accounting =:= others],
        extra(Threads),
        of_locks(Locks), missing(Counters), of_functions(Functions, Emulator),
        [{probes, "the emulator of this node has no probes: start the node with one that has "
                  "(toolchain/install --probes builds it, .toolchain-probes/bin/erl starts it)"}
         || #{probes := none} <- [Emulator]],
        [Why || {untold, Reasons} <- Probed, Why <- Reasons]
    ]).

extra(Threads) ->
    Known = lists:usort([State || {_, _, Counters} <- Threads, State <- maps:keys(Counters)]),
    [{threads, ["the emulator counts no more states (", lists:join(", ", [atom_to_list(State)
                                                                     || State <- ?EXTRA]),
                ") unless it is configured --with-microstate-accounting=extra"]}
     || Known =/= [], Known -- ?EXTRA =:= Known].

of_locks({untold, Why}) -> Why;
of_locks({ok, _}) ->
    [{locks, "a lock counts all threads that wait for it together: by scheduler are only the locks "
             "of which each scheduler has its own"}].

missing({untold, Why}) -> Why;
missing({ok, #{missing := []}}) -> [];
missing({ok, #{missing := Missing}}) ->
    [{counters, ["the processor does not count ", lists:join(", ", Missing)]}].

of_functions({untold, Why}, _) -> Why;
of_functions({ok, _}, #{symbols := true}) -> [];
of_functions({ok, _}, _) ->
    [{functions, "code that the node itself compiled has no names: start it with +JPperf true"}].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_vm).
-moduledoc "`bin/sderl prof vm`: what the virtual machines of running nodes tell of themselves.".

-export([command/0, run/3, text/1]).

-import(sderl_cli_prof_text, [section/2, hundred/1, greatest/1]).
-import(sderl_command, [option/4, flag/2]).
-import(sderl_table, [number/1]).

-define(SECONDS, 5).
%% Shares of states below are not shown.
-define(LEAST, 0.0005).

-doc "Its arguments.".
-spec command() -> map().
command() ->
    #{
        help =>
            """
            Measures the virtual machine of a running node from within, for some seconds: what
            its threads do, how far schedulers are awake and how many processes wait for them,
            memory by allocator, calls of named modules, locks where the emulator counts them, and
            what the system's perf counts. What cannot be measured is listed, with what would make
            it possible. Several nodes are measured at once. Ctrl-C ends it.

              bin/sderl prof vm a@host
              bin/sderl prof vm a@host --modules shop_stock,shop_order --measure call_count
              bin/sderl prof vm a@host --all --json

            Locks are counted by an emulator of its own: "toolchain/install --lock-counter" builds
            it, and nodes that .toolchain-lcnt/bin/erl starts have lock tables here.
            """,
        arguments => sderl_cli_prof_cluster:arguments() ++ [
            option(seconds, "N", float, "for so many seconds (5)"),
            option(modules, "LIST", string,
                   "count the calls of these modules' functions; each such call takes longer"),
            #{name => measure, long => "-measure", type => {atom, [call_time, call_count,
                                                                   call_memory]},
              help => {"[--measure WHAT]",
                       ["call_time, call_count, or the words that calls allocate: call_memory "
                        "(call_time)"]}},
            flag(perf, "also look in which functions it runs, with perf on the node's machine"),
            option(probes, "LIST", string,
                   "count these static probes of its emulator: their names, or how they begin"),
            option(record, "FILE", string,
                   "and write them there, on the node's machine, for perf script (256 MB at most)"),
            option(top, "N", {integer, [{min, 1}, {max, 1000}]}, "rows of each list (20)"),
            flag(json, "the report as JSON")
        ]
    }.

-doc "Reads nodes by options of `m:sderl_prof_vm`, and prints their reports.".
-spec run([node(), ...], sderl_prof_vm:options(), #{atom() => term()}) -> sderl_command:result().
run(Named, Options, Parsed) ->
    maybe
        {ok, Reports, Failures} ?= sderl_cli_prof_nodes:look(Named, Parsed, #{
            begin_ => fun(Nodes) -> [sderl_prof_vm:begin_(Node, Options) || Node <- Nodes] end,
            await => fun sderl_prof_vm:await/1, stop => fun sderl_prof_vm:stop/1,
            format_error => fun sderl_prof_vm:format_error/1,
            label => "reading", seconds => maps:get(seconds, Options, ?SECONDS)
        }),
        sderl_cli_prof_nodes:print(shown(Reports, Parsed), Reports, Failures)
    end.

shown(Reports, #{json := true}) -> {help, [sderl_prof_vm:encode(Reports), $\n]};
shown(Reports, _) ->
    {help, sderl_visible:text(lists:join("\n", [text(Report) || Report <- Reports]))}.

%% ---------------------------------------------------------------- the text

-doc "A report for a terminal. Pure.".
-spec text(sderl_prof_vm_report:report()) -> sderl_command:text().
text(#{node := Node, seconds := Seconds, emulator := Emulator, processes := Processes,
       rates := Rates, threads := Threads, schedulers := Schedulers, run_queues := Queues,
       memory := Memory, calls := Calls, measure := Measure, locks := Locks,
       counters := Counters, functions := Functions, probes := Probes, untold := Untold}) ->
    [
        io_lib:format("~ts: ~ts s, ~ts processes~n~ts~n",
                      [Node, number(Seconds), number(Processes), map_get(version, Emulator)]),
        section("Threads", threads(Threads)),
        section("Schedulers", schedulers(Schedulers, Queues)),
        section("In a second", rates(Rates)),
        section("Memory, MiB", memory(Memory)),
        section(["Calls (", atom_to_list(Measure), ")"], calls(Calls)),
        [locks(Locks) || Locks =/= null],
        [section("Counters of the processor", counters(Counters)) || Counters =/= null],
        [section(["Where it runs (perf, ", map_get(event, Functions), ")"],
                 functions(map_get(rows, Functions))) || Functions =/= null],
        [probes(Probes) || Probes =/= null],
        [section("What it does not tell", [["- ", atom_to_list(What), ": ", Why, $\n]
                                           || #{what := What, why := Why} <- Untold])
         || Untold =/= []]
    ].

threads([]) -> [];
threads(Threads) ->
    sderl_table:text(["threads", "number", "what they do, %"], [
        [atom_to_list(Type), number(N),
         lists:join(", ", [[atom_to_list(State), " ", hundred(Share)]
                           || {State, Share} <- greatest(States), Share >= ?LEAST])]
     || #{type := Type, threads := N, states := States} <- Threads
    ]).

%% Normal schedulers have a run queue each, dirty ones one of their kind.
schedulers([], _) -> [];
schedulers(Schedulers, Queues) ->
    Waiting = #{Name => {Mean, Most} || #{queue := Name, mean := Mean, most := Most} <- Queues},
    sderl_table:text(["scheduler", "kind", "awake %", "waiting on average", "most"], [
        [number(N), atom_to_list(Type), hundred(Awake) | waiting(queue(Type, N), Waiting)]
     || #{number := N, type := Type, awake := Awake} <- Schedulers,
        Type =:= normal orelse Awake >= ?LEAST
    ]).

queue(normal, N) -> integer_to_binary(N);
queue(Type, _) -> atom_to_binary(Type).

waiting(Queue, Waiting) ->
    case Waiting of
        #{Queue := {Mean, Most}} -> [number(Mean), number(Most)];
        _ -> ["-", "-"]
    end.

rates(#{reductions := Reductions, switches := Switches, collections := Collections,
        reclaimed_words := Words, input := In, output := Out}) ->
    io_lib:format("~ts reductions, ~ts context switches, ~ts garbage collections (~ts words "
                  "reclaimed), ~ts bytes in, ~ts bytes out~n",
                  [number(round(N)) || N <- [Reductions, Switches, Collections, Words, In, Out]]).

memory(#{allocators := Allocators, blocks := Blocks, carriers := Carriers,
         utilisation := Utilisation, unused := Unused, code := Code,
         resident := Resident, checks := Checks}) ->
    [
        sderl_table:text(
            ["allocator", "blocks", "carriers", "used %", "unused", "carriers, number"],
            [[atom_to_list(Name), mib(Of), mib(In), hundred(Used), mib(Free), number(N)]
             || #{name := Name, blocks := Of, carriers := In, utilisation := Used, unused := Free,
                  number := N} <- Allocators, In > 0]
            ++ [["all", mib(Blocks), mib(Carriers), hundred(Utilisation), mib(Unused), ""]]),
        io_lib:format("~ts MiB of compiled code are in no allocator~n", [mib(Code)]),
        [[io_lib:format("the system counts ~ts MiB that are not swapped out~n", [mib(Resident)])]
         || is_integer(Resident)],
        [io_lib:format("erlang:memory(~ts) says ~ts MiB, the blocks with what is outside ~ts: "
                       "~ts % apart~n",
                       [What, mib(Told), mib(Sum), hundred(abs(Difference))])
         || #{what := What, told := Told, blocks := Sum, difference := Difference} <- Checks]
    ].

mib(Bytes) -> number(Bytes / 1_048_576).

calls([]) -> [];
calls([#{ns := _} | _] = Calls) ->
    sderl_table:text(["function", "calls", "ms", "of these %", "us each"], [
        [Function, number(Count), number(Ns / 1.0e6), hundred(Share), number(Ns / 1000 / Count)]
     || #{function := Function, calls := Count, ns := Ns, share := Share} <- Calls
    ]);
calls([#{words := _} | _] = Calls) ->
    sderl_table:text(["function", "calls", "words", "of these %", "words each"], [
        [Function, number(Count), number(Words), hundred(Share), number(Words / Count)]
     || #{function := Function, calls := Count, words := Words, share := Share} <- Calls
    ]);
calls(Calls) ->
    sderl_table:text(["function", "calls"], [
        [Function, number(Count)] || #{function := Function, calls := Count} <- Calls
    ]).

locks(#{classes := Classes, instances := Instances, places := Places,
        schedulers := Schedulers}) ->
    [
        section("Locks by class, the longest waited for first",
                locked(["lock", "kind", "number"], fun(#{class := Class, type := Type,
                                                         locks := N}) ->
                    [atom_to_list(Class), atom_to_list(Type), number(N)]
                end, Classes)),
        section("Locks by instance", locked(["lock", "which"], fun instance/1, Instances)),
        section("Locks by where they are taken",
                locked(["lock", "in"], fun(#{class := Class, place := Place}) ->
                    [atom_to_list(Class), Place]
                end, Places)),
        section("Locks of schedulers", locked(["lock", "scheduler"], fun(Row) ->
            [atom_to_list(map_get(class, Row)), number(map_get(scheduler, Row))]
        end, Schedulers))
    ].

instance(#{class := Class} = Row) -> [atom_to_list(Class), maps:get(id, Row, ~"-")].

locked(_, _, []) -> [];
locked(Header, Columns, Rows) ->
    Counts = ["tries", "collisions", "collided %", "waited us", "of the time %"],
    sderl_table:text(Header ++ Counts, [
        Columns(Row) ++ [number(Tries), number(Collisions), hundred(Collided),
                         number(Ns / 1000), hundred(OfTime)]
     || #{tries := Tries, collisions := Collisions, collided := Collided, ns := Ns,
          of_time := OfTime} = Row <- Rows
    ]).

counters(#{counts := Counts, rates := Rates}) ->
    [
        sderl_table:text(["event", "counted"], [
            [Event, number(N)] || Event := N <- maps:iterator(Counts, ordered)
        ]),
        [rate(Rate, Value) || Rate := Value <- maps:iterator(Rates, ordered)]
    ].

rate(instructions_per_cycle, Value) ->
    io_lib:format("~ts instructions in a cycle~n", [number(Value)]);
rate(memory_bytes_s, Value) ->
    io_lib:format("~ts MB a second from memory, by the misses of the last cache~n",
                  [number(Value / 1.0e6)]);
rate(Rate, Value) ->
    io_lib:format("~ts: ~ts %~n",
                  [string:replace(atom_to_list(Rate), "_", " ", all), hundred(Value)]).

functions(Rows) ->
    sderl_table:text(["function", "in", "share %", "looks"], [
        [Function, Object, hundred(Share), number(Looks)]
     || #{function := Function, object := Object, share := Share, looks := Looks} <- Rows
    ]).

probes(#{names := Names, places := Places, counted := Counted, recorded := File}) ->
    [
        io_lib:format("~nProbes of the emulator: ~ts, at ~ts places~n",
                      [number(length(Names)), number(Places)]),
        [io_lib:format("recorded, on the node's machine: perf script -i ~ts~n", [File])
         || is_binary(File)],
        case Counted of
            [_ | _] ->
                sderl_table:text(["probe", "counted", "in a second"], [
                    [Name, number(N), number(Rate)]
                 || #{probe := Name, count := N, rate := Rate} <- Counted
                ]);
            _ -> ""
        end
    ].

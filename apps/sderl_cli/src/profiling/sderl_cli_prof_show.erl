%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_show).
-moduledoc "What `bin/sderl prof` prints. Pure.".

-export([recorded/2, report/2]).

-import(sderl_cli_prof_text, [section/2]).

%% Rows of the curve.
-define(CURVE, 20).
-define(BAR, 40).
%% Callers of a function, and functions that it calls.
-define(NEIGHBOURS, 3).

-doc "How a recording ended, and what to do next.".
-spec recorded(sderl_prof_recorder:info(), file:filename_all()) -> sderl_command:text().
recorded(#{ended := Ended, written := Written, began := Began, ended_at := At, node := Node} = Info,
         Dir) ->
    [
        io_lib:format("recorded ~ts for ~ts s, ~ts MB", [
            Node, sderl_table:number((At - Began) / 1.0e9), sderl_table:number(Written / 1.0e6)
        ]),
        ended(Ended), "\n",
        [["The node's system profiler is another tool's: where a process could run and did not is "
          "estimated, or counts as waiting.\n"] || #{system_profile := busy} <- [Info]],
        ["  ", Dir, "\n"],
        ["bin/sderl prof report ", Dir, "\n"]
    ].

ended(time) -> "";
ended(stopped) -> "; stopped";
ended(full) -> "; it is full (--mib), and ended early";
ended(session) -> "; somebody on the node ended its trace session, so it ended early";
ended({disk, Why}) -> io_lib:format("; the disk failed: ~0tp", [Why]);
ended(Why) -> io_lib:format("; ~0tp", [Why]).

-doc "A report for a terminal; `Metrics` are those by which processes are listed.".
-spec report(sderl_prof_report:report(), Metrics :: [atom()]) -> sderl_command:text().
report(#{trace := Trace, concurrency := Points, totals := Totals, top := Top, waits := Waits,
         waits_for := For, messages := Messages, schedulers := Schedulers, calls := Calls,
         findings := Findings, critical_path := Path} = Report, Metrics) ->
    [
        head(Trace),
        section("Concurrency", curve(Points, Trace)),
        section("In all", totals(Totals, Trace)),
        section("Findings", sderl_cli_prof_insight:findings(Findings)),
        section("Critical path", sderl_cli_prof_insight:path(Path)),
        [section(title(Metric), processes(Metric, Top)) || Metric <- Metrics],
        section("Waits, by place", waits(Waits)),
        section("Waits for whom", pairs(For, waiter, waker, fun ms/1, "ms")),
        section("Messages", pairs(Messages, from, to, fun sderl_table:number/1, "bytes")),
        section("Schedulers awake", schedulers(Schedulers, Trace)),
        section("Functions", functions(Calls)),
        section("Who calls whom", neighbours(Calls)),
        section("Operations on groups",
                sderl_cli_prof_groups:operations(maps:get(operations, Report, []))),
        section("Messages over gateways",
                sderl_cli_prof_groups:routed(maps:get(routed, Report, null)))
    ].

title(run) -> "Runs longest";
title(wait) -> "Waits longest";
title(runnable) -> "Waits for a scheduler longest";
title(gc) -> "Collects garbage longest";
title(received) -> "Receives most messages";
title(sent) -> "Sends most messages";
title(received_bytes) -> "Receives most bytes";
title(sent_bytes) -> "Sends most bytes";
title(moves) -> "Changes the scheduler most often";
title(ins) -> "Is scheduled in most often".

head(#{node := Node, seconds := Seconds, events := Events, processes := Processes,
       problems := Problems, runnable := Mode} = Trace) ->
    [
        io_lib:format("~ts: ~ts s, ~ts events of ~ts processes~ts~n", [
            Node, sderl_table:number(Seconds), sderl_table:number(Events),
            sderl_table:number(Processes),
            case Trace of
                #{schedulers := N} when is_integer(N) -> io_lib:format(", ~b schedulers", [N]);
                _ -> ""
            end
        ]),
        case Mode of
            recorded -> "";
            messages ->
                "waits for a scheduler are estimated from messages: the system profiler did not "
                "record\n";
            none -> "waiting includes waiting for a scheduler, which was not recorded\n"
        end,
        [["! ", Problem, "\n"] || Problem <- Problems]
    ].

curve([], _) -> [];
curve(Points, #{seconds := Seconds}) ->
    Rows = thinned(Points, ?CURVE),
    Most = lists:max([1.0 | [R + W || {R, W} <- Rows]]),
    Step = Seconds / length(Rows),
    [[io_lib:format("~8.3f s  ", [Step * N]), bar(R, W, Most),
      io_lib:format("  ~ts run, ~ts wait~n", [sderl_table:number(R), sderl_table:number(W)])]
     || {N, {R, W}} <- lists:enumerate(0, Rows)].

bar(Running, Runnable, Most) ->
    A = round(?BAR * Running / Most),
    B = round(?BAR * (Running + Runnable) / Most) - A,
    [lists:duplicate(A, $#), lists:duplicate(B, $.), lists:duplicate(max(0, ?BAR - A - B), $\s)].

thinned(Points, Most) ->
    Size = (length(Points) + Most - 1) div Most,
    thin([{R, W} || #{running := R, runnable := W} <- Points], Size).

thin([], _) -> [];
thin(Points, Size) ->
    {Now, Later} = lists:split(min(Size, length(Points)), Points),
    N = length(Now),
    [{lists:sum([R || {R, _} <- Now]) / N, lists:sum([W || {_, W} <- Now]) / N}
     | thin(Later, Size)].

totals(#{run := Run, runnable := Runnable, gc := Gc, sent := Sent, sent_bytes := Bytes}, Trace) ->
    #{seconds := Seconds} = Trace,
    sderl_table:text(["", "in all", "mean at a time"], [
        ["schedulers used, %", "", sderl_table:number(100 * Run / 1.0e9 / max(1.0e-9, Seconds) / N)]
        || #{schedulers := N} <- [Trace], is_integer(N)
    ] ++ [
        ["runs, ms", ms(Run), sderl_table:number(Run / 1.0e9 / max(1.0e-9, Seconds))],
        ["waits for a scheduler, ms", ms(Runnable),
         sderl_table:number(Runnable / 1.0e9 / max(1.0e-9, Seconds))],
        ["collects garbage, ms", ms(Gc), sderl_table:number(Gc / 1.0e9 / max(1.0e-9, Seconds))],
        ["messages", sderl_table:number(Sent), ""],
        ["bytes of messages", sderl_table:number(Bytes), ""]
    ]).

processes(Metric, Top) ->
    case map_get(Metric, Top) of
        [] -> [];
        Rows ->
            More = [{Title, Key} || {Key, Title} <- [{sent_bytes, "sent bytes"}, {moves, "moves"},
                                                     {received_bytes, "received bytes"}],
                                    Key =:= Metric],
            sderl_table:text(["process", "begins in", "runs ms", "waits for a scheduler", "waits",
                              "gc", "times in", "received", "sent"]
                             ++ [Title || {Title, _} <- More], [
                [Process, Entry, ms(Run), ms(Runnable), ms(Wait), ms(Gc), sderl_table:number(Ins),
                 sderl_table:number(Received), sderl_table:number(Sent)]
                ++ [sderl_table:number(map_get(Key, Row)) || {_, Key} <- More]
             || #{process := Process, entry := Entry, run := Run, runnable := Runnable,
                  wait := Wait, gc := Gc, ins := Ins, received := Received,
                  sent := Sent} = Row <- Rows
            ])
    end.

waits([]) -> [];
waits(Rows) ->
    sderl_table:text(["in", "times", "ms in all", "mean ms", "deviation"], [
        [Site, sderl_table:number(N), ms(Sum), ms(Mean), ms(Dev)]
     || #{site := Site, count := N, sum_ns := Sum, mean_ns := Mean, stddev_ns := Dev} <- Rows
    ]).

pairs(#{rows := []}, _, _, _, _) -> [];
pairs(#{rows := Rows}, A, B, Show, Unit) ->
    sderl_table:text([atom_to_list(A), atom_to_list(B), "times", Unit], [
        [map_get(A, Row), map_get(B, Row), sderl_table:number(map_get(count, Row)),
         Show(map_get(sum, Row))]
     || Row <- Rows
    ]).

schedulers(#{changes := 0}, _) -> [];
schedulers(#{awake_ns := Awake}, #{seconds := Seconds}) ->
    sderl_table:text(["scheduler", "awake %"], [
        [integer_to_binary(S), sderl_table:number(100 * Ns / 1.0e9 / max(1.0e-9, Seconds))]
     || {S, Ns} <- lists:sort([{binary_to_integer(Key), Ns} || Key := Ns <- Awake])
    ]).

functions(#{functions := []}) -> [];
functions(#{functions := Rows}) ->
    sderl_table:text(["function", "calls", "own ms", "with what it calls"], [
        [Function, sderl_table:number(N), ms(Own), ms(All)]
     || #{function := Function, calls := N, own_ns := Own, all_ns := All} <- Rows
    ]).

%% On lines of their own, as names of functions are long.
neighbours(#{functions := Rows}) ->
    [[Function, "\n", edges("called by", caller, Callers), edges("calls", callee, Callees)]
     || #{function := Function, callers := Callers, callees := Callees} <- Rows].

%% An edge without calls has time whose caller is not known.
edges(Title, End, All) ->
    told(Title, End, [Edge || #{calls := N} = Edge <- All, N > 0]).

told(_, _, []) -> [];
told(Title, End, Edges) ->
    Texts = [io_lib:format("~ts (~ts)", [map_get(End, Edge), sderl_table:number(N)])
             || #{calls := N} = Edge <- lists:sublist(Edges, ?NEIGHBOURS)],
    More = length(Edges) - length(Texts),
    [io_lib:format("  ~-11ts", [Title]), lists:join(", ", Texts),
     [io_lib:format(", ~b more", [More]) || More > 0], "\n"].

ms(Ns) -> sderl_table:number(Ns / 1.0e6).

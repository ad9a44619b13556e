%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_insight).
-moduledoc "Findings, the critical path and what differs between recordings, for a terminal. Pure.".

-export([findings/1, path/1, difference/1]).

-import(sderl_cli_prof_text, [section/2]).

%% Segments of the path that are shown.
-define(SEGMENTS, 10).
-define(COLUMNS, 96).

%% ---------------------------------------------------------------- findings

-doc "What keeps the program from being faster.".
-spec findings(sderl_prof_findings:result()) -> sderl_command:text().
findings(#{found := Found, not_shown := Not}) ->
    [
        ["nothing above the thresholds\n" || Found =:= []],
        [finding(Finding) || Finding <- Found],
        [io_lib:format("not shown: ~ts, which needs a recording of ~ts~n", [words(Kind), Needs])
         || #{finding := Kind, needs := Needs} <- Not]
    ].

finding(#{finding := Kind, text := Text, remedy := Remedy, threshold := Threshold}) ->
    [flowing("* ", [words(Kind), ": ", Text]), flowing("  ", Remedy),
     flowing("  ", ["Threshold: ", Threshold])].

words(bottleneck) -> "waiting for one";
words(low_parallelism) -> "one at a time";
words(mailbox) -> "mailbox that grows";
words(long_gc) -> "garbage collection";
words(migration) -> "busy migration";
words(sleeping) -> "schedulers asleep";
words(busy_port) -> "busy port";
words(tables) -> "tables";
words(past_gateways) -> "past the gateways".

%% Lines of words, with this before the first and as much space before the others.
flowing(Before, Text) ->
    Width = ?COLUMNS - length(Before),
    Lines = lines(string:lexemes(unicode:characters_to_list(Text), " "), Width, [], []),
    [First | Rest] = Lines,
    Space = lists:duplicate(length(Before), $\s),
    [Before, First, $\n | [[Space, Line, $\n] || Line <- Rest]].

lines([], _, Line, Lines) -> lists:reverse([joined(Line) | Lines]);
lines([Word | Words], Width, [], Lines) -> lines(Words, Width, [Word], Lines);
lines([Word | Words], Width, Line, Lines) ->
    case string:length(joined([Word | Line])) =< Width of
        true -> lines(Words, Width, [Word | Line], Lines);
        false -> lines(Words, Width, [Word], [joined(Line) | Lines])
    end.

joined(Line) -> lists:join(" ", lists:reverse(Line)).

%% ---------------------------------------------------------------- the critical path

-doc "The critical path; nothing of a recording that does not tell what ran.".
-spec path(map() | null) -> sderl_command:text().
path(null) -> [];
path(#{steps := 0}) -> "nothing ran in this part of the recording\n";
path(#{from := From, to := To, steps := Steps, kinds := Kinds, processes := Processes,
       others := Others, nodes := Nodes, gain := Gain, segments := Segments}) ->
    #{running := Running, runnable := Runnable, waiting := Waiting, message := Message,
      between := Between} = Kinds,
    All = max(1, To - From),
    Share = fun(Ns) -> [sderl_table:number(100 * Ns / All), " %"] end,
    #{speedup_of_schedulers := Speedup} = Gain,
    [
        io_lib:format("from ~ts s to ~ts s in ~ts steps~n"
                      "runs ~ts, waits for a scheduler ~ts, messages ~ts,~ts waits ~ts~n",
                      [seconds(From), seconds(To), sderl_table:number(Steps), Share(Running),
                       Share(Runnable), Share(Message),
                       [[" between nodes ", Share(Between), ","] || Nodes =/= []],
                       Share(Waiting)]),
        io_lib:format("with as many schedulers as it can use at most ~ts times as fast; a faster "
                      "process saves~nat most what it runs here~n",
                      [sderl_table:number(Speedup)]),
        sderl_table:text(["process", "begins in", "of the path", "runs ms", "waits for a scheduler",
                          "messages", "waits" | of_nodes(Nodes, "between nodes")], [
            [Process, Entry, Share(Ns), ms(R), ms(Q), ms(M), ms(W) | of_nodes(Nodes, ms(B))]
            || #{process := Process, entry := Entry, ns := Ns,
                 times := #{running := R, runnable := Q, message := M, waiting := W,
                            between := B}} <- Processes
        ]),
        [io_lib:format("and ~ts others, ~ts~n", [sderl_table:number(N), Share(Ns)])
         || #{processes := N, ns := Ns} <- [Others], Ns > 0],
        by_node(Nodes, Share),
        "\nits longest steps\n",
        sderl_table:text(["process", "from s", "ms", "it", "in, or from"], [
            [Process, seconds(A), ms(B - A), does(Kind), where(Segment)]
            || #{process := Process, kind := Kind, from := A, to := B} = Segment
                   <- longest(Segments)
        ])
    ].

of_nodes([], _) -> [];
of_nodes(_, Column) -> [Column].

by_node([], _) -> [];
by_node(Nodes, Share) ->
    ["\n", sderl_table:text(["node", "of the path", "runs ms", "waits for a scheduler", "messages",
                             "waits", "from other nodes"], [
        [Node, Share(Ns), ms(R), ms(Q), ms(M), ms(W), ms(B)]
        || #{node := Node, ns := Ns,
             times := #{running := R, runnable := Q, message := M, waiting := W,
                        between := B}} <- Nodes
    ])].

longest(Segments) ->
    Length = fun(#{from := A, to := B}) -> B - A end,
    Sorted = lists:sort(fun(A, B) -> Length(A) >= Length(B) end, Segments),
    lists:sort(fun(#{from := A}, #{from := B}) -> A =< B end, lists:sublist(Sorted, ?SEGMENTS)).

does(running) -> "runs";
does(runnable) -> "waits for a scheduler";
does(waiting) -> "waits";
does(message) -> "gets a message";
does(between) -> "gets one of another node".

where(#{sender := Sender}) when is_binary(Sender) -> Sender;
where(#{function := Function}) when is_binary(Function) -> Function;
where(_) -> "?".

%% ---------------------------------------------------------------- what differs

-doc "Two recordings compared.".
-spec difference(map()) -> sderl_command:text().
difference(#{before := Before, 'after' := After, notes := Notes, least_ns := Least,
             faster := Faster, slower := Slower, appeared := Appeared, disappeared := Disappeared,
             same := Same, waits := Waits}) ->
    #{shorter := Shorter, longer := Longer, appeared := New, disappeared := Gone} = Waits,
    [
        side("before", Before),
        side("after", After),
        [flowing("! ", Note) || Note <- Notes],
        [flowing("! ", [Which, ": ", Problem])
         || {Which, #{problems := Problems}} <- [{"before", Before}, {"after", After}],
            Problem <- Problems],
        totals(Before, After),
        section("Runs shorter", processes(Faster)),
        section("Runs longer", processes(Slower)),
        section("Only after", processes(Appeared)),
        section("Only before", processes(Disappeared)),
        section("Waits shorter, by place", waits(Shorter)),
        section("Waits longer, by place", waits(Longer)),
        section("Waits only after", waits(New)),
        section("Waits only before", waits(Gone)),
        io_lib:format("~n~ts other kinds of processes changed by less than 10 % or ~ts ms~n",
                      [sderl_table:number(Same), ms(Least)])
    ].

side(Which, #{node := Node, seconds := Seconds, events := Events, processes := Processes}) ->
    io_lib:format("~-7ts ~ts: ~ts s, ~ts events of ~ts processes~n",
                  [Which, Node, sderl_table:number(Seconds), sderl_table:number(Events),
                   sderl_table:number(Processes)]).

totals(#{totals := A} = Before, #{totals := B} = After) ->
    ["\n", sderl_table:text(["in all", "before", "after", "factor"], [
        [Title, Show(map_get(Key, A)), Show(map_get(Key, B)),
         factor(map_get(Key, A), map_get(Key, B))]
        || {Key, Title, Show} <- [
            {run, "runs, ms", fun ms/1}, {runnable, "waits for a scheduler, ms", fun ms/1},
            {gc, "collects garbage, ms", fun ms/1}, {sent, "messages", fun sderl_table:number/1},
            {sent_bytes, "bytes of messages", fun sderl_table:number/1}
        ]
    ] ++ between(Before, After))].

%% Of two recordings of several nodes.
between(#{between := #{} = A}, #{between := #{} = B}) ->
    [[Title, sderl_table:number(map_get(Key, A)), sderl_table:number(map_get(Key, B)),
      factor(map_get(Key, A), map_get(Key, B))]
     || {Key, Title} <- [{links, "pairs of nodes with messages"},
                         {messages, "messages between nodes"},
                         {bytes, "bytes between nodes"}]];
between(_, _) -> [].

factor(0, _) -> "-";
factor(A, B) -> sderl_table:number(B / A).

processes([]) -> [];
processes(Rows) ->
    sderl_table:text(["process", "under", "before ms", "after ms", "factor", "before %", "after %",
                      "before", "after"], [
        [Process, lists:join(" < ", lists:sublist(Place, 2)),
         of_side(run, A, fun ms/1), of_side(run, B, fun ms/1), sderl_table:number(Factor),
         of_side(run_share, A, fun hundred/1), of_side(run_share, B, fun hundred/1),
         of_side(count, A, fun sderl_table:number/1), of_side(count, B, fun sderl_table:number/1)]
        || #{process := Process, place := Place, before := A, 'after' := B,
             factor := Factor} <- Rows
    ]).

waits([]) -> [];
waits(Rows) ->
    sderl_table:text(["in", "before ms", "after ms", "factor", "times before", "times after",
                      "mean before", "mean after"], [
        [Site, of_side(sum_ns, A, fun ms/1), of_side(sum_ns, B, fun ms/1),
         sderl_table:number(Factor), of_side(count, A, fun sderl_table:number/1),
         of_side(count, B, fun sderl_table:number/1), of_side(mean_ns, A, fun ms/1),
         of_side(mean_ns, B, fun ms/1)]
        || #{site := Site, before := A, 'after' := B, factor := Factor} <- Rows
    ]).

of_side(_, null, _) -> "-";
of_side(Key, Side, Show) -> Show(map_get(Key, Side)).

hundred(Share) -> sderl_table:number(100 * Share).

seconds(Ns) -> io_lib:format("~.4f", [Ns / 1.0e9]).

ms(Ns) -> sderl_table:number(Ns / 1.0e6).

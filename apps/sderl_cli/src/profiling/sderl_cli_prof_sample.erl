%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_sample).
-moduledoc "`bin/sderl prof sample`: what the processes of running nodes do, by samples.".

-export([command/0, run/2, read/1, report/2]).

-import(sderl_cli_prof_text, [section/2, hundred/1, greatest/1]).
-import(sderl_command, [option/4, flag/2]).
-import(sderl_table, [number/1]).

-define(SECONDS, 10).

-doc "Its arguments.".
-spec command() -> map().
command() ->
    #{
        help =>
            """
            Looks at the processes of running nodes, so many times a second at most, and tells
            what they do, as shares with intervals. Traces nothing: it may run in production.
            Ctrl-C ends it. "report" shows a file that --out wrote, and "open" in a browser.

              bin/sderl prof sample a@host --seconds 30 --out samples.json
              bin/sderl prof sample a@host --all --out samples.json
              bin/sderl prof sample a@host --mailboxes my_server,my_writer
            """,
        arguments => sderl_cli_prof_cluster:arguments() ++ [
            option(seconds, "N", float, "for so many seconds (10)"),
            option(rate, "N", integer, "looks at a process in a second, at most (1000)"),
            option(mailboxes, "LIST", string,
                   "registered names of processes whose mailbox lengths are shown over time"),
            option(top, "N", {integer, [{min, 1}, {max, 1000}]}, "rows of each list (50)"),
            option(out, "FILE", string, "write the report there, as JSON"),
            flag(json, "the report as JSON")
        ]
    }.

-doc "Samples nodes; prints their reports, and writes them to a file where one is named.".
-spec run([node(), ...], #{atom() => term()}) -> sderl_command:result().
run(Named, Parsed) ->
    %% Names of a person at a terminal, not of a network; none has a longer one.
    Mailboxes = #{mailboxes => [list_to_atom(lists:sublist(Name, 255))
                                || Name <- string:lexemes(Text, ", ")]
                  || #{mailboxes := Text} <- [Parsed]},
    Options = maps:merge(maps:with([seconds, rate, top], Parsed), Mailboxes),
    maybe
        ok ?= named(Options),
        ok ?= done(sderl_prof_sampling:check(Options)),
        {ok, Reports, Failures} ?= sderl_cli_prof_nodes:look(Named, Parsed, #{
            begin_ => fun(Nodes) -> sderl_prof_sampling:begin_all(Nodes, Options) end,
            await => fun sderl_prof_sampling:await/1, stop => fun sderl_prof_sampling:stop/1,
            format_error => fun sderl_prof_sampling:format_error/1,
            label => "sampling", seconds => maps:get(seconds, Options, ?SECONDS)
        }),
        Written = written(Reports, Parsed),
        kept(Written, sderl_cli_prof_nodes:print(shown(decoded(Reports), Parsed), Reports,
                                                 Failures))
    end.

named(#{mailboxes := []}) ->
    {error, "--mailboxes names no process: it is a list of registered names, such as "
            "my_server,my_writer"};
named(_) -> ok.

%% What was found is shown, also where it could not be kept.
kept(ok, Result) -> Result;
kept({error, Why}, {help, Text}) ->
    ok = io:put_chars(Text),
    {error, Why};
kept({error, Why}, {error, Failures}) ->
    {error, [Failures, $\n, Why]}.

done({error, Why}) -> {error, sderl_prof_sampling:format_error(Why)};
done(Fine) -> Fine.

written(Reports, #{out := File}) -> done(sderl_prof_sampling:write(File, Reports));
written(_, _) -> ok.

%% As they are read from a file.
decoded(Reports) -> [json:decode(iolist_to_binary(json:encode(Report))) || Report <- Reports].

shown(Reports, #{json := true}) -> {help, [sderl_prof_sampling:encode(Reports), $\n]};
shown(Reports, _) -> {help, sderl_visible:text(lists:join("\n", [text(One) || One <- Reports]))}.

-doc "The reports in a file, if it is one of samples.".
-spec read(file:filename()) -> {ok, [map(), ...]} | none.
read(File) ->
    maybe
        %% A trace may be larger than memory, and is no JSON; reports are some megabytes a node.
        true ?= filelib:is_regular(File) andalso begins(File) =:= {ok, "{"},
        {ok, Reports} ?= sderl_prof_sampling:read(File),
        {ok, Reports}
    else
        _ -> none
    end.

begins(File) ->
    maybe
        {ok, Device} ?= file:open(File, [read, raw]),
        try file:read(Device, 1) after file:close(Device) end
    end.

-doc "Prints reports that were read from a file.".
-spec report([map(), ...], #{atom() => term()}) -> sderl_command:result().
report(Reports, Parsed) -> shown(Reports, Parsed).

%% ---------------------------------------------------------------- the text

%% A report, as JSON has it.
text(#{~"node" := Node, ~"seconds" := Seconds, ~"looks" := Looks, ~"rounds" := Rounds,
       ~"own_share" := Own, ~"counted_share" := Counted, ~"processes" := Processes,
       ~"states" := States, ~"groups" := Groups, ~"functions" := Functions, ~"waits" := Waits,
       ~"schedulers" := Schedulers, ~"threads" := Threads} = Report) ->
    [
        io_lib:format("~ts: ~ts s, ~ts looks at ~ts processes, which took ~ts % of the time with "
                      "all waiting~n",
                      [Node, number(Seconds), number(Looks), number(Processes),
                       number(100 * Own)]),
        [io_lib:format("! not every process was looked at: take longer (--seconds) or more looks "
                       "(--rate)~n", []) || Rounds < 2],
        io_lib:format("~ts % of the node's reductions were those of processes that were looked at "
                      "before and after~n", [number(100 * Counted)]),
        section("Processes, on average", states(States)),
        section("The node", overall(maps:get(~"series", Report, none))),
        section("Schedulers", schedulers(Schedulers)),
        section("Kinds of processes, most reductions first", groups(Groups)),
        section("Where processes run or could run", places(Functions)),
        section("Where processes wait", places(Waits)),
        section("Threads", threads(Threads))
    ].

states([]) -> [];
states(States) ->
    sderl_table:text(["state", "processes", "looks"], [
        [State, number(N), number(Looks)]
     || #{~"state" := State, ~"processes" := N, ~"looks" := Looks} <- States
    ]).

%% Of the whole time; the pages have it over time.
overall(#{~"names" := Names, ~"points" := [_ | _] = Points}) ->
    sderl_table:text(["of the node", "on average", "at first", "at last", "most"], [
        overall("processes that wait for a scheduler", ~"run_queue", Points,
                fun sderl_table:number/1, [N || #{~"most_run_queue" := N} <- Points]),
        overall("processes", ~"processes", Points, fun sderl_table:number/1, []),
        overall("memory, MB", ~"total", [Memory#{~"ns" => Ns}
                                         || #{~"ns" := Ns, ~"memory" := #{} = Memory} <- Points],
                fun(Bytes) -> number(Bytes / 1.0e6) end, [])
     | [overall(["mailbox of ", Name], ~"mean", boxes(N, Points), fun sderl_table:number/1,
                [Most || #{~"most" := Most} <- boxes(N, Points)])
        || {N, Name} <- lists:enumerate(Names)]
    ]);
overall(_) -> [].

boxes(N, Points) ->
    [Box#{~"ns" => Ns} || #{~"ns" := Ns, ~"mailboxes" := Boxes} <- Points,
                          #{} = Box <- [lists:nth(N, Boxes)]].

overall(What, _, [], _, _) -> [What, "no process has that name" | lists:duplicate(3, "-")];
overall(What, Key, Points, Show, Most) ->
    Values = [{map_get(Key, Point), map_get(~"ns", Point)} || Point <- Points],
    {Sum, All} = lists:foldl(fun({V, Ns}, {S, A}) -> {S + V * Ns, A + Ns} end, {0, 0}, Values),
    {First, _} = hd(Values),
    {Last, _} = lists:last(Values),
    [What, Show(Sum / max(1, All)), Show(First), Show(Last),
     case Most of [] -> Show(lists:max([V || {V, _} <- Values])); _ -> Show(lists:max(Most)) end].

schedulers([]) -> [];
schedulers(Schedulers) ->
    sderl_table:text(["scheduler", "kind", "awake %"], [
        [number(N), Type, hundred(Awake)]
     || #{~"number" := N, ~"type" := Type, ~"awake" := Awake} <- Schedulers,
        Type =:= ~"normal" orelse Awake > 0.001
    ]).

groups([]) -> [];
groups(Groups) ->
    sderl_table:text(["kind", "processes", "of reductions %", "run or could run", "of its time %",
                      "95 % interval", "looks"], [
        [Group, number(N), hundred(Reductions), number(Busy) | share(Share, Looks)]
     || #{~"group" := Group, ~"processes" := N, ~"of_reductions" := Reductions,
          ~"busy" := Busy, ~"share_busy" := Share, ~"looks" := Looks} <- Groups, Looks > 0
    ]).

places([]) -> [];
places(Places) ->
    sderl_table:text(["in", "processes", "share %", "95 % interval", "looks", "of"], [
        [Function, number(N) | share(Share, Looks)] ++ [lists:join(", ", Groups)]
     || #{~"function" := Function, ~"processes" := N, ~"share" := Share, ~"looks" := Looks,
          ~"groups" := Groups} <- Places
    ]).

share(#{~"share" := Share, ~"low" := Low, ~"high" := High}, Looks) ->
    [hundred(Share), [hundred(Low), " to ", hundred(High)], number(Looks)].

threads([]) -> [];
threads(Threads) ->
    sderl_table:text(["threads", "what they do, %"], [
        [Type, lists:join(", ", [[State, " ", hundred(Share)]
                                 || {State, Share} <- greatest(States), Share >= 0.0005])]
     || #{~"type" := Type, ~"states" := States} <- Threads
    ]).

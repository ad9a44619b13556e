%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof).
-moduledoc """
`bin/sderl prof`: records running nodes, and shows what a trace says. The work is done by
`m:sderl_prof`; that of several nodes is called in `m:sderl_cli_prof_cluster`.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

%% Events in a second above which a recording is refused.
-define(MOST_EVENTS_S, 500_000).

-doc false.
-spec summary() -> string().
summary() -> "profile a node: who runs, who waits for whom, which messages".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> {commands, [completed(Name, Do) || {Name, Do, _} <- commands()]}.

-doc false.
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    sderl_command:run_one(Args, "prof", [Do || {_, Do, _} <- commands()],
                          #{help => fun help/0, arguments => fun command/1, do => fun run/2}).

commands() ->
    [
        {"record", record, "record running nodes into a folder"},
        {"fetch", fetch, "the recordings of several nodes from their machines"},
        {"report", report, "what a recording says"},
        {"open", open, "a recording in a browser: a time line that zooms, processes, messages"},
        {"sample", sample, "what the processes of a running node do, at a bounded cost"},
        {"vm", vm, "what the virtual machine of a running node tells: threads, memory, locks"},
        {"export", export, "a recording for Perfetto, speedscope, pprof or a spreadsheet"},
        {"path", path, "the critical path of a part of a recording"},
        {"compare", compare, "what differs between two recordings"},
        {"completion", completion, "completion for bash or zsh"}
    ].

help() ->
    [
        "usage: bin/sderl prof COMMAND [options]\n\n"
        "Shows why a parallel program is not faster. docs/profiling.md is the guide.\n\n",
        [io_lib:format("  ~-11ts ~ts~n", [Name, About]) || {Name, _, About} <- commands()],
        "\n\"bin/sderl prof COMMAND --help\" lists a command's options.\n"
    ].

command(record) ->
    #{
        help =>
            """
            Records events of a running node, in a trace session of its own: other tracers are not
            disturbed. The files stay on the node's machine. It ends after --seconds, at --mib, or
            with Ctrl-C. A short trial before it shows what it will cost the node.

              bin/sderl prof record a@host
              bin/sderl prof record a@host --what messages --seconds 5
              bin/sderl prof record a@host --what calls --modules orbit,orbit_worker

            Several nodes are recorded at once into folders of their own, in one folder with an
            index; "fetch" brings those that are on other machines. A node that cannot be recorded
            does not hold up the others, and is reported.

              bin/sderl prof record a@host --all --what messages
              bin/sderl prof record --node a@host --node b@host --what messages
            """,
        arguments => sderl_cli_prof_cluster:arguments() ++ [
            option(what, "LIST", string,
                   "profiles: " ++ words(sderl_prof_options:profiles()) ++
                   " (concurrency); or items: " ++ words(sderl_prof_options:items())),
            option(modules, "LIST", string, "the modules whose calls are recorded"),
            option(who, "LIST", string,
                   "registered names of processes, with what they spawn; all, new or existing "
                   "(all)"),
            option(app, "NAME", string, "processes of this application, with what they spawn"),
            option(seconds, "N", float, "for so many seconds (10)"),
            option(mib, "N", {integer, [{min, 16}]}, "at most so many MiB on disk (256)"),
            flag(last, "at --mib go on, and overwrite the oldest part"),
            option(max_events_s, "N", {integer, [{min, 1}]},
                   io_lib:format("refuse a recording of more events in a second (~b)",
                                 [?MOST_EVENTS_S])),
            option(above, "WORD", {atom, [refuse, share]},
                   "above that: refuse, or share: record one in so many processes (refuse)"),
            option(share, "N", {integer, [{min, 1}, {max, 10_000}]},
                   "record one in so many processes, chosen at random, with what they spawn (1)"),
            flag(force, "record even above --max-events-s"),
            option(out, "DIR", string,
                   "the folder, on the node's machine (prof-NODE-TIME); of several nodes the one "
                   "here (prof-cluster-TIME)"),
            option(node_out, "DIR", string,
                   "of several nodes: the folder on their machines (the same as here)")
        ]
    };
command(fetch) ->
    #{
        help =>
            """
            Fetches the recordings of several nodes into the folder that "record" has made: piece by
            piece, with checksums. After a break another fetch goes on where it was; what is here is
            not fetched again.

              bin/sderl prof fetch prof-cluster-20261127-071502
            """,
        arguments => [
            #{name => file, type => string,
              help => {"FOLDER", ["the folder of the recording"]}},
            option(cookie_file, "FILE", string,
                   "the file with the cookie (that of the first node where it runs here, or "
                   "~/.erlang.cookie)"),
            flag(remove, "remove from the nodes what has been fetched")
        ]
    };
command(report) ->
    #{
        help =>
            """
            Shows what a recording says: concurrency, what keeps the program from being faster, the
            critical path, the processes that run and wait most, waits, messages. FILE is the folder
            of a recording, or a file that another tracer of OTP wrote with times (dbg:trace_port).
            The analysed trace is kept beside it.
            """,
        arguments => [
            file(),
            option(top, "N", {integer, [{min, 1}, {max, 1000}]}, "rows of each list (10)"),
            option(by, "LIST", string,
                   "the lists of processes: all, or some of " ++
                   words(sderl_prof_report:metrics()) ++ " (run,runnable,gc)"),
            option(parts, "N", {integer, [{min, 1}, {max, 100_000}]},
                   "points of the curves (100)"),
            flag(json, "the report as JSON")
        ]
    };
command(open) ->
    #{
        help =>
            """
            Shows a recording in a browser: a time line from the whole run to microseconds, the
            processes with their waits and messages, call stacks. Prints the address, with the token
            that the page needs; Ctrl-C ends it. FILE is as for "report". Of the folder of several
            nodes it shows all of them on one time line, the messages between them, and the critical
            path across them. Of a file that "sample" wrote it shows shares of processes and
            functions, over time.

              bin/sderl prof open prof-a@host-20261127-071502
              bin/sderl prof open prof-cluster-20261127-071502
              bin/sderl prof open samples.json
            """,
        arguments => [file() | sderl_cli_watch:page_arguments("pages")]
    };
command(sample) -> sderl_cli_prof_sample:command();
command(vm) -> sderl_cli_prof_vm:command();
command(export) ->
    #{
        help =>
            """
            Writes a recording for another tool: "chrome" is JSON for Perfetto and Chrome's
            tracing, "speedscope" and "pprof" the call stacks (of a recording of calls), "csv" all
            events.
            """,
        arguments => [
            file(),
            #{name => format, long => "-format", type => {atom, [chrome, speedscope, pprof, csv]},
              required => true, help => {"--format FORMAT", ["chrome, speedscope, pprof or csv"]}},
            #{name => out, long => "-out", type => string, required => true,
              help => {"--out FILE", ["where to"]}}
        ]
    };
command(path) ->
    #{
        help =>
            """
            Shows the critical path: the chain of runs, waits for a scheduler and messages that
            leads to the last thing that ran. What is not on it can be made faster in vain. Of the
            folder of several nodes it is that across all of them.

              bin/sderl prof path prof-a@host-20261127-071502 --from 1.5 --to 2
            """,
        arguments => [
            file(),
            option(from, "S", float, "the part begins so many seconds in (0)"),
            option(to, "S", float, "and ends so many seconds in (the end)"),
            option(process, "P", string,
                   "the path to the last run of this process: its name, or its pid as the report "
                   "has it (of what ran last; of several nodes, of the one that gets most messages "
                   "from another node)"),
            option(top, "N", {integer, [{min, 1}, {max, 1000}]}, "processes that are shown (10)"),
            option(segments, "N", {integer, [{min, 1}, {max, 100_000}]},
                   "steps in the JSON, the longest ones (50)"),
            flag(json, "the path as JSON")
        ]
    };
command(compare) ->
    #{
        help =>
            """
            Tells what differs between two recordings, before and after a change: which processes
            run longer or shorter, appeared or disappeared, and where they wait. Processes are
            matched by their name, or by the function in which they begin and their place in the
            tree.

              bin/sderl prof compare before-folder after-folder
            """,
        arguments => [
            #{name => before, type => string, help => {"BEFORE", ["a recording, or a trace file"]}},
            #{name => 'after', type => string, help => {"AFTER", ["another one"]}},
            option(top, "N", {integer, [{min, 1}, {max, 1000}]}, "rows of each list (10)"),
            flag(json, "the comparison as JSON")
        ]
    };
command(completion) ->
    #{
        help =>
            """
            Completion for bash or zsh.
            eval "$(bin/sderl prof completion bash)", or
            source <(bin/sderl prof completion zsh).
            """,
        arguments => [
            #{name => shell, type => {atom, [bash, zsh]}, help => {"SHELL", ["bash or zsh"]}}
        ]
    }.

file() ->
    #{name => file, type => string, help => {"FILE", ["a recording, or a trace file"]}}.

words(Atoms) -> lists:flatten(lists:join(", ", [atom_to_list(A) || A <- Atoms])).

%% ---------------------------------------------------------------- record

run(record, Parsed) ->
    maybe
        {ok, [First | _] = Nodes} ?= node_names(Parsed),
        {ok, Options} ?= sderl_cli_prof_words:options(Parsed),
        {ok, _} ?= checked(sderl_prof_options:plan(Options)),
        Limited = Options#{max_events_s => most_events_s(Parsed)},
        case sderl_cli_prof_cluster:is_several(Parsed) of
            true ->
                Dir = filename:absname(maps:get(out, Parsed, default_out("cluster"))),
                sderl_cli_prof_cluster:record(Nodes, Dir, Limited, Parsed);
            false -> record(First, Limited, Parsed)
        end
    else
        Other -> refused(record, Other)
    end;
run(fetch, Parsed) ->
    sderl_cli_prof_cluster:fetch(Parsed);
run(sample, Parsed) ->
    case node_names(Parsed) of
        {ok, Nodes} -> sderl_cli_prof_sample:run(Nodes, Parsed);
        Wrong -> refused(sample, Wrong)
    end;
run(vm, Parsed) ->
    maybe
        {ok, Nodes} ?= node_names(Parsed),
        {ok, Options} ?= sderl_cli_prof_words:readings(Parsed),
        sderl_cli_prof_vm:run(Nodes, Options, Parsed)
    else
        Wrong -> refused(vm, Wrong)
    end;
run(report, #{file := File} = Parsed) ->
    case {sderl_prof_cluster_index:is_cluster(File), sderl_cli_prof_sample:read(File)} of
        {true, _} -> report_several(Parsed);
        {_, {ok, Reports}} -> sderl_cli_prof_sample:report(Reports, Parsed);
        _ -> run_one(report, Parsed)
    end;
run(export, #{file := File, format := chrome, out := Out} = Parsed) ->
    case sderl_prof_cluster_index:is_cluster(File) of
        true -> sderl_cli_prof_cluster:export(File, Out);
        false -> run_one(export, Parsed)
    end;
run(Command, Parsed) ->
    run_one(Command, Parsed).

report_several(Parsed) ->
    case sderl_cli_prof_words:metrics(Parsed) of
        {ok, _} -> sderl_cli_prof_cluster:report(Parsed);
        Wrong -> refused(report, Wrong)
    end.

most_events_s(#{force := true}) -> infinity;
most_events_s(Parsed) -> maps:get(max_events_s, Parsed, ?MOST_EVENTS_S).

record(Node, #{max_events_s := Most} = Options, Parsed) ->
    maybe
        {ok, Cookie} ?= sderl_cli_attach:cookie(sderl_cli_attach:cookie_file(Parsed)),
        ok ?= sderl_cli_attach:attach(Node, Cookie, "sderl-prof"),
        Dir = filename:absname(maps:get(out, Parsed, default_out(Node))),
        Tried = fun(Cost, Verdict) -> tell_cost(Cost, Verdict, Most) end,
        {ok, Recording} ?= done(sderl_prof:record(Node, Options#{dir => Dir, tried => Tried})),
        {ok, Info} ?= done(sderl_cli_prof_cluster:until_stopped(
            "recording", maps:get(seconds, Options, 10),
            fun() -> sderl_prof:stop(Recording) end, fun() -> sderl_prof:await(Recording) end)),
        io:put_chars(sderl_visible:text(sderl_cli_prof_show:recorded(Info, Dir)))
    end.

tell_cost(Cost, Verdict, Most) ->
    ok = io:put_chars([sderl_prof:format_cost(Cost), $\n]),
    [ok = io:format("that is more than ~b a second; of one process in ~b:~n", [Most, Share])
     || {share, Share} <- [Verdict]].

run_one(report, #{file := File} = Parsed) ->
    maybe
        {ok, Metrics} ?= sderl_cli_prof_words:metrics(Parsed),
        {ok, Dir} ?= opened(File),
        Show = sderl_progress:reporter("analysing"),
        Options = (maps:with([top, parts], Parsed))#{progress => Show},
        {ok, Report} ?= done(sderl_prof_report:make(Dir, Options)),
        ok = sderl_progress:done(),
        case Parsed of
            #{json := true} -> io:put_chars([json:encode(Report), $\n]);
            _ -> io:put_chars(sderl_visible:text(sderl_cli_prof_show:report(Report, Metrics)))
        end
    else
        Other -> refused(report, Other)
    end;
run_one(path, #{file := File} = Parsed) ->
    maybe
        {ok, Range} ?= sderl_cli_prof_words:range(Parsed),
        {ok, Dir} ?= opened(File),
        Options = maps:merge(Range, maps:with([top, segments], Parsed)),
        {ok, Path} ?= critical_path(Dir, Options, Parsed),
        shown(Path, Parsed, fun sderl_cli_prof_cluster_show:path/1)
    else
        Other -> refused(path, Other)
    end;
run_one(compare, #{before := Before, 'after' := After} = Parsed) ->
    maybe
        {ok, A} ?= opened(Before),
        {ok, B} ?= opened(After),
        {ok, Difference} ?= done(sderl_prof_compare:make(A, B, maps:with([top], Parsed))),
        shown(Difference, Parsed, fun sderl_cli_prof_insight:difference/1)
    end;
run_one(completion, #{shell := Shell}) ->
    {commands, Commands} = completion(),
    {help, sderl_completion:script(Shell, "prof", Commands)};
run_one(open, #{file := File} = Parsed) ->
    maybe
        {ok, Web} ?= sderl_cli_prof_open:check(Parsed),
        {ok, What} ?= to_show(File),
        sderl_cli_prof_open:serve(File, What, Web)
    else
        {wrong, Message} ->
            {usage, [Message, "\n\"bin/sderl prof open --help\" lists the options."]};
        Other -> Other
    end;
run_one(export, #{file := File, format := Format, out := Out}) ->
    maybe
        {ok, Dir} ?= opened(File),
        case sderl_prof_export:write(Format, Dir, Out) of
            ok -> ok;
            {error, Why} -> {error, sderl_prof_export:format_error(Why)}
        end
    end.

refused(Command, {wrong, Message}) ->
    {usage, io_lib:format("~ts~n\"bin/sderl prof ~ts --help\" lists the options.",
                          [Message, Command])};
refused(_, Other) -> Other.

shown(Result, #{json := true}, _) -> {help, [json:encode(Result), $\n]};
shown(Result, _, Show) -> {help, Show(Result)}.

critical_path(Dir, Options, Parsed) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    try
        maybe
            {ok, Path} ?= path(Parsed, Options, Book),
            recorded(Path)
        end
    after
        sderl_prof_book:close(Book)
    end.

recorded(null) ->
    {error, "the recording does not tell what ran; record --what messages, by which the path goes "
            "from process to process"};
recorded(Path) -> {ok, Path}.

path(#{process := Text}, Options, Book) ->
    case sderl_prof_insight:find_process(unicode:characters_to_binary(Text), Book) of
        {ok, Number} -> {ok, sderl_prof_insight:path(Book, Options#{process => Number})};
        error -> {error, ["--process: the recording has no process ", Text,
                          "; \"bin/sderl prof report\" shows their names"]}
    end;
path(_, Options, Book) -> {ok, sderl_prof_insight:led_path(Book, Options)}.

completed(Name, Do) ->
    {Name, Options, First} = sderl_completion:command(Name, command(Do)),
    {Name, Options, case Do of
        _ when Do =:= completion; Do =:= record; Do =:= sample; Do =:= vm -> First;
        _ -> file
    end}.

node_names(Parsed) ->
    case [Text || #{node := Text} <- [Parsed]] ++ maps:get(nodes, Parsed, []) of
        [] -> {wrong, "node is missing: name one, or several with --node"};
        Texts -> node_names(Texts, [])
    end.

node_names([Text | Texts], Names) ->
    case sderl_cli_attach:node_name(Text) of
        {ok, Node} -> node_names(Texts, [Node | Names]);
        {error, Message} -> {wrong, Message}
    end;
node_names([], Names) -> {ok, lists:reverse(Names)}.

checked({ok, _} = Fine) -> Fine;
checked({error, Why}) -> {wrong, sderl_prof_options:format_error(Why)}.

done({error, {too_much, _, Most}}) ->
    {error, io_lib:format("that is more than ~b events a second: record fewer processes (--above "
                          "share, --who, --app) or items (--what), or use --force", [Most])};
done({error, Why}) -> {error, sderl_prof:format_error(Why)};
done(Fine) -> Fine.

default_out(Node) ->
    {{Y, Mo, D}, {H, Mi, S}} = calendar:local_time(),
    lists:flatten(io_lib:format("prof-~ts-~4..0b~2..0b~2..0b-~2..0b~2..0b~2..0b",
                                [Node, Y, Mo, D, H, Mi, S])).

to_show(File) ->
    case sderl_cli_prof_sample:read(File) of
        {ok, Reports} -> {ok, {samples, Reports}};
        none -> opened(File)
    end.

%% Of several nodes, all on one time line.
opened(File) ->
    Options = #{progress => sderl_progress:reporter("reading")},
    Result = case sderl_prof_cluster_index:is_cluster(File) of
        true -> sderl_cli_prof_cluster:open(File, Options);
        false -> done(sderl_prof:open(File, Options))
    end,
    ok = sderl_progress:done(),
    Result.

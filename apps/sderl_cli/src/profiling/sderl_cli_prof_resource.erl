%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_resource).
-moduledoc "The recording that `bin/sderl prof open` shows, under `/api/v1/profile`; only to read.".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3, answer_of/3]).

-import(sderl_web_schema, [object/1, list/1, text/0, whole/0, number/0, flag/0, null_or/1, map/1,
                           ref/1, word/1, any/0]).

%% Times are nanoseconds since the begin: a browser's whole numbers hold three months of them.
-define(MOST_NS, 9_007_199_254_740_991).
-define(MOST_NUMBER, 4_294_967_295).
%% Digits of a process's number.
-define(DIGITS, 10).
%% Messages, steps and rows that are drawn, at most.
-define(MOST_ARROWS, 5_000).
-define(MOST_SEGMENTS, 2_000).
-define(MOST_STAYS, 2_000).
-define(MOST_BRANCHES, 5_000).
-define(MOST_EDGES, 500).
-define(MOST_ENDS, 200).
%% Bytes of a kind of processes: a function's name.
-define(KEY_BYTES, 1_000).
-define(MOST_PLACES, 500).
-define(MOST_OPERATIONS, 10_000).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    #{columns := Columns, processes := Processes} = sderl_prof_view:limits(),
    From = {~"from", from, {whole, 0, ?MOST_NS}, 0},
    To = {~"to", to, {whole, 1, ?MOST_NS}, ?MOST_NS},
    Chosen = {~"processes", processes, {texts, Processes, ?DIGITS}, none},
    Get = fun(Op, Path, Summary, Query, Answer) ->
        #{op => Op, method => get, path => [~"profile" | Path], role => viewer,
          summary => Summary, query => Query, answer => {200, Answer},
          problems => [too_large || lists:member(Op, [profile_window, profile_messages,
                                                      profile_traffic, profile_communication,
                                                      profile_arrows, profile_stays,
                                                      profile_path, profile_calls,
                                                      profile_routed])]
              ++ [not_found || lists:member(Op, [profile_path, profile_stays, profile_calls,
                                                 profile_waits])]}
    end,
    One = {~"process", process, {whole, 1, ?MOST_NUMBER}, none},
    [
        Get(profile, [], ~"The recording of a profiler, and what was lost of it", [],
            ref(~"Profile")),
        Get(profile_window, [~"window"], ~"What processes do in a part of the time, in columns",
            [From, To, {~"columns", columns, {whole, 1, Columns}, 500}, Chosen],
            ref(~"ProfileWindow")),
        Get(profile_processes, [~"processes"], ~"Processes, greatest first",
            [{~"sort", sort, {word, sderl_prof_view:sorts()}, run},
             {~"search", search, {text, 200}, ~""},
             {~"limit", limit, {whole, 1, Processes}, 100},
             {~"kind", kind, {word, [all, process, port]}, all}, From, To, Chosen],
            object(#{processes => list(ref(~"ProfileProcess")), matching => whole(),
                     'of' => word([whole, part])})),
        Get(profile_process,
            [~"processes", {~"process", process, {whole, 1, ?MOST_NUMBER}, required}],
            ~"A process: where it waits, for whom, and its messages", [],
            object(#{process => ref(~"ProfileProcess"),
                     waits => list(object(#{function => whole(), site => text(), count => whole(),
                                            sum => whole(), mean => number(),
                                            deviation => number()})),
                     waits_for => list(ref(~"ProfilePeer")),
                     waited_for_by => list(ref(~"ProfilePeer")),
                     sent_to => list(ref(~"ProfilePeer")),
                     received_from => list(ref(~"ProfilePeer"))})),
        Get(profile_messages, [~"messages"], ~"Pairs with most messages in a part of the time",
            [From, To, {~"limit", limit, {whole, 1, 500}, 50}],
            object(#{pairs => whole(), count => whole(), bytes => whole(),
                     rows => list(object(#{from => whole(), from_name => text(), to => whole(),
                                           to_name => text(), count => whole(),
                                           bytes => whole()}))})),
        Get(profile_traffic, [~"traffic"],
            ~"Messages between the nodes of a recording of several, in a part of the time",
            [From, To],
            object(#{sent => list(object(#{from => whole(), to => whole(), count => whole(),
                                           bytes => whole()})),
                     whole => list(ref(~"ProfileLink"))})),
        Get(profile_communication, [~"communication"],
            ~"Who sends how much to whom in a part of the time, as a graph of bounded size",
            [From, To, {~"by", by, {word, [process, kind, node]}, process},
             {~"sort", sort, {word, [count, bytes]}, count},
             {~"least", least, {whole, 0, ?MOST_NS}, 0}, {~"mean", mean, {whole, 0, ?MOST_NS}, 0},
             {~"around", around, {text, ?KEY_BYTES}, ~""},
             {~"edges", edges, {whole, 1, ?MOST_EDGES}, 100},
             {~"ends", ends, {whole, 1, ?MOST_ENDS}, 50}],
            object(#{ends => list(ref(~"ProfileEnd")), edges => list(ref(~"ProfileEdge")),
                     passed => ref(~"ProfileAmount"), all => ref(~"ProfileAmount")})),
        Get(profile_report, [~"report"],
            ~"The first processes by each measure, concurrency and schedulers, of the whole",
            [{~"top", top, {whole, 1, 1_000}, 10}, {~"parts", parts, {whole, 1, Columns}, 100}],
            object(#{totals => ref(~"ProfileSums"), processes => whole(), width => whole(),
                     top => object(#{Metric => list(ref(~"ProfileLeader"))
                                     || Metric <- sderl_prof_leaders:metrics()}),
                     concurrency => list(object(#{from => whole(), running => number(),
                                                  runnable => number()})),
                     awake_ns => map(whole())})),
        Get(profile_tree, [~"tree"],
            ~"The tree of processes; siblings that are alike are one row",
            [{~"limit", limit, {whole, 1, ?MOST_BRANCHES}, 1_000}],
            object(#{rows => list(ref(~"ProfileBranch")), all => whole(), below => whole()})),
        Get(profile_arrows, [~"arrows"], ~"Single messages between processes in a part of the time",
            [From, To, Chosen, One, {~"limit", limit, {whole, 1, ?MOST_ARROWS}, 1_000}],
            object(#{arrows => list(list(null_or(whole()))), count => whole(),
                     elsewhere => whole()})),
        Get(profile_operations, [~"operations"],
            ~"Operations on groups in a part of the time, of a recording of s_group",
            [From, To, Chosen, {~"limit", limit, {whole, 1, ?MOST_OPERATIONS}, 500}],
            object(#{all => whole(), kept => whole(), count => whole(), parts => whole(),
                     rows => list(ref(~"ProfileOperation")), cells => list(list(whole()))})),
        Get(profile_routed, [~"routed"],
            ~"Messages that went over gateways in a part of the time, of a recording of routed",
            [From, To, {~"limit", limit, {whole, 1, ?MOST_PLACES}, 100}],
            object(#{
                sent => object(#{count => whole(), bytes => whole(), rows => list(object(#{
                    at => null_or(text()), first => text(), to => text(), whom => text(),
                    count => whole(), bytes => whole()
                }))}),
                gateways => list(object(#{first => text(), count => whole(), bytes => whole()})),
                passed => object(#{count => whole(), rows => list(object(#{
                    at => null_or(text()), from => text(), next => text(), count => whole(),
                    bundles => whole()
                }))}),
                delivered => whole(),
                undelivered => object(#{count => whole(), rows => list(object(#{
                    at => null_or(text()), to => text(), whom => text(), why => text(),
                    count => whole()
                }))})
            })),
        Get(profile_stays, [~"stays"],
            ~"On which schedulers a process was in a part of the time",
            [From, To, {~"process", process, {whole, 1, ?MOST_NUMBER}, required},
             {~"limit", limit, {whole, 1, ?MOST_STAYS}, 500}],
            object(#{schedulers => list(object(#{scheduler => whole(), stays => whole(),
                                                 ins => whole(), ran => whole()})),
                     stays => list(list(whole())), count => whole()})),
        Get(profile_calls, [~"calls"],
            ~"Stacks of functions with their time, as a tree, and who calls whom",
            [From, To, One],
            object(#{'of' => word([whole, part]), whose => null_or(text()), ns => whole(),
                     frames => list(ref(~"ProfileFrame")), graph => ref(~"ProfileCallGraph")})),
        Get(profile_source,
            [~"functions", {~"function", function, {whole, 1, ?MOST_NUMBER}, required}, ~"source"],
            ~"The source text of a function, as it is on the machine of the server", [],
            ref(~"ProfileSource")),
        Get(profile_waits, [~"waits"], ~"Waits by place: how many, how long, whose and for whom",
            [From, To, One, {~"sort", sort, {word, [sum, count, mean]}, sum},
             {~"limit", limit, {whole, 1, ?MOST_PLACES}, 100}],
            object(#{'of' => word([whole, part]), whose => null_or(text()), places => whole(),
                     count => whole(), sum => whole(), rows => list(ref(~"ProfileWait"))})),
        Get(profile_findings, [~"findings"], ~"What keeps the program from being faster", [],
            object(#{found => list(ref(~"ProfileFinding")),
                     not_shown => list(object(#{finding => text(), needs => text()}))})),
        Get(profile_path, [~"path"], ~"The critical path of a part of the time",
            [From, To, One, {~"segments", segments, {whole, 1, ?MOST_SEGMENTS}, 500}],
            object(#{path => null_or(ref(~"ProfilePath"))}))
    ].

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    Sums = #{Metric => whole() || Metric <- sderl_prof_view:sorts()},
    Shares = list(whole()),
    Called = #{calls => whole(), own => whole(), all => whole()},
    Process = Sums#{
        process => whole(), kind => word([process, port, name, remote, node, alias]),
        name => text(), entry => text(), parent => whole(), parent_name => text(),
        start => null_or(whole()), stop => null_or(whole()), reason => text()
    },
    Times = object(#{Kind => whole() || Kind <- [running, runnable, waiting, message, between]}),
    #{
        ~"Profile" => object(#{
            node => text(), otp => null_or(text()), items => list(text()), events => whole(),
            duration => whole(), processes => whole(), online => null_or(whole()),
            schedulers => list(whole()), totals => object(Sums), problems => list(text()),
            dropped => whole(), lost_events => whole(), lost_bytes => whole(),
            runnable => word([recorded, messages, none]),
            has_messages => flag(), has_calls => flag(), has_ports => flag(), has_path => flag(),
            findings => whole(), nodes => list(ref(~"ProfileNode")),
            limits => object(#{columns => whole(), processes => whole(), cells => whole()})
        }),
        ~"ProfileNode" => object(#{
            number => whole(), node => text(), first => whole(), last => whole(),
            scheduler => whole(), online => null_or(whole()), from => whole(), to => whole(),
            error => whole(), shift => whole(), groups => list(text())
        }),
        ~"ProfileLink" => object(#{
            from => text(), to => text(), sent => whole(), sent_bytes => whole(),
            received => whole(), joined => whole(), mean_ns => null_or(number()),
            least_ns => null_or(whole()), most_ns => null_or(whole()),
            error_ns => null_or(whole()), common_group => null_or(flag())
        }),
        ~"ProfileWindow" => object(#{
            from => whole(), width => whole(), columns => whole(), exact => flag(),
            running => list(number()), runnable => list(number()),
            schedulers => list(object(#{scheduler => whole(), awake => Shares})),
            nodes => list(object(#{node => whole(), running => list(number()),
                                   runnable => list(number())})),
            lanes => list(object(#{
                process => whole(), running => Shares, runnable => Shares, waiting => Shares,
                gc => Shares, intervals => null_or(list(list(whole())))
            })),
            sites => map(text()), names => map(text())
        }),
        ~"ProfileProcess" => object(Process),
        ~"ProfileOperation" => object(#{
            process => whole(), by => text(), node => text(), operation => text(), at => whole(),
            took => null_or(whole()), ok => null_or(flag()), text => text(),
            arguments => text(), group => null_or(text()),
            nodes => null_or(list(null_or(text()))), name => null_or(text()),
            of_process => null_or(text()), got_group => null_or(text()),
            got_nodes => null_or(list(null_or(text())))
        }),
        ~"ProfileBranch" => object(Process#{depth => whole(), omitted => whole()}),
        ~"ProfileFinding" => object(#{
            finding => text(), process => null_or(text()), weight => number(), text => text(),
            remedy => text(), threshold => text(), numbers => list(whole()),
            ranges => list(object(#{from => whole(), to => whole()})), evidence => map(any())
        }),
        ~"ProfilePath" => object(#{
            leads_to => null_or(text()), from => whole(), to => whole(), steps => whole(),
            kinds => Times,
            processes => list(object(#{
                process => text(), number => whole(), entry => text(), times => Times,
                ns => whole(), share => number(), gain_ns => whole()
            })),
            others => object(#{processes => whole(), ns => whole()}),
            nodes => list(object(#{node => text(), times => Times, ns => whole(),
                                   share => number()})),
            gain => object(#{
                more_schedulers_ns => whole(), faster_processes_ns => whole(),
                faster_messages_ns => whole(), faster_between_nodes_ns => whole(),
                what_is_waited_for_ns => whole(),
                speedup_of_schedulers => number()
            }),
            segments => list(object(#{
                kind => word([running, runnable, waiting, message, between]), process => text(),
                number => whole(), from => whole(), to => whole(), function => null_or(text()),
                sender => null_or(text()), sender_number => null_or(whole())
            }))
        }),
        ~"ProfileSums" => object(Sums),
        ~"ProfileLeader" => object(Sums#{process => text(), number => whole(), entry => text()}),
        ~"ProfileEnd" => object(#{
            key => text(), name => text(), entry => text(), processes => whole(),
            process => whole(), node => whole(), sent => whole(), sent_bytes => whole(),
            received => whole(), received_bytes => whole(), within => whole(),
            within_bytes => whole()
        }),
        ~"ProfileEdge" => object(#{from => text(), to => text(), count => whole(),
                                   bytes => whole()}),
        ~"ProfileAmount" => object(#{ends => whole(), edges => whole(), count => whole(),
                                     bytes => whole()}),
        ~"ProfilePeer" => object(#{process => whole(), name => text(), count => whole(),
                                   sum => whole()}),
        ~"ProfileWait" => object(#{
            function => whole(), site => text(), count => whole(), sum => whole(),
            mean => number(), deviation => number(), processes => whole(),
            waiters => list(ref(~"ProfilePeer")), wakers => whole(),
            waits_for => list(ref(~"ProfilePeer"))
        }),
        ~"ProfileCallGraph" => object(#{
            functions => list(object(Called#{
                function => whole(), name => text(), whole => null_or(object(Called))
            })),
            edges => list(list(whole())), names => map(text()), functions_left => whole(),
            edges_left => whole()
        }),
        ~"ProfileSource" => object(#{
            function => text(), file => null_or(text()), first => whole(), lines => list(text()),
            line => null_or(whole()), last => null_or(whole()),
            version => word([same, some, other, unknown]), why => null_or(text()),
            note => null_or(text())
        }),
        ~"ProfileFrame" => object(#{function => text(), ns => whole(),
                                    below => list(ref(~"ProfileFrame"))})
    }.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(Op, Args, _) -> answer_of(sderl_prof_viewer:own(), Op, Args).

-doc "The answer of a recording that is open beside others.".
-spec answer_of(sderl_prof_viewer:viewer(), atom(), map()) -> sderl_web_resource:result().
answer_of(Viewer, Op, Args) ->
    case numbers(Args) of
        {ok, Numbers} -> asked(Viewer, question(Op, Args, Numbers));
        error -> wrong()
    end.

question(profile, _, _) -> about;
question(profile_findings, _, _) -> findings;
question(profile_calls, Args, _) -> {calls, with_process(Args)};
question(profile_source, #{function := F}, _) -> {source, F};
question(profile_waits, Args, _) -> {waits, with_process(Args)};
question(profile_tree, Args, _) -> {tree, Args};
question(profile_process, #{process := P}, _) -> {process, P};
question(profile_messages, Args, _) -> {messages, Args};
question(profile_traffic, Args, _) -> {traffic, Args};
question(profile_communication, Args, _) -> {communication, Args};
question(profile_report, Args, _) -> {report, Args};
question(profile_routed, Args, _) -> {routed, Args};
question(profile_stays, Args, _) -> {stays, Args};
question(profile_path, Args, _) -> {path, with_process(Args)};
question(profile_window, Args, Numbers) -> {window, Args#{processes => Numbers}};
question(profile_arrows, Args, Numbers) -> {arrows, (with_process(Args))#{processes => Numbers}};
question(profile_operations, Args, Numbers) -> {operations, Args#{processes => Numbers}};
question(profile_processes, #{from := 0, to := ?MOST_NS} = Args, Numbers) ->
    {processes, (maps:without([from, to], Args))#{numbers => Numbers}};
question(profile_processes, Args, Numbers) -> {processes, Args#{numbers => Numbers}}.

with_process(Args) -> maps:merge(#{process => none}, Args).

numbers(#{processes := Texts}) ->
    Numbers = [N || Text <- Texts, {N, <<>>} <- [string:to_integer(Text)], N >= 1,
                    N =< ?MOST_NUMBER],
    case length(Numbers) =:= length(Texts) of
        true -> {ok, Numbers};
        false -> error
    end;
numbers(_) -> {ok, []}.

wrong() ->
    {error, bad_request,
     "processes is a list of numbers of processes with commas between them, such as 3,17: "
     "/api/v1/profile/processes lists them"}.

asked(Viewer, Question) ->
    case sderl_prof_viewer:ask(Viewer, Question) of
        {ok, Answer} -> {ok, Answer};
        {error, {No, _} = Why} when No =:= no_process; No =:= no_function ->
            {error, not_found, sderl_prof_view:format_error(Why)};
        {error, too_many} -> {error, too_large, sderl_prof_view:format_error(too_many)};
        {error, {cells, _} = Why} -> {error, too_large, sderl_prof_view:format_error(Why)};
        {error, Why} -> {error, bad_request, sderl_prof_view:format_error(Why)}
    end.

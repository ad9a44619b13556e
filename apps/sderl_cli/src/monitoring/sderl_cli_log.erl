%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_log).
-moduledoc """
`bin/sderl log`: events of the nodes' logs, from a running monitoring node.

It attaches to any node of the cluster, and asks the monitoring node that watches it: over that
node, because a monitoring node of `bin/sderl mon` listens nowhere.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

-define(CALL_MS, 15_000).
-define(FIND_MS, 5_000).
%% How often it looks for new events, and how many it takes at once.
-define(EVERY_MS, 500).
-define(PAGE, 500).
%% Events that are shown.
-define(LIMIT, 100).

-doc false.
-spec summary() -> string().
summary() -> "what the nodes of a watched cluster log: search it, follow it".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(command()).

-doc false.
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Parsed} ?= sderl_command:parse(Args, ["log"], command()),
        {ok, Seed, Options} ?= checked(Parsed),
        {ok, Cookie} ?= sderl_cli_attach:cookie(sderl_cli_attach:cookie_file(Parsed)),
        ok ?= sderl_cli_attach:attach(Seed, Cookie, "sderl-log"),
        {ok, Monitor} ?= monitor_of(Seed),
        shown(Monitor, Options, Parsed)
    else
        {wrong, Message} -> {usage, [Message, "\n\"bin/sderl log --help\" lists the options."]};
        Other -> Other
    end.

command() ->
    #{
        help =>
            """
            Prints what the nodes of a cluster have logged, the oldest first, as the monitoring node
            knows it that watches them ("bin/sderl mon", the demo's, or one of yours). The nodes of
            "bin/sderl demo" are found by name, without a cookie's file.

              bin/sderl log --seed a@host --follow
              bin/sderl log --seed a@host --level error --since 2h --text timeout
            """,
        arguments => [
            option(seed, "NODE@HOST", string, "any node of the cluster, or a monitoring node"),
            sderl_cli_attach:cookie_argument(),
            flag(follow, "go on with new events, until Ctrl-C"),
            option(text, "TEXT", string, "a part of the text, in capitals or not"),
            option(node, "NODE@HOST", string, "events of this node"),
            option(group, "GROUP", string, "events of nodes in this group"),
            option(level, "LEVEL", {atom, sderl_mon_log_message:levels()},
                   "this level or a more severe one"),
            option(module, "MODULE", string, "logged by this module, or M:F, or M:F/A"),
            option(since, "TIME", string,
                   "from then on: an age as 90s, 15m, 2h or 3d, or a time as "
                   "2026-11-27T08:00:00Z"),
            option(until, "TIME", string, "up to then, likewise"),
            option(limit, "N", {integer, [{min, 1}, {max, 1_000_000}]},
                   "so many at most (" ++ integer_to_list(?LIMIT) ++ ")"),
            flag(json, "one JSON object a line")
        ]
    }.

checked(#{seed := Text} = Parsed) ->
    maybe
        {ok, Seed} ?= seed(Text),
        {ok, From} ?= sderl_command:time(since, Parsed),
        {ok, To} ?= sderl_command:time(until, Parsed),
        Texts = #{Key => unicode:characters_to_binary(Value)
                  || Key := Value <- maps:with([text, node, group, module], Parsed)},
        Options = maps:merge(maps:with([level], Parsed), Texts#{from => From, to => To}),
        {ok, _} ?= sderl_mon_log_filter:new(Options),
        {ok, Seed, Options}
    else
        {wrong, _} = Wrong -> Wrong;
        {error, {bad_option, _, _} = Why} -> {wrong, sderl_mon_log:format_error(Why)}
    end;
checked(_) ->
    {wrong, ["--seed is missing: any node of the cluster, NAME@HOST",
             sderl_cli_attach:running("--seed")]}.

seed(Text) ->
    case sderl_cli_attach:node_name(Text) of
        {ok, Seed} -> {ok, Seed};
        {error, Message} -> {wrong, ["--seed: ", Message]}
    end.

%% ---------------------------------------------------------------- the monitoring node

%% The seed itself, or one that has a hidden link to it.
monitor_of(Seed) ->
    try
        case erpc:call(Seed, erlang, whereis, [sderl_mon_log], ?FIND_MS) of
            Pid when is_pid(Pid) -> {ok, {Seed, Seed}};
            undefined ->
                Hidden = erpc:call(Seed, erlang, nodes, [hidden], ?FIND_MS),
                watching(Seed, lists:sort(lists:delete(node(), Hidden)))
        end
    catch
        error:{erpc, Why} -> {error, io_lib:format("~ts does not answer: ~0tp", [Seed, Why])}
    end.

watching(Seed, Nodes) ->
    Answers = erpc:call(Seed, erpc, multicall,
                        [Nodes, erlang, whereis, [sderl_mon_log], ?FIND_MS], 2 * ?FIND_MS),
    case [Node || {Node, {ok, Pid}} <- lists:zip(Nodes, Answers), is_pid(Pid)] of
        [Node | _] -> {ok, {Seed, Node}};
        [] ->
            {error, io_lib:format("no monitoring node that keeps logs watches ~ts: start one with "
                                  "\"bin/sderl mon --seed ~ts\"", [Seed, Seed])}
    end.

ask({Seed, Seed}, Function, Args) ->
    erpc:call(Seed, sderl_mon_log, Function, Args, ?CALL_MS);
ask({Seed, Monitor}, Function, Args) ->
    erpc:call(Seed, erpc, call, [Monitor, sderl_mon_log, Function, Args, ?CALL_MS], 2 * ?CALL_MS).

%% ---------------------------------------------------------------- what is shown

shown(Monitor, Options, #{follow := Follow} = Parsed) ->
    Limit = maps:get(limit, Parsed, ?LIMIT),
    try
        #{last := Last, problem := Problem} = ask(Monitor, info, []),
        Events = page(Monitor, Options, Limit, []),
        ok = told(Problem),
        ok = print(Events, Parsed),
        case Follow of
            true ->
                _ = sderl_signals:tell(self()),
                follow(Monitor, Options, newest(Events, Last), Parsed);
            false -> ok
        end
    catch
        error:{erpc, Why} ->
            {error, io_lib:format("the monitoring node does not answer: ~0tp", [Why])};
        error:{exception, Why, _} ->
            {error, io_lib:format("the monitoring node cannot answer: ~0tP", [Why, 12])}
    end.

told(none) -> ok;
told(Problem) -> io:format(standard_error, "~ts~n", [sderl_visible:text(Problem)]).

%% The newest so many, the oldest first.
page(_, _, 0, Found) -> Found;
page(Monitor, Options, Left, Found) ->
    {ok, #{events := Events, next := Next}} =
        ask(Monitor, search, [Options#{limit => min(?PAGE, Left)}]),
    All = lists:reverse(Events) ++ Found,
    case Next of
        none -> All;
        _ -> page(Monitor, Options#{before => Next}, Left - length(Events), All)
    end.

follow(Monitor, Options, Last, Parsed) ->
    receive
        {sderl_signals, stop} -> ok
    after ?EVERY_MS ->
        #{last := Now} = ask(Monitor, info, []),
        Events = page(Monitor, Options#{'after' => Last}, 10 * ?PAGE, []),
        ok = print(Events, Parsed),
        follow(Monitor, Options, newest(Events, max(Now, Last)), Parsed)
    end.

%% Events that came during this look are shown by the next one.
newest([], Last) -> Last;
newest(Events, Last) -> max(Last, map_get(id, lists:last(Events))).

print([], _) -> ok;
print(Events, #{json := true}) ->
    io:put_chars([[sderl_cli_log_words:json(Event), $\n] || Event <- Events]);
print(Events, _) -> io:put_chars([sderl_cli_log_words:line(Event) || Event <- Events]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_chaos).
-moduledoc """
`bin/sderl chaos`: `m:sderl_chaos` on a running cluster, from outside, as a hidden node.

Nothing is killed before a person has typed `yes`, or without `--yes`. Ctrl-C ends it in order:
nothing more is killed, the agents are gone, the log is complete.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

-define(LEASE_MS, 10_000).
-define(INFO_MS, 5000).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() ->
    "kill processes, names, links and nodes of a running cluster, and see when they are back".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(arguments()).

-doc """
An error when something that was awaited was not back by the end, or may not have been, or when
nothing was killed because targets could not be looked for.
""".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Parsed} ?= sderl_command:parse(Args, ["chaos"], arguments()),
        {ok, Options} ?= checked(Parsed),
        ok ?= sderl_cli_chaos_log:check(maps:get(log, Parsed, undefined)),
        attached(Options)
    else
        {wrong, Message} -> {usage, [Message, "\n\"bin/sderl chaos --help\" lists the options."]};
        Other -> Other
    end.

arguments() ->
    #{
        help =>
            """
            Attaches to a running cluster as a hidden node, finds its nodes, kills the targets, and
            measures on each node how long it takes until the thing is back. Try it with --dry-run
            first.

              bin/sderl chaos --node a@host --target supervisor:my_sup --every 5s --dry-run
              bin/sderl chaos --node a@host --target 3*group:g --target link --log chaos.jsonl

            A target is one of these, with WEIGHT* before it if you like (1*):

              module:MODULE         processes whose first function is of the module
              supervisor:NAME       children of the supervisor of that local name
              find:MODULE:FUNCTION  processes of [{Key, Pid}], which the function gives
              name[:NAME]           the local name, or all local names
              global[:NAME]         names of global
              group:GROUP[/NAME]    names of an s_group
              link                  a connection between two of the nodes
              node                  a whole node, with --allow-halt

            Names are Erlang terms. Processes of kernel, stdlib, sasl and sderl are never killed,
            nor (but with --allow-halt) the first supervisors of applications. Ctrl-C ends it in
            order. The nodes of "bin/sderl demo" are found by name; the epmd of others by
            ERL_EPMD_PORT, and TLS is set by ERL_FLAGS, as for erl.
            """,
        arguments => [
            #{name => node, long => "-node", type => string, required => false,
              help => {"--node NODE@HOST", ["any node of the cluster"]}},
            sderl_cli_attach:cookie_argument(),
            #{
                name => target, long => "-target", type => string, action => append,
                required => false,
                help => {"--target T [--target T ...]", ["what is killed, see above"]}
            },
            option(nodes, "LIST", string,
                   "these nodes alone, with commas between them (all that are found)"),
            option(every, "TIME", string, "time between kills: 500ms, 5s, 2min (5s)"),
            option(scope, "S", string,
                   "cluster: a kill each time; node: one on every node each time (cluster)"),
            option(window, "FROM..TO", string,
                   "when to kill, counted from the start: 10s..60s; the first kill is one period "
                   "after FROM (0s.., until Ctrl-C)"),
            option(kills, "N", {integer, [{min, 1}]}, "limit: most kills in all"),
            option(at_once, "N", {integer, [{min, 1}]}, "limit: most things that are not back (1; "
                                                        "with --scope node the number of nodes)"),
            repeated(never, "NAME",
                     "limit: never this name, local, global or of a group; may be repeated"),
            repeated(never_node, "NODE", "limit: nothing on this node; may be repeated"),
            flag(library, "also the processes of the application sderl"),
            flag(allow_halt,
                 "whole nodes, and the first supervisors of applications, may be ended"),
            option(settle, "TIME", string,
                   "how long to wait for things to be back at the end (10s)"),
            option(seed, "N", integer, "seed: with the same things on the nodes it gives the same "
                                       "plan (random, and printed)"),
            flag(dry_run, "everything but the kills"),
            flag(yes, "do not ask"),
            option(log, "FILE", string, "the log, a line of JSON for each event; a new file")
        ]
    }.

repeated(Name, Shape, Help) ->
    (option(Name, Shape, string, Help))#{action => append}.

dashed(Name) -> lists:flatten(string:replace(atom_to_list(Name), "_", "-", all)).

%% Everything that can be refused is, before anything is attached to.

checked(Parsed) ->
    maybe
        ok ?= given(node, Parsed,
                    ["any node of the cluster, NAME@HOST", sderl_cli_attach:running("--node")]),
        ok ?= given(target, Parsed, "what is killed, such as supervisor:my_sup"),
        {ok, Node} ?= node_name("--node", maps:get(node, Parsed)),
        {ok, Targets} ?= each(fun sderl_cli_words:target/1, maps:get(target, Parsed)),
        ok ?= halts(Targets, Parsed),
        {ok, Every} ?= time(every, Parsed, "5s", 1),
        {ok, Settle} ?= time(settle, Parsed, "10s", 0),
        {ok, Window} ?= named("--window", sderl_cli_words:window(maps:get(window, Parsed, "0s.."))),
        {ok, Scope} ?= scope(maps:get(scope, Parsed, "cluster")),
        {ok, Never} ?= each(fun(Text) -> named("--never", sderl_cli_words:term(Text)) end,
                            maps:get(never, Parsed, [])),
        {ok, NeverNodes} ?= each(fun(Text) -> node_name("--never-node", Text) end,
                                 maps:get(never_node, Parsed, [])),
        {ok, Only} ?= only(Parsed),
        ok ?= sderl_command:may_ask(Parsed),
        Limits = maps:with([kills, at_once, library], Parsed),
        {ok, #{
            node => Node,
            cookie_file => sderl_cli_attach:cookie_file(Parsed),
            only => Only,
            settle => Settle,
            log => maps:get(log, Parsed, undefined),
            yes => maps:get(yes, Parsed) orelse maps:get(dry_run, Parsed),
            chaos => #{
                targets => Targets,
                every_ms => Every,
                window => Window,
                scope => Scope,
                seed => maps:get(seed, Parsed, rand:uniform(1_000_000)),
                dry_run => maps:get(dry_run, Parsed),
                allow_halt => maps:get(allow_halt, Parsed),
                limits => Limits#{never => Never, never_nodes => NeverNodes},
                lease_ms => ?LEASE_MS,
                report => self()
            }
        }}
    else
        {error, Message} -> {wrong, Message}
    end.

given(Key, Parsed, _) when is_map_key(Key, Parsed) -> ok;
given(Key, _, What) -> {error, ["--", dashed(Key), " is missing: ", What]}.

each(Fun, Words) -> each(Fun, Words, []).

each(_, [], Done) ->
    {ok, lists:reverse(Done)};
each(Fun, [Word | Words], Done) ->
    case Fun(Word) of
        {ok, Value} -> each(Fun, Words, [Value | Done]);
        {error, _} = Error -> Error
    end.

named(_, {ok, _} = Ok) -> Ok;
named(Option, {error, Why}) -> {error, [Option, ": ", Why]}.

node_name(Option, Text) -> named(Option, sderl_cli_attach:node_name(Text)).

only(#{nodes := Text}) ->
    each(fun(Word) -> node_name("--nodes", Word) end, sderl_bench_experiment:words(Text));
only(_) -> {ok, all}.

halts(Targets, #{allow_halt := false}) ->
    case [true || #{kind := node} <- Targets] of
        [] -> ok;
        _ ->
            {error, "--target node halts whole nodes, which nobody here restarts: say --allow-halt "
                    "if you want that"}
    end;
halts(_, _) ->
    ok.

time(Key, Parsed, Default, Min) ->
    Option = "--" ++ dashed(Key),
    case named(Option, sderl_cli_words:duration(maps:get(Key, Parsed, Default))) of
        {ok, Ms} when Ms < Min ->
            {error, [Option, " must be at least ", integer_to_list(Min), "ms"]};
        Other -> Other
    end.

scope("cluster") -> {ok, cluster};
scope("node") -> {ok, node};
scope(Other) -> {error, ["--scope \"", Other, "\": it is cluster or node"]}.

%% On the cluster

attached(#{node := Node, cookie_file := CookieFile, only := Only} = Options) ->
    maybe
        {ok, Cookie} ?= sderl_cli_attach:cookie(CookieFile),
        ok ?= sderl_cli_attach:attach(Node, Cookie, "sderl-chaos"),
        {Found, _} = Discovered = sderl_cli_attach:discover(Node),
        {ok, Nodes} ?= nodes_of(Only, Discovered),
        {ok, Limited} ?= spared(Options, Found, Nodes),
        Majority = majority_groups(Nodes, Limited),
        ok = say(header(Nodes, Limited)),
        _ = [say(io_lib:format("group ~0tp decides by majority~n", [Group])) || Group <- Majority],
        ok ?= agreed(Limited),
        logged(Limited, Nodes, Majority)
    end.

%% A name that is mistyped would protect nothing.
spared(#{chaos := #{limits := #{never_nodes := Never} = Limits} = Chaos} = Options, Found, Nodes) ->
    case Never -- Found of
        [] ->
            {ok, Options#{chaos := Chaos#{
                limits := Limits#{never_nodes := [Node || Node <- Never, lists:member(Node, Nodes)]}
            }}};
        [Node | _] ->
            {error, io_lib:format("--never-node: ~ts is not in the cluster of --node, or cannot be "
                                  "reached; found: ~ts", [Node, names(Found)])}
    end.

%% The target groups that decide by majority: a side without one registers nothing.
majority_groups(Nodes, #{chaos := #{targets := Targets}}) ->
    Wanted = [Group || #{group := {s_group, Group}} <- Targets],
    Answers = case Wanted of
        [] -> [];
        _ -> erpc:multicall(Nodes, s_group, info, [], ?INFO_MS)
    end,
    lists:usort([
        Group
     || {ok, [_ | _] = Info} <- Answers,
        #{group := Group, consistency := majority} <- proplists:get_value(groups, Info, []),
        lists:member(Group, Wanted)
    ]).

logged(#{chaos := Chaos, log := File} = Options, Nodes, Majority) ->
    maybe
        {ok, Log} ?= sderl_cli_chaos_log:open(File),
        %% From here on this process gets Ctrl-C. (Tests run without the program that passes it on.)
        _ = sderl_fleet_task:attempt(fun() -> sderl_signals:tell(self()) end),
        Result = started(sderl_chaos:start(Chaos#{nodes => Nodes}), Nodes,
                         Options#{majority => Majority}, Log),
        first_error([Result, sderl_cli_chaos_log:close(Log)])
    end.

nodes_of(all, {Found, Lost}) ->
    _ = [say(["left out, it cannot be reached: ", atom_to_list(Node), "\n"]) || Node <- Lost],
    {ok, Found};
nodes_of(Only, {Found, _}) ->
    case Only -- Found of
        [] -> {ok, lists:usort(Only)};
        [Node | _] ->
            {error, io_lib:format("--nodes: ~ts is not in the cluster of --node, or cannot be "
                                  "reached; found: ~ts", [Node, names(Found)])}
    end.

names(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).

header(Nodes, #{chaos := #{targets := Targets, every_ms := Every, window := {From, To},
                           scope := Scope, seed := Seed, dry_run := Dry, limits := Limits}}) ->
    [
        io_lib:format("~w nodes: ~ts~n", [length(Nodes), names(Nodes)]),
        io_lib:format("targets: ~ts~n",
                      [lists:join(", ",
                                  [[weight(W), "*", C] || #{weight := W, class := C} <- Targets])]),
        io_lib:format("one ~ts each ~ts~ts, from ~ts ~ts; seed ~w~n", [
            case Dry of true -> "that would be killed"; false -> "kill" end,
            seconds(Every),
            case Scope of node -> " on every node"; cluster -> "" end,
            seconds(From),
            case To of infinity -> "until Ctrl-C"; _ -> ["to ", seconds(To)] end,
            Seed
        ]),
        io_lib:format("limits: ~ts~n", [limits(Limits, Scope)])
    ].

weight(W) -> io_lib:format("~w", [W]).

seconds(Ms) -> io_lib:format("~ts s", [float_to_list(Ms / 1000, [short])]).

limits(Limits, Scope) ->
    Default =
        case Scope of
            cluster -> "1";
            node -> "one a node"
        end,
    lists:join(", ", [
        ["not back at once: ", case Limits of #{at_once := N} -> weight(N); _ -> Default end],
        ["kills: ", case Limits of #{kills := N} -> weight(N); _ -> "no limit" end]
        | [io_lib:format("never ~0tp", [Name])
           || Name <- maps:get(never, Limits) ++ maps:get(never_nodes, Limits)]
    ]).

agreed(#{yes := true}) -> ok;
agreed(_) -> sderl_command:confirm("Kill these?", "nothing was killed").

started({ok, Service}, Nodes, #{settle := Settle, chaos := Chaos, majority := Majority}, Log) ->
    Start = sderl_cli_chaos_log:options(Chaos#{nodes => Nodes, majority_groups => Majority}),
    Written = sderl_cli_chaos_log:write(Log, start, Start),
    Monitor = monitor(process, Service),
    Stopped =
        case Written of
            ok ->
                sderl_progress:watching("chaos", fun look/1, Service,
                                        fun() -> follow(Service, Monitor, Settle, Log) end);
            {error, _} = Error -> Error
        end,
    ended(Stopped, Service, Log);
started({error, Reason}, _, _, _) ->
    {error, sderl_chaos:text(Reason)}.

look(Service) ->
    try
        sderl_chaos:status(Service)
    of
        #{kills := Kills, not_back := Away, next_ms := Next, now_ms := Now, silent := Silent} ->
            {
                [
                    io_lib:format("~w kills, ~w not back", [Kills, Away]),
                    [io_lib:format(", next in ~w s", [max(0, Next - Now + 999) div 1000])
                     || is_integer(Next)],
                    [[", silent: ", names(Silent)] || Silent =/= []]
                ],
                Service
            }
    catch
        exit:_ -> {"ending", Service}
    end.

%% Until it is over and all is back, Ctrl-C, or the log cannot be written.
follow(Service, Monitor, Settle, Log) ->
    receive
        {sderl_chaos, Service, over} ->
            _ = erlang:send_after(Settle, self(), {settle, Service}),
            settle(Service, Monitor, Settle, Log);
        {settle, Service} ->
            ok;
        {sderl_chaos, Service, sure} ->
            settle(Service, Monitor, Settle, Log);
        {sderl_chaos, Service, {What, Kill} = Event} ->
            ok = say([sderl_cli_chaos_log:line(Event), "\n"]),
            case sderl_cli_chaos_log:write(Log, What, sderl_cli_chaos_log:kill(Kill)) of
                ok when What =:= back -> settle(Service, Monitor, Settle, Log);
                ok -> follow(Service, Monitor, Settle, Log);
                {error, _} = Error -> Error
            end;
        {sderl_signals, stop} ->
            stopped;
        {'DOWN', Monitor, process, Service, Reason} ->
            {error, io_lib:format("the service ended: ~0tP", [Reason, 12])}
    end.

%% The run ends when the last thing is back and nothing more is to be killed.
settle(Service, Monitor, Settle, Log) ->
    case status(Service) of
        #{next_ms := over, not_back := 0} -> ok;
        _ -> follow(Service, Monitor, Settle, Log)
    end.

ended(Stopped, Service, Log) ->
    Status = status(Service),
    case sderl_fleet_task:attempt(fun() -> sderl_chaos:stop(Service) end) of
        {ok, Kills} ->
            Told = rest(Service, Log),
            Away = [Kill || #{awaited := true, back_us := undefined} = Kill <- Kills],
            Missing = [sderl_cli_chaos_log:write(Log, not_back, sderl_cli_chaos_log:kill(Kill))
                       || Kill <- Away],
            Sums = #{kills => length(Kills), not_back => length(Away),
                     skipped => maps:get(skipped, Status, #{})},
            End = sderl_cli_chaos_log:write(Log, 'end', Sums),
            ok = say(summary(Kills, Status)),
            first_error([worth(Stopped), Told | Missing] ++
                        [End, verdict(Stopped, Kills, Away, Status)]);
        {error, {_, Reason}} ->
            first_error([worth(Stopped),
                         {error, io_lib:format("the service ended: ~0tP", [Reason, 12])}])
    end.

worth(stopped) -> ok;
worth(Other) -> Other.

status(Service) ->
    case sderl_fleet_task:attempt(fun() -> sderl_chaos:status(Service) end) of
        {error, _} -> #{};
        Status -> Status
    end.

%% Messages that came before it stopped.
rest(Service, Log) ->
    receive
        {sderl_chaos, Service, {What, Kill} = Event} ->
            ok = say([sderl_cli_chaos_log:line(Event), "\n"]),
            first_error([sderl_cli_chaos_log:write(Log, What, sderl_cli_chaos_log:kill(Kill)),
                         rest(Service, Log)]);
        {sderl_chaos, Service, _} ->
            rest(Service, Log)
    after 0 -> ok
    end.

summary(Kills, Status) ->
    Verb =
        case Kills of
            [#{dry := true} | _] -> "would have been killed";
            _ -> "killed"
        end,
    [
        io_lib:format("~w ~ts~ts~n", [length(Kills), Verb, sderl_cli_chaos_log:recovery(Kills)]),
        skipped(maps:get(skipped, Status, #{})),
        [
            io_lib:format("~ts on ~ts: ~0tP~n", [class(Class), Node, Why, 12])
         || {Node, Class, Why} <- maps:get(problems, Status, [])
        ]
    ].

class(Class) when is_binary(Class) -> Class;
class(Class) -> io_lib:format("~0tp", [Class]).

skipped(Skipped) ->
    Words = [
        {at_once, "too many were not back"},
        {nothing_there, "there was nothing of the targets"},
        {missed, "it had gone by itself"},
        {unanswered, "the node did not say whether it was done"},
        {late, "the nodes answered too slowly, or it was stopped"}
    ],
    [io_lib:format("~w times no kill: ~ts~n", [N, Why])
     || {Key, Why} <- Words, {ok, N} <- [maps:find(Key, Skipped)], N > 0].

%% A run that is stopped waits for nothing.
verdict(stopped, _, _, _) ->
    ok;
verdict(_, _, [], #{unsure := Unsure}) when Unsure > 0 ->
    {error,
     io_lib:format("~w times a node did not say whether it killed, nor later whether that is back",
                   [Unsure])};
verdict(_, [], _, #{problems := [_ | _]}) ->
    {error, "nothing was killed, because of the above"};
verdict(_, _, [], _) ->
    ok;
verdict(_, _, Away, _) ->
    {error, [
        io_lib:format("~w not back by the end:", [length(Away)]),
        [["\n", sderl_cli_chaos_log:line({kill, Kill})] || Kill <- lists:sublist(Away, 20)]
    ]}.

first_error([]) -> ok;
first_error([ok | Results]) -> first_error(Results);
first_error([{error, _} = Error | _]) -> Error.

%% The progress bar is drawn again below the text.
say(Text) ->
    ok = sderl_progress:done(),
    io:put_chars(sderl_visible:text(Text)).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_experiment).
-moduledoc """
`bin/sderl bench im`: the instant messenger in its modes, with and without kills, in turn.
`m:sderl_im` says what they are and what the metrics mean.

No message may be lost, and no conversation may end early, except where its own session was killed;
every name must be back at the end, and nothing may be left over. Otherwise the command fails after
the tables.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([points/1, table/1, verdict/1, alone/1]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, numbers/4, real/4, chosen/4]).

-define(MOST_NODES, 10_000).
-define(DAY_MS, 86_400_000).

-doc false.
-spec summary() -> string().
summary() ->
    "an instant messenger that goes on when its processes are killed, on a full mesh and in "
    "s_groups".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Clients log in, begin conversations and send messages; routers, servers, replicated
            databases, client monitors and sessions serve them, on a full mesh with global (rd) or
            in s_groups with routes between them (rsd). Conversations are as published (13 to 60
            messages, a wait of 1 to 20 s before each), with waits divided by --speed. With
            --chaos-every-ms processes of the service are killed while they talk.
            """,
        arguments =>
            [
                option(mode, "LIST", string, "rsd", "modes, with commas between them: rd, rsd"),
                option(servers, "LIST", string, "4",
                       "server nodes; several numbers with commas between them are a series"),
                option(routers, "N", integer, 2, "router nodes; with half as many as servers each "
                                                 "server's replicas are on another one"),
                option(clients, "C", integer, 200,
                       "clients in all; half as many conversations at a time"),
                option(client_nodes, "N", integer, 2, "nodes that the clients are on"),
                option(seconds, "S", integer, 20, "measured time"),
                option(warmup, "S", integer, 5, "time before it, not measured"),
                option(speed, "F", string, "20", "divides all waits of conversations"),
                option(threshold_us, "US", integer, 10_000,
                       "a message delivered within it counts for the quality of service"),
                option(chaos_every_ms, "LIST", string, "0", "one kill in each such time; 0: none"),
                option(chaos_classes, "CLASSES", string, "all",
                       "what is killed: all, or databases alone"),
                option(timeout_ms, "MS", integer, 1000,
                       "after it a client asks again, then after twice as long"),
                option(seed, "N", integer, 1, "seed of conversations and kills")
            ] ++ [Option
                  || #{name := Name} = Option <-
                         sderl_bench_series:options(#{nodes => "", repeat => 1}),
                     Name =/= nodes, Name =/= compare] ++
                [
                    #{
                        name => compare, long => "-compare", type => boolean, default => false,
                        help => {"[--compare]",
                                 ["both modes, and runs with kills also without them"]}
                    },
                    sderl_bench_profile:option()
                ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{mode := Modes, servers := Servers, chaos_every_ms := Every, chaos_classes := Classes,
        compare := Compare} = Options) ->
    maybe
        {ok, ModeList} ?= chosen("--mode", "mode", Modes, sderl_im:modes()),
        {ok, ServerList} ?= numbers("--servers", Servers, 1, ?MOST_NODES),
        {ok, EveryList} ?= numbers("--chaos-every-ms", Every, 0, ?DAY_MS),
        {ok, [ClassesChecked]} ?= chosen("--chaos-classes", "choice", Classes, [all, databases]),
        ok ?= at_least(1,
                       [routers, clients, client_nodes, seconds, threshold_us, timeout_ms, repeat],
                       Options),
        ok ?= at_least(0, [warmup], Options),
        ok ?= at_most(
            [{routers, ?MOST_NODES},
             {client_nodes, ?MOST_NODES},
             {clients, 10_000_000},
             {seconds, 86_400},
             {warmup, 86_400},
             {threshold_us, 1_000_000_000},
             {timeout_ms, 600_000}],
            Options
        ),
        {ok, Speed} ?= real("--speed", maps:get(speed, Options), 0.1, 100_000),
        ok ?= enough(Options, ServerList),
        ok ?= soon_enough(Options, lists:max(EveryList)),
        ok ?= fits(Options, lists:max(ServerList)),
        Full = Options#{
            mode := case Compare of true -> sderl_im:modes(); false -> ModeList end,
            servers := lists:uniq(ServerList),
            chaos_every_ms :=
                lists:uniq(case Compare of true -> [0 | EveryList]; false -> EveryList end),
            chaos_classes := ClassesChecked,
            speed := Speed
        },
        ok ?= sderl_bench_profile:check(length(points(Full)) * map_get(repeat, Full), Full),
        {ok, Full}
    else
        {ok, [_, _ | _]} -> {error, "--chaos-classes takes one choice"};
        Error -> Error
    end.

enough(#{routers := Routers, clients := Clients, client_nodes := Nodes}, Servers) ->
    case {Routers > lists:min(Servers), Clients < 2 * Nodes} of
        {true, _} ->
            {error,
             io_lib:format("--routers ~w: that many need as many servers, and --servers has ~w",
                           [Routers, lists:min(Servers)])};
        {_, true} ->
            {error, io_lib:format("--clients ~w: each of ~w client nodes needs two; give more, or "
                                  "less --client-nodes", [Clients, Nodes])};
        _ -> ok
    end.

soon_enough(#{seconds := Seconds}, Every) when Every > 1000 * Seconds ->
    {error, io_lib:format("--chaos-every-ms ~w: the first kill would be after the end; give more "
                          "than --seconds ~w", [Every, Seconds])};
soon_enough(_, _) ->
    ok.

fits(#{routers := Routers, client_nodes := Clients}, Servers) ->
    case sderl_fleet:fits(Routers + Clients + Servers) of
        ok -> ok;
        {error, Reason} ->
            {error, io_lib:format("--servers ~w, --routers ~w, --client-nodes ~w: ~ts", [
                Servers, Routers, Clients, sderl_bench_reason:text(Reason)
            ])}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{repeat := Repeat} = Options, Output) ->
    maybe
        Show = fun(Runs) ->
            sderl_bench_output:say(Output, ["\n", title(Options), "\n\n", table(Runs)])
        end,
        Run = fun(Params, Label) ->
            maybe
                {ok, #{delivered_per_min := PerMin, qos_pct := Qos} = Metrics} ?=
                    sderl_bench_reason:said(im, fun sderl_im:text/1, sderl_im:run(Params, Label)),
                sderl_bench_output:say(Output, [
                    string:pad([Label, kills(Params)], 44), sderl_table:number(PerMin),
                    " delivered/min, QoS ",
                    sderl_table:number(Qos), " %\n"
                ]),
                {ok, Metrics}
            end
        end,
        ok = sderl_bench_output:say(Output, [growing(Options), alone(Options)]),
        {ok, All} ?= sderl_bench_series:run(im, points(Options), Repeat, Run, Show, Output),
        verdict(All)
    end.

growing(#{warmup := Warmup} = Options) ->
    case sderl_im:ramp_s(Options) of
        Ramp when Ramp > Warmup ->
            io_lib:format("Conversations begin one after the other, for ~ts s; --warmup is ~w s: "
                          "what is measured grows at first.\n",
                          [sderl_table:number(Ramp), Warmup]);
        _ ->
            ""
    end.

-doc "A note where the replicas of some servers are on the same server.".
-spec alone(#{routers := pos_integer(), servers := [pos_integer()], atom() => term()}) ->
    unicode:chardata().
alone(#{servers := ServerList, routers := Routers}) ->
    [
        io_lib:format("With ~w servers and ~w routers ~w of the servers ~ts the only one of a "
                      "router: main copies and replicas are on the same node.\n",
                      [Servers, Routers, Alone, case Alone of 1 -> "is"; _ -> "are each" end])
     || Servers <- ServerList, Alone <- [sderl_im:alone(#{servers => Servers, routers => Routers})],
        Alone > 0
    ].

kills(#{chaos := none}) -> "";
kills(#{chaos := #{every_ms := Ms}}) -> io_lib:format(", a kill every ~w ms", [Ms]).

title(#{clients := Clients, speed := Speed, repeat := Repeat, seconds := Seconds}) ->
    [
        io_lib:format("Instant messenger: ~ts clients, ~w s, waits divided by ~ts", [
            sderl_table:number(Clients), Seconds, sderl_table:number(Speed)
        ]),
        [io_lib:format(", ~w turns: median (least..greatest)", [Repeat]) || Repeat > 1],
        "; ",
        sderl_bench_machine:text()
    ].

-doc "What is run: each mode with each number of servers, with each rate of kills.".
-spec points(#{atom() => term()}) -> [sderl_im:params()].
points(#{mode := Modes, servers := ServerList, chaos_every_ms := EveryList,
         chaos_classes := Classes, warmup := Warmup} = Options) ->
    #{routers := Routers, client_nodes := ClientNodes} = Options,
    Common = (maps:with([routers, clients, client_nodes, seconds, speed, threshold_us, timeout_ms,
                         seed, prof], Options))#{warmup_s => Warmup},
    [
        Common#{
            mode => Mode,
            servers => Servers,
            nodes => Servers + Routers + ClientNodes,
            chaos => case Every of 0 -> none; _ -> #{every_ms => Every, classes => Classes} end
        }
     || Servers <- ServerList, Every <- EveryList, Mode <- Modes
    ].

-doc "A line for each point.".
-spec table([sderl_bench_series:run()]) -> unicode:chardata().
table(Runs) ->
    sderl_table:text(
        ["", "servers", "kill every", "delivered/min", "QoS %", "p50 us", "p99 us", "kills",
         "back p50 ms", "p99 ms", "conversations", "killed", "broken", "messages lost",
         "links most", "total", "CPU us/message"],
        [row(Params, Medians, Runs) || {Params, Medians} <- sderl_bench_series:medians(Runs)]
    ).

row(#{mode := Mode, servers := Servers, chaos := Chaos} = Params, Medians, Runs) ->
    Mine = sderl_bench_series:metrics(Params, Runs),
    Spread = fun(Key) -> sderl_table:spread([maps:get(Key, M, undefined) || M <- Mine]) end,
    Middle = fun(Path) -> sderl_table:number(middle(Path, Medians)) end,
    [
        atom_to_list(Mode),
        integer_to_list(Servers),
        case Chaos of none -> "-"; #{every_ms := Ms} -> [sderl_table:number(Ms), " ms"] end,
        Spread(delivered_per_min),
        Spread(qos_pct)
    ] ++
        [
            Middle(Path)
         || Path <- [
             [latency_us, p50], [latency_us, p99], [kills], [recovery_ms, p50], [recovery_ms, p99],
             [conversations], [lost_conversations],
             [broken_conversations_not_killed], [lost_messages], [links_per_node_max],
             [links_total], [cpu_us_per_op]
         ]
        ].

middle([Key | Keys], Map) ->
    case {Map, Keys} of
        {#{Key := {Median, _, _}}, []} -> Median;
        {#{Key := Inner}, [_ | _]} -> middle(Keys, Inner);
        {_, _} -> undefined
    end.

-doc "The conditions of every run; an error if one does not hold.".
-spec verdict([sderl_bench_series:run()]) -> ok | {error, sderl_command:text()}.
verdict(Runs) ->
    Wrong = [
        {Mode, Text, Count}
     || #{params := #{mode := Mode}, metrics := Metrics} <- Runs,
        {Key, Text} <- [
            {lost_messages, "messages were lost"},
            {broken_conversations_not_killed, "conversations ended whose session was not killed"},
            {not_back, "things that were killed did not come back"},
            {names_missing, "names did not come back"},
            {clients_left, "clients could not log out"},
            {rows_left, "rows were left in the databases"},
            {processes_left, "client monitors and sessions were left"},
            {names_left, "names were left"}
        ],
        Count <- [maps:get(Key, Metrics)],
        Count =/= 0
    ],
    Idle = [Mode || #{params := #{mode := Mode, chaos := #{}}, metrics := #{kills := 0}} <- Runs],
    case Wrong of
        [] when Idle =/= [] ->
            {error,
             io_lib:format("~ts: nothing was killed; give more --seconds, or less --chaos-every-ms",
                           [hd(Idle)])};
        [] -> ok;
        [{Mode, Text, undefined} | _] ->
            {error,
             io_lib:format("~ts: whether ~ts is not known: a node did not answer", [Mode, Text])};
        [{Mode, Text, Count} | _] -> {error, io_lib:format("~ts: ~w ~ts", [Mode, Count, Text])}
    end.

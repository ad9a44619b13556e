%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_im).
-moduledoc """
The common part of the claims about the messenger (C8, C9, C12): their points, and the table of
them.
""".

-export([free/3, killed/3, watched/3, stages/1]).
-export([modes/0, name/1, stage/2, table/2, notes/0]).

-import(sderl_claim_points, [cell/2, scaled/2, text/1, text/2]).

-type mode() :: rd | rsd.

%% A message that is delivered within so many microseconds is in time.
-define(THRESHOLD_US, 10_000).

%% ---------------------------------------------------------------- what to measure

-doc "Without failures, on so many servers with one router.".
-spec free(sderl_reproduce_scale:scale(), mode(), Servers :: pos_integer()) -> sderl_claim:point().
free(#{im := #{seconds := Seconds} = Im}, Mode, Servers) ->
    point(Im, Mode, {Servers, 1}, Seconds, #{}).

-doc "With failures, or with none for comparison.".
-spec killed(sderl_reproduce_scale:scale(), mode(),
             none | {all | databases, Seconds :: number()}) -> sderl_claim:point().
killed(#{im := #{chaos_servers := Servers, chaos_routers := Routers, chaos_seconds := Seconds,
                 compressed := By} = Im}, Mode, Stage) ->
    Chaos = case Stage of
        none -> none;
        {Classes, EveryS} -> #{classes => Classes, every_ms => max(1, round(1000 * EveryS / By))}
    end,
    point(Im, Mode, {Servers, Routers}, Seconds, #{chaos => Chaos}).

-doc "Without failures, on as many servers as those with, with monitoring as `Asked`.".
-spec watched(sderl_reproduce_scale:scale(), mode(), Asked :: #{monitoring => on}) ->
    sderl_claim:point().
watched(#{im := #{seconds := Seconds, chaos_servers := Servers, chaos_routers := Routers} = Im,
          pairs := Pairs}, Mode, Asked) ->
    (point(Im, Mode, {Servers, Routers}, Seconds, Asked))#{least_runs => Pairs}.

point(#{clients := Each, client_nodes := ClientNodes, speed := Speed, warmup_s := WarmupS}, Mode,
      {Servers, Routers}, Seconds, Asked) ->
    #{
        workload => im,
        params => maps:merge(#{
            mode => Mode, servers => Servers, routers => Routers, clients => Each * Servers,
            client_nodes => ClientNodes, seconds => Seconds, warmup_s => WarmupS, speed => Speed,
            threshold_us => ?THRESHOLD_US, chaos => none, monitoring => off
        }, Asked),
        fixed_s => Seconds + WarmupS,
        work_s => 3 + 0.15 * (Servers + Routers + ClientNodes) + 0.003 * Each * Servers
    }.

-doc """
The published failures, as far as the scale goes through them: random ones and those of databases,
each with its period in seconds.
""".
-spec stages(sderl_reproduce_scale:scale()) -> [{all | databases, number()}].
stages(#{im := #{random_s := Random, database_s := Databases}}) ->
    [{all, S} || S <- Random] ++ [{databases, S} || S <- Databases].

%% ---------------------------------------------------------------- pages

-doc "The modes.".
-spec modes() -> [mode()].
modes() -> [rd, rsd].

-doc "The name of a mode.".
-spec name(mode()) -> unicode:chardata().
name(rd) -> "RD, one cluster with global";
name(rsd) -> "RSD, s_groups".

-doc "The kills of a point in words, with the period that they really had.".
-spec stage(Chaos :: term(), short | long) -> unicode:chardata().
stage(#{<<"every_ms">> := Ms} = Chaos, Length) ->
    What = case Chaos of #{<<"classes">> := <<"databases">>} -> "databases"; _ -> "anything" end,
    case Length of
        short -> io_lib:format("~ts every ~ts s", [What, sderl_claim_load:percent(Ms / 1000)]);
        long ->
            io_lib:format("a kill of ~ts every ~ts s", [What, sderl_claim_load:percent(Ms / 1000)])
    end;
stage(_, _) ->
    "no kills".

-doc "A table with a row for each of these points.".
-spec table(unicode:chardata(), [sderl_claim_points:group()]) -> sderl_claim:table().
table(Title, Groups) ->
    #{
        title => text(Title),
        header => [
            <<"messenger">>, <<"servers">>, <<"routers">>, <<"clients">>, <<"kills">>, <<"runs">>,
            <<"delivered a minute">>, <<"in time, %">>, <<"p50, ms">>, <<"p99, ms">>,
            <<"conversations">>, <<"lost">>, <<"of these not killed">>,
            <<"messages lost with them">>, <<"other messages lost">>, <<"killed processes">>,
            <<"recovery p50, ms">>, <<"p99, ms">>, <<"max, ms">>,
            <<"processor, %">>, <<"CPU µs per message"/utf8>>,
            <<"messages between nodes per message">>, <<"links per node, most">>
        ],
        rows => [
            [
                text(string:uppercase(maps:get(<<"mode">>, Params, <<"?">>))),
                number(Params, <<"servers">>), number(Params, <<"routers">>),
                number(Params, <<"clients">>),
                text(stage(maps:get(<<"chaos">>, Params, none), short)),
                text("~w", [length(Runs)])
                | [cell(Group, What)
                   || What <- [
                       [delivered_per_min], [qos_pct], scaled([latency_us, p50], 0.001),
                       scaled([latency_us, p99], 0.001), [conversations], [lost_conversations],
                       [broken_conversations_not_killed], [killed_messages], [lost_messages],
                       [kills],
                       [recovery_ms, p50], [recovery_ms, p99], [recovery_ms, max], [cpu_pct],
                       [cpu_us_per_op], [messages_per_op], [links_per_node_max]
                   ]]
            ]
         || #{params := Params, runs := Runs} = Group <- Groups
        ]
    }.

number(Params, Key) -> text(sderl_table:number(maps:get(Key, Params, undefined))).

-doc "The notes for the reader on all these points.".
-spec notes() -> [binary()].
notes() ->
    [
        <<"One machine instead of a host for each node, and no delay of a network. Clients talk as "
          "in the published model, 13 to 60 messages in a conversation, with waiting times that "
          "are divided by a "
          "factor so that few clients send as much as many; so throughput is what the clients ask "
          "for, unless the processor is at its end.">>,
        text("A message is in time if it is delivered in ~ts ms.",
             [sderl_claim_load:percent(?THRESHOLD_US / 1000)])
    ].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im).
-moduledoc """
An instant messenger: clients log in, begin conversations with one another, send messages, and
finish. Routers take the requests of clients; servers have the databases, client monitors and
sessions;
each database has a replica on another server of the same router, if there is one.
`m:sderl_im_layout` describes the places of the processes, `m:sderl_im_sup` the supervisors,
`m:sderl_im_db` how databases recover; the guide is `docs/reliable-applications.md`.

| mode | |
|---|---|
| `rd` | reliable: a full mesh of all nodes, names in `m:global` |
| `rsd` | reliable and scalable: s_groups, names in them, the library's routes between them |

Both are the same program, but for the groups. Traffic is as published (`m:sderl_im_traffic`), with
all waits divided by `speed`.

## Metrics

| metric | meaning |
|---|---|
| `delivered_per_min` | messages acknowledged to their senders in the measured time, in a minute |
| `sent`, `delivered` | messages sent in the measured time; those of them that were acknowledged, whenever |
| `qos_pct` | those of `sent` that were delivered within `threshold_us`, in percent |
| `latency_us` | `p50`, `p95`, `p99`: half the time from sending to the acknowledgement, within 1.6 %, of messages sent in the measured time |
| `sent_all`, `delivered_all`, `again`, `twice` | of the whole run: messages, those acknowledged, those sent again, those that came twice and were taken once |
| `killed_messages` | not acknowledged, in a conversation whose session was killed; of orders to kill that no node answered (`unanswered` in `kills_skipped`) each may have killed one |
| `lost_messages` | not acknowledged otherwise: 0, else something is wrong |
| `conversations`, `finished_conversations`, `cut_conversations` | begun; finished; finished early as the run was over |
| `lost_conversations` | ended otherwise |
| `broken_conversations_not_killed` | those of them whose session was not killed: 0, else something is wrong |
| `refused` | conversations that did not come about, by reason |
| `kills`, `kills_by_class` | what chaos killed, by class (`m:sderl_im_find`) |
| `recovery_ms` | `p50`, `p99`, `max`: from a kill until the thing was back, sessions left out, which do not come back |
| `recovery_ms_by_class` | the same for each class |
| `not_back` | things that were not back in the end |
| `kills_skipped`, `kill_problems` | kills that were due and did not come about, by reason; what went wrong with any (`t:sderl_chaos:status/0`) |
| `names_missing` | names that after the last kill's recovery were not there, or not the same on all nodes that share them |
| `clients_left`, `rows_left`, `processes_left`, `names_left` | after the end: clients that could not log out, rows in databases, client monitors and sessions, registered names; `undefined` where a node did not answer |
| `watched` | with `monitoring`: what was seen, `t:sderl_bench_watch:seen/0` |
| `timeline` | for each second `t_s`, messages `delivered`, `kills` |
| others | as in `m:sderl_bench_meter`, of all nodes, in the measured time, what kills and restarts cost included and the agents of `m:sderl_chaos`; `..._per_op` for each message delivered in it |

Source: RD-IM and RSD-IM of the RELEASE project; Chechina et al., *Evaluating Scalable Distributed
Erlang*, IEEE TPDS 2017, section 5.4.
""".

-export([run/2, defaults/0, modes/0, ramp_s/1, alone/1, text/1, metrics/2]).
-export_type([params/0, metrics/0]).

-doc """
`servers` and `routers` are nodes, at least as many servers as routers, and twice as many for every
server to have another one for its replicas (`alone/1`); `clients` in all, on `client_nodes` nodes,
two at least on each. `speed` divides all waits of the published conversations; `warmup_s` should
not be less than `ramp_s/1`. `timeout_ms`: after which a client asks again for the first time.
`classes` of `chaos`: `all`, or `databases` alone. `monitoring`: whether all nodes are watched
meanwhile, `m:sderl_bench_watch`. Missing keys have the values of `defaults/0`.
""".
-type params() :: #{
    mode := sderl_im_layout:mode(),
    servers => pos_integer(),
    routers => pos_integer(),
    clients => pos_integer(),
    client_nodes => pos_integer(),
    seconds => pos_integer(),
    warmup_s => number(),
    speed => number(),
    threshold_us => pos_integer(),
    chaos => none | #{every_ms := pos_integer(), classes => all | databases},
    seed => term(),
    timeout_ms => pos_integer(),
    monitoring => off | on,
    atom() => term()
}.

-doc "See the table above.".
-type metrics() :: #{atom() => term()}.

%% How many of the conversations that should not have ended are shown.
-define(SHOWN, 10).

-doc "The modes.".
-spec modes() -> [sderl_im_layout:mode()].
modes() -> [rd, rsd].

-doc "The defaults of parameters that are not given.".
-spec defaults() -> #{atom() => term()}.
defaults() ->
    #{
        servers => 4,
        routers => 2,
        clients => 200,
        client_nodes => 2,
        seconds => 20,
        warmup_s => 5,
        speed => 20,
        threshold_us => 10_000,
        chaos => none,
        seed => 1,
        timeout_ms => 1000,
        monitoring => off
    }.

-doc """
Starts the nodes, lets the clients talk, and stops the nodes. `Label` stands before the progress. A
reason is a term for `sderl_papers_reason:text/1`, those of the messenger itself `{im, Reason}`: see
`text/1`.
""".
-spec run(params(), Label :: unicode:chardata()) -> {ok, metrics()} | {error, term()}.
run(Given, Label) ->
    #{servers := Servers, routers := Routers, client_nodes := ClientNodes} =
        Params = maps:merge(defaults(), Given),
    maybe
        ok ?= possible(Params),
        ok ?= sderl_fleet:fits(Servers + Routers + ClientNodes),
        {ok, Fleet} ?= sderl_fleet:start(sderl_im_cluster:plan(Params, Label)),
        try
            maybe
                {ok, Outcome} ?= sderl_im_cluster:on(Fleet, Params, Label),
                {ok, metrics(Outcome, Params)}
            end
        after
            sderl_fleet:stop(Fleet)
        end
    end.

possible(#{servers := Servers, routers := Routers}) when Servers < Routers ->
    {error, {im, {too_few_servers, Servers, Routers}}};
possible(#{clients := Clients, client_nodes := Nodes}) when Clients < 2 * Nodes ->
    {error, {im, {too_few_clients, Clients, Nodes}}};
possible(_) -> ok.

-doc """
How many seconds it takes until all conversations have begun, as they do one after the other on each
node: with a shorter `warmup_s` the load still grows while it is measured.
""".
-spec ramp_s(#{clients := pos_integer(), client_nodes := pos_integer(), speed := number(),
               atom() => term()}) -> float().
ramp_s(#{clients := Clients, client_nodes := Nodes, speed := Speed}) ->
    ceil(Clients / Nodes) div 2 * sderl_im_traffic:stagger_ms() / 1000 / Speed.

-doc """
How many servers are the only one of their router: both copies of their databases are on the same
node, and are lost with it.
""".
-spec alone(#{servers := pos_integer(), routers := pos_integer(), atom() => term()}) ->
    non_neg_integer().
alone(#{servers := Servers, routers := Routers}) when is_integer(Servers), is_integer(Routers) ->
    max(0, 2 * Routers - Servers).

-doc "Pure: the metrics of a run.".
-spec metrics(sderl_im_cluster:outcome(), params()) -> metrics().
metrics(#{results := Results, usage := Usage, kills := Kills, began_us := Began} = Outcome,
        #{seconds := Seconds} = Params) ->
    #{sent := Sent, below := Below, in_time := InTime, latency := Latency, timeline := Timeline} =
        Counts = sderl_im_tally:merge([C || #{counts := C} <- Results]),
    Sum = fun(Key) -> lists:sum([map_get(Key, R) || R <- Results]) end,
    Killed = #{Pid => true || #{class := session, pid := Pid, dry := false} <- Kills},
    {Logged, Others} = lists:partition(
        fun(#{pid := Pid}) -> is_map_key(Pid, Killed) end,
        [E || #{ended := Ended} <- Results, E <- Ended]
    ),
    Unlogged = lists:sublist([E || #{how := How} = E <- Others, How =/= over],
                             unanswered(Outcome, Params)),
    {Explained, Broken} = {Logged ++ Unlogged, Others -- Unlogged},
    KilledMessages = lists:sum([Count || #{unacknowledged := Count} <- Explained]),
    #{sent_all := SentAll, delivered_all := DeliveredAll} = Counts,
    Used = maps:merge(sderl_bench_meter:metrics(Usage, InTime), watched(Outcome)),
    Counted = maps:with([sent_all, delivered_all, sent, delivered, received, twice, again], Counts),
    lists:foldl(fun maps:merge/2, Used, [
        Counted,
        recovery(Kills),
        maps:with([kills_skipped, kill_problems, clients_left, rows_left, processes_left,
                   names_left], Outcome),
        #{
            delivered_per_min => 60 * InTime / Seconds,
            qos_pct => case Sent of 0 -> undefined; _ -> 100 * Below / Sent end,
            latency_us => percentiles([{p50, 50}, {p95, 95}, {p99, 99}], Latency),
            killed_messages => KilledMessages,
            lost_messages => SentAll - DeliveredAll - KilledMessages,
            conversations => Sum(conversations),
            finished_conversations => Sum(finished),
            cut_conversations => Sum(cut),
            lost_conversations => length(Explained) + length(Broken),
            broken_conversations_not_killed => length(Broken),
            broken => [shown(Ended) || Ended <- lists:sublist(Broken, ?SHOWN)],
            refused => lists:foldl(fun(#{refused := R}, All) ->
                maps:merge_with(fun(_, A, B) -> A + B end, R, All)
            end, #{}, Results),
            timeline => timeline(Timeline, Kills, Began),
            names_missing => length(map_get(missing, Outcome))
        }
    ]).

watched(#{watched := #{} = Seen}) -> #{watched => Seen};
watched(_) -> #{}.

%% How many sessions may have been killed by orders without an answer: they may have been carried
%% out, and are in no log.
unanswered(#{kills_skipped := Skipped}, #{chaos := #{} = Chaos}) ->
    case lists:keymember(session, 1, sderl_im_find:classes(maps:get(classes, Chaos, all))) of
        true -> maps:get(unanswered, Skipped, 0);
        false -> 0
    end;
unanswered(_, _) ->
    0.

percentiles(Percents, Histogram) ->
    #{Name => sderl_bench_histogram:percentile(Percent, Histogram) || {Name, Percent} <- Percents}.

recovery(Kills) ->
    Classes = lists:usort([Class || #{class := Class} <- Kills]),
    Awaited = [Kill || #{awaited := true} = Kill <- Kills],
    #{
        kills => length(Kills),
        kills_by_class => #{Class => length([K || #{class := C} = K <- Kills, C =:= Class])
                            || Class <- Classes},
        recovery_ms => back(Awaited),
        recovery_ms_by_class => #{
            Class => back(Of)
         || Class <- Classes, [_ | _] = Of <- [[K || #{class := C} = K <- Awaited, C =:= Class]]
        },
        not_back => length([K || #{back_us := undefined} = K <- Awaited])
    }.

back(Kills) ->
    Times = [Us || #{back_us := Us} <- Kills, is_integer(Us)],
    Histogram = lists:foldl(fun sderl_bench_histogram:add/2, sderl_bench_histogram:new(), Times),
    InMs = #{Name => ms(Us) || Name := Us <- percentiles([{p50, 50}, {p99, 99}], Histogram)},
    InMs#{max => case Times of [] -> undefined; _ -> ms(lists:max(Times)) end}.

ms(undefined) -> undefined;
ms(Us) -> Us / 1000.

timeline(Delivered, Kills, Began) ->
    Seconds = [1 + (At - Began) div 1_000_000 || #{system_us := At} <- Kills],
    [
        #{t_s => Second, delivered => Count, kills => length([S || S <- Seconds, S =:= Second])}
     || {Second, Count} <- lists:enumerate(Delivered)
    ].

shown(#{session := Session, how := How, unacknowledged := Count}) ->
    #{session => unicode:characters_to_binary(io_lib:format("~0tp", [Session])), how => How,
      unacknowledged => Count}.

-doc "Why there is no result, in words.".
-spec text(term()) -> unicode:chardata().
text({too_few_servers, Servers, Routers}) ->
    io_lib:format("~w routers need at least as many servers, and there are ~w", [Routers, Servers]);
text({too_few_clients, Clients, Nodes}) ->
    io_lib:format("~w client nodes need at least two clients each, and there are ~w clients",
                  [Nodes, Clients]);
text({names_missing, Names}) ->
    io_lib:format("these were not ready in time: ~0tP", [Names, 20]);
text({chaos, Reason}) ->
    ["kills could not begin: ", sderl_chaos:text(Reason)];
text({no_clients, Node, {not_logged_in, Count, Name, Answer}}) ->
    io_lib:format("~w clients could not log in on ~ts, among them ~0tp: ~0tp",
                  [Count, Node, Name, Answer]);
text({What, Node, Reason}) ->
    io_lib:format("node ~ts failed (~ts): ~0tP", [Node, What, Reason, 20]);
text(Reason) ->
    io_lib:format("~0tP", [Reason, 30]).

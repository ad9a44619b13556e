%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_alarms).
-moduledoc """
Alarms of real nodes in groups of ten, received at a dashboard's socket and by a webhook that
answers half of the requests with 503, while the monitoring node that delivers them is killed. The
monitoring nodes watch a made-up cluster as well (`m:sderl_bench_beside`).

On one node after another far more processes run than before, and end again. Then they run on all
nodes, and the monitoring node that leads is killed when some of these alarms have been delivered.

| metric | meaning |
|---|---|
| `alarm_ms` | from the start of the processes until the alarm is at the socket, less the rule's `for_s`: `median` and `max` of the nodes |
| `clear_ms` | from their end until the socket says that the alarm is over: `median` and `max` |
| `alarms_lost` | alarms, and ends of alarms, that the webhook has not accepted in the end: must be 0 |
| `alarms_doubled` | how often it accepted one again: must be 0 |
| `changes`, `attempts`, `refused` | alarms and ends to deliver, all requests, and those answered with 503 |
| `order_broken` | ends of alarms that came before their beginnings: must be 0 |

The documented promise is *at least once*: a change comes twice when the leader dies after the
webhook's answer and before it has told the other monitoring node.
""".

-export([run/2, verdict/1]).
-export([crowd/1]).

-import(sderl_clock, [now_ms/0]).

-define(GROUP, 10).
-define(FOR_S, 3).
-define(CROWD, 5_000).
-define(CALL_MS, 60_000).
-define(READY_MS, 120_000).
-define(SOON_MS, 180_000).

-doc """
Runs it once, on `live` real nodes beside `nodes` made-up ones in `groups`; `seed` determines the
webhook's answers.
""".
-spec run(#{live := pos_integer(), nodes := pos_integer(), groups := pos_integer(),
            seed := integer(), atom() => term()},
          Label :: unicode:chardata()) -> {ok, #{atom() => term()}} | {error, term()}.
run(#{live := Count} = Params, Label) ->
    maybe
        ok ?= sderl_fleet:fits(Count + 2),
        {ok, Fleet} ?= sderl_fleet:start(#{
            families => [
                #{name => n, count => Count, apps => [sderl]},
                #{name => m, count => 2, hidden => true}
            ],
            s_groups => groups(Count),
            progress => sderl_progress:reporter([Label, ": starting nodes"])
        }),
        try
            {Nodes, Monitors} = lists:split(Count, sderl_fleet:nodes(Fleet)),
            watched(#{fleet => Fleet, nodes => Nodes, monitors => Monitors, label => Label,
                      params => Params})
        after
            sderl_fleet:stop(Fleet)
        end
    end.

groups(Count) ->
    [{list_to_atom("real" ++ integer_to_list(G)), normal,
      [{n, I} || I <- lists:seq(1 + (G - 1) * ?GROUP, min(Count, G * ?GROUP))]}
     || G <- lists:seq(1, (Count + ?GROUP - 1) div ?GROUP)].

watched(#{params := #{seed := Seed}} = World) ->
    Receiver = sderl_bench_receiver:start(fun(Number) ->
        case rand:uniform_s(2, rand:seed_s(exsss, {Seed, Number, 0})) of
            {1, _} -> 200;
            {2, _} -> 503
        end
    end),
    Dir = filename:join(filename:basedir(user_cache, "sderl"),
                        io_lib:format("bench-alarms-~s-~b",
                                      [os:getpid(), erlang:unique_integer([positive])])),
    try
        measured(World#{receiver => Receiver, dir => Dir})
    after
        sderl_bench_receiver:stop(Receiver),
        file:del_dir_r(Dir)
    end.

measured(#{nodes := [First | _] = Nodes, label := Label} = World) ->
    maybe
        ok ?= monitor(World),
        {ok, Leader, Other} ?= roles(World),
        {ok, Socket} ?= socket(Other, World),
        Report = sderl_progress:reporter([Label, ": one after another"]),
        %% For half a minute after the start of the monitoring no alarm ends.
        {ok, _} ?= one_by_one([{0, First}], Socket, Report, World, []),
        {ok, Times} ?= one_by_one(lists:enumerate(Nodes), Socket, Report, World, []),
        ok = sderl_bench_dashboard_socket:stop(Socket),
        ok ?= death(Leader, World),
        {ok, metrics(Times, World)}
    end.

%% ---------------------------------------------------------------- the monitoring nodes

monitor(#{nodes := Nodes, monitors := Monitors, dir := Dir, params := Params} = World) ->
    Rules = filename:join(Dir, "rules.json"),
    ok = filelib:ensure_dir(Rules),
    ok = file:write_file(Rules, rules(World)),
    lists:foreach(fun(Monitor) ->
        ok = call(Monitor, application, set_env, [[
            {sderl_mon, [{config, #{seeds => Nodes, monitors => Monitors}}]},
            {sderl_alarms, [{rules_file, Rules},
                            {state_dir, filename:join(Dir, atom_to_list(Monitor))}]},
            {sderl_web, [{port, 0}]}
        ]], World),
        {ok, _} = call(Monitor, application, ensure_all_started, [sderl_web], World)
    end, Monitors),
    Ids = [atom_to_binary(Node) || Node <- Nodes],
    maybe
        ok ?= probed(Ids, World),
        _ = [call(Monitor, sderl_bench_beside, start, [Params], World) || Monitor <- Monitors],
        sderl_fleet:await(fun() ->
            lists:all(fun(Monitor) ->
                call(Monitor, sderl_bench_beside, is_shown, [Params], World)
            end, Monitors)
        end, ?READY_MS)
    end.

probed(Ids, #{monitors := Monitors} = World) ->
    sderl_fleet:await(fun() ->
        Missing = [Id || Monitor <- Monitors,
                         #{nodes := Seen} <- [call(Monitor, sderl_mon_hub, now_topology, [],
                                                   World)],
                         Id <- Ids, not is_probed(maps:get(Id, Seen, none))],
        Missing =:= [] orelse {length(Missing), lists:sublist(Missing, 3)}
    end, ?READY_MS).

is_probed(#{status := up, source := probe}) -> true;
is_probed(_) -> false.

rules(#{receiver := Receiver}) ->
    json:encode(#{
        rules => [#{alarm => crowd, metric => procs, minor => ?CROWD, for_s => ?FOR_S,
                    cause => ~"Processes of the benchmark.", remedy => ~"They end."}],
        routes => [#{name => hook, alarms => [crowd], timeout_s => 5,
                     webhook => sderl_bench_receiver:url(Receiver)}]
    }).

%% The monitoring node that delivers alarms, and the other one.
roles(#{monitors := Monitors} = World) ->
    Leading = fun() ->
        [M || M <- Monitors, map_get(delivers, call(M, sderl_alarms, info, [], World))]
    end,
    maybe
        ok ?= sderl_fleet:await(fun() -> case Leading() of [_] -> true; Many -> Many end end,
                                ?READY_MS),
        [Leader] = Leading(),
        {ok, Leader, hd(Monitors -- [Leader])}
    end.

socket(Monitor, World) ->
    {ok, #{port := Port, token := Token}} = call(Monitor, sderl_web, address, [], World),
    sderl_bench_dashboard_socket:start(#{ip => {127, 0, 0, 1}, port => Port, token => Token},
                                       #{alarms => self()}).

call(Node, M, F, A, #{fleet := Fleet}) -> sderl_fleet:call(Fleet, Node, M, F, A, ?CALL_MS).

%% ---------------------------------------------------------------- one after another

one_by_one([], _, _, _, Times) -> {ok, Times};
one_by_one([{Number, Node} | Left], Socket, Report, #{nodes := Nodes} = World, Times) ->
    maybe
        {Begun, Pid} = crowded(Node, World),
        {ok, Raised} ?= shown(raised, Node, Socket),
        Ended = ended(Pid, World),
        {ok, Cleared} ?= shown(cleared, Node, Socket),
        Report(Number, length(Nodes)),
        one_by_one(Left, Socket, Report, World,
                   [{Raised - Begun - 1000 * ?FOR_S, Cleared - Ended} | Times])
    end.

%% All nodes are on one machine, so the times are by the same clock.
crowded(Node, World) ->
    Pid = call(Node, ?MODULE, crowd, [?CROWD], World),
    {now_ms(), Pid}.

ended(Pid, World) ->
    true = call(node(Pid), erlang, exit, [Pid, kill], World),
    now_ms().

-doc "On a node: starts so many processes, which end with the one that is returned.".
-spec crowd(pos_integer()) -> pid().
crowd(Count) ->
    Caller = self(),
    Pid = spawn(fun() ->
        lists:foreach(fun(_) -> spawn_link(fun wait/0) end, lists:seq(1, Count)),
        Caller ! {self(), all},
        wait()
    end),
    receive {Pid, all} -> Pid end.

wait() -> receive stop -> ok end.

shown(State, Node, Socket) -> shown(State, Node, Socket, now_ms() + ?SOON_MS).

shown(State, Node, Socket, Deadline) ->
    Id = id(Node),
    Wanted = atom_to_binary(State),
    receive
        {sderl_bench_alarms, Socket, At, #{~"alarms" := Alarms}} ->
            case [here || #{~"id" := I, ~"state" := S} <- Alarms, I =:= Id, S =:= Wanted] of
                [here] -> {ok, At};
                [] -> shown(State, Node, Socket, Deadline)
            end
    after max(0, Deadline - now_ms()) -> {error, {timeout, {not_shown, Id, State}}}
    end.

id(Node) -> <<"crowd|", (atom_to_binary(Node))/binary>>.

%% ---------------------------------------------------------------- the death of the leader

death(Leader, #{fleet := Fleet, nodes := Nodes, receiver := Receiver, label := Label} = World) ->
    Report = sderl_progress:reporter([Label, ": the leader is killed"]),
    Round = length(Nodes),
    %% All earlier changes are delivered before the leader dies.
    maybe
        Before = 2 * Round + 2,
        ok ?= taken(Before, World),
        Pids = [Pid || Node <- Nodes, {_, Pid} <- [crowded(Node, World)]],
        ok ?= taken(Before + max(1, Round div 3), World),
        ok = sderl_fleet:kill(Fleet, Leader),
        Report(1, 3),
        ok ?= taken(Before + Round, World),
        Report(2, 3),
        _ = [ended(Pid, World) || Pid <- Pids],
        ok ?= taken(Before + 2 * Round, World),
        Report(3, 3),
        %% Anything that is still under way comes now.
        sderl_fleet:await(fun() -> is_quiet(Receiver) end, ?SOON_MS)
    end.

%% Waits until the webhook has accepted so many different changes.
taken(Count, #{receiver := Receiver}) ->
    sderl_fleet:await(fun() ->
        case map_size(changes(Receiver)) of
            Taken when Taken >= Count -> true;
            Taken -> {Taken, Count}
        end
    end, ?SOON_MS).

is_quiet(Receiver) ->
    #{at_ms := At} = lists:last(sderl_bench_receiver:received(Receiver)),
    now_ms() - At > 15_000.

%% Each change that was accepted, and its places in their order, from 1.
changes(Receiver) ->
    Taken = [{Event, Id, Count}
             || #{answer := 200, body := #{~"event" := Event, ~"alarm" := Alarm}} <-
                    sderl_bench_receiver:received(Receiver),
                #{~"id" := Id, ~"count" := Count} <- [Alarm]],
    maps:groups_from_list(fun({_, Change}) -> Change end, fun({Place, _}) -> Place end,
                          lists:enumerate(Taken)).

%% ---------------------------------------------------------------- results

metrics(Times, #{nodes := [First | _] = Nodes, receiver := Receiver}) ->
    Changes = changes(Receiver),
    Expected = [{Event, id(Node), Count}
                || {Node, Count} <- [{First, 3} | [{N, C} || N <- Nodes, C <- [1, 2]]],
                   Event <- [~"raised", ~"cleared"]],
    All = sderl_bench_receiver:received(Receiver),
    Spread = fun(Ms) -> #{median => sderl_table:median(Ms), max => lists:max(Ms)} end,
    #{
        alarm_ms => Spread([Ms || {Ms, _} <- Times]),
        clear_ms => Spread([Ms || {_, Ms} <- Times]),
        alarms_lost => length([lost || Change <- Expected, not is_map_key(Change, Changes)]),
        alarms_doubled => lists:sum([length(Places) - 1 || _ := Places <- Changes]),
        changes => length(Expected),
        attempts => length(All),
        refused => length([refused || #{answer := 503} <- All]),
        order_broken => length([
            broken || {~"cleared", Id, Count} := [Cleared | _] <- Changes,
                      not lists:any(fun(Raised) -> Raised < Cleared end,
                                    maps:get({~"raised", Id, Count}, Changes, []))
        ])
    }.

-doc "An error where an alarm is late by more than two seconds, lost, doubled or out of order.".
-spec verdict(#{atom() => term()}) -> ok | {error, unicode:chardata()}.
verdict(#{alarms_lost := Lost}) when Lost > 0 ->
    {error, io_lib:format("~b alarms, or their ends, were not delivered", [Lost])};
verdict(#{alarms_doubled := Doubled}) when Doubled > 0 ->
    {error, io_lib:format("~b alarms, or their ends, were delivered again", [Doubled])};
verdict(#{order_broken := Broken}) when Broken > 0 ->
    {error, io_lib:format("~b ends of alarms were delivered before the alarms", [Broken])};
verdict(#{alarm_ms := #{max := Ms}}) when Ms > 2_000 ->
    {error, io_lib:format("an alarm was shown ~b ms after its time; 2000 are too many",
                          [round(Ms)])};
verdict(#{}) -> ok.

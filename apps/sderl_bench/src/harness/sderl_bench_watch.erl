%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_watch).
-moduledoc """
Monitoring of a cluster while something runs on it, to be compared with a run without.

```erlang
{Result, Seen} = sderl_bench_watch:around(Fleet, Nodes, on, fun() -> measure() end),
```

Each second every node is asked, over the fleet's control channel, which is none of the links, for the counters of its links
(those of `m:sderl_bench_meter`), for `s_group:info/0` and `s_group:links/0`, and for its run queues. A process on each node has
subscribed to the events of all groups there. So what it costs is what a monitor costs the nodes; what it makes of the answers is done elsewhere.

On a node without s_groups there are the counters and the run queues.
""".

-export([around/4]).
-export([agent/0, look/1]).
-export_type([seen/0]).

-doc """
What was seen: answers of nodes, questions that were not answered in time, events, and the longest run queue of any node. `off` where
nothing was looked at.
""".
-type seen() :: off | #{answers := non_neg_integer(), silent := non_neg_integer(), events := non_neg_integer(), run_queue_max := non_neg_integer()}.

-define(EVERY_MS, 1000).
%% An agent that nobody asks ends: whoever started it is gone.
-define(LEASE_MS, 15_000).

-doc "The result of `Fun`, and what was seen meanwhile. Nothing of it is left on the nodes afterwards, however `Fun` ends.".
-spec around(Fleet :: pid(), [node()], off | on, fun(() -> Result)) -> {Result, seen()}.
around(_Fleet, _Nodes, off, Fun) ->
    {Fun(), off};
around(Fleet, Nodes, on, Fun) ->
    Owner = self(),
    Stop = make_ref(),
    {Watcher, Monitor} = spawn_monitor(fun() ->
        Of = monitor(process, Owner),
        Owner ! {Stop, watch(Fleet, Nodes, {Of, Stop}, #{}, #{answers => 0, silent => 0, events => 0, run_queue_max => 0})}
    end),
    try Fun() of
        Result -> {Result, stopped(Watcher, Monitor, Stop)}
    catch
        Class:Reason:Stack ->
            _ = stopped(Watcher, Monitor, Stop),
            erlang:raise(Class, Reason, Stack)
    end.

stopped(Watcher, Monitor, Stop) ->
    Watcher ! Stop,
    receive
        {Stop, Seen} ->
            true = demonitor(Monitor, [flush]),
            Seen;
        {'DOWN', Monitor, process, Watcher, Reason} -> exit({?MODULE, Reason})
    end.

%% Agents: the process on each node.
watch(Fleet, Nodes, {Of, Stop} = Ends, Agents, Seen) ->
    Due = now_ms() + ?EVERY_MS,
    {Agents1, Seen1} = asked(Fleet, Nodes, Agents, Seen),
    receive
        Stop -> ended(Fleet, asked(Fleet, Nodes, Agents1, Seen1));
        {'DOWN', Of, process, _, _} -> ended(Fleet, {Agents1, Seen1})
    after max(0, Due - now_ms()) ->
        watch(Fleet, Nodes, Ends, Agents1, Seen1)
    end.

asked(Fleet, Nodes, Agents, Seen) ->
    New = [Node || Node <- Nodes, not is_map_key(Node, Agents)],
    Started = #{Node => Agent || {Node, {ok, Agent}} <- sderl_fleet:multicall(Fleet, New, ?MODULE, agent, [], ?EVERY_MS)},
    Answers = sderl_bench_task:at_once(maps:to_list(maps:merge(Agents, Started)), fun(Node, Agent) ->
        [{Node, Answer}] = sderl_fleet:multicall(Fleet, [Node], ?MODULE, look, [Agent], ?EVERY_MS),
        {Agent, Answer}
    end),
    %% One that died, as its node did, is started anew.
    {
        #{Node => Agent || {Node, {Agent, Answer}} <- Answers, Answer =/= {ok, dead}},
        lists:foldl(fun count/2, Seen, [Answer || {_, {_, Answer}} <- Answers])
    }.

ended(Fleet, {Agents, Seen}) ->
    _ = sderl_bench_task:at_once(maps:to_list(Agents), fun(Node, Agent) ->
        sderl_fleet:multicall(Fleet, [Node], erlang, exit, [Agent, kill], ?EVERY_MS)
    end),
    Seen.

count({ok, #{events := Events, run_queue := Queue}}, #{answers := Answers, events := Before, run_queue_max := Most} = Seen) ->
    Seen#{answers := Answers + 1, events := Before + Events, run_queue_max := max(Most, Queue)};
count(_, #{silent := Silent} = Seen) ->
    Seen#{silent := Silent + 1}.

-doc "Runs on a node: starts its agent.".
-spec agent() -> pid().
agent() -> spawn(fun() -> agent(0, subscribed(none)) end).

%% Events since the last question, and the subscription.
agent(Events, Subscription) ->
    receive
        {look, Alias} ->
            Alias ! {Alias, (looked())#{events => Events}},
            agent(0, subscribed(Subscription));
        {s_group_event, _, _, _} ->
            agent(Events + 1, Subscription);
        _ ->
            agent(Events, Subscription)
    after ?LEASE_MS -> ok
    end.

subscribed(none) ->
    case s_group:subscribe(all) of
        {ok, Reference} -> Reference;
        {error, _} -> none
    end;
subscribed(Subscription) ->
    Subscription.

looked() ->
    #{
        sent => sderl_bench_meter:snapshot(),
        info => s_group:info(),
        links => s_group:links(),
        run_queue => erlang:statistics(total_run_queue_lengths_all)
    }.

-doc "Runs on a node: what there is to see there, and the events since the last time; `dead` without its agent.".
-spec look(Agent :: pid()) -> map() | dead.
look(Agent) ->
    Alias = monitor(process, Agent, [{alias, reply_demonitor}]),
    Agent ! {look, Alias},
    receive
        {Alias, Looked} -> Looked;
        {'DOWN', Alias, process, _, _} -> dead
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_load).
-moduledoc """
Runs one phase of the demo's workload on the node where it is called.

All nodes of a side run a phase at once: each is told the same moment to begin at. The
nodes share a machine, hence a clock.
""".

-export([servers/1, run/1, seen/1, index/1, env/3]).
-export_type([site/0, phase/0, job/0, seen/0]).

-doc "One side: `nodes` in the order of their numbers.".
-type site() :: #{
    registry := module(), layout := sderl_demo_layout:layout(), nodes := [node(), ...]
}.

-doc "What a phase measures. In `kills`, clients call as in `calls` while servers are killed.".
-type job() :: lookups | calls | registrations | kills.

-doc """
A phase as all nodes are told it. `begin_us` is an `os:system_time(microsecond)`, `clients` the
number of client processes on each node, `orders` the servers that each kills in the job
`kills`.
""".
-type phase() :: #{
    site := site(),
    job := job(),
    begin_us := integer(),
    seconds := number(),
    clients := pos_integer(),
    seed := integer(),
    orders := #{sderl_demo_layout:index() => sderl_demo_kill:orders()}
}.

-doc """
The pids of this node's own servers, what the registry says here of every server in this
node's groups, how many other names it has in them, and the bytes of its tables of names.
""".
-type seen() :: #{
    bytes := non_neg_integer(),
    running := [{sderl_demo_layout:server(), pid()}],
    registered := [{sderl_demo_layout:server(), pid() | undefined}],
    leftover := non_neg_integer()
}.

%% How long a client may take for its last step once its time is over. `global` can sleep
%% up to 8 s between two attempts to get its lock.
-define(DRAIN_MS, 30_000).

%% While servers are killed: the pause between two requests of a client, so that recovery is
%% measured on a cluster that is at work but not overloaded; and the time that a server needs for a
%% request, so that some are in flight when it is killed.
-define(KILLS_PAUSE_MS, 5).
-define(KILLS_WORK_MS, 2).

-doc "The number of the node where it is called.".
-spec index(site()) -> sderl_demo_layout:index().
index(#{nodes := Nodes}) ->
    length(lists:takewhile(fun(Node) -> Node =/= node() end, Nodes)) + 1.

-doc """
Starts this node's servers where they do not run; returns when all have registered their names, or
exits.
""".
-spec servers(site()) -> ok.
servers(#{registry := Registry, layout := Layout} = Site) ->
    case sderl_demo_sup:start(Registry, sderl_demo_layout:names_on(index(Site), Layout)) of
        ok -> ok;
        {error, Reason} -> exit(Reason)
    end.

-doc """
Runs the phase; returns what the clients of this node did, and the kills it carried out.
A client that does not end is stopped after 30 s and counted as `unfinished`.
""".
-spec run(phase()) -> {sderl_demo_tally:tally(), [sderl_demo_kill:kill()]}.
run(#{begin_us := BeginUs, seconds := Seconds, clients := Clients} = Phase) ->
    StartUs = erlang:monotonic_time(microsecond) + BeginUs - os:system_time(microsecond),
    UntilUs = StartUs + round(Seconds * 1_000_000),
    Running = [client(Phase, K, StartUs, UntilUs) || K <- lists:seq(1, Clients)],
    Kills = kills(Phase, StartUs),
    LastMs = erlang:monotonic_time(millisecond) + left_ms(UntilUs) + ?DRAIN_MS,
    {sderl_demo_tally:merge([result(Client, LastMs) || Client <- Running]), Kills}.

kills(#{job := kills, site := #{registry := Registry} = Site, orders := Orders}, StartUs) ->
    sderl_demo_kill:run(Registry, maps:get(index(Site), Orders, []), StartUs);
kills(#{}, _StartUs) ->
    [].

client(#{job := Job, site := Site, seed := Seed}, K, StartUs, UntilUs) ->
    Env = (env(Site, K, {Seed, Job}))#{
        until_us := UntilUs,
        pause_ms := in_kills(Job, ?KILLS_PAUSE_MS),
        work_ms := in_kills(Job, ?KILLS_WORK_MS)
    },
    Caller = self(),
    spawn_monitor(fun() ->
        receive
        after left_ms(StartUs) -> ok
        end,
        Caller ! {self(), loop(Job, Env)}
    end).

-doc "The settings of client number `K` of this node, with no end and without pauses.".
-spec env(site(), K :: pos_integer(), Seed :: term()) -> sderl_demo_client:env().
env(#{registry := Registry, layout := Layout} = Site, K, Seed) ->
    Index = index(Site),
    [Home | _] = sderl_demo_layout:groups_of(Index, Layout),
    #{
        registry => Registry,
        home => Home,
        own => list_to_tuple(sderl_demo_layout:own_names(Index, Layout)),
        other => list_to_tuple(sderl_demo_layout:other_names(Index, Layout)),
        until_us => 0,
        pause_ms => 0,
        work_ms => 0,
        tag => {Index, K},
        seed => erlang:phash2({Seed, Index, K})
    }.

loop(lookups, Env) -> sderl_demo_client:lookups(Env);
loop(calls, Env) -> sderl_demo_client:calls(Env);
loop(kills, Env) -> sderl_demo_client:calls(Env);
loop(registrations, Env) -> sderl_demo_client:registrations(Env).

in_kills(kills, Ms) -> Ms;
in_kills(_Job, _Ms) -> 0.

result({Client, Monitor}, LastMs) ->
    receive
        {Client, Tally} ->
            true = demonitor(Monitor, [flush]),
            Tally;
        {'DOWN', Monitor, process, Client, Reason} ->
            sderl_demo_tally:fail({failed, {client, Reason}}, sderl_demo_tally:new())
    after max(0, LastMs - erlang:monotonic_time(millisecond)) ->
        true = demonitor(Monitor, [flush]),
        true = exit(Client, kill),
        sderl_demo_tally:count(unfinished, 1, sderl_demo_tally:new())
    end.

left_ms(AtUs) ->
    max(0, (AtUs - erlang:monotonic_time(microsecond) + 999) div 1000).

-doc "Compares what runs and what the registry knows; see `t:seen/0`.".
-spec seen(site()) -> seen().
seen(#{registry := Registry, layout := Layout} = Site) ->
    Groups = sderl_demo_layout:groups_of(index(Site), Layout),
    All = sderl_demo_layout:names(Layout),
    Servers = [Server || {Group, _} = Server <- All, lists:member(Group, Groups)],
    Names = [{Group, Name} || Group <- Groups, Name <- Registry:names(Group)],
    #{
        running => sderl_demo_sup:servers(),
        registered => [{Server, Registry:whereis(G, Name)} || {G, Name} = Server <- Servers],
        leftover => length(Names -- Servers),
        bytes => Registry:bytes()
    }.

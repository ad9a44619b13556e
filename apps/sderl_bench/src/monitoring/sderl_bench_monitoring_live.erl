%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_monitoring_live).
-moduledoc """
How fast the shadow network shows what happens, on real nodes in groups of ten, with two monitoring
nodes and default settings.

| metric | meaning |
|---|---|
| `all_seen_ms` | from the start of the monitoring until both hubs have samples of all nodes |
| `group_change_shown_ms` | from the call that makes or deletes a group on a node until the hub that does not belong to the master has sent it to a subscriber: `median`, `max` of all |
| `takeover_ms` | from `kill -9` of the monitoring node that is the master until the other hub shows all agents on its node, and has details of all nodes that were measured after the kill |
| `events_sent`, `events_shown`, `events_counted` | events of the library on one node (`m:sderl_event`), so many a second for 5 s; those that a subscriber of the hub got; those that were counted as left out |
| `uncounted_losses` | sent, not shown and not counted: must be 0 |
| `monitoring_cpu_pct` | processor time of a monitoring node while nothing happens, in percent of one core |

The events are reported as the library's own, at the level `debug`, which is not logged by default.
""".

-export([run/2]).
-export([flood/3]).

-import(sderl_clock, [now_ms/0]).

-define(GROUP, 10).
-define(READY_MS, 120_000).
-define(SOON_MS, 60_000).
-define(FLOOD_MS, 5000).
-define(SETTLE_MS, 20_000).
-define(IDLE_MS, 5000).
-define(KIND, bench_event).

-doc "Runs it once and writes the result.".
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{nodes := Count} = Options, Output) ->
    Params = (maps:with([nodes, changes, events_s], Options))#{mode => live},
    Run = fun(_, Label) ->
        sderl_bench_nodes:with(Count, groups(Count), Label,
                               fun(Fleet, Nodes) -> measured(Fleet, Nodes, Params) end)
    end,
    Show = fun([#{metrics := Metrics}]) ->
        sderl_bench_output:say(Output, [
            "\n", io_lib:format("~w nodes, two monitoring nodes; ", [Count]),
            sderl_bench_machine:text(), "\n\n",
            table(Metrics), "\n"
        ])
    end,
    maybe
        {ok, [#{metrics := Metrics}]} ?=
            sderl_bench_series:run(monitoring, [Params], 1, Run, Show, Output),
        verdict(Metrics)
    end.

%% A ring of groups of ten and a gateway between each two.
groups(Count) ->
    [
        {list_to_atom("group" ++ integer_to_list(G)), normal, [{n, I} || I <- lists:uniq(Members)]}
     || G <- lists:seq(1, max(1, Count div ?GROUP)),
        First <- [(G - 1) * ?GROUP],
        Members <- [[1 + (First + K) rem Count || K <- lists:seq(0, min(?GROUP, Count - 1))]]
    ].

measured(Fleet, Nodes, #{changes := Changes, events_s := PerS}) ->
    Begin = now_ms(),
    maybe
        {ok, Shadow} ?= sderl_bench_shadow:start(Fleet, Nodes, #{monitors => 2}),
        ok ?= sderl_bench_shadow:await(Shadow, ?READY_MS),
        AllSeen = now_ms() - Begin,
        {ok, Master, Other} ?= roles(Shadow),
        Idle = idle(Shadow, Other),
        {ok, Shown} ?= changes(Shadow, Nodes, Other, Changes),
        %% Right after a change, while nodes return to their earlier agents.
        {ok, Events} ?= events(Shadow, hd(Nodes), Other, PerS),
        {ok, Takeover} ?= takeover(Fleet, Shadow, Nodes, Master, Other),
        {ok, Events#{
            all_seen_ms => AllSeen,
            group_change_shown_ms => #{median => sderl_table:median(Shown),
                                       max => lists:max(Shown)},
            takeover_ms => Takeover,
            monitoring_cpu_pct => Idle
        }}
    end.

%% The master, which will be killed, and the other monitoring node, which is measured.
roles(Shadow) ->
    Monitors = sderl_bench_shadow:monitors(Shadow),
    Role = fun() ->
        #{monitors := Rows} = topology(Shadow, hd(Monitors)),
        case {[N
               || N <- Monitors, #{node := Id, master := true} <- Rows,
                  Id =:= sderl_bench_shadow:id(N)], length([up || #{status := up} <- Rows])} of
            {[Master], 2} -> {master, Master};
            Seen -> Seen
        end
    end,
    case sderl_fleet:await(fun() -> is_tuple(Role()) andalso element(1, Role()) =:= master end,
                           ?SOON_MS) of
        ok ->
            {master, Master} = Role(),
            [Other] = Monitors -- [Master],
            {ok, Master, Other};
        {error, _} = Error ->
            Error
    end.

topology(Shadow, Monitor) ->
    sderl_bench_shadow:call(Shadow, Monitor, sderl_bench_shadow_view, topology,
                            [sderl_bench_shadow:viewer(Shadow, Monitor)]).

idle(Shadow, Monitor) ->
    Cpu = fun() ->
        element(1, sderl_bench_shadow:call(Shadow, Monitor, erlang, statistics, [runtime]))
    end,
    Before = Cpu(),
    Begin = now_ms(),
    ok = pause(?IDLE_MS),
    100 * (Cpu() - Before) / (now_ms() - Begin).

%% ---------------------------------------------------------------- changes of groups

changes(Shadow, Nodes, Monitor, Count) -> changes(Shadow, Nodes, Monitor, Count, []).

changes(_, _, _, 0, Times) ->
    {ok, Times};
changes(Shadow, Nodes, Monitor, Left, Times) ->
    Group = list_to_atom("change" ++ integer_to_list(Left)),
    [On | _] = Members = lists:sublist(rotated(Nodes, Left * ?GROUP), 3),
    Id = atom_to_binary(Group),
    maybe
        {ok, Made} ?= shown(Shadow, Monitor, {[Id], []}, fun() ->
            {ok, Group, _} =
                sderl_bench_shadow:call(Shadow, On, s_group, new_s_group, [Group, Members])
        end),
        {ok, Deleted} ?= shown(Shadow, Monitor, {[], [Id]}, fun() ->
            ok = sderl_bench_shadow:call(Shadow, On, s_group, delete_s_group, [Group])
        end),
        changes(Shadow, Nodes, Monitor, Left - 1, [Made, Deleted | Times])
    end.

rotated(Nodes, By) ->
    {Before, After} = lists:split(By rem length(Nodes), Nodes),
    After ++ Before.

%% All nodes are on one machine, and share its clock.
shown(Shadow, Monitor, Groups, Change) ->
    From = erlang:system_time(millisecond),
    _ = Change(),
    case sderl_bench_shadow:call(Shadow, Monitor, sderl_bench_shadow_view, shown,
                                 [sderl_bench_shadow:viewer(Shadow, Monitor), Groups]) of
        At when is_integer(At) -> {ok, At - From};
        timeout -> {error, {timeout, {not_shown, Groups}}}
    end.

%% ---------------------------------------------------------------- many events

events(Shadow, Node, Monitor, PerS) ->
    ok = sderl_bench_shadow:again(Shadow),
    Sent = sderl_bench_shadow:call(Shadow, Node, ?MODULE, flood, [?KIND, PerS, ?FLOOD_MS]),
    View = sderl_bench_shadow:viewer(Shadow, Monitor),
    Seen = fun() ->
        sderl_bench_shadow:call(Shadow, Monitor, sderl_bench_shadow_view, seen, [View])
    end,
    Accounted = fun() -> {Shown, Counted} = told(Seen()), Shown + Counted end,
    _ = sderl_fleet:await(fun() -> Accounted() >= Sent orelse {of_, Sent, Accounted()} end,
                          ?SETTLE_MS),
    {Shown, Counted} = told(Seen()),
    {ok, #{events_sent => Sent, events_shown => Shown, events_counted => Counted,
           uncounted_losses => max(0, Sent - Shown - Counted)}}.

told(#{events_of := Of, lost := Lost}) ->
    {maps:get(?KIND, Of, 0),
     lists:sum([N || Key := N <- Lost, string:prefix(atom_to_list(Key), "events") =/= nomatch])}.

-doc "Runs on a node: reports so many events a second; gives their number.".
-spec flood(atom(), pos_integer(), pos_integer()) -> pos_integer().
flood(Kind, PerS, Ms) -> flood(Kind, PerS, now_ms(), Ms, 0).

flood(Kind, PerS, Begin, Ms, Sent) ->
    case now_ms() - Begin of
        Passed when Passed >= Ms ->
            Sent;
        Passed ->
            Due = PerS * Passed div 1000,
            lists:foreach(fun(I) ->
                sderl_event:emit(debug, Kind, #{node => node(), number => I})
            end, lists:seq(Sent + 1, Due)),
            ok = pause(2),
            flood(Kind, PerS, Begin, Ms, max(Sent, Due))
    end.

%% ---------------------------------------------------------------- takeover

takeover(Fleet, Shadow, Nodes, Master, Other) ->
    Begin = erlang:system_time(millisecond),
    ok = sderl_fleet:kill(Fleet, Master),
    OtherId = sderl_bench_shadow:id(Other),
    Ids = [sderl_bench_shadow:id(Node) || Node <- Nodes],
    Done = fun() ->
        #{monitors := Monitors, groups := Groups} = topology(Shadow, Other),
        lists:any(fun(M) -> M =:= true end,
                  [Is
                   || #{node := N, master := Is, status := up} <- Monitors, N =:= OtherId]) andalso
        lists:all(fun(#{agent := Agent}) -> Agent =:= OtherId end, maps:values(Groups)) andalso
        sderl_bench_shadow:call(Shadow, Other, sderl_bench_shadow_view, since, [Ids, Begin]) =:= []
    end,
    case sderl_fleet:await(Done, ?SOON_MS) of
        ok -> {ok, erlang:system_time(millisecond) - Begin};
        {error, _} = Error -> Error
    end.

pause(Ms) ->
    receive
    after Ms -> ok
    end.

%% ---------------------------------------------------------------- results

table(#{group_change_shown_ms := #{median := Median, max := Max}, takeover_ms := Takeover,
        uncounted_losses := Lost, events_sent := Sent, events_shown := Shown} = Metrics) ->
    #{all_seen_ms := AllSeen, monitoring_cpu_pct := Cpu, events_counted := Counted} = Metrics,
    Number = fun sderl_table:number/1,
    sderl_table:text(
        ["all seen ms", "group shown ms median", "max", "takeover ms", "events", "shown", "counted",
         "uncounted", "CPU % of a core"],
        [[Number(V) || V <- [AllSeen, Median, Max, Takeover, Sent, Shown, Counted, Lost, Cpu]]]
    ).

verdict(#{uncounted_losses := 0}) -> ok;
verdict(#{uncounted_losses := Lost}) ->
    {error, io_lib:format("~w events were neither shown nor counted as left out", [Lost])}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_kill).
-moduledoc """
Kills servers, and measures how long it takes until their names answer again.

The plan is made once, from a seed, and is the same for both sides: which server is killed
when, and which node watches. The watcher is another member of the server's group. It
kills the server itself, over the distribution, so that one clock measures the whole: from
the exit signal until the server that was restarted under the same name has answered the
watcher.
""".

-export([plan/3, run/3]).
-export_type([orders/0, kill/0]).

-doc "Kills for one watching node: milliseconds after the start of the phase, and the server.".
-type orders() :: [{non_neg_integer(), sderl_demo_layout:server()}].

-doc "A kill that was done: the pid, and the time until its name answered again.".
-type kill() :: #{
    server := sderl_demo_layout:server(),
    killed := pid() | none,
    recovery_us := non_neg_integer() | never
}.

-define(EVERY_MS, 40).
-define(GIVE_UP_US, 10_000_000).

-doc """
One kill every 40 ms for `Seconds`, in an order drawn from `Seed`: every server is killed
once before any is killed again.
""".
-spec plan(sderl_demo_layout:layout(), number(), integer()) ->
    #{sderl_demo_layout:index() => orders()}.
plan(Layout, Seconds, Seed) ->
    Rand = rand:seed_s(exsss, Seed),
    Count = max(1, trunc(Seconds * 1000) div ?EVERY_MS),
    {Servers, Rand1} = draw(Count, sderl_demo_layout:names(Layout), [], Rand),
    {Orders, _} = lists:mapfoldl(
        fun({I, {Group, {server, Host, _}} = Server}, R) ->
            Watchers = sderl_demo_layout:members(Group, Layout) -- [Host],
            {Place, R1} = rand:uniform_s(length(Watchers), R),
            {{lists:nth(Place, Watchers), {I * ?EVERY_MS, Server}}, R1}
        end,
        Rand1,
        lists:zip(lists:seq(0, Count - 1), Servers)
    ),
    maps:groups_from_list(fun({Watcher, _}) -> Watcher end, fun({_, Order}) -> Order end, Orders).

draw(Count, _Names, Drawn, Rand) when length(Drawn) >= Count ->
    {lists:sublist(Drawn, Count), Rand};
draw(Count, Names, Drawn, Rand) ->
    {Keyed, Rand1} = lists:mapfoldl(
        fun(Name, R) ->
            {Key, R1} = rand:uniform_s(R),
            {{Key, Name}, R1}
        end,
        Rand,
        Names
    ),
    draw(Count, Names, Drawn ++ [Name || {_, Name} <- lists:sort(Keyed)], Rand1).

-doc """
Carries out one node's orders, each at its time after `StartUs`, a
`erlang:monotonic_time(microsecond)` of this node; returns when all names answer again, or
10 s after the last kill.
""".
-spec run(module(), orders(), StartUs :: integer()) -> [kill()].
run(Registry, Orders, StartUs) ->
    Caller = self(),
    Watchers = [
        spawn_monitor(fun() ->
            wait_until(StartUs + OffsetMs * 1000),
            Caller ! {self(), kill(Registry, Server)}
        end)
     || {OffsetMs, Server} <- Orders
    ],
    [
        receive
            {Watcher, Kill} ->
                true = demonitor(Monitor, [flush]),
                Kill;
            {'DOWN', Monitor, process, Watcher, Reason} ->
                exit({watcher, Reason})
        end
     || {Watcher, Monitor} <- Watchers
    ].

wait_until(AtUs) ->
    case AtUs - erlang:monotonic_time(microsecond) of
        Left when Left > 0 ->
            receive
            after (Left + 999) div 1000 -> ok
            end;
        _ ->
            ok
    end.

kill(Registry, {Group, Name} = Server) ->
    case find(Registry, Group, Name, erlang:monotonic_time(microsecond)) of
        undefined ->
            #{server => Server, killed => none, recovery_us => never};
        Pid ->
            Killed = erlang:monotonic_time(microsecond),
            exit(Pid, kill),
            #{
                server => Server,
                killed => Pid,
                recovery_us => recovered(Registry, Server, Killed)
            }
    end.

%% The name may still be missing because this server was killed shortly before.
find(Registry, Group, Name, SinceUs) ->
    case Registry:whereis(Group, Name) of
        undefined -> again(SinceUs, undefined, fun() -> find(Registry, Group, Name, SinceUs) end);
        Pid -> Pid
    end.

%% The process that was killed cannot answer: its exit signal went out before the first
%% call, from the same process, so it arrives first.
recovered(Registry, {Group, Name} = Server, KilledUs) ->
    Again = fun() -> recovered(Registry, Server, KilledUs) end,
    case Registry:whereis(Group, Name) of
        undefined ->
            again(KilledUs, never, Again);
        Pid ->
            case sderl_demo_server:call(Pid, Server, 0) of
                {ok, _} -> erlang:monotonic_time(microsecond) - KilledUs;
                {error, _} -> again(KilledUs, never, Again)
            end
    end.

%% For the first 5 ms without a pause, so that the timer does not limit the resolution.
again(SinceUs, GiveUp, Again) ->
    case erlang:monotonic_time(microsecond) - SinceUs of
        Gone when Gone > ?GIVE_UP_US ->
            GiveUp;
        Gone when Gone > 5_000 ->
            receive
            after 1 -> Again()
            end;
        _ ->
            erlang:yield(),
            Again()
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_scale_tests).
-moduledoc """
What the reconciler costs for many instances, in simulated time beside that of the same timers
alone, and in reductions. The short run has 1,000 and 2,000 instances, which shows whether the work
per instance grows; `SDERL_LONG=1` has 10,000 on 139 hosts.
""".

-include_lib("eunit/include/eunit.hrl").
-include("sderl_ops_world.hrl").

-export([bring_up/2]).

-define(PER_HOST, 8).

scale_test_() ->
    {timeout, 900, fun() ->
        Sizes = case os:getenv("SDERL_LONG") of
            false -> [{14, 72}, {28, 72}];
            _ -> [{14, 72}, {28, 72}, {139, 72}]
        end,
        Figures = [bring_up(Hosts, PerHost) || {Hosts, PerHost} <- Sizes],
        [io:format(user, "operations: ~0tp~n", [Figure]) || Figure <- Figures],
        [?assertMatch(#{done := true, other_ms := Ms} when Ms < 20_000, Figure)
         || Figure <- Figures],
        #{per_instance := One} = hd(Figures),
        [?assertMatch(#{per_instance := More} when More < 2 * One, Figure) || Figure <- tl(Figures)]
    end}.

-doc "Brings so many up from nothing; a start takes 1 to 3 s.".
bring_up(Hosts, PerHost) ->
    Started = erlang:monotonic_time(millisecond),
    World = sderl_ops_world:run(#{
        seed => 1,
        desired => desired(Hosts, PerHost),
        durations => fun duration/2,
        decide_ms => 250,
        tick_ms => 1_000,
        look_every_ms => 30_000,
        check => false
    }),
    #world{log = Log, reductions = Reductions, decisions = Decisions} = World,
    Count = Hosts * PerHost,
    Alone = alone(Hosts, PerHost),
    Last = lists:max([At || {At, _} <- Log]),
    #{
        instances => Count,
        done => sderl_ops_world:is_done(World) andalso
                sderl_ops_world_check:final(World) =:= [],
        timers_alone_ms => Alone,
        makespan_ms => Last,
        other_ms => Last - Alone,
        steps => World#world.steps,
        decisions => Decisions,
        reductions => Reductions,
        per_instance => Reductions div Count,
        per_decision => Reductions div Decisions,
        took_ms => erlang:monotonic_time(millisecond) - Started
    }.

duration({start, Id}, Dice) ->
    {start_ms(Id), Dice};
duration({fetch, _, _}, Dice) ->
    {500, Dice};
duration(_, Dice) ->
    {20, Dice}.

start_ms(Id) -> 1_000 + erlang:phash2(Id, 2_001).

%% The same timers, as many at a time on each host.
alone(Hosts, PerHost) ->
    lists:max([host_alone([start_ms(id(Host * PerHost + N)) || N <- lists:seq(1, PerHost)])
               || Host <- lists:seq(0, Hosts - 1)]).

host_alone(Durations) ->
    Slots = lists:foldl(fun(Ms, [Free | Others]) -> lists:sort([Free + Ms | Others]) end,
                        lists:duplicate(?PER_HOST, 0), Durations),
    lists:max(Slots).

id(N) -> <<"n", (integer_to_binary(N))/binary>>.

desired(Hosts, PerHost) ->
    Names = [<<"lab/", (integer_to_binary(N))/binary>> || N <- lists:seq(1, Hosts)],
    Count = Hosts * PerHost,
    Instances = #{id(N) => #{
        id => id(N), family => ~"n", index => N, release => ~"one", settings => ~"s1",
        labels => #{}, node => undefined, host => undefined, select => spread,
        restart => #{policy => always, most => 5, within_s => 60},
        limits => #{per_host => PerHost}, candidates => Names
    } || N <- lists:seq(1, Count)},
    #{
        cluster => ~"large", names => short, revision => 1,
        releases => #{~"one" => #{}},
        settings => #{~"s1" => #{start_timeout_s => 20}},
        hosts => #{Name => #{lost_after_s => 300} || Name <- Names},
        instances => Instances,
        groups => [#{name => <<"g", (integer_to_binary(G))/binary>>, consistency => available,
                     members => [id(N) || N <- lists:seq(G * PerHost + 1, (G + 1) * PerHost)]}
                   || G <- lists:seq(0, Hosts - 1)],
        upgrade => #{batch => 1, canaries => 1, wait_s => 5, roll_back => true},
        at_once => #{steps => Hosts * ?PER_HOST, fetches => Hosts, per_host => ?PER_HOST}
    }.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_scale).
-moduledoc """
The cost of the reconciler for many instances: in simulated time, compared with the same timers
alone, and in reductions.
""".

-include("sderl_ops_world.hrl").

-export([bring_up/2]).
-export_type([figures/0]).

-doc """
`done`: all instances are up and as desired. `makespan_ms` is when the last step began,
`timers_alone_ms` the time of the starts alone, `other_ms` the difference; `took_ms` is real time.
`archives` is how many the service sent; the others were given from host to host. `state_bytes` is
the size of the desired state, the observed state and the memory in the end, without binaries.
""".
-type figures() :: #{
    instances := pos_integer(),
    done := boolean(),
    timers_alone_ms := non_neg_integer(),
    makespan_ms := non_neg_integer(),
    other_ms := integer(),
    archives := non_neg_integer(),
    state_bytes := pos_integer(),
    steps := non_neg_integer(),
    decisions := non_neg_integer(),
    reductions := non_neg_integer(),
    per_instance := non_neg_integer(),
    per_decision := non_neg_integer(),
    took_ms := non_neg_integer()
}.

-define(PER_HOST, 8).

-doc """
Brings so many instances up from nothing. A start takes 1 to 3 s, a transfer half a second, another
step 20 ms. The service decides every 250 ms, looks at each host every 30 s, and does 8 steps at a
time on each host, like the timers alone.
""".
-spec bring_up(Hosts :: pos_integer(), PerHost :: pos_integer()) -> figures().
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
    #world{log = Log, reductions = Reductions, decisions = Decisions, service = Service} = World,
    #service{desired = Desired, observed = Observed, memory = Memory} = Service,
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
        archives => length([sent || {_, service, _} <- World#world.gifts]),
        state_bytes => erts_debug:size({Desired, Observed, Memory})
            * erlang:system_info(wordsize),
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
        hosts => #{Name => #{lost_after_s => 300, relay => true} || Name <- Names},
        instances => Instances,
        groups => [#{name => <<"g", (integer_to_binary(G))/binary>>, consistency => available,
                     members => [id(N) || N <- lists:seq(G * PerHost + 1, (G + 1) * PerHost)]}
                   || G <- lists:seq(0, Hosts - 1)],
        upgrade => #{batch => 1, canaries => 1, wait_s => 5, roll_back => true},
        at_once => #{steps => Hosts * ?PER_HOST, per_host => ?PER_HOST}
    }.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_worker).
-moduledoc """
The part of `bin/sderl bench route` that runs on the measured nodes and sends messages.

A *way* leads to a process: a direct link, the library's routes, or relays written by hand. The
receiver acknowledges every so many messages by the way back, and the sender has a window of
messages that are not acknowledged. So the same number is out whatever the way, and nobody refuses
one.
""".

-export([routes/0, cpu_ms/0, link/1, start_sink/2, start_relay/0, throughput/1, latency/1]).
-export_type([way/0, back/0, load/0]).

-import(sderl_clock, [now_ns/0]).

-doc "How a message gets to a process.".
-type way() ::
    {direct, pid()}
    | {route, {Group :: atom(), Name :: atom()}}
    | {relay, First :: pid(), To :: pid()}
    | {relays, First :: pid(), Second :: pid(), To :: pid()}.

-doc "A way to a sender that is not there yet, by the relays or the name.".
-type back() :: {direct | relay | relays, [pid()]} | {route, {Group :: atom(), Name :: atom()}}.

-doc """
The work of a sender, and the name under which it is registered meanwhile. `warm_ms` is not counted.
""".
-type load() :: #{
    there := way(),
    back := back(),
    me := {Group :: atom(), Name :: atom()},
    bytes := pos_integer(),
    window := pos_integer(),
    warm_ms := non_neg_integer(),
    ms := pos_integer()
}.

%% How long the last messages may take.
-define(DRAIN_MS, 20_000).

-doc "The routes of this node: groups, gateways to cross, first gateways.".
-spec routes() -> [{term(), pos_integer(), [node()]}].
routes() -> maps:get(routes, sderl_route:info()).

-doc "Processor time of this node so far.".
-spec cpu_ms() -> non_neg_integer().
cpu_ms() -> element(1, erlang:statistics(runtime)).

-doc "Links this node with others.".
-spec link([node()]) -> boolean().
link(Nodes) -> lists:all(fun net_kernel:connect_node/1, Nodes -- [node()]).

-doc "A process that takes messages, registered in a group.".
-spec start_sink(atom(), atom()) -> pid().
start_sink(Group, Name) ->
    Pid = spawn(fun sink/0),
    yes = s_group:register_name(Group, Name, Pid),
    Pid.

sink() ->
    receive
        {count, Back, Every} -> count(Back, Every, 0, Every);
        {echo, Back} -> echo(Back)
    end.

count(Back, Every, N, Left) ->
    receive
        Message when is_binary(Message), Left > 1 ->
            count(Back, Every, N + 1, Left - 1);
        Message when is_binary(Message) ->
            pass(Back, {ack, Every}),
            count(Back, Every, N + 1, Every);
        finish ->
            pass(Back, {finished, N}),
            sink()
    end.

echo(Back) ->
    receive
        Message when is_binary(Message) ->
            pass(Back, Message),
            echo(Back);
        finish ->
            pass(Back, {finished, 0}),
            sink()
    end.

-doc "The least that a gateway can do: what any relay costs.".
-spec start_relay() -> pid().
start_relay() -> spawn(fun relay/0).

relay() ->
    receive
        {To, Message} ->
            To ! Message,
            relay()
    end.

-spec pass(way(), term()) -> ok.
pass({route, Name}, Message) ->
    ok = sderl_route:send(Name, Message);
pass({direct, Pid}, Message) ->
    Pid ! Message,
    ok;
pass({relay, First, Pid}, Message) ->
    First ! {Pid, Message},
    ok;
pass({relays, First, Second, Pid}, Message) ->
    First ! {Second, {Pid, Message}},
    ok.

back({direct, []}) -> {direct, self()};
back({relay, [First]}) -> {relay, First, self()};
back({relays, [First, Second]}) -> {relays, First, Second, self()};
back({route, Name}) -> {route, Name}.

-doc """
Sends as fast as the window allows. `sent` and `arrived` are of the whole time, `per_s` of the time
that is measured.
""".
-spec throughput(load()) ->
    #{per_s := float(), sent := pos_integer(), arrived := non_neg_integer()} | {error, term()}.
throughput(#{there := There, window := Window} = Load) ->
    begun(count, Load),
    Message = message(Load),
    Begin = now_ns(),
    {Warm, Acked1, At1} = pump(There, Message, Window, 0, 0, Begin + ms(warm_ms, Load)),
    {Sent, Acked2, At2} = pump(There, Message, 0, Warm, Acked1, At1 + ms(ms, Load)),
    case finish(Load) of
        {ok, Arrived} ->
            #{per_s => (Acked2 - Acked1) * 1.0e9 / (At2 - At1), sent => Sent, arrived => Arrived};
        {error, Why} -> {error, Why}
    end.

%% Ends with an acknowledgement, without credit.
pump(There, Message, 0, Sent, Acked, Until) ->
    receive
        {ack, N} ->
            case now_ns() of
                Now when Now >= Until -> {Sent, Acked + N, Now};
                _ -> pump(There, Message, N, Sent, Acked + N, Until)
            end
    after ?DRAIN_MS -> exit({no_acknowledgement, There})
    end;
pump(There, Message, Credit, Sent, Acked, Until) ->
    pass(There, Message),
    pump(There, Message, Credit - 1, Sent + 1, Acked, Until).

-doc "One message at a time, there and back: nanoseconds of the round trip.".
-spec latency(load()) -> sderl_bench_histogram:histogram() | {error, term()}.
latency(#{there := There} = Load) ->
    begun(echo, Load),
    Message = message(Load),
    Recorder = sderl_bench_histogram:recorder(),
    From = now_ns() + ms(warm_ms, Load),
    ping(There, Message, Recorder, From, From + ms(ms, Load)),
    case finish(Load) of
        {ok, _} -> sderl_bench_histogram:read(Recorder);
        {error, Why} -> {error, Why}
    end.

ping(There, Message, Recorder, From, Until) ->
    T0 = now_ns(),
    pass(There, Message),
    receive
        Answer when is_binary(Answer) ->
            T1 = now_ns(),
            _ = T0 >= From andalso sderl_bench_histogram:record(Recorder, T1 - T0),
            %% One is measured, however long the last one before took on a busy machine.
            _ = (T0 < From orelse T1 < Until)
                andalso ping(There, Message, Recorder, From, Until),
            ok
    after ?DRAIN_MS -> exit({no_answer, There})
    end.

begun(Kind, #{there := There, back := Back, me := {Group, Name}, window := Window}) ->
    yes = s_group:register_name(Group, Name, self()),
    pass(There,
         case Kind of count -> {count, back(Back), every(Window)}; echo -> {echo, back(Back)} end).

every(Window) -> max(1, Window div 20).

%% The name is free for the next when this returns.
finish(#{there := There, me := {Group, Name}}) ->
    pass(There, finish),
    Result = finished(),
    ok = s_group:unregister_name(Group, Name),
    Result.

finished() ->
    receive
        {finished, N} -> {ok, N};
        {ack, _} -> finished()
    after ?DRAIN_MS -> {error, not_finished}
    end.

message(#{bytes := Bytes}) -> binary:copy(<<"m">>, Bytes).

ms(Key, Load) -> 1_000_000 * maps:get(Key, Load).

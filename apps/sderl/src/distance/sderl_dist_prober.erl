%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_prober).
-moduledoc false.
%% The process that measures round trips from its node to others. It does nothing else meanwhile,
%% and the server that answers it does next to nothing, so that what is measured is the network and
%% the two runtimes.

-export([run/2]).
-export_type([options/0, outcome/0]).

-import(sderl_clock, [now_ms/0]).

%% No answer for so long: a peer that hangs, or one without such a server.
-define(PATIENCE, 2000).

-type options() :: #{
    batches := pos_integer(),
    batch := pos_integer(),
    window := pos_integer(),
    spread_ms := pos_integer(),
    until := integer(),
    atom() => term()
}.

-type outcome() :: #{
    legs := [{node(), Ns :: pos_integer()}],
    silent := [node()],
    messages := non_neg_integer(),
    bytes := non_neg_integer()
}.

-doc """
Probes nodes until all is done or it is `until` (monotonic time, ms). To be called in a process of
its own.
""".
-spec run([node()], options()) -> outcome().
run(Peers, #{batches := Batches, batch := Batch, window := Window, spread_ms := Spread0,
             until := Until}) ->
    _ = process_flag(async_dist, true),
    Ref = make_ref(),
    _ = erlang:start_timer(Until, self(), Ref, [{abs, true}]),
    Start = now_ms(),
    %% Far peers take longer than to release their batches.
    Spread = max(1, min(Spread0, (Until - Start) div 2)),
    Mixed = [Peer || {_, Peer} <- lists:sort([{rand:uniform(), Peer} || Peer <- Peers])],
    Pace = #{start => Start, spread => Spread, step => Spread div max(1, Batches * length(Peers))},
    Done = loop(Ref, Pace,
                release(Ref, Pace, sderl_dist_probing:new(Mixed, Batches, Batch, Window))),
    {Times, Silent, Sent} = sderl_dist_probing:results(Done),
    Legs = [{Peer, max(1, Ns)}
            || Peer := Series <- Times, Ns <- [sderl_dist_estimate:rtt(Series)], is_integer(Ns)],
    %% Unanswered messages were sent all the same, and the last answers may be missing: an upper
    %% bound.
    #{legs => Legs, silent => Silent, messages => 2 * Sent,
      bytes => 2 * Sent * erlang:external_size(ping(Ref, 1))}.

loop(Ref, Pace, {Sends, State}) ->
    lists:foreach(fun({Peer, Number}) -> send(Peer, Ref, Number) end, Sends),
    case sderl_dist_probing:finished(State) of
        true -> State;
        false ->
            receive
                {sderl_dist, 1, pong, {Ref, Number, At}, Peer} ->
                    loop(Ref, Pace, sderl_dist_probing:pong(
                        {Peer, Number}, erlang:monotonic_time(nanosecond) - At, State
                    ));
                {timeout, _, {Ref, Peer, Number}} ->
                    loop(Ref, Pace, sderl_dist_probing:late({Peer, Number}, State));
                {timeout, _, {Ref, release}} ->
                    loop(Ref, Pace, release(Ref, Pace, State));
                {timeout, _, Ref} ->
                    State
            end
    end.

%% At times that are not the same on all nodes.
release(Ref, #{start := Start, spread := Spread, step := Step}, State) ->
    _ = erlang:start_timer(rand:uniform(2 * Step + 1), self(), {Ref, release}),
    sderl_dist_probing:release((now_ms() - Start) / Spread, State).

send(Peer, Ref, Number) ->
    _ = erlang:start_timer(?PATIENCE, self(), {Ref, Peer, Number}),
    %% Without a link it is late at once; the timer will say so.
    _ = erlang:send({sderl_dist_probe, Peer}, ping(Ref, Number), [noconnect]),
    ok.

%% The time rides along, taken as late as can be.
ping(Ref, Number) ->
    {sderl_dist, 1, ping, {Ref, Number, erlang:monotonic_time(nanosecond)}, self()}.

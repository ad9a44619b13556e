%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_rest).
-moduledoc """
Requests to a dashboard's HTTP interface at a fixed rate, over connections that stay open.

Each request has a time at which it is due, whether or not those before it were answered; its
latency is the time from then until its whole answer has come. So a server that falls behind shows
in the latencies of all requests that have to wait.
""".

-export([run/2, percentile/2]).
-export_type([target/0, answered/0]).

-import(sderl_clock, [now_us/0]).

-type target() :: #{port := inet:port_number(), token := binary(), paths := [binary(), ...]}.

-doc """
`us`: the time of each request that was answered with 200; `failed`: how many were not; `passed_us`:
how long all took.
""".
-type answered() :: #{us := [non_neg_integer()], failed := non_neg_integer(),
                      passed_us := pos_integer()}.

-define(ANSWER_MS, 30_000).

-doc "Requests the paths in turn.".
-spec run(target(), #{rate := pos_integer(), seconds := pos_integer(),
                      connections := pos_integer(), atom() => term()}) -> answered().
run(#{port := Port, token := Token, paths := Paths},
    #{rate := Rate, seconds := Seconds, connections := Connections}) ->
    Count = Rate * Seconds,
    Requests = list_to_tuple([request(Path, Token) || Path <- Paths]),
    %% All connections are there before the first request is due.
    Begin = now_us() + 500_000,
    Self = self(),
    Workers = [spawn_monitor(fun() ->
        Due = [{Begin + I * 1_000_000 div Rate,
                element(1 + I rem tuple_size(Requests), Requests)}
               || I <- lists:seq(Worker, Count - 1, Connections)],
        Self ! {self(), answers(Due, connect(Port), Port, [], 0)}
    end) || Worker <- lists:seq(0, Connections - 1)],
    Parts = [receive
        {Pid, Part} ->
            true = demonitor(Monitor, [flush]),
            Part;
        {'DOWN', Monitor, process, Pid, Reason} -> error({a_client_ended, Reason})
    end || {Pid, Monitor} <- Workers],
    #{us => lists:append([Us || {Us, _} <- Parts]),
      failed => lists:sum([Failed || {_, Failed} <- Parts]),
      passed_us => now_us() - Begin}.

request(Path, Token) ->
    iolist_to_binary(["GET /api/v1", Path, " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ",
                      Token, "\r\n\r\n"]).

connect(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port,
                                   [binary, {active, false}, {nodelay, true}, {packet, http_bin}],
                                   ?ANSWER_MS),
    Socket.

answers([], Socket, _, Us, Failed) ->
    ok = gen_tcp:close(Socket),
    {Us, Failed};
answers([{Due, Request} | Rest], Socket, Port, Us, Failed) ->
    await(Due),
    maybe
        ok ?= gen_tcp:send(Socket, Request),
        {ok, 200} ?= answer(Socket),
        answers(Rest, Socket, Port, [now_us() - Due | Us], Failed)
    else
        {ok, _} -> answers(Rest, Socket, Port, Us, Failed + 1);
        {error, _} ->
            _ = gen_tcp:close(Socket),
            answers(Rest, connect(Port), Port, Us, Failed + 1)
    end.

%% Timers are late by up to a millisecond, which counts as latency.
await(Due) ->
    case (Due - now_us()) div 1_000 of
        Ms when Ms > 0 -> receive after Ms -> ok end;
        _ -> ok
    end.

answer(Socket) ->
    case gen_tcp:recv(Socket, 0, ?ANSWER_MS) of
        {ok, {http_response, _, Status, _}} -> headers(Socket, Status, 0);
        {ok, _} -> {error, no_http};
        {error, _} = Error -> Error
    end.

headers(Socket, Status, Length) ->
    case gen_tcp:recv(Socket, 0, ?ANSWER_MS) of
        {ok, {http_header, _, 'Content-Length', _, Text}} ->
            headers(Socket, Status, binary_to_integer(Text));
        {ok, {http_header, _, _, _, _}} -> headers(Socket, Status, Length);
        {ok, http_eoh} -> body(Socket, Status, Length);
        {ok, _} -> {error, no_http};
        {error, _} = Error -> Error
    end.

body(_, Status, 0) -> {ok, Status};
body(Socket, Status, Length) ->
    maybe
        ok ?= inet:setopts(Socket, [{packet, raw}]),
        {ok, _} ?= gen_tcp:recv(Socket, Length, ?ANSWER_MS),
        ok ?= inet:setopts(Socket, [{packet, http_bin}]),
        {ok, Status}
    end.

-doc "The percentile of some values, by nearest rank.".
-spec percentile(Percent :: number(), [number(), ...]) -> number().
percentile(Percent, Values) ->
    Sorted = lists:sort(Values),
    lists:nth(max(1, ceil(length(Sorted) * Percent / 100)), Sorted).

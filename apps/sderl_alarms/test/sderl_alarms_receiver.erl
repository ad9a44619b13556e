%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_receiver).
-moduledoc """
A receiver of webhooks that behaves as it is told: it answers with a status each time, never, late,
with something that is no HTTP, or without end.
""".

-export([start/1, stop/1, url/1, requests/1]).

%% `Answer` is asked for the number of each request, from 1 on.
start(Answer) ->
    sderl_bench_receiver:start(fun(Number) ->
        Does = Answer(Number),
        {Does, fun(Socket) -> answer(Does, Socket) end}
    end).

stop(Receiver) -> sderl_bench_receiver:stop(Receiver).

url(Receiver) -> <<(sderl_bench_receiver:url(Receiver))/binary, "?a=1">>.

%% In their order.
requests(Receiver) -> sderl_bench_receiver:received(Receiver).

answer(hang, Socket) ->
    _ = gen_tcp:recv(Socket, 0),
    ok;
answer({late, Ms, Status}, Socket) ->
    receive after Ms -> answer(Status, Socket) end;
answer(rubbish, Socket) ->
    gen_tcp:send(Socket, "hello\r\n\r\n");
answer(endless, Socket) ->
    case gen_tcp:send(Socket, ["HTTP/1.1 ", binary:copy(~"x", 65_536)]) of
        ok -> answer(endless, Socket);
        {error, _} -> ok
    end;
answer(close, Socket) ->
    gen_tcp:close(Socket);
answer(Status, Socket) ->
    gen_tcp:send(Socket, ["HTTP/1.1 ", integer_to_list(Status),
                          " Said\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"]).

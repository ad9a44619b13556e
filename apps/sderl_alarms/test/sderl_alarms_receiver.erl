%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_receiver).
-moduledoc """
A receiver of webhooks that behaves as it is told: it answers with a status each time, never, late,
with something that is no HTTP, or without end. It tells its owner of each whole request.
""".

-export([start/1, stop/1, url/1, requests/1]).

%% `Answer` is asked for the number of each request, from 1 on.
start(Answer) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {active, false},
                                      {packet, http_bin}, {backlog, 100}]),
    {ok, Port} = inet:port(Listen),
    Counter = counters:new(1, []),
    Table = ets:new(requests, [public, ordered_set]),
    Acceptor = spawn_link(fun() -> accept(Listen, Counter, Table, Answer) end),
    ok = gen_tcp:controlling_process(Listen, Acceptor),
    #{port => Port, acceptor => Acceptor, table => Table}.

stop(#{acceptor := Acceptor}) ->
    unlink(Acceptor),
    exit(Acceptor, kill),
    ok.

url(#{port := Port}) ->
    iolist_to_binary(["http://127.0.0.1:", integer_to_list(Port), "/hook?a=1"]).

%% In their order: path, headers, body, and what was answered.
requests(#{table := Table}) -> [Request || {_, Request} <- ets:tab2list(Table)].

accept(Listen, Counter, Table, Answer) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    Pid = spawn(fun() -> receive go -> read(Socket, Counter, Table, Answer) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accept(Listen, Counter, Table, Answer).

read(Socket, Counter, Table, Answer) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, {http_request, 'POST', {abs_path, Path}, _}} ->
            serve(Path, Socket, Counter, Table, Answer);
        _ -> ok
    end.

serve(Path, Socket, Counter, Table, Answer) ->
    Headers = headers(Socket, #{}),
    ok = inet:setopts(Socket, [{packet, raw}]),
    {ok, Body} = gen_tcp:recv(Socket, binary_to_integer(map_get(~"content-length", Headers))),
    ok = counters:add(Counter, 1, 1),
    N = counters:get(Counter, 1),
    Does = Answer(N),
    true = ets:insert(Table, {N, #{path => Path, headers => Headers, body => json:decode(Body),
                                   raw => Body, does => Does}}),
    answer(Does, Socket).

headers(Socket, Seen) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, {http_header, _, Name, _, Value}} ->
            headers(Socket, Seen#{string:lowercase(text(Name)) => Value});
        {ok, http_eoh} -> Seen
    end.

text(Name) when is_atom(Name) -> atom_to_binary(Name);
text(Name) -> Name.

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

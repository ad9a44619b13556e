%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_receiver).
-moduledoc """
A receiver of webhooks on a port of its own: what it answers is asked of a function, and it keeps
each body with the status and the time of its answer.
""".

-export([start/1, stop/1, url/1, received/1]).
-export_type([receiver/0, received/0]).

-opaque receiver() :: #{port := inet:port_number(), acceptor := pid(), table := ets:table()}.

-type received() :: #{body := map(), status := 100..599, at_ms := integer()}.

-define(READ_MS, 30_000).

-doc "`Answer` gets the number of the request, from 1 on, and gives a status.".
-spec start(fun((pos_integer()) -> 100..599)) -> receiver().
start(Answer) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {active, false},
                                      {packet, http_bin}, {backlog, 100}]),
    {ok, Port} = inet:port(Listen),
    Table = ets:new(?MODULE, [public, ordered_set]),
    Acceptor = spawn_link(fun() -> accept(Listen, counters:new(1, []), Table, Answer) end),
    ok = gen_tcp:controlling_process(Listen, Acceptor),
    #{port => Port, acceptor => Acceptor, table => Table}.

-doc "Ends it. What it has received is gone with its owner.".
-spec stop(receiver()) -> ok.
stop(#{acceptor := Acceptor}) ->
    true = unlink(Acceptor),
    true = exit(Acceptor, kill),
    ok.

-doc "Where it listens.".
-spec url(receiver()) -> binary().
url(#{port := Port}) ->
    iolist_to_binary(["http://127.0.0.1:", integer_to_list(Port), "/hook"]).

-doc "All requests so far, in their order.".
-spec received(receiver()) -> [received()].
received(#{table := Table}) -> [Received || {_, Received} <- ets:tab2list(Table)].

accept(Listen, Counter, Table, Answer) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    Pid = spawn(fun() -> receive go -> serve(Socket, Counter, Table, Answer) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accept(Listen, Counter, Table, Answer).

%% One request, as those who send deliver: what is cut off has not been received.
serve(Socket, Counter, Table, Answer) ->
    maybe
        {ok, {http_request, 'POST', _, _}} ?= gen_tcp:recv(Socket, 0, ?READ_MS),
        {ok, Length} ?= length_of(Socket, none),
        ok ?= inet:setopts(Socket, [{packet, raw}]),
        {ok, Body} ?= gen_tcp:recv(Socket, Length, ?READ_MS),
        ok = counters:add(Counter, 1, 1),
        Number = counters:get(Counter, 1),
        Status = Answer(Number),
        true = ets:insert(Table, {Number, #{body => json:decode(Body), status => Status,
                                            at_ms => sderl_clock:now_ms()}}),
        gen_tcp:send(Socket, ["HTTP/1.1 ", integer_to_list(Status),
                              " Said\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"])
    end,
    gen_tcp:close(Socket).

length_of(Socket, Length) ->
    case gen_tcp:recv(Socket, 0, ?READ_MS) of
        {ok, {http_header, _, 'Content-Length', _, Text}} ->
            length_of(Socket, binary_to_integer(Text));
        {ok, {http_header, _, _, _, _}} -> length_of(Socket, Length);
        {ok, http_eoh} when is_integer(Length) -> {ok, Length};
        Other -> {error, Other}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_receiver).
-moduledoc """
A receiver of webhooks on a port of its own: a function says what it answers, and it keeps each
request with its answer and the time.
""".

-export([start/1, stop/1, url/1, received/1]).
-export_type([receiver/0, received/0, answer/0]).

-opaque receiver() :: #{port := inet:port_number(), acceptor := pid(), table := ets:table()}.

-doc "A status, or a name for another answer and the function that sends it over the socket.".
-type answer() :: 100..599 | {Name :: term(), fun((gen_tcp:socket()) -> term())}.

-doc "`answer`: the status, or the name. Header names are in lower case.".
-type received() :: #{path := binary(), headers := #{binary() => binary()}, raw := binary(),
                      body := json:decode_value(), answer := term(), at_ms := integer()}.

-define(READ_MS, 30_000).

-doc "`Answer` gets the number of the request, from 1 on.".
-spec start(fun((pos_integer()) -> answer())) -> receiver().
start(Answer) ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {active, false},
                                      {packet, http_bin}, {backlog, 100}]),
    {ok, Port} = inet:port(Listen),
    Table = ets:new(?MODULE, [public, ordered_set]),
    Acceptor = spawn_link(fun() -> accept(Listen, counters:new(1, []), Table, Answer) end),
    ok = gen_tcp:controlling_process(Listen, Acceptor),
    #{port => Port, acceptor => Acceptor, table => Table}.

-doc "Ends it. The requests are kept until the process that started it ends.".
-spec stop(receiver()) -> ok.
stop(#{acceptor := Acceptor}) ->
    true = unlink(Acceptor),
    true = exit(Acceptor, kill),
    ok.

-doc "Its URL.".
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

%% One request. One that is cut off is not recorded.
serve(Socket, Counter, Table, Answer) ->
    maybe
        {ok, {http_request, 'POST', {abs_path, Path}, _}} ?= gen_tcp:recv(Socket, 0, ?READ_MS),
        {ok, #{~"content-length" := Length} = Headers} ?= headers(Socket, #{}),
        ok ?= inet:setopts(Socket, [{packet, raw}]),
        {ok, Body} ?= gen_tcp:recv(Socket, binary_to_integer(Length), ?READ_MS),
        ok = counters:add(Counter, 1, 1),
        Number = counters:get(Counter, 1),
        {Name, Send} = case Answer(Number) of
            Status when is_integer(Status) -> {Status, fun(To) -> send_status(Status, To) end};
            Given -> Given
        end,
        Received = #{path => Path, headers => Headers, raw => Body, body => json:decode(Body),
                     answer => Name, at_ms => sderl_clock:now_ms()},
        true = ets:insert(Table, {Number, Received}),
        Send(Socket)
    end,
    gen_tcp:close(Socket).

send_status(Status, Socket) ->
    gen_tcp:send(Socket, ["HTTP/1.1 ", integer_to_list(Status),
                          " Said\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"]).

headers(Socket, Seen) ->
    case gen_tcp:recv(Socket, 0, ?READ_MS) of
        {ok, {http_header, _, Name, _, Value}} when is_atom(Name) ->
            headers(Socket, Seen#{string:lowercase(atom_to_binary(Name)) => Value});
        {ok, {http_header, _, Name, _, Value}} ->
            headers(Socket, Seen#{string:lowercase(Name) => Value});
        {ok, http_eoh} ->
            {ok, Seen};
        Other ->
            {error, Other}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_dashboard_tests).

-include_lib("eunit/include/eunit.hrl").

-define(S, sderl_bench_dashboard_socket).

%% Messages with each encoding of the length, sent in pieces of several sizes. One message is
%% fragmented, with a ping between its fragments.
socket_test_() ->
    Frame = fun(Seq, Length) ->
        iolist_to_binary(["{\"seq\":", integer_to_list(Seq), ",\"type\":\"frame\",\"x\":\"",
                          lists:duplicate(Length, $x), "\"}"])
    end,
    <<Half:20/binary, Other/binary>> = Frame(13, 300),
    Sent = iolist_to_binary([
        sent(1, 1, ~"{\"type\":\"hello\"}"),
        sent(1, 1, Frame(10, 5)), sent(1, 1, Frame(11, 70_000)),
        sent(1, 1, ~"{\"type\":\"missed\",\"frames\":1}"),
        sent(0, 1, Half), sent(1, 9, ~"still there?"), sent(1, 0, Other),
        sent(1, 1, Frame(14, 200))
    ]),
    {inparallel, [
        {lists:concat(["pieces of ", Size]), {spawn, fun() ->
            Expected = #{messages => 6, frames => 4, missing => 1, told_missed => 1, state => open},
            {Counts, Pong} = talk(Sent, Size),
            ?assertEqual(Expected, maps:remove(bytes, Counts)),
            ?assertEqual(~"still there?", Pong)
        end}}
     || Size <- [1, 3, 1000, 1_000_000]
    ]}.

refused_test() ->
    {ok, Listen} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, Port} = inet:port(Listen),
    _ = spawn_link(fun() ->
        {ok, Socket} = gen_tcp:accept(Listen),
        {ok, _} = gen_tcp:recv(Socket, 0),
        ok = gen_tcp:send(Socket, "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
    end),
    ?assertEqual({error, {refused, ~"HTTP/1.1 401 Unauthorized"}},
                 ?S:start(#{ip => {127, 0, 0, 1}, port => Port, token => ~"no"})).

%% Plays a server that sends `Sent`, `Size` bytes at a time. The pong shows that the client has read
%% everything up to the ping.
talk(Sent, Size) ->
    {ok, Listen} = gen_tcp:listen(0,
                                  [binary, {ip, {127, 0, 0, 1}}, {active, false}, {nodelay, true}]),
    {ok, Port} = inet:port(Listen),
    Self = self(),
    _ = spawn_link(fun() ->
        {ok, Socket} = gen_tcp:accept(Listen),
        {ok, <<"GET /ws", _/binary>>} = gen_tcp:recv(Socket, 0),
        ok = pieces(Socket, <<"HTTP/1.1 101 Switching Protocols\r\n\r\n", Sent/binary>>, Size),
        {ok, <<1:1, 0:3, 10:4, 1:1, Length:7, Mask:4/binary>>} = gen_tcp:recv(Socket, 6),
        {ok, Masked} = gen_tcp:recv(Socket, Length),
        Self ! {pong, << <<(A bxor B)>>
                        || {A, B} <- lists:zip(binary_to_list(Masked), binary_to_list(
                            binary:part(binary:copy(Mask, Length), 0, Length)
                        ))>>},
        {error, closed} = read_on(Socket)
    end),
    {ok, Client} = ?S:start(#{ip => {127, 0, 0, 1}, port => Port, token => ~"yes"}),
    Pong = receive {pong, Text} -> Text end,
    %% The last message follows the ping.
    ok = sderl_fleet:await(fun() -> map_get(frames, ?S:counts(Client)) =:= 4 end, 60_000),
    Counts = ?S:counts(Client),
    ok = ?S:stop(Client),
    {Counts, Pong}.

read_on(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, _} -> read_on(Socket);
        {error, _} = Error -> Error
    end.

pieces(_, <<>>, _) ->
    ok;
pieces(Socket, Bytes, Size) ->
    <<Piece:(min(Size, byte_size(Bytes)))/binary, Rest/binary>> = Bytes,
    ok = gen_tcp:send(Socket, Piece),
    pieces(Socket, Rest, Size).

sent(Final, Code, Payload) ->
    Length = byte_size(Payload),
    {Short, Long} =
        if
            Length < 126 -> {Length, <<>>};
            Length < 65_536 -> {126, <<Length:16>>};
            true -> {127, <<Length:64>>}
        end,
    [<<Final:1, 0:3, Code:4, 0:1, Short:7>>, Long, Payload].

options_test_() ->
    Default = maps:from_list([{Name, Value}
                              || #{name := Name, default := Value} <- maps:get(
                                  arguments, sderl_bench_dashboard_experiment:command()
                              )]),
    Check = fun(Options) ->
        sderl_bench_dashboard_experiment:check(maps:merge(Default, Options))
    end,
    [
        ?_assertEqual({ok, Default}, Check(#{})),
        ?_assertMatch({error, _}, Check(#{nodes => 1})),
        ?_assertMatch({error, _}, Check(#{groups => 2001})),
        ?_assertMatch({ok, #{groups := 1200}}, Check(#{groups => 1200})),
        ?_assertMatch({ok, #{many_groups := 1200}}, Check(#{})),
        ?_assertMatch({ok, #{many_groups := 0}}, Check(#{many_groups => 0})),
        ?_assertMatch({ok, #{many_groups := 80}}, Check(#{nodes => 10, groups => 5})),
        ?_assertMatch({error, _}, Check(#{many_groups => -1})),
        ?_assertMatch({error, _}, Check(#{interval_ms => 10})),
        ?_assertMatch({error, _}, Check(#{clients => 0}))
    ].

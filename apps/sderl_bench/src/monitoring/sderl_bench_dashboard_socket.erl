%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_dashboard_socket).
-moduledoc """
A client of the dashboard's WebSocket (RFC 6455) that counts what it receives, as an open page
would.

It reads messages as fast as they come, answers pings, and ends with the process that started it.
""".

-export([start/1, start/2, counts/1, stop/1]).
-export_type([target/0, counts/0]).

-doc "Where the dashboard listens, and the token it asks for.".
-type target() :: #{ip := inet:ip_address(), port := inet:port_number(), token := binary()}.

-doc """
Messages of all kinds and their bytes; of the frames: how many came, how many are `missing` between
the first and the last by their numbers, and how many the server said it left out for this client.
`state` is `open`, or why it is not.
""".
-type counts() :: #{
    messages := non_neg_integer(),
    bytes := non_neg_integer(),
    frames := non_neg_integer(),
    missing := non_neg_integer(),
    told_missed := non_neg_integer(),
    state := open | {closed, term()}
}.

-define(CONNECT_MS, 10_000).
-define(ASK_MS, 10_000).
-define(TEXT, 1).
-define(CLOSE, 8).
-define(PING, 9).
-define(PONG, 10).

-doc "Opens it; an error when the server does not take it.".
-spec start(target()) -> {ok, pid()} | {error, term()}.
start(Target) -> start(Target, #{}).

-doc """
The same. The process `alarms` gets `{sderl_bench_alarms, Pid, At, Message}` for each message about
alarms: the time of its arrival (`sderl_clock:now_ms/0`) and its content.
""".
-spec start(target(), #{alarms => pid()}) -> {ok, pid()} | {error, term()}.
start(Target, Options) ->
    Owner = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> begin_at(Target, Options, Owner) end),
    receive
        {Pid, Answer} ->
            true = demonitor(Monitor, [flush]),
            case Answer of
                open -> {ok, Pid};
                {error, _} = Error -> Error
            end;
        {'DOWN', Monitor, process, Pid, Reason} ->
            {error, Reason}
    end.

-doc "The counts so far.".
-spec counts(pid()) -> counts().
counts(Pid) ->
    Monitor = monitor(process, Pid),
    Pid ! {counts, self(), Monitor},
    receive
        {Monitor, Counts} ->
            true = demonitor(Monitor, [flush]),
            Counts;
        {'DOWN', Monitor, process, Pid, Reason} ->
            exit({?MODULE, Reason})
    after ?ASK_MS ->
        exit({?MODULE, timeout})
    end.

-doc "Closes it.".
-spec stop(pid()) -> ok.
stop(Pid) ->
    Monitor = monitor(process, Pid),
    Pid ! stop,
    receive
        {'DOWN', Monitor, process, Pid, _} -> ok
    end.

begin_at(Target, Options, Owner) ->
    _ = monitor(process, Owner),
    case opened(Target) of
        {ok, Socket, Rest} ->
            Owner ! {self(), open},
            loop(Socket, Rest, #{
                messages => 0, bytes => 0, frames => 0, first => none, last => none,
                told_missed => 0, state => open, parts => [],
                alarms => maps:get(alarms, Options, none)
            });
        {error, _} = Error ->
            Owner ! {self(), Error}
    end.

opened(#{ip := Ip, port := Port, token := Token}) ->
    maybe
        {ok, Socket} ?= gen_tcp:connect(Ip, Port, [binary, {active, false}, {nodelay, true}],
                                        ?CONNECT_MS),
        ok ?= gen_tcp:send(Socket, [
            "GET /ws HTTP/1.1\r\nHost: ", inet:ntoa(Ip), ":", integer_to_list(Port),
            "\r\n"
            "Upgrade: websocket\r\n"
            "Connection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: ",
            base64:encode(rand:bytes(16)), "\r\nAuthorization: Bearer ", Token, "\r\n\r\n"
        ]),
        upgraded(Socket, <<>>)
    end.

upgraded(Socket, Head) ->
    case binary:split(Head, ~"\r\n\r\n") of
        [<<"HTTP/1.1 101", _/binary>>, Rest] ->
            {ok, Socket, Rest};
        [Other, _] ->
            {error, {refused, hd(binary:split(Other, ~"\r\n"))}};
        [_] ->
            maybe
                {ok, More} ?= gen_tcp:recv(Socket, 0, ?CONNECT_MS),
                upgraded(Socket, <<Head/binary, More/binary>>)
            end
    end.

loop(Socket, Rest, Seen) ->
    {Left, Now} = taken(Socket, Rest, Seen),
    _ = inet:setopts(Socket, [{active, once}]),
    wait(Socket, [Left], missing_bytes(Left), Now).

%% A long message comes in many parts, which are put together once.
wait(Socket, Parts, Missing, Seen) ->
    receive
        {tcp, Socket, Data} when byte_size(Data) < Missing ->
            _ = inet:setopts(Socket, [{active, once}]),
            wait(Socket, [Parts, Data], Missing - byte_size(Data), Seen);
        {tcp, Socket, Data} ->
            loop(Socket, iolist_to_binary([Parts, Data]), Seen);
        {tcp_closed, Socket} ->
            wait(Socket, [], 0, Seen#{state := {closed, by_server}});
        {tcp_error, Socket, Reason} ->
            wait(Socket, [], 0, Seen#{state := {closed, Reason}});
        {counts, From, Ref} ->
            From ! {Ref, told(Seen)},
            wait(Socket, Parts, Missing, Seen);
        stop ->
            _ = gen_tcp:send(Socket, message(?CLOSE, <<1000:16>>)),
            gen_tcp:close(Socket);
        {'DOWN', _, process, _, _} ->
            gen_tcp:close(Socket)
    end.

missing_bytes(Left) ->
    case sized(Left) of
        {Size, Skip} -> max(1, Skip + Size - byte_size(Left));
        more -> 1
    end.

%% The length of the payload of the first message, and where it begins. (Servers do not mask.)
sized(<<_, 127, Size:64, _/binary>>) -> {Size, 10};
sized(<<_, 126, Size:16, _/binary>>) -> {Size, 4};
sized(<<_, Size, _/binary>>) when Size < 126 -> {Size, 2};
sized(_) -> more.

taken(Socket, Bytes, Seen) ->
    case sized(Bytes) of
        {Size, Skip} when byte_size(Bytes) >= Skip + Size ->
            <<Final:1, _:3, Code:4, _/bits>> = Bytes,
            taken(Socket, binary:part(Bytes, Skip + Size, byte_size(Bytes) - Skip - Size),
                  seen(Socket, Code, Final, binary:part(Bytes, Skip, Size), Seen));
        _ ->
            {binary:copy(Bytes), Seen}
    end.

seen(Socket, ?PING, _, Payload, Seen) ->
    _ = gen_tcp:send(Socket, message(?PONG, Payload)),
    Seen;
seen(_, ?CLOSE, _, Payload, Seen) ->
    Seen#{state := {closed, Payload}};
seen(_, Code, 0, Payload, #{parts := Parts} = Seen) when Code =< 2 ->
    Seen#{parts := [Parts, Payload]};
seen(_, Code, 1, Payload, #{parts := Parts, messages := N, bytes := B} = Seen) when Code =< ?TEXT ->
    Text = iolist_to_binary([Parts, Payload]),
    counted(Text, Seen#{parts := [], messages := N + 1, bytes := B + byte_size(Text)});
seen(_, _, _, _, Seen) ->
    Seen.

%% The messages are not decoded: these clients share the machine with the page, which does that.
counted(Text, #{frames := Frames, first := First, told_missed := Told, alarms := To} = Seen) ->
    _ = [To ! {sderl_bench_alarms, self(), sderl_clock:now_ms(), json:decode(Text)}
         || is_pid(To), is(~"alarms", Text)],
    case {is(~"frame", Text), is(~"missed", Text)} of
        {true, _} ->
            Seq = number(~"\"seq\":", Text),
            Seen#{frames := Frames + 1, first := if First =:= none -> Seq; true -> First end,
                  last := Seq};
        {_, true} ->
            Seen#{told_missed := Told + number(~"\"frames\":", Text)};
        _ ->
            Seen
    end.

is(Type, Text) ->
    binary:match(Text, <<"\"type\":\"", Type/binary, "\"">>) =/= nomatch.

number(Key, Text) ->
    {At, Length} = binary:match(Text, Key),
    {Number, _} =
        string:to_integer(binary:part(Text, At + Length, min(20, byte_size(Text) - At - Length))),
    Number.

told(#{first := First, last := Last, frames := Frames} = Seen) ->
    Missing = if First =:= none -> 0; true -> Last - First + 1 - Frames end,
    (maps:with([messages, bytes, frames, told_missed, state], Seen))#{missing => Missing}.

%% Clients must mask what they send.
message(Code, Payload) when byte_size(Payload) < 126 ->
    Mask = rand:bytes(4),
    Length = byte_size(Payload),
    Masks = binary:part(binary:copy(Mask, Length div 4 + 1), 0, Length),
    Masked = << <<(A bxor B)>>
               || {A, B} <- lists:zip(binary_to_list(Payload), binary_to_list(Masks))>>,
    [<<1:1, 0:3, Code:4, 1:1, Length:7>>, Mask, Masked].

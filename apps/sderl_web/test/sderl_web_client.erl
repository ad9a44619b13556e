%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_client).
-moduledoc """
A WebSocket client that sends whatever a test wants, also malformed frames. It reads only when
asked.
""".

-export([open/2, open/3, open_tls/3, ask/2, ask/3, text/2, frame/3, bytes/2, next/2, until/3,
         until_close/2, close/1, http/2, http/3, raw/3]).

-define(MS, 60_000).

%% A socket, or the status with which it was refused.
open(Port, Token) -> open(Port, ["/ws?token=", Token], []).

open(Port, Path, Headers) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port,
                                   [binary, {active, false}, {nodelay, true}, {recbuf, 65_536}],
                                   ?MS),
    upgraded(Socket, Port, Path, Headers).

%% The same over TLS, with options of ssl besides; `{error, _}` where there is no connection.
open_tls(Port, Token, Options) ->
    maybe
        {ok, Socket} ?= ssl:connect({127, 0, 0, 1}, Port, [binary, {active, false} | Options], ?MS),
        upgraded(Socket, Port, ["/ws?token=", Token], [])
    end.

upgraded(Socket, Port, Path, Headers) ->
    Upgrade = [
        {"Upgrade", "websocket"},
        {"Connection", "Upgrade"},
        {"Sec-WebSocket-Version", "13"},
        {"Sec-WebSocket-Key", base64:encode(crypto:strong_rand_bytes(16))}
    ],
    ok = bytes(Socket, request("GET", Path, Port, Upgrade ++ Headers)),
    case head(Socket, <<>>) of
        <<"HTTP/1.1 101", _/binary>> -> {ok, Socket};
        <<"HTTP/1.1 ", Status:3/binary, _/binary>> ->
            ok = close(Socket),
            {refused, binary_to_integer(Status)}
    end.

request(Method, Path, Port, Headers0) ->
    Headers =
        case lists:keymember("Host", 1, Headers0) of
            true -> Headers0;
            false -> [{"Host", ["127.0.0.1:", integer_to_list(Port)]} | Headers0]
        end,
    [Method, " ", Path, " HTTP/1.1\r\n", [[Key, ": ", Value, "\r\n"] || {Key, Value} <- Headers],
     "\r\n"].

%% Reads byte by byte, as frames follow the head.
head(Socket, Seen) ->
    {ok, Byte} = receive_bytes(Socket, 1, ?MS),
    More = <<Seen/binary, Byte/binary>>,
    case binary:longest_common_suffix([More, ~"\r\n\r\n"]) of
        4 -> More;
        _ -> head(Socket, More)
    end.

%% A request over plain HTTP on a connection of its own: status, headers (lower case) and body.
http(Port, Path) -> http(Port, Path, #{}).

http(Port, Path, Options) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}], ?MS),
    Body = maps:get(body, Options, ""),
    Headers = [{"Connection", "close"} | maps:get(headers, Options, [])] ++
        [{"Content-Length", integer_to_list(iolist_size(Body))} || is_map_key(body, Options)],
    ok = gen_tcp:send(Socket, [request(maps:get(method, Options, "GET"), Path, Port, Headers),
                               Body]),
    Answer = all(Socket, []),
    ok = gen_tcp:close(Socket),
    [Head, Answered] = binary:split(Answer, ~"\r\n\r\n"),
    [<<"HTTP/1.1 ", Status:3/binary, _/binary>> | Lines] = binary:split(Head, ~"\r\n", [global]),
    {binary_to_integer(Status), maps:from_list(
        [{string:lowercase(K), V} || Line <- Lines, [K, V] <- [binary:split(Line, ~": ")]]
    ), Answered}.

%% Sends any bytes and returns what comes back. It closes its side for writing when the answer
%% begins, or after `Ms`.
raw(Port, Bytes, Ms) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}], ?MS),
    %% The server may close it while we still send.
    _ = gen_tcp:send(Socket, Bytes),
    First =
        case gen_tcp:recv(Socket, 0, Ms) of
            {ok, Part} -> Part;
            {error, _} -> <<>>
        end,
    _ = gen_tcp:shutdown(Socket, write),
    Answer = all(Socket, [First]),
    ok = gen_tcp:close(Socket),
    Answer.

all(Socket, Parts) ->
    case gen_tcp:recv(Socket, 0, ?MS) of
        {ok, Part} -> all(Socket, [Parts, Part]);
        {error, Ended} when Ended =:= closed; Ended =:= econnreset; Ended =:= enotconn ->
            iolist_to_binary(Parts)
    end.

%% Sends a request and waits for its reply; other messages are skipped.
ask(Socket, Request) -> ask(Socket, Request, ?MS).

ask(Socket, Request, Ms) ->
    Ref = erlang:unique_integer([positive]),
    ok = text(Socket, json:encode(Request#{ref => Ref})),
    until(Socket, fun(Message) -> maps:get(~"ref", Message, none) =:= Ref end, Ms).

text(Socket, Text) -> frame(Socket, 1, Text).

%% The mask is zero, so it does not change the payload.
frame(Socket, Code, Payload0) ->
    Payload = iolist_to_binary(Payload0),
    bytes(Socket, [<<1:1, 0:3, Code:4, 1:1, (lengths(byte_size(Payload)))/bits, 0:32>>, Payload]).

lengths(N) when N < 126 -> <<N:7>>;
lengths(N) when N < 65_536 -> <<126:7, N:16>>;
lengths(N) -> <<127:7, N:64>>.

bytes(Socket, Bytes) when is_port(Socket) -> gen_tcp:send(Socket, Bytes);
bytes(Socket, Bytes) -> ssl:send(Socket, Bytes).

receive_bytes(Socket, Count, Ms) when is_port(Socket) -> gen_tcp:recv(Socket, Count, Ms);
receive_bytes(Socket, Count, Ms) -> ssl:recv(Socket, Count, Ms).

%% The next message, or how the server closed. Pings are skipped.
next(Socket, Ms) ->
    maybe
        {ok, <<_:4, Code:4, Size0:8>>} ?= receive_bytes(Socket, 2, Ms),
        {ok, Payload} ?= payload(Socket, Size0, Ms),
        case Code of
            1 -> {text, json:decode(Payload)};
            8 when byte_size(Payload) >= 2 ->
                <<Why:16, _/binary>> = Payload,
                {close, Why};
            8 -> {close, none};
            _ -> next(Socket, Ms)
        end
    else
        {error, Reason} -> {error, Reason}
    end.

payload(Socket, Size, Ms) ->
    maybe
        {ok, N} ?= length_of(Socket, Size, Ms),
        case N of
            0 -> {ok, <<>>};
            _ -> receive_bytes(Socket, N, Ms)
        end
    end.

length_of(Socket, 126, Ms) -> number(receive_bytes(Socket, 2, Ms));
length_of(Socket, 127, Ms) -> number(receive_bytes(Socket, 8, Ms));
length_of(_, N, _) -> {ok, N}.

number({ok, Bytes}) -> {ok, binary:decode_unsigned(Bytes)};
number(Error) -> Error.

until(Socket, Wanted, Ms) ->
    case next(Socket, Ms) of
        {text, Message} ->
            case Wanted(Message) of
                true -> Message;
                false -> until(Socket, Wanted, Ms)
            end;
        Other ->
            Other
    end.

%% All messages until the server closes, and its close code.
until_close(Socket, Ms) -> until_close(Socket, Ms, []).

until_close(Socket, Ms, Seen) ->
    case next(Socket, Ms) of
        {text, Message} -> until_close(Socket, Ms, [Message | Seen]);
        Other -> {lists:reverse(Seen), Other}
    end.

close(Socket) when is_port(Socket) -> gen_tcp:close(Socket);
close(Socket) -> ssl:close(Socket).

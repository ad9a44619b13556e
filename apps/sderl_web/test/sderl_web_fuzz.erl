%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_fuzz).
-moduledoc """
Malformed requests and frames: valid ones with wrong parts, and random bytes.

They come from `rand` of the calling process: the same seed gives the same requests and frames.
""".

-export([request/2, frames/1]).

-define(METHODS, [~"GET", ~"GET", ~"GET", ~"HEAD", ~"PUT", ~"POST", ~"DELETE", ~"BREW", ~"get", ~"",
                  ~"PRI"]).
-define(PATHS, [
    ~"/", ~"/ws", ~"/metrics", ~"/api/v1/health", ~"/api/v1/state",
    ~"/api/v1/export?format=csv", ~"/api/v1/nothing", ~"/api/v1/nodes?limit=1&cursor=",
    ~"/api/v1/silences", ~"/api/v1/alarms/x/acknowledge", ~"/api/v1/tokens", ~"/api/nothing",
    ~"/assets/x.js", ~"/../x", ~"*", ~"http://evil.example/", ~"//", ~"/%",
    ~"/%ff", ~"/ws?token=%zz"
]).
-define(HEADERS, [
    ~"Host", ~"Origin", ~"Authorization", ~"Cookie", ~"Connection", ~"Upgrade", ~"Content-Length",
    ~"Transfer-Encoding", ~"Expect", ~"If-None-Match", ~"Accept-Encoding", ~"Range",
    ~"Sec-WebSocket-Key", ~"Sec-WebSocket-Version", ~"Sec-WebSocket-Extensions",
    ~"Sec-WebSocket-Protocol", ~"X-Forwarded-For", ~"Content-Type", ~"TE", ~"Trailer",
    ~"If-Match", ~"Idempotency-Key"
]).
-define(VALUES, [
    ~"", ~"websocket", ~"Upgrade", ~"13", ~"chunked", ~"gzip", ~"-1", ~"99999999999999999999",
    ~"100-continue", ~"localhost", ~"127.0.0.1:99999999", ~"[::1", ~"[]:", ~"a b",
    ~"evil.example:80",
    ~"http://evil.example", ~"null", ~"Bearer ", ~"Bearer =", ~"sderl_token=\"", ~";;=;", ~"\"",
    ~"permessage-deflate; client_max_window_bits=99", ~"bytes=0-", ~"W/\"x", ~"AA=="
]).
-define(WORDS, [
    ~"watch", ~"unwatch", ~"pause", ~"resume", ~"range", ~"at", ~"series", ~"traffic", ~"events",
    ~"names", ~"lookup", ~"process", ~"trace", ~"recordings", ~"open", ~"live", ~"record", ~"fly"
]).
-define(FIELDS, [
    ~"ref", ~"op", ~"node", ~"group", ~"t", ~"of", ~"from", ~"to", ~"points", ~"by", ~"window_s",
    ~"before", ~"limit", ~"kinds", ~"prefix", ~"name", ~"pid", ~"on", ~"sample", ~"max_per_s",
    ~"for_s", ~"confirm", ~"recording", ~"kind", ~"metrics"
]).

%% A request as it goes over the wire. One in four has the right host and token.
request(Port, Token) ->
    Right = [[~"Host: 127.0.0.1:", integer_to_binary(Port), ~"\r\nAuthorization: Bearer ", Token,
              ~"\r\n"]
             || one_in(4)],
    Headers = [[one_of(?HEADERS), ~": ", value(), ~"\r\n"]
               || _ <- lists:seq(1, rand:uniform(6) - 1)],
    Lines = [one_of(?METHODS), ~" ", path(), ~" ",
             one_of([~"HTTP/1.1", ~"HTTP/1.1", ~"HTTP/1.0", ~"HTTP/2.0", ~"HTTP/9"])],
    broken(iolist_to_binary([Lines, ~"\r\n", Right, Headers, ~"\r\n"])).

path() ->
    case one_in(3) of
        true -> [one_of(?PATHS), bytes(20)];
        false -> one_of(?PATHS)
    end.

value() ->
    case rand:uniform(4) of
        1 -> bytes(40);
        2 -> [one_of(?VALUES), bytes(4)];
        _ -> one_of(?VALUES)
    end.

%% Frames for one socket, below the rate limit. Each keeps to the rules of WebSocket: masked, whole,
%% and mostly text.
frames(Count) -> [frame() || _ <- lists:seq(1, Count)].

frame() ->
    Payload = payload(),
    Code = case one_in(60) of true -> rand:uniform(16) - 1; false -> 1 end,
    Mask = rand:bytes(4),
    Size = byte_size(Payload),
    Length = if
        Size < 126 -> <<Size:7>>;
        Size < 65_536 -> <<126:7, Size:16>>;
        true -> <<127:7, Size:64>>
    end,
    Frame = <<1:1, 0:3, Code:4, 1:1, Length/bits, Mask/binary, (masked(Payload, Mask))/binary>>,
    case one_in(80) of
        true -> broken(Frame);
        false -> Frame
    end.

masked(Payload, Mask) ->
    Times = byte_size(Payload) div 4 + 1,
    crypto:exor(Payload, binary:part(binary:copy(Mask, Times), 0, byte_size(Payload))).

payload() ->
    Text = iolist_to_binary(json:encode(object())),
    case one_in(40) of
        true -> broken(Text);
        false -> Text
    end.

object() ->
    Fields = #{one_of(?FIELDS) => term(3) || _ <- lists:seq(1, rand:uniform(5) - 1)},
    case one_in(10) of
        true -> Fields;
        false -> Fields#{~"op" => one_of(?WORDS)}
    end.

term(0) ->
    one_of([0, -1, 1, 1.0e300, 9_007_199_254_740_992, true, false, null, ~"", ~"node1@host", ~"now",
            ~"link", ~"\x{202e}x", binary:copy(~"x", rand:uniform(5000))]);
term(Depth) ->
    case rand:uniform(6) of
        1 -> [term(Depth - 1) || _ <- lists:seq(1, rand:uniform(4))];
        2 -> #{one_of(?FIELDS) => term(Depth - 1) || _ <- lists:seq(1, rand:uniform(4))};
        3 ->
            #{~"kind" => one_of([~"total", ~"node", ~"group", ~"edge", ~"link", ~"gateway"]),
              one_of(?FIELDS) => term(0)};
        _ -> term(0)
    end.

%% The bytes unchanged, with other bytes inserted, cut off, or with a part repeated.
broken(Bytes) ->
    At = rand:uniform(byte_size(Bytes) + 1) - 1,
    <<Before:At/binary, After/binary>> = Bytes,
    case rand:uniform(6) of
        1 -> iolist_to_binary([Before, bytes(8), After]);
        2 -> Before;
        3 -> <<Before/binary, Bytes/binary>>;
        _ -> Bytes
    end.

bytes(Most) -> rand:bytes(rand:uniform(Most)).

one_in(N) -> rand:uniform(N) =:= 1.

one_of(List) -> lists:nth(rand:uniform(length(List)), List).

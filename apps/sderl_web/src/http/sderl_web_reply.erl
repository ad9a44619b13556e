%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_reply).
-moduledoc "Answers over plain HTTP in the words and the shape of the WebSocket's.".

-export([json/3, refuse/4, no_token/1]).

-doc "An answer that is JSON already.".
-spec json(cowboy:http_status(), iodata(), cowboy_req:req()) -> cowboy_req:req().
json(Status, Json, Req) ->
    Headers = #{~"content-type" => ~"application/json", ~"cache-control" => ~"no-store"},
    cowboy_req:reply(Status, Headers, Json, Req).

-doc "An answer that says no.".
-spec refuse(cowboy:http_status(), sderl_web_protocol:code(), Why, cowboy_req:req()) ->
    cowboy_req:req()
when
    Why :: unicode:chardata().
refuse(Status, Code, Why, Req) -> json(Status, sderl_web_protocol:error_message(Code, Why), Req).

-doc "What a request without the right token gets.".
-spec no_token(cowboy_req:req()) -> cowboy_req:req().
no_token(Req) ->
    refuse(
        401,
        forbidden,
        "the token is missing or wrong: it is in the address that the dashboard printed at its "
        "start; send it as ?token=T or as the header Authorization: Bearer T",
        Req
    ).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_body).
-moduledoc """
Reads what is posted: one JSON object of at most 16 KiB, or what the path takes, within five
seconds.

A body that says that it is larger is refused before any of it is read, and one that does not say
how large it is as soon as it has become too large.
""".

-export([read/2]).

-define(MS, 5_000).

-doc "The object and its text, or the problem. The request is to be used from then on.".
-spec read(Most :: pos_integer(), cowboy_req:req()) ->
    {ok, #{binary() => term()}, Text :: binary(), cowboy_req:req()}
    | {error, sderl_web_problem:code(), unicode:chardata(), cowboy_req:req()}.
read(Most, Req) ->
    try cowboy_req:parse_header(~"content-type", Req) of
        {~"application", ~"json", _} -> sized(cowboy_req:body_length(Req), Most, Req);
        _ -> wrong_type(Req)
    catch
        exit:{request_error, _, _} -> wrong_type(Req)
    end.

%% No form of another page can send this type.
wrong_type(Req) ->
    {error, wrong_type, "what is sent is one JSON object with content-type: application/json", Req}.

sized(Length, Most, Req) when is_integer(Length), Length > Most -> too_large(Most, Req);
sized(_, Most, Req0) ->
    case cowboy_req:read_body(Req0, #{length => Most, period => ?MS, timeout => 2 * ?MS}) of
        {ok, Text, Req} when byte_size(Text) =< Most -> parsed(Text, Req);
        {_, Text, Req} when byte_size(Text) >= Most -> too_large(Most, Req);
        {more, _, Req} -> {error, too_slow, "the body did not come in five seconds: send it again",
                           Req}
    end.

too_large(Most, Req) ->
    {error, too_large, io_lib:format("a body has at most ~b KiB here", [Most div 1024]), Req}.

parsed(Text, Req) ->
    case sderl_web_parse:object(Text) of
        {ok, Object} -> {ok, Object, Text, Req};
        {error, Why} -> {error, bad_request, Why, Req}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_reply).
-moduledoc "Answers over plain HTTP: JSON, and problems (`m:sderl_web_problem`).".

-export([json/4, refuse/3, refuse/4, limited/2, no_token/2, problem_headers/0]).

-type headers() :: #{binary() => iodata()}.

-doc "An answer that is JSON already.".
-spec json(cowboy:http_status(), headers(), iodata(), cowboy_req:req()) -> cowboy_req:req().
json(Status, Headers, Json, Req) ->
    cowboy_req:reply(Status, Headers#{~"content-type" => ~"application/json",
                                      ~"cache-control" => ~"no-store"}, Json, Req).

-doc "An answer that says no.".
-spec refuse(sderl_web_problem:code(), Why :: unicode:chardata(), cowboy_req:req()) ->
    cowboy_req:req().
refuse(Code, Why, Req) -> refuse(Code, Why, #{}, Req).

-spec refuse(sderl_web_problem:code(), Why :: unicode:chardata(), headers(), cowboy_req:req()) ->
    cowboy_req:req().
refuse(Code, Why, Headers, Req) ->
    cowboy_req:reply(sderl_web_problem:status(Code), maps:merge(problem_headers(), Headers),
                     sderl_web_problem:make(Code, Why), Req).

-doc "The headers of a problem.".
-spec problem_headers() -> headers().
problem_headers() ->
    #{~"content-type" => ~"application/problem+json", ~"cache-control" => ~"no-store"}.

-doc "What is answered to whoever asks too often.".
-spec limited(Ms :: pos_integer(), cowboy_req:req()) -> cowboy_req:req().
limited(Ms, Req) ->
    sderl_web_notes:note(too_many_requests, "a request was refused: too many a second come from "
                                            "its address or with its token"),
    Seconds = integer_to_binary(ceil(Ms / 1000)),
    refuse(too_many_requests, ["too many requests: ask again after ", Seconds, " s"],
           #{~"retry-after" => Seconds}, Req).

-doc "What a request without a token that holds gets.".
-spec no_token(missing | unknown | expired | revoked, cowboy_req:req()) -> cowboy_req:req().
no_token(Why, Req) ->
    Challenge = case Why of
        missing -> ~"Bearer realm=\"sderl\"";
        _ -> <<"Bearer realm=\"sderl\", error=\"invalid_token\", error_description=\"",
               (atom_to_binary(Why))/binary, "\"">>
    end,
    refuse(unauthenticated, words(Why), #{~"www-authenticate" => Challenge}, Req).

words(expired) -> "the token has expired: an admin makes a new one with bin/sderl tokens add";
words(revoked) -> "the token was revoked: an admin makes a new one with bin/sderl tokens add";
words(_) ->
    "the token is missing or wrong: it is in the address that the dashboard printed at its "
    "start, or bin/sderl tokens add made it; send it as the header Authorization: Bearer T, or "
    "as ?token=T".

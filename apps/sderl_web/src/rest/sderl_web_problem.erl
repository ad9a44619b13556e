%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_problem).
-moduledoc """
Every kind of error that HTTP answers here, as problem details (RFC 9457). Pure.

The `type` of a problem is an address on this server that explains it.
""".

-export([make/2, status/1, of_status/1, all/0, find/1, type/1, schema/0]).
-export_type([code/0]).

-doc "The kinds of problems; those of the WebSocket (`t:sderl_web_protocol:code/0`) among them.".
-type code() ::
    bad_request | unauthenticated | forbidden | read_only | not_found | wrong_method | too_slow
    | conflict | changed | too_large | too_long | wrong_type | wrong_host | key_reused
    | headers_too_large | too_many_requests | failed | unavailable | late.

-doc "The code, the status, the title, and what a program does about it.".
-spec all() -> [{code(), 400..599, Title :: binary(), About :: binary()}].
all() ->
    [
        {bad_request, 400, ~"Bad request",
         ~"A parameter, a field or the request itself is wrong. Change it as the detail says."},
        {unauthenticated, 401, ~"Token needed",
         ~"The token is missing, unknown, expired or revoked. Send one that holds."},
        {forbidden, 403, ~"Role too low",
         ~"The token's role does not allow this. Ask for a token of the role in the detail."},
        {read_only, 403, ~"Read-only",
         ~"This dashboard was started without --write, so nobody can change anything over it."},
        {not_found, 404, ~"Not found", ~"There is no such path, or nothing of that name."},
        {wrong_method, 405, ~"Wrong method",
         ~"The path is there, and takes the methods of the header Allow."},
        {too_slow, 408, ~"Too slow", ~"The body did not come in time. Send it again."},
        {conflict, 409, ~"Conflict",
         ~"It is not in a state for that, or the same request is still being answered."},
        {changed, 412, ~"Changed meanwhile",
         ~"It is not what If-Match says any more. Read it again and decide anew."},
        {too_large, 413, ~"Too large", ~"Send or ask for less."},
        {too_long, 414, ~"Address too long", ~"The line of the request has more than 4,096 bytes."},
        {wrong_type, 415, ~"Wrong type of content",
         ~"What is sent is JSON, with content-type: application/json."},
        {wrong_host, 421, ~"Wrong host",
         ~"This name is not one that the dashboard answers to: the setting hosts adds one."},
        {key_reused, 422, ~"Idempotency key used before",
         ~"The key came before with another request. Take a new key for each thing to create."},
        {headers_too_large, 431, ~"Headers too large",
         ~"There are more than 60 headers, or one has more than 4,096 bytes."},
        {too_many_requests, 429, ~"Too many requests",
         ~"Wait for the seconds of the header Retry-After."},
        {failed, 500, ~"Failed", ~"The request ended by an error; the log says which."},
        {unavailable, 503, ~"Not available now",
         ~"What answers this is not running, or has too much to do. Ask again."},
        {late, 504, ~"No answer in time",
         ~"A change may have been made, or is still being made. Look before you ask again."}
    ].

-doc "What is known of a kind.".
-spec find(binary()) -> {ok, #{binary() => term()}} | error.
find(Name) ->
    case [shown(Row) || {Code, _, _, _} = Row <- all(), name(Code) =:= Name] of
        [Shown] -> {ok, Shown};
        [] -> error
    end.

shown({Code, Status, Title, About}) ->
    #{~"type" => type(Code), ~"title" => Title, ~"status" => Status, ~"about" => About}.

name(Code) -> binary:replace(atom_to_binary(Code), ~"_", ~"-", [global]).

-doc "The address of a kind.".
-spec type(code()) -> binary().
type(Code) -> <<"/api/v1/problems/", (name(Code))/binary>>.

-doc "The status of a kind.".
-spec status(code()) -> 400..599.
status(Code) ->
    {Code, Status, _, _} = lists:keyfind(Code, 1, all()),
    Status.

-doc "The kind of an answer that the HTTP server itself gives.".
-spec of_status(100..599) -> code().
of_status(Status) ->
    case lists:keyfind(Status, 2, all()) of
        {Code, _, _, _} -> Code;
        false when Status >= 500 -> failed;
        false -> bad_request
    end.

-doc "A problem as JSON; the detail names the term and the remedy.".
-spec make(code(), Detail :: unicode:chardata()) -> binary().
make(Code, Detail) ->
    {Code, Status, Title, _} = lists:keyfind(Code, 1, all()),
    %% In the order in which people read.
    iolist_to_binary([
        ~"{\"type\":", json:encode(type(Code)), ~",\"title\":", json:encode(Title),
        ~",\"status\":", integer_to_binary(Status), ~",\"detail\":",
        json:encode(sderl_web_json:text(Detail)), $}
    ]).

-doc "The JSON Schema of a problem.".
-spec schema() -> sderl_web_schema:schema().
schema() ->
    sderl_web_schema:object(#{
        type => sderl_web_schema:text(),
        title => sderl_web_schema:text(),
        status => #{~"type" => ~"integer", ~"minimum" => 400, ~"maximum" => 599},
        detail => sderl_web_schema:text()
    }).

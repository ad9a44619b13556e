%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_rest).
-moduledoc """
Asks a dashboard over HTTP, and checks each answer against the OpenAPI document that it serves: that
the path and the method are there, that the document lists the status, and that the body has the
shape of that status.
""".

-include_lib("stdlib/include/assert.hrl").

-export([document/1, ask/4, get/3, post/4, delete/3, operations/1, answered/0]).

%% The OpenAPI document of a server.
document(Port) ->
    {200, #{~"content-type" := ~"application/json"}, Text} =
        sderl_web_client:http(Port, "/api/v1/openapi.json"),
    json:decode(Text).

get(Path, Token, Server) -> ask("GET", Path, #{token => Token}, Server).

post(Path, Object, Token, Server) -> ask("POST", Path, #{token => Token, body => Object}, Server).

delete(Path, Token, Server) -> ask("DELETE", Path, #{token => Token}, Server).

%% Asks for a path below /api/v1. Options: token, body (a term or {text, Text}), headers.
ask(Method, Path, Options, #{port := Port, document := Document}) ->
    {Body, Type} = case Options of
        #{body := {text, Text}} -> {#{body => Text}, [{"Content-Type", "application/json"}]};
        #{body := Term} -> {#{body => json:encode(Term)}, [{"Content-Type", "application/json"}]};
        #{} -> {#{}, []}
    end,
    Bearer = [{"Authorization", ["Bearer ", Token]} || #{token := Token} <- [Options],
                                                       Token =/= none],
    {Status, Headers, Answer} = sderl_web_client:http(Port, ["/api/v1", Path], Body#{
        method => Method, headers => Bearer ++ Type ++ maps:get(headers, Options, [])
    }),
    {Status, Headers, checked(Method, iolist_to_binary(Path), Status, Headers, Answer, Document)}.

checked(Method, Path, Status, Headers, Answer, Document) ->
    [Plain | _] = binary:split(Path, ~"?"),
    case operation(Method, Plain, Document) of
        {ok, #{~"operationId" := Id, ~"responses" := Responses}} ->
            put({?MODULE, Id}, true),
            Key = integer_to_binary(Status),
            ?assertMatch({_, #{Key := _}}, {Id, Responses}),
            shaped(Id, map_get(Key, Responses), Headers, Answer, Document);
        %% A path that is not in the document is refused with a problem.
        none ->
            ?assert(Status =:= 401 orelse Status =:= 404 orelse Status =:= 405
                    orelse Status =:= 429, {Method, Path, Status}),
            shaped(none, problem(), Headers, Answer, Document)
    end.

problem() ->
    #{~"content" => #{~"application/problem+json" =>
                          #{~"schema" => #{~"$ref" => ~"#/components/schemas/Problem"}}}}.

shaped(_, #{~"content" := Content}, #{~"content-type" := Type}, Answer, Document) ->
    [Media | _] = binary:split(Type, ~";"),
    ?assert(is_map_key(Media, Content), {Media, Content}),
    #{Media := #{~"schema" := Schema}} = Content,
    case lists:suffix("json", binary_to_list(Media)) andalso Media =/= ~"application/x-ndjson" of
        true ->
            Term = json:decode(Answer),
            ?assertEqual([], sderl_web_json_schema:check(Term, Schema, Document)),
            Term;
        false -> Answer
    end;
shaped(_, _, _, Answer, _) ->
    ?assertEqual(~"", Answer),
    ~"".

%% The operation of a path; a fixed part of a template wins over a parameter.
operation(Method, Path, #{~"paths" := Paths}) ->
    Parts = binary:split(Path, ~"/", [global, trim_all]),
    Fitting = [Operations || Template := Operations <- maps:iterator(Paths, ordered),
                             fits(binary:split(Template, ~"/", [global, trim_all]), Parts)],
    Key = string:lowercase(list_to_binary(Method)),
    case [Operation || #{Key := Operation} <- Fitting] of
        [Operation | _] -> {ok, Operation};
        [] -> none
    end.

fits([], []) -> true;
fits([<<"{", _/binary>> | Template], [_ | Parts]) -> fits(Template, Parts);
fits([Part | Template], [Part | Parts]) -> fits(Template, Parts);
fits(_, _) -> false.

%% All operations of the document: {Id, Method, Template, Operation}.
operations(#{~"paths" := Paths}) ->
    [{Id, string:uppercase(Method), Template, Operation}
     || Template := Of <- Paths, Method := #{~"operationId" := Id} = Operation <- Of].

%% The operations that this process has asked for.
answered() -> lists:usort([Id || {{?MODULE, Id}, true} <- get()]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_openapi).
-moduledoc "The OpenAPI 3.1 document of a table of routes (`m:sderl_web_route`). Pure.".

-export([document/2]).

-define(PROBLEM, ~"Problem").

-doc "The document, for `json:encode/1`.".
-spec document(sderl_web_route:table(), #{binary() => sderl_web_schema:schema()}) ->
    #{binary() => term()}.
document(Table, Schemas) ->
    #{
        ~"openapi" => ~"3.1.0",
        ~"info" => #{
            ~"title" => ~"SD Erlang",
            ~"version" => ~"1",
            ~"summary" => ~"A cluster of s_groups that is watched",
            ~"description" =>
                ~"""
                Every error is a problem (RFC 9457) whose detail says what to do. Roles are viewer,
                operator and admin, each with the rights of those before it; x-role is the least
                that a token needs. Times are Unix milliseconds.
                """,
            ~"license" => #{~"name" => ~"Apache-2.0", ~"identifier" => ~"Apache-2.0"}
        },
        ~"servers" => [#{~"url" => ~"/api/v1"}],
        ~"security" => [#{~"token" => []}],
        ~"paths" => #{Path => maps:from_list([{atom_to_binary(Method), operation(Route)}
                                              || #{method := Method} = Route <- Routes])
                      || Path := Routes <- maps:groups_from_list(fun sderl_web_route:path/1,
                                                                 Table)},
        ~"components" => #{
            ~"securitySchemes" => #{~"token" => #{~"type" => ~"http", ~"scheme" => ~"bearer"}},
            ~"schemas" => Schemas#{?PROBLEM => sderl_web_problem:schema()}
        }
    }.

operation(#{op := Op, summary := Summary, role := Role, body := Body} = Route) ->
    Operation = #{
        ~"operationId" => atom_to_binary(Op),
        ~"summary" => Summary,
        ~"x-role" => atom_to_binary(Role),
        ~"parameters" => parameters(Route),
        ~"responses" => maps:merge(problems(Route), maps:from_list(successes(Route)))
    },
    maps:merge(maps:merge(Operation, security(Role)), body(Body)).

security(nobody) -> #{~"security" => []};
security(_) -> #{}.

parameters(#{path := Path, query := Query} = Route) ->
    [parameter(~"path", Field) || {_, _, _, _} = Field <- Path] ++
        [parameter(~"query", Field) || Field <- Query] ++
        [header(Name, About) || {true, Name, About} <- headers(Route)].

parameter(In, {Name, _, Type, Default}) ->
    #{~"properties" := #{Name := Schema}} =
        sderl_web_schema:fields([{Name, x, Type, Default}]),
    Parameter = #{~"name" => Name, ~"in" => In, ~"required" => Default =:= required,
                  ~"schema" => Schema},
    %% A list is one text with commas.
    case Schema of
        #{~"type" := ~"array"} -> Parameter#{~"style" => ~"form", ~"explode" => false};
        #{} -> Parameter
    end.

headers(#{creates := Creates, conditional := Conditional} = Route) ->
    [{Creates, ~"Idempotency-Key",
      ~"The same key with the same request within an hour gets the first answer again."},
     {Conditional, ~"If-Match", ~"The ETag that was read: refused where it is another by now."},
     {has_tag(Route), ~"If-None-Match", ~"The ETag that was read: 304 where it is the same."}].

header(Name, About) ->
    #{~"name" => Name, ~"in" => ~"header", ~"required" => false, ~"description" => About,
      ~"schema" => sderl_web_schema:text()}.

has_tag(#{method := get, answer := {200, _}}) -> true;
has_tag(_) -> false.

body(none) -> #{};
body(Fields) ->
    #{~"requestBody" => #{
        ~"required" => true,
        ~"content" => #{~"application/json" => #{~"schema" => sderl_web_schema:fields(Fields)}}
    }}.

successes(#{makes := true, answer := {200, Shape} = Answer} = Route) ->
    [success(Answer, Route), success({201, Shape}, Route#{answer := {201, Shape}})];
successes(#{answer := Answer} = Route) ->
    [success(Answer, Route)].

success(204, _) -> {~"204", #{~"description" => ~"It is done."}};
success({Status, text, Types}, _) ->
    {integer_to_binary(Status),
     #{~"description" => ~"The answer as it is made.",
       ~"content" => #{Type => #{~"schema" => sderl_web_schema:text()} || Type <- Types}}};
success({Status, Schema}, Route) ->
    Answer = #{~"description" => ~"The answer.",
               ~"content" => #{~"application/json" => #{~"schema" => Schema}}},
    {integer_to_binary(Status), case answer_headers(Route) of
        Headers when map_size(Headers) =:= 0 -> Answer;
        Headers -> Answer#{~"headers" => Headers}
    end}.

answer_headers(#{pages := Pages, answer := {Status, _}} = Route) ->
    Text = fun(About) -> #{~"description" => About, ~"schema" => sderl_web_schema:text()} end,
    maps:from_list(
        [{~"ETag", Text(~"For If-None-Match and If-Match.")} || has_tag(Route)] ++
        [{~"Link", Text(~"The next page, where there is one.")} || Pages =/= none] ++
        [{~"Location", Text(~"The path of what was created.")} || Status =:= 201] ++
        [{~"Location", Text(~"The path that tells how it goes.")} || Status =:= 202]
    ).

%% The problems of a route follow from its parameters.
problems(#{path := Path, body := Body, role := Role,
           creates := Creates, conditional := Conditional, problems := Others} = Route) ->
    Codes = lists:append([
        [Code || Role =/= nobody, Code <- [unauthenticated, forbidden]],
        [not_found || chooses(Path)],
        [Code || Body =/= none, Code <- [too_slow, too_large, wrong_type]],
        [Code || Creates, Code <- [conflict, key_reused]],
        [changed || Conditional],
        [Code || sderl_web_route:changes(Route), Code <- [read_only, late]],
        %% A query that it does not have is one, too.
        [bad_request, too_many_requests, failed, unavailable],
        Others
    ]),
    ByStatus = maps:groups_from_list(fun sderl_web_problem:status/1, lists:usort(Codes)),
    Problems = #{integer_to_binary(Status) => problem(Of) || Status := Of <- ByStatus},
    case has_tag(Route) of
        true -> Problems#{~"304" => #{~"description" => ~"It is as If-None-Match says."}};
        false -> Problems
    end.

chooses(Path) -> lists:any(fun is_tuple/1, Path).

problem(Codes) ->
    Titles = [Title || {Code, _, Title, _} <- sderl_web_problem:all(), lists:member(Code, Codes)],
    #{~"description" => iolist_to_binary(lists:join(~"; ", Titles)),
      ~"content" => #{~"application/problem+json" =>
                          #{~"schema" => sderl_web_schema:ref(?PROBLEM)}}}.

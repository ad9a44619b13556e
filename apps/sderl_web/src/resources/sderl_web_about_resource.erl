%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_about_resource).
-moduledoc "The interface about itself: its OpenAPI document, and what its problems mean.".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, list/1, text/0, whole/0, any/0, map/1, ref/1]).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    [
        #{op => openapi, method => get, path => [~"openapi.json"], role => nobody,
          summary => ~"This document",
          answer => {200, map(any())}},
        #{op => problems, method => get, path => [~"problems"], role => nobody,
          summary => ~"The kinds of errors",
          answer => {200, object(#{problems => list(ref(~"ProblemKind"))})}},
        #{op => problem, method => get,
          path => [~"problems", {~"kind", kind, {text, 64}, required}], role => nobody,
          summary => ~"A kind of error: where the type of a problem leads",
          answer => {200, ref(~"ProblemKind")}}
    ].

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    #{~"ProblemKind" => object(#{type => text(), title => text(), status => whole(),
                                 about => text()})}.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(openapi, _, _) ->
    {ok, {json, sderl_web_table:document()}};
answer(problems, _, _) ->
    Names = [Name || {Code, _, _, _} <- sderl_web_problem:all(),
                     <<"/api/v1/problems/", Name/binary>> <- [sderl_web_problem:type(Code)]],
    {ok, #{problems => [Kind || Name <- Names, {ok, Kind} <- [sderl_web_problem:find(Name)]]}};
answer(problem, #{kind := Name}, _) ->
    case sderl_web_problem:find(Name) of
        {ok, Kind} -> {ok, Kind};
        error ->
            {error, not_found, "there is no such kind of error: GET /api/v1/problems lists them"}
    end.

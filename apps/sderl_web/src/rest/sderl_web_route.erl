%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_route).
-moduledoc """
The paths under `/api/v1` as one table: what each takes, who may use it, and what it answers. Pure.

Requests are found and checked by the table, and the OpenAPI document is made of it
(`m:sderl_web_openapi`).
""".

-export([table/1, match/3, arguments/3, path/1, changes/1]).
-export_type([route/0, given/0, table/0, answer/0]).

-doc """
`path` is what follows `/api/v1/`; a field in it is a part that the caller chooses. `role` is the
least that a token must have, `nobody` where no token is needed. `pages`: the answer comes in pages,
and the request takes `limit` and `cursor`. `creates`: it takes an idempotency key. `conditional`:
it takes `If-Match`. `makes`: it answers 201 where what is named was not there before. `looks`: what
is posted is a question, and changes nothing. `body_bytes`: so much may be posted. `own_rights`: the
module checks rights beyond the role, and tells the audit log itself of what comes to it; of what is
refused before that the log is told as of all others.
""".
-type given() :: #{
    op := atom(),
    method := get | put | post | delete,
    path := [binary() | sderl_web_fields:field()],
    role := nobody | sderl_web_token:role(),
    summary := binary(),
    query => [sderl_web_fields:field()],
    body => [sderl_web_fields:field()],
    answer := answer(),
    pages => {Most :: pos_integer(), Default :: pos_integer()},
    creates => true,
    conditional => true,
    makes => true,
    looks => true,
    body_bytes => pos_integer(),
    own_rights => true,
    problems => [sderl_web_problem:code()]
}.

-doc "The status, and the shape of the JSON or the types of the text that follow.".
-type answer() ::
    {200 | 201 | 202, sderl_web_schema:schema()} | {200, text, [binary()]} | 204.

-doc "The same with the module that answers.".
-type route() :: #{
    module := module(),
    op := atom(),
    method := get | put | post | delete,
    path := [binary() | sderl_web_fields:field()],
    role := nobody | sderl_web_token:role(),
    summary := binary(),
    query := [sderl_web_fields:field()],
    body := none | [sderl_web_fields:field()],
    answer := answer(),
    pages := none | {Most :: pos_integer(), Default :: pos_integer()},
    creates := boolean(),
    conditional := boolean(),
    makes := boolean(),
    looks := boolean(),
    body_bytes := pos_integer(),
    own_rights := boolean(),
    problems := [sderl_web_problem:code()]
}.
-type table() :: [route()].

-define(CURSOR_BYTES, 2_000).
-define(BODY_BYTES, 16_384).

-doc "The table of some modules (`m:sderl_web_resource`).".
-spec table([module()]) -> table().
table(Modules) -> [complete(Given, Module) || Module <- Modules, Given <- Module:routes()].

complete(Given, Module) ->
    Route = maps:merge(#{module => Module, query => [], body => none, pages => none,
                         creates => false, conditional => false, makes => false, looks => false,
                         body_bytes => ?BODY_BYTES, own_rights => false, problems => []}, Given),
    case Route of
        #{pages := {Most, Default}, query := Query} ->
            Route#{query := Query ++ [
                {~"limit", limit, {whole, 1, Most}, Default},
                {~"cursor", cursor, {text, ?CURSOR_BYTES}, none}
            ]};
        #{} -> Route
    end.

-doc "The route of a request, with the parts of the path that the caller chose.".
-spec match(Method :: binary(), Path :: [binary()], table()) ->
    {ok, route(), #{binary() => binary()}} | {wrong_method, [binary()]} | none.
match(Method, Parts, Table) ->
    Fitting = [{Route, Chosen} || #{path := Path} = Route <- Table,
                                  {ok, Chosen} <- [fit(Path, Parts, #{})]],
    case [Found || {#{method := Is}, _} = Found <- Fitting, is_method(Method, Is)] of
        [{Route, Chosen} | _] -> {ok, Route, Chosen};
        [] when Fitting =:= [] -> none;
        [] ->
            Allowed = [allowed(Is) || {#{method := Is}, _} <- Fitting],
            {wrong_method, lists:usort(lists:append(Allowed))}
    end.

fit([], [], Chosen) -> {ok, Chosen};
fit([Part | Path], [Part | Parts], Chosen) -> fit(Path, Parts, Chosen);
fit([{Name, _, _, _} | Path], [Part | Parts], Chosen) -> fit(Path, Parts, Chosen#{Name => Part});
fit(_, _, _) -> no.

is_method(~"GET", get) -> true;
is_method(~"HEAD", get) -> true;
is_method(~"PUT", put) -> true;
is_method(~"POST", post) -> true;
is_method(~"DELETE", delete) -> true;
is_method(_, _) -> false.

allowed(get) -> [~"GET", ~"HEAD"];
allowed(put) -> [~"PUT"];
allowed(post) -> [~"POST"];
allowed(delete) -> [~"DELETE"].

-doc "The arguments of a request out of its path and its query.".
-spec arguments(route(), Chosen :: #{binary() => binary()}, Query :: #{binary() => binary()}) ->
    {ok, #{atom() => term()}} | {error, iodata()}.
arguments(#{path := Path, query := Fields}, Chosen, Query) ->
    maybe
        {ok, OfPath} ?= sderl_web_fields:check_texts([F || {_, _, _, _} = F <- Path], Chosen),
        {ok, OfQuery} ?= sderl_web_fields:check_texts(Fields, Query),
        {ok, maps:merge(OfQuery, OfPath)}
    end.

-doc "The path as it is written: `/alarms/{id}`.".
-spec path(route()) -> binary().
path(#{path := Path}) ->
    iolist_to_binary([[$/, case Part of
        {Name, _, _, _} -> [${, Name, $}];
        _ -> Part
    end] || Part <- Path]).

-doc "Whether a route changes anything.".
-spec changes(route()) -> boolean().
changes(#{method := Method, looks := Looks}) -> Method =/= get andalso not Looks.

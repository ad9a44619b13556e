%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_tokens_resource).
-moduledoc "Tokens under `/api/v1`: who asks, and for admins all of the file of tokens.".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, list/1, text/0, unix_ms/0, word/1, null_or/1, ref/1]).

%% Ten years.
-define(MOST_S, 315_360_000).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    Roles = sderl_web_token:roles(),
    Id = {~"id", id, {text, 64}, required},
    [
        #{op => session, method => get, path => [~"session"], role => viewer,
          summary => ~"Whose the token is, and what it allows",
          answer => {200, ref(~"Session")}},
        #{op => tokens, method => get, path => [~"tokens"], role => admin,
          summary => ~"The tokens of the file, without their secrets",
          answer => {200, object(#{tokens => list(ref(~"Token"))})}},
        #{op => add_token, method => post, path => [~"tokens"], role => admin,
          summary => ~"Makes a token; its text is in this answer and nowhere else",
          body => [{~"name", name, {text, 64}, required},
                   {~"role", role, {word, Roles}, required},
                   {~"for_s", for_s, {whole, 1, ?MOST_S}, none}],
          creates => true, problems => [conflict],
          answer => {201, object(#{token => text(), about => ref(~"Token")})}},
        #{op => revoke_token, method => delete, path => [~"tokens", Id], role => admin,
          summary => ~"Revokes a token; what is open with it is closed within a second",
          answer => 204, problems => [conflict]}
    ].

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    Role = word(sderl_web_token:roles()),
    #{
        ~"Session" => object(#{id => text(), name => text(), role => Role,
                               expires => null_or(unix_ms()), writable => sderl_web_schema:flag()}),
        ~"Token" => object(#{
            id => text(), name => text(), role => Role, created => unix_ms(),
            expires => null_or(unix_ms()), revoked => null_or(unix_ms()),
            state => word([active, expired, revoked])
        })
    }.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(session, _, #{token := Id, name := Name, role := Role, expires := Expires,
                     writable := Writable}) ->
    {ok, #{id => Id, name => Name, role => Role, writable => Writable,
           expires => sderl_web_json:null(Expires)}};
answer(tokens, _, _) ->
    {ok, #{tokens => sderl_web_tokens:list()}};
answer(add_token, #{name := Name, role := Role} = Args, _) ->
    Expires = case Args of
        #{for_s := Seconds} -> sderl_mon_clock:machine_ms() + 1_000 * Seconds;
        #{} -> none
    end,
    case sderl_web_tokens:add(Name, Role, Expires) of
        {ok, Text, #{id := Id} = About} ->
            {ok, #{token => Text, about => About}, #{location => [~"tokens/", Id]}};
        {error, Why} -> refused(Why)
    end;
answer(revoke_token, #{id := Id}, _) ->
    case sderl_web_tokens:revoke(Id) of
        {ok, _} -> done;
        {error, Why} -> refused(Why)
    end.

refused(no_file) ->
    {error, unavailable,
     "there is no file of tokens: who starts the dashboard names one with --tokens"};
refused(not_found) -> {error, not_found, "there is no such token: GET /api/v1/tokens lists them"};
refused(Why) -> {error, conflict, Why}.

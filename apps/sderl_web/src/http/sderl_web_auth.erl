%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_auth).
-moduledoc """
Whether a request may go on: whose its token is, and whether it comes too often.

A request with a token that holds is counted for the token, every other one for its address, before
the token is looked at: who guesses tokens is slowed.
""".

-export([admit/1, admit_anybody/1, refuse/2, token/1, client/1]).
-export_type([refusal/0]).

-type refusal() ::
    {limited, Ms :: pos_integer()}
    | {no_token, missing | unknown | expired | revoked}
    | unavailable.

-doc "Whose request it is.".
-spec admit(cowboy_req:req()) -> {ok, sderl_web_tokens:who()} | {refused, refusal()}.
admit(Req) ->
    Known = case token(Req) of
        none -> {error, missing};
        Token -> sderl_web_tokens:who(Token)
    end,
    case Known of
        {ok, #{id := Id} = Who} ->
            case taken({token, Id}) of
                ok -> {ok, named(Who, Req)};
                Refused -> Refused
            end;
        {error, unavailable} -> {refused, unavailable};
        {error, Why} ->
            case admit_anybody(Req) of
                ok -> {refused, {no_token, Why}};
                Refused -> Refused
            end
    end.

%% Several people use the dashboard's own token, and say their name, as with alarms.
named(#{id := ~"main"} = Who, Req) ->
    Name = cowboy_req:header(~"x-sderl-name", Req, ~""),
    case sderl_web_token:check_name(Name) of
        ok -> Who#{name := Name};
        {error, _} -> Who
    end;
named(Who, _) -> Who.

-doc "The same where no token is needed.".
-spec admit_anybody(cowboy_req:req()) -> ok | {refused, refusal()}.
admit_anybody(#{peer := {Ip, _}}) -> taken({address, Ip}).

taken(Asker) ->
    try sderl_web_limits:take(Asker) of
        ok -> ok;
        {wait, Ms} -> {refused, {limited, Ms}}
    catch
        exit:_ -> {refused, unavailable}
    end.

-doc "The answer to a request that may not go on.".
-spec refuse(refusal(), cowboy_req:req()) -> cowboy_req:req().
refuse({limited, Ms}, Req) -> sderl_web_reply:limited(Ms, Req);
refuse(unavailable, Req) ->
    sderl_web_reply:refuse(unavailable, "the dashboard restarts: ask again", Req);
refuse({no_token, Why}, Req) ->
    sderl_web_notes:note(wrong_token, "a request without a token that holds was refused"),
    sderl_web_reply:no_token(Why, Req).

-doc """
The token that a request brings: `Authorization: Bearer T`, `?token=T` or the cookie `sderl_token`.
""".
-spec token(cowboy_req:req()) -> binary() | none.
token(Req) ->
    case cowboy_req:header(~"authorization", Req, ~"") of
        <<Scheme:7/binary, Token/binary>> when Scheme =:= ~"Bearer "; Scheme =:= ~"bearer " ->
            Token;
        _ ->
            token_of([fun cowboy_req:parse_qs/1, fun cowboy_req:parse_cookies/1],
                     [~"token", ~"sderl_token"], Req)
    end.

token_of([], [], _) ->
    none;
token_of([Parse | Parses], [Key | Keys], Req) ->
    %% Both raise on what is malformed.
    try lists:keyfind(Key, 1, Parse(Req)) of
        {Key, Token} when is_binary(Token) -> Token;
        _ -> token_of(Parses, Keys, Req)
    catch
        _:_ -> token_of(Parses, Keys, Req)
    end.

-doc "Where a request comes from, for people.".
-spec client(cowboy_req:req()) -> binary().
client(#{peer := {Ip, Port}}) ->
    Address = case tuple_size(Ip) of
        8 -> [$[, inet:ntoa(Ip), $]];
        4 -> inet:ntoa(Ip)
    end,
    iolist_to_binary([Address, $:, integer_to_binary(Port)]).

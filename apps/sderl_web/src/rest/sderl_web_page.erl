%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_page).
-moduledoc """
Lists in pages. Pure.

A cursor says after which element the next page begins, by that element's place in the order and not
by a number. So no element is listed twice, or left out, because others came or went meanwhile. To a
caller it is a text without meaning; one of another path is refused.
""".

-export([cut/4, encode/2, decode/2, link/3]).

-doc """
The elements behind a key in the order of a function, at most so many, and the key of the last where
there are more. The list is in that order already.
""".
-spec cut([Element], fun((Element) -> Key), none | Key, pos_integer()) -> {[Element], none | Key}.
cut(Elements, KeyOf, After, Limit) ->
    Rest = case After of
        none -> Elements;
        _ -> lists:dropwhile(fun(Element) -> KeyOf(Element) =< After end, Elements)
    end,
    case lists:split(min(Limit, length(Rest)), Rest) of
        {Page, []} -> {Page, none};
        {Page, _} -> {Page, KeyOf(lists:last(Page))}
    end.

-doc "A cursor of an operation.".
-spec encode(Op :: atom(), Key :: term()) -> binary().
encode(Op, Key) ->
    base64:encode(iolist_to_binary(json:encode([Op, Key])), #{mode => urlsafe, padding => false}).

-doc "The key of a cursor; an error where it is none of this operation's.".
-spec decode(Op :: atom(), binary()) -> {ok, Key :: term()} | error.
decode(Op, Cursor) ->
    Name = atom_to_binary(Op),
    try sderl_web_parse:value(base64:decode(Cursor, #{mode => urlsafe, padding => false})) of
        {ok, [Name, Key]} -> {ok, Key};
        _ -> error
    catch
        error:_ -> error
    end.

-doc "The header `Link` of the next page: the same request with another cursor.".
-spec link(Path :: binary(), [{binary(), binary()}], Cursor :: binary()) -> binary().
link(Path, Query, Cursor) ->
    Fields = lists:keystore(~"cursor", 1, Query, {~"cursor", Cursor}),
    iolist_to_binary([$<, Path, $?, uri_string:compose_query(Fields), ~">; rel=\"next\""]).

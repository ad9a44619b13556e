%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_tag).
-moduledoc "Entity tags, and the headers that name some of them. Pure.".

-export([of_body/1, of_term/1, listed/1, is_listed/2]).

-doc "The tag of an answer.".
-spec of_body(iodata()) -> binary().
of_body(Body) ->
    <<Short:12/binary, _/binary>> = crypto:hash(sha256, Body),
    <<$", (base64:encode(Short, #{mode => urlsafe}))/binary, $">>.

-doc "The tag of what an answer is made of.".
-spec of_term(term()) -> binary().
of_term(Term) -> of_body(term_to_binary(Term, [deterministic])).

-doc "The tags of a header; weak ones as the others.".
-spec listed(binary()) -> [binary()].
listed(Header) ->
    [case Tag of <<"W/", Strong/binary>> -> Strong; _ -> Tag end
     || Part <- binary:split(Header, ~",", [global]), Tag <- [string:trim(Part)], Tag =/= <<>>].

-doc "Whether a tag is one of a header's; `*` is any.".
-spec is_listed(binary(), [binary()]) -> boolean().
is_listed(Tag, Listed) -> lists:member(Tag, Listed) orelse lists:member(~"*", Listed).

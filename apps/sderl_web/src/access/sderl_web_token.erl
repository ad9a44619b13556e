%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_token).
-moduledoc """
A token: whose it is, what it allows, and until when. Pure, but for the random bits of a new one.

A token is `sderl_ID_SECRET`. Its id is no secret and names it in lists. Of the secret, 128 random
bits, only a hash is kept. A plain hash is enough, because nobody can try that many secrets.

A token ends when the clock of the machine first reaches its end. That is kept (`ended`), so that it
does not hold again when the clock is set back.
""".

-export([new/4, id/1, proves/2, state/2, allows/2, roles/0, show/2, to_json/1, from_json/1]).
-export([note_end/2, end_at/2, is_forgotten/2, check_name/1]).
-import(sderl_web_json, [null/1]).
-export_type([token/0, role/0, state/0, about/0]).

-doc "Each role has the rights of those before it: `viewer`, `operator`, `admin`.".
-type role() :: viewer | operator | admin.

-doc """
`expires`, `revoked` and `ended`, when it was seen to have expired, are Unix milliseconds; `hash` is
that of the secret.
""".
-type token() :: #{
    id := binary(),
    name := binary(),
    role := role(),
    created := integer(),
    expires := none | integer(),
    revoked := none | integer(),
    ended := none | integer(),
    hash := binary()
}.

-type state() :: active | expired | revoked.
-doc "What others may know of a token.".
-type about() :: #{
    id := binary(), name := binary(), role := role(), created := integer(),
    expires := null | integer(), revoked := null | integer(), state := state()
}.

-define(ID_BYTES, 4).
-define(SECRET_BYTES, 16).
-define(MOST_NAME, 64).
%% One that has ended is listed so long.
-define(REMEMBERED_MS, 30 * 86_400_000).

-doc "A new token, and what its owner is given, once.".
-spec new(Name :: binary(), role(), Expires :: none | integer(), Now :: integer()) ->
    {Text :: binary(), token()}.
new(Name, Role, Expires, Now) ->
    Id = random(?ID_BYTES),
    Secret = random(?SECRET_BYTES),
    {<<"sderl_", Id/binary, "_", Secret/binary>>,
     #{id => Id, name => Name, role => Role, created => Now, expires => Expires, revoked => none,
       ended => none, hash => crypto:hash(sha256, Secret)}}.

random(Bytes) -> binary:encode_hex(crypto:strong_rand_bytes(Bytes), lowercase).

-doc "Whether a name can be one: 1 to 64 letters, digits and `._@+-`.".
-spec check_name(term()) -> ok | {error, unicode:chardata()}.
check_name(Name) when is_binary(Name), byte_size(Name) =< ?MOST_NAME ->
    case re:run(Name, "\\A[A-Za-z0-9._@+-]+\\z", [{capture, none}]) of
        match -> ok;
        nomatch -> {error, wrong_name()}
    end;
check_name(_) -> {error, wrong_name()}.

wrong_name() -> "the name of a token is 1 to 64 letters, digits and . _ @ + -".

-doc "The id in the text of a token.".
-spec id(binary()) -> {ok, binary()} | error.
id(<<"sderl_", Id:(2 * ?ID_BYTES)/binary, "_", Secret:(2 * ?SECRET_BYTES)/binary>>)
  when is_binary(Secret) -> {ok, Id};
id(_) -> error.

-doc "Whether a text is this token; how long that takes says nothing of the secret.".
-spec proves(binary(), token()) -> boolean().
proves(<<"sderl_", Id:(2 * ?ID_BYTES)/binary, "_", Secret/binary>>, #{id := Is, hash := Hash}) ->
    crypto:hash_equals(crypto:hash(sha256, Secret), Hash) andalso Id =:= Is;
proves(_, _) -> false.

-doc "Whether it holds at a time.".
-spec state(token(), Now :: integer()) -> state().
state(#{revoked := Revoked}, _) when Revoked =/= none -> revoked;
state(#{ended := Ended}, _) when Ended =/= none -> expired;
state(#{expires := Expires}, Now) when Expires =/= none, Now >= Expires -> expired;
state(_, _) -> active.

-doc "The token, with its end if it has expired by a time: then it has at any time.".
-spec note_end(Now :: integer(), token()) -> token().
note_end(Now, Token) ->
    case state(Token, Now) of
        expired -> end_at(Now, Token);
        _ -> Token
    end.

-doc "The token, which was seen to have expired at a time.".
-spec end_at(Seen :: integer(), token()) -> token().
end_at(Seen, #{ended := none} = Token) -> Token#{ended := Seen};
end_at(_, Token) -> Token.

-doc "Whether a role has the rights of another.".
-spec allows(role(), Needed :: role()) -> boolean().
allows(Role, Needed) -> rank(Role) >= rank(Needed).

rank(viewer) -> 1;
rank(operator) -> 2;
rank(admin) -> 3.

-doc "The roles, from the least on.".
-spec roles() -> [role()].
roles() -> [viewer, operator, admin].

-doc "Whether it ended so long ago that nobody needs to see it any more.".
-spec is_forgotten(token(), Now :: integer()) -> boolean().
is_forgotten(#{expires := Expires, revoked := Revoked}, Now) ->
    lists:any(fun(End) -> End =/= none andalso Now - End > ?REMEMBERED_MS end, [Expires, Revoked]).

-doc "What others may know of it.".
-spec show(token(), Now :: integer()) -> about().
show(#{expires := Expires, revoked := Revoked} = Token, Now) ->
    (maps:with([id, name, role, created], Token))#{
        expires => null(Expires), revoked => null(Revoked), state => state(Token, Now)
    }.

-doc "As it is in a file.".
-spec to_json(token()) -> #{atom() => term()}.
to_json(#{expires := Expires, revoked := Revoked, ended := Ended, hash := Hash} = Token) ->
    Token#{expires := null(Expires), revoked := null(Revoked), ended := null(Ended),
           hash := binary:encode_hex(Hash, lowercase)}.

-doc "Out of a file.".
-spec from_json(term()) -> {ok, token()} | error.
from_json(#{~"id" := Id, ~"name" := Name, ~"role" := Role, ~"created" := Created,
            ~"expires" := Expires, ~"revoked" := Revoked, ~"hash" := Hash} = Given)
  when is_binary(Id), byte_size(Id) =:= 2 * ?ID_BYTES, is_integer(Created), is_binary(Hash) ->
    maybe
        ok ?= check_name(Name),
        [Known] ?= [R || R <- roles(), atom_to_binary(R) =:= Role],
        {ok, End} ?= time(Expires),
        {ok, Revocation} ?= time(Revoked),
        %% Files of before lack it.
        {ok, Ended} ?= time(maps:get(~"ended", Given, null)),
        {ok, <<_:32/binary>> = Bytes} ?= bytes(Hash),
        {ok, #{id => Id, name => Name, role => Known, created => Created, expires => End,
               revoked => Revocation, ended => Ended, hash => Bytes}}
    else
        _ -> error
    end;
from_json(_) -> error.

time(null) -> {ok, none};
time(T) when is_integer(T) -> {ok, T};
time(_) -> error.

bytes(Hex) ->
    try {ok, binary:decode_hex(Hex)} catch error:badarg -> error end.

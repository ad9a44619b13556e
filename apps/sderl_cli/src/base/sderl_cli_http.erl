%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_http).
-moduledoc """
Asks a dashboard (`m:sderl_web`) for a command: by the link that it prints, which has its token.

The token is in an environment variable or a file rather than on the command line, which a list of
processes shows; it is never printed.
""".

-export([options/0, place/1, get/2, post/3, delete/2, shown/3, json/1]).
-export_type([place/0]).

-import(sderl_command, [option/4]).

-doc "Where a dashboard is, and how it is asked.".
-type place() :: #{url := binary(), token := fun(() -> binary()), ssl := [ssl:tls_client_option()]}.

-define(MS, 10_000).

-doc "The options of the command line, for `argparse`.".
-spec options() -> [map()].
options() ->
    [
        option(url, "LINK", string, "the address that mon or demo printed ($SDERL_DASHBOARD)"),
        option(token_file, "FILE", string,
               "a file with the token, where the address has none ($SDERL_TOKEN)"),
        option(tls_ca, "FILE", string, "trust the certificates of this file (PEM)")
    ].

-doc "The dashboard that options and environment name.".
-spec place(map()) -> {ok, place()} | {usage, unicode:chardata()}.
place(Options) ->
    Link = case Options of
        #{url := Url} -> Url;
        #{} -> os:getenv("SDERL_DASHBOARD", "")
    end,
    maybe
        {ok, Uri} ?= parsed(unicode:characters_to_binary(Link)),
        {ok, Token} ?= token(Uri, Options),
        {ok, Ssl} ?= trust(Options),
        {ok, #{url => iolist_to_binary(uri_string:recompose(
                   (maps:with([scheme, host, port], Uri))#{path => ~""})),
               token => fun() -> Token end, ssl => Ssl}}
    end.

parsed(~"") ->
    {usage, "which dashboard? say --url with the address that \"bin/sderl mon\" or \"demo\" "
            "printed, or set SDERL_DASHBOARD to it"};
parsed(Link) ->
    case uri_string:parse(Link) of
        #{scheme := Scheme, host := Host} = Uri when
            Host =/= ~"", Scheme =:= ~"http" orelse Scheme =:= ~"https"
        -> {ok, Uri};
        _ -> {usage, ["--url: \"", hd(binary:split(Link, ~"#")), "\" is no address of a dashboard; "
                      "one is http://127.0.0.1:8090/#token=..."]}
    end.

token(#{fragment := <<"token=", Token/binary>>}, _) when Token =/= ~"" -> {ok, Token};
token(_, #{token_file := File}) ->
    case file:read_file(File) of
        {ok, Text} -> {ok, string:trim(Text)};
        {error, Why} -> {usage, ["--token-file: ", File, ": ", file:format_error(Why)]}
    end;
token(_, _) ->
    case os:getenv("SDERL_TOKEN", "") of
        "" -> {usage, "the address has no #token=...: say --token-file, or set SDERL_TOKEN"};
        Token -> {ok, unicode:characters_to_binary(Token)}
    end.

trust(#{tls_ca := File}) ->
    case filelib:is_regular(File) of
        true -> {ok, [{verify, verify_peer}, {cacertfile, File}]};
        false -> {usage, ["--tls-ca: there is no file ", File]}
    end;
trust(_) ->
    {ok, []}.

-doc "Gets what is at a path below `/api/v1`, decoded.".
-spec get(place(), iodata()) -> {ok, term()} | {error, unicode:chardata()}.
get(#{url := Url} = Place, Path) ->
    ask(get, {address(Url, Path), headers(Place)}, Place).

-doc "Posts an object to a path: the answer, decoded.".
-spec post(place(), iodata(), map()) -> {ok, term()} | {error, unicode:chardata()}.
post(#{url := Url} = Place, Path, Object) ->
    ask(post, {address(Url, Path), headers(Place), "application/json",
               iolist_to_binary(json:encode(Object))}, Place).

-doc "Deletes what is at a path.".
-spec delete(place(), iodata()) -> {ok, term()} | {error, unicode:chardata()}.
delete(#{url := Url} = Place, Path) ->
    ask(delete, {address(Url, Path), headers(Place)}, Place).

-doc "An answer for the terminal: as JSON with the option `json`, else as `Show` makes it.".
-spec shown({ok, term()} | {error, unicode:chardata()}, #{atom() => term()},
            fun((term()) -> unicode:chardata())) -> sderl_command:result().
shown({ok, Answer}, #{json := true}, _) -> json(Answer);
shown({ok, Answer}, _, Show) -> {help, Show(Answer)};
shown({error, _} = Error, _, _) -> Error.

-doc "A term as a line of JSON.".
-spec json(term()) -> {help, unicode:chardata()}.
json(Term) -> {help, [json:encode(Term), $\n]}.

address(Url, Path) -> unicode:characters_to_list([Url, "/api/v1", Path]).

%% The name is for the audit log; header fields are of ASCII.
headers(#{token := Token}) ->
    [{"authorization", "Bearer " ++ binary_to_list(Token())}
     | [{"x-sderl-name", Name}
        || Name <- [os:getenv("USER", "")], Name =/= "", length(Name) =< 64,
           lists:all(fun(C) -> C > 32 andalso C < 127 end, Name)]].

ask(Method, Request, #{url := Url, ssl := Given}) ->
    {ok, _} = application:ensure_all_started([inets, ssl]),
    Ssl = case {Given, Url} of
        {[], <<"https", _/binary>>} ->
            [{verify, verify_peer}, {cacerts, public_key:cacerts_get()}];
        _ -> Given
    end,
    Options = [{timeout, ?MS}, {connect_timeout, ?MS}, {autoredirect, false}, {ssl, Ssl}],
    case httpc:request(Method, Request, Options, [{body_format, binary}]) of
        {ok, {{_, 204, _}, _, _}} -> {ok, null};
        {ok, {{_, Status, _}, _, Body}} when Status =:= 200; Status =:= 201 -> decoded(Body, Url);
        {ok, {{_, _, _}, _, Body}} -> {error, refused(Body, Url)};
        {error, Why} -> {error, [Url, ": ", reason(Why)]}
    end.

decoded(Body, Url) ->
    try
        {ok, json:decode(Body)}
    catch
        error:_ -> {error, [Url, ": the answer is not of a dashboard"]}
    end.

refused(Body, Url) ->
    try json:decode(Body) of
        #{~"detail" := Detail} -> Detail;
        _ -> [Url, ": the answer is not of a dashboard"]
    catch
        error:_ -> [Url, ": ", string:trim(sderl_mon_text:cut(Body, 300))]
    end.

reason({failed_connect, [_ | _] = Parts}) ->
    case [Why || {Inet, _, Why} <- Parts, Inet =:= inet orelse Inet =:= inet6] of
        [{tls_alert, {_, Text}} | _] -> Text;
        [Why | _] when is_atom(Why) -> ["cannot be connected: ", inet:format_error(Why)];
        _ -> "cannot be connected"
    end;
reason(timeout) -> "no answer in time";
reason(Why) -> io_lib:format("~0tP", [Why, 12]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_cookie).
-moduledoc """
The cookie of a cluster: the secret that its file names, or one that the service makes once and
keeps in a file of its folder that only its user can read.
""".

-export([of_cluster/2]).

-doc "The cookie, in a function as every secret. An error is a sentence.".
-spec of_cluster(generated | sderl_ops_file:secret(), Folder :: file:filename()) ->
    {ok, sderl_ops_secret:value()} | {error, unicode:chardata()}.
of_cluster(generated, Folder) ->
    File = filename:join(Folder, "cookie"),
    case file:read_file(File) of
        {ok, Cookie} when byte_size(Cookie) > 0 -> {ok, fun() -> Cookie end};
        {ok, <<>>} -> make(File);
        {error, enoent} -> make(File);
        {error, Why} -> {error, [File, " cannot be read: ", file:format_error(Why)]}
    end;
of_cluster(Secret, _) ->
    maybe
        {ok, Value} ?= sderl_ops_secret:resolve(Secret),
        check(Value, Secret)
    end.

%% Whole or not there: written beside and renamed.
make(File) ->
    Cookie = binary:encode_hex(crypto:strong_rand_bytes(20), lowercase),
    Part = [File, ".part"],
    maybe
        ok ?= file:write_file(Part, <<>>),
        ok ?= file:change_mode(Part, 8#600),
        ok ?= file:write_file(Part, Cookie, [sync]),
        ok ?= file:rename(Part, File),
        {ok, fun() -> Cookie end}
    else
        {error, Why} -> {error, [File, " cannot be written: ", file:format_error(Why)]}
    end.

check(Cookie, Secret) ->
    case re:run(Cookie(), "^[!-~]{1,255}$", [{capture, none}, dollar_endonly]) of
        match -> {ok, Cookie};
        nomatch ->
            {error, ["the cookie in ", sderl_ops_secret:describe(Secret),
                     " is not 1 to 255 characters of ASCII without blanks"]}
    end.

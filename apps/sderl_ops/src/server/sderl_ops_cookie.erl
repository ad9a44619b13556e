%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_cookie).
-moduledoc """
The cookie of a cluster: the secret that its file names, or one that the service makes once and
keeps in a file of its folder that only its user can read.
""".

-export([of_cluster/2]).

-doc "The cookie, wrapped in a function like every secret. An error is a sentence.".
-spec of_cluster(generated | sderl_ops_file:secret(), Folder :: file:filename()) ->
    {ok, sderl_ops_secret:value()} | {error, unicode:chardata()}.
of_cluster(generated, Folder) ->
    File = filename:join(Folder, "cookie"),
    case file:read_file(File) of
        {ok, Cookie} when byte_size(Cookie) > 0 -> {ok, fun() -> Cookie end};
        {ok, <<>>} -> make(Folder, File);
        {error, enoent} -> make(Folder, File);
        {error, Why} -> {error, [File, " cannot be read: ", file:format_error(Why)]}
    end;
of_cluster(Secret, _) ->
    maybe
        {ok, Value} ?= sderl_ops_secret:resolve(Secret),
        check(Value, Secret)
    end.

make(Folder, File) ->
    maybe
        ok ?= sderl_ops_share:ensure_cookie(Folder),
        {ok, Cookie} ?= file:read_file(File),
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

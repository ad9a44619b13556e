%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_static).
-moduledoc """
The dashboard's files, out of `priv/www` of this application, where the build puts them.

There are no secrets in them, so they are served without the token. The files in `assets/` have
their content's hash in their names, so browsers keep them for ever; the page itself is asked for
each time. Where nothing has been built, a plain page says how.
""".

-include_lib("kernel/include/file.hrl").

-export([init/2, parts/1, built/0]).

-define(NEVER_CHANGES, ~"public, max-age=31536000, immutable").
-define(ASK_EACH_TIME, ~"no-cache").

-doc false.
-spec init(cowboy_req:req(), sderl_web_api:options()) -> {ok, cowboy_req:req(), term()}.
init(Req, Options) ->
    {ok, serve(parts(cowboy_req:path(Req)), Req), Options}.

-doc """
A request's path as names below the folder. `error` for what leads elsewhere or is hidden: empty and
dotted names, separators and NULs that were written as `%2f` and the like.
""".
-spec parts(binary()) -> {ok, [binary()]} | error.
parts(<<"/">>) ->
    {ok, [<<"index.html">>]};
parts(<<"/", Path/binary>>) ->
    try [uri_string:percent_decode(Part) || Part <- binary:split(Path, <<"/">>, [global])] of
        Parts ->
            case lists:all(fun plain/1, Parts) of
                true -> {ok, Parts};
                false -> error
            end
    catch
        _:_ -> error
    end;
parts(_) ->
    error.

plain(Part) when is_binary(Part) ->
    match =:= re:run(Part, "\\A[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}\\z", [{capture, none}]);
plain(_) ->
    false.

-doc "Whether the pages have been built.".
-spec built() -> boolean().
built() ->
    case code:priv_dir(sderl_web) of
        {error, _} -> false;
        Priv -> filelib:is_regular(filename:join([Priv, "www", "index.html"]))
    end.

serve({ok, Parts}, Req) ->
    case code:priv_dir(sderl_web) of
        {error, _} -> lacking(Parts, Req);
        Priv -> file(filename:join([Priv, "www" | Parts]), Parts, Req)
    end;
serve(error, Req) ->
    missing(Req).

file(File, Parts, Req) ->
    case file:read_link_info(File, [{time, posix}]) of
        {ok, #file_info{type = regular, size = Size, mtime = Changed}} ->
            Tag = iolist_to_binary(io_lib:format("\"~.16b-~.16b\"", [Changed, Size])),
            Headers = #{~"content-type" => type(filename:extension(File)),
                        ~"cache-control" => caching(Parts), ~"etag" => Tag},
            case cowboy_req:header(~"if-none-match", Req) of
                Tag -> cowboy_req:reply(304, maps:remove(~"content-type", Headers), Req);
                _ -> cowboy_req:reply(200, Headers, body(Size, File), Req)
            end;
        _ ->
            lacking(Parts, Req)
    end.

%% An empty file cannot be sent as one.
body(0, _) -> <<>>;
body(Size, File) -> {sendfile, 0, Size, File}.

caching([~"assets" | _]) -> ?NEVER_CHANGES;
caching(_) -> ?ASK_EACH_TIME.

type(Extension) ->
    case unicode:characters_to_binary(Extension) of
        ~".html" -> ~"text/html; charset=utf-8";
        ~".js" -> ~"text/javascript; charset=utf-8";
        ~".css" -> ~"text/css; charset=utf-8";
        ~".svg" -> ~"image/svg+xml";
        ~".png" -> ~"image/png";
        ~".ico" -> ~"image/x-icon";
        ~".json" -> ~"application/json";
        ~".webmanifest" -> ~"application/manifest+json";
        ~".map" -> ~"application/json";
        ~".txt" -> ~"text/plain; charset=utf-8";
        ~".woff2" -> ~"font/woff2";
        _ -> ~"application/octet-stream"
    end.

lacking([~"index.html"], Req) ->
    %% The one page with its style in it, which is named by its hash.
    Style = plain_style(),
    Hash = base64:encode(crypto:hash(sha256, Style)),
    Headers = #{
        ~"content-type" => type(".html"),
        ~"cache-control" => ?ASK_EACH_TIME,
        ~"content-security-policy" => <<"default-src 'none'; style-src 'sha256-", Hash/binary,
                                        "'; base-uri 'none'; form-action 'none'; frame-ancestors "
                                        "'none'">>
    },
    cowboy_req:reply(200, Headers, plain_page(Style), Req);
lacking(_, Req) ->
    missing(Req).

missing(Req) ->
    cowboy_req:reply(404, #{~"content-type" => type(".txt"), ~"cache-control" => ?ASK_EACH_TIME},
                     "There is no such page.\n", Req).

plain_style() ->
    ~"""
    :root { color-scheme: light dark; }
    body {
      font: 16px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto 0;
      padding: 0 1.5rem;
    }
    h1 { font-size: 1.3rem; font-weight: 600; }
    code {
      font: 0.9em ui-monospace, monospace; padding: 0.1em 0.35em; border-radius: 4px;
      background: color-mix(in srgb, currentColor 10%, transparent);
    }
    """.

plain_page(Style) ->
    [
        ~"""
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>SD Erlang</title>
        <style>
        """,
        Style,
        ~"""
        </style>
        </head>
        <body>
        <h1>The dashboard runs, but its pages have not been built</h1>
        <p>They are made from the folder <code>web/</code> with Node.js: run
        <code>toolchain/web</code> in the project's folder and load this page again. Nothing needs
        to be restarted.</p>
        <p>Without them there are, with the token that was printed at the start:
        <code>/metrics</code> for Prometheus, <code>/api/v1/state</code> and
        <code>/api/v1/export?format=csv</code> for programs, and <code>bin/sderl top</code>
        for a terminal.</p>
        </body>
        </html>
        """
    ].

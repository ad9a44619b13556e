%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_post).
-moduledoc """
One POST to a webhook (`m:sderl_mon_post`), and its signature. A status 2xx is a delivery; anything
else is an error, also a redirection, because a signed message goes only where the route says.
""".

-export([post/4, signature/3]).

-import(sderl_mon_text, [text/2]).

-doc "Posts JSON with headers, in at most `Ms` milliseconds. Errors are sentences.".
-spec post(uri_string:uri_map(), [{binary(), iodata()}], iodata(), pos_integer()) ->
    ok | {error, binary()}.
post(Uri, Headers, Body, Ms) ->
    All = [{~"content-type", ~"application/json"}, {~"user-agent", ~"sderl-alarms"} | Headers],
    case sderl_mon_post:post(Uri, All, Body, Ms) of
        {ok, Status} when Status >= 200, Status < 300 -> ok;
        {ok, Status} -> {error, text("it answered ~w", [Status])};
        {error, _} = Error -> Error
    end.

-doc """
The value of the header `x-sderl-signature`: the time in seconds and the HMAC-SHA256, with the
secret, of that time, a dot and the body.
""".
-spec signature(Secret :: binary(), Seconds :: integer(), Body :: iodata()) -> iodata().
signature(Secret, Seconds, Body) ->
    Time = integer_to_binary(Seconds),
    Mac = crypto:mac(hmac, sha256, Secret, [Time, $., Body]),
    [~"t=", Time, ~",v1=", binary:encode_hex(Mac, lowercase)].

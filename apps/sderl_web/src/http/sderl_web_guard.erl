%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_guard).
-moduledoc """
What every request passes first: whether it is meant for us, and the headers of every answer.

A page of somebody else in the user's browser must not read the dashboard. Two ways lead around the
token's secrecy and are closed here:

- *DNS rebinding*: a stranger's name that suddenly means 127.0.0.1. The `Host` of a request must be
  an address, `localhost`, a name of this machine, or one of the configured `hosts`; a stranger's
  name is none of them.
- *Cross-site sockets*: browsers let any page open a WebSocket to any server. The `Origin` that they
  send along must be the `Host` itself or one of the configured `origins`. Programs that are no
  browsers send none, and need the token only.
""".

-behaviour(cowboy_middleware).

-export([execute/2, headers/1, host_allowed/2, origin_allowed/3]).

-doc false.
-spec execute(cowboy_req:req(), cowboy_middleware:env()) ->
    {ok, cowboy_req:req(), cowboy_middleware:env()} | {stop, cowboy_req:req()}.
execute(Req0, #{sderl_web := #{hosts := Hosts, origins := Origins}} = Env) ->
    Host = authority(Req0),
    Req = cowboy_req:set_resp_headers(headers(Host), Req0),
    Origin = cowboy_req:header(<<"origin">>, Req, undefined),
    maybe
        ok ?= host(Host, Hosts),
        ok ?= origin(Origin, Host, Origins),
        ok ?= method(cowboy_req:method(Req), cowboy_req:path(Req)),
        {ok, Req, Env}
    else
        {refused, Code, Why, Headers} ->
            {stop, sderl_web_reply:refuse(Code, Why, Headers, Req)}
    end.

%% HTTP/2 has no such header, and says the same elsewhere.
authority(Req) ->
    case cowboy_req:header(<<"host">>, Req, undefined) of
        undefined -> with_port(cowboy_req:host(Req), cowboy_req:scheme(Req), cowboy_req:port(Req));
        Host -> Host
    end.

with_port(Host, <<"https">>, 443) -> Host;
with_port(Host, <<"http">>, 80) -> Host;
with_port(Host, _, Port) -> <<Host/binary, $:, (integer_to_binary(Port))/binary>>.

host(Host, Hosts) ->
    case host_allowed(Host, Hosts) of
        true ->
            ok;
        false ->
            sderl_web_notes:note(bad_host,
                                 "a request for another host was refused; a name of this machine "
                                 "that should be allowed belongs into the setting hosts"),
            {refused, wrong_host, "this name is not one that the dashboard answers to: use its "
                                  "address, or name it in the setting hosts", #{}}
    end.

origin(Origin, Host, Origins) ->
    case origin_allowed(Origin, Host, Origins) of
        true ->
            ok;
        false ->
            sderl_web_notes:note(bad_origin,
                                 "a request from a page of another origin was refused; one that "
                                 "should be allowed belongs into the setting origins"),
            {refused, forbidden, "pages of other origins may not use the dashboard: name the "
                                 "origin in the setting origins", #{}}
    end.

method(<<"GET">>, _) -> ok;
method(<<"HEAD">>, _) -> ok;
method(_, <<"/api/", _/binary>>) -> ok;
method(_, _) ->
    {refused, wrong_method, "this path takes GET and HEAD", #{<<"allow">> => <<"GET, HEAD">>}}.

-doc """
The headers of every answer to a request for a host. Nothing is loaded from elsewhere, no script and
no style stands in the page itself; sockets go to where the page came from.
""".
-spec headers(Host :: binary()) -> #{binary() => binary()}.
headers(Host) ->
    #{
        <<"server">> => <<"sderl">>,
        <<"content-security-policy">> => policy(Host),
        <<"x-content-type-options">> => <<"nosniff">>,
        <<"x-frame-options">> => <<"DENY">>,
        <<"referrer-policy">> => <<"no-referrer">>,
        <<"cross-origin-opener-policy">> => <<"same-origin">>,
        <<"cross-origin-resource-policy">> => <<"same-origin">>,
        <<"permissions-policy">> => <<"camera=(), geolocation=(), microphone=()">>
    }.

%% Some browsers do not take 'self' for the scheme of sockets.
policy(Host) ->
    Sockets =
        case re:run(Host, "\\A[A-Za-z0-9.:\\[\\]-]{1,255}\\z", [{capture, none}]) of
            match -> [<<" ws://">>, Host, <<" wss://">>, Host];
            nomatch -> []
        end,
    iolist_to_binary([
        <<"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src "
          "'self'; connect-src 'self'">>,
        Sockets,
        <<"; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'">>
    ]).

-doc """
Whether the `Host` of a request is one of ours: an address, this machine's name, or configured.
""".
-spec host_allowed(binary(), [binary()]) -> boolean().
host_allowed(Header, Hosts) ->
    case name(lowercase(Header)) of
        <<>> -> false;
        <<"localhost">> -> true;
        Name ->
            is_address(Name) orelse lists:member(Name, Hosts) orelse lists:member(Name, own_names())
    end.

%% A header that is no UTF-8 is like an empty one, which is nobody's.
lowercase(Header) ->
    case unicode:characters_to_binary(Header) of
        Header -> string:lowercase(Header);
        _ -> <<>>
    end.

own_names() ->
    {ok, Host} = inet:gethostname(),
    Full =
        case string:split(atom_to_list(node()), "@") of
            [_, NodeHost] -> [NodeHost];
            _ -> []
        end,
    [string:lowercase(unicode:characters_to_binary(Name)) || Name <- [Host | Full]].

%% Without the port.
name(<<"[", Rest/binary>>) -> hd(binary:split(Rest, <<"]">>));
name(Host) -> hd(binary:split(Host, <<":">>)).

is_address(Name) ->
    case inet:parse_strict_address(unicode:characters_to_list(Name)) of
        {ok, _} -> true;
        {error, _} -> false
    end.

-doc "Whether a page of this origin may ask. `undefined`: there was no `Origin`.".
-spec origin_allowed(binary() | undefined, Host :: binary(), [binary()]) -> boolean().
origin_allowed(undefined, _Host, _Origins) ->
    true;
origin_allowed(Origin0, Host0, Origins) ->
    Origin = lowercase(Origin0),
    Host = lowercase(Host0),
    Origin =:= <<"http://", Host/binary>> orelse Origin =:= <<"https://", Host/binary>>
        orelse lists:member(Origin, Origins).

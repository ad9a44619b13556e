%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_post).
-moduledoc """
One POST over HTTP/1.1, with or without TLS.

Only the status of the answer is read; then the connection is closed. One time limit covers all of
it, from the look-up of the host's name to the close, also for a receiver that sends without end,
reads nothing, or does nothing.
""".

-export([post/4, uri/1]).

-import(sderl_mon_text, [text/2]).

-doc """
Posts a body with headers, in at most `Ms` milliseconds; returns the status. Errors are sentences.
""".
-spec post(uri_string:uri_map(), [{binary(), iodata()}], iodata(), pos_integer()) ->
    {ok, 100..999} | {error, binary()}.
post(Uri, Headers, Body, Ms) ->
    %% Some steps, such as closing with much data unsent, have longer limits of their own.
    Reply = alias([reply]),
    Pid = spawn_link(fun() -> Reply ! {Reply, try_post(Uri, Headers, Body, Ms)} end),
    receive
        {Reply, Answer} -> ended(Pid, Answer);
        {'EXIT', Pid, Why} -> {error, text("posting failed: ~0tP", [Why, 12])}
    after Ms ->
        _ = unalias(Reply),
        Late = receive
            {Reply, Answer} -> Answer
        after 0 ->
            {error, text("~ts", [reason(timeout)])}
        end,
        ended(Pid, Late)
    end.

%% The process has nothing more to do, or no time left.
ended(Pid, Answer) ->
    true = unlink(Pid),
    true = exit(Pid, kill),
    receive {'EXIT', Pid, _} -> Answer after 0 -> Answer end.

try_post(#{scheme := Scheme, host := Host} = Uri, Headers, Body, Ms) ->
    Until = sderl_mon_clock:now_ms() + Ms,
    Port = case maps:get(port, Uri, undefined) of
        undefined when Scheme =:= ~"https" -> 443;
        undefined -> 80;
        Number -> Number
    end,
    case connect(Scheme, address(Host), Port, left(Until)) of
        {ok, Transport, Socket} ->
            try
                exchange(Transport, Socket, request(Uri, Port, Headers, Body), Until)
            after
                Transport:close(Socket)
            end;
        {error, Why} ->
            {error, text("~ts:~w cannot be connected: ~ts", [Host, Port, reason(Why)])}
    end.

left(Until) -> max(1, Until - sderl_mon_clock:now_ms()).

%% The brackets around an IPv6 address belong to the URL.
address(Host) ->
    Name = unicode:characters_to_list(string:trim(Host, both, "[]")),
    case inet:parse_strict_address(Name) of
        {ok, Ip} -> Ip;
        {error, _} -> Name
    end.

connect(~"https", Host, Port, Ms) ->
    {ok, _} = application:ensure_all_started(ssl),
    Name = case Host of
        Ip when is_tuple(Ip) -> [];
        _ -> [{server_name_indication, Host}]
    end,
    Options = [{verify, verify_peer}, {cacerts, public_key:cacerts_get()}, {depth, 10},
               {customize_hostname_check,
                [{match_fun, public_key:pkix_verify_hostname_match_fun(https)}]} | Name],
    connected(ssl, ssl:connect(Host, Port, common(Host, Ms) ++ Options, Ms));
connect(~"http", Host, Port, Ms) ->
    connected(gen_tcp, gen_tcp:connect(Host, Port, common(Host, Ms), Ms)).

connected(Transport, {ok, Socket}) -> {ok, Transport, Socket};
connected(_, {error, _} = Error) -> Error.

common(Host, Ms) ->
    [binary, {active, false}, {packet, http_bin}, {send_timeout, Ms}, {send_timeout_close, true}
     | [inet6 || tuple_size(Host) =:= 8]].

request(#{host := Host} = Uri, Port, Headers, Body) ->
    Path = uri_string:recompose(maps:with([path, query], maps:merge(#{path => ~"/"}, Uri))),
    [
        "POST ", case Path of <<$/, _/binary>> -> Path; _ -> [$/, Path] end, " HTTP/1.1\r\n",
        "host: ", Host, $:, integer_to_binary(Port), "\r\n",
        "connection: close\r\n",
        "content-length: ", integer_to_binary(iolist_size(Body)), "\r\n",
        [[Name, ": ", Value, "\r\n"] || {Name, Value} <- Headers], "\r\n", Body
    ].

exchange(Transport, Socket, Request, Until) ->
    maybe
        ok ?= Transport:send(Socket, Request),
        {ok, {http_response, _, Status, _}} ?= answer(Transport, Socket, Until),
        {ok, Status}
    else
        {ok, _} -> {error, ~"its answer is not HTTP"};
        {error, Reason} -> {error, text("~ts", [reason(Reason)])}
    end.

%% Interim answers (1xx) come before the one that counts.
answer(Transport, Socket, Until) ->
    case Transport:recv(Socket, 0, left(Until)) of
        {ok, {http_response, _, Status, _}} when Status >= 100, Status < 200 ->
            answer(Transport, Socket, Until);
        {ok, {http_header, _, _, _, _}} -> answer(Transport, Socket, Until);
        {ok, http_eoh} -> answer(Transport, Socket, Until);
        Other -> Other
    end.

reason(timeout) -> "no answer in time";
reason(closed) -> "it closed the connection without an answer";
reason({tls_alert, {_, Text}}) -> Text;
reason({options, _} = Why) -> io_lib:format("~0tP", [Why, 12]);
reason(Why) when is_atom(Why) -> inet:format_error(Why);
reason(Why) -> io_lib:format("~0tP", [Why, 12]).

-doc "The parts of an HTTP or HTTPS URL.".
-spec uri(unicode:chardata()) -> {ok, uri_string:uri_map()} | error.
uri(Text) ->
    try uri_string:parse(unicode:characters_to_binary(Text)) of
        #{scheme := Scheme, host := Host} = Uri
          when Scheme =:= ~"http", Host =/= ~""; Scheme =:= ~"https", Host =/= ~"" ->
            {ok, Uri};
        _ -> error
    catch
        error:_ -> error
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_alarmed).
-moduledoc """
Asks a dashboard for the alarms that are raised, by its REST interface: the monitoring is another
program, which may run on another machine, and the service needs it for nothing else.
""".

-export([read/2]).

-define(MS, 5_000).
-define(PAGE, "500").
-define(PROFILE, sderl_ops).
%% More alarms than a monitoring node keeps.
-define(MOST_PAGES, 40).

-doc """
The alarms that are not over. `Nodes` are the instances by the names of their nodes. Each page takes
at most some seconds.
""".
-spec read(sderl_ops_file:alarms(), Nodes :: #{binary() => sderl_ops_desired:instance_id()}) ->
    sderl_ops_gate:seen().
read(#{url := Url, token := Secret} = Source, Nodes) ->
    At = erlang:system_time(millisecond),
    maybe
        {ok, Token} ?= sderl_ops_secret:resolve(Secret),
        {ok, Options} ?= options(Source),
        ok = begin_profile(),
        %% An alarm that is reopened meanwhile is in both lists, and counts as raised.
        {ok, Known} ?= pages(Url, "acknowledged", Token, Options),
        {ok, Raised} ?= pages(Url, "raised", Token, Options),
        #{state => up, at => At,
          raised => maps:from_list([alarm(A, Nodes) || A <- Known ++ Raised])}
    else
        {error, Why} -> failing([Url, ": ", Why])
    end.

failing(Why) ->
    #{state => failing, at => erlang:system_time(millisecond),
      why => unicode:characters_to_binary(Why)}.

options(#{tls_ca := File}) ->
    case filelib:is_regular(File) of
        true -> {ok, options_with([{cacertfile, File} | verified()])};
        false -> {error, ["there is no file of certificates ", File]}
    end;
options(#{url := <<"https", _/binary>>}) ->
    try
        {ok, options_with([{cacerts, public_key:cacerts_get()} | verified()])}
    catch
        _:_ -> {error, "this machine has no certificates of authorities: name a file (tls_ca)"}
    end;
options(_) ->
    {ok, options_with([])}.

%% A certificate may be for all names of a domain.
verified() ->
    [{verify, verify_peer},
     {customize_hostname_check,
      [{match_fun, public_key:pkix_verify_hostname_match_fun(https)}]}].

options_with(Ssl) ->
    [{timeout, ?MS}, {connect_timeout, ?MS}, {autoredirect, false}, {ssl, Ssl}].

pages(Url, State, Token, Options) ->
    pages_from(none, ?MOST_PAGES, fun(Cursor) ->
        page(address(Url, State, Cursor), Token, Options)
    end, []).

pages_from(_, 0, _, _) ->
    {error, "it has more alarms than can be read"};
pages_from(Cursor, Left, Page, Alarms) ->
    case Page(Cursor) of
        {ok, More, none} -> {ok, More ++ Alarms};
        {ok, More, Next} -> pages_from(Next, Left - 1, Page, More ++ Alarms);
        {error, _} = Error -> Error
    end.

address(Url, State, Cursor) ->
    Query = [{"state", State}, {"limit", ?PAGE}]
        ++ [{"cursor", binary_to_list(Cursor)} || Cursor =/= none],
    unicode:characters_to_list([string:trim(Url, trailing, "/"), "/api/v1/alarms?",
                                uri_string:compose_query(Query)]).

%% No error text contains the token.
page(Address, Token, Options) ->
    Headers = [{"authorization", "Bearer " ++ binary_to_list(Token())}],
    case httpc:request(get, {Address, Headers}, Options, [{body_format, binary}], ?PROFILE) of
        {ok, {{_, 200, _}, _, Body}} -> decoded(Body);
        {ok, {{_, 401, _}, _, _}} -> {error, "the token is refused"};
        {ok, {{_, 403, _}, _, _}} -> {error, "the token may not read alarms"};
        {ok, {{_, Status, _}, _, _}} ->
            {error, io_lib:format("it answers ~b, and is no dashboard or has no alarms", [Status])};
        {error, {failed_connect, Parts}} ->
            {error, ["it cannot be connected to", [[": ", Why] || Why <- reason(Parts)]]};
        {error, timeout} -> {error, "it does not answer in time"};
        {error, _} -> {error, "it does not answer"}
    end.

%% Tries IPv6 first, then IPv4: by default httpc knows IPv4 alone.
begin_profile() ->
    {ok, _} = application:ensure_all_started([inets, ssl]),
    case inets:start(httpc, [{profile, ?PROFILE}]) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok
    end,
    httpc:set_options([{ipfamily, inet6fb4}], ?PROFILE).

%% The reason that TLS gives, or that of the attempt with the right kind of address.
reason(Parts) ->
    Whys = [{Inet, Why} || {Inet, _, Why} <- Parts],
    Inet = case [Host || {to_address, {Host, _}} <- Parts] of
        [Host] -> case lists:member($:, Host) of true -> inet6; false -> inet end;
        _ -> inet
    end,
    case [Text || {_, {tls_alert, {_, Text}}} <- Whys] of
        [Text | _] -> [Text];
        [] -> [inet:format_error(Why) || {Of, Why} <- Whys, Of =:= Inet, is_atom(Why)]
    end.

decoded(Body) ->
    try json:decode(Body) of
        #{~"alarms" := Alarms} = Page when is_list(Alarms) ->
            case lists:all(fun is_alarm/1, Alarms) of
                true -> {ok, Alarms, next(Page)};
                false -> not_of_a_dashboard()
            end;
        _ -> not_of_a_dashboard()
    catch
        error:_ -> not_of_a_dashboard()
    end.

not_of_a_dashboard() -> {error, "its answer is not that of a dashboard"}.

next(#{~"next" := Next}) when is_binary(Next) -> Next;
next(_) -> none.

is_alarm(#{~"id" := Id, ~"count" := Count, ~"nodes" := Nodes, ~"groups" := Groups,
           ~"state" := _, ~"severity" := _}) ->
    is_binary(Id) andalso is_integer(Count) andalso is_texts(Nodes) andalso is_texts(Groups);
is_alarm(_) ->
    false.

is_texts(List) -> is_list(List) andalso lists:all(fun is_binary/1, List).

alarm(#{~"id" := Id, ~"count" := Count, ~"nodes" := Named, ~"groups" := Groups} = Alarm, Nodes) ->
    Instances = [map_get(Node, Nodes) || Node <- Named, is_map_key(Node, Nodes)],
    {{Id, Count}, #{instances => Instances, elsewhere => length(Instances) < length(Named),
                    groups => Groups, counts => counts(Alarm)}}.

counts(#{~"silenced" := true}) -> false;
counts(#{~"state" := State, ~"severity" := Severity}) ->
    State =:= ~"raised" andalso Severity =:= ~"major".

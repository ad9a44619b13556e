%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_server).
-moduledoc """
Owns the listener: checks the settings, listens, knows the address, and closes it when it ends.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, address/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-define(LISTENER, sderl_web_listener).
%% Connections that ask for files and figures, besides the sockets.
-define(OTHER_CONNECTIONS, 200).
%% A browser that takes nothing for so long is gone.
-define(SEND_TIMEOUT_MS, 15_000).

-record(state, {address :: sderl_web:address()}).

-spec start_link(sderl_web_config:settings()) -> gen_server:start_ret().
start_link(Settings) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Settings, []).

-spec address() -> sderl_web:address().
address() -> gen_server:call(?MODULE, address).

-doc false.
-spec init(sderl_web_config:settings()) -> {ok, #state{}} | {stop, term()}.
init(#{token := Token, tls := Tls, ip := Ip} = Settings) ->
    _ = process_flag(trap_exit, true),
    ok = exposed(Ip, Tls),
    case listen(Settings) of
        {ok, _} ->
            Port = ranch:get_port(?LISTENER),
            Url = url(Tls, Ip, Port),
            {ok, #state{address = #{url => Url, link => <<Url/binary, "#token=", (Token())/binary>>,
                                    port => Port, token => Token()}}};
        {error, Reason} ->
            {stop, {cannot_listen, {Ip, maps:get(port, Settings)}, Reason}}
    end.

%% The token crosses the network readable then.
exposed(Ip, off) ->
    case loopback(Ip) of
        true -> ok;
        false ->
            ?LOG_WARNING("dashboard: it listens on ~ts without TLS: whoever can listen in on the "
                         "network reads the token; set tls, or keep it on 127.0.0.1 and reach it "
                         "through ssh", [inet:ntoa(Ip)])
    end;
exposed(_, _) ->
    ok.

loopback({127, _, _, _}) -> true;
loopback({0, 0, 0, 0, 0, 0, 0, 1}) -> true;
loopback(_) -> false.

listen(#{ip := Ip, port := Port, tls := Tls, max_sockets := Most, hosts := Hosts,
         origins := Origins} = Settings) ->
    Handlers = maps:with([writable, max_sockets, recordings, replay, audit], Settings),
    ok = sderl_web_table:put(resources(Settings)),
    Dispatch = cowboy_router:compile([
        {'_', [
            {"/ws", sderl_web_socket, Handlers},
            {"/metrics", sderl_web_metrics_route, Handlers},
            {"/api/[...]", sderl_web_api, Handlers},
            {'_', sderl_web_static, #{}}
        ]}
    ]),
    Transport = #{
        max_connections => Most + ?OTHER_CONNECTIONS,
        %% Each supervisor of connections counts for itself: one, so that the limit is what it says.
        num_conns_sups => 1,
        num_acceptors => 4,
        socket_opts => socket_opts(Ip, Port, Tls)
    },
    Protocol = #{
        env => #{dispatch => Dispatch, sderl_web => #{hosts => Hosts, origins => Origins}},
        middlewares => [sderl_web_guard, cowboy_router, cowboy_handler],
        protocols => [http],
        stream_handlers => [sderl_web_stream, cowboy_stream_h],
        request_timeout => 10_000,
        idle_timeout => 60_000,
        max_request_line_length => 4096,
        max_header_value_length => 4096,
        max_headers => 60,
        max_skip_body_length => 1000
    },
    case Tls of
        off -> cowboy:start_clear(?LISTENER, Transport, Protocol);
        _ -> cowboy:start_tls(?LISTENER, Transport, Protocol)
    end.

resources(#{resources := Others}) ->
    [sderl_web_about_resource, sderl_web_cluster_resource, sderl_web_metrics_resource,
     sderl_web_log_resource, sderl_web_alarms_resource, sderl_web_tokens_resource,
     sderl_web_actions_resource, sderl_web_fronts_resource, sderl_web_ops_resource | Others].

%% A small send buffer: what waits for a slow browser waits here, once, and not in the system for
%% every socket.
socket_opts(Ip, Port, Tls) ->
    Family = [inet6 || tuple_size(Ip) =:= 8],
    Secure =
        case Tls of
            off -> [];
            %% A stranger who cannot speak TLS is no matter for the log, least of all each time.
            _ ->
                maps:to_list(maps:merge(#{versions => ['tlsv1.3', 'tlsv1.2'], log_level => error},
                                        Tls))
        end,
    Family ++
        [
            {ip, Ip},
            {port, Port},
            {nodelay, true},
            {send_timeout, ?SEND_TIMEOUT_MS},
            {send_timeout_close, true},
            {sndbuf, 262_144},
            {keepalive, true}
        ] ++ Secure.

url(Tls, Ip, Port) ->
    Scheme =
        case Tls of
            off -> "http";
            _ -> "https"
        end,
    iolist_to_binary(io_lib:format("~ts://~ts:~w/", [Scheme, host(Ip), Port])).

host({0, 0, 0, 0}) -> hostname();
host({0, 0, 0, 0, 0, 0, 0, 0}) -> hostname();
host(Ip) when tuple_size(Ip) =:= 8 -> [$[, inet:ntoa(Ip), $]];
host(Ip) -> inet:ntoa(Ip).

hostname() ->
    {ok, Name} = inet:gethostname(),
    Name.

-doc false.
-spec handle_call(address | term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call(address, _From, #state{address = Address} = State) -> {reply, Address, State};
handle_call(_, _From, State) -> {reply, {error, unknown_call}, State}.

-doc false.
-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(_, State) -> {noreply, State}.

-doc false.
-spec terminate(term(), #state{}) -> ok.
terminate(_, _) ->
    _ = cowboy:stop_listener(?LISTENER),
    sderl_web_table:erase().

%% The token is in the state and must not be in a report.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> sderl_web_secrets:hide(Status).

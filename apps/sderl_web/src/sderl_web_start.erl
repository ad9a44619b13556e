%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_start).
-moduledoc """
Starts the dashboard beside a hub of this node, for the command line and the demo's monitoring
nodes.
""".

-export([check/1, default_port/0, start/1, stop/0, pages/0, await_frame/1]).

-doc "The environment of `sderl_web` that the options of the command line mean.".
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, unicode:chardata()}.
check(Parsed) ->
    maybe
        {ok, Ip} ?= ip(Parsed),
        {ok, Tls} ?= tls(Parsed),
        {ok, Recordings} ?= recordings(Parsed),
        {ok, Replay} ?= replay(Parsed),
        {ok, Tokens} ?= tokens(Parsed),
        Web = #{
            port => maps:get(port, Parsed, default_port()),
            ip => Ip,
            token => token(Parsed),
            writable => maps:get(write, Parsed, false),
            tls => Tls,
            ops => maps:get(ops, Parsed, default),
            recordings => Recordings,
            replay => Replay,
            tokens_file => Tokens
        },
        case sderl_web_config:read(maps:to_list(Web)) of
            {ok, _} -> {ok, Web};
            {error, {bad_config, [Key], _, Expected}} ->
                {error, ["--", atom_to_list(Key), " is ", Expected]}
        end
    end.

-doc "The port of a dashboard that was told none.".
-spec default_port() -> inet:port_number().
default_port() -> proplists:get_value(port, sderl_web_config:keys()).

token(#{token := Text}) -> unicode:characters_to_binary(Text);
token(_) -> auto.

%% Known before anything starts.
tokens(#{tokens := File}) ->
    case sderl_web_token_file:read(File) of
        {ok, _} -> {ok, File};
        {error, Why} -> {error, ["--tokens: ", Why]}
    end;
tokens(_) ->
    case os:getenv("SDERL_TOKENS", "") of
        "" -> {ok, none};
        File -> tokens(#{tokens => File})
    end.

ip(#{ip := Text}) ->
    case inet:parse_strict_address(Text) of
        {ok, Ip} -> {ok, Ip};
        {error, _} ->
            {error, ["--ip: \"", Text,
                     "\" is no address; one is 127.0.0.1, or 0.0.0.0 for all of this machine"]}
    end;
ip(_) ->
    {ok, {127, 0, 0, 1}}.

tls(#{tls_cert := Cert, tls_key := Key}) ->
    Tls = #{certfile => Cert, keyfile => Key},
    case sderl_web_tls:check(Tls) of
        ok -> {ok, Tls};
        {error, Why} -> {error, ["--tls-cert, --tls-key: ", Why]}
    end;
tls(#{tls_cert := _}) -> {error, "--tls-cert needs --tls-key, the file with its key"};
tls(#{tls_key := _}) -> {error, "--tls-key needs --tls-cert, the file with its certificate"};
tls(_) -> {ok, off}.

recordings(#{record := Dir}) ->
    case filelib:ensure_path(Dir) of
        ok -> {ok, Dir};
        {error, Reason} ->
            Why = file:format_error(Reason),
            {error, ["--record: cannot make the folder ", Dir, ": ", Why, "; name another one"]}
    end;
recordings(_) ->
    {ok, none}.

%% Looked at here, because each browser opens it for itself.
replay(#{replay := File}) ->
    case sderl_mon_replay:open(File) of
        {ok, Replay} ->
            ok = sderl_mon_replay:close(Replay),
            {ok, File};
        {error, Why} ->
            Remedy = "; name a file that --record has written, DIR/TIME.sdmon",
            {error, ["--replay: ", Why, Remedy]}
    end;
replay(_) ->
    {ok, none}.

-doc "Starts the application with this environment.".
-spec start(#{atom() => term()}) -> ok | {error, unicode:chardata()}.
start(Web) ->
    case free(maps:get(ip, Web, {127, 0, 0, 1}), maps:get(port, Web, 0)) of
        ok ->
            _ = application:load(sderl_web),
            ok = application:set_env([{sderl_web, maps:to_list(Web)}]),
            case application:ensure_all_started(sderl_web) of
                {ok, _} -> ok;
                {error, {sderl_web, Reason}} -> {error, why(Reason)};
                {error, Reason} -> {error, why(Reason)}
            end;
        {error, Reason} ->
            {error, why(Reason)}
    end.

%% Known before it is tried, because what supervisors say of a failure is longer than what there is
%% to say.
free(Ip, Port) ->
    case gen_tcp:listen(Port, [{ip, Ip}, {reuseaddr, true} | [inet6 || tuple_size(Ip) =:= 8]]) of
        {ok, Listener} -> gen_tcp:close(Listener);
        {error, Reason} -> {error, {cannot_listen, {Ip, Port}, Reason}}
    end.

%% As deep as supervisors put it.
why({bad_config, _, _, _} = Error) -> sderl_web_config:text(Error);
why({cannot_listen, {Ip, Port}, eaddrinuse}) ->
    io_lib:format("something else listens on port ~w of ~ts: --port takes another one, 0 any that "
                  "is free", [Port, inet:ntoa(Ip)]);
why({cannot_listen, {Ip, _}, Reason}) when Reason =:= eaddrnotavail; Reason =:= eafnosupport ->
    io_lib:format(
        "~ts is no address of this machine: --ip takes one of ~ts, or 0.0.0.0 for all of them",
        [inet:ntoa(Ip), lists:join(", ", addresses())]
    );
why({cannot_listen, {_, Port}, eacces}) ->
    io_lib:format(
        "this user may not listen on port ~w: --port takes one from 1024 on, 0 any that is free",
        [Port]
    );
why({cannot_listen, _, {options, Option}}) ->
    io_lib:format("the setting tls has what ssl does not take: ~0tP", [Option, 12]);
why({cannot_listen, {Ip, Port}, Reason}) when is_atom(Reason) ->
    io_lib:format(
        "cannot listen on port ~w of ~ts: ~ts; --ip and --port take others",
        [Port, inet:ntoa(Ip), inet:format_error(Reason)]
    );
why({cannot_listen, {Ip, Port}, Reason}) ->
    io_lib:format("cannot listen on port ~w of ~ts: ~0tP", [Port, inet:ntoa(Ip), Reason, 12]);
why({bad_tokens, Why}) -> ["--tokens: ", Why];
why({shutdown, {failed_to_start_child, _, Reason}}) -> why(Reason);
why({Reason, {sderl_web_app, start, _}}) -> why(Reason);
why(Reason) -> io_lib:format("the dashboard cannot start: ~0tP", [Reason, 20]).

%% Addresses of this machine that others may use, too.
addresses() ->
    {ok, Interfaces} = inet:getifaddrs(),
    [inet:ntoa(Ip) || {_, Options} <- Interfaces, {addr, Ip} <- Options, tuple_size(Ip) =:= 4].

-doc """
Ends the dashboard, the alarms and the monitoring in order: nothing of them stays on the nodes.
""".
-spec stop() -> ok.
stop() ->
    _ = application:stop(sderl_web),
    _ = sderl_mon_record:stop(),
    _ = application:stop(sderl_alarms),
    _ = application:stop(sderl_actions),
    _ = application:stop(sderl_mon),
    ok.

-doc "What to say of the pages where they lack; nothing where they are.".
-spec pages() -> unicode:chardata().
pages() ->
    case sderl_web_static:built() of
        true -> "";
        false ->
            "Its pages are not built, so a browser shows how to build them (toolchain/web); the "
            "figures are served all the same.\n"
    end.

-doc "Waits until there are nodes and numbers of them; how many nodes and groups there are then.".
-spec await_frame(pos_integer()) ->
    {ok, Nodes :: non_neg_integer(), Groups :: non_neg_integer()} | {error, timeout}.
await_frame(Ms) ->
    {ok, Now} = sderl_mon_hub:subscribe(),
    Timer = erlang:send_after(Ms, self(), {await_frame, timeout}),
    Result = await_frame_of(maps:with([topology, frame], Now)),
    _ = erlang:cancel_timer(Timer),
    ok = sderl_mon_hub:unsubscribe(),
    Result.

await_frame_of(#{topology := #{nodes := Nodes, groups := Groups}, frame := #{nodes := Seen}})
  when map_size(Seen) > 0 ->
    {ok, map_size(Nodes), map_size(Groups)};
await_frame_of(Now) ->
    receive
        {sderl_mon, What, Term} when What =:= topology; What =:= frame ->
            await_frame_of(Now#{What => Term});
        {await_frame, timeout} -> {error, timeout}
    end.

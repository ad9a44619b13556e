%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_watch).
-moduledoc """
The common part of `bin/sderl mon`, `top` and `prof open`: options, how this program becomes a
monitoring node of a running or a synthetic cluster, and serving pages until Ctrl-C.

The program is a hidden node that listens nowhere (`m:sderl_cli_attach`) and runs the application
`sderl_mon`. Everything that it loaded or started on the nodes ends there by itself when this
program ends.
""".

-export([arguments/0, page_arguments/1, check/1, start/1, until_stopped/0]).
-export_type([options/0]).

-import(sderl_command, [option/4, flag/2]).

-doc """
The watched cluster: a running one from a seed, a synthetic one with the options in `config`, or
none.
""".
-type options() ::
    #{source := none | synthetic | #{seed := node(), cookie_file := file:filename()},
      config := map()}.

-doc "The options of the command line, for `argparse`.".
-spec arguments() -> [map()].
arguments() ->
    [
        option(seed, "NODE@HOST", string, "any node of the cluster"),
        sderl_cli_attach:cookie_argument(),
        flag(inject,
             "load the probe (some modules) into nodes that run without this library, to see more"),
        option(interval_ms, "MS", {integer, [{min, 100}, {max, 60_000}]},
               "how often a node tells its numbers (1000)"),
        flag(synthetic, "no cluster: 200 made-up nodes in 20 groups")
    ].

-doc "The options of a command that serves pages; `Pages` is what its help calls them.".
-spec page_arguments(Pages :: string()) -> [argparse:argument()].
page_arguments(Pages) ->
    [
        option(port, "P", {integer, [{min, 0}, {max, 65_535}]},
               lists:concat(["port of the ", Pages, ", 0 for any free one (",
                             sderl_web_start:default_port(), ")"])),
        option(ip, "ADDRESS", string, "address to listen on (127.0.0.1)"),
        option(token, "T", string, "the token, 8 to 256 letters and digits (128 random bits)"),
        option(tokens, "FILE", string,
               "tokens with roles that \"bin/sderl tokens\" made ($SDERL_TOKENS)"),
        option(tls_cert, "FILE", string, "serve over TLS with this certificate (PEM)"),
        option(tls_key, "FILE", string, "key of the certificate (PEM)")
    ].

-doc "The options as given, checked; nothing is attached to.".
-spec check(#{atom() => term()}) -> {ok, options()} | {error, sderl_command:text()}.
check(#{synthetic := true} = Parsed)
  when is_map_key(seed, Parsed); is_map_key(cookie_file, Parsed) ->
    {error, "--synthetic is without a cluster: leave out --seed and --cookie-file"};
check(#{synthetic := true} = Parsed) ->
    {ok, #{source => synthetic, config => maps:with([nodes, groups, interval_ms], Parsed)}};
check(#{seed := Text, inject := Inject} = Parsed) ->
    case sderl_cli_attach:node_name(Text) of
        {ok, Seed} ->
            File = sderl_cli_attach:cookie_file(Parsed),
            Config = maps:merge(#{seeds => [Seed], inject => Inject},
                                maps:with([interval_ms], Parsed)),
            {ok, #{source => #{seed => Seed, cookie_file => File}, config => Config}};
        {error, Message} ->
            {error, ["--seed: ", Message]}
    end;
check(_) ->
    {error, [
        "--seed is missing: any node of the cluster, NAME@HOST (or --synthetic, to see it without "
        "one)",
        sderl_cli_attach:running("--seed")
    ]}.

-doc "Attaches, and starts the monitoring in this program. It goes on until the program ends.".
-spec start(options()) -> ok | {error, sderl_command:text()}.
start(#{source := none, config := Config}) ->
    monitoring(Config);
start(#{source := synthetic, config := Config}) ->
    maybe
        ok ?= monitoring(#{}),
        case sderl_mon_synthetic:start(Config) of
            {ok, _} -> ok;
            {error, Reason} ->
                {error, io_lib:format("the synthetic cluster cannot be made: ~0tP", [Reason, 20])}
        end
    end;
start(#{source := #{seed := Seed, cookie_file := File}, config := Config}) ->
    maybe
        {ok, Cookie} ?= sderl_cli_attach:cookie(File),
        ok ?= sderl_cli_attach:attach(Seed, Cookie, "sderl-mon"),
        monitoring(Config)
    end.

monitoring(Config) ->
    _ = application:load(sderl_mon),
    ok = application:set_env(sderl_mon, config, Config),
    case application:ensure_all_started(sderl_mon) of
        {ok, _} -> ok;
        {error, Reason} -> {error, io_lib:format("monitoring cannot start: ~0tP", [Reason, 20])}
    end.

-doc "Serves the dashboard until Ctrl-C, and ends in order.".
-spec until_stopped() -> ok | {error, sderl_command:text()}.
until_stopped() ->
    ok = sderl_progress:done(),
    ok = io:put_chars("Ctrl-C ends it.\n"),
    _ = sderl_signals:tell(self()),
    Monitor = monitor(process, sderl_web_sup),
    receive
        {sderl_signals, stop} ->
            sderl_web_start:stop();
        {'DOWN', Monitor, process, _, Reason} ->
            {error, io_lib:format("the dashboard ended: ~0tP", [Reason, 20])}
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_mon).
-moduledoc """
`bin/sderl mon`: watches a running cluster from a hidden node and serves the dashboard, until
Ctrl-C.
""".

-behaviour(sderl_command).

-export([summary/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

%% The first frame of a large cluster.
-define(FIRST_MS, 30_000).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "watch a running cluster in a browser".

-doc "An error when the cluster cannot be attached to or the address cannot be listened on.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Parsed} ?= sderl_command:parse(Args, ["mon"], arguments()),
        {ok, Attach, Web} ?= checked(Parsed),
        ok ?= sderl_cli_watch:start(Attach),
        ok ?= sderl_web_start:start(Web),
        ok ?= recording(Parsed),
        served(Parsed)
    else
        {wrong, Message} -> {usage, [Message, "\n\"bin/sderl mon --help\" tells the options."]};
        Other -> Other
    end.

arguments() ->
    #{
        help =>
            "Attaches to a running cluster as a hidden node, watches it, and shows it in a "
            "browser:\n"
            "prints the address, with the token that the page needs. Ctrl-C ends it; nothing stays "
            "on the nodes.\n"
            "\n"
            "  bin/sderl mon --seed a@host --cookie-file ~/.erlang.cookie\n"
            "  bin/sderl mon --synthetic --nodes 200 --groups 20\n"
            "\n"
            "By default nothing is loaded into nodes that run without this library; of such nodes "
            "the page shows what plain OTP tells.\n"
            "The nodes of \"bin/sderl demo\" are found by name, without a cookie's file; the epmd "
            "of others\n"
            "is found by ERL_EPMD_PORT, TLS between nodes is set by ERL_FLAGS, as for erl.",
        arguments => sderl_cli_watch:arguments() ++ [
            option(nodes, "N", {integer, [{min, 1}, {max, 2000}]},
                   "nodes of the synthetic cluster (200)"),
            option(groups, "N", {integer, [{min, 1}, {max, 2000}]},
                   "groups of the synthetic cluster, or as many as there can be (20)"),
            option(port, "P", {integer, [{min, 0}, {max, 65_535}]},
                   "port of the dashboard, 0 for any free one (8090)"),
            option(ip, "ADDRESS", string, "address to listen on (127.0.0.1)"),
            option(token, "T", string, "the token, 8 to 256 letters and digits (128 random bits)"),
            option(tls_cert, "FILE", string, "serve over TLS with this certificate (PEM)"),
            option(tls_key, "FILE", string, "key of the certificate (PEM)"),
            option(record, "DIR", string,
                   "record into a file of this folder; browsers may open the recordings there"),
            option(replay, "FILE", string, "no cluster: show this recording"),
            flag(write, "browsers may switch tracing and recording on and off"),
            flag(once, "end when the first numbers are there")
        ]
    }.

checked(Parsed) ->
    maybe
        {ok, Attach} ?= attach(Parsed),
        {ok, Web} ?= sderl_web_start:check(Parsed),
        {ok, Attach, Web#{cluster => cluster(Attach, Parsed)}}
    else
        {error, Message} -> {wrong, Message}
    end.

attach(#{replay := _, synthetic := true}) ->
    {error, "--replay shows a recording, --synthetic a made-up cluster: one of them"};
attach(#{replay := _, seed := _}) ->
    {error, "--replay shows a recording, --seed a running cluster: one of them"};
attach(#{replay := _}) -> {ok, #{source => none, config => #{}}};
attach(Parsed) -> sderl_cli_watch:check(Parsed).

cluster(#{source := #{seed := Seed}}, _) -> atom_to_binary(Seed);
cluster(#{source := synthetic}, _) -> ~"synthetic";
cluster(#{source := none}, #{replay := File}) ->
    unicode:characters_to_binary(filename:basename(File)).

recording(#{record := Dir}) ->
    case sderl_web_ask:record(Dir) of
        {ok, File} -> say(["recording into ", File, "\n"]);
        {error, Why} -> {error, ["--record: ", Why]}
    end;
recording(_) ->
    ok.

served(#{once := Once} = Parsed) ->
    {ok, #{link := Link}} = sderl_web:address(),
    ok = say(["\nThe dashboard:  ", Link, "\n"]),
    ok = say(sderl_web_start:pages()),
    case Once of
        true -> first(Parsed);
        false -> until_stopped()
    end.

until_stopped() ->
    ok = say("Ctrl-C ends it.\n"),
    _ = sderl_signals:tell(self()),
    Monitor = monitor(process, sderl_web_sup),
    receive
        {sderl_signals, stop} ->
            sderl_web_start:stop();
        {'DOWN', Monitor, process, _, Reason} ->
            {error, io_lib:format("the dashboard ended: ~0tP", [Reason, 20])}
    end.

first(#{replay := _}) ->
    sderl_web_start:stop();
first(_) ->
    case sderl_web_start:await_frame(?FIRST_MS) of
        {ok, Nodes, Groups} ->
            ok = say(io_lib:format("~w nodes in ~w groups\n", [Nodes, Groups])),
            sderl_web_start:stop();
        {error, timeout} ->
            {error, io_lib:format("no numbers within ~w s", [?FIRST_MS div 1000])}
    end.

say(Text) ->
    ok = sderl_progress:done(),
    io:put_chars(sderl_visible:text(Text)).

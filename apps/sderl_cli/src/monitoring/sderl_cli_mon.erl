%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_mon).
-moduledoc """
`bin/sderl mon`: watches a running cluster from a hidden node and serves the dashboard, until
Ctrl-C.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

%% The first frame of a large cluster.
-define(FIRST_MS, 30_000).
-define(ARCHIVE_MB, 1024).
-define(PROFILES_MB, 2048).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "watch a running cluster in a browser".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(arguments()).

-doc "An error when the cluster cannot be attached to or the address cannot be listened on.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Parsed} ?= sderl_command:parse(Args, ["mon"], arguments()),
        {ok, Attach, Web} ?= checked(Parsed),
        ok ?= sderl_cli_watch:start(Attach),
        ok ?= archive(Parsed),
        ok = set_state(Attach, Parsed),
        Profiles = profiles(Attach, Parsed),
        ok ?= sderl_web_start:start(maps:merge(Web#{fronts => fronts(Attach, Parsed)}, Profiles)),
        ok ?= recording(Parsed),
        served(Parsed)
    else
        {wrong, Message} -> {usage, [Message, "\n\"bin/sderl mon --help\" lists the options."]};
        Other -> Other
    end.

arguments() ->
    #{
        help =>
            """
            Attaches to a running cluster as a hidden node, watches it, and shows it in a browser:
            prints the address, with the token that the page needs. Ctrl-C ends it; nothing stays on
            the nodes.

              bin/sderl mon --seed a@host --cookie-file ~/.erlang.cookie
              bin/sderl mon --synthetic --nodes 200 --groups 20

            By default nothing is loaded into nodes that run without this library; the page shows of
            them what the functions of plain OTP report. The nodes of "bin/sderl demo" are found by
            name, without a cookie's file; the epmd of others is found by ERL_EPMD_PORT, TLS between
            nodes is set by ERL_FLAGS, as for erl.
            """,
        arguments => sderl_cli_watch:arguments() ++ [
            option(nodes, "N", {integer, [{min, 1}, {max, 2000}]},
                   "nodes of the synthetic cluster (200)"),
            option(groups, "N", {integer, [{min, 1}, {max, 2000}]},
                   "groups of the synthetic cluster, or as many as there can be (20)")
        ] ++ sderl_cli_watch:page_arguments("dashboard") ++ [
            option(record, "DIR", string,
                   "record into a file of this folder; browsers may open the recordings there"),
            option(archive, "DIR", string,
                   "keep numbers for a year in this folder, also over restarts"),
            option(archive_mb, "MB", {integer, [{min, 1}, {max, 1_048_576}]},
                   "size of the archive at most (" ++ integer_to_list(?ARCHIVE_MB) ++ ")"),
            option(log, "DIR", string,
                   "keep the nodes' log in files of this folder, which no other program has (the "
                   "newest 8 MiB in memory)"),
            option(metrics, "FILE", string,
                   "metrics of the application itself (docs/metrics.md)"),
            option(otlp, "URL", string,
                   "send the numbers to a collector of OpenTelemetry: http://HOST:4318/v1/metrics"),
            option(replay, "FILE", string, "no cluster: show this recording"),
            option(ops, "DIR", string,
                   "the folder of the service of operations (\"bin/sderl ops\"), for the pages "
                   "Deployments and Families ($XDG_STATE_HOME/sderl-ops)"),
            option(alarms, "FILE", string, "rules and routes of alarms (docs/alarms.md)"),
            option(plugins, "LIST", string,
                   "plugins for the nodes, such as cowboy,shop_plugin (docs/plugins.md)"),
            option(profiles_mb, "MB", {integer, [{min, 32}, {max, 1_048_576}]},
                   lists:concat(["size of the profiles of nodes that are kept, at most (",
                                 ?PROFILES_MB, ")"])),
            option(state, "DIR", string,
                   "where alarms, front pages, profiles and the audit log are kept "
                   "($XDG_STATE_HOME/sderl-mon/SEED, which is ~/.local/state/sderl-mon/SEED)"),
            flag(write, "browsers may acknowledge alarms, act on nodes, trace, record, profile"),
            flag(allow_expressions, "with --write: they may evaluate Erlang expressions on nodes"),
            flag(once, "end when the first numbers are there")
        ]
    }.

checked(Parsed) ->
    maybe
        {ok, Attached} ?= attach(Parsed),
        {ok, Counted} ?= metrics(Parsed, Attached),
        {ok, Attach} ?= otlp(Parsed, Counted),
        ok ?= rules(Parsed),
        ok ?= known_plugins(Parsed),
        {ok, Web} ?= sderl_web_start:check(Parsed),
        {ok, Attach, Web#{cluster => cluster(Attach, Parsed)}}
    else
        {error, Message} -> {wrong, Message}
    end.

attach(#{replay := _, synthetic := true}) ->
    {error, "--replay shows a recording, --synthetic a made-up cluster: one of them"};
attach(#{replay := _, seed := _}) ->
    {error, "--replay shows a recording, --seed a running cluster: one of them"};
attach(#{replay := _, archive := _}) ->
    {error, "--replay shows a recording, --archive keeps what is watched: one of them"};
attach(#{log := _} = Parsed) when is_map_key(replay, Parsed); map_get(synthetic, Parsed) ->
    {error, "--log keeps the log of a running cluster: --seed names one of its nodes"};
attach(#{replay := _}) -> {ok, #{source => none, config => #{}}};
attach(#{archive_mb := _} = Parsed) when not is_map_key(archive, Parsed) ->
    {error, "--archive-mb is the size of an archive: name its folder with --archive"};
attach(#{log := Dir} = Parsed) ->
    maybe
        {ok, #{config := Config} = Options} ?= sderl_cli_watch:check(Parsed),
        {ok, Options#{config := Config#{log_files => #{dir => Dir}}}}
    end;
attach(Parsed) -> sderl_cli_watch:check(Parsed).

%% Rules of alarms may name them.
metrics(#{metrics := _}, #{source := Source}) when is_atom(Source) ->
    {error, "--metrics names what is counted on the nodes of a running cluster: --seed names one"};
metrics(#{metrics := File}, #{config := Config} = Attach) ->
    case sderl_mon_metrics:read(File) of
        {ok, Metrics} ->
            With = Config#{metrics => Metrics},
            _ = application:load(sderl_mon),
            ok = application:set_env(sderl_mon, config, With),
            {ok, Attach#{config := With}};
        {error, Why} -> {error, ["--metrics: ", Why]}
    end;
metrics(_, Attach) ->
    {ok, Attach}.

otlp(#{otlp := Url}, #{config := Config, source := #{}} = Attach) ->
    case sderl_mon_config:check(#{otlp => #{url => Url}}) of
        {ok, _} -> {ok, Attach#{config := Config#{otlp => #{url => Url}}}};
        {error, Why} -> {error, ["--otlp: ", sderl_mon_config:format_error(Why)]}
    end;
otlp(#{otlp := _}, _) ->
    {error, "--otlp sends the numbers of a running cluster: --seed names one of its nodes"};
otlp(_, Attach) ->
    {ok, Attach}.

%% Checked before anything starts.
rules(#{alarms := File}) ->
    case sderl_alarms_file:read(File) of
        {ok, _} -> ok;
        {error, Problems} -> {error, ["--alarms: ", lists:join("\n", Problems)]}
    end;
rules(_) ->
    ok.

set_state(Attach, Parsed) ->
    _ = application:load(sderl_alarms),
    _ = application:load(sderl_actions),
    State = state(Attach, Parsed),
    application:set_env([
        {sderl_alarms, [{rules_file, maps:get(alarms, Parsed, undefined)}, {state_dir, State}]},
        {sderl_actions, [{state_dir, State},
                         {allow_expressions, maps:get(allow_expressions, Parsed)},
                         {plugins, plugins(Parsed)}]}
    ]).

fronts(Attach, Parsed) ->
    case state(Attach, Parsed) of
        undefined -> none;
        Dir -> filename:join(Dir, "fronts.json")
    end.

%% Of a running cluster, where there is a folder for them. A dashboard without them is better than
%% none.
profiles(#{source := #{}} = Attach, Parsed) ->
    case state(Attach, Parsed) of
        undefined -> #{};
        Dir ->
            MostBytes = maps:get(profiles_mb, Parsed, ?PROFILES_MB) * 1_048_576,
            case sderl_cli_profiles:start(filename:join(Dir, "profiles"), MostBytes) of
                ok -> sderl_cli_profiles:web();
                {error, Why} ->
                    ok = say(["no profiles of nodes: ", Why, "\n"]),
                    #{}
            end
    end;
profiles(_, _) ->
    #{}.

%% cowboy is short for sderl_plugin_cowboy.
plugins(#{plugins := Text}) ->
    [case Name of
        "cowboy" -> sderl_plugin_cowboy;
        _ -> list_to_atom(Name)
     end || Name <- string:lexemes(Text, ", "), length(Name) =< 255];
plugins(_) -> [].

known_plugins(Parsed) ->
    case [Why || Module <- plugins(Parsed),
                 {error, Why} <- [sderl_actions_plugins:check(Module)]] of
        [] -> ok;
        [Why | _] -> {error, ["--plugins: ", Why]}
    end.

%% Nothing is kept of a synthetic cluster or of a replayed recording.
state(_, #{state := Dir}) -> Dir;
state(#{source := #{seed := Seed}}, _) ->
    Name = unicode:characters_to_list(atom_to_binary(Seed)),
    case {os:getenv("XDG_STATE_HOME", ""), os:getenv("HOME", "")} of
        {"", ""} -> undefined;
        {"", Home} -> filename:join([Home, ".local", "state", "sderl-mon", Name]);
        {State, _} -> filename:join([State, "sderl-mon", Name])
    end;
state(_, _) -> undefined.

cluster(#{source := #{seed := Seed}}, _) -> atom_to_binary(Seed);
cluster(#{source := synthetic}, _) -> ~"synthetic";
cluster(#{source := none}, #{replay := File}) ->
    unicode:characters_to_binary(filename:basename(File)).

archive(#{archive := Dir} = Parsed) ->
    Mb = maps:get(archive_mb, Parsed, ?ARCHIVE_MB),
    maybe
        ok ?= sderl_mon:set(#{archive => #{dir => Dir, max_bytes => Mb * 1_048_576}}),
        #{range := {From, _}} ?= sderl_mon_archive:info(),
        Since = case From of
            0 -> "";
            _ -> [", which has those since ", calendar:system_time_to_rfc3339(From div 1000)]
        end,
        say(["keeping numbers in ", Dir, Since, "\n"])
    else
        {refused, Why} -> {error, ["--archive: ", Why]};
        {error, Reason} -> {error, ["--archive: ", sderl_mon:format_error(Reason)]}
    end;
archive(_) ->
    ok.

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
        false ->
            Ended = sderl_cli_watch:until_stopped(),
            ok = sderl_prof_live:stop(),
            Ended
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

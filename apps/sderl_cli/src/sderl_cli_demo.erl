%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_demo).
-moduledoc """
`bin/sderl demo`: the same nodes and the same work as a stock full mesh with `global` and as
s_groups, and one table of what was measured.

On a terminal, or with `--port`, `--write` or `--record`, the s_groups' nodes stay up afterwards
under a gentle load, with the dashboard and for `shell`, `top`, `mon` and `chaos`, until Ctrl-C.
With `--once`, with `--json -`, and where there is neither they are stopped.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

%% Between two looks whether a node is down.
-define(LOOK_MS, 1_000).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "a cluster on this machine, as a full mesh and in s_groups, side by side".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(arguments()).

-doc """
Runs the demo. An error when a node fails, when calls were lost or names are missing on the
s_groups' side.
""".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    case sderl_command:parse(Args, ["demo"], arguments()) of
        {ok, Options} -> checked(Options);
        Other -> Other
    end.

arguments() ->
    #{
        help =>
            """
            Starts nodes on this machine and runs one workload on them three times: as a stock full
            mesh with global, then in s_groups that share gateway nodes, where nodes keep copies of
            the names of other groups (s_group:follow/1), and where they do not. Prints what was
            measured, side by side. The nodes of the s_groups stay up until Ctrl-C, and the
            dashboard shows them: its address is printed with the token that it needs, and so are
            commands to try in another terminal: top, mon, chaos and shell find the nodes by their
            names.
            """,
        arguments => [
            (option(nodes, "N", integer, "nodes, 4 or more (24)"))#{default => 24},
            (option(group_size, "G", integer,
                    "nodes of a group, its neighbour's gateway left out (6)"))#{default => 6},
            (option(seconds, "S", {integer, [{min, 1}, {max, 600}]},
                    "length of each of the four phases of each side (3)"))#{default => 3},
            (option(consistency, "C", {atom, [available, majority]},
                    "consistency of the s_groups: available or majority (available)"))
                #{default => available},
            option(seed, "X", integer,
                   "seed of the choice of calls and kills, as another run printed it"),
            option(port, "P", {integer, [{min, 0}, {max, 65_535}]},
                   lists:concat(["port of the dashboard, 0 for any free one (",
                                 sderl_web_start:default_port(), "); with it the nodes stay up "
                                 "also without a terminal"])),
            flag(write, "browsers may switch tracing and recording on and off; the nodes stay up"),
            option(record, "DIR", string,
                   "record into a file of this folder, for mon --replay; browsers may open the "
                   "recordings there; the nodes stay up"),
            flag(once, "stop the nodes at the end, as without a terminal"),
            option(json, "FILE|-", string,
                   "the numbers as a line of JSON into a file, or to stdout (-, and --once)")
        ]
    }.

%% Everything that can be refused is, before a node starts.
checked(#{nodes := Nodes, group_size := Size, consistency := Consistency} = Options) ->
    maybe
        ok ?= sderl_fleet:fits(max(0, Nodes)),
        {ok, Layout} ?= sderl_demo_layout:new(Nodes, Size, Consistency),
        ok ?= stays_at_all(Options),
        {ok, Folder} ?= recordings(Options),
        {ok, Output} ?= sderl_bench_output:open(maps:get(json, Options, undefined)),
        Settings = #{
            layout => Layout,
            seconds => maps:get(seconds, Options),
            seed => maps:get(seed, Options, rand:uniform(1_000_000))
        },
        Result = measure(Settings, Options#{record => Folder}, Output),
        closed(sderl_bench_output:close(Output), Result)
    else
        {wrong, Message} ->
            {usage, Message};
        {error, Misfit} when is_atom(Misfit) ->
            {usage, sderl_demo_text:misfit(Misfit)};
        {error, {memory, _} = Reason} ->
            {error, sderl_bench_reason:text(Reason)};
        {error, Message} ->
            {error, Message}
    end.

%% These options need nodes that stay up.
stays_at_all(#{once := Once} = Options) ->
    All = [{"--write", is_write(Options)}, {"--record", is_map_key(record, Options)}],
    Stay = " is for nodes that stay up, and ",
    case {[Option || {Option, true} <- All], Once, Options} of
        {[Option | _], true, _} ->
            {wrong, [Option, Stay, "--once stops them: leave out one of the two"]};
        {[Option | _], _, #{json := "-"}} ->
            {wrong,
             [Option, Stay, "--json - stops them: write the numbers into a file, --json FILE"]};
        {_, _, _} ->
            ok
    end.

is_write(#{write := Write}) -> Write.

%% Nodes may have another working directory.
recordings(#{record := ""}) ->
    {wrong, "--record is without a folder: name one, such as --record recordings"};
recordings(#{record := Folder}) ->
    case filelib:ensure_path(Folder) of
        ok -> {ok, filename:absname(Folder)};
        {error, Reason} ->
            Why = file:format_error(Reason),
            {error, ["--record: cannot make the folder ", Folder, ": ", Why, "; name another one"]}
    end;
recordings(_) ->
    {ok, none}.

closed(ok, Result) -> Result;
closed({error, _} = Error, ok) -> Error;
closed({error, _}, Result) -> Result.

measure(Settings, #{consistency := Consistency} = Options, Output) ->
    Started = sderl_bench_output:now(),
    ok = sderl_bench_output:say(Output, sderl_demo_text:header(Settings)),
    Owner = sderl_demo_attach:start(),
    case sderl_demo:run(Owner, Settings, show(Settings)) of
        {ok, Results, Fleet} ->
            ok = sderl_bench_output:say(Output, sderl_demo_table:text(Results, Consistency)),
            Written = sderl_bench_output:write(Output, result(Settings, Options, Results, Started)),
            Verdict = verdict(Output, Results),
            Stayed = stay(stays(Options, Output), Owner, Fleet, Settings, Options),
            ok = sderl_demo_attach:stop(Owner),
            ok = sderl_fleet:stop(Fleet),
            first_error([Written, Verdict, Stayed]);
        {error, {Side, Reason}} ->
            ok = sderl_demo_attach:stop(Owner),
            {error, sderl_demo_text:failure(Side, Reason)}
    end.

result(#{seconds := Seconds, seed := Seed}, Options, Results, Started) ->
    Params =
        (maps:with([nodes, group_size, consistency], Options))#{seconds => Seconds, seed => Seed},
    sderl_bench_output:result(demo, Params, Results, Started).

verdict(Output, Results) ->
    case sderl_demo:verdict(Results) of
        ok ->
            sderl_bench_output:say(Output, sderl_demo_text:kept());
        {error, Broken} ->
            %% Now, because the program may stay; and as its error when it ends.
            Text = sderl_demo_text:broken(Broken, Results),
            ok = sderl_bench_output:say(Output, ["\n", Text, "\n"]),
            {error, Text}
    end.

first_error([]) -> ok;
first_error([ok | Results]) -> first_error(Results);
first_error([{error, _} = Error | _]) -> Error.

%% Progress

show(#{seconds := Seconds}) ->
    #{
        nodes => fun(Side) ->
            sderl_progress:reporter(sderl_demo_text:step(Side, nodes))
        end,
        around => fun(Side, Step, Fun) ->
            Ms = expected_ms(Step, Side, Seconds),
            sderl_progress:during(sderl_demo_text:step(Side, Step), Ms, Fun)
        end
    }.

%% Only for the bar.
expected_ms(link, _Side, _Seconds) -> 1_000;
expected_ms(servers, _Side, _Seconds) -> 1_000;
expected_ms(check, _Side, _Seconds) -> 500;
expected_ms(registrations, stock, Seconds) -> Seconds * 1000 + 9_000;
expected_ms(_Load, _Side, Seconds) -> Seconds * 1000 + 300.

%% Staying up

stays(#{once := Once} = Options, Output) ->
    not Once andalso not sderl_bench_output:is_stdout(Output) andalso
        (is_map_key(port, Options) orelse is_write(Options) orelse
            maps:get(record, Options) =/= none orelse os:getenv("SDERL_TTY") =:= "1").

stay(false, _Owner, _Fleet, _Settings, _Options) ->
    ok;
stay(true, Owner, Fleet, #{layout := #{consistency := Consistency} = Layout}, Options) ->
    Site = #{nodes := [Seed | _] = Nodes} = sderl_demo_cluster:site(sd, Fleet, Layout),
    Shown = #{
        port => maps:get(port, Options, any),
        cluster => cluster(Consistency),
        writable => is_write(Options),
        record => maps:get(record, Options)
    },
    Dashboard = sderl_progress:during("starting the dashboard", 4_000, fun() ->
        sderl_demo_dashboard:start(Fleet, Seed, Shown)
    end),
    case sderl_demo_attach:write(Owner, Fleet) of
        ok ->
            io:put_chars([sderl_demo_text:invitation(Layout, Nodes),
                          sderl_demo_dashboard:text(Dashboard), sderl_demo_text:leave()]),
            _ = sderl_demo_live:start(Fleet, Site),
            until_stopped(Fleet, maps:merge(sderl_demo_live:nodes(Fleet, Site),
                                            sderl_demo_dashboard:nodes(Fleet, Dashboard)));
        {error, {Reason, File}} ->
            {error, sderl_demo_text:no_shell(Reason, File)}
    end.

cluster(available) -> ~"demo";
cluster(majority) -> ~"demo, by majority".

%% From here on this process gets Ctrl-C, by which it ends.
until_stopped(Fleet, Nodes) ->
    ok = sderl_signals:tell(self()),
    watched(Fleet, Nodes, monitor(process, Fleet), #{}).

watched(Fleet, Nodes, Monitor, Away) ->
    receive
        {sderl_signals, stop} -> io:put_chars("stopping ...\n");
        {'DOWN', Monitor, process, Fleet, Reason} -> {error, sderl_bench_reason:text(Reason)}
    after ?LOOK_MS ->
        watched(Fleet, Nodes, Monitor, sderl_demo_live:mend(Fleet, Nodes, Away))
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli).
-moduledoc """
The command-line program behind `bin/sderl`.

Exit statuses: 0 it worked, 1 it did not, 2 the arguments are wrong, 143 (128 + 15) when a signal
stopped it, which `bin/sderl` makes that of the signal it got: 130 for Ctrl-C. Messages go to
stderr, so that stdout holds results only.
""".

-export([main/1, run/1]).

%% Beside these there are those that applications offer in their environment. `shell` is in
%% bin/sderl itself: it takes over the terminal.
-define(COMMANDS, [
    {"demo", sderl_cli_demo},
    {"plan", sderl_cli_plan},
    {"bench", sderl_cli_bench},
    {"chaos", sderl_cli_chaos},
    {"recover", sderl_cli_recover},
    {"mon", sderl_cli_mon},
    {"alarms", sderl_cli_alarms},
    {"metrics", sderl_cli_metrics},
    {"actions", sderl_cli_actions},
    {"audit", sderl_cli_audit},
    {"tokens", sderl_cli_tokens},
    {"top", sderl_cli_top},
    {"log", sderl_cli_log},
    {"prof", sderl_cli_prof}
]).

%% Commands on a running cluster that operators also find below `ops`, which is another
%% application's.
-define(ALSO_BELOW_OPS, ["alarms", "metrics", "log", "actions", "audit", "tokens"]).

%% How long nodes may take to go when a signal has ended the command.
-define(CLEAN_UP_MS, 15_000).

-doc "Runs a command line and ends the virtual machine with its exit status.".
-spec main(Args :: [string()]) -> no_return().
main(Args) ->
    _ = io:setopts(standard_io, [{encoding, unicode}]),
    _ = io:setopts(standard_error, [{encoding, unicode}]),
    ok = log_to_stderr(),
    ok = sderl_signals:install(self()),
    Main = self(),
    {Runner, Monitor} = spawn_monitor(fun() -> Main ! {outcome, outcome(Args)} end),
    receive
        {outcome, {status, Status}} ->
            halt(Status);
        {outcome, no_stdout} ->
            complain("cannot write to stdout"),
            halt(1);
        {outcome, Failure} ->
            defect(Failure);
        {'DOWN', Monitor, process, Runner, Reason} ->
            defect(Reason);
        {sderl_signals, stop} ->
            stop(Runner, Monitor)
    end.

-spec defect(term()) -> no_return().
defect(Reason) ->
    complain(["this is a defect of the program: ", io_lib:format("~tp", [Reason])]),
    halt(1).

outcome(Args) ->
    try
        {Status, Where, Text} = run(Args),
        case Where of
            stdout -> io:put_chars(sderl_visible:text(Text));
            stderr -> complain(Text)
        end,
        {status, Status}
    catch
        Class:Reason:Stack -> failure(Class, Reason, Stack)
    end.

%% The reader of a pipe has gone, or the disk is full.
failure(error, terminated, [{io, _, _, _} | _]) -> no_stdout;
failure(Class, Reason, Stack) -> {Class, Reason, Stack}.

%% A fleet ends with the process that started it, and so do network namespaces; wait until they all
%% have.
-spec stop(pid(), reference()) -> no_return().
stop(Runner, Monitor) ->
    Wipe = sderl_progress:over(),
    exit(Runner, kill),
    receive
        {'DOWN', Monitor, process, Runner, _} -> ok
    end,
    Fleets = [{Pid, monitor(process, Pid)} || Pid <- processes(), cleans_up(Pid)],
    Deadline = erlang:monotonic_time(millisecond) + ?CLEAN_UP_MS,
    lists:foreach(
        fun({Pid, Ref}) ->
            receive
                {'DOWN', Ref, process, Pid, _} -> ok
            after max(0, Deadline - erlang:monotonic_time(millisecond)) -> ok
            end
        end,
        Fleets
    ),
    Wipe(),
    halt(143).

cleans_up(Pid) ->
    case proc_lib:translate_initial_call(Pid) of
        {sderl_fleet_server, init, 1} -> true;
        {sderl_fleet_netns, init, 1} -> true;
        {sderl_bench_vm_start, remove_after, 2} -> true;
        _ -> false
    end.

-doc """
Runs a command line. Gives the exit status and what is left to say: results to stdout,
messages to stderr.
""".
-spec run(Args :: [string()]) -> {0 | 1 | 2, stdout | stderr, sderl_command:text()}.
run([]) ->
    {2, stderr, ["a command is missing\n\n", help()]};
run([Help]) when Help =:= "help"; Help =:= "--help"; Help =:= "-h" ->
    {0, stdout, help()};
run(["help", Name | Args]) ->
    run([Name | Args] ++ ["--help"]);
run([Version]) when Version =:= "version"; Version =:= "--version" ->
    Otp = maps:get(otp, sderl_bench_machine:info()),
    {0, stdout, io_lib:format("sderl ~ts, OTP ~ts~n", [version(), Otp])};
run(["completion", "bash"]) -> {0, stdout, sderl_completion:script(bash, completed())};
run(["completion", "zsh"]) -> {0, stdout, sderl_completion:script(zsh, completed())};
run(["completion" | Args]) ->
    Which = "eval \"$(bin/sderl completion bash)\", or source <(bin/sderl completion zsh)",
    case Args of
        [Help] when Help =:= "--help"; Help =:= "-h" -> {0, stdout, [Which, "\n"]};
        _ -> {2, stderr, ["completion is for bash or zsh: ", Which]}
    end;
run(["ops"]) -> with_others(command("ops", []));
run(["ops", Name | Args]) ->
    case lists:member(Name, ?ALSO_BELOW_OPS) of
        true -> command(Name, Args);
        false when Name =:= "help"; Name =:= "--help"; Name =:= "-h" ->
            with_others(command("ops", [Name | Args]));
        false -> command("ops", [Name | Args])
    end;
run([Name | Args]) -> command(Name, Args).

command(Name, Args) ->
    case lists:keyfind(Name, 1, commands()) of
        {Name, Module} -> status(Module:run(Args));
        false -> {2, stderr, ["there is no command ", Name, "\n\n", help()]}
    end.

with_others({Status, Where, Text}) ->
    {Status, Where, [Text, "\nAlso ", lists:join(", ", ?ALSO_BELOW_OPS),
                     ", as \"bin/sderl alarms\" and so on.\n"]}.

completed() ->
    Each = [{Name, case is_completed(Module) of
        true -> Module:completion();
        false -> {options, ["--help"], none}
    end} || {Name, Module} <- commands()],
    Commands = [case One of
        {"ops", {commands, Own}} ->
            {"ops", {commands, Own ++ [below(Of) || {Name, _} = Of <- Each,
                                                    lists:member(Name, ?ALSO_BELOW_OPS)]}};
        _ -> One
    end || One <- Each],
    Names = [Name || {Name, _} <- Commands],
    Commands ++ [{"shell", {options, [], none}}, {"version", {options, [], none}},
                 {"completion", {options, [], {words, ["bash", "zsh"]}}},
                 {"help", {options, [], {words, Names}}}].

below({Name, {options, Options, First}}) -> {Name, Options, First};
below({Name, {commands, Commands}}) ->
    {Name, ["--help"], {words, [Command || {Command, _, _} <- Commands]}}.

is_completed(Module) ->
    code:ensure_loaded(Module) =:= {module, Module} andalso
        erlang:function_exported(Module, completion, 0).

commands() -> ?COMMANDS ++ sderl_catalogue:all(commands).

status(ok) -> {0, stdout, ""};
status({help, Text}) -> {0, stdout, Text};
status({error, Message}) -> {1, stderr, Message};
status({usage, Message}) -> {2, stderr, Message}.

help() ->
    Lines = [{Name, summary(Module)} || {Name, Module} <- commands()] ++ [
        {"shell", "an Erlang shell with the project's code, or on a running node"},
        {"completion", "completion of all this for bash or zsh"},
        {"version", "the versions of this program and of OTP"},
        {"help", "this list"}
    ],
    [
        "usage: bin/sderl COMMAND [options]\n\n",
        [io_lib:format("  ~-10ts ~ts~n", [Name, Summary]) || {Name, Summary} <- Lines],
        "\n\"bin/sderl COMMAND --help\" lists a command's options.\n"
    ].

%% Help works also where a command's module does not load.
summary(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> Module:summary();
        {error, _} -> "(not built)"
    end.

version() ->
    _ = application:load(sderl_cli),
    {ok, Version} = application:get_key(sderl_cli, vsn),
    Version.

complain(Message) ->
    sderl_progress:done(),
    io:format(standard_error, "sderl: ~ts~n", [sderl_visible:text(Message)]).

%% The default handler writes to stdout, where only results belong.
log_to_stderr() ->
    _ = logger:remove_handler(default),
    logger:add_handler(default, logger_std_h, #{
        config => #{type => standard_error},
        level => warning
    }).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_asks).
-moduledoc """
A service in a virtual machine of its own: it is started and asked as by `bin/sderl ops`, and what
it runs is found by the mark in the environment of each process.
""".

-export([write/2, start/3, connect/1, is_reachable/1]).
-export([ask/3, ask_any/3, send/3, last/1, answer/1]).
-export([processes_of/1, beams/2, all_beams/2, below/1]).

-define(PATIENCE_MS, 180_000).

-doc "Writes the file of a cluster into a folder, under a name of its own.".
-spec write(Cluster :: term(), file:filename()) -> binary().
write(Cluster, Folder) ->
    Name = lists:concat(["file-", erlang:unique_integer([positive]), ".json"]),
    File = filename:join(Folder, Name),
    ok = file:write_file(File, json:encode(Cluster)),
    unicode:characters_to_binary(File).

-doc "Runs Erlang code in a virtual machine with the service's code. Returns its process id.".
-spec start(Code :: iodata(), [string()], Environment :: [{string(), string()}]) ->
    {port(), Pid :: pos_integer()}.
start(Code, Arguments, Environment) ->
    Paths = lists:append([["-pa", Path] || Path <- code:get_path(),
                                           not lists:prefix(code:root_dir(), Path)]),
    Port = open_port({spawn_executable, os:find_executable("erl")}, [
        binary, stderr_to_stdout, exit_status,
        {args, ["-noinput", "-connect_all", "false", "-nocookie", "+sbwt", "none" | Arguments]
               ++ Paths ++ ["-eval", unicode:characters_to_list(Code)]},
        {env, Environment}
    ]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    {Port, Pid}.

-doc "Connects to the service of a folder.".
-spec connect(file:filename()) -> {ok, gen_tcp:socket()} | {error, term()}.
connect(Folder) ->
    gen_tcp:connect({local, filename:join(Folder, "socket")}, 0,
                    [binary, {active, false}, {packet, line}, {buffer, 1_000_000}]).

-doc "Whether a service listens.".
-spec is_reachable(file:filename()) -> boolean().
is_reachable(Folder) ->
    case connect(Folder) of
        {ok, Socket} -> gen_tcp:close(Socket) =:= ok;
        {error, _} -> false
    end.

-doc "Sends a request, and returns the final `done`.".
-spec ask(file:filename(), Do :: atom(), Keys :: map()) -> map().
ask(Folder, Do, Keys) ->
    {done, Done} = ask_any(Folder, Do, Keys),
    Done.

-doc "Sends a request, and returns the final answer.".
-spec ask_any(file:filename(), Do :: atom(), Keys :: map()) -> sderl_ops_wire:answer().
ask_any(Folder, Do, Keys) ->
    {ok, Socket} = send(Folder, Do, Keys),
    last(Socket).

-doc "Sends a request, and does not wait for an answer.".
-spec send(file:filename(), Do :: atom(), Keys :: map()) ->
    {ok, gen_tcp:socket()} | {error, term()}.
send(Folder, Do, Keys) ->
    maybe
        {ok, Socket} ?= connect(Folder),
        ok ?= gen_tcp:send(Socket, [json:encode(Keys#{do => Do, who => ~"tester"}), $\n]),
        {ok, Socket}
    end.

-doc "The next answer.".
-spec answer(gen_tcp:socket()) -> sderl_ops_wire:answer().
answer(Socket) ->
    {ok, Line} = gen_tcp:recv(Socket, 0, ?PATIENCE_MS),
    {ok, Answer} = sderl_ops_wire:decode_answer(Line),
    ct:log("~0tp", [Answer]),
    Answer.

-doc "The final answer, after all events.".
-spec last(gen_tcp:socket()) -> sderl_ops_wire:answer().
last(Socket) ->
    case answer(Socket) of
        {done, _} = Done -> Done;
        {error, _, _} = Error -> Error;
        _ -> last(Socket)
    end.

%% ---------------------------------------------------------------- what runs

-doc "Processes of instances below a folder.".
-spec processes_of(file:filename()) -> [Pid :: string()].
processes_of(Folder) ->
    Mark = "SDERL_OPS_FOLDER=" ++ Folder,
    [Pid || Pid <- numbers(), has_all([Mark], Pid), not is_epmd(Pid)].

numbers() -> [Pid || Pid <- element(2, file:list_dir("/proc")), hd(Pid) >= $0, hd(Pid) =< $9].

-doc "All descendants of a process.".
-spec below(Pid :: string()) -> [Pid :: string()].
below(Pid) ->
    Children = string:lexemes(os:cmd("ps -o pid= --ppid " ++ Pid), " \n"),
    lists:append([[Child | below(Child)] || Child <- Children]).

-doc "Virtual machines of an instance.".
-spec beams(Id :: binary(), file:filename()) -> [Pid :: string()].
beams(Id, Folder) -> map_get(Id, all_beams([Id], Folder)).

-doc "The same for several instances, with one look at all processes of the machine.".
-spec all_beams([Id :: binary()], file:filename()) -> #{Id :: binary() => [Pid :: string()]}.
all_beams(Ids, Folder) ->
    Below = "SDERL_OPS_FOLDER=" ++ Folder,
    Pids = [Pid || Pid <- numbers(), is_beam(Pid), has_all([Below], Pid)],
    #{Id => [Pid || Pid <- Pids, has_all(["/nodes/" ++ binary_to_list(Id) ++ [0]], Pid)]
      || Id <- Ids}.

is_beam(Pid) ->
    case file:read_file("/proc/" ++ Pid ++ "/comm", [raw]) of
        {ok, <<"beam", _/binary>>} -> true;
        _ -> false
    end.

%% The port mapper has the environment of the node that happened to start it.
is_epmd(Pid) -> {ok, ~"epmd\n"} =:= file:read_file("/proc/" ++ Pid ++ "/comm", [raw]).

has_all(Marks, Pid) ->
    case file:read_file("/proc/" ++ Pid ++ "/environ", [raw]) of
        {ok, Environment} ->
            Text = <<Environment/binary, 0>>,
            lists:all(fun(Mark) -> binary:match(Text, iolist_to_binary(Mark)) =/= nomatch end,
                      Marks);
        {error, _} ->
            false
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_openssh).
-moduledoc """
Reaches a host by the machine's OpenSSH client, with the user's own keys, agent, configuration and
known hosts. A host whose key is unknown or has changed is refused, and ssh never asks questions.

Small calls of a service share a session for each host (`m:sderl_ops_sessions`). Without a session
they share a connection that stays open for a minute. An archive has a connection of its own. When a
host gives a release to another one, an agent is forwarded to it for the time of that call
(`m:sderl_ops_openssh_relay`). On the host, all files of operations are in `sderl-ops/CLUSTER` in
the user's home, also the host script, whose name has its checksum.
""".

-behaviour(sderl_ops_transport).

-export([run/5, give/5, explain/2, close/1]).
-export_type([settings/0]).

-doc """
`folder` is for the sockets of open connections. A host that does not answer a probe every
`Seconds`, `Times` times in a row, is given up (`alive`). If `host_key` is known, `known_hosts` is
not used. `before` is the command that runs ssh if an agent is forwarded.
""".
-type settings() :: #{
    address := binary(),
    port := 1..65535,
    folder := file:filename_all(),
    user => binary(),
    key => file:filename_all(),
    known_hosts => file:filename_all(),
    host_key => binary(),
    alive => {Seconds :: pos_integer(), Times :: pos_integer()},
    before => [unicode:chardata()]
}.

%% This version of the script is not on the host.
-define(NO_SCRIPT, 119).

-spec run(settings(), binary(), [binary()], sderl_ops_port:input(), pos_integer()) ->
    sderl_ops_transport:answer().
run(Settings, Cluster, Arguments, Input, Limit) ->
    Open = fun() -> session(Settings, Cluster) end,
    case sderl_ops_sessions:call({Settings, Cluster}, Open, Arguments, Input, Limit) of
        none -> run_alone(Settings, Cluster, Arguments, Input, Limit);
        {ended, ?NO_SCRIPT, _} -> run_alone(Settings, Cluster, Arguments, Input, Limit);
        {ended, 255, Said} -> {error, explain(Said, Settings)};
        {ended, _, Said} -> {error, {cut_off, last_lines(Said)}};
        {error, timeout} -> {error, {timeout, Limit, ~""}};
        {ok, Status, Output} -> {ok, Status, Output}
    end.

session(Settings, Cluster) ->
    {_, _, _, Command} = script(Cluster, [~"serve"]),
    case ssh(Settings, Command, {file, none}) of
        {ok, Words, _} -> Words;
        {error, _} -> none
    end.

script(Cluster, Arguments) ->
    {ok, Script} = file:read_file(sderl_ops_sh:script()),
    Sum = binary:encode_hex(crypto:hash(sha256, Script), lowercase),
    Base = <<"sderl-ops/", Cluster/binary>>,
    File = <<Base/binary, "/host-", Sum/binary, ".sh">>,
    Command = remote(["[ -f \"$0\" ] || exit ", integer_to_list(?NO_SCRIPT),
                      "; exec sh \"$0\" \"$@\""], [File, Base, Cluster | Arguments]),
    {Script, Sum, Base, Command}.

run_alone(Settings, Cluster, Arguments, Input, Limit) ->
    {Script, Sum, Base, Command} = script(Cluster, Arguments),
    case call(Settings, Command, Input, Limit) of
        {ok, ?NO_SCRIPT, _} ->
            case put_script(Settings, Base, Script, Sum, Limit) of
                {ok, 0, _} -> call(Settings, Command, Input, Limit);
                Other -> Other
            end;
        Answer ->
            Answer
    end.

-doc "Has one host give a release to another. Only this call has an agent forwarded.".
-spec give(settings(), settings(), binary(), [binary()], pos_integer()) ->
    sderl_ops_transport:answer().
give(#{folder := Folder} = Giver, Receiver, Cluster, Arguments, Limit) ->
    Ask = fun(Words) -> ask(Words, Folder) end,
    Options = fun(Settings) -> options(Settings, none) end,
    case sderl_ops_openssh_relay:command(Giver, Receiver, Options, Ask, Folder) of
        {ok, #{before := Before, arguments := Words, input := Input, file := File}} ->
            try
                run(Giver#{before => Before}, Cluster, Arguments ++ Words, {bytes, Input}, Limit)
            after
                File =:= none orelse file:delete(File)
            end;
        {error, Why} ->
            {error, {relay, link, Why}}
    end.

ask(Words, Folder) ->
    Command = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", filename:absname(Folder) | Words],
    case filelib:ensure_path(Folder) =:= ok andalso sderl_ops_port:run(Command, none, 30_000) of
        {ok, 0, Output} -> {ok, Output};
        {ok, _, Output} -> {error, last_lines(Output)};
        {error, _, Output} -> {error, last_lines(Output)};
        false -> {error, ~"the folder for connections cannot be made"}
    end.

%% The script gets its name only after its checksum was checked.
put_script(Settings, Base, Script, Sum, Limit) ->
    Command = remote(
        "umask 077; mkdir -p \"$0\" && cd \"$0\" && cat >.script.$$ "
        "&& set -- \"$1\" $(sha256sum <.script.$$) && { [ \"$1\" = \"$2\" ] || exit 1; } "
        "&& rm -f host-*.sh && mv .script.$$ \"host-$1.sh\"",
        [Base, Sum]),
    call(maps:remove(before, Settings), Command, {bytes, Script}, Limit).

%% The user's shell there, whichever it is, only reads one line in single quotes.
remote(Shell, Words) ->
    lists:join(" ", ["exec sh -c", quote(Shell) | [quote(Word) || Word <- Words]]).

quote(Text) -> ["'", string:replace(Text, "'", "'\\''", all), "'"].

call(Given, Command, Input, Limit) ->
    case ssh(Given, Command, Input) of
        {ok, Words, Settings} ->
            ok = sderl_ops_sent:count_call(Input, Command),
            answer(sderl_ops_port:run(Words, Input, Limit), Settings, Limit);
        {error, _} = Error ->
            Error
    end.

ssh(#{address := Address, folder := Folder} = Given, Command, Input) ->
    case {os:find_executable("ssh"), know(Given)} of
        {false, _} ->
            {error, {no_ssh, ~""}};
        {_, {error, Why}} ->
            {error, {cannot_read, Folder, Why}};
        {Ssh, {ok, Settings}} ->
            %% ssh runs in the folder, so that the paths of sockets are short enough.
            Before = maps:get(before, Settings, []),
            Words = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", filename:absname(Folder)
                     | Before ++ [Ssh]]
                ++ options(Settings, Input) ++ ["--", Address, Command],
            {ok, Words, Settings}
    end.

%% A host key that a program told is put into a file of its own, named by its checksum.
know(#{host_key := Key, address := Address, port := Port, folder := Folder} = Settings) ->
    Line = ["[", Address, "]:", integer_to_list(Port), " ", Key, "\n"
            | [[Address, " ", Key, "\n"] || Port =:= 22]],
    Sum = binary:encode_hex(crypto:hash(sha256, Line), lowercase),
    File = filename:join(Folder, <<"known-", Sum/binary>>),
    maybe
        ok ?= filelib:ensure_path(Folder),
        false ?= filelib:is_regular(File),
        Part = <<Sum/binary, (integer_to_binary(erlang:unique_integer([positive])))/binary>>,
        ok ?= file:write_file(filename:join(Folder, Part), Line),
        ok ?= file:rename(filename:join(Folder, Part), File),
        {ok, Settings#{known_hosts => File}}
    else
        true -> {ok, Settings#{known_hosts => File}};
        {error, _} = Error -> Error
    end;
know(#{folder := Folder} = Settings) ->
    case filelib:ensure_path(Folder) of
        ok -> {ok, Settings};
        {error, _} = Error -> Error
    end.

options(#{port := Port} = Settings, Input) ->
    {Seconds, Times} = alive(Settings),
    Options = [
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "UpdateHostKeys=no",
        ["ConnectTimeout=", integer_to_list(Seconds * Times)],
        ["ServerAliveInterval=", integer_to_list(Seconds)],
        ["ServerAliveCountMax=", integer_to_list(Times)],
        "ClearAllForwardings=yes",
        ["ForwardAgent=", case Settings of #{before := _} -> "yes"; #{} -> "no" end],
        "ForwardX11=no",
        "PermitLocalCommand=no",
        "EscapeChar=none",
        "LogLevel=INFO"
    ] ++ connection(Settings, Input)
        ++ [["User=", User] || #{user := User} <- [Settings]]
        ++ lists:append([[["IdentityFile=", file_option(Key)], "IdentitiesOnly=yes"]
                         || #{key := Key} <- [Settings]])
        ++ lists:append([[["UserKnownHostsFile=", file_option(Known)], "GlobalKnownHostsFile=none"]
                         || #{known_hosts := Known} <- [Settings]]),
    ["-T", "-p", integer_to_list(Port) | lists:append([["-o", Option] || Option <- Options])].

alive(#{alive := Alive}) -> Alive;
alive(_) -> {5, 3}.

%% Long calls, and those with an agent, have a connection of their own.
connection(#{before := _}, _) -> ["ControlMaster=no", "ControlPath=none"];
connection(_, {file, _}) -> ["ControlMaster=no", "ControlPath=none"];
connection(_, _) -> ["ControlMaster=auto", "ControlPath=%C", "ControlPersist=60"].

%% A percent sign would begin a variable of ssh.
file_option(File) ->
    ["\"", string:replace(filename:absname(File), "%", "%%", all), "\""].

%% ------------------------------------------------------------------ what ssh says

%% Status 255 is ssh's own, 118 means that there is no agent; all others are the program's.
answer({ok, 255, Output}, Settings, _) -> {error, explain(Output, Settings)};
answer({ok, 118, Output}, #{before := _}, _) ->
    {error, {relay, link, {no_relay, last_lines(Output)}}};
answer({ok, Status, Output}, _, _) -> {ok, Status, Output};
answer({error, timeout, Output}, _, Limit) -> {error, {timeout, Limit, Output}};
answer({error, killed, Output}, _, _) -> {error, {cut_off, Output}}.

-doc "The error that ssh's last lines of output mean.".
-spec explain(binary(), map()) -> sderl_ops_host:why().
explain(Output, Settings) ->
    {Seconds, Times} = alive(Settings),
    Said = last_lines(Output),
    Meanings = [
        {["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED",
          "host key is known for"],
         {wrong_host_key, Said}},
        {["Permission denied", "Too many authentication failures"], {refused_login, Said}},
        {["not responding"], {timeout, Seconds * Times * 1000, Said}},
        {["closed by remote host", "Broken pipe", "Connection reset", "read from master failed"],
         {cut_off, Said}}
    ],
    case [Meaning || {Texts, Meaning} <- Meanings, is_in(Texts, Output)] of
        [Why | _] -> Why;
        [] -> {unreachable, Said}
    end.

is_in(Texts, Output) ->
    binary:match(Output, [list_to_binary(Text) || Text <- Texts]) =/= nomatch.

%% Without the answers of the script.
last_lines(Output) ->
    Lines = [Line || Line <- binary:split(Output, [~"\n", ~"\r"], [global, trim_all]),
                     not is_answer(Line)],
    iolist_to_binary(lists:join("\n", lists:nthtail(max(0, length(Lines) - 4), Lines))).

is_answer(<<"ops ", _/binary>>) -> true;
is_answer(_) -> false.

-doc "Ends the connections that are open from this folder.".
-spec close(file:filename_all()) -> ok.
close(Folder) ->
    Sockets = [Name || Name <- filelib:wildcard("*", Folder), length(Name) =:= 40],
    lists:foreach(fun(Name) ->
        Words = ["/bin/sh", "-c", "cd \"$0\" && exec ssh -o \"ControlPath=$1\" -O exit host",
                 filename:absname(Folder), Name],
        _ = sderl_ops_port:run(Words, none, 5_000),
        _ = file:delete(filename:join(Folder, Name))
    end, Sockets).

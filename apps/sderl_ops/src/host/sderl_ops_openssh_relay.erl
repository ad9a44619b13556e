%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_openssh_relay).
-moduledoc """
What one host needs to reach another one over ssh for one call: the other's host keys, and an agent.
No key is ever written on a host.

If the provider names a `key`, the call has an agent of its own with that key alone. The agent lets
it be used for two things: the login at the giver, and, from there, the login of that user at that
receiver; both are identified by their host keys. If no `key` is named, the agent of the service's
user is forwarded for the time of the call.
""".

-export([command/5]).
-export_type([lent/0]).

-doc "`input` are the receiver's host keys; `file` has to be deleted after the call.".
-type lent() :: #{
    before := [unicode:chardata()],
    arguments := [binary()],
    input := binary(),
    file := file:filename_all() | none
}.

%% As long as a transfer may take.
-define(KEY_S, 960).

%% The agent ends with the command that it runs, also when that is killed.
-define(AGENT, """
unset SSH_ASKPASS DISPLAY
ssh-add -q -t "$1" -H "$2" -h giver -h "giver>$3" "$4" </dev/null || exit 118
shift 4
exec "$@"
""").

-type settings() :: sderl_ops_openssh:settings().

-doc """
The command that runs ssh to the giver, and the arguments and input of the script there. `Ask` runs
a program of this machine.
""".
-spec command(settings(), settings(), Options :: fun((settings()) -> [unicode:chardata()]),
              Ask :: fun(([unicode:chardata(), ...]) -> {ok, binary()} | {error, binary()}),
              Folder :: file:filename_all()) ->
    {ok, lent()} | {error, sderl_ops_host:why()}.
command(Giver, Receiver, Options, Ask, Folder) ->
    maybe
        {ok, From} ?= resolve(Giver, Options, Ask),
        {ok, To} ?= resolve(Receiver, Options, Ask),
        {ok, Keys} ?= keys(To, ~"receiver", Ask),
        #{name := Address, port := Port, user := User} = To,
        Lent = #{before => [], arguments => [Address, Port, User], input => Keys, file => none},
        {ok, Known} ?= keys(From, ~"giver", Ask),
        {ok, _} ?= case Giver of
            #{key := Key} -> lend(Key, [Known, Keys], User, Folder, Lent);
            #{} -> agent_of_user(Lent)
        end
    else
        {error, Text} -> {error, {no_relay, Text}}
    end.

agent_of_user(Lent) ->
    case os:getenv("SSH_AUTH_SOCK") of
        false -> {error, ~"the provider names no key, and the service has no agent"};
        _ -> {ok, Lent}
    end.

lend(Key, Known, User, Folder, Lent) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    File = filename:join(Folder, "relay-" ++ os:getpid() ++ "-" ++ Unique),
    case file:write_file(File, Known) of
        ok ->
            {ok, Lent#{
                file := File,
                before := ["ssh-agent", "/bin/sh", "-c", ?AGENT, "relay", integer_to_list(?KEY_S),
                           filename:absname(File), [User, "@receiver"], filename:absname(Key)]
            }};
        {error, Why} ->
            {error, unicode:characters_to_binary([File, ": ", file:format_error(Why)])}
    end.

%% By this machine's OpenSSH configuration, which the giver does not have.
resolve(#{address := Address, port := Port} = Settings, Options, Ask) ->
    maybe
        {ok, Output} ?= Ask(["ssh", "-G"] ++ Options(Settings) ++ ["--", Address]),
        Values = maps:from_list([{Key, Value} || Line <- binary:split(Output, ~"\n", [global]),
                                                 [Key, Value] <- [binary:split(Line, ~" ")]]),
        Name = maps:get(~"hostname", Values, Address),
        Number = maps:get(~"port", Values, integer_to_binary(Port)),
        {ok, #{
            name => Name,
            port => Number,
            user => maps:get(~"user", Values, ~"root"),
            known_as => case Values of
                #{~"hostkeyalias" := Alias} when Alias =/= ~"none" -> Alias;
                #{} when Number =:= ~"22" -> Name;
                #{} -> <<"[", Name/binary, "]:", Number/binary>>
            end,
            files => known_files(Settings, Values)
        }}
    end.

known_files(#{known_hosts := File}, _) ->
    [filename:absname(File)];
known_files(_, Values) ->
    [path(File) || Key <- [~"userknownhostsfile", ~"globalknownhostsfile"],
                   #{Key := Files} <- [Values],
                   File <- binary:split(Files, ~" ", [global, trim_all])].

path(<<"~/", Rest/binary>>) -> filename:join(os:getenv("HOME", "/"), Rest);
path(File) -> File.

%% The lines for this host, under another name.
keys(#{known_as := Name, files := Files}, As, Ask) ->
    Found = [Line || File <- Files, filelib:is_regular(File),
                     {ok, Output} <- [Ask(["ssh-keygen", "-F", Name, "-f", File])],
                     Given <- binary:split(Output, ~"\n", [global, trim_all]),
                     Line <- renamed(Given, As)],
    case Found of
        [] -> {error, <<"no known host key of ", Name/binary>>};
        _ -> {ok, iolist_to_binary([[Line, "\n"] || Line <- Found])}
    end.

renamed(<<"#", _/binary>>, _) -> [];
%% A key that is revoked, or that of an authority, is not one of the host.
renamed(<<"@", _/binary>>, _) -> [];
renamed(Line, As) ->
    case binary:split(Line, ~" ") of
        [_, Key] -> [[As, " ", Key]];
        _ -> []
    end.

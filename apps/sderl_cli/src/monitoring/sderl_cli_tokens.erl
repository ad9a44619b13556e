%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_tokens).
-moduledoc """
`bin/sderl tokens`: makes, lists and revokes the tokens of a file, which running dashboards read
(`m:sderl_web_token_file`).
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

%% Ten years.
-define(MOST_S, 315_360_000).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "tokens with roles for the dashboard: add, list, revoke".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() ->
    {commands, [sderl_completion:command(Do, command(Do)) || {Do, _} <- commands()]}.

-doc "An error where the file cannot be read or written.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    sderl_command:run_one(Args, "tokens", [Do || {Do, _} <- commands()],
                          #{help => fun help/0, arguments => fun command/1, do => fun checked/2}).

help() ->
    [
        "usage: bin/sderl tokens COMMAND [options]\n\n"
        "Tokens for people and programs that use a dashboard: each with a name, a role and an\n"
        "end. They are in a file that only its owner can read, and that a dashboard is started\n"
        "with (bin/sderl mon --tokens FILE); a change counts there within a second.\n\n",
        [io_lib:format("  ~-7ts ~ts~n", [Do, About]) || {Do, About} <- commands()],
        "\nA viewer looks, an operator also acknowledges, silences and traces, an admin also\n"
        "reads rules again and makes tokens. docs/rest.md is the guide.\n"
    ].

commands() ->
    [{add, "make a token and print it, this once"},
     {list, "the tokens: id, name, role, end"},
     {revoke, "end a token before its time"}].

command(Do) ->
    {_, [First | Rest]} = lists:keyfind(Do, 1, commands()),
    #{help => [string:to_upper(First) | Rest] ++ ".", arguments => arguments(Do) ++ common()}.

arguments(add) ->
    [positional(name, "NAME", "whose it is: letters, digits and . _ @ + -"),
     (option(role, "ROLE", {atom, sderl_web_token:roles()}, "viewer, operator or admin"))
         #{required => true},
     (option('for', "TIME", string, "how long it holds: 90s, 30m, 2h, 7d or never (90d)"))
         #{default => "90d"}];
arguments(list) -> [];
arguments(revoke) -> [positional(id, "ID", "which one: its id or its name, as list tells it")].

common() ->
    [option(file, "FILE", string, "the file of the tokens ($SDERL_TOKENS)"),
     flag(json, "the answer as JSON")].

positional(Name, Shape, Help) -> #{name => Name, type => string, help => {Shape, [Help]}}.

checked(Do, Options) ->
    case maps:get(file, Options, os:getenv("SDERL_TOKENS", "")) of
        "" -> {usage, "which file? say --file, or set SDERL_TOKENS to it"};
        File -> do(Do, Options, File)
    end.

do(add, #{name := Name, role := Role, 'for' := Time} = Options, File) ->
    maybe
        {ok, Expires} ?= expires(Time),
        {ok, Text, Token} ?=
            sderl_web_token_file:add(File, unicode:characters_to_binary(Name), Role, Expires),
        printed(Options, #{token => Text, about => shown(Token)}, [Text, $\n])
    end;
do(list, Options, File) ->
    case sderl_web_token_file:read(File) of
        {ok, Tokens} ->
            All = [shown(Token) || Token <- Tokens],
            printed(Options, #{tokens => All}, table(All));
        {error, _} = Error -> Error
    end;
do(revoke, #{id := Id} = Options, File) ->
    case sderl_web_token_file:revoke(File, unicode:characters_to_binary(Id)) of
        {ok, Token} -> printed(Options, shown(Token), "");
        {error, not_found} ->
            {error,
             ["there is no token ", Id, " in ", File, ": \"bin/sderl tokens list\" has all"]};
        {error, _} = Error -> Error
    end.

shown(Token) -> sderl_web_token:show(Token, sderl_mon_clock:machine_ms()).

expires("never") -> {ok, none};
expires(Time) ->
    case sderl_cli_time:seconds(Time, ?MOST_S) of
        {ok, Seconds} -> {ok, sderl_mon_clock:machine_ms() + 1000 * Seconds};
        error ->
            {usage, ["--for cannot be ", Time, ": it is 90s, 30m, 2h, 7d or never, 3650d at most"]}
    end.

printed(#{json := true}, Term, _) -> {help, [json:encode(Term), $\n]};
printed(_, _, "") -> ok;
printed(_, _, Text) -> {help, Text}.

table([]) -> "no tokens\n";
table(All) ->
    [io_lib:format("~-8ts  ~-16ts  ~-8ts  ~-7ts  ~ts~n",
                   [Id, Name, Role, State, until(Expires)])
     || #{id := Id, name := Name, role := Role, state := State, expires := Expires} <- All].

until(null) -> "never ends";
until(T) -> ["until ", calendar:system_time_to_rfc3339(T div 1000, [{offset, "Z"}])].

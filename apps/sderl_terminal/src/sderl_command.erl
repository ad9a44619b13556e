%% SPDX-License-Identifier: Apache-2.0
-module(sderl_command).
-moduledoc """
A command of `bin/sderl`: what follows the program's name on the command line.

A command's module parses its own arguments, and `parse/3`
does that with OTP's `m:argparse`, so that help, errors and exit statuses are the same
everywhere:

```erlang
run(Args) ->
    case sderl_command:parse(Args, ["bench", "join"], arguments()) of
        {ok, Options} -> ...;
        Other -> Other
    end.
```
""".

-export([parse/3, run_one/4, option/4, flag/2, time/2, may_ask/1, confirm/2]).
-export_type([result/0, text/0]).

-doc "Text for a person.".
-type text() :: unicode:chardata().

-doc """
How a command ended, and the exit status of the program: `ok` and `help` 0, `error` 1
(it did not work; the message is printed to stderr), `usage` 2 (the arguments are wrong).
""".
-type result() :: ok | {help, text()} | {error, text()} | {usage, text()}.

-doc "One line for `bin/sderl help`.".
-callback summary() -> string().

-doc "Runs the command with the arguments that follow its name.".
-callback run(Args :: [string()]) -> result().

-doc "What may follow the command's name, for completion in a shell.".
-callback completion() -> sderl_completion:completed().
-optional_callbacks([completion/0]).

-doc """
Parses the arguments of the command called `Names` (`["bench", "registry"]` for
`bin/sderl bench registry`). `{help, Text}` when they ask for help.
""".
-spec parse(Args :: [string()], Names :: [string()], argparse:command()) ->
    {ok, #{atom() => term()}} | {help, text()} | {usage, text()}.
parse(Args, Names, Command) ->
    Name = lists:flatten(lists:join(" ", ["bin/sderl" | Names])),
    case lists:any(fun(Arg) -> Arg =:= "--help" orelse Arg =:= "-h" end, Args) of
        true ->
            {help, argparse:help(flowing(Command), #{progname => Name})};
        false ->
            case argparse:parse(hide_dashes(Args), Command, #{progname => Name}) of
                {ok, Options, _Path, _Command} -> {ok, show_dashes(Options)};
                {error, Reason} -> {usage, [complaint(Reason), try_help(Name)]}
            end
    end.

-doc """
Runs a subcommand of the command called `Name`, such as `list` of `bin/sderl alarms`: the first of
`Args`. `help` lists the subcommands, `arguments` gives what one takes, `do` runs it; `unknown` may
add to the error about an unknown one.
""".
-spec run_one(Args :: [string()], Name :: string(), [atom()], #{
    help := fun(() -> text()),
    arguments := fun((atom()) -> argparse:command()),
    do := fun((atom(), #{atom() => term()}) -> result()),
    unknown => fun((string()) -> text())
}) -> result().
run_one([], _, _, #{help := Help}) ->
    {usage, ["a command is missing\n\n", Help()]};
run_one([Word], _, _, #{help := Help}) when Word =:= "--help"; Word =:= "-h"; Word =:= "help" ->
    {help, Help()};
run_one([Word | Args], Name, Commands, #{help := Help, arguments := Arguments, do := Do} = Of) ->
    case [Command || Command <- Commands, atom_to_list(Command) =:= Word] of
        [Command] ->
            case parse(Args, [Name, Word], Arguments(Command)) of
                {ok, Options} -> Do(Command, Options);
                Other -> Other
            end;
        [] ->
            Unknown = maps:get(unknown, Of, fun(_) -> "" end),
            {usage, ["there is no command ", Word, Unknown(Word), "\n\n", Help()]}
    end.

-doc """
An option for `argparse` that may be left out: `--cookie-file FILE` for `cookie_file`. `Shape`
stands for its value in the help.
""".
-spec option(atom(), Shape :: string(), Type :: term(), Help :: string()) -> argparse:argument().
option(Name, Shape, Type, Help) ->
    #{name => Name, long => [$- | dashed(Name)], type => Type, required => false,
      help => {usage(Name, [" ", Shape]), [Help]}}.

-doc "An option without a value: `true` where it is given.".
-spec flag(atom(), Help :: string()) -> argparse:argument().
flag(Name, Help) ->
    #{name => Name, long => [$- | dashed(Name)], type => boolean, default => false,
      help => {usage(Name, ""), [Help]}}.

-doc """
The time that an option names, by an age (`15m`) or as in RFC 3339, in Unix milliseconds; `none`
where the option is not given.
""".
-spec time(atom(), #{atom() => term()}) -> {ok, integer() | none} | {wrong, text()}.
time(Key, Parsed) ->
    case Parsed of
        #{Key := Text} -> time_of(Key, Text);
        #{} -> {ok, none}
    end.

time_of(Key, Text) ->
    case string:to_integer(Text) of
        {N, [Unit]} when is_integer(N), N >= 0, N < 1_000_000,
                         (Unit =:= $s orelse Unit =:= $m orelse Unit =:= $h orelse Unit =:= $d) ->
            {ok, erlang:system_time(millisecond) - N * unit_ms(Unit)};
        _ ->
            try
                {ok, calendar:rfc3339_to_system_time(Text, [{unit, millisecond}])}
            catch
                error:_ ->
                    {wrong, ["--", atom_to_list(Key), " cannot be \"", Text, "\": it is an age as "
                             "90s, 15m, 2h or 3d, or a time as 2026-11-27T08:00:00Z"]}
            end
    end.

unit_ms($s) -> 1000;
unit_ms($m) -> 60_000;
unit_ms($h) -> 3_600_000;
unit_ms($d) -> 86_400_000.

-doc """
Whether a command that asks before it acts can do so here: with its options `--yes` and `--dry-run`
it need not.
""".
-spec may_ask(#{yes := boolean(), dry_run := boolean(), atom() => term()}) -> ok | {error, text()}.
may_ask(#{yes := false, dry_run := false}) ->
    case os:getenv("SDERL_TTY") of
        "1" -> ok;
        _ -> {error, "without a terminal nobody can be asked: say --yes, or --dry-run"}
    end;
may_ask(_) ->
    ok.

-doc """
Asks the person at the terminal. An error, which begins with `Otherwise`, unless the answer is
`yes`.
""".
-spec confirm(Question :: text(), Otherwise :: text()) -> ok | {error, text()}.
confirm(Question, Otherwise) ->
    io:put_chars(standard_error, [Question, " Type yes to go on: "]),
    case read_terminal() of
        {ok, "yes"} -> ok;
        {ok, _} -> {error, Otherwise};
        {error, _} -> {error, [Otherwise, ": the terminal cannot be read; say --yes"]}
    end.

%% Standard input is closed to the virtual machine (`-noinput`), so this opens the terminal.
read_terminal() ->
    maybe
        {ok, Terminal} ?= file:open("/dev/tty", [read, raw, binary]),
        Line = read_line(Terminal, []),
        ok = file:close(Terminal),
        {ok, string:trim(Line)}
    end.

%% A raw read waits for as many bytes as it is asked for, also beyond the end of the line.
read_line(Terminal, Read) ->
    case file:read(Terminal, 1) of
        {ok, <<C>>} when C =/= $\n -> read_line(Terminal, [C | Read]);
        _ -> lists:reverse(Read)
    end.

usage(Name, Shape) -> lists:flatten(["[--", dashed(Name), Shape, "]"]).

dashed(Name) -> lists:flatten(string:replace(atom_to_list(Name), "_", "-", all)).

%% argparse breaks long lines and keeps the breaks that are there, which gives a short line after
%% each long one. A paragraph becomes one line here; what is indented, such as a list, stays as it
%% is.
flowing(#{help := Help} = Command) when not is_tuple(Help) ->
    Lines = string:split(unicode:characters_to_list(Help), "\n", all),
    Command#{help := lists:flatten(lists:join("\n", joined(Lines)))};
flowing(Command) ->
    Command.

joined([[C | _] = Line, [D | _] = Next | Lines]) when C =/= $\s, D =/= $\s ->
    joined([Line ++ " " ++ Next | Lines]);
joined([Line | Lines]) -> [Line | joined(Lines)];
joined([]) -> [].

%% To argparse every "-" begins an option; here it alone is a value, stdin or stdout. No
%% argument of a program has a NUL in it.
hide_dashes(Args) -> [hide_dash(Arg) || Arg <- Args].

hide_dash("-") -> [0];
hide_dash(Arg) -> Arg.

show_dashes(Options) -> #{Key => show_dash(Value) || Key := Value <- Options}.

show_dash([0]) -> "-";
show_dash(Value) -> Value.

try_help(Name) ->
    ["\n\"", Name, " --help\" lists the options."].

%% argparse names an option by its atom or flags in its own style; say it as it is typed.
complaint({_Path, undefined, Unknown, _Details}) ->
    io_lib:format("there is no option or argument ~ts", [Unknown]);
complaint({_Path, Option, undefined, _Details})
  when is_map_key(long, Option); is_map_key(short, Option) ->
    io_lib:format("~ts needs a value", [flag(Option)]);
complaint({_Path, Option, undefined, _Details}) ->
    io_lib:format("~ts is missing", [flag(Option)]);
complaint({_Path, Option, Value, Details}) ->
    io_lib:format("~ts cannot be ~ts~ts", [flag(Option), shown(Value), wanted(Option, Details)]).

flag(#{long := Long}) -> [$- | Long];
flag(#{short := Short}) -> [$-, Short];
flag(#{name := Name}) -> atom_to_list(Name).

shown([]) -> "without a value";
shown(Value) when is_list(Value) ->
    case io_lib:printable_unicode_list(Value) of
        true -> Value;
        false -> lists:join(" ", [shown(V) || V <- Value])
    end;
shown(Value) -> io_lib:format("~tp", [Value]).

wanted(#{type := {integer, Limits}}, _) -> [": it is a whole number", limits(Limits)];
wanted(#{type := {float, Limits}}, _) -> [": it is a number", limits(Limits)];
wanted(#{type := integer}, _) -> ": it is a whole number";
wanted(#{type := {atom, [_ | _] = Choices}}, _) ->
    [": it is ", lists:join(" or ", [atom_to_list(C) || C <- Choices])];
wanted(_, <<>>) -> "";
wanted(_, Details) -> [": ", Details].

limits(Limits) ->
    case {proplists:get_value(min, Limits), proplists:get_value(max, Limits)} of
        {undefined, undefined} -> "";
        {Min, undefined} -> [" of at least ", show_limit(Min)];
        {undefined, Max} -> [" of at most ", show_limit(Max)];
        {Min, Max} -> [" from ", show_limit(Min), " to ", show_limit(Max)]
    end.

show_limit(Limit) -> io_lib:format("~w", [Limit]).

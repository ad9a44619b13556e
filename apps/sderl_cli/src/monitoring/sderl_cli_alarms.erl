%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_alarms).
-moduledoc """
`bin/sderl alarms`: the alarms of a running monitor, asked for over its HTTP interface, and the
check of a file of rules, for which nothing has to run.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).
-import(sderl_cli_http, [shown/3, json/1]).

%% 31 days.
-define(MOST_S, 2_678_400).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "alarms: list, acknowledge, comment, silence, check rules".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> {commands, [completed(Do) || Do <- commands()]}.

-doc "An error where the dashboard cannot be asked, or refuses.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    sderl_command:run_one(Args, "alarms", commands(), #{help => fun help/0,
                                                        arguments => fun command/1,
                                                        do => fun do/2}).

help() ->
    [
        "usage: bin/sderl alarms COMMAND [options]\n\n"
        "What is wrong in a cluster that \"bin/sderl mon\" or \"demo\" watches. docs/alarms.md is\n"
        "the guide. The dashboard is named by --url or $SDERL_DASHBOARD: the address that it\n"
        "printed. What changes anything needs a dashboard that was started with --write.\n\n",
        [io_lib:format("  ~-11ts ~ts~n", [Do, about(Do)]) || Do <- commands()],
        "\n\"bin/sderl alarms COMMAND --help\" lists a command's options.\n"
    ].

commands() ->
    [list, show, ack, reopen, comment, silence, silences, unsilence, rules, completion].

about(list) -> "the alarms that are raised, the worst first";
about(show) -> "one alarm: cause, remedy, comments";
about(ack) -> "say that somebody has seen it";
about(reopen) -> "take an acknowledgement back";
about(comment) -> "say something about an alarm";
about(silence) -> "tell nobody of some alarms for a while";
about(silences) -> "the silences that hold";
about(unsilence) -> "end a silence";
about(rules) -> "the rules in force, the metrics and routes; check FILE; reload";
about(completion) -> "completion for bash or zsh".

command(Do) ->
    [First | Rest] = about(Do),
    #{help => [string:to_upper(First) | Rest] ++ "." ++ more(Do),
      arguments => arguments(Do) ++ common(Do)}.

more(rules) ->
    "\n\"rules check FILE\" tells all that is wrong with a file of rules; nothing has to run for "
    "it. \"rules reload\" has the monitor read its file again.";
more(silence) ->
    "\nAt least one of --alarm, --node, --group, --family and --severity; all that are given must "
    "fit, and * in them is any text. --family is for alarms of families, such as "
    "family_time_zones; those of their nodes have none.\n\n"
    "  bin/sderl alarms silence --node 'web*' --for 2h --text \"new disks\"";
more(completion) ->
    "\neval \"$(bin/sderl alarms completion bash)\", or "
    "source <(bin/sderl alarms completion zsh).";
more(_) -> "".

arguments(list) ->
    [option(state, "STATE", {atom, [raised, acknowledged, cleared]},
            "raised, acknowledged or cleared (the first two)"),
     option(tag, "TAG", string, "those with a tag, such as dev or op"),
     flag(all, "those that are over too") | concerned()];
arguments(show) -> [id()];
arguments(ack) -> [id(), text(), by()];
arguments(reopen) -> [id(), by()];
arguments(comment) -> [id(), positional(text, "TEXT", "what is to be said"), by()];
arguments(silence) ->
    [(option('for', "TIME", string, "how long: 90s, 30m, 2h or 7d"))#{required => true}, text(),
     by() | concerned()];
arguments(silences) -> [];
arguments(unsilence) -> [positional(id, "ID", "which one, as silences tells it"), by()];
arguments(rules) ->
    [(positional(what, "check|reload", "check or reload"))#{nargs => 'maybe', default => "list"},
     (positional(file, "FILE", "the file that is checked"))
         #{nargs => 'maybe', required => false}];
arguments(completion) ->
    [#{name => shell, type => {atom, [bash, zsh]}, help => {"SHELL", ["bash or zsh"]}}].

common(completion) -> [];
common(_) -> [flag(json, "the answer as JSON") | sderl_cli_http:options()].

concerned() ->
    [option(alarm, "NAME", string, "those of this name"),
     option(node, "NODE", string, "those that concern this node"),
     option(group, "GROUP", string, "those that concern this group"),
     option(family, "FAMILY", string, "those of this family of nodes"),
     option(severity, "S", {atom, [minor, major]}, "minor or major")].

id() -> positional(id, "ID", "which alarm, as list tells it").
text() -> option(text, "TEXT", string, "why, for others").
by() -> option(by, "NAME", string, "who says it ($USER)").

positional(Name, Shape, Help) -> #{name => Name, type => string, help => {Shape, [Help]}}.

%% ---------------------------------------------------------------- doing it

do(completion, #{shell := Shell}) ->
    {commands, Commands} = completion(),
    {help, sderl_completion:script(Shell, "alarms", Commands)};
do(rules, #{what := "check"} = Options) ->
    check(Options);
do(Do, Options) ->
    maybe
        {ok, Place} ?= sderl_cli_http:place(Options),
        ask(Do, Options, Place)
    end.

completed(Do) ->
    {Name, Options, First} = sderl_completion:command(Do, command(Do)),
    {Name, Options, case Do of
        rules -> {words, ["check", "reload"]};
        _ -> First
    end}.

check(#{file := File, json := Json}) ->
    case {sderl_alarms_file:read(File), Json} of
        {{ok, #{rules := Rules, routes := Routes}}, false} ->
            Own = length(Rules) - length(sderl_alarms_rule:built_in()),
            {help, io_lib:format("~ts: ~b rules and ~b routes, nothing is wrong~n",
                                 [File, Own, length(Routes)])};
        {{ok, _}, true} -> json(#{ok => true, problems => []});
        {{error, Problems}, false} -> {error, lists:join("\n", Problems)};
        {{error, Problems}, true} ->
            {help, Text} = json(#{ok => false, problems => Problems}),
            io:put_chars(Text),
            {error, [File, " has errors"]}
    end;
check(_) ->
    {usage, "rules check needs the FILE that is checked"}.

ask(list, Options, Place) ->
    shown(sderl_cli_http:get(Place, ["/alarms?", query(Options)]), Options, fun(Answer) ->
        sderl_cli_alarms_show:list(Answer, Options)
    end);
ask(show, #{id := Id} = Options, Place) ->
    shown(sderl_cli_http:get(Place, ["/alarms/", quoted(Id)]), Options,
          fun sderl_cli_alarms_show:one/1);
ask(ack, Options, Place) -> said("acknowledge", [text], Options, Place);
ask(reopen, Options, Place) -> said("reopen", [], Options, Place);
ask(comment, Options, Place) -> said("comments", [text], Options, Place);
ask(silences, Options, Place) ->
    shown(sderl_cli_http:get(Place, "/silences"), Options,
          fun sderl_cli_alarms_show:silences/1);
ask(silence, #{'for' := Time} = Options, Place) ->
    case sderl_cli_time:seconds(Time, ?MOST_S) of
        {ok, Seconds} ->
            Object = (texts([alarm, node, group, family, severity, text], Options))
                #{for_s => Seconds},
            shown(sderl_cli_http:post(Place, "/silences", with_name(Object, Options)), Options,
                  fun(#{~"id" := Id}) -> [Id, $\n] end);
        error -> {usage, ["--for cannot be ", Time, ": it is 90s, 30m, 2h or 7d, 31d at most"]}
    end;
ask(unsilence, #{id := Id} = Options, Place) ->
    #{by := By} = with_name(#{}, Options),
    done(sderl_cli_http:delete(Place, ["/silences/", quoted(Id), $?,
                                       uri_string:compose_query([{~"by", By}])]), Options);
ask(rules, #{what := "reload"} = Options, Place) ->
    done(sderl_cli_http:post(Place, "/rules/reload", #{}), Options);
ask(rules, #{what := "list"} = Options, Place) ->
    shown(sderl_cli_http:get(Place, "/rules"), Options, fun sderl_cli_alarms_show:rules/1);
ask(rules, #{what := What}, _) ->
    {usage, ["rules cannot be ", What, ": it is check FILE, reload, or nothing"]}.

said(Do, Keys, #{id := Id} = Options, Place) ->
    Object = with_name(texts(Keys, Options), Options),
    done(sderl_cli_http:post(Place, ["/alarms/", quoted(Id), $/, Do], Object), Options).

texts(Keys, Options) ->
    #{Key => as_text(Value) || Key := Value <- maps:with(Keys, Options)}.

as_text(Value) when is_atom(Value) -> atom_to_binary(Value);
as_text(Value) -> unicode:characters_to_binary(Value).

with_name(Object, #{by := Name}) -> Object#{by => as_text(Name)};
with_name(Object, _) -> Object#{by => as_text(os:getenv("USER", "somebody"))}.

query(Options) ->
    Fields = [{atom_to_list(Key), unicode:characters_to_list(as_text(Value))}
              || Key := Value <- maps:with([state, severity, tag, alarm, node, group, family],
                                             Options)],
    uri_string:compose_query([{"limit", "500"} | Fields]).

quoted(Id) -> uri_string:quote(unicode:characters_to_binary(Id)).

done({ok, _}, #{json := true}) -> json(#{ok => true});
done({ok, _}, _) -> ok;
done({error, _} = Error, _) -> Error.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_actions).
-moduledoc """
`bin/sderl actions`: looks at nodes of a watched cluster and acts on them, through a running monitor
over its HTTP interface.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).
-import(sderl_cli_http, [shown/3, json/1]).

-define(EVERY_MS, 300).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "look at nodes and act on them: processes, tables, traces, configuration".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() ->
    {commands, [sderl_completion:command(Do, command(Do)) || Do <- commands()]}.

-doc "An error where the dashboard cannot be asked, or refuses, or a node does.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    sderl_command:run_one(Args, "actions", commands(), #{
        help => fun help/0,
        arguments => fun command/1,
        do => fun(Do, Options) ->
            maybe
                {ok, Place} ?= sderl_cli_http:place(Options),
                do(Do, Options, Place)
            end
        end
    }).

help() ->
    [
        "usage: bin/sderl actions COMMAND [options]\n\n"
        "Looks at the nodes of a cluster that \"bin/sderl mon\" or \"demo\" watches, and acts on\n"
        "them. docs/actions.md is the guide. The dashboard is named by --url or $SDERL_DASHBOARD:\n"
        "the address that it printed. What changes anything needs one that was started with "
        "--write.\n\n",
        [io_lib:format("  ~-9ts ~ts~n", [Do, about(Do)]) || Do <- commands()],
        "\n  bin/sderl actions explore processes --node a@host sort=memory limit=5\n"
        "  bin/sderl actions run garbage_collect --family web\n"
        "  bin/sderl actions run set_environment --group shop application=shop parameter=limit "
        "value=7\n"
        "\n\"bin/sderl actions COMMAND --help\" lists a command's options.\n"
    ].

commands() -> [list, run, explore, requests, show, stop].

about(list) -> "what may be done, with what it takes and does";
about(run) -> "do it on a node, a group or a family, and wait for its end";
about(explore) -> "the same, with actions that only look";
about(requests) -> "what runs, and what ended lately";
about(show) -> "one request, with what its nodes said";
about(stop) -> "end a request, also on the nodes".

command(Do) ->
    [First | Rest] = about(Do),
    #{help => [string:to_upper(First) | Rest] ++ ".",
      arguments => arguments(Do) ++ [flag(json, "the answer as JSON") | sderl_cli_http:options()]}.

arguments(Do) when Do =:= run; Do =:= explore ->
    [positional(action, "ACTION", "its name, as list tells it"),
     #{name => args, type => string, nargs => list, required => false,
       help => {"KEY=VALUE ...", ["what the action takes"]}},
     option(node, "NODE@HOST", string, "on this node"),
     option(group, "GROUP", string, "on all nodes of this group"),
     option(family, "NAME", string, "on all nodes of a name: web1@h and web2@h are of web")];
arguments(Do) when Do =:= show; Do =:= stop ->
    [positional(id, "ID", "which request, as requests tells it")];
arguments(_) -> [].

positional(Name, Shape, Help) -> #{name => Name, type => string, help => {Shape, [Help]}}.

%% ---------------------------------------------------------------- doing it

do(list, Options, Place) ->
    shown(sderl_cli_http:get(Place, "/actions"), Options, fun sderl_cli_actions_show:list/1);
do(requests, Options, Place) ->
    shown(sderl_cli_http:get(Place, "/requests"), Options,
          fun sderl_cli_actions_show:requests/1);
do(show, #{id := Id} = Options, Place) ->
    shown(request(Place, Id), Options, fun sderl_cli_actions_show:request/1);
do(stop, #{id := Id} = Options, Place) ->
    shown(sderl_cli_http:post(Place, ["/requests/", uri_string:quote(Id), "/stop"], #{}),
          Options, fun(_) -> "" end);
do(Do, #{action := Name} = Options, Place) ->
    maybe
        {ok, On} ?= on(Options),
        {ok, Action} ?= action(Do, Name, Place),
        {ok, Args} ?= args(maps:get(args, Options, []), Action, #{}),
        {ok, #{~"id" := Id}} ?=
            sderl_cli_http:post(Place, "/actions",
                                #{action => as_text(Name), on => On, args => Args}),
        {ok, Request} ?= ended(Place, Id, #{}, Options),
        outcome(Request, Options)
    end.

on(Options) ->
    case maps:to_list(maps:with([node, group, family], Options)) of
        [{Key, Value}] -> {ok, #{Key => as_text(Value)}};
        _ -> {usage, "where? say one of --node, --group and --family"}
    end.

as_text(Chars) -> unicode:characters_to_binary(Chars).

action(Do, Name, Place) ->
    maybe
        {ok, #{~"actions" := All}} ?= sderl_cli_http:get(Place, "/actions"),
        case [Action || #{~"name" := Its} = Action <- All, Its =:= as_text(Name)] of
            [#{~"kind" := Kind}] when Do =:= explore, Kind =/= ~"look" ->
                {usage, [Name, " does not only look: it is \"actions run ", Name, "\""]};
            [Action] -> {ok, Action};
            [] ->
                {usage, ["there is no action ", Name, "; there are ",
                         lists:join(", ", [Its || #{~"name" := Its, ~"kind" := Kind} <- All,
                                                  Do =:= run orelse Kind =:= ~"look"])]}
        end
    end.

args([], _, Args) -> {ok, Args};
args([Text | Rest], #{~"params" := Params} = Action, Args) ->
    case string:split(Text, "=") of
        [Key, Value] ->
            Types = [Type || #{~"name" := Name, ~"type" := Type} <- Params, Name =:= as_text(Key)],
            case value(Types, Value) of
                {ok, Checked} -> args(Rest, Action, Args#{as_text(Key) => Checked});
                {error, Why} -> {usage, [Key, " ", Why]}
            end;
        [_] -> {usage, ["\"", Text, "\" is no KEY=VALUE"]}
    end.

value([~"whole"], Text) ->
    case string:to_integer(Text) of
        {N, ""} -> {ok, N};
        _ -> {error, ["cannot be \"", Text, "\": it is a whole number"]}
    end;
value([~"flag"], "true") -> {ok, true};
value([~"flag"], "false") -> {ok, false};
value([~"flag"], Text) -> {error, ["cannot be \"", Text, "\": it is true or false"]};
%% The monitoring node refuses unknown values, and lists the known ones.
value(_, Text) -> {ok, as_text(Text)}.

request(Place, Id) -> sderl_cli_http:get(Place, ["/requests/", uri_string:quote(Id)]).

%% Answers of nodes are printed as they come.
ended(Place, Id, Told, Options) ->
    maybe
        {ok, #{~"nodes" := Nodes, ~"state" := State} = Request} ?= request(Place, Id),
        ok = tell(Told, Nodes, Options),
        case State of
            ~"running" ->
                receive after ?EVERY_MS -> ok end,
                ended(Place, Id, #{Node => length(Said) || Node := #{~"said" := Said} <- Nodes},
                      Options);
            _ -> {ok, Request}
        end
    end.

tell(_, _, #{json := true}) -> ok;
tell(Told, Nodes, _) ->
    [io:put_chars(sderl_visible:text(sderl_cli_actions_show:said(Node, One)))
     || Node := #{~"said" := Said} <- maps:iterator(Nodes, ordered),
        One <- lists:nthtail(maps:get(Node, Told, 0), Said)],
    ok.

outcome(Request, #{json := true}) ->
    {help, Text} = json(Request),
    failed(Request, Text);
outcome(Request, _) -> failed(Request, sderl_cli_actions_show:results(Request)).

%% The status tells whether all nodes have done it.
failed(#{~"nodes" := Nodes}, Text) ->
    case [Node || Node := #{~"state" := State} <- Nodes, State =/= ~"ok"] of
        [] -> {help, Text};
        Bad ->
            io:put_chars(sderl_visible:text(Text)),
            {error, io_lib:format("~b of ~b nodes did not do it", [length(Bad), map_size(Nodes)])}
    end.

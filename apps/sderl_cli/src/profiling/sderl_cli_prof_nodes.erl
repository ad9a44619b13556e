%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_nodes).
-moduledoc """
Commands of `bin/sderl prof` that look at running nodes for some seconds, at all of them at once,
and print what each says: `m:sderl_cli_prof_sample` and `m:sderl_cli_prof_vm`.
""".

-export([look/3, print/3]).
-export_type([looking/0]).

-define(PREFIX, "sderl-prof").
%% A node has to be ready within this time.
-define(READY_MS, 60_000).

-doc "How nodes are looked at; `label` and `seconds` are those of the progress bar.".
-type looking() :: #{
    begin_ := fun(([node()]) -> [{ok, term()} | {error, term()}]),
    await := fun((term()) -> {ok, map()} | {error, term()}),
    stop := fun((term()) -> ok),
    format_error := fun((term()) -> unicode:chardata()),
    label := string(), seconds := number()
}.

-doc """
The reports of the nodes that the arguments name, at least one, and why the others have none. Ctrl-C
ends the looking at all of them in order.
""".
-spec look([node(), ...], #{atom() => term()}, looking()) ->
    {ok, [map()], Failures :: [unicode:chardata()]} | {error, sderl_command:text()}.
look([First | _] = Named, Parsed, #{format_error := Format} = Looking) ->
    maybe
        {ok, Cookie} ?= sderl_cli_attach:cookie(sderl_cli_attach:cookie_file(Parsed)),
        {ok, Nodes} ?= nodes(First, Named, Cookie, Parsed),
        {Ready, Refused} = ready(Nodes, Format),
        {Reports, Failed} = looked(Ready, Looking),
        case {Reports, Refused ++ Failed} of
            {[], Failures} -> {error, lists:join($\n, Failures)};
            {_, Failures} -> {ok, Reports, Failures}
        end
    end.

nodes(First, Named, Cookie, Parsed) ->
    case sderl_cli_prof_cluster:is_several(Parsed) of
        true ->
            maybe
                ok ?= sderl_cli_attach:become(First, Cookie, ?PREFIX),
                sderl_cli_prof_cluster:wanted(Named, Cookie, Parsed)
            end;
        false ->
            maybe
                ok ?= sderl_cli_attach:attach(First, Cookie, ?PREFIX),
                {ok, [First]}
            end
    end.

%% All at once, so that one that does not answer does not hold up the others.
ready(Nodes, Format) ->
    Tasks = [{Node, sderl_fleet_task:start(fun() -> sderl_prof_reach:load(Node, ?READY_MS) end)}
             || Node <- Nodes],
    Answers = [case sderl_fleet_task:result(Task, infinity) of
        {ok, Loaded} -> {Node, Loaded};
        {error, {failed, Why}} -> {Node, {error, {node, Node, Why}}}
    end || {Node, Task} <- Tasks],
    {[Node || {Node, ok} <- Answers], [Format(Why) || {_, {error, Why}} <- Answers]}.

looked(Nodes, #{begin_ := Begin, await := Await, stop := Stop, format_error := Format,
                label := Label, seconds := Seconds}) ->
    Begun = Begin(Nodes),
    Running = [One || {ok, One} <- Begun],
    Results = sderl_cli_prof_cluster:until_stopped(
        Label, Seconds, fun() -> lists:foreach(Stop, Running) end,
        fun() -> [Await(One) || One <- Running] end),
    {[Report || {ok, Report} <- Results],
     [Format(Why) || {error, Why} <- Begun ++ Results]}.

-doc "Prints the reports; where nodes failed, an error with these nodes follows.".
-spec print({help, sderl_command:text()}, [map()], Failures :: [unicode:chardata()]) ->
    sderl_command:result().
print(Shown, _, []) -> Shown;
print({help, Text}, Reports, Failures) ->
    ok = io:put_chars(Text),
    Failed = length(Failures),
    {error, [[[Why, $\n] || Why <- Failures],
             io_lib:format("~b of ~b nodes failed", [Failed, Failed + length(Reports)])]}.

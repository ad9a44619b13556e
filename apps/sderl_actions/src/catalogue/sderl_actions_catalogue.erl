%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_catalogue).
-moduledoc """
The actions, as data: the parameters of an action, the role that it needs, its effect on a node, and
the function that runs there. Pure.
""".

-export([all/0, find/1, allows/2, shown/1]).
-export_type([action/0, role/0, param/0]).

-type role() :: viewer | operator | admin.

-doc """
`kind`: `look` changes nothing; `act` and `config` do; `expression` may do anything, and exists only
if expressions are allowed. `effect` is the effect on the node. `ms` and `mb` are its bounds there.
""".
-type action() :: #{
    name := binary(),
    kind := look | act | config | expression,
    role := role(),
    about := binary(),
    effect := binary(),
    params := [param()],
    run := {module(), atom()},
    ms := pos_integer(),
    mb := pos_integer()
}.

-doc "`default` is `required`, `none` (it may be left out), or its default.".
-type param() :: #{
    name := atom(),
    type := sderl_actions_params:type(),
    default := required | none | term(),
    about := binary()
}.

-define(NONE, ~"Reads only.").
-define(LEVELS, [emergency, alert, critical, error, warning, notice, info, debug]).

-doc "All actions.".
-spec all() -> [action()].
all() -> looks() ++ acts() ++ configs() ++ [expression()].

looks() ->
    [
        look(~"processes", viewer, ~"processes that have the most of something",
             ~"Asks each process for one number; with a filter, for its names too.",
             {sderl_actions_processes, list},
             [sort([memory, reductions, message_queue_len]), filter() | page()]),
        look(~"process", viewer, ~"one process: stack, links, memory", ?NONE,
             {sderl_actions_processes, process}, [pid()]),
        look(~"process_state", operator, ~"the state of a process",
             ~"The process answers a message, and copies its state for that.",
             {sderl_actions_processes, state},
             [pid(), param(timeout_ms, {whole, 1, 5000}, 1000, ~"so long it may take to answer"),
              param(max_mb, {whole, 1, 1000}, 16,
                    ~"a process with more memory than this is not asked")]),
        look(~"tables", viewer, ~"tables of ETS, the greatest first", ?NONE,
             {sderl_actions_look, tables}, [sort([memory, size]), filter() | page()]),
        look(~"table_rows", operator, ~"the first rows of a table",
             ~"Copies so many rows out of the table.", {sderl_actions_look, rows},
             [param(table, {text, 255}, required, ~"the table, as tables names it"),
              param(limit, {whole, 1, 100}, 20, ~"so many rows")]),
        look(~"applications", viewer, ~"applications with their versions", ?NONE,
             {sderl_actions_look, applications}, []),
        look(~"environment", operator, ~"the environment of an application",
             ~"Reads only; values whose keys name a secret are hidden.",
             {sderl_actions_look, environment}, [application()]),
        look(~"ports", viewer, ~"ports and sockets with their addresses", ?NONE,
             {sderl_actions_look, ports}, [sort([queue_size, memory, input, output]) | page()]),
        look(~"old_code", viewer, ~"modules that have old code", ?NONE,
             {sderl_actions_runtime, old_code}, []),
        look(~"plugins", viewer, ~"plugins with their states and numbers", ?NONE,
             {sderl_actions_plugin, list}, [])
    ].

acts() ->
    [
        act(~"garbage_collect", operator, ~"collect the garbage of a process, or of all",
            ~"Each process stops for its collection; of large heaps that takes long.",
            {sderl_actions_processes, collect},
            [param(pid, {text, 255}, none, ~"the process; all when left out")], 30_000),
        act(~"stop_process", admin, ~"end a process",
            ~"The process ends as its links and supervisor say.",
            {sderl_actions_processes, stop},
            [pid(), param(how, {word, [shutdown, kill]}, shutdown, ~"kill cannot be refused")],
            10_000),
        act(~"soft_purge", operator, ~"remove old code that no process runs",
            ~"No process is ended; code that is in use stays.", {sderl_actions_runtime, purge},
            [param(module, {text, 255}, none, ~"the module; all when left out")], 30_000),
        act(~"close_link", operator, ~"close the link to another node",
            ~"Both see the other go down; nodes that share a group are linked again.",
            {sderl_actions_runtime, close_link},
            [param(to, {text, 255}, required, ~"the other node")], 10_000),
        act(~"log_level", operator, ~"set the level of the log, of all or of a module",
            ~"It holds until it is set again or the node ends; debug may log very much.",
            {sderl_actions_runtime, log_level},
            [param(level, {word, ?LEVELS}, required, ~"from this level on it is logged"),
             param(module, {text, 255}, none, ~"of this module alone")], 5_000),
        act(~"trace_calls", operator, ~"show calls of a function as they happen",
            ~"Each call sends a message; it ends after so many, or when they come too fast.",
            {sderl_actions_trace, calls},
            [param(module, {text, 255}, required, ~"the module"),
             param(function, {text, 255}, required, ~"the function"),
             param(arity, {whole, 0, 255}, none, ~"of any arity when left out"),
             param(pid, {text, 255}, none, ~"in this process alone"),
             param(arguments, flag, false, ~"show the arguments, which are copied"),
             param(results, flag, false, ~"show what it gives"),
             param(count, {whole, 1, 200}, 20, ~"so many calls"),
             param(for_s, {whole, 1, 60}, 10, ~"so many seconds")], 65_000),
        act(~"plugin_on", operator, ~"let a plugin run again",
            ~"It is started within a second where its application runs.",
            {sderl_actions_plugin, switch_on}, [plugin()], 10_000),
        act(~"plugin_off", operator, ~"end a plugin",
            ~"Its numbers are no longer there, until it is switched on or the node ends.",
            {sderl_actions_plugin, switch_off}, [plugin()], 10_000)
    ].

configs() ->
    [
        config(~"set_environment", ~"set a parameter of an application",
               ~"What is read only at the start of the application does not change.", set,
               [application(), param(parameter, {text, 255}, required, ~"which parameter"),
                param(value, {text, 4096}, none, ~"an Erlang term"),
                param(remove, flag, false, ~"remove it instead"),
                param(create, flag, false, ~"also where the application has no such parameter")]),
        config(~"undo_environment", ~"put back what was there before a change",
               ~"A value that was changed meanwhile stays, but for force.", undo,
               [param(change, {text, 64}, required, ~"the request that made the change"),
                param(force, flag, false, ~"also where it was changed meanwhile")])
    ].

expression() ->
    #{name => ~"expression", kind => expression, role => admin,
      about => ~"evaluate an Erlang expression",
      effect => ~"It may do anything that code on the node may do.",
      params => [param(text, {text, 4096}, required, ~"the expression")],
      run => {sderl_actions_eval, expression}, ms => 60_000, mb => 256}.

look(Name, Role, About, Effect, Run, Params) ->
    #{name => Name, kind => look, role => Role, about => About, effect => Effect, params => Params,
      run => Run, ms => 15_000, mb => 128}.

act(Name, Role, About, Effect, Run, Params, Ms) ->
    #{name => Name, kind => act, role => Role, about => About, effect => Effect, params => Params,
      run => Run, ms => Ms, mb => 64}.

config(Name, About, Effect, Function, Params) ->
    #{name => Name, kind => config, role => admin, about => About, effect => Effect,
      params => Params, run => {sderl_actions_env, Function}, ms => 10_000, mb => 64}.

param(Name, Type, Default, About) ->
    #{name => Name, type => Type, default => Default, about => About}.

pid() -> param(pid, {text, 255}, required, ~"the process: <0.42.0>, or its registered name").
plugin() -> param(plugin, {text, 255}, required, ~"the plugin, as plugins names it").
application() -> param(application, {text, 255}, required, ~"the application").
sort([First | _] = Words) -> param(sort, {word, Words}, First, ~"by this, the most first").
filter() -> param(filter, {text, 100}, ~"", ~"a part of the name, in capitals or not").

page() ->
    [param(limit, {whole, 1, 200}, 20, ~"so many"),
     param(offset, {whole, 0, 10_000}, 0, ~"leave out so many")].

-doc "The action of a name.".
-spec find(binary()) -> {ok, action()} | error.
find(Name) ->
    case [Action || #{name := Its} = Action <- all(), Its =:= Name] of
        [Action] -> {ok, Action};
        [] -> error
    end.

-doc "Whether a role includes another.".
-spec allows(Has :: role(), Needs :: role()) -> boolean().
allows(Has, Needs) -> rank(Has) >= rank(Needs).

rank(viewer) -> 1;
rank(operator) -> 2;
rank(admin) -> 3.

-doc "An action as programs see it.".
-spec shown(action()) -> map().
shown(#{params := Params} = Action) ->
    (maps:with([name, kind, role, about, effect], Action))
        #{params => [shown_param(Param) || Param <- Params]}.

shown_param(#{name := Name, type := Type, default := Default, about := About}) ->
    maps:merge(#{name => Name, about => About, required => Default =:= required,
                 default => case lists:member(Default, [required, none]) of
                     true -> null;
                     false -> Default
                 end}, sderl_actions_params:shown(Type)).

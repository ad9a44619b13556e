%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_life).
-moduledoc """
The common part of all processes of a distributed ant colony except the starter: a role, a name, and
a process that restarts them, their *boss*.

A process whose boss dies goes on with its work, and waits for `{adopt, Boss, Parent}` from the new
one. When none comes for a while it ends. Without recovery (`tl`, `ml`) it ends at once.
""".

-export([new/1, handle/2, serve/3, serves/1, tell/2]).
-export_type([life/0, conf/0, start/0, mode/0]).

-doc """
What all processes of a run know. `recovery` tells whether dead processes are replaced; `repl` is
how many times a colony sends each answer.
""".
-type conf() :: #{
    run := term(),
    recovery := boolean(),
    naming := none | global | s_group,
    instance := sderl_aco_instance:instance(),
    options := sderl_aco_options:options(),
    heuristic := sderl_aco_options:heuristic() | mixed,
    colony_nodes := pos_integer(),
    seed := term(),
    local_iterations := pos_integer(),
    global_iterations := pos_integer(),
    repl := pos_integer()
}.
-doc """
`first`: in the set-up; a process serves when it and all below it are ready. `again`: it replaces a
dead one, and serves at once.
""".
-type mode() :: first | again.
-doc """
What a process is started with. `group` and `scope` are those of its name; `parent` gets its
answers, and may be another process than its boss.
""".
-type start() :: #{
    conf := conf(),
    key := sderl_aco_tree:key(),
    group := term(),
    scope := sderl_aco_names:scope(),
    boss := pid(),
    parent := pid(),
    mode := mode(),
    atom() => term()
}.

-record(life, {
    conf :: conf(),
    key :: sderl_aco_tree:key(),
    scope :: sderl_aco_names:scope(),
    boss :: pid(),
    monitor :: reference(),
    parent :: pid(),
    registrar :: named | reference(),
    serving = false :: boolean()
}).
-opaque life() :: #life{}.

%% How long after the death of its boss a process waits for the next one.
-define(ORPHAN_MS, 30_000).

-doc "Called first by the process itself, which exits here if its role is taken.".
-spec new(start()) -> life().
new(#{conf := #{run := Run} = Conf, key := Key, scope := Scope, boss := Boss, parent := Parent}) ->
    proc_lib:set_label({aco, Run, Key}),
    case sderl_aco_roles:claim(Run, Key, self()) of
        true -> ok;
        Other -> exit({shutdown, {already, Other}})
    end,
    register(#life{
        conf = Conf, key = Key, scope = Scope, boss = Boss, monitor = monitor(process, Boss),
        parent = Parent, registrar = named
    }).

register(#life{scope = none} = Life) ->
    Life;
register(#life{scope = Scope, key = Key, conf = #{run := Run}} = Life) ->
    {_, Ref} = sderl_aco_names:start(Scope, {aco, Run, Key}, self()),
    Life#life{registrar = Ref}.

-doc """
Begins to serve, and tells boss and parent so, once: at once if it replaces a dead process
(`again`), else as soon as it has its name, if it is to have one, and all below are `Ready`.
""".
-spec serve(mode(), Ready :: boolean(), life()) -> life().
serve(_, _, #life{serving = true} = Life) -> Life;
serve(again, _, Life) -> serving(Life);
serve(first, true, #life{registrar = named} = Life) -> serving(Life);
serve(first, _, Life) -> Life.

serving(#life{boss = Boss, parent = Parent, key = Key} = Life) ->
    Boss ! {up, Key, self()},
    _ = Parent =/= Boss andalso (Parent ! {serving, Key, self()}),
    Life#life{serving = true}.

-doc "Whether it serves.".
-spec serves(life()) -> boolean().
serves(#life{serving = Serving}) -> Serving.

-doc "Sends a message to the parent.".
-spec tell(term(), life()) -> ok.
tell(Message, #life{parent = Parent}) ->
    Parent ! Message,
    ok.

-doc """
Handles a message, if it is about boss, parent or name; `adopted`: it has another boss and parent,
which have been told that it serves. May end the process.
""".
-spec handle(Message :: term(), life()) -> {{adopted, Parent :: pid()} | none, life()} | unknown.
handle({'DOWN', Ref, process, _, Why}, #life{registrar = Ref} = Life) ->
    case Why of
        {shutdown, named} -> {none, Life#life{registrar = named}};
        _ -> {none, register(Life)}
    end;
handle({'DOWN', Ref, process, _, _}, #life{monitor = Ref, conf = #{recovery := false}}) ->
    exit(shutdown);
handle({'DOWN', Ref, process, _, _}, #life{monitor = Ref} = Life) ->
    _ = erlang:send_after(?ORPHAN_MS, self(), {orphan, Ref}),
    {none, Life};
handle({orphan, Ref}, #life{monitor = Ref}) ->
    exit({shutdown, orphan});
handle({orphan, _}, Life) ->
    {none, Life};
handle({adopt, Boss, Parent}, #life{monitor = Old} = Life) ->
    true = demonitor(Old, [flush]),
    {{adopted, Parent},
     serving(Life#life{boss = Boss, monitor = monitor(process, Boss), parent = Parent})};
handle(_, _) ->
    unknown.

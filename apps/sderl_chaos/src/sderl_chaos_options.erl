%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_options).
-moduledoc "The options of `sderl_chaos:start/1`, checked and completed. Pure.".

-export([check/1, text/1]).
-export_type([settings/0, target/0]).

-doc "A complete target. `spec` is for the agents; for a whole node it says how it is killed.".
-type target() :: #{
    kind := process | name | node | link,
    class := term(),
    weight := number(),
    await := boolean(),
    nodes := [node()],
    spec := sderl_chaos_agent:spec() | sderl_chaos_node:spec()
}.

-type settings() :: #{
    targets := #{pos_integer() => target()},
    plan := sderl_chaos_plan:settings(),
    %% The nodes that some target is on: each gets an agent.
    install := [node()],
    dry := boolean(),
    never := [term()],
    library := boolean(),
    tops := boolean(),
    call := sderl_chaos_reach:call(),
    by_erpc := boolean(),
    owner := pid(),
    report := pid() | undefined,
    lease_ms := pos_integer()
}.

-define(KEYS, [targets, nodes, every_ms, per_s, scope, window, seed, dry_run, limits, call,
               allow_halt, owner, report, lease_ms]).
-define(LIMITS, [at_once, kills, never, never_nodes, library]).
-define(LEASE_MS, 10_000).
-define(CALL_MS, 5000).

-doc "Errors are those of `sderl_chaos:start/1`.".
-spec check(term()) ->
    {ok, settings()} | {error, {bad_option, Path :: [term()], term(), Expected :: string()}
                               | {halt_not_allowed, [term()]}}.
check(Options) when is_map(Options) ->
    try
        {ok, settings(Options)}
    catch
        throw:{?MODULE, Reason} -> {error, Reason}
    end;
check(Options) ->
    {error, {bad_option, [], Options, "a map of options"}}.

settings(Options) ->
    known([], ?KEYS, Options),
    Nodes = required(nodes, Options, fun is_nodes/1,
                     "a list of nodes, at least one, none of them twice"),
    Limits = optional(limits, Options, #{}, fun is_map/1, "a map"),
    known([limits], ?LIMITS, Limits),
    Scope = optional(scope, Options, cluster, one_of([cluster, node]), "cluster or node"),
    NeverNodes = limit(never_nodes, Limits, [], fun is_atoms/1, "a list of nodes"),
    _ = [bad([limits, never_nodes], Node, "one of the option nodes: another name protects nothing")
         || Node <- NeverNodes, not lists:member(Node, Nodes)],
    Halt = optional(allow_halt, Options, false, fun is_boolean/1, "true or false"),
    ByErpc = not is_map_key(call, Options),
    Targets = targets(required(targets, Options, fun is_full_list/1,
                               "a list of targets, at least one"), Nodes, NeverNodes, Halt),
    Default =
        case Scope of
            cluster -> 1;
            node -> length(Nodes)
        end,
    #{
        targets => Targets,
        install => [Node
                    || Node <- Nodes, lists:any(fun(#{nodes := On}) -> lists:member(Node, On) end,
                                                maps:values(Targets))],
        plan => #{
            targets => [{I, W, Ns}
                        || I := #{weight := W, nodes := Ns} <- maps:iterator(Targets, ordered),
                           W > 0],
            nodes => Nodes,
            scope => Scope,
            period_ms => period(Options, Scope, length(Nodes)),
            window => optional(window, Options, {0, infinity}, fun is_window/1,
                               "{FromMs, ToMs}, ToMs not less than FromMs, or infinity"),
            seed => maps:get(seed, Options, 1),
            at_once => limit(at_once, Limits, Default, fun is_most/1,
                             "a whole number from 1 on, or infinity"),
            kills => limit(kills, Limits, infinity, fun is_most/1,
                           "a whole number from 1 on, or infinity")
        },
        dry => optional(dry_run, Options, false, fun is_boolean/1, "true or false"),
        never => limit(never, Limits, [], fun is_proper/1, "a list of names"),
        library => limit(library, Limits, false, fun is_boolean/1, "true or false"),
        tops => Halt,
        call => optional(call, Options, fun by_erpc/4, fun(F) -> is_function(F, 4) end,
                         "a fun of four arguments (node, module, function, arguments)"),
        by_erpc => ByErpc,
        owner => optional(owner, Options, self(), fun is_pid/1, "a process"),
        report => optional(report, Options, undefined, fun is_pid/1, "a process"),
        lease_ms => optional(lease_ms, Options, ?LEASE_MS,
                             fun(N) -> is_integer(N) andalso N >= 1000 end,
                             "a whole number from 1000 on")
    }.

by_erpc(Node, M, F, A) -> erpc:call(Node, M, F, A, ?CALL_MS).

period(#{every_ms := _, per_s := PerS}, _, _) ->
    bad([per_s], PerS, "left out where every_ms is given: each says the rate");
period(#{per_s := PerS}, Scope, Count) ->
    case is_number(PerS) andalso PerS > 0 andalso PerS =< 1000 of
        true when Scope =:= node -> 1000 * Count / PerS;
        true -> 1000 / PerS;
        false -> bad([per_s], PerS, "a number over 0, at most 1000")
    end;
period(Options, _, _) ->
    required(every_ms, Options, fun is_count/1,
             "a whole number of milliseconds from 1 on (or per_s, a rate)").

%% Targets

targets(List, Nodes, NeverNodes, Halt) ->
    Targets = [target([targets, I], T, Nodes -- NeverNodes, Nodes)
               || {I, T} <- lists:enumerate(List)],
    _ = lists:any(fun(#{weight := W}) -> W > 0 end, Targets)
        orelse bad([targets], List, "at least one target with a weight over 0"),
    case [C || #{kind := node, spec := {halt, _}, class := C} <- Targets, not Halt] of
        [] -> maps:from_list(lists:enumerate(Targets));
        Classes -> throw({?MODULE, {halt_not_allowed, Classes}})
    end.

target(Path, #{kind := Kind} = Target, Usable, All) ->
    {Keys, Spec0, Class} = kind(Kind, Path, Target),
    known(Path, [kind, weight, class, await, nodes | Keys], Target),
    Asked = at(Path, nodes, Target, All, fun is_nodes/1,
               "a list of nodes, at least one, none of them twice"),
    _ = [bad(Path ++ [nodes], Node, "one of the option nodes")
         || Node <- Asked, not lists:member(Node, All)],
    %% The service's node is not killed, nor are its links.
    Stays = Kind =:= node orelse Kind =:= link,
    Nodes = [Node || Node <- Asked, lists:member(Node, Usable), not Stays orelse Node =/= node()],
    Spec =
        case Kind of
            link -> {link, Nodes};
            _ -> Spec0
        end,
    #{
        kind => Kind,
        class => maps:get(class, Target, Class),
        weight => at(Path, weight, Target, 1, fun(W) -> is_number(W) andalso W >= 0 end,
                     "a number, not negative"),
        await => at(Path, await, Target, true, fun is_boolean/1, "true or false"),
        nodes => Nodes,
        spec => Spec
    };
target(Path, Target, _, _) ->
    bad(Path, Target, "a map with the key kind: process, name, node or link").

kind(process, Path, Target) ->
    case maps:to_list(maps:with([find, module, supervisor], Target)) of
        [{find, {M, F, A} = Find}] when is_atom(M), is_atom(F), is_list(A) ->
            {[find], {find, Find}, {M, F}};
        [{find, Other}] ->
            bad(Path ++ [find], Other,
                "{Module, Function, Arguments}, which gives [{Key, Pid}] on a node");
        [{module, Module}] when is_atom(Module) -> {[module], {module, Module}, Module};
        [{supervisor, Name}] when is_atom(Name) -> {[supervisor], {supervisor, Name}, Name};
        [{Key, Other}] -> bad(Path ++ [Key], Other, "an atom");
        _ ->
            bad(Path, Target,
                "one of the keys find, module and supervisor, which says what processes")
    end;
kind(name, Path, Target) ->
    Names = at(Path, names, Target, all, fun(N) -> N =:= all orelse is_full_list(N) end,
               "all, or a list of names, at least one"),
    Scope =
        case maps:get(group, Target, local) of
            local -> local;
            global -> global;
            {s_group, Group} -> {s_group, Group};
            Group -> {s_group, Group}
        end,
    {[names, group], {name, Scope, Names}, {name, Scope}};
kind(node, Path, Target) ->
    Ready = at(Path, ready, Target, undefined, fun is_mfa/1, "{Module, Function, Arguments}"),
    Restart = at(Path, restart_ms, Target, undefined, fun(N) -> is_integer(N) andalso N >= 0 end,
                 "a whole number of milliseconds"),
    case Target of
        #{fleet := Fleet} when is_pid(Fleet) ->
            {[fleet, restart_ms, ready], {fleet, Fleet, Restart, Ready}, node};
        #{fleet := Other} -> bad(Path ++ [fleet], Other, "the process of a fleet");
        #{restart_ms := _} ->
            bad(Path ++ [restart_ms], Restart,
                "used with the key fleet alone: only a fleet restarts nodes");
        _ -> {[ready], {halt, Ready}, node}
    end;
kind(link, _, _) ->
    {[], link, link};
kind(Other, Path, _) ->
    bad(Path ++ [kind], Other, "process, name, node or link").

%% Checks

required(Key, Options, Is, Expected) ->
    case Options of
        #{Key := _} -> at([], Key, Options, undefined, Is, Expected);
        _ -> bad([Key], undefined, Expected)
    end.

optional(Key, Options, Default, Is, Expected) -> at([], Key, Options, Default, Is, Expected).

limit(Key, Limits, Default, Is, Expected) -> at([limits], Key, Limits, Default, Is, Expected).

at(Path, Key, Map, Default, Is, Expected) ->
    case Map of
        #{Key := Value} -> Is(Value) orelse bad(Path ++ [Key], Value, Expected), Value;
        _ -> Default
    end.

known(Path, Keys, Map) ->
    case maps:keys(Map) -- Keys of
        [] -> ok;
        [Key | _] ->
            bad(Path ++ [Key], maps:get(Key, Map),
                io_lib:format("one of these keys: ~ts",
                              [lists:join(", ", [atom_to_list(K) || K <- Keys])]))
    end.

-spec bad([term()], term(), unicode:chardata()) -> no_return().
bad(Path, Term, Expected) ->
    throw({?MODULE, {bad_option, Path, Term, unicode:characters_to_list(Expected)}}).

one_of(Values) -> fun(Value) -> lists:member(Value, Values) end.

is_proper([_ | Tail]) -> is_proper(Tail);
is_proper(Tail) -> Tail =:= [].

is_full_list(Value) -> is_proper(Value) andalso Value =/= [].

is_atoms(Value) -> is_proper(Value) andalso lists:all(fun is_atom/1, Value).

is_nodes(Value) ->
    is_atoms(Value) andalso Value =/= [] andalso length(lists:usort(Value)) =:= length(Value).

is_count(Value) -> is_integer(Value) andalso Value >= 1.

is_most(Value) -> Value =:= infinity orelse is_count(Value).

is_window({From, infinity}) -> is_number(From) andalso From >= 0;
is_window({From, To}) -> is_number(From) andalso is_number(To) andalso From >= 0 andalso To >= From;
is_window(_) -> false.

is_mfa({M, F, A}) -> is_atom(M) andalso is_atom(F) andalso is_proper(A);
is_mfa(_) -> false.

-doc "An error of `sderl_chaos:start/1` as a sentence that names the term and what belongs there.".
-spec text(term()) -> unicode:chardata().
text({bad_option, [], Term, Expected}) ->
    io_lib:format("the options are ~0tP, but must be ~ts", [Term, 12, Expected]);
text({bad_option, [_] = Path, undefined, Expected}) ->
    io_lib:format("the option ~ts is missing: it is ~ts", [path(Path), Expected]);
text({bad_option, Path, Term, Expected}) ->
    io_lib:format("the option ~ts is ~0tP, but must be ~ts", [path(Path), Term, 12, Expected]);
text({halt_not_allowed, Classes}) ->
    io_lib:format(
        "whole nodes would be halted (~0tp) that nobody here restarts; if you want that, set "
        "allow_halt to true, or name a fleet",
        [Classes]
    );
text({not_reached, Nodes}) ->
    lists:join("; ", [[atom_to_list(Node), ": ", why(Why)] || {Node, Why} <- Nodes]);
text(Reason) ->
    io_lib:format("~0tP", [Reason, 20]).

path(Path) -> lists:join(" / ", [io_lib:format("~0tp", [P]) || P <- Path]).

why({other_version, Theirs, Ours}) ->
    io_lib:format("it has version ~0tp of the agent, this is version ~0tp; use the same release "
                  "here and there", [Theirs, Ours]);
why({not_loaded, Reason}) ->
    io_lib:format("the agent's code was refused (~0tp); the node needs OTP 27 or later, and one "
                  "that is older than the OTP here also the application compiler", [Reason]);
why({_, {erpc, noconnection}}) ->
    "it cannot be reached; is it up, and is the cookie the same?";
why({_, {erpc, timeout}}) ->
    "it did not answer in time";
why(timeout) ->
    "it did not answer in time";
why(Why) ->
    io_lib:format("~0tP", [Why, 12]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_resolver).
-moduledoc """
Decides which process keeps a name that was registered on both sides of a split.

The resolvers are those of `m:global`, by name, or a function of the caller's:

| resolver | the name stays with | effect on the processes |
|---|---|---|
| `random_exit_name` | one of the two, at random | the other is killed |
| `random_notify_name` | one of the two, at random | the other gets `{global_name_conflict, Name}` |
| `notify_all_name` | neither | each gets `{global_name_conflict, Name, OtherPid}` |
| `{Module, Function}` | the pid that `Module:Function(Name, Pid1, Pid2)` returns, or neither for `none` | only what the function does |

A function is given by module and name because no fun crosses the wire: registrations carry
their resolver to every member.

The function runs in a process of its own with a time limit, so that a function that loops, crashes,
floods its heap or waits for a missing node harms nothing. If it gives no valid answer
`random_exit_name` decides in its place, and the decision says why (`global` would leave the name
unregistered; here a name that two processes want stays with one of them).

A decision changes nothing by itself. The caller makes it an ordered operation of the group and
runs its `effects`, once (protocol rule 18).
""".

-export([validate/1]).
-export([start/6]).
-export([decide/5]).
-export([is_decision/1]).

-export_type([resolver/0, decision/0, effect/0, failure/0]).

-doc "How a clash of names is decided; see the table above.".
-type resolver() ::
    random_exit_name | random_notify_name | notify_all_name | {module(), Function :: atom()}.

-doc """
The decision. `keep` is the pid that keeps the name or `none`, `effects` are run by the caller once
and in order, `failed` says why a `{Module, Function}` did not decide.
""".
-type decision() :: #{
    keep := pid() | none, effects := [effect()], failed := undefined | failure()
}.

-doc "`erlang:exit(Pid, Reason)` or `Pid ! Message`.".
-type effect() :: {exit, pid(), Reason :: term()} | {send, pid(), Message :: term()}.

-doc """
Why a resolver failed: no answer in time, an answer that is neither of the pids nor `none`, an
exception, or the end of its process (`killed`, for one that exceeded the heap limit).
""".
-type failure() ::
    timeout
    | {bad_return, term()}
    | {throw | error | exit, Reason :: term()}
    | {down, Reason :: term()}.

%% Enough for any decision, small against a node's memory: 128 MiB on 64 bits.
-define(MAX_HEAP_WORDS, 16#1000000).

-doc """
Whether a term is a resolver. A function need not exist here: it is called on the node that
decides.
""".
-spec validate(term()) -> ok | {error, {bad_resolver, term(), Expected :: string()}}.
validate(random_exit_name) -> ok;
validate(random_notify_name) -> ok;
validate(notify_all_name) -> ok;
validate({Module, Function}) when is_atom(Module), is_atom(Function) -> ok;
validate(Other) -> {error, {bad_resolver, Other, expected()}}.

expected() ->
    "random_exit_name, random_notify_name, notify_all_name or {Module, Function} "
    "with Module:Function(Name, Pid1, Pid2) -> Pid1 | Pid2 | none".

-doc "Whether a term is a decision; other processes may send anything.".
-spec is_decision(term()) -> boolean().
is_decision(#{keep := Keep, effects := Effects, failed := _}) when length(Effects) >= 0 ->
    (is_pid(Keep) orelse Keep =:= none)
        andalso lists:all(fun({What, Pid, _}) ->
                                 is_pid(Pid) andalso (What =:= exit orelse What =:= send);
                             (_) -> false
                          end, Effects);
is_decision(_) ->
    false.

resolve(Name, Pid1, Pid2, Resolver, TimeoutMs) ->
    Coin = rand:uniform(2),
    case Resolver of
        {_Module, _Function} when Pid1 =/= Pid2 ->
            Answer = run(Resolver, Name, Pid1, Pid2, TimeoutMs),
            decide(Name, Pid1, Pid2, {answer, Answer}, Coin);
        _ ->
            decide(Name, Pid1, Pid2, Resolver, Coin)
    end.

-doc """
Decides in a separate process and sends the calling process `{resolved, Ref, Decision}`.

Returns the pid of that process, unlinked, for a caller that wants to monitor it. It ends when
it has sent, or when the caller dies; then the resolver's function is killed too.
""".
-spec start(Ref :: term(), Name :: term(), pid(), pid(), resolver(), TimeoutMs :: pos_integer()) ->
    pid().
start(Ref, Name, Pid1, Pid2, Resolver, TimeoutMs) ->
    Caller = self(),
    spawn(fun() ->
        ok = sderl_dependent:on(Caller),
        Caller ! {resolved, Ref, resolve(Name, Pid1, Pid2, Resolver, TimeoutMs)}
    end).

-doc """
The pure part: the decision of a resolver, or of its function's answer.

`Coin` is 1 or 2 and says which pid a random choice takes.
""".
-spec decide(Name, pid(), pid(), resolver() | {answer, {ok, term()} | {failed, failure()}}, Coin) ->
    decision()
when
    Name :: term(), Coin :: 1 | 2.
decide(_Name, Pid, Pid, _Resolver, _Coin) ->
    %% Both sides registered the same process: nobody loses.
    decision(Pid, []);
decide(_Name, Pid1, Pid2, random_exit_name, Coin) ->
    {Keep, Lose} = toss(Coin, Pid1, Pid2),
    decision(Keep, [{exit, Lose, kill}]);
decide(Name, Pid1, Pid2, random_notify_name, Coin) ->
    {Keep, Lose} = toss(Coin, Pid1, Pid2),
    decision(Keep, [{send, Lose, {global_name_conflict, Name}}]);
decide(Name, Pid1, Pid2, notify_all_name, _Coin) ->
    decision(none, [
        {send, Pid1, {global_name_conflict, Name, Pid2}},
        {send, Pid2, {global_name_conflict, Name, Pid1}}
    ]);
decide(_Name, Pid1, Pid2, {answer, {ok, Keep}}, _Coin) when
    Keep =:= Pid1; Keep =:= Pid2; Keep =:= none
->
    decision(Keep, []);
decide(Name, Pid1, Pid2, {answer, {ok, Other}}, Coin) ->
    decide(Name, Pid1, Pid2, {answer, {failed, {bad_return, Other}}}, Coin);
decide(Name, Pid1, Pid2, {answer, {failed, Failure}}, Coin) ->
    (decide(Name, Pid1, Pid2, random_exit_name, Coin))#{failed := Failure};
decide(Name, Pid1, Pid2, {Module, Function}, Coin) ->
    %% A function must be run; it has no decision before.
    erlang:error(badarg, [Name, Pid1, Pid2, {Module, Function}, Coin]).

toss(1, Pid1, Pid2) -> {Pid1, Pid2};
toss(2, Pid1, Pid2) -> {Pid2, Pid1}.

decision(Keep, Effects) -> #{keep => Keep, effects => Effects, failed => undefined}.

%% The answer comes with a reference that the function cannot know, so that nothing it sends
%% or exits with is taken for one; to an alias, so that none arrives after the time is over.
run({Module, Function}, Name, Pid1, Pid2, TimeoutMs) ->
    Self = self(),
    Alias = alias(),
    {Worker, Monitor} = spawn_opt(
        fun() ->
            %% The worker is linked to nobody, so that no exit of its own reaches the decider.
            ok = sderl_dependent:on(Self),
            Alias ! {Alias, call(Module, Function, Name, Pid1, Pid2)}
        end,
        [monitor, {max_heap_size, #{size => ?MAX_HEAP_WORDS, kill => true, error_logger => false}}]
    ),
    Answer =
        receive
            {Alias, Result} -> Result;
            {'DOWN', Monitor, process, Worker, Reason} -> {failed, {down, Reason}}
        after TimeoutMs -> {failed, timeout}
        end,
    _ = unalias(Alias),
    %% An answer that came between the time limit and `unalias`.
    receive
        {Alias, _Late} -> ok
    after 0 -> ok
    end,
    exit(Worker, kill),
    demonitor(Monitor, [flush]),
    Answer.

call(Module, Function, Name, Pid1, Pid2) ->
    try
        {ok, Module:Function(Name, Pid1, Pid2)}
    catch
        Class:Reason -> {failed, {Class, Reason}}
    end.

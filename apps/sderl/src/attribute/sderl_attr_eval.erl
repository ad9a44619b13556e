%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_eval).
-moduledoc false.
%% Runs the function that gives the value of an attribute, in a process of its own with a time limit
%% and a heap limit, so that it can do no harm. Its value is checked too, because it will be kept
%% and sent to many nodes.

-export([start/3, stop/1, run/2, value/1, fault/2]).
-export_type([outcome/0, job/0]).

-doc """
The outcome of a call. Reasons: `timeout`, `heap` (more than 32 MiB), `too_large` (more than 16 KiB
to send), `fun_in_value`, `no_value` (it gave `undefined`), `{throw | error | exit, Reason}`,
`{down, Reason}` (its process was killed).
""".
-type outcome() :: {ok, term()} | {undefined, Reason :: term()}.

-doc "A running call: its process, the monitor and the alias for its answer.".
-type job() :: {pid(), reference(), reference()}.

%% 32 MiB on 64 bits.
-define(MAX_HEAP_WORDS, 16#400000).
-define(MAX_SIZE, 16_384).
-define(MAX_REASON, 1_024).

-doc """
Starts a call. The calling process gets `{attr_outcome, Alias, Tag, Outcome}` or the `DOWN` message
of the process (see `fault/2`), whichever comes first; the caller keeps the time, and calls `stop/1`
in every case.
""".
-spec start(sderl_attr:call(), Tag :: term(), pid()) -> job().
start(Call, Tag, Caller) when Caller =:= self() ->
    Alias = alias(),
    {Pid, Monitor} = spawn_opt(
        fun() ->
            %% An endless function must not outlive the server that would have ended it.
            ok = sderl_dependent:on(Caller),
            Alias ! {attr_outcome, Alias, Tag, run_here(Call)}
        end,
        [monitor, {max_heap_size, #{size => ?MAX_HEAP_WORDS, kill => true, error_logger => false,
                                    include_shared_binaries => true}}]),
    {Pid, Monitor, Alias}.

-doc "Ends a call; no outcome comes any more, but one may be in the mailbox already.".
-spec stop(job()) -> ok.
stop({Pid, Monitor, Alias}) ->
    _ = unalias(Alias),
    exit(Pid, kill),
    true = demonitor(Monitor, [flush]),
    ok.

-doc "The same for a caller that waits, at most `TimeoutMs` milliseconds.".
-spec run(sderl_attr:call(), TimeoutMs :: non_neg_integer()) -> outcome().
run(Call, TimeoutMs) ->
    {_, Monitor, Alias} = Job = start(Call, run, self()),
    Outcome = receive
        {attr_outcome, Alias, run, Got} -> Got;
        {'DOWN', Monitor, process, _, Why} -> fault(Why, ran)
    after TimeoutMs -> {undefined, timeout}
    end,
    ok = stop(Job),
    %% An answer that came between the limit and the stop.
    receive {attr_outcome, Alias, run, _} -> ok after 0 -> ok end,
    Outcome.

-doc "The outcome when the process ended: the heap limit kills it, and others may do so.".
-spec fault(Reason :: term(), ran | stopped) -> outcome().
fault(killed, ran) -> {undefined, heap};
fault(Why, _) -> {undefined, small({down, Why})}.

run_here(Call) ->
    try apply_call(Call) of
        Value -> value(Value)
    catch
        Class:Reason -> {undefined, small({Class, Reason})}
    end.

apply_call({M, F}) -> M:F();
apply_call({M, F, A}) -> apply(M, F, A).

-doc """
Whether a term may be the value of an attribute: no fun, which another node may not know, and not
too large to send.
""".
-spec value(term()) -> outcome().
value(undefined) -> {undefined, no_value};
value(Value) ->
    case {has_fun(Value), erlang:external_size(Value)} of
        {true, _} -> {undefined, fun_in_value};
        {false, Size} when Size > ?MAX_SIZE -> {undefined, too_large};
        _ -> {ok, Value}
    end.

small(Reason) ->
    case erlang:external_size(Reason) > ?MAX_REASON orelse has_fun(Reason) of
        true when is_tuple(Reason) -> {element(1, Reason), too_large};
        true -> too_large;
        false -> Reason
    end.

has_fun(F) when is_function(F) -> true;
has_fun([H | T]) -> has_fun(H) orelse has_fun(T);
has_fun(T) when is_tuple(T) -> has_fun(tuple_to_list(T));
has_fun(M) when is_map(M) -> has_fun(maps:to_list(M));
has_fun(_) -> false.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_own).
-moduledoc false.
%% One attribute of this node: its state by its spec, when it is to be computed, and what an outcome
%% changes. Pure.

-export([check/1, check_label/1, check_name/1, is_change/1]).
-export([new/4, kind/1, call/1, due/3, due_soon/3, wanted/3, later/2, started/2, pending/1,
         outcome/3, entry/2]).
-export_type([t/0, change/0]).

-record(a, {kind :: static | automatic | dynamic,
            call :: none | sderl_attr:call(),
            keep = 0 :: non_neg_integer(),
            timeout = 0 :: pos_integer() | 0,
            value :: term(),
            why :: sderl_attr_table:why(),
            at :: now | integer(),
            version :: non_neg_integer(),
            running = none :: none | integer(),
            failed = 0 :: non_neg_integer()}).

-opaque t() :: #a{}.

-type change() :: {insert | update | set, sderl_attr:name(), sderl_attr:spec(), sderl_attr:source(),
                   Once :: none | sderl_attr_eval:outcome()}
                | {delete, sderl_attr:name()}.

-define(MAX_MS, 16#FFFFFFFF).

%% A function that broke its time or heap limit is called again after 2, 4, 8, 12 times its time.
-define(LONGEST, 12).

-doc """
An attribute of this spec. `Once`: the outcome of an automatic one in an earlier life of the server,
so that it is computed only once. A value that has not been computed yet is `undefined` with the
reason `pending`.
""".
-spec new(sderl_attr:spec(), Once, {KeepMs, TimeoutMs},
          {Now :: integer(), Version :: non_neg_integer()}) -> t() when
    Once :: none | sderl_attr_eval:outcome(),
    KeepMs :: pos_integer(),
    TimeoutMs :: pos_integer().
new({dynamic, Call}, _, {Keep, Timeout}, At) -> computed(Call, Keep, Timeout, At);
new({dynamic, Call, Opts}, _, {Keep, Timeout}, At) ->
    computed(Call, maps:get(keep_ms, Opts, Keep), maps:get(timeout_ms, Opts, Timeout), At);
new({automatic, Call}, none, {_, Timeout}, At) ->
    (computed(Call, 0, Timeout, At))#a{kind = automatic, at = now};
new({automatic, Call}, {ok, Value}, _, {_, V}) ->
    #a{kind = automatic, call = Call, value = Value, why = ok, at = now, version = V};
new({automatic, Call}, {undefined, Why}, _, {_, V}) ->
    #a{kind = automatic, call = Call, why = Why, at = now, version = V};
new(Value, _, _, {_, V}) ->
    #a{kind = static, call = none, value = Value, why = ok, at = now, version = V}.

computed(Call, Keep, Timeout, {Now, V}) ->
    #a{kind = dynamic, call = Call, keep = Keep, timeout = Timeout, why = pending, at = Now,
       version = V}.

-doc """
Whether a term is a spec. Any term is a static one, except terms that look like another kind and are
malformed.
""".
-spec check(term()) -> ok | {error, Expected :: string()}.
check({Kind, Call}) when Kind =:= dynamic; Kind =:= automatic -> check_call(Call, Kind);
check({dynamic, Call, Opts}) when is_map(Opts) ->
    case [K
          || K := V <- Opts,
             not lists:member(K, [keep_ms, timeout_ms]) orelse not is_integer(V) orelse V < 1
             orelse V > ?MAX_MS] of
        [] -> check_call(Call, dynamic);
        _ -> {error, "a map with keep_ms, timeout_ms or both, in milliseconds from 1"}
    end;
check({Kind, _, _}) when Kind =:= dynamic; Kind =:= automatic -> {error, expected(Kind)};
check(Value) -> check_value(Value).

%% Whether a term may be a value.
-spec check_value(term()) -> ok | {error, Expected :: string()}.
check_value(Value) ->
    case sderl_attr_eval:value(Value) of
        {ok, _} -> ok;
        {undefined, no_value} -> {error, "a value other than undefined, which stands for no value"};
        {undefined, fun_in_value} -> {error, "a value without funs: other nodes may not know them"};
        {undefined, too_large} ->
            {error, "a value of at most 16384 bytes: it is sent to all members"}
    end.

check_call({M, F}, _) when is_atom(M), is_atom(F) -> ok;
check_call({M, F, A}, _) when is_atom(M), is_atom(F), length(A) >= 0 -> ok;
check_call(_, Kind) -> {error, expected(Kind)}.

expected(Kind) ->
    lists:flatten(io_lib:format("{~s, {Module, Function}} or {~s, {Module, Function, Arguments}}",
                                [Kind, Kind])).

-doc "Whether a term may be a label's value: labels are static.".
-spec check_label(term()) -> ok | {error, Expected :: string()}.
check_label(Value) when element(1, Value) =:= dynamic; element(1, Value) =:= automatic ->
    {error, "a value that is not computed: labels are static"};
check_label(Value) -> check_value(Value).

-doc "Names are terms that every node can hold: no funs, and not large.".
-spec check_name(term()) -> ok | {error, Expected :: string()}.
check_name(Name) ->
    case {Name, sderl_attr_eval:value(Name)} of
        {{in, _, {in, _, _}}, _} -> {error, "a name within one group"};
        {_, {ok, _}} -> ok;
        _ -> {error, "a name: any term but undefined, without funs, of at most 16384 bytes"}
    end.

-doc "Whether a term is a change of an attribute of this node.".
-spec is_change(term()) -> boolean().
%% Also for changes that predecessors wrote: one that the server cannot handle would end each
%% process of it that is started.
is_change({delete, _}) -> true;
is_change({How, Name, Spec, Source, Once}) ->
    lists:member(How, [insert, update, set])
        andalso lists:member(Source, [builtin, config, call])
        andalso check_name(Name) =:= ok
        andalso check(Spec) =:= ok
        andalso case Once of none -> true; {ok, _} -> true; {undefined, _} -> true; _ -> false end;
is_change(_) -> false.

-spec kind(t()) -> static | automatic | dynamic.
kind(#a{kind = Kind}) -> Kind.

-doc "The function to call, and its time limit.".
-spec call(t()) -> {sderl_attr:call(), TimeoutMs :: pos_integer()}.
call(#a{call = Call, timeout = Timeout}) -> {Call, Timeout}.

-doc "Whether to begin to compute it, for a caller that wants no value older than `MaxAge`.".
-spec due(MaxAge :: integer(), Now :: integer(), t()) -> boolean().
due(MaxAge, Now, #a{running = none} = A) -> wanted(MaxAge, Now, A);
due(_, _, _) -> false.

-doc """
Whether its value is too old for that. It is kept for the time that its spec states in any case.
""".
-spec wanted(MaxAge :: integer(), Now :: integer(), t()) -> boolean().
wanted(_, _, #a{why = pending}) -> true;
wanted(MaxAge, Now, #a{kind = dynamic, at = At, keep = Keep} = A) ->
    Now - At >= max(MaxAge, later(Keep, A));
wanted(_, _, _) -> false.

-doc """
The same for a value that is shared every `Period`: if it is kept for much longer than a period it
is due so much sooner that mates hold no value that is older than it is kept.
""".
-spec due_soon(Period :: pos_integer(), Now :: integer(), t()) -> boolean().
due_soon(Period, Now, #a{keep = Keep} = A) ->
    due(0, Now + min(2 * Period, max(Period div 2, Keep div 4)), A).

-doc "How long a value is kept: longer after failures that cost much.".
-spec later(pos_integer(), t()) -> pos_integer().
later(Keep, #a{failed = 0}) -> Keep;
later(Keep, #a{failed = N}) -> Keep * min(?LONGEST, 1 bsl min(N, 4)).

-spec started(Now :: integer(), t()) -> t().
started(Now, A) -> A#a{running = Now}.

-doc "Whether it never had a value yet.".
-spec pending(t()) -> boolean().
pending(#a{why = Why}) -> Why =:= pending.

-doc """
The attribute after an outcome; `changed` if others see another value than before. The age of a
value counts from the beginning of its computation.
""".
-spec outcome(sderl_attr_eval:outcome(), NextVersion :: non_neg_integer(), t()) ->
    {changed | same, t()}.
outcome(Outcome, Next, #a{running = Started, kind = Kind, value = V0, why = W0} = A0) ->
    {Value, Why} = case Outcome of {ok, V} -> {V, ok}; {undefined, W} -> {undefined, W} end,
    A = A0#a{running = none, value = Value, why = Why, failed = failed(Why, A0),
             at = case Kind of dynamic -> Started; _ -> now end},
    case {Value, Why} =:= {V0, W0} of
        true -> {same, A};
        false -> {changed, A#a{version = Next}}
    end.

%% A built-in call always ends: if not in time, the machine was busy, and it is repeated without
%% delay.
failed(_, #a{call = {sderl_attr_builtin, _, _}}) -> 0;
failed(Why, #a{failed = N}) when Why =:= timeout; Why =:= heap -> N + 1;
failed(_, _) -> 0.

-doc "As `sderl_attr_share` wants it.".
-spec entry(sderl_attr:name(), t()) -> sderl_attr_table:moment().
entry(Name, #a{kind = Kind, keep = Keep, value = Value, why = Why, at = At, version = V}) ->
    {Name, Value, Why, At, case Kind of dynamic -> Keep; _ -> static end, V}.

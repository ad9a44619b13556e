%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_trace).
-moduledoc """
Traces calls of a function on this node, in a trace session of its own, so that no other tracing is
touched. It ends after a number of calls, after a time, or when calls come faster than they can be
sent.
""".

-export([calls/1]).

-import(sderl_actions_node, [now_ms/0]).

-define(LINE_BYTES, 500).
%% The most parts of an argument that are visited.
-define(ITEMS, 200).
%% If more messages wait, calls come faster than they can be sent.
-define(MOST_WAITING, 2000).

-doc "Sends each call and, with `results`, its result.".
-spec calls(map()) -> sderl_actions_node:result().
calls(#{module := ModuleText, function := FunctionText, count := Count, for_s := For} = Args) ->
    maybe
        {ok, Module} ?= sderl_actions_show:atom(ModuleText),
        {ok, Function} ?= sderl_actions_show:atom(FunctionText),
        true ?= erlang:function_exported(trace, session_create, 3) orelse
            code:ensure_loaded(trace) =:= {module, trace},
        {ok, Which} ?= which(Args),
        {module, Module} ?= code:ensure_loaded(Module),
        traced(Module, Function, Which, Count, now_ms() + 1000 * For, Args)
    else
        false -> {error, <<"this needs OTP 27 or newer on the node">>};
        {error, Why} when is_atom(Why) ->
            {error, <<"there is no module ", ModuleText/binary>>};
        Error -> Error
    end.

which(#{pid := Text}) -> sderl_actions_show:pid(Text);
which(_) -> {ok, all}.

traced(Module, Function, Which, Count, End, #{say := Say} = Args) ->
    Session = trace:session_create(sderl_actions_trace, self(), []),
    try
        Arity = maps:get(arity, Args, '_'),
        Match = case Args of
            #{results := true} -> [{'_', [], [{return_trace}]}];
            #{} -> true
        end,
        case trace:function(Session, {Module, Function, Arity}, Match, ['local']) of
            0 ->
                {error, <<(atom_to_binary(Module))/binary, " has no function ",
                          (atom_to_binary(Function))/binary, " of that arity">>};
            Functions ->
                Flags = [call, timestamp | [arity || not maps:get(arguments, Args)]],
                _ = trace:process(Session, Which, true, Flags),
                {Seen, Why} = told(0, Count, End, Say),
                {ok, #{functions => Functions, calls => Seen, ended => Why}}
        end
    after
        _ = trace:session_destroy(Session)
    end.

told(Count, Count, _, _) -> {Count, <<"the number of calls was reached">>};
told(N, Count, End, Say) ->
    case process_info(self(), message_queue_len) of
        {_, Waiting} when Waiting > ?MOST_WAITING ->
            {N, <<"calls came faster than they can be sent">>};
        _ ->
            receive
                Message when element(1, Message) =:= trace_ts ->
                    {Line, Counts} = line(Message),
                    ok = Say(Line),
                    told(N + Counts, Count, End, Say)
            after max(0, End - now_ms()) -> {N, <<"the time was over">>}
            end
    end.

line({trace_ts, Pid, call, {M, F, Args}, At}) when is_list(Args) ->
    Shown = case is_secret(M, F) of
        true -> [sderl_actions_secret:mask() || Args =/= []];
        false ->
            Pruned = [sderl_actions_show:pruned(Arg, ?ITEMS) || Arg <- Args],
            [sderl_actions_show:line(Arg, 200)
             || Arg <- sderl_actions_secret:masked_values(Pruned)]
    end,
    {said(Pid, At, [call(M, F), $(, lists:join(", ", Shown), $)]), 1};
line({trace_ts, Pid, call, MFA, At}) -> {said(Pid, At, sderl_actions_show:mfa(MFA)), 1};
line({trace_ts, Pid, return_from, {M, F, _} = MFA, Value, At}) ->
    Shown = case is_secret(M, F) of
        true -> sderl_actions_secret:mask();
        false -> sderl_actions_show:line(Value, 300)
    end,
    {said(Pid, At, [sderl_actions_show:mfa(MFA), " -> ", Shown]), 0};
line(Message) -> {said(element(2, Message), erlang:timestamp(),
                       sderl_actions_show:line(element(3, Message), 100)), 0}.

%% Arguments and results of functions with such a name, and of `auth`, are secret: a cookie that is
%% being set is not yet known when the call is traced.
is_secret(M, F) -> M =:= auth orelse sderl_actions_secret:is_secret(F).

call(M, F) -> io_lib:format("~ts:~ts", [M, F]).

said(Pid, {Mega, S, Us}, Text) ->
    #{at => (Mega * 1_000_000 + S) * 1000 + Us div 1000, pid => sderl_actions_show:own_pid(Pid),
      text => sderl_actions_show:cut(Text, ?LINE_BYTES)}.

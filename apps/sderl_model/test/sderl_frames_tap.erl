%% SPDX-License-Identifier: Apache-2.0
-module(sderl_frames_tap).

%% Records, on a node, what its group processes passed to the pure core, and everything that its
%% processes sent to processes of other nodes, in order.
%%
%% It looks from outside, by tracing, so the library that is recorded need not know of it.

-export([start/0, stop/0]).

%% Must be called before the library starts.
start() ->
    Self = self(),
    Pid = spawn(fun() ->
        true = register(?MODULE, self()),
        Self ! {self(), ready},
        %% Nothing of what is recorded runs yet.
        receive {session, Session} -> collect(Session, []) end
    end),
    receive {Pid, ready} -> ok end,
    Session = trace:session_create(?MODULE, Pid, []),
    [1 = trace:function(Session, MFA, Spec, [global])
     || {MFA, Spec} <- [{{sderl_core, init, 1}, [{['$1'], [], [{message, {{init, '$1'}}}]}]},
                        {{sderl_core, handle, 3},
                         [{['$1', '$2', '_'], [], [{message, {{handle, '$1', '$2'}}}]}]},
                        {{sderl_core, step, 3},
                         [{['$1', '$2', '_'], [], [{message, {{step, '$1', '$2'}}}]}]}],
        {module, _} <- [code:ensure_loaded(element(1, MFA))]],
    _ = trace:send(Session, [{[To, Msg], [], []} || {To, Msg} <- wanted()], []),
    _ = trace:process(Session, all, true, [call, arity, send, timestamp]),
    Pid ! {session, Session},
    ok.

wanted() ->
    Any = fun(Tag, Size) -> {'_', list_to_tuple([Tag | lists:duplicate(Size - 1, '_')])} end,
    [Any(sderl, 5), Any(sderl_hello, 6), Any(sderl_known, 4), Any(sderl_tell, 3),
     Any(sderl_conflict, 6), Any(sderl_free, 4),
     {{sderl_router, '_'}, {sderl_route, '_', '_', '_'}},
     {{sderl_node, '_'}, {'$gen_call', '_', '_'}}, {{sderl_ask, '_'}, {'$gen_call', '_', '_'}},
     {'_', {[alias | '_'], '_'}}].

%% Ends the recording and returns it, oldest first: {in, Pid, What} for input of a group's process,
%% {out, Pid, At, To, Message} for a message to another node.
stop() ->
    Ref = monitor(process, ?MODULE),
    ?MODULE ! {stop, self(), Ref},
    receive
        {Ref, Seen} -> demonitor(Ref, [flush]), Seen;
        {'DOWN', Ref, process, _, Why} -> error(Why)
    end.

collect(Session, Seen) ->
    receive
        {stop, From, Ref} ->
            true = trace:session_destroy(Session),
            From ! {Ref, lists:reverse(Seen)};
        {trace_ts, Pid, call, {sderl_core, _, _}, What, _} ->
            collect(Session, [{in, Pid, What} | Seen]);
        {trace_ts, Pid, _, Msg, To, At} ->
            case here(To) of
                true -> collect(Session, Seen);
                false -> collect(Session, [{out, Pid, at(At), To, Msg} | Seen])
            end
    end.

here(To) when is_atom(To) -> true;
here({_, N}) -> N =:= node();
here(To) -> node(To) =:= node().

%% All nodes are on one machine: its clock orders what they sent.
at({Mega, Sec, Micro}) -> (Mega * 1_000_000 + Sec) * 1_000_000 + Micro.

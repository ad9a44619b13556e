%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_acting).
-moduledoc """
Asks the server that acts: the one of this virtual machine, or of another member of the service.
""".

-export([call/2, server/1]).

-import(sderl_clock, [now_ms/0]).

%% Longer than it takes until another member has taken over.
-define(PATIENCE_MS, 60_000).
-define(AGAIN_MS, 250).
-define(CALL_MS, 60_000).

-doc """
Calls it. Where none acts at the moment this waits for the next, and where one went before it
answered, too: a request may be repeated. What cannot be answered is thrown as `{unavailable,
Sentence}`.
""".
-spec call(Server :: atom(), Request :: term()) -> term().
call(Server, Request) ->
    case sderl_ops_membership:is_member() of
        false -> gen_server:call(Server, Request, ?CALL_MS);
        true -> call(Server, Request, false, now_ms() + ?PATIENCE_MS)
    end.

%% Asked: whether one that did not answer may have been asked already.
call(Server, Request, Asked, Deadline) ->
    case sderl_ops_member:acting() of
        {ok, Node} ->
            try
                gen_server:call({Server, Node}, Request, ?CALL_MS)
            catch
                exit:{noproc, _} ->
                    again(Server, Request, Asked, Deadline, "no ops member acts");
                exit:_ ->
                    again(Server, Request, true, Deadline,
                          "the ops member that acts went while it was asked")
            end;
        {soon, Sentence} ->
            again(Server, Request, Asked, Deadline, Sentence);
        {no, Sentence} ->
            unavailable(Sentence, Asked)
    end.

again(Server, Request, Asked, Deadline, Sentence) ->
    case now_ms() < Deadline of
        true -> receive after ?AGAIN_MS -> call(Server, Request, Asked, Deadline) end;
        false -> unavailable(Sentence, Asked)
    end.

%% A decision may have been stored before the answer was lost.
-spec unavailable(unicode:chardata(), boolean()) -> no_return().
unavailable(Sentence, false) -> throw({unavailable, Sentence});
unavailable(Sentence, true) ->
    throw({unavailable, [Sentence, "; `history` and `status` tell whether it was taken"]}).

-doc "Where it is, for a monitor.".
-spec server(atom()) -> atom() | {atom(), node()}.
server(Server) ->
    case sderl_ops_member:acting() of
        {ok, Node} when Node =/= node() -> {Server, Node};
        _ -> Server
    end.

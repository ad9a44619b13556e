%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_clients).
-moduledoc false.
%% The requests of this node's clients, until they are answered (`sderl_core_answer`).
%%
%% A member has one list of operations out at a time, numbered since it became a member. What comes
%% meanwhile waits in a queue, and is the next list.

-include("sderl_core.hrl").

-export([restore/2, ops/2, op/3, again/3, is_asked/2, waiting/1, is_pending/1]).
-export([next_list/1, sent_to/2, resend/1, let_go/1]).

-import(sderl_core_state, [fx/2]).

-doc """
The list that a former process of this life had out. It may have been sent, and its clients ask
again. If it was out under another number before (`sderl_core_answer:leave_log/1`), it may have been
decided under that number: what the answer denies may be so.
""".
-spec restore(undefined | {list_number(), [{term(), sderl_core:op()}]}, #s{}) -> #s{}.
restore(undefined, S) -> S#s{clients = #clients{resend = true, in_doubt = [unknown]}};
restore({{again, Number}, List}, S) -> restored(Number, List, [unknown, decided], S);
restore({Number, List}, S) -> restored(Number, List, [unknown], S).

restored(Number, List, InDoubt, S) ->
    Clients = #clients{resend = true, in_doubt = InDoubt, number = Number},
    case List of
        [] -> S#s{clients = Clients};
        _ -> S#s{clients = Clients#clients{out = {Number, List}, predecessor = {asked, List}}}
    end.

-doc """
Takes clients' operations off the head of a list of events. A step may have thousands of them, so
the state is changed once for all.
""".
-spec ops([sderl_core:event() | start], #s{}) -> {[sderl_core:event() | start], #s{}}.
ops([{op, _, _} | _] = Events, #s{quorum = #quorum{has = Has}, leaving = undefined} = S)
  when Has =/= false ->
    #s{clients = #clients{queue = Before} = Clients} = S,
    {Queue, Others} = queue(Events, Before),
    {Others, S#s{clients = Clients#clients{queue = Queue}}};
ops([{op, From, Op} | Events], S) -> ops(Events, op(From, Op, S));
ops(Events, S) -> {Events, S}.

queue([{op, From, Op} | Events], Queue) -> queue(Events, [{From, Op} | Queue]);
queue(Events, Queue) -> {Queue, Events}.

-doc "A client asks.".
-spec op(term(), sderl_core:op(), #s{}) -> #s{}.
%% Never sent, so never applied.
op(From, _Op, #s{quorum = #quorum{has = false}, leaving = undefined} = S) when From =/= none ->
    fx({replies, [{From, {no, no_majority}}]}, S);
op(From, Op, #s{leaving = undefined, clients = #clients{queue = Queue} = Clients} = S) ->
    S#s{clients = Clients#clients{queue = [{From, Op} | Queue]}};
op(From, _Op, S) -> fx({replies, [{From, {no, not_member}}]}, S).

-doc """
A client that saw our predecessor die asks again under the same alias. Its operation may be answered
already.
""".
-spec again(term(), sderl_core:op(), #s{}) -> #s{}.
again(From, Op, #s{clients = #clients{deferred = Deferred, predecessor = Predecessor}} = S) ->
    Known = is_asked(From, S) orelse lists:keymember(From, 2, Deferred),
    case {Known, Predecessor} of
        {true, _} -> S;
        {false, {answered, Replies}} ->
            case lists:keyfind(From, 1, Replies) of
                false -> op(From, Op, S);
                Reply -> fx({replies, [Reply]}, S)
            end;
        {false, _} -> op(From, Op, S)
    end.

-doc "Whether an operation of this client waits to be sent, or is out.".
-spec is_asked(term(), #s{}) -> boolean().
is_asked(From, #s{clients = #clients{queue = Queue, out = Out}}) ->
    lists:keymember(From, 1, Queue)
        orelse (Out =/= undefined andalso lists:keymember(From, 1, element(2, Out))).

-doc "The number of operations that wait to be sent, or are out.".
-spec waiting(#s{}) -> non_neg_integer().
waiting(#s{clients = #clients{queue = Queue, out = undefined}}) -> length(Queue);
waiting(#s{clients = #clients{queue = Queue, out = {_, List}}}) -> length(Queue) + length(List).

-doc "Whether an operation is not answered yet.".
-spec is_pending(#s{}) -> boolean().
is_pending(#s{clients = #clients{queue = [], out = undefined, deferred = []}}) -> false;
is_pending(_) -> true.

-doc "The list that is to be sent now, if any.".
-spec next_list(#s{}) -> {list_of_operations() | none, #s{}}.
next_list(#s{role = Role, leaving = Leaving} = S)
  when Role =/= coord, Role =/= follower; Leaving =/= undefined ->
    {none, S};
next_list(#s{clients = #clients{out = undefined, queue = []}} = S) -> {none, S};
next_list(#s{clients = #clients{out = undefined, queue = Queue, number = Before} = Clients} = S) ->
    List = lists:reverse(Queue),
    Number = Before + 1,
    S1 = S#s{clients = Clients#clients{queue = [],
                                       number = Number,
                                       out = {Number, List},
                                       resend = false,
                                       in_doubt = []}},
    {list(Number, List, S1), fx({outbox, Number, List}, S1)};
next_list(#s{clients = #clients{out = {Number, List}, resend = true} = Clients} = S) ->
    {list(Number, List, S), S#s{clients = Clients#clients{resend = false}}};
next_list(S) -> {none, S}.

list(Number, Asked, #s{self = Self, d = #d{sid = Sid}}) ->
    ?LIST(Self, Sid, Number, [Op || {_, Op} <- Asked]).

-doc "A coordinator of this epoch has the list that is out.".
-spec sent_to(epoch(), #s{}) -> #s{}.
sent_to(E, #s{clients = #clients{in_doubt = InDoubt} = Clients} = S) ->
    S#s{clients = Clients#clients{in_doubt = [E | lists:delete(E, InDoubt)]}}.

-doc "There is a new coordinator: what is not answered goes to it, under its old number.".
-spec resend(#s{}) -> #s{}.
resend(#s{clients = #clients{out = undefined}} = S) -> S;
resend(#s{clients = Clients} = S) -> S#s{clients = Clients#clients{resend = true}}.

-doc """
There is no majority, and clients do not wait for one. Operations that were never sent were not
applied. A list that was sent may be in a batch that the majority goes on with.
""".
-spec let_go(#s{}) -> #s{}.
let_go(#s{clients = Clients} = S) ->
    #clients{queue = Queue, out = Out, number = Before, in_doubt = InDoubt} = Clients,
    #clients{deferred = Deferred} = Clients,
    {Sent, Unsent} = case Out of
        undefined -> {[], []};
        {_, List} when InDoubt =:= [] -> {[], List};
        {_, List} -> {List, []}
    end,
    Waiting = Unsent ++ [{F, Op} || {_, F, Op} <- Deferred] ++ Queue,
    %% No client waits for these (as removals of dead processes' names), but they have to be done.
    Own = [X || {none, _} = X <- Waiting ++ Sent],
    %% This process may die in between. A list that was sent is forgotten after its clients are
    %% answered: before, they would ask again for what may have been applied. A list that was not
    %% sent is forgotten before they are answered, or a successor would send it.
    Told = fx({replies, [{F, unknown} || {F, _} <- Sent, F =/= none]}, S),
    %% A successor of this process must find no list, not even one whose operations are deferred.
    Number = Before + 1,
    Left = fx({outbox, Number, []}, Told#s{clients = #clients{queue = Own,
                                                              number = Number,
                                                              resend = Clients#clients.resend,
                                                              rows = Clients#clients.rows}}),
    fx({replies, [{F, {no, no_majority}} || {F, _} <- Waiting, F =/= none]}, Left).

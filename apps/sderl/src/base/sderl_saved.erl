%% SPDX-License-Identifier: Apache-2.0
-module(sderl_saved).
-moduledoc false.
%% State with which a new process of a group goes on where its predecessor was killed, in the table
%% `sderl_state`: `{{log, G}, Epoch, Num, Items}` (the last batch, written before its rows, so
%% applying it again after a crash in between gives the same rows), `{{came_home, G}, Position,
%% Names}` (names that the last batch gives another home, written before it does),
%% `{{session, G, Node}, Sid, Req, Answers}`, `{{sessions, G}, [Node]}` (the nodes that may have a
%% session), `{{out, G}, Req, Ops}`, `{{durable, G}, Term}`.
%%
%% The table is that of all groups, so sessions are found by their keys.

-export([durable/2, outbox/3, log/4, came_home/3, came_home/2, session/3, no_session/2,
         may_have_sessions/2, sessions/3, session_nodes/1]).
-export([recover/1, purge/1]).

-define(STATE, sderl_state).

-type session() :: {Sid :: integer(), Number :: non_neg_integer(), Answers :: [term()] | default}.

-spec durable(term(), term()) -> true.
durable(G, D) -> ets:insert(?STATE, {{durable, G}, D}).

-spec outbox(term(), term(), [term()]) -> true.
outbox(G, Number, List) -> ets:insert(?STATE, {{out, G}, Number, List}).

-doc "The last batch, before its rows are written.".
-spec log(term(), term(), non_neg_integer(), [term()]) -> true.
log(G, Epoch, Num, Items) -> ets:insert(?STATE, {{log, G}, Epoch, Num, Items}).

-doc "These names have another home from the batch of this position on.".
-spec came_home(term(), {term(), non_neg_integer()}, [term()]) -> true.
came_home(G, Position, Names) -> ets:insert(?STATE, {{came_home, G}, Position, Names}).

-doc "The names that the batch of this position gave another home.".
-spec came_home(term(), {term(), non_neg_integer()}) -> [term()].
came_home(G, Position) ->
    case ets:lookup(?STATE, {came_home, G}) of
        [{_, Position, Names}] -> Names;
        _ -> []
    end.

-spec session(term(), node(), session()) -> true.
session(G, Node, {Sid, R, As}) -> ets:insert(?STATE, {{session, G, Node}, Sid, R, As}).

-spec no_session(term(), node()) -> true.
no_session(G, Node) -> ets:delete(?STATE, {session, G, Node}).

-doc "Called before there is a session, so that a successor misses none.".
-spec may_have_sessions(term(), [node()]) -> true.
may_have_sessions(G, Nodes) -> ets:insert(?STATE, {{sessions, G}, Nodes}).

-spec session_nodes(term()) -> [node()].
session_nodes(G) -> ets:lookup_element(?STATE, {sessions, G}, 2, []).

-doc "Replaces what is known of all members' last lists, of those that may have one.".
-spec sessions(term(), Had :: [node()], #{node() => session()}) -> true.
sessions(G, Had, Sessions) ->
    %% The process may die in between: the list always has all sessions that there are.
    Now = maps:keys(Sessions),
    true = ets:insert(?STATE, [{{sessions, G}, lists:usort(Had ++ Now)}
                               | [{{session, G, N}, Sid, R, As} || N := {Sid, R, As} <- Sessions]]),
    lists:foreach(fun(N) -> no_session(G, N) end, Had -- Now),
    may_have_sessions(G, Now).

-doc "What the predecessor left, if there was one.".
-spec recover(term()) ->
    none | #{durable := term(), sessions := #{node() => session()},
             log => {Num :: non_neg_integer(), Items :: [term()]}, log_epoch => term(),
             outbox => {Number :: term(), [term()]}}.
recover(G) ->
    case ets:lookup(?STATE, {durable, G}) of
        [] -> none;
        [{_, D}] ->
            Log = case ets:lookup(?STATE, {log, G}) of
                [{_, E, Num, Items}] -> #{log => {Num, Items}, log_epoch => E};
                [] -> #{}
            end,
            Out = case ets:lookup(?STATE, {out, G}) of
                [{_, R, List}] -> #{outbox => {R, List}};
                [] -> #{}
            end,
            Sess = [{N, {Sid, R, As}} || N <- session_nodes(G),
                                         {_, Sid, R, As} <- ets:lookup(?STATE, {session, G, N})],
            maps:merge(maps:merge(Log, Out), #{durable => D, sessions => maps:from_list(Sess)})
    end.

-doc "Forgets what a process of a group would need, as this node left the group.".
-spec purge(term()) -> true.
purge(G) ->
    sderl_index:forget(G),
    lists:foreach(fun(N) -> no_session(G, N) end, session_nodes(G)),
    lists:foreach(fun(K) -> ets:delete(?STATE, {K, G}) end, [sessions, durable, log, out,
                                                       came_home]),
    true.

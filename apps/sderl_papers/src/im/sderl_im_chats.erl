%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_chats).
-moduledoc """
The chat database: open conversations, the session process of each, and its two clients:
`{Session, SessionPid, A, APid, B, BPid}`.

When a session dies both clients are told, `{session_lost, Session, SessionPid}`, and the
conversation is over.
""".

-behaviour(sderl_im_db).

-export([add/3, remove/3, watched/1, lost/2, alive/0]).
-export_type([row/0, session/0]).

-doc "Names a conversation: the client that asked for it, the other client, and a unique term.".
-type session() :: {A :: term(), B :: term(), Unique :: term()}.

-doc "A conversation, its session, its clients.".
-type row() :: {session(), pid(), A :: term(), APid :: pid(), B :: term(), BPid :: pid()}.

%% How long a database may be missing.
-define(ASK_MS, 5000).

-doc "Adds a conversation on server K, unless there is one of that name.".
-spec add(sderl_im_layout:conf(), K :: pos_integer(), row()) ->
    {ok, ok | {exists, row()}} | {error, term()}.
add(Conf, K, Row) -> main(Conf, K, {add, Row}).

-doc "Removes a conversation, if it is that of the calling session.".
-spec remove(sderl_im_layout:conf(), K :: pos_integer(), session()) ->
    {ok, {ok, row()} | none} | {error, term()}.
remove(Conf, K, Session) -> main(Conf, K, {remove, Session, self()}).

main(Conf, K, Request) -> sderl_im_net:ask(Conf, {database, chats, K, main}, Request, ?ASK_MS).

-doc false.
-spec watched(row()) -> pid().
watched(Row) -> element(2, Row).

-doc "Tells both clients.".
-spec lost(row(), sderl_im_layout:conf()) -> remove.
lost({Session, Pid, _, APid, _, BPid}, Conf) ->
    ok = sderl_im_net:to(Conf, APid, {session_lost, Session, Pid}),
    ok = sderl_im_net:to(Conf, BPid, {session_lost, Session, Pid}),
    remove.

-doc "The rows that the sessions of this server know.".
-spec alive() -> [row()].
alive() -> sderl_im_alive:rows(sessions).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_session).
-moduledoc """
A chat session: one conversation between two clients. Every message of it goes through this process,
and every acknowledgement.

It looks both clients up, enters itself into the chat database of its server, and invites the other
client. When that accepts the session is open, and the client that asked is told. The invitation is
repeated each second, up to `tries` times; if it is never accepted the session is given up
(`unavailable`). A session ends when a client finishes, after a silence of `idle_ms`, or when the
monitor of a client finds that client gone (`over`). It keeps no messages: the sender keeps a
message until it is acknowledged.

| from a client | to the other, or back |
|---|---|
| `{message, Side, Seq, Text}` | `{message, Session, Side, Seq, Text}` |
| `{delivered, Side, Seq}` | `{delivered, Session, Seq}`, to the sender |
| `{finish, Pid, Ref}` | `{chat_over, Session}`; `{reply, Ref, ok}` |

`{Session, Side, Seq}` is unique: `Side` is `a` for the client who asked for the conversation, `b`
for the other.
""".

-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([job/0, side/0, message/0]).

-doc "The number of the server, the conversation, and the client that asked for it.".
-type job() :: {K :: pos_integer(), sderl_im_chats:session(), APid :: pid(), Ref :: term()}.

-doc "One of the two clients.".
-type side() :: a | b.

-doc "The messages to a session from clients and client monitors.".
-type message() ::
    accept
    | {message, side(), pos_integer(), binary()}
    | {delivered, side(), pos_integer()}
    | {finish, Client :: pid(), Ref :: term()}
    | over.

%% Between two invitations.
-define(INVITE_MS, 1000).

-record(s, {
    conf :: sderl_im_layout:conf(),
    k :: pos_integer(),
    session :: sderl_im_chats:session(),
    a :: pid(),
    b = none :: pid() | none,
    monitors = [] :: [pid()],
    open = false :: boolean(),
    invited = 0 :: non_neg_integer(),
    %% The requests to answer when the session is open.
    asked :: [Ref :: term()]
}).

-doc "Starts it, below its supervisor.".
-spec start_link(sderl_im_layout:conf(), job()) -> gen_server:start_ret().
start_link(Conf, Job) -> gen_server:start_link(?MODULE, {Conf, Job}, []).

-doc false.
-spec init({sderl_im_layout:conf(), job()}) -> {ok, #s{}, {continue, start}}.
init({Conf, {K, Session, APid, Ref}}) ->
    {ok, #s{conf = Conf, k = K, session = Session, a = APid, asked = [Ref]}, {continue, start}}.

-doc false.
-spec handle_continue(start, #s{}) -> {noreply, #s{}, timeout()} | {stop, normal, #s{}}.
handle_continue(start, #s{conf = Conf, k = K, session = {A, B, _} = Session, a = APid} = S) ->
    maybe
        {b, {ok, {_, BPid, BMonitor}}} ?= {b, sderl_im_clients:find(Conf, B)},
        {a, {ok, {_, APid, AMonitor}}} ?= {a, sderl_im_clients:find(Conf, A)},
        {add, {ok, ok}} ?= {add, sderl_im_chats:add(Conf, K, {Session, self(), A, APid, B, BPid})},
        proc_lib:set_label({sderl_im, ready, {session, Session}}),
        next(invite(S#s{b = BPid, monitors = [AMonitor, BMonitor]}))
    else
        {b, none} -> refuse({receiver_not_found, B}, S);
        {a, none} -> refuse(not_logged_in, S);
        {a, {ok, _}} -> refuse(not_logged_in, S);
        %% The request came twice: the first session answers this one, too.
        {add, {ok, {exists, Row}}} -> element(2, Row) ! {asked, hd(S#s.asked)}, {stop, normal, S};
        {_, {error, _}} -> refuse(unavailable, S)
    end.

refuse(Reason, S) ->
    ok = answer({error, Reason}, S),
    {stop, normal, S}.

answer(Answer, #s{conf = Conf, a = A, asked = Asked}) ->
    lists:foreach(fun(Ref) -> sderl_im_net:to(Conf, A, {reply, Ref, Answer}) end, Asked).

invite(#s{conf = Conf, session = {A, _, _} = Session, b = B, invited = Count} = S) when is_pid(B) ->
    ok = sderl_im_net:to(Conf, B, {invite, Session, self(), A}),
    _ = erlang:send_after(?INVITE_MS, self(), invite),
    S#s{invited = Count + 1}.

next(#s{conf = #{idle_ms := Ms}} = S) -> {noreply, S, Ms}.

-doc false.
-spec handle_call(row, gen_server:from(), #s{}) ->
    {reply, {ok, sderl_im_chats:row()}, #s{}, timeout()}.
handle_call(row, _,
            #s{session = {A, B, _} = Session, a = APid, b = BPid, conf = #{idle_ms := Ms}} = S) ->
    {reply, {ok, {Session, self(), A, APid, B, BPid}}, S, Ms}.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}, timeout()}.
handle_cast(_, S) -> next(S).

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}, timeout()} | {stop, normal, #s{}}.
handle_info({message, Side, Seq, Text}, #s{session = Session} = S) ->
    ok = to(other(Side), {message, Session, Side, Seq, Text}, S),
    next(S);
handle_info({delivered, Side, Seq}, #s{session = Session} = S) ->
    ok = to(Side, {delivered, Session, Seq}, S),
    next(S);
handle_info(accept, #s{open = false, session = Session, conf = Conf, monitors = Monitors} = S) ->
    lists:foreach(fun(Monitor) -> sderl_im_net:to(Conf, Monitor, {opened, Session, self()}) end,
                  Monitors),
    ok = answer({ok, self()}, S),
    next(S#s{open = true, asked = []});
handle_info({asked, Ref}, #s{open = Open, asked = Asked} = S0) ->
    S = S0#s{asked = [Ref | Asked]},
    case Open of
        true -> ok = answer({ok, self()}, S), next(S#s{asked = []});
        false -> next(S)
    end;
handle_info(invite, #s{open = false, invited = Count, conf = #{tries := Tries}} = S)
  when Count < Tries ->
    next(invite(S));
%% The other client may have accepted, but its message was lost.
handle_info(invite, #s{open = false, session = Session} = S) ->
    ok = answer({error, unavailable}, S),
    ok = to(b, {chat_over, Session}, S),
    finish(S);
handle_info({finish, Pid, Ref}, #s{session = Session, conf = Conf, a = A, b = B} = S) ->
    lists:foreach(fun(Client) -> sderl_im_net:to(Conf, Client, {chat_over, Session}) end,
                  [A, B] -- [Pid]),
    ok = sderl_im_net:to(Conf, Pid, {reply, Ref, ok}),
    finish(S);
%% There was no message for `idle_ms`, or a client's monitor says that the client is gone.
handle_info(Over, #s{session = Session} = S) when Over =:= timeout; Over =:= over ->
    ok = to(a, {chat_over, Session}, S),
    ok = to(b, {chat_over, Session}, S),
    finish(S);
handle_info(_, S) ->
    next(S).

%% The clients are told before the database: if this process is killed in between, the database
%% tells them again.
finish(#s{conf = Conf, k = K, session = Session, monitors = Monitors} = S) ->
    lists:foreach(fun(Monitor) -> sderl_im_net:to(Conf, Monitor, {closed, Session}) end, Monitors),
    _ = sderl_im_chats:remove(Conf, K, Session),
    {stop, normal, S}.

to(a, Message, #s{conf = Conf, a = A}) -> sderl_im_net:to(Conf, A, Message);
to(b, Message, #s{conf = Conf, b = B}) -> sderl_im_net:to(Conf, B, Message).

other(a) -> b;
other(b) -> a.

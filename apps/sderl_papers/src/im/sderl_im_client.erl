%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_client).
-moduledoc """
A client of the messenger. It runs on a client node, beside `m:sderl_im_routers`.

It repeats each request until there is an answer, each time by another router, and gives up after
`tries` times. A message that is not acknowledged is sent again to the session; the receiver knows
it by its number, so that it is taken once. So the death of a process on the way costs time and no
message, except that of the session itself: then the client is told, or notices it, and the
conversation is *lost*, with the messages that were not acknowledged.
""".

-behaviour(gen_server).

-export([start_link/3, login/1, logout/1, chat/2, message/3, settle/2, finish/2, drop/2, chats/1,
         said/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([state/0, message/0]).

-doc "The state of a conversation.".
-type state() :: open | over | lost.

-doc "The messages to a client from databases, client monitors and sessions.".
-type message() ::
    {reply, Ref :: term(), Answer :: term()}
    | {monitor, pid()}
    | {there, Monitor :: pid()}
    | {invite, sderl_im_chats:session(), Session :: pid(), From :: term()}
    | {message, sderl_im_chats:session(), sderl_im_session:side(), pos_integer(), binary()}
    | {delivered, sderl_im_chats:session(), pos_integer()}
    | {chat_over, sderl_im_chats:session()}
    | {session_lost, sderl_im_chats:session(), Session :: pid()}.

-record(chat, {
    pid :: pid(),
    side :: sderl_im_session:side(),
    state = open :: state(),
    seq = 0 :: non_neg_integer(),
    %% Sent and not acknowledged.
    waiting = #{} :: #{pos_integer() => {SentUs :: integer(), Text :: binary(),
                                         Try :: pos_integer()}},
    %% From the other, the latest first.
    seen = #{} :: #{pos_integer() => binary()},
    settled = [] :: [gen_server:from()]
}).

-record(c, {
    conf :: sderl_im_layout:conf(),
    name :: term(),
    tally :: sderl_im_tally:tally(),
    monitor = none :: none | pid(),
    requests = #{} :: #{reference() => {gen_server:from(), sderl_im_router:request()
                                                           | {finish, sderl_im_chats:session()},
                                        Try :: pos_integer()}},
    chats = #{} :: #{sderl_im_chats:session() => #chat{}}
}).

-doc "Starts a client of that name, which is not logged in yet.".
-spec start_link(sderl_im_layout:conf(), Name :: term(), sderl_im_tally:tally()) ->
    gen_server:start_ret().
start_link(Conf, Name, Tally) -> gen_server:start_link(?MODULE, {Conf, Name, Tally}, []).

-doc "Logs in; again when it is logged in already, which does no harm.".
-spec login(pid()) -> ok | {error, client_already_logged_in | timeout}.
login(Client) -> gen_server:call(Client, login, infinity).

-doc "Logs out. Conversations end.".
-spec logout(pid()) -> ok | {error, timeout}.
logout(Client) -> gen_server:call(Client, logout, infinity).

-doc "Begins a conversation.".
-spec chat(pid(), Other :: term()) ->
    {ok, sderl_im_chats:session(), Session :: pid()}
    | {error, {receiver_not_found, term()} | not_logged_in | unavailable | timeout}.
chat(Client, Other) -> gen_server:call(Client, {chat, Other}, infinity).

-doc """
Sends a message, and gives its number. `settle/2` waits until it is delivered, which is also
counted.
""".
-spec message(pid(), sderl_im_chats:session(), Text :: binary()) ->
    {ok, pos_integer()} | {error, over | lost | unknown}.
message(Client, Session, Text) -> gen_server:call(Client, {message, Session, Text}, infinity).

-doc """
Waits until all that this client sent in the conversation is acknowledged, or the conversation has
ended: how, and how many messages were not.
""".
-spec settle(pid(), sderl_im_chats:session()) ->
    {state(), Unacknowledged :: non_neg_integer()} | unknown.
settle(Client, Session) -> gen_server:call(Client, {settle, Session}, infinity).

-doc "Ends a conversation for both.".
-spec finish(pid(), sderl_im_chats:session()) -> ok | {error, over | lost | unknown | timeout}.
finish(Client, Session) -> gen_server:call(Client, {finish, Session}, infinity).

-doc "Forgets a conversation; gives its state, and how many messages were not acknowledged.".
-spec drop(pid(), sderl_im_chats:session()) ->
    {state(), Unacknowledged :: non_neg_integer()} | unknown.
drop(Client, Session) -> gen_server:call(Client, {drop, Session}, infinity).

-doc "Its conversations.".
-spec chats(pid()) -> #{sderl_im_chats:session() => {Session :: pid(), state()}}.
chats(Client) -> gen_server:call(Client, chats, infinity).

-doc "The messages of the other client, in the order of its numbers.".
-spec said(pid(), sderl_im_chats:session()) -> [{pos_integer(), binary()}].
said(Client, Session) -> gen_server:call(Client, {said, Session}, infinity).

-doc false.
-spec init(term()) -> {ok, #c{}}.
init({Conf, Name, Tally}) ->
    proc_lib:set_label({sderl_im, client, Name}),
    {ok, #c{conf = Conf, name = Name, tally = Tally}}.

%% ---------------------------------------------------------------- asked by its user

-doc false.
-spec handle_call(term(), gen_server:from(), #c{}) -> {reply, term(), #c{}} | {noreply, #c{}}.
handle_call(login, From, #c{name = Name} = C) ->
    Ref = make_ref(),
    {noreply, request(Ref, From, {login, Name, self(), Ref}, 1, C)};
%% The client monitor ends the conversations as well, but a new one may not know them yet.
handle_call(logout, From, #c{name = Name, conf = Conf} = C0) ->
    Open = maps:to_list(open(C0)),
    lists:foreach(fun({_, Pid}) -> sderl_im_net:to(Conf, Pid, {finish, self(), none}) end, Open),
    C = lists:foldl(fun({Session, _}, Acc) -> ended(Session, over, Acc) end, C0, Open),
    Ref = make_ref(),
    {noreply, request(Ref, From, {logout, Name, self(), Ref, self()}, 1, C)};
handle_call({chat, Other}, From, #c{name = Name} = C) ->
    Ref = make_ref(),
    %% A repeated request asks for the same conversation.
    {noreply, request(Ref, From, {chat, {Name, Other, {node(), Ref}}, self(), Ref}, 1, C)};
handle_call({message, Session, Text}, _, #c{chats = Chats, tally = Tally} = C) ->
    case Chats of
        #{Session := #chat{state = open, seq = Last} = Chat} ->
            Seq = Last + 1,
            Now = erlang:monotonic_time(microsecond),
            ok = sderl_im_tally:sent(Tally, Now),
            {reply, {ok, Seq}, transmit(Session, Seq, {Now, Text, 1}, Chat#chat{seq = Seq}, C)};
        #{Session := #chat{state = State}} ->
            {reply, {error, State}, C};
        #{} ->
            {reply, {error, unknown}, C}
    end;
handle_call({settle, Session}, From, #c{chats = Chats} = C) ->
    case Chats of
        #{Session := #chat{state = open, waiting = Waiting, settled = Settled} = Chat}
          when map_size(Waiting) > 0 ->
            {noreply, C#c{chats = Chats#{Session := Chat#chat{settled = [From | Settled]}}}};
        #{Session := Chat} ->
            {reply, status(Chat), C};
        #{} ->
            {reply, unknown, C}
    end;
handle_call({finish, Session}, From, #c{chats = Chats} = C) ->
    case Chats of
        #{Session := #chat{state = open}} ->
            {noreply, request(make_ref(), From, {finish, Session}, 1, C)};
        #{Session := #chat{state = State}} -> {reply, {error, State}, C};
        #{} -> {reply, {error, unknown}, C}
    end;
handle_call({drop, Session}, _, #c{chats = Chats} = C) ->
    case maps:take(Session, Chats) of
        {Chat, Rest} -> {reply, status(Chat), C#c{chats = Rest}};
        error -> {reply, unknown, C}
    end;
handle_call(chats, _, #c{chats = Chats} = C) ->
    {reply, #{Session => {Pid, State} || Session := #chat{pid = Pid, state = State} <- Chats}, C};
handle_call({said, Session}, _, #c{chats = Chats} = C) ->
    {reply, case Chats of
        #{Session := #chat{seen = Seen}} -> lists:sort(maps:to_list(Seen));
        #{} -> []
    end, C}.

status(#chat{state = State, waiting = Waiting}) -> {State, map_size(Waiting)}.

-doc false.
-spec handle_cast(term(), #c{}) -> {noreply, #c{}}.
handle_cast(_, C) -> {noreply, C}.

%% ---------------------------------------------------------------- requests

request(Ref, From, Request, Try, #c{conf = Conf, requests = Requests} = C) ->
    case sderl_im_net:backoff(Conf, Try) of
        over ->
            gen_server:reply(From, {error, timeout}),
            C#c{requests = maps:remove(Ref, Requests)};
        Ms ->
            ok = ask(Ref, Request, Try, C),
            _ = erlang:send_after(Ms, self(), {again, Ref}),
            C#c{requests = Requests#{Ref => {From, Request, Try}}}
    end.

ask(Ref, {finish, Session}, _, #c{conf = Conf, chats = Chats}) ->
    case Chats of
        #{Session := #chat{pid = Pid}} -> sderl_im_net:to(Conf, Pid, {finish, self(), Ref});
        #{} -> ok
    end;
ask(_, Request, Try, #c{conf = Conf}) ->
    sderl_im_routers:send(Conf, Request, Try).

answered({login, Name, _, _}, {ok, Monitor}, From, #c{monitor = Before} = C) ->
    _ = Before =:= none andalso sderl_im_routers:enrol(Name),
    gen_server:reply(From, ok),
    C#c{monitor = Monitor};
answered({logout, _, _, _, _}, ok, From, C) ->
    gen_server:reply(From, ok),
    C;
answered({chat, Session, _, _}, {ok, Pid}, From, C) ->
    gen_server:reply(From, {ok, Session, Pid}),
    known(Session, Pid, a, C);
answered({finish, Session}, ok, From, C) ->
    gen_server:reply(From, ok),
    ended(Session, over, C);
answered(_, {error, _} = Error, From, C) ->
    gen_server:reply(From, Error),
    C.

%% A session that was killed before it was open has left a conversation of the same name.
known(Session, Pid, Side, #c{chats = Chats} = C) ->
    case Chats of
        #{Session := #chat{pid = Pid}} -> C;
        #{} -> C#c{chats = Chats#{Session => #chat{pid = Pid, side = Side}}}
    end.

%% ---------------------------------------------------------------- conversations

transmit(Session, Seq, {_, Text, Try} = Sent,
         #chat{pid = Pid, side = Side, waiting = Waiting} = Chat,
         #c{conf = Conf, chats = Chats} = C) ->
    case sderl_im_net:backoff(Conf, Try) of
        %% The client was not told so, but the session does not exist any more.
        over ->
            ended(Session, lost, C);
        Ms ->
            ok = sderl_im_net:to(Conf, Pid, {message, Side, Seq, Text}),
            _ = erlang:send_after(Ms, self(), {again, Session, Seq}),
            C#c{chats = Chats#{Session => Chat#chat{waiting = Waiting#{Seq => Sent}}}}
    end.

ended(Session, How, #c{chats = Chats, requests = Requests} = C) ->
    case Chats of
        #{Session := #chat{state = open, settled = Settled} = Chat0} ->
            Chat = Chat0#chat{state = How, settled = []},
            lists:foreach(fun(From) -> gen_server:reply(From, status(Chat)) end, Settled),
            Finishing = [{Ref, From} || Ref := {From, {finish, S}, _} <- Requests, S =:= Session],
            lists:foreach(fun({_, From}) -> gen_server:reply(From, {error, How}) end, Finishing),
            C#c{chats = Chats#{Session := Chat},
                requests = maps:without([Ref || {Ref, _} <- Finishing], Requests)};
        #{} ->
            C
    end.

-doc false.
-spec handle_info(term(), #c{}) -> {noreply, #c{}}.
handle_info({message, Session, From, Seq, Text},
            #c{conf = Conf, chats = Chats, tally = Tally} = C) ->
    case Chats of
        #{Session := #chat{pid = Pid, seen = Seen} = Chat} ->
            ok = sderl_im_net:to(Conf, Pid, {delivered, From, Seq}),
            case Seen of
                #{Seq := _} ->
                    ok = sderl_im_tally:twice(Tally),
                    {noreply, C};
                #{} ->
                    ok = sderl_im_tally:received(Tally),
                    {noreply, C#c{chats = Chats#{Session := Chat#chat{seen = Seen#{Seq => Text}}}}}
            end;
        #{} ->
            {noreply, C}
    end;
handle_info({delivered, Session, Seq}, #c{chats = Chats, tally = Tally} = C) ->
    case Chats of
        #{Session := #chat{state = open, waiting = #{Seq := {Sent, _, _}} = Waiting} = Chat} ->
            ok = sderl_im_tally:delivered(Tally, Sent, erlang:monotonic_time(microsecond)),
            {noreply, C#c{
                chats = Chats#{Session := settled(Chat#chat{waiting = maps:remove(Seq, Waiting)})}
            }};
        #{} ->
            {noreply, C}
    end;
handle_info({again, Session, Seq}, #c{chats = Chats, tally = Tally} = C) ->
    case Chats of
        #{Session := #chat{state = open, waiting = #{Seq := {Sent, Text, Try}}} = Chat} ->
            ok = sderl_im_tally:again(Tally),
            {noreply, transmit(Session, Seq, {Sent, Text, Try + 1}, Chat, C)};
        #{} ->
            {noreply, C}
    end;
handle_info({again, Ref}, #c{requests = Requests} = C) ->
    case Requests of
        #{Ref := {From, Request, Try}} -> {noreply, request(Ref, From, Request, Try + 1, C)};
        #{} -> {noreply, C}
    end;
handle_info({reply, Ref, Answer}, #c{requests = Requests} = C) ->
    case maps:take(Ref, Requests) of
        {{From, Request, _}, Rest} ->
            {noreply, answered(Request, Answer, From, C#c{requests = Rest})};
        error -> {noreply, C}
    end;
handle_info({invite, Session, Pid, _From}, #c{conf = Conf} = C) ->
    ok = sderl_im_net:to(Conf, Pid, accept),
    {noreply, known(Session, Pid, b, C)};
handle_info({chat_over, Session}, C) ->
    {noreply, ended(Session, over, C)};
handle_info({session_lost, Session, Pid}, #c{chats = Chats} = C) ->
    case Chats of
        #{Session := #chat{pid = Pid}} -> {noreply, ended(Session, lost, C)};
        #{} -> {noreply, C}
    end;
%% The monitor before has died. Or it lives and is unknown, because the database that started it
%% died before it had told its replica.
handle_info({monitor, Pid}, #c{conf = Conf, monitor = Before} = C) ->
    ok = sderl_im_net:to(Conf, Pid, {chats, open(C)}),
    _ = is_pid(Before) andalso Before =/= Pid andalso sderl_im_net:to(Conf, Before, replaced),
    {noreply, C#c{monitor = Pid}};
handle_info({there, Monitor}, #c{conf = Conf} = C) ->
    ok = sderl_im_net:to(Conf, Monitor, {chats, open(C)}),
    {noreply, C};
handle_info(_, C) ->
    {noreply, C}.

open(#c{chats = Chats}) -> #{Session => Pid || Session := #chat{pid = Pid, state = open} <- Chats}.

settled(#chat{waiting = Waiting, settled = Settled} = Chat) when map_size(Waiting) =:= 0 ->
    lists:foreach(fun(From) -> gen_server:reply(From, status(Chat)) end, Settled),
    Chat#chat{settled = []};
settled(Chat) ->
    Chat.

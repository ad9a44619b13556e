%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_monitor).
-moduledoc """
A client monitor: what a server knows of one client that is logged in, and its conversations.

It is started at login and is in the client database. When it dies the database starts another one,
which asks the client for its conversations. When the client is gone it ends the conversations; at
logout the client ends them, too.

When it is told that the client's node may be gone it asks the client, up to three times, and logs
it out if it does not answer: after 1 + 2 + 4 times `retry_ms`.
""".

-behaviour(gen_server).

-export([start_link/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([job/0, message/0]).

-doc """
What it is started for: a client that logs in, one that is logged in and has lost its monitor
(`again`), or a logout, after which it ends.
""".
-type job() ::
    {login, Client :: term(), pid(), Ref :: term()}
    | {logout, Client :: term(), pid(), Ref :: term(), Asks :: pid()}
    | {again, Client :: term(), pid()}.

-doc "The messages to a client monitor from its client, sessions and other monitors.".
-type message() ::
    {opened, sderl_im_chats:session(), Session :: pid()}
    | {closed, sderl_im_chats:session()}
    | {chats, #{sderl_im_chats:session() => Session :: pid()}}
    | {gone, node()}
    | replaced
    | over.

-record(m, {
    conf :: sderl_im_layout:conf(),
    client :: term(),
    pid :: pid(),
    chats = #{} :: #{sderl_im_chats:session() => pid()},
    %% The client was asked whether it is there: the timer, and the number of the try.
    asked = none :: none | {reference(), Try :: pos_integer()}
}).

-define(ASKS, 3).

-doc "Starts it, below its supervisor.".
-spec start_link(sderl_im_layout:conf(), job()) -> gen_server:start_ret().
start_link(Conf, Job) -> gen_server:start_link(?MODULE, {Conf, Job}, []).

-doc false.
-spec init({sderl_im_layout:conf(), job()}) -> {ok, #m{}, {continue, job()}}.
init({Conf, Job}) ->
    {ok, #m{conf = Conf, client = element(2, Job), pid = element(3, Job)}, {continue, Job}}.

-doc false.
-spec handle_continue(job(), #m{}) -> {noreply, #m{}} | {stop, normal, #m{}}.
handle_continue({login, Client, Pid, Ref}, #m{conf = Conf} = M) ->
    case sderl_im_clients:add(Conf, {Client, Pid, self()}) of
        {ok, ok} ->
            ok = sderl_im_net:to(Conf, Pid, {reply, Ref, {ok, self()}}),
            {noreply, ready(M)};
        %% It has asked twice.
        {ok, {exists, {_, Pid, Monitor}}} ->
            ok = sderl_im_net:to(Conf, Pid, {reply, Ref, {ok, Monitor}}),
            {stop, normal, M};
        {ok, {exists, _}} ->
            ok = sderl_im_net:to(Conf, Pid, {reply, Ref, {error, client_already_logged_in}}),
            {stop, normal, M};
        %% No database for seconds; the client asks again.
        {error, _} ->
            {stop, normal, M}
    end;
handle_continue({again, _, Pid}, #m{conf = Conf} = M) ->
    ok = sderl_im_net:to(Conf, Pid, {monitor, self()}),
    {noreply, ready(M)};
handle_continue({logout, Client, Pid, Ref, Asks}, #m{conf = Conf} = M) ->
    case sderl_im_clients:remove(Conf, Client, Pid) of
        {ok, {ok, {_, _, Monitor}}} ->
            Monitor ! over,
            ok = sderl_im_net:to(Conf, Asks, {reply, Ref, ok});
        {ok, none} ->
            ok = sderl_im_net:to(Conf, Asks, {reply, Ref, ok});
        {error, _} ->
            ok
    end,
    {stop, normal, M}.

ready(#m{client = Client} = M) ->
    proc_lib:set_label({sderl_im, ready, {monitor, Client}}),
    M.

-doc false.
-spec handle_call(row, gen_server:from(), #m{}) -> {reply, {ok, sderl_im_clients:row()}, #m{}}.
handle_call(row, _, #m{client = Client, pid = Pid} = M) -> {reply, {ok, {Client, Pid, self()}}, M}.

-doc false.
-spec handle_cast(term(), #m{}) -> {noreply, #m{}}.
handle_cast(_, M) -> {noreply, M}.

-doc false.
-spec handle_info(term(), #m{}) -> {noreply, #m{}} | {stop, normal, #m{}}.
handle_info({opened, Session, SessionPid}, #m{chats = Chats} = M) ->
    {noreply, M#m{chats = Chats#{Session => SessionPid}}};
handle_info({closed, Session}, #m{chats = Chats} = M) ->
    {noreply, M#m{chats = maps:remove(Session, Chats)}};
handle_info({chats, Of}, #m{chats = Chats} = M) ->
    {noreply, M#m{chats = maps:merge(Of, Chats), asked = none}};
handle_info(over, M) ->
    {stop, normal, end_chats({finish, M#m.pid, none}, M)};
handle_info(replaced, M) ->
    {stop, normal, M};
handle_info({gone, Node}, #m{pid = Pid, asked = none} = M) when node(Pid) =:= Node ->
    ask(1, M);
handle_info({timeout, Ref, silent}, #m{asked = {Ref, Try}} = M) ->
    ask(Try + 1, M);
handle_info(_, M) ->
    {noreply, M}.

ask(Try, #m{conf = Conf, pid = Pid} = M) ->
    case sderl_im_net:backoff(Conf, Try) of
        Ms when is_integer(Ms), Try =< ?ASKS ->
            ok = sderl_im_net:to(Conf, Pid, {there, self()}),
            {noreply, M#m{asked = {erlang:start_timer(Ms, self(), silent), Try}}};
        _ ->
            gone(M)
    end.

%% The client may be alive but out of reach from here; its sessions, which end now, tell it.
gone(#m{conf = Conf, client = Client, pid = Pid} = M) ->
    _ = sderl_im_clients:remove(Conf, Client, Pid),
    {stop, normal, end_chats(over, M)}.

end_chats(Message, #m{conf = Conf, chats = Chats} = M) ->
    maps:foreach(fun(_, SessionPid) -> sderl_im_net:to(Conf, SessionPid, Message) end, Chats),
    M.

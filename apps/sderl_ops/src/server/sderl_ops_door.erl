%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_door).
-moduledoc """
The Unix socket of the service: one request per connection, as `m:sderl_ops_wire` says. Only the
service's own user can open it, because nobody else may enter its folder.

Each connection has a process of its own, so one that waits holds up no other. A client that sends
no request in time is disconnected.
""".

-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(REQUEST_MS, 30_000).
-define(SEND_MS, 30_000).
-define(MOST_CONNECTIONS, 64).

-record(s, {
    folder :: file:filename(),
    file :: file:filename(),
    socket :: gen_tcp:socket(),
    acceptor :: pid(),
    open = 0 :: non_neg_integer()
}).

-doc "Listens in the service's folder.".
-spec start_link(file:filename()) -> gen_server:start_ret().
start_link(Folder) -> gen_server:start_link(?MODULE, Folder, []).

-doc false.
-spec init(file:filename()) -> {ok, #s{}} | {stop, term()}.
init(Folder) ->
    process_flag(trap_exit, true),
    maybe
        {ok, File} ?= sderl_ops_place:socket(Folder),
        %% One service has the folder (sderl_ops_service), so this is what an earlier one left.
        _ = file:delete(File),
        %% A connection that finds the queue full would be dropped without an answer.
        Options = [binary, {ifaddr, {local, File}}, {active, false}, {packet, raw},
                   {backlog, 2 * ?MOST_CONNECTIONS},
                   {send_timeout, ?SEND_MS}, {send_timeout_close, true}],
        {ok, Socket} ?= gen_tcp:listen(0, Options),
        ok ?= file:change_mode(File, 8#600),
        Door = self(),
        Acceptor = spawn_link(fun() -> accept(Socket, Door) end),
        {ok, #s{folder = Folder, file = File, socket = Socket, acceptor = Acceptor}}
    else
        {error, Why} -> {stop, {socket, Why}}
    end.

accept(Socket, Door) ->
    case gen_tcp:accept(Socket) of
        {ok, Connection} ->
            ok = gen_tcp:controlling_process(Connection, Door),
            Door ! {connection, Connection},
            accept(Socket, Door);
        {error, closed} ->
            %% The door has closed it.
            ok
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, ok, #s{}}.
handle_call(_, _, S) -> {reply, ok, S}.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(_, S) -> {noreply, S}.

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}} | {stop, term(), #s{}}.
handle_info({connection, Connection}, #s{open = Open} = S) when Open >= ?MOST_CONNECTIONS ->
    _ = send(Connection, {busy, "the service has too many connections: try again"}),
    ok = gen_tcp:close(Connection),
    {noreply, S};
handle_info({connection, Connection}, #s{folder = Folder, open = Open} = S) ->
    {Pid, _} = spawn_monitor(fun() ->
        receive go -> serve(Connection, Folder) end
    end),
    ok = gen_tcp:controlling_process(Connection, Pid),
    Pid ! go,
    {noreply, S#s{open = Open + 1}};
handle_info({'DOWN', _, process, _, _}, #s{open = Open} = S) ->
    {noreply, S#s{open = Open - 1}};
handle_info({'EXIT', Acceptor, Why}, #s{acceptor = Acceptor} = S) ->
    {stop, {acceptor, Why}, S};
handle_info(_, S) ->
    {noreply, S}.

-doc false.
-spec terminate(term(), #s{}) -> ok.
terminate(_, #s{socket = Socket, file = File}) ->
    ok = gen_tcp:close(Socket),
    _ = file:delete(File),
    ok.

%% ---------------------------------------------------------------- one connection

serve(Connection, Folder) ->
    _ = case read_line(Connection, <<>>, erlang:monotonic_time(millisecond) + ?REQUEST_MS) of
        {ok, Line} ->
            case sderl_ops_wire:decode_request(Line) of
                {ok, Request} -> answer(Request, Connection, Folder);
                {error, Sentence} -> send(Connection, {error, Sentence, []})
            end;
        too_long ->
            send(Connection, {error, "the request is longer than 128 KiB", []});
        {error, _} ->
            ok
    end,
    gen_tcp:close(Connection).

%% A client need not read the events. If it disconnects, the waiting ends, not the work.
answer(Request, Connection, Folder) ->
    Tell = fun
        (waiting) -> watch(Connection);
        (Answer) ->
            case send(Connection, Answer) of
                ok -> ok;
                {error, _} -> exit(normal)
            end
    end,
    try sderl_ops_requests:do(Request, Folder, Tell) of
        Answer -> send(Connection, Answer)
    catch
        error:Why:Stack ->
            logger:error("sderl_ops: the request ~0tp failed: ~0tP at ~0tP",
                         [maps:get(do, Request), Why, 20, Stack, 20]),
            send(Connection, failed("this is a defect of the service; its log tells more",
                                    sderl_ops_wire:changes(Request)));
        %% The server has ended, or does not answer; if there was none, nothing was done.
        exit:Why when Why =/= normal ->
            logger:warning("sderl_ops: the request ~0tp was not answered: ~0tP",
                           [maps:get(do, Request), Why, 20]),
            send(Connection, failed("the service did not answer in time, or is about to begin "
                                    "again: ask again in some seconds",
                                    sderl_ops_wire:changes(Request) andalso not is_nobody(Why)))
    end.

is_nobody({noproc, {gen_server, call, _}}) -> true;
is_nobody(_) -> false.

failed(Sentence, false) -> {unavailable, Sentence};
failed(Sentence, true) -> {unsure, [Sentence, "; `history` and `status` tell whether it was done"]}.

%% Work may take hours without an event, so another process waits for the end of the connection, and
%% ends this one.
watch(Connection) ->
    _ = spawn_link(fun() -> await_close(Connection) end),
    ok.

await_close(Connection) ->
    case gen_tcp:recv(Connection, 0) of
        {ok, _} -> await_close(Connection);
        {error, _} -> exit({shutdown, closed})
    end.

send(Connection, Answer) -> gen_tcp:send(Connection, sderl_ops_wire:encode_answer(Answer)).

read_line(Connection, Left, Deadline) ->
    Wait = max(0, Deadline - erlang:monotonic_time(millisecond)),
    case gen_tcp:recv(Connection, 0, Wait) of
        {ok, Bytes} ->
            case sderl_ops_wire:lines(Bytes, Left, sderl_ops_wire:most_request_bytes()) of
                {ok, [Line | _], _} -> {ok, Line};
                {ok, [], More} -> read_line(Connection, More, Deadline);
                too_long -> too_long
            end;
        {error, _} = Error ->
            Error
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_client).
-moduledoc "Sends requests to the service of operations that runs in a folder.".

-export([ask/3]).

-type answer() ::
    {done, #{binary() => term()}} | {error, unicode:chardata(), [unicode:chardata()]}.

-define(CONNECT_MS, 5000).
%% A request without waiting is answered within this time, even if the service is busy.
-define(QUICK_MS, 60_000).

-doc """
Sends a request, and calls `Tell` with each event until the answer. `not_running`: no service runs
in the folder. A request that waits for work may take any time; `Tell` may end the process.
""".
-spec ask(
    Folder :: file:filename(),
    sderl_ops_wire:request(),
    Tell :: fun((sderl_ops_wire:answer()) -> term())
) -> answer() | not_running.
ask(Folder, Request, Tell) ->
    maybe
        {ok, Path} ?= sderl_ops_place:socket(Folder),
        {ok, Socket} ?= connect(Path),
        ok ?= gen_tcp:send(Socket, sderl_ops_wire:encode_request(Request)),
        Answer = receive_answer(Socket, patience(Request), <<>>, Tell),
        ok = gen_tcp:close(Socket),
        Answer
    else
        {error, Why} when Why =:= enoent; Why =:= econnrefused -> not_running;
        {error, closed} -> gone();
        {error, Why} when is_atom(Why) ->
            {error, ["the service in ", Folder, " cannot be asked: ", inet:format_error(Why)], []};
        {error, Text} -> {error, Text, []}
    end.

connect(Path) ->
    gen_tcp:connect({local, unicode:characters_to_binary(Path)}, 0,
                    [local, binary, {active, false}, {packet, raw}], ?CONNECT_MS).

%% These pack releases and look at all hosts first, so they take any time, too.
patience(#{do := Do}) when Do =:= plan; Do =:= apply; Do =:= scale; Do =:= rollback -> infinity;
patience(#{wait := true}) -> infinity;
patience(_) -> ?QUICK_MS.

receive_answer(Socket, Patience, Left, Tell) ->
    case gen_tcp:recv(Socket, 0, Patience) of
        {ok, Bytes} ->
            case sderl_ops_wire:lines(Bytes, Left, sderl_ops_wire:most_answer_bytes()) of
                {ok, Lines, More} ->
                    case handle_lines(Lines, Tell) of
                        more -> receive_answer(Socket, Patience, More, Tell);
                        Answer -> Answer
                    end;
                too_long ->
                    {error, "the service's answer is too long", []}
            end;
        {error, timeout} ->
            {error, "the service does not answer: its log may tell why", []};
        {error, _} ->
            gone()
    end.

gone() ->
    {error, "the service ended before it answered; what it had begun goes on when it is started "
            "again", []}.

handle_lines([], _) -> more;
handle_lines([Line | Lines], Tell) ->
    case sderl_ops_wire:decode_answer(Line) of
        {ok, {done, _} = Done} -> Done;
        {ok, {error, _, _} = Error} -> Error;
        {ok, Event} ->
            _ = Tell(Event),
            handle_lines(Lines, Tell);
        {error, Text} -> {error, Text, []}
    end.

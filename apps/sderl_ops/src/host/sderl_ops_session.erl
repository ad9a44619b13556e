%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_session).
-moduledoc """
One session with the host script (`serve` of `priv/host.sh`): calls are sent as lines and done side
by side, and the output of each comes back with the call's number.

The session ends with its program, after a minute without calls, and with the process that began it.
The script then finishes the calls that it has begun, and begins no others. If the host does not
answer, the program that reaches it has to end by itself.
""".

-behaviour(gen_server).

-export([start_link/1, call/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(call, {
    from :: gen_server:from(),
    %% Lines in reverse order.
    output = [] :: [iodata()]
}).

-record(s, {
    port :: port(),
    calls = #{} :: #{Number :: pos_integer() => #call{}},
    %% An incomplete line, and the last output that belongs to no call.
    line = <<>> :: binary(),
    said = <<>> :: binary()
}).

-define(IDLE_MS, 60_000).
-define(MOST_SAID, 4_096).

-doc "Starts the program, and does not wait for it.".
-spec start_link([unicode:chardata(), ...]) -> gen_server:start_ret().
start_link(Command) -> gen_server:start_link(?MODULE, Command, []).

-doc "A call, with its input; see `sderl_ops_sessions:call/5`.".
-spec call(pid(), [binary()], iodata(), Limit :: pos_integer()) ->
    {ok, Status :: non_neg_integer(), Output :: binary()}
    | {ended, Status :: non_neg_integer(), Said :: binary()}
    | {error, timeout}
    | none.
call(Session, Arguments, Data, Limit) ->
    Line = [lists:join(" ", Arguments), "\n"],
    try
        gen_server:call(Session, {call, Line, Data}, Limit)
    catch
        exit:{timeout, _} -> {error, timeout};
        %% The session had ended before the call.
        exit:{noproc, _} -> none;
        exit:_ -> {ended, 1, <<>>}
    end.

-doc false.
-spec init([unicode:chardata(), ...]) -> {ok, #s{}, timeout()}.
init([Program | Arguments]) ->
    Port = open_port({spawn_executable, Program},
                     [{args, [unicode:characters_to_binary(Word) || Word <- Arguments]},
                      binary, exit_status, stderr_to_stdout, use_stdio, hide]),
    {ok, #s{port = Port}, ?IDLE_MS}.

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) ->
    {noreply, #s{}, timeout()} | {reply, none, #s{}, timeout()}.
handle_call({call, Line, Data}, From, #s{port = Port, calls = Calls} = S) ->
    Number = free(1, Calls),
    Bytes = iolist_size(Data),
    ok = sderl_ops_sent:count(control, iolist_size(Line) + Bytes),
    try port_command(Port, [integer_to_binary(Number), " ", integer_to_binary(Bytes), " ", Line,
                            Data]) of
        true -> next(S#s{calls = Calls#{Number => #call{from = From}}})
    catch
        %% The program has ended; its exit status comes next.
        error:badarg -> {reply, none, S, ?IDLE_MS}
    end.

%% The script keeps files by the number of the call, so low numbers are used again.
free(Number, Calls) when is_map_key(Number, Calls) -> free(Number + 1, Calls);
free(Number, _) -> Number.

next(#s{calls = Calls} = S) when Calls =:= #{} -> {noreply, S, ?IDLE_MS};
next(S) -> {noreply, S, infinity}.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}, timeout()}.
handle_cast(_, S) -> next(S).

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}, timeout()} | {stop, normal, #s{}}.
handle_info({Port, {data, Data}}, #s{port = Port, line = Line} = S) ->
    All = binary:split(<<Line/binary, Data/binary>>, ~"\n", [global]),
    {Lines, [Rest]} = lists:split(length(All) - 1, All),
    next(lists:foldl(fun heard/2, S#s{line = Rest}, Lines));
handle_info({Port, {exit_status, Status}}, #s{port = Port, calls = Calls} = S) ->
    #s{said = Said, line = Line} = S,
    _ = [gen_server:reply(From, {ended, Status, <<Said/binary, Line/binary>>})
         || _ := #call{from = From} <- Calls],
    {stop, normal, S#s{calls = #{}}};
handle_info(timeout, #s{calls = Calls} = S) when Calls =:= #{} ->
    {stop, normal, S};
handle_info(_, S) ->
    next(S).

heard(Line, #s{calls = Calls} = S) ->
    case of_call(Line, Calls) of
        {Number, <<"= ", Status/binary>>} ->
            {#call{from = From, output = Output}, Left} = maps:take(Number, Calls),
            gen_server:reply(From, {ok, binary_to_integer(Status),
                                    iolist_to_binary(lists:reverse(Output))}),
            S#s{calls = Left};
        {Number, <<"- ", Complaint/binary>>} ->
            S#s{calls = add(Number, Complaint, Calls)};
        {Number, Answer} ->
            S#s{calls = add(Number, Answer, Calls)};
        none ->
            S#s{said = last(<<(S#s.said)/binary, Line/binary, "\n">>)}
    end.

of_call(Line, Calls) ->
    case string:to_integer(Line) of
        {Number, <<" ", Rest/binary>>} when is_map_key(Number, Calls) -> {Number, Rest};
        _ -> none
    end.

add(Number, Line, Calls) ->
    #{Number := #call{output = Output} = Call} = Calls,
    Calls#{Number := Call#call{output = [[Line, "\n"] | Output]}}.

last(Said) when byte_size(Said) > ?MOST_SAID ->
    binary:part(Said, byte_size(Said), -?MOST_SAID);
last(Said) ->
    Said.

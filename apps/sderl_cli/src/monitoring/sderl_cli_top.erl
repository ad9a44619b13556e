%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_top).
-moduledoc """
`bin/sderl top`: what the dashboard shows, in a terminal.

Into a pipe, or with `--once`, it prints one table when the first numbers are there, and ends. The
screen is that of `m:sderl_cli_top_screen`.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_clock, [now_ms/0]).

%% The wait for the numbers of the second interval: rates need two looks.
-define(FIRST_MS, 20_000).
-define(SIZE_MS, 2000).

-doc false.
-spec summary() -> string().
summary() -> "watch a running cluster in a terminal: groups, nodes, links, findings".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(command()).

-doc false.
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Parsed} ?= sderl_command:parse(Args, ["top"], command()),
        {ok, Options} ?= checked(sderl_cli_watch:check(Parsed)),
        ok ?= sderl_cli_watch:start(Options),
        {ok, Data} ?= subscribed(),
        case terminal(Parsed) of
            none -> once(Data);
            Name -> watched(Data, Name)
        end
    end.

command() ->
    #{
        help =>
            """
            Attaches to a running cluster as a hidden node and shows its groups, nodes, links and
            findings, on a screen that is refreshed each second. By default nothing is loaded into
            nodes that run without this library; it shows of them what the functions of plain OTP
            report. Keys: q ends it; left and right, or 1 to 5, choose the table; up and down
            scroll; s sorts. The nodes of "bin/sderl demo" are found by name, without a cookie's
            file.

              bin/sderl top --seed a@host --cookie-file ~/.erlang.cookie
              bin/sderl top --seed a@host --once | less
            """,
        arguments => sderl_cli_watch:arguments() ++ [
            sderl_command:flag(once, "print one table and end (so does a pipe)")
        ]
    }.

checked({error, Message}) -> {usage, [Message, "\n\"bin/sderl top --help\" lists the options."]};
checked(Ok) -> Ok.

subscribed() ->
    case sderl_mon_hub:subscribe() of
        {ok, Data} -> {ok, Data};
        {error, Reason} ->
            {error, io_lib:format("the monitoring does not answer: ~0tP", [Reason, 20])}
    end.

%% `bin/sderl` names the terminal, and puts its settings right afterwards.
terminal(#{once := true}) ->
    none;
terminal(_) ->
    case os:getenv("SDERL_TTY") =:= "1" andalso os:getenv("SDERL_TERMINAL", "") of
        "/dev/" ++ _ = Name -> Name;
        _ -> none
    end.

stty(Name, Args) ->
    string:trim(os:cmd(lists:concat(["stty -F '", Name, "' ", Args, " 2>/dev/null"]))).

%% ---------------------------------------------------------------- once

once(Data) ->
    Deadline = now_ms() + ?FIRST_MS,
    case first(Data, 0, Deadline) of
        {ok, Full} ->
            Lines = sderl_cli_top_screen:lines(Full, sderl_cli_top_screen:new(),
                                               #{columns => columns(), rows => infinity}),
            io:put_chars([[Line, $\n] || Line <- Lines]);
        {error, _} = Error ->
            Error
    end.

%% The second frame with nodes has rates.
first(Data, Frames, Deadline) ->
    receive
        {sderl_mon, frame, #{nodes := Nodes} = Frame} when map_size(Nodes) > 0, Frames > 0 ->
            {ok, merged(frame, Frame, Data)};
        {sderl_mon, frame, #{nodes := Nodes}} ->
            first(Data, Frames + min(1, map_size(Nodes)), Deadline);
        {sderl_mon, What, Value} -> first(merged(What, Value, Data), Frames, Deadline)
    after max(0, Deadline - now_ms()) ->
        case Data of
            #{topology := #{nodes := Nodes}} when map_size(Nodes) > 0 -> {ok, Data};
            _ ->
                {error, "no node told its numbers within 20 s; is the seed a node of the cluster, "
                        "and does the monitoring run?"}
        end
    end.

columns() ->
    case string:to_integer(os:getenv("SDERL_COLUMNS", "160")) of
        {Columns, _} when is_integer(Columns), Columns > 0 -> Columns;
        _ -> 160
    end.

merged(What, Value, Data) when What =:= topology; What =:= frame; What =:= findings ->
    Data#{What => Value};
merged(_, _, Data) -> Data.

%% ---------------------------------------------------------------- on a screen

watched(Data, Name) ->
    _ = sderl_signals:tell(self()),
    _ = stty(Name, "-icanon -echo min 1 time 0"),
    Self = self(),
    _ = spawn_link(fun() -> typed(Self) end),
    %% Another screen, so that what was there comes back; no cursor on it.
    io:put_chars("\e[?1049h\e[?25l"),
    try
        look(Data, sderl_cli_top_screen:new(), Name, {dimensions(Name), now_ms()})
    after
        io:put_chars("\e[?25h\e[?1049l")
    end.

%% The virtual machine itself has no input.
typed(Owner) ->
    case file:open("/dev/tty", [read, raw, binary]) of
        {ok, Terminal} -> typed(Owner, Terminal, <<>>);
        {error, _} -> ok
    end.

%% A read of one byte returns at once; a key of several comes in one go, and is whole when its last
%% byte is there.
typed(Owner, Terminal, Begun) ->
    case file:read(Terminal, 1) of
        {ok, Byte} ->
            case <<Begun/binary, Byte/binary>> of
                <<"\e">> = Key -> typed(Owner, Terminal, Key);
                <<"\e[">> = Key -> typed(Owner, Terminal, Key);
                <<"\e[", C>> = Key when C >= $0, C =< $9 -> typed(Owner, Terminal, Key);
                Key ->
                    Owner ! {keys, sderl_cli_top_screen:keys(Key)},
                    typed(Owner, Terminal, <<>>)
            end;
        _ ->
            ok
    end.

look(Data, State, Name, {{Columns, Rows}, SizedAt} = Size) ->
    Lines = sderl_cli_top_screen:lines(Data, State, #{columns => Columns, rows => Rows,
                                                      color => os:getenv("NO_COLOR") =:= false}),
    io:put_chars(["\e[H", lists:join("\e[K\r\n", Lines), "\e[K\e[J"]),
    case changed(Data, State) of
        {Data1, State1} ->
            case now_ms() - SizedAt > ?SIZE_MS of
                true -> look(Data1, State1, Name, {dimensions(Name), now_ms()});
                false -> look(Data1, State1, Name, Size)
            end;
        quit ->
            ok
    end.

%% Everything that has come is taken before the next drawing.
changed(Data, State) ->
    receive
        Message -> drained(taken(Message, Data, State))
    end.

drained(quit) ->
    quit;
drained({Data, State}) ->
    receive
        Message -> drained(taken(Message, Data, State))
    after 0 -> {Data, State}
    end.

taken({keys, Keys}, Data, State) ->
    case lists:foldl(fun(_, quit) -> quit; (Key, S) -> sderl_cli_top_screen:key(Key, S) end, State,
                     Keys) of
        quit -> quit;
        State1 -> {Data, State1}
    end;
taken({sderl_signals, stop}, _, _) ->
    quit;
taken({sderl_mon, What, Value}, Data, State) ->
    {merged(What, Value, Data), State};
taken(_, Data, State) ->
    {Data, State}.

dimensions(Name) ->
    case [string:to_integer(Word) || Word <- string:lexemes(stty(Name, "size"), " ")] of
        [{Rows, ""}, {Columns, ""}] when Rows > 0, Columns > 0 -> {Columns, Rows};
        _ -> {columns(), 24}
    end.

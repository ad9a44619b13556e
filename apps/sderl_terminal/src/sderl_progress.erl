%% SPDX-License-Identifier: Apache-2.0
-module(sderl_progress).
-moduledoc """
A progress bar with the remaining time, on stderr, for a person at a terminal; a pipe or a file
gets nothing. `bin/sderl` sets `SDERL_TTY=1` where there is a terminal.

The bar is one line that is drawn again and again; `done/0` wipes it out before anything else is
printed, and `over/0` for good. It leaves room for the `^C` that a terminal writes behind it, so
that wiping the line wipes that, too.
""".

-export([reporter/1, during/3, watching/4, done/0, over/0, line/5, duration/1]).

%% Between two drawings of a bar that grows with time.
-define(TICK_MS, 200).
%% Between two looks at something.
-define(LOOK_MS, 500).

-doc """
A function to call as `Fun(Done, Total)` while work goes on, such as a fleet's `progress`.
The remaining time is that at the same pace, from the moment this function is called.
""".
-spec reporter(Label :: unicode:chardata()) -> fun((non_neg_integer(), pos_integer()) -> ok).
reporter(Label) ->
    case wanted() of
        true ->
            Start = erlang:monotonic_time(millisecond),
            fun(Done, Total) ->
                draw(Label, Done, Total, erlang:monotonic_time(millisecond) - Start)
            end;
        false ->
            fun(_Done, _Total) -> ok end
    end.

-doc "The result of `Fun`, which should take `Ms`; meanwhile the bar grows with time.".
-spec during(Label :: unicode:chardata(), Ms :: pos_integer(), fun(() -> Result)) -> Result.
during(Label, Ms, Fun) ->
    case wanted() of
        true ->
            Start = erlang:monotonic_time(millisecond),
            Ticker = spawn_link(fun() -> tick(Label, Ms, Start) end),
            try
                Fun()
            after
                stop(Ticker)
            end;
        false ->
            Fun()
    end.

tick(Label, Ms, Start) ->
    Passed = erlang:monotonic_time(millisecond) - Start,
    draw(Label, min(Passed, Ms), Ms, Passed),
    receive
        {stop, From} -> From ! {stopped, self()}
    after ?TICK_MS -> tick(Label, Ms, Start)
    end.

-doc """
The result of `Fun`, whose duration is not known. Meanwhile `Look` is called about every half
second, whether or not there is a terminal, with the state that it gave before (`State` at first);
its text is shown behind the label.
""".
-spec watching(Label :: unicode:chardata(), fun((State) -> {Text :: unicode:chardata(), State}),
               State, fun(() -> Result)) -> Result.
watching(Label, Look, State, Fun) ->
    Watcher = spawn_link(fun() -> watch(Label, Look, State) end),
    try
        Fun()
    after
        stop(Watcher)
    end.

watch(Label, Look, State0) ->
    receive
        {stop, From} -> From ! {stopped, self()}
    after ?LOOK_MS ->
        {Text, State} = Look(State0),
        show(string:slice([Label, ": ", Text], 0, max(0, columns() - 3))),
        watch(Label, Look, State)
    end.

%% Waits until the ticker has drawn for the last time, so that nothing is drawn over other output.
stop(Ticker) ->
    Ticker ! {stop, self()},
    receive
        {stopped, Ticker} -> done()
    end.

-doc "Wipes the bar out.".
-spec done() -> ok.
done() ->
    case wanted() of
        true -> wipe();
        false -> ok
    end.

-doc """
Wipes the bar out; from now on no process draws it. Gives a function that wipes it out once more, to
be called at the very end, because a process may have been drawing just now.
""".
-spec over() -> fun(() -> ok).
over() ->
    case wanted() of
        true ->
            true = os:putenv("SDERL_TTY", "0"),
            wipe(),
            fun wipe/0;
        false ->
            fun() -> ok end
    end.

wipe() -> io:put_chars(standard_error, "\r\e[K").

wanted() ->
    os:getenv("SDERL_TTY") =:= "1".

draw(Label, Done, Total, PassedMs) ->
    show(line(Label, Done, Total, PassedMs, columns())).

show(Text) ->
    case wanted() of
        true -> io:put_chars(standard_error, ["\r", Text, "\e[K"]);
        false -> ok
    end.

columns() ->
    case string:to_integer(os:getenv("SDERL_COLUMNS", "80")) of
        {Columns, _} when is_integer(Columns), Columns > 0 -> Columns;
        _ -> 80
    end.

-doc "The bar as text, at most `Columns - 3` wide. `PassedMs` is the time that `Done` took.".
-spec line(
    Label :: unicode:chardata(),
    Done :: non_neg_integer(),
    Total :: pos_integer(),
    PassedMs :: non_neg_integer(),
    Columns :: pos_integer()
) -> unicode:chardata().
line(Label, Done, Total, PassedMs, Columns) ->
    Left = remaining(Done, Total, PassedMs),
    Percent = io_lib:format(" ~3w %", [100 * Done div Total]),
    Width = Columns - 6 - string:length(Label) - string:length(Percent) - string:length(Left),
    case Width >= 5 of
        true ->
            Full = Width * Done div Total,
            [Label, " [", lists:duplicate(Full, $#), lists:duplicate(Width - Full, $.), "]",
             Percent, Left];
        false ->
            string:slice([Label, Percent, Left], 0, max(0, Columns - 3))
    end.

remaining(0, _Total, _PassedMs) -> "";
remaining(Done, Total, PassedMs) -> [", ", duration(PassedMs * (Total - Done) div Done), " left"].

-doc "Milliseconds as people read them.".
-spec duration(Ms :: non_neg_integer()) -> unicode:chardata().
duration(Ms) when Ms < 60_000 -> io_lib:format("~w s", [(Ms + 999) div 1000]);
duration(Ms) -> io_lib:format("~w min ~2..0w s", [Ms div 60_000, Ms rem 60_000 div 1000]).

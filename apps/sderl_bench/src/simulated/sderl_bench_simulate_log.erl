%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_simulate_log).
-moduledoc """
The findings of a simulation of hours, in a file that only grows, a line of JSON for each: `begun`,
a `violation` as soon as it is found, and now and then `so_far`. A killed run loses only the line
that it was writing, and the next run begins a new line.
""".

-export([open/1, begun/2, seen/4, ended/3, history/2, close/1]).
-export_type([log/0, history/0]).

-opaque log() :: file:io_device().
-doc """
The schedules with the same parameters in a file: how many, the last seed, the seeds that failed.
""".
-type history() ::
    #{schedules := non_neg_integer(), last_seed := integer(), failed := #{integer() => []}}.

%% Schedules between two lines that say how far it is.
-define(EVERY, 200).

-doc "Opens a file, new or to be continued. An error is a message for the user.".
-spec open(string()) -> {ok, log()} | {error, unicode:chardata()}.
open(Name) ->
    case file:open(Name, [append, read, raw, binary]) of
        {ok, File} ->
            ok = whole_line(File),
            {ok, File};
        {error, Reason} ->
            {error, ["cannot write ", Name, ": ", file:format_error(Reason)]}
    end.

whole_line(File) ->
    case file:position(File, eof) of
        {ok, Size} when Size > 0 ->
            case file:pread(File, Size - 1, 1) of
                {ok, <<"\n">>} -> ok;
                _ -> file:write(File, "\n")
            end;
        _ -> ok
    end.

-doc "A run begins.".
-spec begun(log(), map()) -> ok.
begun(Log, Params) -> write(Log, #{what => begun, params => Params}).

-doc """
A schedule has ended: written if it broke a promise, or if many have ended since the last line.
""".
-spec seen(log(), sderl_sim:report(), sderl_sim_batch:summary(),
           fun((integer()) -> unicode:chardata())) -> ok.
seen(Log, #{outcome := failed, seed := Seed, why := Why, at_ms := At}, _, Replay) ->
    write(Log, #{what => violation, seed => Seed, at_ms => At,
                 why => unicode:characters_to_binary(io_lib:format("~0tP", [Why, 60])),
                 replay => unicode:characters_to_binary(Replay(Seed))});
seen(Log, #{seed := Seed}, #{schedules := K, failed := Failed, faults := Faults}, _)
  when K rem ?EVERY =:= 0 ->
    write(Log, #{what => so_far, schedules => K, last_seed => Seed, violations => length(Failed),
                 faults => Faults});
seen(_, _, _, _) -> ok.

-doc "A run has come to its end, by itself or because it was stopped.".
-spec ended(log(), non_neg_integer(), non_neg_integer()) -> ok.
ended(Log, Schedules, Violations) ->
    write(Log, #{what => ended, schedules => Schedules, violations => Violations}).

-doc """
The record of the runs with these parameters in a file, whatever their other parameters (such as the
seed). The work of a killed run after its last line is not counted.
""".
-spec history(string(), map()) -> {ok, history()} | {error, unicode:chardata()}.
history(Name, Params) ->
    case file:read_file(Name) of
        {ok, Text} ->
            Lines = [Line
                     || Part <- binary:split(Text, <<"\n">>, [global]),
                        {ok, Line} <- [parsed(Part)]],
            {ok, history(Lines, decoded(Params), false, #{},
                         #{schedules => 0, last_seed => 0, failed => #{}})};
        {error, Reason} ->
            {error, ["cannot read ", Name, ": ", file:format_error(Reason)]}
    end.

%% `Run` is the progress of the run that the lines belong to.
history([], _, _, Run, So) -> counted(Run, So);
history([#{<<"what">> := <<"begun">>, <<"params">> := #{<<"seed">> := First} = Ps} | Lines], Params,
        _, Run, So) ->
    Same = maps:with(maps:keys(Params), Ps) =:= Params,
    history(Lines, Params, Same, #{first => First, schedules => 0}, counted(Run, So));
history([_ | Lines], Params, false, Run, So) ->
    history(Lines, Params, false, Run#{schedules => 0}, So);
history([#{<<"what">> := <<"violation">>, <<"seed">> := Seed} | Lines], Params, true, Run,
        #{failed := Failed} = So) ->
    history(Lines, Params, true, Run, latest(Seed, So#{failed := Failed#{Seed => []}}));
history([#{<<"schedules">> := K} = Line | Lines], Params, true, Run, So) ->
    Last = case Line of
        #{<<"last_seed">> := Seed} -> latest(Seed, So);
        _ -> latest(map_get(first, Run) + K - 1, So)
    end,
    history(Lines, Params, true, Run#{schedules => K}, Last);
history([_ | Lines], Params, Same, Run, So) -> history(Lines, Params, Same, Run, So).

counted(#{schedules := K}, #{schedules := Sum} = So) -> So#{schedules := Sum + K};
counted(_, So) -> So.

latest(Seed, #{last_seed := Last} = So) -> So#{last_seed := max(Seed, Last)}.

%% The last line may be incomplete.
parsed(Text) ->
    try json:decode(Text) of
        #{} = Line -> {ok, Line};
        _ -> none
    catch
        error:_ -> none
    end.

decoded(Params) -> json:decode(iolist_to_binary(json:encode(plain(Params)))).

write(Log, Line) ->
    Text = json:encode(plain(Line#{at => sderl_bench_output:now()})),
    ok = file:write(Log, [Text, $\n]),
    ok = file:datasync(Log).

plain(Map) when is_map(Map) -> #{K => plain(V) || K := V <- Map};
plain(List) when is_list(List) -> [plain(V) || V <- List];
plain(undefined) -> null;
plain(Other) -> Other.

-spec close(log()) -> ok.
close(Log) ->
    _ = file:close(Log),
    ok.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_simulate_log).
-moduledoc """
What a simulation of hours found, in a file that only ever grows, a line of JSON for each: `begun`, a
`violation` as soon as it is there, and now and then how far it is. Whoever is killed loses nothing but the
line it was writing, and the next one begins a line of its own.
""".

-export([open/1, begun/2, seen/4, close/1]).
-export_type([log/0]).

-opaque log() :: file:io_device().

%% Schedules between two lines that say how far it is.
-define(EVERY, 1000).

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

-doc "A schedule has ended: written if it broke a promise, or if many have ended since the last line.".
-spec seen(log(), sderl_sim:report(), sderl_sim_batch:summary(), fun((integer()) -> unicode:chardata())) -> ok.
seen(Log, #{outcome := failed, seed := Seed, why := Why, at_ms := At}, _, Replay) ->
    write(Log, #{what => violation, seed => Seed, at_ms => At,
                 why => unicode:characters_to_binary(io_lib:format("~0tP", [Why, 60])),
                 replay => unicode:characters_to_binary(Replay(Seed))});
seen(Log, #{seed := Seed}, #{schedules := K, failed := Failed, faults := Faults}, _) when K rem ?EVERY =:= 0 ->
    write(Log, #{what => so_far, schedules => K, last_seed => Seed, violations => length(Failed), faults => Faults});
seen(_, _, _, _) -> ok.

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

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_chaos_log).
-moduledoc """
The log of the chaos service, for people and as JSON, one object a line, each as soon as it is
known.

Every object has `event` and `time` (UTC, RFC 3339): `start` with the options (times in
milliseconds; `null` where there is no limit), `kill`, `back` with `back_us`, `not_back` for what
was awaited and is not back by the end, `end` with the sums. Keys, classes and pids are Erlang terms
as text.
""".

-export([check/1, open/1, close/1, write/3, options/1, kill/1, line/1, recovery/1]).
-export_type([log/0]).

-opaque log() :: none | {file:filename(), file:io_device()}.

-doc """
Whether a file for the log can be there. It must not be yet: it may be all that is left of another
run.
""".
-spec check(undefined | file:filename()) -> ok | {error, sderl_command:text()}.
check(undefined) ->
    ok;
check(Name) ->
    case {filelib:is_file(Name), filelib:is_dir(filename:dirname(Name))} of
        {true, _} -> taken(Name);
        {false, false} ->
            {error, ["cannot write --log ", Name, ": there is no folder ", filename:dirname(Name)]};
        {false, true} -> ok
    end.

-doc "Opens a new file for the log.".
-spec open(undefined | file:filename()) -> {ok, log()} | {error, sderl_command:text()}.
open(undefined) ->
    {ok, none};
open(Name) ->
    case file:open(Name, [write, exclusive, raw, binary]) of
        {ok, File} -> {ok, {Name, File}};
        {error, eexist} -> taken(Name);
        {error, Reason} -> unwritten(Name, Reason)
    end.

taken(Name) ->
    {error, ["--log ", Name, " is there already; name another file, or move that one away"]}.

unwritten(Name, Reason) -> {error, ["cannot write --log ", Name, ": ", file:format_error(Reason)]}.

-doc "Closes it.".
-spec close(log()) -> ok | {error, sderl_command:text()}.
close(none) -> ok;
close({Name, File}) -> written(Name, file:close(File)).

-doc "Writes one event.".
-spec write(log(), Event :: atom(), #{atom() => json:encode_value()}) ->
    ok | {error, sderl_command:text()}.
write(none, _, _) ->
    ok;
write({Name, File}, Event, More) ->
    Time = list_to_binary(calendar:system_time_to_rfc3339(erlang:system_time(millisecond),
                                                          [{unit, millisecond}, {offset, "Z"}])),
    Json = sderl_visible:json(json:encode(More#{event => Event, time => Time})),
    written(Name, file:write(File, [Json, $\n])).

written(_, ok) -> ok;
written(Name, {error, Reason}) -> unwritten(Name, Reason).

-doc "The options of a run for `write/3`.".
-spec options(#{atom() => dynamic()}) -> #{atom() => json:encode_value()}.
options(#{nodes := Nodes, targets := Targets, every_ms := Every, window := {From, To},
          scope := Scope, seed := Seed, limits := Limits} = Options) ->
    AtOnce =
        case Scope of
            cluster -> 1;
            node -> length(Nodes)
        end,
    #{
        nodes => Nodes,
        targets => [#{weight => Weight, target => text(Class)}
                    || #{weight := Weight, class := Class} <- Targets],
        every_ms => Every,
        window => #{from_ms => From, to_ms => limit(To)},
        majority_groups => [text(Group) || Group <- maps:get(majority_groups, Options, [])],
        scope => Scope,
        seed => Seed,
        dry_run => maps:get(dry_run, Options, false),
        allow_halt => maps:get(allow_halt, Options, false),
        limits => #{
            at_once => limit(maps:get(at_once, Limits, AtOnce)),
            kills => limit(maps:get(kills, Limits, infinity)),
            never => [text(Name) || Name <- maps:get(never, Limits, [])],
            never_nodes => maps:get(never_nodes, Limits, []),
            library => maps:get(library, Limits, false)
        }
    }.

limit(infinity) -> null;
limit(Number) -> Number.

-doc "A kill for `write/3`.".
-spec kill(sderl_chaos:kill()) -> #{atom() => json:encode_value()}.
kill(#{key := Key, class := Class, pid := Pid, back_us := BackUs} = Kill) ->
    Kill#{
        key := text(Key),
        class := text(Class),
        pid := text(Pid),
        back_us :=
            case BackUs of
                undefined -> null;
                _ -> BackUs
            end
    }.

text(Binary) when is_binary(Binary) -> Binary;
text(Term) -> unicode:characters_to_binary(io_lib:format("~0tp", [Term])).

-doc "A kill as a line for people.".
-spec line({kill | back, sderl_chaos:kill()}) -> unicode:chardata().
line({kill, #{number := Number, at_ms := AtMs, dry := Dry} = Kill}) ->
    Verb =
        case Dry of
            true -> "would kill";
            false -> "killed"
        end,
    io_lib:format("~5w  ~8.3f s  ~ts ~ts", [Number, AtMs / 1000, Verb, thing(Kill)]);
line({back, #{number := Number, back_us := BackUs} = Kill}) ->
    io_lib:format("~5w  back after ~ts: ~ts", [Number, time(BackUs), thing(Kill)]).

thing(#{kind := node, node := Node}) -> ["node ", atom_to_list(Node)];
thing(#{kind := link, node := Node, pid := Peer}) ->
    ["link ", atom_to_list(Node), " - ", atom_to_list(Peer)];
thing(#{kind := Kind, class := Class, key := Key, node := Node}) ->
    io_lib:format("~ts ~ts (~ts) on ~ts", [Kind, text(Key), text(Class), Node]).

time(Us) when Us < 1000 -> io_lib:format("~w us", [Us]);
time(Us) when Us < 1_000_000 -> io_lib:format("~.1f ms", [Us / 1000]);
time(Us) -> io_lib:format("~.1f s", [Us / 1_000_000]).

-doc "The times until things were back, as text: median, 99th percentile, longest.".
-spec recovery([sderl_chaos:kill()]) -> unicode:chardata().
recovery(Kills) ->
    case lists:sort([Us || #{back_us := Us} <- Kills, Us =/= undefined]) of
        [] ->
            "";
        Times ->
            At = fun(Percent) -> lists:nth(max(1, ceil(Percent * length(Times) / 100)), Times) end,
            ["; back after ", time(At(50)), " (median), ", time(At(99)), " (99 %), ",
             time(lists:last(Times)), " (longest)"]
    end.

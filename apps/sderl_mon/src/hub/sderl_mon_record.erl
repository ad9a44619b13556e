%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_record).
-moduledoc """
Records what the hub of this node sends, to a file of bounded size.

The recording `NAME.sdmon` is at most two files: when `NAME.sdmon` has reached half of `max_bytes`
it becomes `NAME.sdmon.old`, in place of an earlier one, and a new file begins with the present
topology and findings. So at least the newest half is always there, and each file can be read alone.
Frames are written as they come, and merged to ten seconds and a minute, for series over a long
time. The files' format is that of `sderl_mon_segment`; `m:sderl_mon_replay` reads them, also while
they are written and after the recorder was killed.

There is one recording at a time. The recorder is a subscriber of the hub: if a slow disk makes it
fall behind, frames and events are missed and counted (`status/0`, and `lost` of the next frame),
and the hub does not wait. A disk error ends the recording with a log message; what was written
stays.
""".

-behaviour(gen_server).

-export([start/2, start_in/2, stop/0, status/0, list/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-include_lib("kernel/include/file.hrl").
-include_lib("kernel/include/logger.hrl").

-define(EXTENSION, ".sdmon").
-define(MAX_BYTES, 268_435_456).
-define(STEPS, [10_000, 60_000]).
%% The recordings of a folder that are named by the time and kept.
-define(RECORDINGS, 20).
-define(ENDING_MS, 10_000).

-type state() :: #{
    file := binary(),
    half := pos_integer(),
    fd := file:fd(),
    %% The bytes of the file, and of the one before.
    written := non_neg_integer(),
    old := non_neg_integer(),
    ladder := sderl_mon_ladder:ladder(),
    hub := reference(),
    topology := sderl_mon_types:topology(),
    findings := [sderl_mon_types:finding()],
    frames := non_neg_integer(),
    missed := non_neg_integer(),
    events_missed := non_neg_integer(),
    %% What was missed since the last frame, for its `lost`.
    gap := #{atom() => pos_integer()},
    since := sderl_mon_types:t()
}.

-doc "The recording that is being made. `bytes` is of both files, `missed` counts frames.".
-type status() :: #{file := binary(), bytes := non_neg_integer(), frames := non_neg_integer(),
                    missed := non_neg_integer(), events_missed := non_neg_integer(),
                    since := sderl_mon_types:t()}.

-doc """
Starts to record the hub of this node to a file, which gets the ending `.sdmon` if it has another;
its folder is made. `max_bytes` is that of both files, 256 MiB by default, 64 KiB at least. Errors:
`already_recording`, `{exists, File}` (a recording is never overwritten), `{file, File, Reason}`,
`{bad_option, max_bytes, Value}`.
""".
-spec start(file:name_all(), #{max_bytes => pos_integer()}) ->
    {ok, #{file := binary()}} | {error, term()}.
start(File, Opts) ->
    Least = sderl_mon_config:least_bytes(),
    case maps:get(max_bytes, Opts, ?MAX_BYTES) of
        Max when is_integer(Max), Max >= Least ->
            Named = named(unicode:characters_to_binary(File)),
            case gen_server:start({local, ?MODULE}, ?MODULE, {Named, Max}, []) of
                {ok, _Pid} -> {ok, #{file => Named}};
                {error, {already_started, _Pid}} -> {error, already_recording};
                {error, _} = Error -> Error
            end;
        Other ->
            {error, {bad_option, max_bytes, Other}}
    end.

-doc """
The same with a new name in a folder: the time, as in `2026-11-22T14-23-05.123Z.sdmon`. If a
recording is ending, because its hub has ended, this waits for it (10 s at most). Of the recordings
in the folder that have such names the newest 20 are kept. Errors: those of `start/2`.
""".
-spec start_in(file:name_all(), #{max_bytes => pos_integer()}) ->
    {ok, #{file := binary()}} | {error, term()}.
start_in(Dir, Opts) ->
    Folder = unicode:characters_to_binary(Dir),
    Started =
        case start(filename:join(Folder, stamp()), Opts) of
            {error, already_recording} = Error ->
                case ended() of
                    true -> start(filename:join(Folder, stamp()), Opts);
                    false -> Error
                end;
            Other ->
                Other
        end,
    case Started of
        {ok, _} -> bounded(Folder);
        {error, _} -> ok
    end,
    Started.

stamp() ->
    Now = calendar:system_time_to_rfc3339(sderl_mon_clock:wall_ms(),
                                          [{unit, millisecond}, {offset, "Z"}]),
    <<(binary:replace(list_to_binary(Now), <<":">>, <<"-">>, [global]))/binary, ?EXTENSION>>.

ended() ->
    Ref = monitor(process, ?MODULE),
    receive
        {'DOWN', Ref, process, _, _} -> true
    after ?ENDING_MS ->
        true = demonitor(Ref, [flush]),
        false
    end.

%% The order of names is that of age. Files with other names stay.
bounded(Folder) ->
    {ok, Stamp} =
        re:compile("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(\\.[0-9]+)?Z\\.sdmon$"),
    Files = [File
             || #{name := Name, file := File} <- list(Folder),
                re:run(Name, Stamp, [{capture, none}]) =:= match],
    lists:foreach(
        fun(File) ->
            ?LOG_NOTICE("The recording ~ts is removed: there are ~b newer ones",
                        [File, ?RECORDINGS]),
            _ = file:delete(old(File)),
            _ = file:delete(File)
        end,
        lists:sublist(Files, max(0, length(Files) - ?RECORDINGS))
    ).

named(File) ->
    case filename:extension(File) of
        <<?EXTENSION>> -> File;
        _Other -> <<File/binary, ?EXTENSION>>
    end.

-doc "Ends the recording. Errors: `not_recording`.".
-spec stop() -> ok | {error, not_recording}.
stop() ->
    try
        gen_server:stop(?MODULE)
    catch
        exit:noproc -> {error, not_recording}
    end.

-doc "The recording that is being made. Errors: `not_recording`.".
-spec status() -> {ok, status()} | {error, not_recording}.
status() ->
    try
        {ok, gen_server:call(?MODULE, status)}
    catch
        exit:{noproc, _} -> {error, not_recording}
    end.

-doc """
The recordings in a folder, by name: `name` (without folder), `file`, `bytes` (of both files) and
`modified` (Unix milliseconds). A folder that is not there has none.
""".
-spec list(file:name_all()) ->
    [#{name := binary(), file := binary(), bytes := non_neg_integer(), modified := integer()}].
list(Dir) ->
    Folder = unicode:characters_to_binary(Dir),
    case file:list_dir(Folder) of
        {ok, Names} ->
            Files = [unicode:characters_to_binary(Name) || Name <- lists:sort(Names)],
            lists:append([about(Name, filename:join(Folder, Name))
                          || Name <- Files, filename:extension(Name) =:= <<?EXTENSION>>]);
        {error, _NoFolder} ->
            []
    end.

about(Name, File) ->
    case [Info || F <- [File, old(File)], {ok, Info} <- [read_info(F)]] of
        [{Bytes, Modified} | Old] ->
            [#{name => Name, file => File, bytes => Bytes + lists:sum([B || {B, _} <- Old]),
               modified => Modified}];
        [] ->
            []
    end.

read_info(File) ->
    case file:read_file_info(File, [{time, posix}]) of
        {ok, #file_info{type = regular, size = Size, mtime = Modified}} ->
            {ok, {Size, 1000 * Modified}};
        _Other -> none
    end.

old(File) -> <<File/binary, ".old">>.

%% Server

-doc false.
-spec init({binary(), pos_integer()}) -> {ok, state()} | {error, term()}.
init({File, Max}) ->
    process_flag(trap_exit, true),
    case filelib:is_file(File) of
        true -> {error, {exists, File}};
        false -> begun(File, Max, filelib:ensure_dir(File))
    end.

begun(File, _Max, {error, Reason}) ->
    {error, {file, File, Reason}};
begun(File, Max, ok) ->
    case create(File) of
        {ok, Fd} ->
            {ok, Ladder} = sderl_mon_ladder:new(?STEPS),
            {ok, #{topology := Topology, findings := Findings}} = sderl_mon_hub:subscribe(),
            State = #{
                file => File,
                half => Max div 2,
                fd => Fd,
                written => sderl_mon_segment:header_size(),
                old => 0,
                ladder => Ladder,
                hub => monitor(process, sderl_mon_hub),
                topology => Topology,
                findings => Findings,
                frames => 0,
                missed => 0,
                events_missed => 0,
                gap => #{},
                since => sderl_mon_clock:wall_ms()
            },
            continue(standing(State));
        {error, Reason} ->
            {error, {file, File, Reason}}
    end.

continue({ok, State}) -> {ok, State};
continue({error, Reason, #{file := File}}) -> {error, {file, File, Reason}}.

create(File) ->
    %% Without delayed writes: what one of them cannot write when its time is over is lost without
    %% an error.
    case file:open(File, [write, exclusive, raw, binary]) of
        {ok, Fd} ->
            case file:write(Fd, sderl_mon_segment:header()) of
                ok -> {ok, Fd};
                {error, _} = Error -> Error
            end;
        {error, _} = Error ->
            Error
    end.

%% The records that a file needs to be read alone.
standing(#{topology := Topology, findings := Findings} = State) ->
    Now = sderl_mon_clock:wall_ms(),
    write(
        [
            sderl_mon_segment:record(topology, 0, Now, 0, sderl_mon_pack:pack(Topology)),
            sderl_mon_segment:record(findings, 0, Now, 0, sderl_mon_pack:pack(Findings))
        ],
        State
    ).

write(Data, #{fd := Fd, written := Written} = State) ->
    case file:write(Fd, Data) of
        ok -> {ok, State#{written := Written + iolist_size(Data)}};
        {error, Reason} -> {error, Reason, State}
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(status, _From, #{written := Written, old := Old} = State) ->
    {reply,
     (maps:with([file, frames, missed, events_missed, since], State))#{bytes => Written + Old},
     State};
handle_call(_Other, _From, State) ->
    {reply, {error, unknown}, State}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Other, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()} | {stop, normal, state()}.
handle_info(Message, State) when element(1, Message) =:= sderl_mon ->
    case sderl_mon_message:check_news(Message) of
        {ok, News} -> heard(News, State);
        {error, not_a_message} -> {noreply, State}
    end;
handle_info({'DOWN', Hub, process, _Pid, _Reason}, #{hub := Hub, file := File} = State) ->
    ?LOG_WARNING("The recording ~ts ends, because the hub has ended", [File]),
    {stop, normal, State};
handle_info(_Other, State) ->
    {noreply, State}.

heard({sderl_mon, frame, #{lost := Lost} = Frame},
      #{ladder := Ladder, frames := Frames, gap := Gap} = State) ->
    {Done, Ladder1} = sderl_mon_ladder:push(Frame#{lost := maps:merge(Lost, Gap)},
                                            fun sderl_mon_metrics:is_rate/1, Ladder),
    Records = [sderl_mon_segment:record(frame, Step, T, Span, Packed)
               || {Step, {T, Span, Packed}} <- Done],
    done(Records, State#{ladder := Ladder1, frames := Frames + 1, gap := #{}});
heard({sderl_mon, topology, Topology}, #{topology := Last} = State) ->
    case sderl_mon_history:shape(Last) =:= sderl_mon_history:shape(Topology) of
        true ->
            {noreply, State};
        false ->
            %% By this node's clock, as frames are.
            Now = sderl_mon_clock:wall_ms(),
            done(sderl_mon_segment:record(topology, 0, Now, 0, sderl_mon_pack:pack(Topology)),
                 State#{topology := Topology})
    end;
heard({sderl_mon, events, [#{t := T} | _] = Events}, State) ->
    done(sderl_mon_segment:record(events, 0, T, 0, sderl_mon_pack:pack(Events)), State);
heard({sderl_mon, findings, Findings}, State) ->
    Now = sderl_mon_clock:wall_ms(),
    done(sderl_mon_segment:record(findings, 0, Now, 0, sderl_mon_pack:pack(Findings)),
         State#{findings := Findings});
heard({sderl_mon, missed, N}, #{missed := Missed} = State) ->
    {noreply, gap(frames_not_recorded, N, State#{missed := Missed + N})};
heard({sderl_mon, events_missed, N}, #{events_missed := Missed} = State) ->
    {noreply, gap(events_not_recorded, N, State#{events_missed := Missed + N})};
heard(_Other, State) ->
    {noreply, State}.

%% A viewer of the recording sees that something is missing in it.
gap(_What, 0, State) -> State;
gap(What, N, #{gap := Gap} = State) ->
    State#{gap := maps:update_with(What, fun(Old) -> Old + N end, N, Gap)}.

%% The file is turned over before it would grow beyond its half.
done(Records, #{written := Written, half := Half} = State) ->
    Turned =
        case Written + iolist_size(Records) > Half of
            true -> turn(State);
            false -> {ok, State}
        end,
    case Turned of
        {ok, State1} -> written(write(Records, State1));
        {error, _Reason, _State} = Error -> written(Error)
    end.

written({ok, State}) ->
    {noreply, State};
written({error, Reason, #{file := File} = State}) ->
    ?LOG_ERROR("The recording ~ts ends, because it cannot be written: ~ts",
               [File, file:format_error(Reason)]),
    {stop, normal, State}.

turn(#{fd := Fd, file := File, written := Written} = State) ->
    maybe
        ok ?= file:close(Fd),
        ok ?= file:rename(File, old(File)),
        {ok, New} ?= create(File),
        standing(State#{fd := New, old := Written, written := sderl_mon_segment:header_size()})
    else
        {error, Reason} -> {error, Reason, State}
    end.

-doc false.
-spec terminate(term(), state()) -> ok.
terminate(_Reason, #{fd := Fd}) ->
    _ = file:close(Fd),
    ok.

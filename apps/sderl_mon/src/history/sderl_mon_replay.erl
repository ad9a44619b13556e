%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_replay).
-moduledoc """
Reads a recording of `m:sderl_mon_record` and answers the same queries as a hub.

The process that `open/1` starts can be the source of `sderl_mon_hub:range/1`, `at/2`, `series/5`,
`events/2` and `traffic/2`.

Opening reads the file once and keeps the places of the records (some 100 bytes each), not their
contents. Damaged or cut parts are skipped; `info/1` says how much. A recording that is still being
written is read as it was when it was opened.

The process ends with the one that opened it, or by `close/1`. Another process can become its owner
(`own/1`), up to five seconds after the first one has ended.
""".

-behaviour(gen_server).

-export([open/1, open/2, own/1, close/1, info/1, store/1]).
-export_type([info/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-import(sderl_mon_text, [text/2]).

-define(EVENTS, 20_000).
-define(ORPHAN_MS, 5_000).
-define(OPEN_MS, 120_000).

%% Only this process can use the descriptor: others give a place back to it.
-type place() :: {file:fd(), Position :: non_neg_integer(), Length :: pos_integer()}.
-type state() :: #{
    owner := reference(),
    file := binary(),
    fds := [file:fd()],
    frames := #{sderl_mon_ladder:step() => [sderl_mon_ladder:entry(place())]},
    topologies := [{sderl_mon_types:t(), place()}],
    findings := [{sderl_mon_types:t(), place()}],
    events := {non_neg_integer(), [sderl_mon_types:event()]},
    records := non_neg_integer(),
    damaged_bytes := non_neg_integer(),
    damaged := non_neg_integer()
}.

-doc """
Opens a recording, with its `.old` part if there is one. The error is a text for people, which names
the file without its folder: there is no such file, it is no recording, it is of a later version, or
nothing in it can be read.
""".
-spec open(file:name_all()) -> {ok, pid()} | {error, Text :: binary()}.
open(File) -> open(File, self()).

-doc "As `open/1`, with another process as the owner: the recording is closed when that ends.".
-spec open(file:name_all(), Owner :: pid()) -> {ok, pid()} | {error, Text :: binary()}.
open(File, Owner) ->
    case unicode:characters_to_binary(File) of
        Name when is_binary(Name) -> opened(Name, Owner);
        _NoText ->
            {error, ~"the name of this recording is no text in UTF-8: give the file another one"}
    end.

opened(Name, Owner) ->
    case gen_server:start(?MODULE, {Name, Owner}, [{timeout, ?OPEN_MS}]) of
        {ok, Pid} -> {ok, Pid};
        {error, {recording, Text}} -> {error, Text};
        {error, Reason} ->
            {error, text("~ts cannot be read: ~0tP", [filename:basename(Name), Reason, 20])}
    end.

-doc "Closes a recording.".
-spec close(pid()) -> ok.
close(Replay) ->
    try
        gen_server:stop(Replay)
    catch
        exit:_Gone -> ok
    end.

-doc "Makes the calling process the owner of the recording.".
-spec own(pid()) -> ok.
own(Replay) -> gen_server:call(Replay, {own, self()}).

-doc "`damaged` places with `damaged_bytes` were skipped.".
-type info() :: #{file := binary(), range := {sderl_mon_types:t(), sderl_mon_types:t()},
                  frames := non_neg_integer(), records := non_neg_integer(),
                  damaged := non_neg_integer(), damaged_bytes := non_neg_integer()}.

-doc "About an opened recording.".
-spec info(pid()) -> info().
info(Replay) -> gen_server:call(Replay, info).

-doc "A store for `sderl_mon_query`: the recording's process reads, the caller unpacks.".
-spec store(pid()) -> sderl_mon_types:store().
store(Replay) ->
    #{
        range => gen_server:call(Replay, range),
        topology => fun(T) -> gen_server:call(Replay, {topology_at, T}) end,
        fold => fun(From, To, Step, Want, Fun, Acc) ->
            fold(gen_server:call(Replay, {entries, From, To, Step}), Want, Fun, Acc, Replay)
        end
    }.

fold([], _Want, _Fun, Acc, _Replay) -> Acc;
fold([{T, Span, Place} | Places], Want, Fun, Acc, Replay) ->
    case sderl_mon_ladder:unpack({T, Span, gen_server:call(Replay, {packed, Place})}, Want) of
        {ok, Frame} -> fold(Places, Want, Fun, Fun(Frame, Acc), Replay);
        {error, corrupt} -> fold(Places, Want, Fun, Acc, Replay)
    end.

%% Server

-doc false.
-spec init({binary(), pid()}) -> {ok, state()} | {error, {recording, binary()}}.
init({File, Owner}) ->
    process_flag(trap_exit, true),
    %% Atoms that this VM lacks are read as texts; loading this module makes those of the types.
    {module, _} = code:ensure_loaded(sderl_mon_types),
    case parts(File) of
        {ok, Parts} ->
            State = lists:foldl(fun scan/2, empty(File, Owner), Parts),
            ready(in_order(State));
        {error, Text} ->
            {error, {recording, Text}}
    end.

empty(File, Owner) ->
    #{
        owner => monitor(process, Owner),
        file => File,
        fds => [],
        frames => #{},
        topologies => [],
        findings => [],
        events => {0, []},
        records => 0,
        damaged => 0,
        damaged_bytes => 0
    }.

ready(#{frames := #{0 := [_ | _]}} = State) ->
    {ok, State};
ready(#{file := File, fds := Fds}) ->
    lists:foreach(fun close_file/1, Fds),
    {error, {recording, text("~ts has no frame that can be read: it was cut off or damaged near "
                             "its beginning; open another one", [filename:basename(File)])}}.

close_file(Fd) ->
    _ = file:close(Fd),
    ok.

%% The older part first. If one part cannot be read, the other one is.
parts(File) ->
    Tried = [part(F) || F <- [<<File/binary, ".old">>, File]],
    case {[Fd || {ok, Fd} <- Tried], lists:last(Tried)} of
        {[_ | _] = Fds, _} -> {ok, Fds};
        {[], {error, Reason}} -> {error, text("~ts ~ts", [filename:basename(File), why(Reason)])}
    end.

part(File) ->
    case file:open(File, [read, raw, binary]) of
        {ok, Fd} ->
            case header(Fd) of
                ok ->
                    {ok, Fd};
                {error, _} = Error ->
                    close_file(Fd),
                    Error
            end;
        {error, Reason} ->
            {error, {file, Reason}}
    end.

header(Fd) ->
    case file:read(Fd, sderl_mon_segment:header_size()) of
        {ok, Bytes} -> sderl_mon_segment:header(Bytes);
        eof -> sderl_mon_segment:header(<<>>);
        {error, Reason} -> {error, {file, Reason}}
    end.

why({file, Reason}) -> ["cannot be opened: ", file:format_error(Reason)];
why(empty) -> "is empty: its recording was cut off before it began; open another one";
why(not_a_recording) ->
    "is no recording: such files are made by sderl_mon_record and end in .sdmon";
why(damaged) ->
    "is a recording whose header, its first 16 bytes, is damaged: open a copy of before, or "
    "another one";
why({version, N}) ->
    io_lib:format("was recorded by a later version (format ~b); this one reads format 1: open it "
                  "with the program that made it", [N]).

%% Where each record is

scan(Fd, #{fds := Fds} = State0) ->
    Note = fun({Type, Step, T, Span}, {Start, Length}, Packed, #{records := N} = State) ->
        noted(Type, Step, T, Span, Packed, {Fd, Start, Length}, State#{records := N + 1})
    end,
    {State1, #{places := Places, bytes := Bytes}} =
        sderl_mon_scan:records(whole, Fd, Note, State0#{fds := [Fd | Fds]}),
    #{damaged := N, damaged_bytes := Before} = State1,
    State1#{damaged := N + Places, damaged_bytes := Before + Bytes}.

noted(frame, Step, T, Span, _Packed, Place, #{frames := Frames} = State) when Span > 0 ->
    State#{frames := Frames#{Step => [{T, Span, Place} | maps:get(Step, Frames, [])]}};
noted(topology, _Step, T, _Span, _Packed, Place, #{topologies := All} = State) ->
    State#{topologies := [{T, Place} | All]};
noted(findings, _Step, T, _Span, _Packed, Place, #{findings := All} = State) ->
    State#{findings := [{T, Place} | All]};
noted(events, _Step, _T, _Span, Packed, _Place, #{events := All} = State) ->
    case sderl_mon_pack:unpack(Packed) of
        {ok, Events} when is_list(Events) ->
            Good = sderl_mon_clean:remembered(Events),
            State#{events := newest(lists:reverse(Good), All)};
        _Other -> damage(State)
    end;
noted(_Later, _Step, _T, _Span, _Packed, _Place, State) ->
    State.

%% Cut only now and then, because that walks the whole list.
newest(Events, {N, All}) ->
    case N + length(Events) of
        Many when Many > 2 * ?EVENTS -> {?EVENTS, lists:sublist(Events ++ All, ?EVENTS)};
        Few -> {Few, Events ++ All}
    end.

damage(#{damaged := N} = State) -> State#{damaged := N + 1}.

%% Later records were prepended to earlier ones.
in_order(#{frames := Frames, topologies := Topologies, findings := Findings,
           events := {_N, Events}} = State) ->
    State#{
        frames := #{Step => lists:keysort(1, Entries) || Step := Entries <- Frames},
        topologies := lists:keysort(1, Topologies),
        findings := lists:keysort(1, Findings),
        events := {length(Events), lists:reverse(Events)}
    }.

-doc false.
-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(range, _From, State) ->
    {reply, range(State), State};
handle_call({at, T}, _From, State) when is_integer(T) ->
    {reply, at(T, State), State};
handle_call({entries, From, To, Step}, _From, #{frames := Frames} = State) when
    is_integer(From), is_integer(To), is_integer(Step)
->
    Entries = sderl_mon_ladder:choose(Step, lists:sort(maps:to_list(Frames))),
    {reply, [Entry || {T, _Span, _Place} = Entry <- Entries, T >= From, T =< To], State};
handle_call({packed, {_, Start, Length} = Place}, _From, State) when
    is_integer(Start), Start >= 0, is_integer(Length)
->
    {reply, packed(Place), State};
handle_call({own, Pid}, _From, #{owner := Owner} = State) when is_pid(Pid) ->
    true = demonitor(Owner, [flush]),
    {reply, ok, State#{owner := monitor(process, Pid)}};
handle_call({topology_at, T}, _From, State) when is_integer(T) ->
    {reply, topology_at(T, State), State};
handle_call({events, Filter}, _From, #{events := {_N, Events}} = State) when is_map(Filter) ->
    {reply, {ok, sderl_mon_query:events(Events, Filter)}, State};
handle_call(info, _From, #{frames := #{0 := Frames}} = State) ->
    About = maps:with([file, records, damaged, damaged_bytes], State),
    {reply, About#{range => range(State), frames => length(Frames)}, State};
handle_call(_Other, _From, State) ->
    {reply, {error, unknown}, State}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Other, State) -> {noreply, State}.

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()} | {stop, normal, state()}.
handle_info({'DOWN', Owner, process, _Pid, _Reason}, #{owner := Owner} = State) ->
    _ = erlang:send_after(?ORPHAN_MS, self(), {orphan, Owner}),
    {noreply, State};
handle_info({orphan, Owner}, #{owner := Owner} = State) ->
    {stop, normal, State};
handle_info(_Other, State) -> {noreply, State}.

-doc false.
-spec terminate(term(), state()) -> ok.
terminate(_Reason, #{fds := Fds}) -> lists:foreach(fun close_file/1, Fds).

range(#{frames := #{0 := [{First, Span, _} | _] = Frames}}) ->
    {Last, _Span, _Place} = lists:last(Frames),
    {First - Span, Last}.

-spec at(sderl_mon_types:t(), state()) -> {ok, sderl_mon_types:moment()} | {error, none}.
at(T, #{frames := #{0 := Frames}, findings := Findings} = State) ->
    maybe
        {ok, {Ft, _Span, Place}} ?= sderl_mon_ladder:pick(T, Frames),
        {ok, Frame} ?= sderl_mon_pack:unpack_frame(packed(Place)),
        {ok, Topology} ?= topology_at(Ft, State),
        {ok, #{topology => Topology, frame => Frame, findings => findings_at(Ft, Findings)}}
    else
        _None -> {error, none}
    end.

%% Without any topology record, frames are shown with an empty topology.
topology_at(_T, #{topologies := []}) ->
    {ok, #{epoch => 0, t => 0, nodes => #{}, groups => #{}, monitors => []}};
topology_at(T, #{topologies := [Oldest | _] = All}) ->
    {_T, Place} = lists:last([Oldest | [E || {Te, _} = E <- All, Te =< T]]),
    sderl_mon_clean:packed_topology(packed(Place)).

findings_at(T, Findings) ->
    case [Place || {Tf, Place} <- Findings, Tf =< T] of
        [] ->
            [];
        Earlier ->
            case sderl_mon_pack:unpack(packed(lists:last(Earlier))) of
                {ok, Found} when is_list(Found) ->
                    [F || #{id := _, kind := _, text := _} = F <- Found];
                _Other -> []
            end
    end.

%% The file may have been cut since it was opened.
packed({Fd, Start, Length}) ->
    case file:pread(Fd, Start, Length) of
        {ok, <<_Type, _Step:32, _T:64, _Span:32, Packed/binary>>} -> Packed;
        _Gone -> <<>>
    end.

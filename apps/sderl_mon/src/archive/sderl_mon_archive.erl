%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_archive).
-moduledoc """
Keeps the frames of the hub of this node in files for long: frames of a minute for eight days, of
ten minutes for 35 days, of an hour for 400 days, in at most `max_bytes` (1 GiB) for the folder.
Beyond that the level with most bytes loses its oldest file first.

The configuration names the folder (`archive`). A node that starts again with a folder continues it:
open slots are merged again from the finer level, so that less than a minute is lost. Only one node
may keep its frames in a folder.

The process is a subscriber of the hub, and the hub never waits for it. If a file cannot be written,
as on a full disk, that is logged once, and frames wait in memory until it can be written again. At
most 32 MiB wait; beyond that the oldest frames are dropped and counted (`info/0`).

A query runs in the process that asks (`series/4`); this process only says where the frames are.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, start_link/1]).
-export([series/4, range/0, info/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([info/0]).

-define(MINUTE, 60_000).
-define(DAY, 86_400_000).
-define(LEVELS, [{?MINUTE, 8 * ?DAY, ?DAY}, {10 * ?MINUTE, 35 * ?DAY, 5 * ?DAY},
                 {60 * ?MINUTE, 400 * ?DAY, 50 * ?DAY}]).
-define(MAX_BYTES, 1_073_741_824).
%% A file is at most about this part of all bytes, because it is deleted as a whole.
-define(PARTS, 16).
%% How often to try to subscribe at a hub that is not there, and to use a folder that was refused.
-define(AGAIN_MS, 1_000).
-define(REFUSED_MS, 60_000).
%% The frames of 200 nodes of half a day.
-define(MOST_WAITING, 33_554_432).

-doc "The value of `archive` in `t:sderl_mon_config:config/0`.".
-type wanted() :: off | #{dir := file:name_all(), max_bytes => pos_integer()}.

-doc "A folder in which nothing can be kept, and why.".
-type refused() :: {refused, wanted(), Why :: binary()}.

%% The files that are kept, and how far they reach.
-record(kept, {
    wanted :: wanted(),
    dir :: binary(),
    lock :: sderl_mon_folder_lock:lock(),
    most :: pos_integer(),
    index :: sderl_mon_archive_index:index(),
    ladder :: sderl_mon_ladder:ladder(),
    writers = #{} :: #{sderl_mon_ladder:step() => sderl_mon_archive_file:writer()},
    topology = none :: sderl_mon_types:topology() | none,
    %% The last topology in the open file of each step.
    told = #{} :: #{sderl_mon_ladder:step() => sderl_mon_types:topology()},
    %% Frames that could not be written yet, the oldest first, and their bytes.
    waiting = queue:new() :: queue:queue(known()),
    waiting_bytes = 0 :: non_neg_integer(),
    missed = 0 :: non_neg_integer(),
    is_failing = false :: boolean(),
    hub = none :: none | reference()
}).

%% A frame of a step that is to be kept, and the topology of its time.
-type known() ::
    {sderl_mon_ladder:step(), sderl_mon_ladder:entry(), sderl_mon_types:topology() | none}.

-type state() :: off | refused() | #kept{}.

-doc "Keeps frames as the configuration in force says.".
-spec start_link() -> gen_server:start_ret().
start_link() -> start_link(maps:get(archive, sderl_mon_settings:get())).

-doc "Keeps frames as given until the configuration says otherwise.".
-spec start_link(wanted()) -> gen_server:start_ret().
start_link(Wanted) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Wanted, []).

-doc """
As `sderl_mon_hub:series/5` for `live`, with the archive's frames for the time before the history of
the hub.
""".
-spec series(sderl_mon_types:what(), sderl_mon_types:t(), sderl_mon_types:t(), pos_integer()) ->
    {ok, sderl_mon_types:series()} | {error, none}.
series(What, From, To, Points) ->
    Live = sderl_mon_hub:store(live),
    #{range := {Begins, _}} = Live,
    %% Before a first frame the range is {0, 0}.
    Store = case Begins =/= 0 andalso From >= Begins orelse call(kept) of
        true -> Live;
        none -> Live;
        {Dir, Range} -> joined(Live, stored(Dir, Range))
    end,
    sderl_mon_query:series(maps:merge(maps:with([is_rate], Live), Store), What, From, To, Points).

-doc "The time range of the frames in the archive; `{0, 0}` for none.".
-spec range() -> {sderl_mon_types:t(), sderl_mon_types:t()}.
range() ->
    case call(kept) of
        none -> {0, 0};
        {_, Range} -> Range
    end.

-doc """
`refused`: the folder cannot be used. `frames` are counted by step in milliseconds; `missed` were
dropped, `waiting` are to be written; `is_failing`: writing fails at present.
""".
-type info() :: off | {refused, Why :: binary()} | #{
    dir := binary(),
    range := {sderl_mon_types:t(), sderl_mon_types:t()},
    bytes := non_neg_integer(),
    max_bytes := pos_integer(),
    frames := #{pos_integer() => non_neg_integer()},
    missed := non_neg_integer(),
    waiting := non_neg_integer(),
    is_failing := boolean()
}.

-doc "The state of the archive.".
-spec info() -> info().
info() ->
    case call(info) of
        none -> off;
        Info -> Info
    end.

%% While the process restarts, or waits for a disk, only the frames of the hub are shown.
call(Question) ->
    try
        gen_server:call(?MODULE, Question)
    catch
        exit:{Why, _} when Why =:= noproc; Why =:= timeout; Why =:= shutdown -> none
    end.

stored(Dir, Range) ->
    #{
        range => Range,
        topology => fun(T) ->
            case call({topology_at, T}) of
                {ok, Place} -> topology(sderl_mon_archive_file:read(Dir, Place));
                none -> none
            end
        end,
        fold => fun(From, To, Step, Want, Fun, Acc0) ->
            Entries = case call({entries, From, To, Step}) of
                none -> [];
                Known -> Known
            end,
            sderl_mon_archive_file:fold(Dir, Entries, fun(Entry, Acc) ->
                case sderl_mon_ladder:unpack(Entry, Want) of
                    {ok, Frame} -> Fun(Frame, Acc);
                    {error, corrupt} -> Acc
                end
            end, Acc0)
        end
    }.

topology({ok, Packed}) -> sderl_mon_clean:packed_topology(Packed);
topology({error, gone}) -> none.

%% The hub's history as far as it reaches back, and the archive for the time before.
joined(#{range := {0, 0}}, Kept) -> Kept;
joined(#{range := {Begins, To}, topology := Now, fold := FoldNow},
       #{range := {From, _}, topology := Then, fold := FoldThen}) ->
    #{
        range => {min(case From of 0 -> Begins; _ -> From end, Begins), To},
        topology => fun(T) when T < Begins ->
                            case Then(T) of
                                none -> Now(T);
                                Found -> Found
                            end;
                       (T) -> Now(T)
                    end,
        fold => fun(First, Last, Step, Want, Fun, Acc) ->
            FoldNow(max(First, Begins + 1), Last, Step, Want, Fun,
                    FoldThen(First, min(Last, Begins), Step, Want, Fun, Acc))
        end
    }.

%% ---------------------------------------------------------------- gen_server

-doc false.
-spec init(wanted()) -> {ok, state(), {continue, wanted()}}.
init(Wanted) ->
    process_flag(trap_exit, true),
    {ok, off, {continue, Wanted}}.

-doc false.
-spec handle_continue(wanted(), state()) -> {noreply, state()}.
handle_continue(Wanted, _) -> {noreply, first(Wanted)}.

-doc false.
-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call(info, _From, {refused, _, Why} = Refused) ->
    {reply, {refused, Why}, Refused};
handle_call(_Any, _From, K) when not is_record(K, kept) ->
    {reply, none, K};
handle_call(kept, _From, #kept{dir = Dir, index = Index} = K) ->
    {reply, {Dir, sderl_mon_archive_index:range(Index)}, K};
handle_call({entries, From, To, Step}, _From, #kept{index = Index} = K) when
    is_integer(From), is_integer(To), is_integer(Step)
->
    {reply, sderl_mon_archive_index:entries(From, To, Step, Index), K};
handle_call({topology_at, T}, _From, #kept{index = Index} = K) when is_integer(T) ->
    {reply, sderl_mon_archive_index:topology_at(T, Index), K};
handle_call(info, _From, #kept{index = Index} = K) ->
    {reply,
     #{dir => K#kept.dir, max_bytes => K#kept.most, missed => K#kept.missed,
       waiting => queue:len(K#kept.waiting), is_failing => K#kept.is_failing,
       range => sderl_mon_archive_index:range(Index),
       bytes => sderl_mon_archive_index:bytes(Index),
       frames => sderl_mon_archive_index:frames(Index)},
     K};
handle_call(_Other, _From, K) ->
    {reply, {error, unknown}, K}.

-doc false.
-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Other, K) -> {noreply, K}.

-doc false.
-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({sderl_mon_config, #{archive := Wanted}}, #kept{wanted = Wanted} = K) ->
    {noreply, K};
handle_info({sderl_mon_config, #{archive := Wanted}}, K) ->
    ok = finish(K),
    {noreply, first(Wanted)};
handle_info({again, Wanted}, {refused, Wanted, _}) ->
    {noreply, tried(Wanted)};
handle_info(_Any, K) when not is_record(K, kept) ->
    {noreply, K};
handle_info(subscribe, #kept{hub = none} = K) ->
    {noreply, subscribe(K)};
handle_info({'DOWN', Hub, process, _, _}, #kept{hub = Hub} = K) ->
    {noreply, later(K#kept{hub = none})};
handle_info(Message, K) when element(1, Message) =:= sderl_mon ->
    case sderl_mon_message:check_news(Message) of
        {ok, News} -> {noreply, heard(News, K)};
        {error, not_a_message} -> {noreply, K}
    end;
handle_info(_Other, K) ->
    {noreply, K}.

-doc false.
-spec terminate(term(), state()) -> ok.
terminate(_Why, K) -> finish(K).

finish(#kept{lock = Lock, dir = Dir, hub = Hub} = K) ->
    _ = Hub =/= none andalso demonitor(Hub, [flush]),
    _ = Hub =/= none andalso unsubscribe(),
    #kept{writers = Writers, waiting = Waiting} = write_waiting(K),
    queue:is_empty(Waiting) orelse
        ?LOG_ERROR("~b frames that waited for room in ~ts are lost", [queue:len(Waiting), Dir]),
    lists:foreach(fun sderl_mon_archive_file:close/1, maps:values(Writers)),
    sderl_mon_folder_lock:leave(Lock);
finish(_) -> ok.

unsubscribe() ->
    try
        sderl_mon_hub:unsubscribe()
    catch
        exit:_Gone -> ok
    end.

%% ---------------------------------------------------------------- beginning

%% A folder may become usable later: it may be mounted, or another program may leave it.
first(Wanted) ->
    case tried(Wanted) of
        {refused, _, Why} = Refused ->
            ?LOG_ERROR("No frames are kept in ~ts; this is tried again each minute", [Why]),
            Refused;
        State -> State
    end.

tried(Wanted) ->
    case begin_with(Wanted) of
        {refused, _, _} = Refused ->
            _ = erlang:send_after(?REFUSED_MS, self(), {again, Wanted}),
            Refused;
        State -> State
    end.

begin_with(off) -> off;
begin_with(#{dir := Given} = Wanted) ->
    Dir = unicode:characters_to_binary(Given),
    maybe
        ok ?= filelib:ensure_path(Dir),
        {ok, Lock} ?= sderl_mon_folder_lock:take(filename:join(Dir, "lock")),
        {ok, Index, Damaged} ?=
            sderl_mon_archive_file:found(Dir, sderl_mon_archive_index:new(?LEVELS)),
        Damaged > 0 andalso
            ?LOG_WARNING("The archive ~ts is damaged in ~b places, which are skipped",
                         [Dir, Damaged]),
        {ok, Ladder} = sderl_mon_ladder:new([Step || {Step, _, _} <- ?LEVELS]),
        subscribe(bounded(remember(
            #kept{wanted = Wanted, dir = Dir, lock = Lock, index = Index, ladder = Ladder,
                  most = maps:get(max_bytes, Wanted, ?MAX_BYTES)})))
    else
        {error, Reason} ->
            Why = unicode:characters_to_binary(refusal(Dir, Reason)),
            {refused, Wanted, Why}
    end.

refusal(Dir, Reason) when Reason =:= eexist; Reason =:= enotdir ->
    [Dir, ": there is a file of that name, or in the place of a folder above it; name a folder"];
refusal(Dir, Reason) when is_atom(Reason) -> [Dir, ": ", file:format_error(Reason)];
refusal(_Dir, Sentence) -> Sentence.

%% Merges the open slots again. (A slot of a coarse step closes with the first finer frame after it,
%% so the slot before that of the newest frame may still have been open.)
remember(#kept{dir = Dir, index = Index} = K) ->
    [Finest | _] = Steps = sderl_mon_archive_index:steps(Index),
    Coarsest = lists:last(Steps),
    case sderl_mon_archive_index:last(Finest, Index) of
        none -> K;
        Last ->
            Before = ((Last - 1) div Coarsest - 1) * Coarsest,
            Open = case sderl_mon_archive_index:last(Coarsest, Index) of
                none -> Before;
                Closed -> max(Closed, Before)
            end,
            Entries = sderl_mon_archive_index:entries(Open + 1, Last, Finest, Index),
            sderl_mon_archive_file:fold(Dir, Entries, fun(Entry, Acc) ->
                case sderl_mon_ladder:unpack(Entry, #{}) of
                    {ok, Frame} -> push(Frame, Acc);
                    {error, corrupt} -> Acc
                end
            end, K)
    end.

later(K) ->
    _ = erlang:send_after(?AGAIN_MS, self(), subscribe),
    K.

subscribe(K) ->
    try sderl_mon_hub:subscribe() of
        {ok, #{topology := Topology}} ->
            heard({sderl_mon, topology, Topology},
                  K#kept{hub = monitor(process, sderl_mon_hub)});
        {error, _} -> later(K)
    catch
        exit:_Gone -> later(K)
    end.

%% ---------------------------------------------------------------- messages of the hub

heard({sderl_mon, frame, Frame}, K) -> push(Frame, K);
heard({sderl_mon, topology, Topology}, #kept{topology = none} = K) ->
    K#kept{topology = Topology};
heard({sderl_mon, topology, Topology}, #kept{topology = Last} = K) ->
    case sderl_mon_history:shape(Last) =:= sderl_mon_history:shape(Topology) of
        true -> K;
        false -> K#kept{topology = Topology}
    end;
heard({sderl_mon, missed, N}, #kept{missed = Missed} = K) -> K#kept{missed = Missed + N};
heard(_Other, K) -> K.

%% A frame that ends no later than the last kept one was merged again after a start, or the clock
%% was set back: it is not kept. But if the last kept frame is in the future, the clock was ahead
%% before, and the frame is new unless the archive has it.
push(#{t := T} = Frame, #kept{ladder = Ladder0} = K) ->
    {Done, Ladder} = sderl_mon_ladder:push(Frame, fun sderl_mon_metrics:is_rate/1, Ladder0),
    Now = sderl_mon_clock:wall_ms(),
    Known = [{is_new(Step, End, Now, K), {Step, Entry, K#kept.topology}}
             || {Step, {End, _, _} = Entry} <- Done, Step > 0],
    case [New || {true, New} <- Known] of
        [] -> K#kept{ladder = Ladder};
        New ->
            Waiting = lists:foldl(fun put_last/2, K#kept{ladder = Ladder}, New),
            bounded(min(T, Now), write_waiting(Waiting))
    end.

is_new(Step, End, Now, #kept{index = Index, waiting = Waiting}) ->
    Ends = [Other || {Of, {Other, _, _}, _} <- queue:to_list(Waiting), Of =:= Step]
        ++ [Last || Last <- [sderl_mon_archive_index:last(Step, Index)], Last =/= none],
    case Ends =:= [] orelse lists:max(Ends) of
        true -> true;
        Newest when End > Newest -> true;
        Newest -> Newest > Now + 2 * Step andalso not lists:member(End, Ends)
            andalso not sderl_mon_archive_index:has({Step, End}, Index)
    end.

put_last({_, {_, _, Packed}, _} = Known, #kept{waiting = Waiting, waiting_bytes = Bytes} = K) ->
    drop_first(K#kept{waiting = queue:in(Known, Waiting),
                      waiting_bytes = Bytes + byte_size(Packed)}).

drop_first(#kept{waiting_bytes = Bytes, missed = Missed} = K) when Bytes > ?MOST_WAITING ->
    {_, Left} = take_first(K),
    drop_first(Left#kept{missed = Missed + 1});
drop_first(K) -> K.

take_first(#kept{waiting = Waiting, waiting_bytes = Bytes} = K) ->
    case queue:out(Waiting) of
        {empty, _} -> {none, K};
        {{value, {_, {_, _, Packed}, _} = Known}, Left} ->
            {Known, K#kept{waiting = Left, waiting_bytes = Bytes - byte_size(Packed)}}
    end.

%% Writes waiting frames in order. A step whose file cannot be written does not hold up the others.
write_waiting(#kept{waiting = Waiting} = K) ->
    All = K#kept{waiting = queue:new(), waiting_bytes = 0},
    case lists:foldl(fun write_unless_failed/2, {[], All}, queue:to_list(Waiting)) of
        {[], Written} -> works(Written);
        {_, Written} -> Written
    end.

write_unless_failed({Step, _, _} = Known, {Failed, K}) ->
    case lists:member(Step, Failed) of
        true -> {Failed, put_last(Known, K)};
        false ->
            case write(Known, K) of
                {ok, Written} -> {Failed, Written};
                {error, Reason} -> {[Step | Failed], put_last(Known, fails(Step, Reason, K))}
            end
    end.

write({Step, {T, Span, Packed}, Topology}, K0) ->
    maybe
        {ok, K1} ?= writer({Step, T}, K0),
        {ok, K2} ?= write_topology({Step, T}, Topology, K1),
        write_record(Step, {{frame, Step, T, Span}, Packed}, K2)
    end.

%% Opens the file for a frame, unless it is the open file of its level.
writer({Step, T}, #kept{dir = Dir, index = Index, writers = Writers, most = Most} = K) ->
    Key = sderl_mon_archive_index:key({Step, T}, Most div ?PARTS, Index),
    case Writers of
        #{Step := {Key, _, _}} -> {ok, K};
        #{} ->
            ok = close(Step, Writers),
            maybe
                {ok, Writer, Known} ?= sderl_mon_archive_file:open(Dir, Key, Index),
                {ok, K#kept{index = Known, writers = Writers#{Step => Writer},
                            told = maps:remove(Step, K#kept.told)}}
            end
    end.

close(Step, Writers) ->
    case Writers of
        #{Step := Writer} -> sderl_mon_archive_file:close(Writer);
        #{} -> ok
    end.

%% A topology is written once in each file, and when it has changed.
write_topology(_At, none, K) -> {ok, K};
write_topology({Step, T}, Topology, #kept{told = Told} = K) ->
    case Told of
        #{Step := Topology} -> {ok, K};
        #{} ->
            Record = {{topology, 0, T, 0}, sderl_mon_pack:pack(Topology)},
            maybe
                {ok, Written} ?= write_record(Step, Record, K),
                {ok, Written#kept{told = Told#{Step => Topology}}}
            end
    end.

write_record(Step, Record, #kept{index = Index, writers = Writers} = K) ->
    #{Step := Writer} = Writers,
    maybe
        {ok, Next, Known} ?= sderl_mon_archive_file:write(Record, Writer, Index),
        {ok, K#kept{index = Known, writers = Writers#{Step := Next}}}
    end.

works(#kept{is_failing = false} = K) -> K;
works(#kept{dir = Dir} = K) ->
    ?LOG_NOTICE("Frames are kept in ~ts again", [Dir]),
    K#kept{is_failing = false}.

%% The next frame opens the file again, which cuts off what was written of this one.
fails(Step, Reason, #kept{dir = Dir, writers = Writers} = K) ->
    ok = close(Step, Writers),
    K#kept.is_failing orelse
        ?LOG_ERROR("Frames cannot be kept in ~ts: ~ts; they wait in memory until they can",
                   [Dir, text(Reason)]),
    K#kept{writers = maps:remove(Step, Writers), is_failing = true}.

text(Reason) when is_atom(Reason) -> file:format_error(Reason);
text(Reason) -> io_lib:format("~0tp", [Reason]).

bounded(K) -> bounded(sderl_mon_clock:wall_ms(), K).

bounded(Now, #kept{index = Index, most = Most} = K) ->
    lists:foldl(fun(Key, #kept{dir = Dir, index = Known} = Acc) ->
        case sderl_mon_archive_file:delete(Dir, Key) of
            ok -> Acc#kept{index = sderl_mon_archive_index:drop(Key, Known)};
            %% Deleting is tried again with the next frame.
            {error, _} -> Acc
        end
    end, K, sderl_mon_archive_index:excess(Now, Most, Index)).

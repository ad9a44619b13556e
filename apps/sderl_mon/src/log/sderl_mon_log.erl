%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log).
-moduledoc """
The log of all monitored nodes, on a monitoring node: the events of `logger` that their probes send
(`m:sderl_mon_config`, `log`), bounded and searchable. What is left out is counted.

Without `log_files` the newest 8 MiB stay in memory, as long as this process lives. With
`log_files => #{dir => Dir}` they are in files that outlive it: `files` (16) of `file_bytes` (8 MiB)
each; for a new one the oldest is removed. Each monitoring node needs a folder of its own.

Another process writes the files (`sderl_mon_log_writer`); what waits for it is in memory, at most
16 MiB. If a file cannot be written, as on a full disk, that is logged once, the newest 8 MiB of
events stay in memory, and files can still be searched. Each minute it is tried again, and then what
is in memory goes to the files.

Events and losses are counted by level since this process began (`info/0`).

Agents send to all monitoring nodes, so each has everything since it began. Numbers of events (`id`)
grow, also over a restart, and each monitoring node has its own.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, start_link/1]).
-export([search/1, info/0, format_error/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([info/0]).

-doc """
`events` by level; `lost` by reason and level: `rate`, `queue` and `relay` before they arrived here,
`overload` here. `problem` is a sentence while files cannot be written. `range`: of the times of
events.
""".
-type info() :: #{
    events := #{sderl_mon_log_message:level() => non_neg_integer()},
    lost := #{{Reason :: atom(), sderl_mon_log_message:level() | unknown} => non_neg_integer()},
    malformed := non_neg_integer(),
    bytes := non_neg_integer(),
    range := none | {sderl_mon_types:t(), sderl_mon_types:t()},
    last := non_neg_integer(),
    place := memory | files,
    problem := none | binary()
}.

%% The bytes that are kept in memory without files.
-define(MEMORY, 8_388_608).
-define(FILES, #{file_bytes => 8_388_608, files => 16}).
%% Batches that wait for this process, and bytes that wait for a disk.
-define(QUEUE, 2000).
-define(WAITING, 16_777_216).
%% How long after an error files are tried again, and how long the last events may take.
-define(AGAIN_MS, 60_000).
-define(STOP_MS, 3000).
%% Shorter than the default: callers show other things, too.
-define(INFO_MS, 2000).
%% A probe on this node leaves out what this process logs.
-define(OWN, #{domain => [sderl_mon_own]}).

-record(store, {
    wanted :: wanted(),
    writer = none :: none | pid(),
    again = none :: none | reference(),
    %% What the writer writes now; none: there is no writer, or it opens the files.
    writes = none :: none | nothing | sderl_mon_log_index:stretch(),
    %% The events in files, and those in memory, which are newer.
    index = sderl_mon_log_index:new() :: sderl_mon_log_index:index(),
    memory = sderl_mon_log_index:new() :: sderl_mon_log_index:index(),
    %% Callers that asked before the files were read; none once they are.
    asking = [] :: none | [gen_server:from()],
    sources = sderl_mon_log_sources:new() :: sderl_mon_log_sources:sources(),
    next :: pos_integer(),
    events = #{} :: #{sderl_mon_log_message:level() => non_neg_integer()},
    lost = #{} :: #{{atom(), atom()} => non_neg_integer()},
    malformed = 0 :: non_neg_integer(),
    problem = none :: none | binary()
}).

-type wanted() :: off | #{dir := file:name_all(), file_bytes | files => pos_integer()}.

-doc "Keeps the log as the configuration in force says.".
-spec start_link() -> gen_server:start_ret().
start_link() -> start_link(maps:get(log_files, sderl_mon_settings:get())).

-doc "Keeps the log in this way until the configuration says another.".
-spec start_link(wanted()) -> gen_server:start_ret().
start_link(Wanted) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Wanted,
                          [{spawn_opt, [{message_queue_data, off_heap}]}]).

-doc "Searches: see `m:sderl_mon_log_filter` and `m:sderl_mon_log_search`.".
-spec search(sderl_mon_log_filter:options()) ->
    {ok, sderl_mon_log_search:page()} | {error, {bad_option, term(), term()}}.
search(Options) ->
    maybe
        {ok, Filter} ?= sderl_mon_log_filter:new(Options),
        Stretches = gen_server:call(?MODULE, stretches),
        {ok, sderl_mon_log_search:search(Filter, Stretches)}
    end.

-doc "What is kept, and what was lost.".
-spec info() -> info().
info() -> gen_server:call(?MODULE, info, ?INFO_MS).

-doc "One sentence that names the term and the remedy.".
-spec format_error({bad_option, term(), term()}) -> unicode:chardata().
format_error({bad_option, Key, Value}) ->
    io_lib:format("~0tp cannot be ~0tP: ~ts", [Key, Value, 12, expected(Key)]).

expected(level) -> "it is one of the levels of logger";
expected(limit) -> "it is a whole number from 1 to 1000";
expected(Key) when Key =:= text; Key =:= node; Key =:= group; Key =:= module ->
    "it is UTF-8 text of at most 1000 bytes";
expected(Key) when Key =:= from; Key =:= to -> "it is a time in milliseconds since 1970";
expected(Key) when Key =:= before; Key =:= 'after' -> "it is the number of an event";
expected(_) -> "the options are text, node, group, level, module, from, to, before, after, limit".

-doc false.
-spec init(wanted()) -> {ok, #store{}}.
init(Wanted) ->
    _ = process_flag(trap_exit, true),
    {ok, begun(#store{wanted = Wanted, next = erlang:system_time(microsecond)})}.

%% Begins with an empty store.
begun(#store{wanted = off} = Store) -> Store#store{asking = none};
begun(Store) -> opening(Store#store{asking = []}).

opening(#store{wanted = Wanted, again = Timer} = Store) ->
    _ = is_reference(Timer) andalso erlang:cancel_timer(Timer),
    case sderl_mon_log_writer:start_link(maps:merge(?FILES, Wanted)) of
        {ok, Writer} -> Store#store{writer = Writer};
        {error, {already_started, _}} ->
            answered({failed, ~"the disk has not taken yet what was written before"}, Store)
    end.

%% ---------------------------------------------------------------- files

answered({opened, Index}, Store) ->
    written(known(behind(sderl_mon_log_index:last(Index),
                         Store#store{index = Index, writes = nothing})));
answered({written, {File, Offset}, Removed}, #store{writes = Piece, index = Index} = Store) ->
    Left = lists:foldl(fun sderl_mon_log_index:drop_file/2, Index, Removed),
    {{Added, _}, _} = sderl_mon_log_record:walk(fun({_, _, _, Size} = Key, {Acc, At}) ->
        {sderl_mon_log_index:add(Key, {file, File, At}, Acc), At + Size}
    end, {Left, Offset}, bytes(Piece)),
    written(Store#store{index = Added, writes = nothing});
answered({failed, Why}, #store{problem = Before} = Store) ->
    _ = Before =:= none andalso
        ?LOG_ERROR("The log of the monitored nodes cannot be written to files, and is kept in "
                   "memory until it can; that is tried each minute: ~ts", [Why], ?OWN),
    Timer = erlang:send_after(?AGAIN_MS, self(), again),
    Kept = sderl_mon_log_index:keep(?MEMORY, all_in_memory(Store)),
    known(Store#store{writer = none, writes = none, again = Timer, memory = Kept, problem = Why}).

all_in_memory(#store{writes = #{} = Piece, memory = Memory}) ->
    sderl_mon_log_index:put_oldest(Piece, Memory);
all_in_memory(#store{memory = Memory}) -> Memory.

%% The oldest that waits is written next.
written(#store{writer = Writer, writes = nothing, memory = Memory, problem = Problem} = Store) ->
    case sderl_mon_log_index:pop_oldest(Memory) of
        {#{first := First} = Piece, Left} ->
            ok = sderl_mon_log_writer:write(Writer, First, bytes(Piece)),
            Store#store{writes = Piece, memory = Left};
        none ->
            _ = Problem =/= none andalso
                ?LOG_NOTICE("The log of the monitored nodes is written to files again", [], ?OWN),
            Store#store{problem = none}
    end;
written(#store{writes = #{}} = Store) ->
    Store;
written(#store{writes = none, memory = Memory} = Store) ->
    Store#store{memory = sderl_mon_log_index:keep(?MEMORY, Memory)}.

bytes(#{place := {memory, Bytes}}) -> Bytes.

known(#store{asking = none} = Store) -> Store;
known(#store{asking = Asking} = Store) ->
    Stretches = stretches(Store),
    lists:foreach(fun(From) -> gen_server:reply(From, Stretches) end, Asking),
    Store#store{asking = none}.

%% New numbers follow those in files. Events in memory keep their numbers, unless the files have
%% these or later ones, because another program wrote there or the clock was set back.
behind(Last, #store{memory = Memory, next = Next} = Store) ->
    case lists:reverse(sderl_mon_log_index:stretches(Memory)) of
        [] -> Store#store{next = max(Last + 1, Next)};
        [#{first := First} | _] when First > Last -> Store;
        [#{first := First} | _] = Pieces -> renumbered(Last + 1 - First, Pieces, Store)
    end.

renumbered(By, Pieces, #store{next = Next} = Store) ->
    Bytes = iolist_to_binary([bytes(Piece) || Piece <- Pieces]),
    Memory = sderl_mon_log_record:fold(fun(#{id := Id} = Event, Acc) ->
        {Key, Record} = record(Event#{id := Id + By}),
        sderl_mon_log_index:add(Key, {memory, Record}, Acc)
    end, sderl_mon_log_index:new(), Bytes),
    Store#store{memory = Memory, next = Next + By}.

record(#{id := Id, t := T, level := Level} = Event) ->
    Record = sderl_mon_log_record:encode(Event),
    {{Id, T, sderl_mon_log_message:severity(Level), byte_size(Record)}, Record}.

%% ---------------------------------------------------------------- requests

-doc false.
-spec handle_call(term(), gen_server:from(), #store{}) ->
    {reply, term(), #store{}} | {noreply, #store{}}.
handle_call(stretches, From, #store{asking = Asking} = Store) when is_list(Asking) ->
    {noreply, Store#store{asking = [From | Asking]}};
handle_call(stretches, _From, Store) ->
    {reply, stretches(Store), Store};
handle_call(info, _From, Store) ->
    {reply, about(Store), Store};
handle_call(_, _From, Store) ->
    {reply, {error, unknown_call}, Store}.

%% The newest first.
stretches(#store{index = Index} = Store) ->
    sderl_mon_log_index:stretches(all_in_memory(Store)) ++ sderl_mon_log_index:stretches(Index).

about(#store{events = Events, lost = Lost, malformed = Malformed, index = Index, next = Next,
             wanted = Wanted, problem = Problem} = Store) ->
    Memory = all_in_memory(Store),
    #{events => Events, lost => Lost, malformed => Malformed,
      bytes => sderl_mon_log_index:bytes(Index) + sderl_mon_log_index:bytes(Memory),
      range => span(sderl_mon_log_index:range(Index), sderl_mon_log_index:range(Memory)),
      last => Next - 1, place => place(Wanted, Problem), problem => Problem}.

span(none, Range) -> Range;
span(Range, none) -> Range;
span({From, To}, {From1, To1}) -> {min(From, From1), max(To, To1)}.

place(off, _) -> memory;
place(_, none) -> files;
place(_, _) -> memory.

-doc false.
-spec handle_cast(term(), #store{}) -> {noreply, #store{}}.
handle_cast({sderl_mon_log, 1, Term}, Store) ->
    case sderl_mon_log_message:check_relayed(Term) of
        {ok, Batch} -> {noreply, taken(Batch, Store)};
        {error, not_a_batch} -> {noreply, malformed(Store)}
    end;
handle_cast(_, Store) ->
    {noreply, malformed(Store)}.

malformed(#store{malformed = N} = Store) -> Store#store{malformed = N + 1}.

taken(Batch, #store{sources = Sources} = Store) ->
    case sderl_mon_log_sources:take(Batch, Sources) of
        known -> Store;
        {new, Lost, Sources1} ->
            Store1 = lose(Lost, Store#store{sources = Sources1}),
            case is_overloaded(Store1) of
                true -> overloaded(Batch, Store1);
                false -> kept(sderl_mon_log_message:events(Batch, Lost), Store1)
            end
    end.

%% While a disk does not take events, new ones are dropped; without files, the oldest are.
is_overloaded(#store{writes = Writes, memory = Memory}) ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    Waiting > ?QUEUE orelse
        (Writes =/= none andalso sderl_mon_log_index:memory(Memory) > ?WAITING).

lose(Lost, #store{lost = Before} = Store) ->
    Store#store{lost = maps:merge_with(fun(_, A, B) -> A + B end, Before, Lost)}.

overloaded(#{events := Events}, Store) ->
    lists:foldl(fun(Event, Acc) -> lose(#{{overload, element(1, Event)} => 1}, Acc) end, Store,
                Events).

kept([], Store) -> Store;
kept(Events, #store{next = Next, events = Counts, memory = Memory} = Store) ->
    Added = lists:foldl(fun({Id, Event}, Acc) ->
        {Key, Record} = record(Event#{id => Id}),
        sderl_mon_log_index:add(Key, {memory, Record}, Acc)
    end, Memory, lists:enumerate(Next, Events)),
    Counted = lists:foldl(fun
        (#{lost := 0, level := Level}, Acc) ->
            maps:update_with(Level, fun(N) -> N + 1 end, 1, Acc);
        (_, Acc) -> Acc
    end, Counts, Events),
    written(Store#store{next = Next + length(Events), events = Counted, memory = Added}).

-doc false.
-spec handle_info(term(), #store{}) -> {noreply, #store{}}.
handle_info({sderl_mon_log_writer, Writer, Answer}, #store{writer = Writer} = Store) ->
    {noreply, answered(Answer, Store)};
handle_info({'EXIT', Writer, Why}, #store{writer = Writer} = Store) ->
    Said = io_lib:format("the process that writes files has ended: ~0tP", [Why, 12]),
    {noreply, answered({failed, unicode:characters_to_binary(Said)}, Store)};
handle_info(again, Store) ->
    {noreply, again(Store)};
handle_info({sderl_mon_config, #{log_files := Wanted}}, #store{wanted = Wanted} = Store) ->
    {noreply, again(Store)};
handle_info({sderl_mon_config, #{log_files := Wanted}}, Store) ->
    New = sderl_mon_log_index:new(),
    Ended = known(ended(Store)),
    {noreply, begun(Ended#store{wanted = Wanted, writer = none, writes = none, problem = none,
                                index = New, memory = New})};
handle_info(_, Store) ->
    {noreply, Store}.

again(#store{wanted = #{}, writer = none} = Store) -> opening(Store);
again(Store) -> Store.

-doc false.
-spec terminate(term(), #store{}) -> ok.
terminate(_, Store) ->
    _ = ended(Store),
    ok.

%% Waiting events are written first, if the disk takes them soon.
ended(Store) -> ended(Store, erlang:monotonic_time(millisecond) + ?STOP_MS).

ended(#store{writer = none} = Store, _) -> Store;
ended(#store{writer = Writer, writes = nothing} = Store, _) ->
    ok = sderl_mon_log_writer:stop(Writer, ?STOP_MS div 3),
    Store#store{writer = none};
ended(#store{writer = Writer} = Store, Until) ->
    receive
        {sderl_mon_log_writer, Writer, Answer} -> ended(answered(Answer, Store), Until)
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        ok = sderl_mon_log_writer:stop(Writer, 0),
        Store#store{writer = none}
    end.

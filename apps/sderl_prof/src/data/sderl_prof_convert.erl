%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_convert).
-moduledoc """
Makes a book of a trace, in one pass: this process reads, several decode pieces side by side, this
one numbers, and another sorts, compresses and writes. Memory is that of a few pieces and blocks.
""".

-export([convert/3, format_error/1]).
-export_type([options/0, reason/0]).

-include("sderl_prof_event.hrl").

%% Events of a block. What was held back for fewer than ?CARRY other events is put in its place.
-define(BLOCK, 65_536).
-define(CARRY, 16_384).
%% Blocks that may wait to be written.
-define(AHEAD, 2).
%% The heap with which each process begins, in words: growing it takes much time otherwise.
-define(HEAP, 200_000).
%% The header that the driver puts before each event.
-define(FRAME_BYTES, 5).

-doc """
`progress` is called with the bytes that were read and those of all files; `workers` decode side by
side; `heap_words` is what each process may have in memory: more ends the work with an error;
`peers` are the nodes that were recorded with this one (`m:sderl_prof_event`).
""".
-type options() :: #{progress => fun((non_neg_integer(), pos_integer()) -> term()),
                     workers => pos_integer(), heap_words => pos_integer(),
                     peers => sderl_prof_event:peers()}.
-type reason() :: sderl_prof_source:reason() | {book, file:filename_all(), term()} | no_times
    | {defect, term()}.

-record(convert, {
    source :: sderl_prof_source:source() | done,
    context :: sderl_prof_event:context(),
    build :: sderl_prof_build:build(),
    writer :: pid(),
    %% Blocks that the writer has not yet acknowledged.
    ahead = 0 :: non_neg_integer(),
    %% Pieces that are decoded, in order.
    jobs = queue:new() :: queue:queue(reference()),
    workers :: pos_integer(),
    heap :: [{max_heap_size, map()} | {min_heap_size, pos_integer()}],
    progress :: fun((non_neg_integer(), pos_integer()) -> term()),
    read = 0 :: non_neg_integer(),
    %% Events that make no block yet.
    buffer = [] :: [[sderl_prof_block:event()]],
    buffered = 0 :: non_neg_integer(),
    counts = #{dropped => 0, other => 0, foreign => 0, timeless => 0, frames => 0, bytes => 0} ::
        #{atom() => non_neg_integer()},
    problems = [] :: [sderl_prof_source:problem()]
}).

-doc "Makes a book of the trace at `Path` in the folder `Dir`.".
-spec convert(Path :: file:filename_all(), Dir :: file:filename_all(), options()) ->
    {ok, sderl_prof_book:meta()} | {error, reason()}.
convert(Path, Dir, Options) ->
    maybe
        {ok, Source, Info, Problems} ?= sderl_prof_source:open(Path),
        %% All that works is linked, and ends together.
        Self = self(),
        Ref = make_ref(),
        {Pid, Monitor} = spawn_opt(fun() ->
            Self ! {Ref, converted(Source, Info, Problems, Dir, Options)}
        end, [monitor | heap(Options)]),
        receive
            {Ref, Result} ->
                true = demonitor(Monitor, [flush]),
                Result;
            {'DOWN', Monitor, process, Pid, {book, Why}} -> {error, {book, Dir, Why}};
            {'DOWN', Monitor, process, Pid, Why} -> {error, {defect, Why}}
        end
    end.

-doc "Why there is no book.".
-spec format_error(reason()) -> unicode:chardata().
format_error({book, Dir, unreadable}) ->
    io_lib:format("the analysed trace in ~ts cannot be read again", [Dir]);
format_error({book, Dir, Why}) ->
    io_lib:format("cannot write the analysed trace to ~ts: ~ts", [Dir, file:format_error(Why)]);
format_error(no_times) ->
    "the events have no times; record with the flag timestamp or monotonic_timestamp";
format_error({defect, Why}) ->
    io_lib:format("this is a defect of the analysis: ~0tP", [Why, 20]);
format_error(Reason) -> sderl_prof_source:format_problem(Reason).

converted(Source, Info, Problems, Dir, Options) ->
    Self = self(),
    Writer = spawn_opt(fun() ->
        {ok, Book} = or_exit(sderl_prof_book:create(Dir)),
        write(Self, Book, [])
    end, [link | heap(Options)]),
    C = #convert{
        source = Source,
        context = (context(Info, sderl_prof_source:sample(Source)))#{
            peers => maps:get(peers, Options, #{})
        },
        build = sderl_prof_build:new(own(Info)),
        writer = Writer,
        heap = heap(Options),
        workers = maps:get(workers, Options, erlang:system_info(schedulers_online)),
        progress = maps:get(progress, Options, fun(_, _) -> ok end),
        problems = lists:reverse(Problems)
    },
    finish(loop(C, sderl_prof_source:size(Source)), Info, Dir).

heap(#{heap_words := Words}) ->
    [{max_heap_size, #{size => Words, kill => true, include_shared_binaries => true}}];
heap(_) -> [{min_heap_size, ?HEAP}].

own(#{own := Own}) -> [sderl_prof_event:key(Id, Serial) || {Id, Serial} <- Own];
own(_) -> [].

%% A recording says what its events look like; other traces show it in their first events.
context(#{node := Node, scheduler_id := Scheduler} = Info, _) ->
    #{node => <<119, (byte_size(Node)), Node/binary>>, exact => true, scheduler => Scheduler,
      alias_bits => maps:get(alias_bits, Info, none)};
context(none, Sample) ->
    #{node => first_node(Sample), exact => false, scheduler => false, alias_bits => none}.

%% A traced process is one of the node that traces.
first_node(<<0, N:32, Event:N/binary, Rest/binary>>) ->
    case Event of
        <<131, 104, _, 119, _, "trace_ts", 88, 119, L, Node:L/binary, _/binary>> ->
            <<119, L, Node/binary>>;
        <<131, 104, _, 119, _, "profile", 88, 119, L, Node:L/binary, _/binary>> ->
            <<119, L, Node/binary>>;
        _ -> first_node(Rest)
    end;
first_node(<<1, _:32, Rest/binary>>) -> first_node(Rest);
first_node(_) -> <<119, 0>>.

%% ---------------------------------------------------------------- the pass

loop(#convert{jobs = Jobs, workers = Workers, source = Source} = C, Size) ->
    case queue:len(Jobs) of
        N when N =< Workers, Source =/= done -> loop(read(C, Size), Size);
        0 -> C;
        _ -> loop(take(C), Size)
    end.

read(#convert{source = Source, problems = Problems} = C, Size) ->
    case sderl_prof_source:next(Source) of
        {piece, Piece, Next} ->
            Read = C#convert.read + byte_size(Piece),
            _ = (C#convert.progress)(min(Read, Size), max(1, Size)),
            decode(Piece, C#convert{source = Next, read = Read});
        {problem, Problem, Next} ->
            C#convert{source = Next, problems = [Problem | Problems]};
        done -> C#convert{source = done}
    end.

decode(Piece, #convert{context = Context, jobs = Jobs, heap = Heap} = C) ->
    Self = self(),
    Ref = make_ref(),
    _ = spawn_opt(fun() -> Self ! {Ref, sderl_prof_event:rows(Piece, Context)} end, [link | Heap]),
    C#convert{jobs = queue:in(Ref, Jobs)}.

take(#convert{jobs = Jobs, build = Build, counts = Counts} = C) ->
    {{value, Ref}, Rest} = queue:out(Jobs),
    Result = receive {Ref, R} -> R end,
    {Events, Words, Patches, Build1} = sderl_prof_build:add(Result, Build),
    C#convert.writer ! {known, Words, Patches},
    Counts1 = maps:map(fun(Key, N) -> N + map_get(Key, Result) end, Counts),
    buffer(Events, C#convert{jobs = Rest, build = Build1, counts = Counts1}).

buffer([], C) -> C;
buffer(Events, #convert{buffer = Buffer, buffered = N} = C) ->
    case N + length(Events) of
        More when More >= ?BLOCK ->
            send_block(lists:append(lists:reverse([Events | Buffer])),
                       C#convert{buffer = [], buffered = 0});
        More -> C#convert{buffer = [Events | Buffer], buffered = More}
    end.

send_block(Events, #convert{writer = Writer, ahead = Ahead} = C) when Ahead < ?AHEAD ->
    Writer ! {events, Events},
    C#convert{ahead = Ahead + 1};
send_block(Events, #convert{ahead = Ahead} = C) ->
    receive written -> send_block(Events, C#convert{ahead = Ahead - 1}) end.

finish(#convert{buffer = Buffer, counts = Counts, build = Build, context = Context} = C0, Info,
       Dir) ->
    #convert{writer = Writer} = C =
        send_block(lists:append(lists:reverse(Buffer)), C0),
    #{timeless := Timeless, dropped := Dropped} = Counts,
    #{node := <<119, _, Node/binary>>} = Context,
    #{entities := Entities} = Built = sderl_prof_build:counts(Build),
    {LostBytes, LostEvents} = lost(Info, Counts),
    Meta = #{
        node => Node,
        info => Info,
        entities => Entities,
        dropped => Dropped,
        lost_bytes => LostBytes,
        lost_events => LostEvents,
        problems => [unicode:characters_to_binary(Text)
                     || Text <- problems(C, Info, Counts, Built, LostBytes, LostEvents)]
    },
    Writer ! {finish, self(), Meta},
    receive
        {finished, ok} when Timeless > 0 -> timeless(Dir);
        {finished, ok} -> opened(Dir)
    end.

opened(Dir) ->
    maybe
        {ok, Book} ?= sderl_prof_book:open(Dir),
        Meta = sderl_prof_book:meta(Book),
        ok = sderl_prof_book:close(Book),
        {ok, Meta}
    else
        {error, {no_book, Dir}} -> {error, {book, Dir, unreadable}}
    end.

timeless(Dir) ->
    case opened(Dir) of
        {ok, #{events := 0}} -> {error, no_times};
        Other -> Other
    end.

%% Of a recording that overwrites its oldest part, what was written and is not there. The mean event
%% tells how many events that were.
lost(#{written := Written, ended := Ended}, #{bytes := Bytes, frames := Frames})
  when Ended =/= unknown, Frames > 0, Written > Bytes + ?FRAME_BYTES * Frames ->
    All = Bytes + ?FRAME_BYTES * Frames,
    {Written - All, (Written - All) * Frames div All};
lost(_, _) -> {0, 0}.

problems(#convert{problems = Problems}, Info, Counts, Built, LostBytes, LostEvents) ->
    #{other := Other, foreign := Foreign, timeless := Timeless, dropped := Dropped} = Counts,
    #{jumps := Jumps, again := Again} = Built,
    [sderl_prof_source:format_problem(P) || P <- lists:reverse(Problems)] ++
        [io_lib:format("one process in ~b was recorded, drawn when it began, with what it spawned: "
                       "all counts, sums and curves are of these alone", [Share])
         || #{share := Share} <- [Info]] ++
        [io_lib:format(Text, Args) || {N, Text, Args} <- [
            {LostBytes, "about ~b events (~b bytes) were overwritten by later ones",
             [LostEvents, LostBytes]},
            {Dropped, "the tracer dropped ~b events", [Dropped]},
            {Foreign, "~b events are of another node and left out; open the traces of each node "
                      "for themselves", [Foreign]},
            {Other, "~b entries are no events that this program knows", [Other]},
            {Timeless, "~b events have no time and are left out", [Timeless]},
            {Jumps, "the clock went back ~b times; times around that are not to be trusted",
             [Jumps]},
            {Again, "~b pids came again without the end of the process that had them before",
             [Again]}
        ], N > 0].

%% ---------------------------------------------------------------- the writer

write(Converter, Book, Carry) ->
    receive
        {known, Words, Patches} ->
            ok = or_exit(sderl_prof_book:write_words(Words, Book)),
            ok = or_exit(sderl_prof_book:patch(Patches, Book)),
            write(Converter, Book, Carry);
        {events, Events} ->
            Sorted = lists:keysort(1, Carry ++ Events),
            Count = max(0, length(Sorted) - ?CARRY),
            {Now, Later} = lists:split(Count, Sorted),
            Book1 = blocks(Now, Book),
            Converter ! written,
            write(Converter, Book1, Later);
        {finish, From, Meta} ->
            Book1 = blocks(Carry, Book),
            From ! {finished, or_exit(sderl_prof_book:finish(Meta, Book1))}
    end.

blocks([], Book) -> Book;
blocks(Events, Book) ->
    {Now, Later} = split(Events, ?BLOCK),
    {ok, Book1} = or_exit(sderl_prof_book:write_block(sderl_prof_block:encode(Now), Book)),
    blocks(Later, Book1).

%% The last block is a little larger, rather than one of a few events behind it.
split(Events, N) ->
    case length(Events) >= 2 * N of
        true -> lists:split(N, Events);
        false -> {Events, []}
    end.

or_exit({error, Why}) -> exit({book, Why});
or_exit(Fine) -> Fine.

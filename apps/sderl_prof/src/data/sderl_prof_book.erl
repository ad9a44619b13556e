%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_book).
-moduledoc """
A trace on disk, ready for questions: a folder with

| file | holds |
|---|---|
| `columns` | blocks of events (`m:sderl_prof_block`), one behind the other |
| `index` | one row for each block: where it is, its times, the processes in it |
| `entities` | one row for each process, port and name (`m:sderl_prof_entity`) |
| `words` | the texts: names, functions, reasons |
| `book` | what is known of the whole |

A book that is open takes memory for its index and its words, not for its events or processes.
""".

-export([create/1, write_block/2, write_words/2, patch/2, finish/2]).
-export([open/1, close/1, meta/1, fold/4, entity/2, fold_entities/3, word/2, label/2]).
-export([table/1, fold_block/4, fold_back/5, range/1, words/1, node_of/2, nodes/1]).
-export_type([book/0, writer/0, meta/0, range/0, row/0, part/0]).

-define(ENTITIES_AT_ONCE, 4096).
%% Bytes of the file of entities that are written at once, where there are more patches than a few;
%% a multiple of a row.
-define(PAGE, 16_384).
-define(FEW, 8).
-define(BITS_BYTES, 1024).
%% Written when so much has come, and at the end. What cannot be written when a time is over is
%% lost without an error, so this time never comes.
-define(DELAYED, {delayed_write, 65_536, 86_400_000}).
%% Named here, so that they are atoms before a book is read.
-define(KEYS, [node, info, events, kinds, first, last, entities, dropped, lost_bytes, lost_events,
               problems]).
-define(NODE_KEYS, [nodes, number, above, upto, scheduler, schedulers, from, to, error, shift,
                    groups, traffic]).

-record(writer, {dir, columns, index, entities, words, at = 0, events = 0, first = none,
                 last = none, kinds = #{}}).
-opaque writer() :: #writer{}.

%% Where it is, its bytes, its times, its processes, and how many events it has.
-type block() :: {non_neg_integer(), pos_integer(), integer(), integer(), bitstring(),
                  pos_integer()}.

-record(book, {
    dir :: file:filename_all(),
    columns :: file:fd(),
    entities :: file:fd(),
    blocks :: [block()],
    words :: tuple(),
    meta :: meta()
}).
-opaque book() :: #book{}.

-doc """
One node of a book of several (`m:sderl_prof_merge`): its entities are those with numbers above
`above` and up to `upto`, its schedulers those above `scheduler`. `from` and `to` are when it was
recorded, on the time line of all, on which its times are wrong by at most `error`. They are later
by `shift` than its clock was found to say, so that no message comes before it was sent.
""".
-type part() :: #{number := pos_integer(), node := binary(), above := non_neg_integer(),
                  upto := non_neg_integer(), scheduler := non_neg_integer(),
                  schedulers := pos_integer() | unknown, from := integer(), to := integer(),
                  error := non_neg_integer(), shift := integer(), groups := [binary()]}.

-doc "What is known of the whole trace. `problems` are sentences; `nodes` are those of several.".
-type meta() :: #{
    nodes => [part()],
    version := 1,
    node := binary(),
    info := sderl_prof_recorder:info() | none,
    events := non_neg_integer(),
    kinds := #{sderl_prof_event:kind() => pos_integer()},
    first := integer(),
    last := integer(),
    entities := non_neg_integer(),
    blocks := non_neg_integer(),
    dropped := non_neg_integer(),
    lost_bytes := non_neg_integer(),
    lost_events := non_neg_integer(),
    problems := [binary()]
}.

-doc "Events of this time only, both ends included, and of this process only.".
-type range() :: #{from => integer(), to => integer(), process => pos_integer()}.

%% ---------------------------------------------------------------- writing

-doc "A new book; what the folder holds is overwritten.".
-spec create(file:filename_all()) -> {ok, writer()} | {error, file:posix()}.
create(Dir) ->
    Open = fun(Name) ->
        file:open(filename:join(Dir, Name), [write, read, raw, binary, ?DELAYED])
    end,
    maybe
        ok ?= filelib:ensure_path(Dir),
        _ = [file:delete(filename:join(Dir, Name))
             || Name <- ["book", "columns", "index", "entities", "words"]],
        {ok, Columns} ?= Open("columns"),
        {ok, Index} ?= Open("index"),
        {ok, Entities} ?= Open("entities"),
        {ok, Words} ?= Open("words"),
        {ok, #writer{dir = Dir, columns = Columns, index = Index, entities = Entities,
                     words = Words}}
    end.

-doc "Adds a block.".
-spec write_block({sderl_prof_block:header(), iodata()}, writer()) ->
    {ok, writer()} | {error, file:posix()}.
write_block({#{count := Count, from := From, to := To, processes := Bits, kinds := Kinds}, Block},
            #writer{at = At, events = Events, first = First, last = Last} = W) ->
    Size = iolist_size(Block),
    maybe
        ok ?= file:write(W#writer.columns, Block),
        ok ?= file:write(W#writer.index,
                         [<<At:64, Size:32, Count:32, From:64, To:64>>, Bits]),
        {ok, W#writer{at = At + Size, events = Events + Count,
                      first = least(First, From), last = greatest(Last, To),
                      kinds = lists:foldl(fun count_kind/2, W#writer.kinds, Kinds)}}
    end.

count_kind({Code, N}, Kinds) ->
    maps:update_with(sderl_prof_event:kind(Code), fun(Before) -> Before + N end, N, Kinds).

least(none, From) -> From;
least(First, From) -> min(First, From).

greatest(none, To) -> To;
greatest(Last, To) -> max(Last, To).

-doc "Adds words, which have the next numbers.".
-spec write_words([binary()], writer()) -> ok | {error, file:posix()}.
write_words(Words, #writer{words = File}) ->
    file:write(File, [<<(byte_size(Word)):32, Word/binary>> || Word <- Words]).

-doc "Writes what became known of entities.".
-spec patch([sderl_prof_build:patch()], writer()) -> ok | {error, file:posix()}.
patch([], _) -> ok;
patch(Patches, #writer{entities = File}) ->
    Places = [sderl_prof_entity:patch(N, Field, Value) || {N, Field, Value} <- Patches],
    Pages = maps:groups_from_list(fun({At, _}) -> At div ?PAGE end, Places),
    maybe
        {ok, Whole} ?= pages(maps:to_list(Pages), File, []),
        ok ?= file:pwrite(File, Whole)
    else
        {error, {_, Why}} -> {error, Why};
        Error -> Error
    end.

%% Each write is one call of the system, and a process that begins and ends has ten patches: those
%% of a part of the file are written at once.
pages([], _, Whole) -> {ok, Whole};
pages([{_, Places} | Pages], File, Whole) when length(Places) < ?FEW ->
    pages(Pages, File, Places ++ Whole);
pages([{Page, Places} | Pages], File, Whole) ->
    case file:pread(File, Page * ?PAGE, ?PAGE) of
        {error, _} = Error -> Error;
        Read ->
            Old = case Read of {ok, Bin} -> Bin; eof -> <<>> end,
            %% Of two for one place the later one counts.
            Sorted = lists:sort(maps:to_list(maps:from_list(Places))),
            pages(Pages, File, [{Page * ?PAGE, spliced(Sorted, Page * ?PAGE, Old)} | Whole])
    end.

spliced([], _, Old) -> Old;
spliced([{At, Bin} | Places], From, Old) ->
    {Before, Behind} = taken(At - From, Old),
    {_, Rest} = taken(byte_size(Bin), Behind),
    [Before, Bin | spliced(Places, At + byte_size(Bin), Rest)].

%% What has not been written is 0, which stands for unknown.
taken(Size, Bin) when byte_size(Bin) >= Size -> split_binary(Bin, Size);
taken(Size, Bin) -> {[Bin, <<0:(8 * (Size - byte_size(Bin)))>>], <<>>}.

-doc "Ends the writing; without it there is no book.".
-spec finish(Meta :: map(), writer()) -> ok | {error, file:posix()}.
finish(Meta, #writer{dir = Dir, events = Events, first = First, last = Last} = W) ->
    Full = Meta#{version => 1, events => Events, first => zero(First), last => zero(Last),
                 kinds => W#writer.kinds},
    maybe
        ok ?= file:close(W#writer.columns),
        ok ?= file:close(W#writer.index),
        ok ?= file:close(W#writer.entities),
        ok ?= file:close(W#writer.words),
        ok ?= file:write_file(filename:join(Dir, "book.new"), term_to_binary(Full)),
        file:rename(filename:join(Dir, "book.new"), filename:join(Dir, "book"))
    end.

zero(none) -> 0;
zero(Time) -> Time.

%% ---------------------------------------------------------------- reading

-doc "Opens a book.".
-spec open(file:filename_all()) -> {ok, book()} | {error, {no_book, file:filename_all()}}.
open(Dir) ->
    try
        %% All atoms of a book are those of these; no others are made.
        ok = code:ensure_modules_loaded([sderl_prof_event, sderl_prof_recorder, sderl_prof_tap,
                                         sderl_prof_convert]),
        {ok, Bin} = file:read_file(filename:join(Dir, "book")),
        #{version := 1} = Meta = binary_to_term(Bin, [safe]),
        true = lists:all(fun(Key) -> is_map_key(Key, Meta) end, ?KEYS),
        true = are_nodes(Meta),
        {ok, Index} = file:read_file(filename:join(Dir, "index")),
        {ok, Words} = file:read_file(filename:join(Dir, "words")),
        {ok, Columns} = file:open(filename:join(Dir, "columns"), [read, raw, binary]),
        {ok, Entities} = file:open(filename:join(Dir, "entities"), [read, raw, binary]),
        Blocks = [{At, Size, From, To, Bits, Count}
                  || <<At:64, Size:32, Count:32, From:64/signed, To:64/signed,
                       Bits:?BITS_BYTES/binary>> <= Index],
        Table = list_to_tuple([Word || <<L:32, Word:L/binary>> <= Words]),
        {ok, #book{dir = Dir, columns = Columns, entities = Entities, blocks = Blocks,
                   words = Table, meta = Meta#{blocks => length(Blocks)}}}
    catch
        error:_ -> {error, {no_book, Dir}}
    end.

%% Of a book of several.
are_nodes(#{nodes := Nodes}) ->
    lists:all(fun(Part) -> ?NODE_KEYS -- [nodes, traffic | maps:keys(Part)] =:= [] end, Nodes);
are_nodes(_) -> true.

-doc "Closes it.".
-spec close(book()) -> ok.
close(#book{columns = Columns, entities = Entities}) ->
    ok = file:close(Columns),
    ok = file:close(Entities).

-doc "What is known of the whole.".
-spec meta(book()) -> meta().
meta(#book{meta = Meta}) -> Meta.

-doc """
Begin and end of the whole: as the recorder tells them, or else the first and the last event.
""".
-spec range(meta()) -> {integer(), integer()}.
range(#{info := #{began := Began, ended_at := Ended}, events := 0}) ->
    {Began, case Ended of undefined -> Began; _ -> max(Began, Ended) end};
range(#{info := #{began := Began, ended_at := Ended}, first := First, last := Last}) ->
    {min(Began, First), case Ended of undefined -> Last; _ -> max(Ended, Last) end};
range(#{first := First, last := Last}) -> {First, Last}.

-doc """
Folds over the events of the range: time, code of the kind, scheduler, process, and the two numbers
of the kind. Events come in the order of their time, but for
those that a scheduler held back for longer than some thousand others.
""".
-spec fold(book(), range(), Fun, Acc) -> Acc when
    Fun :: fun((integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
                non_neg_integer(), Acc) -> Acc).
fold(#book{columns = File, blocks = Blocks}, Range, Fun, Acc) ->
    Process = maps:get(process, Range, none),
    Each = in_range(Range, Fun),
    lists:foldl(fun({At, Size, From, To, Bits, _}, Acc1) ->
        case is_wanted(From, To, Bits, Range) of
            true ->
                {ok, Block} = file:pread(File, At, Size),
                sderl_prof_block:fold(Block, Each, Acc1, Process);
            false -> Acc1
        end
    end, Acc, Blocks).

-doc """
The same from the latest event to the earliest, with one block in memory at a time. Before each
block, `Wanted` tells by the accumulator which process is looked for, so that blocks without it are
not read; `any` for all blocks.
""".
-spec fold_back(book(), range(), Wanted, Fun, Acc) -> Acc when
    Wanted :: fun((Acc) -> any | pos_integer()),
    Fun :: fun((integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
                non_neg_integer(), Acc) -> Acc).
fold_back(#book{columns = File, blocks = Blocks}, Range, Wanted, Fun, Acc) ->
    Each = in_range(Range, Fun),
    lists:foldl(fun({At, Size, From, To, Bits, _}, Acc1) ->
        Narrowed = case Wanted(Acc1) of
            any -> Range;
            Process -> Range#{process => Process}
        end,
        case is_wanted(From, To, Bits, Narrowed) of
            true ->
                {ok, Block} = file:pread(File, At, Size),
                lists:foldl(fun({T, K, S, P, A, B}, Acc2) -> Each(T, K, S, P, A, B, Acc2) end,
                            Acc1, sderl_prof_block:latest_first(Block));
            false -> Acc1
        end
    end, Acc, lists:reverse(Blocks)).

-doc "The blocks in their order: number from 1 on, first and last time, events.".
-type row() :: {pos_integer(), From :: integer(), To :: integer(), Events :: pos_integer()}.
-spec table(book()) -> [row()].
table(#book{blocks = Blocks}) ->
    [{N, From, To, Count} || {N, {_, _, From, To, _, Count}} <- lists:enumerate(Blocks)].

-doc "As `fold/4`, of the events of one block.".
-spec fold_block(book(), Number :: pos_integer(), Fun, Acc) -> Acc when
    Fun :: fun((integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
                non_neg_integer(), Acc) -> Acc).
fold_block(#book{columns = File, blocks = Blocks}, Number, Fun, Acc) ->
    {At, Size, _, _, _, _} = lists:nth(Number, Blocks),
    {ok, Block} = file:pread(File, At, Size),
    sderl_prof_block:fold(Block, Fun, Acc, none).

is_wanted(First, Last, Bits, Range) ->
    maps:get(to, Range, First) >= First andalso maps:get(from, Range, Last) =< Last andalso
        case Range of
            #{process := P} -> sderl_prof_block:may_have(P, Bits);
            _ -> true
        end.

in_range(Range, Fun) when is_map_key(from, Range); is_map_key(to, Range) ->
    From = maps:get(from, Range, none),
    %% An atom is greater than any number.
    To = maps:get(to, Range, none),
    fun(T, K, S, P, A, B, Acc) when (From =:= none orelse T >= From), T =< To ->
            Fun(T, K, S, P, A, B, Acc);
       (_, _, _, _, _, _, Acc) -> Acc
    end;
in_range(_, Fun) -> Fun.

-doc "What is known of an entity.".
-spec entity(pos_integer(), book()) -> sderl_prof_entity:entity() | none.
entity(Number, #book{entities = File}) ->
    Bytes = sderl_prof_entity:row_bytes(),
    case file:pread(File, (Number - 1) * Bytes, Bytes) of
        {ok, Row} -> sderl_prof_entity:decode(Number, padded(Row, Bytes));
        eof -> none
    end.

padded(Row, Bytes) ->
    Missing = 8 * (Bytes - byte_size(Row)),
    <<Row/binary, 0:Missing>>.

-doc "Folds over the entities in the order of their numbers.".
-spec fold_entities(fun((sderl_prof_entity:entity(), Acc) -> Acc), Acc, book()) -> Acc.
fold_entities(Fun, Acc, #book{entities = File}) -> fold_entities(Fun, Acc, File, 1).

fold_entities(Fun, Acc, File, Number) ->
    Bytes = sderl_prof_entity:row_bytes(),
    case file:pread(File, (Number - 1) * Bytes, ?ENTITIES_AT_ONCE * Bytes) of
        {ok, Rows} ->
            Whole = padded(Rows, (byte_size(Rows) + Bytes - 1) div Bytes * Bytes),
            {Next, Acc1} = rows(Whole, Bytes, Fun, Number, Acc),
            fold_entities(Fun, Acc1, File, Next);
        eof -> Acc
    end.

rows(Rows, Bytes, Fun, Number, Acc) ->
    case Rows of
        <<Row:Bytes/binary, Rest/binary>> ->
            Acc1 = case sderl_prof_entity:decode(Number, Row) of
                none -> Acc;
                Entity -> Fun(Entity, Acc)
            end,
            rows(Rest, Bytes, Fun, Number + 1, Acc1);
        <<>> -> {Number, Acc}
    end.

-doc "The words, in the order of their numbers.".
-spec words(book()) -> [binary()].
words(#book{words = Words}) -> tuple_to_list(Words).

-doc "The nodes of a book of several; none of a book of one.".
-spec nodes(book()) -> [part()].
nodes(#book{meta = Meta}) -> maps:get(nodes, Meta, []).

-doc "The node that an entity is of, in a book of several nodes.".
-spec node_of(non_neg_integer(), book()) -> part() | none.
node_of(Number, #book{meta = #{nodes := Nodes}}) -> part_of(Number, Nodes);
node_of(_, _) -> none.

part_of(Number, [#{above := Above, upto := Last} = Part | _])
  when Number > Above, Number =< Last -> Part;
part_of(Number, [_ | Parts]) -> part_of(Number, Parts);
part_of(_, []) -> none.

-doc "A word; of 0 an empty one.".
-spec word(non_neg_integer(), book()) -> binary().
word(0, _) -> ~"";
word(Number, #book{words = Words}) when Number =< tuple_size(Words) -> element(Number, Words);
word(_, _) -> ~"?".

-doc """
What a person calls this entity: its name, its pid, its text; of several nodes with that of its
node.
""".
-spec label(non_neg_integer() | sderl_prof_entity:entity(), book()) -> binary().
label(#{kind := Kind, number := Number} = Entity, #book{meta = #{nodes := _}} = Book)
  when Kind =:= process; Kind =:= port ->
    case node_of(Number, Book) of
        #{node := Node} -> <<(own_label(Entity, Book))/binary, " at ", Node/binary>>;
        none -> own_label(Entity, Book)
    end;
label(#{kind := _} = Entity, Book) -> own_label(Entity, Book);
label(0, _) -> ~"?";
label(Number, Book) ->
    case entity(Number, Book) of
        none -> ~"?";
        Entity -> label(Entity, Book)
    end.

own_label(#{name := Name}, Book) when Name > 0 -> word(Name, Book);
own_label(#{key := Key}, _) -> pid_text(Key).

pid_text(Key) ->
    iolist_to_binary(["<0.", integer_to_binary(Key band 16#FFFFFFFF), ".",
                      integer_to_binary(Key bsr 32), ">"]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_build).
-moduledoc """
Gives processes, ports, names and words numbers that hold for a whole trace, in one pass. Pure.

Memory grows with the processes that live at one time, not with all that ever lived: what is known
of a process is given out at once, as patches of its row (`m:sderl_prof_entity`), and its number is
forgotten some time after its end, because late messages to it may come. A pid that comes again is
another process.
""".

-export([new/1, add/2, counts/1]).
-export_type([build/0, patch/0, counts/0]).

-include("sderl_prof_event.hrl").

%% So many ended processes are remembered, and as many more.
-define(GONE, 50_000).
%% Processes and ports of other nodes that are distinguished; further ones count as their node.
-define(MOST_OTHERS, 200_000).
%% Details that are distinguished; further ones are left out.
-define(MOST_DETAILS, 100_000).
%% The clock has jumped when time goes back by more than schedulers and their buffers explain.
-define(BACK_NS, 1_000_000_000).

-type patch() :: {Number :: pos_integer(), sderl_prof_entity:field(), integer()}.
-type counts() :: #{entities := non_neg_integer(), words := non_neg_integer(),
                    jumps := non_neg_integer(), again := non_neg_integer()}.

-record(build, {
    own :: #{non_neg_integer() => own},
    %% The number of an entity, doubled, and 1 added when its own begin is known.
    live = #{} :: #{non_neg_integer() => pos_integer()},
    gone = #{} :: #{non_neg_integer() => pos_integer()},
    long_gone = #{} :: #{non_neg_integer() => pos_integer()},
    entities = 0 :: non_neg_integer(),
    %% By the term in external format, and by {text, Text}.
    words = #{} :: #{binary() | {text, binary()} => pos_integer()},
    word_count = 0 :: non_neg_integer(),
    %% The process that has a name, by the word of the name.
    names = #{} :: #{pos_integer() => pos_integer()},
    others = 0 :: non_neg_integer(),
    details = 0 :: non_neg_integer(),
    new_words = [] :: [binary()],
    patches = [] :: [patch()],
    last = none :: none | integer(),
    jumps = 0 :: non_neg_integer(),
    again = 0 :: non_neg_integer()
}).
-opaque build() :: #build{}.

-doc """
Nothing yet. What the system profiler tells of processes with the keys `Own` is left out.
""".
-spec new(Own :: [non_neg_integer()]) -> build().
new(Own) -> #build{own = maps:from_keys(Own, own)}.

-doc """
The events of a piece, in its order; the texts of new words, in the order of their numbers, which
begin with 1; and what became known of entities, in order.
""".
-spec add(sderl_prof_event:result(), build()) ->
    {[sderl_prof_block:event()], NewWords :: [binary()], [patch()], build()}.
add(#{rows := Rows, words := Words}, B0) ->
    {Table, B1} = lists:mapfoldl(fun number_word/2, B0, Words),
    {Events, B2} = rows(Rows, list_to_tuple(Table), B1#build.last, [], B1),
    #build{new_words = New, patches = Patches} = B2,
    {lists:reverse(Events), lists:reverse(New), lists:reverse(Patches),
     B2#build{new_words = [], patches = []}}.

-doc "Counts so far: entities, words, jumps of the clock, pids that came again without an end.".
-spec counts(build()) -> counts().
counts(#build{entities = Entities, word_count = Words, jumps = Jumps, again = Again}) ->
    #{entities => Entities, words => Words, jumps => Jumps, again => Again}.

%% ---------------------------------------------------------------- words

%% A word's number, and the kind of entity that it would be.
number_word(<<?TEXT, Text/binary>>, B) ->
    {Number, B1} = number_text(Text, B),
    {{Number, name}, B1};
number_word(<<?DETAIL, Text/binary>>, #build{words = Words, details = Details} = B) ->
    case is_map_key({text, Text}, Words) of
        false when Details >= ?MOST_DETAILS -> {{0, name}, B};
        IsKnown ->
            {Number, B1} = number_text(Text, B),
            {{Number, name}, B1#build{details = Details + case IsKnown of true -> 0; _ -> 1 end}}
    end;
number_word(<<Tag, _/binary>> = Word, #build{words = Words, others = Others} = B) ->
    case {Words, kind(Tag)} of
        {#{Word := Number}, Kind} -> {{Number, Kind}, B};
        {_, Kind} when Kind =:= remote; Kind =:= port ->
            case Others >= ?MOST_OTHERS of
                true ->
                    {Number, B1} = number_text(node_text(Word), B),
                    {{Number, node}, B1};
                false ->
                    {Number, B1} = number_text(sderl_prof_etf:text(Word), B),
                    {{Number, Kind}, remember(Word, Number, B1#build{others = Others + 1})}
            end;
        {_, Kind} ->
            %% By its text a function is one word, however it came.
            {Number, B1} = number_text(sderl_prof_etf:text(Word), B),
            {{Number, Kind}, remember(Word, Number, B1)}
    end.

kind(88) -> remote;
kind(103) -> remote;
kind(120) -> port;
kind(89) -> port;
kind(102) -> port;
kind(90) -> alias;
kind(_) -> name.

node_text(<<_, 119, L, Node:L/binary, _/binary>>) -> Node;
node_text(_) -> ~"elsewhere".

remember(Word, Number, #build{words = Words} = B) ->
    B#build{words = Words#{Word => Number}}.

number_text(Text, #build{words = Words, word_count = Count, new_words = New} = B) ->
    case Words of
        #{{text, Text} := Number} -> {Number, B};
        _ ->
            Number = Count + 1,
            {Number, B#build{words = Words#{{text, Text} => Number}, word_count = Number,
                             new_words = [Text | New]}}
    end.

%% ---------------------------------------------------------------- rows

rows(<<T:64/signed, K, S:16, Who:64, A:64, B:64, Rest/binary>>, Table, Last, Events, Build) ->
    case T < Last andalso Last =/= none andalso T =/= 0 andalso Last - T > ?BACK_NS of
        false ->
            {Event, Build1} = row(K, T, S, Who, A, B, Table, Last, Build),
            Events1 = case Event of none -> Events; _ -> [Event | Events] end,
            rows(Rest, Table, newer(K, T, Last), Events1, Build1);
        true ->
            %% From here on time counts from where it went back to.
            Jumped = Build#build{jumps = Build#build.jumps + 1},
            rows(<<T:64, K, S:16, Who:64, A:64, B:64, Rest/binary>>, Table, T, Events, Jumped)
    end;
rows(<<>>, _, Last, Events, B) ->
    {Events, B#build{last = Last}}.

newer(_, 0, Last) -> Last;
newer(_, T, none) -> T;
newer(_, T, Last) when T > Last -> T;
newer(_, _, Last) -> Last.

row(K, _, _, Who, _, _, _, _, #build{own = Own} = Build)
  when is_map_key(Who, Own), (K =:= ?ACTIVE orelse K =:= ?INACTIVE) ->
    {none, Build};
row(K, T, S, Who, A, _, Table, _, Build)
  when K =:= ?IN; K =:= ?OUT; K =:= ?ACTIVE; K =:= ?INACTIVE; K =:= ?IN_EXITING;
       K =:= ?OUT_EXITING; K =:= ?RETURN_TO; K =:= ?RETURN_FROM; K =:= ?EXCEPTION ->
    {P, Build1} = entity(Who, T, Table, Build),
    {{T, K, S, P, word(A, Table), 0}, Build1};
row(K, T, S, Who, A, B, Table, _, Build) when K =:= ?SEND; K =:= ?SEND_NOBODY ->
    {P, Build1} = entity(Who, T, Table, Build),
    {To, Build2} = receiver(A, T, Table, Build1),
    {{T, K, S, P, To, bytes(B)}, Build2};
row(?RECEIVE, T, S, Who, 0, B, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    {{T, ?RECEIVE, S, P, 0, bytes(B)}, Build1};
row(?RECEIVE, T, S, Who, A, B, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    {Sender, Build2} = entity(A, T, Table, Build1),
    {{T, ?RECEIVE, S, P, Sender, bytes(B)}, Build2};
row(K, T, S, Who, _, _, Table, _, Build)
  when K =:= ?GC_MINOR_START; K =:= ?GC_MINOR_END; K =:= ?GC_MAJOR_START; K =:= ?GC_MAJOR_END;
       K =:= ?GC_MAX_HEAP_SIZE ->
    {P, Build1} = entity(Who, T, Table, Build),
    {{T, K, S, P, 0, 0}, Build1};
row(?CALL, T, S, Who, A, B, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    Caller = case B of 0 -> 0; _ -> word(B - ?WORD, Table) end,
    {{T, ?CALL, S, P, word(A, Table), Caller}, Build1};
row(K, T, S, Who, A, B, Table, _, Build) when K =:= ?OPERATION; K =:= ?RESULT; K =:= ?FAILED ->
    {P, Build1} = entity(Who, T, Table, Build),
    {{T, K, S, P, word(A, Table), word(B - ?WORD, Table)}, Build1};
row(K, T, S, Who, A, B, Table, _, Build)
  when K =:= ?ROUTED; K =:= ?PASSED; K =:= ?DELIVERED; K =:= ?UNDELIVERED ->
    {P, Build1} = entity(Who, T, Table, Build),
    {{T, K, S, P, word(A, Table), bytes(B)}, Build1};
row(?SPAWN, T, S, Who, A, B, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    {Child, Build2} = entity(A, T, Table, Build1),
    Entry = word(B, Table),
    %% The child's own event of its start says the same, and often came first.
    Build3 = patches([{Child, parent, P}, {Child, entry, Entry}], Build2),
    {{T, ?SPAWN, S, P, Child, Entry}, Build3};
row(?SPAWNED, T, S, Who, A, B, Table, _, Build) ->
    {P, Build1} = begun(Who, T, Table, Build),
    {Parent, Build2} = entity(A, T, Table, Build1),
    Entry = word(B, Table),
    Build3 = patches([{P, parent, Parent}, {P, entry, Entry}, {P, start, T}], Build2),
    {{T, ?SPAWNED, S, P, Parent, Entry}, Build3};
row(?EXIT, T, S, Who, A, _, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    Reason = word(A, Table),
    Build2 = forget(Who, patches([{P, stop, T}, {P, reason, Reason}], Build1)),
    {{T, ?EXIT, S, P, Reason, 0}, Build2};
row(?OUT_EXITED, T, S, Who, A, _, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    {{T, ?OUT_EXITED, S, P, word(A, Table), 0}, Build1};
row(?REGISTER, T, S, Who, A, _, Table, Last, Build) ->
    {P, #build{names = Names} = Build1} = entity(Who, at(T, Last), Table, Build),
    Name = word(A, Table),
    Build2 = patches([{P, name, Name}], Build1#build{names = Names#{Name => P}}),
    {event(T, ?REGISTER, S, P, Name), Build2};
row(?UNREGISTER, T, S, Who, A, _, Table, _, Build) ->
    {P, #build{names = Names} = Build1} = entity(Who, T, Table, Build),
    Name = word(A, Table),
    {{T, ?UNREGISTER, S, P, Name, 0}, Build1#build{names = maps:remove(Name, Names)}};
row(?LINK, T, S, Who, A, _, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    {Other, Build2} = entity(A, T, Table, Build1),
    {{T, ?LINK, S, P, Other, 0}, Build2};
row(?OPEN, T, S, Who, A, _, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    {Owner, Build2} = entity(A, T, Table, Build1),
    {{T, ?OPEN, S, P, Owner, 0}, patches([{P, parent, Owner}, {P, start, T}], Build2)};
row(?CLOSED, T, S, Who, A, _, Table, _, Build) ->
    {P, Build1} = entity(Who, T, Table, Build),
    {{T, ?CLOSED, S, P, word(A, Table), 0}, forget(number_key(Who, Table),
                                                   patches([{P, stop, T}], Build1))};
row(K, T, S, _, A, _, _, _, Build) when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
    {{T, K, S, 0, A, 0}, Build};
row(?PROCESS, _, _, Who, A, B, Table, Last, Build) ->
    {P, Build1} = described(Who, at(0, Last), Table, Build),
    {Parent, Build2} = case A of
        0 -> {0, Build1};
        _ -> entity(A, at(0, Last), Table, Build1)
    end,
    {none, patches([{P, parent, Parent}, {P, entry, word(B, Table)}], Build2)}.

%% A name from a description has no time.
event(0, _, _, _, _) -> none;
event(T, K, S, P, A) -> {T, K, S, P, A, 0}.

at(0, none) -> 0;
at(0, Last) -> Last;
at(T, _) -> T.

word(A, Table) ->
    {Number, _} = element(A + 1, Table),
    Number.

bytes(B) -> min(B, 16#FFFFFFFF).

%% ---------------------------------------------------------------- entities

number_key(Key, Table) when Key >= ?WORD -> ?WORD + word(Key - ?WORD, Table);
number_key(Key, _) -> Key.

entity(Key, T, Table, #build{live = Live} = Build) when Key < ?WORD ->
    case Live of
        #{Key := V} -> {V bsr 1, Build};
        _ -> late(Key, process, T, Table, Build)
    end;
entity(Key, T, Table, #build{live = Live} = Build) ->
    {Word, Kind} = element(Key - ?WORD + 1, Table),
    WordKey = ?WORD + Word,
    case Live of
        #{WordKey := V} -> {V bsr 1, Build};
        _ -> late(WordKey, Kind, T, Table, Build)
    end.

%% A message to a name counts for the process that holds the name.
receiver(Key, T, Table, #build{names = Names} = Build) when Key >= ?WORD ->
    case element(Key - ?WORD + 1, Table) of
        {Word, name} when is_map_key(Word, Names) -> {map_get(Word, Names), Build};
        _ -> entity(Key, T, Table, Build)
    end;
receiver(Key, T, Table, Build) ->
    entity(Key, T, Table, Build).

%% Not alive: it has ended a moment ago, or this is its first event.
late(Key, Kind, T, _, #build{gone = Gone, long_gone = LongGone} = Build) ->
    case {Gone, LongGone} of
        {#{Key := Number}, _} -> {Number, Build};
        {_, #{Key := Number}} -> {Number, Build};
        _ -> new_entity(Key, Kind, T, 0, Build)
    end.

new_entity(Key, Kind, T, Begun, #build{live = Live, entities = Count} = Build) ->
    Number = Count + 1,
    Known = [{Number, kind, sderl_prof_entity:kind(Kind)}, {Number, first, T}]
        ++ if
               Kind =:= process -> [{Number, key, Key}];
               true -> [{Number, name, Key - ?WORD}]
           end,
    {Number, patches(Known, Build#build{entities = Number,
                                        live = Live#{Key => Number bsl 1 bor Begun}})}.

%% A process's own first event. The process may be known already, from a message or its parent; or
%% it has the pid of one that ended, even if that end was lost.
begun(Key, T, _, #build{live = Live, again = Again} = Build) ->
    case Live of
        #{Key := V} when V band 1 =:= 0 ->
            {V bsr 1, Build#build{live = Live#{Key := V bor 1}}};
        #{Key := _} -> new_entity(Key, process, T, 1, Build#build{again = Again + 1});
        _ -> new_entity(Key, process, T, 1, Build)
    end.

described(Key, T, _, #build{live = Live} = Build) ->
    case Live of
        #{Key := V} -> {V bsr 1, Build#build{live = Live#{Key := V bor 1}}};
        _ -> new_entity(Key, process, T, 1, Build)
    end.

forget(Key, #build{live = Live, gone = Gone} = Build) ->
    case maps:take(Key, Live) of
        {V, Rest} when map_size(Gone) >= ?GONE ->
            Build#build{live = Rest, gone = #{Key => V bsr 1}, long_gone = Gone};
        {V, Rest} -> Build#build{live = Rest, gone = Gone#{Key => V bsr 1}};
        error -> Build
    end.

patches(New, #build{patches = Patches} = Build) ->
    Build#build{patches = lists:foldl(fun(Patch, All) -> [Patch | All] end, Patches, New)}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_merge).
-moduledoc """
The books of several nodes as one book on one time line. So whatever is asked of a book can be asked
of all nodes together: pages, the critical path, findings.

Numbers of entities and schedulers of one node follow those of another (`t:sderl_prof_book:part/0`);
a word that several nodes have is one. A message, a link or a parent that is a process of another
one of these nodes is that process itself. A node's clock is shifted where messages show that it is
wrong (`m:sderl_prof_causal`). A send that is told behind the moment at which the message was there
is put before that moment.

It takes one pass, which reads the books block by block side by side, and memory for two blocks of
each, for the words, and for the processes of other nodes that are known to any.
""".

-export([make/3]).
-export_type([plan/0]).

-include("sderl_prof_event.hrl").

%% Events of a block.
-define(BLOCK, 65_536).
%% Schedulers of one node that the other ones' follow: there are also those for dirty work.
-define(DIRTY, 128).
-define(MOST_SCHEDULER, 16#FFFF).

-doc """
`shifts` by number of the node; `block`: the least events of a block. `sent`: when a message was
really sent at the latest, by the node, the process and the time that its send was told. `traffic`
and `problems` are for the book.
""".
-type plan() :: #{
    shifts := #{pos_integer() => sderl_prof_causal:shift()},
    sent := #{{Node :: pos_integer(), Process :: pos_integer(), Told :: integer()} => integer()},
    traffic := [map()],
    problems := [binary()],
    progress := fun((non_neg_integer(), pos_integer()) -> term()),
    block => pos_integer()
}.

-record(source, {
    part :: sderl_prof_book:part(),
    number :: pos_integer(),
    book :: sderl_prof_book:book(),
    time :: fun((integer()) -> integer()),
    words :: tuple(),
    %% Processes of other nodes: their numbers in the book of all, and since when.
    elsewhere = #{} :: #{pos_integer() => [{integer(), pos_integer()}]},
    blocks :: [pos_integer()],
    events = [] :: [sderl_prof_block:event()],
    last :: none | integer()
}).

-doc "Writes the book of all into a folder.".
-spec make(sderl_prof_joined:joined(), Dir :: file:filename_all(), plan()) ->
    ok | {error, {no_book, file:filename_all()} | file:posix()}.
make(Joined, Dir, Plan) ->
    maybe
        {ok, Books} ?= opened(sderl_prof_joined:nodes(Joined), []),
        try
            write(Books, Dir, Plan)
        after
            lists:foreach(fun({_, Book}) -> sderl_prof_book:close(Book) end, Books)
        end
    end.

write(Books, Dir, Plan) ->
    {Sources0, Words} = numbered(Books, Plan),
    Sources = elsewhere(Sources0),
    maybe
        {ok, Writer0} ?= sderl_prof_book:create(Dir),
        ok ?= sderl_prof_book:write_words(Words, Writer0),
        ok ?= entities(Sources, Writer0),
        {ok, Writer} ?= events(Sources, Writer0, Plan),
        sderl_prof_book:finish(meta(Sources, Plan), Writer)
    end.

opened([], Books) -> {ok, lists:reverse(Books)};
opened([#{book := Dir} = Part | Parts], Books) ->
    case sderl_prof_book:open(Dir) of
        {ok, Book} -> opened(Parts, [{Part, Book} | Books]);
        Error ->
            lists:foreach(fun({_, Book}) -> sderl_prof_book:close(Book) end, Books),
            Error
    end.

%% ---------------------------------------------------------------- numbers

numbered(Books, #{shifts := Shifts}) ->
    {Sources, {_, _, Words}} = lists:mapfoldl(fun({Part, Book}, {Entities, Schedulers, Words}) ->
        #{number := Number} = Part,
        #{entities := Count} = Meta = sderl_prof_book:meta(Book),
        Shift = map_get(Number, Shifts),
        Online = online(Meta),
        {Table, Words1} = words(Book, Words),
        Source = #source{
            number = Number, book = Book, words = Table,
            part = part(Part, Shift, {Entities, Count}, {Schedulers, Online}),
            time = fun(T) -> sderl_prof_joined:common(T, Part) + Shift end,
            blocks = [N || {N, _, _, _} <- sderl_prof_book:table(Book)], last = none
        },
        {Source, {Entities + Count, Schedulers + at_least(Online) + ?DIRTY, Words1}}
    end, {0, 0, #{}}, Books),
    {Sources, [Word || {Word, _} <- lists:keysort(2, maps:to_list(Words))]}.

part(#{number := Number, entry := #{node := Node, groups := Groups}, from := From, to := To,
       error := Error}, Shift, {Entities, Count}, {Schedulers, Online}) ->
    #{number => Number, node => Node, above => Entities, upto => Entities + Count,
      scheduler => Schedulers, schedulers => Online, from => From + Shift, to => To + Shift,
      error => Error + abs(Shift), shift => Shift, groups => Groups}.

online(#{info := #{schedulers := Online}}) -> Online;
online(_) -> unknown.

at_least(unknown) -> 1024;
at_least(Online) -> Online.

%% The numbers of a node's words among those of all.
words(Book, Words) ->
    {Numbers, Words1} = lists:mapfoldl(fun(Word, All) ->
        case All of
            #{Word := Number} -> {Number, All};
            _ -> {map_size(All) + 1, All#{Word => map_size(All) + 1}}
        end
    end, Words, sderl_prof_book:words(Book)),
    {list_to_tuple(Numbers), Words1}.

word(0, _) -> 0;
word(N, #source{words = Words}) when N =< tuple_size(Words) -> element(N, Words);
word(_, _) -> 0.

%% ---------------------------------------------------------------- processes of other nodes

%% Of each node, the entities that are processes of another one of these nodes.
elsewhere(Sources) ->
    Nodes = maps:from_keys([Node || #source{part = #{node := Node}} <- Sources], []),
    Wanted = lists:foldl(fun(Source, All) -> wanted(Source, Nodes, All) end, #{}, Sources),
    Found = lists:foldl(fun(Source, All) -> found(Source, Wanted, All) end, #{}, Sources),
    [Source#source{elsewhere = maps:get(Number, Found, #{})}
     || #source{number = Number} = Source <- Sources].

%% Which nodes know a process, by which number: by its node and its key or name there.
wanted(#source{book = Book, number = Number}, Nodes, Wanted) ->
    sderl_prof_book:fold_entities(fun
        (#{kind := Kind, name := Name, number := N}, All) when Kind =:= remote; Kind =:= name ->
            case sderl_prof_etf:peer(sderl_prof_book:word(Name, Book)) of
                {What, Node} when is_map_key(Node, Nodes) ->
                    Key = {Node, key(What)},
                    All#{Key => [{Number, N} | maps:get(Key, All, [])]};
                _ -> All
            end;
        (_, All) -> All
    end, Wanted, Book).

key({Id, Serial}) -> sderl_prof_event:key(Id, Serial);
key(Name) -> Name.

found(#source{book = Book, part = #{node := Node, above := Above}} = Source, Wanted, Found) ->
    sderl_prof_book:fold_entities(fun
        (#{kind := process, key := Key, name := Name, start := Start, number := N}, All) ->
            Keys = [Key | [sderl_prof_book:word(Name, Book) || Name > 0]],
            Askers = lists:append([maps:get({Node, K}, Wanted, []) || K <- Keys]),
            lists:foldl(fun({Number, Known}, Acc) ->
                Of = maps:get(Number, Acc, #{}),
                One = {since(Start, Source), Above + N},
                Acc#{Number => Of#{Known => lists:sort([One | maps:get(Known, Of, [])])}}
            end, All, Askers);
        (_, All) -> All
    end, Found, Book).

since(none, #source{part = #{from := From}}) -> From;
since(Start, #source{time = Time}) -> Time(Start).

%% An entity of a node among those of all. Pids come again: it is the latest one that had begun.
entity(0, _, _) -> 0;
entity(N, T, #source{elsewhere = Elsewhere, part = #{above := Above}}) ->
    case Elsewhere of
        #{N := [{_, One}]} -> One;
        #{N := [{_, First} | _] = Several} ->
            case [One || {Since, One} <- Several, Since =< T] of
                [] -> First;
                Begun -> lists:last(Begun)
            end;
        _ -> Above + N
    end.

%% ---------------------------------------------------------------- entities

entities([], _) -> ok;
entities([#source{book = Book, elsewhere = Elsewhere} = Source | Sources], Writer) ->
    Written = sderl_prof_book:fold_entities(fun
        %% A process of another node is in the book once, with its own node.
        (#{number := N}, Acc) when is_map_key(N, Elsewhere) -> Acc;
        (Entity, ok) -> sderl_prof_book:patch(patches(Entity, Source), Writer);
        (_, Error) -> Error
    end, ok, Book),
    case Written of
        ok -> entities(Sources, Writer);
        Error -> Error
    end.

patches(#{number := N, kind := Kind, parent := Parent, key := Key, entry := Entry, name := Name,
          reason := Reason, start := Start, stop := Stop, first := First},
        #source{part = #{above := Above, from := From}, time = Time} = Source) ->
    Begun = case Start of none -> From; _ -> Time(Start) end,
    Times = [{Field, Time(T)} || {Field, T} <- [{start, Start}, {stop, Stop}, {first, First}],
                                 T =/= none],
    [{Above + N, Field, Value}
     || {Field, Value} <- [{kind, sderl_prof_entity:kind(Kind)},
                           {parent, entity(Parent, Begun, Source)}, {key, Key},
                           {entry, word(Entry, Source)}, {name, word(Name, Source)},
                           {reason, word(Reason, Source)} | Times]].

%% ---------------------------------------------------------------- events

events(Sources, Writer, #{sent := Sent, progress := Progress} = Plan) ->
    All = max(1, lists:sum([length(Blocks) || #source{blocks = Blocks} <- Sources])),
    Step = fun(Rest) ->
        Left = lists:sum([length(Blocks) || #source{blocks = Blocks} <- Rest]),
        _ = Progress(All - Left, All)
    end,
    merged(Sources, [], 0, Writer, {Sent, Step, maps:get(block, Plan, ?BLOCK)}).

%% An event can be written once all unread events are later.
merged(Sources0, Waiting, Count, Writer, {Sent, Step, Block} = Context) ->
    Sources = [loaded(Source, Sent) || Source <- Sources0],
    _ = Step(Sources),
    case [Last || #source{blocks = [_ | _], last = Last} <- Sources] of
        [] ->
            Rest = lists:append([Events || #source{events = Events} <- Sources]),
            written(together([Rest | Waiting]), Block, Writer);
        Lasts ->
            Until = lists:min(Lasts),
            {Now, Left} = lists:unzip([until(Until, Source) || Source <- Sources]),
            Events = lists:append(Now),
            case Count + length(Events) of
                More when More >= Block ->
                    maybe
                        {ok, Writer1} ?= written(together([Events | Waiting]), Block, Writer),
                        merged(Left, [], 0, Writer1, Context)
                    end;
                More -> merged(Left, [Events | Waiting], More, Writer, Context)
            end
    end.

%% In order of time, of lists that have the latest first. Events of a later list may be earlier than
%% the last ones of a list before: a few of a block are out of order, and a send that was told late
%% is put at its real time.
together(Latest) -> lists:keysort(1, lists:append(lists:reverse(Latest))).

loaded(#source{events = [], blocks = [N | Blocks], book = Book} = Source, Sent) ->
    Read = lists:reverse(sderl_prof_book:fold_block(Book, N, fun(T, K, S, P, A, B, All) ->
        [event(T, K, S, P, A, B, Source, Sent) | All]
    end, [])),
    %% In order, so that what is before a time is found without looking at what is behind it, once
    %% for each block of each node.
    Events = lists:keysort(1, Read),
    {Last, _, _, _, _, _} = lists:last(Events),
    loaded(Source#source{events = Events, blocks = Blocks, last = Last}, Sent);
loaded(Source, _) -> Source.

until(T, #source{events = Events} = Source) ->
    {Now, Later} = lists:splitwith(fun({At, _, _, _, _, _}) -> At =< T end, Events),
    {Now, Source#source{events = Later}}.

written([], _, Writer) -> {ok, Writer};
written(Events, Block, Writer) ->
    {Now, Later} = split(Events, Block),
    maybe
        {ok, Writer1} ?= sderl_prof_book:write_block(sderl_prof_block:encode(Now), Writer),
        written(Later, Block, Writer1)
    end.

split(Events, N) ->
    case length(Events) >= 2 * N of
        true -> lists:split(N, Events);
        false -> {Events, []}
    end.

%% The other end of an event, by its kind (`m:sderl_prof_event`).
event(T0, K, S, P, A, B, #source{time = Time} = Source, Sent) ->
    T = Time(T0),
    {At, A1, B1} = beside(K, T, P, A, B, Source, Sent),
    {At, K, scheduler(S, Source), entity(P, T, Source), A1, B1}.

beside(?SEND, T, P, A, B, #source{number = Number, part = #{shift := Shift}} = Source, Sent) ->
    %% Times of messages are those before the shift.
    At = maps:get({Number, P, T - Shift}, Sent, T),
    {At, entity(A, T, Source), B};
beside(K, T, _, A, B, Source, _)
  when K =:= ?SEND_NOBODY; K =:= ?RECEIVE; K =:= ?LINK; K =:= ?OPEN ->
    {T, entity(A, T, Source), B};
beside(K, T, _, A, B, Source, _) when K =:= ?SPAWN; K =:= ?SPAWNED ->
    {T, entity(A, T, Source), word(B, Source)};
beside(K, T, _, A, B, _, _) when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
    {T, A, B};
beside(K, T, _, A, B, Source, _)
  when K =:= ?ROUTED; K =:= ?PASSED; K =:= ?DELIVERED; K =:= ?UNDELIVERED ->
    {T, word(A, Source), B};
beside(_, T, _, A, B, Source, _) ->
    {T, word(A, Source), word(B, Source)}.

scheduler(0, _) -> 0;
scheduler(S, #source{part = #{scheduler := Above}}) -> min(?MOST_SCHEDULER, Above + S).

%% ---------------------------------------------------------------- the whole

meta(Sources, #{traffic := Traffic, problems := Problems}) ->
    Metas = [sderl_prof_book:meta(Book) || #source{book = Book} <- Sources],
    Parts = [Part || #source{part = Part} <- Sources],
    Sum = fun(Key) -> lists:sum([map_get(Key, Meta) || Meta <- Metas]) end,
    #{
        nodes => Parts,
        traffic => Traffic,
        node => iolist_to_binary(io_lib:format("~b nodes", [length(Sources)])),
        info => info([Info || #{info := #{} = Info} <- Metas], Parts),
        entities => Sum(entities),
        dropped => Sum(dropped),
        lost_bytes => Sum(lost_bytes),
        lost_events => Sum(lost_events),
        problems => Problems ++ [<<Node/binary, ": ", Problem/binary>>
                                 || #source{part = #{node := Node}, book = Book} <- Sources,
                                    Problem <- map_get(problems, sderl_prof_book:meta(Book))]
    }.

%% An item may have been recorded on some of the nodes only, and so may all processes.
info([], _) -> none;
info([#{otp := Otp} = First | _] = Infos, Parts) ->
    Online = [N || #{schedulers := N} <- Parts, is_integer(N)],
    Shared = lists:foldl(fun maps:merge/2, #{}, [maps:with([share], Info) || Info <- Infos]),
    Whole = maps:merge(First, Shared),
    Whole#{
        otp := case lists:usort([O || #{otp := O} <- Infos]) of [_] -> Otp; _ -> ~"various" end,
        schedulers := max(1, lists:sum(Online)),
        items := lists:usort(lists:append([Items || #{items := Items} <- Infos])),
        scheduler_id := lists:all(fun(#{scheduler_id := Has}) -> Has end, Infos),
        began := lists:min([From || #{from := From} <- Parts]),
        ended_at := lists:max([To || #{to := To} <- Parts]),
        %% A module may run in several versions.
        code => lists:usort(lists:append([Code || #{code := Code} <- Infos])),
        own := []
    }.

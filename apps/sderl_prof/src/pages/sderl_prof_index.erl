%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_index).
-moduledoc """
What the pages need beside a book, made in one pass: the folder `pages` in the book's own, with

| file | holds |
|---|---|
| `levels` | what each process did in each part of the time, with parts of several widths |
| `states` | what each process was doing at some times, from where reading may begin |
| `sums` | the sums of each process (`m:sderl_prof_sums`) |
| `index` | where all that is, the counts of pairs and places, findings, the critical path |

The pass takes memory for the processes that live at a time, for a bounded number of rows of each
level, and for the pairs and places that are distinguished, which are bounded, too. The files grow
with the events: between two times at which states are written there are at least as many events as
processes.
""".

-export([make/2, open/1, is_made/1]).
-export([states/2, rows/4, file/2, scheduler/1, node/1, node_lane/2]).
-export_type([index/0, level/0, check/0, options/0]).

-include("sderl_prof_event.hrl").

-define(MOST_KEYS, 200_000).
-define(MOST_FRAMES, 3_000).
%% Of the call graph.
-define(MOST_FUNCTIONS, 5_000).
-define(MOST_EDGES, 20_000).
%% Operations on groups, the first ones.
-define(MOST_OPERATIONS, 50_000).
%% Rows of each list.
-define(MOST_ROUTED, 500).
%% Steps of the critical path that are drawn, the longest ones.
-define(MOST_SEGMENTS, 2_000).
%% Rows of a level that are in memory at a time.
-define(PORTION, 100_000).
%% Rows that are read at a time, or those of one process where it has more.
-define(PIECE, 1024).
%% The narrowest level has at most so many parts, the widest at least so many.
-define(MOST_PARTS, 1_048_576).
-define(LEAST_PARTS, 2_048).
-define(EVENTS_OF_PART, 512).
-define(FACTOR, 8).
%% Keys in the place of a process: those of schedulers,
-define(SCHEDULER, 16#F0000000).
%% and those of all processes of a node, in a book of several nodes.
-define(NODE, 16#E0000000).

-doc "Where rows are, of which processes (first and last), and the first and last part in them.".
-type portion() :: {At :: non_neg_integer(), Size :: pos_integer(),
                    Low :: non_neg_integer(), High :: non_neg_integer(),
                    First :: non_neg_integer(), Last :: non_neg_integer()}.
-type level() :: #{width := pos_integer(), portions := [portion()]}.
-doc "Where states are, of which time, and the block that follows.".
-type check() :: {Time :: integer(), Block :: pos_integer(), At :: non_neg_integer(),
                  Size :: pos_integer()}.
-doc """
The levels begin with the narrowest. Rows of a tally are `{Count, Sum, SumOfSquares}`. Waits are by
the process, the word of the place, and who ended them, 0 where that is not known.
""".
-type index() :: #{
    version := 7, from := integer(), to := integer(), mode := sderl_prof_activity:mode(),
    levels := [level()], checks := [check()], schedulers := [pos_integer()],
    processes := non_neg_integer(), totals := sderl_prof_activity:sums(),
    messages := #{{pos_integer(), pos_integer()} => sderl_prof_tally:row()},
    waits := #{{pos_integer(), Site :: non_neg_integer(), Waker :: non_neg_integer()}
               => sderl_prof_tally:row()},
    pruned := non_neg_integer(), pairs_pruned := non_neg_integer(),
    calls := {non_neg_integer(), [sderl_prof_flame:frame()]},
    graph := sderl_prof_call_graph:graph(),
    findings := sderl_prof_findings:result(), path := sderl_prof_insight:path() | null,
    leads_to := pos_integer() | none, operations := sderl_prof_operations:found(),
    routed := sderl_prof_routed:routed()
}.

%% The sink's state: what it has made of the intervals so far.
-record(acc, {
    cells :: sderl_prof_cells:cells(),
    book :: sderl_prof_book:book(),
    %% Intervals that went on when states were written last: what they seemed to be, and until when
    %% they have been counted.
    counted = #{} :: #{pos_integer() => {sderl_prof_activity:what(), integer(), integer()}},
    waits = sderl_prof_tally:new(?MOST_KEYS) :: sderl_prof_tally:tally()
}).
-record(level, {width, cells, portions = []}).
-record(pass, {
    activity :: sderl_prof_activity:activity(),
    %% All but the narrowest, whose cells are the sink's.
    coarse :: [#level{}],
    portions = [] :: [portion()],
    awake = #{} :: #{pos_integer() => integer()},
    schedulers = #{} :: #{pos_integer() => true},
    levels :: file:fd(),
    states :: file:fd(),
    sums :: file:fd(),
    at = 0 :: non_neg_integer(),
    states_at = 0 :: non_neg_integer(),
    checks = [] :: [check()],
    since_check = 0 :: non_neg_integer(),
    time :: integer(),
    begin_at :: integer(),
    portion :: pos_integer(),
    totals = sderl_prof_activity:sums([]) :: sderl_prof_activity:sums(),
    processes = 0 :: non_neg_integer()
}).

-doc """
`progress` is called with the blocks that are done and all of them. `portion`: rows of each level
that are in memory. `least_parts`: parts of the widest level, at least. `events_of_part`: events of
a part of the narrowest level, on average.
""".
-type options() :: #{progress => fun((non_neg_integer(), pos_integer()) -> term()),
                     portion => pos_integer(), least_parts => pos_integer(),
                     events_of_part => pos_integer()}.

-doc "Makes it of the book in this folder.".
-spec make(Dir :: file:filename_all(), options()) ->
    ok | {error, {no_book, file:filename_all()} | {book, file:filename_all(), term()}
                 | {defect, term()}}.
make(Dir, Given) ->
    Options = maps:merge(#{progress => fun(_, _) -> ok end, portion => ?PORTION,
                           least_parts => ?LEAST_PARTS, events_of_part => ?EVENTS_OF_PART}, Given),
    Pages = path(Dir, ""),
    case sderl_prof_beside:make(Pages, "index", fun(Own) -> made(Dir, Own, Options) end) of
        ok -> ok;
        {error, {defect, {book, Why}}} -> {error, {book, Pages, Why}};
        {error, {place, Why}} -> {error, {book, Pages, Why}};
        {error, Why} when is_atom(Why) -> {error, {book, Pages, Why}};
        {error, Why} -> {error, Why}
    end.

%% In a folder of its own, because others may be reading the present one.
made(Dir, Own, Options) ->
    Tasks = [fun() -> activity(Dir, Own, Options) end, fun() -> with_path(Dir, others(Dir)) end,
             fun() -> findings(Dir) end, fun() -> operations(Dir) end],
    maybe
        {ok, Book} ?= sderl_prof_book:open(Dir),
        ok = sderl_prof_book:close(Book),
        ok ?= filelib:ensure_path(Own),
        {ok, Parts} ?= sderl_prof_tasks:in_turns(Tasks),
        Index = lists:foldl(fun maps:merge/2, #{}, Parts),
        ok ?= file:write_file(filename:join(Own, "index"), term_to_binary(Index, [compressed])),
        {ok, Own}
    end.

path(Dir, Name) -> filename:join([Dir, "pages", Name]).

-doc "A file of it.".
-spec file(levels | states | sums, Dir :: file:filename_all()) -> file:filename_all().
file(Name, Dir) -> path(Dir, atom_to_list(Name)).

-doc "The key of a scheduler, in the place of a process.".
-spec scheduler(pos_integer()) -> pos_integer().
scheduler(S) when is_integer(S) -> ?SCHEDULER + S.

-doc "The key of all processes of a node together, in a book of several nodes.".
-spec node(pos_integer()) -> pos_integer().
node(N) when is_integer(N) -> ?NODE + N.

-doc "The key of the node of a process; 0 where there is one node only.".
-spec node_lane(pos_integer(), sderl_prof_book:book()) -> non_neg_integer().
node_lane(P, Book) ->
    case sderl_prof_book:node_of(P, Book) of
        #{number := N} -> ?NODE + N;
        none -> 0
    end.

-doc "Whether it is there, and newer than the book.".
-spec is_made(file:filename_all()) -> boolean().
is_made(Dir) ->
    case {filelib:last_modified(path(Dir, "index")),
          filelib:last_modified(filename:join(Dir, "book"))} of
        {Made, Book} when is_tuple(Made), is_tuple(Book) ->
            Made >= Book andalso element(1, open(Dir)) =:= ok;
        _ -> false
    end.

-doc "The index of the book in this folder.".
-spec open(file:filename_all()) -> {ok, index()} | {error, {no_book, file:filename_all()}}.
open(Dir) ->
    try
        ok = code:ensure_modules_loaded([?MODULE, sderl_prof_activity, sderl_prof_insight,
                                         sderl_prof_findings, sderl_prof_path,
                                         sderl_prof_call_graph, sderl_prof_operations,
                                         sderl_prof_routed]),
        {ok, Bin} = file:read_file(path(Dir, "index")),
        #{version := 7} = Index = binary_to_term(Bin, [safe]),
        {ok, Index}
    catch
        error:_ -> {error, {no_book, Dir}}
    end.

-doc "What processes and schedulers were doing at a time.".
-spec states(check(), file:fd()) ->
    {sderl_prof_activity:saved(), Awake :: #{pos_integer() => integer()}}.
states({_, _, At, Size}, File) ->
    {ok, Bin} = file:pread(File, At, Size),
    binary_to_term(Bin, [safe]).

-doc """
Calls the function with the rows of each portion of a level that has something of these parts and of
one of these processes.
""".
-spec rows(level(), {Parts, Processes}, file:fd(), fun(([sderl_prof_cells:row()]) -> term())) -> ok
    when Parts :: {First :: integer(), Last :: integer()}, Processes :: [non_neg_integer()].
rows(#{portions := Portions}, {{First, Last}, Processes}, File, Fun) ->
    lists:foreach(fun({At, Size, Low, High, Begin, End}) ->
        Is = Begin =< Last andalso End >= First
            andalso lists:any(fun(P) -> P >= Low andalso P =< High end, Processes),
        _ = [begin
                 {ok, Bin} = file:pread(File, At, Size),
                 Fun(sderl_prof_cells:decode(Bin))
             end || Is]
    end, Portions).

%% ---------------------------------------------------------------- who does what when

activity(Dir, Own, #{progress := Progress, portion := Portion} = Options) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    #{events := Events, kinds := Kinds} = Meta = sderl_prof_book:meta(Book),
    {From, To} = sderl_prof_book:range(Meta),
    Mode = sderl_prof_activity:mode(Kinds),
    [Narrowest | Wider] = widths(To - From, Events, Options),
    Pass = #pass{
        activity = sderl_prof_activity:new(Mode, fun sink/7,
                                           #acc{cells = sderl_prof_cells:new(From, Narrowest),
                                                book = Book}),
        coarse = [#level{width = W, cells = sderl_prof_cells:new(From, W)} || W <- Wider],
        levels = opened(Own, "levels"), states = opened(Own, "states"),
        sums = opened(Own, "sums"), time = From, begin_at = From,
        portion = Portion
    },
    Table = sderl_prof_book:table(Book),
    Done = finish(To, lists:foldl(fun({N, _, Last, Count}, P) ->
        _ = Progress(N, length(Table)),
        P1 = checked(N, P),
        P2 = sderl_prof_book:fold_block(Book, N, fun step/7, P1),
        drained(P2#pass{time = max(Last, P2#pass.time),
                        since_check = P2#pass.since_check + Count})
    end, Pass, Table)),
    ok = sderl_prof_book:close(Book),
    result(Done, From, To, Mode, Narrowest).

opened(Own, Name) ->
    case file:open(filename:join(Own, Name), [write, read, raw, binary]) of
        {ok, File} -> File;
        {error, Why} -> exit({book, Why})
    end.

widths(Length, Events, #{least_parts := Least, events_of_part := Each}) ->
    Parts = power(Least, min(?MOST_PARTS, Events div Each)),
    widths(max(1, Length div Parts + 1), Parts, Least, []).

power(N, Least) when N >= Least -> N;
power(N, Least) -> power(N * 2, Least).

widths(Width, Parts, Least, Before) when Parts >= Least ->
    widths(Width * ?FACTOR, Parts div ?FACTOR, Least, [Width | Before]);
widths(_, _, _, Widths) -> lists:reverse(Widths).

step(T, K, S, _, _, _, Pass) when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
    scheduler(K, S, T, Pass);
step(T, K, S, P, A, B, #pass{activity = Activity} = Pass) ->
    Pass#pass{activity = sderl_prof_activity:step(T, K, S, P, A, B, Activity)}.

scheduler(K, S, T, #pass{awake = Awake, schedulers = Seen, begin_at = Begin} = Pass) ->
    {Since, {Awake1, Seen1}} = sderl_prof_schedulers:change(K, S, {T, Begin}, {Awake, Seen}),
    Pass1 = Pass#pass{awake = Awake1, schedulers = Seen1},
    case Since of
        none -> Pass1;
        From -> was_awake(S, From, T, Pass1)
    end.

was_awake(S, From, To, #pass{activity = Activity} = Pass) ->
    #acc{cells = Cells} = sderl_prof_activity:acc(Activity),
    ok = sderl_prof_cells:add(running, ?SCHEDULER + S, From, To, 1, Cells),
    Pass.

sink(exiting, _, _, _, _, _, Acc) -> Acc;
sink(waiting, P, From, To, Site, Waker, #acc{waits = Waits} = Acc) ->
    Counted = count(waiting, P, From, To, Acc),
    Counted#acc{waits = sderl_prof_tally:add({P, Site, Waker}, To - From, Waits)};
sink(What, P, From, To, _, _, Acc) ->
    count(What, P, From, To, Acc).

%% Of an interval that went on when states were written a part has been counted already, perhaps as
%% something else.
count(gc, P, From, To, Acc) ->
    add(gc, P, From, To, 1, Acc);
count(What, P, From, To, #acc{counted = Counted} = Acc) ->
    case Counted of
        #{P := {What, From, Until}} ->
            add(What, P, Until, To, 1, Acc#acc{counted = maps:remove(P, Counted)});
        #{P := {Other, From, Until}} ->
            add(What, P, From, To, 1,
                add(Other, P, From, Until, -1, Acc#acc{counted = maps:remove(P, Counted)}));
        _ -> add(What, P, From, To, 1, Acc)
    end.

add(What, P, From, To, Times, #acc{cells = Cells, book = Book} = Acc) ->
    ok = sderl_prof_cells:add(What, P, From, To, Times, Cells),
    _ = [ok = sderl_prof_cells:add(What, All, From, To, Times, Cells)
         || What =:= running orelse What =:= runnable, All <- together(P, Book)],
    Acc.

%% All processes, and those of the node.
together(P, Book) ->
    case node_lane(P, Book) of
        0 -> [0];
        Node -> [0, Node]
    end.

%% ---------------------------------------------------------------- states

%% Before a block: not more often than there are as many events as processes.
checked(Block, #pass{activity = Activity, since_check = Since} = Pass) ->
    case Block =:= 1 orelse Since >= sderl_prof_activity:size(Activity) of
        true -> check(Block, Pass);
        false -> Pass
    end.

check(Block, #pass{time = T, states_at = At, awake = Awake, checks = Checks} = Pass0) ->
    Saved = sderl_prof_activity:save(Pass0#pass.activity),
    Bin = term_to_binary({Saved, Awake}, [{compressed, 1}]),
    ok = or_exit(file:pwrite(Pass0#pass.states, At, Bin)),
    Pass = maps:fold(fun(S, From, P) -> was_awake(S, From, T, P) end, Pass0, Awake),
    Activity = count_open(T, Pass#pass.activity),
    flush(Pass#pass.portion, Pass#pass{
        activity = Activity, awake = #{S => T || S := _ <- Awake}, since_check = 0,
        states_at = At + byte_size(Bin), checks = [{T, Block, At, byte_size(Bin)} | Checks]
    }).

count_open(T, Activity) ->
    Open = sderl_prof_activity:fold_open(fun(What, P, Since, All) -> [{What, P, Since} | All] end,
                                         [], Activity),
    Acc = lists:foldl(fun({What, P, Since}, A) -> count(What, P, Since, T, A) end,
                      sderl_prof_activity:acc(Activity), Open),
    Counted = #{P => {What, Since, T} || {What, P, Since} <- Open},
    sderl_prof_activity:put_acc(Acc#acc{counted = Counted}, Activity).

%% ---------------------------------------------------------------- levels

%% Takes rows out where there are more than so many.
flush(Most, #pass{activity = Activity, coarse = Coarse} = Pass) ->
    #acc{cells = Cells} = sderl_prof_activity:acc(Activity),
    Rows = taken(Most, Cells),
    {Portion, Pass1} = write(Rows, Pass),
    {Coarse1, Pass2} = coarser(Rows, Most, Coarse, Pass1),
    Pass2#pass{portions = Portion ++ Pass2#pass.portions, coarse = Coarse1}.

taken(Most, Cells) ->
    case sderl_prof_cells:size(Cells) > Most of
        true -> sderl_prof_cells:take(Cells);
        false -> []
    end.

coarser(_, _, [], Pass) -> {[], Pass};
coarser(Rows, Most, [#level{cells = Cells, portions = Portions} = Level | Levels], Pass) ->
    ok = sderl_prof_cells:coarser(Rows, ?FACTOR, Cells),
    Out = taken(Most, Cells),
    {Portion, Pass1} = write(Out, Pass),
    {Levels1, Pass2} = coarser(Out, Most, Levels, Pass1),
    {[Level#level{portions = Portion ++ Portions} | Levels1], Pass2}.

%% A portion is written in pieces, so that those of a few processes are found without the others.
write(Rows, #pass{levels = File} = Pass) ->
    {Pieces, At} = lists:mapfoldl(fun(Piece, At) ->
        Bin = sderl_prof_cells:encode(Piece),
        Parts = [Part || {_, Part, _} <- Piece],
        [{Low, _, _} | _] = Piece,
        {High, _, _} = lists:last(Piece),
        {{{At, Bin}, {At, byte_size(Bin), Low, High, lists:min(Parts), lists:max(Parts)}},
         At + byte_size(Bin)}
    end, Pass#pass.at, pieces(Rows)),
    ok = or_exit(file:pwrite(File, [Place || {Place, _} <- Pieces])),
    {lists:reverse([Portion || {_, Portion} <- Pieces]), Pass#pass{at = At}}.

%% The rows of a process stay together.
pieces([]) -> [];
pieces(Rows) ->
    {Piece, Rest} = piece(Rows, 0, []),
    [Piece | pieces(Rest)].

piece([{P, _, _} = Row | Rows], N, [{P, _, _} | _] = Piece) -> piece(Rows, N + 1, [Row | Piece]);
piece([Row | Rows], N, Piece) when N < ?PIECE -> piece(Rows, N + 1, [Row | Piece]);
piece(Rest, _, Piece) -> {lists:reverse(Piece), Rest}.

or_exit(ok) -> ok;
or_exit({error, {_, Why}}) -> exit({book, Why});
or_exit({error, Why}) -> exit({book, Why}).

%% ---------------------------------------------------------------- the end

drained(#pass{activity = Activity} = Pass) ->
    {Ended, Activity1} = sderl_prof_activity:drain(Activity),
    summed(Ended, Pass#pass{activity = Activity1}).

summed(Sums, #pass{totals = Totals, processes = N} = Pass) ->
    ok = or_exit(sderl_prof_sums:add(Sums, Pass#pass.sums)),
    Pass#pass{totals = sderl_prof_activity:sums([Totals | [Sum || {_, Sum} <- Sums]]),
              processes = N + length(Sums)}.

finish(To, #pass{awake = Awake} = Pass0) ->
    #pass{activity = Activity} = Pass =
        maps:fold(fun(S, From, P) -> was_awake(S, From, To, P) end, Pass0, Awake),
    {Rest, Acc} = sderl_prof_activity:finish(To, Activity),
    Ended = sderl_prof_activity:new(none, fun sink/7, Acc),
    Flushed = flush(0, summed(Rest, Pass#pass{activity = Ended})),
    ok = lists:foreach(fun(File) -> ok = or_exit(file:close(File)) end,
                       [Flushed#pass.levels, Flushed#pass.states, Flushed#pass.sums]),
    {Acc, Flushed}.

result({#acc{waits = Waits}, #pass{} = Pass}, From, To, Mode, Narrowest) ->
    {WaitRows, _, Pruned} = sderl_prof_tally:result(Waits),
    #{
        version => 7, from => From, to => To, mode => Mode,
        levels => [#{width => Narrowest, portions => lists:reverse(Pass#pass.portions)}
                   | [#{width => W, portions => lists:reverse(Portions)}
                      || #level{width = W, portions = Portions} <- Pass#pass.coarse]],
        checks => lists:reverse(Pass#pass.checks),
        schedulers => lists:sort(maps:keys(Pass#pass.schedulers)),
        processes => Pass#pass.processes, totals => Pass#pass.totals,
        waits => WaitRows, pruned => Pruned
    }.

%% ---------------------------------------------------------------- messages, calls

others(Dir) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    #{kinds := Kinds} = sderl_prof_book:meta(Book),
    New = {sderl_prof_tally:new(?MOST_KEYS), sderl_prof_calls:new(?MOST_KEYS)},
    HasCalls = is_map_key(call, Kinds),
    {Messages, Calls} = case maps:with([send, call], Kinds) of
        %% Nothing to look for, nothing to read.
        None when map_size(None) =:= 0 -> New;
        _ ->
            sderl_prof_book:fold(Book, #{}, fun(_, ?SEND, _, P, A, B, {M, C}) ->
                                                   {sderl_prof_tally:add({P, A}, B, M), C};
                                               (T, K, _, P, A, B, {M, C}) when HasCalls ->
                                                   {M, sderl_prof_calls:step(T, K, P, A, B, C)};
                                               (_, _, _, _, _, _, Acc) -> Acc
                                            end, New)
    end,
    ok = sderl_prof_book:close(Book),
    {Rows, _, Pruned} = sderl_prof_tally:result(Messages),
    #{stacks := Stacks} = Result = sderl_prof_calls:result(Calls),
    #{messages => Rows, pairs_pruned => Pruned,
      calls => sderl_prof_flame:tree(Stacks, ?MOST_FRAMES),
      graph => sderl_prof_call_graph:bounded(sderl_prof_call_graph:make(Result), ?MOST_FUNCTIONS,
                                             ?MOST_EDGES)}.

%% ---------------------------------------------------------------- findings, the critical path

findings(Dir) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    Findings = sderl_prof_insight:findings(Book),
    ok = sderl_prof_book:close(Book),
    #{findings => Findings}.

operations(Dir) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    Found = sderl_prof_operations:find(Book, ?MOST_OPERATIONS),
    Routed = sderl_prof_routed:part(Book, #{}, ?MOST_ROUTED),
    ok = sderl_prof_book:close(Book),
    #{operations => Found, routed => Routed}.

%% The process that runs last when a recording of several nodes ends has little to do with the
%% program: the path leads to the process that gets most messages from another node.
with_path(Dir, #{messages := Messages} = Others) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    LeadsTo = case sderl_prof_book:nodes(Book) of
        [] -> none;
        _ -> sderl_prof_insight:leads_to(Messages, Book)
    end,
    {Led, Path} = sderl_prof_insight:led(LeadsTo, Book, #{segments => ?MOST_SEGMENTS}),
    ok = sderl_prof_book:close(Book),
    Others#{path => Path, leads_to => Led}.

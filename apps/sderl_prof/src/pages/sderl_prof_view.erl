%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_view).
-moduledoc """
An analysed recording that is open, and what pages ask of it. Answers are maps that can be JSON:
texts are binaries, times are nanoseconds since the begin. Only reads.

Memory is that of the index, of the words, and of one answer. How large answers may be is bounded:
columns, processes, the product of both, rows of a list.
""".

-export([open/2, close/1, slim/1, about/1, window/2, processes/2, process/2, tree/2]).
-export([messages/2, traffic/2, communication/2, arrows/2, stays/2, calls/2, source/2, waits/2]).
-export([report/2, findings/1, path/2, operations/2, routed/2]).
-export([limits/0, sorts/0, format_error/1]).
-export_type([view/0, reason/0]).

-define(MOST_COLUMNS, 4096).
-define(MOST_PROCESSES, 500).
-define(MOST_CELLS, 524_288).
-define(ROWS, 100).
%% The end of the range when none is given: the whole.
-define(EVER, 1 bsl 62).

-opaque view() :: sderl_prof_window:view().
-type reason() ::
    {range, integer(), integer()} | {columns, integer()} | {processes, non_neg_integer()}
    | {cells, pos_integer()} | {no_process, integer()} | {no_function, integer()} | too_many
    | {no_book, file:filename_all()} | {book, file:filename_all(), term()} | {defect, term()}.

-doc """
Opens the book in a folder, and makes what it lacks for pages; `Progress` is called meanwhile.
""".
-spec open(file:filename_all(), fun((non_neg_integer(), pos_integer()) -> term())) ->
    {ok, view()} | {error, reason()}.
open(Dir, Progress) ->
    maybe
        ok ?= made(Dir, Progress),
        {ok, Index} ?= sderl_prof_index:open(Dir),
        {ok, Book} ?= sderl_prof_book:open(Dir),
        {ok, Levels} ?= opened(levels, Dir),
        {ok, States} ?= opened(states, Dir),
        {ok, Sums} ?= opened(sums, Dir),
        {ok, #{book => Book, index => Index, levels => Levels, states => States, sums => Sums}}
    end.

made(Dir, Progress) ->
    case sderl_prof_index:is_made(Dir) of
        true -> ok;
        false -> sderl_prof_index:make(Dir, #{progress => Progress})
    end.

opened(Name, Dir) ->
    case file:open(sderl_prof_index:file(Name, Dir), [read, raw, binary]) of
        {ok, File} -> {ok, File};
        {error, Why} -> {error, {book, Dir, Why}}
    end.

-doc "Closes it.".
-spec close(view()) -> ok.
close(#{book := Book, levels := Levels, states := States, sums := Sums}) ->
    _ = [file:close(File) || File <- [Levels, States, Sums]],
    sderl_prof_book:close(Book).

-doc """
The same without the counts of the whole, for questions of the events of a part (`processes/2`,
`arrows/2`, `calls/2`, `path/2`, `routed/2`, `tree/2`, `report/2`).
""".
-spec slim(view()) -> view().
slim(#{index := Index} = View) ->
    View#{index := maps:merge(Index, #{messages => #{}, waits => #{}})}.

-doc "How large questions may be: columns, processes, and columns of all processes together.".
-spec limits() -> #{columns := pos_integer(), processes := pos_integer(), cells := pos_integer()}.
limits() -> #{columns => ?MOST_COLUMNS, processes => ?MOST_PROCESSES, cells => ?MOST_CELLS}.

-doc "The measures by which processes can be listed.".
-spec sorts() -> [sderl_prof_sums:metric()].
sorts() -> sderl_prof_sums:metrics().

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({range, From, To}) ->
    io_lib:format("the range from ~b to ~b ns holds nothing of the recording: from is before to, "
                  "and both are nanoseconds since its begin", [From, To]);
format_error({columns, N}) ->
    io_lib:format("~b columns: 1 to ~b can be asked for", [N, ?MOST_COLUMNS]);
format_error({processes, N}) ->
    io_lib:format("~b processes: at most ~b can be asked for at a time", [N, ?MOST_PROCESSES]);
format_error({cells, N}) ->
    io_lib:format("columns of all processes together are ~b, at most ~b can be asked for: take "
                  "fewer columns or fewer processes", [N, ?MOST_CELLS]);
format_error({no_process, N}) ->
    io_lib:format("there is no process with the number ~b: /api/v1/profile/processes lists them",
                  [N]);
format_error({no_function, N}) ->
    io_lib:format("there is no function with the number ~b: /api/v1/profile/calls and "
                  "/api/v1/profile/waits name them", [N]);
format_error(too_many) ->
    "the range has too many events to look at each of them: take a shorter one, or the whole";
format_error({no_book, Dir}) ->
    io_lib:format("~ts holds no analysed trace; remove it, and open the trace again", [Dir]);
format_error({book, Dir, Why}) ->
    io_lib:format("cannot write what the pages need to ~ts: ~ts", [Dir, file:format_error(Why)]);
format_error({defect, Why}) ->
    io_lib:format("this is a defect of the analysis: ~0tP", [Why, 20]).

%% ---------------------------------------------------------------- the whole

-doc "What is known of the whole, and what was lost.".
-spec about(view()) -> map().
about(#{book := Book, index := #{from := From, to := To, mode := Mode} = Index} = View) ->
    #{kinds := Kinds} = Meta = sderl_prof_book:meta(Book),
    Info = case Meta of
        #{info := none} -> #{};
        #{info := Known} -> Known
    end,
    #{problems := Problems} = Meta,
    (maps:with([node, events, dropped, lost_events, lost_bytes], Meta))#{
        problems => Problems ++ pruned(Index),
        duration => max(1, To - From),
        otp => maps:get(otp, Info, null),
        items => maps:get(items, Info, []),
        online => maps:get(schedulers, Info, null),
        runnable => Mode,
        processes => map_get(processes, Index),
        totals => map_get(totals, Index),
        schedulers => map_get(schedulers, Index),
        has_messages => is_map_key(send, Kinds),
        has_calls => is_map_key(call, Kinds),
        has_ports => has_ports(View),
        has_path => map_get(path, Index) =/= null,
        findings => length(map_get(found, map_get(findings, Index))),
        nodes => [node(Part, From) || Part <- sderl_prof_book:nodes(Book)],
        limits => limits()
    }.

node(#{number := Number, node := Node, above := Above, upto := Last, scheduler := Scheduler,
       schedulers := Online, from := Begun, to := Ended, error := Error, shift := Shift,
       groups := Groups}, From) ->
    #{number => Number, node => Node, first => Above + 1, last => Last, scheduler => Scheduler,
      online => case Online of unknown -> null; _ -> Online end, from => Begun - From,
      to => Ended - From, error => Error, shift => Shift, groups => Groups}.

has_ports(#{book := Book}) ->
    #{kinds := Kinds} = sderl_prof_book:meta(Book),
    is_map_key(open, Kinds) orelse is_map_key(closed, Kinds).

pruned(#{pruned := 0, pairs_pruned := 0}) -> [];
pruned(#{pruned := Waits, pairs_pruned := Pairs}) ->
    [iolist_to_binary(io_lib:format(
        "~b pairs of processes with messages and ~b with waits were too many to tell apart: a "
        "process lists its largest ones only, and their sums are lower bounds", [Pairs, Waits]))].

%% ---------------------------------------------------------------- windows

-doc "What processes do in a part of the time (`t:sderl_prof_window:request/0`), since the begin.".
-spec window(sderl_prof_window:request(), view()) -> {ok, map()} | {error, reason()}.
window(#{from := From, to := To, columns := Columns, processes := Processes} = Request,
       #{index := #{from := Begin, to := End}} = View) ->
    Length = max(1, End - Begin),
    maybe
        ok ?= check(From >= 0 andalso From < min(To, Length), {range, From, To}),
        ok ?= check(Columns >= 1 andalso Columns =< ?MOST_COLUMNS, {columns, Columns}),
        Count = length(Processes),
        ok ?= check(Count =< ?MOST_PROCESSES, {processes, Count}),
        ok ?= check(Count * Columns =< ?MOST_CELLS, {cells, Count * Columns}),
        Until = min(To, Length),
        Window = sderl_prof_window:make(Request#{from := Begin + From, to := Begin + Until}, View),
        {ok, shown(Window, Processes, View)}
    end.

check(true, _) -> ok;
check(false, Why) -> {error, Why}.

shown(#{grid := Grid, width := Width, columns := Columns, from := From, exact := Exact,
        intervals := Intervals}, Processes, #{book := Book, index := Index}) ->
    #{from := Begin, schedulers := Schedulers} = Index,
    Kept = case Intervals of
        none -> #{};
        _ -> Intervals
    end,
    All = lists:append(maps:values(Kept)),
    #{
        from => From - Begin, width => Width, columns => Columns, exact => Exact,
        running => means(running, 0, Grid, Width),
        runnable => means(runnable, 0, Grid, Width),
        schedulers => [#{scheduler => S,
                         awake => shares(running, sderl_prof_index:scheduler(S), Grid, Width)}
                       || S <- Schedulers],
        nodes => [#{node => N,
                    running => means(running, sderl_prof_index:node(N), Grid, Width),
                    runnable => means(runnable, sderl_prof_index:node(N), Grid, Width)}
                  || #{number := N} <- sderl_prof_book:nodes(Book)],
        lanes => [#{process => P,
                    running => shares(running, P, Grid, Width),
                    runnable => shares(runnable, P, Grid, Width),
                    waiting => shares(waiting, P, Grid, Width),
                    gc => shares(gc, P, Grid, Width),
                    intervals => case Intervals of
                        none -> null;
                        _ -> [interval(I, Begin) || I <- maps:get(P, Kept, [])]
                    end}
                  || P <- Processes],
        sites => #{integer_to_binary(Site) => sderl_prof_book:word(Site, Book)
                   || Site <- lists:usort([S || {_, _, _, S, _} <- All, S > 0])},
        names => #{integer_to_binary(P) => sderl_prof_book:label(P, Book)
                   || P <- lists:usort([W || {_, _, _, _, W} <- All, W > 0])}
    }.

means(What, P, Grid, Width) ->
    [round(1000 * Ns / Width) / 1000 || Ns <- sderl_prof_grid:series(What, P, Grid)].

%% Per mille; 1 at least where there is anything.
shares(What, P, Grid, Width) ->
    [case 1000 * Ns of
         Many when Many >= Width -> min(1000, Many div Width);
         Few when Few > 0 -> 1;
         _ -> 0
     end || Ns <- sderl_prof_grid:series(What, P, Grid)].

interval({What, From, To, Site, Waker}, Begin) ->
    [code(What), From - Begin, To - From, Site, Waker].

code(running) -> 0;
code(runnable) -> 1;
code(waiting) -> 2;
code(gc) -> 3;
code(exiting) -> 4.

%% ---------------------------------------------------------------- processes

-doc """
The processes that are first by `sort`, of those whose name, pid or first function has `search` in
it and that are of a kind, or that have these `numbers`. What they did is that of a part of the
time, or of the whole where the part has too many events; `of` tells which.
""".
-spec processes(#{sort := sderl_prof_sums:metric(), search := binary(), limit := pos_integer(),
                  numbers := [pos_integer()], from => integer(), to => integer(),
                  kind => process | port | all}, view()) -> {ok, map()} | {error, reason()}.
processes(Asked, View) ->
    Request = maps:merge(#{from => 0, to => ?EVER, kind => all}, Asked),
    #{from := From, to := To} = Request,
    maybe
        {ok, Range} ?= sderl_prof_part:range(From, To, View),
        {Of, Source} = sums_source(Range, View),
        {ok, (listed(Request, Source, View))#{'of' => Of}}
    end.

%% The sums of each process: computed for a part, read from a file for the whole.
sums_source(whole, _) -> {whole, file};
sums_source({From, To}, View) ->
    case sderl_prof_spent:sums(From, To, View) of
        {ok, Sums} -> {part, Sums};
        {error, too_many} -> {whole, file}
    end.

sums_of(P, file, View) -> sums(P, View);
sums_of(P, Sums, _) -> maps:get(P, Sums, sderl_prof_activity:sums([])).

listed(#{numbers := [_ | _] = Numbers}, Source, View) ->
    Rows = [row(P, sums_of(P, Source, View), View) || P <- Numbers],
    #{processes => Rows, matching => length(Rows)};
listed(#{sort := Sort, search := Search, limit := Limit, kind := Given}, Source, View) ->
    Words = string:casefold(Search),
    %% Ports alone do something beside processes.
    Kind = case Given =:= process andalso not has_ports(View) of
        true -> all;
        false -> Given
    end,
    Add = fun(P, Sums, {Top, N}) ->
        case is_listed(Kind, P, Sums, View) andalso matches(Words, P, View) of
            %% A measure of 0 counts, too.
            true -> {sderl_prof_top:add(1 + map_get(Sort, Sums), {-P, Sums}, Top), N + 1};
            false -> {Top, N}
        end
    end,
    {Top, Matching} = fold(Add, {sderl_prof_top:new(Limit), 0}, Kind, Source, View),
    #{processes => [row(-P, Sums, View) || {_, {P, Sums}} <- sderl_prof_top:result(Top)],
      matching => Matching}.

%% A port may have done nothing that was recorded.
fold(Add, Acc, port, Source, #{book := Book} = View) ->
    sderl_prof_book:fold_entities(fun
        (#{kind := port, number := P}, A) -> Add(P, sums_of(P, Source, View), A);
        (_, A) -> A
    end, Acc, Book);
fold(Add, Acc, _, file, #{sums := File}) -> sderl_prof_sums:fold(Add, Acc, File);
fold(Add, Acc, _, Sums, _) -> maps:fold(Add, Acc, Sums).

is_listed(port, _, _, _) -> true;
is_listed(all, _, Sums, _) -> is_known(Sums);
is_listed(process, P, Sums, #{book := Book}) ->
    is_known(Sums) andalso case sderl_prof_book:entity(P, Book) of
        #{kind := process} -> true;
        _ -> false
    end.

sums(P, #{sums := File}) -> sderl_prof_sums:read(P, File).

is_known(Sums) -> lists:any(fun(N) -> N > 0 end, maps:values(Sums)).

matches(<<>>, _, _) -> true;
matches(Words, P, #{book := Book}) ->
    Texts = case sderl_prof_book:entity(P, Book) of
        none -> [];
        #{entry := Entry} = Entity ->
            [sderl_prof_book:label(Entity, Book), sderl_prof_book:word(Entry, Book)]
    end,
    lists:any(fun(Text) -> string:find(string:casefold(Text), Words) =/= nomatch end, Texts).

row(P, Sums, #{book := Book, index := #{from := Begin}}) ->
    case sderl_prof_book:entity(P, Book) of
        none ->
            Sums#{process => P, kind => process, name => ~"?",
                  entry => ~"", parent => 0, parent_name => ~"",
                  start => null, stop => null, reason => ~""};
        #{kind := Kind, entry := Entry, parent := Parent, start := Start, stop := Stop,
          reason := Reason} = E ->
            Sums#{process => P,
                  kind => Kind,
                  name => sderl_prof_book:label(E, Book),
                  entry => sderl_prof_book:word(Entry, Book),
                  parent => Parent,
                  parent_name => case Parent of
                      0 -> ~"";
                      _ -> sderl_prof_book:label(Parent, Book)
                  end,
                  start => since(Start, Begin), stop => since(Stop, Begin),
                  reason => sderl_prof_book:word(Reason, Book)}
    end.

since(none, _) -> null;
since(T, Begin) -> T - Begin.

-doc "One process: where it waits, for whom, who waits for it, and its messages.".
-spec process(integer(), view()) -> {ok, map()} | {error, reason()}.
process(P, #{book := Book, index := #{messages := Messages}} = View) ->
    #{entities := Entities} = sderl_prof_book:meta(Book),
    case P >= 1 andalso P =< Entities of
        true ->
            {ok, (sderl_prof_waits:of_process(P, View))#{
                process => row(P, sums(P, View), View),
                sent_to => others([{To, R} || {From, To} := R <- Messages, From =:= P], Book),
                received_from => others([{From, R} || {From, To} := R <- Messages, To =:= P], Book)
            }};
        false -> {error, {no_process, P}}
    end.

others(Rows, Book) ->
    Sorted = lists:sort(fun({_, {A, _, _}}, {_, {B, _, _}}) -> A >= B end, Rows),
    [#{process => P, name => sderl_prof_book:label(P, Book), count => N, sum => Sum}
     || {P, {N, Sum, _}} <- lists:sublist(Sorted, ?ROWS)].

-doc """
The tree of processes as rows, each behind its parent, of at most `limit`; siblings that are alike
are one row.
""".
-spec tree(#{limit := pos_integer()}, view()) -> map().
tree(#{limit := Limit}, #{book := Book} = View) ->
    Tree = sderl_prof_book:fold_entities(fun
        (#{kind := process, number := P} = Entity, T) ->
            sderl_prof_tree:add(Entity, sums(P, View), T);
        (_, T) -> T
    end, sderl_prof_tree:new(), Book),
    #{rows := Rows, all := All, below := Below} =
        sderl_prof_family:rows(sderl_prof_tree:result(Tree), fun(P) -> is_process(P, Book) end,
                               Limit),
    #{rows => [branch(Row, View) || Row <- Rows], all => All, below => Below}.

is_process(0, _) -> false;
is_process(P, Book) ->
    case sderl_prof_book:entity(P, Book) of
        #{kind := process} -> true;
        _ -> false
    end.

branch(#{depth := Depth, omitted := 0, process := P, sums := Sums}, View) ->
    (row(P, Sums, View))#{depth => Depth, omitted => 0};
branch(#{depth := Depth, omitted := N, like := P, sums := Sums}, View) ->
    #{entry := Entry} = Row = row(P, Sums, View),
    Row#{process => 0, name => Entry, depth => Depth, omitted => N, start => null, stop => null,
         reason => ~""}.

%% ---------------------------------------------------------------- messages

-doc "The pairs with most messages in a part of the time (`sderl_prof_pairs:messages/2`).".
-spec messages(#{from := integer(), to := integer(), limit := pos_integer()}, view()) ->
    {ok, map()} | {error, reason()}.
messages(Request, View) -> sderl_prof_pairs:messages(Request, View).

-doc "Messages between the nodes of a recording of several (`sderl_prof_pairs:traffic/2`).".
-spec traffic(#{from := integer(), to := integer()}, view()) -> {ok, map()} | {error, reason()}.
traffic(Request, View) -> sderl_prof_pairs:traffic(Request, View).

-doc "Who sends how much to whom in a part of the time, as a graph (`m:sderl_prof_pairs`).".
-spec communication(sderl_prof_pairs:request(), view()) -> {ok, map()} | {error, reason()}.
communication(Request, View) -> sderl_prof_pairs:communication(Request, View).

-doc "Messages one by one, between some processes (`sderl_prof_part:arrows/2`).".
-spec arrows(#{from := integer(), to := integer(), processes := [pos_integer()],
               process := pos_integer() | none, limit := pos_integer()}, view()) ->
    {ok, map()} | {error, reason()}.
arrows(#{processes := Processes} = Request, View) ->
    maybe
        Count = length(Processes),
        ok ?= check(Count =< ?MOST_PROCESSES, {processes, Count}),
        sderl_prof_part:arrows(Request, View)
    end.

-doc "On which schedulers a process was in a part of the time (`sderl_prof_part:stays/2`).".
-spec stays(#{process := pos_integer(), atom() => integer()}, view()) ->
    {ok, map()} | {error, reason()}.
stays(#{process := P} = Request, View) ->
    maybe
        {ok, _} ?= sderl_prof_part:whose(P, View),
        sderl_prof_part:stays(Request, View)
    end.

%% ---------------------------------------------------------------- calls, waits

-doc "Stacks as a tree, and who calls whom (`sderl_prof_functions:calls/2`).".
-spec calls(#{from := integer(), to := integer(), process => pos_integer() | none}, view()) ->
    {ok, map()} | {error, reason()}.
calls(Request, View) -> sderl_prof_functions:calls(Request, View).

-doc "The source text of a function (`sderl_prof_functions:source/2`).".
-spec source(integer(), view()) -> {ok, map()} | {error, reason()}.
source(Function, View) -> sderl_prof_functions:source(Function, View).

-doc "Waits by place (`sderl_prof_waits:waits/2`).".
-spec waits(#{from := integer(), to := integer(), sort := sum | count | mean,
              process => pos_integer() | none, limit := pos_integer()}, view()) ->
    {ok, map()} | {error, reason()}.
waits(Request, View) -> sderl_prof_waits:waits(Request, View).

%% ---------------------------------------------------------------- report, findings, critical path

-doc "The first processes by each measure, and curves (`m:sderl_prof_leaders`).".
-spec report(sderl_prof_leaders:request(), view()) -> map().
report(Request, View) -> sderl_prof_leaders:make(Request, View).

-doc "What keeps the program from being faster (`m:sderl_prof_findings`).".
-spec findings(view()) -> sderl_prof_findings:result().
findings(#{index := #{findings := Findings}}) -> Findings.

-doc "The critical path of a part of the time (`sderl_prof_part:path/2`).".
-spec path(#{from := integer(), to := integer(), process := pos_integer() | none,
             segments := pos_integer()}, view()) ->
    {ok, #{path := sderl_prof_insight:path() | null}} | {error, reason()}.
path(#{process := Process} = Request, View) ->
    maybe
        {ok, _} ?= sderl_prof_part:whose(Process, View),
        sderl_prof_part:path(Request, View)
    end.

-doc "Operations on groups in a part of the time (`sderl_prof_marks:operations/2`).".
-spec operations(sderl_prof_marks:request(), view()) -> {ok, map()} | {error, reason()}.
operations(Request, View) -> sderl_prof_marks:operations(Request, View).

-doc "Messages that went over gateways in a part of the time (`sderl_prof_part:routed/2`).".
-spec routed(#{from := integer(), to := integer(), limit := pos_integer()}, view()) ->
    {ok, sderl_prof_routed:routed()} | {error, reason()}.
routed(Request, View) -> sderl_prof_part:routed(Request, View).

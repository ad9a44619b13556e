%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_part).
-moduledoc """
What pages ask of the events of a part of the time: its critical path, its messages one by one, the
schedulers of a process, its stacks. Answers are maps that can be JSON, with times in nanoseconds
since the begin of the recording. Each question reads the events of the part once, and is refused
where these are too many; what is asked of the whole was found when the index was made.
""".

-export([range/3, whose/2, path/2, arrows/2, routed/2, stays/2, calls/2]).
-export_type([reason/0, calls/0]).

-include("sderl_prof_event.hrl").

%% Events that are read for an answer.
-define(MOST_EVENTS, 2_000_000).
-define(MOST_ARROW_EVENTS, 400_000).
%% So many events before a part tell what it begins with.
-define(LEAD, 50_000).
-define(MOST_STACKS, 100_000).
-define(MOST_FRAMES, 3_000).

-type reason() :: {range, integer(), integer()} | too_many.
-doc "A part as times of the trace's clock, `To` excluded but for the end of the whole.".
-spec range(integer(), integer(), sderl_prof_window:view()) ->
    {ok, {From :: integer(), To :: integer()} | whole} | {error, reason()}.
range(From, To, #{index := #{from := Begin, to := End}}) ->
    Length = max(1, End - Begin),
    case From >= 0 andalso From < min(To, Length) of
        true when From =:= 0, To >= Length -> {ok, whole};
        true when To >= Length -> {ok, {Begin + From, End + 1}};
        true -> {ok, {Begin + From, Begin + To}};
        false -> {error, {range, From, To}}
    end.

-doc "The name of the process to which a question is limited; `null` for all of them.".
-spec whose(pos_integer() | none, sderl_prof_window:view()) ->
    {ok, binary() | null} | {error, {no_process, integer()}}.
whose(none, _) -> {ok, null};
whose(P, #{book := Book}) ->
    case sderl_prof_book:meta(Book) of
        #{entities := Entities} when P =< Entities -> {ok, sderl_prof_book:label(P, Book)};
        _ -> {error, {no_process, P}}
    end.

%% The range of the whole recording, too.
times(whole, #{index := #{from := Begin, to := End}}) -> {Begin, End + 1};
times({From, To}, _) -> {From, To}.

affordable(From, To, Most, View) ->
    case sderl_prof_window:events(From, To, View) =< Most of
        true -> ok;
        false -> {error, too_many}
    end.

-doc """
The critical path of a part, to the last run of a process where one is given; `null` of a recording
that does not tell what ran.
""".
-spec path(#{from := integer(), to := integer(), process := pos_integer() | none,
             segments := pos_integer()}, sderl_prof_window:view()) ->
    {ok, #{path := sderl_prof_insight:path() | null}} | {error, reason()}.
path(#{from := From, to := To, process := Process, segments := Most}, View) ->
    maybe
        {ok, Range} ?= range(From, To, View),
        {ok, Path, LeadsTo} ?= led(Range, Process, Most, View),
        {ok, #{path => case longest(Most, Path) of
                   null -> null;
                   Longest -> Longest#{leads_to => LeadsTo}
               end}}
    end.

%% Where nobody chose a process it leads to that of the index, and the name of that comes with it;
%% or to what ran last, where that process did not run in this part.
led(Range, none, Most, #{book := Book, index := #{leads_to := P}} = View) when P =/= none ->
    case path(Range, P, Most, View) of
        {ok, #{steps := 0}} -> led(Range, anyone, Most, View);
        {ok, Path} -> {ok, Path, sderl_prof_book:label(P, Book)};
        Error -> Error
    end;
led(Range, Process, Most, View) ->
    maybe
        {ok, Path} ?= path(Range, Process, Most, View),
        {ok, Path, null}
    end.

path(whole, none, _, #{index := #{path := Path}}) -> {ok, Path};
path(whole, P, _, #{index := #{path := Path, leads_to := P}}) -> {ok, Path};
path(Range, Process, Most, #{book := Book, index := #{from := Begin}} = View) ->
    {From, To} = times(Range, View),
    maybe
        ok ?= affordable(From, To, ?MOST_EVENTS, View),
        Of = case is_integer(Process) of
            true -> #{process => Process};
            false -> #{}
        end,
        {ok, sderl_prof_insight:path(Book, Of#{from => From - Begin, to => To - 1 - Begin,
                                               segments => Most})}
    end.

longest(_, null) -> null;
longest(Most, #{segments := Segments} = Path) ->
    Length = fun(#{from := A, to := B}) -> B - A end,
    Sorted = lists:sort(fun(A, B) -> Length(A) >= Length(B) end, Segments),
    Path#{segments := lists:sort(fun(#{from := A}, #{from := B}) -> A =< B end,
                                 lists:sublist(Sorted, Most))}.

-doc "Single messages between some processes (`m:sderl_prof_arrows`), at most `limit` of them.".
-spec arrows(#{from := integer(), to := integer(), processes := [pos_integer()],
               process := pos_integer() | none, limit := pos_integer()},
             sderl_prof_window:view()) -> {ok, map()} | {error, reason()}.
arrows(#{from := From0, to := To0, limit := Limit} = Request,
       #{book := Book, index := #{from := Begin}} = View) ->
    maybe
        {ok, Range} ?= range(From0, To0, View),
        {From, To} = times(Range, View),
        ok ?= affordable(From, To, ?MOST_ARROW_EVENTS, View),
        New = sderl_prof_arrows:new((maps:with([processes, process], Request))#{
            from => From, to => To, most => Limit
        }),
        #{arrows := Arrows} = Result = sderl_prof_arrows:result(
            sderl_prof_book:fold(Book, #{from => lead(From, Book), to => To},
                                 fun sderl_prof_arrows:step/7, New)),
        {ok, Result#{arrows := [arrow(Arrow, Begin) || Arrow <- Arrows]}}
    end.

arrow({Sent, Received, From, To, Bytes}, Begin) ->
    [Sent - Begin, case Received of none -> null; _ -> Received - Begin end, From, To, Bytes].

-doc "Messages that went over gateways (`m:sderl_prof_routed`), with so many rows of each list.".
-spec routed(#{from := integer(), to := integer(), limit := pos_integer()},
             sderl_prof_window:view()) -> {ok, sderl_prof_routed:routed()} | {error, reason()}.
routed(#{from := From0, to := To0, limit := Limit},
       #{book := Book, index := #{routed := Routed}} = View) ->
    maybe
        {ok, {From, To}} ?= range(From0, To0, View),
        ok ?= affordable(From, To, ?MOST_EVENTS, View),
        {ok, sderl_prof_routed:part(Book, #{from => From, to => To - 1}, Limit)}
    else
        {ok, whole} -> {ok, sderl_prof_routed:limited(Routed, Limit)};
        Error -> Error
    end.

-doc "On which schedulers a process was (`m:sderl_prof_stays`), at most `limit` of its stays.".
-spec stays(#{from := integer(), to := integer(), process := pos_integer(),
              limit := pos_integer()}, sderl_prof_window:view()) -> {ok, map()} | {error, reason()}.
stays(#{from := From0, to := To0, process := P, limit := Limit},
      #{book := Book, index := #{from := Begin}} = View) ->
    maybe
        {ok, Range} ?= range(From0, To0, View),
        {From, To} = times(Range, View),
        ok ?= affordable(From, To, ?MOST_EVENTS, View),
        #{stays := Stays} = Result = sderl_prof_stays:result(
            Limit, sderl_prof_book:fold(Book, #{from => lead(From, Book), to => To},
                                        fun sderl_prof_stays:step/7,
                                        sderl_prof_stays:new(P, {From, To}))),
        {ok, Result#{stays := [[Scheduler, Since - Begin, Until - Begin, Ins, Ran]
                               || {Scheduler, Since, Until, Ins, Ran} <- Stays]}}
    end.

%% The begin of a block that has so many events until then.
lead(From, Book) ->
    Before = lists:reverse([Row || {_, _, Last, _} = Row <- sderl_prof_book:table(Book),
                                   Last < From]),
    lead(From, Before, ?LEAD).

lead(From, [], _) -> From;
lead(From, _, Left) when Left =< 0 -> From;
lead(From, [{_, First, _, Count} | Before], Left) -> lead(min(First, From), Before, Left - Count).

-doc """
Stacks as a tree, and who calls whom. `outside` is the graph of the whole, of which a part is a
part; `none` where it is the same, or too much to read.
""".
-type calls() :: #{
    'of' := part | whole,
    tree := {non_neg_integer(), [sderl_prof_flame:frame()]},
    graph := sderl_prof_call_graph:graph(),
    outside := sderl_prof_call_graph:graph() | none
}.

-doc """
The calls of a part, or those of the whole where the part has too many events, as `of` tells; those
of one process where one is given. A call that began long before the part, and in which nothing was
called since, is not known.
""".
-spec calls(#{from := integer(), to := integer(), process := pos_integer() | none},
            sderl_prof_window:view()) -> {ok, calls()} | {error, reason()}.
calls(#{from := From0, to := To0, process := Process}, #{index := Index} = View) ->
    maybe
        {ok, Range} ?= range(From0, To0, View),
        {From, To} = times(Range, View),
        IsFew = affordable(From, To, ?MOST_EVENTS, View),
        case {Range, Process, IsFew} of
            {whole, none, _} -> {ok, whole_calls(Index)};
            {_, none, {error, too_many}} -> {ok, whole_calls(Index)};
            {_, _, {error, too_many}} -> {error, too_many};
            {whole, P, ok} -> {ok, (calls_of(From, To, P, View))#{'of' => whole, outside => none}};
            {_, P, ok} ->
                {ok, (calls_of(From, To, P, View))#{'of' => part, outside => outside(P, View)}}
        end
    end.

whole_calls(#{calls := Tree, graph := Graph}) ->
    #{'of' => whole, tree => Tree, graph => Graph, outside => none}.

%% That of all processes is known.
outside(none, #{index := #{graph := Graph}}) -> Graph;
outside(P, View) ->
    {From, To} = times(whole, View),
    case affordable(From, To, ?MOST_EVENTS, View) of
        ok -> map_get(graph, calls_of(From, To, P, View));
        {error, too_many} -> none
    end.

calls_of(From, To, Process, #{book := Book, index := #{to := End}}) ->
    Behind = case [Last || {_, First, Last, _} <- sderl_prof_book:table(Book), First >= To] of
        [Next | _] -> Next;
        [] -> End
    end,
    Whose = maps:from_list([{process, Process} || Process =/= none]),
    Calls = sderl_prof_book:fold(Book, Whose#{from => lead(From, Book), to => Behind},
        fun(T, K, _, P, A, B, C) -> sderl_prof_calls:step(T, K, P, A, B, C) end,
        sderl_prof_calls:new(?MOST_STACKS, {From, To})),
    #{stacks := Stacks} = Result = sderl_prof_calls:result(Calls),
    #{tree => sderl_prof_flame:tree(Stacks, ?MOST_FRAMES),
      graph => sderl_prof_call_graph:make(Result)}.

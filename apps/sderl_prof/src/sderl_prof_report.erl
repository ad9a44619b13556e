%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_report).
-moduledoc """
All analyses of a book, as one map that can be JSON: texts are binaries, times are nanoseconds since
the begin of the trace. Several processes go over the events, each for a part of the analyses.
""".

-export([make/2, metrics/0]).
-export_type([report/0, options/0]).

-include("sderl_prof_event.hrl").

%% Pairs, places and stacks that are told apart.
-define(MOST_KEYS, 200_000).
%% Events between two looks for processes that have ended.
-define(DRAIN, 65_536).
-define(TOP, 10).
-define(PARTS, 100).
-define(MOST_OPERATIONS, 1000).

-doc """
`top`: rows of each list; `parts`: points of each curve; `path_to`: the name or pid of the process
to whose last run the critical path leads, by default that of what ran last; `progress` is called
with the events that the two longest passes have seen on average, and with all of them.
""".
-type options() :: #{top => pos_integer(), parts => pos_integer(), path_to => binary(),
                     progress => fun((non_neg_integer(), pos_integer()) -> term())}.
-type report() :: #{atom() => term()}.

-record(lanes, {
    activity :: sderl_prof_activity:activity(),
    tops :: #{atom() => sderl_prof_top:top()},
    tree = sderl_prof_tree:new() :: sderl_prof_tree:tree(),
    totals = sderl_prof_activity:sums([]) :: sderl_prof_activity:sums(),
    processes = 0 :: non_neg_integer(),
    seen = 0 :: non_neg_integer()
}).

-doc "The measures by which processes are put in order.".
-spec metrics() -> [atom()].
metrics() -> [run, wait, runnable, gc, received, sent, received_bytes, sent_bytes, moves, ins].

-doc "The report of the book in this folder.".
-spec make(file:filename_all(), options()) ->
    {ok, report()} | {error, {no_book, file:filename_all()} | {defect, term()}}.
make(Dir, Options) ->
    maybe
        {ok, Book} ?= sderl_prof_book:open(Dir),
        Meta = sderl_prof_book:meta(Book),
        Full = maps:merge(#{top => ?TOP, parts => ?PARTS},
                          Options#{range => sderl_prof_book:range(Meta),
                                   seen => seen(Meta, Options)}),
        %% The longest first.
        Tasks = [
            fun() ->
                with_book(Dir, fun(B) -> sderl_prof_insight:findings(B, map_get(seen, Full)) end)
            end,
            fun() -> lanes(Dir, Full) end,
            fun() -> others(Dir, Full) end,
            fun() -> with_book(Dir, fun(B) -> sderl_prof_insight:path(B, path(Full, B)) end) end
        ],
        {ok, [Findings, {Lanes, Waits, For, Points}, Others, Path]} ?=
            sderl_prof_tasks:in_turns(Tasks),
        Report = report(Book, Meta, Full, Lanes, Waits, For, Points, Others),
        ok = sderl_prof_book:close(Book),
        {ok, Report#{findings => Findings, critical_path => Path}}
    end.

%% Both passes count to one number.
seen(#{events := Events}, #{progress := Progress}) ->
    Counter = counters:new(1, []),
    fun(Seen) ->
        ok = counters:add(Counter, 1, Seen),
        Progress(min(Events, counters:get(Counter, 1) div 2), max(1, Events))
    end;
seen(_, _) -> fun(_) -> ok end.

path(#{top := Top, path_to := Text}, Book) ->
    case sderl_prof_insight:find_process(Text, Book) of
        {ok, Process} -> #{top => Top, process => Process};
        error -> #{top => Top}
    end;
path(#{top := Top}, _) -> #{top => Top}.

with_book(Dir, Fun) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    Result = Fun(Book),
    ok = sderl_prof_book:close(Book),
    Result.

mode(#{kinds := Kinds}) -> sderl_prof_activity:mode(Kinds).

%% ---------------------------------------------------------------- who does what when

lanes(Dir, #{range := {From, To}, top := Top, parts := Parts, seen := Seen}) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    Meta = sderl_prof_book:meta(Book),
    Acc = {sderl_prof_concurrency:new(From, To, Parts), sderl_prof_tally:new(?MOST_KEYS),
           sderl_prof_tally:new(?MOST_KEYS)},
    Lanes0 = #lanes{
        activity = sderl_prof_activity:new(mode(Meta), fun sink/7, Acc),
        tops = #{Metric => sderl_prof_top:new(Top) || Metric <- metrics()}
    },
    Lanes1 = sderl_prof_book:fold(Book, #{}, fun(T, K, S, P, A, B, #lanes{seen = N} = L) ->
        Activity = sderl_prof_activity:step(T, K, S, P, A, B, L#lanes.activity),
        case (N + 1) rem ?DRAIN of
            0 ->
                _ = Seen(?DRAIN),
                {Ended, Activity1} = sderl_prof_activity:drain(Activity),
                ended(Ended, Book, L#lanes{activity = Activity1, seen = N + 1});
            _ -> L#lanes{activity = Activity, seen = N + 1}
        end
    end, Lanes0),
    {Rest, {Concurrency, Waits, For}} = sderl_prof_activity:finish(To, Lanes1#lanes.activity),
    Lanes = ended(Rest, Book, Lanes1),
    ok = sderl_prof_book:close(Book),
    {Lanes#lanes{activity = sderl_prof_activity:new(none, fun sink/7, none)},
     sderl_prof_tally:result(Waits), sderl_prof_tally:result(For),
     sderl_prof_concurrency:result(Concurrency)}.

sink(waiting, P, From, To, Site, Waker, {Concurrency, Waits, For}) ->
    For1 = case Waker of 0 -> For; _ -> sderl_prof_tally:add({P, Waker}, To - From, For) end,
    {Concurrency, sderl_prof_tally:add(Site, To - From, Waits), For1};
sink(What, _, From, To, _, _, {Concurrency, Waits, For})
  when What =:= running; What =:= runnable ->
    {sderl_prof_concurrency:add(What, From, To, Concurrency), Waits, For};
sink(_, _, _, _, _, _, Acc) ->
    Acc.

ended(Sums, Book, Lanes) ->
    lists:foldl(fun({P, Sum}, #lanes{tops = Tops, tree = Tree, totals = Totals} = L) ->
        Entity = sderl_prof_book:entity(P, Book),
        L#lanes{
            tops = #{Metric => sderl_prof_top:add(map_get(Metric, Sum), {P, Sum}, T)
                     || Metric := T <- Tops},
            tree = case Entity of
                #{kind := process} -> sderl_prof_tree:add(Entity, Sum, Tree);
                _ -> Tree
            end,
            totals = sderl_prof_activity:sums([Totals, Sum]),
            processes = L#lanes.processes + 1
        }
    end, Lanes, Sums).

%% ---------------------------------------------------------------- messages, schedulers, calls

others(Dir, #{range := {From, To}, parts := Parts}) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    #{kinds := Kinds} = sderl_prof_book:meta(Book),
    Acc0 = {sderl_prof_tally:new(?MOST_KEYS), sderl_prof_schedulers:new(From, To, Parts),
            sderl_prof_calls:new(?MOST_KEYS)},
    %% Nothing to look for, nothing to read.
    Wanted = [send, scheduler_active, scheduler_inactive, call],
    {Messages, Schedulers, Calls} = case maps:with(Wanted, Kinds) of
        None when map_size(None) =:= 0 -> Acc0;
        _ -> sderl_prof_book:fold(Book, #{}, step(is_map_key(call, Kinds)), Acc0)
    end,
    ok = sderl_prof_book:close(Book),
    {sderl_prof_tally:result(Messages), sderl_prof_schedulers:result(To, Schedulers),
     sderl_prof_calls:result(Calls)}.

step(HasCalls) ->
    fun(_, ?SEND, _, P, A, B, {Messages, Schedulers, Calls}) ->
            {sderl_prof_tally:add({P, A}, B, Messages), Schedulers, Calls};
       (T, K, S, _, A, _, {Messages, Schedulers, Calls})
         when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
            {Messages, sderl_prof_schedulers:step(T, K, S, A, Schedulers), Calls};
       (T, K, _, P, A, B, {Messages, Schedulers, Calls}) when HasCalls ->
            {Messages, Schedulers, sderl_prof_calls:step(T, K, P, A, B, Calls)};
       (_, _, _, _, _, _, Acc) -> Acc
    end.

%% ---------------------------------------------------------------- the report

report(Book, Meta, #{range := {From, To}, top := Top}, Lanes, Waits, For, Points,
       {Messages, Schedulers, Calls}) ->
    #{
        trace => trace(Meta, From, To, Lanes),
        totals => Lanes#lanes.totals,
        concurrency => [P#{from := T - From} || #{from := T} = P <- Points],
        schedulers => schedulers(Schedulers, From),
        top => #{Metric => [process(P, Sums, Book) || {_, {P, Sums}} <- sderl_prof_top:result(T)]
                 || Metric := T <- Lanes#lanes.tops},
        messages => pairs(Messages, Top, [from, to], Book),
        waits => waits(Waits, Top, Book),
        waits_for => pairs(For, Top, [waiter, waker], Book),
        calls => calls(Calls, Top, Book),
        tree => tree(sderl_prof_tree:result(Lanes#lanes.tree), Book),
        operations => operations(Book, From),
        routed => sderl_prof_routed:find(Book, Top)
    }.

operations(Book, From) ->
    #{operations := Found} = sderl_prof_operations:find(Book, ?MOST_OPERATIONS),
    [Told#{at := At - From}
     || #{at := At} = Told <- [sderl_prof_operations:told(One, Book) || One <- Found]].

trace(Meta, From, To, Lanes) ->
    Info = case Meta of #{info := none} -> #{}; #{info := I} -> I end,
    (maps:with([node, events, kinds, dropped, lost_events, lost_bytes, problems], Meta))#{
        otp => maps:get(otp, Info, null),
        items => maps:get(items, Info, []),
        schedulers => maps:get(schedulers, Info, null),
        began_wall_ns => maps:get(began_wall, Info, null),
        ended => ended_text(maps:get(ended, Info, null)),
        seconds => (To - From) / 1.0e9,
        processes => Lanes#lanes.processes,
        runnable => mode(Meta)
    }.

ended_text({disk, Why}) -> iolist_to_binary(io_lib:format("disk: ~0tp", [Why]));
ended_text(Atom) -> Atom.

schedulers(#{awake_ns := Awake, points := Points, changes := Changes}, From) ->
    #{changes => Changes,
      awake_ns => #{integer_to_binary(S) => Ns || S := Ns <- Awake},
      points => [P#{from := T - From} || #{from := T} = P <- Points, Changes > 0]}.

process(P, Sums, Book) -> maps:merge(Sums, sderl_prof_insight:named(P, Book)).

greatest(Rows, Top) ->
    lists:sublist(lists:sort(fun({_, {_, A, _}}, {_, {_, B, _}}) -> A >= B end,
                             maps:to_list(Rows)), Top).

pairs({Rows, {RestN, RestSum, _}, Pruned}, Top, [A, B], Book) ->
    Shown = greatest(Rows, Top),
    #{rows => [#{A => sderl_prof_book:label(From, Book), B => sderl_prof_book:label(To, Book),
                 count => N, sum => Sum}
               || {{From, To}, {N, Sum, _}} <- Shown],
      pairs => map_size(Rows) + Pruned,
      count => RestN + lists:sum([N || _ := {N, _, _} <- Rows]),
      sum => RestSum + lists:sum([S || _ := {_, S, _} <- Rows])}.

waits({Rows, _, _}, Top, Book) ->
    [#{site => site(Site, Book), count => N, sum_ns => Sum, mean_ns => Sum / N,
       stddev_ns => math:sqrt(max(0.0, Squares / N - (Sum / N) * (Sum / N)))}
     || {Site, {N, Sum, Squares}} <- greatest(Rows, Top)].

site(0, _) -> ~"unknown";
site(Site, Book) -> sderl_prof_book:word(Site, Book).

calls(#{stacks := Stacks, rest := Rest} = Calls, Top, Book) ->
    #{functions := Functions, edges := Edges} = sderl_prof_call_graph:make(Calls),
    Sorted = lists:sort(fun({_, {_, A, _}}, {_, {_, B, _}}) -> A >= B end,
                        maps:to_list(Functions)),
    #{functions => [
          #{function => sderl_prof_book:word(F, Book), own_ns => Own, all_ns => All, calls => N,
            callers => [Edge#{caller => Name}
                        || {Name, Edge} <- edges([{C, E} || {C, G} := E <- Edges, G =:= F],
                                                 Top, Book)],
            callees => [Edge#{callee => Name}
                        || {Name, Edge} <- edges([{G, E} || {C, G} := E <- Edges, C =:= F],
                                                 Top, Book)]}
          || {F, {N, Own, All}} <- lists:sublist(Sorted, Top)],
      stacks => length(Stacks),
      rest_ns => Rest}.

%% Those that are called most, at the other ends.
edges(Edges, Top, Book) ->
    Sorted = lists:sort(fun({_, A}, {_, B}) -> A >= B end, Edges),
    [{site(F, Book), #{calls => N, ns => Ns}} || {F, {N, Ns}} <- lists:sublist(Sorted, Top)].

tree(Branches, Book) ->
    [#{parent => Parent,
       shown => [begin
                     #{number := N} = Entity,
                     process(N, Sums, Book)
                 end || {Entity, Sums} <- Shown],
       omitted => Omitted,
       omitted_sums => Sums0}
     || #{parent := Parent, shown := Shown, omitted := Omitted, omitted_sums := Sums0}
            <- lists:sort(Branches)].

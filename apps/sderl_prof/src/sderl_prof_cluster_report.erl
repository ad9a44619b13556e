%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_cluster_report).
-moduledoc """
What a recording of several nodes says, as one map that can be JSON: the nodes beside each other,
the messages between them, and the report of each node.
""".

-export([make/2, format_error/1]).
-export_type([report/0, options/0, reason/0]).

-define(TOP, 10).
-define(MOST_PAIRS, 200_000).
-define(MOST_OPERATIONS, 1000).

-doc "Options of `m:sderl_prof_report`; `progress` is called with nodes that are done, and all.".
-type options() :: #{top => pos_integer(), parts => pos_integer(),
                     progress => fun((non_neg_integer(), pos_integer()) -> term())}.
-type report() :: #{atom() => term()}.
-type reason() :: sderl_prof_cluster_book:reason().

-doc "The report of the recording in this folder.".
-spec make(file:filename_all(), options()) -> {ok, report()} | {error, reason()}.
make(Dir, Options) ->
    Progress = maps:get(progress, Options, fun(_, _) -> ok end),
    Top = maps:get(top, Options, ?TOP),
    maybe
        {ok, Index, Books, Missing} ?= sderl_prof_cluster_book:books(Dir, #{}),
        {ok, Joined} ?= sderl_prof_joined:open(Books, fun(_, _) -> ok end),
        {ok, Reports} ?= reports(Books, maps:remove(progress, Options), Progress, #{}),
        {ok, {Links, Pairs}, Counts} ?= messages(Joined),
        Greatest = pairs(Pairs, Top, Joined),
        Report = report(Index, Joined, Reports, Missing, Links, Greatest, Counts),
        {ok, Path} ?= critical_path(Dir, Top),
        {ok, Report#{operations => operations(Joined), critical_path => Path}}
    end.

%% That of all nodes together; none where there is no time line of all.
critical_path(Dir, Top) ->
    case sderl_prof_cluster_book:open(Dir, #{}) of
        {ok, Out} ->
            Book = opened_book(Out),
            Path = sderl_prof_insight:led_path(Book, #{top => Top}),
            ok = sderl_prof_book:close(Book),
            {ok, Path};
        {error, {no_clocks, _}} -> {ok, null};
        Error -> Error
    end.

%% Operations on groups, of all nodes, in the order of time.
operations(Joined) ->
    {Begin, _} = sderl_prof_joined:range(Joined),
    All = [
        begin
            Book = opened_book(Dir),
            #{operations := Operations} = sderl_prof_operations:find(Book, ?MOST_OPERATIONS),
            Found = [Told#{node := Node, at := sderl_prof_joined:common(At, Part) - Begin}
                     || #{at := At} = Told <- [sderl_prof_operations:told(One, Book)
                                               || One <- Operations]],
            ok = sderl_prof_book:close(Book),
            Found
        end
     || #{book := Dir, entry := #{node := Node}} = Part <- sderl_prof_joined:nodes(Joined)
    ],
    Sorted = lists:sort(fun(#{at := A}, #{at := B}) -> A =< B end, lists:append(All)),
    lists:sublist(Sorted, ?MOST_OPERATIONS).

reports([], _, _, Reports) -> {ok, Reports};
reports([{#{node := Node}, Book} | Rest], Options, Progress, Reports) ->
    maybe
        {ok, Report} ?= sderl_prof_report:make(Book, Options),
        Done = Reports#{Node => Report},
        _ = Progress(map_size(Done), map_size(Done) + length(Rest)),
        reports(Rest, Options, Progress, Done)
    end.

%% ---------------------------------------------------------------- messages

messages(Joined) ->
    sderl_prof_joined:messages(
        fun message/2, {sderl_prof_traffic:new(), sderl_prof_tally:new(?MOST_PAIRS)}, Joined
    ).

message(#{from := From, to := To, bytes := Bytes, from_process := P, to_process := Q} = Message,
        {Links, Pairs}) ->
    {sderl_prof_traffic:add(Message, Links),
     sderl_prof_tally:add({{From, P}, {To, Q}}, Bytes, Pairs)}.

pairs(Tally, Top, Joined) ->
    {Rows, _, _} = sderl_prof_tally:result(Tally),
    Greatest = lists:sublist(
        lists:sort(fun({_, {N, _, _}}, {_, {M, _, _}}) -> N >= M end, maps:to_list(Rows)), Top
    ),
    Opened = #{N => opened_book(Book)
               || #{number := N, book := Book} <- sderl_prof_joined:nodes(Joined),
                  lists:any(fun({{{A, _}, {B, _}}, _}) -> N =:= A orelse N =:= B end, Greatest)},
    Named = #{N => Node
              || #{number := N, entry := #{node := Node}} <- sderl_prof_joined:nodes(Joined)},
    Shown = [#{from => sderl_prof_book:label(P, map_get(A, Opened)), from_node => map_get(A, Named),
               to => sderl_prof_book:label(Q, map_get(B, Opened)), to_node => map_get(B, Named),
               count => N, bytes => Bytes}
             || {{{A, P}, {B, Q}}, {N, Bytes, _}} <- Greatest],
    maps:foreach(fun(_, Book) -> ok = sderl_prof_book:close(Book) end, Opened),
    Shown.

opened_book(Dir) ->
    {ok, Book} = sderl_prof_book:open(Dir),
    Book.

%% ---------------------------------------------------------------- the report

report(#{began_wall := Wall, items := Items, nodes := Entries}, Joined, Reports, Missing, Links,
       Pairs, Counts) ->
    Parts = sderl_prof_joined:nodes(Joined),
    {Begin, End} = sderl_prof_joined:range(Joined),
    Of = #{Node => Part || #{entry := #{node := Node}} = Part <- Parts},
    Traffic = sderl_prof_traffic:rows(Parts, #{}, Links),
    #{found := Found} =
        sderl_prof_findings:past_gateways(Traffic, #{found => [], not_shown => []}),
    #{
        cluster => #{
            began_wall_ns => Wall,
            items => Items,
            seconds => (End - Begin) / 1.0e9,
            all_from_ns => lists:max([0 | [From - Begin || #{from := From} <- Parts]]),
            all_to_ns => lists:min([End - Begin | [To - Begin || #{to := To} <- Parts]]),
            problems => [<<Node/binary, ": ", Why/binary>> || {Node, Why} <- Missing]
        },
        nodes => [node(Entry, maps:get(Node, Of, none), maps:get(Node, Reports, none), Begin)
                  || #{node := Node} = Entry <- Entries],
        traffic => Traffic,
        findings => Found,
        pairs => Pairs,
        routed => routed(Reports),
        joined => Counts#{unknown => lists:sum([N || #{unknown := N} <- Parts])},
        reports => Reports
    }.

%% By which ways messages went over gateways, as the nodes on these ways tell it; none where that
%% was not recorded.
routed(Reports) ->
    case #{Node => Routed || Node := #{routed := #{} = Routed} <- Reports} of
        None when map_size(None) =:= 0 -> null;
        Of ->
            Sum = fun(Key) -> lists:sum([map_get(count, map_get(Key, R)) || _ := R <- Of]) end,
            #{
                sent => Sum(sent),
                passed => Sum(passed),
                delivered => lists:sum([N || _ := #{delivered := N} <- Of]),
                undelivered => Sum(undelivered),
                destinations => most([(maps:remove(at, Row))#{from => Node}
                                      || Node := #{sent := #{rows := Rows}} <- Of, Row <- Rows]),
                gateways => most([(maps:remove(at, Row))#{gateway => Node}
                                  || Node := #{passed := #{rows := Rows}} <- Of, Row <- Rows]),
                failures => most([Row#{at => Node}
                                  || Node := #{undelivered := #{rows := Rows}} <- Of, Row <- Rows])
            }
    end.

most(Rows) -> lists:sort(fun(#{count := A}, #{count := B}) -> A >= B end, Rows).

node(#{node := Node, groups := Groups, state := State, error := Error, ended := Ended}, Part,
     Report, Begin) ->
    maps:merge(#{node => Node, groups => Groups, state => State, error => Error, ended => Ended},
               maps:merge(times(Part, Begin), work(Report))).

times(none, _) -> #{aligned => false};
times(#{from := From, to := To, error := Error, entry := #{clock := Clock}}, Begin) ->
    #{aligned => true, from_ns => From - Begin, to_ns => To - Begin, clock_error_ns => Error,
      drift_ppm => case sderl_prof_clock:drift(Clock) of unknown -> null; Drift -> Drift end}.

work(none) -> #{here => false};
work(#{totals := #{run := Run, runnable := Runnable, gc := Gc, sent := Sent,
                   received := Received},
       trace := #{seconds := Seconds, schedulers := Schedulers, processes := Processes,
                  events := Events, problems := Problems},
       findings := #{found := Found}}) ->
    Ns = max(1.0e-9, Seconds) * 1.0e9,
    #{here => true, seconds => Seconds, schedulers => Schedulers, processes => Processes,
      events => Events, run_ns => Run, runnable_ns => Runnable, gc_ns => Gc,
      running => Run / Ns, runnable => Runnable / Ns,
      busy => case Schedulers of null -> null; _ -> Run / Ns / Schedulers end,
      sent => Sent, received => Received, findings => length(Found), problems => Problems}.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error(Why) -> sderl_prof_cluster_book:format_error(Why).

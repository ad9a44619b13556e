%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_insight).
-moduledoc """
The critical path and the findings of a book, as maps that can be JSON: texts are binaries, times
are nanoseconds since the begin of the trace.
""".

-export([path/2, led_path/2, led/3, findings/1, findings/2, find_process/2, leads_to/2, named/2]).
-export_type([path/0, path_options/0]).

%% Segments that are shown, the longest ones.
-define(SEGMENTS, 50).
-define(TOP, 10).

-doc """
`from`, `to`: the part of the trace, in nanoseconds since its begin, all by default; `process`: the
number of the process to whose last run the path leads, by default that of what ran last; `segments`
and `top`: so many segments and processes are shown.
""".
-type path_options() :: #{from => non_neg_integer(), to => non_neg_integer(),
                          process => pos_integer(), segments => pos_integer(),
                          top => pos_integer()}.

-doc """
`steps` counts all segments, of which `segments` are the longest; `others` sums up the processes
that `processes` leaves out; `nodes` is empty for a single node. `leads_to` names the process to
which the path leads, if it is not simply what ran last (`led_path/2`).
""".
-type path() :: #{
    from := integer(), to := integer(), steps := non_neg_integer(), kinds := times(),
    processes := [#{process := binary(), number := pos_integer(), entry := binary(),
                    times := times(), ns := non_neg_integer(), share := float(),
                    gain_ns := non_neg_integer()}],
    others := #{processes := non_neg_integer(), ns := non_neg_integer()},
    nodes := [#{node := binary(), times := times(), ns := non_neg_integer(), share := float()}],
    gain := #{more_schedulers_ns := non_neg_integer(), faster_processes_ns := non_neg_integer(),
              faster_messages_ns := non_neg_integer(),
              faster_between_nodes_ns := non_neg_integer(),
              what_is_waited_for_ns := non_neg_integer(), speedup_of_schedulers := float()},
    segments := [#{kind := sderl_prof_path:kind(), process := binary(), number := pos_integer(),
                   from := integer(), to := integer(), function := binary() | null,
                   sender := binary() | null, sender_number := pos_integer() | null}],
    leads_to => binary() | null
}.
-type times() :: #{sderl_prof_path:kind() := non_neg_integer()}.

%% Pairs of processes that are told apart.
-define(MOST_PAIRS, 200_000).

-include("sderl_prof_event.hrl").

%% ---------------------------------------------------------------- the critical path

-doc """
The critical path where nobody chose a process (`led/3`), with the name of the process to which it
leads as `leads_to`, or `null` where that is what ran last. Of several nodes it reads all events.
""".
-spec led_path(sderl_prof_book:book(), path_options()) -> path() | null.
led_path(Book, Options) ->
    case led(leads_to(Book), Book, Options) of
        {_, null} -> null;
        {none, Path} -> Path#{leads_to => null};
        {P, Path} -> Path#{leads_to => sderl_prof_book:label(P, Book)}
    end.

-doc """
The critical path to the last run of this process; to what ran last where it is `none`, or did not
run in this part. Tells to which of them it leads.
""".
-spec led(pos_integer() | none, sderl_prof_book:book(), path_options()) ->
    {pos_integer() | none, path() | null}.
led(none, Book, Options) -> {none, path(Book, Options)};
led(P, Book, Options) ->
    case path(Book, Options#{process => P}) of
        #{steps := 0} -> led(none, Book, Options);
        Path -> {P, Path}
    end.

leads_to(Book) ->
    case sderl_prof_book:nodes(Book) of
        [] -> none;
        _ ->
            Sent = sderl_prof_book:fold(Book, #{}, fun
                (_, ?SEND, _, P, To, Bytes, Acc) -> sderl_prof_tally:add({P, To}, Bytes, Acc);
                (_, _, _, _, _, _, Acc) -> Acc
            end, sderl_prof_tally:new(?MOST_PAIRS)),
            {Rows, _, _} = sderl_prof_tally:result(Sent),
            leads_to(Rows, Book)
    end.

-doc """
The process to which the critical path of several nodes leads, by the counts of messages by sender
and receiver: the one to which a process of another node sends most messages, because what runs last
when a recording is ended has little to do with the program; `none` of one node, and where no node
sent anything to another one.
""".
-spec leads_to(#{{pos_integer(), non_neg_integer()} => sderl_prof_tally:row()},
               sderl_prof_book:book()) -> pos_integer() | none.
leads_to(Messages, Book) ->
    Number = fun(P) ->
        case sderl_prof_book:node_of(P, Book) of
            #{number := N} -> N;
            none -> none
        end
    end,
    {_, _, Most} = maps:fold(fun
        %% Of as many the first pair, whatever the order of a map is.
        ({P, Q} = Pair, {Count, _, _}, {Best, First, _} = Found)
          when Count > Best; Count =:= Best, Pair < First ->
            case {Number(P), Number(Q)} of
                {N, M} when N =/= M, N =/= none, M =/= none -> {Count, Pair, Q};
                _ -> Found
            end;
        (_, _, Found) -> Found
    end, {0, none, none}, Messages),
    Most.

-doc "The critical path; `null` when what runs was not recorded.".
-spec path(sderl_prof_book:book(), path_options()) -> path() | null.
path(Book, Options) ->
    #{kinds := Kinds} = Meta = sderl_prof_book:meta(Book),
    case Kinds of
        #{in := _} -> path(Book, Meta, Options);
        _ -> null
    end.

path(Book, #{kinds := Kinds} = Meta, Options) ->
    {Begin, End} = sderl_prof_book:range(Meta),
    From = min(End, Begin + maps:get(from, Options, 0)),
    To = max(From, min(End, Begin + maps:get(to, Options, End - Begin))),
    Path0 = sderl_prof_path:new((maps:merge(several(Book), maps:with([process], Options)))#{
        from => From, to => To, mode => sderl_prof_activity:mode(Kinds),
        parent => fun(P) -> parent(P, Book) end, most => maps:get(segments, Options, ?SEGMENTS)
    }),
    Path = sderl_prof_book:fold_back(Book, #{from => From, to => To}, fun sderl_prof_path:wanted/1,
                                     fun sderl_prof_path:step/7, Path0),
    shown(sderl_prof_path:result(Path), Begin, maps:get(top, Options, ?TOP), Book).

several(Book) ->
    case sderl_prof_book:nodes(Book) of
        [] -> #{};
        _ -> #{node => fun(P) -> node_of(P, Book) end}
    end.

node_of(P, Book) ->
    case sderl_prof_book:node_of(P, Book) of
        #{node := Node} -> Node;
        none -> ~"?"
    end.

parent(P, Book) ->
    case sderl_prof_book:entity(P, Book) of
        #{parent := Parent} -> Parent;
        none -> 0
    end.

shown(#{from := From, to := To, steps := Steps, kinds := Kinds, processes := Processes,
        rest := Rest, segments := Segments}, Begin, Top, Book) ->
    All = max(1, To - From),
    {Shown, Others} = lists:split(min(Top, length(Processes)), Processes),
    #{
        from => From - Begin,
        to => To - Begin,
        steps => Steps,
        kinds => Kinds,
        processes => [begin
                          Ns = lists:sum(maps:values(Times)),
                          (named(P, Book))#{times => Times, ns => Ns, share => Ns / All,
                                            gain_ns => map_get(running, Times)}
                      end || {P, Times} <- Shown],
        others => #{processes => length(Others),
                    ns => Rest + lists:sum([Ns || {_, Times} <- Others, _ := Ns <- Times])},
        nodes => by_node(Processes, All, Book),
        gain => gain(Kinds, All),
        segments => [segment(Segment, Begin, Book) || Segment <- Segments]
    }.

%% Of several nodes, the time of each on the path, in the order of the nodes.
by_node(Processes, All, Book) ->
    Sums = lists:foldl(fun({P, Times}, Acc) ->
        Plus = fun(Before) -> maps:merge_with(fun(_, A, B) -> A + B end, Before, Times) end,
        maps:update_with(node_of(P, Book), Plus, Times, Acc)
    end, #{}, Processes),
    [begin
         Ns = lists:sum(maps:values(Times)),
         #{node => Node, times => Times, ns => Ns, share => Ns / All}
     end || #{node := Node} <- sderl_prof_book:nodes(Book), #{Node := Times} <- [Sums]].

%% An upper bound of the gain: other chains may be as long as this one.
gain(#{running := Running, runnable := Runnable, waiting := Waiting, message := Message,
       between := Between}, All) ->
    #{
        more_schedulers_ns => Runnable,
        faster_processes_ns => Running,
        faster_messages_ns => Message,
        faster_between_nodes_ns => Between,
        what_is_waited_for_ns => Waiting,
        %% How often faster it would be with as many schedulers as it can use.
        speedup_of_schedulers => All / max(1, All - Runnable)
    }.

-doc "A process by its name or pid, its number, and the function in which it begins.".
-spec named(pos_integer(), sderl_prof_book:book()) ->
    #{process := binary(), number := pos_integer(), entry := binary()}.
named(P, Book) ->
    case sderl_prof_book:entity(P, Book) of
        none -> #{process => ~"?", number => P, entry => ~"?"};
        #{entry := Entry} = Entity ->
            #{process => sderl_prof_book:label(Entity, Book), number => P,
              entry => sderl_prof_book:word(Entry, Book)}
    end.

segment(#{kind := Kind, process := P, from := From, to := To, site := Site, sender := Sender},
        Begin, Book) ->
    #{
        kind => Kind,
        process => sderl_prof_book:label(P, Book),
        number => P,
        from => From - Begin,
        to => To - Begin,
        function => or_null(Site, fun() -> sderl_prof_book:word(Site, Book) end),
        sender => or_null(Sender, fun() -> sderl_prof_book:label(Sender, Book) end),
        sender_number => or_null(Sender, fun() -> Sender end)
    }.

or_null(0, _) -> null;
or_null(_, Known) -> Known().

-doc "The number of the process that has this name or pid, as text; of several the last.".
-spec find_process(binary(), sderl_prof_book:book()) -> {ok, pos_integer()} | error.
find_process(Text, Book) ->
    %% Nodes have the same pids: there the label tells the node, too.
    Key = case sderl_prof_book:nodes(Book) of [] -> key(Text); _ -> none end,
    sderl_prof_book:fold_entities(fun
        (#{kind := process, number := N, key := Its}, _) when Its =:= Key -> {ok, N};
        (#{number := N} = Entity, Found) ->
            case sderl_prof_book:label(Entity, Book) of
                Text -> {ok, N};
                _ -> Found
            end
    end, error, Book).

key(Text) ->
    case re:run(Text, ~"^<0\\.(\\d{1,10})\\.(\\d{1,10})>$", [{capture, all_but_first, binary}]) of
        {match, [Id, Serial]} ->
            sderl_prof_event:key(binary_to_integer(Id), binary_to_integer(Serial));
        nomatch -> none
    end.

%% ---------------------------------------------------------------- findings

-doc "The findings, and what the recording cannot show.".
-spec findings(sderl_prof_book:book()) -> sderl_prof_findings:result().
findings(Book) -> findings(Book, fun(_) -> ok end).

-doc "The same; `Seen` is called now and then with how many events were looked at since.".
-spec findings(sderl_prof_book:book(), Seen :: fun((pos_integer()) -> term())) ->
    sderl_prof_findings:result().
findings(Book, Seen) ->
    #{kinds := Kinds, info := Info} = Meta = sderl_prof_book:meta(Book),
    {From, To} = sderl_prof_book:range(Meta),
    Mode = sderl_prof_activity:mode(Kinds),
    Schedulers = case Info of #{schedulers := N} -> N; none -> unknown end,
    HasTables = has_tables(Kinds, Book),
    Evidence = sderl_prof_book:fold(
        Book, #{}, fun sderl_prof_evidence:step/7,
        sderl_prof_evidence:new(#{from => From, mode => Mode, schedulers => Schedulers,
                                  is_port => fun(P) -> is_port(P, Book) end, calls => HasTables,
                                  seen => Seen})
    ),
    Result = sderl_prof_findings:find(sderl_prof_evidence:finish(To, Evidence), #{
        items => ['calls of ets' || HasTables] ++ items(Info, Kinds),
        runnable => Mode, schedulers => Schedulers,
        label => fun(P) -> sderl_prof_book:label(P, Book) end,
        owner => fun(P) -> parent(P, Book) end,
        word => fun(Word) -> sderl_prof_book:word(Word, Book) end
    }),
    sderl_prof_findings:past_gateways(maps:get(traffic, Meta, []), Result).

is_port(P, Book) ->
    case sderl_prof_book:entity(P, Book) of
        #{kind := port} -> true;
        _ -> false
    end.

%% Calls of other functions are of no use here.
has_tables(Kinds, Book) ->
    is_map_key(call, Kinds) andalso lists:any(fun
        (<<"ets:", _/binary>>) -> true;
        (_) -> false
    end, sderl_prof_book:words(Book)).

%% The events show which items were recorded; a recorder also says so of items without events.
items(Info, Kinds) ->
    Recorded = case Info of #{items := Texts} -> Texts; none -> [] end,
    All = case Info of #{share := _} -> []; _ -> ['all processes'] end,
    HasScheduler = case Info of #{scheduler_id := Has} -> Has; none -> true end,
    All ++ [Item || {Item, Names, Of} <- [
        {running, [~"running", ~"migration"], [in]},
        {message, [~"message"], [send, 'receive']},
        {garbage_collection, [~"garbage_collection"], [gc_minor_start, gc_major_start]},
        {migration, [~"migration"], [in]},
        {schedulers, [~"schedulers"], [scheduler_active, scheduler_inactive]},
        {ports, [~"ports"], []}
    ], lists:any(fun(Name) -> lists:member(Name, Recorded) end, Names)
        orelse maps:size(maps:with(Of, Kinds)) > 0,
     Item =/= migration orelse HasScheduler].

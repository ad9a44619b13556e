%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_query).
-moduledoc """
Queries about the past: series, traffic tables, events. Pure; the hub and a replay provide the
frames as a `t:sderl_mon_types:store/0`.
""".

-export([series/5, traffic/2, events/2]).

-define(POINTS, 2_000).
-define(WINDOW_S, 60).
-define(LONGEST_S, 3_600).
-define(EVENTS, 200).
-define(MOST_EVENTS, 1_000).
-define(ROWS, 5_000).
%% More frames would hardly improve a table's percentiles.
-define(MOST_FRAMES, 60).

-doc """
At most `Points` values a column, each the mean over its share of the time (queues: the highest), at
the time of its end; `null` where there is no frame. A rate (`is_rate` of the store) that is missing
in a frame with other numbers of its place was 0: its mean is over all the time in which the place
was seen. Errors: `none` when there is no frame in the range at all.
""".
-spec series(sderl_mon_types:store(), sderl_mon_types:what(), sderl_mon_types:t(),
             sderl_mon_types:t(), pos_integer()) ->
    {ok, sderl_mon_types:series()} | {error, none}.
series(#{fold := Fold} = Store, What, From, To, Points) when From =< To ->
    %% Up to twice as coarse as asked for: nobody sees that, and it is answered sooner.
    Step = 2 * (To - From) div max(1, Points),
    case Fold(From, To, Step, wanted(What), values(What, Store), []) of
        [] -> {error, none};
        Rows ->
            IsRate = maps:get(is_rate, Store, fun(_Key) -> false end),
            {ok, columns(What, lists:reverse(Rows), {From, To, min(?POINTS, max(1, Points))},
                         IsRate)}
    end;
series(_Store, _What, _From, _To, _Points) ->
    {error, none}.

wanted({node, Id, _Metrics}) -> #{nodes => [Id], groups => [], links => []};
wanted({over, {node, Id}, _Metric, _Total}) -> #{nodes => [Id], groups => [], links => []};
wanted({over, _Place, _Metric, _Total}) -> #{groups => [], links => []};
wanted({link, From, To}) -> #{nodes => [], groups => [], links => [{From, To}]};
wanted({group, Id}) -> #{nodes => [], groups => [Id]};
wanted({routed, _From, _To}) -> #{nodes => [], groups => [], links => []};
wanted(total) -> total;
wanted(_Traffic) -> #{nodes => [], groups => []}.

%% A fold that prepends each frame's values; `unseen` if the frame has nothing of the place.
values({node, Id, Metrics}, _Store) ->
    fun(#{nodes := Nodes} = F, Acc) ->
        [row(F, case Nodes of #{Id := Sample} -> maps:with(Metrics, Sample); #{} -> unseen end)
         | Acc]
    end;
values({over, Place, Metric, Total}, Store) ->
    InPlace = in_place(Place, Store),
    fun(#{nodes := Nodes} = F, Acc) ->
        Values = maps:fold(fun(Id, Sample, Sums) ->
            case InPlace(Id) of true -> pick(Metric, Sample, seen(Sums)); false -> Sums end
        end, unseen, Nodes),
        [row(F, case Values of
             unseen -> unseen;
             #{} -> #{Key => over(Total, Sum) || Key := Sum <- Values}
         end) | Acc]
    end;
values({link, From, To}, _Store) ->
    fun(#{links := Links} = F, Acc) ->
        [row(F, flow(maps:get({From, To}, Links, {0, 0}))) | Acc]
    end;
values(total, _Store) ->
    fun(#{links := Links} = F, Acc) ->
        [row(F, flow(maps:fold(fun(_Link, Flow, Sum) -> plus(Flow, 1, Sum) end, {0, 0}, Links)))
         | Acc]
    end;
values({group, Id}, Store) ->
    Inside = share(group, {group, Id}, Store),
    fun(#{groups := Groups} = F, Acc) ->
        [row(F, maps:merge(maps:get(Id, Groups, #{}), Inside(F))) | Acc]
    end;
values({routed, From, To}, _Store) ->
    fun(F, Acc) ->
        [row(F, #{msgs_s => maps:get({From, To}, maps:get(routed, F, #{}), 0)}) | Acc]
    end;
values({edge, Id, Id}, Store) ->
    shares(group, {group, Id}, Store);
values({edge, From, To}, Store) ->
    shares(edge, {edge, From, To}, Store);
values({gateway, Id}, Store) ->
    shares(gateway, {gateway, Id}, Store).

%% Whether a node is in a place; the members of a group are those at the end of the time.
in_place(cluster, _Store) -> fun(_Id) -> true end;
in_place({node, Node}, _Store) -> fun(Id) -> Id =:= Node end;
in_place({family, Name}, _Store) -> fun(Id) -> sderl_mon_types:family(Id) =:= Name end;
in_place({group, Group}, #{range := {_, To}, topology := Topology}) ->
    Members = case Topology(To) of
        {ok, #{groups := #{Group := #{nodes := Nodes}}}} -> maps:from_keys(Nodes, []);
        _ -> #{}
    end,
    fun(Id) -> is_map_key(Id, Members) end.

pick(Metric, Sample, Sums) when is_atom(Metric) ->
    case Sample of
        #{Metric := Value} -> added(Metric, Value, Sums);
        #{} -> Sums
    end;
pick(Metric, Sample, Sums) ->
    maps:fold(fun(Key, Value, Acc) ->
        case is_binary(Key) andalso sderl_mon_app_metrics:of_metric(Key, Metric) of
            true -> added(Key, Value, Acc);
            false -> Acc
        end
    end, Sums, Sample).

added(Key, Value, Sums) ->
    case Sums of
        #{Key := {N, Sum, Max}} -> Sums#{Key := {N + 1, Sum + Value, max(Max, Value)}};
        #{} -> Sums#{Key => {1, Value, Value}}
    end.

seen(unseen) -> #{};
seen(Sums) -> Sums.

over(sum, {_N, Sum, _Max}) -> Sum;
over(mean, {N, Sum, _Max}) -> Sum / N;
over(max, {_N, _Sum, Max}) -> Max.

row(#{t := T, span_ms := Span}, Values) -> {T, Span, Values}.

shares(By, Key, Store) ->
    Share = share(By, Key, Store),
    fun(F, Acc) -> [row(F, Share(F)) | Acc] end.

%% The share of a frame's traffic that counts in a row.
share(By, Key, Store) ->
    Places = places(Store),
    fun(#{links := Links}) ->
        flow(
            maps:fold(
                fun(Link, Flow, Sum) ->
                    case touches(Key, Link, Places)
                         andalso lists:keyfind(Key, 1, sderl_mon_traffic:keys(By, Link, Places)) of
                        {Key, Part} -> plus(Flow, Part, Sum);
                        false -> Sum
                    end
                end,
                {0, 0},
                Links
            )
        )
    end.

%% Most links do not count; this test is cheaper than finding where they do.
touches({gateway, Id}, {From, To}, _Places) -> Id =:= From orelse Id =:= To;
touches({group, Id}, {From, _To}, Places) -> counts_for(Id, From, Places);
touches({edge, Id, _}, {From, _To}, Places) -> counts_for(Id, From, Places).

counts_for(Id, Node, Places) -> lists:member(Id, sderl_mon_traffic:groups(Node, Places)).

plus({M, B}, Part, {Ms, Bs}) -> {Ms + M * Part, Bs + B * Part}.

places(#{range := {_From, To}} = Store) -> places(To, Store).

places(T, #{topology := Topology}) ->
    case Topology(T) of
        {ok, Known} -> sderl_mon_traffic:places(Known);
        none -> #{}
    end.

flow({Msgs, Bytes}) -> #{msgs_s => Msgs, bytes_s => Bytes}.

columns(What, Rows, {From, To, Points}, IsRate) ->
    {First, FirstSpan, _} = hd(Rows),
    Start = max(From, First - FirstSpan),
    N = min(Points, length(Rows)),
    Width = max(1, (max(To, First) - Start) / N),
    Empty = #{},
    Buckets = lists:foldl(fun(Row, Acc) -> bucket(Row, Start, Width, N, Acc) end, Empty, Rows),
    Named = case What of
        {node, _Id, Metrics} -> Metrics;
        _ -> lists:usort([K || {_, _, #{} = V} <- Rows, K <- maps:keys(V)])
    end,
    #{
        t => [Start + round(Width * (I + 1)) || I <- lists:seq(0, N - 1)],
        columns => #{Name => column(Name, IsRate(Name), N, Buckets) || Name <- Named}
    }.

column(Name, IsRate, N, Buckets) ->
    [value(Name, IsRate, maps:get(I, Buckets, {0, #{}})) || I <- lists:seq(0, N - 1)].

%% A frame counts in each bucket that its span overlaps, weighted by the overlap.
bucket({_T, _Span, unseen}, _Start, _Width, _N, Buckets) -> Buckets;
bucket({T, Span, Values}, Start, Width, N, Buckets) ->
    Low = T - Span,
    First = max(0, min(N - 1, floor((Low - Start) / Width))),
    Last = max(0, min(N - 1, ceil((T - Start) / Width) - 1)),
    lists:foldl(
        fun(I, Acc) ->
            From = Start + I * Width,
            case min(T, From + Width) - max(Low, From) of
                Weight when Weight > 0 ->
                    {Covered, Old} = maps:get(I, Acc, {0, #{}}),
                    Acc#{I => {Covered + Weight, maps:fold(fun(K, V, A) ->
                        A#{K => weigh(K, V, Weight, A)}
                    end, Old, Values)}};
                _Outside ->
                    Acc
            end
        end,
        Buckets,
        lists:seq(First, Last)
    ).

weigh(Key, Value, Weight, Old) ->
    {W, Sum, Max} = maps:get(Key, Old, {0, 0, Value}),
    {W + Weight, Sum + Value * Weight, max(Max, Value)}.

value(Key, IsRate, {Covered, Values}) ->
    case Values of
        #{Key := {_W, Sum, _Max}} when IsRate -> Sum / Covered;
        #{Key := {W, Sum, Max}} ->
            case sderl_mon_types:peak(Key) of true -> Max; false -> Sum / W end;
        #{} -> null
    end.

-doc """
A table of the window that ends at `t`, rows with most messages first, at most `limit` (5,000).
Errors: `none` when there are no frames in the window.
""".
-spec traffic(sderl_mon_types:store(), sderl_mon_types:traffic_opts()) ->
    {ok, [sderl_mon_types:traffic_row()]} | {error, none}.
traffic(#{fold := Fold, range := {_, Newest}} = Store, #{by := By} = Opts) ->
    To = case maps:get(t, Opts, now) of now -> Newest; T -> min(T, Newest) end,
    Window = 1000 * max(1, min(?LONGEST_S, maps:get(window_s, Opts, ?WINDOW_S))),
    Places = places(To, Store),
    Want = of_table(By, Places),
    Count = fun(Frame, {Spans, Rows, Forwarded}) ->
        {Spans1, Rows1} = count(By, Places, Frame, {Spans, Rows}),
        {Spans1, Rows1, forwarded(By, Frame, Forwarded)}
    end,
    case Fold(To - Window + 1, To, Window div ?MOST_FRAMES, Want, Count, {0, #{}, #{}}) of
        {0, _Rows, _Forwarded} ->
            {error, none};
        {Span, Rows, Forwarded} ->
            Limit = max(1, min(?ROWS, maps:get(limit, Opts, ?ROWS))),
            Table = [maps:merge(row(Key, Sums, Span, Places), passed_on(Key, Forwarded))
                     || Key := Sums <- Rows],
            Sorted = lists:sort(fun(#{msgs_s := A}, #{msgs_s := B}) -> A >= B end, Table),
            {ok, lists:sublist(Sorted, Limit)}
    end.

of_table(gateway, Places) ->
    #{nodes => maps:keys(sderl_mon_traffic:gateways(Places)), groups => []};
of_table(routed, _Places) -> #{nodes => [], groups => [], links => []};
of_table(_By, _Places) -> #{nodes => [], groups => []}.

%% By gateway, the forwarded messages and the time in which they were counted.
forwarded(gateway, #{nodes := Nodes, span_ms := Span}, Sums) ->
    maps:fold(
        fun
            (Id, #{forwarded_s := Rate}, Acc) ->
                {Sum, Spans} = maps:get(Id, Acc, {0, 0}),
                Acc#{Id => {Sum + Rate * Span, Spans + Span}};
            (_Id, _Sample, Acc) ->
                Acc
        end,
        Sums,
        Nodes
    );
forwarded(_By, _Frame, Sums) ->
    Sums.

passed_on({gateway, Id}, Forwarded) ->
    #{forwarded_s => Sum / Spans || #{Id := {Sum, Spans}} <- [Forwarded]};
passed_on(_Key, _Forwarded) -> #{}.

%% Adds a frame's rows to the window's sums.
count(By, Places, #{span_ms := Span} = Frame, {Spans, Rows}) ->
    Now = rows(By, Places, Frame),
    S = Span / 1000,
    Rows1 = maps:fold(
        fun(Key, {M, B}, Acc) ->
            {Ms, Bs, Rates} = maps:get(Key, Acc, {0, 0, []}),
            Acc#{Key => {Ms + M * S, Bs + B * S, [{M, Span} | Rates]}}
        end,
        Rows,
        Now
    ),
    {Spans + Span, Rows1}.

rows(routed, _Places, Frame) ->
    #{{routed, From, To} => {Msgs, 0}
      || {From, To} := Msgs <- maps:get(routed, Frame, #{}), Msgs > 0};
rows(By, Places, #{links := Links}) ->
    maps:fold(
        fun(Link, {M, B}, Acc) ->
            lists:foldl(
                fun({Key, Part}, A) ->
                    maps:update_with(Key, fun({Ms, Bs}) -> {Ms + M * Part, Bs + B * Part} end,
                                     {M * Part, B * Part}, A)
                end,
                Acc,
                sderl_mon_traffic:keys(By, Link, Places)
            )
        end,
        #{},
        Links
    ).

row(Key, {Msgs, Bytes, Rates}, Span, Places) ->
    Sorted = lists:sort(Rates),
    Silent = Span - lists:sum([S || {_Rate, S} <- Rates]),
    {Max, _} = lists:last(Sorted),
    Seconds = Span / 1000,
    (maps:merge(name(Key, Places), bytes(Key, Bytes, Seconds)))#{
        msgs_s => Msgs / Seconds,
        msgs => round(Msgs),
        p50 => percentile(50 * Span / 100 - Silent, Sorted),
        p95 => percentile(95 * Span / 100 - Silent, Sorted),
        max => float(Max)
    }.

%% The smallest rate that was not exceeded for at least `Ms`: frames have different lengths. In
%% frames without the row the rate was 0.
percentile(Ms, _Sorted) when Ms =< 0 -> 0.0;
percentile(_Ms, [{Rate, _Span}]) -> float(Rate);
percentile(Ms, [{Rate, Span} | _]) when Ms =< Span -> float(Rate);
percentile(Ms, [{_Rate, Span} | Faster]) -> percentile(Ms - Span, Faster).

bytes({routed, _From, _To}, _Bytes, _Seconds) -> #{};
bytes(_Key, Bytes, Seconds) -> #{bytes_s => Bytes / Seconds, bytes => round(Bytes)}.

name({group, Id}, _Places) -> #{group => Id};
name({gateway, Id}, Places) -> #{node => Id, groups => maps:get(Id, Places, [])};
name({_LinkOrEdge, From, To}, _Places) -> #{from => From, to => To}.

-doc "The events of a list, oldest first, that pass a filter, newest first.".
-spec events([sderl_mon_types:event()], sderl_mon_types:event_filter()) ->
    [sderl_mon_types:event()].
events(Events, Filter) ->
    Limit = max(1, min(?MOST_EVENTS, maps:get(limit, Filter, ?EVENTS))),
    lists:sublist([E || E <- lists:reverse(Events), passes(E, Filter)], Limit).

passes(#{id := Id, t := T, kind := Kind} = Event, Filter) ->
    maps:fold(
        fun
            (before, Before, Ok) -> Ok andalso Id < Before;
            (from, From, Ok) -> Ok andalso T >= From;
            (to, To, Ok) -> Ok andalso T =< To;
            (kinds, [], Ok) -> Ok;
            (kinds, Kinds, Ok) ->
                %% A kind from another node is a text if this VM has no atom for it.
                Ok andalso lists:member(text(Kind), [text(K) || K <- Kinds]);
            (Key, Value, Ok) when Key =:= node; Key =:= group ->
                Ok andalso maps:get(Key, Event, none) =:= Value;
            (_Other, _Value, Ok) -> Ok
        end,
        true,
        Filter
    ).

text(Kind) when is_atom(Kind) -> atom_to_binary(Kind);
text(Kind) -> Kind.

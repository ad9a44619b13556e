%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_frame).
-moduledoc """
Frames: made of agents' updates, and merged into longer ones. Pure.

Two ways to put numbers together, not to be confused:

- **Beside each other** (`combine/2`): what several agents saw in one interval. Nodes and links are
  joined, kinds and groups are summed. A link that both its ends' agents report counts once, as its
  sender saw it.
- **One after the other** (`add/2`, `merge/1`): rates are means weighted by span, so that rate times
  span, the total, is kept; queues (`sderl_mon_types:peak/1`) keep their highest value; losses are
  summed. A link that a frame lacks was silent, and counts as 0. A node that a frame lacks was not
  seen, and its means are over the time in which it was seen. A metric that a node lacks was
  unknown, except that a rate (`t:is_rate/0`) was 0.

An `t:acc/0` holds totals, not means, so adding is associative. The result has the greatest `t` and
`epoch` of all frames.
""".

-export([combine/2, cap/2]).
-export([new/0, add/2, join/2, is_empty/1, span/1, frame/1, frame/2, merge/1]).

-export_type([acc/0, caps/0, is_rate/0, numbers/0]).

-doc "The numbers of an update (`t:sderl_mon_types:update/0`), as far as it has them.".
-type numbers() :: #{
    nodes => #{sderl_mon_types:id() => sderl_mon_types:node_sample()},
    links => #{sderl_mon_types:link() => sderl_mon_types:flow()},
    kinds => #{atom() => sderl_mon_types:flow()},
    groups => #{sderl_mon_types:id() => sderl_mon_types:group_sample()},
    routed => #{sderl_mon_types:edge() => number()},
    lost => #{atom() => integer()},
    agent | t | span_ms | seq | epoch => term()
}.

-doc "Most entries of a frame. Entries beyond the limit are left out and counted in `lost`.".
-type caps() ::
    #{nodes := pos_integer(), links := pos_integer(), groups := pos_integer(),
      kinds := pos_integer(), series => pos_integer(), values => pos_integer()}.

%% Of a node or a group: its metrics; the time for which they were known, one for all or one for
%% each; and the sum of each, or its highest value. All are in the order of the metrics. Frames
%% mostly have the same metrics, so that two sums are joined by walking two lists.
-type sums() :: {[metric()], weight(), [Sum :: number()]}.
-type metric() :: atom() | binary().
-type weight() :: number() | [number()].

%% Group edges with routed messages in a frame.
-define(MOST_ROUTED, 5_000).

-doc """
Which metrics of nodes count something: for a node that lacks such a metric it was 0. Other metrics
that a node lacks are unknown.
""".
-type is_rate() :: fun((metric()) -> boolean()).

-opaque acc() :: #{
    seq := non_neg_integer(),
    t := integer(),
    epoch := integer(),
    span := non_neg_integer(),
    nodes := #{sderl_mon_types:id() => sums()},
    links := #{sderl_mon_types:link() => {number(), number()}},
    kinds := #{atom() => {number(), number()}},
    groups := #{sderl_mon_types:id() => sums()},
    routed := #{sderl_mon_types:edge() => number()},
    lost := #{atom() => integer()}
}.

-doc """
One interval's frame of the updates in it. `Base` has `seq`, `t`, `span_ms`, `epoch` and what the
hub itself lost.
""".
-spec combine([numbers()], Base) -> sderl_mon_types:frame() when
    Base :: #{seq := non_neg_integer(), t := integer(), span_ms := pos_integer(),
              epoch := integer(), lost := #{atom() => non_neg_integer()}}.
combine(Updates, #{lost := Lost} = Base) ->
    Nodes = lists:foldl(fun(U, Acc) -> maps:merge(Acc, part(nodes, U)) end, #{}, Updates),
    {Seen, Heard} = lists:foldl(fun sides/2, {#{}, #{}}, Updates),
    with_routed(total(routed, fun add_up/3, Updates), Base#{
        nodes => Nodes,
        links => maps:merge(Heard, Seen),
        kinds => total(kinds, fun plus/3, Updates),
        groups => total(groups, fun group_plus/3, Updates),
        lost => lists:foldl(fun(U, Acc) -> sum(part(lost, U), Acc) end, Lost, Updates)
    }).

%% Where nothing is routed a frame does not say so.
with_routed(Routed, Frame) when map_size(Routed) =:= 0 -> Frame;
with_routed(Routed, Frame) -> Frame#{routed => Routed}.

add_up(_Key, X, Y) -> X + Y.

%% Links as their sender saw them, and as their receiver did.
sides(Update, {Seen, Heard}) ->
    Own = part(nodes, Update),
    {Out, In} = lists:partition(fun({{From, _To}, _Flow}) -> is_map_key(From, Own) end,
                                maps:to_list(part(links, Update))),
    {maps:merge(Seen, maps:from_list(Out)), maps:merge(Heard, maps:from_list(In))}.

part(Key, Update) -> maps:get(Key, Update, #{}).

total(Key, Plus, Updates) ->
    lists:foldl(fun(U, Acc) -> maps:merge_with(Plus, Acc, part(Key, U)) end, #{}, Updates).

plus(_Key, {M1, B1}, {M2, B2}) -> {M1 + M2, B1 + B2}.

%% Two agents watch members of one group: rates add up, but both count the same names.
group_plus(_Group, Sample1, Sample2) ->
    maps:merge_with(
        fun
            (names, A, B) -> max(A, B);
            (Metric, A, B) ->
                case sderl_mon_types:peak(Metric) of true -> max(A, B); false -> A + B end
        end,
        Sample1,
        Sample2
    ).

sum(A, B) -> maps:merge_with(fun add_up/3, A, B).

-doc """
Cuts a frame to `Caps`: the links with most bytes stay, and the first nodes, groups and kinds by
name.
Entries that were cut are counted in `lost` as `links_cut`, `nodes_cut`, `groups_cut`, `kinds_cut`
and `routed_cut`. Of the application's own metrics the first `series` by name stay, over all nodes,
as long as the nodes have at most `values` numbers of them together; the others are counted once for
each node that has them (`series_cut`).
""".
-spec cap(sderl_mon_types:frame(), caps()) -> sderl_mon_types:frame().
cap(Frame, #{links := MostLinks} = Caps) ->
    #{links := Links} = Frame,
    Links1 = first(Links, MostLinks, fun({_Link, {Msgs, Bytes}}) -> {-Bytes, -Msgs} end),
    Frame1 = cap_series(Caps, cap_routed(cut(links, links_cut, Links1, Frame))),
    lists:foldl(
        fun({Key, Lost}, Acc) ->
            #{Key := All} = Acc,
            cut(Key, Lost, first(All, maps:get(Key, Caps), fun({Id, _Value}) -> Id end), Acc)
        end,
        Frame1,
        [{nodes, nodes_cut}, {groups, groups_cut}, {kinds, kinds_cut}]
    ).

cap_routed(#{routed := Routed} = Frame) ->
    cut(routed, routed_cut, first(Routed, ?MOST_ROUTED, fun({_Edge, Msgs}) -> -Msgs end), Frame);
cap_routed(Frame) ->
    Frame.

cap_series(#{series := Most} = Caps, #{nodes := Nodes, lost := Lost} = Frame) ->
    All = maps:fold(fun(_Id, Sample, Acc) -> series(maps:next(maps:iterator(Sample)), Acc) end, #{},
                    Nodes),
    case over(maps:to_list(maps:iterator(All, ordered)), Most,
              maps:get(values, Caps, infinity)) of
        [] -> Frame;
        Over ->
            Names = [Name || {Name, _Count} <- Over],
            N = lists:sum([Count || {_Name, Count} <- Over]),
            Frame#{nodes := maps:map(fun(_Id, Sample) -> maps:without(Names, Sample) end, Nodes),
                   lost := sum(#{series_cut => N}, Lost)}
    end;
cap_series(_Caps, Frame) ->
    Frame.

%% How many nodes have each series.
series({Metric, _Value, Next}, Acc) when is_binary(Metric) ->
    series(maps:next(Next), Acc#{Metric => maps:get(Metric, Acc, 0) + 1});
series({_Metric, _Value, Next}, Acc) -> series(maps:next(Next), Acc);
series(none, Acc) -> Acc.

%% The same series each time, so that none comes and goes.
over([{_Name, Count} | Rest], Series, Values) when Series > 0, Count =< Values ->
    over(Rest, Series - 1, left(Values, Count));
over(Over, _Series, _Values) ->
    Over.

left(infinity, _Count) -> infinity;
left(Values, Count) -> Values - Count.

first(Map, Most, _Rank) when map_size(Map) =< Most -> Map;
first(Map, Most, Rank) ->
    Ranked = lists:sort([{Rank(Entry), Entry} || Entry <- maps:to_list(Map)]),
    maps:from_list([Entry || {_Rank, Entry} <- lists:sublist(Ranked, Most)]).

cut(Key, LostKey, Kept, #{lost := Lost} = Frame) ->
    #{Key := All} = Frame,
    case map_size(All) - map_size(Kept) of
        0 -> Frame;
        N -> Frame#{Key := Kept, lost := sum(#{LostKey => N}, Lost)}
    end.

-doc "An empty sum.".
-spec new() -> acc().
new() ->
    #{seq => 0, t => 0, epoch => 0, span => 0, nodes => #{}, links => #{}, kinds => #{},
      groups => #{}, routed => #{}, lost => #{}}.

-doc "Whether nothing was added.".
-spec is_empty(acc()) -> boolean().
is_empty(#{span := Span}) -> Span =:= 0.

-doc "Milliseconds added.".
-spec span(acc()) -> non_neg_integer().
span(#{span := Span}) -> Span.

-doc "Adds a frame.".
-spec add(sderl_mon_types:frame(), acc()) -> acc().
add(#{span_ms := Span} = Frame, Acc) ->
    %% A hub does this several times a second, with ten thousand numbers: no intermediate sums.
    #{seq := Seq1, t := T1, epoch := Epoch1, nodes := Nodes1, links := Links1, kinds := Kinds1,
      groups := Groups1, lost := Lost1} = Frame,
    #{seq := Seq, t := T, epoch := Epoch, span := Before, nodes := Nodes, links := Links,
      kinds := Kinds, groups := Groups, routed := Routed, lost := Lost} = Acc,
    S = Span / 1000,
    #{
        seq => max(Seq, Seq1),
        t => max(T, T1),
        epoch => max(Epoch, Epoch1),
        span => Before + Span,
        nodes => add_samples(Nodes1, Span, Nodes),
        links => add_flows(Links1, S, Links),
        kinds => add_flows(Kinds1, S, Kinds),
        groups => add_samples(Groups1, Span, Groups),
        routed => sum(Routed, #{Edge => Msgs * S || Edge := Msgs <- part(routed, Frame)}),
        lost => sum(Lost, Lost1)
    }.

add_flows(Flows, S, Sums) ->
    maps:fold(fun(Key, {Msgs, Bytes}, Acc) ->
        case Acc of
            #{Key := {M, B}} -> Acc#{Key := {M + Msgs * S, B + Bytes * S}};
            #{} -> Acc#{Key => {Msgs * S, Bytes * S}}
        end
    end, Sums, Flows).

add_samples(Samples, Span, All) ->
    maps:fold(fun(Id, Sample, Acc) ->
        case Acc of
            #{Id := Sums} -> Acc#{Id := add_sample(Sample, Span, Sums)};
            #{} -> Acc#{Id => sums(Sample, Span)}
        end
    end, All, Samples).

add_sample(Sample, Span, {Metrics, Weight, Sums} = Before) ->
    case maps:keys(Sample) of
        Metrics ->
            {Metrics, weigh(Weight, Span), add_values(Metrics, maps:values(Sample), Span, Sums)};
        _Others ->
            join_sums(Before, sums(Sample, Span))
    end.

add_values([Metric | Metrics], [Value | Values], Span, [Sum | Sums]) ->
    New = case sderl_mon_types:peak(Metric) of
        true -> max(Sum, Value);
        false -> Sum + Value * Span
    end,
    [New | add_values(Metrics, Values, Span, Sums)];
add_values([], [], _Span, []) -> [].

sums(Sample, Span) ->
    Metrics = maps:keys(Sample),
    {Metrics, Span, weighted(Metrics, maps:values(Sample), Span)}.

weighted([Metric | Metrics], [Value | Values], Span) ->
    Sum = case sderl_mon_types:peak(Metric) of true -> Value; false -> Value * Span end,
    [Sum | weighted(Metrics, Values, Span)];
weighted([], [], _Span) -> [].

-doc "Adds what two sums hold. Associative.".
-spec join(acc(), acc()) -> acc().
join(A, B) ->
    #{seq := Seq1, t := T1, epoch := E1, span := S1, nodes := N1, links := L1, kinds := K1,
      groups := G1, routed := R1, lost := X1} = A,
    #{seq := Seq2, t := T2, epoch := E2, span := S2, nodes := N2, links := L2, kinds := K2,
      groups := G2, routed := R2, lost := X2} = B,
    #{
        seq => max(Seq1, Seq2),
        t => max(T1, T2),
        epoch => max(E1, E2),
        span => S1 + S2,
        nodes => maps:merge_with(fun(_Id, A1, B1) -> join_sums(A1, B1) end, N1, N2),
        links => maps:merge_with(fun plus/3, L1, L2),
        kinds => maps:merge_with(fun plus/3, K1, K2),
        groups => maps:merge_with(fun(_Id, A1, B1) -> join_sums(A1, B1) end, G1, G2),
        routed => sum(R1, R2),
        lost => sum(X1, X2)
    }.

join_sums({Metrics, W1, A}, {Metrics, W2, B}) ->
    {Metrics, weigh(W1, W2), lists:zipwith3(fun join_sum/3, Metrics, A, B)};
join_sums(A, B) ->
    All = maps:merge_with(
        fun(Metric, {W1, X}, {W2, Y}) -> {W1 + W2, join_sum(Metric, X, Y)} end,
        by_metric(A),
        by_metric(B)
    ),
    {Weights, Sums} = lists:unzip(maps:values(All)),
    {maps:keys(All), Weights, Sums}.

join_sum(Metric, X, Y) ->
    case sderl_mon_types:peak(Metric) of true -> max(X, Y); false -> X + Y end.

by_metric({Metrics, Weight, Sums}) ->
    maps:from_list(lists:zip(Metrics, lists:zip(spread(Weight, Metrics), Sums))).

%% Two weights of the same metrics.
weigh(A, B) when is_list(A), is_list(B) -> lists:zipwith(fun erlang:'+'/2, A, B);
weigh(A, B) when is_list(A) -> [Weight + B || Weight <- A];
weigh(A, B) when is_list(B) -> weigh(B, A);
weigh(A, B) -> A + B.

spread(Weights, _Metrics) when is_list(Weights) -> Weights;
spread(Weight, Metrics) -> [Weight || _ <- Metrics].

-doc "The frame of what was added; at least one frame must have been.".
-spec frame(acc()) -> sderl_mon_types:frame().
frame(Acc) -> frame(Acc, fun(_Metric) -> false end).

-doc "The same; the rates of a node are means over all the time in which it was seen.".
-spec frame(acc(), is_rate()) -> sderl_mon_types:frame().
frame(#{seq := Seq, t := T, epoch := Epoch, span := Span} = Acc, IsRate)
  when Span > 0 ->
    #{nodes := Nodes, links := Links, kinds := Kinds, groups := Groups, routed := Routed,
      lost := Lost} = Acc,
    S = Span / 1000,
    with_routed(#{Edge => Msgs / S || Edge := Msgs <- Routed}, #{
        seq => Seq,
        t => T,
        span_ms => Span,
        epoch => Epoch,
        nodes => #{Id => means(Sums, IsRate) || Id := Sums <- Nodes},
        links => #{Link => {Msgs / S, Bytes / S} || Link := {Msgs, Bytes} <- Links},
        kinds => #{Kind => {Msgs / S, Bytes / S} || Kind := {Msgs, Bytes} <- Kinds},
        groups => #{Id => means(Sums, IsRate) || Id := Sums <- Groups},
        lost => Lost
    }).

%% The metric that was known longest was known for all the time in which the node was seen.
means({Metrics, Weight, Sums}, IsRate) ->
    Weights = spread(Weight, Metrics),
    Seen = lists:max([0 | Weights]),
    maps:from_list(lists:zipwith3(
        fun(Metric, W, Sum) -> {Metric, mean(Metric, W, Sum, Seen, IsRate)} end,
        Metrics, Weights, Sums
    )).

mean(Metric, Weight, Sum, Seen, IsRate) ->
    case sderl_mon_types:peak(Metric) of
        true -> Sum;
        false when Weight =:= Seen -> Sum / Seen;
        false -> Sum / case IsRate(Metric) of true -> Seen; false -> Weight end
    end.

-doc "Merges frames, in any order; `none` for no frames.".
-spec merge([sderl_mon_types:frame()]) -> {ok, sderl_mon_types:frame()} | none.
merge([]) -> none;
merge([Frame]) -> {ok, Frame};
merge(Frames) -> {ok, frame(lists:foldl(fun add/2, new(), Frames))}.

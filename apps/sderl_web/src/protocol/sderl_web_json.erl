%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_json).
-moduledoc """
The hub's terms as the JSON that browsers get. Pure.

Topology and frames name nodes and groups by small whole numbers (`m:sderl_web_ids`), because five
times a second two hundred nodes and a thousand links are sent. Numbers are cut to what a screen can
show: rates from 100 on to whole ones, others to three digits behind the point.
""".

-export([topology/2, frame/2, events/1, findings/1, detail/2, series/1, rows/1, missed/2, term/1,
         null/1, text/1, number/1]).

-doc "The whole topology, as a message.".
-spec topology(sderl_mon_types:topology(), sderl_web_ids:ids()) -> iodata().
topology(#{epoch := Epoch, t := T, nodes := Nodes, groups := Groups} = Topology, Ids) ->
    [
        ~"{\"type\":\"topology\",\"epoch\":", integer_to_binary(Epoch), ~",\"t\":",
        integer_to_binary(T),
        ~",\"nodes\":[", commas([node(Id, Node, Ids) || Id := Node <- Nodes]),
        ~"],\"groups\":[", commas([group(Id, Group, Ids) || Id := Group <- Groups]),
        ~"],\"monitors\":", term(maps:get(monitors, Topology, [])), $}
    ].

node(Id, #{status := Status} = Node, Ids) ->
    term(#{
        id => sderl_web_ids:node(Id, Ids),
        name => Id,
        status => Status,
        groups => [sderl_web_ids:group(Group, Ids) || Group <- maps:get(groups, Node, [])],
        home => optional(fun(Group) -> sderl_web_ids:group(Group, Ids) end,
                         maps:get(home, Node, undefined)),
        hidden => maps:get(hidden, Node, false),
        source => maps:get(source, Node, none),
        why => maps:get(why, Node, null),
        otp => maps:get(otp, Node, null),
        library => maps:get(library, Node, null),
        agent => maps:get(agent, Node, null)
    }).

group(Id, #{nodes := Nodes} = Group, Ids) ->
    Numbers = fun(Names) -> [sderl_web_ids:node(Name, Ids) || Name <- Names] end,
    term(#{
        id => sderl_web_ids:group(Id, Ids),
        name => Id,
        nodes => Numbers(Nodes),
        coordinator => optional(fun(Name) -> sderl_web_ids:node(Name, Ids) end,
                                maps:get(coordinator, Group, undefined)),
        live => optional(Numbers, maps:get(live, Group, undefined)),
        names => maps:get(names, Group, null),
        agent => maps:get(agent, Group, null)
    }).

optional(_, undefined) -> null;
optional(Fun, Value) -> Fun(Value).

-doc "A frame, as a message: columns of nodes in the order of `sderl_mon_types:metrics/0`.".
-spec frame(sderl_mon_types:frame(), sderl_web_ids:ids()) -> iodata().
frame(
    #{seq := Seq, t := T, span_ms := Span, epoch := Epoch, nodes := Nodes, links := Links} = Frame,
    Ids
) ->
    Metrics = sderl_mon_types:metrics(),
    [
        ~"{\"type\":\"frame\",\"seq\":", integer_to_binary(Seq), ~",\"t\":", integer_to_binary(T),
        ~",\"span_ms\":", integer_to_binary(Span), ~",\"epoch\":", integer_to_binary(Epoch),
        ~",\"nodes\":[",
        commas([columns(sderl_web_ids:node(Id, Ids), Sample, Metrics) || Id := Sample <- Nodes]),
        ~"],\"links\":[", commas([link(Link, Rates, Ids) || Link := Rates <- Links]),
        ~"],\"kinds\":{", commas([[json:encode_binary(key(Kind)), $:, pair(Rates)]
                                  || Kind := Rates <- maps:get(kinds, Frame, #{})]),
        ~"},\"groups\":[",
        commas(samples(maps:to_list(maps:get(groups, Frame, #{})), none, [], Ids)),
        ~"],\"lost\":", term(maps:get(lost, Frame, #{})), $}
    ].

columns(Id, Sample, Metrics) ->
    [$[, integer_to_binary(Id), [[$, | metric(Sample, Metric)] || Metric <- Metrics], $]].

metric(Sample, Metric) ->
    case Sample of
        #{Metric := Value} -> number(Value);
        #{} -> ~"null"
    end.

%% A thousand groups have the same few keys, which are written once.
samples([], _, _, _) -> [];
samples([{Id, Sample} | Rest], Keys0, Labels0, Ids) ->
    {Keys, Labels} = case maps:keys(Sample) of
        Keys0 -> {Keys0, Labels0};
        Others -> {Others, labels(Others)}
    end,
    [[$[, integer_to_binary(sderl_web_ids:group(Id, Ids)), ~",{",
      labelled(Labels, maps:values(Sample)), ~"}]"] | samples(Rest, Keys, Labels, Ids)].

labels(Keys) ->
    [iolist_to_binary([Comma, json:encode_binary(key(Key)), $:])
     || {Comma, Key} <- lists:zip([~"" | lists:duplicate(length(Keys), ~",")], Keys, trim)].

labelled([Label | Labels], [Value | Values]) -> [Label, term(Value) | labelled(Labels, Values)];
labelled([], []) -> [].

link({From, To}, {Msgs, Bytes}, Ids) ->
    [$[, integer_to_binary(sderl_web_ids:node(From, Ids)), $,,
     integer_to_binary(sderl_web_ids:node(To, Ids)), $,, number(Msgs), $,, number(Bytes), $]].

pair({Msgs, Bytes}) -> [$[, number(Msgs), $,, number(Bytes), $]].

-doc "Events, as a message.".
-spec events([sderl_mon_types:event()]) -> iodata().
events(Events) -> [~"{\"type\":\"events\",\"events\":", term(Events), $}].

-doc "All present findings, as a message.".
-spec findings([sderl_mon_types:finding()]) -> iodata().
findings(Findings) -> [~"{\"type\":\"findings\",\"findings\":", term(Findings), $}].

-doc "A node in detail, as a message.".
-spec detail(Name :: binary(), sderl_mon_types:detail()) -> iodata().
detail(Name, Detail) -> term(Detail#{type => detail, node => Name}).

-doc "A series: times and columns.".
-spec series(#{t := [integer()], columns := #{atom() => [number() | null]}}) -> iodata().
series(#{t := Times, columns := Columns}) -> term(#{t => Times, columns => Columns}).

-doc "Rows of traffic.".
-spec rows([map()]) -> iodata().
rows(Rows) -> [~"{\"rows\":", term(Rows), $}].

-doc "How many frames and events a slow browser did not get, as a message.".
-spec missed(non_neg_integer(), non_neg_integer()) -> iodata().
missed(Frames, Events) ->
    [~"{\"type\":\"missed\",\"frames\":", integer_to_binary(Frames), ~",\"events\":",
     integer_to_binary(Events), $}].

-doc """
Any term as JSON: maps as objects, lists and tuples as lists, `undefined` as null, other atoms as
texts, numbers as `number/1` writes them, pids and the like as Erlang prints them.
""".
-spec term(term()) -> iodata().
term(Text) when is_binary(Text) -> json:encode_binary(text(Text));
term(Integer) when is_integer(Integer) -> integer_to_binary(Integer);
term(Float) when is_float(Float) -> number(Float);
term(true) -> ~"true";
term(false) -> ~"false";
term(Null) when Null =:= null; Null =:= undefined -> ~"null";
term(Atom) when is_atom(Atom) -> json:encode_binary(atom_to_binary(Atom));
term(Map) when is_map(Map) ->
    [${, commas([[json:encode_binary(key(Key)), $:, term(Value)] || Key := Value <- Map]), $}];
term(List) when is_list(List) -> list(List);
term(Tuple) when is_tuple(Tuple) -> list(tuple_to_list(Tuple));
term(Other) -> json:encode_binary(printed(Other)).

list([]) -> "[]";
list(List) -> [$[, elements(List), $]].

%% An improper list has its tail as the last element.
elements([Last]) -> term(Last);
elements([First | Rest]) when is_list(Rest) -> [term(First), $, | elements(Rest)];
elements([First | Last]) -> [term(First), $,, term(Last)].

key(Key) when is_binary(Key) -> text(Key);
key(Key) when is_atom(Key) -> atom_to_binary(Key);
key(Key) when is_integer(Key) -> integer_to_binary(Key);
key(Key) -> printed(Key).

printed(Term) -> text(io_lib:format("~0tP", [Term, 30])).

-doc "A value, or null in place of `none`.".
-spec null(none | Value) -> null | Value.
null(none) -> null;
null(Value) -> Value.

-doc "A text that JSON can hold: what is no UTF-8 is taken as Latin-1.".
-spec text(unicode:chardata()) -> binary().
text(Chars) ->
    case unicode:characters_to_binary(Chars) of
        Text when is_binary(Text) -> Text;
        _ -> latin1(Chars)
    end.

latin1(Chars) ->
    case unicode:characters_to_binary(Chars, latin1) of
        Text when is_binary(Text) -> Text;
        _ -> iolist_to_binary(io_lib:format("~0w", [Chars]))
    end.

-doc "A number, cut to what can be seen.".
-spec number(term()) -> iodata().
number(N) when is_integer(N) -> integer_to_binary(N);
number(F) when is_float(F) ->
    case abs(F) of
        A when A >= 100 -> integer_to_binary(round(F));
        A when A < 0.0005 -> ~"0";
        _ -> thousandths(round(F * 1000))
    end;
number(_) -> ~"null".

%% Shorter and quicker than what prints floats in general.
thousandths(N) when N < 0 -> [$- | thousandths(-N)];
thousandths(N) ->
    case N rem 1000 of
        0 -> integer_to_binary(N div 1000);
        Rest when Rest rem 100 =:= 0 -> [integer_to_binary(N div 1000), $., $0 + Rest div 100];
        Rest when Rest rem 10 =:= 0 ->
            [integer_to_binary(N div 1000), $., $0 + Rest div 100, $0 + Rest div 10 rem 10];
        Rest ->
            [integer_to_binary(N div 1000), $., $0 + Rest div 100, $0 + Rest div 10 rem 10,
             $0 + Rest rem 10]
    end.

commas([]) -> [];
commas([First | Rest]) -> [First | [[$, | Part] || Part <- Rest]].

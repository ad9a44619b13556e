%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_tests).

%% The pure parts of the log: records, the index, searching, messages, and what each node has told.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [{timeout, 60, {Name, ?_assert(proper:quickcheck(Property, [{numtests, N}, {to_file, user}]))}}
     || {Name, N, Property} <- [{"records are read as they were written", 300, prop_records()},
                                {"what is broken is read up to there", 300, prop_broken()},
                                {"search finds what is there", 200, prop_search()},
                                {"memory is bounded", 100, prop_memory()},
                                {"each event is kept once or counted", 300, prop_sources()},
                                {"no message harms", 300, prop_messages()}]].

%% ---------------------------------------------------------------- generators

text() -> ?LET(Chars, list(oneof([range($a, $f), range($A, $F), $\s, $\\, $., 0, 16#e4, 16#c4,
                                  16#202e, 16#1f600])),
               unicode:characters_to_binary(Chars)).

id() -> elements([~"a@h", ~"b@h", ~"ä@h", ~"g"]).

level() -> elements(sderl_mon_log_message:levels()).

event() ->
    ?LET({T, Level, Node, Groups, M, Text, Lost},
         {range(1, 100), level(), id(), resize(3, list(id())),
          elements([~"m:f/1", ~"mm:g/0", <<>>]), text(), frequency([{5, 0}, {1, range(1, 9)}])},
         #{t => T, node_t => T, level => Level, node => Node, groups => Groups, mfa => M,
           pid => ~"<0.1.0>", text => Text, lost => Lost}).

events() ->
    ?LET(Events, list(event()), [E#{id => Id} || {Id, E} <- lists:enumerate(Events)]).

encoded(Events) -> << <<(sderl_mon_log_record:encode(E))/binary>> || E <- Events >>.

read(Bytes) ->
    lists:reverse(sderl_mon_log_record:fold(fun(E, Acc) -> [E | Acc] end, [], Bytes)).

%% ---------------------------------------------------------------- records

prop_records() ->
    ?FORALL(Events, events(),
        begin
            Bytes = encoded(Events),
            {Keys, Size} = sderl_mon_log_record:walk(fun(K, Acc) -> [K | Acc] end, [], Bytes),
            read(Bytes) =:= Events andalso Size =:= byte_size(Bytes) andalso
                lists:reverse(Keys) =:=
                    [{Id, T, sderl_mon_log_message:severity(L),
                      byte_size(sderl_mon_log_record:encode(E))}
                     || #{id := Id, t := T, level := L} = E <- Events]
        end).

%% Cut at any byte, or with any byte changed.
prop_broken() ->
    ?FORALL({Events, Where, Other}, {non_empty(events()), non_neg_integer(), range(1, 255)},
        begin
            Bytes = encoded(Events),
            At = Where rem byte_size(Bytes),
            <<Before:At/binary, Byte, After/binary>> = Bytes,
            lists:prefix(read(Before), Events) andalso
                lists:prefix(read(<<Before/binary, (Byte bxor Other), After/binary>>), Events)
        end).

%% ---------------------------------------------------------------- index and search

%% Against looking at each event. Pages joined are one search.
prop_search() ->
    ?FORALL({Events, Copies, Options, Limit}, {events(), range(1, 200), options(), range(1, 20)},
        begin
            Many = [E#{id := (N - 1) * 100 + Id}
                    || N <- lists:seq(1, Copies), #{id := Id} = E <- Events],
            Stretches = sderl_mon_log_index:stretches(index(Many)),
            Want = [E || E <- lists:reverse(Many), matches(E, Options)],
            Want =:= paged(Options#{limit => Limit}, Stretches)
        end).

options() ->
    ?LET(Pairs, list(oneof([
        {text, elements([~"ab", ~"AB", ~"e.", ~"Ä", ~"ä", ~"\\", ~"x", <<>>])},
        {node, id()}, {group, id()}, {level, level()},
        {module, elements([~"m", ~"m:f", ~"mm:g/0"])},
        {from, range(1, 100)}, {to, range(1, 100)}, {before, range(1, 20_000)},
        {'after', range(1, 20_000)}
    ])), maps:from_list(lists:sublist(Pairs, 3))).

index(Events) ->
    lists:foldl(fun(#{id := Id, t := T, level := L} = E, Acc) ->
        Record = sderl_mon_log_record:encode(E),
        sderl_mon_log_index:add({Id, T, sderl_mon_log_message:severity(L), byte_size(Record)},
                                {memory, Record}, Acc)
    end, sderl_mon_log_index:new(), Events).

paged(Options, Stretches) ->
    {ok, Filter} = sderl_mon_log_filter:new(Options),
    #{events := Events, next := Next} = sderl_mon_log_search:search(Filter, Stretches),
    true = length(Events) =< map_get(limit, Options),
    case Next of
        none -> Events;
        _ -> Events ++ paged(Options#{before => Next}, Stretches)
    end.

matches(Event, Options) -> lists:all(fun(Option) -> is(Option, Event) end, maps:to_list(Options)).

is({_, <<>>}, _) -> true;
is({text, Part}, #{text := Text}) ->
    string:find(string:lowercase(Text), string:lowercase(Part)) =/= nomatch;
is({node, Id}, #{node := Node}) -> Id =:= Node;
is({group, Id}, #{groups := Groups}) -> lists:member(Id, Groups);
is({level, Least}, #{level := Level}) ->
    logger:compare_levels(Level, Least) =/= lt;
is({module, Name}, #{mfa := Mfa}) ->
    lists:member(Mfa, [<<Name/binary, Rest/binary>> || Rest <- [~"", ~":f/1", ~"/1", ~":g/0"]]);
is({from, From}, #{t := T}) -> T >= From;
is({to, To}, #{t := T}) -> T =< To;
is({before, Before}, #{id := Id}) -> Id < Before;
is({'after', After}, #{id := Id}) -> Id > After.

%% What stays is the newest.
prop_memory() ->
    ?FORALL({Events, Copies, Most}, {non_empty(events()), range(1, 300), range(0, 200_000)},
        begin
            Many = [E#{id := (N - 1) * 100 + Id}
                    || N <- lists:seq(1, Copies), #{id := Id} = E <- Events],
            Kept = sderl_mon_log_index:keep(Most, index(Many)),
            All = paged(#{limit => 1000}, sderl_mon_log_index:stretches(Kept)),
            sderl_mon_log_index:bytes(Kept) =< Most + 65_536 andalso
                lists:prefix(All, lists:reverse(Many)) andalso
                hd(All) =:= lists:last(Many)
        end).

filters_are_checked_test_() ->
    [?_assertMatch({error, {bad_option, _, _}}, sderl_mon_log_filter:new(Bad))
     || Bad <- [#{text => "x"}, #{text => <<255>>}, #{limit => 0}, #{limit => 1001},
                #{level => loud}, #{from => soon}, #{other => 1},
                #{node => binary:copy(~"n", 2000)}]]
        ++ [?_assertMatch({ok, _}, sderl_mon_log_filter:new(#{text => <<>>, node => none}))]
        ++ [?_assert(is_binary(unicode:characters_to_binary(
                sderl_mon_log:format_error({bad_option, K, "ä"}))))
            || K <- [text, level, limit, from, before, other]].

%% A page stops after so many bytes, and the next one goes on there.
long_search_test_() ->
    {timeout, 60, fun() ->
        Event = #{t => 1, node_t => 1, level => error, node => ~"a@h", groups => [], mfa => <<>>,
                  pid => <<>>, text => binary:copy(~"x", 4000), lost => 0},
        Events = [Event#{id => I} || I <- lists:seq(2, 10_000)],
        Stretches = sderl_mon_log_index:stretches(
            index([Event#{id => 1, text := ~"needle"} | Events])
        ),
        {ok, Filter} = sderl_mon_log_filter:new(#{text => ~"NEEDLE"}),
        #{events := [], next := Next} = sderl_mon_log_search:search(Filter, Stretches),
        {ok, Further} = sderl_mon_log_filter:new(#{text => ~"NEEDLE", before => Next}),
        ?assertMatch(#{events := [#{id := 1}], next := none},
                     sderl_mon_log_search:search(Further, Stretches))
    end}.

%% ---------------------------------------------------------------- messages

batch(Seq, Before, Events, Lost) ->
    #{v => 1, node => node(), run => 1, seq => Seq, at => 5_000_000, before => Before,
      events => Events, lost => Lost}.

relay_test() ->
    Batch = batch(1, 0, [{error, 4_000_000, ~"m:f/1", ~"<0.1.0>", ~"ä"},
                         {notice, 9_000_000, <<>>, <<>>, <<>>},
                         {debug, -1 bsl 60, <<>>, <<>>, <<255>>}], #{rate => #{info => 2}}),
    {ok, Batch} = sderl_mon_log_message:check_batch(Batch),
    Relayed = sderl_mon_log_message:relay(Batch, ~"n@h", [~"g" || _ <- lists:seq(1, 50)], 100_000),
    {ok, #{events := Events, groups := Groups}} = sderl_mon_log_message:check_relayed(Relayed),
    ?assertEqual(32, length(Groups)),
    %% A clock that jumped makes no event older than a minute, nor one of the future.
    ?assertMatch([{error, 99_000, 4000, ~"m:f/1", ~"<0.1.0>", ~"ä"},
                  {notice, 100_000, 9000, _, _, _}, {debug, 40_000, 0, _, _, <<>>}], Events).

left_out_test() ->
    {ok, Relayed} = sderl_mon_log_message:check_relayed(
        sderl_mon_log_message:relay(batch(1, 0, [], #{}), ~"n@h", [], 7)),
    ?assertEqual([], sderl_mon_log_message:events(Relayed, #{})),
    ?assertMatch([#{lost := 6, level := error, t := 7,
                    text := <<"6 events are left out here: 1 error, 2 info (more than the node "
                              "may tell in a second); 3 unknown (lost between the monitoring "
                              "nodes)">>}],
                 sderl_mon_log_message:events(Relayed, #{{rate, error} => 1, {rate, info} => 2,
                                                         {relay, unknown} => 3})).

%% Whatever part of a batch is something else, the check says no or what comes out can be kept.
prop_messages() ->
    Good = batch(1, 0, [{error, 1, ~"m:f/1", ~"<0.1.0>", ~"text"}], #{rate => #{error => 1}}),
    Relayed = sderl_mon_log_message:relay(Good, ~"n@h", [~"g"], 1),
    ?FORALL({Key, Odd, Which}, {elements(maps:keys(Relayed) ++ maps:keys(Good)), odd(),
                                elements([batch, relayed])},
        begin
            Checked = case Which of
                batch -> sderl_mon_log_message:check_batch(Good#{Key => Odd});
                relayed -> sderl_mon_log_message:check_relayed(Relayed#{Key => Odd})
            end,
            case {Which, Checked} of
                {_, {error, not_a_batch}} -> true;
                {batch, {ok, Batch}} ->
                    {ok, Taken} = sderl_mon_log_message:check_relayed(
                        sderl_mon_log_message:relay(Batch, ~"n@h", [], 1)
                    ),
                    is_kept(Taken);
                {relayed, {ok, Taken}} -> is_kept(Taken)
            end
        end).

odd() ->
    oneof([elements([[], #{}, -1, 1 bsl 80, [a | b], [{error, 1, <<>>, <<>>}], #{rate => 1},
                     #{rate => #{loud => 1}}, #{more => #{}}, <<255>>, binary:copy(~"x", 5000),
                     [{error, 1, 1, <<255>>, <<>>, <<>>}], [{error, a, <<>>, <<>>, <<>>}],
                     [{loud, 1, <<>>, <<>>, <<>>}], [{error, 1, <<>>, <<>>, self()}],
                     [{error, 1, <<>>, <<>>, binary:copy(~"x", 5000)}], lists:duplicate(600, x)]),
           term()]).

is_kept(Batch) ->
    {new, Lost, _} = sderl_mon_log_sources:take(Batch, sderl_mon_log_sources:new()),
    Events = [E#{id => 1} || E <- sderl_mon_log_message:events(Batch, Lost)],
    Events =:= read(encoded(Events)).

%% ---------------------------------------------------------------- what each node has told

%% Whatever batches come twice or not at all, from a collector and the next: each event is kept once
%% or counted, and so is each that the node left out.
prop_sources() ->
    ?FORALL(Fates, list({range(0, 5), range(0, 3), elements([once, twice, lost, again])}),
        begin
            {_, _, _, Kept, Lost, _, _} = lists:foldl(fun sent/2, {1, 0, 0, 0, 0, 0, new()},
                                                      Fates ++ [{1, 0, once}]),
            Total = lists:sum([N || {N, _, _} <- Fates]) + 1,
            Left = lists:sum([N || {_, N, _} <- Fates]),
            %% The first that came was not the first that was sent: nobody knows what was before.
            case lists:takewhile(fun({_, _, Fate}) -> Fate =:= lost end, Fates) of
                [] -> Kept + Lost =:= Total + Left;
                _ -> Kept + Lost =< Total + Left
            end
        end).

new() -> sderl_mon_log_sources:new().

sent({N, More, Fate}, {Seq, Before, Left0, Kept, Lost, Last, Sources}) ->
    Left = Left0 + More,
    Batch = #{t => 1, node => ~"a@h", groups => [], run => 7, seq => Seq, before => Before,
              events => lists:duplicate(N, {error, 1, 1, <<>>, <<>>, <<>>}),
              lost => case Left of 0 -> #{}; _ -> #{rate => #{error => Left}} end},
    {Kept1, Lost1, Sources1} = case Fate of
        lost -> {Kept, Lost, Sources};
        _ -> taken(Batch, N, {Kept, Lost, Sources})
    end,
    Again = case Fate of
        twice -> taken(Batch, N, {Kept1, Lost1, Sources1});
        again when Last =/= 0 -> taken(Last, 1000, {Kept1, Lost1, Sources1});
        _ -> {Kept1, Lost1, Sources1}
    end,
    {K, L, S} = Again,
    {Seq + 1, Before + N, Left, K, L, case Fate of lost -> Last; _ -> Batch end, S}.

taken(Batch, N, {Kept, Lost, Sources}) ->
    case sderl_mon_log_sources:take(Batch, Sources) of
        known -> {Kept, Lost, Sources};
        {new, More, Sources1} -> {Kept + N, Lost + lists:sum(maps:values(More)), Sources1}
    end.

%% Another collector begins anew.
next_run_test() ->
    Batch = #{t => 1, node => ~"a@h", groups => [], run => 7, seq => 3, before => 9, events => [],
              lost => #{queue => #{error => 5}}},
    {new, Lost, S1} = sderl_mon_log_sources:take(Batch, new()),
    ?assertEqual(#{}, Lost),
    ?assertEqual(known, sderl_mon_log_sources:take(Batch, S1)),
    ?assertMatch({new, #{{queue, error} := 5}, _},
                 sderl_mon_log_sources:take(Batch#{run := 8, seq := 1, before := 0}, S1)).

%% ---------------------------------------------------------------- Prometheus

metrics_test() ->
    Info = #{events => #{error => 2}, lost => #{{rate, info} => 3, {relay, unknown} => 1},
             malformed => 0, bytes => 17, range => none, last => 0, place => memory,
             problem => none},
    Text = iolist_to_binary(sderl_mon_log_metrics:text(Info)),
    [?assertNotEqual(nomatch, binary:match(Text, Line), {Line, Text})
     || Line <- [~"\nsderl_log_events_total{level=\"error\"} 2\n",
                 ~"\nsderl_log_lost_total{level=\"info\",reason=\"rate\"} 3\n",
                 ~"\nsderl_log_bytes 17\n", ~"\nsderl_log_written 1\n",
                 ~"# TYPE sderl_log_events_total counter\n"]].

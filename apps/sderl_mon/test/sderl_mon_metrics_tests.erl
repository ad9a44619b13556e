%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_metrics_tests).

%% The application's own metrics: what may be configured, what the probe counts of events and
%% counters, and what becomes of it on the way to a chart.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(N, 'a@h').
-define(EVENT, [shop, order, done]).

long(Property) ->
    {timeout, 300, ?_assert(proper:quickcheck(Property, [{numtests, 100}, {to_file, user}]))}.

%% ---------------------------------------------------------------- what is configured

good_test() ->
    {ok, [Orders, Value, Basket, Sessions] = Metrics} = sderl_mon_app_metrics:check(metrics()),
    ?assertEqual(
        #{name => ~"orders", kind => counter, event => ?EVENT, tags => [status], most_tags => 3,
          unit => ~"orders", about => ~"", total => sum, for => [~"dev", ~"shop"]}, Orders
    ),
    ?assertMatch(#{kind := sum, measurement := price, unit := <<"€"/utf8>>, tags := []}, Value),
    ?assertMatch(#{kind := last, total := mean}, Basket),
    ?assertMatch(#{kind := gauge, counter := {{shop, numbers}, 1}, total := sum}, Sessions),
    %% What was checked can be checked: it goes to other monitoring nodes, and into a file.
    ?assertEqual({ok, Metrics}, sderl_mon_app_metrics:check(Metrics)),
    ?assertMatch({ok, #{metrics := Metrics}}, sderl_mon_config:check(#{metrics => metrics()})),
    ?assertEqual({ok, []}, sderl_mon_app_metrics:check([])).

metrics() ->
    [
        #{name => orders, unit => "orders", kind => counter, event => ?EVENT, tags => [status],
          most_tags => 3, for => [shop, ~"dev", shop]},
        #{name => ~"value", unit => <<"€"/utf8>>, kind => sum, event => ?EVENT,
          measurement => price},
        #{name => basket, kind => last, event => [shop, basket], measurement => items},
        #{name => sessions, kind => gauge, counter => {{shop, numbers}, 1}}
    ].

%% Each tells which term is wrong, and what to write.
bad_test_() ->
    Event = #{name => x, kind => counter, event => ?EVENT},
    [
        {Says, ?_assertEqual(lists:flatten("sderl_mon: config metrics" ++ Says), said(Wrong))}
     || {Wrong, Says} <- [
            {no, ": no is not a list of metrics; write [#{name => ..., kind => ...}]"},
            {[7 | no],
             ": [7|no] is not a list of metrics; write [#{name => ..., kind => ...}]"},
            {[7], ".1: 7 is not a metric; write #{name => ..., kind => ...}"},
            {[#{}], ".1.name: missing is not there; write the name under which it is shown"},
            {[Event#{name => "x"}],
             ".1.name: \"x\" is no name; write small letters, digits and _, 63 at most"},
            {[Event#{name => mem}],
             ".1.name: mem is a number of the monitoring itself; choose another name"},
            {[Event#{name => x_per_second}],
             ".1.name: x_per_second ends as Prometheus' names of rates do, and might be one of "
             "them; leave _per_second out"},
            {[Event, Event], ".2.name: <<\"x\">> is there twice; give each metric its own name"},
            {[Event#{kind => histogram}],
             ".1.kind: histogram is no kind; write counter, sum, last or gauge"},
            {[Event#{kind => gauge}],
             ".1.event: [shop,order,done] goes with counter, sum and last; for the last "
             "measurement write kind => last"},
            {[Event#{kind => sum}],
             ".1.measurement: missing is not there; write which number of the event counts, such "
             "as price"},
            {[Event#{measurement => price}],
             ".1.measurement: price is not read: a counter counts events; to add it up write "
             "kind => sum"},
            {[Event#{counter => {a, 1}}],
             ".1.counter: {a,1} comes beside an event; write one of the two"},
            {[#{name => x, kind => gauge, counter => a}],
             ".1.counter: a is no place in an array; write {Key, Index}, the key of the "
             "persistent term that holds the array, and a whole number from 1 on"},
            {[#{name => x, kind => last, counter => {a, 1}}],
             ".1.counter: {a,1} goes with counter and gauge; for sum and last write an event"},
            {[Event#{event => "shop"}],
             ".1.event: \"shop\" is no event of telemetry; write a list of atoms, such as "
             "[shop, order, done]"},
            {[Event#{tags => [node]}],
             ".1.tags: [node] are no tags; write at most 5 different atoms of small letters, "
             "digits and _, which are keys of the metadata; node is taken"},
            {[Event#{most_tags => 0}],
             ".1.most_tags: 0 is no such number; write a whole number from 1 to 100"},
            {[Event#{total => median}],
             ".1.total: median is no way to put nodes together; write sum, mean or max"},
            {[Event#{for => [dev | op]}],
             ".1.for: [dev|op] are no tags of views; write a list of at most ten words of small "
             "letters, digits and _, such as [dev, op]"},
            {[Event#{for => 'Dev'}],
             ".1.for: 'Dev' are no tags of views; write a list of at most ten words of small "
             "letters, digits and _, such as [dev, op]"},
            {[Event#{for => "op"}],
             ".1.for: \"op\" are no tags of views; write a list of at most ten words of small "
             "letters, digits and _, such as [dev, op]"},
            {[Event#{unit => lists:duplicate(33, $u)}],
             ".1.unit: \"" ++ lists:duplicate(33, $u)
             ++ "\" does not fit; write a line of at most 32 bytes"},
            {[Event#{colour => red}],
             ".1.colour: red belongs to no key of that name; the keys are name, kind, event, "
             "measurement, counter, tags, most_tags, unit, about, total, for"},
            {[Event#{name => list_to_atom("x" ++ integer_to_list(I)), tags => [a], most_tags => 100}
              || I <- lists:seq(1, 5)],
             ": 505 series are too many, with one more for each metric with tags; write a smaller "
             "most_tags: together at most 500"}
        ]
    ].

said(Metrics) ->
    {error, Error} = sderl_mon_config:check(#{metrics => Metrics}),
    unicode:characters_to_list(sderl_mon_config:format_error(Error)).

any_term_test_() ->
    long(?FORALL(Term, sderl_mon_gen:term(), begin
        case sderl_mon_app_metrics:check([Term]) of
            {ok, _} -> true;
            {error, Error} -> is_list(lists:flatten(sderl_mon_app_metrics:format_error(Error)))
        end
    end)).

%% ---------------------------------------------------------------- what is counted

%% The numbers are those of a model, whatever comes in which order.
counted_test_() ->
    long(?FORALL(Events, list(event()), begin
        {Config, Metrics} = begun(#{kind => sum, measurement => price, tags => [status]}),
        lists:foreach(fun({Measured, Meta}) -> ok = tell(Measured, Meta, Config) end, Events),
        {#{values := Values}, Lost, _} = sderl_mon_probe_metrics:read(Metrics),
        Model = lists:foldl(fun modelled/2, #{sums => #{}, known => [], bad => 0, over => 0},
                            Events),
        #{sums := Sums, bad := Bad, over := Over} = Model,
        ?WHENFAIL(io:format("~p~n~p ~p~n", [Values, Model, Lost]),
                  lists:sort(maps:keys(Values)) =:= lists:sort(maps:keys(Sums))
                  andalso maps:get(metrics_bad, Lost, 0) =:= Bad
                  andalso maps:get(metrics_tags_over, Lost, 0) =:= Over
                  andalso lists:all(fun sderl_mon_app_metrics:is_series/1, maps:keys(Values))
                  andalso lists:all(fun({Series, Sum}) ->
                      #{Series := {total, Total}} = Values,
                      abs(Total - Sum) < 0.001
                  end, maps:to_list(Sums)))
    end)).

event() ->
    {oneof([#{price => range(-100, 100)}, #{price => float(-100.0, 100.0)}, #{price => 1.0e16},
            #{price => atom}, #{}]),
     oneof([#{}, #{status => oneof([ok, ~"ok", 7, ~"a\"{}\\b", {a, b}, "list", ~"c", failed])}])}.

%% At most three values, and one series for all others. Values with the same text are one series.
modelled({#{price := N}, Meta}, #{sums := Sums, known := Known, over := Over} = Model)
  when is_number(N), N < 1.0e16 ->
    {Value, Text} = case maps:get(status, Meta, '(none)') of
        '(none)' -> {'(none)', ~"(none)"};
        7 -> {7, ~"7"};
        ~"a\"{}\\b" -> {~"a\"{}\\b", ~"a____b"};
        Atom when is_atom(Atom) -> {Atom, atom_to_binary(Atom)};
        Binary when is_binary(Binary) -> {Binary, Binary};
        _ -> {'(other)', ~"(other)"}
    end,
    Add = fun(T) ->
        Series = sderl_mon_app_metrics:id(~"m", [{~"status", T}]),
        maps:update_with(Series, fun(Sum) -> Sum + N end, N, Sums)
    end,
    IsKnown = Value =:= '(other)' orelse lists:member(Value, Known),
    if
        IsKnown -> Model#{sums := Add(Text)};
        length(Known) < 3 -> Model#{sums := Add(Text), known := [Value | Known]};
        true -> Model#{sums := Add(~"(other)"), over := Over + 1}
    end;
modelled(_, #{bad := Bad} = Model) ->
    Model#{bad := Bad + 1}.

begun(Metric) -> begun(Metric, 3).

begun(Metric, Most) ->
    Whole = maps:merge(#{name => ~"m", event => ?EVENT, tags => [], most_tags => Most}, Metric),
    {ok, Metrics} = sderl_mon_probe_metrics:new([Whole]),
    [{1, ?EVENT, Config}] = sderl_mon_probe_metrics:events(Metrics),
    {Config, Metrics}.

tell(Measurements, Meta, Config) ->
    sderl_mon_probe_metrics:handle(?EVENT, Measurements, Meta, Config).

kinds_test() ->
    {Counter, Counted} = begun(#{kind => counter}),
    [ok = tell(#{}, #{}, Counter) || _ <- lists:seq(1, 5)],
    ?assertMatch({#{values := #{~"m" := {total, 5}}}, #{}, _},
                 sderl_mon_probe_metrics:read(Counted)),
    {Last, Kept} = begun(#{kind => last, measurement => items}),
    [ok = tell(#{items => I}, #{}, Last) || I <- [3, 1.5]],
    ?assertMatch({#{values := #{~"m" := {value, 1.5}}}, #{}, _},
                 sderl_mon_probe_metrics:read(Kept)).

%% However many processes tell events with however many values at once: no more series than there
%% may be, and no event is lost.
many_at_once_test_() ->
    {timeout, 120, fun many_at_once/0}.

many_at_once() ->
    {Config, Metrics} = begun(#{kind => counter, tags => [id]}, 5),
    Tellers = [spawn_monitor(fun() ->
                   [ok = tell(#{}, #{id => I rem 50}, Config) || I <- lists:seq(P, P + 999)]
               end) || P <- lists:seq(1, 20)],
    [receive {'DOWN', Ref, process, _, normal} -> ok end || {_, Ref} <- Tellers],
    {#{values := Values}, #{metrics_tags_over := Over}, _} = sderl_mon_probe_metrics:read(Metrics),
    ?assert(map_size(Values) =< 6, Values),
    ?assertEqual(20_000, lists:sum([N || _ := {total, N} <- Values])),
    ?assertMatch(#{~"m{id=\"(other)\"}" := {total, Over}}, Values).

%% A handler that outlives the table does nothing, and does not fail.
no_table_test() ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({config, element(1, begun(#{kind => counter}))}) end),
    receive
        {'DOWN', Ref, process, Pid, {config, Config}} ->
            ?assertEqual(ok, tell(#{}, #{}, Config))
    end.

arrays_test() ->
    Key = {?MODULE, make_ref()},
    {ok, Metrics} = sderl_mon_probe_metrics:new([
        #{name => ~"grown", kind => counter, counter => {Key, 1}, tags => [], most_tags => 1},
        #{name => ~"now", kind => gauge, counter => {Key, 2}, tags => [], most_tags => 1},
        #{name => ~"beyond", kind => gauge, counter => {Key, 9}, tags => [], most_tags => 1}
    ]),
    Read = fun sderl_mon_probe_metrics:read/1,
    {#{values := None}, _, _} = Read(Metrics),
    ?assertEqual(#{}, None),
    [begin
        persistent_term:put(Key, Array),
        Put(Array, 1, 100),
        Put(Array, 2, -5),
        %% What it grew before does not count.
        {#{values := First}, #{metrics_unread := 1}, Metrics1} = Read(Metrics),
        ?assertEqual(#{~"grown" => {total, 0}, ~"now" => {value, -5}}, First),
        Put(Array, 1, 130),
        {#{values := #{~"grown" := {total, 30}}}, _, Metrics2} = Read(Metrics1),
        %% Somebody set it back.
        Put(Array, 1, 4),
        ?assertMatch({#{values := #{~"grown" := {total, 34}}}, #{metrics_unread := 3}, _},
                     Read(Metrics2))
     end || {Array, Put} <- [{counters:new(2, []), fun counters:put/3},
                             {counters:new(2, [write_concurrency]), fun counters:put/3},
                             {atomics:new(2, []), fun atomics:put/3}]],
    persistent_term:erase(Key).

%% A place of atomics that fell below 0 reads as nearly 2^64: no number, and counted.
large_test() ->
    Key = {?MODULE, make_ref()},
    Array = atomics:new(3, [{signed, false}]),
    {ok, Metrics} = sderl_mon_probe_metrics:new([
        #{name => Name, kind => Kind, counter => {Key, At}, tags => [], most_tags => 1}
     || {At, Name, Kind} <- [{1, ~"below", gauge}, {2, ~"fine", gauge}, {3, ~"grown", counter}]
    ]),
    persistent_term:put(Key, Array),
    ok = atomics:sub(Array, 1, 1),
    ok = atomics:put(Array, 2, 1 bsl 60 - 1),
    ok = atomics:put(Array, 3, 1 bsl 60),
    {#{values := Values}, Lost, _} = sderl_mon_probe_metrics:read(Metrics),
    persistent_term:erase(Key),
    ?assertEqual({#{~"fine" => {value, 1 bsl 60 - 1}}, #{metrics_unread => 2}}, {Values, Lost}).

%% One series with a number that nobody can use costs its node nothing else, whatever probe told it.
one_odd_series_test_() ->
    [
        {lists:flatten(io_lib:format("~0tP", [Odd, 8])), fun() ->
            Node = #{~"odd" => Odd, ~"g" => 4, mem => 1},
            {ok, #{nodes := Nodes}, 1} = sderl_mon_clean:update(
                #{agent => {~"g", 1}, t => 1, span_ms => 1,
                  nodes => #{~"a@h" => Node, ~"b@h" => #{mem => 1}}}
            ),
            ?assertEqual(#{~"a@h" => #{~"g" => 4, mem => 1}, ~"b@h" => #{mem => 1}}, Nodes)
        end}
     || Odd <- [1 bsl 60, -(1 bsl 60), 1 bsl 64 - 1, 1 bsl 1024, 1.0e300]
    ].

%% No rate can be made of such numbers, so an agent takes them for no sample.
no_sample_test_() ->
    Sample = sample(1_000_000, #{}),
    [?_assertEqual({Odd, {error, not_a_sample}}, {Odd, sderl_mon_samples:check(Odd)})
     || Odd <- [Sample#{mono_us := 1 bsl 2000}, Sample#{counters := #{a => 1 bsl 2000}},
                Sample#{counters := #{a => 1.0e308}}, Sample#{gauges := #{a => 1 bsl 2000}}]].

%% What another version may send is refused as a whole.
refused_test_() ->
    [?_assertEqual(error, sderl_mon_probe_metrics:new(Wanted))
     || Wanted <- [no, [no], [#{}], [#{name => ~"x", kind => new, event => [a], tags => [],
                                       most_tags => 1}]]].

%% ---------------------------------------------------------------- series

names_test_() ->
    long(?FORALL(Values, resize(5, list(value())), begin
        Tags = [{<<$a, (integer_to_binary(I))/binary>>, V} || {I, V} <- lists:enumerate(Values)],
        Series = sderl_mon_app_metrics:id(~"orders", Tags),
        sderl_mon_app_metrics:is_series(Series)
            andalso sderl_mon_app_metrics:split(Series) =:= {~"orders", Tags}
            andalso sderl_mon_app_metrics:name(Series) =:= ~"orders"
            andalso sderl_mon_app_metrics:of_metric(Series, ~"orders")
            andalso not sderl_mon_app_metrics:of_metric(Series, ~"order")
    end)).

value() -> ?LET(Text, list(oneof([range($a, $z), $,, $=, $ä, $\s])),
                unicode:characters_to_binary(Text)).

no_series_test_() ->
    [?_assertNot(sderl_mon_app_metrics:is_series(Term))
     || Term <- [~"", ~"Orders", ~"orders{", ~"orders{a}", ~"orders{a=\"b\"", ~"orders{a=\"b\"}x",
                 ~"orders{a=\"\n\"}", <<"orders{a=\"", 255, "\"}">>, orders, 7,
                 binary:copy(~"a", 700)]].

value_test_() ->
    Sample = #{mem => 9, ~"a" => 3, ~"b{x=\"1\"}" => 1, ~"b{x=\"2\"}" => 5},
    Value = fun(Name, Total) -> sderl_mon_app_metrics:value(Name, Total, Sample) end,
    [
        ?_assertEqual({ok, 3}, Value(~"a", sum)),
        ?_assertEqual({ok, 6}, Value(~"b", sum)),
        ?_assertEqual({ok, 3.0}, Value(~"b", mean)),
        ?_assertEqual({ok, 5}, Value(~"b", max)),
        ?_assertEqual({ok, 1}, Value(~"b{x=\"1\"}", sum)),
        ?_assertEqual(none, Value(~"c", sum))
    ].

%% ---------------------------------------------------------------- rates, bounds, charts

sample(Us, Values) -> sample(Us, 1, Values).

sample(Us, Since, Values) ->
    Sample = #{v => 1, node => ?N, seq => 1, at => Us div 1000, mono_us => Us, source => probe,
               counters => #{}, gauges => #{}, metrics => #{since => Since, values => Values}},
    {ok, Sample} = sderl_mon_samples:check(Sample),
    Sample.

rates_test() ->
    Rates = fun(Before, Now) ->
        #{node := Node} = sderl_mon_rates:between(Before, Now, #{monitors => []}),
        maps:filter(fun(Key, _) -> is_binary(Key) end, Node)
    end,
    First = sample(1_000_000, #{~"a" => {total, 10}, ~"g" => {value, 4}}),
    ?assertEqual(#{~"g" => 4}, Rates(undefined, First)),
    %% A series that is new began at nothing.
    Second = sample(3_000_000, #{~"a" => {total, 30}, ~"b" => {total, 4}, ~"g" => {value, 5}}),
    ?assertEqual(#{~"a" => 10.0, ~"b" => 2.0, ~"g" => 5}, Rates(First, Second)),
    %% Another configuration: counted anew.
    Third = sample(4_000_000, 2, #{~"a" => {total, 1}, ~"g" => {value, 5}}),
    ?assertEqual(#{~"g" => 5}, Rates(Second, Third)),
    ?assertEqual(#{}, Rates(First, maps:remove(metrics, Second))).

%% Of more series than there may be in a frame the first stay, and the others are counted.
cut_test() ->
    Sample = #{<<"m", (integer_to_binary(I))/binary>> => I || I <- lists:seq(10, 19)},
    Frame = (sderl_mon_gen:frame(1000, #{}))#{nodes := #{~"a" => Sample#{mem => 1},
                                                         ~"b" => #{~"m19" => 1}}},
    Caps = #{links => 9, nodes => 9, groups => 9, kinds => 9},
    ?assertEqual(Frame, sderl_mon_frame:cap(Frame, Caps#{series => 10})),
    #{nodes := Nodes, lost := Lost} = sderl_mon_frame:cap(Frame, Caps#{series => 8}),
    ?assertEqual(#{series_cut => 3}, Lost),
    ?assertEqual(#{~"a" => maps:without([~"m18", ~"m19"], Sample#{mem => 1}), ~"b" => #{}}, Nodes).

%% Of many nodes each with many series so many numbers stay, the same series each time.
cut_values_test() ->
    Series = fun(Is) -> #{<<"m", (integer_to_binary(I))/binary>> => I || I <- Is} end,
    Nodes = #{<<"n", (integer_to_binary(N))/binary>> => (Series(lists:seq(10, 19)))#{mem => N}
              || N <- lists:seq(1, 5)},
    Frame = (sderl_mon_gen:frame(1000, #{}))#{nodes := Nodes},
    Caps = #{links => 9, nodes => 9, groups => 9, kinds => 9, series => 100},
    ?assertEqual(Frame, sderl_mon_frame:cap(Frame, Caps#{values => 50})),
    #{nodes := Cut, lost := Lost} = sderl_mon_frame:cap(Frame, Caps#{values => 49}),
    ?assertEqual(#{series_cut => 5}, Lost),
    ?assertEqual([(Series(lists:seq(10, 18)))#{mem => N} || N <- lists:seq(1, 5)],
                 [map_get(<<"n", (integer_to_binary(N))/binary>>, Cut) || N <- lists:seq(1, 5)]),
    #{nodes := None, lost := All} = sderl_mon_frame:cap(Frame, Caps#{values => 4}),
    ?assertEqual(#{series_cut => 50}, All),
    ?assertEqual([#{mem => N} || N <- lists:seq(1, 5)], lists:sort(maps:values(None))).

family_test_() ->
    [?_assertEqual({Node, Family}, {Node, sderl_mon_types:family(Node)})
     || {Node, Family} <- [{~"web12@host", ~"web"}, {~"web-12@host", ~"web"}, {~"web_1@h", ~"web"},
                           {~"web@h", ~"web"}, {~"web-@h", ~"web-"}, {~"w3b1@h", ~"w3b"},
                           {~"7@h", ~""}, {~"-7@h", ~""}, {<<"bär2@h"/utf8>>, <<"bär"/utf8>>}]].

%% Totals of a node, a family, a group, the cluster.
over_test() ->
    Nodes = #{
        ~"web1@h" => #{util => 0.2, mem => 10, ~"o{s=\"x\"}" => 1, ~"o{s=\"y\"}" => 2},
        ~"web2@h" => #{util => 0.4, mem => 30, ~"o{s=\"x\"}" => 4},
        ~"db1@h" => #{util => 0.6, mem => 5}
    },
    Topology = sderl_mon_gen:topology(#{~"g" => [~"web2@h", ~"db1@h"], free => [~"web1@h"]}),
    H0 = sderl_mon_history:topology(Topology, sderl_mon_history:new(#{})),
    Frame = (sderl_mon_gen:frame(1_700_000_001_000, #{}))#{nodes := Nodes},
    Store = sderl_mon_history:store(sderl_mon_history:frame(Frame, H0)),
    Over = fun(Place, Metric, Total) ->
        {ok, #{columns := Columns}} = sderl_mon_query:series(
            Store, {over, Place, Metric, Total}, 1_700_000_000_000, 1_700_000_001_000, 1),
        Columns
    end,
    ?assertEqual(#{mem => [45.0]}, Over(cluster, mem, sum)),
    ?assertEqual(#{mem => [40.0]}, Over({family, ~"web"}, mem, sum)),
    ?assertEqual(#{mem => [35.0]}, Over({group, ~"g"}, mem, sum)),
    ?assertEqual(#{mem => [10.0]}, Over({node, ~"web1@h"}, mem, sum)),
    #{util := [Util]} = Over(cluster, util, mean),
    ?assert(abs(Util - 0.4) < 0.0001),
    ?assertEqual(#{mem => [30.0]}, Over(cluster, mem, max)),
    ?assertEqual(#{~"o{s=\"x\"}" => [5.0], ~"o{s=\"y\"}" => [2.0]}, Over(cluster, ~"o", sum)),
    ?assertEqual(#{~"o{s=\"y\"}" => [2.0]}, Over(cluster, ~"o{s=\"y\"}", sum)),
    ?assertEqual(#{}, Over({group, ~"none"}, mem, sum)).

%% ---------------------------------------------------------------- Prometheus

prometheus_test() ->
    {ok, Metrics} = sderl_mon_app_metrics:check(metrics()),
    Topology = sderl_mon_gen:topology(#{~"g" => [~"a@h"]}),
    Frame = (sderl_mon_gen:frame(1000, #{}))#{nodes := #{~"a@h" => #{
        ~"orders{status=\"ok\"}" => 2.5, ~"sessions" => 7, ~"unknown" => 1
    }}},
    Text = iolist_to_binary(sderl_mon_prometheus:text(Topology, Frame, [], Metrics)),
    [?assertMatch({_, {_, _}}, {Line, binary:match(Text, Line)})
     || Line <- [~"# HELP sderl_app_orders_per_second The application's own: orders (orders)\n",
                 ~"# TYPE sderl_app_orders_per_second gauge\n",
                 ~"\nsderl_app_orders_per_second{node=\"a@h\",status=\"ok\"} 2.5\n",
                 ~"\nsderl_app_sessions{node=\"a@h\"} 7\n"]],
    ?assertEqual(nomatch, binary:match(Text, ~"unknown")).

catalogue_test() ->
    Names = [Name || #{name := Name} <- sderl_mon_catalogue:families()],
    ?assertEqual(lists:sort(Names), lists:usort(Names)),
    %% Nothing that is sent to browsers is without an entry.
    ?assertEqual([], [M || M <- sderl_mon_types:metrics(), error =:= sderl_mon_catalogue:find(M)]).

%% SPDX-License-Identifier: Apache-2.0
%% What is exported can be read: by a JSON decoder, a reader of CSV, and one of Prometheus' text
%% format.
-module(sderl_mon_export_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T0, 1_700_000_000_000).
-define(ODD, ~"gr\"oup,\\\n1").

%% ---------------------------------------------------------------- files

with_hub(Test) ->
    Fed = fun() ->
        {ok, #{}} = sderl_mon_hub:subscribe(),
        ok = sderl_mon_hub:feed(),
        feed({sderl_mon_topology, 1, topology()}),
        feed({sderl_mon_update, 1, update()}),
        receive {sderl_mon, frame, #{links := Links}} when Links =/= #{} -> ok end,
        Test()
    end,
    {spawn, {timeout, 120, fun() -> sderl_mon_gen:beside_hub(#{interval_ms => 100}, Fed) end}}.

feed(Message) -> gen_server:cast(sderl_mon_hub, {sderl_mon_feed, self(), Message}).

topology() -> sderl_mon_gen:topology(#{?ODD => [~"a@h", ~"b@h"]}).

update() ->
    #{
        agent => {~"s", 1},
        t => ?T0,
        span_ms => 100,
        nodes => #{~"a@h" => #{util => 0.25, procs => 77}},
        links => #{{~"a@h", ~"b@h"} => {2.5, 100}},
        kinds => #{routing => {1, 2}},
        groups => #{?ODD => #{regs_s => 1.5}},
        events => [(sderl_mon_gen:event(?T0, ~"he said \"no\", and left\nfor good"))#{
            details => #{pids => [self()], why => {error, "x"}}
        }],
        lost => #{dropped => 3}
    }.

collected(Format, What) ->
    Me = self(),
    {ok, #{rows := N}} = sderl_mon_export:write(
        live, Format, fun(Data) -> Me ! {part, iolist_to_binary(Data)}, ok end, #{what => What}
    ),
    {N, parts(<<>>)}.

parts(Acc) ->
    receive
        {part, Data} -> parts(<<Acc/binary, Data/binary>>)
    after 0 -> Acc
    end.

%% What nobody sees is in no file as it is, and JSON says the same all the same.
hidden_test_() ->
    Name = ~"a\x{202e}b\x{200b}\x{e0041}\x{7f}é日",
    Shown = ~"a\\u{202e}b\\u{200b}\\u{e0041}\\u{7f}é日",
    Json = iolist_to_binary(sderl_mon_visible:json(json:encode(#{Name => [Name, ~"\n"]}))),
    Node = #{status => up, groups => [Name], hidden => false, source => probe},
    Topology = #{
        epoch => 1, t => ?T0, nodes => #{Name => Node}, monitors => [],
        groups => #{Name => #{nodes => [Name], coordinator => Name, names => 0, agent => Name}}
    },
    Page = iolist_to_binary(sderl_mon_prometheus:text(Topology, none, [], [])),
    [
        ?_assertEqual(Shown, sderl_mon_visible:text(Name)),
        ?_assertEqual(~"plain", sderl_mon_visible:text(~"plain")),
        ?_assertEqual(~"\\u{ff}x", sderl_mon_visible:text(<<255, "x">>)),
        ?_assertEqual(nomatch, re:run(Json, "[\\x{202a}-\\x{202e}\\x{200b}\\x{7f}]", [unicode])),
        ?_assertEqual(#{Name => [Name, ~"\n"]}, json:decode(Json)),
        ?_assertNotEqual(nomatch,
                         binary:match(Page, binary:replace(Shown, ~"\\", ~"\\\\", [global]))),
        ?_assertEqual(nomatch, binary:match(Page, Name))
    ].

%% Through the hub, into every kind of file.
hidden_names_are_written_test_() ->
    Name = ~"a\x{202e}b",
    Fed = fun() ->
        {ok, #{}} = sderl_mon_hub:subscribe(),
        ok = sderl_mon_hub:feed(),
        feed({sderl_mon_topology, 1, sderl_mon_gen:topology(#{Name => [Name, ~"b@h"]})}),
        Event = sderl_mon_gen:event(?T0, Name),
        feed({sderl_mon_update, 1, (update())#{
            nodes := #{Name => #{util => 0.5}}, links := #{{Name, ~"b@h"} => {1, 1}},
            groups := #{Name => #{regs_s => 1.5}}, events := [Event#{node => Name}]
        }}),
        receive {sderl_mon, frame, #{links := Links}} when Links =/= #{} -> ok end,
        [
            ?assertEqual({Format, What, nomatch},
                         {Format, What,
                          binary:match(element(2, collected(Format, What)), ~"\x{202e}")})
         || Format <- [csv, json], What <- sderl_mon_export:what()
        ],
        ?assertNotEqual(nomatch, binary:match(element(2, collected(csv, nodes)), ~"a\\u{202e}b"))
    end,
    {spawn, {timeout, 120, fun() -> sderl_mon_gen:beside_hub(#{interval_ms => 100}, Fed) end}}.

json_test_() ->
    with_hub(fun() ->
        [
            begin
                {N, Text} = collected(json, What),
                Lines = binary:split(Text, ~"\n", [global, trim]),
                ?assertEqual(N, length(Lines)),
                [?assert(is_map(json:decode(Line))) || Line <- Lines]
            end
         || What <- sderl_mon_export:what()
        ],
        {1, Event} = collected(json, events),
        ?assertMatch(#{~"id" := 1,
                       ~"kind" := ~"node_down",
                       ~"text" := ~"he said \"no\", and left\nfor good",
                       ~"details" := #{~"why" := [~"error", _]}}, json:decode(Event)),
        {_, Nodes} = collected(json, nodes),
        [First | _] = binary:split(Nodes, ~"\n", [global, trim]),
        ?assertMatch(#{~"node" := ~"a@h", ~"util" := 0.25, ~"procs" := 77, ~"mem" := null,
                       ~"t" := _}, json:decode(First))
    end).

csv_test_() ->
    with_hub(fun() ->
        [
            begin
                {N, Text} = collected(csv, What),
                [Names | Rows] = read_csv(Text),
                ?assertEqual(N, length(Rows)),
                [?assertEqual(length(Names), length(Row)) || Row <- Rows]
            end
         || What <- sderl_mon_export:what()
        ],
        {_, Groups} = collected(csv, groups),
        [[~"t", ~"span_ms", ~"group", ~"regs_s" | _], [_, _, ?ODD, ~"1.5" | _] | _] =
            read_csv(Groups)
    end).

%% RFC 4180.
read_csv(Text) -> read_csv(Text, <<>>, [], []).

read_csv(<<>>, <<>>, [], Rows) -> lists:reverse(Rows);
read_csv(<<$", Rest/binary>>, <<>>, Row, Rows) -> quoted(Rest, <<>>, Row, Rows);
read_csv(<<$,, Rest/binary>>, Cell, Row, Rows) -> read_csv(Rest, <<>>, [Cell | Row], Rows);
read_csv(<<"\r\n", Rest/binary>>, Cell, Row, Rows) ->
    read_csv(Rest, <<>>, [], [lists:reverse(Row, [Cell]) | Rows]);
read_csv(<<C, Rest/binary>>, Cell, Row, Rows) when C =/= $", C =/= $\n ->
    read_csv(Rest, <<Cell/binary, C>>, Row, Rows).

quoted(<<"\"\"", Rest/binary>>, Cell, Row, Rows) -> quoted(Rest, <<Cell/binary, $">>, Row, Rows);
quoted(<<"\"", Rest/binary>>, Cell, Row, Rows) -> read_csv(Rest, Cell, Row, Rows);
quoted(<<C, Rest/binary>>, Cell, Row, Rows) -> quoted(Rest, <<Cell/binary, C>>, Row, Rows).

sinks_test_() ->
    with_hub(fun() ->
        ?assertEqual({error, full},
                     sderl_mon_export:write(live, csv, fun(_) -> {error, full} end, #{})),
        ?assertEqual({error, {bad_option, what, x}},
                     sderl_mon_export:write(live, csv, fun(_) -> ok end, #{what => x})),
        ?assertMatch({error, {file, "/no/such/folder/x", enoent}},
                     sderl_mon_export:write(live, csv, "/no/such/folder/x", #{}))
    end).

any_term_is_json_test() ->
    Term = #{{a, 1} => [self(), make_ref(), <<255>>, "text", [a | b], {1, 2.5}], 5 => undefined,
             ~"k" => null},
    ?assertMatch(#{~"k" := null, ~"5" := ~"undefined"},
                 json:decode(iolist_to_binary(sderl_mon_export:json(Term)))).

%% ---------------------------------------------------------------- Prometheus

prometheus_test() ->
    Frame = (sderl_mon_gen:frame(?T0, 2000, #{{~"a@h", ~"b@h"} => {2.5, 100}}))#{
        nodes := #{~"a@h" => #{cpu_pct => 50, mem => 1024, util => 0.125}},
        lost := #{links_cut => 2}, kinds := #{routing => {1, 2}},
        groups := #{?ODD => #{regs_s => 0.5}}
    },
    Findings = [#{id => Id, kind => bypass, severity => warning} || Id <- [~"1", ~"2"]],
    Samples =
        read_prometheus(iolist_to_binary(
            sderl_mon_prometheus:text(topology(), Frame, Findings, []))),
    Value = fun(Name, Labels) -> maps:get({Name, Labels}, Samples) end,
    ?assertEqual(1.0, Value(~"sderl_node_up", #{~"node" => ~"a@h", ~"status" => ~"up"})),
    ?assertEqual(0.5, Value(~"sderl_node_cpu_ratio", #{~"node" => ~"a@h"})),
    ?assertEqual(1024.0, Value(~"sderl_node_memory_bytes", #{~"node" => ~"a@h"})),
    ?assertEqual(2.5,
                 Value(~"sderl_link_messages_per_second", #{~"from" => ~"a@h", ~"to" => ~"b@h"})),
    ?assertEqual(2.0, Value(~"sderl_findings", #{~"kind" => ~"bypass", ~"severity" => ~"warning"})),
    ?assertEqual(2.0, Value(~"sderl_frame_lost", #{~"reason" => ~"links_cut"})),
    ?assertEqual(2.0, Value(~"sderl_frame_span_seconds", #{})),
    ?assertEqual(2.0, Value(~"sderl_group_members", #{~"group" => ?ODD})),
    ?assertEqual(0.5, Value(~"sderl_group_registrations_per_second", #{~"group" => ?ODD})).

before_the_first_frame_test() ->
    ?assertMatch(#{{~"sderl_nodes", #{}} := 2.0}, read_prometheus(
        iolist_to_binary(sderl_mon_prometheus:text(topology(), none, [], []))
    )).

%% Each family has HELP and TYPE before its samples, and appears once; a sample appears once.
read_prometheus(Text) ->
    {Samples, _Family} = lists:foldl(fun read_line/2, {#{}, none},
                                     binary:split(Text, ~"\n", [global, trim])),
    Samples.

read_line(<<"# HELP ", Rest/binary>>, {Samples, _}) ->
    [Name, Help] = binary:split(Rest, ~" "),
    ?assertEqual([], [N || {N, _} := _ <- Samples, N =:= Name]),
    ?assertNotEqual(<<>>, Help),
    {Samples, {help, Name}};
read_line(<<"# UNIT ", Rest/binary>>, {Samples, {type, Name}}) ->
    [Name, _] = binary:split(Rest, ~" "),
    {Samples, {type, Name}};
read_line(<<"# TYPE ", Rest/binary>>, {Samples, {help, Name}}) ->
    ?assertEqual([Name, ~"gauge"], binary:split(Rest, ~" ")),
    {Samples, {type, Name}};
read_line(Line, {Samples, {type, Name}}) ->
    {match, [Name, Inside, Value]} = re:run(Line,
                                            ~"^([a-z_][a-z0-9_]*)(?:\\{(.*)\\})? ([-+.0-9eE]+)$",
                                            [{capture, all_but_first, binary}]),
    Key = {Name, labels(Inside, #{})},
    ?assertNot(is_map_key(Key, Samples)),
    {Samples#{Key => number(Value)}, {type, Name}}.

labels(<<>>, Labels) -> Labels;
labels(<<$,, Rest/binary>>, Labels) -> labels(Rest, Labels);
labels(Text, Labels) ->
    [Name, Rest] = binary:split(Text, ~"=\""),
    {Value, After} = label_value(Rest, <<>>),
    ?assertNot(is_map_key(Name, Labels)),
    labels(After, Labels#{Name => Value}).

label_value(<<"\\\\", Rest/binary>>, Acc) -> label_value(Rest, <<Acc/binary, $\\>>);
label_value(<<"\\\"", Rest/binary>>, Acc) -> label_value(Rest, <<Acc/binary, $">>);
label_value(<<"\\n", Rest/binary>>, Acc) -> label_value(Rest, <<Acc/binary, $\n>>);
label_value(<<$", Rest/binary>>, Acc) -> {Acc, Rest};
label_value(<<C, Rest/binary>>, Acc) when C =/= $\\, C =/= $\n ->
    label_value(Rest, <<Acc/binary, C>>).

number(Text) ->
    try binary_to_float(Text) catch error:badarg -> float(binary_to_integer(Text)) end.

%% SPDX-License-Identifier: Apache-2.0
%% Series, traffic tables and events, over a small cluster: groups x (a, b, gw), y (gw, c), both (b,
%% c); d and d2 are free, tool is hidden.
-module(sderl_mon_query_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(T0, 1_700_000_000_000).

topology() ->
    #{nodes := Nodes} = Known =
        sderl_mon_gen:topology(#{~"x" => [~"a", ~"gw"], ~"y" => [~"gw", ~"c"],
                                 ~"z" => [~"gw", ~"c"], free => [~"d", ~"d2", ~"tool"]}),
    #{~"tool" := Tool} = Nodes,
    Known#{nodes := Nodes#{~"tool" := Tool#{hidden := true}}}.

store(Frames) ->
    #{
        range => {?T0, case Frames of [] -> 0; _ -> maps:get(t, lists:last(Frames)) end},
        topology => fun(_T) -> {ok, topology()} end,
        fold => fun(From, To, _Step, _Want, Fun, Acc) ->
            lists:foldl(Fun, Acc, [F || #{t := T} = F <- Frames, T >= From, T =< To])
        end
    }.

traffic(By, Links) ->
    {ok, Rows} = sderl_mon_query:traffic(store([sderl_mon_gen:frame(?T0 + 1000, Links)]),
                                         #{by => By}),
    lists:sort([{maps:with([from, to, node, group], Row), Msgs}
                || #{msgs_s := Msgs} = Row <- Rows]).

%% ---------------------------------------------------------------- where traffic counts

links() ->
    #{{~"a", ~"gw"} => {4, 1}, {~"gw", ~"c"} => {10, 1}, {~"a", ~"c"} => {6, 1},
      {~"c", ~"d"} => {2, 1}}.

groups_share_what_is_inside_test() ->
    %% gw and c are together in y and in z.
    ?assertEqual([{#{group => ~"x"}, 4.0}, {#{group => ~"y"}, 5.0}, {#{group => ~"z"}, 5.0}],
                 traffic(group, links())),
    ?assertEqual([{#{group => ~"(free)"}, 3.0}], traffic(group, #{{~"d", ~"d2"} => {3, 1}})).

%% Monitors, shells and other tools are no free nodes, whether one of them is watched or not.
hidden_nodes_are_told_apart_test() ->
    Links = #{{~"d", ~"shell"} => {3, 1}, {~"tool", ~"a"} => {2, 1}, {~"tool", ~"shell"} => {4, 1},
              {~"c", ~"d"} => {2, 1}},
    ?assertEqual(
        [
            {#{from => ~"(free)", to => ~"(hidden)"}, 3.0},
            {#{from => ~"(hidden)", to => ~"x"}, 2.0},
            {#{from => ~"y", to => ~"(free)"}, 1.0},
            {#{from => ~"z", to => ~"(free)"}, 1.0}
        ],
        traffic(edge, Links)
    ),
    ?assertEqual([{#{group => ~"(hidden)"}, 4.0}], traffic(group, Links)),
    Store = store([sderl_mon_gen:frame(?T0 + 1000, Links)]),
    Series = fun(From, To) ->
        {ok, #{columns := #{msgs_s := Msgs}}} =
            sderl_mon_query:series(Store, {edge, From, To}, ?T0, ?T0 + 1000, 1),
        Msgs
    end,
    ?assertEqual([2.0], Series(~"(hidden)", ~"x")),
    ?assertEqual([4.0], Series(~"(hidden)", ~"(hidden)")),
    ?assertEqual([3.0], Series(~"(free)", ~"(hidden)")).

edges_share_what_is_between_test() ->
    ?assertEqual(
        [
            {#{from => ~"x", to => ~"y"}, 3.0},
            {#{from => ~"x", to => ~"z"}, 3.0},
            {#{from => ~"y", to => ~"(free)"}, 1.0},
            {#{from => ~"z", to => ~"(free)"}, 1.0}
        ],
        traffic(edge, links())
    ).

gateways_test() ->
    ?assertEqual([{#{node => ~"c"}, 18.0}, {#{node => ~"gw"}, 14.0}], traffic(gateway, links())).

%% What a gateway passed on is told apart from what it sends and receives itself.
forwarded_test() ->
    Frame = fun(S, Nodes) -> (sderl_mon_gen:frame(?T0 + S * 1000, links()))#{nodes := Nodes} end,
    Frames = [
        Frame(1, #{~"gw" => #{forwarded_s => 10.0}, ~"a" => #{forwarded_s => 7.0}}),
        Frame(2, #{~"gw" => #{forwarded_s => 20.0}, ~"c" => #{util => 0.5}})
    ],
    {ok, Rows} = sderl_mon_query:traffic(store(Frames), #{by => gateway}),
    ?assertEqual(
        #{~"gw" => 15.0, ~"c" => unknown},
        #{Node => maps:get(forwarded_s, Row, unknown) || #{node := Node} = Row <- Rows}
    ).

routed_test() ->
    Routed = fun(S, Msgs) ->
        (sderl_mon_gen:frame(?T0 + S * 1000, links()))#{routed => #{{~"x", ~"y"} => Msgs}}
    end,
    Store = store([sderl_mon_gen:frame(?T0 + 1000, links()), Routed(2, 6.0), Routed(3, 9.0)]),
    {ok, [Row]} = sderl_mon_query:traffic(Store, #{by => routed}),
    ?assertEqual(
        #{from => ~"x", to => ~"y", msgs_s => 5.0, msgs => 15, p50 => 6.0, p95 => 9.0, max => 9.0},
        Row
    ),
    ?assertEqual(
        {ok, #{t => [?T0 + S * 1000 || S <- [1, 2, 3]], columns => #{msgs_s => [0.0, 6.0, 9.0]}}},
        sderl_mon_query:series(Store, {routed, ~"x", ~"y"}, ?T0, ?T0 + 3000, 3)
    ).

nothing_is_lost_or_twice_test_() ->
    sderl_prop:eunit("groups and edges have all the traffic", 100, fun() ->
        Node = elements([~"a", ~"gw", ~"c", ~"d", ~"unknown"]),
        ?FORALL(Links, map({Node, Node}, {range(0, 1000), range(0, 1000)}), begin
            Sum = fun(By) -> lists:sum([M || Links =/= #{}, {_, M} <- traffic(By, Links)]) end,
            All = lists:sum([M || _ := {M, _} <- Links]),
            abs(All - Sum(group) - Sum(edge)) < 1.0e-6
        end)
    end).

%% ---------------------------------------------------------------- tables

percentiles_test() ->
    Frames = [sderl_mon_gen:frame(?T0 + I * 1000, #{{~"a", ~"gw"} => {I, 10 * I}})
              || I <- lists:seq(1, 100)],
    {ok, [Row]} = sderl_mon_query:traffic(store(Frames), #{by => link, window_s => 100}),
    ?assertMatch(#{from := ~"a", to := ~"gw", msgs := 5050, bytes := 50500, msgs_s := 50.5,
                   p50 := 50.0, p95 := 95.0, max := 100.0}, Row),
    %% A window that is half as long.
    ?assertMatch({ok, [#{msgs := 3775, p50 := 75.0}]},
                 sderl_mon_query:traffic(store(Frames), #{by => link, window_s => 50})),
    ?assertMatch({ok, [#{msgs := 1275}]},
                 sderl_mon_query:traffic(store(Frames),
                                         #{by => link, window_s => 50, t => ?T0 + 50_000})).

%% Ten frames of ten seconds, and then ten short ones with a burst.
frames_weigh_by_their_length_test() ->
    Coarse = [sderl_mon_gen:frame(?T0 + I * 10_000, 10_000, #{{~"a", ~"gw"} => {1, 1}})
              || I <- lists:seq(1, 10)],
    Fine = [sderl_mon_gen:frame(?T0 + 100_000 + I * 100, 100, #{{~"a", ~"gw"} => {1000, 1}})
            || I <- lists:seq(1, 10)],
    ?assertMatch(
        {ok, [#{p50 := 1.0, p95 := 1.0, max := 1000.0, msgs := 1100}]},
        sderl_mon_query:traffic(store(Coarse ++ Fine), #{by => link, window_s => 200})
    ).

silence_counts_as_nothing_test() ->
    Frames = [sderl_mon_gen:frame(?T0 + I * 1000,
                                  case I of 1 -> #{{~"a", ~"gw"} => {8, 8}}; _ -> #{} end)
              || I <- lists:seq(1, 4)],
    ?assertMatch({ok, [#{msgs_s := 2.0, p50 := +0.0, p95 := 8.0, max := 8.0}]},
                 sderl_mon_query:traffic(store(Frames), #{by => link})),
    ?assertEqual({error, none}, sderl_mon_query:traffic(store([]), #{by => link})).

%% ---------------------------------------------------------------- series

series(What, Frames, Points) ->
    sderl_mon_query:series(store(Frames), What, ?T0, ?T0 + 1_000_000, Points).

a_point_for_each_frame_test() ->
    Frames = [(sderl_mon_gen:frame(?T0 + I * 1000, links()))#{nodes := #{~"a" => #{mq_max => I}}}
              || I <- lists:seq(1, 4)],
    {ok, #{t := Ts, columns := #{msgs_s := Msgs}}} =
        sderl_mon_query:series(store(Frames), {link, ~"a", ~"gw"}, ?T0, ?T0 + 4_000, 100),
    ?assertEqual({[?T0 + I * 1000 || I <- lists:seq(1, 4)], [4.0, 4.0, 4.0, 4.0]}, {Ts, Msgs}),
    Values = fun(What) ->
        {ok, #{columns := Columns}} =
            sderl_mon_query:series(store(Frames), What, ?T0, ?T0 + 4_000, 1),
        Columns
    end,
    ?assertEqual(#{msgs_s => [22.0], bytes_s => [4.0]}, Values(total)),
    ?assertMatch(#{msgs_s := [5.0]}, Values({group, ~"y"})),
    ?assertMatch(#{msgs_s := [3.0]}, Values({edge, ~"x", ~"z"})),
    ?assertMatch(#{msgs_s := [5.0]}, Values({edge, ~"y", ~"y"})),
    ?assertMatch(#{msgs_s := [14.0]}, Values({gateway, ~"gw"})),
    %% Of a queue the highest; of what is not known nothing.
    ?assertEqual(#{mq_max => [4], util => [null]}, Values({node, ~"a", [mq_max, util]})),
    ?assertEqual(#{mq_max => [null]}, Values({node, ~"nobody", [mq_max]})).

gaps_are_null_test() ->
    Frames = [sderl_mon_gen:frame(?T0 + T, links()) || T <- [1000, 2000, 9000, 10_000]],
    {ok, #{columns := #{msgs_s := Msgs}}} =
        sderl_mon_query:series(store(Frames), total, ?T0, ?T0 + 10_000, 4),
    ?assertEqual([22.0, null, null, 22.0], [case M of null -> null; _ -> M end || M <- Msgs]),
    ?assertEqual({error, none}, series(total, [], 5)),
    ?assertEqual({error, none}, sderl_mon_query:series(store(Frames), total, 10, 5, 5)).

%% What is counted per second keeps its total where it begins within a bucket, or only now and then
%% something is counted; of a gauge nothing is known where it is not told. The time in which the
%% node itself was not seen counts for neither.
begins_within_a_bucket_test() ->
    Frame = fun(I, Nodes) -> (sderl_mon_gen:frame(?T0 + I * 1000, #{}))#{nodes := Nodes} end,
    A = fun(More) -> #{~"a" => More#{mem => 8}} end,
    Frames = [Frame(1, #{}), Frame(2, A(#{})), Frame(3, A(#{})),
              Frame(4, A(#{~"orders" => 6.0, ~"price" => 6.0})),
              Frame(5, A(#{~"orders" => 6.0, ~"price" => 6.0})),
              Frame(6, A(#{})), Frame(7, A(#{})), Frame(8, A(#{}))],
    Store = (store(Frames))#{is_rate => fun(Key) -> Key =:= ~"orders" end},
    Values = fun(What) ->
        {ok, #{columns := Columns}} =
            sderl_mon_query:series(Store, What, ?T0, ?T0 + 8_000, 2),
        Columns
    end,
    [?assertEqual(#{~"orders" => [2.0, 1.5]}, Values({over, Place, ~"orders", sum}))
     || Place <- [cluster, {node, ~"a"}, {family, ~"a"}]],
    ?assertEqual(#{~"price" => [6.0, 6.0]}, Values({over, cluster, ~"price", sum})),
    ?assertEqual(#{~"orders" => [2.0, 1.5], mem => [8.0, 8.0]},
                 Values({node, ~"a", [~"orders", mem]})),
    ?assertEqual(#{}, Values({over, {node, ~"b"}, ~"orders", sum})).

%% ---------------------------------------------------------------- events

events_test() ->
    Events = [#{id => I, t => I, kind => element(1 + I rem 2, {node_down, node_up}), level => info,
                text => ~"", node => integer_to_binary(I rem 3)}
              || I <- lists:seq(1, 10)],
    Ids = fun(Filter) -> [Id || #{id := Id} <- sderl_mon_query:events(Events, Filter)] end,
    ?assertEqual(lists:seq(10, 1, -1), Ids(#{})),
    ?assertEqual([4, 3], Ids(#{before => 5, limit => 2})),
    ?assertEqual([10, 8, 6, 4, 2], Ids(#{kinds => [node_down]})),
    ?assertEqual([10, 8, 6, 4, 2], Ids(#{kinds => [~"node_down", ~"no such kind"]})),
    %% Of another node, one as text.
    Text = [E#{kind := ~"node_down"} || #{kind := node_down} = E <- Events],
    ?assertEqual(5, length(sderl_mon_query:events(Text, #{kinds => [node_down]}))),
    ?assertEqual([9, 6, 3], Ids(#{node => ~"0"})),
    ?assertEqual([], Ids(#{group => ~"g"})),
    ?assertEqual([6, 5], Ids(#{from => 5, to => 6})).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_frame_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(BASE, #{seq => 7, t => 5000, span_ms => 1000, epoch => 3, lost => #{}}).
-define(CAPS, #{nodes => 2, links => 2, groups => 2, kinds => 2}).

%% ---------------------------------------------------------------- beside each other

a_link_is_told_by_its_sender_test() ->
    ByReceiver = #{nodes => #{~"b" => #{}},
                   links => #{{~"a", ~"b"} => {9.0, 90.0}, {~"x", ~"b"} => {1.0, 10.0}}},
    BySender = #{nodes => #{~"a" => #{}}, links => #{{~"a", ~"b"} => {5.0, 50.0}}},
    [
        ?assertMatch(
            #{seq := 7, links := #{{~"a", ~"b"} := {5.0, 50.0}, {~"x", ~"b"} := {1.0, 10.0}}},
            sderl_mon_frame:combine(Order, ?BASE)
        )
     || Order <- [[ByReceiver, BySender], [BySender, ByReceiver]]
    ].

agents_of_one_group_add_up_test() ->
    Updates = [
        #{groups => #{~"g" => #{regs_s => 1.5, names => 7}}, kinds => #{routing => {1, 10}},
          lost => #{x => 1}},
        #{groups => #{~"g" => #{regs_s => 2.5, names => 9}}, kinds => #{routing => {2, 20}},
          lost => #{x => 2}}
    ],
    ?assertMatch(
        #{groups := #{~"g" := #{regs_s := 4.0, names := 9}}, kinds := #{routing := {3, 30}},
          lost := #{x := 3}},
        sderl_mon_frame:combine(Updates, ?BASE)
    ).

routed_messages_add_up_test() ->
    Edge = {~"g", ~"h"},
    #{routed := Routed} = Frame = sderl_mon_frame:combine(
        [#{routed => #{Edge => 1.5}}, #{routed => #{Edge => 2.5}}, #{}], ?BASE
    ),
    ?assertEqual(#{Edge => 4.0}, Routed),
    %% A second of 4 a second, one of none.
    {ok, Merged} = sderl_mon_frame:merge([Frame, sderl_mon_gen:frame(6000, #{})]),
    ?assertEqual(#{Edge => 2.0}, maps:get(routed, Merged)),
    ?assertNot(is_map_key(routed, sderl_mon_frame:combine([#{}], ?BASE))),
    Many = #{{~"g", integer_to_binary(I)} => I || I <- lists:seq(1, 5001)},
    ?assertMatch(#{lost := #{routed_cut := 1}}, sderl_mon_frame:cap(Frame#{routed := Many}, ?CAPS)).

nothing_is_cut_uncounted_test() ->
    Frame = sderl_mon_gen:frame(1, #{{~"a", ~"b"} => {1, 10}, {~"b", ~"a"} => {1, 30},
                                     {~"c", ~"a"} => {1, 20}}),
    Cut = sderl_mon_frame:cap(Frame#{nodes := #{Id => #{} || Id <- [~"a", ~"b", ~"c", ~"d"]}},
                              ?CAPS),
    ?assertEqual([{~"b", ~"a"}, {~"c", ~"a"}], lists:sort(maps:keys(maps:get(links, Cut)))),
    ?assertEqual(#{links_cut => 1, nodes_cut => 2}, maps:get(lost, Cut)),
    Small = sderl_mon_gen:frame(1, #{}),
    ?assertEqual(Small, sderl_mon_frame:cap(Small, ?CAPS)).

%% ---------------------------------------------------------------- one after the other

means_and_peaks_test() ->
    F1 = (sderl_mon_gen:frame(1000, 1000, #{{~"a", ~"b"} => {10, 100}}))#{
        nodes := #{~"a" => #{util => 0.2, mq_max => 50}}
    },
    F2 = (sderl_mon_gen:frame(4000, 3000, #{}))#{
        nodes := #{~"a" => #{util => 0.6, mq_max => 3}, ~"b" => #{util => 0.1}}
    },
    {ok, Merged} = sderl_mon_frame:merge([F1, F2]),
    #{t := 4000, span_ms := 4000, links := Links,
      nodes := #{~"a" := #{util := Util, mq_max := Peak}, ~"b" := B}} = Merged,
    %% A second of 10 a second, three of none.
    ?assertEqual(#{{~"a", ~"b"} => {2.5, 25.0}}, Links),
    ?assertEqual(50, Peak),
    ?assert(abs(Util - 0.5) < 1.0e-9),
    %% Not seen in the first frame: its mean is of the second.
    ?assert(abs(maps:get(util, B) - 0.1) < 1.0e-9),
    ?assertEqual(none, sderl_mon_frame:merge([])).

%% A counter that begins while the node is seen keeps its total, in sums of sums, too.
counted_from_then_on_test() ->
    Frame = fun(T, Nodes) -> (sderl_mon_gen:frame(T, 1000, #{}))#{nodes := Nodes} end,
    Frames = [Frame(1000, #{}), Frame(2000, #{~"a" => #{util => 0.5, mq_max => 2}}),
              Frame(3000, #{~"a" => #{util => 0.5, mq_max => 1, ~"orders" => 6.0, ~"price" => 4}}),
              Frame(4000, #{~"a" => #{util => 0.5, mq_max => 1}})],
    IsRate = fun(Metric) -> Metric =:= ~"orders" end,
    Expected = #{~"a" => #{util => 0.5, mq_max => 2, ~"orders" => 2.0, ~"price" => 4.0}},
    #{nodes := Nodes} = sderl_mon_frame:frame(sum(Frames), IsRate),
    ?assertEqual(Expected, Nodes),
    %% Slots of two seconds go on into one of four.
    {ok, Ladder} = sderl_mon_ladder:new([2000, 4000]),
    {Done, _} = lists:mapfoldl(fun(F, L) -> sderl_mon_ladder:push(F, IsRate, L) end, Ladder,
                               Frames ++ [Frame(9000, #{}), Frame(13_000, #{})]),
    [Entry] = [Entry || {4000, Entry} <- lists:append(Done)],
    {ok, #{nodes := Kept}} = sderl_mon_ladder:unpack(Entry, #{}),
    #{~"a" := #{~"orders" := Orders, ~"price" := Price}} = Kept,
    ?assert(abs(Orders - 2.0) < 0.01 andalso abs(Price - 4.0) < 0.01).

properties_test_() ->
    [
        sderl_prop:eunit("joining sums is associative", 200, fun() ->
            ?FORALL({A, B, C},
                    {sderl_mon_gen:frames(), sderl_mon_gen:frames(), sderl_mon_gen:frames()}, begin
                        [X, Y, Z] = [sum(Fs) || Fs <- [A, B, C]],
                        Left = sderl_mon_frame:join(sderl_mon_frame:join(X, Y), Z),
                        Right = sderl_mon_frame:join(X, sderl_mon_frame:join(Y, Z)),
                        same(Left, Right)
                    end)
        end),
        sderl_prop:eunit("adding a frame is joining its sums", 200, fun() ->
            ?FORALL(Frames, sderl_mon_gen:frames(), begin
                Sums = [sum([Frame]) || Frame <- Frames],
                same(sum(Frames),
                     lists:foldl(fun(Sum, Acc) -> sderl_mon_frame:join(Acc, Sum) end,
                                 sderl_mon_frame:new(), Sums))
            end)
        end),
        sderl_prop:eunit("merging keeps totals, and is the same by parts", 200, fun() ->
            ?FORALL(
                {Frames, At},
                {?SUCHTHAT(Fs, sderl_mon_gen:frames(), Fs =/= []), non_neg_integer()},
                begin
                    {First, Rest} = lists:split(At rem (length(Frames) + 1), Frames),
                    Parts = [M
                             || {ok, M} <- [sderl_mon_frame:merge(First),
                                            sderl_mon_frame:merge(Rest)]],
                    {ok, Once} = sderl_mon_frame:merge(Frames),
                    {ok, Twice} = sderl_mon_frame:merge(Parts),
                    close(totals(Frames), totals([Once]))
                        andalso close(totals(Frames), totals([Twice]))
                end
            )
        end)
    ].

sum(Frames) -> lists:foldl(fun sderl_mon_frame:add/2, sderl_mon_frame:new(), Frames).

same(A, B) ->
    case {sderl_mon_frame:is_empty(A), sderl_mon_frame:is_empty(B)} of
        {true, true} -> true;
        {false, false} -> near(sderl_mon_frame:frame(A), sderl_mon_frame:frame(B))
    end.

near(A, B) when is_map(A), is_map(B) ->
    maps:keys(A) =:= maps:keys(B)
        andalso lists:all(fun(K) -> near(maps:get(K, A), maps:get(K, B)) end, maps:keys(A));
near({A1, A2}, {B1, B2}) -> near(A1, B1) andalso near(A2, B2);
near(A, B) when is_number(A), is_number(B) -> abs(A - B) =< 1.0e-9 * max(1, abs(A));
near(A, B) -> A =:= B.

totals(Frames) ->
    Sum = fun(Key) ->
        lists:sum([M * Span || #{span_ms := Span} = F <- Frames, _ := {M, _B} <- maps:get(Key, F)])
    end,
    [Sum(links), Sum(kinds), lists:sum([N || #{lost := Lost} <- Frames, _ := N <- Lost]),
     lists:sum([S || #{span_ms := S} <- Frames])].

close(As, Bs) -> lists:all(fun({A, B}) -> near(A, B) end, lists:zip(As, Bs)).

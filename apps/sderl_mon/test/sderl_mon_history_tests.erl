%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_history_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(T0, 1_700_000_000_000).
-define(SMALL, #{raw => 5, levels => [{5_000, 20_000}, {20_000, 200_000}]}).

taken(Frames, Opts) ->
    lists:foldl(fun sderl_mon_history:frame/2, sderl_mon_history:new(Opts), Frames).

%% One a second, each with as many messages as its number.
steady(N) ->
    [sderl_mon_gen:frame(?T0 + I * 1000, #{{~"a", ~"b"} => {float(I), 1.0}})
     || I <- lists:seq(1, N)].

properties_test_() ->
    [
        sderl_prop:eunit("no time is twice in an answer, and what is there adds up", 200, fun() ->
            ?FORALL({Frames, Step}, {sderl_mon_gen:frames(), elements([0, 5_000, 20_000, 60_000])},
                    begin
                        H = taken(Frames, ?SMALL),
                        Got = answer(Step, H),
                        Spans = [{T - S, T} || #{t := T, span_ms := S} <- Got],
                        Apart = lists:all(fun({{_, End}, {Start, _}}) -> Start >= End end,
                                          pairs(Spans)),
                        Apart andalso near(sums(Got), sums([F || F <- Frames, inside(F, Spans)]))
                    end)
        end),
        sderl_prop:eunit("it holds what it says, and no more than it may", 100, fun() ->
            ?FORALL({Frames, Max}, {sderl_mon_gen:frames(), range(1_000, 6_000)}, begin
                #{bytes := Bytes, levels := [#{frames := Raw} | _] = Levels, frames := N} =
                    sderl_mon_history:info(taken(Frames, maps:put(max_bytes, Max, ?SMALL))),
                Bytes =< Max andalso Raw =< 5
                    andalso N =:= lists:sum([L || #{frames := L} <- Levels])
            end)
        end)
    ].

answer(Step, H) ->
    lists:reverse(sderl_mon_history:fold(0, 1 bsl 60, Step, #{}, fun(F, Acc) -> [F | Acc] end, [],
                                         H)).

pairs([]) -> [];
pairs(List) -> lists:zip(lists:droplast(List), tl(List)).

inside(#{t := T, span_ms := S}, Spans) ->
    lists:any(fun({From, To}) -> T - S >= From andalso T =< To end, Spans).

sums(Frames) ->
    lists:sum([M * S || #{span_ms := S, links := Links} <- Frames, _ := {M, _} <- Links]).

near(A, B) -> abs(A - B) =< 1.0e-5 * max(1.0, abs(A)).

%% One that begins anew has the frames that another has, and its own behind them: no time twice, and
%% none lost.
inherits_test_() ->
    [?_test(inherits(Split, Step)) || Split <- [3, 7, 40, 281], Step <- [0, 5_000, 20_000]].

inherits(Split, Step) ->
    All = steady(300),
    {Before, Own} = lists:split(Split, All),
    %% The other one goes on for a while.
    Other = taken(Before ++ lists:sublist(Own, 9), ?SMALL),
    Steps = sderl_mon_history:steps(Other),
    Past = sderl_mon_history:mended(#{
        levels => [{S, pieces({frames, S}, 0, Other)} || S <- Steps],
        topologies => pieces(topologies, 0, Other),
        findings => pieces(findings, 0, Other)
    }),
    New = sderl_mon_history:inherit(Past, taken(lists:sublist(Own, 14), ?SMALL)),
    Got = answer(Step, New),
    Spans = [{T - S, T} || #{t := T, span_ms := S} <- Got],
    [?assert(Start >= End) || {{_, End}, {Start, _}} <- pairs(Spans)],
    {From, To} = sderl_mon_history:range(New),
    ?assertEqual(element(1, sderl_mon_history:range(Other)), From),
    ?assertEqual(?T0 + 1000 * min(300, Split + 14), To),
    Kept = [F || #{t := T, span_ms := S} = F <- All, T - S >= From, T =< To],
    %% The newest slots are open where coarse frames are asked for: these are finer.
    ?assert(near(sums(Kept), sums(Got))).

pieces(Part, After, H) ->
    case sderl_mon_history:piece(Part, After, 100, H) of
        {Entries, false} -> Entries;
        {[_ | _] = Entries, true} -> Entries ++ pieces(Part, element(1, lists:last(Entries)), H)
    end.

old_frames_become_coarse_and_then_go_test() ->
    H = taken(steady(300), ?SMALL),
    #{levels := [Raw, Five, Twenty]} = sderl_mon_history:info(H),
    ?assertMatch(#{step_ms := 0, frames := 5}, Raw),
    ?assertMatch(#{step_ms := 5_000, frames := 4}, Five),
    ?assertMatch(#{step_ms := 20_000, frames := 10}, Twenty),
    Spans = [S || #{span_ms := S} <- answer(0, H)],
    ?assertEqual(lists:reverse(lists:sort(Spans)), Spans),
    ?assert(lists:member(20_000, Spans) andalso lists:member(5_000, Spans)
            andalso lists:member(1_000, Spans)),
    {From, To} = sderl_mon_history:range(H),
    ?assertEqual(?T0 + 300_000, To),
    ?assert(To - From >= 200_000).

no_finer_than_wanted_test() ->
    H = taken(steady(100), ?SMALL),
    Spans = [S || #{span_ms := S} <- answer(20_000, H)],
    %% Whole slots, and what came after the last of them.
    ?assertEqual(lists:duplicate(4, 20_000), lists:sublist(Spans, 4)),
    ?assert(lists:all(fun(S) -> S < 20_000 end, lists:nthtail(4, Spans))).

at_test() ->
    H0 = sderl_mon_history:new(#{}),
    ?assertEqual({error, none}, sderl_mon_history:at(?T0, H0)),
    ?assertEqual({0, 0}, sderl_mon_history:range(H0)),
    Before = sderl_mon_gen:topology(#{~"g" => [~"a"]}),
    After = (sderl_mon_gen:topology(#{~"g" => [~"a", ~"b"]}))#{t := ?T0 + 5_000},
    H1 = sderl_mon_history:topology(After, sderl_mon_history:topology(Before, H0)),
    H2 = sderl_mon_history:findings({?T0 + 3_000, [#{id => ~"f"}]},
                                    lists:foldl(fun sderl_mon_history:frame/2, H1, steady(10))),
    ?assertMatch({ok, #{topology := Before, frame := #{t := T}, findings := []}} when T =:=
                 ?T0 + 2_000, sderl_mon_history:at(?T0 + 1_500, H2)),
    ?assertMatch({ok, #{topology := After, findings := [#{id := ~"f"}]}},
                 sderl_mon_history:at(?T0 + 6_000, H2)),
    %% After the last frame: the last. Before the first: none.
    ?assertMatch({ok, #{frame := #{t := T}}} when T =:= ?T0 + 10_000,
                 sderl_mon_history:at(?T0 + 99_000, H2)),
    ?assertEqual({error, none}, sderl_mon_history:at(?T0 - 1, H2)).

the_same_topology_is_kept_once_test() ->
    Topology = sderl_mon_gen:topology(#{~"g" => [~"a"]}),
    H = lists:foldl(fun(I, Acc) -> sderl_mon_history:topology(Topology#{t := ?T0 + I}, Acc) end,
                    sderl_mon_history:new(#{}), lists:seq(1, 9)),
    ?assertMatch(#{topologies := 1}, sderl_mon_history:info(H)).

wrong_options_are_the_defaults_test() ->
    Default = sderl_mon_history:info(sderl_mon_history:new(#{})),
    [
        ?assertEqual(Default, sderl_mon_history:info(sderl_mon_history:new(Opts)))
     || Opts <- [#{levels => x}, #{levels => [{1000, 5}, {1500, 9}]}, #{levels => [{10, 0}]},
                 #{raw => 0}, #{max_bytes => -1}]
    ].

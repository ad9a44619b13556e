%% SPDX-License-Identifier: Apache-2.0
-module(sderl_stream_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Both ends of a stream, and frames between them that are lost, come twice, or overtake each other.

%% ---------------------------------------------------------------- cases

one_goes_at_once_test() ->
    S0 = sderl_stream:put(x, 0, sderl_stream:new(1)),
    {[{1, 1, 0, 1, [x]} = Frame], S1} = sderl_stream:frames(0, S0),
    ?assert(sderl_stream:fresh(Frame)),
    ?assertEqual(200, sderl_stream:next(S1)),
    ?assertMatch({[], _}, sderl_stream:frames(199, S1)),
    %% Again, and each time later, until a second.
    {[{1, 1, 0, 1, [x]}], S2} = sderl_stream:frames(200, S1),
    ?assertEqual({600, 1}, {sderl_stream:next(S2), sderl_stream:tries(S2)}),
    {[_], S3} = sderl_stream:frames(600, S2),
    {[_], S4} = sderl_stream:frames(sderl_stream:next(S3), S3),
    Next = sderl_stream:next(S4),
    {[_], S5} = sderl_stream:frames(Next, S4),
    ?assertEqual({Next + 1000, 4}, {sderl_stream:next(S5), sderl_stream:tries(S5)}),
    {[], S6} = sderl_stream:received({1, 1, 1, 1, []}, 5000, S5),
    ?assertEqual({infinity, 0, 0},
                 {sderl_stream:next(S6), sderl_stream:waiting(S6), sderl_stream:tries(S6)}).

an_answer_acknowledges_test() ->
    {[question], B0} = sderl_stream:received({1, 1, 0, 1, [question]}, 0, sderl_stream:new(1)),
    ?assertEqual(40, sderl_stream:next(B0)),
    {[Answer], B1} = sderl_stream:frames(10, sderl_stream:put(answer, 10, B0)),
    ?assertEqual({1, 1, 1, 1, [answer]}, Answer),
    %% Otherwise it goes alone.
    ?assertMatch({[{1, 1, 1, 1, []}], _}, sderl_stream:frames(40, B0)),
    ?assertEqual(210, sderl_stream:next(B1)).

twice_and_gaps_test() ->
    {[a, b], S1} = sderl_stream:received({1, 1, 0, 1, [a, b]}, 0, sderl_stream:new(1)),
    {[], S2} = sderl_stream:received({1, 1, 0, 1, [a, b]}, 1, S1),
    {[], S3} = sderl_stream:received({1, 1, 0, 4, [d]}, 2, S2),
    %% Says at once where it is.
    ?assertMatch({[{1, 1, 2, 1, []}], _}, sderl_stream:frames(2, S3)),
    ?assertMatch({[c, d], _}, sderl_stream:received({1, 1, 0, 2, [b, c, d]}, 3, S3)),
    ?assertMatch({[], S3}, sderl_stream:received({2, 1, 0, 1, [other_session]}, 3, S3)).

window_test() ->
    S0 = lists:foldl(fun(N, S) -> sderl_stream:put(N, 0, S) end, sderl_stream:new(1),
                     lists:seq(1, 1000)),
    {Frames, S1} = sderl_stream:frames(0, S0),
    ?assertEqual(lists:seq(1, 256), lists:append([Items || {_, _, _, _, Items} <- Frames])),
    {Again, S2} = sderl_stream:frames(200, S1),
    ?assertEqual(lists:seq(1, 16), lists:append([Items || {_, _, _, _, Items} <- Again])),
    {[], S3} = sderl_stream:received({1, 1, 16, 1, []}, 210, S2),
    {More, _} = sderl_stream:frames(210, S3),
    ?assertEqual(lists:seq(17, 48), lists:append([Items || {_, _, _, _, Items} <- More])).

%% Another stream's numbers, an acknowledgement of what was never sent: ignored.
nonsense_test() ->
    {_, S} = sderl_stream:frames(0, sderl_stream:put(x, 0, sderl_stream:new(1))),
    [?assertEqual({[], S}, sderl_stream:received(F, 1, S))
     || F <- [{1, 1, 7, 1, []}, {1, 1, x, 1, []}, {0, 1, 1, 1, []}]].

%% ---------------------------------------------------------------- properties

properties_test_() ->
    [sderl_prop:eunit("a stream brings all, in order, once", 1000, fun exactly_once/0)].

command() ->
    frequency([
        {4, {put, side()}}, {4, {deliver, side(), nat()}}, {2, {lose, side(), nat()}},
        {2, {twice, side(), nat()}},
        {3, {time, oneof([1, 20, 50, 300, 1500])}}
    ]).

side() -> oneof([a, b]).

exactly_once() ->
    ?FORALL(Commands, list(command()), begin
        End = drain(100, lists:foldl(fun do/2, start(), Commands)),
        #{put := Put, got := Got, streams := Streams} = End,
        ?WHENFAIL(io:format("~p~n", [End]),
            Put =:= Got andalso [0, 0] =:= [sderl_stream:waiting(S) || S <- maps:values(Streams)]
            %% Then both are silent.
            andalso [infinity, infinity] =:= [sderl_stream:next(S) || S <- maps:values(Streams)])
    end).

%% `net`: on the way from a side.
start() ->
    Two = fun(X) -> #{a => X, b => X} end,
    #{now => 0, streams => Two(sderl_stream:new(1)), net => Two([]), put => Two(0), got => Two(0)}.

%% What was taken is a beginning of what was put, at each step: items are their numbers (`take`).

do({put, Side}, #{now := Now, streams := Streams, put := Put} = S) ->
    N = maps:get(Side, Put) + 1,
    out(Side, S#{streams := Streams#{Side := sderl_stream:put(N, Now, maps:get(Side, Streams))},
                 put := Put#{Side := N}});
do({time, Ms}, #{now := Now} = S) -> out(b, out(a, S#{now := Now + Ms}));
do({What, Side, K}, #{net := Net} = S) ->
    case maps:get(Side, Net) of
        [] -> S;
        Frames ->
            Frame = lists:nth(1 + K rem length(Frames), Frames),
            Rest = lists:delete(Frame, Frames),
            case What of
                lose -> S#{net := Net#{Side := Rest}};
                twice -> take(Side, Frame, S);
                deliver -> take(Side, Frame, S#{net := Net#{Side := Rest}})
            end
    end.

out(Side, #{now := Now, streams := Streams, net := Net} = S) ->
    {Frames, Stream} = sderl_stream:frames(Now, maps:get(Side, Streams)),
    S#{streams := Streams#{Side := Stream}, net := Net#{Side := maps:get(Side, Net) ++ Frames}}.

take(From, Frame, #{now := Now, streams := Streams, got := Got} = S) ->
    To = case From of a -> b; b -> a end,
    {Items, Stream} = sderl_stream:received(Frame, Now, maps:get(To, Streams)),
    Had = maps:get(From, Got),
    Items = lists:seq(Had + 1, Had + length(Items)),
    out(To, S#{streams := Streams#{To := Stream}, got := Got#{From := Had + length(Items)}}).

drain(0, S) -> S;
drain(N, S) ->
    drain(N - 1, lists:foldl(fun do/2, S, lists:append(
        lists:duplicate(10, [{deliver, a, 0}, {deliver, b, 0}])
    ) ++ [{time, 1000}])).

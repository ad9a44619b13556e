%% SPDX-License-Identifier: Apache-2.0
-module(sderl_straight_tests).
-moduledoc """
A gateway that sends some messages straight, with a link, the forwarding process behind it and three
receivers: whatever waits where for how long, each receiver gets all in the order sent.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODE, n).

order_test_() ->
    sderl_prop:eunit("what goes straight overtakes nothing", 1000, fun prop_order/0).

%% Steps: so many messages are flushed together, each for one of three processes, as itself or in a
%% frame of which the node finds the receiver; one message passes the link, or the
%% forwarding process, or an answer comes.
prop_order() ->
    ?FORALL(Steps, resize(200, list(frequency([
        {8, {flush, [{alone, frequency([{6, 1}, {1, 2}, {1, 3}])}]}},
        {1,
         {flush, non_empty(resize(3, list({frequency([{4, alone}, {1, frame}]), integer(1, 3)})))}},
        {6, link},
        {6, forward},
        {3, answer}
    ]))), begin
        #{got := Got} = drain(lists:foldl(fun step/2, begun(), Steps)),
        Sent = length([M || {flush, Ms} <- Steps, M <- Ms]),
        Ordered = [Ns =:= lists:sort(Ns) || _ := Reversed <- Got, Ns <- [lists:reverse(Reversed)]],
        Arrived = lists:sum([length(Ns) || _ := Ns <- Got]),
        ?WHENFAIL(io:format("~p~n", [Got]),
                  lists:all(fun(Is) -> Is end, Ordered) andalso Arrived =:= Sent)
    end).

begun() ->
    #{straight => sderl_straight:new(), link => [], forward => [], answers => [], got => #{},
      next => 1}.

step({flush, [{alone, K}]}, #{straight := S0, next := N} = W) ->
    Pid = pid(K),
    {How, S} = sderl_straight:alone(?NODE, Pid, S0),
    onto_link(case How of
        straight -> {straight, Pid, N};
        bundle -> {bundle, [{Pid, N}]};
        {ask, Tag} -> {bundle, [{Pid, N}, {question, Pid, Tag}]}
    end, W#{straight := S, next := N + 1});
step({flush, Messages}, #{straight := S0, next := N} = W) ->
    Numbered = [{pid(K), I} || {I, {_, K}} <- lists:enumerate(N, Messages)],
    S = case lists:keymember(frame, 1, Messages) of
        true -> sderl_straight:forget(?NODE, S0);
        false -> sderl_straight:bundled(?NODE, [Pid || {Pid, _} <- Numbered], S0)
    end,
    onto_link({bundle, Numbered}, W#{straight := S, next := N + length(Messages)});
step(link, #{link := [{straight, Pid, N} | Link]} = W) -> got(Pid, N, W#{link := Link});
step(link, #{link := [Bundle | Link], forward := Forward} = W) ->
    W#{link := Link, forward := Forward ++ [Bundle]};
step(forward, #{forward := [{bundle, Entries} | Forward]} = W) ->
    lists:foldl(fun deliver/2, W#{forward := Forward}, Entries);
step(answer, #{answers := [{Pid, Tag} | Answers], straight := S} = W) ->
    W#{answers := Answers, straight := sderl_straight:answered(?NODE, Pid, Tag, S)};
step(_, W) -> W.

onto_link(Item, #{link := Link} = W) -> W#{link := Link ++ [Item]}.

deliver({question, Pid, Tag}, #{answers := Answers} = W) -> W#{answers := Answers ++ [{Pid, Tag}]};
deliver({Pid, N}, W) -> got(Pid, N, W).

got(Pid, N, #{got := Got} = W) -> W#{got := Got#{Pid => [N | maps:get(Pid, Got, [])]}}.

drain(#{link := [], forward := []} = W) -> W;
drain(W) -> drain(step(forward, step(link, W))).

pid(K) -> list_to_pid("<0." ++ integer_to_list(1_000 + K) ++ ".0>").

%% One message at a time, each answered before the next: after the question all go straight.
calm_test() ->
    Ways = ways([alone, arrived, alone, arrived, alone, arrived, alone, arrived, alone, arrived,
                 alone]),
    ?assertMatch([bundle, bundle, bundle, {ask, _}, straight, straight], Ways).

%% A message that is faster than the answer: the next question comes later.
fast_test() ->
    ?assertMatch([bundle, bundle, bundle, {ask, _}, bundle, bundle, bundle, bundle, bundle, bundle,
                  bundle, bundle, {ask, _}],
                 ways(lists:duplicate(13, alone))).

ways(Steps) -> ways(Steps, sderl_straight:new(), none).

ways([], _, _) -> [];
ways([alone | Steps], S0, Asked) ->
    {How, S} = sderl_straight:alone(?NODE, pid(1), S0),
    [How | ways(Steps, S, case How of {ask, Tag} -> Tag; _ -> Asked end)];
ways([arrived | Steps], S, none) -> ways(Steps, S, none);
ways([arrived | Steps], S, Tag) ->
    ways(Steps, sderl_straight:answered(?NODE, pid(1), Tag, S), none).

%% Answers of calls keep no order; a process of which too many others came is asked about anew.
kinds_test() ->
    ?assertMatch({straight, _}, sderl_straight:alone(?NODE, make_ref(), sderl_straight:new())),
    Known = lists:foldl(fun(_, S) ->
        case sderl_straight:alone(?NODE, pid(1), S) of
            {{ask, Tag}, Next} -> sderl_straight:answered(?NODE, pid(1), Tag, Next);
            {_, Next} -> Next
        end
    end, sderl_straight:new(), lists:seq(1, 4)),
    ?assert(sderl_straight:is_known(?NODE, pid(1), Known)),
    ?assertNot(sderl_straight:is_known(m, pid(1), Known)),
    ?assertNot(sderl_straight:is_known(?NODE, pid(1),
                                       sderl_straight:bundled(?NODE, [pid(2), pid(1)], Known))),
    ?assert(sderl_straight:is_known(?NODE, pid(1), sderl_straight:bundled(?NODE, [pid(2)], Known))),
    ?assertNot(sderl_straight:is_known(?NODE, pid(1), sderl_straight:forget(?NODE, Known))),
    Crowded = lists:foldl(fun(K, S) -> element(2, sderl_straight:alone(?NODE, pid(K), S)) end,
                          Known, lists:seq(2, 300)),
    ?assertNot(sderl_straight:is_known(?NODE, pid(1), Crowded)).

%% SPDX-License-Identifier: Apache-2.0
%% What a socket gets when the hub restarts, and when the socket is slow.
-module(sderl_web_feed_tests).

-include_lib("eunit/include/eunit.hrl").

%% A socket, and a hub that does nothing by itself.
feed(Test) ->
    {spawn, {timeout, 120, fun() ->
        hub(),
        {ok, Feed} =
            sderl_web_feed:start_link(#{cluster => ~"c", writable => false, max_sockets => 5}),
        try
            {ok, [Hello | _]} = sderl_web_feed:join(self(), live),
            ?assertMatch(#{~"type" := ~"hello", ~"mode" := ~"live"}, json:decode(Hello)),
            Test()
        after
            gen_server:stop(Feed),
            gen_server:stop(sderl_mon_hub)
        end
    end}}.

hub() ->
    {ok, Hub} = sderl_mon_hub:start_link(#{interval_ms => 60_000}),
    true = unlink(Hub).

%% Sends the events numbered From to To, and waits until they have reached the feed.
events(From, To) ->
    Event = fun(I) -> #{t => I, kind => node_up, level => info, text => integer_to_binary(I)} end,
    Events = [Event(I) || I <- lists:seq(From, To)],
    sderl_mon_hub:update(node(), #{agent => {~"g", 1}, t => 1, span_ms => 1000, events => Events}),
    _ = sderl_mon_hub:info(),
    _ = sderl_web_feed:info(),
    ok.

next(Type) ->
    receive
        {sderl_web_feed, Text} ->
            sderl_web_feed:ack(self()),
            case json:decode(Text) of
                #{~"type" := Type} = Message -> Message;
                #{} -> next(Type)
            end
    end.

ids(#{~"events" := Events}) -> [Id || #{~"id" := Id} <- Events].

%% Whatever is sent to it, the feed lives and its sockets stay.
ill_typed_test_() ->
    feed(fun() ->
        Feed = whereis(sderl_web_feed),
        Odd = [x, [x | y], [x], #{}, {a, b}, ~"x", 1.5, #{seq => 1}, #{nodes => [], groups => []},
               fun erlang:node/0],
        [Feed ! {sderl_mon, Kind, What}
         || Kind <- [frame, topology, events, findings, missed, events_missed, anew, other, 5],
            What <- Odd],
        [Feed ! {sderl_mon, detail, Node, What} || Node <- [~"a", x, <<255>>], What <- Odd],
        [Feed ! What || What <- Odd ++ [{sderl_mon}, {'DOWN', x, process, y, z}]],
        [gen_server:cast(Feed, {ack, What}) || What <- Odd],
        %% The feed sends nothing to a socket with so long a message queue.
        _ = sderl_web_feed:info(),
        events(1, 2),
        ?assertEqual([1, 2], ids(next(~"events"))),
        ?assertEqual(Feed, whereis(sderl_web_feed))
    end).

%% Events are numbered from 1 again, and a browser starts without any.
a_hub_that_restarts_begins_anew_test_() ->
    feed(fun() ->
        events(1, 3),
        ?assertEqual([1, 2, 3], ids(next(~"events"))),
        ok = gen_server:stop(sderl_mon_hub),
        hub(),
        #{~"range" := null} = next(~"hello"),
        _ = next(~"topology"),
        ?assertEqual([], ids(next(~"events"))),
        events(4, 4),
        ?assertMatch(#{~"events" := [#{~"id" := 1, ~"text" := ~"4"}]}, next(~"events"))
    end).

%% Names and traces are asked for in the cluster that is shown.
a_synthetic_cluster_begins_and_ends_anew_test_() ->
    feed(fun() ->
        events(1, 2),
        ?assertEqual([1, 2], ids(next(~"events"))),
        {ok, _} = sderl_mon_synthetic:start(#{nodes => 4, groups => 1, edges => 4,
                                              interval_ms => 60_000, seed => 1}),
        #{~"mode" := ~"synthetic", ~"life" := Synthetic} = next(~"hello"),
        ?assertMatch(#{mode := synthetic}, sderl_web_feed:current()),
        ok = sderl_mon_synthetic:stop(),
        #{~"mode" := ~"live", ~"life" := Live} = next(~"hello"),
        ?assert(Live =/= Synthetic andalso Live < 1 bsl 53),
        ?assertMatch(#{mode := live}, sderl_web_feed:current())
    end).

%% The events that are still kept come later, with the number of those that are not.
a_slow_socket_is_told_how_many_events_it_missed_test_() ->
    feed(fun() ->
        [events(I, I) || I <- lists:seq(1, 4)],
        [events(5 + 500 * I, 4 + 500 * (I + 1)) || I <- lists:seq(0, 4)],
        ?assertEqual([[1], [2], [3], [4]], [ids(next(~"events")) || _ <- [1, 2, 3, 4]]),
        ?assertEqual(lists:seq(505, 2504), ids(next(~"events"))),
        ?assertMatch(#{~"frames" := 0, ~"events" := 500}, next(~"missed"))
    end).

%% Also a socket whose queue was full when the hub restarted.
a_slow_socket_begins_anew_too_test_() ->
    feed(fun() ->
        [events(I, I) || I <- lists:seq(1, 9)],
        ok = gen_server:stop(sderl_mon_hub),
        hub(),
        _ = sderl_web_feed:info(),
        #{~"range" := null} = next(~"hello"),
        ?assertEqual([], ids(next(~"events")))
    end).

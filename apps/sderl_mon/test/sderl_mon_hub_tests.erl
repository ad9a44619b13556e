%% SPDX-License-Identifier: Apache-2.0
%% The hub as an agent, a master and a subscriber see it.
-module(sderl_mon_hub_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(T0, 1_700_000_000_000).

%% Each test has a hub of its own, and a mailbox.
hub(Test) -> hub(#{interval_ms => 100}, Test).

hub(Opts, Test) ->
    {spawn, {timeout, 120, fun() -> sderl_mon_gen:beside_hub(Opts, Test) end}}.

update(Term, Parts) -> maps:merge(#{agent => {~"g", Term}, t => ?T0, span_ms => 100}, Parts).

frame(Good) ->
    receive
        {sderl_mon, frame, Frame} ->
            case Good(Frame) of
                true -> Frame;
                false -> frame(Good)
            end
    end.

%% ---------------------------------------------------------------- frames and messages

%% Whatever begins anew beside it: what a hub has seen itself does not go for less.
only_an_older_past_is_inherited_test_() ->
    hub(fun() ->
        Past = fun(T) ->
            Frames = [sderl_mon_gen:frame(At, #{}) || At <- [T, T + 1000]],
            Entries = [{At, S, sderl_mon_pack:pack_frame(F)}
                       || #{t := At, span_ms := S} = F <- Frames],
            #{
                past => #{levels => [{0, Entries}, {1000, []}], topologies => [], findings => []},
                events => [#{id => 1, t => T, kind => x, level => info, text => ~"x"}],
                seq => 1
            }
        end,
        ok = sderl_mon_hub:inherit(Past(?T0)),
        ?assertMatch({?T0 - 1000, _}, sderl_mon_hub:range(live)),
        [?assertEqual({error, no_older}, sderl_mon_hub:inherit(Past(T))) || T <- [?T0, ?T0 + 5000]],
        ?assertMatch({?T0 - 1000, _}, sderl_mon_hub:range(live)),
        ?assertMatch({ok, [#{t := ?T0}]}, sderl_mon_hub:events(live, #{kinds => [x]})),
        ok = sderl_mon_hub:inherit(Past(?T0 - 5000)),
        ?assertMatch({?T0 - 6000, _}, sderl_mon_hub:range(live))
    end).

what_is_no_event_is_not_remembered_test() ->
    Event = #{id => 1, t => 1, kind => x, level => info, text => ~"x"},
    Unknown = Event#{kind := ~"kind_without_an_atom"},
    Odd = [x, #{}, Event#{t := x}, Event#{id := 1.5}, Event#{kind := {a}}, Event#{text := "x"}],
    ?assertEqual([Event, Unknown], sderl_mon_clean:remembered(Odd ++ [Event, Unknown])),
    [?assertEqual([], sderl_mon_clean:remembered(List)) || List <- [x, #{}, [Event | x]]].

an_update_becomes_a_frame_test_() ->
    hub(fun() ->
        {ok, #{frame := none, events := [], mode := live, range := {0, 0}}} =
            sderl_mon_hub:subscribe(),
        ok = sderl_mon_hub:watch(~"a"),
        Topology = sderl_mon_gen:topology(#{~"g" => [~"a", ~"b"]}),
        Before = erlang:system_time(millisecond),
        sderl_mon_hub:topology(node(), Topology),
        %% By the hub's clock, as the frames are.
        receive
            {sderl_mon, topology, #{t := Stamp} = T} ->
                ?assertEqual(Topology#{t := Stamp}, T),
                ?assert(Stamp >= Before)
        end,
        Detail = #{t => ?T0, node => ~"a", queues => [1, 2]},
        sderl_mon_hub:update(node(), update(1, #{
            nodes => #{~"a" => #{util => 0.5}},
            links => #{{~"a", ~"b"} => {2, 3}},
            details => #{~"a" => Detail, ~"b" => Detail#{node := ~"b"}},
            events => [sderl_mon_gen:event(?T0, ~"one"), sderl_mon_gen:event(?T0, ~"two")],
            lost => #{dropped => 4}
        })),
        receive
            {sderl_mon, events, Events} ->
                ?assertMatch([#{id := 1, text := ~"one"}, #{id := 2, text := ~"two"}], Events)
        end,
        receive {sderl_mon, detail, ~"a", D} -> ?assertEqual(Detail, D) end,
        Frame = frame(fun(#{nodes := N}) -> N =/= #{} end),
        ?assertMatch(#{links := #{{~"a", ~"b"} := {2, 3}}, lost := #{dropped := 4}, epoch := 1},
                     Frame),
        ?assertEqual({ok, Detail}, sderl_mon_hub:detail(~"a")),
        ?assertEqual({error, none}, sderl_mon_hub:detail(~"nobody")),
        ?assertEqual([~"a"], sderl_mon_hub:watched()),
        {ok, #{topology := Then}} = sderl_mon_hub:at(live, maps:get(t, Frame)),
        ?assertEqual(sderl_mon_history:shape(Topology), sderl_mon_history:shape(Then)),
        ?assertMatch({ok, [#{id := 2}]}, sderl_mon_hub:events(live, #{limit => 1})),
        %% An agent that is silent is believed for three intervals, and not for ever.
        _ = frame(fun(#{nodes := N}) -> N =:= #{} end),
        ok = sderl_mon_hub:unwatch(~"a"),
        ok = sderl_mon_hub:unsubscribe(),
        ?assertEqual({error, not_subscribed}, sderl_mon_hub:watch(~"a"))
    end).

what_a_deposed_agent_says_is_counted_test_() ->
    hub(fun() ->
        {ok, _} = sderl_mon_hub:subscribe(),
        Sample = fun(V) -> #{nodes => #{~"a" => #{util => V}}} end,
        sderl_mon_hub:update(node(), update(2, Sample(0.5))),
        sderl_mon_hub:update(node(), update(1, Sample(0.9))),
        %% A frame may come between the two: then the next one has the loss.
        IsLost = fun(#{lost := Lost}) -> is_map_key(updates_stale, Lost) end,
        #{nodes := #{~"a" := #{util := 0.5}}} = First = frame(fun(#{nodes := N}) -> N =/= #{} end),
        #{nodes := Nodes, lost := #{updates_stale := 1}} =
            case IsLost(First) of true -> First; false -> frame(IsLost) end,
        ?assertEqual([], [Other || _ := #{util := Other} <- Nodes, Other =/= 0.5]),
        ?assertMatch(#{lost := #{updates_stale := 1}}, sderl_mon_hub:info())
    end).

what_a_deposed_master_says_is_counted_test_() ->
    hub(fun() ->
        Tell = fun(Epoch, T) ->
            sderl_mon_hub:topology(node(), (sderl_mon_gen:topology(#{}))#{epoch := Epoch, t := T})
        end,
        %% Whatever their clocks say.
        [Tell(Epoch, T) || {Epoch, T} <- [{5, ?T0}, {4, ?T0 + 60_000}, {4, ?T0 - 60_000}]],
        ?assertMatch(#{epoch := 5}, sderl_mon_hub:now_topology()),
        ?assertMatch(#{lost := #{topologies_stale := 2}}, sderl_mon_hub:info()),
        Tell(6, ?T0 - 60_000),
        ?assertMatch(#{epoch := 6}, sderl_mon_hub:now_topology())
    end).

%% All monitoring nodes may have been started anew.
a_lower_epoch_is_believed_after_a_silence_test() ->
    Given = fun(Epoch) -> (sderl_mon_gen:topology(#{}))#{epoch := Epoch} end,
    Take = fun(Epoch, Now, Told) -> sderl_mon_hub_topology:take(Given(Epoch), Now, Told) end,
    {ok, Told} = Take(6, 0, sderl_mon_hub_topology:new(0)),
    ?assertEqual({error, topologies_stale}, Take(1, 14_999, Told)),
    ?assertEqual({error, topologies_malformed}, sderl_mon_hub_topology:take(x, 0, Told)),
    {ok, Anew} = Take(1, 15_000, Told),
    ?assertMatch(#{epoch := 1}, sderl_mon_hub_topology:present(Anew)).

%% Once, and again when the history is another.
a_topology_is_in_the_history_once_test() ->
    History = sderl_mon_history:new(#{}),
    {ok, Told} = sderl_mon_hub_topology:take(sderl_mon_gen:topology(#{}), 0,
                                             sderl_mon_hub_topology:new(0)),
    {One, Told1} = sderl_mon_hub_topology:record(?T0, History, Told),
    ?assertNotEqual(History, One),
    ?assertEqual({One, Told1}, sderl_mon_hub_topology:record(?T0 + 1, One, Told1)),
    {Other, _} = sderl_mon_hub_topology:record(?T0, History, sderl_mon_hub_topology:renew(Told1)),
    ?assertEqual(One, Other).

%% Wrong values change nothing, and a feed has its own interval.
options_test() ->
    Options = sderl_mon_hub_options:new(sderl_mon_config:defaults()),
    {ok, Fast} = sderl_mon_hub_options:change(#{interval_ms => 100, other => x}, Options),
    ?assertEqual(Options#{interval_ms := 100}, Fast),
    [?assertEqual({error, {bad_option, Key, x}}, sderl_mon_hub_options:change(#{Key => x}, Options))
     || Key <- [interval_ms, history, thresholds]],
    ?assertEqual([[history, interval_ms], [history]],
                 [lists:sort(maps:keys(sderl_mon_hub_options:select(
                     Mode, #{history => #{}, interval_ms => 100, other => x}
                 ))) || Mode <- [live, synthetic]]).

%% The groups of a synthetic cluster stand in a ring, and its edges are between different nodes.
synthetic_layout_test() ->
    Nodes = sderl_mon_synthetic_layout:nodes(50),
    Groups = sderl_mon_synthetic_layout:groups(Nodes, 7),
    Members = [In || {_, In} <- Groups],
    ?assertEqual(49, length(lists:usort(lists:append(Members)))),
    [?assertEqual(hd(Next), lists:last(In))
     || {In, Next} <- lists:zip(Members, tl(Members) ++ [hd(Members)])],
    {Edges, _} = sderl_mon_synthetic_layout:edges(Groups, 60, rand:seed_s(exsss, 1)),
    ?assertEqual(60, length(lists:usort([{F, T} || {{F, T}, _, _} <- Edges, F =/= T]))).

%% Many small ones: each node is in several, all are different, and the hub takes all of it.
many_synthetic_groups_test_() ->
    {timeout, 120, fun() ->
        [
            begin
                Nodes = sderl_mon_synthetic_layout:nodes(Count),
                Groups = sderl_mon_synthetic_layout:groups(Nodes, Most),
                ?assertEqual(Most, sderl_mon_synthetic_layout:most_groups(Count)),
                Sets = [lists:usort(In) || {_, In} <- Groups],
                ?assertEqual({Most, [3]}, {length(Groups), lists:usort([length(S) || S <- Sets])}),
                [?assertEqual(hd(Next), lists:last(In))
                 || {{_, In}, {_, Next}} <- lists:zip(lists:droplast(Groups), tl(Groups))]
            end
         || {Count, Most} <- [{3, 3}, {4, 8}, {200, 2000}]
        ],
        ?assertEqual([1, 1, 2000],
                     [sderl_mon_synthetic_layout:most_groups(N) || N <- [1, 2, 2000]]),
        Feed = sderl_mon_synthetic_feed:new(#{nodes => 200, groups => 1200, edges => 1000}, ?T0),
        {[{topology, Topology}, {update, Update}], _} =
            sderl_mon_synthetic_feed:next(?T0 + 200, [], Feed),
        #{groups := Shown} = Topology,
        ?assertEqual(1200, map_size(Shown)),
        ?assertEqual({ok, Topology}, sderl_mon_clean:topology(Topology)),
        ?assertMatch({ok, _, 0}, sderl_mon_clean:update(Update))
    end}.

an_event_that_is_told_again_is_one_test_() ->
    hub(fun() ->
        {ok, _} = sderl_mon_hub:subscribe(),
        Event = sderl_mon_gen:event(?T0, ~"once"),
        [sderl_mon_hub:update(node(), (update(1, #{events => [Event]}))#{agent := {Scope, 1}})
         || Scope <- [~"old", ~"new"]],
        sderl_mon_hub:update(node(), update(1, #{events => [sderl_mon_gen:event(?T0, ~"other")]})),
        receive {sderl_mon, events, [#{id := 2, text := ~"other"}]} -> ok end,
        ?assertMatch({ok, [#{id := 2}, #{id := 1, text := ~"once"}]},
                     sderl_mon_hub:events(live, #{}))
    end).

%% Nothing that happened is left out uncounted, however often it did.
many_equal_events_test() ->
    Event = sderl_mon_gen:event(?T0, ~"again"),
    Events = lists:foldl(
        fun(_, Acc) ->
            {New, Acc1} = sderl_mon_events:add({~"g", 1}, lists:duplicate(500, Event), Acc),
            ?assertEqual(500, length(New)),
            Acc1
        end,
        sderl_mon_events:new(),
        lists:seq(1, 20)
    ),
    ?assertEqual(5_000, sderl_mon_events:count(Events)),
    ?assertMatch([#{id := 5_001} | _], sderl_mon_events:to_list(Events)),
    ?assertMatch({[], _}, sderl_mon_events:add({~"g", 2}, [Event], Events)).

%% Two agents stamp it with two times; the node's own is the same, and may be far behind.
events_of_a_takeover_test() ->
    Event = fun(I, Ms) -> (sderl_mon_gen:event(?T0 + I + Ms, ~"e"))#{node_t => I} end,
    Old = sderl_mon_gen:event(?T0 - 1, ~"by our clock"),
    {_, First} = sderl_mon_events:add({~"g", 1}, [Old], sderl_mon_events:new()),
    Add = fun(Teller, Is, Ms, Acc) ->
        sderl_mon_events:add({~"g", Teller}, [Event(I, Ms) || I <- Is], Acc)
    end,
    Told = lists:foldl(fun(From, Acc) ->
        element(2, Add(1, lists:seq(From, From + 499), 0, Acc))
    end, First, lists:seq(1, 11_501, 500)),
    ?assertMatch({[], _}, Add(2, lists:seq(7_001, 12_000), 7, Told)),
    ?assertMatch({[#{id := 12_002}], _}, Add(2, [12_001], 7, Told)),
    %% Long ago.
    ?assertMatch({[_], _}, Add(2, [1], 7, Told)).

%% ---------------------------------------------------------------- what is not as it should be

garbage_is_counted_and_harms_nothing_test_() ->
    hub(fun() ->
        Hub = whereis(sderl_mon_hub),
        Bad = [
            x,
            #{},
            #{agent => {g, 1}, t => 1, span_ms => 1},
            #{agent => {~"g", 1}, t => 1, span_ms => 0},
            update(x, #{})
        ],
        [sderl_mon_hub:update(node(), U) || U <- Bad],
        [sderl_mon_hub:topology(node(), T)
         || T <- [x, #{},
                  #{epoch => 1, t => 1, nodes => #{a => b}, groups => #{}, monitors => []}]],
        gen_server:cast(Hub, {sderl_mon_update, 2, #{}}),
        gen_server:cast(Hub, hello),
        Hub ! hello,
        Partly = update(1, #{
            nodes => #{~"a" => #{util => 0.5}, ~"b" => #{util => ~"much"}, b => #{},
                       <<255>> => #{}},
            links => #{{~"a", ~"b"} => {1, 1}, x => {1, 1}, {~"a", ~"c"} => {-1, 1},
                       {~"a", ~"d"} => {1}},
            kinds => x,
            events => [#{}, (sderl_mon_gen:event(?T0, <<"cut in a character ", 195>>))#{
                details => lists:seq(1, 5000)
            }]
        }),
        {ok, _} = sderl_mon_hub:subscribe(),
        sderl_mon_hub:update(node(), Partly),
        receive
            {sderl_mon, events, [Event]} ->
                ?assertEqual(~"cut in a character ", maps:get(text, Event))
        end,
        #{nodes := Nodes, links := Links} = frame(fun(#{nodes := N}) -> N =/= #{} end),
        %% A node whose number is none is there without it.
        ?assertEqual({#{~"a" => #{util => 0.5}, ~"b" => #{}}, [{~"a", ~"b"}]},
                     {Nodes, maps:keys(Links)}),
        ?assertMatch(
            #{lost := #{updates_malformed := 7, topologies_malformed := 3, other_version := 1,
                        update_entries := 8}},
            sderl_mon_hub:info()
        ),
        ?assertEqual(Hub, whereis(sderl_mon_hub))
    end).

any_term_test_() ->
    sderl_prop:eunit("any term is an update or an error", 200, fun() ->
        ?FORALL(Parts, map(oneof([nodes, links, kinds, groups, details, events, lost, agent, t]),
                           sderl_mon_gen:term()),
                begin
                    case sderl_mon_clean:update(maps:merge(update(1, #{}), Parts)) of
                        {ok, Good, Bad} when is_integer(Bad) ->
                            Frame = sderl_mon_frame:combine(
                                [Good], #{seq => 1, t => 1, span_ms => 1, epoch => 1, lost => #{}}
                            ),
                            is_binary(sderl_mon_pack:pack_frame(Frame));
                        {error, not_an_update} ->
                            true
                    end
                end)
    end).

a_slow_subscriber_is_left_out_and_told_test_() ->
    hub(fun() ->
        {ok, #{life := Given}} = sderl_mon_hub:subscribe(),
        [self() ! filler || _ <- lists:seq(1, 150)],
        sderl_mon_hub:update(node(), update(
            1, #{events => [sderl_mon_gen:event(?T0 + I, ~"e") || I <- lists:seq(1, 7)]}
        )),
        %% Somebody who keeps up counts the frames.
        Me = self(),
        Other = spawn_link(fun() ->
            {ok, _} = sderl_mon_hub:subscribe(),
            [frame(fun(_) -> true end) || _ <- [1, 2, 3]],
            Me ! three
        end),
        receive three -> ok end,
        unlink(Other),
        [receive filler -> ok end || _ <- lists:seq(1, 150)],
        receive {sderl_mon, missed, N} -> ?assert(N >= 2) end,
        receive {sderl_mon, events_missed, Events} -> ?assertEqual(7, Events) end,
        receive {sderl_mon, anew, Life} -> ?assertEqual(Given, Life) end,
        receive {sderl_mon, topology, _} -> ok end,
        receive {sderl_mon, findings, _} -> ok end
    end).

a_dead_subscriber_is_forgotten_test_() ->
    hub(fun() ->
        {Pid, Ref} = spawn_monitor(fun() -> {ok, _} = sderl_mon_hub:subscribe() end),
        receive {'DOWN', Ref, process, Pid, normal} -> ok end,
        %% The hub hears of it by itself, and maybe later.
        ?assertEqual(ok, sderl_fleet:await(fun() ->
            #{subscribers := Subscribers} = sderl_mon_hub:info(),
            Subscribers =:= 0 orelse Subscribers
        end, 60_000))
    end).

%% ---------------------------------------------------------------- a feed

a_feed_has_the_hub_alone_test_() ->
    hub(fun() ->
        {ok, _} = sderl_mon_hub:subscribe(),
        {ok, Feed} = sderl_mon_synthetic:start(#{nodes => 12, groups => 3, edges => 40,
                                                 interval_ms => 100, seed => 4}),
        ?assertEqual({error, busy}, sderl_mon_hub:feed()),
        sderl_mon_hub:update(node(), update(1, #{nodes => #{~"intruder" => #{}}})),
        #{nodes := Nodes} = frame(fun(#{links := L}) -> map_size(L) > 30 end),
        ?assertNot(is_map_key(~"intruder", Nodes)),
        ?assertMatch(#{mode := synthetic, interval_ms := 100}, sderl_mon_hub:info()),
        ?assertMatch({ok, #{total := N, more := true, names := [_]}} when N > 1,
                     sderl_mon_synthetic:names(~"group01", #{limit => 1})),
        {ok, #{names := [#{name := Name, node := Owner} | _]}} =
            sderl_mon_synthetic:names(~"group01", #{}),
        ?assertMatch({ok, #{node := Owner}}, sderl_mon_synthetic:lookup(~"group01", Name)),
        ?assertEqual({error, not_found}, sderl_mon_synthetic:lookup(~"group01", ~"nobody")),
        ?assertEqual({error, not_found}, sderl_mon_synthetic:names(~"no group", #{})),
        ok = sderl_mon_synthetic:stop(),
        ?assertNot(is_process_alive(Feed)),
        receive {sderl_mon, topology, #{nodes := Empty}} when Empty =:= #{} -> ok end,
        ?assertMatch(#{mode := live}, sderl_mon_hub:info())
    end).

%% The hub is suspended, so that the word of the first one's end is behind the call of the second.
a_feed_that_ended_is_replaced_test_() ->
    hub(fun() ->
        Me = self(),
        {Old, Ref} = spawn_monitor(fun() -> Me ! sderl_mon_hub:feed(), receive stop -> ok end end),
        receive ok -> ok end,
        Hub = whereis(sderl_mon_hub),
        true = erlang:suspend_process(Hub),
        Request = gen_server:send_request(Hub, {feed, self()}),
        Old ! stop,
        receive {'DOWN', Ref, process, Old, normal} -> ok end,
        true = erlang:resume_process(Hub),
        ?assertEqual({reply, ok}, gen_server:receive_response(Request, 60_000))
    end).

the_same_seed_is_the_same_feed_test_() -> {timeout, 120, fun the_same_seed_is_the_same_feed/0}.

the_same_seed_is_the_same_feed() ->
    Run = fun() ->
        Feed = sderl_mon_synthetic_feed:new(#{nodes => 60, groups => 6, edges => 200, seed => 9},
                                            ?T0),
        lists:mapfoldl(fun(I, F) -> sderl_mon_synthetic_feed:next(?T0 + I * 1000, [], F) end, Feed,
                       lists:seq(1, 90))
    end,
    {Outs, _} = Run(),
    ?assertMatch({Outs, _}, Run()),
    Kinds = lists:usort([K || {update, #{events := Es}} <- lists:append(Outs), #{kind := K} <- Es]),
    ?assertEqual([], [node_down, node_up, group_created, group_deleted] -- Kinds),
    %% All of it is what the hub takes.
    [?assertMatch({ok, _, 0}, sderl_mon_clean:update(U)) || {update, U} <- lists:append(Outs)],
    [?assertEqual({ok, T}, sderl_mon_clean:topology(T)) || {topology, T} <- lists:append(Outs)].

%% ---------------------------------------------------------------- options, telemetry

options_test_() ->
    hub(fun() ->
        ?assertEqual({error, {bad_option, interval_ms, 5}},
                     sderl_mon_hub:configure(#{interval_ms => 5})),
        [
            ?assertEqual({error, {bad_option, Key, Value}},
                         sderl_mon_hub:configure(#{Key => Value}))
         || {Key, Value} <- [{thresholds, #{window_ms => x}}, {thresholds, #{gateway_util => 0}},
                             {thresholds, #{nothing => 1}}, {history, #{raw => 0}}]
        ],
        %% A look at numbers of that window does no harm.
        Thresholds = #{window_ms => 15000.0, most => 0.5, queue_msgs => 0.001},
        ?assertEqual(ok, sderl_mon_hub:configure(#{thresholds => Thresholds})),
        Looks = sderl_mon_hub_findings:add_frame(sderl_mon_gen:frame(?T0, #{}),
                                                 sderl_mon_hub_findings:new(Thresholds, ?T0)),
        ?assertMatch({ok, {keep, []}, _}, sderl_mon_hub_findings:look(
            ?T0 + 6000, sderl_mon_gen:topology(#{}), #{}, Looks
        )),
        ?assertEqual(ok, sderl_mon_hub:configure(#{interval_ms => 500, history => #{raw => 3},
                                                   unknown => 1})),
        ?assertMatch(#{interval_ms := 500}, sderl_mon_hub:info()),
        whereis(sderl_mon_hub) ! {sderl_mon_config, #{interval_ms => 200, seeds => []}},
        ?assertMatch(#{interval_ms := 200}, sderl_mon_hub:info())
    end).

%% A stand-in for the library, made here so that no file of that name is on anybody's path.
telemetry_test_() ->
    hub(fun() ->
        true = register(?MODULE, self()),
        Code = merl:quote(["-module(telemetry).", "-export([execute/3]).",
                           "execute(N, M, X) -> sderl_mon_hub_tests ! {told, N, M, X}, error(x)."]),
        {ok, _} = merl:compile_and_load(Code, []),
        try
            sderl_mon_hub:update(node(), update(1, #{links => #{{~"a", ~"b"} => {2, 30}},
                                                     events => [sderl_mon_gen:event(?T0, ~"x")]})),
            receive
                {told, [sderl_mon, event], #{count := 1}, #{id := 1, kind := node_down}} -> ok
            end,
            receive
                {told, [sderl_mon, frame], #{links := 1, msgs_s := 2, bytes_s := 30, lost := 0},
                 #{seq := _}} ->
                    ok
            end,
            sderl_mon_telemetry:finding(#{id => ~"f", kind => bypass, severity => warning}),
            receive {told, [sderl_mon, finding], #{count := 1}, #{id := ~"f"}} -> ok end
        after
            true = code:delete(telemetry),
            code:purge(telemetry)
        end
    end).

a_slower_agent_is_believed_longer_test_() ->
    hub(fun() ->
        {ok, _} = sderl_mon_hub:subscribe(),
        sderl_mon_hub:update(node(),
                             (update(1, #{nodes => #{~"a" => #{util => 0.5}}}))#{span_ms := 300}),
        _ = frame(fun(#{nodes := N}) -> N =/= #{} end),
        %% Three of its intervals are nine of the hub's.
        ?assertEqual(8, length([Seen
                                || _ <- lists:seq(1, 8),
                                   #{nodes := #{~"a" := Seen}} <- [frame(fun(_) -> true end)]])),
        _ = frame(fun(#{nodes := N}) -> N =:= #{} end)
    end).

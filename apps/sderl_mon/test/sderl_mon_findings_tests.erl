%% SPDX-License-Identifier: Apache-2.0
%% Each finding on a cluster made for it: where it appears, and just below, where it does not.
-module(sderl_mon_findings_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(T0, 1_700_000_000_000).

%% ---------------------------------------------------------------- the rules

bypass_test() ->
    ?assertMatch([#{where := #{from := ~"a1", to := ~"b1"},
                    evidence := [#{value := 1.0, unit := ~"msg/s"} | _]}],
                 found(bypass,
                       #{links => #{{~"a1", ~"b1"} => {0.6, 60}, {~"b1", ~"a1"} => {0.4, 40}}})),
    ?assertEqual([], found(bypass, #{links => #{{~"a1", ~"b1"} => {0.99, 99}}})),
    %% In one group, and over the gateway, is as it should be.
    ?assertEqual([], found(bypass,
                           #{links => #{{~"a1", ~"a2"} => {100, 1}, {~"a1", ~"gw"} => {100, 1},
                                        {~"gw", ~"b1"} => {100, 1}}})),
    %% No chain of live gateways leads there.
    ?assertEqual([], found(bypass, #{links => #{{~"a1", ~"b1"} => {5, 5}},
                                     nodes => #{~"gw" => #{status => down}}})),
    %% Somebody asked for the link.
    ?assertEqual([], found(bypass,
                           #{links => #{{~"a1", ~"b1"} => {5, 5}},
                             details => #{~"b1" => #{links => [link(~"a1", [~"caller"], 5)]}}})).

the_way_over_gateways_test() ->
    [#{evidence := Evidence}] = found(bypass, #{links => #{{~"a1", ~"c1"} => {5, 5}},
                                                groups => #{~"c" => [~"b1", ~"c1", ~"c2"]}}),
    ?assertMatch([#{value := ~"a1 > gw > b1 > c1"}],
                 [E || #{label := ~"way over gateways"} = E <- Evidence]).

%% Nodes that are in a thousand groups each are looked at in little memory, and ways over them are
%% found.
gateways_of_many_groups_test() ->
    Groups = [iolist_to_binary([~"g", integer_to_list(I)]) || I <- lists:seq(1, 1_200)],
    Nodes = [iolist_to_binary([~"n", integer_to_list(I)]) || I <- lists:seq(1, 10)],
    Info = #{status => up, hidden => false, source => probe},
    Topology = #{
        epoch => 1, t => ?T0, monitors => [],
        nodes => maps:merge(
            #{N => Info#{groups => Groups} || N <- Nodes},
            #{~"a" => Info#{groups => [~"a"]}, ~"b" => Info#{groups => [~"b"]},
              ~"gw" => Info#{groups => [~"a", ~"g7"]}, ~"gx" => Info#{groups => [~"b", ~"g1200"]}}
        ),
        groups => #{}
    },
    Frame = #{seq => 1, t => ?T0, span_ms => 1000, epoch => 1, nodes => #{}, groups => #{},
              links => #{}, kinds => #{}, lost => #{}},
    {Pid, Monitor} = spawn_opt(
        fun() ->
            View = sderl_mon_find_view:new(Topology, [Frame], #{}, 5_000),
            exit({sderl_mon_find_view:chain(~"a", ~"b", View),
                  sderl_mon_find_view:chain(~"a", ~"nobody", View)})
        end,
        [monitor, {max_heap_size, #{size => 2_000_000, kill => true, error_logger => false}}]
    ),
    receive
        {'DOWN', Monitor, process, Pid, Why} ->
            ?assertEqual({{ok, [~"gw", ~"n1", ~"gx"]}, none}, Why)
    end.

idle_link_test() ->
    Idle = fun(Reasons, AgeS, Rate) ->
        found(idle_link, #{links => #{{~"a1", ~"b1"} => {Rate, 1}},
                           details => #{~"a1" => #{links => [link(~"b1", Reasons, AgeS)]}}})
    end,
    ?assertMatch([#{where := #{from := ~"a1", to := ~"b1"}, saves := #{links := 1}}],
                 Idle([], 700, 0.1)),
    ?assertEqual([], Idle([], 500, 0.1)),
    ?assertEqual([], Idle([], 700, 0.2)),
    ?assertEqual([], Idle([~"caller"], 700, 0.0)).

an_idle_link_told_by_both_ends_is_one_finding_test() ->
    ?assertMatch([_], found(idle_link,
                            #{details => #{~"a1" => #{links => [link(~"b1", [], 700)]},
                                           ~"b1" => #{links => [link(~"a1", [], 700)]}}})),
    ?assertEqual([],
                 found(idle_link,
                       #{details => #{~"a1" => #{links => [link(~"b1", [], 700)]},
                                      ~"b1" => #{links => [link(~"a1", [~"{lookup,g}"], 700)]}}})).

misplaced_node_test() ->
    Talks = fun(Own, Cross) ->
        #{links => #{{~"a1", ~"a2"} => {Own, 1}, {~"a1", ~"b1"} => {Cross / 2, 1},
                     {~"b2", ~"a1"} => {Cross / 2, 1}}}
    end,
    ?assertMatch([#{where := #{group := ~"b"}}],
                 of_node(~"a1", found(misplaced_node, Talks(5, 10)))),
    ?assertEqual([], found(misplaced_node, Talks(1, 9.9))),
    ?assertEqual([], found(misplaced_node, Talks(6, 11.9))),
    %% Registrations there would cost more than the messages.
    ?assertEqual([], of_node(~"a1", found(misplaced_node,
                                          (Talks(0, 20))#{rates => #{~"b" => #{regs_s => 11}}}))).

of_node(Node, Found) -> [F || #{where := #{node := N}} = F <- Found, N =:= Node].

%% a1 of a = {a1, a2, a3, gw} talks to a2, b1 and b2 of b = {gw, b1, b2, b3}: now linked to a2, a3,
%% gw, b1, b2; there to gw, b1, b2, b3, a2.
what_a_move_saves_test() ->
    Links = #{{~"a1", ~"a2"} => {5, 1}, {~"a1", ~"b1"} => {20, 1}, {~"b2", ~"a1"} => {20, 1},
              {~"a1", ~"gw"} => {7, 1}},
    [#{saves := Saves}] = of_node(~"a1", found(misplaced_node, #{
        links => Links, rates => #{~"a" => #{regs_s => 10}, ~"b" => #{regs_s => 4}}
    })),
    ?assertEqual(#{links => 0, msgs_s => 40 - 5 + 2 * (10 - 4)},
                 maps:map(fun(_, V) -> round(V) end, Saves)),
    [#{saves := #{links := 1}}] =
        of_node(~"a1", found(misplaced_node, #{links => maps:remove({~"a1", ~"a2"}, Links)})).

a_free_node_belongs_somewhere_test() ->
    [#{remedy := Remedy}] = of_node(~"f", found(misplaced_node, #{
        links => #{{~"f", ~"b1"} => {30, 1}}, nodes => #{~"f" => #{groups => []}}
    })),
    ?assertMatch({_, _}, binary:match(Remedy, ~"s_group:add_nodes(b, ['f'])")).

gateway_test() ->
    Of = fun(Sample) -> found(gateway_saturated, #{samples => #{~"gw" => Sample}}) end,
    ?assertMatch([#{where := #{node := ~"gw"}, severity := warning}], Of(#{util => 0.8})),
    ?assertEqual([], Of(#{util => 0.79})),
    ?assertMatch([_], Of(#{out_bytes_s => 50_000_000})),
    ?assertEqual([], Of(#{out_bytes_s => 49_000_000})),
    Waits = fun(Bytes) ->
        found(gateway_saturated, #{
            details => #{~"gw" => #{links => [(link(~"b1", [~"{group,b}"], 5))#{pending => Bytes}]}}
        })
    end,
    ?assertMatch([#{severity := critical}], Waits(524_288)),
    ?assertEqual([], Waits(524_287)),
    %% Another node may be as busy as it likes.
    ?assertEqual([], found(gateway_saturated,
                           #{samples => #{~"a1" => #{util => 1.0, out_bytes_s => 1.0e9}}})).

group_too_large_test() ->
    Members = fun(N) -> #{~"big" => [integer_to_binary(I) || I <- lists:seq(1, N)]} end,
    Of = fun(N, Rate) ->
        found(group_too_large, #{groups => Members(N), rates => #{~"big" => #{regs_s => Rate}}})
    end,
    ?assertMatch([#{where := #{group := ~"big"}, saves := #{msgs_s := 2500.0}}], Of(50, 50.0)),
    ?assertEqual([], Of(50, 49.9)),
    ?assertEqual([], Of(9, 10_000.0)),
    ?assertMatch([_], Of(10, 250.0)).

hot_name_test() ->
    %% Two seconds of it.
    Of = fun(Msgs, Others) ->
        found(hot_name, #{details => #{~"a1" => #{span_ms => 2000, traffic => [
            #{from => ~"x", to => ~"hot", msgs => 2 * Msgs},
            #{from => ~"x", to => ~"cold", msgs => 2 * Others}
        ]}}})
    end,
    ?assertMatch([#{where := #{to := ~"hot"}}], Of(100, 99)),
    ?assertMatch([#{where := #{to := ~"cold"}}], Of(100, 101)),
    ?assertEqual([], Of(99, 1)).

not_converged_test() ->
    ?assertMatch([#{where := #{node := ~"a1"}, text := ~"a1 is not at rest: left out"}],
                 found(not_converged, #{details => #{~"a1" => #{problems => [~"left out"]}}})),
    ?assertEqual([], found(not_converged, #{details => #{~"a1" => #{problems => []}}})).

%% What all members say is told once.
not_converged_is_one_finding_of_one_cause_test() ->
    Said = fun(Nodes, Problem) -> #{Node => #{problems => [Problem]} || Node <- Nodes} end,
    Aside = ~"a: [a3] are set aside",
    ?assertMatch([#{where := #{node := ~"a1"},
                    text := ~"a1 and 2 others are not at rest: a: [a3] are set aside"}],
                 found(not_converged, #{details => Said([~"gw", ~"a1", ~"a2"], Aside)})),
    ?assertMatch([#{text := ~"a1 and gw are not at rest: a: [a3] are set aside"},
                  #{text := ~"b1 is not at rest: left out"}],
                 found(not_converged, #{details => maps:merge(Said([~"gw", ~"a1"], Aside),
                                                              Said([~"b1"], ~"left out"))})),
    %% The node is down, which is said already; not so of one that is up.
    Down = #{~"a3" => #{status => down}},
    ?assertEqual([], found(not_converged, #{nodes => Down, details => Said([~"a1"], Aside)})),
    ?assertMatch([_], found(not_converged,
                            #{nodes => Down,
                              details => Said([~"a1"], ~"a: [a2, a3] are set aside")})).

no_coordinator_test() ->
    ?assertMatch([#{where := #{group := ~"a"}, severity := critical}],
                 found(no_coordinator, #{coordinators => #{~"a" => undefined}})),
    ?assertEqual([], found(no_coordinator, #{})),
    %% Where only one is left there may be none.
    Down = #{N => #{status => down} || N <- [~"a2", ~"a3", ~"gw"]},
    ?assertEqual([], found(no_coordinator, #{coordinators => #{~"a" => undefined}, nodes => Down})).

majority_lost_test() ->
    ?assertMatch(
        [#{where := #{group := ~"a"}, severity := critical}],
        found(majority_lost, #{minorities => #{~"a" => [~"a1"]}})
    ),
    ?assertEqual([], found(majority_lost, #{})).

node_down_test() ->
    ?assertMatch([#{where := #{node := ~"a1"}, severity := critical}],
                 found(node_down, #{nodes => #{~"a1" => #{status => down}}})),
    [#{remedy := Remedy, text := Text}] =
        found(node_down, #{nodes => #{~"a1" => #{status => unreachable}}}),
    ?assertEqual(~"a1 does not answer the monitoring; it is a member of a.", Text),
    ?assertNotEqual(nomatch, binary:match(Remedy, ~"was stopped or hangs")),
    ?assertEqual([], found(node_down, #{})).

limits_test() ->
    Of = fun(Limits) -> found(limit_near, #{details => #{~"a1" => #{limits => Limits}}}) end,
    ?assertMatch([#{severity := warning}], Of(#{procs => [80, 100]})),
    ?assertEqual([], Of(#{procs => [79, 100]})),
    ?assertMatch([#{severity := critical}], Of(#{atoms => [96, 100]})),
    ?assertMatch([_, _], Of(#{ports => [80, 100], ets => [80, 100]})),
    ?assertEqual([], Of(#{})).

memory_test() ->
    Sizes = fun(Bytes) ->
        found(memory_outlier,
              #{samples => #{~"a1" => #{mem => Bytes}, ~"a2" => #{mem => 200_000_000},
                             ~"a3" => #{mem => 100_000_000}}})
    end,
    ?assertMatch([#{where := #{node := ~"a1"}}], Sizes(800_000_000)),
    ?assertEqual([], Sizes(799_000_000)).

queue_test() ->
    Of = fun(Length) ->
        found(long_queue, #{samples => #{~"a1" => #{mq_max => Length}}, details => #{
            ~"a1" => #{top => [#{pid => ~"<0.9.0>", name => ~"slow", queue => Length}]}
        }})
    end,
    ?assertMatch([#{severity := warning, evidence := [_, #{value := ~"<0.9.0> slow"}]}],
                 Of(10_000)),
    ?assertMatch([#{severity := critical}], Of(100_000)),
    ?assertEqual([], Of(9999)).

%% Of a node that is up; one for each alarm.
node_alarm_test() ->
    Details = #{~"a1" => #{alarms => [~"{disk_almost_full,\"/\"}", ~"x: y"]}},
    ?assertMatch([#{where := #{node := ~"a1", to := ~"x: y"}, severity := warning,
                    text := ~"An alarm is set on a1: x: y"},
                  #{where := #{to := <<"{disk_almost_full", _/binary>>}}],
                 found(node_alarm, #{details => Details})),
    ?assertEqual([], found(node_alarm, #{details => Details,
                                         nodes => #{~"a1" => #{status => down}}})),
    ?assertEqual([], found(node_alarm, #{details => #{~"a1" => #{alarms => []}}})).

overloaded_test() ->
    Of = fun(Util, Queue) ->
        found(overloaded, #{samples => #{~"a1" => #{util => Util, run_queue => Queue}}})
    end,
    ?assertMatch([_], Of(0.95, 50)),
    ?assertEqual([], Of(0.94, 500)),
    ?assertEqual([], Of(1.0, 49)).

not_watched_test() ->
    ?assertMatch([#{evidence := [#{value := ~"no permission"}]}],
                 found(not_watched,
                       #{nodes => #{~"a1" => #{source => none, why => ~"no permission"}}})),
    ?assertEqual([], found(not_watched, #{nodes => #{~"a1" => #{source => stock}}})).

lost_test() ->
    ?assertMatch([#{where := #{to := ~"events_dropped"}, evidence := [#{value := 3}]}],
                 found(samples_lost, #{lost => #{events_dropped => 1}})),
    ?assertEqual([], found(samples_lost, #{lost => #{events_dropped => 0}})).

probe_cost_test() ->
    Of = fun(Pct, Cpu) ->
        found(probe_cost, #{samples => #{~"a1" => #{probe_pct => Pct, cpu_pct => Cpu}}})
    end,
    ?assertMatch([_], Of(1.0, 50)),
    ?assertEqual([], Of(0.99, 100)),
    %% A large share of little.
    ?assertEqual([], Of(20, 2.4)).

monitors_test() ->
    ?assertMatch([#{where := #{node := ~"m2"}}],
                 found(one_monitor, #{monitors => [{~"m1", up}, {~"m2", down}]})),
    ?assertEqual([], found(one_monitor, #{monitors => [{~"m1", up}]})).

%% ---------------------------------------------------------------- appearing and going

%% Over the threshold for less than the hold time there is nothing; near it, what is there stays;
%% below, it goes after its time.
hysteresis_test() ->
    Rate = fun(Second) -> if Second < 12 -> 1; Second < 40 -> 0.9; true -> 0 end end,
    Seen = [{S, length(F)}
            || {S, F} <- over_time(fun(S) -> #{links => #{{~"a1", ~"b1"} => {Rate(S), 1}}} end,
                                   lists:seq(0, 90), #{window_ms => 1000})],
    ?assertEqual([{S, if S < 10 -> 0; S < 39 + 15 -> 1; true -> 0 end} || S <- lists:seq(0, 90)],
                 Seen).

%% A state goes as fast as it appeared: nothing says for long of a node that is up that it is down.
state_goes_at_once_test() ->
    Down = fun(S) -> #{nodes => #{~"a1" => #{status => if S < 20 -> down; true -> up end}}} end,
    Seen = [S || {S, Found} <- over_time(Down, lists:seq(0, 60), #{}),
                 #{kind := node_down} <- Found],
    ?assertEqual(lists:seq(2, 20), Seen).

%% A rate that is now over and now not so never holds.
flicker_test() ->
    Seen = over_time(fun(S) -> #{links => #{{~"a1", ~"b1"} => {S rem 4 * 2, 1}}} end,
                     lists:seq(0, 60), #{window_ms => 1000}),
    ?assertEqual([], lists:append([F || {_, F} <- Seen])).

since_test() ->
    [{_, [#{since := Since, t := T, id := Id}]}] =
        [Last
         || {30, _} = Last <- over_time(fun(_) -> #{links => #{{~"a1", ~"b1"} => {9, 9}}} end,
                                        lists:seq(0, 30), #{})],
    ?assertEqual({?T0, ?T0 + 30_000, ~"bypass|a1|b1"}, {Since, T, Id}).

nothing_without_frames_test() ->
    ?assertMatch({[], _}, sderl_mon_findings:check((cluster(#{}))(topology), [], #{},
                                                   sderl_mon_findings:new())).

bounded_test() ->
    Peers = [integer_to_binary(I) || I <- lists:seq(1, 9)],
    Links = #{{~"a1", Peer} => {binary_to_integer(Peer), 1} || Peer <- Peers},
    Found = found(bypass, #{links => Links, groups => #{~"c" => [~"gw" | Peers]}}, #{most => 3}),
    ?assertEqual([~"9", ~"8", ~"7"], [To
                                      || #{where := #{from := From, to := Other}} <- sorted(Found),
                                         To <- [From, Other] -- [~"a1"]]),
    ?assertEqual([~"9"], [To || #{text := Text, where := #{from := From, to := Other}} <- Found,
                                string:find(Text, "6 more of this kind are not listed") =/= nomatch,
                                To <- [From, Other] -- [~"a1"]]),
    ?assertMatch([#{value := 6, unit := ~"findings"}],
                 [E
                  || #{evidence := Es} <- Found,
                     #{label := ~"more of this kind, not listed"} = E <- Es]).

sorted(Found) ->
    lists:sort(fun(#{evidence := [#{value := A} | _]}, #{evidence := [#{value := B} | _]}) ->
        A >= B
    end, Found).

thresholds_test() ->
    ?assertEqual(ok, sderl_mon_findings:validate(#{queue_msgs => 5})),
    ?assertMatch({error,
                  {bad_config, [thresholds, queue_msgs], 0, "a number from 0.001 to 1.0e15"}},
                 sderl_mon_findings:validate(#{queue_msgs => 0})),
    ?assertMatch({error, {bad_config, [thresholds, queues], 5, "one of" ++ _}},
                 sderl_mon_findings:validate(#{queues => 5})),
    ?assertMatch({error, {bad_config, [thresholds], [], _}}, sderl_mon_findings:validate([])),
    ?assertMatch([_],
                 found(long_queue, #{samples => #{~"a1" => #{mq_max => 5}}}, #{queue_msgs => 5})).

%% ---------------------------------------------------------------- properties

properties_test_() ->
    [
        {timeout, 120,
         {Name, ?_assert(proper:quickcheck(Property, [{numtests, 200}, {to_file, user}]))}}
     || {Name, Property} <- [{"any frames", any_frames()}, {"a move", a_move()}]
    ].

%% Whatever is measured: no crash, ids are unique, kinds are known, evidence and remedy are there,
%% and nothing is there before its time.
any_frames() ->
    ?FORALL(Given, list(given()), begin
        Times = lists:enumerate(0, Given),
        {Founds, _} = lists:mapfoldl(
            fun({I, G}, State) ->
                Of = cluster(G),
                {Found, State1} = sderl_mon_findings:check(
                    Of(topology), [(Of(frame))#{t := ?T0 + I * 5000}], Of(details), State
                ),
                {{I, Found}, State1}
            end,
            sderl_mon_findings:new(),
            Times
        ),
        lists:all(
            fun({I, Found}) ->
                Ids = [Id || #{id := Id} <- Found],
                Ids =:= lists:uniq(Ids) andalso
                    lists:all(
                        fun(#{kind := Kind, since := Since, text := Text, remedy := Remedy,
                              evidence := [_ | _]}) ->
                            lists:member(Kind, sderl_mon_findings:kinds()) andalso
                                is_binary(Text) andalso is_binary(Remedy) andalso
                                Since < ?T0 + I * 5000
                        end,
                        Found
                    )
            end,
            Founds
        )
    end).

given() ->
    ?LET(
        {Links, Samples, Problems, Downs, Regs},
        {list({node_id(), node_id(), number_up()}), list({node_id(), number_up(), number_up()}),
         list(node_id()), list(node_id()), number_up()},
        #{
            links => #{{A, B} => {R, R * 100} || {A, B, R} <- Links, A =/= B},
            samples => #{N => #{util => min(1, U / 1000), run_queue => Q, mq_max => Q * 20,
                                mem => U * 1_000_000}
                         || {N, U, Q} <- Samples},
            details => #{N => #{problems => [~"p"], links => [link(~"a1", [], 10_000)]}
                         || N <- Problems},
            nodes => #{N => #{status => down} || N <- Downs},
            rates => #{~"a" => #{regs_s => Regs}}
        }
    ).

node_id() -> oneof([~"a1", ~"a2", ~"a3", ~"gw", ~"b1", ~"b2", ~"b3"]).
number_up() -> oneof([0, range(0, 1000)]).

%% What a move saves, counted again on the cluster in which the node was moved.
a_move() ->
    ?FORALL(Talks, list({oneof([~"a2", ~"a3", ~"b1", ~"b2", ~"b3", ~"gw"]), range(1, 50)}), begin
        Links = #{{~"a1", Peer} => {Rate, 1} || {Peer, Rate} <- Talks},
        Of = cluster(#{links => Links}),
        View = sderl_mon_find_view:new(Of(topology), [Of(frame)], #{}, 15_000),
        #{links := Saved, msgs_s := Msgs} = sderl_mon_find_place:move(~"a1", [~"a"], ~"b", View),
        A = [~"a2", ~"a3", ~"gw"], B = [~"b1", ~"b2", ~"b3", ~"gw"],
        Talked = [Peer || {_, Peer} := _ <- Links],
        Count = fun(Group, Other) ->
            length(lists:usort(Group ++ [P || P <- Other, lists:member(P, Talked)]))
        end,
        Between = fun(Peers) ->
            lists:sum([R
                       || {_, Peer} := {R, _} <- Links, lists:member(Peer, Peers), Peer =/= ~"gw"])
        end,
        Saved =:= Count(A, B) - Count(B, A) andalso abs(Msgs - (Between(B) - Between(A))) < 1.0e-6
    end).

%% ---------------------------------------------------------------- clusters

found(Kind, Given) -> found(Kind, Given, #{}).

%% After it has held: 20 s of frames and checks.
found(Kind, Given, Limits) ->
    {_, Found} = lists:last(over_time(fun(_) -> Given end, [0, 5, 10, 15, 20], Limits)),
    [F || #{kind := K} = F <- Found, K =:= Kind].

over_time(Given, Seconds, Limits) ->
    {Founds, _} = lists:mapfoldl(
        fun(Second, {Frames, State}) ->
            Of = cluster((Given(Second))#{second => Second}),
            Frames1 = [(Of(frame))#{t := ?T0 + Second * 1000} | Frames],
            {Found, State1} = sderl_mon_findings:check(Of(topology), Frames1, Of(details), State),
            {{Second, Found}, {Frames1, State1}}
        end,
        {[], sderl_mon_findings:new(Limits)},
        Seconds
    ),
    Founds.

%% Groups a = {a1, a2, a3, gw} and b = {gw, b1, b2, b3}, and what is given besides.
cluster(Given) ->
    Get = fun(Key, Default) -> maps:get(Key, Given, Default) end,
    Groups = maps:merge(#{~"a" => [~"a1", ~"a2", ~"a3", ~"gw"],
                          ~"b" => [~"gw", ~"b1", ~"b2", ~"b3"]}, Get(groups, #{})),
    Changed = Get(nodes, #{}),
    Ids = lists:usort(lists:append(maps:values(Groups)) ++ maps:keys(Changed)),
    Nodes = #{
        Id => maps:merge(
            #{status => up, groups => [G || G := Ms <- Groups, lists:member(Id, Ms)],
              home => undefined, hidden => false, source => probe},
            maps:get(Id, Changed, #{})
        )
     || Id <- Ids
    },
    T = ?T0 + 1000 * Get(second, 0),
    fun
        (topology) ->
            #{
                epoch => 1, t => T, nodes => Nodes,
                groups => #{
                    G => maps:merge(
                        #{nodes => Ms, coordinator => maps:get(G, Get(coordinators, #{}), hd(Ms)),
                          names => 0, agent => ~"m1"},
                        #{minority => Lost || {ok, Lost} <- [maps:find(G, Get(minorities, #{}))]}
                    )
                 || G := Ms <- Groups
                },
                monitors => [#{node => M, status => S, master => false, agents => 1}
                             || {M, S} <- Get(monitors, [])]
            };
        (frame) ->
            Rates = #{nodes => Get(samples, #{}), links => Get(links, #{}),
                      groups => Get(rates, #{})},
            Rates#{seq => 1, t => T, span_ms => 1000, epoch => 1, kinds => #{},
                   lost => Get(lost, #{})};
        (details) ->
            #{Id => D#{t => T, node => Id} || Id := D <- Get(details, #{})}
    end.

%% As a node tells it.
link(Peer, Reasons, AgeS) -> #{node => Peer, type => visible, reasons => Reasons, since_s => AgeS}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_measure_tests).

%% Measuring without a network: the order of probes, the reports, the result; and trees derived from
%% labels.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- probing

%% Whatever is answered or lost, in whatever order: it ends; a peer that always answers has all its
%% round trips; nobody is sent two things at a time; no more than the window are under way; what
%% comes twice or late is nothing.
probing_test_() ->
    sderl_prop:eunit("probing ends and measures all that answer", 300, fun() ->
        ?FORALL({Peers0, Batches, Batch, Window, Mute0, Seed},
                {list(elements([a, b, c, d, e, f])), range(1, 4), range(1, 4), range(1, 4),
                 list(elements([a, b, c])), integer()},
                begin
            Peers = lists:usort(Peers0),
            Mute = [P || P <- lists:usort(Mute0), lists:member(P, Peers)],
            {Sends, State} = sderl_dist_probing:release(
                Seed rem 3 / 4, sderl_dist_probing:new(Peers, Batches, Batch, Window)
            ),
            {Most, End} = probe(Sends, State, Mute, Seed, length(Sends)),
            {Times, Silent, Sent} = sderl_dist_probing:results(End),
            Full = lists:duplicate(Batches, lists:duplicate(Batch, 7)),
            conjunction([
                {window, Most =< Window},
                {answered,
                 [P || P <- Peers, not lists:member(P, Mute), map_get(P, Times) =/= Full] =:= []},
                {silent, lists:sort(Silent) =:= Mute},
                {mute, [P || P <- Mute, map_get(P, Times) =/= [[]]] =:= []},
                {sent, Sent =:= length(Mute) + (length(Peers) - length(Mute)) * Batches * Batch}
            ])
        end)
    end).

probe([], State, Mute, Seed, Most) ->
    case sderl_dist_probing:finished(State) of
        true -> {Most, State};
        false ->
            %% Time goes by, at last all of it.
            {Sends, Next} = sderl_dist_probing:release(1, State),
            probe(Sends, Next, Mute, Seed, max(Most, length(Sends)))
    end;
probe(Out, State, Mute, Seed, Most) ->
    true = length(Out) =:= length(lists:uniq([Peer || {Peer, _} <- Out])),
    {_, {Peer, Number} = Next} = lists:min([{erlang:phash2({S, Seed}), S} || S <- Out]),
    {Sends, State1} = case lists:member(Peer, Mute) of
        true -> sderl_dist_probing:late(Next, State);
        false -> sderl_dist_probing:pong(Next, 7, State)
    end,
    %% The same once more, and its timer.
    {[], State1} = sderl_dist_probing:pong({Peer, Number}, 1, State1),
    {[], State1} = sderl_dist_probing:late({Peer, Number}, State1),
    Left = lists:delete(Next, Out) ++ Sends,
    probe(Left, State1, Mute, Seed, max(Most, length(Left))).

%% Every peer's first batch is before anybody's second.
rounds_test() ->
    {[{a, 1}], S1} = sderl_dist_probing:release(1, sderl_dist_probing:new([a, b], 2, 1, 1)),
    {[{b, 2}], S2} = sderl_dist_probing:pong({a, 1}, 5, S1),
    ?assertEqual({#{a => [[5]], b => [[]]}, [], 2}, sderl_dist_probing:results(S2)),
    {[{a, 3}], _} = sderl_dist_probing:pong({b, 2}, 5, S2).

%% Little by little, also if nobody has answered yet.
release_test() ->
    S0 = sderl_dist_probing:new([a, b, c, d], 2, 1, 8),
    {[], S0} = sderl_dist_probing:release(0, S0),
    {[{a, 1}], S1} = sderl_dist_probing:release(0.1, S0),
    {[], S1} = sderl_dist_probing:release(0.12, S1),
    {[{b, 2}, {c, 3}], S2} = sderl_dist_probing:release(0.3, S1),
    {[{d, 4}], S3} = sderl_dist_probing:release(2, S2),
    {[{a, 5}], _} = sderl_dist_probing:pong({a, 1}, 5, S3).

nobody_test() ->
    {[], State} = sderl_dist_probing:release(0, sderl_dist_probing:new([], 2, 2, 2)),
    ?assert(sderl_dist_probing:finished(State)).

%% ---------------------------------------------------------------- reports

report(Node, Asked, Legs) ->
    #{node => Node, groups => [], asked => Asked, unlinked => [], legs => Legs, silent => [],
      messages => 2, bytes => 200}.

reports_test() ->
    R0 = sderl_dist_reports:new(a),
    ?assertNot(sderl_dist_reports:complete(R0)),
    R1 = sderl_dist_reports:add(
        (report(a, [b, c], [{b, 10}]))#{groups := [{<<1>>, g, [a, b, c, d]}], unlinked := [d]}, R0
    ),
    %% Twice is once; what is no report is told.
    ?assertEqual(R1, sderl_dist_reports:add(report(a, [x], []), R1)),
    [?assertEqual(unknown, sderl_dist_reports:add(Other, R1))
     || Other <- [foo, #{}, #{node => b}, (report(b, [], []))#{legs := x}]],
    R2 = sderl_dist_reports:add(report(b, [], [{c, 20}]), R1),
    ?assertNot(sderl_dist_reports:complete(R2)),
    R3 = sderl_dist_reports:add(#{node => c, refused => busy}, R2),
    ?assert(sderl_dist_reports:complete(R3)),
    ?assertEqual([{b, no_answer}, {c, no_answer}, {d, not_linked}], sderl_dist_reports:missing(R1)),
    ?assertEqual([{c, busy}, {d, not_linked}], sderl_dist_reports:missing(R3)),
    ?assertEqual([{a, b, 10}, {b, c, 20}], lists:sort(sderl_dist_reports:legs(R3))),
    ?assertEqual(#{messages => 4, bytes => 400}, sderl_dist_reports:cost(R3)),
    ?assertEqual([g], sderl_dist_reports:names(R3)),
    ?assertEqual([[a, b, c, d]], sderl_dist_reports:groups(R3)).

%% Here with this node as the one that asks.
model_test() ->
    Me = node(),
    Us = fun(N) -> N * 1000 end,
    Reports = lists:foldl(fun sderl_dist_reports:add/2, sderl_dist_reports:new(Me), [
        (report(Me, [b, c, d], [{b, Us(100)}, {c, Us(1000)}]))#{
            groups := [{<<1>>, g, [Me, b, c, d, e]}], unlinked := [e]
        },
        report(b, [], [{c, Us(1200)}]),
        report(c, [], [])
    ]),
    Model = sderl_dist_measure:model(Reports, #{gap => 2, resolution_us => 50}),
    ?assertMatch(#{
        missing := [{d, no_answer}, {e, not_linked}],
        levels := [#{distance := 0.5, rtt_us := 100.0, pairs := 1},
                   #{distance := 1.0, least_us := 1000.0, most_us := 1200.0, pairs := 2}],
        pairs := #{measured := 3, estimated := 0, composed := 0},
        fit := #{pairs := 3},
        rtt_us := #{b := #{c := 1200.0}}
    }, Model),
    ?assertEqual({network, "1.0 ms",
                  [{node, c}, {network, "0.10 ms", [{node, N} || N <- lists:sort([Me, b])]}]},
                 sort(maps:get(tree, Model))),
    %% With a coarse eye all are alike.
    ?assertMatch(#{levels := [#{distance := 1.0, pairs := 3}]},
                 sderl_dist_measure:model(Reports, #{gap => 2, resolution_us => 5000})).

%% Where c stands depends on this node's name.
sort({network, Name, Inner}) -> {network, Name, lists:sort(lists:map(fun sort/1, Inner))};
sort(Node) -> Node.

%% A group that two gateways told of is one group, and its other members pass nothing on: x is
%% nearer to d than both gateways are.
told_twice_test() ->
    Me = node(),
    Reports = lists:foldl(fun sderl_dist_reports:add/2, sderl_dist_reports:new(Me), [
        (report(Me, [b, c], [{b, 1000}, {c, 1000}]))#{groups := [{<<1>>, here, [Me, b, c]}]},
        (report(b, [d, x], [{c, 1000}, {d, 9000}, {x, 1000}]))#{
            groups := [{<<2>>, there, [b, c, d, x]}]
        },
        (report(c, [d, x], [{d, 8000}, {x, 1000}]))#{groups := [{<<2>>, there, [x, d, c]}]},
        report(d, [], [{x, 1000}]),
        report(x, [], [])
    ]),
    ?assertEqual(lists:sort([lists:sort([Me, b, c]), [b, c, d, x]]),
                 lists:sort(sderl_dist_reports:groups(Reports))),
    #{rtt_us := #{Me := #{d := Us}}} =
        sderl_dist_measure:model(Reports, #{gap => 2, resolution_us => 50}),
    ?assertEqual(9.0, Us).

%% Nobody else there.
alone_test() ->
    Reports = sderl_dist_reports:add(report(node(), [], []), sderl_dist_reports:new(node())),
    ?assertMatch(#{tree := {network, [{node, _}]}, levels := [], missing := [],
                   fit := #{pairs := 0}},
                 sderl_dist_measure:model(Reports, #{gap => 2, resolution_us => 50})).

misuse_test_() ->
    [?_assertError({badarg, {sderl_dist, measure, 2}, #{argument := I}},
                   sderl_dist:measure(Scope, Options))
     || {I, Scope, Options} <- [{1, mine, #{}},
                                {1, {groups, g}, #{}},
                                {2, own, []},
                                {2, own, #{gap => 1}},
                                {2, own, #{batch => 0}},
                                {2, own, #{batches => 1001}},
                                {2, own, #{foo => 1}},
                                {2, own, #{timeout_ms => infinity}}]].

valid_test() ->
    Spec = #{groups => own, asked => [], left_ms => 10, peers => 1, batches => 1, batch => 1,
             window => 1, spread_ms => 1},
    ?assert(sderl_dist_survey:valid(Spec)),
    [?assertNot(sderl_dist_survey:valid(Bad))
     || Bad <- [foo, #{}, Spec#{groups := x}, Spec#{batch := 1.0}, Spec#{batch := 10_000}]].

%% ---------------------------------------------------------------- configuration

configuration_test() ->
    Parse = fun(Value) -> sderl_config:parse([{distances, Value}], undefined, 'a@h') end,
    [?assertMatch({ok, #{distances := Value, warnings := []}}, Parse(Value))
     || Value <- [none, "network.config", <<"n">>, {network, [{node, a}]}]],
    [begin
        {error, {bad_config, Path, Found, Expected} = Error} = Parse(Value),
        ?assertNotEqual(nomatch, string:find(sderl_config:format_error(Error), Words))
     end || {Value, Path, Found, Expected, Words} <- [
         {foo, [sderl, distances], foo, distances, "sderl: distances: foo does not say"},
         {"", [sderl, distances], "", distances, "write the name of a file"},
         {{network, [{node, a}, {node, a}]}, [sderl, distances, 2, node], a,
          {network, {unique_node, [1]}},
          "distances[2].node: a is there already, at [1]; a node has one place"},
         {{network, [{network, [x]}]}, [sderl, distances, 1, 1], x, {network, network},
          "distances[1][1]: x is not a network"}
     ]].

configured_test() ->
    Before = sderl_dist:tree(),
    Tree = {network, [{node, a}, {node, b}]},
    ok = sderl_dist_config:use(Tree),
    ok = sderl_dist_config:use(none),
    {error, Error} = sderl_dist_config:use("/no/such/file"),
    ?assertEqual("bad configuration at sderl: distances: \"/no/such/file\" cannot be used: the "
                 "file /no/such/file cannot be read: "
                 "no such file or directory", sderl_config:format_error(Error)),
    ?assertEqual(Tree, sderl_dist:tree()),
    ok = sderl_dist:set(Before).

%% ---------------------------------------------------------------- derived trees

%% With labels from elsewhere nothing needs to run.
given_labels_test() ->
    {ok, #{tree := Tree, levels := [{host, 0.25}, {zone, 0.5}], missing := [],
           unlabelled := Unlabelled}} =
        sderl_dist:derive(['a@h1', 'b@h2', 'c@h2'], #{
            labels => #{'a@h1' => #{zone => 1}, 'b@h2' => #{zone => 2}, x => #{zone => 3}}
        }),
    %% c is on b's host by its name, and is not known to be in b's zone.
    ?assertEqual(#{zone => ['c@h2']}, Unlabelled),
    ?assertMatch({network, [{network, 1, _}, {network, 2, [_]},
                            {network, [{network, "h2", [{node, 'c@h2'}]}]}]}, Tree),
    [?assertError({badarg, {sderl_dist, derive, 2}, _}, sderl_dist:derive(N, O))
     || {N, O} <- [{foo, #{}}, {[], foo}, {[], #{levels => []}}, {[], #{labels => []}},
                   {[], #{foo => 1}}]],
    ?assertEqual({error, not_running}, sderl_dist:derive(['a@h1'])),
    ?assertEqual({error, not_running}, sderl_dist:derive(own)).


derived_test() ->
    Nodes = [
        {'a1@h1', #{region => eu, zone => z1}},
        {'a2@h1', #{region => eu, zone => z1}},
        {'b@h2', #{region => eu, zone => z1}},
        {'c@h3', #{region => eu, zone => z2}},
        {'d@h4', #{region => us, zone => z1}},
        %% Nobody knows where these are, but that they are on two machines.
        {'e1@h5', #{}}, {'e2@h5', #{}}, {'f@h6', #{}}
    ],
    {Tree, Levels, Unlabelled} = sderl_dist_derive:tree(Nodes, [region, zone, rack, host]),
    ?assertEqual([{host, 0.125}, {zone, 0.25}, {region, 0.5}], Levels),
    Without = ['e1@h5', 'e2@h5', 'f@h6'],
    ?assertEqual(#{region => Without, zone => Without}, Unlabelled),
    {ok, T} = sderl_dist_tree:parse(Tree),
    D = fun(A, B) -> sderl_dist_tree:distance(A, B, T) end,
    ?assertEqual([0.125, 0.25, 0.5, 1.0, 1.0, 1.0, 0.125],
                 [D('a1@h1', 'a2@h1'), D('a1@h1', 'b@h2'), D('a1@h1', 'c@h3'), D('a1@h1', 'd@h4'),
                  D('a1@h1', 'f@h6'), D('e1@h5', 'f@h6'), D('e1@h5', 'e2@h5')]),
    ?assertMatch({network,
                  [{network, eu,
                    [{network, z1, [{network, "h1", [_, _]}, {network, "h2", [_]}]}, _]} | _]},
                 Tree).

%% A label for the host, where names of one machine differ, as in containers.
host_label_test() ->
    Nodes = [{'a@c1', #{host => m}}, {'b@c2', #{host => m}}, {'c@c3', #{}}],
    ?assertMatch({{network, [{network, m, [{node, 'a@c1'}, {node, 'b@c2'}]},
                             {network, "c3", [{node, 'c@c3'}]}]}, _, _},
                 sderl_dist_derive:tree(Nodes, [zone, host])).

derived_property_test_() ->
    sderl_prop:eunit("nodes with the same labels from the widest level on are as near as the last "
                     "of these", 200, fun() ->
                         ?FORALL(Labels, list({range(1, 3), range(1, 3), range(1, 3)}), begin
                             Nodes = [{list_to_atom(lists:concat([n, I, "@h", H])),
                                       #{region => R, zone => Z}}
                                      || {I, {R, Z, H}} <- lists:enumerate(Labels)],
                             {Term, _, _} = sderl_dist_derive:tree(Nodes, [region, zone, host]),
                             {ok, Tree} = sderl_dist_tree:parse(Term),
                             Expected = fun({_, {A, B, C}}, {_, {A, B, C}}) -> 0.125;
                                           ({_, {A, B, _}}, {_, {A, B, _}}) -> 0.25;
                                           ({_, {A, _, _}}, {_, {A, _, _}}) -> 0.5;
                                           (_, _) -> 1.0
                             end,
                             Both = lists:zip([N || {N, _} <- Nodes], Labels),
                             lists:all(fun({{A, _} = X, {B, _} = Y}) ->
                                 sderl_dist_tree:distance(A, B, Tree) =:= Expected(X, Y)
                             end,
                                       [{X, Y} || {A, _} = X <- Both, {B, _} = Y <- Both, A =/= B])
                         end)
                     end).

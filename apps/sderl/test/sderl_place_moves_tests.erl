%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_moves_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

new(Options) ->
    sderl_place_moves:new(maps:merge(#{named => false, restart => transient, max_moves => 2,
                                       period_ms => 1000}, Options)).

%% The effects of each event in turn.
run(Events, M0) ->
    {Effects, M} = lists:mapfoldl(fun
        ({at, At, Event}, M) -> sderl_place_moves:step(At, Event, M);
        (Event, M) -> sderl_place_moves:step(0, Event, M)
    end, M0, Events),
    {Effects, sderl_place_moves:place(M)}.

p(I) -> list_to_pid("<0." ++ integer_to_list(I) ++ ".0>").

first_test() ->
    P = p(1),
    ?assertEqual({[[{choose, []}], [{spawn, a}], [{answer, {ok, P}}]], {ok, P}},
                 run([start, {chosen, a}, {spawned, P}], new(#{}))),
    ?assertEqual({[[{choose, []}], [{answer, {error, {no_node_left, []}}}, finish]], {error, over}},
                 run([start, none], new(#{}))),
    ?assertEqual({[[{choose, []}], [{answer, {error, why}}, finish]], {error, over}},
                 run([start, {cannot, why}], new(#{}))),
    ?assertEqual({[[{choose, []}],
                   [{leave, a}, {choose, [a]}],
                   [{spawn, b}],
                   [{leave, b}, {choose, [a, b]}],
                   [{answer, {error, {no_node_left, [{a, unreachable}, {b, timeout}]}}}, finish]],
                  {error, over}},
                 run([start, {unreachable, a}, {chosen, b}, {not_spawned, timeout}, none],
                     new(#{}))).

named_test() ->
    {P, Q} = {p(1), p(2)},
    ?assertEqual({[[{choose, []}],
                   [{spawn, a}],
                   [{name, P, none}],
                   [{go, P}, {answer, {ok, P}}],
                   [{leave, a}, {choose, [a]}],
                   [{spawn, b}],
                   [{name, Q, P}],
                   [{go, Q}, {tell, {moved, P, Q, noconnection}}]], {ok, Q}},
                 run([start, {chosen, a}, {spawned, P}, named, {exit, P, noconnection}, {chosen, b},
                      {spawned, Q}, named],
                     new(#{named => true}))),
    ?assertEqual({[[{choose, []}], [{spawn, a}], [{name, P, none}],
                   [{leave, a}, {answer, {error, {name_taken, Q}}}, finish]],
                  {error, over}},
                 run([start, {chosen, a}, {spawned, P}, {taken, Q}], new(#{named => true}))),
    ?assertEqual({[[{choose, []}],
                   [{spawn, a}],
                   [{name, P, none}],
                   [{kill, P}, {leave, a}, {choose, [a]}],
                   [],
                   [{answer, {error, {no_node_left, [{a, {not_registered, why}}]}}}, finish]],
                  {error, over}},
                 run([start, {chosen, a}, {spawned, P}, {not_named, why}, {exit, P, shutdown},
                      none], new(#{named => true}))).

%% A process that fails goes elsewhere, and back only if there is no other node; a node that is gone
%% is not tried.
moves_test() ->
    {P, Q} = {p(1), p(2)},
    Start = [start, {chosen, a}, {spawned, P}],
    {Effects, _} = run(Start ++ [{exit, P, crash}, none, {chosen, a}, {spawned, Q}], new(#{})),
    ?assertEqual([[{leave, a}, {choose, [a]}], [{choose, []}], [{spawn, a}],
                  [{tell, {moved, P, Q, crash}}]],
                 lists:nthtail(3, Effects)),
    {Lost, _} = run(Start ++ [{exit, P, noconnection}, none, none], new(#{})),
    ?assertEqual([[{leave, a}, {choose, [a]}], [{choose, [a]}],
                  [{tell, {failed, {no_node_left, [{a, noconnection}]}}}, finish]],
                 lists:nthtail(3, Lost)).

restart_test() ->
    P = p(1),
    [begin
         {Effects, _} = run([start, {chosen, a}, {spawned, P}, {exit, P, Why}],
                            new(#{restart => Restart})),
         ?assertEqual({Restart, Why, Again},
                      {Restart, Why, not lists:member(finish, lists:last(Effects))})
     end || {Restart, Why, Again} <- [{permanent, normal, true}, {permanent, crash, true},
                                      {transient, normal, false},
                                      {transient, shutdown, false},
                                      {transient, {shutdown, x}, false}, {transient, crash, true},
                                      {transient, noconnection, true}, {temporary, crash, false},
                                      {temporary, noconnection, false}]].

limit_test() ->
    Ps = [p(I) || I <- lists:seq(1, 9)],
    Life = fun(At, P) ->
        [{at, At, {chosen, a}}, {at, At, {spawned, P}}, {at, At, {exit, P, crash}}]
    end,
    Lives = fun(Ats) ->
        [start
         | lists:append([Life(At, P) || {At, P} <- lists:zip(Ats, lists:sublist(Ps, length(Ats)))])]
    end,
    {Fast, FastPlace} = run(Lives([0, 1, 2]), new(#{})),
    ?assertEqual([{leave, a}, {tell, {failed, {too_many_moves, crash}}}, finish], lists:last(Fast)),
    ?assertEqual({error, over}, FastPlace),
    {_, SlowPlace} = run(Lives([0, 1, 2000, 4000, 4001]), new(#{})),
    ?assertEqual({error, moving}, SlowPlace).

stop_test() ->
    P = p(1),
    Full = [start, {chosen, a}, {spawned, P}, named],
    [begin
         {Effects, Place} = run(lists:sublist(Full, N) ++ [stop, {chosen, b}, {spawned, P}, stop],
                                new(#{named => true})),
         ?assertEqual(finish, lists:last(lists:nth(N + 1, Effects))),
         ?assertEqual([[], [], []], lists:nthtail(N + 1, Effects)),
         ?assertEqual({error, over}, Place)
     end || N <- [1, 2, 3, 4]].

properties_test_() -> [sderl_prop:eunit("any events in any order", 1000, fun prop_any/0)].

%% Exactly one answer, nothing after the end, a tell only after the answer, and no node twice in a
%% round that failed there.
prop_any() ->
    ?FORALL({Events, Named, Restart},
            {list(event()), boolean(), oneof([permanent, transient, temporary])},
            begin
                {Steps, _} = run([start | Events], new(#{named => Named, restart => Restart})),
                Effects = lists:append(Steps),
                Kinds = [case E of finish -> finish; _ -> element(1, E) end || E <- Effects],
                Before = lists:takewhile(fun(K) -> K =/= answer end, Kinds),
                length([a || answer <- Kinds]) =< 1
                    andalso not lists:member(tell, Before)
                    andalso (not lists:member(finish, Kinds) orelse lists:last(Kinds) =:= finish)
                    andalso length([f || finish <- Kinds]) =< 1
                    andalso (Named orelse not lists:member(go, Kinds))
            end).

event() ->
    oneof([{chosen, n()}, {unreachable, n()}, none, {cannot, x}, {spawned, p()}, {not_spawned, x},
           named, {taken, p()},
           {not_named, x}, {exit, p(), oneof([normal, crash, noconnection])}, frequency_stop()]).

frequency_stop() -> frequency([{1, stop}, {9, {exit, p(), crash}}]).
n() -> oneof([a, b, c]).
p() -> oneof([p(I) || I <- [1, 2, 3]]).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_steps_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

some(Count) -> [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)].

plan(Groups) ->
    #{version => 1, pattern => chain, options => #{}, edges => [], left_out => [],
      groups => [#{name => G, role => workers, masters => 0, nodes => Ns} || {G, Ns} <- Groups]}.

steps_test_() ->
    U = <<"u">>,
    [?_assertEqual(Expected, sderl_plan_steps:steps(plan([{g, [a, b, c]}]), Old, Survey))
     || {Survey, Old, Expected} <- [
         {#{a => [], b => [], c => []}, [], {ok, [{create, g, [a, b, c]}]}},
         {#{a => [{g, U, [a, b, c]}], b => [{g, U, [a, b, c]}], c => [{g, U, [a, b, c]}]}, [],
          {ok, []}},
         %% Half done, and somebody too many.
         {#{a => [{g, U, [a, x]}], b => [], c => []}, [],
          {ok, [{add, g, [a], [b, c]}, {remove, g, [a], [x]}]}},
         %% Members that differ: one of them is late.
         {#{a => [{g, U, [a, b, c]}], b => [{g, U, [a, b]}], c => []}, [],
          {ok, [{add, g, [a, b], [c]}]}},
         {#{a => [{g, U, [a]}], b => [{g, <<"v">>, [b]}], c => []}, [],
          {error, {other_identity, g, [a, b]}}},
         %% Groups that are no more, if they run at all; those that nobody names stay.
         {#{a => [{g, U, [a, b, c]}, {old, U, [a, d]}, {other, U, [a]}], d => [{old, U, [a, d]}]},
          [old, older],
          {ok, [{delete, old, [a, d], [a, d]}]}}
     ]].

on_test_() ->
    [?_assertEqual(Expected, sderl_plan_steps:on(Step, [a, b, c])) || {Step, Expected} <- [
        {{create, g, [a, b]}, [a, b]},
        {{add, g, [x, a], [b, c]}, [x, a]},
        %% Nobody removes itself; who was added a moment ago can do it if nobody else is left.
        {{remove, g, [x, a], [x]}, [a, b, c]},
        {{remove, g, [x, y], [x, y]}, [a, b, c]},
        {{delete, g, [a, d], [a, d]}, [a, d]}
    ]].

parted_test() ->
    U = <<"u">>,
    Survey = #{N => [{g, U, [a, b, c, d]}] ++ [{h, U, [c, d]} || N =:= c orelse N =:= d]
               || N <- [a, b, c, d]},
    Now = plan([{g, [a, b, e]}, {h, [c, d]}]),
    ?assertEqual(#{a => {[c, d], []}, b => {[c, d], []}, c => {[e], [g]}, d => {[e], [g]}},
                 sderl_plan_steps:parted([{add, g, [a], [e]}, {remove, g, [a], [c, d]}], Survey,
                                         Now)).

%% ---------------------------------------------------------------- a cluster in a map

%% Of any state of some groups the steps make that of the plan, and undone they leave the state that
%% was there before.
steps_property_test_() ->
    sderl_prop:eunit("steps make the plan so, and undone leave what was", 500, fun prop_steps/0).

prop_steps() ->
    ?FORALL({Running, Planned}, {groups(), groups()},
            begin
                State = maps:map(fun(G, Ns) -> {erlang:md5(term_to_binary(G)), Ns} end, Running),
                Old = maps:keys(Running) -- maps:keys(Planned),
                Plan = plan(maps:to_list(Planned)),
                {ok, Steps} = sderl_plan_steps:steps(Plan, Old, survey(State)),
                After = lists:foldl(fun step/2, State, Steps),
                Undone = lists:foldl(fun step/2, After,
                                     [sderl_plan_steps:undo(S) || S <- lists:reverse(Steps)]),
                {ok, Again} = sderl_plan_steps:steps(Plan, Old, survey(After)),
                members(After) =:= members(maps:map(fun(_, Ns) -> {x, Ns} end, Planned))
                    andalso Again =:= []
                    andalso members(Undone) =:= members(State)
                    andalso gateways_stay(Steps, State, Planned)
                    andalso parted(Steps, State, After, Plan)
            end).

groups() ->
    ?LET(Groups, list({oneof([g1, g2, g3, g4]), non_empty(list(oneof(some(7))))}),
         #{G => lists:usort(Ns) || {G, Ns} <- Groups}).

survey(State) -> #{N => [{G, U, Ns} || G := {U, Ns} <- State, lists:member(N, Ns)] || N <- some(7)}.

members(State) -> #{G => lists:sort(Ns) || G := {_, Ns} <- State}.

step({create, G, Ns}, State) when not is_map_key(G, State) ->
    State#{G => {erlang:md5(term_to_binary(G)), Ns}};
step({add, G, _, New}, State) -> #{G := {U, Ns}} = State, State#{G := {U, lists:usort(Ns ++ New)}};
step({remove, G, _, Out}, State) -> #{G := {U, Ns}} = State, State#{G := {U, Ns -- Out}};
step({delete, G, _, _}, State) when is_map_key(G, State) -> maps:remove(G, State).

%% At each moment every planned group that ran has a member, and who is to stay never left.
gateways_stay(Steps, State, Planned) ->
    {_, Good} = lists:foldl(fun(Step, {S, Good}) ->
        Next = step(Step, S),
        {Next, Good andalso lists:all(fun({G, Ns}) ->
            case {State, Next} of
                {#{G := {_, Was}}, #{G := {_, Is}}} ->
                    [N || N <- Ns, lists:member(N, Was), not lists:member(N, Is)] =:= []
                        andalso Is =/= [];
                {#{G := _}, _} -> false;
                _ -> true
            end
        end, maps:to_list(Planned))}
    end, {State, true}, Steps),
    Good.

%% Exactly those pairs that shared a group and share none.
parted(Steps, Before, After, Plan) ->
    Pairs = fun(State) ->
        lists:usort([{A, B} || {_, Ns} <- maps:values(State), A <- Ns, B <- Ns, A < B])
    end,
    Found = lists:sort([{A, B}
                        || A := {Bs, _} <- sderl_plan_steps:parted(Steps, survey(Before), Plan),
                           B <- Bs]),
    %% Who came in before the others went was linked to them for a moment.
    (Pairs(Before) -- Pairs(After)) -- Found =:= [] andalso Found -- (Found -- Pairs(After)) =:= [].

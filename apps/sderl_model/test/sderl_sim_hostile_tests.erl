%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_hostile_tests).
-include_lib("eunit/include/eunit.hrl").

%% A mutated term differs from the original in some part, at any depth.
mutated_test() ->
    Term = {lead, {1, a}, 3, [{seg, x, [[n | self()]]}], #{view => #{a => live}}},
    {Others, _} = lists:mapfoldl(fun(_, W0) -> sderl_sim_hostile:mutated(Term, W0) end,
                                 sderl_sim_world:new(1, #{}), lists:seq(1, 500)),
    ?assertNot(lists:member(Term, Others)),
    ?assert(length(lists:usort(Others)) > 100),
    ?assert(lists:any(fun(T) -> is_tuple(T) andalso tuple_size(T) =/= 5 end, Others)),
    ?assert(lists:any(fun
        ({lead, {1, a}, 3, [{seg, x, [[n | _]]}], #{view := V}}) when V =/= #{a => live} -> true;
        (_) -> false
    end, Others)).

%% The door is the check of a message before it reaches the core. A message that it refuses has no
%% effect, and the schedule goes on as without a fault; one that it lets in is tried.
door_test_() ->
    Options = #{seed => 2, nodes => 3, clients => 1,
                script => [{0, {mutate, sderl_sim:name(1), 100}}, {20_000, join}]},
    [{timeout, 120,
      fun() -> ?assertEqual(ok, sderl_sim:run(Options#{door => fun(_, _) -> false end})) end},
     {timeout, 120, fun() ->
         Only = fun(_, Msg) -> Msg =:= {hb, x, y} end,
         Change = fun(W) ->
             sderl_sim_hostile:arrives(sderl_sim:name(2), g, sderl_sim:name(1), {ack, 1, 2, none},
                                       W)
         end,
         Script = [{8000, {mutate, sderl_sim:name(1), 100}}, {9000, {'fun', Change}}],
         ?assertEqual(ok, sderl_sim:run(Options#{script => Script, door => Only})),
         Broken = fun(_, _) -> error(the_door) end,
         ?assertMatch({failed, {error, the_door, _}, 2},
                      sderl_sim:run(Options#{script => Script, door => Broken}))
     end}].

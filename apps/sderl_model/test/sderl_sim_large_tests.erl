%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_large_tests).
-moduledoc """
Counts the messages of a group of many members whose coordinator's process is killed while all
processes are slow. Their number may grow with the members, but not with the pairs of members.
""".
-include_lib("eunit/include/eunit.hrl").
-include("../src/simulator/sderl_sim.hrl").

-define(MEMBERS, 80).
-define(KILLED, 10_000).

successor_of_a_killed_process_test_() ->
    {timeout, 120, fun() ->
        Sent = sent(?MEMBERS),
        %% There are some three dozen for each member. With members that ask all others at each tick
        %% there are ten times as many.
        ?assert(maps:get(hello, Sent) < 80 * ?MEMBERS, Sent),
        ?assert(maps:get(collect, Sent) < 3 * ?MEMBERS, Sent),
        %% No member is set aside because of what it sent before it heard of the successor.
        ?assertEqual(0, maps:get(adopt, Sent, 0))
    end}.

%% Messages by kind, from the death until long after the group has a coordinator again.
sent(Count) ->
    Slow = [Command || I <- lists:seq(1, Count), N <- [sderl_sim:name(I)],
                       Command <- [{pace, N, {0, 700}}, {relay, N, {0, 100}}]],
    Parent = self(),
    Ref = make_ref(),
    Script = [
        {0, {'fun', fun(W) -> W#w{checks = false} end}},
        {?KILLED, {all, Slow}},
        {?KILLED, {'fun', fun(W) -> W#w{sent = #{}} end}},
        {?KILLED, {on_coord, kill}},
        {2 * ?KILLED, {'fun', fun(#w{sent = Sent} = W) ->
            Parent ! {Ref, [Role
                            || N <- sderl_sim:all(W),
                               #{role := Role} <- [sderl_sim_world:seen(N, W#w.group, W)]],
                      maps:map(fun(_, {Messages, _}) -> Messages end, Sent)},
            W#w{sent = none}
        end}}
    ],
    ok = sderl_sim:run(#{seed => 1, nodes => Count, clients => 0, boot_spread => 500, late => 0,
                         script => Script}),
    receive
        {Ref, Roles, Sent} ->
            ?assertEqual([coord], lists:filter(fun(Role) -> Role =:= coord end, Roles)),
            ?assertEqual([coord, follower], lists:usort(Roles)),
            Sent
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_rules_tests).
-moduledoc """
Forces each rule of the group protocol in the simulator, and shows what happens without it.

Every scenario runs with several seeds (delays and clients differ) and under all the checks of
`sderl_sim`: these tests add what is particular to their rule. Beside a scenario stand the
deliberate faults (`m:sderl_planted`) under which it must fail, `rule_N` for the rule switched off.
""".
-include_lib("eunit/include/eunit.hrl").

%% The seeds of each scenario in a short run, and with `SDERL_LONG`.
-define(SEEDS, 1).
-define(SEEDS_LONG, 3).
%% A fault that shows in some schedules only must show in one of so many.
-define(TRIES, 20).

-export([scenarios/0]).
-define(LIMIT_S, 120).

passes(Name, Opts) ->
    [?assertEqual({S, ok}, {S, sderl_sim:run(Opts#{seed => S})})
     || S <- lists:seq(1, case os:getenv("SDERL_LONG") of
                            false -> ?SEEDS;
                            _ -> ?SEEDS_LONG
                        end) ++ found(Name)].

%% Seeds that once found a defect.
found(rule_9_silence_on_one_link_deposes_nobody) -> [23, 43];
found(rule_11_two_that_cannot_see_each_other_stay_together) -> [5];
found(_) -> [].

%% The fault must show with at least one seed. Prints after how many steps of the protocol it was
%% seen, and as what.
fails(Name, Fault, Opts) ->
    case sees(Opts#{broken => [Fault]}, lists:seq(1, ?TRIES)) of
        #{seed := Seed, steps := Steps, at_ms := At, why := Why} ->
            io:format(user, "~w, ~w: seen after ~b steps (seed ~b, at ~w ms): ~0P~n",
                      [Name, Fault, Steps, Seed, At, Why, 8]);
        none -> error({not_seen, Fault, Name})
    end.

sees(_, []) -> none;
sees(Opts, [S | Ss]) ->
    case sderl_sim:schedule(Opts#{seed => S}) of
        #{outcome := ok} -> sees(Opts, Ss);
        %% A crash does not count as a failure of the scenario.
        #{outcome := failed, at_ms := At} = Seen when At =/= undefined -> Seen
    end.

n(I) -> sderl_sim:name(I).
x(I) -> sderl_sim:spare(I).
has(N, Name, W) -> maps:get(Name, sderl_sim:rows(N, W), none).

%% Registers a new process of the node under the name, on that node.
reg(T, I, Name) ->
    {T, {'fun', fun(W) ->
        {P, W1} = sderl_sim:pid(n(I), W),
        sderl_sim:apply_cmd({op, n(I), {r, Name, P, #{}}}, W1)
    end}}.
%% The same, as an operation whose answer is looked at later.
ask(T, I, Id, Name) ->
    {T, {'fun', fun(W) ->
        {P, W1} = sderl_sim:pid(n(I), W),
        sderl_sim:apply_cmd({op, n(I), Id, {r, Name, P, #{}}}, W1)
    end}}.
answered(T, Id, Answer) ->
    {T, {check, fun(W) ->
        sderl_sim:answer(Id, W) =:= Answer orelse {answer, Id, sderl_sim:answer(Id, W)}
    end}}.
op(T, I, Op) -> {T, {op, n(I), Op}}.
%% All given nodes hold (or lack) the name.
all(T, Is, Name) ->
    {T, {check, fun(W) ->
        [I || I <- Is, has(n(I), Name, W) =:= none] =:= []
            orelse {lacks, Name, [sderl_sim:rows(n(I), W) || I <- Is]}
    end}}.
none(T, Is, Name) ->
    {T,
     {check, fun(W) -> [I || I <- Is, has(n(I), Name, W) =/= none] =:= [] orelse {has, Name} end}}.
same(T, Is, Name) ->
    {T, {check, fun(W) -> length(lists:usort([has(n(I), Name, W) || I <- Is])) =:= 1 end}}.
token(Name, W) -> {_, _, _, Token, _} = has(n(1), Name, W), Token.
coords(T, K) ->
    {T, {check,
         fun(W) -> length(sderl_sim:coord(W)) =:= K orelse {coordinators, sderl_sim:coord(W)} end}}.
info(I, Key, W) -> info_of(n(I), Key, W).
info_is(T, I, Key, V) ->
    {T, {check, fun(W) -> info(I, Key, W) =:= V orelse {Key, info(I, Key, W)} end}}.

scenarios_test_() ->
    [{atom_to_list(Name), {timeout, ?LIMIT_S, fun() -> passes(Name, options(Opts)) end}}
     || {Name, _, Opts} <- scenarios()].

without_test_() ->
    [{lists:concat([Name, " without ", Fault]),
      {timeout, ?LIMIT_S, fun() -> fails(Name, Fault, options(Opts)) end}}
     || {Name, Faults, Opts} <- scenarios(), Fault <- Faults].

options(Opts) -> maps:merge(#{clients => 1, boot_spread => 500}, Opts).

scenarios() ->
    [{rule_1_a_deleted_group_is_not_revived, [rule_1],
      %% A member that was away when the group was deleted comes back to the next group of that
      %% name.
      #{nodes => 3, clients => 0,
        script => [reg(10_000, 3, alpha), {11_000, {split, [n(1), n(2)], [n(3)], fast}},
                   op(13_000, 1, delete),
                   {15_000, {create, n(1)}}, {16_000, {add, n(1), n(2)}}, reg(18_000, 2, beta),
                   all(19_000, [1, 2], beta), {20_000, join},
                   {30_000, {check, fun(W) -> sderl_sim:state(n(3), W) =:= none end}},
                   info_is(30_000, 1, members, [n(1), n(2)]),
                   all(30_000, [1, 2], beta), none(30_000, [1, 2], alpha)]}},
     {rule_2_a_file_half_rolled_out_makes_one_group, [rule_2],
      %% Each half has run by itself before they meet.
      #{nodes => 4, clients => 1, launch => #{n(1) => [n(1), n(2)], n(2) => [n(1), n(2)]},
        script => [{0, {split, [n(1), n(2)], [n(3), n(4)], fast}}, {8000, join}, coords(18_000, 1),
                   info_is(18_000, 1, members, [n(1), n(2), n(3), n(4)])]}},
     {rule_2_a_node_that_boots_takes_over_nobody, [rule_2],
      #{nodes => 3, clients => 1,
        script => [{10_000, {'fun', fun(W) -> sderl_sim:note(epoch, info(2, epoch, W), W) end}},
                   {10_000, {'fun', fun crash_follower/1}},
                   {12_000,
                    {'fun',
                     fun(W) -> sderl_sim:apply_cmd({restart, sderl_sim:noted(crashed, W)}, W) end}},
                   {20_000, {check, fun(W) ->
                       [info(I, epoch, W) || I <- [1, 2, 3]] =:=
                           lists:duplicate(3, sderl_sim:noted(epoch, W))
                   end}}]}},
     {rule_2_two_that_boot_side_by_side_take_over_nobody, [rule_2],
      %% The two see each other, and members that follow a coordinator. They cannot see the
      %% coordinator yet.
      #{nodes => 5, clients => 1,
        script => [{10_000, {'fun', fun(W) -> sderl_sim:note(epoch, info(2, epoch, W), W) end}},
                   {10_000, {'fun', fun crash_two/1}},
                   {12_000, {'fun', fun(W) -> on_others([5], fun restart/2, W) end}},
                   {12_400, {'fun', fun(W) -> on_others([4], fun restart/2, W) end}},
                   {12_900, {'fun', fun(W) -> asks(sderl_sim:noted(lead, W), here, W) end}},
                   answered(13_400, here, yes),
                   {13_400, {'fun', fun(W) -> asks(other(5, W), there, W) end}},
                   {13_500, {check, fun(W) ->
                       info_of(sderl_sim:noted(lead, W), epoch, W) =:= sderl_sim:noted(epoch, W)
                   end}}, {14_000, join},
                   answered(22_000, there, {no, name_or_pid_already_registered}),
                   {22_000, {check, fun(W) ->
                       [info(I, epoch, W) || I <- [1, 2, 3, 4, 5]] =:=
                           lists:duplicate(5, sderl_sim:noted(epoch, W))
                   end}}]}},
     {rule_2_two_that_boot_wait_for_those_they_are_linked_to, [rule_2],
      %% The two meet each other. They have links to the running members, which learn of these links
      %% later than the two.
      #{nodes => 5, clients => 1,
        script => [{10_000, {'fun', fun crash_two_apart/1}},
                   {12_000, {'fun', fun(W) -> on_others([4, 5], fun restart/2, W) end}},
                   {12_700,
                    {'fun',
                     fun(W) -> sderl_sim:apply_cmd({uncut, other(4, W), other(5, W)}, W) end}},
                   {12_900, {'fun', fun(W) -> asks(sderl_sim:noted(lead, W), here, W) end}},
                   answered(13_400, here, yes),
                   {13_700, {'fun', fun(W) -> asks(other(5, W), there, W) end}},
                   {13_700, {'fun', fun(W) -> asks(other(4, W), there_too, W) end}},
                   {15_000, {'fun', fun all_fast/1}}, {15_500, join},
                   answered(24_000, there, {no, name_or_pid_already_registered}),
                   answered(24_000, there_too, {no, name_or_pid_already_registered}),
                   {24_000, {check, fun same_epoch/1}}]}},
     {rule_2_a_coordinator_that_boots_again_leads_nobody, [],
      %% The coordinator is back before all members have seen that it went. It meets members that
      %% have promised to follow another one.
      #{nodes => 5, clients => 1,
        script => [{10_000, {'fun', fun(W) ->
            [C] = sderl_sim:coord(W),
            sderl_sim:apply_cmd({crash, C, slow}, sderl_sim:note(lead, C, W))
        end}},
                   {14_500, {'fun', fun(W) -> restart(sderl_sim:noted(lead, W), W) end}},
                   coords(26_000, 1),
                   {26_000,
                    {check, fun(W) -> sderl_sim:coord(W) =/= [sderl_sim:noted(lead, W)] end}}]}},
     {rule_2_nodes_that_boot_become_one_component, [skip_apply, early_yes],
      #{nodes => 5, boot_spread => 5000, script => [coords(9000, 1)]}},
     {rule_3_a_new_life_of_a_node_is_admitted_empty, [rule_3],
      #{nodes => 3, script => [reg(6000, 1, alpha),
                               all(6500, [1, 2, 3], alpha),
                               {7000, {crash, n(1), fast}},
                               none(7500, [2, 3], alpha),
                               {9000, {restart, n(1)}},
                               coords(13_000, 1),
                               none(13_000, [1, 2, 3], alpha)]}},
     {rule_4_removals_win, [rule_4],
      %% During a split each side removes a member of the other side. Both members must be out, and
      %% hear it.
      #{nodes => 4, clients => 0,
        script => [{6000, {split, [n(1), n(2), n(4)], [n(3)], fast}},
                   {8000, {remove, n(1), n(3)}},
                   {8000, {remove, n(3), n(4)}},
                   {9000, join},
                   info_is(19_000, 1, members, [n(1), n(2)]),
                   {19_000,
                    {check,
                     fun(W) -> [sderl_sim:state(n(I), W) || I <- [3, 4]] =:= [none, none] end}}]}},
     {rule_4_who_boots_and_was_removed_is_told_by_one_that_it_does_not_know, [],
      %% The other member of its launch configuration is lost for good.
      #{nodes => 2, spare => 1, clients => 0,
        script => [{6000, {add, n(1), x(1)}},
                   {8000, {remove, n(2), n(1)}},
                   {10_000, {crash, n(1), fast}},
                   {11_000, {lose, n(2), fast}},
                   {12_000, {restart, n(1)}},
                   coords(20_000, 1),
                   {20_000, {check, fun(W) -> sderl_sim:state(n(1), W) =:= none end}}]}},
     {rule_5_a_node_joins_while_writes_go_on, [rule_5],
      %% The snapshot of the new member takes seconds. What is registered meanwhile is answered at
      %% once.
      #{nodes => 3, spare => 1, clients => 0,
        script => [reg(6000, 1, {name, K}) || K <- lists:seq(1, 40)] ++
            [{8000, {'fun', fun slow_to_join/1}},
             {8000, {add, n(1), x(1)}},
             {13_000, {check, fun learning/1}},
             ask(14_000, 2, late, beta),
             answered(14_500, late, yes),
             {14_500, {check, fun learning/1}},
             info_is(40_000, 2, live, [n(1), n(2), n(3), x(1)])]}},
     {rule_5_what_was_ordered_before_a_removal_succeeds, [rule_5],
      #{nodes => 3, clients => 0,
        script => [reg(6000, 3, alpha),
                   {6000, {remove, n(1), n(3)}},
                   reg(6001, 3, beta),
                   {8000, {check, fun(W) -> sderl_sim:state(n(3), W) =:= none end}},
                   coords(8000, 1)]}},
     {rule_6_nodes_that_never_come_back_are_forgotten, [rule_6],
      #{nodes => 3, forget_ms => 5000, clients => 1,
        script => [{6000, {crash, n(3), fast}}, info_is(20_000, 1, members, [n(1), n(2)])]}},
     {rule_6_who_was_forgotten_returns_by_itself, [rule_6],
      %% Each half forgets the other; when they meet they are one group again.
      #{nodes => 4, forget_ms => 4000, clients => 1,
        script => [{6000, {split, [n(1), n(2)], [n(3), n(4)], fast}},
                   info_is(17_000, 1, members, [n(1), n(2)]),
                   info_is(17_000, 3, members, [n(3), n(4)]),
                   reg(17_000, 1, alpha),
                   reg(17_000, 3, beta),
                   {18_000, join},
                   coords(32_000, 1)] ++
            [info_is(32_000, I, members, [n(1), n(2), n(3), n(4)]) || I <- [1, 2, 3, 4]] ++
            [all(32_000, [1, 2, 3, 4], Name) || Name <- [alpha, beta]]}},
     {rule_6_removals_win_over_forgetting, [],
      #{nodes => 4, forget_ms => 4000, clients => 0,
        script => [{6000, {split, [n(1), n(2), n(4)], [n(3)], fast}},
                   info_is(16_000, 3, members, [n(3)]),
                   {16_000, {remove, n(1), n(3)}},
                   {17_000, {remove, n(3), n(4)}},
                   {18_000, join},
                   info_is(30_000, 1, members, [n(1), n(2)]),
                   {30_000,
                    {check,
                     fun(W) -> [sderl_sim:state(n(I), W) || I <- [3, 4]] =:= [none, none] end}}]}},
     {rule_6_a_death_that_nobody_alive_saw_counts, [rule_6],
      %% All members that saw the death were restarted since.
      #{nodes => 3, forget_ms => 5000, clients => 0,
        script => [{6000, {crash, n(3), fast}}, {7000, {crash, n(1), fast}},
                   {7000, {crash, n(2), fast}}, {8000, {restart, n(1)}},
                   {8000, {restart, n(2)}}, info_is(25_000, 1, members, [n(1), n(2)]),
                   info_is(25_000, 1, forgotten, [n(3)]),
                   {26_000, {restart, n(3)}}, info_is(36_000, 1, members, [n(1), n(2), n(3)])]}},
     {rule_6_a_death_counts_over_takeovers_and_deaths_of_processes, [],
      #{nodes => 4, forget_ms => 5000, clients => 1,
        script => [{6000, {crash, n(4), fast}},
                   {9000, {on_coord, kill}},
                   {13_000, {on_coord, crash, fast}},
                   {28_000, {check, fun(W) ->
                       [C] = sderl_sim:coord(W),
                       lists:member(n(4), info_of(C, members, W)) =:= false
                   end}}]}},
     {rule_7_a_batch_at_one_member_survives_the_coordinator, [rule_7],
      %% The batch reaches one follower and not the other, and the coordinator dies. Both must get
      %% it.
      #{nodes => 3, clients => 0,
        script => [slow_lowest(6000),
                   {6020, {'fun', fun write_at_coord/1}},
                   {6120, {on_coord, crash, fast}},
                   {6120, fast_all()},
                   {9000, {check, fun(W) ->
                       length([1 || I <- [1, 2, 3], has(n(I), survivor, W) =/= none]) =:= 2
                           orelse lost
                   end}}]}},
     {rule_7_the_coordinators_process_dies_between_two_effects, [],
      #{nodes => 4, clients => 3,
        script => [{6000 + 700 * K, {on_coord, kill_in_step}} || K <- lists:seq(1, 12)]}},
     {rule_8_a_list_that_is_sent_again_gets_its_first_answer, [rule_8],
      #{nodes => 3, clients => 3,
        script => [{6000 + 350 * K, {kill_in_step, n(K rem 3 + 1)}} || K <- lists:seq(1, 25)]}},
     {rule_9_a_stopped_coordinator_discards_its_tail, [rule_9],
      #{nodes => 3, clients => 0,
        script => [{6000, {'fun', fun write_at_coord/1}},
                   {6001, {on_coord, pause}},
                   reg(14_000, 1, later),
                   reg(14_000, 2, later),
                   reg(14_000, 3, later),
                   {20_000, resume_all},
                   coords(30_000, 1)]}},
     {rule_9_silence_on_one_link_deposes_nobody, [rule_9],
      #{nodes => 3, clients => 0,
        script => [{6000, {'fun', fun slow_to_successor/1}},
                   {16_000,
                    {check, fun(W) -> sderl_sim:coord(W) =:= [sderl_sim:noted(lead, W)] end}},
                   fast_again(16_000)]}},
     {rule_9_a_coordinator_whose_messages_stall_is_no_second_one, [rule_9],
      %% No link is lost, and the coordinator hears all others. They choose another one, because
      %% they do not hear it, and it decides nothing without them.
      #{nodes => 3, clients => 0,
        script => [{6000, {'fun', fun stall_coord/1}},
                   {14_000, {'fun', fun write_at_successor/1}},
                   answered(17_000, late, yes),
                   {20_000, {check, fun unanswered_early/1}},
                   {25_000, fast_all()},
                   coords(70_000, 1),
                   {70_000, {check, fun not_both/1}}]}},
     {rule_10_a_coordinator_that_was_stopped_is_no_second_one, [],
      #{nodes => 3, clients => 2,
        script => [{6000, {on_coord, pause}}, {12_000, resume_all}, coords(22_000, 1)]}},
     {rule_10_a_coordinator_that_was_stopped_answers_nothing_alone, [rule_10],
      %% The last write of the coordinator before it was stopped reached no member. Another one
      %% coordinates by now, and gave the name away.
      #{nodes => 3, clients => 0,
        script => [{6000, {'fun', fun isolate_writer/1}},
                   {6050, {on_coord, pause}},
                   {13_500, {'fun', fun write_at_successor/1}},
                   answered(15_500, late, yes),
                   {25_900, fast_all()},
                   {26_000, resume_all},
                   {36_000, {check, fun not_both/1}}]}},
     {rule_10_all_were_stopped, [],
      #{nodes => 3, clients => 2, script => [{6000, {pause, n(I)}} || I <- [1, 2, 3]] ++
          [{30_000, resume_all}, coords(40_000, 1)]}},
     {rule_11_two_that_cannot_see_each_other_stay_together, [],
      #{nodes => 4, clients => 1,
        script => [{6000, {cut, n(1), n(2), fast}}, coords(16_000, 1), reg(16_000, 1, alpha),
                   all(18_000, [1, 2, 3, 4], alpha)]}},
     {rule_11_the_role_goes_to_one_that_sees_all, [rule_11],
      #{nodes => 3, clients => 1,
        script => [{6000, {'fun', fun cut_coord_from_one/1}}, coords(16_000, 1),
                   reg(16_000, 3, alpha), all(18_000, [1, 2, 3], alpha)]}},
     {rule_11_whom_no_star_covers_goes_on_alone, [rule_11],
      %% Four nodes in a chain are two components, and stay so.
      #{nodes => 4, clients => 1,
        script => [{6000, {shape, [{n(1), n(2)}, {n(2), n(3)}, {n(3), n(4)}], fast}},
                   coords(30_000, 2),
                   {30_000, {'fun', fun(W) -> sderl_sim:note(leads, sderl_sim:coord(W), W) end}}] ++
            [ask(60_000, I, {asked, I}, {name, I}) || I <- [1, 2, 3, 4]] ++
            [answered(61_000, {asked, I}, yes) || I <- [1, 2, 3, 4]] ++
            [{61_000, {check, fun(W) -> sderl_sim:coord(W) =:= sderl_sim:noted(leads, W) end}},
             {61_000, join}, coords(80_000, 1)] ++
            [all(80_000, [1, 2, 3, 4], {name, I}) || I <- [1, 2, 3, 4]]}},
     {rule_12_a_slow_member_is_set_aside_and_returns, [rule_12],
      #{nodes => 3, clients => 2,
        script => [{6000, {'fun', fun pause_follower/1}},
                   reg(12_000, 1, alpha),
                   reg(12_000, 2, beta),
                   reg(12_000, 3, gamma),
                   {13_500, {check, fun(W) ->
                       [1
                        || Name <- [alpha, beta, gamma], I <- [1, 2, 3],
                           has(n(I), Name, W) =/= none] =/= []
                   end}},
                   {14_000, resume_all},
                   coords(20_000, 1)]}},
     {rule_13_a_token_is_above_all_before_it, [rule_13],
      %% All nodes lose their memory.
      #{nodes => 3, clients => 0,
        script => [reg(6000 + 100 * K, 1, {name, K}) || K <- lists:seq(1, 5)] ++
            [reg(8000, 1, alpha),
             {9000, {'fun', fun(W) -> sderl_sim:note(token, token(alpha, W), W) end}}] ++
            [{10_000, {crash, n(I), fast}} || I <- [1, 2, 3]] ++
            [{12_000, {restart, n(I)}} || I <- [1, 2, 3]] ++
            [reg(22_000, 1, alpha),
             {24_000, {check, fun(W) -> token(alpha, W) > sderl_sim:noted(token, W) end}}]}},
     {rule_14_a_late_nodedown_removes_no_new_name, [rule_14],
      #{nodes => 3, clients => 0,
        script => [{6000, {crash, n(3), slow}}, {6500, {restart, n(3)}},
                   {8000, {'fun', fun keep_registering/1}}, all(24_000, [1, 2, 3], fresh)]}},
     {rule_15_a_heal_brings_back_no_unregistered_name, [rule_15],
      #{nodes => 4, clients => 0,
        script => [reg(6000, 1, alpha), reg(6000, 3, beta),
                   {7000, {split, [n(1), n(2)], [n(3), n(4)], fast}}, op(9000, 1, {alpha}),
                   op(9000, 3, {beta}),
                   reg(9000, 2, gamma), reg(9000, 4, delta), {11_000, join},
                   none(22_000, [1, 2, 3, 4], alpha), none(22_000, [1, 2, 3, 4], beta),
                   all(22_000, [1, 2, 3, 4], gamma), all(22_000, [1, 2, 3, 4], delta)]}},
     {rule_15_a_name_whose_home_is_aside_goes_when_that_is_back, [],
      #{nodes => 3, clients => 0,
        script => [reg(6000, 3, alpha),
                   {7000, {pause, n(3)}},
                   reg(8000, 2, beta),
                   {14_000, {op, n(1), asked, {alpha}}},
                   all(16_000, [1, 2], alpha),
                   {18_000, resume_all},
                   answered(22_000, asked, ok),
                   none(22_000, [1, 2, 3], alpha)]}},
     {rule_15_what_became_of_a_name_that_went_with_its_home_is_unknown, [],
      #{nodes => 3, clients => 0,
        script => [reg(6000, 3, alpha), {7000, {pause, n(3)}}, reg(8000, 2, beta),
                   {14_000, {op, n(1), asked, {alpha}}}, {18_000, {cut, n(1), n(3), fast}},
                   {18_000, {cut, n(2), n(3), fast}}, {20_000, resume_all},
                   answered(21_000, asked, unknown), {22_000, join},
                   all(34_000, [1, 2, 3], alpha)]}},
     {rule_15_what_its_home_brought_and_was_removed_since_stays_away, [rule_15],
      %% A third component takes in the home of the name, and the name is unregistered there. Then
      %% members come that cannot know that the home had the name.
      #{nodes => 5, clients => 0,
        script => unseen(0) ++ [{13_000, {'fun', fun(W) ->
            on_others([5], fun(F, X) ->
                has(F, alpha, X) =/= none orelse error(lacks),
                sderl_sim:apply_cmd({op, F, {alpha}}, X)
            end, W)
        end}},
                                none(14_000, [1, 2, 3, 4, 5], alpha),
                                {15_000, {'fun', fun all_fast/1}},
                                {15_000, join},
                                coords(30_000, 1),
                                none(30_000, [1, 2, 3, 4, 5], alpha)]}},
     {rule_15_what_its_home_never_heard_of_is_unknown, [],
      #{nodes => 5, clients => 0,
        script => unseen(5000) ++ [{15_000, {'fun', fun all_fast/1}}, {15_000, join},
                                   coords(30_000, 1), none(30_000, [1, 2, 3, 4, 5], alpha)]}},
     {rule_15_what_a_removed_member_unregistered_alone_stays_away, [],
      %% The member is set aside for its silence and goes on alone. It unregisters the name and
      %% leaves. The others still have the name.
      #{nodes => 3, clients => 0,
        script => [reg(6000, 3, alpha),
                   {8000, {'fun', fun silent_third/1}},
                   reg(9000, 3, beta),
                   all(40_000, [1, 2], alpha),
                   {40_000, {op, n(3), unregistered, {alpha}}},
                   answered(41_000, unregistered, ok),
                   {41_000, {remove, n(3), n(3)}},
                   {42_000, {check, fun(W) -> sderl_sim:state(n(3), W) =:= none end}},
                   all(42_000, [1, 2], alpha),
                   {43_000, {'fun', fun third_speaks/1}},
                   info_is(80_000, 1, members, [n(1), n(2)]),
                   none(80_000, [1, 2], alpha)]}},
     {rule_15_what_a_member_unregistered_that_was_removed_elsewhere_stays_away, [],
      %% The same, where the others have set the member aside and remove it. It is silent for longer
      %% than the strict checks allow, so these are off.
      #{nodes => 3, clients => 0, strict => [],
        script => [reg(6000, 3, alpha),
                   {8000, {'fun', fun silent_third/1}},
                   reg(9000, 2, beta),
                   reg(9000, 3, gamma),
                   all(40_000, [1, 2], alpha),
                   {40_000, {op, n(3), unregistered, {alpha}}},
                   answered(41_000, unregistered, ok),
                   {41_000, {remove, n(1), n(3)}},
                   {43_000, {'fun', fun third_speaks/1}},
                   info_is(80_000, 1, members, [n(1), n(2)]),
                   none(80_000, [1, 2], alpha)]}},
     {rule_15_what_a_silent_member_unregistered_after_its_removal_stays_away, [],
      %% The same, where the member still counts when it is removed, because nothing was written
      %% since it fell silent.
      #{nodes => 3, clients => 0, strict => [],
        script => [reg(6000, 3, alpha),
                   {8000, {'fun', fun silent_third/1}},
                   {8000, {remove, n(1), n(3)}},
                   all(9000, [1, 2], alpha),
                   {40_000, {op, n(3), unregistered, {alpha}}},
                   answered(60_000, unregistered, ok),
                   {61_000, {'fun', fun third_speaks/1}},
                   info_is(95_000, 1, members, [n(1), n(2)]),
                   none(95_000, [1, 2], alpha)]}},
     {rule_16_the_name_of_a_pid_that_died_goes, [lose_down],
      #{nodes => 3, clients => 1,
        script => [reg(6000, 2, alpha), all(6500, [1, 2, 3], alpha),
                   {7000, {die_name, n(1), alpha}}, none(7500, [1, 2, 3], alpha)]}},
     {rule_16_a_foreign_pid_is_watched_by_the_coordinator_and_its_successor, [lose_down],
      #{nodes => 3, spare => 1, clients => 0,
        script => [{6000, {'fun', fun(W) ->
            {P, W1} = sderl_sim:pid(x(1), W),
            sderl_sim:apply_cmd({op, n(1), {r, alpha, P, #{}}}, W1)
        end}},
                   all(6500, [1, 2, 3], alpha),
                   {7000, {on_coord, kill}},
                   {9000, {die_name, n(2), alpha}},
                   none(12_000, [1, 2, 3], alpha)]}},
     {rule_16_a_late_removal_leaves_the_successor_its_name, [rule_16],
      #{nodes => 3, clients => 0,
        script => [reg(6000, 2, alpha), {7000, {'fun', fun replace_dead/1}},
                   all(7500, [1, 2, 3], alpha)]}},
     {rule_17_a_name_held_by_a_dead_pid_is_free, [rule_17],
      %% The successor registers before the death is reported.
      #{nodes => 3, clients => 0,
        script => [reg(6000, 2, alpha), {7000, {'fun', fun replace_dead/1}},
                   answered(7500, successor, yes)]}},
     {rule_18_a_clash_is_decided_once, [rule_18, wrong_winner],
      #{nodes => 4, clients => 0, resolver => [],
        script => [{6000, {split, [n(1), n(2)], [n(3), n(4)], fast}},
                   reg(8000, 1, alpha),
                   reg(8000, 3, alpha),
                   {9000, join},
                   all(22_000, [1, 2, 3, 4], alpha),
                   same(22_000, [1, 2, 3, 4], alpha)]}},
     {rule_18_a_loser_whose_home_is_aside_hears_when_that_is_back, [],
      %% The home of the loser has the decision. It does not count any more when the batch comes
      %% that settles the clash.
      #{nodes => 4, clients => 0, resolver => [],
        script => clash() ++ [{9000, once(fun(W) -> decided(loser, W) end, fun slow_home/2)},
                              settled_without_home(20_000),
                              {20_000, {'fun', fun(W) ->
                                  {C, N, _} = sderl_sim:noted(home, W),
                                  sderl_sim:apply_cmd({no_delay, C, N}, W)
                              end}},
                              {34_000, {check, fun(W) ->
                                  {_, _, Pid} = sderl_sim:noted(home, W),
                                  not sderl_sim_world:alive(Pid, W)
                              end}},
                              same(34_000, [1, 2, 3, 4], alpha)]}},
     {rule_18_a_winner_whose_home_went_comes_back_with_its_new_token, [],
      #{nodes => 4, clients => 0, resolver => [],
        script => clash() ++
            [{9000, once(fun(W) -> decided(winner, W) end, fun slow_and_lose_home/2)},
             settled_without_home(18_000),
             {20_000, join},
             all(34_000, [1, 2, 3, 4], alpha),
             same(34_000, [1, 2, 3, 4], alpha)]}},
     {rule_19_writes_are_answered_over_a_chain_of_failures, [rule_19],
      #{nodes => 5, clients => 3,
        script => [{6000, {on_coord, crash, fast}}, {7000, {on_coord, kill}},
                   {8000, {on_coord, pause}}, {15_000, {on_coord, crash, slow}}]}},
     {rule_30_a_new_process_goes_on_where_its_predecessor_died, [],
      #{nodes => 3, clients => 2,
        script => [{6000 + 1100 * K, {kill, n(K rem 3 + 1)}} || K <- lists:seq(0, 8)]}},
     {two_registrations_of_a_name_in_one_batch, [double_yes],
      #{nodes => 3, clients => 0,
        script => [{6000, {'fun', fun race/1}}, {6000, {'fun', fun race/1}}]}},
     {a_deleted_group_ends_on_every_member, [],
      #{nodes => 3, clients => 2, script => [{6000, {delete, n(2)}}]}},
     {a_coordinator_that_removes_itself, [],
      #{nodes => 3, clients => 2, script => [{6000, {'fun', fun remove_coord/1}}]}}].

%% ---------------------------------------------------------------- steps of scenarios

followers(W) -> lists:sort([n(I) || I <- [1, 2, 3]] -- sderl_sim:coord(W)).

%% Messages of the coordinator take long to the member that will succeed it, and not to the other
%% one.
slow_lowest(T) ->
    {T, {'fun', fun(W) ->
        [C] = sderl_sim:coord(W),
        [A, B] = followers(W),
        sderl_sim:apply_cmd({delay, C, B, {1, 5}},
                            sderl_sim:apply_cmd({delay, C, A, {900, 1000}}, W))
    end}}.

%% Messages of the coordinator take so long to its successor that it seems silent there.
slow_to_successor(W) ->
    [C] = sderl_sim:coord(W),
    sderl_sim:apply_cmd({delay, C, hd(followers(W)), {9000, 9000}}, sderl_sim:note(lead, C, W)).

slow_to_join(W) ->
    [C] = sderl_sim:coord(W),
    sderl_sim:apply_cmd({delay, C, x(1), {1000, 1000}}, W).

learning(W) ->
    [C] = sderl_sim:coord(W),
    maps:get(learning, sderl_core:info(sderl_sim:state(C, W))) =:= [x(1)].

%% No member hears the coordinator for a while, nor what it has just written.
isolate_writer(W0) ->
    [C] = sderl_sim:coord(W0),
    W1 = lists:foldl(fun(N, W) -> sderl_sim:apply_cmd({delay, C, N, {8000, 8000}}, W) end, W0,
                     followers(W0)),
    {P, W2} = sderl_sim:pid(C, W1),
    sderl_sim:apply_cmd({op, C, early, {r, alpha, P, #{}}}, W2).

stall_coord(W0) ->
    [C] = sderl_sim:coord(W0),
    W1 = lists:foldl(fun(N, W) -> sderl_sim:apply_cmd({delay, C, N, {30_000, 30_000}}, W) end, W0,
                     followers(W0)),
    {P, W2} = sderl_sim:pid(C, W1),
    sderl_sim:apply_cmd({op, C, early, {r, alpha, P, #{}}}, W2).

unanswered_early(W) -> sderl_sim:answer(early, W) =/= yes orelse {answers, yes}.

%% The coordinator of the highest epoch writes: one that was stopped does not know yet that it is
%% none.
write_at_successor(W) ->
    {_, A} = lists:max([{maps:get(epoch, sderl_core:info(sderl_sim:state(N, W))), N}
                        || N <- sderl_sim:coord(W)]),
    {P, W1} = sderl_sim:pid(A, W),
    sderl_sim:apply_cmd({op, A, late, {r, alpha, P, #{}}}, W1).

not_both(W) ->
    case {sderl_sim:answer(early, W), sderl_sim:answer(late, W)} of
        {{no, _}, yes} -> true;
        {unknown, yes} -> true;
        Both -> {answers, Both}
    end.
fast_again(T) -> {T, fast_all()}.

fast_all() ->
    {'fun', fun(W) ->
        lists:foldl(fun({A, B}, X) -> sderl_sim:apply_cmd({no_delay, n(A), n(B)}, X) end, W,
                    [{A, B} || A <- [1, 2, 3], B <- [1, 2, 3]])
    end}.

write_at_coord(W) ->
    [C] = sderl_sim:coord(W),
    [A, _] = followers(W),
    {P, W1} = sderl_sim:pid(A, W),
    sderl_sim:apply_cmd({op, C, {r, survivor, P, #{}}}, W1).

cut_coord_from_one(W) ->
    [C] = sderl_sim:coord(W),
    sderl_sim:apply_cmd({cut, C, hd(followers(W)), fast}, W).

%% The I-th member if the coordinator is the first and the others follow in the order of their
%% names.
other(I, W) ->
    lists:nth(I - 1, lists:sort([n(J) || J <- [1, 2, 3, 4, 5]] -- [sderl_sim:noted(lead, W)])).
on_others(Is, F, W) -> lists:foldl(fun(I, X) -> F(other(I, X), X) end, W, Is).
restart(N, W) -> sderl_sim:apply_cmd({restart, N}, W).
noted_lead(W) -> [C] = sderl_sim:coord(W), sderl_sim:note(lead, C, W).
info_of(N, Key, W) -> maps:get(Key, sderl_core:info(sderl_sim:state(N, W))).

asks(N, Id, W) ->
    {P, W1} = sderl_sim:pid(N, W),
    sderl_sim:apply_cmd({op, N, Id, {r, alpha, P, #{}}}, W1).

%% Crashes two members. When they restart they see all but the coordinator.
crash_two(W0) ->
    W1 = noted_lead(W0),
    C = sderl_sim:noted(lead, W1),
    on_others([4, 5], fun(N, W) ->
        sderl_sim:apply_cmd({cut, N, C, fast}, sderl_sim:apply_cmd({crash, N, fast}, W))
    end, W1).

%% Crashes two members. When they restart they see neither each other nor the coordinator, and the
%% running members notice late that they see them.
crash_two_apart(W0) ->
    W1 = noted_epoch(noted_lead(W0)),
    C = sderl_sim:noted(lead, W1),
    {A, B} = {other(4, W1), other(5, W1)},
    Late = lists:foldl(fun({N, M}, W) -> sderl_sim:apply_cmd({delay, N, M, {3000, 3000}}, W) end,
                       W1, [{N, M} || N <- [A, B], M <- [C, other(2, W1), other(3, W1)]]),
    Crashed = on_others([4, 5], fun(N, W) -> sderl_sim:apply_cmd({crash, N, fast}, W) end, Late),
    lists:foldl(fun({N, M}, W) -> sderl_sim:apply_cmd({cut, N, M, fast}, W) end, Crashed,
                [{A, B}, {A, C}, {B, C}]).

noted_epoch(W) -> sderl_sim:note(epoch, info(2, epoch, W), W).
same_epoch(W) ->
    [info(I, epoch, W) || I <- [1, 2, 3, 4, 5]] =:= lists:duplicate(5, sderl_sim:noted(epoch, W)).

%% The second member registers a name for a process of the third, which is cut off while the batch
%% is under way to it for `Delay` ms. With a delay of 0 the third has the batch, and its
%% acknowledgement is under way. The fourth and the fifth are apart from these. The fifth begins an
%% epoch that is newer than all of theirs, and takes in the third.
unseen(Delay) ->
    [{6000, {'fun', fun(W0) ->
        W = noted_lead(W0),
        sderl_sim:apply_cmd({islands, [[sderl_sim:noted(lead, W), other(2, W), other(3, W)],
                                       [other(4, W), other(5, W)]], fast}, W)
    end}},
     {8000, {'fun', fun(W0) ->
         C = sderl_sim:noted(lead, W0),
         Slow = case Delay of
             0 -> {delay, other(3, W0), C, {5000, 5000}};
             _ -> {delay, C, other(3, W0), {Delay, Delay}}
         end,
         {P, W} = sderl_sim:pid(other(3, W0), sderl_sim:apply_cmd(Slow, W0)),
         sderl_sim:apply_cmd({op, other(2, W), asked, {r, alpha, P, #{}}}, W)
     end}},
     {8100, {'fun', fun cut_third/1}},
     answered(9400, asked, unknown),
     {9500, {'fun', fun(W) -> sderl_sim:apply_cmd({cut, other(4, W), other(5, W), fast}, W) end}},
     {10_500, {'fun', fun(W) -> sderl_sim:apply_cmd({uncut, other(3, W), other(5, W)}, W) end}},
     {12_500, {check, fun(W) ->
         info_of(other(3, W), coordinator, W) =:= other(5, W)
             orelse {follows, info_of(other(3, W), coordinator, W)}
     end}}].

cut_third(W0) ->
    lists:foldl(fun(N, W) -> sderl_sim:apply_cmd({cut, N, other(3, W), fast}, W) end, W0,
                [sderl_sim:noted(lead, W0), other(2, W0)]).
all_fast(W0) ->
    Ns = [n(I) || I <- [1, 2, 3, 4, 5]],
    lists:foldl(fun({A, B}, W) -> sderl_sim:apply_cmd({no_delay, A, B}, W) end, W0,
                [{A, B} || A <- Ns, B <- Ns]).

crash_follower(W) ->
    [F | _] = followers(W),
    sderl_sim:apply_cmd({crash, F, fast}, sderl_sim:note(crashed, F, W)).

pause_follower(W) -> sderl_sim:apply_cmd({pause, hd(followers(W))}, W).

remove_coord(W) ->
    [C] = sderl_sim:coord(W),
    sderl_sim:apply_cmd({op, C, {remove, [C], 1}}, W).

keep_registering(W) ->
    {P, W1} = sderl_sim:pid(n(3), W),
    sderl_sim:apply_cmd({op, n(3), {r, fresh, P, #{}}}, W1).

race(W) ->
    {P, W1} = sderl_sim:pid(n(2), W),
    sderl_sim:apply_cmd({op, n(2), [raced | P]}, W1).

%% On each side of a split a member that does not coordinate registers the name; then the sides
%% meet.
clash() ->
    Sides = [[n(1), n(2)], [n(3), n(4)]],
    [{6000, {split, hd(Sides), lists:last(Sides), fast}},
     {8000, {'fun', fun(W0) ->
         lists:foldl(fun(Side, W) ->
             [N | _] = Side -- sderl_sim:coord(W),
             {P, W1} = sderl_sim:pid(N, W),
             sderl_sim:apply_cmd({op, N, {r, alpha, P, #{}}}, W1)
         end, W0, Sides)
     end}},
     {9000, join}].

%% The links of the third member stand, but no message from it or to it arrives.
silent_third(W) -> all_cmds(fun(N, M) -> {silence, N, [M]} end, W).
third_speaks(W) -> all_cmds(fun(N, M) -> {speak, N, [M]} end, W).

all_cmds(Command, W0) ->
    Pairs = [{n(1), n(3)}, {n(2), n(3)}, {n(3), n(1)}, {n(3), n(2)}],
    lists:foldl(fun({N, M}, W) -> sderl_sim:apply_cmd(Command(N, M), W) end, W0, Pairs).

%% Does it as soon as the condition holds, and not again.
once(Is, Do) ->
    {'fun', fun(W) ->
        case Is(W) of
            false -> sderl_sim_world:in(1, {cmd, once(Is, Do)}, W);
            What -> Do(What, W)
        end
    end}.

%% The coordinator, the home of the winner or loser, which has just heard of the decision, and the
%% process of that one.
decided(Who, W) ->
    case [{C, N, Pid}
          || N <- [n(I) || I <- [1, 2, 3, 4]], C <- [info_of(N, coordinator, W)], C =/= N,
             C =/= undefined,
             #{alpha := {A, B, Keep, _}} <- [clashes(N, W)], {_, Pid, Home, _, _} <- [A, B],
             Home =:= N, (Pid =:= Keep) =:= (Who =:= winner)] of
        [Found | _] -> Found;
        [] -> false
    end.

clashes(N, W) -> maps:get(clashes, sderl_core:inspect(sderl_sim:state(N, W))).

slow_home({C, N, _} = Found, W) ->
    sderl_sim:apply_cmd({delay, C, N, {9000, 9000}}, sderl_sim:note(home, Found, W)).

slow_and_lose_home({C, _, _} = Found, W) ->
    Settled = fun(X) -> clashes(C, X) =:= #{} andalso Found end,
    sderl_sim:apply_cmd(once(Settled, fun lose_home/2), slow_home(Found, W)).

lose_home({C, N, _}, W) ->
    sderl_sim:apply_cmd({split, [N], [n(I) || I <- [1, 2, 3, 4]] -- [N], fast},
                        sderl_sim:apply_cmd({no_delay, C, N}, W)).

settled_without_home(T) ->
    {T, {check, fun(W) ->
        {C, N, _} = sderl_sim:noted(home, W),
        clashes(C, W) =:= #{} andalso not lists:member(N, info_of(C, live, W))
    end}}.

replace_dead(W0) ->
    {_, Old, _, _, _} = has(n(2), alpha, W0),
    {New, W1} = sderl_sim:pid(n(2), W0),
    sderl_sim:apply_cmd({die, Old},
                        sderl_sim:apply_cmd({op, n(2), successor, {x, alpha, New, Old, #{}}}, W1)).

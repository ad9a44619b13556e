%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_majority_tests).
-moduledoc """
Runs majority groups under random schedules of faults. Cores with planted faults must be seen to
break the promises of `m:sderl_sim_majority`.

`SDERL_LONG=1` makes the run long, with other schedules every time; `SDERL_SIM_SEED` sets the first
seed.
""".
-include_lib("eunit/include/eunit.hrl").

%% A planted fault must be seen within so many schedules.
-define(TRIES, 200).

random_test_() ->
    {"random schedules of majority groups", {timeout, 3600, fun random/0}}.

random() ->
    {Count, First} = sderl_sim_tests:schedules("majority groups, of each kind", 8),
    Kinds = [#{}, #{files => true}, hard()],
    ?assertEqual([], lists:append([failed(First, Count, Options) || Options <- Kinds])).

failed(First, Count, Options0) ->
    Options = Options0#{mode => majority},
    #{schedules := Count, failed := Failed} =
        sderl_sim_batch:run(First, Options, #{more => fun(Begun) -> Begun < Count end}),
    [{Seed, Options, Why} || #{seed := Seed, why := Why} <- Failed].

hard() ->
    #{nodes => 5, clients => 3, faults => 20, delay => {1, 200},
      kinds => [loss | sderl_sim_faults:usual()]}.

%% Schedules that once broke a promise.
found_test_() ->
    [{lists:concat([Seed, " ", Kind]), {timeout, 120, fun() ->
        ?assertEqual(ok, sderl_sim:run(Options#{mode => majority, seed => Seed}))
     end}}
     || {Kind, Options, Seeds} <- [{usual, #{}, [1251, 1102, 1135, 99]},
                                   {files, #{files => true}, [20405, 20955, 21320]},
                                   {hard, hard(), [72, 31236]},
                                   {hard_7, (hard())#{nodes => 7}, [5010, 5296, 5281]},
                                   %% Schedules of
                                   %% `bin/sderl bench simulate --hard --majority --nodes 4`.
                                   {bench_4, (hard())#{nodes => 4, spare => 1, reads => 10},
                                    [30000058, 30000588, 30000881, 30000891, 31001101,
                                     414003078, 910000914, 910000097, 910001978,
                                     991004718, 1040000000, 1040000020, 1040000224,
                                     1024002744, 1300004207, 1300003661, 1300002033, 3020009223,
                                     4120001064, 6001000320, 9200006662,
                                     9210006464]},
                                   {bench_3, (hard())#{nodes => 3, spare => 2, reads => 10},
                                    [9600002589, 9600017917, 9600027423, 9600039056]},
                                   {bench_5, (hard())#{nodes => 5, spare => 1, reads => 10},
                                    [40006394, 514000423, 871201930, 915000978, 1310002695,
                                     5010002131, 8000102930]},
                                   {bench_4_files,
                                    (hard())#{nodes => 4, spare => 1, reads => 10, files => true},
                                    [32000131, 32000753]},
                                   {bench_7_files,
                                    (hard())#{nodes => 7, spare => 1, reads => 10, files => true},
                                    [117001682]}],
        Seed <- Seeds].

%% One survivor of an operator's recovery lacks the last batch, which the other has: it registers a
%% name for a process of a node that is lost. Both must give the name the same home, whichever of
%% them leads.
recovered_test_() ->
    Cut = fun(W0) ->
        [C] = sderl_sim:coord(W0),
        [Behind, _, Third] = Others = [sderl_sim:name(I) || I <- [1, 2, 3, 4]] -- [C],
        W1 = sderl_sim:note(all, {C, Others}, W0),
        {Pid, W2} = sderl_sim:pid(Third, sderl_sim:apply_cmd({silence, C, [Behind]}, W1)),
        sderl_sim:apply_cmd({op, Behind, {r, alpha, Pid, #{}}}, W2)
    end,
    Lose = fun(W) ->
        {C, [_, _, Third]} = sderl_sim:noted(all, W),
        sderl_sim:apply_cmd({all, [{lose, N, fast} || N <- [C, Third]]}, W)
    end,
    HaveIt = fun(W) ->
        {_, [Behind, Ahead, _]} = sderl_sim:noted(all, W),
        [is_map_key(alpha, sderl_sim:rows(N, W)) || N <- [Behind, Ahead]] =:= [false, true]
    end,
    %% The operator recovers the group when all faults are over.
    Options = #{mode => majority, nodes => 4, spare => 1, clients => 0, boot_spread => 500,
                script => [{10_000, {'fun', Cut}}, {10_500, {'fun', Lose}},
                           {20_000, {check, HaveIt}}]},
    [{timeout, 120, ?_assertEqual({Seed, ok}, {Seed, sderl_sim:run(Options#{seed => Seed})})}
     || Seed <- lists:seq(1, 4)].

%% The coordinator is lost for good while a member that was set aside takes a snapshot. That member
%% remembers what it promised, and the third one has all that it ever had: the two go on, without an
%% operator.
lost_as_one_learns_test_() -> holds(lost_as_one_learns()).

lost_as_one_learns() ->
    Pause = fun(W0) ->
        [Coord] = sderl_sim:coord(W0),
        [Learner, Third] = lists:delete(Coord, sderl_sim:all(W0)),
        sderl_sim:apply_cmd({pause, Learner}, sderl_sim:note(all, {Coord, Learner, Third}, W0))
    end,
    Resume = fun(W) ->
        {_, Learner, _} = sderl_sim:noted(all, W),
        sderl_sim:apply_cmd({resume, Learner}, W)
    end,
    Learns = fun(W) ->
        {Coord, Learner, Third} = sderl_sim:noted(all, W),
        [map_get(syncing, sderl_core:info(sderl_sim:state(N, W)))
         || N <- [Coord, Learner, Third]] =:= [false, true, false]
    end,
    #{nodes => 3,
      spare => 0,
      clients => 1,
      keep => 20,
      chunk => 1,
      delay => {50, 60},
      boot_spread => 500,
      script => [{12_000, {'fun', Pause}}, {20_000, {'fun', Resume}}, {22_000, {check, Learns}},
                 {22_010, {on_coord, lose, fast}}]}.

%% All members but the coordinator come back empty. Their snapshots take longer than a coordinator
%% waits that cannot make its members count. It must stay all the same: its successor would begin
%% the snapshots anew, and so on for ever.
slow_snapshots_test_() -> holds(slow_snapshots()).

slow_snapshots() ->
    Crash = fun(W0) ->
        [Coord] = sderl_sim:coord(W0),
        Others = lists:delete(Coord, sderl_sim:all(W0)),
        sderl_sim:apply_cmd({all, [{crash, N, fast} || N <- Others]},
                            sderl_sim:note(crashed, Others, W0))
    end,
    Start = fun(W) ->
        sderl_sim:apply_cmd({all, [{start, N} || N <- sderl_sim:noted(crashed, W)]}, W)
    end,
    #{nodes => 3, spare => 0, clients => 0, keep => 40, chunk => 1, delay => {100, 110},
      boot_spread => 500, script => [{30_000, {'fun', Crash}}, {31_000, {'fun', Start}}]}.

%% A member that does not hear the coordinator falls behind, another one is removed, and the
%% coordinator is lost for good. The two that are left are a majority of the members after the
%% removal, but not of the members that the one behind knows, which is the first in the order of
%% elections. They go on, without an operator.
lost_after_a_removal_test_() -> holds(lost_after_a_removal()).

lost_after_a_removal() ->
    Cut = fun(W0) ->
        [Coord] = sderl_sim:coord(W0),
        [Behind, _, Removed] = lists:delete(Coord, sderl_sim:all(W0)),
        sderl_sim:apply_cmd({silence, Coord, [Behind]}, sderl_sim:note(removed, Removed, W0))
    end,
    Remove = fun(W) ->
        [Coord] = sderl_sim:coord(W),
        sderl_sim:apply_cmd({op, Coord, {remove, [sderl_sim:noted(removed, W)], 1}}, W)
    end,
    #{nodes => 4, spare => 0, clients => 0, boot_spread => 500, delay => {50, 60},
      script => [{12_000, {'fun', Cut}},
                 {13_000, {on_coord, op, {read, alpha}}},
                 {20_000, {'fun', Remove}},
                 {21_000, {on_coord, op, {read, alpha}}},
                 {23_000, {on_coord, lose, fast}}]}.

%% A coordinator hears only one other member. The rest elect another coordinator, which removes the
%% former one and that member. When the former one hears the rest again, they are set aside in its
%% view, and the member that is live there has left.
removed_with_the_last_heard_test_() -> holds(removed_with_the_last_heard()).

removed_with_the_last_heard() ->
    Cut = fun(W0) ->
        [Coord] = sderl_sim:coord(W0),
        [A, B, Heard] = lists:delete(Coord, sderl_sim:all(W0)),
        W = sderl_sim:note(removed, [Coord, Heard], W0),
        lists:foldl(fun sderl_sim:apply_cmd/2, W, [{cut, Coord, N, fast} || N <- [A, B]])
    end,
    Remove = fun(W) ->
        [Coord] = sderl_sim:coord(W),
        sderl_sim:apply_cmd({op, Coord, {remove, sderl_sim:noted(removed, W), 1}}, W)
    end,
    #{nodes => 4, spare => 0, clients => 0, boot_spread => 500, delay => {50, 60},
      script => [{12_000, {'fun', Cut}}, {35_000, {'fun', Remove}}, {40_000, heal}]}.

%% Most members are removed while they do not hear the coordinator. The change needs their
%% acknowledgements. It is decided when the links are back, by whichever member leads then.
removed_unheard_test_() ->
    [{lists:concat([Left, " are left, heard at ", Heal, " ms, ", Seed]), {timeout, 120, fun() ->
        Remove = fun(W) -> remove_but(Left, W) end,
        Script = [{12_000, {'fun', Remove}}, {Heal, heal}],
        ?assertEqual(ok, sderl_sim:run(Options#{mode => majority, seed => Seed, script => Script}))
     end}}
     || {Options, Left, Heal, Seeds} <- [
            {#{nodes => 5}, 2, 18_000, [4, 5, 8]},
            {#{nodes => 5}, 2, 40_000, [12, 18]},
            {#{nodes => 5, delay => {1, 200}}, 2, 25_000, [10, 11]},
            {#{nodes => 7}, 2, 40_000, [11, 24]},
            {#{nodes => 7}, 3, 25_000, [1, 4, 23]}
        ],
        Seed <- Seeds].

%% A member that lacks more than one batch is removed, and the coordinator is lost before any member
%% has heard that all have the last batch. The others are a majority of the members before the
%% removal only together with the removed one.
removed_behind_test_() -> holds(removed_behind()).

holds(Options) ->
    [{timeout, 120, fun() ->
        ?assertEqual(ok, sderl_sim:run(Options#{mode => majority, seed => Seed}))
     end}
     || Seed <- lists:seq(1, 3)].

removed_behind() ->
    Cut = fun(W0) ->
        [Coord] = sderl_sim:coord(W0),
        [Behind | _] = Others = lists:delete(Coord, sderl_sim:all(W0) -- [x1@sim]),
        W = sderl_sim:note(behind, Behind, W0),
        sderl_sim:apply_cmd({islands, [[Behind], [Coord | Others -- [Behind]]], fast}, W)
    end,
    Remove = fun(W) ->
        [Coord] = sderl_sim:coord(W),
        sderl_sim:apply_cmd({op, Coord, {remove, [sderl_sim:noted(behind, W)], 1}}, W)
    end,
    Reads = [{At, {on_coord, op, {read, alpha}}} || At <- [9_000, 10_000, 11_000]],
    #{nodes => 4, spare => 1, clients => 0, delay => {50, 60}, boot_spread => 500,
      script => [{8_000, {'fun', Cut}} | Reads]
          ++ [{12_000, {'fun', Remove}}, {12_090, {on_coord, lose, fast}}, {14_000, heal}]}.

%% A member is removed and added again while it hears nothing. What its clients had asked for was
%% done before the removal, and its names have gone since. The clients get the answers when it is
%% back.
removed_and_added_test_() -> holds(removed_and_added()).

removed_and_added() ->
    Silence = fun(W0) ->
        [Coord] = sderl_sim:coord(W0),
        Deaf = lists:last(lists:delete(Coord, sderl_sim:all(W0) -- [x1@sim])),
        sderl_sim:apply_cmd({silence, Coord, [Deaf]}, sderl_sim:note(all, {Coord, Deaf}, W0))
    end,
    Then = fun(Commands) ->
        {'fun', fun(W) ->
            {Coord, Deaf} = sderl_sim:noted(all, W),
            lists:foldl(fun sderl_sim:apply_cmd/2, W, Commands(Coord, Deaf))
        end}
    end,
    #{nodes => 5, spare => 1, clients => 3, delay => {1, 200},
      script => [{12_000, {'fun', Silence}},
                 {12_500, Then(fun(Coord, Deaf) ->
                     [{cut, Coord, Deaf, slow}, {op, Coord, {remove, [Deaf], 1}}]
                  end)},
                 {16_800, Then(fun(Coord, Deaf) -> [{add, Coord, Deaf}] end)},
                 {17_000, heal}]}.

%% A member is removed in the middle of its snapshot. What it had asked for before is done, and the
%% snapshot says so.
removed_as_it_learns_test_() -> holds(removed_as_it_learns()).

removed_as_it_learns() ->
    Ask = fun(W0) ->
        [Coord] = sderl_sim:coord(W0),
        Learner = lists:last(lists:delete(Coord, sderl_sim:all(W0) -- [x1@sim])),
        {Pid, W} = sderl_sim:pid(Learner, W0),
        sderl_sim:apply_cmd({op, Learner, {r, alpha, Pid, #{}}},
                            sderl_sim:note(learner, Learner, W))
    end,
    Cut = fun(W) ->
        Learner = sderl_sim:noted(learner, W),
        sderl_sim:apply_cmd({islands, [[Learner], lists:delete(Learner, sderl_sim:all(W))], fast},
                            W)
    end,
    Remove = fun(W) ->
        [Coord] = sderl_sim:coord(W),
        sderl_sim:apply_cmd({op, Coord, {remove, [sderl_sim:noted(learner, W)], 1}}, W)
    end,
    #{nodes => 4, spare => 1, clients => 0, keep => 5, delay => {50, 60}, boot_spread => 500,
      script => [{12_000, {'fun', Ask}}, {12_080, {'fun', Cut}}, {13_000, heal},
                 {13_700, {'fun', Remove}}]}.

%% A removed member hears of its removal and leaves; of the others only the coordinator has the
%% batch. A member that lacks the batch promises the coordinator the next epoch. That makes three of
%% four members, because the one that has left counts as agreeing. Its node was started anew before
%% that, which no other node has heard of.
gone_and_started_anew_test_() -> holds(gone_and_started_anew()).

gone_and_started_anew() ->
    Then = fun(Command) ->
        {'fun', fun(W) -> sderl_sim:apply_cmd(Command(sderl_sim:noted(all, W)), W) end}
    end,
    Cut = fun(W) ->
        [Coord] = sderl_sim:coord(W),
        [Away, Behind, Out] = lists:delete(Coord, sderl_sim:all(W)),
        sderl_sim:apply_cmd({islands, [[Behind], [Coord, Away, Out]], fast},
                            sderl_sim:note(all, {Coord, Away, Behind, Out}, W))
    end,
    Lead = fun(W) ->
        {Coord, _, Behind, _} = sderl_sim:noted(all, W),
        Of = [sderl_core:info(sderl_sim:state(N, W)) || N <- [Coord, Behind]],
        [Coord, Coord] =:= [Leads || #{coordinator := Leads} <- Of]
    end,
    #{nodes => 4, spare => 0, clients => 0, delay => {50, 60}, boot_spread => 500,
      script => [{8_000, {'fun', Cut}},
                 {12_000, Then(fun({Coord, _, _, Out}) -> {remove, Coord, Out} end)},
                 {12_010, Then(fun({Coord, Away, Behind, Out}) ->
                     {islands, [[Away], [Behind], [Coord, Out]], fast}
                  end)},
                 {20_000, Then(fun({_, _, _, Out}) -> {crash, Out, fast} end)},
                 {20_500, Then(fun({Coord, Away, Behind, Out}) ->
                     {all, [join, {islands, [[Away], [Out], [Coord, Behind]], fast},
                            {restart, Out}]}
                  end)},
                 {28_000, {check, Lead}},
                 {30_000, heal}]}.

%% One batch removes three members, each by an operation of its own. These and a fourth member do
%% not hear it. The members that hear it are a majority of the members after the second removal and
%% after the third, but not of those before.
removed_one_by_one_test_() ->
    Remove = fun(W) ->
        [Coord] = sderl_sim:coord(W),
        [Silent | _] = Others = lists:delete(Coord, sderl_sim:all(W)),
        Out = lists:sublist(Others, 2, 3),
        Commands = [{silence, Coord, [Silent | Out]} | [{op, Coord, {remove, [N], 1}} || N <- Out]],
        lists:foldl(fun sderl_sim:apply_cmd/2, W, Commands)
    end,
    Options = #{mode => majority, nodes => 7,
                script => [{12_000, {'fun', Remove}}, {25_000, heal}]},
    [{timeout, 120, ?_assertEqual({Seed, ok}, {Seed, sderl_sim:run(Options#{seed => Seed})})}
     || Seed <- [1, 4, 6]].

%% ---------------------------------------------------------------- planted faults

planted_test_() ->
    [{atom_to_list(Name), {timeout, 300, fun() -> is_seen(Name, Plants, Options, Promises) end}}
     || {Name, Plants, Options, Promises} <- planted()].

%% Each fault with its name, the code that is planted, the options of the schedules in which it is
%% looked for, and the promises that it may break.
planted() ->
    [{an_epoch_without_a_majority,
      [{sderl_core_quorum, "is_enough(_, _, _) -> true."}],
      #{}, [by_majority, one_log]},
     {a_commit_without_a_majority,
      [{sderl_core_quorum, "decides(_) -> true."}],
      #{}, [by_majority, one_log]},
     {the_new_members_alone_decide_a_change,
      [{sderl_core_quorum,
        "decides(#s{d = D} = S) -> former_decides(S#s{d = D#d{before = undefined}}). "
        "is_enough(Voters, All, #s{d = D} = S) ->"
        " former_is_enough(Voters, All, S#s{d = D#d{before = undefined}})."}],
      #{nodes => 5,
        script => [{12_000, {'fun', fun remove_those_who_do_not_hear/1}}, {20_000, heal}]},
      [by_majority]},
     {an_empty_member_votes,
      [{sderl_core_quorum, "is_voter(#s{d = #d{syncing = Syncing}}) -> not Syncing."}],
      #{nodes => 3, kinds => [crash, split, cut, pause]}, [one_log, by_majority, as_committed]},
     {a_successor_goes_on_from_its_own_log,
      [{sderl_core_ballot, "best(_, _, Self) -> Self."}],
      #{}, [one_log, as_committed, one_batch]},
     {who_is_removed_learns_nothing,
      [{sderl_core_quorum, "is_needed(_, _) -> false."}],
      removed_behind(), [unanswered, one_coordinator]},
     {names_are_freed_without_a_lease,
      [{sderl_core_quorum, "lease_ms(_) -> 0."}],
      #{kinds => [split, cut]}, [leased]},
     {a_minority_declares_nothing,
      [{sderl_core_majority, "watch(S) -> S."}],
      #{kinds => [split], longest => 40_000}, [bounded_waiting, leased]},
     {what_was_sent_counts_as_never_sent,
      [{sderl_core_majority, "let_go(#s{clients = Clients} = S) ->"
        " former_let_go(S#s{clients = Clients#clients{in_doubt = []}})."}],
      #{kinds => [split, pause, cut]}, [never_applied]},
     {operations_wait_for_a_majority,
      [{sderl_core_clients,
        "op(From, Op, #s{quorum = #quorum{has = false} = Q} = S) ->"
        " (former_op(From, Op, S#s{quorum = Q#quorum{has = true}}))#s{quorum = Q}; "
        "op(From, Op, S) -> former_op(From, Op, S)."}],
      #{kinds => [split], longest => 40_000}, [bounded_waiting, silent_minority]},
     {a_read_does_not_look_at_the_table,
      [{sderl_core_operate,
        "op({read, _}, _, C) -> {{read, undefined}, C};"
        "op(Op, O, C) -> former_op(Op, O, C)."}],
      #{}, [right_answer]}].

%% The coordinator and one other member stay. They are a majority of the members that are left, but
%% not of the members before.
remove_those_who_do_not_hear(W) -> remove_but(2, W).

%% Removes all members but the coordinator and the last ones by name. Those that are removed do not
%% hear the coordinator.
remove_but(Left, W) ->
    [Coord] = sderl_sim:coord(W),
    Members = lists:delete(Coord, sderl_sim:all(W)),
    Others = lists:sublist(Members, length(Members) - (Left - 1)),
    Commands = [{silence, Coord, Others}, {op, Coord, {remove, Others, 1}}],
    lists:foldl(fun sderl_sim:apply_cmd/2, W, Commands).

is_seen(Name, Plants, Options, Promises) ->
    Core = sderl_plant:core(Plants),
    Seeds = seen_in(Name) ++ lists:seq(1, ?TRIES),
    case seen(Promises, Options#{mode => majority, core => Core}, Seeds) of
        #{seed := Seed, at_ms := At, why := Why} ->
            io:format(user, "~w: seen in seed ~b at ~w ms: ~0P~n", [Name, Seed, At, Why, 12]);
        none -> error({not_seen, Name})
    end.

%% Seeds in which a rare fault was seen before. They are tried first.
seen_in(an_empty_member_votes) -> [131];
seen_in(a_successor_goes_on_from_its_own_log) -> [20];
seen_in(_) -> [].

seen(_, _, []) -> none;
seen(Promises, Options, [Seed | Seeds]) ->
    case sderl_sim:schedule(Options#{seed => Seed}) of
        %% A crash of the core does not count, nor does a broken promise that is only a consequence.
        #{outcome := failed, at_ms := At, why := Why} = Seen when At =/= undefined ->
            case lists:member(element(1, Why), Promises) of
                true -> Seen;
                false -> seen(Promises, Options, Seeds)
            end;
        _ -> seen(Promises, Options, Seeds)
    end.

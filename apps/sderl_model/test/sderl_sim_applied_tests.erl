%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_applied_tests).
-moduledoc """
Groups whose clients are answered when a batch is applied on their node (`answer => applied`), under
random schedules of faults. Each scenario tests one rule for such answers, and fails without it.

`SDERL_LONG=1` makes the run long, with other schedules every time; `SDERL_SIM_SEED` sets the first
seed.
""".
-include_lib("eunit/include/eunit.hrl").
-include_lib("sderl/src/core/sderl_op.hrl").

-define(SEEDS, [1, 2, 3]).

random_test_() ->
    {"random schedules of groups that answer at once", {timeout, 3600, fun random/0}}.

random() ->
    {Count, First} = sderl_sim_tests:schedules("groups that answer at once, of each kind", 16),
    Hard = #{nodes => 4,
             clients => 3,
             faults => 20,
             delay => {1, 200},
             kinds => [loss | sderl_sim_faults:usual()]},
    ?assertEqual([], lists:append([failed(First, Count, Options) || Options <- [#{}, Hard]])).

failed(First, Count, Options0) ->
    Options = Options0#{answer => applied},
    #{schedules := Count, failed := Failed} =
        sderl_sim_batch:run(First, Options, #{more => fun(Begun) -> Begun < Count end}),
    [{Seed, Options, Why} || #{seed := Seed, why := Why} <- Failed].

scenarios_test_() ->
    [{atom_to_list(Name), {timeout, 120, fun() -> passes(Script) end}}
     || {Name, _, Script} <- scenarios()].

%% Each scenario must fail with the core that lacks its rule.
without_test_() ->
    [{lists:concat([Name, " without"]), {timeout, 120, fun() -> fails(Plant, Script) end}}
     || {Name, Plant, Script} <- scenarios()].

passes(Script) ->
    [?assertEqual({Seed, ok}, {Seed, run(Seed, sderl_core, Script)}) || Seed <- ?SEEDS].

fails(Plant, Script) ->
    Core = sderl_plant:core([Plant]),
    [?assertMatch({Seed, {failed, _, _}}, {Seed, run(Seed, Core, Script)})
     || Seed <- ?SEEDS].

run(Seed, Core, Script) ->
    Options = #{nodes => 4,
                clients => 0,
                boot_spread => 500,
                answer => applied,
                core => Core,
                seed => Seed,
                script => Script},
    case sderl_sim:schedule(Options) of
        #{outcome := ok} -> ok;
        %% A crash does not count as a failure of the scenario.
        #{outcome := failed, why := Why, at_ms := At} when At =/= undefined ->
            {failed, At, Why}
    end.

scenarios() ->
    [{what_a_coordinator_answered_is_there_when_it_is_back,
      %% Only the coordinator has the batch, and the other members go on without it.
      {sderl_core_join, "position(#s{committed = C, d = #d{lineage = E}}) -> {E, C}."},
      [silence(10_000), ask(10_050, fun own/2), answered(10_100, yes), held(15_000, lead),
       held(20_000, lead), speak(20_000), held(40_000, all)]},
     {a_name_of_another_home_waits_for_that,
      {sderl_core_answer, at_once("unconfirmed = [],", "_", "true")},
      [silence(10_000), ask(10_050, fun other/2), answered(10_200, none), speak(11_000),
       answered(13_000, yes), held(13_000, all)]},
     {a_change_of_the_membership_waits_for_all,
      {sderl_core_answer, at_once("unconfirmed = [],", "default", "true")},
      [silence(10_000), ask(10_050, fun removed/2), answered(10_200, none), speak(11_000),
       answered(13_000, ok)]},
     {who_was_stopped_answers_when_it_has_heard_the_others,
      %% The member wakes up with the batch of a coordinator that has crashed.
      {sderl_core_answer, at_once("", "default", "NameOnly")},
      [{10_000, {'fun', fun leave_to_one/1}}, {10_150, {'fun', fun stop_one/1}},
       {10_500, {'fun', fun crash_lead/1}}, {22_000, {'fun', fun wake_one/1}},
       answered(22_050, none)]}].

%% The code of `at_once/1` with another condition.
at_once(Groggy, Answers, Condition) ->
    lists:flatten(["at_once(#s{answer = applied, ", Groggy,
                   " clients = #clients{answers = {_, ", Answers, " = As},"
                   " out = {_, List}} = Clients} = S) ->"
                   " NameOnly = lists:all(fun({_, Op}) -> sderl_op:name(Op) =/= none end, List),"
                   " case ", Condition, " of true -> NameOnly,"
                   " reply(List, As, S#s{clients = Clients#clients{answers = undefined,"
                   " out = undefined}}); false -> S end;"
                   " at_once(S) -> S."]).

%% ---------------------------------------------------------------- steps

%% Messages of the coordinator do not arrive until speak/1.
silence(T) ->
    {T, {'fun', fun(W) ->
        [Lead] = sderl_sim:coord(W),
        Others = members() -- [Lead],
        sderl_sim:apply_cmd({silence, Lead, Others}, sderl_sim:note(lead, {Lead, Others}, W))
     end}}.

speak(T) ->
    {T, {'fun', fun(W) ->
        {Lead, Others} = sderl_sim:noted(lead, W),
        sderl_sim:apply_cmd({speak, Lead, Others}, W)
     end}}.

ask(T, Operation) ->
    {T, {'fun', fun(W0) ->
        {Lead, Others} = sderl_sim:noted(lead, W0),
        {Op, W} = Operation(Lead, {hd(Others), W0}),
        sderl_sim:apply_cmd({op, Lead, asked, Op}, W)
     end}}.

own(Lead, {_, W0}) ->
    {Pid, W} = sderl_sim:pid(Lead, W0),
    {?REGISTER(alpha, Pid), W}.

other(_, {Other, W0}) ->
    {Pid, W} = sderl_sim:pid(Other, W0),
    {?REGISTER(alpha, Pid), W}.

removed(_, {Other, W}) -> {#remove{nodes = [Other], time = 1}, W}.

answered(T, Answer) ->
    {T, {check, fun(W) ->
        sderl_sim:answer(asked, W) =:= Answer orelse {answer, sderl_sim:answer(asked, W)}
     end}}.

%% The name is on these nodes and no others.
held(T, Where) ->
    {T, {check, fun(W) ->
        {Lead, _} = sderl_sim:noted(lead, W),
        Nodes = case Where of
            lead -> [Lead];
            all -> members()
        end,
        [N || N <- members(), is_map_key(alpha, sderl_sim:rows(N, W))] =:= Nodes
            orelse {held, [sderl_sim:rows(N, W) || N <- members()]}
     end}}.

members() -> [sderl_sim:name(I) || I <- [1, 2, 3, 4]].

%% One of the followers asks, and only it gets the batch.
leave_to_one(W0) ->
    [Lead] = sderl_sim:coord(W0),
    [One | Others] = members() -- [Lead],
    {Pid, W1} = sderl_sim:pid(One, sderl_sim:note(lead, {Lead, One}, W0)),
    Quick = sderl_sim:apply_cmd({delay, One, Lead, {1, 1}}, W1),
    Slow = sderl_sim:apply_cmd({delay, Lead, One, {300, 300}}, Quick),
    Silent = sderl_sim:apply_cmd({silence, Lead, Others}, Slow),
    sderl_sim:apply_cmd({op, One, asked, ?REGISTER(alpha, Pid)}, Silent).

stop_one(W) -> sderl_sim:apply_cmd({pause, element(2, sderl_sim:noted(lead, W))}, W).

wake_one(W) -> sderl_sim:apply_cmd({resume, element(2, sderl_sim:noted(lead, W))}, W).

crash_lead(W) -> sderl_sim:apply_cmd({crash, element(1, sderl_sim:noted(lead, W)), fast}, W).

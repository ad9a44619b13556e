%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_tests).
-moduledoc """
Runs the group protocol under random schedules of faults, and checks that the simulator can be
trusted: a seed always gives the same run.

The short run is the same every time. `SDERL_LONG=1` makes it long, with other schedules every time;
`SDERL_SIM_SEED` sets the first seed.
""".
-include_lib("eunit/include/eunit.hrl").

%% Called in other virtual machines.
-export([digests/1]).
%% For the other tests that run random schedules.
-export([schedules/2]).

random_test_() ->
    {"random schedules", {timeout, 3600, fun random/0}}.

random() ->
    {Count, First} = schedules("group protocol", 24),
    %% One schedule in four has two groups.
    ?assertEqual([], failed(First, Count div 4 * 3, #{}) ++
                     failed(First + Count, Count div 4, #{groups => 2})).

-doc "How many schedules a random run has, this many in a short one, and the first seed.".
-spec schedules(string(), pos_integer()) -> {pos_integer(), integer()}.
schedules(Of, Short) ->
    {Count, Default} = case os:getenv("SDERL_LONG") of
        false -> {Short, 1};
        _ -> {2000, rand:uniform(1_000_000_000)}
    end,
    First = case os:getenv("SDERL_SIM_SEED") of
        false -> Default;
        Given -> list_to_integer(Given)
    end,
    io:format(user, "~ts: ~b random schedules, SDERL_SIM_SEED=~b~n", [Of, Count, First]),
    {Count, First}.

failed(First, Count, Opts) ->
    #{schedules := Count, failed := Failed} =
        sderl_sim_batch:run(First, Opts, #{more => fun(Begun) -> Begun < Count end}),
    [{Seed, Opts, Why} || #{seed := Seed, why := Why} <- Failed].

%% Schedules that once broke a promise, or in which a check wrongly saw one broken.
found_test_() ->
    [{integer_to_list(S), {timeout, 120, fun() ->
        ?assertEqual(ok, sderl_sim:run(#{seed => S, nodes => 7, spare => 1, clients => 2,
                                         faults => 12}))
    end}}
     || S <- [495919120, 495919899, 495919033, 700001591, 700001589, 41300, 20261323]] ++
        [{"two groups, " ++ integer_to_list(S),
          {timeout, 120, fun() -> ?assertEqual(ok, sderl_sim:run((two_groups())#{seed => S})) end}}
         || S <- [777235]] ++
        [{"slow links, " ++ integer_to_list(S),
          {timeout, 120, fun() -> ?assertEqual(ok, sderl_sim:run((slow_links())#{seed => S})) end}}
         || S <- [724, 10382, 10621, 11028, 11197, 30168, 31595, 31894, 32261, 32574, 33216, 33388,
                  33855, 71314, 71844, 92875, 102912]].

%% Schedules of `bin/sderl bench simulate` with so many nodes; below also those with `--hard`.
usual_test_() ->
    [{lists:concat(["usual, ", Nodes, " nodes, ", Seed]), {timeout, 120, fun() ->
        Usual = #{nodes => Nodes, spare => 1, clients => 2, reads => 10, faults => 12},
        ?assertEqual(ok, sderl_sim:run(Usual#{seed => Seed}))
     end}}
     || {Nodes, Seed} <- [{5, 125000543}]].

regroup_test_() ->
    [{"regroup, " ++ integer_to_list(Seed), {timeout, 120, fun() ->
        Kinds = [member, crash, loss, cut, split, kill, regroup],
        Opts = #{nodes => 4, spare => 1, groups => 1, clients => 2, reads => 10, faults => 12,
                 kinds => Kinds},
        ?assertEqual(ok, sderl_sim:run(Opts#{seed => Seed}))
    end}}
     || Seed <- [871000077, 871000467]] ++
        [{"regroup, hard, " ++ integer_to_list(Seed), {timeout, 120, fun() ->
            Kinds = [member, kill, crash, cut, split, drop, regroup],
            Opts = (hard())#{nodes => 4, groups => 1, kinds => Kinds},
            ?assertEqual(ok, sderl_sim:run(Opts#{seed => Seed}))
         end}}
         || Seed <- [61300215]].

hard_test_() ->
    [{lists:concat(["hard, ", Nodes, " nodes, ", Seed]), {timeout, 120, fun() ->
        ?assertEqual(ok, sderl_sim:run((hard())#{nodes => Nodes, seed => Seed}))
     end}}
     || {Nodes, Seeds} <- [{3, [433001770]},
                           {4, [1138, 30000599, 30002033, 30002908, 54003728, 52000452,
                                  92000734, 92001537, 204007397, 204003662, 43001253,
                                  204019254, 204001020, 72000372,
                                  104007284, 420000471, 820005814, 1320004034, 3084000409,
                                  4100103744]},
                           {5, [33000617, 55000274, 33000058, 44001064, 205004830,
                                  205012880, 105001401, 105002013, 205008258, 805004295]},
                           {7, [509832, 820206, 30000192, 57002050, 91000220, 96000095,
                                  730000953, 66710849, 88712006, 3040001081]}],
        Seed <- Seeds] ++
        [{"hard, merges, " ++ integer_to_list(Seed), {timeout, 120, fun() ->
            Opts = (hard())#{nodes => 4, spare => 0, groups => 1, faults => 14,
                             kinds => [member, split, cut, chain]},
            ?assertEqual(ok, sderl_sim:run(Opts#{seed => Seed}))
        end}}
         || Seed <- [7700210]] ++
        [{"hard, two groups, " ++ integer_to_list(Seed), {timeout, 120, fun() ->
            Opts = (hard())#{nodes => 4, spare => 2, groups => 2},
            ?assertEqual(ok, sderl_sim:run(Opts#{seed => Seed}))
        end}}
         || Seed <- [9411005458]].

hard() ->
    #{spare => 1, clients => 3, reads => 10, faults => 20, delay => {1, 200},
      kinds => [loss | sderl_sim_faults:usual()]}.

%% Nodes send the heartbeats of their group processes.
beats_test_() ->
    [{lists:concat(["beats, ", Mode, ", ", Seed]), {timeout, 120, fun() ->
        ?assertEqual(ok, sderl_sim:run((hard())#{nodes => 5, beats => true, mode => Mode,
                                                 seed => Seed}))
    end}}
     || {Mode, Seed} <- [{available, 1530000001}, {majority, 1530000002}]].

%% Members are silent for long, although their links stand.
silent_test_() ->
    [{lists:concat(["silent, ", Nodes, " nodes, ", Seed]), {timeout, 120, fun() ->
        Kinds = [pause, slow, silence, split, drop, kill],
        Options = (hard())#{groups => 1, kinds => Kinds, nodes => Nodes, seed => Seed},
        ?assertEqual(ok, sderl_sim:run(Options))
     end}}
     || {Nodes, Seed} <- [{4, 441}, {4, 62000024}, {5, 63000220}]].

two_groups() -> #{nodes => 5, spare => 2, groups => 2, clients => 2, faults => 25}.

slow_links() -> #{nodes => 7, spare => 1, clients => 3, faults => 20, delay => {1, 200}}.

%% A seed gives exactly the same trace alone and beside other runs.
a_seed_gives_one_run_test_() ->
    {timeout, 600, fun() ->
        [Alone] = traces([7]),
        [First, _, Second] = traces([7, 8, 7]),
        ?assert(byte_size(Alone) > 10_000),
        ?assert(Alone =:= First),
        ?assert(Alone =:= Second)
    end}.

%% A seed gives the same trace in other virtual machines, in which the names of nodes and the names
%% that clients compete for have another order.
a_seed_gives_one_run_everywhere_test_() ->
    {timeout, 600, fun() ->
        Names = [atom_to_list(N) || N <- atoms()],
        Seeds = [495919030, 495919033],
        [First, Second] = [elsewhere(Made, Seeds) || Made <- [Names, lists:reverse(Names)]],
        ?assertNotEqual(element(1, First), element(1, Second)),
        ?assertEqual(element(2, First), element(2, Second))
    end}.

%% The names are sent as strings: arguments of a call must not create these atoms in the peer
%% before.
elsewhere(Made, Seeds) ->
    {ok, Peer, _} = peer:start_link(#{connection => standard_io,
                                      args => ["+sbwt", "none", "-pa" | code:get_path()]}),
    lists:foreach(fun(Name) -> peer:call(Peer, erlang, list_to_atom, [Name]) end, Made),
    Traces = peer:call(Peer, ?MODULE, digests, [Seeds], infinity),
    peer:stop(Peer),
    Traces.

digests(Seeds) ->
    {maps:keys(maps:from_keys(atoms(), [])),
     [{S, erlang:md5(trace(S, contended()))} || S <- Seeds]}.

atoms() ->
    sderl_sim_client:contested() ++ sderl_sim_world:names(member, 7) ++
        sderl_sim_world:names(spare, 1).

contended() -> #{nodes => 7, spare => 1, clients => 2}.

traces(Seeds) ->
    Pids = [spawn_monitor(fun() -> exit({trace, trace(S)}) end) || S <- Seeds],
    [receive {'DOWN', Ref, process, Pid, {trace, T}} -> T end || {Pid, Ref} <- Pids].

trace(Seed) -> trace(Seed, #{groups => 2}).

trace(Seed, Opts) ->
    Lines = ets:new(lines, [ordered_set]),
    Add = fun(Line) -> ets:insert(Lines, {ets:info(Lines, size), iolist_to_binary(Line)}) end,
    _ = sderl_sim:run(Opts#{seed => Seed, trace => Add}),
    << <<L/binary>> || {_, L} <- ets:tab2list(Lines) >>.

wrong_options_are_named_test() ->
    ?assertError({unknown_options, [node], _}, sderl_sim:run(#{seed => 1, node => 3})),
    ?assertError({unknown_kinds, [flood], _}, sderl_sim:run(#{seed => 1, kinds => [crash, flood]})).

%% Every kind of fault happens when it is the only one.
kinds_test_() ->
    [{atom_to_list(K), {timeout, 600, fun() ->
        #{faults := Counts} =
            sderl_sim:schedule(#{seed => 3, nodes => 5, spare => 1, kinds => [K], faults => 12}),
        ?assertMatch([K], maps:keys(Counts))
    end}} || K <- sderl_sim_faults:kinds()].

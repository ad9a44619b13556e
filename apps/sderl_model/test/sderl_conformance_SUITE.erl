%% SPDX-License-Identifier: Apache-2.0
-module(sderl_conformance_SUITE).

%% Sequences of commands on 16 real nodes in lockstep with the semantics (see sderl_conformance).

-compile([export_all, nowarn_export_all]).

-include_lib("proper/include/proper.hrl").

suite() -> [{timetrap, {minutes, 90}}].

all() ->
    [plain, launch, islands, majority_as_made, refused, at_once, sees] ++
        [C || long(), C <- [majority, shrinks]].

%% The process that runs init_per_suite ends before the first case, so another one owns the fleet.
init_per_suite(Config) ->
    Owner = spawn(fun() -> receive release -> ok end end),
    [{fleet, sderl_conformance:start(Owner)}, {owner, Owner} | Config].

end_per_suite(Config) ->
    ok = sderl_conformance:stop(proplists:get_value(fleet, Config)),
    proplists:get_value(owner, Config) ! release.

%% Every node is free and alone at the beginning.
plain(Config) -> check(plain, count(8, 500), Config).

%% Three overlapping groups of a launch configuration.
launch(Config) -> check(launch, count(3, 200), Config).

%% Islands that meet, with the same names on both sides.
islands(Config) -> check(islands, count(4, 300), Config).

%% Groups that decide by majority, to which no node is added. A list of steps takes 10 s, because
%% the library waits for silent nodes.
majority_as_made(Config) -> check(majority_as_made, count(3, 60), Config).

%% Groups that decide by majority. A node that is added waits for 5 s, which makes this long.
majority(Config) -> check(majority, count(3, 60), Config).

%% Nodes that a majority group refused to add may make a group of that name immediately.
refused(Config) ->
    [N1, N6, N7, N8, N12] =
        [sderl_conformance:node_of(N) || N <- ["n1", "n6", "n7", "n8", "n12"]],
    ok = sderl_conformance:run(proplists:get_value(fleet, Config), majority, [
        {N6, {new_s_group, g1, [N6, N12], #{consistency => majority}}},
        {N6, {add_nodes, g1, [N7, N1]}},
        {N7, {new_s_group, g1, [N7, N6, N8]}}
    ]).

%% Groups are deleted and made without a pause. No node may be seen in a group and in an island at
%% once, and a name of the new group must be found at every member immediately.
at_once(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    [N1, N2, N3] = All = [sderl_conformance:node_of(N) || N <- ["n1", "n2", "n3"]],
    Round = fun(K) ->
        [{N1, {new_s_group, {g, K}, All}},
         {N1, {delete_s_group, {g, K}}},
         {N1, {new_s_group, {h, K}, All}},
         {N1, {register_name, {h, K}, x, {pid, N1, 1}}},
         {N2, {whereis_name, N1, {h, K}, x}},
         {N3, {whereis_name, N2, {h, K}, x}},
         {N2, {delete_s_group, {h, K}}}]
    end,
    case sderl_conformance:at_once(Fleet, plain,
                                   lists:append([Round(K) || K <- lists:seq(1, 10)])) of
        ok -> ok;
        Diverged -> ct:fail("~ts", [sderl_conformance:text(Diverged)])
    end.

%% The check reports names that a deleted group leaves behind, with the node and the difference.
sees(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    Steps = leaves_names(),
    {diverged, #{step := 3,
                 how := {states, [{N1, [{names, #{expected := [], seen := [{{g1, x}, Pid}]}}]}]}}} =
        Seen =
            sderl_conformance:run(Fleet, #{faults => [keep_names]}, Steps, 15_000),
    {N1, Pid} = {sderl_conformance:node_of("n1"), {pid, N1, 1}},
    ct:pal("~ts", [sderl_conformance:text(Seen)]),
    ok = sderl_conformance:run(Fleet, plain, Steps).

leaves_names() ->
    N1 = sderl_conformance:node_of("n1"),
    [{N1, {new_s_group, g1, [N1]}},
     {N1, {register_name, g1, x, {pid, N1, 1}}},
     {N1, {delete_s_group, g1}},
     {N1, {register_name, undefined, x, {pid, N1, 2}}}].

%% A random list of commands that shows a planted fault is shrunk to a few commands, which show it
%% again.
shrinks(Config) ->
    Fleet = proplists:get_value(fleet, Config),
    Variant = #{faults => [keep_names]},
    _ = rand:seed(exsplus, {1, 2, 3}),
    false = proper:quickcheck(agrees(Fleet, Variant), [quiet, {numtests, 100}]),
    [Steps] = proper:counterexample(),
    ct:pal("~b commands: ~0tp", [length(Steps), Steps]),
    true = length(Steps) =< 6,
    {diverged, _} = sderl_conformance:run(Fleet, Variant, Steps),
    ok = sderl_conformance:run(Fleet, plain, Steps).

count(Short, Long) -> case long() of true -> Long; false -> Short end.

long() -> os:getenv("SDERL_LONG") =:= "1".

check(Variant, Sequences, Config) ->
    Fleet = proplists:get_value(fleet, Config),
    Start = erlang:monotonic_time(millisecond),
    sderl_prop:check("conformance: " ++ atom_to_list(Variant), Sequences, agrees(Fleet, Variant)),
    Ms = erlang:monotonic_time(millisecond) - Start,
    ct:pal("~ts: ~b sequences of 30 commands in ~b s", [Variant, Sequences, Ms div 1000]).

%% After the first failure PropEr shrinks the steps. Shrunk lists fail fast: nodes that do not reach
%% the expected state within 5 s count as diverged. After 300 s every list passes, which ends the
%% shrinking.
agrees(Fleet, Variant) ->
    Failed = atomics:new(1, []),
    ?FORALL(Steps, sderl_conformance:steps(Variant, 30),
            begin
                Result = attempt(Fleet, Variant, Steps, atomics:get(Failed, 1),
                                 erlang:monotonic_time(second)),
                Result =:= ok
                    orelse atomics:compare_exchange(Failed, 1, 0, erlang:monotonic_time(second)),
                ?WHENFAIL(io:format(user, "~ts~nsderl_conformance:replay(~p, ~0tp).~n",
                                    [sderl_conformance:text(Result), Variant, Steps]),
                          Result =:= ok)
            end).

attempt(Fleet, Variant, Steps, 0, _) -> sderl_conformance:run(Fleet, Variant, Steps);
attempt(Fleet, Variant, Steps, Since, Now) when Now - Since < 300 ->
    sderl_conformance:run(Fleet, Variant, Steps, 5000);
attempt(_, _, _, _, _) -> ok.

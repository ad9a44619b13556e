%% SPDX-License-Identifier: Apache-2.0
-module(sderl_conformance_SUITE).

%% Sequences of commands on 16 real nodes in lockstep with the semantics (see sderl_conformance).

-compile([export_all, nowarn_export_all]).

-include_lib("proper/include/proper.hrl").

suite() -> [{timetrap, {minutes, 90}}].

all() -> [plain, launch].

%% The process that prepares a suite ends before the first case.
init_per_suite(Config) ->
    Owner = spawn(fun() -> receive release -> ok end end),
    [{fleet, sderl_conformance:start(Owner)}, {owner, Owner} | Config].

end_per_suite(Config) ->
    ok = sderl_conformance:stop(proplists:get_value(fleet, Config)),
    proplists:get_value(owner, Config) ! release.

%% Every node is free and alone at the beginning.
plain(Config) -> check(plain, count(20, 200), Config).

%% Three overlapping groups of a launch configuration.
launch(Config) -> check(launch, count(10, 100), Config).

count(Short, Long) -> case os:getenv("SDERL_LONG") of "1" -> Long; _ -> Short end.

check(Variant, Sequences, Config) ->
    Fleet = proplists:get_value(fleet, Config),
    Start = erlang:monotonic_time(millisecond),
    sderl_prop:check("conformance: " ++ atom_to_list(Variant), Sequences, agrees(Fleet, Variant)),
    Ms = erlang:monotonic_time(millisecond) - Start,
    ct:pal("~ts: ~b sequences of 30 commands in ~b s", [Variant, Sequences, Ms div 1000]).

agrees(Fleet, Variant) ->
    ?FORALL(Steps, sderl_model_gen:steps(sderl_conformance:initial(Variant), 30, sderl_model_gen:plain()),
            begin
                Result = sderl_conformance:run(Fleet, Variant, Steps),
                ?WHENFAIL(io:format(user, "~ts~nsderl_conformance:replay(~p, ~0tp).~n", [sderl_conformance:text(Result), Variant, Steps]),
                          Result =:= ok)
            end).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_rules_table_tests).
-moduledoc """
Checks the table of the library's INTERNALS.md that says what fails without each rule: it names
every rule and every switch, and only tests that exist.
""".
-include_lib("eunit/include/eunit.hrl").

-define(RULES, 35).
-define(SCENARIOS, sderl_sim_rules_tests).

table_test_() ->
    case file:read_file(filename:join([code:lib_dir(sderl), "src", "..", "INTERNALS.md"])) of
        {error, enoent} -> [];
        {ok, Text} ->
            Rows = rows(Text),
            [{"every rule", ?_assertEqual(lists:seq(1, ?RULES), [N || {N, _, _, _} <- Rows])},
             {"every rule has a test", ?_assertEqual([], [N || {N, _, [], []} <- Rows])},
             {"every switch",
              ?_assertEqual(switches(), lists:sort([S || {_, Ss, _, _} <- Rows, S <- Ss]))},
             {"the switch of its rule",
              ?_assertEqual([], [N || {N, [S], _, _} <- Rows, S =/= switch(N)])},
             {"tests that exist",
              ?_assertEqual([], [T || {_, _, A, B} <- Rows, T <- A ++ B, not exists(T)])},
             {"scenarios that fail without it",
              ?_assertEqual([], [N || {N, [S], Tests, _} <- Rows, not fails(S, Tests)])}]
    end.

%% Every fault is listed once and explained, and scenarios use no other faults.
faults_test() ->
    All = sderl_planted:all(),
    ?assertEqual(length(All), length(lists:usort([F || {F, _} <- All]))),
    ?assertEqual([], [F || {F, Text} <- All, Text =:= ""]),
    Seen = lists:append([Fs || {_, Fs, _} <- ?SCENARIOS:scenarios()]),
    ?assertEqual([], lists:usort(Seen) -- [F || {F, _} <- All]).

%% The code that each fault replaces is in the library exactly once.
places_test_() ->
    [{atom_to_list(Fault), {timeout, 60, fun() ->
        ?assertNotEqual([], sderl_planted:changes(Fault)),
        ?assertEqual(ok, sderl_plant:check([Fault]))
     end}} || {Fault, _} <- sderl_planted:all()].

wrong_faults_are_named_test() ->
    ?assertError({unknown_faults, [rule_20], _}, sderl_plant:check([rule_19, rule_20])),
    ?assertError({unknown_faults, [rule_0], _}, sderl_sim:run(#{seed => 1, broken => [rule_0]})).

rows(Text) ->
    {match, Rows} = re:run(Text, "^\\| ([0-9]+) \\| ((?:`rule_[0-9]+`)?) \\|([^|]*)\\|([^|]*)\\|$",
                           [global, multiline, {capture, all_but_first, list}]),
    [{list_to_integer(N), [list_to_atom(S) || S <- names(Switch)], names(Scenarios), names(Real)}
     || [N, Switch, Scenarios, Real] <- Rows].

names(Cell) ->
    case re:run(Cell, "`([a-zA-Z0-9_:]+)`", [global, {capture, all_but_first, list}]) of
        {match, Found} -> lists:append(Found);
        nomatch -> []
    end.

switch(N) -> list_to_atom("rule_" ++ integer_to_list(N)).

switches() ->
    lists:sort([F || {F, _} <- sderl_planted:all(), lists:prefix("rule_", atom_to_list(F))]).

exists(Test) ->
    [Module, Name] = [list_to_atom(X) || X <- string:split(Test, ":")],
    {module, Module} = code:ensure_loaded(Module),
    case lists:suffix("_SUITE", atom_to_list(Module)) of
        true -> lists:member(Name, cases(Module));
        false when Module =:= ?SCENARIOS -> lists:keymember(Name, 1, ?SCENARIOS:scenarios());
        false -> erlang:function_exported(Module, Name, 0)
    end.

cases(Suite) ->
    lists:append([case C of
                      {group, G} -> {G, _, Cs} = lists:keyfind(G, 1, Suite:groups()), Cs;
                      _ -> [C]
                  end || C <- Suite:all()]).

%% Whether one of the tests shows that the rule is needed. A scenario of the simulator does so if it
%% lists the switch, which must make it fail. Other modules have a test named after the switch.
fails(Switch, Tests) ->
    lists:any(fun(Test) ->
        [Module, Name] = [list_to_atom(X) || X <- string:split(Test, ":")],
        case Module of
            ?SCENARIOS ->
                {_, Faults, _} = lists:keyfind(Name, 1, ?SCENARIOS:scenarios()),
                lists:member(Switch, Faults);
            _ ->
                erlang:function_exported(Module,
                                         list_to_atom(lists:concat(["without_", Switch, "_test_"])),
                                         0)
        end
    end, Tests).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_command_SUITE).
-moduledoc """
`bin/sderl bench aco` in one node, as a person runs it, and the published instances, where
`SDERL_INSTANCES` names a folder with them.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [command, tree, monitored, folder, mistakes, timeout, golden_published, best_known_published].

%% A generated instance, with both programs.
command(_) ->
    {0, Text} = sderl("--variant smp,plain --size 20 --colonies 2 --global 3 --local 2 --seed 5"),
    ?assertMatch([_ | _], string:find(Text, "generated 20 rdd 0.6 tf 0.6 seed 5, 20 jobs, seed 5, "
                                            "4 ants, 3 x 2 iterations")),
    {0, Json} = sderl("--variant smp,plain --size 20 --colonies 2 --global 3 --local 2 --seed 5 "
                      "--search full --json -"),
    [Smp, Plain] = [json:decode(Line)
                    || Line <- string:split(string:trim(iolist_to_binary(Json)), "\n", all)],
    #{~"params" := #{~"variant" := ~"smp"},
      ~"metrics" := #{~"best_cost" := Cost, ~"schedule" := Jobs} = Metrics} = Smp,
    ?assertMatch(#{~"params" := #{~"variant" := ~"plain"},
                   ~"metrics" := #{~"best_cost" := Cost, ~"schedule" := Jobs}}, Plain),
    ?assertMatch(
        #{
            ~"best_known" := null, ~"mean_excess_pct" := null, ~"optimal" := null,
            ~"round_best" := [_, _, Cost], ~"ants" := 48, ~"colonies" := 2, ~"nodes_used" := 1,
            ~"names_left" := 0, ~"kills" := 0, ~"links_total" := 0
        },
        Metrics
    ),
    ?assertEqual(lists:seq(1, 20), lists:sort(Jobs)).

%% Three nodes in s_groups: the processor time of the rounds is part of that of the whole run.
tree(_) ->
    {0, Text} = sderl("--variant sr --nodes 3 --size 20 --global 10 --json -"),
    #{~"metrics" := Metrics} = json:decode(unicode:characters_to_binary(string:trim(Text))),
    ?assertMatch(
        #{
            ~"links_as_expected" := true, ~"names_left" := 0, ~"kills" := 0,
            ~"recovery_us" := #{~"max" := null}, ~"replaced_us" := #{~"max" := null},
            ~"cpu_us_per_op_in_rounds" := Rounds, ~"cpu_us_per_op" := All
        } when Rounds > 0 andalso Rounds =< All,
        Metrics
    ),
    ?assertNot(is_map_key(~"cpu_ms_in_rounds", Metrics)).

%% All rounds are measured with monitoring and without it: the colonies begin when monitoring is
%% there.
monitored(_) ->
    [Off, On] = [begin
        {ok, #{messages_in_rounds := Messages}} = sderl_aco:run(#{
            variant => sr, nodes => 3, monitoring => Monitoring, heuristic => edd, seed => 7,
            instance => sderl_aco_instance:generate(#{n => 20, rdd => 0.6, tf => 0.6, seed => 5}),
            global_iterations => 20, local_iterations => 2
        }, ""),
        Messages
    end || Monitoring <- [off, on]],
    ?assert(On > Off div 2, {Off, On}).

%% Two instances: one has a best-known cost of 0, one a cost that is not reached.
folder(Config) ->
    Dir = dir(Config, folder),
    ok = file:write_file(filename:join(Dir, "wt3.001"), "3\n 1 2 3\n 1 1 1\n 9 9 9\n"),
    ok = file:write_file(filename:join(Dir, "wt3.002"), "3\n 1 2 3\n 1 1 1\n 0 0 0\n"),
    ok = file:write_file(filename:join(Dir, "best_known.txt"), "wt3.001 0\nwt3.002 8\n"),
    {0, Text} = sderl(["--instance '", Dir, "' --global 2 --local 2"]),
    ?assertMatch({match, _},
                 re:run(Text, "2/2 smp, wt3.002 +10 \\(best known 8, 25.000 % over\\)")),
    [Line | _] = lists:reverse(string:lexemes(Text, "\n")),
    ?assertMatch(["smp", "1", "2", "2", "1", "25.000", "25.000" | _], string:lexemes(Line, " ")),
    {0, One} = sderl(["--instance '", Dir, "' --match wt3.001"]),
    ?assertMatch([_ | _], string:find(One, "wt3.001, 3 jobs, best known 0, seed")).

mistakes(Config) ->
    Dir = dir(Config, mistakes),
    File = filename:join(Dir, "wt3.001"),
    ok = file:write_file(File, "3\n 1 2 3\n 1 1 one\n 9 9 9\n"),
    {1, Bad} = sderl(["--instance '", File, "'"]),
    ?assertMatch([_ | _], string:find(Bad, "wt3.001:3: expected a whole number from 0, of 12 "
                                           "digits at most, found \"one\"")),
    {1, Missing} = sderl(["--instance '", File, "x'"]),
    ?assertMatch([_ | _], string:find(Missing, "wt3.001x: no such file")),
    {2, Option} = sderl("--search o9"),
    ?assertMatch([_ | _], string:find(Option, "there are none, o1, o2, o12, o21, full")).

timeout(_) ->
    Instance = sderl_aco_instance:generate(#{n => 50, rdd => 0.6, tf => 0.6, seed => 1}),
    ?assertEqual(
        {error, {aco, {timeout, 1}}},
        sderl_aco:run(#{variant => smp, instance => Instance, global_iterations => 1_000_000,
                        timeout_s => 1}, "")
    ).

%% Results of the original program, with its deterministic numbers.
golden_published(_) ->
    published("orlib/wt40.001", fun(File) ->
        {ok, [{Instance, Known}]} = sderl_aco_instance:read_all(File),
        ?assertEqual({1588, 913},
                     {sderl_aco_instance:tardiness(Instance, sderl_aco_instance:edd(Instance)),
                      Known}),
        [
            begin
                Options =
                    (sderl_aco_options:defaults())#{rng := cyclic, ants := Ants, search := Search},
                {{Found, _}, _} = Module:run(Module:new(Instance, Options, 1), Iterations),
                ?assertEqual({Module, Search, Ants, Iterations, Cost},
                             {Module, Search, Ants, Iterations, Found})
            end
         || {Search, Ants, Iterations, Cost} <- [
             {none, 5, 20, 2573}, {none, 20, 1, 2573}, {none, 20, 50, 2573}, {o1, 5, 20, 913},
             {o2, 5, 20, 1862}, {o12, 5, 20, 913}, {o21, 5, 20, 913}
         ],
            Module <- [sderl_aco_colony | [sderl_aco_plain || Iterations < 50]]
        ]
    end).

%% Easy instances: a few colonies find the best.
best_known_published(_) ->
    published("orlib", fun(Dir) ->
        {ok, All} = sderl_aco_instance:read_all(Dir),
        ?assertEqual([], [Name || {#{name := Name}, undefined} <- All]),
        [
            begin
                [{Instance, Known}] = [Pair || {#{name := N}, _} = Pair <- All, N =:= Name],
                Options = (sderl_aco_options:defaults())#{search := full},
                Costs = [
                    Cost
                 || Seed <- lists:seq(1, 5), {{Cost, _}, _} <- [
                     sderl_aco_colony:run(sderl_aco_colony:new(Instance, Options, Seed), 60)
                 ]
                ],
                ?assertEqual({Name, Known}, {Name, lists:min(Costs)})
            end
         || Name <- [~"wt40.001", ~"wt40.051", ~"wt50.001"]
        ]
    end).

published(Name, Fun) ->
    case os:getenv("SDERL_INSTANCES") of
        false ->
            {skip, "SDERL_INSTANCES does not name a folder with the published instances"};
        Dir ->
            Path = filename:join(Dir, Name),
            case filelib:is_file(Path) of
                true -> Fun(Path), ok;
                false -> {skip, "there is no " ++ Path ++ ", where SDERL_INSTANCES says"}
            end
    end.

dir(Config, Name) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), Name),
    ok = filelib:ensure_path(Dir),
    Dir.

sderl(Args) ->
    Line = unicode:characters_to_list([sderl_cli_program:file(), " bench aco ", Args,
                                       " 2>&1; echo \"status $?\""]),
    [Text, Status] = string:split(string:trim(os:cmd(Line)), "status ", trailing),
    {list_to_integer(Status), Text}.

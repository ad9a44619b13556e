%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_file_tests).

-include_lib("eunit/include/eunit.hrl").

-define(I, sderl_aco_instance).

%% One instance: 2 jobs.
-define(TWO, "2\n 10 20\n 1 2\n\t30 40\r\n").

single_test() ->
    with([{"wt2.001", ?TWO}], fun(Dir) ->
        ?assertEqual(
            {ok, #{name => <<"wt2.001">>, n => 2, p => {10, 20}, w => {1, 2}, d => {30, 40}}},
            ?I:read(filename:join(Dir, "wt2.001"))
        ),
        ?assertMatch({ok, [{#{name := <<"wt2.001">>}, undefined}]}, ?I:read_all(Dir))
    end).

%% The original files: several instances, no number of jobs.
several_test() ->
    Numbers = "10 20 1 2 30 40\n11 21 3 4\n31 41\n",
    with([{"wt2.txt", Numbers}, {"other.txt", Numbers}], fun(Dir) ->
        {ok, All} = ?I:read_all(filename:join(Dir, "wt2.txt")),
        ?assertMatch([{#{name := <<"wt2.001">>, d := {30, 40}}, undefined},
                      {#{name := <<"wt2.002">>, p := {11, 21}}, undefined}], All),
        ?assertMatch({error, {aco, {bad_file, _, 1, _}}}, ?I:read(filename:join(Dir, "wt2.txt"))),
        ?assertMatch({ok, [{#{name := <<"other.001">>}, _}, _]},
                     ?I:read_all(filename:join(Dir, "other.txt"), #{n => 2}))
    end).

%% The first duration may equal the number of jobs by chance: the count of the numbers tells which
%% one it is. A file with one number too many for either is wrong.
by_chance_test() ->
    Numbers = "2 20 1 2 30 40",
    with([{"wt2.txt", [Numbers, " 11 21 3 4 31 41"]},
          {"wt2b.txt", ["2\n20 1 2 30 40", " 11 21 3 4 31 41"]},
          {"wt2.007", Numbers},
          {"wt2.008", ["2\n", ?TWO]}],
         fun(Dir) ->
             [
                 ?assertMatch({ok, [{#{p := {2, 20}}, undefined}, {#{p := {11, 21}}, undefined}]},
                              ?I:read_all(filename:join(Dir, Name)))
              || Name <- ["wt2.txt", "wt2b.txt"]
             ],
             ?assertMatch({ok, #{p := {2, 20}, d := {30, 40}}},
                          ?I:read(filename:join(Dir, "wt2.007"))),
             ?assertMatch({error, {aco, {bad_file, _, 5, _}}},
                          ?I:read(filename:join(Dir, "wt2.008")))
         end).

%% Instances come in the order of their numbers. Of several with one name the first counts.
folder_test() ->
    Files = [{"wt2.txt", "10 20 1 2 30 40 11 21 3 4 31 41"}, {"wt2/wt2.001", ?TWO},
             {"wt2/wt2.010", ?TWO}, {"README", "text"}, {".hidden", "x"}],
    with(Files, fun(Dir) ->
        {ok, All} = ?I:read_all(Dir),
        ?assertEqual([<<"wt2.001">>, <<"wt2.002">>, <<"wt2.010">>],
                     [Name || {#{name := Name}, _} <- All])
    end).

best_known_test() ->
    Files = [
        {"wt2.001", ?TWO}, {"wt2.002", ?TWO}, {"wt2.003", ?TWO}, {"wt_2_prime_1.txt", ?TWO},
        {"wt_2_prime_2.txt", ?TWO}, {"x.001", ?TWO},
        {"wtopt2.txt", " 913\n0\n\n  \n"}, {"wtbest2a.txt", "912\n 7\n 5\n"},
        {"optimal_results_prime.txt", "Results\n"
                                      "\n"
                                      "name\tvalue\n"
                                      "====\n"
                                      "wt_2_prime_1\t\t 802910360\t\n"
                                      "wt_2_prime_2.txt\t 12 \n"
                                      "-----\n"
                                      "All are proven optimal 5\n"},
        {"best_known.txt", "# ours\nx.001 77\n"}
    ],
    with(Files, fun(Dir) ->
        {ok, All} = ?I:read_all(Dir),
        ?assertEqual(
            [{<<"wt2.001">>, 912}, {<<"wt2.002">>, 0}, {<<"wt2.003">>, 5},
             {<<"wt_2_prime_1">>, 802910360}, {<<"wt_2_prime_2">>, 12}, {<<"x.001">>, 77}],
            lists:sort([{Name, Known} || {#{name := Name}, Known} <- All])
        ),
        ?assertMatch({ok, [{_, 912}]}, ?I:read_all(filename:join(Dir, "wt2.001")))
    end).

%% The published layout: the list is beside the folder.
list_above_test() ->
    with([{"wt2/wt2.002", ?TWO}, {"wtopt2.txt", "1\n2\n"}], fun(Dir) ->
        ?assertMatch({ok, [{_, 2}]}, ?I:read_all(filename:join(Dir, "wt2"))),
        ?assertMatch({ok, [{_, 2}]}, ?I:read_all(filename:join([Dir, "wt2", "wt2.002"]))),
        ?assertMatch({ok, [{_, 2}]}, ?I:read_all(Dir))
    end).

malformed_test_() ->
    [
        {Name ++ ": " ++ Says, fun() ->
            with([{Name, Content}], fun(Dir) ->
                {error, {aco, {bad_file, File, Line, _} = Reason}} =
                    ?I:read_all(filename:join(Dir, Name)),
                Text = unicode:characters_to_list(sderl_aco:text(Reason)),
                ?assertEqual({Name, AtLine}, {filename:basename(File), Line}),
                ?assertMatch({_, [_ | _]}, {Text, string:find(Text, Says)}),
                ?assertEqual(Text,
                             unicode:characters_to_list(sderl_papers_reason:text({aco, Reason})))
            end)
        end}
     || {Name, Content, AtLine, Says} <- [
         {"a", "", 1,
          "expected the number of jobs and three numbers for each, found an empty file"},
         {"a", " \n\n", 1, "an empty file"},
         {"a", "2\n1 2\n3 four\n5 6\n", 3,
          "expected a whole number from 0, of 12 digits at most, found \"four\""},
         {"a", "2\n1 2\n3 -4\n5 6\n", 3, "\"-4\""},
         {"a", "2\n1 2\n3 4.5\n5 6\n", 3, "\"4.5\""},
         {"a", "2 1 2 3 4 5 1234567890123\n", 1, "12 digits at most"},
         {"a", "2\n1 2\n3 4\n5\n", 4, "expected 3 x 2 numbers after the number of jobs 2 "
                                      "(durations, weights, due dates), found 5"},
         {"a", "2\n1 2\n3 4\n5 6\n7 8\n", 5, "expected the end after 3 x 2 numbers, found 2 more"},
         {"a", "0\n", 1, "expected the number of jobs, at least 1, found 0"},
         {"a", "2\n1 0\n3 4\n5 6\n", 2, "expected a duration of at least 1, found 0"},
         {"a", "999999999999\n1 2\n", 2, "found 2"},
         {"a", <<1, 2, 255, 254, 0>>, 1, "found what is no text"},
         {"a", lists:duplicate(1000, $x), 1, "xxx...\""},
         {"wt3.txt", "1 2 3 1 2 3 1 2 3\n1 2 3 1 2 3 1 2\n", 2,
          "expected 3 x 3 numbers for each instance of 3 jobs, or the number of jobs before them; "
          "found 17 numbers"},
         {"wt2.txt", "1 2 1 2 1 2\n0 2 1 2 1 2\n", 2, "expected a duration of at least 1"},
         {"wt2.001", "2\n1 2 3\n", 2, "found 3"},
         {"wt2.001", "2\n1 2\n3 4\n5\n", 4, "expected 3 x 2 numbers after the number of jobs 2 "
                                            "(durations, weights, due dates), found 5"}
     ]
    ].

malformed_lists_test_() ->
    [
        {Name ++ ": " ++ Says, fun() ->
            with([{"wt2.001", ?TWO}, {Name, Content}], fun(Dir) ->
                [
                    begin
                        {error, {aco, {bad_file, File, Line, _} = Reason}} = ?I:read_all(Path),
                        ?assertEqual({Name, AtLine}, {filename:basename(File), Line}),
                        ?assertMatch([_ | _], string:find(
                            unicode:characters_to_list(sderl_aco:text(Reason)), Says
                        ))
                    end
                 || Path <- [Dir, filename:join(Dir, "wt2.001")]
                ]
            end)
        end}
     || {Name, Content, AtLine, Says} <- [
         {"best_known.txt", "wt2.001 5\nwt2.002\n", 2,
          "expected the name of an instance and its cost, a whole number, found \"wt2.002\""},
         {"best_known.txt", "wt2.001 five\n", 1, "found \"wt2.001 five\""},
         {"wtopt2.txt", "1\n2\nx\n", 3, "expected one cost, a whole number, found \"x\""},
         {"wtopt2.txt", "1 2\n", 1, "found \"1 2\""},
         {"optimal_results.txt", "heading\n", 1,
          "expected lines with the name of an instance and its cost, found none"},
         {"optimal_results.txt", "h\nwt2.001 5\nwt2.002 five\n---\n", 3, "found \"wt2.002 five\""}
     ]
    ].

missing_test() ->
    with([{"README.md", "nothing"}], fun(Dir) ->
        Text = fun(Path) ->
            {error, {aco, Reason}} = ?I:read_all(Path),
            unicode:characters_to_list(sderl_aco:text(Reason))
        end,
        ?assertMatch([_ | _], string:find(Text(filename:join(Dir, "none")), "none: no such file")),
        ?assertMatch([_ | _], string:find(Text(Dir), "has no instances")),
        ?assertMatch([_ | _], string:find(Text("/dev/null"), "neither a file nor a folder"))
    end).

%% No atoms are made of what is in a file.
atoms_test() ->
    with([{"best_known.txt", "an_instance_that_nobody_knows_61827 5\n"},
          {"a_file_that_nobody_knows_61827", ?TWO}],
         fun(Dir) ->
             Before = erlang:system_info(atom_count),
             {ok, [_]} = ?I:read_all(Dir),
             ?assertError(badarg,
                          binary_to_existing_atom(<<"an_instance_that_nobody_knows_", "61827">>)),
             ?assert(erlang:system_info(atom_count) - Before < 100)
         end).

%% Runs the fun with a folder of its own. Its name has characters of a wildcard pattern, and must
%% not be read as one.
with(Files, Fun) ->
    {ok, Cwd} = file:get_cwd(),
    Dir = filename:join([Cwd, "_build",
                         "aco [1] " ++ integer_to_list(erlang:unique_integer([positive])) ++
                         os:getpid()]),
    try
        [
            begin
                Path = filename:join(Dir, Name),
                ok = filelib:ensure_dir(Path),
                ok = file:write_file(Path, Content)
            end
         || {Name, Content} <- Files
        ],
        Fun(Dir)
    after
        ok = file:del_dir_r(Dir)
    end.

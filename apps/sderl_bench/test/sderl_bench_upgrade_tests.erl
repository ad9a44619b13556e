%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_upgrade_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

options_test_() ->
    Checked = fun(Args) ->
        sderl_bench_options:checked("upgrade", sderl_bench_upgrade_experiment, Args)
    end,
    [
        ?_assertMatch({ok, #{nodes := 24, kills := 10, batch := 2}}, Checked([])),
        ?_assertMatch({error, "--nodes must be 0" ++ _}, Checked(["--nodes", "1"])),
        ?_assertMatch({error, "--nodes 0 and" ++ _}, Checked(["--nodes", "0", "--kills", "0"])),
        ?_assertMatch({error, "--gateways must be less" ++ _}, Checked(["--gateways", "6"])),
        ?_assertMatch({error, "--batch must be at least 1" ++ _}, Checked(["--batch", "0"]))
    ].

ids(Count) -> [integer_to_binary(Number) || Number <- lists:seq(1, Count)].

groups_test() ->
    ?assertEqual([{~"g1", ids(3)}], sderl_bench_messenger:groups(ids(3), 2, 1)),
    ?assertEqual([{~"g1", [~"1", ~"2", ~"4"]}, {~"g2", [~"3", ~"4", ~"2"]}],
                 sderl_bench_messenger:groups(ids(4), 2, 1)),
    Demo = sderl_bench_messenger:groups(ids(24), 6, 2),
    ?assertEqual([8, 8, 8, 8], [length(Ids) || {_, Ids} <- Demo]),
    Next = [Name || {Name, _} <- sderl_bench_messenger:next_groups(~"1", Demo)],
    ?assertEqual([~"g2", ~"g4"], Next -- [~"g3"]).

%% Every instance is in a group, and no group lists an instance twice.
groups_property_test() ->
    ?assert(proper:quickcheck(
        ?FORALL({Size, Parts, More}, {integer(2, 7), integer(1, 5), integer(0, 1)}, begin
            Ids = ids(Size * Parts + More),
            Groups = sderl_bench_messenger:groups(Ids, Size, 1),
            lists:usort(lists:append([In || {_, In} <- Groups])) =:= lists:sort(Ids)
                andalso lists:all(fun({_, In}) -> In =:= lists:uniq(In) end, Groups)
        end), [{numtests, 200}, quiet])).

report(Sent, Taken, Pending) ->
    #{sent => Sent, acked => Sent, taken => Taken, pending => Pending, again => 0, missing => [],
      quiet => true}.

judge_test() ->
    Judge = fun sderl_bench_upgrade:judge/1,
    Well = #{~"a" => report(#{~"b" => 3}, #{}, 0), ~"b" => report(#{}, #{~"a" => 3}, 0)},
    ?assertMatch(#{lost_messages := 0, sent := 3, acknowledged := 3, names_missing := 0},
                 Judge(Well)),
    %% Lost: two messages that were acknowledged and are not at the receiver; then one that was
    %% never acknowledged.
    ?assertMatch(#{lost_messages := 2}, Judge(Well#{~"b" => report(#{}, #{~"a" => 1}, 0)})),
    ?assertMatch(#{lost_messages := 1}, Judge(Well#{~"b" => report(#{}, #{~"a" => 3}, 1)})).

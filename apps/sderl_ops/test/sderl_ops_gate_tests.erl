%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_gate_tests).
-moduledoc "Which alarms hold up an upgrade.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(IDS, [~"web1", ~"web2", ~"web3", ~"web4"]).
-define(GROUPS, [~"a", ~"b"]).

%% ---------------------------------------------------------------- cases

concerned_test_() ->
    %% web1 and web2 are in the group a; web2 is being replaced, web4 drained.
    [{Name, ?_assertEqual(Held, alarms(Id, [{{~"x", 1}, Alarm}], [], []))}
     || {Name, Id, Alarm, Held} <- [
            {"its node", ~"web1", alarm([~"web1"], false, []), [~"x"]},
            {"its node, while it is replaced", ~"web2", alarm([~"web2"], false, []), [~"x"]},
            {"its group", ~"web1", alarm([], false, [~"a"]), [~"x"]},
            {"another group", ~"web1", alarm([], false, [~"b"]), []},
            {"another node of its group", ~"web1", alarm([~"web3"], false, [~"a"]), [~"x"]},
            {"a node that is no instance", ~"web1", alarm([], true, [~"a"]), [~"x"]},
            {"one that is replaced", ~"web1", alarm([~"web2"], false, [~"a"]), []},
            {"one that is drained", ~"web1", alarm([~"web4"], false, [~"a"]), []},
            {"one that is replaced, and another", ~"web1", alarm([~"web2", ~"web3"], false, [~"a"]),
             [~"x"]},
            {"nothing of it", ~"web1", alarm([~"web3"], false, []), []}
        ]].

stood_before_test() ->
    One = alarm([~"web1"], false, []),
    ?assertEqual([], alarms(~"web1", [{{~"x", 3}, One}], [{~"x", 3}], [])),
    ?assertEqual([~"x"], alarms(~"web1", [{{~"x", 4}, One}], [{~"x", 3}], [])),
    ?assertEqual([~"x", ~"y"], alarms(~"web1", [{{~"y", 1}, One}, {{~"x", 4}, One}], [], [])).

%% Acknowledged, silenced and minor alarms do not count, nor do alarms that were known before in
%% another state.
counts_test() ->
    One = alarm([~"web1"], false, []),
    ?assertEqual([], alarms(~"web1", [{{~"x", 1}, One#{counts := false}}], [], [])),
    Upgrade = #{revision => 2, back => false, taken => #{}, proven => #{}, since => 100},
    Seen = #{state => up, at => 100, raised => #{{~"x", 1} => One#{counts := false}}},
    Begun = sderl_ops_gate:begin_with(Upgrade, view(Seen, [])),
    Later = view(Seen#{raised := #{{~"x", 1} => One, {~"y", 1} => One}}, []),
    ?assertEqual([~"y"], sderl_ops_gate:alarms(~"web1", Begun, Later)).

%% Only an answer from after the begin of the upgrade tells which alarms stood then.
begins_with_test() ->
    Upgrade = #{revision => 2, back => false, taken => #{}, proven => #{}, since => 100},
    Seen = fun(At) -> #{state => up, at => At, raised => #{{~"x", 1} => alarm([], false, [])}} end,
    ?assertEqual(Upgrade, sderl_ops_gate:begin_with(Upgrade, view(Seen(99), []))),
    Begun = sderl_ops_gate:begin_with(Upgrade, view(Seen(100), [])),
    ?assertEqual(Upgrade#{stood => [{~"x", 1}]}, Begun),
    Later = #{state => up, at => 200, raised => #{}},
    ?assertEqual(Begun, sderl_ops_gate:begin_with(Begun, view(Later, []))),
    ?assertEqual({unknown, not_asked_yet}, sderl_ops_gate:state(Upgrade, view(Seen(99), []))),
    ?assertEqual(known, sderl_ops_gate:state(Begun, view(Later, []))),
    Failing = #{state => failing, at => 300, why => ~"it does not answer"},
    ?assertEqual(Upgrade, sderl_ops_gate:begin_with(Upgrade, view(Failing, []))),
    ?assertEqual({unknown, ~"it does not answer"}, sderl_ops_gate:state(Begun, view(Failing, []))),
    %% During a roll-back alarms are not read.
    ?assertEqual(known, sderl_ops_gate:state(Begun#{back := true}, view(Failing, []))).

%% One failed look is ignored; several make the alarms unknown.
last_answer_holds_test() ->
    Up = #{state => up, at => 10_000, raised => #{}},
    Failing = fun(At) -> #{state => failing, at => At, why => ~"no answer"} end,
    Held = Up#{doubt => ~"no answer"},
    ?assertEqual(Held, sderl_ops_gate:known(Failing(14_999), Up)),
    ?assertEqual(Failing(15_000), sderl_ops_gate:known(Failing(15_000), Held)),
    %% Replaced instances are judged by it, and nothing more is replaced.
    Upgrade = #{revision => 2, back => false, taken => #{}, proven => #{}, stood => []},
    ?assertEqual({known, {unknown, ~"no answer"}},
                 {sderl_ops_gate:state(Upgrade, view(Held, [])),
                  sderl_ops_gate:turns(Upgrade, view(Held, []))}),
    ?assertEqual(known, sderl_ops_gate:turns(Upgrade#{back := true}, view(Held, []))),
    ?assertEqual(Failing(15_000), sderl_ops_gate:known(Failing(15_000), Up)),
    ?assertEqual(Failing(1), sderl_ops_gate:known(Failing(1), none)),
    ?assertEqual(Failing(2), sderl_ops_gate:known(Failing(2), Failing(1))),
    ?assertEqual(Up, sderl_ops_gate:known(Up, Failing(1))).

%% ---------------------------------------------------------------- any alarms

%% An alarm holds up an instance exactly if it is new and concerns it; and one more alarm never lets
%% an upgrade go on that was held up.
held_up_test_() ->
    {timeout, 60, fun() ->
        ?assert(proper:quickcheck(prop_held_up(), [{numtests, 500}, {to_file, user}]))
    end}.

prop_held_up() ->
    ?FORALL({Raised, Stood, More, Aside},
            {raised(), stood(), raised(), list(elements(?IDS))},
        begin
            Held = fun(Of) ->
                #{Id => alarms(Id, maps:to_list(Of), lists:usort(Stood), Aside) || Id <- ?IDS}
            end,
            Now = Held(Raised),
            Then = Held(maps:merge(More, Raised)),
            lists:all(fun(Id) ->
                map_get(Id, Now) =:= expected(Id, Raised, Stood, Aside)
                    andalso map_get(Id, Now) -- map_get(Id, Then) =:= []
            end, ?IDS)
        end).

raised() -> map(occurrence(), alarm()).
occurrence() -> {elements([~"x", ~"y", ~"z"]), integer(1, 2)}.
stood() -> list(occurrence()).

alarm() ->
    ?LET({Instances, Elsewhere, Groups},
         {list(elements(?IDS)), boolean(), list(elements(?GROUPS))},
         alarm(Instances, Elsewhere, Groups)).

expected(Id, Raised, Stood, Aside) ->
    Out = [~"web2", ~"web4" | Aside],
    [Alarm || {Alarm, Count} := #{instances := Is, elsewhere := Elsewhere, groups := Groups}
                  <- maps:iterator(Raised, ordered),
              not lists:member({Alarm, Count}, Stood),
              lists:member(Id, Is)
                  orelse (Groups -- (Groups -- groups(Id)) =/= []
                          andalso (Is =:= [] orelse Elsewhere
                                   orelse [I || I <- Is, not lists:member(I, Out)] =/= []))].

%% ---------------------------------------------------------------- helpers

alarm(Instances, Elsewhere, Groups) ->
    #{instances => Instances, elsewhere => Elsewhere, groups => Groups, counts => true}.

alarms(Id, Raised, Stood, Aside) ->
    Upgrade = #{revision => 2, back => false, taken => #{~"web2" => waiting}, proven => #{},
                stood => Stood},
    Seen = #{state => up, at => 1, raised => maps:from_list(Raised)},
    sderl_ops_gate:alarms(Id, Upgrade, view(Seen, Aside)).

view(Alarms, Aside) ->
    #{upgrade := Settings} = Desired0 = sderl_ops_cases:desired(4, ~"sum", []),
    Source = #{url => ~"http://there", token => {env, ~"T"}},
    Desired = Desired0#{
        upgrade := Settings#{alarms => Source},
        groups := [#{name => Name, consistency => available,
                     members => [Id || Id <- ?IDS, lists:member(Name, groups(Id))]}
                   || Name <- ?GROUPS]
    },
    {Observed, Memory} = sderl_ops_cases:running(Desired),
    Drained = lists:foldl(fun sderl_ops_memory:set_aside/2, Memory, [~"web4" | Aside]),
    Replacing = #{~"web" => #{revision => 2, back => false, taken => #{~"web2" => waiting},
                              proven => #{}}},
    sderl_ops_view:new(Desired, Observed#{alarms => Alarms}, Drained#{upgrades := Replacing},
                       #{}, #{}, [], 1000).

groups(~"web1") -> [~"a"];
groups(~"web2") -> [~"a"];
groups(~"web3") -> [~"a", ~"b"];
groups(~"web4") -> [~"a"].

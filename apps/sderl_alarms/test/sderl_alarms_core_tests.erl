-module(sderl_alarms_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODE, ~"a@h").
-define(ID, ~"busy|a@h").
-define(FOR_MS, 5_000).
-define(WALL, 1_700_000_000_000).

%% ---------------------------------------------------------------- a cluster of one node

%% minor from 100, major from 200, cleared below 90 and 180, for 5 s.
rules() -> rules(~"").

rules(More) ->
    {ok, #{rules := Rules}} = sderl_alarms_file:parse(<<
        "{\"rules\": [{\"alarm\": \"busy\", \"metric\": \"run_queue\", \"minor\": 100, "
        "\"major\": 200, \"for_s\": 5, \"hysteresis\": 0.1, \"tags\": [\"op\"]}", More/binary,
        "]}"
    >>),
    sderl_alarms_look:rules(Rules).

look(Value) -> look(Value, rules()).

look(gone, Rules) ->
    sderl_alarms_look:take(input(#{}, none), Rules);
look(unknown, Rules) ->
    sderl_alarms_look:take(input(#{?NODE => up}, none), Rules);
look(down, Rules) ->
    sderl_alarms_look:take(input(#{?NODE => down}, none), Rules);
look(Value, Rules) ->
    sderl_alarms_look:take(input(#{?NODE => up}, Value), Rules).

input(Nodes, Value) ->
    #{
        topology => #{
            epoch => 1, t => 1, groups => #{}, monitors => [],
            nodes => #{Id => #{status => Status, groups => [~"g"], home => ~"g", hidden => false,
                               source => probe} || Id := Status <- Nodes}
        },
        frame => case Value of
            none -> none;
            _ -> #{seq => 1, t => 1, span_ms => 1000, epoch => 1, links => #{}, kinds => #{},
                   groups => #{}, lost => #{}, nodes => #{?NODE => #{run_queue => Value}}}
        end,
        findings => [],
        standing => #{}, versions => sderl_alarms_versions:new()
    }.

step(Value, Now, State) -> step(look(Value), Now, ?WALL + Now, State).

step(Look, Now, Wall, State) when not is_number(Look) ->
    {Notes, New} = sderl_alarms_core:step(
        sderl_alarms_look:passed(Look),
        fun(Alarm) -> sderl_alarms_look:absent(Alarm, Look) end,
        Now, Wall, State
    ),
    {[{Kind, Severity} || {Kind, #{id := ?ID, severity := Severity}} <- Notes], New}.

%% Looks a second apart, from a time on: the notes with their times.
looks(Values, From, State) ->
    lists:foldl(fun({N, Value}, {Notes, S}) ->
        Now = From + 1000 * N,
        {More, S1} = step(Value, Now, S),
        {Notes ++ [{Now, Kind, Severity} || {Kind, Severity} <- More], S1}
    end, {[], State}, lists:enumerate(0, Values)).

%% A state that has settled, at 100 s.
settled() ->
    {[], State} = step(0, 100_000, sderl_alarms_core:new(0)),
    State.

raised(Value) ->
    {_, State} = looks(lists:duplicate(6, Value), 101_000, settled()),
    State.

alarm(State) ->
    {ok, Alarm} = sderl_alarms_core:find(?ID, State),
    Alarm.

%% ---------------------------------------------------------------- cases

raised_after_its_time_test() ->
    ?assertMatch({[], _}, looks([150, 150, 150, 150, 150], 101_000, settled())),
    ?assertMatch({[{106_000, raised, minor}], _},
                 looks([150, 150, 150, 150, 150, 150, 150], 101_000, settled())),
    %% One look below begins it anew.
    ?assertMatch({[], _}, looks([150, 150, 150, 99, 150, 150, 150, 150], 101_000, settled())).

%% What a node tells once a minute, by the built-in rule; nothing of a node that does not tell it.
shell_history_test() ->
    {ok, #{rules := Rules}} = sderl_alarms_file:parse(~"{}"),
    Passed = fun(Standing) ->
        Look = sderl_alarms_look:take((input(#{?NODE => up}, none))#{standing := Standing},
                                      sderl_alarms_look:rules(Rules)),
        [Id || <<"shell_history|", _/binary>> = Id := _ <- sderl_alarms_look:passed(Look)]
    end,
    ?assertEqual([~"shell_history|a@h"],
                 Passed(#{?NODE => #{shell_bytes => 70_000_000}})),
    ?assertEqual([], Passed(#{?NODE => #{shell_bytes => 2_000_000}})),
    ?assertEqual([], Passed(#{})).

%% Nodes of a family are compared in whichever groups they are, and with no other family.
family_test() ->
    Info = fun(Groups, Status) ->
        #{status => Status, groups => Groups, home => undefined, hidden => false, source => probe}
    end,
    Nodes = #{~"web1@h" => Info([~"g"], up), ~"web-2@k" => Info([], up),
              ~"web3@h" => Info([~"h"], down), ~"db1@h" => Info([~"g"], up)},
    Standing = #{~"web1@h" => #{utc_offset_s => 0}, ~"web-2@k" => #{utc_offset_s => 3600},
                 ~"web3@h" => #{utc_offset_s => 7200}, ~"db1@h" => #{utc_offset_s => 0}},
    Look = fun(Of, Known, Text) ->
        #{topology := Topology} = Input = input(#{}, none),
        {ok, #{rules := Rules}} = sderl_alarms_file:parse(Text),
        sderl_alarms_look:take(Input#{topology := Topology#{nodes := Of}, standing := Known},
                               sderl_alarms_look:rules(Rules))
    end,
    Zones = fun(L) ->
        #{Id => Found || <<"family_", _/binary>> = Id := Found <- sderl_alarms_look:passed(L)}
    end,
    #{~"family_time_zones|web" := Found} = All = Zones(Look(Nodes, Standing, ~"{}")),
    ?assertEqual(1, map_size(All)),
    ?assertMatch(#{place := #{family := ~"web"}, nodes := [], groups := [~"g", ~"h"],
                   over := minor, for_ms := 60_000}, Found),
    #{say := Say} = Found,
    ?assertMatch(#{text := <<"family web: family_utc_offsets is 2 time zones, the limit is 2 time "
                             "zones">>}, Say()),
    Off = ~B|{"rules": [{"alarm": "family_time_zones", "families": ["w*"], "off": true}]}|,
    ?assertEqual(#{}, Zones(Look(Nodes, Standing, Off))),
    Absent = fun(L) ->
        sderl_alarms_look:absent(#{alarm => ~"family_time_zones", place => #{family => ~"web"}}, L)
    end,
    Same = #{Node => #{utc_offset_s => 0} || Node := _ <- Nodes},
    ?assertEqual(#{}, Zones(Look(Nodes, Same, ~"{}"))),
    ?assertEqual([clear, unknown, gone, off],
                 [Absent(Look(Nodes, Same, ~"{}")), Absent(Look(Nodes, #{}, ~"{}")),
                  Absent(Look(maps:with([~"db1@h"], Nodes), Same, ~"{}")),
                  Absent(Look(Nodes, Same, Off))]).

%% When to look again, so that it is raised when its time has passed.
due_test() ->
    ?assertEqual(none, sderl_alarms_core:due(settled())),
    {[], S1} = step(150, 101_000, settled()),
    ?assertEqual(106_000, sderl_alarms_core:due(S1)),
    {[], S2} = step(250, 102_000, S1),
    ?assertEqual(106_000, sderl_alarms_core:due(S2)),
    {[{raised, minor}], S3} = step(250, 106_000, S2),
    ?assertEqual(107_000, sderl_alarms_core:due(S3)),
    {[{escalated, major}], S4} = step(250, 107_000, S3),
    ?assertEqual(none, sderl_alarms_core:due(S4)),
    {[], S5} = step(99, 103_000, S1),
    ?assertEqual(none, sderl_alarms_core:due(S5)).

escalated_and_eased_test() ->
    {Notes, State} = looks([150, 150, 150, 150, 150, 150, 250, 250, 250, 250, 250, 250, 185, 170,
                            95, 89], 101_000, settled()),
    ?assertEqual([{106_000, raised, minor}, {112_000, escalated, major}, {114_000, eased, minor},
                  {116_000, cleared, minor}], Notes),
    ?assertMatch(#{is_raised := false, worst := major, count := 1, why_cleared := <<_/binary>>},
                 alarm(State)).

acknowledged_is_open_again_when_it_becomes_major_test() ->
    S0 = raised(150),
    {ok, [{acknowledged, _}], S1} = sderl_alarms_core:act(acknowledge(1), 107_000, ?WALL, S0),
    ?assertMatch(#{ack := #{acked := true, by := ~"ann"}}, alarm(S1)),
    {Notes, S2} = looks([250, 250, 250, 250, 250, 250], 107_000, S1),
    ?assertEqual([{112_000, escalated, major}], Notes),
    ?assertMatch(#{ack := #{acked := false}}, alarm(S2)).

acknowledged_and_over_test() ->
    {ok, _, S1} = sderl_alarms_core:act(acknowledge(1), 107_000, ?WALL, raised(150)),
    {Notes, S2} = looks([0, 0], 108_000, S1),
    ?assertEqual([{108_000, cleared, minor}], Notes),
    ?assertEqual({error, not_raised},
                 sderl_alarms_core:act(acknowledge(2), 110_000, ?WALL, S2)),
    %% It comes again: another occurrence, open, with what was said of it.
    {ok, [], S3} = sderl_alarms_core:act(comment(~"k1"), 110_000, ?WALL, S2),
    {_, S4} = looks(lists:duplicate(6, 150), 111_000, S3),
    ?assertMatch(#{is_raised := true, count := 2, ack := #{acked := false},
                   comments := [#{id := ~"k1"}]}, alarm(S4)).

acknowledge(T) ->
    #{do => acknowledge, key => ~"a", id => ?ID, by => ~"ann", at => ?WALL + 108_000 + T,
      text => ~""}.

comment(Key) ->
    #{do => comment, key => Key, id => ?ID, by => ~"bob", at => ?WALL, text => ~"seen before"}.

nothing_known_is_no_reason_to_clear_test() ->
    {[], S1} = looks(lists:duplicate(590, unknown), 107_000, raised(150)),
    ?assertMatch(#{is_raised := true}, alarm(S1)),
    {[{_, cleared, minor}], _} = looks(lists:duplicate(20, unknown), 697_000, S1).

a_node_that_is_gone_test() ->
    {[], S1} = looks(lists:duplicate(30, gone), 107_000, raised(150)),
    {[{_, cleared, minor}], S2} = looks([gone, gone], 137_000, S1),
    #{why_cleared := Why} = alarm(S2),
    ?assertMatch({_, _}, binary:match(Why, ~"not there any more")).

%% While a restarted monitor knows little, nothing that it saved is cleared.
restart_test() ->
    Saved = binary_to_term(term_to_binary(sderl_alarms_core:save(raised(150)))),
    Loaded = sderl_alarms_core:load(Saved, 5_000, ?WALL),
    {[], S1} = looks(lists:duplicate(29, gone), 5_000, Loaded),
    ?assertMatch(#{is_raised := true, told := minor, count := 1}, alarm(S1)),
    %% It is still so: nobody is told twice.
    {[], S2} = looks(lists:duplicate(40, 150), 34_000, S1),
    {[{_, cleared, minor}], _} = looks([0], 80_000, S2).

a_rule_that_is_switched_off_test() ->
    Off = rules(~", {\"alarm\": \"busy\", \"nodes\": [\"a*\"], \"off\": true}"),
    {Notes, S1} = step(look(150, Off), 108_000, ?WALL, raised(150)),
    ?assertEqual([{cleared, minor}], Notes),
    #{why_cleared := Why} = alarm(S1),
    ?assertMatch({_, _}, binary:match(Why, ~"no rule")).

the_last_rule_that_fits_holds_test() ->
    Rules = rules(<<", {\"alarm\": \"busy\", \"metric\": \"run_queue\", \"families\": [\"a\"], "
                    "\"minor\": 1000, \"major\": null}">>),
    {[], _} = step(look(999, Rules), 100_000, ?WALL, settled()),
    ?assertEqual(#{}, sderl_alarms_look:passed(look(899, Rules))),
    ?assertMatch(#{?ID := #{over := none, holds := minor}},
                 sderl_alarms_look:passed(look(900, Rules))).

down_test() ->
    Look = look(down),
    {_, S1} = step(Look, 101_000, ?WALL, settled()),
    {_, S2} = step(Look, 112_000, ?WALL, S1),
    {ok, #{severity := major, text := Text, nodes := [?NODE], groups := [~"g"]}} =
        sderl_alarms_core:find(~"node_down|a@h", S2),
    ?assertEqual(~"a@h is down", Text).

%% One that was stopped is said once not to answer.
silent_test() ->
    Input = #{topology := #{nodes := #{?NODE := Info}} = Topology} = input(#{?NODE => down}, none),
    Text = fun(Why) ->
        Silent = (maps:merge(Info, Why))#{status := unreachable},
        Look = sderl_alarms_look:take(
            Input#{topology := Topology#{nodes := #{?NODE => Silent}}}, rules()),
        {_, S1} = step(Look, 101_000, ?WALL, settled()),
        {_, S2} = step(Look, 112_000, ?WALL, S1),
        {ok, #{text := Said}} = sderl_alarms_core:find(~"node_down|a@h", S2),
        Said
    end,
    ?assertEqual(~"a@h is connected, and does not answer",
                 Text(#{why => ~"connected, and does not answer"})),
    ?assertEqual(~"a@h does not answer: cannot be read", Text(#{why => ~"cannot be read"})),
    ?assertEqual(~"a@h does not answer", Text(#{})).

%% A finding is an alarm as long as it is there; the ends of an edge are nodes or groups.
finding_test() ->
    Of = fun(Where, Severity) ->
        #{id => ~"bypass|x", kind => bypass, severity => Severity, since => 1, t => 1,
          where => Where, text => ~"They talk.", remedy => ~"Route.",
          evidence => [#{label => ~"messages", value => 12.5, unit => ~"msg/s"}]}
    end,
    #{topology := Topology} = Input = input(#{?NODE => up, ~"b@h" => up}, none),
    Look = fun(Findings) ->
        sderl_alarms_look:take(Input#{findings := Findings,
                                      topology := Topology#{groups := #{~"k" => #{nodes => []}}}},
                               rules())
    end,
    Step = fun(L, Now, S) ->
        sderl_alarms_core:step(sderl_alarms_look:passed(L),
                               fun(A) -> sderl_alarms_look:absent(A, L) end, Now, ?WALL, S)
    end,
    Nodes = #{from => ?NODE, to => ~"b@h"},
    {[{raised, #{severity := minor, nodes := [?NODE, ~"b@h"], groups := [~"g"],
                 cause := ~"messages: 12.5 msg/s", remedy := ~"Route."}}], S1} =
        Step(Look([Of(Nodes, warning)]), 101_000, settled()),
    {[{escalated, #{severity := major}}], S2} = Step(Look([Of(Nodes, critical)]), 102_000, S1),
    {[{cleared, _}], _} = Step(Look([]), 103_000, S2),
    {[{raised, #{nodes := [], groups := [~"k"]}}], _} =
        Step(Look([Of(#{from => ~"k", to => ~"gone"}, warning)]), 101_000, settled()),
    %% Advice is none, unless a rule says so.
    Idle = (Of(Nodes, info))#{kind := idle_link, id := ~"idle_link|x"},
    ?assertEqual(#{}, sderl_alarms_look:passed(Look([Idle]))).

silence_test() ->
    {ok, [], S1} = sderl_alarms_core:act(silence(~"s1", 60_000), 100_000, ?WALL, settled()),
    {[], S2} = looks(lists:duplicate(50, 150), 101_000, S1),
    ?assertMatch(#{is_raised := true, told := none}, alarm(S2)),
    ?assert(sderl_alarms_core:is_silenced(alarm(S2), S2)),
    ?assertMatch(#{{minor, silenced} := 1, {minor, raised} := 0}, sderl_alarms_core:counts(S2)),
    %% What lasts longer is told when it ends.
    ?assertMatch({[{160_000, raised, minor}], _}, looks(lists:duplicate(12, 150), 151_000, S2)),
    ?assertMatch({ok, [{raised, _}], _},
                 sderl_alarms_core:act(#{do => unsilence, id => ~"s1", by => ~"ann",
                                         at => ?WALL}, 152_000, ?WALL, S2)),
    ?assertEqual({error, not_found},
                 sderl_alarms_core:act(#{do => unsilence, id => ~"s2", by => ~"ann", at => 0},
                                       152_000, ?WALL, S2)).

%% A silence of a family is for its alarms and no others: neither for those of another family that
%% is in the same group, nor for those of its nodes.
silence_of_a_family_test() ->
    Of = fun(Place, Nodes) ->
        #{alarm => ~"family_time_zones", severity => minor, nodes => Nodes, groups => [~"g"],
          place => Place}
    end,
    Fits = fun(Match, Alarm) -> sderl_alarms_silence:fits(Match, Alarm) end,
    Alarms = [Of(#{family => ~"web"}, []), Of(#{family => ~"web-api"}, []),
              Of(#{node => ~"web1@h"}, [~"web1@h"]), Of(#{group => ~"web"}, [])],
    ?assertEqual([[true, false, false, false], [true, true, false, false],
                  [false, false, false, false], [true, true, true, true]],
                 [[Fits(Match, Alarm) || Alarm <- Alarms]
                  || Match <- [#{family => ~"web"}, #{family => ~"web*"},
                               #{family => ~"web", alarm => ~"time_zones"}, #{group => ~"g"}]]).

%% Other monitoring nodes take one over.
silence_of_a_family_is_told_test() ->
    Word = (silence(~"s1", 60_000))#{match := #{family => ~"web"}},
    ?assertEqual([Word], sderl_alarms_message:clean([Word])),
    ?assertEqual([], sderl_alarms_message:clean([Word#{match := #{family => 1}}])).

%% The end of what was told is told also under a silence.
the_end_is_told_under_a_silence_test() ->
    {ok, [], S1} = sderl_alarms_core:act(silence(~"s1", 60_000), 107_000, ?WALL, raised(150)),
    ?assertMatch({[{108_000, cleared, minor}], _}, looks([0], 108_000, S1)).

silence(Key, For) ->
    #{do => silence, key => Key, match => #{alarm => ~"b*y", node => ~"a@*"}, for_ms => For,
      by => ~"ann", at => ?WALL, text => ~"maintenance"}.

too_many_silences_test() ->
    Full = lists:foldl(fun(N, S) ->
        {ok, [], New} = sderl_alarms_core:act(silence(integer_to_binary(N), 1000), 100_000, ?WALL,
                                              S),
        New
    end, settled(), lists:seq(1, 200)),
    ?assertEqual({error, too_many},
                 sderl_alarms_core:act(silence(~"more", 1000), 100_000, ?WALL, Full)).

%% Another monitoring node that hears the words of one knows the same; and hears nothing new from
%% hearing them twice.
words_test() ->
    S0 = raised(150),
    {ok, _, S1} = sderl_alarms_core:act(acknowledge(1), 107_000, ?WALL, S0),
    {ok, _, S2} = sderl_alarms_core:act(comment(~"k1"), 107_000, ?WALL, S1),
    {ok, _, S3} = sderl_alarms_core:act(silence(~"s1", 60_000), 107_000, ?WALL, S2),
    Hear = fun(Words, State) ->
        lists:foldl(fun(Action, S) ->
            case sderl_alarms_core:act(Action, 110_000, ?WALL + 2_000, S) of
                {ok, _, New} -> New;
                {error, _} -> S
            end
        end, State, Words)
    end,
    %% It saw the alarm begin later than it was acknowledged here.
    {_, Later} = looks(lists:duplicate(6, 150), 201_000, settled()),
    Once = Hear(sderl_alarms_core:words(S3), Later),
    ?assertMatch(#{ack := #{acked := true, by := ~"ann"}, comments := [#{id := ~"k1"}]},
                 alarm(Once)),
    ?assertMatch([#{id := ~"s1"}], sderl_alarms_core:silences(Once)),
    Twice = Hear(sderl_alarms_core:words(Once), Once),
    ?assertEqual(sderl_alarms_core:save(Once), sderl_alarms_core:save(Twice)),
    ?assertEqual(sderl_alarms_core:save(S3), sderl_alarms_core:save(Hear(
        sderl_alarms_core:words(Once), S3))).

%% A node that does not lead tells nothing. When it leads, it tells what differs from what was told.
takes_over_test() ->
    Follow = sderl_alarms_core:lead(false, settled()),
    {[], F1} = looks(lists:duplicate(8, 150), 101_000, Follow),
    ?assertMatch(#{is_raised := true, told := none}, alarm(F1)),
    Leads = fun(S) -> sderl_alarms_core:lead(true, S) end,
    ?assertMatch({[{raised, minor}], _}, step(150, 109_000, Leads(F1))),
    %% The former leader has told it.
    F2 = sderl_alarms_core:adopt(alarm(raised(150)), F1),
    ?assertMatch(#{told := minor, count := 1}, alarm(F2)),
    ?assertMatch({[], _}, step(150, 109_000, Leads(F2))),
    ?assertMatch({[{escalated, major}], _}, looks_briefly(200, 109_000, Leads(F2))),
    {[], F3} = step(0, 109_000, F2),
    ?assertMatch({[{cleared, minor}], _}, step(0, 110_000, Leads(F3))),
    ?assertMatch({[], _}, step(0, 110_000, Leads(sderl_alarms_core:adopt_all([], F3)))).

%% The file of a node that begins has an alarm which was cleared meanwhile: it tells neither.
comes_back_test() ->
    Saved = sderl_alarms_core:save(raised(150)),
    F0 = sderl_alarms_core:lead(false, sderl_alarms_core:load(Saved, 0, ?WALL)),
    F1 = sderl_alarms_core:lead(true, sderl_alarms_core:adopt_all([], F0)),
    {[], F2} = looks(lists:duplicate(60, 0), 1_000, F1),
    ?assertMatch(#{is_raised := false}, alarm(F2)),
    %% One that still holds is told.
    {[{1_000, raised, minor}], _} = looks(lists:duplicate(60, 150), 1_000, F1).

looks_briefly(Value, From, State) ->
    {Notes, Last} = looks(lists:duplicate(7, Value), From, State),
    {[{Kind, Severity} || {_, Kind, Severity} <- Notes], Last}.

%% It was raised before this node began, which has seen too little to raise it.
adopts_unknown_test() ->
    Told = sderl_alarms_core:told(raised(150)),
    F0 = sderl_alarms_core:adopt_all(Told, sderl_alarms_core:lead(false, settled())),
    ?assertMatch(#{is_raised := true, told := minor}, alarm(F0)),
    {[], F1} = step(150, 101_000, F0),
    ?assertMatch(#{is_raised := true}, alarm(F1)),
    ?assertMatch({[{cleared, minor}], _}, step(0, 102_000, sderl_alarms_core:lead(true, F1))).

%% Seven thousand alarms and a thousand that are over: there is an end.
bounded_test() ->
    Say = fun() -> #{text => ~"", cause => ~"", remedy => ~"", tags => [], value => 1,
                     threshold => 1, unit => ~""} end,
    Passed = #{<<"x|", (integer_to_binary(N))/binary>> =>
                   #{alarm => ~"x", place => #{node => integer_to_binary(N)}, nodes => [],
                     groups => [],
                     over => minor, holds => minor, for_ms => 0, say => Say}
               || N <- lists:seq(1, 7_000)},
    {Notes, S1} = sderl_alarms_core:step(Passed, fun(_) -> clear end, 100_000, 0,
                                         sderl_alarms_core:new(0)),
    ?assertEqual(6_000, length(Notes)),
    ?assertMatch(#{dropped := 1_000}, sderl_alarms_core:info(S1)),
    {Over, S2} = sderl_alarms_core:step(#{}, fun(_) -> clear end, 200_000, 0, S1),
    ?assertEqual(6_000, length(Over)),
    {[], S3} = sderl_alarms_core:step(#{}, fun(_) -> clear end, 200_000, 0, S2),
    ?assertEqual(1_000, length(sderl_alarms_core:alarms(S3))).

%% ---------------------------------------------------------------- properties

properties_test_() ->
    [{timeout, 120, {atom_to_list(Name), ?_assert(proper:quickcheck(
        ?MODULE:Name(), [{numtests, 200}, {to_file, user}]
    ))}} || Name <- [prop_notes, prop_duration, prop_hysteresis, prop_replay, prop_silence,
                     prop_wall_clock, prop_told_in_the_end]].

value() -> frequency([{4, oneof([0, 89, 90, 99, 100, 150, 179, 180, 199, 200, 300])},
                      {1, oneof([unknown, down])}]).

%% Times between looks: mostly a second; none at all, or a long sleep.
pause() -> frequency([{8, 1_000}, {2, range(0, 6_000)}, {1, range(15_000, 40_000)}]).

steps() -> list({pause(), oneof([value(), {many, range(3, 9), value()}])}).

%% Long runs of one value make alarms.
unfold(Steps) ->
    lists:append([case What of
        {many, N, Value} -> lists:duplicate(N, {Pause, Value});
        Value -> [{Pause, Value}]
    end || {Pause, What} <- Steps]).

run(Steps) -> run(Steps, fun(Now) -> ?WALL + Now end).

%% {Now, Value, Notes, State} of each look.
run(Steps, Wall) ->
    {Looks, _} = lists:mapfoldl(fun({Pause, Value}, {Now0, State}) ->
        Now = Now0 + Pause,
        {Notes, New} = step(look(Value), Now, Wall(Now), State),
        {{Now, Value, Notes, New}, {Now, New}}
    end, {101_000, settled()}, unfold(Steps)),
    Looks.

%% No raise is told twice, no end without a beginning.
prop_notes() ->
    ?FORALL(Steps, steps(), begin
        Kinds = [Kind || {_, _, Notes, _} <- run(Steps), {Kind, _} <- Notes],
        is_in_order(Kinds, none)
    end).

is_in_order([], _) -> true;
is_in_order([raised | Rest], none) -> is_in_order(Rest, told);
is_in_order([Kind | Rest], told) when Kind =:= escalated; Kind =:= eased ->
    is_in_order(Rest, told);
is_in_order([cleared | Rest], told) -> is_in_order(Rest, none);
is_in_order(_, _) -> false.

%% Whatever is told as minor or major was so at each look of the last five seconds, and looks were
%% never far apart.
prop_duration() ->
    ?FORALL(Steps, steps(), begin
        Looks = run(Steps),
        lists:all(fun({N, {Now, _, Notes, _}}) ->
            lists:all(fun
                ({Kind, Severity}) when Kind =:= raised; Kind =:= escalated ->
                    lasted(lists:reverse(lists:sublist(Looks, N)), Severity, Now, Now);
                (_) -> true
            end, Notes)
        end, lists:enumerate(Looks))
    end).

lasted([{T, Value, _, _} | Before], Severity, Last, Now) ->
    Last - T =< 20_000 andalso is_number(Value) andalso Value >= limit(Severity)
        andalso (Now - T >= ?FOR_MS orelse lasted(Before, Severity, T, Now));
lasted([], _, _, _) ->
    false.

limit(minor) -> 100;
limit(major) -> 200.

%% Above the lower mark nothing is cleared.
prop_hysteresis() ->
    ?FORALL(Steps, steps(), lists:all(fun
        ({_, Value, Notes, _}) when is_number(Value), Value >= 90 ->
            not lists:keymember(cleared, 1, Notes)
                andalso not (Value >= 180 andalso lists:keymember(eased, 1, Notes));
        ({_, Value, _, State}) when is_number(Value) ->
            case sderl_alarms_core:find(?ID, State) of
                {ok, #{is_raised := Raised}} -> not Raised;
                error -> true
            end;
        (_) -> true
    end, run(Steps))).

%% A look that comes again changes nothing, and one of before counts as of now.
prop_replay() ->
    ?FORALL({Steps, Back}, {steps(), range(0, 50_000)}, lists:all(
        fun({Now, Value, _, State}) ->
            {Notes, Again} = step(look(Value), Now, ?WALL + Now, State),
            {Old, _} = step(look(Value), Now - Back, ?WALL, State),
            Notes =:= [] andalso Old =:= []
                andalso sderl_alarms_core:save(Again) =:= sderl_alarms_core:save(State)
        end, run(Steps))).

%% Under a silence nothing is told but the end of what was told.
prop_silence() ->
    ?FORALL({Before, During}, {steps(), steps()}, begin
        Looks = run(Before),
        {Now, State0} = case Looks of
            [] -> {101_000, settled()};
            _ -> {T, _, _, Last} = lists:last(Looks), {T, Last}
        end,
        {ok, [], Silenced} = sderl_alarms_core:act(silence(~"s", 1_000_000_000), Now, ?WALL,
                                                   State0),
        {Notes, _} = lists:foldl(fun({Pause, Value}, {Told, {T1, S}}) ->
            {More, New} = step(look(Value), T1 + Pause, ?WALL, S),
            {Told ++ [Kind || {Kind, _} <- More], {T1 + Pause, New}}
        end, {[], {Now, Silenced}}, unfold(During)),
        WasTold = case sderl_alarms_core:find(?ID, State0) of
            {ok, #{told := Told}} -> Told =/= none;
            error -> false
        end,
        Notes =:= [] orelse (Notes =:= [cleared] andalso WasTold)
    end).

%% The wall clock may be anything.
prop_wall_clock() ->
    ?FORALL({Steps, Jumps}, {steps(), non_empty(list(range(-1_000_000_000, 1_000_000_000)))}, begin
        Wall = fun(Now) -> ?WALL + lists:nth(1 + Now rem length(Jumps), Jumps) end,
        [{T, Notes} || {T, _, Notes, _} <- run(Steps, Wall)]
            =:= [{T, Notes} || {T, _, Notes, _} <- run(Steps)]
    end).

%% What is so for long is told, whatever was before.
prop_told_in_the_end() ->
    ?FORALL({Steps, Value}, {steps(), oneof([0, 150, 300])}, begin
        Looks = run(Steps ++ [{1_000, {many, 40, Value}}]),
        {_, _, _, State} = lists:last(Looks),
        case {Value, sderl_alarms_core:find(?ID, State)} of
            {0, error} -> true;
            {0, {ok, #{is_raised := Raised, told := Told}}} -> not Raised andalso Told =:= none;
            {150, {ok, #{is_raised := true, told := minor}}} -> true;
            {300, {ok, #{is_raised := true, told := major}}} -> true;
            _ -> false
        end
    end).

%% SPDX-License-Identifier: Apache-2.0
%% Samples by parts of the time: collected, in a file, and as answers for pages.
-module(sderl_prof_samples_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [
        sderl_prop:eunit("no look is lost, however parts are joined", 200, fun prop_looks/0),
        sderl_prop:eunit("a file holds what was found", 200, fun prop_file/0),
        sderl_prop:eunit("a part of the time is made of its parts alone", 200, fun prop_part/0)
    ].

%% ---------------------------------------------------------------- looks

look() ->
    ?LET({Group, Status, Function, Queue, Ns, More, IsNew},
         {oneof([a, b, {m, f, 1}]), oneof([running, waiting]), oneof([{lists, map, 2}, undefined]),
          range(0, 9), range(1, 1000), range(0, 99), boolean()},
         #{group => Group, status => Status, function => Function, caller => undefined,
           queue => Queue, ns => Ns, more => More, is_new => IsNew}).

found(Steps) ->
    {_, Looks} = lists:foldl(fun
        (next, {At, L}) ->
            Now = At + 100,
            {Now, sderl_prof_looks:next_part(snapshot(Now), L)};
        (Look, {At, L}) ->
            {At, sderl_prof_looks:count(Look, L)}
    end, {0, sderl_prof_looks:new(1, snapshot(0))}, Steps),
    End = 100 * length([next || next <- Steps]) + 50,
    {End, sderl_prof_looks:result(snapshot(End), Looks)}.

snapshot(At) -> #{at => At, reductions => 3 * At, schedulers => [{1, At div 2, At}]}.

%% Now and then more parts than the limit.
steps() ->
    ?LET({Many, Steps}, {oneof([0, 0, 130, 300]), list(frequency([{3, look()}, {1, next}]))},
         lists:duplicate(Many, next) ++ Steps).

prop_looks() ->
    ?FORALL(Steps, steps(), begin
        {End, #{parts := Parts, cells := Cells, groups := Groups}} = found(Steps),
        Looks = [Look || #{} = Look <- Steps],
        Sum = fun(Key) -> lists:sum([map_get(Key, Look) || Look <- Looks]) end,
        length(Parts) =< 120 andalso
            lists:all(fun(N) -> N < length(Parts) end,
                      [element(1, Row) || Row <- Cells ++ Groups]) andalso
            End =:= lists:sum([Ns || #{ns := Ns} <- Parts]) andalso
            3 * End =:= lists:sum([R || #{reductions := R} <- Parts]) andalso
            length(Looks) =:= lists:sum([N || {_, _, _, _, _, N, _, _} <- Cells]) andalso
            Sum(ns) == lists:sum([Ns || {_, _, _, _, _, _, Ns, _} <- Cells]) andalso
            Sum(more) =:= lists:sum([R || {_, _, _, R, _, _} <- Groups]) andalso
            lists:sum([Ns * Q || #{ns := Ns, queue := Q} <- Looks]) ==
                lists:sum([Q || {_, _, _, _, Q, _} <- Groups]) andalso
            length([x || #{is_new := true} <- Looks]) =:=
                lists:sum([N || {_, _, N, _, _, _} <- Groups])
    end).

%% The number of cells and groups is bounded; all looks are counted.
bounded_test_() ->
    {timeout, 120, fun() ->
        Steps = [step(N) || N <- lists:seq(1, 60_000)],
        {_, #{cells := Cells, groups := Groups}} = found(Steps),
        ?assert(length(Cells) =< 20_001),
        ?assert(length(Groups) =< 20_001),
        ?assertEqual(60_000 - 60_000 div 1000,
                     lists:sum([N || {_, _, _, _, _, N, _, _} <- Cells]))
    end}.

step(N) when N rem 1000 =:= 0 -> next;
step(N) ->
    #{group => {kind, f, N rem 7000}, status => running, function => {m, f, N rem 30_000},
      caller => undefined, queue => 0, ns => 1, more => 0, is_new => true}.

%% ---------------------------------------------------------------- files

prop_file() ->
    ?FORALL(Steps, steps(), begin
        {_, Found} = found(Steps),
        Json = json:decode(iolist_to_binary(json:encode(sderl_prof_samples_file:encode(Found)))),
        {ok, Read} = sderl_prof_samples_file:decode(Json),
        Sorted = fun(Map, Key) -> lists:sort(map_get(Key, Map)) end,
        map_get(parts, Found) =:= map_get(parts, Read) andalso
            Sorted(Found, cells) == Sorted(Read, cells) andalso
            Sorted(Found, groups) == Sorted(Read, groups)
    end).

wrong_files_test() ->
    {_, Found} = found([next]),
    Good = json:decode(iolist_to_binary(json:encode(sderl_prof_samples_file:encode(Found)))),
    {ok, _} = sderl_prof_samples_file:decode(Good),
    [?assertEqual({Bad, error}, {Bad, sderl_prof_samples_file:decode(Bad)})
     || Bad <- [none, #{}, Good#{~"parts" := []}, Good#{~"parts" := [#{}]}, Good#{~"words" := [1]},
                Good#{~"cells" := [[0, 0, 0, 0, 0, 1, 1, 1]]}, Good#{~"cells" := 7},
                Good#{~"cells" := [[9, 0, 0, 0, 0, 1, 1, 1]], ~"words" := [~"running"]},
                Good#{~"groups" := [[0, 0, 1, 1, -1, 1]], ~"words" := [~"a"]}]],
    {error, {no_samples, ~"n@h"} = Why} = sderl_prof_samples:decode([#{~"node" => ~"n@h"}]),
    ?assertNotEqual(nomatch, string:find(sderl_prof_samples:format_error(Why), "n@h")).

%% ---------------------------------------------------------------- pages

report(Name, Found) ->
    Ns = lists:sum([N || #{ns := N} <- map_get(parts, Found)]),
    Report = sderl_prof_shares:report(#{
        node => Name, otp => ~"29", began_wall => 7_000_000, ns => Ns, all_ns => Ns, rate => 1000,
        looks => 10, rounds => 2, own_ns => 10, processes => 5, schedulers_online => 1,
        found => Found, schedulers => #{normal => 1, cpu => 0, io => 0},
        series => #{names => [], points => []},
        threads => [{scheduler, #{sleep => 3}}]
    }, 10),
    json:decode(iolist_to_binary(json:encode(Report))).

asked(Request, Samples) ->
    {ok, Answer} = sderl_prof_samples:answer(
        maps:merge(#{from => 0, to => 1_000_000_000, node => all, group => all, limit => 100},
                   Request), Samples),
    _ = json:encode(Answer),
    Answer.

prop_part() ->
    ?FORALL({Steps, Part}, {list(frequency([{3, look()}, {1, next}])), range(0, 20)}, begin
        {_, #{parts := Parts, cells := Cells} = Found} = found(Steps),
        {ok, Samples} = sderl_prof_samples:decode([report(~"a@h", Found)]),
        At = min(Part, length(Parts) - 1),
        #{ns := Ns} = lists:nth(At + 1, Parts),
        #{covers := Covers, states := States, kinds := Kinds, functions := Functions,
          waits := Waits, curves := Curves} =
            asked(#{from => 100 * At, to => 100 * At + Ns}, Samples),
        Mine = lists:sum([Of || {N, _, _, _, _, _, Of, _} <- Cells, N =:= At]),
        Sum = fun(Rows) -> lists:sum([N || #{processes := N} <- Rows]) end,
        #{states := Whole} = asked(#{}, Samples),
        All = lists:sum([Of || {_, _, _, _, _, _, Of, _} <- Cells]),
        Covers =:= #{from => 100 * At, to => 100 * At + Ns} andalso
            near(Mine / Ns, Sum(States)) andalso near(Mine / Ns, Sum(Kinds)) andalso
            near(Mine / Ns, Sum(Functions) + Sum(Waits)) andalso
            length(Curves) =:= length(Parts) andalso
            near(All / lists:sum([N || #{ns := N} <- Parts]), Sum(Whole))
    end).

near(A, B) -> abs(A - B) < 1.0e-6 * max(1.0, abs(A)).

look(Group, Status, Ns, Queue) ->
    #{group => Group, status => Status, function => {m, f, 1}, caller => {m, g, 0}, queue => Queue,
      ns => Ns, more => Ns, is_new => false}.

%% Two nodes with known samples: b has half the time, and begins later.
two_nodes_test() ->
    {200, A} = without_rest([look(busy, running, 100, 0), look(idle, waiting, 200, 2), next,
                             look(busy, running, 50, 0), look(idle, waiting, 200, 4)]),
    {100, B} = without_rest([look(busy, runnable, 100, 1)]),
    {ok, Samples} = sderl_prof_samples:decode([report(~"a@h", A), report(~"b@h", B)]),
    #{duration := 200, nodes := [#{node := ~"a@h", kinds := 2, began := 7}, #{duration := 100}]} =
        sderl_prof_samples:about(Samples),
    #{kinds := [#{group := ~"busy", busy := Busy, share := #{share := Share}}, Idle],
      kinds_all := 2, nodes := [#{busy := BusyA, awake := Awake}, #{busy := BusyB}],
      functions := [#{function := ~"m:f/1", caller := ~"m:g/0", groups := [~"busy"]}],
      threads := [_, _], curves := [First, Second]} = asked(#{}, Samples),
    ?assertEqual({1.75, 1.0}, {Busy, Share}),
    ?assertEqual({0.75, 1.0, 0.5}, {BusyA, BusyB, Awake}),
    ?assertMatch(#{queue := 6.0, most_queue := 4, processes := 2.0}, Idle),
    ?assertMatch(#{running := 1.0, runnable := 1.0, queue := 5.0}, First),
    ?assertMatch(#{running := 0.5, queue := 8.0}, Second),
    %% One node, a part of the time, and one kind of process.
    #{states := [#{state := running, processes := 0.5}]} =
        asked(#{node => ~"a@h", from => 110, to => 190, group => ~"busy"}, Samples),
    %% A range within a part gives the whole part.
    #{covers := #{from := 100, to := 200}} =
        asked(#{node => ~"a@h", from => 120, to => 121}, Samples),
    #{covers := #{from := 0, to := 100}} =
        asked(#{node => ~"b@h", from => 190, to => 191}, Samples),
    #{states := [], kinds := [_ | _]} = asked(#{group => ~"nothing"}, Samples),
    #{kinds := [_], kinds_all := 2} = asked(#{limit => 1}, Samples),
    {error, {no_node, ~"c@h"}} =
        sderl_prof_samples:answer(#{from => 0, to => 1, node => ~"c@h", group => all, limit => 1},
                                  Samples).

%% Parts of 100 each.
without_rest(Steps) ->
    {End, #{parts := Parts} = Found} = found(Steps),
    {Front, [#{schedulers := [{1, _, _}]} = Last]} = lists:split(length(Parts) - 1, Parts),
    {End + 50, Found#{parts := Front ++ [Last#{ns := 100, schedulers := [{1, 50, 100}]}]}}.

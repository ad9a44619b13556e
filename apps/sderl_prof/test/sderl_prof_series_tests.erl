%% SPDX-License-Identifier: Apache-2.0
%% A node's readings over time: none is lost, in a file and in answers for pages.
-module(sderl_prof_series_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [
        sderl_prop:eunit("no reading is lost, however points are joined", 200, fun prop_points/0),
        sderl_prop:eunit("columns have the averages of a slow reading", 200, fun prop_columns/0)
    ].

%% ---------------------------------------------------------------- points

reading() ->
    ?LET({Queues, Processes, Box}, {[nat(), nat()], range(1, 99), oneof([none, nat()])},
         #{queues => Queues, processes => Processes, mailboxes => [Box]}).

%% Now and then more points than the limit. Each has a reading at least, as with a sampler.
steps() ->
    ?LET({Many, Steps},
         {oneof([0, 0, 130, 500]), list({non_empty(list(reading())), oneof([none, range(1, 9)])})},
         Steps ++ lists:duplicate(
             Many, {[#{queues => [1, 2], processes => 7, mailboxes => [3]}], 5})).

series(Steps) ->
    {End, Series} = lists:foldl(fun({Readings, Memory}, {At, S}) ->
        Added = lists:foldl(fun sderl_prof_series:add/2, S, Readings),
        Bytes = case Memory of none -> none; _ -> #{total => Memory, ets => 1} end,
        {At + 100, sderl_prof_series:next(At + 100, Bytes, Added)}
    end, {1000, sderl_prof_series:new(1000, 1, [server])}, Steps),
    sderl_prof_series:result(End, Series).

prop_points() ->
    ?FORALL(Steps, steps(), begin
        #{names := [~"server"], points := Points} = Told = series(Steps),
        _ = json:encode(Told),
        Readings = lists:append([Of || {Of, _} <- Steps]),
        Sum = fun(Key) -> lists:sum([map_get(Key, P) * map_get(readings, P) || P <- Points]) end,
        Queues = [lists:sum(Q) || #{queues := Q} <- Readings],
        Boxes = [Box || #{mailboxes := [Box]} <- Readings, Box =/= none],
        length(Points) =< 121 andalso
            100 * length(Steps) =:= lists:sum([Ns || #{ns := Ns} <- Points]) andalso
            length(Readings) =:= lists:sum([N || #{readings := N} <- Points]) andalso
            is_near(lists:sum(Queues), Sum(run_queue)) andalso
            is_near(lists:sum([P || #{processes := P} <- Readings]), Sum(processes)) andalso
            lists:max([0 | Queues]) =:=
                lists:max([0 | [M || #{most_run_queue := M} <- Points]]) andalso
            lists:max([0 | Boxes]) =:=
                lists:max([0 | [M || #{mailboxes := [#{most := M}]} <- Points]]) andalso
            lists:any(fun({_, Memory}) -> Memory =/= none end, Steps) =:=
                lists:any(fun(#{memory := Memory}) -> Memory =/= null end, Points)
    end).

is_near(A, B) -> abs(A - B) < 1.0e-6 * max(1.0, abs(A)).

this_node_test() ->
    true = register(?MODULE, self()),
    self() ! message,
    #{queues := [_ | _], processes := Processes, mailboxes := [Own, none]} =
        sderl_prof_series:reading([?MODULE, no_such_name]),
    ?assert(Processes > 10),
    ?assert(Own >= 1),
    true = unregister(?MODULE),
    receive message -> ok end,
    #{total := Total, processes := OfProcesses} = sderl_prof_series:memory(),
    ?assert(Total > OfProcesses).

%% A sampler's: a mailbox that grows, one of nobody, and how many processes there are.
sampled_test_() ->
    {timeout, 120, fun() ->
        {Full, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
        true = register(full_mailbox, Full),
        _ = [Full ! {message, N} || N <- lists:seq(1, 70)],
        {ok, #{series := #{names := [~"full_mailbox", ~"no_such_name"],
                           points := [_ | _] = Points}}} =
            sderl_prof_sampling:sample(node(), #{seconds => 1,
                                                 mailboxes => [full_mailbox, no_such_name]}),
        [begin
             ?assertMatch([#{mean := 70.0, most := 70}, null], Boxes),
             ?assertMatch(#{total := T} when T > 1_000_000, Memory),
             ?assert(Processes > 10)
         end || #{mailboxes := Boxes, memory := Memory, processes := Processes} <- Points],
        Full ! stop,
        receive {'DOWN', Ref, process, Full, _} -> ok end
    end}.

%% ---------------------------------------------------------------- pages

decoded(Told) ->
    {ok, Overall} = sderl_prof_overall:decode(json:decode(iolist_to_binary(json:encode(Told)))),
    Overall.

prop_columns() ->
    ?FORALL({Steps, Others, Count}, {non_empty(steps()), steps(), range(1, 40)}, begin
        {One, Other} = {series(Steps), series(Others)},
        Length = 100 * max(length(Steps), length(Others)),
        Times = [at_each_time(Points) || #{points := Points} <- [One, Other]],
        #{columns := Columns, mailboxes := Boxes} = Answer = sderl_prof_overall:columns(
            [{~"a@h", decoded(One)}, {~"b@h", decoded(Other)}], Length, Count),
        _ = json:encode(Answer),
        Count =:= length(Columns) andalso
            lists:all(fun(#{mean := Mean}) -> length(Mean) =:= Count end, Boxes) andalso
            lists:all(fun({N, #{run_queue := Value}}) ->
                {From, To} = {Length * N div Count, Length * (N + 1) div Count},
                case [slow(From, max(From + 1, To), At) || At <- Times, length(At) > From] of
                    [] -> Value =:= null;
                    Values -> is_near(lists:sum(Values), Value)
                end
            end, lists:enumerate(0, Columns))
    end).

%% Nanosecond by nanosecond.
at_each_time(Points) ->
    lists:append([lists:duplicate(Ns, Queue) || #{ns := Ns, run_queue := Queue} <- Points]).

slow(From, To, At) ->
    Values = lists:sublist(lists:nthtail(From, At), To - From),
    lists:sum(Values) / length(Values).

wrong_files_test() ->
    Good = json:decode(iolist_to_binary(json:encode(series([
        {[#{queues => [1], processes => 2, mailboxes => [3]}], 4}
    ])))),
    {ok, _} = sderl_prof_overall:decode(Good),
    #{~"points" := [Point]} = Good,
    [?assertEqual({Bad, error}, {Bad, sderl_prof_overall:decode(Bad)})
     || Bad <- [7, #{}, Good#{~"names" := 7}, Good#{~"names" := []}, Good#{~"points" := [#{}]},
                Good#{~"points" := #{}}, Good#{~"points" := [Point#{~"ns" := 0}]},
                Good#{~"points" := [Point#{~"run_queue" := -1}]},
                Good#{~"points" := [Point#{~"memory" := #{~"total" => ~"x"}}]},
                Good#{~"points" := [Point#{~"mailboxes" := [#{}]}]}]],
    {ok, None} = sderl_prof_overall:decode(none),
    ?assertEqual(#{columns => [], mailboxes => [], run_queues => []},
                 sderl_prof_overall:columns([{~"a@h", None}], 100, 3)).

%% SPDX-License-Identifier: Apache-2.0
%% Recordings with known differences.
-module(sderl_prof_compare_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

-import(sderl_prof_files, [with_dir/1, recording/3, pid/2]).

-define(T0, -576_460_752_000_000_000).
-define(MS, 1_000_000).

properties_test_() ->
    [
        sderl_prop:eunit("kin have all that their processes did", 150, fun prop_kin/0),
        sderl_prop:eunit("what is compared with itself differs in nothing", 100, fun prop_same/0)
    ].

%% ---------------------------------------------------------------- any schedule

%% Every third process has a name; those that began have their parents.
about(P, Events) ->
    Parent = hd([Q || {_, ?SPAWNED, Child, Q} <- Events, Child =:= P] ++ [0]),
    #{name => case P rem 3 of 0 -> ~"third"; _ -> ~"" end, entry => <<"e", ($0 + P rem 2)>>,
      parent => Parent}.

summary(Events, End) ->
    New = sderl_prof_summary:new(#{mode => recorded, about => fun(P) -> about(P, Events) end}),
    sderl_prof_summary:finish(End, lists:foldl(fun({T, K, P, A}, Sum) ->
        sderl_prof_summary:step(T, K, 0, P, A, 0, Sum)
    end, New, Events)).

prop_kin() ->
    ?FORALL(Moves, sderl_prof_machine:moves(), begin
        {Events, End} = sderl_prof_machine:events(Moves),
        #{kin := Kin, rest := none, totals := Totals, processes := Processes} =
            summary(Events, End),
        {Sums, _} = sderl_prof_activity:finish(End, lists:foldl(fun({T, K, P, A}, Acc) ->
            sderl_prof_activity:step(T, K, 0, P, A, 0, Acc)
        end, sderl_prof_activity:new(recorded, fun(_, _, _, _, _, _, Acc) -> Acc end, none),
            Events)),
        Plain = maps:map(
            fun(_, Group) -> {length(Group), sderl_prof_activity:sums(Group)} end,
            maps:groups_from_list(fun({P, _}) -> kin(P, Events) end, fun({_, S}) -> S end, Sums)
        ),
        equals({Plain, length(Sums), sderl_prof_activity:sums([S || {_, S} <- Sums])},
               {Kin, Processes, Totals})
    end).

kin(P, Events) ->
    case about(P, Events) of
        #{name := ~"third"} -> {named, ~"third"};
        #{entry := Entry, parent := Parent} ->
            {entry, Entry, lists:sublist(ancestors(Parent, Events), 6)}
    end.

ancestors(0, _) -> [];
ancestors(P, Events) ->
    case about(P, Events) of
        #{name := ~"third"} -> [~"third"];
        #{entry := Entry, parent := Parent} -> [Entry | ancestors(Parent, Events)]
    end.

prop_same() ->
    ?FORALL(Moves, sderl_prof_machine:moves(), begin
        {Events, End} = sderl_prof_machine:events(Moves),
        #{kin := Kin} = summary(Events, End),
        Side = #{length => End, kin => Kin, waits => #{~"w" => {1, 5_000_000, 0.0}}},
        #{faster := [], slower := [], appeared := [], disappeared := [], same := N,
          lengths_differ := false, waits := #{same := 1}} =
            sderl_prof_difference:compare(Side, Side, 10),
        N =:= map_size(Kin)
    end).

%% A wait counts as changed if its share of the recording changed.
waits_test() ->
    Row = fun(N, Ms) -> {N, Ms * ?MS, 0.0} end,
    Side = fun(Ms, Waits) -> #{length => Ms * ?MS, kin => #{}, waits => Waits} end,
    #{waits := #{shorter := [#{site := ~"less", factor := 0.25,
                               before := #{count := 4, mean_ns := 20_000_000.0, share := 0.08},
                               'after' := #{count := 2, mean_ns := 10_000_000.0}}],
                 longer := [#{site := ~"more"}], appeared := [#{site := ~"new", before := null}],
                 disappeared := [#{site := ~"old", 'after' := null}], same := 2}} =
        sderl_prof_difference:compare(
            Side(1000, #{~"less" => Row(4, 80), ~"more" => Row(1, 10), ~"idle" => Row(9, 3000),
                         ~"old" => Row(1, 5), ~"short" => Row(1, 0)}),
            Side(500, #{~"less" => Row(2, 20), ~"more" => Row(1, 20), ~"idle" => Row(9, 1500),
                        ~"new" => Row(1, 5)}), 10).

%% ---------------------------------------------------------------- known recordings

%% A parent with its workers; each begins in a function and runs so many milliseconds, and the
%% parent waits for the last of them. Pids are others in each recording.
program(First, Workers) ->
    Parent = pid(First, 0),
    Begin = [{trace_ts, Parent, register, the_master, ?T0},
             {profile, Parent, active, {m, init, 0}, ?T0},
             {trace_ts, Parent, in, {m, init, 0}, ?T0}],
    Spawned = lists:append([
        begin
            P = pid(First + N, 0),
            [{trace_ts, Parent, spawn, P, {m, F, []}, ?T0 + N},
             {trace_ts, P, spawned, Parent, {m, F, []}, ?T0 + N},
             {profile, P, active, {m, F, 0}, ?T0 + N},
             {trace_ts, P, in, {m, F, 0}, ?T0 + N},
             {trace_ts, P, exit, normal, ?T0 + N + Ms * ?MS}]
        end || {N, {F, Ms}} <- lists:enumerate(Workers)
    ]),
    End = ?T0 + ?MS * (1 + lists:max([Ms || {_, Ms} <- Workers])),
    Wait = [{profile, Parent, inactive, {m, wait, 1}, ?T0 + 100},
            {trace_ts, Parent, out, {m, wait, 1}, ?T0 + 100},
            {profile, Parent, active, {m, wait, 1}, End},
            {trace_ts, Parent, in, {m, wait, 1}, End}],
    Time = fun(Event) -> element(tuple_size(Event), Event) end,
    lists:sort(fun(A, B) -> Time(A) =< Time(B) end, Begin ++ Spawned ++ Wait).

book(Dir, Name, Events) ->
    Recording = filename:join(Dir, Name),
    ok = filelib:ensure_path(Recording),
    ok = recording(Recording, #{began => ?T0}, Events),
    {ok, Book} = sderl_prof:open(Recording, #{}),
    Book.

known_test() ->
    with_dir(fun(Dir) ->
        A = book(Dir, "a", program(100, [{steady, 20}, {slow, 40}, {slow, 40}, {gone, 10}])),
        B = book(Dir, "b", program(500, [{slow, 10}, {slow, 30}, {steady, 21}, {new, 25},
                                         {tiny, 0}])),
        {ok, #{faster := [Faster], slower := [], appeared := [New], disappeared := [Gone],
               same := 3, lengths_differ := true, notes := Notes,
               waits := #{shorter := [], longer := [], same := 1},
               before := #{processes := 5, seconds := Seconds}}} =
            sderl_prof_compare:make(A, B, #{}),
        #{process := ~"m:slow/0", place := [~"the_master"], factor := 0.5,
          before := #{count := 2, run := 80_000_000},
          'after' := #{count := 2, run := 40_000_000}} = Faster,
        #{process := ~"m:new/0", before := null, 'after' := #{run := 25_000_000}} = New,
        #{process := ~"m:gone/0", 'after' := null, factor := null} = Gone,
        ?assertMatch([<<"the recordings last 0.041 s and 0.031 s", _/binary>>], Notes),
        ?assert(abs(Seconds - 0.041) < 1.0e-6),
        %% Compared in the other order.
        {ok, #{slower := [#{process := ~"m:slow/0", factor := 2.0}], faster := [],
               appeared := [#{process := ~"m:gone/0"}],
               disappeared := [#{process := ~"m:new/0"}]} = Back} =
            sderl_prof_compare:make(B, A, #{top => 3}),
        _ = json:decode(iolist_to_binary(json:encode(Back))),
        {ok, #{faster := [], slower := [], appeared := [], disappeared := [], notes := []}} =
            sderl_prof_compare:make(A, A, #{}),
        {error, {no_book, _}} = sderl_prof_compare:make(A, filename:join(Dir, "none"), #{})
    end).

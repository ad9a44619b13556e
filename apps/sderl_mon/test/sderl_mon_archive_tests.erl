%% SPDX-License-Identifier: Apache-2.0
%% Frames that are kept for long: what was written is found again, whatever happened to the process,
%% the folder and the files meanwhile.
-module(sderl_mon_archive_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([told/2, series/4]).

-define(MINUTE, 60_000).
-define(HOUR, 3_600_000).
-define(DAY, 86_400_000).

in_folder(Test) ->
    {spawn, {timeout, 120, fun() ->
        Name = io_lib:format("sderl_mon_archive_~s_~b",
                             [os:getpid(), erlang:unique_integer([positive])]),
        Dir = unicode:characters_to_binary(
            filename:join(filename:basedir(user_cache, "sderl_tests"), Name)),
        ok = filelib:ensure_path(Dir),
        #{level := Level} = logger:get_primary_config(),
        ok = logger:set_primary_config(level, critical),
        try
            Test(Dir)
        after
            ok = logger:set_primary_config(level, Level),
            _ = file:del_dir_r(Dir)
        end
    end}}.

%% Whole days before the present, so that nothing is too old.
days_ago(N) -> (sderl_mon_clock:wall_ms() div ?DAY - N) * ?DAY.

%% One frame each ten seconds, with a rate and a queue that change.
frames(From, To) ->
    [(sderl_mon_gen:frame(T, 10_000, #{{~"a", ~"b"} => {rate(T), 8.0}}))#{
         nodes := #{~"a" => #{run_queue => queue(T), util => 0.5}},
         groups := #{~"g" => #{regs_s => rate(T)}}
     } || T <- lists:seq(From + 10_000, To, 10_000)].

rate(T) -> float(T div 10_000 rem 7).
queue(T) -> T div 10_000 rem 101.

with_archive(Wanted, Test) ->
    {ok, Pid} = sderl_mon_archive:start_link(Wanted),
    try
        %% It opens its files before it answers, which takes as long as the disk takes.
        _ = gen_server:call(Pid, info, infinity),
        Test(Pid)
    after
        ok = gen_server:stop(Pid)
    end.

told(Pid, Frames) ->
    Pid ! {sderl_mon, topology, sderl_mon_gen:topology(#{~"g" => [~"a", ~"b"]})},
    lists:foreach(fun(Frame) -> Pid ! {sderl_mon, frame, Frame} end, Frames),
    %% However busy the machine is.
    gen_server:call(Pid, info, infinity).

%% What the hub's queries find in the files: the hub itself has nothing of it.
series(What, From, To, Points) ->
    sderl_mon_gen:beside_hub(#{}, fun() -> sderl_mon_archive:series(What, From, To, Points) end).

%% ---------------------------------------------------------------- written and found

found_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(3),
        To = From + 26 * ?HOUR,
        with_archive(#{dir => Dir}, fun(Pid) ->
            #{frames := Frames, missed := 0, is_failing := false} = told(Pid, frames(From, To)),
            %% The slots that are open are not there yet.
            ?assertEqual(#{?MINUTE => 1559, 10 * ?MINUTE => 155, ?HOUR => 25}, Frames),
            ?assertEqual({From, To - ?MINUTE}, sderl_mon_archive:range()),
            %% An hour a point, of frames of an hour: rates are means and queues the highest.
            {ok, #{t := Times, columns := #{regs_s := Rates}}} =
                series({group, ~"g"}, From, From + ?DAY, 24),
            ?assertEqual(24, length(Times)),
            Real = [rate(T) || T <- lists:seq(From + 10_000, From + ?DAY, 10_000)],
            ?assert(abs(lists:sum(Real) / length(Real) - lists:sum(Rates) / 24) < 1.0e-3),
            {ok, #{columns := #{run_queue := Queues}}} =
                series({node, ~"a", [run_queue]}, From, From + ?DAY, 24),
            ?assertEqual([100], lists:usort(Queues)),
            %% Traffic between groups needs the topology of the time.
            {ok, #{columns := #{msgs_s := Inside}}} =
                series({edge, ~"g", ~"g"}, From, From + ?DAY, 24),
            ?assert(abs(lists:sum(Inside) - lists:sum(Rates)) < 1.0e-2),
            ?assertEqual({error, none}, series(total, From - ?DAY, From - ?HOUR, 10))
        end)
    end).

%% One series out of the files and the hub, each value once.
with_the_hub_test_() ->
    in_folder(fun(Dir) ->
        Now = sderl_mon_clock:wall_ms() div ?MINUTE * ?MINUTE,
        Update = #{agent => {~"g", 1}, t => Now, span_ms => 100,
                   nodes => #{~"a" => #{run_queue => 1000}}},
        with_archive(#{dir => Dir}, fun(Pid) ->
            #{frames := #{?MINUTE := 59}} = told(Pid, frames(Now - ?HOUR, Now)),
            sderl_mon_gen:beside_hub(#{interval_ms => 100}, fun() ->
                ok = sderl_fleet:await(fun() ->
                    true = sderl_mon_hub:update(node(), Update),
                    Until = sderl_mon_clock:wall_ms(),
                    {ok, #{t := Times, columns := Columns}} =
                        sderl_mon_archive:series({node, ~"a", [run_queue]}, Now - ?HOUR, Until, 61),
                    Values = maps:get(run_queue, Columns, []),
                    Kept = [V || V <- Values, is_integer(V), V =< 100],
                    length(Times) =< 61 andalso lists:last(Values) =:= 1000
                        andalso length(Kept) >= 58
                end, 30_000)
            end)
        end)
    end).

%% ---------------------------------------------------------------- restarts

%% The same frames of ten minutes and of an hour, however often it stopped between minutes.
restarted_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(1),
        Stops = [17, 61, 62, 119, 130, 240],
        Bounds = [From + M * ?MINUTE || M <- [0 | Stops] ++ [300]],
        lists:foreach(fun({A, B}) ->
            %% (The slot that is open is told again: it is one with the minute's last frame.)
            Again = case A of From -> A; _ -> A - ?MINUTE end,
            with_archive(#{dir => Dir}, fun(Pid) -> told(Pid, frames(Again, B)) end)
        end, lists:zip(lists:droplast(Bounds), tl(Bounds))),
        with_archive(#{dir => Dir}, fun(_) ->
            #{frames := Frames} = sderl_mon_archive:info(),
            ?assertEqual(#{?MINUTE => 299, 10 * ?MINUTE => 29, ?HOUR => 4}, Frames),
            {ok, #{columns := #{regs_s := Rates}}} =
                series({group, ~"g"}, From, From + 4 * ?HOUR, 4),
            Real = [lists:sum([rate(T) || T <- lists:seq(H + 10_000, H + ?HOUR, 10_000)]) / 360
                    || H <- lists:seq(From, From + 3 * ?HOUR, ?HOUR)],
            [?assert(abs(R - S) < 1.0e-3) || {R, S} <- lists:zip(Real, Rates)]
        end)
    end).

%% A clock that was set back: what is older than the newest frame is not kept twice.
clock_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(1),
        with_archive(#{dir => Dir}, fun(Pid) -> told(Pid, frames(From, From + ?HOUR)) end),
        with_archive(#{dir => Dir}, fun(Pid) ->
            #{frames := #{?MINUTE := N}} = told(Pid, frames(From - ?HOUR, From + ?HOUR)),
            ?assertEqual(59, N)
        end)
    end).

%% A clock that was two days ahead and is set right: what comes now is kept at once.
clock_ahead_test_() ->
    in_folder(fun(Dir) ->
        Ahead = days_ago(-2),
        From = days_ago(1),
        with_archive(#{dir => Dir}, fun(Pid) -> told(Pid, frames(Ahead, Ahead + ?HOUR)) end),
        with_archive(#{dir => Dir}, fun(Pid) ->
            #{frames := #{?MINUTE := N}} = told(Pid, frames(From, From + ?HOUR)),
            ?assertEqual(2 * 59, N),
            {ok, #{t := Times}} = series({group, ~"g"}, From, From + ?HOUR, 59),
            ?assertEqual(59, length(Times))
        end)
    end).

%% ---------------------------------------------------------------- files that are not whole

%% Cut anywhere, as by a full disk or a machine that lost its power: what is whole is found, and it
%% goes on behind that.
cut_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(1),
        with_archive(#{dir => Dir}, fun(Pid) -> told(Pid, frames(From, From + ?HOUR)) end),
        [File] = filelib:wildcard("60s-*.archive", binary_to_list(Dir)),
        Path = filename:join(Dir, File),
        {ok, Whole} = file:read_file(Path),
        Seed = rand:seed(exsss),
        lists:foreach(fun(Cut) ->
            ok = file:write_file(Path, binary:part(Whole, 0, Cut)),
            with_archive(#{dir => Dir}, fun(Pid) ->
                #{frames := #{?MINUTE := Left}} = sderl_mon_archive:info(),
                ?assert(Left =< 59),
                #{frames := #{?MINUTE := Now}, missed := 0} =
                    told(Pid, frames(From + ?HOUR, From + 2 * ?HOUR)),
                ?assertEqual({Left + 59, Cut, Seed}, {Now, Cut, Seed}),
                {ok, #{t := Times}} = series({group, ~"g"}, From + ?HOUR, From + 2 * ?HOUR, 59),
                ?assertEqual(59, length(Times))
            end)
        end, [0, 1, 15, 16, 17] ++ [rand:uniform(byte_size(Whole)) || _ <- lists:seq(1, 20)])
    end).

%% A byte that changed: that frame is missing in answers, and the others are not.
damaged_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(1),
        with_archive(#{dir => Dir}, fun(Pid) -> told(Pid, frames(From, From + ?HOUR)) end),
        [File] = filelib:wildcard("60s-*.archive", binary_to_list(Dir)),
        Path = filename:join(Dir, File),
        {ok, <<Begin:5000/binary, Byte, End/binary>>} = file:read_file(Path),
        ok = file:write_file(Path, <<Begin/binary, (Byte bxor 255), End/binary>>),
        with_archive(#{dir => Dir}, fun(_) ->
            {ok, #{columns := #{regs_s := Rates}}} =
                series({group, ~"g"}, From, From + 59 * ?MINUTE, 59),
            ?assert(length([R || R <- Rates, is_number(R)]) >= 57)
        end)
    end).

%% Nothing of what others have put there is touched or believed.
foreign_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(1),
        Names = ["notes.txt", "60s-7-0.archive", "61s-0-0.archive", "60s-0-0.archive.old",
                 "60s--60-0.archive", "60s-99999999999999999999-0.archive"],
        [ok = file:write_file(filename:join(Dir, Name), ~"none of ours") || Name <- Names],
        ok = file:write_file(filename:join(Dir, "3600s-0-0.archive"), ~"no archive"),
        with_archive(#{dir => Dir}, fun(Pid) ->
            #{frames := #{?MINUTE := 59}} = told(Pid, frames(From, From + ?HOUR))
        end),
        [?assertEqual({ok, ~"none of ours"}, file:read_file(filename:join(Dir, Name)))
         || Name <- Names]
    end).

%% ---------------------------------------------------------------- a folder that cannot be used

%% A folder that goes while it is used: frames wait until it is there again.
lost_folder_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(1),
        Sub = filename:join(Dir, "archive"),
        with_archive(#{dir => Sub}, fun(Pid) ->
            #{missed := 0} = told(Pid, frames(From, From + ?HOUR)),
            ok = file:del_dir_r(Sub),
            ok = file:write_file(Sub, ~"in its place"),
            %% A new day is a new file.
            #{missed := 0, is_failing := true, waiting := Waiting} =
                told(Pid, frames(From + ?DAY - ?HOUR, From + ?DAY + ?HOUR)),
            ?assert(Waiting > 50),
            ok = file:delete(Sub),
            ok = filelib:ensure_path(Sub),
            #{is_failing := false, missed := 0, waiting := 0} =
                told(Pid, frames(From + ?DAY + ?HOUR, From + ?DAY + 2 * ?HOUR)),
            {Since, Until} = sderl_mon_archive:range(),
            ?assert(Since =< From + ?DAY),
            ?assertEqual(From + ?DAY + 2 * ?HOUR - ?MINUTE, Until)
        end)
    end).

%% A file that cannot be written holds up its own step alone, and what waited for it has the
%% topology of its time.
one_step_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(1),
        Step = 10 * ?MINUTE,
        with_archive(#{dir => Dir}, fun(Pid) ->
            InItsPlace = filename:join(Dir, sderl_mon_archive_index:name({?MINUTE, From, 0})),
            ok = file:make_dir(InItsPlace),
            #{missed := 0, is_failing := true, waiting := Waiting, frames := #{Step := Coarse}} =
                told(Pid, frames(From, From + 2 * ?HOUR)),
            ?assert(Waiting > 100),
            ?assert(Coarse >= 10),
            ok = file:del_dir(InItsPlace),
            Pid ! {sderl_mon, topology, sderl_mon_gen:topology(#{~"g" => [~"a", ~"b", ~"c"]})},
            lists:foreach(fun(Frame) -> Pid ! {sderl_mon, frame, Frame} end,
                          frames(From + 2 * ?HOUR, From + 3 * ?HOUR)),
            #{is_failing := false, missed := 0, waiting := 0, frames := #{?MINUTE := Fine}} =
                gen_server:call(Pid, info, infinity),
            ?assert(Fine > 170),
            Members = fun(At) ->
                #{groups := #{~"g" := #{nodes := Nodes}}} = topology_at(Dir, Pid, At),
                Nodes
            end,
            ?assertEqual([~"a", ~"b"], Members(From + ?HOUR)),
            ?assertEqual([~"a", ~"b", ~"c"], Members(From + 3 * ?HOUR))
        end)
    end).

topology_at(Dir, Pid, At) ->
    {ok, Place} = gen_server:call(Pid, {topology_at, At}),
    {ok, Packed} = sderl_mon_archive_file:read(Dir, Place),
    {ok, Topology} = sderl_mon_pack:unpack(Packed),
    Topology.

%% A disk that is full in the middle of a write, and has room again: each frame is there once, and
%% nothing of the one that had no room is left.
full_disk_test_() ->
    sderl_fleet_disk:eunit("archive", in_folder(fun(Dir) ->
        ok = sderl_fleet_disk:with(unicode:characters_to_list(Dir), "1m", fun full_disk/2)
    end)).

full_disk(Dir, Call) ->
    From = days_ago(1),
    ok = Call(logger, set_primary_config, [level, critical]),
    Sub = filename:join(Dir, "archive"),
    Tell = fun(Pid, A, B) -> Call(?MODULE, told, [Pid, frames(A, B)]) end,
    Begin = fun() ->
        {ok, Pid} = Call(gen_server, start, [{local, sderl_mon_archive}, sderl_mon_archive,
                                             #{dir => Sub}, []]),
        Pid
    end,
    Pid = Begin(),
    #{missed := 0, waiting := 0} = Tell(Pid, From, From + ?HOUR),
    %% What is left is less than an hour takes.
    ok = sderl_fleet_disk:fill(Dir, 8192, Call),
    #{is_failing := true, missed := 0, waiting := Waiting, frames := #{?MINUTE := Kept}} =
        Tell(Pid, From + ?HOUR, From + 6 * ?HOUR),
    ?assert(Waiting > 0),
    ?assert(Kept > 59),
    %% Who looks meanwhile sees what is there.
    {ok, #{t := [_ | _]}} = Call(?MODULE, series, [{group, ~"g"}, From, From + ?HOUR, 4]),
    ok = sderl_fleet_disk:free(Dir, Call),
    #{is_failing := false, missed := 0, waiting := 0, frames := Frames} =
        Tell(Pid, From + 6 * ?HOUR, From + 7 * ?HOUR),
    ?assertEqual(#{?MINUTE => 7 * 60 - 1, 10 * ?MINUTE => 7 * 6 - 1, ?HOUR => 6}, Frames),
    ok = Call(gen_server, stop, [Pid]),
    {ok, _, 0} = Call(sderl_mon_archive_file, found,
                      [Sub, sderl_mon_archive_index:new([{?MINUTE, 8 * ?DAY, ?DAY},
                                                         {10 * ?MINUTE, 35 * ?DAY, 5 * ?DAY},
                                                         {?HOUR, 400 * ?DAY, 50 * ?DAY}])]),
    _ = Begin(),
    #{frames := Frames} = Call(sderl_mon_archive, info, []).

refused_test_() ->
    in_folder(fun(Dir) ->
        ok = file:write_file(filename:join(Dir, "file"), ~""),
        with_archive(#{dir => filename:join(Dir, "file")}, fun(_) ->
            {refused, Why} = sderl_mon_archive:info(),
            ?assertNotEqual(nomatch, string:find(Why, "file"))
        end),
        %% Another program that runs writes there: that which began this one.
        Parent = string:trim(os:cmd("echo $PPID")),
        {ok, Stat} = file:read_file(["/proc/", Parent, "/stat"]),
        Began = lists:nth(20, string:lexemes(lists:last(binary:split(Stat, ~")", [global])), " ")),
        Lock = filename:join(Dir, "lock"),
        ok = file:write_file(Lock, [Parent, " ", Began, "\n"]),
        with_archive(#{dir => Dir}, fun(_) ->
            {refused, Why} = sderl_mon_archive:info(),
            ?assertNotEqual(nomatch, string:find(Why, Parent)),
            ?assertEqual({0, 0}, sderl_mon_archive:range())
        end),
        %% One that is no more, and whatever else stands there, is in nobody's way.
        [begin
             ok = file:write_file(Lock, Text),
             with_archive(#{dir => Dir}, fun(_) -> #{} = sderl_mon_archive:info() end)
         end || Text <- [~"", ~"no number", ~"99999999999999999999 1", os:getpid()]],
        ?assertNot(filelib:is_file(Lock))
    end).

%% ---------------------------------------------------------------- bounds

bounded_test_() ->
    in_folder(fun(Dir) ->
        From = days_ago(9),
        Most = 1_048_576,
        with_archive(#{dir => Dir, max_bytes => Most}, fun(Pid) ->
            Day = fun(N) -> told(Pid, large(From + N * ?DAY)) end,
            Sizes = [begin #{bytes := Bytes} = Day(N), Bytes end || N <- lists:seq(0, 8)],
            ?assert(lists:max(Sizes) > Most div 2),
            [?assert(Bytes < Most + Most div 8) || Bytes <- Sizes],
            Files = filelib:fold_files(Dir, "\\.archive$", false,
                                       fun(F, Sum) -> Sum + filelib:file_size(F) end, 0),
            ?assertEqual(lists:last(Sizes), Files)
        end)
    end).

%% A frame each ten minutes that does not get small.
large(From) ->
    [(sderl_mon_gen:frame(T, 600_000,
                          #{{id(I), id(J)} => {rand:uniform(), rand:uniform()}
                            || I <- lists:seq(1, 12), J <- lists:seq(1, 12), I =/= J}))#{
         nodes := #{id(I) => #{util => rand:uniform()} || I <- lists:seq(1, 12)}
     } || T <- lists:seq(From + 600_000, From + ?DAY, 600_000)].

id(I) -> <<"n", (integer_to_binary(I))/binary>>.

%% ---------------------------------------------------------------- the index

-define(LEVELS, [{?MINUTE, 8 * ?DAY, ?DAY}, {10 * ?MINUTE, 35 * ?DAY, 5 * ?DAY},
                 {?HOUR, 400 * ?DAY, 50 * ?DAY}]).

names_test() ->
    Index = sderl_mon_archive_index:new(?LEVELS),
    Again = fun(Key) ->
        sderl_mon_archive_index:read_name(sderl_mon_archive_index:name(Key), Index)
    end,
    [?assertEqual({ok, Key}, Again(Key))
     || {Step, _, FileMs} <- ?LEVELS, Slot <- [0, 1, 20_000], Part <- [0, 1, 12],
        Key <- [{Step, Slot * FileMs, Part}]],
    ?assertEqual(~"60s-86400-0.archive", sderl_mon_archive_index:name({?MINUTE, ?DAY, 0})).

%% Whatever was written: at most so many bytes, unless only the newest files of the levels are left;
%% what goes is older than all that stays of its level.
prop_excess() ->
    ?FORALL({Writes, Most}, {list({elements([?MINUTE, 10 * ?MINUTE, ?HOUR]), range(0, 500),
                                   range(1, 5_000)}), range(1, 20_000)},
        begin
            Now = 500 * ?DAY,
            Index = lists:foldl(fun({Step, Day, Bytes}, I) ->
                Key = sderl_mon_archive_index:key({Step, Day * ?DAY + 1}, 2_000, I),
                Added = case sderl_mon_archive_index:bytes(Key, I) of
                    0 -> sderl_mon_archive_index:add_file(Key, I);
                    _ -> I
                end,
                sderl_mon_archive_index:add_bytes(Key, Bytes, Added)
            end, sderl_mon_archive_index:new(?LEVELS), Writes),
            #{files := Files} = Index,
            Gone = sderl_mon_archive_index:excess(Now, Most, Index),
            Left = lists:foldl(fun sderl_mon_archive_index:drop/2, Index, Gone),
            #{files := Stay} = Left,
            Newest = [lists:max(Keys)
                      || Step <- sderl_mon_archive_index:steps(Index),
                         [_ | _] = Keys <- [[K || {S, _, _} = K := _ <- Files, S =:= Step]]],
            length(lists:usort(Gone)) =:= length(Gone)
                andalso Newest -- maps:keys(Stay) =:= []
                andalso (sderl_mon_archive_index:bytes(Left) =< Most
                         orelse lists:sort(maps:keys(Stay)) =:= lists:sort(Newest))
                andalso lists:all(fun({S, _, _} = G) ->
                    lists:all(fun({S1, _, _} = K) -> S1 =/= S orelse K > G end, maps:keys(Stay))
                end, Gone)
        end).

excess_test_() ->
    {timeout, 60, fun() ->
        ?assert(proper:quickcheck(prop_excess(), [{numtests, 300}, {to_file, user}]))
    end}.

%% SPDX-License-Identifier: Apache-2.0
%% Recordings: what is written is read back, and whatever happened to the file there is an answer.
-module(sderl_mon_record_tests).

-include_lib("eunit/include/eunit.hrl").

-define(T0, 1_700_000_000_000).

in_folder(Test) ->
    {spawn, {timeout, 120, fun() ->
        Name = io_lib:format("sderl_mon_record_~s_~b",
                             [os:getpid(), erlang:unique_integer([positive])]),
        Dir = filename:join(filename:basedir(user_cache, "sderl_tests"), Name),
        ok = filelib:ensure_path(Dir),
        try
            Test(Dir)
        after
            ok = file:del_dir_r(Dir)
        end
    end}}.

frames(N) ->
    [
        (sderl_mon_gen:frame(?T0 + I * 1000, #{{~"a", ~"b"} => {float(I), 8.0 * I}}))#{
            nodes := #{~"a" => #{procs => I, util => 0.5}}
        }
     || I <- lists:seq(1, N)
    ].

topology() -> sderl_mon_gen:topology(#{~"g" => [~"a", ~"b"]}).

%% The parts of a small recording, each a whole number of records.
parts() ->
    Event = (sderl_mon_gen:event(?T0 + 1500, ~"node a went"))#{id => 1},
    [
        sderl_mon_segment:header(),
        sderl_mon_segment:record(topology, 0, ?T0, 0, sderl_mon_pack:pack(topology())),
        sderl_mon_segment:record(events, 0, ?T0 + 1500, 0, sderl_mon_pack:pack([Event]))
        | [sderl_mon_segment:record(frame, 0, T, S, sderl_mon_pack:pack_frame(F))
           || #{t := T, span_ms := S} = F <- frames(3)]
    ].

%% ---------------------------------------------------------------- a damaged file

every_cut_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "cut.sdmon"),
        Whole = iolist_to_binary(parts()),
        {Ends, _} = lists:mapfoldl(fun(Part, At) ->
            {At + iolist_size(Part), At + iolist_size(Part)}
        end, 0, parts()),
        FrameEnds = lists:nthtail(3, Ends),
        [
            begin
                ok = file:write_file(File, binary:part(Whole, 0, Cut)),
                case length([E || E <- FrameEnds, E =< Cut]) of
                    0 -> unreadable(File);
                    N -> readable(File, N, Cut - lists:last([E || E <- Ends, E =< Cut]))
                end
            end
         || Cut <- lists:seq(0, byte_size(Whole))
        ]
    end).

unreadable(File) ->
    {error, Text} = sderl_mon_replay:open(File),
    ?assert(is_binary(Text)),
    ?assertNotEqual(nomatch, string:find(Text, filename:basename(File))).

readable(File, N, Rest) ->
    {ok, Replay} = sderl_mon_replay:open(File),
    ?assertMatch(#{frames := N, damaged_bytes := Rest}, sderl_mon_replay:info(Replay)),
    To = ?T0 + N * 1000,
    ?assertEqual({?T0, To}, sderl_mon_hub:range(Replay)),
    Topology = topology(),
    ?assertMatch({ok, #{topology := Topology, frame := #{t := To}}}, sderl_mon_hub:at(Replay, To)),
    sderl_mon_replay:close(Replay).

every_flip_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "flip.sdmon"),
        Whole = iolist_to_binary(parts()),
        Header = sderl_mon_segment:header_size(),
        [
            begin
                <<Before:At/binary, Byte, After/binary>> = Whole,
                ok = file:write_file(File, [Before, Byte bxor (1 bsl (At rem 8)), After]),
                case At < Header of
                    true -> unreadable(File);
                    false -> harmed(File)
                end
            end
         || At <- lists:seq(0, byte_size(Whole) - 1)
        ]
    end).

%% One record is lost, the others are there, and every question has an answer.
harmed(File) ->
    {ok, Replay} = sderl_mon_replay:open(File),
    #{frames := N, damaged := Damaged, records := Records} = sderl_mon_replay:info(Replay),
    ?assertEqual({4, 1}, {Records, Damaged}),
    ?assert(N >= 2),
    {From, To} = sderl_mon_hub:range(Replay),
    ?assertMatch({ok, #{topology := #{}, frame := #{}, findings := []}},
                 sderl_mon_hub:at(Replay, To)),
    ?assertMatch({ok, #{columns := #{msgs_s := [_ | _]}}},
                 sderl_mon_hub:series(Replay, {group, ~"g"}, From, To, 10)),
    ?assertMatch({ok, [_ | _]}, sderl_mon_hub:traffic(Replay, #{by => link})),
    ?assertMatch({ok, _}, sderl_mon_hub:events(Replay, #{})),
    sderl_mon_replay:close(Replay).

other_files_are_refused_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "x.sdmon"),
        Says = fun(Content, Word) ->
            ok = file:write_file(File, Content),
            {error, Text} = sderl_mon_replay:open(File),
            ?assertNotEqual(nomatch, string:find(Text, Word))
        end,
        Says(~"", "empty: its recording was cut off before it began; open another one"),
        Says(~"#!/bin/sh\nexit 0\n", "no recording"),
        Later = <<"sderl-mon", 0, 2:16>>,
        Says([Later, <<(erlang:crc32(Later)):32>>], "open it with the program that made it"),
        Says([<<"sderl-mon", 0, 2:16>>, <<0:32>>], "its first 16 bytes, is damaged"),
        Says(sderl_mon_segment:header(), "no frame that can be read"),
        ?assertEqual({error,
                      ~"the name of this recording is no text in UTF-8: give the file another one"},
                     sderl_mon_replay:open(<<"/tmp/", 255>>)),
        {error, Gone} = sderl_mon_replay:open(filename:join(Dir, "none.sdmon")),
        ?assertNotEqual(nomatch, string:find(Gone, "no such file")),
        ?assertMatch({error, _}, sderl_mon_replay:open(Dir))
    end).

%% ---------------------------------------------------------------- a recording

%% Beside a hub that does nothing by itself.
beside_a_hub(Test) ->
    in_folder(fun(Dir) ->
        sderl_mon_gen:beside_hub(#{interval_ms => 60_000}, fun() ->
            try
                Test(Dir)
            after
                _ = sderl_mon_record:stop()
            end
        end)
    end).

recorded_and_replayed_test_() ->
    beside_a_hub(fun(Dir) ->
        {ok, #{file := File}} =
            sderl_mon_record:start(filename:join(Dir, "new/r"), #{max_bytes => 1_000_000}),
        ?assertEqual({error, already_recording},
                     sderl_mon_record:start(filename:join(Dir, "other"), #{})),
        Found = #{id => ~"f", kind => bypass, severity => warning, since => 1, t => 1, where => #{},
                  text => ~"t", evidence => [], remedy => ~"r"},
        tell([{topology, topology()}, {findings, [Found]} | [{frame, F} || F <- frames(100)]]),
        tell([{events, [(sderl_mon_gen:event(?T0 + 1500, ~"x"))#{id => 1}]}]),
        ?assertMatch({ok, #{frames := 100, missed := 0, file := File}}, sderl_mon_record:status()),
        ok = sderl_mon_record:stop(),
        ?assertEqual({error, not_recording}, sderl_mon_record:stop()),
        ?assertEqual({error, {exists, File}}, sderl_mon_record:start(File, #{})),
        ?assertMatch([#{name := ~"r.sdmon", file := File, bytes := _, modified := _}],
                     sderl_mon_record:list(filename:join(Dir, "new"))),
        ?assertEqual([], sderl_mon_record:list(filename:join(Dir, "nowhere"))),
        {ok, Replay} = sderl_mon_replay:open(File),
        ?assertMatch(#{frames := 100, damaged := 0}, sderl_mon_replay:info(Replay)),
        Frames = frames(100),
        [?assert(same(F, sderl_mon_hub:at(Replay, T))) || #{t := T} = F <- Frames],
        %% Two coarse frames and what is not in one yet: the sum of 1 to 100.
        #{fold := Fold} = sderl_mon_replay:store(Replay),
        {Spans, Sum} = Fold(0, 1 bsl 60, 60_000, #{},
                            fun(#{span_ms := S, links := #{{~"a", ~"b"} := {M, _}}}, {N, Acc}) ->
                                {N + 1, Acc + M * S}
                            end, {0, 0}),
        ?assert(Spans < 100),
        ?assertEqual(5050 * 1000, round(Sum)),
        ?assertMatch({ok, [#{id := 1, kind := node_down, text := ~"x"}]},
                     sderl_mon_hub:events(Replay, #{})),
        sderl_mon_replay:close(Replay)
    end).

tell(Messages) ->
    lists:foreach(fun({Kind, What}) -> sderl_mon_record ! {sderl_mon, Kind, What} end, Messages).

same(Frame, {ok, #{frame := Frame1}}) -> Frame == Frame1;
same(_Frame, _Other) -> false.

%% A hub that comes back at once finds the recorder of the one before still there.
it_records_again_after_the_hub_restarted_test_() ->
    in_folder(fun(Dir) ->
        Kept = fun(Test) ->
            sderl_mon_gen:beside_hub(#{interval_ms => 60_000}, fun() ->
                {ok, Keeper} = sderl_mon_record_keeper:start_link(#{dir => Dir}),
                try Test() after gen_server:stop(Keeper) end
            end)
        end,
        Recording = fun(Not) ->
            ok = sderl_fleet:await(fun() -> whereis(sderl_mon_record) =/= Not end, 60_000),
            {ok, #{file := File}} = sderl_mon_record:status(),
            File
        end,
        {Old, Recorder} = Kept(fun() ->
            File = Recording(undefined),
            Pid = whereis(sderl_mon_record),
            ok = sys:suspend(Pid),
            {File, Pid}
        end),
        Kept(fun() ->
            ok = sderl_fleet:await(fun() ->
                {monitored_by, By} = process_info(Recorder, monitored_by),
                By =/= []
            end, 60_000),
            Ended = monitor(process, Recorder),
            ok = sys:resume(Recorder),
            receive {'DOWN', Ended, process, _, _} -> ok end,
            ?assertNotEqual(Old, Recording(undefined)),
            ?assertMatch([#{file := Old}, #{file := _}], sderl_mon_record:list(Dir)),
            ok = sderl_mon_record:stop()
        end)
    end).

a_folder_keeps_the_newest_test_() ->
    beside_a_hub(fun(Dir) ->
        Name = fun(I) ->
            filename:join(Dir, io_lib:format("2020-01-01T00-00-~2..0bZ.sdmon", [I]))
        end,
        Mine = filename:join(Dir, "1-mine.sdmon"),
        [ok = file:write_file(F, <<>>)
         || F <- [Mine, [Name(1), ".old"] | [Name(I) || I <- lists:seq(1, 25)]]],
        {ok, #{file := File}} = sderl_mon_record:start_in(Dir, #{}),
        Left = [F || #{file := F} <- sderl_mon_record:list(Dir)],
        ?assertEqual([unicode:characters_to_binary(F)
                      || F <- [Mine | [Name(I) || I <- lists:seq(7, 25)]] ++ [File]], Left),
        ?assertNot(filelib:is_file([Name(1), ".old"]))
    end).

what_is_not_recorded_is_counted_in_it_test_() ->
    beside_a_hub(fun(Dir) ->
        {ok, #{file := File}} = sderl_mon_record:start(filename:join(Dir, "gap"), #{}),
        [First, Second] = frames(2),
        tell([{frame, First}, {missed, 3}, {events_missed, 5}, {missed, 1}, {events_missed, 0},
              {frame, Second}]),
        ?assertMatch({ok, #{frames := 2, missed := 4, events_missed := 5}},
                     sderl_mon_record:status()),
        ok = sderl_mon_record:stop(),
        {ok, Replay} = sderl_mon_replay:open(File),
        Lost =
            fun(#{t := T}) -> {ok, #{frame := #{lost := L}}} = sderl_mon_hub:at(Replay, T), L end,
        ?assertEqual(maps:merge(maps:get(lost, Second),
                                #{frames_not_recorded => 4, events_not_recorded => 5}),
                     Lost(Second)),
        ?assertEqual(maps:get(lost, First), Lost(First)),
        sderl_mon_replay:close(Replay)
    end).

the_file_stays_small_test_() ->
    beside_a_hub(fun(Dir) ->
        Max = 65_536,
        {ok, #{file := File}} =
            sderl_mon_record:start(filename:join(Dir, "r.sdmon"), #{max_bytes => Max}),
        ?assertMatch({error, {bad_option, max_bytes, 10}},
                     sderl_mon_record:start(filename:join(Dir, "s"), #{max_bytes => 10})),
        Many = frames(1_000),
        tell([{frame, F} || F <- Many]),
        {ok, #{bytes := Bytes}} = sderl_mon_record:status(),
        ?assert(Bytes =< Max),
        %% The recorder dies, and does not write what it still has: readable all the same.
        Ref = monitor(process, sderl_mon_record),
        exit(whereis(sderl_mon_record), kill),
        receive {'DOWN', Ref, process, _, _} -> ok end,
        Sizes = [filelib:file_size(F) || F <- [File, <<File/binary, ".old">>]],
        %% What was still to be written is lost, which may be all of the newer part.
        ?assert(lists:all(fun(S) -> S =< Max div 2 end, Sizes)),
        {ok, Replay} = sderl_mon_replay:open(File),
        #{frames := N} = sderl_mon_replay:info(Replay),
        ?assert(N > 50 andalso N < 1_000),
        sderl_mon_replay:close(Replay)
    end).

a_recording_goes_with_its_owner_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "own.sdmon"),
        ok = file:write_file(File, parts()),
        Me = self(),
        {Pid, Ref} = spawn_monitor(fun() -> Me ! sderl_mon_replay:open(File) end),
        Replay = receive {ok, R} -> R end,
        receive {'DOWN', Ref, process, Pid, _} -> ok end,
        %% The opener has ended, and this process takes over.
        ok = sderl_mon_replay:own(Replay),
        ?assertMatch({_, _}, sderl_mon_hub:range(Replay)),
        Gone = monitor(process, Replay),
        sderl_mon_replay:close(Replay),
        receive {'DOWN', Gone, process, Replay, normal} -> ok end,
        ok = sderl_mon_replay:close(Replay)
    end).

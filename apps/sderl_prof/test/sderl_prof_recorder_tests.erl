%% SPDX-License-Identifier: Apache-2.0
%% How a recording of this node ends: the callers that wait get answers, the folder is whole, and
%% tracing is off.
-module(sderl_prof_recorder_tests).

-include_lib("eunit/include/eunit.hrl").

-define(WAIT_MS, 60_000).

recorder_test_() ->
    {foreach, fun folder/0, fun file:del_dir_r/1, [
        fun(Dir) -> {Name, {timeout, 120, fun() -> Case(Dir) end}} end
     || {Name, Case} <- [
            {"the folder is gone", fun gone/1},
            {"who waits is answered when another stops it", fun stopped/1},
            {"who waits is answered when the owner dies", fun owner_dies/1},
            {"somebody ends the trace session", fun taken/1},
            {"time is a limit while processes are described", fun describing/1},
            {"a refusal leaves nothing behind", fun refused/1},
            {"a profile without a folder leaves none", fun profile/1}
        ]
    ]}.

folder() ->
    Dir = filename:join([filename:basedir(user_cache, "sderl"), "prof-recorder",
                         integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()]),
    ok = filelib:ensure_path(Dir),
    Dir.

%% Whatever the disk does, tracing ends, and nobody waits for ever.
gone(Dir) ->
    Recording = filename:join(Dir, "gone"),
    Why = {folder, Recording, enoent},
    ?assertNotEqual(nomatch, string:find(sderl_prof_recorder:format_error(Why), Recording)),
    [begin
         Recorder = started(Recording, #{keep => last}, self()),
         Ref = monitor(process, Recorder),
         %% Renamed first, as a file may be created while it is removed.
         ok = file:rename(Recording, [Recording, ".away"]),
         ok = file:del_dir_r([Recording, ".away"]),
         ?assertEqual({error, Why}, End(Recorder)),
         receive {'DOWN', Ref, process, Recorder, Reason} -> ?assertEqual(normal, Reason)
         after ?WAIT_MS -> error({still_alive, Recorder})
         end,
         ?assertNot(is_traced())
     end || End <- [fun sderl_prof_recorder:stop/1, fun timed/1]].

timed(Recorder) ->
    Waiter = asked(fun() -> sderl_prof_recorder:await(Recorder, infinity) end),
    ok = await_waiting(Recorder),
    Recorder ! time,
    answer(Waiter).

stopped(Dir) ->
    Recorder = started(filename:join(Dir, "stopped"), #{}, self()),
    Waiters = [asked(fun() -> sderl_prof_recorder:await(Recorder, infinity) end)
               || _ <- lists:seq(1, 3)],
    ok = await_waiting(Recorder, 3),
    #{ended := stopped} = Info = sderl_prof_recorder:stop(Recorder),
    ?assertEqual([Info, Info, Info], [answer(Waiter) || Waiter <- Waiters]).

owner_dies(Dir) ->
    Owner = spawn(fun() -> receive stop -> ok end end),
    Recorder = started(filename:join(Dir, "owner"), #{}, Owner),
    Waiter = asked(fun() -> sderl_prof_recorder:await(Recorder, infinity) end),
    ok = await_waiting(Recorder),
    Owner ! stop,
    ?assertMatch(#{ended := owner}, answer(Waiter)).

%% Somebody ends its trace session: the recording ends with that reason, and keeps its events.
taken(Dir) ->
    Recorder = started(filename:join(Dir, "taken"), #{}, self()),
    Waiter = asked(fun() -> sderl_prof_recorder:await(Recorder, infinity) end),
    ok = await_waiting(Recorder),
    true = trace:session_destroy(lists:keyfind(sderl_recording, 1, trace:session_info(all))),
    #{ended := session, written := Written} = answer(Waiter),
    ?assert(Written > 0).

describing(Dir) ->
    Many = [spawn_link(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 50_000)],
    Recorder = started(filename:join(Dir, "many"), #{seconds => 0.001}, self()),
    #{ended := time, described := Described, undescribed := Left} =
        sderl_prof_recorder:await(Recorder, ?WAIT_MS),
    [Pid ! stop || Pid <- Many],
    ?assert(Left > 0),
    ?assert(Described < length(Many)),
    ?assertNot(is_traced()).

%% A refused recording leaves an existing folder empty, and makes no new one.
refused(Dir) ->
    There = filename:join(Dir, "there"),
    ok = file:make_dir(There),
    New = filename:join(Dir, "new"),
    {ok, Plan} = sderl_prof_options:plan(#{who => [no_such_name]}),
    [?assertEqual({error, {no_process, no_such_name}},
                  sderl_prof_recorder:start(Plan, Folder, self())) || Folder <- [There, New]],
    ?assertEqual({{ok, []}, false}, {file:list_dir_all(There), filelib:is_file(New)}),
    %% Paths of the event files are too long, that of the file `recording` is not.
    Deep = deep(Dir, 4083),
    {ok, Any} = sderl_prof_options:plan(#{}),
    ?assertMatch({error, {folder, Deep, _}}, sderl_prof_recorder:start(Any, Deep, self())),
    ?assertNot(filelib:is_file(Deep)),
    ?assertNot(is_traced()).

deep(Dir, Length) when length(Dir) + 250 < Length ->
    deep(filename:join(Dir, lists:duplicate(200, $x)), Length);
deep(Dir, Length) ->
    filename:join(Dir, lists:duplicate(Length - length(Dir) - 1, $y)).

profile(_) ->
    Before = temporary(),
    ?assertError(oops, sderl_prof:profile(fun() -> error(oops) end, #{what => procs_basic})),
    ?assertThrow(away, sderl_prof:profile(fun() -> throw(away) end, #{what => procs_basic})),
    {error, {options, _}} = sderl_prof:profile(fun() -> ok end, #{what => nothing_known}),
    {error, {recorder, _}} = sderl_prof:profile(fun() -> ok end, #{who => [no_such_name]}),
    {ok, done, _} = sderl_prof:profile(fun() -> done end, #{what => procs_basic}),
    ?assertEqual(Before, temporary()),
    ?assertNot(is_traced()).

temporary() ->
    filelib:wildcard(lists:concat(["prof-", os:getpid(), "-*"]),
                     filename:basedir(user_cache, "sderl")).

%% ---------------------------------------------------------------- what cases share

started(Dir, Options, Owner) ->
    {ok, Plan} = sderl_prof_options:plan(maps:merge(#{what => procs_basic, seconds => 600},
                                                    Options)),
    {ok, Recorder} = sderl_prof_recorder:start(Plan, Dir, Owner),
    Recorder.

is_traced() -> lists:keymember(sderl_recording, 1, trace:session_info(all)).

asked(Ask) ->
    Self = self(),
    Ref = make_ref(),
    spawn_link(fun() -> Self ! {Ref, Ask()} end),
    Ref.

answer(Ref) ->
    receive {Ref, Answer} -> Answer after ?WAIT_MS -> error(unanswered) end.

await_waiting(Recorder) -> await_waiting(Recorder, 1).

%% Waits until so many callers wait.
await_waiting(Recorder, Count) ->
    Waiting = element(tuple_size(sys:get_state(Recorder)), sys:get_state(Recorder)),
    case length(Waiting) of
        Count -> ok;
        _ -> erlang:yield(), await_waiting(Recorder, Count)
    end.

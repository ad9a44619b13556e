%% SPDX-License-Identifier: Apache-2.0
%% Folders that are renamed into place once complete: replaced, made by two at once, failed.
-module(sderl_prof_beside_tests).

-include_lib("eunit/include/eunit.hrl").

-import(sderl_prof_files, [with_dir/1]).

made(Text) ->
    fun(Own) ->
        ok = filelib:ensure_path(Own),
        ok = file:write_file(filename:join(Own, "mark"), Text),
        {ok, Own}
    end.

content(Dir) ->
    {ok, Text} = file:read_file(filename:join(Dir, "mark")),
    Text.

replaced_test() ->
    with_dir(fun(Parent) ->
        Dir = filename:join(Parent, "book"),
        ok = sderl_prof_beside:make(Dir, "mark", made(~"first")),
        ?assertEqual(~"first", content(Dir)),
        ok = sderl_prof_beside:make(Dir, "mark", made(~"second")),
        ?assertEqual(~"second", content(Dir)),
        %% A folder without its mark is incomplete, and is replaced.
        ok = file:delete(filename:join(Dir, "mark")),
        ok = file:write_file(filename:join(Dir, "rest"), <<>>),
        ok = sderl_prof_beside:make(Dir, "mark", made(~"third")),
        ?assertEqual({ok, ["mark"]}, file:list_dir(Dir)),
        ?assertEqual({ok, ["book"]}, file:list_dir(Parent))
    end).

%% Another program was faster: its folder may be in use already, and stays.
at_once_test() ->
    with_dir(fun(Parent) ->
        Dir = filename:join(Parent, "book"),
        ok = sderl_prof_beside:make(Dir, "mark", made(~"old")),
        ok = sderl_prof_beside:make(Dir, "mark", fun(Own) ->
            ok = sderl_prof_beside:make(Dir, "mark", made(~"theirs")),
            (made(~"ours"))(Own)
        end),
        ?assertEqual(~"theirs", content(Dir)),
        ?assertEqual({ok, ["book"]}, file:list_dir(Parent))
    end).

failed_test() ->
    with_dir(fun(Parent) ->
        Dir = filename:join(Parent, "book"),
        ok = sderl_prof_beside:make(Dir, "mark", made(~"old")),
        {error, full} = sderl_prof_beside:make(Dir, "mark", fun(Own) ->
            {ok, _} = (made(~"half"))(Own),
            {error, full}
        end),
        ?assertError(crash, sderl_prof_beside:make(Dir, "mark", fun(_) -> error(crash) end)),
        ?assertEqual(~"old", content(Dir)),
        ?assertEqual({ok, ["book"]}, file:list_dir(Parent))
    end).

%% The leftovers of a killed program are removed after a day.
left_test() ->
    with_dir(fun(Parent) ->
        Dir = filename:join(Parent, "book"),
        Left = Dir ++ ".new-1-1",
        Works = Dir ++ ".new-2-1",
        [ok = filelib:ensure_path(Folder) || Folder <- [Left, Works]],
        ok = file:change_time(Left, {{2020, 1, 1}, {0, 0, 0}}),
        ok = sderl_prof_beside:make(Dir, "mark", made(~"new")),
        ?assertEqual([false, true], [filelib:is_dir(Folder) || Folder <- [Left, Works]])
    end).

%% Several processes open a recording at once, and all read it, whichever finishes first.
recording_test_() ->
    {timeout, 300, fun() ->
        with_dir(fun(Dir) ->
            ok = sderl_prof_two_nodes:example(Dir, 200),
            %% A book as old as its recording counts as outdated, and each would make it again.
            ok = file:change_time(filename:join([Dir, "a@h", "recording"]),
                                  {{2020, 1, 1}, {0, 0, 0}}),
            Self = self(),
            Opened = [spawn_monitor(fun() -> Self ! {self(), opened(Dir)} end)
                      || _ <- lists:seq(1, 4)],
            Answers = [receive
                           {Pid, Answer} -> Answer;
                           {'DOWN', Ref, process, _, Why} when Why =/= normal -> Why
                       end || {Pid, Ref} <- Opened],
            ?assertMatch([#{processes := 1}], lists:usort(Answers)),
            {ok, Names} = file:list_dir(Dir),
            ?assertEqual([], [Name || Name <- Names, string:find(Name, ".new-") =/= nomatch])
        end)
    end}.

opened(Dir) ->
    {ok, Book} = sderl_prof:open(filename:join(Dir, "a@h"), #{}),
    {ok, View} = sderl_prof_view:open(Book, fun(_, _) -> ok end),
    About = sderl_prof_view:about(View),
    ok = sderl_prof_view:close(View),
    maps:with([processes], About).

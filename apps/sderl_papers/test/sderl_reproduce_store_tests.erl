%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_store_tests).
-include_lib("eunit/include/eunit.hrl").

-define(S, sderl_reproduce_store).
same() ->
    #{<<"scale">> => <<"small">>, <<"machine">> => #{<<"cores">> => 2, <<"otp">> => <<"29">>}}.

store_test_() ->
    {foreach, fun dir/0, fun file:del_dir_r/1, [
        fun(Dir) -> {Name, fun() -> Test(Dir) end} end
     || {Name, Test} <- [{"content", fun content/1}, {"torn", fun torn/1},
                         {"damaged", fun damaged/1}, {"other", fun other/1}, {"look", fun look/1}]
    ]}.

dir() ->
    filename:join([filename:basedir(user_cache, "sderl_reproduce_store_tests"), os:getpid(),
                   "out"]).

result(Run) ->
    sderl_bench_output:result(debench, #{nodes => 10, run => Run},
                              #{took_s => 1.5, p50 => undefined}, sderl_bench_output:now()).

measured(Run) ->
    #{experiment => <<"debench">>, params => #{<<"nodes">> => 10, <<"run">> => Run},
      metrics => #{<<"took_s">> => 1.5, <<"p50">> => null}}.

head() -> (same())#{<<"claims">> => [<<"C3">>]}.

content(Dir) ->
    ?assertEqual({ok, new, []}, ?S:open(Dir, (same()))),
    ok = ?S:save(Dir, head()),
    ?assertEqual({ok, measured(1)}, ?S:append(Dir, result(1))),
    ?assertEqual({ok, measured(2)}, ?S:append(Dir, result(2))),
    ?assertEqual({ok, head(), [measured(1), measured(2)]}, ?S:open(Dir, (same()))),
    ?assertEqual({ok, head(), [measured(1), measured(2)]}, ?S:read(Dir)).

%% An incomplete line that an interruption left is removed when the run goes on.
torn(Dir) ->
    {ok, new, []} = ?S:open(Dir, (same())),
    ok = ?S:save(Dir, head()),
    {ok, _} = ?S:append(Dir, result(1)),
    File = filename:join(Dir, "points.jsonl"),
    {ok, One} = file:read_file(File),
    Second = sderl_bench_output:line(result(2)),
    [
        begin
            ok = file:write_file(File, [One, binary:part(Second, 0, Bytes)]),
            ?assertEqual({ok, head(), [measured(1)]}, ?S:read(Dir)),
            ?assertEqual({ok, head(), [measured(1)]}, ?S:open(Dir, (same()))),
            ?assertEqual({ok, One}, file:read_file(File))
        end
     || Bytes <- [0, 1, byte_size(Second) div 2, byte_size(Second) - 1]
    ].

damaged(Dir) ->
    {ok, new, []} = ?S:open(Dir, (same())),
    ok = ?S:save(Dir, head()),
    File = filename:join(Dir, "points.jsonl"),
    Good = sderl_bench_output:line(result(1)),
    [
        begin
            ok = file:write_file(File, [Good, Bad, $\n, Good]),
            ?assertEqual("line 2 of " ++ File ++
                         " is damaged: remove that line, and its point is measured anew",
                         failed(?S:open(Dir, (same()))))
        end
     || Bad <- ["{", "[1]", "{\"experiment\":\"x\"}", [255], ""]
    ],
    Head = filename:join(Dir, "run.json"),
    [
        begin
            ok = file:write_file(Head, Bad),
            ?assertEqual(Head ++ " is damaged: name another folder, or remove this one",
                         failed(?S:read(Dir)))
        end
     || Bad <- ["", "{\"scale\":", "{\"scale\":\"small\"}", "7"]
    ].

other(Dir) ->
    {ok, new, []} = ?S:open(Dir, (same())),
    ok = ?S:save(Dir, head()),
    ?assertEqual(
        Dir ++ " has points of another scale (small, and now it is medium): name another folder "
               "with --out",
        failed(?S:open(Dir, (same())#{<<"scale">> := <<"medium">>}))
    ),
    ?assertEqual(
        Dir ++ " has points of another machine (cores 2, otp 29, and now it is cores 4, otp 29): "
               "name another folder with --out",
        failed(?S:open(Dir, (same())#{<<"machine">> := #{<<"cores">> => 4, <<"otp">> => <<"29">>}}))
    ).

look(Dir) ->
    ?assertEqual({ok, new, []}, ?S:look(Dir, (same()))),
    ?assertNot(filelib:is_file(Dir)),
    ?assertEqual("there is no folder " ++ Dir, failed(?S:read(Dir))),
    ok = filelib:ensure_path(Dir),
    ?assertEqual("there is no run.json in " ++ Dir ++ ": \"bin/sderl reproduce --out " ++ Dir ++
                 "\" makes one", failed(?S:read(Dir))),
    File = filename:join(Dir, "file"),
    ok = file:write_file(File, ""),
    [?assertEqual("--out: " ++ File ++ " is a file: name a folder",
                  failed(?S:Function(File, (same()))))
     || Function <- [open, look]],
    ?assertMatch("--out: cannot make the folder " ++ _,
                 failed(?S:open(filename:join(File, "below"), (same())))),
    ?assertMatch("--out: cannot make the folder " ++ _, failed(?S:open("/proc/nowhere", (same())))).

failed({error, Text}) -> unicode:characters_to_list(Text).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_store_tests).

%% The store with files: it goes on after a restart, after a crash in the middle of a record, and
%% without a disk to write to.

-include_lib("eunit/include/eunit.hrl").

%% In a program of its own.
-export([fill/1, log/2]).

store_test_() ->
    [{timeout, 60, {atom_to_list(Name), fun() -> in_folder(Test) end}}
     || {Name, Test} <- [{rotates_and_comes_back, fun rotates_and_comes_back/1},
                         {torn, fun torn/1}, {in_memory, fun in_memory/1},
                         {moves, fun moves/1}, {folder_goes, fun folder_goes/1},
                         {disk_is_full, fun disk_is_full/1}, {locked, fun locked/1},
                         {written_again, fun written_again/1}, {opened_later, fun opened_later/1},
                         {disk_hangs, fun disk_hangs/1}, {strangers, fun strangers/1}]].

in_folder(Test) ->
    Dir = filename:join([filename:basedir(user_cache, "sderl_mon_log_tests"), os:getpid(),
                         integer_to_list(erlang:unique_integer([positive]))]),
    Quiet = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try
        Test(Dir)
    after
        ok = logger:set_primary_config(Quiet),
        _ = whereis(sderl_mon_log) =:= undefined orelse gen_server:stop(sderl_mon_log),
        _ = file:del_dir_r(Dir)
    end.

%% At once: the log may be writing a file there.
remove(Dir) ->
    ok = file:rename(Dir, [Dir, ".away"]),
    file:del_dir_r([Dir, ".away"]).

start(Wanted) -> {ok, _} = sderl_mon_log:start_link(Wanted).
stop() -> gen_server:stop(sderl_mon_log).

await(Fun) -> ?assertEqual(ok, sderl_fleet:await(Fun, 60_000)).

%% Callers wait two seconds, which what was told before may take on a busy machine.
info() ->
    ok = taken(),
    sderl_mon_log:info().

taken() ->
    {error, unknown_call} = gen_server:call(sderl_mon_log, taken, infinity),
    ok.

is_place(Place) -> maps:get(place, info()) =:= Place.

%% The last record in files has this number: as the log ends, it gives its disk three seconds.
is_last(Dir, Number) ->
    Header = byte_size(sderl_mon_log_record:header()),
    {ok, <<_:Header/binary, Records/binary>>} =
        file:read_file(lists:last(sderl_mon_log_files:list(Dir))),
    Number =:= sderl_mon_log_record:fold(fun(#{text := Text}, _) -> number(Text) end, 0, Records).

number(Text) -> binary_to_integer(lists:last(binary:split(Text, ~" ", [global]))).

%% All are in files.
is_written(Dir, N) ->
    Header = byte_size(sderl_mon_log_record:header()),
    N =:= lists:sum([
        begin
            {ok, <<_:Header/binary, Records/binary>>} = file:read_file(File),
            sderl_mon_log_record:fold(fun(_, Sum) -> Sum + 1 end, 0, Records)
        end || File <- sderl_mon_log_files:list(Dir)
    ]).

%% As an agent tells them; ten events in a batch.
tell(Seqs) -> tell(Seqs, ~"text").

tell(Seqs, Text) ->
    lists:foreach(fun(Seq) ->
        gen_server:cast(sderl_mon_log, {sderl_mon_log, 1, #{
            t => 1000 + Seq, node => ~"a@h", groups => [~"g"], run => 1, seq => Seq,
            before => 10 * (Seq - 1), lost => #{},
            events => [{error, 1000 + Seq, 1000, ~"m:f/1", ~"<0.1.0>",
                        <<Text/binary, " ", (integer_to_binary(10 * (Seq - 1) + I))/binary>>}
                       || I <- lists:seq(1, 10)]
        }})
    end, Seqs).

%% The numbers in the texts of all events that are kept, the oldest first.
%% However long the log opens its files, or takes what was told before.
kept() ->
    _ = gen_server:call(sderl_mon_log, stretches, infinity),
    kept(#{limit => 1000}, []).

kept(Options, Acc) ->
    {ok, #{events := Events, next := Next}} = sderl_mon_log:search(Options),
    Numbers = [number(T) || #{text := T, lost := 0} <- Events],
    All = lists:reverse(Numbers, Acc),
    case Next of none -> All; _ -> kept(Options#{before => Next}, All) end.

rotates_and_comes_back(Dir) ->
    Wanted = #{dir => Dir, file_bytes => 65_536, files => 3},
    start(Wanted),
    Text = binary:copy(~"long ", 100),
    tell(lists:seq(1, 200), Text),
    ?assertMatch(#{events := #{error := 2000}, place := files, problem := none},
                 info()),
    await(fun() -> is_last(Dir, 2000) end),
    stop(),
    start(Wanted),
    Kept = kept(),
    ?assertEqual(2000, lists:last(Kept)),
    ?assertEqual(lists:seq(hd(Kept), 2000), Kept),
    ?assert(hd(Kept) > 1, hd(Kept)),
    #{bytes := Bytes, last := Last} = info(),
    ?assertEqual(3, length(sderl_mon_log_files:list(Dir))),
    ?assert(Bytes =< 3 * 2 * 65_536, Bytes),
    stop(),
    start(Wanted),
    ?assertEqual(Kept, kept()),
    ?assert(maps:get(last, info()) >= Last),
    %% The node's collector is the same, so what it tells once more would not be known; what is new
    %% goes on behind.
    tell([201], Text),
    ?assertEqual(2010, lists:last(kept())),
    {ok, #{events := [#{id := A}, #{id := B} | _]}} = sderl_mon_log:search(#{}),
    ?assert(A > B andalso B > Last).

%% A file that ends within a record, one of which only the name was made, and one with rubbish.
torn(Dir) ->
    Wanted = #{dir => Dir},
    start(Wanted),
    tell([1, 2]),
    20 = length(kept()),
    await(fun() -> is_last(Dir, 20) end),
    stop(),
    [File] = sderl_mon_log_files:list(Dir),
    {ok, Bytes} = file:read_file(File),
    ok = file:write_file(File, binary:part(Bytes, 0, byte_size(Bytes) - 7)),
    start(Wanted),
    ?assertEqual(lists:seq(1, 19), kept()),
    tell([3]),
    ?assertEqual(lists:seq(1, 19) ++ lists:seq(21, 30), kept()),
    await(fun() -> is_last(Dir, 30) end),
    stop(),
    {ok, Whole} = file:read_file(File),
    <<Good:300/binary, Byte, Rest/binary>> = Whole,
    ok = file:write_file(File, <<Good/binary, (Byte bxor 1), Rest/binary>>),
    ok = file:write_file(filename:join(Dir, "log-99999999999999999999.sdlog"), <<>>),
    ok = file:write_file(filename:join(Dir, "log-of-mine.sdlog"), ~"mine"),
    start(Wanted),
    Kept = kept(),
    ?assert(length(Kept) > 1 andalso length(Kept) < 29, Kept),
    tell([4]),
    ?assertEqual(40, lists:last(kept())),
    ?assertEqual({ok, ~"mine"}, file:read_file(filename:join(Dir, "log-of-mine.sdlog"))).

%% Without a folder: as much as there is room for.
in_memory(_) ->
    start(off),
    Text = binary:copy(~"long ", 780),
    tell(lists:seq(1, 300), Text),
    Kept = kept(),
    ?assertEqual(lists:seq(hd(Kept), 3000), Kept),
    #{bytes := Bytes, place := memory} = info(),
    ?assert(Bytes =< 8_388_608 + 65_536 andalso Bytes > 7_000_000, Bytes),
    %% The same once more is known.
    tell(lists:seq(290, 300), Text),
    ?assertEqual(3000, lists:last(kept())),
    ?assertEqual(length(Kept), length(kept())).

%% The configuration changes.
moves(Dir) ->
    start(off),
    tell([1]),
    sderl_mon_log ! {sderl_mon_config, #{log_files => #{dir => Dir}}},
    tell([2]),
    ?assertEqual(lists:seq(11, 20), kept()),
    ?assertMatch(#{place := files}, info()),
    sderl_mon_log ! {sderl_mon_config, #{log_files => #{dir => Dir}}},
    ?assertEqual(lists:seq(11, 20), kept()),
    await(fun() -> is_last(Dir, 20) end),
    sderl_mon_log ! {sderl_mon_config, #{log_files => off}},
    ?assertEqual([], kept()),
    sderl_mon_log ! {sderl_mon_config, #{log_files => #{dir => Dir}}},
    ?assertEqual(lists:seq(11, 20), kept()).

%% It cannot be written any more: said once, what there is stays, new events go on in memory.
folder_goes(Dir) ->
    start(#{dir => Dir, file_bytes => 65_536, files => 3}),
    tell([1]),
    ?assertEqual(lists:seq(1, 10), kept()),
    ok = remove(Dir),
    Text = binary:copy(~"long ", 500),
    tell(lists:seq(2, 50), Text),
    await(fun() -> is_place(memory) end),
    ?assertMatch(#{place := memory, events := #{error := 500}}, info()),
    #{problem := Problem} = info(),
    ?assertNotEqual(nomatch, binary:match(Problem, ~"no such file"), Problem),
    ?assertEqual(500, lists:last(kept())).

%% A disk without room, as a limit to the size of files is one: in a program of its own.
disk_is_full(Dir) ->
    Paths = lists:join($\s, [["-pa ", P]
                             || P <- code:get_path(), string:find(P, "sderl") =/= nomatch]),
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Command = ["trap '' XFSZ; ulimit -f 400; ", Erl, " +S 1 -noinput ", Paths,
               " -run ", ?MODULE_STRING, " fill ", Dir, " 2>/dev/null"],
    Said = os:cmd(unicode:characters_to_list(Command)),
    ?assertNotEqual(nomatch, string:find(Said, "memory, file too large, 1 message, all"), Said).

-spec fill([string()]) -> no_return().
fill([Dir]) ->
    ok = logger:add_handler(count, ?MODULE, #{config => counters:new(1, []), level => error}),
    start(#{dir => Dir}),
    Text = binary:copy(~"long ", 500),
    tell(lists:seq(1, 40), Text),
    await(fun() -> is_place(memory) end),
    #{place := Place, problem := Problem} = info(),
    {ok, #{config := Count}} = logger:get_handler_config(count),
    All = case kept() =:= lists:seq(1, 400) of true -> all; false -> kept() end,
    Why = lists:last(binary:split(Problem, ~": ", [global])),
    io:format("~ts, ~ts, ~b message, ~0tp~n", [Place, Why, counters:get(Count, 1), All]),
    halt(0).

%% Counts what is logged, for it.
log(_, #{config := Count}) -> counters:add(Count, 1, 1).

%% Another program writes there: init is alive and is not we.
locked(Dir) ->
    ok = filelib:ensure_path(Dir),
    Lock = filename:join(Dir, "lock"),
    case file:read_file("/proc/1/stat") of
        {ok, Stat} ->
            Fields = string:lexemes(lists:last(binary:split(Stat, ~")", [global])), " \n"),
            Began = lists:nth(20, Fields),
            ok = file:write_file(Lock, [~"1 ", Began]),
            start(#{dir => Dir}),
            await(fun() -> is_place(memory) end),
            ?assertMatch(#{problem := <<_, _/binary>>}, info()),
            stop();
        {error, _} -> ok
    end,
    %% One that was killed, whose number another has now.
    ok = file:write_file(Lock, ~"1 12345678901\n"),
    start(#{dir => Dir}),
    [] = kept(),
    ?assertMatch(#{place := files, problem := none}, info()),
    stop(),
    ?assertEqual({error, enoent}, file:read_file(Lock)).

%% When the folder can be there again, it is, with what was in memory meanwhile; by itself each
%% minute, and at once where it is set anew.
written_again(Dir) ->
    Wanted = #{dir => Dir, file_bytes => 65_536, files => 30},
    Text = binary:copy(~"long ", 500),
    start(Wanted),
    tell([1]),
    ?assertEqual(lists:seq(1, 10), kept()),
    ok = remove(Dir),
    tell(lists:seq(2, 50), Text),
    await(fun() -> is_place(memory) end),
    Kept = kept(),
    sderl_mon_log ! {sderl_mon_config, #{log_files => Wanted}},
    await(fun() -> is_place(files) end),
    ?assertMatch(#{problem := none}, info()),
    tell([51]),
    ?assertEqual([N || N <- Kept, N > 10] ++ lists:seq(501, 510), [N || N <- kept(), N > 10]),
    await(fun() -> is_last(Dir, 510) end),
    stop(),
    start(Wanted),
    ?assertEqual(510, lists:last(kept())),
    ?assertEqual([], lists:seq(100, 510) -- kept()).

%% A folder that is another program's at first: what that has written meanwhile is older.
opened_later(Dir) ->
    start(#{dir => Dir}),
    tell([1]),
    10 = length(kept()),
    await(fun() -> is_last(Dir, 10) end),
    stop(),
    ok = file:rename(Dir, [Dir, ".away"]),
    ok = file:write_file(Dir, ~"no folder"),
    start(#{dir => Dir}),
    tell([2]),
    await(fun() -> is_place(memory) end),
    ?assertEqual(lists:seq(11, 20), kept()),
    ok = file:delete(Dir),
    ok = file:rename([Dir, ".away"], Dir),
    await(fun() ->
        sderl_mon_log ! again,
        is_place(files)
    end),
    ?assertEqual(lists:seq(1, 20), kept()),
    ?assert(is_written(Dir, 20)).

%% Its disk takes nothing for a while: so much waits, the rest is counted, and who asks is answered.
disk_hangs(Dir) ->
    start(#{dir => Dir}),
    [] = kept(),
    ok = sys:suspend(sderl_mon_log_writer),
    Text = binary:copy(~"long ", 780),
    lists:foreach(fun(Seq) ->
        tell([Seq], Text),
        #{} = info()
    end, lists:seq(1, 500)),
    #{lost := #{{overload, error} := Lost}, bytes := Bytes, events := #{error := Came}} =
        info(),
    ?assertEqual(5000, Came + Lost),
    ?assert(Bytes =< 16_777_216 + 2 * 65_536 andalso Bytes > 16_000_000, Bytes),
    ?assertEqual(lists:seq(1, Came), kept()),
    ok = sys:resume(sderl_mon_log_writer),
    await(fun() -> is_written(Dir, Came) end),
    ?assertEqual(lists:seq(1, Came), kept()),
    ?assertMatch(#{place := files, problem := none}, info()).

%% What is no batch is counted, and nothing else.
strangers(_) ->
    start(off),
    [gen_server:cast(sderl_mon_log, M)
     || M <- [x, {sderl_mon_log, 2, #{}}, {sderl_mon_log, 1, #{}}, {sderl_mon_log, 1, [a | b]}]],
    sderl_mon_log ! anything,
    ?assertEqual({error, unknown_call}, gen_server:call(sderl_mon_log, what)),
    ?assertMatch(#{malformed := 4, events := E} when map_size(E) =:= 0, info()),
    ?assertEqual({error, {bad_option, text, 1}}, sderl_mon_log:search(#{text => 1})).

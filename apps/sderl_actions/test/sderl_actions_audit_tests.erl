%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_audit_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(WHO, #{kind => token, name => ~"anna", role => ~"operator", from => ~"127.0.0.1"}).

%% ---------------------------------------------------------------- lines

a_line_is_read_again_test() ->
    Line = sderl_actions_audit_record:line(7, 1_000, #{
        who => ?WHO, what => ~"action.garbage_collect", where => [~"a@h", ~"b@h"],
        args => #{pid => ~"<0.7.0>", db_password => ~"geheim"}, result => ok, detail => "done",
        ms => 12, request => ~"r-1"}),
    ?assertEqual($\n, binary:last(Line)),
    ?assertEqual(nomatch, binary:match(Line, ~"geheim")),
    {ok, Entry} = sderl_actions_audit_record:read(Line),
    ?assertMatch(#{~"seq" := 7, ~"at" := ~"1970-01-01T00:00:01.000Z", ~"result" := ~"ok",
                   ~"who" := #{~"name" := ~"anna"}, ~"where" := [~"a@h", ~"b@h"], ~"ms" := 12,
                   ~"args" := #{~"db_password" := ~"(hidden)", ~"pid" := ~"<0.7.0>"}}, Entry).

%% Whatever the arguments are, the line is one line, bounded, and says what was done.
any_arguments_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(
        ?FORALL({Args, Detail, Nodes}, {any(), list(char()), list(binary())}, begin
            Line = sderl_actions_audit_record:line(1, 0, #{
                who => ?WHO, what => ~"x", args => Args, detail => Detail, where => Nodes,
                result => begun}),
            byte_size(Line) =< 16_384 andalso length(binary:split(Line, ~"\n", [global])) =:= 2
                andalso element(1, sderl_actions_audit_record:read(Line)) =:= ok
        end), [{numtests, 300}, quiet, noshrink]))}.

what_is_too_long_is_cut_test() ->
    Nodes = [<<(binary:copy(~"n", 250))/binary, (integer_to_binary(N))/binary>>
             || N <- lists:seq(1, 1000)],
    Args = #{N => [binary:copy(~"x", 1000) || _ <- lists:seq(1, 100)] || N <- lists:seq(1, 100)},
    Line = sderl_actions_audit_record:line(1, 0, #{who => ?WHO, what => ~"x", where => Nodes,
                                                   args => Args, result => ok}),
    ?assert(byte_size(Line) =< 16_384),
    {ok, #{~"where_total" := 1000}} = sderl_actions_audit_record:read(Line).

no_entries_test() ->
    [?assertEqual(error, sderl_actions_audit_record:read(Line))
     || Line <- [~"", ~"{}", ~"[1]", ~"{\"seq\":1,\"at\":\"", ~"null", binary:copy(~"[", 10_000)]].

secrets_test() ->
    [?assert(sderl_actions_secret:is_secret(Key))
     || Key <- [password, db_password, 'secretKeyBase', "api-key", ~"API_KEY", ~"apiKey", cookie,
                ~"auth", private_key, key, "Passphrase", ~"x_token",
                {env, shop, password}]],
    [?assertNot(sderl_actions_secret:is_secret(Key))
     || Key <- [keyboard, monkey, author, port, ~"", <<255>>, {}, {key, 1}, 7, [], [300 | x],
                pins]],
    ?assertEqual([{host, "h"}, {password, ~"(hidden)"}, #{token => ~"(hidden)", a => [1 | 2]}],
                 sderl_actions_secret:masked([{host, "h"}, {password, "p"},
                                              #{token => {x}, a => [1 | 2]}])),
    ?assertEqual("amqp://(hidden)@host/v", sderl_actions_secret:masked("amqp://u:p@host/v")).

%% A time that has no text is refused, however it comes.
latest_time_test() ->
    Latest = 253_402_300_799_999,
    [?assertEqual({ok, #{Key => Latest}, 100},
                  sderl_actions_audit_query:read(#{atom_to_binary(Key) => Given}))
     || Key <- [from, to], Given <- [Latest, integer_to_binary(Latest)]],
    [?assertMatch({error, _}, sderl_actions_audit_query:read(#{Name => Given}))
     || Name <- [~"from", ~"to"], Given <- [Latest + 1, integer_to_binary(Latest + 1)]],
    ?assertEqual(~"9999-12-31T23:59:59.999Z", sderl_actions_audit_record:time(Latest)).

%% ---------------------------------------------------------------- files

-define(OPTIONS(Dir), #{dir => Dir, file_bytes => 4096, files => 3}).

files_test_() ->
    {foreach, fun folder/0, fun(Dir) -> ok = file:del_dir_r(Dir) end,
     [fun(Dir) -> {atom_to_list(Name), {timeout, 120, fun() -> Test(Dir) end}} end
      || {Name, Test} <- [
             {rotated, fun rotated/1}, {goes_on, fun goes_on/1}, {torn, fun torn/1},
             {filtered, fun filtered/1}, {one_writer, fun one_writer/1},
             {in_the_way, fun in_the_way/1}, {in_memory, fun in_memory/1},
             {full_disk, fun full_disk/1}, {killed, fun killed/1},
             {hangs, fun hangs/1}, {looked_through, fun looked_through/1},
             {read_meanwhile, fun read_meanwhile/1}]]}.

folder() ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Name = filename:join([filename:basedir(user_cache, "sderl-audit-tests"),
                          os:getpid() ++ "-" ++ Unique]),
    ok = filelib:ensure_path(Name),
    Name.

with_log(Options, Do) ->
    {ok, Pid} = sderl_actions_audit:start_link(Options),
    try Do() after gen_server:stop(Pid) end.

note(N) ->
    ok = ready(),
    ok = sderl_actions_audit:note(entry(N)).

%% Many: while they are written the disk may take longer than `note/1` waits.
told(Ns) ->
    lists:foreach(fun(N) ->
        ok = sderl_actions_audit:tell(entry(N)),
        ok = ready()
    end, Ns).

entry(N) ->
    #{who => ?WHO, what => ~"test", args => #{n => N},
      where => [<<"n", (integer_to_binary(N rem 3))/binary>>],
      result => ok, request => integer_to_binary(N)}.

%% It has taken what came before, however long its disk takes; callers wait two seconds.
ready() ->
    {error, unknown_call} = gen_server:call(sderl_actions_audit, ready, infinity),
    ok.

numbers(Filter, Limit) ->
    ok = ready(),
    {ok, #{entries := Entries}} = sderl_actions_audit:list(Filter, Limit),
    [N || #{~"args" := #{~"n" := N}} <- Entries].

rotated(Dir) ->
    with_log(?OPTIONS(Dir), fun() ->
        told(lists:seq(1, 200)),
        Files = sderl_actions_audit_files:list(Dir),
        ?assertEqual(3, length(Files)),
        [?assert(filelib:file_size(File) =< 4096) || File <- Files],
        ?assertEqual(lists:seq(200, 191, -1), numbers(#{}, 10)),
        {ok, #{oldest := Oldest, more := true, damaged := 0}} = sderl_actions_audit:list(#{}, 1),
        ?assert(Oldest > 100),
        ?assertEqual([Oldest + 1, Oldest], [Seq || #{~"seq" := Seq} <- entries(Oldest + 2)])
    end).

entries(Before) ->
    {ok, #{entries := Entries}} = sderl_actions_audit:list(#{before => Before}, 500),
    Entries.

goes_on(Dir) ->
    with_log(?OPTIONS(Dir), fun() -> note(1), note(2) end),
    with_log(?OPTIONS(Dir), fun() ->
        note(3),
        ?assertEqual([3, 2, 1], numbers(#{}, 10)),
        %% The two starts are entries too.
        ?assertEqual([5, 4, 3, 2, 1], [Seq || #{~"seq" := Seq} <- entries(100)])
    end).

torn(Dir) ->
    with_log(?OPTIONS(Dir), fun() -> note(1) end),
    [File] = sderl_actions_audit_files:list(Dir),
    {ok, Whole} = file:read_file(File),
    ok = file:write_file(File, ~"{\"seq\":3,\"at\":\"20", [append]),
    with_log(?OPTIONS(Dir), fun() ->
        note(2),
        {ok, #{damaged := 1}} = sderl_actions_audit:list(#{}, 10),
        ?assertEqual([2, 1], numbers(#{}, 10)),
        {ok, Now} = file:read_file(File),
        ?assertEqual(Whole, binary:part(Now, 0, byte_size(Whole)))
    end).

filtered(Dir) ->
    with_log(?OPTIONS(Dir), fun() ->
        lists:foreach(fun note/1, lists:seq(1, 9)),
        ok = sderl_actions_audit:note(#{who => #{kind => cli, name => ~"bert"},
                                        what => ~"config.set", result => refused,
                                        args => #{n => 10}}),
        ?assertEqual([10], numbers(#{who => ~"bert"}, 10)),
        ?assertEqual([10], numbers(#{what => ~"CONFIG"}, 10)),
        ?assertEqual([10], numbers(#{result => refused}, 10)),
        ?assertEqual([9, 6, 3], numbers(#{node => ~"n0"}, 10)),
        ?assertEqual([7], numbers(#{request => ~"7"}, 10)),
        ?assertEqual([10], numbers(#{text => ~"BERT"}, 10)),
        ?assertEqual([3, 2, 1], numbers(#{before => 5}, 10)),
        ?assertEqual([10, 9], numbers(#{'after' => 9}, 10)),
        Now = erlang:system_time(millisecond),
        ?assertEqual([], numbers(#{from => Now + 60_000}, 10)),
        ?assertEqual(10, length(numbers(#{from => Now - 600_000, to => Now + 60_000}, 100)))
    end).

one_writer(Dir) ->
    {ok, _, Files} = sderl_actions_audit_files:open(?OPTIONS(Dir)),
    %% The same program may open it again, another one may not.
    Other = io_lib:format("~ts", [os:cmd("cut -d' ' -f22 /proc/1/stat")]),
    ok = file:write_file(filename:join(Dir, "lock"), ["1 ", Other]),
    ?assertMatch({error, <<_/binary>>}, sderl_actions_audit_files:open(?OPTIONS(Dir))),
    ok = sderl_actions_audit_files:close(Files).

%% A folder that cannot be there is no reason not to start: entries wait.
in_the_way(Dir) ->
    File = filename:join(Dir, "file"),
    ok = file:write_file(File, ~""),
    with_log(?OPTIONS(filename:join(File, "audit")), fun() ->
        note(1),
        #{problem := <<_/binary>>, waiting := 1, lost := 0} = sderl_actions_audit:info(),
        ?assertEqual([1], numbers(#{}, 10)),
        ok = file:delete(File),
        sderl_actions_audit ! {timeout, retry_timer(), retry},
        ok = ready(),
        #{problem := none, waiting := 0} = sderl_actions_audit:info(),
        ?assertEqual([1], numbers(#{}, 10)),
        note(2),
        ?assertEqual([2, 1], numbers(#{}, 10))
    end).

%% The test need not wait for it.
retry_timer() ->
    State = sys:get_state(sderl_actions_audit),
    hd([Field || Field <- tuple_to_list(State), is_reference(Field)]).

%% Entries that wait for a process that hangs are bounded; who would wait is refused, and what
%% nobody waits for is counted.
hangs(Dir) ->
    with_log(#{dir => Dir, file_bytes => 1_000_000, files => 3}, fun() ->
        Entry = fun(N) -> #{who => ?WHO, what => ~"test", result => ok, args => #{n => N}} end,
        ok = sys:suspend(sderl_actions_audit),
        lists:foreach(fun(N) -> ok = sderl_actions_audit:tell(Entry(N)) end, lists:seq(1, 1003)),
        {error, unavailable} = sderl_actions_audit:note(Entry(1004)),
        {_, Waiting} = process_info(whereis(sderl_actions_audit), message_queue_len),
        ?assertEqual(1000, Waiting),
        ok = sys:resume(sderl_actions_audit),
        note(1005),
        ?assertMatch(#{lost := 3, waiting := 0}, sderl_actions_audit:info()),
        {ok, #{entries := [#{~"what" := ~"audit.lost", ~"args" := #{~"entries" := 3}} | _]}} =
            sderl_actions_audit:list(#{what => ~"audit.lost"}, 1),
        ?assertMatch([1005, 1000], numbers(#{what => ~"test"}, 2))
    end).

%% The time that a disk has to answer is not for going through what it gave: who asks does that,
%% and no other process.
looked_through(Dir) ->
    with_log(?OPTIONS(Dir), fun() ->
        told(lists:seq(1, 30)),
        Mfa = {sderl_actions_audit_record, read, 1},
        _ = erlang:trace_pattern(Mfa, true, []),
        _ = erlang:trace(new_processes, true, [call]),
        try ?assertEqual([1], numbers(#{request => ~"1"}, 10))
        after
            _ = erlang:trace(new_processes, false, [call]),
            _ = erlang:trace_pattern(Mfa, false, [])
        end,
        Delivered = erlang:trace_delivered(all),
        receive
            {trace_delivered, all, Delivered} -> ok;
            {trace, Other, call, {Mod, Fun, _}} -> error({read_by, Other, Mod, Fun})
        end
    end).

%% While the disk does not answer, what is in memory is told, and that it is so: where the writer
%% hangs, and where a file does, of which only so many are waited for at a time.
read_meanwhile(Dir) ->
    with_log(#{dir => Dir, file_bytes => 4096, files => 1000}, fun() ->
        told(lists:seq(1, 2100)),
        {ok, #{unread := none, more := false, entries := [_]}} =
            sderl_actions_audit:list(#{request => ~"1"}, 1),
        Unread = fun(Filter) ->
            {ok, #{unread := <<"the disk of the audit log does not answer", _/binary>>,
                   entries := Entries, more := More}} = sderl_actions_audit:list(Filter, 2),
            {[N || #{~"args" := #{~"n" := N}} <- Entries], More}
        end,
        ok = sys:suspend(sderl_actions_audit),
        ok = sderl_actions_audit:tell(#{who => ?WHO, what => ~"test", result => ok}),
        ?assertEqual({[2100, 2099], true}, Unread(#{})),
        ?assertEqual({[2100], false}, Unread(#{request => ~"2100"})),
        ?assertEqual({[], false}, Unread(#{request => ~"1"})),
        ?assertMatch(#{waiting := 1, problem := none, next := 2102}, sderl_actions_audit:info()),
        ok = sys:resume(sderl_actions_audit),
        %% A pipe that nobody writes is in the place of the oldest file.
        Pipe = filename:join(Dir, "audit-00000000000000000000.jsonl"),
        "" = os:cmd("mkfifo " ++ Pipe),
        Me = self(),
        Readers = [spawn_link(fun() -> Me ! {self(), Unread(#{request => ~"2099"})} end)
                   || _ <- lists:seq(1, 12)],
        [receive {Reader, Told} -> ?assertEqual({[2099], false}, Told) end || Reader <- Readers],
        note(2101),
        ?assertEqual(4, length([Name || Name <- registered(), is_reader(atom_to_list(Name))])),
        %% It answers again.
        "" = os:cmd("timeout 60 sh -c 'while ! : > " ++ Pipe ++ "; do :; done'; rm " ++ Pipe),
        await_read()
    end).

is_reader(Name) -> lists:prefix("sderl_actions_audit_reader_", Name).

await_read() ->
    case sderl_actions_audit:list(#{request => ~"1"}, 1) of
        {ok, #{unread := none, entries := [_]}} -> ok;
        {ok, #{unread := <<_/binary>>}} -> receive after 10 -> await_read() end
    end.

in_memory(_) ->
    with_log(#{file_bytes => 4096, files => 3}, fun() ->
        told(lists:seq(1, 1010)),
        ?assertEqual([1010, 1009], numbers(#{}, 2)),
        #{waiting := 0, lost := 0, dir := none} = sderl_actions_audit:info(),
        {ok, #{oldest := 11}} = sderl_actions_audit:list(#{}, 1)
    end).

%% A limit of the system on the size of files cuts a write short and fails the next, as a full disk
%% does; and it can be lifted. The files before have room, so that the entries wait.
full_disk(Dir) ->
    case os:find_executable("prlimit") of
        false -> ok;
        _ -> full_disk_of(Dir)
    end.

full_disk_of(Dir) ->
    Limited = "trap '' XFSZ; ulimit -S -f 16; exec erl \"$@\"",
    {ok, Peer, _} = peer:start_link(#{
        connection => standard_io, wait_boot => 120_000,
        exec => {os:find_executable("sh"), ["-c", Limited, "sh"]},
        args => lists:append([["-pa", Path] || Path <- code:get_path(),
                                               string:find(Path, "sderl") =/= nomatch])}),
    Call = fun(M, F, A) -> peer:call(Peer, M, F, A, 120_000) end,
    Options = #{dir => Dir, file_bytes => 1_000_000, files => 3},
    {ok, _} = Call(gen_server, start, [{local, sderl_actions_audit}, sderl_actions_audit, Options,
                                       []]),
    %% Without `note/1`, which waits two seconds for the disk.
    Note = fun(N) ->
        ok = Call(sderl_actions_audit, tell, [#{who => ?WHO, what => ~"test", result => ok,
                                                args => #{n => N}}]),
        {error, unknown_call} = Call(gen_server, call, [sderl_actions_audit, ready, infinity])
    end,
    ok = Call(logger, set_primary_config, [level, none]),
    lists:foreach(Note, lists:seq(1, 200)),
    #{problem := <<_/binary>>, waiting := Waiting, lost := 0} = Call(sderl_actions_audit, info, []),
    ?assert(Waiting > 0 andalso Waiting < 200),
    %% Nothing of the line that had no room stays.
    [File] = sderl_actions_audit_files:list(Dir),
    {ok, Bytes} = file:read_file(File),
    ?assertEqual($\n, binary:last(Bytes)),
    {ok, #{entries := Shown}} = Call(sderl_actions_audit, list, [#{}, 500]),
    ?assertEqual(201, length(Shown)),
    %% More than there is room for in memory.
    lists:foreach(Note, lists:seq(201, 1300)),
    #{lost := Lost, waiting := 1000} = Call(sderl_actions_audit, info, []),
    ?assert(Lost > 0),
    Pid = Call(os, getpid, []),
    "" = os:cmd("prlimit --pid " ++ Pid ++ " --fsize=unlimited:unlimited"),
    Note(1301),
    #{lost := Now, waiting := 0, problem := none} = Call(sderl_actions_audit, info, []),
    {ok, #{entries := [#{~"what" := ~"audit.lost", ~"args" := #{~"entries" := Told}} | _],
           damaged := 0}} = Call(sderl_actions_audit, list, [#{}, 500]),
    ?assertEqual(Now, Told),
    {ok, All} = file:read_file(File),
    ?assertEqual(1 + 1301 - Now + 1, length(binary:split(All, ~"\n", [global, trim_all]))),
    ok = peer:stop(Peer).

%% What note/1 has answered is there after a kill.
killed(Dir) ->
    {ok, Peer, _} = peer:start_link(#{
        connection => standard_io, wait_boot => 120_000,
        args => lists:append([["-pa", Path] || Path <- code:get_path(),
                                               string:find(Path, "sderl") =/= nomatch])}),
    {ok, _} = peer:call(Peer, gen_server, start,
                        [{local, sderl_actions_audit}, sderl_actions_audit, ?OPTIONS(Dir), []],
                        120_000),
    ok = peer:call(Peer, sderl_actions_audit, note,
                   [#{who => ?WHO, what => ~"test", result => begun, args => #{n => 1}}], 120_000),
    Pid = peer:call(Peer, os, getpid, [], 120_000),
    true = unlink(Peer),
    Monitor = monitor(process, Peer),
    "" = os:cmd("kill -9 " ++ Pid),
    receive {'DOWN', Monitor, process, Peer, _} -> ok end,
    %% The system may take a moment to see that it is gone, whose folder it was.
    Lock = filename:join(Dir, "lock"),
    ok = sderl_fleet:await(fun() -> sderl_mon_folder_lock:holder(Lock) =:= none end, 60_000),
    with_log(?OPTIONS(Dir), fun() -> ?assertEqual([1], numbers(#{}, 10)) end).

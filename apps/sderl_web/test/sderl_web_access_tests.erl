%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_access_tests).

%% Rates, kept answers, tokens and their file, fields and pages.

-compile([export_all, nowarn_export_all]).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").

%% ---------------------------------------------------------------- rates

rate_test_() -> sderl_prop:eunit("no more than the rate", 300, fun prop_rate/0).

%% In any span of time at most the burst and what the rate gives get through, and a client that
%% waits as long as it is told gets through.
prop_rate() ->
    ?FORALL({PerSecond, Burst, Pauses},
            {range(1, 50), range(1, 20), non_empty(list(range(0, 300)))},
            begin
                Rate = {PerSecond, Burst},
                {In, _, _, Waits} = lists:foldl(fun(Pause, {Seen, At0, Bucket, Good}) ->
                    At = At0 + Pause,
                    case sderl_web_bucket:take(Rate, At, Bucket) of
                        {ok, Left} -> {[At | Seen], At, Left, Good};
                        {wait, Ms, Left} ->
                            {Seen, At, Left,
                             Good andalso
                                 element(1, sderl_web_bucket:take(Rate, At + Ms, Left)) =:= ok}
                    end
                end, {[], 0, sderl_web_bucket:new(Rate, 0), true}, Pauses),
                Waits andalso lists:all(fun(From) ->
                    lists:all(fun(To) ->
                        length([At || At <- In, At >= From, At =< To])
                            =< Burst + (To - From) * PerSecond / 1000 + 0.001
                    end, [To || To <- In, To >= From])
                end, In)
            end).

buckets_test_() -> sderl_prop:eunit("the table is bounded", 200, fun prop_buckets/0).

prop_buckets() ->
    ?FORALL(Takes, list({range(1, 30), range(0, 500)}), begin
        {_, Buckets} = lists:foldl(fun({Who, Pause}, {At, Buckets}) ->
            {_, New} = sderl_web_buckets:take(Who, {1, 2}, At, Buckets),
            {At + Pause, New}
        end, {0, sderl_web_buckets:new(5)}, Takes),
        sderl_web_buckets:size(Buckets) =< 6
    end).

%% In a full table all new clients share one bucket; the others keep theirs.
full_table_test() ->
    Rate = {1, 1},
    Take = fun(Who, At, B) -> sderl_web_buckets:take(Who, Rate, At, B) end,
    {ok, B1} = Take(a, 0, sderl_web_buckets:new(1)),
    {ok, B2} = Take(b, 10, B1),
    {{wait, _}, B3} = Take(c, 20, B2),
    {{wait, 970}, B4} = Take(a, 30, B3),
    %% A second later the first client's bucket is full again, and makes room.
    {ok, _} = Take(c, 5_000, B4).

%% ---------------------------------------------------------------- answers that are kept

answers_test() ->
    New = sderl_web_answers:new(2, 1_000),
    Answer = {201, #{}, ~"{}"},
    Start = fun(Key, Digest, At, A) -> sderl_web_answers:start({~"t", Key}, Digest, At, A) end,
    {new, A1} = Start(~"a", ~"1", 0, New),
    busy = Start(~"a", ~"1", 5_000, A1),
    other = Start(~"a", ~"2", 10, A1),
    A2 = sderl_web_answers:finish({~"t", ~"a"}, Answer, A1),
    {again, Answer} = Start(~"a", ~"1", 999, A2),
    other = Start(~"a", ~"2", 999, A2),
    {new, _} = Start(~"a", ~"2", 1_000, A2),
    %% The oldest answer makes room; a request that still runs does not.
    {new, A3} = Start(~"b", ~"1", 20, A2),
    {new, A4} = Start(~"c", ~"1", 30, A3),
    ?assertEqual(2, sderl_web_answers:size(A4)),
    full = Start(~"d", ~"1", 40, A4),
    {new, _} = Start(~"d", ~"1", 40, sderl_web_answers:forget({~"t", ~"b"}, A4)),
    %% An answer is not forgotten.
    A5 = sderl_web_answers:finish({~"t", ~"b"}, Answer, A4),
    {again, Answer} = Start(~"b", ~"1", 50, sderl_web_answers:forget({~"t", ~"b"}, A5)),
    %% Nor is another put in its place.
    A6 = sderl_web_answers:finish({~"t", ~"b"}, {504, #{}, ~""}, A5),
    {again, Answer} = Start(~"b", ~"1", 50, A6),
    %% A sweep removes old answers, and no request that still runs.
    A7 = sderl_web_answers:sweep(1_020, A6),
    ?assertEqual([2, 1], [sderl_web_answers:size(A) || A <- [A6, A7]]),
    busy = Start(~"c", ~"1", 1_020, A7).

%% A request whose process ends may have been done: it is not done again.
lost_test() ->
    {ok, Server} = sderl_web_idempotency:start_link(),
    Key = {~"t", ~"a"},
    Lost = {504, #{}, ~"lost"},
    Done = {201, #{}, ~"done"},
    Me = self(),
    Start = fun(Of) -> sderl_web_idempotency:start(Of, ~"1", Lost) end,
    {Pid, Monitor} = spawn_monitor(fun() -> Me ! {began, Start(Key)}, receive stop -> ok end end),
    receive {began, new} -> ok end,
    busy = Start(Key),
    Pid ! stop,
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    Again = fun Again() -> case Start(Key) of busy -> Again(); Answer -> Answer end end,
    ?assertEqual({again, Lost}, Again()),
    %% A process that ends after its answer leaves the answer.
    Other = {~"t", ~"b"},
    {Brief, Ref} = spawn_monitor(fun() ->
        new = Start(Other),
        ok = sderl_web_idempotency:finish(Other, Done)
    end),
    receive {'DOWN', Ref, process, Brief, normal} -> ok end,
    ?assertEqual({again, Done}, Start(Other)),
    ok = gen_server:stop(Server).

%% ---------------------------------------------------------------- tokens

token_test_() -> sderl_prop:eunit("a token proves itself alone", 100, fun prop_token/0).

prop_token() ->
    Roles = sderl_web_token:roles(),
    ?FORALL({Role, Expires, Now, Junk},
            {oneof(Roles), oneof([none, range(1, 1000)]), range(0, 2000), binary()},
            begin
                {Text, Token} = sderl_web_token:new(~"ann", Role, Expires, 0),
                {OtherText, _} = sderl_web_token:new(~"ann", Role, Expires, 0),
                Seen = sderl_web_token:note_end(Now, Token),
                Stored = [json:decode(iolist_to_binary(json:encode(sderl_web_token:to_json(T))))
                          || T <- [Token, Seen]],
                <<_:46/binary, Last>> = Text,
                Changed = <<(binary:part(Text, 0, 46))/binary, (Last bxor 1)>>,
                [sderl_web_token:from_json(Json) || Json <- Stored] =:= [{ok, Token}, {ok, Seen}]
                    andalso sderl_web_token:proves(Text, Token)
                    andalso sderl_web_token:id(Text) =:= {ok, map_get(id, Token)}
                    andalso not lists:any(fun(T) -> sderl_web_token:proves(T, Token) end,
                                          [OtherText, Changed, Junk, ~"", <<Text/binary, "0">>])
                    andalso binary:match(iolist_to_binary(io_lib:format("~p", [Token])),
                                         binary:part(Text, 15, 32)) =:= nomatch
                    andalso (sderl_web_token:state(Token, Now) =:= active)
                        =:= (Expires =:= none orelse Now < Expires)
                    %% Once seen as expired it is expired at every time.
                    andalso sderl_web_token:state(Seen, 0) =:= sderl_web_token:state(Token, Now)
            end).

roles_test() ->
    ?assertEqual([{A, B} || {N, A} <- lists:enumerate(sderl_web_token:roles()),
                            {M, B} <- lists:enumerate(sderl_web_token:roles()), N >= M],
                 [{A, B} || A <- sderl_web_token:roles(), B <- sderl_web_token:roles(),
                            sderl_web_token:allows(A, B)]).

file_test_() ->
    {setup, fun() ->
        Dir = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(
            ["sderl-tokens-", os:getpid(), "-", erlang:unique_integer([positive])]
        )),
        ok = filelib:ensure_path(Dir),
        Dir
    end, fun file:del_dir_r/1, fun(Dir) ->
        File = filename:join([Dir, "below", "tokens"]),
        [{"made, found, revoked", ?_test(of_file(File))},
         {"refused", ?_test(refused(File))},
         {"many at once", {timeout, 60, ?_test(many(filename:join(Dir, "many")))}},
         {"a lock", ?_test(lock(filename:join(Dir, "a.lock")))},
         {"no lock", ?_test(no_lock(filename:join(Dir, "b.lock")))},
         {"read again", {timeout, 60, ?_test(read_again(filename:join(Dir, "again")))}},
         {"expired for good",
          {timeout, 600, ?_test(expired_for_good(filename:join(Dir, "ended")))}},
         {"a file of before", ?_test(file_of_before(filename:join(Dir, "before")))}]
    end}.

of_file(File) ->
    ?assertEqual({ok, []}, sderl_web_token_file:read(File)),
    {ok, Text, #{id := Id} = Token} = sderl_web_token_file:add(File, ~"ann", viewer, none),
    {ok, #file_info{mode = Mode}} = file:read_file_info(File),
    ?assertEqual(8#600, Mode band 8#777),
    {ok, Written} = file:read_file(File),
    ?assertEqual(nomatch, binary:match(Written, binary:part(Text, 15, 32))),
    ?assertEqual({ok, [Token]}, sderl_web_token_file:read(File)),
    ?assertMatch({error, _}, sderl_web_token_file:add(File, ~"ann", admin, none)),
    ?assertMatch({error, _}, sderl_web_token_file:add(File, ~"bob", admin, 1)),
    [?assertMatch({error, _}, sderl_web_token_file:add(File, Name, admin, none))
     || Name <- [~"", ~"a b", binary:copy(~"x", 65), <<"ann", 10>>]],
    {ok, #{revoked := At}} = sderl_web_token_file:revoke(File, ~"ann"),
    ?assert(is_integer(At)),
    {ok, #{revoked := At}} = sderl_web_token_file:revoke(File, Id),
    ?assertEqual({error, not_found}, sderl_web_token_file:revoke(File, ~"ann")),
    {ok, _, _} = sderl_web_token_file:add(File, ~"ann", admin, none),
    %% The lock of a program that was killed does not hinder.
    ok = file:write_file([File, ".lock"], ""),
    ok = file:change_time([File, ".lock"], {{2020, 1, 1}, {0, 0, 0}}),
    {ok, _, _} = sderl_web_token_file:add(File, ~"eve", admin, none).

refused(File) ->
    Why = fun(Text) ->
        ok = file:write_file(File, Text),
        {error, Sentence} = sderl_web_token_file:read(File),
        {error, _} = sderl_web_token_file:add(File, ~"new", viewer, none),
        unicode:characters_to_binary(Sentence)
    end,
    {ok, Good} = file:read_file(File),
    [?assertMatch({_, _}, binary:match(Why(Text), ~"is damaged"))
     || Text <- [~"", ~"{", ~"[]", ~"{\"version\":2,\"tokens\":[]}",
                 ~"{\"version\":1,\"tokens\":5}",
                 ~"{\"version\":1,\"tokens\":[{}]}",
                 binary:replace(Good, ~"\"admin\"", ~"\"god\"")]],
    ok = file:change_mode(File, 8#640),
    ?assertMatch({_, _}, binary:match(Why(Good), ~"(mode 0640): run chmod 600")).

%% One program has the lock at a time, and nobody waits for it for ever.
lock(Name) ->
    File = unicode:characters_to_binary(Name),
    {ok, Lock} = sderl_web_lock:take(File, 0),
    ?assert(sderl_web_lock:is_held(Lock)),
    {error, Why} = sderl_web_lock:take(File, 50),
    ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Why), ~"remove that file")),
    %% A program that hung for so long sees that another has taken its lock.
    ok = file:change_time(File, {{2020, 1, 1}, {0, 0, 0}}),
    {ok, Taken} = sderl_web_lock:take(File, 60_000),
    ?assertEqual([false, true], [sderl_web_lock:is_held(L) || L <- [Lock, Taken]]),
    ok = sderl_web_lock:release(Lock),
    ?assert(sderl_web_lock:is_held(Taken)),
    ok = sderl_web_lock:release(Taken),
    ?assertEqual([], filelib:wildcard(Name ++ "*")).

no_lock(Folder) ->
    ok = filelib:ensure_path(Folder),
    {error, Why} = sderl_web_lock:take(unicode:characters_to_binary(Folder), 60_000),
    ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Why), ~"is no file")).

%% A file that could not be read is read as soon as it can be, also where its time is the same as
%% before.
read_again(File) ->
    {ok, Text, _} = sderl_web_token_file:add(File, ~"ann", viewer, none),
    ?assertEqual({error, unavailable}, sderl_web_tokens:who(Text)),
    ?assertEqual({error, unavailable}, sderl_web_tokens:who(~"some")),
    {ok, Server} = sderl_web_tokens:start_link(#{token => fun() -> ~"main-one" end,
                                                 tokens_file => File}),
    {ok, #{name := ~"ann"} = Ann} = sderl_web_tokens:who(Text),
    ok = sderl_web_tokens:watch(Ann),
    {ok, Good} = file:read_file(File),
    Bad = binary:replace(Good, ~"version", ~"VERSION"),
    Stamp = fun() ->
        {ok, #file_info{mtime = M, ctime = C}} = file:read_file_info(File, [raw, {time, posix}]),
        {M, C}
    end,
    ok = logger:set_module_level(sderl_web_tokens, none),
    %% A change is seen by the file's time in seconds: the damaged file has another time than what
    %% was read, the good one the same as the damaged.
    Try = fun Try() ->
        ok = file:write_file(File, Bad),
        ok = sderl_web_tokens:look(),
        Read = sderl_web_tokens:who(Text),
        Damaged = Stamp(),
        ok = file:write_file(File, Good),
        case {Read, Stamp()} of
            {{error, unknown}, Damaged} -> ok;
            _ -> Try()
        end
    end,
    ok = Try(),
    %% The token was not revoked.
    receive {sderl_web_tokens, How} -> ?assertEqual(unreadable, How) after 0 -> error(not_told) end,
    ok = sderl_web_tokens:look(),
    ok = logger:unset_module_level(sderl_web_tokens),
    ?assertMatch({ok, #{name := ~"ann"}}, sderl_web_tokens:who(Text)),
    ok = gen_server:stop(Server).

%% A token that was seen to have expired stays expired when the clock is set back, also after a
%% restart. The test sets its end in the file later instead.
expired_for_good(File) ->
    Start = fun() ->
        {ok, Server} = sderl_web_tokens:start_link(#{token => fun() -> ~"main-one" end,
                                                     tokens_file => File}),
        Server
    end,
    Short = fun(Name) ->
        {ok, Text, #{id := Id}} =
            sderl_web_token_file:add(File, Name, viewer, sderl_mon_clock:machine_ms() + 2_000),
        {Text, Id}
    end,
    Await = fun(Condition) -> ok = sderl_fleet:await(Condition, 60_000) end,
    State = fun(Text) ->
        ok = sderl_web_tokens:look(),
        case sderl_web_tokens:who(Text) of {ok, _} -> active; {error, Why} -> Why end
    end,
    Server = Start(),
    {Ann, AnnId} = Short(~"ann"),
    Await(fun() -> State(Ann) =:= expired end),
    Await(fun() -> map_get(AnnId, ends(File)) =/= none end),
    ok = set_ahead(File),
    ?assertEqual(expired, State(Ann)),
    ok = gen_server:stop(Server),
    Again = Start(),
    ?assertEqual(expired, State(Ann)),
    ?assertMatch([#{name := ~"ann", state := expired}], sderl_web_tokens:list()),
    %% The name is free again, and a new token of that name counts.
    {ok, New, _} = sderl_web_token_file:add(File, ~"ann", viewer, none),
    ?assertEqual(active, State(New)),
    %% Also while the file cannot be written; it is written when that is possible.
    Locking = unicode:characters_to_binary([File, ".lock"]),
    %% On a busy machine a token may have been seen to have expired before the lock is taken.
    Locked = fun Locked(I) ->
        {Text, Id} = Short(<<"bob", (integer_to_binary(I))/binary>>),
        {ok, Taken} = sderl_web_lock:take(Locking, 60_000),
        case map_get(Id, ends(File)) of
            none -> {Text, Id, Taken};
            _ -> ok = sderl_web_lock:release(Taken), Locked(I + 1)
        end
    end,
    {Bob, BobId, Lock} = Locked(1),
    Await(fun() -> State(Bob) =:= expired end),
    Written = map_get(BobId, ends(File)),
    %% On a slow machine the lock may be old by now, and was taken over.
    ?assert(Written =:= none orelse not sderl_web_lock:is_held(Lock)),
    ok = set_ahead(File),
    ?assertEqual(expired, State(Bob)),
    ok = sderl_web_lock:release(Lock),
    ok = sderl_fleet:await(fun() -> map_get(BobId, ends(File)) =/= none end, 300_000),
    ok = gen_server:stop(Again).

ends(File) ->
    {ok, Tokens} = sderl_web_token_file:read(File),
    #{Id => Ended || #{id := Id, ended := Ended} <- Tokens}.

%% Sets the end of each token an hour later, as if the clock had been set back.
set_ahead(File) ->
    {ok, Tokens} = sderl_web_token_file:read(File),
    rewrite(File, [case Token of
        #{expires := none} -> Token;
        #{expires := Expires} -> Token#{expires := Expires + 3_600_000}
    end || Token <- Tokens], fun(Json) -> Json end).

rewrite(File, Tokens, Change) ->
    file:write_file(File, json:encode(#{
        version => 1, tokens => [Change(sderl_web_token:to_json(Token)) || Token <- Tokens]
    })).

%% A file of a version that did not note which tokens were seen to have expired.
file_of_before(File) ->
    {ok, _, _} = sderl_web_token_file:add(File, ~"ann", viewer, none),
    {ok, [Token]} = sderl_web_token_file:read(File),
    ok = rewrite(File, [Token], fun(Json) -> maps:remove(ended, Json) end),
    ?assertEqual({ok, [Token]}, sderl_web_token_file:read(File)).

%% Processes that add tokens at once lose none, though a program that was killed has left its lock.
many(File) ->
    ok = file:write_file([File, ".lock"], ""),
    ok = file:change_time([File, ".lock"], {{2020, 1, 1}, {0, 0, 0}}),
    Names = [<<"n", (integer_to_binary(N))/binary>> || N <- lists:seq(1, 12)],
    Pids = [spawn_monitor(fun() ->
        {ok, _, _} = sderl_web_token_file:add(File, Name, viewer, none)
    end) || Name <- Names],
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
     || {Pid, Ref} <- Pids],
    {ok, Tokens} = sderl_web_token_file:read(File),
    ?assertEqual(lists:sort(Names), lists:sort([Name || #{name := Name} <- Tokens])).

%% ---------------------------------------------------------------- fields and pages

%% A field's check accepts what its schema allows.
schema_test_() -> sderl_prop:eunit("a field is as its schema", 1000, fun prop_schema/0).

prop_schema() ->
    Type = oneof([{text, range(1, 5)}, {whole, range(-3, 0), range(1, 5)}, time, share, flag,
                  {word, [a, b]}, {texts, range(1, 2), range(1, 3)}, {words, [a, b]},
                  {choice, [{~"x", x, [{~"n", n, {whole, 0, 3}, required}]}, {~"y", y, []}]}]),
    Text = oneof([~"", ~"a", ~"b", ~"c", ~"abcd", ~"abcdefg"]),
    Value = oneof([Text, range(-5, 9), boolean(), 0.5, list(Text), #{~"kind" => ~"x", ~"n" => 1},
                   #{~"kind" => ~"x"}, #{~"kind" => ~"y"}, #{}, #{~"kind" => ~"z"}]),
    ?FORALL({T, V}, {Type, Value}, begin
        Taken = case sderl_web_fields:value(T, V) of {ok, _} -> true; _ -> false end,
        Taken =:= (sderl_web_json_schema:check(V, sderl_web_fields:schema(T), #{}) =:= [])
    end).

pages_test_() -> sderl_prop:eunit("pages make the whole", 300, fun prop_pages/0).

%% Elements that come and go between two pages do not matter: those that stay are listed once.
prop_pages() ->
    ?FORALL({Stay, Go, Come, Limit},
            {list(range(1, 60)), list(range(1, 60)), list(range(1, 60)), range(1, 5)},
            begin
                Stays = lists:usort(Stay),
                First = lists:usort(Stay ++ Go),
                Later = lists:usort(Stay ++ Come),
                Walk = fun Walk(All, After) ->
                    {Page, Next} = sderl_web_page:cut(All, fun(N) -> N end, After, Limit),
                    case Next of
                        none -> Page;
                        _ ->
                            {ok, Key} = sderl_web_page:decode(
                                names, sderl_web_page:encode(names, Next)),
                            Page ++ Walk(Later, Key)
                    end
                end,
                Told = Walk(First, none),
                Told =:= lists:usort(Told) andalso Stays -- Told =:= []
            end).

cursor_test() ->
    ?assertEqual(error, sderl_web_page:decode(nodes, sderl_web_page:encode(groups, ~"a"))),
    [?assertEqual(error, sderl_web_page:decode(nodes, Text))
     || Text <- [~"", ~"x", ~"=", <<255>>, base64:encode(~"[1]"), base64:encode(~"[\"nodes\"]")]].

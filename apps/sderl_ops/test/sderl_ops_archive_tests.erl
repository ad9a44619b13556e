%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_archive_tests).

-include_lib("eunit/include/eunit.hrl").

archive_test_() ->
    {foreach, fun folder/0, fun file:del_dir_r/1,
     [fun(Folder) -> {Title, fun() -> Test(Folder) end} end
      || {Title, Test} <- [
          {"the same files have the same sum", fun same/1},
          {"any difference has another", fun different/1},
          {"what was packed is what tar unpacks", fun unpacked/1},
          {"packed once, and again when it is damaged", fun once/1},
          {"an archive is taken as it is, if its sum is right", fun given/1},
          {"those that nobody needs are deleted", fun kept/1},
          {"code comes by application", fun code/1},
          {"what cannot be packed is told", fun refused/1}
      ]]}.

folder() ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Name = ["sderl_ops_archive_", os:getpid(), "_", Unique],
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), Name),
    ok = filelib:ensure_path(Folder),
    unicode:characters_to_list(Folder).

same(Folder) ->
    %% Made in another order, at another time, with other permissions.
    ok = put_files([{"a", "1"}, {"d/b", "2"}, {"d/c", "3"}], filename:join(Folder, "one")),
    ok = put_files([{"d/c", "3"}, {"d/b", "2"}, {"a", "1"}], filename:join(Folder, "two")),
    ok = file:change_mode(filename:join(Folder, "two/a"), 8#600),
    ok = file:change_time(filename:join(Folder, "two/a"), {{2001, 2, 3}, {4, 5, 6}}),
    {Sha, Archive} = pack("one", "archives", Folder),
    {Sha, Other} = pack("two", "more archives", Folder),
    ?assertEqual(file:read_file(Archive), file:read_file(Other)),
    {ok, Bytes} = file:read_file(Archive),
    ?assertEqual(Sha, binary:encode_hex(crypto:hash(sha256, Bytes), lowercase)).

kept(Folder) ->
    ok = put_files([{"a", "1"}], filename:join(Folder, "one")),
    ok = put_files([{"a", "2"}], filename:join(Folder, "two")),
    {Sha, Archive} = pack("one", "archives", Folder),
    {_, Other} = pack("two", "archives", Folder),
    Archives = filename:join(Folder, "archives"),
    %% A recently used archive may belong to a revision that is about to come.
    ok = sderl_ops_archive:keep_only([Sha], Archives, 3_600),
    ?assert(filelib:is_file(Other)),
    ok = file:change_time(Other, {{2001, 2, 3}, {4, 5, 6}}),
    {_, Other} = pack("two", "archives", Folder),
    ok = sderl_ops_archive:keep_only([Sha], Archives, 3_600),
    ?assert(filelib:is_file(Other)),
    ok = file:change_time(Other, {{2001, 2, 3}, {4, 5, 6}}),
    ok = sderl_ops_archive:keep_only([Sha], Archives, 3_600),
    ?assertEqual({true, false}, {filelib:is_file(Archive), filelib:is_file(Other)}),
    {_, Other} = pack("two", "archives", Folder),
    ok = sderl_ops_archive:keep_only([Sha], Archives, 0),
    ?assertEqual({true, false}, {filelib:is_file(Archive), filelib:is_file(Other)}),
    %% It can be made again.
    {_, Other} = pack("two", "archives", Folder),
    ?assert(filelib:is_file(Other)),
    ok = sderl_ops_archive:keep_only([], filename:join(Folder, "no such folder"), 0).

different(Folder) ->
    Change = fun(Fun) ->
        _ = file:del_dir_r(filename:join(Folder, "one")),
        ok = put_files([{"a", "1"}, {"b", "2"}], filename:join(Folder, "one")),
        ok = Fun(),
        {Sha, _} = pack("one", "archives", Folder),
        Sha
    end,
    In = fun(Name) -> filename:join([Folder, "one", Name]) end,
    Shas = [Change(Fun) || Fun <- [
        fun() -> ok end,
        fun() -> file:write_file(In("a"), "2") end,
        fun() -> file:write_file(In("c"), "") end,
        fun() -> file:change_mode(In("a"), 8#755) end,
        fun() -> file:rename(In("a"), In("aa")) end,
        fun() -> file:delete(In("b")) end,
        fun() -> file:make_symlink("b", In("l")) end,
        fun() -> file:make_symlink("a", In("l")) end
    ]],
    ?assertEqual(length(Shas), length(lists:usort(Shas))).

unpacked(Folder) ->
    One = filename:join(Folder, "one"),
    Long = string:copies("long/", 30) ++ string:copies("n", 90),
    {Big, _} = rand:bytes_s(600_000, rand:seed_s(exsss, 1)),
    Files = [{"a", ~"1"}, {"empty", ~""}, {"exact", binary:copy(~"x", 512)},
             {Long, ~"deep"}, {"big", Big}, {[228, 32, $"], ~"odd"}],
    ok = put_files(Files, One),
    ok = file:change_mode(filename:join(One, "a"), 8#755),
    Target = lists:duplicate(150, $t),
    ok = file:make_symlink(Target, filename:join(One, "link")),
    {_, Archive} = pack("one", "archives", Folder),
    Two = filename:join(Folder, "two"),
    ok = filelib:ensure_path(Two),
    Run = fun(Command) ->
        ?assertEqual({ok, 0, ~""}, sderl_ops_port:run(Command, none, 60_000))
    end,
    Run(["tar", "-xzf", Archive, "-C", Two]),
    Run(["diff", "-r", "--no-dereference", One, Two]),
    ?assertEqual({ok, Target}, file:read_link(filename:join(Two, "link"))),
    Run(["test", "-x", filename:join(Two, "a")]).

once(Folder) ->
    ok = put_files([{"a", "1"}], filename:join(Folder, "one")),
    {Sha, Archive} = pack("one", "archives", Folder),
    {ok, Bytes} = file:read_file(Archive),
    [begin
        ok = Spoil(),
        ?assertEqual({Sha, Archive}, pack("one", "archives", Folder)),
        ?assertEqual({ok, Bytes}, file:read_file(Archive))
     end || Spoil <- [fun() -> ok end,
                      fun() -> file:write_file(Archive, "damaged") end,
                      fun() -> file:delete(Archive) end]],
    ?assertEqual(lists:sort(["packed", filename:basename(unicode:characters_to_list(Archive))]),
                 filelib:wildcard("*", filename:join(Folder, "archives"))).

given(Folder) ->
    File = filename:join(Folder, "shop.tar.gz"),
    ok = file:write_file(File, "not looked at"),
    Sha = binary:encode_hex(crypto:hash(sha256, "not looked at"), lowercase),
    Archives = filename:join(Folder, "archives"),
    Prepare = fun(Sum) -> sderl_ops_archive:prepare({archive, File, Sum}, Archives) end,
    {error, {wrong_checksum, File, ~"123", Sha} = Why} = Prepare(~"123"),
    ?assertMatch({_, _}, binary:match(sentence(Why), Sha)),
    ?assertEqual(["packed"], filelib:wildcard("*", Archives)),
    {ok, Sha, Archive} = Prepare(undefined),
    ?assertEqual({ok, Sha, Archive}, Prepare(Sha)),
    %% The checked copy is the service's own: the user may delete the original.
    ok = file:delete(File),
    ?assertEqual({ok, Sha, Archive}, Prepare(Sha)).

code(Folder) ->
    ok = put_files([{"x-1/ebin/x.app", ""}, {"x-1/ebin/x.beam", "code"}, {"x-1/priv/p", "more"},
                    {"x-1/src/x.erl", "not this"}, {"y/ebin/y.beam", "code"}],
                   filename:join(Folder, "lib")),
    Archives = filename:join(Folder, "archives"),
    Prepare = fun(Pattern) ->
        sderl_ops_archive:prepare({code, [filename:join(Folder, Pattern)]}, Archives)
    end,
    {ok, _, Archive} = Prepare("lib/*/ebin"),
    {ok, Names} = erl_tar:table(Archive, [compressed]),
    ?assertEqual(["lib/x/ebin/x.app", "lib/x/ebin/x.beam", "lib/x/priv/p", "lib/y/ebin/y.beam"],
                 Names),
    ok = put_files([{"x-2/ebin/x.app", ""}], filename:join(Folder, "lib")),
    {error, {twice, ~"x", _} = Twice} = Prepare("lib/*/ebin"),
    ?assertMatch({_, _}, binary:match(sentence(Twice), ~"x is there twice")),
    ?assertMatch({error, {nothing_there, _}}, Prepare("nowhere/*")).

refused(Folder) ->
    Prepare = fun(Source) ->
        {error, Why} = sderl_ops_archive:prepare(Source, filename:join(Folder, "archives")),
        ?assert(byte_size(sentence(Why)) > 10),
        element(1, Why)
    end,
    Nowhere = filename:join(Folder, "nowhere"),
    ?assertEqual(cannot_read, Prepare({folder, Nowhere})),
    ?assertEqual(cannot_read, Prepare({archive, Nowhere, undefined})),
    Empty = filename:join(Folder, "empty"),
    ok = filelib:ensure_path(Empty),
    ?assertEqual(nothing_there, Prepare({folder, Empty})),
    {ok, 0, _} = sderl_ops_port:run(["mkfifo", filename:join(Empty, "pipe")], none, 60_000),
    ?assertEqual(not_a_file, Prepare({folder, Empty})),
    File = filename:join(Folder, "file"),
    ok = file:write_file(File, ""),
    ?assertMatch({error, {cannot_write, _, _}},
                 sderl_ops_archive:prepare({folder, Empty}, filename:join(File, "archives"))).

pack(Name, Archives, Folder) ->
    {ok, Sha, Archive} = sderl_ops_archive:prepare({folder, filename:join(Folder, Name)},
                                                   filename:join(Folder, Archives)),
    {Sha, Archive}.

put_files(Files, Folder) ->
    lists:foreach(fun({Name, Text}) ->
        File = filename:join(Folder, Name),
        ok = filelib:ensure_dir(File),
        ok = file:write_file(File, Text)
    end, Files).

sentence(Why) -> unicode:characters_to_binary(sderl_ops_archive:format_error(Why)).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_kept_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

in_folder(Fun) ->
    fun() ->
        Dir =
            filename:join(filename:basedir(user_cache, "sderl_kept_tests"),
                          integer_to_list(erlang:unique_integer([positive])) ++ "_" ++ os:getpid()),
        try Fun(Dir)
        after file:del_dir_r(Dir)
        end
    end.

entry(Node, Group) ->
    #{node => Node, group => Group, uid => <<1:128>>, configured => false, epoch => 17, left => no,
      consistency => majority, answer => committed,
      membership => sderl_membership:forget(['b@h'], 5, sderl_membership:new([Node, 'b@h']))}.

file(Dir) ->
    [File] = filelib:wildcard(filename:join(Dir, "*.state")),
    File.

what_is_written_is_read_test_() ->
    in_folder(fun(Dir) ->
        ?assertEqual({[], []}, sderl_kept:read(Dir, 'a@h')),
        Entries = [entry('a@h', G) || G <- [g, {"any", term, 1.0}, <<"ü">>]],
        [?assertEqual(ok, sderl_kept:write(Dir, E)) || E <- [entry('c@h', g) | Entries]],
        Read = fun(Node) -> {Es, []} = sderl_kept:read(Dir, Node), lists:sort(Es) end,
        %% Each node its own.
        ?assertEqual(lists:sort(Entries), Read('a@h')),
        ?assertEqual([entry('c@h', g)], Read('c@h')),
        %% The newer takes the place of the older one.
        Left = (entry('c@h', g))#{left := {removed, 12}},
        ok = sderl_kept:write(Dir, Left),
        ?assertEqual([Left], Read('c@h')),
        ?assertEqual(4, length(element(2, file:list_dir(Dir)))),
        %% (The configuration gives it as a binary.)
        ?assertEqual({[Left], []}, sderl_kept:read(unicode:characters_to_binary(Dir), 'c@h')),
        ok = sderl_kept:forget_left(Dir, 'c@h', g, <<2:128>>),
        ?assertEqual([Left], Read('c@h')),
        ok = sderl_kept:forget_left(Dir, 'c@h', g, <<1:128>>),
        ok = sderl_kept:forget_left(Dir, 'a@h', g, <<1:128>>),
        ?assertEqual({[], 3}, {Read('c@h'), length(Read('a@h'))})
    end).

what_is_no_such_file_is_named_test_() ->
    in_folder(fun(Dir) ->
        ok = sderl_kept:write(Dir, entry('a@h', g)),
        File = file(Dir),
        {ok, Good} = file:read_file(File),
        <<Mark:12/binary, 1, Rest/binary>> = Good,
        Content = fun(Term) ->
            C = term_to_binary(Term),
            <<Mark/binary, 1, (erlang:md5(C))/binary, C/binary>>
        end,
        [begin
             ok = file:write_file(File, Data),
             ?assertEqual({Why, {[], [{File, Why}]}}, {Why, sderl_kept:read(Dir, 'a@h')})
         end || {Why, Data} <- [{not_a_state_file, <<>>}, {not_a_state_file, <<"hello">>},
                                {damaged, Mark},
                                {damaged, binary:part(Good, 0, byte_size(Good) - 1)},
                                {{version, 2}, <<Mark/binary, 2, Rest/binary>>},
                                {damaged, Content(hello)},
                                {damaged, Content((entry('a@h', g))#{membership := #{'a@h' => 1}})},
                                {damaged, Content((entry('a@h', g))#{left := yes})},
                                {misnamed, Content(entry('a@h', h))}]],
        %% A folder in its place.
        ok = file:delete(File),
        ok = file:make_dir(File),
        ?assertMatch({[], [{File, _}]}, sderl_kept:read(Dir, 'a@h')),
        ?assertMatch({error, {File, _}}, sderl_kept:write(Dir, entry('a@h', g)))
    end).

a_folder_that_cannot_be_is_named_test_() ->
    in_folder(fun(Dir) ->
        ok = sderl_kept:write(Dir, entry('a@h', g)),
        File = file(Dir),
        ?assertEqual({[], [{File, enotdir}]}, sderl_kept:read(File, 'a@h')),
        ?assertMatch({error, {_, enotdir}}, sderl_kept:write(File, entry('a@h', g)))
    end).

%% As files were before there were groups by majority, and as none is.
a_file_without_consistency_is_of_an_available_group_test_() ->
    in_folder(fun(Dir) ->
        Entry = entry('a@h', g),
        ?assertNot(sderl_kept:is_there(Dir, 'a@h', g)),
        ok = sderl_kept:write(Dir, maps:remove(consistency, Entry)),
        ?assertEqual({[Entry#{consistency := available}], []}, sderl_kept:read(Dir, 'a@h')),
        ok = sderl_kept:write(Dir, maps:remove(answer, Entry)),
        ?assertEqual({[Entry#{answer := committed}], []}, sderl_kept:read(Dir, 'a@h')),
        [begin
             ok = sderl_kept:write(Dir, Other),
             ?assertEqual({[], [{file(Dir), damaged}]}, sderl_kept:read(Dir, 'a@h'))
         end || Other <- [Entry#{answer := never}, Entry#{consistency := most}]],
        %% A damaged file is one all the same: the node may have voted.
        ?assert(sderl_kept:is_there(Dir, 'a@h', g)),
        ?assertNot(sderl_kept:is_there(Dir, 'b@h', g))
    end).

%% Whatever happens to its bytes, it is the entry or none.
damaged_files_property_test_() ->
    {timeout, 60, in_folder(fun(Dir) ->
        ok = sderl_kept:write(Dir, entry('a@h', g)),
        File = file(Dir),
        {ok, Good} = file:read_file(File),
        sderl_prop:check("a file with a byte changed is the entry or none", 300,
            ?FORALL({At, Byte}, {range(0, byte_size(Good) - 1), range(0, 255)}, begin
                <<Before:At/binary, _, After/binary>> = Good,
                ok = file:write_file(File, <<Before/binary, Byte, After/binary>>),
                case sderl_kept:read(Dir, 'a@h') of
                    {[Entry], []} -> Entry =:= entry('a@h', g);
                    {[], [{File, _}]} -> true
                end
            end))
    end)}.

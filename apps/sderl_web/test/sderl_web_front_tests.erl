%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_front_tests).

%% Front pages: what one may contain, and how the server keeps them.

-include_lib("eunit/include/eunit.hrl").

page() -> page(~"Shop", 0).

page(Name, Rev) ->
    #{
        ~"name" => Name, ~"window" => ~"hour", ~"rev" => Rev,
        ~"charts" => [
            #{~"metric" => ~"mem", ~"place" => #{~"kind" => ~"cluster"}},
            #{~"metric" => ~"orders{status=\"ok\"}",
              ~"place" => #{~"kind" => ~"group", ~"name" => ~"{g,1}"}}
        ]
    }.

good_test() ->
    {ok, #{name := ~"Shop", charts := [_, Chart]} = Page} = sderl_web_front:check(page()),
    ?assertEqual(#{metric => ~"orders{status=\"ok\"}",
                   place => #{kind => ~"group", name => ~"{g,1}"}}, Chart),
    %% What is kept is read again.
    {ok, Object} = sderl_web_parse:object(iolist_to_binary(sderl_web_json:term(Page))),
    ?assertEqual({ok, Page}, sderl_web_front:check(Object)).

bad_test_() ->
    Chart = #{~"metric" => ~"mem", ~"place" => #{~"kind" => ~"cluster"}},
    Place = fun(Given) -> Chart#{~"place" => Given} end,
    [
        {Says, ?_assertMatch({_, {_, _}}, {said(Wrong), binary:match(said(Wrong), Says)})}
     || {Wrong, Says} <- [
            {7, ~"name, window, charts and rev are its fields"},
            {(page())#{~"more" => 1}, ~"name, window, charts and rev are its fields"},
            {(page())#{~"name" => ~""}, ~"name is a text of 1 to 60 bytes"},
            {(page())#{~"name" => ~" Shop"}, ~"without blanks"},
            {(page())#{~"name" => ~"a\nb"}, ~"name is a text"},
            {(page())#{~"name" => binary:copy(~"x", 61)}, ~"name is a text"},
            {(page())#{~"window" => ~"year"}, ~"window is one of 15m, hour, day, week, month"},
            {(page())#{~"rev" => -1}, ~"rev is the whole number"},
            {(page())#{~"charts" => #{}}, ~"charts is a list of at most 24"},
            {(page())#{~"charts" => lists:duplicate(25, Chart)}, ~"charts is a list of at most 24"},
            {(page())#{~"charts" => [Chart | Chart]}, ~"charts is a list of at most 24"},
            {(page())#{~"charts" => [Chart, 7]}, ~"charts.2.metric and place"},
            {(page())#{~"charts" => [Chart#{~"metric" => 7}]}, ~"charts.1.metric is the name"},
            {(page())#{~"charts" => [Place(#{~"kind" => ~"host", ~"name" => ~"x"})]},
             ~"charts.1.place.kind is one of cluster, family, group and node"},
            {(page())#{~"charts" => [Place(#{~"kind" => ~"node"})]}, ~"charts.1.place.kind"},
            {(page())#{~"charts" => [Place(#{~"kind" => ~"cluster", ~"name" => ~"x"})]},
             ~"charts.1.place.kind"}
        ]
    ].

said(Wrong) ->
    {error, Why} = sderl_web_front:check(Wrong),
    unicode:characters_to_binary(Why).

%% ---------------------------------------------------------------- the server

%% Runs a test with a server of that file, and deletes the file.
with(File, Test) ->
    {ok, Server} = sderl_web_fronts:start_link(File),
    try
        Test()
    after
        gen_server:stop(Server)
    end.

folder() ->
    Dir = filename:join(filename:basedir(user_cache, "sderl_web_front_tests"),
                        integer_to_list(erlang:unique_integer([positive]))
                        ++ os:getpid()),
    ok = filelib:ensure_path(Dir),
    Dir.

ask(Op, Args) -> ask(Op, Args, true).

ask(Op, Args, Writable) ->
    Object = maps:from_list([{atom_to_binary(Key), Value} || Key := Value <- Args]),
    {ok, Checked} = sderl_web_fields:check(sderl_web_protocol:fields(Op), Object),
    case sderl_web_fronts:answer(Op, Checked, Writable) of
        {ok, Json} -> {ok, json:decode(iolist_to_binary(Json))};
        {error, Code, Why} -> {error, Code, unicode:characters_to_binary(Why)}
    end.

kept_test() ->
    Dir = folder(),
    File = filename:join(Dir, "fronts.json"),
    with(File, fun() ->
        ?assertEqual({ok, #{~"pages" => [], ~"kept" => true, ~"problem" => null}},
                     ask(fronts, #{})),
        ?assertMatch({ok, #{~"rev" := 1}}, ask(save_front, #{page => page()})),
        %% There is a page of that name already; and its revision is 1.
        ?assertMatch({error, conflict, _}, ask(save_front, #{page => page()})),
        ?assertMatch({error, conflict, _}, ask(save_front, #{page => page(~"Shop", 2)})),
        ?assertMatch({error, conflict, _}, ask(save_front, #{page => page(~"Gone", 2)})),
        ?assertMatch({ok, #{~"rev" := 2}}, ask(save_front, #{page => page(~"Shop", 1)})),
        ?assertMatch({ok, _}, ask(save_front, #{page => page(<<"Ö"/utf8>>, 0)})),
        ?assertMatch({error, forbidden, _}, ask(save_front, #{page => page(~"X", 0)}, false)),
        ?assertMatch({error, forbidden, _},
                     ask(delete_front, #{name => ~"Shop", rev => 2}, false))
    end),
    with(File, fun() ->
        {ok, #{~"pages" := Pages}} = ask(fronts, #{}),
        ?assertEqual([{~"Shop", 2}, {<<"Ö"/utf8>>, 1}],
                     [{Name, Rev} || #{~"name" := Name, ~"rev" := Rev} <- Pages]),
        ?assertMatch({error, conflict, _}, ask(delete_front, #{name => ~"Shop", rev => 1})),
        ?assertEqual({ok, null}, ask(delete_front, #{name => ~"Shop", rev => 2})),
        ?assertMatch({error, not_found, _}, ask(delete_front, #{name => ~"Shop", rev => 2}))
    end),
    ok = file:del_dir_r(Dir).

%% A file that cannot be read is not overwritten, and a page that could not be written is not
%% reported as saved.
damaged_test() ->
    Dir = folder(),
    File = filename:join(Dir, "fronts.json"),
    lists:foreach(fun(Text) ->
        ok = file:write_file(File, Text),
        ok = logger:set_module_level(sderl_web_fronts, none),
        with(File, fun() ->
            {ok, #{~"pages" := [], ~"kept" := false, ~"problem" := Problem}} = ask(fronts, #{}),
            ?assertMatch({_, _}, binary:match(Problem, ~"fronts.json")),
            ?assertMatch({error, unavailable, _}, ask(save_front, #{page => page()}))
        end),
        ok = logger:unset_module_level(sderl_web_fronts),
        ?assertEqual({ok, Text}, file:read_file(File))
    end, [~"", ~"[]", ~"{\"version\":2,\"pages\":[]}", ~"{\"version\":1,\"pages\":[{}]}",
          ~"{\"version\":1,\"pages\":{}}"]),
    %% A folder stands in the place of the file that is to be written.
    Blocked = filename:join(Dir, "blocked.json"),
    with(Blocked, fun() ->
        ok = filelib:ensure_path(Blocked ++ ".new"),
        ?assertMatch({error, unavailable, _}, ask(save_front, #{page => page()})),
        ?assertMatch({ok, #{~"pages" := []}}, ask(fronts, #{}))
    end),
    ok = file:del_dir_r(Dir).

%% A file that could not be read again is not written.
large_test_() -> {timeout, 60, fun large/0}.

large() ->
    Dir = folder(),
    File = filename:join(Dir, "fronts.json"),
    %% JSON writes each of these characters as six.
    Chart = #{~"metric" => binary:copy(<<1>>, 640),
              ~"place" => #{~"kind" => ~"node", ~"name" => binary:copy(<<1>>, 255)}},
    Save = fun(I) ->
        Page = (page(integer_to_binary(I), 0))#{~"charts" := lists:duplicate(24, Chart)},
        ask(save_front, #{page => Page})
    end,
    Saved = fun Saved(I) ->
        case Save(I) of
            {ok, _} when I < 100 -> Saved(I + 1);
            Refused -> {I - 1, Refused}
        end
    end,
    Count = with(File, fun() ->
        {N, Refused} = Saved(1),
        ?assertMatch({error, too_large, _}, Refused),
        N
    end),
    with(File, fun() ->
        {ok, #{~"pages" := Pages, ~"problem" := null}} = ask(fronts, #{}),
        ?assertEqual(Count, length(Pages))
    end),
    ok = file:del_dir_r(Dir).

full_test() ->
    with(none, fun() ->
        [{ok, _} = ask(save_front, #{page => page(integer_to_binary(I), 0)})
         || I <- lists:seq(1, 100)],
        ?assertMatch({error, too_large, _}, ask(save_front, #{page => page()})),
        ?assertMatch({ok, #{~"kept" := false, ~"problem" := null}}, ask(fronts, #{}))
    end).

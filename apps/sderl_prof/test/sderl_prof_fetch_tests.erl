%% SPDX-License-Identifier: Apache-2.0
%% What is fetched and removed when files change, of this node as if its folder were another one's.
-module(sderl_prof_fetch_tests).

-include_lib("eunit/include/eunit.hrl").

-import(sderl_prof_files, [with_dir/1]).

-define(BYTES, 100_000).

fetch_test_() ->
    [
        {Name, {timeout, 120, fun() -> with_dir(fun(Root) -> Case(folders(Root)) end) end}}
     || {Name, Case} <- [
            {"all comes, and is removed", fun whole/1},
            {"a folder with a name in binary", fun binary/1},
            {"a file that grows before it is fetched", fun grows_before/1},
            {"a file that grows after it was fetched", fun grows_after/1},
            {"a file that is new", fun new_file/1},
            {"a recording that goes on", fun goes_on/1},
            {"what an interrupted fetch has left", fun leftover/1},
            {"a part in ranges", fun part/1},
            {"a node whose name is none", fun bad_name/1}
        ]
    ].

%% The folder to fetch into, and a recording on the node's side.
folders(Root) ->
    There = filename:join(Root, "there"),
    ok = filelib:ensure_path(There),
    ok = sderl_prof_files:recording(There, #{ended_at => 1}, []),
    ok = file:write_file(filename:join(There, "events.0.trace"), rand:bytes(?BYTES)),
    {filename:join(Root, "here"), There}.

fetch({Here, There}, Options) ->
    Entry = #{node => atom_to_binary(node()), dir => unicode:characters_to_binary(There),
              state => recorded, began => 1},
    sderl_prof_fetch:node(Here, Entry, maps:merge(#{piece => 4096, range => 30_000}, Options)).

of_node(Dir) -> filename:join(Dir, atom_to_list(node())).

content(Dir) ->
    {ok, Names} = file:list_dir(Dir),
    [begin
         {ok, Bin} = file:read_file(filename:join(Dir, Name)),
         {Name, Bin}
     end || Name <- lists:sort(Names)].

append(There, Name) ->
    ok = file:write_file(filename:join(There, Name), ~"more", [append]).

%% A progress callback that runs the function once, when so many bytes have come.
at(Bytes, Fun) ->
    Done = counters:new(1, []),
    fun(_, Here, _) ->
        case Here >= Bytes andalso counters:get(Done, 1) of
            0 ->
                ok = counters:add(Done, 1, 1),
                Fun();
            _ -> ok
        end
    end.

whole({Here, There} = Folders) ->
    Content = content(There),
    All = lists:sum([byte_size(Bin) || {_, Bin} <- Content]),
    {ok, #{fetched := All, bytes := All, shared := false}} = fetch(Folders, #{}),
    ?assertEqual(Content, content(of_node(Here))),
    {ok, #{fetched := 0, bytes := All}} = fetch(Folders, #{remove => true}),
    ?assertEqual(Content, content(of_node(Here))),
    ?assertEqual({error, enoent}, file:list_dir(There)).

binary({Here, There} = Folders) ->
    {ok, #{}} = fetch(setelement(1, Folders, unicode:characters_to_binary(Here)), #{}),
    ?assertEqual(content(There), content(of_node(Here))).

%% A file that grows meanwhile is not taken as complete, and nothing is removed.
grows_before({Here, There} = Folders) ->
    Grow = at(0, fun() -> append(There, "recording") end),
    ?assertEqual({error, {changed, "recording"}},
                 fetch(Folders, #{progress => Grow, remove => true})),
    ?assertMatch([{"events.0.trace", _}, {"recording", _}], content(There)),
    ?assertNot(filelib:is_file(filename:join(of_node(Here), "recording"))).

grows_after({Here, There} = Folders) ->
    Grow = at(?BYTES + 1, fun() -> append(There, "events.0.trace") end),
    {error, {changed, _} = Why} = fetch(Folders, #{progress => Grow, remove => true}),
    ?assertNotEqual(nomatch, string:find(sderl_prof_fetch:format_error(Why), "fetch again")),
    [{_, Grown}, {"recording", _}] = content(There),
    ?assertEqual(?BYTES + 4, byte_size(Grown)),
    {ok, #{fetched := 4}} = fetch_again(Folders, Here),
    ?assertEqual(content(There), content(of_node(Here))).

%% Fetches again, with the file here as an incomplete one.
fetch_again(Folders, Here) ->
    File = filename:join(of_node(Here), "events.0.trace"),
    ok = file:rename(File, File ++ ".part"),
    fetch(Folders, #{}).

new_file({_, There} = Folders) ->
    Add = at(?BYTES, fun() -> append(There, "events.1.trace") end),
    {error, {changed, _}} = fetch(Folders, #{progress => Add, remove => true}),
    ?assertMatch([_, {"events.1.trace", ~"more"}, _], content(There)).

goes_on({_, There} = Folders) ->
    ok = sderl_prof_files:recording(There, #{ended_at => undefined}, []),
    Before = content(There),
    Session = trace:session_create(sderl_recording, self(), []),
    try
        [?assertEqual({error, still_recorded}, fetch(Folders, #{remove => Remove}))
         || Remove <- [true, false]],
        ?assertEqual(Before, content(There)),
        %% The recording has ended.
        ok = sderl_prof_files:recording(There, #{ended_at => 5}, []),
        {ok, #{}} = fetch(Folders, #{})
    after
        trace:session_destroy(Session)
    end,
    %% It never ended, as its node has died.
    ok = sderl_prof_files:recording(There, #{ended_at => undefined}, []),
    {ok, #{}} = fetch(Folders, #{}).

leftover({Here, There} = Folders) ->
    ok = filelib:ensure_path(of_node(Here)),
    ok = file:write_file(filename:join(of_node(Here), ".sderl-prof-here-1-1"), ~""),
    {ok, #{}} = fetch(Folders, #{}),
    ?assertEqual(content(There), content(of_node(Here))).

%% A part of the same file is continued; one of another file is dropped.
part({Here, There} = Folders) ->
    {ok, Bin} = file:read_file(filename:join(There, "events.0.trace")),
    Half = binary:part(Bin, 0, ?BYTES div 2),
    Part = filename:join(of_node(Here), "events.0.trace.part"),
    ok = filelib:ensure_dir(Part),
    ok = file:write_file(Part, Half),
    Rest = ?BYTES div 2 + filelib:file_size(filename:join(There, "recording")),
    ?assertMatch({ok, #{fetched := Rest}}, fetch(Folders, #{})),
    ?assertEqual(content(There), content(of_node(Here))),
    ok = file:delete(filename:join(of_node(Here), "events.0.trace")),
    ok = file:write_file(Part, binary:part(Half, 1, byte_size(Half) - 1)),
    ?assertMatch({ok, #{fetched := ?BYTES}}, fetch(Folders, #{})),
    ?assertEqual(content(There), content(of_node(Here))).

bad_name({Here, There}) ->
    Long = binary:copy(~"a", 300),
    {error, {bad_name, Long} = Why} =
        sderl_prof_fetch:node(Here, #{node => Long, dir => unicode:characters_to_binary(There),
                                      state => recorded, began => 1}, #{}),
    ?assertNotEqual(nomatch, string:find(sderl_prof_fetch:format_error(Why), "no name of a node")).

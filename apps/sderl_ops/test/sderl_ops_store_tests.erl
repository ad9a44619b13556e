%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_store_tests).

-include_lib("eunit/include/eunit.hrl").

store_test_() ->
    {setup, fun open/0, fun close/1, fun(Folder) ->
        [
            {"revisions", fun revisions/0},
            {"what is remembered", fun memory/0},
            {"history", fun history/0},
            {"what another version has stored", fun another_version/0},
            {"old revisions", fun old_revisions/0},
            {"over a restart", {timeout, 60, fun() -> restart(Folder) end}}
        ]
    end}.

open() ->
    Name = lists:concat(["sderl_ops_store-", os:getpid(), "-",
                         erlang:unique_integer([positive])]),
    Folder = filename:join(filename:basedir(user_cache, "sderl"), Name),
    ok = filelib:ensure_path(Folder),
    {ok, _} = application:ensure_all_started(khepri),
    ok = sderl_ops_store:open(Folder),
    Folder.

close(Folder) ->
    ok = sderl_ops_store:close(),
    ok = application:stop(khepri),
    ok = application:stop(ra),
    ok = file:del_dir_r(Folder).

revision(Why) -> #{prepared => #{}, by => ~"ann", at => 1, why => Why, force => false}.

revisions() ->
    ?assertEqual([], sderl_ops_store:clusters()),
    ?assertEqual({error, not_found}, sderl_ops_store:revision(~"shop", 1)),
    ?assertEqual(1, sderl_ops_store:add_revision(~"shop", revision(~"first"))),
    ?assertEqual(2, sderl_ops_store:add_revision(~"shop", revision(~"second"))),
    ?assertEqual({ok, revision(~"first")}, sderl_ops_store:revision(~"shop", 1)),
    ?assertEqual([{1, revision(~"first")}, {2, revision(~"second")}],
                 sderl_ops_store:revisions(~"shop")),
    ?assertEqual({2, revision(~"second")}, sderl_ops_store:latest(~"shop")),
    ?assertEqual([], sderl_ops_store:revisions(~"other")),
    ?assertEqual([~"shop"], sderl_ops_store:clusters()).

memory() ->
    ?assertEqual(#{}, sderl_ops_store:all(~"shop")),
    ok = sderl_ops_store:put(~"shop", assigned, #{~"web1" => ~"here/h1"}),
    ok = sderl_ops_store:put(~"shop", paused, true),
    ok = sderl_ops_store:put(~"shop", paused, false),
    ?assertEqual(#{assigned => #{~"web1" => ~"here/h1"}, paused => false},
                 sderl_ops_store:all(~"shop")).

%% Those that are needed stay: of what a family goes back to, and of hosts where something is left.
old_revisions() ->
    Add = fun(N) ->
        Host = case N of 5 -> ~"here/left"; _ -> ~"here/h1" end,
        N = sderl_ops_store:add_revision(~"old", (revision(~"again"))#{
            prepared => #{file => #{cluster => ~"old"}, hosts => #{Host => #{}}, archives => #{}}
        })
    end,
    _ = [Add(N) || N <- lists:seq(1, 104)],
    Memory = (sderl_ops_memory:new())#{good := #{~"web" => 2},
                                       assigned := #{~"web1" => ~"here/left"}},
    #{revision := 104, hosts := Hosts} = sderl_ops_stored:load(~"old", Memory, []),
    ?assertEqual([~"here/h1", ~"here/left"], lists:sort(maps:keys(Hosts))),
    _ = [Add(N) || N <- lists:seq(105, 110)],
    #{revision := 110} = sderl_ops_stored:load(~"old", Memory, []),
    ?assertEqual([2, 5 | lists:seq(11, 110)],
                 [N || {N, _} <- sderl_ops_store:revisions(~"old")]),
    ?assertEqual({error, not_found}, sderl_ops_store:revision(~"old", 1)).

another_version() ->
    1 = sderl_ops_store:add_revision(~"odd", #{
        prepared => #{file => #{cluster => ~"odd", of_later => true}, hosts => #{h => 1},
                      archives => #{}},
        by => ~"ann", at => 0, why => ~"", force => false
    }),
    #{desired := undefined, revision := 1, trouble := Trouble, hosts := #{h := 1}} =
        sderl_ops_stored:load(~"odd", sderl_ops_memory:new(), []),
    ?assertEqual("revision 1 cannot be kept by this version of the service (it was stored by a "
                 "version that is too different): apply its file again",
                 unicode:characters_to_list(Trouble)).

history() ->
    Entry = fun(N) -> #{at => N, by => ~"ann", what => {start, ~"web1"}, result => ok} end,
    [ok = sderl_ops_store:note(~"shop", Entry(N)) || N <- lists:seq(1, 30)],
    ?assertEqual([{29, Entry(29)}, {30, Entry(30)}], sderl_ops_store:history(~"shop", 2)),
    ?assertEqual(30, length(sderl_ops_store:history(~"shop", 1000))).

restart(Folder) ->
    Before = {sderl_ops_store:revisions(~"shop"), sderl_ops_store:all(~"shop"),
              sderl_ops_store:history(~"shop", 1000)},
    ok = sderl_ops_store:close(),
    ok = application:stop(khepri),
    ok = application:stop(ra),
    {ok, _} = application:ensure_all_started(khepri),
    ok = sderl_ops_store:open(Folder),
    ?assertEqual(Before, {sderl_ops_store:revisions(~"shop"), sderl_ops_store:all(~"shop"),
                          sderl_ops_store:history(~"shop", 1000)}).

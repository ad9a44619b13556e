%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_store_tests).

-include_lib("eunit/include/eunit.hrl").

store_test_() ->
    {setup, fun open/0, fun close/1, fun(Folder) ->
        [
            {"a machine that crashes at once", fun() -> crash(Folder) end},
            {"revisions", fun revisions/0},
            {"what is remembered", fun memory/0},
            {"history", fun history/0},
            {"pages of the history", fun pages/0},
            {"what another version has stored", fun another_version/0},
            {"old revisions", fun old_revisions/0},
            {"one that was deposed", fun deposed/0},
            {"over a restart", {timeout, 60, fun() -> restart(Folder) end}},
            {"in another store", {timeout, 60, fun() -> moved(Folder) end}}
        ]
    end}.

open() ->
    Name = lists:concat(["sderl_ops_store-", os:getpid(), "-",
                         erlang:unique_integer([positive])]),
    Folder = filename:join(filename:basedir(user_cache, "sderl"), Name),
    ok = filelib:ensure_path(store(Folder)),
    {ok, _} = application:ensure_all_started(khepri),
    ok = sderl_ops_store:open(store(Folder)),
    Folder.

close(Folder) ->
    ok = sderl_ops_store:close(),
    ok = application:stop(khepri),
    ok = application:stop(ra),
    ok = file:del_dir_r(Folder).

store(Folder) -> filename:join(Folder, "store").

revision(Why) -> #{prepared => #{}, by => ~"ann", at => 1, why => Why, force => false}.

%% Which files belong to the store is on disk before anything is decided.
crash(Folder) ->
    {ok, Names} = file:read_file(filename:join(store(Folder), "names.dets")),
    ?assertNotEqual(nomatch, binary:match(Names, sderl_ops_store:id())).

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
    ?assertEqual(none, sderl_ops_store:part(~"shop", assigned, none)),
    ok = sderl_ops_store:put(~"shop", assigned, #{~"web1" => ~"here/h1"}),
    ok = sderl_ops_store:put(~"shop", paused, true),
    ok = sderl_ops_store:put(~"shop", paused, false),
    ?assertEqual(#{~"web1" => ~"here/h1"}, sderl_ops_store:part(~"shop", assigned, none)),
    ?assertEqual(false, sderl_ops_store:part(~"shop", paused, none)).

%% Needed revisions are kept: those of roll-backs, and of hosts that still have instances.
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
    [N = sderl_ops_store:note(~"shop", Entry(N)) || N <- lists:seq(1, 30)],
    ?assertEqual([{30, Entry(30)}, {29, Entry(29)}], newest(~"shop", 2)),
    ?assertEqual(30, length(newest(~"shop", 1000))),
    %% If two members add entries, none is lost.
    Add = fun(N) -> N = sderl_ops_store:note(~"shop", Entry(N)) end,
    [begin as_other(fun() -> Add(2 * N - 1) end), Add(2 * N) end || N <- lists:seq(16, 65)],
    ?assertEqual([{N, Entry(N)} || N <- lists:seq(130, 1, -1)], newest(~"shop", 1000)),
    ?assertEqual([{130, Entry(130)}], newest(~"shop", 1)).

newest(Cluster, Most) ->
    #{entries := Entries} = sderl_ops_store:history(Cluster, #{limit => Most}),
    Entries.

%% Pages together have all entries, and filters find entries however old. Entries that were written
%% while the clock was an hour behind are found; deleted entries are not written again.
pages() ->
    Entry = fun(N) ->
        #{at => case N of 40 -> 1_000; _ -> 3_600_000 + N end,
          by => case N rem 10 of 0 -> ~"ann"; _ -> ~"service" end,
          kind => case N rem 2 of 0 -> request; 1 -> note end, what => pause, result => running}
    end,
    [N = sderl_ops_store:note(~"pages", Entry(N)) || N <- lists:seq(1, 50)],
    Numbers = fun(Wanted) -> numbers(#{limit => 7}, Wanted) end,
    ?assertEqual(lists:seq(50, 1, -1), Numbers(#{})),
    ?assertEqual(lists:seq(20, 1, -1), Numbers(#{before => 21})),
    ?assertEqual([50, 40, 30, 20, 10], Numbers(#{by => ~"ann"})),
    ?assertEqual([], Numbers(#{by => ~"eve"})),
    ?assertEqual(lists:seq(49, 1, -2), Numbers(#{kind => note})),
    ?assertEqual([39, 38], Numbers(#{since => 3_600_038, until => 3_600_039})),
    ?assertEqual([50, 30], Numbers(#{since => 3_600_030, by => ~"ann"})),
    ?assertEqual([], Numbers(#{since => 9_000_000_000})),
    ?assertEqual(#{entries => [], next => none},
                 sderl_ops_store:history(~"nosuch", #{limit => 7})),
    ok = sderl_ops_store:amend(~"pages", 50, (Entry(50))#{result := done}),
    [{50, #{result := done}}] = newest(~"pages", 1),
    ok = sderl_ops_store:amend(~"pages", 51, Entry(51)),
    [{50, _}] = newest(~"pages", 1).

numbers(Page, Wanted) ->
    #{entries := Entries, next := Next} =
        sderl_ops_store:history(~"pages", maps:merge(Wanted, Page)),
    [Number || {Number, _} <- Entries] ++ case Next of
        none -> [];
        _ -> numbers(Page, Wanted#{before => Next})
    end.

%% Nothing that it decides is stored, and nothing of what was stored since is lost.
deposed() ->
    Lease = fun(Epoch) ->
        khepri:put(sderl_ops_store, sderl_ops_store:lease_path(),
                   #{member => node(), epoch => Epoch, beat => 1})
    end,
    Entry = #{at => 1, by => ~"ann", what => {start, ~"web1"}, result => ok},
    Before = newest(~"shop", 1000),
    ok = Lease(5),
    as_member(5, fun() -> 131 = sderl_ops_store:note(~"shop", Entry) end),
    ok = Lease(6),
    as_member(5, fun() ->
        ?assertEqual({error, deposed}, sderl_ops_store:confirm(5)),
        ?assertError(_, sderl_ops_store:note(~"shop", Entry)),
        ?assertError(_, sderl_ops_store:amend(~"shop", 131, Entry)),
        ?assertError(_, sderl_ops_store:put(~"shop", paused, true)),
        ?assertError(_, sderl_ops_store:add_revision(~"shop", revision(~"late"))),
        ok = sderl_ops_store:drop_revisions(~"shop", [1])
    end),
    as_member(6, fun() -> ok = sderl_ops_store:confirm(6) end),
    ok = sderl_ops_store:confirm(none),
    ?assertEqual(length(Before) + 1, length(newest(~"shop", 1000))),
    ?assertMatch([{1, _}, {2, _}], sderl_ops_store:revisions(~"shop")),
    ?assertEqual(false, sderl_ops_store:part(~"shop", paused, none)),
    ?assertEqual([~"odd", ~"old", ~"shop"], sderl_ops_store:clusters()).

as_member(Epoch, Fun) -> as_other(fun() -> ok = sderl_ops_store:act_with(Epoch), Fun() end).

as_other(Fun) ->
    {Pid, Ref} = spawn_monitor(Fun),
    receive {'DOWN', Ref, process, Pid, Why} -> ?assertEqual(normal, Why) end.

restart(Folder) ->
    Before = all(),
    stop(),
    {ok, _} = application:ensure_all_started(khepri),
    ok = sderl_ops_store:open(store(Folder)),
    ?assertEqual(Before, all()).

%% All data of a service with one member is in the store that a member makes from it, wherever an
%% earlier attempt was interrupted.
moved(Folder) ->
    Before = all(),
    Self = #{node => node(), address => "127.0.0.1", port => 4381},
    Mark = #{self => Self, members => [Self], stage => blank},
    stop(),
    [begin
        ok = sderl_ops_moved:pack(Folder),
        ?assert(sderl_ops_moved:is_there(Folder)),
        ?assert(filelib:is_dir(store(Folder)))
     end || _ <- [once, again]],
    ok = sderl_ops_raft:write(Folder, Mark),
    [?assertEqual({ok, blank}, sderl_ops_raft:open(Folder)) || _ <- [once, again]],
    ?assert(filelib:is_dir(filename:join(Folder, "store-of-one"))),
    ok = sderl_ops_raft:write(Folder, Mark#{stage := founding}),
    ?assertEqual({ok, blank}, sderl_ops_raft:open(Folder)),
    ok = sderl_ops_raft:found(Folder, Mark, []),
    ?assertEqual(Before, all()),
    ?assertEqual({ok, none}, sderl_ops_raft:lease()),
    Lease = fun(Epoch) -> #{member => node(), epoch => Epoch, beat => 0} end,
    ?assertEqual(ok, sderl_ops_raft:swap(none, Lease(8))),
    ?assertMatch({error, _}, sderl_ops_raft:swap(none, Lease(9))),
    ?assertEqual({ok, Lease(8)}, sderl_ops_raft:lease()),
    stop(),
    ?assertEqual({ok, member}, sderl_ops_raft:open(Folder)),
    ok = sderl_ops_raft:fence(30_000),
    ?assertEqual(Before, all()),
    ?assertNot(sderl_ops_moved:is_there(Folder)).

all() ->
    {[{Cluster, sderl_ops_store:revisions(Cluster), newest(Cluster, 1000)}
      || Cluster <- sderl_ops_store:clusters()],
     [Part || {[clusters, _, memory, _], _} = Part <- sderl_ops_store:dump()]}.

stop() ->
    ok = sderl_ops_store:close(),
    _ = [application:stop(Name) || Name <- [khepri, ra]],
    ok.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_raft_tests).
-moduledoc "What a member's folder says of its part of the store, over restarts and losses.".

-include_lib("eunit/include/eunit.hrl").

-define(SELF, #{node => node(), address => "127.0.0.1", port => 4381}).

folder_test_() ->
    {timeout, 120, fun() -> sderl_ops_places:in_folder(fun folder/1) end}.

folder(Folder) ->
    ?assertEqual(none, sderl_ops_raft:read(Folder)),
    Mark = #{self => ?SELF, members => [?SELF], stage => blank},
    ok = sderl_ops_raft:write(Folder, Mark),
    ?assertEqual({ok, blank}, sderl_ops_raft:open(Folder)),
    try
        ok = sderl_ops_raft:found(Folder, Mark, []),
        {ok, #{stage := member, id := Id}} = sderl_ops_raft:read(Folder),
        ?assertEqual(Id, sderl_ops_store:id()),
        ?assertEqual(#{node() => {?SELF, joined}}, sderl_ops_raft:roster()),
        ?assertEqual({ok, #{node() => {?SELF, joined}}}, sderl_ops_raft:roster_now(10_000)),
        ?assertEqual({yes, no}, {sderl_ops_member:has_joined(node()),
                                 sderl_ops_member:has_joined(nobody)}),
        stop(),
        ?assertEqual({ok, member}, sderl_ops_raft:open(Folder)),
        ok = sderl_ops_raft:fence(30_000),
        ?assertEqual(#{node() => {?SELF, joined}}, sderl_ops_raft:roster()),
        stop(),
        %% A lost store is not replaced by a new one.
        ok = file:del_dir_r(filename:join(Folder, "store")),
        ?assertEqual({ok, blank}, sderl_ops_raft:open(Folder)),
        ?assertEqual(undefined, whereis(sderl_ops_store)),
        ?assertMatch({ok, #{stage := joining}}, sderl_ops_raft:read(Folder)),
        %% The files of an interrupted attempt to join are deleted.
        ?assertEqual({ok, blank}, sderl_ops_raft:open(Folder)),
        ?assertMatch({ok, #{stage := blank}}, sderl_ops_raft:read(Folder)),
        ?assertNot(filelib:is_dir(filename:join(Folder, "store")))
    after
        stop()
    end.

wrong_mark_test() ->
    sderl_ops_places:in_folder(fun(Folder) ->
        ok = file:write_file(filename:join(Folder, "member"), "#{self => 1"),
        ?assertMatch({error, _}, sderl_ops_raft:read(Folder)),
        ?assertMatch({error, _}, sderl_ops_raft:open(Folder))
    end).

stop() ->
    ok = sderl_ops_store:close(),
    _ = [application:stop(Name) || Name <- [khepri, ra]],
    ok.

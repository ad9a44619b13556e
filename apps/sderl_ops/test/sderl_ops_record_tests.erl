%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_record_tests).
-moduledoc "The record of a cluster, wherever the service is killed.".

-include_lib("eunit/include/eunit.hrl").

record_test_() ->
    {timeout, 120, fun() ->
        sderl_ops_places:in_folder(fun(Folder) ->
            ok = sderl_ops_store:open(Folder),
            try
                requests_end(),
                killed_between(),
                earlier_version(),
                another_cluster()
            after
                ok = sderl_ops_store:close(),
                ok = application:stop(khepri),
                ok = application:stop(ra)
            end
        end)
    end}.

%% A request ends with the next state other than working; a new revision ends an earlier one.
requests_end() ->
    1 = add_revision(~"shop", ~"apply /f"),
    Begun = request({revision, 1, ~"apply /f"}, sderl_ops_record:new()),
    ?assertEqual([{~"apply /f (revision 1)", running, undefined}], page(~"shop")),
    ?assertEqual(Begun, sderl_ops_record:state(working, [], 1, Begun)),
    ?assertEqual(Begun, sderl_ops_record:state(paused, [], 1, Begun)),
    ?assertEqual(#{}, sderl_ops_record:outcomes(~"shop")),
    Drained = request({drain, ~"web1"}, Begun),
    2 = add_revision(~"shop", ~"scale web to 2"),
    Replaced = request({revision, 2, ~"scale web to 2"}, Drained),
    Failed = sderl_ops_record:state(failed, ["web1: no"], 2, Replaced),
    ?assertEqual([{~"scale web to 2 (revision 2)", failed, ~"web1: no"},
                  {~"drain web1", failed, ~"web1: no"},
                  {~"apply /f (revision 1)", replaced, ~"by revision 2 before it was done"}],
                 page(~"shop")),
    ?assertEqual(#{1 => {replaced, 2}, 2 => {failed, [~"web1: no"]}},
                 sderl_ops_record:outcomes(~"shop")),
    %% It failed, with its reason; later problems do not belong to it.
    Paused = request(pause, Failed),
    ?assertEqual(Paused, sderl_ops_record:state(failed, ["another"], 2, Paused)),
    Resumed = request(resume, Paused),
    Done = sderl_ops_record:state(steady, [], 2, Resumed),
    ?assertMatch([{~"resume", done, undefined}, {~"pause", done, undefined},
                  {~"scale web to 2 (revision 2)", failed, _} | _], page(~"shop")),
    ?assertMatch(#{2 := done}, sderl_ops_record:outcomes(~"shop")),
    ?assertEqual(Done, sderl_ops_record:state(failed, ["a host is away"], 2, Done)),
    Start = {start, ~"web1"},
    ok = sderl_ops_record:write(
        sderl_ops_record:ended([{Start, {ok, told}}, {Start, {error, ~"no"}}],
                               [{failed, Start, ~"no"}, {good, ~"web", 2}], 1), ~"shop"),
    ?assertMatch([{~"web runs as revision 2 says", done, undefined},
                  {~"start web1", failed, ~"no"}, {~"start web1", done, undefined} | _],
                 page(~"shop")).

%% The next service ends running requests, also those not stored beside their entries; and a
%% revision without an entry gets one.
killed_between() ->
    Loaded = sderl_ops_record:load(~"shop"),
    _ = request({undrain, ~"web1"}, Loaded),
    _ = sderl_ops_store:note(~"shop", sderl_ops_entry:request(~"ann", {adopt, ~"web1"}, 1)),
    3 = add_revision(~"shop", ~"destroy"),
    Next = sderl_ops_record:load(~"shop"),
    ?assertMatch([{~"destroy (revision 3)", running, _}, {~"adopt web1", running, _},
                  {~"undrain web1", running, _} | _], page(~"shop")),
    _ = sderl_ops_record:state(destroyed, [], 3, Next),
    ?assertMatch([{~"destroy (revision 3)", done, _}, {~"adopt web1", done, _},
                  {~"undrain web1", done, _} | _], page(~"shop")),
    Length = length(page(~"shop")),
    _ = sderl_ops_record:load(~"shop"),
    ?assertEqual(Length, length(page(~"shop"))).

%% An earlier version wrote entries without results.
earlier_version() ->
    1 = add_revision(~"old", ~"apply /f"),
    _ = sderl_ops_store:note(~"old", #{at => 1, by => ~"ann", what => {revision, 1, ~"apply /f"},
                                       result => ok}),
    Loaded = sderl_ops_record:load(~"old"),
    ?assertEqual([{~"apply /f (revision 1)", accepted, undefined}], page(~"old")),
    _ = sderl_ops_record:state(steady, [], 1, Loaded),
    ?assertEqual(#{1 => done}, sderl_ops_record:outcomes(~"old")),
    %% Nothing runs, so it does not matter.
    ?assertMatch(#{entries := [_ | _]},
                 sderl_ops_record:page(~"old", #{limit => 9}, fun() -> error(asked) end)).

another_cluster() ->
    Shop = sderl_ops_record:load(~"shop"),
    1 = add_revision(~"other", ~"apply /g"),
    Other = sderl_ops_record:request(~"ann", {revision, 1, ~"apply /g"}, ~"other", Shop),
    _ = sderl_ops_record:state(steady, [], 1, Other),
    ?assertEqual([{~"apply /g (revision 1)", done, undefined}], page(~"other")),
    4 = add_revision(~"shop", ~"apply /f"),
    _ = sderl_ops_record:request(~"ann", {revision, 4, ~"apply /f"}, ~"shop", Other),
    ?assertMatch(#{1 := {replaced, 2}, 2 := done, 3 := done},
                 sderl_ops_record:outcomes(~"shop")).

add_revision(Cluster, Why) ->
    sderl_ops_store:add_revision(Cluster, #{prepared => #{}, by => ~"ann", at => 1, why => Why,
                                            force => false}).

request(What, Record) -> sderl_ops_record:request(~"ann", What, ~"shop", Record).

page(Cluster) ->
    #{entries := Entries, next := undefined} =
        sderl_ops_record:page(Cluster, #{limit => 500}, fun() -> false end),
    [{What, Result, Why} || #{what := What, result := Result, why := Why} <- Entries].

%% SPDX-License-Identifier: Apache-2.0
%% Plans from options, and the texts for wrong ones.
-module(sderl_prof_options_tests).

-include_lib("eunit/include/eunit.hrl").

flags_test_() ->
    [
        {lists:flatten(io_lib:format("~0p", [What])), fun() ->
            {ok, Plan} = sderl_prof_options:plan(#{what => What}),
            ?assertEqual(Flags, lists:sort(map_get(flags, Plan) -- [monotonic_timestamp])),
            ?assertEqual(Profile, lists:sort(map_get(system_profile, Plan)
                                             -- [monotonic_timestamp])),
            ?assert(lists:member(monotonic_timestamp, map_get(flags, Plan)))
        end}
     || {What, Flags, Profile} <- [
            {procs_basic, [procs], []},
            {procs, [procs], [exclusive, runnable_procs]},
            {running, [exiting, procs, running], [exclusive, runnable_procs]},
            {migration, [exiting, procs, running, scheduler_id], [exclusive, runnable_procs]},
            {message, [procs, 'receive', send], []},
            {garbage_collection, [garbage_collection, procs], []},
            {schedulers, [procs], [scheduler]},
            {ports, [], [runnable_ports]},
            {s_group, [arity, call, procs], []},
            {routed, [arity, call, procs], []},
            {{callgraph, [lists]}, [arity, call, procs, return_to], []},
            {concurrency, [exiting, garbage_collection, procs, running],
             [exclusive, runnable_procs]},
            {[messages, schedulers], [exiting, procs, 'receive', running, send],
             [exclusive, runnable_procs, scheduler]},
            {all, [exiting, garbage_collection, procs, 'receive', running, scheduler_id, send],
             [exclusive, runnable_ports, runnable_procs, scheduler]}
        ]
    ].

system_profile_has_times_test() ->
    {ok, #{system_profile := [monotonic_timestamp | _]}} =
        sderl_prof_options:plan(#{what => running}),
    {ok, #{system_profile := []}} = sderl_prof_options:plan(#{what => message}).

functions_test() ->
    {ok, #{functions := [{{lists, '_', '_'}, _}, {{maps, '_', '_'}, _}]}} =
        sderl_prof_options:plan(#{what => calls, modules => [maps, lists, maps]}),
    {ok, #{functions := Groups}} = sderl_prof_options:plan(#{what => s_group}),
    ?assert(lists:member({s_group, add_nodes, 2}, [Mfa || {Mfa, _} <- Groups])).

%% A share is chosen so that no more events are expected than allowed, by the trial's count, and
%% goes without the system profiler, which reports all processes.
share_test() ->
    {ok, #{who := {share, 7}, system_profile := [monotonic_timestamp, scheduler]}} =
        sderl_prof_options:plan(#{what => [concurrency, schedulers], share => 7}),
    {ok, #{who := all} = Refuses} = sderl_prof_options:plan(#{share => 1}),
    {ok, Shares} = sderl_prof_options:plan(#{above => share}),
    Within = fun sderl_prof_options:within/3,
    ?assertEqual(ok, Within(100.0, 100, Refuses)),
    ?assertEqual(ok, Within(1.0e9, infinity, Refuses)),
    ?assertEqual(too_much, Within(100.1, 100, Refuses)),
    ?assertEqual(ok, Within(100, 100, Shares)),
    ?assertEqual({share, 3}, Within(250.0, 100, Shares)),
    Self = self(),
    Tell = fun(#{events_s := Events}, Verdict) -> Self ! {tried, {Events, Verdict}} end,
    {ok, #{who := {share, 3}, system_profile := []} = Third, Cost} =
        sderl_prof_options:fitted(Shares, 100, fun
            (#{who := all}) -> {ok, #{events_s => 250.0}};
            (#{who := {share, 3}}) -> {ok, #{events_s => 90.0}}
        end, Tell),
    ?assertEqual(#{events_s => 90.0}, Cost),
    ?assertEqual([{250.0, {share, 3}}, {90.0, ok}], [receive {tried, One} -> One end || _ <- "12"]),
    TooMany = fun(_) -> {ok, #{events_s => 250.0}} end,
    ?assertEqual({error, {too_much, #{events_s => 250.0}, 100}},
                 sderl_prof_options:fitted(Refuses, 100, TooMany, Tell)),
    Gone = fun(_) -> {error, gone} end,
    ?assertEqual({error, gone}, sderl_prof_options:fitted(Shares, 100, Gone, Tell)),
    ?assertEqual({share, 6}, Within(101.0, 100, Third)),
    ?assertEqual(too_much, Within(1.0e9, 100, Third)),
    {ok, Of} = sderl_prof_options:plan(#{above => share, who => [kernel_sup]}),
    ?assertEqual(too_much, Within(250.0, 100, Of)).

wrong_test_() ->
    [
        {lists:flatten(io_lib:format("~0p", [Options])), fun() ->
            {error, Why} = sderl_prof_options:plan(Options),
            Text = unicode:characters_to_list(sderl_prof_options:format_error(Why)),
            ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Says)})
        end}
     || {Options, Says} <- [
            {[], "a map"},
            {#{wat => 1}, "no option wat"},
            {#{what => []}, "name one of"},
            {#{what => wat}, "wat cannot be recorded"},
            {#{what => [running | message]}, "message cannot be recorded"},
            {#{what => {callgraph, []}}, "cannot be recorded"},
            {#{what => {callgraph, [a | b]}}, "cannot be recorded"},
            {#{what => calls}, "modules"},
            {#{modules => ["lists"]}, "names of modules"},
            {#{who => []}, "who cannot be"},
            {#{who => [1]}, "who cannot be"},
            {#{seconds => 0}, "seconds cannot be 0"},
            {#{seconds => 1.0e9}, "at most 86400"},
            {#{bytes => 1}, "from 16777216"},
            {#{keep => all}, "first or last"},
            {#{max_events_s => 0}, "above 0"},
            {#{senders => yes}, "true or false"},
            {#{above => wat}, "refuse or share"},
            {#{share => 0}, "from 1 to 10000"},
            {#{share => 2, who => [kernel_sup]}, "leave who out"}
        ]
    ].

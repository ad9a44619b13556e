%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_tests).

%% The parts of the demo that need no second node.

-include_lib("eunit/include/eunit.hrl").

%% The clients, with a registry of this node only.

client_test_() ->
    {setup,
        fun() ->
            {ok, Server} = sderl_demo_server:start_link(sderl_demo_global, server()),
            Server
        end,
        fun(Server) -> gen_server:stop(Server) end,
        [
            fun lookups/0,
            fun calls/0,
            fun registrations/0,
            fun interrupted_call/0,
            fun wrong_server/0
        ]}.

lookups() ->
    Tally = sderl_demo_client:lookups(env(#{other => {server()}})),
    ?assert(sderl_demo_tally:count(lookups, Tally) > 0),
    ?assertEqual(0, sderl_demo_tally:count(missed_lookups, Tally)),
    lists:foreach(
        fun(Name) ->
            #{p50 := P50, p99 := P99} = sderl_demo_tally:percentiles(Name, Tally),
            ?assert(is_number(P50) andalso is_number(P99))
        end,
        [own_lookup_ns, other_lookup_ns]
    ),
    ?assertEqual(#{p50 => null, p99 => null}, sderl_demo_tally:percentiles(nothing, Tally)),
    Missing = sderl_demo_client:lookups(env(#{own => {{g1, nobody}}})),
    ?assertEqual(
        sderl_demo_tally:count(lookups, Missing), sderl_demo_tally:count(missed_lookups, Missing)
    ).

calls() ->
    Tally = sderl_demo_client:calls(env(#{other => {server()}})),
    ?assert(sderl_demo_tally:count(own_calls, Tally) > 0),
    ?assert(sderl_demo_tally:count(other_calls, Tally) > 0),
    ?assertEqual(#{}, sderl_demo_tally:failures(Tally)).

registrations() ->
    Tally = sderl_demo_client:registrations(env(#{})),
    ?assert(sderl_demo_tally:count(registrations, Tally) > 0),
    ?assertEqual(#{}, sderl_demo_tally:failures(Tally)),
    ?assertEqual([element(2, server())], sderl_demo_global:names(g1)).

interrupted_call() ->
    Server = {g1, {server, 9, 1}},
    Pid = spawn(fun() ->
        receive
            _Call -> exit(killed)
        end
    end),
    yes = global:register_name(Server, Pid),
    ?assertEqual({error, killed}, sderl_demo_server:call(Pid, Server, 0)),
    ?assertEqual({error, noproc}, sderl_demo_server:call(Pid, Server, 0)).

wrong_server() ->
    Pid = global:whereis_name(server()),
    ?assertMatch({error, {wrong_server, _}}, sderl_demo_server:call(Pid, {g1, other}, 0)),
    ?assertMatch({ok, _}, sderl_demo_server:call(Pid, server(), 1)).

server() -> {g1, {server, 1, 1}}.

env(More) ->
    maps:merge(
        #{
            registry => sderl_demo_global,
            home => g1,
            own => {server()},
            other => {},
            until_us => erlang:monotonic_time(microsecond) + 50_000,
            pause_ms => 0,
            work_ms => 0,
            tag => test,
            seed => 1
        },
        More
    ).

%% Verdict and table

verdict_test() ->
    Good = #{lost_calls => 0, missing_names => 0, leftover_names => 0, errors => 0},
    Bad = Good#{lost_calls := 2, errors := 1},
    ?assertEqual(ok, sderl_demo:verdict(#{stock => Bad, sd => Good})),
    ?assertEqual(
        {error, [{lost_calls, 2}, {errors, 1}]}, sderl_demo:verdict(#{stock => Good, sd => Bad})
    ).

broken_text_test() ->
    Results = #{stock => #{}, sd => #{lost_reasons => [<<"2 x timeout">>]}},
    Text = sderl_demo_text:broken([{lost_calls, 2}], Results),
    ?assertEqual(
        <<"in the s_groups: 2 calls lost that were not in flight at a kill\n  2 x timeout">>,
        unicode:characters_to_binary(Text)
    ).

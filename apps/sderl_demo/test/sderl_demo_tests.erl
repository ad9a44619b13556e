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
    Tally = run(lookups, #{other => {server()}}, [lookups]),
    ?assertEqual(0, sderl_demo_tally:count(missed_lookups, Tally)),
    lists:foreach(
        fun(Name) ->
            #{p50 := P50, p99 := P99} = sderl_demo_tally:percentiles(Name, Tally),
            ?assert(is_number(P50) andalso is_number(P99))
        end,
        [own_lookup_ns, other_lookup_ns]
    ),
    ?assertEqual(#{p50 => null, p99 => null}, sderl_demo_tally:percentiles(nothing, Tally)),
    Missing = run(lookups, #{own => {{g1, nobody}}}, [missed_lookups]),
    ?assertEqual(
        sderl_demo_tally:count(lookups, Missing), sderl_demo_tally:count(missed_lookups, Missing)
    ).

calls() ->
    Tally = run(calls, #{other => {server()}}, [own_calls, other_calls]),
    ?assertEqual(#{}, sderl_demo_tally:failures(Tally)).

registrations() ->
    Tally = run(registrations, #{}, [registrations]),
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

%% What a client counted. It is run again with twice the time until it has counted each of these: on
%% a busy machine it may not run at all in its time.
run(Client, Env, Counts) -> run(Client, Env, Counts, 50_000).

run(Client, Env, Counts, TimeUs) ->
    Tally = sderl_demo_client:Client(env(Env, TimeUs)),
    case [Count || Count <- Counts, sderl_demo_tally:count(Count, Tally) =:= 0] of
        [] -> Tally;
        None when TimeUs > 10_000_000 -> error({none_counted, Client, None, Tally});
        _None -> run(Client, Env, Counts, 2 * TimeUs)
    end.

env(More, TimeUs) ->
    maps:merge(
        #{
            registry => sderl_demo_global,
            home => g1,
            own => {server()},
            other => {},
            until_us => erlang:monotonic_time(microsecond) + TimeUs,
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

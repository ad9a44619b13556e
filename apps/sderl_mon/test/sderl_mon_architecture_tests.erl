%% The folders of sderl_mon and sderl_web: who may call whom (INTERNALS.md says what is in them).
-module(sderl_mon_architecture_tests).

-include_lib("eunit/include/eunit.hrl").

architecture_test_() ->
    [
        {atom_to_list(App), {setup, fun() -> sderl_architecture:read(App) end, fun(Read) -> sderl_architecture:test_rooms(Rooms, Read) end}}
     || {App, Rooms} <- [{sderl_mon, mon()}, {sderl_web, web()}]
    ].

declared_test_() ->
    [
        {"sderl_mon", ?_assertEqual([], sderl_architecture:undeclared(sderl_mon))},
        %% The commands, which are about to have an app of their own, are in sderl_web still.
        {"sderl_web", ?_assertEqual([], sderl_architecture:undeclared(sderl_web) -- [sderl_bench])}
    ].

mon() ->
    #{
        allowed => #{
            data => [],
            %% Loaded into nodes that have stock OTP alone.
            probe => [],
            history => [data],
            findings => [data],
            base => [data, history, findings],
            hub => [data, base, history, findings],
            agent => [data, base, probe, hub],
            master => [data, base, agent, hub],
            export => [data, hub],
            synthetic => [data, hub],
            src => [data, probe, history, findings, base, hub, agent, master, export, synthetic]
        },
        circles => [],
        named => []
    }.

web() ->
    #{
        allowed => #{
            base => [],
            protocol => [],
            feed => [base, protocol],
            http => [base, protocol, feed],
            src => [base, protocol, feed, http],
            cli => [base, feed, http, src]
        },
        circles => [],
        named => []
    }.

%% The folders of sderl_mon and sderl_web: who may call whom (INTERNALS.md and apps/sderl_web/README.md
%% say what is in them). Who may know which application is in sderl_apps_tests.
-module(sderl_mon_architecture_tests).

-include_lib("eunit/include/eunit.hrl").

architecture_test_() ->
    [
        {atom_to_list(App),
            {setup, fun() -> sderl_architecture:read(App) end, fun(Read) ->
                sderl_architecture:test_rooms(Rooms, Read)
            end}}
     || {App, Rooms} <- [{sderl_mon, mon()}, {sderl_web, web()}]
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
            src => [base, protocol, feed, http]
        },
        circles => [],
        named => []
    }.

%% The folders of sderl_mon: who may call whom (its README.md says what is
%% in them). Who may know which application is in sderl_apps_tests.
-module(sderl_mon_architecture_tests).

-include_lib("eunit/include/eunit.hrl").

architecture_test_() ->
    {setup, fun() -> sderl_architecture:read(sderl_mon) end, fun(Read) ->
        sderl_architecture:test_rooms(rooms(), Read)
    end}.

rooms() ->
    #{
        allowed => #{
            data => [],
            %% Loaded into nodes that have stock OTP alone.
            probe => [],
            history => [data],
            findings => [data],
            base => [data, history, findings],
            hub => [data, base, history, findings],
            log => [data, base],
            agent => [data, base, probe, hub, log],
            master => [data, base, agent, hub],
            archive => [data, base, history, hub],
            export => [data, base, hub],
            synthetic => [data, hub],
            src => [data, probe, history, findings, base, hub, archive, log, agent, master, export,
                    synthetic]
        },
        named => []
    }.

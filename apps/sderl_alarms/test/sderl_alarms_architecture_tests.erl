%% The folders of sderl_alarms: who may call whom (its README.md says what is in them). Who may know
%% which application is in sderl_apps_tests.
-module(sderl_alarms_architecture_tests).

-include_lib("eunit/include/eunit.hrl").

architecture_test_() ->
    {setup, fun() -> sderl_architecture:read(sderl_alarms) end, fun(Read) ->
        sderl_architecture:test_rooms(rooms(), Read)
    end}.

rooms() ->
    #{
        allowed => #{
            rules => [],
            core => [rules],
            server => [rules, core],
            src => [rules, core, server]
        },
        named => []
    }.

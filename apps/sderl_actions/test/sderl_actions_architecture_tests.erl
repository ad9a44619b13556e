%% The folders of sderl_actions: who may call whom (its README.md says what is in them). Who may
%% know which application is in sderl_apps_tests.
-module(sderl_actions_architecture_tests).

-include_lib("eunit/include/eunit.hrl").

architecture_test_() ->
    {setup, fun() -> sderl_architecture:read(sderl_actions) end, fun(Read) ->
        sderl_architecture:test_rooms(rooms(), Read)
    end}.

rooms() ->
    #{
        allowed => #{
            %% Loaded into nodes that have stock OTP alone.
            node => [],
            audit => [node],
            catalogue => [node],
            requests => [node, audit, catalogue],
            src => [node, audit, catalogue, requests]
        },
        named => []
    }.

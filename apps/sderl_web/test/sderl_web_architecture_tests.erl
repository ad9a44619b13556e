%% The folders of sderl_web: who may call whom (its README.md says what is
%% in them). Who may know which application is in sderl_apps_tests.
-module(sderl_web_architecture_tests).

-include_lib("eunit/include/eunit.hrl").

architecture_test_() ->
    {setup, fun() -> sderl_architecture:read(sderl_web) end, fun(Read) ->
        sderl_architecture:test_rooms(rooms(), Read)
    end}.

rooms() ->
    #{
        allowed => #{
            base => [],
            protocol => [],
            access => [base, protocol],
            rest => [base, protocol, access],
            feed => [base, protocol],
            resources => [base, protocol, access, rest, feed],
            http => [base, protocol, access, rest, feed, resources],
            src => [base, protocol, access, rest, feed, http]
        },
        named => []
    }.

%% Which folder of sderl_prof may call which; its README.md says what is in them. sderl_apps_tests
%% has the same of applications.
-module(sderl_prof_architecture_tests).

-include_lib("eunit/include/eunit.hrl").

architecture_test_() ->
    {setup, fun() -> sderl_architecture:read(sderl_prof) end, fun(Read) ->
        sderl_architecture:test_rooms(rooms(), Read)
    end}.

rooms() ->
    #{
        allowed => #{
            record => [],
            data => [record],
            analysis => [data],
            cluster => [record, data],
            export => [data, analysis, cluster],
            pages => [data, analysis],
            vm => [],
            src => [record, data, analysis, cluster, export, pages, vm],
            live => [src, record, data, cluster, pages]
        },
        named => []
    }.

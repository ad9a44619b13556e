%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_mon_tests).

%% bin/sderl mon: what it refuses before it starts anything, and a synthetic cluster from beginning
%% to end.

-include_lib("eunit/include/eunit.hrl").

run(Args) -> sderl_cli_mon:run(string:lexemes(Args, " ")).

refused_test_() ->
    Says = fun(Args) ->
        {usage, Text} = run(Args),
        unicode:characters_to_binary(Text)
    end,
    [
        ?_assertMatch(<<"--seed is missing", _/binary>>, Says("")),
        ?_assertMatch(<<"--seed: \"x\" is no name of a node", _/binary>>, Says("--seed x")),
        ?_assertMatch(<<"--replay shows a recording, --synthetic", _/binary>>,
                      Says("--replay x --synthetic")),
        ?_assertMatch(<<"--replay shows a recording, --seed", _/binary>>,
                      Says("--replay x --seed a@b")),
        ?_assertMatch(
            <<"--replay: nonexistent cannot be opened: no such file or directory; name a file ",
              _/binary>>,
            Says("--replay /nonexistent")
        ),
        ?_assertMatch(<<"--replay: dev ", _/binary>>, Says("--replay /dev")),
        ?_assertMatch(<<"--replay: null ", _/binary>>, Says("--replay /dev/null --once")),
        ?_assertMatch(
            <<"--record: cannot make the folder /dev/null/x: ", _/binary>>,
            Says("--synthetic --record /dev/null/x")
        ),
        ?_assertMatch(<<"--replay shows a recording, --archive", _/binary>>,
                      Says("--replay x --archive y")),
        ?_assertMatch(<<"--archive-mb is the size", _/binary>>, Says("--synthetic --archive-mb 5")),
        ?_assertMatch(<<"--archive-mb cannot be 0", _/binary>>,
                      Says("--synthetic --archive y --archive-mb 0")),
        ?_assertMatch(<<"--metrics names what is counted on the nodes", _/binary>>,
                      Says("--synthetic --metrics x")),
        ?_assertMatch(<<"--metrics: /nonexistent: no such file", _/binary>>,
                      Says("--seed a@b --metrics /nonexistent")),
        ?_assertMatch(<<"--metrics: /dev/null holds 0 terms; write one list", _/binary>>,
                      Says("--seed a@b --metrics /dev/null")),
        ?_assertMatch(<<"--otlp sends the numbers of a running cluster", _/binary>>,
                      Says("--synthetic --otlp http://x")),
        ?_assertMatch(<<"--otlp: sderl_mon: config otlp.url: \"x\" is no URL", _/binary>>,
                      Says("--seed a@b --otlp x")),
        ?_assertMatch(<<"--ip: \"x\" is no address", _/binary>>, Says("--synthetic --ip x")),
        ?_assertMatch(<<"--token is ", _/binary>>, Says("--synthetic --token short")),
        ?_assertMatch(<<"--tls-cert needs --tls-key", _/binary>>, Says("--synthetic --tls-cert x")),
        ?_assertMatch(<<"--tls-cert, --tls-key: x cannot be read: no such file", _/binary>>,
                      Says("--synthetic --tls-cert x --tls-key y")),
        ?_assertMatch(<<"--port cannot be 70000", _/binary>>, Says("--synthetic --port 70000")),
        ?_assertMatch({help, _}, run("--help"))
    ].

%% In a process of its own: it reads its mailbox.
synthetic_test_() ->
    {timeout, 60, {spawn, fun() ->
        Before = environment(),
        try
            ?assertEqual(
                ok, run("--synthetic --once --port 0 --nodes 20 --groups 4 --interval-ms 100")
            ),
            {ok, Listener} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
            {ok, Port} = inet:port(Listener),
            {error, Why} = run("--synthetic --once --port " ++ integer_to_list(Port)),
            ?assertMatch(<<"something else listens on port ", _/binary>>,
                         unicode:characters_to_binary(Why)),
            ok = gen_tcp:close(Listener)
        after
            _ = [application:stop(App) || App <- [sderl_web, sderl_mon]],
            ok = sderl_mon_synthetic:stop(),
            restore(Before)
        end
    end}}.

environment() ->
    _ = [application:load(App) || App <- [sderl_web, sderl_mon]],
    [{App, application:get_all_env(App)} || App <- [sderl_web, sderl_mon]].

restore(Before) ->
    _ = [application:unset_env(App, Key)
         || {App, _} <- Before, {Key, _} <- application:get_all_env(App)],
    application:set_env(Before).

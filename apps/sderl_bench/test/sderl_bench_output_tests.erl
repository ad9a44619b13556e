%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_output_tests).
-include_lib("eunit/include/eunit.hrl").

-define(O, sderl_bench_output).

shape_test() ->
    Line = ?O:line(?O:result(registry, #{impl => <<"pg">>, nodes => 3}, metrics(), ?O:now())),
    ?assertEqual($\n, binary:last(Line)),
    ?assertMatch([_, <<>>], binary:split(Line, <<"\n">>, [global])),
    #{
        <<"experiment">> := <<"registry">>,
        <<"params">> := #{<<"impl">> := <<"pg">>, <<"nodes">> := 3},
        <<"metrics">> := Metrics,
        <<"machine">> := Machine,
        <<"started">> := Started
    } = json:decode(Line),
    ?assertEqual(
        #{
            <<"pairs_per_s">> => 12346,
            <<"register_us">> => #{<<"p50">> => 1.235, <<"p99">> => null},
            <<"converged">> => true,
            <<"error_reasons">> => [<<"no">>]
        },
        Metrics
    ),
    ?assertMatch(#{<<"cores">> := Cores, <<"otp">> := <<_, _, _/binary>>} when Cores >= 1, Machine),
    ?assert(is_map_key(<<"memory_mib">>, Machine)),
    ?assert(is_integer(calendar:rfc3339_to_system_time(binary_to_list(Started)))).

metrics() ->
    #{
        pairs_per_s => 12345.6,
        register_us => #{p50 => 1.23456, p99 => undefined},
        converged => true,
        error_reasons => [<<"no">>]
    }.

file_test() ->
    File = filename:join(dir(), "results.json"),
    {ok, Output} = ?O:open(File),
    Result = ?O:result(join, #{}, #{}, ?O:now()),
    ok = ?O:write(Output, Result),
    ok = ?O:write(Output, Result),
    ok = ?O:close(Output),
    {ok, Text} = file:read_file(File),
    ?assertEqual(<<(?O:line(Result))/binary, (?O:line(Result))/binary>>, Text),
    ?assertNot(?O:is_stdout(Output)).

unwritable_test() ->
    File = filename:join([dir(), "no", "such", "folder"]),
    {error, Message} = ?O:open(File),
    ?assertEqual("cannot write " ++ File ++ ": no such file or directory",
                 unicode:characters_to_list(Message)).

none_test() ->
    {ok, None} = ?O:open(undefined),
    ?assertEqual(ok, ?O:write(None, ?O:result(join, #{}, #{}, ?O:now()))),
    ?assertEqual(ok, ?O:close(None)).

stdout_is_for_json_alone_test() ->
    {ok, Stdout} = ?O:open("-"),
    ?assert(?O:is_stdout(Stdout)),
    ?assertEqual(ok, ?O:say(Stdout, "this is not seen")).

%% A folder beside the compiled tests, in the build folder.
dir() ->
    Dir = filename:join(filename:dirname(code:which(?MODULE)), "output_tests"),
    ok = filelib:ensure_path(Dir),
    Dir.

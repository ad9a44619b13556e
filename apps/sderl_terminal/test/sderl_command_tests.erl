%% SPDX-License-Identifier: Apache-2.0
-module(sderl_command_tests).
-include_lib("eunit/include/eunit.hrl").

parse_test_() ->
    [
        ?_assertEqual({ok, #{size => 3}}, parse([])),
        ?_assertEqual({ok, #{size => 5, out => "-"}}, parse(["--size", "5", "--out", "-"])),
        ?_assertEqual({ok, #{size => 5, out => "x"}}, parse(["--size=5", "--out=x"])),
        ?_assertEqual({ok, #{size => 3, quiet => true}}, parse(["--quiet"]))
    ].

help_test() ->
    [
        begin
            {help, Text} = parse(Args),
            ?assertMatch({match, _}, re:run(Text, "bin/sderl bench x .*--size")),
            ?assertMatch({match, _}, re:run(Text, "how large"))
        end
     || Args <- [["--help"], ["-h"], ["--size", "1", "--help"]]
    ].

%% Lines of a paragraph flow; a list keeps its own.
help_flows_test() ->
    {help, Text} = sderl_command:parse(["-h"], ["x"],
                                       #{help => "One\ntwo.\n\nList:\n  a  b\n  c  d\nEnd.",
                                         arguments => []}),
    ?assertMatch({match, _}, re:run(Text, "One two\\.\n\nList:\n  a  b\n  c  d\nEnd\\.")).

complaint_test_() ->
    [
        {Text,
         ?_assertEqual(Text ++ "\n\"bin/sderl bench x --help\" lists the options.", usage(Args))}
     || {Text, Args} <- [
            {"there is no option or argument --colour", ["--colour", "red"]},
            {"there is no option or argument red", ["red"]},
            {"--size needs a value", ["--size"]},
            {"--size cannot be big: it is a whole number of at least 1", ["--size", "big"]},
            {"--size cannot be 0: it is a whole number of at least 1", ["--size", "0"]},
            {"--port cannot be 99999: it is a whole number from 0 to 65535", ["--port", "99999"]},
            {"--share cannot be 2: it is a number of at most 1.0", ["--share", "2"]}
        ]
    ].

usage(Args) ->
    {usage, Text} = parse(Args),
    unicode:characters_to_list(Text).

parse(Args) ->
    sderl_command:parse(Args, ["bench", "x"], #{
        arguments => [
            #{name => size, long => "-size", type => {integer, [{min, 1}]}, default => 3,
              help => "how large"},
            #{name => port, long => "-port", type => {integer, [{min, 0}, {max, 65535}]},
              required => false},
            #{name => share, long => "-share", type => {float, [{max, 1.0}]}, required => false},
            #{name => out, long => "-out", type => string, required => false},
            #{name => quiet, long => "-quiet", type => boolean, required => false}
        ]
    }).

times_test_() ->
    Time = fun(Text) -> sderl_command:time(since, #{since => Text}) end,
    [
        ?_assertEqual({ok, none}, sderl_command:time(since, #{})),
        ?_assertEqual({ok, 1_000_000_000_500}, Time("2001-09-09T01:46:40.5Z")),
        ?_assertEqual({ok, 1_000_000_000_000}, Time("2001-09-09T03:46:40+02:00"))
    ] ++
    [fun() ->
        {ok, T} = Time(Text),
        Age = erlang:system_time(millisecond) - T,
        ?assert(Age >= Ms andalso Age < Ms + 60_000, {Text, Age})
    end || {Text, Ms} <- [{"0s", 0}, {"90s", 90_000}, {"15m", 900_000}, {"2h", 7_200_000},
                          {"3d", 259_200_000}]] ++
    [?_assertMatch({wrong, _}, Time(Bad))
     || Bad <- ["", "1", "-5m", "5 m", "5w", "yesterday", "2001-09-09", "5mm", "ä"]].

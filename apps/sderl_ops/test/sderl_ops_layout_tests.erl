%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_layout_tests).

-include_lib("eunit/include/eunit.hrl").

layout() ->
    #{release => ~"abc", settings => ~"s1", node => ~"web1@10.0.0.1", names => long,
      cookie => ~"secret", start => [~"bin/start", ~"it's"]}.

code() -> (layout())#{start := {code, [~"sderl", ~"crypto"]}}.

files(Layout) ->
    {ok, Entries} = sderl_ops_layout:entries(~"web1", Layout),
    Archive = iolist_to_binary([Entries, sderl_ops_tar:closing()]),
    {ok, Files} = erl_tar:extract({binary, Archive}, [memory]),
    [{Name, Text} || {"web1/" ++ Name, Text} <- Files].

text(Name, Layout) ->
    {Name, Text} = lists:keyfind(Name, 1, files(Layout)),
    Text.

%% The file `instance` comes last: a host that has it has all others.
the_instance_is_last_test() ->
    Full = (layout())#{files => #{~"z" => ~"1"},
                       env => #{~"Z" => ~"1"},
                       commands => #{~"zz" => [~"x"]}},
    [?assertMatch({"instance", _}, lists:last(files(Layout)))
     || Layout <- [layout(), code(), Full]].

readiness_is_what_there_is_test() ->
    Wait = fun(Layout) ->
        {match, [Kind]} = re:run(text("instance", Layout), "wait_for (.*)\n",
                                 [{capture, all_but_first, binary}]),
        Kind
    end,
    ?assertEqual(~"settle", Wait(layout())),
    ?assertEqual(~"booted", Wait(code())),
    ?assertEqual(~"check", Wait((code())#{commands => #{~"check" => [~"true"]}})).

words_are_quoted_for_the_shell_test() ->
    ?assertEqual(~"exec 'bin/start' 'it'\\''s'\n", text("commands/start", layout())),
    Odd = (layout())#{env => #{~"A" => ~"$(x) `y` 'z'\nnext"}},
    ?assertEqual(~"export A='$(x) `y` '\\''z'\\''\nnext'\n", text("env", Odd)).

%% The parts that become a program are code that Erlang reads.
code_boots_with_its_applications_test() ->
    Start = text("commands/start", code()),
    {match, [Eval]} = re:run(Start, "-eval '(.*)' >>", [{capture, all_but_first, list}]),
    Plain = lists:flatten(string:replace(Eval, "'\\''", "'", all)),
    {ok, Tokens, _} = erl_scan:string(Plain),
    ?assertMatch({ok, _}, erl_parse:parse_exprs(Tokens)),
    ?assertMatch({_, _}, binary:match(Start, ~"-name 'web1@10.0.0.1'")),
    Short = text("commands/start", (code())#{names := short}),
    ?assertMatch({_, _}, binary:match(Short, ~"-sname ")).

%% Errors contain no part of a secret.
refused_test_() ->
    Bad = [
        #{release => ~"../x"},
        #{release => ~""},
        #{settings => ~"a b"},
        #{node => ~"web1"},
        #{node => ~"web1@host\nrelease x"},
        #{start => []},
        #{start => [~"a\0b"]},
        #{start => {code, [~"a', halt(), '"]}},
        #{stop => ~"bin/stop"},
        #{files => #{~"../x" => ~""}},
        #{files => #{~"/etc/passwd" => ~""}},
        #{files => #{~"a/../../x" => ~""}},
        #{files => #{~"" => ~""}},
        #{env => #{~"A B" => ~""}},
        #{env => #{~"SDERL_OPS_FOLDER" => ~""}},
        #{commands => #{~"a/b" => [~"x"]}},
        #{commands => #{~"check" => []}}
    ],
    [{lists:flatten(io_lib:format("~0tp", [Change])),
      fun() ->
          {error, Why} = sderl_ops_layout:entries(~"web1", maps:merge(layout(), Change)),
          ?assertMatch({bad_layout, _, _}, Why),
          ?assert(string:length(sderl_ops_host:format_error(Why)) > 10)
      end}
     || Change <- Bad]
        ++ [?_assertEqual({error, {bad_layout, ~"env", ~"PASSWORD"}},
                          sderl_ops_layout:entries(~"web1",
                              (layout())#{env => #{~"PASSWORD" => <<"s", 0>>}}))].

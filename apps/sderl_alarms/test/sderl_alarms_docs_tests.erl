%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_docs_tests).

%% What docs/alarms.md says of built-in alarms, metrics, rules and signatures is so.

-include_lib("eunit/include/eunit.hrl").

built_in_test() ->
    page(fun(Page) ->
        ?assertEqual(
            [{Alarm, Metric, level(Minor), level(Major), For}
             || #{alarm := Alarm, metric := Metric, minor := Minor, major := Major, for_s := For}
                    <- sderl_alarms_builtin:rules()],
            [{Alarm, Metric, Minor, Major, binary_to_integer(For)}
             || [Alarm, Metric, Minor, Major, For] <- rows(
                    Page, "^\\| `([a-z_]+)` \\| `([a-z_]+)` \\| ([-0-9.]+) \\| ([-0-9.]+) \\| "
                          "([0-9]+) s \\|")]
        ),
        [?assertMatch({Alarm, {_, _}}, {Alarm, binary:match(Page, Text)})
         || #{alarm := Alarm, cause := Cause, remedy := Remedy} <- sderl_alarms_builtin:rules(),
            Text <- [Cause, Remedy]]
    end).

level(none) -> ~"-";
level(N) -> iolist_to_binary(io_lib:format("~w", [N])).

findings_test() ->
    page(fun(Page) ->
        [_, Part] = binary:split(Page, ~"| alarm | raised when | |\n"),
        [Table, _] = binary:split(Part, ~"\n\n"),
        ?assertEqual([{Alarm, case On of true -> ~""; false -> ~"off" end}
                      || #{alarm := Alarm, on := On} <- sderl_alarms_builtin:findings()],
                     [{Alarm, Off}
                      || [Alarm, Off] <- rows(Table,
                                              "^\\| `([a-z_]+)` \\| [^|]* \\| ?(off|) ?\\|")])
    end).

metrics_test() ->
    page(fun(Page) ->
        ?assertEqual([{Name, atom_to_binary(Of)}
                      || #{name := Name, 'of' := Of} <- sderl_alarms_metrics:all()],
                     [{Name, Of}
                      || [Name, Of] <- rows(Page, "^\\| `([a-z_]+)` \\| (node|group|family) \\|")])
    end).

configuration_test() ->
    page(fun(Page) ->
        [_, Part] = binary:split(Page, ~"| key of `sderl_alarms` |"),
        [Table, _] = binary:split(Part, ~"\n\n"),
        ?assertEqual([atom_to_binary(Key) || {Key, _} <- sderl_alarms_config:keys()],
                     [Key || [Key] <- rows(Table, "^\\| `([a-z_]+)` \\|")])
    end).

%% The file of the page is one, and what its rules say they do.
example_test() ->
    page(fun(_) ->
        {ok, #{rules := Rules, routes := Routes}} =
            sderl_alarms_file:read(filename:join([root(), "docs", "examples", "alarms",
                                                  "rules.json"])),
        ?assertMatch([_, _, _, _], Rules -- sderl_alarms_rule:built_in()),
        ?assertMatch([#{least := major}, #{groups := [~"shop"]}, #{tags := [~"op"]}], Routes)
    end).

%% The receiver of the page takes what we sign, and nothing else.
signature_test() ->
    page(fun(Page) ->
        {match, [Program]} = re:run(Page, "```python\n(.*?)```",
                                    [dotall, {capture, all_but_first, binary}]),
        case os:find_executable("python3") of
            false -> ok;
            Python -> checked(Python, Program)
        end
    end).

checked(Python, Program) ->
    Secret = ~"0123456789abcdef",
    Body = ~"{\"id\":\"1\"}",
    Sign = fun(Key, T) -> iolist_to_binary(sderl_alarms_post:signature(Key, T, Body)) end,
    Asks = [{Secret, Sign(Secret, 1000), 1010}, {Secret, Sign(~"another secret..", 1000), 1010},
            {Secret, Sign(Secret, 1000), 2000}],
    Calls = [io_lib:format("print(is_genuine(b'~ts', '~ts', b'~ts', ~w))\n",
                           [Key, Header, Body, Now])
             || {Key, Header, Now} <- Asks],
    Port = open_port({spawn_executable, Python},
                     [{args, ["-c", iolist_to_binary([Program, Calls])]}, exit_status, binary]),
    ?assertEqual(~"True\nFalse\nFalse\n", output(Port, <<>>)).

output(Port, Said) ->
    receive
        {Port, {data, Text}} -> output(Port, <<Said/binary, Text/binary>>);
        {Port, {exit_status, 0}} -> Said
    end.

rows(Text, Pattern) ->
    case re:run(Text, Pattern, [global, multiline, {capture, all_but_first, binary}]) of
        {match, Rows} -> Rows;
        nomatch -> []
    end.

%% Where the documents are not in the tree there is nothing to compare.
page(Fun) ->
    case file:read_file(filename:join([root(), "docs", "alarms.md"])) of
        {ok, Page} -> Fun(Page);
        {error, enoent} -> ok
    end.

root() -> filename:join(code:lib_dir(sderl_alarms), "../../../..").

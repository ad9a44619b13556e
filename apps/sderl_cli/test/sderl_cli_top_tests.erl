%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_top_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

whole_table_test() ->
    Lines = [lists:flatten(unicode:characters_to_list(L))
             || L <- sderl_cli_top_screen:lines(data(), sderl_cli_top_screen:new(),
                                                #{columns => 120, rows => infinity})],
    Text = lists:flatten(lists:join("\n", Lines)),
    [?assert(string:find(Text, Part) =/= nomatch)
     || Part <- ["2 nodes up of 3, 1 group, 1 finding", "105 msg/s, 2.5 kB/s", "a@h > b@h",
                 "critical: c@h is down", "    Start it.", "33%"]],
    %% No help on keys if none are read.
    ?assertEqual(nomatch, string:find(Text, "quit")).

busiest_first_test() ->
    Order = fun(Keys) ->
        State = lists:foldl(fun sderl_cli_top_screen:key/2, sderl_cli_top_screen:new(), Keys),
        Lines = sderl_cli_top_screen:lines(data(), State, #{columns => 120, rows => 30}),
        [C || Line <- Lines, [C, $@ | _] <- [unicode:characters_to_list([Line])]]
    end,
    ?assertEqual("bac", Order([{view, nodes}])),
    ?assertEqual("abc", Order([{view, nodes}, sort])),
    ?assertEqual("ac", Order([{view, nodes}, down])),
    ?assertEqual("bac", Order([{view, nodes}, down, up, up])).

%% Groups and what is between them add up to the traffic above; names that nobody counts are no 0;
%% n2 before n10.
parts_test() ->
    #{topology := T, frame := F} = Data = data(),
    Stock = (node(up, [~"g"]))#{source := stock},
    Of = fun(In) -> #{nodes => In, coordinator => hd(In), names => 0, agent => undefined} end,
    Split = Data#{
        topology := T#{
            nodes := #{N => Stock#{groups := G}
                       || {N, G} <- [{~"n10@h", [~"g2"]}, {~"n2@h", [~"g10"]},
                                     {~"n1@h", [~"g10"]}]},
            groups := #{~"g2" => Of([~"n10@h"]), ~"g10" => Of([~"n2@h", ~"n1@h"])}
        },
        frame := F#{links := #{{~"n1@h", ~"n2@h"} => {30, 1}, {~"n1@h", ~"n10@h"} => {12, 1},
                               {~"n1@h", ~"another_monitor@h"} => {77, 1}}}
    },
    Lines = [unicode:characters_to_list([L])
             || L <- sderl_cli_top_screen:lines(Split, sderl_cli_top_screen:new(),
                                                #{columns => 160, rows => infinity})],
    Words = [string:lexemes(Line, " ") || Line <- Lines],
    ?assertMatch([["g2", "1", "1", "-", "-", "0" | _], ["g10", "2", "2", "-", "-", "30" | _]],
                 [W || ["g" ++ [C | _] | _] = W <- Words, C =/= $r]),
    ?assertMatch([_], [W || ["between", "groups" | _] = W <- Words, lists:member("12", W)]),
    ?assertMatch([_], [W || ["with", "hidden", "nodes" | _] = W <- Words, lists:member("77", W)]),
    ?assertEqual(["n1@h", "n2@h", "n10@h"], [N || ["n" ++ _ = N, "up" | _] <- Words]).

%% What stands for a character that nobody sees has its place: columns stay below each other.
hidden_characters_keep_columns_test() ->
    #{topology := T} = Data = data(),
    Of = #{nodes => [~"a@h"], coordinator => ~"a@h", names => 0, agent => undefined},
    Lines = sderl_cli_top_screen:lines(
        Data#{topology := T#{groups := #{~"plain" => Of, <<"odd", 16#202e/utf8, "x">> => Of}}},
        sderl_cli_top_screen:key({view, groups}, sderl_cli_top_screen:new()),
        #{columns => 120, rows => 30}
    ),
    [Odd, Plain] = [L || Line <- Lines, L <- [unicode:characters_to_list([Line])],
                         lists:prefix("odd", L) orelse lists:prefix("plain", L)],
    ?assertMatch("odd\\u{202e}x " ++ _, Odd),
    ?assertEqual(string:length(string:slice(Plain, 0, string:str(Plain, "a@h"))),
                 string:length(string:slice(Odd, 0, string:str(Odd, "a@h")))).

nothing_yet_test() ->
    ?assertMatch([_], sderl_cli_top_screen:lines(
        (data())#{topology := none}, sderl_cli_top_screen:new(), #{columns => 80, rows => 24}
    )),
    ?assertMatch([_ | _], sderl_cli_top_screen:lines(
        (data())#{frame := none}, sderl_cli_top_screen:new(), #{columns => 80, rows => 24}
    )).

keys_test() ->
    ?assertEqual([up, right, {view, nodes}, sort, quit],
                 sderl_cli_top_screen:keys(<<"\e[Ax\e[C3s", 0, "q">>)),
    ?assertEqual(quit, sderl_cli_top_screen:key(quit, sderl_cli_top_screen:new())),
    Round = lists:foldl(fun sderl_cli_top_screen:key/2, sderl_cli_top_screen:new(),
                        lists:duplicate(5, right)),
    ?assertEqual(sderl_cli_top_screen:new(), Round),
    ?assertEqual(sderl_cli_top_screen:key({view, findings}, sderl_cli_top_screen:new()),
                 sderl_cli_top_screen:key(left, sderl_cli_top_screen:new())).

properties_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(any_screen(), [{numtests, 200}, {to_file, user}]))}.

%% Whatever the names and the size: no line is too wide, there are not too many, and nothing moves
%% the cursor.
any_screen() ->
    ?FORALL({Columns, Rows, Keys, Name}, {range(1, 200), range(1, 60), list(
        oneof([left, right, up, down, page_up, page_down, sort])
    ), name()}, begin
        #{topology := #{nodes := Nodes} = T, frame := #{nodes := Samples} = F} = Data = data(),
        Data1 = Data#{
            topology := T#{nodes := Nodes#{Name => node(up, [Name])}},
            frame := F#{nodes := Samples#{Name => #{util => 2, in_msgs_s => 1.0e12}},
                        links := #{{Name, Name} => {1.0e9, 1.0e12}}}
        },
        State = lists:foldl(fun sderl_cli_top_screen:key/2, sderl_cli_top_screen:new(), Keys),
        Lines =
            [unicode:characters_to_list([L])
             || L <- sderl_cli_top_screen:lines(Data1, State, #{columns => Columns, rows => Rows})],
        length(Lines) =< Rows andalso
            lists:all(fun(L) ->
                string:length(L) =< Columns andalso lists:all(fun(C) -> C >= 32 end, L)
            end, Lines)
    end).

name() ->
    ?LET(Chars, non_empty(list(oneof([range(1, 126), $é, $…, 16#9b, 16#1F600]))),
         unicode:characters_to_binary(Chars)).

node(Status, Groups) ->
    #{status => Status, groups => Groups, home => undefined, hidden => false, source => probe}.

data() ->
    #{
        topology => #{
            epoch => 1, t => 1, monitors => [],
            nodes => #{~"a@h" => node(up, [~"g"]), ~"b@h" => node(up, [~"g"]),
                       ~"c@h" => node(down, [~"g"])},
            groups => #{~"g" => #{nodes => [~"a@h", ~"b@h", ~"c@h"], coordinator => ~"a@h",
                                  names => 3, agent => undefined}}
        },
        frame => #{
            seq => 1, t => 1, span_ms => 1000, epoch => 1, kinds => #{}, lost => #{},
            groups => #{~"g" => #{regs_s => 4}},
            nodes => #{~"a@h" => #{util => 0.1, out_bytes_s => 2500},
                       ~"b@h" => #{util => 0.33, mq_max => 3}},
            links => #{{~"a@h", ~"b@h"} => {105, 2500}}
        },
        findings => [#{id => ~"1", kind => node_down, severity => critical, since => 1, t => 1,
                       where => #{}, text => ~"c@h is down.", evidence => [],
                       remedy => ~"Start it."}]
    }.

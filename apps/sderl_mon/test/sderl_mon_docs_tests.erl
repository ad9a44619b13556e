%% SPDX-License-Identifier: Apache-2.0
%% The tables of docs/monitoring.md and docs/metrics.md are those of the code.
-module(sderl_mon_docs_tests).

-include_lib("eunit/include/eunit.hrl").

thresholds_test() ->
    page(fun(Page) ->
        ?assertEqual(
            lists:sort([{atom_to_list(K), V} || K := V <- sderl_mon_findings:thresholds()]),
            lists:sort([{K, number(V)}
                        || [K, V] <- rows(Page, "^\\| `([a-z_]+)` \\| ([0-9.]+) \\|")])
        )
    end).

findings_test() ->
    page(fun(Page) ->
        [_, Part] = string:split(Page, "| finding | when |"),
        [Table, _] = string:split(Part, "\n\n"),
        ?assertEqual(sderl_mon_findings:kinds(),
                     [list_to_atom(K) || [K] <- rows(Table, "^\\| `([a-z_]+)` \\|")])
    end).

configuration_test() ->
    page(fun(Page) ->
        [_, Part] = string:split(Page, "## Configuration"),
        [Table, _] = string:split(Part, "\n## "),
        ?assertEqual(
            lists:sort(maps:to_list(sderl_mon_config:defaults())),
            lists:sort([{list_to_atom(K), term(V)}
                        || [K, V] <- rows(Table, "^\\| `([a-z_]+)` \\| [^|]* \\| `([^`]+)` \\|")])
        )
    end).

%% Each of them has a line.
metrics_test() ->
    page(fun(Page) ->
        ?assertEqual([], [M
                          || M <- sderl_mon_types:metrics(),
                             string:find(Page, ["`", atom_to_list(M), "`"]) =:= nomatch])
    end).

%% The tables of docs/metrics.md are the catalogue, and what is offered to Prometheus is in it.
catalogue_test() ->
    page("metrics.md", fun(Page) ->
        ?assertEqual(
            [row([["`", atom_to_binary(Name), "`"], Unit, atom_to_binary(Total),
                  lists:join(", ", For), prometheus(Prometheus), About])
             || #{name := Name, unit := Unit, total := Total, prometheus := Prometheus,
                  about := About, for := For} <- sderl_mon_catalogue:of_nodes()],
            table(Page, "| metric | unit | of several nodes | for | Prometheus | what |")
        ),
        ?assertEqual(
            [row([["`", Name, "`"], lists:join(", ", Labels), About])
             || #{name := Name, labels := Labels, about := About}
                    <- sderl_mon_catalogue:families()],
            table(Page, "| family | labels | what |")
        )
    end).

row(Cells) -> unicode:characters_to_binary(["| ", lists:join(" | ", Cells), " |"]).

prometheus(none) -> "";
prometheus({Name, 1}) -> ["`", Name, "`"];
prometheus({Name, Scale}) -> ["`", Name, "`, /", integer_to_list(Scale)].

table(Page, Head) ->
    [_, Rest] = string:split(Page, Head),
    [Table, _] = string:split(Rest, "\n\n"),
    [_, _ | Rows] = string:split(Table, "\n", all),
    [unicode:characters_to_binary(Row) || Row <- Rows].

%% All families of the catalogue, where everything is known, with its words and its unit.
prometheus_test() ->
    Id = ~"n@h",
    Topology = #{
        epoch => 1, t => 1, nodes => #{Id => #{status => up, groups => [~"g"], home => ~"g",
                                               hidden => false, source => probe}},
        groups => #{~"g" => #{nodes => [Id], live => [Id], coordinator => Id, names => 1,
                              agent => Id}},
        monitors => [#{node => Id, status => up, master => true, agents => 1}]
    },
    All = #{Name => 1 || #{name := Name} <- sderl_mon_catalogue:of_nodes()},
    Frame = #{
        seq => 1, t => 1, span_ms => 1000, epoch => 1, nodes => #{Id => All},
        links => #{{Id, Id} => {1, 1}}, kinds => #{control => {1, 1}},
        groups => #{~"g" => #{regs_s => 1, names => 1}}, lost => #{x => 1}
    },
    Finding = #{id => Id, kind => bypass, severity => info, since => 1, t => 1, where => #{},
                text => Id, evidence => [], remedy => Id},
    Text = iolist_to_binary(sderl_mon_prometheus:text(Topology, Frame, [Finding], [])),
    ?assertEqual(
        lists:sort([{unicode:characters_to_list(Name), unicode:characters_to_list(About)}
                    || #{name := Name, about := About} <- sderl_mon_catalogue:families()]),
        lists:sort([{Name, About} || [Name, About] <- rows(Text, "^# HELP (\\S+) (.*)$")])
    ),
    ?assertEqual(
        lists:sort([[unicode:characters_to_list(Name), unicode:characters_to_list(Unit)]
                    || #{name := Name, unit := Unit} <- sderl_mon_catalogue:families(),
                       Unit =/= ~""]),
        lists:sort(rows(Text, "^# UNIT (\\S+) (.*)$"))
    ).

rows(Text, Pattern) ->
    case re:run(Text, Pattern, [global, multiline, unicode, {capture, all_but_first, list}]) of
        {match, Rows} -> Rows;
        nomatch -> []
    end.

number(Text) ->
    case string:to_float(Text) of
        {error, _} -> list_to_integer(Text);
        {Float, ""} -> Float
    end.

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

%% Where the tests run without the documents there is nothing to compare.
page(Test) -> page("monitoring.md", Test).

page(Name, Test) ->
    Lib = filename:dirname(filename:dirname(code:which(sderl_mon_findings))),
    Roots = [filename:join([Lib | lists:duplicate(N, "..")]) || N <- lists:seq(1, 6)],
    case [File
          || Root <- Roots, File <- [filename:join([Root, "docs", Name])],
             filelib:is_regular(File)] of
        [File | _] -> {ok, Page} = file:read_file(File), Test(Page);
        [] -> ok
    end.

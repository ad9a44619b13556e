%% SPDX-License-Identifier: Apache-2.0
%% The tables of docs/monitoring.md are those of the code.
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

prometheus_test() ->
    page(fun(Page) ->
        Id = ~"n@h",
        Topology = #{
            epoch => 1, t => 1, nodes => #{Id => #{status => up, groups => [~"g"], home => ~"g",
                                                   hidden => false, source => probe}},
            groups => #{~"g" => #{nodes => [Id], live => [Id], coordinator => Id, names => 1,
                                  agent => Id}},
            monitors => [#{node => Id, status => up, master => true, agents => 1}]
        },
        All = maps:from_keys(sderl_mon_types:metrics() ++ [probe_pct, reds_s, gc_s], 1),
        Frame = #{
            seq => 1, t => 1, span_ms => 1000, epoch => 1, nodes => #{Id => All},
            links => #{{Id, Id} => {1, 1}}, kinds => #{control => {1, 1}},
            groups => #{~"g" => #{regs_s => 1, names => 1}}, lost => #{x => 1}
        },
        Finding = #{id => Id, kind => bypass, severity => info, since => 1, t => 1, where => #{},
                    text => Id, evidence => [], remedy => Id},
        Text = iolist_to_binary(sderl_mon_prometheus:text(Topology, Frame, [Finding])),
        ?assertEqual(
            lists:usort([N || [N] <- rows(Text, "^# TYPE ([a-z_]+) ")]),
            lists:usort([
                N
             || [N] <- rows(Page, "`(sderl_[a-z]+_[a-z_]+|sderl_(?:nodes|groups|links|findings))`"),
                not lists:prefix("sderl_mon", N) orelse lists:prefix("sderl_monitor", N)
            ])
        )
    end).

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
page(Test) ->
    Lib = filename:dirname(filename:dirname(code:which(sderl_mon_findings))),
    Roots = [filename:join([Lib | lists:duplicate(N, "..")]) || N <- lists:seq(1, 6)],
    case [File
          || Root <- Roots, File <- [filename:join([Root, "docs", "monitoring.md"])],
             filelib:is_regular(File)] of
        [File | _] -> {ok, Page} = file:read_file(File), Test(Page);
        [] -> ok
    end.

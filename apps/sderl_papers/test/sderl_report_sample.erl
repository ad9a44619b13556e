%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_sample).
-moduledoc "A report of made-up numbers, in the shapes that the real ones have.".

-export([start/0, pages/0, loads/1]).

start() ->
    #{
        title => "Published results, repeated",
        lead => [<<"Four experiments. These numbers are made up.">>],
        facts => [
            {"Machine", "2 cores, 24,105 MiB, OTP 29.1.1"},
            {"Measured", "2026-01-31T10:00:00Z to 2026-01-31T10:38:12Z"},
            {"Scale", "medium: 100 nodes in clusters of 10, 20, 50, 100, 40 minutes, up to 5 runs "
                      "of each point"},
            {"Time used", "38 of 40 minutes"},
            {"Revision", "0123abc"}
        ],
        remarks => [],
        measured => "Measured on 2 cores, 24,105 MiB, OTP 29.1.1, at scale medium.",
        command => "bin/sderl reproduce --scale medium --out results"
    }.

pages() -> [c1(), c2(), c3(), c4()].

axis(Label, Unit, Scale) -> #{label => Label, unit => Unit, scale => Scale}.

sizes() -> axis(<<"nodes of a cluster">>, <<>>, log).

%% A series with a spread that grows, and is the same in every run.
series(Name, Xs, Fun) ->
    #{name => Name, points => [#{x => X, y => Fun(X), low => Fun(X) * (1 - wobble(X)),
                                 high => Fun(X) * (1 + 1.3 * wobble(X))}
                               || X <- Xs]}.

wobble(X) -> 0.04 + (X * 7919 rem 13) / 100.

page(Id, Title, Verdict, Plots, Tables) ->
    #{
        id => Id, title => Title, verdict => Verdict, plots => Plots, tables => Tables,
        question => <<"Does the time of global operations grow with the nodes of a cluster, and "
                      "does it do so with s_groups of 10?">>,
        claim => <<"With 0.01 % of global operations the throughput of stock Erlang stops growing "
                   "at 40 nodes; with s_groups of 10 it grows "
                   "in proportion to 100 nodes (N. Chechina et al., Evaluating Scalable "
                   "Distributed Erlang for Scalability and Reliability, Fig. 7).">>,
        verdict_text => <<"From 10 to 100 nodes the p50 of global operations of stock nodes grows "
                          "9.8 times (2.1 to 20.6 ms), that of s_groups "
                          "of 10 1.1 times (1.9 to 2.1 ms). The claim asks for more than 8 times "
                          "and at most 2.">>,
        notes => [
            <<"On a cluster every node has a processor of its own; here all share one. So the load "
              "of a node is held, and what is compared is the latency of operations.">>,
            <<"Links between the nodes are those of one machine: 20 \x{b5}s in place of 100 to "
              "200."/utf8>>
        ],
        command => <<"bin/sderl reproduce ", Id/binary, " --scale medium --out results">>
    }.

c1() ->
    Xs = [10, 20, 50, 100],
    page(<<"C1">>, <<"A small share of global operations limits stock Erlang">>, confirmed, [
        #{
            title => <<"Latency of global operations (register, unregister), median">>,
            x => sizes(), y => axis(<<"p50">>, <<"ms">>, log),
            series => [
                series(<<"stock, 0.1 % global">>, [10, 100], fun(X) -> 0.19 * X end),
                series(<<"stock, 1 % global">>, Xs, fun(X) -> 0.206 * X end),
                series(<<"stock, 10 % global">>, [10, 20, 50], fun(X) -> 0.004 * X * X + 3 end),
                series(<<"s_groups of 10, 1 % global">>, Xs, fun(X) -> 1.9 + X / 500 end),
                series(<<"pg, without global">>, Xs, fun(X) -> 0.11 + X / 5000 end)
            ],
            marks => [#{y => 16.8, text => <<"8 times that of 10 nodes">>}]
        },
        #{
            title => <<"Throughput of all nodes together at a load of 15 operations a second on "
                       "each">>,
            x => (axis(<<"nodes of a cluster">>, <<>>, linear))#{zero => true},
            y => axis(<<"completed">>, <<"operations/s">>, linear),
            series => [
                series(<<"stock, 10 % global">>, Xs, fun(X) -> 1500 / (1 + X / 40) end),
                series(<<"s_groups of 10, 10 % global">>, Xs, fun(X) -> 1500 - X / 10 end)
            ]
        }
    ], [#{
        title => <<"All points">>,
        header => [<<"nodes">>, <<"mode">>, <<"global %">>, <<"p50 ms">>, <<"p95 ms">>, <<"ops/s">>,
                   <<"CPU %">>, <<"messages/op">>],
        rows => [[integer_to_binary(X), <<"stock">>, <<"1">>, <<"2.06 (1.90..2.31)">>,
                  <<"4.10 (3.95..4.61)">>, <<"1,498">>, <<"31.2">>, <<"44.1">>]
                 || X <- Xs]
    }]).

c2() ->
    Xs = [10, 20, 50, 100],
    page(<<"C2">>, <<"Only global latency grows with the nodes">>, confirmed, [
        #{
            title => <<"Latency by kind of operation, stock Erlang, ", P/binary>>,
            x => sizes(), y => axis(P, <<"ms">>, log),
            series => [
                series(<<"global">>, Xs, fun(X) -> K * 0.206 * X end),
                series(<<"point to point">>, Xs, fun(X) -> K * (0.16 + X / 3000) end),
                series(<<"local">>, Xs, fun(_) -> K * 0.012 end)
            ]
        } || {P, K} <- [{<<"p50">>, 1}, {<<"p95">>, 2.4}]
    ], []).

c3() ->
    page(<<"C3">>, <<"s_groups grow where stock Erlang stops">>, not_shown, [
        #{
            title => <<"Latency over the time of one run, 100 nodes">>,
            x => (axis(<<"time">>, <<"s">>, linear))#{zero => true},
            y => axis(<<"p50">>, <<"\x{b5}s"/utf8>>, linear),
            series => [
                series(<<"stock">>, lists:seq(1, 60), fun(X) -> 20_600 + 1500 * math:sin(X) end),
                series(<<"s_groups of 10">>, lists:seq(1, 60),
                       fun(X) -> 2_100 + 100 * math:cos(X / 2) end)
            ],
            marks => [#{x => 15, text => <<"warm">>},
                      #{x => 40, text => <<"half of the nodes <stopped> & started">>}]
        }
    ], []).

c4() ->
    Xs = [1, 2, 4, 10, 20, 40, 60, 80],
    page(<<"C4">>, <<"Orbit: speed and links of stock and SD">>, refuted, [
        #{
            title => <<"Speed against one node">>,
            x => (axis(<<"nodes">>, <<>>, linear))#{zero => true},
            y => axis(<<"speed of one node">>, <<"times">>, linear),
            series => [
                series(<<"stock">>, Xs, fun(X) -> 1.8 * X / (X + 2.4) end),
                series(<<"SD, own gateways">>, Xs, fun(X) -> 1.6 * X / (X + 2.6) end),
                series(<<"SD, the library's routing">>, [10, 40, 80],
                       fun(X) -> 1.3 * X / (X + 3) end)
            ],
            marks => [#{y => 1, text => <<"one node">>}]
        },
        #{
            title => <<"Links of a node, most">>,
            x => (axis(<<"nodes">>, <<>>, linear))#{zero => true},
            y => axis(<<"links">>, <<>>, linear),
            series => [
                #{name => <<"stock">>,
                  points => [#{x => X, y => X, low => X, high => X} || X <- Xs]},
                #{name => <<"SD, own gateways">>,
                  points => [#{x => X, y => Y, low => Y, high => Y}
                             || {X, Y} <- [{1, 1}, {2, 2}, {4, 4}, {10, 6}, {20, 9}, {40, 14},
                                           {60, 17}, {80, 20}]]}
            ]
        },
        #{
            title => <<"Bytes between nodes">>,
            x => sizes(), y => axis(<<"sent">>, <<"bytes">>, log),
            series => [
                series(<<"stock">>, Xs, fun(X) -> 6_000_000 * (X - 1) end),
                series(<<"SD, own gateways">>, Xs, fun(X) -> 9_000_000 * (X - 1) end)
            ]
        },
        #{title => <<"Never measured">>, x => sizes(), y => axis(<<"p50">>, <<"ms">>, log),
          series => [#{name => <<"stock">>, points => []}]}
    ], []).

%% The parts of a page that would load or run something, or name an address: there should be none.
loads(Html) ->
    [
        Pattern
     || Pattern <- [
         "https?:", "<[^>]* src *=", "<link", "<script", "<iframe", "<object", "<embed", "<base",
         "@import", "url\\(", "<[^>]* on[a-z]+ *=", "href *= *\"[^#]", "xlink"
     ],
        re:run(Html, Pattern, [caseless, unicode, {capture, none}]) =:= match
    ].

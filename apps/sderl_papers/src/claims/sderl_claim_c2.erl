%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c2).
-moduledoc """
Claim C2: in stock Erlang the latency of global operations rises with the nodes, that of the others
does not.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [groups/3, growth/2, scaled_limit/2, p/2, plot/4, axis/3]).
-import(sderl_claim_points, [series/3, scaled/2, cell/2, text/1, text/2]).

%% From 10 to 100 nodes; over other ranges see sderl_claim_load:scaled_limit/2.
-define(FLAT, 2).
-define(STEEP, 4).

-define(KINDS, [
    spawn, rpc, erpc, gen_server, gen_statem, global_register, global_unregister, global_whereis,
    local_register, local_unregister, local_whereis
]).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C2">>,
        title => <<"Latency by kind of operation">>,
        question => <<"Which operations of stock Erlang become slower as the cluster grows?">>,
        claim =>
            <<"DE-Bench: the latencies of point-to-point and of local operations stay flat with "
              "the number of nodes, that of global operations rises steeply "
              "(RELEASE project, Fig. 10)">>,
        share => 1
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{base_pct := Base} = Scale) ->
    [sderl_claim_load:point(Scale, stock, Size, Base)
     || Size <- sderl_claim_load:ends(Scale) ++ sderl_claim_load:middle(Scale)].

-doc """
Compares the p50 of the smallest and of the largest cluster. `confirmed`: point to point and local
stay within 2 times from 10 to 100 nodes, and global grows over 4 times. `refuted`: global stays
within 2 times, or one of the others grows over 4 times.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    Groups = sderl_claim_load:judged(base(Points)),
    case [growth(Groups, p(Class, p50)) || Class <- [p2p, local, global]] of
        [#{range := Range} = P2p, #{} = Local, #{} = Global] ->
            Said = text("From ~w to ~w nodes the p50 of global operations grew ~ts, of point to "
                        "point ~ts, of local ones ~ts (p95: ~ts).",
                        [maps:get(from, P2p), maps:get(to, P2p), sderl_claim_load:grew(Global),
                         sderl_claim_load:grew(P2p), sderl_claim_load:grew(Local), p95(Groups)]),
            judge(maps:get(ratio, Global), max(maps:get(ratio, P2p), maps:get(ratio, Local)), Range,
                  Said);
        _ ->
            {not_shown, <<"There are no two sizes of the cluster that can be judged.">>}
    end.

judge(_Global, _Others, Range, Said) when Range < 4 ->
    {not_shown, text("~ts The sizes are too close to each other to judge by.", [Said])};
judge(Global, Others, Range, Said) ->
    {Flat, Steep} = {scaled_limit(?FLAT, Range), scaled_limit(?STEEP, Range)},
    Limits = text("Over such a range flat is up to ~ts times, steep is over ~ts.",
                  [sderl_table:number(Flat), sderl_table:number(Steep)]),
    Verdict =
        if
            Global > Steep, Others =< Flat -> confirmed;
            Global =< Flat; Others > Steep -> refuted;
            true -> not_shown
        end,
    {Verdict, text("~ts ~ts", [Said, Limits])}.

p95(Groups) ->
    lists:join(", ", [sderl_claim_load:times(growth(Groups, p(Class, p95)))
                      || Class <- [global, p2p, local]]).

base(Points) ->
    case sderl_claim_load:base_share(Points, [stock]) of
        {ok, Pct} -> groups(Points, stock, Pct);
        none -> []
    end.

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Groups = base(Points),
    #{
        plots => [classes(P, Groups) || P <- [p50, p95]] ++ [kinds(Groups)],
        tables => [table(P, Groups) || P <- [p50, p95]],
        notes => sderl_claim_load:notes([Groups], judged)
    }.

classes(P, Groups) ->
    Plot = plot(["Latency by class, ", atom_to_list(P)], axis("latency", "ms", log), [], []),
    Plot#{series := [
        series(Name, Groups, p(Class, P))
     || {Class, Name} <- [{global, "global: register, unregister"}, {p2p, "point to point"},
                          {local, "local"}]
    ]}.

kinds(Groups) ->
    Plot = plot("Latency by kind, p50", axis("latency", "ms", log), [], []),
    Plot#{series := [
        Series
     || Kind <- ?KINDS, #{points := [_ | _]} = Series <- [
         series(name(Kind), Groups, scaled([kinds, Kind, latency_us, p50], 0.001))
     ]
    ]}.

name(Kind) -> string:replace(atom_to_list(Kind), "_", " ").

table(P, Groups) ->
    #{
        title => text(["Latency in ms, ", atom_to_list(P), ", over the nodes of a cluster"]),
        header => [<<"operation">> | [text("~w", [N]) || {N, _} <- Groups]] ++ [<<"operations">>],
        rows => [
            [text(name(Name))
             | [cell(Group, scaled(Path ++ [latency_us, P], 0.001)) || {_, Group} <- Groups]] ++
            [text("~w", [lists:sum([sderl_claim_points:sum(Group, Path ++ [ops])
                                    || {_, Group} <- Groups])])]
         || {Name, Path} <- [{p2p, [p2p]}, {global, [global]}, {local, [local]}] ++
                            [{Kind, [kinds, Kind]} || Kind <- ?KINDS]
        ]
    }.

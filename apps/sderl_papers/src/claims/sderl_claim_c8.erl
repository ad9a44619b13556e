%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c8).
-moduledoc """
Claim C8: without failures the messenger delivers the same in s_groups and in one cluster.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [grouped/3, value/2, paired/3, series/3, scaled/2, text/2]).

%% In percent: a difference within EQUAL counts as none, one over APART refutes the claim.
-define(EQUAL, 5).
-define(APART, 20).
-define(RANGE, 4).
%% At least this part of growth in proportion to the servers is growth.
-define(GROWTH, 0.8).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C8">>,
        title => <<"Messenger: throughput">>,
        question =>
            <<"Does the messenger deliver as much in s_groups (RSD) as in one cluster (RD), on few "
              "servers and on many?">>,
        claim =>
            <<"Without failures, with one router and 3 to 16 servers, the throughput of RD-IM and "
              "of RSD-IM grows alike (Chechina et al. 2017, Fig. 11)">>,
        share => 12
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{im := #{servers := Servers}} = Scale) ->
    Order =
        lists:uniq([lists:min(Servers), lists:max(Servers)] ++ lists:reverse(lists:sort(Servers))),
    [sderl_claim_im:free(Scale, Mode, N) || N <- Order, Mode <- sderl_claim_im:modes()].

-doc """
Compares the messages delivered a minute at each number of servers, in runs of the same seed.
`confirmed`: within 5 % of each other at all of them, in the median, over a fourfold range, and at
the most servers at least 0.8 of what those at the fewest give in proportion; and no run failed.
`refuted`: at one of them over 20 % apart, in each of several runs.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    [Rd, Rsd] = [sized(Points, Mode) || Mode <- sderl_claim_im:modes()],
    Sizes = [{N, A, B, paired(A, B, [delivered_per_min])} || {N, A} <- Rd, {M, B} <- Rsd, N =:= M],
    %% There is no percentage of 0.
    Nothing = [N || {N, _, _, Pairs} <- Sizes, {X, Y} <- Pairs, X =< 0 orelse Y =< 0],
    Both = [{N, A, B, Differences}
            || {N, A, B, Pairs} <- Sizes,
               [_ | _] = Differences <- [[100 * (Y / X - 1) || {X, Y} <- Pairs, X > 0]]],
    Failed = sderl_claim_points:failed(Points, im,
                                       #{routers => 1, chaos => none, monitoring => off}),
    sderl_claim_points:whole(judge(Both, lists:usort(Nothing)), Failed).

judge(Both, Nothing) ->
    case Both of
        [] when Nothing =/= [] ->
            {not_shown, text("Nothing was delivered with ~w servers.", [hd(Nothing)])};
        [] -> {not_shown, <<"There is no number of servers at which both were measured.">>};
        [{First, FirstRd, FirstRsd, _} | _] ->
            {Last, A, B, _} = lists:last(Both),
            {Off, At} = lists:max([{abs(sderl_table:median(Ds)), N} || {N, _, _, Ds} <- Both]),
            Said = text(
                "From ~w to ~w servers RSD and RD differ by ~ts % at most (with ~w servers). With "
                "~w servers RD delivers ~ts messages a minute and RSD ~ts, in time ~ts and ~ts %, "
                "with ~ts and ~ts µs of processor time for each, processor ~ts and ~ts %.",
                [First, Last, number(Off), At,
                 Last
                 | [number(value(G, [Key]))
                    || Key <- [delivered_per_min, qos_pct, cpu_us_per_op, cpu_pct], G <- [A, B]]]
            ),
            Grows = lists:all(
                fun({Few, Most}) ->
                    value(Most, [delivered_per_min]) >=
                        ?GROWTH * Last / First * value(Few, [delivered_per_min])
                end,
                [{FirstRd, A}, {FirstRsd, B}]
            ),
            Apart = [N
                     || {N, _, _, [_, _ | _] = Ds} <- Both,
                        lists:min(Ds) > ?APART orelse lists:max(Ds) < -?APART],
            if
                Apart =/= [] -> {refuted, text("~ts They are apart.", [Said])};
                Last < ?RANGE * First ->
                    {not_shown, text("~ts The range is too small to judge by.", [Said])};
                Nothing =/= [] ->
                    {not_shown,
                     text("~ts With ~w servers a run delivered nothing.", [Said, hd(Nothing)])};
                Off =< ?EQUAL, not Grows ->
                    {not_shown, text("~ts That is less than ~w of what ~w servers deliver in "
                                     "proportion: it does not grow.", [Said, ?GROWTH, First])};
                Off =< ?EQUAL -> {confirmed, Said};
                true -> {not_shown, text("~ts That is neither the same nor clearly apart.", [Said])}
            end
    end.

number(Value) -> sderl_table:number(Value).

%% By servers: with one router, without kills and without monitoring.
sized(Points, Mode) ->
    lists:ukeysort(1, [
        {N, Group}
     || #{params := #{<<"servers">> := N}} = Group <-
            grouped(Points, im, #{mode => Mode, routers => 1, chaos => none, monitoring => off})
    ]).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Sized = [{sderl_claim_im:name(Mode), sized(Points, Mode)} || Mode <- sderl_claim_im:modes()],
    Plot = fun(Title, Y, What) ->
        #{title => Title, x => (axis("servers", "", linear))#{zero => true}, y => Y,
          series => [series(Name, Groups, What) || {Name, Groups} <- Sized]}
    end,
    #{
        plots => [
            Plot(<<"Messages delivered">>, axis("delivered", "messages/min"), [delivered_per_min]),
            Plot(<<"Latency of a message, median">>, axis("p50", "ms"),
                 scaled([latency_us, p50], 0.001)),
            Plot(<<"Latency of a message, 99th percentile">>, axis("p99", "ms"),
                 scaled([latency_us, p99], 0.001)),
            Plot(<<"Processor time of a message">>, axis("CPU time", "µs"), [cpu_us_per_op]),
            Plot(<<"Links of a node, at most">>, axis("links", ""), [links_per_node_max])
        ],
        tables => [sderl_claim_im:table("All points",
                                        [Group || {_, Of} <- Sized, {_, Group} <- Of])],
        notes => [<<"Each server has as many clients whatever their number, so equal throughput of "
                    "all servers together is growth in proportion to them.">>
                  | sderl_claim_im:notes()]
    }.

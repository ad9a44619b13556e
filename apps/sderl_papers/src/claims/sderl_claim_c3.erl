%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c3).
-moduledoc """
Claim C3: in s_groups of 10 global operations cost the same however many nodes there are.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [point/4, groups/3, judged/1, growth/2, grew/1, scaled_limit/2, p/2,
                           plot/4, axis/2, axis/3]).
-import(sderl_claim_points, [value/2, text/2]).

%% From 10 to 100 nodes; over other ranges see sderl_claim_load:scaled_limit/2.
-define(FLAT, 2).
-define(STEEP, 8).
%% So many times as fast is faster; less is the same.
-define(APART, 1.5).

-define(MODES, [stock, sd, pg]).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C3">>,
        title => <<"Stock Erlang against s_groups">>,
        question =>
            <<"Do s_groups of 10 nodes keep global operations as fast in a large cluster as in a "
              "small one, where stock Erlang does not?">>,
        claim =>
            <<"DE-Bench with 0.01 % of global operations, stock Erlang against SD Erlang with "
              "s_groups of 10: equal up to 40 nodes; beyond, stock Erlang stops growing, "
              "and SD Erlang grows linearly to 100 (Chechina et al. 2016, Fig. 7; RELEASE project, "
              "Fig. 11)">>,
        share => 14
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{base_pct := Base, beyond := Beyond} = Scale) ->
    Of = fun(Modes, Sizes) -> [point(Scale, Mode, Size, Base) || Size <- Sizes, Mode <- Modes] end,
    [_ | _] = Ends = sderl_claim_load:ends(Scale),
    Top = [point(Scale, Mode, lists:max(Ends), sderl_claim_load:top_share(Scale))
           || Mode <- [sd, pg]],
    lists:uniq(Of([stock, sd], Ends) ++ Of([pg], Ends) ++
               Of(?MODES, sderl_claim_load:middle(Scale)) ++ Top ++ Of(?MODES, Beyond)).

-doc """
Compares how the p50 of global operations grows from the smallest to the largest cluster.
`confirmed`: in stock Erlang over 8 times from 10 to 100 nodes, in s_groups within 2 times, and
these are the faster ones in the largest cluster. `refuted`: s_groups grow over 8 times, or stock
Erlang stays within 2, or it is the faster one.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    Stock = judged(base(Points, stock)),
    Sd = judged(base(Points, sd)),
    %% Both over the same sizes.
    Both = [N || {N, _} <- Stock, lists:keymember(N, 1, Sd)],
    Common = fun(Groups) -> [Sized || {N, _} = Sized <- Groups, lists:member(N, Both)] end,
    What = p(global, p50),
    case {growth(Common(Stock), What), growth(Common(Sd), What)} of
        {#{} = A, #{} = B} ->
            Pg = growth(Common(judged(base(Points, pg))), What),
            P95 = [sderl_claim_load:times(growth(Common(Groups), p(global, p95)))
                   || Groups <- [Stock, Sd]],
            judge(A, B,
                  text("~ts The p95 grew ~ts and ~ts.~ts ~ts",
                       [said(A, B)] ++ P95 ++ [said_pg(Pg), crossing(Common(Stock), Common(Sd))]));
        _ ->
            {not_shown, <<"There are no two sizes of the cluster at which both stock Erlang and "
                          "s_groups can be judged.">>}
    end.

judge(#{range := Range}, _, Said) when Range < 4 ->
    {not_shown, text("~ts The sizes are too close to each other to judge by.", [Said])};
judge(#{ratio := Stock, range := Range, high := StockMs}, #{ratio := Sd, high := SdMs}, Said) ->
    {Flat, Steep} = {scaled_limit(?FLAT, Range), scaled_limit(?STEEP, Range)},
    Limits = text("Over such a range flat is up to ~ts times, steep is over ~ts.",
                  [sderl_table:number(Flat), sderl_table:number(Steep)]),
    Verdict =
        if
            Stock > Steep, Sd =< Flat, SdMs * ?APART < StockMs -> confirmed;
            Sd > Steep; Stock =< Flat; StockMs * ?APART < SdMs -> refuted;
            true -> not_shown
        end,
    {Verdict, text("~ts ~ts", [Said, Limits])}.

said(#{from := From, to := To, high := StockMs} = Stock, #{high := SdMs} = Sd) ->
    text("From ~w to ~w nodes the p50 of global operations grew ~ts in stock Erlang and ~ts in "
         "s_groups. "
         "With ~w nodes an operation of stock Erlang takes ~ts times as long as one of an s_group.",
         [From, To, grew(Stock), grew(Sd), To, sderl_table:number(StockMs / SdMs)]).

said_pg(unknown) -> "";
said_pg(#{from := From, to := To} = Pg) ->
    text(" With pg, which gives no unique names, it changed ~ts from ~w to ~w nodes.",
         [grew(Pg), From, To]).

%% From which size on s_groups are the faster ones.
crossing(Stock, Sd) ->
    Ratios = [{N, value(A, p(global, p50)) / value(B, p(global, p50))}
              || {N, A} <- Stock, {M, B} <- Sd, N =:= M],
    case lists:takewhile(fun({_, Ratio}) -> Ratio > ?APART end, lists:reverse(Ratios)) of
        [] ->
            text("At no size are s_groups faster by more than ~ts times.",
                 [sderl_table:number(?APART)]);
        Faster ->
            {N, _} = lists:last(Faster),
            Equal = [M || {M, Ratio} <- Ratios, Ratio =< ?APART, Ratio * ?APART >= 1],
            text("s_groups are faster from ~w nodes on~ts.",
                 [N, [text("; up to ~w they are equal", [lists:max(Equal)]) || Equal =/= []]])
    end.

base(Points, Mode) ->
    case sderl_claim_load:base_share(Points, ?MODES) of
        {ok, Pct} -> groups(Points, Mode, Pct);
        none -> []
    end.

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Named = [{sderl_claim_load:mode_name(Mode), base(Points, Mode)} || Mode <- ?MODES],
    #{
        plots => sderl_claim_load:latency_plots("Global operations", Named) ++ [
            plot("Global operations done of those asked for", axis("done", "%"), Named,
                 [global_done_pct]),
            plot("Links of a node, at most", axis("links", "", log), Named, [links_per_node_max]),
            plot("Processor time of an operation, of all kinds", axis("CPU time", "µs"), Named,
                 [cpu_us_per_op]),
            plot("Messages of an operation, of all kinds", axis("messages", "", log), Named,
                 [messages_per_op]),
            plot("Bytes of an operation, of all kinds", axis("bytes", "B", log), Named,
                 [bytes_per_op])
        ],
        tables => [
            sderl_claim_load:table("All modes",
                                   [{Mode, Pct, groups(Points, Mode, Pct)}
                                    || Pct <- sderl_claim_load:shares(Points, [sd, pg]),
                                       Mode <- ?MODES])
        ],
        notes => [
            <<"pg is the third column: the same mesh of links without global. Joining and leaving "
              "a group of processes is no registration: it gives no name that "
              "only one process has, and does not wait for the other nodes. It shows what links "
              "alone cost.">>
            | sderl_claim_load:notes([base(Points, Mode) || Mode <- ?MODES], judged)
        ]
    }.

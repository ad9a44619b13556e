%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c4).
-moduledoc """
Claim C4: Orbit in s_groups needs far fewer links, and overtakes stock Erlang on many nodes.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3, plot/4]).
-import(sderl_claim_points, [chosen/3, value/2, spread/2, series/3, cell/2, text/1, text/2]).

%% SD Erlang overtakes beyond 80 to 100 nodes: that it does not with fewer says nothing.
-define(PUBLISHED_CROSSING, 100).
%% Faster: in less than this part of the time.
-define(AHEAD, 0.95).
%% Nodes in an s_group, as published.
-define(GROUP_NODES, 10).

-define(VARIANTS, [{stock, none}, {sd, own}, {sd, library}]).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C4">>,
        title => <<"Orbit, stock Erlang against s_groups">>,
        question =>
            <<"How do the run time and the links of a distributed orbit grow with the nodes, and "
              "from how many nodes on are s_groups ahead?">>,
        claim =>
            <<"Orbit, strong scaling: stock Erlang is fastest on 40 nodes (5 million elements) or "
              "140 (2 million) and fails above 5 million; SD Erlang overtakes beyond 80 to 100 "
              "nodes "
              "(RELEASE project, Fig. 29; Chechina et al. 2017, Fig. 6; 2016, Fig. 9). Of N nodes "
              "with S s_groups a node has N-1 links in stock Erlang; in SD Erlang the master has "
              "S, "
              "a submaster (N-1)/S+S-1, a worker (N-1)/S-1">>,
        share => 12
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{orbit := #{nodes := Nodes, library := Library}} = Scale) ->
    [Most | Others] = lists:reverse(lists:sort(Nodes)),
    %% The speedup is against one node, and the claim is about the largest cluster.
    Order = [Most] ++ [N || N <- Others, N =:= lists:min(Nodes)] ++
        [N || N <- Others, N > lists:min(Nodes)],
    [point(Scale, Variant, N) || N <- Order, Variant <- [{stock, none}, {sd, own}]] ++
        [point(Scale, {sd, library}, N) || N <- lists:reverse(lists:sort(Library))].

point(#{orbit := Orbit}, {Mode, Routing}, Nodes) ->
    #{generators := Generators, size := Size, workers := Workers, gateways := Gateways,
      run_s := RunS} = Orbit,
    Params = #{
        mode => Mode, generators => Generators, size => Size, nodes => Nodes, workers => Workers,
        batch => 1, table => hash
    },
    Groups = max(1, round(Nodes / ?GROUP_NODES)),
    Sd = case Routing of
        none -> #{};
        own -> #{routing => own, groups => Groups, gateways => Gateways};
        library -> #{routing => library, groups => Groups}
    end,
    #{
        workload => orbit,
        params => maps:merge(Params, Sd),
        fixed_s => 0,
        work_s => 3 + 0.15 * (Nodes + 1) + RunS
    }.

-doc """
`confirmed`: the links that were counted are those of the published formulas, or fewer, and there is
a number of nodes from which on s_groups are faster, in each of several runs. `refuted`: more links
than the formulas say; or stock Erlang is faster still on more than 100 nodes, and not by less than
on fewer.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    Stock = variant(Points, {stock, none}),
    Sd = variant(Points, {sd, own}),
    Ratios = ratios(Stock, Sd),
    case Ratios of
        [_, _ | _] ->
            case wrong(Points) of
                [] -> judged(Stock, Sd, Ratios);
                [Wrong | _] -> {not_shown, text("A run is no result: ~ts.", [Wrong])}
            end;
        _ ->
            {not_shown, <<"There are no two numbers of nodes on which both stock Erlang and "
                          "s_groups were measured.">>}
    end.

judged(Stock, Sd, Ratios) ->
    {LinksVerdict, Links} = links(Stock, Sd),
    {TimeVerdict, Time} = times(Ratios),
    Verdict =
        case {LinksVerdict, TimeVerdict} of
            {refuted, _} -> refuted;
            {confirmed, confirmed} -> confirmed;
            {_, refuted} -> refuted;
            _ -> not_shown
        end,
    {Verdict, text("~ts ~ts ~ts", [peaks(Stock, Sd), Time, Links])}.

%% All runs of an orbit must have found the same elements.
wrong(Points) ->
    Found = lists:usort([
        {{Generators, N}, {Size, maps:get(<<"checksum">>, Metrics, none)}}
     || #{experiment := <<"orbit">>, params := #{<<"generators">> := Generators, <<"size">> := N},
          metrics := #{<<"size">> := Size} = Metrics} <- Points
    ]),
    [
        text("the orbit ~ts of ~w has been found to have ~w and ~w elements, or other ones",
             [G, N, A, B])
     || {{{G, N} = Orbit, {A, _}}, {Orbit1, {B, _}}} <-
            lists:zip(lists:droplast([none | Found]), Found, trim),
        Orbit =:= Orbit1
    ].

variant(Points, {stock, none}) -> chosen(Points, orbit, #{mode => stock});
variant(Points, {sd, Routing}) -> chosen(Points, orbit, #{mode => sd, routing => Routing}).

%% [{Nodes, Stock, Sd, Runs}]: run times with their spread, and how many runs there are of each at
%% least.
ratios(Stock, Sd) ->
    [
        {N, S, D, min(length(RunsA), length(RunsB))}
     || {N, #{runs := RunsA} = A} <- Stock, {M, #{runs := RunsB} = B} <- Sd, N =:= M,
        {_, _, _} = S <- [spread(A, [seconds])], {_, _, _} = D <- [spread(B, [seconds])]
    ].

times(Ratios) ->
    Ahead = lists:takewhile(fun is_ahead/1, lists:reverse(Ratios)),
    {Last, {StockS, _, _}, {SdS, _, _}, _} = lists:last(Ratios),
    Runs = lists:min([R || {_, _, _, R} <- Ahead ++ [lists:last(Ratios)]]),
    Ratio = SdS / StockS,
    Least = lists:min([D / S || {_, {S, _, _}, {D, _, _}, _} <- lists:droplast(Ratios)]),
    case Ahead of
        [_ | _] when Runs < 2 ->
            {not_shown, text("At ~w nodes s_groups are the faster ones, by ~ts times, in one run "
                             "of each, which is too few to tell whether the lines cross.",
                             [Last, number(1 / Ratio)])};
        [_ | _] when length(Ahead) < length(Ratios) ->
            {N, _, _, _} = lists:last(Ahead),
            {confirmed, text("The lines cross: from ~w nodes on s_groups are the faster ones, at "
                             "~w nodes by ~ts times.", [N, Last, number(1 / Ratio)])};
        [_ | _] ->
            {not_shown, text("s_groups are faster at every number of nodes, so the lines do not "
                             "cross; at ~w nodes by ~ts times.", [Last, number(1 / Ratio)])};
        [] when Ratio < 1 ->
            {not_shown,
             text("At ~w nodes a run in s_groups takes ~ts times as long as in stock Erlang, which "
                  "is too near, or overlaps: that the lines cross cannot be told.",
                  [Last, number(Ratio)])};
        [] ->
            Verdict =
                if Last > ?PUBLISHED_CROSSING, Ratio >= Least -> refuted; true -> not_shown end,
            {Verdict, text("The lines do not cross at this scale: at ~w nodes a run in s_groups "
                           "takes ~ts times as long as in stock Erlang "
                           "(at fewer, ~ts times or more).", [Last, number(Ratio), number(Least)])}
    end.

%% The slowest run in s_groups is faster than the fastest of stock Erlang, and the medians are not
%% nearly the same.
is_ahead({_, {StockS, Stock, _}, {SdS, _, Sd}, _}) -> Sd < Stock andalso SdS < ?AHEAD * StockS.

peaks(Stock, Sd) ->
    lists:join(" ", [
        text("~ts is fastest on ~w ~ts (~ts s).",
             [Name, N, case N of 1 -> "node"; _ -> "nodes" end, number(S)])
     || {Name, Groups} <- [{"Stock Erlang", Stock}, {"SD Erlang", Sd}],
        {S, N} <- lists:sublist(
            lists:sort([{V, M} || {M, G} <- Groups, V <- [value(G, [seconds])], is_number(V)]), 1
        )
    ]).

%% Counted links beside those of the formulas. The formulas have the master as one of N nodes;
%% `nodes` are without it.
links(Stock, Sd) ->
    Seen =
        [{N, counted(G, [links_per_node_max]), formula(stock, N, 1)} || {N, G} <- Stock] ++
            [{N, counted(G, [Key]), formula(Key, N, groups(G))}
             || {N, G} <- Sd, Key <- [links_master, links_submaster_max, links_worker_max]],
    Over = [N || {N, Counted, Formula} <- Seen, is_number(Counted), Counted > Formula],
    Known = [N || {N, Counted, _} <- Seen, is_number(Counted)],
    Fewer = [
        {N, A, B}
     || {N, G} <- Stock, {M, H} <- Sd, N =:= M, A <- [counted(G, [links_per_node_max])],
        B <- [counted(H, [links_per_node_max])], is_number(A), is_number(B)
    ],
    Crossing = case lists:takewhile(fun({_, A, B}) -> B < A end, lists:reverse(Fewer)) of
        [] -> "at no size are s_groups below stock Erlang";
        [{Last, A, B} | _] = Below ->
            {First, _, _} = lists:last(Below),
            text("from ~w nodes on s_groups are below stock Erlang, at ~w with ~w against ~w",
                 [First, Last, B, A])
    end,
    case {Over, Known} of
        {[], []} -> {not_shown, <<"Links were not counted.">>};
        {[], _} ->
            {confirmed, text("Links of a node: as the formulas say or fewer; ~ts.", [Crossing])};
        {[N | _], _} ->
            {refuted,
             text("Links of a node: on ~w nodes more than the formulas say; ~ts.", [N, Crossing])}
    end.

%% The greatest of all runs.
counted(Group, What) ->
    case spread(Group, What) of
        {_, _, Most} -> Most;
        undefined -> undefined
    end.

groups(#{params := #{<<"groups">> := Groups}}) when is_integer(Groups), Groups > 0 -> Groups;
groups(_) -> 1.

%% `Nodes` is N - 1 of the published formulas. Where groups are not equal, the largest has more
%% nodes.
formula(stock, Nodes, _) -> Nodes;
formula(links_master, _, Groups) -> Groups;
formula(links_submaster_max, Nodes, Groups) -> largest(Nodes, Groups) + Groups - 1;
formula(links_worker_max, Nodes, Groups) -> largest(Nodes, Groups) - 1.

largest(Nodes, Groups) -> Nodes div Groups + Nodes rem Groups.

number(Value) -> sderl_table:number(Value).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Named = [{name(Variant), variant(Points, Variant)} || Variant <- ?VARIANTS],
    Plot = fun(Title, Y, What) ->
        (plot(Title, Y, Named, What))#{x := axis("nodes, without the master", "", log)}
    end,
    #{
        plots => [
            Plot("Run time", (axis("run time", "s", log)), [seconds]),
            (Plot("Speedup", axis("times as fast as on one node", ""), []))#{
                series := [speedup(Name, Groups) || {Name, Groups} <- Named]
            },
            (Plot("Links of a node, at most", axis("links", "", log), []))#{
                series :=
                    [series(Name, Groups, [links_per_node_max]) || {Name, Groups} <- Named] ++
                        formulas(Named)
            },
            Plot("Messages between nodes", axis("messages", "", log), [messages]),
            Plot("Bytes between nodes", axis("bytes", "B", log), [bytes])
        ],
        tables => [table(Points)],
        notes => [
            <<"One machine instead of a host for each node: its cores are all that computes, so a "
              "speedup beyond their number cannot be, and each message takes processor "
              "time from computing. What is evidence all the same: the links of each node, the "
              "messages and bytes that a run needs, and what these add to the run time "
              "as the nodes grow.">>,
            <<"In s_groups a vertex of another group takes three messages in place of one (to a "
              "gateway of the own group, to one of the other group, to the worker). On a cluster "
              "that buys fewer links; on one machine it costs processor time that stock Erlang "
              "does not need.">>,
            text("s_groups are of about ~w nodes each. A node beside the workers is the master. "
                 "\"Own gateways\" is the program as published, \"library\" the same over the "
                 "routing of the library.",
                 [?GROUP_NODES]),
            <<"Links are counted on the nodes and compared with the formulas; none is taken from a "
              "formula. Messages, bytes and processor time are those of the whole run, in which "
              "each worker is told "
              "of the others first and tells what it has found in the end; the run time is without "
              "that.">>
        ]
    }.

name({stock, none}) -> "stock Erlang";
name({sd, own}) -> "s_groups, own gateways";
name({sd, library}) -> "s_groups, routing of the library".

speedup(Name, Groups) ->
    case [S || {1, Group} <- Groups, S <- [value(Group, [seconds])], is_number(S), S > 0] of
        [One | _] -> series(Name, Groups, fun
            (#{<<"seconds">> := S}) when is_number(S), S > 0 -> One / S;
            (_) -> undefined
        end);
        [] -> #{name => text(Name), points => []}
    end.

%% Lines for comparison: what the formulas say at the sizes that were measured.
formulas([{_, Stock}, {_, Sd} | _]) ->
    [
        line("formula, stock Erlang", [{N, formula(stock, N, 1)} || {N, _} <- Stock]),
        line("formula, s_groups (submaster)",
             [{N, formula(links_submaster_max, N, groups(G))} || {N, G} <- Sd])
    ].

line(Name, Points) ->
    #{name => text(Name), points => [#{x => X, y => Y, low => Y, high => Y} || {X, Y} <- Points]}.

table(Points) ->
    #{
        title => <<"All runs">>,
        header => [
            <<"program">>, <<"nodes">>, <<"s_groups">>, <<"runs">>, <<"size">>, <<"run time, s">>,
            <<"elements/s">>, <<"links of a node">>, <<"master">>, <<"submaster">>,
            <<"worker">>, <<"messages">>, <<"bytes">>, <<"processor, %">>,
            <<"bytes in tables per element">>
        ],
        rows => [
            [
                text(name(Variant)), text("~w", [N]),
                case Params of #{<<"groups">> := S} -> text("~w", [S]); _ -> <<"-">> end,
                text("~w", [length(Runs)])
                | [cell(Group, [Key])
                   || Key <- [
                       size, seconds, elements_per_s, links_per_node_max, links_master,
                       links_submaster_max, links_worker_max, messages, bytes, cpu_pct,
                       bytes_per_element
                   ]]
            ]
         || Variant <- ?VARIANTS,
            {N, #{params := Params, runs := Runs} = Group} <- variant(Points, Variant)
        ]
    }.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c19).
-moduledoc "Claim C19: a simulated city on more nodes is faster, and sends more.".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [chosen/3, cell/2, series/3, text/2]).
-import(sderl_claim_vm, [spread/2, said/2]).

%% The part of the published speedup that must be reached.
-define(AS_PUBLISHED, 0.8).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C19">>,
        title => <<"A simulated city on several nodes">>,
        question =>
            <<"How much faster is a simulation in steps of time on more nodes, and how much do "
              "these send?">>,
        claim =>
            <<"The City case of Sim-Diasca is 1.5 times as fast on 2 nodes as on 1, 2.2 times on 4 "
              "and 3.45 times on 16, and its traffic grows with the nodes (Chechina et al. 2017, "
              "Fig. 14 and 15)">>,
        share => 12
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{vm := #{cores := Cores}, city := #{nodes := Nodes, seconds := Seconds} = City}) ->
    Asked = (maps:with([side, steps, vehicles, work, group_size], City))#{cores => Cores},
    [#{workload => city, params => Asked#{nodes => N},
       fixed_s => 1, work_s => Seconds + 0.5 * N}
     || N <- lists:uniq([1, lists:max(Nodes) | lists:sort(Nodes)])].

-doc """
By the time of all steps, on as many nodes as the machine has cores, 4 or more; each node has one
scheduler. `confirmed`: in every run the speedup on the most of these nodes is 0.8 times the
published one or more, and all runs on the most nodes sent more packets than all on 2; and no run
failed. `refuted`: in all of several runs the most are slower than one node, or send less than 2.
Results that differ are a defect of the program, and nothing is judged.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(judge(sizes(Points)), sderl_claim_points:failed(Points, city, #{})).

sizes(Points) -> lists:ukeysort(1, chosen(Points, city, #{})).

judge([{1, One}, {_, _} | _] = Sizes) ->
    Last = {Most, _} = lists:last(Sizes),
    Cores = lists:max([cores(Group) || {_, Group} <- Sizes]),
    Judged = [Size || {N, _} = Size <- Sizes, N =< Cores],
    Said = text("~ts ~ts",
                [speedups(Sizes, One), traffic(Sizes, Last)]),
    Range = sderl_claim_vm:range(),
    case {results(Sizes), lists:last(Judged)} of
        {[_, _ | _] = Results, _} ->
            {not_shown, text("~ts The results differ: ~w in ~w runs. That is a defect.",
                             [Said, length(Results), runs(Sizes)])};
        {_, {N, _}} when N < Range ->
            {not_shown, text("~ts This machine has ~w cores, and ~w nodes. The range of nodes with "
                             "a core each is too small to judge by.", [Said, Cores, Most])};
        {_, {N, Group}} ->
            Speedup = spread(Group, faster(One)),
            judge(N, Speedup, packets(Sizes, N), length(maps:get(runs, Group)) > 1, Said)
    end;
judge([]) ->
    {not_shown, <<"Nothing was measured.">>};
judge(_) ->
    {not_shown, <<"For a verdict one node is needed, and several.">>}.

judge(N, {_, Low, High}, Packets, Several, Said) ->
    Wanted = ?AS_PUBLISHED * published(N),
    if
        High < 1, Several ->
            {refuted, text("~ts ~w nodes are slower than one.", [Said, N])};
        Packets =:= less, Several ->
            {refuted, text("~ts ~w nodes send less than 2.", [Said, N])};
        Low >= Wanted, Packets =:= more -> {confirmed, Said};
        true ->
            {not_shown, text("~ts For a verdict ~w nodes are to be ~ts times as fast as one, and "
                             "to send more than 2.", [Said, N, number(Wanted)])}
    end;
judge(_, undefined, _, _, Said) ->
    {not_shown, text("~ts Some of this was not measured.", [Said])}.

cores(#{params := #{<<"cores">> := Cores}}) when is_integer(Cores) -> Cores;
cores(_) -> 1.

%% Between the published numbers of nodes, by the powers of two; above, as on 16.
published(N) when N =< 2 -> 1 + 0.5 * (N - 1);
published(N) when N =< 4 -> 1.5 + 0.7 * (math:log2(N) - 1);
published(N) -> min(3.45, 2.2 + 0.625 * (math:log2(N) - 2)).

%% Runs on one node have no traffic to compare with.
packets(Sizes, N) ->
    case {lists:keyfind(2, 1, Sizes), lists:keyfind(N, 1, Sizes)} of
        {{_, Two}, {_, Group}} -> sderl_claim_points:apart(Group, Two, [packets]);
        _ -> unknown
    end.

faster(One) ->
    Alone = sderl_claim_points:value(One, [seconds]),
    fun(#{<<"seconds">> := Seconds}) when is_number(Seconds), Seconds > 0, is_number(Alone) ->
            Alone / Seconds;
       (_) -> undefined
    end.

results(Sizes) ->
    lists:usort([{maps:get(<<"drives">>, Run, none), maps:get(<<"where">>, Run, none)}
                 || {_, #{runs := Runs}} <- Sizes, Run <- Runs]).

runs(Sizes) -> lists:sum([length(Runs) || {_, #{runs := Runs}} <- Sizes]).

speedups([_ | Sizes], One) ->
    text("Times as fast as on one node: ~ts.",
         [lists:join(", ", [text("~ts on ~w", [said(spread(Group, faster(One)), ""), N])
                            || {N, Group} <- Sizes])]).

traffic(Sizes, {Most, Group}) ->
    %% The most of all runs.
    Links = case spread(Group, [links_per_node_max]) of
        {_, _, Number} -> number(Number);
        undefined -> "unknown"
    end,
    Two = [[said(spread(Of, [packets]), ""), " on 2 and "] || {2, Of} <- Sizes, Most > 2],
    text("Packets: ~ts~ts on ~w; links of a node ~ts at most; the result is the same in all ~w "
         "runs.",
         [Two, said(spread(Group, [packets]), ""), Most, Links, runs(Sizes)]).

number(Value) -> sderl_table:number(Value).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Sizes = sizes(Points),
    Plot = fun(Title, Y, Series) ->
        #{title => Title, x => (axis("nodes", "", linear))#{zero => true}, y => Y,
          series => Series}
    end,
    Several = [Size || {N, _} = Size <- Sizes, N > 1],
    #{
        plots => [
            Plot(<<"Speedup">>, axis("times as fast as on one node", ""),
                 [series("city", Sizes, faster(One)) || {1, One} <- Sizes] ++
                     [#{name => <<"published">>,
                        points => [#{x => N, y => Y, low => Y, high => Y}
                                   || {N, Y} <- [{1, 1}, {2, 1.5}, {4, 2.2}, {16, 3.45}]]}
                      || Sizes =/= []]),
            Plot(<<"Packets sent">>, axis("packets", ""), [series("city", Several, [packets])]),
            Plot(<<"Bytes sent">>, axis("bytes", "B"), [series("city", Several, [bytes])]),
            Plot(<<"Links of a node, at most">>, axis("links", ""),
                 [series("city", Sizes, [links_per_node_max]),
                  #{name => <<"every node linked to each">>,
                    points => [#{x => N, y => N - 1, low => N - 1, high => N - 1}
                               || {N, _} <- Sizes]}])
        ],
        tables => [
            #{title => <<"All points">>,
              header => [<<"nodes">>, <<"s_groups">>, <<"runs">>, <<"time, s">>, <<"drives">>,
                         <<"packets">>, <<"messages">>, <<"bytes">>, <<"links of a node">>,
                         <<"processor, %">>],
              rows => [[text("~w", [N]), cell(Group, [groups]), text("~w", [length(Runs)])
                        | [cell(Group, [Key])
                           || Key <- [seconds, drives, packets, messages, bytes,
                                      links_per_node_max, cpu_pct]]]
                       || {N, #{runs := Runs} = Group} <- Sizes]}
        ],
        notes => [
            <<"The city is not that of Sim-Diasca, but of its scheme: actors that exchange "
              "messages in steps of time, under a tree of time managers. A node has a band of its "
              "rows, and each vehicle that drives to another node is a message and its "
              "acknowledgement.">>,
            <<"Nodes are in s_groups, each with the first node of the next, whose band touches; "
              "the first nodes are in one more. The root manager is above those of the groups, "
              "these above those of the nodes.">>,
            <<"Each node has one scheduler, and all share this machine's cores: a speedup beyond "
              "their number cannot be. Packets, messages and bytes are those of the steps alone, "
              "acknowledgements of TCP among the packets.">>
        ]
    }.

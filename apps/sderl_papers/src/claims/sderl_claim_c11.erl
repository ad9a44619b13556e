%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c11).
-moduledoc "Claim C11: the time of a deployment is linear in the number of nodes, or better.".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2]).
-import(sderl_claim_points, [chosen/3, value/2, cell/2, series/3, text/1, text/2]).

%% Nodes of a host, as published.
-define(PER_HOST, 72).
%% So many times the time in proportion to the nodes is linear still; over the other it is not.
-define(LINEAR, 1.2).
-define(MORE, 1.5).
%% Over a smaller range nothing is judged.
-define(RANGE, 4).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C11">>,
        title => <<"Deployment of many nodes">>,
        question => <<"How does the time of a deployment grow with the number of nodes?">>,
        claim =>
            <<"10,000 nodes, 72 on a host, are deployed in 212 s, some 47 a second, and the time "
              "is linear in the nodes: 0.0125 N + 83.5 s (report of the RELEASE project, Fig. 30; "
              "Chechina et al. 2017, 6.8)">>,
        share => 6
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{deploy := #{nodes := Nodes, hosts := Hosts, simulated := Simulated}}) ->
    [#{workload => deploy,
       params => #{kind => folders, nodes => N, hosts => Hosts, release_kib => 1024},
       fixed_s => 5, work_s => 5 + 0.8 * N}
     || N <- ends_first(Nodes)] ++
        [#{workload => deploy,
           params => #{kind => simulated, nodes => ?PER_HOST * N, hosts => N},
           fixed_s => 0, work_s => 1 + 0.02 * ?PER_HOST * N, most_runs => 1}
         || N <- ends_first(Simulated)].

%% The points that decide are measured first.
ends_first([_, _ | _] = Sizes) ->
    Ends = [hd(Sizes), lists:last(Sizes)],
    Ends ++ (Sizes -- Ends);
ends_first(Sizes) ->
    Sizes.

-doc """
Of real nodes, over a fourfold range or more, by the ratio of the times of the most and of the
fewest nodes over that of the nodes; of simulated ones, where a start is a timer, the same.
`confirmed`: both are at most 1.2, and no run failed. `refuted`: that of real nodes is over 1.5, in
several runs.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(judge(Points), sderl_claim_points:failed(Points, deploy, #{})).

judge(Points) ->
    Both = {real(Points), simulated(Points)},
    Said = text(lists:join(" ", [said(What, Groups)
                                 || {What, Groups} <- [{"Real nodes", element(1, Both)},
                                                       {"Simulated nodes", element(2, Both)}],
                                    Groups =/= []])),
    case {growth(element(1, Both)), growth(element(2, Both))} of
        {{Real, several}, _} when Real > ?MORE ->
            {refuted, text("~ts That is more than linear.", [Said])};
        {{Real, _}, {Timers, _}} when Real =< ?LINEAR, Timers =< ?LINEAR ->
            {confirmed, text("~ts Both are linear or better.", [Said])};
        {{_, _}, {_, _}} ->
            {not_shown, text("~ts Up to ~w times is linear.", [Said, ?LINEAR])};
        _ ->
            {not_shown, text("~ts For a verdict both are needed, over a fourfold number of nodes.",
                             [Said])}
    end.

real(Points) -> chosen(Points, deploy, #{kind => fun(Kind) -> Kind =/= <<"simulated">> end}).

simulated(Points) -> chosen(Points, deploy, #{kind => simulated}).

%% 1 is in proportion to the nodes.
growth([{Few, First} | [_ | _] = Groups]) ->
    {Most, #{runs := Runs} = Last} = lists:last(Groups),
    case {value(First, [deploy_s]), value(Last, [deploy_s])} of
        {Short, Long} when is_number(Short), is_number(Long), Short > 0, Most >= ?RANGE * Few ->
            {Long / Short * Few / Most, case Runs of [_, _ | _] -> several; _ -> one end};
        _ ->
            unknown
    end;
growth(_) ->
    unknown.

said(What, Groups) ->
    {Few, First} = hd(Groups),
    {Most, Last} = lists:last(Groups),
    text("~ts: ~ts s for ~w, ~ts s for ~w, ~ts a second~ts.",
         [What, number(value(First, [deploy_s])), Few, number(value(Last, [deploy_s])), Most,
          number(value(Last, [nodes_per_s])),
          [[", ", number(Growth), " times what is linear"]
           || {Growth, _} <- [growth(Groups)]]]).

number(Value) -> sderl_table:number(Value).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Lines = [{<<"real nodes">>, real(Points)}, {<<"simulated nodes">>, simulated(Points)}],
    #{
        plots => [
            #{
                title => text(["Time of a deployment, ", Name]),
                x => axis("nodes", ""), y => axis("time", "s"),
                series => [series(Name, Groups, [deploy_s])]
            }
         || {Name, Groups} <- Lines, Groups =/= []
        ],
        tables => [
            #{
                title => <<"Deployments">>,
                header => [<<"">>, <<"nodes">>, <<"hosts">>, <<"time, s">>, <<"nodes a second">>],
                rows => [
                    [Name, text("~w", [Nodes]), text("~w", [maps:get(<<"hosts">>, Params, 0)]),
                     cell(Group, [deploy_s]), cell(Group, [nodes_per_s])]
                 || {Name, Groups} <- Lines, {Nodes, #{params := Params} = Group} <- Groups
                ]
            }
        ],
        notes => [
            <<"Real nodes are virtual machines on this one, deployed from a file by bin/sderl ops "
              "to folders that act as hosts; the release is there beforehand. They share this "
              "machine's processors, so the time for one node is mostly that of its start.">>,
            <<"Simulated nodes are 72 on a host, as published; a start is a timer of 1 to 3 s, a "
              "transfer one of half a second, and what decides is the code of operations.">>
        ]
    }.

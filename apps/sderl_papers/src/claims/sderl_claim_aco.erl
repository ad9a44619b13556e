%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_aco).
-moduledoc """
The common part of the claims about ant colonies (C5 to C7, C10, C12): their points, which they
share, and their conditions.

In the distributed variants each colony has a node of its own, in a tree below nodes that only pass
results on: with degree P and X levels these are P^X colonies. `tl` has no such nodes,
and gets as many colonies, so that all four do the same work. They are therefore compared by
colonies; `nodes` are those of the trees, and one more node starts the run.
""".

-export([quality/3, weak/3, long/3]).
-export([excess/2, sized/2, failed/2, variants/0, order/2, nodes/1, name/1]).
-export([plot/4, table/1, table/2, notes/0]).

-import(sderl_claim_load, [axis/3]).
-import(sderl_claim_points, [grouped/3, value/2, series/3, cell/2, text/1, text/2]).

%% Seconds of processor time that a schedule of 100 jobs takes on a machine of today, and how it
%% grows with the jobs: with their square.
-define(ANT_S, 0.00006).
%% The processors of the smallest machine.
-define(CORES, 2).

-type variant() :: smp | tl | ml | gr | sr.

%% ---------------------------------------------------------------- what to measure

-doc "So many colonies in one virtual machine, on one instance.".
-spec quality(sderl_reproduce_scale:scale(), sderl_reproduce_scale:instance(),
              Colonies :: pos_integer()) -> sderl_claim:point().
quality(#{aco := #{quality := #{ants := Ants, local_iterations := L, global_iterations := G}}},
        Instance, Colonies) ->
    Size = maps:get(n, Instance, 100),
    #{
        workload => aco,
        params => #{
            variant => smp, instance => Instance, colonies => Colonies, ants => Ants,
            local_iterations => L, global_iterations => G, search => none, monitoring => off,
            chaos => none
        },
        fixed_s => 0,
        work_s => 0.7 + work_s(Colonies * Ants * L * G, Size)
    }.

-doc "The same work on each colony's node, with more of them on more nodes.".
-spec weak(sderl_reproduce_scale:scale(), variant(),
           {Nodes :: pos_integer(), Degree :: pos_integer()}) -> sderl_claim:point().
weak(#{aco := #{work := Work}, pairs := Pairs}, Variant, Tree) ->
    (tree(Variant, Tree, Work, #{}))#{least_runs => min(2, Pairs)}.

-doc "A longer run, with kills or monitoring as `Asked`.".
-spec long(sderl_reproduce_scale:scale(), variant(),
           Asked :: #{chaos => map(), monitoring => on}) -> sderl_claim:point().
long(#{aco := #{work := #{global_iterations := G} = Work, long := #{tree := Tree, times := Times}},
       pairs := Pairs}, Variant, Asked) ->
    (tree(Variant, Tree, Work#{global_iterations := Times * G}, Asked))#{least_runs => Pairs}.

tree(Variant, {Nodes, Degree},
     #{n := N, ants := Ants, local_iterations := L, global_iterations := G}, Asked) ->
    Colonies = leaves(Nodes, Degree),
    Used = case Variant of tl -> Colonies; _ -> Nodes end,
    Linked = case Variant of sr -> Degree + 1; _ -> Used end,
    #{
        workload => aco,
        params => maps:merge(#{
            variant => Variant, nodes => Used, degree => Degree, colonies => Colonies,
            instance => #{n => N, rdd => 0.2, tf => 0.6, seed => 1}, ants => Ants,
            local_iterations => L, global_iterations => G, search => none, monitoring => off,
            chaos => none
        }, Asked),
        fixed_s => 0,
        work_s => 3 + 0.1 * Used + 0.00035 * Used * Linked + work_s(Colonies * Ants * L * G, N)
    }.

work_s(Schedules, N) -> Schedules * ?ANT_S * (N / 100) * (N / 100) / ?CORES.

%% The colonies of the largest tree of a degree that so many nodes have room for: P^X, beside 1 + P
%% + ... + P^(X-2) others.
leaves(Nodes, Degree) when is_integer(Nodes), is_integer(Degree) ->
    case [power(Degree, X) || X <- lists:seq(2, 20), needed(X, Degree) =< Nodes] of
        [] -> max(1, Nodes - 1);
        Fit -> lists:last(Fit)
    end.

needed(X, P) -> lists:foldl(fun(I, Sum) -> Sum + power(P, I) end, power(P, X), lists:seq(0, X - 2)).

-spec power(pos_integer(), non_neg_integer()) -> pos_integer().
power(_, 0) -> 1;
power(P, X) -> P * power(P, X - 1).

%% ---------------------------------------------------------------- what was measured

-doc "The distributed variants, in the order in which they are shown.".
-spec variants() -> [variant()].
variants() -> [gr, tl, ml, sr].

-doc """
The excess over the best cost, in percent, for each number of colonies: `{Colonies, [{Instance,
Excess}]}`, of the instances that were measured with all these numbers. The best cost is the known
optimum, or else the least of all runs on the instance. An instance whose best cost is 0 is left
out, as there is no percentage of it. `Of`: the `final` cost, or that after an iteration.
""".
-spec excess([sderl_claim_points:measured()], Of :: final | pos_integer()) ->
    #{curve := [{pos_integer(), [{binary(), float()}]}], known := non_neg_integer(),
      runs := pos_integer()} | none.
excess(Points, Of) ->
    Groups =
        [Group
         || #{params := #{<<"colonies">> := C}} = Group <- grouped(Points, aco, #{variant => smp}),
            is_integer(C)],
    Bests = bests(Points),
    Seen = [
        {{C, sderl_reproduce_aco:name(Instance)}, 100 * (Cost - Best) / Best, length(Runs)}
     || #{params := #{<<"colonies">> := C, <<"instance">> := Instance}, runs := Runs} = Group <-
            widest(Groups),
        {Best, _} <- [maps:get(Instance, Bests, {0, unknown})],
        Best > 0,
        Cost <- [value(Group, cost(Of))],
        is_number(Cost)
    ],
    Instances = [I || {_, I} <- lists:usort([{string:length(I), I} || {{_, I}, _, _} <- Seen])],
    Colonies = lists:usort([C || {{C, _}, _, _} <- Seen]),
    %% As many numbers of colonies and instances as were measured completely.
    {Used, Whole} = whole(Colonies, Instances, [At || {At, _, _} <- Seen]),
    case {Used, Whole} of
        {[_ | _], [_ | _]} ->
            #{
                curve => [{C, [{I, E} || I <- Whole, {{D, J}, E, _} <- Seen, D =:= C, J =:= I]}
                          || C <- Used],
                known => length(lists:usort([I
                                             || #{params := #{<<"instance">> := Of1}} <- Groups,
                                                {_, known} <- [maps:get(Of1, Bests, none)],
                                                I <- [sderl_reproduce_aco:name(Of1)],
                                                lists:member(I, Whole)])),
                runs => lists:min([Runs
                                   || {{C, I}, _, Runs} <- Seen, lists:member(C, Used),
                                      lists:member(I, Whole)])
            };
        _ ->
            none
    end.

%% Only points with the same work: the most frequent one.
widest([]) -> [];
widest(Groups) ->
    By = maps:groups_from_list(fun(#{params := Params}) ->
        maps:without([<<"colonies">>, <<"instance">>], Params)
    end, Groups),
    {_, Most} = lists:last(lists:sort([{length(Of), Of} || Of <- maps:values(By)])),
    Most.

%% With instances that lack some number of colonies, the fewer of both are left out.
whole(Colonies, Instances, Seen) ->
    Choices = [
        {length(Cs) * length(Is), Cs, Is}
     || Cs <- [lists:sublist(Colonies, K) || K <- lists:seq(1, length(Colonies))],
        Is <- [[I || I <- Instances, lists:all(fun(C) -> lists:member({C, I}, Seen) end, Cs)]]
    ],
    case lists:sort(Choices) of
        [] -> {[], []};
        Sorted -> {_, Cs, Is} = lists:last(Sorted), {Cs, Is}
    end.

cost(final) -> [best_cost];
cost(Round) ->
    fun
        (#{<<"round_best">> := Costs}) when is_list(Costs), length(Costs) >= Round ->
            lists:nth(Round, Costs);
        (_) -> undefined
    end.

%% The best cost of each instance: the known one, or the least that any run found.
bests(Points) ->
    Groups = grouped(Points, aco, #{}),
    Instances = lists:uniq([I || #{params := #{<<"instance">> := I}} <- Groups]),
    #{I => best([Run
                 || #{params := #{<<"instance">> := J}, runs := Runs} <- Groups, J =:= I,
                    Run <- Runs])
      || I <- Instances}.

best(Runs) ->
    case [Best || #{<<"best_known">> := Best} <- Runs, is_number(Best)] of
        [Best | _] -> {Best, known};
        [] ->
            {lists:min([1 bsl 62 | [Cost || #{<<"best_cost">> := Cost} <- Runs, is_number(Cost)]]),
             unknown}
    end.

-doc """
The points of a distributed variant without kills and monitoring, by colonies: those with the work
that most of all of them have.
""".
-spec sized([sderl_claim_points:measured()], variant()) ->
    [{Colonies :: pos_integer(), sderl_claim_points:group()}].
sized(Points, Variant) ->
    Most = most(Points),
    lists:ukeysort(1, [{C, Group}
                       || #{params := #{<<"colonies">> := C} = Params} = Group <-
                              plain(Points, Variant),
                          work(Params) =:= Most]).

-doc "Runs of these points that could not be measured.".
-spec failed([sderl_claim_points:measured()], [variant()]) -> [sderl_claim_points:failure()].
failed(Points, Variants) ->
    Most = most(Points),
    [
        Failure
     || Variant <- Variants,
        #{params := Params} = Failure <- sderl_claim_points:failed(
            Points, aco, #{variant => Variant, chaos => none, monitoring => off}
        ),
        work(Params) =:= Most
    ].

plain(Points, Variant) ->
    grouped(Points, aco, #{variant => Variant, chaos => none, monitoring => off}).

work(Params) ->
    maps:with([<<"ants">>, <<"local_iterations">>, <<"global_iterations">>, <<"instance">>],
              Params).

%% The work that most points have.
most(Points) ->
    Works = [work(Params)
             || Of <- variants(),
                #{params := #{<<"colonies">> := _} = Params} <- plain(Points, Of)],
    case lists:sort([{length([W || W <- Works, W =:= Kind]), Kind}
                     || Kind <- lists:usort(Works)]) of
        [] -> none;
        Counts -> element(2, lists:last(Counts))
    end.

-doc "The largest number of colonies at which all these variants were measured, with the points.".
-spec order([sderl_claim_points:measured()], [variant()]) ->
    {Colonies :: pos_integer(), #{variant() => sderl_claim_points:group()}} | none.
order(Points, Variants) ->
    By = #{V => sized(Points, V) || V <- Variants},
    Sets = [[N || {N, _} <- Of] || Of <- maps:values(By)],
    case [N || N <- hd(Sets), lists:all(fun(Set) -> lists:member(N, Set) end, Sets)] of
        [] -> none;
        Both ->
            N = lists:max(Both),
            {N, #{V => Group || V := Of <- By, {M, Group} <- Of, M =:= N}}
    end.

-doc "The nodes of a point.".
-spec nodes(sderl_claim_points:group()) -> non_neg_integer().
nodes(#{params := #{<<"nodes">> := Nodes}}) -> Nodes;
nodes(_) -> 0.

-doc "The name of a variant.".
-spec name(variant()) -> unicode:chardata().
name(smp) -> "one node";
name(tl) -> "TL, two levels";
name(ml) -> "ML, many levels";
name(gr) -> "GR, global names";
name(sr) -> "SR, s_groups".

%% ---------------------------------------------------------------- pages

-doc "One line for each distributed variant.".
-spec plot(unicode:chardata(), sderl_claim:axis(), [sderl_claim_points:measured()],
           sderl_claim_points:what()) -> sderl_claim:plot().
plot(Title, Y, Points, What) ->
    #{
        title => text(Title),
        x => axis("colonies, each on a node", "", log),
        y => Y,
        series => [series(name(V), sized(Points, V), What) || V <- variants()]
    }.

-doc "All points of all variants, a row each.".
-spec table([sderl_claim_points:measured()]) -> sderl_claim:table().
table(Points) ->
    table("All points", [{name(V), Group} || V <- variants(), {_, Group} <- sized(Points, V)]).

-doc "A table with a row for each of these points.".
-spec table(unicode:chardata(), [{Name :: unicode:chardata(), sderl_claim_points:group()}]) ->
    sderl_claim:table().
table(Title, Named) ->
    #{
        title => text(Title),
        header => [
            <<"variant">>, <<"nodes">>, <<"degree">>, <<"colonies">>, <<"runs">>, <<"time, s">>,
            <<"schedules/s">>, <<"CPU µs per schedule"/utf8>>, <<"processor, %">>, <<"packets">>,
            <<"messages">>, <<"bytes">>, <<"links per node, most">>, <<"links in all">>,
            <<"best cost">>
        ],
        rows => [
            [text(Name),
             number(Params, <<"nodes">>),
             number(Params, <<"degree">>),
             cell(Group, [colonies]),
             text("~w", [length(Runs)])
             | [cell(Group, [Key])
                || Key <- [seconds, ants_per_s, cpu_us_per_op, cpu_pct, packets, messages, bytes,
                           links_per_node_max, links_total, best_cost]]]
         || {Name, #{params := Params, runs := Runs} = Group} <- Named
        ]
    }.

number(Params, Key) -> text(sderl_table:number(maps:get(Key, Params, undefined))).

-doc "The notes for the reader on all these points.".
-spec notes() -> [binary()].
notes() ->
    [
        <<"One machine instead of a host for each node: all colonies share its processor, so with "
          "more of them a run takes longer in every variant, and time tells only how much "
          "processor time one "
          "variant takes beside another. Processor time of a schedule, packets, messages and links "
          "are those that a cluster would have, too.">>,
        <<"A tree of degree P has a node for each of its colonies and a node for each P processes "
          "that pass results on; TL has no such nodes, and is given as many colonies. In all of "
          "them one more "
          "node starts the run. Colonies build schedules of "
          "100 jobs, with 4 ants each.">>,
        <<"TL and ML are without any recovery. GR links and registers its processes with `global`, "
          "and SR the same in s_groups, so that a process that dies comes back.">>
    ].

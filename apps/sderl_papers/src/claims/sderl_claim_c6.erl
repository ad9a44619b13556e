%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c6).
-moduledoc """
Claim C6: of the distributed ant colonies those with global names scale worst, those in s_groups
best.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [value/2, apart/3, text/2]).

%% Fewer nodes say nothing; a different order refutes the claim only with more than PUBLISHED_NODES.
-define(LEAST_NODES, 20).
-define(PUBLISHED_NODES, 100).
%% So many times as much is more; within SAME times is the same.
-define(MORE, 1.1).
-define(SAME, 1.05).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C6">>,
        title => <<"Ant colonies: weak scaling">>,
        question =>
            <<"With the same work on each node, which of the four distributed programs costs most "
              "as the nodes grow, and which least?">>,
        claim =>
            <<"Weak scaling of the ant colonies on up to 250 nodes: GR, with names of `global`, "
              "takes by far the longest; ML, with many levels, slightly less than TL, with two; "
              "SR, with names of s_groups, the least "
              "(Chechina et al. 2017, Fig. 9; RELEASE project, Fig. 31)">>,
        share => 13
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{aco := #{trees := Trees}} = Scale) ->
    [Most | Others] = lists:reverse(lists:sort(Trees)),
    Order = [Most
             | case Others of [] -> []; _ -> [lists:last(Others) | lists:droplast(Others)] end],
    [sderl_claim_aco:weak(Scale, Variant, Tree) || Tree <- Order, Variant <- [gr, sr, ml, tl]].

-doc """
At the largest number of colonies at which all four were measured, by the processor time of a
schedule, as time on one machine is that of its processor. `confirmed`: in several runs GR takes
more than each of the others, by over 1.1 times; in trees of one degree it takes over 1.05 times as
much beside SR with the most colonies as with the fewest; SR takes at most 1.05 times what TL and ML
take; and no run failed. `refuted`: on over 100 nodes GR takes less than one of the others, or SR
over 1.1 times as much, in each of several runs.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    case sderl_claim_aco:order(Points, sderl_claim_aco:variants()) of
        none -> {not_shown, <<"There is no number of colonies at which all four were measured.">>};
        {C, By} ->
            sderl_claim_points:whole(judge(C, By, Points),
                                     sderl_claim_aco:failed(Points, sderl_claim_aco:variants()))
    end.

judge(C, By, Points) ->
    case lists:all(fun(Group) -> is_number(value(Group, [cpu_us_per_op])) end, maps:values(By)) of
        false -> {not_shown, <<"The processor time of a schedule was not measured.">>};
        true -> judge_known(C, By, Points)
    end.

judge_known(C, #{gr := Gr, sr := Sr, tl := Tl, ml := Ml} = By, Points) ->
    N = sderl_claim_aco:nodes(Gr),
    Cpu = fun(Group) -> value(Group, [cpu_us_per_op]) end,
    Runs = lists:min([length(R) || #{runs := R} <- maps:values(By)]),
    Growth = growth(Points),
    Said = text("~ts~ts", [said(C, By), grown(Growth)]),
    Worst = lists:all(fun(Other) -> more(Gr, Other) end, [Sr, Tl, Ml]),
    Least = lists:all(fun(Other) -> Cpu(Sr) =< ?SAME * Cpu(Other) end, [Tl, Ml]),
    Turned = lists:any(fun(Other) -> more(Other, Gr) end, [Sr, Tl, Ml])
        orelse lists:any(fun(Other) -> more(Sr, Other) end, [Tl, Ml]),
    Grows = case Growth of {_, {_, Small}, {_, Large}} -> Large > ?SAME * Small; none -> false end,
    if
        N < ?LEAST_NODES -> {not_shown, text("~ts These are too few nodes to judge by.", [Said])};
        Runs < 2 ->
            {not_shown, text("~ts There is one run of some of them, which is too few.", [Said])};
        Worst, Least, Grows ->
            {confirmed, text("~ts GR costs most, and more so than with the fewest colonies; SR no "
                             "more than TL and ML.", [Said])};
        Turned, N > ?PUBLISHED_NODES -> {refuted, text("~ts The order is another one.", [Said])};
        true ->
            {not_shown, text("~ts That is not the published order, or not clearly; there the nodes "
                             "were up to 250.", [Said])}
    end.

more(A, B) ->
    apart(A, B, [cpu_us_per_op]) =:= more
        andalso value(A, [cpu_us_per_op]) > ?MORE * value(B, [cpu_us_per_op]).

%% The cost of GR relative to SR with the fewest and with the most colonies, for the degree with
%% most sizes: trees of another degree have another share of nodes that only pass results on. Points
%% with one run are left out.
growth(Points) ->
    Ratios = [
        {Degree, {C, A / B}}
     || {C, #{params := #{<<"degree">> := Degree}, runs := [_, _ | _]} = Gr} <-
            sderl_claim_aco:sized(Points, gr),
        {D, #{params := #{<<"degree">> := Other}, runs := [_, _ | _]} = Sr} <-
            sderl_claim_aco:sized(Points, sr),
        D =:= C, Other =:= Degree,
        A <- [value(Gr, [cpu_us_per_op])], B <- [value(Sr, [cpu_us_per_op])], is_number(A),
        is_number(B), B > 0
    ],
    By = maps:groups_from_list(fun({Degree, _}) -> Degree end, fun({_, Of}) -> Of end, Ratios),
    case lists:sort([{length(Of), Degree, Of} || Degree := Of <- By]) of
        [_ | _] = Sorted ->
            case lists:last(Sorted) of
                {_, _, [_]} -> none;
                {_, Degree, [First | Of]} -> {Degree, First, lists:last(Of)}
            end;
        [] ->
            none
    end.

grown(none) -> "";
grown({Degree, {Few, Small}, {Most, Large}}) ->
    text(" In trees of degree ~w GR takes ~ts times the processor time of SR with ~w colonies and "
         "~ts times with ~w.",
         [Degree, sderl_table:number(Small), Few, sderl_table:number(Large), Most]).

said(C, #{gr := Gr} = By) ->
    Of = fun(Key) ->
        lists:join(", ", [text("~ts ~ts", [string:uppercase(atom_to_list(V)),
                                           sderl_table:number(value(map_get(V, By), [Key]))])
                          || V <- sderl_claim_aco:variants()])
    end,
    text("With ~w colonies, in trees of ~w nodes, a schedule takes this much processor time in µs: "
         "~ts; a run this long in s: ~ts; packets: ~ts.",
         [C, sderl_claim_aco:nodes(Gr), Of(cpu_us_per_op), Of(seconds), Of(packets)]).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Plot = fun(Title, Y, What) -> sderl_claim_aco:plot(Title, Y, Points, What) end,
    #{
        plots => [
            Plot("Run time, bounded by the one processor", axis("time", "s", log), [seconds]),
            Plot("Processor time of a schedule", axis("CPU time", "µs"), [cpu_us_per_op]),
            Plot("Packets of a run", axis("packets", "", log), [packets]),
            Plot("Links of all nodes", axis("links", "", log), [links_total]),
            Plot("Processor", axis("of all cores", "%"), [cpu_pct])
        ],
        tables => [
            sderl_claim_aco:table(Points)
        ],
        notes => sderl_claim_aco:notes()
    }.

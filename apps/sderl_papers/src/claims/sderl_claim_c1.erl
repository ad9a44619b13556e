%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c1).
-moduledoc """
Claim C1: global operations end the growth of stock Erlang, the sooner the more of them there are.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [point/4, groups/3, percent/1, plot/4, axis/2, axis/3]).
-import(sderl_claim_points, [value/2, text/2]).

%% A cluster is past its bend when a global operation takes so many times as long as it would if its
%% time grew in proportion to the nodes ...
-define(BEND, 2).
%% ... or when less than this is done of what is asked, in percent.
-define(DONE_PCT, 95).
%% All clusters were fine, and the largest is at least so many times the smallest: that refutes.
-define(RANGE, 10).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C1">>,
        title => <<"Global operations stop stock Erlang">>,
        question =>
            <<"At which number of nodes does a stock cluster no longer keep up with its global "
              "operations, and is it sooner the larger their share is?">>,
        claim =>
            <<"DE-Bench on 10 to 100 nodes: 0.005 to 0.01 % of global operations stop the growth "
              "of throughput at 40 to 60 nodes; the larger the share, "
              "the sooner (Chechina et al. 2016, Fig. 2; RELEASE project, Fig. 9)">>,
        share => 18
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{shares := Shares, few := Few, base_pct := Base} = Scale) ->
    Ends = sderl_claim_load:ends(Scale),
    Middle = sderl_claim_load:middle(Scale),
    Falling = lists:reverse(lists:sort(Shares -- Few)),
    [point(Scale, stock, Size, Pct) || Pct <- [Base | Falling -- [Base]], Size <- Ends] ++
        [point(Scale, stock, Size, Pct) || Pct <- Falling, Size <- Middle] ++
        [(point(Scale, stock, Size, Pct))#{most_runs => 1}
         || Pct <- lists:reverse(lists:sort(Few)), Size <- lists:reverse(Ends)].

-doc """
Compares the sizes at which each share and the larger ones bend, among the sizes at which both were
measured. `confirmed`: no larger share bends later, and one sooner. `refuted`: a larger one bends
later; or nothing bends over a tenfold range, though 1 % or more was asked for.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    Curves = [{Pct, Groups}
              || Pct <- sderl_claim_load:shares(Points, [stock]),
                 [_, _ | _] = Groups <- [groups(Points, stock, Pct)]],
    Pairs = [compared(Small, Large)
             || {_, _} = Small <- Curves, {_, _} = Large <- Curves,
                element(1, Small) < element(1, Large)],
    Said = lists:join(" ", [said(Curve) || Curve <- Curves]),
    case {lists:member(later, Pairs), lists:member(sooner, Pairs)} of
        {true, _} -> {refuted, text("~ts A larger share bent later than a smaller one.", [Said])};
        {false, true} ->
            {confirmed, text("~ts The larger share bent sooner, and no smaller one did.", [Said])};
        {false, false} when Curves =:= [] ->
            {not_shown, <<"No share was measured at two sizes of the cluster.">>};
        {false, false} ->
            case lists:any(fun flat/1, Curves) of
                true ->
                    {refuted,
                     text("~ts Nothing bent over a range in which the published curves do.",
                          [Said])};
                false ->
                    {not_shown, text("~ts That one share bends sooner than another was not seen at "
                                     "this scale.", [Said])}
            end
    end.

compared({_, Small}, {_, Large}) ->
    Sizes = [N || {N, _} <- Small, lists:keymember(N, 1, Large)],
    Of = fun(Groups) -> bend([Sized || {N, _} = Sized <- Groups, lists:member(N, Sizes)]) end,
    %% An atom (`none`) is greater than any number.
    case {Of(Small), Of(Large)} of
        {Same, Same} -> same;
        {A, B} when B < A -> sooner;
        _ -> later
    end.

flat({Pct, Groups}) ->
    case sderl_claim_load:growth(Groups, sderl_claim_load:p(global, p50)) of
        #{range := Range, ratio := Ratio} ->
            Pct >= 1 andalso Range >= ?RANGE andalso Ratio < 2 andalso bend(Groups) =:= none;
        unknown -> false
    end.

%% The first size past the bend.
bend([]) ->
    none;
bend([{Least, Smallest} | _] = Groups) ->
    %% Without a value it is an atom, which is greater than any number.
    Limit = fun(N) ->
        case value(Smallest, sderl_claim_load:p(global, p50)) of
            undefined -> none;
            Ms -> ?BEND * Ms * N / Least
        end
    end,
    case [N || {N, Group} <- Groups, past(Group, Limit(N))] of
        [] -> none;
        [N | _] -> N
    end.

past(Group, Limit) ->
    Slow = case value(Group, sderl_claim_load:p(global, p50)) of
        undefined -> false;
        Ms -> Ms > Limit
    end,
    Lost = case value(Group, [global_done_pct]) of undefined -> false; Pct -> Pct < ?DONE_PCT end,
    Slow orelse Lost.

said({Pct, Groups}) ->
    {Last, Group} = lists:last(Groups),
    Where = case bend(Groups) of
        none -> text("did not bend up to ~w nodes", [Last]);
        N -> text("bent at ~w nodes", [N])
    end,
    Ratio = case sderl_claim_load:growth(Groups, sderl_claim_load:p(global, p50)) of
        #{from := From, ratio := R} ->
            [sderl_table:number(R), io_lib:format(" times that with ~w, ", [From])];
        unknown -> "not known, "
    end,
    text("~ts % of global operations ~ts (at ~w p50 ~ts~ts % of them done, processor ~ts %).",
         [percent(Pct), Where, Last, Ratio, number(Group, global_done_pct),
          number(Group, cpu_pct)]).

number(Group, Key) -> sderl_table:number(value(Group, [Key])).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Modes = [{Mode, Pct, groups(Points, Mode, Pct)}
             || Mode <- [stock, sd, pg], Pct <- sderl_claim_load:shares(Points, [Mode])],
    Shown = [{name(Mode, Pct), Groups}
             || {Mode, Pct, Groups} <- Modes, Mode =:= stock orelse shown(Points, Pct)],
    #{
        plots => [
            (plot("Global operations done of those asked for", axis("done", "%"), Shown,
                  [global_done_pct]))#{
                      marks => [#{y => ?DONE_PCT, text => <<"95 %">>}]
                  }
        ] ++ sderl_claim_load:latency_plots("Global operations by their share", Shown) ++ [
            plot("Processor", axis("of all cores", "%"), Shown, [cpu_pct]),
            plot("Processor time of an operation", axis("CPU time", "µs", log), Shown,
                 [cpu_us_per_op])
        ],
        tables => [sderl_claim_load:table("All shares", Modes)],
        notes => [
            text("A share bends at the first size at which the p50 of global operations is over ~w "
                 "times what it would be if it grew in proportion to the nodes, "
                 "or less than ~w % of those that were asked for are done. Unlike in the other "
                 "claims, points that are short of processor are judged too; how much of it was "
                 "used at the bend says whether it was the processor "
                 "that gave out, which all nodes share on one machine, or the lock of `global`, "
                 "for which nodes wait on a cluster of hosts, too.",
                 [?BEND, ?DONE_PCT]),
            <<"Nodes make more operations a second with a small share of global operations, so "
              "that there are enough of these, and fewer with a large one, so that the processor "
              "has time: the rates "
              "are in the table. Both make a small share bend sooner and a large one later, "
              "against what is claimed.">>
            | sderl_claim_load:notes([Groups || {stock, _, Groups} <- Modes], all)
        ]
    }.

name(stock, Pct) -> text("~ts %", [percent(Pct)]);
name(Mode, Pct) -> text("~ts %, ~ts", [percent(Pct), sderl_claim_load:mode_name(Mode)]).

%% The other modes are compared with the largest share only; the rest is claim C3.
shown(Points, Pct) -> Pct == lists:max([0 | sderl_claim_load:shares(Points, [stock])]).

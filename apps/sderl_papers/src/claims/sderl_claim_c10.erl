%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c10).
-moduledoc "Claim C10: ant colonies finish while their processes are killed, and it costs nothing.".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points,
        [grouped/3, value/2, sum/2, spread/2, apart/3, paired/3, cell/2, scaled/2, text/1, text/2]).

%% More than COST times as long is a cost; up to NONE times is none.
-define(NONE, 1.1).
-define(COST, 1.5).
%% Kills behind a verdict, in each variant.
-define(LEAST_KILLS, 5).

-define(VARIANTS, [gr, sr]).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C10">>,
        title => <<"Ant colonies: failures">>,
        question =>
            <<"Do the ant colonies finish while a process is killed on each node every second, how "
              "much longer do they take, and how soon is a process back?">>,
        claim =>
            <<"One random process a second is killed on every node: GR and SR finish with their "
              "results, the run time does not change measurably, and a process is back in about "
              "0.3 ms "
              "(Chechina et al. 2017, 5.4.2)">>,
        share => 8
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{aco := #{long := #{kill_every_ms := Ms}}} = Scale) ->
    [sderl_claim_aco:long(Scale, Variant, Asked)
     || Variant <- lists:reverse(?VARIANTS), Asked <- [#{}, #{chaos => #{every_ms => Ms}}]].

-doc """
`confirmed`: all runs of both variants with kills finish, with a cost, without a name left over and
with all back that was killed, which must be known of every run, in at most 1.1 times the time of
those without, with five kills or more in each; and no run failed, with kills or without. `refuted`:
a run with kills does not finish, by itself and not for what is beside it, or leaves a name; or they
take over 1.5 times as long, in all of several runs.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    Both = [{V, Pair} || V <- ?VARIANTS, {_, _} = Pair <- [both(Points, V)]],
    Said = text(lists:join(" ", [said(V, Pair) || {V, Pair} <- Both])),
    case sderl_claim_points:broken(Points, aco, #{monitoring => off}) of
        {[#{params := Params, reason := Reason} | _], _} ->
            {refuted,
             text("~ts A run of ~ts with kills did not finish: ~ts.",
                  [Said, string:uppercase(maps:get(<<"variant">>, Params, <<"?">>)), Reason])};
        {[], Failed} ->
            sderl_claim_points:whole(judge(Both, Said), Failed)
    end.

judge(Both, Said) ->
    Sum = fun(Key) -> lists:sum([sum(Killed, [Key]) || {_, {_, Killed}} <- Both]) end,
    {Left, Away} = {Sum(names_left), Sum(kills_not_back)},
    Lacking = lists:usort([Key
                           || {_, {_, Killed}} <- Both, Key <- sderl_claim_points:lacking(
                               Killed, [best_cost, seconds, kills, names_left, kills_not_back]
                           )]),
    Enough = lists:all(fun({_, {_, Killed}}) -> sum(Killed, [kills]) >= ?LEAST_KILLS end, Both),
    Ratios = [R || {_, Pair} <- Both, R <- [ratio(Pair)], is_number(R)],
    Slow = [V
            || {V, {Plain, Killed} = Pair} <- Both, is_number(ratio(Pair)), ratio(Pair) > ?COST,
               apart(Killed, Plain, [seconds]) =:= more, several(Plain), several(Killed)],
    Most = lists:max([0 | Ratios]),
    if
        Left > 0 -> {refuted, text("~ts Names left over: ~w.", [Said, Left])};
        Slow =/= [] -> {refuted, text("~ts That is a cost.", [Said])};
        length(Ratios) < length(?VARIANTS) ->
            {not_shown,
             text("~ts Not both variants were measured with kills and without.", [Said])};
        Lacking =/= [] ->
            {not_shown, text("~ts Not known of every run: ~ts.",
                             [Said, lists:join(", ", [atom_to_list(Key) || Key <- Lacking])])};
        Away > 0 ->
            {not_shown,
             text("~ts ~w of the killed processes were not back at the end.", [Said, Away])};
        not Enough -> {not_shown, text("~ts These are too few kills to judge by.", [Said])};
        Most =< ?NONE -> {confirmed, Said};
        true ->
            {not_shown, text("~ts Over ~w times as long does not confirm the claim; only over ~w "
                             "times in all of several runs refutes it.", [Said, ?NONE, ?COST])}
    end.

several(#{runs := Runs}) -> length(Runs) > 1.

ratio({Plain, Killed}) ->
    sderl_table:median([A / B || {A, B} <- paired(Killed, Plain, [seconds]), B > 0]).

said(V, {#{params := Params} = Plain, Killed} = Pair) ->
    text("~ts on ~w nodes: ~ts s with ~w kills, ~ts s without, ~ts times; a process is back in ~ts "
         "ms (p99 ~ts, most ~ts).",
         [
             string:uppercase(atom_to_list(V)), maps:get(<<"nodes">>, Params, 0),
             number(value(Killed, [seconds])), sum(Killed, [kills]),
             number(value(Plain, [seconds])), number(ratio(Pair))
             | [number(value(Killed, scaled([recovery_us, P], 0.001))) || P <- [p50, p99, max]]
         ]).

number(Value) -> sderl_table:number(Value).

%% Without kills and with them, all else being equal.
both(Points, Variant) ->
    case killed(Points, Variant) of
        [#{params := Params} = Killed | _] ->
            case [Group
                  || #{params := Of} = Group <- plain(Points, Variant),
                     maps:remove(<<"chaos">>, Of) =:= maps:remove(<<"chaos">>, Params)] of
                [Plain | _] -> {Plain, Killed};
                [] -> none
            end;
        [] ->
            none
    end.

killed(Points, Variant) ->
    grouped(Points, aco, #{variant => Variant, monitoring => off, chaos => fun is_map/1}).

plain(Points, Variant) ->
    grouped(Points, aco, #{variant => Variant, monitoring => off, chaos => none}).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Both = [{V, Pair} || V <- ?VARIANTS, {_, _} = Pair <- [both(Points, V)]],
    #{
        plots => [
            #{
                title => <<"Time until a process is back (published: about 0.3 ms)">>,
                x => axis("percentile", "%", linear), y => axis("recovery", "ms", log),
                series => [#{name => text(sderl_claim_aco:name(V)), points => percentiles(Killed)}
                           || {V, {_, Killed}} <- Both]
            },
            #{
                title => <<"Best cost after each global iteration">>,
                x => axis("global iterations", "", linear), y => (axis("cost", ""))#{zero => false},
                series => [
                    #{name => text([sderl_claim_aco:name(V), Word]), points => costs(Group)}
                 || {V, {Plain, Killed}} <- Both,
                    {Word, Group} <- [{", no kills", Plain}, {", kills", Killed}]
                ]
            }
        ],
        tables => [
            #{
                title => <<"Kills and recovery">>,
                header => [<<"variant">>, <<"nodes">>, <<"runs">>, <<"kills">>, <<"not back">>,
                           <<"time with kills, s">>, <<"without, s">>, <<"recovery p50, ms">>,
                           <<"p99, ms">>, <<"max, ms">>, <<"names left">>],
                rows => [
                    [
                        text(sderl_claim_aco:name(V)),
                        text("~w", [maps:get(<<"nodes">>, Params, 0)]), text("~w", [length(Runs)]),
                        cell(Killed, [kills]), cell(Killed, [kills_not_back]),
                        cell(Killed, [seconds]), cell(Plain, [seconds])
                        | [cell(Killed, scaled([recovery_us, P], 0.001)) || P <- [p50, p99, max]]
                    ] ++ [cell(Killed, [names_left])]
                 || {V, {Plain, #{params := Params, runs := Runs} = Killed}} <- Both
                ]
            },
            sderl_claim_aco:table("All points",
                                  [{[sderl_claim_aco:name(V), Word], Group}
                                   || {V, {Plain, Killed}} <- Both,
                                      {Word, Group} <- [{"", Plain}, {", kills", Killed}]])
        ],
        notes => [
            <<"Kills come while the global iterations last, the first one period after these "
              "begin, and are `exit(Pid, kill)` to one process of the run on each node. Recovery "
              "is from each kill until another process "
              "for the same task is alive on that node, as the killer sees it. What a colony "
              "learned goes with it: a new one begins anew, and is told the best of all.">>
            | sderl_claim_aco:notes()
        ]
    }.

percentiles(Killed) ->
    [
        #{x => X, y => Y, low => Low, high => High}
     || {X, P} <- [{50, p50}, {99, p99}, {100, max}],
        {Y, Low, High} <- [spread(Killed, scaled([recovery_us, P], 0.001))]
    ].

%% The median of the runs.
costs(#{runs := Runs} = Group) ->
    [
        #{x => Round, y => Y, low => Low, high => High}
     || Round <- lists:seq(1, lists:max(
         [0 | [length(Costs) || #{<<"round_best">> := Costs} <- Runs, is_list(Costs)]]
     )),
        {Y, Low, High} <- [spread(Group, fun
            (#{<<"round_best">> := Costs}) when is_list(Costs), length(Costs) >= Round ->
                lists:nth(Round, Costs);
            (_) -> undefined
        end)]
    ].

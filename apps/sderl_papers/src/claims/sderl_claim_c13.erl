%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c13).
-moduledoc """
Claim C13: finer locks and reader groups make tables of ETS scale, and contention-adapting trees
beat both kinds of table. Today's OTP has them as options: `read_concurrency` for the reader groups,
`{write_concurrency, auto}` and `decentralized_counters` for the locks, and `write_concurrency` of
an `ordered_set` for the trees.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [cell/2, text/1, text/2]).
-import(sderl_claim_vm, [time/2, speedup/2, ratio/2, each/2, spread/2, said/2]).

-define(TABLES, <<"set,set+read,set+auto,set+write+counters,ordered_set,ordered_set+auto">>).
-define(SHARES, [10, 1]).
%% Times the operations of a table without options: by finer locks, and of a tree.
-define(LOCKS, 1.5).
-define(TREE, 1.1).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C13">>,
        title => <<"Tables by schedulers">>,
        question =>
            <<"Which options let a table of ETS that all read and some change scale with "
              "schedulers?">>,
        claim =>
            <<"With a million rows and 17 million operations, 10 % and 1 % of them updates, finer "
              "locks and reader groups made tables scale; contention-adapting trees beat both "
              "`set` and `ordered_set` (report of the RELEASE project, Fig. 17 to 19)">>,
        share => 20
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{vm := #{keys := Keys, operations := Operations}} = Scale) ->
    [sderl_claim_vm:point(Scale, #{bench => tables, tables => ?TABLES,
                                   updates => integer_to_binary(Share), adds => <<"-">>,
                                   distribution => <<"uniform">>, keys => Keys,
                                   operations => Operations}, length(tables()))
     || Share <- ?SHARES].

tables() -> binary:split(?TABLES, <<",">>, [global]).

%% Successors of what was published: any of these with finer locks.
locks() -> [Table || Table <- tables(), is_set(Table), Table =/= <<"set">>].

is_set(<<"set", _/binary>>) -> true;
is_set(_) -> false.

-doc """
On the most schedulers, 4 or more, by operations a second. `confirmed`: with both shares of updates,
in every run, the best `set` with options has 1.5 times those of `set` without, the tree
(`ordered_set` with `write_concurrency`) has 1.1 times those of `set` and of `ordered_set` without
options, and no run failed. `refuted`: with one of the shares, in all of several runs, none of the
options is faster than `set` without, or the tree is slower than one of the two.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(
        judge([{Share, group(Points, Share)} || Share <- ?SHARES]),
        sderl_claim_points:failed(Points, vm, #{bench => tables})
    ).

group(Points, Share) ->
    sderl_claim_vm:group(Points, #{bench => tables, updates => integer_to_binary(Share)}).

judge(Shares) ->
    Found = [said_of(Share, Group) || {Share, #{} = Group} <- Shares],
    Said = text(lists:join(" ", [Text || {_, Text, _} <- Found])),
    Least = lists:min([N || {N, _, _} <- Found] ++ [infinity]),
    Range = sderl_claim_vm:range(),
    Kinds = [Kind || {_, _, Kind} <- Found],
    Wrong = [Why || {refuted, Why} <- Kinds],
    if
        length(Found) < length(Shares) ->
            {not_shown, text([Said, [" " || Said =/= <<>>],
                              "For a verdict both shares of updates are needed."])};
        Least < Range -> {not_shown, text("~ts The range is too small to judge by.", [Said])};
        Wrong =/= [] -> {refuted, text("~ts ~ts", [Said, hd(Wrong)])};
        true ->
            case lists:all(fun(Kind) -> Kind =:= confirmed end, Kinds) of
                true -> {confirmed, Said};
                false ->
                    {not_shown, text("~ts For a verdict the best options are to give ~w times what "
                                     "`set` gives, and the tree ~w times what both give.",
                                     [Said, ?LOCKS, ?TREE])}
            end
    end.

said_of(Share, #{runs := Runs} = Group) ->
    N = sderl_claim_vm:most(Group),
    Against = fun(Table, Other) -> spread(Group, ratio(per_s(Table, N), per_s(Other, N))) end,
    Options = [{Ratio, Table}
               || Table <- locks(), {_, _, _} = Ratio <- [Against(Table, <<"set">>)]],
    {Best, Name} = lists:last([{undefined, <<"no option">>} | lists:sort(Options)]),
    [OfSet, OfOrdered] = [Against(<<"ordered_set+auto">>, Table)
                          || Table <- [<<"set">>, <<"ordered_set">>]],
    Text = text("With ~w % of updates on ~w schedulers `~ts` has ~ts times the operations of "
                "`set`; the tree, `ordered_set+auto`, ~ts times those of `set` and ~ts times "
                "those of `ordered_set`.",
                [Share, N, Name, said(Best, ""), said(OfSet, ""), said(OfOrdered, "")]),
    {N, Text, kind(length(Runs) > 1, Best, OfSet, OfOrdered)}.

kind(Several, {_, Low, High}, {_, SetLow, SetHigh}, {_, OrderedLow, OrderedHigh}) ->
    if
        Several, High < 1 -> {refuted, <<"No option gains anything.">>};
        Several, SetHigh < 1 -> {refuted, <<"The tree is slower than `set`.">>};
        Several, OrderedHigh < 1 -> {refuted, <<"The tree is slower than `ordered_set`.">>};
        Low >= ?LOCKS, SetLow >= ?TREE, OrderedLow >= ?TREE -> confirmed;
        true -> not_shown
    end;
kind(_, _, _, _) ->
    not_shown.

row(Table) -> #{<<"table">> => Table}.

%% A million operations a second, from the number of operations of a run.
per_s(Table, N) ->
    fun(#{<<"rows">> := Rows} = Run) ->
            case [Count || #{<<"operations">> := Count} <- Rows] of
                [Count | _] -> (each(fun(Ms) -> Count / Ms / 1000 end, time(row(Table), N)))(Run);
                [] -> undefined
            end;
       (_) -> undefined
    end.

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Shares = [{Share, Group} || Share <- ?SHARES, #{} = Group <- [group(Points, Share)]],
    Plot = fun(Title, Share, Group, Y, What) ->
        #{title => text("~ts, ~w % of updates", [Title, Share]),
          x => (axis("schedulers", "", linear))#{zero => true}, y => Y,
          series => [sderl_claim_vm:lines(Table, Group, fun(N) -> What(Table, N) end)
                     || Table <- tables()]}
    end,
    #{
        plots => lists:append([
            [Plot("Operations", Share, Group, axis("million operations", "1/s"), fun per_s/2),
             Plot("Speedup", Share, Group, axis("times as fast as on one scheduler", ""),
                  fun(Table, N) -> speedup(row(Table), N) end)]
         || {Share, Group} <- Shares
        ]),
        tables => [
            #{title => <<"All points">>,
              header => [<<"table">>, <<"updates, %">>, <<"schedulers">>, <<"runs">>,
                         <<"million operations a second">>, <<"speedup">>],
              rows => [[Table, text("~w", [Share]), text("~w", [N]), text("~w", [length(Runs)]),
                        cell(Group, per_s(Table, N)), cell(Group, speedup(row(Table), N))]
                       || {Share, #{runs := Runs} = Group} <- Shares, Table <- tables(),
                          N <- sderl_claim_vm:schedulers(Group)]}
        ],
        notes => [
            <<"`+read` is `read_concurrency`, the successor of the published reader groups; "
              "`+auto` and `+write` are `write_concurrency`; `+counters` is "
              "`decentralized_counters`, and `+auto` has it too. An `ordered_set` with "
              "`write_concurrency` is a contention-adapting tree since OTP 22.">>,
            <<"Half of the keys are in the table at the start, and all are drawn alike; half of "
              "the updates are insertions, and half deletions. Scale `full` has the published "
              "size.">>
            | sderl_claim_vm:notes([Group || {_, Group} <- Shares])
        ]
    }.

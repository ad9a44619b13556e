%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c9).
-moduledoc "Claim C9: the messenger delivers the same while its processes are killed.".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2, axis/3]).
-import(sderl_claim_points, [grouped/3, value/2, sum/2, spread/2, paired/3, text/1, text/2]).

%% Throughput in percent of that without kills: NONE or more is no impact, less than IMPACT is one.
-define(NONE, 95).
-define(IMPACT, 80).
%% Kills behind a verdict, in each mode.
-define(LEAST_KILLS, 10).
%% The counts that must be 0: the claim says so of the first, and the others would be defects.
-define(WRONG, [broken_conversations_not_killed, lost_messages, names_missing, names_left]).
-define(BEHIND, [not_back, clients_left, rows_left, processes_left]).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C9">>,
        title => <<"Messenger: failures">>,
        question =>
            <<"Does the messenger go on delivering while its processes are killed, and does it "
              "lose no conversation but those whose processes were killed?">>,
        claim =>
            <<"With 2 routers and 12 servers, a random process killed every 15 s, then every 5 s, "
              "then a database every 5 s down to every second, from minute 5 to 15: no impact on "
              "the throughput of "
              "RD-IM or of RSD-IM (Chechina et al. 2017, Fig. 12)">>,
        share => 14
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(Scale) ->
    %% The most kills first.
    Stages = [none | lists:reverse(sderl_claim_im:stages(Scale))],
    [sderl_claim_im:killed(Scale, Mode, Stage) || Stage <- Stages, Mode <- sderl_claim_im:modes()].

-doc """
`confirmed`: in both modes, with all kills that were tried, at least 95 % is delivered of what is
delivered without kills, no conversation ended and no message was lost whose session was not killed,
no name is missing or left over, all that was killed came back, and nothing was left at the end, all
of which must be known of every run; with 10 kills or more in each mode, and no run failed.
`refuted`: such a conversation, message or name in one of the runs; or a run that failed, and not
for what is beside it; or less than 80 % is delivered, in each of several runs.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    Of = [{Mode, Group, Plain}
          || Mode <- sderl_claim_im:modes(), Plain <- plain(Points, Mode),
             Group <- killed(Points, Mode)],
    Missing = [Mode || Mode <- sderl_claim_im:modes(), not lists:keymember(Mode, 1, Of)],
    {Verdict, Said} = case Of of
        [] ->
            {not_shown, text("Nothing was measured with kills and without, neither with ~ts.",
                             [words(Missing)])};
        _ -> judge(Of, Missing)
    end,
    %% The claim denies that runs with kills fail while runs without them succeed.
    case sderl_claim_points:broken(Points, im, #{monitoring => off}) of
        {[#{reason := Reason} | _] = Denied, _} ->
            {refuted, text("~w run~ts with kills did not end in order (~ts). ~ts",
                           [length(Denied), [$s || length(Denied) > 1], Reason, Said])};
        {[], Failed} ->
            sderl_claim_points:whole({Verdict, Said}, Failed)
    end.

judge(Of, Missing) ->
    Kills = fun(Wanted) ->
        lists:sum([sum(Group, [kills]) || {Mode, Group, _} <- Of, lists:member(Mode, Wanted)])
    end,
    Parts = [{Ratios, Mode, Group}
             || {Mode, Group, Plain} <- Of, [_ | _] = Ratios <- [percents(Group, Plain)]],
    Known = [{sderl_table:median(Ratios), Mode, Group} || {Ratios, Mode, Group} <- Parts],
    Sum = fun(Keys) -> lists:sum([sum(Group, [Key]) || {_, Group, _} <- Of, Key <- Keys]) end,
    Wrong = Sum(?WRONG),
    Behind = [{Key, Sum([Key])} || Key <- ?BEHIND, Sum([Key]) > 0],
    Lacking = lists:usort([Key
                           || {_, Group, _} <- Of, Key <- sderl_claim_points:lacking(
                               Group, [kills, delivered_per_min] ++ ?WRONG ++ ?BEHIND
                           )]),
    Names = [names_missing, names_left],
    Said = text("~w kills. ~ts Of conversations whose session was not killed ~w ended and ~w "
                "messages were lost; names missing or left over: ~w. Sessions that were killed "
                "took ~w conversations and ~w messages with them.",
                [Kills(sderl_claim_im:modes()),
                 least(Known),
                 Sum([broken_conversations_not_killed]),
                 Sum([lost_messages]),
                 Sum(Names),
                 Sum([lost_conversations]) - Sum([broken_conversations_not_killed]),
                 Sum([killed_messages])]),
    Impact = [Mode || {[_, _ | _] = Ratios, Mode, _} <- Parts, lists:max(Ratios) < ?IMPACT],
    Few = [Mode || Mode <- sderl_claim_im:modes(), Kills([Mode]) < ?LEAST_KILLS],
    {Least, _, _} = lists:min([{?NONE, x, x} | Known]),
    if
        Wrong > 0 -> {refuted, Said};
        Impact =/= [] -> {refuted, Said};
        Known =:= [] -> {not_shown, Said};
        Missing =/= [] ->
            {not_shown, text("~ts Nothing was measured with ~ts.", [Said, words(Missing)])};
        Lacking =/= [] ->
            {not_shown, text("~ts Not known of every run: ~ts.",
                             [Said, lists:join(", ", [atom_to_list(Key) || Key <- Lacking])])};
        Behind =/= [] ->
            {not_shown,
             text("~ts At the end there were: ~ts.",
                  [Said, lists:join(", ", [text("~ts ~w", [Key, N]) || {Key, N} <- Behind])])};
        Few =/= [] -> {not_shown, text("~ts These are too few kills to judge by.", [Said])};
        Least < ?NONE ->
            {not_shown, text("~ts Less than ~w % does not confirm the claim; only less than ~w % "
                             "in each of several runs refutes it.", [Said, ?NONE, ?IMPACT])};
        true -> {confirmed, Said}
    end.

least([]) -> "Throughput is not known.";
least(Known) ->
    {Pct, Mode, #{params := #{<<"chaos">> := Chaos}}} = lists:min(Known),
    text("With kills ~ts % of what is delivered without them at least (~ts, ~ts).",
         [sderl_table:number(Pct), string:uppercase(atom_to_list(Mode)),
          sderl_claim_im:stage(Chaos, long)]).

words(Modes) -> lists:join(" and ", [string:uppercase(atom_to_list(Mode)) || Mode <- Modes]).

percents(Group, Plain) ->
    [100 * A / B || {A, B} <- paired(Group, Plain, [delivered_per_min]), B > 0].

killed(Points, Mode) ->
    lists:sort(fun(A, B) -> every(A) >= every(B) end,
               grouped(Points, im, #{mode => Mode, monitoring => off, chaos => fun is_map/1})).

every(#{params := #{<<"chaos">> := #{<<"every_ms">> := Ms} = Chaos}}) ->
    {maps:get(<<"classes">>, Chaos, <<"all">>) =:= <<"all">>, Ms}.

%% The same without kills.
plain(Points, Mode) ->
    Of = fun(#{params := Params}) -> maps:remove(<<"chaos">>, Params) end,
    Killed = [Of(Group) || Group <- killed(Points, Mode)] ++
        [Of(Failure)
         || Failure <- sderl_claim_points:failed(Points, im,
                                                 #{mode => Mode, chaos => fun is_map/1})],
    lists:sublist([Group
                   || Group <- grouped(Points, im,
                                       #{mode => Mode, monitoring => off, chaos => none}),
                      lists:member(Of(Group), Killed)], 1).

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Groups = [Group
              || Mode <- sderl_claim_im:modes(),
                 Group <- plain(Points, Mode) ++ killed(Points, Mode)],
    #{
        plots => [parts(Points) | [timeline(Points, Mode) || Mode <- sderl_claim_im:modes()]],
        tables => [sderl_claim_im:table("All points", Groups)],
        notes => [
            compressed(Groups),
            <<"A process is killed with `exit(Pid, kill)`. A conversation whose own session is "
              "killed is lost, as published: both clients are told. What must not be is that "
              "another one ends or loses a message, or that a name "
              "has no process in the end. Recovery is from the kill until there is a process for "
              "the same task again.">>,
            <<"Each rate of kills is a run of its own here, all else being equal, where the "
              "published experiment went through them in one.">>
            | sderl_claim_im:notes()
        ]
    }.

%% A database was killed every second at the most.
compressed(Groups) ->
    Periods = [Ms
               || #{params := #{<<"chaos">> := #{<<"every_ms">> := Ms,
                                                 <<"classes">> := <<"databases">>}}} <- Groups],
    case lists:min([1000 | Periods]) of
        1000 ->
            <<"The periods of the kills are the published ones; a scale with less time has shorter "
              "ones in proportion.">>;
        Ms ->
            text("Time is compressed: the periods of the kills are ~ts times shorter than "
                 "published. A process takes as long to come back as ever, so that is harder to "
                 "bear.", [sderl_claim_load:percent(1000 / Ms)])
    end.

%% Throughput by the kills of a minute.
parts(Points) ->
    #{
        title => <<"Messages delivered, by kills">>, x => axis("kills a minute", "", linear),
        y => axis("of those without kills", "%"),
        marks => [#{y => ?NONE, text => text("~w %", [?NONE])}],
        series => [
            #{name => text([sderl_claim_im:name(Mode), ", ", What]),
              points => sorted([
                  #{x => 60_000 / Ms, y => 100 * M / P, low => 100 * L / P, high => 100 * H / P}
               || Plain <- plain(Points, Mode), P <- [value(Plain, [delivered_per_min])],
                  is_number(P), P > 0,
                  #{params := #{<<"chaos">> := #{<<"every_ms">> := Ms} = Chaos}} = Group <-
                      lists:reverse(killed(Points, Mode)),
                  maps:get(<<"classes">>, Chaos, <<"all">>) =:= Class,
                  {M, L, H} <- [spread(Group, [delivered_per_min])]
              ])}
         || Mode <- sderl_claim_im:modes(),
            {Class, What} <- [{<<"all">>, "anything"}, {<<"databases">>, "databases"}]
        ]
    }.

sorted(Points) ->
    [Point || {_, Point} <- lists:ukeysort(1, [{X, Point} || #{x := X} = Point <- Points])].

%% The deliveries over time, without kills and with the most of each kind.
timeline(Points, Mode) ->
    Killed = killed(Points, Mode),
    Most = [lists:last(Of)
            || Class <- [<<"all">>, <<"databases">>],
               [_ | _] = Of <- [[G
                                 || #{params := #{<<"chaos">> := Chaos}} = G <- Killed,
                                    maps:get(<<"classes">>, Chaos, <<"all">>) =:= Class]]],
    #{
        title => text(["Messages delivered over time: ", sderl_claim_im:name(Mode)]),
        x => (axis("time", "s", linear))#{zero => true}, y => axis("delivered", "msg/s"),
        series => [
            #{name => text(sderl_claim_im:stage(maps:get(<<"chaos">>, Params, none), long)),
              points => over_time(Runs)}
         || #{params := Params, runs := Runs} <- plain(Points, Mode) ++ Most
        ]
    }.

%% Of each interval, over the runs. An interval ends at its time, and the first begins at 0.
over_time(Runs) ->
    Rates = [rates(lists:sort([{T, N}
                               || #{<<"t_s">> := T, <<"delivered">> := N} <- Of, is_number(T),
                                  is_number(N)]), 0)
             || #{<<"timeline">> := Of} <- Runs, is_list(Of)],
    [
        #{x => T, y => sderl_table:median(Of), low => lists:min(Of), high => lists:max(Of)}
     || T <- lists:usort([T || {T, _} <- lists:append(Rates)]),
        [_ | _] = Of <- [[R || {U, R} <- lists:append(Rates), U == T]]
    ].

rates([{T, N} | Rest], Before) when T > Before -> [{T, N / (T - Before)} | rates(Rest, T)];
rates([_ | Rest], Before) -> rates(Rest, Before);
rates([], _) -> [].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_c17).
-moduledoc """
Claim C17: schedulers wake one after the other, and the speedup that a program lacks is the area
above the curve of those that are awake; run queues while `bang` runs.
""".

-behaviour(sderl_claim).

-export([about/0, points/1, verdict/1, page/1]).

-import(sderl_claim_load, [axis/2]).
-import(sderl_claim_points, [spread/2, cell/2, text/1, text/2]).
-import(sderl_claim_vm, [each/2, said/2]).

-define(PROGRAMS, [bang, mbrot]).
%% Of all schedulers' time, in percent: LOST_PCT and more is a loss, less than NOTHING_PCT is none.
-define(LOST_PCT, 5).
-define(NOTHING_PCT, 1).
%% Of the run: schedulers that wake within less than this wake at once.
-define(RISE_PCT, 1).

-doc false.
-spec about() -> sderl_claim:about().
about() ->
    #{
        id => <<"C17">>,
        title => <<"Schedulers over time">>,
        question =>
            <<"Are all schedulers at work while a program runs, and how long are their run "
              "queues?">>,
        claim =>
            <<"Schedulers wake one by one: the speedup that is lost is the area above the curve of "
              "active schedulers (Zhang 2011, Fig. 4.5); run queues during `bang` (report of the "
              "RELEASE project, Fig. 24)">>,
        share => 5
    }.

-doc false.
-spec points(sderl_reproduce_scale:scale()) -> [sderl_claim:point()].
points(#{vm := #{cores := Cores, schedulers := Schedulers, profiled := Size}}) ->
    [#{workload => schedulers,
       params => #{program => Program, size => Size, cores => Cores,
                   schedulers => lists:max(Schedulers)},
       fixed_s => 1, work_s => 3}
     || Program <- ?PROGRAMS].

-doc """
By `bang` on 4 schedulers or more. `confirmed`: in every run it takes 1 % of the run or more from
the first scheduler that is awake to the last one, the area above the curve is 5 % of all of their
time or more, and no run failed. `refuted`: in all of several runs it is below 1 %.
""".
-spec verdict([sderl_claim_points:measured()]) -> {sderl_claim:verdict(), binary()}.
verdict(Points) ->
    sderl_claim_points:whole(judge(group(Points, bang)),
                             sderl_claim_points:failed(Points, schedulers, #{program => bang})).

group(Points, Program) ->
    case sderl_claim_points:grouped(Points, schedulers, #{program => Program}) of
        [Group | _] -> Group;
        [] -> none
    end.

judge(none) ->
    {not_shown, <<"`bang` was not measured.">>};
judge(#{runs := Runs} = Group) ->
    N = schedulers(Group),
    Lost = spread(Group, lost()),
    Said = text("While `bang` runs on ~w scheduler~ts, ~ts of their time lies above the curve of "
                "those that are awake; the first is awake after ~ts of the run, and the last of "
                "those that worked after ~ts. The longest run queue had ~ts processes.",
                [N, [$s || N > 1], said(Lost, " %"), said(spread(Group, wake(first)), " %"),
                 said(spread(Group, wake(last)), " %"), said(spread(Group, longest()), "")]),
    Range = sderl_claim_vm:range(),
    case {Lost, spread(Group, rise())} of
        _ when N < Range -> {not_shown, text("~ts The range is too small to judge by.", [Said])};
        {{_, Least, Most}, {_, Rise, _}} ->
            if
                Most < ?NOTHING_PCT, length(Runs) > 1 ->
                    {refuted, text("~ts Nothing is lost by schedulers that sleep.", [Said])};
                Least >= ?LOST_PCT, Rise >= ?RISE_PCT -> {confirmed, Said};
                true ->
                    {not_shown, text("~ts For a verdict ~w % or more is to be lost, and schedulers "
                                     "are to wake over ~w % of the run; or less than ~w % is "
                                     "lost.", [Said, ?LOST_PCT, ?RISE_PCT, ?NOTHING_PCT])}
            end;
        _ ->
            {not_shown, text("~ts Some of it is not known.", [Said])}
    end.

schedulers(#{params := #{<<"schedulers">> := N}}) when is_integer(N) -> N;
schedulers(_) -> 0.

lost() -> each(fun(Lost) -> 100 * Lost end, fun(Run) -> maps:get(<<"lost">>, Run, undefined) end).

wake(Which) ->
    fun(#{<<"wakes_pct">> := [_ | _] = Wakes}) ->
            case Which of first -> hd(Wakes); last -> lists:last(Wakes) end;
       (_) -> undefined
    end.

%% From the first to the last.
rise() ->
    fun(#{<<"wakes_pct">> := [_, _ | _] = Wakes}) -> lists:last(Wakes) - hd(Wakes);
       (_) -> undefined
    end.

longest() ->
    fun(#{<<"parts">> := Parts}) when is_list(Parts) ->
            case [N || #{<<"longest">> := N} <- Parts, is_number(N)] of
                [] -> undefined;
                Lengths -> lists:max(Lengths)
            end;
       (_) -> undefined
    end.

-doc false.
-spec page([sderl_claim_points:measured()]) -> sderl_claim:said().
page(Points) ->
    Groups = [{Program, Group} || Program <- ?PROGRAMS, #{} = Group <- [group(Points, Program)]],
    Over = fun(Title, Y, Series) ->
        #{title => text(Title), x => axis("part of the run", "%"), y => Y, series => Series}
    end,
    #{
        plots => [
            Over("Schedulers awake over time", axis("schedulers awake", ""),
                 [over(atom_to_list(Program), Group, <<"awake">>) || {Program, Group} <- Groups] ++
                     [all(schedulers(Group)) || {_, Group} <- lists:sublist(Groups, 1)])
        ] ++ [
            Over(["Processes while ", atom_to_list(Program), " runs"], axis("processes", ""),
                 [over("running", Group, <<"running">>), over("could run", Group, <<"runnable">>),
                  over("in run queues", Group, <<"queued">>),
                  over("longest run queue", Group, <<"longest">>)])
         || {Program, Group} <- Groups
        ],
        tables => [
            #{title => <<"All points">>,
              header => [<<"program">>, <<"schedulers">>, <<"runs">>, <<"recorded, s">>,
                         <<"lost, %">>, <<"first awake, %">>, <<"last awake, %">>,
                         <<"longest run queue">>],
              rows => [[atom_to_binary(Program), text("~w", [schedulers(Group)]),
                        text("~w", [length(Runs)]), cell(Group, [seconds]), cell(Group, lost()),
                        cell(Group, wake(first)), cell(Group, wake(last)), cell(Group, longest())]
                       || {Program, #{runs := Runs} = Group} <- Groups]}
        ],
        notes => [
            <<"A node records itself with the profiler (`sderl_prof`), in one run of the program "
              "after another one; its schedulers were idle before. That costs time: seconds are "
              "those of a recorded run. Run queues are looked at each millisecond by a process of "
              "the highest priority.">>,
            <<"A scheduler that looks for work is awake, too. Schedulers that sleep while "
              "processes could run are what the claim calls lost.">>,
            <<"`bin/sderl prof` records your own nodes in this way, and shows them by the "
              "microsecond.">>
        ]
    }.

%% The upper line of the plot: the area between it and a curve is lost.
all(N) ->
    #{name => <<"all schedulers">>,
      points => [#{x => X, y => N, low => N, high => N} || X <- [0, 100]]}.

over(Name, #{runs := Runs} = Group, Key) ->
    Count = lists:max([0 | [length(Parts) || #{<<"parts">> := Parts} <- Runs, is_list(Parts)]]),
    At = fun(I) -> fun(Run) -> part(I, Key, Run) end end,
    #{name => text(Name),
      points => [#{x => 100 * (I - 0.5) / Count, y => Y, low => Low, high => High}
                 || I <- lists:seq(1, Count), {Y, Low, High} <- [spread(Group, At(I))]]}.

part(I, Key, #{<<"parts">> := Parts}) when is_list(Parts), length(Parts) >= I ->
    case lists:nth(I, Parts) of
        #{Key := Value} when is_number(Value) -> Value;
        _ -> undefined
    end;
part(_, _, _) -> undefined.

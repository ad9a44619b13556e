%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_vm).
-moduledoc """
The common part of the claims about the virtual machine (C13, C14 and C16): their points, which are
programs by schedulers, and the values of a run.

Values are compared within one run, whose virtual machines follow one another; the runs of a point
show the scatter.
""".

-export([point/3, group/2, most/1, schedulers/1]).
-export([time/2, time/3, speedup/2, speedup/3, ratio/2, gain/2, each/2]).
-export([spread/2, said/2, range/0, lines/3, notes/1]).
-export_type([row/0]).

-import(sderl_claim_points, [text/1, text/2]).

-doc "Chooses a row of a run: by its program, or by all keys of a map.".
-type row() :: binary() | #{binary() => term()}.

%% Over a smaller range nothing is judged.
-define(RANGE, 4).

-doc """
A point: programs, or tables, as options of the command, with what the scale says of all of them.
`Machines` is how many virtual machines it takes, which says how long.
""".
-spec point(sderl_reproduce_scale:scale(), #{bench := vm | tables, atom() => term()},
            Programs :: pos_integer()) -> sderl_claim:point().
point(#{vm := #{cores := Cores, schedulers := Schedulers, run_ms := Ms, runs := Runs}}, Asked,
      Programs) ->
    Numbers = text(lists:join(",", [integer_to_list(N) || N <- Schedulers])),
    Count = length(Schedulers),
    #{
        workload => vm,
        params => Asked#{cores => Cores, schedulers => Numbers, run_ms => Ms, runs => Runs},
        fixed_s => 0,
        %% All start, find how often to repeat, warm up and run; the control does so on two numbers.
        work_s => Count + (Programs + 1) * (1 + Ms / 500)
            + (2 + Programs * Count) * (1 + (6 + Runs) * Ms / 1000)
    }.

-doc "The runs of the point that has these parameters.".
-spec group([sderl_claim_points:measured()], sderl_claim_points:wanted()) ->
    sderl_claim_points:group() | none.
group(Points, Wanted) ->
    case sderl_claim_points:grouped(Points, vm, Wanted) of
        [Group | _] -> Group;
        [] -> none
    end.

-doc "The most schedulers that it was measured on.".
-spec most(sderl_claim_points:group()) -> pos_integer().
most(Group) -> lists:last([1 | schedulers(Group)]).

-doc "The numbers of schedulers that it was measured on.".
-spec schedulers(sderl_claim_points:group()) -> [pos_integer()].
schedulers(#{runs := Runs}) ->
    lists:usort([N || Run <- Runs, #{<<"schedulers">> := N, <<"control">> := false} <- rows(Run)]).

rows(#{<<"rows">> := Rows}) when is_list(Rows) -> [Row || #{} = Row <- Rows];
rows(_) -> [].

-doc "The time on so many schedulers, in ms.".
-spec time(row(), pos_integer()) -> sderl_claim_points:what().
time(Of, N) -> time(Of, all, N).

-doc "The same of one stage.".
-spec time(row(), all | binary(), pos_integer()) -> sderl_claim_points:what().
time(Program, Stage, N) when is_binary(Program) -> time(#{<<"program">> => Program}, Stage, N);
time(Wanted, Stage, N) ->
    fun(Run) ->
        case [Row || #{<<"schedulers">> := M} = Row <- rows(Run), M =:= N,
                     maps:with(maps:keys(Wanted), Row) =:= Wanted] of
            [#{<<"us">> := Us} | _] when Stage =:= all -> Us / 1000;
            [#{<<"stages">> := #{Stage := Us}} | _] -> Us / 1000;
            _ -> undefined
        end
    end.

-doc "How many times as fast as on one scheduler.".
-spec speedup(row(), pos_integer()) -> sderl_claim_points:what().
speedup(Of, N) -> speedup(Of, all, N).

-doc "The same of one stage.".
-spec speedup(row(), all | binary(), pos_integer()) -> sderl_claim_points:what().
speedup(Of, Stage, N) -> ratio(time(Of, Stage, 1), time(Of, Stage, N)).

-doc "The speedup divided by that of the control in the same run.".
-spec gain(row(), pos_integer()) -> sderl_claim_points:what().
gain(Of, N) -> ratio(speedup(Of, N), speedup(<<"control">>, N)).

-doc "One value over another one, of the same run.".
-spec ratio(sderl_claim_points:what(), sderl_claim_points:what()) -> sderl_claim_points:what().
ratio(A, B) when is_function(A), is_function(B) ->
    fun(Run) ->
        case {A(Run), B(Run)} of
            {X, Y} when is_number(X), is_number(Y), Y > 0 -> X / Y;
            _ -> undefined
        end
    end.

-doc "A value of a run, changed.".
-spec each(fun((number()) -> number()), sderl_claim_points:what()) -> sderl_claim_points:what().
each(Fun, Of) when is_function(Of) ->
    fun(Run) ->
        case Of(Run) of
            X when is_number(X) -> Fun(X);
            _ -> undefined
        end
    end.

-doc "As `sderl_claim_points:spread/2`, also where there is no group.".
-spec spread(sderl_claim_points:group() | none, sderl_claim_points:what()) ->
    sderl_claim_points:spread() | undefined.
spread(none, _) -> undefined;
spread(Group, What) -> sderl_claim_points:spread(Group, What).

-doc "A spread in words, with the ends where there are several runs.".
-spec said(sderl_claim_points:spread() | undefined, Unit :: unicode:chardata()) -> binary().
said({Median, Low, High}, Unit) when Low < High ->
    text("~ts~ts (~ts..~ts)", [number(Median), Unit, number(Low), number(High)]);
said({Median, _, _}, Unit) -> text([number(Median), Unit]);
said(undefined, _) -> <<"unknown">>.

number(Value) -> sderl_table:number(Value).

-doc "The least number of schedulers that anything is judged by.".
-spec range() -> pos_integer().
range() -> ?RANGE.

-doc "A line of a plot over schedulers.".
-spec lines(Name :: unicode:chardata(), sderl_claim_points:group() | none,
            fun((pos_integer()) -> sderl_claim_points:what())) -> sderl_claim:series().
lines(Name, none, _) -> #{name => text(Name), points => []};
lines(Name, Group, What) ->
    #{name => text(Name),
      points => [#{x => N, y => Y, low => Low, high => High}
                 || N <- schedulers(Group),
                    {Y, Low, High} <- [sderl_claim_points:spread(Group, What(N))]]}.

-doc "The notes on the pages of these claims.".
-spec notes([sderl_claim_points:group()]) -> [binary()].
notes(Groups) ->
    [
        <<"Each time is of a fresh virtual machine with so many schedulers; those of one run "
          "follow one another in an order that is drawn. The control is a program that computes "
          "and shares nothing: its speedup is what the machine gave meanwhile.">>
        | [text("With intervals, and with what the schedulers did: `~ts`.",
                [sderl_reproduce_vm:command(asked(Params))])
           || #{params := Params} <- Groups]
    ].

%% The parameters of a measured point, with the keys of a point that is to be measured.
asked(#{<<"bench">> := Bench} = Params) ->
    maps:merge(#{bench => case Bench of <<"tables">> -> tables; _ -> vm end},
               #{Key => Value || Key <- [program, size, cores, schedulers, vary, tables, updates,
                                         keys, operations, distribution, adds],
                                 Name <- [atom_to_binary(Key)], #{Name := Value} <- [Params]});
asked(_) -> #{bench => vm}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_view).
-moduledoc """
The results of `bin/sderl bench tables` as text for a terminal, and as rows of JSON: for each mix of
operations all tables side by side, the fastest first; which one to take; and why each of them gains
no more from more schedulers. Pure.
""".

-export([text/1, rows/1, answer/3]).

-import(sderl_bench_vm_table, [interval/2]).

-doc "All of it.".
-spec text(sderl_bench_vm_summary:summary()) -> unicode:chardata().
text(#{programs := Programs, race := Race} = Summary) ->
    Tables = [Program || #{control := false} = Program <- Programs],
    Names = lists:uniq([table(Program) || Program <- Tables]),
    [
        sderl_bench_vm_table:heading(Summary),
        [mix(Mix, [Program || Program <- Tables, mix_of(Program) =:= Mix], Names, Race, Programs)
         || Mix <- lists:uniq([mix_of(Program) || Program <- Tables])],
        [["\n", Line] || Line <- sderl_bench_vm_table:failures(Summary)],
        sderl_bench_vm_table:overhead(Tables)
    ].

table(#{settings := #{~"table" := Table}}) -> Table.

mix_of(#{settings := #{~"mix" := Mix}}) -> Mix.

mix(Mix, [#{settings := Settings} | _] = Programs, Names, Race, All) ->
    #{~"keys" := Keys, ~"operations" := Operations, ~"workers" := Workers} = Settings,
    Keyed = [{Key, {table(Program), map_get(settings, Program), Of}}
             || #{series := Series} = Program <- Programs, #{key := Key} = Of <- Series],
    [
        io_lib:format("\n~ts; ~ts keys, ~ts operations by ~w workers~n",
                      [Mix, sderl_table:number(Keys), sderl_table:number(Operations), Workers]),
        [series(Key, [Table || {K, Table} <- Keyed, K =:= Key], Race, All)
         || Key <- lists:uniq([Key || {Key, _} <- Keyed])],
        case Names -- [table(Program) || Program <- Programs] of
            [] -> "";
            Others -> ["  cannot do this: ", lists:join(", ", Others), "\n"]
        end
    ].

series(Key, Tables, Race, All) ->
    Ns = lists:usort([N || {_, _, #{rows := Rows}} <- Tables, #{schedulers := N} <- Rows]),
    Most = lists:last(Ns),
    Sorted = [Table || {_, Table} <- lists:sort([{order(Most, Rows), Table}
                                                 || {_, _, #{rows := Rows}} = Table <- Tables])],
    [
        case Key of
            {~"", ~""} -> "";
            _ -> ["  with ", sderl_bench_vm_table:series_name(Key), "\n"]
        end,
        sderl_table:text(
            ["table", "VMs"] ++ [["M op/s on ", integer_to_list(N)] || N <- Ns] ++
                ["speedup", "speedup; . is ideal"],
            [row(Table, Ns, Most) || Table <- Sorted]
        ),
        [["  ", Line, "\n"] || Line <- answer(Most, Tables, Race)],
        [["  ", Name, "\n", [["    ", Line, "\n"] || Line <- sderl_bench_vm_table:why(Series, All)]]
         || {Name, _, Series} <- Sorted]
    ].

%% A bag keeps several objects of a key, so it is no substitute for the others.
is_choice(~"none", _) -> false;
is_choice(_, #{~"type" := ~"bag"}) -> false;
is_choice(_, _) -> true.

%% Tables without a measurement on the most schedulers come last.
order(Most, Rows) ->
    case at(Most, Rows) of
        #{time := #{value := Time}} -> Time;
        none -> infinity
    end.

at(N, Rows) ->
    case [Row || #{schedulers := M} = Row <- Rows, M =:= N] of
        [Row] -> Row;
        [] -> none
    end.

row({Name, #{~"operations" := Operations}, #{rows := Rows}}, Ns, Most) ->
    Speedup = case at(Most, Rows) of
        #{speedup := Of} -> Of;
        none -> undefined
    end,
    [Name, vms(Rows)] ++
        [case at(N, Rows) of
            #{time := Time} -> interval(fun sderl_table:number/1, rate(Operations, Time));
            none -> "-"
        end || N <- Ns] ++
        [interval(fun sderl_table:number/1, Speedup),
         sderl_bench_vm_table:bar(Most, Speedup, Most)].

vms(Rows) ->
    Counts = lists:usort([Count || #{vms := Count} <- Rows]),
    lists:join("..", lists:uniq([integer_to_list(Count)
                                 || Count <- [hd(Counts), lists:last(Counts)]])).

%% Millions a second.
rate(Operations, #{value := Value, low := Low, high := High}) ->
    #{value => 1000 * Operations / Value, low => rate_end(Operations, High),
      high => rate_end(Operations, Low)}.

rate_end(_, undefined) -> undefined;
rate_end(Operations, Ns) -> 1000 * Operations / Ns.

-doc """
Which table is the fastest on so many schedulers, which to take, and why: lines of text. With `Race`
some may have been left out.
""".
-spec answer(N :: pos_integer(), [{Name :: binary(), Settings :: #{binary() => term()},
                                   sderl_bench_vm_summary:series()}], Race :: boolean()) ->
    [unicode:chardata()].
answer(N, Tables, Race) ->
    choice(N, Race, [{Name, Settings, Times}
                     || {Name, Settings, #{rows := Rows}} <- Tables, is_choice(Name, Settings),
                        #{schedulers := M, times := Times} <- Rows, M =:= N]).

choice(_, _, []) -> [];
choice(_, _, [_]) -> [];
choice(N, Race, Tables) ->
    #{fastest := Fastest, take := Take, ratio := Ratio, provisional := Provisional,
      left_out := LeftOut} =
        sderl_bench_tables_choice:of_times([{Name, Times} || {Name, _, Times} <- Tables], Race),
    {Take, #{~"how" := How}, _} = lists:keyfind(Take, 1, Tables),
    [io_lib:format("fastest on ~w: ~ts; take ~ts: ~ts", [N, Fastest, Take, How])
     | case {Take, Provisional} of
         {_, {true, Needed}} ->
             [io_lib:format("(by the medians alone: a choice needs ~w virtual machines of each; "
                            "the same command goes on, with --least ~w at least)",
                            [Needed, Needed])];
         {Fastest, false} ->
             [];
         {_, false} ->
             [io_lib:format("(the simplest that takes at most ~w % longer: ~ts times)",
                            [round(100 * sderl_bench_tables_choice:slack()),
                             interval(fun sderl_table:number/1, Ratio)])]
     end ++ left_out(LeftOut)].

left_out([]) -> [];
left_out(Names) ->
    #{looks := Looks, factor := Factor} = sderl_bench_vm_race:behind([]),
    [[io_lib:format("(left out after ~w virtual machines of each, all of which took more than ~ts "
                    "times as long as those of the leader: ", [Looks, sderl_table:number(Factor)]),
      lists:join(", ", Names), ")"]].

-doc "Each point as parameters and metrics.".
-spec rows(sderl_bench_vm_summary:summary()) -> [{Params :: map(), Metrics :: map()}].
rows(#{programs := Programs} = Summary) ->
    Of = #{Name => Settings || #{name := Name, settings := Settings} <- Programs},
    [table_row(Params, Metrics, map_get(Program, Of))
     || {#{program := Program} = Params, Metrics} <- sderl_bench_vm_table:rows(Summary)].

%% The control stays as it is.
table_row(Params, Metrics, #{~"table" := Table, ~"mix" := Mix, ~"operations" := Operations} = Of) ->
    Sizes = maps:with([~"keys", ~"operations", ~"workers", ~"value_words"], Of),
    Rate = fun(Key) ->
        case Metrics of
            #{Key := Ns} when is_number(Ns) -> 1.0e9 * Operations / Ns;
            _ -> undefined
        end
    end,
    {maps:merge(Params#{table => Table, mix => Mix}, Sizes),
     Metrics#{ops_per_s => Rate(time_ns), ops_per_s_low => Rate(time_high_ns),
              ops_per_s_high => Rate(time_low_ns)}};
table_row(Params, Metrics, _) ->
    {Params, Metrics}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_tables).
-moduledoc """
The results of `bin/sderl bench tables` as pages of a report: one for each mix of operations, with
the operations a second of all tables by schedulers, the fastest one, and what limits each.
""".

-export([pages/3, is_table/1]).

-import(sderl_claim_points, [text/1]).

-doc "Whether a program is a table under a mix.".
-spec is_table(sderl_bench_vm_summary:program()) -> boolean().
is_table(#{settings := Settings}) -> is_map_key(~"mix", Settings).

-doc """
The pages of those programs that are tables; the others have the control. `Race` as in
`m:sderl_bench_vm_summary`.
""".
-spec pages([sderl_bench_vm_summary:program()], Race :: boolean(), Command :: unicode:chardata()) ->
    [sderl_claim:page()].
pages(Programs, Race, Command) ->
    Tables = [Program || Program <- Programs, is_table(Program)],
    [page(Number, Mix, [Program || Program <- Tables, mix(Program) =:= Mix], Race, Programs,
          Command)
     || {Number, Mix} <- lists:enumerate(lists:uniq([mix(Program) || Program <- Tables]))].

mix(#{settings := #{~"mix" := Mix}}) -> Mix.

page(Number, Mix, [#{settings := Settings} | _] = Programs, Race, All, Command) ->
    #{~"keys" := Keys, ~"workers" := Workers} = Settings,
    Keyed = [{Key, Program, Of} || #{series := Series} = Program <- Programs,
                                   #{key := Key} = Of <- Series],
    Keys1 = lists:uniq([Key || {Key, _, _} <- Keyed]),
    #{
        id => text(io_lib:format("mix-~w", [Number])),
        title => Mix,
        question => text(io_lib:format("Which table is the fastest for ~ts, with ~ts keys and ~w "
                                       "workers?", [Mix, sderl_table:number(Keys), Workers])),
        claim => <<>>,
        verdict => none,
        verdict_text => text(lists:join("\n", [found(Key, Keyed, Race) || Key <- Keys1])),
        plots => [plot(Key, Keyed) || Key <- Keys1],
        tables => [table(Key, Keyed) || Key <- Keys1],
        notes => [text([[[named(Key), ", "] || tl(Keys1) =/= []], name(Program), ": ", Reason])
                  || Key <- Keys1, {Program, Of} <- of_key(Key, Keyed),
                     Reason <- sderl_bench_vm_table:reasons(Of, All)],
        command => Command
    }.

of_key(Key, Keyed) -> [{Program, Series} || {K, Program, Series} <- Keyed, K =:= Key].

name(#{settings := #{~"table" := Table}}) -> Table.

named(Key) -> text(["With ", sderl_bench_vm_table:series_name(Key)]).

found(Key, Keyed, Race) ->
    Tables = [{name(Program), map_get(settings, Program), Series}
              || {Program, Series} <- of_key(Key, Keyed)],
    N = lists:max([N || {_, _, #{rows := Rows}} <- Tables, #{schedulers := N} <- Rows]),
    [named(Key), ": ", lists:join(" ", sderl_bench_tables_view:answer(N, Tables, Race)), "."].

%% Millions a second.
rate(#{settings := #{~"operations" := Operations}}, Ns) -> 1000 * Operations / Ns.

%% The table `none` measures the workers alone; it is not shown.
plot(Key, Keyed) ->
    #{
        title => named(Key),
        x => #{label => ~"schedulers", unit => <<>>, scale => linear, zero => true},
        y => #{label => ~"operations a second", unit => ~"millions", scale => linear,
               zero => true},
        series => [#{name => name(Program), points => [point(Program, Row) || Row <- Rows]}
                   || {Program, #{rows := Rows}} <- of_key(Key, Keyed),
                      name(Program) =/= ~"none"]
    }.

point(Program, #{schedulers := N, time := #{value := Value, low := Low, high := High}}) ->
    End = fun
        (undefined) -> rate(Program, Value);
        (Ns) -> rate(Program, Ns)
    end,
    #{x => N, y => rate(Program, Value), low => End(High), high => End(Low)}.

table(Key, Keyed) ->
    Ns = lists:usort([N || {_, #{rows := Rows}} <- of_key(Key, Keyed),
                           #{schedulers := N} <- Rows]),
    #{
        title => named(Key),
        header => [~"table" | [text(io_lib:format("million a second on ~w", [N])) || N <- Ns]],
        rows => [[name(Program) | [cell(Program, N, Rows) || N <- Ns]]
                 || {Program, #{rows := Rows}} <- of_key(Key, Keyed)]
    }.

cell(Program, N, Rows) ->
    case [Value || #{schedulers := M, time := #{value := Value}} <- Rows, M =:= N] of
        [Ns] -> text(sderl_table:number(rate(Program, Ns)));
        [] -> ~"-"
    end.

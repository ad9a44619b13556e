%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_mbrot).
-moduledoc """
`mbrot`: processes that each compute the same picture of the Mandelbrot set, with up to 255 steps a
pixel, and share nothing. 4 processes for each core, and a picture as wide and high as 2, 4 or 7
pixels for each core.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "Mandelbrot pictures: computing without communication".

-define(STEPS, 255).

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{processes => 4 * Cores,
      pixels => Cores * maps:get(Size, #{short => 2, intermediate => 4, long => 7})}.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{processes := Processes, pixels := Pixels}) ->
    {Processes * Pixels * Pixels, "point"}.

-doc false.
-spec spread() -> string().
spread() -> "its processes".

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> [non_neg_integer()].
run(run, #{processes := Processes, pixels := Pixels} = Settings) ->
    Main = self(),
    Workers = [spawn_link(Node, fun() -> Main ! {self(), picture(Pixels)} end)
               || Node <- sderl_bench_vm_nodes:in_turn(Processes, Settings)],
    lists:usort([receive {Worker, Steps} -> Steps end || Worker <- Workers]).

%% All steps of the square from -2 - 1.25 i to 0.5 + 1.25 i.
picture(Pixels) -> rows(Pixels, Pixels, 2.5 / Pixels, 0).

rows(0, _, _, Sum) -> Sum;
rows(Row, Pixels, Step, Sum) ->
    rows(Row - 1, Pixels, Step, row(Pixels, -1.25 + Row * Step, Step, Sum)).

row(0, _, _, Sum) -> Sum;
row(Column, Y, Step, Sum) ->
    row(Column - 1, Y, Step, Sum + steps(-2.0 + Column * Step, Y, 0.0, 0.0, 0)).

steps(_, _, _, _, ?STEPS) -> ?STEPS;
steps(X, Y, A, B, Count) ->
    A2 = A * A,
    B2 = B * B,
    if
        A2 + B2 > 4.0 -> Count;
        true -> steps(X, Y, A2 - B2 + X, 2.0 * A * B + Y, Count + 1)
    end.

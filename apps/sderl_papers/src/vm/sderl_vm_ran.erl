%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_ran).
-moduledoc """
`ran`: processes that each make 100,000 random numbers, sort them, and take the middle one:
memory and garbage collection, without communication. 1, 2 or 4 processes for each core.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "sorting random numbers: memory and garbage collection".

-define(NUMBERS, 100_000).

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{processes => Cores * maps:get(Size, #{short => 1, intermediate => 2, long => 4}),
      numbers => ?NUMBERS}.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{processes := Processes, numbers := Numbers}) ->
    {Processes * Numbers, "number"}.

-doc false.
-spec spread() -> string().
spread() -> "its processes".

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> [pos_integer()].
run(run, #{processes := Processes, numbers := Numbers} = Settings) ->
    Main = self(),
    Workers = [spawn_link(Node, fun() -> Main ! {self(), middle(Numbers, Seed)} end)
               || {Seed, Node} <- lists:enumerate(
                   sderl_bench_vm_nodes:in_turn(Processes, Settings))],
    [receive {Worker, Middle} -> Middle end || Worker <- Workers].

middle(Count, Seed) ->
    Numbers = numbers(Count, rand:seed_s(exsss, Seed), []),
    lists:nth(max(1, Count div 2), lists:sort(Numbers)).

numbers(0, _, Numbers) -> Numbers;
numbers(Count, State, Numbers) ->
    {Number, Next} = rand:uniform_s(1_000_000_000, State),
    numbers(Count - 1, Next, [Number | Numbers]).

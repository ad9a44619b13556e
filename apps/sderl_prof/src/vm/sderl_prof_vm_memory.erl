%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_vm_memory).
-moduledoc """
Memory by allocator. Pure.

An allocator takes carriers from the system and cuts blocks out of them. What is in carriers and not
in blocks is memory that the node has and does not use. The blocks of all allocators, with the code
that is compiled outside of them, are what `erlang:memory/0` adds up, read at another moment: the
report tells by how much both differ.
""".

-export([report/4]).
-export_type([report/0]).

-doc """
Bytes; `utilisation` is the share of carriers that is in blocks. `checks` has beside each sum of
`erlang:memory/0` that of the blocks and what is outside of them, and the difference as a share of
the former.
""".
-type report() :: #{
    allocators := [#{atom() => term()}], blocks := number(), carriers := number(),
    utilisation := float(), unused := number(), code := non_neg_integer(),
    resident := pos_integer() | null,
    told := #{atom() => non_neg_integer()}, checks := [#{atom() => term()}]
}.

-doc "From allocators, what is outside of them, `erlang:memory/0`, and what the system counts.".
-spec report([sderl_prof_readings:allocator()],
             #{code := non_neg_integer(), ets := non_neg_integer()},
             [{atom(), non_neg_integer()}], pos_integer() | undefined) -> report().
report(Allocators, #{code := Code, ets := Ets}, Told, Resident) ->
    Rows = lists:sort(fun(#{carriers := A}, #{carriers := B}) -> A >= B end,
                      [row(Allocator) || Allocator <- Allocators]),
    Blocks = lists:sum([B || #{blocks := B} <- Rows]),
    Carriers = lists:sum([C || #{carriers := C} <- Rows]),
    #{
        allocators => Rows, blocks => Blocks, carriers => Carriers,
        utilisation => share(Blocks, Carriers), unused => Carriers - Blocks, code => Code,
        resident => case Resident of undefined -> null; _ -> Resident end,
        told => maps:from_list(Told),
        checks => [check(What, Sum, proplists:get_value(What, Told))
                   || {What, Sum} <- [{total, Blocks - of_type(temp_alloc, Allocators) + Code},
                                      {binary, of_type(binary_alloc, Allocators)},
                                      {ets, of_type(ets_alloc, Allocators) + Ets}],
                      is_integer(proplists:get_value(What, Told))]
    }.

row(#{name := Name, instances := Instances, blocks := Blocks, single := {Singles, Single},
      multi := {Multis, Multi}, pooled := {Pooled, Pool}}) ->
    Carriers = Single + Multi + Pool,
    #{name => Name, instances => Instances, blocks => Blocks, carriers => Carriers,
      utilisation => share(Blocks, Carriers), unused => Carriers - Blocks,
      number => Singles + Multis + Pooled, single => Single, multi => Multi, pooled => Pool}.

%% Blocks of a type may lie in the carriers of another one, in a pool that they share.
of_type(Type, Allocators) ->
    lists:sum([Size || #{by_type := #{Type := Size}} <- Allocators]).

share(_, 0) -> 0.0;
share(Part, Whole) -> Part / Whole.

check(What, Sum, Told) ->
    #{what => What, blocks => Sum, told => Told,
      difference => case Told of
          0 when Sum =:= 0 -> 0.0;
          _ -> (Sum - Told) / max(1, Told)
      end}.

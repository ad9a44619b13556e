%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_batch).
-moduledoc """
Many simulated schedules at once: one process a schedule, as many at a time as there are schedulers.

Schedules are deterministic, because they share nothing. The initial heap of a schedule's process is
large enough that most of its data is short-lived garbage, and small enough for a cache.
""".

%% The process of a schedule answers with its exit reason.
-dialyzer({nowarn_function, [start/1]}).

-export([run/3, empty/0, add/2]).
-export_type([summary/0]).

-doc """
The sums of schedules: how many, steps of the protocol, operations of clients, faults by kind; the
ms from the last fault until each became one component; and the reports of those that broke a
promise.
""".
-type summary() :: #{
    schedules := non_neg_integer(), steps := non_neg_integer(), operations := non_neg_integer(),
    faults := #{atom() => pos_integer()}, converge_ms := [integer()], failed := [sderl_sim:report()]
}.

-define(HEAP_WORDS, 100_000).

-doc """
Runs seeds from the first on with these options (`m:sderl_sim`). `More(Begun)` says before each
whether to go on, `Seen(Report, Summary)` is called with each as it ends. Seeds to `skip` are left
out.
""".
-spec run(integer(), map(), #{more := fun((non_neg_integer()) -> boolean()),
                              seen => fun((sderl_sim:report(), summary()) -> term()),
                              at_once => pos_integer(),
                              skip => #{integer() => []}}) -> summary().
run(First, Options, #{more := More} = How) ->
    Seen = maps:get(seen, How, fun(_, _) -> ok end),
    AtOnce = maps:get(at_once, How, erlang:system_info(schedulers_online)),
    Run = #{options => Options, more => More, seen => Seen, skip => maps:get(skip, How, #{})},
    loop(0, First, Run, AtOnce, #{}, empty()).

-doc "No schedules.".
-spec empty() -> summary().
empty() ->
    #{schedules => 0, steps => 0, operations => 0, faults => #{}, converge_ms => [], failed => []}.

loop(Begun, Next, #{skip := Skip} = Run, Free, Running, Summary) when is_map_key(Next, Skip) ->
    loop(Begun, Next + 1, Run, Free, Running, Summary);
loop(Begun, Next, #{options := Options, more := More, seen := Seen} = Run, Free, Running,
     Summary) ->
    case Free > 0 andalso More(Begun) of
        true ->
            {_, Ref} = start(Options#{seed => Next}),
            loop(Begun + 1, Next + 1, Run, Free - 1, Running#{Ref => Next}, Summary);
        false when map_size(Running) =:= 0 ->
            Summary;
        false ->
            receive
                {'DOWN', Ref, process, _, Result} when is_map_key(Ref, Running) ->
                    Report = case Result of
                        {report, R} -> R;
                        %% The schedule may have been killed for its memory, for instance.
                        Other -> (lost(map_get(Ref, Running)))#{why => Other}
                    end,
                    Now = add(Report, Summary),
                    _ = Seen(Report, Now),
                    loop(Begun, Next, Run, Free + 1, maps:remove(Ref, Running), Now)
            end
    end.

%% The process is not linked, because a schedule that dies must not take the others along. It ends
%% soon by itself.
start(Options) ->
    spawn_opt(fun() -> exit({report, maps:remove(world, sderl_sim:schedule(Options))}) end,
              [monitor, {min_heap_size, ?HEAP_WORDS}]).

lost(Seed) ->
    #{seed => Seed, outcome => failed, steps => 0, faults => #{}, operations => 0,
      converge_ms => undefined, at_ms => undefined}.

-doc "A summary with one more report.".
-spec add(sderl_sim:report(), summary()) -> summary().
add(#{outcome := Outcome, steps := Steps, operations := Ops, faults := Faults, converge_ms := Ms} =
        Report,
    #{schedules := K, steps := S, operations := O, faults := F, converge_ms := C, failed := Bad} =
        Summary) ->
    Summary#{
        schedules := K + 1,
        steps := S + Steps,
        operations := O + Ops,
        faults := maps:merge_with(fun(_, A, B) -> A + B end, F, Faults),
        converge_ms := case is_integer(Ms) of true -> [Ms | C]; false -> C end,
        failed := case Outcome of ok -> Bad; failed -> Bad ++ [Report] end
    }.

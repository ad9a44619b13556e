%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_runtime).
-moduledoc """
Reads the runtime system of a node: its counters, memory, limits, queues and schedulers.

Values that take long to read, or change slowly (`rare()`), are read every 5 s.
""".

-export([read_rare/1, counters/0, gauges/2, queues/0, schedulers/0, facts/1]).
-export_type([rare/0]).

-import(sderl_mon_probe_work, [now_ms/0]).

-define(RARE_MS, 5000).

-record(rare, {
    at :: integer(),
    collected :: {Count :: non_neg_integer(), Words :: non_neg_integer()},
    %% Limits, memory, and the rate of collections since the last reading.
    gauges :: #{atom() => number()},
    bindings :: tuple(),
    facts :: facts()
}).
-type facts() :: #{otp := binary(), erts := binary(), hidden := boolean(),
                   cpu_topology := [sderl_mon_samples:place()]}.
-opaque rare() :: #rare{}.

-doc "Reads these values if the last reading is old.".
-spec read_rare(none | rare()) -> rare().
read_rare(#rare{at = At} = Last) ->
    case now_ms() - At >= ?RARE_MS of
        true -> read_again(Last);
        false -> Last
    end;
read_rare(none) ->
    read_again(none).

read_again(Last) ->
    Now = now_ms(),
    {Count, Words, _} = statistics(garbage_collection),
    Rates = case Last of
        #rare{at = At, collected = {C, W}} ->
            #{gc_s => (Count - C) * 1000 / (Now - At),
              gc_words_s => (Words - W) * 1000 / (Now - At)};
        none -> #{}
    end,
    {Bindings, Facts} = read_facts(erlang:system_info(scheduler_bindings), Last),
    #rare{at = Now, collected = {Count, Words}, bindings = Bindings, facts = Facts,
          gauges = maps:merge(Rates, maps:merge(memory(), limits()))}.

%% Only the bindings of the schedulers may change.
read_facts(Bindings, #rare{bindings = Bindings, facts = Facts}) -> {Bindings, Facts};
read_facts(Bindings, _) ->
    {Bindings, #{otp => list_to_binary(erlang:system_info(otp_release)),
                 hidden => init:get_argument(hidden) =/= error,
                 erts => list_to_binary(erlang:system_info(version)),
                 cpu_topology => sderl_mon_probe_topology:schedulers(
                     erlang:system_info(cpu_topology), tuple_to_list(Bindings)
                 )}}.

memory() ->
    Mem = maps:from_list(erlang:memory()),
    #{
        mem_total => maps:get(total, Mem),
        mem_processes => maps:get(processes, Mem),
        mem_binary => maps:get(binary, Mem),
        mem_ets => maps:get(ets, Mem),
        mem_atom => maps:get(atom, Mem),
        mem_code => maps:get(code, Mem),
        mem_system => maps:get(system, Mem)
    }.

limits() ->
    #{
        proc_limit => erlang:system_info(process_limit),
        port_limit => erlang:system_info(port_limit),
        atom_limit => erlang:system_info(atom_limit),
        ets_limit => erlang:system_info(ets_limit),
        schedulers => erlang:system_info(schedulers),
        schedulers_online => erlang:system_info(schedulers_online)
    }.

-doc "The part of it in a sample's facts.".
-spec facts(rare()) -> facts().
facts(#rare{facts = Facts}) -> Facts.

-doc "Counters that only grow.".
-spec counters() -> #{atom() => non_neg_integer()}.
counters() ->
    {Reds, _} = statistics(reductions),
    {Runtime, _} = statistics(runtime),
    #{reductions => Reds, runtime_us => Runtime * 1000,
      context_switches => element(1, statistics(context_switches))}.

-doc "The run queues' lengths, those of the normal schedulers first.".
-spec queues() -> [non_neg_integer()].
queues() -> statistics(run_queue_lengths_all).

-doc "Values that rise and fall; `Queues` are those of `queues/0`.".
-spec gauges(Queues :: [non_neg_integer()], rare()) -> #{atom() => number()}.
gauges(Queues, #rare{gauges = #{schedulers := Normal} = Rare}) ->
    Rare#{
        procs => erlang:system_info(process_count),
        ports => erlang:system_info(port_count),
        atoms => erlang:system_info(atom_count),
        ets => erlang:system_info(ets_count),
        run_queue => lists:sum(lists:sublist(Queues, Normal)),
        uptime_s => erlang:convert_time_unit(
            erlang:monotonic_time() - erlang:system_info(start_time), native, second
        )
    }.

-doc "Active and total time of each scheduler; none where they are not measured.".
-spec schedulers() ->
    [{pos_integer(), normal | dirty_cpu | dirty_io, non_neg_integer(), non_neg_integer()}].
schedulers() ->
    Normal = erlang:system_info(schedulers),
    Dirty = Normal + erlang:system_info(dirty_cpu_schedulers),
    case statistics(scheduler_wall_time_all) of
        undefined -> [];
        List ->
            [{I, if I =< Normal -> normal; I =< Dirty -> dirty_cpu; true -> dirty_io end, A, T}
             || {I, A, T} <- lists:sort(List)]
    end.

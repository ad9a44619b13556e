%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_builtin).
-moduledoc false.
%% The attributes that every node has. The table of docs/placement.md says what each is and in which
%% unit; a test compares.
%%
%% Memory is in kB of 1024 bytes throughout, as the published attributes have it; averages of load
%% are numbers of processes, not parts of 1; `cpu_speed` is in MHz.

-export([all/0, get/1, at_once/1, schedulers/0]).
-export_type([builtin/0]).

-doc """
Name, spec, unit. A call is `get(Name)` of this module, except in the published demonstration of a
call with arguments.
""".
-type builtin() :: {sderl_attr:name(), sderl_attr:spec(), Unit :: string()}.

%% Values that seldom change are read once in a minute. /proc/cpuinfo interrupts every processor of
%% the machine.
-define(SELDOM, #{keep_ms => 60_000}).

-spec all() -> [builtin()].
all() ->
    [
        %% Published.
        fixed(vm_num_processors, "logical processors"),
        fixed(mem_total, "kB"),
        fixed(os_type, "{Family, Name}"),
        fixed(os_version, "{Major, Minor, Release}"),
        fixed(otp_release, "string"),
        fixed(cpu_model_name, "string"),
        seldom(cpu_speed, "MHz"),
        changing(loadavg1, "runnable processes"),
        changing(loadavg5, "runnable processes"),
        changing(loadavg15, "runnable processes"),
        changing(mem_free, "kB"),
        changing(kernel_entities, "{Runnable, Total}"),
        changing(num_erlang_processes, "processes"),
        {num_proc2, {dynamic, {erlang, system_info, [process_count]}}, "processes"},
        %% Ours.
        seldom(logical_processors, "logical processors"),
        seldom(cpu_quota, "processors, or unlimited"),
        seldom(effective_processors, "processors"),
        changing(schedulers_online, "schedulers"),
        seldom(memory_total, "kB"),
        changing(memory_available, "kB"),
        changing(memory_vm, "kB"),
        changing(scheduler_utilisation, "0.0 to 1.0"),
        changing(run_queue, "processes and ports"),
        changing(process_count, "processes"),
        fixed(process_limit, "processes"),
        fixed(cpu_model, "string"),
        fixed(architecture, "string"),
        seldom(applications, "#{Name => Version}"),
        changing(groups, "[Group]"),
        changing(link_count, "links")
    ].

fixed(Name, Unit) -> {Name, {automatic, {?MODULE, get, [Name]}}, Unit}.
changing(Name, Unit) -> {Name, {dynamic, {?MODULE, get, [Name]}}, Unit}.
seldom(Name, Unit) -> {Name, {dynamic, {?MODULE, get, [Name]}, ?SELDOM}, Unit}.

-doc "A value, or an exit with the reason why there is none.".
-spec get(atom()) -> term().
get(Name) ->
    case attribute(Name) of
        {ok, Value} -> Value;
        {undefined, Why} -> exit(Why)
    end.

-doc """
A value that the server computes itself, because it is quick, and because helper processes would
count in it or the server needs it at once.
""".
-spec at_once(sderl_attr:call()) -> {ok, term()} | no.
at_once({?MODULE, get, [Name]})
  when Name =:= run_queue; Name =:= process_count; Name =:= num_erlang_processes;
       Name =:= schedulers_online; Name =:= link_count; Name =:= groups ->
    attribute(Name);
at_once({erlang, system_info, [process_count]}) -> attribute(process_count);
at_once(_) -> no.

attribute(vm_num_processors) -> attribute(logical_processors);
attribute(mem_total) -> meminfo(~"MemTotal");
attribute(os_type) -> {ok, os:type()};
attribute(os_version) -> {ok, os:version()};
attribute(otp_release) -> {ok, erlang:system_info(otp_release)};
attribute(cpu_model_name) ->
    case attribute(cpu_model) of
        %% Published so: the first word. A node asks for it when it starts, and would load the large
        %% tables of `string` for this alone.
        {ok, Model} -> {ok, lists:takewhile(fun(C) -> C =/= $\s end, Model)};
        None -> None
    end;
attribute(cpu_speed) -> of_file("/proc/cpuinfo", fun sderl_attr_proc:cpu_mhz/1);
attribute(loadavg1) -> loadavg(1);
attribute(loadavg5) -> loadavg(2);
attribute(loadavg15) -> loadavg(3);
attribute(mem_free) -> meminfo(~"MemFree");
attribute(kernel_entities) -> of_file("/proc/loadavg", fun sderl_attr_proc:kernel_entities/1);
attribute(num_erlang_processes) -> attribute(process_count);
attribute(logical_processors) ->
    %% `unknown` if the system does not say which of its processors this VM may use.
    case [N || Key <- [logical_processors_available, logical_processors_online, logical_processors],
               N <- [erlang:system_info(Key)], is_integer(N)] of
        [N | _] -> {ok, N};
        [] -> {undefined, unknown}
    end;
attribute(cpu_quota) -> sderl_attr_proc:quota(fun read/1);
attribute(effective_processors) ->
    case {attribute(logical_processors), attribute(cpu_quota)} of
        %% `unlimited` is above all numbers. Without control groups there is no limit by them.
        {{ok, N}, {ok, Quota}} -> {ok, min(N, Quota)};
        {Processors, _} -> Processors
    end;
attribute(schedulers_online) -> {ok, erlang:system_info(schedulers_online)};
attribute(memory_total) ->
    case {meminfo(~"MemTotal"), sderl_attr_proc:memory_limit(fun read/1)} of
        {{ok, Total}, {ok, Limit}} when is_integer(Limit) -> {ok, min(Total, Limit div 1024)};
        {Total, _} -> Total
    end;
attribute(memory_available) ->
    case {meminfo(~"MemAvailable"), sderl_attr_proc:memory_used(fun read/1)} of
        {{ok, Free}, {ok, {Limit, Used}}} -> {ok, min(Free, max(0, Limit - Used) div 1024)};
        {Free, _} -> Free
    end;
attribute(memory_vm) -> {ok, erlang:memory(total) div 1024};
attribute(scheduler_utilisation) -> utilisation();
attribute(run_queue) -> {ok, erlang:statistics(total_run_queue_lengths)};
attribute(process_count) -> {ok, erlang:system_info(process_count)};
attribute(process_limit) -> {ok, erlang:system_info(process_limit)};
attribute(cpu_model) -> of_file("/proc/cpuinfo", fun sderl_attr_proc:cpu_model/1);
attribute(architecture) -> {ok, erlang:system_info(system_architecture)};
attribute(applications) ->
    {ok, #{App => Version || {App, _, Version} <- application:loaded_applications()}};
%% Not computed in a helper process, so its size is checked here.
attribute(groups) -> sderl_attr_eval:value(lists:sort(sderl_dir:named_groups()));
attribute(link_count) -> {ok, length(nodes(connected))}.

loadavg(N) ->
    case of_file("/proc/loadavg", fun sderl_attr_proc:loadavg/1) of
        {ok, Averages} -> {ok, element(N, Averages)};
        None -> None
    end.

meminfo(Key) -> of_file("/proc/meminfo", fun(Text) -> sderl_attr_proc:meminfo(Key, Text) end).

of_file(File, Parse) ->
    case read(File) of
        {ok, Text} -> Parse(Text);
        {error, Why} -> {undefined, {File, Why}}
    end.

%% Not through the file server, which may be busy with slow disks.
read(File) -> file:read_file(File, [raw]).

%% ---------------------------------------------------------------- scheduler utilisation

-doc """
The schedulers' counters now, to be kept for the next value. The calling process must have set the
flag `scheduler_wall_time` before; the VM counts the processes that set it, and measures as long as
one of them lives, so the flags of others are not touched.
""".
-spec schedulers() -> undefined | {Active :: non_neg_integer(), Total :: non_neg_integer()}.
schedulers() ->
    case erlang:statistics(scheduler_wall_time) of
        undefined -> undefined;
        All ->
            %% Dirty schedulers have greater numbers; schedulers that are not online never run.
            Online = erlang:system_info(schedulers_online),
            lists:foldl(fun({Id, Active, Total}, {A, T}) when Id =< Online ->
                               {A + Active, T + Total};
                           (_, Sum) -> Sum
                        end, {0, 0}, All)
    end.

%% Since the last sample.
utilisation() ->
    case {sderl_attr_table:sample(), schedulers()} of
        {{A0, T0}, {A1, T1}} when T1 > T0, A1 >= A0 ->
            sderl_attr_table:sample({A1, T1}),
            {ok, min(1.0, (A1 - A0) / (T1 - T0))};
        {_, undefined} -> {undefined, not_measured};
        {_, Now} ->
            %% The first sample, or another process began to measure anew.
            sderl_attr_table:sample(Now),
            {undefined, no_sample_yet}
    end.

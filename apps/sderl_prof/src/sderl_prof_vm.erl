%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_vm).
-moduledoc """
What the virtual machine of a running node tells of itself, as one report: threads, schedulers, run
queues, memory by allocator, calls of named modules, locks, and what the system's `perf` counts.

```erlang
{ok, Report} = sderl_prof_vm:read('shop1@10.0.0.1', #{seconds => 5, modules => [shop_stock]}).
```

The report is a map that can be JSON (`m:sderl_prof_vm_report`).
""".

-export([read/2, check/1, begin_/2, await/1, stop/1, encode/1, format_error/1]).
-export_type([options/0, reading/0, reason/0]).

-define(CALL_MS, 60_000).
-define(SECONDS, 5).
-define(MOST_SECONDS, 3600).
-define(MOST_MODULES, 100).
-define(TOP, 20).
-define(MEASURES, [call_count, call_time, call_memory]).

-doc """
`seconds`: so long, 5 by default; `modules`: those whose calls are counted, none by default;
`measure`: `call_time`, the default, `call_count` or `call_memory`; `perf`: also look in which
functions the virtual machine runs, by the system's `perf`; `locks`: whether locks are counted where
the emulator can, `true` by default; `probes`: count those static probes of its emulator whose names
begin so, where there are any; `record`: and have the node's `perf` write them with their times into
this file there, for `perf script`; `top`: rows of each list, 20 by default.
""".
-type options() :: #{seconds => number(), modules => [module()],
                     measure => call_count | call_time | call_memory, perf => boolean(),
                     locks => boolean(), probes => [binary()], record => file:filename(),
                     top => pos_integer()}.
-type reading() :: #{node := node(), reader := pid(), monitor := reference(),
                     top := pos_integer()}.
-type reason() :: {option, atom(), term()} | {unknown_option, term()} | {bad_options, term()}
    | {no_module, node(), module()} | {node, node(), term()}.

-doc "Reads a node for some seconds, and reports.".
-spec read(node(), options()) -> {ok, sderl_prof_vm_report:report()} | {error, reason()}.
read(Node, Options) ->
    maybe
        {ok, Reading} ?= begin_(Node, Options),
        await(Reading)
    end.

-doc """
Begins to read. It ends in time, by `stop/1`, and with the process that calls this. A node without
this application is given the modules that read.
""".
-spec begin_(node(), options()) -> {ok, reading()} | {error, reason()}.
begin_(Node, Options) ->
    maybe
        ok ?= check(Options),
        ok ?= sderl_prof_reach:load(Node, ?CALL_MS),
        Seconds = maps:get(seconds, Options, ?SECONDS),
        Plan = #{milliseconds => max(1, round(1000 * Seconds)),
                 modules => lists:usort(maps:get(modules, Options, [])),
                 measure => maps:get(measure, Options, call_time),
                 perf => maps:get(perf, Options, false), locks => maps:get(locks, Options, true),
                 probes => maps:get(probes, Options, []),
                 record => maps:get(record, Options, none)},
        {ok, Reader} ?= sderl_prof_reach:call(Node, sderl_prof_readings, start, [Plan, self()],
                                              ?CALL_MS),
        {ok, #{node => Node, reader => Reader, monitor => monitor(process, Reader),
               top => maps:get(top, Options, ?TOP)}}
    end.

-doc "Whether these are options.".
-spec check(options()) -> ok | {error, reason()}.
check(Options) when is_map(Options) ->
    case [{Key, Value} || Key := Value <- Options, not is_valid(Key, Value)] of
        [] -> ok;
        [{Key, Value} | _] ->
            case lists:member(Key, [seconds, modules, measure, perf, locks, probes,
                                    record, top]) of
                true -> {error, {option, Key, Value}};
                false -> {error, {unknown_option, Key}}
            end
    end;
check(Options) -> {error, {bad_options, Options}}.

is_valid(seconds, S) -> is_number(S) andalso S > 0 andalso S =< ?MOST_SECONDS;
is_valid(modules, Modules) ->
    is_proper(Modules) andalso length(Modules) =< ?MOST_MODULES
        andalso lists:all(fun is_atom/1, Modules);
is_valid(measure, Measure) -> lists:member(Measure, ?MEASURES);
is_valid(Key, Value) when Key =:= perf; Key =:= locks -> is_boolean(Value);
is_valid(probes, Names) ->
    is_proper(Names)
        andalso lists:all(fun(Name) -> is_binary(Name) andalso Name =/= ~"" end, Names);
is_valid(record, File) -> io_lib:char_list(File) andalso File =/= "";
is_valid(top, Top) -> is_integer(Top) andalso Top >= 1;
is_valid(_, _) -> false.

is_proper(List) when length(List) >= 0 -> true;
is_proper(_) -> false.

-doc "Waits until it has ended.".
-spec await(reading()) -> {ok, sderl_prof_vm_report:report()} | {error, reason()}.
await(#{node := Node, reader := Reader, monitor := Monitor, top := Top}) ->
    receive
        {sderl_prof_read, Reader, Result} ->
            true = demonitor(Monitor, [flush]),
            case Result of
                {ok, Readings} -> {ok, sderl_prof_vm_report:make(Readings, Top)};
                {error, {no_module, Module}} -> {error, {no_module, Node, Module}}
            end;
        {'DOWN', Monitor, process, _, Why} -> {error, {node, Node, Why}}
    end.

-doc "Ends it before its time; `await/1` tells what there is.".
-spec stop(reading()) -> ok.
stop(#{reader := Reader}) -> sderl_prof_readings:stop(Reader).

-doc "One report as JSON, or several with `nodes` around them.".
-spec encode([sderl_prof_vm_report:report(), ...]) -> iodata().
encode([Report]) -> json:encode(Report);
encode(Reports) -> json:encode(#{kind => virtual_machines, nodes => Reports}).

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({bad_options, Options}) ->
    io_lib:format("options are a map, not ~0tP", [Options, 10]);
format_error({unknown_option, Key}) ->
    io_lib:format("there is no option ~0tp; there are seconds, modules, measure, perf, locks, "
                  "probes, record and top", [Key]);
format_error({option, seconds, Value}) ->
    io_lib:format("seconds cannot be ~0tP: it is a number above 0 and at most ~b",
                  [Value, 10, ?MOST_SECONDS]);
format_error({option, modules, Value}) ->
    io_lib:format("modules cannot be ~0tP: it is a list of at most ~b names of modules",
                  [Value, 10, ?MOST_MODULES]);
format_error({option, measure, Value}) ->
    io_lib:format("measure cannot be ~0tP: it is call_count, call_time or call_memory",
                  [Value, 10]);
format_error({option, probes, Value}) ->
    io_lib:format("probes cannot be ~0tP: it is a list of names, or of how they begin, as binaries",
                  [Value, 10]);
format_error({option, record, Value}) ->
    io_lib:format("record cannot be ~0tP: it is the name of a file, as a string", [Value, 10]);
format_error({option, top, Value}) ->
    io_lib:format("top cannot be ~0tP: it is a whole number above 0", [Value, 10]);
format_error({option, Key, Value}) ->
    io_lib:format("~ts cannot be ~0tP: it is true or false", [Key, Value, 10]);
format_error({no_module, Node, Module}) ->
    io_lib:format("~ts has no module ~ts, or none of whose functions calls can be counted",
                  [Node, Module]);
format_error({node, _, _} = Why) -> sderl_prof_failure:format(Why).

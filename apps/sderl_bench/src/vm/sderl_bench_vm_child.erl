%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_child).
-moduledoc """
The main function of a virtual machine that is measured. It reads an order from a file, writes the
result into another one, and ends. Its stdout belongs to the program. It calls OTP only, as
`m:sderl_bench_vm_loop` does.
""".

-export([main/1]).
-export_type([order/0]).

-doc """
`result` is the file to write. `probe` reports about the virtual machine, `calibrate` finds the
number of repetitions that take `run_ns`, `measure` measures. With `nodes` the virtual machine is
the first of them. With `release` it loads the modules of `harness` and then starts the release's
applications.
""".
-type order() :: #{
    do := probe | calibrate | measure,
    result := file:filename(),
    job => sderl_bench_vm_program:job(),
    nodes => sderl_bench_vm_nodes:nodes(),
    release => sderl_bench_vm_release:release(),
    harness => [module()],
    run_ns => pos_integer(),
    runs => pos_integer(),
    warm_most => pos_integer(),
    most_ns => pos_integer(),
    repetitions => pos_integer()
}.

%% How long to wait until schedulers are bound, and the time between two looks.
-define(BIND_MS, 1000).
-define(STEP_MS, 10).

-doc "Called by `erl -run`, with the name of the file.".
-spec main([string()]) -> no_return().
main([File]) ->
    %% Started before any process of the program.
    _ = spawn_opt(fun end_with_parent/0, [{priority, max}]),
    {ok, Binary} = file:read_file(File),
    #{result := Result} = Order = binary_to_term(Binary),
    Outcome = try
        made_ready(Order)
    catch
        Class:Reason:Stack ->
            {error, unicode:characters_to_binary(
                io_lib:format("~ts: ~0tP in ~0tP", [Class, Reason, 30, Stack, 10]))}
    end,
    %% Renamed, so that the file is complete or absent.
    Status = maybe
        ok ?= file:write_file(Result ++ ".part", term_to_binary(Outcome)),
        ok ?= file:rename(Result ++ ".part", Result),
        0
    else
        {error, Why} ->
            io:format(standard_error, "cannot write ~ts: ~ts~n", [Result, file:format_error(Why)]),
            1
    end,
    halt(Status, [{flush, false}]).

-dialyzer({nowarn_function, end_with_parent/0}).
%% Stdin is closed when the program that started this virtual machine ends.
end_with_parent() ->
    Port = open_port({fd, 0, 0}, [in, eof, binary]),
    receive
        {Port, eof} -> halt(1, [{flush, false}])
    end.

made_ready(#{nodes := Nodes} = Order) ->
    case sderl_bench_vm_nodes:start(Nodes) of
        {ok, All, Peers} ->
            try
                do(spread(Order#{on => All}))
            after
                %% So that none of them is there when the next virtual machine starts.
                sderl_bench_vm_nodes:stop(Peers)
            end;
        {error, Text} ->
            {not_ready, Text}
    end;
made_ready(#{release := Release, harness := Harness} = Order) ->
    ok = code:ensure_modules_loaded(Harness),
    case sderl_bench_vm_release:start(Release) of
        ok ->
            Outcome = do(Order#{on => [node()]}),
            case sderl_bench_vm_release:run_still(Release) of
                ok -> Outcome;
                Ended -> Ended
            end;
        {error, Text} -> {not_ready, Text}
    end;
made_ready(Order) ->
    do(Order#{on => [node()]}).

spread(#{job := {program, Module, Settings}, on := Nodes} = Order) ->
    Order#{job := {program, Module, Settings#{on => Nodes}}};
spread(Order) ->
    Order.

do(#{do := probe}) ->
    Bindings = bindings(?BIND_MS div ?STEP_MS),
    {ok, #{
        dirty_cpu => erlang:system_info(dirty_cpu_schedulers),
        dirty_cpu_online => erlang:system_info(dirty_cpu_schedulers_online),
        bind_type => erlang:system_info(scheduler_bind_type),
        bindings => Bindings,
        otp => otp(),
        erts => erlang:system_info(version),
        schedulers => erlang:system_info(schedulers_online),
        processors => processors(),
        architecture => erlang:system_info(system_architecture),
        compiler => lists:flatten(io_lib:format("~0p", [erlang:system_info(c_compiler_used)])),
        emulator => erlang:system_info(emu_flavor),
        build => erlang:system_info(build_type),
        libc => libc()
    }};
do(#{do := calibrate, job := Job, run_ns := Ns}) ->
    case sderl_bench_vm_loop:repetitions(Job, Ns) of
        {ok, Count, Run} ->
            {ok, (maps:with([hash, text, operations], Run))#{repetitions => Count}};
        {error, Text} ->
            {error, Text}
    end;
do(#{do := measure, job := Job, repetitions := Count, on := Nodes} = Order) ->
    case sderl_bench_vm_loop:measure(Job, Order) of
        {ok, Measured} ->
            Overhead = sderl_bench_vm_loop:overhead_ns(),
            Why = sderl_bench_vm_why:around(Count, Nodes, fun() ->
                sderl_bench_vm_loop:run(Job, Count)
            end),
            %% The last run, because tracing changes the virtual machine.
            {ok, Measured#{overhead_ns => Overhead, why => migrations(Measured, Order, Why)}};
        {error, Text} ->
            {error, Text}
    end.

migrations(#{runs := Runs}, #{job := Job, repetitions := Count, on := Nodes}, Why) ->
    Ns = lists:min([Ns || #{ns := Ns} <- Runs]),
    Enough = min(Count, sderl_bench_vm_migrations:repetitions(Ns)),
    case sderl_bench_vm_migrations:around(Nodes, Enough * Ns, fun() ->
        sderl_bench_vm_loop:run(Job, Enough)
    end) of
        none -> Why;
        Migrations -> Why#{migrations => Migrations}
    end.

%% A scheduler binds itself when it first runs, which takes a moment.
bindings(Looks) ->
    Bindings = tuple_to_list(erlang:system_info(scheduler_bindings)),
    case erlang:system_info(scheduler_bind_type) =/= unbound andalso
             lists:member(unbound, Bindings) andalso Looks > 0 of
        true ->
            receive after ?STEP_MS -> bindings(Looks - 1) end;
        false ->
            Bindings
    end.

processors() ->
    case erlang:system_info(logical_processors_available) of
        unknown -> erlang:system_info(logical_processors_online);
        Count -> Count
    end.

otp() ->
    Release = erlang:system_info(otp_release),
    case file:read_file(filename:join([code:root_dir(), "releases", Release, "OTP_VERSION"])) of
        {ok, Version} -> string:trim(binary_to_list(Version));
        {error, _} -> Release
    end.

%% The file of the C library that this virtual machine has mapped.
libc() ->
    maybe
        {ok, Maps} ?= file:read_file("/proc/self/maps"),
        {match, [Path]} ?= re:run(Maps, "\\S*/(?:libc[.-]|ld-musl)\\S*",
                                  [{capture, first, list}]),
        {ok, Content} ?= file:read_file(Path),
        {match, [Version]} ?= re:run(Content, "stable release version ([0-9.]*[0-9])",
                                     [{capture, all_but_first, list}]),
        "glibc " ++ Version
    else
        _ -> "unknown"
    end.

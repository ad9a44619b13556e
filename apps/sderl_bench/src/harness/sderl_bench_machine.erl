%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_machine).
-moduledoc "The description of the machine in a result.".

-export([info/0, text/0]).
-export_type([info/0]).

-doc """
Cores that this virtual machine may use (a quota of processor time is rounded up), memory in MiB
(`null` where unknown), OTP's full version.
""".
-type info() :: #{cores := pos_integer(), memory_mib := pos_integer() | null, otp := binary()}.

-doc "This machine.".
-spec info() -> info().
info() ->
    #{cores => cores(), memory_mib => memory_mib(), otp => otp()}.

-doc "This machine as a phrase, such as `2 cores, 24105 MiB, OTP 29.1.1`.".
-spec text() -> unicode:chardata().
text() ->
    #{cores := Cores, memory_mib := Memory, otp := Otp} = info(),
    [
        io_lib:format("~w core~ts, ", [Cores, [$s || Cores > 1]]),
        [io_lib:format("~w MiB, ", [Memory]) || Memory =/= null],
        "OTP ",
        Otp
    ].

cores() ->
    try
        ceil(sderl_attr_builtin:get(effective_processors))
    catch
        %% The system does not tell.
        exit:_ -> erlang:system_info(schedulers_online)
    end.

memory_mib() ->
    maybe
        {ok, Text} ?= file:read_file("/proc/meminfo"),
        {match, [Kib]} ?= re:run(Text, "^MemTotal:\\s+(\\d+) kB",
                                 [{capture, all_but_first, binary}]),
        binary_to_integer(Kib) div 1024
    else
        _ -> null
    end.

otp() ->
    Release = erlang:system_info(otp_release),
    case file:read_file(filename:join([code:root_dir(), "releases", Release, "OTP_VERSION"])) of
        {ok, Version} -> string:trim(Version);
        {error, _} -> list_to_binary(Release)
    end.

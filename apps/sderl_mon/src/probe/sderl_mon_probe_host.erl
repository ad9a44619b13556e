%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_host).
-moduledoc """
What the machine of the node does besides: its processors and its memory, as Linux tells them in
`/proc`. On another system, or where that may not be read, nothing is known.
""".

-export([read/1, busy/1, memory/1]).
-export_type([host/0]).

-doc """
`cpu`: how long the processors were busy and how long there were any, in the system's own unit,
since it began. `gauges`: `host_cpu`, the share of that since the reading before; `host_mem`, bytes
that are not available, of `host_mem_total`.
""".
-type host() :: #{
    cpu => {Busy :: non_neg_integer(), Total :: non_neg_integer()},
    gauges := #{atom() => number()}
}.

%% The first line of the one file; the second is small.
-define(BYTES, 4096).

-doc """
Reads it, beside what was read before. May take a millisecond on a machine with many processors.
""".
-spec read(host() | none) -> host().
read(Before) ->
    Memory = memory(head("/proc/meminfo")),
    case busy(head("/proc/stat")) of
        {ok, Cpu} -> #{cpu => Cpu, gauges => maps:merge(Memory, share(Before, Cpu))};
        none -> #{gauges => Memory}
    end.

share(#{cpu := {Busy0, Total0}}, {Busy, Total}) when Total > Total0, Busy >= Busy0 ->
    #{host_cpu => min(1.0, (Busy - Busy0) / (Total - Total0))};
share(_, _) ->
    #{}.

head(Name) ->
    maybe
        {ok, File} ?= file:open(Name, [read, raw, binary]),
        Read = file:read(File, ?BYTES),
        _ = file:close(File),
        {ok, Text} ?= Read,
        Text
    else
        _ -> <<>>
    end.

-doc """
Of the text of `/proc/stat`: all but idle and waiting for disks is busy. What guests use is in user
and nice already.
""".
-spec busy(binary()) -> {ok, {Busy :: non_neg_integer(), Total :: non_neg_integer()}} | none.
busy(<<"cpu ", Rest/binary>>) ->
    [Line | _] = binary:split(Rest, <<"\n">>),
    case numbers(string:lexemes(Line, " ")) of
        [User, Nice, System, Idle | More] ->
            [Wait, Irq, Soft, Steal | _] = More ++ [0, 0, 0, 0],
            Busy = User + Nice + System + Irq + Soft + Steal,
            {ok, {Busy, Busy + Idle + Wait}};
        _ ->
            none
    end;
busy(_) ->
    none.

-doc "Of the text of `/proc/meminfo`.".
-spec memory(binary()) -> #{host_mem | host_mem_total => non_neg_integer()}.
memory(Text) ->
    Lines = [string:lexemes(Line, " :") || Line <- binary:split(Text, <<"\n">>, [global])],
    Of = fun(Key) -> numbers([Kilo || [Is, Kilo | _] <- Lines, Is =:= Key]) end,
    case {Of(<<"MemTotal">>), Of(<<"MemAvailable">>)} of
        {[Total], [Available]} when Total >= Available ->
            #{host_mem_total => 1024 * Total, host_mem => 1024 * (Total - Available)};
        _ ->
            #{}
    end.

numbers(Words) ->
    Read = [string:to_integer(Word) || Word <- Words],
    [N || {N, <<>>} <- Read, is_integer(N), N >= 0].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_host).
-moduledoc """
The load of the node's machine: its processors and its memory, as Linux reports them in `/proc`. On
another system, or where that may not be read, nothing is known.
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

-doc """
Reads it; `host_cpu` needs the reading before. May take a millisecond on a machine with many cores.
""".
-spec read(host() | none) -> host().
read(Before) ->
    Memory = memory(text("/proc/meminfo")),
    case busy(text("/proc/stat")) of
        {ok, Cpu} -> #{cpu => Cpu, gauges => maps:merge(Memory, share(Before, Cpu))};
        none -> #{gauges => Memory}
    end.

share(#{cpu := {Busy0, Total0}}, {Busy, Total}) when Total > Total0, Busy >= Busy0 ->
    #{host_cpu => min(1.0, (Busy - Busy0) / (Total - Total0))};
share(_, _) ->
    #{}.

%% One raw call, without the file server: each further call would wake another thread.
text(Name) ->
    case file:read_file(Name, [raw]) of
        {ok, Text} -> Text;
        {error, _} -> <<>>
    end.

-doc """
The processor time in the text of `/proc/stat`: all but idle and waiting for disks is busy. The time
of guests is already part of user and nice.
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

-doc "The memory in the text of `/proc/meminfo`.".
-spec memory(binary()) -> #{host_mem | host_mem_total => non_neg_integer()}.
memory(Text) ->
    case {kilo(<<"MemTotal:">>, Text), kilo(<<"MemAvailable:">>, Text)} of
        {Total, Available} when is_integer(Total), is_integer(Available), Total >= Available ->
            #{host_mem_total => 1024 * Total, host_mem => 1024 * (Total - Available)};
        _ ->
            #{}
    end.

%% The number after a key at the beginning of a line.
kilo(Key, Text) ->
    case binary:match(Text, Key) of
        {At, Length} when At =:= 0; binary_part(Text, At - 1, 1) =:= <<"\n">> ->
            <<_:(At + Length)/binary, Rest/binary>> = Text,
            case numbers(string:lexemes(hd(binary:split(Rest, <<"\n">>)), " ")) of
                [Kilo | _] -> Kilo;
                [] -> none
            end;
        _ ->
            none
    end.

numbers(Words) ->
    Read = [string:to_integer(Word) || Word <- Words],
    [N || {N, <<>>} <- Read, is_integer(N), N >= 0].

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_load).
-moduledoc """
The program that `bin/sderl bench tables` measures: workers that operate on one table at the same
time, each by a stream of operations that is drawn before (`m:sderl_bench_tables_keys`). The time is
from the start of all workers to the end of the last one, without making and filling the table.

The output is the number of operations and, where additions are the only changes, the sum of the
counts, which shows whether an addition was lost. The content of the table is not part of the
output, because it depends on the order of the workers.

It runs in the virtual machine that is measured, and calls OTP and the kind of table only.
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, prepare/1, run/2, finish/1]).

-define(OPS, [read, put, delete, add, range]).

-doc false.
-spec summary() -> string().
summary() -> "operations on one table".

-doc "Those of a mix that reads only, on a table of the kind `set`.".
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(_Size, Cores) ->
    #{kind => sderl_bench_tables_ets, type => set, read_concurrency => false,
      write_concurrency => false, decentralized_counters => default, keys => 1000, filled => 2,
      operations => 10_000, workers => 4 * Cores, distribution => uniform, read => 100,
      value_words => 1, range_length => 10, shards => 4 * Cores}.

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) -> term().
prepare(#{kind := Kind, workers := Workers} = Settings) ->
    {module, Kind} = code:ensure_loaded(Kind),
    Shared = Kind:new(Settings),
    Main = self(),
    Pids = [spawn_link(fun() -> worker(Main, Number, Shared, Settings) end)
            || Number <- lists:seq(1, Workers)],
    _ = [receive {Pid, ready} -> ok end || Pid <- Pids],
    {Settings, Shared, Pids, 0}.

-doc false.
-spec run(run, term()) -> term().
run(run, {Settings, Shared, Pids, 0}) ->
    _ = [Pid ! go || Pid <- Pids],
    {Settings, Shared, Pids, lists:sum([receive {Pid, Count} -> Count end || Pid <- Pids])}.

-doc false.
-spec finish(term()) -> {Operations :: non_neg_integer(), Sum :: integer() | none}.
finish({#{kind := Kind} = Settings, Shared, Pids, Count}) ->
    Monitors = [monitor(process, Pid) || Pid <- Pids],
    _ = [Pid ! stop || Pid <- Pids],
    _ = [receive {'DOWN', Monitor, process, _, _} -> ok end || Monitor <- Monitors],
    Sum = case counts(Settings) andalso erlang:function_exported(Kind, sum, 1) of
        true -> Kind:sum(Shared);
        false -> none
    end,
    Kind:close(Shared),
    {Count, Sum}.

%% Whether values are counts, and nothing else changes them.
counts(Settings) ->
    maps:get(add, Settings, 0) > 0 andalso maps:get(put, Settings, 0) =:= 0 andalso
        maps:get(delete, Settings, 0) =:= 0.

worker(Main, Number, Shared, #{kind := Kind, range_length := Length} = Settings) ->
    Stream = stream(Number, Settings),
    Client = Kind:client(Shared, Settings),
    Payload = lists:duplicate(maps:get(value_words, Settings) - 1, 0),
    Main ! {self(), ready},
    receive
        go ->
            Last = operate(Stream, Kind, {Length, Payload}, byte_size(Stream) div 4, Client),
            _ = case erlang:function_exported(Kind, finish, 1) of
                true -> Kind:finish(Last);
                false -> ok
            end,
            Main ! {self(), byte_size(Stream) div 4}
    end,
    receive stop -> ok end.

%% Drawing takes longer than many tables, so all runs of a virtual machine share the streams.
stream(Number, #{workers := Workers, operations := Operations, keys := Keys} = Settings) ->
    Key = {?MODULE, Number},
    case persistent_term:get(Key, none) of
        {Settings, Stream} ->
            Stream;
        _ ->
            Share = Operations div Workers
                + case Number =< Operations rem Workers of true -> 1; false -> 0 end,
            Stream = sderl_bench_tables_keys:stream({?MODULE, Number}, #{
                count => Share, mix => maps:with(?OPS, Settings), keys => Keys,
                distribution => distribution(Settings)
            }),
            ok = persistent_term:put(Key, {Settings, Stream}),
            Stream
    end.

distribution(#{distribution := zipf, exponent := Exponent}) -> {zipf, Exponent};
distribution(#{distribution := uniform}) -> uniform.

%% A value differs from the one before, or there would be nothing to write.
operate(<<Key:28, Op:4, Stream/binary>>, Kind, {Length, Payload} = Shape, Left, Client) ->
    Next = case Op of
        0 -> Kind:read(Key, Client);
        1 -> Kind:put(Key, [Left | Payload], Client);
        2 -> Kind:delete(Key, Client);
        3 -> Kind:add(Key, Client);
        4 -> Kind:range(Key, Length, Client)
    end,
    operate(Stream, Kind, Shape, Left - 1, Next);
operate(<<>>, _, _, 0, Client) ->
    Client.

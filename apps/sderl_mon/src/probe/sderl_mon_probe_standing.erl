%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_standing).
-moduledoc """
What changes seldom on a node and alarms watch: open files, disks, modules and those with old code,
what shells keep, the time zone, the versions of applications, and the alarms that programs there
have set in OTP's `alarm_handler`. Reading it may block.
""".

-export([read/1, gauges/1, facts/1, files/1]).
-export_type([standing/0]).

-import(sderl_mon_probe_text, [text/2, cut/2]).
-import(sderl_mon_probe_work, [now_ms/0]).

-doc """
`at` is when the numbers and versions were read; the alarms are read each time. `apps` are the
loaded applications without OTP's, with their versions.
""".
-type standing() :: #{
    at := integer(),
    gauges := #{atom() => number()},
    disk := sderl_mon_probe_disk:disk(),
    apps := [{binary(), binary()}],
    alarms := [binary()]
}.

-define(RARE_MS, 60_000).
-define(HANDLER_MS, 1_000).
-define(MOST_ALARMS, 20).
-define(MOST_APPS, 300).
%% MODULE_LIMIT of the virtual machine, which has no call for it.
-define(MODULE_LIMIT, 65_536).
%% A shell with a larger heap exceeds every sensible limit even without its binaries.
-define(LARGE_HEAP, 67_108_864).

-doc "The gauges of a sample.".
-spec gauges(standing() | none) -> #{atom() => number()}.
gauges(#{gauges := Gauges, disk := #{gauges := Disk}}) -> maps:merge(Gauges, Disk);
gauges(none) -> #{}.

-doc "The part of a sample's facts.".
-spec facts(standing() | none) -> #{alarms := [binary()], apps := [{binary(), binary()}]}.
facts(none) -> #{alarms => [], apps => []};
facts(Standing) -> maps:with([alarms, apps], Standing).

-doc "Reads the alarms, and once a minute the rest.".
-spec read(standing() | none) -> standing().
read(Before) ->
    Now = now_ms(),
    Numbers = case Before of
        #{at := At} when Now - At < ?RARE_MS -> maps:with([at, gauges, disk, apps], Before);
        #{disk := Disk} -> fresh(Now, Disk);
        none -> fresh(Now, none)
    end,
    Numbers#{alarms => case alarms() of
        {ok, Alarms} -> Alarms;
        %% Without an answer in time the alarms stay as they were.
        unknown when is_map(Before) -> maps:get(alarms, Before);
        unknown -> []
    end}.

fresh(Now, Disk) ->
    #{at => Now, gauges => numbers(), apps => applications(),
      disk => sderl_mon_probe_disk:read(Disk)}.

%% Read from a table, because the application controller may be busy starting an application.
applications() ->
    Own = [{App, Version} || {App, _, Version} <- lists:sort(application:loaded_applications()),
                             not lists:member(App, otp())],
    [{cut(atom_to_binary(App), 64), cut(text("~ts", [Version]), 64)}
     || {App, Version} <- lists:sublist(Own, ?MOST_APPS)].

%% Their versions are those of the release.
otp() ->
    [asn1, common_test, compiler, crypto, debugger, dialyzer, diameter, edoc, eldap, erts, et,
     eunit, ftp, inets, kernel, megaco, mnesia, observer, odbc, os_mon, parsetools, public_key,
     reltool, runtime_tools, sasl, snmp, ssh, ssl, stdlib, syntax_tools, tftp, tools, wx, xmerl].

numbers() ->
    Modules = erlang:loaded(),
    Local = calendar:local_time(),
    Offset = calendar:datetime_to_gregorian_seconds(Local)
        - calendar:datetime_to_gregorian_seconds(calendar:universal_time()),
    maps:merge(open_files(), #{
        modules => length(Modules), module_limit => ?MODULE_LIMIT,
        old_code => length([M || M <- Modules, erlang:check_old_code(M)]),
        shell_bytes => lists:max([0 | [kept(Shell) || Shell <- shells()]]),
        %% Rounded, because the two clocks were read one after the other.
        utc_offset_s => 60 * round(Offset / 60)
    }).

%% Every shell has such a table for its records, of a terminal, a remote shell or SSH.
shells() ->
    lists:usort([Owner || Table <- ets:all(), ets:info(Table, name) =:= shell_records,
                          Owner <- [ets:info(Table, owner)], is_pid(Owner)]).

%% A shell's process holds its input and results; large binaries by reference.
kept(Shell) ->
    case process_info(Shell, memory) of
        {memory, Memory} when Memory < ?LARGE_HEAP ->
            case process_info(Shell, binary) of
                {binary, Binaries} ->
                    Memory + lists:sum(maps:values(#{Id => Size || {Id, Size, _} <- Binaries}));
                undefined -> 0
            end;
        {memory, Memory} -> Memory;
        undefined -> 0
    end.

%% From /proc of Linux; elsewhere nothing is known.
open_files() ->
    %% Not by the node's file server, because there may be very many files.
    maybe
        {ok, Open} ?= prim_file:list_dir("/proc/self/fd"),
        {ok, Text} ?= file:read_file("/proc/self/limits", [raw]),
        {ok, Limit} ?= files(Text),
        #{files => length(Open), file_limit => Limit}
    else
        _ -> #{}
    end.

-doc "The limit of open files in the text of `/proc/self/limits`.".
-spec files(binary()) -> {ok, pos_integer()} | none.
files(Text) ->
    case re:run(Text, "^Max open files +([0-9]+)", [multiline, {capture, all_but_first, binary}]) of
        {match, [Limit]} -> {ok, binary_to_integer(Limit)};
        nomatch -> none
    end.

%% If another handler has replaced OTP's, there is nobody to ask.
alarms() ->
    try whereis(alarm_handler) =/= undefined
        andalso gen_event:call(alarm_handler, alarm_handler, get_alarms, ?HANDLER_MS) of
        Alarms when is_list(Alarms) ->
            {ok, [said(Alarm) || Alarm <- lists:sublist(lists:sort(Alarms), ?MOST_ALARMS)]};
        _ -> {ok, []}
    catch
        exit:{timeout, _} -> unknown;
        _:_ -> {ok, []}
    end.

said({Id, Text}) ->
    case io_lib:char_list(Text) andalso Text =/= [] of
        true -> cut(text("~0tP: ~ts", [Id, 30, Text]), 300);
        false -> cut(text("~0tP", [Id, 30]), 300)
    end;
said(Alarm) -> cut(text("~0tP", [Alarm, 30]), 300).

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_proc).
-moduledoc false.

%% Processes and memory, as /proc shows them. `undefined` on systems without it.

-export([state/1, rss_kib/1, fits/1]).

-define(NODE_MIB, 50).

-doc "The state letter of a process (R, S, T, Z, ...), `gone`, or `undefined` without /proc.".
-spec state(non_neg_integer()) -> char() | gone | undefined.
state(OsPid) ->
    case read(["/proc/", integer_to_list(OsPid), "/stat"]) of
        {ok, Stat} ->
            %% pid (command) state ...: the command may hold anything, also ")".
            <<" ", State, _/binary>> = lists:last(binary:split(Stat, ~")", [global])),
            State;
        error ->
            case filelib:is_dir("/proc/self") of
                true -> gone;
                false -> undefined
            end
    end.

-spec rss_kib(non_neg_integer()) -> non_neg_integer() | undefined.
rss_kib(OsPid) ->
    field(["/proc/", integer_to_list(OsPid), "/status"], ~"VmRSS:").

%% Memory that new processes can have: the machine's, or the control group's when less.
available_mib() ->
    Kib = [
        K
     || K <- [field("/proc/meminfo", ~"MemAvailable:"), cgroup_kib()], is_integer(K)
    ],
    case Kib of
        [] -> undefined;
        _ -> lists:min(Kib) div 1024
    end.

-spec fits(non_neg_integer()) ->
    ok | {error, {memory, #{needed_mib := pos_integer(), available_mib := non_neg_integer()}}}.
fits(Count) when is_integer(Count), Count >= 0 ->
    Needed = Count * ?NODE_MIB,
    case available_mib() of
        Available when is_integer(Available), Available < Needed ->
            {error, {memory, #{needed_mib => Needed, available_mib => Available}}};
        _ ->
            ok
    end.

cgroup_kib() ->
    Dir = "/sys/fs/cgroup/",
    case {number([Dir, "memory.max"]), number([Dir, "memory.current"])} of
        {Max, Current} when is_integer(Max), is_integer(Current) -> max(0, Max - Current) div 1024;
        _ -> undefined
    end.

number(Path) ->
    case read(Path) of
        {ok, Text} -> integer(Text);
        error -> undefined
    end.

%% Also "max", which is none.
integer(Text) ->
    case string:to_integer(Text) of
        {N, _} when is_integer(N), N >= 0 -> N;
        _ -> undefined
    end.

field(Path, Name) ->
    case read(Path) of
        {ok, Text} ->
            case binary:split(Text, Name) of
                [_, Rest] -> integer(string:trim(Rest, leading));
                [_] -> undefined
            end;
        error ->
            undefined
    end.

%% Files of /proc have no size, so file:read_file/1 reads them to their end.
read(Path) ->
    case file:read_file(Path) of
        {ok, Text} -> {ok, Text};
        {error, _} -> error
    end.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_proc).
-moduledoc false.
%% Values that the operating system reports as text: Linux's /proc and control groups. Pure: files
%% come through a function that is passed in, so that every format can be tested anywhere.
%%
%% A control group limits what is in it and in the groups below it, so the least of the limits from
%% a process's group up to the root counts. In a container the root of the tree that is mounted may
%% itself be the process's group, or the path that the process is told may not be there: whatever
%% directories exist on the way up are asked, and the root always is.

-export([loadavg/1, kernel_entities/1, meminfo/2, cpu_mhz/1, cpu_model/1]).
-export([quota/1, memory_limit/1, memory_used/1, cgroups/1]).
-export_type([read/0, result/1]).

-doc "Gives the contents of a file.".
-type read() :: fun((file:filename()) -> {ok, binary()} | {error, term()}).

-type result(T) :: {ok, T} | {undefined, Reason :: term()}.

-define(CGROUPS, "/sys/fs/cgroup").

%% Version 1 says "no limit" with the largest number of whole pages.
-define(NO_LIMIT, 16#7000000000000000).

-doc """
The three averages of /proc/loadavg: processes that run or wait to, over 1, 5 and 15 minutes.
""".
-spec loadavg(binary()) -> result({float(), float(), float()}).
loadavg(Text) ->
    case words(Text) of
        [A, B, C | _] -> all([number(W) || W <- [A, B, C]]);
        _ -> {undefined, format}
    end.

all(Numbers) ->
    case lists:member(error, Numbers) of
        false -> {ok, list_to_tuple([float(N) || N <- Numbers])};
        true -> {undefined, format}
    end.

-doc """
Of /proc/loadavg: how many of the kernel's processes and threads run or wait to, and how many there
are.
""".
-spec kernel_entities(binary()) -> result({non_neg_integer(), non_neg_integer()}).
kernel_entities(Text) ->
    maybe
        [_, _, _, Entities | _] ?= words(Text),
        [Runnable, Total] ?= binary:split(Entities, ~"/"),
        R = whole(Runnable),
        T = whole(Total),
        true ?= is_integer(R) andalso is_integer(T),
        {ok, {R, T}}
    else
        _ -> {undefined, format}
    end.

-doc "A line of /proc/meminfo, in kB.".
-spec meminfo(Key :: binary(), binary()) -> result(non_neg_integer()).
meminfo(Key, Text) ->
    case field(Key, Text) of
        {ok, Value} ->
            case [whole(W) || W <- words(Value)] of
                [N | _] when is_integer(N) -> {ok, N};
                _ -> {undefined, format}
            end;
        none -> {undefined, no_such_line}
    end.

-doc "The first processor's clock in /proc/cpuinfo, in MHz. ARM kernels have none.".
-spec cpu_mhz(binary()) -> result(float()).
cpu_mhz(Text) ->
    case first([~"cpu MHz", ~"clock"], Text) of
        {ok, Value} ->
            %% POWER writes the unit with it: 3425.000000MHz.
            case number(hd(binary:split(Value, ~"MHz"))) of
                error -> {undefined, format};
                Mhz -> {ok, float(Mhz)}
            end;
        none -> {undefined, no_such_line}
    end.

-doc """
The whole name of the processors in /proc/cpuinfo. Kernels for other processors than x86 use other
words.
""".
-spec cpu_model(binary()) -> result(string()).
cpu_model(Text) ->
    case first([~"model name", ~"cpu model", ~"Model", ~"Hardware", ~"cpu"], Text) of
        {ok, Value} -> {ok, unicode:characters_to_list(Value, latin1)};
        none ->
            %% ARM of 64 bits has numbers alone.
            case {field(~"CPU implementer", Text), field(~"CPU part", Text)} of
                {{ok, By}, {ok, Part}} ->
                    {ok, lists:flatten(io_lib:format("ARM ~ts part ~ts", [By, Part]))};
                _ -> {undefined, no_such_line}
            end
    end.

%% ---------------------------------------------------------------- control groups

-doc """
How many processors' time the process's control groups allow it: `unlimited` (greater than every
number), or a number such as 1.5. An error when there are no control groups.
""".
-spec quota(read()) -> result(float() | unlimited).
quota(Read) ->
    with_groups(Read, fun(Groups) ->
        least([quota(Version, Dir, Read)
               || {Version, Of, Dir} <- Groups, Of =:= all orelse Of =:= cpu])
    end).

quota(2, Dir, Read) ->
    case words_of(Read, Dir ++ "/cpu.max") of
        [~"max" | _] -> unlimited;
        [Quota, Period] -> share(whole(Quota), whole(Period));
        _ -> none
    end;
quota(1, Dir, Read) ->
    case {words_of(Read, Dir ++ "/cpu.cfs_quota_us"),
          words_of(Read, Dir ++ "/cpu.cfs_period_us")} of
        {[~"-1"], _} -> unlimited;
        {[Quota], [Period]} -> share(whole(Quota), whole(Period));
        _ -> none
    end.

share(Quota, Period) when is_integer(Quota), is_integer(Period), Quota > 0, Period > 0 ->
    Quota / Period;
share(_, _) -> none.

-doc "How much memory the process's control groups allow, in bytes.".
-spec memory_limit(read()) -> result(pos_integer() | unlimited).
memory_limit(Read) ->
    with_groups(Read, fun(Groups) ->
        least([limit(Version, Dir, Read) || {Version, Dir} <- of_memory(Groups)])
    end).

limit(2, Dir, Read) -> bytes(words_of(Read, Dir ++ "/memory.max"));
limit(1, Dir, Read) -> bytes(words_of(Read, Dir ++ "/memory.limit_in_bytes")).

bytes([~"max"]) -> unlimited;
bytes([Word]) ->
    case whole(Word) of
        N when is_integer(N), N >= ?NO_LIMIT -> unlimited;
        N when is_integer(N), N > 0 -> N;
        _ -> none
    end;
bytes(_) -> none.

-doc """
The limit and the memory in use, in bytes, of the group with the least memory left. File pages that
were not used lately do not count as used, because the kernel gives them up before it refuses
memory.
""".
-spec memory_used(read()) -> result({pos_integer(), non_neg_integer()} | unlimited).
memory_used(Read) ->
    with_groups(Read, fun(Groups) ->
        Limits = [{Version, Dir, limit(Version, Dir, Read)} || {Version, Dir} <- of_memory(Groups)],
        Limited = [{Limit - Used, {Limit, Used}}
                   || {Version, Dir, Limit} <- Limits, is_integer(Limit),
                      Used <- [used(Version, Dir, Read)], is_integer(Used)],
        case Limited of
            [_ | _] -> element(2, lists:min(Limited));
            [] -> unlimited
        end
    end).

used(2, Dir, Read) -> used(Dir ++ "/memory.current", Dir ++ "/memory.stat", ~"inactive_file", Read);
used(1, Dir, Read) ->
    used(Dir ++ "/memory.usage_in_bytes", Dir ++ "/memory.stat", ~"total_inactive_file", Read).

used(UsageFile, StatFile, Key, Read) ->
    case [whole(W) || W <- words_of(Read, UsageFile)] of
        [Usage] when is_integer(Usage) -> max(0, Usage - stat(Key, StatFile, Read));
        _ -> none
    end.

stat(Key, File, Read) ->
    case Read(File) of
        {ok, Text} ->
            Values = [whole(V) || Line <- lines(Text), [K, V] <- [words(Line)], K =:= Key],
            case Values of
                [N | _] when is_integer(N) -> N;
                _ -> 0
            end;
        {error, _} -> 0
    end.

of_memory(Groups) -> [{V, D} || {V, C, D} <- Groups, C =:= all orelse C =:= memory].

%% Without limits the files are often missing: at the root there are none.
with_groups(Read, Fun) ->
    case Read("/proc/self/cgroup") of
        {ok, Text} ->
            case Fun(cgroups(Text)) of
                none -> {ok, unlimited};
                Found -> {ok, Found}
            end;
        {error, Why} -> {undefined, {no_control_groups, Why}}
    end.

least(Limits) ->
    case [L || L <- Limits, L =/= none] of
        [] -> none;
        %% `unlimited`, an atom, is above all numbers.
        Known -> lists:min(Known)
    end.

-doc """
The directories to ask, from /proc/self/cgroup: version, controller (`all` in version 2), and the
directory, for each group from the process's own up to the root.
""".
-spec cgroups(binary()) -> [{1 | 2, all | cpu | memory, file:filename()}].
cgroups(Text) ->
    lists:append([group(binary:split(Line, ~":", [global])) || Line <- lines(Text)]).

group([~"0", <<>> | Path]) ->
    %% Version 2; beside version 1 it is mounted in `unified`.
    [{2, all, Root ++ Dir} || Root <- [?CGROUPS, ?CGROUPS "/unified"], Dir <- upwards(Path)];
group([_, Controllers | Path]) ->
    Names = binary:split(Controllers, ~",", [global]),
    [{1, Controller, ?CGROUPS "/" ++ binary_to_list(Mount) ++ Dir}
     || {Controller, Name} <- [{cpu, ~"cpu"}, {memory, ~"memory"}], lists:member(Name, Names),
        Mount <- lists:usort([Name, Controllers]), Dir <- upwards(Path)];
group(_) -> [].

%% A path may have colons in it.
upwards(Parts) ->
    Path = [binary_to_list(P)
            || P <- binary:split(iolist_to_binary(lists:join(~":", Parts)), ~"/", [global]),
               P =/= <<>>, P =/= ~".."],
    [lists:append(["/" ++ P || P <- lists:sublist(Path, N)])
     || N <- lists:seq(length(Path), 0, -1)].

%% ---------------------------------------------------------------- text

words_of(Read, File) ->
    case Read(File) of
        {ok, Text} -> words(Text);
        {error, _} -> []
    end.

words(Text) -> binary:split(squeeze(Text), ~" ", [global, trim_all]).

squeeze(Text) ->
    << <<(case C of $\t -> $\s; $\n -> $\s; $\r -> $\s; _ -> C end)>> || <<C>> <= Text >>.

lines(Text) -> binary:split(Text, ~"\n", [global, trim_all]).

%% The first line `Key : Value`.
field(Key, Text) ->
    Found = [trim(V) || Line <- lines(Text), [K, V] <- [binary:split(Line, ~":")], trim(K) =:= Key],
    case [V || V <- Found, V =/= <<>>] of
        [Value | _] -> {ok, Value};
        [] -> none
    end.

first([], _) -> none;
first([Key | Keys], Text) ->
    case field(Key, Text) of
        {ok, Value} -> {ok, Value};
        none -> first(Keys, Text)
    end.

%% Not `string:trim/1`, which expects UTF-8.
trim(Text) -> iolist_to_binary(lists:join(~" ", words(Text))).

whole(Word) ->
    try binary_to_integer(Word) of
        N when N >= 0 -> N;
        _ -> error
    catch
        error:badarg -> error
    end.

number(Word) ->
    try binary_to_float(trim(Word))
    catch
        error:badarg -> whole(trim(Word))
    end.

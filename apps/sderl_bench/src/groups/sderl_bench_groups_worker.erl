%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_groups_worker).
-moduledoc "The part of `bin/sderl bench groups` that runs on the measured nodes.".

-export([create/2, memory/0, busiest/0]).

-doc """
Creates groups, one after the other, each of this node and another one; gives how long each took,
in us.
""".
-spec create([{Group :: term(), Mate :: node()}], PauseMs :: non_neg_integer()) ->
    {ok, [number()]} | {error, {not_created, Group :: term(), Answer :: term()}}.
create(Groups, PauseMs) -> create(Groups, PauseMs, []).

create([], _, Took) ->
    {ok, Took};
create([{Group, Mate} | Groups], PauseMs, Took) ->
    receive
    after PauseMs -> ok
    end,
    Wanted = lists:sort([node(), Mate]),
    Began = erlang:monotonic_time(nanosecond),
    case s_group:new_s_group(Group, [node(), Mate]) of
        {ok, Group, Wanted} ->
            create(Groups, PauseMs, [(erlang:monotonic_time(nanosecond) - Began) / 1000 | Took]);
        Answer ->
            {error, {not_created, Group, Answer}}
    end.

-doc "Bytes that this node uses in all, garbage included.".
-spec memory() -> non_neg_integer().
memory() -> erlang:memory(total).

-doc "The registered processes with the most reductions so far: where to look when it is slow.".
-spec busiest() -> [{Name :: atom(), Reductions :: non_neg_integer()}].
busiest() ->
    Named = [
        {Name, Count}
     || Name <- registered(),
        Pid <- [whereis(Name)],
        is_pid(Pid),
        {reductions, Count} <- [process_info(Pid, reductions)]
    ],
    lists:sublist(lists:reverse(lists:keysort(2, Named)), 8).

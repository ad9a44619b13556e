%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_exchange).
-moduledoc "Asks a node for its clock, several times (`m:sderl_prof_clock`).".

-export([sample/2]).

-define(ROUNDS, 20).

-doc "A sample of the clock of a node that has `m:sderl_prof_station`.".
-spec sample(node(), timeout()) ->
    {ok, sderl_prof_clock:sample()} | {error, sderl_prof_reach:reason()}.
sample(Node, Timeout) ->
    Self = self(),
    Until = erlang:monotonic_time(millisecond) + Timeout,
    {Pid, Ref} = spawn_opt(Node, sderl_prof_station, clock, [Self], [monitor]),
    Asked = rounds(?ROUNDS, Node, Pid, Ref, Until, []),
    true = demonitor(Ref, [flush]),
    true = exit(Pid, kill),
    Asked.

rounds(0, _, _, _, _, Rounds) ->
    {ok, sderl_prof_clock:sample(Rounds)};
rounds(N, Node, Pid, Ref, Until, Rounds) ->
    %% An answer that comes too late goes nowhere.
    Tag = monitor(process, Pid, [{alias, reply_demonitor}]),
    Asked = erlang:monotonic_time(nanosecond),
    Pid ! {clock, Tag, Tag},
    receive
        {Tag, Said} ->
            Answered = erlang:monotonic_time(nanosecond),
            rounds(N - 1, Node, Pid, Ref, Until, [{Asked, Said, Answered} | Rounds]);
        {'DOWN', Tag, process, Pid, Why} -> {error, {node, Node, Why}}
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        true = demonitor(Tag, [flush]),
        {error, {node, Node, timeout}}
    end.

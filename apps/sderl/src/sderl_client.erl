%% SPDX-License-Identifier: Apache-2.0
-module(sderl_client).
-moduledoc false.
%% A write from the caller's side (rule 19).
%%
%% The answer comes to an alias that the caller makes once; it stays good while the process of
%% the group on this node dies and its successor takes over, and names the operation: asking
%% again after such a death applies it once. What is not answered in time has an unknown outcome.

-export([write/2, request/3]).

-doc """
Runs an operation in a group of this node. Exits `{timeout, {s_group, write, [Group, Op]}}`
after the configured time (10 s by default).
""".
-spec write(term(), tuple() | delete) -> {ok, term()} | {error, not_member | not_running | connect_all}.
write(Group, Op) ->
    case sderl_dir:refuse() of
        undefined ->
            Timeout = maps:get(write_timeout_ms, sderl_dir:options(), 10_000),
            case request(Group, fun(Kind, From) -> {kind(Kind), From, Op} end, Timeout) of
                {ok, {no, not_member}} -> {error, not_member};
                {ok, Answer} -> {ok, Answer};
                {error, timeout} -> exit({timeout, {s_group, write, [Group, Op]}});
                {error, Why} -> {error, Why}
            end;
        Why -> {error, Why}
    end.

kind(first) -> sderl_op;
kind(again) -> sderl_again.

-doc "Sends a request to the process of a group and awaits `{From, Answer}`, over its restarts.".
-spec request(term(), fun((first | again, reference()) -> term()), timeout()) ->
    {ok, term()} | {error, not_member | not_running | timeout}.
request(Group, Message, Timeout) ->
    case process(Group) of
        {ok, Pid} ->
            From = monitor(process, Pid, [{alias, explicit_unalias}]),
            Deadline = deadline(Timeout),
            Pid ! Message(first, From),
            Result = await(Group, Message, From, From, Pid, Deadline),
            _ = unalias(From),
            %% An answer that came while we gave up must not stay in the mailbox.
            receive {From, _} -> ok after 0 -> ok end,
            Result;
        Error -> Error
    end.

process(Group) ->
    try sderl_dir:own(Group) of
        {_, _, Pid, _, _} -> {ok, Pid};
        undefined -> {error, not_member}
    catch
        error:badarg -> {error, not_running}
    end.

await(Group, Message, From, Mon, Pid, Deadline) ->
    receive
        {From, Answer} ->
            true = demonitor(Mon, [flush]),
            {ok, Answer};
        {'DOWN', Mon, process, Pid, _} ->
            again(Group, Message, From, Pid, Deadline)
    after left(Deadline) ->
        true = demonitor(Mon, [flush]),
        {error, timeout}
    end.

again(Group, Message, From, Dead, Deadline) ->
    case process(Group) of
        {ok, Pid} when Pid =/= Dead ->
            Mon = monitor(process, Pid),
            Pid ! Message(again, From),
            await(Group, Message, From, Mon, Pid, Deadline);
        {ok, _} ->
            %% Its successor is on the way; an answer may be, too.
            Pause = min(5, left(Deadline)),
            receive
                {From, Answer} -> {ok, Answer}
            after Pause ->
                case left(Deadline) of
                    0 -> {error, timeout};
                    _ -> again(Group, Message, From, Dead, Deadline)
                end
            end;
        Error ->
            %% It left the group; the last answers were sent before.
            receive {From, Answer} -> {ok, Answer} after 0 -> Error end
    end.

deadline(infinity) -> infinity;
deadline(Ms) -> erlang:monotonic_time(millisecond) + Ms.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

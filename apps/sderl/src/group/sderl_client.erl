%% SPDX-License-Identifier: Apache-2.0
-module(sderl_client).
-moduledoc false.
%% A request to a group of this node from the caller's side (rule 19), and the answer to it.
%%
%% The answer comes to an alias that the caller makes once. The alias stays valid when the process
%% of the group dies and its successor takes over, and it identifies the operation: if the caller
%% asks again after such a death the operation is applied once. A caller that waits longer than
%% usual monitors the process that it asked. A monitor from the start would cost every operation,
%% and in a large group, where each operation takes long, looking now and then whether the process
%% lives would cost more than the operation. An operation without an answer in time has an unknown
%% outcome.

-export([write/2, read/2, request/3, await/2]).
-export([answer/2, answer_all/2]).

-include("../core/sderl_op.hrl").

-import(sderl_clock, [now_ms/0]).

%% How long a caller waits before it monitors its group's process.
-define(QUICK_MS, 25).
%% About how long it takes until a dead process' successor is in the directory.
-define(SUCCESSION_MS, 5).
%% About the longest time that `receive` accepts, in milliseconds.
-define(LONGEST, 1_000_000_000).

-doc """
Runs an operation in a group of this node. Exits `{timeout, {s_group, write, [Group, Op]}}` after
the configured time (10 s by default), or as soon as it is clear that this node will never know the
outcome: during the operation the node was cut off from its coordinator and went to another, or it
heard from another component that it is removed, or the home of a name that the operation changes
went without acknowledging that.
""".
-spec write(term(), sderl_core:op()) ->
    {ok, term()} | {error, not_member | not_running | connect_all}.
write(Group, Op) ->
    case sderl_dir:refuse() of
        undefined ->
            case request(Group, Op, write) of
                {ok, {no, not_member}} -> {error, not_member};
                {ok, unknown} -> exit({timeout, {s_group, write, [Group, Op]}});
                {error, timeout} -> exit({timeout, {s_group, write, [Group, Op]}});
                Result -> Result
            end;
        Why -> {error, Why}
    end.

-doc """
Reads a name through the group's log. If no answer comes nothing is lost, so that is an error value
and no exit.
""".
-spec read(term(), term()) -> {ok, pid() | undefined} | {error, atom()}.
read(Group, Name) ->
    case sderl_dir:refuse() of
        undefined ->
            case request(Group, #read{name = Name}, write) of
                {ok, {read, Found}} -> {ok, Found};
                {ok, {no, Why}} -> {error, Why};
                {ok, unknown} -> {error, timeout};
                {error, Why} -> {error, Why}
            end;
        Why -> {error, Why}
    end.

-doc """
Sends a request to the process of a group and awaits its answer, over its restarts: an operation
of the group, or what a function makes of the alias to answer to. `write`: the configured time.
""".
-spec request(term(), sderl_core:op() | fun((reference()) -> term()), write | timeout()) ->
    {ok, term()} | {error, not_member | not_running | timeout}.
request(Group, Request, Timeout) ->
    case process(Group) of
        Pid when is_pid(Pid) ->
            From = alias([reply]),
            Pid ! message(first, From, Request),
            receive
                {From, Answer} -> {ok, Answer}
            after ?QUICK_MS ->
                wait(Group, Request, From, Pid, deadline(Timeout))
            end;
        Why -> {error, Why}
    end.

-doc """
Waits until a group is ready on this node. The node need not be a member yet, as it may be entering
the group by seeds.
""".
-spec await(term(), timeout()) -> ok | {error, timeout | not_running | connect_all}.
await(Group, Timeout) ->
    case sderl_dir:refuse() of
        undefined -> await_until(Group, await_deadline(Timeout));
        Why -> {error, Why}
    end.

await_until(Group, Deadline) ->
    %% `receive` takes no longer time.
    Ms = min(left(Deadline), ?LONGEST),
    case request(Group, fun(From) -> {sderl_await, From, Ms} end, Ms) of
        {ok, Answer} -> Answer;
        {error, not_member} when Ms > 0 ->
            receive after min(50, Ms) -> await_until(Group, Deadline) end;
        {error, not_member} -> {error, timeout};
        {error, Why} -> {error, Why}
    end.

%% The process of the group keeps the deadline as a number.
await_deadline(infinity) -> deadline(?LONGEST);
await_deadline(Ms) -> deadline(Ms).

process(Group) ->
    try
        sderl_dir:process(Group)
    of
        none -> not_member;
        Pid -> Pid
    catch
        error:badarg -> not_running
    end.

message(_, From, Request) when is_function(Request) -> Request(From);
message(first, From, Op) -> {sderl_op, From, Op};
message(again, From, Op) -> {sderl_again, From, Op}.

wait(Group, Request, From, Pid, Deadline) ->
    Monitor = monitor(process, Pid),
    receive
        {From, Answer} ->
            true = demonitor(Monitor, [flush]),
            {ok, Answer};
        {'DOWN', Monitor, process, _, _} -> ask_successor(Group, Request, From, Pid, Deadline)
    after min(?LONGEST, left(Deadline)) ->
        true = demonitor(Monitor, [flush]),
        case left(Deadline) of
            0 -> stop(From, timeout);
            _ -> wait(Group, Request, From, Pid, Deadline)
        end
    end.

ask_successor(Group, Request, From, Dead, Deadline) ->
    case process(Group) of
        Dead ->
            receive
                {From, Answer} -> {ok, Answer}
            after min(?SUCCESSION_MS, left(Deadline)) ->
                case left(Deadline) of
                    0 -> stop(From, timeout);
                    _ -> ask_successor(Group, Request, From, Dead, Deadline)
                end
            end;
        Successor when is_pid(Successor) ->
            Successor ! message(again, From, Request),
            wait(Group, Request, From, Successor, Deadline);
        %% It left the group; the last answers were sent before.
        Why -> stop(From, Why)
    end.

%% An answer that came while we gave up counts, and none may stay in the mailbox.
stop(From, Why) ->
    _ = unalias(From),
    receive
        {From, Answer} -> {ok, Answer}
    after 0 -> {error, Why}
    end.

deadline(write) -> deadline(sderl_options:value(write_timeout_ms) - ?QUICK_MS);
deadline(infinity) -> infinity;
deadline(Ms) -> now_ms() + Ms.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - now_ms()).

-doc "Answers a caller, if one waits.".
-spec answer(From :: term(), term()) -> ok.
answer(From, Value) when is_reference(From) ->
    From ! {From, Value},
    ok;
answer(_, _) -> ok.

-doc "Answers callers, and counts the answers for monitoring.".
-spec answer_all([{From :: term(), term()}], sderl_traffic:tally()) -> ok.
answer_all(List, Tally) -> answer_all(List, 0, 0, 0, Tally).

answer_all([{From, Value} | Rest], Yes, Gone, No, Tally) when is_reference(From) ->
    From ! {From, Value},
    case Value of
        yes -> answer_all(Rest, Yes + 1, Gone, No, Tally);
        ok -> answer_all(Rest, Yes, Gone + 1, No, Tally);
        {no, _} -> answer_all(Rest, Yes, Gone, No + 1, Tally);
        _ -> answer_all(Rest, Yes, Gone, No, Tally)
    end;
answer_all([_ | Rest], Yes, Gone, No, Tally) -> answer_all(Rest, Yes, Gone, No, Tally);
answer_all([], Yes, Gone, No, Tally) -> sderl_traffic:answered(Tally, Yes, Gone, No).

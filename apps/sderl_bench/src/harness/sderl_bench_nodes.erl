%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_nodes).
-moduledoc """
Starts the nodes of a run, ends them after it, and calls functions on them. A call must succeed on
all nodes: it gives what the functions return, or the first failure as a term for
`sderl_bench_reason:text/1`. A function that returns `{error, Reason}` has failed, as one that
raised an exception or did not answer.
""".

-export([with/4, bare/3, cpu_ms/1, on/5, on/6, all/5, all/6, each/5]).

-type failed() :: {error, {Function :: atom(), node(), Why :: term()}}.

-define(CALL_MS, 120_000).

-doc """
Starts so many nodes with the library, in groups as `sderl_fleet:start/1` takes them, calls `Fun`
and ends them.
""".
-spec with(pos_integer(), Groups :: list(), Label :: unicode:chardata(),
           fun((Fleet :: pid(), [node()]) -> Result)) ->
    Result | {error, term()}.
with(Count, Groups, Label, Fun) ->
    started(Count, #{s_groups => Groups}, [sderl], [Label, ": starting nodes"], Fun).

-doc """
The same with nodes that run only OTP's own applications, to measure what the start of a named
virtual machine costs without the library.
""".
-spec bare(pos_integer(), Label :: unicode:chardata(),
           fun((Fleet :: pid(), [node()]) -> Result)) ->
    Result | {error, term()}.
bare(Count, Label, Fun) -> started(Count, #{}, [], [Label, ": starting bare nodes"], Fun).

started(Count, Plan, Apps, Label, Fun) ->
    maybe
        ok ?= sderl_fleet:fits(Count),
        {ok, Fleet} ?= sderl_fleet:start(Plan#{
            families => [#{name => n, count => Count, apps => Apps}],
            progress => sderl_progress:reporter(Label)
        }),
        try
            Fun(Fleet, sderl_fleet:nodes(Fleet))
        after
            sderl_fleet:stop(Fleet)
        end
    end.

-doc """
The processor time of each node since its process began, in user mode and in the system, as the
operating system counts it; without nodes for which it is not known.
""".
-spec cpu_ms(Fleet :: pid()) -> [non_neg_integer()].
cpu_ms(Fleet) ->
    [Own || #{os_pid := OsPid} <- maps:values(sderl_fleet:info(Fleet)), is_integer(OsPid),
            {Own, _} <- [sderl_bench_proc:cpu_ms(integer_to_list(OsPid))]].

-doc "Calls a function on one node.".
-spec on(Fleet :: pid(), node(), module(), Function :: atom(), [term()]) -> {ok, term()} | failed().
on(Fleet, Node, M, F, Args) -> on(Fleet, Node, M, F, Args, ?CALL_MS).

-doc "The same within so many milliseconds.".
-spec on(Fleet :: pid(), node(), module(), Function :: atom(), [term()], timeout()) ->
    {ok, term()} | failed().
on(Fleet, Node, M, F, Args, Ms) ->
    maybe
        {ok, [Value]} ?= all(Fleet, [Node], M, F, Args, Ms),
        {ok, Value}
    end.

-doc "Calls it on all of the nodes at once, results in their order.".
-spec all(Fleet :: pid(), [node()], module(), Function :: atom(), [term()]) ->
    {ok, [term()]} | failed().
all(Fleet, Nodes, M, F, Args) -> all(Fleet, Nodes, M, F, Args, ?CALL_MS).

-doc "The same within so many milliseconds.".
-spec all(Fleet :: pid(), [node()], module(), Function :: atom(), [term()], timeout()) ->
    {ok, [term()]} | failed().
all(Fleet, Nodes, M, F, Args, Ms) -> values(F, sderl_fleet:multicall(Fleet, Nodes, M, F, Args, Ms)).

-doc "The same with arguments of its own for each node.".
-spec each(Fleet :: pid(), [{node(), Args :: [term()]}], module(), Function :: atom(), timeout()) ->
    {ok, [term()]} | failed().
each(Fleet, Calls, M, F, Ms) ->
    values(F, sderl_fleet_task:at_once(Calls, fun(Node, Args) ->
        [{_, Answer}] = sderl_fleet:multicall(Fleet, [Node], M, F, Args, Ms),
        Answer
    end)).

values(Function, Answers) ->
    case [{Node, why(Answer)} || {Node, Answer} <- Answers, not is_well(Answer)] of
        [] -> {ok, [Value || {_, {ok, Value}} <- Answers]};
        [{Node, Why} | _] -> {error, {Function, Node, Why}}
    end.

is_well({ok, {error, _}}) -> false;
is_well({ok, _}) -> true;
is_well({error, _}) -> false.

why({ok, {error, Reason}}) -> Reason;
why(Answer) -> Answer.

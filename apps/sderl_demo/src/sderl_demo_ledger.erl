%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_ledger).
-moduledoc """
Decides after the run which calls of the demo were lost.

A client cannot know why a call failed, so it writes down what it saw, and whoever kills servers
writes down their pids. A client's *request* to a name is
tried until it is answered, unless an attempt fails after it has reached the server.
What a client writes down:

| entry | seen | the request then |
|---|---|---|
| `{interrupted, Who}` | the server was killed while the call was under way | ends |
| `{stale, Who}` | the name led to a process that was dead already | is tried again |
| `{failed, Reason}` | any other failure: a time-out, a lost link, a wrong answer | ends |
| `{unanswered, Server}` | 10 s of attempts found no server that answers | ends |

A call is *in flight at a kill* when it was interrupted and that very pid was killed on purpose. A
stale entry is no loss when that pid was killed on purpose: the request went on and was answered, or
it is written down once more as unanswered. Everything else is lost: `failed` and `unanswered`
always, `interrupted` and `stale` for a pid that nobody killed.

`Who` is the pid, or the server's name where the caller does not learn the pid: in a routed call.
Then it is enough that a process of that name was killed on purpose.
""".

-export([judge/2]).
-export_type([entry/0, entries/0, verdict/0]).

-doc "What a client saw go wrong.".
-type entry() ::
    {interrupted, pid() | sderl_demo_layout:server()}
    | {stale, pid() | sderl_demo_layout:server()}
    | {failed, term()}
    | {unanswered, sderl_demo_layout:server()}.

-doc "How often each entry was written down.".
-type entries() :: #{entry() => pos_integer()}.

-doc """
`lost` calls with their `reasons`, calls `in_flight` at a kill, and attempts that were
`retried` because the name led to a server that had just been killed.
""".
-type verdict() :: #{
    lost := non_neg_integer(),
    reasons := [{entry(), pos_integer()}],
    in_flight := non_neg_integer(),
    retried := non_neg_integer()
}.

-doc "Sorts the clients' entries by the list of pids that were killed, and of their names.".
-spec judge(entries(), [pid() | sderl_demo_layout:server()]) -> verdict().
judge(Entries, Killed) ->
    Sorted = maps:groups_from_list(
        fun({Entry, _}) -> kind(Entry, Killed) end, maps:to_list(Entries)
    ),
    Sum = fun(Kind) -> lists:sum([Count || {_, Count} <- maps:get(Kind, Sorted, [])]) end,
    #{
        lost => Sum(lost),
        reasons => maps:get(lost, Sorted, []),
        in_flight => Sum(in_flight),
        retried => Sum(retried)
    }.

kind({interrupted, Who}, Killed) -> was_killed(Who, Killed, in_flight);
kind({stale, Who}, Killed) -> was_killed(Who, Killed, retried);
kind({failed, _}, _Killed) -> lost;
kind({unanswered, _}, _Killed) -> lost.

was_killed(Who, Killed, Kind) ->
    case lists:member(Who, Killed) of
        true -> Kind;
        false -> lost
    end.

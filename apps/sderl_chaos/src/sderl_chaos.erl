%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos).
-moduledoc """
Kills processes, names, nodes and links of a running cluster on purpose, and measures when each is
back. The papers call this "chaos monkeys".

```erlang
{ok, Chaos} = sderl_chaos:start(#{
    nodes => nodes(),
    targets => [
        #{kind => process, class => session, weight => 3, find => {my_sessions, list, []}},
        #{kind => name, class => queue, weight => 1, group => workers, names => [queue]}
    ],
    every_ms => 5000,
    seed => 42
}),
...
{ok, Kills} = sderl_chaos:stop(Chaos).
```

An agent on each node does the kills and measures on its own node's clock until the thing is back.
The same seed and the same things on the nodes give the same plan. The guide is `docs/chaos.md`; the
command is `bin/sderl chaos`.

## Options

| key | value | default |
|---|---|---|
| `nodes` | the nodes in question | |
| `targets` | what may be killed, see below | |
| `every_ms` | scope `cluster`: one kill each period; scope `node`: one on each node | |
| `per_s` | instead of `every_ms`: kills a second in all | |
| `scope` | `cluster`: one draw among all things of all nodes; `node`: each node on its own | `cluster` |
| `window` | `{FromMs, ToMs}` from the start; the first round is one period after `FromMs`, the last one at `ToMs` at the latest, and nothing is killed later than a second after that | `{0, infinity}` |
| `seed` | any term | `1` |
| `dry_run` | everything but the kills | `false` |
| `limits` | see below | `#{}` |
| `call` | `fun(Node, Module, Function, Args)`: how to reach a node, for clusters that this node is not linked to | `erpc:call/5` |
| `allow_halt` | whether nodes may be killed that no fleet restarts, and the top supervisors of applications | `false` |
| `owner` | the process whose end ends the service | the caller |
| `report` | gets `{sderl_chaos, Pid, {kill, Kill} \\| {back, Kill} \\| over \\| sure}` (`sure`: nothing is `unsure` any more, see `t:status/0`) | none |
| `lease_ms` | an agent that hears nothing for so long ends | 10,000 |

A target is a map with `kind`, and for all kinds `weight` (a number, default 1: how often it is
drawn, compared with the others), `class` (a term for the log), `nodes` (some of the option `nodes`)
and `await` (default `true`; with `false` the thing is not expected back, so it counts for no limit
and is not waited for):

| kind | keys | a thing is | back when |
|---|---|---|---|
| `process` | `find => {M, F, A}`, which gives `[{Key, Pid}]` on a node | a pair of which the process is on that node | `find` gives another live process for the key |
| `process` | `module => M` | a process whose first function is of that module (`init` of a `gen_server`) | there is another one, under the same local name if it had one |
| `process` | `supervisor => Name` | a child of the supervisor with that local name | it has another live child of that id |
| `name` | `names => [Name] \\| all`, `group => local \\| global \\| Group` (an s_group; `{s_group, Group}` for one that is called `local` or `global`) | the process of the name, on its own node | the name resolves on that node to another live process |
| `node` | `fleet => Pid` of `m:sderl_fleet`, `restart_ms`; or no fleet: `erlang:halt/2`, with `allow_halt`. `ready => {M, F, A}` | a node, but not the one of the service | it answers a call in its next life, and `ready` gives `true` there (on the service's clock). The service restarts it, as long as it runs |
| `link` | | a connection between two of the target's nodes, but not of the service's | the two are connected again |

`limits`:

| key | value | default |
|---|---|---|
| `at_once` | most things that are not back yet; a round that would exceed it is left out. `infinity` for no limit | 1; in scope `node` the number of nodes |
| `kills` | most kills in all | `infinity` |
| `never` | names (local, `global` or of a group of the node) whose processes are not killed, and keys | `[]` |
| `never_nodes` | nodes, some of the option `nodes`, on which nothing is killed | `[]` |
| `library` | whether the processes of the library's own application may be killed | `false` |

Never killed are the processes of kernel, stdlib, sasl, those that `init` has started, the
application masters and, without `allow_halt`, the first process of each application (its top
supervisor): with that of a permanent application the node ends.
""".

-export([start/1, stop/1, stop/2, log/1, status/1, text/1]).
-export_type([options/0, target/0, kill/0, status/0]).

-type options() :: #{
    nodes := [node()],
    targets := [target()],
    every_ms => pos_integer(),
    per_s => number(),
    scope => cluster | node,
    window => {FromMs :: number(), ToMs :: number() | infinity},
    seed => term(),
    dry_run => boolean(),
    limits => #{
        at_once => pos_integer() | infinity,
        kills => pos_integer() | infinity,
        never => [term()],
        never_nodes => [node()],
        library => boolean()
    },
    call => sderl_chaos_reach:call(),
    allow_halt => boolean(),
    owner => pid(),
    report => pid(),
    lease_ms => pos_integer()
}.

-doc "See the tables above.".
-type target() ::
    #{kind := process | name | node | link, weight => number(), class => term(), nodes => [node()],
      await => boolean(), atom() => term()}.

-doc """
One kill. `number` increases; kills that missed have no entry. `round`: the round of the plan, which
is the same for the same seed. `at_ms`: from the start of the service; `system_us`: the time of day
in microseconds, on the clock of `node` (for a whole node: the service's). `pid`: the process, or
the node that was killed, or that at the other end of the link. `back_us`: microseconds until it was
back, `undefined` as long as it is not, if it is not waited for (`awaited` is `false`), and if its
node or the agent there went before.
""".
-type kill() :: #{
    number := pos_integer(),
    round := pos_integer(),
    at_ms := non_neg_integer(),
    system_us := integer(),
    kind := process | name | node | link,
    class := term(),
    key := term(),
    node := node(),
    pid := pid() | node(),
    awaited := boolean(),
    back_us := non_neg_integer() | undefined,
    dry := boolean()
}.

-doc """
`next_ms`, `now_ms`: from the start. `skipped`: rounds, or draws of them, without a kill: `at_once`
(the limit), `nothing_there`, `missed` (the thing ended by itself just before), `unanswered` (the
order may have been carried out; it counts for `kills`, but is not in the log), `late` (the nodes
answered too slowly, or the service was stopped meanwhile). `not_back` also counts the `unsure`:
unanswered ones of which the node has not said yet that they are back, or were not carried out.
`silent`: nodes that do not answer. `problems`: exceptions of targets' functions and failures of
nodes, the last of each node and class.
""".
-type status() :: #{
    next_ms := non_neg_integer() | over,
    now_ms := non_neg_integer(),
    rounds := non_neg_integer(),
    kills := non_neg_integer(),
    not_back := non_neg_integer(),
    unsure := non_neg_integer(),
    skipped := #{at_once | nothing_there | missed | unanswered | late => non_neg_integer()},
    silent := [node()],
    problems := [{node(), Class :: term(), Why :: term()}]
}.

-doc """
Starts the service and its agents. It ends with the calling process, and so do the agents.

Errors, with no agent left behind:
- `{bad_option, Path, Term, Expected}`: `Path` leads to `Term`, `Expected` says what belongs there
- `{halt_not_allowed, Classes}`: nodes would be halted without a fleet, and `allow_halt` is not
  `true`
- `{not_reached, [{Node, Reason}]}`: no agent could be started there

`text/1` makes a sentence of each.
""".
-spec start(options()) -> {ok, pid()} | {error, term()}.
start(Options) ->
    maybe
        {ok, Settings} ?= sderl_chaos_options:check(Options),
        sderl_chaos_service:start(Settings)
    end.

-doc "As `stop/2` without waiting.".
-spec stop(pid()) -> {ok, [kill()]}.
stop(Service) -> stop(Service, 0).

-doc """
Kills nothing more from now on, not even in a round that is under way, waits at most `WaitMs` until
all is back, ends the agents and the service, and returns the log. Exits with `{noproc, _}` when it
has ended.
""".
-spec stop(pid(), WaitMs :: non_neg_integer()) -> {ok, [kill()]}.
stop(Service, WaitMs) -> sderl_chaos_service:stop(Service, WaitMs).

-doc """
The kills so far, in their order. A return is in it a second later at most (a tenth of `lease_ms`).
""".
-spec log(pid()) -> [kill()].
log(Service) -> sderl_chaos_service:log(Service).

-doc "The state of the service: counts, limits, problems.".
-spec status(pid()) -> status().
status(Service) -> sderl_chaos_service:status(Service).

-doc "An error of `start/1` as a sentence for people.".
-spec text(term()) -> unicode:chardata().
text(Reason) -> sderl_chaos_options:text(Reason).

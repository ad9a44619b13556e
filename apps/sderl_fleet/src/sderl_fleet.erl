%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet).
-moduledoc """
Starts sets of real Erlang nodes from a plan, calls them, breaks them on purpose, and leaves nothing
of them behind.

```erlang
{ok, Fleet} = sderl_fleet:start(#{families => [#{name => worker, count => 3}]}),
[W1, W2, _] = sderl_fleet:nodes(Fleet),                   %% 'worker1-k7f2@127.0.0.1', ...
true = sderl_fleet:call(Fleet, W1, net_kernel, connect_node, [W2]),
ok = sderl_fleet:kill(Fleet, W2),                         %% kill -9
ok = sderl_fleet:await(fun() -> [] =:= sderl_fleet:call(Fleet, W1, erlang, nodes, []) end, 10_000),
{ok, W2} = sderl_fleet:restart(Fleet, W2),
ok = sderl_fleet:stop(Fleet).
```

The calling virtual machine need not be distributed and is not connected to the nodes:
calls go over a control channel of their own, so they also reach a node that is cut off.

A fleet lives as long as the process that started it. When that process ends in any way,
or its virtual machine does, every node ends and all files are removed. Note that in Common
Test `init_per_suite` and the like run in processes that end before the test case begins:
start a fleet in the test case, or name another `owner`.

## The plan

The plan is a map. Only the key `families` is required.

| key | value | default |
|---|---|---|
| `families` | list of families | |
| `s_groups` | `[{Group, normal \| hidden, [NodeRef]}]`, put into `{sderl, [{s_groups, ...}]}` of each node named | none |
| `s_groups_known` | `own`: a node is told its own groups; `all`: it is told all groups | `own` |
| `tag` | part of every node name that keeps fleets apart; `""` for none | 4 random characters |
| `host` | IPv4 address the nodes are named after and listen on | `"127.0.0.1"` |
| `parallel` | nodes started at a time | 8 |
| `timeout` | milliseconds a node may take to start, with its applications | 60,000 |
| `driver` | `{Module, Options}`, see `m:sderl_fleet_driver` | `{sderl_fleet_local, #{}}` |
| `progress` | `fun((Done, Total) -> _)`, called after each node | |
| `owner` | the process whose end ends the fleet | the caller |

A family gives `count` nodes `name1-TAG@HOST`, `name2-TAG@HOST`, ...

| key | value | default |
|---|---|---|
| `name`, `count` | atom, string or binary; how many | |
| `hidden` | whether its connections are hidden ones | `false` |
| `connect_all` | `true`: stock nodes; `false`: `-connect_all false` | `false` |
| `args` | more emulator arguments, each a string; a later one wins | `[]` |
| `env` | `[{App, Key, Value}]`, set before any application starts | `[]` |
| `apps` | applications to start after boot, in order | `[]` |
| `paths` | code path | the caller's, without OTP's own |
| `host` | instead of the plan's | |
| `wrap` | command and arguments to run a node under, such as `["ip", "netns", "exec", "ns1"]`; it must become the node (`exec`) | `[]` |

Values of `env` may be any term, but those with pids, funs and other terms without a text
form are set when the node has booted, too late for `kernel`.

A `NodeRef` is `{Family, Index}`, `{Family, [Index]}`, `{Family, all}` or a whole node name.

A wrong plan gives `{error, {bad_plan, Path, Term, Expected}}`: `Path` leads to `Term`, for instance
`[families, 2, count]` (positions from 1), and `Expected` says what belongs there.

## Nodes

A node is `running`, `suspended` or `down`. Operations on one node run one after the
other, in the order asked; those on different nodes do not wait for each other. Functions on a
node that never was in the fleet give `{error, {unknown_node, Node}}`, calls raise it.
""".

-export([
    start/1,
    start_nodes/2,
    stop/1,
    stop_node/2,
    kill/2,
    restart/2,
    suspend/2,
    resume/2,
    call/5,
    call/6,
    multicall/6,
    nodes/1,
    info/1,
    connection_info/1,
    fits/1,
    await/2
]).

-export_type([plan/0, family/0, node_ref/0, added/0, node_spec/0, bad_plan/0, node_info/0]).

-doc "See the tables above.".
-type plan() :: sderl_fleet_plan:plan().
-doc "Nodes of one kind in a plan.".
-type family() :: sderl_fleet_plan:family().
-doc "One or more nodes of a plan, as a group lists them.".
-type node_ref() :: sderl_fleet_plan:node_ref().
-doc "What `start_nodes/2` takes.".
-type added() :: sderl_fleet_plan:added().
-doc "All there is to know to start one node; for drivers.".
-type node_spec() :: sderl_fleet_plan:node_spec().
-doc "What is wrong with a plan.".
-type bad_plan() :: sderl_fleet_plan:bad_plan().
-doc """
One node. `started` is the system time in milliseconds at which it last came up,
`memory_kib` its resident memory (`undefined` where the system does not tell), `args` the
arguments of the emulator (of a node that is down: those of its family).
""".
-type node_info() :: #{
    status := running | suspended | down,
    os_pid := non_neg_integer() | undefined,
    family := atom() | string() | binary(),
    index := pos_integer(),
    hidden := boolean(),
    args := [string()],
    memory_kib := non_neg_integer() | undefined,
    started := integer() | undefined
}.

-doc """
Starts the nodes of a plan and returns when the applications of all run.

Errors, with nothing left running:
- `{bad_plan, Path, Term, Expected}`
- `{start_failed, [{Node, Reason}]}` with `Reason` one of `timeout`,
  `{boot_failed, Why, LastWords}`, `{app_failed, App, Why}`, `{unknown_host, Host}`,
  `{file, Path, Why}`, `{crashed, Why}`
- `{no_program, Name}`, `{wrap, Wrap, Why}`, `{epmd, Why}`, `{mkdir, Dir, Why}`,
  `{file, Path, Why}`: the place could not be prepared
- `{fleet_ended, Why}`: the owner ended, or the fleet was stopped
""".
-spec start(plan()) -> {ok, Fleet :: pid()} | {error, bad_plan() | term()}.
start(Plan) ->
    sderl_fleet_server:start(Plan).

-doc """
Starts more nodes: all of them, or none.

An element is a node of this fleet that is down (it comes back under the same name and with
the same arguments), or a family's map, in which `count` may be left out (1), or replaced by
`index` for one certain node. Settings that the map lacks are those of the family of that
name in the plan. Without `index` the numbers go on after the highest so far.

```erlang
{ok, ['worker4-k7f2@127.0.0.1']} = sderl_fleet:start_nodes(Fleet, [#{name => worker}]).
```

Gives the names in the order of the elements. Errors: `bad_plan` with a path such as
`[nodes, 1, index]`, `{start_failed, ...}` as for `start/1`, `{already_running, Node}`.
The added nodes are in no group of the plan: say so in `env`, or let them join. A host that
no node of the plan had is refused.
""".
-spec start_nodes(Fleet :: pid(), [added()]) -> {ok, [node()]} | {error, bad_plan() | term()}.
start_nodes(Fleet, Added) ->
    sderl_fleet_server:start_nodes(Fleet, Added).

-doc """
Kills all nodes at once, ends the fleet and removes its files. `ok` also when the fleet has ended
already.
""".
-spec stop(Fleet :: pid()) -> ok.
stop(Fleet) ->
    sderl_fleet_server:stop(Fleet).

-doc """
Ends one node in order (`init:stop/0`), by force after 10 seconds. `ok` also when it is down.
A suspended node is resumed to end.
""".
-spec stop_node(Fleet :: pid(), node()) -> ok | {error, {unknown_node, node()}}.
stop_node(Fleet, Node) ->
    sderl_fleet_server:operate(Fleet, Node, stop).

-doc "`kill -9`. Returns when the operating-system process is gone; `ok` also when it is down.".
-spec kill(Fleet :: pid(), node()) -> ok | {error, {unknown_node, node()}}.
kill(Fleet, Node) ->
    sderl_fleet_server:operate(Fleet, Node, kill).

-doc """
Starts a node again under the same name and with the same arguments. A node that is up is ended in
order first. Errors as for `start_nodes/2`; the node then is down.
""".
-spec restart(Fleet :: pid(), node()) -> {ok, node()} | {error, term()}.
restart(Fleet, Node) ->
    sderl_fleet_server:operate(Fleet, Node, restart).

-doc """
SIGSTOP: the node stands still, keeps its connections and answers nothing, as a paused
machine does. Returns when it stands still. `{error, {down, Node}}` when it is down.
""".
-spec suspend(Fleet :: pid(), node()) -> ok | {error, {down | unknown_node, node()} | term()}.
suspend(Fleet, Node) ->
    sderl_fleet_server:operate(Fleet, Node, suspend).

-doc "SIGCONT: a suspended node goes on. `{error, {down, Node}}` when it is down.".
-spec resume(Fleet :: pid(), node()) -> ok | {error, {down | unknown_node, node()} | term()}.
resume(Fleet, Node) ->
    sderl_fleet_server:operate(Fleet, Node, resume).

-doc "As `call/6` with 5 seconds.".
-spec call(Fleet :: pid(), node(), module(), Function :: atom(), Args :: [term()]) -> term().
call(Fleet, Node, M, F, A) ->
    call(Fleet, Node, M, F, A, 5000).

-doc """
Applies a function on a node over its control channel, whether or not the node is connected
to anything, and gives the result. `Timeout` in milliseconds.

Raises as `peer:call/5`: what the function raised, or `exit` with `{timeout, _}`, with
`{noproc, _}` when the node is down and with another reason when it ends meanwhile. Calls run
at the same time, also several to one node. The function runs in a process of its own that
ends when it returns; what it prints goes to the node's file.
""".
-spec call(Fleet :: pid(), node(), module(), Function :: atom(), Args :: [term()], timeout()) ->
    term().
call(Fleet, Node, M, F, A, Timeout) ->
    sderl_fleet_call:call(Fleet, Node, M, F, A, Timeout).

-doc """
`call/6` on many nodes at the same time; the results in the order of `Nodes`.

`Reason` is `timeout`, `down`, `unknown_node`, or `{error | exit | throw, What}` as raised.
""".
-spec multicall(Fleet :: pid(), [node()], module(), Function :: atom(), Args, timeout()) ->
    [{node(), {ok, Result :: term()} | {error, Reason :: term()}}]
when
    Args :: [term()].
multicall(Fleet, Nodes, M, F, A, Timeout) ->
    sderl_fleet_call:multicall(Fleet, Nodes, M, F, A, Timeout).

-doc """
The nodes that run (those suspended or down left out), in the order of the plan, added ones
behind.
""".
-spec nodes(Fleet :: pid()) -> [node()].
nodes(Fleet) ->
    sderl_fleet_server:nodes(Fleet).

-doc "All nodes of the fleet, also those that are down.".
-spec info(Fleet :: pid()) -> #{node() => node_info()}.
info(Fleet) ->
    sderl_fleet_server:info(Fleet).

-doc """
The settings needed to reach the nodes from outside. With the local driver: `home` (the nodes'
`HOME`, with the cookie file), `log_dir`, `epmd_port`, `cookie`, and `tag` and `host`. To attach a
shell:

```sh
HOME=<home> ERL_EPMD_PORT=<epmd_port> erl -hidden -name me@127.0.0.1 -remsh <node>
```
""".
-spec connection_info(Fleet :: pid()) -> sderl_fleet_driver:connection_info().
connection_info(Fleet) ->
    sderl_fleet_server:connection_info(Fleet).

-doc """
Whether this machine has the memory for `Count` more small nodes of 50 MB each. `ok` where the
system does not tell.
""".
-spec fits(Count :: non_neg_integer()) ->
    ok | {error, {memory, #{needed_mib := pos_integer(), available_mib := non_neg_integer()}}}.
fits(Count) ->
    sderl_fleet_proc:fits(Count).

-doc """
Waits until `Fun` gives `true` or `ok`; anything else, also an exception
(`{Class, Reason, Stack}`), means not yet. Asks again at growing intervals of 1 to 50 ms, at
least once. After `Timeout` milliseconds it gives up; the error has the last value of `Fun`.
""".
-spec await(Fun :: fun(() -> term()), Timeout :: timeout()) ->
    ok | {error, {timeout, Last :: term()}}.
await(Fun, Timeout) ->
    sderl_fleet_call:await(Fun, Timeout).

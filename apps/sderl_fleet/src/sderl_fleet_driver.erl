%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_driver).
-moduledoc """
The behaviour of a place where a fleet's nodes run.

`m:sderl_fleet` decides what runs when; a driver starts and ends single nodes.
`sderl_fleet_local` runs them on this machine. A plan names its driver with
`driver => {Module, Options}`.

`c:open/2` and `c:close/1` are called in the fleet's process, everything else in short-lived
processes, many at once: a driver's state is data that does not change, with the pids of
whatever does.

A driver must keep this promise: when the fleet's process ends in any way, or the whole virtual
machine does, all that the driver started ends too. A driver links its own processes to the
process that calls `c:open/2`; should one of them end, the fleet ends.
""".

-export_type([state/0, handle/0, connection_info/0]).

-doc "The data that `c:open/2` made, the same in every later call.".
-type state() :: term().

-doc "One life of one node.".
-type handle() :: term().

-doc "See `sderl_fleet:connection_info/1`, which adds `tag` and `host`.".
-type connection_info() :: #{
    tag => string(),
    host => string(),
    home => file:filename(),
    log_dir => file:filename(),
    epmd_port => inet:port_number(),
    cookie => atom(),
    atom() => term()
}.

-doc """
Prepares the place. `places` are the addresses that nodes of the plan have, for each command
prefix (`wrap`) they are started with. An error in the options is best `{bad_plan, ...}` with
a path that begins with `[driver, 2]`.
""".
-callback open(Info, Options :: map()) -> {ok, state()} | {error, Reason :: term()} when
    Info :: #{tag := string(), places := [{Wrap :: [string()], Hosts :: [string()]}]}.

-doc "Kills every node at once and removes all files.".
-callback close(state()) -> ok.

-doc "The settings that a person or program needs to reach the nodes.".
-callback connection_info(state()) -> connection_info().

-doc """
Starts one node and returns when its applications run. When it fails, or takes longer than
`timeout` of the specification (milliseconds), nothing of the node is left.
""".
-callback start_node(sderl_fleet:node_spec(), state()) ->
    {ok, handle()} | {error, Reason :: term()}.

-doc "A local process that ends when the node ends, and not before.".
-callback control(handle()) -> pid().

-doc "Orderly end (`init:stop/0`), by force after `Timeout` milliseconds.".
-callback stop_node(handle(), Timeout :: non_neg_integer(), state()) -> ok.

-doc "Immediate end, returns when the operating-system process is gone.".
-callback kill_node(handle(), state()) -> ok.

-doc "Stops the node's process (SIGSTOP), returns when it stands still.".
-callback suspend_node(handle(), state()) -> ok | {error, Reason :: term()}.

-doc "Lets a suspended node go on.".
-callback resume_node(handle(), state()) -> ok | {error, Reason :: term()}.

-doc "Applies a function on the node over the control channel; raises as `peer:call/5`.".
-callback call(handle(), module(), atom(), [term()], timeout()) -> term().

-doc "The operating-system process of the node, where it has one.".
-callback os_pid(handle()) -> non_neg_integer() | undefined.

-doc "Resident memory in KiB.".
-callback memory_kib(handle()) -> non_neg_integer() | undefined.

-doc "The arguments of the emulator.".
-callback arguments(handle()) -> [string()].

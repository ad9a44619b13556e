%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_registry).
-moduledoc """
A registry of names as `bin/sderl bench faults` breaks it: how its nodes are started, what a client
calls, and what a node says of the others. All but `family/1`, `linked/2` and `ready/2` run on the
nodes. One namespace holds all nodes.
""".

-export([module/1, names/0]).
-export_type([params/0, outcome/0, view/0]).

-doc """
The options that decide how nodes are started. A time that is not there is the registry's own
default.
""".
-type params() :: #{tick_ms => pos_integer(), set_aside_ms => pos_integer(), atom() => term()}.

-doc "`no`: it was not done. After an exception it may have been done or not.".
-type outcome() :: yes | {no, term()}.

-doc """
`{steady, What}`: for this node the component is exactly the nodes asked for, and nothing is being
put right; when all are steady and `What` is the same on all, they agree. Anything else says what is
missing.
""".
-type view() :: {steady, term()} | term().

-doc "Keys of a family of a `m:sderl_fleet` plan.".
-callback family(params()) -> #{atom() => term()}.

-doc """
The group that a plan's `s_groups` are to have, with all nodes in it; `none` where the registry
knows no groups.
""".
-callback group() -> atom().

-doc """
Called again and again from a fault's end until all agree: restores links that the registry does
not restore itself. In production a discovery library would do it.
""".
-callback linked(Fleet :: pid(), [node()]) -> ok.

-doc "Called before each repetition, when all nodes are linked: returns when clients may begin.".
-callback ready(Fleet :: pid(), [node()]) -> ok | {error, term()}.

-doc "The node that coordinates the others; `none` where all are equal.".
-callback coordinator() -> node() | none.

-callback register(Name :: term(), pid()) -> outcome().

-doc "Also `yes` when there was no such name.".
-callback unregister(Name :: term()) -> outcome().

-doc "The process of a name, as this node knows it.".
-callback find(Name :: term()) -> pid() | undefined.

-doc "All that this node knows.".
-callback names() -> [{Name :: term(), pid()}].

-callback view(Live :: [node()]) -> view().

-doc "The module of a registry by the name that users type.".
-spec module(string()) -> {ok, module()} | error.
module("s_group") -> {ok, sderl_bench_faults_s_group};
module("global") -> {ok, sderl_bench_faults_global};
module(_) -> error.

-doc "The names that users type.".
-spec names() -> [string()].
names() -> ["s_group", "global"].

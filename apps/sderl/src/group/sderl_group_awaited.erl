%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_awaited).
-moduledoc """
Who awaits a group of this node (`s_group:await/2`).

A group is ready when this node counts in a component, every member has been tried once, and all
that answer are in it. A linked member that says nothing (no application there) gets three ticks.
""".

-export([new/0, await/3, tick/2, answers/2]).
-export_type([awaited/0]).
-import(sderl_clock, [now_ms/0]).

-define(QUIET_TICKS, 3).

-record(awaited, {
    waiting = [] :: [{term(), Until :: integer()}],
    quiet = {0, []} :: {non_neg_integer(), [node()]}    % ticks for which these have said nothing
}).
-opaque awaited() :: #awaited{}.

-spec new() -> awaited().
new() -> #awaited{}.

-doc "A client waits, for so many milliseconds from now.".
-spec await(From :: term(), Ms :: integer(), awaited()) -> awaited().
await(From, Ms, #awaited{waiting = Waiting} = A) ->
    A#awaited{waiting = [{From, now_ms() + Ms} | Waiting]}.

-doc "Once a tick.".
-spec tick(sderl_core:state(), awaited()) -> awaited().
tick(Core, #awaited{quiet = {Ticks, Were}} = A) ->
    case silent(Core) of
        Were -> A#awaited{quiet = {Ticks + 1, Were}};
        Are -> A#awaited{quiet = {0, Are}}
    end.

-doc "The clients that need not wait any longer, each with its answer.".
-spec answers(sderl_core:state(), awaited()) ->
    {[{From :: term(), ok | {error, timeout}}], awaited()}.
answers(_, #awaited{waiting = []} = A) -> {[], A};
answers(Core, #awaited{waiting = Waiting, quiet = {Ticks, Quiet}} = A) ->
    IsReady = sderl_core:settled(Core) andalso sderl_connector:tried(sderl_core:members(Core))
        andalso silent(Core) -- [N || N <- Quiet, Ticks >= ?QUIET_TICKS] =:= [],
    Now = now_ms(),
    {Done, Rest} = lists:partition(fun({_, Until}) -> IsReady orelse Now >= Until end, Waiting),
    Answer = case IsReady of
        true -> ok;
        false -> {error, timeout}
    end,
    {[{From, Answer} || {From, _} <- Done], A#awaited{waiting = Rest}}.

%% Asks the runtime, because the core may not have heard yet of a new link.
silent(Core) ->
    Heard = [node() | sderl_core:peers(Core)],
    Linked = nodes(connected),
    [N || N <- sderl_core:members(Core), not lists:member(N, Heard), lists:member(N, Linked)].

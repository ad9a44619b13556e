%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_events).
-moduledoc "The events of a simulated world (`m:sderl_ops_world`), and its random numbers.".

-include("sderl_ops_world.hrl").

-export([at/3, later/3, roll/2, pick/2]).

-doc "An event at a time.".
-spec at(Ms :: integer(), Event :: term(), #world{}) -> #world{}.
at(Ms, Event, #world{queue = Queue, number = Number} = World) ->
    World#world{queue = gb_trees:insert({Ms, Number}, Event, Queue), number = Number + 1}.

-doc "An event so many milliseconds later.".
-spec later(Ms :: integer(), Event :: term(), #world{}) -> #world{}.
later(Ms, Event, #world{now = Now} = World) -> at(Now + Ms, Event, World).

-doc "A number from 1 to so many.".
-spec roll(Sides :: pos_integer(), #world{}) -> {pos_integer(), #world{}}.
roll(Sides, #world{dice = Dice} = World) ->
    {Number, Next} = rand:uniform_s(Sides, Dice),
    {Number, World#world{dice = Next}}.

-doc "One of a list.".
-spec pick([Element, ...], #world{}) -> {Element, #world{}}.
pick(List, World) ->
    {Number, Next} = roll(length(List), World),
    {lists:nth(Number, List), Next}.

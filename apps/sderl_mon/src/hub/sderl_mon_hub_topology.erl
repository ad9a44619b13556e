%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_hub_topology).
-moduledoc """
The nodes and groups, as the leading master sent them to the hub. `Now` is by the monotonic clock.
""".

-export([new/1, take/3, present/1, renew/1, record/3]).
-export_type([told/0]).

-import(sderl_mon_clock, [wall_ms/0]).

%% Terms grow, and so do epochs over takeovers. Only when the master of the highest has been silent
%% for so long is a lower one believed: all monitoring nodes may have been started anew.
-define(MASTER_SILENT_MS, 15_000).

-record(told, {
    topology :: sderl_mon_types:topology(),
    heard :: integer(),
    %% Not in the history yet.
    is_new = false :: boolean()
}).
-opaque told() :: #told{}.

-doc "Before any master has said anything.".
-spec new(Now :: integer()) -> told().
new(Now) ->
    Nobody = #{epoch => 0, t => wall_ms(), nodes => #{}, groups => #{}, monitors => []},
    #told{topology = Nobody, heard = Now}.

-doc "A master's word. Errors: the reason for which it is ignored, as it is counted.".
-spec take(term(), Now :: integer(), told()) ->
    {ok, told()} | {error, topologies_stale | topologies_malformed}.
take(Given, Now, #told{topology = #{epoch := Epoch}, heard = Heard}) ->
    case sderl_mon_clean:topology(Given) of
        {ok, #{epoch := New}} when New < Epoch, Now - Heard < ?MASTER_SILENT_MS ->
            {error, topologies_stale};
        {ok, Good} ->
            %% By this node's clock, as the frames are.
            {ok, #told{topology = Good#{t := wall_ms()}, heard = Now, is_new = true}};
        {error, not_a_topology} ->
            {error, topologies_malformed}
    end.

-doc "The latest.".
-spec present(told()) -> sderl_mon_types:topology().
present(#told{topology = Topology}) -> Topology.

-doc "The history is another, which has not got it yet.".
-spec renew(told()) -> told().
renew(Told) -> Told#told{is_new = true}.

-doc "Puts it into the history, if it is not there, as of the time `T`.".
-spec record(sderl_mon_types:t(), sderl_mon_history:history(), told()) ->
    {sderl_mon_history:history(), told()}.
record(T, History, #told{topology = Topology, is_new = true} = Told) ->
    {sderl_mon_history:topology(Topology#{t := T}, History), Told#told{is_new = false}};
record(_T, History, Told) ->
    {History, Told}.

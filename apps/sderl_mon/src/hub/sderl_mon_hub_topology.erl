%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_hub_topology).
-moduledoc """
The nodes and groups, as the leading master sent them to the hub. `Now` is by the monotonic clock.
""".

-export([new/1, take/3, present/1, renew/1, record/3]).
-export_type([told/0]).

-import(sderl_mon_clock, [wall_ms/0]).

%% Terms grow with takeovers, and so do epochs. A lower epoch is accepted only when the master of
%% the highest one has been silent this long: all monitoring nodes may have been restarted.
-define(MASTER_SILENT_MS, 15_000).

-record(told, {
    topology :: sderl_mon_types:topology(),
    heard :: integer(),
    %% Not in the history yet.
    is_new = false :: boolean()
}).
-opaque told() :: #told{}.

-doc "An empty topology, before any master has sent one.".
-spec new(Now :: integer()) -> told().
new(Now) ->
    Nobody = #{epoch => 0, t => wall_ms(), nodes => #{}, groups => #{}, monitors => []},
    #told{topology = Nobody, heard = Now}.

-doc "Takes a master's topology. Errors: why it is ignored, as it is counted.".
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

-doc "The latest topology.".
-spec present(told()) -> sderl_mon_types:topology().
present(#told{topology = Topology}) -> Topology.

-doc "The history was replaced, and lacks the topology.".
-spec renew(told()) -> told().
renew(Told) -> Told#told{is_new = true}.

-doc "Puts the topology into the history, as of the time `T`, if it is not there.".
-spec record(sderl_mon_types:t(), sderl_mon_history:history(), told()) ->
    {sderl_mon_history:history(), told()}.
record(T, History, #told{topology = Topology, is_new = true} = Told) ->
    {sderl_mon_history:topology(Topology#{t := T}, History), Told#told{is_new = false}};
record(_T, History, Told) ->
    {History, Told}.

%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_table).
-moduledoc "The demo's table: what the sides measured, side by side.".

-export([text/2]).

-doc "The table as lines of text.".
-spec text(sderl_demo:results(), sderl_options:consistency()) -> unicode:chardata().
text(#{stock := Stock, sd := Sd, following := Following}, Consistency) ->
    sderl_table:text(
        ["", "stock mesh, global", title(Consistency), "following others"],
        [[Label, Cell(Stock), Cell(Sd), Cell(Following)] || {Label, Cell} <- rows()]
    ).

title(available) -> "s_groups";
title(majority) -> "s_groups, by majority".

rows() ->
    [
        {"links of a node, most", number(links_per_node_max)},
        {"links of a node, mean", number(links_per_node_mean)},
        {"links in total", number(links_total)},
        {"all servers started and registered", duration(servers_start_ms, 1_000_000)},
        {"registrations a second", number(registrations_per_s)},
        {"  one takes, p50 / p99", percentiles(register_us, 1000)},
        {"  and unregistering it", percentiles(unregister_us, 1000)},
        {"  bytes sent for both", number(bytes_per_registration)},
        {"lookups a second, 8 of 10 own group", number(lookups_per_s)},
        {"  own group, p50 / p99", percentiles(own_lookup_ns, 1)},
        {"  another group, p50 / p99", percentiles(other_lookup_ns, 1)},
        {"calls a second by name, own group", number(own_calls_per_s)},
        {"  one takes, p50 / p99", percentiles(own_call_us, 1000)},
        {"calls a second, another group", number(other_calls_per_s)},
        {"  one takes, p50 / p99", percentiles(other_call_us, 1000)},
        {"servers killed", number(kills)},
        {"  back under their name, p50 / p99", percentiles(recovery_ms, 1_000_000)},
        {"memory of a node's names, bytes", number(names_bytes_per_node)},
        {"bytes between nodes, whole run", number(bytes)},
        {"messages between nodes, whole run", number(messages)},
        {"calls failed, in flight at a kill", number(calls_in_flight_at_kills)},
        {"calls lost otherwise", number(lost_calls)},
        {"names missing on a member", number(missing_names)},
        {"other errors", number(errors)}
    ].

number(Key) ->
    fun(Metrics) -> sderl_table:number(maps:get(Key, Metrics)) end.

duration(Key, UnitNs) ->
    fun(Metrics) -> time(maps:get(Key, Metrics), UnitNs) end.

percentiles(Key, UnitNs) ->
    fun(Metrics) ->
        #{p50 := P50, p99 := P99} = maps:get(Key, Metrics),
        [time(P50, UnitNs), " / ", time(P99, UnitNs)]
    end.

time(null, _UnitNs) ->
    "-";
time(Value, UnitNs) ->
    {Unit, Name} = unit(Value * UnitNs),
    [sderl_table:number(Value * UnitNs / Unit), " ", Name].

unit(Ns) when Ns >= 1_000_000_000 -> {1_000_000_000, "s"};
unit(Ns) when Ns >= 1_000_000 -> {1_000_000, "ms"};
unit(Ns) when Ns >= 1_000 -> {1_000, "us"};
unit(_Ns) -> {1, "ns"}.
